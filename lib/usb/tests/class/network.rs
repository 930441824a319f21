//! Network devices: how they are set up, frames both ways, and what is lent comes back once.

use super::shell::{Asked, Shell, hostile};
use diapason_usb::class::TransferFault;
use diapason_usb::class::cdc_ecm::{Ethernet, FRAME_MAX, NetworkEvent};
use diapason_usb::descriptor::Configuration;
use diapason_usb::descriptor::build::{
    Configuration as Make, Interface, bulk, descriptor, interrupt, text,
};
use diapason_usb::{Setup, Speed};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

const ADDRESS: [u8; 6] = [0x40, 0x54, 0, 0x12, 0x34, 0xab];
const NEWS: u8 = 0x81;
const IN: u8 = 0x82;
const OUT: u8 = 2;
/// Memory for a frame.
const SLOT: u32 = 2048;

/// As QEMU's, which is of full speed; its data interface is open from the beginning with
/// `alternate` 0.
fn described(alternate: u8, ethernet: &[u8]) -> Option<Ethernet> {
    let control = Interface::new(0)
        .class(2, 6, 0)
        .extra(0x24, &[0, 0x10, 1])
        .extra(0x24, &[6, 0, 1])
        .extra(0x24, ethernet)
        .endpoint(interrupt(NEWS, 16, 32));
    let data = Interface::new(1).class(10, 0, 0);
    let open = data.clone().alternate(alternate).endpoint(bulk(IN, 64)).endpoint(bulk(OUT, 64));
    let mut make = Make::new(1).with(control);
    if alternate > 0 {
        make = make.with(data);
    }
    let bytes = make.with(open).bytes(Speed::Full);
    Ethernet::find(&Configuration::parse_once(&bytes, Speed::Full).unwrap())
}

fn about(text: u8, most: u16) -> [u8; 11] {
    let [low, high] = most.to_le_bytes();
    [15, text, 0, 0, 0, 0, low, high, 0, 0, 0]
}

fn device() -> Ethernet {
    described(1, &about(3, 1514)).unwrap()
}

/// Ends the next transfer of an endpoint, and says what was told.
fn end(
    shell: &mut Shell<Ethernet>,
    endpoint: u8,
    result: Result<&[u8], TransferFault>,
) -> Vec<NetworkEvent> {
    let mut told = Vec::new();
    shell.end(endpoint, result, &mut |event| told.push(event));
    told
}

/// Returns one whose frames flow.
fn opened() -> Shell<Ethernet> {
    let mut shell = Shell::new(device());
    shell.pull();
    assert_eq!(end(&mut shell, 0, Ok(&text("4054001234aB"))), []);
    assert_eq!(end(&mut shell, 0, Ok(&[])), []);
    assert_eq!(end(&mut shell, 0, Ok(&[])), [NetworkEvent::Opened { address: ADDRESS }]);
    shell
}

#[test]
fn a_device_is_asked_for_its_address_and_opened() {
    let mut shell = Shell::new(device());
    shell.pull();
    let address = Setup { kind: 0x80, request: 6, value: 0x303, index: 0x409, length: 26 };
    assert_eq!(shell.next(0), Some(&Asked::Control(address, vec![])));
    assert_eq!(end(&mut shell, 0, Ok(&text("4054001234ab"))), []);
    assert_eq!(shell.next(0), Some(&Asked::Alternate(1, 1)));
    assert_eq!(end(&mut shell, 0, Ok(&[])), []);
    let filter = Setup { kind: 0x21, request: 0x43, value: 0xe, index: 0, length: 0 };
    assert_eq!(shell.next(0), Some(&Asked::Control(filter, vec![])));
    assert_eq!((shell.next(NEWS), shell.next(IN)), (None, None));
    // QEMU's has no filter.
    assert_eq!(
        end(&mut shell, 0, Err(TransferFault::Stall)),
        [NetworkEvent::Opened { address: ADDRESS }]
    );
    assert_eq!(shell.next(NEWS), Some(&Asked::In(16)));
}

