//! Other ways of flows: what their bills count, and what is refused.

use diapason_abi::Nanos;
use diapason_contract::link::{PATIENCE, REST_NS};
use diapason_plan::{FlowBill, FlowStage, NetworkPlan};
use diapason_system::{Description, Hosts, ProcessSpec, parse_any};
use diapason_usb::class::link::PEER_TIME;
use std::fs;
use std::path::PathBuf;

const LIST: &str = "detour.toml";

fn example(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    fs::read_to_string(path).unwrap()
}

/// Returns the example with one text for another in one file, wherever it is there.
fn with(file: &str, from: &str, to: &str) -> Hosts {
    let change = |name: &str| {
        let text = example(name);
        assert!(name != file || text.contains(from), "{file} has no {from}");
        if name == file { text.replace(from, to) } else { text }
    };
    match parse_any(LIST, &change(LIST), |name: &str| Ok((name.to_owned(), change(name)))) {
        Ok(Description::Several(hosts)) => hosts,
        other => panic!("{other:?}"),
    }
}

fn bill(hosts: &Hosts) -> FlowBill {
    let plan = NetworkPlan::of(hosts);
    plan.flows[0].bill.clone().unwrap_or_else(|none| panic!("{none:?}"))
}

/// Returns the first refusal: what is wrong, and the remedy.
fn refusal(hosts: &Hosts) -> [String; 2] {
    let plan = NetworkPlan::of(hosts);
    assert!(!plan.holds());
    let item = plan.refused[0].items()[0];
    [item.title.to_owned(), item.help.to_owned()]
}

#[test]
fn both_ways_have_bills() {
    let hosts = with(LIST, "12ms", "12ms");
    let plan = NetworkPlan::of(&hosts);
    assert!(plan.holds(), "{:?}", plan.refused);
    let bill = bill(&hosts);
    let programs: Vec<_> = bill.items.iter().filter(|it| it.stage == FlowStage::Program).collect();
    let [out, back] = &bill.others[..] else { panic!("{:?}", bill.others) };
    assert_eq!((out.hop, back.hop, out.items.len(), back.items.len()), (0, 1, 10, 10));
    // The first other way begins behind the first program.
    assert_eq!(out.items[0].after - out.items[0].value, programs[0].after);
    let place =
        |at: usize| format!("{} {}", out.items[at].place(&hosts), out.items[at].stage.word());
    assert_eq!(
        [place(0), place(1), place(4), place(9)],
        ["west:usbd sends", "west-hub cable", "hub:router program", "east:answerer program",]
    );
    // By whatever ways is both other ways here, since both are longer.
    let sum = |items: &[diapason_plan::FlowItem]| {
        items.iter().fold(Nanos::ZERO, |sum, item| sum + item.value)
    };
    let whole = programs[0].after + sum(&out.items) + sum(&back.items);
    assert!(bill.longest > whole && bill.longest < whole + Nanos::from_micros(10), "{bill:?}");
    assert!(bill.longest > bill.total);
    // The second begins after the longest way to its first program.
    assert_eq!(back.items[0].after - back.items[0].value, programs[0].after + sum(&out.items));
    for other in [out, back] {
        assert!(other.patience >= other.least && other.lost > 0);
    }
}

/// A longer patience keeps more messages at the cable, and all that follows counts them.
#[test]
fn messages_that_a_lost_cable_keeps_are_counted() {
    let usual = bill(&with(LIST, "12ms", "12ms"));
    let patient = bill(&with(LIST, "patience = \"4ms\"", "patience = \"40ms\""));
    let waiting = |bill: &FlowBill| {
        bill.items.iter().filter_map(|it| it.waiting).map(|it| it.0).collect::<Vec<u64>>()
    };
    let pairs = waiting(&patient).into_iter().zip(waiting(&usual)).collect::<Vec<_>>();
    assert!(pairs.iter().all(|(more, less)| more > less), "{pairs:?}");
    assert!(patient.longest > usual.longest);
    for (more, less) in patient.others.iter().zip(&usual.others) {
        assert!(more.lost >= less.lost + 2, "{} {}", more.lost, less.lost);
        assert_eq!(more.patience, Nanos::from_millis(40));
    }
    // Without memory for them they are refused.
    let [title, help] = refusal(&with(LIST, "patience = \"4ms\"", "patience = \"40ms\""));
    assert!(title.contains("messages may need memory at `east:usbd`"), "{title}");
    assert!(help.starts_with("lend memory for "), "{help}");
}

#[test]
fn a_program_that_would_leave_a_cable_that_works_is_refused() {
    let hosts = with(LIST, "patience = \"4ms\"", "patience = \"1ms\"");
    let [title, help] = refusal(&hosts);
    let least = bill(&hosts).others[0].least.0.div_ceil(1_000);
    assert!(title.starts_with("`ping`: its program knows after "), "{title}");
    assert!(title.ends_with("that `direct` has taken a message, and its patience is 1.000 ms"));
    assert_eq!(help, format!("write `patience = \"{least}us\"` or more"));
    // The remedy is one, for both hops.
    let most = bill(&hosts).others.iter().map(|it| it.least.0.div_ceil(1_000)).max().unwrap();
    let patience = format!("patience = \"{most}us\"");
    let plan = NetworkPlan::of(&with(LIST, "patience = \"4ms\"", &patience));
    assert!(plan.holds(), "{:?}", plan.refused);
}

