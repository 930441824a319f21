//! Arguments for a call: mostly such as a program might pass, some stale, a few wild.

use crate::memory::{handle, pawn, pointer};
use diapason_abi::call::{MUTEX, NO_HINT};
use diapason_abi::key::pack_name;
use diapason_abi::{CallNumber, Key, Kind, MESSAGE_BYTES, layout};
use diapason_random::Random;
use diapason_rt::{start, time};

const SEMAPHORES: [&str; 3] = ["mutex-0", "mutex-1", "count"];
const CONDITIONS: [&str; 2] = ["news-0", "news-1"];
const MAILBOXES: [&str; 2] = ["box-0", "box-1"];
const SEGMENTS: [&str; 2] = ["memory-0", "memory-1"];
const DEVICE: &str = "screen";

/// One word in so many is wild.
const WILD: u64 = 256;
/// Longest wait, in ns, but for those without an end.
const WAIT_NS: u64 = 120_000;

/// Words for `call`; none if there is nothing sensible to call it with yet.
pub fn words(random: &mut Random, call: CallNumber, ceiling: u64) -> Option<[u64; 5]> {
    use CallNumber as C;
    let r = random;
    let mut words = match call {
        C::Null | C::Yield | C::JobWait | C::TimerCreate | C::EventCreate => [0; 5],
        C::ThreadExit | C::Fail => [r.bits(), 0, 0, 0, 0],
        C::ThreadCreate => {
            let vcpu = if r.one_in(3) { handle(r, Kind::Vcpu).unwrap_or(0) } else { 0 };
            [entry(r), r.bits(), r.below(ceiling + 1), pack_name("storm"), vcpu]
        }
        C::ThreadJoin => [handle(r, Kind::Thread)?, deadline(r), 0, 0, 0],
        C::ThreadDetach => [handle(r, Kind::Thread)?, 0, 0, 0, 0],
        C::SleepUntil => [deadline(r), 0, 0, 0, 0],
        C::JobsStart => [moment(r), 1 + r.below(WAIT_NS), r.below(WAIT_NS), 0, 0],
        C::SemCreate => [key(r, &SEMAPHORES), initial(r), 0, 0, 0],
        C::SemDelete | C::SemTryLock | C::SemUnlock => [handle(r, Kind::Semaphore)?, 0, 0, 0, 0],
        C::SemLock => [handle(r, Kind::Semaphore)?, deadline(r), 0, 0, 0],
        C::CvCreate => [key(r, &CONDITIONS), 0, 0, 0, 0],
        C::CvDelete => [handle(r, Kind::Condition)?, 0, 0, 0, 0],
        C::CvWait => [handle(r, Kind::Condition)?, handle(r, Kind::Semaphore)?, deadline(r), 0, 0],
        C::CvSignal => [handle(r, Kind::Condition)?, r.below(12), 0, 0, 0],
        C::MboxCreate => [declared(r, &MAILBOXES), event_or_none(r), 0, 0, 0],
        C::MboxDelete => [handle(r, Kind::Mailbox)?, 0, 0, 0, 0],
        C::MboxSend => {
            let length = r.below(MESSAGE_BYTES as u64 + 1);
            [handle(r, Kind::Mailbox)?, pointer(r), length, r.below(4), deadline(r)]
        }
        C::MboxReceive => [handle(r, Kind::Mailbox)?, pointer(r), deadline(r), 0, 0],
        C::MboxCall => {
            let (send, receive) = (handle(r, Kind::Mailbox)?, handle(r, Kind::Mailbox)?);
            if send == receive {
                return None;
            }
            let what = r.below(MESSAGE_BYTES as u64 + 1) << 32 | r.below(4);
            [send, pointer(r), what, receive, deadline(r)]
        }
        C::ShmAttach | C::ShmDetach => [declared(r, &SEGMENTS), 0, 0, 0, 0],
        C::ShmBus => [Key::new(SEGMENTS[1]).0, 0, 0, 0, 0],
        C::MemAlloc => [1 + r.below(4), 0, 0, 0, 0],
        C::TimerStart => [handle(r, Kind::Event)?, deadline(r), period(r), 0, 0],
        C::EventWait => [handle(r, Kind::Event)?, deadline(r), 0, 0, 0],
        C::EventDelete => [handle(r, Kind::Event)?, 0, 0, 0, 0],
        C::MapDevice | C::SetIsr => [Key::new(DEVICE).0, 0, 0, 0, 0],
        C::ProcCreate => {
            let receives = if r.one_in(2) { handle(r, Kind::Mailbox) } else { None };
            [pawn()?, receives.unwrap_or(0), pointer(r), deadline(r), 0]
        }
        C::ProcKill => [pawn()?, 0, 0, 0, 0],
        C::ReadSlow => [pointer(r), pointer(r), r.below(4097), 0, 0],
        C::Log => [pointer(r), r.below(17), 0, 0, 0],
        C::Count => [if r.one_in(16) { r.below(8) } else { 3 }, r.bits(), 0, 0, 0],
        C::VcpuCreate => [Key::PRIVATE.0, budget(r), server_period(r), r.below(10), r.below(2)],
        C::VcpuSet => [handle(r, Kind::Vcpu)?, budget(r), server_period(r), 0, 0],
        C::VcpuDelete => [handle(r, Kind::Vcpu)?, 0, 0, 0, 0],
        C::VcpuFit => [server_period(r), 0, 0, 0, 0],
        // A device, but no doorbell: the core's own storm has two.
        C::Ring => [Key::new(DEVICE).0, 0, 0, 0, 0],
    };
    if let Some(at) = call.hint_word() {
        let semaphore = if r.one_in(3) { handle(r, Kind::Semaphore) } else { None };
        words[at] = semaphore.unwrap_or(NO_HINT);
    }
    for word in &mut words {
        if r.one_in(WILD * 5) {
            *word = wild(r);
        }
    }
    Some(words)
}

