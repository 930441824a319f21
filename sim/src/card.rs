//! The Intel 82574L at register level, and the wire between several of them.
//!
//! A frame takes its time on the wire: preamble, frame, checksum and gap, at the wire's speed. A
//! receiver whose ring has no free descriptor loses the frame and counts it, as silicon does. The
//! model has what the driver in `diapason-ether` uses: one queue each way, legacy descriptors, one
//! message for received frames, exact and broadcast addresses.

use crate::function::{FunctionModel, Note};
use diapason_abi::Nanos;
use diapason_ether::adapter::{BUFFER_BYTES, MODERATION_TICK_NS, register};
use diapason_xhc::Memory;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// The class of adapters for Ethernet.
pub const CLASS: u32 = 0x02_0000;

/// Bytes on the wire besides the frame: preamble, checksum, gap.
const PREAMBLE: usize = 8;
const CHECKSUM: usize = 4;
const GAP: usize = 12;
const FRAME_MIN: usize = 60;

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
/// Bits of the last word of a receive descriptor, and of a send descriptor.
const DONE: u32 = 1;
const LAST: u32 = 1 << 1;
/// Commands of a send descriptor that the model knows: last, with checksum, report.
const SEND: u32 = 0b1011;
const REGISTERS: usize = 0x2_0000;

/// Frames on their way to an adapter, with the time at which the last bit arrives.
type Arrivals = VecDeque<(Nanos, Vec<u8>)>;

/// A wire that joins the adapters of a host: each hears what every other sends.
#[derive(Clone, Debug)]
pub struct EthernetWire {
    /// The frames on their way to each adapter.
    ways: Rc<RefCell<Vec<Arrivals>>>,
    /// Picoseconds of a byte.
    byte_ps: u64,
}

impl EthernetWire {
    /// Returns a wire of this speed, in Mbit/s.
    ///
    /// # Panics
    /// If the speed is zero.
    #[must_use]
    pub fn new(mbit: u64) -> EthernetWire {
        EthernetWire { ways: Rc::default(), byte_ps: 8_000_000 / mbit }
    }

    /// Returns the time that so many bytes take, rounded up.
    fn time(&self, bytes: usize) -> Nanos {
        Nanos((bytes as u64 * self.byte_ps).div_ceil(1_000))
    }

    /// Returns the time from the beginning of a frame to its last bit.
    fn frame(&self, bytes: usize) -> Nanos {
        self.time(PREAMBLE + bytes.max(FRAME_MIN) + CHECKSUM)
    }

    /// Puts a frame whose last bit is sent at `end` on the way to all others. It arrives when the
    /// frames before it are through.
    fn carry(&self, from: usize, end: Nanos, frame: &[u8]) {
        for (place, way) in self.ways.borrow_mut().iter_mut().enumerate() {
            if place != from {
                let before = way.back().map_or(Nanos::ZERO, |(at, _)| *at + self.time(GAP));
                let at = end.max(before + self.frame(frame.len()));
                way.push_back((at, frame.to_vec()));
            }
        }
    }
}

/// An adapter at register level, at one end of an [`EthernetWire`].
#[derive(Debug)]
pub struct Card {
    registers: Vec<u32>,
    wire: EthernetWire,
    place: usize,
    /// Frames that the driver posted: when the last bit is sent, and the descriptor to mark.
    sending: VecDeque<(Nanos, u64)>,
    /// When the wire is free for the next frame.
    free: Nanos,
    rung: bool,
    /// When it interrupted last, and when it will because that was not long ago.
    last: Option<Nanos>,
    due: Option<Nanos>,
    notes: Vec<Note>,
}

impl Card {
    /// Returns an adapter at the end of a wire.
    #[must_use]
    pub fn new(wire: &EthernetWire) -> Card {
        let place = wire.ways.borrow().len();
        wire.ways.borrow_mut().push(VecDeque::new());
        Card {
            registers: vec![0; REGISTERS / 4],
            wire: wire.clone(),
            place,
            sending: VecDeque::new(),
            free: Nanos::ZERO,
            rung: false,
            last: None,
            due: None,
            notes: Vec::new(),
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
            let [a, b, c, d, e, f, g, h, low, high, _, command, ..] = descriptor;
            let mut frame = vec![0; usize::from(u16::from_le_bytes([low, high]))];
            let address = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
            if memory.read(address, &mut frame).is_err() {
                return self.denied("read a frame");
            }
            if u32::from(command) == SEND && !frame.is_empty() {
                let bytes = frame.len().max(FRAME_MIN);
                frame.resize(bytes, 0);
                let end = self.free.max(now) + self.wire.frame(bytes);
                self.free = end + self.wire.time(GAP);
                self.wire.carry(self.place, end, &frame);
                self.sending.push_back((end, at));
            } else {
                self.notes.push(Note::Other("an adapter skips a frame of another kind".into()));
            }
            self.set(register::TDH, (head + 1) % length);
        }
    }

