//! The lives of messages: items without gaps that add up to the latency, stages that take no longer
//! than planned, and a worst one that its reader measured, too. Following changes nothing.

use super::{CONCENTRATOR, session};
use diapason::Workspace;
use diapason::metal::Built;
use diapason::session::Session;
use diapason::simulate::{Choice, Followed, Life, asked, drive, follow};
use diapason_abi::Nanos;
use diapason_pipe::bill::What;
use diapason_sim::{Options, Trace};
use diapason_system::Fault;

const HORIZON_NS: u64 = 2_500_000_000;
const FAULT: &str = "1s unplug interface 100ms";
/// A message of the fastest pipe that is there with and without the fault.
const SOME: u64 = 1_000;
/// The reader's clock is read a call after the message is taken.
const CALL: Nanos = Nanos(2_000);
/// The fastest of all messages waits at most for one interrupt.
const FASTEST: Nanos = Nanos::from_millis(1);
const STAGES: [What; 6] =
    [What::Request, What::Bus, What::Moderation, What::TopHalf, What::BottomHalf, What::User];

/// The step.
pub fn check(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let session = session(workspace, built, CONCENTRATOR, HORIZON_NS)?;
    let pipes = session.system.pipes.len();
    let fastest = pipes - 1;
    let worst = (0..pipes).map(Choice::Worst);
    let some = [Choice::WorstOfAll, Choice::This(fastest, 1), Choice::This(fastest, SOME)];
    for choice in worst.chain(some) {
        let followed = followed(&session, &[], choice)?;
        let life = adds_up(&followed, choice)?;
        within_plan(life).map_err(|wrong| format!("{choice:?}: {wrong}"))?;
        if let Choice::Worst(pipe) = choice {
            as_measured(&session, &followed, life, pipe)?;
        }
    }
    let faults = asked(&session.system, &[FAULT.to_owned()]).map_err(|bad| bad.to_string())?;
    for choice in some {
        adds_up(&followed(&session, &faults, choice)?, choice)?;
    }
    let never = followed(&session, &[], Choice::This(fastest, u64::MAX))?;
    if never.life.is_some() {
        Err(String::from("a message that never was has a life"))
    } else {
        Ok(())
    }
}

/// The run with a message followed, and the same without.
fn followed(session: &Session, faults: &[Fault], choice: Choice) -> Result<Followed, String> {
    let how = Options::default();
    let followed = follow(session, &how, faults, choice).map_err(|failure| failure.to_string())?;
    let mut alone = Trace::default();
    drive(session, &how, faults, &mut alone).map_err(|failure| failure.to_string())?;
    if followed.hash == alone.0 {
        Ok(followed)
    } else {
        Err(String::from("following changes a run"))
    }
}

fn adds_up(followed: &Followed, choice: Choice) -> Result<&Life, String> {
    let life = followed.life.as_ref().ok_or(format!("no message for {choice:?}"))?;
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

/// No stage takes longer than its item of the bill.
fn within_plan(life: &Life) -> Result<(), String> {
    let bill = life.bill.ok_or("its pipe has no bill")?;
    for stage in STAGES {
        let items = life.items.iter().filter(|item| item.stage == stage);
        let took = items.fold(Nanos::ZERO, |sum, item| sum + (item.to - item.from));
        let most = bill.item(stage).map_or(Nanos::ZERO, |item| item.value);
        if took > most {
            return Err(format!("{} took {took:?} of {most:?}", stage.name()));
        }
    }
    Ok(())
}

/// The reader measured its longest delay against the fastest way to the server that it saw, so that
/// is what the life is longer by.
fn as_measured(
    session: &Session,
    followed: &Followed,
    life: &Life,
    pipe: usize,
) -> Result<(), String> {
    let promises = session.promises();
    let row = promises.get(pipe).and_then(|promise| promise.row(&followed.outcome));
    let row = row.ok_or("a reader said nothing")?;
    let (latency, whole) = (life.latency() + CALL, Nanos(row.whole_max_ns));
    if latency < whole || latency - whole > FASTEST {
        return Err(format!("{latency:?} by its life, {whole:?} by its reader"));
    }
    Ok(())
}
