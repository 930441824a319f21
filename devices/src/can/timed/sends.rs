//! The frames of a unit: how they get their identifiers, tell to renew, and are renewed.

use super::unit::{Pending, Unit, Waiting, is_time};
use super::{Around, TimedName};
use crate::can::traffic::{numbered, numbered_fd};
use diapason_abi::Nanos;
use diapason_can::bus::Ticket;
use diapason_can::mts::{RENEW_FROM_BITS, TimeFrame, beacon_id, signal_update};
use diapason_can::{AnyFrame, Bus, CanFrame, Id};

/// The time until a message without a period is tried again.
const REST: Nanos = Nanos::from_millis(1);

impl Unit {
    /// Puts a message into the queue. One of high speed at a unit that does not know the epoch is
    /// never sent: later it would come too close to the next one.
    pub fn send(&mut self, now: Nanos, bus: &mut Bus, around: &Around, it: &Pending) {
        let (name, books) = (self.of.messages[it.message].name, &mut self.books[it.message]);
        let (id, start_by) = match name {
            TimedName::Fixed(id) | TimedName::Time(id) => (Some(id), Nanos::FOREVER),
            TimedName::Code { code, distance } => {
                let common = self.time.as_ref().and_then(|time| {
                    time.epoch()?;
                    time.common(self.of.clock.local(it.came))
                });
                let Some(common) = common else {
                    *(if self.knew { &mut books.lost } else { &mut books.early }) += 1;
                    return;
                };
                let start_by = common + distance;
                (self.code(code, start_by, around), start_by)
            }
        };
        let marked = self.tells();
        let frame = id.and_then(|id| self.content(it.message, id, it.number));
        let sent = frame.map(|frame| (frame, bus.send(now, self.node, shown(frame, marked))));
        let Some((frame, Ok(ticket))) = sent else {
            self.refused = now + REST;
            return self.books[it.message].lost += 1;
        };
        let (message, came) = (Some(it.message), it.came);
        self.waiting.push(Waiting { ticket, message, came, start_by, frame, marked });
    }

    /// Sends the frame of the time.
    pub fn send_time(&mut self, now: Nanos, bus: &mut Bus, frame: &TimeFrame) {
        let Some(message) = self.of.messages.iter().position(is_time) else { return };
        let TimedName::Time(id) = self.of.messages[message].name else { return };
        let Ok(frame) = CanFrame::data(id, &frame.bytes()) else { return };
        self.books[message].came += 1;
        let (frame, marked) = (AnyFrame::from(frame), self.tells());
        match bus.send(now, self.node, shown(frame, marked)) {
            Ok(ticket) => {
                let (message, start_by) = (Some(message), Nanos::FOREVER);
                let it = Waiting { ticket, message, came: now, start_by, frame, marked };
                self.waiting.push(it);
            }
            Err(_) => self.books[message].lost += 1,
        }
    }

    fn tells(&self) -> bool {
        self.time.as_ref().is_some_and(|time| time.tells())
    }

    /// Returns the identifier of a high-speed message in the epoch that the unit is in.
    fn code(&self, code: u16, start_by: Nanos, around: &Around) -> Option<Id> {
        let epoch = self.time.as_ref()?.epoch()?;
        around.terms?.epochs.id(code, start_by, epoch).ok().map(Id::from)
    }

    /// Returns the frame of a message of this number.
    fn content(&self, message: usize, id: Id, number: u64) -> Option<AnyFrame> {
        let of = &self.of.messages[message];
        match of.fd {
            true => numbered_fd(id, of.length, number),
            false => numbered(id, of.length, number),
        }
    }

    /// The unit tells from now on that the epoch is over, also if nobody has anything to send.
    pub fn tell(&mut self, now: Nanos, bus: &mut Bus, around: &Around) {
        let beacon = beacon_id(self.number).ok().and_then(|id| CanFrame::data(id, &[]).ok());
        if let Some(frame) = beacon.map(AnyFrame::from)
            && let Ok(ticket) = bus.send(now, self.node, shown(frame, true))
        {
            let (message, start_by) = (None, Nanos::FOREVER);
            let it = Waiting { ticket, message, came: now, start_by, frame, marked: true };
            self.waiting.push(it);
        }
        self.mark(now, bus, around);
    }

