//! CAN channels: pipes, semaphores and mailboxes, by name and by size. Their contents are in
//! `diapason_can::exchange`.
//!
//! A channel is received from with its pipe alone. A client that also writes, and says how and
//! when the channel takes part in its bus, has the rest, too; the server is told which channels
//! have such a client.

use crate::home::Home;
use crate::kinds::PLACE;
use diapason_abi::{Nanos, PAGE};

/// The bottom halves of CAN channels, one for each interface. None waits for another.
pub const HOMES: [Home; MOST] = {
    let mut homes = [const { HOME }; MOST];
    let mut number = 0;
    while number < MOST {
        homes[number].vcpu = VCPUS[number].0;
        number += 1;
    }
    homes
};

/// The bottom half of the first interface.
pub const HOME: Home = Home::new(VCPUS[0].0, "receive", "usbd.receive")
    .each("usbd.receive.message")
    .transfer("usbd.receive.transfer")
    .moderated(Nanos::from_millis(1));

/// The VCPUs of an interface's threads: of its bottom half, and of the one that hears clients.
pub(crate) const VCPUS: [(&str, &str); MOST] = [
    ("usb-receive", "usb-send"),
    ("usb-receive1", "usb-send1"),
    ("usb-receive2", "usb-send2"),
    ("usb-receive3", "usb-send3"),
    ("usb-receive4", "usb-send4"),
    ("usb-receive5", "usb-send5"),
    ("usb-receive6", "usb-send6"),
    ("usb-receive7", "usb-send7"),
    ("usb-receive8", "usb-send8"),
    ("usb-receive9", "usb-send9"),
];

/// Most CAN channels of an interface.
pub const EACH: usize = 5;

/// Most CAN channels of all interfaces together.
pub const CHANNELS: usize = 10;

// Limits of tuned pipes have a bit for each channel of an interface.
const _: () = assert!(EACH <= u8::BITS as usize);

/// Most interfaces: each has a channel.
pub const MOST: usize = CHANNELS;

/// Transfers from an interface that are kept pending at most.
pub const PENDING: u64 = 28;
/// Messages in a transfer from an interface, at most.
pub const TOGETHER: u64 = 8;

/// Bytes that the transfers of an interface take of the memory for all transfers: those from it
/// are a packet each, and there are 20 small ones besides.
pub const BUFFERS: u64 = PENDING * 512 + 20 * PLACE;

/// Records in the pipe of a channel. The fastest bus of the examples has 3,194 frames a second:
/// this is room for 80 ms of it.
pub const RECORDS: usize = diapason_abi::pipe::SLOTS;

/// Frames in the pipe to a channel.
pub const DEPARTURES: usize = diapason_abi::pipe::OUT_SLOTS;

/// Bytes of the segment with the pipe of a channel with CAN FD, and of the pipe to it, in whole
/// pages: two lines of counts, then the records.
pub const FD_BYTES: u64 = (128 + RECORDS * FD_RECORD.0).next_multiple_of(PAGE) as u64;
pub const FD_OUT_BYTES: u64 = (128 + DEPARTURES * FD_RECORD.1).next_multiple_of(PAGE) as u64;
/// Most bytes of a record of a frame that came, and of one to be sent, on such a channel.
pub const FD_RECORD: (usize, usize) = (96, 80);

/// Reports that may wait. The server writes at most one for each bottom half.
pub const REPORTS: usize = 64;
/// Reports that are kept for those that a client may be waiting for.
pub const REPORTS_KEPT: usize = 8;

/// The bit rate of a channel, if nobody says another.
pub const BIT_RATE: u32 = 500_000;
/// The sample point of a bit, in tenths of a per cent, if nobody says another.
pub const SAMPLE_POINT: u16 = 875;

/// Bits of a frame, the shortest and the longest: no data and no stuffing; eight bytes, an extended
/// identifier and as many stuff bits as there can be. The space between frames is included.
pub const FRAME_BITS: (u64, u64) = (47, 160);

/// The name, in descriptions, of the work that a reader of pipes does for one message.
pub const MESSAGE: &str = "can.message";

