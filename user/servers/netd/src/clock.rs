//! The common time of this host: a node of gPTP at the adapter, in two halves.
//!
//! The thread that receives takes stamps with their frames, and the other one does turns. Turns are
//! at least [`TURN_NS`] apart, and a turn has a largest size. So no flood of messages takes more of
//! the thread that sends than the plan counts. A message that finds the ring full is lost.

use crate::send::Sending;
use core::sync::atomic::{AtomicBool, Ordering};
use diapason_contract::ethernet::{AdapterNames, AdapterTerms};
use diapason_contract::time::{GptpTerms, SEND_TIME, TIME_SETTING, TURN_NS};
use diapason_ether::stamps;
use diapason_ether::station::{HEARD_MAX, HeardFrame, TimeReceiver, TimeStation};
use diapason_gptp::{GROUP, Grandmaster, SyncBase, SyncTerms, TimeNode, identity_of};
use diapason_netlib::card::{CardRegisters, CardSender};
use diapason_pipe::measured::TimeReport;
use diapason_pipe::{Reader, StaticRing, Writer};
use diapason_rt::sync::Semaphore;
use diapason_rt::{Errno, Nanos, settings, time};

/// Messages on their way from one thread to the other.
static HEARD: StaticRing<HeardFrame, HEARD_MAX> = StaticRing::new();
/// The thread that sends was told of messages, and did no turn since then.
static TOLD: AtomicBool = AtomicBool::new(false);

/// The half of the thread that receives.
pub(crate) struct Listening {
    receiver: TimeReceiver,
    heard: Writer<'static, HeardFrame, HEARD_MAX>,
    bell: Semaphore,
    came: bool,
}

impl Listening {
    /// Returns the half, if the description asks for a common time.
    ///
    /// # Errors
    /// `Busy` if somebody has it.
    pub fn open(names: &AdapterNames) -> Result<Option<Listening>, Errno> {
        if settings::read().get(TIME_SETTING).is_empty() {
            return Ok(None);
        }
        let heard = HEARD.writer().ok_or(Errno::Busy)?;
        let (receiver, bell) = (TimeReceiver::default(), Semaphore::open(names.send)?);
        Ok(Some(Listening { receiver, heard, bell, came: false }))
    }

    /// Takes a frame, and its stamp if the adapter `stamped` it.
    pub fn take(&mut self, registers: &CardRegisters, frame: &[u8], stamped: bool) {
        if let Some(heard) = self.receiver.take(registers, frame, stamped) {
            // The ring counts what is lost.
            let _ = self.heard.push(&heard);
            self.came = true;
        }
    }

    /// Ends a round, in which all frames were taken that were there when it began.
    pub fn round(&mut self, registers: &CardRegisters) {
        self.receiver.round(registers);
    }

    /// Tells the thread that sends of what came, once for each of its turns.
    pub fn tell(&mut self) {
        if core::mem::take(&mut self.came) && !TOLD.swap(true, Ordering::AcqRel) {
            // At its limit it has been given often enough.
            let _ = self.bell.give();
        }
    }
}

/// The half of the thread that sends.
pub(crate) struct Timekeeper {
    station: TimeStation,
    heard: Reader<'static, HeardFrame, HEARD_MAX>,
    /// No turn begins before this.
    next: Nanos,
    /// A turn is due then, if none is asked for before.
    due: Nanos,
    /// The frames of programs that were discarded, and what else a report says beside the node.
    told: TimeReport,
}

impl Timekeeper {
    /// Returns the half, and starts the adapter's stamps, if the description asks for a common
    /// time.
    ///
    /// # Errors
    /// `Absent` if no time follows from the terms, `Busy` if somebody has it.
    pub fn open(
        card: &CardSender,
        &AdapterTerms { number, mac, .. }: &AdapterTerms,
    ) -> Result<Option<Timekeeper>, Errno> {
        let setting = GptpTerms::of(settings::read().get(TIME_SETTING));
        let Some(GptpTerms { priority, apart_ppm, base }) = setting else { return Ok(None) };
        let terms = SyncTerms::new(SyncBase::of(&base)).map_err(|_| Errno::Absent)?;
        let heard = HEARD.reader().ok_or(Errno::Busy)?;
        stamps::start(card.registers(), GROUP);
        let own = Grandmaster::free(priority, identity_of(mac));
        let told = TimeReport::new(number, time::now());
        let node = TimeNode::new(terms, own, [mac], told.begun);
        let station = TimeStation::new(node, terms.base().stamp, apart_ppm);
        Ok(Some(Timekeeper { station, heard, next: Nanos::ZERO, due: Nanos::ZERO, told }))
    }

    /// Does a turn if one is due. Returns when to look again.
    pub fn look(&mut self, sending: &mut Sending) -> Nanos {
        let now = time::now();
        let is_asked = TOLD.load(Ordering::Acquire);
        if now < self.next || !is_asked && now < self.due {
            return if is_asked { self.next } else { self.due.max(self.next) };
        }
        self.next = now + Nanos(TURN_NS);
        // A message that comes from here on asks for the next turn.
        TOLD.store(false, Ordering::Release);
        self.due = time::work(SEND_TIME, || self.turn(sending));
        self.common(time::now());
        self.due.max(self.next)
    }

    fn turn(&mut self, sending: &mut Sending) -> Nanos {
        let registers = *sending.card.registers();
        let gone = self.station.awaits() && sending.is_gone();
        let heard = core::iter::from_fn(|| self.heard.pop());
        self.station.turn(&registers, time::now, (heard, gone), |out| {
            sending.post_time(out.frame.bytes(), out.event.is_some());
        })
    }

    /// Returns the common time; `None` while the host does not know it. Notes when it is first
    /// known.
    pub fn common(&mut self, now: Nanos) -> Option<Nanos> {
        let common = self.station.node().time(now);
        self.told.known = self.told.known.or(common.and(Some(now)));
        common
    }

    /// Counts a frame of a program that was discarded because the host does not know the time.
    pub fn discards(&mut self) {
        match self.told.known {
            None => self.told.without += 1,
            Some(_) => self.told.unsent += 1,
        }
    }

    /// Counts a frame of a program that was discarded because the program did not know the time
    /// yet, with those of a host that does not.
    pub fn teaches(&mut self) {
        self.told.without += 1;
    }

    /// Returns the host's clock when the common time will be this, as far as is known now.
    pub fn local(&self, common: Nanos) -> Option<Nanos> {
        self.station.node().local(common)
    }

    /// Returns the report on the time `now`.
    pub fn report(&self, now: Nanos) -> TimeReport {
        let node = self.station.node();
        TimeReport {
            common: node.time(now),
            grandmaster: node.grandmaster().map_or(0, u64::from_be_bytes),
            unstamped: self.station.unstamped(),
            lost: self.heard.lost(),
            ..self.told
        }
    }
}
