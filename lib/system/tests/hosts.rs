//! Files that list several hosts.

use diapason_system::{
    Cable, Description, Diagnostics, End, FlowWay, Hosts, Pulled, Socket, parse_any, parse_pulled,
};

/// A system with a USB controller, something in its third port, and no more than it needs.
const BOARD: &str = "[system]\nname = \"board\"\nclock = \"100MHz\"\n[[process]]\nname = \"p\"\n\
                     priority = 1\n[[device]]\nname = \"hpet\"\naddress = 0xfed00000\n\
                     size = \"4K\"\n[[device]]\nname = \"xhci\"\npci = \"0c0330\"\nsize = \"16K\"\n\
                     [[usb]]\nname = \"keys\"\non = \"xhci\"\nport = 3\nmodel = \"keyboard\"\n";
const BARE: &str = "[system]\nname = \"bare\"\n[[process]]\nname = \"p\"\npriority = 1\n";

fn find(file: &str) -> Result<(String, String), String> {
    match file {
        "board.toml" => Ok((format!("here/{file}"), BOARD.into())),
        "bare.toml" => Ok((format!("here/{file}"), BARE.into())),
        "wrong.toml" => Ok((format!("here/{file}"), BARE.replace("priority", "prioritee"))),
        "hosts.toml" => Ok((format!("here/{file}"), boards(""))),
        _ => Err("no such file".into()),
    }
}

fn parse(text: &str) -> Result<Description, Diagnostics> {
    parse_any("hosts.toml", text, find)
}

fn several(text: &str) -> Hosts {
    match parse(text) {
        Ok(Description::Several(hosts)) => hosts,
        other => panic!("{other:?}"),
    }
}

/// Two boards, `left` and `right`, in lines 1 to 6, and `more` from line 7.
fn boards(more: &str) -> String {
    let host = |name| format!("[[host]]\nname = \"{name}\"\nsystem = \"board.toml\"\n");
    host("left") + &host("right") + more
}

#[track_caller]
fn bad(text: &str, place: (usize, usize), title: &str, help: &str) {
    let found = parse(text).unwrap_err();
    let [item] = found.items()[..] else { panic!("{found}") };
    assert_eq!(((item.line, item.column), item.title, item.help), (place, title, help));
}

#[test]
fn hosts_have_names_descriptions_and_clocks() {
    let text = "[[host]]\nname = \"a\"\nsystem = \"board.toml\"\nclock = \"2GHz\"\n\
                [[host]]\nname = \"b\"\nsystem = \"board.toml\"\n\
                [[host]]\nname = \"c\"\nsystem = \"bare.toml\"\n";
    let hosts = several(text);
    let found: Vec<(&str, &str, u64)> = hosts
        .hosts
        .iter()
        .map(|host| (host.name.as_str(), host.system.name.as_str(), host.system.clock_hz))
        .collect();
    let expected =
        [("a", "board", 2_000_000_000), ("b", "board", 100_000_000), ("c", "bare", 1_000_000_000)];
    assert_eq!(found, expected);
    assert!(hosts.cables.is_empty());
}

#[test]
fn clocks_of_hosts_and_switches_run_apart_as_far_as_plans_count_with() {
    let drift = |value: &str| {
        let hosts = "board.toml\"\n".to_owned() + &format!("drift = \"{value}\"\n");
        boards("").replacen("board.toml\"\n", &hosts, 1)
            + &format!("[[switch]]\nname = \"s\"\nports = 2\ndrift = \"{value}\"\n")
    };
    for (value, ppm) in [("-100ppm", -100), ("100ppm", 100), ("7 ppm", 7)] {
        let list = several(&drift(value));
        let found = (list.hosts[0].drift_ppm, list.hosts[1].drift_ppm, list.switches[0].drift_ppm);
        assert_eq!(found, (ppm, 0, ppm));
    }
    let in_host = |value: &str| drift(value).split("[[switch]]").next().unwrap().to_owned();
    let help = "write it as in `drift = \"80ppm\"`";
    for value in ["80", "fast", "ppm", "1e2ppm", "99999999999ppm"] {
        bad(&in_host(value), (4, 9), &format!("`{value}` is not a number of millionths"), help);
    }
    let help = "write `-100ppm` to `100ppm`: plans count with clocks that keep within";
    for value in [101, -101, i32::MIN] {
        let title = format!("a clock that is {value} ppm wrong is no crystal's");
        bad(&in_host(&format!("{value}ppm")), (4, 9), &title, help);
    }
}

