//! The messages of a bus against what else a description says of it: pipes, and models that send.

use super::assign::assign;
use super::{CanName, CanOutcome, CanPlan, bits, fixed};
use diapason_abi::Nanos;
use diapason_can::mts::{IdentifierClass, classify};
use diapason_can::response::lost;
use diapason_can::wire::INTERFRAME_BITS;
use diapason_can::{BitRate, CanFrame, Id};
use diapason_devices::can::replay;
use diapason_pipe::meter::Meter;
use diapason_pipe::size::Bucket;
use diapason_system::{
    CanMessage, CanNetwork, CanSender, CanTraffic, Diagnostics, PipeDirection, PipeSpec, Place,
    System,
};

const SECOND: u128 = 1_000_000_000;
/// Exactness of interfaces' time stamps: as much as the server forgives.
const CLOCK: Nanos = Nanos::from_micros(10);
/// Longer than this counts as endless.
const HORIZON: Nanos = Nanos::from_secs(3_600);

/// Returns the contradictions between messages and pipes or traffic of one bus.
pub(crate) fn refusals(system: &System, plans: &[CanPlan]) -> Vec<Diagnostics> {
    let mut found = Vec::new();
    for (network, plan) in system.cans.iter().zip(plans) {
        let Some(interface) = network.interface else { continue };
        for (number, pipe) in (0u16..).zip(&system.pipes) {
            if (pipe.usb, pipe.channel) != interface {
                continue;
            }
            if let Some([title, help]) = of_pipe(network, plan, pipe) {
                found.push(system.problem(Place::Pipe(number), [&title, "", "", &help]));
            }
        }
        if let Some((place, [title, help])) = of_traffic(system, network, interface) {
            found.push(system.problem(place, [&title, "", "", &help]));
        }
    }
    found
}

fn of_pipe(network: &CanNetwork, plan: &CanPlan, pipe: &PipeSpec) -> Option<[String; 2]> {
    let writes = |message: &CanMessage| matches!(message.sender, CanSender::Process(_));
    let is_out = pipe.way == PipeDirection::ToDevice;
    let (mut rate, mut burst, mut any) = (0u128, 0u64, false);
    for (message, promise) in network.messages.iter().zip(&plan.messages) {
        if writes(message) != is_out {
            continue;
        }
        any = true;
        let Some(period) = message.period_ns.filter(|period| *period > 0) else {
            let title = format!("`{}` says how often its messages come", pipe.name);
            let help = format!("add `period` to `{}`, which it carries, too", message.name);
            return Some([title, help]);
        };
        // Messages that come evenly may be read unevenly: by their jitter and their response.
        let late = match (is_out, &promise.outcome) {
            (true, _) => 0,
            (false, CanOutcome::Response(response)) => response.0,
            (false, _) => message.deadline_ns.unwrap_or(period),
        };
        rate += (SECOND * SECOND).div_ceil(u128::from(period));
        let spread = message.jitter_ns.saturating_add(late);
        burst = burst.saturating_add(1).saturating_add(spread.div_ceil(period));
    }
    let rate = u64::try_from(rate.div_ceil(SECOND)).unwrap_or(u64::MAX);
    let name = &pipe.name;
    let bus = &network.name;
    if is_out && !any {
        let title = format!("`{name}` writes to `{bus}`, and no `[[message]]` of it says what");
        let help = format!("add `[[message]]` with `bus = \"{bus}\"` and `process = \"…\"`");
        return Some([title, help]);
    }
    if pipe.rate < rate || is_out && pipe.rate > rate {
        let title = format!(
            "`{name}` has `rate = {}`, and the messages it carries on `{bus}` are {rate} a second",
            pipe.rate
        );
        let help = format!("write `rate = {rate}`, or mend `period` of those messages");
        return Some([title, help]);
    }
    // Jitter lets more come at once than the burst.
    let late = u128::from(pipe.jitter_ns) * u128::from(pipe.rate);
    let least = pipe.burst.saturating_add(u64::try_from(late / SECOND).unwrap_or(u64::MAX));
    let most = u64::try_from(late.div_ceil(SECOND)).unwrap_or(u64::MAX);
    let most = pipe.burst.saturating_add(most);
    (least < burst || is_out && most > burst).then(|| {
        let at_once = if least < burst { least } else { most };
        let title = format!(
            "`{name}` lets {at_once} messages come at once, and those on `{bus}` may be {burst}"
        );
        let jitter = if is_out { ", or `jitter` of those messages" } else { "" };
        [title, format!("write `burst = {burst}`{jitter}")]
    })
}

fn of_traffic(
    system: &System,
    network: &CanNetwork,
    (usb, channel): (usize, u8),
) -> Option<(Place, [String; 2])> {
    let plug = system.usb.get(usb)?;
    let bus = plug.buses.iter().find(|bus| bus.channel == usize::from(channel))?;
    let can = system.cans.iter().position(|other| other.name == network.name)?;
    let place = Place::Can(u16::try_from(can).ok()?);
    let (name, own) = (&plug.name, &network.name);
    match &bus.traffic {
        CanTraffic::Receiver { .. } => None,
        CanTraffic::Numbered { .. } | CanTraffic::Sender { .. } => Some((
            place,
            [
                format!("`{name}` has numbered messages on `{own}`, which no `[[message]]` is"),
                "remove that traffic, or replay a log of the messages".to_owned(),
            ],
        )),
        CanTraffic::Replay { file, .. } if file.is_empty() => None,
        CanTraffic::Replay { file, log } => {
            let interface = format!("can{}", plug.first_channel + usize::from(channel));
            let frames = replay(log, &interface).ok()?;
            let wrong = frames_of_log(network, frames.into())?;
            let (title, help) = wrong;
            Some((place, [format!("the log `{file}`: {title}"), help]))
        }
    }
}

