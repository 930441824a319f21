//! The messages of every CAN bus that a description has: identifiers, and when each is through.
//!
//! Under fixed identifiers a message has a longest response; under MTS a high-speed message has a
//! start-by time, and the least that is left before it. A process of this host sends through an
//! interface in the order of requests: its pipe says when a message is through, and for the others
//! it may come as much later as that.

mod agree;
mod assign;
mod heard;
mod queued;
mod remedy;
mod time;

pub(crate) use agree::{contended_turn, refusals as contradictions};
pub use heard::CanHeard;
pub(crate) use remedy::refusals;
pub use time::CanClocks;

use crate::jobs::Jobs;
use crate::pipes::{Piped, Plant};
use assign::{Assigned, assign};
use diapason_abi::Nanos;
use diapason_can::fd::FdLength;
use diapason_can::in_order::{BusErrors, Sends, responses_in_order};
use diapason_can::mts::{
    Epochs, HighSpeed, MtsRefusal, MtsSet, NoPromise, Queued, Renewing, Tightest, UPDATE_BITS,
    Unmet, longest_renewal, low_speed, tightest,
};
use diapason_can::response::{AnalysedMessage, Errors, NoBound};
use diapason_can::wire::{self, INTERFRAME_BITS};
use diapason_can::{BitRate, Id};
use diapason_pipe::bill::What;
use diapason_system::{
    CanClass, CanMessage, CanNetwork, CanScheduler, CanSender, PipeDirection, System,
};

/// How a message is called on its bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CanName {
    /// One identifier for ever.
    Fixed(Id),
    /// By identifiers that end in this code and begin with its deadline.
    Code(u16),
}

/// The verdict on a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CanOutcome {
    /// The message is through within this time after it came.
    Response(Nanos),
    /// The message is begun by its start-by time. This window up to it leaves the least.
    StartBy(Tightest),
    /// The message is not always in time.
    Unmet(Unmet),
    /// There is no bound: why, and what to do.
    Unbounded([String; 2]),
    /// The message is due at no time.
    NotDue,
}

/// A message and what can be said of it.
#[derive(Clone, Debug)]
pub struct CanPromise {
    pub class: CanClass,
    /// The message's identifier or its code; none if there are more messages than identifiers.
    pub name: Option<CanName>,
    /// Longest frame in bits, without the interframe space.
    pub bits: u32,
    pub outcome: CanOutcome,
}

/// The epochs of a bus under MTS.
#[derive(Clone, Debug)]
pub struct CanEpochs {
    /// Deadlines closer than a region may not be told apart.
    pub epochs: Epochs,
    pub renewing: Renewing,
    /// Longest time from the end of an epoch until all identifiers are renewed.
    pub renewal: Nanos,
    /// The most of the bus that one renewal takes from a message of high speed.
    pub cost: Nanos,
    /// The description says how long an epoch is.
    pub given: bool,
    /// The rest of its deadline of the message that has the least left, in parts per million.
    pub spare_ppm: Option<i64>,
    /// The length that leaves the most, and how much.
    pub best: Option<(Nanos, i64)>,
}

/// The plan of a bus.
#[derive(Clone, Debug)]
pub struct CanPlan {
    /// In the order of the messages of its network.
    pub messages: Vec<CanPromise>,
    /// The share of the bus that all take at worst, in parts per million, rounded up.
    pub load_ppm: u64,
    pub epochs: Option<CanEpochs>,
    /// How far its clocks are off, under MTS.
    pub clocks: Option<CanClocks>,
    /// How long a message of this host waits for the driver of its controller until it is in the
    /// queue there, or why that is not known and what to do.
    pub queued: Option<Result<Nanos, [String; 2]>>,
    /// By message, how long its program takes from its release until the driver knows of it, if a
    /// described job bounds that.
    pub told: Vec<Option<Nanos>>,
    /// By place of a message that a process of this host reads from a controller: how soon it is
    /// there, or why that is not known and what to do.
    pub heard: Vec<(usize, Result<CanHeard, [String; 2]>)>,
    /// Why nothing can be said of its messages, and what to do.
    pub refused: Option<[String; 2]>,
}

/// Returns the plans of all buses of `system`, in their order.
pub(crate) fn plans(plant: &Plant<'_>, pipes: &[Piped], jobs: &Jobs) -> Vec<CanPlan> {
    let of = |network: &CanNetwork| {
        let queued = queued::queued(plant, network);
        let queued = queued.map(|found| found.map_err(<[String; 2]>::from));
        let waits = waits(queued.as_ref());
        let places = 0..network.messages.len();
        let told = places.map(|place| queued::told(plant, jobs, network, place)).collect();
        let plan = CanPlan { queued, told, ..plan(plant.system, network, pipes, waits) };
        CanPlan { heard: heard::heard(plant, network, &plan), ..plan }
    };
    plant.system.cans.iter().map(of).collect()
}

