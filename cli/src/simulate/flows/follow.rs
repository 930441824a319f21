//! Messages of a flow, found again at every link that they pass.
//!
//! A message comes out of a cable with the content with which it was given. A program passes a
//! message on where it is, so its place finds it again. So every message that was sent is
//! delivered, or lost at a known place, or still under way.

use super::ears::{Come, Given, LinkLogs, Onward};
use diapason_abi::Nanos;
use diapason_plan::FlowLeg;
use std::collections::{BTreeMap, HashMap, VecDeque};

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
    /// Where all its messages are, if no other flow begins at the same link.
    pub books: Option<FlowBooks>,
}

/// Every message of a flow: sent = delivered + lost + under way.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FlowBooks {
    pub sent: u64,
    pub delivered: u64,
    /// Messages that are lost, by the place at which they were last.
    pub lost: BTreeMap<LostAt, u64>,
    /// Messages that have not come to the end, and behind which nothing came.
    pub under_way: u64,
    /// Messages that came on its way and are none that was sent: pieces, or a second time.
    pub strange: u64,
}

/// Where a message is lost, with the number of its cable on the way of the flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LostAt {
    /// The server that was to send it dropped it.
    Server(usize),
    /// It was sent, and never came.
    Cable(usize),
    /// The program that it came to did not pass it on.
    Program(usize),
}

impl FlowSeen {
    /// Follows the messages of a flow over the links of its legs. `logs` has those of every host,
    /// and `wanted` is the number of a message that is to be kept. Only if the flow is `alone` at
    /// its first link it is known which messages are its own before they come to the end.
    #[must_use]
    pub fn of(legs: &[FlowLeg], logs: &[&LinkLogs], wanted: Option<u64>, alone: bool) -> FlowSeen {
        let mut seen = FlowSeen::default();
        let Some(first) = legs.first() else { return seen };
        let crossed: Vec<Crossed> =
            legs.iter().map(|leg| Crossed::of(given(logs, leg), come(logs, leg))).collect();
        let strange = crossed.iter().map(|cable| cable.strange).sum();
        let mut books = FlowBooks { strange, ..FlowBooks::default() };
        for (place, message) in given(logs, first).iter().enumerate() {
            if message.is_passed_on {
                continue;
            }
            books.sent += 1;
            match fate(legs, logs, &crossed, place) {
                Fate::Delivered(ends) => {
                    books.delivered += 1;
                    let life = FlowLife { number: books.delivered, from: message.asked, ends };
                    if wanted == Some(life.number) {
                        seen.this = Some(life.clone());
                    }
                    seen.note(life);
                }
                Fate::Lost(at) => *books.lost.entry(at).or_default() += 1,
                Fate::UnderWay => books.under_way += 1,
            }
        }
        seen.books = alone.then_some(books);
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

/// The fate of a message of a flow.
enum Fate {
    /// It came to the end. The ends of its stages.
    Delivered(Vec<Nanos>),
    Lost(LostAt),
    /// It waits, or nobody can know yet.
    UnderWay,
}

fn fate(legs: &[FlowLeg], logs: &[&LinkLogs], crossed: &[Crossed], first: usize) -> Fate {
    let (mut place, mut ends) = (first, Vec::with_capacity(STAGES * legs.len()));
    for (number, (leg, cable)) in legs.iter().zip(crossed).enumerate() {
        let Some(sent) = given(logs, leg).get(place) else { return Fate::UnderWay };
        let arrived = cable.came[place].and_then(|rank| come(logs, leg).get(rank));
        let (Some(taken), Some(arrived)) = (sent.taken, arrived) else {
            return match () {
                () if sent.is_lost => Fate::Lost(LostAt::Server(number)),
                () if cable.last.is_some_and(|last| place < last) => {
                    Fate::Lost(LostAt::Cable(number))
                }
                () => Fate::UnderWay,
            };
        };
        let Some((then, onward)) = arrived.then else { return Fate::UnderWay };
        ends.extend([taken, arrived.told, then]);
        match (onward, legs.get(number + 1)) {
            (Onward::Back, None) => return Fate::Delivered(ends),
            (Onward::Over(link, message), Some(next)) if link == next.from.link => place = message,
            _ => return Fate::Lost(LostAt::Program(number)),
        }
    }
    Fate::UnderWay
}

fn given<'l>(logs: &[&'l LinkLogs], leg: &FlowLeg) -> &'l [Given] {
    logs.get(leg.from.host).map_or(&[], |host| &host[leg.from.link].given)
}

