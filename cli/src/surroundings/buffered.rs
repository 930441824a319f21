//! The CAN controllers with message buffers of a host, and the other nodes of their buses.

use super::{Functions, bus_mishap, controller_mishap};
use diapason_abi::Nanos;
use diapason_can::BitRate;
use diapason_can::frame::{extended, standard};
use diapason_can::mts::{Epochs, Oscillator, TimeTerms};
use diapason_contract::toucan::MessageId;
use diapason_devices::can::{
    CanBus, PeriodicMessage, TimedMessage, TimedName, TimedTerms, TimedUnit,
};
use diapason_devices::toucan::TouCan;
use diapason_sim::{ControllerMishap, FunctionModel, TOUCAN, ToucanCard};
use diapason_system::{
    CanMessage, CanNetwork, CanScheduler, CanSender, FaultTarget, InjectedFault, System,
};

/// The clocks of other nodes under MTS show times that are so far apart.
const APART: Nanos = Nanos::from_micros(1_234_567);

/// Returns the CAN controllers with message buffers of a host, each with its bus: other nodes send
/// their messages there, and `faults` happen to both.
pub(super) fn buffered(system: &System, faults: &[InjectedFault]) -> Functions {
    let card = |network: &CanNetwork| -> Option<(usize, ToucanCard)> {
        let device = network.controller?.device;
        let bus = CanBus::new(BitRate::new(network.rate).ok()?);
        match on_time(network) {
            Some((terms, units)) => bus.add_timed(terms, units, device as u64),
            None => others(network).into_iter().for_each(|node| {
                bus.add_unit(node);
            }),
        }
        // Somebody acknowledges, also if no other node sends.
        let bus = bus.acknowledged();
        let mut card = ToucanCard::new(TouCan::new(&bus));
        for fault in faults {
            let (at, words) = (Nanos(fault.at_ns), system.fault_words(fault));
            if system.disturbed_controller(fault) == Some(device) {
                bus_mishap(fault).into_iter().for_each(|(mishap, _)| bus.suffer(at, mishap));
                card.suffer(at, ControllerMishap::Device, words);
            } else if fault.kind.target() == FaultTarget::Controller && fault.target == device {
                card.suffer(at, controller_mishap(fault), words);
            }
        }
        Some((device, card))
    };
    let mut cards: Vec<_> = system.cans.iter().filter_map(card).collect();
    cards.sort_by_key(|(device, _)| *device);
    let function = |(_, card)| -> (u32, Box<dyn FunctionModel>) { (TOUCAN, Box::new(card)) };
    cards.into_iter().map(function).collect()
}

/// Returns the messages of each other node of a bus.
fn others(network: &CanNetwork) -> Vec<Vec<PeriodicMessage>> {
    by_node(network, |message, id, period| {
        let MessageId::Fixed(raw, is_extended) = id else { return None };
        let id = if is_extended { extended(raw) } else { standard(raw) };
        let (length, offset) = (message.bytes, Nanos::from_millis(1));
        Some(PeriodicMessage { id: id.ok()?, length, period, offset })
    })
}

/// Returns what `of` makes of each message of other nodes that has an identifier and a period, by
/// node.
fn by_node<T>(
    network: &CanNetwork,
    of: impl Fn(&CanMessage, MessageId, Nanos) -> Option<T>,
) -> Vec<Vec<T>> {
    let mut nodes: Vec<(&str, Vec<T>)> = Vec::new();
    for (message, id) in network.messages.iter().zip(network.names()) {
        let (CanSender::Node(node), Some(id)) = (&message.sender, id) else { continue };
        let made = message.period_ns.and_then(|period| of(message, id, Nanos(period)));
        let Some(made) = made else { continue };
        match nodes.iter_mut().find(|(name, _)| name == node) {
            Some((_, all)) => all.push(made),
            None => nodes.push((node, vec![made])),
        }
    }
    nodes.into_iter().map(|(_, all)| all).collect()
}

/// Returns the other nodes of a bus under MTS, and the terms that they keep. Their clocks are fast
/// and slow by as much as the description lets them, and were switched on at different times.
fn on_time(network: &CanNetwork) -> Option<(TimedTerms, Vec<TimedUnit>)> {
    let terms = network.mts_terms().filter(|_| network.scheduler == CanScheduler::Mts)?;
    let id = standard(terms.time_id).ok()?;
    let messages = by_node(network, |message, name, period| {
        let name = match name {
            MessageId::Fixed(raw, _) if raw == terms.time_id => TimedName::Time(id),
            MessageId::Fixed(raw, _) => TimedName::Fixed(standard(raw).ok()?),
            MessageId::Code(code) => {
                let deadline = Nanos(message.deadline_ns.unwrap_or(period.0));
                let distance = deadline - network.frame(message)?;
                TimedName::Code { code: code.into(), distance }
            }
        };
        Some(TimedMessage { name, length: message.bytes, period })
    });
    let drift = i64::from(terms.drift_ppm);
    let clock = |place: u64| Oscillator {
        offset: (place + 1) * APART.0,
        ppm: if place.is_multiple_of(2) { drift } else { -drift },
        grain: Nanos(terms.step_ns),
    };
    let units = (0..).zip(messages);
    let units = units.map(|(place, messages)| TimedUnit { clock: clock(place), messages });
    let clocks = Nanos(terms.clocks_ns);
    let timed = TimedTerms {
        time: TimeTerms::new(network.time_base(Nanos(terms.late_ns))?).ok()?,
        epochs: Epochs::new(Nanos(terms.epoch_ns), Nanos(terms.reach_ns)).ok()?,
        clocks,
        within: Nanos(terms.renewal_ns),
        id,
    };
    Some((timed, units.collect()))
}
