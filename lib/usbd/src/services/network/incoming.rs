//! Frames from a network device.
//!
//! A slot is the reader's or the server's, and of the latter some are the controller's. The server
//! keeps its slots when a device goes, and lends them to the next one.
//!
//! The server judges whether frames keep the contract of their pipe. Frames that a device kept
//! before its reader lent a slot are no messages.

use super::{ALL, State, about, begun, bit, slots};
use crate::platform::Platform;
use crate::policy::REOPEN;
use crate::services::clients::Clients;
use crate::services::judged::{Judge, Judged};
use crate::told::Pipes;
use diapason_abi::{Errno, Nanos};
use diapason_contract::network::{
    Ask, BACK, BEGIN, CAME, DONE, FROM, LEND, LOST_BEFORE, NONSENSE, News, OUTSIDE, RECORDS,
    SLOT_BYTES, SOURCE,
};
use diapason_pipe::{Reader, Writer};
use diapason_usb::class::cdc_ecm::Ethernet;
use diapason_usb::class::endpoint::SETTLING;
use diapason_usb::xhci::Dma;

/// Bytes of the time in a frame.
const STAMP: usize = 8;
/// The bell of the reader.
const BELL: u32 = 1;

/// The frames that come, and their reader. Slots are bits of words.
pub(super) struct Incoming {
    asks: Reader<'static, Ask, RECORDS>,
    news: Writer<'static, News, RECORDS>,
    /// Slots that are the server's.
    lent: u128,
    /// Those that the device is to have next.
    again: u128,
    judge: Judge,
    /// Something was lost before the next frame that comes.
    lost_before: bool,
    /// A device was open before.
    was_open: bool,
    /// The time from which on frames are none that the device kept; `None` before it has a slot.
    settled: Option<Nanos>,
    /// When slots that were lent without a word are looked for, if the device has none.
    look_at: Nanos,
}

/// The time of a record in 32 bits.
fn narrow(time: Nanos) -> u32 {
    u32::try_from(time.0).unwrap_or(u32::MAX)
}

impl Incoming {
    /// Returns it without a device and without slots.
    ///
    /// # Errors
    /// A pipe is not there.
    pub fn new<P: Platform>(platform: &P, pipes: &Pipes) -> Result<Incoming, Errno> {
        Ok(Incoming {
            asks: platform.reader(FROM.asks)?,
            news: platform.writer(FROM.news)?,
            lent: 0,
            again: 0,
            judge: Judge::of(&SOURCE, pipes),
            lost_before: false,
            was_open: false,
            settled: None,
            look_at: Nanos::FOREVER,
        })
    }

    /// Puts news into the reader's pipe, and rings.
    pub fn tell<D: Dma>(&mut self, clients: &mut Clients<D>, news: &News) {
        // A reader that lets more wait than there is room for loses some.
        let _ = self.news.push(news);
        clients.ring(BELL);
    }

    /// Notes that a device is open.
    pub fn opened(&mut self) {
        // Frames that were sent while no device was open are lost.
        self.lost_before |= core::mem::replace(&mut self.was_open, true);
        self.settled = None;
        self.judge.restart();
    }

    /// Notes that something came that was no frame.
    pub const fn lost(&mut self) {
        self.lost_before = true;
    }

    /// Takes in a frame of so many bytes that came to a slot.
    pub fn come<D: Dma>(
        &mut self,
        clients: &mut Clients<D>,
        (slot, bytes): (u32, u32),
        state: Option<&State>,
        now: Nanos,
    ) {
        let mut news = News { bytes, ..about((CAME, slot, DONE), state, now) };
        if self.judge.wanted().is_some() {
            if self.settled.is_none_or(|settled| now < settled) {
                self.again |= bit(slot);
                return;
            }
            let stamp = self.judge.stamp().filter(|at| at + STAMP <= bytes as usize);
            let time = stamp.and_then(|at| clients.word(slot, at)).map(Nanos);
            let Judged { time, moved, outside } = self.judge.judge_at(time, bytes, now);
            (news.time, news.moved) = (time.0, narrow(moved.beyond));
            news.inexact = narrow(moved.inexact);
            news.flags |= if outside { OUTSIDE } else { 0 };
            let lost = core::mem::take(&mut self.lost_before);
            news.flags |= if lost { LOST_BEFORE } else { 0 };
        }
        self.lent &= !bit(slot);
        self.tell(clients, &news);
    }

    /// Does what the reader wants, and lends the device the slots that it may have.
    pub fn attend<D: Dma>(
        &mut self,
        clients: &mut Clients<D>,
        class: Option<&mut Ethernet>,
        state: Option<&State>,
        now: Nanos,
    ) {
        while let Some(ask) = self.asks.pop() {
            if let Some(news) = self.answer(&ask, state, now) {
                self.tell(clients, &news);
            }
        }
        let is_starved = class.is_some() && self.lent == 0;
        if let Some(class) = class.filter(|_| self.again != 0) {
            self.lend_again(clients, class, now);
        }
        self.look_at = if is_starved { now + REOPEN } else { Nanos::FOREVER };
    }

    /// Takes in an ask. Returns the answer, if it has one.
    fn answer(&mut self, ask: &Ask, state: Option<&State>, now: Nanos) -> Option<News> {
        let mine = bit(ask.slot);
        match ask.what {
            BEGIN => {
                self.again |= ALL & !self.lent;
                self.lent = ALL;
                Some(begun(state, now))
            }
            LEND if mine & !self.lent != 0 => {
                self.lent |= mine;
                self.again |= mine;
                None
            }
            _ => Some(about((BACK, ask.slot, NONSENSE), state, now)),
        }
    }

    /// Lends the device the slots that it is to have next, if the controller has let go of them.
    fn lend_again<D: Dma>(&mut self, clients: &Clients<D>, class: &mut Ethernet, now: Nanos) {
        for slot in slots(self.again) {
            if !clients.has_lent(slot) && class.lend(slot, SLOT_BYTES) {
                self.again &= !bit(slot);
                self.settled.get_or_insert(now + SETTLING);
            }
        }
    }

    /// Returns when slots are looked for.
    pub const fn next_wake(&self) -> Nanos {
        self.look_at
    }

    /// Notes that the device is gone. The next device gets the slots.
    pub const fn forget(&mut self) {
        self.look_at = Nanos::FOREVER;
        self.again = self.lent;
    }
}
