//! The Intel 82574L: how a driver starts it, gives it buffers, takes frames and sends them.
//!
//! Registers and memory are traits, so that the same code runs on a model in tests. Each frame has
//! one descriptor and one buffer. A longer frame takes several, and is discarded whole.

use crate::Discard;
use core::sync::atomic::{Ordering, fence};

/// The descriptors of each ring. One of them stays empty, so that a full ring is not an empty one.
pub const RING: usize = 64;
const DESCRIPTOR: usize = 16;
/// The place of the ring for sending in the memory of the rings.
const SENDING: usize = RING * DESCRIPTOR;
/// The bytes of memory that both rings need, from the start of a page.
pub const RING_BYTES: usize = 2 * SENDING;
/// The bytes of a receive buffer.
pub const BUFFER_BYTES: usize = 2_048;

/// The registers of the adapter, 32 bits each.
pub trait AdapterRegisters {
    /// Reads the register at this offset.
    fn read(&self, register: usize) -> u32;
    /// Writes the register at this offset.
    fn write(&self, register: usize, value: u32);
}

/// Memory that the adapter reads and writes, too. No access is left out or moved past another.
pub trait RingMemory {
    /// Reads the word at this offset.
    fn read(&self, offset: usize) -> u32;
    /// Writes the word at this offset.
    fn write(&self, offset: usize, value: u32);
    /// Returns where the adapter finds this offset.
    fn bus_address(&self, offset: usize) -> u64;
}

/// The registers that the driver uses, with the names that Intel gives them.
pub mod register {
    pub const CTRL: usize = 0x0000;
    pub const STATUS: usize = 0x0008;
    pub const EECD: usize = 0x0010;
    pub const CTRL_EXT: usize = 0x0018;
    pub const ICR: usize = 0x00c0;
    pub const ITR: usize = 0x00c4;
    pub const IMS: usize = 0x00d0;
    pub const IMC: usize = 0x00d8;
    pub const EIAC: usize = 0x00dc;
    pub const IVAR: usize = 0x00e4;
    pub const EITR: usize = 0x00e8;
    pub const RCTL: usize = 0x0100;
    pub const TCTL: usize = 0x0400;
    pub const TIPG: usize = 0x0410;
    pub const RDBAL: usize = 0x2800;
    pub const RDBAH: usize = 0x2804;
    pub const RDLEN: usize = 0x2808;
    pub const RDH: usize = 0x2810;
    pub const RDT: usize = 0x2818;
    pub const RDTR: usize = 0x2820;
    pub const RADV: usize = 0x282c;
    pub const TDBAL: usize = 0x3800;
    pub const TDBAH: usize = 0x3804;
    pub const TDLEN: usize = 0x3808;
    pub const TDH: usize = 0x3810;
    pub const TDT: usize = 0x3818;
    pub const MPC: usize = 0x4010;
    pub const RFCTL: usize = 0x5008;
    pub const MTA: usize = 0x5200;
    pub const RAL: usize = 0x5400;
    pub const RAH: usize = 0x5404;
    pub const SYSTIML: usize = 0xb600;
    pub const SYSTIMH: usize = 0xb604;
    pub const TIMINCA: usize = 0xb608;
    pub const TSYNCTXCTL: usize = 0xb614;
    pub const TXSTMPL: usize = 0xb618;
    pub const TXSTMPH: usize = 0xb61c;
    pub const TSYNCRXCTL: usize = 0xb620;
    pub const RXSTMPL: usize = 0xb624;
    pub const RXSTMPH: usize = 0xb628;
    pub const RXCFGL: usize = 0xb634;
}
use register::{CTRL, CTRL_EXT, EECD, EIAC, EITR, ICR, IMC, IMS, ITR, IVAR, MPC, MTA, RAH, RAL};
use register::{RADV, RCTL, RDBAH, RDBAL, RDH, RDLEN, RDT, RDTR, RFCTL, STATUS, TCTL, TDBAH};
use register::{TDBAL, TDH, TDLEN, TDT, TIPG, TSYNCRXCTL, TSYNCTXCTL};

