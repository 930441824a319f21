//! The sources of pipes besides CAN interfaces, and the sink: what the driver of each knows of its
//! endpoint.
//!
//! A kind of devices whose messages the server only passes on is one row here. The description, the
//! plan, the server and the reader take names, sizes and limits from the row. Pipes have numbers:
//! those of CAN channels come first, then one for each row.

use crate::can::CHANNELS;
use crate::home::Home;
use crate::kinds::ServiceKind;
use crate::{camera, disk, endpoint, network, sensor, sink};
use diapason_abi::{Nanos, PAGE};

/// The setting of a program with the numbers of the sources whose server is on another core. The
/// server wakes nobody there, so the reader looks for messages itself. It follows from the pipes.
pub const LOOKS: &str = "looks";

/// The setting of a program with the numbers of the sources whose pipes it reads or writes, if they
/// are not those of the first devices of their kinds. It follows from the pipes.
pub const READS: &str = "pipe-sources";

/// A reader on another core sleeps so long when it finds no message.
pub const LOOK: Nanos = Nanos::from_micros(500);

/// The abilities of an endpoint, as its driver says them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndpointAttributes {
    /// Most pipes of it at a time.
    pub max_channels: u32,
    /// Most bits in `min_latency`.
    pub max_tput: u64,
    /// The least time from one message to the next.
    pub min_latency: Nanos,
    /// Messages that the device keeps until they are fetched.
    pub buffer: u64,
    /// Bytes of the smallest and of the largest message.
    pub packet: (usize, usize),
    /// Slots of a pipe's buffer.
    pub slots: usize,
    /// Bytes of a transfer, and how many the driver keeps queued.
    pub transfer: (usize, usize),
}

/// A source of pipes, or the sink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PipeSource {
    /// The service for its devices.
    pub kind: ServiceKind,
    /// The segment of its pipe, and the bytes of that.
    pub pipe: (&'static str, u64),
    /// The semaphore that a reader on the core of the server takes.
    pub ready: &'static str,
    /// How its messages come.
    pub form: MessageForm,
    /// The bottom half that puts its messages into the pipe.
    pub home: &'static Home,
    /// The work, in descriptions, that a reader does for one message.
    pub message: &'static str,
    /// The abilities of its endpoint.
    pub attributes: EndpointAttributes,
}

