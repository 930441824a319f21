//! The first thread of a chain: reads a CAN channel, and hands each frame over at once.
//!
//! Arguments: channel; after how many seconds it ends (0: never); and how it hands over (0: through
//! the mailbox `readings`, 1: as the state message `newest`).

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_canlib::{Channel, Error};
use diapason_concentrator::chain::{NEWEST, READINGS, SLOTS, Value, end_after};
use diapason_concentrator::tally::Tally;
use diapason_rt::mailbox::Mailbox;
use diapason_rt::{Arguments, ChainMessage, Nanos, entry, heap, log, state, time};
use diapason_state::{StateBuffer, StateWriter};

entry!(main);
// Parts of `diapason-can` that nothing here calls would allocate: no page of it is ever taken.
heap!(4 * 1024);

enum Next {
    Mailbox(Mailbox),
    State(StateWriter<'static, StateBuffer<Value, SLOTS>>),
}

impl Next {
    fn open(how: u64) -> Result<Next, Error> {
        Ok(match how {
            0 => Next::Mailbox(Mailbox::open(READINGS)?),
            _ => Next::State(state::writer(NEWEST)?),
        })
    }

    /// A thread that waited for room would hold up the next message. A message that does not fit
    /// shows as a gap.
    fn take(&mut self, message: &ChainMessage) {
        match self {
            Next::Mailbox(mailbox) => {
                let _ = mailbox.send(&message.bytes(), 0, Nanos::ZERO);
            }
            Next::State(writer) => writer.write(message.words()),
        }
    }
}

fn main(Arguments([number, seconds, how, _]): Arguments) {
    if let Err(error) = read(number as usize, seconds, how) {
        log!("can{number}: not read: {error}");
    }
}

fn read(number: usize, seconds: u64, how: u64) -> Result<(), Error> {
    let mut channel = Channel::listen(number)?;
    let mut next = Next::open(how)?;
    let mut tally = Tally::default();
    let end = end_after(seconds);
    while time::now() < end {
        match channel.read_wait(end) {
            Ok(message) => {
                let now = time::now();
                channel.missed(tally.count(&message.arrival));
                let arrived = Nanos(message.arrival.taken) - Nanos(message.arrival.moved.into());
                let mut message =
                    ChainMessage { number: tally.frames, arrived, ..ChainMessage::default() };
                message.at[0] = now;
                next.take(&message);
            }
            Err(Error::TimedOut) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
