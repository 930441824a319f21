//! The last thread of a chain: writes each command to a CAN channel as a numbered frame.
//!
//! It reports how the chain does: a message is through when the server knows that its frame is.
//! Arguments: channel; after how many seconds it ends with a verdict (0: never).

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_abi::MESSAGE_BYTES;
use diapason_canlib::Error;
use diapason_concentrator::chain::{COMMANDS, end_after};
use diapason_concentrator::stream::{REPORT, SentStream};
use diapason_rt::mailbox::Mailbox;
use diapason_rt::{Arguments, ChainGauge, ChainMessage, Errno, entry, heap, log, time};

entry!(main);
// Parts of `diapason-can` that nothing here calls would allocate: no page of it is ever taken.
heap!(4 * 1024);

/// The threads of the chain, this one included.
const THREADS: usize = 3;
/// More than a pipe and an interface hold together.
const MOST: usize = 512;

/// The messages that are written and not known to be through, by the numbers of the frames.
struct Ring([ChainMessage; MOST]);

impl Ring {
    fn place(&mut self, frame: u64) -> &mut ChainMessage {
        &mut self.0[frame as usize % MOST]
    }
}

fn main(Arguments([number, seconds, ..]): Arguments) {
    if let Err(error) = run(number, seconds) {
        log!("can{number}: not written: {error}");
    }
}

fn run(number: u64, seconds: u64) -> Result<(), Error> {
    let commands = Mailbox::open(COMMANDS)?;
    let mut stream = SentStream::open(number)?;
    let (mut ring, mut gauge) =
        (Ring([ChainMessage::default(); MOST]), ChainGauge::new(time::now()));
    let (until, mut say_at) = (end_after(seconds), time::now() + REPORT);
    let mut bytes = [0; MESSAGE_BYTES];
    while time::now() < until {
        match commands.receive_into(&mut bytes, say_at.min(gauge.due()).min(until)) {
            Ok(_) => {
                let mut message = ChainMessage::from_bytes(&bytes);
                let frame = stream.written();
                match stream.write() {
                    Ok(()) => {
                        message.at[THREADS - 1] = time::now();
                        gauge.passed(&message, THREADS);
                        *ring.place(frame) = message;
                    }
                    // It is missing at the end.
                    Err(Error::Full) => {}
                    Err(error) => return Err(error),
                }
            }
            Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno.into()),
        }
        stream.look(|frame, known| gauge.through(ring.place(frame), known))?;
        gauge.look(time::now(), &mut log::measured);
        if time::now() >= say_at {
            stream.read();
            stream.say()?;
            say_at += REPORT;
        }
    }
    stream.end()
}
