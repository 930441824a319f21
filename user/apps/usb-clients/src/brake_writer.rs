//! The last thread of a chain: takes commands out of the mailbox `commands` and writes each to an
//! actuator, as one packet.
//!
//! It reports how the chain does: a message is through when the server knows that the device has
//! its packet. Argument: the place of this thread in the chain, from 0 on.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_rt::mailbox::Mailbox;
use diapason_rt::{Arguments, ChainGauge, ChainMessage, Errno, Nanos, entry, log, time};
use diapason_usblib::sink::{DONE, GONE, PacketAnswer, RECORDS};
use diapason_usblib::{UsbWriter, usb_open_to};

entry!(main);

/// Bytes of a message in a mailbox.
const BYTES: usize = 64;

/// The commands that are written and not answered. Answers come in the order of packets.
struct Open {
    messages: [ChainMessage; RECORDS],
    written: usize,
    answered: usize,
    /// The outputs before the device had come.
    early: u64,
    gauge: ChainGauge,
}

impl Open {
    fn new() -> Open {
        let messages = [ChainMessage::default(); RECORDS];
        Open { messages, written: 0, answered: 0, early: 0, gauge: ChainGauge::new(time::now()) }
    }

    fn put(&mut self, message: ChainMessage) {
        self.messages[self.written % RECORDS] = message;
        self.written += 1;
    }

    /// Notes that a packet ended. A packet that the device did not take is missing at the end.
    fn hear(&mut self, answer: &PacketAnswer) {
        let mut message = self.messages[self.answered % RECORDS];
        self.answered += 1;
        match answer.status {
            DONE => {
                message.number -= self.early;
                message.output -= self.early;
                self.gauge.through(&message, Nanos(answer.ended));
            }
            GONE if self.gauge.next() == 1 => self.early = message.output,
            _ => {}
        }
    }
}

fn main(Arguments([place, ..]): Arguments) {
    if let Err(errno) = write(place as usize) {
        log!("endpoint: not written: {errno:?}");
    }
}

fn write(place: usize) -> Result<(), Errno> {
    let commands = Mailbox::open("commands")?;
    let (mut pipe, mut open) = (usb_open_to()?, Open::new());
    let mut bytes = [0; BYTES];
    loop {
        match commands.receive_into(&mut bytes, open.gauge.due()) {
            Ok(_) => pass_on(&mut pipe, &mut open, (&bytes, place)),
            Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
        pipe.hear(&mut |answer| open.hear(answer));
        open.gauge.look(time::now(), &mut log::measured);
    }
}

fn pass_on(pipe: &mut UsbWriter, open: &mut Open, (bytes, place): (&[u8; BYTES], usize)) {
    let mut message = ChainMessage::from_bytes(bytes);
    pipe.hear(&mut |answer| open.hear(answer));
    // A packet that finds no room is missing at the end.
    let written = pipe.write_hearing(&message.bytes(), &mut |answer| open.hear(answer));
    if written.is_ok() {
        message.at[place] = time::now();
        open.gauge.passed(&message, place + 1);
        open.put(message);
    }
}
