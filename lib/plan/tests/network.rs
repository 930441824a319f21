//! Networks of hosts: what is refused, where, and with which remedy.

use diapason_abi::Key;
use diapason_contract::settings::{Expected, FormingOrder, ORDER};
use diapason_plan::NetworkPlan;
use diapason_system::{Description, Hosts, parse_any};

/// Returns a host whose servers drive what `uses` says, and do nothing else.
fn host(processes: &str) -> String {
    format!(
        "[system]\nname = \"s\"\n{processes}[[process]]\nname = \"p\"\npriority = 1\n[[device]]\n\
         name = \"xhci\"\npci = \"0c0330\"\nsize = \"16K\"\n"
    )
}

/// Returns a debug target that is also a debug host by the same controller.
fn node(arguments: &str) -> String {
    let uses = "uses = [\"xhci\", \"debug.enable\"]";
    format!(
        "[[process]]\nname = \"dbcd\"\npriority = 1\n{uses}\narguments = {arguments}\n\
         [[process]]\nname = \"usbd\"\npriority = 1\n{uses}\n[process.settings]\nlinks = [16]\n\
         [[semaphore]]\nname = \"debug.enable\"\nkind = \"counting\"\n"
    )
}

/// `d`: a debug target; `0`, `1`, `2`: a USB server with so many links at any port.
fn find(file: &str) -> Result<(String, String), String> {
    let dbcd = "[[process]]\nname = \"dbcd\"\npriority = 1\nuses = [\"xhci\"]\n";
    let usbd = |links: &str| {
        let settings = format!("[process.settings]\nlinks = [{links}]\n");
        format!("[[process]]\nname = \"usbd\"\npriority = 1\nuses = [\"xhci\"]\n{settings}")
    };
    let processes = match file {
        "d" => dbcd.to_owned(),
        "0" => String::new(),
        "1" => usbd("0"),
        "2" => usbd("0, 0"),
        "port-2" => usbd("17"),
        "both" => dbcd.to_owned() + &usbd("0"),
        "ring" => node("[0, 1, 1]"),
        "one-number" => node("[0, 1, 0]"),
        "thief" => {
            let thief = "[[process]]\nname = \"thief\"\npriority = 1\nuses = [\"debug.enable\"]\n";
            node("[0, 1, 1]") + thief
        }
        _ => return Err("no such file".into()),
    };
    Ok((file.to_owned(), host(&processes)))
}

fn hosts(text: &str) -> Hosts {
    match parse_any("net.toml", text, find) {
        Ok(Description::Several(hosts)) => hosts,
        other => panic!("{other:?}"),
    }
}

/// Hosts with names, descriptions and further keys, four lines each, then cables with their ends.
fn list(of: &[(&str, &str, &str)], cables: &[(&str, &str)], more: &str) -> String {
    let host = |(name, file, more): &(&str, &str, &str)| {
        format!("[[host]]\nname = \"{name}\"\nsystem = \"{file}\"\n{more}\n")
    };
    let cable = |(one, other): &(&str, &str)| {
        let name = format!("{}-{}", &one[..1], &other[..1]);
        format!("[[cable]]\nname = \"{name}\"\nends = [\"{one}\", \"{other}\"]\n")
    };
    let hosts: String = of.iter().map(host).collect();
    hosts + &cables.iter().map(cable).collect::<String>() + more
}

fn plan(of: &[(&str, &str, &str)], cables: &[(&str, &str)], more: &str) -> NetworkPlan {
    NetworkPlan::of(&hosts(&list(of, cables, more)))
}

/// Returns line, title and remedy of each finding.
fn said(plan: &NetworkPlan) -> Vec<(usize, String, String)> {
    let items = plan.findings.iter().flat_map(|found| found.items());
    items.map(|item| (item.line, item.title.to_owned(), item.help.to_owned())).collect()
}

#[track_caller]
fn refused(plan: &NetworkPlan, line: usize, title: &str, help: &str) {
    let wanted = (line, title.to_owned(), help.to_owned());
    assert!(said(plan).contains(&wanted), "{:#?}", plan.findings);
}

const RING: [(&str, &str); 4] = [
    ("a:xhci:debug", "b:xhci:1"),
    ("b:xhci:debug", "c:xhci:1"),
    ("c:xhci:debug", "d:xhci:1"),
    ("d:xhci:debug", "a:xhci:1"),
];

