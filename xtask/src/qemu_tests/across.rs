//! Pipes that lead to readers on other cores than the server.
//!
//! The simulator shows what comes, with faults. QEMU has no counted time with several processors,
//! so nothing can be plugged into it there. Only the memory for devices that two cores have in
//! common is tested on booted cores.

use super::cores::{SLOWER, Stage};
use crate::tally::Tally;
use diapason::Workspace;
use diapason::console::Line;
use diapason::cores::boot;
use diapason::metal::Built;
use diapason::simulate::{Joined, Seat, together};
use diapason_system::{RunOptions, parse_cores};
use std::fs;

const EXAMPLE: &str = "examples/four-cameras.toml";
const SECONDS: u64 = 4;
/// A camera has 30 pictures a second, once the server has agreed with it.
const PICTURES: u64 = 27 * (SECONDS - 1);
/// A booted run is so long.
const BOOTED_NS: u64 = 60_000_000;

type Test = fn(&Stage<'_>) -> Result<(), String>;

const TESTS: [(&str, Test); 3] = [
    ("simulator: pictures of four cameras reach tasks on four cores", reach),
    ("simulator: an unplugged camera costs tasks on other cores no picture", unplugged),
    ("booted cores: memory for devices in common is in one place", in_one_place),
];

/// Runs every test whose name contains `part`.
pub fn run(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    let stage = Stage { workspace, built };
    for (name, test) in TESTS.into_iter().filter(|(name, _)| name.contains(part)) {
        tally.step(name, || test(&stage));
    }
}

/// The pipe of one core after a run: its pictures, those lost, and what is wrong with the run.
type Read = (u64, u64, Vec<String>);

impl Stage<'_> {
    /// Simulates the example with `more` text, and returns what the task of each core read.
    fn read(&self, more: &str) -> Result<Vec<Read>, String> {
        let path = self.workspace.root().join(EXAMPLE);
        let text = fs::read_to_string(path).map_err(|error| error.to_string())? + more;
        let systems = parse_cores(EXAMPLE, &text).map_err(|bad| bad.plain())?;
        let horizon_ns = SECONDS * 1_000_000_000;
        let sessions =
            self.planned(&systems, RunOptions { horizon_ns, record_bytes: 0, watch: false })?;
        if let Some((core, _)) = sessions.iter().find(|(_, session)| !session.proved) {
            return Err(format!("core {core} does not hold"));
        }
        let seats = sessions.iter().map(|(_, session)| {
            let faults = session.system.faults.clone();
            Seat { faults, ..Seat::new(session, ()) }
        });
        let cores = together(seats.collect(), &Joined::Cores).map_err(|it| it.to_string())?;
        let read = cores.iter().zip(&sessions).map(|(core, (_, session))| {
            let findings = session.judge(&core.run).findings();
            let row = core.run.outcome.pipes.first();
            Ok((row.map_or(0, |it| it.messages), row.map_or(0, |it| it.lost), findings))
        });
        read.collect()
    }
}

fn reach(stage: &Stage<'_>) -> Result<(), String> {
    let read = stage.read("")?;
    println!("{read:?}");
    let whole = |(pictures, lost, findings): &Read| {
        *pictures >= PICTURES && *lost == 0 && findings.is_empty()
    };
    if read.iter().all(whole) { Ok(()) } else { Err("not all pictures came".into()) }
}

/// The second camera is away for half a second. Its task loses what that takes, and no other one.
fn unplugged(stage: &Stage<'_>) -> Result<(), String> {
    let fault = "\n[[fault]]\nat = \"2s\"\nwhat = \"unplug\"\ndevice = \"rear\"\nfor = \"500ms\"\n";
    let read = stage.read(fault)?;
    println!("{read:?}");
    let (rear, _, _) = &read[1];
    if !(PICTURES / 2..PICTURES).contains(rear) {
        return Err(format!("{rear} pictures of the camera that was away"));
    }
    let others = [&read[0], &read[2], &read[3]];
    match others.iter().find(|(pictures, lost, _)| *pictures < PICTURES || *lost > 0) {
        None => Ok(()),
        Some(other) => Err(format!("another task read {other:?}")),
    }
}

/// Both ends of memory in common find devices where they write.
fn in_one_place(stage: &Stage<'_>) -> Result<(), String> {
    let end = |core: u16| {
        format!(
            "[[process]]\nname = \"end-{core}\"\nprogram = \"cores-places\"\ncore = {core}\n\
             priority = 9\nuses = [\"places\"]\narguments = [{core}]\n"
        )
    };
    let segment = "[[segment]]\nname = \"places\"\nsize = \"16K\"\n";
    let text = format!("[system]\nname = \"places\"\ncores = 2\n{}{}{segment}", end(0), end(1));
    let mut systems = parse_cores("places.toml", &text).map_err(|bad| bad.plain())?;
    // Only a pipe makes such memory in a description.
    systems.iter_mut().for_each(|system| system.segments[0].dma = true);
    let options = RunOptions { horizon_ns: BOOTED_NS, record_bytes: 0, watch: false };
    let mut sessions = stage.planned(&systems, options)?;
    let mut said = [None, None];
    boot(stage.workspace, &mut sessions, SLOWER, &mut |core, line| {
        if let Line::Log { text, .. } = line
            && text.starts_with("PLACES ")
        {
            said[core] = numbers(text);
        }
    })
    .map_err(|failure| failure.to_string())?;
    println!("{said:x?}");
    match said {
        [Some([own, other]), Some(mirrored)] if own != 0 && mirrored == [other, own] => {
            if own == other && own.is_multiple_of(4096) { Ok(()) } else { Err("two places".into()) }
        }
        _ => Err("the ends did not meet".into()),
    }
}

/// Returns the two numbers behind a word.
fn numbers(text: &str) -> Option<[u64; 2]> {
    let mut words = text.split_whitespace().skip(1).map(|word| word.parse().ok());
    Some([words.next()??, words.next()??])
}
