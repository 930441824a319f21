//! A client that writes to a channel: its frames, what it wants, and what it is told.
//!
//! The client's frames stay in its pipe until the interface has room; between the pipe and an
//! acknowledgement they are *flying*. For every fate of a frame, one count of the report grows.
//!
//! A client of a place for tuned pipes has a channel for as long as its pipe is open. It has no say
//! in how the channel takes part in its bus.
//!
//! Reports are written whenever there is something new, but the client is woken only for what it
//! may wait for: an answer, another phase, room for half a pipe, or that all frames are through.

use crate::platform::{MessagePort, Platform, Wakes};
use alloc::collections::VecDeque;
use core::sync::atomic::{Ordering, fence};
use diapason_abi::pipe::{OUT_RECORD_BYTES, REPORT_BYTES};
use diapason_abi::{Errno, MESSAGE_BYTES, Nanos};
use diapason_can::AnyFrame;
use diapason_can::exchange::{
    ChannelReport, ChannelRequest, Departure, FdDeparture, Phase, RequestReply,
};
use diapason_contract::can::{ChannelNames, DEPARTURES, FD_RECORD, REPORTS, REPORTS_KEPT};
use diapason_contract::tuned;
use diapason_pipe::clock::Delay;
use diapason_pipe::{Reader, Writer};
use diapason_usb::class::can::{FrameOutcome, InterfaceEvent};
use diapason_usb::class::kvaser::HELD;

// Buffers are as large as descriptions make them.
const _: () = assert!(128 + size_of::<ChannelReport>() * REPORTS <= REPORT_BYTES as usize);
const _: () = assert!(size_of::<Departure>() <= OUT_RECORD_BYTES);
const _: () = assert!(size_of::<FdDeparture>() <= FD_RECORD.1);

/// A pipe with so few frames has room enough to wake who waits for it.
const ROOMY: usize = DEPARTURES / 2;

