//! Several hosts in one simulation: each does what it does alone, whatever the others do and in
//! whatever order they are listed.

use super::talker::talkers;
use crate::tally::Tally;
use diapason::Workspace;
use diapason::console::Line;
use diapason::describe::{describe, describe_any};
use diapason::metal::Built;
use diapason::outcome::RunVerdict;
use diapason::qemu::MachineEnding;
use diapason::session::Session;
use diapason::simulate::{Hearing, Joined, Joints, Seat, Simulation, together};
use diapason_abi::Nanos;
use diapason_sim::{FunctionModel, Observer, Options, Trace, XHCI, run_together};
use diapason_system::{Cable, Description, End, HostSpec, RunOptions};
use std::cell::RefCell;
use std::collections::BTreeMap;

const ENGINE: &str = "examples/engine.toml";
const CONCENTRATOR: &str = "examples/can-concentrator.toml";
const ORPHANS: &str = "tests/systems/orphans.toml";
const JOINED: &str = "examples/two-hosts.toml";
const UNLINKED: &str = "tests/systems/unlinked.toml";
const HORIZON_NS: u64 = 2_000_000_000;

/// How a host ended, and the hash of every entry into its kernel.
type Outcome = (MachineEnding, u64);

type Test = fn(&Stage<'_>) -> Result<(), String>;

const TESTS: [(&str, Test); 8] = [
    ("two hosts do what each does alone", alike),
    ("hosts may be listed in any order", any_order),
    ("a host that dies takes no other along", a_death),
    ("hosts joined by a cable may be listed in any order", joined),
    ("hosts whose clocks run apart may be listed in any order", apart),
    ("whose turn it is does not show in what hosts send each other", turns),
    ("messages go there and back over a bridge, a debug cable, and through a third host", linked),
    ("hosts that never find each other do not hold", unlinked),
];

/// Runs every test whose name contains `part`.
pub fn run(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    let stage = Stage { workspace, built };
    for (name, test) in TESTS {
        let name = format!("simulator: {name}");
        if name.contains(part) {
            tally.step(&name, || test(&stage));
        }
    }
}

/// The parts needed to put hosts together.
struct Stage<'a> {
    workspace: &'a Workspace,
    built: &'a Built,
}

impl Stage<'_> {
    /// Returns the hosts of a list, each ready to run a little longer than usual, and their cables.
    fn list(&self, file: &str) -> Result<(Vec<Session>, Vec<Cable>), String> {
        let path = self.workspace.root().join(file);
        let Description::Several(hosts) = describe_any(&path).map_err(|f| f.to_string())? else {
            return Err(format!("{file} is one host"));
        };
        let options =
            RunOptions { horizon_ns: HORIZON_NS + 100_000_000, record_bytes: 0, watch: false };
        let assemble = |host: HostSpec| Session::assemble(host.system, self.built.clone(), options);
        let sessions: Result<Vec<Session>, _> = hosts.hosts.into_iter().map(assemble).collect();
        Ok((sessions.map_err(|failure| failure.to_string())?, hosts.cables))
    }

    fn session(&self, system: &str) -> Result<Session, String> {
        let system = describe(&self.workspace.root().join(system)).map_err(|f| f.to_string())?;
        let options = RunOptions { horizon_ns: HORIZON_NS, record_bytes: 0, watch: false };
        Session::assemble(system, self.built.clone(), options).map_err(|f| f.to_string())
    }

    fn alone(&self, system: &str) -> Result<Outcome, String> {
        let (session, how) = (self.session(system)?, strict());
        let simulated = Simulation::new(&session, &how).run(&mut ()).map_err(|f| f.to_string())?;
        Ok((simulated.run.ending, simulated.hash))
    }

    fn together(&self, systems: &[&str]) -> Result<Vec<Outcome>, String> {
        self.joined(systems, &[], &strict(), &[])
    }

    fn joined(
        &self,
        systems: &[&str],
        cables: &[Cable],
        how: &Options,
        drifts: &[i32],
    ) -> Result<Vec<Outcome>, String> {
        let sessions: Result<Vec<Session>, String> =
            systems.iter().map(|system| self.session(system)).collect();
        let sessions = sessions?;
        let seats = sessions.iter().map(|it| Seat { how: how.clone(), ..Seat::new(it, ()) });
        let (drifts, cables) = (drifts.to_vec(), cables.to_vec());
        let joints = Joints { drifts, cables, ..Joints::default() };
        let hosts = together(seats.collect(), &Joined::By(Box::new(joints)));
        let hosts = hosts.map_err(|failure| failure.to_string())?;
        Ok(hosts.into_iter().map(|host| (host.run.ending, host.hash)).collect())
    }
}

