//! Stamps of the 82574L: the driver knows when a frame passed the plug by the host's clock, as
//! nearly as it says, whatever crystals do. And it loses no stamp for ever.

#[path = "support/card.rs"]
mod support;

use diapason_abi::Nanos;
use diapason_devices::faulty::OwnClock;
use diapason_ether::adapter::register;
use diapason_ether::stamps::{self, ClockPair, ReceiveStamps, TICK_NS};
use diapason_gptp::GROUP;
use diapason_random::Random;
use diapason_sim::{Card, EthernetWire};
use support::{Host, address, started};

const PPM: u32 = 100;
/// A frame, from its first bit to its last at 1 Gbit/s, and its preamble.
const FRAME_NS: u64 = (8 + 60 + 4) * 8;
const PREAMBLE_NS: u64 = 64;

/// Returns the frame of an event message, or of another one.
fn message(kind: u8) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..6].copy_from_slice(&GROUP);
    frame[12..15].copy_from_slice(&[0x88, 0xf7, 0x10 | kind]);
    frame
}

fn host(crystal: i32) -> Host {
    let crystal = OwnClock::new(vec![(Nanos::ZERO, crystal)]);
    Host::of(Card::new(&EthernetWire::new(1_000)).with_crystal(crystal))
}

/// Returns both clocks. Each look at the host's clock takes up to so long.
fn pair(host: &Host, took: &mut Random) -> ClockPair {
    let took = std::cell::RefCell::new(took);
    let now = || {
        host.pass(host.now.get() + Nanos(took.borrow_mut().below(2_000)));
        host.now.get()
    };
    ClockPair::read(&host, now).unwrap()
}

/// Lets a message come whose first bit is there at `begin`.
fn comes(host: &Host, begin: Nanos, kind: u8) {
    host.card.borrow().hear(begin, &message(kind), false);
    host.pass(begin + Nanos(FRAME_NS));
}

#[test]
fn a_stamp_is_as_near_as_it_says_whatever_the_crystal() {
    let mut random = Random::new(21);
    let mut nearest = u64::MAX;
    for number in 0..4_000_u64 {
        let crystal = [-100, 0, 37, 100][number as usize % 4];
        let host = host(crystal);
        host.pass(Nanos(random.below(100_000)));
        let (mut receiver, mut sender) = started(&host, 2);
        stamps::start(&&host, GROUP);
        receiver.offer(0, address(0));
        receiver.publish();
        // Near the time at which the lower half of the count wraps round, too.
        let later = if random.one_in(2) { (1 << 32) - 10_000 } else { random.below(1 << 33) };
        let begin = host.now.get() + Nanos(later + random.below(20_000));
        let passed = begin + Nanos(PREAMBLE_NS);
        if random.one_in(2) {
            comes(&host, begin, 0);
        } else {
            host.pass(begin);
            host.put(1, &message(2));
            assert!(sender.send_stamped(address(1), 60));
            assert_eq!(stamps::sent(&&host), None, "it is still on the wire");
            host.pass(begin + Nanos(FRAME_NS));
        }
        host.pass(host.now.get() + Nanos(random.below(1_000_000)));
        let pair = pair(&host, &mut random);
        let mut received = ReceiveStamps::default();
        let stamp = match receiver.take() {
            Some(taken) if taken.stamped => received.take(&&host),
            _ => stamps::sent(&&host),
        };
        let (at, error) = pair.host(stamp.unwrap(), PPM).unwrap();
        let off = at.0.abs_diff(passed.0);
        assert!(off <= error.0, "{off} ns, and {error} are said");
        nearest = nearest.min(error.0 - off);
        assert_eq!(stamps::sent(&&host), None, "each stamp is taken once");
    }
    assert!(nearest <= 10, "the error is said {nearest} ns too large at least");
}

#[test]
fn only_events_are_stamped_and_only_while_there_is_room() {
    let host = host(0);
    let (mut receiver, _) = started(&host, 2);
    stamps::start(&&host, GROUP);
    (0..8).for_each(|buffer| receiver.offer(buffer, address(buffer)));
    receiver.publish();
    // Announce, Sync, and a Pdelay_Req while the stamp of the Sync waits.
    for (number, kind) in [0xb, 0, 2].into_iter().enumerate() {
        comes(&host, Nanos(10_000 * (number as u64 + 1)), kind);
    }
    let marks: Vec<bool> = std::iter::from_fn(|| receiver.take()).map(|it| it.stamped).collect();
    assert_eq!(marks, [false, true, false]);
    let mut received = ReceiveStamps::default();
    let stamp = received.take(&&host).unwrap();
    assert!(stamp.abs_diff(20_000 + PREAMBLE_NS) < TICK_NS);
    assert_eq!(received.take(&&host), None);
    comes(&host, Nanos(50_000), 2);
    assert!(receiver.take().unwrap().stamped, "the first was read");
    // A datagram that looks like an event behind its type.
    let mut other = message(0);
    other[12] = 0x08;
    received.take(&&host).unwrap();
    host.card.borrow().hear(Nanos(60_000), &other, false);
    host.pass(Nanos(70_000));
    assert!(!receiver.take().unwrap().stamped);
}

