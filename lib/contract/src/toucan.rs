//! CAN controllers with message buffers: names and layouts that the driver `cand`, programs that
//! send messages, and descriptions share. A process of `cand` drives one controller.

use diapason_abi::{Key, Nanos, PAGE};
use diapason_state::plain;

/// The program that drives a controller.
pub const PROGRAM: &str = "cand";
/// The class of its device.
pub const CLASS: u32 = 0x0c_0900;
/// The clock of a controller.
pub const CLOCK_HZ: u32 = 16_000_000;
/// Controllers of a host.
pub const CONTROLLERS: usize = 2;
/// Most processes that send on one controller.
pub const SENDERS: usize = 4;
/// Most messages that a host sends on one controller.
pub const MESSAGES: usize = 19;
/// Buffers that send: the two others hear frames that were overwritten on the wire.
pub const SENDING: usize = 14;
/// Buffers that messages without one of their own share, if there are any.
pub const SHARED: usize = 3;
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

/// The driver looks at the controller so often at least: its timer counts 65,536 bits and begins
/// anew, and the driver has to read when a frame began before that. A sender rests so long after a
/// message that it does not have.
pub const LOOK: Nanos = Nanos::from_millis(20);

/// The work of the driver each time it looks at the controller.
pub const SERVE: &str = "cand.serve";
/// The work of the driver to find the next message, or that there is none.
pub const FIND: &str = "cand.find";
/// The work of the driver for each message that it takes.
pub const TAKE: &str = "cand.message";

/// The setting of `cand` with its controller: the words of [`ControllerTerms`].
pub const CONTROLLER_SETTING: &str = "controller";
/// The setting with messages, of `cand` and of programs: the words of [`MessageTerms`].
pub const MESSAGES_SETTING: &str = "messages";

/// The settings of `cand` for its controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControllerTerms {
    /// The number of the controller on its host.
    pub number: u8,
    /// The bit rate of its bus.
    pub rate: u32,
    /// How many of the most urgent messages have a buffer of their own.
    pub own: u8,
}

impl ControllerTerms {
    /// Returns the numbers of the setting.
    #[must_use]
    pub const fn words(&self) -> [u64; 3] {
        [self.number as u64, self.rate as u64, self.own as u64]
    }

    /// Reads the numbers of the setting.
    #[must_use]
    pub fn of(words: &[u64]) -> Option<ControllerTerms> {
        let [number, rate, own] = *words else { return None };
        let (number, own) = (u8::try_from(number).ok()?, u8::try_from(own).ok()?);
        Some(ControllerTerms { number, rate: u32::try_from(rate).ok()?, own })
    }
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
    /// The number of its program among the senders of the controller.
    pub sender: u8,
    /// Most bytes of data.
    pub bytes: u8,
    /// Its identifier, and whether it is an extended one.
    pub id: (u32, bool),
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

impl MessageTerms {
    /// Returns the numbers of the setting.
    #[must_use]
    pub const fn words(&self) -> [u64; WORDS] {
        let (id, extended) = self.id;
        let [low, high] = self.number.to_le_bytes();
        let small = [self.controller, self.stream, self.sender, self.bytes, low, high, 0, 0];
        let id = id as u64 | if extended { EXTENDED } else { 0 };
        let small = u64::from_le_bytes(small);
        [self.name.0, small, id, self.period_ns, self.deadline_ns, self.jitter_ns]
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
                id: (*id as u32, id & EXTENDED != 0),
                period_ns: *period_ns,
                deadline_ns: *deadline_ns,
                jitter_ns: *jitter_ns,
            }
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
            id: (0x1fff_ffff, true),
            period_ns: 3,
            deadline_ns: u64::MAX,
            jitter_ns: 7,
        };
        let plain = MessageTerms { id: (0x7ff, false), ..terms };
        let words: alloc::vec::Vec<u64> = [terms, plain].iter().flat_map(|it| it.words()).collect();
        assert!(MessageTerms::all(&words).eq([terms, plain]));
        let controller = ControllerTerms { number: 1, rate: 1_000_000, own: 11 };
        assert_eq!(ControllerTerms::of(&controller.words()), Some(controller));
    }
}
