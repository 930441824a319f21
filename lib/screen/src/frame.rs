//! A framebuffer as a boot loader describes it: pixels, or the cells of a PC's text mode.

use crate::font;

/// Words of a framebuffer tag of multiboot2, as far as they are needed.
pub const TAG_WORDS: usize = 8;
/// Pixels of the cell of a character, before they are enlarged.
pub const CELL_WIDTH: u32 = font::COLUMNS + 1;
pub const CELL_HEIGHT: u32 = font::ROWS + 2;
/// Rows of a cell above its shape.
const ABOVE: u32 = 1;
/// A screen this wide shows its pixels once; one twice as wide shows each twice, and so on.
const USUAL_WIDTH: u32 = 640;
/// Fewer columns or lines than these show no sentence.
const COLUMNS_MIN: u32 = 40;
const LINES_MIN: u32 = 8;
/// Numbers of kinds in a tag. Palettes have another, and are not known.
const DIRECT: u8 = 1;
const TEXT: u8 = 2;
/// Bytes of a cell of the text mode: a character and its colours.
const TEXT_CELL: u32 = 2;
/// White on black, in the upper byte of a cell.
const TEXT_COLOURS: u32 = 0x0f00;
/// Addresses of a PC have no more bits.
const ADDRESS_BITS: u32 = 52;

/// A framebuffer whose numbers were checked: every offset that it gives lies within its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Framebuffer {
    pub address: u64,
    /// Bytes from one row to the next.
    pitch: u32,
    width: u32,
    height: u32,
    /// Bytes of a pixel, or of a cell of the text mode.
    bytes: u32,
    is_text: bool,
}

/// The memory of a framebuffer, whoever has it.
pub trait Canvas {
    /// Carries out a write.
    fn put(&mut self, pixel: Pixel);
}

/// One write to a framebuffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pixel {
    /// Bytes from the start of the framebuffer.
    pub offset: u64,
    /// How many bytes of `value` are written, lowest first.
    pub bytes: u32,
    pub value: u32,
}

impl Framebuffer {
    /// Returns the framebuffer of a tag, as words from its kind on; `None` if its numbers make no
    /// screen that can be written.
    #[must_use]
    #[inline(never)]
    pub fn of_tag(tag: &[u32; TAG_WORDS]) -> Option<Framebuffer> {
        let [_, _, low, high, pitch, width, height, more] = *tag;
        let [bits, kind, _, _] = more.to_le_bytes();
        let address = u64::from(low) | u64::from(high) << 32;
        let (is_text, bytes) = match (kind, bits) {
            (TEXT, _) => (true, TEXT_CELL),
            (DIRECT, 15 | 16 | 24 | 32) => (false, u32::from(bits).div_ceil(8)),
            _ => return None,
        };
        let frame = Framebuffer { address, pitch, width, height, bytes, is_text };
        frame.is_possible().then_some(frame)
    }

    fn is_possible(&self) -> bool {
        let row = self.width.checked_mul(self.bytes);
        let end = self.address.checked_add(self.length());
        row.is_some_and(|row| row <= self.pitch)
            && self.address > 0
            && end.is_some_and(|end| end <= 1 << ADDRESS_BITS)
            && self.columns() >= COLUMNS_MIN
            && self.lines() >= LINES_MIN
    }

    /// Returns the bytes of the framebuffer.
    #[must_use]
    pub fn length(&self) -> u64 {
        u64::from(self.pitch) * u64::from(self.height)
    }

    /// Returns the rows of this framebuffer that lie in its first `length` bytes; `None` if they
    /// are too few.
    #[must_use]
    pub fn within(self, length: u64) -> Option<Framebuffer> {
        let rows = (length / u64::from(self.pitch.max(1))).min(u64::from(self.height));
        let frame = Framebuffer { height: rows as u32, ..self };
        frame.is_possible().then_some(frame)
    }

    /// Returns whether this is the text mode of a PC.
    #[must_use]
    pub fn is_text(&self) -> bool {
        self.is_text
    }

    /// Returns how many times a pixel of a shape is repeated in each direction.
    #[must_use]
    pub fn scale(&self) -> u32 {
        if self.is_text { 1 } else { (self.width / USUAL_WIDTH).max(1) }
    }

    fn cell(&self) -> (u32, u32) {
        let scale = self.scale();
        if self.is_text { (1, 1) } else { (CELL_WIDTH * scale, CELL_HEIGHT * scale) }
    }

    /// Returns how many characters a line has.
    #[must_use]
    pub fn columns(&self) -> u32 {
        self.width.checked_div(self.cell().0).unwrap_or(0)
    }

    /// Returns how many lines there are.
    #[must_use]
    pub fn lines(&self) -> u32 {
        self.height.checked_div(self.cell().1).unwrap_or(0)
    }

    /// Draws a character in a line and a column on `canvas`. Beyond the last ones it draws
    /// nothing.
    #[inline(never)]
    pub fn draw<C: Canvas>(&self, line: u32, column: u32, byte: u8, canvas: &mut C) {
        if line >= self.lines() || column >= self.columns() {
            return;
        }
        let (width, height) = self.cell();
        let (left, top) = (column * width, line * height);
        for y in 0..height {
            for x in 0..width {
                let row = u64::from(top + y) * u64::from(self.pitch);
                let offset = row + u64::from(left + x) * u64::from(self.bytes);
                let value = if self.is_text {
                    TEXT_COLOURS | u32::from(byte)
                } else {
                    is_lit(byte, x / self.scale(), y / self.scale()) * u32::MAX
                };
                canvas.put(Pixel { offset, bytes: self.bytes, value });
            }
        }
    }
}

/// Returns 1 if a character has a dot in this column and row of its cell, and 0 if not.
fn is_lit(byte: u8, x: u32, y: u32) -> u32 {
    let row = y.checked_sub(ABOVE).and_then(|row| font::shape(byte).get(row as usize));
    let row = u32::from(row.copied().unwrap_or(0));
    if x < font::COLUMNS { row >> (font::COLUMNS - 1 - x) & 1 } else { 0 }
}
