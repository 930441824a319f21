//! An emulator that does not outlive us.

use crate::firmware;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often it is asked whether it has ended.
const STEP: Duration = Duration::from_millis(2);

/// A started QEMU. It is ended with this value.
#[derive(Debug)]
pub struct Emulator {
    child: Child,
    /// Passes on what it complains about.
    complaints: Option<JoinHandle<()>>,
}

impl Emulator {
    /// Starts the emulator. Its errors go to our standard error, but for what QEMU says of the
    /// options of [`firmware`] in every run.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(command: &mut Command) -> io::Result<Emulator> {
        let mut child = command.stderr(Stdio::piped()).spawn()?;
        let complaints = child.stderr.take();
        let complaints = complaints.map(|errors| std::thread::spawn(|| pass_on(errors)));
        Ok(Emulator { child, complaints })
    }

    /// Returns the number of its process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns its standard input, if that is a pipe and was not taken yet.
    pub fn input(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Returns its standard output, if that is a pipe and was not taken yet.
    pub fn output(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Returns the emulator's exit status; `None` if it does not end for so long.
    ///
    /// # Errors
    /// If the host refuses to say.
    pub fn wait(&mut self, patience: Duration) -> io::Result<Option<ExitStatus>> {
        for _ in 0..patience.as_millis() / STEP.as_millis() {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            std::thread::sleep(STEP);
        }
        self.child.try_wait()
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        // All fail only if it has ended already, or a complaint could not be read.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = self.complaints.take().map(JoinHandle::join);
    }
}

/// Writes the lines of `errors` to our own standard error.
fn pass_on(errors: ChildStderr) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    while let Ok(1..) = errors.read_until(b'\n', &mut line) {
        if !firmware::is_expected(&String::from_utf8_lossy(&line)) {
            // Nobody is left to tell if that fails.
            let _ = io::stderr().write_all(&line);
        }
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_end_is_waited_for_but_not_for_ever() {
        let start = |script: &str| Emulator::start(Command::new("sh").args(["-c", script]));
        let mut ends = start("exit 7").unwrap();
        let status = ends.wait(Duration::from_secs(60)).unwrap();
        assert_eq!(status.and_then(|status| status.code()), Some(7));
        let mut stays = start("exec sleep 600").unwrap();
        assert_eq!(stays.wait(Duration::from_millis(20)).unwrap(), None);
    }
}
