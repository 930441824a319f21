//! Wires and switches in lists of hosts: what they are, and which mistakes are named where.

use diapason_system::{ClassCredit, Description, Diagnostics, FlowWay, Hosts, WireEnd, parse_any};
use proptest::prelude::*;
use std::fs;
use std::path::PathBuf;

fn example(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    fs::read_to_string(path).unwrap()
}

fn parsed(text: &str) -> Result<Description, Diagnostics> {
    parse_any("ethernet.toml", text, |file| Ok((file.to_owned(), example(file))))
}

fn list(text: &str) -> Hosts {
    match parsed(text) {
        Ok(Description::Several(hosts)) => hosts,
        other => panic!("{other:?}"),
    }
}

/// Checks that the example with one text for another is refused, once, with this title.
#[track_caller]
fn bad(from: &str, to: &str, title: &str) {
    let text = example("ethernet.toml");
    assert!(text.contains(from), "no {from}");
    let text = text.replacen(from, to, 1);
    let found = parsed(&text).unwrap_err();
    let titles: Vec<&str> = found.items().iter().map(|item| item.title).collect();
    assert_eq!(titles, [title]);
    assert!(found.items()[0].line > 1 && !found.items()[0].help.is_empty());
}

#[test]
fn wires_join_adapters_and_ports() {
    let hosts = list(&example("ethernet.toml"));
    let ends: Vec<[WireEnd; 2]> = hosts.ethernet.iter().map(|link| link.ends).collect();
    let adapter = |host| WireEnd::Adapter { host, adapter: 0 };
    let port = |port| WireEnd::Port { switch: 0, port };
    assert_eq!(ends, [[adapter(0), port(0)], [port(1), adapter(1)], [adapter(2), port(2)]]);
    assert_eq!((hosts.ethernet[0].speed, hosts.ethernet[0].delay_ns), (1_000, 500));
    let switch = &hosts.switches[0];
    assert_eq!((switch.ports, switch.latency_ns, switch.room), (4, 2_000, 16));
    assert!(switch.gates(1).always(7));
    let ways: Vec<FlowWay> = hosts.flows.iter().map(|flow| flow.hops[0].way).collect();
    assert_eq!(ways, [(0, 0), (0, 1)].map(|(from, to)| FlowWay::Sockets { from, to }));
}

#[test]
fn what_comes_follows_from_flows() {
    let hosts = list(&example("ethernet.toml"));
    let drive = &hosts.hosts[1].system;
    // A period of 1 ms by a clock that is 250 ppm fast; the latency is 3 and 10 ms.
    let terms = drive.sockets.iter().map(|it| (it.period_ns, it.burst, it.work_ns));
    let expected = [(Some(999_749), 1 + 4, Some(20_000)), (Some(999_749), 4 + 11, Some(20_000))];
    assert!(terms.eq(expected));
    assert_eq!(drive.adapters[0].traffic, Some((2 * 1_001, 5 + 15)));
    let open = list(&example("ethernet.toml").replace("latency = \"3ms\"", ""));
    let drive = &open.hosts[1].system;
    assert_eq!((drive.sockets[0].period_ns, drive.adapters[0].traffic), (None, None));
}

#[test]
fn mistakes_of_wires_are_named() {
    bad("\"control:nic0\", ", "", "wire `control-wire` has 1 ends, and a wire has 2");
    bad("control:nic0", "controls:nic0", "no host or switch is called `controls`");
    bad("control:nic0", "control:nic1", "`ethernet/control.toml` has no adapter called `nic1`");
    bad("control:nic0", "control", "`control` is not the end of a wire");
    bad("\"cabinet:1\"", "\"cabinet:5\"", "`cabinet` has no port `5`");
    bad("\"cabinet:1\"", "\"cabinet:0\"", "`cabinet` has no port `0`");
    bad("\"cabinet:1\"", "\"cabinet:2\"", "`cabinet:2` has two wires");
    let speed = "`control-wire` has 100 Mbit/s, and an adapter at its end 1000";
    bad("delay = \"500ns\" ", "speed = 100\ndelay = \"500ns\" ", speed);
    bad("delay = \"500ns\" ", "speed = 99 ", "no wire has a speed of 99 Mbit/s");
    bad("name = \"drive-wire\"", "name = \"camera-wire\"", "two cables are called `camera-wire`");
    let first = "ends = [\"camera:nic0\", \"cabinet:3\"]";
    bad(first, "ends = [\"cabinet:3\", \"cabinet:4\"]", "`camera-wire` closes a circle of wires");
}

