//! Bills of flows over Ethernet: what they count, and what is refused where.

use diapason_contract::ethernet::{GATES_SETTING, GateTerms};
use diapason_plan::{FlowBill, FlowStage, NetworkPlan, Plan};
use diapason_system::{Description, Hosts, parse_any};
use diapason_tsn::CreditSpan;
use std::fs;
use std::path::PathBuf;

fn example(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    fs::read_to_string(path).unwrap()
}

const LIST: &str = "ethernet.toml";

/// Returns the example with one text for another in some files.
fn with(changes: &[(&str, &str, &str)]) -> Hosts {
    let read = |file: &str| {
        let own = changes.iter().filter(|(name, _, _)| *name == file);
        own.fold(example(file), |text, (_, from, to)| {
            assert!(text.contains(from), "{file} has no {from}");
            text.replace(from, to)
        })
    };
    match parse_any(LIST, &read(LIST), |file| Ok((file.to_owned(), read(file)))) {
        Ok(Description::Several(hosts)) => hosts,
        other => panic!("{other:?}"),
    }
}

/// Returns the bills of `commands` and `pictures`.
fn bills(changes: &[(&str, &str, &str)]) -> [FlowBill; 2] {
    let hosts = with(changes);
    let plan = NetworkPlan::of(&hosts);
    assert!(plan.holds(), "{:?}", plan.refused);
    for host in &hosts.hosts {
        assert!(Plan::of(&host.system).holds(), "{}", host.name);
    }
    [0, 1].map(|flow| plan.flows[flow].bill.clone().unwrap())
}

/// Returns the titles of what is refused of flows.
fn refused(changes: &[(&str, &str, &str)]) -> Vec<String> {
    let plan = NetworkPlan::of(&with(changes));
    plan.refused.iter().flat_map(|it| it.items()).map(|it| it.title.to_owned()).collect()
}

#[track_caller]
fn refuses(changes: &[(&str, &str, &str)], title: &str) {
    let found = refused(changes);
    assert!(found.iter().any(|it| it == title), "{found:#?}");
}

fn at(bill: &FlowBill, stage: FlowStage) -> u64 {
    bill.items.iter().filter(|item| item.stage == stage).map(|item| item.value.0).sum()
}

#[test]
fn a_bill_has_every_stage_and_adds_up() {
    let [commands, pictures] = bills(&[]);
    let stages: Vec<&str> = commands.items.iter().map(|item| item.stage.word()).collect();
    let expected = ["program", "sends", "wire", "port", "told", "receives", "program", "clocks"];
    assert_eq!(stages, expected);
    for bill in [&commands, &pictures] {
        assert_eq!(bill.items.iter().map(|item| item.value.0).sum::<u64>(), bill.total.0);
    }
    // 134 bytes with preamble, tag, checksum and gap at 8 ns; then 500 ns of wire.
    assert_eq!(at(&commands, FlowStage::Wire), 134 * 8 + 500);
    // The longest frame of the camera is in the way once; the frame itself begins after that.
    assert_eq!(at(&commands, FlowStage::Port), 2_000 + 1_470 * 8 + 500);
}

#[test]
fn priorities_decide_who_waits() {
    let same = &[("ethernet/camera.toml", "priority = 1 ", "priority = 6 ")];
    let [above, below] = bills(&[]);
    let [equal, pictures] = bills(same);
    assert!(at(&equal, FlowStage::Port) > at(&above, FlowStage::Port));
    assert_eq!(at(&pictures, FlowStage::Port), at(&below, FlowStage::Port));
    // A whole burst of the camera is before a command then, and what may be late of it.
    assert!(at(&equal, FlowStage::Port) >= 2_000 + 4 * 1_470 * 8 + 500);
}

#[test]
fn gates_let_frames_wait_for_their_window() {
    let gates = "ports = 4\n[[switch.gates]]\nport = 2\nentries = [\"S 40 62us\", \"S 3f 63us\"]\n\
                 [[switch]]\nname = \"unused\"\nports = 2\n";
    let [open, _] = bills(&[]);
    let [gated, _] = bills(&[(LIST, "ports = 4", gates), (LIST, "cabinet", "cabinet")]);
    // Just too late for the window: the rest of the cycle, without another frame in the way.
    let late = 63_000 + 134 * 8 - 1;
    assert_eq!(at(&gated, FlowStage::Port), 2_000 + late + 500);
    assert!(gated.total > open.total);
    let never = gates.replace("S 40 62us", "S 00 62us");
    let title = refused(&[(LIST, "ports = 4", &never)]);
    assert!(title[0].starts_with("`commands` has no bound: at cabinet:2: the longest window"));
}

