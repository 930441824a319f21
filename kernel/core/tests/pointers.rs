//! Every call that takes an address and a length, at and around every boundary, against one
//! predicate that says what may be accessed.

use crate::support::lab;
use crate::support::*;
use diapason_abi::call::MEASUREMENT;
use diapason_abi::{MESSAGE_BYTES, layout};
use diapason_core::host::USER_BYTES;
use proptest::prelude::*;

/// The required effect of a call with these arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expected {
    Fine,
    BadAddress,
    BadLength,
}

/// Returns whether process 0 may access `[address, address + length)`, without overflow.
fn accessible(address: u64, length: u64) -> bool {
    let (address, length) = (u128::from(address), u128::from(length));
    let first = u128::from(layout::base(0));
    length == 0 || (address >= first && address + length <= first + u128::from(USER_BYTES))
}

fn expect(length_max: u64, ranges: &[(u64, u64)]) -> Expected {
    if ranges.iter().any(|(_, length)| *length > length_max) {
        Expected::BadLength
    } else if ranges.iter().all(|(address, length)| accessible(*address, *length)) {
        Expected::Fine
    } else {
        Expected::BadAddress
    }
}

/// The calls, each with room, a message or nothing in its way.
#[derive(Clone, Copy, Debug)]
enum Access {
    Log,
    SendToRoom,
    SendToFull,
    SendToReceiver,
    ReceiveMessage,
    ReceiveLater,
    ReadSlow,
}

const ACCESSES: [Access; 7] = [
    Access::Log,
    Access::SendToRoom,
    Access::SendToFull,
    Access::SendToReceiver,
    Access::ReceiveMessage,
    Access::ReceiveLater,
    Access::ReadSlow,
];

fn outcome_of(access: Access, address: u64, length: u64, second: u64) -> Outcome {
    lab::with(&lab::plan().mailbox("box", 1), |sys| {
        let mailbox = sys.open(Call::MboxCreate, "box");
        let here = sys.address(0);
        match access {
            Access::SendToFull => drop(sys.call(Call::MboxSend, &[mailbox, here, 1, 0, NOW])),
            Access::ReceiveMessage => {
                sys.ok(Call::MboxSend, &[mailbox, here, length.min(64), 0, NOW]);
            }
            Access::SendToReceiver => {
                lab::summon(sys);
                let there = sys.address(0);
                sys.blocks(Call::MboxReceive, &[mailbox, there, FOREVER]);
            }
            Access::ReceiveLater => {
                sys.spawn(5);
                let waits = sys.call(Call::MboxReceive, &[mailbox, address, FOREVER]);
                if waits != Outcome::Blocked {
                    return waits;
                }
                let length = length.min(MESSAGE_BYTES as u64);
                let sent = sys.call(Call::MboxSend, &[mailbox, here, length, 0, NOW]);
                return if sent == Outcome::Preempted { Outcome::Blocked } else { sent };
            }
            Access::Log | Access::SendToRoom | Access::ReadSlow => {}
        }
        match access {
            Access::Log => sys.call(Call::Log, &[address, length]),
            Access::ReadSlow => sys.call(Call::ReadSlow, &[second, address, length]),
            Access::ReceiveMessage => sys.call(Call::MboxReceive, &[mailbox, address, NOW]),
            _ => sys.call(Call::MboxSend, &[mailbox, address, length, 0, FOREVER]),
        }
    })
}

fn check(access: Access, address: u64, length: u64, second: u64) {
    let received = length.min(MESSAGE_BYTES as u64);
    let expected = match access {
        Access::Log if length == MEASUREMENT => expect(80, &[(address, 80)]),
        Access::Log => expect(112, &[(address, length)]),
        Access::SendToRoom | Access::SendToFull | Access::SendToReceiver => {
            expect(MESSAGE_BYTES as u64, &[(address, length)])
        }
        Access::ReceiveLater if address == 0 => Expected::BadAddress,
        Access::ReceiveMessage | Access::ReceiveLater => expect(64, &[(address, received)]),
        Access::ReadSlow => expect(4096, &[(address, length), (second, length)]),
    };
    let outcome = outcome_of(access, address, length, second);
    let found = match outcome {
        Outcome::Returned(Ok(_)) | Outcome::Blocked | Outcome::Preempted => Expected::Fine,
        Outcome::Faulted(FaultCause::BadAddress, at) => {
            assert!(at == address || at == second, "{access:?}: fault at {at:#x}");
            Expected::BadAddress
        }
        Outcome::Faulted(FaultCause::BadArgument, at) => {
            assert_eq!(at, length);
            Expected::BadLength
        }
        other => panic!("{access:?} {address:#x} {length:#x}: {other:?}"),
    };
    assert_eq!(found, expected, "{access:?} {address:#x} {length:#x} {second:#x}");
}

/// Addresses at and around every edge.
fn edges() -> Vec<u64> {
    let (first, end) = (layout::base(0), layout::base(0) + USER_BYTES);
    let next = layout::base(1);
    let mut all = vec![0, 1, 8, 0xfff, 1 << 47, (1 << 47) - 1, 0xffff_8000_0000_0000];
    for edge in [first, end, next, u64::MAX - 63] {
        all.extend((0..5).map(|i| edge.wrapping_sub(2).wrapping_add(i)));
        all.extend([edge.wrapping_sub(64), edge.wrapping_sub(63), edge.wrapping_sub(65)]);
    }
    all.push(u64::MAX);
    all
}

/// Lengths at and around every limit.
const LENGTHS: [u64; 22] = [
    0,
    1,
    2,
    3,
    63,
    64,
    65,
    111,
    112,
    113,
    255,
    256,
    257,
    2048,
    4095,
    4096,
    4097,
    1 << 16,
    1 << 32,
    (1 << 32) + 1,
    1 << 63,
    u64::MAX,
];

#[test]
fn every_edge_with_every_length() {
    let second = layout::base(0) + 0x800;
    for access in ACCESSES {
        for address in edges() {
            for length in LENGTHS {
                check(access, address, length, second);
            }
        }
    }
}

fn any_address() -> impl Strategy<Value = u64> {
    let near = prop::sample::select(edges());
    prop_oneof![
        any::<u64>(),
        (near, -70i64..70).prop_map(|(edge, by)| edge.wrapping_add_signed(by)),
        (0..USER_BYTES).prop_map(|offset| layout::base(0) + offset),
    ]
}

fn any_length() -> impl Strategy<Value = u64> {
    prop_oneof![0..130u64, prop::sample::select(&LENGTHS[..]), any::<u64>()]
}

/// `DIAPASON_POINTERS` makes the test longer.
fn cases() -> u32 {
    std::env::var("DIAPASON_POINTERS").map_or(4_000, |text| text.parse().expect("a number"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None,
        ..ProptestConfig::default() })]

    #[test]
    fn any_address_with_any_length(
        access in prop::sample::select(&ACCESSES[..]),
        address in any_address(),
        length in any_length(),
        second in any_address(),
    ) {
        check(access, address, length, second);
    }
}
