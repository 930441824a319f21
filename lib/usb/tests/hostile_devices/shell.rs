//! The layer between the driver and a class: memory for transfers, and one change at a time. It is
//! made after the server (`lib/usbd`), with a guard behind the memory of each transfer.

use crate::machine::Machine;
use crate::work::Work;
use diapason_abi::Nanos;
use diapason_random::Random;
use diapason_usb::class::{Completion, HEAD, Landed, Request, TransferFault};
use diapason_usb::context::EndpointKind::{IsochIn, IsochOut};
use diapason_usb::descriptor::Configuration;
use diapason_usb::trb::context_index;
use diapason_usb::xhci::{self, DeviceId, EndpointPlan, Finished, Refused, TransferOutcome};
use diapason_usb::{Setup, Speed};

/// Places of one device, and bytes of each.
pub const SLOTS: usize = 20;
pub const SLOT: usize = 40 << 10;
/// Behind the memory of a transfer.
const GUARD: [u8; 16] = [0xa5; 16];

enum Change {
    Alternate(u8, u8),
    Renew(u8),
}

/// The transfer that has a piece of memory: its bytes, and what the class calls its place if it
/// is shared with a client.
#[derive(Clone, Copy)]
struct Slot {
    length: u32,
    shared: Option<u32>,
}

/// A device and its class.
pub struct Shell {
    pub device: DeviceId,
    pub speed: Speed,
    /// The address of the shell's memory.
    base: usize,
    set: Vec<u8>,
    pub class: Box<dyn Work>,
    slots: [Option<Slot>; SLOTS],
    /// The wanted change of its endpoints, and whether the driver has taken it on.
    change: Option<(Change, bool)>,
    halted: u32,
    pub works: bool,
    pub gone: bool,
    pub ended: u64,
}

impl Shell {
    pub fn new(
        device: DeviceId,
        speed: Speed,
        base: usize,
        set: &[u8],
        class: Box<dyn Work>,
    ) -> Shell {
        Shell {
            device,
            speed,
            base,
            set: set.to_vec(),
            class,
            slots: [None; SLOTS],
            change: None,
            halted: 0,
            works: false,
            gone: false,
            ended: 0,
        }
    }

    /// Returns whether nothing of it is left.
    pub fn is_over(&self) -> bool {
        self.gone && self.slots.iter().all(Option::is_none)
    }

    /// The driver did what was asked for, or the device would not.
    pub fn settled(&mut self, now: Nanos, done: bool) {
        if !self.works {
            self.works = done;
            return;
        }
        let Some((change, _)) = self.change.take_if(|(_, asked)| *asked) else { return };
        let result = if done { Ok(&[][..]) } else { Err(TransferFault::Stall) };
        self.class.complete(now, Completion { endpoint: endpoint(&change), result });
    }

    /// A transfer ended: what is behind its memory is as it was, and its class hears of it.
    pub fn finish(&mut self, machine: &mut Machine, done: &Finished) {
        let slot = done.cookie as usize;
        let had = self.slots[slot].take().expect("it was reported before, or never queued");
        let length = had.length;
        let at = self.base + slot * SLOT;
        assert!(done.actual <= length, "{done:?}: more than the {length} there was room for");
        assert_eq!(machine.bytes(at + length as usize, GUARD.len()), GUARD, "{done:?}");
        self.ended += 1;
        let isochronous = machine.driver.endpoint_kind(self.device, done.endpoint);
        let fault = fault(done.outcome);
        let halts = done.endpoint != 0 && !matches!(isochronous, Some(IsochIn | IsochOut));
        if halts && matches!(fault, Some(TransferFault::Stall | TransferFault::Damaged)) {
            let _ = machine.driver.cancel_all(self.device, done.endpoint);
            self.halted |= 1 << context_index(done.endpoint);
        }
        if self.works && !self.gone {
            let bytes = machine.bytes(at, done.actual as usize);
            let result = fault.map_or(Ok(&bytes[..]), Err);
            self.tell(machine.now(), done.endpoint, had.shared, result);
        }
    }

    /// The class hears how a transfer ended.
    fn tell(
        &mut self,
        now: Nanos,
        endpoint: u8,
        shared: Option<u32>,
        result: Result<&[u8], TransferFault>,
    ) {
        let Some(place) = shared else {
            return self.class.complete(now, Completion { endpoint, result });
        };
        let from_device = endpoint & 0x80 != 0;
        let head = result.ok().filter(|_| from_device).unwrap_or_default();
        let head = &head[..head.len().min(HEAD)];
        let result = result.map(<[u8]>::len);
        self.class.landed(now, Landed { endpoint, place, result, head });
    }

