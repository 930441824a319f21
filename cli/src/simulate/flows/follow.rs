//! Messages of a flow, found again at every link that they pass.
//!
//! A message comes out of a cable with the content with which it was given. A program passes a
//! message on where it is, so its place finds it again. So every message that was sent is
//! delivered, or lost at a known place, or still under way.

use super::ears::{Come, Given, LinkLogs, Onward};
use super::mailboxes::{BoxFate, Put};
use diapason_abi::Nanos;
use diapason_plan::{FlowLeg, FlowLegs};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;

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
    /// Messages that went another way, and the longest that one took. Their stages are not those of
    /// the flow.
    pub turned: (u64, Nanos),
    /// Where all its messages are, if that is known: no other flow begins at the same link, or it
    /// begins at a mailbox.
    pub books: Option<FlowBooks>,
}

/// Every message of a flow: sent = delivered + late + lost + under way.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FlowBooks {
    pub sent: u64,
    pub delivered: u64,
    /// Messages that a cable with another way kept for too long. Programs throw them away.
    pub late: u64,
    /// Messages that are lost, by the place at which they were last.
    pub lost: BTreeMap<LostAt, u64>,
    /// Messages that have not come to the end, and that began within the bound of the flow before
    /// the end of the run.
    pub under_way: u64,
    /// Messages that came on its way and are none that was sent: pieces, or a second time.
    pub strange: u64,
}

/// Where a message is lost, with the number of its cable on the way of the flow; behind these come
/// the cables of its other ways.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LostAt {
    /// The server that was to send it dropped it.
    Server(usize),
    /// It was sent, and never came.
    Cable(usize),
    /// The program that it came to did not pass it on.
    Program(usize),
    /// It is lost at a mailbox of a flow from mailbox to mailbox.
    Mail(LostMail),
}

/// Where a message of a mailbox is lost beside its cables. A flow has one name for each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LostMail {
    /// The first mailbox was full.
    Full,
    /// It stayed in the first mailbox, or its host lost its power before a link had it.
    Box,
    /// The first router had no memory for it.
    Dropped,
    /// The first router took it, and gave it to no link.
    Router,
    /// The last mailbox was full.
    FarFull,
    /// It stayed in the last mailbox, or its host lost its power before its program took it.
    FarBox,
}

impl FlowSeen {
    /// Follows the messages of a flow over the links of its legs. `logs` has those of every host,
    /// and `wanted` is the number of a message that is to be kept. Only if the flow is `alone` at
    /// its first links it is known which messages are its own before they come to the end.
    #[must_use]
    pub fn of(legs: &Legs, logs: &[&LinkLogs], wanted: Option<u64>, alone: bool) -> FlowSeen {
        let mut seen = FlowSeen::default();
        let net = Net::of(legs, logs);
        let strange = net.crossed.iter().map(|cable| cable.strange).sum();
        let mut books = FlowBooks { strange, ..FlowBooks::default() };
        let overdue = ended(logs) - legs.bound;
        for Begun { from, how } in net.begun() {
            let fate = match how {
                Beginning::Ended(fate) => fate,
                Beginning::Given(first) => match net.fate(first) {
                    Fate::Delivered { ends, turned, put } => {
                        let number = seen.messages + seen.turned.0 + 1;
                        let life = FlowLife { number, from, ends };
                        if turned {
                            let (count, longest) = seen.turned;
                            seen.turned = (count + 1, longest.max(life.latency()));
                        } else {
                            seen.note(life, wanted);
                        }
                        net.at_end(put)
                    }
                    Fate::Short(fate) => fate,
                },
            };
            books.note(match fate {
                // By the plan it would have come: it stays where it is.
                Ending::UnderWay(at) if from < overdue => Ending::Lost(at),
                fate => fate,
            });
        }
        let is_known = match legs.mail {
            Some(_) => logs.iter().all(|log| !log.is_cut),
            None => alone,
        };
        seen.books = (is_known && !net.hops.is_empty()).then_some(books);
        seen
    }

