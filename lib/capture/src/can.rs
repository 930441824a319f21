//! A CAN frame as SocketCAN has it.

use alloc::vec::Vec;
use diapason_can::candump::LineContent;
use diapason_can::{AnyFrame, CanFrame, FdFrame};

const EXTENDED: u32 = 1 << 31;
const REMOTE: u32 = 1 << 30;
const ERROR: u32 = 1 << 29;
/// Most bytes of data of a classic frame, and how many its record has room for.
const DATA: usize = 8;
/// Most bytes of data of a frame of CAN FD, and how many its record has room for.
const FD_DATA: usize = 64;
/// Flags of a frame of CAN FD.
const FAST: u8 = 1;
const PASSIVE: u8 = 2;
const FD: u8 = 4;

/// Returns the packet of a file of [`crate::pcap::LinkType::Can`]: 16 bytes, or 72 of CAN FD.
#[must_use]
pub fn bytes(report: &LineContent) -> Vec<u8> {
    match report {
        LineContent::Frame(AnyFrame::Classic(frame)) => of_frame(frame).into(),
        LineContent::Frame(AnyFrame::Fd(frame)) => of_fd(frame),
        LineContent::Error { class, details } => {
            record(ERROR | class & (ERROR - 1), DATA as u8, 0, details).into()
        }
    }
}

fn of_fd(frame: &FdFrame) -> Vec<u8> {
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let any = AnyFrame::from(*frame);
    let id = any.raw_id() | if any.is_extended() { EXTENDED } else { 0 };
    let flags = FD | flag(frame.is_fast(), FAST) | flag(frame.is_passive(), PASSIVE);
    let mut bytes = Vec::from(id.to_be_bytes());
    bytes.extend_from_slice(&[frame.bytes().len() as u8, flags, 0, 0]);
    bytes.extend_from_slice(frame.bytes());
    bytes.resize(8 + FD_DATA, 0);
    bytes
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
