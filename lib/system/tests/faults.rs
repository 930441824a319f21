//! The rules of `[[fault]]` and `--fault`: one grammar, and every mistake is refused where it is.

use crate::common::{built, refused};
use diapason_random::Random;
use diapason_system::{FaultKind, InjectedFault, System, parse, parse_fault};

/// Returns a system with a USB controller, a CAN interface and a sensor, and more tables; those
/// begin in line 19.
fn text(tables: &str) -> String {
    format!(
        "[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n\
         [[device]]\nname = \"xhci\"\npci = \"0c0330\"\nsize = \"16K\"\n\
         [[usb]]\nname = \"can\"\non = \"xhci\"\nmodel = \"usb-can\"\n\
         [[usb]]\nname = \"sensor\"\non = \"xhci\"\nport = 2\nmodel = \"sensor\"\n{tables}\n"
    )
}

fn system() -> System {
    parse("f", &text("")).unwrap()
}

/// With these keys, something in the line (from the header) is refused.
#[track_caller]
fn bad(keys: &str, (line, column): (usize, usize), title: &str, help: &str) {
    refused(&text(&format!("[[fault]]\n{keys}")), (19 + line, column), title, help);
}

/// Checks the mistake in a command line: column, title, help.
#[track_caller]
fn wrong(words: &str, column: usize, title: &str, help: &str) {
    let diagnostics = parse_fault(&system(), words).unwrap_err();
    let items = diagnostics.items();
    assert_eq!((items[0].line, items[0].column), (1, column), "{diagnostics}");
    assert_eq!((items[0].title, items[0].help), (title, help));
}

#[test]
fn a_description_and_a_command_line_say_the_same() {
    let keys = "at = \"2s\"\nwhat = \"unplug\"\ndevice = \"sensor\"\nfor = \"100ms\"\n\
                [[fault]]\nat = \"3s\"\nwhat = \"can-errors\"\ndevice = \"can\"\ncount = 7\n\
                [[fault]]\nat = \"4s\"\nwhat = \"overrun\"\nprocess = \"p\"\ntimes = 3\n\
                for = \"1ms\"\n\
                [[fault]]\nat = \"5s\"\nwhat = \"reboot\"\nfor = \"1s\"";
    let described = parse("f", &text(&format!("[[fault]]\n{keys}"))).unwrap();
    let words =
        ["2s unplug sensor 100ms", "3s can-errors can 7", "4s overrun p 3 1ms", "5s reboot 1s"];
    let said: Vec<InjectedFault> =
        words.iter().map(|words| parse_fault(&described, words).unwrap()).collect();
    assert_eq!(described.faults, said);
    let unplug = InjectedFault {
        at_ns: 2_000_000_000,
        kind: FaultKind::Unplug,
        target: 1,
        arguments: [100_000_000, 0],
    };
    assert_eq!(said[0], unplug);
    // Nothing of it boots.
    assert_eq!(built(&described).unwrap(), built(&system()).unwrap());
}

#[test]
fn a_bus_that_is_not_there_has_no_faults() {
    let few = |channels: u8| {
        let keys = format!("model = \"usb-can\"\nchannels = {channels}");
        text("").replace("model = \"usb-can\"", &keys)
    };
    let system = parse("f", &few(2)).unwrap();
    assert!(parse_fault(&system, "1s babble can 1ms 1").is_ok());
    let help = "it has 2: write a channel from 0 to 1";
    for words in ["1s babble can 1ms 2", "1s can-errors can 5 4", "1s bus-off can 3"] {
        let diagnostics = parse_fault(&system, words).unwrap_err();
        let item = diagnostics.items()[0];
        let title = format!("`can` has no channel {}", &words[words.len() - 1..]);
        assert_eq!((item.title, item.help), (title.as_str(), help));
    }
    let system = parse("f", &few(1)).unwrap();
    let diagnostics = parse_fault(&system, "1s bus-off can 1").unwrap_err();
    assert_eq!(diagnostics.items()[0].help, "it has one: write channel 0");
}

