//! The bill of a pipe of a network device, and ways in which a description could make it lie.

use diapason_abi::Nanos;
use diapason_pipe::bill::{Bill, What};
use diapason_plan::Plan;
use diapason_plan::pipes::NoBill;
use diapason_system::parse;

/// 10,000 frames a second beside a CAN channel and three tasks that never stop.
const TEXT: &str = include_str!("../../../examples/frames.toml");

fn planned(changes: &[(&str, &str)]) -> Plan {
    let mut text = TEXT.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    let system = parse("frames.toml", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
    Plan::of(&system)
}

/// Returns the bills of the frames and of the CAN channel after these changes of the description,
/// which holds.
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

const GAP: (&str, &str) = ("gap = \"100us\"", "gap = \"5ms\"");
const PERIOD: (&str, &str) = ("period = \"100us\"", "period = \"5ms\"");
const BYTES: &str = "bytes = 256 ";
const LISTEN: &str = "budget = \"100us\"\nperiod = \"1ms\"";

const EACH: &str = "name = \"usbd.network.message\"\nworst = \"2us\"";

/// The words of a writer instead of those of the reader.
const WRITTEN: [(&str, &str); 6] = [
    ("from = \"adapter\"", "to = \"adapter\""),
    ("reader = \"listener\"", "writer = \"listener\""),
    ("stamp = 24 ", "# "),
    ("gap = \"100us\"", "takes = \"200us\""),
    PERIOD,
    ("latency = \"5ms\"", "latency = \"900ms\""),
];

/// Returns the bill of a pipe to the device after these changes, or why there is none.
fn written(changes: &[(&str, &str)]) -> Result<Bill, String> {
    let changes: Vec<(&str, &str)> = WRITTEN.iter().chain(changes).copied().collect();
    match &planned(&changes).pipes[0].bill {
        Ok(bill) => Ok(*bill),
        Err(NoBill::Missing(what, remedy)) => Err(format!("{what}: {remedy}")),
        Err(NoBill::Refused(refusal)) => Err(refusal.to_string()),
    }
}

#[test]
fn a_frame_takes_the_time_of_its_packets_and_of_an_empty_one_behind_full_ones() {
    let bus = |bytes: &str| bills(&[GAP, PERIOD, (BYTES, bytes)])[0].value(What::Bus);
    let [one, two, three] = ["bytes = 511 ", "bytes = 512 ", "bytes = 1024 "].map(bus);
    assert_eq!(bus("bytes = 256 "), bus("bytes = 256 "));
    assert!(one < two && two < three, "{one} {two} {three}");
    assert!(two >= bus("bytes = 513 "), "an empty packet takes no longer than one with a byte");
    let [bill, _] = bills(&[]);
    assert_eq!(bill.items().iter().map(|item| item.value.0).sum::<u64>(), bill.total.0);
    assert!(bill.total < Nanos::from_millis(5), "{bill}");
}

#[test]
fn more_than_the_pipe_says_is_refused_with_what_it_would_have_to_say() {
    let (what, remedy) = none(&[("period = \"100us\"", "period = \"101us\"")]);
    assert!(what.contains("`adapter` has one every 100.000 us"), "{what}");
    assert!(remedy.contains("period = \"100000ns\""), "{remedy}");
    let (what, remedy) = none(&[(BYTES, "bytes = 255 "), ("stamp = 24", "stamp = 16")]);
    assert!(what.contains("frames of `adapter` have 256"), "{what}");
    assert!(remedy.contains("bytes = 256"), "{remedy}");
}

#[test]
fn a_reader_that_keeps_places_for_too_long_is_refused() {
    let bursts = [("stamp = 24 ", "burst = 8\nstamp = 24 "), ("\"20%\"", "\"25%\"")];
    let (what, remedy) = none(&bursts);
    assert!(what.contains("`frames` may lack places"), "{what}");
    assert!(remedy.contains("give `listener` a larger budget"), "{remedy}");
    let slow = [(LISTEN, "budget = \"300us\"\nperiod = \"5ms\""), ("latency = \"5ms\"", "")];
    let seldom = [GAP, PERIOD, slow[0], slow[1]];
    let [bill, _] = bills(&seldom);
    assert!(bill.total > Nanos::from_millis(5), "its places are away as long, and it needs fewer");
}

#[test]
fn nothing_else_delays_the_reader() {
    let shared = [("vcpu = \"spin-0\"", "vcpu = \"listen\"")];
    assert!(none(&shared).0.contains("`listener` shares its VCPU"));
    assert!(!planned(&[("work = \"2us\"", "work = \"120us\"")]).holds());
    let disk = "[[usb]]\nname = \"stick\"\non = \"xhci\"\nport = 3\nmodel = \"disk\"\n\n\
                [[pipe]]\nname = \"brakes\"";
    let [beside, _] = bills(&[("[[pipe]]\nname = \"brakes\"", disk)]);
    assert!(beside.value(What::Bus) > bills(&[])[0].value(What::Bus), "it owes a disk its turn");
}

#[test]
fn a_written_frame_has_the_time_of_its_device_and_waits_for_the_one_before() {
    let bill = written(&[]).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(bill.value(What::Device), Nanos::from_micros(200));
    assert_eq!(bill.items().iter().map(|item| item.value.0).sum::<u64>(), bill.total.0);
    let patient = written(&[("takes = \"200us\"", "takes = \"700us\"")]).expect("a bill");
    assert!(patient.total >= bill.total + Nanos::from_micros(500), "{patient}");
    let long = written(&[(BYTES, "bytes = 1514 ")]).expect("a bill");
    assert!(long.value(What::Bus) > bill.value(What::Bus), "{long}");
    // Without a work for each frame, a frame has to end before the next one is due.
    let with_all = ("name = \"usbd.network.message\"", "name = \"unused\"");
    let often = ("period = \"5ms\"", "period = \"2ms\"");
    let why = written(&[with_all, often]).expect_err("too often");
    assert!(why.contains("or add the `[[work]]` `usbd.network.message`"), "{why}");
    let fits = why.split("period = \"").nth(1).and_then(|it| it.split('"').next());
    let fits = format!("period = \"{}\"", fits.expect("a period"));
    let fit = ("period = \"5ms\"", &*fits);
    written(&[with_all, fit]).unwrap_or_else(|why| panic!("{fits}: {why}"));
    written(&[often]).unwrap_or_else(|why| panic!("several may be under way: {why}"));
}

/// A frame that goes to the device is work for the bottom half when it is given, too.
#[test]
fn several_frames_are_under_way_if_each_has_a_work() {
    let every = |period: &str| {
        let period = format!("period = \"{period}\"\nwork");
        let plan = both(&[("period = \"1ms\"\nwork", &*period)]);
        let place = plan.system().pipes.iter().position(|pipe| pipe.name == "goes").unwrap();
        plan.pipes[place].bill.clone().unwrap_or_else(|none| panic!("{none:?}"))
    };
    let [seldom, usual, often] = ["5ms", "2ms", "1ms"].map(every);
    assert!(seldom.slots < usual.slots && usual.slots < often.slots, "{often}");
    assert!(often.slots > 5, "{often}");
    for what in [What::Taken, What::Back] {
        assert!(often.value(what) > seldom.value(what), "{} {often}", what.name());
    }
    // Wake-ups and such messages take more than the fifth of the processor that there is for them.
    let dear = both(&[(
        "usbd.network.message\"\nworst = \"2us\"",
        "usbd.network.message\"\nworst = \"19us\"",
    )]);
    let NoBill::Missing(what, _) = dear.pipes[1].bill.as_ref().unwrap_err() else {
        panic!("{:?}", dear.pipes[1].bill)
    };
    assert!(what.contains("nothing bounds how late"), "{what}");
}

/// The bottom half takes a frame and hears of its end. A bill counts both in each of the two visits
/// that a message waits for at most.
#[test]
fn a_frame_that_goes_is_work_when_it_is_given_and_when_it_has_gone() {
    let back = |work: &str| {
        let work = format!("name = \"usbd.network.message\"\nworst = \"{work}\"");
        let seldom = ("period = \"5ms\"", "period = \"50ms\"");
        let bill = written(&[seldom, (EACH, &work)]);
        bill.unwrap_or_else(|why| panic!("{why}")).value(What::Back)
    };
    let [cheap, dear] = ["2us", "12us"].map(back);
    assert!(dear - cheap >= Nanos::from_micros(2 * 2 * 10), "{cheap} {dear}");
}

/// 2,000 frames a second to one program, and 1,000 from another one.
const BOTH: &str = include_str!("../../../tests/systems/frames-both.toml");

/// Returns the plan of pipes both ways after these changes.
fn both(changes: &[(&str, &str)]) -> Plan {
    let mut text = BOTH.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    let system = parse("f", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
    Plan::of(&system)
}

#[test]
fn each_way_delays_the_other_by_the_work_for_its_messages() {
    let bills = |plan: &Plan| {
        assert!(plan.holds(), "{:?}", plan.findings);
        let of = |name: &str| {
            let place = plan.system().pipes.iter().position(|pipe| pipe.name == name);
            *plan.pipes[place.unwrap()].bill.as_ref().expect("it has a bill")
        };
        ["comes", "goes"].map(of)
    };
    let usual = bills(&both(&[]));
    // The pipe to the device becomes longer with the rate of the other one, and that one with its.
    let fewer = bills(&both(&[
        ("gap = \"500us\"", "gap = \"5ms\""),
        ("period = \"500us\"", "period = \"5ms\""),
    ]));
    assert!(fewer[1].total < usual[1].total, "{} {}", fewer[1], usual[1]);
    let seldom = bills(&both(&[
        ("period = \"1ms\"\nwork", "period = \"50ms\"\nwork"),
        ("interval = \"1ms\"", "interval = \"50ms\""),
    ]));
    assert!(seldom[0].total <= usual[0].total, "{} {}", seldom[0], usual[0]);
    // All that a message of the other pipe costs is its work.
    let dear = (
        "name = \"usbd.network.message\"\nworst = \"2us\"",
        "name = \"usbd.network.message\"\nworst = \"2500ns\"",
    );
    let dear = bills(&both(&[dear]));
    assert!((0..2).all(|pipe| dear[pipe].total > usual[pipe].total));
}

/// A job that is late and the next one, which is not, have their frames closer together than the
/// period. So more of them may come in a window.
#[test]
fn frames_of_a_late_writer_delay_the_other_way_more_often() {
    let comes = |work: &str| {
        let plan = both(&[
            ("period = \"1ms\"\nwork = \"20us\"", &format!("period = \"11ms\"\nwork = \"{work}\"")),
            ("latency = \"10ms\"", "latency = \"90ms\""),
            ("job = \"80us\"\ninterval = \"1ms\"", ""),
            ("vcpu = \"talk\"", "vcpu = \"talks\""),
            ("name = \"talk\"\nbudget = \"100us\"\nperiod = \"1ms\"", TALKS),
            ("\"talk\"]", "\"talks\"]"),
        ]);
        *plan.pipes[0].bill.as_ref().unwrap_or_else(|none| panic!("{none:?}"))
    };
    let [prompt, late] = ["20us", "60us"].map(comes);
    assert!(late.total > prompt.total, "{late} {prompt}");
}

/// A VCPU on which a job of 60 us has to wait for a second budget at worst, and one of 20 us not.
const TALKS: &str = "name = \"talks\"\nbudget = \"70us\"\nperiod = \"2500us\"";

#[test]
fn a_bottom_half_of_both_ways_may_be_woken_as_often_as_both_need() {
    let plan = both(&[("interval = \"40us\"", "interval = \"60us\"")]);
    for pipe in plan.pipes.iter().zip(&plan.system().pipes).filter(|(_, pipe)| pipe.has_frames()) {
        let Err(NoBill::Missing(what, remedy)) = &pipe.0.bill else { panic!("{:?}", pipe.0.bill) };
        assert!(what.contains("`usb-network` may be woken 24 times in 1.000 ms"), "{what}");
        assert_eq!(remedy, "write at most `interval = \"41us\"`");
    }
    assert!(both(&[("interval = \"40us\"", "interval = \"41us\"")]).holds());
}

#[test]
fn two_ways_that_delay_each_other_without_end_name_each_other() {
    let slow =
        ("name = \"usbd.network\"\nworst = \"8us\"", "name = \"usbd.network\"\nworst = \"90us\"");
    let plan = both(&[
        slow,
        ("usbd.network.message\"\nworst = \"2us\"", "usbd.network.message\"\nworst = \"90us\""),
    ]);
    for (place, other) in [(0, "`goes`"), (1, "`comes`")] {
        let Err(NoBill::Missing(what, remedy)) = &plan.pipes[place].bill else {
            panic!("{:?}", plan.pipes[place].bill)
        };
        assert!(what.contains("nothing bounds how late") && what.contains(other), "{what}");
        assert!(remedy.contains("usb-network"), "{remedy}");
    }
}
