//! The bill of a pipe from a camera, and ways in which a description could make it lie.

use diapason_abi::Nanos;
use diapason_pipe::bill::{Basis, Bill, What};
use diapason_plan::Plan;
use diapason_plan::pipes::NoBill;
use diapason_system::{Diagnostics, parse};

/// A camera beside a disk and a task that never stops.
const TEXT: &str = include_str!("../../../examples/camera.toml");

fn planned(changes: &[(&str, &str)]) -> Plan {
    let mut text = TEXT.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    let system = parse("camera.toml", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
    Plan::of(&system)
}

/// Returns the bill of the pipe after these changes of the description, which hold.
fn bill(changes: &[(&str, &str)]) -> Bill {
    let plan = planned(changes);
    assert!(plan.holds(), "{:?}", plan.findings);
    *plan.pipes[0].bill.as_ref().expect("it has a bill")
}

/// Returns the first refusal after these changes.
fn refused(changes: &[(&str, &str)]) -> String {
    let plan = planned(changes);
    assert!(!plan.holds());
    let title = |found: &Diagnostics| found.items()[0].title.to_owned();
    plan.findings.iter().map(title).collect::<Vec<_>>().join("; ")
}

/// Returns why the pipe has no bound after these changes, and the remedy.
fn none(changes: &[(&str, &str)]) -> (String, String) {
    match &planned(changes).pipes[0].bill {
        Err(NoBill::Missing(what, remedy)) => (what.clone(), remedy.clone()),
        other => panic!("{other:?}"),
    }
}

const PERIOD: &str = "period = \"20ms\"  ";
const BYTES: &str = "bytes = 614400 ";
const READ: &str = "name = \"read\"\nbudget = \"600us\"\nperiod = \"2ms\"";

#[test]
fn a_picture_takes_an_interval_for_each_piece() {
    let asked = bill(&[]);
    let sum: u64 = asked.items().iter().map(|item| item.value.0).sum();
    assert_eq!(sum, asked.total.0);
    // 614,400 bytes in pieces of 4,084, and one more interval for the end.
    assert_eq!(asked.value(What::Request), Nanos::from_micros(152 * 125));
    assert_eq!(asked.value(What::Bus), Nanos::from_micros(125));
    assert!(asked.least >= Nanos::from_micros(149 * 125) && asked.least < asked.total);
    let basis = asked.item(What::Request).unwrap().basis;
    assert!(matches!(basis, Basis::EnoughQueued { queued: 16, .. }), "{basis:?}");
    assert!(asked.slots < 60, "{}", asked.slots);
}

#[test]
fn a_period_that_the_camera_does_not_do_is_refused_with_the_one_it_does() {
    let slow = [(PERIOD, "period = \"33333us\"")];
    assert!(bill(&slow).total <= bill(&[]).total, "the same pieces, more seldom");
    let (what, remedy) = none(&[(PERIOD, "period = \"100ms\"")]);
    assert!(what.contains("`pictures` has a picture every 100.000 ms"), "{what}");
    assert!(what.contains("and `camera` has one every 33.333 ms"), "{what}");
    assert_eq!(remedy, "write `period = \"33333300ns\"`");
    assert!(bill(&[(PERIOD, "period = \"33333300ns\"")]).total > Nanos::ZERO, "the remedy helps");
    let fast = bill(&[(PERIOD, "period = \"19500us\"")]);
    assert_eq!(fast.total, bill(&[]).total, "a picture every 20 ms keeps that contract");
    let (what, _) = none(&[(PERIOD, "period = \"18ms\"")]);
    assert!(what.contains("a picture of `camera` takes 19.000 ms on the bus"), "{what}");
}

#[test]
fn a_picture_without_room_is_refused() {
    let (what, remedy) = none(&[(BYTES, "bytes = 614399 ")]);
    assert_eq!(what, "`pictures` has room for 614399 bytes, and no picture");
    assert!(remedy.contains("at least `bytes = 614400`"), "{remedy}");
    assert_eq!(bill(&[(BYTES, "bytes = 1000000 ")]), bill(&[]));
}

#[test]
fn a_camera_without_its_bandwidth_is_refused() {
    let with = |bursts: &[u8]| {
        let one = |burst: &u8| {
            format!(
                "[[endpoint]]\nname = \"e{burst}\"\non = \"xhci\"\nspeed = \"super\"\n\
                 type = \"isochronous\"\ndirection = \"in\"\npacket = 1024\nburst = {burst}\n\
                 mult = 2\nperiod = 1\ncriticality = \"high\"\n\n"
            )
        };
        let others = bursts.iter().map(one).collect::<String>();
        let reader = "[[process]]\nname = \"reader\"";
        planned(&[(reader, &(others + reader))])
    };
    // The largest setting of the camera has 33 packets, and that of its pictures has four.
    assert!(with(&[15]).holds(), "48 packets and four");
    let plan = with(&[15, 0]);
    let Err(NoBill::Missing(what, remedy)) = &plan.pipes[0].bill else { panic!("it has one") };
    assert!(what.contains("its bus has too much on it"), "{what}");
    assert!(remedy.contains("another controller"), "{remedy}");
    let text = TEXT.replacen("model = \"camera\"", "model = \"busy-camera\"", 1);
    let wrong = parse("camera.toml", &text).unwrap_err().plain();
    assert!(wrong.contains("`camera` has no channel that a pipe could carry"), "{wrong}");
}

/// Two cameras, each with a pipe to a task of its own.
const TWO: &str = include_str!("../../../examples/cameras.toml");

#[test]
fn each_of_two_cameras_has_the_bottom_half_of_its_seat() {
    let of = |text: &str| {
        let system = parse("cameras.toml", text).unwrap_or_else(|wrong| panic!("{wrong}"));
        Plan::of(&system)
    };
    let plan = of(TWO);
    assert!(plan.holds(), "{:?}", plan.findings);
    let [ahead, behind] = [0, 1].map(|pipe| *plan.pipes[pipe].bill.as_ref().expect("it has one"));
    assert_eq!(ahead.value(What::Request), behind.value(What::Request));
    assert!(ahead.value(What::User) < behind.value(What::User), "one waits for the other's reader");
    // The second bottom half gets too little, and the first one what it had.
    let (first, second) = TWO.split_at(TWO.rfind("utilization = \"12%\"").unwrap());
    let less = of(&format!("{first}{}", second.replacen("12%", "5%", 1)));
    assert!(less.pipes[0].bill.is_ok());
    let Err(NoBill::Refused(_)) = less.pipes[1].bill else { panic!("{:?}", less.pipes[1].bill) };
}

#[test]
fn a_camera_that_nobody_asks_for_a_while_is_refused() {
    let half = "name = \"usbd.camera\"\nworst = ";
    let longer = (&*format!("{half}\"20us\""), &*format!("{half}\"150us\""));
    assert!(refused(&[longer]).contains("transfers may be open, but there can be only 16"));
    let work = [("work = \"30us\"", "work = \"100us\"")];
    assert!(refused(&work).contains("`pictures` has no bound"));
    // A reader that comes seldom keeps its places for too long.
    let seldom = [
        (READ, "name = \"read\"\nbudget = \"5ms\"\nperiod = \"20ms\""),
        ("serves = [\"read\"]", "serves = [\"read\", \"spin\"]"),
    ];
    let (what, remedy) = none(&seldom);
    assert!(what.contains("`camera` may lack places"), "{what}");
    assert_eq!(remedy, "give `reader` a larger budget, or a shorter period");
}

#[test]
fn what_delays_its_threads_is_counted_or_refused() {
    let unsaid = [("name = \"usbd.camera\"", "name = \"elsewhere\"")];
    assert!(none(&unsaid).0.contains("nothing says how long `usbd.camera`"));
    let alone = [("vcpu = \"spin\"\nuses", "vcpu = \"read\"\nuses")];
    assert!(none(&alone).0.contains("`reader` shares its VCPU"));
    let work =
        [("name = \"usbd.disk\"\nworst = \"40us\"", "name = \"usbd.disk\"\nworst = \"9ms\"")];
    let beside = planned(&work);
    let beside = beside.pipes[0].bill.as_ref().expect("it has a bill");
    assert_eq!(beside.total, bill(&[]).total, "a disk has a lock of its own");
}
