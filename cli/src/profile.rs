//! `diapason profile`: the console of a computer that measured itself becomes a profile for
//! `plan --machine`.
//!
//! The computer boots an image of `examples/machine.toml`, and its console has the longest time of
//! each kernel operation, with cold caches. The same kernel and programs run in QEMU, which counts
//! the instructions of these operations. The operation that is slowest by the instruction says how
//! fast the computer is.

use crate::bench::{Measured, Operation};
use crate::console::{Line, Splitter};
use crate::describe::refused;
use crate::failure::{Failure, HOLDS};
use crate::input::Input;
use crate::output::{note, say};
use crate::project;
use crate::session::Session;
use crate::tools::{Missing, QEMU};
use crate::workspace::Workspace;
use diapason_abi::Nanos;
use diapason_abi::record::Record;
use diapason_costs::counted::PLAIN;
use diapason_pipe::measured::{MachineReport, Measurement, Reported};
use diapason_system::{Gap, MachineProfile, RunOptions, System, parse};
use std::path::PathBuf;

/// The system that measures a computer.
pub const MEASURING: &str = "examples/machine.toml";
const DESCRIPTION: &str = include_str!("../../examples/machine.toml");
/// Least instructions a second that a plan counts with.
const SLOWEST_HZ: u64 = 1_000_000;
/// Time of the run that counts, in ns. It ends by itself long before.
const COUNTING_NS: u64 = 600_000_000_000;

/// The request to `profile`.
#[derive(Clone, Debug, clap::Args)]
pub struct ProfileRequest {
    /// The bytes that came from the serial port of the computer.
    pub console: PathBuf,
    /// The profile to write.
    #[arg(short, long, value_name = "FILE", default_value = "machine.toml")]
    pub out: PathBuf,
    #[arg(skip = Missing::Say)]
    pub missing: Missing,
}

/// Writes the profile of a computer.
///
/// # Errors
/// If the console is not that of a whole measurement with this kernel.
pub fn profile(request: &ProfileRequest) -> Result<u8, Failure> {
    let path = &request.console;
    let bytes = Input::Console.bytes(path);
    let heard = Heard::on(&bytes.map_err(|error| Input::Console.refused(path, &error))?);
    let wrong = |why: String| Failure::Input(format!("error: {}: {why}", path.display()));
    heard.whole().map_err(wrong)?;
    let counted = counted(request.missing)?;
    let machine = heard.machine(&counted).map_err(wrong)?;
    let text = machine.to_toml();
    let out = request.out.display().to_string();
    // A computer that no promise can be made for is refused here, in the words of `plan`.
    MachineProfile::parse(&out, &text).map_err(|mistakes| refused(&mistakes))?;
    std::fs::write(&request.out, text)
        .map_err(|error| Failure::io(format!("write {out}"), &error))?;
    say(&format!("{out}: {}", machine.sentence()));
    if !machine.real {
        note("the computer is an emulated one, so `plan` refuses the profile");
    }
    Ok(HOLDS)
}

/// Runs the same system in QEMU, which counts instructions.
fn counted(missing: Missing) -> Result<Heard, Failure> {
    let workspace = Workspace::find()?;
    QEMU.require(missing)?;
    let system = parse(MEASURING, DESCRIPTION).map_err(|bad| Failure::Ours(bad.plain()))?;
    let system = quick(system);
    note("building the kernel and the programs");
    let built = project::build(&workspace, &workspace.root().join(MEASURING), &[&system])?;
    let options = RunOptions { horizon_ns: COUNTING_NS, record_bytes: 0, watch: false };
    let session = Session::assemble(system, built, options)?.on_own_kernel(&workspace)?;
    note("counting the instructions of its operations in QEMU");
    let mut heard = Heard::default();
    session.run(&workspace, &mut |line| heard.note(line))?;
    heard.whole().map_err(|why| Failure::Ours(format!("in QEMU: {why}")))?;
    Ok(heard)
}

/// Returns the system with the least arguments. An instruction is counted once, whatever is in the
/// caches.
fn quick(mut system: System) -> System {
    for argument in system.processes.iter_mut().flat_map(|process| &mut process.arguments) {
        *argument = (*argument).min(1);
    }
    system
}

/// The measurements on a console.
#[derive(Default)]
struct Heard {
    /// Bytes of the kernel: text, rodata, data, bss.
    kernel: Vec<u64>,
    counter_khz: u64,
    measured: Measured,
    processor: Option<(String, bool)>,
    gaps: Option<(Nanos, Option<Gap>)>,
    late: Option<Nanos>,
    /// How late interrupts of the device were, and the longest read of its register.
    device: Option<(Nanos, Nanos)>,
}

impl Heard {
    /// Returns what the last boot on a console says.
    fn on(console: &[u8]) -> Heard {
        let (mut heard, mut splitter) = (Heard::default(), Splitter::default());
        splitter.push(console, |line| heard.note(&line));
        splitter.finish(|line| heard.note(&line));
        heard
    }