/// Processes kept apart, and every invariant of the kernels checked.
fn strict() -> Options {
    Options { check: true, isolate: true, ..Options::default() }
}

fn same(found: &[Outcome], expected: &[Outcome]) -> Result<(), String> {
    let differ = || format!("together {found:x?}, expected {expected:x?}");
    if found == expected { Ok(()) } else { Err(differ()) }
}

fn alike(stage: &Stage<'_>) -> Result<(), String> {
    let alone = stage.alone(ENGINE)?;
    same(&stage.together(&[ENGINE, ENGINE])?, &[alone, alone])
}

fn any_order(stage: &Stage<'_>) -> Result<(), String> {
    let (engine, concentrator) = (stage.alone(ENGINE)?, stage.alone(CONCENTRATOR)?);
    same(&stage.together(&[ENGINE, CONCENTRATOR])?, &[engine, concentrator])?;
    same(&stage.together(&[CONCENTRATOR, ENGINE])?, &[concentrator, engine])
}

fn a_death(stage: &Stage<'_>) -> Result<(), String> {
    let (engine, orphans) = (stage.alone(ENGINE)?, stage.alone(ORPHANS)?);
    if orphans.0 != MachineEnding::SupervisorDied {
        return Err(format!("{ORPHANS} ended with {:?}", orphans.0));
    }
    same(&stage.together(&[ORPHANS, ENGINE])?, &[orphans, engine])
}

/// Two concentrators, an engine between them, and the cable of the example; all clocks go alike.
fn joined(stage: &Stage<'_>) -> Result<(), String> {
    straight_and_crossed(stage, [0, 0, 0]).map(|_| ())
}

/// Runs the hosts of [`joined`] while their clocks run apart: that makes a difference.
fn apart(stage: &Stage<'_>) -> Result<(), String> {
    let alike = straight_and_crossed(stage, [0, 0, 0])?;
    let apart = straight_and_crossed(stage, [100, -30, -100])?;
    if apart == alike {
        return Err("clocks that run apart show nowhere".into());
    }
    Ok(())
}

/// Returns what the hosts did, by clocks that are so many millionths fast.
fn straight_and_crossed(stage: &Stage<'_>, drifts: [i32; 3]) -> Result<Vec<Outcome>, String> {
    let path = stage.workspace.root().join(JOINED);
    let Description::Several(hosts) = describe_any(&path).map_err(|f| f.to_string())? else {
        return Err(format!("{JOINED} is one host"));
    };
    let systems = [CONCENTRATOR, ENGINE, CONCENTRATOR];
    let place = |places: [usize; 2]| -> Vec<Cable> {
        let moved = |end: &End| End { host: places[end.host], ..*end };
        let moved =
            |cable: &Cable| Cable { ends: cable.ends.each_ref().map(moved), ..cable.clone() };
        hosts.cables.iter().map(moved).collect()
    };
    // Turns of a microsecond: keeping processes apart at each would take minutes.
    let how = Options { isolate: false, ..strict() };
    let [left, middle, right] = drifts;
    let straight = stage.joined(&systems, &place([0, 2]), &how, &drifts)?;
    let crossed = stage.joined(&systems, &place([2, 0]), &how, &[right, middle, left])?;
    same(&crossed, &[straight[2], straight[1], straight[0]])?;
    // The cable makes a difference, and only to those it joins.
    let (concentrator, engine) = (stage.alone(CONCENTRATOR)?, stage.alone(ENGINE)?);
    if straight[1] != engine || straight[0] == concentrator || straight[2] == concentrator {
        return Err(format!("{straight:x?}, alone {concentrator:x?} and {engine:x?}"));
    }
    Ok(straight)
}

/// Lists of hosts, with the least messages that each host with a link sends in a second.
const LINKED: [(&str, u64); 3] = [
    ("examples/bridge.toml", 300),
    ("examples/debug-cable.toml", 300),
    ("examples/figure-9.toml", 200),
];

