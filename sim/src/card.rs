//! The Intel 82574L at register level.
//!
//! A frame takes its time on the wire ([`EthernetWire`]). A receiver whose ring has no free
//! descriptor loses the frame and counts it, as silicon does. The model has what the driver in
//! `diapason-ether` uses: one queue each way, received frames that are written back in the extended
//! form, legacy descriptors to send and data descriptors for frames with a stamp, one message for
//! received frames, exact and broadcast addresses, and stamps ([`crate::stamps`]).

use crate::ethernet::{Arrival, EthernetWire};
use crate::function::{FunctionModel, Note};
use crate::plug::{EthernetPlug, FrameTap};
use crate::stamps::CardStamps;
use diapason_abi::Nanos;
use diapason_devices::faulty::OwnClock;
use diapason_ether::FRAME_MIN;
use diapason_ether::adapter::{BUFFER_BYTES, MODERATION_TICK_NS, register};
use diapason_xhc::Memory;
use std::collections::VecDeque;

/// The class of adapters for Ethernet.
pub const CLASS: u32 = 0x02_0000;

const CTRL_MASTER_OFF: u32 = 1 << 2;
const CTRL_RESET: u32 = 1 << 26;
const STATUS_MASTER: u32 = 1 << 19;
const STATUS_LINK: u32 = 1 << 1;
const EECD_READ: u32 = 1 << 9;
const RCTL_ON: u32 = 1 << 1;
const RCTL_BROADCAST: u32 = 1 << 15;
const TCTL_ON: u32 = 1 << 1;
const RECEIVED: u32 = 1 << 20;
const IVAR_VALID: u32 = 1 << 3;
const RAH_VALID: u32 = 1 << 31;
/// The registers of an exact address, and how many there are.
const ADDRESS: usize = 8;
const ADDRESSES: usize = 16;
const RFCTL_EXTENDED: u32 = 1 << 15;
/// Bits of the status of a received frame, and of the last word of a send descriptor.
const DONE: u32 = 1;
const LAST: u32 = 1 << 1;
const STAMPED: u32 = 1 << 8;
const CHECKSUM_ERROR: u32 = 1 << 24;
/// Commands of a send descriptor that the model knows: last, with checksum, report. And those of a
/// data descriptor, which may ask for a stamp in its last word.
const SEND: u32 = 0b1011 << 24;
const SEND_DATA: u32 = SEND | 1 << 29 | 1 << 20;
const SEND_STAMPED: u32 = 1 << 4;
const REGISTERS: usize = 0x2_0000;

/// A stranger on the wire who sends one frame again and again, at even distances.
#[derive(Clone, Debug)]
pub struct Flood {
    pub from: Nanos,
    pub until: Nanos,
    pub rate: u64,
    pub frame: Vec<u8>,
    /// The fault in words.
    pub words: String,
}

impl Flood {
    /// Returns when the frame of this number begins; [`Nanos::FOREVER`] if there is none.
    fn begins(&self, number: u64) -> Nanos {
        let after = u128::from(number) * 1_000_000_000 / u128::from(self.rate.max(1));
        let at = self.from + Nanos(u64::try_from(after).unwrap_or(u64::MAX));
        if at < self.until { at } else { Nanos::FOREVER }
    }
}

/// An adapter at register level, at one end of an [`EthernetWire`].
#[derive(Debug)]
pub struct Card {
    registers: Vec<u32>,
    plug: EthernetPlug,
    /// Frames that the driver posted: when the last bit is sent, the descriptor to mark, and when
    /// the plug is passed if that has to be stamped.
    sending: VecDeque<(Nanos, u64, Option<Nanos>)>,
    rung: bool,
    /// When it interrupted last, and when it will because that was not long ago.
    last: Option<Nanos>,
    due: Option<Nanos>,
    notes: Vec<Note>,
    keeps: bool,
    stamps: CardStamps,
    /// Strangers, and how many frames each has sent.
    floods: Vec<(Flood, u64)>,
}

impl Card {
    /// Returns an adapter at the end of a wire.
    #[must_use]
    pub fn new(wire: &EthernetWire) -> Card {
        Card {
            registers: vec![0; REGISTERS / 4],
            plug: EthernetPlug::new(wire.clone()),
            sending: VecDeque::new(),
            rung: false,
            last: None,
            due: None,
            notes: Vec::new(),
            keeps: false,
            stamps: CardStamps::default(),
            floods: Vec::new(),
        }
    }

    /// Lets the registers keep their values through a reset, and those of the clock and the stamps
    /// be memory, as those of an emulator are.
    #[must_use]
    pub fn keeping(self) -> Card {
        Card { keeps: true, ..self }
    }

    /// Returns the adapter with a crystal that sees the host's time so.
    #[must_use]
    pub fn with_crystal(self, crystal: OwnClock) -> Card {
        Card { stamps: CardStamps::new(crystal), ..self }
    }

    /// Returns a handle on the frames that pass its end of the wire.
    #[must_use]
    pub fn tap(&self) -> FrameTap {
        self.plug.tap()
    }

