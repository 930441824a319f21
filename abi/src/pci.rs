//! A PCI function's configuration as firmware leaves it: where its registers are, and how it sends
//! messages: by a table (MSI-X), or without one (MSI).
//!
//! Nothing here is moved, and no read leads on without an end, whatever the registers say.

use crate::PAGE;
use crate::archive::{Absence, BARS};
use core::ops::Range;

pub const IDENTITY: usize = 0x00;
pub const COMMAND: usize = 0x04;
pub const CLASS: usize = 0x08;
pub const HEADER: usize = 0x0c;
const FIRST_BAR: usize = 0x10;
const CAPABILITIES: usize = 0x34;

/// Bits of the command register, and of the status in its upper half.
pub const MEMORY: u32 = 1 << 1;
pub const BUS_MASTER: u32 = 1 << 2;
const DECODE: u32 = 7;
const NO_LINE: u32 = 1 << 10;
const HAS_CAPABILITIES: u32 = 1 << 20;

/// Where capabilities begin, and how many fit one behind the other into a function's first 256
/// bytes.
const FIRST_CAPABILITY: usize = 0x40;
const CAPABILITIES_MAX: usize = 48;
const POWER: u32 = 0x01;
/// The bits that say how deep a function sleeps.
const SLEEP: u32 = 3;
pub const MSI: u32 = 0x05;
const MSI_ON: u32 = 1 << 16;
/// Position of the binary logarithm of the messages that a function may send, in its control word.
const MSI_GRANTED: u32 = 20;
const MSI_X: u32 = 0x11;
const MSI_X_ON: u32 = 1 << 31;
const MSI_X_HELD_BACK: u32 = 1 << 30;
/// Bytes of an entry of the table, and the offset of its mask.
pub const ENTRY: u64 = 16;
pub const MASK: u64 = 12;

/// A table of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageTable {
    pub capability: usize,
    /// The base address register that it lies behind, and where there.
    pub bar: u8,
    pub offset: u64,
    pub entries: u64,
}

/// The way in which a function can send as many messages as are described.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageKind {
    None,
    /// By a table; the registers that it is among begin at this address.
    Table(MessageTable, u64),
    /// By MSI: as many as this power of two. The capability is at this offset.
    Bare {
        capability: usize,
        log: u32,
    },
}

/// The registers and messages of a function, as far as they are described.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DescribedParts {
    /// The address of the function's registers.
    pub registers: u64,
    /// Pages of them that no program sees, because its messages are there.
    pub hidden: Range<u64>,
    pub messages: MessageKind,
}

/// The registers by which a PCI function is configured.
pub trait FunctionConfiguration {
    fn read(&self, register: usize) -> u32;

    fn write(&self, register: usize, value: u32);

    /// Returns where a capability is.
    #[inline(never)]
    fn capability(&self, wanted: u32) -> Option<usize> {
        if self.read(COMMAND) & HAS_CAPABILITIES == 0 {
            return None;
        }
        let mut at = self.read(CAPABILITIES) as usize & 0xfc;
        for _ in 0..CAPABILITIES_MAX {
            if at < FIRST_CAPABILITY {
                return None;
            }
            let head = self.read(at);
            if head & 0xff == wanted {
                return Some(at);
            }
            at = (head >> 8) as usize & 0xfc;
        }
        None
    }

    /// Wakes the function if firmware left it asleep. It needs 10 ms until it may be read, for
    /// which `rest` waits, and it may have lost its addresses, which are written again. Returns
    /// whether it is awake.
    #[inline(never)]
    fn wake(&self, rest: &mut dyn FnMut()) -> bool {
        let Some(state) = self.capability(POWER).map(|at| at + 4) else { return true };
        if self.read(state) & SLEEP == 0 {
            return true;
        }
        let mut addresses = [0; BARS as usize];
        self.keep(&mut addresses);
        self.write(state, 0);
        rest();
        self.restore(&addresses);
        self.read(state) & SLEEP == 0
    }

    /// Copies all base address registers.
    #[inline(never)]
    fn keep(&self, addresses: &mut [u32; BARS as usize]) {
        for (bar, address) in addresses.iter_mut().enumerate() {
            *address = self.read(FIRST_BAR + 4 * bar);
        }
    }

