//! A CAN frame as SocketCAN has it.

use diapason_can::CanFrame;
use diapason_can::candump::LineContent;

const EXTENDED: u32 = 1 << 31;
const REMOTE: u32 = 1 << 30;
const ERROR: u32 = 1 << 29;
/// Most bytes of data, and how many every record has room for.
const DATA: usize = 8;

/// Returns the packet of a file of [`crate::pcap::LinkType::Can`].
#[must_use]
pub fn bytes(report: &LineContent) -> [u8; 16] {
    match report {
        LineContent::Frame(frame) => of_frame(frame),
        LineContent::Error { class, details } => {
            record(ERROR | class & (ERROR - 1), DATA as u8, 0, details)
        }
    }
}

fn of_frame(frame: &CanFrame) -> [u8; 16] {
    let flags =
        if frame.is_extended() { EXTENDED } else { 0 } | if frame.is_remote() { REMOTE } else { 0 };
    // A remote frame has a length and no data; a code above eight is kept apart.
    let length = frame.code().min(DATA as u8);
    let code = if frame.code() > length { frame.code() } else { 0 };
    record(flags | frame.raw_id(), length, code, frame.bytes())
}

fn record(id: u32, length: u8, code: u8, data: &[u8]) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[0..4].copy_from_slice(&id.to_be_bytes());
    (bytes[4], bytes[7]) = (length, code);
    bytes[8..8 + data.len()].copy_from_slice(data);
    bytes
}
