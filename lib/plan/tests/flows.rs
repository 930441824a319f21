//! Bills of flows over cables: what they count, and what is refused where.

use diapason_abi::Nanos;
use diapason_plan::{FlowBill, FlowItem, FlowStage, NetworkPlan, Plan};
use diapason_random::Random;
use diapason_system::{Description, Hosts, parse_any};
use std::fs;
use std::path::PathBuf;

/// Returns a file of the examples.
fn example(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    fs::read_to_string(path).unwrap()
}

/// Returns the example, its list and its hosts changed by `change`, which gets the name of a file
/// and its text.
fn changed(change: &dyn Fn(&str, String) -> String) -> Hosts {
    let find = |file: &str| Ok((file.to_owned(), change(file, example(file))));
    match parse_any("flow.toml", &change("flow.toml", example("flow.toml")), find) {
        Ok(Description::Several(hosts)) => hosts,
        other => panic!("{other:?}"),
    }
}

/// Returns the example with one text for another in one file.
fn with(file: &str, from: &str, to: &str) -> Hosts {
    changed(&|name, text| {
        if name != file {
            return text;
        }
        assert!(text.contains(from), "{file} has no {from}");
        text.replace(from, to)
    })
}

/// Returns the example with more flows behind it.
fn beside(more: &str) -> Hosts {
    changed(&|name, text| if name == "flow.toml" { text + more } else { text })
}

fn bill(hosts: &Hosts) -> FlowBill {
    let plan = NetworkPlan::of(hosts);
    plan.flows[0].bill.clone().unwrap_or_else(|none| panic!("{none:?}"))
}

/// Checks that the example with this change is refused at the name of its flow, with these words.
#[track_caller]
fn refused(hosts: &Hosts, title: &str, help: &str) {
    let plan = NetworkPlan::of(hosts);
    let items: Vec<_> = plan.refused.iter().flat_map(|found| found.items()).collect();
    let said = items.first().map(|item| (item.title.to_owned(), item.help.to_owned()));
    assert_eq!(said, Some((title.to_owned(), help.to_owned())));
    let line = 1 + example("flow.toml").lines().position(|line| line == "[[flow]]").unwrap() + 1;
    assert_eq!(items[0].line, line);
    assert!(plan.forms() && !plan.holds());
}

#[test]
fn a_bill_has_every_hop_and_adds_up() {
    let hosts = with("flow.toml", "8ms", "8ms");
    for host in &hosts.hosts {
        assert!(Plan::of(&host.system).holds(), "{}", host.name);
    }
    let plan = NetworkPlan::of(&hosts);
    assert!(plan.holds(), "{:?}", plan.refused);
    let bill = bill(&hosts);
    let places: Vec<String> = bill
        .items
        .iter()
        .map(|item| format!("{} {}", item.place(&hosts), item.stage.word()))
        .collect();
    let hop = |from: &str, cable: &str, to: &str, program: &str| {
        [
            format!("{from} sends"),
            format!("{cable} cable"),
            format!("{to} told"),
            format!("{to} receives"),
            format!("{program} program"),
        ]
    };
    let mut expected = vec!["asker:ping program".to_owned()];
    expected.extend(hop("asker:dbcd", "asks", "hub:usbd", "hub:router"));
    expected.extend(hop("hub:usbd", "answers", "answerer:dbcd", "answerer:ping"));
    expected.extend(hop("answerer:dbcd", "answers", "hub:usbd", "hub:router"));
    expected.extend(hop("hub:usbd", "asks", "asker:dbcd", "asker:ping"));
    expected.push("all hosts clocks".to_owned());
    assert_eq!(places, expected);
    let mut sum = Nanos::ZERO;
    for item in &bill.items {
        sum += item.value;
        assert_eq!(item.after, sum);
        assert!(item.value > Nanos::ZERO, "{item:?}");
    }
    assert_eq!(bill.total, sum);
    let works = Nanos::from_micros(2 * 4 * 4 + 3 * 8 + 3 * 6 + 2 * 2);
    assert!(bill.total > works && bill.total < Nanos::from_millis(8), "{}", bill.total);
}

#[test]
fn what_is_late_is_refused_with_its_longest_item() {
    let hosts = with("flow.toml", "latency = \"8ms\"", "latency = \"500us\"");
    let bill = bill(&hosts);
    let longest = bill.items.iter().max_by_key(|item| item.value).unwrap();
    let help = format!(
        "write `latency = \"{}us\"`, or shorten the longest item, {} of `{}`",
        bill.total.0.div_ceil(1_000),
        longest.stage.word(),
        longest.place(&hosts)
    );
    let title = format!("messages of `ping` may take {}; at most 500.000 us is wanted", bill.total);
    refused(&hosts, &title, &help);
}

