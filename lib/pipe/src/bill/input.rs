//! The bill of an input pipe: from a message's arrival at the device until its user is done.

use super::apart::Found;
use super::item::{Basis, Bill, What};
use super::refusal::BillRefusal;
use super::rounds::{BackToBack, Requests, Sampling};
use super::scarce::Scarce;
use super::service::{Joined, Merging, Service};
use super::stages::{Interrupts, Stage, StageTimes, Stages, Taking, Telling, Traffic, User};
use super::steps::{self, Carried, Demand, Least, Messages, Overload, Spaced, Steps};
use crate::size::Bucket;
use diapason_abi::Nanos;

/// Wake-ups until a stage has handled what it was told of: the one that it is busy with, and the
/// next one, which takes all that has ended. Those that come meanwhile are one.
const VISITS: u64 = 2;

/// Steps to a fixed point before it is given up.
pub(super) const STEPS_MAX: u32 = 256;

/// Returns how long a message of the pipe takes at most, and what its buffers must hold.
///
/// # Errors
/// Why there is no bound.
pub fn input(stages: &Stages<'_>, traffic: &Traffic<'_>) -> Result<Bill, BillRefusal> {
    let Some(own) = traffic.of_the_pipe() else {
        return Err(BillRefusal::NoChannel { own: traffic.own, channels: traffic.channels.len() });
    };
    if stages.bus.queued == 0 || stages.bus.messages == 0 {
        return Err(BillRefusal::NoTransfers);
    }
    let Traffic { channels, beside, .. } = *traffic;
    let input = Input { stages, channels, own, beside };
    let in_a_row = input.wait(&BackToBack(stages.bus))?;
    let enough = input.settle(Requests::Enough, in_a_row)?;
    let needed = input.transfers_within(enough.round, enough.wait);
    let queued = stages.bus.queued;
    if needed <= queued {
        return input.bill(&enough, Basis::EnoughQueued { queued, needed });
    }
    if stages.bus.paced.is_some() {
        // The bus would ask for nothing meanwhile.
        return Err(BillRefusal::TooFewQueued { queued, needed });
    }
    let rounds = input.settle(Requests::Scarce, in_a_row)?;
    input.bill(&rounds, Basis::Round { queued, needed, round: rounds.round })
}

/// The inputs of the computation.
struct Input<'a> {
    stages: &'a Stages<'a>,
    channels: &'a [&'a [Bucket]],
    own: &'a [&'a [Bucket]],
    beside: &'a [&'a [Bucket]],
}

/// A stage's longest delay, and why.
#[derive(Clone, Copy)]
struct Delay {
    value: Nanos,
    basis: Basis,
}

/// Everything up to the ring.
struct Settled {
    wait: Nanos,
    bottom_half: Delay,
    receiver: Option<Delay>,
    /// From the begin of a transfer until its request is queued again.
    round: Nanos,
}

/// A stage that handles transfers, and what is known before it.
struct Handling<'a> {
    stage: &'a Stage<'a>,
    wait: Nanos,
    round: Nanos,
    /// Returns by how much the time from the begin of a transfer until it is told varies.
    varies: Nanos,
    found: Found,
    /// Whether the thread is woken at most once per interrupt, or perhaps for each transfer.
    once_per_interrupt: bool,
}

