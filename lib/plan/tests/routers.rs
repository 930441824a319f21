//! Routers on the ways of flows: what they are told, what they count, and what they cannot carry.

use diapason_abi::Nanos;
use diapason_contract::link::{LABEL, LONGEST};
use diapason_contract::routes::{Gate, LinkRoute, MEMORY, OWN, ROUTES, RouterMemory};
use diapason_plan::{FlowStage, NetworkPlan};
use diapason_system::{Description, Hosts, parse_any};
use std::fs;
use std::path::PathBuf;

fn example(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    fs::read_to_string(path).unwrap()
}

/// Returns the list `examples/star.toml`, with one text for another in one of its files.
fn star(file: &str, from: &str, to: &str) -> Hosts {
    let changed = |name: &str| {
        let text = example(name);
        if name != file {
            return text;
        }
        assert!(text.contains(from), "{file} has no {from}");
        text.replace(from, to)
    };
    let find = |name: &str| Ok((name.to_owned(), changed(name)));
    match parse_any("star.toml", &changed("star.toml"), find) {
        Ok(Description::Several(hosts)) => hosts,
        other => panic!("{other:?}"),
    }
}

/// Returns the titles of all refusals.
fn refusals(hosts: &Hosts) -> Vec<String> {
    let plan = NetworkPlan::of(hosts);
    let items = plan.refused.iter().flat_map(|found| found.items());
    items.map(|item| item.title.to_owned()).collect()
}

fn router(hosts: &Hosts) -> &diapason_system::ProcessSpec {
    let host = hosts.hosts.iter().find(|host| host.name == "centre").unwrap();
    host.system.processes.iter().find(|it| it.name == "router").unwrap()
}

/// Every flow passes the router out and back, with a contract that is as late as its bill says.
#[test]
fn a_router_is_told_its_table() {
    let mut hosts = star("star.toml", "16ms", "16ms");
    let plan = NetworkPlan::of(&hosts);
    assert!(plan.holds(), "{:?}", plan.refused);
    plan.instruct(&mut hosts);
    let told = router(&hosts);
    let table: Vec<LinkRoute> = LinkRoute::all(told.setting(ROUTES)).collect();
    let ways: Vec<(Gate, u8, Gate)> = table.iter().map(|it| (it.from, it.label, it.to)).collect();
    let links = [(0, 1, 2), (2, 1, 0), (1, 2, 2), (2, 2, 1)];
    let links = links.map(|(from, label, to)| (Gate::Link(from), label, Gate::Link(to)));
    assert_eq!(ways, links);
    let memory = RouterMemory::of(told.setting(MEMORY)[0]);
    assert_eq!(memory, RouterMemory { bytes: 1024, own: 0, slots: [4, 4, 4, 0] });
    for (at, label) in [("left", 1), ("up", 2)] {
        let host = hosts.hosts.iter().find(|host| host.name == at).unwrap();
        let ping = host.system.processes.iter().find(|it| it.name == "link-ping").unwrap();
        assert_eq!(ping.setting(LABEL), [label]);
    }
    for (flow, ways) in plan.flows.iter().zip(table.chunks(2)) {
        let bill = flow.bill.as_ref().unwrap();
        let routers = bill
            .items
            .iter()
            .filter(|item| item.stage == FlowStage::Program && item.name == "router");
        for (item, way) in routers.zip(ways) {
            let contract = way.contract.unwrap();
            assert_eq!(contract.jitter, item.after);
            assert!(contract.per < Nanos::from_millis(16) && contract.burst == 1);
            assert!((1..=2).contains(&way.most), "{way:?}");
        }
    }
}

/// The bill of a flow counts all memory that the router lends to links of others, because all of it
/// may be filled. So more of it makes the bill longer, although no flow needs it.
#[test]
fn memory_that_a_neighbour_can_fill_counts() {
    let total = |hosts: &Hosts| {
        let plan = NetworkPlan::of(hosts);
        plan.flows[1].bill.as_ref().unwrap().total
    };
    let more = "process = \"centre:router\"\nby = \"left-centre\"\nslots = 8";
    let less = more.replace('8', "4");
    let usual = total(&star("star.toml", &less, &less));
    let fuller = total(&star("star.toml", &less, more));
    assert!(fuller > usual + Nanos::from_micros(20), "{fuller} after {usual}");
}

