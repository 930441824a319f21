//! Frames from `write` until it is known that they are through: how many, and how long each takes.

use diapason_abi::pipe::{SIZES, size_of_delay};
use diapason_canlib::Mark;
use diapason_rt::Nanos;

/// More than a pipe and an interface hold together.
const MOST: usize = 512;

/// The longest times of a frame.
#[derive(Clone, Copy, Default)]
pub struct Longest {
    /// From `write` until the server took it out of the pipe.
    pub taking: Nanos,
    /// From `write` until it was through on the bus. Of the last frame of each report, whose time
    /// is known.
    pub moving: Nanos,
    /// From there until the server knew, beyond the fastest there ever was: the clock of the
    /// interface began at a time nobody here knows.
    pub back: Nanos,
    /// From `write` until the server knew that it, or one after it, was through.
    pub whole: Nanos,
}

/// Frames that were written, and those of them that are through.
pub struct UnderWay {
    written_at: [Nanos; MOST],
    written: u64,
    through: u64,
    peak: u64,
    longest: Longest,
    /// How many frames took how long, by size.
    spread: [u32; SIZES],
    /// The smallest difference of the two clocks.
    fastest: Option<u64>,
}

impl Default for UnderWay {
    fn default() -> UnderWay {
        UnderWay {
            written_at: [Nanos::ZERO; MOST],
            written: 0,
            through: 0,
            peak: 0,
            longest: Longest::default(),
            spread: [0; SIZES],
            fastest: None,
        }
    }
}

impl UnderWay {
    /// A frame was written.
    pub fn write(&mut self, now: Nanos) {
        self.written_at[self.written as usize % MOST] = now;
        self.written += 1;
    }

    /// Returns the number of written frames.
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Which frames a mark says are through that were not before, by their numbers.
    pub fn newly(&self, mark: &Mark) -> core::ops::Range<u64> {
        self.through..mark.through.min(self.written)
    }

    /// A report said so.
    pub fn through(&mut self, Mark { through, time, known, taking }: Mark) {
        self.longest.taking = self.longest.taking.max(taking);
        if through <= self.through {
            return;
        }
        let through = through.min(self.written);
        for frame in self.through..through {
            let took = known - self.written_at[frame as usize % MOST];
            self.longest.whole = self.longest.whole.max(took);
            let size = &mut self.spread[size_of_delay(took)];
            *size = size.saturating_add(1);
        }
        self.through = through;
        // Of two clocks: only differences between such differences mean anything.
        let distance = known.0.wrapping_sub(time.0);
        let fastest = self.fastest.map_or(distance, |fastest| fastest.min(distance));
        self.fastest = Some(fastest);
        let back = Nanos(distance - fastest);
        let last = self.written_at[through.saturating_sub(1) as usize % MOST];
        self.longest.back = self.longest.back.max(back);
        self.longest.moving = self.longest.moving.max(known - last - back);
    }

    /// How many are under way, now that all reports were heard.
    pub fn count(&mut self) {
        self.peak = self.peak.max(self.written - self.through);
    }

    /// Most that ever were.
    pub const fn peak(&self) -> u64 {
        self.peak
    }

    /// How many frames took how long, by size.
    pub const fn spread(&self) -> &[u32; SIZES] {
        &self.spread
    }

    /// The longest times since the last look.
    pub fn take_longest(&mut self) -> Longest {
        core::mem::take(&mut self.longest)
    }
}
