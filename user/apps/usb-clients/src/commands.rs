//! The end of a chain that goes on to a device: commands come by the mailbox `commands`, and each
//! is written. A message is through when the server knows that the device has it.

use diapason_rt::mailbox::Mailbox;
use diapason_rt::{ChainGauge, ChainMessage, Errno, Nanos, log, time};

/// Bytes of a message in a mailbox.
pub const BYTES: usize = 64;
/// Commands that are written and not answered, at most.
const OPEN: usize = 16;

/// The fate of a command.
pub enum Fate {
    /// The device has it, as the server knew at this time in ns.
    Done(u64),
    /// There was no device.
    Gone,
    /// The device did not take it, or there was no room for it.
    Failed,
}

/// The pipe to the device. Its answers come in the order of what was written.
pub trait Output {
    /// Writes a command, and tells the fates that it learns of.
    ///
    /// # Errors
    /// Nothing was written, and that is the fate of the command.
    fn write(&mut self, command: &[u8; BYTES], tell: &mut dyn FnMut(Fate)) -> Result<(), Fate>;

    /// Tells the fates that have come. Does not wait.
    fn hear(&mut self, tell: &mut dyn FnMut(Fate));
}

/// The commands that are written and not answered.
struct OpenCommands {
    messages: [ChainMessage; OPEN],
    written: usize,
    answered: usize,
    /// The outputs before the device had come.
    early: u64,
    gauge: ChainGauge,
}

impl OpenCommands {
    fn new() -> OpenCommands {
        let messages = [ChainMessage::default(); OPEN];
        let gauge = ChainGauge::new(time::now());
        OpenCommands { messages, written: 0, answered: 0, early: 0, gauge }
    }

    fn has_room(&self) -> bool {
        self.written - self.answered < OPEN
    }

    fn put(&mut self, message: ChainMessage) {
        self.messages[self.written % OPEN] = message;
        self.written += 1;
    }

    /// Notes that a command ended. One that the device did not take is missing at the end.
    fn hear(&mut self, fate: &Fate) {
        let mut message = self.messages[self.answered % OPEN];
        self.answered += 1;
        match fate {
            Fate::Done(ended) => {
                message.number -= self.early;
                message.output -= self.early;
                self.gauge.through(&message, Nanos(*ended));
            }
            Fate::Gone => self.had_no_device(&message),
            Fate::Failed => {}
        }
    }

    /// Notes that there was no device for a command. Before the first one that came through, the
    /// device had not come yet.
    fn had_no_device(&mut self, message: &ChainMessage) {
        if self.gauge.next() == 1 {
            self.early = message.output;
        }
    }

    fn pass_on(&mut self, output: &mut impl Output, (bytes, place): (&[u8; BYTES], usize)) {
        let mut message = ChainMessage::from_bytes(bytes);
        output.hear(&mut |fate| self.hear(&fate));
        // A command that finds no room is missing at the end.
        if !self.has_room() {
            return;
        }
        match output.write(&message.bytes(), &mut |fate| self.hear(&fate)) {
            Ok(()) => {
                message.at[place] = time::now();
                self.gauge.passed(&message, place + 1);
                self.put(message);
            }
            Err(Fate::Gone) => self.had_no_device(&message),
            Err(_) => {}
        }
    }
}

/// Writes commands for ever, and reports how the chain does. `place` is that of this thread in it.
///
/// # Errors
/// The mailbox was deleted.
pub fn pass_on(output: &mut impl Output, place: usize) -> Result<(), Errno> {
    let (commands, mut open) = (Mailbox::open("commands")?, OpenCommands::new());
    let mut bytes = [0; BYTES];
    loop {
        match commands.receive_into(&mut bytes, open.gauge.due()) {
            Ok(_) => open.pass_on(output, (&bytes, place)),
            Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
        output.hear(&mut |fate| open.hear(&fate));
        open.gauge.look(time::now(), &mut log::measured);
    }
}
