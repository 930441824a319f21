//! The last thread of a chain: takes commands out of the mailbox `commands` and sends each to a
//! network device, as one frame for all.
//!
//! Argument: the place of this thread in the chain, from 0 on.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod commands;
mod local;

use commands::{BYTES, Fate, Output};
use diapason_rt::{Arguments, Errno, entry, log};
use diapason_usblib::network::{DONE, DROPPED, FramePlace, FrameWriter, News, NotSent};
use local::{HEAD, head};

entry!(main);

/// The pipe to the network device.
struct Frames(FrameWriter);

fn fate(news: &News) -> Fate {
    match news.status {
        DONE => Fate::Done(news.taken),
        DROPPED => Fate::Gone,
        _ => Fate::Failed,
    }
}

impl Output for Frames {
    fn write(&mut self, command: &[u8; BYTES], tell: &mut dyn FnMut(Fate)) -> Result<(), Fate> {
        let fill = |place: &FramePlace<'_>| {
            place.put(0, &head(place.address));
            place.put(HEAD, command);
        };
        let written = self.0.write_hearing(HEAD + BYTES, fill, &mut |news| tell(fate(news)));
        written.map_err(|why| match why {
            NotSent::NoDevice => Fate::Gone,
            NotSent::Full | NotSent::Length => Fate::Failed,
        })
    }

    fn hear(&mut self, tell: &mut dyn FnMut(Fate)) {
        self.0.hear(&mut |news| tell(fate(news)));
    }
}

fn main(Arguments([place, ..]): Arguments) {
    if let Err(errno) = write(place as usize) {
        log!("network: not written: {errno:?}");
    }
}

fn write(place: usize) -> Result<(), Errno> {
    commands::pass_on(&mut Frames(FrameWriter::open()?), place)
}
