//! A channel: how it is opened, how it takes part in its bus, and how it is.

use crate::agreement::{
    ChannelCommand, ChannelParameters, ChannelRequest, Inlet, Phase, REPORTS, REPORTS_KEPT,
    RequestReply, SendingEnds, counter, inlet,
};
use crate::error::Error;
use crate::filters::Filters;
use crate::format::{Classic, Flexible, Format};
use crate::marks::{Mark, Marks};
use diapason_abi::{Errno, Nanos};
use diapason_can::bus::Health;
use diapason_can::exchange::{ChannelReport, Ledger};
use diapason_pipe::measured::Gauge;
use diapason_rt::sync::Semaphore;
use diapason_rt::{log, time};

/// An open channel. There is one for each channel of the server.
///
/// It measures what passes it and reports once a second, in whatever call of this library its
/// program is then: nothing is to be done for that.
pub struct Channel<F: Format = Classic> {
    pub(crate) arrivals: Inlet<F>,
    pub(crate) read: Gauge,
    pub(crate) ready: Semaphore,
    pub(crate) filters: Filters,
    pub(crate) writing: Option<Writing<F>>,
}

/// An open channel with CAN FD.
pub type FdChannel = Channel<Flexible>;

/// The parts of a channel that does more than read.
pub(crate) struct Writing<F: Format> {
    pub(crate) counter: SendingEnds<F>,
    pub(crate) books: Ledger,
    pub(crate) marks: Marks,
    gauge: Gauge,
    pub(crate) parameters: ChannelParameters,
    /// The channel was told to take part in its bus.
    pub(crate) on_bus: bool,
}

/// How a channel is. Frames are counted from when it was put on its bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// The phase of the channel between off and on its bus.
    pub phase: Phase,
    /// The state of the channel's controller.
    pub health: Health,
    /// The channel's error counters: transmit, receive.
    pub counters: (u8, u8),
    /// Errors it saw on its bus since the server began.
    pub errors: u32,
    /// Times the interface lost frames since the server began.
    pub overruns: u32,
    pub written: u64,
    /// Frames of these that somebody acknowledged.
    pub through: u64,
    /// Frames that will not be sent any more.
    pub given_up: u64,
    /// The time at which the last frame was through, by the interface's clock, and when the server
    /// knew.
    pub last_through: (Nanos, Nanos),
}

impl Status {
    /// Frames that are under way.
    #[must_use]
    pub const fn pending(&self) -> u64 {
        self.written - self.through - self.given_up
    }
}

impl Channel {
    /// Returns a channel to be read only. How it takes part in its bus is the server's affair.
    ///
    /// # Errors
    /// There is no such channel. Without the grants the process ends.
    pub fn listen(number: usize) -> Result<Channel, Error> {
        Channel::listening(number)
    }

    /// Returns a channel of the caller's own, off its bus. Frames that an earlier owner left are
    /// given up.
    ///
    /// # Errors
    /// There is no such channel, or the server does not answer in time.
    pub fn open(number: usize, deadline: Nanos) -> Result<Channel, Error> {
        Channel::opened(number, deadline)
    }
}

impl FdChannel {
    /// Returns a channel with CAN FD to be read only, like [`Channel::listen`].
    ///
    /// # Errors
    /// There is no such channel. If the channel of the description has no CAN FD, the process ends.
    pub fn listen_fd(number: usize) -> Result<FdChannel, Error> {
        Channel::listening(number)
    }

    /// Returns a channel with CAN FD of the caller's own, like [`Channel::open`].
    ///
    /// # Errors
    /// As of [`Channel::open`]. If the channel of the description has no CAN FD, the process ends.
    pub fn open_fd(number: usize, deadline: Nanos) -> Result<FdChannel, Error> {
        Channel::opened(number, deadline)
    }
}

impl<F: Format> Channel<F> {
    fn listening(number: usize) -> Result<Channel<F>, Error> {
        let (arrivals, ready) = inlet::<F>(number)?;
        let read = Gauge::new(false, number as u8);
        Ok(Channel { arrivals, read, ready, filters: Filters::default(), writing: None })
    }

    /// Counts messages that the caller found missing by their contents: they are reported as
    /// lost, together with those that the interface says it lost.
    pub fn missed(&mut self, messages: u64) {
        match &mut self.writing {
            Some(writing) => writing.gauge.missed(messages),
            None => self.read.missed(messages),
        }
    }