#[test]
fn adapters_have_addresses_of_their_own() {
    let twin = |file: &str| {
        let text = example(file).replace("02:00:00:00:00:03", "02:00:00:00:00:01");
        Ok((file.to_owned(), text))
    };
    let found = parse_any("ethernet.toml", &example("ethernet.toml"), twin).unwrap_err();
    let titles: Vec<&str> = found.items().iter().map(|item| item.title).collect();
    assert_eq!(titles, ["adapters of `camera` and `control` have the same `mac`"]);
}

#[test]
fn a_switch_has_a_name_of_its_own() {
    let text = example("ethernet.toml").replace("cabinet", "drive");
    let found = parsed(&text).unwrap_err();
    assert_eq!(found.items()[0].title, "a host and a switch are called `drive`");
}

#[test]
fn mistakes_of_gates_are_named() {
    let bad = |rest: &str, title: &str| {
        let text = example("ethernet.toml").replacen("ports = 4", "", 1);
        let at = text.find("\n[[ethernet]]").unwrap();
        let text = format!("{}ports = 4\n\n[[switch.gates]]\n{rest}\n{}", &text[..at], &text[at..]);
        let found = parsed(&text).unwrap_err();
        let titles: Vec<&str> = found.items().iter().map(|item| item.title).collect();
        assert_eq!(titles, [title]);
    };
    bad("entries = [\"S ff 1ms\"]", "this list of gates has no `port`");
    bad("port = 5\nentries = [\"S ff 1ms\"]", "`cabinet` has no port 5");
    bad("port = 2\nentries = [\"S fff 1ms\"]", "`S fff 1ms` is no entry of a list of gates");
    bad("port = 2\nentries = [\"H ff 1ms\"]", "`H ff 1ms` is no entry of a list of gates");
    let unfilled = "the entries of the gate list last 125000 ns and the cycle 250000 ns";
    bad("port = 2\ncycle = \"250us\"\nentries = [\"S 40 62us\", \"S 3f 63us\"]", unfilled);
    let short = "the longest window of class 6 lasts 600 ns, and a frame with what may delay it \
                 there 672 ns";
    bad("port = 2\nentries = [\"S 40 600ns\", \"S 3f 63us\"]", short);
    let twice = "port = 2\nentries = [\"S ff 1ms\"]\n[[switch.gates]]\nport = 2\n\
                 entries = [\"S ff 1ms\"]";
    bad(twice, "port 2 has two lists of gates");
}

#[test]
fn mistakes_of_credit_are_named() {
    let with = |rest: &str| {
        let text = example("ethernet.toml").replacen("ports = 4", "", 1);
        let at = text.find("\n[[ethernet]]").unwrap();
        format!("{}ports = 4\n\n[[switch.credit]]\n{rest}\n{}", &text[..at], &text[at..])
    };
    let refused = |rest: &str, title: &str| {
        let found = parsed(&with(rest)).unwrap_err();
        let titles: Vec<&str> = found.items().iter().map(|item| item.title).collect();
        assert_eq!(titles, [title]);
        assert!(found.items()[0].line > 1 && !found.items()[0].help.is_empty());
    };
    const OWN: &str = "port = 2\npriority = 6\n";
    let hosts = list(&with(&format!("{OWN}idle_slope = 20000")));
    let credit = ClassCredit { priority: 6, idle_kbit: 20_000 };
    assert_eq!(hosts.switches[0].credits, [(1, credit)]);
    refused("priority = 6\nidle_slope = 20000", "this credit has no `port`");
    refused("port = 2\nidle_slope = 20000", "this credit has no `priority`");
    refused(OWN, "this credit has no `idle_slope`");
    refused(&format!("{OWN}idle_slope = 0"), "`idle_slope` is 0, out of range");
    refused("port = 2\npriority = 8\nidle_slope = 9", "`priority` is 8, out of range");
    refused("port = 5\npriority = 6\nidle_slope = 9", "`cabinet` has no port 5");
    let twice = format!("{OWN}idle_slope = 9\n[[switch.credit]]\n{OWN}idle_slope = 9");
    refused(&twice, "priority 6 has two idle slopes at port 2");
    let much = "[[switch.credit]]\nport = 2\npriority = 1\nidle_slope = 500001";
    refused(
        &format!("{OWN}idle_slope = 500000\n{much}"),
        "at cabinet:2: the idle slopes reserve 1000001 ppm of the link",
    );
    let gates = "[[switch.gates]]\nport = 2\nentries = [\"S ff 1ms\", \"S bf 1ms\"]";
    refused(
        &format!("{OWN}idle_slope = 9\n{gates}"),
        "at cabinet:2: class 6 has an idle slope and a gate that closes",
    );
}