#[test]
fn a_data_interface_that_is_open_is_not_opened() {
    let mut shell = Shell::new(described(0, &about(3, 1514)).unwrap());
    shell.pull();
    assert_eq!(end(&mut shell, 0, Ok(&text("4054001234ab"))), []);
    assert!(matches!(shell.next(0), Some(Asked::Control(Setup { request: 0x43, .. }, _))));
}

#[test]
fn devices_without_an_address_or_a_way_to_open_them_are_refused() {
    assert!(described(1, &about(0, 1514)).is_none(), "no text");
    assert!(described(1, &about(3, 14)).is_none(), "no room behind the head of a frame");
    assert!(described(1, &about(3, 1514)[..10]).is_none(), "cut");
    let long = text("4054001234abc");
    let group = text("4154001234ab");
    let odd = descriptor(3, &[0x34; 23]);
    for wrong in [&text("4054001234a"), &text("4054001234ag"), &long, &group, &odd, &vec![]] {
        let mut shell = Shell::new(device());
        shell.pull();
        assert_eq!(end(&mut shell, 0, Ok(wrong)), [NetworkEvent::Failed], "{wrong:?}");
        assert_eq!(shell.next(0), None);
    }
    let mut shell = Shell::new(device());
    shell.pull();
    end(&mut shell, 0, Ok(&text("4054001234ab")));
    assert_eq!(end(&mut shell, 0, Err(TransferFault::NoBandwidth)), [NetworkEvent::Failed]);
}

#[test]
fn frames_come_whole_or_not_at_all() {
    let mut shell = opened();
    assert!(!shell.class.lend(0, FRAME_MAX), "a frame could fill it");
    assert!(!shell.class.lend(0, SLOT - 1), "no whole packets");
    assert!(!shell.class.lend(0, SLOT / 2), "a frame does not fit into whole packets");
    assert!(shell.class.lend(5, SLOT) && shell.class.lend(6, SLOT));
    shell.pull();
    assert_eq!(shell.next(IN), Some(&Asked::Shared(5, 2048)));
    assert_eq!(end(&mut shell, IN, Ok(&[1; 1514])), [NetworkEvent::Came { place: 5, bytes: 1514 }]);
    // QEMU ends a frame of full packets by a transfer of its own.
    assert_eq!(end(&mut shell, IN, Ok(&[])), []);
    assert_eq!(end(&mut shell, IN, Ok(&[1; 13])), [NetworkEvent::Damaged]);
    // Longer than the memory: the rest is no frame either.
    assert_eq!(end(&mut shell, IN, Ok(&[1; 2048])), [NetworkEvent::Damaged]);
    assert_eq!(end(&mut shell, IN, Ok(&[1; 60])), [NetworkEvent::Damaged]);
    assert_eq!(end(&mut shell, IN, Ok(&[1; 60])), [NetworkEvent::Came { place: 6, bytes: 60 }]);
    assert_eq!(shell.next(IN), None);
}

#[test]
fn a_frame_of_full_packets_ends_with_an_empty_one() {
    let mut shell = opened();
    assert!(!shell.class.send(1, 13) && !shell.class.send(1, 1515));
    for (place, length) in [(1, 60), (2, 128), (3, 61)] {
        assert!(shell.class.send(place, length));
    }
    shell.pull();
    assert_eq!(end(&mut shell, OUT, Ok(&[1; 60])), [NetworkEvent::Sent { place: 1 }]);
    assert_eq!(end(&mut shell, OUT, Ok(&[1; 128])), [NetworkEvent::Sent { place: 2 }]);
    assert_eq!(shell.next(OUT), Some(&Asked::Out(vec![])));
    // Transfers that a fault kept go again: the empty packet and the frame behind it.
    assert_eq!(end(&mut shell, OUT, Err(TransferFault::Stall)), []);
    assert_eq!(shell.next(OUT), Some(&Asked::Recover));
    assert_eq!(end(&mut shell, OUT, Ok(&[])), []);
    assert_eq!(shell.next(OUT), Some(&Asked::Out(vec![])));
    assert_eq!(end(&mut shell, OUT, Ok(&[])), []);
    assert_eq!(shell.next(OUT), Some(&Asked::Shared(3, 61)));
    assert_eq!(end(&mut shell, OUT, Ok(&[1; 61])), [NetworkEvent::Sent { place: 3 }]);
}

