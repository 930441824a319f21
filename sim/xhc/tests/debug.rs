//! The debug capability of one controller at the port of another.

use crate::support;
use crate::support::{Driver, Ring, Shared, bulk};
use diapason_abi::Nanos;
use diapason_random::Random;
use diapason_usb::register::{extended, port};
use diapason_usb::setup::descriptor_type;
use diapason_usb::trb::{Completion, Kind, Trb, bit};
use diapason_usb::{Setup, Speed};
use diapason_xhc::{CableEnd, Config, DebugConfig};

const CONFIG: DebugConfig =
    DebugConfig { port: 5, burst: 3, first_endpoint: 2, survives_reset: false };
const CONTROL: u64 = 0x20;
const PORT: u64 = 0x28;
const ENABLE: u32 = 1 << 31;
const RUNS: u32 = 1;
const OUT: u32 = 0;
const IN: u32 = 1;

/// Two machines and the cable between them.
struct Cable {
    host: Driver,
    target: Driver,
    /// Offset of the capability.
    base: u64,
    context: u64,
    rings: [Ring; 2],
    events: u64,
    index: u64,
    slot: u8,
}

fn find(driver: &Driver) -> u64 {
    let mut at = diapason_xhc::EXTENDED;
    while driver.read(at) & 0xff != u32::from(extended::DEBUG) {
        let next = driver.read(at) >> 8 & 0xff;
        assert_ne!(next, 0, "no debug capability");
        at += 4 * u64::from(next);
    }
    at
}

impl Cable {
    /// The target prepared as a driver does, not yet enabled.
    fn new() -> Cable {
        let host = Driver::running(Config::default());
        let mut target = Driver::cold(Config { debug: Some(CONFIG), ..Config::default() });
        let base = find(&target);
        let rings = [target.ring(32), target.ring(32)];
        let context = target.ram.take(192, 64);
        let text = target.ram.take(64, 64);
        target.ram.put(text, &[4, 3, 9, 4, 6, 3, b'D', 0, b'p', 0]);
        target
            .ram
            .put_words(context, &[text as u32, 0, text as u32 + 4, 0, 0, 0, 0, 0, 6 << 8 | 4]);
        for (ring, kind) in rings.iter().zip([2u32, 6]) {
            let at = context + if kind == 2 { 0x40 } else { 0x80 };
            let words = [0, 1024 << 16 | 3 << 8 | kind << 3, ring.base as u32 | 1, 0, 3072];
            target.ram.put_words(at, &words);
        }
        let table = target.ram.take(16, 64);
        let events = target.ram.take(16 * 64, 64);
        target.ram.put_words(table, &[events as u32, 0, 64, 0]);
        target.write(base + 0x08, 1);
        target.write64(base + 0x18, events);
        target.write64(base + 0x10, table);
        target.write64(base + 0x30, context);
        target.write(base + 0x38, 0x1d6b << 16 | 1);
        target.write(base + 0x3c, 0x0010 << 16 | 0x0010);
        Cable { host, target, base, context, rings, events, index: 0, slot: 0 }
    }

    /// Enabled, plugged in, configured by the host.
    fn configured() -> Cable {
        Cable::slow(Nanos::ZERO)
    }

    /// Enabled, plugged in with a cable that takes this long, configured by the host.
    fn slow(delay: Nanos) -> Cable {
        let mut cable = Cable::new();
        cable.set(CONTROL, ENABLE | 2);
        assert!(cable.target.xhc.debug_answers());
        let partner = cable.target.xhc.debug_partner(delay, &Default::default()).unwrap();
        cable.slot = cable.host.connect(5, partner);
        let plans = [bulk(2, 1024, 3), bulk(3, 1024, 3)];
        assert_eq!(cable.host.configure(cable.slot, &plans), Completion::Success);
        cable.host.take(0);
        cable.control(Setup::set_configuration(1), 0);
        cable.run(Nanos::from_micros(200));
        assert_eq!(cable.host.transfers(), [(1, Completion::Success, 0)]);
        cable
    }

    fn get(&self, register: u64) -> u32 {
        self.target.read(self.base + register)
    }

    fn set(&mut self, register: u64, value: u32) {
        let at = self.base + register;
        self.target.write(at, value);
    }

