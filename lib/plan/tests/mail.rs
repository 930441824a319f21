//! Bills of flows from mailbox to mailbox, and what servers of mailboxes are told.

use diapason_abi::Nanos;
use diapason_contract::carried::Contract;
use diapason_contract::mail::{BoxName, MAILBOXES};
use diapason_contract::routes::{Gate, LinkRoute, MEMORY, OWN, PROGRAM, ROUTES, RouterMemory};
use diapason_plan::{FlowBill, FlowItem, FlowStage, NetworkPlan, Plan};
use diapason_random::Random;
use diapason_system::{Description, Hosts, parse_any};
use std::fs;
use std::path::PathBuf;

const TWO: &str = "mail.toml";
const THREE: &str = "mail-three.toml";
const MANY: &str = "mail-many.toml";
const SHARED: &str = "mail/answer-both.toml";

fn example(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    fs::read_to_string(path).unwrap()
}

/// Returns a list with texts for others: the file, and both texts.
fn changed(list: &str, changes: &[(&str, &str, &str)]) -> Hosts {
    let change = |file: &str| {
        let of_file = changes.iter().filter(|change| change.0 == file);
        of_file.fold(example(file), |text, (_, from, to)| {
            assert!(text.contains(from), "{file} has no {from}");
            text.replace(from, to)
        })
    };
    match parse_any(list, &change(list), |file| Ok((file.to_owned(), change(file)))) {
        Ok(Description::Several(hosts)) => hosts,
        other => panic!("{other:?}"),
    }
}

fn bills(hosts: &Hosts) -> [FlowBill; 2] {
    let plan = NetworkPlan::of(hosts);
    [0, 1].map(|flow| plan.flows[flow].bill.clone().unwrap_or_else(|none| panic!("{none:?}")))
}

/// Checks that the list of two hosts is refused with these words.
#[track_caller]
fn refused(changes: &[(&str, &str, &str)], title: &str, help: &str) {
    let plan = NetworkPlan::of(&changed(TWO, changes));
    let items: Vec<_> = plan.refused.iter().flat_map(|found| found.items()).collect();
    let said = items.first().map(|item| (item.title.to_owned(), item.help.to_owned()));
    assert_eq!(said, Some((title.to_owned(), help.to_owned())));
    assert!(!plan.holds());
}

#[test]
fn a_bill_goes_from_the_call_to_the_receiver() {
    for (list, programs) in [
        (TWO, &["left:asker", "left:mail", "right:mail", "right:answerer"][..]),
        (THREE, &["left:asker", "left:mail", "hub:router", "right:mail", "right:answerer"]),
    ] {
        let hosts = changed(list, &[]);
        for host in &hosts.hosts {
            assert!(Plan::of(&host.system).holds(), "{}", host.name);
        }
        let plan = NetworkPlan::of(&hosts);
        assert!(plan.holds(), "{:?}", plan.refused);
        let [questions, _] = bills(&hosts);
        let all = || questions.items.iter().filter(|item| item.stage == FlowStage::Program);
        let places: Vec<String> = all().map(|item| item.place(&hosts)).collect();
        assert_eq!(places, programs);
        let rooms: Vec<bool> = all().map(|item| item.waiting.is_some()).collect();
        let mailed = |at: usize| at == 1 || at + 1 == programs.len();
        assert_eq!(rooms, (0..programs.len()).map(mailed).collect::<Vec<bool>>());
        let mut sum = Nanos::ZERO;
        for item in &questions.items {
            sum += item.value;
            assert_eq!(item.after, sum);
            assert!(item.value > Nanos::ZERO, "{item:?}");
        }
        assert_eq!(questions.total, sum);
    }
}

/// Returns the mailboxes and the table of the router of a host.
fn told(hosts: &Hosts, host: usize) -> (Vec<BoxName>, Vec<LinkRoute>, RouterMemory) {
    let processes = &hosts.hosts[host].system.processes;
    let router = processes.iter().find(|process| process.program == PROGRAM).unwrap();
    let boxes = BoxName::all(router.setting(MAILBOXES)).collect();
    let table = LinkRoute::all(router.setting(ROUTES)).collect();
    (boxes, table, RouterMemory::of(router.setting(MEMORY)[0]))
}

/// Returns the places between which a way leads.
fn places(table: &[LinkRoute]) -> Vec<(Gate, u8, Gate)> {
    table.iter().map(|way| (way.from, way.label, way.to)).collect()
}

