//! The three kinds of CAN controllers that such interfaces have, told apart by flags.

use diapason_abi::Nanos;

/// Set: a controller with an 80 MHz clock for bits and time.
const FLAG_KCAN: u32 = 1 << 5;
/// Set: frames travel as extended commands.
const FLAG_EXTENDED: u32 = 1 << 9;
/// Set: capabilities can be asked for.
const FLAG_CAPABILITIES: u32 = 1 << 12;
/// Set: a controller with an 80 MHz clock for bits and 24 MHz for time.
const FLAG_RT: u32 = 1 << 13;

/// The largest bit rate, as the interface says it.
pub(super) const BIT_RATE_MAX: u32 = 1_000_000;

/// The kind of controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControllerKind {
    /// 80 MHz, time in 1/80 µs.
    Kcan,
    /// 80 MHz, time in 1/24 µs.
    Rt,
    /// 24 MHz, time in µs; frames travel as normal commands.
    Flexc,
}

/// Inclusive limits of quanta and prescaler.
struct Limits {
    before_sample: (u8, u8),
    after_sample: (u8, u8),
    jump: u8,
    prescaler: u32,
}

impl ControllerKind {
    /// The flags it reports to a host that understands extended commands or does not.
    #[must_use]
    pub const fn flags(self, host_extended: bool) -> u32 {
        let (own, extended) = match self {
            ControllerKind::Kcan => (FLAG_KCAN, true),
            ControllerKind::Rt => (FLAG_RT, true),
            ControllerKind::Flexc => (0, false),
        };
        let extended = if extended && host_extended { FLAG_EXTENDED } else { 0 };
        own | extended | FLAG_CAPABILITIES
    }

    /// Returns whether frames travel as extended commands, if the host understands them.
    #[must_use]
    pub const fn extended(self) -> bool {
        self.flags(true) & FLAG_EXTENDED != 0
    }

    const fn clock(self) -> u32 {
        match self {
            ControllerKind::Kcan | ControllerKind::Rt => 80_000_000,
            ControllerKind::Flexc => 24_000_000,
        }
    }

    /// Ticks of its time stamps in a microsecond.
    #[must_use]
    pub const fn ticks_per_micro(self) -> u64 {
        match self {
            ControllerKind::Kcan => 80,
            ControllerKind::Rt => 24,
            ControllerKind::Flexc => 1,
        }
    }

    /// Ticks in `time`, rounded down.
    #[must_use]
    pub const fn ticks(self, time: Nanos) -> u64 {
        (time.0 as u128 * self.ticks_per_micro() as u128 / 1_000) as u64
    }

    const fn limits(self) -> Limits {
        let (before_sample, after_sample, jump, prescaler) = match self {
            ControllerKind::Kcan => ((1, 255), (1, 32), 16, 8_192),
            ControllerKind::Rt => ((2, 96), (2, 32), 32, 1_024),
            ControllerKind::Flexc => ((4, 16), (2, 8), 4, 256),
        };
        Limits { before_sample, after_sample, jump, prescaler }
    }

    /// Returns whether the controller can be set so. `bytes` are bit rate, quanta before and after
    /// the sample, jump and samples. There is no prescaler in them: the one that comes nearest is
    /// meant.
    #[must_use]
    pub fn accepts(self, bytes: [u8; 8]) -> bool {
        let [r0, r1, r2, r3, before, after, jump, _] = bytes;
        let limits = self.limits();
        let hertz = u32::from_le_bytes([r0, r1, r2, r3]);
        let cycles = u64::from(hertz) * (1 + u64::from(before) + u64::from(after));
        let clock = u64::from(self.clock());
        let prescaler = (clock + cycles / 2).checked_div(cycles).unwrap_or(0);
        let inside = |value: u8, (low, high)| (low..=high).contains(&value);
        hertz <= BIT_RATE_MAX
            && inside(before, limits.before_sample)
            && inside(after, limits.after_sample)
            && inside(jump, (1, limits.jump))
            && (1..=u64::from(limits.prescaler)).contains(&prescaler)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_linux_sets_for_500_kbit_is_accepted_by_its_own_controller_only() {
        let kcan = [0x20, 0xa1, 0x07, 0x00, 0x8b, 0x14, 1, 1];
        let rt = [0x20, 0xa1, 0x07, 0x00, 0x45, 0x0a, 1, 1];
        let flexc = [0x20, 0xa1, 0x07, 0x00, 0x0d, 0x02, 1, 1];
        let all = [ControllerKind::Kcan, ControllerKind::Rt, ControllerKind::Flexc];
        assert_eq!(all.map(|p| p.accepts(kcan)), [true, false, false]);
        assert_eq!(all.map(|p| p.accepts(rt)), [true, true, false]);
        assert_eq!(all.map(|p| p.accepts(flexc)), [true, true, true]);
        assert_eq!(all.map(|p| p.accepts([0, 0, 0, 0, 13, 2, 1, 1])), [false; 3]);
        assert_eq!(all.map(|p| p.accepts([0xff; 8])), [false; 3]);
    }

    #[test]
    fn no_bit_rate_beyond_the_largest_that_the_interface_says() {
        let all = [ControllerKind::Kcan, ControllerKind::Rt, ControllerKind::Flexc];
        let at = |hertz: u32, before, after| {
            let [a, b, c, d] = hertz.to_le_bytes();
            all.map(|p| p.accepts([a, b, c, d, before, after, 1, 1]))
        };
        assert_eq!(at(BIT_RATE_MAX, 13, 2), [true; 3]);
        assert_eq!(at(BIT_RATE_MAX + 1, 13, 2), [false; 3]);
        assert_eq!(at(1_194_029, 13, 2), [false; 3]);
    }

    #[test]
    fn ticks_are_those_of_the_table() {
        let all = [ControllerKind::Kcan, ControllerKind::Rt, ControllerKind::Flexc];
        assert_eq!(all.map(|p| p.ticks(Nanos(1_500))), [120, 36, 1]);
        assert_eq!(all.map(|p| p.flags(true)), [0x1220, 0x3200, 0x1000]);
        assert_eq!(all.map(|p| p.flags(false)), [0x1020, 0x3000, 0x1000]);
    }
}
