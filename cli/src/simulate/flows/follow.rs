//! Messages of a flow, found again at every link that they pass.
//!
//! A cable keeps the order of messages, so the k-th message that a server did not drop is the k-th
//! that comes at the other end. A program passes a message on where it is, so its place finds it
//! again. If a time or a length contradicts that, the flow is not followed any further.

use super::ears::{Come, Given, LinkLogs, Onward};
use diapason_abi::Nanos;
use diapason_plan::FlowLeg;

/// Stages of a message on each cable: it waits for the server, it crosses, a program has it.
pub const STAGES: usize = 3;

/// The life of one message of a flow, from when its first program gave it to a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowLife {
    /// Its number among the messages of the flow, from 1.
    pub number: u64,
    pub from: Nanos,
    /// The end of each stage, cable by cable.
    pub ends: Vec<Nanos>,
}

impl FlowLife {
    /// Returns the time from its beginning to the end of its last stage.
    #[must_use]
    pub fn latency(&self) -> Nanos {
        self.ends.last().map_or(Nanos::ZERO, |end| *end - self.from)
    }

    /// Returns for each stage how long it took, and how long after the beginning it ended.
    pub fn stages(&self) -> impl Iterator<Item = SeenTime> {
        let begins = std::iter::once(self.from).chain(self.ends.iter().copied());
        begins
            .zip(&self.ends)
            .map(|(begin, end)| SeenTime { within: *end - begin, by_end: *end - self.from })
    }
}

/// How long a message was at a stage.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SeenTime {
    pub within: Nanos,
    /// From the beginning of the message to the end of the stage.
    pub by_end: Nanos,
}

/// The common results of all messages of a flow.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FlowSeen {
    /// Messages that were followed to their end.
    pub messages: u64,
    /// The longest at each stage.
    pub stages: Vec<SeenTime>,
    /// The message that took longest.
    pub worst: Option<FlowLife>,
    /// The message with the number that was asked for.
    pub this: Option<FlowLife>,
}

impl FlowSeen {
    /// Follows the messages of a flow over the links of its legs. `logs` has those of every host,
    /// and `wanted` is the number of a message that is to be kept.
    #[must_use]
    pub fn of(legs: &[FlowLeg], logs: &[&LinkLogs], wanted: Option<u64>) -> FlowSeen {
        let mut seen = FlowSeen::default();
        let Some(first) = legs.first() else { return seen };
        let ranks: Vec<Vec<Option<usize>>> =
            legs.iter().map(|leg| ranks(given(logs, leg))).collect();
        let mut number = 0;
        for (place, message) in given(logs, first).iter().enumerate() {
            if message.is_passed_on || message.is_lost {
                continue;
            }
            match way(legs, logs, &ranks, place) {
                Way::Whole(ends) => {
                    number += 1;
                    let life = FlowLife { number, from: message.asked, ends };
                    if wanted == Some(number) {
                        seen.this = Some(life.clone());
                    }
                    seen.note(life);
                }
                Way::Other => {}
                Way::Contradiction => break,
            }
        }
        seen
    }

    fn note(&mut self, life: FlowLife) {
        self.messages += 1;
        self.stages.resize(life.ends.len(), SeenTime::default());
        for (longest, stage) in self.stages.iter_mut().zip(life.stages()) {
            longest.within = longest.within.max(stage.within);
            longest.by_end = longest.by_end.max(stage.by_end);
        }
        if self.worst.as_ref().is_none_or(|worst| life.latency() > worst.latency()) {
            self.worst = Some(life);
        }
    }
}

/// The way of a message.
enum Way {
    /// It is that of the flow. The ends of its stages.
    Whole(Vec<Nanos>),
    /// The message is still under way, or is none of the flow.
    Other,
    /// The order of messages is not what it should be.
    Contradiction,
}

fn way(legs: &[FlowLeg], logs: &[&LinkLogs], ranks: &[Vec<Option<usize>>], first: usize) -> Way {
    let (mut place, mut ends) = (first, Vec::with_capacity(STAGES * legs.len()));
    for (number, leg) in legs.iter().enumerate() {
        let Some(sent) = given(logs, leg).get(place) else { return Way::Other };
        let arrived = ranks[number][place].and_then(|rank| come(logs, leg).get(rank));
        let (Some(taken), Some(arrived)) = (sent.taken, arrived) else { return Way::Other };
        if arrived.told < taken || arrived.bytes != sent.bytes {
            return Way::Contradiction;
        }
        let Some((then, onward)) = arrived.then else { return Way::Other };
        ends.extend([taken, arrived.told, then]);
        match (onward, legs.get(number + 1)) {
            (Onward::Back, None) => return Way::Whole(ends),
            (Onward::Over(link, message), Some(next)) if link == next.from.link => place = message,
            _ => return Way::Other,
        }
    }
    Way::Other
}

