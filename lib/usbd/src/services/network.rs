//! A network device: Ethernet frames in slots that a client shares with the controller.
//!
//! A slot is the client's or the server's, and of the latter some are the controller's. When a
//! device goes, a slot comes back once the controller has let go of it.
//!
//! The reader or writer of a `[[pipe]]` is such a client. The server judges whether frames keep the
//! contract of the pipe. Frames that a device kept before its reader lent a slot are no messages.

use super::clients::Clients;
use super::judged::{Judge, Judged};
use super::kind::{Kind, Next};
use crate::papers::Found;
use crate::platform::{Platform, log};
use crate::policy::REOPEN;
use crate::slots::Shape;
use crate::told::Pipes;
use diapason_abi::Errno;
use diapason_abi::Nanos;
use diapason_contract::network::{
    ASKS, Ask, BACK, BEGIN, BEGUN, CAME, CONNECTED, DATA, DONE, DROPPED, FRAME_MAX, GONE, LEND,
    LOST_BEFORE, NONSENSE, News, OPENED, OUTSIDE, QUEUED, RECORDS, SEND, SENT, SLOT_BYTES, SLOTS,
    STATE, TOLD,
};
use diapason_contract::threads::ServiceKind;
use diapason_pipe::{Reader, Writer};
use diapason_usb::class::cdc_ecm::{self, DEPTH, Ethernet, NetworkEvent};
use diapason_usb::class::endpoint::SETTLING;

// The class takes what clients may give.
const _: () = assert!(FRAME_MAX == cdc_ecm::FRAME_MAX as usize);
// The plan counts as many transfers as the driver keeps queued.
const _: () = assert!(QUEUED == DEPTH);

/// Bytes of the time in a frame.
const STAMP: usize = 8;

/// The state of a device.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    address: [u8; 6],
    speed: [u32; 2],
    connected: bool,
}

/// A frame that the device is to have.
#[derive(Clone, Copy, Default)]
struct Begun {
    written: u64,
    at: u64,
    /// It came too soon for its pipe.
    outside: bool,
}

/// The network and its client. Slots are bits of words.
pub(crate) struct Network<P: Platform> {
    asks: Reader<'static, Ask, RECORDS>,
    news: Writer<'static, News, RECORDS>,
    clients: Clients<P::Memory>,
    state: Option<State>,
    /// Slots that are the server's.
    held: u128,
    /// Those of them that are for frames that come.
    lent: u128,
    /// Those whose device is gone.
    left: u128,
    /// Those that the device is to have next, of the reader of a pipe.
    again: u128,
    /// The count of received data that was no frame.
    damaged: u64,
    /// The frames that go, by their slots.
    begun: [Begun; SLOTS as usize],
    judge: Judge,
    /// The pipe goes to the device.
    is_written: bool,
    /// Something was lost before the next frame that comes.
    lost_before: bool,
    /// A device was open before.
    was_open: bool,
    /// The time from which on frames are none that the device kept; `None` before it has a slot.
    settled: Option<Nanos>,
    /// When slots that were lent without a word are looked for, if the device has none.
    look_at: Nanos,
}

// A slot is a bit.
const _: () = assert!(SLOTS <= u128::BITS);

/// The bits of all slots.
const ALL: u128 = u128::MAX >> (u128::BITS - SLOTS);

/// Returns the bit of a slot; none of what is no slot.
const fn bit(slot: u32) -> u128 {
    if slot < SLOTS { 1 << slot } else { 0 }
}

/// Returns the slots of these bits.
fn slots(mut bits: u128) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let slot = (bits != 0).then(|| bits.trailing_zeros())?;
        bits &= bits - 1;
        Some(slot)
    })
}

/// The time of a record in 32 bits.
fn narrow(time: Nanos) -> u32 {
    u32::try_from(time.0).unwrap_or(u32::MAX)
}

impl<P: Platform> Network<P> {
    /// Returns the service without a device.
    ///
    /// # Errors
    /// A pipe or the shared memory is not there.
    pub fn new(platform: &P, pipes: &Pipes) -> Result<Network<P>, Errno> {
        Ok(Network {
            asks: platform.reader(ASKS)?,
            news: platform.writer(TOLD)?,
            clients: Clients::sharing(platform.memory(DATA)?, SLOT_BYTES as usize),
            state: None,
            held: 0,
            lent: 0,
            left: 0,
            again: 0,
            damaged: 0,
            begun: [Begun::default(); SLOTS as usize],
            judge: Judge::new(ServiceKind::Networks, pipes),
            is_written: pipes.network == SEND,
            lost_before: false,
            was_open: false,
            settled: None,
            look_at: Nanos::FOREVER,
        })
    }

