//! Names as numbers. Programs and descriptions name objects by text; the kernel compares 64 bits.

/// The CPU-wide identifier of a declared object: the FNV-1a hash of its name.
///
/// The archive builder refuses a description in which two names share a key, so inside one system
/// a key is as good as the name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[repr(transparent)]
pub struct Key(pub u64);

/// Ends the names of the mutexes that servers of mailboxes hold.
pub const SERVER: &str = ".server";

impl Key {
    /// Not a name: asks for an object private to the calling process.
    pub const PRIVATE: Key = Key(0);

    /// Returns the key of `name`.
    #[must_use]
    pub const fn new(name: &str) -> Key {
        Key(0xcbf2_9ce4_8422_2325).then(name.as_bytes())
    }

    /// Returns the key of message `number` of a PCI device: that of the name `DEVICE.NUMBER`.
    #[must_use]
    pub const fn message(device: &str, number: u8) -> Key {
        let digits = [b'0' + number / 100, b'0' + number / 10 % 10, b'0' + number % 10];
        let (_, shown) = digits.split_at(if number > 99 {
            0
        } else if number > 9 {
            1
        } else {
            2
        });
        Key::new(device).then(b".").then(shown)
    }

    /// Returns the key of the mutex that the server of a mailbox holds: that of the name
    /// `MAILBOX.server`.
    #[must_use]
    pub const fn server(mailbox: &str) -> Key {
        Key::new(mailbox).then(SERVER.as_bytes())
    }

    const fn then(self, bytes: &[u8]) -> Key {
        let Key(mut hash) = self;
        let mut i = 0;
        while i < bytes.len() {
            hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
            i += 1;
        }
        Key(hash)
    }
}

/// Up to eight characters of a thread's name in one register, for tables and traces.
#[must_use]
pub const fn pack_name(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let mut packed = [0u8; 8];
    let mut i = 0;
    while i < bytes.len() && i < 8 {
        packed[i] = bytes[i];
        i += 1;
    }
    u64::from_le_bytes(packed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_fnv1a_and_differ() {
        assert_eq!(Key::new("a"), Key(0xaf63_dc4c_8601_ec8c));
        assert_ne!(Key::new("throttle"), Key::new("throttle "));
        assert_ne!(Key::new(""), Key::PRIVATE);
    }

    #[test]
    fn messages_have_the_keys_of_their_names() {
        for number in 0..=u8::MAX {
            assert_eq!(Key::message("xhci", number), Key::new(&format!("xhci.{number}")));
        }
    }

    #[test]
    fn long_names_are_cut_to_eight() {
        assert_eq!(pack_name("controller").to_le_bytes(), *b"controll");
    }
}
