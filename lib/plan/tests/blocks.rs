//! The bill of a pipe of a disk, and ways in which a description could make it lie.

use diapason_abi::Nanos;
use diapason_pipe::bill::{Bill, What};
use diapason_plan::Plan;
use diapason_plan::pipes::NoBill;
use diapason_system::parse;

/// A disk beside a CAN channel and three tasks that never stop.
const TEXT: &str = include_str!("../../../examples/disk.toml");

fn planned(changes: &[(&str, &str)]) -> Plan {
    changed(TEXT, changes)
}

/// Returns the plan of a description after these changes of it.
fn changed(description: &str, changes: &[(&str, &str)]) -> Plan {
    let mut text = description.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    let system = parse("disk.toml", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
    Plan::of(&system)
}

/// Returns the bills of the disk's pipe and of the CAN channel's after these changes of the
/// description, which holds.
fn bills(changes: &[(&str, &str)]) -> [Bill; 2] {
    let plan = planned(changes);
    assert!(plan.holds(), "{:?}", plan.findings);
    [0, 1].map(|pipe| *plan.pipes[pipe].bill.as_ref().expect("it has a bill"))
}

/// Returns why the pipe has no bound after these changes, and the remedy.
fn none(changes: &[(&str, &str)]) -> (String, String) {
    match &planned(changes).pipes[0].bill {
        Err(NoBill::Missing(what, remedy)) => (what.clone(), remedy.clone()),
        other => panic!("{other:?}"),
    }
}

const PERIOD: &str = "period = \"3200us\"";
const LATENCY: &str = "latency = \"8ms\"";
const TAKES: &str = "takes = \"300us\"";
const MODEL: &str = "model = \"superspeed-disk\"";
const READ: &str = "name = \"read\"\nbudget = \"100us\"\nperiod = \"800us\"";

#[test]
fn a_message_takes_a_command_and_the_way_of_its_ask() {
    let [bill, _] = bills(&[]);
    let sum: u64 = bill.items().iter().map(|item| item.value.0).sum();
    assert_eq!(sum, bill.total.0);
    assert_eq!(bill.value(What::Device), Nanos::from_micros(300));
    // A packet of 1,024 bytes takes at least 2 us of the bus.
    assert!(bill.value(What::Bus) > Nanos::from_micros(128), "{bill}");
    assert!(bill.value(What::Asked) >= bill.value(What::User) + bill.value(What::BottomHalf));
    assert_eq!(bill.least, Nanos::ZERO, "one clock measures all of it");
    let seldom = [(PERIOD, "period = \"10ms\""), (LATENCY, "latency = \"20ms\"")];
    let [slower, _] = bills(&[seldom[0], seldom[1], (TAKES, "takes = \"800us\"")]);
    let more = slower.total - bills(&seldom)[0].total;
    assert!(more >= Nanos::from_micros(500), "{more}");
}

#[test]
fn what_a_disk_cannot_do_is_refused_with_the_period_that_it_can() {
    for changes in [
        &[(PERIOD, "period = \"2ms\"")][..],
        &[(TAKES, "takes = \"2ms\"")],
        &[(MODEL, "model = \"disk\"")],
    ] {
        let (what, remedy) = none(changes);
        assert!(what.contains("asks for 65536 bytes every"), "{what}");
        let fits = remedy.split('`').nth(1).expect("a period");
        let others = changes.iter().copied().filter(|(from, _)| *from != PERIOD);
        let patient = [(PERIOD, fits), (LATENCY, "latency = \"80ms\"")];
        let changes: Vec<(&str, &str)> = others.chain(patient).collect();
        let [bill, _] = bills(&changes);
        assert!(bill.total > Nanos::from_millis(2), "{bill}");
    }
}

/// At SuperSpeed the disk is on another bus than the CAN interface. At high speed it takes part in
/// the same round robin, and only what follows from the bus is longer.
#[test]
fn the_pipe_of_a_can_channel_owes_a_disk_the_time_on_the_bus() {
    let slow = [(PERIOD, "period = \"20ms\""), (LATENCY, "latency = \"80ms\"")];
    let [_, apart] = bills(&slow);
    let [_, beside] = bills(&[slow[0], slow[1], (MODEL, "model = \"disk\"")]);
    assert!(beside.value(What::Bus) > apart.value(What::Bus));
    for what in [What::Moderation, What::TopHalf] {
        assert_eq!(beside.value(what), apart.value(what), "{}", what.name());
    }
    let [_, slower] = bills(&[slow[0], slow[1], (TAKES, "takes = \"5ms\"")]);
    assert_eq!(slower.total, apart.total, "a slower disk costs it nothing");
}

#[test]
fn nothing_else_delays_the_asks() {
    let shared = [("vcpu = \"spin-0\"", "vcpu = \"read\"")];
    assert!(none(&shared).0.contains("`reader` shares its VCPU"));
    let starved = [(READ, "name = \"read\"\nbudget = \"100us\"\nperiod = \"9ms\"")];
    let plan = planned(&starved);
    assert!(!plan.holds());
    let slow = [("work = \"20us\"", "work = \"3ms\"")];
    assert!(!planned(&slow).holds());
}

#[test]
fn a_run_that_has_no_place_is_refused() {
    let late = [(LATENCY, "latency = \"80ms\""), (READ, &READ.replace("100us", "60us"))];
    let plan = planned(&late);
    match &plan.pipes[0].bill {
        // Four messages of 64 KiB have places.
        Ok(bill) => assert!(bill.total.0.div_ceil(3_200_000) < 4, "{bill}"),
        Err(NoBill::Missing(what, _)) => assert!(what.contains("places"), "{what}"),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn a_chain_cannot_begin_at_a_disk() {
    let chain = "[[chain]]\nname = \"c\"\nfrom = \"blocks\"\n\n[[chain.link]]\nby = \"box\"\n\
                 process = \"end\"\nwork = \"5us\"\n\n[[mailbox]]\nname = \"box\"\nmessages = 8\n\n\
                 [[process]]\nname = \"end\"\npriority = 20\nvcpu = \"last\"\n\n[[vcpu]]\n\
                 name = \"last\"\nbudget = \"100us\"\nperiod = \"10ms\"\n\n\
                 [[usb]]\nname = \"disk\"";
    let plan = planned(&[("[[usb]]\nname = \"disk\"", chain)]);
    let Err(NoBill::Missing(what, _)) = &plan.chains[0].bill else { panic!("it has a bill") };
    assert!(what.contains("comes from a disk"), "{what}");
}

/// A recorder beside a CAN channel and three tasks that never stop.
const RECORDER: &str = include_str!("../../../examples/recorder.toml");

/// Returns the plan of the recorder after these changes of its description.
fn recorded(changes: &[(&str, &str)]) -> Plan {
    changed(RECORDER, changes)
}

/// Returns the bill of the pipe to the disk after these changes, which has no latency that matters.
fn written(changes: &[(&str, &str)]) -> Result<Bill, String> {
    let patient = [("latency = \"10ms\"", "latency = \"900ms\"")];
    let changes: Vec<(&str, &str)> = changes.iter().copied().chain(patient).collect();
    match &recorded(&changes).pipes[0].bill {
        Ok(bill) => Ok(*bill),
        Err(NoBill::Missing(what, remedy)) => Err(format!("{what}: {remedy}")),
        Err(NoBill::Refused(refusal)) => Err(refusal.to_string()),
    }
}

#[test]
fn a_message_to_a_disk_takes_a_command_and_the_way_to_the_server() {
    let bill = written(&[]).unwrap();
    let sum: u64 = bill.items().iter().map(|item| item.value.0).sum();
    assert_eq!(sum, bill.total.0);
    assert_eq!(bill.value(What::Device), Nanos::from_millis(1));
    let slower = written(&[("takes = \"1ms\"", "takes = \"1500us\"")]).unwrap();
    let more = slower.total - bill.total;
    assert!(more >= Nanos::from_micros(500), "{more}");
    // Data go to the disk in more packets of the bus, beside the same neighbours.
    let longer = written(&[("bytes = 8192", "bytes = 16384")]).unwrap();
    assert!(longer.value(What::Bus) > bill.value(What::Bus), "{longer}");
    assert_eq!(longer.value(What::Written), bill.value(What::Written));
}

#[test]
fn a_writer_is_refused_what_its_disk_cannot_do() {
    let period = "period = \"10ms\"                # the";
    for (changes, wrong) in [
        (&[(period, "period = \"2ms\" # the")][..], "`record` has 8192 bytes every 2.000 ms"),
        (&[("bytes = 8192", "bytes = 65536")], "`record` has 65536 bytes every 10.000 ms"),
        (&[("takes = \"1ms\"", "takes = \"9ms\"")], "and `disk` may take"),
        (&[("work = \"40us\" ", "# work = \"40us\"")], "how long `recorder`"),
        (&[("vcpu = \"spin-0\"", "vcpu = \"write\"")], "shares its VCPU"),
        (&[("work = \"40us\" ", "work = \"9ms\" ")], "after it is due"),
    ] {
        let refused = written(changes).expect_err(wrong);
        assert!(refused.contains(wrong), "{wrong}: {refused}");
    }
}

/// The pipe of the CAN channel owes a writing disk what it owes a reading one: time on the bus.
#[test]
fn a_slower_disk_costs_the_can_channel_nothing() {
    let brakes = |changes: &[(&str, &str)]| {
        let bill = recorded(changes).pipes[1].bill.clone().expect("it has a bill");
        bill.total
    };
    assert_eq!(brakes(&[]), brakes(&[("takes = \"1ms\"", "takes = \"3ms\"")]));
    assert!(brakes(&[("model = \"disk\"", "model = \"superspeed-disk\"")]) < brakes(&[]));
}

/// Each place is filled again only after the disk has its blocks.
#[test]
fn a_writer_without_a_place_is_refused() {
    let late = [
        ("bytes = 8192", "bytes = 65536"),
        ("model = \"disk\"", "model = \"superspeed-disk\""),
        ("period = \"10ms\"                # the", "period = \"7ms\" # the"),
        ("period = \"1ms\"", "period = \"2ms\""),
    ];
    let refused = written(&late).expect_err("five at once");
    assert!(refused.contains("needs 5 places for its messages, and there are 4"), "{refused}");
    // Smaller messages have more places.
    let smaller = [("bytes = 8192", "bytes = 32768"), late[1], late[2], late[3]];
    assert!(written(&smaller).unwrap().slots + 1 > 4);
}

/// The last thread of a chain writes to a disk. Its messages have to be a period apart.
#[test]
fn a_chain_may_end_at_a_disk() {
    let chain = "[[chain]]\nname = \"log\"\nfrom = \"brakes\"\nto = \"record\"\n\n\
                 [[chain.link]]\nby = \"box\"\nprocess = \"recorder\"\nwork = \"40us\"\n\n\
                 [[mailbox]]\nname = \"box\"\nmessages = 8\n\n[[usb]]\nname = \"interface\"";
    let link = ("[[usb]]\nname = \"interface\"", chain);
    let seldom = [("rate = 1600\nburst = 4", "rate = 50"), ("traffic = [1600]", "traffic = [50]")];
    let plan = recorded(&[link, seldom[0], seldom[1]]);
    assert!(plan.holds(), "{:?}", plan.findings);
    let bill = plan.chains[0].bill.as_ref().expect("it has a bill");
    let pipe = plan.pipes[0].bill.as_ref().expect("it has a bill");
    assert!(bill.total > pipe.total - pipe.value(What::Written), "{bill:?}");
    let often = [("rate = 1600\nburst = 4", "rate = 99"), ("traffic = [1600]", "traffic = [99]")];
    assert!(!recorded(&[link, often[0], often[1]]).holds());
}
