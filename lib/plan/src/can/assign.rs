//! The identifier of every message.

use super::CanName;
use diapason_can::frame::{extended, standard};
use diapason_can::mts::{BEACONS, HIGH_SPEED, NON_REAL_TIME, low_speed_id, non_real_time_id};
use diapason_system::{CanClass, CanMessage, CanNetwork, CanScheduler};

/// The first identifier that is assigned: those before it are left to what is more urgent than
/// anything described.
const FIRST: u32 = 0x010;
/// CAN forbids identifiers that begin with seven recessive bits.
const END: u32 = 0x7f0;
/// Without a word, a message is of high speed if its deadline is at most so many times the
/// shortest one.
const WITHIN: u64 = 10;

/// Classes and names, by message.
pub(super) struct Assigned {
    pub classes: Vec<CanClass>,
    pub names: Vec<Option<CanName>>,
    /// All messages, the most urgent of each class first.
    order: Vec<usize>,
}

impl Assigned {
    /// Returns the messages of a class, the most urgent first.
    pub fn of_class(&self, class: CanClass) -> Vec<usize> {
        self.order.iter().copied().filter(|index| self.classes[*index] == class).collect()
    }
}

/// # Errors
/// More messages than identifiers: why, and what to do.
pub(super) fn assign(network: &CanNetwork) -> Result<Assigned, [String; 2]> {
    let messages = &network.messages;
    let mut order: Vec<usize> = (0..messages.len()).collect();
    let urgency = |index: &usize| {
        let message = &messages[*index];
        (message.deadline_ns.unwrap_or(u64::MAX), message.period_ns.unwrap_or(u64::MAX))
    };
    order.sort_by_key(urgency);
    let classes = classes(network, &order);
    let mut assigned = Assigned { classes, names: vec![None; messages.len()], order };
    match network.scheduler {
        CanScheduler::AsWritten => {
            for (name, message) in assigned.names.iter_mut().zip(messages) {
                *name = message.id.and_then(|(id, is_extended)| {
                    let id = if is_extended { extended(id) } else { standard(id) };
                    id.ok().map(CanName::Fixed)
                });
            }
        }
        CanScheduler::DeadlineMonotonic => by_deadline(&mut assigned)?,
        CanScheduler::Mts => by_class(&mut assigned)?,
    }
    Ok(assigned)
}

fn classes(network: &CanNetwork, order: &[usize]) -> Vec<CanClass> {
    if network.scheduler != CanScheduler::Mts {
        let said = network.messages.iter().map(|message| message.class);
        return said.map(|class| class.unwrap_or(CanClass::Low)).collect();
    }
    let deadlines = network.messages.iter().filter_map(|message| message.deadline_ns);
    let shortest = deadlines.min().unwrap_or(0);
    let said = |message: &CanMessage| message.class == Some(CanClass::High);
    let mut room = usize::from(HIGH_SPEED);
    room -= room.min(network.messages.iter().filter(|message| said(message)).count());
    let mut classes = vec![CanClass::Low; network.messages.len()];
    for index in order {
        let message = &network.messages[*index];
        classes[*index] = message.class.unwrap_or_else(|| {
            let near = |deadline| deadline <= shortest.saturating_mul(WITHIN);
            if room > 0 && message.deadline_ns.is_some_and(near) {
                room -= 1;
                CanClass::High
            } else {
                CanClass::Low
            }
        });
    }
    classes
}

fn by_deadline(assigned: &mut Assigned) -> Result<(), [String; 2]> {
    let holds = (END - FIRST) as usize;
    if assigned.order.len() > holds {
        let title = format!("{} messages, and {holds} identifiers", assigned.order.len());
        return Err([title, "put some messages on another bus".to_owned()]);
    }
    for (id, index) in (FIRST..END).zip(&assigned.order) {
        assigned.names[*index] = standard(id).ok().map(CanName::Fixed);
    }
    Ok(())
}

fn by_class(assigned: &mut Assigned) -> Result<(), [String; 2]> {
    for class in [CanClass::High, CanClass::Low, CanClass::NonRealTime] {
        for (rank, index) in (0u16..).zip(assigned.of_class(class)) {
            let name = match class {
                CanClass::High if rank < HIGH_SPEED => Some(CanName::Code(rank)),
                CanClass::High => None,
                CanClass::Low => low_speed_id(rank).ok().map(|id| CanName::Fixed(id.into())),
                CanClass::NonRealTime if rank >= NON_REAL_TIME - BEACONS => None,
                CanClass::NonRealTime => {
                    non_real_time_id(rank).ok().map(|id| CanName::Fixed(id.into()))
                }
            };
            if name.is_none() {
                let title =
                    format!("class `\"{}\"` has identifiers for {rank} messages", class.name());
                return Err([title, "write another `class` for some of them".to_owned()]);
            }
            assigned.names[index] = name;
        }
    }
    Ok(())
}
