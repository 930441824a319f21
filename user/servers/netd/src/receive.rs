//! The thread that receives. It does no protocol work: it compares fields at fixed places, copies
//! the frame to the slots of one socket, and wakes its reader.

use crate::card::Receiver;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use diapason_contract::ethernet::{
    AdapterNames, RECEIVE, RECEIVE_FRAME, RING, SLOT_BYTES, SOCKET_NAMES, SOCKETS, SocketTerms,
};
use diapason_ether::adapter::Taken;
use diapason_ether::{Buffers, CopyingDemux, Discard, Posted, Slots};
use diapason_netlib::memory::{FrameSlots, inbox};
use diapason_rt::event::Event;
use diapason_rt::memory::DmaSegment;
use diapason_rt::sync::Semaphore;
use diapason_rt::{Errno, Nanos, log, time};

/// Frames that were passed on, and those that were discarded for each reason. The thread that
/// receives counts, and the one that sends tells.
pub(crate) static PASSED: AtomicU64 = AtomicU64::new(0);
pub(crate) static DISCARDED: [AtomicU64; Discard::ALL.len()] =
    [const { AtomicU64::new(0) }; Discard::ALL.len()];

/// The readers' ends of all sockets, by the number of their listener.
struct Sockets {
    slots: [Option<FrameSlots>; SOCKETS],
    bells: [Option<Semaphore>; SOCKETS],
}

impl Slots for Sockets {
    #[inline(always)]
    fn copy(&mut self, listener: u8, slot: u16, frame: &[u8]) {
        if let Some(Some(slots)) = self.slots.get(usize::from(listener)) {
            slots.copy(slot, frame);
        }
    }
}

/// The adapter's receiving half, and where its frames go.
pub(crate) struct Receiving {
    card: Receiver,
    interrupt: Event,
    buffers: FrameSlots,
    bus: DmaSegment,
    demux: CopyingDemux<'static, SOCKETS>,
    sockets: Sockets,
}

impl Receiving {
    /// Opens the inboxes of all sockets, and gives the adapter its buffers.
    ///
    /// # Errors
    /// `Busy` if somebody else has the interrupt, `BadArgument` if two sockets have one port.
    pub fn open(
        card: Receiver,
        names: &AdapterNames,
        all: impl Iterator<Item = SocketTerms>,
    ) -> Result<Receiving, Errno> {
        let mut demux = CopyingDemux::default();
        let mut sockets = Sockets { slots: [None; SOCKETS], bells: [None; SOCKETS] };
        for terms in all {
            let known = SOCKET_NAMES.get(usize::from(terms.number)).ok_or(Errno::Absent)?;
            let (inbox, slots) = inbox(known.inbox, terms.quota)?;
            let listener = diapason_netlib::listener(&terms);
            let place = demux.listen(&listener, inbox).map_err(|refusal| {
                log!("port {} is refused: {refusal:?}", terms.port);
                Errno::Busy
            })?;
            sockets.slots[usize::from(place)] = Some(slots);
            sockets.bells[usize::from(place)] = Some(Semaphore::open(known.ready)?);
        }
        let interrupt = Event::message(names.device, 0)?;
        let buffers = FrameSlots::of_adapter(names.buffers, RING as u16)?;
        let bus = DmaSegment::attach(names.buffers)?;
        let mut receiving = Receiving { card, interrupt, buffers, bus, demux, sockets };
        (0..RING as u16 - 1).for_each(|buffer| receiving.offer(buffer));
        receiving.card.publish();
        Ok(receiving)
    }

    fn offer(&mut self, buffer: u16) {
        self.card.offer(buffer, self.bus.bus_address(usize::from(buffer) * SLOT_BYTES));
    }

    /// Waits for frames for ever.
    ///
    /// # Errors
    /// Those of waiting for the interrupt.
    pub fn run(mut self) -> Result<(), Errno> {
        loop {
            let woken = time::work(RECEIVE, || self.round());
            for (place, bell) in self.sockets.bells.iter().enumerate() {
                if let (Some(bell), true) = (bell, woken >> place & 1 != 0) {
                    // At its limit it has been given often enough.
                    let _ = bell.give();
                }
            }
            self.interrupt.wait(Nanos::FOREVER)?;
        }
    }

    /// Takes the frames that came: at most as many as the ring has, because the adapter gets its
    /// buffers back at the end. Returns the listeners whose readers may sleep, one bit each.
    fn round(&mut self) -> u64 {
        let mut woken = 0;
        while let Some(taken) = self.card.take() {
            match time::work(RECEIVE_FRAME, || self.sort(taken)) {
                Posted::Wakes(place) => woken |= 1 << place,
                Posted::Waits(_) => {}
                Posted::Discarded(reason) => {
                    DISCARDED[reason as usize].fetch_add(1, Relaxed);
                }
            }
            self.offer(taken.buffer);
        }
        let lost = self.card.lost();
        if lost > 0 {
            DISCARDED[Discard::NoBuffer as usize].fetch_add(lost.into(), Relaxed);
        }
        PASSED.store(self.demux.counts().passed, Relaxed);
        self.card.publish();
        self.card.arm();
        woken
    }

    fn sort(&mut self, taken: Taken) -> Posted {
        if let Some(reason) = taken.fault {
            return self.demux.refuse(reason);
        }
        let frame = self.buffers.buffer(taken.buffer).get(..taken.length).unwrap_or(&[]);
        self.demux.arrive(frame, &mut self.sockets)
    }
}
