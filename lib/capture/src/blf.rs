//! BLF: the binary format in which Vector's tools log CAN buses.
//!
//! A file is a header of 144 bytes and containers, most of them compressed by zlib. Their contents
//! together are one sequence of objects, which may go on from one container to the next. Objects
//! about anything but CAN frames and errors are passed over. There is no public specification:
//! `tests/python_can.rs` compares with python-can, where it is installed.

use crate::asc::flag;
use crate::log::{BUS_ERROR, LogEntry};
use alloc::vec::Vec;
use core::fmt;
use diapason_abi::Nanos;
use diapason_can::candump::LineContent;
use diapason_can::fd::{FD_BYTES_MAX, LENGTHS};
use diapason_can::frame::{BYTES_MAX, extended, standard};
use diapason_can::{AnyFrame, CanFrame, FdFrame, Id};
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

/// The first bytes of a file.
pub const MAGIC: &[u8; 4] = b"LOGG";
/// Bytes of the header of a file.
pub const HEADER_BYTES: usize = 144;
/// Most bytes of a container's contents, and of an object.
pub const CONTENT_MAX: usize = 16 << 20;

const OBJECT: &[u8; 4] = b"LOBJ";
/// Bytes before the header of a particular kind of object.
const BASE: usize = 16;
/// Bytes of a container before its contents.
const CONTAINER_HEAD: usize = 32;
/// Bytes of an object before its body.
const OBJECT_HEAD: usize = 32;
/// Bytes of contents from which the writer fills a container.
const CONTENT: usize = 128 << 10;
/// Padding after an object: the remainder of its size by four, and none in some files.
const PADDING: usize = 3;
const LEVEL: u8 = 6;

const MESSAGE: u32 = 1;
const ERROR: u32 = 2;
const CONTAINER: u32 = 10;
const ERROR_EXT: u32 = 73;
const MESSAGE_2: u32 = 86;
const FD: u32 = 100;
const FD_64: u32 = 101;

const TEN_MICROS: u32 = 1;
const NANOS: u32 = 2;
const EXTENDED: u32 = 1 << 31;
const ID: u32 = 0x1fff_ffff;
const REMOTE: u8 = 0x80;
/// Bytes of the body of the older object for CAN FD, and the flags in it.
const FD_BODY: usize = 20 + FD_BYTES_MAX as usize;
const FD_FLAG: u8 = 1;
const FAST_FLAG: u8 = 2;
const PASSIVE_FLAG: u8 = 4;
const PLAIN: u16 = 0;
const ZLIB: u16 = 2;

/// Why a file cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlfError {
    /// The byte at which the object begins: of the file, counted from 0.
    pub at: usize,
    /// The byte among the contents of all containers up to there, if the object is in one.
    pub inside: Option<usize>,
    pub what: BlfTrouble,
}

/// A mistake in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlfTrouble {
    /// The header is cut short or has no valid length.
    Header,
    /// No object begins here.
    Object,
    /// The file ends before the object does.
    Cut,
    /// The object says that it is shorter than what it must contain.
    Size,
    /// More than [`CONTENT_MAX`] bytes in one container or object.
    TooLarge,
    /// A compression other than zlib.
    Compression(u16),
    /// The contents are damaged.
    Zlib,
    /// A frame that is in no container.
    Outside,
    /// Times are neither in nanoseconds nor in 10 µs.
    Unit(u32),
    /// More than 584 years.
    TimeTooLarge,
    /// Channels count from 1.
    Channel,
    Identifier,
    /// A data length code above 15.
    Code(u8),
    /// A number of bytes that no frame has with this data length code.
    Length {
        code: u8,
        bytes: u8,
    },
}

