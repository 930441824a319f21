//! The bill of an output pipe whose writer may fill it: from `write` until the driver knows that a
//! message is through on the device's own bus.
//!
//! The driver takes messages out of the ring as long as the device has room for them, those of
//! several channels in turn, and keeps a number of transfers open. So a writer that writes as much
//! as the ring takes breaks no assumption: it waits for itself. The theorem is in
//! `docs/pipes-proofs.md`.

use super::item::{Basis, Bill, What};
use super::output::Drain;
use super::service::Service;
use super::steps::{self, Demand, Messages};
use crate::size::Bucket;
use diapason_abi::Nanos;

/// The driver's thread that is woken by a write into an empty ring. All messages written before it
/// looks are one job: it does not matter how often it is woken.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// The thread's rest after each look.
    pub rest: Nanos,
    /// The longest time of a look.
    pub work: Nanos,
    pub service: &'a dyn Service,
}

/// The way from the ring to the device's bus.
#[derive(Clone, Copy)]
pub struct Pump<'a> {
    /// The longest time from `write` until the driver is told. Messages of a chain come late in the
    /// same way (`docs/pipes-proofs.md`).
    pub told: Nanos,
    /// The thread that takes the first message.
    pub look: Look<'a>,
    /// Messages of the channel that the ring holds.
    pub slots: u64,
    /// Transfers of one message each that are open at once, and the longest time from the begin of
    /// one until another has begun in its place.
    pub transfers: u64,
    pub round: Nanos,
    /// Messages of all channels that are taken out of rings and have no transfer yet, at most.
    pub ahead: u64,
    /// Channels that are taken from in turn, this one included.
    pub channels: u64,
    /// How the device sends. It holds so many messages of the channel; the driver takes no more.
    pub drain: Drain,
    /// The longest time from the end of a message on the device's bus until the driver knows and
    /// has taken another.
    pub back: Nanos,
}

impl Pump<'_> {
    /// `round` with so many transfers open that take at most so long: one that has ended is known
    /// by the way of a message that comes, which has this bill.
    #[must_use]
    pub fn round(transfer: Nanos, open: u64, back: &Bill) -> Nanos {
        let told = [What::Moderation, What::TopHalf, What::BottomHalf];
        let told = told.iter().filter_map(|what| back.item(*what));
        told.fold(Nanos(transfer.0.saturating_mul(open)), |sum, item| sum + item.value)
    }

    /// Returns the longest time until a write is heard of: a look may just have begun, and missed
    /// it.
    fn heard(&self) -> Nanos {
        let Look { rest, work, service } = self.look;
        service.any(work) + rest + service.any(work)
    }

    /// Returns the longest time of the first message from the ring to the device.
    fn carried(&self) -> Nanos {
        let rounds = self.ahead.div_ceil(self.transfers.max(1)).saturating_add(1);
        Nanos(self.round.0.saturating_mul(rounds))
    }

    /// Returns the longest time of each further one: of the slowest of transfers, bus and the room
    /// in the device.
    fn each(&self) -> Nanos {
        let loops = self.carried() + self.drain.first + self.drain.each + self.back;
        let room = loops.0.div_ceil(self.drain.holds.max(1));
        self.turn().max(Nanos(room)).max(self.drain.each)
    }

    /// Returns the longest time of each further one from the ring, as far as others take their
    /// turns.
    fn turn(&self) -> Nanos {
        let turns = self.round.0.saturating_mul(self.channels).div_ceil(self.transfers.max(1));
        Nanos(turns.max(1))
    }

    /// The longest time out of the ring once the first look is over, if those before a message take
    /// `turns` by their turns, and `waits` behind the ring: it is taken in its turn, or in the next
    /// after there is room for it.
    fn taken(&self, turns: Nanos, waits: Nanos) -> Nanos {
        let first = self.carried() + self.drain.first + self.back + self.turn();
        let room = first + waits - Nanos(self.each().0.saturating_mul(self.drain.holds));
        (self.round + turns.max(room)).min(self.carried() + self.drain.first + waits)
    }
}

/// Returns how long a message takes from `write` at most: as far as what is written keeps
/// `contract`, or as the pipe may be full, whichever is less.
#[must_use]
pub fn pump(pump: &Pump<'_>, contract: &[Bucket]) -> Bill {
    let Pump { drain, slots, back, .. } = *pump;
    let (heard, carried) = (pump.heard(), pump.carried());
    let under_way = slots.saturating_add(drain.holds);
    let full = Drain { each: pump.each(), ..drain };
    let channel = [contract];
    let written = Messages { channels: &channel, ahead: Nanos::ZERO };
    let demand: &Demand<'_> = &[(Nanos(1), &written)];
    let turns = Drain { first: Nanos::ZERO, each: pump.turn(), ..drain };
    let longest =
        |of: &Drain, filled: Nanos| steps::longest_delay(of, demand).unwrap_or(filled).min(filled);
    let filled = full.sync(Nanos(under_way));
    let sent = longest(&full, filled);
    let basis = if sent < filled { Basis::Backlog } else { Basis::Full { messages: under_way } };
    let taken = pump.taken(longest(&turns, turns.sync(Nanos(slots))), sent - drain.first);
    let rest = carried + sent - taken;

    let mut bill = Bill::new();
    if pump.told > Nanos::ZERO {
        bill.put(What::Written, pump.told, Basis::Given);
    }
    bill.put(What::Taken, heard + taken, basis);
    bill.put(What::Bus, carried.min(rest), Basis::Given);
    bill.put(What::Drain, rest - carried.min(rest), Basis::Given);
    bill.put(What::Back, back, Basis::Given);
    bill.slots = steps::Steps::most(&written, bill.total.0).min(under_way);
    bill.device = bill.slots.min(drain.holds);
    bill
}
