//! Counters that wrap while a whole system runs: the clocks of CAN interfaces pass the end of their
//! stamps ten seconds into the run, fast or slow by 500 millionths. Nothing changes: the kernel
//! decides the same at the same times, every message has the same life, and the report is the same
//! to the byte. Counters that wrap in each run of other steps are in `docs/counters.md`.

use super::CONCENTRATOR;
use super::traces::Hashes;
use crate::qemu_tests::observed::Observed;
use diapason::Workspace;
use diapason::metal::Built;
use diapason::session::Session;
use diapason::simulate::{Simulation, asked, usual};
use diapason_system::{RunOptions, parse};
use std::fs;

/// A description, the word of an interface's model, how long its stamps last in ns, the fewest
/// messages that are followed in a second of a run, and what its clock does in each run.
type Case = (&'static str, &'static str, u64, u64, &'static [Option<&'static str>]);

const CASES: [Case; 2] = [
    // Microseconds in 32 bits.
    (
        "tests/systems/gs-usb.toml",
        "model = \"gs-usb\"",
        (1 << 32) * 1_000,
        3_000,
        &[None, FAST, SLOW],
    ),
    // The states of its controllers have ticks of 80 MHz in 48 bits.
    (CONCENTRATOR, "model = \"usb-can\"", ((1 << 48) / 80) * 1_000, 6_000, &[FAST]),
];
const SECOND: u64 = 1_000_000_000;
/// The clock of the interface wraps so long after the host resets it.
const BEFORE: u64 = 10 * SECOND;
/// All messages are followed for so long.
const HORIZON_NS: u64 = 13 * SECOND;
const FAST: Option<&str> = Some("0s fast-clock interface 500");
const SLOW: Option<&str> = Some("0s slow-clock interface 500");

/// Everything about a run that must not change.
#[derive(PartialEq, Eq)]
struct Seen {
    timeline: u64,
    table: String,
    lives: String,
    messages: u64,
}

/// Simulates a description whose interface has this clock when it is reset.
fn run(
    (file, text): (&str, &str),
    built: &Built,
    (model, clock_at, fault): (&str, u64, Option<&str>),
) -> Result<Seen, String> {
    let keys = format!("{model}\ndrift = 500\nclock_at = \"{clock_at}ns\"");
    let text = text.replacen(model, &keys, 1);
    let system = parse(file, &text).map_err(|bad| bad.plain())?;
    let faults: Vec<String> = fault.into_iter().map(String::from).collect();
    let faults = asked(&system, &faults).map_err(|bad| bad.to_string())?;
    let options = RunOptions { horizon_ns: HORIZON_NS, record_bytes: 0, watch: false };
    let session = Session::assemble(system, built.clone(), options);
    let session = session.map_err(|failure| failure.to_string())?;
    let (how, mut hashes) = (usual(&session, None), Hashes::default());
    let simulation = Simulation::new(&session, &how).with_faults(&faults).following(None);
    let simulated = simulation.run(&mut hashes).map_err(|failure| failure.to_string())?;
    let lives = simulated.lives;
    let boot = Observed::of(&session, simulated.run, Vec::new())?;
    boot.holds()?;
    Ok(Seen {
        timeline: hashes.timeline.0,
        table: boot.table(),
        messages: lives.seen.iter().map(|seen| seen.messages).sum(),
        lives: format!("{lives:?}"),
    })
}

/// Runs each case with a clock that wraps and one that does not.
pub fn check(workspace: &Workspace, built: &Built) -> Result<(), String> {
    for (file, model, wrap, rate, faults) in CASES {
        let text = fs::read_to_string(workspace.root().join(file));
        let text = text.map_err(|error| format!("{file}: {error}"))?;
        for fault in faults.iter().copied() {
            let at = |clock_at| {
                let run = run((file, &text), built, (model, clock_at, fault));
                run.map_err(|wrong| format!("{file}, {fault:?}, from {clock_at} ns: {wrong}"))
            };
            let (young, old) = (at(0)?, at(wrap - BEFORE)?);
            let named = format!("{file}, {fault:?}");
            if young.messages < rate * (HORIZON_NS / SECOND - 2) {
                return Err(format!("{named}: only {} messages", young.messages));
            }
            let differ = [
                ("the report", young.table != old.table),
                ("the life of a message", young.lives != old.lives),
                ("a decision of the kernel", young.timeline != old.timeline),
            ];
            if let Some((what, _)) = differ.iter().find(|(_, differ)| *differ) {
                let (young, old) = (young.table, old.table);
                return Err(format!("{named}: {what} differs:\n{young}\nwith a wrap:\n{old}"));
            }
            println!("{named}: {} messages, and all is the same", young.messages);
        }
    }
    Ok(())
}
