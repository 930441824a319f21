//! One channel: its limits, where it is between closed and open, and its frames on their way.

use super::wire::{Ask, feature, word};
use crate::class::can::{CloseCause, Mode, Slots};
use diapason_can::bus::Health;
use diapason_can::timing::{BitTiming, TimingLimits};
use diapason_can::{BitRate, timing::TimingRefusal};

/// Frames of a channel that may be on their way at once: as many as Linux has, which every device
/// takes.
pub const SLOTS: u16 = 10;

/// Quanta of a segment that are used at most, and the largest prescaler.
const SEGMENT_MAX: u32 = 64;
const PRESCALER_MAX: u32 = 1 << 16;

/// Where a channel is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Closed,
    Setting { timing: BitTiming, mode: Mode },
    Starting { mode: Mode },
    Open,
    Stopping { cause: CloseCause },
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
    /// The prescaler is a multiple of this.
    step: u32,
    limits: TimingLimits,
    /// The device tells the state of the controller.
    tells_state: bool,
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
        step: 1,
        limits: TimingLimits::STANDARD,
        tells_state: false,
    };

    /// Takes over the device's answer about its limits; false if the channel is of no use: it has
    /// no time stamps, or no clock.
    pub(super) fn learn(&mut self, answer: &[u8]) -> bool {
        let at = |place| word(answer, place);
        // A device may say anything; no setting of a bit needs more than this.
        let range = |least: usize, most: u32| {
            let high = at(least + 1).clamp(1, most);
            (at(least).clamp(1, high), high)
        };
        let features = at(0);
        self.clock = at(1);
        let jump_max = at(6);
        self.limits = TimingLimits {
            before_sample: range(2, SEGMENT_MAX),
            phase2: range(4, SEGMENT_MAX),
            prescaler: range(7, PRESCALER_MAX),
            jump_max,
        };
        self.step = at(9).max(1);
        self.tells_state = features & feature::GET_STATE != 0;
        features & feature::TIMESTAMP != 0 && self.clock > 0 && jump_max > 0
    }

    /// Returns the setting for a bit rate.
    pub(super) fn timing(&self, rate: BitRate, point: u32) -> Result<BitTiming, TimingRefusal> {
        let found = BitTiming::find(self.clock, rate, point, &self.limits)?;
        let (clock, hertz) = (self.clock, rate.hertz());
        let fits = found.prescaler.is_multiple_of(self.step);
        fits.then_some(found).ok_or(TimingRefusal::NoSetting { clock, hertz, nearest: 0 })
    }

    /// Returns the order that the channel waits for, or the question that somebody has.
    pub(super) fn ask(&self, number: u8) -> Option<Ask> {
        match self.phase {
            Phase::Setting { .. } => Some(Ask::Timing(number)),
            Phase::Starting { .. } => Some(Ask::Start(number)),
            Phase::Stopping { .. } => Some(Ask::Stop(number)),
            Phase::Open | Phase::Closed => {
                (self.asked && self.tells_state).then_some(Ask::State(number))
            }
        }
    }

    /// Returns whether somebody asked how the controller is, and the device has no answer.
    pub(super) fn answers_itself(&self) -> bool {
        self.asked && !self.tells_state
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