#[test]
fn routers_are_told_what_the_flows_say() {
    let mut hosts = changed(THREE, &[]);
    NetworkPlan::of(&hosts).instruct(&mut hosts);
    let (boxes, table, memory) = told(&hosts, 0);
    assert_eq!(boxes, ["questions", "answers"].map(BoxName::new));
    let (link, mailbox) = (Gate::Link(0), Gate::Mailbox);
    assert_eq!(places(&table), [(mailbox(0), 1, link), (link, 2, mailbox(1))]);
    let own = OWN as u8;
    assert_eq!(memory, RouterMemory { bytes: 84, own, slots: [4, 0, 0, 0] });
    let (_, table, _) = told(&hosts, 2);
    assert_eq!(places(&table), [(link, 1, mailbox(0)), (mailbox(1), 2, link)]);
    // A router lets messages come as late as the bill says, and no more of them than the flow.
    for (way, flow, item) in [(0, 0, None), (1, 1, Some(1))] {
        let bill = &bills(&hosts)[flow];
        let late = bill.items[item.unwrap_or(bill.items.len() - 3)].after;
        let declared = hosts.flows[flow].steady();
        let held = Contract { jitter: declared.jitter + late, ..declared };
        assert_eq!(table[way].contract, Some(held));
    }
    assert!((1..=2).contains(&table[1].most), "{table:?}");
}

const ASK: &str = "mail/ask.toml";
const ANSWER: &str = "mail/answer.toml";
const BOXED: &str = "[[mailbox]]\nname = \"answers\"";

#[test]
fn others_at_a_server_or_a_program_are_refused() {
    let (ask, answer, boxed) = (ASK, ANSWER, BOXED);
    let thief = |more: &str| {
        let thief = "[[process]]\nname = \"thief\"\nprogram = \"spin\"\npriority = 1\n";
        format!("{thief}{more}\n{BOXED}")
    };
    refused(
        &[(ask, boxed, &thief("vcpu = \"carry\""))],
        "`questions` has no bound: `mail` shares its VCPU with another process",
        "give it one of its own: others on the same VCPU delay it",
    );
    refused(
        &[(ask, boxed, &thief("uses = [\"carry\"]"))],
        "`questions` has no bound: `thief` may put threads on the VCPU of `mail`",
        "take the VCPU out of the `uses` of the other process",
    );
    refused(
        &[(
            ask,
            "threads = 2                    # it, and",
            "threads = 4                    # it, and",
        )],
        "`questions` has no bound: `mail` may have 4 threads on one VCPU",
        "write `threads = 2`, and move the other threads to a process of their own: their use of \
         the VCPU delays the pipe",
    );
    refused(
        &[(ask, "events = 1\n", "")],
        "`questions` has no bound: `mail` cannot hear of messages in mailboxes",
        "write `threads = 2` and `events = 1`",
    );
    refused(
        &[(answer, "vcpu = \"answer\"\n", "vcpu = \"answer\"\nthreads = 2\n")],
        "`questions` has no bound: `answerer` may have 2 threads on one VCPU",
        "write `threads = 1`, and move the other threads to a process of their own: their use of \
         the VCPU delays the pipe",
    );
}

/// A simulated router that started again gave memory to its controller that an older transfer still
/// had. After the USB server started again, no message went over its link.
#[test]
fn programs_at_links_that_start_again_are_refused() {
    let supervisor = "[[process]]\nname = \"supervisor\"\npriority = 63\nvcpu = \"rescue\"\n\
                      [[vcpu]]\nname = \"rescue\"\nbudget = \"20us\"\nperiod = \"20ms\"\n";
    for (name, count) in [("mail", "3"), ("usbd", "\"always\"")] {
        let process = format!("[[process]]\nname = \"{name}\"\n");
        let again = format!("{supervisor}{process}restart = {count}\n");
        let text = example(ANSWER);
        let start = text.find(&format!("name = \"{name}\"")).unwrap();
        let line = text[..start].lines().last().unwrap();
        let own = format!("{line}\nname = \"{name}\"\n");
        refused(
            &[(ANSWER, &own, &again)],
            &format!(
                "`questions` has no bound: `{name}` in `right` may be restarted, and forgets which \
                 memory `bridge` has"
            ),
            &format!("remove `restart` from it in `{ANSWER}`"),
        );
        let list = example(TWO);
        let (_, flows) = list.split_at(list.find("[[flow]]").unwrap());
        refused(
            &[(TWO, flows, ""), (ANSWER, &own, &again)],
            &format!("`{name}` in `right` may be restarted, and forgets which memory `bridge` has"),
            &format!("remove `restart` from it in `{ANSWER}`"),
        );
    }
}

