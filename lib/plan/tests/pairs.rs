//! The bills of two pipes of one device, one from it and one to it, and ways in which a description
//! could make them lie.

use diapason_abi::Nanos;
use diapason_pipe::bill::{Bill, What};
use diapason_plan::Plan;
use diapason_plan::pipes::NoBill;
use diapason_system::parse;

/// A servo drive that sends positions and takes set points, beside a disk and a task that never
/// stops.
const TEXT: &str = include_str!("../../../examples/servo.toml");
/// The changes that read and write the bulk endpoints instead.
const BULK: [(&str, &str); 4] = [
    ("endpoint = 1                   # the one that sends", "endpoint = 2"),
    ("endpoint = 1                   # the one that takes", "endpoint = 2"),
    ("bytes = 64                     # of a packet\n", "bytes = 512\n"),
    ("bytes = 64                     # of a packet, at most", "bytes = 512"),
];

fn changed(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(TEXT.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    })
}

fn planned(changes: &[(&str, &str)]) -> Plan {
    let system = parse("servo.toml", &changed(changes)).unwrap_or_else(|it| panic!("{it}"));
    Plan::of(&system)
}

/// Returns both bills after these changes of the description, which hold: that of the pipe from
/// the drive, and that of the pipe to it.
fn bills(changes: &[(&str, &str)]) -> [Bill; 2] {
    let plan = planned(changes);
    assert!(plan.holds(), "{:?}", plan.findings);
    [0, 1].map(|number: usize| *plan.pipes[number].bill.as_ref().expect("it has a bill"))
}

/// Returns why the pipes of these numbers have no bound after these changes.
fn none(changes: &[(&str, &str)], number: usize) -> String {
    let plan = planned(changes);
    assert!(!plan.holds());
    match &plan.pipes[number].bill {
        Err(NoBill::Missing(what, remedy)) => format!("{what}: {remedy}"),
        Err(NoBill::Refused(refusal)) => refusal.to_string(),
        other => panic!("{other:?}"),
    }
}

/// Returns what is wrong with the description after these changes.
fn wrong(changes: &[(&str, &str)]) -> String {
    match parse("servo.toml", &changed(changes)) {
        Err(wrong) => wrong.to_string(),
        Ok(system) => {
            let plan = Plan::of(&system);
            assert!(!plan.holds());
            plan.findings.iter().map(ToString::to_string).collect()
        }
    }
}

#[test]
fn each_pipe_has_the_time_of_its_own_endpoint() {
    let [positions, points] = bills(&[]);
    for bill in [&positions, &points] {
        let sum: u64 = bill.items().iter().map(|item| item.value.0).sum();
        assert_eq!(sum, bill.total.0);
    }
    assert_eq!(positions.value(What::Bus), Nanos::from_micros(1_125));
    assert_eq!(points.value(What::Bus), Nanos::from_micros(2_250));
    assert_eq!(points.value(What::Device), Nanos::from_micros(200));
    let slower = bills(&[("takes = \"200us\" ", "takes = \"900us\" ")]);
    assert_eq!(slower[0], positions, "the drive sends while it takes nothing");
    assert!(slower[1].total >= points.total + Nanos::from_micros(700));
    let bulk = bills(&BULK);
    assert!(bulk.iter().all(|bill| bill.value(What::Bus) < Nanos::from_micros(600)), "{bulk:?}");
}

#[test]
fn one_thread_works_for_both_so_its_work_and_its_share_are_in_both_bills() {
    let usual = bills(&[]);
    let work = [
        ("name = \"usbd.pair\"\nworst = \"40us\"", "name = \"usbd.pair\"\nworst = \"42us\""),
        ("latency = \"10ms\"", "latency = \"12ms\""),
    ];
    let longer = bills(&work);
    assert!(usual.iter().zip(&longer).all(|(usual, longer)| longer.total > usual.total));
    let share = [("utilization = \"25%\"", "utilization = \"3%\"")];
    let plan = planned(&share);
    assert!(!plan.holds(), "no pipe is as early as is wanted");
    let both = plan.pipes.iter().zip(&usual);
    assert!(
        both.into_iter()
            .all(|(it, usual)| it.bill.as_ref().map_or(true, |bill| bill.total > usual.total))
    );
    for (serves, other) in [("serves = [\"read\"]", 1), ("serves = [\"write\"]", 0)] {
        let alone = [("serves = [\"read\", \"write\"]", serves)];
        let said = none(&alone, other);
        assert!(said.contains("no I/O VCPU `usb-pair` of `usbd` serves"), "{said}");
    }
    let unknown = [("[[work]]\nname = \"usbd.pair\"", "[[work]]\nname = \"usbd.sink\"")];
    assert!((0..2).all(|number| none(&unknown, number).contains("usbd.pair")));
}