    fn note(&mut self, life: FlowLife, wanted: Option<u64>) {
        if wanted == Some(life.number) {
            self.this = Some(life.clone());
        }
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

impl FlowBooks {
    fn note(&mut self, fate: Ending) {
        self.sent += 1;
        match fate {
            Ending::Delivered => self.delivered += 1,
            Ending::Late => self.late += 1,
            Ending::Lost(at) => *self.lost.entry(at).or_default() += 1,
            Ending::UnderWay(_) => self.under_way += 1,
        }
    }
}

/// The cables of a flow.
#[derive(Clone, Debug)]
pub struct Legs {
    pub all: FlowLegs,
    /// The flow goes from mailbox to mailbox: the number of its first host, that of its last one,
    /// and its own in the list.
    pub mail: Option<([usize; 2], u32)>,
    /// For each cable of its own way that has another way: a message that it keeps for longer is
    /// late.
    pub patience: Vec<Option<Nanos>>,
    /// The longest that a message takes by the plan, whatever way it goes.
    pub bound: Nanos,
}

/// The fate of a message of a flow on its cables.
enum Fate {
    /// It came to the last program. The ends of its stages, whether it went another way, and what
    /// the program put into a mailbox for it.
    Delivered { ends: Vec<Nanos>, turned: bool, put: Option<Put> },
    /// It ended before that.
    Short(Ending),
}

/// The column of the books that counts a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    Delivered,
    /// A cable with another way kept it for too long.
    Late,
    Lost(LostAt),
    /// It was here last, and may go on.
    UnderWay(LostAt),
}

/// A message of the first program.
struct Begun {
    /// When it was given to a link; of one that no link had, when it was sent to its mailbox.
    from: Nanos,
    how: Beginning,
}

/// How far a message came before its first cable.
enum Beginning {
    /// The link that it was given to, and the number of the message there.
    Given((usize, usize)),
    /// No link had it.
    Ended(Ending),
}

/// Returns when the run ended: when the first of the hosts ended that ran to the end. Two clocks
/// run apart by 200 ppm at most, and 250 are counted. A host that ended before that stopped by
/// itself, and its messages go nowhere.
fn ended(logs: &[&LinkLogs]) -> Nanos {
    let ends = || logs.iter().map(|log| log.ended);
    let last = ends().max().unwrap_or_default();
    let least = last - Nanos(last.0 / 4_000);
    ends().filter(|end| *end >= least).min().unwrap_or_default()
}

/// The ways of a flow with everything that passed them.
struct Net<'l> {
    logs: &'l [&'l LinkLogs],
    /// The cables of its own way, then those of the other ways.
    legs: Vec<FlowLeg>,
    /// The messages of each cable.
    crossed: Vec<Crossed>,
    /// For each hop, the cables of each way to go it, the flow's own way first.
    hops: Vec<Vec<Range<usize>>>,
    patience: &'l [Option<Nanos>],
    mail: Option<([usize; 2], u32)>,
}

