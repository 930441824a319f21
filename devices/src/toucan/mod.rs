//! A TouCAN at register level, at a CAN bus that is right to the bit ([`CanBus`]).
//!
//! | file | what |
//! |---|---|
//! | here | the registers, and what the bus does to them |
//! | `buffers` | the sixteen message buffers: what is sent, and where a frame is received |
//!
//! The bus takes the most urgent frame of all buffers at the beginning of each frame. A buffer that
//! is changed while its frame is on the wire does not stop it: the frame goes out, and the buffer
//! gets neither flag nor code from it.
//!
//! **Not in it**: sending the lowest number first (LBUF), one interrupt for each source (the card
//! has one message for all), levels of interrupts, and the wait for the end of a frame before the
//! module stands still: it leaves the bus at once.

mod buffers;

use crate::can::{CanBus, CanPlug};
use buffers::{Buffers, Stored};
use diapason_abi::Nanos;
use diapason_can::WireError;
use diapason_can::bus::{Activity, BusEvent, EventKind, Health};
use diapason_can::toucan::register::{
    BUFFER, COUNTERS, CTRL01, CTRL2, ESTAT, ICR, IFLAG, IMASK, MCR, RX14, RX15, RXG, TIMER,
};
use diapason_can::toucan::{BUFFERS, CLOCK_HZ, LIMITS, WORDS, ctrl01, estat, mcr, timing_of};
use diapason_can::{AnyFrame, wire};

/// The bits of the mask registers that exist: the others read as 0.
const MASK_HIGH: u16 = 0xffef;
const MASK_LOW: u16 = 0xfffe;
/// The error counter from which a controller warns.
const WARNING: u16 = 96;

/// A module at a bus.
pub struct TouCan {
    plug: CanPlug,
    mcr: u16,
    icr: u16,
    ctrl01: u16,
    ctrl2: u16,
    /// High and low word of the masks of most buffers, of 14 and of 15.
    masks: [[u16; 2]; 3],
    /// Errors since they were read, and the flags of bus-off and of errors.
    errors: u16,
    imask: u16,
    iflag: u16,
    /// The flags that were read as 1, of buffers and of errors: only these can be cleared.
    seen: u16,
    seen_errors: u16,
    buffers: Buffers,
    /// When the timer was 0.
    epoch: Nanos,
    on: bool,
    rung: bool,
    notes: Vec<String>,
}

impl TouCan {
    /// Returns a module that was just reset.
    #[must_use]
    pub fn new(bus: &CanBus) -> TouCan {
        let plug = bus.plug_urgent(BUFFERS + 1);
        TouCan {
            plug,
            mcr: mcr::RESET,
            icr: 0x000f,
            ctrl01: 0,
            ctrl2: 0,
            masks: [[MASK_HIGH, MASK_LOW]; 3],
            errors: 0,
            imask: 0,
            iflag: 0,
            seen: 0,
            seen_errors: 0,
            buffers: Buffers::default(),
            epoch: Nanos::ZERO,
            on: false,
            rung: false,
            notes: Vec::new(),
        }
    }

    /// Returns when something happens by itself.
    #[must_use]
    pub fn next_change(&self) -> Nanos {
        self.plug.next_change()
    }

    /// Takes in what happened on the bus until `now`.
    pub fn advance(&mut self, now: Nanos) {
        while let Some(event) = self.plug.poll_due(now) {
            self.hear(event);
        }
    }

    /// Returns whether the module interrupted since the last call.
    pub fn take_interrupt(&mut self) -> bool {
        std::mem::take(&mut self.rung)
    }

    /// Returns what its driver did that silicon does not define, since the last call.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Resets the module, as the power does.
    pub fn reset(&mut self, now: Nanos) {
        self.plug.switch_off(now);
        (self.mcr, self.icr, self.ctrl01, self.ctrl2) = (mcr::RESET, 0x000f, 0, 0);
        self.masks = [[MASK_HIGH, MASK_LOW]; 3];
        (self.errors, self.imask, self.iflag) = (0, 0, 0);
        (self.seen, self.seen_errors, self.on, self.rung) = (0, 0, false, false);
        self.buffers.stop();
        self.epoch = now;
    }

