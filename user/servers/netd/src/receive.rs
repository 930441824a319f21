//! The thread that receives from a card. It sorts the frames that came, and then wakes their
//! readers.

use crate::clock::Listening;
use crate::sorting::Sorting;
use diapason_contract::ethernet::{
    AdapterNames, RECEIVE, RECEIVE_FRAME, RING, SLOT_BYTES, SLOT_FRAME,
};
use diapason_ether::adapter::Taken;
use diapason_ether::{Buffers, Discard};
use diapason_netlib::card::CardReceiver;
use diapason_netlib::memory::FrameSlots;
use diapason_rt::event::Event;
use diapason_rt::memory::DmaSegment;
use diapason_rt::{Errno, Nanos, time};

/// The adapter's receiving half, and where its frames go.
pub(crate) struct Receiving {
    card: CardReceiver,
    interrupt: Event,
    buffers: FrameSlots,
    bus: DmaSegment,
    sorting: Sorting,
    /// The half of the common time, if this host keeps one.
    listening: Option<Listening>,
}

impl Receiving {
    /// Gives the adapter its buffers.
    ///
    /// # Errors
    /// `Busy` if somebody else has the interrupt.
    pub fn open(
        card: CardReceiver,
        names: &AdapterNames,
        listening: Option<Listening>,
        sorting: Sorting,
    ) -> Result<Receiving, Errno> {
        let interrupt = Event::message(names.device, 0)?;
        let buffers = FrameSlots::of_adapter(names.buffers, RING as u16)?;
        let bus = DmaSegment::attach(names.buffers)?;
        let mut receiving = Receiving { card, interrupt, buffers, bus, sorting, listening };
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
            self.sorting.ring(woken);
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
        self.sorting.came(time::now());
        for _ in 0..ready {
            let Some(taken) = self.card.take() else { break };
            woken |= time::work(RECEIVE_FRAME, || self.sort(taken));
            self.offer(taken.buffer);
        }
        if let Some(listening) = &mut self.listening {
            listening.round(self.card.registers());
        }
        self.sorting.lost(self.card.lost().into());
        self.card.publish();
        self.card.arm();
        self.sorting.count();
        woken
    }

    fn sort(&mut self, taken: Taken) -> u64 {
        if let Some(listening) = &mut self.listening {
            // A stamp that stays in the adapter locks out others, so one of a bad frame is taken,
            // too.
            let whole = taken.fault.is_none() && taken.length <= SLOT_FRAME;
            let length = if whole { taken.length } else { 0 };
            let frame = self.buffers.buffer(taken.buffer).get(..length).unwrap_or(&[]);
            listening.take(self.card.registers(), frame, taken.stamped);
        }
        if let Some(reason) = taken.fault {
            return self.sorting.refuse(reason);
        }
        match self.buffers.buffer(taken.buffer).get(..taken.length) {
            Some(frame) => self.sorting.sort(frame),
            None => self.sorting.refuse(Discard::Long),
        }
    }
}
