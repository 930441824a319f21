//! The bill of a pipe from the endpoint of any device, and ways in which a description could make
//! it lie.

use diapason_abi::Nanos;
use diapason_pipe::bill::{Bill, What};
use diapason_plan::Plan;
use diapason_plan::pipes::NoBill;
use diapason_system::{Diagnostics, parse};

/// An instrument whose interrupt endpoint is read, beside a disk and a task that never stops.
const TEXT: &str = include_str!("../../../examples/instrument.toml");
/// The changes that read the bulk endpoint instead.
const BULK: [(&str, &str); 2] =
    [("endpoint = 1 ", "endpoint = 2 "), ("bytes = 64 ", "bytes = 512 ")];
/// The changes that read the reports of a keyboard instead.
const KEYS: [(&str, &str); 6] = [
    ("model = \"instrument\"", "model = \"keyboard\""),
    ("product = 0x0002", "product = 0x0001"),
    ("bytes = 64 ", "bytes = 8 "),
    ("period = \"2ms\"\nstamp", "period = \"50ms\"\nstamp"),
    ("stamp = 16 ", "burst = 2 #"),
    ("latency = \"10ms\"", "latency = \"30ms\""),
];

fn planned(changes: &[(&str, &str)]) -> Plan {
    let mut text = TEXT.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    let system = parse("instrument.toml", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
    Plan::of(&system)
}

/// Returns the bill of the pipe after these changes of the description, which hold.
fn bill(changes: &[(&str, &str)]) -> Bill {
    let plan = planned(changes);
    assert!(plan.holds(), "{:?}", plan.findings);
    *plan.pipes[0].bill.as_ref().expect("it has a bill")
}

/// Returns why the pipe has no bound after these changes, and the remedy.
fn none(changes: &[(&str, &str)]) -> (String, String) {
    let plan = planned(changes);
    assert!(!plan.holds());
    match &plan.pipes[0].bill {
        Err(NoBill::Missing(what, remedy)) => (what.clone(), remedy.clone()),
        other => panic!("{other:?}"),
    }
}

/// Returns these changes and another.
fn with<'a>(changes: &[(&'a str, &'a str)], more: (&'a str, &'a str)) -> Vec<(&'a str, &'a str)> {
    [changes, &[more]].concat()
}

#[test]
fn a_packet_waits_until_its_endpoint_is_asked() {
    let asked = bill(&[]);
    let sum: u64 = asked.items().iter().map(|item| item.value.0).sum();
    assert_eq!(sum, asked.total.0);
    // Once in eight microframes, and anywhere in its own.
    assert_eq!(asked.value(What::Bus), Nanos::from_micros(1_125));
    let bulk = bill(&BULK);
    assert!(bulk.value(What::Bus) < Nanos::from_micros(250), "{:?}", bulk.value(What::Bus));
    // Once in eight frames of full speed.
    assert_eq!(bill(&KEYS).value(What::Bus), Nanos::from_millis(9));
}

#[test]
fn what_shares_the_bus_delays_bulk_packets_and_must_leave_room_for_the_others() {
    let camera = |number: u8| {
        format!(
            "[[endpoint]]\nname = \"e{number}\"\non = \"xhci\"\nspeed = \"high\"\n\
             type = \"isochronous\"\ndirection = \"in\"\npacket = 1024\nburst = 2\nperiod = 1\n\
             criticality = \"high\"\n\n"
        )
    };
    let place = "[[process]]\nname = \"reader\"";
    let beside = |count: u8| (0..count).map(camera).collect::<String>() + place;
    let one = beside(1);
    assert!(bill(&with(&BULK, (place, &one))).value(What::Bus) > bill(&BULK).value(What::Bus));
    assert_eq!(bill(&[(place, &one)]).value(What::Bus), bill(&[]).value(What::Bus));
    let (what, remedy) = none(&[(place, &beside(2))]);
    assert!(what.contains("its bus has too much on it"), "{what}");
    assert!(remedy.contains("another controller"), "{remedy}");
}

#[test]
fn an_endpoint_that_is_not_there_or_sends_other_packets_is_refused_with_what_would_fit() {
    let (what, remedy) = none(&[("endpoint = 1 ", "endpoint = 3 ")]);
    assert_eq!(what, "`instrument` has no endpoint 3 that packets come from");
    assert_eq!(remedy, "write `endpoint = 1` or `endpoint = 2`");
    for bytes in ["bytes = 65 ", "bytes = 63 "] {
        let (what, remedy) = none(&[("bytes = 64 ", bytes)]);
        assert!(what.contains("packets of endpoint 1 of `instrument` have 64"), "{what}");
        assert_eq!(remedy, "write `bytes = 64`");
    }
}

#[test]
fn a_period_that_the_device_cannot_keep_is_refused() {
    let fast = [
        ("period = \"2ms\"\nstamp", "period = \"1ms\"\nstamp"),
        ("model = \"instrument\"", "model = \"instrument\"\ngap = \"1ms\""),
    ];
    let (what, remedy) = none(&fast);
    assert!(what.contains("endpoint 1 of `instrument` brings one in 1.125 ms"), "{what}");
    assert_eq!(remedy, "write at least `period = \"1125000ns\"`");
    assert!(bill(&[fast[0], fast[1], BULK[0], BULK[1]]).total < bill(&[]).total, "bulk can");
    let more = [("model = \"instrument\"", "model = \"instrument\"\ngap = \"1500us\"")];
    let (what, _) = none(&more);
    assert!(what.contains("and `instrument` has one every 1.500 ms"), "{what}");
    let (what, _) = none(&with(&KEYS, ("period = \"50ms\"", "period = \"51ms\"")));
    assert!(what.contains("and `instrument` has one every 50.000 ms"), "{what}");
}

#[test]
fn split_transfers_and_services_that_take_the_device_away_are_refused() {
    let hub = "[[usb]]\nname = \"hub\"\non = \"xhci\"\nport = 1\nmodel = \"hub\"\n\n\
               [[usb]]\nname = \"instrument\"\nbehind = \"hub\"";
    let hubs = [
        ("[[usb]]\nname = \"instrument\"\non = \"xhci\"", hub),
        ("serves = [\"disks\", \"endpoints\"]", "serves = [\"disks\", \"hubs\", \"endpoints\"]"),
    ];
    let (what, _) = none(&[&KEYS[..], &hubs[..]].concat());
    assert!(what.contains("whose split transfers no bill counts"), "{what}");
    let title = |found: &Diagnostics| found.items()[0].title.to_owned();
    let titles = |changes: &[(&str, &str)]| {
        planned(changes).findings.iter().map(title).collect::<Vec<_>>().join("; ")
    };
    let keyboards = "serves = [\"disks\", \"keyboards\", \"endpoints\"]";
    let found = titles(&with(&KEYS, (hubs[1].0, keyboards)));
    assert!(found.contains("`usbd` serves it as one of `keyboards`"), "{found}");
    let found = titles(&[(hubs[1].0, "serves = [\"disks\"]")]);
    assert!(found.contains("`instrument` is of `endpoints`, and `usbd` serves none"), "{found}");
}
