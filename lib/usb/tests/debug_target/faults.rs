//! Messages over a debug cable while everything fails that can: resets, pulled cables, halts, a
//! controller that is reset, a port that is disabled, a target that does not look for a while. Both
//! ends number their messages and repeat those that are not acknowledged. So each must come once,
//! whole and in order, and soon after each fault.

use crate::pair::{BASE, DATA, LOOK, Pair};
use diapason_abi::Nanos;
use diapason_devices::{Answer, Handshake};
use diapason_random::Random;
use diapason_usb::Setup;
use diapason_usb::debug_target::{LinkDirection, TargetEvent};
use diapason_usb::register::port;
use diapason_usb::setup::descriptor_type;
use diapason_usb::xhci::{Buffer, Dma, Mmio};
use std::collections::BTreeMap;

/// The variable with the number of faults of a run.
const FAULTS: &str = "DIAPASON_DEBUG_FAULTS";
/// The faults of a run without it.
const USUAL: u64 = 2_000;
/// Messages that may be under way in one direction.
const WINDOW: u64 = 4;
/// Bytes of a message: its number, the number that is expected, and what follows from the first.
const HEAD: usize = 16;
const LONGEST: usize = 2_000;
/// Memory of a message.
const PLACE: u64 = 0x1000;
const PACKET: usize = 1024;
/// Looks without a message before those that are not acknowledged are sent again.
const PATIENCE: u32 = 300;
/// Looks after a reset of the port, before the other computer asks anything: training of the link.
const TRAINING: u32 = 200;
/// Looks within which messages must come again, training included.
const RECOVERY: u32 = 20_000;
const CAPABILITY: u64 = diapason_xhc::EXTENDED + 0x30;
const CONTROL: u64 = CAPABILITY + 0x20;
const PORT: u64 = CAPABILITY + 0x28;
const ENABLE: u32 = 1 << 31;
const HALTS: [u32; 2] = [1 << 2, 1 << 3];
const ENDPOINTS: [u8; 2] = [0x81, 1];

/// The state of the capability, as its registers show it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum State {
    Off,
    Disconnected,
    Enabled,
    Configured,
    Resetting,
    Disabled,
}

use State::{Configured, Disabled, Disconnected, Enabled, Off, Resetting};

/// Every change of state that there is. Two of them may follow each other between two looks.
const CHANGES: &[(State, State)] = &[
    (Off, Disconnected),
    (Disconnected, Enabled),
    (Disconnected, Off),
    (Enabled, Configured),
    (Enabled, Resetting),
    (Enabled, Disabled),
    (Enabled, Disconnected),
    (Enabled, Off),
    (Configured, Enabled),
    (Configured, Resetting),
    (Configured, Disabled),
    (Configured, Disconnected),
    (Configured, Off),
    (Resetting, Enabled),
    (Resetting, Off),
    (Disabled, Enabled),
    (Disabled, Disconnected),
    (Disabled, Off),
];

/// Returns whether one change or two lead from one state to the other.
fn is_allowed(&(from, to): &(State, State)) -> bool {
    let leads = |from, to| CHANGES.contains(&(from, to));
    leads(from, to) || CHANGES.iter().any(|(first, by)| *first == from && leads(*by, to))
}

/// A fault of the cable, of one of its ends, or of the port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fault {
    Reset,
    Replug,
    ConfiguredAnew,
    Unconfigured,
    Halt(usize),
    SpuriousClear(usize),
    ControllerReset,
    SwitchedOff,
    PortDisabled,
    NoLooks,
    PeerPower,
}

const KINDS: [Fault; 13] = [
    Fault::Reset,
    Fault::Replug,
    Fault::ConfiguredAnew,
    Fault::Unconfigured,
    Fault::Halt(0),
    Fault::Halt(1),
    Fault::SpuriousClear(0),
    Fault::SpuriousClear(1),
    Fault::ControllerReset,
    Fault::SwitchedOff,
    Fault::PortDisabled,
    Fault::NoLooks,
    Fault::PeerPower,
];