#[test]
fn what_is_said_can_be_said_again() {
    let udp = include_str!("../../../examples/udp.toml");
    let (usb, ethernet) = (system(), parse("udp.toml", udp).unwrap());
    let buses = parse("f", include_str!("../../../examples/can-mts.toml")).unwrap();
    for kind in FaultKind::all() {
        let system = match kind {
            FaultKind::Flood => &ethernet,
            FaultKind::NodeReset | FaultKind::NodeDeaf => &buses,
            _ => &usb,
        };
        let targets = ["can", "xhci", "p", "nic1", "motor-left", ""];
        let arguments = ["", "1ms", "2", "2 1ms", "1ms 1"];
        let said = targets.iter().flat_map(|target| {
            arguments.iter().map(move |argument| format!("1s {} {target} {argument}", kind.name()))
        });
        let fault = said.clone().find_map(|words| parse_fault(system, &words).ok());
        let fault = fault.unwrap_or_else(|| panic!("{} cannot be said", kind.name()));
        assert_eq!(fault.kind, kind);
        assert_eq!(parse_fault(system, &system.fault_words(&fault)).unwrap(), fault);
    }
}

#[test]
fn a_table_that_makes_no_sense_is_refused_where_it_stands() {
    let unplug = "at = \"1s\"\nwhat = \"unplug\"\n";
    let no_at = "what = \"reboot\"\nfor = \"1s\"";
    bad(no_at, (0, 1), "this fault has no `at`", "add `at = \"2s\"`, when it happens");
    let help = "did you mean `\"unplug\"`?";
    bad("at = \"1s\"\nwhat = \"unplugg\"", (2, 8), "`what` cannot be `unplugg`", help);
    let help = "did you mean `sensor`?";
    let device = "device = \"senser\"\nfor = \"1s\"";
    bad(&format!("{unplug}{device}"), (3, 10), "no USB device is called `senser`", help);
    let help = "add `device = \"…\"`, the USB device it happens to";
    bad(&format!("{unplug}for = \"1s\""), (0, 1), "this fault has no `device`", help);
    let help = "add `for = \"100ms\"`";
    bad(&format!("{unplug}device = \"can\""), (0, 1), "this fault has no `for`", help);
    let babble = "at = \"1s\"\nwhat = \"babble\"\ndevice = \"sensor\"\nfor = \"1s\"";
    bad(babble, (3, 10), "no CAN bus is called `sensor`", "name `can`");
    let stray = "at = \"1s\"\nwhat = \"stray-dma\"\ndevice = \"can\"";
    bad(stray, (3, 10), "no USB controller is called `can`", "name `xhci`");
    let flood = "at = \"1s\"\nwhat = \"flood\"\ndevice = \"xhci\"\nrate = 9\nfor = \"1s\"";
    let help = "describe a network adapter first";
    bad(flood, (3, 10), "no network adapter is called `xhci`", help);
    let channel = "at = \"1s\"\nwhat = \"bus-off\"\ndevice = \"can\"\nchannel = 5";
    let help = "write a whole number from 0 to 4";
    bad(channel, (4, 11), "`channel` is 5, out of range", help);
    let reboot = "at = \"1s\"\nwhat = \"reboot\"\nfor = \"1s\"\ndevice = \"can\"";
    let help = "it has `at`, `what` and `for`";
    bad(reboot, (4, 1), "unknown key `device` in [[fault]]", help);
}

#[test]
fn a_bus_without_this_host_and_its_nodes_have_faults() {
    let text = include_str!("../../../examples/can-mts.toml");
    let system = parse("f", text).unwrap_or_else(|wrong| panic!("{wrong}"));
    let lines = [
        ("1s can-errors drive 7 0", Some(0)),
        ("1s babble drive 5ms 0", Some(0)),
        ("1s node-reset motor-left 30ms", None),
        ("1s node-deaf control-unit 60ms", None),
    ];
    for (words, bus) in lines {
        let fault = parse_fault(&system, words).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_eq!(system.fault_words(&fault), words);
        assert_eq!(system.disturbed_bus(&fault), bus, "{words}");
    }
    let refused = [
        ("1s bus-off drive", "no CAN interface is called `drive`"),
        ("1s babble drift 5ms", "no CAN bus is called `drift`"),
        ("1s node-reset motor-lft 5ms", "no other node is called `motor-lft`"),
        ("1s can-errors drive 7 1", "`drive` has no channel 1"),
    ];
    for (words, title) in refused {
        let found = parse_fault(&system, words).unwrap_err();
        assert_eq!(found.items()[0].title, title, "{words}");
    }
}

/// Beside a host nobody plays such a bus, so nothing can happen to it.
#[test]
fn a_bus_apart_from_a_host_has_no_faults() {
    let text = include_str!("../../../examples/can-mts.toml");
    let host = "[[process]]\nname = \"p\"\npriority = 1\n";
    let system = parse("f", &format!("{text}\n{host}")).unwrap_or_else(|it| panic!("{it}"));
    for words in ["1s babble drive 5ms", "1s can-errors drive 7", "1s node-reset motor-left 5ms"] {
        assert!(parse_fault(&system, words).is_err(), "{words}");
    }
    assert!(system.other_nodes().is_empty());
}