    fn note(&mut self, line: &Line) {
        match line {
            Line::Record(Record::Boot, words) => {
                let kernel = words.get(1..).unwrap_or_default().to_vec();
                *self = Heard { kernel, ..Heard::default() };
            }
            Line::Record(Record::Clock, words) => {
                self.counter_khz = words.first().copied().unwrap_or_default();
            }
            _ => {}
        }
        match line.measured() {
            Some((_, Some(Reported { said: Measurement::Cost(report), .. }))) => {
                self.measured.note(&report);
            }
            Some((_, Some(Reported { said: Measurement::Machine(report), .. }))) => {
                self.note_machine(&report);
            }
            _ => {}
        }
    }

    fn note_machine(&mut self, report: &MachineReport) {
        match *report {
            MachineReport::Processor { name, emulated } => {
                let shown = name.into_iter().filter(|byte| matches!(byte, b' '..=b'~'));
                let name: String = shown.map(char::from).collect();
                self.processor = Some((name.trim().to_owned(), emulated));
            }
            MachineReport::Gaps { measured, count, longest, apart } => {
                self.gaps = Some((measured, (count > 0).then_some(Gap { longest, apart })));
            }
            MachineReport::Timers { late, .. } => self.late = Some(late),
            MachineReport::Device { late, read, .. } => self.device = Some((late, read)),
        }
    }

    /// Checks that everything was measured that every computer has.
    fn whole(&self) -> Result<(), String> {
        let missing = match self {
            Heard { kernel, .. } if kernel.is_empty() => "the kernel's first line",
            Heard { counter_khz: 0, .. } => "the speed of the processor's counter",
            Heard { measured, .. } if measured.operations.is_empty() => {
                "the times of kernel operations"
            }
            Heard { processor: None, .. } => "the name of the processor",
            Heard { late: None, .. } => "how late timers are",
            Heard { gaps: None, .. } => "how long the processor is away",
            _ => return Ok(()),
        };
        Err(format!(
            "nothing in it says {missing}\n\
             help: boot it from an image of `{MEASURING}`, and keep every byte from its serial \
             port until it says that everything is measured"
        ))
    }

    /// Returns the profile of the computer that said this, by what QEMU counted.
    fn machine(self, counted: &Heard) -> Result<MachineProfile, String> {
        if self.kernel != counted.kernel {
            return Err(format!(
                "the computer ran another kernel: {} bytes of code, and this one has {}\n\
                 help: make the image again with this version of Diapason, and measure again",
                self.kernel.first().unwrap_or(&0),
                counted.kernel.first().unwrap_or(&0),
            ));
        }
        let (clock_hz, slowest) = self.slowest(&counted.measured.operations)?;
        let (processor, emulated) = self.processor.unwrap_or_default();
        let (measured, gap) = self.gaps.unwrap_or_default();
        Ok(MachineProfile {
            processor,
            real: !emulated,
            kernel: PLAIN.kernel,
            measured,
            clock_hz,
            slowest,
            late: self.late.unwrap_or_default(),
            interrupt: self.device.map(|(late, _)| late),
            gap,
            register: self.device.map(|(_, read)| read),
        })
    }

    /// Returns the instructions a second in the operation that is slowest by the instruction, and
    /// its name.
    fn slowest(&self, counted: &[Operation]) -> Result<(u64, String), String> {
        let mut slowest: Option<(u64, &str)> = None;
        for operation in counted.iter().filter(|it| is_counted(&it.name)) {
            let name = operation.name.as_str();
            let own = self.measured.operations.iter().find(|it| it.name == name);
            let Some(own) = own.filter(|own| own.runs == operation.runs) else {
                return Err(format!(
                    "nothing in it says how long `{name}` takes, or that it was measured {} times\n\
                     help: keep every byte from its serial port, and measure again",
                    operation.runs
                ));
            };
            let longest = time(own.max, self.counter_khz);
            let hertz = u128::from(operation.median) * 1_000_000_000 / u128::from(longest.0.max(1));
            let hertz = u64::try_from(hertz).unwrap_or(u64::MAX);
            if slowest.is_none_or(|(least, _)| hertz < least) {
                slowest = Some((hertz, name));
            }
        }
        match slowest.ok_or("no kernel operation was counted")? {
            (hertz, name) if hertz < SLOWEST_HZ => Err(format!(
                "`{name}` took as long as if the processor had {hertz} instructions a second\n\
                 help: the firmware probably had the processor meanwhile; measure again"
            )),
            (hertz, name) => Ok((hertz, name.to_owned())),
        }
    }
}

