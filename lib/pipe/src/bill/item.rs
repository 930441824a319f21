//! A bill: what a message waits for, how long at most, and under which condition.

use core::fmt;
use diapason_abi::Nanos;

/// A stage that a message waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum What {
    /// The writer to tell the driver of what it has written.
    Written,
    /// The driver to take it out of the ring: for the driver to look, and for room behind the ring.
    Taken,
    /// The reader of a pipe from a disk to ask for it, and the driver to hear of that.
    Asked,
    /// A transfer to be possible: for one that is in progress, and for requests to come back.
    Request,
    Bus,
    /// The device to do what it was asked for.
    Device,
    Moderation,
    /// The kernel to see the interrupt.
    TopHalf,
    /// The driver's bottom half, on an I/O VCPU.
    BottomHalf,
    Driver,
    /// A reader on another core to look for it.
    Look,
    User,
    /// The device to put it on its own bus.
    Drain,
    /// The driver to know that it is through.
    Back,
}

// Stages are compared by their numbers: a list in another order would show a life wrong.
const _: () = {
    let mut at = 0;
    while at < What::ALL.len() {
        assert!(What::ALL[at] as usize == at);
        at += 1;
    }
};

impl What {
    /// All of them, in their order.
    pub const ALL: [What; 14] = [
        What::Written,
        What::Taken,
        What::Asked,
        What::Request,
        What::Bus,
        What::Device,
        What::Moderation,
        What::TopHalf,
        What::BottomHalf,
        What::Driver,
        What::Look,
        What::User,
        What::Drain,
        What::Back,
    ];

    /// Returns the name of the stage.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            What::Written => "writer's thread",
            What::Taken => "taken by the driver",
            What::Asked => "reader's ask",
            What::Request => "wait for a transfer",
            What::Bus => "bus",
            What::Device => "device",
            What::Moderation => "interrupt moderation",
            What::TopHalf => "top half",
            What::BottomHalf => "bottom half",
            What::Driver => "driver's thread",
            What::Look => "reader's look",
            What::User => "user's thread",
            What::Drain => "the device's own bus",
            What::Back => "acknowledgement",
        }
    }

    /// Returns the assumption that the value rests on and that a running system has to watch.
    #[must_use]
    pub const fn assumption(self) -> &'static str {
        match self {
            What::Taken => {
                "the driver looks as often as it says; the device behind the ring keeps its times"
            }
            What::Asked => "the reader's VCPU serves no other thread, and the driver hears at once",
            What::Device => "the device takes no longer than its description says",
            What::Request => "requests are queued again as soon as their transfer is handled",
            What::Bus => "transfers are served in the order of the bus's plan; retries are counted",
            What::Moderation => "the controller interrupts within its interval",
            What::TopHalf => "kernel paths and interrupts take no longer than measured",
            What::Look => "the reader looks again as soon as its library says",
            What::Written => "the writer's VCPU serves no other thread",
            What::BottomHalf | What::Driver | What::User => {
                "the VCPU serves this stream only; work per message is as measured"
            }
            What::Drain => "the device sends at its rate, and others on its bus keep theirs",
            What::Back => "messages from the device keep their contracts",
        }
    }
}

/// Why a value holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Basis {
    Given,
    /// Enough requests are queued: at most the transfers before it are waited for.
    EnoughQueued {
        queued: u64,
        /// Requests that are enough.
        needed: u64,
    },
    /// Too few requests are queued: one comes back after a round of all stages.
    Round {
        queued: u64,
        /// Requests that would be enough.
        needed: u64,
        /// Longest time from the begin of a transfer until its request is queued again.
        round: Nanos,
    },
    /// The stage never asks for more than its budget in a period, so it never waits for budget.
    Conformant,
    /// Bursts wait for budget, on a server that nothing else drains.
    Backlog,
    /// No more than this can be before it, whatever drained the server: so many transfers are
    /// queued, or so much was taken at once.
    Outstanding,
    /// The pipe may be full: so many messages are under way, this one included.
    Full {
        /// In the ring and in the device.
        messages: u64,
    },
    /// Bursts wait for budget, and a full list of replenishments may merge some of it: one period
    /// more.
    Merged,
    /// A wake-up waits for a place in the list of replenishments, so long at most.
    Places {
        late: Nanos,
    },
}

/// One line of a bill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Item {
    pub what: What,
    /// How long at most.
    pub value: Nanos,
    pub basis: Basis,
}

/// Most items of a bill.
const ITEMS: usize = 9;

/// How long a message takes at most, item by item in their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bill {
    items: [Item; ITEMS],
    count: usize,
    /// E: the sum of all items.
    pub total: Nanos,
    /// d_min: the shortest time into the last buffer, for an input pipe the ring.
    pub least: Nanos,
    /// Slots of the ring for which it cannot overflow; of a [`pump`](super::pump), messages under
    /// way.
    pub slots: u64,
    /// Messages of all channels that wait in the device, at most; of a [`pump`](super::pump), of
    /// the own channel.
    pub device: u64,
}

