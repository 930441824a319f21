//! The profile of a computer: what `diapason profile` measured on it, and `plan --machine` counts
//! on instead of the description's `clock`.
//!
//! A profile is a table `[machine]` in a file of its own. It belongs to the kernel that was
//! measured: times of another one are other times.

use crate::diagnostics::{Diagnostics, Problem, Report};
use crate::keys;
use crate::source::{At, Source};
use crate::syntax;
use crate::system::System;
use crate::table::{Raw, Table};
use crate::units::show_duration;
use diapason_abi::Nanos;
use diapason_abi::archive::CORES_MAX;
use diapason_costs::counted::PLAIN;
use std::fmt::Write as _;
use toml::de::DeValue;

/// Longest delay that a profile may have. A computer beyond it controls nothing.
const DELAY_MAX: u64 = 1_000_000_000;
/// Longest measurement: a day.
const MEASURED_MAX: u64 = 86_400_000_000_000;
/// Shortest look for gaps on a real computer, as `examples/machine.toml` has it. Firmware may
/// take the processor away once in many seconds.
const LOOKED_MIN: u64 = 60_000_000_000;
/// The remedy for a profile that lacks something.
const MEASURE: &str = "measure the computer again, with `diapason profile`";
/// Gaps are at least so many of them apart, so that a wait for the kernel meets one at most.
const APART: u64 = 4;

/// A computer as it was measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MachineProfile {
    /// The processor, as it calls itself.
    pub processor: String,
    /// It is no emulator, whose times mean nothing.
    pub real: bool,
    /// The hash of the kernel that was measured.
    pub kernel: u64,
    /// How long it was looked at.
    pub measured: Nanos,
    /// Instructions a second in the operation that was slowest by the instruction.
    pub clock_hz: u64,
    /// The name of this operation, as the benchmark has it.
    pub slowest: String,
    /// The latest that a timer's thread ran, after it was due.
    pub late: Nanos,
    /// The latest that a device's thread ran after the device's signal, if that was measured.
    pub interrupt: Option<Nanos>,
    /// Times in which the processor was away, if any were seen.
    pub gap: Option<Gap>,
    /// The longest read of a device's register, if one was measured.
    pub register: Option<Nanos>,
    /// The other cores that worked on memory meanwhile, if any did.
    pub stress: Option<MemoryStress>,
}

/// The other cores of a computer, which worked on memory as hard as they could while everything
/// was measured, and what that did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryStress {
    /// The cores that worked, the one that measured among them.
    pub cores: u16,
    /// The shortest walk through memory before the others began.
    pub alone: Nanos,
    /// The longest such walk beside them.
    pub beside: Nanos,
    /// The longest from a ring of a doorbell until the answer of another core was seen, if one
    /// answered.
    pub ring: Option<Nanos>,
}

impl MemoryStress {
    /// Returns how many times as long a walk took beside the others, in tenths, rounded up.
    #[must_use]
    pub fn slower_tenths(&self) -> u64 {
        self.beside.0.saturating_mul(10).div_ceil(self.alone.0.max(1))
    }
}

/// Times in which the processor runs neither kernel nor programs, because firmware has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    /// The longest that was seen.
    pub longest: Nanos,
    /// The shortest time from the beginning of one to that of the next.
    pub apart: Nanos,
}

impl MachineProfile {
    /// Reads a profile. `file_name` is what messages call it.
    ///
    /// # Errors
    /// Everything that is wrong with the text, or that it is of another kernel.
    pub fn parse(file_name: &str, text: &str) -> Result<MachineProfile, Diagnostics> {
        let source = Source::new(file_name, text);
        let mut report = Report::new();
        let table = syntax::table(text, &mut report);
        let raw = Raw { entries: table.get_ref(), place: 0..0 };
        let mut top = Table::new("the profile", "profile", raw, &mut report);
        let entry = top.get("machine");
        top.report_unknown();
        let machine = match entry.map(|entry| (entry.get_ref(), entry.span())) {
            Some((DeValue::Table(entries), place)) => read(Raw { entries, place }, &mut report),
            _ => {
                let help = "name a file that `diapason profile` wrote";
                report.push(Problem::new(&(0..0), "the profile has no `[machine]`", help));
                None
            }
        };
        match machine {
            Some(machine) if report.is_empty() => Ok(machine),
            _ => Err(Diagnostics::new(source, report)),
        }
    }