    /// All that waits tells to renew from now on.
    pub fn mark(&mut self, now: Nanos, bus: &mut Bus, around: &Around) {
        self.each(|unit, place| {
            if !unit.waiting[place].marked {
                unit.replace(now, bus, place, true);
            }
        });
        self.retry(now, around, |it| !it.marked);
    }

    /// Gives all that waits the identifiers of the epoch, and tells nothing any more. A frame in
    /// arbitration keeps its identifier until that is over, as a controller with buffers that are
    /// changed does.
    pub fn rename(&mut self, now: Nanos, bus: &mut Bus, around: &Around) {
        if self.tells() || self.time.as_ref().is_some_and(|time| time.epoch().is_none()) {
            return;
        }
        self.each(|unit, place| {
            let it = &unit.waiting[place];
            let message = it.message.map(|message| unit.of.messages[message].name);
            if let Some(TimedName::Code { code, .. }) = message
                && let Some(id) = unit.code(code, it.start_by, around)
            {
                unit.waiting[place].frame = unit.waiting[place].frame.with_id(id);
            }
            let it = &unit.waiting[place];
            match message {
                Some(_) if it.marked => unit.replace(now, bus, place, false),
                Some(_) => drop(bus.rename(now, unit.node, it.ticket, it.frame.id())),
                None => unit.drop_beacon(now, bus, place),
            }
        });
        self.retry(now, around, |it| it.marked);
    }

    /// Takes all high-speed messages back that are not on the wire, and tells nothing any more.
    pub fn take_back(&mut self, now: Nanos, bus: &mut Bus, around: &Around) {
        let node = self.node;
        self.each(|unit, place| {
            let Some(message) = unit.waiting[place].message else {
                return unit.drop_beacon(now, bus, place);
            };
            if matches!(unit.of.messages[message].name, TimedName::Code { .. }) {
                if bus.cancel(now, node, unit.waiting[place].ticket) {
                    unit.waiting.remove(place);
                    unit.books[message].lost += 1;
                }
            } else if unit.waiting[place].marked {
                unit.replace(now, bus, place, false);
            }
        });
        self.retry(now, around, |it| it.marked || it.start_by < Nanos::FOREVER);
    }

    /// Does something to each frame that waits, the first requested first.
    fn each(&mut self, mut act: impl FnMut(&mut Unit, usize)) {
        let mut tickets: Vec<Ticket> = self.waiting.iter().map(|it| it.ticket).collect();
        tickets.sort_unstable();
        for ticket in tickets {
            if let Some(place) = self.waiting.iter().position(|it| it.ticket == ticket) {
                act(self, place);
            }
        }
    }

    /// Asks for a frame anew, telling to renew or not, unless it is in arbitration or on the wire.
    fn replace(&mut self, now: Nanos, bus: &mut Bus, place: usize, marked: bool) {
        let it = &mut self.waiting[place];
        if !bus.cancel(now, self.node, it.ticket) {
            return;
        }
        // The frame has just left a place in the queue, so there is room.
        if let Ok(ticket) = bus.send(now, self.node, shown(it.frame, marked)) {
            (it.ticket, it.marked) = (ticket, marked);
        } else if let Some(message) = self.waiting.remove(place).message {
            self.books[message].lost += 1;
        }
    }

    fn drop_beacon(&mut self, now: Nanos, bus: &mut Bus, place: usize) {
        if bus.cancel(now, self.node, self.waiting[place].ticket) {
            self.waiting.remove(place);
        }
    }

    /// Tries again after the arbitration if there are such frames.
    fn retry(&mut self, now: Nanos, around: &Around, left: impl Fn(&Waiting) -> bool) {
        if self.waiting.iter().any(left) {
            self.again = now + around.rate.time(RENEW_FROM_BITS.into());
        }
    }
}

/// Returns the frame, telling to renew or not.
fn shown(frame: AnyFrame, marked: bool) -> AnyFrame {
    match frame {
        AnyFrame::Classic(classic) if marked => {
            signal_update(&classic).map_or(frame, AnyFrame::from)
        }
        _ => frame,
    }
}
