//! The devices of a description and what joins them: which processes see which registers, which
//! interrupts may come through, which memory devices reach.

use crate::card;
use crate::function::{FunctionModel, Note};
use crate::hpet::{self, Hpet};
use crate::memory::Shared;
use crate::observe::Stray;
use diapason_abi::archive::{Archive, DeviceRecord, Location};
use diapason_abi::{Nanos, PAGE, layout};
use diapason_xhc::{Denied, Memory};
use std::collections::BTreeSet;
use std::ops::Range;

/// Where devices find the first segment made for them.
const DMA: u64 = 0x1000_0000;

/// Returns the bus address of a segment.
pub(crate) const fn address_of(segment: u16) -> u64 {
    DMA + segment as u64 * layout::SLOT
}

struct Slot {
    record: DeviceRecord,
    function: Option<Box<dyn FunctionModel>>,
    /// True if it may reach memory by itself.
    master: bool,
    /// True if its interrupt comes through; `pending` is true if one waits that could not.
    enabled: bool,
    /// True if nobody can hold its interrupt back, as a message of MSI.
    is_bare: bool,
    pending: bool,
    /// The time at which a ring of a doorbell arrives that is on its way.
    coming: Nanos,
    /// The time at which the device does something by itself.
    next: Nanos,
}

/// The declared devices of a host.
pub(crate) struct Bus {
    slots: Vec<Slot>,
    /// Several of its devices are joined by a wire: what one does may move the next change of
    /// another.
    joined: bool,
    /// The registers that are mapped: process and device.
    mapped: BTreeSet<(u16, u16)>,
    /// The time at which the first of the devices does something by itself.
    next: Nanos,
    /// The notes of the devices since the last call.
    pub notes: Vec<Note>,
    /// Segments that somebody has.
    live: BTreeSet<u16>,
    /// Memory used wrongly, since somebody asked.
    strays: Vec<Stray>,
}

impl Bus {
    /// Returns the devices of `archive`, as far as there are models: `functions` are those of PCI
    /// functions, by class, in order.
    pub fn new(archive: &Archive<'_>, mut functions: Vec<(u32, Box<dyn FunctionModel>)>) -> Bus {
        let slots = archive.devices().map(|record| {
            let function: Option<Box<dyn FunctionModel>> = match record.location {
                Location::Address(hpet::ADDRESS) => Some(Box::new(Hpet::default())),
                Location::Pci(pci) => {
                    let found = functions.iter().position(|(class, _)| *class == pci.class);
                    found.map(|index| functions.remove(index).1)
                }
                Location::Address(_) | Location::Message { .. } | Location::Bell { .. } => None,
            };
            let (master, pending, coming) = (false, false, Nanos::FOREVER);
            let (enabled, is_bare, next) = (is_bell(&record), false, Nanos::FOREVER);
            Slot { record, function, master, enabled, is_bare, pending, coming, next }
        });
        let mut slots: Vec<Slot> = slots.collect();
        without_tables(&mut slots);
        let mut bus = Bus {
            joined: slots.iter().filter(|slot| is_card(slot)).count() > 1,
            slots,
            mapped: BTreeSet::new(),
            next: Nanos::FOREVER,
            notes: Vec::new(),
            live: BTreeSet::new(),
            strays: Vec::new(),
        };
        bus.ask_again();
        bus
    }

    /// Asks every device when it does something: what it shares with somebody else was touched.
    pub fn ask_again(&mut self) {
        (0..self.slots.len()).for_each(|device| self.ask(device));
    }

    fn ask(&mut self, device: usize) {
        let slot = &mut self.slots[device];
        let next = slot.function.as_ref().map_or(Nanos::FOREVER, |it| it.next_change());
        slot.next = next.min(slot.coming);
        let all = self.slots.iter().map(|slot| slot.next);
        self.next = all.min().unwrap_or(Nanos::FOREVER);
    }

    /// Memory used wrongly, since the last call.
    pub fn take_strays(&mut self) -> Vec<Stray> {
        std::mem::take(&mut self.strays)
    }

    /// Somebody has a segment from now on, or nobody any more.
    pub fn note_segment(&mut self, segment: u16, lives: bool) {
        if lives {
            self.live.insert(segment);
        } else {
            self.live.remove(&segment);
        }
    }

    /// Lets the devices tell what ended by itself before `end`, where a run ends.
    pub fn settle(&mut self, end: Nanos) {
        let functions = self.slots.iter_mut().filter_map(|slot| slot.function.as_mut());
        functions.for_each(|function| function.settle(end));
    }