/// The pipe with the frames of a client, as its channel has them.
enum Departures {
    Classic(Reader<'static, Departure, DEPARTURES>),
    Fd(Reader<'static, FdDeparture, DEPARTURES>),
}

impl Departures {
    /// Returns how many frames wait, at most as many as there is room for.
    fn waiting(&self) -> Option<usize> {
        match self {
            Departures::Classic(pipe) => pipe.len().ok(),
            Departures::Fd(pipe) => pipe.len().ok(),
        }
    }

    /// Takes the next record: when it was written, and its frame if it is one.
    fn pop(&mut self) -> Option<(Nanos, Option<AnyFrame>)> {
        match self {
            Departures::Classic(pipe) => {
                let record = pipe.pop()?;
                Some((Nanos(record.written), record.frame().map(AnyFrame::Classic)))
            }
            Departures::Fd(pipe) => {
                let record = pipe.pop()?;
                // A frame without the switch would be longer than what bounds of pipes count.
                let frame = record.frame().filter(|frame| !is_slow(frame));
                Some((Nanos(record.head.written), frame))
            }
        }
    }
}

/// Returns whether a frame is one of CAN FD whose data goes at the rate of arbitration.
const fn is_slow(frame: &AnyFrame) -> bool {
    matches!(frame, AnyFrame::Fd(frame) if !frame.is_fast())
}

/// The server's end of what a client that writes has.
struct Desk<P: Platform> {
    /// Frames to be sent.
    departures: Departures,
    /// How the channel is.
    reports: Writer<'static, ChannelReport, REPORTS>,
    /// The requests of the client.
    requests: P::Mailbox,
}

/// A client of a channel.
pub(crate) struct Client<P: Platform> {
    desk: Desk<P>,
    report: ChannelReport,
    /// There is something to report, and the client may be waiting for it.
    due: bool,
    wake: bool,
    /// The client was told that there is room, and that nothing is under way.
    roomy: bool,
    settled: bool,
    /// When each frame between pipe and acknowledgement was written.
    flying: VecDeque<Nanos>,
    /// A status was asked for by this request, and from the controller.
    owed: Option<(u32, bool)>,
}

impl<P: Platform> Client<P> {
    /// Returns the client of an interface's channel with these names, which has CAN FD or not.
    pub fn new(
        platform: &P,
        interface: usize,
        (names, fd): (&ChannelNames, bool),
    ) -> Result<Client<P>, Errno> {
        let departures = match fd {
            true => Departures::Fd(platform.reader(names.fd_departures)?),
            false => Departures::Classic(platform.reader(names.departures)?),
        };
        let reports = platform.writer(names.reports)?;
        let requests = platform.mailbox(names.requests, Wakes::Sending(interface))?;
        Ok(Client::with(Desk { departures, reports, requests }))
    }

    /// Returns the client of a place for tuned pipes.
    pub fn of_place(platform: &P, place: usize) -> Result<Client<P>, Errno> {
        let names = tuned::names(place).ok_or(Errno::Absent)?;
        let departures = Departures::Classic(platform.reader(names.out)?);
        let reports = platform.writer(names.reports)?;
        let requests = platform.mailbox(names.control, Wakes::Sending(0))?;
        Ok(Client::with(Desk { departures, reports, requests }))
    }

    fn with(desk: Desk<P>) -> Client<P> {
        let (report, due, wake) = (ChannelReport::default(), false, false);
        let (roomy, settled, owed) = (true, true, None);
        let flying = VecDeque::with_capacity(HELD);
        Client { desk, report, due, wake, roomy, settled, flying, owed }
    }

    /// Returns its next request.
    pub fn hear(&mut self) -> Option<ChannelRequest> {
        let mut bytes = [0; MESSAGE_BYTES];
        loop {
            let length = self.desk.requests.receive(&mut bytes)?;
            match bytes.get(..length).and_then(ChannelRequest::parse) {
                Some(request) => return Some(request),
                None => self.answer(self.report.token, RequestReply::Nonsense),
            }
        }
    }

    /// Its request is being done. A status that it wanted before is not: the answer to that would
    /// stand in the place of this one.
    pub fn hears(&mut self, token: u32) {
        self.owed = None;
        self.answer(token, RequestReply::Heard);
    }

    /// Tells the client that its request is being done, or cannot be.
    pub fn answer(&mut self, token: u32, answer: RequestReply) {
        (self.report.token, self.report.answer) = (token, answer as u8);
        (self.due, self.wake) = (true, true);
    }

    /// Notes that the client wants its pipe looked at, or a report for which there was no room.
    pub fn look(&mut self) {
        self.wake |= self.due;
    }

    /// Refuses the bit rate that it wanted: the interface has none like it.
    pub fn refuse_rate(&mut self) {
        self.answer(self.report.token, RequestReply::NoSuchRate);
    }

    /// Notes that the client wants to know how its controller is.
    pub fn owe(&mut self, token: u32) {
        self.owed = Some((token, false));
    }

    /// Returns whether its controller must be asked.
    pub fn must_ask(&self) -> bool {
        matches!(self.owed, Some((_, false)))
    }

    /// Notes that its controller was asked.
    pub fn asked(&mut self) {
        self.owed = self.owed.map(|(token, _)| (token, true));
    }

    /// Notes that the knowledge about its controller is complete.
    pub fn settle_debt(&mut self) {
        if let Some((token, _)) = self.owed.take() {
            self.answer(token, RequestReply::Heard);
        }
    }

    /// Returns the next frame, and when it was written; what is none is given up. The fence goes
    /// with that of the client, who wakes the server only if the pipe was empty: one of the two
    /// sees what the other did.
    pub fn next(&mut self, now: Nanos) -> Option<(AnyFrame, Nanos)> {
        self.count();
        let departures = &mut self.desk.departures;
        self.roomy &= departures.waiting().is_some_and(|waiting| waiting <= ROOMY);
        loop {
            let (written, frame) = departures.pop().or_else(|| {
                fence(Ordering::SeqCst);
                departures.pop()
            })?;
            self.report.taking = self.report.taking.max((now - written).0);
            match frame {
                Some(frame) => return Some((frame, written)),
                None => (self.report.given_up, self.due) = (self.report.given_up + 1, true),
            }
        }
    }

    /// Counts the frames that are under way. Between two looks of the server they only become more,
    /// so no count before one of them goes is missed. The client itself knows later of those that
    /// went, and would count more.
    fn count(&mut self) {
        let waiting = self.desk.departures.waiting().unwrap_or(0);
        let under_way = u32::try_from(waiting + self.flying.len()).unwrap_or(u32::MAX);
        self.report.under_way = self.report.under_way.max(under_way);
    }

    /// Notes whether the frame that was written at `written` was queued.
    pub fn took(&mut self, queued: bool, written: Nanos) {
        self.settled = false;
        if queued {
            self.flying.push_back(written);
        } else {
            (self.report.given_up, self.due) = (self.report.given_up + 1, true);
        }
    }

    /// Frames that wait in the pipe will not be sent.
    pub fn give_up(&mut self) {
        // At most what fits: a writer that never stops must not keep it here.
        for _ in 0..DEPARTURES {
            if self.desk.departures.pop().is_none() {
                return;
            }
            self.settled = false;
            (self.report.given_up, self.due) = (self.report.given_up + 1, true);
        }
    }

    /// Frames that fly will not be acknowledged any more.
    pub fn lose_flying(&mut self) {
        self.report.given_up += self.flying.len() as u64;
        self.flying.clear();
        self.settled = false;
        (self.report.transmit_errors, self.report.receive_errors) = (0, 0);
        self.due = true;
        self.settle_debt();
    }

    /// Takes an event of an interface for its channel, with the time that it took from there.
    pub fn note(&mut self, event: &InterfaceEvent, now: Nanos, back: Delay) {
        if matches!(event, InterfaceEvent::Acknowledged { .. }) {
            self.count();
        }
        let report = &mut self.report;
        match *event {
            InterfaceEvent::Acknowledged { time, outcome, .. } => {
                // A frame that an earlier owner of the channel wrote does not belong to this one.
                let Some(written) = self.flying.pop_front() else { return };
                match outcome {
                    FrameOutcome::Sent => {
                        let whole = now - written;
                        report.whole = report.whole.max(whole.0);
                        report.moving = report.moving.max((whole - back.beyond).0);
                        report.back = report.back.max(back.beyond.0);
                        let inexact = u32::try_from(back.inexact.0).unwrap_or(u32::MAX);
                        report.inexact = report.inexact.max(inexact);
                        report.through += 1;
                        (report.time, report.taken) = (time.0, now.0);
                    }
                    FrameOutcome::NotAcknowledged | FrameOutcome::ArbitrationLost => {
                        report.given_up += 1
                    }
                }
            }
            InterfaceEvent::BusError { counters, .. } => {
                report.errors = report.errors.wrapping_add(1);
                (report.transmit_errors, report.receive_errors) = counters;
            }
            InterfaceEvent::ChipState { counters, .. } => {
                (report.transmit_errors, report.receive_errors) = counters;
                self.settle_debt();
            }
            InterfaceEvent::Overrun { .. } => report.overruns = report.overruns.wrapping_add(1),
            InterfaceEvent::Closed { .. } => self.lose_flying(),
            InterfaceEvent::Opened { .. } => {}
            InterfaceEvent::Frame { .. }
            | InterfaceEvent::FdFrame { .. }
            | InterfaceEvent::Ready { .. }
            | InterfaceEvent::Failed { .. } => return,
        }
        self.due = true;
    }

    /// Writes a report if one is due and there is room; true if the client must be woken. Some of
    /// the room is for what it may wait for; what finds none stays due, and its reader, once awake,
    /// asks again when it has read.
    pub fn report(&mut self, phase: Phase) -> bool {
        if self.report.phase != phase as u8 {
            (self.report.phase, self.due) = (phase as u8, true);
            self.wake |= phase != Phase::Changing;
        }
        let waiting = self.desk.departures.waiting().unwrap_or(0);
        if !self.roomy && waiting <= ROOMY {
            (self.roomy, self.wake) = (true, true);
        }
        if !self.settled && self.flying.is_empty() && waiting == 0 {
            (self.settled, self.wake) = (true, true);
        }
        let most = if self.wake { REPORTS } else { REPORTS - REPORTS_KEPT };
        let room = self.desk.reports.len().is_ok_and(|unread| unread < most);
        if self.due && room && self.desk.reports.push(&self.report).is_ok() {
            self.due = false;
            (self.report.taking, self.report.moving) = (0, 0);
            (self.report.back, self.report.whole, self.report.inexact) = (0, 0, 0);
            self.report.under_way = 0;
        }
        core::mem::take(&mut self.wake)
    }
}
