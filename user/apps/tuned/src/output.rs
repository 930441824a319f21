//! Opens a pipe to a device while the system runs, is refused what cannot be, changes it, writes
//! numbered messages, and closes it.
//!
//! Each step is one line in the log. Arguments: the place of its pipe, the channel, messages a
//! second that it writes, and after how many seconds it ends with a verdict.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering};
use diapason_can::frame::standard;
use diapason_rt::{Arguments, Nanos, entry, heap, log, time};
use diapason_tpipe::{
    CanFrame, Endpoint, Outbox, Phase, Pipe, PipeError, Qos, Route, TunedSource, TunedWriter,
    WhyRefused,
};
use diapason_tuned::{again, finish, opened, refused, say_written, soon, wish};

entry!(main);
// Parts of `diapason-can` that nothing here calls would allocate: no page of it is ever taken.
heap!(4 * 1024);

/// Messages that fit into the buffer.
const SLOTS: u64 = 64;

/// Identifiers of what it sends begin here, one for each channel.
const FIRST_ID: u32 = 0x100;

/// Numbered messages, as many as the pipe has room for.
struct Numbered {
    id: u32,
    next: AtomicU64,
}

impl TunedSource for Numbered {
    fn fill(&self, out: &mut Outbox<'_>) {
        while out.room() > 0 {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Ok(id) = standard(self.id) else { return };
            let Ok(frame) = CanFrame::data(id, &number.to_le_bytes()) else { return };
            time::work("tuned.message", || out.send(&frame));
        }
    }

    fn news(&self, phase: Phase) {
        log!("the channel is {phase:?}");
    }
}

const fn thread(place: usize, channel: u32) -> TunedWriter<Numbered> {
    TunedWriter::new(place, Numbered { id: FIRST_ID + channel, next: AtomicU64::new(0) })
}

/// The threads of all places; one of them is this program's.
static THREADS: [TunedWriter<Numbered>; 5] =
    [thread(0, 0), thread(1, 1), thread(2, 2), thread(3, 3), thread(4, 4)];

fn main(Arguments([place, channel, rate, seconds]): Arguments) {
    if let Err(error) = work(place as usize, channel as u8, rate, seconds) {
        log!("it ends: {error}");
    }
}

fn work(place: usize, channel: u8, rate: u64, seconds: u64) -> Result<(), PipeError> {
    let thread = THREADS.get(place).ok_or(PipeError::NoSuchPlace)?;
    let route = Route::To(channel);
    let mut pipe = Pipe::new(Endpoint { place, route }, thread)?;
    let usual = wish(rate, Nanos::from_millis(100), SLOTS);
    let granted = opened(&mut pipe, route, &usual)?;
    say_written("opened", &granted);
    wrong(&mut pipe, rate, &usual)?;
    again(&mut pipe, &usual, &granted)?;
    let quick = wish(rate, Nanos::from_millis(70), SLOTS);
    say_written("changed", &pipe.renegotiate(&quick, soon())?);
    time::sleep(Nanos::from_secs(seconds));
    let written = || thread.source().next.load(Ordering::Relaxed);
    finish(&mut pipe, written)
}

/// Asks for terms that must be refused.
fn wrong(pipe: &mut Pipe, rate: u64, usual: &Qos) -> Result<(), PipeError> {
    let latency = usual.latency;
    refused(pipe, "at once", &wish(rate, Nanos::from_millis(2), SLOTS), |why| {
        matches!(why, WhyRefused::Latency { .. })
    })?;
    refused(pipe, "more than declared", &wish(3_100, latency, SLOTS), |why| {
        matches!(why, WhyRefused::Rate { .. })
    })?;
    refused(pipe, "no room for a message", &Qos { buffer: 15, ..*usual }, |why| {
        matches!(why, WhyRefused::SmallBuffer { buffer: 15, packet: 16 })
    })?;
    refused(pipe, "more room than there is", &Qos { buffer: 129 * 16, ..*usual }, |why| {
        matches!(why, WhyRefused::LargeBuffer { most: 2_048, .. })
    })?;
    refused(pipe, "more at once than declared", &Qos { burst: 9, ..*usual }, |why| {
        matches!(why, WhyRefused::Burst { wanted: 9, declared: 8 })
    })
}
