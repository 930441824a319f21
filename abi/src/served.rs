//! The part of the kernel that a system needs: which calls, and which kinds of objects.
//!
//! The programs of a system know their calls when they are linked, and its description knows how
//! many objects of each kind there are. A kernel that is compiled for both lacks the rest.

use crate::CallNumber;

/// In a program's list of calls: a number that only the running program knows.
pub const ANY_CALL: u8 = u8::MAX;
/// In a program's list of calls: some of them have hints.
pub const HINTS: u8 = ANY_CALL - 1;

macro_rules! facilities {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Something that a kernel needs only if the description asks for it.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Facility { $($(#[$doc])* $name,)* }

        impl Facility {
            /// Every service, in the order of their bits.
            pub const ALL: &'static [Facility] = &[$(Facility::$name,)*];
        }
    };
}

facilities! {
    /// Semaphores and mutexes, declared or private.
    Semaphores,
    /// Condition variables, declared or private.
    Conditions,
    /// Mailboxes, also those of fault reports.
    Mailboxes,
    /// Events of timers, interrupts and programs.
    Events,
    /// Shared segments, also those that devices find.
    Segments,
    /// Devices, their interrupts, and doorbells.
    Devices,
    /// Frames of heaps and segments.
    Frames,
    /// VCPUs, declared or made at run time.
    Vcpus,
    /// A thread says which mutex it locks next.
    Hints,
    /// Mailboxes whose callers run the server in their own place.
    Servers,
    /// Other cores, each with a kernel of its own, and their doorbells.
    Cores,
    /// A copy of the console in a segment, for a process that takes it to a medium.
    Kept,
}

/// A set of calls and services: what a program or a system needs, or what a kernel serves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Served {
    /// One bit for each call, by its number.
    pub calls: u64,
    /// One bit for each service.
    pub services: u64,
}

impl Served {
    /// The set with every call and every service.
    pub const ALL: Served =
        Served { calls: all(CallNumber::ALL.len()), services: all(Facility::ALL.len()) };
    /// The set without any call or service.
    pub const NONE: Served = Served { calls: 0, services: 0 };
    /// Nothing but the call that every program has: giving up.
    pub const LEAST: Served = Served { calls: 1 << CallNumber::Fail as u8, services: 0 };

    /// Returns whether the call is in the set.
    #[must_use]
    #[inline(always)]
    pub const fn has_call(self, call: CallNumber) -> bool {
        self.calls >> call as u8 & 1 == 1
    }

    /// Returns whether the service is in the set.
    #[must_use]
    #[inline(always)]
    pub const fn has(self, service: Facility) -> bool {
        self.services >> service as u8 & 1 == 1
    }

    /// Returns the set with everything of another one, too.
    #[must_use]
    pub const fn and(self, other: Served) -> Served {
        Served { calls: self.calls | other.calls, services: self.services | other.services }
    }

    /// Returns what this set has and `other` lacks.
    #[must_use]
    pub const fn without(self, other: Served) -> Served {
        Served { calls: self.calls & !other.calls, services: self.services & !other.services }
    }

    /// Returns the set with this service.
    #[must_use]
    pub const fn with(self, service: Facility) -> Served {
        Served { services: self.services | 1 << service as u8, ..self }
    }

    /// Returns the set with this call.
    #[must_use]
    pub const fn with_call(self, call: CallNumber) -> Served {
        Served { calls: self.calls | 1 << call as u8, ..self }
    }

    /// Returns the set of the calls in a program's list. A number that is no call, or is not known,
    /// stands for all calls, and for hints.
    #[must_use]
    pub fn of_calls(list: &[u8]) -> Served {
        let mut set = Served::LEAST;
        for number in list {
            set = match (*number, CallNumber::decode(u64::from(*number))) {
                (HINTS, _) => set.with(Facility::Hints),
                (_, Some(call)) => set.with_call(call),
                (_, None) => Served { calls: Served::ALL.calls, ..set }.with(Facility::Hints),
            };
        }
        set
    }

    /// Returns the calls of the set, in numeric order.
    pub fn calls(self) -> impl Iterator<Item = CallNumber> {
        CallNumber::ALL.iter().copied().filter(move |call| self.has_call(*call))
    }

    /// Reads a set as [`Served`] writes it: both words in hexadecimal with a `-` between. `None`
    /// for other text, and for what is not in [`Served::ALL`].
    #[must_use]
    pub const fn parse(text: &str) -> Option<Served> {
        let bytes = text.as_bytes();
        let (mut words, mut which, mut digits, mut at) = ([0u64; 2], 0, 0, 0);
        while at < bytes.len() {
            let digit = match bytes[at] {
                digit @ b'0'..=b'9' => digit - b'0',
                digit @ b'a'..=b'f' => digit - b'a' + 10,
                b'-' if which == 0 && digits > 0 => {
                    (which, digits, at) = (1, 0, at + 1);
                    continue;
                }
                _ => return None,
            };
            if digits == 16 {
                return None;
            }
            words[which] = words[which] << 4 | digit as u64;
            (digits, at) = (digits + 1, at + 1);
        }
        let set = Served { calls: words[0], services: words[1] };
        let beyond = set.without(Served::ALL);
        if which == 1 && digits > 0 && beyond.calls | beyond.services == 0 {
            Some(set)
        } else {
            None
        }
    }
}

impl core::fmt::Display for Served {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:x}-{:x}", self.calls, self.services)
    }
}