/// Returns the time of so many ticks of a counter.
fn time(ticks: u64, khz: u64) -> Nanos {
    let ns = (u128::from(ticks) * 1_000_000).div_ceil(u128::from(khz.max(1)));
    Nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

/// Checks that the cost of an operation is that of instructions in the kernel: state messages never
/// enter it, and a wait for a device or a timer is a time already.
fn is_counted(name: &str) -> bool {
    !name.starts_with("state_") && !name.ends_with("_to_thread")
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_pipe::measured::{CostReport, PROCESSOR_BYTES};
    use proptest::prelude::*;

    const RUNS: u32 = 1_000;

    fn line(record: Record, words: &[u64]) -> String {
        let words: String = words.iter().map(|word| format!(" {word:x}")).collect();
        format!("~{:x}{words}\n", record as u8)
    }

    fn report(said: Measurement) -> String {
        let words = Reported { at: Nanos(5), said }.words();
        line(Record::Measured, &[&[2][..], &words].concat())
    }

    fn cost(name: &str, median: u32, max: u32) -> String {
        let named = CostReport::named(name);
        report(Measurement::Cost(CostReport { median, max, runs: RUNS, ..named }))
    }

    fn booted(khz: u64) -> String {
        line(Record::Boot, &[7, 45_000, 11_000, 300, 5_000]) + &line(Record::Clock, &[khz, khz, 1])
    }

    fn rest() -> [String; 4] {
        let mut name = [0; PROCESSOR_BYTES];
        name[..12].copy_from_slice(b" A\x07 \"C\" 5000");
        let (count, late) = (RUNS, Nanos(4_000));
        let (measured, longest, apart) = (Nanos(60), Nanos(7), Nanos(31));
        [
            MachineReport::Processor { name, emulated: false },
            MachineReport::Device { count, late, read: Nanos(900) },
            MachineReport::Timers { count, late: Nanos(3_000) },
            MachineReport::Gaps { measured, count: 2, longest, apart },
        ]
        .map(|part| report(Measurement::Machine(part)))
    }

    /// Returns what a computer with a counter of 2 GHz says.
    fn console() -> String {
        let costs = [
            cost("null_syscall", 300, 400),
            cost("yield_switch", 900, 1_600),
            cost("state_read_8", 90, 9_000),
            cost("irq_to_thread", 90, 9_000),
        ];
        booted(2_000_000) + &costs.concat() + &rest().concat()
    }

    fn counted() -> Heard {
        let costs = [
            cost("null_syscall", 40, 41),
            cost("yield_switch", 200, 900),
            cost("state_read_8", 2, 2),
            cost("irq_to_thread", 2, 2),
        ];
        Heard::on((booted(1_000_000) + &costs.concat() + &rest().concat()).as_bytes())
    }

    #[test]
    fn the_slowest_operation_by_the_instruction_says_how_fast_the_computer_is() {
        let heard = Heard::on(console().as_bytes());
        assert_eq!(heard.whole(), Ok(()));
        let machine = heard.machine(&counted()).unwrap();
        // 40 instructions in 400 ticks of half a ns, against 200 in 1,600.
        assert_eq!((machine.clock_hz, machine.slowest.as_str()), (200_000_000, "null_syscall"));
        assert_eq!((machine.processor.as_str(), machine.real), ("A \"C\" 5000", true));
        assert_eq!((machine.late, machine.interrupt), (Nanos(3_000), Some(Nanos(4_000))));
        assert_eq!(machine.gap, Some(Gap { longest: Nanos(7), apart: Nanos(31) }));
        assert_eq!(machine.register, Some(Nanos(900)));
    }

    #[test]
    fn a_console_tells_of_its_last_boot_only() {
        let twice = console() + "noise\n" + &booted(2_000_000);
        assert!(Heard::on(twice.as_bytes()).whole().unwrap_err().contains("kernel operations"));
        let again = twice + &console();
        assert_eq!(Heard::on(again.as_bytes()).whole(), Ok(()));
    }

    #[test]
    fn each_line_is_needed_but_that_of_a_device() {
        let text = console();
        let lines: Vec<&str> = text.lines().collect();
        let without = |left_out: usize| {
            let kept = lines.iter().enumerate().filter(|(at, _)| *at != left_out);
            let text: String = kept.flat_map(|(_, line)| [*line, "\n"]).collect();
            let heard = Heard::on(text.as_bytes());
            heard.whole().and_then(|()| heard.machine(&counted()))
        };
        let kept: Vec<usize> = (0..lines.len()).filter(|at| without(*at).is_ok()).collect();
        // State messages and the interrupt of the benchmark do not count.
        assert_eq!(kept, [4, 5, 7], "{lines:?}");
        assert_eq!(without(7).unwrap().interrupt, None);
    }

    #[test]
    fn an_operation_that_took_too_long_is_no_speed() {
        let slow = console().replace(&cost("yield_switch", 900, 1_600), "")
            + &cost("yield_switch", 900, 3_000_000);
        let why = Heard::on(slow.as_bytes()).machine(&counted()).unwrap_err();
        assert!(why.contains("`yield_switch`") && why.contains("133333"), "{why}");
    }

    proptest! {
        #[test]
        fn a_damaged_console_makes_no_panic(at in 0usize..2_000, with in any::<Vec<u8>>()) {
            let mut bytes = console().into_bytes();
            let at = at.min(bytes.len());
            bytes.splice(at..(at + with.len()).min(bytes.len()), with);
            let heard = Heard::on(&bytes);
            if heard.whole().is_ok() {
                let _ = heard.machine(&counted());
            }
        }
    }
}
