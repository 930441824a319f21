//! The identifier of every message.

use super::CanName;
use diapason_can::frame::{extended, standard};
use diapason_contract::toucan::MessageId;
use diapason_system::{ASSIGNED_MAX, CanClass, CanNetwork, CanScheduler};

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
    let (order, classes) = (network.by_deadline(), network.classes());
    let of = |id| {
        let id = match id {
            MessageId::Code(code) => return Some(CanName::Code(code.into())),
            MessageId::Fixed(id, true) => extended(id),
            MessageId::Fixed(id, false) => standard(id),
        };
        id.ok().map(CanName::Fixed)
    };
    let names = network.names().into_iter().map(|id| id.and_then(of)).collect();
    let assigned = Assigned { classes, names, order };
    match network.scheduler {
        CanScheduler::AsWritten => {}
        CanScheduler::DeadlineMonotonic if network.messages.len() > ASSIGNED_MAX => {
            let title =
                format!("{} messages, and {ASSIGNED_MAX} identifiers", network.messages.len());
            return Err([title, "put some messages on another bus".to_owned()]);
        }
        CanScheduler::DeadlineMonotonic => {}
        CanScheduler::Mts => all_named(&assigned)?,
    }
    Ok(assigned)
}

/// Returns an error if a class has more messages than identifiers.
fn all_named(assigned: &Assigned) -> Result<(), [String; 2]> {
    for class in [CanClass::High, CanClass::Low, CanClass::NonRealTime] {
        let named = |index: &usize| assigned.names[*index].is_some();
        let of_class = assigned.of_class(class);
        if let Some(rank) = of_class.iter().position(|index| !named(index)) {
            let title = format!("class `\"{}\"` has identifiers for {rank} messages", class.name());
            return Err([title, "write another `class` for some of them".to_owned()]);
        }
    }
    Ok(())
}