#[test]
fn mailboxes_links_and_mutexes_that_no_flow_counts_are_refused() {
    let (ask, answer, boxed) = (ASK, ANSWER, BOXED);
    let third = "[[mailbox]]\nname = \"third\"\nmessages = 1\n[[mailbox]]\nname = \"answers\"";
    let both = "uses = [\"questions\", \"answers\"]";
    refused(
        &[(answer, boxed, third), (answer, both, "uses = [\"questions\", \"answers\", \"third\"]")],
        "`questions` has no bound: `answerer` in `right` also uses the mailbox `third`, and no \
         flow",
        "declare a `[[flow]]` of its messages, or take it out of the `uses` of `answerer`",
    );
    let wide = "uses = [\n    \"questions\", \"answers\",";
    refused(
        &[(ask, boxed, third), (ask, wide, "uses = [\n    \"third\", \"questions\", \"answers\",")],
        "`questions` has no bound: `mail` in `left` also uses the mailbox `third`, and no flow",
        "declare a `[[flow]]` of its messages, or take it out of the `uses` of `mail`",
    );
    refused(
        &[
            (ask, both, "uses = [\"questions\", \"answers\", \"link1.asks\"]"),
            (
                ask,
                boxed,
                "[[segment]]\nname = \"link1.asks\"\nsize = \"4K\"\n[[mailbox]]\nname = \
                 \"answers\"",
            ),
        ],
        "`questions` has no bound: `asker` in `left` also uses link 1, and no flow",
        "declare a `[[flow]]` of what it carries there, or take the link out of its `uses`",
    );
    refused(
        &[
            (ask, both, "uses = [\"questions\", \"answers\", \"lock\"]"),
            (ask, wide, "uses = [\n    \"lock\", \"questions\", \"answers\","),
            (ask, boxed, "[[semaphore]]\nname = \"lock\"\n[[mailbox]]\nname = \"answers\""),
        ],
        "`questions` has no bound: `mail` may wait for the mutex `lock`, which no bill counts",
        "take `lock` out of the `uses` of `mail`",
    );
}

#[test]
fn what_finds_no_room_is_refused() {
    let bursts = (TWO, "jitter = \"9ms\"", "burst = 3\njitter = \"9ms\"");
    let late = (TWO, "latency = \"9ms\"", "latency = \"20ms\"");
    let [wide_ask, wide_answer] = [ASK, ANSWER].map(|file| (file, "messages = 2", "messages = 4"));
    refused(
        &[wide_ask, bursts, late],
        "`answers`: 4 messages may be in the mailbox of `right:mail`, which holds 2",
        "write `messages = 4` or more, or send fewer messages",
    );
    refused(
        &[
            wide_ask,
            (ASK, "messages = 8", "messages = 2"),
            wide_answer,
            bursts,
            late,
            (TWO, "slots = 3", "slots = 6"),
        ],
        "`answers`: 5 messages may be in the mailbox of `left:asker`, which holds 2",
        "write `messages = 5` or more, or send fewer messages",
    );
    let needed = 3 + OWN as u64;
    refused(
        &[("mail/ask.toml", "size = \"64K\"", "size = \"24K\"")],
        &format!(
            "`questions` has no bound: `link.data` of `left` has no room for {needed} messages of \
             a router"
        ),
        "write at least `size = \"28K\"` in `mail/ask.toml`",
    );
    refused(
        &[(TWO, "slots = 3", "slots = 41")],
        "`questions` has no bound: `left:mail` has memory for 64 messages; 65 are needed",
        "write smaller `slots`",
    );
    refused(
        &[(TWO, "slots = 3", "slots = 2"), bursts, late, wide_ask, wide_answer],
        "`answers`: 4 messages may need memory at `left:usbd`, and there is some for 2",
        "lend memory for 4 (`slots`), or send fewer messages",
    );
}

#[test]
fn what_comes_too_fast_has_no_bill() {
    let plan = NetworkPlan::of(&changed(TWO, &[(TWO, "period = \"10ms\"", "period = \"100us\"")]));
    assert!(!plan.holds());
    assert_eq!(
        plan.refused[0].items()[0].title,
        "`questions` has no bound: `asker` in `left` cannot keep up with the messages of the flows"
    );
    let late = NetworkPlan::of(&changed(TWO, &[(TWO, "latency = \"9ms\"", "latency = \"2ms\"")]));
    assert!(late.refused[0].items()[0].title.ends_with("at most 2.000 ms is wanted"));
}