#[test]
fn what_a_bill_needs_is_asked_for() {
    let work = |name: &str, file: &str| {
        let from = format!("name = \"{name}\"");
        let hosts = with(file, &from, "name = \"something\"");
        let title = format!("`ping` has no bound: nothing says how long `{name}` takes");
        let help = format!("add `[[work]]` with `name = \"{name}\"` and `worst = \"40us\"`");
        refused(&hosts, &title, &help);
    };
    refused(
        &with("flow.toml", "work = \"6us\"\n", ""),
        "`ping` has no bound: nothing says how long `ping` takes for a message",
        "add `work = \"10us\"` where the `[[flow]]` names it: the longest it takes",
    );
    work("usbd.link", "links/hub.toml");
    work("dbcd.look", "links/answerer.toml");
    refused(
        &with("links/asker.toml", "worst = \"3us\"", "worst = \"4us\""),
        "`ping` has no bound: the works `link.check` and `link.seal` take up to 8.000 us, and \
         the flow says 6.000 us for `ping`",
        "write `work = \"8000ns\"`, or a smaller `worst` of the works",
    );
}

/// Returns the hub with a link whose messages are apart from a wake-up.
fn apart(wakeup: &str, message: &str) -> Hosts {
    let works = format!(
        "name = \"usbd.link\"\nworst = \"{wakeup}\"\n\n\
         [[work]]\nname = \"usbd.link.message\"\nworst = \"{message}\""
    );
    with("links/hub.toml", "name = \"usbd.link\"\nworst = \"3us\"", &works)
}

#[test]
fn each_message_of_a_link_counts_beside_its_wake_up() {
    let served = |hosts: &Hosts| {
        let at_hub = |item: &&FlowItem| item.place(hosts) == "hub:usbd";
        let items = bill(hosts).items;
        items.iter().filter(at_hub).map(|item| item.value.0).sum::<u64>()
    };
    let [short, long] = ["100ns", "600ns"].map(|message| served(&apart("1us", message)));
    assert!(short < long, "{short} and {long} ns");
    let whole = with("links/hub.toml", "worst = \"3us\"", "worst = \"1us\"");
    assert!(served(&whole) < short, "nothing is saved by messages that are apart");
    refused(
        &apart("1us", "2ms"),
        "`ping` has no bound: `usb-link0` of `usbd` in `hub` cannot keep up with the messages of \
         the flows",
        "give `usb-link0` a larger `utilization`, or send fewer messages",
    );
}

#[test]
fn a_server_that_does_not_work_for_the_program_is_found() {
    refused(
        &with(
            "links/hub.toml",
            "name = \"usb-link1\"\nkind = \"io\"\nutilization = \"15%\"\ninterval = \"35us\"\n\
             serves = [\"route\"]",
            "name = \"usb-link1\"\nkind = \"io\"\nutilization = \"15%\"\ninterval = \"35us\"\n\
             serves = [\"usb-manage\"]",
        ),
        "`ping` has no bound: no I/O VCPU `usb-link1` of `usbd` serves `router`",
        "add the VCPU of `router` to `serves` of `usb-link1`, in `uses` of `usbd`",
    );
}

#[test]
fn whoever_else_may_send_or_run_there_is_found() {
    let thief = "[[process]]\nname = \"thief\"\nprogram = \"spin\"\npriority = 1\n";
    let with_thief = |more: &str| {
        let thief = format!("{thief}{more}\n[[process]]\nname = \"router\"");
        with("links/hub.toml", "[[process]]\nname = \"router\"", &thief)
    };
    for object in ["link0.asks", "link0.done", "link0.ask", "link.ready", "link.data"] {
        let clients =
            if object.starts_with("link.") { "all links of a host have" } else { "a link has" };
        refused(
            &with_thief(&format!("uses = [\"{object}\"]")),
            &format!("`ping` has no bound: `thief` in `hub` may use `{object}` of `asks`, too"),
            &format!("take `{object}` out of its `uses` in `links/hub.toml`: {clients} one client"),
        );
    }
    refused(
        &with(
            "flow.toml",
            "process = \"hub:router\"\nby = \"asks\"",
            "process = \"hub:usbd\"\nby = \"asks\"",
        ),
        "`ping` has no bound: `usbd` in `hub` serves `asks`, and passes no messages on",
        "name the process of `links/hub.toml` that uses `link0.asks`",
    );
    refused(
        &with_thief("vcpu = \"route\""),
        "`ping` has no bound: `router` shares its VCPU with another process",
        "give it one of its own: others on the same VCPU delay it",
    );
    refused(
        &with_thief("uses = [\"usb-link0\"]"),
        "`ping` has no bound: `thief` may put threads on `usb-link0`, which serves a link",
        "take `usb-link0` out of the `uses` of `thief`",
    );
}

