//! Flows in step with the gates of an adapter: how much sooner they are promised, and that nothing
//! is promised of what is not in step.

use crate::lists::{Change, changed, example};
use diapason_contract::release::{RELEASE_SETTING, ReleaseTerms};
use diapason_plan::{FlowBill, FlowStage, NetworkPlan};
use diapason_system::Hosts;

const LIST: &str = "ethernet-gates-step.toml";
const STATION: &str = "ethernet/step-station.toml";
const OFFSET: &str = "offset = \"4500us\"";
/// The window of commands opens so long after that offset.
const OPENS: u64 = 1_500_000;
const GUARD: u64 = 710_000;

/// Returns the example with changes, and its plan.
fn plan(changes: &[Change<'_>]) -> (Hosts, NetworkPlan) {
    let hosts = changed(LIST, changes);
    let plan = NetworkPlan::of(&hosts);
    (hosts, plan)
}

fn bill(changes: &[Change<'_>]) -> FlowBill {
    plan(changes).1.flows[0].bill.clone().unwrap()
}

fn titles(changes: &[Change<'_>]) -> Vec<String> {
    let (_, plan) = plan(changes);
    plan.refused.iter().flat_map(|it| it.items()).map(|it| it.title.to_owned()).collect()
}

/// Returns the time from the beginning of a message until its frame begins on the wire, and the
/// delay of the wire.
fn left(bill: &FlowBill) -> u64 {
    let wire = bill.items.iter().find(|item| item.stage == FlowStage::Wire).unwrap();
    wire.after.0
}

/// A frame that is queued before its window has left two guards and itself after the opening,
/// however long the program and the server took.
#[test]
fn a_message_in_step_waits_for_the_next_window_only() {
    assert_eq!(titles(&[]), Vec::<String>::new());
    let in_step = bill(&[]);
    let waits = OPENS + 2 * GUARD;
    let early = in_step.step.unwrap().terms.early_ns;
    // A host's clock may gain 710 millionths on the time of the gates, and 500 ns are the wire's.
    let most = waits + early + (waits + early) * 711 / 1_000_000 + 500;
    assert!((waits..=most).contains(&left(&in_step)), "{} of {most}", left(&in_step));
    assert_eq!(in_step.step.unwrap().done_ns, Some(waits + 134 * 8));
    let other = bill(&[(LIST, OFFSET, "")]);
    assert!(other.step.is_none() && left(&other) > 2 * left(&in_step));
    // The sum of both is what the bill says, and a frame may be in the queue for longer.
    let wire = in_step.items.iter().find(|item| item.stage == FlowStage::Wire).unwrap();
    let (program, server) = (in_step.items[0].value, in_step.items[1].value);
    assert_eq!(program + server + wire.value, wire.after);
}

/// A message that may be queued too late for its window is promised for the one after.
#[test]
fn a_message_that_may_miss_its_window_is_promised_for_the_next() {
    let at = |offset: &str| left(&bill(&[(LIST, OFFSET, &format!("offset = \"{offset}\""))]));
    // The window is open from 0 to 3 ms, and a frame needs two guards before its end.
    let fits = at("400us");
    assert!(fits < 2_700_000, "{fits}");
    let misses = at("600us");
    assert!(misses > 5_400_000 + 2 * GUARD, "{misses}");
}

/// The offset counts from the beginning of a cycle, wherever `base` says that it is.
#[test]
fn an_offset_counts_from_the_base_of_the_gates() {
    let based = bill(&[(LIST, "guard = \"710us\"", "guard = \"710us\"\nbase = \"2ms\"")]);
    assert_eq!(left(&based), left(&bill(&[])));
    assert_eq!(based.step.unwrap().terms.first_ns, 500_000);
    assert_eq!(bill(&[]).step.unwrap().terms.first_ns, 4_500_000);
}

/// Frames of one priority leave in the order of their coming.
#[test]
fn a_second_flow_of_the_priority_takes_the_promise_away() {
    let camera = "name = \"camera\"\nadapter = \"nic0\"\nprocess = \"camera\"\nport = 4001\n\
                  priority = 1";
    let same = camera.replace("priority = 1", "priority = 6");
    let slower = (LIST, "period = \"8ms\"", "period = \"24ms\"");
    let more = (LIST, "S 40 3ms\", \"S 3f 3ms", "S 40 5ms\", \"S 3f 7ms");
    let period = (LIST, "period = \"6ms\"", "period = \"12ms\"");
    let latency = (LIST, "latency = \"7ms\"", "latency = \"30ms\"");
    let other = (LIST, "latency = \"12ms\"", "latency = \"30ms\"");
    let changes = [(STATION, camera, &*same), slower, more, period, latency, other];
    let beside = bill(&changes);
    let alone = bill(&changes[1..]);
    assert_eq!(beside.step.unwrap().done_ns, None);
    assert!(alone.step.unwrap().done_ns.is_some());
    // It is what a flow that is not in step has.
    let any = bill(&[&changes[..], &[(LIST, OFFSET, "")]].concat());
    assert!(left(&beside) > left(&alone) && left(&beside) >= left(&any) - 50_000);
}

/// The common time may be wrong by more, or its clock may be slewed further from the host's.
#[test]
fn a_worse_time_makes_a_release_less_sure() {
    let usual = bill(&[]);
    // Three periods of 6 ms, and 710 millionths of them.
    let terms = usual.step.unwrap().terms;
    assert!((12_780..12_800).contains(&terms.early_ns), "{}", terms.early_ns);
    let worse = bill(&[(LIST, "time_losses = 3", "time_losses = 3\ntime_drift = 400")]);
    let worse_terms = worse.step.unwrap().terms;
    assert!(worse_terms.early_ns > terms.early_ns + 10_000);
    assert!(worse_terms.late_ns > terms.late_ns + 10_000);
    assert!(left(&worse) > left(&usual));
    // All stages count with periods that are shorter by as much.
    let clocks = 6_000_000 - 6_000_000 * 710 / 1_000_000;
    let (hosts, _) = plan(&[]);
    assert!(hosts.flows[0].steady().per.0 <= clocks);
}

/// Gates without a common time go by the clock of the host, which its program has, too.
#[test]
fn gates_by_the_clock_of_the_host_need_no_common_time() {
    let text = example(LIST);
    let time = &text[text.find("time = ").unwrap()..text.find("\n[[ethernet.gates]]").unwrap()];
    let own = bill(&[(LIST, time, "")]);
    let terms = own.step.unwrap().terms;
    assert_eq!((terms.is_common, terms.early_ns), (false, 0));
    assert_eq!(left(&own), OPENS + 2 * GUARD + 500);
    assert_eq!(own.items[0].value.0 + own.items[1].value.0, terms.late_ns);
}

#[test]
fn a_program_that_is_slower_than_a_cycle_is_in_no_step() {
    let slow = (LIST, "work = \"10us\"", "work = \"400us\"");
    let short = (LIST, "S 40 3ms\", \"S 3f 3ms", "S 40 1600us\", \"S 3f 1600us");
    let offset = (LIST, OFFSET, "offset = \"1ms\"");
    let guard = (LIST, "guard = \"710us\"", "guard = \"740us\"");
    let period = (LIST, "period = \"6ms\"", "period = \"6400us\"");
    let latency = (LIST, "latency = \"7ms\"", "latency = \"40ms\"");
    let found = titles(&[slow, short, offset, guard, period, latency]);
    let start = "`commands` has no bound: a message may be in its queue at `station:nic0` ";
    assert!(found.iter().any(|it| it.starts_with(start)), "{found:#?}");
}

#[test]
fn program_and_server_are_told_the_same_times() {
    let (mut hosts, plan) = plan(&[]);
    plan.instruct(&mut hosts);
    let told = |host: usize, program: &str| {
        let mut processes = hosts.hosts[host].system.processes.iter();
        processes.find(|it| it.name == program).unwrap().setting(RELEASE_SETTING).to_vec()
    };
    let terms = ReleaseTerms::all(&told(0, "control")).next().unwrap();
    assert_eq!((terms.first_ns, terms.period_ns, terms.is_common), (4_500_000, 6_000_000, true));
    assert_eq!(told(0, "control"), told(0, "net"));
    assert_eq!((told(0, "camera"), told(1, "net")), (Vec::new(), Vec::new()));
    // A program in step learns the time later than its host.
    let after = |flow: usize| plan.promised_after(&hosts, &hosts.flows[flow]).unwrap().0;
    assert_eq!(after(0), after(1) + 5 * 6_000_000);
}
