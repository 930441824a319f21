//! Settings of a program: numbers with names that its description gives it.
//!
//! ```ignore
//! let told = settings::read();
//! let rates = told.get("rates");
//! ```

use core::hint::black_box;
use core::ptr;
use diapason_abi::settings::{MARK, Settings, WORDS};

/// The room for settings in a program's image. The builder of the boot archive fills it.
#[repr(C)]
struct Room {
    mark: [u64; MARK.len()],
    words: [u64; WORDS],
}

/// Empty, as programs are compiled. Only a program that reads settings has it. The linker script
/// knows the section, so that the header of the program can say where it is.
#[unsafe(link_section = ".settings")]
static ROOM: Room = Room { mark: MARK, words: [0; WORDS] };

/// Returns the settings in the image that was booted.
#[must_use]
pub fn read() -> Settings {
    // The image is not what the compiler made: it must not know what it put there.
    // SAFETY: it is read through a reference, as what it is.
    let Room { mark, words } = unsafe { ptr::read_volatile(&raw const ROOM) };
    black_box(mark);
    Settings::of(words)
}
