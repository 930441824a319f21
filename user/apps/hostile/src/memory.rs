//! The possessions of a hostile process: handles it was given, dead ones among them, and memory to
//! point at.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use diapason_abi::{CallNumber, Handle, Key, Kind, PAGE, decode_result};
use diapason_random::Random;
use diapason_rt::mailbox::Mailbox;
use diapason_rt::{Nanos, process};

const SLOTS: usize = 12;
const KINDS: usize = 6;

static HANDLES: [[AtomicU64; SLOTS]; KINDS] =
    [const { [const { AtomicU64::new(0) }; SLOTS] }; KINDS];
/// Where calls may read and write.
static mut SCRATCH: [u8; 2 * PAGE] = [0; 2 * PAGE];
/// The key of the process it supervises; 0: none.
static PAWN: AtomicU64 = AtomicU64::new(0);
/// The last page it was given.
static HEAP_END: AtomicU64 = AtomicU64::new(0);

/// Processes with a pawn: own number, the pawn, and where its faults are reported.
const PAWNS: [(u64, &str, &str); 2] =
    [(0, "pawn-a", "storm-a.faults"), (1, "pawn-b", "storm-b.faults")];

/// Finds out what process number `index` has.
pub fn open(index: u64) {
    if let Some((_, name, _)) = PAWNS.iter().find(|(who, ..)| *who == index) {
        PAWN.store(Key::new(name).0, Relaxed);
    }
}

/// Returns the key of its pawn.
pub fn pawn() -> Option<u64> {
    Some(PAWN.load(Relaxed)).filter(|key| *key != 0)
}

/// Before a pawn may live again, its report is read: the box has room for one.
pub fn bury_pawn(index: u64) {
    let own = PAWNS.iter().find(|(who, ..)| *who == index);
    if let Some((_, name, faults)) = own
        && let Ok(faults) = Mailbox::open(faults)
    {
        let _ = process::kill(Key::new(name));
        let _ = faults.receive(Nanos::ZERO);
    }
}

/// Returns a handle of this kind that it was given once.
pub fn handle(random: &mut Random, kind: Kind) -> Option<u64> {
    let slots = &HANDLES[kind as usize - 1];
    let at = random.below(SLOTS as u64) as usize;
    let mut given = (at..at + SLOTS).map(|at| slots[at % SLOTS].load(Relaxed));
    given.find(|handle| *handle != 0)
}

/// Takes note of what a call returned.
pub fn remember(random: &mut Random, call: CallNumber, result: u64) {
    use CallNumber as C;
    let Ok(value) = decode_result(result) else { return };
    match call {
        C::ThreadCreate
        | C::SemCreate
        | C::CvCreate
        | C::MboxCreate
        | C::TimerCreate
        | C::EventCreate
        | C::SetIsr
        | C::VcpuCreate => {
            let kind = Handle(value).kind_bits() as usize;
            if let Some(slots) = HANDLES.get(kind.wrapping_sub(1)) {
                slots[random.below(SLOTS as u64) as usize].store(value, Relaxed);
            }
        }
        C::MemAlloc => HEAP_END.store(value + PAGE as u64, Relaxed),
        _ => {}
    }
}

/// Memory of its own; sometimes so that what it points at goes beyond the end.
pub fn pointer(random: &mut Random) -> u64 {
    let end = HEAP_END.load(Relaxed);
    if end != 0 && random.one_in(32) {
        return end - random.below(PAGE as u64);
    }
    &raw const SCRATCH as u64 + random.below(PAGE as u64)
}