#[test]
fn messages_without_a_label_are_refused_beside_others() {
    let name = "name = \"link-ping\"";
    let hosts = star("links/leaf.toml", name, &format!("{name}\nprogram = \"link-flood\""));
    let mixed = "cannot tell its messages from those of another flow by `right-centre`";
    let found = refusals(&hosts);
    assert!(found[0].contains(mixed) && found[1].contains(mixed), "{found:?}");
}

#[test]
fn a_router_has_room_for_its_messages() {
    let hosts = star("star.toml", "slots = 4", "slots = 22");
    assert!(
        refusals(&hosts)[0].contains("`centre:router` has memory for 64 messages; 66 are needed")
    );
    let hosts = star("links/centre.toml", "size = \"1088K\"", "size = \"8K\"");
    let needed = "`link.data` of `centre` has no room for 12 messages of a router";
    assert!(refusals(&hosts)[0].contains(needed), "{:?}", refusals(&hosts));
}

#[test]
fn a_flow_ends_at_no_router() {
    let text = example("star.toml");
    let last = "[[flow.hop]]\nprocess = \"up:link-ping\"";
    let (whole, _) = text.split_once(last).unwrap();
    let find = |name: &str| Ok((name.to_owned(), example(name)));
    let Ok(Description::Several(hosts)) = parse_any("star.toml", whole, find) else { panic!() };
    let found = refusals(&hosts);
    assert!(
        found
            .iter()
            .any(|it| it.contains("`centre:router` passes messages on, and sends and keeps")),
        "{found:?}"
    );
}