/// Returns two boards with a cable that is pulled at these times, in line 10.
fn with_pulled(times: &str) -> String {
    let ends = "ends = [\"left:xhci:1\", \"right:xhci:1\"]";
    boards(&format!("[[cable]]\nname = \"c\"\n{ends}\npulled = [{times}]\n"))
}

#[test]
fn a_cable_is_pulled_at_times_in_order() {
    let list = several(&with_pulled("\"1s 20ms\", \"1500ms 1us\""));
    let pulled = |at_ns, for_ns| Pulled { at_ns, for_ns };
    let times = [pulled(1_000_000_000, 20_000_000), pulled(1_500_000_000, 1_000)];
    assert_eq!(list.cables[0].pulled, times);
    let help = "write when, and for how long, as in `pulled = [\"2s 300ms\"]`";
    for text in ["1s", "", "1s 2s 3s", "now 1s", "1s 0ns", "1s -1s", "99999999999s 1s"] {
        let title = format!("`{text}` does not say when it is pulled");
        bad(&with_pulled(&format!("\"{text}\"")), (10, 11), &title, help);
    }
    let title = "`2s 1s` begins before the time before it is over";
    let text = with_pulled("\"1s 1s\", \"2s 1s\"");
    bad(&text, (10, 20), title, "write times in order, with pauses");
}

#[test]
fn a_command_line_pulls_a_cable_or_takes_the_power_of_a_host() {
    let mut list = several(&with_pulled("\"1s 20ms\""));
    let (what, time) = parse_pulled(&list, "1010ms unplug c 20ms").unwrap();
    list.pull(what, time);
    // Times that overlap are one.
    assert_eq!(list.cables[0].pulled, [Pulled { at_ns: 1_000_000_000, for_ns: 30_000_000 }]);
    assert_eq!(list.cables[0].pulled[0].words("c"), "1s unplug c 30ms");
    let (what, time) = parse_pulled(&list, "2s reboot right 5ms").unwrap();
    list.pull(what, time);
    let faults = &list.hosts[1].system.faults;
    assert_eq!((faults[0].at_ns, faults[0].arguments), (2_000_000_000, [5_000_000, 0]));
    let wrong = |text: &str, column: usize, title: &str| {
        let found = parse_pulled(&list, text).unwrap_err();
        let [item] = found.items()[..] else { panic!("{found}") };
        assert_eq!((item.column, item.title), (column, title), "{text}");
    };
    wrong("", 1, "the fault has no time");
    wrong("2s", 3, "the fault has no kind");
    wrong("2s stall c 1ms", 4, "a list of hosts has no fault `stall`");
    wrong("2s unplug d 1ms", 11, "no cable is called `d`");
    wrong("2s unplug left 1ms", 11, "no cable is called `left`");
    wrong("2s reboot c 1ms", 11, "no host is called `c`");
    wrong("2s unplug c", 12, "the fault has no `for`");
    wrong("2s unplug c 1ms 1", 17, "`1` is more than `unplug` asks for");
    wrong("soon unplug c 1ms", 1, "`soon` and `1ms` do not say when it is pulled");
}

#[test]
fn a_description_of_one_host_is_that() {
    assert!(matches!(parse(BOARD), Ok(Description::One(system)) if system.name == "board"));
    // A key that only one of the two kinds has decides the kind of a text.
    let both = format!("{BOARD}[[host]]\nname = \"a\"\nsystem = \"bare.toml\"\n");
    assert!(parse(&both).unwrap_err().items()[0].title.contains("unknown key `host`"));
}

