//! Flows that end with a pipe to a device: their bills end at the device, and the messages that
//! leave the last program are within the contract of the pipe.

use crate::piped::{bill, parsed};
use diapason_abi::Nanos;
use diapason_plan::{FlowStage, NetworkPlan, Plan};
use diapason_system::Hosts;

/// Lists that end with frames of CAN, and with packets for an endpoint, and the file of the host
/// there.
const CAN: [&str; 2] = ["sensor-can.toml", "ethernet/actuating.toml"];
const ENDPOINT: [&str; 2] = ["sensor-actuator.toml", "links/acting.toml"];

/// Returns a list with one text for another in one of its files.
fn with(list: &str, file: &str, from: &str, to: &str) -> Result<Hosts, String> {
    parsed(list, &|name, text| {
        if name != file {
            return text;
        }
        assert!(text.contains(from), "{file} has no {from}");
        text.replace(from, to)
    })
}

/// Returns the first refusal of the network: its title and its help.
fn refusal(hosts: &Hosts) -> String {
    let found = NetworkPlan::of(hosts).refused;
    let items: Vec<_> = found.iter().flat_map(|found| found.items()).collect();
    let first = items.first().unwrap_or_else(|| panic!("nothing is refused"));
    format!("{}; {}", first.title, first.help)
}

#[test]
fn the_bill_ends_with_that_of_the_pipe_and_adds_up() {
    for [list, _] in [CAN, ENDPOINT] {
        let hosts = parsed(list, &|_, text| text).unwrap();
        assert!(hosts.hosts.iter().all(|host| Plan::of(&host.system).holds()), "{list}");
        assert!(NetworkPlan::of(&hosts).holds(), "{list}");
        let bill = bill(&hosts);
        let piped = Plan::of(&hosts.hosts[1].system).pipes[0].bill.clone().unwrap();
        let last = bill.items.last().unwrap();
        assert_eq!((last.stage, last.value), (FlowStage::Pipe, piped.total), "{list}");
        let sum = bill.items.iter().fold(Nanos::ZERO, |sum, item| sum + item.value);
        assert_eq!((bill.total, bill.longest, last.after), (sum, sum, sum), "{list}");
        // A run measures the programs between the two pipes.
        let between = bill.between_pipes();
        assert_eq!(between.longest + piped.total + bill.items[0].value, bill.longest, "{list}");
        assert_eq!(between.items.last().unwrap().after, between.total, "{list}");
    }
}

#[test]
fn the_last_program_has_time_to_write() {
    for [list, _] in [CAN, ENDPOINT] {
        let program = |hosts: &Hosts| {
            let items = bill(hosts).items;
            items.iter().rfind(|item| item.stage == FlowStage::Program).unwrap().value
        };
        let hosts = parsed(list, &|_, text| text).unwrap();
        let mut free = hosts.clone();
        // The pipe is another program's then, and the flow ends at its last program.
        free.flows[0].into = None;
        let pipe = &mut free.hosts[1].system.pipes[0];
        pipe.ends_flow = false;
        pipe.end = diapason_system::PipeEnd::Here(u16::MAX);
        assert!(program(&hosts) > program(&free), "{list}");
    }
}

#[test]
fn frames_of_can_are_within_the_rate_and_the_burst_of_the_pipe() {
    let [list, file] = CAN;
    for (from, to) in [("rate = 401", "rate = 400"), ("burst = 7", "burst = 4")] {
        let said = refusal(&with(list, file, from, to).unwrap());
        assert!(said.contains("its last program may write 5 at once and 401 a second"), "{said}");
        assert!(said.ends_with("write `rate = 401` and `burst = 5` in `commands`"), "{said}");
    }
    assert!(NetworkPlan::of(&with(list, file, "burst = 7", "burst = 5").unwrap()).holds());
}

#[test]
fn packets_for_an_endpoint_are_apart_by_the_period_of_the_pipe() {
    let [list, file] = ENDPOINT;
    let said = refusal(&with(list, file, "period = \"12ms\"", "period = \"16ms\"").unwrap());
    assert!(said.contains("its last program may write two packets within 15.0"), "{said}");
    assert!(said.contains("and `commands` says that they are 16.000 ms apart"), "{said}");
    assert!(said.contains("write `period = \"150"), "{said}");
    assert!(
        NetworkPlan::of(&with(list, file, "period = \"12ms\"", "period = \"15ms\"").unwrap())
            .holds()
    );
}

#[test]
fn a_flow_is_late_with_its_pipe() {
    let [list, file] = ENDPOINT;
    let late = with(list, list, "latency = \"30ms\"", "latency = \"21ms\"").unwrap();
    assert!(refusal(&late).contains("the `latency` of `commands` leaves 1.000 ms"));
    // Without a latency of its own the pipe may take what is left.
    let late = parsed(list, &|name, text| match name {
        _ if file == name => text.replace("latency = \"20ms\"\n", ""),
        _ => text.replace("latency = \"30ms\"", "latency = \"21ms\""),
    });
    let said = refusal(&late.unwrap());
    assert!(said.contains("at most 21.000 ms is wanted"), "{said}");
    assert!(said.contains("the longest item, pipe of `acting:commands`"), "{said}");
}

#[test]
fn works_of_the_last_program_are_in_its_work_for_a_message() {
    let [list, _] = ENDPOINT;
    let said = refusal(&with(list, list, "work = \"30us\"", "work = \"12us\"").unwrap());
    let title = "the works `sink.message` and `link.check` and `link.seal` take up to 13.000 us";
    assert!(said.contains(title), "{said}");
    let [list, file] = CAN;
    let works = "[[work]]\nname = \"socket.take\"\nworst = \"6us\"\n\n\
                 [[work]]\nname = \"can.message\"\nworst = \"5us\"\n";
    let said = refusal(
        &parsed(list, &|name, text| match name {
            _ if file == name => format!("{text}\n{works}"),
            _ => text.replace("work = \"40us\"", "work = \"9us\""),
        })
        .unwrap(),
    );
    let title = "the works `socket.take` and `can.message` take up to 11.000 us, and `work` of";
    assert!(said.contains(title), "{said}");
}

#[test]
fn what_a_flow_cannot_end_with_is_refused_where_it_stands() {
    let [list, _] = ENDPOINT;
    let refused = |from: &str, to: &str, said: &str| {
        let found = with(list, list, from, to).unwrap_err();
        assert!(found.contains(said) && found.contains(list), "{found}");
    };
    let into = "into = \"commands\"";
    refused(into, "into = \"comands\"", "`acting` has no pipe called `comands`");
    refused(into, "into = \"\"", "`acting` has no pipe called ``");
    let other = "process = \"acting:act\"";
    refused(other, "process = \"acting:usbd\"", "`usbd` does not write the pipe `commands`");
}