fn given<'l>(logs: &[&'l LinkLogs], leg: &FlowLeg) -> &'l [Given] {
    logs.get(leg.from.host).map_or(&[], |host| &host[leg.from.link].given)
}

fn come<'l>(logs: &[&'l LinkLogs], leg: &FlowLeg) -> &'l [Come] {
    logs.get(leg.to.host).map_or(&[], |host| &host[leg.to.link].come)
}

/// Returns for each message of a link its place among those that its server did not drop.
fn ranks(given: &[Given]) -> Vec<Option<usize>> {
    let mut next = 0..;
    given.iter().map(|given| if given.is_lost { None } else { next.next() }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::ears::LinkLog;
    use super::*;
    use diapason_plan::LinkEnd;

    const THERE: FlowLeg =
        FlowLeg { from: LinkEnd { host: 0, link: 0 }, to: LinkEnd { host: 1, link: 2 } };
    const BACK: FlowLeg = FlowLeg { from: THERE.to, to: THERE.from };

    fn sent(asked: u64, taken: u64, is_passed_on: bool, is_lost: bool) -> Given {
        Given::new(Nanos(asked), Some(Nanos(taken)), is_passed_on, is_lost)
    }

    fn came(told: u64, then: u64, onward: Onward) -> Come {
        Come { told: Nanos(told), bytes: 8, then: Some((Nanos(then), onward)) }
    }

    fn logs(here: LinkLog, there: LinkLog) -> [LinkLogs; 2] {
        let mut logs = [LinkLogs::default(), LinkLogs::default()];
        (logs[0][0], logs[1][2]) = (here, there);
        logs
    }

    /// Two messages there and back; one that is lost before the second, and one that another
    /// program sends back to nobody.
    #[test]
    fn messages_are_found_again_at_every_link() {
        let given =
            vec![sent(10, 12, false, false), sent(20, 21, false, true), sent(30, 33, false, false)];
        let here = LinkLog::of(given, vec![came(19, 20, Onward::Back), came(50, 52, Onward::Back)]);
        let given = vec![sent(15, 16, true, false), sent(38, 41, true, false)];
        let there = LinkLog::of(
            given,
            vec![came(14, 15, Onward::Over(2, 0)), came(36, 38, Onward::Over(2, 1))],
        );
        let logs = logs(here, there);
        let logs: Vec<&LinkLogs> = logs.iter().collect();
        let seen = FlowSeen::of(&[THERE, BACK], &logs, Some(1));
        assert_eq!(seen.messages, 2);
        let times =
            |life: &FlowLife| -> Vec<u64> { life.stages().map(|stage| stage.within.0).collect() };
        let worst = seen.worst.unwrap();
        assert_eq!(
            (worst.number, worst.latency(), times(&worst)),
            (2, Nanos(22), vec![3, 3, 2, 3, 9, 2])
        );
        let this = seen.this.unwrap();
        assert_eq!((this.number, times(&this)), (1, vec![2, 2, 1, 1, 3, 1]));
        let by_end: Vec<u64> = seen.stages.iter().map(|stage| stage.by_end.0).collect();
        assert_eq!(by_end, [3, 6, 8, 11, 20, 22]);
    }

    #[test]
    fn what_contradicts_the_order_is_not_followed() {
        let here = |given| LinkLog::of(given, Vec::new());
        let there = |come| LinkLog::of(Vec::new(), come);
        let whole = [sent(10, 12, false, false), sent(20, 22, false, false)];
        let early = vec![came(14, 15, Onward::Back), came(21, 22, Onward::Back)];
        let seen = |come| {
            let logs = logs(here(whole.to_vec()), there(come));
            FlowSeen::of(&[THERE], &[&logs[0], &logs[1]], None).messages
        };
        assert_eq!(seen(early), 1);
        let other = Come { bytes: 9, ..came(24, 25, Onward::Back) };
        assert_eq!(seen(vec![other]), 0);
        // One that goes on to a third host is of another flow.
        assert_eq!(seen(vec![came(14, 15, Onward::Over(1, 0)), came(24, 25, Onward::Back)]), 1);
        assert_eq!(FlowSeen::of(&[], &[], None), FlowSeen::default());
    }
}
