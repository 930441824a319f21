//! Flows from a mailbox of one host to the mailbox of the same name in another.

use diapason_system::{Description, Diagnostics, FlowWay, parse_any};

const BOARD: &str = r#"
[system]
name = "board"
[[device]]
name = "xhci"
pci = "0c0330"
size = "16K"
[[vcpu]]
name = "v"
budget = "1ms"
period = "10ms"
[[vcpu]]
name = "w"
budget = "1ms"
period = "10ms"
[[process]]
name = "on"
priority = 1
vcpu = "v"
uses = ["speeds", "brakes"]
[[process]]
name = "mail"
program = "link-router"
priority = 2
vcpu = "w"
uses = ["speeds", "brakes"]
[[mailbox]]
name = "speeds"
messages = 8
[[mailbox]]
name = "brakes"
messages = 3
"#;

const LIST: &str = r#"
[[host]]
name = "a"
system = "a.toml"
[[host]]
name = "b"
system = "b.toml"
[[host]]
name = "c"
system = "c.toml"
[[cable]]
name = "ab"
ends = ["a:xhci:1", "b:xhci:1"]
[[cable]]
name = "bc"
ends = ["b:xhci:2", "c:xhci:2"]
[[flow]]
name = "f"
from = "a:on"
bytes = 84
period = "2ms"
[[flow.hop]]
process = "a:mail"
by = "speeds"
[[flow.hop]]
process = "b:mail"
by = "ab"
slots = 4
[[flow.hop]]
process = "b:on"
by = "speeds"
work = "5us"
"#;

/// A second flow to a mailbox of this name, from `b` to `c`.
fn second(name: &str) -> String {
    let (_, flow) = LIST.split_once("[[flow]]").unwrap();
    let flow = flow.replace("\"b:", "\"c:").replace("\"a:", "\"b:").replace("\"ab\"", "\"bc\"");
    format!("[[flow]]{}", flow.replace("\"f\"", "\"g\"").replace("speeds", name))
}

fn read(list: &str, board: &str) -> Result<Description, Diagnostics> {
    parse_any("hosts.toml", list, |file: &str| Ok((file.to_owned(), board.to_owned())))
}

#[test]
fn a_flow_goes_from_a_mailbox_to_that_of_another_host() {
    let list = format!("{LIST}{}", second("brakes"));
    let Ok(Description::Several(hosts)) = read(&list, BOARD) else {
        panic!("{:?}", read(&list, BOARD))
    };
    let [flow, other] = &hosts.flows[..] else { panic!("{:?}", hosts.flows) };
    let steps = flow.hops.iter().map(|it| (it.way, it.to.host, it.to.process, it.slots));
    let (box_0, by_0) = (FlowWay::Mailbox(0), FlowWay::Cable(0));
    assert_eq!(steps.collect::<Vec<_>>(), [(box_0, 0, 1, 8), (by_0, 1, 1, 4), (box_0, 1, 0, 8)]);
    assert_eq!((flow.mailbox(), other.mailbox()), (Some(0), Some(1)));
    assert_eq!((flow.most_cables(), flow.end().work_ns), (1, Some(5_000)));
    assert!(!flow.is_on_ethernet());
    assert_eq!(other.hops[0].slots, 3);
}

/// Checks that the list with one text for another is refused there.
#[track_caller]
fn refused(from: &str, to: &str, line: usize, title: &str, help: &str) {
    assert!(LIST.contains(from), "{from}");
    wrong(&LIST.replacen(from, to, 1), BOARD, line, title, help);
}

#[track_caller]
fn wrong(list: &str, board: &str, line: usize, title: &str, help: &str) {
    let found = read(list, board).unwrap_err();
    let [item] = found.items()[..] else { panic!("{found}") };
    assert_eq!((item.line, item.title, item.help), (line, title, help));
}