#[test]
fn tiny_queues_are_refused() {
    let place = "4 frames may wait at `cabinet:2`, and a queue has room for 3";
    refuses(&[(LIST, "room = 16", "room = 3")], &format!("`pictures`: {place}"));
    assert!(refused(&[(LIST, "room = 16", "room = 4")]).is_empty());
}

#[test]
fn more_than_a_wire_carries_is_refused() {
    let slow = ("ethernet/drive.toml", "02:00:00:00:00:02\"", "02:00:00:00:00:02\"\nspeed = 10");
    let found = refused(&[slow]);
    assert!(found[0].starts_with("`commands` has no bound: at cabinet:2: class 1 asks for"));
}

#[test]
fn senders_without_a_flow_are_refused_if_they_are_in_the_way() {
    let open = "[[flow]]\nname = \"pictures\"";
    let list = example(LIST);
    let pictures = &list[list.find(open).unwrap()..];
    let alone = (LIST, pictures, "");
    let of = |priority| {
        format!(
            "`commands` has no bound: `camera:camera` may send frames of priority {priority} on \
             its way, and nothing bounds them"
        )
    };
    // They come to the receiver, whatever their priority.
    refuses(&[alone], &of(1));
    // To somebody else they are not in the way, unless they go before.
    let drive = "02:00:00:00:00:02";
    let away = ("ethernet/camera.toml", drive, "02:00:00:00:00:01");
    assert_eq!(refused(&[alone, away]), Vec::<String>::new());
    // A frame to all is.
    let all = ("ethernet/camera.toml", drive, "ff:ff:ff:ff:ff:ff");
    refuses(&[alone, all], &of(1));
    let urgent = ("ethernet/camera.toml", "priority = 1 ", "priority = 7 ");
    refuses(&[alone, all, urgent], &of(7));
}

#[test]
fn a_stranger_between_two_switches_counts_by_its_priority() {
    let second = "[[switch]]\nname = \"far\"\nports = 4\n\n[[ethernet]]\nname = \"trunk\"\n\
                  ends = [\"cabinet:4\", \"far:1\"]\n\n[[host]]\nname = \"other\"\n\
                  system = \"ethernet/other.toml\"\n\n[[ethernet]]\nname = \"other-wire\"\n\
                  ends = [\"other:nic0\", \"far:3\"]\n\n[[ethernet]]\nname = \"control-wire\"";
    let list = example(LIST);
    let pictures = &list[list.find("[[flow]]\nname = \"pictures\"").unwrap()..];
    let text = list
        .replace(pictures, "")
        .replace("[[ethernet]]\nname = \"control-wire\"", second)
        .replace("\"cabinet:2\"", "\"far:2\"");
    let planned = |priority: &str| {
        let find = |file: &str| {
            let text = match file {
                "ethernet/other.toml" => example("ethernet/control.toml")
                    .replace("02:00:00:00:00:01", "02:00:00:00:00:09"),
                "ethernet/camera.toml" => example(file)
                    .replace("02:00:00:00:00:02", "02:00:00:00:00:09")
                    .replace("priority = 1 ", priority),
                _ => example(file),
            };
            Ok((file.to_owned(), text))
        };
        let Ok(Description::Several(hosts)) = parse_any(LIST, &text, find) else { panic!() };
        NetworkPlan::of(&hosts)
    };
    // The controller `other` sends to the drive without a flow.
    let plan = planned("priority = 1 ");
    let titles: Vec<&str> =
        plan.refused.iter().flat_map(|it| it.items()).map(|it| it.title).collect();
    assert_eq!(titles.len(), 1);
    assert!(titles[0].contains("`other:command` may send frames of priority 6"), "{titles:?}");
}

#[test]
fn what_comes_must_be_in_the_contract_of_the_receiver() {
    let drive = "ethernet/drive.toml";
    let period = |text| [(drive, "port = 5000", text)];
    let title = "`commands` has no bound: more comes to `drive:drive` than its contract says";
    refuses(&period("port = 5000\nperiod = \"1ms\"\nburst = 4"), title);
    refuses(&period("port = 5000\nperiod = \"999us\""), title);
    assert!(refused(&period("port = 5000\nperiod = \"999us\"\nburst = 2")).is_empty());
    let rate = |text| [(drive, "mac = \"02:00:00:00:00:02\"", text)];
    let title = "`commands` has no bound: more frames come to the adapter of `drive:drive` than \
                 its `rate` says";
    refuses(&rate("mac = \"02:00:00:00:00:02\"\nrate = 2000\nburst = 20"), title);
    refuses(&rate("mac = \"02:00:00:00:00:02\"\nrate = 2002\nburst = 2"), title);
    assert!(refused(&rate("mac = \"02:00:00:00:00:02\"\nrate = 2002\nburst = 9")).is_empty());
    let silent = [(LIST, "latency = \"3ms\"", "")];
    let title = "`commands` has no bound: nothing says how often datagrams come to `drive:drive`";
    refuses(&silent, title);
}