#[test]
fn neither_end_may_share_its_vcpu() {
    let shared = [("vcpu = \"spin\"", "vcpu = \"read\"")];
    assert!(none(&shared, 0).contains("shares its VCPU"), "{}", none(&shared, 0));
    let shared = [("vcpu = \"spin\"", "vcpu = \"write\"")];
    assert!(none(&shared, 1).contains("shares its VCPU"), "{}", none(&shared, 1));
    let one = [("vcpu = \"read\"\narguments", "vcpu = \"write\"\narguments")];
    assert!((0..2).all(|number| none(&one, number).contains("shares its VCPU")));
}

#[test]
fn a_second_pipe_of_a_direction_and_another_device_are_refused() {
    let more =
        |pipe: &str, device: &str| format!("{pipe}\n{device}\n[[process]]\nname = \"disk-check\"");
    let at = "[[process]]\nname = \"disk-check\"";
    let from = "[[pipe]]\nname = \"more\"\nfrom = \"servo\"\nendpoint = 2\nbytes = 512\n\
        reader = \"watch\"\nperiod = \"10ms\"\nwork = \"1us\"\n";
    let said = wrong(&[(at, &more(from, ""))]);
    assert!(said.contains("`servo` has two pipes"), "{said}");
    let to = from.replace("from =", "to =").replace("reader =", "writer =");
    let said = wrong(&[(at, &more(&to, ""))]);
    assert!(said.contains("`servo` has two pipes"), "{said}");
    let device = |model: &str| {
        format!("[[usb]]\nname = \"second\"\non = \"xhci\"\nport = 3\nmodel = \"{model}\"\n")
    };
    let said = wrong(&[(at, &more("", &device("servo")))]);
    assert!(said.contains("the server could serve `second` instead"), "{said}");
    let of_second = from.replace("\"servo\"", "\"second\"");
    let said = wrong(&[(at, &more(&of_second, &device("instrument")))]);
    assert!(
        said.contains("`more` and `positions` are both from the endpoint of a device"),
        "{said}"
    );
}

#[test]
fn the_server_serves_the_drive_as_a_pair_and_as_nothing_else() {
    let serves = |kinds: &str| format!("serves = [{kinds}]");
    let at = "serves = [\"disks\", \"pairs\"]";
    let said = wrong(&[(at, &serves("\"disks\", \"endpoints\", \"sinks\""))]);
    assert!(said.contains("`servo` is of `pairs`, and `usbd` serves none"), "{said}");
    for other in ["endpoints", "sinks"] {
        let said = wrong(&[(at, &serves(&format!("\"disks\", \"{other}\", \"pairs\"")))]);
        let served = format!("`usbd` serves it as one of `{other}`");
        assert!(said.contains(&served), "{said}");
    }
    let alone = TEXT.replacen("to = \"servo\"", "to = \"other\"", 1);
    let said = parse("servo.toml", &alone).expect_err("no such device").to_string();
    assert!(said.contains("nothing is written to `servo`"), "{said}");
}

/// A thread that reads a message of one pipe lets those of the other wait, and the bills counted
/// neither.
#[test]
fn a_thread_that_reads_one_pipe_and_has_the_end_of_another_has_no_bound() {
    let both = [
        ("reader = \"watch\"", "reader = \"control\""),
        ("serves = [\"read\", \"write\"]", "serves = [\"write\"]"),
    ];
    let why = none(&both, 1);
    assert!(why.contains("`control` reads `positions` on the same thread"), "{why}");
}

/// The usual server of a drive alone, with the reader and the writer of its pipes.
const USUAL: &str = "[system]\nname = \"servo\"\n[usbd]\n\
    [[usb]]\nname = \"servo\"\non = \"xhci\"\nmodel = \"servo\"\ntakes = \"200us\"\n\
    [[pipe]]\nname = \"positions\"\nfrom = \"servo\"\nendpoint = 1\nbytes = 64\n\
    reader = \"watch\"\nperiod = \"2ms\"\nstamp = 16\nwork = \"10us\"\nlatency = \"10ms\"\n\
    [[pipe]]\nname = \"set-points\"\nto = \"servo\"\nendpoint = 1\nbytes = 64\n\
    writer = \"control\"\nperiod = \"20ms\"\nwork = \"30us\"\nlatency = \"25ms\"\n\
    [[process]]\nname = \"watch\"\npriority = 30\nvcpu = \"read\"\n\
    [[process]]\nname = \"control\"\npriority = 30\nvcpu = \"write\"\n\
    [[vcpu]]\nname = \"read\"\nbudget = \"100us\"\nperiod = \"2500us\"\n\
    [[vcpu]]\nname = \"write\"\nbudget = \"200us\"\nperiod = \"5ms\"\n";

#[test]
fn a_drive_with_the_usual_server_holds() {
    let system = parse("servo.toml", USUAL).unwrap_or_else(|wrong| panic!("{wrong}"));
    let plan = Plan::of(&system);
    assert!(plan.holds(), "{:?}", plan.findings);
}
