//! An emulator that does not outlive us.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

/// How often it is asked whether it has ended.
const STEP: Duration = Duration::from_millis(2);

/// A started QEMU. It is ended with this value.
#[derive(Debug)]
pub struct Emulator(Child);

impl Emulator {
    /// Starts the emulator.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(command: &mut Command) -> io::Result<Emulator> {
        command.spawn().map(Emulator)
    }

    /// Returns the emulator's exit status; `None` if it does not end for so long.
    ///
    /// # Errors
    /// If the host refuses to say.
    pub fn wait(&mut self, patience: Duration) -> io::Result<Option<ExitStatus>> {
        for _ in 0..patience.as_millis() / STEP.as_millis() {
            if let Some(status) = self.0.try_wait()? {
                return Ok(Some(status));
            }
            std::thread::sleep(STEP);
        }
        self.0.try_wait()
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
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
