//! The program itself: its arguments and settings, what it says, time and work.

use crate::words::{CText, INVALID, call};
use core::sync::atomic::{AtomicU64, Ordering};
use diapason_abi::{CallNumber, Nanos};
use diapason_rt::log::LINE_BYTES;
use diapason_rt::{settings, sys, thread, time};

/// The numbers that the description gives the program.
pub static ARGUMENTS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

#[unsafe(no_mangle)]
extern "C" fn dia_argument(index: u32) -> u64 {
    let argument = usize::try_from(index).ok().and_then(|index| ARGUMENTS.get(index));
    argument.map_or(0, |argument| argument.load(Ordering::Relaxed))
}

/// Copies the numbers of a setting; returns how many it has.
#[unsafe(no_mangle)]
extern "C" fn dia_setting(text: CText, values: *mut u64, room: usize) -> i32 {
    let Some(name) = text.name() else { return INVALID };
    if values.is_null() && room > 0 {
        return INVALID;
    }
    let told = settings::read();
    let numbers = told.get(name);
    for (index, number) in numbers.iter().take(room).enumerate() {
        // SAFETY: C passes room for so many, and it is not null.
        unsafe { values.add(index).write(*number) };
    }
    i32::try_from(numbers.len()).unwrap_or(i32::MAX)
}

/// Says a line. The rest of a longer text is cut.
#[unsafe(no_mangle)]
extern "C" fn dia_log(text: CText) {
    if let Some(line) = text.bytes(LINE_BYTES) {
        let _ = call::<{ CallNumber::Log as u8 }, _>([line.as_ptr() as u64, line.len() as u64]);
    }
}

#[unsafe(no_mangle)]
extern "C" fn dia_now() -> u64 {
    time::now().0
}

#[unsafe(no_mangle)]
extern "C" fn dia_sleep(span: u64) {
    time::sleep_until(Nanos(time::now().0.saturating_add(span)));
}

#[unsafe(no_mangle)]
extern "C" fn dia_sleep_until(instant: u64) {
    time::sleep_until(Nanos(instant));
}

#[unsafe(no_mangle)]
extern "C" fn dia_burn(span: u64) {
    time::burn(Nanos(span));
}

#[unsafe(no_mangle)]
extern "C" fn dia_work(text: CText) -> i32 {
    let Some(name) = text.name() else { return INVALID };
    time::work(name, || ());
    0
}

#[unsafe(no_mangle)]
extern "C" fn dia_exit(code: u64) -> ! {
    thread::exit(code)
}

#[unsafe(no_mangle)]
extern "C" fn dia_fail(place: u64) -> ! {
    sys::fail(place)
}

/// Uses processor time of the caller so far.
#[unsafe(no_mangle)]
extern "C" fn dia_cpu_time() -> u64 {
    let which = diapason_abi::call::Counter::CpuTime as u64;
    call::<{ CallNumber::Count as u8 }, _>([which]).unwrap_or(0)
}
