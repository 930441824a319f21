//! The frames that a host with a CAN controller sends, window by window: no identifier of its own
//! is on the bus more often than its message is described, and one frame more, even if a program
//! sends sixteen times too often. Other nodes that babble, a bus on which all frames are destroyed
//! and a controller that is off the bus change nothing of that.

use super::buffers::{CHATTERBOX, HORIZON_NS, changed};
use crate::qemu_tests::observed::Observed;
use diapason::Workspace;
use diapason::metal::Built;
use diapason::plan::Plan;
use diapason::session::Session;
use diapason::simulate::usual;
use diapason::surroundings::{Functions, buffered_on_buses};
use diapason_can::Id;
use diapason_plan::can::CanName;
use diapason_sim::TOUCAN;
use diapason_system::{CanSender, parse_fault};

const EXAMPLE: &str = "examples/can-controller.toml";
/// Faults of the bus or of the controller, one for each run.
const FAULTS: [Option<&str>; 5] = [
    None,
    Some("1s babble toucan0 150ms"),
    Some("1s can-errors toucan0 40"),
    Some("1s bus-off toucan0"),
    Some("1s controller-error toucan0"),
];
/// More frames than a run has.
const FRAMES: usize = 1 << 20;
/// Windows that all runs must have.
const WINDOWS: u64 = 1_000_000;

/// A message of this host: its identifier and the shortest time between two.
struct Own {
    name: String,
    id: Id,
    period_ns: u64,
}

/// Returns the messages of this host on the first bus.
fn own(session: &Session) -> Vec<Own> {
    let plan = Plan::of(&session.system);
    let messages = session.system.cans[0].messages.iter().zip(&plan.cans[0].messages);
    let of_this_host = messages.filter_map(|(message, promise)| {
        let Some(CanName::Fixed(id)) = promise.name else { return None };
        let own = matches!(message.sender, CanSender::Process(_));
        let period_ns = message.period_ns.filter(|_| own)?;
        Some(Own { name: message.name.clone(), id, period_ns })
    });
    of_this_host.collect()
}

/// Returns the number of windows that begin and end with one of these frames. None has more of them
/// than fit into it by their period, and one more.
fn windows(own: &Own, times: &[u64]) -> Result<u64, String> {
    for (first, from) in times.iter().enumerate() {
        for (more, to) in times[first..].iter().enumerate() {
            let fit = (to - from) / own.period_ns + 1;
            if more as u64 > fit {
                let Own { name, .. } = own;
                return Err(format!("{name}: {} frames from {from} to {to} ns", more + 1));
            }
        }
    }
    let count = times.len() as u64;
    Ok(count * (count + 1) / 2)
}

/// Simulates the system with a fault, and looks at all windows.
fn kept(session: &Session, fault: Option<&str>) -> Result<u64, String> {
    let parsed = fault.map(|words| parse_fault(&session.system, words));
    let faults: Vec<_> = parsed.into_iter().collect::<Result<_, _>>().map_err(|bad| bad.plain())?;
    let mut functions = Functions::new();
    let mut buses = Vec::new();
    for (card, bus) in buffered_on_buses(&session.system, &faults) {
        bus.record(FRAMES);
        buses.push(bus);
        functions.push((TOUCAN, Box::new(card)));
    }
    Observed::simulate_among(session, functions, &usual(session, None))?;
    let sent = buses[0].take_record();
    let mut all = 0;
    for own in own(session) {
        let frames = sent.iter().filter(|sent| sent.frame.id() == own.id);
        let times: Vec<u64> = frames.map(|sent| sent.time.0).collect();
        let least = HORIZON_NS / own.period_ns / 2;
        if (times.len() as u64) < least {
            return Err(format!("{fault:?}: only {} of {}", times.len(), own.name));
        }
        all += windows(&own, &times).map_err(|wrong| format!("{fault:?}: {wrong}"))?;
    }
    println!("{fault:?}: {} frames on the bus, {all} windows", sent.len());
    Ok(all)
}

/// Looks at the windows of the example beside a program that sends too often.
pub fn check(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let text = std::fs::read_to_string(workspace.root().join(EXAMPLE));
    let text = text.map_err(|error| error.to_string())?;
    let session = changed(EXAMPLE, built, &(text + CHATTERBOX))?;
    let mut all = 0;
    for fault in FAULTS {
        all += kept(&session, fault)?;
    }
    if all < WINDOWS { Err(format!("only {all} windows")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_frame_more_than_fits_is_allowed_and_two_are_not() {
        let id = Id::from(diapason_can::StandardId::new(1).unwrap());
        let own = Own { name: String::from("torque"), id, period_ns: 1_000 };
        assert_eq!(windows(&own, &[0, 10, 1_010, 2_500]), Ok(10));
        assert!(windows(&own, &[0, 10, 20]).unwrap_err().contains("torque: 3 frames from 0 to 20"));
    }
}