/// Every message comes back whole, by every way.
fn linked(stage: &Stage<'_>) -> Result<(), String> {
    for (file, least) in LINKED {
        let said = linked_by(stage, file)?;
        for (host, numbers) in &said {
            let [sent, came, answered, lost, damaged, longest] = numbers[..] else {
                return Err(format!("{file}: host {host} said {numbers:?}"));
            };
            let whole = sent <= came + 1 && lost + damaged == 0 && answered >= least;
            if came < least || !whole {
                return Err(format!("{file}: host {host} said {numbers:?}"));
            }
            println!("{file}: host {host}: {came} messages there and back in {longest} ns at most");
        }
        if said.len() != 2 {
            return Err(format!("{file}: {} hosts said something", said.len()));
        }
    }
    Ok(())
}

/// The cable ends where nobody looks for it: each host says that its link never formed.
fn unlinked(stage: &Stage<'_>) -> Result<(), String> {
    const WHY: &str = "alarm link-absent: link 0 of usbd never formed in 2.100 s: ";
    let (sessions, cables) = stage.list(UNLINKED)?;
    let seats = sessions.iter().map(|session| Seat::new(session, ())).collect();
    let hosts =
        together(seats, &Joined::By(cables.into())).map_err(|failure| failure.to_string())?;
    for (session, host) in sessions.iter().zip(&hosts) {
        match &session.judge(&host.run).findings()[..] {
            [found] if found.starts_with(WHY) => {}
            found => return Err(format!("{UNLINKED}: {found:?}")),
        }
    }
    Ok(())
}

/// Returns the last report of each host with a link: numbers behind `LINK`.
fn linked_by(stage: &Stage<'_>, file: &str) -> Result<BTreeMap<usize, Vec<u64>>, String> {
    let (sessions, cables) = stage.list(file)?;
    let said = RefCell::new(BTreeMap::new());
    let hear = |host| {
        let said = &said;
        Hearing(move |line: &Line| {
            if let Line::Log { text, .. } = line
                && let Some(numbers) = text.strip_prefix("LINK ")
            {
                let numbers = numbers.split(' ').filter_map(|word| word.parse().ok()).collect();
                said.borrow_mut().insert(host, numbers);
            }
        })
    };
    let seats = sessions.iter().enumerate().map(|(host, it)| Seat::new(it, hear(host))).collect();
    let hosts =
        together(seats, &Joined::By(cables.into())).map_err(|failure| failure.to_string())?;
    for (session, host) in sessions.iter().zip(hosts) {
        let verdict = session.judge(&host.run);
        if verdict != RunVerdict::Holds {
            return Err(format!("{file}: {}: {verdict:?}", session.system.name));
        }
    }
    Ok(said.into_inner())
}

/// Two concentrators whose controllers are devices that talk to each other: what each says and
/// hears, and when, is the same in either order of the hosts, and in turns of any length that the
/// cable allows.
fn turns(stage: &Stage<'_>) -> Result<(), String> {
    const DELAY: Nanos = Nanos(3_000);
    let session = stage.session(CONCENTRATOR)?;
    let run = |swapped: bool, delay: Nanos| {
        let (mut ends, logs) = talkers(DELAY);
        let mut traces = [Trace::default(); 2];
        if swapped {
            ends.reverse();
        }
        let host = |(end, observer)| diapason_sim::SimulatedHost {
            archive: &session.archive,
            options: Options::default(),
            functions: vec![(XHCI, Box::new(end) as Box<dyn FunctionModel>)],
            observer,
        };
        let traced = traces.iter_mut().map(|trace| -> &mut dyn Observer { trace });
        let hosts = ends.into_iter().zip(traced).map(|it| vec![host(it)]).collect();
        run_together(hosts, delay).map_err(|error| error.to_string())?;
        if swapped {
            traces.reverse();
        }
        Ok::<_, String>((logs.map(|log| log.take()), traces))
    };
    let expected = run(false, DELAY)?;
    let heard = expected.0[0].len();
    println!("{heard} words heard");
    if heard < 10_000 {
        return Err(format!("only {heard} words were heard"));
    }
    for (swapped, delay) in [(true, DELAY), (false, Nanos(1_100)), (true, Nanos(170))] {
        if run(swapped, delay)? != expected {
            return Err(format!("turns of {delay:?}, swapped: {swapped}, show"));
        }
    }
    Ok(())
}
