//! A network device: Ethernet frames in slots that clients share with the controller.
//!
//! Each direction has a client of its own, whose memory only that client and the server use. A
//! server has the directions of its pipes, or both if the description has no pipe of such a device.

mod incoming;
mod outgoing;

use super::clients::{Clients, SECOND};
use super::kind::{Kind, Next};
use crate::papers::Found;
use crate::platform::{Platform, log};
use crate::slots::Shape;
use crate::told::Pipes;
use diapason_abi::{Errno, Nanos};
use diapason_contract::network::{
    BEGUN, CONNECTED, DONE, FRAME_MAX, FROM, GONE, HOME, News, OPENED, QUEUED, SLOT_BYTES, SLOTS,
    STATE, TO, UNDER_WAY,
};
use diapason_contract::source::{PipeSource, is_used};
use diapason_contract::threads::ServiceKind;
use diapason_usb::class::cdc_ecm::{self, DEPTH, Ethernet, NetworkEvent, SENT_MAX};
use incoming::Incoming;
use outgoing::Outgoing;

// The class takes what clients may give.
const _: () = assert!(FRAME_MAX == cdc_ecm::FRAME_MAX as usize);
// The plan counts as many transfers as the driver keeps queued, and no frame more than it takes.
const _: () = assert!(QUEUED == DEPTH && UNDER_WAY <= SENT_MAX as u64);
// A slot is a bit, and those of the other direction are places behind it.
const _: () = assert!(SLOTS <= u128::BITS && SLOTS <= SECOND);

/// The state of a device.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    address: [u8; 6],
    speed: [u32; 2],
    connected: bool,
}

/// The network and its clients.
pub(crate) struct Network<P: Platform> {
    incoming: Option<Incoming>,
    outgoing: Option<Outgoing>,
    clients: Clients<P::Memory>,
    state: Option<State>,
    /// The count of received data that was no frame.
    damaged: u64,
}

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

/// Returns news of this kind about a slot, or about none.
fn about((what, slot, status): (u32, u32, u32), state: Option<&State>, now: Nanos) -> News {
    let unknown = State { address: [0; 6], speed: [0; 2], connected: false };
    let State { address, speed, connected } = *state.unwrap_or(&unknown);
    News {
        taken: now.0,
        time: now.0,
        begun: 0,
        what,
        slot,
        bytes: 0,
        status,
        speed,
        moved: 0,
        inexact: 0,
        address,
        flags: if connected { CONNECTED } else { 0 },
    }
}

/// Returns the answer to a client that begins: whether there is a device, and what is known of it.
fn begun(state: Option<&State>, now: Nanos) -> News {
    let mut news = about((BEGUN, 0, DONE), state, now);
    news.flags |= if state.is_some() { OPENED } else { 0 };
    news
}

