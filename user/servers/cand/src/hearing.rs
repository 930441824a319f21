//! Messages of other nodes: the driver takes each out of its buffer, puts it into the memory of its
//! reader, and tells that.

use crate::CardRegisters;
use diapason_can::toucan::{BufferedFrame, BufferedOutbox, ToucanDriver, ended};
use diapason_can::{BitRate, Filter, mts, wire};
use diapason_contract::toucan::{
    ControllerNames, ControllerTerms, DRIFT_PPM, HALF_STAMP_BITS, HEAR, HEARD_SETTING, HEARING,
    HeardTerms, IN_MESSAGES, InMessage, MessageId, READ, READERS, STAMP_BITS,
};
use diapason_pipe::Writer;
use diapason_pipe::measured::{ControllerCounts, HeardReport};
use diapason_pipe::meter::Meter;
use diapason_pipe::size::Bucket;
use diapason_rt::sync::Semaphore;
use diapason_rt::{Errno, Nanos, log, pipe, settings, time};

const MILLION: u64 = 1_000_000;
/// The clock is read again so often, if the driver was preempted meanwhile.
const READINGS: usize = 4;

/// A message that the controller hears.
struct Stream {
    terms: HeardTerms,
    filter: Filter,
    buffer: usize,
    report: HeardReport,
    /// Frames that the buffer has lost so far.
    missed: u64,
    /// How often it may come.
    contract: Meter,
    /// Messages that came too soon. Errors excuse some: a destroyed frame may come twice.
    repeated: Meter,
    /// Messages that were lost in the buffer. Errors excuse some, for the same reason.
    lost: Meter,
    /// Messages with more bytes than described.
    long: u64,
}

/// Where the messages of a reader go.
struct Outlet {
    writer: Writer<'static, InMessage, IN_MESSAGES>,
    tell: Semaphore,
}

/// All messages that the controller hears.
pub(crate) struct Hearing {
    rate: BitRate,
    streams: [Option<Stream>; HEARING],
    outlets: [Option<Outlet>; READERS],
}

impl Stream {
    fn new(terms: HeardTerms, rate: BitRate, errors: Bucket) -> Stream {
        let filter = match terms.id {
            MessageId::Fixed(raw, extended) => Filter::only(extended, raw),
            MessageId::Code(code) => mts::code_filter(code),
        };
        let drift = terms.period_ns.saturating_mul(DRIFT_PPM) / MILLION;
        let contract = Bucket::periodic(Nanos(terms.period_ns) - Nanos(drift));
        let half = match terms.id {
            MessageId::Fixed(_, true) => HALF_STAMP_BITS,
            _ => 0,
        };
        let stamp = rate.time(STAMP_BITS + half) + READ;
        Stream {
            terms,
            filter,
            buffer: 0,
            missed: 0,
            report: HeardReport { number: terms.number, ..HeardReport::default() },
            contract: Meter::new(contract.with_jitter(Nanos(terms.jitter_ns) + stamp)),
            repeated: Meter::new(errors),
            lost: Meter::new(errors),
            long: 0,
        }
    }

    /// Counts a frame that was over at `now` if it came too soon or has too many bytes.
    fn count(&mut self, now: Nanos, bytes: usize) {
        if !self.contract.admits(now) {
            self.repeated.admit_all(now, 1);
        }
        self.long += u64::from(bytes > usize::from(self.terms.bytes));
        self.report.outside = self.repeated.outside() + self.long;
    }
}