fn come<'l>(logs: &[&'l LinkLogs], leg: &FlowLeg) -> &'l [Come] {
    logs.get(leg.to.host).map_or(&[], |host| &host[leg.to.link].come)
}

/// The messages of one direction of a cable.
struct Crossed {
    /// For each that was given, its place among those that came.
    came: Vec<Option<usize>>,
    /// The last of those given that came.
    last: Option<usize>,
    /// Messages that came and were not given.
    strange: u64,
}

impl Crossed {
    /// Finds messages again by their content. Of equal ones, the first that was given came first.
    fn of(given: &[Given], come: &[Come]) -> Crossed {
        let mut waiting: HashMap<(u64, u32), VecDeque<usize>> = HashMap::new();
        for (place, message) in given.iter().enumerate() {
            waiting.entry((message.content, message.bytes)).or_default().push_back(place);
        }
        let mut crossed = Crossed { came: vec![None; given.len()], last: None, strange: 0 };
        for (rank, message) in come.iter().enumerate() {
            let equal = waiting.get_mut(&(message.content, message.bytes));
            let is_taken =
                |place: &mut usize| given[*place].taken.is_some_and(|taken| taken <= message.told);
            match equal.and_then(|equal| equal.pop_front_if(is_taken)) {
                Some(place) => {
                    crossed.came[place] = Some(rank);
                    crossed.last = crossed.last.max(Some(place));
                }
                None => crossed.strange += 1,
            }
        }
        crossed
    }
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

    /// Content is the time at which a message was given.
    fn came(content: u64, told: u64, then: u64, onward: Onward) -> Come {
        Come { told: Nanos(told), bytes: 8, content, then: Some((Nanos(then), onward)) }
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
        let here = LinkLog::of(
            given,
            vec![came(15, 19, 20, Onward::Back), came(38, 50, 52, Onward::Back)],
        );
        let given = vec![sent(15, 16, true, false), sent(38, 41, true, false)];
        let there = LinkLog::of(
            given,
            vec![came(10, 14, 15, Onward::Over(2, 0)), came(30, 36, 38, Onward::Over(2, 1))],
        );
        let logs = logs(here, there);
        let logs: Vec<&LinkLogs> = logs.iter().collect();
        let seen = FlowSeen::of(&[THERE, BACK], &logs, Some(1), true);
        assert_eq!(seen.messages, 2);
        let books = seen.books.unwrap();
        assert_eq!((books.sent, books.delivered, books.under_way, books.strange), (3, 2, 0, 0));
        assert_eq!(books.lost, BTreeMap::from([(LostAt::Server(0), 1)]));
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
    fn every_message_is_delivered_lost_somewhere_or_under_way() {
        let given: Vec<Given> =
            (1..=6).map(|at| sent(10 * at, 10 * at + 1, false, at == 2)).collect();
        let back = |content| came(content, content + 5, content + 6, Onward::Back);
        let piece = Come { bytes: 3, ..back(40) };
        let elsewhere = came(50, 55, 56, Onward::Over(1, 0));
        // The first is lost in the cable, the second by its server, the fourth comes in pieces, the
        // third twice, the fifth goes to nobody, and the sixth is still under way.
        let come = vec![back(30), back(30), piece, elsewhere];
        let logs = logs(LinkLog::of(given, Vec::new()), LinkLog::of(Vec::new(), come));
        let seen = FlowSeen::of(&[THERE], &[&logs[0], &logs[1]], None, true);
        let books = seen.books.unwrap();
        let lost = [(LostAt::Server(0), 1), (LostAt::Cable(0), 2), (LostAt::Program(0), 1)];
        assert_eq!(books.lost, BTreeMap::from(lost));
        assert_eq!((books.sent, books.delivered, books.under_way, books.strange), (6, 1, 1, 2));
    }

    #[test]
    fn what_comes_before_it_is_sent_is_another_message() {
        let whole = [sent(10, 12, false, false), sent(20, 22, false, false)];
        let seen = |come| {
            let logs = logs(LinkLog::of(whole.to_vec(), Vec::new()), LinkLog::of(Vec::new(), come));
            FlowSeen::of(&[THERE], &[&logs[0], &logs[1]], None, false)
        };
        let early = seen(vec![came(10, 14, 15, Onward::Back), came(20, 21, 22, Onward::Back)]);
        assert_eq!((early.messages, early.books), (1, None));
        assert_eq!(FlowSeen::of(&[], &[], None, true), FlowSeen::default());
    }
}
