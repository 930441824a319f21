//! Lets the messages of a flow pass, and no more than its contract allows.
//!
//! A message that comes too early waits, and keeps the memory in which it came. So a neighbour that
//! sends too often gets no more memory lent than its contract allows. If all messages waited, one
//! late burst would make all later messages late for ever: a cable that is back brings one. So of
//! the messages that come too early one is thrown away for each that passed, at most. In any window
//! in which n messages pass, no more than n + 1 are thrown away.

use crate::meter::Meter;
use diapason_abi::Nanos;

/// The contract of a flow at the place where its messages pass.
#[derive(Clone, Copy, Debug)]
pub struct FlowHold {
    meter: Meter,
    /// Whether a message that comes too early is thrown away.
    may_throw: bool,
}

/// The judgement of a message that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Judgement {
    Passes,
    IsThrown,
    /// It came too early, and may pass at this time.
    Waits(Nanos),
}

impl FlowHold {
    /// Returns the hold of a contract before the first message.
    #[must_use]
    pub const fn new(meter: Meter) -> FlowHold {
        FlowHold { meter, may_throw: false }
    }

    /// Judges the next message of the flow. A message that waits is judged once.
    pub fn judge(&mut self, now: Nanos) -> Judgement {
        let opens = self.meter.opens();
        if opens <= now {
            return Judgement::Passes;
        }
        match core::mem::take(&mut self.may_throw) {
            true => Judgement::IsThrown,
            false => Judgement::Waits(opens),
        }
    }

    /// Returns the first time at which one more message may pass.
    #[must_use]
    pub fn opens(&self) -> Nanos {
        self.meter.opens()
    }

    /// Notes that a message passed.
    pub fn passed(&mut self, now: Nanos) {
        let _ = self.meter.admits(now);
        self.may_throw = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::Bucket;
    use diapason_random::Random;

    const PERIOD: Nanos = Nanos(1_000);

    /// Returns the times at which messages pass, and how many of those that wait at the end and how
    /// many are thrown away. They come at these times, and each waits behind those before it.
    fn passes(hold: &mut FlowHold, came: &[u64]) -> (Vec<u64>, u64) {
        let (mut now, mut passed, mut thrown) = (0, Vec::new(), 0);
        for at in came {
            now = now.max(*at);
            match hold.judge(Nanos(now)) {
                Judgement::IsThrown => {
                    thrown += 1;
                    continue;
                }
                Judgement::Waits(opens) => now = opens.0,
                Judgement::Passes => {}
            }
            hold.passed(Nanos(now));
            passed.push(now);
        }
        (passed, thrown)
    }

    #[test]
    fn a_flow_that_keeps_its_contract_never_waits() {
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let jitter = random.below(5_000);
            let bucket = Bucket::periodic(PERIOD).with_jitter(Nanos(jitter));
            let mut hold = FlowHold::new(Meter::new(bucket));
            let mut came: Vec<u64> =
                (0..1_000).map(|number| number * PERIOD.0 + random.below(jitter + 1)).collect();
            came.sort_unstable();
            assert_eq!(passes(&mut hold, &came), (came, 0));
        }
    }

    /// No window has more messages than the contract allows, whatever comes, and no more are thrown
    /// away than pass.
    #[test]
    fn a_flood_passes_as_its_contract_says() {
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let bucket = Bucket::periodic(PERIOD)
                .with_burst(1 + random.below(3))
                .with_jitter(Nanos(random.below(3_000)));
            let mut hold = FlowHold::new(Meter::new(bucket));
            let mut came: Vec<u64> = (0..2_000).map(|_| random.below(200_000)).collect();
            came.sort_unstable();
            let (passed, thrown) = passes(&mut hold, &came);
            for (first, from) in passed.iter().enumerate() {
                for (count, to) in (1..).zip(&passed[first..]) {
                    assert!(count <= bucket.most(Nanos(to - from)), "seed {seed}");
                }
            }
            assert!(passed.len() > 150 && thrown <= passed.len() as u64 + 1, "seed {seed}");
        }
    }

    /// A cable was lost, and is back with what it kept. If nothing were thrown away, every later
    /// message would be as late as the last of the burst.
    #[test]
    fn a_late_burst_makes_no_later_message_late_for_ever() {
        let mut hold = FlowHold::new(Meter::new(Bucket::periodic(PERIOD)));
        let mut came = vec![40_000; 20];
        came.extend((41..200).map(|number| number * PERIOD.0));
        let (passed, thrown) = passes(&mut hold, &came);
        assert!(passed.ends_with(&[198_000, 199_000]), "{passed:?}");
        assert!((10..=20).contains(&thrown), "{thrown}");
    }
}
