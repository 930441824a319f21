//! Lies about descriptors, and the catalogue of those that broke drivers.

use diapason_abi::Nanos;
use diapason_random::Random;
use diapason_usb::setup::descriptor_type as kind;

/// A change of the bytes of a descriptor or of a whole configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DescriptorChange {
    /// The byte at this place is this value.
    Byte(usize, u8),
    /// The byte at `at` of the `nth` part of this type, from 0.
    Field {
        /// Type of the part.
        part: u8,
        nth: usize,
        at: usize,
        value: u8,
    },
    /// The `nth` part of this type is left out; the total length stays.
    Without(u8, usize),
    /// The `nth` part of this type stands there twice.
    Twice(u8, usize),
    /// Cut after so many bytes.
    Cut(usize),
    Instead(Vec<u8>),
    /// This many bytes, anywhere, get any value.
    Noise(u32),
}

impl DescriptorChange {
    /// Makes the change in `bytes`.
    pub fn apply(&self, bytes: &mut Vec<u8>, random: &mut Random) {
        match *self {
            DescriptorChange::Byte(at, value) => put(bytes, at, value),
            DescriptorChange::Field { part, nth, at, value } => {
                if let Some((start, length)) = find(bytes, part, nth)
                    && at < length
                {
                    put(bytes, start + at, value);
                }
            }
            DescriptorChange::Without(part, nth) => {
                if let Some((start, length)) = find(bytes, part, nth) {
                    bytes.drain(start..start + length);
                }
            }
            DescriptorChange::Twice(part, nth) => {
                if let Some((start, length)) = find(bytes, part, nth) {
                    let copy = bytes[start..start + length].to_vec();
                    bytes.splice(start..start, copy);
                }
            }
            DescriptorChange::Cut(length) => bytes.truncate(length),
            DescriptorChange::Instead(ref other) => other.clone_into(bytes),
            DescriptorChange::Noise(count) => {
                for _ in 0..count {
                    let at = random.index(bytes.len());
                    put(bytes, at, random.bits() as u8);
                }
            }
        }
    }
}

fn put(bytes: &mut [u8], at: usize, value: u8) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte = value;
    }
}

/// Place and length of the `nth` part of type `part`.
fn find(bytes: &[u8], part: u8, nth: usize) -> Option<(usize, usize)> {
    let (mut at, mut seen) = (0, 0);
    loop {
        let length = usize::from(*bytes.get(at)?).max(2);
        let found = *bytes.get(at + 1)? == part;
        if found && seen == nth && at + length <= bytes.len() {
            return Some((at, length));
        }
        seen += usize::from(found);
        at += length;
    }
}

/// A false statement of a device, and its occasion.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lie {
    /// About this type of descriptor.
    pub about: u8,
    /// The change of the answer.
    pub change: DescriptorChange,
    /// From this read on, counted from 0: with 1 the first read was the truth.
    pub from_read: u32,
    /// From this reset of the port on.
    pub from_reset: u32,
    pub during: (Nanos, Nanos),
}

impl Lie {
    /// Returns a lie that is always told.
    #[must_use]
    pub const fn new(about: u8, change: DescriptorChange) -> Lie {
        let during = (Nanos::ZERO, Nanos::FOREVER);
        Lie { about, change, from_read: 0, from_reset: 0, during }
    }

    pub(super) fn told(&self, now: Nanos, about: u8, read: u32, resets: u32) -> bool {
        let due = self.during.0 <= now && now < self.during.1;
        due && self.about == about && read >= self.from_read && resets >= self.from_reset
    }
}

const fn field(part: u8, nth: usize, at: usize, value: u8) -> DescriptorChange {
    DescriptorChange::Field { part, nth, at, value }
}

/// A device of another class altogether: a keyboard.
fn other_personality() -> DescriptorChange {
    DescriptorChange::Instead(vec![
        18, 1, 0, 2, 3, 1, 1, 64, 0x09, 0x12, 0xef, 0xbe, 0, 1, 0, 0, 0, 1,
    ])
}