impl fmt::Display for BlfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}", self.at)?;
        if let Some(inside) = self.inside {
            write!(f, ", byte {inside} of the contents")?;
        }
        write!(f, ": ")?;
        match self.what {
            BlfTrouble::Header => write!(f, "the header of the file is damaged"),
            BlfTrouble::Object => write!(f, "an object is expected, which begins with `LOBJ`"),
            BlfTrouble::Cut => write!(f, "the file ends before this object does"),
            BlfTrouble::Size => write!(f, "the size of this object is too small for its kind"),
            BlfTrouble::TooLarge => {
                write!(f, "an object or container has more than {CONTENT_MAX} bytes")
            }
            BlfTrouble::Compression(kind) => {
                write!(f, "compression {kind} is unknown: 0 is none, and 2 is zlib")
            }
            BlfTrouble::Zlib => write!(f, "the compressed contents are damaged"),
            BlfTrouble::Outside => write!(f, "a frame must be in a container"),
            BlfTrouble::Unit(unit) => {
                write!(f, "times of unit {unit} are unknown: 1 is 10 us, and 2 is 1 ns")
            }
            BlfTrouble::TimeTooLarge => write!(f, "times reach 18446744073 seconds"),
            BlfTrouble::Channel => write!(f, "channels count from 1"),
            BlfTrouble::Identifier => write!(f, "the identifier is too large for its format"),
            BlfTrouble::Code(code) => write!(f, "data length code {code} is more than 15"),
            BlfTrouble::Length { code, bytes } => {
                write!(f, "{bytes} bytes are not what data length code {code} means")
            }
        }
    }
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// The beginning of an object.
#[derive(Clone, Copy)]
struct Head {
    /// The place at which the object's body begins.
    body: usize,
    size: usize,
    kind: u32,
}

/// Returns the head of the object at the beginning of `bytes`; `None` if they end before.
fn head(bytes: &[u8]) -> Result<Option<Head>, BlfTrouble> {
    let begins = bytes.iter().zip(OBJECT).all(|(byte, wanted)| byte == wanted);
    if !begins {
        return Err(BlfTrouble::Object);
    }
    let (Some(body), Some(size), Some(kind)) = (short(bytes, 4), word(bytes, 8), word(bytes, 12))
    else {
        return Ok(None);
    };
    let (body, size) = (usize::from(body), size as usize);
    match (size < BASE.max(body), size > CONTENT_MAX) {
        (true, _) => Err(BlfTrouble::Size),
        (_, true) => Err(BlfTrouble::TooLarge),
        _ => Ok(Some(Head { body, size, kind })),
    }
}

/// Returns how many bytes of padding there are before the next object, or before the end.
fn padding(bytes: &[u8]) -> usize {
    let is_object = |at: &usize| bytes.get(*at..).is_some_and(|rest| rest.starts_with(OBJECT));
    let zeros = bytes.iter().take(PADDING).take_while(|byte| **byte == 0).count();
    (0..=PADDING).find(is_object).unwrap_or(zeros)
}

/// Reads a file and passes its entries to `put`, until it returns false. Returns whether all were
/// passed.
///
/// # Errors
/// Returns the first mistake, and where it is.
pub fn read(bytes: &[u8], put: &mut dyn FnMut(LogEntry) -> bool) -> Result<bool, BlfError> {
    let wrong = |at, what| BlfError { at, inside: None, what };
    let begin = word(bytes, 4).map_or(0, |length| length as usize);
    if !bytes.starts_with(MAGIC) || begin < HEADER_BYTES || begin > bytes.len() {
        return Err(wrong(0, BlfTrouble::Header));
    }
    let (mut at, mut contents) = (begin, Contents::default());
    loop {
        at += padding(&bytes[at..]);
        if at >= bytes.len() {
            break;
        }
        let found = head(&bytes[at..]).map_err(|what| wrong(at, what))?;
        let object = found.and_then(|head| Some((head, bytes.get(at..at + head.size)?)));
        let (head, object) = object.ok_or(wrong(at, BlfTrouble::Cut))?;
        match head.kind {
            CONTAINER => {
                contents.add(object).map_err(|what| wrong(at, what))?;
                if !contents.pass(at, put)? {
                    return Ok(false);
                }
            }
            MESSAGE | MESSAGE_2 | FD | FD_64 => return Err(wrong(at, BlfTrouble::Outside)),
            _ => {}
        }
        at += head.size;
    }
    match contents.rest.is_empty() {
        true => Ok(true),
        false => Err(contents.wrong(bytes.len(), 0, BlfTrouble::Cut)),
    }
}