#[test]
fn cables_join_ports() {
    let cable = "[[cable]]\nname = \"c\"\nends = [\"left:xhci:1\", \"right:xhci:15\"]\n\
                 [[cable]]\nname = \"d\"\nends = [\"right:xhci:2\", \"right:xhci:1\"]\n\
                 delay = \"20us\"\n";
    let end = |host, port| End { host, device: 1, socket: Socket::Port(port) };
    let expected = [
        Cable { name: "c".into(), ends: [end(0, 1), end(1, 15)], delay_ns: 1_000, pulled: vec![] },
        Cable { name: "d".into(), ends: [end(1, 2), end(1, 1)], delay_ns: 20_000, pulled: vec![] },
    ];
    assert_eq!(several(&boards(cable)).cables, expected);
}

#[test]
fn cables_join_ports_and_debug_capabilities() {
    let cable = |ends: &str| boards(&format!("[[cable]]\nname = \"c\"\nends = [{ends}]\n"));
    let hosts = several(&cable("\"left:xhci:1\", \"right:xhci:debug\""));
    let [Cable { ends: [one, other], .. }] = &hosts.cables[..] else { panic!("{hosts:?}") };
    assert_eq!((one.socket, other.socket), (Socket::Port(1), Socket::Debug));
    let title = "cable `c` has no port at either end";
    let help = "a debug capability is a device for a port of another host";
    bad(&cable("\"left:xhci:debug\", \"right:xhci:debug\""), (9, 8), title, help);
    let more = "[[cable]]\nname = \"d\"\nends = [\"left:xhci:2\", \"right:xhci:debug\"]\n";
    let two = cable("\"left:xhci:1\", \"right:xhci:debug\"") + more;
    let help = "a controller has one: make one of them a bridge, or turn it round";
    bad(&two, (12, 24), "the debug capability has two cables", help);
}

#[test]
fn wrong_hosts_are_refused_where_they_stand() {
    let help = "name a file, seen from the folder of this one";
    let text = "[[host]]\nname = \"a\"\nsystem = \"none.toml\"";
    bad(text, (3, 10), "cannot read `none.toml`: no such file", help);
    let help = "add `system = \"left.toml\"`, the file that describes it";
    bad("[[host]]\nname = \"a\"", (2, 8), "host `a` has no `system`", help);
    bad(
        "[[host]]\nname = \"a\"\nsystem = \"bare.toml\"\nclok = 1",
        (4, 1),
        "unknown key `clok` in [[host]]",
        "did you mean `clock`?",
    );
    let two = boards("").replace("right", "left");
    bad(&two, (5, 8), "two hosts are called `left`", "rename one of them");
    bad(
        "[[cable]]\nname = \"c\"\nends = []",
        (1, 1),
        "there is no host",
        "add `[[host]]` with `name = \"left\"` and `system = \"left.toml\"`",
    );
    let clock = "[[host]]\nname = \"a\"\nsystem = \"bare.toml\"\nclock = \"1kHz\"";
    let help = "write a frequency from `1MHz` to `10GHz`";
    bad(clock, (4, 9), "`clock` is out of range", help);
}

#[test]
fn a_list_of_hosts_cannot_name_a_list() {
    let text = "[[host]]\nname = \"a\"\nsystem = \"hosts.toml\"";
    let help = "name the description of one host, which has a table `[system]`";
    bad(text, (3, 10), "`hosts.toml` is a list of hosts itself", help);
}

/// Returns a cable whose target is `right`, in lines 7 to 9, and `more`.
fn with_target(more: &str) -> String {
    let ends = "ends = [\"left:xhci:1\", \"right:xhci:debug\"]\n";
    boards(&format!("[[cable]]\nname = \"c\"\n{ends}{more}"))
}