    /// Returns the longest time until the processor comes to the kernel: an interrupt arrives
    /// late, or the processor is away, or first the one and then the other.
    #[must_use]
    pub fn away(&self) -> Nanos {
        let late = self.late.max(self.interrupt.unwrap_or_default());
        late + self.gap.map_or(Nanos::ZERO, |gap| gap.longest)
    }

    /// Returns how many cores worked while it was measured: a host may have as many.
    #[must_use]
    pub fn cores(&self) -> u16 {
        self.stress.map_or(1, |stress| stress.cores)
    }

    /// Returns the profile in one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let MachineProfile { measured, slowest, late, .. } = self;
        let megahertz = self.clock_hz as f64 / 1e6;
        let meanwhile = match self.cores() {
            1 => String::new(),
            2 => String::from(" while another core worked on memory as hard as it could"),
            cores => {
                format!(" while {} other cores worked on memory as hard as they could", cores - 1)
            }
        };
        let mut text = format!(
            "`{}`, looked at for {measured}{meanwhile}: the kernel runs like {megahertz:.1} MHz \
             (`{slowest}`), timers are up to {late} late",
            self.processor
        );
        if let Some(late) = self.interrupt {
            let _ = write!(text, ", interrupts up to {late}");
        }
        if let Some(register) = self.register {
            let _ = write!(text, ", a register takes up to {register}");
        }
        let _ = match self.gap {
            Some(Gap { longest, apart }) => {
                write!(text, ", the processor is away for up to {longest}, every {apart} at most")
            }
            None => write!(text, ", the processor was never away"),
        };
        if let Some(stress) = self.stress {
            let (tenths, MemoryStress { alone, beside, .. }) = (stress.slower_tenths(), stress);
            let _ = write!(
                text,
                ", a walk through memory takes up to {}.{} times as long as alone ({beside} \
                 instead of {alone})",
                tenths / 10,
                tenths % 10
            );
        }
        if let Some(ring) = self.stress.and_then(|stress| stress.ring) {
            let _ = write!(text, ", another core answers a doorbell within {ring}");
        }
        text
    }

    /// Returns the profile as [`MachineProfile::parse`] reads it.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let time = |time: Nanos| show_duration(time.0);
        let processor = self.processor.replace(['"', '\\'], " ");
        let mut text = format!(
            "[machine]\nprocessor = \"{processor}\"\nreal = {}\nkernel = \"{:016x}\"\n\
             measured = \"{}\"\nclock = \"{}kHz\"\nslowest = \"{}\"\nlate = \"{}\"\n",
            self.real,
            self.kernel,
            time(self.measured),
            self.clock_hz / 1_000,
            self.slowest,
            time(self.late),
        );
        let gap = [
            ("gap", self.gap.map(|gap| gap.longest)),
            ("gap_distance", self.gap.map(|gap| gap.apart)),
        ];
        let stress = [
            ("walk_alone", self.stress.map(|stress| stress.alone)),
            ("walk", self.stress.map(|stress| stress.beside)),
            ("ring", self.stress.and_then(|stress| stress.ring)),
        ];
        let times = [("interrupt", self.interrupt), ("register", self.register)];
        for (key, value) in times.into_iter().chain(gap).chain(stress) {
            if let Some(value) = value {
                let _ = writeln!(text, "{key} = \"{}\"", time(value));
            }
        }
        if let Some(stress) = self.stress {
            let _ = writeln!(text, "cores = {}", stress.cores);
        }
        text
    }
}

