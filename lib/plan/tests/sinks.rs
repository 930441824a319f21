//! The bill of a pipe to the endpoint of any device, and ways in which a description could make it
//! lie.

use diapason_abi::Nanos;
use diapason_pipe::bill::{Bill, What};
use diapason_pipe::meter::Meter;
use diapason_pipe::size::Bucket;
use diapason_plan::Plan;
use diapason_plan::pipes::NoBill;
use diapason_system::{Diagnostics, parse};

/// An actuator whose interrupt endpoint is written, beside a disk and a task that never stops.
const TEXT: &str = include_str!("../../../examples/actuator.toml");
/// The changes that write to the bulk endpoint instead.
const BULK: [(&str, &str); 2] =
    [("endpoint = 1 ", "endpoint = 2 "), ("bytes = 64 ", "bytes = 512 ")];

fn changed(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(TEXT.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    })
}

fn planned(changes: &[(&str, &str)]) -> Plan {
    let system = parse("actuator.toml", &changed(changes)).unwrap_or_else(|it| panic!("{it}"));
    Plan::of(&system)
}

/// Returns the bill of the pipe after these changes of the description, which hold.
fn bill(changes: &[(&str, &str)]) -> Bill {
    let plan = planned(changes);
    assert!(plan.holds(), "{:?}", plan.findings);
    *plan.pipes[0].bill.as_ref().expect("it has a bill")
}

/// Returns why the pipe has no bound after these changes, and the remedy.
fn none(changes: &[(&str, &str)]) -> String {
    let plan = planned(changes);
    assert!(!plan.holds());
    match &plan.pipes[0].bill {
        Err(NoBill::Missing(what, remedy)) => format!("{what}: {remedy}"),
        other => panic!("{other:?}"),
    }
}

/// Returns what is wrong with the description after these changes.
fn wrong(changes: &[(&str, &str)]) -> Diagnostics {
    parse("actuator.toml", &changed(changes)).expect_err("it is refused")
}

#[test]
fn a_packet_waits_for_its_writer_the_server_its_turn_and_the_device() {
    let asked = bill(&[]);
    let sum: u64 = asked.items().iter().map(|item| item.value.0).sum();
    assert_eq!(sum, asked.total.0);
    // Once in eight microframes, and anywhere in its own. Twice, because the device may say no.
    assert_eq!(asked.value(What::Bus), Nanos::from_micros(2_250));
    assert_eq!(asked.value(What::Device), Nanos::from_micros(200));
    let bulk = bill(&BULK);
    assert!(bulk.value(What::Bus) < Nanos::from_micros(500), "{:?}", bulk.value(What::Bus));
}

#[test]
fn a_device_that_says_not_now_for_longer_counts_for_as_long() {
    let usual = bill(&[]);
    let slower = bill(&[("takes = \"200us\" ", "takes = \"700us\" ")]);
    assert_eq!(slower.value(What::Device), Nanos::from_micros(700));
    // The packet before it takes as much longer.
    let most = usual.total + Nanos::from_micros(500);
    assert!(slower.total >= most, "{} {}", slower.total, usual.total);
    let takes = [("takes = \"200us\" ", "takes = \"19ms\" ")];
    assert!(none(&takes).contains("write at least `period = "), "{}", none(&takes));
    let takes = [("takes = \"200us\" ", "takes = \"1s\" ")];
    assert!(none(&takes).contains("gives one up after 1"), "{}", none(&takes));
}

#[test]
fn the_period_that_is_proposed_does() {
    let refused = none(&[("period = \"20ms\" ", "period = \"4ms\" ")]);
    let period = refused.split("`period = \"").nth(1).and_then(|rest| rest.split('"').next());
    let period = format!("period = \"{}\" ", period.expect("a period"));
    let longer =
        [("period = \"20ms\" ", period.as_str()), ("latency = \"25ms\"", "latency = \"50ms\"")];
    // The proposal is for one packet alone. A server that hears late has a refusal of its own.
    let plan = planned(&longer);
    if !plan.holds() {
        assert!(none(&longer).contains("a period late"), "{}", none(&longer));
    }
}

/// Returns the jitter of the contract that the server of a plan holds the writer to.
fn jitter(plan: &Plan) -> Nanos {
    let cleared = plan.clear().unwrap_or_else(|found| panic!("{found}"));
    Nanos(cleared.system().pipes[0].jitter_ns)
}