/// The contents of the containers so far.
#[derive(Default)]
struct Contents {
    /// The bytes that belong to no whole object yet.
    rest: Vec<u8>,
    /// How many bytes were before them.
    before: usize,
}

impl Contents {
    fn wrong(&self, at: usize, inside: usize, what: BlfTrouble) -> BlfError {
        BlfError { at, inside: Some(self.before + inside), what }
    }

    /// Adds what is in a container.
    fn add(&mut self, container: &[u8]) -> Result<(), BlfTrouble> {
        let (kind, size) = (short(container, BASE), word(container, BASE + 8));
        let (Some(kind), Some(size)) = (kind, size) else { return Err(BlfTrouble::Size) };
        let packed = container.get(CONTAINER_HEAD..).ok_or(BlfTrouble::Size)?;
        if size as usize > CONTENT_MAX {
            return Err(BlfTrouble::TooLarge);
        }
        match kind {
            PLAIN => self.rest.extend_from_slice(packed),
            ZLIB => {
                let contents = decompress_to_vec_zlib_with_limit(packed, size as usize);
                self.rest.extend(contents.map_err(|_| BlfTrouble::Zlib)?);
            }
            other => return Err(BlfTrouble::Compression(other)),
        }
        Ok(())
    }

    /// Passes the objects that are whole, of which the last container is at `at`.
    fn pass(&mut self, at: usize, put: &mut dyn FnMut(LogEntry) -> bool) -> Result<bool, BlfError> {
        let mut from = 0;
        loop {
            let rest = &self.rest[from..];
            from += padding(rest);
            let rest = &self.rest[from..];
            let found = head(rest).map_err(|what| self.wrong(at, from, what))?;
            let object = found.and_then(|head| Some((head, rest.get(..head.size)?)));
            let Some((head, object)) = object else { break };
            let entry = entry(head, object).map_err(|what| self.wrong(at, from, what))?;
            if entry.is_some_and(|entry| !put(entry)) {
                return Ok(false);
            }
            from += head.size;
        }
        self.rest.drain(..from);
        self.before += from;
        Ok(true)
    }
}

/// Returns what an object says about a CAN bus, if it does.
fn entry(head: Head, object: &[u8]) -> Result<Option<LogEntry>, BlfTrouble> {
    let body = object.get(head.body..).unwrap_or_default();
    let report = match head.kind {
        MESSAGE | MESSAGE_2 => LineContent::Frame(frame(body)?.into()),
        FD => LineContent::Frame(fd_frame(body)?),
        FD_64 => LineContent::Frame(fd_64_frame(body)?),
        ERROR | ERROR_EXT => LineContent::Error { class: BUS_ERROR, details: [0; BYTES_MAX] },
        _ => return Ok(None),
    };
    let (unit, time) = (word(object, BASE), long(object, BASE + 8));
    // The object with the newest kind of frame has one byte for its channel.
    let channel = match head.kind {
        FD_64 => body.first().map(|channel| u16::from(*channel)),
        _ => short(body, 0),
    };
    let (Some(unit), Some(time), Some(channel)) = (unit, time, channel) else {
        return Err(BlfTrouble::Size);
    };
    if head.body < OBJECT_HEAD {
        return Err(BlfTrouble::Size);
    }
    let time = match unit {
        TEN_MICROS => time.checked_mul(10_000).ok_or(BlfTrouble::TimeTooLarge)?,
        NANOS => time,
        other => return Err(BlfTrouble::Unit(other)),
    };
    match channel {
        0 => Err(BlfTrouble::Channel),
        _ => Ok(Some(LogEntry { time: Nanos(time), channel, report })),
    }
}

fn frame(body: &[u8]) -> Result<CanFrame, BlfTrouble> {
    let (Some(&[flags, code]), Some(id), Some(data)) =
        (body.get(2..4).and_then(|both| both.first_chunk()), word(body, 4), body.get(8..16))
    else {
        return Err(BlfTrouble::Size);
    };
    classic(identifier(id)?, flags & REMOTE != 0, code, data)
}

fn identifier(id: u32) -> Result<Id, BlfTrouble> {
    let id = match id & EXTENDED {
        0 => standard(id),
        _ => extended(id & !EXTENDED),
    };
    id.map_err(|_| BlfTrouble::Identifier)
}

