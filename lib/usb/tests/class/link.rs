//! Links to another computer: what is lent and given comes back once, whatever the device does.

use super::shell::{Asked, Shell, hostile, never};
use diapason_abi::Nanos;
use diapason_usb::Speed;
use diapason_usb::class::link::{Link, LinkEvent, PEER_TIME, ROOM};
use diapason_usb::class::{Class, TransferFault};
use diapason_usb::descriptor::Configuration;
use diapason_usb::descriptor::build::{Configuration as Make, Interface, bulk, interrupt};
use std::collections::BTreeMap;

fn found(interface: Interface) -> Option<Link> {
    let bytes = Make::new(1).with(interface).bytes(Speed::Super);
    Link::find(&Configuration::parse_once(&bytes, Speed::Super).unwrap())
}

fn pair(class: u8, subclass: u8) -> Interface {
    let news = Interface::new(0).class(class, subclass, 0).endpoint(interrupt(0x81, 2, 8));
    news.endpoint(bulk(2, 1024)).endpoint(bulk(0x83, 1024))
}

fn cable() -> Link {
    found(pair(0xff, 0)).unwrap()
}

fn started() -> Shell<Link> {
    let mut shell = Shell::new(cable());
    shell.pull();
    // Some units refuse this.
    shell.end(0, Err(TransferFault::Stall), &mut |_| {});
    shell
}

/// Ends the next transfer of an endpoint, and says what was told.
fn end(
    shell: &mut Shell<Link>,
    endpoint: u8,
    result: Result<&[u8], TransferFault>,
) -> Vec<LinkEvent> {
    let mut told = Vec::new();
    shell.end(endpoint, result, &mut |event| told.push(event));
    told
}

#[test]
fn a_debug_device_is_a_link_without_a_beginning() {
    let mut shell = Shell::new(found(pair(0xdc, 2)).unwrap());
    assert!(shell.class.send(3, 4));
    shell.pull();
    assert_eq!(shell.next(0), None);
    assert_eq!(shell.next(2), Some(&Asked::Shared(3, 4)));
    assert!(found(pair(8, 6)).is_none(), "a disk is no link");
}

#[test]
fn messages_come_and_go_in_their_order() {
    let mut shell = started();
    for place in [5, 6] {
        assert!(shell.class.fill(place, 2_048) && shell.class.send(10 + place, 100));
    }
    assert!(!shell.class.fill(1, 0), "nothing fits into nothing");
    shell.pull();
    assert_eq!(shell.next(0x83), Some(&Asked::Shared(5, 2_048)));
    let came = LinkEvent::Came { place: 5, bytes: 7 };
    assert_eq!(end(&mut shell, 0x83, Ok(&[1; 7])), [came]);
    assert_eq!(end(&mut shell, 2, Ok(&[1; 100])), [LinkEvent::Sent { place: 15 }]);
    assert_eq!(shell.next(2), Some(&Asked::Shared(16, 100)));
}

#[test]
fn what_a_fault_kept_is_asked_for_again() {
    let mut shell = started();
    for place in 0..ROOM as u32 {
        assert!(shell.class.fill(place, 64));
    }
    assert!(!shell.class.fill(99, 64));
    shell.pull();
    assert_eq!(end(&mut shell, 0x83, Err(TransferFault::Stall)), []);
    assert_eq!(shell.next(0x83), Some(&Asked::Recover));
    assert_eq!(end(&mut shell, 0x83, Ok(&[])), []);
    for place in 0..ROOM as u32 {
        let came = LinkEvent::Came { place, bytes: 2 };
        assert_eq!(end(&mut shell, 0x83, Ok(&[0; 2])), [came]);
    }
}

#[test]
fn a_peer_that_takes_nothing_is_gone_and_comes_back() {
    let mut shell = started();
    for place in 0..20 {
        assert!(shell.class.send(place, 10));
    }
    shell.pull();
    let (mut told, begin) = (Vec::new(), shell.now);
    shell.wake(&mut |event| told.push(event));
    assert_eq!(shell.now, begin + PEER_TIME);
    let dropped = (0..20).map(|place| LinkEvent::Dropped { place });
    assert_eq!(told, [LinkEvent::PeerGone].into_iter().chain(dropped).collect::<Vec<_>>());
    assert_eq!(shell.next(2), Some(&Asked::Recover));
    assert_eq!(end(&mut shell, 2, Ok(&[])), []);
    // The next message tries again.
    assert!(shell.class.send(7, 10));
    shell.pull();
    assert_eq!(
        end(&mut shell, 2, Ok(&[1; 10])),
        [LinkEvent::PeerBack, LinkEvent::Sent { place: 7 }]
    );
    assert_eq!(shell.class.next_wake(), Nanos::FOREVER);
}

/// Buffers lent and given, by place: each comes back once, as what it was.
#[derive(Default)]
struct Lent {
    fills: BTreeMap<u32, u32>,
    sends: BTreeMap<u32, u32>,
    next: u32,
}

#[test]
fn whatever_a_link_says() {
    let lent = std::cell::RefCell::new(Lent::default());
    let mut kinds = BTreeMap::<String, u64>::new();
    hostile(
        (5, false),
        100_000,
        &[vec![0; 1024], vec![1; 17]],
        &never,
        |_| {
            *lent.borrow_mut() = Lent::default();
            cable()
        },
        |class, _, random| {
            let mut lent = lent.borrow_mut();
            let (place, length) = (lent.next, 1 + random.below(3_000) as u32);
            lent.next += 1;
            if random.one_in(2) && class.fill(place, length) {
                lent.fills.insert(place, length);
            } else if class.send(place, length) {
                lent.sends.insert(place, length);
            }
        },
        &mut |event| {
            let mut lent = lent.borrow_mut();
            match event {
                LinkEvent::Came { place, bytes } => {
                    assert!(lent.fills.remove(&place).is_some_and(|length| bytes <= length));
                }
                LinkEvent::Sent { place } | LinkEvent::Dropped { place } => {
                    assert!(lent.sends.remove(&place).is_some());
                }
                LinkEvent::PeerGone | LinkEvent::PeerBack | LinkEvent::Failed => {}
            }
            let said = format!("{event:?}");
            *kinds.entry(said.split(' ').next().unwrap_or("").into()).or_default() += 1;
        },
    );
    for (kind, least) in
        [("Came", 10_000), ("Sent", 10_000), ("Dropped", 100), ("PeerGone", 10), ("Failed", 10)]
    {
        assert!(kinds.get(kind).is_some_and(|count| *count > least), "{kinds:?}");
    }
}