    /// Does what its class and its client want.
    pub fn drive(&mut self, machine: &mut Machine, random: &mut Random) {
        if !self.works || self.gone {
            return;
        }
        let now = machine.now();
        self.class.wake(now);
        if random.one_in(4) {
            self.class.client(random, now);
        }
        for round in 0.. {
            assert!(round < 1_000, "a class that never has enough");
            if !self.step(machine, now) {
                break;
            }
        }
        self.ask(machine, now);
    }

    /// The next request, if there is one.
    fn step(&mut self, machine: &mut Machine, now: Nanos) -> bool {
        let Some(request) = self.class.request(now) else { return false };
        let mut shared = None;
        let (endpoint, setup, length, data) = match request {
            Request::In { endpoint, length } => (endpoint, None, length, vec![]),
            Request::Out { endpoint, data } => (endpoint, None, data.len(), data.to_vec()),
            Request::Control { setup, data } => {
                (0, Some(setup), setup.length.into(), data.to_vec())
            }
            Request::Alternate { interface, alternate } => {
                self.change = Some((Change::Alternate(interface, alternate), false));
                return true;
            }
            Request::Recover { endpoint } => {
                self.recover(endpoint, now);
                return true;
            }
            Request::Cancel { endpoint } => {
                let _ = machine.driver.cancel_all(self.device, endpoint);
                return true;
            }
            Request::Shared { endpoint, place, length } => {
                shared = Some(place);
                (endpoint, None, length, vec![])
            }
        };
        if !self.submit(machine, (endpoint, setup), (length, shared), &data) {
            self.tell(now, endpoint, shared, Err(TransferFault::Gone));
        }
        true
    }

    fn recover(&mut self, endpoint: u8, now: Nanos) {
        let bit = 1 << context_index(endpoint);
        if self.halted & bit == 0 {
            self.change = Some((Change::Renew(endpoint), false));
            return;
        }
        self.halted &= !bit;
        self.class.complete(now, Completion { endpoint, result: Ok(&[]) });
    }

    fn submit(
        &mut self,
        machine: &mut Machine,
        (endpoint, setup): (u8, Option<Setup>),
        (length, shared): (usize, Option<u32>),
        data: &[u8],
    ) -> bool {
        let free = self.slots.iter().position(Option::is_none);
        let Some(slot) = free.filter(|_| length + GUARD.len() <= SLOT) else { return false };
        let at = self.base + slot * SLOT;
        machine.fill(at, data);
        machine.fill(at + length, &GUARD);
        let buffer = machine.buffer(at, length as u32);
        let cookie = slot as u64;
        let queued = match setup {
            Some(setup) => machine.driver.control(self.device, setup, buffer, cookie),
            None => {
                let plain = xhci::Request::new(self.device, endpoint, buffer);
                machine.driver.submit(&xhci::Request { cookie, ..plain })
            }
        };
        if queued.is_ok() {
            self.slots[slot] = Some(Slot { length: length as u32, shared });
        }
        queued.is_ok()
    }

    /// Asks the driver for the change that is wanted.
    fn ask(&mut self, machine: &mut Machine, now: Nanos) {
        let Some((change, asked @ false)) = &mut self.change else { return };
        let answer = match *change {
            Change::Renew(endpoint) => machine.driver.renew(self.device, endpoint),
            Change::Alternate(interface, alternate) => {
                let set = Configuration::parse_once(&self.set, self.speed).expect("it was read");
                let setting = set.interface(interface, alternate);
                let plans: Vec<EndpointPlan> = setting
                    .into_iter()
                    .flat_map(|setting| setting.endpoints())
                    .map(EndpointPlan::new)
                    .collect();
                let others = (0..=u8::MAX).filter_map(|other| set.interface(interface, other));
                let mut gone: Vec<u8> =
                    others.flat_map(|other| other.endpoints()).map(|e| e.address).collect();
                gone.sort_unstable();
                gone.dedup();
                machine.driver.set_alternate(self.device, (interface, alternate), &gone, &plans)
            }
        };
        let fault = match answer {
            Ok(()) => {
                *asked = true;
                return;
            }
            Err(Refused::Busy) => return,
            Err(Refused::Unfit(_)) => TransferFault::NoBandwidth,
            Err(_) => TransferFault::Stall,
        };
        let endpoint = endpoint(change);
        self.change = None;
        self.class.complete(now, Completion { endpoint, result: Err(fault) });
    }
}

fn endpoint(change: &Change) -> u8 {
    match change {
        Change::Alternate(..) => 0,
        Change::Renew(endpoint) => *endpoint,
    }
}

/// As in the server.
fn fault(outcome: TransferOutcome) -> Option<TransferFault> {
    match outcome {
        TransferOutcome::Done | TransferOutcome::Short => None,
        TransferOutcome::Stalled => Some(TransferFault::Stall),
        TransferOutcome::Cancelled | TransferOutcome::Unscheduled => Some(TransferFault::Cancelled),
        TransferOutcome::Gone | TransferOutcome::Died => Some(TransferFault::Gone),
        _ => Some(TransferFault::Damaged),
    }
}
