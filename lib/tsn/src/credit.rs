//! Classes with credit: how long their frames wait at most, between which limits their credit
//! stays, and what they take from the classes below. `docs/tsn.md` has the arguments.

use crate::{CLASSES, GateRefusal, PortModel, Shaping, TrafficFlow};

/// The limits of the credit of a class, in bytes: `hicredit` and `locredit` of Linux's `cbs`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CreditSpan {
    pub most: i64,
    pub least: i64,
}

impl CreditSpan {
    /// Returns the whole bytes that include credits in billionths of a bit.
    pub(crate) fn around(most: i128, least: i128) -> CreditSpan {
        let bytes = |credit: i128| credit.div_euclid(BYTE);
        let whole = |bytes: i128| i64::try_from(bytes).unwrap_or(i64::MAX);
        CreditSpan { most: whole(-bytes(-most)), least: whole(bytes(least)) }
    }

    /// Returns whether another span lies within this one.
    #[must_use]
    pub const fn contains(&self, other: &CreditSpan) -> bool {
        self.least <= other.least && other.most <= self.most
    }
}

/// A byte in billionths of a bit.
const BYTE: i128 = 8_000_000_000;
/// Steps of a search before it is given up: the load is too close to the idle slope.
const MOST_STEPS: usize = 20_000;

/// A class with credit at a port. Amounts are in billionths of a bit, rates in bit/s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Credited {
    rate: u128,
    idle: u128,
    /// The longest time for which others keep it waiting while it has credit.
    blocked_ns: u64,
    /// The longest frame of the class.
    longest_ns: u64,
    /// The port looks so late at most.
    guard_ns: u64,
}

impl Credited {
    /// Returns the longest time on the wire of the frames that go first in a closed window of
    /// length `d`, and of the rest of one that began before.
    pub fn work(&self, d: u64) -> u64 {
        // A late look sees the credit of its own time.
        let d = u128::from(d) + u128::from(self.guard_ns);
        let credit = self.idle * (u128::from(self.blocked_ns) + d);
        narrowed(credit.div_ceil(self.rate)).saturating_add(self.longest_ns)
    }

    fn span(&self) -> CreditSpan {
        let most = self.idle * u128::from(self.blocked_ns);
        let fall = (self.rate - self.idle) * u128::from(self.longest_ns)
            + self.idle * u128::from(self.guard_ns);
        let [most, fall] = [most, fall].map(|it| i128::try_from(it).unwrap_or(i128::MAX));
        CreditSpan::around(most, -fall)
    }

    /// Returns the delay of frames that come so. A frame ahead of which others go starts when the
    /// idle slope has paid for those, and the class has waited for others as long as it may.
    fn delay(&self, own: &[TrafficFlow]) -> Option<u64> {
        let paced = |work: u64| narrowed((u128::from(work) * self.rate).div_ceil(self.idle));
        let (mut x, mut most) = (0, 0);
        for _ in 0..MOST_STEPS {
            let work: u64 = own.iter().map(|flow| flow.work(x)).sum();
            for flow in own {
                let ahead = paced(work - flow.wire_ns);
                let done = self.blocked_ns.saturating_add(ahead).saturating_add(flow.wire_ns);
                most = most.max(done.saturating_sub(x));
            }
            let next = own.iter().map(|flow| flow.next_arrival(x)).min().unwrap_or(u64::MAX);
            if paced(work) <= next {
                return Some(most);
            }
            x = next;
        }
        None
    }
}

/// The most that classes above one with credit send: a rate, and so much at once.
#[derive(Clone, Copy, Default)]
struct Above {
    rate: u128,
    at_once: u128,
}

impl PortModel<'_> {
    /// Returns the limits of the credit of a class; `None` for a class without credit.
    ///
    /// # Errors
    /// If what classes above send leaves less than its idle slope.
    pub fn credit(&self, class: usize) -> Result<Option<CreditSpan>, GateRefusal> {
        Ok(self.credited(class)?.map(|it| it.span()))
    }

    pub(crate) fn credited(&self, class: usize) -> Result<Option<Credited>, GateRefusal> {
        let Some(Shaping::Credit { idle_bits_per_second }) = self.shaping.get(class) else {
            return Ok(None);
        };
        let (rate, idle) =
            (u128::from(self.rate.bits_per_second()), u128::from(*idle_bits_per_second));
        let above = self.above_credit(class, rate);
        if above.rate + idle > rate {
            let ppm = narrowed((above.rate + idle) * 1_000_000 / rate);
            return Err(GateRefusal::AboveCredit { class, ppm });
        }
        let (longest_ns, guard_ns) = (self.longest(|it| it == class), self.guard_ns);
        let lower = rate * u128::from(self.longest(|it| it < class));
        let own = above.rate * u128::from(longest_ns.saturating_sub(guard_ns));
        let before = lower.max(own + rate * u128::from(guard_ns));
        let blocked = (before + above.at_once).div_ceil(rate - above.rate);
        // A wait for credit ends at a whole nanosecond.
        let blocked_ns = narrowed(blocked).saturating_add(1);
        Ok(Some(Credited { rate, idle, blocked_ns, longest_ns, guard_ns }))
    }

    /// Returns what classes above `class` send at most from an instant at which none of them waits
    /// with credit.
    fn above_credit(&self, class: usize, rate: u128) -> Above {
        let mut above = Above::default();
        for higher in class + 1..CLASSES {
            let longest = u128::from(self.longest(|it| it == higher));
            match self.shaping[higher] {
                Shaping::Credit { idle_bits_per_second } if longest > 0 => {
                    let idle = u128::from(idle_bits_per_second);
                    above.rate += idle;
                    above.at_once += longest * (rate - idle) + idle * u128::from(self.guard_ns);
                }
                Shaping::Credit { .. } => {}
                Shaping::Strict => {
                    for flow in self.of(higher) {
                        let burst = rate * u128::from(flow.once());
                        let period = u128::from(flow.period_ns);
                        above.rate += burst.div_ceil(period);
                        let late = burst.saturating_mul(u128::from(flow.jitter_ns));
                        above.at_once += burst + late.div_ceil(period);
                    }
                }
            }
        }
        above
    }

    /// Returns the delay of a class with credit, if it has some.
    pub(crate) fn with_credit(
        &self,
        class: usize,
        own: &[TrafficFlow],
    ) -> Result<Option<u64>, GateRefusal> {
        let Some(credited) = self.credited(class)? else { return Ok(None) };
        let each = own.iter().map(|flow| {
            (credited.rate * u128::from(flow.once())).div_ceil(u128::from(flow.period_ns))
        });
        let asked: u128 = each.sum();
        let kilobits = |bits: u128| narrowed(bits.div_ceil(1_000));
        let slope_kbit = kilobits(credited.idle);
        let refused = |needed_kbit| GateRefusal::Slope { class, needed_kbit, slope_kbit };
        if asked > credited.idle {
            return Err(refused(kilobits(asked)));
        }
        // The search ends if the slope is a bit more than what is asked for.
        let close = refused(kilobits(credited.idle + credited.idle / 100 + 1));
        credited.delay(own).map(Some).ok_or(close)
    }
}

fn narrowed(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
