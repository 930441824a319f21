//! Logs of CAN buses that a description replays: read and checked before anything is built.

use crate::Failure;
use crate::input::Input;
use diapason_abi::Nanos;
use diapason_can::Frame;
use diapason_devices::can::{ReplayError, replay};
use diapason_system::{CanTraffic, System};
use std::collections::VecDeque;
use std::path::Path;

/// An example of a line of a log.
const EXAMPLE: &str = "(1700000000.250001) can0 123#DEADBEEF";

/// Returns the frames of a log for the channel with this number, from its first line on.
///
/// # Errors
/// A line that is no record.
pub fn frames(channel: usize, log: &str) -> Result<VecDeque<(Nanos, Frame)>, ReplayError> {
    replay(log, &interface(channel))
}

/// Returns the name of a channel's interface in a log.
fn interface(channel: usize) -> String {
    format!("can{channel}")
}

/// Reads the logs that `system` names; paths are relative to `folder`.
///
/// # Errors
/// A file that cannot be read, a line that is no record, a log without the channel.
pub fn read(system: &mut System, folder: &Path) -> Result<(), Failure> {
    let buses = system.usb.iter_mut().flat_map(|plug| {
        let first = plug.first_channel;
        plug.buses.iter_mut().map(move |bus| (first + bus.channel, bus))
    });
    for (channel, bus) in buses {
        if let CanTraffic::Replay { file, log } = &mut bus.traffic {
            let path = folder.join(&*file);
            *log = Input::Log.text(&path).map_err(|error| {
                let help = "paths in a description are relative to its folder";
                wrong(&path, &format!("the log cannot be read: {error}"), help)
            })?;
            check(&path, channel, log)?;
        }
    }
    Ok(())
}

fn check(path: &Path, channel: usize, log: &str) -> Result<(), Failure> {
    match frames(channel, log) {
        Ok(frames) if frames.is_empty() => {
            let interface = interface(channel);
            let help = format!("a log for this channel names `{interface}`, as `{EXAMPLE}` does");
            Err(wrong(path, &format!("the log has no frame of `{interface}`"), &help))
        }
        Ok(_) => Ok(()),
        Err(error) => {
            let help = format!("mend or remove the line; one frame of candump is `{EXAMPLE}`");
            Err(wrong(path, &error.to_string(), &help))
        }
    }
}

fn wrong(path: &Path, what: &str, help: &str) -> Failure {
    Failure::Input(format!("error: {}: {what}\n  help: {help}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(failure: Result<(), Failure>) -> String {
        failure.map_or_else(|failure| failure.to_string(), |()| String::from("fine"))
    }

    #[test]
    fn a_log_is_refused_by_file_and_line_with_a_remedy() {
        let path = Path::new("traffic.log");
        let good = "(1.000001) can0 123#01\n(1.5) can1 00000001#R4\n";
        assert_eq!(text(check(path, 0, good)), "fine");
        let other = text(check(path, 3, good));
        assert!(other.starts_with("error: traffic.log: the log has no frame of `can3`\n"));
        let cut = text(check(path, 0, &good.replace("#R4", "#R44")));
        assert!(cut.starts_with("error: traffic.log: line 2, column 24: "), "{cut}");
        assert!(cut.contains("help: mend or remove the line"), "{cut}");
    }

    #[test]
    fn times_begin_with_the_first_line() {
        let log = "(7.5) can1 123#\n(7.500250) can0 123#0102\n";
        let frames = frames(0, log).unwrap();
        assert_eq!(frames.len(), 1);
        assert_eq!((frames[0].0, frames[0].1.bytes()), (Nanos(250_000), &[1, 2][..]));
    }
}