    /// Reads the 16-bit register at an offset.
    pub fn read(&mut self, now: Nanos, offset: usize) -> u16 {
        self.advance(now);
        if let Some((buffer, word)) = place(offset) {
            if let Some(stored) = self.buffers.lock_for(buffer, word) {
                self.note_stored(now, stored);
            }
            return self.buffers.word(buffer, word);
        }
        match offset {
            MCR => self.mcr,
            ICR => self.icr,
            CTRL01 => self.ctrl01,
            CTRL2 => self.ctrl2,
            TIMER => {
                if let Some(stored) = self.buffers.unlock() {
                    self.note_stored(now, stored);
                }
                self.timer(now)
            }
            ESTAT => {
                let status = self.status(now);
                self.errors &= !estat::READ_ONCE;
                self.seen_errors |= status & (estat::BUS_OFF_FLAG | estat::ERROR_FLAG);
                status
            }
            IMASK => self.imask,
            IFLAG => {
                self.seen |= self.iflag;
                self.iflag
            }
            COUNTERS => {
                let (_, transmit, receive) = self.plug.health();
                receive.min(0xff) << 8 | transmit.min(0xff)
            }
            _ => match mask(offset) {
                Some((which, half)) => self.masks[which][half],
                None => 0,
            },
        }
    }

    /// Writes the 16-bit register at an offset.
    pub fn write(&mut self, now: Nanos, offset: usize, value: u16) {
        self.advance(now);
        if let Some((buffer, word)) = place(offset) {
            let plug = self.on.then_some(&self.plug);
            if self.buffers.write(plug, now, buffer, word, value) {
                self.notes.push(format!(
                    "the driver of a TouCAN changes buffer {buffer} while it is active: silicon \
                     may send the old content or the new"
                ));
            }
            return;
        }
        match offset {
            MCR if value & mcr::SOFT_RESET != 0 => self.reset(now),
            MCR => {
                let kept = mcr::NOT_READY | mcr::FREEZE_ACK | mcr::STOP_ACK | mcr::SOFT_RESET;
                self.mcr = value & !kept;
                self.follow(now);
            }
            ICR => self.icr = value & 0x07ef | 0x000f,
            CTRL01 => {
                self.ctrl01 = value & !ctrl01::LOWEST_BUFFER;
                self.follow(now);
            }
            CTRL2 => {
                self.ctrl2 = value;
                self.follow(now);
            }
            TIMER => self.epoch = now,
            ESTAT => self.errors &= value | !self.seen_errors,
            IMASK => {
                // A flag that is there already interrupts now.
                self.rung |= value & !self.imask & self.iflag != 0;
                self.imask = value;
            }
            IFLAG => {
                self.iflag &= value | !self.seen;
                self.seen &= self.iflag;
            }
            _ => {
                if let Some((which, half)) = mask(offset) {
                    self.masks[which][half] = value & [MASK_HIGH, MASK_LOW][half];
                }
            }
        }
    }

    /// Reads the longword at an offset: two registers, that with the lower offset first.
    pub fn read_long(&mut self, now: Nanos, offset: usize) -> u32 {
        let high = self.read(now, offset);
        u32::from(high) << 16 | u32::from(self.read(now, offset + 2))
    }

    /// Writes the longword at an offset: two registers, that with the lower offset first.
    pub fn write_long(&mut self, now: Nanos, offset: usize, value: u32) {
        self.write(now, offset, (value >> 16) as u16);
        self.write(now, offset + 2, value as u16);
    }

    /// Returns the timer, which counts bits.
    fn timer(&self, now: Nanos) -> u16 {
        let elapsed = u128::from((now - self.epoch).0);
        (elapsed * u128::from(self.plug.rate().hertz()) / 1_000_000_000) as u16
    }

    fn status(&self, now: Nanos) -> u16 {
        let (health, transmit, receive) = self.plug.health();
        let confined = match health {
            Health::BusOff => estat::BUS_OFF,
            Health::ErrorPassive => estat::PASSIVE,
            _ => 0,
        };
        let activity = match self.plug.activity(now) {
            Activity::Sending => estat::SENDING,
            Activity::Idle => estat::IDLE,
            Activity::Apart | Activity::Listening => 0,
        };
        let warns = |errors: u16, bit| if errors >= WARNING { bit } else { 0 };
        let warnings = warns(transmit, estat::TX_WARNING) | warns(receive, estat::RX_WARNING);
        self.errors | confined | activity | warnings
    }

