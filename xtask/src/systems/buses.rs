//! Judges messages that programs send by a controller with buffers: how long each waits for the
//! driver, and when it is through.

use super::judge::{Breach, Tightness, breach};
use diapason::outcome::{CanMessagePromise, HeardPromise, Outcome};
use diapason::session::{FinishedRun, Session};
use diapason_abi::Nanos;
use diapason_system::{CanMessage, CanSender, ProcessSpec, System};

/// The program that sends.
const SENDER: &str = "message-sender";
/// The place of the argument that says how many times too often it sends.
const OFTEN: usize = 2;

/// Returns whether this is a message of a process that keeps to no contract.
fn is_flood(system: &System, message: &CanMessage) -> bool {
    let CanSender::Process(sender) = &message.sender else { return false };
    let floods = |it: &ProcessSpec| it.program == SENDER && it.arguments[OFTEN] > 1;
    system.processes.iter().any(|process| process.name == *sender && floods(process))
}

/// Returns the names of all messages that come more often than declared.
pub fn floods(system: &System) -> impl Iterator<Item = &str> {
    let all = system.cans.iter().flat_map(|network| &network.messages);
    all.filter(|message| is_flood(system, message)).map(|message| &*message.name)
}

/// Returns whether this alarm says, or follows from, that a driver refilled its buffers too late.
/// `plan` assumes that it does not, and says so.
pub fn is_dry(outcome: &Outcome, alarm: &str) -> bool {
    let dry = outcome.cans.iter().any(|row| row.last.controller.dry > 0);
    dry && ["alarm can-dry", "alarm can-late", "alarm can-replaced"].contains(&alarm)
}

/// Returns the messages that waited longer for the driver than `plan` says.
pub fn waits(session: &Session, run: &FinishedRun, shares: &mut Tightness) -> Vec<Breach> {
    let mut found = Vec::new();
    for promise in CanMessagePromise::of(&session.system, &session.plan) {
        let row = run.outcome.cans.iter().find(|row| row.last.number == promise.number);
        let (Some(bound), Some(row)) = (bound(session, &promise), row) else { continue };
        let waited = row.last.jitter;
        shares.queued.push(waited.0 * 1_000 / bound.0.max(1));
        if waited > bound {
            let text = format!("{}: {} ns of {} ns", promise.name, waited.0, bound.0);
            found.push(breach("queued", text));
        }
        if let Some(through) = promise.bound_ns {
            shares.through.push(row.last.response.0 * 1_000 / through.max(1));
        }
    }
    found
}

/// Notes how soon messages of other nodes were at their readers. One that is late rings an alarm.
pub fn reads(session: &Session, run: &FinishedRun, shares: &mut Tightness) {
    for promise in HeardPromise::of(&session.system, &session.plan) {
        let is_it =
            |process: u64, number: u16| (process, number) == (promise.reader, promise.number);
        let mut rows = run.outcome.heard.iter();
        let row = rows.find(|row| is_it(row.process, row.last.number));
        if let (Some(bound), Some(row)) = (promise.done_ns, row) {
            shares.read.push(row.last.longest.0 * 1_000 / bound.max(1));
        }
    }
}

/// Returns the longest from the release of a message until the controller has it, if its program
/// keeps to its contract. The program puts all messages of a job, and then wakes the driver.
fn bound(session: &Session, promise: &CanMessagePromise) -> Option<Nanos> {
    let (system, plan) = (&session.system, &session.plan);
    let mut buses = system.cans.iter().zip(&plan.cans);
    let (network, planned) = buses.find(|(network, _)| network.name == promise.bus)?;
    let message = network.messages.iter().find(|it| it.number == promise.number)?;
    let vcpu = system.processes.iter().find(|it| it.name == promise.sender)?.vcpu;
    let place = plan.core.mains.iter().position(|number| Some(*number) == vcpu)?;
    let put = plan.response(place)?.response;
    let queued = planned.queued.as_ref()?.as_ref().ok()?;
    (!is_flood(system, message)).then_some(*queued + put)
}
