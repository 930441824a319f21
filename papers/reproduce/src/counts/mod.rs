//! Instruction counts measured on this kernel, read from a table that says where each comes from.
//!
//! The table is data, `kernel.txt` beside this file. An operation that is not in it has not been
//! measured, and whatever needs it is reported as not measured.

use diapason::Failure;
use diapason_csd::OperationCounts;

/// The operations of a scheduler, as the table names them: of a DP queue, then of the FP queue.
pub const OPERATIONS: [&str; 6] =
    ["dp_block", "dp_unblock", "dp_select", "fp_block", "fp_unblock", "fp_select"];
/// Operations that have one count whatever the length of a queue.
pub const CONSTANTS: [&str; 2] = ["queue", "fixed"];

/// The content of the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Measured {
    pub counts: OperationCounts,
    /// Operations it does not have.
    pub missing: Vec<&'static str>,
    /// Each entry with its source: operation, length, instructions, source.
    pub entries: Vec<(String, u32, u64, String)>,
}

impl Measured {
    /// Returns the longest queue for which every operation was measured.
    #[must_use]
    pub fn tasks_max(&self) -> usize {
        let last = |points: &Vec<(u32, u64)>| points.last().map_or(0, |(length, _)| *length);
        self.counts.dp.iter().chain(&self.counts.fp).map(last).min().unwrap_or(0) as usize
    }
}

/// Returns the table of this kernel.
///
/// # Errors
/// If it is damaged, which is our fault.
pub fn kernel() -> Result<Measured, Failure> {
    parse(include_str!("kernel.txt")).map_err(|problem| {
        Failure::Ours(format!("papers/reproduce/src/counts/kernel.txt{problem}"))
    })
}

/// Reads lines of `operation length instructions source…`; `#` begins a comment.
pub(super) fn parse(text: &str) -> Result<Measured, String> {
    let mut measured =
        Measured { counts: OperationCounts::default(), missing: Vec::new(), entries: Vec::new() };
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        entry(line, &mut measured).map_err(|why| format!(":{}: {why}", number + 1))?;
    }
    let named = |name: &&str| !measured.entries.iter().any(|entry| entry.0 == **name);
    measured.missing = OPERATIONS.into_iter().chain(CONSTANTS).filter(named).collect();
    Ok(measured)
}

fn entry(line: &str, measured: &mut Measured) -> Result<(), String> {
    let mut words = line.split_whitespace();
    let (name, length) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let count = words.next().unwrap_or("");
    let length: u32 = length.parse().map_err(|_| format!("`{length}` is not a length"))?;
    let count: u64 = count.parse().map_err(|_| format!("`{count}` is not a count"))?;
    let source = words.collect::<Vec<&str>>().join(" ");
    if source.is_empty() {
        return Err("say where this was measured".into());
    }
    let counts = &mut measured.counts;
    if let Some(place) = OPERATIONS.iter().position(|operation| *operation == name) {
        let (dp, fp) = (&mut counts.dp, &mut counts.fp);
        let points = dp.iter_mut().chain(fp).nth(place).ok_or("a table of six operations")?;
        if points.last().is_some_and(|(last, _)| *last >= length) {
            return Err(format!("{name}: give the lengths in rising order"));
        }
        points.push((length, count));
    } else {
        match name {
            "queue" => counts.queue = count,
            "fixed" => counts.fixed += count,
            other => {
                let all: Vec<&str> = OPERATIONS.into_iter().chain(CONSTANTS).collect();
                return Err(format!("`{other}` is no operation; choose from {}", all.join(", ")));
            }
        }
    }
    measured.entries.push((name.into(), length, count, source));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_this_kernel_can_be_read() {
        let measured = kernel().unwrap();
        assert!(measured.entries.iter().all(|entry| entry.3.len() > 10));
    }

    #[test]
    fn what_is_not_measured_is_named() {
        let text =
            "# comment\n\ndp_select 1 20 a run\ndp_select 50 300 a run\nfixed 0 7 x\nfixed 0 5 y\n";
        let measured = parse(text).unwrap();
        assert_eq!(measured.counts.dp[2], [(1, 20), (50, 300)]);
        assert_eq!(measured.counts.fixed, 12);
        let missing = ["dp_block", "dp_unblock", "fp_block", "fp_unblock", "fp_select", "queue"];
        assert_eq!(measured.missing, missing);
        assert_eq!(measured.tasks_max(), 0);
    }

    #[test]
    fn a_damaged_table_is_refused_with_its_line() {
        let refused = |text| parse(text).unwrap_err();
        assert_eq!(refused("queue 0 5 here\nqueue 0 x here"), ":2: `x` is not a count");
        assert_eq!(refused("queue 0 5"), ":1: say where this was measured");
        assert!(refused("heap 0 5 here").contains("`heap` is no operation"));
        let unsorted = refused("fp_block 5 5 here\nfp_block 5 5 here");
        assert_eq!(unsorted, ":2: fp_block: give the lengths in rising order");
    }
}
