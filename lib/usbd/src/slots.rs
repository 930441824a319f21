//! Memory of transfers: each device has a piece of the pool, with a fixed place for every transfer
//! that may be pending.

use crate::platform::Platform;
use alloc::vec::Vec;
use diapason_usb::xhci::{Buffer, Dma, Window};

/// Places begin at multiples of this, so that two never share a line of the cache.
const ALIGN: usize = 64;

/// A number of places of the same size.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub bytes: usize,
    pub count: u8,
}

impl Shape {
    const fn stride(self) -> usize {
        self.bytes.next_multiple_of(ALIGN)
    }

    /// Returns the bytes of all these places.
    pub const fn total(self) -> usize {
        self.stride() * self.count as usize
    }
}

/// The memory of all devices.
pub(crate) struct Pool<P: Platform> {
    memory: P::Memory,
    /// Pieces that are taken, by their beginning: where, and how long.
    taken: Vec<(usize, usize)>,
}

impl<P: Platform> Pool<P> {
    /// Returns the pool with nothing taken, and room for notes about `devices` devices.
    pub fn new(memory: P::Memory, devices: usize) -> Pool<P> {
        Pool { memory, taken: Vec::with_capacity(devices) }
    }

    /// Returns all of the memory.
    pub fn window(&self) -> Window {
        Window { base: self.memory.base(), length: self.memory.length() }
    }

    /// Returns how many pieces are taken.
    pub fn taken(&self) -> usize {
        self.taken.len()
    }

    /// Takes a piece with places of these shapes, the smallest first.
    pub fn carve(&mut self, shapes: &'static [Shape]) -> Option<Slots<P>> {
        let length = shapes.iter().map(|shape| shape.total()).sum();
        let mut base = 0;
        let gap = self.taken.iter().position(|(from, taken)| {
            let fits = from - base >= length;
            if !fits {
                base = from + taken;
            }
            fits
        });
        if base + length > self.memory.length() as usize
            || self.taken.len() == self.taken.capacity()
        {
            return None;
        }
        self.taken.insert(gap.unwrap_or(self.taken.len()), (base, length));
        Some(Slots { memory: self.memory.clone(), base, shapes, busy: 0 })
    }

    /// Takes back a piece whose transfers have all ended.
    pub fn give_back(&mut self, slots: &Slots<P>) {
        self.taken.retain(|(from, _)| *from != slots.base);
    }
}

/// The places of one device. One that was taken is the controller's until it is given back.
pub(crate) struct Slots<P: Platform> {
    /// The memory of all devices. This one uses its own piece.
    memory: P::Memory,
    base: usize,
    shapes: &'static [Shape],
    busy: u64,
}

impl<P: Platform> Slots<P> {
    /// Returns a free place for `bytes`, of the smallest size that is enough and has one.
    pub fn take(&mut self, bytes: usize) -> Option<usize> {
        let mut first = 0;
        for shape in self.shapes {
            let end = first + u32::from(shape.count);
            if shape.bytes >= bytes {
                let slot = first + (self.busy >> first).trailing_ones();
                if slot < end {
                    self.busy |= 1 << slot;
                    return Some(slot as usize);
                }
            }
            first = end;
        }
        None
    }

    /// Makes a place free again.
    pub fn give_back(&mut self, slot: usize) {
        self.busy &= !(1 << (slot % 64));
    }

    /// Returns whether all of them are free.
    pub fn are_free(&self) -> bool {
        self.busy == 0
    }

    /// Bytes of the largest.
    pub fn largest(&self) -> usize {
        self.shapes.last().map_or(0, |shape| shape.bytes)
    }

    /// Returns the buffer for the controller.
    pub fn buffer(&self, slot: usize, bytes: usize) -> Buffer {
        let (at, most) = self.place(slot);
        Buffer { address: self.memory.base() + at as u64, length: bytes.min(most) as u32 }
    }

    /// Puts in what is sent.
    pub fn fill(&mut self, slot: usize, bytes: &[u8]) {
        let (at, _) = self.place(slot);
        self.memory.write(at as u64, bytes);
    }

    /// Returns the present content of a place.
    pub fn copy<'a>(&self, slot: usize, bytes: usize, into: &'a mut [u8]) -> &'a [u8] {
        let (at, most) = self.place(slot);
        let count = bytes.min(most).min(into.len());
        let into = &mut into[..count];
        self.memory.read(at as u64, into);
        into
    }

    /// Returns where a place begins, and its bytes.
    fn place(&self, slot: usize) -> (usize, usize) {
        let (mut at, mut left) = (self.base, slot);
        for shape in self.shapes {
            match left.checked_sub(shape.count.into()) {
                None => return (at + left * shape.stride(), shape.bytes),
                Some(rest) => (at, left) = (at + shape.total(), rest),
            }
        }
        (self.base, 0)
    }
}
