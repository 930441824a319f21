//! Two hosts whose Ethernet servers keep a common time, in the simulator: their times are never
//! further apart than the terms say, while clocks run apart, after the wire was pulled, and after a
//! stranger flooded it.

use super::ethernet::{Change, list};
use crate::tally::Tally;
use diapason::Workspace;
use diapason::metal::Built;
use diapason::outcome::{TimeRow, apart};
use diapason::plan::{CommonTerms, CommonTime, NetworkPlan};
use diapason::session::Session;
use diapason::simulate::{Joined, Joints, Seat, together};
use diapason_abi::Nanos;
use diapason_devices::faulty::OwnClock;
use diapason_system::{Hosts, RunOptions, parse_fault};

const EXAMPLE: &str = "ethernet-time.toml";
const HORIZON_NS: u64 = 60_000_000_000;
/// The wire is pulled or flooded from the first of these on, and the time is known from the second.
const TROUBLE_NS: [u64; 2] = [25_000_000_000, 50_000_000_000];
/// The master of the example is fast, and the other host slow.
const SLOW: [Change; 2] = [
    (EXAMPLE, "drift = \"100ppm\"", "drift = \"-100ppm\" "),
    (EXAMPLE, "drift = \"-100ppm\"\n", "drift = \"100ppm\"\n"),
];
const PULLED: Change = (EXAMPLE, "delay = \"500ns\"", "delay = \"500ns\"\npulled = [\"25s 3s\"]");

/// A run of both hosts.
struct Case {
    name: &'static str,
    changes: Vec<Change>,
    /// A fault at the host that follows, in words of the command line.
    fault: Option<&'static str>,
}

/// Runs every test whose name contains `part`.
pub fn run(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    let case = |name, changes: &[Change], fault| Case { name, changes: changes.to_vec(), fault };
    let cases = [
        case("while its master is fast", &[], None),
        case("while its master is slow", &SLOW, None),
        case("after its wire was pulled", &[PULLED], None),
        case("after a flood", &[], Some("25s flood nic0 20000 3s")),
    ];
    for case in cases {
        let name = format!("simulator: Ethernet: hosts have a common time {}", case.name);
        if name.contains(part) {
            tally.step(&name, || keeps(workspace, built, &case));
        }
    }
}

/// Runs the list with changes, and compares the times that both servers report.
fn keeps(workspace: &Workspace, built: &Built, case: &Case) -> Result<(), String> {
    let mut list = list(workspace, EXAMPLE, &case.changes)?;
    let network = NetworkPlan::of(&list);
    network.instruct(&mut list);
    if let Some(wrong) = network.wrong().next() {
        return Err(wrong.to_string());
    }
    let [CommonTime { terms: Ok(CommonTerms { sync: terms, .. }), .. }] = network.times[..] else {
        return Err(format!("{:?}", network.times));
    };
    let options = RunOptions { horizon_ns: HORIZON_NS, record_bytes: 0, watch: false };
    let Hosts { hosts, cables, ethernet, switches, .. } = list;
    let drifts: Vec<i32> = hosts.iter().map(|host| host.drift_ppm).collect();
    let worlds: Vec<OwnClock> = drifts.iter().map(|ppm| OwnClock::world(*ppm)).collect();
    let is_pulled = case.changes.contains(&PULLED);
    let assemble = |host: diapason_system::HostSpec| {
        Session::assemble(host.system, built.clone(), options).map_err(|it| it.to_string())
    };
    let sessions = hosts.into_iter().map(assemble).collect::<Result<Vec<Session>, String>>()?;
    let joined = Joined::By(Joints { cables, ethernet, switches, drifts, ..Joints::default() });
    let mut seats: Vec<_> = sessions.iter().map(|session| Seat::new(session, ())).collect();
    if let Some(words) = case.fault {
        let fault = parse_fault(&sessions[1].system, words).map_err(|it| it.to_string())?;
        seats[1].faults.push(fault);
    }
    let ran = together(seats, &joined).map_err(|failure| failure.to_string())?;
    for (session, host) in sessions.iter().zip(&ran) {
        // Messages under way are lost with the wire, and a flood is outside of all contracts.
        let is_kept = !is_pulled && case.fault.is_none();
        let judged = session.judge(&host.run);
        if let Some(finding) = judged.findings().first().filter(|_| is_kept) {
            return Err(format!("{}: {finding}", session.system.name));
        }
    }
    if case.fault.is_some() && sessions[1].judge(&ran[1].run).findings().is_empty() {
        return Err("no flood was noticed".into());
    }
    let rows = [0, 1].map(|host: usize| &ran[host].run.outcome.times[..]);
    let world = |host: usize| {
        let clock = &worlds[host];
        move |at: Nanos| clock.own(at)
    };
    let (leader, follower) = (world(0), world(1));
    let (furthest, compared) = apart(rows, [&leader, &follower]);
    let bound = terms.error().0;
    println!("{furthest} of {bound} ns, compared {compared} times: {:?}", rows[1].last());
    if furthest > bound || compared < 20 {
        return Err(format!("{furthest} of {bound} ns, compared {compared} times: {rows:?}"));
    }
    rows.into_iter().try_for_each(|rows| learns(rows, terms.learnt()))?;
    known(rows[1], (is_pulled, case.fault.is_some()))
}

/// Checks that no report from so long after the first one on comes before the time is known.
fn learns(rows: &[TimeRow], learnt: Nanos) -> Result<(), String> {
    let begun = rows.first().map_or(Nanos::ZERO, |row| row.at);
    let first = rows.iter().find(|row| row.report.common.is_some()).map(|row| row.at - begun);
    println!("known {first:?} after the first report, {learnt} is stated");
    let mut without = rows.iter().take_while(|row| row.report.common.is_none());
    match without.find(|row| row.at - begun > learnt) {
        Some(row) => Err(format!("the time is not known at {}", row.at)),
        None => Ok(()),
    }
}

/// Checks that a follower knows the time from its first one to the end. It forgets the time if the
/// wire is pulled, and may forget it in a flood.
fn known(rows: &[TimeRow], (is_pulled, is_flooded): (bool, bool)) -> Result<(), String> {
    let known = |row: &&TimeRow| row.report.common.is_some();
    let first = rows.iter().find(known).ok_or("it never knew the time")?;
    let forgot = rows.iter().filter(|row| row.at > first.at && !known(row));
    let forgot: Vec<u64> = forgot.map(|row| row.at.0).collect();
    let [from, until] = TROUBLE_NS;
    let ends = forgot.iter().all(|at| (from..until).contains(at));
    let is_expected = is_flooded || forgot.is_empty() != is_pulled;
    match rows.last().is_some_and(|row| known(&row)) && ends && is_expected {
        true => Ok(()),
        false => Err(format!("it forgot the time at {forgot:?}, of {} reports", rows.len())),
    }
}
