//! Every forbidden thing, one per life of a process, beside a neighbour that must not notice.

use super::storm::undisturbed;
use super::{Observed, QemuTest};
use diapason::console::Line;
use diapason::qemu::MachineEnding;
use diapason_abi::FaultCause::{self, *};
use diapason_abi::record::Record;
use diapason_abi::{CallNumber, Key, layout};
use std::collections::BTreeMap;

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[QemuTest::new(NAME, SYSTEM, each_deed)];

const NAME: &str = "each forbidden thing ends its process and nothing else";
pub const SYSTEM: &str = "tests/systems/faults.toml";

/// The victim's place in the description, and so where it lives.
pub const VICTIM: u16 = 2;
const NEIGHBOUR: u16 = 0;

/// The expected result of a deed.
struct Expected {
    /// One of these causes; none of them: it does no harm.
    causes: Vec<FaultCause>,
    /// The deed may also do no harm: not every processor notices.
    harmless: bool,
    thread: u64,
    address: Option<u64>,
    /// The instruction is at the address: it could not be fetched.
    fetched: bool,
}

impl Expected {
    fn fault(cause: FaultCause) -> Expected {
        let harmless = false;
        Expected { causes: vec![cause], harmless, thread: 0, address: None, fetched: false }
    }

    fn harmless() -> Expected {
        Expected { causes: Vec::new(), harmless: true, ..Expected::fault(Panic) }
    }

    fn at(self, address: u64) -> Expected {
        Expected { address: Some(address), ..self }
    }

    fn fetch(self) -> Expected {
        Expected { fetched: true, ..self }
    }

    fn or(mut self, cause: FaultCause) -> Expected {
        self.causes.push(cause);
        self
    }

    fn or_harmless(self) -> Expected {
        Expected { harmless: true, ..self }
    }
}

type Table = BTreeMap<String, Expected>;

/// Everything the victim does.
fn expected() -> Table {
    let mut table = Table::new();
    forbidden_regions(&mut table);
    own_regions(&mut table);
    instructions(&mut table);
    flags(&mut table);
    handles(&mut table);
    pointers(&mut table);
    keys(&mut table);
    arguments(&mut table);
    threads(&mut table);
    table
}

fn forbidden_regions(table: &mut Table) {
    let (own, other) = (layout::base(VICTIM), layout::base(NEIGHBOUR));
    let regions = [
        ("null", 0),
        ("kernel", 0x10_0000),
        ("interrupt controller", 0xfee0_0000),
        ("last of the kernel", 0xffff_fff8),
        ("code of the neighbour", other),
        ("stack of the neighbour", layout::stack_top(NEIGHBOUR, 0) - 64),
        ("heap of the neighbour", other + layout::HEAP),
        ("segment of the neighbour", layout::segment(NEIGHBOUR, 0)),
        ("guard", own + layout::STACKS),
        ("heap it does not have", own + layout::HEAP + layout::SLOT - 8),
        ("segment it does not have", own + layout::SEGMENTS + layout::SLOT),
        ("device it does not have", own + layout::DEVICES + layout::SLOT),
        ("messages of its device", own + layout::DEVICES + 0x3000),
        ("last of its window", own + layout::WINDOW - 8),
        ("behind its window", own + layout::WINDOW),
        ("higher half", 0xffff_8000_0000_0000),
    ];
    for (name, address) in regions {
        for (way, cause) in [("read", Read), ("write", Write)] {
            let cause = if name == "guard" { StackOverflow } else { cause };
            table.insert(format!("{way} {name}"), Expected::fault(cause).at(address));
        }
        let execute = Expected::fault(Execute).at(address).fetch();
        table.insert(format!("execute {name}"), execute);
    }
    for way in ["read", "write", "execute"] {
        table.insert(format!("{way} non-canonical"), Expected::fault(Privilege));
    }
}

fn own_regions(table: &mut Table) {
    for name in ["code", "constants", "pristine data", "information page"] {
        table.insert(format!("read {name}"), Expected::harmless());
        table.insert(format!("write {name}"), Expected::fault(Write));
    }
    for name in ["constants", "data", "pristine data", "information page", "stack", "heap"] {
        table.insert(format!("execute {name}"), Expected::fault(Execute).fetch());
    }
    for way in ["read", "write"] {
        table.insert(format!("{way} data"), Expected::harmless());
    }
}

fn instructions(table: &mut Table) {
    let privileged = "hlt,cli,sti,read cr0,write cr3,write cr4,read dr7,wrmsr,rdmsr,rdpmc,in,out,\
        lgdt,lidt,ltr,lldt,lmsw,clts,invlpg,wbinvd,swapgs,sysretq,int 0x80,int of the timer,\
        int of a page fault,kernel data segment,far jump to the kernel,\
        far jump to 32 bits of Linux";
    let rows = [
        (Privilege, privileged),
        (Divide, "divide by zero,divide too large"),
        (Instruction, "ud2,stac,xgetbv"),
        (Debug, "int3,trap flag,trap flag at a call"),
        (FloatingPoint, "x87 exception"),
    ];
    for (cause, names) in rows {
        for name in names.split(',') {
            table.insert(name.into(), Expected::fault(cause));
        }
    }
    // The makers of processors disagree.
    table.insert("sysenter".into(), Expected::fault(Privilege).or(Instruction));
    // There is no such segment.
    table.insert("far jump to 32 bits".into(), Expected::fault(Privilege));
}

