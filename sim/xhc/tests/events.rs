//! Event rings of several segments, back-pressure, moderation, interrupts that go astray.

use crate::support::{Driver, Shared, bulk, op, rt};
use diapason_abi::Nanos;
use diapason_usb::Speed;
use diapason_usb::register::{command, interrupter, operational, status};
use diapason_usb::trb::{Completion, Kind, Trb, bit};
use diapason_xhc::{Config, Disturbance};

const NO_OP: Trb = Trb::new(Kind::NoOpCommand, 0, 0, 0);

fn no_ops(driver: &mut Driver, count: usize) {
    let mut ring = driver.commands;
    for _ in 0..count {
        driver.push(&mut ring, NO_OP);
    }
    driver.commands = ring;
    driver.write(diapason_xhc::DOORBELLS, 0);
}

#[test]
fn segments_follow_one_another() {
    let mut driver = Driver::cold(Config::default());
    driver.start(&[16, 40, 17]);
    for round in 0..400 {
        assert_eq!(driver.command(NO_OP), Completion::Success, "round {round}");
    }
}

#[test]
fn a_table_beyond_the_limit_breaks_the_controller() {
    let mut driver = Driver::running(Config { segments_log2: 1, ..Config::default() });
    driver.event_ring(1, &[16, 16]);
    assert_eq!(driver.read(op(operational::STATUS)) & status::CONTROLLER_ERROR, 0);
    driver.event_ring(1, &[16, 16, 16]);
    let state = driver.read(op(operational::STATUS));
    assert_eq!(state & (status::CONTROLLER_ERROR | status::HALTED), status::CONTROLLER_ERROR | 1);
}

#[test]
fn a_full_ring_holds_everything_back_and_loses_nothing() {
    let mut driver = Driver::cold(Config::default());
    driver.start(&[16]);
    no_ops(&mut driver, 20);
    driver.run_for(Nanos::from_millis(1));
    let [(base, _)] = driver.events[0].segments[..] else { panic!() };
    let codes = |driver: &Driver, n| {
        (0..n).map(|i| Trb::from_words(driver.ram.words(base + 16 * i)).completion()).collect()
    };
    let seen: Vec<_> = codes(&driver, 16);
    assert!(seen[..14].iter().all(|code| *code == Some(Completion::Success)));
    assert_eq!(seen[14..], [Some(Completion::EventRingFull), Some(Completion::Invalid)]);
    assert_eq!(driver.take(0).len(), 15);
    driver.run_for(Nanos::from_millis(1));
    let rest = driver.take(0);
    assert_eq!(rest.len(), 6);
    assert!(rest.iter().all(|event| event.completion() == Some(Completion::Success)));
    assert_eq!(driver.xhc.counts().events_lost, 0);
}

#[test]
fn moderation_counts_in_units_of_250_ns() {
    let mut driver = Driver::running(Config::default());
    driver.write(rt(0, interrupter::MODERATION), 400);
    driver.interrupts.clear();
    for _ in 0..60 {
        no_ops(&mut driver, 1);
        driver.run_for(Nanos::from_micros(10));
        driver.take(0);
    }
    driver.run_for(Nanos::from_millis(1));
    let times: Vec<u64> = driver.interrupts.iter().map(|interrupt| interrupt.at.0).collect();
    assert!((6..=7).contains(&times.len()), "{times:?}");
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= 100_000), "{times:?}");
    let at = driver.now;
    no_ops(&mut driver, 1);
    driver.run_for(Nanos::from_micros(2));
    assert_eq!(driver.interrupts.last().unwrap().at, at + Nanos::from_micros(2));
    driver.run_for(Nanos::from_micros(30));
    assert_eq!(driver.read(rt(0, interrupter::MODERATION)), 280 << 16 | 400);
}