    /// Returns whether a frame is for this adapter.
    fn is_own(&self, frame: &[u8]) -> bool {
        let Some(to) = frame.first_chunk::<6>() else { return false };
        let high = self.get(register::RAH);
        let own = self.get(register::RAL).to_le_bytes().into_iter().chain(high.to_le_bytes());
        let exact = high & RAH_VALID != 0 && own.take(6).eq(*to);
        exact || *to == [0xff; 6] && self.get(register::RCTL) & RCTL_BROADCAST != 0
    }

    /// Puts a frame that arrived into the buffers of the ring, or loses it.
    fn receive(&mut self, now: Nanos, frame: &[u8], memory: &mut dyn Memory) {
        let length = self.get(register::RDLEN) / 16;
        if self.get(register::RCTL) & RCTL_ON == 0 || length == 0 || !self.is_own(frame) {
            return;
        }
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
            let last = if number + 1 == pieces { LAST } else { 0 };
            let words = [piece.len() as u32, DONE | last];
            let written = memory
                .read(at, &mut address)
                .and_then(|()| memory.write(u64::from_le_bytes(address), piece))
                .and_then(|()| memory.write(at + 8, &words[0].to_le_bytes()))
                .and_then(|()| memory.write(at + 12, &words[1].to_le_bytes()));
            if written.is_err() {
                return self.denied("write a frame");
            }
            head = (head + 1) % length;
        }
        self.set(register::RDH, head);
        self.set(register::ICR, self.get(register::ICR) | RECEIVED);
        self.interrupt(now);
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
        self.registers.fill(0);
        self.sending.clear();
        (self.rung, self.last, self.due) = (false, None, None);
    }
}

impl FunctionModel for Card {
    fn read(&mut self, _: Nanos, offset: u64, bytes: u8) -> u64 {
        let offset = offset as usize;
        if bytes != 4 || !offset.is_multiple_of(4) || offset >= REGISTERS {
            return u64::MAX;
        }
        let value = match offset {
            register::EECD => EECD_READ,
            register::STATUS => {
                let stopped = self.get(register::CTRL) & CTRL_MASTER_OFF != 0;
                STATUS_LINK | if stopped { 0 } else { STATUS_MASTER }
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
        match offset {
            register::CTRL if value & CTRL_RESET != 0 => self.reset(),
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
        let sent = self.sending.front().map_or(Nanos::FOREVER, |(end, _)| *end);
        let ways = self.wire.ways.borrow();
        let comes = ways[self.place].front().map_or(Nanos::FOREVER, |(at, _)| *at);
        sent.min(comes).min(self.due.unwrap_or(Nanos::FOREVER))
    }

    fn advance(&mut self, now: Nanos, memory: &mut dyn Memory) {
        while let Some((_, at)) = self.sending.pop_front_if(|(end, _)| *end <= now) {
            if memory.write(at + 12, &DONE.to_le_bytes()).is_err() {
                self.denied("write its ring");
            }
        }
        loop {
            let came = self.wire.ways.borrow_mut()[self.place].pop_front_if(|(at, _)| *at <= now);
            let Some((at, frame)) = came else { break };
            self.receive(at, &frame, memory);
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
        self.free = Nanos::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_ether::adapter::{self, AdapterRegisters, RING, RingMemory};
    use diapason_xhc::Denied;

    const RINGS_AT: u64 = 0x10_0000;
    const BUFFERS_AT: u64 = 0x20_0000;

    /// An adapter with its memory, as a driver reaches both.
    struct Host {
        card: RefCell<Card>,
        memory: RefCell<Vec<u8>>,
        now: std::cell::Cell<Nanos>,
    }

    struct Reach<'a>(&'a mut [u8]);

    impl Reach<'_> {
        fn place(&mut self, address: u64, bytes: usize) -> Result<&mut [u8], Denied> {
            let at = address.checked_sub(RINGS_AT).ok_or(Denied)? as usize;
            self.0.get_mut(at..at + bytes).ok_or(Denied)
        }
    }

    impl Memory for Reach<'_> {
        fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), Denied> {
            bytes.copy_from_slice(self.place(address, bytes.len())?);
            Ok(())
        }

        fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Denied> {
            self.place(address, bytes.len())?.copy_from_slice(bytes);
            Ok(())
        }
    }

    impl Host {
        fn new(wire: &EthernetWire) -> Host {
            let memory = RefCell::new(vec![0; 0x14_0000]);
            Host { card: RefCell::new(Card::new(wire)), memory, now: Default::default() }
        }

        fn pass(&self, until: Nanos) {
            self.now.set(until);
            self.card.borrow_mut().advance(until, &mut Reach(&mut self.memory.borrow_mut()));
        }

        fn rang(&self) -> bool {
            !self.card.borrow_mut().take_interrupts(self.now.get()).is_empty()
        }

        fn put(&self, buffer: u16, frame: &[u8]) {
            let at = (address(buffer) - RINGS_AT) as usize;
            self.memory.borrow_mut()[at..at + frame.len()].copy_from_slice(frame);
        }

        fn bytes(&self, buffer: u16, length: usize) -> Vec<u8> {
            let at = (address(buffer) - RINGS_AT) as usize;
            self.memory.borrow()[at..at + length].to_vec()
        }
    }

    impl AdapterRegisters for &Host {
        fn read(&self, register: usize) -> u32 {
            self.card.borrow_mut().read(self.now.get(), register as u64, 4) as u32
        }

        fn write(&self, register: usize, value: u32) {
            let mut memory = self.memory.borrow_mut();
            let (now, register) = (self.now.get(), register as u64);
            self.card.borrow_mut().write(now, register, 4, value.into(), &mut Reach(&mut memory));
        }
    }

    impl RingMemory for &Host {
        fn read(&self, offset: usize) -> u32 {
            u32::from_le_bytes(*self.memory.borrow()[offset..].first_chunk().unwrap())
        }

        fn write(&self, offset: usize, value: u32) {
            self.memory.borrow_mut()[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
        }

        fn bus_address(&self, offset: usize) -> u64 {
            RINGS_AT + offset as u64
        }
    }

    fn address(buffer: u16) -> u64 {
        BUFFERS_AT + u64::from(buffer) * BUFFER_BYTES as u64
    }

    fn frame(to: u8, number: u8, bytes: usize) -> Vec<u8> {
        let mut frame = vec![number; bytes];
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, to]);
        frame
    }