#[test]
fn the_device_says_whether_there_is_a_network() {
    let mut shell = opened();
    assert_eq!(
        end(&mut shell, NEWS, Ok(&[0xa1, 0, 1, 0, 0, 0, 0, 0])),
        [NetworkEvent::Connected(true)]
    );
    let speed = [0xa1, 0x2a, 0, 0, 0, 0, 8, 0, 0, 0xe1, 0xf5, 5, 0x80, 0x96, 0x98, 0];
    let told = NetworkEvent::Speed { down: 100_000_000, up: 10_000_000 };
    assert_eq!(end(&mut shell, NEWS, Ok(&speed)), [told]);
    assert_eq!(end(&mut shell, NEWS, Ok(&speed[..12])), [], "cut");
    assert_eq!(end(&mut shell, NEWS, Ok(&[0x21; 8])), [], "no notification");
    assert_eq!(
        end(&mut shell, NEWS, Ok(&[0xa1, 0, 0, 0, 0, 0, 0, 0])),
        [NetworkEvent::Connected(false)]
    );
}

#[test]
fn a_silent_device_fails_in_time() {
    let mut shell = Shell::new(device());
    shell.pull();
    let mut told = Vec::new();
    shell.wake(&mut |event| told.push(event));
    assert_eq!(told, [NetworkEvent::Failed]);
}

/// The user of a device: what is the device's by now.
#[derive(Default)]
struct Held {
    lent: BTreeSet<u32>,
    sent: BTreeMap<u32, u32>,
    next: u32,
}

/// Returns the answers of a good device on the way to its first frame.
fn honest(asked: &Asked, _: &[Vec<u8>]) -> Option<Vec<u8>> {
    match asked {
        Asked::Control(setup, _) => Some(if setup.is_in() { text("4054001234ab") } else { vec![] }),
        Asked::Out(data) => Some(data.clone()),
        _ => None,
    }
}

#[test]
fn whatever_a_network_device_says() {
    let held = RefCell::new(Held::default());
    let mut kinds = BTreeMap::<String, u64>::new();
    let seeds = [vec![0xa1, 0, 1, 0, 0, 0, 0, 0], vec![7; 60], vec![7; 1514], text("4054001234ab")];
    hostile(
        (6, false),
        100_000,
        &seeds,
        &honest,
        |_| {
            *held.borrow_mut() = Held::default();
            device()
        },
        |class, _, random| {
            let mut held = held.borrow_mut();
            let (place, length) = (held.next, random.below(1600) as u32);
            held.next += 1;
            if random.one_in(2) && class.lend(place, SLOT) {
                held.lent.insert(place);
            } else if class.send(place, length) {
                held.sent.insert(place, length);
            }
        },
        &mut |event| {
            let mut held = held.borrow_mut();
            match event {
                NetworkEvent::Came { place, bytes } => {
                    assert!(held.lent.remove(&place) && (14..=FRAME_MAX).contains(&bytes));
                }
                NetworkEvent::Sent { place } => assert!(held.sent.remove(&place).is_some()),
                _ => {}
            }
            let said = format!("{event:?}");
            let kind = said.split([' ', '(']).next().unwrap_or("");
            *kinds.entry(kind.into()).or_default() += 1;
        },
    );
    for (kind, least) in [
        ("Opened", 100),
        ("Came", 1_000),
        ("Sent", 1_000),
        ("Damaged", 1_000),
        ("Connected", 100),
        ("Failed", 10),
    ] {
        assert!(kinds.get(kind).is_some_and(|count| *count > least), "{kinds:?}");
    }
}