    /// The host had no power, and has it again.
    pub fn power_cycle(&mut self, now: Nanos) {
        for slot in &mut self.slots {
            let enabled = is_bell(&slot.record) || slot.is_bare;
            (slot.master, slot.enabled, slot.pending) = (false, enabled, false);
            if let Some(function) = &mut slot.function {
                function.power_cycle(now);
            }
        }
        self.mapped.clear();
        self.live.clear();
        self.ask_again();
    }

    /// PCI functions that are described and not there, one bit each.
    pub fn absent(&self) -> u64 {
        let absent = |slot: &Slot| {
            matches!(slot.record.location, Location::Pci(_)) && slot.function.is_none()
        };
        let slots = self.slots.iter().enumerate().filter(|(_, slot)| absent(slot));
        slots.fold(0, |bits, (index, _)| bits | 1 << index)
    }

    /// Shows or hides a device's registers in a process.
    pub fn attach(&mut self, process: u16, device: u16, visible: bool) {
        if visible {
            self.mapped.insert((process, device));
        } else {
            self.mapped.remove(&(process, device));
        }
    }

    /// Lets a device reach memory, or not.
    pub fn set_master(&mut self, device: u16, enabled: bool) {
        self.slots[usize::from(device)].master = enabled;
    }

    /// Lets an interrupt through, or holds it back. An interrupt that came meanwhile comes now.
    pub fn set_irq(&mut self, record: &DeviceRecord, enabled: bool) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.record.irq == record.irq) {
            slot.enabled = enabled || slot.is_bare;
        }
    }

    /// The ring of a doorbell that is answered here is on its way, and arrives then. One that is
    /// on its way already stands for both.
    pub fn ring(&mut self, number: u16, arrives: Nanos) {
        let is_it = |slot: &Slot| match slot.record.location {
            Location::Bell { number: own, .. } => own == number,
            _ => false,
        };
        if let Some(device) = self.slots.iter().position(is_it) {
            let slot = &mut self.slots[device];
            slot.coming = slot.coming.min(arrives);
            self.ask(device);
        }
    }

    /// The device and offset of an address that a process uses as a register's.
    fn decode(&self, process: u16, address: u64) -> Option<(usize, u64)> {
        let at = address.checked_sub(layout::base(process) + layout::DEVICES)?;
        let (device, offset) = ((at / layout::SLOT) as u16, at % layout::SLOT);
        let slot = self.slots.get(usize::from(device))?;
        let inside = offset < u64::from(slot.record.pages) * PAGE as u64;
        let mapped = self.mapped.contains(&(process, device));
        (inside && mapped).then_some((usize::from(device), offset))
    }

    /// Reads a register; `None` if the process has none there. Where no device is, all bits are
    /// set.
    pub fn read(&mut self, process: u16, address: u64, bytes: u8, now: Nanos) -> Option<u64> {
        let (device, offset) = self.decode(process, address)?;
        let function = self.slots[device].function.as_mut();
        Some(function.map_or(u64::MAX, |function| function.read(now, offset, bytes)))
    }

    /// Writes a register; `None` if the process has none there.
    pub fn write(
        &mut self,
        process: u16,
        address: u64,
        (value, bytes): (u64, u8),
        now: Nanos,
        segments: &mut Segments<'_>,
    ) -> Option<()> {
        let (device, offset) = self.decode(process, address)?;
        let slot = &mut self.slots[device];
        if let Some(function) = &mut slot.function {
            let reach = Reach { device, master: slot.master, live: &self.live };
            let mut window = Window { segments, reach, strays: &mut self.strays };
            function.write(now, offset, bytes, value, &mut window);
        }
        self.collect(device, now);
        Some(())
    }

    /// Returns when a device does something by itself.
    pub fn next_change(&self) -> Nanos {
        self.next
    }

    /// Returns the first device that is due at `now`.
    pub fn due(&self, now: Nanos) -> Option<u16> {
        let device = self.slots.iter().position(|slot| slot.next <= now)?;
        u16::try_from(device).ok()
    }

    /// A device that is wrong about its next change, and what it says about it.
    pub fn stuck(&self) -> Option<(u16, String)> {
        let say = |slot: &Slot| slot.function.as_ref().and_then(|function| function.stuck());
        (0..).zip(&self.slots).find_map(|(device, slot)| Some((device, say(slot)?)))
    }

    /// Lets time pass until `now`.
    pub fn advance(&mut self, now: Nanos, segments: &mut Segments<'_>) {
        for device in 0..self.slots.len() {
            let slot = &mut self.slots[device];
            if slot.coming <= now {
                (slot.coming, slot.pending) = (Nanos::FOREVER, true);
                self.ask(device);
                continue;
            }
            if let Some(function) = &mut slot.function
                && slot.next <= now
            {
                let reach = Reach { device, master: slot.master, live: &self.live };
                let mut window = Window { segments, reach, strays: &mut self.strays };
                function.advance(now, &mut window);
                self.notes.append(&mut function.take_notes());
                self.collect(device, now);
            }
        }
    }

    /// A device was touched: its interrupts reach the described processes.
    fn collect(&mut self, device: usize, now: Nanos) {
        let Some(function) = &mut self.slots[device].function else { return };
        let misuses = function.take_misuses().into_iter();
        let stray =
            |(misuse, address)| Stray { device: device as u16, address, misuse: Some(misuse) };
        self.strays.extend(misuses.map(stray));
        for number in function.take_interrupts(now) {
            let is_it = |(index, slot): (usize, &Slot)| match slot.record.location {
                Location::Message { of, vector } => usize::from(of) == device && vector == number,
                Location::Address(_) => index == device,
                Location::Pci(_) | Location::Bell { .. } => false,
            };
            if let Some(index) = self.slots.iter().enumerate().position(is_it) {
                let slot = &mut self.slots[index];
                // An edge on a line that is held back is lost; a message waits.
                let waits = matches!(slot.record.location, Location::Message { .. });
                slot.pending = slot.enabled || waits;
            }
        }
        if self.joined { self.ask_again() } else { self.ask(device) }
    }

    /// Returns whether an interrupt comes through now.
    pub fn interrupts(&self) -> bool {
        self.slots.iter().any(|slot| slot.pending && slot.enabled)
    }

    /// An interrupt that comes through now: the device it is of.
    pub fn take_interrupt(&mut self) -> Option<u16> {
        let slot = self.slots.iter().position(|slot| slot.pending && slot.enabled)?;
        self.slots[slot].pending = false;
        u16::try_from(slot).ok()
    }
}