/// A sender may fill a mailbox at once, whatever its flow says. The server hears of each message,
/// so its item counts the room of the mailbox.
#[test]
fn a_mailbox_with_more_room_delays_the_flows_of_its_server() {
    let narrow = bills(&changed(TWO, &[]));
    let wide = bills(&changed(TWO, &[(ASK, "messages = 2", "messages = 12")]));
    for (wide, narrow) in wide.iter().zip(&narrow) {
        let longer = |at: usize| wide.items[at].value > narrow.items[at].value;
        let left = wide.items.iter().position(|it| it.name == "mail" && it.host == Some(0));
        assert!(left.is_some_and(longer));
    }
}

/// Returns the item of the program behind the last mailbox of each flow of the list with two
/// senders.
fn ends(hosts: &Hosts) -> Vec<FlowItem> {
    let flows = NetworkPlan::of(hosts).flows;
    let bills = flows.into_iter().map(|it| it.bill.unwrap_or_else(|none| panic!("{none:?}")));
    bills.map(|bill| bill.items[bill.items.len() - 2].clone()).collect()
}

/// The mailbox and the program behind it serve both senders: what one sends more is counted for
/// the other.
#[test]
fn a_mailbox_holds_the_messages_of_all_its_senders() {
    let hosts = changed(MANY, &[]);
    let plan = NetworkPlan::of(&hosts);
    assert!(plan.holds(), "{:?}", plan.refused);
    assert_eq!([0, 1, 2, 3].map(|flow| hosts.source(flow)), [0, 1, 0, 0]);
    let usual = ends(&hosts);
    assert_eq!(usual[0], FlowItem { after: usual[0].after, ..usual[1].clone() });
    let from_right = "from = \"right:asker\"\nbytes = 84\n";
    let bursts = format!("{from_right}burst = 3\n");
    let wide = ("mail/ask-second.toml", "messages = 2 ", "messages = 4 ");
    let more = ends(&changed(MANY, &[(MANY, from_right, &bursts), wide]));
    let counts = |items: &[FlowItem]| [0, 1].map(|flow: usize| items[flow].waiting);
    let (Some((before, room)), Some(_)) = (usual[0].waiting, more[0].waiting) else {
        panic!("no room: {usual:?}")
    };
    assert_eq!(counts(&usual), [Some((before, 16)); 2]);
    assert_eq!(counts(&more), [Some((before + 2, room)); 2]);
    assert!(more[0].value > usual[0].value, "the other's burst delays this flow");
    // Room for one sender is too little for two.
    let narrow = (SHARED, "messages = 16", &*format!("messages = {}", before - 1));
    let plan = NetworkPlan::of(&changed(MANY, &[narrow]));
    let title = format!(
        "`left-asks`: {before} messages may be in the mailbox of `hub:answerer`, which holds {}",
        before - 1
    );
    assert_eq!(plan.refused[0].items()[0].title, title);
}

#[test]
fn a_router_delivers_the_flows_of_one_mailbox() {
    let mut hosts = changed(MANY, &[]);
    NetworkPlan::of(&hosts).instruct(&mut hosts);
    let (boxes, table, _) = told(&hosts, 1);
    assert_eq!(boxes, ["questions", "answers", "receipts"].map(BoxName::new));
    let all = places(&table);
    assert_eq!(all[..2], [0, 1].map(|at| (Gate::Link(at), at as u8 + 1, Gate::Mailbox(0))));
    // The router lets each flow in as the bill says, so that a cable that is back floods no other.
    let NetworkPlan { flows, .. } = NetworkPlan::of(&hosts);
    for (flow, way) in table[..2].iter().enumerate() {
        let bill = flows[flow].bill.as_ref().unwrap();
        let late = bill.items[bill.items.len() - 3].after;
        let declared = hosts.flows[flow].steady();
        let held = Contract { jitter: declared.jitter + late, ..declared };
        assert_eq!(way.contract, Some(held));
    }
}

/// No bill gets shorter when work or messages are more.
#[test]
fn more_work_and_more_messages_are_never_faster() {
    let mut random = Random::new(19);
    let least = bills(&changed(TWO, &[])).map(|bill| bill.total);
    for _ in 0..40 {
        let work = format!("work = \"{}us\"", random.between(5, 12));
        let period = format!("period = \"{}us\"", random.between(6_000, 10_000));
        let burst = format!("bytes = 84\nburst = {}", random.between(1, 3));
        let hosts = changed(
            TWO,
            &[
                (TWO, "work = \"5us\"", &work),
                (TWO, "period = \"10ms\"", &period),
                (TWO, "bytes = 84 ", &format!("{burst} ")),
                (TWO, "bytes = 84\np", &format!("{burst}\np")),
            ],
        );
        for (bill, least) in bills(&hosts).iter().zip(least) {
            assert!(bill.total >= least, "{work} {period} {burst}: {} < {least}", bill.total);
        }
    }
}