fn about_configuration() -> Vec<(&'static str, DescriptorChange)> {
    let config = |at, value| field(kind::CONFIGURATION, 0, at, value);
    let interface = |nth, at, value| field(kind::INTERFACE, nth, at, value);
    let endpoint = |nth, at, value| field(kind::ENDPOINT, nth, at, value);
    vec![
        ("a part of length 0", interface(0, 0, 0)),
        ("a part of length 1", interface(0, 0, 1)),
        ("a part longer than the rest", endpoint(0, 0, 255)),
        ("a total length of 0", DescriptorChange::Byte(2, 0)),
        ("a total length of 9", DescriptorChange::Byte(2, 9)),
        ("a total length of 65,280 and more", DescriptorChange::Byte(3, 255)),
        ("a configuration that ends in its head", DescriptorChange::Cut(5)),
        ("a configuration that ends in a part", DescriptorChange::Cut(13)),
        ("no interfaces", config(4, 0)),
        ("255 interfaces", config(4, 255)),
        ("the same interface twice", DescriptorChange::Twice(kind::INTERFACE, 0)),
        ("the same endpoint twice", DescriptorChange::Twice(kind::ENDPOINT, 0)),
        ("endpoint 0 in the list", endpoint(0, 2, 0x80)),
        ("endpoint 15", endpoint(0, 2, 0x8f)),
        ("an interface without setting 0", interface(0, 3, 1)),
        ("an interface number with a gap", interface(0, 2, 77)),
        ("255 endpoints", interface(0, 4, 255)),
        ("an endpoint less than promised", DescriptorChange::Without(kind::ENDPOINT, 0)),
        ("packets of 0 bytes", endpoint(0, 4, 0)),
        ("packets beyond the limit", endpoint(0, 5, 0xff)),
        ("an interval of 0", endpoint(0, 6, 0)),
        ("an interval of 255", endpoint(0, 6, 255)),
        ("an endpoint of another type", endpoint(0, 3, 1)),
        ("no companion", DescriptorChange::Without(kind::SUPERSPEED_COMPANION, 0)),
        ("two companions", DescriptorChange::Twice(kind::SUPERSPEED_COMPANION, 0)),
        ("bursts of 256", field(kind::SUPERSPEED_COMPANION, 0, 2, 255)),
        ("four bursts of bulk", field(kind::SUPERSPEED_COMPANION, 0, 3, 0xff)),
        ("a class part of length 2", field(kind::CLASS_INTERFACE, 0, 0, 2)),
        ("a unit that feeds itself", field(kind::CLASS_INTERFACE, 2, 7, 2)),
        ("noise", DescriptorChange::Noise(4)),
    ]
}

fn about_others() -> Vec<(&'static str, u8, DescriptorChange)> {
    vec![
        ("control packets of 0 bytes", kind::DEVICE, DescriptorChange::Byte(7, 0)),
        ("control packets of 7 bytes", kind::DEVICE, DescriptorChange::Byte(7, 7)),
        ("control packets of 255 bytes", kind::DEVICE, DescriptorChange::Byte(7, 255)),
        ("a device of 8 bytes", kind::DEVICE, DescriptorChange::Cut(8)),
        ("no configurations", kind::DEVICE, DescriptorChange::Byte(17, 0)),
        ("255 configurations", kind::DEVICE, DescriptorChange::Byte(17, 255)),
        ("a text of odd length", kind::STRING, DescriptorChange::Byte(0, 5)),
        ("a text of length 0", kind::STRING, DescriptorChange::Byte(0, 0)),
        ("a text of length 1", kind::STRING, DescriptorChange::Byte(0, 1)),
        ("a text of length 255", kind::STRING, DescriptorChange::Byte(0, 255)),
        ("no languages", kind::STRING, DescriptorChange::Instead(vec![2, kind::STRING])),
        ("a store longer than it is", kind::BOS, DescriptorChange::Byte(3, 255)),
        ("a capability of length 0", kind::BOS, DescriptorChange::Byte(5, 0)),
        ("255 capabilities", kind::BOS, DescriptorChange::Byte(4, 255)),
        ("a report that counts to 4 billion", kind::HID_REPORT, huge_report()),
        ("a hub of 255 ports", kind::HUB, DescriptorChange::Byte(2, 255)),
        ("a hub of no ports", kind::HUB, DescriptorChange::Byte(2, 0)),
        ("a SuperSpeed hub of 255 ports", kind::SUPERSPEED_HUB, DescriptorChange::Byte(2, 255)),
    ]
}

/// Report size and count of 32 bits, all ones.
fn huge_report() -> DescriptorChange {
    let item = [0xff; 4];
    DescriptorChange::Instead([&[0x77][..], &item, &[0x97], &item, &[0x81, 2]].concat())
}

/// Returns every lie by name: those of syzkaller's and USBFuzz's findings and of umap2's templates.
/// Each is told always; with `from_read` or `from_reset` it comes when the host has begun to
/// believe.
#[must_use]
pub fn catalogue() -> Vec<(&'static str, Lie)> {
    let configuration =
        about_configuration().into_iter().map(|(name, how)| (name, kind::CONFIGURATION, how));
    let all = configuration.chain(about_others());
    let mut all: Vec<_> = all.map(|(name, about, how)| (name, Lie::new(about, how))).collect();
    let late = |name, about, change| (name, Lie { from_read: 1, ..Lie::new(about, change) });
    all.push(late(
        "a configuration that grows at the second read",
        kind::CONFIGURATION,
        DescriptorChange::Byte(3, 4),
    ));
    all.push(late(
        "other interfaces at the second read",
        kind::CONFIGURATION,
        DescriptorChange::Noise(2),
    ));
    all.push(late(
        "a device of another class at the second read",
        kind::DEVICE,
        other_personality(),
    ));
    let another = Lie { from_reset: 2, ..Lie::new(kind::DEVICE, other_personality()) };
    all.push(("a device of another class after the second reset", another));
    all
}
