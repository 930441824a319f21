//! A receiver: sleeps until something waits for its port, and takes it.
//!
//! Its arguments are the way and the number of the listener.

#![no_std]
#![no_main]

use core::sync::atomic::Ordering::Relaxed;
use diapason_ether::{Discard, FrameInbox, LazyReceiver, SocketReader};
use diapason_protocol::{Common, FramePool, Handling, listener};
use diapason_rt::sync::Semaphore;
use diapason_rt::{Arguments, Errno, Nanos, entry, log};

entry!(main);

fn main(Arguments([way, number, ..]): Arguments) {
    if let Err(errno) = serve(Handling::of(way), (number & 1) as usize) {
        log!("reader {number} failed: {errno:?}");
    }
}

fn serve(way: Handling, number: usize) -> Result<(), Errno> {
    let shared = Common::attach()?;
    let inbox = &shared.inboxes[number];
    let ready = Semaphore::open(if number == 0 { "read-0" } else { "read-1" })?;
    let reader = Reader { shared, number };
    if way == Handling::Conventional {
        conventional(&reader, inbox, &ready)
    } else {
        lazy(&reader, inbox, &ready, way)
    }
}

/// The place of a reader's results.
struct Reader {
    shared: &'static Common,
    number: usize,
}

impl Reader {
    /// Notes what was received.
    #[inline(always)]
    fn got(&self, result: Result<usize, Discard>) {
        match result {
            Ok(bytes) => {
                self.shared.bytes[self.number].fetch_add(bytes as u64, Relaxed);
                if self.number == 0 {
                    self.shared.note();
                }
            }
            Err(_) => {
                self.shared.discarded.fetch_add(1, Relaxed);
            }
        }
    }
}

fn conventional(reader: &Reader, inbox: &FrameInbox, ready: &Semaphore) -> Result<(), Errno> {
    let payloads = FramePool::attach("payloads")?;
    let mut socket = SocketReader::new(inbox);
    let mut memory = [0; 1_500];
    loop {
        ready.take(Nanos::FOREVER)?;
        while let Some(taken) = socket.take(&payloads, &mut memory) {
            core::hint::black_box(&memory);
            reader.got(taken.map(|(_, length)| length));
        }
    }
}

fn lazy(
    reader: &Reader,
    inbox: &FrameInbox,
    ready: &Semaphore,
    way: Handling,
) -> Result<(), Errno> {
    let frames = FramePool::attach("frames")?;
    let mut receiver = LazyReceiver::new(inbox, &listener(reader.number, way));
    let mut memory = [0; 1_500];
    loop {
        ready.take(Nanos::FOREVER)?;
        while let Some(taken) = receiver.take(&frames, &mut memory) {
            core::hint::black_box(&memory);
            reader.got(taken.map(|received| received.length));
        }
    }
}
