//! A controller that writes whatever it likes into the event rings and into the contexts.

use crate::bench::{Bench, buffer, straddling};
use crate::fake::{BASE, BYTES};
use diapason_random::Random;
use diapason_usb::register::port;
use diapason_usb::trb::{Completion, Kind, Trb};
use diapason_usb::xhci::{DeviceId, Limits, Notice, Request};
use std::collections::BTreeSet;

/// The state as the client believes it to be.
#[derive(Default)]
struct Client {
    queued: BTreeSet<u64>,
    submitted: u64,
    reported: u64,
    devices: Vec<DeviceId>,
}

fn event(random: &mut Random, bench: &Bench) -> Trb {
    let kinds = [
        Kind::TransferEvent,
        Kind::TransferEvent,
        Kind::TransferEvent,
        Kind::CommandCompletion,
        Kind::PortStatusChange,
        Kind::HostController,
        Kind::MicroframeWrap,
        Kind::Normal,
    ];
    let fake = bench.fake.0.borrow();
    let rings: Vec<_> = fake.rings.iter().collect();
    let (place, ring) = match rings.is_empty() {
        true => ((1, 1), BASE),
        false => {
            let (place, ring) = rings[random.index(rings.len())];
            (*place, ring.at)
        }
    };
    let near = ring.wrapping_add(16 * random.below(8)).wrapping_sub(16 * random.below(12));
    let pointer = match random.below(6) {
        0 => random.bits(),
        1 => BASE + random.below(BYTES),
        2 => near + random.below(16),
        _ => near,
    };
    let code = match random.below(8) {
        0 => random.below(256) as u32,
        1 | 2 => random.pick(&[3, 4, 5, 6, 19, 26, 27, 28, 36]),
        _ => random.pick(&[Completion::Success as u32, Completion::ShortPacket as u32]),
    };
    let left =
        if random.one_in(3) { random.bits() as u32 & 0xff_ffff } else { random.index(600) as u32 };
    let flags = match random.below(10) {
        0 => random.bits() as u32 & !0xfc01,
        _ => Trb::place(place.0, place.1.max(1)),
    };
    Trb::new(random.pick(&kinds), pointer, code << 24 | left, flags)
}

/// Everything a client does, at random; each transfer is reported once.
fn client(random: &mut Random, bench: &mut Bench, client: &mut Client) {
    for notice in std::mem::take(&mut bench.notices) {
        match notice {
            Notice::Found { device, .. } => {
                let plans = crate::bench::plans(&[0x81, 2, 0x83, 0x84]);
                let _ = bench.driver.assign(device, random.index(4) as u16);
                let _ = bench.driver.configure(device, 1, &plans);
                client.devices.push(device);
            }
            Notice::Gone(device) => client.devices.retain(|d| *d != device),
            Notice::Died(_) => {
                client.devices.clear();
                bench.driver.start(bench.now);
            }
            _ => {}
        }
    }
    for finished in std::mem::take(&mut bench.finished) {
        let known = client.queued.remove(&finished.transfer.0);
        assert!(known, "{finished:?} was reported before, or never queued");
        assert!(finished.actual <= 700, "{finished:?}: more than there was room for");
        client.reported += 1;
    }
    for _ in 0..random.below(4) {
        let Some(device) = client.devices.get(random.index(client.devices.len())) else { return };
        let memory = [buffer(0, 0), buffer(random.below(8), 600), straddling(600, 100)];
        let endpoint = random.pick(&[0x81, 2, 0x83, 0x84]);
        let request = Request::new(*device, endpoint, random.pick(&memory));
        if let Ok(transfer) = bench.driver.submit(&request) {
            client.submitted += 1;
            client.queued.insert(transfer.0);
            if random.one_in(10) {
                bench.driver.cancel(*device, transfer).unwrap();
            }
        }
    }
}

/// The controller does its work now and then, so that there is something to spoil.
fn work(random: &mut Random, bench: &mut Bench) {
    let mut fake = bench.fake.0.borrow_mut();
    let places: Vec<(u8, u8)> = fake.rings.keys().copied().filter(|(_, i)| *i > 1).collect();
    if places.is_empty() {
        return;
    }
    let (slot, index) = random.pick(&places);
    if let Some((at, block)) = fake.next_block(slot, index) {
        let codes = [Completion::Success, Completion::ShortPacket, Completion::Stall];
        let left = random.below(u64::from(block.length()) + 1) as u32;
        fake.transfer_event(slot, index, at, random.pick(&codes), left);
    }
    if random.one_in(20) {
        fake.set_endpoint_state(slot, index, random.bits() as u32);
    }
    if random.one_in(200) {
        let word = random.bits() as u32;
        fake.poke_port(1 + random.index(4) as u8, word & !port::OVER_CURRENT, 0);
    }
}

fn attack(seed: u64, events: u64) {
    let limits = Limits { devices: 6, pipes: 16, blocks: 32, ..Limits::default() };
    let mut bench = Bench::running(limits);
    bench.fake.0.borrow_mut().lies = true;
    let mut random = Random::new(seed);
    let mut state = Client::default();
    let mut posted = 0;
    while posted < events {
        if random.one_in(50) {
            let number = 1 + random.index(4) as u8;
            let mut fake = bench.fake.0.borrow_mut();
            if random.one_in(3) { fake.unplug(number) } else { fake.plug(number, 3) }
        }
        for _ in 0..random.below(6) {
            let event = event(&mut random, &bench);
            bench.fake.0.borrow_mut().post(random.index(4), event);
            posted += 1;
        }
        work(&mut random, &mut bench);
        bench.run(random.below(30));
        client(&mut random, &mut bench, &mut state);
    }
    // Nothing is left behind once everything is unplugged.
    for number in 1..=4 {
        bench.fake.0.borrow_mut().unplug(number);
    }
    bench.run(60_000);
    client(&mut random, &mut bench, &mut state);
    assert!(state.submitted > events / 50, "only {} transfers", state.submitted);
    assert_eq!(state.reported, state.submitted);
    assert!(state.queued.is_empty());
    let counters = bench.driver.counters();
    assert!(counters.spurious > events / 10, "{counters:?}");
}

#[test]
fn a_hundred_thousand_events_of_a_hostile_controller() {
    for seed in 0..10 {
        attack(seed, 10_000);
    }
}

#[test]
#[ignore = "a million events: seconds with --release"]
fn a_million_events_of_a_hostile_controller() {
    for seed in 100..200 {
        attack(seed, 10_000);
    }
}

/// An event that was spoiled bit by bit names nothing else than what is under way.
#[test]
fn a_cycle_bit_that_is_flipped_everywhere_ends_with_the_budget() {
    let mut bench = Bench::running(Limits::default());
    bench.device(&[0x81]);
    let mut calls = 0;
    for _ in 0..2 * 256 {
        bench.fake.0.borrow_mut().post(0, Trb::new(Kind::TransferEvent, 0, 1 << 24, 0));
    }
    while bench.driver.handle_interrupt(0, 10, bench.now).more {
        calls += 1;
        assert!(calls < 100, "it never ends");
    }
}
