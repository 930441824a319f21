//! `diapason run` for a host with several cores: one QEMU with as many processors.
//!
//! Each core boots the same kernel with an archive of its own; the archives lie one behind the
//! other. The cores speak through one serial port, and the console tells them apart.
//!
//! The processors run side by side in counted time: two runs are equal to the byte, and a core has
//! the time that it has alone. Tests boot them in another way, too: as threads of this computer,
//! which really run at the same time.

use crate::can_server;
use crate::commands::{Addition, RunRequest};
use crate::console::Line;
use crate::failure::Failure;
use crate::formats::RunFormat;
use crate::interrupt;
use crate::outcome::Outcome;
use crate::output::tell;
use crate::plugged;
use crate::qemu::{self, Boot, MEMORY_MIB_MIN, MachineEnding, patience};
use crate::real;
use crate::session::{FinishedRun, Session};
use crate::several::{AllParts, Named, Several, live_parts, refuse_format, report};
use crate::surroundings::emulable;
use crate::tools::QEMU;
use crate::workspace::Workspace;
use diapason_abi::archive::{ARCHIVE_ALIGN, add_flags, flags};
use diapason_abi::served::{Facility, Served};
use diapason_system::{RunOptions, System};
use std::ops::ControlFlow;

/// How the processors of a machine run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Processors {
    /// Side by side in counted time.
    SideBySide,
    /// As threads of this computer, in its time. Other work of the computer holds them up, so no
    /// time is judged, and the clock of the kernels goes 2^`slower` times slower.
    Parallel { slower: u32 },
}

/// Boots the cores of a host and reports on each.
///
/// # Errors
/// If QEMU cannot have such a host, or there was no run to report on.
pub fn run(request: &RunRequest, systems: Vec<System>) -> Result<u8, Failure> {
    refuse_format(&request.system, request.format)?;
    let several = Several::cores(systems);
    several.refuse(&request.system, &[(request.record.is_some(), "--record")])?;
    let all = several.systems();
    let host = all.iter().find(|system| !system.usb.is_empty()).or(all.first());
    host.map_or(Ok(()), |host| can_server::check(host, &request.captures))?;
    let workspace = Workspace::find()?;
    QEMU.require(request.missing)?;
    all.iter().try_for_each(|system| real::require(system))?;
    let options =
        RunOptions { horizon_ns: request.length.horizon_ns, record_bytes: 0, watch: request.watch };
    let unproved = request.length.unproved();
    let (mut sessions, joined) =
        several.assemble(&workspace, &request.system, options, unproved)?;
    share_kernel(&workspace, &mut sessions)?;
    for (_, session) in &mut sessions {
        session.hardware.iommu = request.iommu;
        session.captures = request.captures.clone();
        session.unseen = real::unseen(&session.system);
        session.unseen.extend(qemu::unseen(&session.system));
    }
    interrupt::await_signals()?;
    let json = RunFormat::of(request.json, request.format).is_for_programs();
    let mut observers = live_parts(&sessions, &joined, json);
    let runs = boot(&workspace, &mut sessions, Processors::SideBySide, &mut |core, line| {
        observers[core](line);
    })?;
    if let Some(served) = runs.iter().find_map(|run| run.served) {
        tell(&format!("USB devices {served:016x}"));
    }
    let about = AllParts {
        noun: joined.noun(),
        switches: None,
        times: Vec::new(),
        each: Vec::new(),
        addition: Addition::default(),
    };
    report(json, &sessions, &runs, about)
}

/// Puts all cores on one kernel, with what any of them needs.
///
/// # Errors
/// If the kernel does not compile.
pub fn share_kernel(workspace: &Workspace, sessions: &mut [Named]) -> Result<(), Failure> {
    let crew: Vec<usize> = (0..sessions.len()).collect();
    share_kernel_in(workspace, sessions, &crew)
}