fn classic(id: Id, remote: bool, code: u8, data: &[u8]) -> Result<CanFrame, BlfTrouble> {
    let wrong = |_| BlfTrouble::Code(code);
    if remote {
        return CanFrame::remote(id, code.into()).map_err(wrong);
    }
    let data = data.get(..BYTES_MAX.min(code.into())).ok_or(BlfTrouble::Size)?;
    let frame = CanFrame::data(id, data).map_err(wrong)?;
    if usize::from(code) > BYTES_MAX { frame.with_code(code).map_err(wrong) } else { Ok(frame) }
}

/// Returns a frame of CAN FD of which `bytes` bytes are valid.
fn flexible(id: Id, code: u8, bytes: u8, data: &[u8]) -> Result<FdFrame, BlfTrouble> {
    let (length, _) = LENGTHS.get(usize::from(code)).ok_or(BlfTrouble::Code(code))?;
    if *length != u32::from(bytes) {
        return Err(BlfTrouble::Length { code, bytes });
    }
    let data = data.get(..bytes.into()).ok_or(BlfTrouble::Size)?;
    FdFrame::new(id, data).map_err(|_| BlfTrouble::Length { code, bytes })
}

/// Returns the frame of the older object for CAN FD.
fn fd_frame(body: &[u8]) -> Result<AnyFrame, BlfTrouble> {
    let (Some(&[flags, code]), Some(id), Some(&[fd, bytes])) = (
        body.get(2..4).and_then(|both| both.first_chunk()),
        word(body, 4),
        body.get(13..15).and_then(|both| both.first_chunk()),
    ) else {
        return Err(BlfTrouble::Size);
    };
    let (id, data) = (identifier(id)?, body.get(20..FD_BODY).ok_or(BlfTrouble::Size)?);
    if fd & FD_FLAG == 0 {
        return classic(id, flags & REMOTE != 0, code, data).map(AnyFrame::Classic);
    }
    let frame = flexible(id, code, bytes, data)?;
    Ok(frame.with_fast(fd & FAST_FLAG != 0).with_passive(fd & PASSIVE_FLAG != 0).into())
}

/// Returns the frame of the newer object for CAN FD.
fn fd_64_frame(body: &[u8]) -> Result<AnyFrame, BlfTrouble> {
    let (Some(&[_, code, bytes]), Some(id), Some(flags), Some(data)) =
        (body.first_chunk(), word(body, 4), word(body, 12), body.get(40..))
    else {
        return Err(BlfTrouble::Size);
    };
    let id = identifier(id)?;
    if flags & flag::FD == 0 {
        return classic(id, flags & flag::REMOTE != 0, code, data).map(AnyFrame::Classic);
    }
    let frame = flexible(id, code, bytes, data)?;
    let (fast, passive) = (flags & flag::FAST != 0, flags & flag::PASSIVE != 0);
    Ok(frame.with_fast(fast).with_passive(passive).into())
}

/// The writer of one file. Its containers follow each other behind a header that is complete at the
/// end only.
#[derive(Clone, Debug, Default)]
pub struct BlfWriter {
    contents: Vec<u8>,
    objects: u32,
    /// Bytes of the file's containers, and of their contents with heads.
    written: u64,
    plain: u64,
}

impl BlfWriter {
    /// Adds an entry. Returns a container for the file, if one is full.
    #[must_use]
    pub fn put(&mut self, entry: &LogEntry) -> Option<Vec<u8>> {
        let (kind, body) = match &entry.report {
            LineContent::Frame(AnyFrame::Classic(frame)) => {
                (MESSAGE, message(entry.channel, frame).to_vec())
            }
            LineContent::Frame(AnyFrame::Fd(frame)) => (FD, fd_message(entry.channel, frame)),
            LineContent::Error { .. } => {
                let mut body = Vec::from([0; 32]);
                body[..2].copy_from_slice(&entry.channel.to_le_bytes());
                (ERROR_EXT, body)
            }
        };
        let mut object = Vec::new();
        object.extend_from_slice(OBJECT);
        object.extend_from_slice(&(OBJECT_HEAD as u16).to_le_bytes());
        object.extend_from_slice(&1u16.to_le_bytes());
        object.extend_from_slice(&((OBJECT_HEAD + body.len()) as u32).to_le_bytes());
        object.extend_from_slice(&kind.to_le_bytes());
        object.extend_from_slice(&NANOS.to_le_bytes());
        object.extend_from_slice(&[0; 4]);
        object.extend_from_slice(&entry.time.0.to_le_bytes());
        object.extend_from_slice(&body);
        self.contents.extend_from_slice(&object);
        self.objects = self.objects.saturating_add(1);
        (self.contents.len() >= CONTENT).then(|| self.container())
    }