impl<'l> Net<'l> {
    fn of(Legs { all, patience, mail, .. }: &'l Legs, logs: &'l [&'l LinkLogs]) -> Net<'l> {
        let mut legs = all.own.clone();
        let mut hops: Vec<Vec<Range<usize>>> =
            (0..legs.len()).map(|at| std::iter::once(at..at + 1).collect()).collect();
        for (hop, other) in &all.others {
            hops[*hop].push(legs.len()..legs.len() + other.len());
            legs.extend(other);
        }
        let crossed = |leg: &FlowLeg| Crossed::of(given(logs, leg), come(logs, leg));
        let crossed = legs.iter().map(crossed).collect();
        Net { logs, legs, crossed, hops, patience, mail: *mail }
    }

    /// Returns the messages that the first program gave to any of its links, in their order; of a
    /// flow from mailbox to mailbox those that it sent to the mailbox.
    fn begun(&self) -> Vec<Begun> {
        if let Some(([first, _], flow)) = self.mail {
            let log = self.logs.get(first);
            return log.into_iter().flat_map(|log| self.posted(log, flow)).collect();
        }
        let starts = self.hops.first().into_iter().flatten().map(|way| &self.legs[way.start]);
        let mut begun: Vec<(Nanos, (usize, usize))> = starts
            .flat_map(|leg| {
                let own =
                    given(self.logs, leg).iter().enumerate().filter(|(_, it)| !it.is_passed_on);
                own.map(|(place, it)| (it.asked, (leg.from.link, place)))
            })
            .collect();
        begun.sort_by_key(|(asked, _)| *asked);
        let given = |(from, first)| Begun { from, how: Beginning::Given(first) };
        begun.into_iter().map(given).collect()
    }

    /// Returns the messages that a program sent to the mailbox at the beginning of a flow.
    fn posted<'a>(&self, log: &'a LinkLogs, flow: u32) -> impl Iterator<Item = Begun> + use<'a> {
        log.boxes.begun(flow).map(|(from, fate)| {
            let stays = |at| Ending::UnderWay(LostAt::Mail(at));
            let lost = |at| Ending::Lost(LostAt::Mail(at));
            let ending = match fate {
                BoxFate::Given(link, number) => {
                    let from = log.links[link].given[number].asked;
                    return Begun { from, how: Beginning::Given((link, number)) };
                }
                BoxFate::Waits => stays(LostMail::Box),
                // The router has it, and may give it on.
                BoxFate::Taken => stays(LostMail::Router),
                BoxFate::Full => lost(LostMail::Full),
                BoxFate::Dropped => lost(LostMail::Dropped),
                BoxFate::Gone => lost(LostMail::Box),
            };
            Begun { from, how: Beginning::Ended(ending) }
        })
    }

    /// Returns the end of a message that came to the last program of the cables.
    fn at_end(&self, put: Option<Put>) -> Ending {
        let Some(([_, last], _)) = self.mail else { return Ending::Delivered };
        let fate = self.logs.get(last).zip(put).and_then(|(log, put)| log.boxes.fate(put));
        match fate {
            Some(BoxFate::Waits) => Ending::UnderWay(LostAt::Mail(LostMail::FarBox)),
            Some(BoxFate::Taken) => Ending::Delivered,
            Some(BoxFate::Full) => Ending::Lost(LostAt::Mail(LostMail::FarFull)),
            Some(BoxFate::Gone) => Ending::Lost(LostAt::Mail(LostMail::FarBox)),
            // The server put nothing into the mailbox for it.
            _ => Ending::Lost(LostAt::Program(self.hops.len().saturating_sub(1))),
        }
    }

    /// Follows a message from the link to which it was given first.
    fn fate(&self, first: (usize, usize)) -> Fate {
        let (mut at, mut ends, mut turned) =
            (first, Vec::with_capacity(STAGES * self.hops.len()), false);
        let lost = |at| Fate::Short(Ending::Lost(LostAt::Program(at)));
        let mut last = 0;
        for (number, ways) in self.hops.iter().enumerate() {
            let Some(way) = ways.iter().find(|way| self.legs[way.start].from.link == at.0) else {
                return lost(last);
            };
            turned |= *way != (number..number + 1);
            for leg in way.clone() {
                if self.legs[leg].from.link != at.0 {
                    return lost(last);
                }
                let onward = match self.cross(leg, at.1) {
                    Ok((more, onward)) => {
                        ends.extend(more);
                        onward
                    }
                    Err(fate) => return Fate::Short(fate),
                };
                last = leg;
                at = match onward {
                    Onward::Over(link, message) => (link, message),
                    Onward::Back if number + 1 == self.hops.len() && leg + 1 == way.end => {
                        let put = self.arrived(leg, at.1).and_then(|come| come.put);
                        return Fate::Delivered { ends, turned, put };
                    }
                    _ => return lost(leg),
                };
            }
        }
        // Its last program gave it on.
        lost(last)
    }