    /// Puts a frame of a stranger, which begins at `begin`, on the way to this adapter.
    pub fn hear(&self, begin: Nanos, frame: &[u8], damaged: bool) {
        self.plug.hear(begin, frame, damaged);
    }

    /// Lets a stranger send to this adapter.
    pub fn flood(&mut self, flood: Flood) {
        self.floods.push((flood, 0));
    }

    /// Takes in the frames that strangers begin until `now`.
    fn strangers(&mut self, now: Nanos) {
        for (flood, sent) in &mut self.floods {
            while flood.begins(*sent) <= now {
                if *sent == 0 {
                    self.notes.push(Note::Fault(flood.words.clone()));
                }
                self.plug.hear(flood.begins(*sent), &flood.frame, false);
                *sent += 1;
            }
        }
    }

    fn get(&self, register: usize) -> u32 {
        self.registers[register / 4]
    }

    fn set(&mut self, register: usize, value: u32) {
        self.registers[register / 4] = value;
    }

    /// Returns the address of a descriptor of the ring whose first register is `low`.
    fn descriptor(&self, low: usize, index: u32) -> u64 {
        let base = u64::from(self.get(low)) | u64::from(self.get(low + 4)) << 32;
        base + 16 * u64::from(index)
    }

    /// Says that the driver gave memory which the adapter may not use. It stops.
    fn denied(&mut self, what: &str) {
        self.notes.push(Note::Other(format!("an adapter may not {what}: it stops")));
        self.set(register::RCTL, 0);
        self.set(register::TCTL, 0);
    }

    /// Sends the frames between the head and the tail of the ring.
    fn send(&mut self, now: Nanos, memory: &mut dyn Memory) {
        let length = self.get(register::TDLEN) / 16;
        if self.get(register::TCTL) & TCTL_ON == 0 || length == 0 {
            return;
        }
        let tail = self.get(register::TDT) % length;
        while self.get(register::TDH) != tail {
            let head = self.get(register::TDH) % length;
            let at = self.descriptor(register::TDBAL, head);
            let mut descriptor = [0; 16];
            if memory.read(at, &mut descriptor).is_err() {
                return self.denied("read its ring");
            }
            let [a, b, c, d, e, f, g, h, low, high, kind, command, more, ..] = descriptor;
            let mut frame = vec![0; usize::from(u16::from_le_bytes([low, high]))];
            let address = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
            let command = u32::from_le_bytes([0, 0, kind, command]);
            let stamped = command == SEND_DATA && u32::from(more) & SEND_STAMPED != 0;
            if memory.read(address, &mut frame).is_err() {
                return self.denied("read a frame");
            }
            if [SEND, SEND_DATA].contains(&command) && !frame.is_empty() {
                let bytes = frame.len().max(FRAME_MIN);
                frame.resize(bytes, 0);
                let [begin, end] = self.plug.send(now, &frame);
                let passes = begin + self.plug.wire.preamble();
                self.sending.push_back((end, at, stamped.then_some(passes)));
            } else {
                self.notes.push(Note::Other("an adapter skips a frame of another kind".into()));
            }
            self.set(register::TDH, (head + 1) % length);
        }
    }

    /// Returns whether a frame is for this adapter.
    fn is_own(&self, frame: &[u8]) -> bool {
        let Some(to) = frame.first_chunk::<6>() else { return false };
        let exact = |number: usize| {
            let low = self.get(register::RAL + ADDRESS * number).to_le_bytes();
            let high = self.get(register::RAH + ADDRESS * number);
            let own = low.into_iter().chain(high.to_le_bytes());
            high & RAH_VALID != 0 && own.take(6).eq(*to)
        };
        (0..ADDRESSES).any(exact)
            || *to == [0xff; 6] && self.get(register::RCTL) & RCTL_BROADCAST != 0
    }

    /// Puts a frame that arrived into the buffers of the ring, or loses it.
    fn receive(&mut self, arrival: &Arrival, memory: &mut dyn Memory) {
        let frame = &*arrival.frame;
        let length = self.get(register::RDLEN) / 16;
        if self.get(register::RCTL) & RCTL_ON == 0 || length == 0 || !self.is_own(frame) {
            return;
        }
        if self.get(register::RFCTL) & RFCTL_EXTENDED == 0 {
            return self.denied("write frames back in the legacy form");
        }
        let wire = &self.plug.wire;
        let passed = arrival.at - wire.frame(frame.len()) + wire.preamble();
        let stamped = !self.keeps && self.stamps.receives(passed, frame);
        let stamped = if stamped { STAMPED } else { 0 };
        let mut head = self.get(register::RDH) % length;
        let free = (self.get(register::RDT) % length + length - head) % length;
        let pieces = frame.chunks(BUFFER_BYTES).count();
        if (free as usize) < pieces {
            self.set(register::MPC, self.get(register::MPC).saturating_add(1));
            return;
        }
        for (number, piece) in frame.chunks(BUFFER_BYTES).enumerate() {
            let at = self.descriptor(register::RDBAL, head);
            let mut address = [0; 8];
            let damage = if arrival.damaged { CHECKSUM_ERROR } else { 0 };
            let last = if number + 1 == pieces { LAST | damage | stamped } else { 0 };
            let words = [0, 0, DONE | last, piece.len() as u32];
            let words: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
            let written = memory
                .read(at, &mut address)
                .and_then(|()| memory.write(u64::from_le_bytes(address), piece))
                .and_then(|()| memory.write(at, &words));
            if written.is_err() {
                return self.denied("write a frame");
            }
            head = (head + 1) % length;
        }
        self.set(register::RDH, head);
        self.set(register::ICR, self.get(register::ICR) | RECEIVED);
        self.interrupt(arrival.at);
    }