fn message(number: u64, expected: u64) -> Vec<u8> {
    // No length is a multiple of a packet, so a short packet ends each.
    let length = HEAD + (number as usize * 37) % LONGEST;
    let length = length + usize::from(length.is_multiple_of(PACKET));
    let body = (0..length - HEAD).map(|at| (number as usize * 7 + at) as u8);
    [number.to_le_bytes(), expected.to_le_bytes()].concat().into_iter().chain(body).collect()
}

/// One end of the conversation.
#[derive(Default)]
struct End {
    /// The other end has all messages below this number.
    acknowledged: u64,
    /// The number that is sent next.
    next: u64,
    /// The number that must come next.
    expected: u64,
    /// Looks since the other end acknowledged something.
    silence: u32,
    repeated: u64,
}

impl End {
    /// Takes a message that came. It must be what the other end sent.
    fn hear(&mut self, bytes: &[u8]) {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let (number, acknowledged) = (word(0), word(8));
        assert!(bytes == message(number, acknowledged), "message {number} is damaged");
        if acknowledged > self.acknowledged {
            (self.acknowledged, self.silence) = (acknowledged, 0);
            self.next = self.next.max(acknowledged);
        }
        self.repeated += u64::from(number < self.expected);
        self.expected += u64::from(number == self.expected);
    }

    /// Returns the message that is to be sent now.
    fn speaks(&mut self) -> Option<Vec<u8>> {
        if self.silence > PATIENCE {
            (self.next, self.silence) = (self.acknowledged, 0);
        }
        (self.next < self.acknowledged + WINDOW).then(|| message(self.next, self.expected))
    }
}

/// The other computer: what it has got of a message, and what it still sends of one.
#[derive(Default)]
struct Host {
    end: End,
    got: Vec<u8>,
    rest: Vec<u8>,
    configured: bool,
    /// Looks until it configures the device.
    waits: u32,
}

struct Trial {
    pair: Pair,
    random: Random,
    target: End,
    host: Host,
    /// Places of memory from which nothing is sent now.
    free: Vec<u64>,
    lost: u64,
    state: State,
    changes: BTreeMap<(State, State), u64>,
}

impl Trial {
    fn new(seed: u64) -> Trial {
        let mut trial = Trial {
            pair: Pair::new(),
            random: Random::new(seed),
            target: End::default(),
            host: Host { waits: TRAINING, ..Host::default() },
            free: (0..WINDOW).collect(),
            lost: 0,
            state: Off,
            changes: BTreeMap::new(),
        };
        assert_eq!(trial.pair.hardware.read32(CAPABILITY) as u8, 10);
        (WINDOW..2 * WINDOW).for_each(|place| trial.lend(place));
        trial
    }

    fn lend(&mut self, place: u64) {
        let buffer = Buffer { address: BASE + DATA + place * PLACE, length: PLACE as u32 };
        assert!(self.pair.target.submit(LinkDirection::In, buffer, place));
    }

    /// Notes the state that registers show.
    fn note(&mut self) {
        let hardware = &mut self.pair.hardware;
        let (control, status) = (hardware.read32(CONTROL), hardware.read32(PORT));
        let state = match () {
            () if control & ENABLE == 0 => Off,
            () if status & 1 == 0 => Disconnected,
            () if status & port::RESET != 0 => Resetting,
            () if status & port::ENABLED == 0 => Disabled,
            () if control & 1 != 0 => Configured,
            () => Enabled,
        };
        let before = std::mem::replace(&mut self.state, state);
        if before != state {
            *self.changes.entry((before, state)).or_default() += 1;
        }
    }

    /// Both ends do what is due.
    fn step(&mut self, looks: bool) {
        if looks {
            self.pair.look();
        } else {
            self.pair.pass();
        }
        self.note();
        for told in self.pair.take() {
            self.heed(told);
        }
        self.target.silence += 1;
        while let Some(&place) = self.free.last()
            && let Some(bytes) = self.target.speaks()
        {
            let at = DATA + place * PLACE;
            self.pair.hardware.write(at, &bytes);
            let buffer = Buffer { address: BASE + at, length: bytes.len() as u32 };
            if !self.pair.target.submit(LinkDirection::Out, buffer, place) {
                break;
            }
            self.free.pop();
            self.target.next += 1;
        }
        self.host_step();
        self.note();
    }

