//! Hosts at an Ethernet switch, in the simulator: no message of a flow is later than its bound, as
//! the example is and where the plan could be wrong most easily, also while all clocks run apart.
//! And two hosts whose sender keeps gates: no frame leaves its window.

use crate::tally::Tally;
use diapason::Workspace;
use diapason::metal::Built;
use diapason::plan::NetworkPlan;
use diapason::session::Session;
use diapason::simulate::{Joined, Joints, Seat, together};
use diapason_sim::GatedBooks;
use diapason_system::{Description, Hosts, RunOptions, parse_any};
use std::fs;

const EXAMPLE: &str = "ethernet.toml";
const GATED: &str = "ethernet-gates.toml";
const CREDIT: &str = "ethernet-credit.toml";
/// Lists whose flow begins at a sensor: over a cable, and over Ethernet.
pub(super) const SENSED: [&str; 2] = ["sensor-bridge.toml", "sensor-ethernet.toml"];
/// Lists whose flow also ends at a device: a packet for each of a slow sensor over a cable, and a
/// frame of CAN over Ethernet.
pub(super) const ACTED: [&str; 2] = ["sensor-actuator.toml", "sensor-can.toml"];
const PACED: &str = "ethernet-credit-adapter.toml";
pub(super) const HORIZON_NS: u64 = 3_000_000_000;
/// How long clocks run apart: a contract that does not count with it is broken by then.
pub(super) const APART_NS: u64 = 40_000_000_000;
/// Messages of each flow that a run must see in a second.
const LEAST: u64 = 500;
/// Those behind the gates of an adapter, which are slower.
const GATED_LEAST: u64 = 190;
/// Those of a sensor, which begin half a second late.
const SENSED_LEAST: u64 = 190;
/// Those of a slow sensor.
const ACTED_LEAST: u64 = 24;
/// Those beside which an adapter keeps credit.
const PACED_LEAST: u64 = 70;

