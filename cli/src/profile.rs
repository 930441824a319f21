//! `diapason profile`: the console of a computer that measured itself becomes a profile for
//! `plan --machine`.
//!
//! The computer boots an image of `examples/machine.toml`, and its console has the longest time of
//! each kernel operation, with cold caches. The same kernel and programs run in QEMU, which counts
//! the instructions of these operations. The operation that is slowest by the instruction says how
//! fast the computer is.
//!
//! With `examples/machine-cores.toml` the other cores work on memory meanwhile, and say how much
//! they did. QEMU counts what the first core does alone: that takes as many instructions.

use crate::bench::{Measured, Operation};
use crate::console::{Line, SerialPort};
use crate::cores::share_kernel;
use crate::describe::{describe_any, refused};
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
use diapason_system::{Description, Gap, MachineProfile, MemoryStress, RunOptions, System};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The system that measures a computer, for hosts with one core.
pub const MEASURING: &str = "examples/machine.toml";
/// The system that measures one while its other cores work on memory.
pub const MEASURING_CORES: &str = "examples/machine-cores.toml";
/// The program that measures what the benchmark does not.
const MACHINE: &str = "machine";
/// The argument with which it waits for so many other cores.
const OTHERS: usize = 1;
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
    let counted = counted(heard.description(), request.missing)?;
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

/// Runs the first core of the same system in QEMU, which counts instructions.
fn counted(description: &str, missing: Missing) -> Result<Heard, Failure> {
    let workspace = Workspace::find()?;
    QEMU.require(missing)?;
    let path = workspace.root().join(description);
    let systems = match describe_any(&path)? {
        Description::One(system) => vec![*system],
        Description::Cores(cores) => cores,
        Description::Several(_) => Vec::new(),
    };
    note("building the kernel and the programs");
    let built = project::build(&workspace, &path, &systems.iter().collect::<Vec<&System>>())?;
    let options = RunOptions { horizon_ns: COUNTING_NS, record_bytes: 0, watch: false };
    let session = |system: System| {
        let name = system.core.to_string();
        Ok((name, Session::assemble(quick(system), built.clone(), options)?))
    };
    let mut sessions = systems.into_iter().map(session).collect::<Result<Vec<_>, Failure>>()?;
    if sessions.len() > 1 {
        share_kernel(&workspace, &mut sessions)?;
    }
    let nothing = || Failure::Ours(format!("{description} has no core"));
    let (_, mut first) = sessions.into_iter().next().ok_or_else(nothing)?;
    if first.system.cores == 1 {
        first = first.on_own_kernel(&workspace)?;
    }
    note("counting the instructions of its operations in QEMU");
    let mut heard = Heard::default();
    first.run(&workspace, &mut |line| heard.note(0, line))?;
    heard.whole().map_err(|why| Failure::Ours(format!("in QEMU: {why}")))?;
    Ok(heard)
}

/// Returns the system with the least arguments, and without other cores to wait for or to have
/// memory in common with. An instruction is counted once, whatever is in the caches.
fn quick(mut system: System) -> System {
    for process in &mut system.processes {
        process.arguments.iter_mut().for_each(|argument| *argument = (*argument).min(1));
        if process.program == MACHINE {
            process.arguments[OTHERS] = 0;
        }
    }
    system.segments.iter_mut().for_each(|segment| segment.common = false);
    system
}

/// The measurements on a console.
#[derive(Default)]
struct Heard {
    /// Bytes of the kernel: text, rodata, data, bss.
    kernel: Vec<u64>,
    counter_khz: u64,
    /// Another core than the first said something.
    several: bool,
    measured: Measured,
    processor: Option<Processor>,
    gaps: Option<(Nanos, Option<Gap>)>,
    late: Option<Nanos>,
    /// How late interrupts of the device were, and the longest read of its register.
    device: Option<(Nanos, Nanos)>,
    stress: Option<MemoryStress>,
    /// The other cores that worked on memory meanwhile, and how many lines each read, read and
    /// wrote, and wrested from others.
    worked: BTreeMap<usize, [u64; 3]>,
}

/// A processor, as it calls itself.
#[derive(Default)]
struct Processor {
    name: String,
    /// It says that a program runs it.
    emulated: bool,
    /// It says that its cores are not all of one kind.
    hybrid: bool,
}

impl Heard {
    /// Returns what the last boot on a console says.
    fn on(console: &[u8]) -> Heard {
        let (mut heard, mut port) = (Heard::default(), SerialPort::default());
        port.push(console, |core, line| heard.note(core, &line));
        port.finish(|core, line| heard.note(core, &line));
        heard
    }

