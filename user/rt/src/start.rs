//! From the kernel's first instruction to the program's `main`, and the way out of a panic.

use crate::sys;
use core::arch::global_asm;
use diapason_abi::{CallNumber, layout};

global_asm!(
    include_str!("start.s"),
    INFO = const layout::INFO,
    DATA_IMAGE = const layout::DATA_IMAGE,
    BASE = const layout::info::CLOCK_BASE * 8,
    MULTIPLIER = const layout::info::CLOCK_MULTIPLIER * 8,
    FAIL = const CallNumber::Fail as u64,
    ANY_CALL = const diapason_abi::served::ANY_CALL,
    HINTS = const diapason_abi::served::HINTS,
);

/// The numbers the description gives a program.
#[derive(Clone, Copy, Debug)]
pub struct Arguments(pub [u64; 4]);

// SAFETY: `entry!` defines it, with this signature.
unsafe extern "Rust" {
    safe fn __diapason_main(arguments: Arguments);
}

/// Names the function a program starts with: `fn main(arguments: Arguments)`.
#[macro_export]
macro_rules! entry {
    ($main:path) => {
        #[unsafe(no_mangle)]
        fn __diapason_main(arguments: $crate::Arguments) {
            $main(arguments)
        }
    };
}

#[unsafe(no_mangle)]
extern "C" fn __dia_start(_info: u64, a: u64, b: u64, c: u64, d: u64) -> ! {
    __diapason_main(Arguments([a, b, c, d]));
    crate::thread::exit(0)
}

/// Returns the first address of this process's window.
#[must_use]
pub fn window() -> u64 {
    unsafe extern "C" {
        static __image_start: u8;
    }
    &raw const __image_start as u64
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    crate::log!("panic: {info}");
    let line = info.location().map_or(0, core::panic::Location::line);
    sys::fail(u64::from(line))
}
