//! The sender at the other adapter. It measures as the dissertation does: how much longer a delay
//! loop of known length takes while a message is received.
//!
//! Its first argument is what to do: 0 measures messages of many lengths, 1 sends two periodic
//! flows, 2 sends one beside a flood. The second is how many frames of the flood it sends in a
//! second.

#![no_std]
#![no_main]

use core::hint::black_box;
use core::sync::atomic::Ordering::Relaxed;
use diapason_abi::call::Counter;
use diapason_protocol::{CardReceiver, CardSender, Common, MACS, PERIOD, RECEPTIONS};
use diapason_protocol::{flow, stamp, start};
use diapason_rt::memory::DmaSegment;
use diapason_rt::sys::count;
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};

entry!(main);

/// Measurements of one length.
const RUNS: usize = 12;
/// The turns of the delay loop. It is longer than what receiving takes, and than the least time
/// between two interrupts of the emulated adapter.
const TURNS: u64 = 30_000;
/// The lengths of messages in bytes.
const LENGTHS: [usize; 23] = [
    10, 20, 32, 40, 60, 80, 100, 200, 400, 600, 800, 1_000, 1_200, 1_400, 1_458, 1_600, 2_000,
    2_500, 3_000, 4_000, 5_000, 5_500, 6_000,
];
/// The bytes that a frame carries at most, as in the dissertation.
const PIECE: usize = 1_458;
const PAYLOAD: [u8; PIECE] = [0x5a; PIECE];

fn main(Arguments([what, rate, ..]): Arguments) {
    let done = match what {
        0 => lengths(),
        1 => flows(),
        _ => flood(rate),
    };
    match done {
        Ok(()) => log!("DONE"),
        Err(errno) => log!("the sender failed: {errno:?}"),
    }
}

/// The sending adapter and its memory.
struct Sender {
    nic: CardSender,
    /// Rings of both halves are in one segment, which the end of either detaches.
    _receiver: CardReceiver,
    memory: DmaSegment,
    shared: &'static Common,
}

impl Sender {
    fn start() -> Result<Sender, Errno> {
        let shared = Common::attach()?;
        let (_receiver, nic) = start("nic1", "rings1", MACS[1])?;
        let memory = DmaSegment::attach("sends")?;
        while shared.ready.load(Relaxed) == 0 {
            time::sleep(Nanos::from_millis(1));
        }
        time::sleep(Nanos::from_millis(600));
        Ok(Sender { nic, _receiver, memory, shared })
    }

    /// Writes a frame with so many bytes of payload at `place`, and returns its length.
    fn prepare(&self, place: usize, number: usize, past: bool, bytes: usize) -> u16 {
        let mut frame = [0; 1_536];
        let payload = PAYLOAD.get(..bytes).unwrap_or(&PAYLOAD);
        let length = flow(number, past).write(payload, &mut frame).unwrap_or(0);
        for (at, word) in (place..).step_by(4).zip(frame.as_chunks().0) {
            self.memory.write32(at, u32::from_le_bytes(*word));
        }
        length as u16
    }

    #[inline(always)]
    fn send(&mut self, place: usize, length: u16) {
        let address = self.memory.bus_address(place);
        self.nic.send(address, length);
    }

    /// Returns the instructions of sending one frame and of a delay loop behind it.
    #[inline(never)]
    fn timed(&mut self, length: u16) -> u64 {
        self.shared.marks[0].store(1, Relaxed);
        let begin = stamp();
        self.send(0, length);
        for turn in 0..TURNS {
            black_box(turn);
        }
        let took = stamp() - begin;
        self.shared.marks[1].store(1, Relaxed);
        took
    }
}

/// Returns the value in the middle.
fn middle(mut values: [u64; RUNS]) -> u64 {
    values.sort_unstable();
    values[RUNS / 2]
}