const CTRL_MASTER_OFF: u32 = 1 << 2;
const CTRL_LINK_UP: u32 = 1 << 6;
const CTRL_FORCED: u32 = 1 << 11 | 1 << 12;
const CTRL_RESET: u32 = 1 << 26;
const STATUS_MASTER: u32 = 1 << 19;
const STATUS_LINK: u32 = 1 << 1;
const STATUS_SPEED: u32 = 6;
const EECD_READ: u32 = 1 << 9;
const RCTL_ON: u32 = 1 << 1;
const RCTL_LONG: u32 = 1 << 5;
const RCTL_BROADCAST: u32 = 1 << 15;
const RCTL_STRIP: u32 = 1 << 26;
const TCTL_ON: u32 = 1 << 1;
const TCTL_PAD: u32 = 1 << 3;
/// Collision threshold and distance, as for a full-duplex link.
const TCTL_COLLISIONS: u32 = 15 << 4 | 63 << 12;
const TIPG_GAPS: u32 = 0x60_2008;
/// The first queue for received frames, as a cause of interrupts.
const CAUSE_RECEIVED: u32 = 1 << 20;
/// Received frames send message 0.
const IVAR_RECEIVED: u32 = 1 << 3;
pub(crate) const RAH_VALID: u32 = 1 << 31;
/// Bytes from the registers of one exact address to the next.
pub(crate) const ADDRESS: usize = 8;
const ADDRESSES: usize = 16;
/// Received frames are written back with a bit that says whether the adapter stamped them.
const RFCTL_EXTENDED: u32 = 1 << 15;
const HASH_WORDS: usize = 128;
const EITRS: usize = 5;
/// The unit of the least distance of interrupts, in ns.
pub const MODERATION_TICK_NS: u64 = 256;

/// Places of the status and the length in a receive descriptor that was written back.
const STATUS_WORD: usize = 8;
const LENGTH_WORD: usize = 12;
/// Bits of a status: done, last of its frame, stamped, any error.
const DONE: u32 = 1;
const LAST: u32 = 1 << 1;
const STAMPED: u32 = 1 << 8;
const ERRORS: u32 = 0xff << 24;
/// Bits of the length word of a send descriptor: last, with checksum, report.
const SEND: u32 = (1 | 1 << 1 | 1 << 3) << 24;
/// More bits of that word, and one of the next, for a frame that the adapter has to stamp.
const SEND_DATA: u32 = 1 << 29 | 1 << 20;
const SEND_STAMPED: u32 = 1 << 4;

/// Begins a reset: stops the adapter's accesses to memory, and holds back its interrupts.
pub fn quiesce(registers: &impl AdapterRegisters) {
    registers.write(IMC, u32::MAX);
    registers.write(CTRL, registers.read(CTRL) | CTRL_MASTER_OFF);
}

/// Returns whether the adapter has stopped its accesses to memory.
#[must_use]
pub fn is_quiet(registers: &impl AdapterRegisters) -> bool {
    registers.read(STATUS) & STATUS_MASTER == 0
}

/// Resets the adapter. It needs a millisecond until [`is_reset`].
pub fn reset(registers: &impl AdapterRegisters) {
    registers.write(CTRL, registers.read(CTRL) | CTRL_RESET);
}

/// Returns whether the reset is over and the adapter has read its own settings.
#[must_use]
pub fn is_reset(registers: &impl AdapterRegisters) -> bool {
    registers.read(CTRL) & CTRL_RESET == 0 && registers.read(EECD) & EECD_READ != 0
}

/// A frame that the adapter received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    /// The number of its buffer.
    pub buffer: u16,
    /// The bytes of the frame.
    pub length: usize,
    /// The reason to discard it, if the adapter found one.
    pub fault: Option<Discard>,
    /// The adapter has a stamp of it ([`crate::stamps`]).
    pub stamped: bool,
}

/// The receiving half of a running adapter, with the books of its ring.
#[derive(Debug)]
pub struct FrameReceiver<R, M> {
    registers: R,
    memory: M,
    /// The buffer of each receive descriptor, because the adapter may overwrite addresses.
    owners: [u16; RING],
    /// The next receive descriptor to look at, and the next to give away.
    next: usize,
    tail: usize,
    /// Pieces of a frame that is too long are being taken.
    skipping: bool,
}

/// The sending half of a running adapter, with the books of its ring.
#[derive(Debug)]
pub struct FrameSender<R, M> {
    registers: R,
    memory: M,
    /// The next send descriptor, and how many of them are the adapter's.
    sending: usize,
    unsent: usize,
    oldest: usize,
}

