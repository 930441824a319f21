//! Messages on CAN buses: verdicts, identifiers, remedies that hold, and contradictions.

use diapason_abi::Nanos;
use diapason_can::mts::Unmet;
use diapason_plan::can::{CanName, CanOutcome};
use diapason_plan::{Plan, Verdict};
use diapason_system::{CanClass, PipeDirection, System, parse};

const EXAMPLE: &str = include_str!("../../../examples/can-mts.toml");

fn read(text: &str) -> System {
    parse("f", text).unwrap_or_else(|found| panic!("{}", found.plain()))
}

fn planned(text: &str) -> Plan {
    let system = read(text);
    Plan::of(&system)
}

fn by_deadline() -> String {
    let text = EXAMPLE.replace("scheduler = \"mts\"", "scheduler = \"deadline-monotonic\"");
    text.lines().filter(|line| !line.starts_with("time")).map(|line| format!("{line}\n")).collect()
}

/// Returns the example with clocks that are assumed.
fn assumed(clocks: &str) -> String {
    let text = EXAMPLE.lines().filter(|line| !line.starts_with("time"));
    let text: Vec<&str> = text.collect();
    text.join("\n").replace("= \"mts\"", &format!("= \"mts\"\nclocks = \"{clocks}\""))
}

/// Returns the problems and their remedies, in their order.
fn wrong(plan: &Plan) -> Vec<(String, String)> {
    let items = plan.findings.iter().flat_map(|found| found.items());
    items.map(|item| (item.title.to_owned(), item.help.to_owned())).collect()
}

#[test]
fn the_example_holds_under_mts_and_not_by_deadlines() {
    let plan = planned(EXAMPLE);
    assert_eq!(plan.verdict(), Verdict::Holds, "{:?}", wrong(&plan));
    let bus = &plan.cans[0];
    let high = bus.messages.iter().filter(|message| message.class == CanClass::High);
    let codes: Vec<_> = high.map(|message| message.name).collect();
    assert_eq!(codes, (0..10).map(|code| Some(CanName::Code(code))).collect::<Vec<_>>());
    assert!(bus.messages[..10].iter().all(|it| matches!(it.outcome, CanOutcome::StartBy(_))));
    assert!(bus.messages[10..].iter().all(|it| matches!(it.outcome, CanOutcome::Response(_))));

    let plan = planned(&by_deadline());
    assert_eq!(plan.verdict(), Verdict::DoesNotHold);
    let late = plan.cans[0]
        .messages
        .iter()
        .filter(|message| matches!(message.outcome, CanOutcome::Unmet(Unmet::Response { .. })));
    assert_eq!(late.count(), 1);
}

#[test]
fn what_a_refusal_proposes_holds() {
    let refused = by_deadline();
    let found = wrong(&planned(&refused));
    let [(title, help)] = &found[..] else { panic!("{found:?}") };
    assert!(title.starts_with("`limits` may take"), "{title}");
    let deadline = help.split('`').nth(1).unwrap();
    assert!(help.contains("`scheduler = \"mts\"` with `clocks = \"20us\"`"), "{help}");
    let place = refused.find("name = \"limits\"").unwrap();
    let longer = format!("{}{deadline}\n{}", &refused[..place], &refused[place..]);
    assert_eq!(planned(&longer).verdict(), Verdict::Holds, "{help}");
    let ns: u64 = deadline.split('"').nth(1).unwrap().trim_end_matches("us").parse().unwrap();
    let shorter = longer.replace(deadline, &format!("deadline = \"{}us\"", ns - 1));
    assert_eq!(planned(&shorter).verdict(), Verdict::DoesNotHold, "it is the nearest");
}

