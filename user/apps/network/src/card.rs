//! Slots of the USB server as a device of `smoltcp`'s.

use diapason_rt::{Errno, Nanos, log};
use diapason_usblib::network::{BACK, CAME, FRAME_MAX, GONE, Network, News, SLOTS, STATE};
use smoltcp::phy::{self, Device, DeviceCapabilities};
use smoltcp::time::Instant;

/// Slots from here on are for frames that go, those before for frames that come.
const SENDING: u32 = SLOTS / 2;

/// A change of the device.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// The device is there, with this address.
    Arrived([u8; 6]),
    Left,
}

/// The network card as the server shows it.
pub(crate) struct Card {
    outbox: Outbox,
    /// The frame that came last.
    frame: [u8; FRAME_MAX],
    there: bool,
    change: Option<Change>,
    /// Slots for frames that come and that nobody has, as bits.
    idle: u128,
}

struct Outbox {
    network: Network,
    frame: [u8; FRAME_MAX],
    /// Slots for frames that go and that nobody has, as bits.
    free: u128,
    /// The server is to be told that something was asked.
    asked: bool,
}

impl Card {
    /// Returns the card without a device so far.
    pub fn open() -> Result<Card, Errno> {
        let frame = [0; FRAME_MAX];
        let idle = (1u128 << SENDING) - 1;
        let outbox = Outbox { network: Network::open()?, frame, free: !idle, asked: false };
        Ok(Card { outbox, frame, there: false, change: None, idle })
    }

    /// Lets the server know of what was asked, and waits for news.
    pub fn wait(&mut self, deadline: Nanos) -> Result<(), Errno> {
        if core::mem::take(&mut self.outbox.asked) {
            self.outbox.network.ring();
        }
        match self.outbox.network.wait(deadline) {
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
            let news = self.outbox.network.pop()?;
            if news.what != CAME {
                self.note(&news);
                continue;
            }
            let bytes = (news.bytes as usize).min(FRAME_MAX);
            self.outbox.network.read(news.slot, &mut self.frame[..bytes]);
            self.lend(news.slot);
            // As a network may: without room for an answer a frame is lost.
            if self.outbox.free != 0 {
                return Some(bytes);
            }
        }
    }

    fn note(&mut self, news: &News) {
        match news.what {
            BACK if news.slot >= SENDING => self.outbox.free |= 1 << news.slot,
            BACK if self.there => self.lend(news.slot),
            BACK => self.idle |= 1 << news.slot,
            STATE if !self.there => {
                (self.there, self.change) = (true, Some(Change::Arrived(news.address)));
                let idle = core::mem::take(&mut self.idle);
                (0..SENDING).filter(|slot| idle >> slot & 1 != 0).for_each(|slot| self.lend(slot));
            }
            GONE => (self.there, self.change) = (false, Some(Change::Left)),
            _ => {}
        }
    }

    fn lend(&mut self, slot: u32) {
        self.outbox.asked = true;
        if let Err(errno) = self.outbox.network.lend(slot) {
            log!("a slot is lost: {errno:?}");
        }
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
        (self.there && self.outbox.free != 0).then_some(Sending(&mut self.outbox))
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
        outbox.network.write(slot, &outbox.frame[..length]);
        outbox.asked = true;
        match outbox.network.send(slot, length as u16) {
            Ok(()) => outbox.free &= !(1 << slot),
            Err(errno) => log!("a frame is lost: {errno:?}"),
        }
        result
    }
}
