//! The measurements of each kernel in each scenario, and the sentences about them.

/// Budget and period of each task that counts, in ns.
pub const SHARE: (u64, u64) = (1_000_000, 7_000_000);

/// The kernel under test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum System {
    Diapason,
    /// Linux with budgets enforced at its tick.
    Shipped,
    /// Linux with budgets enforced when they end.
    Hrtick,
}

impl System {
    /// In the order of the tables.
    pub const ALL: [System; 3] = [System::Diapason, System::Shipped, System::Hrtick];

    /// Returns its name in rows.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            System::Diapason => "diapason",
            System::Shipped => "linux",
            System::Hrtick => "linux-hrtick",
        }
    }
}

/// The article's scenarios, and one with nothing to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scenario {
    Input,
    /// 2: three tasks that count, on silent buses.
    Tasks,
    Both,
    /// Neither: what is executed all the same.
    Silent,
}

impl Scenario {
    /// Returns its name in rows.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Scenario::Input => "1",
            Scenario::Tasks => "2",
            Scenario::Both => "3",
            Scenario::Silent => "0",
        }
    }

    /// Returns its name in headings.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Scenario::Input => "scenario 1, I/O only",
            Scenario::Tasks => "scenario 2, CPU only",
            Scenario::Both => "scenario 3, I/O and CPU",
            Scenario::Silent => "nothing to do",
        }
    }

    /// Returns whether anybody talks on the buses.
    #[must_use]
    pub const fn traffic(self) -> bool {
        matches!(self, Scenario::Input | Scenario::Both)
    }

    /// Returns whether the tasks count.
    #[must_use]
    pub const fn tasks(self) -> bool {
        matches!(self, Scenario::Tasks | Scenario::Both)
    }
}

/// How long frames took from the bus to the reader, in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Latency {
    /// The longest, if the clocks of both ends are known.
    pub longest: Option<u64>,
    /// The longest beyond the fastest.
    pub beyond: u64,
}

/// One channel in the window.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Channel {
    /// Frames on the bus from the first the reader has to the last.
    pub sent: u64,
    /// Those the reader has.
    pub received: u64,
    /// Frames the interface overwrote, because nobody fetched them in time.
    pub overruns: u64,
    /// How often the driver counted that the interface told so, if it counts.
    pub reported: Option<u64>,
    /// Frames the guest's kernel or server had and dropped.
    pub dropped: u64,
    /// Frames the reader got in each second.
    pub seconds: Vec<u64>,
    /// The longest time without a frame, if it was measured, in ns.
    pub wait: Option<u64>,
    /// From the bus to the reader.
    pub latency: Latency,
}

impl Channel {
    /// Frames that were on the bus and never came.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }
}

/// The measurements of a run.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Measured {
    /// The kernel under test.
    pub system: System,
    /// The scenario of the run.
    pub scenario: Scenario,
    pub channels: Vec<Channel>,
    /// Returns by how many percent each task is behind its share; negative is ahead.
    pub behind: Vec<f64>,
    /// Frames the buses carried in the window.
    pub carried: u64,
    /// Instructions executed in the window.
    pub instructions: u64,
    /// Over everything the interface and its host said to each other.
    pub wire: u64,
}

impl Measured {
    /// Frames lost on all channels.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.channels.iter().map(Channel::lost).sum()
    }

    /// Frames overwritten in the interface.
    #[must_use]
    pub fn overruns(&self) -> u64 {
        self.channels.iter().map(|channel| channel.overruns).sum()
    }

    /// Returns the longest latency beyond the fastest, in ns.
    #[must_use]
    pub fn beyond(&self) -> u64 {
        self.channels.iter().map(|channel| channel.latency.beyond).max().unwrap_or(0)
    }

    /// Returns how far the worst task is behind, or ahead, in percent.
    #[must_use]
    pub fn error(&self) -> f64 {
        let larger = |a: f64, b: &f64| if b.abs() > a.abs() { *b } else { a };
        self.behind.iter().fold(0.0, larger)
    }

    /// Over everything here: equal for equal runs.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        diapason_abi::Key::new(&format!("{self:?}")).0
    }
}

/// Instructions for each frame: a run with traffic against one without.
#[must_use]
pub fn cost(with: &Measured, without: &Measured) -> Option<f64> {
    let more = with.instructions.checked_sub(without.instructions)?;
    (with.carried > 0).then(|| more as f64 / with.carried as f64)
}

/// Returns the fewest and the most frames in a second.
#[must_use]
pub fn extremes(seconds: &[u64]) -> (u64, u64) {
    let least = seconds.iter().min().copied().unwrap_or(0);
    (least, seconds.iter().max().copied().unwrap_or(0))
}

/// Returns by how many percent `done` units of so many ns are behind the share of this time.
#[must_use]
pub fn behind(done: u64, unit: u64, time: u64) -> f64 {
    let (budget, period) = SHARE;
    let expected = time as f64 * budget as f64 / period as f64 / unit.max(1) as f64;
    100.0 * (expected - done as f64) / expected.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(instructions: u64, carried: u64) -> Measured {
        Measured {
            system: System::Shipped,
            scenario: Scenario::Input,
            channels: vec![Channel::default(); 5],
            behind: vec![0.01, -0.2, 0.1],
            carried,
            instructions,
            wire: 0,
        }
    }

    #[test]
    fn what_traffic_costs_is_the_difference_by_frames() {
        assert_eq!(cost(&run(1_500, 10), &run(500, 0)), Some(100.0));
        assert_eq!(cost(&run(500, 10), &run(1_500, 0)), None);
        assert_eq!(cost(&run(500, 0), &run(500, 0)), None);
    }

    #[test]
    fn the_worst_task_is_the_one_farthest_off() {
        assert_eq!(run(0, 0).error().to_bits(), (-0.2_f64).to_bits());
    }

    #[test]
    fn one_of_seven_milliseconds_is_no_error() {
        assert!(behind(100_000, 10_000, 7_000_000_000).abs() < 1e-9);
        assert!((behind(99_000, 10_000, 7_000_000_000) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_run_that_differs_anywhere_has_another_fingerprint() {
        let (one, mut other) = (run(1, 2), run(1, 2));
        assert_eq!(one.fingerprint(), other.fingerprint());
        other.channels[4].seconds.push(1);
        assert_ne!(one.fingerprint(), other.fingerprint());
    }
}