    /// Interrupts if a frame came and the driver waits for it, once the least distance is over. The
    /// driver does not wait any more then.
    fn interrupt(&mut self, now: Nanos) {
        let waits = self.get(register::ICR) & self.get(register::IMS) & RECEIVED != 0;
        if waits && self.get(register::IVAR) & IVAR_VALID != 0 {
            let distance = u64::from(self.get(register::EITR) & 0xffff) * MODERATION_TICK_NS;
            let earliest = self.last.map_or(Nanos::ZERO, |last| last + Nanos(distance));
            if now < earliest {
                self.due = Some(earliest);
                return;
            }
            (self.rung, self.last, self.due) = (true, Some(now), None);
            let cleared = self.get(register::EIAC) & RECEIVED;
            self.set(register::ICR, self.get(register::ICR) & !cleared);
            self.set(register::IMS, self.get(register::IMS) & !cleared);
        }
    }

    fn reset(&mut self) {
        if !self.keeps {
            self.registers.fill(0);
        }
        self.stamps.reset();
        self.sending.clear();
        (self.rung, self.last, self.due) = (false, None, None);
    }
}

impl FunctionModel for Card {
    fn read(&mut self, now: Nanos, offset: u64, bytes: u8) -> u64 {
        let offset = offset as usize;
        if bytes != 4 || !offset.is_multiple_of(4) || offset >= REGISTERS {
            return u64::MAX;
        }
        if !self.keeps
            && let Some(value) = self.stamps.read(now, offset)
        {
            return value.into();
        }
        let value = match offset {
            register::EECD => EECD_READ,
            register::STATUS => {
                let stopped = self.get(register::CTRL) & CTRL_MASTER_OFF != 0;
                self.plug.wire.speed() | STATUS_LINK | if stopped { 0 } else { STATUS_MASTER }
            }
            // Reading clears these.
            register::ICR | register::MPC => {
                let value = self.get(offset);
                self.set(offset, 0);
                value
            }
            _ => self.get(offset),
        };
        value.into()
    }

    fn write(&mut self, now: Nanos, offset: u64, bytes: u8, value: u64, memory: &mut dyn Memory) {
        let (offset, value) = (offset as usize, value as u32);
        if bytes != 4 || !offset.is_multiple_of(4) || offset >= REGISTERS {
            return;
        }
        if !self.keeps && self.stamps.write(now, offset, value) {
            return;
        }
        match offset {
            register::CTRL if value & CTRL_RESET != 0 => {
                self.reset();
                self.set(register::CTRL, value & !CTRL_RESET);
            }
            register::IMS => {
                self.set(register::IMS, self.get(register::IMS) | value);
                self.interrupt(now);
            }
            register::IMC => self.set(register::IMS, self.get(register::IMS) & !value),
            register::TDT => {
                self.set(register::TDT, value);
                self.send(now, memory);
            }
            _ => self.set(offset, value),
        }
    }

    fn next_change(&self) -> Nanos {
        let sent = self.sending.front().map_or(Nanos::FOREVER, |(end, ..)| *end);
        let comes = self.plug.next();
        let strangers = self.floods.iter().map(|(flood, sent)| flood.begins(*sent));
        let next = strangers.fold(sent.min(comes), Nanos::min);
        next.min(self.due.unwrap_or(Nanos::FOREVER))
    }

    fn advance(&mut self, now: Nanos, memory: &mut dyn Memory) {
        while let Some((_, at, passes)) = self.sending.pop_front_if(|(end, ..)| *end <= now) {
            passes.into_iter().for_each(|at| self.stamps.sends(at));
            if memory.write(at + 12, &DONE.to_le_bytes()).is_err() {
                self.denied("write its ring");
            }
        }
        self.strangers(now);
        while let Some(arrival) = self.plug.take(now) {
            self.receive(&arrival, memory);
        }
        if let Some(due) = self.due.take_if(|due| *due <= now) {
            self.interrupt(due);
        }
    }

    fn take_interrupts(&mut self, _: Nanos) -> Vec<u16> {
        if std::mem::take(&mut self.rung) { vec![0] } else { Vec::new() }
    }

    fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    fn power_cycle(&mut self, _: Nanos) {
        self.reset();
        self.plug.reset();
    }
}
