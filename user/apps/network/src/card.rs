//! Slots of the USB server as a device of `smoltcp`'s.

use diapason_rt::{Errno, Nanos, log};
use diapason_usblib::network::{
    BACK, CAME, FRAME_MAX, FROM, FrameClient, GONE, News, SLOTS, STATE, TO,
};
use smoltcp::phy::{self, Device, DeviceCapabilities};
use smoltcp::time::Instant;

/// A change of the device.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// The device is there, with this address.
    Arrived([u8; 6]),
    Left,
}

/// The network card as the server shows it.
pub(crate) struct Card {
    inbox: FrameClient,
    outbox: Outbox,
    /// The frame that came last.
    frame: [u8; FRAME_MAX],
    there: bool,
    change: Option<Change>,
}

struct Outbox {
    client: FrameClient,
    frame: [u8; FRAME_MAX],
    /// Slots that have no frame, as bits.
    free: u128,
    /// The server is to be told of frames.
    asked: bool,
}

impl Card {
    /// Returns the card without a device so far.
    pub fn open() -> Result<Card, Errno> {
        let frame = [0; FRAME_MAX];
        let free = u128::MAX >> (u128::BITS - SLOTS);
        let outbox = Outbox { client: FrameClient::of(&TO)?, frame, free, asked: false };
        let mut inbox = FrameClient::of(&FROM)?;
        inbox.begin()?;
        inbox.ring();
        Ok(Card { inbox, outbox, frame, there: false, change: None })
    }

    /// Lets the server know of what was asked, and waits for frames.
    pub fn wait(&mut self, deadline: Nanos) -> Result<(), Errno> {
        if core::mem::take(&mut self.outbox.asked) {
            self.outbox.client.ring();
        }
        match self.inbox.wait(deadline) {
            Err(Errno::TimedOut) => Ok(()),
            other => other,
        }
    }

    /// Returns the change of the device since the last call. A call without a device loses
    /// frames.
    pub fn change(&mut self) -> Option<Change> {
        while !self.there && self.come().is_some() {}
        self.change.take()
    }

    /// Returns the bytes of the next frame that came, and what else is new on the way to it.
    fn come(&mut self) -> Option<usize> {
        loop {
            let news = self.inbox.pop()?;
            if news.what != CAME {
                self.note(&news);
                continue;
            }
            let bytes = (news.bytes as usize).min(FRAME_MAX);
            self.inbox.read(news.slot, &mut self.frame[..bytes]);
            // The server looks for the slot when it has taken the next frame.
            if let Err(errno) = self.inbox.lend(news.slot) {
                log!("a slot is lost: {errno:?}");
            }
            // As a network may: without room for an answer a frame is lost.
            if self.outbox.has_room() {
                return Some(bytes);
            }
        }
    }

    fn note(&mut self, news: &News) {
        match news.what {
            STATE if !self.there => {
                (self.there, self.change) = (true, Some(Change::Arrived(news.address)));
            }
            GONE => (self.there, self.change) = (false, Some(Change::Left)),
            _ => {}
        }
    }
}

impl Outbox {
    /// Returns whether there is a slot for a frame.
    fn has_room(&mut self) -> bool {
        while let Some(news) = self.client.pop() {
            if news.what == BACK {
                self.free |= 1u128.checked_shl(news.slot).unwrap_or(0);
            }
        }
        self.free != 0
    }
}

impl Device for Card {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = Sending<'a>;

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.max_transmission_unit = FRAME_MAX;
        capabilities
    }

    fn receive(&mut self, _: Instant) -> Option<(Received<'_>, Sending<'_>)> {
        let bytes = self.come()?;
        Some((Received(&self.frame[..bytes]), Sending(&mut self.outbox)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sending<'_>> {
        (self.there && self.outbox.has_room()).then_some(Sending(&mut self.outbox))
    }
}

/// A frame that came.
pub(crate) struct Received<'a>(&'a [u8]);

/// A frame that is about to go; there is a slot for it.
pub(crate) struct Sending<'a>(&'a mut Outbox);

impl phy::RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

impl phy::TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let Sending(outbox) = self;
        let length = length.min(FRAME_MAX);
        let result = write(&mut outbox.frame[..length]);
        let slot = outbox.free.trailing_zeros();
        outbox.client.write(slot, &outbox.frame[..length]);
        outbox.asked = true;
        match outbox.client.send(slot, length as u16) {
            Ok(()) => outbox.free &= !(1 << slot),
            Err(errno) => log!("a frame is lost: {errno:?}"),
        }
        result
    }
}