    fn heed(&mut self, told: TargetEvent) {
        let TargetEvent::Done { way, cookie, moved } = told else { return };
        self.lost += u64::from(moved.is_none());
        if way == LinkDirection::Out {
            assert!(!self.free.contains(&cookie), "{cookie} ended twice");
            self.free.push(cookie);
            return;
        }
        if let Some(length) = moved {
            let mut bytes = vec![0; length as usize];
            self.pair.hardware.read(DATA + cookie * PLACE, &mut bytes);
            self.target.hear(&bytes);
        }
        self.lend(cookie);
    }

    fn host_step(&mut self) {
        let now = self.pair.now();
        if !self.pair.partner.is_there() {
            self.host.configured = false;
            self.host.waits = TRAINING;
        } else if self.host.configured {
            self.host.end.silence += 1;
            self.fetch(now);
            self.send(now);
        } else if self.host.waits == TRAINING {
            self.pair.partner.reset(now);
            self.host.waits -= 1;
        } else if self.host.waits > 0 {
            self.host.waits -= 1;
            if self.host.waits == TRAINING / 2 {
                let ask = Setup::get_descriptor(descriptor_type::DEVICE, 0, 0, 18);
                let _ = self.pair.partner.control(now, ask, &[]);
            }
        } else {
            self.configure(true);
        }
    }

    /// Forgets the messages that are on their way in part.
    fn begin_anew(&mut self) {
        self.host.got.clear();
        self.host.rest.clear();
    }

    fn configure(&mut self, on: bool) {
        let now = self.pair.now();
        let setup = Setup::set_configuration(on.into());
        self.host.configured = self.pair.partner.control(now, setup, &[]).is_ok() && on;
        self.begin_anew();
    }

    fn clear(&mut self, ring: usize) {
        let now = self.pair.now();
        let _ = self.pair.partner.control(now, Setup::clear_halt(ENDPOINTS[ring]), &[]);
    }

    fn fetch(&mut self, now: Nanos) {
        let mut packet = [0; PACKET];
        loop {
            match self.pair.partner.send(now, 0x81, &mut packet) {
                Answer::Data(length) => {
                    self.host.got.extend(&packet[..length]);
                    if length < PACKET {
                        self.host.end.hear(&std::mem::take(&mut self.host.got));
                    }
                    if self.random.one_in(3) {
                        return;
                    }
                }
                Answer::Stall => {
                    self.host.got.clear();
                    return self.clear(0);
                }
                Answer::Nak | Answer::Error => return,
            }
        }
    }

    fn send(&mut self, now: Nanos) {
        loop {
            if self.host.rest.is_empty() {
                let Some(bytes) = self.host.end.speaks() else { return };
                self.host.rest = bytes;
                self.host.end.next += 1;
            }
            let packet = &self.host.rest[..self.host.rest.len().min(PACKET)];
            match self.pair.partner.receive(now, 1, packet) {
                Handshake::Ack => {
                    self.host.rest.drain(..packet.len());
                    if self.random.one_in(3) {
                        return;
                    }
                }
                Handshake::Stall => {
                    // Packets before the halt may be lost.
                    self.host.end.next = self.host.end.acknowledged;
                    self.host.rest.clear();
                    return self.clear(1);
                }
                Handshake::Nak | Handshake::Error => return,
            }
        }
    }

    /// Goes on until no message is under way in part. A halt that nobody saw would leave the rest
    /// of one.
    fn between_messages(&mut self) -> Nanos {
        for looks in 0.. {
            let whole = self.host.got.is_empty() && self.host.rest.is_empty();
            if !self.host.configured || whole {
                break;
            }
            assert!(looks < RECOVERY, "a message does not end: {:?}", self.state);
            self.step(true);
        }
        self.pair.now()
    }

