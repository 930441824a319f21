//! The driver thread: takes frames from the adapter, posts their buffers, wakes their readers.
//!
//! Its argument is the way.

#![no_std]
#![no_main]

use core::sync::atomic::Ordering::Relaxed;
use diapason_ether::adapter::Taken;
use diapason_ether::{Buffers, Demux, Posted, SocketBuffers};
use diapason_protocol::{BUFFERS, CardReceiver, Common, FramePool, Handling, MACS, QUOTA_OF_ALL};
use diapason_protocol::{listener, start};
use diapason_rt::event::Event;
use diapason_rt::memory::DmaSegment;
use diapason_rt::sync::Semaphore;
use diapason_rt::{Arguments, Errno, Nanos, entry, log};

entry!(main);

fn main(Arguments([way, ..]): Arguments) {
    if let Err(errno) = serve(Handling::of(way)) {
        log!("the driver failed: {errno:?}");
    }
}

/// The adapter, its buffers and the listeners.
struct Driver {
    nic: CardReceiver,
    demux: Demux<'static, 2, { BUFFERS as usize }>,
    pool: FramePool,
    bus: DmaSegment,
    wake: [Semaphore; 2],
    shared: &'static Common,
    copies: bool,
}

fn serve(way: Handling) -> Result<(), Errno> {
    let shared = Common::attach()?;
    let mut demux = Demux::new(BUFFERS);
    let [first, second, all] = &shared.inboxes;
    let (names, registered) = if way == Handling::Conventional {
        (["network", "network"], demux.listen_to_rest(all, QUOTA_OF_ALL).map(|_| ()))
    } else {
        let one = demux.listen(&listener(0, way), first);
        let both = one.and_then(|_| demux.listen(&listener(1, way), second));
        (["read-0", "read-1"], both.map(|_| ()))
    };
    if let Err(refusal) = registered {
        log!("a listener is refused: {refusal:?}");
        return Ok(());
    }
    let wake = [Semaphore::open(names[0])?, Semaphore::open(names[1])?];
    let (pool, bus) = (FramePool::attach("frames")?, DmaSegment::attach("frames")?);
    // Rings of both halves are in one segment, which the end of either detaches.
    let (nic, _sender) = start("nic0", "rings0", MACS[0])?;
    let interrupt = Event::message("nic0", 0)?;
    let copies = way == Handling::TwoCopies;
    let mut driver = Driver { nic, demux, pool, bus, wake, shared, copies };
    driver.refill();
    driver.nic.arm();
    shared.ready.store(1, Relaxed);
    loop {
        interrupt.wait(Nanos::FOREVER)?;
        driver.round()?;
    }
}

impl Driver {
    /// Takes all frames that came, and lets the next one interrupt.
    fn round(&mut self) -> Result<(), Errno> {
        while let Some(taken) = self.nic.take() {
            let posted = match taken.fault {
                Some(reason) => self.demux.refuse(taken.buffer, reason),
                None => self.post(taken),
            };
            match posted {
                Posted::Wakes(number) => self.wake[usize::from(number & 1)].give()?,
                Posted::Waits(_) => {}
                Posted::Discarded(_) => {
                    self.shared.discarded.fetch_add(1, Relaxed);
                }
            }
        }
        self.refill();
        self.nic.arm();
        Ok(())
    }

    #[inline(always)]
    fn post(&mut self, taken: Taken) -> Posted {
        let mut buffer = taken.buffer;
        if self.copies
            && let Some(other) = self.demux.refill()
        {
            let frame = self.pool.buffer(buffer).get(..taken.length).unwrap_or(&[]);
            let mut pool = self.pool;
            if let Some(copy) = pool.buffer_mut(other).get_mut(..taken.length) {
                copy.copy_from_slice(frame);
            }
            // The adapter gets its own buffer back at once.
            self.nic.offer(buffer, self.bus.bus_address(FramePool::place(buffer)));
            buffer = other;
        }
        let frame = self.pool.buffer(buffer).get(..taken.length).unwrap_or(&[]);
        self.demux.arrive(buffer, frame)
    }

    fn refill(&mut self) {
        while self.nic.has_room() {
            let Some(buffer) = self.demux.refill() else { break };
            self.nic.offer(buffer, self.bus.bus_address(FramePool::place(buffer)));
        }
        self.nic.publish();
    }
}