/// Logs `RECEIVE bytes frames instructions switches` for each length. Frames to port 1, which
/// nobody has, are of length 0.
fn lengths() -> Result<(), Errno> {
    let mut sender = Sender::start()?;
    let length = sender.prepare(0, 0, true, 32);
    let idle = middle([(); RUNS].map(|()| paced(&mut sender, length)));
    let unknown = sender.prepare(0, 7, false, 32);
    let discards = middle([(); RUNS].map(|()| paced(&mut sender, unknown)));
    log!("RECEIVE 0 1 {} 0", discards.saturating_sub(idle));
    for bytes in LENGTHS {
        let (mut costs, mut switches) = ([0; RUNS], [0; RUNS]);
        let received = sender.shared.bytes[0].load(Relaxed);
        for (cost, switches) in costs.iter_mut().zip(&mut switches) {
            let before = count(Counter::Cr3);
            let mut left = bytes;
            while left > 0 {
                let piece = left.min(PIECE);
                let length = sender.prepare(0, 0, false, piece);
                *cost += paced(&mut sender, length) - idle;
                left -= piece;
            }
            *switches = count(Counter::Cr3) - before;
        }
        let received = sender.shared.bytes[0].load(Relaxed) - received;
        if received != (bytes * RUNS) as u64 {
            log!("LOST {bytes} {received}");
        }
        let frames = bytes.div_ceil(PIECE);
        log!("RECEIVE {bytes} {frames} {} {}", middle(costs), middle(switches));
    }
    log!("DISCARDED {}", sender.shared.discarded.load(Relaxed));
    Ok(())
}

/// As [`Sender::timed`], long after the interrupt before.
fn paced(sender: &mut Sender, length: u16) -> u64 {
    for turn in 0..TURNS {
        black_box(turn);
    }
    sender.timed(length)
}

/// The frames of the flow beside a flood, the time between two, and the bytes of each.
const BESIDE: u64 = 1_000;
const BESIDE_PERIOD: Nanos = Nanos::from_millis(1);
const BESIDE_BYTES: usize = 64;

/// Sends a frame to the more urgent program every millisecond, and so many frames a second to the
/// other. Logs `FLOOD sent received flooded`.
fn flood(rate: u64) -> Result<(), Errno> {
    let mut sender = Sender::start()?;
    let own = sender.prepare(0, 0, false, BESIDE_BYTES);
    let others = sender.prepare(2_048, 1, false, BESIDE_BYTES);
    let start = time::now() + Nanos::from_millis(2);
    let (mut sent, mut flooded) = (0, 0);
    while sent < BESIDE {
        let passed = time::now().0.saturating_sub(start.0);
        if passed >= sent * BESIDE_PERIOD.0 {
            sender.send(0, own);
            sent += 1;
        }
        if passed * rate >= flooded * 1_000_000_000 {
            sender.send(2_048, others);
            flooded += 1;
        }
    }
    // The last ones are on their way.
    time::sleep(Nanos::from_millis(50));
    let received = sender.shared.bytes[0].load(Relaxed) / BESIDE_BYTES as u64;
    log!("FLOOD {sent} {received} {flooded}");
    Ok(())
}

/// Sends 1 KB every 1.5 ms, and 10 bytes every 4 ms just before it if both are due. Logs `TURN
/// ns` for each time between two receptions of the former, as if it had been sent exactly in time.
fn flows() -> Result<(), Errno> {
    let mut sender = Sender::start()?;
    let long = sender.prepare(0, 0, false, 1_000);
    let short = sender.prepare(2_048, 1, false, 10);
    let start = time::now() + Nanos::from_millis(2);
    let (mut next, mut other) = (start, start);
    let last = Nanos(start.0 + PERIOD.0 * (RECEPTIONS as u64 + 1));
    while next < last {
        let due = next.min(other);
        time::sleep_until(due);
        if other == due {
            sender.send(2_048, short);
            other += Nanos::from_millis(4);
        }
        if next == due {
            sender.shared.sent.store(stamp(), Relaxed);
            sender.send(0, long);
            next += PERIOD;
        }
    }
    time::sleep(Nanos::from_millis(5));
    let at = |place: usize| sender.shared.receptions[place].load(Relaxed);
    for place in 1..RECEPTIONS {
        log!("TURN {}", PERIOD.0 + at(place) - at(place - 1));
        time::sleep(Nanos::from_millis(1));
    }
    log!("DISCARDED {}", sender.shared.discarded.load(Relaxed));
    Ok(())
}