/// The lists of [USB 2023, §4.1.2] for a star, a tree and a ring.
#[test]
fn lists_follow_from_cables() {
    let of = ["a", "b", "c", "d"].map(|name| (name, "0", ""));
    let star = plan(&of, &[("b:xhci:debug", "a:xhci:1"), ("c:xhci:debug", "a:xhci:2")], "");
    assert_eq!(star.lists.awaits, [vec![1, 2], vec![], vec![], vec![]]);
    let tree =
        [("a:xhci:debug", "c:xhci:1"), ("b:xhci:debug", "c:xhci:2"), ("c:xhci:debug", "d:xhci:1")];
    assert_eq!(plan(&of, &tree, "").lists.awaits, [vec![], vec![], vec![0, 1], vec![2]]);
    let ring = plan(&of, &RING, "[network]\nleader = \"a\"\n");
    assert_eq!(ring.lists.awaits, [vec![3], vec![0], vec![1], vec![2]]);
    assert_eq!(ring.lists.leader, Some(0));
    assert!(!said(&ring).iter().any(|(_, title, _)| title.contains("waits for")));
}

#[test]
fn a_ring_needs_a_leader() {
    let of = ["a", "b", "c", "d"].map(|name| (name, "0", ""));
    let title = "`a` waits for `d`, `d` waits for `c`, `c` waits for `b`, `b` waits for `a`: none \
                 of them ever enables";
    refused(&plan(&of, &RING, ""), 2, title, "write `leader = \"a\"` under `[network]`");
    // The leader is outside of the circle: a fifth host is a target of the first.
    let of = ["a", "b", "c", "d", "e"].map(|name| (name, "0", ""));
    let cables = [&RING[..], &[("e:xhci:debug", "a:xhci:2")]].concat();
    let plan = plan(&of, &cables, "[network]\nleader = \"e\"\n");
    // With leader `a`, the fifth host could enumerate it before `b` does.
    refused(&plan, 37, title, "write `leader = \"b\"` under `[network]`");
}

/// [USB 2023, fig. 6]: lists written by hand that may end in another network.
#[test]
fn wrong_lists_are_found() {
    let cables = [("b:xhci:debug", "a:xhci:1"), ("c:xhci:debug", "a:xhci:2")];
    let of = [("a", "0", "depends = [\"b\"]"), ("b", "0", ""), ("c", "0", "")];
    let title = "`a` may enumerate before `c` enables";
    refused(&plan(&of, &cables, ""), 4, title, "add `c` to its `depends`");
    let cables =
        [("a:xhci:debug", "c:xhci:1"), ("b:xhci:debug", "c:xhci:2"), ("c:xhci:debug", "d:xhci:1")];
    let of = ["a", "b", "c", "d"].map(|name| (name, "0", ""));
    let leads = plan(&of, &cables, "[network]\nleader = \"c\"\n");
    let title = "`a` may enumerate `c`, which is the target of `d`";
    refused(&leads, 18, title, "leave out `leader`");
    let of = [("a", "0", ""), ("b", "0", "depends = [\"c\"]"), ("c", "0", ""), ("d", "0", "")];
    let help = "remove `c` from its `depends`";
    refused(&plan(&of, &cables, ""), 8, "`b` waits for `c` for ever", help);
    let of = [("a", "0", "enable = false"), ("b", "0", ""), ("c", "0", ""), ("d", "0", "")];
    let title = "`a` never enables its debug capability, where this cable ends";
    let help = "remove `enable = false` from the host `a`";
    refused(&plan(&of, &cables, ""), 18, title, help);
    let of = [("a", "0", ""), ("b", "0", ""), ("c", "0", ""), ("d", "0", "enable = true")];
    let title = "`d` enables, no cable needs it, and `c` may enumerate it";
    let found = plan(&of, &cables, "");
    assert!(!said(&found).iter().any(|(_, said, _)| said == title), "`c` has enumerated before");
    let of = [("a", "0", "enable = true"), ("b", "0", "")];
    let cables = [("b:xhci:debug", "a:xhci:1")];
    let found = plan(&of, &cables, "[network]\nleader = \"a\"\n");
    let title = "`a` enables, no cable needs it, and `b` may enumerate it";
    refused(&found, 2, title, "remove `enable = true` from the host `a`");
}

