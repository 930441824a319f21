//! The sheet that an image carries for the screen of its PC: names, and what the final tables tell.

use crate::outcome::Assumptions;
use crate::session::Session;
use diapason_screen::sheet::{SheetContent, flags, of_name};
use diapason_system::{Restart, System};

/// The program that restarts a process only after it has read the report of its fault.
const SUPERVISOR: &str = "supervisor";

/// Writes the sheet of a session behind its archive. It is that of the first of so many cores. The
/// screen shows the tables of that core only, so it judges no system with several.
pub fn write(session: &Session, cores: usize, out: &mut Vec<u8>) {
    let system = &session.system;
    let may_fault = |restart| if restart == Restart::Never { 0 } else { of_name::MAY_FAULT };
    let processes: Vec<(&str, u8)> =
        system.processes.iter().map(|it| (it.name.as_str(), may_fault(it.restart))).collect();
    let devices: Vec<&str> = system.devices.iter().map(|device| device.name.as_str()).collect();
    let proved = if session.proved { flags::PROVED } else { 0 };
    let whole = if cores == 1 && tells_all(session) { flags::WHOLE } else { 0 };
    let content = SheetContent {
        flags: proved | whole,
        memory_mib: u32::try_from(system.memory.div_ceil(1 << 20)).unwrap_or(u32::MAX),
        cores: u8::try_from(cores).unwrap_or(u8::MAX),
        system: &system.name,
        processes: &processes,
        devices: &devices,
    };
    content.write(out);
}

/// Returns whether the final tables of a run tell everything that the host's verdict looks at.
/// VCPUs and devices have assumptions of their own, pipes and their like report in records that
/// only the serial port has, and so does the kernel if it loses the report of a fault.
fn tells_all(session: &Session) -> bool {
    let system = &session.system;
    let is_plain = system.vcpus.is_empty()
        && system.devices.is_empty()
        && system.processes.iter().all(|process| process.vcpus == 0);
    is_plain && reports_arrive(system) && Assumptions::of(&session.plan).are_only_of_the_kernel()
}

/// Returns whether no report of a fault can be lost. The receiver's mailbox has room for one of
/// each process, and none faults again before its supervisor, which read the report, starts it.
fn reports_arrive(system: &System) -> bool {
    let supervisor = |number: u16| system.processes.get(usize::from(number));
    system.processes.iter().all(|process| {
        let known = process.supervisor.and_then(supervisor);
        process.starts.is_empty()
            && (process.supervisor.is_none() || known.is_some_and(|it| it.program == SUPERVISOR))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_screen::sheet::Sheet;

    fn flags_of(text: &str) -> u8 {
        let system = diapason_system::parse("s.toml", text).unwrap_or_else(|bad| panic!("{bad}"));
        let mut out = b"archive".to_vec();
        write(&Session::unbuilt(system), 1, &mut out);
        Sheet::read(&out).unwrap().flags
    }

    const PLAIN: &str = "[system]\nname = \"s\"\n[[process]]\nname = \"supervisor\"\n\
                         priority = 63\n[[process]]\nname = \"a\"\npriority = 2\n";

    #[test]
    fn threads_by_priority_are_judged_by_the_final_tables() {
        assert_eq!(flags_of(PLAIN) & flags::WHOLE, flags::WHOLE);
    }

    #[test]
    fn whatever_else_is_promised_is_not() {
        let more = [
            "[[vcpu]]\nname = \"v\"\nbudget = \"1ms\"\nperiod = \"10ms\"\n",
            "vcpus = 1\n",
            "starts = [\"supervisor\"]\n",
            "[[device]]\nname = \"clock\"\naddress = 0xfed00000\nsize = \"4K\"\n",
        ];
        for text in more {
            assert_eq!(flags_of(&format!("{PLAIN}{text}")) & flags::WHOLE, 0, "{text}");
        }
        let own = PLAIN.replace("priority = 63", "priority = 63\nprogram = \"own\"");
        assert_eq!(flags_of(&own) & flags::WHOLE, 0);
    }
}
