//! The thread that serves: it takes messages, moves them to the controller, and measures them.
//!
//! A message that comes before its contract lets it waits in the segment of its sender, and so do
//! the messages behind it. So a sender that sends too often costs the driver a second wake-up for
//! each message that its contract lets in, and makes no message of another late.

use crate::hearing::Hearing;
use crate::on_time::OnTime;
use crate::senders::{self, Senders};
use crate::{CardRegisters, took_interrupt};
use diapason_can::frame::{extended, standard};
use diapason_can::mts::{NodeDuty, TIME_BYTES};
use diapason_can::toucan::{
    BufferedFrame, BufferedOutbox, FrameSource, OutboxCounts, Through, ToucanDriver, ended,
};
use diapason_can::{BitRate, CanFrame, Filter, Id, wire};
use diapason_contract::toucan::{
    ControllerNames, ControllerTerms, FIND, LOOK, MESSAGES, MESSAGES_SETTING, MessageId,
    MessageTerms, OutMessage, RENEW, SENDERS, SERVE, SHARED, SPARE, TAKE,
};
use diapason_pipe::intake::Admitted;
use diapason_pipe::measured::{CanGauge, ControllerCounts, REPORT, next_report};
use diapason_pipe::meter::Meter;
use diapason_pipe::size::Bucket;
use diapason_rt::sync::Semaphore;
use diapason_rt::{Errno, Nanos, log, settings, time};

/// A message of the description, and how it does.
struct Stream {
    terms: MessageTerms,
    /// The identifier that stays, or under MTS that of the newest high-speed message.
    id: Id,
    /// When that has to begin at the latest, by the common time.
    start_by: Nanos,
    /// From when its program has a high-speed message until then.
    distance: Nanos,
    meter: Meter,
    gauge: CanGauge,
    data: [u8; 8],
    length: usize,
    /// When its program had the one that waits, in ns.
    made: Option<Nanos>,
}

impl Stream {
    fn new(terms: MessageTerms, rate: BitRate) -> Option<Stream> {
        let id = match terms.id {
            MessageId::Fixed(raw, true) => extended(raw),
            MessageId::Fixed(raw, false) => standard(raw),
            // It gets its identifier with each message.
            MessageId::Code(_) => standard(0),
        };
        let frame = rate.time(wire::worst(false, terms.bytes.into()).into());
        let (start_by, distance) = (Nanos::ZERO, Nanos(terms.deadline_ns) - frame);
        let gauge = CanGauge::new(terms.number, Nanos(terms.deadline_ns));
        let contract = Bucket::periodic(Nanos(terms.period_ns));
        let meter = Meter::new(contract.with_jitter(Nanos(terms.jitter_ns)));
        let id = id.ok()?;
        let (data, length, made) = ([0; 8], 0, None);
        Some(Stream { terms, id, start_by, distance, meter, gauge, data, length, made })
    }

    /// Returns whether this sender has such a message.
    fn is_of(&self, sender: usize, message: &OutMessage) -> bool {
        usize::from(self.terms.sender) == sender && message.length <= self.terms.bytes.into()
    }
}

/// The messages of all streams, as the outbox copies them.
struct Mail([Option<Stream>; MESSAGES]);

impl Mail {
    /// Returns the stream that a message of this sender is of.
    fn stream_of(&mut self, sender: usize, message: &OutMessage) -> Option<&mut Stream> {
        let stream = self.0.get_mut(message.stream as usize)?.as_mut()?;
        stream.is_of(sender, message).then_some(stream)
    }

    /// Returns the stream that has this identifier for good.
    fn fixed(&self, id: Id) -> Option<u8> {
        let is_it = |it: &&Stream| matches!(it.terms.id, MessageId::Fixed(..)) && it.id == id;
        self.0.iter().flatten().find(is_it).map(|it| it.terms.stream)
    }
}

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
    hearing: Hearing,
    /// The buffer that hears the frames of the time, if one does.
    time_buffer: Option<usize>,
    rate: BitRate,
    /// The common time, under MTS.
    on_time: Option<OnTime>,
    /// When the driver looked at the controller last.
    looked: Nanos,
    /// How often frames may be destroyed and what was more, and the errors that were measured.
    errors: Meter,
    seen: u64,
    /// When each sender may go on that had a message of no stream, and how many there were.
    rests: [Nanos; SENDERS],
    stray: u64,
}