/// Jobs of the writer may write at any time from their release until the lateness. The server
/// took the next packet of a late one for one that came too soon, and held it back.
#[test]
fn the_contract_of_a_writer_has_the_time_by_which_its_jobs_may_be_late() {
    let usual = planned(&[]);
    assert!(usual.holds(), "{:?}", usual.findings);
    let main = usual
        .core
        .mains
        .iter()
        .position(|main| usual.system().vcpu_name(*main).is_some_and(|name| name == "write"));
    let response = usual.response(main.expect("the writer's")).expect("it is admitted").response;
    let late = jitter(&usual);
    // A job may begin without budget, and then be as late as any use of it.
    assert!(late > response && late < Nanos::from_millis(20), "{late} {response}");
    let contract = usual.system().pipes[0].contract();
    let mut meter = Meter::new(Bucket::periodic(contract.per).with_jitter(contract.jitter));
    let due = |job: u64| Nanos::from_millis(100 + 20 * job);
    for job in 0..100 {
        let at = due(job) + if job % 3 == 0 { late } else { Nanos::ZERO };
        assert!(meter.admits(at), "job {job}");
    }
    assert!(!meter.admits(due(99) + Nanos::from_millis(19)), "more than the jobs of a writer");
    let slower = planned(&[("work = \"30us\" ", "work = \"300us\" ")]);
    assert!(jitter(&slower) >= late + Nanos::from_millis(5), "{}", jitter(&slower));
}

#[test]
fn a_writer_whose_lateness_nobody_knows_has_no_bound() {
    let unsaid = none(&[("work = \"30us\" ", "# ")]);
    assert!(unsaid.contains("how long `control` takes for a message"), "{unsaid}");
    let longer = [(
        "[[work]]\nname = \"usbd.sink\"",
        "[[work]]\nname = \"sink.message\"\nworst = \"40us\"\nbest = \"1us\"\n\n\
         [[work]]\nname = \"usbd.sink\"",
    )];
    let longer = none(&longer);
    assert!(longer.contains("`sink.message` takes up to 40.000 us"), "{longer}");
    let late = none(&[("work = \"30us\" ", "work = \"900us\" ")]);
    assert!(late.contains("after it is due, and has one every 20.000 ms"), "{late}");
    let mutex = [
        ("vcpu = \"write\"", "vcpu = \"write\"\nuses = [\"m\"]"),
        ("uses = [\"progress\"]", "uses = [\"progress\", \"m\"]"),
        ("[[segment]]", "[[semaphore]]\nname = \"m\"\n\n[[segment]]"),
    ];
    let mutex = none(&mutex);
    assert!(mutex.contains("`control` may wait for the mutex `m`"), "{mutex}");
}

#[test]
fn an_endpoint_without_that_direction_and_longer_packets_are_refused() {
    let three = none(&[("endpoint = 1 ", "endpoint = 3 ")]);
    assert!(three.contains("no endpoint 3 that packets go to"), "{three}");
    assert!(three.contains("`endpoint = 1` or `endpoint = 2`"), "{three}");
    let longer = none(&[("bytes = 64 ", "bytes = 65 ")]);
    assert!(longer.contains("write at most `bytes = 64`"), "{longer}");
}

#[test]
fn a_description_that_cannot_be_meant_is_refused_where_it_is_wrong() {
    let cases = [
        (("to = \"actuator\"", "from = \"actuator\""), "nothing comes from `actuator`"),
        (("endpoint = 1 ", "# "), "does not say which endpoint of `actuator` it writes to"),
        (("period = \"20ms\" ", "rate = 100 "), "does not say how often"),
        (("bytes = 64 ", "bytes = 513 "), "has 512 bytes at most"),
        (("bytes = 64 ", "burst = 2\nbytes = 64 "), "go one by one"),
        (("bytes = 64 ", "stamp = 8\nbytes = 64 "), "whose messages bear their times"),
        (("takes = \"200us\" ", "# "), "nobody knows how long `actuator` takes"),
        (("model = \"actuator\"", "model = \"instrument\""), "nothing can be written to"),
        (("[[process]]\nname = \"disk-check\"", TWICE), "`actuator` has two pipes"),
        (("[[process]]\nname = \"disk-check\"", SECOND), "could serve `second` instead"),
    ];
    for (change, title) in cases {
        // The writer's key goes with the direction.
        let mut changes = vec![change];
        if change.1.starts_with("from") || title.contains("cannot be written") {
            changes.push(("writer = \"control\"", "reader = \"control\""));
        }
        let said = wrong(&changes).to_string();
        assert!(said.contains(title), "{title}: {said}");
    }
}

