//! Other cores that work on memory slow this one down: it walks through memory alone and beside
//! them, and measures the time until one of them answers a doorbell.

use diapason_abi::PAGE;
use diapason_machine::{LINE_BYTES, RUNG, StressBoard};
use diapason_pipe::measured::MachineReport;
use diapason_rt::event::Doorbell;
use diapason_rt::{Errno, Nanos, log, memory, time};

/// Lines that a walk meets, each once. A power of two.
const LINES: usize = 1 << 19;
/// Steps of a piece, which is what the clock measures: less than a turn of the other cores.
const STEPS: usize = 1 << 13;
/// The generator of a walk's order: it comes back to a line when it has met all.
const FACTOR: usize = 1_664_525;
const SUMMAND: usize = 1_013_904_223;

/// How often it rings at most, for how long, and how long it waits for an answer.
const RINGS: u32 = 1_000;
const RINGING: Nanos = Nanos::from_secs(5);
const PATIENCE: Nanos = Nanos::from_secs(1);

/// Memory that is walked through. Each line has the number of the next one, so no step can begin
/// before the one before it has ended.
struct Walk(&'static [[u8; LINE_BYTES]]);

impl Walk {
    fn new() -> Result<Walk, Errno> {
        let memory = memory::allocate(LINES * LINE_BYTES / PAGE)?;
        let lines = memory.as_chunks_mut().0;
        for (number, line) in lines.iter_mut().enumerate() {
            let next = (number * FACTOR + SUMMAND) % LINES;
            line[..4].copy_from_slice(&(next as u32).to_le_bytes());
        }
        Ok(Walk(lines))
    }

    /// Walks, and returns the shortest and the longest time of a piece.
    fn measure(&self) -> (Nanos, Nanos) {
        let (mut shortest, mut longest, mut at) = (Nanos::FOREVER, Nanos::ZERO, 0);
        for _ in 0..LINES / STEPS {
            let begun = time::now();
            for _ in 0..STEPS {
                let [a, b, c, d, ..] = self.0[at];
                at = u32::from_le_bytes([a, b, c, d]) as usize % LINES;
            }
            // A walk whose end nobody wants is not walked.
            at = core::hint::black_box(at);
            let spent = time::now() - begun;
            (shortest, longest) = (shortest.min(spent), longest.max(spent));
        }
        (shortest, longest)
    }
}

/// The measurement beside other cores, of which so many work.
pub struct OthersAtWork {
    board: &'static StressBoard,
    others: u64,
    walk: Walk,
    alone: Nanos,
}

impl OthersAtWork {
    /// Walks alone, and then lets the others begin.
    ///
    /// # Errors
    /// If the description does not grant the memory.
    pub fn begin(others: u64) -> Result<OthersAtWork, Errno> {
        let (board, walk) = (StressBoard::attach()?, Walk::new()?);
        let (alone, _) = walk.measure();
        log!("{others} other cores begin to work on memory");
        board.begin(others);
        Ok(OthersAtWork { board, others, walk, alone })
    }

    /// Walks beside the others, rings for one of them, and lets them stop then.
    ///
    /// # Errors
    /// None for a doorbell that the description grants.
    pub fn end(self) -> Result<MachineReport, Errno> {
        let OthersAtWork { board, others, walk, alone } = self;
        let (_, beside) = walk.measure();
        let bell = Doorbell::new(RUNG);
        let (rings, ring) = rings(board, bell).unwrap_or_else(|errno| {
            log!("no other core answers the doorbell: {errno:?}");
            (0, Nanos::ZERO)
        });
        board.end(others);
        // The core that answers wakes once more, and sees that it is over.
        bell.ring()?;
        let cores = u32::try_from(others + 1).unwrap_or(u32::MAX);
        Ok(MachineReport::Beside { cores, rings, ring, alone, beside })
    }
}

/// Rings, and waits for the answers. Returns how many it saw, and the longest time until then.
fn rings(board: &StressBoard, bell: Doorbell) -> Result<(u32, Nanos), Errno> {
    let (mut longest, mut rings, end) = (Nanos::ZERO, 0, time::now() + RINGING);
    while rings < RINGS && time::now() < end {
        let round = rings + 1;
        time::sleep(Nanos(200_000 + u64::from(round) * 997));
        let begun = time::now();
        board.ask(round.into());
        bell.ring()?;
        while board.answered() != u64::from(round) {
            if time::now() - begun > PATIENCE {
                return Err(Errno::TimedOut);
            }
        }
        (rings, longest) = (round, longest.max(time::now() - begun));
    }
    Ok((rings, longest))
}
