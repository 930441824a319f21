//! Messages that a CAN controller with message buffers sends, by the names of `[[message]]`.

use diapason_abi::{Errno, Key, Nanos};
use diapason_contract::toucan::{
    CONTROLLER_NAMES, MESSAGES_SETTING, MessageTerms, OUT_MESSAGES, OutMessage, SENDERS,
};
use diapason_pipe::Writer;
use diapason_rt::sync::Semaphore;
use diapason_rt::{pipe, settings, time};

/// The messages that a program sends on one controller.
pub struct Outgoing {
    out: Writer<'static, OutMessage, OUT_MESSAGES>,
    ask: Semaphore,
    controller: u8,
    /// Messages were put down of which the driver does not know.
    is_unsaid: bool,
}

/// A message of the description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingMessage {
    stream: u32,
    bytes: u8,
}

impl OutgoingMessage {
    fn of(terms: &MessageTerms) -> OutgoingMessage {
        OutgoingMessage { stream: terms.stream.into(), bytes: terms.bytes }
    }

    /// Returns the message of this name, and the number of the controller that sends it.
    fn find(name: &str) -> Option<MessageTerms> {
        let key = Key::new(name);
        let told = settings::read();
        MessageTerms::all(told.get(MESSAGES_SETTING)).find(|terms| terms.name == key)
    }
}

impl Outgoing {
    /// Opens the way to the controller of the message of this name. A program opens each controller
    /// once, and sends from one thread.
    ///
    /// # Errors
    /// `Absent` if the description has no such message of this process.
    pub fn open(name: &str) -> Result<Outgoing, Errno> {
        Outgoing::of(OutgoingMessage::find(name).ok_or(Errno::Absent)?)
    }

    /// Opens the way to the controller of this number, as [`Outgoing::open`] does.
    ///
    /// # Errors
    /// `Absent` if the description has no message of this process there.
    pub fn open_controller(number: u8) -> Result<Outgoing, Errno> {
        let told = settings::read();
        let mut all = MessageTerms::all(told.get(MESSAGES_SETTING));
        Outgoing::of(all.find(|terms| terms.controller == number).ok_or(Errno::Absent)?)
    }

    fn of(terms: MessageTerms) -> Result<Outgoing, Errno> {
        let names = CONTROLLER_NAMES.get(usize::from(terms.controller)).ok_or(Errno::Absent)?;
        let out = names.out[usize::from(terms.sender) % SENDERS];
        let (out, ask) = (pipe::writer(out)?, Semaphore::open(names.send)?);
        Ok(Outgoing { out, ask, controller: terms.controller, is_unsaid: false })
    }

    /// Returns the message of this name.
    ///
    /// # Errors
    /// `Absent` if this process sends no such message on this controller.
    pub fn message(&self, name: &str) -> Result<OutgoingMessage, Errno> {
        let terms = OutgoingMessage::find(name).filter(|terms| terms.controller == self.controller);
        terms.map(|terms| OutgoingMessage::of(&terms)).ok_or(Errno::Absent)
    }

    /// Calls `each` with every message of this process on this controller: its period, and the most
    /// bytes of its data.
    pub fn each_message(&self, mut each: impl FnMut(OutgoingMessage, Nanos, usize)) {
        let told = settings::read();
        let all = MessageTerms::all(told.get(MESSAGES_SETTING));
        for terms in all.filter(|terms| terms.controller == self.controller) {
            each(OutgoingMessage::of(&terms), Nanos(terms.period_ns), terms.bytes.into());
        }
    }

    /// Sends `data` as this message. It counts from now on.
    ///
    /// # Errors
    /// As of [`Outgoing::send_made`].
    pub fn send(&mut self, message: OutgoingMessage, data: &[u8]) -> Result<(), Errno> {
        self.send_made(message, data, time::now())
    }

    /// Sends `data` as this message, which counts from `made` on: the release of its job.
    ///
    /// # Errors
    /// As of [`Outgoing::put`].
    pub fn send_made(
        &mut self,
        message: OutgoingMessage,
        data: &[u8],
        made: Nanos,
    ) -> Result<(), Errno> {
        self.put(message, data, made)?;
        self.wake();
        Ok(())
    }

    /// Puts `data` down as this message without waking the driver: for several messages at once.
    ///
    /// # Errors
    /// `Full` if the data is longer than the description says, or if too many messages wait for the
    /// driver.
    pub fn put(&mut self, message: OutgoingMessage, data: &[u8], made: Nanos) -> Result<(), Errno> {
        let mut out = OutMessage {
            made_ns: made.0,
            data: [0; 8],
            stream: message.stream,
            length: u32::try_from(data.len()).unwrap_or(u32::MAX),
        };
        if out.length > u32::from(message.bytes) {
            return Err(Errno::Full);
        }
        let place = out.data.get_mut(..data.len()).ok_or(Errno::Full)?;
        place.copy_from_slice(data);
        self.out.push(&out).map_err(|_| Errno::Full)?;
        self.is_unsaid = true;
        Ok(())
    }

    /// Wakes the driver, which takes what was put down, if anything was.
    pub fn wake(&mut self) {
        if core::mem::take(&mut self.is_unsaid) {
            // At its limit it has been given often enough.
            let _ = self.ask.give();
        }
    }
}