const TWICE: &str = "[[pipe]]\nname = \"more\"\nto = \"actuator\"\nendpoint = 2\nbytes = 8\n\
    writer = \"control\"\nperiod = \"10ms\"\n\n[[process]]\nname = \"disk-check\"";
const SECOND: &str = "[[usb]]\nname = \"second\"\non = \"xhci\"\nport = 3\nmodel = \"actuator\"\n\n\
    [[process]]\nname = \"disk-check\"";

#[test]
fn a_writer_that_shares_its_vcpu_or_lacks_budget_has_no_bound() {
    let shared = [("vcpu = \"spin\"", "vcpu = \"write\"")];
    assert!(none(&shared).contains("shares its VCPU"), "{}", none(&shared));
    let alone = bill(&[]);
    let slow =
        [("budget = \"100us\"\nperiod = \"2500us\"", "budget = \"100us\"\nperiod = \"5ms\"")];
    let plan = planned(&slow);
    if let Ok(bill) = &plan.pipes[0].bill {
        assert!(bill.value(What::Written) > alone.value(What::Written));
    }
}

#[test]
fn what_the_server_does_in_a_wake_up_counts() {
    let usual = bill(&[]);
    let work =
        [("name = \"usbd.sink\"\nworst = \"40us\"", "name = \"usbd.sink\"\nworst = \"80us\"")];
    let plan = planned(&work);
    match &plan.pipes[0].bill {
        Ok(bill) => assert!(bill.total > usual.total),
        Err(none) => assert!(matches!(none, NoBill::Missing(..) | NoBill::Refused(_))),
    }
    let unknown = [("[[work]]\nname = \"usbd.sink\"", "[[work]]\nname = \"other\"")];
    assert!(none(&unknown).contains("usbd.sink"), "{}", none(&unknown));
}

/// Two wake-ups in 10 ms were admitted, and a run had four in 2.5 ms.
#[test]
fn a_bottom_half_that_is_woken_more_often_than_its_interval_says_has_no_bound() {
    let seldom = [("interval = \"60us\"\nwakes = 2", "interval = \"126us\"\nwakes = 2")];
    assert!(none(&seldom).contains("at most `interval = \"125.000 us\"`"), "{}", none(&seldom));
    bill(&[("interval = \"60us\"\nwakes = 2", "interval = \"125us\"\nwakes = 2")]);
}

/// A job that waits for nothing but what is more urgent has written its packet when it is done.
#[test]
fn a_packet_is_written_before_its_job_is_done() {
    const WRITER: &str = "budget = \"100us\"\nperiod = \"2500us\"";
    let plan = |job: &str| {
        let with = format!("{WRITER}\njob = \"{job}\"\ninterval = \"20ms\"");
        let plan = planned(&[(WRITER, &with)]);
        assert!(plan.holds(), "{:?}", plan.findings);
        plan
    };
    let anywhere = planned(&[]);
    let (short, long) = (plan("50us"), plan("80us"));
    for (job, other) in [(&short, &long), (&long, &anywhere)] {
        let [bill, longer] = [job, other].map(|plan| *plan.pipes[0].bill.as_ref().unwrap());
        assert!(bill.value(What::Written) < longer.value(What::Written), "{bill} {longer}");
        let late = |plan: &Plan| plan.system().pipes[0].jitter_ns;
        assert!(late(job) < late(other), "the server holds the writer to less");
    }
    let done = short.jobs.iter().flatten().next().expect("a job").as_ref().expect("a bound").done;
    assert_eq!(short.system().pipes[0].jitter_ns, done.0);
}

/// A program that asks for something without a pause wakes the bottom half besides.
#[test]
fn a_third_program_that_asks_needs_a_bottom_half_that_may_be_woken_so_often() {
    let pest = "[[process]]\nname = \"pest\"\nprogram = \"spin\"\npriority = 1\n\
                uses = [\"sink.ask\"]\n\n[[process]]\nname = \"usbd\"";
    let pest = ("[[process]]\nname = \"usbd\"", pest);
    bill(&[pest]);
    let seldom = ("wakes = 2 ", "wakes = 1 ");
    bill(&[seldom]);
    let refused = none(&[pest, seldom]);
    assert!(refused.contains("`usb-sink` may be woken"), "{refused}");
    assert!(refused.contains("a third program asks, too: write at most `interval"), "{refused}");
}