    /// Takes part in the bus, or not, as the registers say now.
    fn follow(&mut self, now: Nanos) {
        let stopped = self.mcr & mcr::STOP != 0;
        let frozen = self.mcr & mcr::FREEZE != 0 && self.mcr & mcr::HALT != 0;
        let timing = timing_of(self.ctrl01, self.ctrl2);
        let rate = timing.check(CLOCK_HZ, &LIMITS).ok();
        let fits = rate.is_some_and(|rate| {
            rate == self.plug.rate() && CLOCK_HZ == rate.hertz() * timing.cycles()
        });
        let listens = self.ctrl01 & ctrl01::LOOP != 0;
        let on = !stopped && !frozen && fits && !listens;
        if !stopped && !frozen && !fits && !self.on {
            self.notes.push(String::from(
                "a TouCAN is started at another bit rate than its bus: it takes no part",
            ));
        }
        if on != self.on {
            self.on = on;
            if on {
                self.plug.switch_on(now, false);
                self.buffers.resume(&self.plug, now);
            } else {
                self.plug.switch_off(now);
                self.buffers.pause();
            }
        }
        let still = if on { 0 } else { mcr::NOT_READY };
        let acknowledged = [(stopped, mcr::STOP_ACK), (frozen, mcr::FREEZE_ACK)];
        let acknowledged = acknowledged.iter().filter(|(is, _)| *is);
        self.mcr &= !(mcr::NOT_READY | mcr::STOP_ACK | mcr::FREEZE_ACK);
        self.mcr |= acknowledged.fold(still, |bits, (_, bit)| bits | bit);
    }

    fn hear(&mut self, event: BusEvent) {
        match event.kind {
            EventKind::Sent { ticket, frame: AnyFrame::Classic(frame) } => {
                let begun = self.began(event.time, wire::length(&frame));
                if let Some(buffer) = ticket.and_then(|ticket| self.buffers.sent(ticket, begun)) {
                    self.raise(1 << buffer);
                }
                if !frame.is_remote() {
                    let stored = self.buffers.receive(&self.masks, &frame, begun, true);
                    self.note_arrival(event.time, stored);
                }
            }
            EventKind::Received { frame: AnyFrame::Classic(frame) } => {
                let begun = self.began(event.time, wire::length(&frame) - 1);
                if frame.is_remote() {
                    return self.buffers.answer(&self.plug, event.time, &self.masks, &frame);
                }
                let stored = self.buffers.receive(&self.masks, &frame, begun, false);
                self.note_arrival(event.time, stored);
            }
            EventKind::Error { error, .. } => {
                self.errors |= match error {
                    WireError::Bit => estat::BIT,
                    WireError::Acknowledge => estat::ACK,
                    WireError::Crc => estat::CRC,
                    WireError::Stuff => estat::STUFF,
                    _ => estat::FORM,
                };
                self.errors |= estat::ERROR_FLAG;
                self.rung |= self.ctrl01 & ctrl01::ERROR_MASK != 0;
            }
            EventKind::Health { health: Health::BusOff, .. } => {
                self.errors |= estat::BUS_OFF_FLAG;
                self.rung |= self.ctrl01 & ctrl01::BUS_OFF_MASK != 0;
            }
            EventKind::Dropped { ticket, .. } => self.buffers.dropped(ticket),
            EventKind::Health { .. } | EventKind::Sent { .. } | EventKind::Received { .. } => {}
        }
    }

    /// Returns the timer when a frame began whose `bits` are over at `end`.
    fn began(&self, end: Nanos, bits: u32) -> u16 {
        self.timer(end).wrapping_sub(bits as u16)
    }

    fn note_arrival(&mut self, now: Nanos, stored: Option<Stored>) {
        if let Some(stored) = stored {
            self.note_stored(now, stored);
        }
    }

    fn note_stored(&mut self, now: Nanos, stored: Stored) {
        let Stored(buffer) = stored;
        if buffer == 0 && self.ctrl01 & ctrl01::TIMER_SYNC != 0 {
            self.epoch = now;
        }
        self.raise(1 << buffer);
    }

    /// Sets flags of buffers, one bit each.
    fn raise(&mut self, flags: u16) {
        self.iflag |= flags;
        self.seen &= !flags;
        self.rung |= flags & self.imask != 0;
    }
}

/// Returns the buffer and the word at an offset.
fn place(offset: usize) -> Option<(usize, usize)> {
    let word = offset.checked_sub(BUFFER)? / 2;
    (word < BUFFERS * WORDS).then_some((word / WORDS, word % WORDS))
}

/// Returns which mask and which half of it is at an offset.
fn mask(offset: usize) -> Option<(usize, usize)> {
    let which = [RXG, RX14, RX15].iter().position(|base| (*base..base + 4).contains(&offset))?;
    Some((which, offset / 2 % 2))
}