    fn inflict(&mut self, fault: Fault) {
        let now = self.pair.now();
        let steps = 1 + self.random.below(150);
        match fault {
            Fault::Reset => {
                self.host.waits = TRAINING;
                self.host.configured = false;
            }
            Fault::Replug => {
                self.pair.partner.unplugged(now);
                self.host.waits = TRAINING;
                self.host.configured = false;
                (0..steps).for_each(|_| self.pair.look());
            }
            Fault::ConfiguredAnew => {
                let now = self.between_messages();
                let _ = self.pair.partner.control(now, Setup::set_configuration(1), &[]);
            }
            Fault::Unconfigured => {
                self.configure(false);
                (0..steps).for_each(|_| self.pair.look());
            }
            Fault::Halt(ring) => self.pair.hardware.write32(CONTROL, ENABLE | HALTS[ring]),
            Fault::SpuriousClear(ring) => {
                self.between_messages();
                self.clear(ring);
            }
            Fault::ControllerReset => {
                let operational = u64::from(self.pair.hardware.read32(0) & 0xff);
                self.pair.hardware.write32(operational, 2);
            }
            Fault::SwitchedOff => self.pair.hardware.write32(CONTROL, 0),
            Fault::PortDisabled => {
                self.pair.hardware.write32(PORT, 0);
                (0..steps).for_each(|_| self.step(true));
                if self.random.one_in(2) {
                    let end = [Fault::Replug, Fault::ControllerReset, Fault::SwitchedOff];
                    let fault = self.random.pick(&end);
                    self.inflict(fault);
                    self.step(true);
                }
                self.pair.hardware.write32(PORT, port::ENABLED);
            }
            Fault::NoLooks => (0..20 * steps).for_each(|_| self.step(false)),
            Fault::PeerPower => {
                let xhc = &mut self.pair.hardware.0.borrow_mut().0;
                let delay = Nanos::from_micros(1);
                self.pair.partner = xhc.debug_partner(delay, &Default::default()).unwrap();
                self.host.waits = TRAINING;
                self.host.configured = false;
            }
        }
        self.note();
    }

    /// Returns the looks until messages have gone both ways again.
    fn recover(&mut self, fault: Fault) -> u32 {
        let wanted = [self.target.expected + 3, self.host.end.expected + 3];
        for looks in 0..RECOVERY {
            if self.target.expected >= wanted[0] && self.host.end.expected >= wanted[1] {
                return looks;
            }
            self.step(true);
        }
        panic!("no messages after {fault:?}: {:?}", self.state);
    }
}

#[test]
fn messages_outlive_every_fault_of_a_debug_cable() {
    let asked = std::env::var(FAULTS).ok().map(|text| text.parse().expect("a number"));
    let asked = asked.unwrap_or(USUAL);
    let mut trial = Trial::new(19);
    trial.recover(Fault::Reset);
    let (mut seen, mut longest) = (BTreeMap::<Fault, u64>::new(), 0);
    for _ in 0..asked {
        let quiet = trial.random.below(60);
        (0..quiet).for_each(|_| trial.step(true));
        let fault = trial.random.pick(&KINDS);
        *seen.entry(fault).or_default() += 1;
        trial.inflict(fault);
        // Another one may come before all is well again.
        if trial.random.one_in(2) {
            longest = longest.max(trial.recover(fault));
        }
    }
    trial.recover(Fault::Reset);
    let (came, went) = (trial.target.expected, trial.host.end.expected);
    let repeated = trial.target.repeated + trial.host.end.repeated;
    println!("{asked} faults: {seen:?}");
    println!("{came} messages came and {went} went, once and in order");
    println!("{repeated} came twice, {} were told to be lost", trial.lost);
    println!("the longest recovery took {} us", u64::from(longest) * LOOK.0 / 1_000);
    println!("{:?}", trial.changes);
    assert!(seen.len() == KINDS.len() && trial.lost > 0 && repeated > 0);
    assert!(trial.changes.keys().all(is_allowed), "a change of state that is not allowed");
    let least = if asked > USUAL { asked / 10_000 } else { 1 };
    for change in CHANGES {
        let times = trial.changes.get(change).copied().unwrap_or(0);
        assert!(times >= least, "{change:?} happened {times} times");
    }
}