    fn control(&mut self, setup: Setup, buffer: u64) {
        let (slot, flags) = (self.slot, bit::IMMEDIATE);
        let bytes = u64::from_le_bytes(setup.encode());
        self.host.queue(slot, 1, Trb::new(Kind::Setup, bytes, 8, flags));
        let mut status = bit::IN;
        if setup.length > 0 {
            status = 0;
            let length = u32::from(setup.length);
            self.host.queue(slot, 1, Trb::new(Kind::Data, buffer, length, bit::IN));
        }
        self.host.queue(slot, 1, Trb::new(Kind::Status, 0, 0, status | bit::COMPLETION));
        self.host.doorbell(slot, 1);
    }

    /// Both machines, in the order in which something happens.
    fn run(&mut self, length: Nanos) {
        let start = self.host.now.max(self.target.now);
        let end = start + length;
        loop {
            let next = self.host.xhc.next_event().min(self.target.xhc.next_event()).max(start);
            let at = next.min(end);
            self.host.run_to(at.max(self.host.now));
            self.target.run_to(at.max(self.target.now));
            if at == end {
                break;
            }
        }
    }

    /// Both machines, each for as long as it cannot know what the other does meanwhile; the target
    /// goes first, or the host.
    fn run_apart(&mut self, delay: Nanos, target_first: bool) {
        let end = self.host.now.max(self.target.now) + delay;
        if target_first {
            self.target.run_to(end);
        }
        self.host.run_to(end);
        self.target.run_to(end);
    }

    /// Queues a block on a ring of the target.
    fn post(&mut self, which: u32, address: u64, length: u32) -> u64 {
        let mut ring = self.rings[which as usize];
        let block = Trb::new(Kind::Normal, address, length, bit::COMPLETION);
        let at = self.target.push(&mut ring, block);
        self.rings[which as usize] = ring;
        self.set(0x04, which << 8);
        at
    }

    /// Events of the target: kind, endpoint, code, residual.
    fn events(&mut self) -> Vec<(Kind, u8, Completion, u32)> {
        let mut found = Vec::new();
        loop {
            let at = self.events + 16 * (self.index % 64);
            let event = Trb::from_words(self.target.ram.words(at));
            if event.cycle() != (self.index / 64).is_multiple_of(2) {
                break;
            }
            let (kind, code) = (event.kind().unwrap(), event.completion().unwrap());
            found.push((kind, event.endpoint(), code, event.residual()));
            self.index += 1;
        }
        let at = self.events + 16 * (self.index % 64);
        let base = self.base;
        self.target.write64(base + 0x18, at);
        found
    }
}

#[test]
fn the_host_finds_a_device_and_configures_it() {
    let mut cable = Cable::configured();
    assert_ne!(cable.get(CONTROL) & RUNS, 0);
    assert_eq!(cable.get(PORT) & 0xffff, 1 | port::ENABLED | 4 << port::SPEED_SHIFT);
    assert_eq!(cable.get(0x24) >> 24, 5);
    let events = cable.events();
    assert_eq!(events, [(Kind::PortStatusChange, 0, Completion::Success, 0)]);
    let buffer = cable.host.ram.buffer(64);
    cable.control(Setup::get_descriptor(descriptor_type::DEVICE, 0, 0, 18), buffer);
    cable.run(Nanos::from_micros(200));
    let expected = [18, 1, 0, 3, 0, 0, 0, 9, 0x6b, 0x1d, 0x10, 0, 0x10, 0, 1, 2, 3, 1];
    assert_eq!(cable.host.ram.bytes(buffer, 18), expected);
    cable.control(Setup::get_descriptor(descriptor_type::STRING, 1, 0x409, 64), buffer);
    cable.run(Nanos::from_micros(200));
    assert_eq!(cable.host.ram.bytes(buffer, 6), [6, 3, b'D', 0, b'p', 0]);
}

