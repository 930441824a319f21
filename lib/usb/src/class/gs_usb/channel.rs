//! One channel: its limits, where it is between closed and open, and its frames on their way.

use super::wire::{Ask, feature, word};
use crate::class::can::{BusRates, CloseCause, Mode, Slots};
use diapason_can::BitRate;
use diapason_can::bus::Health;
use diapason_can::timing::{BitTiming, TimingLimits, TimingRefusal};

/// Frames of a channel that may be on their way at once: as many as Linux has, which every device
/// takes.
pub const SLOTS: u16 = 10;

/// The sample point of a bit of the data of CAN FD, in tenths of a per cent. The delay of the bus
/// is not in it, so it is earlier than that of other bits.
const DATA_SAMPLE_POINT: u32 = 750;
/// Places of the words with the limits of bits in the device's answers: of all bits, and of those
/// of data.
const LIMITS: usize = 2;
pub(super) const DATA_LIMITS: usize = 10;

/// Quanta of a segment that are used at most, and the largest prescaler.
const SEGMENT_MAX: u32 = 64;
const PRESCALER_MAX: u32 = 1 << 16;

/// Where a channel is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Closed,
    Setting { timing: BitTiming, data: Option<BitTiming>, mode: Mode },
    SettingData { data: BitTiming, mode: Mode },
    Starting { fd: bool, mode: Mode },
    Open { fd: bool },
    Stopping { cause: CloseCause },
}

impl Phase {
    /// Returns the bits of the mode in which a channel is started, besides that of its times.
    pub(super) fn features(self) -> u32 {
        let Phase::Starting { fd, mode } = self else { return 0 };
        let listens = if mode == Mode::ListenOnly { feature::LISTEN_ONLY } else { 0 };
        listens | if fd { feature::FD } else { 0 }
    }
}

/// The limits of a kind of bits.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// The prescaler is a multiple of this.
    step: u32,
    limits: TimingLimits,
}

impl Limits {
    const STANDARD: Limits = Limits { step: 1, limits: TimingLimits::STANDARD };

    /// Returns the limits at a place of an answer. A device may say anything; no setting of a bit
    /// needs more than what is kept.
    fn at(answer: &[u8], place: usize) -> Limits {
        let at = |offset| word(answer, place + offset);
        let range = |least: usize, most: u32| {
            let high = at(least + 1).clamp(1, most);
            (at(least).clamp(1, high), high)
        };
        let limits = TimingLimits {
            before_sample: range(0, SEGMENT_MAX),
            phase2: range(2, SEGMENT_MAX),
            prescaler: range(5, PRESCALER_MAX),
            jump_max: at(4),
        };
        Limits { step: at(7).max(1), limits }
    }

    /// Returns the setting for a bit rate.
    fn timing(&self, clock: u32, rate: BitRate, point: u32) -> Result<BitTiming, TimingRefusal> {
        let found = BitTiming::find(clock, rate, point, &self.limits)?;
        let fits = found.prescaler.is_multiple_of(self.step);
        let hertz = rate.hertz();
        fits.then_some(found).ok_or(TimingRefusal::NoSetting { clock, hertz, nearest: 0 })
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Channel {
    pub(super) phase: Phase,
    pub(super) slots: Slots,
    /// The number of its life: echoes of an earlier one free no slot.
    pub(super) life: u16,
    /// Somebody asked how the controller is.
    pub(super) asked: bool,
    /// The health that the device told last, with its counters of errors.
    pub(super) health: Health,
    pub(super) counters: (u8, u8),
    clock: u32,
    features: u32,
    limits: Limits,
    /// Those of the bits of data, if the channel has CAN FD.
    data: Option<Limits>,
}

impl Channel {
    pub(super) const NEW: Channel = Channel {
        phase: Phase::Closed,
        slots: Slots::FREE,
        life: 0,
        asked: false,
        health: Health::ErrorActive,
        counters: (0, 0),
        clock: 0,
        features: 0,
        limits: Limits::STANDARD,
        data: None,
    };

    /// Takes over the device's answer about its limits; false if the channel is of no use: it has
    /// no time stamps, or no clock.
    pub(super) fn learn(&mut self, answer: &[u8]) -> bool {
        (self.features, self.clock) = (word(answer, 0), word(answer, 1));
        self.limits = Limits::at(answer, LIMITS);
        // A device that does not tell the limits of data apart has the same for all bits.
        self.data = self.has(feature::FD).then_some(self.limits);
        self.has(feature::TIMESTAMP) && self.clock > 0 && self.limits.limits.jump_max > 0
    }

    /// Returns whether the device has limits of its own for the bits of data.
    pub(super) fn tells_data(&self) -> bool {
        self.has(feature::FD) && self.has(feature::ALL_TIMING_LIMITS)
    }

    /// Takes over the device's answer about the bits of data; false if none is possible.
    pub(super) fn learn_data(&mut self, answer: &[u8]) -> bool {
        let limits = Limits::at(answer, DATA_LIMITS);
        self.data = Some(limits);
        limits.limits.jump_max > 0
    }

    fn has(&self, feature: u32) -> bool {
        self.features & feature != 0
    }

    /// Returns whether the channel has frames of CAN FD.
    pub(super) fn has_fd(&self) -> bool {
        self.data.is_some()
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open { .. })
    }

    /// Returns the settings for the rates of a bus.
    pub(super) fn timings(
        &self,
        rates: &BusRates,
    ) -> Result<(BitTiming, Option<BitTiming>), TimingRefusal> {
        let timing = self.limits.timing(self.clock, rates.rate, rates.sample_point)?;
        let data = rates.data.zip(self.data);
        let data = data.map(|(rate, limits)| limits.timing(self.clock, rate, DATA_SAMPLE_POINT));
        Ok((timing, data.transpose()?))
    }

    /// Returns the order that the channel waits for, or the question that somebody has.
    pub(super) fn ask(&self, number: u8) -> Option<Ask> {
        match self.phase {
            Phase::Setting { .. } => Some(Ask::Timing(number)),
            Phase::SettingData { .. } => Some(Ask::DataTiming(number)),
            Phase::Starting { .. } => Some(Ask::Start(number)),
            Phase::Stopping { .. } => Some(Ask::Stop(number)),
            Phase::Open { .. } | Phase::Closed => {
                (self.asked && self.has(feature::GET_STATE)).then_some(Ask::State(number))
            }
        }
    }

    /// Returns whether somebody asked how the controller is, and the device has no answer.
    pub(super) fn answers_itself(&self) -> bool {
        self.asked && !self.has(feature::GET_STATE)
    }

    /// Goes to `phase`; a closed channel has nothing on its way.
    pub(super) fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        if phase == Phase::Closed {
            self.slots.clear();
            self.life = self.life.wrapping_add(1);
            (self.health, self.counters) = (Health::ErrorActive, (0, 0));
        }
    }
}
