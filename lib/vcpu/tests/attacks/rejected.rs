//! Rules that do not hold: those of [USB 2023], and one of our own that was tried. Only the tests
//! have them.

use diapason_abi::Nanos;
use diapason_vcpu::sim::{IoServer, MainServer};

/// The PIBS of [USB 2023]: inheritance raises the priority, the budget of the longer period stays.
#[derive(Clone, Debug)]
pub struct PaperPibs {
    share: u64,
    period: Nanos,
    eligible: Nanos,
    left: Nanos,
    used: Nanos,
}

impl PaperPibs {
    /// `1 / inverse` of the processor.
    pub fn new(inverse: u64) -> PaperPibs {
        PaperPibs {
            share: inverse,
            period: Nanos::FOREVER,
            eligible: Nanos::ZERO,
            left: Nanos::ZERO,
            used: Nanos::ZERO,
        }
    }

    fn settle(&mut self) {
        self.eligible += Nanos(self.used.0 * self.share);
        self.used = Nanos::ZERO;
    }
}

impl IoServer for PaperPibs {
    fn period(&self) -> Nanos {
        self.period
    }
    fn available(&self, now: Nanos) -> Nanos {
        match self.left {
            Nanos::ZERO if self.eligible <= now => Nanos(self.period.0 / self.share),
            left => left,
        }
    }
    fn eligible_at(&self) -> Nanos {
        if self.left > Nanos::ZERO { Nanos::ZERO } else { self.eligible }
    }
    fn eligibility(&self) -> Nanos {
        self.eligible
    }
    fn deadline(&self) -> Nanos {
        self.eligible + self.period
    }
    fn wake(&mut self, now: Nanos, period: Nanos) {
        self.period = period;
        if self.eligible <= now {
            self.eligible = now;
            self.left = Nanos(period.0 / self.share);
        }
    }
    fn inherit(&mut self, _now: Nanos, period: Nanos) {
        self.period = period;
    }
    fn stop(&mut self, _now: Nanos) {
        self.settle();
    }
    fn charge(&mut self, used: Nanos, now: Nanos) {
        if self.left == Nanos::ZERO {
            self.left = self.available(now - used);
        }
        self.left = self.left - used;
        self.used += used;
        if self.left == Nanos::ZERO {
            self.settle();
        }
    }
}

/// A sporadic server with a list of two chunks that gives back what was used at every charge, and
/// when the list is full adds it to the last chunk at the later of the two times.
#[derive(Clone, Debug)]
pub struct AddsToTheLast {
    period: Nanos,
    used: Nanos,
    chunks: Vec<(Nanos, Nanos)>,
}

impl AddsToTheLast {
    pub fn new(budget: u64, period: u64) -> AddsToTheLast {
        AddsToTheLast {
            period: Nanos(period),
            used: Nanos::ZERO,
            chunks: vec![(Nanos::ZERO, Nanos(budget))],
        }
    }
}

impl MainServer for AddsToTheLast {
    fn period(&self) -> Nanos {
        self.period
    }
    fn available(&self, now: Nanos) -> Nanos {
        let (eligible, amount) = self.chunks[0];
        if eligible <= now { amount - self.used } else { Nanos::ZERO }
    }
    fn eligible_at(&self) -> Nanos {
        self.chunks[0].0
    }
    fn deadline(&self) -> Nanos {
        self.chunks[0].0 + self.period
    }
    fn wake(&mut self, now: Nanos) {
        let ready = self.chunks.iter().take_while(|(e, _)| *e <= now);
        let amount = ready.fold(Nanos::ZERO, |sum, (_, a)| sum + *a);
        self.chunks.retain(|(e, _)| *e > now);
        if amount > Nanos::ZERO {
            self.chunks.insert(0, (now, amount));
        }
    }
    fn block(&mut self, _now: Nanos) {}
    fn charge(&mut self, used: Nanos, _now: Nanos) {
        self.used += used;
        if self.used == Nanos::ZERO {
            return;
        }
        if self.used == self.chunks[0].1 {
            let (eligible, amount) = self.chunks.remove(0);
            self.used = Nanos::ZERO;
            self.chunks.push((eligible + self.period, amount));
            return;
        }
        self.chunks[0].1 = self.chunks[0].1 - self.used;
        let back = (self.chunks[0].0 + self.period, self.used);
        self.used = Nanos::ZERO;
        match self.chunks.as_mut_slice() {
            [_, last] => *last = (last.0.max(back.0), last.1 + back.1),
            _ => self.chunks.push(back),
        }
    }
}
