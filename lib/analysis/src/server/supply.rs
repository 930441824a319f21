//! How long work takes on a server: the supply of a budget that comes back once per period.

use super::arith::gcd;
use super::deadlines;
use super::demand;
use super::level::Interference;
use super::model::{Queue, SharedCore};
use super::stream::Stream;
use diapason_abi::Nanos;
use diapason_pipe::bill::{Coming, Found, Service, found};

/// Values of a stream looked at one by one; beyond, the line above the supply serves as the bound.
const EVENTS_MAX: u128 = 4_096;

/// A server of which each unit of budget comes back one period after it became eligible. All bounds
/// hold for whoever is admitted; work of zero takes no time.
pub trait BudgetServer {
    /// C, or Q of a PIBS server, less what the kernel takes of it.
    fn budget(&self) -> Nanos;
    /// λ: what the kernel takes of a budget in a period; see `loss.rs`.
    fn lost(&self) -> Nanos {
        Nanos::ZERO
    }
    /// T, or the time in which Q is the share of a PIBS server.
    fn period(&self) -> Nanos;
    /// R(c): worst-case time until `work` of at most [`Self::budget`] is done, once eligible.
    fn response(&self, work: Nanos) -> Nanos;
    /// R(c) of `work` whose units became eligible one after the other, counted from the first. If
    /// one unit more always takes at least one more, that is [`Self::response`].
    fn scattered(&self, work: Nanos) -> Nanos {
        self.response(work)
    }
    /// Returns the most wake-ups in a period for which the server never merges replenishments.
    fn wakeups(&self) -> u64;

    /// D_sync: work on a server that nothing else has drained; with a fresh budget at the start.
    fn sync(&self, work: Nanos) -> Nanos {
        let (whole, rest) = split(work, self.budget());
        let Some(rest) = rest else { return Nanos::ZERO };
        times(self.period(), whole) + self.response(rest)
    }

    /// D_any: work that arrives whenever, whatever happened before.
    fn any(&self, work: Nanos) -> Nanos {
        if work == Nanos::ZERO {
            return Nanos::ZERO;
        }
        // The window is longer than that of `sync`: it loses once more.
        let (whole, rest) = split(work + self.lost(), self.budget());
        let Some(rest) = rest else { return Nanos::ZERO };
        (self.period() - self.budget()) + times(self.period(), whole) + self.scattered(rest)
    }

    /// D_merge: the same on a server whose list of replenishments may be full.
    fn merge(&self, work: Nanos) -> Nanos {
        if work == Nanos::ZERO {
            return Nanos::ZERO;
        }
        self.period() + self.sync(work + self.lost())
    }

    /// sbf: the least work done in a window, whatever happened before: the most `c` with
    /// [`Self::any`] of c not longer than the window.
    fn supply(&self, window: Nanos) -> Nanos {
        let Some(periods) = window.0.checked_div(self.period().0) else { return Nanos::ZERO };
        let (mut done, mut more) = (0, times(self.budget(), periods.saturating_add(2)).0);
        while more - done > 1 {
            let middle = done + (more - done) / 2;
            if self.any(Nanos(middle)) <= window { done = middle } else { more = middle }
        }
        Nanos(done)
    }

    /// lsbf: the line below [`Self::supply`], C/T · (window − T − R(C) + 2C), rounded down.
    fn line_below(&self, window: Nanos) -> Nanos {
        let (budget, period) = (u128::from(self.budget().0), u128::from(self.period().0.max(1)));
        let late = self.period() + self.scattered(self.budget());
        let since = (u128::from(window.0) + 2 * budget).saturating_sub(u128::from(late.0));
        Nanos(u64::try_from(budget * since / period).unwrap_or(u64::MAX))
    }

    /// Returns what the wake-ups of a stream find that has the server for itself.
    fn found(&self, stream: &Stream) -> Found
    where
        Self: Service + Sized,
    {
        let coming = Coming {
            wakeups: |window| stream.events(window),
            work: |window| stream.demand(window),
            least: stream.work,
        };
        found(self, &coming)
    }

    /// Returns whether whatever wakes up the server finds budget for all that comes until it
    /// blocks, and the list has places for all parts of it: then nothing ever waits for budget, and
    /// each piece of work is done after R(C), within one period.
    fn conforms(&self, stream: &Stream) -> bool
    where
        Self: Service + Sized,
    {
        self.found(stream) == Found::Apart
    }

    /// Returns the longest delay of a stream that has the server for itself, from the moment its
    /// work may begin. `None`: it asks for more than the server gives.
    fn delay(&self, stream: &Stream) -> Option<Nanos>
    where
        Self: Service + Sized,
    {
        match self.found(stream) {
            Found::Apart => longest(self, stream, Nanos::ZERO),
            Found::Late(late) => longest(self, stream, Nanos::ZERO).map(|delay| late + delay),
            Found::Unknown => {
                let lost = BudgetServer::lost(self);
                longest(self, stream, lost).map(|delay| delay + BudgetServer::period(self))
            }
        }
    }
}