/// Returns how long messages wait for the driver of a controller, if that is known.
fn waits(queued: Option<&Result<Nanos, [String; 2]>>) -> Option<Nanos> {
    queued.and_then(|queued| queued.as_ref().ok().copied())
}

/// Returns the plan of `network` if its messages were these. Those of a controller wait for its
/// driver so long, if that is known.
pub(crate) fn plan(
    system: &System,
    network: &CanNetwork,
    pipes: &[Piped],
    waits: Option<Nanos>,
) -> CanPlan {
    let assigned = match assign(network) {
        Ok(assigned) => assigned,
        Err(refused) => return refusal(network, refused),
    };
    let Ok(rate) = BitRate::new(network.rate) else {
        let help = format!("write a rate that a bit of whole quanta has, such as {}", 500_000);
        return refusal(network, ["no controller has this bit rate".to_owned(), help]);
    };
    let bus = Bus { network, assigned, rate, written: written(system, network, pipes), waits };
    match network.scheduler {
        CanScheduler::Mts => time::plan(&bus),
        _ => bus.fixed(),
    }
}

fn refusal(network: &CanNetwork, refused: [String; 2]) -> CanPlan {
    let promise = |message: &CanMessage| CanPromise {
        class: message.class.unwrap_or(CanClass::Low),
        name: None,
        bits: bits(network, message),
        outcome: CanOutcome::NotDue,
    };
    let messages = network.messages.iter().map(promise).collect();
    let refused = Some(refused);
    CanPlan {
        messages,
        load_ppm: 0,
        epochs: None,
        clocks: None,
        queued: None,
        told: Vec::new(),
        heard: Vec::new(),
        refused,
    }
}

/// Longest frame of a message, whatever its identifier and its content, in bits of the rate of its
/// bus.
fn bits(network: &CanNetwork, message: &CanMessage) -> u32 {
    let extended = message.id.is_some_and(|(_, extended)| extended);
    let bytes = message.bytes.into();
    match BitRate::new(network.rate) {
        Ok(rate) if message.fd => {
            FdLength::worst(extended, bytes).as_nominal(rate, network.data_rate)
        }
        _ => wire::worst(extended, bytes),
    }
}

fn period(message: &CanMessage) -> Option<Nanos> {
    message.period_ns.map(Nanos)
}

/// Returns how long the pipe of the process that sends on a bus takes until a message is through.
fn written(
    system: &System,
    network: &CanNetwork,
    pipes: &[Piped],
) -> Option<Result<Nanos, [String; 2]>> {
    let is_own = |message: &CanMessage| matches!(message.sender, CanSender::Process(_));
    let (usb, channel) = network.interface?;
    network.messages.iter().find(|message| is_own(message))?;
    let to_it = system.pipes.iter().zip(pipes).find(|(pipe, _)| {
        pipe.way == PipeDirection::ToDevice && (pipe.usb, pipe.channel) == (usb, channel)
    });
    let none = |why: &str| Some(Err([why.to_owned(), "see what is wrong with the pipe".into()]));
    let Some((pipe, piped)) = to_it else {
        return none("the process that sends it has no pipe to the bus on this core");
    };
    let Ok(bill) = &piped.bill else {
        return none(&format!("the pipe `{}` that carries it has no bound", pipe.name));
    };
    let back = bill.item(What::Back).map_or(Nanos::ZERO, |item| item.value);
    Some(Ok(bill.total - back))
}

/// Bits of the longest classic frame, after which a driver knows whether one went out.
const LONGEST: u32 = wire::worst(true, 8);

struct Bus<'a> {
    network: &'a CanNetwork,
    assigned: Assigned,
    rate: BitRate,
    /// Until a message of this host is through, from when it was written.
    written: Option<Result<Nanos, [String; 2]>>,
    /// Until the driver of a controller takes notice.
    waits: Option<Nanos>,
}

