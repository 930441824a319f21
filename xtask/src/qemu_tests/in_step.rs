//! A sender in step with the gates of its adapter, in the simulator: frames have left when `plan`
//! says, whichever clock is fast, and whoever leads. A program that is not in step is found.

use super::common_time::holds;
use super::ethernet::{Change, list};
use crate::tally::Tally;
use diapason::Workspace;
use diapason::metal::Built;
use diapason::plan::NetworkPlan;
use diapason::session::Session;
use diapason::simulate::{Joined, Joints, PromisedTime, Seat, steps, together};
use diapason_sim::GatedBooks;
use diapason_system::{HostSpec, Hosts, RunOptions, parse_fault};

const EXAMPLE: &str = "ethernet-gates-step.toml";
const STATION: &str = "ethernet/step-station.toml";
const HORIZON_NS: u64 = 50_000_000_000;
/// The class of commands, and the frames that it sends in a run at least.
const CLASS: usize = 6;
const LEAST: u64 = 3_000;
/// The sender is slow, and the host that leads is fast.
const SLOW: [Change; 2] = [
    (EXAMPLE, "drift = \"100ppm\"", "drift = \"-100ppm\" "),
    (EXAMPLE, "drift = \"-100ppm\"\n", "drift = \"100ppm\"\n"),
];
const LEADS: Change = (EXAMPLE, "time = \"drive:nic0\" ", "time = \"station:nic0\" ");
/// Gates without a common time.
const ALONE: [Change; 3] = [
    (EXAMPLE, "time = \"drive:nic0\"", ""),
    (EXAMPLE, "time_read = \"2us\"", ""),
    (EXAMPLE, "time_losses = 3", ""),
];
/// The program that sends goes by a period of its own.
const IGNORANT: [Change; 3] = [
    (STATION, "name = \"command\"", "name = \"control\""),
    (STATION, "program = \"udp-tell\"\npriority = 30", "program = \"udp-ping\"\npriority = 30"),
    (STATION, "arguments = [6000, 64, 1, 0]", "arguments = [6000, 64, 0, 0]"),
];
/// A cycle begins at another time than that of zero.
const BASED: Change = (EXAMPLE, "guard = \"710us\"", "guard = \"710us\"\nbase = \"1300us\"");

/// The findings that a run must have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Finds {
    Nothing,
    /// The time is lost, and no frame is out of step.
    Losses,
    /// Nothing of the program is in step.
    OutOfStep,
}

/// Runs every test whose name contains `part`.
pub fn run(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    let name = "simulator: Ethernet: flows in step with gates hold once the time is known";
    if name.contains(part) {
        tally.step(name, || holds(workspace, EXAMPLE));
    }
    let cases: [(&str, &[Change], Option<&str>, Finds); 6] = [
        ("while its clock is slow", &SLOW, None, Finds::Nothing),
        ("if its host leads", &[LEADS], None, Finds::Nothing),
        ("by the clock of its host", &ALONE, None, Finds::Nothing),
        ("wherever a cycle begins", &[BASED], None, Finds::Nothing),
        ("after its master boots again", &[], Some("25s reboot 3s"), Finds::Losses),
        ("or is found", &IGNORANT, None, Finds::OutOfStep),
    ];
    for (name, changes, fault, finds) in cases {
        let name = format!("simulator: Ethernet: a sender is in step with gates {name}");
        if name.contains(part) {
            tally.step(&name, || keeps(workspace, built, changes, (fault, finds)));
        }
    }
}

/// Runs the list with changes and a fault at the drive.
fn keeps(
    workspace: &Workspace,
    built: &Built,
    changes: &[Change],
    (fault, finds): (Option<&str>, Finds),
) -> Result<(), String> {
    let mut list = list(workspace, EXAMPLE, changes)?;
    let network = NetworkPlan::of(&list);
    network.instruct(&mut list);
    if let Some(wrong) = network.wrong().next() {
        return Err(wrong.to_string());
    }
    let options = RunOptions { horizon_ns: HORIZON_NS, record_bytes: 0, watch: false };
    let (times, steps) = (PromisedTime::of(&list, &network), steps(&list, &network));
    if steps.len() != 1 {
        return Err(format!("one flow is in step: {steps:?}"));
    }
    let Hosts { hosts, cables, ethernet, switches, .. } = list;
    let drifts = hosts.iter().map(|host| host.drift_ppm).collect();
    let assemble = |host: HostSpec| {
        Session::assemble(host.system, built.clone(), options).map_err(|it| it.to_string())
    };
    let sessions = hosts.into_iter().map(assemble).collect::<Result<Vec<Session>, String>>()?;
    let joints = Joints { cables, ethernet, switches, drifts, times, steps, ..Joints::default() };
    let mut seats: Vec<_> = sessions.iter().map(|session| Seat::new(session, ())).collect();
    if let Some(words) = fault {
        let fault = parse_fault(&sessions[1].system, words).map_err(|it| it.to_string())?;
        seats[1].faults.push(fault);
    }
    let ran =
        together(seats, &Joined::By(Box::new(joints))).map_err(|failure| failure.to_string())?;
    let judged = |host: usize| sessions[host].judge(&ran[host].run);
    let found: Vec<String> = [0, 1].map(judged).iter().flat_map(|it| it.findings()).collect();
    println!("{found:#?}");
    let is_step = |it: &&String| it.contains("socket-step");
    let is_found = match finds {
        Finds::Nothing => found.is_empty(),
        Finds::Losses => found.iter().filter(is_step).count() == 0,
        Finds::OutOfStep => found.iter().any(|it| is_step(&it)),
    };
    match is_found && in_step(&ran[0].gated, finds) {
        true => Ok(()),
        false => Err(format!("{found:#?}, {:?}", ran[0].gated)),
    }
}

/// Returns whether frames left as planned: none out of step, and many in step if they could be.
fn in_step(gated: &[GatedBooks], finds: Finds) -> bool {
    let [books] = gated else { return false };
    println!("sent {:?}, late {:?}", books.sent, books.late);
    let many = books.sent[CLASS] > LEAST;
    books.late == [0; 8] && books.outside == [0; 8] && (many || finds == Finds::OutOfStep)
}
