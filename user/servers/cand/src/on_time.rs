//! The common time of a bus under MTS, and the identifiers that follow from it. The driver follows
//! the frames of another node, or sends them itself.

use crate::CardRegisters;
use diapason_can::mts::{
    BusClock, Epochs, NodeDuty, NodeTime, Renewal, Renewing, TimeBase, TimeFrame, TimeTerms,
};
use diapason_can::toucan::{OutboxCounts, ToucanDriver, ended};
use diapason_can::{BitRate, CanFrame, Id, StandardId, frame, wire};
use diapason_contract::toucan::{MTS_SETTING, MtsTerms, STAMP_BITS};
use diapason_rt::{Errno, Nanos, settings, time};

const MILLION: u64 = 1_000_000;

/// The time of this node.
pub(crate) struct OnTime {
    time: NodeTime,
    epochs: Epochs,
    terms: MtsTerms,
    rate: BitRate,
    /// The stream of the frames of the time, if this node sends them.
    leads: Option<u8>,
    /// The errors and the losses of the bus when the last of them was asked for.
    asked: (u64, u64),
    /// How many of them in a row say no instant.
    silent: u32,
    /// The node knew the time at least once.
    knew: bool,
    /// High-speed messages that were lost because the node did not know the time any more. Of a
    /// master: own frames that said no instant although as many before did not as may be lost.
    pub untimed: u64,
}

impl OnTime {
    /// Returns the time of this node if the settings name one, and the identifier of its frames.
    /// `stream` returns the stream of an identifier that this host sends.
    ///
    /// # Errors
    /// `Absent` if the settings make no sense.
    pub fn open(
        rate: BitRate,
        stream: impl FnOnce(Id) -> Option<u8>,
    ) -> Result<Option<(OnTime, Id)>, Errno> {
        let told = settings::read();
        let Some(terms) = MtsTerms::of(told.get(MTS_SETTING)) else { return Ok(None) };
        let base = TimeBase {
            interval: Nanos(terms.interval_ns),
            late: Nanos(terms.late_ns),
            losses: terms.losses,
            drift_ppm: terms.drift_ppm,
            stamp: Nanos(terms.read_ns),
            grain: Nanos(terms.step_ns),
        };
        let times = TimeTerms::new(base).map_err(|_| Errno::Absent)?;
        let epochs = Epochs::new(Nanos(terms.epoch_ns), Nanos(terms.reach_ns));
        let epochs = epochs.map_err(|_| Errno::Absent)?;
        let id = frame::standard(terms.time_id).map_err(|_| Errno::Absent)?;
        let renewing = Renewing::ByClock { within: Nanos(terms.renewal_ns), repeating: 0 };
        let renewal = Renewal::new(epochs, Nanos(terms.clocks_ns), renewing);
        let leads = stream(id);
        let clock = BusClock::new(times, leads.map(|_| 0), time::now());
        let time = NodeTime::new(Some(clock), renewal);
        let (asked, silent, knew, untimed) = ((0, 0), 0, false, 0);
        Ok(Some((OnTime { time, epochs, terms, rate, leads, asked, silent, knew, untimed }, id)))
    }

    /// Returns the stream of the frames of the time, if this node sends them.
    pub fn leads(&self) -> Option<u8> {
        self.leads
    }

    /// Returns the frame of the time that has to go now, and when it was due.
    pub fn ask(&mut self, now: Nanos) -> Option<(Nanos, TimeFrame)> {
        let clock = self.time.clock()?;
        let due = clock.next_look();
        let frame = clock.look(now)?;
        Some((due.min(now), frame))
    }

    /// Takes in the counts just before that frame goes: errors until then spoil none.
    pub fn asks(&mut self, counts: &OutboxCounts) {
        self.asked = (counts.errors, counts.off);
    }

    /// Takes in that its own frame of the time is through, which began at `begun` and has so many
    /// bits. After an error or an uncertain reading of the clock nobody may use the instant.
    pub fn sent(
        &mut self,
        module: &ToucanDriver<CardRegisters>,
        (begun, bits): (u16, u32),
        counts: &OutboxCounts,
    ) {
        let (timer, now, is_certain) = self.read(module, begun);
        let clean = is_certain && self.asked == (counts.errors, counts.off);
        let end = ended(self.rate, (begun, timer), bits, now);
        if let Some(clock) = self.time.clock() {
            clock.sent(end, clean);
        }
        self.silent = if clean { 0 } else { self.silent.saturating_add(1) };
        self.untimed += u64::from(self.silent > self.terms.losses);
    }

    /// Returns the timer, the clock, and whether they were read soon enough after each other to say
    /// when a frame was over that began at `begun`. They are not if another thread ran meanwhile.
    fn read(&self, module: &ToucanDriver<CardRegisters>, begun: u16) -> (u16, Nanos, bool) {
        let before = time::now();
        let timer = module.timer();
        let now = time::now();
        let age = self.rate.time(timer.wrapping_sub(begun).into());
        let drift = 2 * u64::from(self.terms.drift_ppm) * age.0 / MILLION + 1;
        let uncertain = (now - before) + self.rate.time(STAMP_BITS) + Nanos(drift);
        (timer, now, uncertain.0 <= self.terms.read_ns)
    }

    /// Takes in a frame of the time, which began at `begun` of the timer. An uncertain reading of
    /// the clock is as good as a lost frame.
    pub fn hear(&mut self, module: &ToucanDriver<CardRegisters>, frame: &CanFrame, begun: u16) {
        let (timer, now, is_certain) = self.read(module, begun);
        let Some(heard) = TimeFrame::read(frame.bytes()) else { return };
        if let Some(clock) = self.time.clock().filter(|_| is_certain) {
            clock.heard(ended(self.rate, (begun, timer), wire::length(frame), now), 0, &heard);
        }
    }

    /// Returns when the node has to look at its clock.
    pub fn next_look(&self, now: Nanos) -> Nanos {
        self.time.next_look(now)
    }

    /// Returns what to do with the messages that wait.
    pub fn look(&mut self, now: Nanos) -> NodeDuty {
        let duty = self.time.look(now);
        if duty == NodeDuty::Renew {
            self.time.renewed();
        }
        self.knew |= self.time.epoch().is_some();
        duty
    }

    /// Returns the common time by which a message has to begin that its program had at `made`.
    pub fn start_by(&self, made: Nanos, distance: Nanos) -> Option<Nanos> {
        self.time.epoch()?;
        Some(self.time.common(made)? + distance)
    }

    /// Returns the identifier of a message with this code in the epoch that the node is in.
    pub fn id(&self, code: u8, start_by: Nanos) -> Option<StandardId> {
        self.epochs.id(code.into(), start_by, self.time.epoch()?).ok()
    }

    /// Counts a message that is lost because the node does not know the time. Before it knew it for
    /// the first time none is.
    pub fn lose(&mut self) {
        self.untimed += u64::from(self.knew);
    }
}