#[test]
fn a_link_without_a_flow_is_found() {
    let text = example("flow.toml");
    let (before, hops) = text.split_once("[[flow.hop]]").unwrap();
    let first = hops.split("[[flow.hop]]").next().unwrap().to_owned();
    let short = format!("{before}[[flow.hop]]{first}");
    let hosts = changed(&|name, text| if name == "flow.toml" { short.clone() } else { text });
    refused(
        &hosts,
        "`ping` has no bound: `router` in `hub` also uses link 1, and no flow",
        "declare a `[[flow]]` of what it carries there, or take the link out of its `uses`",
    );
}

#[test]
fn messages_that_find_no_memory_are_refused() {
    let hosts = with("flow.toml", "slots = 4", "slots = 1");
    let plan = NetworkPlan::of(&hosts);
    let found =
        plan.refused.iter().flat_map(|found| found.items()).next().unwrap().title.to_owned();
    assert!(
        found.contains("messages may need memory at `hub:usbd`, and there is some for 1"),
        "{found}"
    );
    // With many at once, the cable and its controllers are too small.
    let hosts = with("flow.toml", "period = \"4ms\"", "period = \"4ms\"\nburst = 64");
    assert!(!NetworkPlan::of(&hosts).holds());
}

/// A second flow that asks the other way takes time from the first, and both have bills.
const BACK: &str = "[[flow]]\nname = \"back\"\nfrom = \"answerer:ping\"\nbytes = 1024\n\
    period = \"20ms\"\nwork = \"6us\"\n[[flow.hop]]\nprocess = \"hub:router\"\nby = \"answers\"\n\
    slots = 4\nwork = \"2us\"\n[[flow.hop]]\nprocess = \"asker:ping\"\nby = \"asks\"\nslots = 4\n\
    work = \"6us\"\n[[flow.hop]]\nprocess = \"hub:router\"\nby = \"asks\"\nslots = 4\n\
    work = \"2us\"\n[[flow.hop]]\nprocess = \"answerer:ping\"\nby = \"answers\"\nslots = 4\n\
    work = \"6us\"\n";

#[test]
fn a_flow_beside_it_counts() {
    let alone = bill(&beside(""));
    let plan = NetworkPlan::of(&beside(BACK));
    let both: Vec<&FlowBill> = plan.flows.iter().filter_map(|it| it.bill.as_ref().ok()).collect();
    assert_eq!(both.len(), 2);
    for (with, without) in both[0].items.iter().zip(&alone.items) {
        assert!(with.value >= without.value, "{with:?} {without:?}");
    }
    assert!(both[0].total > alone.total);
}

/// More traffic, longer works and slower processors never make a bill shorter.
#[test]
fn bills_grow_with_what_they_count() {
    let sized = |period_us: u64, bytes: u64, work_us: u64, mhz: u64| {
        changed(&|name, text| match name {
            "flow.toml" => text
                .replace("period = \"4ms\"", &format!("period = \"{period_us}us\""))
                .replace("bytes = 1024", &format!("bytes = {bytes}"))
                .replace("2400MHz", &format!("{mhz}MHz")),
            "links/hub.toml" => {
                text.replace("worst = \"3us\"", &format!("worst = \"{work_us}us\""))
            }
            _ => text,
        })
    };
    let total = |hosts: &Hosts| {
        let plan = NetworkPlan::of(hosts);
        plan.flows[0].bill.as_ref().map_or(Nanos::FOREVER, |bill| bill.total)
    };
    for seed in 0..3 {
        let mut random = Random::stream(19, seed);
        let period = 4_000 + random.below(3_000);
        let (bytes, work, mhz) = (100 + random.below(4_000), 1 + random.below(4), 1_200);
        let least = total(&sized(period, bytes, work, mhz));
        for more in [
            sized(period - random.below(500), bytes, work, mhz),
            sized(period, bytes + random.below(4_000), work, mhz),
            sized(period, bytes, work + random.below(3), mhz),
            sized(period, bytes, work, mhz - random.below(200)),
        ] {
            let more = total(&more);
            assert!(more >= least, "seed {seed}: {more} less than {least}");
        }
    }
}

#[test]
fn the_delay_of_a_cable_counts() {
    let cable = |hosts: &Hosts| {
        let bill = bill(hosts);
        bill.items.iter().find(|item| item.stage == FlowStage::Cable).unwrap().value
    };
    let debug = cable(&with("flow.toml", "8ms", "8ms"));
    let slow = "ends = [\"asker:xhci:debug\", \"hub:xhci:1\"]";
    let delayed = cable(&with("flow.toml", slow, &format!("{slow}\ndelay = \"11us\"")));
    assert_eq!(delayed, debug + Nanos::from_micros(10));
}
