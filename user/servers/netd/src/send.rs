//! Sending: programs write whole frames, and this thread only looks whether each is what its
//! socket may send, and posts it.

use crate::clock::Timekeeper;
use crate::outlets::Outlets;
use crate::report::Reports;
use diapason_contract::ethernet::{
    AdapterNames, OutFrame, RING, SEND_FRAME, SLOT_BYTES, SOCKETS, SocketTerms, TIME_BUFFERS,
};
use diapason_netlib::card::CardSender;
use diapason_netlib::memory::FrameSlots;
use diapason_rt::memory::DmaSegment;
use diapason_rt::sync::Semaphore;
use diapason_rt::{Errno, Nanos, time};

/// The pause while the adapter has no room.
pub(crate) const PAUSE: Nanos = Nanos::from_micros(200);

/// The adapter's sending half, and where its frames come from.
pub(crate) struct Sending {
    pub card: CardSender,
    buffers: FrameSlots,
    bus: DmaSegment,
    ask: Semaphore,
    pub outlets: Outlets,
    sent: u64,
    /// Frames that were given to the adapter after the last event of the common time.
    behind: usize,
    /// Frames of the common time that were given to the adapter after the last frame of a program.
    pub later: usize,
    /// The buffer of the last frame of the common time behind gates.
    timed: Option<usize>,
    /// Frames of each socket that gates discarded because they did not keep step.
    pub out_of_step: [u64; SOCKETS],
    pub reports: Reports,
}

impl Sending {
    /// Opens the buffers to send from.
    ///
    /// # Errors
    /// None for what the description grants.
    pub fn open(
        card: CardSender,
        names: &AdapterNames,
        reports: Reports,
        outlets: Outlets,
    ) -> Result<Sending, Errno> {
        Ok(Sending {
            card,
            buffers: FrameSlots::of_adapter(names.buffers, 2 * RING as u16)?,
            bus: DmaSegment::attach(names.buffers)?,
            ask: Semaphore::open(names.send)?,
            outlets,
            sent: 0,
            behind: 0,
            later: 0,
            timed: None,
            out_of_step: [0; SOCKETS],
            reports,
        })
    }

    /// Sends for ever: one frame of each socket in a turn, and those of the common time.
    ///
    /// # Errors
    /// Those of waiting for programs.
    pub fn run(mut self, mut keeper: Option<Timekeeper>) -> Result<(), Errno> {
        loop {
            let until = keeper.as_mut().map_or(Nanos::FOREVER, |it| it.look(&mut self));
            if !self.turn() {
                self.wait(until)?;
            }
            self.report(keeper.as_ref());
        }
    }

    /// Waits until a program has something to send, a report is due, or this time.
    ///
    /// # Errors
    /// Those of waiting for programs.
    pub fn wait(&mut self, until: Nanos) -> Result<(), Errno> {
        match self.ask.take(self.reports.due(time::now()).min(until)) {
            Ok(()) | Err(Errno::TimedOut) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Reports if that is due, also on the common time if the host keeps one.
    pub fn report(&mut self, keeper: Option<&Timekeeper>) {
        let counts = [self.sent, self.outlets.foreign];
        let counts = (counts, &self.out_of_step);
        self.reports.look(time::now(), counts, keeper, || self.card.link());
    }

    /// Sends at most one frame of each socket. Returns whether there was one.
    fn turn(&mut self) -> bool {
        let mut any = false;
        for number in 0..SOCKETS {
            let Some(place) = self.card.vacant() else {
                time::sleep(PAUSE);
                return true;
            };
            let Some(outlet) = &mut self.outlets.all[number] else { continue };
            let Some(frame) = outlet.frames.pop() else { continue };
            any = true;
            let terms = outlet.terms;
            time::work(SEND_FRAME, || self.post(place, &terms, &frame));
        }
        any
    }

    /// Returns whether the adapter has sent the last event of the common time.
    pub fn is_gone(&mut self) -> bool {
        self.card.settle() <= self.behind
    }

    /// Gives the adapter a frame of the common time, whose stamp is wanted if it is an event. A
    /// frame that the adapter has no room for is lost.
    pub fn post_time(&mut self, frame: &[u8], is_event: bool) {
        let Some(place) = self.time_place() else { return };
        let buffer = RING + place;
        self.buffers.copy(buffer as u16, frame);
        let (address, bytes) = (self.bus.bus_address(buffer * SLOT_BYTES), frame.len() as u16);
        if is_event {
            self.card.send_stamped(address, bytes);
            self.behind = 0;
        } else {
            self.card.send(address, bytes);
            self.behind += 1;
        }
        self.later += 1;
        self.sent += 1;
    }

    /// Lets frames of the common time use only the last [`TIME_BUFFERS`]: the others wait behind
    /// gates.
    pub fn divide(&mut self) {
        self.timed = Some(0);
    }

    /// Returns the buffer of the next frame of the common time, if there is one.
    fn time_place(&mut self) -> Option<usize> {
        let Some(last) = self.timed else { return self.card.vacant() };
        // The adapter sends in order. So a buffer is free again if fewer frames are unsent than
        // were given since then.
        if self.card.settle() >= TIME_BUFFERS {
            return None;
        }
        let next = (last + 1) % TIME_BUFFERS;
        self.timed = Some(next);
        Some(RING - TIME_BUFFERS + next)
    }

    fn post(&mut self, place: usize, terms: &SocketTerms, frame: &OutFrame) {
        if let Some(bytes) = self.fill(place, terms, frame) {
            self.give(place, bytes);
        }
    }

    /// Copies a frame into a buffer, if its socket may send it. Returns its bytes.
    pub fn fill(&mut self, place: usize, terms: &SocketTerms, frame: &OutFrame) -> Option<u16> {
        let bytes = self.outlets.allow(terms, frame)?;
        self.buffers.copy((RING + place) as u16, bytes);
        Some(bytes.len() as u16)
    }

    /// Gives the adapter the frame in a buffer.
    pub fn give(&mut self, place: usize, bytes: u16) {
        self.card.send(self.bus.bus_address((RING + place) * SLOT_BYTES), bytes);
        self.behind += 1;
        self.later = 0;
        self.sent += 1;
    }
}