    /// Follows a message over one cable: the ends of its stages there, and the deed of the program
    /// behind.
    fn cross(&self, leg: usize, place: usize) -> Result<([Nanos; STAGES], Onward), Ending> {
        let cable = &self.crossed[leg];
        let waits = Ending::UnderWay(LostAt::Server(leg));
        let sent = given(self.logs, &self.legs[leg]).get(place).ok_or(waits)?;
        let (Some(taken), Some(arrived)) = (sent.taken, self.arrived(leg, place)) else {
            let is_overtaken = cable.last.is_some_and(|last| place < last);
            return Err(match () {
                () if sent.is_lost => Ending::Lost(LostAt::Server(leg)),
                () if is_overtaken => Ending::Lost(LostAt::Cable(leg)),
                () if sent.taken.is_none() => waits,
                () => Ending::UnderWay(LostAt::Cable(leg)),
            });
        };
        let patience = self.patience.get(leg).copied().flatten();
        if patience.is_some_and(|patience| arrived.told - sent.asked > patience) {
            return Err(Ending::Late);
        }
        let (then, onward) = arrived.then.ok_or(Ending::UnderWay(LostAt::Program(leg)))?;
        Ok(([taken, arrived.told, then], onward))
    }

    /// Returns what came over a cable of the message with this number there.
    fn arrived(&self, leg: usize, place: usize) -> Option<&Come> {
        let rank = (*self.crossed[leg].came.get(place)?)?;
        come(self.logs, &self.legs[leg]).get(rank)
    }
}

fn given<'l>(logs: &[&'l LinkLogs], leg: &FlowLeg) -> &'l [Given] {
    logs.get(leg.from.host).map_or(&[], |host| &host.links[leg.from.link].given)
}