fn flags(table: &mut Table) {
    for name in ["direction flag", "nested task flag", "segment registers"] {
        table.insert(name.into(), Expected::harmless());
    }
    for place in ["into the kernel", "nowhere"] {
        for when in ["a call", "an interrupt"] {
            table.insert(format!("stack pointer {place} at {when}"), Expected::harmless());
        }
    }
    // The emulator does not raise these two.
    table.insert("alignment flag".into(), Expected::fault(Alignment).or_harmless());
    table.insert("sse exception".into(), Expected::fault(FloatingPoint).or_harmless());
}

fn handles(table: &mut Table) {
    let calls = "ThreadJoin,ThreadDetach,SemDelete,SemLock,SemTryLock,SemUnlock,CvDelete,CvWait,\
        CvSignal,MboxDelete,MboxSend,MboxReceive,MboxCall,\
        TimerStart,EventWait,EventDelete";
    for call in calls.split(',') {
        let mut wild = |name: &str, address: Option<u64>| {
            let bad = Expected { address, ..Expected::fault(BadHandle) };
            table.insert(format!("handle {call}, {name}"), bad);
        };
        wild("zero", Some(0));
        wild("all ones", Some(u64::MAX));
        wild("of another kind", None);
        wild("of the neighbour", None);
        wild("of the future", None);
    }
    for name in ["CvWait, its mutex", "MboxCreate, its event"] {
        table.insert(format!("handle {name}"), Expected::fault(BadHandle).at(u64::MAX));
    }
}

fn pointers(table: &mut Table) {
    let own = layout::base(VICTIM);
    let places = [
        ("null", 0),
        ("kernel", 0x10_0000),
        ("neighbour", layout::stack_top(NEIGHBOUR, 0) - 64),
        ("higher half", 0xffff_8000_0000_0000),
        ("non-canonical", 0x8000_0000_0000),
        ("guard", own + layout::STACKS),
        ("registers of its device", own + layout::DEVICES),
        ("information page", own + layout::INFO),
        ("end of the heap", own + layout::HEAP + 4092),
        ("end of the window", own + layout::WINDOW - 4),
    ];
    for call in ["MboxSend", "MboxReceive", "delivery", "ReadSlow to", "ReadSlow from", "Log"] {
        for (name, address) in places {
            let bad = Expected::fault(BadAddress);
            // A copy has two addresses; the report has room for one.
            let bad = if call == "ReadSlow to" { bad } else { bad.at(address) };
            table.insert(format!("pointer {call}, {name}"), bad);
        }
    }
}

fn keys(table: &mut Table) {
    let calls = "SemCreate,CvCreate,MboxCreate,ShmAttach,ShmDetach,ShmBus,MapDevice,SetIsr,\
                 ProcCreate,ProcKill";
    let names = [
        ("unknown name", "nothing has this name"),
        ("lock of the neighbour", "its-lock"),
        ("condition of the neighbour", "its-news"),
        ("mailbox of the neighbour", "its-box"),
        ("segment of the neighbour", "its-memory"),
        ("device of the neighbour", "its-device"),
        ("the neighbour", "neighbour"),
    ];
    for call in calls.split(',') {
        for (name, text) in names {
            let refused = Expected::fault(BadGrant).at(Key::new(text).0);
            table.insert(format!("key {call}, {name}"), refused);
        }
    }
}

fn arguments(table: &mut Table) {
    let beyond = CallNumber::ALL.len() as u64;
    for (name, number) in
        [("beyond the last", beyond), ("of all ones", u64::MAX), ("beyond a byte", 256)]
    {
        table.insert(format!("call {name}"), Expected::fault(BadCall).at(number));
    }
    let arguments = [
        ("ThreadCreate above its ceiling", 11),
        ("ThreadCreate above all", u64::MAX),
        ("MemAlloc none", 0),
        ("MemAlloc many", 5),
        ("JobsStart without period", 0),
        ("JobWait before JobsStart", 0),
        ("Log long", 113),
        ("MboxSend long", 65),
        ("ReadSlow long", 4097),
    ];
    for (name, argument) in arguments {
        table.insert(format!("argument {name}"), Expected::fault(BadArgument).at(argument));
    }
    table.insert("counter of the machine".into(), Expected::fault(BadGrant).at(0));
    table.insert("quota".into(), Expected::fault(Quota).at(1));
    table.insert("panic".into(), Expected::fault(Panic));
}

