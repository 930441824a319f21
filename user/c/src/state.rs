//! Reports of state messages, which `library/state.c` reads and writes.

use diapason_pipe::measured::{Measurement, Reported, StateReport};
use diapason_rt::{log, time};

/// Reports reads of a state message that its writer has overtaken, and writes that came too soon.
#[unsafe(no_mangle)]
extern "C" fn dia_state_report(number: u32, overtaken: u64, writes: u64, early: u64) {
    let Ok(number) = u8::try_from(number) else { return };
    let said = Measurement::State(StateReport { number, overtaken, writes, early });
    log::measured(&Reported { at: time::now(), said }.words());
}