#[test]
fn the_latency_counts_the_longer_way() {
    let usual = bill(&with(LIST, "12ms", "12ms"));
    let between = (usual.total.0 + usual.longest.0) / 2_000;
    let hosts = with(LIST, "latency = \"12ms\"", &format!("latency = \"{between}us\""));
    let [title, help] = refusal(&hosts);
    assert!(title.starts_with("messages of `ping` may take "), "{title}");
    let least = usual.longest.0.div_ceil(1_000);
    assert!(help.starts_with(&format!("write `latency = \"{least}us\"`")), "{help}");
}

#[test]
fn a_host_that_does_not_forward_is_refused() {
    let text = example("links/relay.toml");
    // The uses of the router are the last ones.
    let (before, router) = text.split_once("program = \"link-router\"").unwrap();
    let names = " \"link1.asks\", \"link1.done\", \"link1.ask\",";
    let mute = format!("{before}program = \"link-router\"{}", router.replacen(names, "", 1));
    assert_ne!(mute, text);
    let hosts = with("links/relay.toml", &text, &mute);
    let [title, help] = refusal(&hosts);
    assert_eq!(title, "`ping` has no bound: `router` in `hub` does not use link 1, of `hub-east`");
    let wanted = "add `link1.asks` and the other names of the link to its `uses` in \
                  `links/relay.toml`";
    assert_eq!(help, wanted);
}

/// A link of another way is one that a flow crosses; without the other way it is not.
#[test]
fn a_link_without_a_flow_is_found() {
    let text = example(LIST);
    let (start, _) = text.split_once("patience").unwrap();
    let hosts = with(LIST, &text, start);
    let [title, _] = refusal(&hosts);
    assert_eq!(title, "`ping` has no bound: `pinger` in `west` also uses link 1, and no flow");
}

/// Both programs that choose between ways are told what the description says, and no other is.
#[test]
fn programs_are_told_the_patience_of_their_flow() {
    let mut hosts = with(LIST, "patience = \"4ms\"", "patience = \"7ms\"");
    NetworkPlan::of(&hosts).instruct(&mut hosts);
    let told = hosts.hosts.iter().flat_map(|host| {
        let told = |process: &ProcessSpec| process.setting(PATIENCE).first().copied();
        let processes = host.system.processes.iter();
        processes.filter_map(move |it| Some((host.name.clone(), it.name.clone(), told(it)?)))
    });
    let expected = [("west", "pinger"), ("east", "answerer")];
    let expected = expected.map(|(host, name)| (host.to_owned(), name.to_owned(), 7_000_000));
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

/// A program has one patience, so flows that turn at it say the same.
#[test]
fn flows_that_turn_at_one_program_have_one_patience() {
    let text = example(LIST);
    // The way there only: a program measures one flow.
    let back = text.find("[[flow.hop]]\nprocess = \"west:pinger\"").unwrap();
    let flow = &text[text.find("[[flow]]").unwrap()..back];
    let double = |patience: &str| {
        let second = flow.replace("\"ping\"", "\"second\"");
        let second = second.replace("patience = \"4ms\"", &format!("patience = \"{patience}\""));
        let mut hosts = with(LIST, "[[flow]]\n", &format!("{second}\n[[flow]]\n"));
        // A router could not tell two flows of one program apart.
        let all = hosts.hosts.iter_mut().flat_map(|host| &mut host.system.processes);
        all.filter(|it| it.name == "router").for_each(|it| it.program = "forwarder".to_owned());
        hosts
    };
    let plan = NetworkPlan::of(&double("4ms"));
    let told = "has one patience";
    let says = |plan: &NetworkPlan| plan.refused.iter().any(|it| it.plain().contains(told));
    assert!(!says(&plan), "{:?}", plan.refused);
    let plan = NetworkPlan::of(&double("5ms"));
    assert!(says(&plan) && !plan.holds(), "{:?}", plan.refused);
    let text = plan.refused[0].plain();
    let title = "`west:pinger` has one patience, which is 5.000 ms here and 4.000 ms in `ping`";
    assert!(text.contains(title), "{text}");
}

/// A bridge gives messages up that its other side does not take. The program must turn before.
#[test]
fn a_patience_beyond_that_of_a_bridge_is_refused() {
    let mut hosts = with(LIST, "period = \"12ms\"", "period = \"80ms\"");
    let patience = |hosts: &mut Hosts, ns: u64| {
        hosts.flows[0].detours.iter_mut().for_each(|detour| detour.patience_ns = ns);
    };
    patience(&mut hosts, PEER_TIME.0 - 1);
    assert!(NetworkPlan::of(&hosts).holds(), "{:?}", NetworkPlan::of(&hosts).refused);
    patience(&mut hosts, PEER_TIME.0);
    let [title, help] = refusal(&hosts);
    let start = "`ping`: `direct` gives up a message that its other side has not taken for ";
    assert!(title.starts_with(start), "{title}");
    assert_eq!(help, "write a `patience` below 50.000 ms");
}

/// A program tries a cable that gives messages back once in a while, and each try costs as many.
#[test]
fn a_cable_that_gives_messages_back_costs_more_each_second() {
    let bill = bill(&with(LIST, "12ms", "12ms"));
    let again: Vec<_> = bill.others.iter().map(|other| other.again).collect();
    assert_eq!(again, [Some(Nanos(REST_NS)); 2]);
}
