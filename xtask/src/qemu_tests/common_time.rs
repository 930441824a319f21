//! Two hosts whose Ethernet servers keep a common time, in the simulator: their times are never
//! further apart than the terms say, while clocks run apart, after the wire was pulled, and after a
//! stranger flooded it. Gates of a host that follows keep the windows of the host that leads.

use super::ethernet::{Change, list};
use crate::tally::Tally;
use clap::Parser;
use diapason::Workspace;
use diapason::arguments::{CommandLine, execute};
use diapason::failure::{HOLDS, UNPROVED};
use diapason::metal::Built;
use diapason::outcome::{TimeRow, apart};
use diapason::plan::{CommonTerms, CommonTime, NetworkPlan};
use diapason::session::Session;
use diapason::simulate::{Joined, Joints, PromisedTime, Seat, together};
use diapason_abi::Nanos;
use diapason_devices::faulty::OwnClock;
use diapason_sim::GatedBooks;
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
const REBOOT: &str = "25s reboot 3s";
const PULLED: Change = (EXAMPLE, "delay = \"500ns\"", "delay = \"500ns\"\npulled = [\"25s 3s\"]");

/// The other host leads, and the one that sends keeps gates by its time.
const GATED: [Change; 8] = [
    (EXAMPLE, "time = \"station:nic0\" ", "time = \"drive:nic0\" "),
    (
        EXAMPLE,
        "# frames of a kind that may be lost in a row\n",
        "\n[[ethernet.gates]]\nend = \"station:nic0\"\nguard = \"710us\"\n\
        entries = [\"S 40 3ms\", \"S 3f 3ms\"]\n",
    ),
    (EXAMPLE, "period = \"4ms\"", "period = \"8ms\""),
    (EXAMPLE, "period = \"2ms\"", "period = \"4ms\""),
    ("ethernet/station.toml", "arguments = [4000", "arguments = [8000"),
    ("ethernet/station.toml", "arguments = [2000", "arguments = [4000"),
    (EXAMPLE, "latency = \"5ms\"", "latency = \"12ms\""),
    (EXAMPLE, "latency = \"20ms\"", "latency = \"12ms\""),
];
/// Frames of each class that such a host sends in a run at least.
const GATED_LEAST: u64 = 4_000;

/// A run of both hosts.
struct Case {
    name: &'static str,
    changes: Vec<Change>,
    /// A fault at the drive, in words of the command line.
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
    let gated = |name, changes: &[Change], fault| Case {
        changes: [&GATED[..], changes].concat(),
        ..case(name, &[], fault)
    };
    let all_gated = [
        gated("and gates go by it while its master is slow", &[], None),
        gated("and gates go by it while its master is fast", &SLOW, None),
        gated("and gates go by it after its wire was pulled", &[PULLED], None),
        Case {
            changes: GATED[1..].to_vec(),
            ..case("and gates of the master go by it", &[], None)
        },
        gated("and gates go by it after a flood", &[], Some("25s flood nic0 20000 3s")),
        gated("and gates go by it after its master boots again", &[], Some(REBOOT)),
    ];
    let name = "simulator: Ethernet: flows through gates by a common time hold once it is known";
    if name.contains(part) {
        tally.step(name, || holds(workspace, "ethernet-gates-time.toml"));
    }
    let name = "simulator: Ethernet: gates at both ends of a wire go by one time, and flows hold";
    if name.contains(part) {
        tally.step(name, || holds(workspace, "ethernet-gates-both.toml"));
    }
    for case in cases.into_iter().chain(all_gated) {
        let name = format!("simulator: Ethernet: hosts have a common time {}", case.name);
        if name.contains(part) {
            tally.step(&name, || keeps(workspace, built, &case));
        }
    }
}

