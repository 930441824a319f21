//! `tpipe` to a device, and through a thread back to it: bounds, each refusal with its reason, and
//! that what is refused changes nothing.

use crate::interface::{MS, US, interface};
use diapason_abi::Nanos;
use diapason_abi::pipe::Envelope;
use diapason_pipe::bill::{Drain, Interrupts, StageTimes, Telling};
use diapason_pipe::size::Bucket;
use diapason_pipe::tuned::*;

/// Returns the driver of the interface, one or two of whose channels are written.
fn written() -> Driver {
    let turn = Nanos(327_500);
    let output = Outward {
        look: (MS(1), US(40)),
        io: (20_000, MS(1)),
        transfers: (US(25), 16),
        ahead: 40,
        channels: 2,
        slots: 128,
        drain: Drain { first: Nanos(3 * turn.0), each: turn, holds: 128 },
        acknowledged: Bucket::periodic(Nanos(325_400)).with_burst(4),
    };
    let driver = interface();
    Driver {
        interrupts: Interrupts { shared: true, ..driver.interrupts },
        bottom_half: (StageTimes { activation: US(40), ..StageTimes::default() }, Telling::All),
        io: Shares { least: 250_000, most: 250_000, period: MS(1) },
        output: Some(output),
        ..driver
    }
}

/// `frames` of 16 bytes a second, within `latency`.
fn frames(frames: u64, latency: Nanos) -> Qos {
    Qos {
        latency,
        tput: (frames * 16 * 8 * latency.0).div_ceil(1_000_000_000),
        buffer: 64 * 16,
        execution: US(200),
        burst: 8,
    }
}

type Five = PipeEndpoint<5>;

fn open(route: Route, qos: Qos) -> Result<Terms, RefusedPipe> {
    let mut endpoint = Five::new(written());
    let opened = endpoint.open_on(route, qos, &mut |_| true);
    opened.map(|pipe| endpoint.agreement().pipes[pipe].unwrap())
}

fn reason(route: Route, qos: Qos) -> (WhyRefused, WouldFit) {
    let refused = open(route, qos).unwrap_err();
    println!("{refused}");
    (refused.reason, refused.would_fit)
}

#[test]
fn a_pipe_to_a_device_has_a_bound_and_a_thread_that_keeps_up() {
    let terms = open(Route::To(3), frames(400, MS(100))).unwrap();
    println!("{}\n{terms:?}", terms.bill);
    assert!(terms.bound() <= MS(100) && terms.taken < terms.bound());
    // At most 8 at once: 20 ms at 400 a second.
    assert!(terms.period <= MS(20) && terms.period > MS(5), "{:?}", terms.period);
    assert!(terms.bill.slots <= 64);
    // A hastier one runs more often, so less is written at once.
    let sooner = terms.bound() - US(500);
    let hasty = open(Route::To(3), frames(400, sooner)).unwrap();
    assert!(hasty.period < terms.period && hasty.bound() <= sooner, "{hasty:?}");
}

#[test]
fn each_refusal_of_a_pipe_to_a_device_has_its_reason() {
    let good = frames(400, MS(100));
    let to = Route::To(3);
    assert_eq!(reason(to, Qos { burst: 0, ..good }).0, WhyRefused::Nothing);
    let small = reason(to, Qos { buffer: 15, ..good }).0;
    assert_eq!(small, WhyRefused::SmallBuffer { buffer: 15, packet: 16 });
    let large = reason(to, Qos { buffer: 129 * 16, ..good }).0;
    assert_eq!(large, WhyRefused::LargeBuffer { buffer: 2_064, most: 2_048 });
    // A node that takes a message in 327.5 us takes 3,053 a second.
    let (why, instead) = reason(to, frames(3_100, MS(100)));
    assert!(
        matches!(why, WhyRefused::Device { wanted: 396_800.., given: 390_000..391_000 }),
        "{why}"
    );
    assert!(matches!(instead, WouldFit::Tput(bits) if bits < 39_100), "{instead:?}");
    let (why, instead) = reason(to, frames(400, MS(2)));
    assert!(
        matches!(why, WhyRefused::Latency { wanted, fixed } if wanted == MS(2) && fixed > wanted)
    );
    assert!(matches!(instead, WouldFit::Latency(latency) if latency > MS(2)), "{instead:?}");
    let few = Qos { buffer: 16, ..good };
    assert!(matches!(reason(to, few).0, WhyRefused::Overflow { slots: 1, needed: 2.. }));
    let none = Driver { output: None, ..written() };
    let refused = Five::new(none).open_on(to, good, &mut |_| true).unwrap_err();
    assert_eq!(refused.reason, WhyRefused::Undeclared { channel: 3 });
}

