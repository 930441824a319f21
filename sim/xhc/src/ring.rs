//! Where a ring is read.

use crate::{Memory, Xhc};
use diapason_usb::trb::{Kind, Trb, bit};

/// Links followed to find one block.
pub(crate) const LINKS_MAX: u32 = 32;
/// Blocks of one transfer, and blocks looked at in one go.
pub(crate) const BLOCKS_MAX: usize = 256;

/// A place on a ring and the cycle state there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Cursor {
    pub pointer: u64,
    pub cycle: bool,
}

/// The block found there.
pub(crate) enum Found {
    /// A block for the controller, and where; the cursor is behind it.
    Block(Cursor, Trb),
    Nothing,
    /// Links that lead nowhere, or memory that may not be read.
    Broken,
}

impl Xhc {
    /// Returns the next block that is no link.
    pub(crate) fn next_block(&mut self, memory: &mut dyn Memory, cursor: &mut Cursor) -> Found {
        for _ in 0..=LINKS_MAX {
            let Some(block) = self.fetch(memory, cursor.pointer) else { return Found::Broken };
            if block.cycle() != cursor.cycle {
                return Found::Nothing;
            }
            if block.kind() != Some(Kind::Link) {
                let here = *cursor;
                cursor.pointer = cursor.pointer.wrapping_add(16);
                return Found::Block(here, block);
            }
            cursor.pointer = block.parameter & !0xf;
            cursor.cycle ^= block.has(bit::TOGGLE);
        }
        Found::Broken
    }
}
