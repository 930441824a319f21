//! The properties that only the simulator can show, on systems that boot: a search finds the same
//! however it is shared out; every machine simulates the same; the life of a message adds up; the
//! contents of a trace for Perfetto and of a page for a browser; a device model cannot keep time
//! from passing.

mod browser;
mod buffers;
mod confined;
mod counters;
mod crews;
mod debugger;
mod flows;
mod hearing;
mod livelock;
mod lives;
mod mailed;
mod on_time;
mod pages;
mod parts;
mod pulled;
mod rates;
mod routed;
pub mod samples;
mod sheets;
mod traces;
mod turned;

use crate::tally::{Tally, command};
use crate::usb;
use diapason::Workspace;
use diapason::describe::describe;
use diapason::metal::Built;
use diapason::session::Session;
use diapason_abi::Nanos;
use diapason_sim::{Ended, Ending, FunctionModel, Memory, Observer, Options, Said, XHCI};
use diapason_system::RunOptions;

const CONCENTRATOR: &str = "examples/can-concentrator.toml";

/// All of it whose name contains `part`.
pub fn steps(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    type Check = fn(&Workspace, &Built) -> Result<(), String>;
    let steps: [(&str, Check); 24] = [
        ("a search finds the same with one process and with two", search),
        ("simulator: hosts and cores are searched, explained and captured", parts::check),
        ("fixed seeds have the traces that are kept", traces::check),
        ("simulator: the lives of messages add up", lives::check),
        ("simulator: no forbidden thing changes the memory of others", confined::check),
        ("simulator: nothing changes when counters wrap", counters::check),
        ("simulator: trees of hubs come and go, and clients hear of it in time", usb::trees),
        ("simulator: messages of a CAN controller are in time", buffers::check),
        ("simulator: a flood of ten times what a program can take", livelock::check),
        ("simulator: no message of a host is on the bus too often", rates::check),
        ("simulator: messages under MTS are in time", on_time::check),
        ("simulator: messages of other nodes are read in time", hearing::check),
        ("simulator: messages of a flow are followed over all hosts", flows::check),
        ("simulator: a host with several cores is a host among others", crews::check),
        ("simulator: a flow keeps its bound while clocks run apart", flows::apart),
        ("simulator: hosts find cables that are pulled, and lose nothing unnamed", pulled::check),
        ("simulator: flows go another way while cables are pulled", turned::check),
        ("simulator: mailboxes of other hosts lose nothing unnamed", mailed::check),
        ("simulator: routers hold flows to their contracts", routed::check),
        ("simulator: a trace opens in Perfetto", sheets::check),
        ("simulator: GDB stops at an alarm and goes back in time", debugger::check),
        ("simulator: a page about a system stands alone", pages::check),
        ("samples in documents are what the commands say", samples::check),
        ("a device that keeps time from passing ends a simulation", stuck),
    ];
    for (name, check) in steps.into_iter().filter(|(name, _)| name.contains(part)) {
        tally.step(name, || check(workspace, built));
    }
}

/// Returns a system, to run for so long.
fn session(
    workspace: &Workspace,
    built: &Built,
    file: &str,
    horizon_ns: u64,
) -> Result<Session, String> {
    let system = describe(&workspace.root().join(file)).map_err(|bad| bad.to_string())?;
    let options = RunOptions { horizon_ns, record_bytes: 0, watch: false };
    Session::assemble(system, built.clone(), options).map_err(|failure| failure.to_string())
}

/// Returns the output of a search of four seeds, with the trace of each.
fn searched(workspace: &Workspace, from: &str, jobs: &str) -> Result<Vec<String>, String> {
    let arguments = ["run", "--quiet", "--bin", "diapason", "--", "sim", CONCENTRATOR];
    let mut search = command(workspace, &arguments);
    search.args(["--for", "400ms", "--search", "4", "--traces"]);
    search.args(["--seed", from, "--jobs", jobs]);
    let output = search.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<String> = text.lines().map(String::from).collect();
    if lines.iter().filter(|line| line.starts_with("trace ")).count() != 4 {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("four seeds from {from} have no four traces: {text}{said}"));
    }
    Ok(lines)
}

fn search(workspace: &Workspace, _: &Built) -> Result<(), String> {
    let (one, two) = (searched(workspace, "7", "1")?, searched(workspace, "7", "2")?);
    if one != two {
        return Err(format!("one process: {one:#?}\ntwo: {two:#?}"));
    }
    let mut hashes: Vec<&str> = one.iter().filter_map(|line| line.split(' ').nth(2)).collect();
    hashes.sort_unstable();
    hashes.dedup();
    if hashes.len() < 2 { Err(format!("every seed leaves one trace: {one:#?}")) } else { Ok(()) }
}

/// A controller that has registers and a next change that never comes to an end.
struct Restless;

impl FunctionModel for Restless {
    fn read(&mut self, _: Nanos, _: u64, _: u8) -> u64 {
        0
    }

    fn write(&mut self, _: Nanos, _: u64, _: u8, _: u64, _: &mut dyn Memory) {}

    fn next_change(&self) -> Nanos {
        SINCE
    }

    fn advance(&mut self, _: Nanos, _: &mut dyn Memory) {}

    fn take_interrupts(&mut self, _: Nanos) -> Vec<u16> {
        Vec::new()
    }

    fn power_cycle(&mut self, _: Nanos) {}
}

/// From then on it is restless.
const SINCE: Nanos = Nanos::from_millis(5);

#[derive(Default)]
struct Notes(Vec<String>);

impl Observer for Notes {
    fn hear(&mut self, said: Said) {
        if let Said::Note(_, text) = said {
            self.0.push(text);
        }
    }
}

fn stuck(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let session = session(workspace, built, CONCENTRATOR, 50_000_000)?;
    let device = session.system.devices.iter().position(|device| device.name == "xhci");
    let (functions, mut notes) = (vec![(XHCI, Box::new(Restless) as _)], Notes::default());
    let run = diapason_sim::run(&session.archive, &Options::default(), functions, &mut notes);
    let Ended { ending, time } = run.map_err(|error| error.to_string())?;
    let place = device.and_then(|device| u16::try_from(device).ok());
    if ending != Ending::Stuck(place) || time.0 / 1_000_000 != SINCE.0 / 1_000_000 {
        return Err(format!("it ended with {ending:?} at {time:?}; said: {:?}", notes.0));
    }
    Ok(())
}
