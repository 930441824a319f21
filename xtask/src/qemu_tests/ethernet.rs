//! Hosts at an Ethernet switch, in the simulator: no message of a flow is later than its bound, as
//! the example is and where the plan could be wrong most easily, also while all clocks run apart.

use crate::tally::Tally;
use diapason::Workspace;
use diapason::metal::Built;
use diapason::plan::NetworkPlan;
use diapason::session::Session;
use diapason::simulate::{Joined, Joints, Seat, together};
use diapason_system::{Description, Hosts, RunOptions, parse_any};
use std::fs;

const EXAMPLE: &str = "ethernet.toml";
const HORIZON_NS: u64 = 3_000_000_000;
/// How long clocks run apart: a contract that does not count with it is broken by then.
const APART_NS: u64 = 40_000_000_000;
/// Messages of each flow that a run must see in a second.
const LEAST: u64 = 500;

/// A change of a file of the example: the file, and one text for another.
type Change = (&'static str, &'static str, &'static str);

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
            tally.step(&name, || keeps(workspace, built, (&changes, horizon_ns)));
        }
    }
}

/// Plans the example with some changes, runs it twice, and holds it to the plan.
fn keeps(
    workspace: &Workspace,
    built: &Built,
    (changes, horizon_ns): (&[Change], u64),
) -> Result<(), String> {
    let mut list = list(workspace, changes)?;
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
    let joined = Joined::By(Joints { cables, ethernet, switches, drifts, ..Joints::default() });
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
    for (flow, flowed) in flows.iter().zip(&network.flows) {
        let (name, end) = (&flow.name, flow.end());
        let bound = flowed.bill.as_ref().map_err(|none| format!("{name}: {none:?}"))?.total.0;
        let mut rows = ran[end.host].run.outcome.chains.iter();
        let row = rows.find(|row| row.process == u64::from(end.process));
        let row = row.ok_or_else(|| format!("{name}: nobody reported"))?;
        println!("{name}: {} messages, {} of {bound} ns", row.messages, row.whole_max_ns);
        let least = LEAST * horizon_ns / 1_000_000_000;
        if row.messages < least || row.lost > 0 || row.whole_max_ns > bound {
            return Err(format!("{name}: {row:?}, at most {bound} ns are planned"));
        }
    }
    Ok(())
}

/// Returns the example with one text for another in some files.
fn list(workspace: &Workspace, changes: &[Change]) -> Result<Hosts, String> {
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
    match parse_any(EXAMPLE, &read(EXAMPLE)?, find) {
        Ok(Description::Several(list)) => Ok(list),
        Ok(_) => Err("the example is one host".into()),
        Err(wrong) => Err(wrong.to_string()),
    }
}