fn read(raw: Raw<'_>, report: &mut Report) -> Option<MachineProfile> {
    let mut table = Table::new("[machine]", "machine", raw, report);
    let processor = table.text("processor", "processor = \"a processor\"");
    let real = table.flag("real");
    let kernel = table.text("kernel", "kernel = \"0123456789abcdef\"");
    let measured = table.duration("measured", 1..=MEASURED_MAX);
    let clock = keys::clock(&mut table);
    let slowest = table.text("slowest", "slowest = \"yield_switch\"");
    let late = table.duration("late", 0..=DELAY_MAX);
    let interrupt = table.duration("interrupt", 0..=DELAY_MAX);
    let register = table.duration("register", 0..=DELAY_MAX);
    let gap = table.duration("gap", 1..=DELAY_MAX);
    let apart = table.duration("gap_distance", 1..=MEASURED_MAX);
    for key in ["processor", "real", "kernel", "measured", "clock", "slowest", "late"] {
        table.needs(key, MEASURE);
    }
    if gap.is_some() != apart.is_some() {
        let title = "`gap` and `gap_distance` are only there together";
        table.report.push(Problem::new(&table.place(), title, MEASURE));
    }
    let stress = stress(&mut table);
    table.report_unknown();
    let looks = measured.as_ref().filter(|_| real == Some(true));
    if let Some(short) = looks.filter(|measured| measured.value < LOOKED_MIN) {
        too_short(short, report);
    }
    if let Some(never) = late.as_ref().filter(|late| late.value == 0) {
        let title = "no thread runs at the instant at which its timer is due";
        report.push(Problem::new(&never.span, title, MEASURE));
    }
    let looked = measured.as_ref().map_or(u64::MAX, |measured| measured.value);
    let gap = gap.zip(apart).map(|(longest, apart)| gap_of(&longest, &apart, looked, report));
    let kernel = kernel.and_then(|kernel| kernel_of(&kernel, report));
    Some(MachineProfile {
        processor: processor?.value,
        real: real?,
        kernel: kernel?,
        measured: Nanos(measured?.value),
        clock_hz: clock?,
        slowest: slowest?.value,
        late: Nanos(late?.value),
        interrupt: interrupt.map(|time| Nanos(time.value)),
        gap,
        register: register.map(|time| Nanos(time.value)),
        stress,
    })
}

/// Reports a look at a computer that is too short to see how often its processor is away.
fn too_short(measured: &At<u64>, report: &mut Report) {
    let title = format!("the computer was looked at for {} only", show_duration(measured.value));
    let note = format!("a look takes {} at least", show_duration(LOOKED_MIN));
    report.push(Problem::new(&measured.span, title, MEASURE).note(note));
}

/// Reads what other cores did to the one that measured, if any worked.
fn stress(table: &mut Table<'_, '_>) -> Option<MemoryStress> {
    let cores = table.number("cores", 2..=CORES_MAX as u64, "; a profile of one core has none");
    let alone = table.duration("walk_alone", 1..=DELAY_MAX);
    let beside = table.duration("walk", 1..=DELAY_MAX);
    let ring = table.duration("ring", 1..=DELAY_MAX);
    let there = [cores.is_some(), alone.is_some(), beside.is_some()];
    if there.contains(&false) && (there.contains(&true) || ring.is_some()) {
        let title =
            "`cores`, `walk_alone` and `walk` are only there together, and `ring` with them";
        table.report.push(Problem::new(&table.place(), title, MEASURE));
    }
    Some(MemoryStress {
        cores: u16::try_from(cores?.value).ok()?,
        alone: Nanos(alone?.value),
        beside: Nanos(beside?.value),
        ring: ring.map(|time| Nanos(time.value)),
    })
}

