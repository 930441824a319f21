//! The last thread of a chain: writes each command to a CAN channel as a numbered frame.
//!
//! It says how its pipe does as `can-writer` does, and how the chain does: a message is through
//! when the server knows that its frame is. Arguments: channel; after how many seconds it ends with
//! a verdict (0: never).

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_abi::MESSAGE_BYTES;
use diapason_canlib::Error;
use diapason_concentrator::chain::{COMMANDS, End};
use diapason_concentrator::passed::Passed;
use diapason_concentrator::stream::{REPORT, Stream};
use diapason_rt::mailbox::Mailbox;
use diapason_rt::{Arguments, Errno, entry, heap, log, time};

entry!(main);
// Parts of `diapason-can` that nothing here calls would allocate: no page of it is ever taken.
heap!(4 * 1024);

/// The threads of the chain, this one included.
const THREADS: usize = 3;
/// More than a pipe and an interface hold together.
const MOST: usize = 512;

/// The messages that are written and not known to be through, by the numbers of the frames.
struct Ring([Passed; MOST]);

impl Ring {
    fn place(&mut self, frame: u64) -> &mut Passed {
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
    let mut stream = Stream::open(number)?;
    let (mut ring, mut end) = (Ring([Passed::default(); MOST]), End::default());
    let (mut report_at, mut reports) = (time::now() + REPORT, 0);
    let mut bytes = [0; MESSAGE_BYTES];
    while seconds == 0 || reports < seconds {
        match commands.receive_into(&mut bytes, report_at) {
            Ok(_) => {
                let mut message = Passed::from_bytes(&bytes);
                let frame = stream.written();
                match stream.write() {
                    Ok(()) => {
                        message.at[THREADS - 1] = time::now();
                        end.passed(&message, THREADS);
                        *ring.place(frame) = message;
                    }
                    // It is missing at the end.
                    Err(Error::Full) => {}
                    Err(error) => return Err(error),
                }
                stream.look(|frame, known| end.through(ring.place(frame), known))?;
            }
            Err(Errno::TimedOut) => {
                stream.look(|frame, known| end.through(ring.place(frame), known))?;
                stream.read();
                stream.report()?;
                end.say(THREADS);
                report_at += REPORT;
                reports += 1;
            }
            Err(errno) => return Err(errno.into()),
        }
    }
    stream.end()
}
