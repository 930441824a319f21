//! Event rings and the interrupts that announce them: segments, back-pressure, moderation.

use crate::{Memory, Xhc};
use diapason_abi::Nanos;
use diapason_usb::register::interrupter::{self as register, BUSY, ENABLE, PENDING};
use diapason_usb::trb::{Completion, Kind, Trb};
use std::collections::VecDeque;

/// The unit of moderation.
const TICK: u64 = 250;
/// Moderation after reset: 1 ms.
const DEFAULT_INTERVAL: u32 = 4_000;
/// Blocks of a segment.
const SEGMENT: core::ops::RangeInclusive<u32> = 16..=4096;
/// Events that wait for room before one is lost. A controller that waits makes no more than the
/// transfers in flight end with.
const HELD_MAX: usize = 4096;

/// A message to the processor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct InterruptMessage {
    pub at: Nanos,
    /// The vector: the number of the interrupter.
    pub vector: u16,
}

/// A disturbance of an interrupt on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disturbance {
    Lost,
    /// The interrupt arrives so much later.
    Delayed(Nanos),
    /// The interrupt arrives twice, the second time so much later.
    Twice(Nanos),
}

#[derive(Debug)]
pub(crate) struct Interrupter {
    management: u32,
    interval: u32,
    table_size: u32,
    table: u64,
    dequeue: u64,
    /// Address and blocks of each segment.
    segments: Vec<(u64, u32)>,
    segment: usize,
    index: u32,
    cycle: bool,
    /// An event wants an interrupt.
    wanted: bool,
    /// No interrupt before this.
    moderated: Nanos,
    /// The driver was told that the ring is full.
    full: bool,
    held: VecDeque<(Trb, bool)>,
}

impl Interrupter {
    /// Returns an interrupter after a reset.
    pub fn new() -> Interrupter {
        Interrupter {
            management: 0,
            interval: DEFAULT_INTERVAL,
            table_size: 0,
            table: 0,
            dequeue: 0,
            segments: Vec::new(),
            segment: 0,
            index: 0,
            cycle: true,
            wanted: false,
            moderated: Nanos::ZERO,
            full: false,
            held: VecDeque::new(),
        }
    }

    /// Position of an address, in blocks from the first.
    fn position(&self, address: u64) -> Option<u64> {
        let mut before = 0;
        for &(base, blocks) in &self.segments {
            let offset = address.wrapping_sub(base) / 16;
            if address >= base && offset < u64::from(blocks) {
                return Some(before + offset);
            }
            before += u64::from(blocks);
        }
        None
    }

    fn enqueue(&self) -> Option<u64> {
        let segment = self.segments.get(self.segment);
        segment.map(|&(base, _)| base.wrapping_add(16 * u64::from(self.index)))
    }

    /// Events that still fit, one place being kept free for ever.
    fn room(&self) -> u64 {
        let total: u64 = self.segments.iter().map(|&(_, blocks)| u64::from(blocks)).sum();
        let ends = (self.enqueue(), self.position(self.dequeue & !0xf));
        let (Some(enqueue), Some(dequeue)) = ends else { return 0 };
        let used = (self.position(enqueue).unwrap_or(0) + total - dequeue) % total;
        total - 1 - used
    }

    /// Something the driver has not read.
    pub fn is_empty(&self) -> bool {
        self.enqueue().is_none_or(|address| address == self.dequeue & !0xf)
    }

    /// Returns where the next event goes and its cycle; the place after it becomes the next.
    fn take_place(&mut self) -> Option<(u64, bool)> {
        let place = (self.enqueue()?, self.cycle);
        self.index += 1;
        if self.index == self.segments[self.segment].1 {
            self.index = 0;
            self.segment += 1;
            if self.segment == self.segments.len() {
                self.segment = 0;
                self.cycle = !self.cycle;
            }
        }
        Some(place)
    }

