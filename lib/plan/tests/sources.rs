//! The bill of a pipe from a sensor, and ways in which a description could make it lie.

use diapason_abi::Nanos;
use diapason_pipe::bill::What;
use diapason_plan::Plan;
use diapason_plan::pipes::NoBill;
use diapason_system::{Diagnostics, parse};

/// A sensor, a CAN channel and a disk on one core, beside three tasks that never stop.
const TEXT: &str = include_str!("../../../examples/endpoints.toml");

fn planned(changes: &[(&str, &str)]) -> Plan {
    let mut text = TEXT.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    let system = parse("endpoints.toml", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
    Plan::of(&system)
}

/// Returns the bound of the sensor's pipe after these changes of the description.
fn bound(changes: &[(&str, &str)]) -> Nanos {
    planned(changes).pipes[0].bill.as_ref().expect("it has a bill").total
}

/// Returns why the sensor's pipe has no bound after these changes.
fn none(changes: &[(&str, &str)]) -> String {
    match &planned(changes).pipes[0].bill {
        Err(NoBill::Missing(what, _)) => what.clone(),
        other => panic!("{other:?}"),
    }
}

/// Returns the first refusal after these changes.
fn refused(changes: &[(&str, &str)]) -> String {
    let plan = planned(changes);
    assert!(!plan.holds());
    let title = |found: &Diagnostics| found.items()[0].title.to_owned();
    plan.findings.iter().map(title).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_packet_is_billed_stage_by_stage() {
    let plan = planned(&[]);
    assert!(plan.holds(), "{:?}", plan.findings);
    let bill = plan.pipes[0].bill.as_ref().unwrap();
    let sum: u64 = bill.items().iter().map(|item| item.value.0).sum();
    assert_eq!(sum, bill.total.0);
    assert_eq!(bill.item(What::Moderation).unwrap().value, Nanos::from_millis(2));
    assert!(bill.slots <= 64 && bill.device <= 8);
}

#[test]
fn a_longer_period_is_a_smaller_demand() {
    let rare = [("period = \"2500us\"              # one", "period = \"1s\" # one")];
    let gap = [("model = \"sensor\"", "model = \"sensor\"\ngap = \"1s\"")];
    let slow = planned(&[rare[0], gap[0]]);
    assert!(slow.pipes[0].bill.as_ref().unwrap().total <= bound(&[]));
    assert_eq!(slow.pipes[0].bill.as_ref().unwrap().slots, 1);
}

#[test]
fn the_work_of_a_disk_is_in_no_bill_and_its_packets_are() {
    let work =
        [("name = \"usbd.disk\"\nworst = \"40us\"", "name = \"usbd.disk\"\nworst = \"9ms\"")];
    assert_eq!(bound(&work), bound(&[]));
    let other = "[[device]]\nname = \"other\"\npci = \"0c0330\"\nsize = \"16K\"\ninstance = 1\n\n\
                 [[usb]]\nname = \"disk\"\non = \"other\"";
    let elsewhere = [("[[usb]]\nname = \"disk\"\non = \"xhci\"", other)];
    let waits = |plan: &Plan| plan.pipes[0].bill.as_ref().unwrap().value(What::Bus);
    assert!(waits(&planned(&elsewhere)) < waits(&planned(&[])));
}

#[test]
fn what_delays_its_threads_is_counted_or_refused() {
    let work = "name = \"usbd.sensor\"\nworst = ";
    let longer = [(&*format!("{work}\"40us\""), &*format!("{work}\"45us\""))];
    assert!(bound(&longer) > bound(&[]));
    let unsaid = [("name = \"usbd.sensor\"", "name = \"elsewhere\"")];
    assert!(none(&unsaid).contains("nothing says how long `usbd.sensor`"));
    let alone = [("vcpu = \"read-0\"\narguments", "vcpu = \"sample\"\narguments")];
    assert!(none(&alone).contains("`sampler` shares its VCPU"));
    let unserved = [("serves = [\"sample\"]", "serves = [\"store\"]")];
    assert!(none(&unserved).contains("no I/O VCPU `usb-sensor`"));
    let rare = [(
        "utilization = \"15%\"\ninterval = \"990us\"",
        "utilization = \"15%\"\ninterval = \"2010us\"",
    )];
    assert!(none(&rare).contains("woken more often"));
}

#[test]
fn a_sensor_that_sends_more_than_its_pipe_says_is_refused() {
    let faster = [("model = \"sensor\"", "model = \"sensor\"\ngap = \"2ms\"")];
    assert!(refused(&faster).contains("`samples` has a message every 2.500 ms"));
    let usual = [("period = \"2500us\"              # one", "rate = 399 # one")];
    assert!(refused(&usual).contains("and `sensor` has one every 2.500 ms"));
    let shorter = [("bytes = 512", "bytes = 511")];
    assert!(refused(&shorter).contains("packets of `sensor` have 512"));
    let starved = [("work = \"10us\"", "work = \"3ms\"")];
    assert!(refused(&starved).contains("`samples` has no bound"));
    let late = [("latency = \"20ms\"", "latency = \"1ms\"")];
    assert!(refused(&late).contains("messages of `samples` may take"));
}