/// max over d of D_sync(u(d) + besides) − d.
fn longest<S: BudgetServer + ?Sized>(server: &S, stream: &Stream, besides: Nanos) -> Option<Nanos> {
    let (budget, period) = (u128::from(server.budget().0), u128::from(server.period().0));
    let (work, apart) = (u128::from(stream.work.0), u128::from(stream.period.0));
    if stream.work == Nanos::ZERO {
        return Some(Nanos::ZERO);
    }
    if budget == 0 || work * period > budget * apart {
        return None;
    }
    let response = u128::from(server.response(server.budget()).0);
    // The last of those that may all come at once waits longest; after as many more as fill whole
    // budgets, waiting can only become shorter.
    let first = u128::from(stream.jitter.0) / apart;
    let last = first + budget / gcd(work, budget);
    let mut longest = 0u128;
    for event in first..=last {
        let begin = (event * apart).saturating_sub(u128::from(stream.jitter.0));
        let wanted = work.checked_mul(event + 1)?.checked_add(u128::from(besides.0))?;
        // A line above D_sync, which falls from here on.
        let above = (wanted - 1).checked_mul(period)? / budget + response + 1;
        let above = above.saturating_sub(begin);
        if above <= longest {
            break;
        }
        if event - first == EVENTS_MAX {
            longest = above;
            break;
        }
        let done = u128::from(server.sync(clamped(wanted)).0);
        longest = longest.max(done.saturating_sub(begin));
    }
    Some(clamped(longest))
}

/// work = whole · budget + rest, with 0 < rest ≤ budget. No rest: no work.
fn split(work: Nanos, budget: Nanos) -> (u64, Option<Nanos>) {
    let Some(before) = work.0.checked_sub(1) else { return (0, None) };
    match before.checked_div(budget.0) {
        Some(whole) => (whole, Some(Nanos(before % budget.0 + 1))),
        None => (u64::MAX, Some(Nanos(1))),
    }
}

fn times(time: Nanos, count: u64) -> Nanos {
    Nanos(time.0.saturating_mul(count))
}

fn clamped(value: u128) -> Nanos {
    Nanos(u64::try_from(value).unwrap_or(u64::MAX))
}

/// The supply of a Main VCPU to the threads that run on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Supply {
    budget: Nanos,
    period: Nanos,
    chunks: u32,
    /// λ: what the kernel takes of a budget.
    lost: Nanos,
    /// Context switches of its own replenishments, and its overrun.
    switches: Nanos,
    /// The interference from above; `None` where only `latest` is known.
    above: Option<Interference>,
    /// The latest that any unit of the budget is used after its release: in a DP queue by deadline,
    /// else the period.
    latest: Nanos,
    /// The bottom half that brings its work, if more is known of it.
    brings: Option<Brings>,
}

/// A bottom half that goes before a server and brings its work; see `behind.rs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Brings {
    /// By when it has passed the work on.
    pub brought: Nanos,
    /// The latest that both are done, where deadlines decide.
    pub latest: Nanos,
}

impl Supply {
    /// Returns the supply of a VCPU of a system that makes sense; `None` if it does not get its
    /// budget in every period.
    #[must_use]
    pub fn of(system: &SharedCore, vcpu: usize) -> Option<Supply> {
        system.check().ok()?;
        let main = system.mains.get(vcpu)?;
        let switches = Nanos(system.own_work(vcpu)) - main.budget;
        let above = match main.queue {
            Queue::Fp => Some(system.interference(vcpu)),
            Queue::Dp(_) => demand::of_queue(system, main.queue).ok().map(|()| None)?,
        };
        if let Some(above) = &above {
            above.response(main.budget + switches, main.period).ok()?;
        }
        let above = above.filter(|_| !system.open);
        let (budget, period, chunks) = (main.budget, main.period, main.chunks);
        let latest = match main.queue {
            Queue::Dp(_) if !system.open => deadlines::latest(system, main.queue, period),
            _ => period,
        };
        let lost = system.lost_of(vcpu);
        (lost < budget).then_some(())?;
        let brings = None;
        Some(Supply { budget, period, chunks, lost, switches, above, latest, brings })
    }
}

impl Supply {
    /// Returns the supply with what is known of work that a bottom half brings.
    pub(super) fn bringing(self, brings: Brings) -> Supply {
        Supply { brings: Some(brings), ..self }
    }

    /// Returns when `work` is done that finds its budget, counted from when its bottom half hears
    /// of it.
    pub(super) fn joined(&self, work: Nanos, brought: Nanos) -> Option<Nanos> {
        let known = self.brings.filter(|known| brought <= known.brought)?;
        (work <= BudgetServer::budget(self)).then_some(())?;
        Some(if self.above.is_some() { self.response(work) } else { known.latest })
    }
}

impl BudgetServer for Supply {
    fn budget(&self) -> Nanos {
        self.budget - self.lost
    }

    fn lost(&self) -> Nanos {
        self.lost
    }

    fn period(&self) -> Nanos {
        self.period
    }

    fn response(&self, work: Nanos) -> Nanos {
        let Some(above) = &self.above else { return self.latest };
        above.response(work + self.lost + self.switches, self.period).unwrap_or(self.period)
    }

    fn scattered(&self, work: Nanos) -> Nanos {
        // Where only the latest use is known, each unit has its own.
        if self.above.is_some() {
            return self.response(work);
        }
        self.response(work) + self.lost + (work - Nanos(1))
    }

    fn wakeups(&self) -> u64 {
        u64::from(self.chunks).saturating_sub(1)
    }
}