/// Credit of an adapter goes with gates that its server keeps.
#[test]
fn credit_of_an_adapter_is_read_and_its_mistakes_are_named() {
    let gates = |entries: &str, credit: &str| {
        let text = example("ethernet-gates.toml");
        let text = text.replace("[\"S 40 1500us\", \"S 3f 1500us\"]", entries);
        text.replace(
            "\n[[flow]]\nname = \"commands\"",
            &format!("\n[[ethernet.credit]]\n{credit}\n\n[[flow]]\nname = \"commands\""),
        )
    };
    const OPEN: &str = "[\"S ff 1ms\"]";
    const OWN: &str = "end = \"station:nic0\"\npriority = 6\nidle_slope = 400000";
    let hosts = list(&gates(OPEN, OWN));
    let credit = ClassCredit { priority: 6, idle_kbit: 400_000 };
    assert_eq!(hosts.ethernet[0].gates[0].credits, [(0, credit)]);
    let refused = |entries: &str, credit: &str, title: &str| {
        let found = parsed(&gates(entries, credit)).unwrap_err();
        let titles: Vec<&str> = found.items().iter().map(|item| item.title).collect();
        assert_eq!(titles, [title]);
        assert!(found.items()[0].line > 20 && !found.items()[0].help.is_empty());
    };
    refused(OPEN, "priority = 6\nidle_slope = 9", "this credit has no `end`");
    let far = OWN.replace("station:nic0", "wire:nic0");
    refused(OPEN, &far, "`wire:nic0` is no adapter at this wire");
    let ungated = OWN.replace("station", "drive");
    refused(OPEN, &ungated, "`drive:nic0` has no gates, whose `guard` its credit needs");
    let twice = format!("{OWN}\n[[ethernet.credit]]\n{OWN}");
    refused(OPEN, &twice, "priority 6 has two idle slopes at `station:nic0`");
    let much = OWN.replace("400000", "1000000");
    let both = format!("{much}\n[[ethernet.credit]]\n{}", OWN.replace("= 6", "= 0"));
    refused(OPEN, &both, "at station:nic0: the idle slopes reserve 1400000 ppm of the link");
    refused(
        "[\"S 40 1500us\", \"S 3f 1500us\"]",
        OWN,
        "at station:nic0: class 6 has an idle slope and a gate that closes",
    );
}

#[test]
fn credit_of_a_slow_wire_is_a_share_of_that() {
    let text = example("ethernet-credit.toml").replace("idle_slope = 15000", "idle_slope = 100001");
    let found = parsed(&text).unwrap_err();
    let item = &found.items()[0];
    assert_eq!(item.title, "at cabinet:3: the idle slopes reserve 1000010 ppm of the link");
    let line = text.lines().position(|line| line.starts_with("idle_slope")).unwrap() + 1;
    assert_eq!(item.line, line);
    assert!(parsed(&text.replace("100001", "100000")).is_ok());
}

