//! The identifiers of messages on a CAN bus, and the common time that those under MTS rest on.

use crate::can_network::{CanClass, CanMessage, CanNetwork, CanScheduler, CanSender};
use diapason_abi::Nanos;
use diapason_can::mts::{
    BEACONS, HIGH_SPEED, MtsRefusal, NON_REAL_TIME, TimeBase, low_speed_id, non_real_time_id,
};
use diapason_can::{BitRate, StandardId, wire};
use diapason_contract::toucan::{MessageId, MtsTerms};

const PPM: u128 = 1_000_000;
/// Without a word, a message is of high speed under MTS if its deadline is at most so many times
/// the shortest one.
const WITHIN: u64 = 10;

/// The first identifier that is assigned: those before it are left to what is more urgent than
/// anything described.
const FIRST: u32 = 0x010;
/// CAN forbids identifiers that begin with seven recessive bits.
const END: u32 = 0x7f0;
/// Identifiers that can be assigned by deadlines.
pub const ASSIGNED_MAX: usize = (END - FIRST) as usize;

impl CanNetwork {
    /// Returns the numbers of all messages, that with the shortest deadline first.
    #[must_use]
    pub fn by_deadline(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.messages.len()).collect();
        let urgency = |index: &usize| {
            let message = &self.messages[*index];
            (message.deadline_ns.unwrap_or(u64::MAX), message.period_ns.unwrap_or(u64::MAX))
        };
        order.sort_by_key(urgency);
        order
    }

    /// Returns the class of each message: as written, or as its deadline has it under MTS.
    #[must_use]
    pub fn classes(&self) -> Vec<CanClass> {
        if self.scheduler != CanScheduler::Mts {
            let said = self.messages.iter().map(|message| message.class);
            return said.map(|class| class.unwrap_or(CanClass::Low)).collect();
        }
        let deadlines = self.messages.iter().filter_map(|message| message.deadline_ns);
        let shortest = deadlines.min().unwrap_or(0);
        let said = |message: &CanMessage| message.class == Some(CanClass::High);
        let mut room = usize::from(HIGH_SPEED);
        room -= room.min(self.messages.iter().filter(|message| said(message)).count());
        let mut classes = vec![CanClass::Low; self.messages.len()];
        for index in self.by_deadline() {
            let message = &self.messages[index];
            classes[index] = message.class.unwrap_or_else(|| {
                let near = |deadline| deadline <= shortest.saturating_mul(WITHIN);
                if room > 0 && message.deadline_ns.is_some_and(near) {
                    room -= 1;
                    CanClass::High
                } else {
                    CanClass::Low
                }
            });
        }
        classes
    }

    /// Returns the identifiers of all messages; `None` of those that have none yet.
    #[must_use]
    pub fn names(&self) -> Vec<Option<MessageId>> {
        let mut all = vec![None; self.messages.len()];
        match self.scheduler {
            CanScheduler::AsWritten => {
                let own = self.messages.iter().map(|message| message.id);
                return own.map(|id| id.map(|(id, long)| MessageId::Fixed(id, long))).collect();
            }
            CanScheduler::DeadlineMonotonic => {
                for (id, index) in (FIRST..END).zip(self.by_deadline()) {
                    all[index] = Some(MessageId::Fixed(id, false));
                }
            }
            CanScheduler::Mts => {
                let (classes, mut ranks) = (self.classes(), [0u16; 3]);
                // A filter that ignores the region of a deadline compares the last five bits of an
                // identifier and the first: it tells 32 messages below those of high speed apart.
                let low = classes.iter().filter(|class| **class == CanClass::Low).count();
                ranks[CanClass::NonRealTime as usize] = u16::try_from(low).unwrap_or(u16::MAX);
                for index in self.by_deadline() {
                    let class = classes[index];
                    let rank = &mut ranks[class as usize];
                    all[index] = under_mts(class, *rank);
                    *rank += 1;
                }
            }
        }
        all
    }

    /// Returns the messages of this host, the most urgent first, with their identifiers. Their
    /// places are their streams at the controller.
    #[must_use]
    pub fn streams(&self) -> Vec<(usize, MessageId)> {
        let own = |index: &usize| matches!(self.messages[*index].sender, CanSender::Process(_));
        let names = self.names();
        let all = (0..self.messages.len()).filter(own);
        let mut streams: Vec<(usize, MessageId)> =
            all.filter_map(|index| Some((index, names[index]?))).collect();
        // As arbitration has it: of equal first eleven bits the standard identifier wins.
        streams.sort_by_key(|(_, id)| match *id {
            MessageId::Code(code) => (0, u32::from(code), false, 0),
            MessageId::Fixed(id, true) => (1, id >> 18, true, id),
            MessageId::Fixed(id, false) => (1, id, false, 0),
        });
        streams
    }

    /// Returns the longest time of a frame of this message, if its bus has a rate.
    #[must_use]
    pub fn frame(&self, message: &CanMessage) -> Option<Nanos> {
        let bits = wire::worst(false, message.bytes.into());
        Some(BitRate::new(self.rate).ok()?.time(bits.into()))
    }

    /// Returns what the common time of a bus under MTS follows from, if a frame of it is through
    /// within `late`. Without [`CanNetwork::time`] there is none.
    #[must_use]
    pub fn time_base(&self, late: Nanos) -> Option<TimeBase> {
        let time = self.time?;
        let period = self.messages[time.message].period_ns?;
        // The master waits by a clock that may be fast, and no two frames are closer than `period`.
        let interval = u128::from(period) * (PPM + u128::from(time.drift_ppm));
        Some(TimeBase {
            interval: Nanos(u64::try_from(interval.div_ceil(PPM)).unwrap_or(u64::MAX)),
            late,
            losses: time.losses,
            drift_ppm: time.drift_ppm,
            stamp: Nanos(time.read_ns),
            grain: Nanos(time.step_ns),
        })
    }

    /// Returns how late a frame of the time is at most by its deadline, which is before the next.
    #[must_use]
    pub fn time_late(&self) -> Option<Nanos> {
        let message = &self.messages[self.time?.message];
        let period = message.period_ns?;
        Some(Nanos(message.deadline_ns.unwrap_or(period).min(period.saturating_sub(1))))
    }

    /// Returns what nodes of this host know of a bus under MTS whose nodes renew by their clocks.
    /// It is there if the description writes all of it.
    #[must_use]
    pub fn mts_terms(&self) -> Option<MtsTerms> {
        let (epoch_ns, clocks_ns, renewal_ns) = (self.epoch_ns?, self.clocks_ns?, self.renewal_ns?);
        let message = self.time?.message;
        let Some(MessageId::Fixed(time_id, false)) = self.names()[message] else { return None };
        let base = self.time_base(self.time_late()?)?;
        let classes = self.classes();
        let high = self.messages.iter().zip(classes).filter(|(_, it)| *it == CanClass::High);
        let distance = |message: &CanMessage| {
            Some(Nanos(message.deadline_ns.or(message.period_ns)?) - self.frame(message)?)
        };
        let longest = high.filter_map(|(message, _)| distance(message)).max();
        // The last node renews so long after the end of an epoch, and each clock is off.
        let reach = longest.unwrap_or(Nanos(1)) + Nanos(2 * clocks_ns + renewal_ns + 1);
        Some(MtsTerms {
            epoch_ns,
            reach_ns: reach.0,
            clocks_ns,
            renewal_ns,
            time_id,
            interval_ns: base.interval.0,
            late_ns: base.late.0,
            read_ns: base.stamp.0,
            step_ns: base.grain.0,
            drift_ppm: base.drift_ppm,
            losses: base.losses,
        })
    }

    /// Returns whether this host is the master of the common time: the driver of its controller
    /// sends the message of this place then.
    #[must_use]
    pub fn leads(&self, message: usize) -> bool {
        let is_own = matches!(self.messages[message].sender, CanSender::Process(_));
        is_own && self.time.is_some_and(|time| time.message == message)
    }

    /// Returns the processes of this host that send, in the order of their first messages, without
    /// a driver that sends the time only.
    #[must_use]
    pub fn senders(&self) -> Vec<&str> {
        let mut senders: Vec<&str> = Vec::new();
        for (place, message) in self.messages.iter().enumerate() {
            if let CanSender::Process(name) = &message.sender
                && !self.leads(place)
                && !senders.contains(&name.as_str())
            {
                senders.push(name);
            }
        }
        senders
    }
}

/// Returns the identifier under MTS of the message of this rank in its class.
fn under_mts(class: CanClass, rank: u16) -> Option<MessageId> {
    let fixed = |id: Result<StandardId, MtsRefusal>| {
        id.ok().map(|id| MessageId::Fixed(id.as_raw().into(), false))
    };
    match class {
        CanClass::High => (rank < HIGH_SPEED).then_some(MessageId::Code(rank as u8)),
        CanClass::Low => fixed(low_speed_id(rank)),
        CanClass::NonRealTime if rank >= NON_REAL_TIME - BEACONS => None,
        CanClass::NonRealTime => fixed(non_real_time_id(rank)),
    }
}