#[test]
fn a_network_may_have_a_leader_and_lists_written_by_hand() {
    let derived = several(&with_target(""));
    assert_eq!((derived.leader, &derived.hosts[0].depends), (None, &None));
    let lead = with_target("[network]\nleader = \"right\"\n");
    assert_eq!(several(&lead).leader, Some(1));
    let list = lead.replacen("board.toml\"", "board.toml\"\ndepends = [\"right\"]", 1);
    let list = list.replacen("\"right\"\nsystem", "\"right\"\nenable = false\nsystem", 1);
    let hosts = several(&list).hosts;
    assert_eq!((hosts[0].depends.clone(), hosts[0].enables), (Some(vec![1]), None));
    assert_eq!((hosts[1].depends.clone(), hosts[1].enables), (None, Some(false)));
}

#[test]
fn wrong_leaders_and_lists_are_refused_where_they_stand() {
    let network = |more: &str| with_target(&format!("[network]\n{more}"));
    let help = "name a host at whose debug capability a cable ends, or no leader";
    bad(&network("leader = \"left\""), (11, 10), "the leader `left` is no debug target", help);
    let help = "write one name, as in `leader = \"a\"`";
    let two = network("leader = [\"left\", \"right\"]");
    bad(&two, (11, 10), "`leader` names 2 hosts, and one leads", help);
    let help = "did you mean `right`?";
    bad(&network("leader = \"rigth\""), (11, 10), "no host is called `rigth`", help);
    let help = "there is `left` and `right`";
    bad(&network("leader = \"zzz\""), (11, 10), "no host is called `zzz`", help);
    let help = "did you mean `leader`?";
    bad(&network("ledaer = \"a\""), (11, 1), "unknown key `ledaer` in [network]", help);
    let two = network("[network]\n");
    let help = "a description has one `[network]`: write the keys of both in the first";
    bad(&two, (11, 2), "`[network]` stands here a second time", help);
    let help = "write `[network]` with single brackets: there is one";
    bad(&with_target("[[network]]\n"), (10, 1), "`network` is no table", help);
    let list = |names: &str| {
        let depends = format!("board.toml\"\ndepends = [{names}]");
        with_target("").replacen("board.toml\"", &depends, 1)
    };
    bad(&list("\"left\""), (4, 12), "`left` is on its own list", "remove it");
    let twice = list("\"right\", \"right\"");
    bad(&twice, (4, 21), "`right` is on this list twice", "remove one of them");
    bad(&list("\"rigth\""), (4, 12), "no host is called `rigth`", "did you mean `right`?");
}

#[test]
fn sixty_five_hosts_are_too_many() {
    let host = |n: usize| format!("[[host]]\nname = \"h{n}\"\nsystem = \"bare.toml\"\n");
    let text: String = (0..65).map(host).collect();
    bad(&text, (194, 8), "65 hosts, the most is 64", "remove 1 of them");
}

#[test]
fn a_description_that_is_wrong_is_refused_in_its_own_file() {
    let found = parse("[[host]]\nname = \"a\"\nsystem = \"wrong.toml\"").unwrap_err();
    assert!(found.plain().contains("here/wrong.toml:5:1"), "{found}");
}