impl<'a> Input<'a> {
    fn messages(&self, ahead: Nanos) -> Messages<'a> {
        Messages { channels: self.channels, ahead }
    }

    fn owns(&self, ahead: Nanos) -> Messages<'a> {
        Messages { channels: self.own, ahead }
    }

    fn wait(&self, device: &dyn Service) -> Result<Nanos, BillRefusal> {
        let demand: &Demand<'_> = &[(Nanos(1), &self.messages(Nanos::ZERO))];
        steps::longest_delay(device, demand).map_err(|late| BillRefusal::of(What::Request, late))
    }

    /// Returns the least round that is not shorter than what follows from it: by induction over
    /// rounds, no round is longer.
    fn settle(&self, requests: Requests, in_a_row: Nanos) -> Result<Settled, BillRefusal> {
        let Stages { bus, interrupts, .. } = self.stages;
        let told = bus.worst + interrupts.moderation + interrupts.top_half;
        let mut round = told;
        for _ in 0..STEPS_MAX {
            let wait = match requests {
                Requests::Enough => in_a_row,
                Requests::Scarce => {
                    let known = self.wait(&Sampling { queued: bus.queued, round, bus: *bus })?;
                    let messages = self.messages(Nanos::ZERO);
                    Scarce { bus: *bus, round, messages, in_a_row }.wait(known)
                }
            };
            let bottom_half = self.bottom_half(wait, round)?;
            let receiver = match &self.stages.receiver {
                Some(stage) => Some(self.receiver(stage, wait, round, bottom_half.value)?),
                None => None,
            };
            let last = receiver.map_or(Nanos::ZERO, |delay| delay.value);
            let next = told + bottom_half.value + last;
            if next <= round {
                return Ok(Settled { wait, bottom_half, receiver, round });
            }
            round = next;
        }
        Err(BillRefusal::Endless { what: What::Request, beyond: round })
    }

    /// Calls `then` with most transfers that begin in a window longer by `ahead`, if no message
    /// waits longer than `wait` for its own.
    fn with_transfers<R>(
        &self,
        wait: Nanos,
        ahead: Nanos,
        then: impl FnOnce(&dyn Steps) -> R,
    ) -> R {
        let bus = self.stages.bus;
        if let Some(gap) = bus.paced {
            // They come with nothing, too.
            return then(&Spaced { gap, ahead });
        }
        let spaced = Spaced { gap: bus.least, ahead };
        let carried = Carried {
            all: self.messages(wait + ahead),
            fresh: self.messages(ahead),
            each: bus.messages,
            empties: bus.empties,
        };
        then(&Least(&[&spaced, &carried]))
    }

    fn transfers_within(&self, window: Nanos, wait: Nanos) -> u64 {
        self.with_transfers(wait, Nanos::ZERO, |transfers| transfers.most(window.0))
    }

    /// Returns by how much the time from the begin of a transfer to its bottom half varies.
    fn varies(&self) -> Nanos {
        let Stages { bus, interrupts, .. } = self.stages;
        bus.worst - bus.least + interrupts.moderation + interrupts.top_half
    }

    /// Interrupts for transfers that begin in a window longer by `ahead`.
    fn interrupts(&self, ahead: Nanos) -> Spaced {
        Spaced { gap: self.stages.interrupts.gap, ahead: self.varies() + ahead }
    }

    fn bottom_half(&self, wait: Nanos, round: Nanos) -> Result<Delay, BillRefusal> {
        let stage = &self.stages.bottom_half;
        // An I/O VCPU has no list of replenishments that could be full.
        let is_io = stage.service.wakeups() == u64::MAX;
        let found = if is_io { Found::Apart } else { Found::Unknown };
        let varies = self.varies();
        let handling = Handling { stage, wait, round, varies, found, once_per_interrupt: true };
        self.handle(&handling).map_err(|overload| BillRefusal::of(What::BottomHalf, overload))
    }

    fn receiver(
        &self,
        stage: &Stage<'_>,
        wait: Nanos,
        round: Nanos,
        bottom_half: Nanos,
    ) -> Result<Delay, BillRefusal> {
        let varies = self.varies() + bottom_half;
        let once_per_interrupt = self.stages.bottom_half.telling == Telling::All;
        let mut handling =
            Handling { stage, wait, round, varies, found: Found::Unknown, once_per_interrupt };
        let wakeups = |window: u64| {
            let transfers = |more| self.transfers_within(Nanos(window) + more, wait);
            let passed = transfers(varies);
            if !once_per_interrupt {
                return passed;
            }
            let ended = transfers(self.stages.bus.worst - self.stages.bus.least);
            self.told(bottom_half, window, [passed, ended])
        };
        handling.found = self.with_demand(&handling, varies, |demand| {
            steps::found(stage.service, wakeups, demand, Nanos::ZERO)
        });
        self.handle(&handling).map_err(|overload| BillRefusal::of(What::Driver, overload))
    }

    /// Returns the most times in a closed window that a bottom half passes on what it handled, if
    /// it does so once per interrupt. `passed` and `ended` are the events, each time another one,
    /// that it passes on in the window, and that have ended in it.
    ///
    /// From the third time on the interrupt came in the window, and what is passed on ended in it:
    /// a visit takes all that came while the bottom half was late ("Tellings" in
    /// `docs/pipes-proofs.md`).
    fn told(&self, bottom_half: Nanos, window: u64, [passed, ended]: [u64; 2]) -> u64 {
        let Interrupts { gap, top_half, .. } = self.stages.interrupts;
        let heard = |ahead| Spaced { gap, ahead }.most(window);
        let late = passed.min(heard(top_half + bottom_half));
        late.min(ended.min(heard(top_half)).saturating_add(VISITS))
    }

    /// Returns the delay of a stage from the time at which it has heard of a transfer that took as
    /// long as it may.
    fn handle(&self, handling: &Handling<'_>) -> Result<Delay, Overload> {
        let stage = handling.stage;
        let (stream, batches) = match stage.telling {
            Telling::Each => (self.stream(handling, Nanos::ZERO), 1),
            Telling::All => {
                // The transfers that have ended when it begins were there, or came until then.
                let begun = self.stream(handling, handling.varies);
                (begun.and_then(|begun| self.stream(handling, handling.varies + begun.value)), 2)
            }
        };
        // In every case, no more transfers are open than were queued, in each batch.
        let bus = self.stages.bus;
        let open = bus.queued.saturating_mul(batches);
        let window = handling.round.0.saturating_mul(batches);
        let carried = self.messages(handling.wait).most(window);
        let carried = carried.min(open.saturating_mul(bus.messages));
        let StageTimes { activation, transfer, message } = stage.work.some();
        let each = [(activation, VISITS), (transfer, open), (message, carried)];
        let each = each.iter().map(|(cost, count)| cost.0.saturating_mul(*count));
        let open = Nanos(each.fold(0, u64::saturating_add));
        // Messages of other endpoints are those that are handled from when the first of the visits
        // begins until the last one ends.
        let beside = Messages { channels: self.beside, ahead: Nanos::ZERO };
        let work = |time: Nanos| {
            let messages = beside.most(time.0);
            Nanos(open.0.saturating_add(message.0.saturating_mul(messages)))
        };
        let Ok(Delay { value: most, .. }) = until_done(stage.service, handling.found, work) else {
            return stream;
        };
        match stream {
            Ok(delay) if delay.value <= most => Ok(delay),
            // Without any budget there is no bound either.
            Err(overload) if stage.service.budget() == Nanos::ZERO => Err(overload),
            _ => Ok(Delay { value: most, basis: Basis::Outstanding }),
        }
    }

    /// Returns the longest delay if the demand of each window is that of one longer by `ahead`.
    fn stream(&self, handling: &Handling<'_>, ahead: Nanos) -> Result<Delay, Overload> {
        let (service, found) = (handling.stage.service, handling.found);
        self.with_demand(handling, ahead, |demand| delay(service, demand, found))
    }

    /// Calls `then` with what a stage has to do, in windows longer by `ahead`.
    fn with_demand<R>(
        &self,
        handling: &Handling<'_>,
        ahead: Nanos,
        then: impl FnOnce(&Demand<'_>) -> R,
    ) -> R {
        let Handling { stage, wait, once_per_interrupt, .. } = *handling;
        let StageTimes { activation, transfer, message } = stage.work.some();
        self.with_transfers(wait, ahead, |transfers| {
            let per_interrupt = self.interrupts(ahead);
            let activations: [&dyn Steps; 2] = [transfers, &per_interrupt];
            let shared = self.stages.interrupts.shared;
            let activations = Least(match (once_per_interrupt, shared) {
                (true, true) => &activations[1..],
                (true, false) => &activations,
                (false, _) => &activations[..1],
            });
            let messages = self.messages(wait + ahead);
            let beside = Messages { channels: self.beside, ahead };
            then(&[
                (activation, &activations),
                (transfer, transfers),
                (message, &messages),
                (message, &beside),
            ])
        })
    }

    fn bill(&self, settled: &Settled, basis: Basis) -> Result<Bill, BillRefusal> {
        let Stages { bus, interrupts, user, .. } = self.stages;
        let mut bill = Bill::new();
        bill.least = bus.least;
        bill.put(What::Request, settled.wait, basis);
        bill.put(What::Bus, bus.worst, Basis::Given);
        bill.put(What::Moderation, interrupts.moderation, Basis::Given);
        bill.put(What::TopHalf, interrupts.top_half, Basis::Given);
        bill.put(What::BottomHalf, settled.bottom_half.value, settled.bottom_half.basis);
        if let Some(receiver) = settled.receiver {
            bill.put(What::Driver, receiver.value, receiver.basis);
        }
        if let Taking::Looking { every, ready } = user.taking {
            bill.put(What::Look, every + ready, Basis::Given);
        }
        let last = self.user(user, settled, bill.total)?;
        bill.put(What::User, last.value, last.basis);
        let after = bill.total - bill.least;
        bill.slots = self.owns(Nanos::ZERO).most(after.0);
        if let Some(gap) = bus.paced {
            let begun = Spaced { gap, ahead: Nanos::ZERO }.most((after - settled.wait).0);
            bill.slots = bill.slots.min(begun.saturating_mul(bus.messages));
        }
        bill.device = self.messages(Nanos::ZERO).most(settled.wait.0);
        Ok(bill)
    }

    /// Returns the user's delay behind what takes `before` at most.
    fn user(
        &self,
        user: &User<'_>,
        settled: &Settled,
        before: Nanos,
    ) -> Result<Delay, BillRefusal> {
        let Stages { bus, bottom_half, receiver, .. } = self.stages;
        let once_per_interrupt = receiver.is_none() && bottom_half.telling == Telling::All;
        let varies = before - bus.least;
        // Windows are those of arrivals at the device, or of transfers if these have a pace.
        let (arrived, begun, gap) = match bus.paced {
            Some(pace) => (settled.wait, Nanos::ZERO, pace),
            None => (Nanos::ZERO, settled.wait, bus.least),
        };
        // A look that finds nothing is a wake-up, too.
        let looks = looks(user);
        let is_looking = looks.gap < Nanos::FOREVER;
        let own = self.owns(arrived);
        let transfers = Spaced { gap, ahead: begun };
        let woken = self.interrupts(begun);
        let wakes: [&dyn Steps; 3] = [&own, &transfers, &woken];
        let wakes = Least(if once_per_interrupt && !is_looking { &wakes } else { &wakes[..2] });
        let carried = Least(&[&own, &transfers]);
        let each_its_own = bus.paced.is_some() && bus.messages == 1;
        let taken: &dyn Steps = if each_its_own { &carried } else { &own };
        let all: [(Nanos, &dyn Steps); 3] =
            [(user.wake, &wakes), (user.message, taken), (user.wake, &looks)];
        let demand: &Demand<'_> = if is_looking { &all } else { &all[..2] };

        let wakeups = |window: u64| {
            if is_looking {
                return looks.most(window);
            }
            let own = |ahead| self.owns(ahead).most(window);
            let passed = own(varies);
            if !once_per_interrupt {
                return passed;
            }
            let ended = own(settled.wait + bus.worst - bus.least);
            self.told(settled.bottom_half.value, window, [passed, ended])
        };
        // Each wake-up is for a message, and so is each that really comes.
        let found = steps::found(user.service, wakeups, demand, varies);
        let overload = |overload| BillRefusal::of(What::User, overload);
        let each = delay(user.service, demand, found).map_err(overload)?;
        match user.taking {
            Taking::Each => Ok(self.joined(each, user, demand, (found, settled))),
            Taking::Looking { .. } => Ok(each),
            Taking::All => {
                until_done(user.service, found, |time| steps::work(demand, (varies + time).0))
            }
        }
    }

    /// Returns the user's part of its delay and the bottom half's together, if that is shorter than
    /// `alone`: what goes before both delays a message once.
    fn joined(
        &self,
        alone: Delay,
        user: &User<'_>,
        demand: &Demand<'_>,
        (found, settled): (Found, &Settled),
    ) -> Delay {
        let finds_budget = matches!(alone.basis, Basis::Conformant | Basis::Places { .. });
        let in_a_period = steps::work(demand, user.service.period().0.saturating_sub(1));
        if self.stages.receiver.is_some() || !finds_budget || in_a_period > user.service.budget() {
            return alone;
        }
        let brought = settled.bottom_half.value;
        let both = steps::delay(&Joined { service: user.service, brought }, demand, found);
        let part = both.map_or(alone.value, |both| both - brought);
        Delay { value: part.min(alone.value), ..alone }
    }
}

