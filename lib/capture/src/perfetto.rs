//! Traces in the format of Perfetto: protobuf packets, compressed in batches.
//!
//! A trace has tracks in groups. A track has slices, which have a beginning and an end, and
//! instants. A counter has values. Arrows lead from one event to another that names the same arrow.
//! Names are written once, and events refer to them by number.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use diapason_abi::Nanos;
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

/// Bytes of packets that are compressed together.
const BATCH: usize = 1 << 20;
/// How hard the compressor tries.
const LEVEL: u8 = 6;
/// All packets are of one sequence.
const SEQUENCE: u64 = 1;

/// Numbers of fields in Perfetto's messages.
mod field {
    pub const TRACE_PACKET: u32 = 1;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const COMPRESSED_PACKETS: u32 = 50;
    pub const TRACK_DESCRIPTOR: u32 = 60;

    pub const TRACK_UUID: u32 = 1;
    pub const TRACK_NAME: u32 = 2;
    pub const TRACK_PROCESS: u32 = 3;
    pub const TRACK_PARENT: u32 = 5;
    pub const TRACK_COUNTER: u32 = 8;
    pub const PROCESS_PID: u32 = 1;
    pub const PROCESS_NAME: u32 = 6;
    pub const COUNTER_UNIT_NAME: u32 = 6;

    pub const EVENT_ANNOTATION: u32 = 4;
    pub const EVENT_TYPE: u32 = 9;
    pub const EVENT_NAME_NUMBER: u32 = 10;
    pub const EVENT_TRACK: u32 = 11;
    pub const EVENT_NAME: u32 = 23;
    pub const EVENT_VALUE: u32 = 30;
    pub const EVENT_ARROW: u32 = 47;
    pub const EVENT_ARROW_END: u32 = 48;

    pub const ANNOTATION_NUMBER: u32 = 3;
    pub const ANNOTATION_TEXT: u32 = 6;
    pub const ANNOTATION_NAME: u32 = 10;
    pub const INTERNED_NAME: u32 = 2;
    pub const NAME_NUMBER: u32 = 1;
    pub const NAME_TEXT: u32 = 2;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum EventKind {
    Begin = 1,
    End = 2,
    Instant = 3,
    Counter = 4,
}

/// Flags of a packet: it begins a sequence anew, or it refers to names that were written before.
const CLEARED: u64 = 1;
const REFERS: u64 = 2;

/// A fact about an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceNote<'a> {
    Number(&'a str, u64),
    Text(&'a str, &'a str),
}

/// The end of an arrow at an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrow {
    None,
    /// The arrow with this number begins here, or passes.
    From(u64),
    /// The arrow with this number ends here.
    To(u64),
}

/// Something that happened on a track.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceEvent<'a> {
    pub track: u64,
    pub name: &'a str,
    pub notes: &'a [TraceNote<'a>],
    pub arrow: Arrow,
}