#[test]
fn wrong_cables_are_refused_where_they_stand() {
    let ends = |ends: &str| boards(&format!("[[cable]]\nname = \"c\"\nends = [{ends}]\n"));
    let one = |end: &str, title: &str, help: &str| {
        bad(&ends(&format!("\"left:xhci:1\", \"{end}\"")), (9, 24), title, help);
    };
    let form = "write host, controller and port as in `\"left:xhci:1\"`";
    one("right", "`right` is not the end of a cable", form);
    one("rigth:xhci:1", "no host is called `rigth`", "did you mean `right`?");
    one("zzz:xhci:1", "no host is called `zzz`", "there is left, right");
    let title = "`board.toml` has no USB controller called `hpet`";
    one("right:hpet:1", title, "did you mean `xhci`?");
    let port = "write a number from 1 to 15, or `debug`";
    one("right:xhci:16", "a controller has no port `16`", port);
    one("right:xhci:-1", "a controller has no port `-1`", port);
    let own = "give each a port of its own";
    one("right:xhci:3", "port 3 of `xhci` has `keys` in it", own);
    one("left:xhci:1", "port 1 has two cables", own);
    let example = "write `ends = [\"left:xhci:1\", \"right:xhci:1\"]`";
    bad(&ends("\"left:xhci:1\""), (9, 8), "cable `c` has 1 end, and a cable has 2", example);
    let help = "add `ends = [\"left:xhci:1\", \"right:xhci:1\"]`";
    bad(&boards("[[cable]]\nname = \"c\"\n"), (8, 8), "cable `c` has no `ends`", help);
    let slow = ends("\"left:xhci:1\", \"right:xhci:1\"") + "delay = \"1s\"\n";
    bad(&slow, (10, 9), "`delay` is out of range", "write a time from `1ns` to `1ms`");
    let mixed = boards("").replacen("board", "bare", 1);
    let text = mixed + "[[cable]]\nname = \"c\"\nends = [\"left:xhci:1\", \"right:xhci:1\"]\n";
    let title = "`bare.toml` has no USB controller called `xhci`";
    bad(&text, (9, 9), title, "declare a `[[device]]` with `pci = \"0c0330\"` in `bare.toml`");
}

proptest::proptest! {
    /// Every text is hosts, or is refused with a place and a remedy.
    #[test]
    fn any_text_is_hosts_or_refused(at in 0usize..300, cut in 0usize..12, new in ".{0,6}") {
        let cable = "[[cable]]\nname = \"c\"\nends = [\"left:xhci:1\", \"right:xhci:2\"]\n";
        let characters: Vec<char> = boards(cable).chars().collect();
        let at = at.min(characters.len());
        let end = (at + cut).min(characters.len());
        let mut text: String = characters[..at].iter().collect();
        text += &new;
        text.extend(&characters[end..]);
        if let Err(found) = parse(&text) {
            let items = found.items();
            proptest::prop_assert!(!items.is_empty());
            proptest::prop_assert!(items.iter().all(|item| !item.help.is_empty()));
        }
    }
}

/// Returns a list of the two hosts of [`boards`], each with a process on a VCPU, and a cable.
fn flowing(more: &str) -> Result<Description, Diagnostics> {
    let find = |file: &str| {
        let vcpu = "[[vcpu]]\nname = \"v\"\nbudget = \"1ms\"\nperiod = \"10ms\"\n[[process]]\n\
                    name = \"on\"\npriority = 1\nvcpu = \"v\"\n";
        Ok((file.to_owned(), BOARD.to_owned() + vcpu))
    };
    let cable = "[[cable]]\nname = \"c\"\nends = [\"left:xhci:1\", \"right:xhci:1\"]\n";
    parse_any("hosts.toml", &(boards(cable) + more), find)
}

const FLOW: &str = "[[flow]]\nname = \"f\"\nfrom = \"left:on\"\nbytes = 64\nperiod = \"2ms\"\n\
    work = \"3us\"\n[[flow.hop]]\nprocess = \"right:on\"\nby = \"c\"\nslots = 4\n";

#[test]
fn a_flow_goes_from_program_to_program() {
    let Ok(Description::Several(hosts)) = flowing(FLOW) else { panic!("{:?}", flowing(FLOW)) };
    let [flow] = &hosts.flows[..] else { panic!("{:?}", hosts.flows) };
    let stops: Vec<(usize, u16, Option<u64>)> =
        flow.stops().map(|stop| (stop.host, stop.process, stop.work_ns)).collect();
    assert_eq!(stops, [(0, 1, Some(3_000)), (1, 1, None)]);
    assert_eq!((flow.bytes, flow.hops[0].way, flow.hops[0].slots), (64, FlowWay::Cable(0), 4));
    assert_eq!(flow.contract.per.0, 2_000_000);
}