fn threads(table: &mut Table) {
    let second = |expected| Expected { thread: 1, ..expected };
    table.insert("stack overflow".into(), Expected::fault(StackOverflow));
    table.insert("stack overflow of thread 1".into(), second(Expected::fault(StackOverflow)));
    table.insert("jump of thread 1".into(), second(Expected::fault(Privilege)));
    for place in ["at null", "in the kernel", "nowhere", "in the neighbour", "in data"] {
        let nothing_there = second(Expected::fault(Execute).fetch());
        table.insert(format!("thread 1 begins {place}"), nothing_there);
    }
}

/// A deed, and the words of the fault's record, or none if it did no harm.
type Deed = (String, Option<Vec<u64>>);

/// Returns the result of each deed.
fn observed(boot: &Observed) -> Result<Vec<Deed>, String> {
    let mut deeds: Vec<Deed> = Vec::new();
    let mut current: Option<String> = None;
    for line in &boot.lines {
        match line {
            Line::Log { process: VICTIM, text } => {
                if let Some(name) = text.strip_prefix("deed ") {
                    if let Some(left) = current.replace(name.into()) {
                        return Err(format!("nothing came of `{left}`"));
                    }
                } else if let Some(name) = text.strip_prefix("survived ") {
                    current = None;
                    deeds.push((name.into(), None));
                }
            }
            Line::Record(Record::Fault, words) if words.get(1) == Some(&u64::from(VICTIM)) => {
                let name = current.take().ok_or("a fault without a deed")?;
                deeds.push((name, Some(words.clone())));
            }
            _ => {}
        }
    }
    Ok(deeds)
}

/// Checks the record of a deed. `words`: time, process, thread, cause, address, instruction.
fn compare(name: &str, expected: &Expected, words: Option<&[u64]>) -> Result<(), String> {
    let Some(words) = words else {
        return if expected.harmless { Ok(()) } else { Err(format!("`{name}` did no harm")) };
    };
    let &[_, _, thread, cause, address, instruction] = words else {
        return Err("a record of a fault has six words".into());
    };
    let cause = u8::try_from(cause).ok().and_then(FaultCause::decode);
    let wrong = |what: &str| Err(format!("`{name}`: {what} of {cause:?} in {words:x?}"));
    if !cause.is_some_and(|cause| expected.causes.contains(&cause)) {
        return wrong("cause");
    }
    if thread != expected.thread {
        return wrong("thread");
    }
    if expected.address.is_some_and(|expected| expected != address) {
        return wrong("address");
    }
    // Jumps that cannot be made are reported before or after them, deliveries outside the program.
    // The host does not tell where a program left 64-bit code.
    let free = name.ends_with("non-canonical")
        || ["jump of thread 1", "sysenter", "far jump to 32 bits of Linux"].contains(&name);
    let code = layout::base(VICTIM)..layout::base(VICTIM) + layout::DATA_IMAGE;
    let known = if expected.fetched { instruction == address } else { code.contains(&instruction) };
    if !known && !free && !name.starts_with("pointer delivery") {
        return wrong("instruction");
    }
    Ok(())
}

/// The deeds whose result depends on the host's processor state: it allows some that ours forbids,
/// or the other way round.
const OF_THE_HOST: [&str; 3] = ["xgetbv", "far jump to 32 bits", "trap flag at a call"];

fn each_deed(boots: &[Observed]) -> Result<(), String> {
    each_deed_but(&[], boots)
}

/// Checks each deed of a simulated boot.
pub fn each_deed_natively(boot: &Observed) -> Result<(), String> {
    each_deed_but(&OF_THE_HOST, std::slice::from_ref(boot))
}

fn each_deed_but(except: &[&str], boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    if boot.run.ending != MachineEnding::Finished {
        return Err("the machine did not reach its horizon".into());
    }
    boot.logged("victim", "all deeds done")?;
    let (mut expected, mut wrong) = (expected(), Vec::new());
    let (deeds, mut faults) = (observed(boot)?, 0);
    for (name, words) in &deeds {
        faults += u64::from(words.is_some());
        match expected.remove(name) {
            Some(_) if except.contains(&name.as_str()) => {}
            Some(expected) => wrong.extend(compare(name, &expected, words.as_deref()).err()),
            None => wrong.push(format!("`{name}` is not in this test's table")),
        }
    }
    wrong.extend(expected.keys().map(|name| format!("`{name}` was not done")));
    if !wrong.is_empty() {
        return Err(wrong.join("\n"));
    }
    let (victim, supervisor) = (boot.process("victim")?, boot.process("supervisor")?);
    if (victim.faults, victim.restarts(), supervisor.faults) != (faults, faults, 0) {
        return Err(format!("{faults} faults, but {victim:?} and {supervisor:?}"));
    }
    println!("{} deeds, {faults} faults", deeds.len());
    undisturbed(boot)
}