/// Does the same for one of several hosts, whose cores have these places in `sessions`.
///
/// # Errors
/// As of [`share_kernel`].
pub fn share_kernel_in(
    workspace: &Workspace,
    sessions: &mut [Named],
    crew: &[usize],
) -> Result<(), Failure> {
    let mut needed = Served::LEAST;
    if crew.len() > 1 {
        needed = needed.with(Facility::Cores);
    }
    for part in crew {
        needed = needed.and(sessions[*part].1.needs()?);
    }
    let first = crew.first().map(|part| &mut sessions[*part].1);
    first.map_or(Ok(()), |first| first.use_kernel_with(workspace, needed))
}

/// Returns the archives of all cores, as one kernel boots from them.
#[must_use]
pub fn archives(sessions: &[&Session], slower: u32) -> Vec<u8> {
    let mut all = Vec::new();
    for session in sessions {
        let from = all.len().next_multiple_of(ARCHIVE_ALIGN);
        all.resize(from, 0);
        all.extend_from_slice(&session.archive);
        add_flags(&mut all[from..], slower << flags::SLOWER_FROM);
    }
    all
}

/// Boots the cores together and follows them to their end. `observer` sees every line, with the
/// number of its core.
///
/// # Errors
/// If QEMU cannot have what the description plugs in, or be used.
pub fn boot(
    workspace: &Workspace,
    sessions: &mut [Named],
    processors: Processors,
    observer: &mut dyn FnMut(usize, &Line),
) -> Result<Vec<FinishedRun>, Failure> {
    boot_until(workspace, sessions, processors, &mut |core, line| {
        observer(core, line);
        ControlFlow::Continue(())
    })
}

/// Does what [`boot`] does, until the observer has heard enough.
///
/// # Errors
/// Those of [`boot`].
pub fn boot_until(
    workspace: &Workspace,
    sessions: &mut [Named],
    processors: Processors,
    observer: &mut dyn FnMut(usize, &Line) -> ControlFlow<()>,
) -> Result<Vec<FinishedRun>, Failure> {
    sessions.iter().try_for_each(|(_, session)| emulable(&session.system))?;
    let (counted, slower) = match processors {
        Processors::SideBySide => (true, 0),
        Processors::Parallel { slower } => (false, slower),
    };
    sessions.iter_mut().for_each(|(_, session)| session.untimed = !counted);
    let all: Vec<&Session> = sessions.iter().map(|(_, session)| session).collect();
    let archive = archives(&all, slower);
    let Some(machine) = machine(&all, &archive)? else { return Ok(Vec::new()) };
    let patience = patience(all[0].options.horizon_ns << slower);
    let machine = Boot { counted, patience, ..machine };
    let mut outcomes: Vec<Outcome> = sessions.iter().map(|_| Outcome::default()).collect();
    let booted = machine.run_cores(&workspace.target(), &mut |core, line| {
        outcomes[core].note(line);
        observer(core, line)
    })?;
    let qemu::Booted { ending, flights, served, .. } = booted;
    // Without devices, nothing waits for a slice.
    let served = served.filter(|_| !machine.plugged.is_empty());
    Ok(finished(ending, outcomes, flights, served))
}

/// Returns the machine with a core for each of these sessions, if there are any. It boots from this
/// archive of all.
///
/// # Errors
/// If QEMU cannot have what they plug in.
pub(crate) fn machine<'a>(
    sessions: &[&'a Session],
    archive: &'a [u8],
) -> Result<Option<Boot<'a>>, Failure> {
    let Some(first) = sessions.first() else { return Ok(None) };
    let systems = || sessions.iter().map(|session| &session.system);
    let recorded = u64::from(first.options.record_bytes) * sessions.len() as u64;
    let memory = systems().map(|system| system.memory).fold(recorded, u64::saturating_add);
    let most = |count: fn(&System) -> usize| systems().map(count).max().unwrap_or(0);
    let mut served = systems().filter(|system| !system.usb.is_empty());
    let plugged = match (served.next(), served.next()) {
        (Some(first), Some(second)) => {
            let (title, cores) = (&first.name, [first.core, second.core]);
            return Err(Failure::Input(format!(
                "error: `{title}` has USB devices on cores {} and {}, and QEMU plugs devices into \
                 one controller only\nhelp: start the system with `diapason sim`",
                cores[0], cores[1]
            )));
        }
        (first, _) => first.map(plugged::plugs).unwrap_or_default(),
    };
    Ok(Some(Boot {
        archive,
        cores: sessions.len(),
        memory_mib: memory.div_ceil(1 << 20).max(MEMORY_MIB_MIN),
        controllers: most(qemu::controllers),
        adapters: most(qemu::adapters),
        plugged,
        ..first.boot()
    }))
}