    /// Returns the system that this computer booted.
    fn description(&self) -> &'static str {
        if self.several { MEASURING_CORES } else { MEASURING }
    }

    fn note(&mut self, core: usize, line: &Line) {
        self.several |= core > 0;
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
                self.note_machine(core, &report);
            }
            _ => {}
        }
    }

    fn note_machine(&mut self, core: usize, report: &MachineReport) {
        match *report {
            MachineReport::Processor { name, emulated, hybrid } => {
                let shown = name.into_iter().filter(|byte| matches!(byte, b' '..=b'~'));
                let name: String = shown.map(char::from).collect();
                let name = name.trim().to_owned();
                self.processor = Some(Processor { name, emulated, hybrid });
            }
            MachineReport::Gaps { measured, count, longest, apart } => {
                self.gaps = Some((measured, (count > 0).then_some(Gap { longest, apart })));
            }
            MachineReport::Timers { late, .. } => self.late = Some(late),
            MachineReport::Device { late, read, .. } => self.device = Some((late, read)),
            MachineReport::Beside { cores, rings, ring, alone, beside } => {
                let cores = u16::try_from(cores).unwrap_or(u16::MAX);
                let ring = (rings > 0).then_some(ring);
                self.stress = Some(MemoryStress { cores, alone, beside, ring });
            }
            MachineReport::Stress { read, updated, wrested } => {
                self.worked.insert(core, [read, updated, wrested]);
            }
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
            Heard { stress: None, several: true, .. } => {
                "how long a walk through memory takes beside the other cores"
            }
            _ => return self.all_worked(),
        };
        Err(format!(
            "nothing in it says {missing}\n\
             help: boot it from an image of `{MEASURING}` or `{MEASURING_CORES}`, and keep every \
             byte from its serial port until it says that everything is measured"
        ))
    }

    /// Checks that each core worked on memory that should, in every way.
    fn all_worked(&self) -> Result<(), String> {
        let wanted = self.stress.map_or(0, |stress| usize::from(stress.cores) - 1);
        let idle = (1..=wanted).find(|core| self.worked.get(core).is_none_or(|it| it.contains(&0)));
        if let Some(core) = idle {
            return Err(format!(
                "nothing in it says that core {core} worked on memory while the first one \
                 measured\n\
                 help: describe one process with the program `machine-stress` on each core but the \
                 first, and keep every byte from its serial port"
            ));
        }
        if self.worked.len() > wanted {
            return Err(format!(
                "{} other cores worked on memory, and the first one waited for {wanted}\n\
                 help: write their number as the second argument of `machine`, and measure again",
                self.worked.len()
            ));
        }
        Ok(())
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
        let Processor { name: processor, emulated, hybrid } = self.processor.unwrap_or_default();
        if hybrid && self.several {
            return Err(format!(
                "the cores of `{processor}` are of several kinds, and only the first was measured\n\
                 help: switch all cores of the other kinds off in the firmware's setup, or measure \
                 it for hosts with one core, by an image of `{MEASURING}`"
            ));
        }
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
            stress: self.stress,
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
    use diapason_abi::results::mark;
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
            MachineReport::Processor { name, emulated: false, hybrid: false },
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

    const BESIDE: MachineReport = MachineReport::Beside {
        cores: 3,
        rings: 9,
        ring: Nanos(2_000),
        alone: Nanos(70),
        beside: Nanos(210),
    };

    /// Returns what such a core says, behind its mark.
    fn worked(core: u8, [read, updated, wrested]: [u64; 3]) -> Vec<u8> {
        let said = report(Measurement::Machine(MachineReport::Stress { read, updated, wrested }));
        [&[mark(core)], said.as_bytes()].concat()
    }

    /// Returns what a computer with three cores says, of which two worked.
    fn several(workers: &[Vec<u8>]) -> Vec<u8> {
        let beside = report(Measurement::Machine(BESIDE));
        [&workers.concat(), &[mark(0)][..], beside.as_bytes()].concat()
    }

    fn profiled(more: &[u8]) -> Result<MachineProfile, String> {
        let heard = Heard::on(&[console().as_bytes(), more].concat());
        heard.whole().and_then(|()| heard.machine(&counted()))
    }

    #[test]
    fn other_cores_that_worked_are_in_the_profile() {
        let both = [worked(1, [7, 8, 9]), worked(2, [1, 1, 1])];
        let machine = profiled(&several(&both)).unwrap();
        let (alone, beside, ring) = (Nanos(70), Nanos(210), Some(Nanos(2_000)));
        assert_eq!(machine.stress, Some(MemoryStress { cores: 3, alone, beside, ring }));
        assert_eq!(machine.clock_hz, 200_000_000, "the first core alone measures operations");
        assert_eq!(profiled(b"").unwrap().stress, None);
        assert_eq!(Heard::on(console().as_bytes()).description(), MEASURING);
        let all = [console().into_bytes(), several(&both)].concat();
        assert_eq!(Heard::on(&all).description(), MEASURING_CORES);
    }

    #[test]
    fn a_core_that_did_not_work_is_missed() {
        let (first, second) = (worked(1, [7, 8, 9]), worked(2, [1, 1, 1]));
        let refused = |more: &[u8]| profiled(more).unwrap_err();
        assert!(refused(&several(&[])).contains("core 1"));
        assert!(refused(&several(std::slice::from_ref(&first))).contains("core 2"));
        let lazy = [first.clone(), worked(2, [1, 1, 0])];
        assert!(refused(&several(&lazy)).contains("core 2"), "it wrested no line");
        let more = [first.clone(), second.clone(), worked(3, [1, 1, 1])];
        assert!(refused(&several(&more)).contains("3 other cores"), "nobody waited for one");
        assert!(refused(&[first, second].concat()).contains("a walk through memory"));
    }

    #[test]
    fn cores_of_several_kinds_are_no_profile_of_several_cores() {
        let both = [worked(1, [7, 8, 9]), worked(2, [1, 1, 1])];
        let name = [b'p'; PROCESSOR_BYTES];
        let processor = MachineReport::Processor { name, emulated: false, hybrid: true };
        let hybrid = report(Measurement::Machine(processor));
        let why = profiled(&[&several(&both), hybrid.as_bytes()].concat()).unwrap_err();
        assert!(why.contains("of several kinds") && why.contains(MEASURING), "{why}");
        assert!(profiled(hybrid.as_bytes()).is_ok(), "one core is of one kind");
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