/// `netd` refuses longer datagrams, so no program takes more of a wire than the bills count.
#[test]
fn no_socket_sends_longer_datagrams_than_its_flow_has() {
    let bytes = |changes: &[(&str, &str, &str)]| {
        let hosts = with(changes);
        let control = hosts.hosts.iter().find(|host| host.name == "control").unwrap();
        control.system.sockets[0].bytes
    };
    assert_eq!(bytes(&[]), 64);
    let said = ("ethernet/control.toml", "port = 4000", "port = 4000\nbytes = 32");
    assert_eq!(bytes(&[said]), 32);
    assert_eq!(bytes(&[(LIST, "bytes = 64 ", "bytes = 100 ")]), 100);
}

#[test]
fn what_a_sender_needs_is_asked_for() {
    let control = "ethernet/control.toml";
    let found = refused(&[(control, "name = \"netd.send.frame\"", "name = \"unused\"")]);
    assert!(found[0].contains("netd.send.frame"), "{found:?}");
    let slow =
        "`commands` has no bound: `control:net` cannot keep up with the frames that it sends";
    refuses(&[(control, "worst = \"3us\"", "worst = \"900us\"")], slow);
    let bytes = "`commands` has no bound: its datagrams have 64 bytes, and `control:command` sends \
                 32";
    refuses(&[(control, "port = 4000", "port = 4000\nbytes = 32")], bytes);
    let burst = [(LIST, "burst = 4 ", "burst = 9 ")];
    refuses(&burst, "`pictures`: 11 messages may be under way from `camera:net`, which keeps 8");
    let late = [(LIST, "latency = \"3ms\"", "latency = \"1ms\"")];
    assert!(refused(&late)[0].starts_with("messages of `commands` may take"));
}

const GATED: &str = "ethernet-gates.toml";

/// Returns the plan of the example with gates at an adapter, with some changes.
fn gated(changes: &[(&str, &str, &str)]) -> NetworkPlan {
    planned(GATED, changes)
}

/// Returns the plan of an example with one text for another in some files.
fn planned(list: &str, changes: &[(&str, &str, &str)]) -> NetworkPlan {
    let read = |file: &str| {
        let own = changes.iter().filter(|(name, _, _)| *name == file);
        own.fold(example(file), |text, (_, from, to)| {
            assert!(text.contains(from), "{file} has no {from}");
            text.replace(from, to)
        })
    };
    match parse_any(list, &read(list), |file| Ok((file.to_owned(), read(file)))) {
        Ok(Description::Several(hosts)) => NetworkPlan::of(&hosts),
        other => panic!("{other:?}"),
    }
}

const CREDIT: &str = "ethernet-credit.toml";
/// The credit of the example.
const SLOPE: &str = "[[switch.credit]]\nport = 3\npriority = 1                   # of pictures\n\
                     idle_slope = 15000             # kbit/s. Pictures need 11763\n";

#[test]
fn credit_bounds_what_goes_before_lower_priorities() {
    let own = planned(CREDIT, &[]);
    assert_eq!(titles(&own), Vec::<String>::new());
    let port = |plan: &NetworkPlan, flow: usize| {
        let bill = plan.flows[flow].bill.as_ref().unwrap();
        let mut ports = bill.items.iter().filter(|it| it.name == "cabinet:3");
        ports.next().unwrap().value.0
    };
    let strict = planned(CREDIT, &[(CREDIT, SLOPE, "")]);
    // A picture takes 117.6 us, and its credit is back after 784 us.
    let (picture, command) = (1_470 * 80, 134 * 80);
    assert!(port(&strict, 0) > 2_000 + 4 * picture + command);
    assert!(port(&own, 0) < 2_000 + 2 * picture + command);
    assert!(port(&own, 1) > 2_000 + 3 * 784_000 + picture);
    // A command is in the way for 10.72 us and 1 ns, at 15 Mbit/s; a picture at the other 85.
    let found = &own.credits[0];
    assert_eq!((own.credits.len(), found.send_kbit(), found.is_used), (1, 85_000, true));
    assert_eq!(found.span, Some(CreditSpan { most: 21, least: -1_250 }));
    assert_eq!(strict.credits, []);
}