/// Returns the gaps that were seen in a measurement of so many ns.
fn gap_of(longest: &At<u64>, apart: &At<u64>, looked: u64, report: &mut Report) -> Gap {
    let least = longest.value.saturating_mul(APART);
    if apart.value < least {
        let title = "the processor is away too often to promise anything";
        let help = "look for a setting of the firmware that ends it (USB legacy support, power \
                    management), and measure again";
        let note = format!("gaps are at least `{}` apart then", show_duration(least));
        report.push(Problem::new(&apart.span, title, help).note(note));
    }
    // The last reading of the clock may lie behind the end, by a gap.
    if apart.value > looked.saturating_add(longest.value) {
        let looked = show_duration(looked);
        let title = format!("no such distance can be seen in a measurement of {looked}");
        report.push(Problem::new(&apart.span, title, MEASURE));
    }
    Gap { longest: Nanos(longest.value), apart: Nanos(apart.value) }
}

/// Returns the kernel's number, if it is that of this kernel.
fn kernel_of(kernel: &At<String>, report: &mut Report) -> Option<u64> {
    let number = u64::from_str_radix(&kernel.value, 16).ok();
    if number == Some(PLAIN.kernel) {
        return number;
    }
    let title = "the profile is of another kernel, or of another version of it";
    let help = "measure the computer again, with an image that this version of Diapason makes";
    let note = format!("this kernel is `{:016x}`", PLAIN.kernel);
    report.push(Problem::new(&kernel.span, title, help).note(note));
    None
}

