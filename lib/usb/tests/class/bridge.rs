//! A cable between two computers: both ends in one test, with losses and damage in between.

use super::shell::{Asked, Shell, hostile, never};
use diapason_abi::Nanos;
use diapason_usb::Speed;
use diapason_usb::class::bridge::{Bridge, Event, FRAMES, PAYLOAD_MAX, PEER_TIME, Refused};
use diapason_usb::class::{Class, Fault};
use diapason_usb::descriptor::Configuration;
use diapason_usb::descriptor::build::{Configuration as Make, Interface, bulk, interrupt};

fn bridge() -> Bridge {
    let pair = Interface::new(0).class(0xff, 0, 0).endpoint(interrupt(0x81, 2, 8));
    let pair = pair.endpoint(bulk(2, 1024)).endpoint(bulk(0x83, 1024));
    let bytes = Make::new(1).with(pair).bytes(Speed::Super);
    Bridge::find(&Configuration::parse_once(&bytes, Speed::Super).unwrap()).unwrap()
}

/// What was told, in words.
fn word(event: Event<'_>) -> String {
    match event {
        Event::Frame(bytes) => format!("frame {}", bytes.len()),
        other => format!("{other:?}"),
    }
}

fn started() -> Shell<Bridge> {
    let mut shell = Shell::new(bridge());
    shell.pull();
    // Some units refuse this.
    shell.end(0, Err(Fault::Stall), &mut |_| {});
    shell
}

/// The next transfer to the device; it goes out.
fn sent(shell: &mut Shell<Bridge>, heard: &mut Vec<String>) -> Vec<u8> {
    shell.pull();
    let Some(Asked::Out(bytes)) = shell.next(2).cloned() else { panic!("nothing to send") };
    shell.end(2, Ok(&bytes), &mut |event| heard.push(word(event)));
    bytes
}

fn hear(shell: &mut Shell<Bridge>, bytes: &[u8]) -> Vec<String> {
    let mut heard = Vec::new();
    shell.end(0x83, Ok(bytes), &mut |event| heard.push(word(event)));
    heard
}

#[test]
fn frames_arrive_and_losses_are_counted() {
    let (mut here, mut there) = (started(), started());
    let frames: Vec<Vec<u8>> = (0..8)
        .map(|n| {
            here.class.send(&vec![n; 100 * usize::from(n)]).unwrap();
            sent(&mut here, &mut Vec::new())
        })
        .collect();
    // Number 0, no payload, the first: then the checksum of these eight bytes.
    assert_eq!(frames[0][..8], [0, 0, 0, 0, 0, 0, 1, 0]);
    assert_eq!(frames[1][..8], [1, 0, 0, 0, 100, 0, 0, 0]);
    assert_eq!((frames[0].len(), frames[1].len()), (12, 112));
    assert_eq!(hear(&mut there, &frames[0]), ["frame 0"]);
    assert_eq!(hear(&mut there, &frames[1]), ["frame 100"]);
    assert_eq!(hear(&mut there, &frames[4]), ["Lost(2)", "frame 400"]);
    let mut damaged = frames[5].clone();
    damaged[40] ^= 1;
    assert_eq!(hear(&mut there, &damaged), [""; 0]);
    assert_eq!(hear(&mut there, &frames[6]), ["Lost(1)", "frame 600"]);
    assert_eq!(hear(&mut there, &frames[7][..300]), [""; 0]);
    let counts = there.class.counts();
    assert_eq!((counts.damaged, counts.malformed), (1, 1));
    // The other side begins anew; with its first frame, and when that was lost.
    assert_eq!(hear(&mut there, &frames[0]), ["PeerStarted", "frame 0"]);
    assert_eq!(hear(&mut there, &frames[3]), ["Lost(2)", "frame 300"]);
    assert_eq!(hear(&mut there, &frames[1]), ["PeerStarted", "frame 100"]);
}

#[test]
fn no_transfer_ends_with_a_full_packet() {
    let (mut here, mut there) = (started(), started());
    for length in [0, 1011, 1012, 1013, PAYLOAD_MAX] {
        here.class.send(&vec![1; length]).unwrap();
        let bytes = sent(&mut here, &mut Vec::new());
        assert!(!bytes.len().is_multiple_of(1024));
        assert_eq!(hear(&mut there, &bytes).last(), Some(&format!("frame {length}")));
    }
    assert_eq!(here.class.send(&[0; PAYLOAD_MAX + 1]), Err(Refused::TooLong));
}

#[test]
fn a_peer_that_takes_nothing_is_gone_and_comes_back() {
    let mut here = started();
    while here.class.send(&[1; 10]).is_ok() {}
    here.pull();
    let mut heard = Vec::new();
    let begin = here.now;
    here.wake(&mut |event| heard.push(word(event)));
    assert_eq!(here.now, begin + PEER_TIME);
    assert_eq!(heard, [format!("PeerGone({FRAMES})")]);
    assert_eq!(here.next(2), Some(&Asked::Recover));
    here.end(2, Ok(&[]), &mut |event| heard.push(word(event)));
    // The next frame tries again.
    heard.clear();
    here.class.send(&[2; 10]).unwrap();
    let _ = sent(&mut here, &mut heard);
    assert_eq!(heard, ["PeerBack"]);
    assert_eq!(here.class.next_wake(), Nanos::FOREVER);
}

#[test]
fn whatever_a_bridge_says() {
    let mut far = started();
    let seeds: Vec<Vec<u8>> = (0..20)
        .map(|n| {
            far.class.send(&vec![n; usize::from(n) * 3]).unwrap();
            sent(&mut far, &mut Vec::new())
        })
        .collect();
    let mut kinds = std::collections::BTreeMap::<String, u64>::new();
    hostile(
        (5, false),
        100_000,
        &seeds,
        &never,
        |_| bridge(),
        |class, _, random| {
            let most = if random.one_in(50) { 1600 } else { 60 };
            let _ = class.send(&vec![3; random.below(most) as usize]);
        },
        &mut |event| {
            let said = word(event);
            *kinds.entry(said.split(['(', ' ']).next().unwrap_or("").into()).or_default() += 1;
        },
    );
    assert!(
        kinds["frame"] > 1_000 && kinds["Lost"] > 100 && kinds["PeerStarted"] > 100,
        "{kinds:?}"
    );
    assert!(kinds["PeerGone"] > 10 && kinds["PeerBack"] > 10, "{kinds:?}");
}