/// Returns what a log has that the messages of its bus do not say.
fn frames_of_log(network: &CanNetwork, frames: Vec<(Nanos, CanFrame)>) -> Option<(String, String)> {
    let assigned = assign(network).ok()?;
    let contract = |message: &CanMessage| {
        let period = Nanos(message.period_ns.unwrap_or(0));
        let late = Nanos(message.jitter_ns) + Nanos(message.deadline_ns.unwrap_or(0));
        message.period_ns.map(|_| Meter::new(Bucket::periodic(period).with_jitter(late + CLOCK)))
    };
    let mut meters: Vec<Option<Meter>> = network.messages.iter().map(contract).collect();
    for (at, frame) in frames {
        let place = assigned.names.iter().position(|name| is_of(*name, frame.id()));
        let Some(place) = place else {
            let id = shown(frame.id());
            let title =
                format!("it has {id} after {at}, which is no message on `{}`", network.name);
            return Some((title, "declare it as `[[message]]`, or replay another log".into()));
        };
        let message = &network.messages[place];
        if frame.bytes().len() > usize::from(message.bytes) {
            let title = format!(
                "{} bytes of `{}` after {at}, which has {}",
                frame.bytes().len(),
                message.name,
                message.bytes
            );
            return Some((title, format!("write `bytes = {}`", frame.bytes().len())));
        }
        if meters[place].as_mut().is_some_and(|meter| !meter.admits(at)) {
            let title = format!("`{}` comes too early {at} after its beginning", message.name);
            return Some((title, "make its `period` shorter, or its `jitter` longer".into()));
        }
    }
    None
}

fn is_of(name: Option<CanName>, id: Id) -> bool {
    match (name, id) {
        (Some(CanName::Fixed(own)), id) => own == id,
        (Some(CanName::Code(own)), Id::Standard(id)) => {
            let class = classify(id);
            matches!(class, Some(IdentifierClass::HighSpeed { code, .. }) if u16::from(code) == own)
        }
        _ => false,
    }
}

fn shown(id: Id) -> String {
    match id {
        Id::Standard(id) => format!("{:#05x}", id.as_raw()),
        Id::Extended(id) => format!("{:#010x}", id.as_raw()),
    }
}

/// Returns the longest time that a frame of this host needs on its bus once nothing of this host is
/// before it, if the messages of the bus are described. `Some(None)`: there is no bound.
pub(crate) fn contended_turn(system: &System, usb: usize, channel: u8) -> Option<Option<Nanos>> {
    let network = system.cans.iter().find(|it| it.interface == Some((usb, channel)))?;
    let (rate, assigned) = (BitRate::new(network.rate).ok()?, assign(network).ok()?);
    let all = network.messages.iter().zip(&assigned.names);
    let is_own = |message: &CanMessage| matches!(message.sender, CanSender::Process(_));
    let bottom = all.clone().filter(|(message, _)| is_own(message));
    let bottom = bottom.filter_map(|(_, name)| fixed(*name)).max();
    let cost =
        |message: &CanMessage| rate.time(u64::from(bits(network, message) + INTERFRAME_BITS));
    let own = all.clone().filter(|(message, _)| is_own(message));
    let own = own.map(|(message, _)| cost(message)).max()?;
    let others = || all.clone().filter(|(message, _)| !is_own(message));
    let goes_before = |name: Option<CanName>| fixed(name) < bottom;
    let below = others().filter(|(_, name)| !goes_before(**name));
    let blocking = below.map(|(message, _)| cost(message)).max().unwrap_or_default();
    let above: Vec<(Nanos, Nanos, Nanos)> = others()
        .filter(|(_, name)| goes_before(**name))
        .map(|(message, _)| {
            let period = Nanos(message.period_ns.unwrap_or(0));
            (cost(message), period, Nanos(message.jitter_ns))
        })
        .collect();
    if above.iter().any(|(_, period, _)| *period == Nanos::ZERO) {
        return Some(None);
    }
    let longest = all.clone().map(|(message, _)| bits(network, message)).max().unwrap_or(0);
    let mut start = blocking;
    while start <= HORIZON {
        // A frame that comes while ours is on the bus goes before the next one of this host. So a
        // backlog of n frames is through after n such times: windows side by side count no less.
        let within = start + own + rate.time(1);
        let work = above.iter().map(|(cost, period, jitter)| {
            cost.0.saturating_mul((within + *jitter).0 / period.0 + 1)
        });
        let lost = lost(rate, network.errors, longest, within);
        let next = blocking + Nanos(work.sum()) + lost;
        if next <= start {
            return Some(Some(start + own));
        }
        start = next;
    }
    Some(None)
}