    /// Places a ring that has no interrupter of its own.
    pub fn place(&mut self, table: u64, size: u32, dequeue: u64) {
        (self.table, self.table_size, self.dequeue) = (table, size, dequeue);
    }

    /// The driver has read on.
    pub fn make_room(&mut self) {
        if self.room() > 1 {
            self.full = false;
        }
    }

    /// Keeps an event until it is written; false if there are too many.
    pub fn hold(&mut self, event: Trb) -> bool {
        let room = self.held.len() < HELD_MAX;
        if room {
            self.held.push_back((event, true));
        }
        room
    }

    /// Returns when it wants to interrupt next.
    pub fn next(&self) -> Nanos {
        let ready = self.wanted && self.dequeue & u64::from(BUSY) == 0;
        if ready { self.moderated } else { Nanos::FOREVER }
    }

    /// Returns whether something waits for room.
    pub fn is_blocked(&self) -> bool {
        !self.held.is_empty()
    }

    fn counter(&self, now: Nanos) -> u32 {
        ((self.moderated - now).0.div_ceil(TICK)).min(0xffff) as u32
    }

    /// Reads the register at `offset`.
    pub fn read(&self, offset: u64, now: Nanos) -> u32 {
        match offset {
            register::MANAGEMENT => self.management,
            register::MODERATION => self.counter(now) << 16 | self.interval,
            register::TABLE_SIZE => self.table_size,
            register::TABLE => self.table as u32,
            0x14 => (self.table >> 32) as u32,
            register::DEQUEUE => self.dequeue as u32,
            0x1c => (self.dequeue >> 32) as u32,
            _ => 0,
        }
    }
}

fn low(old: u64, value: u32) -> u64 {
    old & !0xffff_ffff | u64::from(value)
}

fn high(old: u64, value: u32) -> u64 {
    old & 0xffff_ffff | u64::from(value) << 32
}

impl Xhc {
    pub(crate) fn write_interrupter(
        &mut self,
        memory: &mut dyn Memory,
        which: usize,
        offset: u64,
        value: u32,
    ) {
        let now = self.now;
        if which >= usize::from(self.config.interrupters) {
            return;
        }
        self.used = self.used.max(which + 1);
        let it = &mut self.interrupters[which];
        match offset {
            register::MANAGEMENT => {
                let pending = it.management & PENDING & !value;
                it.management = value & ENABLE | pending;
                self.deliver(which);
            }
            register::MODERATION => {
                it.interval = value & 0xffff;
                it.moderated = now + Nanos(u64::from(value >> 16) * TICK);
                self.announce(which);
            }
            register::TABLE_SIZE => it.table_size = value & 0xffff,
            register::TABLE => it.table = low(it.table, value & !0x3f),
            0x14 => {
                it.table = high(it.table, value);
                self.load_table(memory, which);
            }
            register::DEQUEUE => {
                let busy = it.dequeue as u32 & BUSY & !value;
                it.dequeue = low(it.dequeue, value & !BUSY | busy);
            }
            0x1c => {
                it.dequeue = high(it.dequeue, value);
                self.drained(memory, which);
            }
            _ => {}
        }
    }

    /// Reads the segment table and restarts the ring.
    pub(crate) fn load_table(&mut self, memory: &mut dyn Memory, which: usize) {
        let it = &mut self.interrupters[which];
        let (table, size) = (it.table, it.table_size);
        (it.segment, it.index, it.cycle, it.full) = (0, 0, true, false);
        it.segments.clear();
        if size > 1 << self.config.segments_log2 {
            self.controller_error();
            return;
        }
        for entry in 0..u64::from(size) {
            let address = table.wrapping_add(16 * entry);
            let Some(words) = self.load_words::<4>(memory, address) else { return };
            let base = u64::from(words[1]) << 32 | u64::from(words[0] & !0x3f);
            let blocks = words[2] & 0xffff;
            if !SEGMENT.contains(&blocks) {
                self.controller_error();
                return;
            }
            self.interrupters[which].segments.push((base, blocks));
        }
    }