/// Returns the run of each core of a machine that ended so. A core without a final table was
/// stopped by one that has it.
pub(crate) fn finished(
    ending: MachineEnding,
    outcomes: Vec<Outcome>,
    flights: Vec<Vec<u8>>,
    served: Option<u64>,
) -> Vec<FinishedRun> {
    let is_told = outcomes.iter().any(|outcome| outcome.end.is_some());
    let mut flights = flights.into_iter();
    let run = |outcome: Outcome| {
        let is_stopped = is_told && outcome.end.is_none();
        let ending = if is_stopped { MachineEnding::OtherCore } else { ending };
        FinishedRun { ending, outcome, flight: flights.next(), served }
    };
    outcomes.into_iter().map(run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::RunEnd;

    /// Returns two cores, of which each has a controller with a device if it is among `served`.
    fn cores(served: &[u16]) -> Vec<Session> {
        let mut text = String::from("[system]\nname = \"twins\"\ncores = 2\n");
        for core in [0, 1] {
            text += &format!("[[process]]\nname = \"p{core}\"\ncore = {core}\npriority = 1\n");
        }
        let mut systems = diapason_system::parse_cores("twins", &text).unwrap();
        let one = "[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n\
                   [[device]]\nname = \"xhci\"\npci = \"0c0330\"\nsize = \"16K\"\n\
                   [[usb]]\nname = \"keys\"\non = \"xhci\"\nmodel = \"keyboard\"\n";
        let one = diapason_system::parse("s", one).unwrap_or_else(|wrong| panic!("{wrong}"));
        for system in systems.iter_mut().filter(|system| served.contains(&system.core)) {
            (system.usb, system.devices) = (one.usb.clone(), one.devices.clone());
        }
        systems.into_iter().map(Session::unbuilt).collect()
    }

    #[test]
    fn devices_of_one_core_are_plugged_in_whichever_it_is() {
        let plugged = |served: &[u16]| {
            let sessions = cores(served);
            let all: Vec<&Session> = sessions.iter().collect();
            machine(&all, &[]).map(|machine| machine.map(|it| (it.cores, it.plugged.len())))
        };
        assert_eq!(plugged(&[]), Ok(Some((2, 0))));
        assert_eq!(plugged(&[0]), Ok(Some((2, 1))));
        assert_eq!(plugged(&[1]), Ok(Some((2, 1))));
        let Err(Failure::Input(said)) = plugged(&[0, 1]) else { panic!("not refused") };
        assert!(said.contains("`twins` has USB devices on cores 0 and 1"), "{said}");
    }

    #[test]
    fn a_core_without_a_final_table_was_stopped_by_one_that_has_it() {
        let endings = |told: [bool; 2]| {
            let end = |told: bool| told.then(RunEnd::default);
            let outcomes = told.map(|it| Outcome { end: end(it), ..Outcome::default() });
            let runs = finished(MachineEnding::Finished, outcomes.into(), Vec::new(), None);
            runs.iter().map(|run| run.ending).collect::<Vec<_>>()
        };
        let (ended, stopped) = (MachineEnding::Finished, MachineEnding::OtherCore);
        assert_eq!(endings([true, true]), [ended, ended]);
        assert_eq!(endings([false, true]), [stopped, ended]);
        // Nobody is left to have stopped them.
        assert_eq!(endings([false, false]), [ended, ended]);
    }
}