/// A CAN interface that the server serves, and which of the host's channels are its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CanInterface {
    /// The number of its first channel among those of the host.
    pub first: u8,
    /// The number of its channels: a device that has more is believed so far only.
    pub channels: u8,
}

/// The name of the setting with the interfaces, as their words. It follows from `[[usb]]`.
pub const INTERFACES: &str = "interfaces";

impl CanInterface {
    /// The one interface of a server that is told of none.
    pub const USUAL: CanInterface = CanInterface { first: 0, channels: EACH as u8 };

    /// Returns the interface as a number of a setting.
    #[must_use]
    pub const fn word(self) -> u64 {
        (self.first as u64) << 8 | self.channels as u64
    }

    /// Reads the interfaces out of the numbers of a setting. Those that no host can have are left
    /// out; without any there is the usual one.
    pub fn all(words: &[u64]) -> impl Iterator<Item = CanInterface> + '_ {
        let usual = [CanInterface::USUAL].into_iter().filter(|_| words.is_empty());
        words.iter().copied().filter_map(CanInterface::of).chain(usual)
    }

    fn of(word: u64) -> Option<CanInterface> {
        let interface = CanInterface { first: (word >> 8) as u8, channels: word as u8 };
        let channels = usize::from(interface.channels);
        let fits = (1..=EACH).contains(&channels) && word >> 16 == 0;
        (fits && usize::from(interface.first) + channels <= CHANNELS).then_some(interface)
    }

    /// Returns the numbers of its channels among those of the host.
    #[must_use]
    pub const fn numbers(self) -> core::ops::Range<usize> {
        self.first as usize..self.first as usize + self.channels as usize
    }
}

/// Names of a channel's objects.
#[derive(Clone, Copy, Debug)]
pub struct ChannelNames {
    /// The pipe from the channel.
    pub arrivals: &'static str,
    /// Given when something was put into a pipe to the client.
    pub ready: &'static str,
    /// The pipe to the channel.
    pub departures: &'static str,
    /// The pipe of reports.
    pub reports: &'static str,
    /// The mailbox of requests.
    pub requests: &'static str,
    /// The pipe from the channel if it has CAN FD, and the pipe to it.
    pub fd_arrivals: &'static str,
    pub fd_departures: &'static str,
}

/// The names of one channel.
macro_rules! names {
    ($name:literal) => {
        ChannelNames {
            arrivals: $name,
            ready: concat!($name, ".ready"),
            departures: concat!($name, ".out"),
            reports: concat!($name, ".report"),
            requests: concat!($name, ".control"),
            fd_arrivals: concat!($name, ".fd"),
            fd_departures: concat!($name, ".fd.out"),
        }
    };
}

const NAMES: [ChannelNames; CHANNELS] = [
    names!("can0"),
    names!("can1"),
    names!("can2"),
    names!("can3"),
    names!("can4"),
    names!("can5"),
    names!("can6"),
    names!("can7"),
    names!("can8"),
    names!("can9"),
];

impl ChannelNames {
    /// Returns the names of the pipe from the channel and of that to it, with CAN FD or without.
    #[must_use]
    pub const fn pipes(&self, fd: bool) -> (&'static str, &'static str) {
        match fd {
            true => (self.fd_arrivals, self.fd_departures),
            false => (self.arrivals, self.departures),
        }
    }
}

/// Returns the names of the channel of this number, if there is one.
#[must_use]
pub fn names(channel: usize) -> Option<&'static ChannelNames> {
    NAMES.get(channel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_survives_its_word_and_an_impossible_one_is_left_out() {
        let two = CanInterface { first: 0, channels: 2 };
        assert!(CanInterface::all(&[two.word()]).eq([two]));
        assert!(CanInterface::all(&[]).eq([CanInterface::USUAL]));
        let beyond = CanInterface { first: CHANNELS as u8 - 1, channels: 2 };
        let (none, many) =
            (CanInterface { channels: 0, ..two }, CanInterface { channels: 6, ..two });
        for wrong in [beyond.word(), none.word(), many.word(), two.word() | 1 << 16] {
            assert_eq!(CanInterface::all(&[wrong]).count(), 0, "{wrong:#x}");
        }
        assert_eq!(CanInterface { first: 1, channels: 3 }.numbers(), 1..4);
    }
}