    /// Returns whether frames that come are messages of a pipe.
    fn is_read(&self) -> bool {
        self.judge.wanted().is_some() && !self.is_written
    }

    /// Returns news of this kind at this time.
    fn news(&self, what: u32, now: Nanos) -> News {
        let State { address, speed, connected } =
            self.state.unwrap_or(State { address: [0; 6], speed: [0; 2], connected: false });
        let (taken, time, flags) = (now.0, now.0, if connected { CONNECTED } else { 0 });
        let (slot, bytes, status) = (0, 0, DONE);
        let (begun, moved, inexact) = (0, 0, 0);
        News {
            taken,
            time,
            begun,
            what,
            slot,
            bytes,
            status,
            speed,
            moved,
            inexact,
            address,
            flags,
        }
    }

    /// Puts news into the client's pipe, and rings.
    fn tell(&mut self, news: &News) {
        // A client that lets more wait than there is room for loses some.
        let _ = self.news.push(news);
        self.clients.ring(1);
    }

    /// Returns news of the fate of a slot, which may have had a frame for the device.
    fn fate(&self, (slot, is_sent): (u32, bool), status: u32, now: Nanos) -> News {
        let mut news = News { slot, status, ..self.news(BACK, now) };
        if is_sent {
            let Begun { written, at, outside } = self.begun[slot as usize % self.begun.len()];
            (news.time, news.begun) = (written, at);
            news.flags |= SENT | if outside { OUTSIDE } else { 0 };
        }
        news
    }

    /// Gives a slot back to the client.
    fn give_back(&mut self, slot: u32, status: u32, now: Nanos) {
        let is_sent = self.lent & bit(slot) == 0;
        self.let_go(slot);
        self.tell(&self.fate((slot, is_sent), status, now));
    }

    /// Notes that a slot is the client's again.
    fn let_go(&mut self, slot: u32) {
        self.held &= !bit(slot);
        self.lent &= !bit(slot);
    }

    /// Gives back the slots of `among` that the controller does not have, and returns the others.
    fn drop_slots(&mut self, among: u128, now: Nanos) -> u128 {
        let mut left = among;
        for slot in slots(among) {
            if !self.clients.has_lent(slot) {
                left &= !bit(slot);
                self.give_back(slot, DROPPED, now);
            }
        }
        left
    }

    /// Takes in a frame that came to a slot.
    fn come(&mut self, slot: u32, bytes: u32, now: Nanos) {
        let is_old = self.settled.is_none_or(|settled| now < settled);
        if self.is_read() && is_old {
            self.again |= bit(slot);
            return;
        }
        let mut news = News { slot, bytes, ..self.news(CAME, now) };
        if self.is_read() {
            let stamp = self.judge.stamp().filter(|at| at + STAMP <= bytes as usize);
            let time = stamp.and_then(|at| self.clients.word(slot, at)).map(Nanos);
            let Judged { time, moved, outside } = self.judge.judge_at(time, bytes, now);
            (news.time, news.moved) = (time.0, narrow(moved.beyond));
            news.inexact = narrow(moved.inexact);
            news.flags |= if outside { OUTSIDE } else { 0 };
            let lost = core::mem::take(&mut self.lost_before);
            news.flags |= if lost { LOST_BEFORE } else { 0 };
        }
        self.let_go(slot);
        self.tell(&news);
    }

    /// More is known of the device.
    fn learn(&mut self, now: Nanos, change: impl FnOnce(&mut State)) {
        let Some(known) = self.state else { return };
        let mut state = known;
        change(&mut state);
        if state != known {
            self.state = Some(state);
            self.tell(&self.news(STATE, now));
        }
    }

    fn opened(&mut self, address: [u8; 6], now: Nanos) {
        let [a, b, c, d, e, f] = address;
        log!(P, "network: {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");
        self.state = Some(State { address, speed: [0; 2], connected: true });
        // Frames that were sent while no device was open are lost.
        self.lost_before |= core::mem::replace(&mut self.was_open, true);
        self.settled = None;
        self.judge.restart();
        let mut news = self.news(STATE, now);
        news.flags |= OPENED;
        self.tell(&news);
    }

