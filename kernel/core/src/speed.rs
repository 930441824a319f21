//! The speed of a processor's counter and timer, from windows in which both were compared with a
//! clock of known speed.
//!
//! A window is wrong if the processor was held up between the looks at the two clocks, or if the
//! known clock wrapped meanwhile. The first is seen because two neighbours have to agree. The
//! second may make neighbours equally wrong, so no window counts in which two looks were so far
//! apart.

use core::ops::ControlFlow::{self, Break, Continue};

/// Windows of which two neighbours must agree.
pub const WINDOWS_MAX: u32 = 8;
/// How long a window is: two of 25 ms make 10 ns of reading error 0.2 ppm. The shortest clock wraps
/// after 54 ms.
const WINDOW_NANOS: u64 = 25_000_000;
const FEMTOS_PER_NANO: u64 = 1_000_000;
/// Femtoseconds in which the counter of any processor with 64 bits ticks once.
const TICK_MAX: u64 = 2_000_000;
pub const FEMTOS_PER_SECOND: u64 = 1_000_000_000_000_000;

/// A clock of known speed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnownClock {
    /// The bits that it counts.
    pub bits: u64,
    /// Femtoseconds of a tick.
    pub tick: u64,
}

/// One look at all three clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockLook {
    pub known: u64,
    pub counter: u64,
    /// The timer counts down.
    pub timer: u32,
}

/// Ticks of the two clocks in a window of this length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Comparison {
    pub nanos: u64,
    pub counter: u64,
    pub timer: u64,
}

/// The windows of a calibration, from one look to the next.
#[derive(Debug)]
pub struct Windows {
    clock: KnownClock,
    /// The look that the window began with, and the counter at the last one.
    first: ClockLook,
    counter: u64,
    /// No two looks of the window were so far apart that the clock may have wrapped.
    is_whole: bool,
    before: Option<Comparison>,
    left: u32,
}

impl Comparison {
    /// Returns the speeds of counter and timer in kHz: a finer unit is beyond the reading error.
    #[inline(always)]
    #[must_use]
    pub fn speeds(&self) -> [u64; 2] {
        // A millionth of a tick is small enough for the rounding, and hours of them fit.
        let nanos = self.nanos.max(1);
        let khz = |ticks: u64| ticks.saturating_mul(1_000_000).saturating_add(nanos / 2) / nanos;
        [khz(self.counter), khz(self.timer)]
    }

    /// Returns this window and the one that follows it as one, if both clocks had the same speeds
    /// in both, to one part in 2,048. A clock that stands still has no speed.
    #[inline(always)]
    #[must_use]
    pub fn confirmed(&self, next: &Comparison) -> Option<Comparison> {
        let [first, second] = [self.speeds(), next.speeds()];
        let joined = Comparison {
            nanos: self.nanos + next.nanos,
            counter: self.counter + next.counter,
            timer: self.timer + next.timer,
        };
        let same = |at: usize| agree(first[at], second[at], 2_048);
        (same(0) && same(1)).then_some(joined)
    }
}

/// Returns whether two speeds are the same to one part in `parts`. No speed is zero.
#[inline(always)]
#[must_use]
pub fn agree(a: u64, b: u64, parts: u64) -> bool {
    a > 0 && b > 0 && a.abs_diff(b) <= a.min(b) / parts.max(1)
}

impl Windows {
    /// Returns the windows of a calibration whose first look this is.
    #[inline(always)]
    #[must_use]
    pub fn new(clock: KnownClock, first: ClockLook) -> Windows {
        let (counter, left) = (first.counter, WINDOWS_MAX);
        Windows { clock, first, counter, is_whole: true, before: None, left }
    }

    /// Takes the next look. Breaks with two windows that agree, or without if no two did.
    #[inline(always)]
    pub fn look(&mut self, look: ClockLook) -> ControlFlow<Option<Comparison>> {
        let KnownClock { bits, tick } = self.clock;
        // So many ticks of the counter take less time than the clock takes to wrap.
        let apart = bits.saturating_mul(tick) / TICK_MAX;
        self.is_whole &= look.counter.wrapping_sub(self.counter) < apart;
        self.counter = look.counter;
        let ticks = look.known.wrapping_sub(self.first.known) & bits;
        let nanos = ticks.saturating_mul(tick) / FEMTOS_PER_NANO;
        if nanos < WINDOW_NANOS {
            return Continue(());
        }
        let counter = look.counter.wrapping_sub(self.first.counter);
        let timer = u64::from(self.first.timer.wrapping_sub(look.timer));
        let window = self.is_whole.then_some(Comparison { nanos, counter, timer });
        let before = core::mem::replace(&mut self.before, window);
        let sure = before.zip(window).and_then(|(before, window)| before.confirmed(&window));
        (self.first, self.is_whole) = (look, true);
        self.left = self.left.saturating_sub(1);
        if sure.is_some() || self.left == 0 { Break(sure) } else { Continue(()) }
    }
}

