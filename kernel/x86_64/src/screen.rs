//! The screen of a PC, at boot and after the end of a run only.
//!
//! While the system runs, nothing is drawn: a write to a framebuffer takes as long as the device
//! likes. Code, shapes and sentences are in sections of their own (`.screen` in `kernel.ld`), which
//! leave memory together with boot on a machine without a screen. So what stays may call this
//! module only if [`is_open`].

use crate::cpu;
use core::sync::atomic::{AtomicBool, Ordering};
use diapason_abi::record::Record;
use diapason_screen::{Canvas, Page, Pixel};

/// Most words of a record.
const WORDS: usize = 11;

/// A page, and the address of the framebuffer as the kernel sees it.
struct Screen {
    page: Page<'static>,
    memory: Memory,
}

static mut SCREEN: Option<Screen> = None;
static OPEN: AtomicBool = AtomicBool::new(false);

struct Memory(u64);

impl Canvas for Memory {
    /// Writes whole words. The bytes of a smaller pixel go into the words that they are in.
    fn put(&mut self, pixel: Pixel) {
        let place = self.0 + pixel.offset;
        if pixel.bytes == 4 {
            return cpu::write(place, pixel.value);
        }
        for at in 0..pixel.bytes {
            let byte = place + u64::from(at);
            let (word, shift) = (byte & !3, (byte & 3) * 8);
            let value = pixel.value >> (8 * at) & 0xff;
            cpu::write(word, cpu::read(word) & !(0xff << shift) | value << shift);
        }
    }
}

/// Returns whether there is a screen, and nobody is drawing on it.
#[inline(always)]
pub fn is_open() -> bool {
    OPEN.load(Ordering::Relaxed)
}

/// Lets a function have the screen. Meanwhile it is closed, so that a panic in the function finds
/// no screen, and does not come here again.
#[inline(always)]
fn with(by: impl FnOnce(&mut Option<Screen>)) {
    OPEN.store(false, Ordering::Relaxed);
    let screen = &raw mut SCREEN;
    // SAFETY: boot, the end and a panic run alone on the core, and nobody comes here twice.
    let screen = unsafe { &mut *screen };
    by(screen);
    OPEN.store(screen.is_some(), Ordering::Relaxed);
}

/// Draws on the screen, if it is open.
#[inline(always)]
fn draw(by: impl FnOnce(&mut Page<'static>, &mut Memory)) {
    if is_open() {
        with(|screen| {
            if let Some(Screen { page, memory }) = screen {
                by(page, memory);
            }
        });
    }
}

/// Takes the screen into use: boot cleared it, and showed it to the kernel at `memory`.
#[inline(never)]
pub fn open(page: Page<'static>, memory: u64) {
    with(|screen| *screen = Some(Screen { page, memory: Memory(memory) }));
    draw(|page, canvas| page.begin(canvas));
}

/// Draws a record of boot or of the end, if it concerns people.
#[cold]
#[inline(never)]
pub fn note(record: Record, words: &[u64]) {
    // The compiler knows less of callers whose words go further than this.
    let mut own = [0; WORDS];
    for (place, word) in own.iter_mut().zip(words) {
        *place = *word;
    }
    let own = own.get(..words.len()).unwrap_or(&own);
    draw(|page, canvas| page.note(record, own, canvas));
}

/// Says that the system runs.
#[inline(never)]
pub fn running() {
    draw(|page, canvas| page.running(canvas));
}

/// Draws the verdict of a run that leaves the machine with this status.
#[cold]
#[inline(never)]
pub fn end(status: u8) {
    draw(|page, canvas| page.end(status, canvas));
}