fn is_card(slot: &Slot) -> bool {
    let location = slot.record.location;
    matches!(location, Location::Pci(pci) if pci.class == card::CLASS) && slot.function.is_some()
}

/// A doorbell is let through from the start: its core notes a ring that nobody waits for, no more.
/// The core holds it back once it rings too soon.
fn is_bell(record: &DeviceRecord) -> bool {
    matches!(record.location, Location::Bell { .. })
}

/// Finds the functions that send messages without a table. No message of theirs can be held back,
/// and one of which more are described than it sends is not there.
fn without_tables(slots: &mut [Slot]) {
    for device in 0..slots.len() {
        let function = slots[device].function.as_ref();
        let Some(most) = function.and_then(|function| function.most_messages()) else { continue };
        let is_of = |slot: &&mut Slot| match slot.record.location {
            Location::Message { of, .. } => usize::from(of) == device,
            _ => false,
        };
        let described = slots.iter_mut().filter(is_of).map(|slot| {
            (slot.enabled, slot.is_bare) = (true, true);
        });
        if described.count() as u64 > most {
            slots[device].function = None;
        }
    }
}

/// The segments of a system, as devices reach them.
pub(crate) struct Segments<'a>(pub &'a mut [(Shared, u64)]);

/// The memory that one device may reach.
struct Reach<'a> {
    device: usize,
    master: bool,
    live: &'a BTreeSet<u16>,
}

/// The memory that one device reaches.
struct Window<'a, 's> {
    segments: &'a mut Segments<'s>,
    reach: Reach<'a>,
    strays: &'a mut Vec<Stray>,
}

impl Window<'_, '_> {
    fn find(&mut self, address: u64, length: usize) -> Result<&mut [u8], Denied> {
        if !self.reach.master {
            return Err(Denied);
        }
        let found = place(address, length, self.segments.0, self.reach.live);
        let Some((segment, range)) = found else {
            let device = self.reach.device as u16;
            self.strays.push(Stray { device, address, misuse: None });
            return Err(Denied);
        };
        self.segments.0[segment].0.bytes().get_mut(range).ok_or(Denied)
    }
}

