//! The thread that serves: it takes messages, moves them to the controller, and measures them.

use crate::CardRegisters;
use crate::senders::Senders;
use diapason_can::frame::{extended, standard};
use diapason_can::toucan::{BufferedOutbox, FrameSource, OutboxCounts, Through, ToucanDriver};
use diapason_can::{BitRate, CanFrame, Id, wire};
use diapason_contract::toucan::{
    ControllerNames, ControllerTerms, MESSAGES, MESSAGES_SETTING, MessageTerms, OutMessage, SERVE,
    SHARED, SPARE, TAKE,
};
use diapason_pipe::measured::{CanGauge, ControllerCounts, REPORT, next_report};
use diapason_rt::sync::Semaphore;
use diapason_rt::{Errno, Nanos, log, settings, time};

/// The driver looks at the controller so often at least: its timer counts 65,536 bits and begins
/// anew, and the driver has to read when a frame began before that.
const LOOK: Nanos = Nanos::from_millis(20);

/// A message of the description, and how it does.
struct Stream {
    terms: MessageTerms,
    id: Id,
    gauge: CanGauge,
    data: [u8; 8],
    length: usize,
    /// When its program had the one that waits, in ns, and the one before that.
    made: Option<Nanos>,
    last: Option<Nanos>,
}

impl Stream {
    fn new(terms: MessageTerms) -> Option<Stream> {
        let (raw, is_extended) = terms.id;
        let id = if is_extended { extended(raw) } else { standard(raw) };
        let gauge = CanGauge::new(terms.number, Nanos(terms.deadline_ns));
        let id = id.ok()?;
        Some(Stream { terms, id, gauge, data: [0; 8], length: 0, made: None, last: None })
    }

    /// Returns whether a message may come from this sender now.
    fn admits(&self, sender: u8, message: &OutMessage, made: Nanos) -> bool {
        let least = |last: Nanos| made >= last + Nanos(self.terms.period_ns);
        self.terms.sender == sender
            && message.length <= u32::from(self.terms.bytes)
            && self.last.is_none_or(least)
    }
}

/// The messages of all streams, as the outbox copies them.
struct Mail([Option<Stream>; MESSAGES]);

impl FrameSource for Mail {
    fn frame(&self, stream: u8, id: Id) -> Option<CanFrame> {
        let stream = self.0.get(usize::from(stream))?.as_ref()?;
        CanFrame::data(id, stream.data.get(..stream.length)?).ok()
    }
}

/// Everything that the thread has.
pub(crate) struct Serving {
    module: ToucanDriver<CardRegisters>,
    outbox: BufferedOutbox,
    mail: Mail,
    senders: Senders,
    bell: Semaphore,
    rate: BitRate,
    /// Messages that are of no stream.
    stray: u64,
}

impl Serving {
    /// Opens what the settings name.
    ///
    /// # Errors
    /// `Absent` if the settings make no sense.
    pub fn open(
        module: ToucanDriver<CardRegisters>,
        terms: &ControllerTerms,
        names: &ControllerNames,
        bell: Semaphore,
    ) -> Result<Serving, Errno> {
        let rate = BitRate::new(terms.rate).map_err(|_| Errno::Absent)?;
        let outbox = BufferedOutbox::new(rate, terms.own.into(), SHARED, SPARE);
        let outbox = outbox.map_err(|_| Errno::Absent)?;
        let mut mail = Mail([const { None }; MESSAGES]);
        let told = settings::read();
        for terms in MessageTerms::all(told.get(MESSAGES_SETTING)) {
            if let Some(place) = mail.0.get_mut(usize::from(terms.stream)) {
                *place = Stream::new(terms);
            }
        }
        let senders = Senders::open(terms.number, names)?;
        Ok(Serving { module, outbox, mail, senders, bell, rate, stray: 0 })
    }

