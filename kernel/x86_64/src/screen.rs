//! The screen of a PC, at boot and after the end of a run only.
//!
//! While the system runs, nothing is drawn: a write to a framebuffer takes as long as the device
//! likes. Code, shapes and sentences are in sections of their own (`.screen` in `kernel.ld`), which
//! leave memory together with boot on a machine without a screen. So what stays may call this
//! module only if [`is_open`].

use core::sync::atomic::{AtomicBool, Ordering};
use diapason_abi::record::Record;
use diapason_screen::{Canvas, Page, Pixel};

/// Most words of a record.
const WORDS: usize = 11;

/// What is on the screen, and where the kernel sees its memory.
struct Screen {
    page: Page<'static>,
    memory: Memory,
}

static mut SCREEN: Option<Screen> = None;
static OPEN: AtomicBool = AtomicBool::new(false);

/// A framebuffer's address, as the kernel sees it.
struct Memory(u64);

impl Canvas for Memory {
    fn put(&mut self, pixel: Pixel) {
        let to = (self.0 + pixel.offset) as *mut u8;
        // SAFETY: a frame gives offsets within its length only, and boot showed that much of the
        // framebuffer to the kernel. No memory that the kernel uses is there.
        unsafe {
            if pixel.bytes == 4 {
                to.cast::<u32>().write_volatile(pixel.value);
                return;
            }
            for (at, byte) in (0..pixel.bytes as usize).zip(pixel.value.to_le_bytes()) {
                to.add(at).write_volatile(byte);
            }
        }
    }
}

/// Returns whether there is a screen, and nobody is drawing on it.
#[inline(always)]
pub fn is_open() -> bool {
    OPEN.load(Ordering::Relaxed)
}

/// Draws on the screen by a function, if it is open. Meanwhile it is closed, so that a panic in the
/// function finds no screen, and does not come here again.
#[inline(always)]
fn draw(by: impl FnOnce(&mut Page<'static>, &mut Memory)) {
    if !OPEN.swap(false, Ordering::Relaxed) {
        return;
    }
    // SAFETY: boot, the end and a panic run alone on the core, and nobody comes here twice.
    if let Some(screen) = unsafe { (*(&raw mut SCREEN)).as_mut() } {
        by(&mut screen.page, &mut screen.memory);
        OPEN.store(true, Ordering::Relaxed);
    }
}

/// Takes the screen into use: boot cleared it, and showed it to the kernel at `memory`.
#[inline(never)]
pub fn open(page: Page<'static>, memory: u64) {
    // SAFETY: once, at boot, which runs alone.
    unsafe { *(&raw mut SCREEN) = Some(Screen { page, memory: Memory(memory) }) };
    OPEN.store(true, Ordering::Relaxed);
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
