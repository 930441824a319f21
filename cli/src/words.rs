//! Sentences for console lines: the half of the kernel's messages that the kernel does not carry.

use crate::console::Line;
use crate::duration;
use crate::names::Names;
use crate::outcome::StrayRow;
use diapason_abi::archive::{Absence, Refusal};
use diapason_abi::call::CallNumber;
use diapason_abi::fault::FaultCause;
use diapason_abi::key::SERVER;
use diapason_abi::record::{Confinement, Protection, Record};
use diapason_sim::{Misuse, Stray};

/// Causes of kernel paths from here on are interrupt vectors.
pub const VECTORS_FROM: u64 = 256;

/// Returns a line for people, with the time where the record has one.
#[must_use]
pub fn sentence(line: &Line, names: &Names) -> String {
    match line {
        Line::Record(record, words) => {
            let time = time_of(*record, words);
            printable(&stamped(time, &record_text(*record, words, names)))
        }
        Line::Log { process, text } => {
            let name = names.process(u64::from(*process));
            printable(&stamped(None, &format!("{name}: {text}")))
        }
        Line::Raw(text) => printable(text),
    }
}

pub(crate) fn stamped(time: Option<u64>, text: &str) -> String {
    match time {
        Some(ns) => format!("[{:>14}] {text}", duration::seconds(ns)),
        None => format!("{:16} {text}", ""),
    }
}

/// Returns the record's time, if its first word is one.
fn time_of(record: Record, words: &[u64]) -> Option<u64> {
    (record.fields().first() == Some(&"time")).then(|| words.first().copied()).flatten()
}

/// Control characters shown, not obeyed: a program must not be able to repaint the terminal.
fn printable(text: &str) -> String {
    let show = |c: char| if c.is_control() && c != '\t' { '\u{fffd}' } else { c };
    text.chars().map(show).collect()
}

/// Returns a record in words. Missing words read as zero.
fn record_text(record: Record, words: &[u64], names: &Names) -> String {
    let word = |index: usize| words.get(index).copied().unwrap_or(0);
    let process = |index: usize| names.process(word(index));
    match record {
        Record::Boot
        | Record::Cpu
        | Record::Memory
        | Record::Speculation
        | Record::Acpi
        | Record::Clock
        | Record::Archive => boot_text(record, &word),
        Record::Device => format!(
            "device {}: PCI function {}, {:04x}:{:04x}, registers at {:#x}",
            names.device(word(0)),
            pci_place(word(1)),
            word(2),
            word(3),
            word(4)
        ),
        Record::Absent => {
            format!("device {} is absent: {}", names.device(word(0)), absence(word(1)))
        }
        Record::Confined => confinement(word(0)).into(),
        Record::Stray => {
            let row = StrayRow::new(&[word(0), word(1), word(2), word(3)]);
            format!("{}; the machine stopped that", row.sentence(names))
        }
        Record::Refused => {
            format!("program of process {} refused: {}", process(0), refusal(word(1)))
        }
        Record::ArchiveRefused => format!("nothing can start: {}", refusal(word(0))),
        Record::Started if word(2) > 1 => {
            format!("process {} restarted (start {})", process(1), word(2))
        }
        Record::Started => format!("process {} started", process(1)),
        Record::Fault => {
            let what = fault((word(2), word(3)), (word(4), word(5)), names);
            format!("process {} ended: {what}", process(1))
        }
        Record::Ended => format!("process {} ended", process(1)),
        Record::Panic => panic_text(word(0), word(1)),
        Record::KernelFault => format!(
            "KERNEL FAULT: exception {}, error {:#x}, address {:#x}, instruction {:#x}",
            word(0),
            word(1),
            word(2),
            word(3)
        ),
        Record::Measured => format!("{} reports what it measured", process(0)),
        Record::MachineCheck => format!(
            "the hardware is broken: bank {} of the processor has status {:#x}, address {:#x}",
            word(0),
            word(1),
            word(2)
        ),
        Record::CoreStopped => stopped_core(word(0)),
        Record::ReportLost => {
            format!("a fault report about process {} was lost", process(0))
        }
        Record::Halted => "nothing is left that could run".into(),
        _ => final_text(record, &word, names),
    }
}

/// Bus, device and function, as other tools write them.
pub fn pci_place(place: u64) -> String {
    format!("{:02x}:{:02x}.{}", place >> 8, place >> 3 & 31, place & 7)
}