#[test]
fn bytes_go_both_ways() {
    let mut cable = Cable::configured();
    cable.events();
    let (slot, sent) = (cable.slot, cable.target.ram.take(5000, 64));
    let bytes: Vec<u8> = (0..5000u32).map(|i| (i % 251) as u8).collect();
    cable.target.ram.put(sent, &bytes);
    let got = cable.host.queue_normal(slot, 3, 8192, bit::COMPLETION);
    cable.host.doorbell(slot, 3);
    cable.run(Nanos::from_micros(100));
    cable.post(OUT, sent, 5000);
    cable.run(Nanos::from_micros(100));
    assert_eq!(cable.host.transfers(), [(3, Completion::ShortPacket, 8192 - 5000)]);
    assert_eq!(cable.host.ram.bytes(got, 5000), bytes);
    assert_eq!(cable.events(), [(Kind::TransferEvent, 2, Completion::Success, 0)]);
    // The other way: the host has to wait until there is a buffer.
    let from = cable.host.queue_normal(slot, 2, 3000, bit::COMPLETION);
    cable.host.ram.put(from, &bytes[..3000]);
    cable.host.doorbell(slot, 2);
    cable.run(Nanos::from_micros(100));
    assert_eq!(cable.host.transfers(), []);
    let into = cable.target.ram.take(8192, 64);
    cable.post(IN, into, 2048);
    cable.post(IN, into + 2048, 4096);
    cable.run(Nanos::from_micros(100));
    assert_eq!(cable.host.transfers(), [(2, Completion::Success, 0)]);
    assert_eq!(cable.target.ram.bytes(into, 3000), &bytes[..3000]);
    let short = (Kind::TransferEvent, 3, Completion::ShortPacket, 4096 - 952);
    assert_eq!(cable.events(), [(Kind::TransferEvent, 3, Completion::Success, 0), short]);
}

#[test]
fn a_halt_is_cleared_by_the_host_only() {
    let mut cable = Cable::configured();
    let slot = cable.slot;
    cable.set(CONTROL, cable.get(CONTROL) | 1 << 2);
    assert_ne!(cable.get(CONTROL) & 1 << 2, 0);
    cable.host.queue_normal(slot, 3, 64, bit::COMPLETION);
    cable.host.doorbell(slot, 3);
    cable.run(Nanos::from_micros(100));
    assert_eq!(cable.host.transfers(), [(3, Completion::Stall, 64)]);
    let [state] = cable.target.ram.words(cable.context + 0x40);
    assert_eq!(state & 7, 2);
    cable.host.slot_command(Kind::ResetEndpoint, slot, 3, 0);
    cable.control(Setup::clear_halt(0x81), 0);
    cable.run(Nanos::from_micros(100));
    assert_eq!(cable.get(CONTROL) & 1 << 2, 0);
    let buffer = cable.target.ram.take(64, 64);
    cable.post(OUT, buffer, 64);
    cable.host.transfers();
    cable.host.doorbell(slot, 3);
    cable.run(Nanos::from_micros(100));
    assert_eq!(cable.host.transfers(), [(3, Completion::Success, 0)]);
}

#[test]
fn a_reset_of_the_port_stops_it_until_it_is_acknowledged() {
    let mut cable = Cable::configured();
    cable.set(PORT, port::CHANGES | port::ENABLED);
    cable.events();
    cable.host.write(support::portsc(5), port::RESET | port::POWER);
    cable.run(Nanos(2_500_000));
    assert_eq!(cable.get(PORT) & (port::RESET | port::ENABLED), port::RESET);
    cable.run(Nanos::from_millis(1));
    assert_eq!(cable.get(PORT) & port::CHANGES, port::RESET_CHANGE);
    assert_eq!(cable.get(CONTROL) & (RUNS | 1 << 4), 1 << 4);
    let before = cable.target.xhc.counts().idle_doorbells;
    let buffer = cable.target.ram.take(64, 64);
    cable.post(OUT, buffer, 64);
    assert_eq!(cable.target.xhc.counts().idle_doorbells, before + 1);
    cable.set(CONTROL, cable.get(CONTROL));
    assert_eq!(cable.get(CONTROL) & 1 << 4, 0);
}

#[test]
fn switched_off_it_is_gone_and_its_context_is_written_back() {
    let mut cable = Cable::configured();
    let buffer = cable.target.ram.take(64, 64);
    let at = cable.post(OUT, buffer, 64);
    cable.set(CONTROL, 0);
    assert!(!cable.target.xhc.debug_answers());
    assert_eq!((cable.get(PORT), cable.get(0x24) >> 24), (port::link::DISABLED << 5, 0));
    let [state, _, low, _] = cable.target.ram.words(cable.context + 0x40);
    assert_eq!((state & 7, u64::from(low)), (3, at | 1));
    let slot = cable.slot;
    cable.host.queue_normal(slot, 3, 64, bit::COMPLETION);
    cable.host.doorbell(slot, 3);
    cable.run(Nanos::from_micros(100));
    assert_eq!(cable.host.transfers(), [(3, Completion::Transaction, 64)]);
}