impl Serving {
    /// Opens what the settings name.
    ///
    /// # Errors
    /// `Absent` if the settings make no sense.
    pub fn open(
        mut module: ToucanDriver<CardRegisters>,
        terms: &ControllerTerms,
        names: &ControllerNames,
        bell: Semaphore,
    ) -> Result<Serving, Errno> {
        let rate = BitRate::new(terms.rate).map_err(|_| Errno::Absent)?;
        let outbox = BufferedOutbox::new(rate, terms.own.into(), SHARED, SPARE);
        let mut outbox = outbox.map_err(|_| Errno::Absent)?;
        let mut mail = Mail([const { None }; MESSAGES]);
        let told = settings::read();
        for terms in MessageTerms::all(told.get(MESSAGES_SETTING)) {
            if let Some(place) = mail.0.get_mut(usize::from(terms.stream)) {
                *place = Stream::new(terms, rate);
            }
        }
        let senders = senders::open(terms.number, names)?;
        let on_time = OnTime::open(rate, |id| mail.fixed(id))?;
        let (burst, interval) = terms.errors;
        // The driver sees an error up to so late.
        let errors = Bucket::periodic(Nanos(interval)).with_burst(burst).with_jitter(LOOK);
        let mut hearing = Hearing::told(terms, names, rate, errors)?;
        if hearing.ignores_regions() {
            module.ignore_regions();
        }
        let mut time_buffer = None;
        if let Some((on_time, id)) = &on_time {
            match on_time.leads() {
                None => {
                    let buffer = outbox.listen(&module, Filter::of(*id));
                    time_buffer = Some(buffer.map_err(|_| Errno::Absent)?);
                }
                Some(stream) => outbox.tell(stream),
            }
        }
        hearing.listen(&mut outbox, &module)?;
        let on_time = on_time.map(|(on_time, _)| on_time);
        let (looked, rests) = (Nanos::ZERO, [Nanos::ZERO; SENDERS]);
        let errors = Meter::new(errors);
        let (seen, stray) = (0, 0);
        Ok(Serving {
            module,
            outbox,
            mail,
            senders,
            bell,
            hearing,
            time_buffer,
            rate,
            on_time,
            looked,
            errors,
            seen,
            rests,
            stray,
        })
    }

