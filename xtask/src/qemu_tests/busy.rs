//! A host that holds the machine up while it measures its clock: boot refuses, or what it measured
//! is right.
//!
//! QEMU runs in the time of the computer here. The test stops it again and again for longer than
//! the machine's only clock takes to wrap.

use crate::tally::Tally;
use diapason::Workspace;
use diapason::console::{Line, Splitter};
use diapason::describe::describe;
use diapason::hardware::Hardware;
use diapason::metal::Built;
use diapason::qemu::RunFolder;
use diapason::session::Session;
use diapason_abi::archive::Refusal;
use diapason_abi::record::Record;
use diapason_random::Random;
use diapason_redir::Emulator;
use diapason_system::RunOptions;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const NAME: &str = "a host that stops the machine makes no clock wrong";
const SYSTEM: &str = "examples/engine.toml";
/// A PC with a PIT, which wraps after 55 ms, and no other clock.
const PIT_ALONE: Hardware = Hardware { machine: "microvm", ..Hardware::USUAL };
/// Boots that are held up, and those until one that is not held up was measured.
const BUSY: u64 = 6;
const CALM_MAX: u32 = 8;
/// How long the machine stands still, and how long it runs between, in ms. After an odd seed it
/// runs for so much longer, and may be measured.
const STANDS: (u64, u64) = (35, 110);
const RUNS: (u64, u64) = (3, 30);
const LONGER: u64 = 60;
/// A speed is right to one part in this. The host itself may hold the calm boot up.
const RIGHT: u64 = 1_000;

/// The tests of this file.
pub fn run(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    if NAME.contains(part) {
        tally.step(NAME, || check(workspace, built));
    }
}

fn check(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let mut measured = (0..CALM_MAX).map(|_| measure(workspace, built, None));
    let right =
        measured.find_map(|speed| speed.transpose()).ok_or("no calm boot was measured")??;
    println!("the counter has {right} kHz");
    for seed in 0..BUSY {
        let Some(khz) = measure(workspace, built, Some(seed))? else { continue };
        if khz.abs_diff(right) > right / RIGHT {
            return Err(format!("seed {seed}: the counter has {khz} kHz, and not {right}"));
        }
    }
    Ok(())
}

/// Boots the system, and holds it up as the seed says until it has measured its clock. Returns the
/// speed of its counter in kHz, or that it refused to say one.
fn measure(workspace: &Workspace, built: &Built, seed: Option<u64>) -> Result<Option<u64>, String> {
    let said = |failure: diapason::Failure| failure.to_string();
    let options = RunOptions { horizon_ns: 1, record_bytes: 0, watch: false };
    let system = describe(&workspace.root().join(SYSTEM)).map_err(said)?;
    let mut session = Session::assemble(system, built.clone(), options).map_err(said)?;
    session.hardware = PIT_ALONE;
    let boot = diapason::qemu::Boot { counted: false, ..session.boot() };
    let folder = RunFolder::create(&workspace.target()).map_err(said)?;
    let mut command = boot.command(&folder, "stdio").map_err(said)?;
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let emulator = Emulator::start(&mut command);
    let mut emulator = emulator.map_err(|error| format!("cannot start QEMU: {error}"))?;
    let mut output = emulator.output().ok_or("QEMU has no output")?;
    let (number, is_over) = (emulator.id(), &AtomicBool::new(false));
    std::thread::scope(|scope| {
        let holder = seed.map(|seed| scope.spawn(move || hold_up(number, seed, is_over)));
        let speed = hear(&mut output);
        is_over.store(true, Ordering::Relaxed);
        let stops = holder.map_or(Ok(0), |holder| holder.join().map_err(|_| "cannot stop QEMU"))?;
        println!("stopped {stops} times: {speed:?}");
        if seed.is_some() && stops == 0 {
            return Err("it was not held up".into());
        }
        speed
    })
}

/// Returns the speed of the counter that a machine says; `None` if it refused because of that.
fn hear(output: &mut impl Read) -> Result<Option<u64>, String> {
    let (mut lines, mut buffer) = (Splitter::default(), [0; 4096]);
    let mut found = None;
    while found.is_none() {
        let length = output.read(&mut buffer).map_err(|error| format!("QEMU: {error}"))?;
        if length == 0 {
            return Err("the machine ended without a word about its clock".into());
        }
        lines.push(&buffer[..length], |line| match line {
            Line::Record(Record::Clock, words) => found = Some(Ok(words.first().copied())),
            Line::Record(Record::ArchiveRefused, words) => {
                let is_unsteady = words.first() == Some(&(Refusal::Unsteady as u64));
                found = Some(if is_unsteady { Ok(None) } else { Err(format!("{words:?}")) });
            }
            _ => {}
        });
    }
    found.unwrap_or(Ok(None))
}

/// Stops a process and lets it go on, until it is over. Returns how often.
fn hold_up(number: u32, seed: u64, is_over: &AtomicBool) -> u64 {
    let mut random = Random::new(seed);
    let longer = seed % 2 * LONGER;
    let runs = (RUNS.0 + longer, RUNS.1 + longer);
    let mut wait = |(least, most): (u64, u64)| {
        std::thread::sleep(Duration::from_millis(random.between(least, most)));
    };
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &number.to_string()]).status();
        sent.is_ok_and(|status| status.success())
    };
    let mut stops = 0;
    while !is_over.load(Ordering::Relaxed) {
        wait(runs);
        stops += u64::from(signal("-STOP"));
        wait(STANDS);
        signal("-CONT");
    }
    stops
}
