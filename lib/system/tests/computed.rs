//! Ways of flows that name only their last program.

use diapason_system::{Description, Diagnostics, FlowWay, Hosts, parse_any};
use std::fmt::Write;

const BOARD: &str = "[system]\nname = \"board\"\nclock = \"100MHz\"\n[[device]]\nname = \"xhci\"\n\
                     pci = \"0c0330\"\nsize = \"16K\"\n[[vcpu]]\nname = \"v\"\nbudget = \"1ms\"\n\
                     period = \"10ms\"\n[[vcpu]]\nname = \"w\"\nbudget = \"1ms\"\nperiod = \
                     \"10ms\"\n[[process]]\nname = \"on\"\npriority = 1\nvcpu = \"v\"\n";
const ROUTER: &str =
    "[[process]]\nname = \"router\"\nprogram = \"link-router\"\npriority = 1\nvcpu = \"w\"\n";

/// Reads a list of hosts `h0`, `h1`, … with cables between `pairs`, and the text `more` behind
/// them. `routers` says how many routers a host has.
fn read(
    count: usize,
    pairs: &[(usize, usize)],
    more: &str,
    routers: fn(usize) -> usize,
) -> Result<Description, Diagnostics> {
    let (mut text, mut ports) = (String::new(), vec![0; count]);
    for host in 0..count {
        writeln!(text, "[[host]]\nname = \"h{host}\"\nsystem = \"{host}\"").unwrap();
    }
    for (one, other) in pairs {
        ports[*one] += 1;
        ports[*other] += 1;
        let ends = [(one, ports[*one]), (other, ports[*other])];
        let [a, b] = ends.map(|(host, port)| format!("\"h{host}:xhci:{port}\""));
        writeln!(text, "[[cable]]\nname = \"c{one}{other}\"\nends = [{a}, {b}]").unwrap();
    }
    parse_any("hosts.toml", &(text + more), |file: &str| {
        let mut board = BOARD.to_owned();
        for number in 0..routers(file.parse().unwrap()) {
            board += &ROUTER.replacen("router", &format!("router{number}"), 1);
        }
        Ok((file.to_owned(), board))
    })
}

fn flow(from: usize, to: usize) -> String {
    format!(
        "[[flow]]\nname = \"f{from}{to}\"\nfrom = \"h{from}:on\"\nto = \"h{to}:on\"\nbytes = \
         64\nperiod = \"2ms\"\nwork = \"3us\"\nslots = 4\n"
    )
}

/// Returns the names of the cables of each flow.
fn cables(hosts: &Hosts) -> Vec<Vec<&str>> {
    let name = |way: FlowWay| match way {
        FlowWay::Cable(cable) => hosts.cables[cable].name.as_str(),
        other => panic!("{other:?}"),
    };
    hosts.flows.iter().map(|flow| flow.hops.iter().map(|hop| name(hop.way)).collect()).collect()
}

const RING: [(usize, usize); 4] = [(0, 1), (1, 2), (2, 3), (3, 0)];

fn several(found: Result<Description, Diagnostics>) -> Hosts {
    match found {
        Ok(Description::Several(hosts)) => hosts,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_way_is_the_shortest_over_hosts_that_pass_messages_on() {
    let hosts = several(read(4, &RING, &flow(0, 2), |host| usize::from(host == 3)));
    assert_eq!(cables(&hosts), [["c30", "c23"]]);
    let flow = &hosts.flows[0];
    let stops: Vec<_> = flow.stops().map(|it| (it.host, it.process, it.work_ns)).collect();
    let work = Some(3_000);
    assert_eq!(stops, [(0, 0, work), (3, 1, work), (2, 0, work)]);
    assert!(flow.hops.iter().all(|hop| hop.slots == 4));
}

/// Shortest ways on a ring of four have a circle of cables and none of channels.
#[test]
fn ways_on_a_ring_of_four_are_the_shortest() {
    let hosts = several(read(4, &RING, &(flow(1, 3) + &flow(3, 1)), |_| 1));
    assert_eq!(cables(&hosts), [["c01", "c30"], ["c23", "c12"]]);
}

/// Messages on the shortest ways of a ring of five could wait for each other in a circle.
#[test]
fn ways_on_a_ring_of_five_go_up_and_then_down() {
    let ring = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)];
    let hosts = several(read(5, &ring, &(flow(2, 4) + &flow(4, 2)), |_| 1));
    assert_eq!(cables(&hosts), [["c12", "c01", "c40"], ["c40", "c01", "c12"]]);
}

#[test]
fn ways_on_a_hypercube_correct_one_bit_after_the_other() {
    let mut pairs = Vec::new();
    for host in 0..8 {
        let higher = [1, 2, 4].map(|bit| host ^ bit).into_iter().filter(|other| *other > host);
        pairs.extend(higher.map(|other| (host, other)));
    }
    let hosts = several(read(8, &pairs, &(flow(0, 7) + &flow(6, 1)), |_| 1));
    assert_eq!(cables(&hosts), [["c01", "c13", "c37"], ["c67", "c57", "c15"]]);
}