#[test]
fn mistakes_of_gates_of_adapters_are_named() {
    const LIST: &str = "ethernet-gates.toml";
    const STATION: &str = "ethernet/station.toml";
    let found = |file: &str, from: &str, to: &str| {
        let read = |name: &str| {
            let text = example(name);
            assert!(name != file || text.contains(from), "no {from}");
            if name == file { text.replacen(from, to, 1) } else { text }
        };
        parse_any(LIST, &read(LIST), |name| Ok((name.to_owned(), read(name))))
    };
    let bad = |file: &str, from: &str, to: &str, title: &str| {
        let found = found(file, from, to).unwrap_err();
        let titles: Vec<&str> = found.items().iter().map(|item| item.title).collect();
        assert_eq!(titles, [title]);
        assert!(found.items()[0].line > 1 && !found.items()[0].help.is_empty());
    };
    let Description::Several(hosts) = found(LIST, "", "").unwrap() else { panic!() };
    let gates = hosts.ethernet[0].gates(WireEnd::Adapter { host: 0, adapter: 0 }).unwrap();
    assert_eq!((gates.guard_ns, gates.list.cycle_ns()), (250_000, 3_000_000));
    assert!(hosts.ethernet[0].gates(WireEnd::Adapter { host: 1, adapter: 0 }).is_none());
    let end = "end = \"station:nic0\"";
    bad(LIST, end, "", "this list of gates has no `end`");
    bad(LIST, end, "end = \"cabinet:1\"", "`cabinet:1` is no adapter at this wire");
    bad(LIST, "guard = \"250us\"", "", "this list of gates has no `guard`");
    let short = "the longest window of class 0 lasts 400000 ns, and a frame with what may delay it \
                 there 500672 ns";
    bad(LIST, "S 3f 1500us", "S 3f 400us", short);
    let cycle = "the entries of the gate list last 3000000 ns and the cycle 4000000 ns";
    bad(LIST, "entries = [", "cycle = \"4ms\"\nentries = [", cycle);
    let twice = "guard = \"250us\"\nentries = [\"S ff 2ms\"]\n[[ethernet.gates]]\n\
                 end = \"station:nic0\"\nguard = \"250us\"";
    bad(LIST, "guard = \"250us\"", twice, "`station:nic0` has two lists of gates");
    let many = format!("entries = [{}", "\"S ff 1ms\", ".repeat(15));
    bad(LIST, "entries = [", &many, "an adapter takes 16 entries of gates at most");
    let poor = "`net` in `ethernet/station.toml` has no memory for gates";
    bad(STATION, "semaphores = 2", "semaphores = 1", poor);
    bad(STATION, "heap = \"32K\"", "heap = \"16K\"", poor);
    let pictures = example(LIST);
    let pictures = &pictures[pictures.find("[[flow]]\nname = \"pictures\"").unwrap()..];
    bad(LIST, pictures, "", "`station:camera` sends through gates, and nothing bounds it");
}

#[test]
fn mistakes_of_flows_in_step_are_named() {
    const LIST: &str = "ethernet-gates-step.toml";
    let bad = |from: &str, to: &str, title: &str| {
        let text = example(LIST);
        assert!(text.contains(from), "no {from}");
        let text = text.replacen(from, to, 1);
        let found = parse_any(LIST, &text, |name| Ok((name.to_owned(), example(name))));
        let found = found.unwrap_err();
        let titles: Vec<&str> = found.items().iter().map(|item| item.title).collect();
        assert_eq!(titles, [title]);
        assert!(found.items()[0].line > 1 && !found.items()[0].help.is_empty());
    };
    let offset = "offset = \"4500us\"";
    let one = "one message is released at each `offset`";
    for more in ["burst = 2", "jitter = \"1us\""] {
        bad(offset, &format!("{offset}\n{more}"), one);
    }
    bad("period = \"6ms\"", "rate = 100", one);
    let title = "a `period` of 9000000 ns does not keep step with gates at `station:nic0`";
    bad("period = \"6ms\"", "period = \"9ms\"", title);
    bad(offset, "offset = \"6ms\"", "an `offset` beyond the `period`");
    let text = example(LIST);
    let gates = &text[text.find("[[ethernet.gates]]").unwrap()..text.find("[[flow]]").unwrap()];
    bad(gates, "", "`station:nic0` has no gates from which an `offset` counts");
    let hop = "[[flow.hop]]\nprocess = \"drive:drive\"\nby = \"wire\"\nwork = \"20us\"\n";
    let twice = text[text.find("name = \"commands\"").unwrap()..].split("[[flow]]").next().unwrap();
    let second = twice.replace("commands", "others").replace(offset, "");
    let both = format!("{hop}\n[[flow]]\n{second}");
    let text = text.replacen(hop, &both, 1);
    let found = parse_any(LIST, &text, |name| Ok((name.to_owned(), example(name)))).unwrap_err();
    let titles: Vec<&str> = found.items().iter().map(|item| item.title).collect();
    assert!(titles.contains(&"the socket of a flow with `offset` sends another flow, too"));
}

#[test]
fn a_flow_over_usb_is_in_step_with_no_gates() {
    const LIST: &str = "flow.toml";
    let text = example(LIST).replacen("period = ", "offset = \"1us\"\nperiod = ", 1);
    let found = parse_any(LIST, &text, |name| Ok((name.to_owned(), example(name)))).unwrap_err();
    let titles: Vec<&str> = found.items().iter().map(|item| item.title).collect();
    assert_eq!(titles, ["a flow with `offset` that does not go over Ethernet"]);
}

