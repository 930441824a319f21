//! The network thread of the conventional way: processes every frame, and copies its payload to
//! the buffers of a socket.

#![no_std]
#![no_main]

use core::sync::atomic::Ordering::Relaxed;
use diapason_ether::{NetworkThread, Posted};
use diapason_protocol::{BUFFERS, Common, FramePool, Handling, listener};
use diapason_rt::sync::Semaphore;
use diapason_rt::{Arguments, Errno, Nanos, entry, log};

entry!(main);

fn main(_: Arguments) {
    if let Err(errno) = serve() {
        log!("the network thread failed: {errno:?}");
    }
}

fn serve() -> Result<(), Errno> {
    let shared = Common::attach()?;
    let (frames, mut payloads) = (FramePool::attach("frames")?, FramePool::attach("payloads")?);
    let [first, second, all] = &shared.inboxes;
    let mut network = NetworkThread::<2, { BUFFERS as usize }>::new(all, BUFFERS);
    for (number, inbox) in [first, second].into_iter().enumerate() {
        network.listen(&listener(number, Handling::Conventional), inbox);
    }
    let wake = [Semaphore::open("read-0")?, Semaphore::open("read-1")?];
    let work = Semaphore::open("network")?;
    loop {
        work.take(Nanos::FOREVER)?;
        while let Some(processed) = network.process(&frames, &mut payloads) {
            match processed {
                Ok(Posted::Wakes(number)) => wake[usize::from(number & 1)].give()?,
                Ok(Posted::Waits(_)) => {}
                Ok(Posted::Discarded(_)) | Err(_) => {
                    shared.discarded.fetch_add(1, Relaxed);
                }
            }
        }
    }
}
