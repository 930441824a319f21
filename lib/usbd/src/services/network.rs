//! A network device: Ethernet frames in slots that a client shares with the controller.
//!
//! A slot is the client's or the server's, and of the latter some are the controller's. When a
//! device goes, a slot comes back once the controller has let go of it.

use super::clients::Clients;
use super::kind::{Kind, Next};
use crate::papers::Found;
use crate::platform::{Platform, log};
use crate::slots::Shape;
use diapason_abi::Errno;
use diapason_abi::Nanos;
use diapason_contract::network::{
    ASKS, Ask, BACK, CAME, DATA, DONE, DROPPED, FRAME_MAX, GONE, NONSENSE, News, RECORDS, SEND,
    SLOT_BYTES, SLOTS, STATE, TOLD,
};
use diapason_pipe::{Reader, Writer};
use diapason_usb::class::cdc_ecm::{self, Ethernet, NetworkEvent};

// The class takes what clients may give.
const _: () = assert!(FRAME_MAX == cdc_ecm::FRAME_MAX as usize);

/// The state of a device.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    address: [u8; 6],
    speed: [u32; 2],
    connected: bool,
}

/// The network and its client. Slots are bits of words.
pub(crate) struct Network<P: Platform> {
    asks: Reader<'static, Ask, RECORDS>,
    news: Writer<'static, News, RECORDS>,
    clients: Clients<P::Memory>,
    state: Option<State>,
    /// Slots that are the server's.
    held: u32,
    /// Those whose device is gone.
    left: u32,
    /// The count of received data that was no frame.
    damaged: u64,
}

/// Returns the bit of a slot; none of what is no slot.
const fn bit(slot: u32) -> u32 {
    if slot < SLOTS { 1 << slot } else { 0 }
}

impl<P: Platform> Network<P> {
    /// Returns the service without a device.
    ///
    /// # Errors
    /// A pipe or the shared memory is not there.
    pub fn new(platform: &P) -> Result<Network<P>, Errno> {
        Ok(Network {
            asks: platform.reader(ASKS)?,
            news: platform.writer(TOLD)?,
            clients: Clients::sharing(platform.memory(DATA)?, SLOT_BYTES as usize),
            state: None,
            held: 0,
            left: 0,
            damaged: 0,
        })
    }

    /// News about a slot, or about the device.
    fn tell(&mut self, what: u32, (slot, bytes, status): (u32, u32, u32), now: Nanos) {
        let State { address, speed, connected } =
            self.state.unwrap_or(State { address: [0; 6], speed: [0; 2], connected: false });
        let (taken, connected) = (now.0, connected.into());
        let news = News { taken, what, slot, bytes, status, speed, address, connected };
        // A client that lets more wait than there is room for loses some.
        let _ = self.news.push(&news);
        self.clients.ring(1);
    }

    /// A slot is the client's again.
    fn free(&mut self, what: u32, of: (u32, u32, u32), now: Nanos) {
        self.held &= !bit(of.0);
        self.tell(what, of, now);
    }

    /// Gives back the slots of `among` that the controller does not have, and returns the others.
    fn drop_slots(&mut self, among: u32, now: Nanos) -> u32 {
        let mut left = among;
        for slot in (0..SLOTS).filter(|slot| among & bit(*slot) != 0) {
            if !self.clients.has_lent(slot) {
                left &= !bit(slot);
                self.free(BACK, (slot, 0, DROPPED), now);
            }
        }
        left
    }

    /// More is known of the device.
    fn learn(&mut self, now: Nanos, change: impl FnOnce(&mut State)) {
        let Some(known) = self.state else { return };
        let mut state = known;
        change(&mut state);
        if state != known {
            self.state = Some(state);
            self.tell(STATE, (0, 0, DONE), now);
        }
    }

    fn opened(&mut self, address: [u8; 6], now: Nanos) {
        let [a, b, c, d, e, f] = address;
        log!(P, "network: {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");
        self.state = Some(State { address, speed: [0; 2], connected: true });
        self.tell(STATE, (0, 0, DONE), now);
    }

    /// Does what a client wants; what cannot be done comes back.
    fn begin(&mut self, class: Option<&mut Ethernet>, ask: &Ask) -> Result<(), u32> {
        let (slot, mine) = (ask.slot, bit(ask.slot));
        if mine == 0 || self.held & mine != 0 {
            return Err(NONSENSE);
        }
        let class = class.ok_or(DROPPED)?;
        let known = match ask.what {
            SEND => class.send(slot, ask.bytes.into()),
            _ => class.lend(slot, SLOT_BYTES),
        };
        if !known {
            return Err(NONSENSE);
        }
        self.held |= mine;
        Ok(())
    }
}

impl<P: Platform> Kind<P> for Network<P> {
    type Class = Ethernet;

    const NAME: &'static str = "a network device";
    const MEMORY: &'static [Shape] = &[Shape { bytes: 64, count: 4 }];

    fn find(&self, found: &Found<'_>, _: Nanos) -> Option<Ethernet> {
        Ethernet::find(&found.set)
    }

    fn hear(&mut self, event: NetworkEvent, now: Nanos) -> Next {
        match event {
            NetworkEvent::Opened { address } => self.opened(address, now),
            NetworkEvent::Connected(connected) => {
                self.learn(now, |state| state.connected = connected)
            }
            NetworkEvent::Speed { down, up } => self.learn(now, |state| state.speed = [down, up]),
            NetworkEvent::Came { place, bytes } => self.free(CAME, (place, bytes, DONE), now),
            NetworkEvent::Sent { place } => self.free(BACK, (place, 0, DONE), now),
            NetworkEvent::Damaged => self.damaged += 1,
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
            if let Err(status) = self.begin(class.as_deref_mut(), &ask) {
                // The owner has not changed.
                self.tell(BACK, (ask.slot, 0, status), now);
            }
        }
    }

    fn forget(&mut self, now: Nanos) {
        self.left = self.drop_slots(self.held, now);
        if self.state.take().is_some() {
            self.tell(GONE, (0, 0, DONE), now);
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