/// Returns why a device is absent.
fn absence(reason: u64) -> String {
    Absence::decode(reason).map_or_else(|| format!("reason {reason}"), |known| known.text().into())
}

/// Returns how far the machine confines the devices of the description.
pub fn confinement(state: u64) -> &'static str {
    match Confinement::decode(state) {
        Some(Confinement::Full) => {
            "devices are confined: they reach what their drivers are granted, and send only their \
             own interrupts"
        }
        Some(Confinement::Memory) => {
            "devices are confined: they reach what their drivers are granted; drivers are trusted \
             with interrupts, which this IOMMU does not check"
        }
        Some(Confinement::NoIommu) => "drivers are trusted: this machine has no IOMMU",
        Some(Confinement::Uncovered) => {
            "drivers are trusted: the IOMMU does not see which device of the description asks"
        }
        Some(Confinement::Unfit) => {
            "drivers are trusted: the IOMMU lacks something that the kernel needs"
        }
        Some(Confinement::Silent) => {
            "drivers are trusted: the IOMMU did not do what it was told in time"
        }
        None => "drivers are trusted: the kernel does not say why",
    }
}

/// Returns what the processor says about leaks by speculation.
fn speculation(known: u64, bits: u64) -> String {
    const FREE: [(u64, &str); 10] = [
        (0, "RDCL_NO"),
        (4, "SSB_NO"),
        (5, "MDS_NO"),
        (8, "TAA_NO"),
        (13, "SBDR_SSDP_NO"),
        (14, "FBSDP_NO"),
        (15, "PSDP_NO"),
        (20, "BHI_NO"),
        (26, "GDS_NO"),
        (27, "RFDS_NO"),
    ];
    let free = FREE.iter().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, name)| *name);
    let free: Vec<&str> = free.collect();
    match (known, free.as_slice()) {
        (0, _) => "the processor does not say which leaks by speculation it lacks".into(),
        (_, []) => "the processor says that it lacks no leak by speculation".into(),
        _ => format!("of leaks by speculation the processor says: {}", free.join(", ")),
    }
}

fn boot_text(record: Record, word: &dyn Fn(usize) -> u64) -> String {
    match record {
        Record::Speculation => speculation(word(0), word(1)),
        Record::Boot => format!(
            "Diapason kernel (records version {}): {} bytes of code, {} of constants, \
             {} of data, {} zeroed",
            word(0),
            word(1),
            word(2),
            word(3),
            word(4)
        ),
        Record::Cpu => format!(
            "processor offers {}; switched on {}",
            protections(word(0)),
            protections(word(1))
        ),
        Record::Memory => format!(
            "memory: {} KiB usable, {} KiB free from {:#x}",
            word(0) / 1024,
            word(2) / 1024,
            word(1)
        ),
        Record::Acpi => format!(
            "ACPI tables from {:#x}: {}, {}, {}",
            word(0),
            counted(word(1), "processor"),
            counted(word(2), "I/O APIC"),
            if word(3) == 0 { "no HPET".into() } else { format!("HPET at {:#x}", word(3)) }
        ),
        Record::Clock => format!(
            "clock: counter {} kHz, timer {} kHz, {}",
            word(0),
            word(1),
            if word(2) == 1 { "by deadline" } else { "one-shot" }
        ),
        _ => format!(
            "archive: {}, {}, {}, {}, {}, {}",
            plural(word(0), "process", "processes"),
            counted(word(1), "semaphore"),
            counted(word(2), "condition"),
            plural(word(3), "mailbox", "mailboxes"),
            counted(word(4), "segment"),
            counted(word(5), "device")
        ),
    }
}

/// Lines of a process that found no room.
fn lines_lost(word: &dyn Fn(usize) -> u64, names: &Names) -> String {
    let (process, lines) = (names.process(word(0)), counted(word(1), "line"));
    format!("process {process} wrote more than its share of the console: {lines} lost")
}