impl Bill {
    pub(super) const fn new() -> Bill {
        let none = Item { what: What::Bus, value: Nanos::ZERO, basis: Basis::Given };
        let (total, least) = (Nanos::ZERO, Nanos::ZERO);
        Bill { items: [none; ITEMS], count: 0, total, least, slots: 0, device: 0 }
    }

    pub(super) fn put(&mut self, what: What, value: Nanos, basis: Basis) {
        if let Some(item) = self.items.get_mut(self.count) {
            *item = Item { what, value, basis };
            self.count += 1;
        }
        self.total += value;
    }

    /// Returns the bill with the value of a stage as several items, which stand in its place and
    /// add up to the same. Items without a value are left out.
    #[must_use]
    pub fn split(&self, stage: What, into: &[(What, Nanos)]) -> Bill {
        let Bill { least, slots, device, .. } = *self;
        let mut split = Bill { least, slots, device, ..Bill::new() };
        for item in self.items() {
            if item.what != stage {
                split.put(item.what, item.value, item.basis);
                continue;
            }
            for (what, value) in into.iter().filter(|(_, value)| *value > Nanos::ZERO) {
                split.put(*what, *value, item.basis);
            }
        }
        split
    }

    /// Returns the bill of a pipe to a device with these stages.
    #[must_use]
    pub fn of_output(stages: &[(What, Nanos)]) -> Bill {
        let mut all = Bill::new();
        stages.iter().for_each(|(what, value)| all.put(*what, *value, Basis::Given));
        all
    }

    /// Returns the bill with one more stage before all others.
    #[must_use]
    pub fn after(&self, what: What, value: Nanos) -> Bill {
        let Bill { least, slots, device, .. } = *self;
        let mut all = Bill { least, slots, device, ..Bill::new() };
        all.put(what, value, Basis::Given);
        self.items().iter().for_each(|item| all.put(item.what, item.value, item.basis));
        all
    }

    /// Returns the bill of messages that the user of this one passes on, to another user who takes
    /// so long: the former is a thread of the driver then.
    #[must_use]
    pub fn passed_on(&self, user: Nanos, basis: Basis) -> Bill {
        let mut all = *self;
        for item in all.items.iter_mut().filter(|item| item.what == What::User) {
            item.what = What::Driver;
        }
        all.put(What::User, user, basis);
        all
    }

    /// Returns the items, in the order in which a message meets them.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        self.items.get(..self.count).unwrap_or_default()
    }

    /// Returns the item of a stage, if the pipe has that stage.
    #[must_use]
    pub fn item(&self, what: What) -> Option<Item> {
        self.items().iter().find(|item| item.what == what).copied()
    }

    /// Returns how long it is at a stage at most; nothing if the pipe has no such stage.
    #[must_use]
    pub fn value(&self, what: What) -> Nanos {
        self.item(what).map_or(Nanos::ZERO, |item| item.value)
    }

    /// Returns how long all takes that comes before its last stage, which is this one.
    #[must_use]
    pub fn before(&self, last: What) -> Nanos {
        self.total - self.value(last)
    }

    /// Returns whether no stage ever waits for budget.
    #[must_use]
    pub fn conforms(&self) -> bool {
        let waits = |basis: Basis| {
            matches!(basis, Basis::Backlog | Basis::Outstanding) || basis.may_merge()
        };
        !self.items().iter().any(|item| waits(item.basis))
    }
}

impl Basis {
    /// Returns whether the list of replenishments may be full.
    #[must_use]
    pub const fn may_merge(self) -> bool {
        matches!(self, Basis::Merged | Basis::Places { .. })
    }
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Basis::Given => write!(f, "given"),
            Basis::EnoughQueued { queued, needed } => {
                write!(f, "{queued} queued, {needed} are enough")
            }
            Basis::Round { queued, needed, round } => {
                let round = Time(*round);
                write!(f, "{queued} queued, a round takes {round}; {needed} would be enough")
            }
            Basis::Conformant => write!(f, "never waits for budget"),
            Basis::Backlog => write!(f, "bursts wait for budget"),
            Basis::Outstanding => write!(f, "after any use of the budget"),
            Basis::Full { messages } => write!(f, "{messages} messages under way fill the pipe"),
            Basis::Merged => write!(f, "bursts wait for budget, replenishments may merge"),
            Basis::Places { late } => {
                write!(f, "wake-ups wait up to {} for a place of `replenishments`", Time(*late))
            }
        }
    }
}

impl fmt::Display for Bill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for item in self.items() {
            let Item { what, value, basis } = item;
            writeln!(f, "{:24}{:>12}  {basis}", what.name(), Time(*value))?;
        }
        writeln!(f, "{:24}{:>12}", "in all", Time(self.total))?;
        write!(f, "{} slots; at most {} in the device", self.slots, self.device)
    }
}

/// A time in the largest unit that leaves at least two digits before the point.
pub(crate) struct Time(pub(crate) Nanos);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0.0 {
            0..10_000 => return write!(f, "{} ns", self.0.0),
            10_000..10_000_000 => (1_000, "us"),
            _ => (1_000_000, "ms"),
        };
        let tenths = self.0.0.div_ceil(unit / 10);
        write!(f, "{}.{} {name}", tenths / 10, tenths % 10)
    }
}
