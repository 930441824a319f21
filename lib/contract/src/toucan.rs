//! CAN controllers with message buffers: names and layouts that the driver `cand`, programs that
//! send or read messages, and descriptions share. A process of `cand` drives one controller.

use diapason_abi::{Key, Nanos, PAGE};
use diapason_state::plain;

/// The program that drives a controller.
pub const PROGRAM: &str = "cand";
/// Bytes of the stack of each thread of `cand`.
pub const STACK: u64 = 64 << 10;
/// The class of its device.
pub const CLASS: u32 = 0x0c_0900;
/// The clock of a controller.
pub const CLOCK_HZ: u32 = 16_000_000;
/// Controllers of a host.
pub const CONTROLLERS: usize = 2;
/// Most processes that send on one controller.
pub const SENDERS: usize = 4;
/// Most processes that read messages of other nodes from one controller.
pub const READERS: usize = 4;
/// The number of the driver in the place of a sender: it sends the frames of the time.
pub const DRIVER: u8 = u8::MAX;
/// Most messages that a host sends on one controller.
pub const MESSAGES: usize = 19;
/// Buffers that send: the two others hear frames that were overwritten on the wire.
pub const SENDING: usize = 14;
/// Buffers that messages without one of their own share, if there are any.
pub const SHARED: usize = 3;
/// Buffers that send under MTS: one more hears the frames of the time.
pub const SENDING_ON_TIME: usize = 13;
/// Buffers that hear a message of another node each, if no message of this host has one of its own.
pub const HEARING: usize = SENDING - SHARED;
/// Shared buffers that are still full when the controller asks for more.
pub const SPARE: usize = 2;