/// Returns any value at all.
pub fn wild(r: &mut Random) -> u64 {
    let process = r.below(8) as u16;
    match r.below(12) {
        0 => 0,
        1 => u64::MAX,
        2 => u64::MAX >> 1,
        3 => r.bits(),
        4 => r.below(70),
        5 => r.below(1 << 32),
        6 => layout::base(process) + r.below(layout::WINDOW),
        7 => start::window() + layout::STACKS + r.below(layout::STACK_STRIDE),
        8 => 0x8000_0000_0000 + r.below(64),
        9 => 0xffff_8000_0000_0000 | r.bits(),
        10 => r.below(8) << 48 | r.below(4) << 16 | r.below(64),
        _ => start::window() + layout::WINDOW - r.below(64),
    }
}

fn entry(r: &mut Random) -> u64 {
    if r.one_in(64) { wild(r) } else { crate::begin as *const () as u64 }
}

fn key(r: &mut Random, names: &[&str]) -> u64 {
    if r.one_in(2) { Key::PRIVATE.0 } else { declared(r, names) }
}

fn declared(r: &mut Random, names: &[&str]) -> u64 {
    Key::new(r.pick(names)).0
}

fn initial(r: &mut Random) -> u64 {
    if r.one_in(3) { r.below(3) } else { MUTEX }
}

fn event_or_none(r: &mut Random) -> u64 {
    if r.one_in(2) { 0 } else { handle(r, Kind::Event).unwrap_or(0) }
}

fn moment(r: &mut Random) -> u64 {
    time::now().0 + r.below(WAIT_NS)
}

/// Mostly soon, often at once, seldom long ago or never.
fn deadline(r: &mut Random) -> u64 {
    match r.below(64) {
        0..20 => 0,
        20 => u64::MAX,
        21 => r.below(1 << 20),
        22 => r.bits(),
        _ => moment(r),
    }
}

/// Draws a period that is longer than that of the VCPUs that must not be disturbed.
fn server_period(r: &mut Random) -> u64 {
    1_000_001 + r.below(5_000_000)
}

fn budget(r: &mut Random) -> u64 {
    1_000 + r.below(300_000)
}

fn period(r: &mut Random) -> u64 {
    match r.below(8) {
        0 => 0,
        1 => 1 + r.below(100),
        2 => r.bits(),
        _ => 1 + r.below(WAIT_NS),
    }
}