    /// The driver has read on: events that waited follow, an interrupt if there is something new.
    fn drained(&mut self, memory: &mut dyn Memory, which: usize) {
        let it = &mut self.interrupters[which];
        if it.is_empty() && it.held.is_empty() {
            it.wanted = false;
        }
        it.make_room();
        let blocked = it.is_blocked();
        self.flush(memory, which);
        self.announce(which);
        if blocked && !self.is_blocked() {
            self.resume(memory);
        }
    }

    /// An event for an interrupter; a `quiet` one does not interrupt. A halted controller has none.
    pub(crate) fn post(&mut self, memory: &mut dyn Memory, which: u16, event: Trb, quiet: bool) {
        if self.operational.is_halted() {
            return;
        }
        let which = usize::from(which) % usize::from(self.config.interrupters);
        self.used = self.used.max(which + 1);
        let it = &mut self.interrupters[which];
        if it.held.len() < HELD_MAX {
            it.held.push_back((event, quiet));
        } else {
            self.counts.events_lost += 1;
        }
        self.flush(memory, which);
        self.announce(which);
    }

    pub(crate) fn flush(&mut self, memory: &mut dyn Memory, which: usize) {
        loop {
            let it = &mut self.interrupters[which];
            let Some(&(event, quiet)) = it.held.front() else { return };
            match it.room() {
                0 => return,
                1 if it.full => return,
                1 => {
                    it.full = true;
                    let status = Trb::event_status(Completion::EventRingFull, 0);
                    let event = Trb::new(Kind::HostController, 0, status, 0);
                    self.put(memory, which, event, false);
                }
                _ => {
                    it.held.pop_front();
                    self.put(memory, which, event, quiet);
                }
            }
        }
    }

    fn put(&mut self, memory: &mut dyn Memory, which: usize, event: Trb, quiet: bool) {
        let it = &mut self.interrupters[which];
        let Some((address, cycle)) = it.take_place() else { return };
        it.wanted |= !quiet;
        let _ = self.store_words(memory, address, &event.with_cycle(cycle).words());
    }

    /// Interrupts if it is time.
    pub(crate) fn announce(&mut self, which: usize) {
        let it = &mut self.interrupters[which];
        if it.next() > self.now {
            return;
        }
        it.wanted = false;
        it.management |= PENDING;
        it.dequeue |= u64::from(BUSY);
        it.moderated = self.now + Nanos(u64::from(it.interval) * TICK);
        self.operational.events = true;
        self.deliver(which);
    }

    /// Sends the message of a pending interrupt if that is enabled; sending clears "pending".
    pub(crate) fn deliver(&mut self, which: usize) {
        let it = &mut self.interrupters[which];
        let enabled = it.management == PENDING | ENABLE && self.operational.interrupts();
        if !enabled {
            return;
        }
        it.management &= !PENDING;
        let (at, vector) = (self.now, which as u16);
        let ats: &[Nanos] = match self.disturbances.pop_front() {
            None => &[at],
            Some(Disturbance::Lost) => &[],
            Some(Disturbance::Delayed(by)) => &[at + by],
            Some(Disturbance::Twice(by)) => &[at, at + by],
        };
        self.counts.interrupts += ats.len() as u64;
        self.interrupts.extend(ats.iter().map(|&at| InterruptMessage { at, vector }));
    }

    /// The interrupters software can reach; behind them stands the ring of the debug capability.
    pub(crate) fn host_interrupters(&self) -> &[Interrupter] {
        &self.interrupters[..usize::from(self.config.interrupters)]
    }

    /// Those of them that anything can happen at.
    pub(crate) fn used_interrupters(&self) -> &[Interrupter] {
        &self.interrupters[..self.used]
    }

    /// Returns whether some event waits for room. Then nothing new is begun.
    pub(crate) fn is_blocked(&self) -> bool {
        self.used_interrupters().iter().any(Interrupter::is_blocked)
    }
}