/// A host with two cores. Its controller is on the second one.
const CREW: &str = "[system]\nname = \"crew\"\ncores = 2\n[[process]]\nname = \"first\"\n\
                    priority = 1\nvcpu = \"u\"\n[[process]]\nname = \"on\"\npriority = 1\n\
                    core = 1\nvcpu = \"v\"\nuses = [\"xhci\"]\n[[device]]\nname = \"xhci\"\n\
                    pci = \"0c0330\"\nsize = \"16K\"\n[[vcpu]]\nname = \"u\"\nbudget = \"1ms\"\n\
                    period = \"10ms\"\n[[vcpu]]\nname = \"v\"\nbudget = \"1ms\"\n\
                    period = \"10ms\"\n";

/// Two such hosts with a cable between them, and `more`.
fn crews(more: &str) -> Result<Description, Diagnostics> {
    let host =
        |name| format!("[[host]]\nname = \"{name}\"\nsystem = \"crew.toml\"\nclock = \"2GHz\"\n");
    let cable = "[[cable]]\nname = \"c\"\nends = [\"left:xhci:1\", \"right:xhci:1\"]\n";
    let text = host("left") + &host("right") + cable + more;
    parse_any("hosts.toml", &text, |file| Ok((file.to_owned(), CREW.to_owned())))
}

#[test]
fn a_host_may_have_several_cores() {
    let Ok(Description::Several(hosts)) = crews(FLOW) else { panic!("{:?}", crews(FLOW)) };
    let cores: Vec<(usize, u16, u64)> =
        hosts.systems().map(|(host, it)| (host, it.core, it.clock_hz)).collect();
    // The core with the ends of cables stands for its host.
    let clock = 2_000_000_000;
    assert_eq!(cores, [(0, 1, clock), (1, 1, clock), (0, 0, clock), (1, 0, clock)]);
    let names: Vec<String> = hosts.named().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["left", "right", "left core 0", "right core 0"]);
    assert_eq!(hosts.others(), [0, 1]);
    assert_eq!(hosts.flows[0].stops().map(|stop| stop.process).collect::<Vec<_>>(), [0, 0]);
}

#[test]
fn a_flow_ends_on_the_core_of_the_usb_controller() {
    let found = crews(&FLOW.replace("right:on", "right:first")).unwrap_err();
    let [item] = found.items()[..] else { panic!("{found}") };
    assert_eq!(item.title, "`right:first` is in a flow and on core 0");
    let help = "write `core = 1` for it in `crew.toml`, the core of the USB server: the semaphores \
                of a link reach no other core";
    assert_eq!(item.help, help);
}

#[test]
fn mistakes_of_a_flow_are_found_where_they_are() {
    let bad = |from: &str, to: &str, (line, column): (usize, usize), title: &str, help: &str| {
        assert!(FLOW.contains(from), "{from}");
        let found = flowing(&FLOW.replace(from, to)).unwrap_err();
        let [item] = found.items()[..] else { panic!("{found}") };
        let place = (line, column);
        assert_eq!(((item.line, item.column), item.title, item.help), (place, title, help));
    };
    bad(
        "left:on",
        "left",
        (12, 8),
        "`left` is no program of a host",
        "write host and process as in `\"left:sampler\"`",
    );
    bad("left:on", "lift:on", (12, 8), "no host is called `lift`", "did you mean `left`?");
    bad(
        "left:on",
        "left:no",
        (12, 8),
        "`board.toml` has no process called `no`",
        "did you mean `on`?",
    );
    bad(
        "left:on",
        "left:p",
        (12, 8),
        "`left:p` is in a flow and has no VCPU",
        "add `vcpu = \"…\"` to the process in `board.toml`",
    );
    bad("by = \"c\"", "by = \"d\"", (18, 6), "no cable is called `d`", "there is `c`");
    bad(
        "right:on",
        "left:on",
        (17, 11),
        "a hop from a host to itself",
        "name a program of the host at the other end of the cable, or a `[[mailbox]]` of this host",
    );
}

#[test]
fn two_flows_do_not_end_at_one_program() {
    let found = flowing(&format!("{FLOW}{}", FLOW.replace("\"f\"", "\"g\""))).unwrap_err();
    assert_eq!(found.items()[0].title, "two flows end at `right:on`");
}
