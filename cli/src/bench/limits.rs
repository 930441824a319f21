//! Limits of what the kernel touches on the way of each operation (`limits.txt`). They may only
//! fall.

use super::Operation;
use super::placement;
use super::touched::{LIMITED, NUMBERS};
use crate::failure::Failure;
use crate::workspace::Workspace;
use diapason_costs::targets::Placement;
use std::fmt::Write;
use std::fs;

const FILE: &str = "cli/src/bench/limits.txt";
const HEADER: &str = "\
# What the kernel may touch on the way of each operation (docs/bench.md): bytes of code, lines of
# data, and dear instructions. `cargo xtask bench --bless` lowers these limits to what it measures,
# and writes those that are missing. To raise a limit, delete its line, and say why in the commit.
";

type Row = [u64; LIMITED.end - LIMITED.start];

/// The limits of operations, in the order of the file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TouchLimits(Vec<(String, &'static str, Row)>);

impl TouchLimits {
    /// Reads the limits of this checkout.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is none.
    pub fn read(workspace: &Workspace) -> Result<TouchLimits, Failure> {
        let text = fs::read_to_string(workspace.root().join(FILE))
            .map_err(|error| Failure::io(format!("read {FILE}"), &error))?;
        TouchLimits::parse(&text).map_err(Failure::Input)
    }

    fn parse(text: &str) -> Result<TouchLimits, String> {
        let is_limit = |line: &&str| !line.starts_with('#') && !line.is_empty();
        let rows = text.lines().filter(is_limit).map(|line| {
            row(line).ok_or_else(|| format!("{FILE}: `{line}` is not a line of limits"))
        });
        rows.collect::<Result<_, _>>().map(TouchLimits)
    }

    fn render(&self) -> String {
        let mut text = String::from(HEADER);
        let _ = write!(text, "# {:<34} {:<11}", "operation", "threads");
        for number in &NUMBERS[LIMITED] {
            let _ = write!(text, " {:>7}", number.key.trim_start_matches("code_"));
        }
        for (name, threads, limits) in &self.0 {
            let _ = write!(text, "\n{name:<36} {threads:<11}");
            for limit in limits {
                let _ = write!(text, " {limit:>7}");
            }
        }
        text + "\n"
    }

    fn of(&self, operation: &str, placement: Placement) -> Option<&Row> {
        let key = placement::key(placement);
        let found = self.0.iter().find(|(name, at, _)| name == operation && *at == key);
        found.map(|(_, _, row)| row)
    }

    /// Returns sentences about numbers above their limits, about operations without a limit, and
    /// about limits of operations in this placement that were not measured.
    #[must_use]
    pub fn exceeded(&self, placement: Placement, operations: &[&Operation]) -> Vec<String> {
        let mut found = Vec::new();
        let threads = placement::name(placement);
        for Operation { name, touched, .. } in operations {
            let Some(touched) = touched else { continue };
            let Some(limits) = self.of(name, placement) else {
                let what = format!("{name}, {threads} has no limits in {FILE}");
                found.push(format!("{what}: `cargo xtask bench --bless` writes them"));
                continue;
            };
            let numbers = NUMBERS[LIMITED].iter().zip(&touched.0[LIMITED]).zip(limits);
            found.extend(numbers.filter(|((_, ours), limit)| ours > limit).map(
                |((number, ours), limit)| {
                    format!("{name}, {threads} touches {ours} {}, at most {limit}", number.words)
                },
            ));
        }
        let key = placement::key(placement);
        for (name, _, _) in self.0.iter().filter(|(_, at, _)| *at == key) {
            if operations.iter().all(|it| it.name != *name || it.touched.is_none()) {
                found.push(format!("{name}, {threads} has limits, and nobody looked on"));
            }
        }
        found
    }

    /// Returns sentences about limits that can be lowered.
    #[must_use]
    pub fn unneeded(&self, placement: Placement, operations: &[&Operation]) -> Vec<String> {
        let mut found = Vec::new();
        for Operation { name, touched, .. } in operations {
            let (Some(touched), Some(limits)) = (touched, self.of(name, placement)) else {
                continue;
            };
            let numbers = NUMBERS[LIMITED].iter().zip(&touched.0[LIMITED]).zip(limits);
            found.extend(numbers.filter(|((_, ours), limit)| ours < limit).map(
                |((number, ours), limit)| {
                    let (threads, words) = (placement::name(placement), number.words);
                    format!("{name}, {threads}: {limit} -> {ours} {words}")
                },
            ));
        }
        found
    }