/// Names of what belongs to a controller.
#[derive(Clone, Copy, Debug)]
pub struct ControllerNames {
    pub device: &'static str,
    /// The semaphore that programs give when they have a message to send.
    pub send: &'static str,
    /// The segments of messages, by sender.
    pub out: [&'static str; SENDERS],
    /// The segments of messages of other nodes, by reader, and the semaphores that the driver
    /// gives when it has put one there.
    pub heard: [&'static str; READERS],
    pub tell: [&'static str; READERS],
}

macro_rules! controller {
    ($name:literal) => {
        ControllerNames {
            device: $name,
            send: concat!($name, ".send"),
            out: [
                concat!($name, ".out0"),
                concat!($name, ".out1"),
                concat!($name, ".out2"),
                concat!($name, ".out3"),
            ],
            heard: [
                concat!($name, ".in0"),
                concat!($name, ".in1"),
                concat!($name, ".in2"),
                concat!($name, ".in3"),
            ],
            tell: [
                concat!($name, ".tell0"),
                concat!($name, ".tell1"),
                concat!($name, ".tell2"),
                concat!($name, ".tell3"),
            ],
        }
    };
}

/// Returns whether a controller has this bit rate: exactly, with 8 to 25 quanta in a bit.
#[must_use]
pub const fn has_rate(rate: u64) -> bool {
    let mut quanta = 8;
    while quanta <= 25 {
        let cycles = rate * quanta;
        let clock = CLOCK_HZ as u64;
        if cycles > 0 && clock.is_multiple_of(cycles) && clock / cycles <= 256 {
            return true;
        }
        quanta += 1;
    }
    false
}

/// The names of each controller.
pub const CONTROLLER_NAMES: [ControllerNames; CONTROLLERS] =
    [controller!("toucan0"), controller!("toucan1")];

/// Messages of a sender that wait for the driver. It takes all that are there at once.
pub const OUT_MESSAGES: usize = 32;
/// Bytes of the segment of a sender's messages.
pub const OUT_BYTES: u64 =
    (128 + OUT_MESSAGES * (16 + size_of::<OutMessage>())).next_multiple_of(PAGE) as u64;

plain! {
    /// A message to send.
    pub struct OutMessage {
        /// When its program had it, in ns.
        pub made_ns: u64,
        pub data: [u8; 8],
        /// The stream of the driver that it belongs to.
        pub stream: u32,
        /// How many bytes of `data` belong to it.
        pub length: u32,
    }
}

/// Messages that wait for a reader.
pub const IN_MESSAGES: usize = 32;
/// Bytes of the segment of a reader's messages.
pub const IN_BYTES: u64 =
    (128 + IN_MESSAGES * (16 + size_of::<InMessage>())).next_multiple_of(PAGE) as u64;

plain! {
    /// A message of another node.
    pub struct InMessage {
        /// When its frame ended, in ns: at most [`STAMP_BITS`] and [`READ`] too early, and of an
        /// extended frame [`HALF_STAMP_BITS`] more.
        pub ended_ns: u64,
        pub data: [u8; 8],
        /// Its place among the messages that the controller hears.
        pub place: u32,
        /// How many bytes of `data` belong to it.
        pub length: u32,
    }
}

/// The driver looks at the controller so often at least: its timer counts 65,536 bits and begins
/// anew, and the driver has to read when a frame began before that. A sender rests so long after a
/// message that it does not have.
pub const LOOK: Nanos = Nanos::from_millis(20);

/// Bits by which the end of a frame is uncertain that a controller stamped: the timer counts whole
/// bits, and so does the stamp of the frame; a frame ends one bit later for its sender.
pub const STAMP_BITS: u64 = 3;

/// Bits of a stamp that a controller does not keep of an extended frame.
pub const HALF_STAMP_BITS: u64 = 255;

/// The clocks of this host and of a node that sends drift apart by no more, in parts per million.
pub const DRIFT_PPM: u64 = 1_000;

/// The driver reads the timer of the controller and its clock within this time. It drops a reading
/// that took longer.
pub const READ: Nanos = Nanos::from_micros(5);

/// The work of the driver each time it looks at the controller.
pub const SERVE: &str = "cand.serve";
/// The work of the driver to find the next message, or that there is none.
pub const FIND: &str = "cand.find";
/// The work of the driver for each message that it takes.
pub const TAKE: &str = "cand.message";
/// The work of the driver for each message of another node that it brings to its reader.
pub const HEAR: &str = "cand.hear";
/// The work of the driver to renew the identifiers of all messages that wait, under MTS.
pub const RENEW: &str = "cand.renew";

/// The setting of `cand` with its controller: the words of [`ControllerTerms`].
pub const CONTROLLER_SETTING: &str = "controller";
/// The setting with messages, of `cand` and of programs: the words of [`MessageTerms`].
pub const MESSAGES_SETTING: &str = "messages";

/// The setting with messages of other nodes, of `cand` and of the programs that read them: the
/// words of [`HeardTerms`].
pub const HEARD_SETTING: &str = "heard";

/// The setting of `cand` under MTS: the words of [`MtsTerms`].
pub const MTS_SETTING: &str = "mts";

/// The settings of `cand` for its controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControllerTerms {
    /// The number of the controller on its host.
    pub number: u8,
    /// The bit rate of its bus.
    pub rate: u32,
    /// How many of the most urgent messages have a buffer of their own.
    pub own: u8,
    /// How many frames may be destroyed at once, and the time for each further one, in ns.
    pub errors: (u64, u64),
}

impl ControllerTerms {
    /// Returns the numbers of the setting.
    #[must_use]
    pub const fn words(&self) -> [u64; 5] {
        let (burst, interval) = self.errors;
        [self.number as u64, self.rate as u64, self.own as u64, burst, interval]
    }

    /// Reads the numbers of the setting.
    #[must_use]
    pub fn of(words: &[u64]) -> Option<ControllerTerms> {
        let [number, rate, own, burst, interval] = *words else { return None };
        let (number, own) = (u8::try_from(number).ok()?, u8::try_from(own).ok()?);
        let errors = (burst, interval);
        Some(ControllerTerms { number, rate: u32::try_from(rate).ok()?, own, errors })
    }
}

/// The settings of `cand` on a bus under MTS: its epochs, its common time, and how soon its nodes
/// renew identifiers by their clocks. All times are in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MtsTerms {
    /// An epoch is about as long, and identifiers reach so far beyond it.
    pub epoch_ns: u64,
    pub reach_ns: u64,
    /// No clock is further from the common time.
    pub clocks_ns: u64,
    /// A node renews within this time.
    pub renewal_ns: u64,
    /// The identifier of the frame of the time, which is a standard one.
    pub time_id: u32,
    /// The frames of the time are so far apart, and so late at most.
    pub interval_ns: u64,
    pub late_ns: u64,
    /// Longest time from the end of such a frame until a node has read its clock.
    pub read_ns: u64,
    /// The step of the clocks.
    pub step_ns: u64,
    pub drift_ppm: u32,
    /// A node keeps the time although it loses so many frames in a row.
    pub losses: u32,
}

impl MtsTerms {
    /// Returns the numbers of the setting.
    #[must_use]
    pub const fn words(&self) -> [u64; 11] {
        [
            self.epoch_ns,
            self.reach_ns,
            self.clocks_ns,
            self.renewal_ns,
            self.time_id as u64,
            self.interval_ns,
            self.late_ns,
            self.read_ns,
            self.step_ns,
            self.drift_ppm as u64,
            self.losses as u64,
        ]
    }

