//! The length of epochs that suits a set of messages best.
//!
//! Longer epochs renew identifiers less often, and cut the same identifiers into longer regions, in
//! which deadlines are not told apart. Neither end wins always, so lengths are tried.

use super::{Epochs, MtsRefusal, MtsSet, NoPromise, Unmet, low_speed, tightest};
use diapason_abi::Nanos;

const PPM: i128 = 1_000_000;
/// The lengths that are tried: from the first to the last, each a quarter longer than the one
/// before, in whole steps.
const FIRST: Nanos = Nanos::from_micros(500);
const LAST: Nanos = Nanos::from_millis(100);
const STEP: u64 = 50_000;

impl MtsSet {
    /// Returns the same messages with epochs of about this length.
    ///
    /// # Errors
    /// Zero, or beyond an hour.
    pub fn with_epoch(&self, epoch: Nanos) -> Result<MtsSet, MtsRefusal> {
        let distances =
            self.high.iter().map(|message| message.deadline - self.rate.time(message.bits.into()));
        let longest = distances.max().unwrap_or(Nanos(1));
        let reach = longest + self.renewal() + self.clocks + Nanos(1);
        Ok(MtsSet { epochs: Epochs::new(epoch, reach)?, ..self.clone() })
    }

    /// Returns the rest of the deadline of the message that has the least left, in parts per
    /// million of its deadline; less than 0 if some message is late. None without real-time
    /// messages.
    ///
    /// # Errors
    /// A set that makes no sense.
    pub fn spare_ppm(&self) -> Result<Option<i64>, NoPromise> {
        self.least_spare(i64::MIN)
    }

    /// Returns the same, or something below `floor` as soon as a message leaves less than that.
    fn least_spare(&self, floor: i64) -> Result<Option<i64>, NoPromise> {
        let high = self.high.iter().enumerate().map(|(index, message)| {
            Ok(match tightest(self, index)? {
                Ok(found) => share(found.window, found.work, message.deadline),
                Err(unmet) => missing(unmet, message.deadline),
            })
        });
        let low = self.low.iter().enumerate().map(|(index, message)| {
            Ok(match low_speed(self, index)? {
                Ok(response) => share(message.deadline, response, message.deadline),
                Err(unmet) => missing(unmet, message.deadline),
            })
        });
        let mut least: Option<i64> = None;
        for spare in high.chain(low) {
            let spare = spare?;
            least = Some(least.map_or(spare, |least| least.min(spare)));
            if spare < floor {
                break;
            }
        }
        Ok(least)
    }

    /// Returns the set with the epochs that leave the most to the message with the least, and what
    /// they leave. Of equal lengths the longer wins, which costs processors less.
    #[must_use]
    pub fn best_epoch(&self) -> Option<(MtsSet, i64)> {
        let mut best: Option<(MtsSet, i64)> = None;
        let mut length = FIRST;
        while length <= LAST {
            let set = self.with_epoch(length).ok();
            let tried = set.and_then(|set| {
                let floor = best.as_ref().map_or(i64::MIN, |(_, most)| *most);
                let spare = set.least_spare(floor).ok()??;
                Some((set, spare))
            });
            if let Some((set, spare)) = tried
                && best.as_ref().is_none_or(|(_, most)| spare >= *most)
            {
                best = Some((set, spare));
            }
            length = Nanos((length.0 + length.0 / 4).div_ceil(STEP) * STEP);
        }
        best
    }
}

fn share(whole: Nanos, used: Nanos, deadline: Nanos) -> i64 {
    let spare = i128::from(whole.0) - i128::from(used.0);
    let ppm = spare * PPM / i128::from(deadline.0.max(1));
    i64::try_from(ppm).unwrap_or(if ppm < 0 { i64::MIN } else { i64::MAX })
}

fn missing(unmet: Unmet, deadline: Nanos) -> i64 {
    match unmet {
        Unmet::Window { window, work } => share(window, work, deadline),
        Unmet::Response { response, deadline } => share(deadline, response, deadline),
        Unmet::Overload { .. } | Unmet::Behind => i64::MIN,
    }
}
