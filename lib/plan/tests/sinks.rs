//! The bill of a pipe to the endpoint of any device, and ways in which a description could make it
//! lie.

use diapason_abi::Nanos;
use diapason_pipe::bill::{Bill, What};
use diapason_plan::Plan;
use diapason_plan::pipes::NoBill;
use diapason_system::{Diagnostics, parse};

/// An actuator whose interrupt endpoint is written, beside a disk and a task that never stops.
const TEXT: &str = include_str!("../../../examples/actuator.toml");
/// The changes that write to the bulk endpoint instead.
const BULK: [(&str, &str); 2] =
    [("endpoint = 1 ", "endpoint = 2 "), ("bytes = 64 ", "bytes = 512 ")];

fn changed(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(TEXT.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    })
}

fn planned(changes: &[(&str, &str)]) -> Plan {
    let system = parse("actuator.toml", &changed(changes)).unwrap_or_else(|it| panic!("{it}"));
    Plan::of(&system, system.clock_hz)
}

/// Returns the bill of the pipe after these changes of the description, which hold.
fn bill(changes: &[(&str, &str)]) -> Bill {
    let plan = planned(changes);
    assert!(plan.holds(), "{:?}", plan.findings);
    *plan.pipes[0].bill.as_ref().expect("it has a bill")
}

/// Returns why the pipe has no bound after these changes, and the remedy.
fn none(changes: &[(&str, &str)]) -> String {
    let plan = planned(changes);
    assert!(!plan.holds());
    match &plan.pipes[0].bill {
        Err(NoBill::Missing(what, remedy)) => format!("{what}: {remedy}"),
        other => panic!("{other:?}"),
    }
}

/// Returns what is wrong with the description after these changes.
fn wrong(changes: &[(&str, &str)]) -> Diagnostics {
    parse("actuator.toml", &changed(changes)).expect_err("it is refused")
}

#[test]
fn a_packet_waits_for_its_writer_the_server_its_turn_and_the_device() {
    let asked = bill(&[]);
    let sum: u64 = asked.items().iter().map(|item| item.value.0).sum();
    assert_eq!(sum, asked.total.0);
    // Once in eight microframes, and anywhere in its own. Twice, because the device may say no.
    assert_eq!(asked.value(What::Bus), Nanos::from_micros(2_250));
    assert_eq!(asked.value(What::Device), Nanos::from_micros(200));
    let bulk = bill(&BULK);
    assert!(bulk.value(What::Bus) < Nanos::from_micros(500), "{:?}", bulk.value(What::Bus));
}

#[test]
fn a_device_that_says_not_now_for_longer_counts_for_as_long() {
    let usual = bill(&[]);
    let slower = bill(&[("takes = \"200us\" ", "takes = \"700us\" ")]);
    assert_eq!(slower.value(What::Device), Nanos::from_micros(700));
    // The packet before it takes as much longer.
    let most = usual.total + Nanos::from_micros(500);
    assert!(slower.total >= most, "{} {}", slower.total, usual.total);
    let takes = [("takes = \"200us\" ", "takes = \"19ms\" ")];
    assert!(none(&takes).contains("write at least `period = "), "{}", none(&takes));
    let takes = [("takes = \"200us\" ", "takes = \"1s\" ")];
    assert!(none(&takes).contains("gives one up after 1"), "{}", none(&takes));
}

#[test]
fn the_period_that_is_proposed_does() {
    let refused = none(&[("period = \"20ms\"\nlatency", "period = \"2ms\"\nlatency")]);
    let period = refused.split("`period = \"").nth(1).and_then(|rest| rest.split('"').next());
    let period = format!("period = \"{}\"\nlatency", period.expect("a period"));
    let longer = [
        ("period = \"20ms\"\nlatency", period.as_str()),
        ("latency = \"25ms\"", "latency = \"50ms\""),
    ];
    // The proposal is for one packet alone. A server that hears late has a refusal of its own.
    let plan = planned(&longer);
    if !plan.holds() {
        assert!(none(&longer).contains("a period late"), "{}", none(&longer));
    }
}

