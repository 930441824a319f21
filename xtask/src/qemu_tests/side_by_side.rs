//! Cores side by side: several processors of one QEMU share a counted time, each as fast as alone.
//!
//! Runs are equal to the byte, and times mean what they mean with one core. The tests of booted
//! cores (`cores.rs`) have processors that really run at the same time, and compare no times.

use super::cores::Stage;
use super::joined::beside_a_loop;
use crate::tally::Tally;
use diapason::Workspace;
use diapason::console::Line;
use diapason::cores::{Processors, boot};
use diapason::metal::Built;
use diapason::outcome::{RunVerdict, ThreadRow};
use diapason::session::FinishedRun;
use diapason_system::RunOptions;
use std::fs;

/// Programs report once a second, and begin after boot.
const HORIZON_NS: u64 = 1_200_000_000;
/// The length of a recorded run: some 240 jobs of the controller.
const RECORDED_NS: u64 = 300_000_000;
/// The length of a turn, as the plugin has it.
const TURN_NS: u64 = 1_000;
const CONCENTRATOR: &str = "examples/can-concentrator.toml";
/// A task that never stops, on a second core.
const HOG: &str = r#"
[[process]]
name = "hog"
program = "cores-hog"
core = 1
priority = 63
"#;

type Test = fn(&Stage<'_>) -> Result<(), String>;

const TESTS: [(&str, Test); 3] = [
    ("cores side by side: runs are equal to the byte, and as simulated", equal),
    ("cores side by side: a core has its times whatever another has to do", undisturbed),
    ("cores side by side: devices are served beside a core that never stops", devices),
];

/// Runs every test whose name contains `part`.
pub fn run(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    let stage = Stage { workspace, built };
    for (name, test) in TESTS.into_iter().filter(|(name, _)| name.contains(part)) {
        tally.step(name, || test(&stage));
    }
}

/// The runs of the cores of a host, and all lines that they said.
type Ran = (Vec<FinishedRun>, Vec<(usize, Line)>);

/// Boots cores of a text. None breaks a promise, and the first core keeps some.
fn ran(stage: &Stage<'_>, text: &str) -> Result<Ran, String> {
    let options = RunOptions { horizon_ns: HORIZON_NS, record_bytes: 0, watch: false };
    let mut sessions = stage.sessions(text, options)?;
    let mut said = Vec::new();
    let runs = boot(stage.workspace, &mut sessions, Processors::SideBySide, &mut |core, line| {
        said.push((core, line.clone()));
    });
    let runs = runs.map_err(|failure| failure.to_string())?;
    for ((name, session), run) in sessions.iter().zip(&runs) {
        let (verdict, unmeasured) = (session.judge(run), session.unmeasured(run));
        if verdict != RunVerdict::Holds || session.system.core == 0 && !unmeasured.is_empty() {
            return Err(format!("core {name}: {verdict:?}, not measured: {unmeasured:?}"));
        }
    }
    Ok((runs, said))
}

/// Two runs of the example are equal, one beside a loop that never ends. Threads do what they do in
/// the simulator.
fn equal(stage: &Stage<'_>) -> Result<(), String> {
    let text = stage.text()?;
    let first = ran(stage, &text)?;
    if beside_a_loop(|| ran(stage, &text))? != first {
        return Err("beside a loop, another run".into());
    }
    let both = stage.both(&text, Processors::SideBySide, RECORDED_NS)?;
    both.controls()?;
    both.agree(1).map(drop)
}

/// Without the task that never stops on the second core, the jobs of the first take the same times.
/// Boot is shorter then, so that one more may be done.
fn undisturbed(stage: &Stage<'_>) -> Result<(), String> {
    let text = stage.text()?;
    let [(busy, loud), (quiet, silent)] = [ran(stage, &text)?, ran(stage, &stage.without_hog()?)?];
    let [rung, alone] = [longest_ring(&loud)?, longest_ring(&silent)?];
    println!("a ring is heard after {rung} ns, and after {alone} ns by a core that slept");
    // It takes a switch more, and may wait for the end of a turn.
    if !(alone..=alone + TURN_NS).contains(&rung) {
        return Err("a ring is heard too early or too late".into());
    }
    let [with, without] = [&busy, &quiet].map(|runs| runs[1].outcome.end.map(|end| end.idle_ns));
    println!("the second core is idle for {with:?} and {without:?} ns");
    if with >= without {
        return Err("the second core was not busy".into());
    }
    let [with, without] = [&busy, &quiet].map(|runs| &runs[0].outcome.threads[0]);
    let times = |row: &ThreadRow| (row.response_max_ns, row.cost, row.misses, row.skipped);
    println!("{} and {} jobs, {:?}", with.jobs, without.jobs, times(with));
    match times(with) == times(without) && with.jobs.abs_diff(without.jobs) <= 1 {
        true => Ok(()),
        false => Err(format!("{with:?}\nwithout the task: {without:?}")),
    }
}

/// Returns how long a ring took at most until the logger on the second core heard it, in ns.
fn longest_ring(said: &[(usize, Line)]) -> Result<u64, String> {
    let longest = said.iter().rev().find_map(|(_, line)| match line {
        Line::Log { text, .. } => text.strip_prefix("CORES ")?.split(' ').next_back()?.parse().ok(),
        _ => None,
    });
    longest.ok_or_else(|| String::from("the logger said nothing"))
}

/// A USB interface with five channels at the first core, beside a second that never stops.
fn devices(stage: &Stage<'_>) -> Result<(), String> {
    let text = fs::read_to_string(stage.workspace.root().join(CONCENTRATOR));
    let text = text.map_err(|error| format!("{CONCENTRATOR}: {error}"))?;
    let text = text.replace("[system]\n", "[system]\ncores = 2\n") + HOG;
    let (runs, _) = ran(stage, &text)?;
    let messages: u64 = runs[0].outcome.pipes.iter().map(|row| row.messages).sum();
    println!("{messages} messages");
    if messages > 2_000 { Ok(()) } else { Err(format!("only {messages} messages")) }
}
