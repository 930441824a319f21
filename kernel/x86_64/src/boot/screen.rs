//! Takes the screen that the boot loader set up into use, if there is one.

use super::handed::Handed;
use super::spaces;
use crate::paging::LARGE_PAGE;
use crate::{cpu, screen};
use diapason_screen::sheet::Sheet;
use diapason_screen::{Framebuffer, Page};

/// Opens the screen. Without a framebuffer, or with one whose memory the loader's map also calls
/// usable, the kernel does without.
#[inline(never)]
pub fn open(handed: &Handed) {
    let Some(frame) = handed.frame.filter(|frame| is_apart(frame, handed)) else { return };
    let Some((frame, memory)) = show(frame) else { return };
    for at in (0..frame.length() & !3).step_by(4) {
        cpu::write(memory + at, 0);
    }
    let sheet = Sheet::read(handed.module()).unwrap_or_default();
    screen::open(Page::new(frame, sheet), memory);
}

/// Returns whether the framebuffer shares no byte with memory that the kernel may use.
fn is_apart(frame: &Framebuffer, handed: &Handed) -> bool {
    let last = frame.address + frame.length();
    handed.memory().all(|(start, end)| end <= frame.address || last <= start)
}

/// Makes the framebuffer visible to the kernel, or as many of its rows as there is room for.
/// Returns that part and where it is. The text mode lies beside memory of the loader, and a PC
/// does not cache it.
fn show(frame: Framebuffer) -> Option<(Framebuffer, u64)> {
    if frame.is_text() {
        return (frame.address + frame.length() <= spaces::REACH).then_some((frame, frame.address));
    }
    if let Some(memory) = spaces::registers(frame.address, frame.length()) {
        return Some((frame, memory));
    }
    let frame = frame.within(LARGE_PAGE - frame.address % LARGE_PAGE)?;
    Some((frame, spaces::registers(frame.address, frame.length())?))
}
