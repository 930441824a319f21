//! Measures the computer: its name, times in which the processor is away, how late timers and
//! interrupts are, and how long a read of a device's register takes. All of it may be beside other
//! cores that work on memory, which then have a share in every time.
//!
//! It starts the benchmark and waits for its end, and nothing else can run on its core then. Its
//! arguments are how many ms it looks for gaps, and how many other cores work meanwhile.

#![no_std]
#![no_main]

mod beside;
mod device;

use beside::OthersAtWork;
use core::arch::x86_64::{__cpuid, __cpuid_count};
use diapason_abi::Key;
use diapason_machine::tell;
use diapason_pipe::measured::{MachineReport, PROCESSOR_BYTES};
use diapason_rt::sync::Semaphore;
use diapason_rt::{Arguments, Errno, Nanos, entry, log, process, time};

entry!(main);

/// A pause between two readings of the clock that is longer than this is a gap.
const GAP: Nanos = Nanos::from_micros(1);
/// How often it waits for a time.
const TIMERS: u32 = 1_000;

fn main(Arguments([milliseconds, others, ..]): Arguments) {
    if let Err(errno) = measure(Nanos::from_micros(milliseconds.saturating_mul(1_000)), others) {
        log!("the computer was not measured: {errno:?}");
    }
}

fn measure(length: Nanos, others: u64) -> Result<(), Errno> {
    let beside = if others > 0 { Some(OthersAtWork::begin(others)?) } else { None };
    process::create(Key::new("bench"))?;
    Semaphore::open("ended")?.take(Nanos::FOREVER)?;
    tell(processor());
    match device::measure() {
        Ok(report) => tell(report),
        Err(errno) => log!("no device was measured, because the HPET is of no use: {errno:?}"),
    }
    tell(timers());
    tell(gaps(length));
    if let Some(beside) = beside {
        tell(beside.end()?);
    }
    log!("everything is measured: the computer may be switched off");
    Ok(())
}

/// Returns the processor's name for itself.
fn processor() -> MachineReport {
    const NAME: core::ops::RangeInclusive<u32> = 0x8000_0002..=0x8000_0004;
    let mut name = [0; PROCESSOR_BYTES];
    if __cpuid(0x8000_0000).eax >= *NAME.end() {
        let words = NAME.flat_map(|leaf| {
            let part = __cpuid(leaf);
            [part.eax, part.ebx, part.ecx, part.edx]
        });
        for (bytes, word) in name.as_chunks_mut().0.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
    }
    let emulated = __cpuid(1).ecx >> 31 & 1 != 0;
    let hybrid = __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx >> 15 & 1 != 0;
    MachineReport::Processor { name, emulated, hybrid }
}

/// Reads the clock without pause, and so sees each time in which it did not run.
fn gaps(measured: Nanos) -> MachineReport {
    let begun = time::now();
    let (mut last, mut beginning, mut first) = (begun, begun, begun);
    let (mut count, mut longest, mut apart) = (0, Nanos::ZERO, Nanos::FOREVER);
    while last - begun < measured {
        let now = time::now();
        if now - last > GAP {
            (count, longest) = (count + 1, longest.max(now - last));
            match count {
                1 => first = last,
                _ => apart = apart.min(last - beginning),
            }
            beginning = last;
        }
        last = now;
    }
    let apart = match count {
        0 => Nanos::ZERO,
        // No other came before it, and none after it, for so long.
        1 => (first - begun).max(last - first),
        _ => apart,
    };
    MachineReport::Gaps { measured, count, longest, apart }
}

/// Waits for times, and looks how late it runs.
fn timers() -> MachineReport {
    let mut late = Nanos::ZERO;
    for round in 0..TIMERS {
        // No two waits are of equal length, so none falls in step with anything else.
        let due = time::now() + Nanos(200_000 + u64::from(round) * 997);
        time::sleep_until(due);
        late = late.max(time::now() - due);
    }
    MachineReport::Timers { count: TIMERS, late }
}