    /// Returns the limits of these operations: the lower one of limit and number.
    #[must_use]
    pub fn lowered(&self, operations: &[(Placement, Operation)]) -> TouchLimits {
        let rows = operations.iter().filter_map(|(placement, operation)| {
            let touched = operation.touched?;
            let old = self.of(&operation.name, *placement).copied().unwrap_or([u64::MAX; _]);
            let ours = &touched.0[LIMITED];
            let row = std::array::from_fn(|at| old[at].min(ours[at]));
            Some((operation.name.clone(), placement::key(*placement), row))
        });
        TouchLimits(rows.collect())
    }

    /// Writes the limits of this checkout.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, workspace: &Workspace) -> Result<(), Failure> {
        fs::write(workspace.root().join(FILE), self.render())
            .map_err(|error| Failure::io(format!("write {FILE}"), &error))
    }
}

fn row(line: &str) -> Option<(String, &'static str, Row)> {
    let mut words = line.split_whitespace();
    let name = words.next()?.to_string();
    let threads = words.next()?;
    let placement = placement::PLACEMENTS.into_iter().find(|at| placement::key(*at) == threads)?;
    let numbers: Result<Vec<u64>, _> = words.map(str::parse).collect();
    Some((name, placement::key(placement), numbers.ok()?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::Touched;
    use super::*;

    fn operation(name: &str, bytes: u64, lines: u64) -> Operation {
        let touched = Touched([9, bytes, lines, 0, 0, 1, 0, 1, 1, 0, 0]);
        let name = name.into();
        let touched = Some(touched);
        Operation { name, median: 1, max: 1, runs: 1, cr3: 0, msr: 0, mmio: 0, touched }
    }

    const TWO: Placement = Placement::TwoVcpus;

    #[test]
    fn limits_survive_a_round_trip_and_only_fall() {
        let first = [(TWO, operation("give", 90, 9)), (Placement::None, operation("take", 50, 5))];
        let limits = TouchLimits::default().lowered(&first);
        assert_eq!(TouchLimits::parse(&limits.render()), Ok(limits.clone()));
        let second = [(TWO, operation("give", 80, 10))];
        let lowered = limits.lowered(&second);
        assert_eq!(lowered.0, [("give".into(), "two_vcpus", [80, 9, 0, 0, 1, 0, 1, 1, 0, 0])]);
        assert!(TouchLimits::parse("give nowhere 1 2 3 4 5 6 7 8 9 10").is_err());
        assert!(TouchLimits::parse("give two_vcpus 1 2").is_err());
    }

    #[test]
    fn a_rise_names_operation_threads_and_both_numbers() {
        let limits = TouchLimits::default().lowered(&[(TWO, operation("give", 90, 9))]);
        let found = limits.exceeded(TWO, &[&operation("give", 80, 10)]);
        assert_eq!(found, ["give, two VCPUs touches 10 lines of data, at most 9"]);
        let found = limits.unneeded(TWO, &[&operation("give", 80, 10)]);
        assert_eq!(found, ["give, two VCPUs: 90 -> 80 bytes of code"]);
        assert!(limits.exceeded(TWO, &[&operation("give", 90, 9)]).is_empty());
    }

    #[test]
    fn a_limit_without_a_number_and_a_number_without_a_limit_are_found() {
        let limits = TouchLimits::default().lowered(&[(TWO, operation("give", 90, 9))]);
        let found = limits.exceeded(TWO, &[&operation("take", 90, 9)]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("take, two VCPUs has no limits"));
        assert!(found[1].starts_with("give, two VCPUs has limits, and nobody looked on"));
        let unseen = Operation { touched: None, ..operation("give", 90, 9) };
        assert_eq!(limits.exceeded(TWO, &[&unseen]).len(), 1);
        assert!(limits.exceeded(Placement::None, &[]).is_empty());
    }
}