    /// Takes and sends messages until a wait fails.
    ///
    /// # Errors
    /// Those of waiting for the semaphore.
    pub fn run(mut self) -> Result<(), Errno> {
        let mut due = time::now() + REPORT;
        loop {
            let now = time::now();
            if took_interrupt() || now >= self.look() {
                self.looked = now;
                time::work(SERVE, || self.attend());
                self.hearing.bring(&mut self.outbox, &self.module);
            }
            self.send_time(now);
            if self.on_time.as_ref().is_some_and(|it| now >= it.next_look(now)) {
                time::work(RENEW, || self.renew());
            }
            while let Some(one) = time::work(FIND, || self.find()) {
                time::work(TAKE, || self.post(&one));
            }
            let now = time::now();
            if now >= due {
                due = next_report(due, now);
                self.report(now);
            }
            let renews = self.on_time.as_ref().map_or(due, |it| it.next_look(now));
            let wake = self.senders.due().unwrap_or(due).min(self.look()).min(renews).min(due);
            match self.bell.take(wake) {
                Ok(()) | Err(Errno::TimedOut) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Returns when the driver has to look at the controller although nothing interrupts.
    fn look(&self) -> Nanos {
        let look = self.looked + LOOK;
        self.outbox.due().unwrap_or(look).min(look)
    }

    fn attend(&mut self) {
        self.outbox.attend(&self.module, &self.mail, time::now());
        if let (Some(on_time), Some(buffer)) = (&mut self.on_time, self.time_buffer)
            && let Some(BufferedFrame { frame, begun }) = self.outbox.heard(&self.module, buffer)
        {
            on_time.hear(&self.module, &frame, begun);
        }
        self.note_all();
        let errors = self.outbox.counts().errors;
        self.errors.admit_all(time::now(), errors - self.seen);
        self.seen = errors;
    }

    /// Sends a frame of the time, if this node is the master and one is due.
    fn send_time(&mut self, now: Nanos) {
        let Some(on_time) = &mut self.on_time else { return };
        let (Some(number), Some((due, frame))) = (on_time.leads(), on_time.ask(now)) else {
            return;
        };
        self.outbox.look_for_errors(&self.module);
        on_time.asks(&self.outbox.counts());
        time::work(TAKE, || {
            let Some(Some(stream)) = self.mail.0.get_mut(usize::from(number)) else { return };
            (stream.data, stream.length, stream.made) = (frame.bytes(), TIME_BYTES, Some(due));
            let id = stream.id;
            // The number is that of a stream: this cannot fail.
            let _ = self.outbox.post(&self.module, &self.mail, now, number, id);
            if let Some(Some(stream)) = self.mail.0.get_mut(usize::from(number)) {
                stream.gauge.took(time::now() - due);
            }
            self.note_all();
        });
    }

    fn note_all(&mut self) {
        while let Some(through) = self.outbox.take_sent() {
            self.note(through, None);
        }
    }

    /// Gives all high-speed messages that wait the identifiers of the epoch that has begun, or
    /// takes them back if the node does not know the time any more.
    fn renew(&mut self) {
        let Serving { module, outbox, mail, on_time: Some(on_time), .. } = self else { return };
        if on_time.look(time::now()) == NodeDuty::None {
            return;
        }
        for place in 0..MESSAGES {
            let Some(stream) = &mut mail.0[place] else { continue };
            let MessageId::Code(code) = stream.terms.id else { continue };
            let (number, id) = (stream.terms.stream, on_time.id(code, stream.start_by));
            stream.id = id.map_or(stream.id, Id::from);
            let waited = outbox.rename(module, number, id);
            if waited && id.is_none() {
                stream.made = None;
                on_time.lose();
            }
        }
        outbox.settle(module, mail, time::now());
        self.note_all();
    }

    /// Returns the identifier of a message that its program had at `made`. There is none if it is
    /// of high speed and the node does not know the time.
    fn id(&mut self, sender: usize, message: &OutMessage, made: Nanos) -> Option<Id> {
        let stream = self.mail.stream_of(sender, message)?;
        let MessageId::Code(code) = stream.terms.id else { return Some(stream.id) };
        let on_time = self.on_time.as_mut()?;
        let start_by = on_time.start_by(made, stream.distance);
        let Some(id) = start_by.and_then(|start_by| on_time.id(code, start_by)) else {
            on_time.lose();
            return None;
        };
        (stream.start_by, stream.id) = (start_by.unwrap_or_default(), id.into());
        Some(stream.id)
    }

    /// Takes a message that may come now.
    fn find(&mut self) -> Option<Admitted<OutMessage>> {
        let Serving { senders, mail, rests, .. } = self;
        senders.take(time::now(), |sender, message| {
            let opens = mail.stream_of(sender, message).map_or(Nanos::ZERO, |it| it.meter.opens());
            opens.max(rests[sender])
        })
    }

    /// Counts a message that its sender does not have.
    fn refuse(&mut self, sender: usize, message: &OutMessage, now: Nanos) {
        self.rests[sender] = now + LOOK;
        match self.mail.0.get_mut(message.stream as usize) {
            Some(Some(stream)) => stream.gauge.outside(),
            _ => self.stray += 1,
        }
    }

    fn post(&mut self, one: &Admitted<OutMessage>) {
        let Admitted { writer: sender, message, held } = one;
        let now = time::now();
        let Some(stream) = self.mail.stream_of(*sender, message) else {
            return self.refuse(*sender, message, now);
        };
        if held.is_some() {
            stream.gauge.outside();
        }
        // A message counts from when its program may have it at the earliest.
        let made = Nanos(message.made_ns).max(held.unwrap_or(Nanos::ZERO)).min(now);
        let Some(id) = self.id(*sender, message, made) else { return };
        let Some(stream) = self.mail.stream_of(*sender, message) else { return };
        let mut before = stream.made.replace(made);
        (stream.data, stream.length) = (message.data, message.length as usize);
        let number = stream.terms.stream;
        // The number is that of a stream: this cannot fail.
        let _ = self.outbox.post(&self.module, &self.mail, now, number, id);
        if let Some(stream) = self.mail.stream_of(*sender, message) {
            let posted = time::now();
            stream.gauge.took(posted - made);
            // The message came by now, so the next may come a period later at the earliest.
            let _ = stream.meter.admits(posted);
        }
        while let Some(through) = self.outbox.take_sent() {
            let older = if through.stream == number { before.take() } else { None };
            self.note(through, older);
        }
        if before.is_some()
            && let Some(stream) = self.mail.stream_of(*sender, message)
        {
            stream.gauge.replaced();
        }
    }

    /// Notes a frame that is through: of the message that its program had at `older`, or of the
    /// newest.
    fn note(&mut self, through: Through, older: Option<Nanos>) {
        let (timer, now) = (self.module.timer(), time::now());
        let Some(Some(stream)) = self.mail.0.get_mut(usize::from(through.stream)) else { return };
        let Some(made) = older.or_else(|| stream.made.take()) else { return };
        // The data of an older one is gone: its frame was no longer than this.
        let data = stream.data.get(..stream.length).filter(|_| older.is_none());
        let frame = data.and_then(|data| CanFrame::data(stream.id, data).ok());
        let bits = match frame {
            Some(frame) => wire::length(&frame),
            None => wire::worst(matches!(stream.id, Id::Extended(_)), stream.terms.bytes.into()),
        };
        let end = ended(self.rate, (through.begun, timer), bits, now).min(now);
        stream.gauge.sent(end - made);
        if let Some(on_time) = &mut self.on_time
            && on_time.leads() == Some(through.stream)
        {
            self.outbox.look_for_errors(&self.module);
            on_time.sent(&self.module, (through.begun, bits), &self.outbox.counts());
        }
    }

    fn report(&mut self, now: Nanos) {
        let (OutboxCounts { dry, off, .. }, errors) = (self.outbox.counts(), self.errors.outside());
        let untimed = self.on_time.as_ref().map_or(0, |on_time| on_time.untimed);
        let [dry, untimed, errors, off] = [dry, untimed, errors, off].map(narrow);
        let controller = ControllerCounts { dry, untimed, errors, off };
        for stream in self.mail.0.iter_mut().flatten() {
            stream.gauge.say(now, controller, &mut log::measured);
        }
        self.hearing.say(now, controller);
        if self.stray > 0 {
            log!("{} messages are of no stream", self.stray);
            self.stray = 0;
        }
    }
}

/// Returns a count, or the most that fits.
fn narrow(count: u64) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}
