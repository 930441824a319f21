//! A disk beside a CAN interface costs a pipe the time of its packets on the bus, and none of its
//! work.

use diapason_abi::Nanos;
use diapason_plan::Plan;
use diapason_system::parse;

/// A CAN interface with a pipe, and a disk whose work is 100 us.
const TEXT: &str = include_str!("../../../tests/cases/f1e-disk100.toml");

/// Returns the bound of the pipe after these changes of the description.
fn bound(changes: &[(&str, &str)]) -> Nanos {
    let mut text = TEXT.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let system = parse("disk.toml", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
    let plan = Plan::of(&system);
    plan.pipes[0].bill.as_ref().expect("it has a bill").total
}

#[test]
fn the_work_of_a_disk_is_in_no_bill() {
    let usual = bound(&[]);
    let work = "name = \"usbd.disk\"\nworst = ";
    assert_eq!(bound(&[(&format!("{work}\"100us\""), &format!("{work}\"3ms\""))]), usual);
    assert_eq!(bound(&[("\"usbd.disk\"", "\"elsewhere\"")]), usual, "not even if nobody says it");
}

#[test]
fn a_disk_that_nobody_serves_takes_the_same_time_on_the_bus() {
    let unserved = [("serves = [\"can\", \"disks\"]", "serves = [\"can\"]")];
    assert_eq!(bound(&unserved), bound(&[]));
}

#[test]
fn the_packets_of_a_disk_are_in_the_bill() {
    let unplugged = [("on = \"xhci\"\nport = 3", "on = \"other\"\nport = 3")];
    let other = "\n[[device]]\nname = \"other\"\npci = \"0c0330\"\nsize = \"16K\"\ninstance = 1\n";
    let text = format!("{other}[[work]]\nname = \"usbd.disk\"");
    let elsewhere = [unplugged[0], ("[[work]]\nname = \"usbd.disk\"", &text)];
    assert!(bound(&elsewhere) < bound(&[]));
}

/// Programs may open pipes of its interface.
const TUNED: &str = include_str!("../../../examples/tuned-pipes.toml");

/// Returns the time of a transfer that the server is told to have guaranteed.
fn guaranteed(text: &str) -> Nanos {
    let system = parse("tuned.toml", text).unwrap_or_else(|wrong| panic!("{wrong}"));
    let plan = Plan::of(&system);
    plan.tuned[0].as_ref().expect("it has costs").0.transfer
}

#[test]
fn the_guarantee_of_tuned_pipes_leaves_room_for_a_described_disk() {
    let slot = Nanos::from_micros(125);
    assert_eq!(guaranteed(TUNED), slot + slot);
    let disk = "\n[[usb]]\nname = \"disk\"\non = \"xhci\"\nport = 7\nmodel = \"disk\"\n";
    assert_eq!(guaranteed(&format!("{TUNED}{disk}")), slot + slot + slot);
}
