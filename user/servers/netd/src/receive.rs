//! The thread that receives. It does no protocol work: it compares fields at fixed places, copies
//! the frame to the slots of one socket, and wakes its reader.

use crate::clock::Listening;
use crate::watch::Watch;
use diapason_contract::ethernet::{
    AdapterNames, RECEIVE, RECEIVE_FRAME, RING, SLOT_BYTES, SLOT_FRAME, SOCKET_NAMES, SOCKETS,
    SocketTerms,
};
use diapason_ether::adapter::Taken;
use diapason_ether::{Buffers, CopyingDemux, Discard, Posted, Slots};
use diapason_netlib::card::CardReceiver;
use diapason_netlib::memory::{FrameSlots, inbox};
use diapason_rt::event::Event;
use diapason_rt::memory::DmaSegment;
use diapason_rt::sync::Semaphore;
use diapason_rt::{Errno, Nanos, log, time};

/// The readers' ends of all sockets, by the number of their listener.
struct Sockets {
    slots: [Option<FrameSlots>; SOCKETS],
    bells: [Option<Semaphore>; SOCKETS],
    watches: [Option<Watch>; SOCKETS],
    /// When the frames of this round were there.
    came: Nanos,
}

impl Slots for Sockets {
    #[inline(always)]
    fn copy(&mut self, listener: u8, slot: u16, frame: &[u8]) {
        if let Some(Some(slots)) = self.slots.get(usize::from(listener)) {
            slots.copy(slot, frame);
            slots.stamp(slot, self.came);
        }
    }
}

/// The adapter's receiving half, and where its frames go.
pub(crate) struct Receiving {
    card: CardReceiver,
    interrupt: Event,
    buffers: FrameSlots,
    bus: DmaSegment,
    demux: CopyingDemux<'static, SOCKETS>,
    sockets: Sockets,
    /// The watch over everything that came.
    all: Watch,
    /// The half of the common time, if this host keeps one.
    listening: Option<Listening>,
}

impl Receiving {
    /// Opens the inboxes of all sockets, and gives the adapter its buffers.
    ///
    /// # Errors
    /// `Busy` if somebody else has the interrupt, `BadArgument` if two sockets have one port.
    pub fn open(
        card: CardReceiver,
        names: &AdapterNames,
        listening: Option<Listening>,
        all: impl Iterator<Item = SocketTerms>,
    ) -> Result<Receiving, Errno> {
        let mut demux = CopyingDemux::default();
        let mut sockets = Sockets {
            slots: [None; SOCKETS],
            bells: [None; SOCKETS],
            watches: [const { None }; SOCKETS],
            came: Nanos::ZERO,
        };
        for terms in all {
            let known = SOCKET_NAMES.get(usize::from(terms.number)).ok_or(Errno::Absent)?;
            let (inbox, slots) = inbox(known.inbox, terms.quota)?;
            let place = if terms.is_rest() {
                demux.listen_to_rest(inbox, terms.quota)
            } else {
                demux.listen(&diapason_netlib::listener(&terms), inbox)
            };
            let place = place.map_err(|refusal| {
                log!("port {} is refused: {refusal:?}", terms.port);
                Errno::Busy
            })?;
            sockets.watches[usize::from(place)] = Some(Watch::of_socket(place, terms.number)?);
            sockets.slots[usize::from(place)] = Some(slots);
            sockets.bells[usize::from(place)] = Some(Semaphore::open(known.ready)?);
        }
        let interrupt = Event::message(names.device, 0)?;
        let buffers = FrameSlots::of_adapter(names.buffers, RING as u16)?;
        let bus = DmaSegment::attach(names.buffers)?;
        let all = Watch::of_adapter()?;
        let mut receiving =
            Receiving { card, interrupt, buffers, bus, demux, sockets, all, listening };
        (0..RING as u16 - 1).for_each(|buffer| receiving.offer(buffer));
        receiving.card.publish();
        // A neighbour may have sent before this host was ready. Such frames are not lost by it, as
        // those are not that came before the adapter was started.
        let _ = receiving.card.lost();
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
            if let Some(listening) = &mut self.listening {
                listening.tell();
            }
            self.interrupt.wait(Nanos::FOREVER)?;
        }
    }

    /// Takes the frames that came before it began, and no others: readers are woken when they all
    /// are sorted, and the bill counts no more than these. Returns the listeners whose readers may
    /// sleep, one bit each.
    fn round(&mut self) -> u64 {
        let mut woken = 0;
        let ready = self.card.ready();
        self.sockets.came = time::now();
        for _ in 0..ready {
            let Some(taken) = self.card.take() else { break };
            if let Posted::Wakes(place) = time::work(RECEIVE_FRAME, || self.sort(taken)) {
                woken |= 1 << place;
            }
            self.offer(taken.buffer);
        }
        if let Some(listening) = &mut self.listening {
            listening.round(self.card.registers());
        }
        self.demux.lost(self.card.lost().into());
        self.card.publish();
        self.card.arm();
        self.count();
        woken
    }

    /// Counts what came, and compares it with what the plan assumes.
    fn count(&mut self) {
        let (now, demux) = (time::now(), &self.demux);
        self.all.note(now, demux.counts(), 0);
        for (place, watch) in (0..).zip(self.sockets.watches.iter_mut().flatten()) {
            if let Some(counts) = demux.counts_of(place) {
                watch.note(now, counts, demux.waiting(place));
            }
        }
    }

    fn sort(&mut self, taken: Taken) -> Posted {
        if let Some(listening) = &mut self.listening {
            // A stamp that stays in the adapter locks out others, so one of a bad frame is taken,
            // too.
            let whole = taken.fault.is_none() && taken.length <= SLOT_FRAME;
            let length = if whole { taken.length } else { 0 };
            let frame = self.buffers.buffer(taken.buffer).get(..length).unwrap_or(&[]);
            listening.take(self.card.registers(), frame, taken.stamped);
        }
        if let Some(reason) = taken.fault {
            return self.demux.refuse(reason);
        }
        if taken.length > SLOT_FRAME {
            return self.demux.refuse(Discard::Long);
        }
        let frame = self.buffers.buffer(taken.buffer).get(..taken.length).unwrap_or(&[]);
        self.demux.arrive(frame, &mut self.sockets)
    }
}
