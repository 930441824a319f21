//! The other nodes of a CAN bus, as its messages have them: units with clocks that are fast and
//! slow by as much as the description lets them.

use diapason_abi::Nanos;
use diapason_can::frame::{extended, standard};
use diapason_can::mts::Oscillator;
use diapason_contract::toucan::MessageId;
use diapason_devices::can::{
    TimedMessage, TimedName, TimedTerms, TimedUnit, UnitTrouble, UnitUpset,
};
use diapason_random::Random;
use diapason_system::{
    CanMessage, CanNetwork, CanScheduler, CanSender, FaultKind, FaultTarget, InjectedFault, System,
};

/// The clocks of other nodes show times that are so far apart.
const APART: Nanos = Nanos::from_micros(1_234_567);
/// The first messages come so long after the clock of their node began, unless that is drawn.
const FIRST: Nanos = Nanos::from_millis(1);
const MILLION: u128 = 1_000_000;

/// A node with the places of its messages.
pub(crate) struct Node<'a> {
    pub name: &'a str,
    pub messages: Vec<usize>,
    pub unit: TimedUnit,
}

/// Returns the other nodes of a bus, in the order of their first messages. Under MTS they keep
/// these terms, and without them only messages with fixed identifiers are sent. `random` draws when
/// messages come.
pub(crate) fn nodes<'a>(
    network: &'a CanNetwork,
    terms: Option<&TimedTerms>,
    random: Option<&mut Random>,
) -> Vec<Node<'a>> {
    let mut nodes: Vec<Node<'_>> = Vec::new();
    for (place, (message, id)) in network.messages.iter().zip(network.names()).enumerate() {
        let CanSender::Node(name) = &message.sender else { continue };
        let Some(made) = id.and_then(|id| timed(network, message, id, terms)) else { continue };
        let found = nodes.iter().position(|node| node.name == name);
        let number = found.unwrap_or_else(|| {
            let unit = unit(network, nodes.len() as u64, name, terms);
            nodes.push(Node { name, messages: Vec::new(), unit });
            nodes.len() - 1
        });
        nodes[number].messages.push(place);
        nodes[number].unit.messages.push(made);
    }
    random.into_iter().for_each(|random| shift(&mut nodes, random));
    nodes
}

/// Lets messages come at once or anyhow.
fn shift(nodes: &mut [Node<'_>], random: &mut Random) {
    if random.one_in(2) {
        return;
    }
    let all = nodes.iter_mut().flat_map(|node| &mut node.unit.messages);
    for message in all {
        message.first += Nanos(random.below(message.period.map_or(1, |period| period.0.max(1))));
    }
}

fn unit(network: &CanNetwork, place: u64, name: &str, terms: Option<&TimedTerms>) -> TimedUnit {
    let is_even = place.is_multiple_of(2);
    let (drift, grain) = network.time.map_or((0, 1), |time| (time.drift_ppm, time.step_ns));
    let ppm = if is_even { i64::from(drift) } else { -i64::from(drift) };
    // Clocks that nobody sets are within the bound of each other for ever.
    let given = terms.filter(|terms| terms.time.is_none());
    let offset = match (given, is_even) {
        (Some(terms), true) => 2 * terms.clocks.0,
        (Some(_), false) => 0,
        (None, _) if network.scheduler == CanScheduler::Mts => (place + 1) * APART.0,
        (None, _) => 0,
    };
    let clock = Oscillator { offset, ppm, grain: Nanos(grain) };
    let in_order = network.in_order.iter().any(|node| node == name);
    TimedUnit { clock, messages: Vec::new(), in_order, upsets: Vec::new() }
}

fn timed(
    network: &CanNetwork,
    message: &CanMessage,
    id: MessageId,
    terms: Option<&TimedTerms>,
) -> Option<TimedMessage> {
    let time = terms.and_then(|terms| terms.time).map(|(_, id)| id);
    let deadline = message.deadline_ns.or(message.period_ns).map(Nanos);
    let name = match id {
        MessageId::Code(code) => {
            let distance = deadline? - network.frame(message)?;
            TimedName::Code { code: code.into(), distance }
        }
        MessageId::Fixed(raw, is_extended) => {
            let id = if is_extended { extended(raw) } else { standard(raw) }.ok()?;
            if Some(id) == time { TimedName::Time(id) } else { TimedName::Fixed(id) }
        }
    };
    Some(TimedMessage {
        name,
        length: message.bytes,
        fd: message.fd,
        period: message.period_ns.map(|period| apart(network, period)),
        first: FIRST,
        jitter: Nanos(message.jitter_ns),
        deadline: message.deadline_ns.map(Nanos),
    })
}

/// Returns how long a node waits by its clock, so that no two messages are closer than `period`
/// even if the clock is as fast as may be.
fn apart(network: &CanNetwork, period: u64) -> Nanos {
    let Some(time) = network.time.filter(|time| time.drift_ppm > 0) else { return Nanos(period) };
    let longer = u128::from(period) * (MILLION + u128::from(time.drift_ppm));
    let longer = u64::try_from(longer.div_ceil(MILLION) + 1).unwrap_or(u64::MAX);
    Nanos(longer.div_ceil(time.step_ns.max(1)).saturating_mul(time.step_ns.max(1)))
}

/// Returns the other node that a fault makes trouble for.
pub(crate) fn troubled<'s>(system: &'s System, fault: &InjectedFault) -> Option<&'s str> {
    let is_of_node = fault.kind.target() == FaultTarget::Node;
    system.other_nodes().get(fault.target).copied().filter(|_| is_of_node)
}

/// Gives nodes the trouble that faults make for them.
pub(crate) fn trouble(nodes: &mut [Node<'_>], system: &System, faults: &[InjectedFault]) {
    for fault in faults {
        let trouble = match fault.kind {
            FaultKind::NodeReset => UnitTrouble::Off,
            FaultKind::NodeDeaf => UnitTrouble::Deaf,
            _ => continue,
        };
        let upset = UnitUpset { at: Nanos(fault.at_ns), lasts: Nanos(fault.arguments[0]), trouble };
        let of = troubled(system, fault);
        for node in nodes.iter_mut().filter(|node| Some(node.name) == of) {
            node.unit.upsets.push(upset);
            node.unit.upsets.sort_by_key(|upset| upset.at);
        }
    }
}