#[test]
fn a_full_bus_is_told_which_rate_or_stretch_would_do() {
    let slow = EXAMPLE.replace("rate = 1_000_000", "rate = 500_000");
    let found = wrong(&planned(&slow));
    assert!(found[0].1.contains("`rate = 1000000`"), "{found:?}");
    assert!(found[1..].iter().all(|(_, help)| help.contains("first message")), "{found:?}");
    let twice = EXAMPLE.replace("period = \"1ms\"", "period = \"400us\"");
    let found = wrong(&planned(&twice));
    let help = &found[0].1;
    assert!(help.starts_with("all would fit with periods and deadlines of 1"), "{help}");
}

/// The bits of CAN FD frames count by their two rates, against a calculation by hand.
#[test]
fn a_bus_with_frames_of_can_fd_is_planned() {
    let bus = |more: &str, rate: u32| {
        let of = |name: &str, bytes: u32, deadline: &str| {
            format!(
                "[[message]]\nname = \"{name}\"\nbus = \"body\"\nnode = \"unit\"\nfd = true\n\
                 bytes = {bytes}\nperiod = \"10ms\"\ndeadline = \"{deadline}\"\n"
            )
        };
        let head = HEAD.replace("as-written", "deadline-monotonic");
        head.replace("rate = 125000", &format!("rate = {rate}\n{more}"))
            + &of("short", 8, "1ms")
            + &of("long", 60, "2ms")
    };
    let plan = planned(&bus("data_rate = 2000000", 500_000));
    assert_eq!(plan.verdict(), Verdict::Holds, "{:?}", wrong(&plan));
    let messages = &plan.cans[0].messages;
    // 29 + 2 bits, and 113 of 2 Mbit/s as 29 more; with 64 bytes 678 as 170 more.
    assert_eq!((messages[0].bits, messages[1].bits), (31 + 29, 31 + 170));
    let response = |index: usize| match messages[index].outcome {
        CanOutcome::Response(response) => response.0,
        ref other => panic!("{other:?}"),
    };
    // The short one waits for the long one and the interframe space; the long one for the short.
    assert_eq!(response(0), (201 + 3 + 60) * 2_000);
    assert_eq!(response(1), (60 + 3 + 201) * 2_000);
    // Without a switch the same frames are too long. No remedy is MTS, or a rate above the data's.
    let slow = planned(&bus("data_rate = 250000", 250_000));
    let found = wrong(&slow);
    assert_eq!(slow.verdict(), Verdict::DoesNotHold);
    assert!(found.iter().all(|(_, help)| !help.contains("mts") && !help.contains("`rate =")));
}

#[test]
fn the_best_epoch_leaves_no_less_than_any_other() {
    let chosen = planned(EXAMPLE).cans[0].epochs.clone().unwrap();
    let (best, most) = chosen.best.unwrap();
    assert_eq!((best, Some(most)), (chosen.epochs.epoch(), chosen.spare_ppm));
    for epoch in ["600us", "1ms", "2ms", "5ms", "20ms"] {
        let text = EXAMPLE.replace("time =", &format!("epoch = \"{epoch}\"\ntime ="));
        let epochs = planned(&text).cans[0].epochs.clone().unwrap();
        assert!(epochs.given && epochs.spare_ppm.is_none_or(|spare| spare <= most), "{epoch}");
    }
    let text = EXAMPLE.replace("time =", "epoch = \"300us\"\ntime =");
    let found = wrong(&planned(&text));
    assert!(found[0].0.contains("is over before identifiers are renewed"), "{found:?}");
}

#[test]
fn clocks_that_are_far_off_cost_what_they_may() {
    let spare = |clocks: &str| {
        let plan = planned(&assumed(clocks));
        assert!(plan.cans[0].clocks.as_ref().unwrap().time.is_none());
        plan.cans[0].epochs.clone().unwrap().spare_ppm.unwrap()
    };
    assert!(spare("0ns") > spare("20us") && spare("20us") > spare("100us"));
}

/// Returns the example on nodes that renew by their clocks.
fn by_clock(within: &str) -> String {
    EXAMPLE.replace("time =", &format!("renewal = \"{within}\"\ntime ="))
}

