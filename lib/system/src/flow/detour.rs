//! `[[flow.hop.otherwise]]`: another way around the cable of a hop, to the same program.

use super::{DeclaredHop, FlowHop, FlowStop, FlowWay, HOPS_MAX, List};
use crate::diagnostics::{Problem, Report};

/// Another way from the program before a hop to the program behind it, which messages take while
/// the hop's own cable does not take them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Detour {
    /// The number of the hop.
    pub hop: usize,
    /// The program sends by the other way from when a message was not taken for so long.
    pub patience_ns: u64,
    /// The steps of the other way. The last one leads to the program behind the hop.
    pub hops: Vec<FlowHop>,
}

impl List<'_> {
    /// Returns the other way around a hop, if one is declared and can be.
    pub(super) fn detour(
        &self,
        declared: &DeclaredHop,
        (number, hop): (usize, FlowHop),
        from: FlowStop,
        report: &mut Report,
    ) -> Option<Detour> {
        let patience = match (&declared.patience, declared.otherwise.is_empty()) {
            (None, true) => return None,
            (Some(patience), true) => {
                let help = "add `[[flow.hop.otherwise]]`: the steps of the other way, or remove it";
                report.push(Problem::new(&patience.span, "`patience` without another way", help));
                return None;
            }
            (None, false) => {
                let help = "add `patience = \"5ms\"` to the hop: a message that its cable has not \
                            taken for so long lets later ones go the other way";
                report.push(Problem::new(&declared.place, "`otherwise` without `patience`", help));
                return None;
            }
            (Some(patience), false) => patience.value,
        };
        if let Some(extra) = declared.otherwise.get(HOPS_MAX) {
            let title = format!("{} steps, the most is {HOPS_MAX}", declared.otherwise.len());
            report.push(Problem::new(&extra.place, title, "choose a shorter way"));
        }
        let hops = self.steps(&declared.otherwise, Some(from), report);
        let whole = hops.len() == declared.otherwise.len();
        for (step, text) in hops.iter().zip(&declared.otherwise).filter(|_| whole) {
            let place = text.by.as_ref().map_or(&text.place, |by| &by.span);
            let other = match step.way {
                FlowWay::Cable(_) => None,
                FlowWay::Sockets { .. } => Some("another way over Ethernet"),
                FlowWay::Mailbox(_) => Some("another way by a mailbox"),
            };
            if let Some(title) = other {
                report.push(Problem::new(place, title, "name a `[[cable]]`"));
                return None;
            }
            if step.way == hop.way {
                let title = "the other way uses the cable that it is to go around".to_owned();
                let help = "go by other cables: without this one there is no way then";
                let problem = Problem::new(place, title, help);
                let own = declared.by.as_ref().map_or(&declared.place, |by| &by.span);
                report.push(problem.with(own, "the cable of the hop"));
                return None;
            }
        }
        let last = hops.last().filter(|_| whole)?;
        if (last.to.host, last.to.process) != (hop.to.host, hop.to.process) {
            let text = declared.otherwise.last()?;
            let place = text.process.as_ref().map_or(&text.place, |name| &name.span);
            let wanted = self.written(hop.to);
            let title = format!("the other way does not lead to `{wanted}`");
            let help = format!("add the steps from there to `{wanted}`, where the hop leads");
            report.push(Problem::new(place, title, help));
            return None;
        }
        Some(Detour { hop: number, patience_ns: patience, hops })
    }
}