#[test]
fn a_busy_handler_is_not_interrupted_again() {
    let mut driver = Driver::running(Config::default());
    driver.interrupts.clear();
    no_ops(&mut driver, 1);
    driver.run_for(Nanos::from_micros(50));
    no_ops(&mut driver, 3);
    driver.run_for(Nanos::from_micros(50));
    assert_eq!(driver.interrupts.len(), 1);
    assert_ne!(driver.read(rt(0, interrupter::DEQUEUE)) & interrupter::BUSY, 0);
    // Not everything was read: the next interrupt comes at once.
    let first = driver.events[0].segments[0].0;
    driver.write64(rt(0, interrupter::DEQUEUE), (first + 16) | u64::from(interrupter::BUSY));
    assert_eq!(driver.interrupts.len(), 2);
    driver.take(0);
    driver.run_for(Nanos::from_micros(50));
    assert_eq!(driver.interrupts.len(), 2);
    assert_ne!(driver.read(op(operational::STATUS)) & status::EVENT, 0);
    driver.write(op(operational::STATUS), status::EVENT);
    assert_eq!(driver.read(op(operational::STATUS)) & status::EVENT, 0);
}

#[test]
fn a_disabled_interrupter_only_notes_it() {
    let mut driver = Driver::running(Config::default());
    driver.interrupts.clear();
    driver.write(rt(0, interrupter::MANAGEMENT), 0);
    no_ops(&mut driver, 1);
    driver.run_for(Nanos::from_micros(50));
    assert_eq!((driver.interrupts.len(), driver.read(rt(0, interrupter::MANAGEMENT))), (0, 1));
    driver.write(rt(0, interrupter::MANAGEMENT), interrupter::ENABLE);
    assert_eq!(driver.interrupts.len(), 1);
    assert_eq!(driver.read(rt(0, interrupter::MANAGEMENT)), interrupter::ENABLE);
    driver.take(0);
    driver.write(op(operational::COMMAND), command::RUN);
    no_ops(&mut driver, 1);
    driver.run_for(Nanos::from_micros(50));
    assert_eq!(driver.interrupts.len(), 1);
}

#[test]
fn each_block_names_its_interrupter() {
    let mut driver = Driver::running(Config::default());
    let gadget = Shared::new(Speed::Super);
    let slot = driver.connect(5, gadget.boxed());
    driver.configure(slot, &[bulk(2, 1024, 0)]);
    driver.take(0);
    driver.interrupts.clear();
    let buffer = driver.ram.buffer(64);
    for (target, flags) in [(1, bit::COMPLETION), (1, bit::COMPLETION | bit::BLOCK_INTERRUPT)] {
        let status = Trb::transfer_status(64, 0, target);
        driver.queue(slot, 2, Trb::new(Kind::Normal, buffer, status, flags));
        driver.doorbell(slot, 2);
        driver.run_for(Nanos::from_micros(10));
        let events = driver.take(1);
        assert_eq!((events.len(), events[0].endpoint()), (1, 2));
    }
    let vectors: Vec<u16> = driver.interrupts.iter().map(|interrupt| interrupt.vector).collect();
    assert_eq!(vectors, [1], "the second event was quiet");
    assert!(driver.take(0).is_empty());
}

#[test]
fn interrupts_get_lost_come_late_and_come_twice() {
    let mut driver = Driver::running(Config::default());
    let late = Nanos::from_micros(700);
    driver.interrupts.clear();
    for disturbance in [Disturbance::Lost, Disturbance::Delayed(late), Disturbance::Twice(late)] {
        driver.xhc.disturb(disturbance);
    }
    let mut times = Vec::new();
    for _ in 0..4 {
        times.push(driver.now + Nanos::from_micros(2));
        no_ops(&mut driver, 1);
        driver.run_for(Nanos::from_micros(50));
        driver.take(0);
    }
    let seen: Vec<Nanos> = driver.interrupts.iter().map(|interrupt| interrupt.at).collect();
    assert_eq!(seen, [times[1] + late, times[2], times[2] + late, times[3]]);
}

#[test]
fn memory_out_of_reach_halts_the_controller() {
    let mut driver = Driver::running(Config::default());
    driver.write64(op(operational::COMMAND_RING), 0x4000_0000 | 1);
    driver.write(diapason_xhc::DOORBELLS, 0);
    let state = driver.read(op(operational::STATUS));
    assert_eq!(state & (status::SYSTEM_ERROR | status::HALTED), status::SYSTEM_ERROR | 1);
    let [denial] = driver.xhc.denials() else { panic!() };
    assert_eq!((denial.address, denial.bytes, denial.write), (0x4000_0000, 16, false));
    assert_eq!(driver.xhc.next_event(), Nanos::FOREVER);
}