impl Hearing {
    /// Reads which messages the controller hears. Frames are destroyed no more often than `errors`
    /// says.
    ///
    /// # Errors
    /// `Absent` if the settings make no sense.
    pub fn told(
        terms: &ControllerTerms,
        names: &ControllerNames,
        rate: BitRate,
        errors: Bucket,
    ) -> Result<Hearing, Errno> {
        let (mut streams, mut outlets) = ([const { None }; HEARING], [const { None }; READERS]);
        let told = settings::read();
        let all = HeardTerms::all(told.get(HEARD_SETTING));
        for heard in all.filter(|heard| heard.controller == terms.number) {
            let reader = usize::from(heard.reader);
            let place = streams.get_mut(usize::from(heard.place)).ok_or(Errno::Absent)?;
            *place = Some(Stream::new(heard, rate, errors));
            let outlet = outlets.get_mut(reader).ok_or(Errno::Absent)?;
            if outlet.is_none() {
                let writer = pipe::writer(names.heard[reader])?;
                *outlet = Some(Outlet { writer, tell: Semaphore::open(names.tell[reader])? });
            }
        }
        Ok(Hearing { rate, streams, outlets })
    }

    /// Returns whether a message has a new identifier for each deadline.
    pub fn ignores_regions(&self) -> bool {
        let by_code = |stream: &Stream| matches!(stream.terms.id, MessageId::Code(_));
        self.streams.iter().flatten().any(by_code)
    }

    /// Lets a buffer hear each message.
    ///
    /// # Errors
    /// `Absent` if the controller has too few buffers.
    pub fn listen(
        &mut self,
        outbox: &mut BufferedOutbox,
        module: &ToucanDriver<CardRegisters>,
    ) -> Result<(), Errno> {
        for stream in self.streams.iter_mut().flatten() {
            stream.buffer = outbox.listen(module, stream.filter).map_err(|_| Errno::Absent)?;
        }
        Ok(())
    }

    /// Brings all that came to its readers.
    pub fn bring(&mut self, outbox: &mut BufferedOutbox, module: &ToucanDriver<CardRegisters>) {
        let Hearing { rate, streams, outlets } = self;
        for stream in streams.iter_mut().flatten() {
            if !outbox.has_heard(stream.buffer) {
                continue;
            }
            time::work(HEAR, || {
                let heard = outbox.heard(module, stream.buffer);
                let lost = outbox.missed(stream.buffer);
                stream.lost.admit_all(time::now(), lost - stream.missed);
                (stream.missed, stream.report.missed) = (lost, stream.lost.outside());
                let (Some(heard), Some(Some(outlet))) =
                    (heard, outlets.get_mut(usize::from(stream.terms.reader)))
                else {
                    return;
                };
                let ended = end_of(*rate, module, &heard);
                stream.hand_over(outlet, &heard, ended);
            });
        }
    }

    /// Reports on each message, with the counts of the controller.
    pub fn say(&mut self, now: Nanos, controller: ControllerCounts) {
        for stream in self.streams.iter_mut().flatten() {
            stream.report.controller = controller;
            stream.report.say(now, &mut log::measured);
        }
    }
}

impl Stream {
    fn hand_over(&mut self, outlet: &mut Outlet, heard: &BufferedFrame, ended: Nanos) {
        let bytes = heard.frame.bytes();
        self.count(ended, bytes.len());
        let message = InMessage {
            ended_ns: ended.0,
            data: *heard.frame.padded(),
            place: self.terms.place.into(),
            length: bytes.len() as u32,
        };
        if outlet.writer.push(&message).is_err() {
            self.report.full += 1;
            return;
        }
        self.report.came(time::now() - ended);
        // At its limit it has been given often enough.
        let _ = outlet.tell.give();
    }
}

/// Returns when the frame ended, or somewhat before that.
fn end_of(rate: BitRate, module: &ToucanDriver<CardRegisters>, heard: &BufferedFrame) -> Nanos {
    let mut read = (Nanos::ZERO, 0);
    for _ in 0..READINGS {
        let before = time::now();
        read = (before, module.timer());
        if time::now() - before <= READ {
            break;
        }
    }
    let (before, timer) = read;
    let end = ended(rate, (heard.begun, timer), wire::length(&heard.frame), before);
    end - rate.time(STAMP_BITS)
}