/// Starts an adapter after its reset, with this address. It has no buffers yet. `memories` are two
/// handles of the same memory, one for each half. The halves use different registers and different
/// parts of the memory, so each may have a thread of its own.
#[must_use]
pub fn start<R: AdapterRegisters + Copy, M: RingMemory>(
    registers: R,
    memories: [M; 2],
    mac: [u8; 6],
) -> (FrameReceiver<R, M>, FrameSender<R, M>) {
    let [memory, second] = memories;
    let set = |register, value| registers.write(register, value);
    set(IMC, u32::MAX);
    let _ = registers.read(ICR);
    // A reset does not clear these in every implementation.
    for register in [RCTL, TCTL, ITR, EIAC, IVAR, CTRL_EXT, RDTR, RADV, TSYNCRXCTL, TSYNCTXCTL] {
        set(register, 0);
    }
    (0..EITRS).for_each(|vector| set(EITR + 4 * vector, 0));
    (0..HASH_WORDS).for_each(|word| set(MTA + 4 * word, 0));
    let control = registers.read(CTRL) & !(CTRL_FORCED | CTRL_MASTER_OFF | CTRL_RESET);
    set(CTRL, control | CTRL_LINK_UP);
    let [a, b, c, d, e, f] = mac;
    set(RAL, u32::from_le_bytes([a, b, c, d]));
    set(RAH, u32::from_le_bytes([e, f, 0, 0]) | RAH_VALID);
    (1..ADDRESSES).for_each(|number| set(RAH + ADDRESS * number, 0));
    set(RFCTL, RFCTL_EXTENDED);
    (0..RING_BYTES).step_by(4).for_each(|offset| memory.write(offset, 0));
    let rings = [(RDBAL, RDBAH, RDLEN, RDH, RDT, 0), (TDBAL, TDBAH, TDLEN, TDH, TDT, SENDING)];
    for (low, high, length, head, tail, offset) in rings {
        let address = memory.bus_address(offset);
        set(low, address as u32);
        set(high, (address >> 32) as u32);
        set(length, SENDING as u32);
        set(head, 0);
        set(tail, 0);
    }
    set(TIPG, TIPG_GAPS);
    set(TCTL, TCTL_ON | TCTL_PAD | TCTL_COLLISIONS);
    set(IVAR, IVAR_RECEIVED);
    set(EIAC, CAUSE_RECEIVED);
    set(RCTL, RCTL_ON | RCTL_LONG | RCTL_BROADCAST | RCTL_STRIP);
    let receiver =
        FrameReceiver { registers, memory, owners: [0; RING], next: 0, tail: 0, skipping: false };
    (receiver, FrameSender { registers, memory: second, sending: 0, unsent: 0, oldest: 0 })
}

impl<R: AdapterRegisters, M: RingMemory> FrameReceiver<R, M> {
    /// Returns the registers of the adapter.
    pub const fn registers(&self) -> &R {
        &self.registers
    }

    /// Returns whether one more buffer fits the ring.
    #[must_use]
    #[inline(always)]
    pub const fn has_room(&self) -> bool {
        (self.tail + 1) % RING != self.next
    }

    /// Puts a buffer at this bus address into the ring, if there is room. The adapter gets it with
    /// [`Intel82574::publish`].
    #[inline(always)]
    pub fn offer(&mut self, buffer: u16, address: u64) {
        if !self.has_room() {
            return;
        }
        let at = self.tail * DESCRIPTOR;
        self.memory.write(at, address as u32);
        self.memory.write(at + 4, (address >> 32) as u32);
        self.memory.write(at + 8, 0);
        self.memory.write(at + 12, 0);
        self.owners[self.tail % RING] = buffer;
        self.tail = (self.tail + 1) % RING;
    }

    /// Gives the adapter all buffers that were offered.
    #[inline(always)]
    pub fn publish(&self) {
        fence(Ordering::Release);
        self.registers.write(RDT, self.tail as u32);
    }

