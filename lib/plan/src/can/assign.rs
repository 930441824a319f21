//! The identifier of every message.

use super::CanName;
use diapason_can::frame::{extended, standard};
use diapason_can::mts::{BEACONS, HIGH_SPEED, NON_REAL_TIME, low_speed_id, non_real_time_id};
use diapason_system::{ASSIGNED_MAX, CanClass, CanMessage, CanNetwork, CanScheduler};

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
    let count = network.messages.len();
    let order = network.by_deadline();
    let classes = classes(network, &order);
    let mut assigned = Assigned { classes, names: vec![None; count], order };
    match network.scheduler {
        CanScheduler::AsWritten | CanScheduler::DeadlineMonotonic => fixed(network, &mut assigned)?,
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

/// Names the messages whose identifiers stay.
fn fixed(network: &CanNetwork, assigned: &mut Assigned) -> Result<(), [String; 2]> {
    let by_deadline = network.scheduler == CanScheduler::DeadlineMonotonic;
    if by_deadline && assigned.order.len() > ASSIGNED_MAX {
        let title = format!("{} messages, and {ASSIGNED_MAX} identifiers", assigned.order.len());
        return Err([title, "put some messages on another bus".to_owned()]);
    }
    for (name, id) in assigned.names.iter_mut().zip(network.identifiers()) {
        *name = id.and_then(|(id, is_extended)| {
            let id = if is_extended { extended(id) } else { standard(id) };
            id.ok().map(CanName::Fixed)
        });
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
