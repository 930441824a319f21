//! The rules of `[[bus]]` and `[[endpoint]]`.

use crate::common::problems;
use diapason_bus::{
    Async, BusInstance, Coding, Criticality, Direction, EndpointId, Guarantee, PeriodicEndpoint,
    Speed, Transfer,
};
use diapason_system::parse;

/// Returns a system with a controller `xhci` and another device; more tables begin in line 15.
fn system(tables: &str) -> String {
    format!(
        "[system]\nname = \"s\"\n[[process]]\nname = \"main\"\npriority = 1\n\
         [[device]]\nname = \"xhci\"\npci = \"0c0330\"\nsize = \"16K\"\n\
         [[device]]\nname = \"hpet\"\naddress = 0xfed00000\nsize = \"4K\"\n\n{tables}\n"
    )
}

/// Returns the lines of an endpoint: 1 the header, 2 name, 3 on, 4 type, 5 direction, 6 packet, 7
/// more.
fn endpoint(name: &str, kind: &str, more: &str) -> String {
    format!(
        "[[endpoint]]\nname = \"{name}\"\non = \"xhci\"\ntype = \"{kind}\"\n\
         direction = \"in\"\npacket = 512\n{more}\n"
    )
}

/// One thing is wrong with `tables`, here; title and help contain these words.
#[track_caller]
fn bad(tables: &str, (line, column): (usize, usize), title: &str, help: &str) {
    let found = problems(&system(tables));
    let items = found.items();
    assert_eq!(items.len(), 1, "{found}");
    assert!(items[0].title.contains(title) && items[0].help.contains(help), "{found}");
    assert_eq!((items[0].line, items[0].column), (14 + line, column), "{found}");
}

#[test]
fn every_key_arrives() {
    let bus = "[[bus]]\non = \"xhci\"\ncoding = \"ignored\"\nperiodic = \"70%\"\n";
    let more = "burst = 3\nmult = 1\nperiod = 4\nlongest = 8\ncriticality = \"high\"";
    let tables = [
        endpoint("a", "bulk", "burst = 2\nbytes = 900\nwithin = 7"),
        endpoint("b", "isochronous", more),
        endpoint("c", "interrupt", "period = 2\nspeed = \"high\""),
    ];
    let system = parse("f", &system(&(bus.to_owned() + &tables.concat()))).unwrap();
    assert_eq!(system.endpoints, ["a", "b", "c"]);
    let [fast, slow] = &system.buses[..] else { panic!("{:?}", system.buses) };
    let expected = BusInstance {
        coding: Coding::Ignored,
        periodic_percent: 70,
        ..BusInstance::new(Speed::Super)
    };
    assert_eq!((fast.device, fast.bus, slow.bus), (0, expected, BusInstance::new(Speed::High)));
    let bulk = Async {
        id: EndpointId(0),
        transfer: Transfer::Bulk,
        direction: Direction::In,
        packet: 512,
        burst: 2,
        guarantee: Some(Guarantee { bytes: 900, period: 7 }),
    };
    let camera = PeriodicEndpoint {
        id: EndpointId(1),
        transfer: Transfer::Isochronous,
        direction: Direction::In,
        packet: 512,
        burst: 3,
        mult: 1,
        period: 4,
        longest_period: 8,
        criticality: Criticality::High,
    };
    assert_eq!((&fast.asyncs[..], &fast.periodic[..]), (&[bulk][..], &[camera][..]));
    let periodic = slow.periodic[0];
    assert_eq!((periodic.id, periodic.longest_period), (EndpointId(2), 2));
    assert_eq!(periodic.criticality, Criticality::Low);
}

#[test]
fn what_does_not_belong_to_the_type_is_unknown() {
    bad(&endpoint("a", "bulk", "period = 1"), (7, 1), "unknown key `period`", "it has");
    bad(&endpoint("a", "interrupt", "period = 1\nwithin = 1"), (8, 1), "unknown key `within`", "");
    bad(&endpoint("a", "bulk", "bytes = 1"), (2, 8), "has no `within`", "add `within = 8`");
    bad(&endpoint("a", "interrupt", ""), (2, 8), "has no `period`", "add `period = 1`");
}

#[test]
fn what_the_bus_cannot_have_is_shown_at_its_name() {
    let odd = endpoint("a", "interrupt", "period = 3");
    bad(&odd, (2, 8), "`a` has an impossible period", "give a power of two");
    let slow = endpoint("a", "bulk", "speed = \"low\"");
    bad(&slow, (2, 8), "`a` has a transfer type that is not possible here", "low speed");
    let large = endpoint("a", "bulk", "speed = \"full\"");
    bad(&large, (2, 8), "`a` has packets of a size that is not possible", "give 1 to 64 bytes");
}

#[test]
fn names_and_buses_are_there_once_and_on_controllers() {
    let twice = endpoint("a", "bulk", "") + &endpoint("a", "bulk", "");
    bad(&twice, (9, 8), "the endpoint `a` is declared twice", "a name of its own");
    let bus = "[[bus]]\non = \"xhci\"\n";
    let title = "the bus of this speed on `xhci` is declared twice";
    bad(&(bus.to_owned() + bus), (4, 6), title, "remove one of the two");
    let elsewhere = bus.replace("xhci", "hpet");
    bad(&elsewhere, (2, 6), "`hpet` is no USB controller", "pci = \"0c0330\"");
    bad("[[bus]]\non = \"usb\"", (2, 6), "no device is called `usb`", "");
    bad("[[bus]]\nspeed = \"high\"", (1, 1), "this bus has no `on`", "add `on = \"xhci\"`");
    let half = "[[bus]]\non = \"xhci\"\nperiodic = \"0.5%\"";
    bad(half, (3, 12), "`periodic` is no whole percentage", "write `\"1%\"`");
}