#[test]
fn credit_that_does_not_help_is_refused() {
    let first = |slope: &str| titles(&planned(CREDIT, &[(CREDIT, SLOPE, slope)]));
    let credit = |priority: u8, slope: u64| {
        format!("[[switch.credit]]\nport = 3\npriority = {priority}\nidle_slope = {slope}\n")
    };
    let poor = "`pictures` has no bound: at cabinet:3: class 1 asks for 11763 kbit/s, and its idle \
                slope is 11762";
    assert_eq!(first(&credit(1, 11_762))[1], poor);
    let unused = format!("{SLOPE}\n{}", credit(5, 9));
    assert_eq!(first(&unused), ["no frames of priority 5 leave `cabinet:3`"]);
    // Pictures have no credit here, and go before commands.
    let below = "`commands` has no bound: at cabinet:3: the idle slope of class 0 and what classes \
                 above it ask for come to 1017629 ppm of the link";
    assert_eq!(first(&credit(0, 90_000))[0], below);
    assert_eq!(first(&credit(0, 80_000)), Vec::<String>::new());
    let gates = "[[switch.gates]]\nport = 3\nentries = [\"S ff 1ms\", \"S fd 1ms\"]\n";
    let closes = "`commands` has no bound: at cabinet:3: class 0 has an idle slope, and the gate \
                  of a class above it closes";
    assert_eq!(first(&format!("{}{gates}", credit(0, 80_000)))[0], closes);
    // The gate of a class below may close.
    let gates = "[[switch.gates]]\nport = 3\nentries = [\"S ff 1ms\", \"S fe 100us\"]\n";
    assert_eq!(first(&format!("{SLOPE}{gates}")), Vec::<String>::new());
}

const PACED: &str = "ethernet-credit-adapter.toml";
/// The credit of the example.
const PACED_SLOPE: &str = "[[ethernet.credit]]            # in the words of cbs\n\
                           end = \"station:nic0\"\npriority = 5                   # of pictures\n\
                           idle_slope = 400000            # kbit/s of the wire's time: a frame \
                           keeps it for two guards more\n";

#[test]
fn credit_of_an_adapter_lets_commands_between_pictures() {
    let own = planned(PACED, &[]);
    assert_eq!(titles(&own), Vec::<String>::new());
    let wire = |plan: &NetworkPlan, flow: usize| {
        at(plan.flows[flow].bill.as_ref().unwrap(), FlowStage::Wire)
    };
    let later = (PACED, "latency = \"10ms\"", "latency = \"20ms\"");
    let strict = planned(PACED, &[later, (PACED, PACED_SLOPE, "")]);
    // A frame keeps the wire for its own time and two guards.
    let (picture, command) = (1_470 * 8 + 1_360_000, 134 * 8 + 1_360_000);
    assert!(wire(&strict, 0) > 4 * picture + command);
    assert!(wire(&own, 0) < 3 * picture + command);
    // A picture at 0.4 of the wire's time has to wait for the credit of three.
    assert!(wire(&own, 1) > 3 * picture * 5 / 2 + picture);
    let found = &own.credits[0];
    assert_eq!((found.send_kbit(), found.is_used), (600_000, true));
    // A command is in the way. Below: 0.6 of a picture, and what is gained in a guard.
    let most = (i64::try_from(command).unwrap() * 4 + 1) / 80;
    let least = -((i64::try_from(picture).unwrap() * 6 + 680_000 * 4) / 80);
    assert!(found.span.is_some_and(|it| it.most - most <= 2 && least - it.least <= 1));
}

#[test]
fn credit_of_an_adapter_is_told_its_server_and_wakes_it_up() {
    let text = |changes: &str| example(PACED).replace("guard = \"680us\"", changes);
    let parsed = |text: String| {
        let read = |file: &str| Ok((file.to_owned(), example(file)));
        match parse_any(PACED, &text, read) {
            Ok(Description::Several(hosts)) => hosts,
            other => panic!("{other:?}"),
        }
    };
    let mut hosts = parsed(example(PACED));
    NetworkPlan::of(&hosts).instruct(&mut hosts);
    let mut processes = hosts.hosts[0].system.processes.iter();
    let server = processes.find(|it| it.program == "netd").unwrap();
    let terms = GateTerms::of(server.setting(GATES_SETTING)).unwrap();
    assert!(terms.credits().eq([(5, 400_000)]));
    assert!(terms.entries().eq([(0xff, 1_000_000)]));
    // It looks once more for each frame that pays, so it needs a longer guard.
    let needed = |text: String| {
        let found = titles(&NetworkPlan::of(&parsed(text))).swap_remove(0);
        let rest = found.split_once("may take ").unwrap().1;
        rest.split_once(" us").unwrap().0.parse::<f64>().unwrap()
    };
    let short = text("guard = \"100us\"");
    assert!(needed(short.clone()) > needed(short.replace(PACED_SLOPE, "")));
}