#[test]
fn mistakes_of_a_mailbox_are_found_where_they_are() {
    refused(
        "by = \"speeds\"\n[[",
        "by = \"speed\"\n[[",
        24,
        "`a` has no mailbox called `speed`",
        "add a `[[mailbox]]` to `a.toml`; did you mean `speeds`?",
    );
    refused(
        "by = \"speeds\"\nwork",
        "by = \"brakes\"\nwork",
        31,
        "messages to `speeds` would come to `brakes`",
        "name the mailbox `speeds` at both ends",
    );
    refused(
        "by = \"speeds\"\nwork",
        "slots = 3\nby = \"speeds\"\nwork",
        31,
        "a hop by a mailbox with `slots`",
        "remove it: `messages` of the mailbox says how many it holds",
    );
    refused(
        "bytes = 84",
        "bytes = 83",
        20,
        "a message of a mailbox may have 84 bytes in a cable",
        "write `bytes = 84`",
    );
    let one_end = "let it begin with a hop by a mailbox to a router, go over cables, and end with \
                   a hop by the mailbox of the same name in another host";
    let title = "a flow with a mailbox at one end only";
    refused(
        "[[flow.hop]]\nprocess = \"b:on\"\nby = \"speeds\"\nwork = \"5us\"\n",
        "",
        27,
        title,
        one_end,
    );
    refused("[[flow.hop]]\nprocess = \"a:mail\"\nby = \"speeds\"\n", "", 24, title, one_end);
    refused(
        "process = \"b:on\"",
        "process = \"b:mail\"",
        31,
        "`mail` would send to itself",
        "name the program that takes the messages",
    );
    refused(
        "slots = 4\n",
        "slots = 4\npatience = \"3ms\"\n[[flow.hop.otherwise]]\nprocess = \"c:on\"\nby = \"ab\"\n",
        25,
        "another way for messages of mailboxes",
        "remove `otherwise`: their router knows one way",
    );
}

#[test]
fn a_mailbox_in_the_middle_ends_a_flow() {
    let (before, after) = LIST.split_once("[[flow.hop]]\nprocess = \"b:on\"").unwrap();
    let inner = "[[flow.hop]]\nprocess = \"b:on\"\nby = \"brakes\"\n";
    wrong(
        &format!("{before}{inner}[[flow.hop]]\nprocess = \"b:mail\"{after}"),
        BOARD,
        31,
        "a mailbox in the middle of a flow",
        "end the flow there, and let another begin at that program",
    );
}

#[test]
fn mistakes_of_hosts_are_found_at_the_hop() {
    let with = |from: &str, to: &str, title: &str, help: &str| {
        assert!(BOARD.contains(from));
        let found = read(LIST, &BOARD.replacen(from, to, 1)).unwrap_err();
        let items = found.items();
        assert_eq!((items[0].line, items[0].title, items[0].help), (24, title, help));
    };
    with(
        "[[mailbox]]\nname = \"speeds\"",
        "[[process]]\nname = \"logger\"\npriority = 1\nuses = [\"speeds\"]\n[[mailbox]]\nname = \
         \"speeds\"",
        "`a:logger` may use the mailbox `speeds`, too",
        "take `speeds` out of its `uses` in `a.toml`: nothing bounds what it sends or takes beside \
         `on` and `mail`",
    );
    with(
        "vcpu = \"v\"\nuses = [\"speeds\", \"brakes\"]",
        "vcpu = \"v\"\nuses = [\"brakes\"]",
        "`a:on` does not use the mailbox `speeds`",
        "add `speeds` to its `uses` in `a.toml`",
    );
    let found = read(LIST, &BOARD.replacen("program = \"link-router\"\n", "", 1)).unwrap_err();
    let item = &found.items()[0];
    let title = "`a:mail` carries no messages of mailboxes";
    assert_eq!(
        (item.line, item.title, item.help),
        (23, title, "name a process with `program = \"link-router\"`")
    );
    let without = BOARD.replacen("vcpu = \"w\"\n", "", 1);
    let found = read(LIST, &without).unwrap_err();
    assert_eq!(found.items()[0].title, "`a:mail` is in a flow and has no VCPU");
}

#[test]
fn a_message_does_not_come_back_to_its_host() {
    let (before, after) = LIST.split_once("[[flow.hop]]\nprocess = \"b:on\"").unwrap();
    let back = "[[flow.hop]]\nprocess = \"a:mail\"\nby = \"ab\"\nslots = 4\n";
    wrong(
        &format!("{before}{back}[[flow.hop]]\nprocess = \"a:on\"{after}"),
        BOARD,
        35,
        "messages to `speeds` would come back to the host they are from",
        "end the flow in another host: within one it needs no flow",
    );
}

/// Returns the flow of the list under another name, with one text for another.
fn again(from: &str, to: &str) -> String {
    let (_, flow) = LIST.split_once("[[flow]]").unwrap();
    assert!(flow.contains(from), "{from}");
    format!("[[flow]]{}", flow.replace("\"f\"", "\"g\"").replace(from, to))
}

#[test]
fn senders_on_several_hosts_share_a_mailbox() {
    let flow = again("\"a:", "\"c:").replace("\"ab\"", "\"bc\"");
    let Ok(Description::Several(hosts)) = read(&format!("{LIST}{flow}"), BOARD) else {
        panic!("{:?}", read(&format!("{LIST}{flow}"), BOARD))
    };
    assert_eq!([0, 1].map(|flow| hosts.source(flow)), [0, 1]);
    let two = again("period", "burst = 2\nperiod");
    wrong(
        &format!("{LIST}{two}"),
        BOARD,
        34,
        "two flows begin at the mailbox `speeds`",
        "remove one of them: messages to a name go one way",
    );
}

