//! How far the clocks of a bus under MTS are off: assumed, or derived from the message that carries
//! the time.
//!
//! The bound of the clocks follows from how late that message may be, and that from the epochs,
//! which suit the clocks that the plan counts with. So the plan begins with perfect clocks and goes
//! on with what follows, in whole microseconds, until no more follows than it counted with.

use super::{Bus, CanOutcome, CanPlan, refusal};
use crate::human;
use diapason_abi::Nanos;
use diapason_can::mts::{TimeRefusal, TimeTerms};
use diapason_system::{CLOCKS_MAX, CanTime};

const MICRO: u64 = 1_000;
/// Most frames in a row of which a description says that they may be lost.
const LOSSES_MAX: u64 = 1_000;

/// How far the clocks of a bus are from its common time.
#[derive(Clone, Debug)]
pub struct CanClocks {
    /// The plan counts with this.
    pub counted: Nanos,
    /// The common time that follows from the message that carries it. None if that message is
    /// late, or if there is none: then `counted` is assumed.
    pub time: Option<TimeTerms>,
}

/// Returns the plan of a bus under MTS.
pub(super) fn plan(bus: &Bus<'_>) -> CanPlan {
    let said = bus.network.clocks_ns.map(Nanos);
    match &bus.network.time {
        None => counted(bus, said.unwrap_or_default()),
        Some(time) => {
            let followed = follow(bus, time, said);
            followed.unwrap_or_else(|refused| refusal(bus.network, refused))
        }
    }
}

fn counted(bus: &Bus<'_>, counted: Nanos) -> CanPlan {
    CanPlan { clocks: Some(CanClocks { counted, time: None }), ..bus.mts(counted) }
}

/// Returns the plan with clocks that follow the message of the time, within what is said of them.
fn follow(bus: &Bus<'_>, time: &CanTime, said: Option<Nanos>) -> Result<CanPlan, [String; 2]> {
    let mut clocks = said.unwrap_or_default();
    loop {
        let mut plan = counted(bus, clocks);
        if plan.refused.is_some() {
            return Ok(plan);
        }
        let (late, is_bound) = late(bus, time, &plan);
        let terms = terms(bus, time, late)?;
        if terms.clocks() <= clocks {
            if let Some(said) = said.filter(|said| *said < clocks) {
                return Err(closer(bus, time, said, clocks));
            }
            plan.clocks = Some(CanClocks { counted: clocks, time: is_bound.then_some(terms) });
            return Ok(plan);
        }
        clocks = Nanos(terms.clocks().0.div_ceil(MICRO) * MICRO);
        if clocks > Nanos(CLOCKS_MAX) {
            return Err(far(bus, time, clocks));
        }
    }
}

/// Returns how late a frame of the time is through, and whether that is a bound. If there is none,
/// the message is refused, and its deadline counts for the others. The driver of a controller knows
/// the deadline only.
fn late(bus: &Bus<'_>, time: &CanTime, plan: &CanPlan) -> (Nanos, bool) {
    match plan.messages[time.message].outcome {
        CanOutcome::Response(response) if bus.network.controller.is_none() => (response, true),
        ref outcome => {
            let late = bus.network.time_late().unwrap_or_default();
            (late, matches!(outcome, CanOutcome::Response(_)))
        }
    }
}

fn terms(bus: &Bus<'_>, time: &CanTime, late: Nanos) -> Result<TimeTerms, [String; 2]> {
    let message = &bus.network.messages[time.message];
    let Some(base) = bus.network.time_base(late) else {
        let title = format!("`{}` carries the time, and has no period", message.name);
        return Err([title, "add `period`".to_owned()]);
    };
    // A frame with an error before it says no instant.
    let spoiled = bus.network.errors.in_a_row(base.interval, late);
    if spoiled > base.losses.into() {
        let name = &message.name;
        return Err(if spoiled > LOSSES_MAX {
            let apart = human(bus.network.errors.interval.0);
            [
                format!("errors may spoil every frame of `{name}`: there is one each {apart}"),
                format!("make `period` of `{name}` shorter than that"),
            ]
        } else {
            [
                format!(
                    "errors may spoil {spoiled} frames of `{name}` in a row, and a node may \
                     lose {}",
                    base.losses
                ),
                format!("write `time_losses = {spoiled}`, or make `period` of `{name}` shorter"),
            ]
        });
    }
    TimeTerms::new(base).map_err(|refused| {
        let name = &message.name;
        match refused {
            TimeRefusal::Late => [
                format!(
                    "`{name}` carries the time, may take {}, and the next is due after {}",
                    human(late.0),
                    human(base.interval.0)
                ),
                format!("make `period` of `{name}` longer, or its `jitter` shorter"),
            ],
            TimeRefusal::Interval | TimeRefusal::Beyond => [
                format!("no common time follows from `{name}`: {refused}"),
                "mend the keys of `time`".to_owned(),
            ],
        }
    })
}

/// Returns that clocks are said to be closer than they are, and what holds.
fn closer(bus: &Bus<'_>, time: &CanTime, said: Nanos, clocks: Nanos) -> [String; 2] {
    let name = &bus.network.messages[time.message].name;
    let (is, own, micros) = (human(clocks.0), human(said.0), clocks.0 / MICRO);
    [
        format!("clocks that follow `{name}` are up to {is} off, and `clocks` is {own}"),
        format!("write `clocks = \"{micros}us\"`, or leave `clocks` out: it follows from `time`"),
    ]
}

fn far(bus: &Bus<'_>, time: &CanTime, clocks: Nanos) -> [String; 2] {
    let name = &bus.network.messages[time.message].name;
    let (is, most) = (human(clocks.0), human(CLOCKS_MAX));
    [
        format!("clocks that follow `{name}` are up to {is} off: that is more than {most}"),
        format!("make `period` of `{name}` shorter, or `time_read`, `time_drift`, `time_losses`"),
    ]
}