#[test]
fn a_renewal_by_clocks_costs_its_time_and_a_frame() {
    let epochs = |text: &str| planned(text).cans[0].epochs.clone().unwrap();
    assert_eq!(planned(&by_clock("50us")).verdict(), Verdict::Holds);
    // Twice the 15 us of the clocks, 50 us, and the longest frame with its space.
    let (signal, clock) = (epochs(EXAMPLE), epochs(&by_clock("50us")));
    assert_eq!((signal.cost, clock.cost), (Nanos(22_000), Nanos(30_000 + 50_000 + 133_000)));
    assert_eq!(clock.renewal, Nanos(65_000));
    let load = |text: &str| planned(text).cans[0].load_ppm;
    assert!(load(&by_clock("50us")) < load(EXAMPLE), "no bit of a signal is on the bus");
}

#[test]
fn a_renewal_that_takes_too_long_is_refused_with_one_that_holds() {
    let refused = by_clock("200us");
    let found = wrong(&planned(&refused));
    let renewal = |help: &str| {
        let way = help.split("`renewal = \"").nth(1)?;
        way.split("us").next()?.parse::<u64>().ok()
    };
    let fits = found.iter().find_map(|(_, help)| renewal(help)).expect("a shorter one");
    assert_eq!(planned(&by_clock(&format!("{fits}us"))).verdict(), Verdict::Holds);
    let longer = by_clock(&format!("{}us", fits + 1));
    assert_eq!(planned(&longer).verdict(), Verdict::DoesNotHold, "it is the nearest");
}

/// The scheduler that is proposed to a bus under MTS holds as it is told.
#[test]
fn another_scheduler_is_proposed_without_the_keys_of_mts() {
    let of = |name: &str, class: &str, deadline: &str| {
        format!(
            "[[message]]\nname = \"{name}\"\nbus = \"body\"\nnode = \"unit\"\nbytes = 8\n\
             class = \"{class}\"\nperiod = \"50ms\"\ndeadline = \"{deadline}\"\n"
        )
    };
    let head = HEAD.replace("rate = 125000", "rate = 125000\nclocks = \"20us\"");
    let text = head.replace("as-written", "mts") + &of("a", "high", "40ms");
    let refused = text.clone() + &of("b", "low", "2.5ms");
    let found = wrong(&planned(&refused));
    let keys = "`scheduler = \"deadline-monotonic\"` without `clocks`";
    assert!(found.iter().any(|(_, help)| help.contains(keys)), "{found:?}");
    let other = refused.replace("mts", "deadline-monotonic").replace("clocks = \"20us\"", "");
    assert_eq!(planned(&other).verdict(), Verdict::Holds);
}

const HEAD: &str = "[system]\nname = \"s\"\n[[can]]\nname = \"body\"\nrate = 125000\n\
                    scheduler = \"as-written\"\n";

fn message(name: &str, node: &str, id: u32, more: &str) -> String {
    format!(
        "[[message]]\nname = \"{name}\"\nbus = \"body\"\nnode = \"{node}\"\nid = {id}\n{more}\n"
    )
}

#[test]
fn what_waits_behind_others_of_its_node_has_a_longer_bound() {
    let ten = "period = \"10ms\"\nbytes = 8";
    let messages = message("door", "a", 1, ten) + &message("seat", "a", 0x300, ten);
    let messages = messages + &message("lamp", "b", 0x200, ten);
    let response = |plan: &Plan| match plan.cans[0].messages[0].outcome {
        CanOutcome::Response(response) => response,
        ref other => panic!("{other:?}"),
    };
    let by_priority = planned(&(HEAD.to_owned() + &messages));
    let in_order = planned(&(HEAD.to_owned() + "in_order = [\"a\"]\n" + &messages));
    let frame = 133 * 8_000;
    assert_eq!(response(&by_priority).0, frame + 130 * 8_000);
    assert_eq!(response(&in_order).0, 2 * frame + 130 * 8_000);
}