    /// Writes all base address registers again.
    #[inline(never)]
    fn restore(&self, addresses: &[u32; BARS as usize]) {
        for (bar, address) in addresses.iter().enumerate() {
            self.write(FIRST_BAR + 4 * bar, *address);
        }
    }

    /// Returns the function's registers and messages, if there are as many as described. From now
    /// on it neither decodes addresses nor accesses memory, and it sends no interrupts.
    #[inline(always)]
    fn describe(&self, bar: u8, bytes: u64, messages: u64) -> Result<DescribedParts, Absence> {
        self.write(COMMAND, self.read(COMMAND) & 0xffff & !DECODE | NO_LINE);
        self.switch_off(MSI, MSI_ON);
        self.switch_off(MSI_X, MSI_X_ON);
        let (registers, size) = self.registers(bar).ok_or(Absence::NoRegisters)?;
        let whole_pages = registers.is_multiple_of(PAGE as u64);
        if !whole_pages || size < bytes {
            return Err(Absence::Small);
        }
        let (mut hidden, mut kind) = (0..0, MessageKind::None);
        let table = self.table();
        if let Some(found) = &table
            && found.bar == bar
        {
            let end = found.offset + found.entries * ENTRY;
            hidden = found.offset / PAGE as u64..end.div_ceil(PAGE as u64);
        }
        if messages > 0 {
            kind = match table {
                Some(found) if found.entries >= messages => {
                    let (behind, _) = self.registers(found.bar).ok_or(Absence::Messages)?;
                    MessageKind::Table(found, behind)
                }
                _ => self.bare(messages)?,
            };
        }
        Ok(DescribedParts { registers, hidden, messages: kind })
    }

    /// Clears a bit at the head of a capability, if the function has that.
    #[inline(never)]
    fn switch_off(&self, capability: u32, bit: u32) {
        if let Some(at) = self.capability(capability) {
            self.write(at, self.read(at) & !bit);
        }
    }

    /// Returns the address and size of what a base address register names, if it is memory with an
    /// address.
    fn registers(&self, bar: u8) -> Option<(u64, u64)> {
        const IN_PORTS: u32 = 1;
        const KIND: u32 = 6;
        const WIDE: u32 = 4;
        let register = FIRST_BAR + 4 * bar as usize;
        let low = self.read(register);
        let wide = low & KIND == WIDE && bar + 1 < BARS;
        if low & IN_PORTS != 0 || bar >= BARS {
            return None;
        }
        let mut mask = u64::MAX << 32 | u64::from(self.writable(register));
        let mut address = u64::from(low & !0xf);
        if wide {
            address |= u64::from(self.read(register + 4)) << 32;
            mask = u64::from(self.writable(register + 4)) << 32 | mask & 0xffff_ffff;
        }
        let size = (mask & !0xf).wrapping_neg();
        (address != 0 && size != 0).then_some((address, size))
    }

    /// Returns the bits of a register that can be written.
    fn writable(&self, register: usize) -> u32 {
        let before = self.read(register);
        self.write(register, u32::MAX);
        let bits = self.read(register);
        self.write(register, before);
        bits
    }

    /// Returns the function's table of messages.
    fn table(&self) -> Option<MessageTable> {
        let capability = self.capability(MSI_X)?;
        let place = self.read(capability + 4);
        Some(MessageTable {
            capability,
            bar: (place & 7) as u8,
            offset: u64::from(place & !7),
            entries: u64::from(self.read(capability) >> 16 & 0x7ff) + 1,
        })
    }

    /// Returns how the function sends so many messages by MSI: a power of two.
    fn bare(&self, messages: u64) -> Result<MessageKind, Absence> {
        let capability = self.capability(MSI).ok_or(Absence::Messages)?;
        let log = messages.next_power_of_two().trailing_zeros();
        if self.read(capability) >> 17 & 7 < log {
            return Err(Absence::Messages);
        }
        Ok(MessageKind::Bare { capability, log })
    }