/// How the messages of a source come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageForm {
    /// Each is one packet, and a record of the pipe.
    Packet,
    /// Each is a picture in pieces. A piece stays where the controller put it until its reader
    /// gives the place back.
    Picture(SharedPlaces),
    /// Each is a run of blocks for which its reader or writer asks, once a period. It stays where
    /// the controller or the writer put it until another one is asked for in its place.
    Blocks(SharedPlaces),
    /// Each is a frame of a network. It stays where the controller put it until its reader gives
    /// the place back.
    Frame(SharedPlaces),
    /// Each is a frame of a network that goes to the device. It stays where its writer put it until
    /// it is answered.
    SentFrame(SharedPlaces),
    /// Each is one packet that goes to the device. Its writer puts it into the pipe with this name
    /// and these bytes, and it is answered when the device has it.
    Written((&'static str, u64)),
}

/// Memory that both ends of a pipe and the controller share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedPlaces {
    /// The segment with what came, and the bytes of that.
    pub data: (&'static str, u64),
    /// The segment by which the reader gives places back or asks, and the bytes of that.
    pub returned: (&'static str, u64),
}

impl MessageForm {
    /// Returns whether the server tells messages as they come, and nobody asks for them.
    #[must_use]
    pub const fn is_told(&self) -> bool {
        matches!(self, MessageForm::Packet | MessageForm::Picture(_) | MessageForm::Frame(_))
    }

    /// Returns whether messages go to the device.
    #[must_use]
    pub const fn is_written(self) -> bool {
        matches!(self, MessageForm::Written(_) | MessageForm::SentFrame(_))
    }

    /// Returns whether messages may go to the device as well as come from it.
    #[must_use]
    pub const fn goes_both_ways(self) -> bool {
        matches!(self, MessageForm::Blocks(_))
    }

    /// Returns the memory in which messages stay, if they do.
    #[must_use]
    pub const fn places(self) -> Option<SharedPlaces> {
        match self {
            MessageForm::Packet | MessageForm::Written(_) => None,
            MessageForm::Picture(places)
            | MessageForm::Blocks(places)
            | MessageForm::Frame(places)
            | MessageForm::SentFrame(places) => Some(places),
        }
    }
}

/// Returns the bytes of a segment with a pipe of so many records of so many bytes.
pub(crate) const fn segment(records: usize, record: usize) -> u64 {
    (128 + records * record).next_multiple_of(PAGE) as u64
}

/// All sources, in the order of their numbers.
pub const SOURCES: [PipeSource; 16] = [
    sensor::SOURCES[0],
    endpoint::SOURCE,
    camera::SOURCES[0],
    disk::SOURCES[0],
    sink::SOURCE,
    camera::SOURCES[1],
    camera::SOURCES[2],
    camera::SOURCES[3],
    network::SOURCE,
    network::SINK,
    sensor::SOURCES[1],
    sensor::SOURCES[2],
    sensor::SOURCES[3],
    disk::SOURCES[1],
    disk::SOURCES[2],
    disk::SOURCES[3],
];

/// Numbers of pipes: one for each CAN channel, and one for each source.
pub const PIPES: usize = CHANNELS + SOURCES.len();

impl PipeSource {
    /// Returns the first source of this kind of devices, if pipes can come from them, and its
    /// number among all pipes.
    #[must_use]
    pub fn of(kind: ServiceKind) -> Option<(usize, &'static PipeSource)> {
        PipeSource::seated(kind, 0)
    }

    /// Returns the source that the device with this seat among those of its kind is, if there can
    /// be so many, and its number among all pipes.
    #[must_use]
    pub fn seated(kind: ServiceKind, seat: usize) -> Option<(usize, &'static PipeSource)> {
        let numbered = (CHANNELS..).zip(&SOURCES);
        numbered.filter(|(_, source)| source.kind == kind).nth(seat)
    }

    /// Returns the seat of its device among those of its kind.
    #[must_use]
    pub fn seat(&self) -> Option<usize> {
        self.kind.homes().iter().position(|home| home.vcpu == self.home.vcpu)
    }

    /// Returns its number among all pipes.
    #[must_use]
    pub fn number(&self) -> usize {
        let place = SOURCES.iter().position(|source| source.pipe.0 == self.pipe.0);
        CHANNELS + place.unwrap_or(SOURCES.len())
    }

    /// Returns whether a bottom half works for its pipe. That of a device with pipes of two
    /// services works for both.
    #[must_use]
    pub fn is_worked_by(&self, home: &Home) -> bool {
        home.ready.contains(&self.ready)
    }

    /// Returns the names of all objects that its pipe brings.
    pub fn objects(&self) -> impl Iterator<Item = &'static str> + use<> {
        let places = self.form.places().map(|places| [places.data.0, places.returned.0]);
        let writes = match self.form {
            MessageForm::Written((name, _)) => Some(name),
            _ => None,
        };
        let own = [self.pipe.0, self.ready].into_iter().chain(places.into_iter().flatten());
        own.chain(writes).chain(self.home.asked)
    }

    /// Returns the source whose pipe has this number.
    #[must_use]
    pub fn numbered(number: usize) -> Option<&'static PipeSource> {
        SOURCES.get(number.checked_sub(CHANNELS)?)
    }
}

/// The setting with the shapes of messages of all sources.
pub const SHAPES: &str = "shapes";

/// Returns how many devices of a kind have a pipe, by the words of the setting [`SHAPES`].
#[must_use]
pub fn piped(kind: ServiceKind, shapes: &[u64]) -> usize {
    let own = SOURCES.iter().zip(shapes).filter(|(source, _)| source.kind == kind);
    own.filter(|(_, word)| **word != 0).count()
}

/// Returns whether a server uses an object of a kind of devices, if these sources have pipes. An
/// object of one direction only is not there if all pipes go the other way.
pub fn is_used(kind: ServiceKind, object: &str, has_pipe: impl Fn(&PipeSource) -> bool) -> bool {
    let has_it = |source: &PipeSource| source.objects().any(|name| name == object);
    let own = || SOURCES.iter().filter(|source| source.kind == kind);
    let is_left = own().any(&has_pipe)
        && own().any(has_it)
        && !own().any(|source| has_pipe(source) && has_it(source));
    !is_left
}