    /// Reads the numbers of the setting.
    #[must_use]
    pub fn of(words: &[u64]) -> Option<MtsTerms> {
        let [head @ .., read_ns, step_ns, drift, losses] = *<&[u64; 11]>::try_from(words).ok()?;
        let [epoch_ns, reach_ns, clocks_ns, renewal_ns, id, interval_ns, late_ns] = head;
        Some(MtsTerms {
            epoch_ns,
            reach_ns,
            clocks_ns,
            renewal_ns,
            time_id: u32::try_from(id).ok()?,
            interval_ns,
            late_ns,
            read_ns,
            step_ns,
            drift_ppm: u32::try_from(drift).ok()?,
            losses: u32::try_from(losses).ok()?,
        })
    }
}

/// The identifier of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageId {
    /// One that stays, and whether it is an extended one.
    Fixed(u32, bool),
    /// A high-speed message under MTS with this code: the rest of the identifier is its deadline.
    Code(u8),
}

/// A message that a host sends, as its driver and its program know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageTerms {
    /// The key of its name.
    pub name: Key,
    /// The controller that sends it.
    pub controller: u8,
    /// Its number on the controller: the most urgent has 0.
    pub stream: u8,
    /// Its number among all messages of the description.
    pub number: u16,
    /// The number of its program among the senders of the controller, or [`DRIVER`].
    pub sender: u8,
    /// Most bytes of data.
    pub bytes: u8,
    pub id: MessageId,
    /// The shortest time between two, in ns.
    pub period_ns: u64,
    /// The deadline from when its program had it, in ns; 0 if it has none.
    pub deadline_ns: u64,
    /// The longest from then until it is in the queue of the controller, in ns.
    pub jitter_ns: u64,
}

/// Words of a message in the setting.
const WORDS: usize = 6;
const EXTENDED: u64 = 1 << 32;
const CODE: u64 = 1 << 33;

impl MessageId {
    const fn word(self) -> u64 {
        match self {
            MessageId::Fixed(id, true) => id as u64 | EXTENDED,
            MessageId::Fixed(id, false) => id as u64,
            MessageId::Code(code) => code as u64 | CODE,
        }
    }

    const fn of(word: u64) -> MessageId {
        match word & CODE {
            0 => MessageId::Fixed(word as u32, word & EXTENDED != 0),
            _ => MessageId::Code(word as u8),
        }
    }
}

impl MessageTerms {
    /// Returns the numbers of the setting.
    #[must_use]
    pub const fn words(&self) -> [u64; WORDS] {
        let [low, high] = self.number.to_le_bytes();
        let small = [self.controller, self.stream, self.sender, self.bytes, low, high, 0, 0];
        let small = u64::from_le_bytes(small);
        [self.name.0, small, self.id.word(), self.period_ns, self.deadline_ns, self.jitter_ns]
    }

    /// Reads all messages in the numbers of a setting.
    pub fn all(words: &[u64]) -> impl Iterator<Item = MessageTerms> + '_ {
        words.as_chunks().0.iter().map(|one: &[u64; WORDS]| {
            let [name, small, id, period_ns, deadline_ns, jitter_ns] = one;
            let [controller, stream, sender, bytes, low, high, ..] = small.to_le_bytes();
            MessageTerms {
                name: Key(*name),
                controller,
                stream,
                number: u16::from_le_bytes([low, high]),
                sender,
                bytes,
                id: MessageId::of(*id),
                period_ns: *period_ns,
                deadline_ns: *deadline_ns,
                jitter_ns: *jitter_ns,
            }
        })
    }
}