impl System {
    /// Plans the system for a computer that was measured, instead of one with the description's
    /// `clock`.
    pub fn plan_for(&mut self, machine: MachineProfile) {
        self.clock_hz = machine.clock_hz;
        self.machine = Some(machine);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_random::Random;

    fn any(random: &mut Random) -> MachineProfile {
        let longest = random.between(1, DELAY_MAX);
        let apart = random.between(APART * longest, MEASURED_MAX);
        let gap = Gap { longest: Nanos(longest), apart: Nanos(apart) };
        let mut delay = || Nanos(random.between(1, DELAY_MAX));
        let (late, interrupt, register) = (delay(), delay(), delay());
        let seen = |what: Nanos| (!what.0.is_multiple_of(3)).then_some(what);
        MachineProfile {
            processor: format!("a \"processor\" \\ {}", late.0),
            real: late.0.is_multiple_of(2),
            kernel: PLAIN.kernel,
            measured: Nanos(random.between(apart.max(LOOKED_MIN), MEASURED_MAX)),
            clock_hz: random.between(1_000, 10_000_000) * 1_000 + random.below(1_000),
            slowest: "yield_switch".into(),
            late,
            interrupt: seen(interrupt),
            gap: random.one_in(2).then_some(gap),
            register: seen(register),
            stress: random.one_in(2).then(|| MemoryStress {
                cores: random.between(2, CORES_MAX as u64) as u16,
                alone: Nanos(random.between(1, DELAY_MAX)),
                beside: Nanos(random.between(1, DELAY_MAX)),
                ring: random.one_in(2).then(|| Nanos(random.between(1, DELAY_MAX))),
            }),
        }
    }

    #[test]
    fn a_profile_is_read_as_it_was_written() {
        let mut random = Random::new(23);
        for _ in 0..2_000 {
            let written = any(&mut random);
            let read = MachineProfile::parse("m", &written.to_toml())
                .unwrap_or_else(|bad| panic!("{bad}"));
            // A clock is never read as faster than it was measured.
            let clock_hz = written.clock_hz / 1_000 * 1_000;
            let processor = written.processor.replace(['"', '\\'], " ");
            assert_eq!(read, MachineProfile { clock_hz, processor, ..written });
        }
    }

    const WHOLE: &str = "[machine]\nprocessor = \"p\"\nreal = true\nkernel = \"KERNEL\"\n\
        measured = \"60s\"\nclock = \"50MHz\"\nslowest = \"yield_switch\"\nlate = \"3us\"\n";

    fn refused(text: &str) -> String {
        let text = text.replace("KERNEL", &format!("{:016x}", PLAIN.kernel));
        MachineProfile::parse("m.toml", &text).map_or_else(|bad| bad.plain(), |_| String::new())
    }

    #[test]
    fn a_profile_is_refused_with_the_reason() {
        assert_eq!(refused(WHOLE), "");
        let cases = [
            ("", "", "no `[machine]`"),
            ("[machine]", "machine = 7\n[more]", "no `[machine]`"),
            ("late = \"3us\"\n", "", "`late`"),
            ("late = \"3us\"", "late = \"3 parsecs\"", "`3 parsecs`"),
            ("late = \"3us\"", "late = \"3us\"\nsoon = 1", "`soon`"),
            ("late = \"3us\"", "late = \"3us\"\ngap = \"1us\"", "only there together"),
            (
                "late = \"3us\"",
                "late = \"3us\"\ngap = \"1us\"\ngap_distance = \"3us\"",
                "too often",
            ),
            (
                "late = \"3us\"",
                "late = \"3us\"\ngap = \"1us\"\ngap_distance = \"61s\"",
                "seen in a measurement of 60s",
            ),
            ("late = \"3us\"", "late = \"3us\"\ncores = 2", "`cores`, `walk_alone`"),
            ("late = \"3us\"", "late = \"3us\"\nring = \"1us\"", "`cores`, `walk_alone`"),
            ("late = \"3us\"", "late = \"3us\"\ncores = 1", "`cores` is 1, out of range"),
            ("60s", "1ns", "looked at for 1ns only"),
            ("60s", "59999ms", "looked at for 59999ms only"),
            ("3us", "0ns", "no thread runs at the instant"),
            ("KERNEL", "0123", "another kernel"),
            ("KERNEL", "kernel", "another kernel"),
            ("50MHz", "50kHz", "out of range"),
        ];
        for (old, new, wanted) in cases {
            let text = if old.is_empty() { String::new() } else { WHOLE.replace(old, new) };
            let why = refused(&text);
            assert!(why.contains(wanted), "{wanted}: {why}");
        }
    }

    #[test]
    fn the_sentence_says_how_many_cores_worked_and_what_that_did() {
        let stress = MemoryStress {
            cores: 4,
            alone: Nanos(300_000),
            beside: Nanos(1_000_001),
            ring: Some(Nanos(2_500)),
        };
        let said = |stress| MachineProfile { stress, ..any(&mut Random::new(1)) }.sentence();
        let four = said(Some(stress));
        for part in ["while 3 other cores worked", "up to 3.4 times as long", "within 2.500 us"] {
            assert!(four.contains(part), "{part}: {four}");
        }
        let two = said(Some(MemoryStress { cores: 2, ring: None, ..stress }));
        assert!(two.contains("while another core worked") && !two.contains("doorbell"), "{two}");
        let one = said(None);
        assert!(!one.contains("core") && !one.contains("walk"), "{one}");
    }

    #[test]
    fn a_damaged_profile_makes_no_panic() {
        let mut random = Random::new(7);
        for _ in 0..5_000 {
            let mut text = any(&mut random).to_toml().into_bytes();
            let at = random.below(text.len() as u64) as usize;
            text[at] = random.bits() as u8;
            text.truncate(random.between(1, text.len() as u64) as usize);
            let _ = MachineProfile::parse("m", &String::from_utf8_lossy(&text));
        }
    }

    #[test]
    fn the_processor_is_away_for_a_gap_behind_a_late_interrupt() {
        let machine = MachineProfile {
            late: Nanos(2),
            interrupt: Some(Nanos(5)),
            ..any(&mut Random::new(1))
        };
        let gap = Some(Gap { longest: Nanos(10), apart: Nanos(90) });
        assert_eq!(MachineProfile { gap, ..machine.clone() }.away(), Nanos(15));
        assert_eq!(MachineProfile { gap: None, interrupt: None, ..machine }.away(), Nanos(2));
    }
}
