//! A driver written against the `embedded-can` traits runs on the bus.

use diapason_abi::Nanos;
use diapason_can::bus::{EventKind, NodeSetup, PortError};
use diapason_can::wire::length;
use diapason_can::{BitRate, Bus, CanFrame, StandardId};
use embedded_can::Frame as _;
use embedded_can::nb::Can;

fn frame(id: u16) -> CanFrame {
    CanFrame::new(StandardId::new(id).unwrap(), &[id as u8]).unwrap()
}

/// Generic code: sends all it can, and returns what had to make room.
fn send_all<C: Can<Frame = CanFrame>>(can: &mut C, frames: &[CanFrame]) -> (Vec<CanFrame>, usize) {
    let (mut displaced, mut refused) = (Vec::new(), 0);
    for frame in frames {
        match can.transmit(frame) {
            Ok(other) => displaced.extend(other),
            Err(_) => refused += 1,
        }
    }
    (displaced, refused)
}

#[test]
fn urgent_frames_displace_others_and_an_overrun_is_reported() {
    let mut bus = Bus::new(BitRate::new(1_000_000).unwrap());
    let a = bus.add_node(NodeSetup { queue: 3, ..NodeSetup::default() });
    let b = bus.add_node(NodeSetup { inbox: 2, ..NodeSetup::default() });
    let frames = [frame(0x300), frame(0x200), frame(0x400), frame(0x100), frame(0x500)];
    let outcome = send_all(&mut bus.port(Nanos(0), a), &frames);
    assert_eq!(outcome, (vec![frame(0x400)], 1));
    let mut port = bus.port(Nanos::from_millis(1), b);
    assert_eq!(port.receive(), Ok(frame(0x100)));
    assert_eq!(port.receive(), Ok(frame(0x200)));
    assert_eq!(port.receive(), Err(nb::Error::Other(PortError::Overrun)));
    assert_eq!(port.receive(), Err(nb::Error::WouldBlock));
}

#[test]
fn frames_keep_the_contract_of_the_trait() {
    assert!(CanFrame::new(StandardId::ZERO, &[0; 9]).is_none());
    assert!(CanFrame::new_remote(StandardId::ZERO, 9).is_none());
    let remote = CanFrame::new_remote(StandardId::ZERO, 8).unwrap();
    assert_eq!((remote.dlc(), remote.data().len(), remote.is_remote_frame()), (8, 0, true));
    let coded = frame(1).with_code(9);
    assert!(coded.is_err(), "a code above eight needs eight bytes");
    let eight = CanFrame::data(StandardId::ZERO, &[1; 8]).unwrap().with_code(15).unwrap();
    assert_eq!((embedded_can::Frame::dlc(&eight), eight.code()), (8, 15));
}

#[test]
fn a_node_without_room_asks_for_overload_frames_and_loses_nothing_meanwhile() {
    const BIT: u64 = 2_000;
    // Six bits of the flag, one more of the others' answer to it, eight of the delimiter.
    const OVERLOAD: u64 = 15 * BIT;
    for (most, leaping) in [(0, true), (2, true), (2, false), (4, true)] {
        let mut bus = Bus::new(BitRate::new(500_000).unwrap());
        bus.leaping(leaping);
        let a = bus.add_node(NodeSetup::default());
        let b = bus.add_node(NodeSetup { inbox: 1, overloads: most, ..NodeSetup::default() });
        let frames = [frame(0x100), frame(0x101), frame(0x102)];
        for frame in frames {
            bus.send(Nanos(0), a, frame).unwrap();
        }
        let mut ends = Vec::new();
        while let Some(time) = bus.next_event() {
            bus.advance(time);
            while let Some(event) = bus.poll() {
                assert!(!matches!(event.kind, EventKind::Error { .. }), "{event:?}");
                if matches!(event.kind, EventKind::Sent { .. }) {
                    ends.push(event.time.0);
                    // Before the last it makes room: no reason to ask.
                    if ends.len() == 2 {
                        while bus.port(event.time, b).receive().is_ok() {}
                    }
                }
            }
        }
        let bits = |index: usize| u64::from(length(&frames[index])) * BIT;
        let pause = u64::from(most) * OVERLOAD + 3 * BIT;
        let second = bits(0) + pause + bits(1);
        // The full node asked once more before it was read, in the very bit the frame ended.
        let asked = if most > 0 { OVERLOAD } else { 0 };
        let third = second + asked + 3 * BIT + bits(2);
        assert_eq!(ends, [bits(0), second, third], "{most} {leaping}");
        let counts = bus.counts(b);
        assert_eq!((counts.received, counts.errors), (3, 0));
        assert_eq!(bus.health(a), bus.health(b));
    }
}