#[test]
fn an_endpoint_without_that_direction_and_longer_packets_are_refused() {
    let three = none(&[("endpoint = 1 ", "endpoint = 3 ")]);
    assert!(three.contains("no endpoint 3 that packets go to"), "{three}");
    assert!(three.contains("`endpoint = 1` or `endpoint = 2`"), "{three}");
    let longer = none(&[("bytes = 64 ", "bytes = 65 ")]);
    assert!(longer.contains("write at most `bytes = 64`"), "{longer}");
}

#[test]
fn a_description_that_cannot_be_meant_is_refused_where_it_is_wrong() {
    let cases = [
        (("to = \"actuator\"", "from = \"actuator\""), "nothing comes from `actuator`"),
        (("endpoint = 1 ", "# "), "does not say which endpoint of `actuator` it writes to"),
        (("period = \"20ms\"\nlatency", "rate = 100\nlatency"), "does not say how often"),
        (("bytes = 64 ", "bytes = 513 "), "has 512 bytes at most"),
        (("bytes = 64 ", "burst = 2\nbytes = 64 "), "go one by one"),
        (("bytes = 64 ", "stamp = 8\nbytes = 64 "), "whose messages bear their times"),
        (("takes = \"200us\" ", "# "), "nobody knows how long `actuator` takes"),
        (("model = \"actuator\"", "model = \"instrument\""), "nothing can be written to"),
        (("[[process]]\nname = \"disk-check\"", TWICE), "`actuator` has two pipes"),
        (("[[process]]\nname = \"disk-check\"", SECOND), "could serve `second` instead"),
    ];
    for (change, title) in cases {
        // The writer's key goes with the direction.
        let mut changes = vec![change];
        if change.1.starts_with("from") || title.contains("cannot be written") {
            changes.push(("writer = \"control\"", "reader = \"control\""));
        }
        let said = wrong(&changes).to_string();
        assert!(said.contains(title), "{title}: {said}");
    }
}

const TWICE: &str = "[[pipe]]\nname = \"more\"\nto = \"actuator\"\nendpoint = 2\nbytes = 8\n\
    writer = \"control\"\nperiod = \"10ms\"\n\n[[process]]\nname = \"disk-check\"";
const SECOND: &str = "[[usb]]\nname = \"second\"\non = \"xhci\"\nport = 3\nmodel = \"actuator\"\n\n\
    [[process]]\nname = \"disk-check\"";

#[test]
fn a_writer_that_shares_its_vcpu_or_lacks_budget_has_no_bound() {
    let shared = [("vcpu = \"spin\"", "vcpu = \"write\"")];
    assert!(none(&shared).contains("shares its VCPU"), "{}", none(&shared));
    let alone = bill(&[]);
    let slow =
        [("budget = \"100us\"\nperiod = \"2500us\"", "budget = \"100us\"\nperiod = \"5ms\"")];
    let plan = planned(&slow);
    if let Ok(bill) = &plan.pipes[0].bill {
        assert!(bill.value(What::Written) > alone.value(What::Written));
    }
}

#[test]
fn what_the_server_does_in_a_wake_up_counts() {
    let usual = bill(&[]);
    let work =
        [("name = \"usbd.sink\"\nworst = \"40us\"", "name = \"usbd.sink\"\nworst = \"80us\"")];
    let plan = planned(&work);
    match &plan.pipes[0].bill {
        Ok(bill) => assert!(bill.total > usual.total),
        Err(none) => assert!(matches!(none, NoBill::Missing(..) | NoBill::Refused(_))),
    }
    let unknown = [("[[work]]\nname = \"usbd.sink\"", "[[work]]\nname = \"other\"")];
    assert!(none(&unknown).contains("usbd.sink"), "{}", none(&unknown));
}