#[test]
fn the_controller_of_a_bus_and_its_bus_have_faults() {
    let text = include_str!("../../../examples/can-controller.toml");
    let system = parse("f", text).unwrap_or_else(|wrong| panic!("{wrong}"));
    let lines = [
        "1s can-errors toucan0 7 0",
        "1s babble toucan0 5ms 0",
        "1s bus-off toucan0 0",
        "1s lost-interrupt toucan0",
        "1s late-interrupt toucan0 3ms",
        "1s double-interrupt toucan0 10us",
        "1s controller-error toucan0",
    ];
    for words in lines {
        let fault = parse_fault(&system, words).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_eq!(system.fault_words(&fault), words);
        let on_bus = words.ends_with('0') && !words.ends_with("toucan0");
        assert_eq!(system.disturbed_bus(&fault), on_bus.then_some(0), "{words}");
    }
    let refused = [
        ("1s bus-off toucan0 1", "`toucan0` has no channel 1"),
        ("1s bus-off toucan1", "no CAN interface is called `toucan1`"),
        ("1s stray-dma toucan0", "no USB controller is called `toucan0`"),
        ("1s system-error toucan0", "no USB controller is called `toucan0`"),
    ];
    for (words, title) in refused {
        let found = parse_fault(&system, words).unwrap_err();
        assert_eq!(found.items()[0].title, title, "{words}");
    }
}

#[test]
fn a_flood_comes_to_an_adapter_that_is_described() {
    let text = include_str!("../../../examples/udp.toml");
    let system = parse("udp.toml", text).unwrap_or_else(|wrong| panic!("{wrong}"));
    let fault = parse_fault(&system, "2s flood nic1 5000 100ms").unwrap();
    assert_eq!((fault.kind, fault.arguments), (FaultKind::Flood, [5_000, 100_000_000]));
    assert_eq!(system.adapters[1].card(), Some(fault.target));
    assert_eq!(system.fault_words(&fault), "2s flood nic1 5000 100ms");
    for words in ["2s flood nic2 5000 100ms", "2s flood nic1 0 1s", "2s flood nic1 5"] {
        assert!(parse_fault(&system, words).is_err(), "{words}");
    }
}

#[test]
fn a_line_that_makes_no_sense_is_refused_where_it_stands() {
    let example = "write it as in `2s unplug interface 100ms`";
    wrong("", 1, "the fault has no time", example);
    wrong("2s", 3, "the fault has no kind", example);
    wrong("2s unplg can 1s", 4, "there is no fault `unplg`", "did you mean `unplug`?");
    let help = "name the USB device it happens to";
    wrong("2s unplug", 10, "the fault has no device", help);
    wrong("2s unplug cam 1s", 11, "no USB device is called `cam`", "did you mean `can`?");
    wrong("2s unplug can", 14, "the fault has no `for`", "add `100ms`: its `for`");
    wrong("2s unplug can 1sec", 15, "`1sec` cannot be its for", "write `1s`");
    wrong("2s unplug can 1s 7", 18, "`7` is more than `unplug` asks for", "leave it out");
    let help = "write a whole number from 2 to 1000";
    wrong("2s overrun p 1 1s", 14, "`1` cannot be its `times`", help);
    let help = "write a number and one of ns, us, ms, s, as in `100ms`";
    wrong("soon reboot 1s", 1, "`soon` cannot be its time", help);
}

/// Words, numbers and rubbish in any order: refused or understood, and what is understood is said
/// again in the same words.
#[test]
fn any_line_is_refused_or_understood() {
    let kinds: Vec<&str> = FaultKind::all().map(FaultKind::name).collect();
    let others = [
        "can",
        "sensor",
        "xhci",
        "p",
        "1s",
        "2ms",
        "0",
        "3",
        "-1",
        "µ",
        "\u{0}",
        "99999999999999999999s",
    ];
    let (system, mut random, mut understood) = (system(), Random::new(11), 0);
    for _ in 0..20_000 {
        let mut words = vec![random.pick(&["1s", "0ns", "x", "5"]), random.pick(&kinds)];
        for _ in 0..random.below(4) {
            words.push(random.pick(&others));
        }
        let Ok(fault) = parse_fault(&system, &words.join(" ")) else { continue };
        understood += 1;
        assert_eq!(parse_fault(&system, &system.fault_words(&fault)).unwrap(), fault);
    }
    assert!(understood > 50, "{understood}");
}