/// The leaf of CPUID that names the speed of the counter.
pub const SPEED_LEAF: u32 = 0x15;

/// Returns the kHz that a processor says its counter has: its crystal times a ratio. `last` is its
/// last leaf. Many processors name no crystal, or nothing. The leaf 0x16 names a speed that only
/// sells the processor, so nobody asks for it.
#[inline(always)]
#[must_use]
pub fn told_khz(last: u32, leaf: [u32; 4]) -> Option<u64> {
    let [denominator, numerator, crystal, _] = leaf.map(u64::from);
    let hertz = (crystal * numerator).checked_div(denominator).filter(|_| last >= SPEED_LEAF)?;
    let khz = hertz / 1_000;
    // Faster than this, a tick is no whole number of femtoseconds that is right to a thousandth.
    let is_possible = (100_000..=100_000_000).contains(&khz);
    is_possible.then_some(khz)
}

/// Returns the processor's own counter as a clock of the speed that it names.
#[inline(always)]
#[must_use]
pub fn told_clock(khz: u64) -> KnownClock {
    let tick = FEMTOS_PER_SECOND.checked_div(khz.saturating_mul(1_000)).unwrap_or(0);
    KnownClock { bits: u32::MAX.into(), tick }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = 1_000_000;

    /// A window of a counter of 2.6 GHz and a timer of 100 MHz.
    fn window(nanos: u64) -> Comparison {
        Comparison { nanos, counter: nanos * 26 / 10, timer: nanos / 10 }
    }

    #[test]
    fn windows_that_agree_are_one_longer_window() {
        let joined = window(25 * MILLI).confirmed(&window(26 * MILLI)).unwrap();
        assert_eq!(joined, window(51 * MILLI));
        assert_eq!(joined.speeds(), [2_600_000, 100_000]);
    }

    /// A host that held the processor up for 175 ms once made 20.98 GHz of 2.6 GHz: the known clock
    /// had wrapped three times.
    #[test]
    fn a_window_in_which_the_known_clock_wrapped_is_not_believed() {
        let (good, held_up) = (window(25 * MILLI), window(200 * MILLI));
        let wrapped = Comparison { nanos: 25 * MILLI, ..held_up };
        assert_eq!(wrapped.speeds()[0], 20_800_000);
        assert_eq!(good.confirmed(&wrapped), None);
        assert_eq!(wrapped.confirmed(&good), None);
    }

    #[test]
    fn a_delay_between_two_looks_is_seen_from_twelve_microseconds_on() {
        let good = window(25 * MILLI);
        let late = |nanos| Comparison { nanos: 25 * MILLI, ..window(25 * MILLI + nanos) };
        assert!(good.confirmed(&late(12_000)).is_some());
        assert_eq!(good.confirmed(&late(12_400)), None);
    }

    #[test]
    fn a_clock_that_stands_still_is_refused() {
        let dead = Comparison { timer: 0, ..window(25 * MILLI) };
        assert_eq!(dead.confirmed(&dead), None);
        let nothing = Comparison { nanos: 0, counter: 0, timer: 0 };
        assert_eq!(nothing.confirmed(&nothing), None);
        let huge = Comparison { nanos: 1, counter: u64::MAX / 2, timer: u64::MAX / 2 };
        assert_eq!(huge.speeds()[0], u64::MAX);
    }

    const PIT: KnownClock = KnownClock { bits: 0xffff, tick: FEMTOS_PER_SECOND / 1_193_182 };
    const PM: KnownClock = KnownClock { bits: 0xff_ffff, tick: FEMTOS_PER_SECOND / 3_579_545 };
    const HPET: KnownClock = KnownClock { bits: u32::MAX as u64, tick: 10_000_000 };

    /// A processor that its host holds up: `stall` says for how many ns before each of the reads of
    /// a look.
    struct Held<S> {
        nanos: u64,
        khz: u64,
        clock: KnownClock,
        stall: S,
    }

    impl<S: FnMut(u64) -> u64> Held<S> {
        fn pass(&mut self, nanos: u64) {
            self.nanos += nanos;
            self.nanos += (self.stall)(self.nanos);
        }

        fn look(&mut self) -> ClockLook {
            self.pass(6_000);
            let known = (u128::from(self.nanos) * 1_000_000 / u128::from(self.clock.tick)) as u64;
            self.pass(50);
            let counter = (u128::from(self.nanos) * u128::from(self.khz) / 1_000_000) as u64;
            self.pass(50);
            let timer = u32::MAX.wrapping_sub((self.nanos / 10) as u32);
            ClockLook { known: known & self.clock.bits, counter, timer }
        }

        fn calibrate(&mut self) -> Option<Comparison> {
            let mut windows = Windows::new(self.clock, self.look());
            loop {
                if let Break(end) = windows.look(self.look()) {
                    return end;
                }
            }
        }
    }

    #[test]
    fn a_calm_processor_is_measured_with_every_clock() {
        for clock in [PIT, PM, HPET, told_clock(2_600_000)] {
            for khz in [600_000, 1_000_000, 2_600_000, 6_000_000] {
                let mut held = Held { nanos: 0, khz, clock, stall: |_| 0 };
                let [counter, timer] = held.calibrate().unwrap().speeds();
                assert!(agree(counter, khz, 20_000) && agree(timer, 100_000, 20_000), "{counter}");
            }
        }
    }

    /// A host that stops the processor again and again for as long as the clock takes to wrap, and
    /// a little more, makes each window wrong in the same way.
    #[test]
    fn windows_that_are_equally_wrong_are_not_believed() {
        let (wrap, mut next) = (54_925_000, 10_000_000);
        let stall = |now: u64| {
            if now < next {
                return 0;
            }
            next = now + wrap + 25_000_000;
            wrap + 5_000_000
        };
        let mut held = Held { nanos: 0, khz: 2_600_000, clock: PIT, stall };
        assert_eq!(held.calibrate(), None);
    }

    /// A speed that is believed is right to one part in 2,048, whatever the host does.
    #[test]
    fn a_busy_host_is_refused_or_measured_right() {
        let (mut believed, mut refused, mut state) = (0, 0, 1u64);
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for round in 0..6_000u64 {
            let clock = [PIT, PM, HPET][(round % 3) as usize];
            let khz = [600_000, 1_000_000, 2_600_000, 5_000_000][(round / 3 % 4) as usize];
            // Between two stops, and how long one is, at most.
            let calm = [100_000, 5_000_000, 30_000_000, 90_000_000][random(4) as usize];
            let most = [20_000, 1_000_000, 60_000_000, 300_000_000][random(4) as usize];
            let mut next = random(calm);
            let stall = |now: u64| {
                if now < next {
                    return 0;
                }
                let stall = 1 + random(most);
                next = now + stall + random(calm);
                stall
            };
            let mut held = Held { nanos: 1_000, khz, clock, stall };
            match held.calibrate() {
                None => refused += 1,
                Some(sure) => {
                    believed += 1;
                    let [counter, timer] = sure.speeds();
                    let is_right = agree(counter, khz, 2_048) && agree(timer, 100_000, 2_048);
                    assert!(is_right, "{round}: {counter} of {khz} kHz, timer {timer} kHz");
                }
            }
        }
        assert!(believed > 1_000 && refused > 500, "{believed} believed, {refused} refused");
    }

    #[test]
    fn a_processor_is_believed_only_if_it_names_crystal_and_ratio() {
        // 24 MHz x 216 / 2, as a processor of 2.592 GHz says.
        let leaf = [2, 216, 24_000_000, 0];
        assert_eq!(told_khz(0x16, leaf), Some(2_592_000));
        assert_eq!(told_khz(0x15, leaf), Some(2_592_000));
        // A processor whose last leaf comes before this one answers with that.
        assert_eq!(told_khz(0x0d, leaf), None);
        for zero in 0..3 {
            let mut leaf = leaf;
            leaf[zero] = 0;
            assert_eq!(told_khz(0x16, leaf), None);
        }
        let impossible = [[u32::MAX, 1, 24_000_000, 0], [1, u32::MAX, u32::MAX, 0]];
        assert!(impossible.iter().all(|leaf| told_khz(0x16, *leaf).is_none()));
        // Its own counter as the clock shows the speed that it names.
        assert!(agree(FEMTOS_PER_SECOND / told_clock(2_592_000).tick / 1_000, 2_592_000, 2_048));
    }
}
