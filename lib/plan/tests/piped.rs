//! Flows that begin at a pipe from a device: their bills begin at the device, and nothing that the
//! reader does is left out.

use diapason_abi::Nanos;
use diapason_pipe::bill::What;
use diapason_plan::{FlowBill, FlowStage, NetworkPlan, Plan};
use diapason_system::{Description, Hosts, parse_any};
use std::fs;
use std::path::PathBuf;

const LISTS: [&str; 2] = ["sensor-bridge.toml", "sensor-ethernet.toml"];

/// Returns what parsing says of an example, if each of its files is changed so.
pub fn parsed(list: &str, change: &dyn Fn(&str, String) -> String) -> Result<Hosts, String> {
    let example = |name: &str| {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
        change(name, fs::read_to_string(path).unwrap())
    };
    match parse_any(list, &example(list), |file: &str| Ok((file.to_owned(), example(file)))) {
        Ok(Description::Several(hosts)) => Ok(hosts),
        Ok(_) => panic!("{list} is one host"),
        Err(found) => Err(found.to_string()),
    }
}

fn hosts(list: &str) -> Hosts {
    parsed(list, &|_, text| text).unwrap()
}

/// Returns an example with one text for another in its list.
fn with(list: &str, from: &str, to: &str) -> Result<Hosts, String> {
    parsed(list, &|name, text| {
        if name != list {
            return text;
        }
        assert!(text.contains(from), "{list} has no {from}");
        text.replace(from, to)
    })
}

pub fn bill(hosts: &Hosts) -> FlowBill {
    NetworkPlan::of(hosts).flows[0].bill.clone().unwrap_or_else(|none| panic!("{none:?}"))
}

#[test]
fn the_bill_begins_with_that_of_the_pipe_and_adds_up() {
    for list in LISTS {
        let hosts = hosts(list);
        assert!(hosts.hosts.iter().all(|host| Plan::of(&host.system).holds()), "{list}");
        assert!(NetworkPlan::of(&hosts).holds(), "{list}");
        let bill = bill(&hosts);
        let piped = Plan::of(&hosts.hosts[0].system).pipes[0].bill.clone().unwrap();
        let first = &bill.items[0];
        assert_eq!((first.stage, first.value), (FlowStage::Pipe, piped.total), "{list}");
        assert_eq!(first.place(&hosts), "board:samples");
        let sum = bill.items.iter().fold(Nanos::ZERO, |sum, item| sum + item.value);
        assert_eq!((bill.total, bill.longest), (sum, sum), "{list}");
        let behind = bill.between_pipes();
        assert_eq!(behind.longest + piped.total, bill.longest, "{list}");
        let last = |bill: &FlowBill| bill.items.last().unwrap().after;
        assert_eq!(last(&behind) + piped.total, last(&bill), "{list}");
    }
}

#[test]
fn the_reader_has_time_to_send_and_messages_are_as_late_as_the_pipe_makes_them() {
    for list in LISTS {
        let hosts = hosts(list);
        let mut alone = hosts.hosts[0].system.clone();
        let sends = Plan::of(&alone).pipes[0].bill.clone().unwrap();
        alone.pipes[0].sent_on = None;
        let reads = Plan::of(&alone).pipes[0].bill.clone().unwrap();
        assert!(sends.value(What::User) > reads.value(What::User), "{list}");
        // A message may catch up with the one before it by what the pipe varies.
        let bill = bill(&hosts);
        let receives = bill.items.iter().find(|item| item.stage == FlowStage::Receives);
        let (needed, _) = receives.and_then(|item| item.waiting).unwrap();
        assert!(needed >= 2, "{list}: {needed}");
    }
}