    /// Sends messages without a table to `address`, with these data. Returns where the data are.
    #[inline(never)]
    fn address_bare(&self, capability: usize, address: u32, data: u32) -> usize {
        const WIDE: u32 = 1 << 23;
        let wide = self.read(capability) & WIDE != 0;
        let place = if wide { capability + 12 } else { capability + 8 };
        self.write(capability + 4, address);
        self.write(capability + 8, 0);
        self.write(place, data);
        place
    }

    /// Lets it send messages by MSI to `address`, from `vector` on: that is a multiple of their
    /// number. None of them stays held back.
    fn begin_bare(&self, capability: usize, log: u32, address: u32, vector: u32) {
        const MASKABLE: u32 = 1 << 24;
        let head = self.read(capability);
        let data = self.address_bare(capability, address, vector);
        if head & MASKABLE != 0 {
            self.write(data + 4, 0);
        }
        self.write(capability, head & !(7 << MSI_GRANTED) | log << MSI_GRANTED | MSI_ON);
    }

    /// Lets it send the messages of its table that are not held back there.
    fn begin_table(&self, table: &MessageTable) {
        let head = self.read(table.capability);
        self.write(table.capability, head & !MSI_X_HELD_BACK | MSI_X_ON);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use core::cell::{Cell, RefCell};
    use std::vec::Vec;

    /// A function whose registers are words, some of whose bits can be written.
    struct Synthetic {
        words: RefCell<[u32; 64]>,
        writable: [u32; 64],
        reads: Cell<usize>,
        /// Where its state of power is, and whether it forgets its addresses when it wakes.
        state: Option<usize>,
        forgets: bool,
        never_wakes: bool,
    }

    /// Registers of 64 KiB.
    const BYTES: u64 = 1 << 16;
    const LOW: u64 = 0xfe80_0000;
    const HIGH: u64 = 0x38_0000_0000;

    impl Synthetic {
        /// Returns a function with memory registers at `address`, and no capabilities.
        fn new(address: u64) -> Synthetic {
            let mut function = Synthetic {
                words: RefCell::new([0; 64]),
                writable: [0; 64],
                reads: Cell::new(0),
                state: None,
                forgets: false,
                never_wakes: false,
            };
            let wide = address >> 32 != 0;
            function.place(FIRST_BAR, address as u32 | if wide { 4 } else { 0 }, !0xffff);
            if wide {
                function.place(FIRST_BAR + 4, (address >> 32) as u32, u32::MAX);
            }
            // As firmware leaves a controller: it decodes memory and accesses it.
            function.place(COMMAND, MEMORY | BUS_MASTER, 0x0000_0547);
            function
        }

        fn place(&mut self, register: usize, value: u32, writable: u32) {
            self.words.get_mut()[register / 4] = value;
            self.writable[register / 4] = writable;
        }

        /// Adds a capability before those that are there: its words, and what of them can be
        /// written.
        fn with(mut self, at: usize, words: &[(u32, u32)]) -> Synthetic {
            let next = self.words.get_mut()[CAPABILITIES / 4];
            for (place, (value, writable)) in (at..).step_by(4).zip(words) {
                self.place(place, *value, *writable);
            }
            self.words.get_mut()[at / 4] |= next << 8;
            self.words.get_mut()[CAPABILITIES / 4] = at as u32;
            self.words.get_mut()[COMMAND / 4] |= HAS_CAPABILITIES;
            self
        }

        /// Adds MSI with so many messages, as a power of two; firmware left it as `control` says.
        fn with_msi(self, at: usize, log: u32, masks: bool, wide: bool, control: u32) -> Synthetic {
            let kind = u32::from(masks) << 24 | u32::from(wide) << 23 | log << 17;
            let head = (MSI | kind | control, 7 << MSI_GRANTED | MSI_ON);
            let rest = (0x5555_5555, u32::MAX);
            let address = [(0, !3), rest];
            let mut words = Vec::from([head]);
            words.extend(&address[..if wide { 2 } else { 1 }]);
            words.push((0xffff, 0xffff));
            words.extend(masks.then_some((u32::MAX, u32::MAX)));
            self.with(at, &words)
        }

        fn with_table(self, at: usize, entries: u32, place: u32) -> Synthetic {
            let head = (MSI_X | (entries - 1) << 16, MSI_X_ON | MSI_X_HELD_BACK);
            self.with(at, &[head, (place, 0), (0, 0)])
        }

        /// Adds the capability by which it sleeps, and lets it sleep so deep.
        fn asleep(mut self, at: usize, depth: u32) -> Synthetic {
            self.state = Some(at + 4);
            self.with(at, &[(POWER, 0), (depth, SLEEP | 1 << 8)])
        }

        fn word(&self, register: usize) -> u32 {
            self.words.borrow()[register / 4]
        }
    }

    impl FunctionConfiguration for Synthetic {
        fn read(&self, register: usize) -> u32 {
            self.reads.set(self.reads.get() + 1);
            self.word(register)
        }

        fn write(&self, register: usize, value: u32) {
            let writable = self.writable[register / 4];
            let before = self.word(register);
            let mut after = before & !writable | value & writable;
            let wakes = self.state == Some(register) && before & SLEEP != 0 && after & SLEEP == 0;
            if wakes && self.never_wakes {
                after = before;
            }
            self.words.borrow_mut()[register / 4] = after;
            if wakes && self.forgets {
                let mut words = self.words.borrow_mut();
                words[COMMAND / 4] &= !0xffff;
                for bar in 0..usize::from(BARS) {
                    words[FIRST_BAR / 4 + bar] &= !self.writable[FIRST_BAR / 4 + bar];
                }
            }
        }
    }

    fn open(function: &Synthetic, messages: u64) -> Result<DescribedParts, Absence> {
        function.describe(0, BYTES, messages)
    }

    /// Every kind of MSI, at every place that a capability may have, for every number of messages.
    #[test]
    fn msi_is_programmed_with_and_without_masks() {
        let variants = (0..4).flat_map(|log| [false, true].map(|masks| (log, masks)));
        let variants = variants.flat_map(|(log, masks)| [false, true].map(|w| (log, masks, w)));
        let places = (0x40..=0xe8).step_by(4);
        for ((log, masks, wide), at) in variants.flat_map(|v| places.clone().map(move |at| (v, at)))
        {
            for messages in 1..=9 {
                let function = Synthetic::new(LOW).with_msi(at, log, masks, wide, 0);
                let found = open(&function, messages);
                if messages > 1 << log {
                    assert_eq!(found, Err(Absence::Messages));
                    continue;
                }
                let MessageKind::Bare { capability, log: granted } = found.unwrap().messages else {
                    panic!("{messages} of {log}: no MSI");
                };
                assert_eq!((capability, 1 << granted), (at, messages.next_power_of_two()));
                function.begin_bare(capability, granted, 0xfee0_3000, 0x48);
                let data = at + if wide { 12 } else { 8 };
                assert_eq!(function.word(at) & 0xffff_00ff & !(0x1ff << 16), MSI);
                assert_eq!(function.word(at) >> MSI_GRANTED & 7, granted);
                assert_eq!(function.word(at) & MSI_ON, MSI_ON);
                assert_eq!((function.word(at + 4), function.word(data)), (0xfee0_3000, 0x48));
                assert!(!wide || function.word(at + 8) == 0);
                assert!(!masks || function.word(data + 4) == 0, "a message stays held back");
                // Registers behind the capability are those of others.
                let end = data + if masks { 8 } else { 4 };
                assert!(function.words.borrow()[end / 4..].iter().all(|word| *word == 0));
            }
        }
    }

    /// As long as its driver is not there, a function sends nothing that firmware had it send.
    #[test]
    fn what_firmware_switched_on_is_off() {
        let function = Synthetic::new(LOW)
            .with_msi(0x50, 3, true, true, MSI_ON | 2 << MSI_GRANTED)
            .with_table(0x90, 16, 0x3000);
        function.write(0x90, MSI_X_ON);
        let DescribedParts { messages: MessageKind::Table(table, behind), hidden, .. } =
            open(&function, 4).unwrap()
        else {
            panic!("no table")
        };
        assert_eq!((table.entries, table.offset, behind, hidden), (16, 0x3000, LOW, 3..4));
        assert_eq!(function.word(0x50) & MSI_ON | function.word(0x90) & MSI_X_ON, 0);
        assert_eq!(function.word(COMMAND) & (DECODE | NO_LINE), NO_LINE);
        function.begin_table(&table);
        assert_eq!(function.word(0x90) & (MSI_X_ON | MSI_X_HELD_BACK), MSI_X_ON);
        assert_eq!(function.word(0x50) & MSI_ON, 0, "both kinds at once are not defined");
    }

    #[test]
    fn a_table_that_is_too_small_or_nowhere_does_not_serve() {
        let small = || Synthetic::new(LOW).with_table(0x90, 2, 0x3000);
        assert_eq!(open(&small(), 3), Err(Absence::Messages));
        let with_msi = small().with_msi(0x50, 2, false, true, 0);
        let bare = MessageKind::Bare { capability: 0x50, log: 2 };
        assert_eq!(open(&with_msi, 3).map(|found| found.messages), Ok(bare));
        // Of a register without an address, and of two that no function has.
        for bar in [2, 6, 7] {
            let nowhere = Synthetic::new(LOW).with_table(0x90, 4, 0x3000 | bar);
            let before = *nowhere.words.borrow();
            assert_eq!(open(&nowhere, 3), Err(Absence::Messages));
            assert_eq!(nowhere.words.borrow()[8..], before[8..]);
        }
    }

    #[test]
    fn registers_are_found_anywhere_in_64_bits() {
        for address in [LOW, HIGH, !0xffff] {
            let function = Synthetic::new(address);
            let found = open(&function, 0).unwrap();
            assert_eq!((found.registers, found.hidden), (address, 0..0));
            assert_eq!(function.word(FIRST_BAR) & !0xf, address as u32, "it stays where it was");
            assert_eq!(function.describe(0, BYTES + 1, 0), Err(Absence::Small));
        }
        let unplaced = Synthetic::new(0);
        assert_eq!(open(&unplaced, 0), Err(Absence::NoRegisters));
        let mut in_ports = Synthetic::new(LOW);
        in_ports.place(FIRST_BAR, 0xc001, 0xffe0);
        assert_eq!(open(&in_ports, 0), Err(Absence::NoRegisters));
    }

    /// Lists that lead in a circle, out of the list, or nowhere.
    #[test]
    fn a_list_of_capabilities_has_an_end() {
        for next in (0..=0xff).step_by(1) {
            let circle = Synthetic::new(LOW).with(0x40, &[(0x09 | next << 8, 0)]);
            circle.reads.set(0);
            assert_eq!(circle.capability(MSI), None, "{next:#x}");
            assert!(circle.reads.get() <= CAPABILITIES_MAX + 2);
        }
        let two = Synthetic::new(LOW).with(0x80, &[(0x09 | 0xc0 << 8, 0)]);
        two.words.borrow_mut()[0xc0 / 4] = 0x10 | 0x80 << 8;
        assert_eq!((two.capability(MSI), two.capability(0x10)), (None, Some(0xc0)));
        let silent = Synthetic::new(LOW).with_msi(0x50, 0, false, false, 0);
        silent.words.borrow_mut()[COMMAND / 4] &= !HAS_CAPABILITIES;
        assert_eq!(open(&silent, 1), Err(Absence::Messages));
    }

    #[test]
    fn a_function_that_sleeps_is_woken_and_keeps_its_addresses() {
        for (depth, address, forgets) in (0..4)
            .flat_map(|depth| [LOW, HIGH].map(|address| (depth, address)))
            .flat_map(|(depth, address)| [false, true].map(|forgets| (depth, address, forgets)))
        {
            let mut function = Synthetic::new(address).asleep(0xc8, depth);
            function.forgets = forgets;
            let mut rests = 0;
            assert!(function.wake(&mut || rests += 1));
            assert_eq!(rests, u32::from(depth > 0), "only one that sleeps is waited for");
            assert_eq!(function.word(0xcc) & SLEEP, 0);
            assert_eq!(open(&function, 0).unwrap().registers, address);
        }
        let mut dead = Synthetic::new(LOW).asleep(0xc8, 3);
        dead.never_wakes = true;
        assert!(!dead.wake(&mut || ()));
        assert!(Synthetic::new(LOW).wake(&mut || panic!("it cannot sleep")));
    }
}
