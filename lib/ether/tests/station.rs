//! A station takes only messages of gPTP out of the frames of a wire, and no frame harms it.

use diapason_abi::Nanos;
use diapason_ether::adapter::{AdapterRegisters, register};
use diapason_ether::station::{TimeReceiver, TimeStation};
use diapason_gptp::{ETHERTYPE, GROUP, Grandmaster, SyncBase, SyncTerms, TimeNode, identity_of};
use diapason_random::Random;
use std::cell::Cell;

/// An adapter without stamps, whose clock stands.
struct Silent;

impl AdapterRegisters for Silent {
    fn read(&self, _: usize) -> u32 {
        0
    }

    fn write(&self, _: usize, _: u32) {}
}

fn station() -> TimeStation {
    let terms = SyncTerms::new(SyncBase {
        log_interval: -3,
        late: Nanos(2_000_000),
        losses: 3,
        hops: 1,
        drift_ppm: 100,
        wander_ppb: 0,
        stamp: Nanos(400),
        turnaround: Nanos(2_000_000),
        gap: Nanos::ZERO,
        link: Nanos(5_000),
        uneven: Nanos::ZERO,
        slew_ppm: 500,
    })
    .unwrap();
    let mac = [2, 0, 0, 0, 0, 1];
    let node = TimeNode::new(terms, Grandmaster::free(1, identity_of(mac)), [mac], Nanos::ZERO);
    TimeStation::new(node, Nanos(400), 200)
}

fn frame(kind: [u8; 2], message: &[u8]) -> Vec<u8> {
    [&GROUP[..], &[2, 0, 0, 0, 0, 9], &kind, message].concat()
}

#[test]
fn frames_of_other_protocols_are_not_taken() {
    for kind in [[8, 0], [0x81, 0], [0x88, 0xf6], [0xf7, 0x88]] {
        let frame = frame(kind, &[0; 64]);
        assert_eq!(TimeReceiver::default().take(&Silent, &frame, true), None, "{kind:x?}");
    }
    let whole = frame(ETHERTYPE.to_be_bytes(), &[]);
    for length in 0..whole.len() {
        assert_eq!(TimeReceiver::default().take(&Silent, &whole[..length], false), None);
    }
    assert!(TimeReceiver::default().take(&Silent, &whole, false).is_some());
}

/// The adapter says that it stamped each frame, and has no stamp. So no event reaches the node.
#[test]
fn random_messages_of_all_lengths_bring_no_time() {
    let mut random = Random::stream(21, 7);
    let (mut station, mut receiver) = (station(), TimeReceiver::default());
    let mut events = 0;
    for number in 0..20_000 {
        let length = random.below(1_501) as usize;
        let mut message: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
        if let [first, version, ..] = message.as_mut_slice() {
            (*first, *version) = (0x10 | *first & 0xf, 2);
        }
        let frame = frame(ETHERTYPE.to_be_bytes(), &message);
        let heard = receiver.take(&Silent, &frame, true).unwrap();
        let now = Nanos(number * 1_000);
        station.heard(&Silent, || now, &heard);
        events += u64::from(message.first().is_some_and(|first| first & 0xf <= 7));
        assert_eq!(station.node().time(now), None);
    }
    assert!(events > 5_000);
    assert_eq!(station.unstamped(), events);
}

/// An adapter whose clock is that of the host. It latches a stamp when the test says so.
#[derive(Default)]
struct Late {
    now: Cell<u64>,
    latched: Cell<Option<u64>>,
}

impl AdapterRegisters for Late {
    fn read(&self, of: usize) -> u32 {
        let stamp = self.latched.get();
        match of {
            register::SYSTIML => self.now.get() as u32,
            register::SYSTIMH => (self.now.get() >> 32) as u32,
            register::TSYNCTXCTL => u32::from(stamp.is_some()),
            register::TXSTMPL => stamp.unwrap_or(0) as u32,
            register::TXSTMPH => {
                self.latched.set(None);
                (stamp.unwrap_or(0) >> 32) as u32
            }
            _ => 0,
        }
    }

    fn write(&self, _: usize, _: u32) {}
}

/// The adapter may write a descriptor back before it has the stamp of its frame. The next event
/// does not take that stamp for its own, whether it comes before or after that event was given.
#[test]
fn a_stamp_that_comes_too_late_is_of_no_other_event() {
    for comes_first in [false, true] {
        let (mut station, adapter) = (station(), Late::default());
        let go = |to: u64| adapter.now.set(to / 40 * 40);
        let next = |station: &TimeStation| station.node().next_look();
        // An event may follow another after this time.
        let latch = |is_now: bool| {
            let before = adapter.now.get().checked_sub(600_000);
            is_now.then(|| adapter.latched.set(before));
        };
        let mut events = 0;
        for _ in 0..200 {
            go(next(&station).0.max(adapter.now.get() + 40));
            let now = || Nanos(adapter.now.get());
            latch(comes_first);
            if station.look(&adapter, now()).is_none_or(|out| out.event.is_none()) {
                continue;
            }
            events += 1;
            // All that is due has to wait for the stamp.
            assert!(station.awaits() && station.look(&adapter, Nanos::FOREVER).is_none());
            latch(!comes_first);
            go(adapter.now.get() + 100_000);
            station.gone(&adapter, now);
            assert_eq!(station.unstamped(), events, "a stamp of another event was used");
        }
        assert!(events > 20, "{events}");
        // The stamp of an event is its own again once stamps are in time.
        go(next(&station).0);
        while station.look(&adapter, Nanos(adapter.now.get())).is_none_or(|it| it.event.is_none()) {
            go(next(&station).0.max(adapter.now.get() + 40));
        }
        adapter.latched.set(Some(adapter.now.get()));
        go(adapter.now.get() + 100_000);
        station.gone(&adapter, || Nanos(adapter.now.get()));
        assert_eq!(station.unstamped(), events, "the stamp is its own");
    }
}

/// An adapter with a perfect clock and one stamp.
struct Clock(Cell<u64>);

const STAMP: u64 = 1_000_000;

impl AdapterRegisters for Clock {
    fn read(&self, offset: usize) -> u32 {
        match offset {
            register::SYSTIML => (self.0.get() / 40 * 40) as u32,
            register::TSYNCRXCTL => 1,
            register::RXSTMPL => STAMP as u32,
            _ => 0,
        }
    }

    fn write(&self, _: usize, _: u32) {}
}

/// The thread is preempted between both looks of the first reads.
#[test]
fn clocks_are_read_again_if_the_thread_was_preempted_between_two_looks() {
    for preempted in 0..5 {
        let (clock, looks) = (Clock(Cell::new(STAMP + 10_000)), Cell::new(0));
        let now = || {
            let look = looks.replace(looks.get() + 1);
            let late = if look % 2 == 1 && look / 2 < preempted { 100_000 } else { 100 };
            clock.0.set(clock.0.get() + late);
            Nanos(clock.0.get())
        };
        let frame = frame(ETHERTYPE.to_be_bytes(), &[0x10, 2]);
        let heard = TimeReceiver::default().take(&clock, &frame, true).unwrap();
        let mut station = station();
        station.heard(&clock, now, &heard);
        assert_eq!(station.unstamped(), u64::from(preempted >= 3), "{preempted}");
    }
}
