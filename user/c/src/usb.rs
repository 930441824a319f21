//! The `[[pipe]]`s from and to the endpoint of any device, for C. They measure as those in Rust do.

use crate::claim::Claim;
use crate::inlet::{PacketInlet, open, with};
use crate::words::{INVALID, Place, bytes, error, offer};
use diapason_abi::{Errno, Nanos};
use diapason_contract::sensor::Packet;
use diapason_contract::sink::PacketAnswer;
use diapason_usblib::{NotWritten, UsbWriter, usb_open, usb_open_to};

static TO: Claim<Option<UsbWriter>> = Claim::new(None);
static FROM: PacketInlet = PacketInlet::new();

/// Opens the pipe. Without a grant of it the process ends.
#[unsafe(no_mangle)]
extern "C" fn dia_usb_open() -> i32 {
    FROM.open(usb_open)
}

/// Reads the oldest packet that came, or waits for one until the deadline.
#[unsafe(no_mangle)]
extern "C" fn dia_usb_read(packet: Place<'_, Packet>, deadline: u64) -> i32 {
    FROM.read(packet, deadline)
}

/// Counts packets that the program found missing by their contents.
#[unsafe(no_mangle)]
extern "C" fn dia_usb_missed(packets: u64) -> i32 {
    FROM.missed(packets)
}

/// Writes how many packets found no room, because this program was too slow.
#[unsafe(no_mangle)]
extern "C" fn dia_usb_lost(packets: Place<'_, u64>) -> i32 {
    FROM.lost(packets)
}

/// Opens the pipe to the endpoint. Without a grant of it the process ends.
#[unsafe(no_mangle)]
extern "C" fn dia_usb_open_to() -> i32 {
    open(&TO, usb_open_to)
}

/// Writes a packet. Does not wait.
#[unsafe(no_mangle)]
extern "C" fn dia_usb_write(packet: *const u8, length: usize) -> i32 {
    // SAFETY: the C program vouches for the bytes at an address that is not null.
    let Some(packet) = (unsafe { bytes(packet, length) }) else { return INVALID };
    let written = TO.with(|open| open.as_mut().map(|open| open.write(packet)));
    match written {
        None => error(Errno::Busy),
        Some(None) => error(Errno::Absent),
        Some(Some(Ok(()))) => 0,
        Some(Some(Err(NotWritten::Full))) => error(Errno::Full),
        Some(Some(Err(NotWritten::Length))) => INVALID,
    }
}

/// Takes the next answer, or waits for one until the deadline.
#[unsafe(no_mangle)]
extern "C" fn dia_usb_answer(answer: Place<'_, PacketAnswer>, deadline: u64) -> i32 {
    with(&TO, |open| {
        let taken = match (deadline, open.answer(Nanos(deadline))) {
            (0, Err(Errno::TimedOut)) => Err(Errno::WouldBlock),
            (_, taken) => taken,
        };
        offer(answer, taken?);
        Ok(())
    })
}