#[test]
fn a_name_has_one_receiver() {
    wrong(
        &format!("{LIST}{}", second("speeds")),
        BOARD,
        34,
        "`b` and `c` both own the mailbox `speeds`",
        "give the mailboxes of one of them another name: a name has one receiver",
    );
}

/// Returns the list with a flow whose way is computed, with this text in it.
fn computed(more: &str) -> String {
    let (hosts, _) = LIST.split_once("[[flow]]").unwrap();
    let flow = "name = \"f\"\nfrom = \"a:on\"\nbytes = 84\nperiod = \"2ms\"";
    format!("{hosts}[[flow]]\n{flow}\n{more}")
}

/// A flow with `to` and `mailbox` has the hops that one would write: by the mailbox to the router,
/// over cables and routers, and by the mailbox of the last host.
#[test]
fn a_computed_way_begins_and_ends_at_the_mailbox() {
    let hops = |list: &str| match read(list, BOARD) {
        Ok(Description::Several(hosts)) => {
            let flow = &hosts.flows[0];
            let hop = |it: &diapason_system::FlowHop| (it.way, it.to.host, it.to.process, it.slots);
            (flow.mailbox(), flow.hops.iter().map(hop).collect::<Vec<_>>())
        }
        other => panic!("{other:?}"),
    };
    let near = computed("to = \"b:on\"\nmailbox = \"speeds\"\nslots = 4\n");
    assert_eq!(hops(&near), hops(LIST));
    let far = computed("to = \"c:on\"\nmailbox = \"brakes\"\nslots = 2\n");
    let way = |way, host, process, slots| (way, host, process, slots);
    let (first, last) = (FlowWay::Mailbox(1), FlowWay::Cable);
    let all =
        [way(first, 0, 1, 3), way(last(0), 1, 1, 2), way(last(1), 2, 1, 2), way(first, 2, 0, 3)];
    assert_eq!(hops(&far), (Some(1), all.to_vec()));
}

#[test]
fn mistakes_of_a_computed_way_between_mailboxes_are_found_where_they_are() {
    let bad = |more: &str, line, title: &str, help: &str| {
        wrong(&computed(more), BOARD, line, title, help);
    };
    let to = "to = \"b:on\"\nslots = 4\n";
    let found = read(&computed(&format!("{to}mailbox = \"speed\"\n")), BOARD).unwrap_err();
    let titles: Vec<(usize, &str)> = found.items().iter().map(|it| (it.line, it.title)).collect();
    let title = |host: &str| format!("`{host}` has no mailbox called `speed`");
    assert_eq!(titles, [(24, &*title("a")), (24, &*title("b"))]);
    bad(
        &format!("{to}mailbox = \"speeds\"\nvia = [\"c:on\"]\n"),
        25,
        "a flow with `mailbox` and `via`",
        "remove `via`: end the flow there, and let another begin at that program",
    );
    bad(
        "mailbox = \"speeds\"\n[[flow.hop]]\nprocess = \"b:on\"\nby = \"ab\"\nslots = 4\n",
        22,
        "a flow with `mailbox` and no `to`",
        "add `to`, the last program, or write each `[[flow.hop]]`",
    );
    let list = computed(&format!("{to}mailbox = \"speeds\"\n"));
    let silent = BOARD.replace("program = \"link-router\"\n", "");
    wrong(
        &list,
        &silent,
        22,
        "no way to `b:on`: `a` has 0 processes with `program = \"link-router\"`, and 1 passes \
         messages on",
        "give it one in `a.toml`, or write each `[[flow.hop]]`",
    );
}

/// A program of the receiver's own host may not send to a mailbox that other hosts send to: no flow
/// counts its messages, and they could take the room of the others.
#[test]
fn a_client_of_the_receivers_host_beside_far_senders_is_refused() {
    let list = format!("{LIST}{}", again("\"a:", "\"c:").replace("\"ab\"", "\"bc\""));
    let local = "[[process]]\nname = \"local\"\npriority = 3\nuses = [\"speeds\"]\n";
    let board = |file: &str| match file {
        "b.toml" => format!("{BOARD}{local}"),
        _ => BOARD.to_owned(),
    };
    let found = parse_any("hosts.toml", &list, |file: &str| Ok((file.to_owned(), board(file))));
    let found = found.unwrap_err();
    let said: Vec<_> = found.items().iter().map(|it| (it.line, it.title, it.help)).collect();
    let title = "`b:local` may use the mailbox `speeds`, too";
    let help = "take `speeds` out of its `uses` in `b.toml`: nothing bounds what it sends or takes \
                beside `mail` and `on`";
    assert_eq!(said, [(31, title, help), (47, title, help)]);
}
