//! The records in the rings of pipes, as their ends write them.

use super::life::Followed;
use super::wire::{digest, frame_digest, length_digest};
use diapason_abi::Nanos;
use diapason_can::AnyFrame;
use diapason_can::exchange::{
    ChannelReport, Departure, FdDeparture, FdReceivedFrame, ReceivedFrame,
};
use diapason_contract::disk::{self, DiskAnswer, READ, WRITE};
use diapason_contract::network::{self, Ask, BACK, CAME, News, SEND};
use diapason_contract::sensor::{self, Packet};
use diapason_contract::sink::{PacketAnswer, PacketWrite};
use diapason_contract::source::{MessageForm, PipeSource};
use std::mem::offset_of;

/// The place of the records in a ring.
pub const RECORDS: usize = 128;
/// Records in the ring of reports on a pipe to a device, the length of one, and where in it is how
/// many messages are through.
const REPORTS: u64 = 64;
const REPORT: usize = size_of::<ChannelReport>();
const THROUGH: usize = 16;

fn record(memory: &[u8], place: usize, length: usize) -> Option<&[u8]> {
    memory.get(RECORDS + place * length..)?.get(..length)
}

/// Returns the frame of a record from a device.
pub fn arrival(memory: &[u8], place: usize, fd: bool) -> Option<AnyFrame> {
    let (short, long) = (size_of::<ReceivedFrame>(), size_of::<FdReceivedFrame>());
    let record = record(memory, place, if fd { long } else { short })?;
    let head = ReceivedFrame {
        time: u64::from_le_bytes(*record.first_chunk()?),
        taken: u64::from_le_bytes(*record.get(8..)?.first_chunk()?),
        data: *record.get(16..)?.first_chunk()?,
        id: u32::from_le_bytes(*record.get(24..)?.first_chunk()?),
        code: *record.get(28)?,
        flags: *record.get(29)?,
        opened: u16::from_le_bytes(*record.get(30..)?.first_chunk()?),
        moved: 0,
        inexact: 0,
    };
    if !fd {
        return head.frame().map(AnyFrame::Classic);
    }
    FdReceivedFrame { head, more: *record.get(short..)?.first_chunk()? }.frame()
}

/// Returns the packet of a record from a source.
pub fn packet(memory: &[u8], place: usize) -> Option<Followed> {
    let record = record(memory, place, size_of::<Packet>())?;
    let length = u32::from_le_bytes(*record.get(offset_of!(Packet, length)..)?.first_chunk()?);
    let data = record.get(offset_of!(Packet, data)..)?.get(..length as usize)?;
    let made = Nanos(u64::from_le_bytes(*record.get(offset_of!(Packet, time)..)?.first_chunk()?));
    Some(Followed::Packet { made, length, digest: digest(data) })
}

/// Returns the frame of a record from a network device, if it is of one.
pub fn frame(memory: &[u8], place: usize) -> Option<Followed> {
    let record = record(memory, place, size_of::<News>())?;
    let half = |at: usize| Some(u32::from_le_bytes(*record.get(at..)?.first_chunk()?));
    let length = half(offset_of!(News, bytes))?;
    let made = *record.get(offset_of!(News, time)..)?.first_chunk()?;
    let digest = frame_digest(made, length as usize);
    let message = Followed::Packet { made: Nanos(u64::from_le_bytes(made)), length, digest };
    (half(offset_of!(News, what))? == CAME).then_some(message)
}

/// Returns the packet of a record to an endpoint.
pub fn written(memory: &[u8], place: usize) -> Option<Followed> {
    let record = record(memory, place, size_of::<PacketWrite>())?;
    let length = u32::from_le_bytes(*record.get(offset_of!(PacketWrite, length)..)?.first_chunk()?);
    let data = record.get(offset_of!(PacketWrite, data)..)?.get(..length as usize)?;
    let made = Nanos(u64::from_le_bytes(*record.first_chunk()?));
    Some(Followed::Packet { made, length, digest: digest(data) })
}

/// Returns the frame of a record to a network device, if it is of one.
pub fn sent_frame(memory: &[u8], place: usize) -> Option<Followed> {
    let record = record(memory, place, size_of::<Ask>())?;
    let half = |at: usize| Some(u16::from_le_bytes(*record.get(at..)?.first_chunk()?));
    let bytes = half(offset_of!(Ask, bytes))?;
    let made = u64::from_le_bytes(*record.get(offset_of!(Ask, written)..)?.first_chunk()?);
    let (made, digest) = (Nanos(made), length_digest(bytes.into()));
    let message = Followed::Packet { made, length: bytes.into(), digest };
    (half(offset_of!(Ask, what))? == SEND).then_some(message)
}

