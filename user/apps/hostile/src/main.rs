//! A hostile process: random system calls from all of its threads until something ends it.
//!
//! Arguments: seed, its number, its priority. Each life goes on with another part of the seed's
//! sequence; the warden or a supervisor starts the next.

#![no_std]
#![no_main]

mod arguments;
mod memory;

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use diapason_abi::CallNumber;
use diapason_hostile::{CallTally, PROCESSES};
use diapason_random::Random;
use diapason_rt::sys::any_call;
use diapason_rt::{Arguments, entry};

entry!(main);

static INDEX: AtomicU64 = AtomicU64::new(0);
static CEILING: AtomicU64 = AtomicU64::new(0);
static TALLY: AtomicU64 = AtomicU64::new(0);

/// Calls that would end the fun too often: made only once in so many times they are chosen.
const RARE: [(CallNumber, u64); 8] = [
    (CallNumber::Ring, 48),
    (CallNumber::Fail, 48),
    (CallNumber::ThreadExit, 8),
    (CallNumber::Log, 16),
    (CallNumber::MemAlloc, 4),
    (CallNumber::JobWait, 1024),
    (CallNumber::ProcCreate, 4),
    (CallNumber::ProcKill, 8),
];

fn main(Arguments([seed, index, ceiling, _]): Arguments) {
    let tally = CallTally::open();
    let life = tally.lives[index as usize % PROCESSES].fetch_add(1, Relaxed);
    INDEX.store(index, Relaxed);
    CEILING.store(ceiling, Relaxed);
    TALLY.store(core::ptr::from_ref(tally) as u64, Relaxed);
    memory::open(index);
    rampage(tally, Random::new(seed ^ life << 32));
}

/// Returns where further threads begin.
extern "C" fn begin(seed: u64) -> ! {
    // SAFETY: `main` stored it before it made the first thread; it is valid as long as the process.
    let tally = unsafe { &*(TALLY.load(Relaxed) as *const CallTally) };
    rampage(tally, Random::new(seed))
}

fn rampage(tally: &CallTally, mut random: Random) -> ! {
    let (index, ceiling) = (INDEX.load(Relaxed), CEILING.load(Relaxed));
    let mut periodic = false;
    loop {
        let call = random.pick(CallNumber::ALL);
        let fine = periodic && call == CallNumber::JobWait;
        let rare = RARE.iter().find(|(rare, _)| *rare == call && !fine);
        if rare.is_some_and(|(_, times)| !random.one_in(*times)) {
            continue;
        }
        let Some(words) = arguments::words(&mut random, call, ceiling) else { continue };
        if call == CallNumber::ProcCreate {
            memory::bury_pawn(index);
        }
        let number = if random.one_in(4096) { arguments::wild(&mut random) } else { call as u64 };
        tally.count(index as usize);
        // SAFETY: not safe, and meant not to be: pointers are into memory kept for this, or such
        // as the kernel has to refuse.
        let result = unsafe { any_call(number, words) };
        periodic |= call == CallNumber::JobsStart;
        if number == call as u64 {
            memory::remember(&mut random, call, result);
        }
    }
}