    /// Takes the next frame that was received, if there is one. Its buffer is the caller's.
    #[inline(always)]
    pub fn take(&mut self) -> Option<Taken> {
        if self.next == self.tail {
            return None;
        }
        let at = self.next * DESCRIPTOR;
        let status = self.memory.read(at + STATUS_WORD);
        if status & DONE == 0 {
            return None;
        }
        fence(Ordering::Acquire);
        let length = (self.memory.read(at + LENGTH_WORD) & 0xffff) as usize;
        let buffer = self.owners[self.next % RING];
        self.next = (self.next + 1) % RING;
        let fault = if self.skipping || status & LAST == 0 || length > BUFFER_BYTES {
            Some(Discard::Long)
        } else if status & ERRORS != 0 {
            Some(Discard::Damaged)
        } else {
            None
        };
        self.skipping = status & LAST == 0;
        let stamped = status & STAMPED != 0;
        Some(Taken { buffer, length: length.min(BUFFER_BYTES), fault, stamped })
    }

    /// Returns how many descriptors of the ring have a frame now. A driver that takes so many is
    /// done after a bounded time, whatever comes meanwhile.
    #[must_use]
    pub fn ready(&self) -> usize {
        let mut next = self.next;
        let mut count = 0;
        while next != self.tail && self.memory.read(next * DESCRIPTOR + STATUS_WORD) & DONE != 0 {
            next = (next + 1) % RING;
            count += 1;
        }
        count
    }

    /// Keeps interrupts at least so many nanoseconds apart, as far as the adapter can count.
    pub fn moderate(&self, ns: u64) {
        let ticks = ns.div_ceil(MODERATION_TICK_NS).min(u64::from(u16::MAX));
        self.registers.write(EITR, ticks as u32);
    }

    /// Lets the next received frame interrupt once. If a frame came since the last look, it
    /// interrupts at once.
    #[inline(always)]
    pub fn arm(&self) {
        self.registers.write(IMS, CAUSE_RECEIVED);
    }

    /// Returns how many frames the adapter lost since the last call, because it had no buffer.
    #[must_use]
    pub fn lost(&self) -> u32 {
        self.registers.read(MPC)
    }
}

impl<R: AdapterRegisters, M: RingMemory> FrameSender<R, M> {
    /// Returns the registers of the adapter.
    pub const fn registers(&self) -> &R {
        &self.registers
    }

    /// Returns the number of the descriptor that the next frame gets, if there is one. The frame
    /// before in this descriptor was sent, so its buffer is free.
    pub fn vacant(&mut self) -> Option<usize> {
        self.settle();
        (self.unsent < RING - 1).then_some(self.sending)
    }

    /// Sends the frame of so many bytes at this bus address. Returns whether there was room.
    pub fn send(&mut self, address: u64, length: u16) -> bool {
        self.post(address, [u32::from(length) | SEND, 0])
    }

    /// Sends a frame as [`FrameSender::send`] does, and lets the adapter stamp it.
    pub fn send_stamped(&mut self, address: u64, length: u16) -> bool {
        self.post(address, [u32::from(length) | SEND | SEND_DATA, SEND_STAMPED])
    }

    fn post(&mut self, address: u64, [command, more]: [u32; 2]) -> bool {
        self.settle();
        if self.unsent == RING - 1 {
            return false;
        }
        let at = SENDING + self.sending * DESCRIPTOR;
        self.memory.write(at, address as u32);
        self.memory.write(at + 4, (address >> 32) as u32);
        self.memory.write(at + 8, command);
        self.memory.write(at + 12, more);
        self.sending = (self.sending + 1) % RING;
        self.unsent += 1;
        fence(Ordering::Release);
        self.registers.write(TDT, self.sending as u32);
        true
    }

    /// Returns the speed of the link in Mbit/s; 0 if there is none.
    #[must_use]
    pub fn link(&self) -> u32 {
        let status = self.registers.read(STATUS);
        let speed = [10, 100, 1_000, 1_000][(status >> STATUS_SPEED & 3) as usize];
        if status & STATUS_LINK != 0 { speed } else { 0 }
    }

    /// Takes back the descriptors of frames that were sent. Returns how many frames are not.
    pub fn settle(&mut self) -> usize {
        while self.unsent > 0 {
            if self.memory.read(SENDING + self.oldest * DESCRIPTOR + 12) & DONE == 0 {
                break;
            }
            self.oldest = (self.oldest + 1) % RING;
            self.unsent -= 1;
        }
        self.unsent
    }
}