#[test]
fn programs_serve_the_ends_of_cables() {
    let debug = [("b:xhci:debug", "a:xhci:1")];
    assert_eq!(said(&plan(&[("a", "1", ""), ("b", "d", "")], &debug, "")), []);
    let nobody = plan(&[("a", "1", ""), ("b", "0", "")], &debug, "");
    let title = "`b` never enables its debug capability, where this cable ends";
    refused(&nobody, 10, title, "add a process `dbcd` with `xhci` in its `uses` to `0`");
    assert_eq!(
        nobody.idle.iter().map(|idle| (idle.cable, idle.host)).collect::<Vec<_>>(),
        [(0, 1)]
    );
    let waits = plan(&[("a", "0", ""), ("b", "d", "")], &debug, "");
    let title = "nobody serves this cable in `a`, and its other end waits";
    refused(&waits, 10, title, "add `16` to the `links` of `usbd` in `0`");
    let bridge = [("a:xhci:1", "b:xhci:1")];
    // Nobody is promised anything by a cable that nobody looks at.
    let none = plan(&[("a", "0", ""), ("b", "0", "")], &bridge, "");
    assert_eq!((said(&none), none.idle.len()), (vec![], 2));
    let more = plan(&[("a", "2", ""), ("b", "1", "")], &bridge, "");
    let help = "add a `[[cable]]`, or remove the link from its `links` in `2`";
    refused(&more, 2, "link 1 of `usbd` in `a` has no cable", help);
    let elsewhere = plan(&[("a", "port-2", ""), ("b", "1", "")], &bridge, "");
    let help = "add a `[[cable]]` there, or write another port in `links` in `port-2`";
    refused(&elsewhere, 2, "link 0 of `usbd` in `a` has no cable", help);
    let there = plan(&[("a", "port-2", ""), ("b", "1", "")], &[("a:xhci:2", "b:xhci:1")], "");
    assert_eq!(said(&there), []);
    let target = plan(&[("a", "1", ""), ("b", "d", "")], &[("a:xhci:1", "b:xhci:2")], "");
    let help = "add a `[[cable]]` from `b:…:debug` to a port of another host";
    refused(&target, 6, "link 0 of `dbcd` in `b` has no cable", help);
    let both = plan(&[("a", "both", ""), ("b", "1", "")], &[("a:xhci:1", "b:xhci:1")], "");
    let title = "`usbd` and `dbcd` in `a` both drive `xhci`, unordered";
    let help = "declare a counting semaphore `debug.enable`, add it to the `uses` of both, and \
                write 1 as the second of the `arguments` of `dbcd`";
    refused(&both, 2, title, help);
}

/// Each host is the target of the next.
const CIRCLE: [(&str, &str); 3] =
    [("a:xhci:debug", "b:xhci:1"), ("b:xhci:debug", "c:xhci:1"), ("c:xhci:debug", "a:xhci:1")];
const LED: &str = "[network]\nleader = \"a\"\n";

#[test]
fn a_host_is_target_and_debug_host_by_one_controller() {
    let of = |file: &'static str| [("a", file, ""), ("b", "ring", ""), ("c", "ring", "")];
    assert_eq!(said(&plan(&of("ring"), &CIRCLE, LED)), []);
    let twice = plan(&of("one-number"), &CIRCLE, LED);
    let help = "write 1 as the third of the `arguments` of `dbcd`";
    refused(&twice, 2, "`usbd` and `dbcd` in `a` both serve link 0", help);
    let taken = plan(&of("thief"), &CIRCLE, LED);
    let help = "take `debug.enable` out of its `uses` in `thief`";
    refused(&taken, 2, "`thief` in `a` may take `debug.enable` from `dbcd`", help);
}

#[test]
fn servers_are_told_their_part() {
    let mut list =
        hosts(&list(&[("a", "ring", ""), ("b", "ring", ""), ("c", "ring", "")], &CIRCLE, LED));
    NetworkPlan::of(&list).instruct(&mut list);
    let part = |number: usize| {
        let system = &list.hosts[number].system;
        let server = system.processes.iter().find(|process| process.program == "usbd").unwrap();
        FormingOrder::of(server.setting(ORDER)).unwrap()
    };
    assert_eq!([0, 1, 2].map(|host| part(host).leads), [true, false, false]);
    assert!((0..3).all(|host| part(host).enables));
    let key = |name: &str| Expected::key(&format!("{:016x}", Key::new(name).0));
    let first = |host: usize| part(host).awaits[0].unwrap();
    assert_eq!((first(0).port, first(0).serial), (16, key("c")));
    assert_eq!((first(1).port, first(1).serial), (16, key("a")));
    let system = &list.hosts[1].system;
    let target = system.processes.iter().find(|process| process.program == "dbcd").unwrap();
    assert_eq!(target.arguments[3], Key::new("b").0);
    assert_eq!(system.neighbours.at_port(16), Some("a"));
    let of = |link: u8| system.neighbours.links.iter().find(|end| end.link == link).unwrap();
    assert_eq!((of(0).host.as_str(), of(1).host.as_str()), ("a", "c"));
}

#[test]
fn a_host_waits_for_ever_for_one_that_is_no_target_of_it() {
    let of = [("a", "1", "depends = [\"c\"]"), ("b", "d", ""), ("c", "d", "")];
    let cables = [("b:xhci:debug", "a:xhci:1")];
    let mut list = hosts(&list(&of, &cables, ""));
    NetworkPlan::of(&list).instruct(&mut list);
    let server = &list.hosts[0].system.processes[0];
    let order = FormingOrder::of(server.setting(ORDER)).unwrap();
    let awaits = order.awaits.map(|it| it.map(|it| (it.port, it.waits)));
    assert_eq!(awaits[..3], [Some((16, false)), Some((u8::MAX, true)), None]);
    assert!(!order.enables);
}
