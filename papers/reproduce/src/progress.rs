//! One line on standard error that says how far the work is; only for a person at a terminal.

use std::io::{IsTerminal, Write};

/// Where progress is shown.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    name: &'static str,
    shown: bool,
}

impl Progress {
    /// Shown if standard error is a terminal.
    pub fn new(name: &'static str) -> Progress {
        Progress { name, shown: std::io::stderr().is_terminal() }
    }

    /// Returns a progress bar that is never shown.
    #[cfg(test)]
    pub fn silent() -> Progress {
        Progress { name: "", shown: false }
    }

    /// `done` of `all` parts of `step` are finished.
    pub fn at(&self, step: &str, done: usize, all: usize) {
        if self.shown && (done.is_multiple_of(all.div_ceil(50).max(1)) || done == all) {
            let bar = "#".repeat(done * 20 / all.max(1));
            let mut out = std::io::stderr().lock();
            let _ = write!(out, "\r\x1b[K{}: {step} [{bar:<20}] {done}/{all}", self.name);
            let _ = out.flush();
        }
    }

    /// Clears the line of progress.
    pub fn end(&self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
