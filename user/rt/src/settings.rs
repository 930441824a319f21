//! Settings of a program: numbers with names that its description gives it.
//!
//! ```ignore
//! static SETTINGS: Room = Room::new();
//!
//! let rates = SETTINGS.read().get("rates");
//! ```

use core::hint::black_box;
use core::ptr;
use diapason_abi::settings::{MARK, Settings, WORDS};

/// Room for settings in a program's image; there is one at most. The builder of the boot archive
/// fills it.
#[repr(C)]
pub struct Room {
    mark: [u64; MARK.len()],
    words: [u64; WORDS],
}

impl Room {
    /// Empty, as programs are compiled.
    #[must_use]
    pub const fn new() -> Room {
        Room { mark: MARK, words: [0; WORDS] }
    }

    /// Returns the settings in the image that was booted.
    pub fn read(&'static self) -> Settings {
        // The image is not what the compiler made: it must not know what it put there.
        // SAFETY: it is read through a reference, as what it is.
        let Room { mark, words } = unsafe { ptr::read_volatile(self) };
        black_box(mark);
        Settings::of(words)
    }
}

impl Default for Room {
    fn default() -> Room {
        Room::new()
    }
}