    /// Takes and sends messages until a wait fails.
    ///
    /// # Errors
    /// Those of waiting for the semaphore.
    pub fn run(mut self) -> Result<(), Errno> {
        let mut due = time::now() + REPORT;
        loop {
            time::work(SERVE, || self.attend());
            while let Some((sender, message)) = self.senders.take() {
                time::work(TAKE, || self.post(sender, &message));
            }
            let now = time::now();
            if now >= due {
                due = next_report(due, now);
                self.report(now);
            }
            let look = self.outbox.due().unwrap_or(now + LOOK).min(now + LOOK);
            match self.bell.take(look.min(due)) {
                Ok(()) | Err(Errno::TimedOut) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    fn attend(&mut self) {
        self.outbox.attend(&self.module, &self.mail, time::now());
        while let Some(through) = self.outbox.take_sent() {
            self.note(through, None);
        }
    }

    fn post(&mut self, sender: u8, message: &OutMessage) {
        let came = time::now();
        let made = Nanos(message.made_ns).min(came);
        let number = usize::try_from(message.stream).unwrap_or(MESSAGES);
        let Some(Some(stream)) = self.mail.0.get_mut(number) else {
            self.stray += 1;
            return;
        };
        if !stream.admits(sender, message, made) {
            stream.gauge.outside();
            if stream.terms.sender != sender || message.length > stream.terms.bytes.into() {
                return;
            }
        }
        let mut before = stream.made.replace(made);
        stream.last = Some(made);
        (stream.data, stream.length) = (message.data, message.length as usize);
        let id = stream.id;
        // The number is that of a stream: this cannot fail.
        let _ = self.outbox.post(&self.module, &self.mail, time::now(), number as u8, id);
        if let Some(Some(stream)) = self.mail.0.get_mut(number) {
            stream.gauge.took(time::now() - made);
        }
        while let Some(through) = self.outbox.take_sent() {
            let older = if usize::from(through.stream) == number { before.take() } else { None };
            self.note(through, older);
        }
        if let (Some(_), Some(Some(stream))) = (before, self.mail.0.get_mut(number)) {
            stream.gauge.replaced();
        }
    }

    /// Notes a frame that is through: of the message that its program had at `older`, or of the
    /// newest.
    fn note(&mut self, through: Through, older: Option<Nanos>) {
        let (timer, now) = (self.module.timer(), time::now());
        let Some(Some(stream)) = self.mail.0.get_mut(usize::from(through.stream)) else { return };
        let Some(made) = older.or_else(|| stream.made.take()) else { return };
        // The timer was read before the clock, and both bits are rounded down.
        let since = u64::from(timer.wrapping_sub(through.begun)).saturating_sub(1);
        // The data of an older one is gone: its frame was no longer than this.
        let data = stream.data.get(..stream.length).filter(|_| older.is_none());
        let frame = data.and_then(|data| CanFrame::data(stream.id, data).ok());
        let bits = match frame {
            Some(frame) => wire::length(&frame),
            None => wire::worst(matches!(stream.id, Id::Extended(_)), stream.terms.bytes.into()),
        };
        let end = (now - self.rate.time(since) + self.rate.time(bits.into())).min(now);
        stream.gauge.sent(end - made);
    }

    fn report(&mut self, now: Nanos) {
        let OutboxCounts { dry, errors, off, .. } = self.outbox.counts();
        let (dry, errors) = (narrow(dry, u32::MAX), narrow(errors, u16::MAX));
        let controller = ControllerCounts { dry, errors, off: narrow(off, u16::MAX) };
        for stream in self.mail.0.iter_mut().flatten() {
            stream.gauge.say(now, controller, &mut log::measured);
        }
        if self.stray > 0 {
            log!("{} messages are of no stream", self.stray);
            self.stray = 0;
        }
    }
}

/// Returns a count, or `most` if it is larger than that.
fn narrow<T: TryFrom<u64>>(count: u64, most: T) -> T {
    T::try_from(count).unwrap_or(most)
}