/// A change of a file of the example: the file, and one text for another.
pub(super) type Change = (&'static str, &'static str, &'static str);

/// Periods that do not fit each other: what comes together changes all the time.
const ROTATING: [Change; 2] = [
    ("ethernet/control.toml", "1000, 64, 1, 0", "1013, 64, 1, 0"),
    ("ethernet/camera.toml", "4000, 1400, 4, 1", "4057, 1400, 4, 1"),
];
const GATES: Change = (
    EXAMPLE,
    "room = 16 ",
    "room = 16\ngates = [{ port = 2, entries = [\"S 40 62us\", \"S 3f 63us\"] }] ",
);
const EQUAL: Change = ("ethernet/camera.toml", "priority = 1 ", "priority = 6 ");
const SLOW: [Change; 3] = [
    ("ethernet/drive.toml", "02:00:00:00:00:02\"", "02:00:00:00:00:02\"\nspeed = 100"),
    (EXAMPLE, "latency = \"3ms\"", "latency = \"5ms\""),
    (EXAMPLE, "latency = \"10ms\"", "latency = \"12ms\""),
];

/// The senders' clocks are fast, and those of the switch and the receiver slow.
const FAST_SENDERS: [Change; 5] = [
    (EXAMPLE, "latency = \"3ms\"", "latency = \"1500us\""),
    (EXAMPLE, "name = \"control\"", "name = \"control\"\ndrift = \"100ppm\""),
    (EXAMPLE, "name = \"camera\"", "name = \"camera\"\ndrift = \"100ppm\""),
    (EXAMPLE, "name = \"drive\"", "name = \"drive\"\ndrift = \"-100ppm\""),
    (EXAMPLE, "name = \"cabinet\"", "name = \"cabinet\"\ndrift = \"-100ppm\""),
];
/// The other way round.
const SLOW_SENDERS: [Change; 4] = [
    (EXAMPLE, "name = \"control\"", "name = \"control\"\ndrift = \"-100ppm\""),
    (EXAMPLE, "name = \"camera\"", "name = \"camera\"\ndrift = \"-100ppm\""),
    (EXAMPLE, "name = \"drive\"", "name = \"drive\"\ndrift = \"100ppm\""),
    (EXAMPLE, "name = \"cabinet\"", "name = \"cabinet\"\ndrift = \"100ppm\""),
];

/// Periods that do not fit the cycle of the gates of an adapter: frames come at any time in it.
const ANY_TIME: [Change; 2] = [
    ("ethernet/station.toml", "2000, 64, 1, 0", "2039, 64, 1, 0"),
    ("ethernet/station.toml", "4000, 1400, 1, 1", "4057, 1400, 1, 1"),
];
/// Pictures come in twos, and wait for each other.
const IN_TWOS: [Change; 5] = [
    ("ethernet/station.toml", "4000, 1400, 1, 1", "8113, 1400, 2, 1"),
    (GATED, "period = \"4ms\"", "period = \"4ms\"\nburst = 2"),
    (GATED, "guard = \"250us\"", "guard = \"390us\""),
    (GATED, "S 40 1500us\", \"S 3f 1500us", "S 40 2500us\", \"S 3f 2000us"),
    ("ethernet/station.toml", "2000, 64, 1, 0", "2039, 64, 1, 0"),
];
/// The clock of the adapter's host is as fast as it may be, and as slow.
const FAST_GATES: [Change; 2] = [
    (GATED, "name = \"station\"", "name = \"station\"\ndrift = \"100ppm\""),
    (GATED, "name = \"drive\"", "name = \"drive\"\ndrift = \"-100ppm\""),
];
const SLOW_GATES: [Change; 2] = [
    (GATED, "name = \"station\"", "name = \"station\"\ndrift = \"-100ppm\""),
    (GATED, "name = \"drive\"", "name = \"drive\"\ndrift = \"100ppm\""),
];

/// Periods that do not fit each other, at a port with credit.
const CREDIT_ROTATING: [Change; 2] = [
    ("ethernet/console.toml", "1000, 64, 1, 0", "1013, 64, 1, 0"),
    ("ethernet/camera.toml", "4000, 1400, 4, 1", "4057, 1400, 4, 1"),
];
/// Commands have no credit, and go before pictures.
const CREDIT_BELOW: Change = ("ethernet/console.toml", "priority = 0 ", "priority = 6 ");
/// The gate of commands closes, and that of pictures does not.
const CREDIT_GATES: Change = (
    CREDIT,
    "name = \"cabinet\"",
    "name = \"cabinet\"\ngates = [{ port = 3, entries = [\"S ff 500us\", \"S fe 250us\"] }]",
);
/// Credit for both, as little as they need.
const CREDIT_BOTH: [Change; 1] = [(
    CREDIT,
    "idle_slope = 15000 ",
    "idle_slope = 11800\n[[switch.credit]]\nport = 3\npriority = 0\nidle_slope = 1090 ",
)];
/// The clocks of senders are fast, and those of switches and of the receiver slow.
const CREDIT_APART: [Change; 5] = [
    (CREDIT, "name = \"console\"", "name = \"console\"\ndrift = \"100ppm\""),
    (CREDIT, "name = \"camera\"", "name = \"camera\"\ndrift = \"100ppm\""),
    (CREDIT, "name = \"drive\"", "name = \"drive\"\ndrift = \"-100ppm\""),
    (CREDIT, "name = \"cabinet\"", "name = \"cabinet\"\ndrift = \"-100ppm\""),
    (CREDIT, "name = \"machine\"", "name = \"machine\"\ndrift = \"-100ppm\""),
];

/// Periods that do not fit each other, at an adapter with credit.
const PACED_ROTATING: [Change; 2] = [
    ("ethernet/credit-station.toml", "9000, 64, 1, 0", "9113, 64, 1, 0"),
    ("ethernet/credit-station.toml", "16000, 1400, 4, 1", "16057, 1400, 4, 1"),
];
/// Commands have no credit, and go before pictures.
const PACED_BELOW: Change = ("ethernet/credit-station.toml", "priority = 1 ", "priority = 6 ");
/// The gate of commands closes, and that of pictures does not.
const PACED_GATES: [Change; 2] = [
    (PACED, "\"S ff 1ms\"", "\"S ff 12ms\", \"S fd 4ms\""),
    (PACED, "latency = \"10ms\"", "latency = \"20ms\""),
];
/// Credit for both, as little as they need.
const PACED_BOTH: [Change; 3] = [
    (
        PACED,
        "idle_slope = 400000 ",
        "idle_slope = 353000\n[[ethernet.credit]]\nend = \"station:nic0\"\npriority = 1\n\
         idle_slope = 153000 ",
    ),
    (PACED, "latency = \"10ms\"", "latency = \"60ms\""),
    (PACED, "latency = \"40ms\"", "latency = \"60ms\""),
];
/// The clock of the sender is fast, and that of the receiver slow.
const PACED_APART: [Change; 2] = [
    (PACED, "name = \"station\"", "name = \"station\"\ndrift = \"100ppm\""),
    (PACED, "name = \"drive\"", "name = \"drive\"\ndrift = \"-100ppm\""),
];

/// Runs every test whose name contains `part`.
pub fn run(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    let [first, second] = ROTATING;
    let cases: [(&str, Vec<Change>); 7] = [
        ("as the example is", Vec::new()),
        ("whatever comes together", vec![first, second]),
        ("with gates", vec![first, second, GATES]),
        ("in one queue", vec![first, second, EQUAL]),
        ("over a slow wire", [vec![first, second], SLOW.to_vec()].concat()),
        ("while senders have fast clocks", FAST_SENDERS.to_vec()),
        ("while senders have slow clocks", [&[GATES], &SLOW_SENDERS[..]].concat()),
    ];
    for (name, changes) in cases {
        let name = format!("simulator: Ethernet keeps its bounds {name}");
        let drifts = changes.iter().any(|(_, _, to)| to.contains("drift"));
        let horizon_ns = if drifts { APART_NS } else { HORIZON_NS };
        if name.contains(part) {
            tally.step(&name, || keeps(workspace, built, EXAMPLE, (&changes, horizon_ns)));
        }
    }
    let credited: [(&str, Vec<Change>); 5] = [
        ("whatever comes together", CREDIT_ROTATING.to_vec()),
        ("below a class without", [&CREDIT_ROTATING[..], &[CREDIT_BELOW]].concat()),
        ("beside gates", [&CREDIT_ROTATING[..], &[CREDIT_GATES]].concat()),
        ("for all", [&CREDIT_ROTATING[..], &CREDIT_BOTH].concat()),
        ("while clocks run apart", [&CREDIT_BOTH[..], &CREDIT_APART].concat()),
    ];
    for (name, changes) in credited {
        let name = format!("simulator: Ethernet keeps its bounds with credit {name}");
        let drifts = changes.iter().any(|(_, _, to)| to.contains("drift"));
        let horizon_ns = if drifts { APART_NS } else { HORIZON_NS };
        if name.contains(part) {
            tally.step(&name, || keeps(workspace, built, CREDIT, (&changes, horizon_ns)));
        }
    }
    let paced: [(&str, Vec<Change>); 5] = [
        ("whatever comes together", PACED_ROTATING.to_vec()),
        ("below a class without", [&PACED_ROTATING[..], &[PACED_BELOW]].concat()),
        ("beside gates", [&PACED_ROTATING[..], &PACED_GATES].concat()),
        ("for all", [&PACED_ROTATING[..], &PACED_BOTH].concat()),
        ("while clocks run apart", [&PACED_ROTATING[..], &PACED_APART].concat()),
    ];
    for (name, changes) in paced {
        let name = format!("simulator: Ethernet: an adapter keeps its bounds with credit {name}");
        if name.contains(part) {
            tally.step(&name, || keeps(workspace, built, PACED, (&changes, APART_NS)));
        }
    }
    let gated: [(&str, Vec<Change>); 4] = [
        ("whatever comes when", ANY_TIME.to_vec()),
        ("while frames wait for each other", IN_TWOS.to_vec()),
        ("while its clock is fast", [ANY_TIME, FAST_GATES].concat()),
        ("while its clock is slow", [ANY_TIME, SLOW_GATES].concat()),
    ];
    for (name, changes) in gated {
        let name = format!("simulator: Ethernet: an adapter keeps its gates {name}");
        if name.contains(part) {
            tally.step(&name, || keeps(workspace, built, GATED, (&changes, APART_NS)));
        }
    }
}

/// Checks that no frame of an adapter with gates left its window, in a run with at least so many of
/// two priorities.
fn in_windows(books: &GatedBooks, least: u64) -> Result<(), String> {
    println!("sent {:?}, outside {:?}", books.sent, books.outside);
    let sent = books.sent.iter().filter(|sent| **sent > least);
    if sent.count() < 2 || books.outside.iter().any(|outside| *outside > 0) {
        return Err(format!("sent {:?}, by {:?} outside", books.sent, books.longest));
    }
    Ok(())
}

/// Plans an example with some changes, runs it twice, and holds it to the plan.
pub(super) fn keeps(
    workspace: &Workspace,
    built: &Built,
    example: &str,
    (changes, horizon_ns): (&[Change], u64),
) -> Result<(), String> {
    let mut list = list(workspace, example, changes)?;
    let network = NetworkPlan::of(&list);
    network.instruct(&mut list);
    if let Some(wrong) = network.wrong().next() {
        return Err(wrong.to_string());
    }
    let options = RunOptions { horizon_ns, record_bytes: 0, watch: false };
    let Hosts { hosts, cables, ethernet, switches, flows, .. } = list;
    let drifts = hosts.iter().map(|host| host.drift_ppm).collect();
    let assemble = |host: diapason_system::HostSpec| {
        Session::assemble(host.system, built.clone(), options).map_err(|it| it.to_string())
    };
    let sessions = hosts.into_iter().map(assemble).collect::<Result<Vec<Session>, String>>()?;
    let joined =
        Joined::By(Box::new(Joints { cables, ethernet, switches, drifts, ..Joints::default() }));
    let seats = || sessions.iter().map(|session| Seat::new(session, ())).collect();
    let ran = together(seats(), &joined).map_err(|failure| failure.to_string())?;
    let again = together(seats(), &joined).map_err(|failure| failure.to_string())?;
    if !ran.iter().map(|it| it.hash).eq(again.iter().map(|it| it.hash)) {
        return Err("two runs differ".into());
    }
    for (session, host) in sessions.iter().zip(&ran) {
        if let Some(finding) = session.judge(&host.run).findings().first() {
            return Err(format!("{}: {finding}", session.system.name));
        }
    }
    let least = match example {
        GATED => GATED_LEAST,
        PACED => PACED_LEAST,
        acted if acted == ACTED[0] => ACTED_LEAST,
        sensed if SENSED.contains(&sensed) || sensed == ACTED[1] => SENSED_LEAST,
        _ => LEAST,
    };
    let least = least * horizon_ns / 1_000_000_000;
    for books in ran.iter().flat_map(|host| &host.gated) {
        in_windows(books, least)?;
    }
    for (flow, flowed) in flows.iter().zip(&network.flows) {
        let (name, end) = (&flow.name, flow.end());
        let bill = flowed.bill.as_ref().map_err(|none| format!("{name}: {none:?}"))?;
        let bound = bill.between_pipes().longest.0;
        let mut rows = ran[end.host].run.outcome.chains.iter();
        let row = rows.find(|row| row.process == u64::from(end.process));
        let row = row.ok_or_else(|| format!("{name}: nobody reported"))?;
        println!("{name}: {} messages, {} of {bound} ns", row.messages, row.whole_max_ns);
        if row.messages < least || row.lost > 0 || row.whole_max_ns > bound {
            return Err(format!("{name}: {row:?}, at most {bound} ns are planned"));
        }
    }
    Ok(())
}

/// Returns an example with one text for another in some files.
pub(super) fn list(
    workspace: &Workspace,
    example: &str,
    changes: &[Change],
) -> Result<Hosts, String> {
    let read = |file: &str| {
        let path = workspace.root().join("examples").join(file);
        let mut text = fs::read_to_string(path).map_err(|error| error.to_string())?;
        for (_, from, to) in changes.iter().filter(|(own, _, _)| *own == file) {
            if !text.contains(from) {
                return Err(format!("{file} has no `{from}`"));
            }
            text = text.replace(from, to);
        }
        Ok::<_, String>(text)
    };
    let find = |file: &str| read(file).map(|text| (file.to_owned(), text));
    match parse_any(example, &read(example)?, find) {
        Ok(Description::Several(list)) => Ok(list),
        Ok(_) => Err("the example is one host".into()),
        Err(wrong) => Err(wrong.to_string()),
    }
}