impl<P: Platform> Network<P> {
    /// Returns the service without a device, and the semaphores that it gives.
    ///
    /// # Errors
    /// A pipe or shared memory is not there.
    pub fn new(
        platform: &P,
        pipes: &Pipes,
    ) -> Result<(Network<P>, &'static [&'static str]), Errno> {
        let has_pipe = |source: &PipeSource| pipes.shape(source.number()).is_some();
        let [comes, goes] =
            [FROM, TO].map(|names| is_used(ServiceKind::Networks, names.data, has_pipe));
        let memory = |way: bool, name| way.then(|| platform.memory(name)).transpose();
        let memories = [memory(comes, FROM.data)?, memory(goes, TO.data)?];
        let second = if comes { 1 << 1 } else { 1 };
        let network = Network {
            incoming: comes.then(|| Incoming::new(platform, pipes)).transpose()?,
            outgoing: goes.then(|| Outgoing::new(platform, pipes, second)).transpose()?,
            clients: Clients::sharing_each(memories, SLOT_BYTES as usize),
            state: None,
            damaged: 0,
        };
        let ready = HOME.ready;
        let bells = match (comes, goes) {
            (true, false) => &ready[..1],
            (false, true) => &ready[1..],
            _ => ready,
        };
        Ok((network, bells))
    }

    /// Tells all clients of the device.
    fn tell(&mut self, what: u32, flags: u16, now: Nanos) {
        let mut news = about((what, 0, DONE), self.state.as_ref(), now);
        news.flags |= flags;
        if let Some(incoming) = &mut self.incoming {
            incoming.tell(&mut self.clients, &news);
        }
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.tell(&mut self.clients, &news);
        }
    }

    /// More is known of the device.
    fn learn(&mut self, now: Nanos, change: impl FnOnce(&mut State)) {
        let Some(known) = self.state else { return };
        let mut state = known;
        change(&mut state);
        if state != known {
            self.state = Some(state);
            self.tell(STATE, 0, now);
        }
    }

    fn opened(&mut self, address: [u8; 6], now: Nanos) {
        let [a, b, c, d, e, f] = address;
        log!(P, "network: {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");
        self.state = Some(State { address, speed: [0; 2], connected: true });
        if let Some(incoming) = &mut self.incoming {
            incoming.opened();
        }
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.opened();
        }
        self.tell(STATE, OPENED, now);
    }
}

impl<P: Platform> Kind<P> for Network<P> {
    type Class = Ethernet;

    const NAME: &'static str = "a network device";
    /// An empty packet behind each other transfer that is queued, and what is no frame.
    const MEMORY: &'static [Shape] =
        &[Shape { bytes: 0, count: QUEUED as u8 / 2 }, Shape { bytes: 64, count: 4 }];

    fn find(&self, found: &Found<'_>, _: Nanos) -> Option<Ethernet> {
        Ethernet::find(&found.set)
    }

    fn is_message(event: &NetworkEvent) -> bool {
        matches!(event, NetworkEvent::Came { .. } | NetworkEvent::Sent { .. })
    }

    fn hear(&mut self, event: NetworkEvent, now: Nanos) -> Next {
        let state = self.state.as_ref();
        match event {
            NetworkEvent::Opened { address } => self.opened(address, now),
            NetworkEvent::Connected(connected) => {
                self.learn(now, |state| state.connected = connected)
            }
            NetworkEvent::Speed { down, up } => self.learn(now, |state| state.speed = [down, up]),
            NetworkEvent::Came { place, bytes } => {
                if let Some(incoming) = &mut self.incoming {
                    incoming.come(&mut self.clients, (place, bytes), state, now);
                }
            }
            NetworkEvent::Sent { place } => {
                if let Some(outgoing) = &mut self.outgoing {
                    outgoing.give_back(&mut self.clients, (place - SECOND, DONE), state, now);
                }
            }
            NetworkEvent::Damaged => {
                self.damaged += 1;
                if let Some(incoming) = &mut self.incoming {
                    incoming.lost();
                }
            }
            NetworkEvent::Failed => {
                log!(P, "network: the device does not work");
                return Next::End;
            }
        }
        Next::On
    }

    fn attend(&mut self, mut class: Option<&mut Ethernet>, now: Nanos) {
        let (clients, state) = (&mut self.clients, self.state.as_ref());
        if let Some(incoming) = &mut self.incoming {
            incoming.attend(clients, class.as_deref_mut(), state, now);
        }
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.attend(clients, class, state, now);
        }
    }

    fn take_asks(&mut self) -> u32 {
        self.outgoing.as_mut().map_or(0, Outgoing::take_asks)
    }

    fn next_wake(&self) -> Nanos {
        self.incoming.as_ref().map_or(Nanos::FOREVER, Incoming::next_wake)
    }

    fn forget(&mut self, now: Nanos) {
        if let Some(incoming) = &mut self.incoming {
            incoming.forget();
        }
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.forget(&mut self.clients, self.state.as_ref(), now);
        }
        if self.state.take().is_some() {
            self.tell(GONE, 0, now);
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
