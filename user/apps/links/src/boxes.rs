//! The mailboxes of a router: messages out of them, and the thread that hears of those.

use diapason_abi::MESSAGE_BYTES;
use diapason_abi::settings::Settings;
use diapason_contract::mail::{BEFORE, BoxName, MAILBOXES, MAILBOXES_MAX, MailHead};
use diapason_contract::routes::{Gate, LinkRoute, ROUTES};
use diapason_frame::{HEAD, Head};
use diapason_pipe::intake::{Intake, MessageSource};
use diapason_rt::event::Event;
use diapason_rt::mailbox::Mailbox;
use diapason_rt::sync::Semaphore;
use diapason_rt::{Errno, Nanos, settings, time};
use diapason_usblib::link::{Link, READY, UNIT};

/// A mailbox of the router.
pub struct RouterBox {
    pub name: BoxName,
    mailbox: Mailbox,
}

/// A mailbox that messages are taken out of without waiting.
pub struct PostBox(Mailbox);

/// A message of a mailbox, or why there is none.
pub type Taken = Result<Letter, Errno>;

/// A message of a mailbox.
pub struct Letter {
    bytes: [u8; MESSAGE_BYTES],
    length: usize,
    priority: u32,
}

impl MessageSource for PostBox {
    type Message = Taken;

    fn pop(&mut self) -> Option<Taken> {
        let mut bytes = [0; MESSAGE_BYTES];
        match self.0.receive_into(&mut bytes, Nanos::ZERO) {
            Ok((length, priority)) => Some(Ok(Letter { bytes, length, priority })),
            Err(Errno::WouldBlock) => None,
            Err(errno) => Some(Err(errno)),
        }
    }
}

/// The mailboxes of a router, by their numbers.
pub type RouterBoxes = [Option<RouterBox>; MAILBOXES_MAX];

/// Opens the mailboxes of a router, and those out of which it takes messages.
pub fn open(
    told: &Settings,
    all: &mut RouterBoxes,
    posts: &mut Intake<PostBox, MAILBOXES_MAX>,
) -> Result<(), Errno> {
    for (place, name) in all.iter_mut().zip(BoxName::all(told.get(MAILBOXES))) {
        *place = Some(RouterBox { name, mailbox: Mailbox::of(name.mailbox)? });
    }
    for (number, name) in posts_of(told) {
        posts.put(number, PostBox(Mailbox::of(name.mailbox)?));
    }
    Ok(())
}

/// Returns the mailboxes out of which the router takes messages, with their numbers.
pub fn posts_of(told: &Settings) -> impl Iterator<Item = (usize, BoxName)> + '_ {
    let ways = || LinkRoute::all(told.get(ROUTES));
    let boxes = BoxName::all(told.get(MAILBOXES)).take(MAILBOXES_MAX).enumerate();
    boxes.filter(move |(number, _)| ways().any(|way| way.from == Gate::Mailbox(*number)))
}

/// Gives the semaphore of the links each time that something comes to a mailbox.
pub fn hear(_: u64) -> u64 {
    let heard = || -> Result<(), Errno> {
        let (event, ready) = (Event::new()?, Semaphore::open(READY)?);
        for (_, name) in posts_of(&settings::read()) {
            Mailbox::of_with(name.mailbox, &event)?;
        }
        loop {
            // At its limit it has been given often enough.
            let _ = ready.give();
            event.wait(Nanos::FOREVER)?;
        }
    };
    heard().map_or_else(|errno| errno as u64, |()| 0)
}

impl RouterBox {
    /// Puts a message that came to `place` into the mailbox. Returns whether there was room.
    pub fn put(&self, link: &Link, place: u32, (head, length): (MailHead, usize)) -> bool {
        let at = place as usize * UNIT + BEFORE;
        let mut bytes = [0; MESSAGE_BYTES];
        for (offset, word) in bytes.as_chunks_mut().0.iter_mut().enumerate() {
            *word = link.data.read32(at + 4 * offset).to_le_bytes();
        }
        let message = bytes.get(..length).unwrap_or(&bytes);
        self.mailbox.send(message, head.priority, Nanos::ZERO).is_ok()
    }
}

impl Letter {
    /// Returns the bytes of the message on a link.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        BEFORE + self.length
    }

    /// Writes the message to `place`.
    pub fn write(&self, link: &Link, place: u32, flow: u32, head: Head) {
        let words = MailHead { flow, priority: self.priority }.words();
        let content = self.bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word));
        for (offset, word) in words.into_iter().chain(content).enumerate() {
            link.data.write32(place as usize * UNIT + HEAD + 4 * offset, word);
        }
        time::work("link.seal", || link.seal(place, head));
    }
}

/// Returns the head of a message of `bytes` bytes that came to `place`, the words behind it, and
/// the bytes of the mailbox's message. There is nothing if it is damaged or of no mailbox.
pub fn opened(link: &Link, place: u32, bytes: u32) -> Option<(Head, (MailHead, usize))> {
    let head = time::work("link.check", || link.check(place, bytes))?;
    let at = place as usize * UNIT;
    let words = [HEAD, HEAD + 4].map(|word| link.data.read32(at + word));
    Some((head, MailHead::of(words, head.bytes)?))
}
