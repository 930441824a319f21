//! The CAN controllers with message buffers of a host, and the other nodes of their buses.

use super::nodes::{nodes, trouble, troubled};
use super::{Functions, bus_mishap, controller_mishap};
use diapason_abi::Nanos;
use diapason_can::BitRate;
use diapason_can::frame::standard;
use diapason_can::mts::{Epochs, Renewing, TimeTerms};
use diapason_devices::can::{CanBus, TimedTerms};
use diapason_devices::toucan::TouCan;
use diapason_sim::{ControllerMishap, FunctionModel, TOUCAN, ToucanCard};
use diapason_system::{CanNetwork, CanScheduler, FaultTarget, InjectedFault, System};

/// Returns the CAN controllers with message buffers of a host, each with its bus: other nodes send
/// their messages there, and `faults` happen to both.
pub(super) fn buffered(system: &System, faults: &[InjectedFault]) -> Functions {
    let function = |(card, _)| -> (u32, Box<dyn FunctionModel>) { (TOUCAN, Box::new(card)) };
    buffered_on_buses(system, faults).into_iter().map(function).collect()
}

/// Returns the controllers as [`buffered`] does, in the order of their devices, each with its bus.
#[must_use]
pub fn buffered_on_buses(system: &System, faults: &[InjectedFault]) -> Vec<(ToucanCard, CanBus)> {
    let card = |network: &CanNetwork| -> Option<(usize, (ToucanCard, CanBus))> {
        let device = network.controller?.device;
        let bus = CanBus::new(BitRate::new(network.rate).ok()?);
        let terms = on_time(network);
        let mut nodes = nodes(network, terms.as_ref(), None);
        trouble(&mut nodes, system, faults);
        let units = nodes.into_iter().map(|node| node.unit).collect();
        bus.add_timed(terms, units, device as u64);
        // Somebody acknowledges, also if no other node sends.
        let bus = bus.acknowledged();
        let mut card = ToucanCard::new(TouCan::new(&bus));
        for fault in faults {
            let (at, words) = (Nanos(fault.at_ns), system.fault_words(fault));
            let on_bus = system.disturbed_bus(fault).map(|bus| &system.cans[bus]);
            if troubled(system, fault).is_some_and(|node| network.has_node(node)) {
                card.suffer(at, ControllerMishap::Device, words);
            } else if on_bus.is_some_and(|bus| bus.name == network.name) {
                bus_mishap(fault).into_iter().for_each(|(mishap, _)| bus.suffer(at, mishap));
                card.suffer(at, ControllerMishap::Device, words);
            } else if fault.kind.target() == FaultTarget::Controller && fault.target == device {
                card.suffer(at, controller_mishap(fault), words);
            }
        }
        Some((device, (card, bus)))
    };
    let mut cards: Vec<_> = system.cans.iter().filter_map(card).collect();
    cards.sort_by_key(|(device, _)| *device);
    cards.into_iter().map(|(_, on_bus)| on_bus).collect()
}

/// Returns the terms that the nodes of a bus under MTS keep, as the description writes them.
fn on_time(network: &CanNetwork) -> Option<TimedTerms> {
    let terms = network.mts_terms().filter(|_| network.scheduler == CanScheduler::Mts)?;
    let id = standard(terms.time_id).ok()?;
    let time = TimeTerms::new(network.time_base(Nanos(terms.late_ns))?).ok()?;
    Some(TimedTerms {
        time: Some((time, id)),
        epochs: Epochs::new(Nanos(terms.epoch_ns), Nanos(terms.reach_ns)).ok()?,
        clocks: Nanos(terms.clocks_ns),
        renewing: Renewing::ByClock { within: Nanos(terms.renewal_ns), repeating: 0 },
    })
}