/// One bound from the device through a thread to the device.
#[test]
fn what_goes_through_has_one_bound() {
    let good = frames(400, MS(100));
    let way = Route::Through(0, 3);
    let terms = open(way, good).unwrap();
    println!("{}\n{terms:?}", terms.bill);
    assert!(terms.bound() <= MS(100) && terms.taken < terms.bound());
    // The way in, and on from there at least as long as the thread's own writes.
    let alone = open(Route::To(3), good).unwrap();
    assert!(terms.taken > terms.bill.total && terms.onward > alone.bound() - alone.taken);
    // Both parts have to fit into the one latency.
    let sooner = frames(400, terms.bound() - MS(1));
    assert!(open(way, sooner).unwrap().period < terms.period);
    let latency = reason(way, frames(400, MS(9))).0;
    assert!(matches!(
        latency, WhyRefused::Latency { wanted, fixed } if wanted == MS(9) && fixed > wanted
    ));
    assert!(matches!(reason(way, frames(3_100, MS(100))).0, WhyRefused::Device { .. }));
}

#[test]
fn a_way_through_takes_two_places_and_gives_both_back() {
    let good = frames(400, MS(100));
    let mut endpoint = Five::new(written());
    let way = endpoint.open_on(Route::Through(0, 3), good, &mut |_| true).unwrap();
    for channel in [1, 2, 4] {
        endpoint.open_on(Route::From(channel), good, &mut |_| true).unwrap();
    }
    let before = endpoint.clone();
    let full = |endpoint: &mut Five, route| {
        endpoint.open_on(route, good, &mut |_| true).unwrap_err().reason
    };
    let none = WhyRefused::NoChannel { channels: 5 };
    assert_eq!(full(&mut endpoint, Route::From(1)), none);
    assert!(endpoint.close(4) && !endpoint.close(4));
    // One place is not enough for a way through.
    assert_eq!(full(&mut endpoint, Route::Through(0, 3)), none);
    assert!(!endpoint.close(1), "the other end of the way");
    assert!(endpoint.close(way));
    let again = endpoint.open_on(Route::Through(0, 3), good, &mut |_| true).unwrap();
    let terms = |endpoint: &Five| endpoint.agreement().pipes[again];
    endpoint.open_on(Route::From(4), good, &mut |_| true).unwrap();
    assert_eq!(terms(&endpoint), terms(&before));
}

#[test]
fn what_is_refused_changes_nothing() {
    let good = frames(400, MS(100));
    let envelope = Envelope {
        channels: 0b1,
        to: 0b1000,
        rate: 400,
        burst: 8,
        budget: US(200),
        period: US(500),
    };
    let mut endpoint = Five::new(written());
    let open = |endpoint: &mut Five, route, qos, room| {
        endpoint.open_within(&envelope, (route, qos), &mut |_| room)
    };
    let pipe = open(&mut endpoint, Route::Through(0, 3), good, true).unwrap();
    let before = (endpoint.agreement().pipes, endpoint.qos(pipe));
    let hasty = frames(400, MS(9));
    assert!(endpoint.renegotiate(pipe, hasty, &mut |_| true).is_err());
    assert!(endpoint.renegotiate(pipe, good, &mut |_| false).is_err());
    for (route, channel) in [
        (Route::To(0), 0),
        (Route::From(3), 3),
        (Route::Through(0, 2), 2),
        (Route::Through(1, 3), 1),
    ] {
        let refused = open(&mut endpoint, route, good, true).unwrap_err();
        assert_eq!(refused.reason, WhyRefused::Undeclared { channel });
    }
    let many = frames(500, MS(100));
    let refused = open(&mut endpoint, Route::To(3), many, true).unwrap_err();
    assert_eq!(refused.reason, WhyRefused::Rate { wanted: 500, declared: 400 });
    assert_eq!((endpoint.agreement().pipes, endpoint.qos(pipe)), before);
    assert_eq!(endpoint.renegotiate(pipe, frames(300, MS(100)), &mut |_| true), Ok(()));
}