/// The shape of a source's messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MessageShape {
    /// Most bytes of one; 0 if there is no pipe of the source.
    pub bytes: usize,
    /// The offset in each message of the time at which the device made it: eight bytes, the least
    /// first, in ns of its clock.
    pub stamp: Option<usize>,
}

impl MessageShape {
    /// Returns it as a word of the setting.
    #[must_use]
    pub const fn word(self) -> u64 {
        let stamp = match self.stamp {
            Some(offset) => 1 + offset as u64,
            None => 0,
        };
        stamp << 32 | self.bytes as u64
    }

    /// Returns the shape with this word.
    #[must_use]
    pub const fn of(word: u64) -> MessageShape {
        let stamp = match word >> 32 {
            0 => None,
            more => Some(more as usize - 1),
        };
        MessageShape { bytes: word as u32 as usize, stamp }
    }

    /// Returns the device's time in a message, if the message has one.
    #[must_use]
    pub fn time(self, message: &[u8]) -> Option<Nanos> {
        let bytes = message.get(self.stamp?..)?.first_chunk()?;
        Some(Nanos(u64::from_le_bytes(*bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair;

    #[test]
    fn a_source_is_found_by_its_kind_and_by_its_number() {
        for kind in ServiceKind::all() {
            for seat in 0..kind.homes().len() {
                let Some((number, source)) = PipeSource::seated(kind, seat) else { continue };
                assert_eq!((source.kind, PipeSource::numbered(number)), (kind, Some(source)));
                assert_eq!(&kind.homes()[seat], source.home);
                assert!(source.is_worked_by(source.home));
                assert!(kind.segments(seat).contains(&source.pipe.0));
            }
        }
        assert!(endpoint::SOURCE.is_worked_by(&pair::HOME));
        assert!(sink::SOURCE.is_worked_by(&pair::HOME));
        assert!(!sensor::SOURCES[0].is_worked_by(&pair::HOME));
        assert!(PipeSource::seated(ServiceKind::Cameras, 3).is_some());
        assert_eq!(PipeSource::seated(ServiceKind::Cameras, 4), None);
        assert_eq!((PipeSource::numbered(CHANNELS - 1), PipeSource::numbered(PIPES)), (None, None));
    }

    #[test]
    fn devices_with_pipes_are_counted_by_their_shapes() {
        let of = |words: &[u64]| piped(ServiceKind::Cameras, words);
        assert_eq!([of(&[]), of(&[9, 9]), of(&[0, 0, 5]), of(&[0, 0, 5, 9, 9, 5])], [0, 0, 1, 2]);
        assert_eq!(of(&[9; SOURCES.len()]), 4);
    }

    #[test]
    fn objects_of_the_other_direction_are_not_used() {
        let uses = |piped: &[PipeSource]| {
            let all = [network::FROM.data, network::TO.data, network::TO.ready, network::ASKED];
            all.map(|name| is_used(ServiceKind::Networks, name, |source| piped.contains(source)))
        };
        assert_eq!(uses(&[]), [true; 4]);
        assert_eq!(uses(&[network::SOURCE, network::SINK]), [true; 4]);
        assert_eq!(uses(&[network::SOURCE]), [true, false, false, true]);
        assert_eq!(uses(&[network::SINK]), [false, true, true, true]);
        assert_eq!(uses(&[disk::SOURCES[0]]), [true; 4]);
    }

    #[test]
    fn a_shape_survives_its_word_and_finds_the_time_of_whole_messages_only() {
        for stamp in [None, Some(0), Some(16)] {
            let shape = MessageShape { bytes: 512, stamp };
            assert_eq!(MessageShape::of(shape.word()), shape);
        }
        let shape = MessageShape { bytes: 24, stamp: Some(16) };
        let message: [u8; 24] = core::array::from_fn(|at| at as u8);
        assert_eq!(shape.time(&message), Some(Nanos(0x1716_1514_1312_1110)));
        assert_eq!(shape.time(&message[..23]), None);
        assert_eq!(MessageShape { stamp: None, ..shape }.time(&message), None);
    }
}