/// Returns the lowest `count` bits.
const fn all(count: usize) -> u64 {
    (1 << count) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_of_a_program_are_a_set() {
        let list = [CallNumber::SemLock as u8, CallNumber::Ring as u8];
        let set = Served::of_calls(&list);
        assert!(set.has_call(CallNumber::SemLock) && set.has_call(CallNumber::Fail));
        assert!(!set.has_call(CallNumber::SemUnlock));
        assert_eq!(set.without(Served::LEAST).calls().count(), 2);
        for number in [ANY_CALL, CallNumber::ALL.len() as u8] {
            let set = Served::of_calls(&[number]);
            assert_eq!((set.calls, set.has(Facility::Hints)), (Served::ALL.calls, true));
        }
        assert_eq!(Served::of_calls(&[HINTS]), Served::LEAST.with(Facility::Hints));
    }

    #[test]
    fn a_service_is_one_bit() {
        for service in Facility::ALL {
            let set = Served::LEAST.with(*service);
            let others = Facility::ALL.iter().filter(|other| *other != service);
            assert!(set.has(*service) && !others.into_iter().any(|other| set.has(*other)));
        }
    }

    #[test]
    fn text_that_is_no_set_is_refused() {
        for text in ["", "-", "1", "1-", "-1", "1-1-1", "g-0", "A-0", "0-10000000000000000", " 1-1"]
        {
            assert_eq!(Served::parse(text), None, "{text}");
        }
        let beyond = Served { calls: Served::ALL.calls + 1, ..Served::LEAST };
        assert_eq!(Served::parse(&beyond.to_string()), None);
    }

    /// Numbers without an order.
    fn numbers() -> impl Iterator<Item = u64> {
        (1..2000u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(n as u32))
    }

    #[test]
    fn a_set_is_read_as_it_is_written() {
        for word in numbers() {
            let calls = word & Served::ALL.calls;
            let set = Served { calls, services: word.swap_bytes() & Served::ALL.services };
            assert_eq!(Served::parse(&set.to_string()), Some(set));
        }
    }

    #[test]
    fn any_text_has_an_answer() {
        for word in numbers() {
            let letters = word.to_le_bytes().map(|byte| b"0123456789abcdef-g"[byte as usize % 18]);
            let text: String = letters.iter().map(|letter| char::from(*letter)).collect();
            if let Some(set) = Served::parse(&text) {
                assert_eq!(set.without(Served::ALL), Served::NONE);
            }
        }
    }
}