    /// Reports how the pipes do, if that is due; when it is due next.
    pub(crate) fn look(&mut self, now: Nanos) -> Nanos {
        self.read.fill(self.arrivals.peak());
        self.read.look(now, self.arrivals.lost(), &mut log::measured);
        let Some(writing) = &mut self.writing else { return self.read.due(now) };
        let (_, _, given_up) = writing.books.counts();
        writing.gauge.look(now, given_up, &mut log::measured);
        self.read.due(now).min(writing.gauge.due(now))
    }

    /// Waits until there is something new, or a report is due.
    pub(crate) fn rest(&mut self, deadline: Nanos) -> Result<(), Error> {
        let due = self.look(time::now());
        match self.ready.take(deadline.min(due)) {
            Err(Errno::TimedOut) if due < deadline => Ok(()),
            taken => Ok(taken?),
        }
    }

    fn opened(number: usize, deadline: Nanos) -> Result<Channel<F>, Error> {
        let mut channel = Channel::<F>::listening(number)?;
        let (books, parameters, on_bus) =
            (Ledger::default(), ChannelParameters::AS_DESCRIBED, false);
        let counter = counter(number)?;
        let (marks, gauge) = (Marks::default(), Gauge::new(true, number as u8));
        channel.writing = Some(Writing { counter, books, marks, gauge, parameters, on_bus });
        channel.leave(deadline)?;
        Ok(channel)
    }

    /// Bits per second, and where a bit is sampled in tenths of a per cent. A channel that is not
    /// told has what the description says, and the bounds of pipes hold for that.
    ///
    /// # Errors
    /// The channel is on its bus, or to be read only.
    pub fn set_bus_params(&mut self, bit_rate: u32, sample_point: u16) -> Result<(), Error> {
        let parameters = self.parameters()?;
        (parameters.bit_rate, parameters.sample_point) = (bit_rate, sample_point);
        Ok(())
    }

    /// Makes the channel only listen: it acknowledges and sends nothing.
    ///
    /// # Errors
    /// Sets the silent mode, like [`Channel::set_bus_params`].
    pub fn set_silent(&mut self, silent: bool) -> Result<(), Error> {
        self.parameters()?.silent = silent;
        Ok(())
    }

    fn parameters(&mut self) -> Result<&mut ChannelParameters, Error> {
        let writing = self.writing()?;
        if writing.on_bus { Err(Error::OnBus) } else { Ok(&mut writing.parameters) }
    }

    /// Takes part in the bus.
    ///
    /// # Errors
    /// The interface has no such bit rate, or is not there in time: then the channel takes part as
    /// soon as it is, unless it is told to leave.
    pub fn bus_on(&mut self, deadline: Nanos) -> Result<(), Error> {
        self.refresh()?;
        if self.writing()?.on_bus && self.writing()?.phase() == Phase::BusOff {
            // Frames that were written meanwhile must not go out after all.
            self.leave(deadline)?;
        }
        let writing = self.writing()?;
        if !writing.on_bus {
            writing.books.restart();
        }
        writing.on_bus = true;
        let wanted = ChannelCommand::Open(writing.parameters);
        let token = self.request(wanted, deadline)?;
        let opened = self.wait(deadline, |writing| {
            let latest = writing.books.latest();
            match (latest.token == token, latest.answer(), latest.phase()) {
                (true, RequestReply::NoSuchRate, _) => Some(Err(Error::NoSuchRate)),
                (true, _, Phase::Open) => Some(Ok(())),
                (true, _, Phase::BusOff) => Some(Err(Error::BusOff)),
                _ => None,
            }
        });
        if opened == Err(Error::NoSuchRate) {
            self.writing()?.on_bus = false;
        }
        opened
    }

    /// Leaves the bus; frames that are under way are given up.
    ///
    /// # Errors
    /// The channel is to be read only, or has not left in time.
    pub fn bus_off(&mut self, deadline: Nanos) -> Result<(), Error> {
        self.leave(deadline)
    }