impl Bus<'_> {
    fn bits(&self, index: usize) -> u32 {
        bits(self.network, &self.network.messages[index])
    }

    fn frame(&self, message: &CanMessage) -> Nanos {
        self.rate.time(bits(self.network, message).into())
    }

    /// Until a message of a process is through, from when it came.
    fn through(&self, message: &CanMessage) -> Option<Result<Nanos, [String; 2]>> {
        match message.sender {
            CanSender::Node(_) => None,
            CanSender::Process(_) if self.network.controller.is_some() => None,
            CanSender::Process(_) => {
                let written = self.written.clone()?;
                Some(written.map(|written| written + Nanos(message.jitter_ns)))
            }
        }
    }

    /// Returns a message as the analysis of fixed identifiers has it.
    fn fixed_message(&self, index: usize) -> Option<AnalysedMessage> {
        let message = &self.network.messages[index];
        let jitter = match self.through(message) {
            None => Nanos(message.jitter_ns),
            Some(through) => through.ok()? - self.frame(message),
        };
        let Some(CanName::Fixed(id)) = self.assigned.names[index] else { return None };
        let period = period(message)?;
        let deadline = message.deadline_ns.map_or(period, Nanos);
        let bits = bits(self.network, message);
        Some(AnalysedMessage { id, bits, period, jitter, deadline })
    }

    fn load_ppm(&self) -> u64 {
        let load = |message: &CanMessage| {
            let cost = self.rate.time(u64::from(bits(self.network, message) + INTERFRAME_BITS));
            message.period_ns.map_or(0, |period| {
                (u128::from(cost.0) * 1_000_000).div_ceil(u128::from(period.max(1)))
            })
        };
        let all: u128 = self.network.messages.iter().map(load).sum();
        u64::try_from(all).unwrap_or(u64::MAX)
    }

    fn promise(&self, index: usize, outcome: CanOutcome) -> CanPromise {
        CanPromise {
            class: self.assigned.classes[index],
            name: self.assigned.names[index],
            bits: self.bits(index),
            outcome,
        }
    }

    fn fixed(&self) -> CanPlan {
        let count = self.network.messages.len();
        let mut numbers = Vec::new();
        let mut streams = Vec::new();
        for index in 0..count {
            if let Some(message) = self.fixed_message(index) {
                numbers.push(index);
                streams.push(message);
            }
        }
        let other = (0..count).filter(|index| !numbers.contains(index));
        let other = other.map(|index| self.bits(index)).max().unwrap_or(0);
        let shared = self.sharing();
        let sends = |index: &usize| match self.queue(*index) {
            Some(node) => Sends::InOrder(node),
            None if shared.contains(index) => Sends::Buffered,
            None => Sends::Urgent,
        };
        let sends: Vec<Sends> = numbers.iter().map(sends).collect();
        let errors = BusErrors { errors: self.network.errors, again: self.again() };
        let found = responses_in_order(self.rate, &streams, &sends, other, errors);
        let outcome = |index: usize| self.fixed_outcome(index, &numbers, &found);
        CanPlan {
            messages: (0..count).map(|index| self.promise(index, outcome(index))).collect(),
            load_ppm: self.load_ppm(),
            epochs: None,
            clocks: None,
            queued: None,
            told: Vec::new(),
            heard: Vec::new(),
            refused: self.unlimited(),
        }
    }

    /// Returns the node that sends a message in the order of requests. Messages of this host have
    /// waited in the interface already when they count as requested.
    fn queue(&self, index: usize) -> Option<usize> {
        let CanSender::Node(name) = &self.network.messages[index].sender else { return None };
        self.network.in_order.iter().position(|node| node == name)
    }

    fn fixed_outcome(
        &self,
        index: usize,
        numbers: &[usize],
        found: &Result<Vec<Nanos>, NoBound>,
    ) -> CanOutcome {
        let message = &self.network.messages[index];
        let Some(deadline) = message.deadline_ns.map(Nanos) else { return CanOutcome::NotDue };
        let own = match (self.through(message), found) {
            (Some(Err(why)), _) => return CanOutcome::Unbounded(why),
            (Some(Ok(through)), Ok(_)) => Some(through),
            (None, Ok(all)) => {
                let place = numbers.iter().position(|number| *number == index);
                place.and_then(|place| all.get(place).copied())
            }
            (_, Err(none)) => return self.unbounded(none, numbers),
        };
        match own {
            Some(response) if response <= deadline => CanOutcome::Response(response),
            Some(response) => CanOutcome::Unmet(Unmet::Response { response, deadline }),
            None => CanOutcome::NotDue,
        }
    }

    fn unbounded(&self, none: &NoBound, numbers: &[usize]) -> CanOutcome {
        let name = |place: &usize| {
            let index = numbers.get(*place).copied().unwrap_or(0);
            self.network.messages[index].name.clone()
        };
        match none {
            NoBound::Overload { load_ppm, .. } => {
                CanOutcome::Unmet(Unmet::Overload { load_ppm: *load_ppm })
            }
            NoBound::Growing { index } => CanOutcome::Unbounded([
                format!("nodes that send in order make `{}` wait without end", name(index)),
                "lengthen periods, or raise `rate`".to_owned(),
            ]),
            NoBound::NoPeriod { index } | NoBound::SameId { second: index, .. } => {
                CanOutcome::Unbounded([
                    format!("`{}` cannot be analysed: {none}", name(index)),
                    "report this as a bug, with the description".to_owned(),
                ])
            }
        }
    }

    /// A message without a period that goes before one that is due has no bound, nor have others
    /// that wait behind it in their node.
    fn unlimited(&self) -> Option<[String; 2]> {
        let waits = |index: &usize| {
            let message = &self.network.messages[*index];
            let is_own = matches!(message.sender, CanSender::Process(_));
            message.period_ns.is_none() && (is_own || self.queue(*index).is_some())
        };
        if let Some(index) = (0..self.network.messages.len()).find(waits) {
            let name = &self.network.messages[index].name;
            let title = format!("`{name}` has no period, and its node sends in order");
            return Some([title, "add `period`: others wait behind it".to_owned()]);
        }
        let all = self.network.messages.iter().zip(&self.assigned.names);
        let due = all.clone().filter(|(message, _)| message.deadline_ns.is_some());
        let lowest = due.filter_map(|(_, name)| fixed(*name)).max()?;
        let endless = all.filter(|(message, _)| message.period_ns.is_none());
        let (message, _) =
            endless.into_iter().find(|(_, name)| fixed(**name).is_some_and(|id| id < lowest))?;
        Some([
            format!("`{}` has no period, and goes before messages that are due", message.name),
            "add `period`, or give it a larger `id` than all of those".to_owned(),
        ])
    }

    /// Returns how many messages may go twice when nodes renew: those of high speed of this host.
    fn repeating(&self) -> u32 {
        let high = self.assigned.of_class(CanClass::High);
        let own =
            |index: &&usize| matches!(self.network.messages[**index].sender, CanSender::Process(_));
        u32::try_from(high.iter().filter(own).count()).unwrap_or(u32::MAX)
    }

    /// Returns the places of this host's messages that have no buffer of their own.
    fn sharing(&self) -> Vec<usize> {
        let Some(controller) = self.network.controller else { return Vec::new() };
        let streams = self.network.streams().into_iter().map(|(index, _)| index);
        streams.skip(controller.own.into()).collect()
    }

    /// Returns the messages of a set that have no buffer of their own.
    fn queued(&self) -> Queued {
        let shared = self.sharing();
        let places = |class| {
            let of_class = self.assigned.of_class(class).into_iter().enumerate();
            of_class.filter(|(_, index)| shared.contains(index)).map(|(place, _)| place).collect()
        };
        Queued { high: places(CanClass::High), low: places(CanClass::Low), again: self.again() }
    }

    /// Returns the longest time until a message of this host contends again once its frame was
    /// destroyed. It may have been overwritten on the wire: it is in doubt for a frame, then waits
    /// for the driver, and a less urgent frame may just have begun. If nothing bounds the driver,
    /// the bus does not hold.
    fn again(&self) -> Nanos {
        let bits = (0..self.network.messages.len()).map(|index| self.bits(index)).max();
        let longest = self.rate.time(u64::from(bits.unwrap_or(0).max(LONGEST) + INTERFRAME_BITS));
        self.waits.unwrap_or_default() + Nanos(2 * longest.0)
    }

    fn set(&self, clocks: Nanos) -> Result<MtsSet, MtsRefusal> {
        let numbers = |class| self.assigned.of_class(class);
        let high = numbers(CanClass::High).into_iter().map(|index| {
            let message = &self.network.messages[index];
            HighSpeed {
                bits: self.bits(index),
                period: period(message).unwrap_or_default(),
                jitter: Nanos(message.jitter_ns),
                deadline: message.deadline_ns.map(Nanos).unwrap_or_default(),
            }
        });
        let low = numbers(CanClass::Low);
        let low = low.into_iter().filter_map(|index| self.fixed_message(index));
        // The frame that tells to renew identifiers if nobody else does has no data.
        let others = numbers(CanClass::NonRealTime).into_iter();
        let others = others.map(|index| self.bits(index));
        let other = others.chain([wire::worst(false, 0)]).max().unwrap_or(0);
        let longest = (0..self.network.messages.len())
            .map(|index| self.bits(index))
            .chain([other])
            .max()
            .unwrap_or(0);
        let last = longest_renewal(self.rate, longest + UPDATE_BITS / 2, clocks);
        let set = MtsSet {
            rate: self.rate,
            epochs: Epochs::new(Nanos(1), Nanos(1))?,
            high: high.collect(),
            low: low.collect(),
            other,
            clocks,
            queued: self.queued(),
            errors: self.network.errors,
            renewing: match self.network.renewal_ns.map(Nanos) {
                Some(within) => Renewing::ByClock { within, repeating: self.repeating() },
                None => Renewing::OnSignal { last },
            },
        };
        Ok(set)
    }

    /// Returns the plan under MTS if no clock is further off than `clocks`.
    fn mts(&self, clocks: Nanos) -> CanPlan {
        if self.network.errors != Errors::NONE && self.network.renewal_ns.is_none() {
            let title = "frames may be destroyed, and some nodes may hear the signal to renew \
                         identifiers before others";
            let help = "add `renewal = \"50us\"`: each node renews by its clock then";
            return refusal(self.network, [title.to_owned(), help.to_owned()]);
        }
        let Ok(set) = self.set(clocks) else {
            return refusal(self.network, ["no epochs can be made".into(), String::new()]);
        };
        let best = set.best_epoch();
        let given = self.network.epoch_ns.map(Nanos);
        let chosen = match given {
            Some(epoch) => set.with_epoch(epoch).ok(),
            None => best.as_ref().map(|(set, _)| set.clone()),
        };
        let Some(set) = chosen else {
            let help =
                "shorten the longest deadline of class `\"high\"`, or write `class = \"low\"`";
            return refusal(self.network, ["no length of epochs will do".into(), help.into()]);
        };
        let spare = set.spare_ppm();
        let epochs = CanEpochs {
            epochs: set.epochs,
            renewing: set.renewing,
            renewal: set.renewal(),
            cost: set.renewal_cost(),
            given: given.is_some(),
            spare_ppm: spare.as_ref().ok().copied().flatten(),
            best: best.map(|(set, spare)| (set.epochs.epoch(), spare)),
        };
        // Renewals by clocks put no bit on the bus.
        let bits = if self.network.renewal_ns.is_some() { 0 } else { UPDATE_BITS };
        let updates = self.rate.time(bits.into());
        let updates =
            (u128::from(updates.0) * 1_000_000).div_ceil(set.epochs.epoch().0.max(1).into());
        let count = self.network.messages.len();
        let outcome = |index: usize| self.mts_outcome(&set, index);
        CanPlan {
            messages: (0..count).map(|index| self.promise(index, outcome(index))).collect(),
            load_ppm: self.load_ppm().saturating_add(u64::try_from(updates).unwrap_or(u64::MAX)),
            epochs: Some(epochs),
            clocks: None,
            queued: None,
            told: Vec::new(),
            heard: Vec::new(),
            refused: spare.err().map(|none| self.senseless(&none)),
        }
    }

    fn mts_outcome(&self, set: &MtsSet, index: usize) -> CanOutcome {
        let class = self.assigned.classes[index];
        let ranks = self.assigned.of_class(class);
        let rank = ranks.iter().position(|number| *number == index).unwrap_or(0);
        let found = match class {
            CanClass::NonRealTime => return CanOutcome::NotDue,
            CanClass::High => tightest(set, rank).map(|found| found.map(CanOutcome::StartBy)),
            CanClass::Low => low_speed(set, rank).map(|found| found.map(CanOutcome::Response)),
        };
        match found {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(unmet)) => CanOutcome::Unmet(unmet),
            Err(none) => CanOutcome::Unbounded(self.senseless(&none)),
        }
    }

    fn senseless(&self, none: &NoPromise) -> [String; 2] {
        let human = |time: Nanos| crate::human(time.0);
        match none {
            NoPromise::Deadline { index } => {
                let numbers = self.assigned.of_class(CanClass::High);
                let name = numbers.get(*index).map(|number| &self.network.messages[*number].name);
                let name = name.map_or("", String::as_str);
                [
                    format!("the deadline of `{name}` is shorter than its jitter and its frame"),
                    "make `deadline` longer, or `jitter` shorter".to_owned(),
                ]
            }
            NoPromise::Short { epoch, least } => [
                format!("an epoch of {} is over before identifiers are renewed", human(*epoch)),
                format!("write an `epoch` longer than {}, or none", human(*least)),
            ],
            NoPromise::TooMany { given, holds } => [
                format!("{given} messages of a class, which has identifiers for {holds}"),
                "write another `class` for some of them".to_owned(),
            ],
            NoPromise::NoPeriod { .. } => {
                ["a message has no period".to_owned(), "add `period`".to_owned()]
            }
        }
    }
}

fn fixed(name: Option<CanName>) -> Option<Id> {
    match name? {
        CanName::Fixed(id) => Some(id),
        CanName::Code(_) => None,
    }
}
