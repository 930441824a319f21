//! The measured paths, as `cargo xtask costs` writes them.

use super::Longest;

/// Numbers of calls are below this.
const CALLS: usize = 64;

/// The longest paths by what causes them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Paths {
    calls: [Longest; CALLS],
    pub timer: Longest,
    pub interrupt: Longest,
    pub fault: Longest,
}

impl Paths {
    pub fn plain() -> Paths {
        Paths::read(include_str!("plain.txt"))
    }

    /// Of a kernel that keeps the flight record.
    pub fn recording() -> Paths {
        Paths::read(include_str!("recording.txt"))
    }

    /// One line each: what, staying, leaving. A call that is not there costs as much as the most
    /// expensive one that is.
    fn read(text: &str) -> Paths {
        let none = Longest::default();
        let mut paths = Paths { calls: [none; CALLS], timer: none, interrupt: none, fault: none };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [what, staying, leaving] = words[..] else { continue };
            let number = |word: &str| word.parse().unwrap_or(0);
            let longest = Longest { staying: number(staying), leaving: number(leaving) };
            match (what, what.parse::<usize>()) {
                ("timer", _) => paths.timer = longest,
                ("interrupt", _) => paths.interrupt = longest,
                ("fault", _) => paths.fault = longest,
                (_, Ok(call)) if call < CALLS => paths.calls[call] = longest,
                _ => {}
            }
        }
        paths
    }

    pub fn call(&self, number: u64) -> Longest {
        let known = usize::try_from(number).ok().and_then(|number| self.calls.get(number));
        let unknown = |longest: &&Longest| **longest != Longest::default();
        known.filter(unknown).copied().unwrap_or(self.fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_is_read() {
        let paths = Paths::read("# what staying leaving\n6 0 610\n13 40 300\ntimer 200 519\nx y\n");
        assert_eq!(paths.call(6), Longest { staying: 0, leaving: 610 });
        assert_eq!(paths.timer, Longest { staying: 200, leaving: 519 });
        assert_eq!(paths.call(7), paths.fault);
    }

    /// The calls that every program makes, the timer, and faults.
    #[test]
    fn both_tables_have_what_matters() {
        for paths in [Paths::plain(), Paths::recording()] {
            for call in [0, 6, 8, 11, 13, 16, 17, 20, 21, 28] {
                assert!(paths.calls[call] != Longest::default(), "call {call}");
            }
            assert!(paths.timer.leaving > 200 && paths.interrupt.leaving > 200);
            assert!(paths.fault.leaving > 1_000);
        }
    }
}
