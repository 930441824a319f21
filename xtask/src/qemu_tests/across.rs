//! Pipes that lead to readers on other cores than the server.
//!
//! The simulator shows what comes, with faults. QEMU has no counted time with several processors,
//! so nothing can be plugged into it there. Only the memory for devices that two cores have in
//! common is tested on booted cores.

use super::cores::{PARALLEL, Stage};
use crate::tally::Tally;
use diapason::Workspace;
use diapason::console::Line;
use diapason::cores::boot;
use diapason::metal::Built;
use diapason::session::Session;
use diapason::simulate::{Joined, Named, Seat, Seen, Simulated, followed, together};
use diapason_pipe::bill::What;
use diapason_system::{RunOptions, parse_cores};
use std::fs;

const EXAMPLE: &str = "examples/four-cameras.toml";
const INSTRUMENT: &str = "examples/instrument.toml";
/// The reader's clock is read a call after the message is taken.
const CALL_NS: u64 = 2_000;
const SECONDS: u64 = 4;
/// A camera has 30 pictures a second, once the server has agreed with it.
const PICTURES: u64 = 27 * (SECONDS - 1);
/// A booted run is so long.
const BOOTED_NS: u64 = 60_000_000;

type Test = fn(&Stage<'_>) -> Result<(), String>;

const TESTS: [(&str, Test); 4] = [
    ("simulator: pictures of four cameras reach tasks on four cores", reach),
    ("simulator: an unplugged camera costs tasks on other cores no picture", unplugged),
    ("simulator: the life of a message goes on on another core", lives),
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
    /// Returns the instrument's system with its reader on another core, and other texts changed.
    fn instrument(&self, others: &[(&str, &str)]) -> Result<Vec<Named>, String> {
        let path = self.workspace.root().join(INSTRUMENT);
        let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
        let text = [
            ("memory = \"32M\"", "memory = \"64M\"\ncores = 2"),
            ("program = \"packet-pipe\"", "program = \"packet-pipe\"\ncore = 1"),
            ("serves = [\"read\"]", "serves = [\"usb-manage\"]"),
        ]
        .iter()
        .chain(others)
        .fold(text, |text, (from, to)| text.replace(from, to));
        let systems = parse_cores(INSTRUMENT, &text).map_err(|bad| bad.plain())?;
        let horizon_ns = SECONDS * 1_000_000_000;
        self.planned(&systems, RunOptions { horizon_ns, record_bytes: 0, watch: false })
    }

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

/// Each message of an instrument is followed to its reader on another core. Each stage ends as
/// planned, the reader measured the same, its verdict knows it, and following changes nothing.
fn lives(stage: &Stage<'_>) -> Result<(), String> {
    followed_to_reader(&stage.instrument(&[])?)?;
    // A reader without budget is not woken when its sleep is over: that is no look.
    let scarce = [
        ("budget = \"100us\"\nperiod = \"2500us\"", "budget = \"400us\"\nperiod = \"40ms\""),
        ("latency = \"10ms\"", "latency = \"100ms\""),
    ];
    followed_to_reader(&stage.instrument(&scarce)?)
}

fn followed_to_reader(sessions: &[Named]) -> Result<(), String> {
    if let Some((core, _)) = sessions.iter().find(|(_, session)| !session.proved) {
        return Err(format!("core {core} does not hold"));
    }
    let seats = sessions.iter().map(|(_, session)| Seat::new(session, ()));
    let alone = together(seats.collect(), &Joined::Cores).map_err(|it| it.to_string())?;
    let observers = sessions.iter().map(|_| ());
    let cores = followed(sessions, &Joined::Cores, None, observers);
    let cores = cores.map_err(|it| it.to_string())?;
    if alone.iter().zip(&cores).any(|(one, two)| one.hash != two.hash) {
        return Err(String::from("following changes a run"));
    }
    let [server, reader] = &cores[..] else { return Err(String::from("not two cores")) };
    let seen = server.lives.seen.first().ok_or("no pipe was followed")?;
    println!("{} messages", seen.messages);
    stages(seen)?;
    measured(&sessions[1].1, reader, seen)
}

/// No stage was left later than planned, and the longest look comes close to the plan. The stages
/// of the slowest message add up.
fn stages(seen: &Seen) -> Result<(), String> {
    let stages = seen.stages();
    if let Some(late) = stages.iter().find(|stage| stage.by_end > stage.planned_by_end) {
        return Err(format!("{} is left after {:?}", late.what.name(), late.by_end));
    }
    let look = stages.iter().find(|stage| stage.what == What::Look).ok_or("no reader's look")?;
    println!("it looks after {:?} of {:?}", look.longest, look.planned);
    // Whenever the packets come, one of so many finds that the reader has just looked.
    let most = look.planned.ok_or("the bill has no look")?;
    if look.longest > most || look.longest.0 * 10 < most.0 * 9 {
        return Err(format!("it looks after {:?}", look.longest));
    }
    let worst = seen.worst.as_ref().ok_or("no message was followed")?;
    let sum = stages.iter().map(|stage| worst.took(stage.what).0).sum::<u64>();
    match worst.far {
        Some(1) if sum == worst.latency().0 => Ok(()),
        far => Err(format!("{sum} of {:?} on part {far:?}", worst.latency())),
    }
}

/// The reader's report and the verdict of its core agree with what was seen.
fn measured(session: &Session, reader: &Simulated, seen: &Seen) -> Result<(), String> {
    let promises = session.promises();
    let promise = promises.first().ok_or("the reader's core promises nothing")?;
    let row = promise.row(&reader.run.outcome).ok_or("the reader said nothing")?;
    let truth = reader.run.outcome.truth.first().copied().flatten();
    let truth = truth.ok_or("the reader's core does not know what was seen")?;
    let findings = session.judge(&reader.run).findings();
    println!("{truth:?}, {} by its reader, {findings:?}", row.whole_max_ns);
    let look = seen.stages().into_iter().find(|stage| stage.what == What::Look);
    let look = look.map_or(0, |stage| stage.longest.0);
    let agrees = row.reading_max_ns >= look && row.whole_max_ns <= truth.longest_ns + CALL_NS;
    let same = seen.worst.as_ref().is_some_and(|it| it.latency().0 == truth.longest_ns);
    if agrees && same && row.messages > 0 && findings.is_empty() {
        Ok(())
    } else {
        Err(String::from("the two cores do not agree"))
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
    boot(stage.workspace, &mut sessions, PARALLEL, &mut |core, line| {
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