impl<'a> TraceEvent<'a> {
    /// Returns an event without notes and arrows.
    #[must_use]
    pub const fn new(track: u64, name: &'a str) -> TraceEvent<'a> {
        TraceEvent { track, name, notes: &[], arrow: Arrow::None }
    }
}

/// A protobuf message that grows.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u32, value: u64) -> &mut Message {
        self.varint(u64::from(field) << 3);
        self.varint(value);
        self
    }

    fn fixed(&mut self, field: u32, value: u64) -> &mut Message {
        self.varint(u64::from(field) << 3 | 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    fn bytes(&mut self, field: u32, value: &[u8]) -> &mut Message {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    fn text(&mut self, field: u32, value: &str) -> &mut Message {
        self.bytes(field, value.as_bytes())
    }
}

/// Writes a trace. Its bytes are taken from time to time.
#[derive(Default)]
pub struct PerfettoTrace {
    packets: Message,
    /// The numbers of names, from 1.
    names: BTreeMap<String, u64>,
    is_begun: bool,
}

impl PerfettoTrace {
    /// Adds a group of tracks. Groups are numbered apart from each other, and their tracks too.
    pub fn group(&mut self, uuid: u64, number: u32, name: &str) {
        let mut process = Message::default();
        process.number(field::PROCESS_PID, number.into()).text(field::PROCESS_NAME, name);
        let mut track = Message::default();
        track.number(field::TRACK_UUID, uuid).bytes(field::TRACK_PROCESS, &process.0);
        self.describe(&track);
    }

    /// Adds a track to a group.
    pub fn track(&mut self, uuid: u64, group: u64, name: &str) {
        let mut track = Message::default();
        track.number(field::TRACK_UUID, uuid).number(field::TRACK_PARENT, group);
        self.describe(track.text(field::TRACK_NAME, name));
    }

    /// Adds a counter to a group, with the unit of its values.
    pub fn counter(&mut self, uuid: u64, group: u64, name: &str, unit: &str) {
        let mut counter = Message::default();
        counter.text(field::COUNTER_UNIT_NAME, unit);
        let mut track = Message::default();
        track.number(field::TRACK_UUID, uuid).number(field::TRACK_PARENT, group);
        track.text(field::TRACK_NAME, name).bytes(field::TRACK_COUNTER, &counter.0);
        self.describe(&track);
    }

    /// Adds a slice. Slices of a track may contain each other, and must not overlap otherwise.
    pub fn slice(&mut self, event: &TraceEvent<'_>, from: Nanos, to: Nanos) {
        self.named(EventKind::Begin, event, from);
        let mut end = Message::default();
        end.number(field::EVENT_TYPE, EventKind::End as u64);
        end.number(field::EVENT_TRACK, event.track);
        self.at(to, &end);
    }

    /// Adds an event without length.
    pub fn instant(&mut self, event: &TraceEvent<'_>, at: Nanos) {
        self.named(EventKind::Instant, event, at);
    }

    /// Adds a line of text on a track: an event whose name occurs once.
    pub fn line(&mut self, track: u64, text: &str, at: Nanos) {
        let mut event = Message::default();
        event.number(field::EVENT_TYPE, EventKind::Instant as u64);
        event.number(field::EVENT_TRACK, track).text(field::EVENT_NAME, text);
        self.at(at, &event);
    }

    /// Gives a counter another value.
    pub fn value(&mut self, counter: u64, at: Nanos, value: u64) {
        let mut event = Message::default();
        event.number(field::EVENT_TYPE, EventKind::Counter as u64);
        event.number(field::EVENT_TRACK, counter).number(field::EVENT_VALUE, value);
        self.at(at, &event);
    }

    /// Returns the bytes of a full batch, or nothing if there is none.
    #[must_use]
    pub fn take_full(&mut self) -> Vec<u8> {
        if self.packets.0.len() < BATCH { Vec::new() } else { self.take() }
    }

    /// Returns the bytes of everything that was added since the last batch.
    #[must_use]
    pub fn take(&mut self) -> Vec<u8> {
        let packets = core::mem::take(&mut self.packets);
        let mut packet = Message::default();
        packet.bytes(field::COMPRESSED_PACKETS, &compress_to_vec_zlib(&packets.0, LEVEL));
        let mut trace = Message::default();
        trace.bytes(field::TRACE_PACKET, &packet.0);
        trace.0
    }

    fn named(&mut self, kind: EventKind, event: &TraceEvent<'_>, at: Nanos) {
        let name = self.number_of(event.name);
        let mut message = Message::default();
        message.number(field::EVENT_TYPE, kind as u64).number(field::EVENT_TRACK, event.track);
        message.number(field::EVENT_NAME_NUMBER, name);
        for note in event.notes {
            let mut annotation = Message::default();
            match *note {
                TraceNote::Number(name, value) => annotation
                    .number(field::ANNOTATION_NUMBER, value)
                    .text(field::ANNOTATION_NAME, name),
                TraceNote::Text(name, value) => annotation
                    .text(field::ANNOTATION_TEXT, value)
                    .text(field::ANNOTATION_NAME, name),
            };
            message.bytes(field::EVENT_ANNOTATION, &annotation.0);
        }
        match event.arrow {
            Arrow::None => &mut message,
            Arrow::From(number) => message.fixed(field::EVENT_ARROW, number),
            Arrow::To(number) => message.fixed(field::EVENT_ARROW_END, number),
        };
        self.at(at, &message);
    }

    /// Returns the number of a name, which is written before it is referred to.
    fn number_of(&mut self, name: &str) -> u64 {
        if let Some(number) = self.names.get(name) {
            return *number;
        }
        let number = self.names.len() as u64 + 1;
        self.names.insert(name.into(), number);
        let mut entry = Message::default();
        entry.number(field::NAME_NUMBER, number).text(field::NAME_TEXT, name);
        let mut interned = Message::default();
        interned.bytes(field::INTERNED_NAME, &entry.0);
        let mut packet = self.packet();
        packet.bytes(field::INTERNED_DATA, &interned.0);
        self.put(&packet);
        number
    }

    fn describe(&mut self, track: &Message) {
        let mut packet = self.packet();
        packet.bytes(field::TRACK_DESCRIPTOR, &track.0);
        self.put(&packet);
    }

    fn at(&mut self, at: Nanos, event: &Message) {
        let mut packet = self.packet();
        packet.number(field::TIMESTAMP, at.0).bytes(field::TRACK_EVENT, &event.0);
        self.put(&packet);
    }

    fn packet(&mut self) -> Message {
        let flags = if core::mem::replace(&mut self.is_begun, true) { REFERS } else { CLEARED };
        let mut packet = Message::default();
        packet.number(field::SEQUENCE, SEQUENCE).number(field::SEQUENCE_FLAGS, flags);
        packet
    }

    fn put(&mut self, packet: &Message) {
        self.packets.bytes(field::TRACE_PACKET, &packet.0);
    }
}

/// A field of a protobuf message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WireField<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Returns the fields of a protobuf message with their numbers, or `None` if it is none.
#[must_use]
pub fn fields(mut bytes: &[u8]) -> Option<Vec<(u32, WireField<'_>)>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let value = match tag & 7 {
            0 => WireField::Number(varint(&mut bytes)?),
            1 => {
                let (word, rest) = bytes.split_first_chunk()?;
                bytes = rest;
                WireField::Number(u64::from_le_bytes(*word))
            }
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                let (value, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                WireField::Bytes(value)
            }
            _ => return None,
        };
        all.push((u32::try_from(tag >> 3).ok()?, value));
    }
    Some(all)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Returns the packets of a trace with its batches unpacked, each at most `limit` bytes long; or
/// `None` if it is no trace.
#[must_use]
pub fn unpacked(trace: &[u8], limit: usize) -> Option<Vec<Vec<u8>>> {
    let mut packets = Vec::new();
    for (_, packet) in fields(trace)? {
        let WireField::Bytes(packet) = packet else { return None };
        let batch = fields(packet)?.into_iter().find(|it| it.0 == field::COMPRESSED_PACKETS);
        let Some((_, WireField::Bytes(batch))) = batch else {
            packets.push(packet.to_vec());
            continue;
        };
        let plain = decompress_to_vec_zlib_with_limit(batch, limit).ok()?;
        for (_, inner) in fields(&plain)? {
            let WireField::Bytes(inner) = inner else { return None };
            packets.push(inner.to_vec());
        }
    }
    Some(packets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use diapason_random::Random;

    const LIMIT: usize = 1 << 22;

    fn within(message: &[u8], number: u32) -> Option<Vec<u8>> {
        match fields(message)?.into_iter().find(|field| field.0 == number)?.1 {
            WireField::Bytes(bytes) => Some(bytes.to_vec()),
            WireField::Number(_) => None,
        }
    }

    fn flags(packet: &[u8]) -> WireField<'_> {
        fields(packet).unwrap()[1].1
    }

    #[test]
    fn numbers_are_written_as_the_format_has_them() {
        let mut message = Message::default();
        message.number(1, 150).text(2, "testing").fixed(3, 1);
        // The first two are the examples of the format's description.
        let expected = b"\x08\x96\x01\x12\x07testing\x19\x01\0\0\0\0\0\0\0";
        assert_eq!(message.0, expected);
        assert_eq!(
            fields(expected),
            Some(vec![
                (1, WireField::Number(150)),
                (2, WireField::Bytes(b"testing")),
                (3, WireField::Number(1))
            ])
        );
    }

    #[test]
    fn a_name_is_written_once_and_the_first_packet_begins_the_sequence() {
        let mut trace = PerfettoTrace::default();
        trace.group(1, 7, "threads");
        trace.track(2, 1, "reader");
        let event = TraceEvent { arrow: Arrow::To(9), ..TraceEvent::new(2, "runs") };
        trace.slice(&event, Nanos(10), Nanos(30));
        let mut bytes = trace.take();
        trace.slice(&TraceEvent::new(2, "runs"), Nanos(40), Nanos(50));
        bytes.extend(trace.take());
        let packets = unpacked(&bytes, LIMIT).unwrap();
        let names = packets.iter().filter(|it| within(it, field::INTERNED_DATA).is_some()).count();
        assert_eq!((packets.len(), names), (7, 1));
        assert_eq!(flags(&packets[0]), WireField::Number(CLEARED));
        assert!(packets[1..].iter().all(|it| flags(it) == WireField::Number(REFERS)));
        let begin = within(&packets[3], field::TRACK_EVENT).unwrap();
        let begin = fields(&begin).unwrap();
        assert!(begin.contains(&(field::EVENT_ARROW_END, WireField::Number(9))));
        assert!(begin.contains(&(field::EVENT_NAME_NUMBER, WireField::Number(1))));
    }

    #[test]
    fn a_full_batch_is_taken_by_itself() {
        let mut trace = PerfettoTrace::default();
        assert!(trace.take_full().is_empty());
        let mut written = Vec::new();
        for at in 0..60_000 {
            trace.value(3, Nanos(at), at % 7);
            written.extend(trace.take_full());
        }
        assert!(!written.is_empty());
        written.extend(trace.take());
        assert_eq!(unpacked(&written, LIMIT).map(|packets| packets.len()), Some(60_000));
        assert!(written.len() < 60_000 * 6, "{} bytes", written.len());
    }

    #[test]
    fn bytes_that_are_no_trace_are_refused_without_harm() {
        let mut trace = PerfettoTrace::default();
        trace.line(1, "hello", Nanos(5));
        let good = trace.take();
        let mut random = Random::new(7);
        for _ in 0..20_000 {
            let mut bytes = good.clone();
            for _ in 0..=random.below(3) {
                let at = random.index(bytes.len());
                bytes[at] = random.bits() as u8;
            }
            bytes.truncate(random.index(bytes.len() + 1));
            let _ = unpacked(&bytes, 1 << 16);
        }
        assert_eq!(unpacked(b"\xff", LIMIT), None);
    }
}
