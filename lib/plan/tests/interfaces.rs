//! Two CAN interfaces of one host: each pipe is billed with the bottom half, the lock and the
//! messages of its own interface, and with the bus that both share.

use diapason_pipe::bill::What;
use diapason_plan::Plan;
use diapason_plan::pipes::NoBill;
use diapason_system::parse;

const TEXT: &str = include_str!("../../../tests/systems/two-interfaces.toml");

const GS_USB_FD: &str = include_str!("../../../tests/systems/gs-usb-fd.toml");
const GS_USB: &str = include_str!("../../../tests/systems/gs-usb.toml");

fn plan(text: &str) -> Plan {
    let system = parse("f", text).unwrap_or_else(|wrong| panic!("{wrong}"));
    Plan::of(&system)
}

/// Returns an item of the bill of a pipe, in ns.
fn item(plan: &Plan, pipe: &str, what: What) -> u64 {
    let at = plan.system().pipes.iter().position(|it| it.name == pipe).expect("there is one");
    plan.pipes[at].bill.as_ref().expect("it has a bill").item(what).expect("it is in it").value.0
}

fn changed(from: &str, to: &str) -> Plan {
    assert_eq!(TEXT.matches(from).count(), 1, "{from}");
    plan(&TEXT.replace(from, to))
}

#[test]
fn the_load_of_one_interface_is_in_no_bill_of_the_other() {
    let usual = plan(TEXT);
    assert!(usual.holds(), "{:?}", usual.findings);
    let less = changed("rate = 3200", "rate = 3194");
    let own = [What::Request, What::BottomHalf];
    for what in own {
        assert_eq!(item(&usual, "doors", what), item(&less, "doors", what), "{what:?}");
        assert!(item(&usual, "engine", what) >= item(&less, "engine", what), "{what:?}");
    }
    // Frames written to the second interface delay its own arrivals only.
    let hears = "name = \"usbd.send\"\nworst = \"40us\"";
    let longer = changed(hears, "name = \"usbd.send\"\nworst = \"50us\"");
    assert_eq!(item(&usual, "engine", What::BottomHalf), item(&longer, "engine", What::BottomHalf));
    assert!(item(&usual, "doors", What::BottomHalf) < item(&longer, "doors", What::BottomHalf));
}

#[test]
fn both_share_the_bus() {
    let both = plan(TEXT);
    let one = TEXT.split("[[usb]]                        # can5").next().expect("it has a head");
    let rest = TEXT.split_once("[[segment]]").expect("it has segments").1;
    let alone = format!("{one}[[segment]]{rest}");
    let alone = alone.split("\n[[pipe]]\nname = \"doors\"").next().expect("it has a head");
    let alone = alone.replace(", \"usb-receive1\", \"usb-send1\"]", "]");
    let cut = |text: &str, from: &str, to: &str| {
        let (head, tail) = text.split_once(from).expect("it is there");
        format!("{head}{}", &tail[tail.find(to).expect("it ends")..])
    };
    let alone = cut(&alone, "[[vcpu]]                       # that of the second", "[[device]]");
    let alone = plan(&alone);
    assert!(item(&both, "engine", What::Bus) > item(&alone, "engine", What::Bus));
}

#[test]
fn a_reader_of_the_second_interface_needs_its_bottom_half() {
    let wrong = changed(
        "serves = [\"read-5\", \"read-6\", \"write-7\"]",
        "serves = [\"read-6\", \"write-7\"]",
    );
    let at = wrong.system().pipes.iter().position(|it| it.name == "doors").expect("there is one");
    let missing = "no I/O VCPU `usb-receive1` of `usbd` serves `reader-5`";
    match &wrong.pipes[at].bill {
        Err(NoBill::Missing(what, _)) => assert_eq!(what, missing),
        other => panic!("{other:?}"),
    }
    assert!(!wrong.holds());
}

/// The plan counts the messages that wait in each interface, whatever is in the other.
#[test]
fn each_interface_keeps_its_own_messages() {
    let more = changed("rate = 1510", "rate = 9000");
    assert!(!more.holds(), "its own bus does not carry that");
    let at = |plan: &Plan, name: &str| {
        let at = plan.system().pipes.iter().position(|it| it.name == name).expect("there is one");
        plan.pipes[at].bill.as_ref().map(|bill| bill.device).ok()
    };
    assert_eq!(at(&more, "engine"), at(&plan(TEXT), "engine"));
    assert_ne!(at(&more, "doors"), at(&plan(TEXT), "doors"));
}

/// The same description with an interface of the other family has other bounds, and what needs more
/// than 20 transfers in a millisecond is refused.
#[test]
fn each_family_is_billed_with_its_own_transfers() {
    let one_each = plan(GS_USB);
    assert!(one_each.holds(), "{:?}", one_each.findings);
    let kvaser = plan(&GS_USB.replace("\"gs-usb\"\n", "\"usb-can\"\n"));
    for what in [What::Request, What::Bus] {
        assert_ne!(item(&one_each, "doors", what), item(&kvaser, "doors", what), "{what:?}");
    }
    let much = GS_USB.replace("rate = 1510", "rate = 19000").replace("[1500]", "[3000]");
    assert!(plan(&much).pipes[0].bill.is_err());
}

/// Channels with CAN FD have longer frames in their bills. A node that waits longer than it can
/// hold back the shortest frame is refused, and so is more traffic than the bus carries.
#[test]
fn frames_of_can_fd_are_billed_with_their_lengths() {
    let fd = plan(GS_USB_FD);
    assert!(fd.holds(), "{:?}", fd.findings);
    let classic = plan(&GS_USB_FD.replace("data_rates = [2_000_000, 0, 2_000_000]", "#"));
    let total = |plan: &Plan| plan.pipes[2].bill.as_ref().expect("it has a bill").total;
    assert!(total(&fd) > total(&classic));
    let slower = GS_USB_FD.replace("\"200us\"]", "\"250us\"]");
    match &plan(&slower).pipes[2].bill {
        Err(NoBill::Missing(what, _)) => assert!(what.contains("can hold the next one"), "{what}"),
        other => panic!("{other:?}"),
    }
    let crowded = GS_USB_FD.replace("[1200, 1000]", "[3700, 1000]").replace("1210", "3700");
    let text = format!("{:?}", plan(&crowded).findings);
    assert!(text.contains("need 103 % of it"), "{text}");
}
