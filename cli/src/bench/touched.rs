//! Cache lines that the kernel touches on the way of an operation, and instructions on that way
//! that are dear on a processor and count as one.
//!
//! A plugin of QEMU looks on while the benchmark runs, and changes nothing in it. It sees where an
//! operation begins and ends, and every instruction and access of the kernel in between.

use crate::qemu::Onlooker;
use diapason_abi::layout::segment_offset;
use diapason_pipe::measured::probe;
use diapason_redir::plugin::{INTERFACE, PluginSource};
use diapason_system::System;
use std::collections::BTreeMap;

const PLUGIN: PluginSource =
    PluginSource { name: "touched", files: &[INTERFACE, ("touched.c", include_str!("touched.c"))] };

/// A number of an operation: its key, and its name behind a number.
pub(super) struct Number {
    pub key: &'static str,
    pub words: &'static str,
}

const fn number(key: &'static str, words: &'static str) -> Number {
    Number { key, words }
}

/// The numbers in the order in which the plugin writes them.
pub(super) const NUMBERS: [Number; 11] = [
    number("code_lines", "lines of code"),
    number("code_bytes", "bytes of code"),
    number("data_lines", "lines of data"),
    number("fxsave", "fxsave"),
    number("fxrstor", "fxrstor"),
    number("fninit", "fninit"),
    number("rep", "rep"),
    number("rdtsc", "rdtsc"),
    number("cr3", "CR3"),
    number("msr", "MSR"),
    number("device", "device"),
];
const CODE_LINES: usize = 0;
const DATA_LINES: usize = 2;
/// The first dear instruction.
const DEAR: usize = 3;
/// The numbers with a limit: all but the lines of code, which depend on where the linker puts
/// functions.
pub(super) const LIMITED: std::ops::Range<usize> = 1..NUMBERS.len();

/// The numbers of an operation: all that the kernel touched between its beginning and its end. Each
/// number is the median of the runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Touched(pub(super) [u64; NUMBERS.len()]);

impl Touched {
    /// Returns the lines of code and of data.
    pub(super) fn lines(&self) -> String {
        format!("{} + {}", self.0[CODE_LINES], self.0[DATA_LINES])
    }

    /// Returns the dear instructions with their numbers.
    pub(super) fn dear(&self) -> String {
        let some = NUMBERS.iter().zip(self.0).skip(DEAR).filter(|(_, count)| *count > 0);
        let all: Vec<String> = some
            .map(|(number, count)| match count {
                1 => number.words.into(),
                _ => format!("{count} {}", number.words),
            })
            .collect();
        if all.is_empty() { "none".into() } else { all.join(", ") }
    }
}

/// Returns the plugin for a system of the benchmark, if that has probes.
pub(super) fn onlooker(system: &System) -> Option<Onlooker> {
    let at = system.segments.iter().position(|segment| segment.name == probe::SEGMENT)?;
    let (offset, bytes) = (segment_offset(u16::try_from(at).ok()?), system.segments[at].size);
    let [size, begins, ends] = [probe::BYTES, probe::BEGINS, probe::ENDS];
    let arguments =
        format!("probes={offset},bytes={bytes},probe={size},begins={begins},ends={ends}");
    Some(Onlooker { plugin: PLUGIN, arguments })
}

/// Returns the ends of each probe that the plugin saw, in the order of memory, and the median of
/// each of their numbers.
///
/// # Errors
/// Returns the line that is not as the plugin writes it.
pub(super) fn medians(seen: &str) -> Result<Vec<(u64, Touched)>, String> {
    let mut probes: BTreeMap<u64, Vec<Touched>> = BTreeMap::new();
    for line in seen.lines() {
        let words: Result<Vec<u64>, _> = line.split(' ').map(str::parse).collect();
        let words = words.map_err(|_| format!("the plugin wrote `{line}`"))?;
        let Some((probe, numbers)) = words.split_first() else { continue };
        let numbers = numbers.try_into().map_err(|_| format!("the plugin wrote `{line}`"))?;
        probes.entry(*probe).or_default().push(Touched(numbers));
    }
    let median = |runs: &[Touched], number: usize| {
        let mut sorted: Vec<u64> = runs.iter().map(|run| run.0[number]).collect();
        sorted.sort_unstable();
        sorted[sorted.len() / 2]
    };
    let medians = |runs: Vec<Touched>| {
        let numbers = std::array::from_fn(|number| median(&runs, number));
        (runs.len() as u64, Touched(numbers))
    };
    Ok(probes.into_values().map(medians).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_its_own_median() {
        let seen = "7 5 90 9 0 0 0 0 1 0 0 2\n\
                    6 3 50 4 0 0 1 0 1 1 0 0\n\
                    6 9 40 3 1 0 1 0 3 1 0 0\n\
                    6 4 60 5 0 0 1 0 1 1 0 0\n";
        let probes = medians(seen).unwrap();
        let first = Touched([4, 50, 4, 0, 0, 1, 0, 1, 1, 0, 0]);
        assert_eq!(probes[0], (3, first));
        assert_eq!(probes[1].0, 1);
        assert_eq!((first.lines(), first.dear()), ("4 + 4".into(), "fninit, rdtsc, CR3".into()));
        assert_eq!(probes[1].1.dear(), "rdtsc, 2 device");
        assert_eq!(Touched::default().dear(), "none");
        assert!(medians("6 3 50").unwrap_err().contains("6 3 50"));
    }
}
