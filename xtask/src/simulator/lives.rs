//! The lives of messages from and to devices: items without gaps that add up to the latency, stages
//! that take no longer than planned, and a worst one that its reader or writer measured, too.
//! Following changes nothing.

use super::{CONCENTRATOR, session};
use diapason::Workspace;
use diapason::metal::Built;
use diapason::session::Session;
use diapason::simulate::{Choice, Life, Seen, SeenStage, Simulated, Simulation, asked};
use diapason_abi::Nanos;
use diapason_pipe::bill::What;
use diapason_sim::Options;
use diapason_system::{InjectedFault, PipeDirection};

const HORIZON_NS: u64 = 2_500_000_000;
const UNTOLD_NS: u64 = 2_900_000_000;
const FAULT: &str = "1s unplug interface 100ms";
/// A message of the fastest pipe that is there with and without the fault.
const SOME: u64 = 1_000;
/// The reader's clock is read a call after the message is taken.
const CALL: Nanos = Nanos(2_000);
/// The fastest of all messages waits at most for one interrupt.
const FASTEST: Nanos = Nanos::from_millis(1);
/// A description with pipes in both directions, three with pipes to an endpoint (one alone, one of
/// a device with a pipe from it, too, and one at the end of a chain), one with runs of blocks to a
/// disk, and one with frames to a network device, of which several are under way.
const OUTPUTS: [&str; 6] = [
    "examples/can-output.toml",
    "examples/actuator.toml",
    "examples/servo.toml",
    "examples/recorder.toml",
    "examples/brake-by-wire.toml",
    "tests/systems/frames-both.toml",
];
/// Descriptions whose first pipe comes from a network device, from a disk, and from a device with a
/// pipe to it, too, and a message of that pipe. The fastest of its messages waits at most so long
/// for the bus and for an interrupt.
const SOURCES: [(&str, u64, Nanos); 3] = [
    ("examples/frames.toml", SOME, FASTEST),
    ("examples/disk.toml", SENT, Nanos::ZERO),
    ("examples/servo.toml", SENT, Nanos::from_millis(2)),
];
/// A message to a device that is there.
const SENT: u64 = 100;
/// The acknowledgement is told a little later than the server knows of it.
const TELLING: Nanos = Nanos::from_micros(100);

/// A description, a fault after the last report of the readers and writers of its pipes, and the
/// pipes that lose messages by it.
const UNTOLD: [(&str, &str, &[usize]); 4] = [
    ("examples/endpoints.toml", "2100ms unplug sensor 100ms", &[0]),
    ("examples/endpoints.toml", "2100ms unplug interface 50ms", &[1]),
    ("examples/disk.toml", "2100ms unplug disk 50ms", &[0]),
    ("examples/servo.toml", "2100ms unplug servo 50ms", &[0, 1]),
];

/// Checks that the simulator sees what is lost after the last report.
fn untold(workspace: &Workspace, built: &Built) -> Result<(), String> {
    for (description, fault, losers) in UNTOLD {
        let session = session(workspace, built, description, UNTOLD_NS)?;
        let faults = asked(&session.system, &[fault.to_owned()]).map_err(|bad| bad.to_string())?;
        let run = |faults: &[InjectedFault]| {
            let how = Options::default();
            let simulation = Simulation::new(&session, &how).with_faults(faults).following(None);
            let simulated = simulation.run(&mut ()).map_err(|failure| failure.to_string())?;
            let truth = simulated.run.outcome.truth.iter().map(|it| it.map_or(0, |it| it.lost));
            Ok::<Vec<u64>, String>(truth.collect())
        };
        let calm = run(&[])?;
        let lost = run(&faults)?;
        let by_it = |pipe: &usize| lost.get(*pipe).is_some_and(|lost| *lost > 0);
        if calm.iter().any(|lost| *lost > 0) || !losers.iter().all(by_it) {
            return Err(format!("{description}: {calm:?} were lost, {lost:?} with {fault}"));
        }
    }
    Ok(())
}

/// Checks the lives of messages.
pub fn check(workspace: &Workspace, built: &Built) -> Result<(), String> {
    for output in OUTPUTS {
        sent(&session(workspace, built, output, HORIZON_NS)?)
            .map_err(|wrong| format!("{output}: {wrong}"))?;
    }
    for (source, some, fastest) in SOURCES {
        came(&session(workspace, built, source, HORIZON_NS)?, some, fastest)
            .map_err(|wrong| format!("{source}: {wrong}"))?;
    }
    untold(workspace, built)?;
    let session = session(workspace, built, CONCENTRATOR, HORIZON_NS)?;
    let pipes = session.system.pipes.len();
    let some = Choice::This(pipes - 1, SOME);
    let calm = followed(&session, &[], some)?;
    for choice in (0..pipes).map(Choice::Worst).chain([Choice::WorstOfAll, some]) {
        within_plan(adds_up(&calm, choice)?).map_err(|wrong| format!("{choice:?}: {wrong}"))?;
    }
    for (pipe, seen) in calm.lives.seen.iter().enumerate() {
        stages_within_plan(seen).map_err(|wrong| format!("pipe {pipe}: {wrong}"))?;
        as_measured(&session, &calm, (pipe, FASTEST))?;
    }
    let faults = asked(&session.system, &[FAULT.to_owned()]).map_err(|bad| bad.to_string())?;
    let disturbed = followed(&session, &faults, some)?;
    for choice in [Choice::WorstOfAll, some] {
        adds_up(&disturbed, choice)?;
    }
    let never = Choice::This(pipes - 1, u64::MAX);
    if followed(&session, &[], never)?.lives.of(never).is_some() {
        Err(String::from("a message that never was has a life"))
    } else {
        Ok(())
    }
}