/// The segment, and where in it, that `length` bytes at `address` are, if somebody has it.
fn place(
    address: u64,
    length: usize,
    segments: &[(Shared, u64)],
    live: &BTreeSet<u16>,
) -> Option<(usize, Range<usize>)> {
    let at = address.checked_sub(DMA)?;
    let (index, offset) = ((at / layout::SLOT) as usize, (at % layout::SLOT) as usize);
    let (_, pages) = segments.get(index)?;
    let end = offset.checked_add(length).filter(|end| *end <= *pages as usize * PAGE)?;
    live.contains(&(index as u16)).then_some((index, offset..end))
}

impl Memory for Window<'_, '_> {
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), Denied> {
        bytes.copy_from_slice(self.find(address, bytes.len())?);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Denied> {
        self.find(address, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }
}

/// A machine without memory.
#[cfg(test)]
pub(crate) struct Nothing;

#[cfg(test)]
impl Memory for Nothing {
    fn read(&mut self, _: u64, _: &mut [u8]) -> Result<(), Denied> {
        Err(Denied)
    }

    fn write(&mut self, _: u64, _: &[u8]) -> Result<(), Denied> {
        Err(Denied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::{Features, PluggedController};
    use diapason_abi::archive::NONE;

    /// A bus with one doorbell that rings on interrupt 3.
    fn with_bell() -> Bus {
        let location = Location::Bell { core: 1, number: 7 };
        let record = DeviceRecord {
            key: 1,
            allowed: 1,
            location,
            pages: 0,
            irq: 3,
            level: false,
            interval: 1_000_000,
        };
        assert_ne!(record.irq, NONE);
        let mut bus = of_slots(vec![slot(record)]);
        bus.ask_again();
        bus
    }

    fn slot(record: DeviceRecord) -> Slot {
        Slot {
            record,
            function: None,
            master: false,
            enabled: is_bell(&record),
            is_bare: false,
            pending: false,
            coming: Nanos::FOREVER,
            next: Nanos::FOREVER,
        }
    }

    fn of_slots(slots: Vec<Slot>) -> Bus {
        Bus {
            joined: false,
            slots,
            mapped: BTreeSet::new(),
            next: Nanos::FOREVER,
            notes: Vec::new(),
            live: BTreeSet::new(),
            strays: Vec::new(),
        }
    }

    /// A controller without a table of messages, of which so many are described.
    fn without_table(messages: u16) -> Bus {
        let record = |location, irq| DeviceRecord {
            key: 1,
            allowed: 1,
            location,
            pages: 0,
            irq,
            level: false,
            interval: 0,
        };
        let function = diapason_abi::archive::PciFunction {
            class: crate::controller::CLASS,
            vendor: NONE,
            product: NONE,
            instance: 0,
            bar: 0,
        };
        let mut slots = vec![slot(record(Location::Pci(function), NONE))];
        let features = Features { bare: true, ..Features::default() };
        slots[0].function = Some(Box::new(PluggedController::with(features)));
        let message = |vector| slot(record(Location::Message { of: 0, vector }, 100 + vector));
        slots.extend((0..messages).map(message));
        without_tables(&mut slots);
        of_slots(slots)
    }

    #[test]
    fn a_message_without_a_table_is_not_held_back() {
        let mut bus = without_table(8);
        assert_eq!(bus.absent(), 0);
        let record = bus.slots[3].record;
        for enabled in [true, false] {
            bus.set_irq(&record, enabled);
            bus.slots[3].pending = true;
            assert_eq!(bus.take_interrupt(), Some(3));
        }
        bus.power_cycle(Nanos(1));
        bus.slots[3].pending = true;
        assert_eq!(bus.take_interrupt(), Some(3));
        assert_eq!(without_table(9).absent(), 1, "it sends no more than eight");
    }

    fn arrive(bus: &mut Bus, at: Nanos) -> Option<u16> {
        bus.ring(7, at);
        bus.advance(at, &mut Segments(&mut []));
        bus.take_interrupt()
    }

    #[test]
    fn a_doorbell_that_is_held_back_comes_once_it_may() {
        let mut bus = with_bell();
        assert_eq!(arrive(&mut bus, Nanos(1_000)), Some(0));
        let record = bus.slots[0].record;
        bus.set_irq(&record, false);
        assert_eq!(arrive(&mut bus, Nanos(2_000)), None);
        assert_eq!(arrive(&mut bus, Nanos(3_000)), None);
        bus.set_irq(&record, true);
        assert_eq!(bus.take_interrupt(), Some(0));
        assert_eq!(bus.take_interrupt(), None);
    }
}