/// Checks the verdict of the command. Messages that are lost while gates are closed break nothing.
pub(super) fn holds(workspace: &Workspace, list: &str) -> Result<(), String> {
    let list = workspace.root().join("examples").join(list);
    let list = list.display().to_string();
    let verdict = |length: &str| {
        let words = ["diapason", "sim", &list, "--for", length];
        let line = CommandLine::try_parse_from(words).map_err(|error| error.to_string())?;
        execute(line.command).map_err(|failure| failure.to_string())
    };
    // Nobody knows the time after 5 s, and nothing is measured.
    match (verdict("30s")?, verdict("5s")?) {
        (HOLDS, UNPROVED) => Ok(()),
        codes => Err(format!("exit codes {codes:?}")),
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
    let times = PromisedTime::of(&list, &network);
    let Hosts { hosts, cables, ethernet, switches, .. } = list;
    let drifts: Vec<i32> = hosts.iter().map(|host| host.drift_ppm).collect();
    let worlds: Vec<OwnClock> = drifts.iter().map(|ppm| OwnClock::world(*ppm)).collect();
    let is_gated = case.changes.contains(&GATED[1]);
    let follows = case.changes.contains(&GATED[0]);
    let is_flooded = case.fault.is_some_and(|fault| fault != REBOOT);
    let is_away = case.changes.contains(&PULLED) || case.fault == Some(REBOOT);
    let assemble = |host: diapason_system::HostSpec| {
        Session::assemble(host.system, built.clone(), options).map_err(|it| it.to_string())
    };
    let sessions = hosts.into_iter().map(assemble).collect::<Result<Vec<Session>, String>>()?;
    let joined = Joined::By(Box::new(Joints {
        cables,
        ethernet,
        switches,
        drifts,
        times,
        ..Joints::default()
    }));
    let mut seats: Vec<_> = sessions.iter().map(|session| Seat::new(session, ())).collect();
    if let Some(words) = case.fault {
        let fault = parse_fault(&sessions[1].system, words).map_err(|it| it.to_string())?;
        seats[1].faults.push(fault);
    }
    let ran = together(seats, &joined).map_err(|failure| failure.to_string())?;
    for (session, host) in sessions.iter().zip(&ran) {
        // Messages under way are lost with the wire, and a flood is outside of all contracts.
        let is_kept = !is_away && !is_flooded;
        let judged = session.judge(&host.run);
        if let Some(finding) = judged.findings().first().filter(|_| is_kept) {
            return Err(format!("{}: {finding}", session.system.name));
        }
    }
    if is_flooded && sessions[1].judge(&ran[1].run).findings().is_empty() {
        return Err("no flood was noticed".into());
    }
    let ends = if follows { [1, 0] } else { [0, 1] };
    let lives = |host: usize| ran[host].run.outcome.lives();
    let all = ends.map(|host| lives(host).flat_map(|it| it.times.clone()).collect::<Vec<_>>());
    let rows = all.each_ref().map(Vec::as_slice);
    let world = |host: usize| {
        let clock = &worlds[host];
        move |at: Nanos| clock.own(at)
    };
    let (leader, follower) = (world(ends[0]), world(ends[1]));
    let (furthest, compared) = apart(rows, [&leader, &follower]);
    let bound = terms.error().0;
    println!("{furthest} of {bound} ns, compared {compared} times: {:?}", rows[1].last());
    if furthest > bound || compared < 20 {
        return Err(format!("{furthest} of {bound} ns, compared {compared} times: {rows:?}"));
    }
    rows.into_iter().try_for_each(|rows| learns(rows, terms.learnt()))?;
    let trouble = (is_away, is_flooded);
    if is_gated {
        windows(&ran[0].gated, rows[usize::from(follows)].last(), bound, trouble)?;
    }
    known(rows[1], trouble)
}

/// Checks that a host with gates kept its windows, and that it discarded frames before it first
/// knew the time. Only a host that lost the time does so later: it has if its wire was pulled or
/// its master was away.
fn windows(
    gated: &[GatedBooks],
    last: Option<&TimeRow>,
    bound: u64,
    (is_away, is_flooded): (bool, bool),
) -> Result<(), String> {
    println!("{gated:?}");
    let kept = gated.iter().all(|books| {
        let sent = books.sent.iter().filter(|sent| **sent > GATED_LEAST).count();
        let longest = books.longest.iter().max().is_some_and(|it| it.0 <= bound);
        sent == 2 && longest && books.outside.iter().all(|outside| *outside == 0)
    });
    let discarded = last.is_some_and(|TimeRow { report, .. }| {
        report.without > 0 && (is_flooded || is_away == (report.unsent > 0))
    });
    match gated.len() == 1 && kept && discarded {
        true => Ok(()),
        false => Err(format!("windows were not kept: {gated:?}, {last:?}")),
    }
}

/// Checks that a host first knew the time no later than so long after its server began.
fn learns(rows: &[TimeRow], learnt: Nanos) -> Result<(), String> {
    let last = rows.last().ok_or("a server reported nothing")?.report;
    let known = last.known.ok_or("a host never knew the time")? - last.begun;
    println!("known {known} after the server began, {learnt} is stated");
    match known <= learnt {
        true => Ok(()),
        false => Err(format!("the time is first known after {known}, and {learnt} is stated")),
    }
}

/// Checks that a follower knows the time from its first one to the end. It forgets the time if the
/// wire is pulled or its master is away, and may forget it in a flood.
fn known(rows: &[TimeRow], (is_away, is_flooded): (bool, bool)) -> Result<(), String> {
    let known = |row: &&TimeRow| row.report.common.is_some();
    let first = rows.iter().find(known).ok_or("it never knew the time")?;
    let forgot = rows.iter().filter(|row| row.at > first.at && !known(row));
    let forgot: Vec<u64> = forgot.map(|row| row.at.0).collect();
    let [from, until] = TROUBLE_NS;
    let ends = forgot.iter().all(|at| (from..until).contains(at));
    let is_expected = is_flooded || forgot.is_empty() != is_away;
    match rows.last().is_some_and(|row| known(&row)) && ends && is_expected {
        true => Ok(()),
        false => Err(format!("it forgot the time at {forgot:?}, of {} reports", rows.len())),
    }
}