/// The lives of the messages of a first pipe, and of its message `some`.
fn came(session: &Session, some: u64, fastest: Nanos) -> Result<(), String> {
    let some = Choice::This(0, some);
    let followed = followed(session, &[], some)?;
    for choice in [Choice::Worst(0), some] {
        within_plan(adds_up(&followed, choice)?)?;
    }
    stages_within_plan(&followed.lives.seen[0])?;
    as_measured(session, &followed, (0, fastest))
}

/// The lives of messages to devices.
fn sent(session: &Session) -> Result<(), String> {
    let to_device = session.system.pipes.iter().map(|pipe| pipe.way == PipeDirection::ToDevice);
    let pipes: Vec<usize> = to_device.enumerate().filter_map(|(i, is)| is.then_some(i)).collect();
    let some = Choice::This(*pipes.last().ok_or("no pipe goes to a device")?, SENT);
    let followed = followed(session, &[], some)?;
    // The writer reports nothing after its last report.
    let mut agreed = false;
    for pipe in pipes {
        let choice = Choice::Worst(pipe);
        let life = adds_up(&followed, choice)?;
        within_plan(life).map_err(|wrong| format!("{choice:?}: {wrong}"))?;
        stages_within_plan(&followed.lives.seen[pipe])?;
        let (latency, whole) = (life.latency(), measured(session, &followed, pipe)?);
        if latency < whole {
            return Err(format!("{latency:?} by its life, {whole:?} by its writer"));
        }
        agreed |= latency - whole <= TELLING;
    }
    adds_up(&followed, some)?;
    if agreed { Ok(()) } else { Err(String::from("no writer measured the longest life")) }
}

/// Returns the run with messages followed, and the same without.
fn followed(
    session: &Session,
    faults: &[InjectedFault],
    choice: Choice,
) -> Result<Simulated, String> {
    let how = Options::default();
    let simulation = || Simulation::new(session, &how).with_faults(faults);
    let run = |it: Simulation<'_>| it.run(&mut ()).map_err(|failure| failure.to_string());
    let followed = run(simulation().following(Some(choice)))?;
    if followed.hash == run(simulation())?.hash {
        Ok(followed)
    } else {
        Err(String::from("following changes a run"))
    }
}

fn adds_up(followed: &Simulated, choice: Choice) -> Result<&Life, String> {
    let life = followed.lives.of(choice).ok_or(format!("no message for {choice:?}"))?;
    let sum = life.items.iter().fold(Nanos::ZERO, |sum, item| sum + (item.to - item.from));
    let gaps = life.items.windows(2).filter(|pair| pair[0].to != pair[1].from).count();
    let empty = life.items.iter().filter(|item| item.to <= item.from).count();
    if sum != life.to - life.from || gaps + empty > 0 {
        return Err(format!("{choice:?}: {sum:?} of {:?}, {gaps} gaps", life.latency()));
    }
    match choice {
        Choice::This(pipe, number) if (pipe, number) != (life.pipe, life.number) => {
            Err(format!("{choice:?} is {} of {}", life.number, life.pipe))
        }
        _ => Ok(life),
    }
}

/// No stage is over later than the items of the bill so far say.
fn within_plan(life: &Life) -> Result<(), String> {
    let bill = life.bill.ok_or("its pipe has no bill")?;
    let (mut after, mut latest) = (Nanos::ZERO, Nanos::ZERO);
    for stage in What::ALL {
        after += life.took(stage);
        latest += bill.value(stage);
        if after > latest {
            return Err(format!("{} is over after {after:?} of {latest:?}", stage.name()));
        }
    }
    if life.latency() > bill.total { Err(format!("{:?} in all", life.latency())) } else { Ok(()) }
}

/// No message of a pipe left a stage later than the plan says, and there were some.
fn stages_within_plan(seen: &Seen) -> Result<(), String> {
    let stages = seen.stages();
    if seen.messages == 0 || stages.is_empty() {
        return Err(String::from("no message was followed"));
    }
    let late = stages.into_iter().find(|stage| stage.by_end > stage.planned_by_end);
    late.map_or(Ok(()), |SeenStage { what, by_end, planned_by_end, .. }| {
        Err(format!("{} was left after {by_end:?} of {planned_by_end:?}", what.name()))
    })
}

/// The reader measured its longest delay against the fastest way to the server that it saw, so that
/// is what the life is longer by.
fn as_measured(
    session: &Session,
    followed: &Simulated,
    (pipe, fastest): (usize, Nanos),
) -> Result<(), String> {
    let life = adds_up(followed, Choice::Worst(pipe))?;
    let (latency, whole) = (life.latency() + CALL, measured(session, followed, pipe)?);
    if latency < whole || latency - whole > fastest + CALL {
        return Err(format!("{latency:?} by its life, {whole:?} by its reader"));
    }
    Ok(())
}

/// Returns the longest of a pipe, by its reader or writer.
fn measured(session: &Session, followed: &Simulated, pipe: usize) -> Result<Nanos, String> {
    let promises = session.promises();
    let row = promises.get(pipe).and_then(|promise| promise.row(&followed.run.outcome));
    Ok(Nanos(row.ok_or("nobody said how a pipe did")?.whole_max_ns))
}