/// A message of another node that a program of this host reads, as the driver and the program know
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeardTerms {
    /// The key of its name.
    pub name: Key,
    /// The controller that hears it.
    pub controller: u8,
    /// Its place among the messages that the controller hears.
    pub place: u8,
    /// Its number among all messages of the description.
    pub number: u16,
    /// The number of its program among the readers of the controller.
    pub reader: u8,
    /// Most bytes of data.
    pub bytes: u8,
    pub id: MessageId,
    /// The shortest time between two, in ns.
    pub period_ns: u64,
    /// How much later than that a frame may be through, in ns.
    pub jitter_ns: u64,
}

/// Words of such a message in the setting.
const HEARD_WORDS: usize = 5;

impl HeardTerms {
    /// Returns the numbers of the setting.
    #[must_use]
    pub const fn words(&self) -> [u64; HEARD_WORDS] {
        let [low, high] = self.number.to_le_bytes();
        let small = [self.controller, self.place, self.reader, self.bytes, low, high, 0, 0];
        let small = u64::from_le_bytes(small);
        [self.name.0, small, self.id.word(), self.period_ns, self.jitter_ns]
    }

    /// Reads all messages in the numbers of a setting.
    pub fn all(words: &[u64]) -> impl Iterator<Item = HeardTerms> + '_ {
        words.as_chunks().0.iter().map(|one: &[u64; HEARD_WORDS]| {
            let [name, small, id, period_ns, jitter_ns] = *one;
            let [controller, place, reader, bytes, low, high, ..] = small.to_le_bytes();
            let (name, id) = (Key(name), MessageId::of(id));
            let number = u16::from_le_bytes([low, high]);
            HeardTerms { name, controller, place, number, reader, bytes, id, period_ns, jitter_ns }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_say_what_was_meant() {
        let terms = MessageTerms {
            name: Key::new("speed"),
            controller: 1,
            stream: 21,
            number: 0x1234,
            sender: 3,
            bytes: 8,
            id: MessageId::Fixed(0x1fff_ffff, true),
            period_ns: 3,
            deadline_ns: u64::MAX,
            jitter_ns: 7,
        };
        let plain = MessageTerms { id: MessageId::Fixed(0x7ff, false), ..terms };
        let speedy = MessageTerms { id: MessageId::Code(31), ..terms };
        let all = [terms, plain, speedy];
        let words: alloc::vec::Vec<u64> = all.iter().flat_map(|it| it.words()).collect();
        assert!(MessageTerms::all(&words).eq(all));
        let heard = HeardTerms {
            name: Key::new("pedal"),
            controller: 1,
            place: 10,
            number: 0x4321,
            reader: 2,
            bytes: 7,
            id: MessageId::Code(17),
            period_ns: 5,
            jitter_ns: u64::MAX,
        };
        let other = HeardTerms { id: MessageId::Fixed(0x1fff_ffff, true), ..heard };
        let all = [heard, other];
        let words: alloc::vec::Vec<u64> = all.iter().flat_map(|it| it.words()).collect();
        assert!(HeardTerms::all(&words).eq(all));
        let errors = (2, 50_000_000);
        let controller = ControllerTerms { number: 1, rate: 1_000_000, own: 11, errors };
        assert_eq!(ControllerTerms::of(&controller.words()), Some(controller));
        let mts = MtsTerms {
            epoch_ns: 1,
            reach_ns: 2,
            clocks_ns: 3,
            renewal_ns: 4,
            time_id: 5,
            interval_ns: 6,
            late_ns: 7,
            read_ns: 8,
            step_ns: 9,
            drift_ppm: 10,
            losses: 11,
        };
        assert_eq!(MtsTerms::of(&mts.words()), Some(mts));
        assert_eq!(MtsTerms::of(&mts.words()[1..]), None);
    }
}