    /// Does what a client wants; what cannot be done comes back.
    fn begin(&mut self, class: Option<&mut Ethernet>, ask: &Ask, now: Nanos) -> Result<(), u32> {
        if ask.what == BEGIN {
            if self.is_read() {
                self.again |= ALL & !self.held;
                (self.held, self.lent) = (ALL, ALL);
            }
            let mut news = self.news(BEGUN, now);
            news.flags |= if self.state.is_some() { OPENED } else { 0 };
            self.tell(&news);
            return Ok(());
        }
        let (slot, mine) = (ask.slot, bit(ask.slot));
        if mine == 0 || self.held & mine != 0 {
            return Err(NONSENSE);
        }
        if ask.what == LEND && self.is_read() {
            (self.held, self.lent) = (self.held | mine, self.lent | mine);
            self.again |= mine;
            return Ok(());
        }
        if ask.what == SEND {
            let outside = self.judges(ask, now);
            let begun = Begun { written: ask.written, at: now.0, outside };
            self.begun[slot as usize % self.begun.len()] = begun;
        }
        let class = class.ok_or(DROPPED)?;
        let known = match ask.what {
            SEND => class.send(slot, ask.bytes.into()),
            LEND => class.lend(slot, SLOT_BYTES),
            _ => false,
        };
        if !known {
            return Err(NONSENSE);
        }
        self.held |= mine;
        self.lent |= if ask.what == LEND { mine } else { 0 };
        Ok(())
    }

    /// Lends the device the slots that it is to have next, if the controller has let go of them.
    fn lend_again(&mut self, class: &mut Ethernet, now: Nanos) {
        for slot in slots(self.again) {
            if !self.clients.has_lent(slot) && class.lend(slot, SLOT_BYTES) {
                self.again &= !bit(slot);
                self.settled.get_or_insert(now + SETTLING);
            }
        }
    }

    /// Returns whether a frame for the device is outside of the contract of its pipe, if there is
    /// one: none is written before it is due.
    fn judges(&mut self, ask: &Ask, now: Nanos) -> bool {
        if !self.is_written || self.judge.wanted().is_none() {
            return false;
        }
        let written = Nanos(ask.written);
        let judged = self.judge.judge_at(Some(written.min(now)), ask.bytes.into(), now);
        judged.outside || written > now
    }
}

impl<P: Platform> Kind<P> for Network<P> {
    type Class = Ethernet;

    const NAME: &'static str = "a network device";
    const MEMORY: &'static [Shape] = &[Shape { bytes: 64, count: 4 }];

    fn find(&self, found: &Found<'_>, _: Nanos) -> Option<Ethernet> {
        Ethernet::find(&found.set)
    }

    fn is_message(event: &NetworkEvent) -> bool {
        matches!(event, NetworkEvent::Came { .. })
    }

    fn hear(&mut self, event: NetworkEvent, now: Nanos) -> Next {
        match event {
            NetworkEvent::Opened { address } => self.opened(address, now),
            NetworkEvent::Connected(connected) => {
                self.learn(now, |state| state.connected = connected)
            }
            NetworkEvent::Speed { down, up } => self.learn(now, |state| state.speed = [down, up]),
            NetworkEvent::Came { place, bytes } => self.come(place, bytes, now),
            NetworkEvent::Sent { place } => self.give_back(place, DONE, now),
            NetworkEvent::Damaged => {
                self.damaged += 1;
                self.lost_before = true;
            }
            NetworkEvent::Failed => {
                log!(P, "network: the device does not work");
                return Next::End;
            }
        }
        Next::On
    }

    fn attend(&mut self, mut class: Option<&mut Ethernet>, now: Nanos) {
        self.left = self.drop_slots(self.left, now);
        while let Some(ask) = self.asks.pop() {
            if let Err(status) = self.begin(class.as_deref_mut(), &ask, now) {
                // The owner has not changed.
                let of = (ask.slot, ask.what == SEND);
                self.tell(&self.fate(of, status, now));
            }
        }
        let is_starved = class.is_some() && self.is_read() && self.lent == 0;
        if let Some(class) = class.filter(|_| self.again != 0) {
            self.lend_again(class, now);
        }
        self.look_at = if is_starved { now + REOPEN } else { Nanos::FOREVER };
    }

    fn next_wake(&self) -> Nanos {
        self.look_at
    }

    fn forget(&mut self, now: Nanos) {
        self.look_at = Nanos::FOREVER;
        // The next device gets the slots of a pipe's reader.
        self.again = if self.is_read() { self.lent } else { 0 };
        self.left = self.drop_slots(self.held & !self.again, now);
        if self.state.take().is_some() {
            self.tell(&self.news(GONE, now));
        }
        match core::mem::take(&mut self.damaged) {
            0 => {}
            damaged => log!(P, "network: {damaged} things came that were no frames"),
        }
    }

    fn clients(&mut self) -> Option<&mut Clients<P::Memory>> {
        Some(&mut self.clients)
    }
}