/// Returns the tables at the end, in words, for a reader of the raw console.
fn final_text(record: Record, word: &dyn Fn(usize) -> u64, names: &Names) -> String {
    match record {
        Record::Thread => format!(
            "thread {}.{}: {} of CPU, {}, {} missed, {} skipped, longest response {}",
            names.process(word(0)),
            crate::names::thread(word(2), word(1)),
            duration::human(word(3)),
            counted(word(4), "job"),
            word(5),
            word(7),
            duration::human(word(6))
        ),
        Record::Vcpu => format!(
            "VCPU #{}: {} of its budgets, {} in the background; waited {} for budget, used one up \
             {} late, by {} too much; list full {}, {} in a period",
            word(0),
            duration::human(word(1)),
            duration::human(word(2)),
            counted(word(3), "time"),
            duration::human(word(5)),
            duration::human(word(4)),
            counted(word(6), "time"),
            counted(word(7), "wake-up")
        ),
        Record::VcpuTerms => vcpu_terms(word, names),
        Record::Irq => format!(
            "device {}: {}, {}",
            names.device(word(0)),
            counted(word(1), "interrupt"),
            match word(2) {
                u64::MAX => "never two".into(),
                gap => format!("two within {}", duration::human(gap)),
            }
        ),
        Record::Job | Record::KernelTime => cost(record, word, names),
        Record::CallPath => format!(
            "{}: longest {} instructions, or {} to another thread",
            path_cause(word(0)),
            word(1),
            word(2)
        ),
        Record::Process => format!(
            "process {}: {}, {}, {} of heap",
            names.process(word(0)),
            counted(word(1), "start"),
            counted(word(2), "fault"),
            counted(word(3), "page")
        ),
        Record::End => format!(
            "end: idle {}, {} kernel entries, {} CR3 writes, {} MSR writes, {} device accesses",
            duration::human(word(1)),
            word(2),
            word(3),
            word(4),
            word(5)
        ),
        Record::LongestPath => {
            format!("longest kernel path: {} instructions, {}", word(0), path_cause(word(1)))
        }
        Record::ConsoleLost => {
            format!("{} had no room on the console", plural(word(0), "record", "records"))
        }
        Record::LinesLost => lines_lost(word, names),
        Record::Recorded => {
            format!("flight recorder: {} entries, {} lost", word(0), word(1))
        }
        _ => record.name().into(),
    }
}

/// Returns the cost of jobs, or of the kernel's paths, in words.
fn cost(record: Record, word: &dyn Fn(usize) -> u64, names: &Names) -> String {
    if record == Record::Job {
        return format!(
            "thread {}.{}: a job used {} at most, on VCPU #{}",
            names.process(word(0)),
            word(1),
            duration::human(word(3)),
            word(2)
        );
    }
    format!(
        "kernel, cause {}: {}, {} instructions, longest {}, or {} to another thread",
        word(0),
        counted(word(1), "path"),
        word(2),
        word(3),
        word(4)
    )
}

fn vcpu_terms(word: &dyn Fn(usize) -> u64, names: &Names) -> String {
    let maker = match word(1) {
        u64::MAX => String::new(),
        process => format!(", made by {}", names.process(process)),
    };
    let (budget, period) = (duration::human(word(2)), duration::human(word(3)));
    let terms = if word(4) == 0 {
        format!("{budget} in {period}")
    } else {
        let wait = duration::human(word(6));
        format!("I/O, {} ppm, {budget} for {period}, waited {wait} for a grant", word(4))
    };
    format!("VCPU #{}{maker}: {terms}; changed {}", word(0), counted(word(7), "time"))
}

/// Returns the deed by which a thread ended its process.
#[must_use]
pub fn fault(
    (thread, cause): (u64, u64),
    (address, instruction): (u64, u64),
    names: &Names,
) -> String {
    let known = u8::try_from(cause).ok().and_then(FaultCause::decode);
    let name = names.of_key(address).filter(|_| known == Some(FaultCause::BadGrant));
    let what = match (name, known) {
        (Some(name), _) => {
            let remedy = remedy(name);
            format!("used `{name}`, which its description does not grant: {remedy}")
        }
        (None, Some(cause)) => format!("{} at {address:#x}", cause.text()),
        (None, None) => format!("did something unknown ({cause}) at {address:#x}"),
    };
    format!("thread {thread} {what} (instruction {instruction:#x})")
}