fn come<'l>(logs: &[&'l LinkLogs], leg: &FlowLeg) -> &'l [Come] {
    logs.get(leg.to.host).map_or(&[], |host| &host.links[leg.to.link].come)
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

    fn own(legs: &[FlowLeg]) -> Legs {
        let all = FlowLegs { own: legs.to_vec(), others: Vec::new() };
        Legs { all, mail: None, patience: Vec::new(), bound: Nanos(100) }
    }

    fn sent(asked: u64, taken: u64, is_passed_on: bool, is_lost: bool) -> Given {
        Given::new(Nanos(asked), Some(Nanos(taken)), is_passed_on, is_lost)
    }

    /// Content is the time at which a message was given.
    fn came(content: u64, told: u64, then: u64, onward: Onward) -> Come {
        Come { told: Nanos(told), bytes: 8, content, then: Some((Nanos(then), onward)), put: None }
    }

    fn logs(here: LinkLog, there: LinkLog) -> [LinkLogs; 2] {
        let mut logs = [LinkLogs::default(), LinkLogs::default()];
        (logs[0].links[0], logs[1].links[2]) = (here, there);
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
        let seen = FlowSeen::of(&own(&[THERE, BACK]), &logs, Some(1), true);
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
        let seen = FlowSeen::of(&own(&[THERE]), &[&logs[0], &logs[1]], None, true);
        let books = seen.books.unwrap();
        let lost = [(LostAt::Server(0), 1), (LostAt::Cable(0), 2), (LostAt::Program(0), 1)];
        assert_eq!(books.lost, BTreeMap::from(lost));
        assert_eq!((books.sent, books.delivered, books.under_way, books.strange), (6, 1, 1, 2));
    }

    /// A program has the first message, the second is in the cable, and the server has the third.
    /// They count as lost there when they are older than the bound of 100 ns at the end of the run.
    #[test]
    fn what_stays_for_longer_than_the_bound_is_lost() {
        let mut given = [10, 20, 30].map(|asked| sent(asked, asked + 2, false, false)).to_vec();
        given[2].taken = None;
        let come = vec![Come { then: None, ..came(10, 15, 0, Onward::Nothing) }];
        let seen = |ends: [u64; 2]| {
            let mut logs =
                logs(LinkLog::of(given.clone(), Vec::new()), LinkLog::of(Vec::new(), come.clone()));
            logs.iter_mut().zip(ends).for_each(|(log, end)| log.ended = Nanos(end));
            let books = FlowSeen::of(&own(&[THERE]), &[&logs[0], &logs[1]], None, true).books;
            let FlowBooks { sent, lost, under_way, .. } = books.unwrap();
            assert_eq!(sent, 3);
            (lost.into_iter().collect::<Vec<_>>(), under_way)
        };
        let [program, cable, server] =
            [LostAt::Program(0), LostAt::Cable(0), LostAt::Server(0)].map(|at| (at, 1));
        assert_eq!(seen([110, 110]), (vec![], 3));
        assert_eq!(seen([121, 121]), (vec![cable, program], 1), "the third is 91 ns old");
        assert_eq!(seen([131, 131]), (vec![server, cable, program], 0));
        assert_eq!(seen([131, 60]).1, 0, "a host that stopped does not stop the clock");
        let books = |from: u64| {
            let given = vec![sent(from, from + 2, false, false)];
            let mut logs = logs(LinkLog::of(given, Vec::new()), LinkLog::default());
            (logs[0].ended, logs[1].ended) = (Nanos(1_000_000), Nanos(999_900));
            FlowSeen::of(&own(&[THERE]), &[&logs[0], &logs[1]], None, true).books.unwrap()
        };
        assert_eq!(books(999_850).under_way, 1, "the other clock is 100 ns behind");
    }

    #[test]
    fn what_comes_before_it_is_sent_is_another_message() {
        let whole = [sent(10, 12, false, false), sent(20, 22, false, false)];
        let seen = |come| {
            let logs = logs(LinkLog::of(whole.to_vec(), Vec::new()), LinkLog::of(Vec::new(), come));
            FlowSeen::of(&own(&[THERE]), &[&logs[0], &logs[1]], None, false)
        };
        let early = seen(vec![came(10, 14, 15, Onward::Back), came(20, 21, 22, Onward::Back)]);
        assert_eq!((early.messages, early.books), (1, None));
        assert_eq!(FlowSeen::of(&own(&[]), &[], None, true), FlowSeen::default());
    }

    /// The first message goes straight and the second by a third host. The third is lost there, and
    /// the straight cable kept the fourth.
    #[test]
    fn messages_that_go_another_way_are_found_there() {
        let end = |host, link| LinkEnd { host, link };
        let straight = FlowLeg { from: end(0, 0), to: end(1, 0) };
        let to_third = FlowLeg { from: end(0, 1), to: end(2, 0) };
        let from_third = FlowLeg { from: end(2, 1), to: end(1, 1) };
        let all = FlowLegs { own: vec![straight], others: vec![(0, vec![to_third, from_third])] };
        let patience = vec![Some(Nanos(6))];
        let legs = Legs { all, mail: None, patience, bound: Nanos(100) };
        let mut all = [LinkLogs::default(), LinkLogs::default(), LinkLogs::default()];
        let given = vec![sent(10, 11, false, false), sent(18, 19, false, false)];
        all[0].links[0] = LinkLog::of(given, Vec::new());
        let arrived = vec![came(10, 14, 15, Onward::Back), came(18, 25, 26, Onward::Back)];
        all[1].links[0] = LinkLog::of(Vec::new(), arrived);
        let given = vec![sent(20, 21, false, false), sent(30, 31, false, false)];
        all[0].links[1] = LinkLog::of(given, Vec::new());
        let passed = came(20, 24, 25, Onward::Over(1, 0));
        all[2].links[0] = LinkLog::of(Vec::new(), vec![passed, came(30, 34, 35, Onward::Back)]);
        all[2].links[1] = LinkLog::of(vec![sent(25, 26, true, false)], Vec::new());
        all[1].links[1] = LinkLog::of(Vec::new(), vec![came(25, 28, 29, Onward::Back)]);
        let logs: Vec<&LinkLogs> = all.iter().collect();
        let seen = FlowSeen::of(&legs, &logs, None, true);
        assert_eq!((seen.messages, seen.turned), (1, (1, Nanos(9))));
        let books = seen.books.unwrap();
        assert_eq!((books.sent, books.delivered, books.under_way, books.strange), (4, 2, 0, 0));
        assert_eq!(books.late, 1);
        // At the third host, behind the first cable of the other way.
        assert_eq!(books.lost, BTreeMap::from([(LostAt::Program(1), 1)]));
    }
}