/// Returns the looks of a reader that nobody wakes. A reader sleeps after each that finds nothing,
/// so they are that far apart. Any other reader has none.
const fn looks(user: &User<'_>) -> Spaced {
    let gap = match user.taking {
        Taking::Looking { every, .. } => every,
        Taking::Each | Taking::All => Nanos::FOREVER,
    };
    Spaced { gap, ahead: Nanos::ZERO }
}

/// Returns the least time in which all is done that came in it, whatever the budget that is left.
fn until_done(
    service: &dyn Service,
    found: Found,
    work: impl Fn(Nanos) -> Nanos,
) -> Result<Delay, BillRefusal> {
    let mut value = Nanos::ZERO;
    for _ in 0..STEPS_MAX {
        let next = whatever_before(service, work(value), found);
        if next <= value {
            return Ok(Delay { value, basis: Basis::Outstanding });
        }
        value = next;
    }
    Err(BillRefusal::Endless { what: What::User, beyond: value })
}

fn whatever_before(service: &dyn Service, work: Nanos, found: Found) -> Nanos {
    match (work, found) {
        (Nanos::ZERO, _) => Nanos::ZERO,
        (work, Found::Apart) => service.any(work),
        (work, _) => Merging(service).sync(work),
    }
}

/// Returns the longest delay of a stream on a server of its own.
fn delay(service: &dyn Service, demand: &Demand<'_>, found: Found) -> Result<Delay, Overload> {
    let value = steps::delay(service, demand, found)?;
    match found {
        Found::Apart => {}
        Found::Late(late) => return Ok(Delay { value, basis: Basis::Places { late } }),
        Found::Unknown => return Ok(Delay { value, basis: Basis::Merged }),
    }
    let in_a_period = steps::work(demand, service.period().0.saturating_sub(1));
    let waits = in_a_period > service.budget();
    Ok(Delay { value, basis: if waits { Basis::Backlog } else { Basis::Conformant } })
}
