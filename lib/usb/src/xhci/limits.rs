//! How much of everything there is, decided once, and where it lies in shared memory.

use crate::trb::BYTES;
use alloc::vec::Vec;
use diapason_abi::Nanos;

/// The only page size of scratchpads that is supported (all known controllers have it).
pub(super) const PAGE: u64 = 4096;
/// Room for a device context of 32 contexts of 64 bytes.
const CONTEXT: u64 = 2048;

/// The sizes of all pools. Nothing is allocated later, but for the bus schedule's own vectors when
/// a device is configured or leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Devices at a time, hubs included.
    pub devices: u8,
    /// Endpoints of all devices together, control endpoints not counted.
    pub pipes: u16,
    /// Blocks of each transfer ring: a power of two from 16 to 4096.
    pub blocks: u16,
    /// Transfers queued or finished and not yet taken, all together.
    pub transfers: u16,
    pub interrupters: u16,
    /// Blocks of each event ring: a power of two up to 4096 with room for two events of each
    /// transfer, one of each port and a few more, so that it cannot overflow.
    pub events: u16,
    /// Root ports served; those beyond stay dark.
    pub ports: u8,
    /// Scratchpad pages the controller may ask for.
    pub scratchpads: u16,
    /// Bytes kept of a configuration: longer ones are refused.
    pub configuration: u16,
    /// Windows of client memory granted at a time.
    pub windows: u8,
    /// How often a controller that says nothing is asked whether it lives.
    pub watch: Nanos,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            devices: 16,
            pipes: 32,
            blocks: 64,
            transfers: 96,
            interrupters: 4,
            events: 256,
            ports: 16,
            scratchpads: 64,
            configuration: 1024,
            windows: 8,
            watch: Nanos::from_millis(100),
        }
    }
}

/// Why these limits cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unusable {
    /// A pool has nothing in it, or `watch` is no time.
    Empty,
    /// `blocks` is not a power of two from 16 to 4096.
    Blocks,
    /// `events` is not a power of two from 16 to 4096, or too few for the transfers.
    Events,
    /// `configuration` is less than 18 bytes.
    Configuration,
    /// A bus makes no sense.
    Buses,
    /// The window is shorter than this many bytes, or does not begin at a page.
    Window(u64),
}

impl Limits {
    /// Checks that the limits make sense.
    ///
    /// # Errors
    /// Returns an error that names the unusable limit.
    pub fn check(&self) -> Result<(), Unusable> {
        let none = [self.pipes, self.transfers, self.interrupters].contains(&0)
            || [self.devices, self.ports, self.windows].contains(&0)
            || self.watch == Nanos::ZERO;
        let ring = |blocks: u16| blocks.is_power_of_two() && (16..=4096).contains(&blocks);
        let events = 2 * u32::from(self.transfers) + u32::from(self.ports) + 8;
        if none {
            Err(Unusable::Empty)
        } else if !ring(self.blocks) {
            Err(Unusable::Blocks)
        } else if !ring(self.events) || u32::from(self.events) < events {
            Err(Unusable::Events)
        } else if self.configuration < 18 {
            Err(Unusable::Configuration)
        } else {
            Ok(())
        }
    }

    /// Bytes of shared memory the driver itself needs, wherever the window lies.
    #[must_use]
    pub fn window_bytes(&self) -> u64 {
        // Every piece is aligned to at most 64 KiB.
        Layout::new(self, 0).end + 0x1_0000
    }
}

/// A range of bus addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Window {
    pub base: u64,
    pub length: u64,
}

impl Window {
    /// Returns whether every byte of `other` is in it. No bytes are nowhere.
    #[must_use]
    pub fn contains(&self, other: Window) -> bool {
        let end = |w: &Window| w.base.checked_add(w.length);
        match (end(self), end(&other)) {
            (Some(mine), Some(theirs)) => {
                other.length > 0 && other.base >= self.base && theirs <= mine
            }
            _ => false,
        }
    }

    /// Returns whether they have a byte in common.
    #[must_use]
    pub fn overlaps(&self, other: Window) -> bool {
        let before = |a: &Window, b: &Window| a.base.saturating_add(a.length) <= b.base;
        !before(self, &other) && !before(&other, self)
    }
}

/// Offsets of everything in the window.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub contexts: u64,
    pub command_ring: u64,
    pub input: u64,
    pub scratch_table: u64,
    pub scratchpads: u64,
    pub tables: Vec<u64>,
    pub event_rings: Vec<u64>,
    pub devices: Vec<DevicePlace>,
    pub pipes: Vec<u64>,
    pub end: u64,
}

/// A device's own memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct DevicePlace {
    pub context: u64,
    pub buffer: u64,
}

/// Blocks of the command ring: one command is under way at a time.
pub(super) const COMMANDS: u16 = 16;

struct Carver {
    base: u64,
    end: u64,
}

impl Carver {
    fn take(&mut self, bytes: u64, align: u64) -> u64 {
        let offset = (self.base + self.end).next_multiple_of(align) - self.base;
        self.end = offset + bytes;
        offset
    }

    /// Returns a ring that crosses no boundary of 64 KiB.
    fn ring(&mut self, blocks: u16) -> u64 {
        let bytes = u64::from(blocks) * BYTES as u64;
        self.take(bytes, bytes.max(64))
    }
}

impl Layout {
    /// Lays out everything that the driver and the controller share, from `base` on.
    pub fn new(limits: &Limits, base: u64) -> Layout {
        let mut carver = Carver { base, end: 0 };
        let many = |n: u16| 0..usize::from(n);
        let contexts = carver.take(2048, 2048);
        let input = carver.take(PAGE, PAGE);
        let scratch_table = carver.take(8 * u64::from(limits.scratchpads), PAGE);
        let scratchpads = carver.take(PAGE * u64::from(limits.scratchpads), PAGE);
        let command_ring = carver.ring(COMMANDS);
        let tables = many(limits.interrupters).map(|_| carver.take(64, 64)).collect();
        let event_rings = many(limits.interrupters).map(|_| carver.ring(limits.events)).collect();
        let devices = many(limits.devices.into())
            .map(|_| DevicePlace {
                context: carver.take(CONTEXT, CONTEXT),
                buffer: carver.take(u64::from(limits.configuration), 64),
            })
            .collect();
        let rings = limits.pipes + u16::from(limits.devices);
        let pipes = many(rings).map(|_| carver.ring(limits.blocks)).collect();
        Layout {
            contexts,
            command_ring,
            input,
            scratch_table,
            scratchpads,
            tables,
            event_rings,
            devices,
            pipes,
            end: carver.end,
        }
    }
}