/// Returns which message an answer of a sink is to, by the time at which it was written, and its
/// status.
pub fn answer(memory: &[u8], sink: &PipeSource, number: u64) -> Option<(Nanos, u32)> {
    let place = (number % sink.attributes.slots as u64) as usize;
    let (length, written, status, what) = match sink.form {
        MessageForm::SentFrame(_) => (
            size_of::<News>(),
            offset_of!(News, time),
            offset_of!(News, status),
            Some((offset_of!(News, what), BACK)),
        ),
        MessageForm::Blocks(_) => (
            size_of::<DiskAnswer>(),
            offset_of!(DiskAnswer, ask.due),
            offset_of!(DiskAnswer, status),
            Some((offset_of!(DiskAnswer, ask.what), WRITE)),
        ),
        _ => (size_of::<PacketAnswer>(), 0, offset_of!(PacketAnswer, status), None),
    };
    let record = record(memory, place, length)?;
    let half = |at: usize| Some(u32::from_le_bytes(*record.get(at..)?.first_chunk()?));
    let time = u64::from_le_bytes(*record.get(written..)?.first_chunk()?);
    let is_answer = what.is_none_or(|(at, what)| half(at) == Some(what));
    is_answer.then_some((Nanos(time), half(status)?))
}

/// Returns the run of blocks of an ask, if that is one for such a run.
pub fn asked(memory: &[u8], place: usize, what: u32) -> Option<Followed> {
    run(record(memory, place, size_of::<disk::Ask>())?, what)
}

/// Returns the run of blocks that a disk has read, with the answer that tells so.
pub fn run_read(memory: &[u8], place: usize) -> Option<Followed> {
    let record = record(memory, place, size_of::<DiskAnswer>())?;
    let status = u32::from_le_bytes(*record.get(offset_of!(DiskAnswer, status)..)?.first_chunk()?);
    let run = run(record.get(offset_of!(DiskAnswer, ask)..)?, READ)?;
    (status == disk::DONE).then_some(run)
}

/// Returns whether a record of a source says that a message was lost before it, or that it is of
/// one that could not be read.
pub fn tells_loss(memory: &[u8], place: usize, form: MessageForm) -> Option<bool> {
    let word = |length: usize, at: usize| {
        let record = record(memory, place, length)?;
        Some(u32::from_le_bytes(*record.get(at..)?.first_chunk()?))
    };
    match form {
        MessageForm::Frame(_) => {
            let record = record(memory, place, size_of::<News>())?;
            let flags = record.get(offset_of!(News, flags)..)?.first_chunk()?;
            let came = word(size_of::<News>(), offset_of!(News, what))? == CAME;
            Some(came && u16::from_le_bytes(*flags) & network::LOST_BEFORE != 0)
        }
        MessageForm::Blocks(_) => {
            let half = |at: usize| word(size_of::<DiskAnswer>(), at);
            let is_read = half(offset_of!(DiskAnswer, ask.what))? == READ;
            Some(is_read && half(offset_of!(DiskAnswer, status))? != disk::DONE)
        }
        _ => {
            let flags = word(size_of::<Packet>(), offset_of!(Packet, flags))?;
            Some(flags & sensor::LOST_BEFORE != 0)
        }
    }
}

/// Returns the run of blocks that is in the bytes of an ask.
fn run(ask: &[u8], what: u32) -> Option<Followed> {
    let half = |at: usize| Some(u32::from_le_bytes(*ask.get(at..)?.first_chunk()?));
    let made = *ask.get(offset_of!(disk::Ask, due)..)?.first_chunk()?;
    let (block, count) = (half(offset_of!(disk::Ask, block))?, half(offset_of!(disk::Ask, count))?);
    let is_it = half(offset_of!(disk::Ask, what))? == what;
    is_it.then_some(Followed::Run { made: Nanos(u64::from_le_bytes(made)), block, count })
}

/// Returns the frame of a record to a device.
pub fn departure(memory: &[u8], place: usize, fd: bool) -> Option<AnyFrame> {
    let (short, long) = (size_of::<Departure>(), size_of::<FdDeparture>());
    let record = record(memory, place, if fd { long } else { short })?;
    let head = Departure {
        data: *record.first_chunk()?,
        id: u32::from_le_bytes(*record.get(8..)?.first_chunk()?),
        code: *record.get(12)?,
        flags: *record.get(13)?,
        spare: 0,
        written: 0,
    };
    if !fd {
        return head.frame().map(AnyFrame::Classic);
    }
    FdDeparture { head, more: *record.get(short..)?.first_chunk()? }.frame()
}

/// Returns how many messages are through, by the last of so many reports.
pub fn through(memory: &[u8], reports: u64) -> Option<u64> {
    let place = (reports.checked_sub(1)? % REPORTS) as usize;
    let report = record(memory, place, REPORT)?;
    Some(u64::from_le_bytes(*report.get(THROUGH..)?.first_chunk()?))
}