#[test]
fn a_way_that_cannot_be_is_refused_at_its_end() {
    let bad = |pairs: &[(usize, usize)], flow: &str, routers, title: &str, help: &str| {
        let found = read(4, pairs, flow, routers).unwrap_err();
        let [item] = found.items()[..] else { panic!("{found}") };
        assert_eq!((item.title, item.help), (title, help));
        assert!(item.line > 12 + pairs.len() * 3, "{found}");
    };
    let silent = "no way from `h0` to `h2`: `h1` has 0 processes with `program = \
                  \"link-router\"`, and 1 passes messages on";
    bad(&RING, &flow(0, 2), |_| 0, silent, "give it one in `1`, or write each `[[flow.hop]]`");
    let two = silent.replace("has 0", "has 2");
    bad(&RING, &flow(0, 2), |_| 2, &two, "give it one in `1`, or write each `[[flow.hop]]`");
    let none = "no cables lead from `h0` to `h2`";
    bad(&[(0, 1), (2, 3)], &flow(0, 2), |_| 1, none, "add a `[[cable]]`");
    let here = "the flow does not leave `h0`";
    let help = "name a program of another host, or write each `[[flow.hop]]`";
    bad(&RING, &flow(0, 0), |_| 1, here, help);
    let hop = "[[flow.hop]]\nprocess = \"h1:on\"\nby = \"c01\"\nslots = 4\n";
    let help = "remove one of the two: the way to `to` is computed";
    bad(&RING, &(flow(0, 1) + hop), |_| 1, "a flow with `to` and hops", help);
    let bare = flow(0, 1).replace("slots = 4\n", "");
    let help = "add `slots = 4`: messages for which each program on the way lends memory to its \
                link";
    bad(&RING, &bare, |_| 1, "flow `f01` has no `slots`", help);
}

/// A flow that leads through a program and comes back has both parts computed.
#[test]
fn a_flow_may_lead_through_a_program_and_come_back() {
    let back = flow(0, 2).replace("to = \"h2:on\"", "via = [\"h2:on\"]\nto = \"h0:on\"");
    let hosts = several(read(4, &RING, &back, |_| 1));
    assert_eq!(cables(&hosts), [["c01", "c12", "c12", "c01"]]);
    let only =
        flow(0, 2).replace("to = \"h2:on\"\n", "via = [\"h2:on\"]\n").replace("slots = 4\n", "");
    let refused = read(4, &RING, &only, |_| 1).err().map(|bad| bad.plain()).unwrap_or_default();
    assert!(refused.contains("a flow with `via` and no `to`"), "{refused}");
}

/// Reads a ring of four hosts with flows. A USB server of each has two links, in the order of the
/// cables in the list. `uses` says which of them the router of a host uses.
fn partly(flows: &str, uses: fn(usize) -> &'static [usize]) -> Hosts {
    let mut text = String::new();
    for host in 0..4 {
        writeln!(text, "[[host]]\nname = \"h{host}\"\nsystem = \"{host}\"").unwrap();
    }
    for (one, other) in RING {
        let ends = [format!("\"h{one}:xhci:1\""), format!("\"h{other}:xhci:2\"")].join(", ");
        writeln!(text, "[[cable]]\nname = \"c{one}{other}\"\nends = [{ends}]").unwrap();
    }
    several(parse_any("hosts.toml", &(text + flows), |file: &str| {
        let used = uses(file.parse().unwrap());
        let link = |link: &usize| format!("\"link{link}.asks\"");
        let links = |all: &[usize]| all.iter().map(link).collect::<Vec<_>>().join(", ");
        let rest: Vec<usize> = [0, 1].into_iter().filter(|link| !used.contains(link)).collect();
        let uses = |of: &[usize]| format!("uses = [{}]\n", links(of));
        let on = BOARD.to_owned() + &uses(&rest);
        let asks =
            [0, 1].map(|it| format!("[[segment]]\nname = \"link{it}.asks\"\nsize = \"4K\"\n"));
        let server = "[[process]]\nname = \"usbd\"\npriority = 1\nvcpu = \"v\"\nuses = \
                      [\"xhci\", \"link0.asks\", \"link1.asks\"]\n[process.settings]\nlinks = \
                      [0, 0]\n";
        Ok((file.to_owned(), on + ROUTER + &uses(used) + server + &asks.concat()))
    }))
}

/// The router of `h1` uses none of its links, so the way leads through `h3`, although the one
/// through `h1` is as short and comes first.
#[test]
fn a_way_goes_over_links_that_its_programs_use() {
    let routed = flow(0, 2).replace(":on", ":router");
    let both = |_: usize| &[0, 1][..];
    assert_eq!(cables(&partly(&routed, both)), [["c01", "c12"]]);
    let hosts = partly(&routed, |host| if host == 1 { &[] } else { &[0, 1] });
    assert_eq!(cables(&hosts), [["c30", "c23"]]);
    let stops: Vec<_> = hosts.flows[0].stops().map(|it| (it.host, it.process)).collect();
    assert_eq!(stops, [(0, 1), (3, 1), (2, 1)]);
    // The first cable of `h1` is the second of `h0`: one program has one, the router the other.
    let ends = partly(&flow(1, 2), |host| if host == 1 { &[0] } else { &[0, 1] });
    assert_eq!(cables(&ends), [["c12"]]);
    let far = partly(&flow(1, 2), |host| match host {
        1 => &[1],
        2 => &[0],
        _ => &[0, 1],
    });
    assert_eq!(cables(&far), [["c01", "c30", "c23"]]);
}

/// If no way has the links that it needs, the shortest one is left for the plan to refuse.
#[test]
fn a_way_without_its_links_is_the_shortest() {
    let hosts = partly(&flow(0, 2), |_| &[0, 1]);
    assert_eq!(cables(&hosts), [["c01", "c12"]]);
}