#[test]
fn a_message_without_a_period_goes_last_or_is_refused() {
    let ten = "period = \"10ms\"\nbytes = 8";
    let none = "class = \"none\"\nbytes = 8";
    let text = HEAD.to_owned() + &message("door", "a", 0x100, ten);
    let last = planned(&(text.clone() + &message("log", "b", 0x700, none)));
    assert_eq!(last.verdict(), Verdict::Holds);
    let first = planned(&(text.clone() + &message("log", "b", 0x10, none)));
    let found = wrong(&first);
    assert!(found[0].0.starts_with("`log` has no period, and goes before"), "{found:?}");
    let text = text.replace("as-written\"\n", "as-written\"\nin_order = [\"b\"]\n");
    let behind = planned(&(text + &message("log", "b", 0x700, none)));
    assert!(wrong(&behind)[0].0.contains("its node sends in order"));
    let nothing = planned(&(HEAD.to_owned() + &message("log", "b", 0x700, none)));
    assert_eq!(nothing.verdict(), Verdict::PromisesNothing);
}

/// `examples/can-output.toml` and a description of the bus that its first pipe writes to.
fn output(messages: &str) -> String {
    include_str!("../../../examples/can-output.toml").to_owned() + messages
}

const WRITTEN: &str = include_str!("../../../examples/can-output.toml");

#[test]
fn pipes_and_traffic_of_the_bus_agree_with_its_messages() {
    let system = read(WRITTEN);
    let (number, pipe) =
        (0..).zip(&system.pipes).find(|(_, pipe)| pipe.way == PipeDirection::ToDevice).unwrap();
    let plug = &system.usb[pipe.usb];
    let rate = plug.bit_rates[usize::from(pipe.channel)];
    let bus = format!(
        "\n[[can]]\nname = \"drive\"\nrate = {rate}\nscheduler = \"deadline-monotonic\"\n\
         usb = \"{}\"\nchannel = {}\n",
        plug.name, pipe.channel
    );
    let process = &system.processes[usize::from(pipe.process().unwrap())].name;
    let own = |period: u64, at_once: u64| {
        let jitter = (at_once - 1) * period;
        format!(
            "[[message]]\nname = \"own\"\nbus = \"drive\"\nprocess = \"{process}\"\nbytes = 8\n\
             period = \"{period}ns\"\njitter = \"{jitter}ns\"\ndeadline = \"900ms\"\n"
        )
    };
    let exact = 1_000_000_000_u64.div_ceil(pipe.rate);
    let says = |text: &str| wrong(&planned(&output(text)));
    let before = wrong(&planned(WRITTEN));
    assert!(before.is_empty(), "{before:?}");
    let none = says(&bus);
    assert!(none[0].0.contains("no `[[message]]` of it says what"), "{none:?}");
    let fits = says(&(bus.clone() + &own(exact, pipe.burst)));
    assert!(fits.is_empty(), "pipe {number}: {fits:?}");
    let slower = says(&(bus.clone() + &own(2 * exact, pipe.burst)));
    assert!(slower[0].0.contains("the messages it carries"), "{slower:?}");
    let fewer = says(&(bus.clone() + &own(exact, pipe.burst - 1)));
    assert!(fewer[0].0.contains("messages come at once"), "{fewer:?}");
    // Frames that others send before its least urgent message make the pipe's bill longer.
    let drain = |text: &str| {
        let plan = planned(&output(text));
        plan.pipes[number].bill.as_ref().unwrap().total
    };
    let other = "[[message]]\nname = \"other\"\nbus = \"drive\"\nnode = \"unit\"\nbytes = 8\n\
                 period = \"20ms\"\n";
    let alone = bus.clone() + &own(exact, pipe.burst);
    assert!(drain(&(alone.clone() + other)) > drain(&alone));
    // So do errors on the bus: at least a frame and 31 bits of flags.
    let destroyed = alone.replacen("usb =", "error_interval = \"100ms\"\nusb =", 1);
    let bit = Nanos(1_000_000_000 / u64::from(rate));
    assert!(drain(&destroyed) >= drain(&alone) + Nanos(bit.0 * (31 + 114)));
}