#[test]
fn a_stamp_whose_frame_was_lost_locks_out_others_for_two_rounds_only() {
    let host = host(0);
    let (mut receiver, _) = started(&host, 2);
    stamps::start(&&host, GROUP);
    let mut received = ReceiveStamps::default();
    comes(&host, Nanos(10_000), 0);
    assert_eq!((receiver.take(), receiver.lost()), (None, 1), "it had no buffer");
    receiver.offer(0, address(0));
    receiver.publish();
    received.round(&&host);
    assert_eq!(received.orphans(), 0, "its frame may still be on the way");
    comes(&host, Nanos(20_000), 0);
    assert!(!receiver.take().unwrap().stamped);
    received.round(&&host);
    assert_eq!(received.orphans(), 1);
    receiver.offer(1, address(1));
    receiver.publish();
    comes(&host, Nanos(30_000), 0);
    // The frame came after the round had counted those that were there.
    received.round(&&host);
    assert!(receiver.take().unwrap().stamped);
    let stamp = received.take(&&host).unwrap();
    assert!(stamp.abs_diff(30_000 + PREAMBLE_NS) < TICK_NS);
    received.round(&&host);
    assert_eq!(received.orphans(), 1);
}

#[test]
fn a_clock_that_stands_or_is_wrong_is_found() {
    let mut random = Random::new(7);
    for (crystal, runs) in [(100, true), (-100, true), (20_000, false), (-20_000, false)] {
        let host = host(crystal);
        let _ = started(&host, 2);
        let first = pair(&host, &mut random);
        host.pass(host.now.get() + Nanos(1_000_000));
        let stands = pair(&host, &mut random);
        assert!(!stands.runs_since(&first, PPM), "nobody started it");
        stamps::start(&&host, GROUP);
        let first = pair(&host, &mut random);
        host.pass(host.now.get() + Nanos(1_000_000));
        let second = pair(&host, &mut random);
        assert_eq!(second.runs_since(&first, PPM), runs, "{crystal}");
        assert!(!first.runs_since(&second, PPM));
    }
    // The registers of an emulator are memory.
    let host = Host::alone(true);
    let (mut receiver, mut sender) = started(&host, 2);
    stamps::start(&&host, GROUP);
    let first = pair(&host, &mut random);
    host.pass(host.now.get() + Nanos(1_000_000));
    assert!(!pair(&host, &mut random).runs_since(&first, PPM));
    receiver.offer(0, address(0));
    receiver.publish();
    let begin = host.now.get();
    comes(&host, begin, 0);
    assert!(!receiver.take().unwrap().stamped);
    host.put(1, &message(2));
    assert!(sender.send_stamped(address(1), 60));
    host.pass(host.now.get() + Nanos(10_000));
    assert_eq!((sender.settle(), stamps::sent(&&host)), (0, None));
}

/// Silicon returns wrong bits of the clock at times. `Broken` does so every third read.
#[test]
fn wrong_bits_of_a_count_are_read_again() {
    struct Broken<'a>(&'a Host, std::cell::Cell<u32>);
    impl diapason_ether::adapter::AdapterRegisters for Broken<'_> {
        fn read(&self, offset: usize) -> u32 {
            self.0.pass(self.0.now.get() + Nanos(500));
            let value = self.0.get(offset);
            let number = self.1.replace(self.1.get() + 1);
            let is_count = [register::SYSTIML, register::SYSTIMH].contains(&offset);
            if is_count && number.is_multiple_of(7) { value ^ 0x0400_0001 } else { value }
        }
        fn write(&self, _: usize, _: u32) {}
    }
    let host = host(0);
    let _ = started(&host, 2);
    stamps::start(&&host, GROUP);
    let broken = Broken(&host, std::cell::Cell::new(0));
    let mut read = 0;
    for _ in 0..500 {
        let Some(pair) = ClockPair::read(&broken, || host.now.get()) else { continue };
        read += 1;
        let (before, after) = (pair.before.0, pair.after.0);
        assert!((before.saturating_sub(TICK_NS)..=after).contains(&pair.adapter));
    }
    assert!(read > 400, "{read}");
}