#[test]
fn pulling_the_cable_is_noticed_on_both_sides() {
    let mut cable = Cable::configured();
    cable.set(PORT, port::CHANGES | port::ENABLED);
    cable.events();
    drop(cable.host.xhc.detach(5, cable.host.now, &mut cable.host.ram));
    cable.run(Nanos::from_micros(1));
    assert_eq!(cable.get(PORT) & port::CHANGES, port::CONNECT_CHANGE);
    assert_eq!(cable.get(PORT) & 1, 0);
    assert_eq!(cable.events().len(), 1);
    cable.host.plug(5, Shared::new(Speed::Super).boxed());
    let partner = cable.target.xhc.debug_partner(Nanos::ZERO, &Default::default()).unwrap();
    cable.host.plug(5, partner);
    cable.run(Nanos::from_micros(1));
    assert_eq!(cable.get(PORT) & 1, 1);
}

#[test]
fn a_controller_reset_takes_it_along() {
    let mut cable = Cable::configured();
    cable.target.write(0x80, 2);
    cable.target.run_for(Nanos::from_millis(2));
    assert_eq!(cable.get(CONTROL) & (ENABLE | RUNS), 0);
}

/// Returns the messages that each machine saw, and when, while both sent blocks of all sizes.
fn seen_by_both(delay: Nanos, target_first: bool) -> Vec<String> {
    let mut cable = Cable::slow(delay);
    // From here on both have the same time, and something is under way from neither.
    cable.run(Nanos::from_micros(50));
    cable.events();
    let (slot, mut random, mut seen) = (cable.slot, Random::new(3), Vec::new());
    let (sent, into) = (cable.target.ram.take(4096, 64), cable.target.ram.take(4096, 64));
    for round in 0..30u8 {
        let lengths = [(); 2].map(|()| random.between(0, 4096) as u32);
        cable.target.ram.put(sent, &vec![round; lengths[0] as usize]);
        let got = cable.host.queue_normal(slot, 3, 4096, bit::COMPLETION);
        let from = cable.host.queue_normal(slot, 2, lengths[1], bit::COMPLETION);
        cable.host.ram.put(from, &vec![!round; lengths[1] as usize]);
        cable.host.doorbell(slot, 3);
        cable.host.doorbell(slot, 2);
        cable.post(OUT, sent, lengths[0]);
        cable.post(IN, into, 4096);
        for _ in 0..40 {
            cable.run_apart(delay, target_first);
            let (transfers, events) = (cable.host.transfers(), cable.events());
            if !transfers.is_empty() || !events.is_empty() {
                seen.push(format!("{:?} {transfers:?} {events:?}", cable.host.now));
            }
        }
        let [out, back] = lengths.map(|length| length as usize);
        assert_eq!(cable.host.ram.bytes(got, out), vec![round; out]);
        assert_eq!(cable.target.ram.bytes(into, back), vec![!round; back]);
    }
    seen
}

#[test]
fn a_slow_cable_shows_both_the_same_whoever_goes_first() {
    let delay = Nanos(700);
    let seen = seen_by_both(delay, true);
    assert_eq!(seen, seen_by_both(delay, false));
    assert!(seen.len() > 60, "{}", seen.len());
    assert_ne!(seen, seen_by_both(Nanos(1_400), true));
}

#[test]
fn the_first_host_that_asks_something_has_the_capability() {
    let mut cable = Cable::new();
    let (own, rival) = (<[CableEnd; 2]>::default(), <[CableEnd; 2]>::default());
    let first = cable.target.xhc.debug_partner(Nanos::ZERO, &own).unwrap();
    let mut second = cable.target.xhc.debug_partner(Nanos::ZERO, &rival).unwrap();
    // At the target's end of the first cable is the capability of the other host.
    let mut other = Cable::new();
    let [here, there] = own;
    let mut reverse = other.target.xhc.debug_partner(Nanos::ZERO, &[there, here]).unwrap();
    other.set(CONTROL, ENABLE);
    cable.set(CONTROL, ENABLE | 2);
    let now = cable.target.now.max(other.target.now) + Nanos(1);
    for device in [&mut second, &mut reverse] {
        device.advance(now);
        assert!(device.is_there(), "all hosts sense it");
    }
    cable.slot = cable.host.connect(5, first);
    cable.run(Nanos::from_millis(1));
    second.advance(cable.host.now);
    assert!(second.is_there(), "nobody has asked anything");
    cable.control(Setup::set_configuration(1), 0);
    cable.run(Nanos::from_micros(200));
    second.advance(cable.host.now);
    assert!(!second.is_there(), "the first has it");
    assert!(!reverse.is_there(), "the port of the cable is the capability's");
    cable.set(CONTROL, 0);
    assert!(reverse.is_there(), "the port is the host's again");
}