/// Returns what grants an object of this name to a process.
fn remedy(name: &str) -> String {
    if let Some(mailbox) = name.strip_suffix(SERVER) {
        return format!("only the `server` of the `[[mailbox]]` `{mailbox}` serves it");
    }
    // The channels of a host are numbered from 0: `can0`.
    let channel = name.strip_prefix("can").map(|rest| rest.split('.').next().unwrap_or(rest));
    match channel.and_then(|number| number.parse::<u8>().ok()) {
        Some(number) => format!("add a `[[pipe]]` for channel {number}"),
        None => String::from("add it to `uses` of the process"),
    }
}

/// Returns why the kernel was entered, for the longest path.
#[must_use]
pub fn path_cause(cause: u64) -> String {
    // A program can call any number, so what is no vector is a call again.
    if let Some(vector @ 0..=255) = cause.checked_sub(VECTORS_FROM) {
        return format!("interrupt vector {vector}");
    }
    let call = CallNumber::decode(cause).map(CallNumber::name);
    call.map_or_else(|| format!("call {cause}"), |name| format!("call {name}"))
}

/// A device used memory that it must not, or was given it.
#[must_use]
pub fn stray(device: &str, stray: &Stray) -> String {
    let what = match stray.misuse {
        None => "used memory that nobody has",
        Some(Misuse::GivenBack) => "wrote to memory that its driver has back",
        Some(Misuse::LentTwice) => "was given memory that another of its transfers still has",
    };
    format!("device {device} {what}, at {:#x}", stray.address)
}

/// A kernel panic: the kernel knows only a hash of its source file's name.
#[must_use]
pub fn panic_text(file: u64, line: u64) -> String {
    format!("KERNEL PANIC in the source file with hash {file:#x}, line {line}")
}

/// A core that did not say how its run ended.
#[must_use]
pub fn stopped_core(core: u64) -> String {
    format!("core {core} has stopped without a word")
}

/// Returns why a program or an archive was refused.
#[must_use]
pub fn refusal(number: u64) -> String {
    let known = Refusal::ALL.iter().find(|reason| **reason as u64 == number);
    known.map_or_else(|| format!("unknown reason {number}"), |reason| reason.text().into())
}

fn protections(bits: u64) -> String {
    const NAMES: [(Protection, &str); 8] = [
        (Protection::NoExecute, "NX"),
        (Protection::Smep, "SMEP"),
        (Protection::Smap, "SMAP"),
        (Protection::Umip, "UMIP"),
        (Protection::GlobalPages, "global pages"),
        (Protection::TscDeadline, "TSC deadline"),
        (Protection::InvariantTsc, "invariant TSC"),
        (Protection::MachineCheck, "machine check"),
    ];
    let on = NAMES.iter().filter(|(bit, _)| bits >> (*bit as u8) & 1 == 1);
    let list: Vec<&str> = on.map(|(_, name)| *name).collect();
    if list.is_empty() { "nothing".into() } else { list.join(", ") }
}

fn counted(count: u64, thing: &str) -> String {
    plural(count, thing, &format!("{thing}s"))
}

fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        Names::new(vec!["engine".into(), "diag".into()])
    }

    fn read(text: &str) -> String {
        sentence(&Line::parse(text.as_bytes()), &names())
    }

    #[test]
    fn a_path_is_named_by_its_call_or_vector() {
        assert_eq!(path_cause(0), "call Null");
        assert_eq!(path_cause(256 + 32), "interrupt vector 32");
        assert_eq!(path_cause(u64::MAX >> 1), "call 9223372036854775807");
    }

    #[test]
    fn a_fault_reads_like_a_sentence() {
        assert_eq!(
            read("~a bc614e 1 0 2 dead0000 200001234"),
            "[   0.012345678] process diag ended: thread 0 wrote outside its memory at 0xdead0000 \
             (instruction 0x200001234)"
        );
    }

    #[test]
    fn the_boot_log_reads_like_sentences() {
        assert_eq!(
            read("~2 7 1"),
            format!("{:16} processor offers NX, SMEP, SMAP; switched on NX", "")
        );
        assert!(read("~4 f59d0 1 1 0").ends_with("1 processor, 1 I/O APIC, no HPET"));
        assert!(
            read("~6 1 2 0 1 0 0").contains("1 process, 2 semaphores, 0 conditions, 1 mailbox")
        );
        assert!(read("~7 1 7").ends_with("diag refused: the program is damaged (checksum)"));
        assert!(read("~11 bb8 14").ends_with("3000 instructions, call MboxSend"));
        assert!(read("~11 1 120").ends_with("interrupt vector 32"));
    }

    #[test]
    fn leaks_and_confined_devices_are_told() {
        let said = |line: &str| read(line).trim_start().to_string();
        assert_eq!(said("~26 1 21"), "of leaks by speculation the processor says: RDCL_NO, MDS_NO");
        assert!(said("~26 0 0").contains("does not say"));
        assert!(said("~26 1 2").contains("lacks no leak"));
        assert_eq!(said("~24 2 0"), "drivers are trusted: this machine has no IOMMU");
        assert!(said("~24 0 1").starts_with("devices are confined"));
        assert!(said("~24 63 0").starts_with("drivers are trusted"));
        let stray = said("~25 3e8 0 200000 8000000500000018");
        assert!(stray.ends_with("does not grant; the machine stopped that"), "{stray}");
    }

    #[test]
    fn restarts_are_told_from_starts() {
        assert_eq!(read("~9 3b9aca00 1 1"), "[   1.000000000] process diag started");
        assert_eq!(read("~9 3b9aca00 1 3"), "[   1.000000000] process diag restarted (start 3)");
    }

    #[test]
    fn the_tables_of_vcpus_and_devices_read_like_sentences() {
        let said = |line: &str| read(line).trim_start().to_string();
        assert_eq!(
            said("~16 0 5f5e100 3e8 1 64 f4240 0 2"),
            "VCPU #0: 100.000 ms of its budgets, 1.000 us in the background; waited 1 time for \
             budget, used one up 1.000 ms late, by 100 ns too much; list full 0 times, 2 wake-ups \
             in a period"
        );
        assert_eq!(
            said("~17 2 1 7a120 1312d00 0 1312d00 0 1"),
            "VCPU #2, made by diag: 500.000 us in 20.000 ms; changed 1 time"
        );
        assert_eq!(
            said("~17 1 ffffffffffffffff 3d090 989680 61a8 989680 1e8480 0"),
            "VCPU #1: I/O, 25000 ppm, 250.000 us for 10.000 ms, waited 2.000 ms for a grant; \
             changed 0 times"
        );
        assert_eq!(said("~18 0 14 f4628"), "device #0: 20 interrupts, two within 1.001 ms");
        let once = "~18 0 1 ffffffffffffffff";
        assert_eq!(said(once), "device #0: 1 interrupt, never two");
    }

    #[test]
    fn an_object_that_is_not_granted_has_a_name_and_a_remedy() {
        let text = "[system]\nname = \"s\"\n[[mailbox]]\nname = \"box\"\nmessages = 4\n\
                    [[mailbox]]\nname = \"asks\"\nserver = \"p\"\n\
                    [[process]]\nname = \"p\"\npriority = 1\nuses = [\"asks\"]\n";
        let system = diapason_system::parse("s", text).unwrap_or_else(|wrong| panic!("{wrong}"));
        let names = Names::of(&system);
        let said = |name: &str, cause: FaultCause| {
            fault((0, cause as u64), (diapason_abi::Key::new(name).0, 0x10), &names)
        };
        for (name, remedy) in [
            ("can2", "add a `[[pipe]]` for channel 2"),
            ("can3.ready", "add a `[[pipe]]` for channel 3"),
            ("box", "add it to `uses` of the process"),
            ("asks.server", "only the `server` of the `[[mailbox]]` `asks` serves it"),
        ] {
            let expected = format!(
                "thread 0 used `{name}`, which its description does not grant: {remedy} \
                 (instruction 0x10)"
            );
            assert_eq!(said(name, FaultCause::BadGrant), expected);
        }
        let unknown = said("nobody's", FaultCause::BadGrant);
        assert!(unknown.contains("named something its manifest does not grant at 0x"), "{unknown}");
        assert!(said("can2", FaultCause::BadAddress).contains(" at 0x"));
    }

    #[test]
    fn programs_cannot_paint_the_terminal() {
        assert_eq!(read("=0 \x1b[2Jgone"), format!("{:16} engine: \u{fffd}[2Jgone", ""));
    }

    #[test]
    fn every_record_has_words() {
        for record in Record::ALL {
            let words = vec![1; record.fields().len()];
            let text = sentence(&Line::Record(*record, words), &names());
            assert!(!text.ends_with(record.name()), "{text}");
        }
    }
}
