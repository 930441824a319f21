//! Logs of CAN buses that a description replays: read and checked before anything is built.

use crate::failure::Failure;
use crate::input::Input;
use diapason_abi::Nanos;
use diapason_can::CanFrame;
use diapason_capture::log::{LogFormat, LogRefusal, as_candump};
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
pub fn frames(channel: usize, log: &str) -> Result<VecDeque<(Nanos, CanFrame)>, ReplayError> {
    replay(log, &interface(channel))
}

/// Returns the name of a channel's interface in a log.
fn interface(channel: usize) -> String {
    format!("can{channel}")
}

/// Returns the text of a log in any format, as candump writes it. Text that is no UTF-8 is taken
/// for Latin-1.
///
/// # Errors
/// Where a log of Vector's tools is wrong, and how.
pub fn text(bytes: Vec<u8>) -> Result<String, LogRefusal> {
    let format = LogFormat::of(&bytes);
    if format == LogFormat::Blf {
        return as_candump(format, &bytes, "");
    }
    let text = String::from_utf8(bytes)
        .unwrap_or_else(|other| other.into_bytes().into_iter().map(char::from).collect());
    if format == LogFormat::Candump { Ok(text) } else { as_candump(format, &[], &text) }
}

/// Reads the logs that `system` names; paths are relative to `folder`.
///
/// # Errors
/// A file that cannot be read, a line that is no record, a log without the channel.
pub fn read(system: &mut System, folder: &Path) -> Result<(), Failure> {
    let buses = system.usb.iter_mut().flat_map(|plug| {
        let (first, name) = (plug.first_channel, &plug.name);
        plug.buses.iter_mut().map(move |bus| (first + bus.channel, name, bus))
    });
    for (channel, interface, bus) in buses {
        if let CanTraffic::Replay { file, log } = &mut bus.traffic {
            let path = folder.join(&*file);
            let bytes = Input::Log.bytes(&path).map_err(|error| {
                let help = "paths in a description are relative to its folder";
                let what = format!("the log that `{interface}` replays cannot be read: {error}");
                wrong(&path, &what, help)
            })?;
            *log = text(bytes).map_err(|error| {
                let help = "mend the log, or let a tool of its format write it again";
                wrong(&path, &error.to_string(), help)
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
            let help = format!(
                "a log for this channel names `{interface}`, as `{EXAMPLE}` does; `can0` is \
                 channel 1 of ASC and BLF"
            );
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
        let fd = text(check(path, 0, &good.replace("can1 00000001#R4", "can0 123##104")));
        assert!(fd.starts_with("error: traffic.log: line 2, column 15: `##` is a CAN FD"), "{fd}");
        assert_eq!(text(check(path, 0, &good.replace("00000001#R4", "123##104"))), "fine");
    }

    #[test]
    fn logs_of_other_tools_are_read_by_their_beginning() {
        let asc = b"date Mon\n//\xe4\n 0.5 2 123 Rx d 1 AB\n".to_vec();
        assert_eq!(super::text(asc).unwrap(), "(0000000000.500000) can1 123#AB\n");
        let plain = "(1.000001) can0 123#01\n";
        assert_eq!(super::text(plain.into()).unwrap(), plain);
        let fd = super::text(b"date Mon\n1.0 CANFD 2 Rx 123 1 0 1 1 ff 0 0 3000\n".to_vec());
        assert_eq!(fd.unwrap(), "(0000000001.000000) can1 123##5FF\n");
        let blf = super::text(b"LOGG".to_vec()).unwrap_err();
        assert_eq!(blf.to_string(), "byte 0: the header of the file is damaged");
    }

    #[test]
    fn times_begin_with_the_first_line() {
        let log = "(7.5) can1 123#\n(7.500250) can0 123#0102\n";
        let frames = frames(0, log).unwrap();
        assert_eq!(frames.len(), 1);
        assert_eq!((frames[0].0, frames[0].1.bytes()), (Nanos(250_000), &[1, 2][..]));
    }
}
