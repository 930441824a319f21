//! A line on the terminal that says how far a long simulation has come.

use crate::output::is_quiet;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Between two looks at the line.
const DISTANCE: Duration = Duration::from_millis(200);
const WIDTH: u64 = 30;

/// The line, on standard error, if a person looks at it.
pub(crate) struct Progress {
    total: u64,
    begun: Instant,
    next: Instant,
    shown: bool,
    wanted: bool,
}

impl Progress {
    /// Returns the progress with nothing of `total` done. Nothing is shown if somebody reads JSON,
    /// or nobody reads.
    #[must_use]
    pub fn new(total: u64, json: bool) -> Progress {
        let now = Instant::now();
        let wanted = !json && !is_quiet() && std::io::stderr().is_terminal();
        Progress { total, begun: now, next: now + DISTANCE, shown: false, wanted }
    }

    /// Shows progress up to `done`; `rate` gives the speed for the seconds since the beginning.
    pub fn at(&mut self, done: u64, rate: impl FnOnce(f64) -> String) {
        if !self.wanted || Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + DISTANCE;
        let text = line(done, self.total, &rate(self.begun.elapsed().as_secs_f64()));
        // A terminal that went away is no reason to stop.
        let _ = write!(std::io::stderr(), "\r{text}\x1b[K");
        self.shown = true;
    }

    /// Something else is to be printed.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Returns a bar and its number.
fn line(done: u64, total: u64, rate: &str) -> String {
    let part =
        |of: u64| (u128::from(done.min(total)) * u128::from(of) / u128::from(total.max(1))) as u64;
    let (full, percent) = (part(WIDTH) as usize, part(100));
    let empty = WIDTH as usize - full;
    format!("[{}{}] {percent:>3} %  {rate}", "#".repeat(full), ".".repeat(empty))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_as_long_as_what_is_done() {
        assert_eq!(line(0, 10, "x"), format!("[{}]   0 %  x", ".".repeat(30)));
        assert_eq!(line(5, 10, ""), format!("[{}{}]  50 %  ", "#".repeat(15), ".".repeat(15)));
        let full = format!("[{}] 100 %  ", "#".repeat(30));
        assert_eq!((line(11, 10, ""), line(u64::MAX, u64::MAX, "")), (full.clone(), full));
        assert!(line(0, 0, "").contains("  0 %"));
    }
}
