//! A server that would take minutes to find its devices is refused.

use diapason_abi::Nanos;
use diapason_plan::Plan;
use diapason_plan::start::found_within;
use diapason_system::parse;

/// A CAN interface with a pipe, and a disk whose work is 100 us.
const TEXT: &str = include_str!("../../../tests/cases/f1e-disk100.toml");

/// Returns the plan with this budget in 10 ms and this work of the thread that manages.
fn plan(budget: &str, work: &str) -> Plan {
    let mut text = TEXT.to_owned();
    for (from, to) in [
        ("name = \"usb-manage\"\nbudget = \"500us\"", ("name = \"usb-manage\"\nbudget", budget)),
        ("name = \"usbd.manage\"\nworst = \"40us\"", ("name = \"usbd.manage\"\nworst", work)),
    ] {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, &format!("{} = \"{}\"", to.0, to.1));
    }
    let system = parse("start.toml", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
    Plan::of(&system)
}

#[test]
fn a_usual_budget_finds_devices_within_seconds() {
    let usual = plan("500us", "40us");
    assert!(usual.holds());
    let within = found_within(usual.system());
    assert!(within > Nanos::ZERO && within < Nanos::from_secs(2), "{within}");
}

#[test]
fn a_budget_with_which_devices_come_after_minutes_is_refused_with_the_least_that_does() {
    let poor = plan("500us", "50ms");
    let first = poor.findings.first().expect("a refusal").plain();
    assert!(first.contains("to find its devices"), "{first}");
    let least = first.split("at least ").nth(1).and_then(|rest| rest.split(" in each").next());
    let least = least.expect("a remedy").replace(' ', "");
    let enough = plan(&least, "50ms");
    assert!(enough.holds(), "{least} is not enough: {}", enough.findings[0].plain());
}

#[test]
fn a_budget_that_ends_before_a_bottom_half_gives_its_lock_back_is_refused() {
    // The longest work of a bottom half is that of the disk, 100 us.
    let poor = plan("100us", "10us");
    let first = poor.findings.first().expect("a refusal").plain();
    assert!(first.contains("`usbd` may never find its devices"), "{first}");
    let least = first.split("at least ").nth(1).and_then(|rest| rest.split(" in each").next());
    let least = least.expect("a remedy").replace(' ', "");
    assert!(plan(&least, "10us").holds(), "{least} is not enough");
}

/// Each visit of the thread that manages waits for the lock of every bottom half, also for those of
/// the second sensor and of the third one.
#[test]
fn the_bottom_halves_of_all_sensors_count() {
    let all = include_str!("../../../examples/sensors.toml");
    let (before, yaw) = all.split_once("[[usb]]\nname = \"yaw\"").expect("a sensor");
    let (_, rest) = yaw.split_once("[[usb]]").expect("another sensor");
    let two = format!("{before}[[usb]]{rest}");
    let (before, pipe) = two.split_once("[[pipe]]\nname = \"yaw-rate\"").expect("its pipe");
    let (_, rest) = pipe.split_once("[[process]]").expect("the first reader");
    let two = format!("{before}[[process]]{rest}");
    let found = |text: &str| {
        let text = text.replace("worst = \"40us\"", "worst = \"400us\"");
        let system = parse("start.toml", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
        found_within(&system)
    };
    // A third sensor adds a device to find, and 400 us to each visit of at least 800 us.
    let (two, three) = (found(&two), found(all));
    assert!(three.0 > two.0 * 4 / 3 * 5 / 4, "{two} and {three}");
}