#[test]
fn mistakes_of_flows_over_ethernet_are_named() {
    let by = "by = \"control-wire\"";
    bad(by, "by = \"control-wires\"", "no cable is called `control-wires`");
    bad(by, "by = \"camera-wire\"", "`control` has no adapter at `camera-wire`");
    bad(by, &format!("{by}\nslots = 4"), "a hop over Ethernet with `slots`");
    bad(
        "from = \"control:control\"",
        "from = \"control:task\"",
        "`control:task` sends nothing over `control-wire`",
    );
    bad(
        "process = \"drive:drive\"",
        "process = \"drive:net\"",
        "`drive:net` has no socket where `command` sends",
    );
    let more = format!("{by}\n[[flow.hop]]\nprocess = \"drive:drive\"\n{by}");
    let found = parsed(&example("ethernet.toml").replacen(by, &more, 1)).unwrap_err();
    assert!(found.items().iter().any(|it| it.title == "a flow over Ethernet has one hop"));
}

proptest! {
    #[test]
    fn no_entry_or_end_makes_it_panic(text in "[S0-9a-fx: a-z]{0,24}") {
        let list = example("ethernet.toml");
        let _ = parsed(&list.replacen("control:nic0", &text, 1));
        let gates = format!("room = 16\n[[switch.gates]]\nport = 1\nentries = [\"{text}\"]\n");
        let _ = parsed(&list.replacen("room = 16 ", &gates, 1));
        let gates = format!("entries = [\"{text}\"]\nend = \"{text}\"\nguard = \"{text}\"");
        let text = example("ethernet-gates.toml");
        let _ = parsed(&text.replacen("entries = [\"S 40 1500us\", \"S 3f 1500us\"]", &gates, 1));
    }
}

#[test]
fn a_common_time_is_of_two_adapters() {
    const LIST: &str = "ethernet-time.toml";
    let found = |from: &str, to: &str| {
        let text = example(LIST);
        assert!(text.contains(from), "no {from}");
        let text = text.replacen(from, to, 1);
        parse_any(LIST, &text, |file| Ok((file.to_owned(), example(file))))
    };
    let Ok(Description::Several(hosts)) = found("", "") else { panic!("{LIST} is refused") };
    let time = hosts.ethernet[0].time.unwrap();
    assert_eq!(time.leads, WireEnd::Adapter { host: 0, adapter: 0 });
    let numbers = (time.read_ns, time.drift_ppm, time.wander_ppb, time.losses);
    assert_eq!(numbers, (2_000, 100, 20, 3));
    assert!(hosts.hosts.iter().all(|host| host.system.adapters[0].keeps_time));
    // Nothing comes to the station but the frames of the time.
    assert_eq!(hosts.hosts[0].system.adapters[0].traffic, Some((24, 16)));
    let bad = |from: &str, to: &str, title: &str| {
        let found = found(from, to).unwrap_err();
        let titles: Vec<&str> = found.items().iter().map(|item| item.title).collect();
        assert_eq!(titles, [title]);
        assert!(found.items()[0].line > 1 && !found.items()[0].help.is_empty());
    };
    bad("time = \"station:nic0\"", "time = \"station\"", "`station` is no adapter at this wire");
    bad("time_read = \"2us\"", "", "wire `wire` has no `time_read`");
    bad("time = \"station:nic0\"", "", "`time_read` says nothing here");
    let drift = "the clock of `drive` drifts by 100 ppm, and more than stated";
    let less = example(LIST).replacen("drift = \"100ppm\"", "drift = \"99ppm\"", 1);
    let less = less.replacen("time_losses", "time_drift = 99\ntime_losses", 1);
    let less = parse_any(LIST, &less, |file| Ok((file.to_owned(), example(file)))).unwrap_err();
    assert_eq!((less.items().len(), less.items()[0].title), (1, drift));
    let gated = example(LIST).replacen(
        "time_losses = 3",
        "time_losses = 3\n[[ethernet.gates]]\n\
        end = \"station:nic0\"\nguard = \"250us\"\nentries = [\"S ff 2ms\"]",
        1,
    );
    parse_any(LIST, &gated, |file| Ok((file.to_owned(), example(file)))).unwrap();
}

#[test]
fn a_switch_passes_no_common_time_on() {
    let keys = "delay = \"500ns\"\ntime = \"control:nic0\"\ntime_read = \"2us\"";
    let title = "the switch at `cabinet:1` passes no common time on";
    bad("delay = \"500ns\" ", keys, title);
}