/// Returns a list in which one router passes on the messages of a neighbour and serves mailboxes of
/// its own host. `slots` is the memory that it lends to the neighbour.
fn mixed(slots: &str) -> Hosts {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/systems");
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let (from, to) = ("by = \"hostile\"\nslots = 4", "by = \"hostile\"\nslots = ");
    let text = read("flooded-mail.toml");
    assert!(text.contains(from));
    let find = |name: &str| Ok((name.to_owned(), read(name)));
    match parse_any("list.toml", &text.replace(from, &format!("{to}{slots}")), find) {
        Ok(Description::Several(hosts)) => hosts,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_router_passes_messages_on_and_serves_mailboxes() {
    let mut hosts = mixed("4");
    let plan = NetworkPlan::of(&hosts);
    assert!(plan.holds(), "{:?}", plan.refused);
    plan.instruct(&mut hosts);
    let hub = hosts.hosts.iter().find(|host| host.name == "hub").unwrap();
    let told = hub.system.processes.iter().find(|it| it.name == "router").unwrap();
    let table: Vec<LinkRoute> = LinkRoute::all(told.setting(ROUTES)).collect();
    let ways: Vec<(Gate, u8, Gate)> = table.iter().map(|it| (it.from, it.label, it.to)).collect();
    let (link, mailbox) = (Gate::Link, Gate::Mailbox);
    assert_eq!(ways, [(link(1), 1, link(2)), (link(0), 2, mailbox(0)), (mailbox(1), 3, link(0))],);
    let memory = RouterMemory::of(told.setting(MEMORY)[0]);
    assert_eq!(memory, RouterMemory { bytes: 1024, own: OWN as u8, slots: [4, 4, 0, 0] });
    // All that a neighbour can put into the memory of its link delays the mailboxes, and each way
    // may be as late as its bill says.
    let fuller = NetworkPlan::of(&mixed("32"));
    for (flow, (way, item)) in table.iter().zip([5, 6, 1]).enumerate() {
        let [usual, more] =
            [&plan, &fuller].map(|plan| plan.flows[flow].bill.as_ref().unwrap().clone());
        let jitter = hosts.flows[flow].steady().jitter + usual.items[item].after;
        assert_eq!(way.contract.map(|it| it.jitter), Some(jitter), "{:?}", usual.items);
        assert!(more.total > usual.total + Nanos::from_micros(20));
    }
}

/// Returns three routers in a ring, each with a host of its own. The messages of each host go to
/// the one behind the next, by the ways that are given: routers in their order.
fn ring(ways: [&[usize]; 3]) -> Hosts {
    let mut text = String::new();
    for at in 0..3 {
        for (kind, file) in [("leaf", "leaf"), ("router", "centre")] {
            text += &format!(
                "[[host]]\nname = \"{kind}-{at}\"\nsystem = \"links/{file}.toml\"\n\
                 clock = \"2400MHz\"\n"
            );
        }
        let next = (at + 1) % 3;
        text += &format!(
            "[[cable]]\nname = \"own-{at}\"\nends = [\"leaf-{at}:xhci:2\", \
             \"router-{at}:xhci:1\"]\n\
             [[cable]]\nname = \"from-{at}\"\nends = [\"router-{at}:xhci:2\", \
             \"router-{next}:xhci:3\"]\n"
        );
    }
    for (at, way) in ways.into_iter().enumerate() {
        text += &format!(
            "[[flow]]\nname = \"flow-{at}\"\nfrom = \"leaf-{at}:link-ping\"\nbytes = 1024\n\
             period = \"64ms\"\nwork = \"6us\"\n"
        );
        let mut hop = |to: String, by: String| {
            text += &format!(
                "[[flow.hop]]\nprocess = \"{to}\"\nby = \"{by}\"\nslots = 4\nwork = \"6us\"\n"
            );
        };
        hop(format!("router-{}:router", way[0]), format!("own-{at}"));
        for pair in way.windows(2) {
            let first = if (pair[0] + 1) % 3 == pair[1] { pair[0] } else { pair[1] };
            hop(format!("router-{}:router", pair[1]), format!("from-{first}"));
        }
        let end = way[way.len() - 1];
        hop(format!("leaf-{end}:link-ping"), format!("own-{end}"));
    }
    let find = |name: &str| Ok((name.to_owned(), example(name)));
    match parse_any("ring.toml", &text, find) {
        Ok(Description::Several(hosts)) => hosts,
        other => panic!("{other:?}"),
    }
}

/// Full routers in a ring can wait for each other for ever if each flow goes on to the next router.
#[test]
fn ways_in_a_circle_are_refused() {
    let found = refusals(&ring([&[0, 1, 2], &[1, 2, 0], &[2, 0, 1]]));
    let circle = "can wait for each other in a circle of cables: `from-0`, `from-1`, `from-2`";
    assert_eq!(found.iter().filter(|it| it.contains(circle)).count(), 3, "{found:?}");
    // One flow goes the other way.
    let plan = NetworkPlan::of(&ring([&[0, 1, 2], &[1, 2, 0], &[2, 1]]));
    assert!(plan.flows.iter().all(|flow| flow.bill.is_ok()), "{:?}", plan.refused);
}

/// A flow that names only its last program has the bill of one whose hops are written.
#[test]
fn a_computed_way_has_the_bill_of_a_written_one() {
    let text = example("star.toml");
    let hosts = &text[..text.find("[[flow]]").unwrap()];
    let ways = [["left", "right"], ["right", "up"]];
    let list = |is_written: bool| {
        let flow = |[from, to]: [&str; 2]| {
            let way = if is_written {
                let hop = |at: &str, by: &str| {
                    format!(
                        "[[flow.hop]]\nprocess = \"{at}\"\nby = \"{by}-centre\"\nslots = 4\nwork \
                         = \"6us\"\n"
                    )
                };
                hop("centre:router", from) + &hop(&format!("{to}:link-ping"), to)
            } else {
                format!("to = \"{to}:link-ping\"\nslots = 4\n")
            };
            format!(
                "[[flow]]\nname = \"{from}-{to}\"\nfrom = \"{from}:link-ping\"\nbytes = \
                 1024\nperiod = \"16ms\"\nwork = \"6us\"\nlatency = \"10ms\"\n{way}"
            )
        };
        let flows: String = ways.map(flow).concat();
        let find = |name: &str| Ok((name.to_owned(), example(name)));
        match parse_any("star.toml", &(hosts.to_owned() + &flows), find) {
            Ok(Description::Several(hosts)) => hosts,
            other => panic!("{other:?}"),
        }
    };
    let [written, computed] = [true, false].map(list);
    assert_eq!(written.flows, computed.flows);
    let plan = NetworkPlan::of(&computed);
    assert!(plan.holds(), "{:?}", plan.refused);
}

/// A computed way that has no links of its programs is refused, and the link is named.
#[test]
fn a_computed_way_without_its_links_is_refused() {
    let text = example("star.toml");
    let flow = "[[flow]]\nname = \"left-right\"\nfrom = \"left:link-ping\"\nto = \
                \"right:link-ping\"\nslots = 4\nbytes = 1024\nperiod = \"16ms\"\nwork = \
                \"6us\"\nlatency = \"10ms\"\n";
    let list = text[..text.find("[[flow]]").unwrap()].to_owned() + flow;
    let links = "\"link2.asks\", \"link2.done\", \"link2.ask\", ";
    let vcpu = "\n]\n\n[[vcpu]]\nname = \"route\"";
    let own = format!("{links}\"link.ready\", \"link.data\",{vcpu}");
    let refused = |without: &str| {
        let find = |name: &str| {
            let text = example(name);
            assert!(name != "links/centre.toml" || text.contains(&own));
            Ok((name.to_owned(), text.replace(&own, &own.replacen(without, "", 1))))
        };
        match parse_any("star.toml", &list, find) {
            Ok(Description::Several(hosts)) => refusals(&hosts),
            other => panic!("{other:?}"),
        }
    };
    let title = "`left-right` has no bound: `router` in `centre` does not use link 2, of \
                 `right-centre`";
    assert_eq!(refused(links), [title]);
    assert!(refused("").iter().all(|it| it != title));
}

/// A message of whole packets ends with the memory that it is written to. A router lends memory for
/// the longest message that it passes on, so such a message of another flow would never end.
#[test]
fn messages_of_whole_packets_end_at_a_router() {
    let longer = |[left, up]: [&str; 2]| {
        let text = example("star.toml").replace("bytes = 1024\n", &format!("bytes = {up}\n"));
        let text = text.replacen(&format!("bytes = {up}\n"), &format!("bytes = {left}\n"), 1);
        let find = |name: &str| Ok((name.to_owned(), example(name)));
        match parse_any("star.toml", &text, find) {
            Ok(Description::Several(hosts)) => refusals(&hosts),
            other => panic!("{other:?}"),
        }
    };
    let title = "`left-asks` has no bound: `centre:router` lends memory of 2048 bytes, in which \
                 a message of 1024 bytes does not end";
    assert!(longer(["1024", "1100"]).iter().any(|it| it == title));
    for bytes in [["1024", "1024"], ["1023", "1100"], ["2048", "2047"]] {
        let found = longer(bytes);
        assert!(found.iter().all(|it| !it.contains("does not end")), "{bytes:?}: {found:?}");
    }
}

/// Returns what the server of links in a host is told of the longest message of each.
fn longest(hosts: &Hosts, host: &str) -> Vec<u64> {
    let host = hosts.hosts.iter().find(|it| it.name == host).unwrap();
    let mut told = host.system.processes.iter().map(|it| it.setting(LONGEST));
    told.find(|words| !words.is_empty()).unwrap_or_default().to_vec()
}

/// A server lets no longer messages into a cable than the longest of the flows there, so each of
/// them counts with that.
#[test]
fn servers_know_the_longest_message_of_each_link() {
    let of = |left: &str, up: &str| {
        let list = example("star.toml");
        let at = list.find("name = \"left-asks\"").unwrap();
        let text = list[at..].replacen("bytes = 1024", &format!("bytes = {left}"), 1);
        let text = text.replacen("bytes = 1024", &format!("bytes = {up}"), 1);
        star("star.toml", &list[at..], &text)
    };
    let mut hosts = of("512", "1024");
    let plan = NetworkPlan::of(&hosts);
    let cables = |plan: &NetworkPlan, flow: usize| {
        let items = &plan.flows[flow].bill.as_ref().unwrap().items;
        let cables = items.iter().filter(|item| item.stage == FlowStage::Cable);
        cables.map(|item| item.value).collect::<Vec<Nanos>>()
    };
    plan.instruct(&mut hosts);
    assert_eq!(longest(&hosts, "left"), [512, 0, 0, 0]);
    assert_eq!(longest(&hosts, "up"), [1_024, 0, 0, 0]);
    assert_eq!(longest(&hosts, "centre"), [512, 1_024, 1_024, 0]);
    let [two, three] = ["2048", "3072"].map(|left| NetworkPlan::of(&of(left, "1000")));
    // Messages of the other flow may be as long behind the router.
    let [two, three] = [two, three].map(|plan| cables(&plan, 1));
    assert!(two[1] < three[1] && two[0] == three[0], "{two:?} {three:?}");
}