    /// Returns the last container, if anything is left for it, and the final header.
    #[must_use]
    pub fn finish(&mut self) -> (Option<Vec<u8>>, [u8; HEADER_BYTES]) {
        let last = (!self.contents.is_empty()).then(|| self.container());
        (last, self.header())
    }

    fn container(&mut self) -> Vec<u8> {
        let plain = core::mem::take(&mut self.contents);
        let packed = compress_to_vec_zlib(&plain, LEVEL);
        let size = CONTAINER_HEAD + packed.len();
        let mut container = Vec::with_capacity(size + PADDING);
        container.extend_from_slice(OBJECT);
        container.extend_from_slice(&(BASE as u16).to_le_bytes());
        container.extend_from_slice(&1u16.to_le_bytes());
        container.extend_from_slice(&(size as u32).to_le_bytes());
        container.extend_from_slice(&CONTAINER.to_le_bytes());
        container.extend_from_slice(&ZLIB.to_le_bytes());
        container.extend_from_slice(&[0; 6]);
        container.extend_from_slice(&(plain.len() as u32).to_le_bytes());
        container.extend_from_slice(&[0; 4]);
        container.extend(packed);
        container.resize(size + size % 4, 0);
        self.written += container.len() as u64;
        self.plain += (CONTAINER_HEAD + plain.len()) as u64;
        container
    }

    /// Returns the header of a file with what was written so far. Its dates are left out.
    #[must_use]
    pub fn header(&self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[..4].copy_from_slice(MAGIC);
        header[4..8].copy_from_slice(&(HEADER_BYTES as u32).to_le_bytes());
        // The version of the format.
        header[12..16].copy_from_slice(&[2, 6, 8, 1]);
        let head = HEADER_BYTES as u64;
        header[16..24].copy_from_slice(&(head + self.written).to_le_bytes());
        header[24..32].copy_from_slice(&(head + self.plain).to_le_bytes());
        header[32..36].copy_from_slice(&self.objects.to_le_bytes());
        header
    }
}

/// Returns the body of an object for a frame.
fn message(channel: u16, frame: &CanFrame) -> [u8; 16] {
    let mut body = [0; 16];
    body[..2].copy_from_slice(&channel.to_le_bytes());
    body[2] = if frame.is_remote() { REMOTE } else { 0 };
    body[3] = frame.code();
    let id = frame.raw_id() & ID | if frame.is_extended() { EXTENDED } else { 0 };
    body[4..8].copy_from_slice(&id.to_le_bytes());
    let data = frame.bytes();
    body[8..8 + data.len()].copy_from_slice(data);
    body
}

/// Returns the body of an object for a frame of CAN FD.
fn fd_message(channel: u16, frame: &FdFrame) -> Vec<u8> {
    let any = AnyFrame::from(*frame);
    let id = any.raw_id() | if any.is_extended() { EXTENDED } else { 0 };
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let fast = flag(frame.is_fast(), FAST_FLAG) | flag(frame.is_passive(), PASSIVE_FLAG);
    let mut body = Vec::from(channel.to_le_bytes());
    body.extend_from_slice(&[0, frame.code()]);
    body.extend_from_slice(&id.to_le_bytes());
    body.extend_from_slice(&[0, 0, 0, 0, 0, FD_FLAG | fast, frame.bytes().len() as u8]);
    body.resize(20, 0);
    body.extend_from_slice(frame.bytes());
    body.resize(FD_BODY, 0);
    body
}
