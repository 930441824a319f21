//! The bill of an output pipe: from `write` until a message is through on the device's own bus.

use super::apart::Found;
use super::input::STEPS_MAX;
use super::item::{Basis, Bill, What};
use super::refusal::BillRefusal;
use super::rounds::Sampling;
use super::service::Service;
use super::stages::{Interrupts, StageTimes, Traffic, Transfers};
use super::steps::{self, Demand, Messages, Steps};
use diapason_abi::Nanos;

/// How a device sends what it was given, in the order in which it came: on a CAN bus, a frame's
/// longest response time and the distance of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Drain {
    /// Longest time before the first of several messages is being sent.
    pub first: Nanos,
    /// Longest time for each.
    pub each: Nanos,
    /// Messages of the channel that the device can hold.
    pub holds: u64,
}

/// The driver's thread for output, on a server of its own.
#[derive(Clone, Copy)]
pub struct Sender<'a> {
    /// For what is written: of being woken, per transfer, per message.
    pub work: StageTimes,
    /// Longest time for one transfer that has ended, its interrupt included.
    pub ended: Nanos,
    pub service: &'a dyn Service,
}

/// An output pipe from the user to the device's own bus.
#[derive(Clone, Copy)]
pub struct OutputStages<'a> {
    /// The driver. It puts what it finds into transfers, and submits them before it looks again.
    pub sender: Sender<'a>,
    /// Transfers to the device.
    pub bus: Transfers,
    /// How their ends are told.
    pub interrupts: Interrupts,
    /// How the device sends.
    pub drain: Drain,
}

/// Returns how long a message takes from `write` at most; what is written keeps `traffic`.
///
/// # Errors
/// Why there is no bound.
pub fn output(stages: &OutputStages<'_>, traffic: &Traffic<'_>) -> Result<Bill, BillRefusal> {
    let Some(own) = traffic.of_the_pipe() else {
        return Err(BillRefusal::NoChannel { own: traffic.own, channels: traffic.channels.len() });
    };
    let OutputStages { bus, interrupts, drain, .. } = stages;
    let all = Messages { channels: traffic.channels, ahead: Nanos::ZERO };
    let own = Messages { channels: own, ahead: Nanos::ZERO };
    // At worst each message has a transfer of its own.
    let single = Transfers { run: 1, messages: 1, ..*bus };
    let wire = Sampling { queued: 1, round: bus.worst, bus: single };
    let carried = longest(&wire, &all, What::Bus)?;
    let told = carried + interrupts.moderation + interrupts.top_half;
    let (sent, waits) = sender(&stages.sender, &all, told)?;
    let (queued, needed) = (bus.queued, all.most((sent + told).0));
    if needed > queued {
        return Err(BillRefusal::TooFewQueued { queued, needed });
    }
    let drained = longest(drain, &own, What::Drain)?;

    let mut bill = Bill::new();
    let basis = if waits { Basis::Backlog } else { Basis::Conformant };
    bill.put(What::Driver, sent, basis);
    bill.put(What::Bus, carried, Basis::EnoughQueued { queued, needed });
    bill.put(What::Drain, drained, Basis::Given);
    bill.slots = own.most(sent.0);
    bill.device = own.most((carried + drained).0.saturating_add(sent.0));
    match bill.device <= drain.holds {
        true => Ok(bill),
        false => Err(BillRefusal::DeviceBuffer { holds: drain.holds, needed: bill.device }),
    }
}

fn longest(
    service: &dyn Service,
    messages: &Messages<'_>,
    what: What,
) -> Result<Nanos, BillRefusal> {
    let demand: &Demand<'_> = &[(Nanos(1), messages)];
    steps::longest_delay(service, demand).map_err(|overload| BillRefusal::of(what, overload))
}

/// Returns the sender's longest delay, and whether it waits for budget. It also handles ends of
/// transfers, each at most `told` after it was submitted: so their jitter depends on the delay
/// itself.
fn sender(
    sender: &Sender<'_>,
    all: &Messages<'_>,
    told: Nanos,
) -> Result<(Nanos, bool), BillRefusal> {
    let StageTimes { activation, transfer, message } = sender.work;
    let each = activation + transfer + message;
    let service = sender.service;
    let mut late = told;
    for _ in 0..STEPS_MAX {
        let delay = |ahead: Nanos| {
            let written = Messages { ahead, ..*all };
            let ended = Messages { ahead: ahead + late, ..*all };
            let demand: &Demand<'_> = &[(each, &written), (sender.ended, &ended)];
            let window = service.period().0.saturating_sub(1);
            // Every write and every end may wake it.
            let wakeups = |window| written.most(window).saturating_add(ended.most(window));
            let found = steps::found(service, wakeups, demand, Nanos::ZERO);
            let waits = steps::work(demand, window) > service.budget();
            let delay = steps::delay(service, demand, found);
            let delay = delay.map_err(|overload| BillRefusal::of(What::Driver, overload))?;
            Ok((delay, waits || found != Found::Apart))
        };
        // The messages that it submits together were written until it began.
        let (begun, _) = delay(Nanos::ZERO)?;
        let (sent, waits) = delay(begun)?;
        if sent + told <= late {
            return Ok((sent, waits));
        }
        late = sent + told;
    }
    Err(BillRefusal::Endless { what: What::Driver, beyond: late })
}

impl Service for Drain {
    fn budget(&self) -> Nanos {
        Nanos(1)
    }

    fn period(&self) -> Nanos {
        Nanos(self.each.0.max(1))
    }

    fn sync(&self, messages: Nanos) -> Nanos {
        match messages.0 {
            0 => Nanos::ZERO,
            count => self.first + Nanos(self.period().0.saturating_mul(count)),
        }
    }

    fn any(&self, messages: Nanos) -> Nanos {
        self.sync(messages)
    }

    fn wakeups(&self) -> u64 {
        u64::MAX
    }
}
