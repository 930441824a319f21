//! The common times of hosts, as their Ethernet servers reported them, and how far they are apart.

use diapason_abi::Nanos;
use diapason_pipe::measured::TimeReport;

/// A report of a server on the common time of its host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeRow {
    pub process: u64,
    /// The host's clock when the server asked for the common time.
    pub at: Nanos,
    pub report: TimeReport,
}

/// The times of a host: its clock in the time of the world, and the common time then.
type Known = (i128, i128);

/// Returns how far the times of two hosts were apart at most, and how often both were compared.
/// `world` says for each host when its clock said a time. The times of the first are taken as
/// straight between two reports in a row, so the first has to be the one that leads.
#[must_use]
pub fn apart(rows: [&[TimeRow]; 2], world: [&dyn Fn(Nanos) -> Nanos; 2]) -> (u64, u64) {
    let [leader, follower] = [0, 1].map(|host| {
        let known = |row: &TimeRow| {
            let at = i128::from(world[host](row.at).0);
            Some((at, i128::from(row.report.common?.0), row.report.grandmaster))
        };
        rows[host].iter().map(known).collect::<Vec<_>>()
    });
    let (mut furthest, mut compared) = (0, 0);
    for (at, common, clock) in follower.into_iter().flatten() {
        let spans = leader.windows(2).filter_map(|pair| Some((pair[0]?, pair[1]?)));
        let mut around = spans.filter(|(one, two)| one.0 <= at && at < two.0);
        let same = around.find(|(one, two)| one.2 == clock && two.2 == clock);
        let Some((one, two)) = same else { continue };
        let difference = between((one.0, one.1), (two.0, two.1), at).abs_diff(common);
        furthest = furthest.max(u64::try_from(difference).unwrap_or(u64::MAX));
        compared += 1;
    }
    (furthest, compared)
}

fn between(one: Known, two: Known, at: i128) -> i128 {
    one.1 + (at - one.0) * (two.1 - one.1) / (two.0 - one.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(at: u64, common: Option<u64>, grandmaster: u64) -> TimeRow {
        let common = common.map(Nanos);
        let report = TimeReport { common, grandmaster, ..TimeReport::new(0, Nanos::ZERO) };
        TimeRow { process: 1, at: Nanos(at), report }
    }

    #[test]
    fn times_of_one_master_are_compared_at_the_same_instants() {
        // The second host's clock is 1,000 behind the world's.
        let worlds: [&dyn Fn(Nanos) -> Nanos; 2] = [&|at| at, &|at| Nanos(at.0 + 1_000)];
        let leads = [row(0, Some(50), 7), row(10_000, Some(10_051), 7)];
        let seen = |rows: &[TimeRow]| apart([&leads, rows], worlds);
        assert_eq!(seen(&[row(4_000, Some(5_050), 7)]), (0, 1));
        assert_eq!(seen(&[row(4_000, Some(5_050), 7), row(5_000, Some(6_000), 7)]), (50, 2));
        // It does not know the time, follows another clock, or is not between two reports.
        let others = [row(4_000, None, 7), row(4_000, Some(9), 8), row(9_000, Some(9), 7)];
        assert_eq!(seen(&others), (0, 0));
    }
}