#[test]
fn credit_of_an_adapter_that_does_not_help_is_refused() {
    let with = |from: &str, to: &str| titles(&planned(PACED, &[(PACED, from, to)]));
    let poor = "`commands` has no bound: at station:nic0: class 5 asks for 343026 kbit/s, and its \
                idle slope is 300000";
    assert_eq!(with("idle_slope = 400000", "idle_slope = 300000")[0], poor);
    let unused = with("priority = 5 ", "priority = 4 ");
    assert!(unused.contains(&"no frames of priority 4 leave `station:nic0`".to_owned()));
}

fn titles(plan: &NetworkPlan) -> Vec<String> {
    plan.refused.iter().flat_map(|it| it.items()).map(|it| it.title.to_owned()).collect()
}

#[test]
fn gates_of_an_adapter_are_the_first_hop() {
    let plan = gated(&[]);
    assert_eq!(titles(&plan), Vec::<String>::new());
    let wire = |plan: &NetworkPlan, flow: usize| {
        at(plan.flows[flow].bill.as_ref().unwrap(), FlowStage::Wire)
    };
    // Just too late for the window, two guards before its end: that, the closed time, and two
    // guards of its own until it begins.
    let guard = 250_000;
    let late = 2 * guard + 134 * 8 - 1 + 1_500_000;
    assert_eq!(wire(&plan, 0), late + 2 * guard + 500);
    // A window that is longer by the time of others shortens the wait of its class.
    let longer = ("entries = [\"S 40 1500us\", \"S 3f", "entries = [\"S 40 1900us\", \"S 3f");
    let other = gated(&[(GATED, longer.0, longer.1), (GATED, "1500us\"]", "1100us\"]")]);
    assert!(wire(&other, 0) < wire(&plan, 0) && wire(&other, 1) > wire(&plan, 1));
}

#[test]
fn what_gates_of_an_adapter_cannot_keep_is_refused() {
    let first = |changes: &[(&str, &str, &str)]| titles(&gated(changes)).swap_remove(0);
    let guard = "guard = \"250us\"";
    let found = first(&[(GATED, guard, "guard = \"60us\"")]);
    assert!(found.starts_with("`commands` has no bound: a frame may take "), "{found}");
    assert!(found.contains("to the wire at `station:nic0`, and the `guard`"), "{found}");
    let short = "`commands` has no bound: at station:nic0: the longest window of class 6 lasts \
                 501000 ns, and a frame with what may delay it there 501072 ns";
    assert_eq!(first(&[(GATED, "S 40 1500us", "S 40 501us")]), short);
    let never = first(&[(GATED, "S 40 1500us", "S 80 1500us")]);
    assert!(never.contains("the longest window of class 6 lasts 0 ns"), "{never}");
    let much = first(&[(GATED, "period = \"2ms\"", "period = \"1ms\"")]);
    assert!(much.contains("at station:nic0: class 6 asks for"), "{much}");
    let work = ("ethernet/station.toml", "name = \"netd.send.gates\"", "name = \"unused\"");
    assert!(first(&[work]).contains("netd.send.gates"));
    // The guard counts with all that the server does.
    let slow = first(&[(
        "ethernet/station.toml",
        "worst = \"2us\"\n\n[[work]]",
        "worst = \"40us\"\n\n[[work]]",
    )]);
    assert!(slow.contains("to the wire at `station:nic0`"), "{slow}");
}

#[test]
fn the_server_of_gates_is_told_them() {
    let hosts = parse_any(GATED, &example(GATED), |file| Ok((file.to_owned(), example(file))));
    let Ok(Description::Several(mut hosts)) = hosts else { panic!("{hosts:?}") };
    NetworkPlan::of(&hosts).instruct(&mut hosts);
    let told = |host: usize| {
        let mut processes = hosts.hosts[host].system.processes.iter();
        processes.find(|it| it.program == "netd").unwrap().setting(GATES_SETTING)
    };
    let terms = GateTerms::of(told(0)).unwrap();
    assert_eq!((terms.guard_ns, terms.base_ns, terms.mbit), (250_000, 0, 1_000));
    assert!(terms.entries().eq([(0x40, 1_500_000), (0x3f, 1_500_000)]));
    assert_eq!(told(1), &[] as &[u64]);
}
