//! A station takes only messages of gPTP out of the frames of a wire, and no frame harms it.

use diapason_abi::Nanos;
use diapason_ether::adapter::AdapterRegisters;
use diapason_ether::station::{TimeReceiver, TimeStation};
use diapason_gptp::{ETHERTYPE, GROUP, Grandmaster, SyncBase, SyncTerms, TimeNode, identity_of};
use diapason_random::Random;

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
