//! The last thread of a chain: takes commands out of the mailbox `commands` and writes each to an
//! actuator, as one packet.
//!
//! Argument: the place of this thread in the chain, from 0 on.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod commands;

use commands::{BYTES, Fate, Output};
use diapason_rt::{Arguments, Errno, entry, log};
use diapason_usblib::sink::{DONE, GONE, PacketAnswer};
use diapason_usblib::{UsbWriter, usb_open_to};

entry!(main);

/// The pipe to the actuator.
struct Packets(UsbWriter);

fn fate(answer: &PacketAnswer) -> Fate {
    match answer.status {
        DONE => Fate::Done(answer.ended),
        GONE => Fate::Gone,
        _ => Fate::Failed,
    }
}

impl Output for Packets {
    fn write(&mut self, command: &[u8; BYTES], tell: &mut dyn FnMut(Fate)) -> Result<(), Fate> {
        let written = self.0.write_hearing(command, &mut |answer| tell(fate(answer)));
        written.map_err(|_| Fate::Failed)
    }

    fn hear(&mut self, tell: &mut dyn FnMut(Fate)) {
        self.0.hear(&mut |answer| tell(fate(answer)));
    }
}

fn main(Arguments([place, ..]): Arguments) {
    if let Err(errno) = write(place as usize) {
        log!("endpoint: not written: {errno:?}");
    }
}

fn write(place: usize) -> Result<(), Errno> {
    commands::pass_on(&mut Packets(usb_open_to()?), place)
}
