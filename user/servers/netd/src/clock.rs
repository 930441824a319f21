//! The common time of this host: a node of gPTP at the adapter, in two halves.
//!
//! The thread that receives takes stamps with their frames, and the other one does turns. Turns are
//! at least [`TURN_NS`] apart, and a turn has a largest size. So no flood of messages takes more of
//! the thread that sends than the plan counts. A message that finds the ring full is lost.

use crate::send::Sending;
use core::sync::atomic::{AtomicBool, Ordering};
use diapason_contract::ethernet::AdapterNames;
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
}

impl Timekeeper {
    /// Returns the half, and starts the adapter's stamps, if the description asks for a common
    /// time. The adapter has this address.
    ///
    /// # Errors
    /// `Absent` if no time follows from the terms, `Busy` if somebody has it.
    pub fn open(card: &CardSender, mac: [u8; 6]) -> Result<Option<Timekeeper>, Errno> {
        let Some(told) = GptpTerms::of(settings::read().get(TIME_SETTING)) else { return Ok(None) };
        let terms = SyncTerms::new(SyncBase::of(&told.base)).map_err(|_| Errno::Absent)?;
        let heard = HEARD.reader().ok_or(Errno::Busy)?;
        stamps::start(card.registers(), GROUP);
        let own = Grandmaster::free(told.priority, identity_of(mac));
        let node = TimeNode::new(terms, own, [mac], time::now());
        let station = TimeStation::new(node, terms.base().stamp, told.apart_ppm);
        Ok(Some(Timekeeper { station, heard, next: Nanos::ZERO, due: Nanos::ZERO }))
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

    /// Returns the report on the time `now`.
    pub fn report(&self, adapter: u8, now: Nanos) -> TimeReport {
        let node = self.station.node();
        TimeReport {
            adapter,
            common: node.time(now),
            grandmaster: node.grandmaster().map_or(0, u64::from_be_bytes),
            unstamped: self.station.unstamped(),
            lost: self.heard.lost(),
        }
    }
}