    fn leave(&mut self, deadline: Nanos) -> Result<(), Error> {
        self.refresh()?;
        let token = self.request(ChannelCommand::Close, deadline)?;
        self.writing()?.on_bus = false;
        self.wait(deadline, |writing| {
            let off = matches!(writing.phase(), Phase::Closed | Phase::Absent | Phase::BusOff);
            (off && writing.books.latest().token == token).then_some(Ok(()))
        })
    }

    /// Returns how the channel is, as far as the server has said.
    ///
    /// # Errors
    /// The channel is to be read only.
    pub fn read_status(&mut self) -> Result<Status, Error> {
        self.refresh()?;
        let writing = self.writing()?;
        let latest = writing.books.latest();
        let (written, through, given_up) = writing.books.counts();
        Ok(Status {
            phase: latest.phase(),
            health: latest.health(),
            counters: (latest.transmit_errors, latest.receive_errors),
            errors: latest.errors,
            overruns: latest.overruns,
            written,
            through,
            given_up,
            last_through: (Nanos(latest.time), Nanos(latest.taken)),
        })
    }

    /// Returns the next report's mark of frames that are through, among the reports that came with
    /// any call so far. The oldest are lost if nobody asks for as long as the server can write
    /// reports.
    pub fn next_mark(&mut self) -> Option<Mark> {
        self.writing.as_mut()?.marks.take()
    }

    /// Returns the status after the controller was asked for it.
    ///
    /// # Errors
    /// The channel is to be read only, or there is no answer in time.
    pub fn request_chip_status(&mut self, deadline: Nanos) -> Result<Status, Error> {
        self.refresh()?;
        let token = self.request(ChannelCommand::Status, deadline)?;
        self.wait(deadline, |writing| (writing.books.latest().token == token).then_some(Ok(())))?;
        self.read_status()
    }

    /// Says what is wanted; the number by which a report will answer.
    fn request(&mut self, wanted: ChannelCommand, deadline: Nanos) -> Result<u32, Error> {
        let writing = self.writing()?;
        let token = writing.books.latest().token.wrapping_add(1);
        let request = ChannelRequest { wanted, token };
        writing.counter.requests.send(&request.bytes(), 0, deadline)?;
        Ok(token)
    }

    /// Waits until the reports say so.
    pub(crate) fn wait<T>(
        &mut self,
        deadline: Nanos,
        done: impl Fn(&Writing<F>) -> Option<Result<T, Error>>,
    ) -> Result<T, Error> {
        loop {
            self.refresh()?;
            if let Some(result) = done(self.writing()?) {
                return result;
            }
            self.rest(deadline)?;
        }
    }

    pub(crate) fn writing(&mut self) -> Result<&mut Writing<F>, Error> {
        self.writing.as_mut().ok_or(Error::ReceiveOnly)
    }

    /// Reads the reports that have come.
    pub(crate) fn refresh(&mut self) -> Result<(), Error> {
        let writing = self.writing()?;
        let waiting = writing.counter.reports.len().map_err(|_| Error::Corrupt)?;
        for _ in 0..waiting {
            if let Some(report) = writing.counter.reports.pop() {
                writing.heard(report);
            }
        }
        if waiting >= REPORTS - REPORTS_KEPT {
            // The server may have kept the last one for want of room.
            writing.wake();
        }
        self.look(time::now());
        Ok(())
    }
}

impl<F: Format> Writing<F> {
    fn heard(&mut self, report: ChannelReport) {
        let (_, before, _) = self.books.counts();
        self.books.note(report);
        let (_, through, _) = self.books.counts();
        self.marks.note(&report, through);
        self.gauge.fill(report.under_way.into());
        let new = u32::try_from(through.saturating_sub(before)).unwrap_or(u32::MAX);
        let times = [report.taking, report.moving, report.back].map(Nanos);
        self.gauge.through(new, times, Nanos(report.whole), Nanos(report.inexact.into()));
        if new > 0 {
            self.gauge.compare(Nanos(report.taken), Nanos(report.time));
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.books.latest().phase()
    }

    /// Has the server look at the pipe. A full mailbox wakes it anyway.
    pub(crate) fn wake(&self) {
        let request = ChannelRequest { wanted: ChannelCommand::Wake, token: 0 };
        let sent: Result<(), Errno> = self.counter.requests.send(&request.bytes(), 0, Nanos::ZERO);
        let _ = sent;
    }
}
