//! The registers of a TouCAN as memory. Flags are cleared as the module clears them, and nothing
//! else happens by itself.

use core::cell::Cell;
use diapason_can::CanFrame;
use diapason_can::toucan::register::{BUFFER, ESTAT, IFLAG};
use diapason_can::toucan::{REGISTERS, ToucanRegisters, WORDS, code, pack};

/// Registers, by longwords. Accesses are counted only if `NOTED`, because that takes instructions.
pub(crate) struct Memory<const NOTED: bool> {
    longwords: [Cell<u32>; REGISTERS / 4],
    accesses: Cell<u64>,
}

impl<const NOTED: bool> Memory<NOTED> {
    /// Returns registers that are all zero.
    pub const fn new() -> Memory<NOTED> {
        Memory { longwords: [const { Cell::new(0) }; REGISTERS / 4], accesses: Cell::new(0) }
    }

    /// Makes all registers zero.
    pub fn clear(&self) {
        self.longwords.iter().for_each(|longword| longword.set(0));
    }

    /// Sets the flag of a buffer whose frame is through.
    pub fn sent(&self, buffer: usize) {
        if let Some(flags) = self.at(IFLAG) {
            flags.set(flags.get() | 1 << (16 + buffer));
        }
    }

    /// Puts a frame into a buffer that hears, and sets its flag.
    pub fn heard(&self, buffer: usize, frame: &CanFrame) {
        let words = pack(code::FULL, frame);
        for (place, pair) in words.as_chunks::<2>().0.iter().enumerate() {
            let offset = BUFFER + 2 * WORDS * buffer + 4 * place;
            if let Some(longword) = self.at(offset) {
                longword.set(u32::from(pair[0]) << 16 | u32::from(pair[1]));
            }
        }
        self.sent(buffer);
    }

    /// Returns how often a register was read or written.
    pub fn accesses(&self) -> u64 {
        self.accesses.get()
    }

    fn at(&self, offset: usize) -> Option<&Cell<u32>> {
        self.longwords.get(offset / 4)
    }

    fn note(&self) {
        if NOTED {
            self.accesses.set(self.accesses.get() + 1);
        }
    }
}

impl<const NOTED: bool> ToucanRegisters for &Memory<NOTED> {
    #[inline(always)]
    fn read(&self, offset: usize) -> u32 {
        self.note();
        self.at(offset).map_or(0, Cell::get)
    }

    #[inline(always)]
    fn write(&self, offset: usize, value: u32) {
        self.note();
        if let Some(longword) = self.at(offset) {
            longword.set(match offset {
                // A flag stays if it is written as one, and the driver sets none.
                IFLAG => longword.get() & value,
                ESTAT => value & 0xffff,
                _ => value,
            });
        }
    }
}