    #[test]
    fn frames_take_their_time_and_a_full_ring_loses_them() {
        let wire = EthernetWire::new(1_000);
        let (one, two) = (Host::new(&wire), Host::new(&wire));
        for host in [&one, &two] {
            adapter::quiesce(&host);
            assert!(adapter::is_quiet(&host));
            adapter::reset(&host);
            assert!(adapter::is_reset(&host));
        }
        let (_, mut sender) = adapter::start(&one, [&one; 2], [2, 0, 0, 0, 0, 1]);
        let (mut receiver, _) = adapter::start(&two, [&two; 2], [2, 0, 0, 0, 0, 2]);
        (0..4).for_each(|buffer| receiver.offer(buffer, address(buffer)));
        receiver.publish();
        receiver.arm();
        // A frame for somebody else, then six for it: two more than it has buffers.
        for number in 0..7_u8 {
            one.put(number.into(), &frame(if number == 0 { 9 } else { 2 }, number, 100));
            assert!(sender.send(address(number.into()), 100));
        }
        assert_eq!(sender.settle(), 7);
        // 8 + 100 + 4 bytes, and 12 more between two frames, 8 ns each.
        assert_eq!(one.card.borrow().next_change(), Nanos(896));
        assert_eq!(two.card.borrow().next_change(), Nanos(896));
        two.pass(Nanos(1_887));
        assert!(!two.rang() && receiver.take().is_none());
        two.pass(Nanos(1_888));
        assert!(two.rang());
        two.pass(Nanos(10_000));
        assert!(!two.rang(), "one interrupt until it is armed again");
        for number in 1..5_u8 {
            let taken = receiver.take().unwrap();
            assert_eq!((taken.length, taken.fault), (100, None));
            assert_eq!(two.bytes(taken.buffer, 100), frame(2, number, 100));
        }
        assert!(receiver.take().is_none());
        assert_eq!((receiver.lost(), receiver.lost()), (2, 0));
        one.pass(Nanos(896 + 5 * 992));
        assert_eq!(sender.settle(), 1);
        one.pass(Nanos(896 + 6 * 992));
        assert_eq!(sender.settle(), 0);
        let places: Vec<usize> = (0..RING).map_while(|_| sender.vacant()).take(1).collect();
        assert_eq!(places, [7]);
    }

    #[test]
    fn memory_that_is_not_the_drivers_stops_the_adapter() {
        let wire = EthernetWire::new(100);
        let host = Host::new(&wire);
        let (mut receiver, mut sender) = adapter::start(&host, [&host; 2], [2, 0, 0, 0, 0, 1]);
        receiver.offer(0, 4_096);
        receiver.publish();
        assert!(sender.send(16, 60));
        assert_eq!(host.card.borrow_mut().take_notes().len(), 1);
        assert_eq!(sender.settle(), 1, "it is never sent");
        assert_eq!(host.card.borrow().next_change(), Nanos::FOREVER);
    }
}