#[test]
fn a_flow_is_late_with_its_pipe() {
    for list in LISTS {
        let hosts = with(list, "latency = \"8ms\"", "latency = \"5ms\"").unwrap();
        let found = NetworkPlan::of(&hosts).refused;
        let items: Vec<_> = found.iter().flat_map(|found| found.items()).collect();
        let [item] = &items[..] else { panic!("{list}: {items:?}") };
        assert!(item.title.ends_with("at most 5.000 ms is wanted"), "{}", item.title);
        assert!(item.help.contains("the longest item, pipe of `board:samples`"), "{}", item.help);
    }
}

#[test]
fn a_program_that_also_reads_a_pipe_is_in_no_flow_of_its_own() {
    for list in LISTS {
        let own = "period = \"2500us\"\nwork = \"20us\"";
        let hosts = with(list, "pipe = \"samples\" ", &format!("{own} ")).unwrap();
        let found = NetworkPlan::of(&hosts).refused;
        let items: Vec<_> = found.iter().flat_map(|found| found.items()).collect();
        let title = "`samples` has no bound: `onward` also has pipes, which no flow counts";
        assert!(items.iter().any(|item| item.title == title), "{list}: {items:?}");
        assert!(items[0].help.contains("write `pipe` in the `[[flow]]`"), "{}", items[0].help);
    }
}

#[test]
fn all_that_the_reader_declares_is_in_the_work_of_its_pipe() {
    let board = "links/board.toml";
    let (from, to) =
        ("name = \"link.seal\"\nworst = \"5us\"", "name = \"link.seal\"\nworst = \"9us\"");
    let hosts = parsed(LISTS[0], &|name, text| {
        if name == board { text.replace(from, to) } else { text }
    });
    let found = NetworkPlan::of(&hosts.unwrap()).refused;
    let items: Vec<_> = found.iter().flat_map(|found| found.items()).collect();
    let title = "`samples` has no bound: the works `sensor.message` and `link.check` and \
                 `link.seal` take up to 21.000 us, and the pipe says 20.000 us for `onward`";
    assert!(items.iter().any(|item| item.title == title), "{items:?}");
}

#[test]
fn what_a_pipe_cannot_begin_is_refused_where_it_stands() {
    let list = LISTS[0];
    let refused = |from: &str, to: &str, said: &str| {
        let found = with(list, from, to).unwrap_err();
        assert!(found.contains(said) && found.contains(list), "{found}");
    };
    let pipe = "pipe = \"samples\" ";
    for key in ["period = \"2ms\"", "rate = 400", "burst = 2", "jitter = \"1ms\"", "work = \"9us\""]
    {
        let name = key.split(' ').next().unwrap();
        refused(pipe, &format!("{key}\n{pipe}"), &format!("a flow with `pipe` and `{name}`"));
    }
    refused(pipe, &format!("offset = \"1us\"\n{pipe}"), "a flow with `pipe` and `offset`");
    refused("pipe = \"samples\"", "pipe = \"sample\"", "`board` has no pipe called `sample`");
    refused("from = \"board:onward\"", "from = \"cabinet:end\"", "`cabinet` has no pipe called");
    let twice = "[[flow]]\nname = \"more\"\nfrom = \"board:onward\"\nbytes = 64\nperiod = \"9ms\"\n\
                 work = \"5us\"\n[[flow.hop]]\nprocess = \"cabinet:usbd\"\n\
                 by = \"bridge\"\nslots = 1\nwork = \"5us\"\n[[flow]]\nname = \"samples\"";
    refused(
        "[[flow]]\nname = \"samples\"",
        twice,
        "the program that reads the pipe of a flow has messages of another flow",
    );
}

#[test]
fn the_clock_of_the_device_may_be_fast() {
    for list in LISTS {
        let hosts = hosts(list);
        let drift = u64::from(hosts.hosts[0].system.usb[0].drift);
        assert!(drift > 0);
        let fast = (2_500_000 * drift).div_ceil(1_000_000);
        assert_eq!(hosts.flows[0].contract.per, Nanos(2_500_000 - fast), "{list}");
        assert_eq!(hosts.flows[0].from.work_ns, Some(20_000), "{list}");
    }
}
