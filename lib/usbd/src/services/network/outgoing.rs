//! Frames to a network device.
//!
//! A slot is the writer's or the server's. When a device goes, a slot comes back once the
//! controller has let go of it. The server judges whether frames keep the contract of their pipe.

use super::{State, about, begun, bit, slots};
use crate::platform::Platform;
use crate::services::clients::{Clients, SECOND};
use crate::services::judged::Judge;
use crate::told::Pipes;
use diapason_abi::{Errno, Nanos};
use diapason_contract::network::{
    Ask, BACK, BEGIN, DROPPED, NONSENSE, News, OUTSIDE, RECORDS, SEND, SINK, SLOTS, TO,
};
use diapason_pipe::{Reader, Writer};
use diapason_usb::class::cdc_ecm::Ethernet;
use diapason_usb::xhci::Dma;

/// A frame that the device is to have.
#[derive(Clone, Copy, Default)]
struct Begun {
    written: u64,
    at: u64,
    /// It came too soon for its pipe.
    outside: bool,
}

/// The frames that go, and their writer. Slots are bits of words.
pub(super) struct Outgoing {
    asks: Reader<'static, Ask, RECORDS>,
    news: Writer<'static, News, RECORDS>,
    /// The bell of the writer.
    bell: u32,
    /// Slots that are the server's.
    held: u128,
    /// Those whose device is gone.
    left: u128,
    /// The frames that go, by their slots.
    begun: [Begun; SLOTS as usize],
    judge: Judge,
    /// Frames that the writer gave since somebody asked.
    given: u32,
}

impl Outgoing {
    /// Returns it without a device and without frames.
    ///
    /// # Errors
    /// A pipe is not there.
    pub fn new<P: Platform>(platform: &P, pipes: &Pipes, bell: u32) -> Result<Outgoing, Errno> {
        Ok(Outgoing {
            asks: platform.reader(TO.asks)?,
            news: platform.writer(TO.news)?,
            bell,
            held: 0,
            left: 0,
            begun: [Begun::default(); SLOTS as usize],
            judge: Judge::of(&SINK, pipes),
            given: 0,
        })
    }

    /// Puts news into the writer's pipe, and rings.
    pub fn tell<D: Dma>(&mut self, clients: &mut Clients<D>, news: &News) {
        // A writer that lets more wait than there is room for loses some.
        let _ = self.news.push(news);
        clients.ring(self.bell);
    }

    /// Returns how many frames the writer gave since the last call. Each is work for the server,
    /// besides its end.
    pub const fn take_asks(&mut self) -> u32 {
        core::mem::replace(&mut self.given, 0)
    }

    /// Notes that a device is open.
    pub fn opened(&mut self) {
        self.judge.restart();
    }

    /// Returns news of the fate of the frame in a slot.
    fn fate(&self, (slot, status): (u32, u32), state: Option<&State>, now: Nanos) -> News {
        let mut news = about((BACK, slot, status), state, now);
        let Begun { written, at, outside } = self.begun[slot as usize % self.begun.len()];
        (news.time, news.begun) = (written, at);
        news.flags |= if outside { OUTSIDE } else { 0 };
        news
    }

    /// Gives a slot back to the writer.
    pub fn give_back<D: Dma>(
        &mut self,
        clients: &mut Clients<D>,
        (slot, status): (u32, u32),
        state: Option<&State>,
        now: Nanos,
    ) {
        self.held &= !bit(slot);
        let news = self.fate((slot, status), state, now);
        self.tell(clients, &news);
    }

    /// Gives back the slots of `among` that the controller does not have, and returns the others.
    fn drop_slots<D: Dma>(
        &mut self,
        clients: &mut Clients<D>,
        among: u128,
        state: Option<&State>,
        now: Nanos,
    ) -> u128 {
        let mut left = among;
        for slot in slots(among) {
            if !clients.has_lent(SECOND + slot) {
                left &= !bit(slot);
                self.give_back(clients, (slot, DROPPED), state, now);
            }
        }
        left
    }

    /// Does what the writer wants; what cannot be done comes back.
    pub fn attend<D: Dma>(
        &mut self,
        clients: &mut Clients<D>,
        mut class: Option<&mut Ethernet>,
        state: Option<&State>,
        now: Nanos,
    ) {
        self.left = self.drop_slots(clients, self.left, state, now);
        while let Some(ask) = self.asks.pop() {
            if ask.what == BEGIN {
                self.tell(clients, &begun(state, now));
                continue;
            }
            self.given += 1;
            if let Err(status) = self.send(class.as_deref_mut(), &ask, now) {
                // The owner has not changed.
                let news = self.fate((ask.slot, status), state, now);
                self.tell(clients, &news);
            }
        }
    }

    /// Gives the device a frame.
    fn send(&mut self, class: Option<&mut Ethernet>, ask: &Ask, now: Nanos) -> Result<(), u32> {
        let (slot, mine) = (ask.slot, bit(ask.slot));
        if mine == 0 || self.held & mine != 0 || ask.what != SEND {
            return Err(NONSENSE);
        }
        let outside = self.judges(ask, now);
        let begun = Begun { written: ask.written, at: now.0, outside };
        self.begun[slot as usize % self.begun.len()] = begun;
        let class = class.ok_or(DROPPED)?;
        if !class.send(SECOND + slot, ask.bytes.into()) {
            return Err(NONSENSE);
        }
        self.held |= mine;
        Ok(())
    }

    /// Returns whether a frame is outside of the contract of its pipe, if there is one: none is
    /// written before it is due.
    fn judges(&mut self, ask: &Ask, now: Nanos) -> bool {
        if self.judge.wanted().is_none() {
            return false;
        }
        let written = Nanos(ask.written);
        let judged = self.judge.judge_at(Some(written.min(now)), ask.bytes.into(), now);
        judged.outside || written > now
    }

    /// Notes that the device is gone: every frame comes back.
    pub fn forget<D: Dma>(&mut self, clients: &mut Clients<D>, state: Option<&State>, now: Nanos) {
        self.left = self.drop_slots(clients, self.held, state, now);
    }
}
