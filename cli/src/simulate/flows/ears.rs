//! The events at the links of one host: what programs give to them, and what comes.
//!
//! A link has a ring of asks and a ring of answers. Their counts are watched, and the records
//! between the old count and the new one are read from the ring itself.

use super::mailboxes::{BoxEars, BoxLogs, Put};
use crate::simulate::messages::digest;
use diapason_abi::Nanos;
use diapason_abi::recorder::Entry;
use diapason_contract::link::{
    Ask, DATA, DONE, Done, FILL, LINKS, MESSAGE_MAX, NAMES, RECORDS, SEND, UNIT,
};
use diapason_contract::mail::MailHead;
use diapason_core::ThreadId;
use diapason_devices::faulty::OwnClock;
use diapason_sim::{Glance, Observer, Said, SegmentReader, Watched};
use diapason_system::System;
use std::collections::{BTreeMap, VecDeque};

/// Where a ring has its counts, and its first record.
const WRITTEN: usize = 0;
const TAKEN: usize = 64;
const FIRST: usize = 128;
/// Words of each link that are watched: asks written and taken, answers written.
const WORDS: usize = 3;
/// Most messages of a link in each direction that are kept. Later ones are not followed.
const MESSAGES_MAX: usize = 1 << 20;

/// A message that a program gave to a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Given {
    pub asked: Nanos,
    /// When its server took it; none while it waits.
    pub taken: Option<Nanos>,
    pub bytes: u32,
    /// It came to its program over a link.
    pub is_passed_on: bool,
    /// Its server dropped it.
    pub is_lost: bool,
    /// A number that messages of other content do not have.
    pub content: u64,
    /// The number of its flow. It means something only if its program is a server of mailboxes.
    pub flow: Option<u32>,
    place: u32,
}

/// A message that came over a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Come {
    /// When its server told the program.
    pub told: Nanos,
    pub bytes: u32,
    /// A number that messages of other content do not have.
    pub content: u64,
    /// When the program was done with it, and its deed.
    pub then: Option<(Nanos, Onward)>,
    /// The message that its program put into a mailbox for it.
    pub put: Option<Put>,
}

/// The deed of a program with a message that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Onward {
    /// It gave the memory back.
    Back,
    /// It gave the message to a link: the link's number, and that of the message there.
    Over(usize, usize),
    /// Nothing: its host lost its power.
    Nothing,
}

/// Everything that passed one link.
#[derive(Clone, Default, Debug)]
pub struct LinkLog {
    /// Messages given to it, in their order.
    pub given: Vec<Given>,
    /// Messages that came, in their order.
    pub come: Vec<Come>,
    /// Asks that the server has not taken; those of messages with their numbers.
    waiting: VecDeque<Option<usize>>,
    /// Messages that the server has, by their numbers.
    under_way: VecDeque<usize>,
}

/// The links of one host, and the mailboxes of its flows.
#[derive(Clone, Default, Debug)]
pub struct LinkLogs {
    pub links: [LinkLog; LINKS],
    pub boxes: BoxLogs,
    /// There were more messages than are followed.
    pub is_cut: bool,
    /// When the host ended.
    pub ended: Nanos,
}

/// An observer that hears what passes the links of its host.
#[derive(Debug)]
pub struct LinkEars {
    /// The segments of asks and of answers, by link.
    segments: [[u16; 2]; LINKS],
    /// The number of the first word among those that are watched; beyond all of them before it
    /// listens.
    first_word: usize,
    logs: [LinkLog; LINKS],
    boxes: BoxEars,
    is_cut: bool,
    ended: Nanos,
    /// By their places, messages that programs have: the link, and the number of the message.
    held: BTreeMap<u32, (usize, usize)>,
    /// The clock of the world, as the host sees it: times of several hosts are compared.
    world: OwnClock,
    /// The segment with the content of messages.
    data: u16,
    /// Messages whose content nobody has looked at.
    unread: Vec<Unread>,
}

/// A message whose content is to be read: its link and its number there, and where it is.
#[derive(Clone, Copy, Debug)]
struct Unread {
    link: usize,
    number: usize,
    is_given: bool,
    place: u32,
    bytes: u32,
}

impl LinkEars {
    /// Returns the ears of a host; links that it does not have are silent.
    #[must_use]
    pub fn of(system: &System, world: OwnClock) -> LinkEars {
        let numbered = |name: &str| {
            let place = system.segments.iter().position(|segment| segment.name == name);
            place.and_then(|place| u16::try_from(place).ok()).unwrap_or(u16::MAX)
        };
        let segments = NAMES.map(|[asks, done, _]| [numbered(asks), numbered(done)]);
        let (data, boxes) = (numbered(DATA), BoxEars::of(system));
        LinkEars { world, data, boxes, ..LinkEars::new(segments) }
    }

    fn new(segments: [[u16; 2]; LINKS]) -> LinkEars {
        LinkEars {
            segments,
            first_word: usize::MAX,
            logs: Default::default(),
            boxes: BoxEars::default(),
            is_cut: false,
            ended: Nanos::ZERO,
            held: BTreeMap::new(),
            world: OwnClock::default(),
            data: u16::MAX,
            unread: Vec::new(),
        }
    }

    /// Returns all that was heard.
    #[must_use]
    pub fn into_logs(self) -> LinkLogs {
        let LinkEars { logs, boxes, is_cut, ended, .. } = self;
        LinkLogs { links: logs, boxes: boxes.logs, is_cut, ended }
    }

    /// Adds the words that it must be told of.
    pub fn listen(&mut self, watched: &mut Vec<Watched>) {
        self.first_word = watched.len();
        for [asks, done] in self.segments {
            let words = [(asks, WRITTEN), (asks, TAKEN), (done, WRITTEN)];
            watched.extend(words.map(|(segment, offset)| Watched { segment, offset }));
        }
    }

    /// A program asked something of a link.
    fn asked(&mut self, now: Nanos, link: usize, ask: &Ask) {
        let held = self.held.remove(&ask.place);
        let log = &mut self.logs[link];
        if ask.what == FILL {
            log.waiting.push_back(None);
            let put = self.boxes.take_put();
            self.end(held, now, Onward::Back, put);
            return;
        }
        if log.given.len() == MESSAGES_MAX {
            log.waiting.push_back(None);
            self.is_cut = true;
            return;
        }
        let number = log.given.len();
        log.waiting.push_back(Some(number));
        log.given.push(Given {
            asked: now,
            taken: None,
            bytes: ask.bytes,
            is_passed_on: held.is_some(),
            is_lost: false,
            content: 0,
            flow: None,
            place: ask.place,
        });
        let (place, bytes) = (ask.place, ask.bytes);
        self.unread.push(Unread { link, number, is_given: true, place, bytes });
        self.end(held, now, Onward::Over(link, number), None);
    }

    /// The host has power again: what its memory held is lost.
    fn forget(&mut self, now: Nanos) {
        for held in std::mem::take(&mut self.held).into_values() {
            self.end(Some(held), now, Onward::Nothing, None);
        }
        self.boxes.forget();
        for log in &mut self.logs {
            let (waiting, under_way) = (log.waiting.drain(..).flatten(), log.under_way.drain(..));
            waiting.chain(under_way).for_each(|number| log.given[number].is_lost = true);
        }
        self.unread.clear();
    }

    fn read(&mut self, unread: Unread, bytes: &[u8]) {
        let Unread { link, number, .. } = unread;
        let (log, content) = (&mut self.logs[link], digest(bytes));
        if !unread.is_given {
            log.come[number].content = content;
            return;
        }
        let flow = MailHead::flow_of(bytes);
        let given = &mut log.given[number];
        (given.content, given.flow) = (content, flow);
        if let Some(flow) = flow {
            self.boxes.given(flow, link, number);
        }
    }

    /// A program is done with a message that it held.
    fn end(&mut self, held: Option<(usize, usize)>, now: Nanos, onward: Onward, put: Option<Put>) {
        let Some((link, number)) = held else { return };
        if let Some(come) = self.logs[link].come.get_mut(number) {
            (come.then, come.put) = (Some((now, onward)), put);
        }
    }

    /// The server of a link told its client something.
    fn told(&mut self, now: Nanos, link: usize, done: &Done) {
        let log = &mut self.logs[link];
        match (done.what, done.status) {
            (FILL, DONE) if done.bytes > 0 && log.come.len() < MESSAGES_MAX => {
                self.held.insert(done.place, (link, log.come.len()));
                let (number, place, bytes) = (log.come.len(), done.place, done.bytes);
                log.come.push(Come { told: now, bytes, content: 0, then: None, put: None });
                self.unread.push(Unread { link, number, is_given: false, place, bytes });
            }
            (SEND, status) => {
                let given = &mut log.given;
                let is_it = |number: &usize| given[*number].place == done.place;
                if let Some(at) = log.under_way.iter().position(is_it)
                    && let Some(number) = log.under_way.remove(at)
                {
                    given[number].is_lost = status != DONE;
                }
            }
            _ => {}
        }
    }
}

impl Given {
    /// Returns a message of eight bytes that a program gave to a link.
    #[cfg(test)]
    pub fn new(asked: Nanos, taken: Option<Nanos>, is_passed_on: bool, is_lost: bool) -> Given {
        let (content, flow) = (asked.0, None);
        Given { asked, taken, bytes: 8, is_passed_on, is_lost, content, flow, place: 0 }
    }
}

impl LinkLog {
    /// Returns a link with these messages.
    #[cfg(test)]
    pub fn of(given: Vec<Given>, come: Vec<Come>) -> LinkLog {
        LinkLog { given, come, ..LinkLog::default() }
    }

    /// The server took so many asks.
    fn taken(&mut self, now: Nanos, count: u64) {
        for _ in 0..count {
            let Some(ask) = self.waiting.pop_front() else { return };
            if let Some(number) = ask {
                self.given[number].taken = Some(now);
                self.under_way.push_back(number);
            }
        }
    }
}

impl Observer for LinkEars {
    fn hear(&mut self, said: Said) {
        if let Said::Boots(now) = said {
            self.forget(self.world.own(now));
        }
    }

    fn entry(&mut self, entry: &Entry) {
        self.boxes.entry(entry);
    }

    fn look(&mut self, glance: &Glance<'_, '_>) {
        if self.first_word != usize::MAX {
            self.ended = self.world.own(glance.now);
            self.boxes.look(glance, self.ended);
        }
    }

    fn changed(
        &mut self,
        now: Nanos,
        _: ThreadId,
        word: usize,
        (was, is): (u64, u64),
        memory: &[u8],
    ) {
        let now = self.world.own(now);
        let Some(word) = word.checked_sub(self.first_word) else { return };
        let (link, word) = (word / WORDS, word % WORDS);
        // A count that went back, or by more than there is room for, is damage of the program's.
        let count = is.wrapping_sub(was);
        if link >= LINKS || count > RECORDS as u64 {
            return;
        }
        let records = (0..count).map(|more| was.wrapping_add(more));
        match word {
            0 => records.filter_map(|at| ask(memory, at)).for_each(|it| self.asked(now, link, &it)),
            1 => self.logs[link].taken(now, count),
            _ => records.filter_map(|at| done(memory, at)).for_each(|it| self.told(now, link, &it)),
        }
    }

    fn contents(&mut self, read: &mut SegmentReader<'_>) {
        for unread in std::mem::take(&mut self.unread) {
            if unread.bytes as usize > MESSAGE_MAX {
                continue;
            }
            let mut bytes = vec![0; unread.bytes as usize];
            // A place outside of the memory is a mistake of the program, and no message.
            if read(self.data, unread.place as usize * UNIT, &mut bytes) {
                self.read(unread, &bytes);
            }
        }
    }
}

/// Returns the bytes of a record in a ring.
fn record<const BYTES: usize>(memory: &[u8], at: u64) -> Option<[u8; BYTES]> {
    let place = FIRST + (at % RECORDS as u64) as usize * BYTES;
    memory.get(place..)?.first_chunk().copied()
}

fn number(record: &[u8], at: usize) -> Option<u32> {
    record.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn ask(memory: &[u8], at: u64) -> Option<Ask> {
    let record = record::<{ size_of::<Ask>() }>(memory, at)?;
    let [what, place, bytes, quiet] = [0, 4, 8, 12].map(|at| number(&record, at));
    Some(Ask { what: what?, place: place?, bytes: bytes?, quiet: quiet? })
}

fn done(memory: &[u8], at: u64) -> Option<Done> {
    let record = record::<{ size_of::<Done>() }>(memory, at)?;
    let taken = u64::from_le_bytes(*record.first_chunk()?);
    let [what, place, bytes, status] = [8, 12, 16, 20].map(|at| number(&record, at));
    Some(Done { taken, what: what?, place: place?, bytes: bytes?, status: status? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory of a ring after one more record.
    fn put(memory: &mut [u8], at: u64, words: &[u32]) {
        let place = FIRST + at as usize % RECORDS * 4 * words.len();
        for (offset, word) in (place..).step_by(4).zip(words) {
            memory[offset..offset + 4].copy_from_slice(&word.to_le_bytes());
        }
    }

    #[test]
    fn a_message_is_followed_through_a_program_by_its_place() {
        let mut ears = LinkEars::new([[0, 1]; LINKS]);
        ears.listen(&mut Vec::new());
        let (mut asks, mut answers) = (vec![0; 4096], vec![0; 4096]);
        let thread = ThreadId::new(0);
        let at = |ears: &mut LinkEars, now, word, change, memory: &[u8]| {
            ears.changed(Nanos(now), thread, word, change, memory);
        };
        // Link 0 lends place 7; a message of 40 bytes comes there and goes on over link 1.
        put(&mut asks, 0, &[FILL, 7, 64, 0]);
        at(&mut ears, 10, 0, (0, 1), &asks);
        at(&mut ears, 12, 1, (0, 1), &asks);
        put(&mut answers, 0, &[0, 0, FILL, 7, 40, DONE]);
        at(&mut ears, 20, 2, (0, 1), &answers);
        put(&mut asks, 0, &[SEND, 7, 40, 1]);
        at(&mut ears, 25, WORDS, (0, 1), &asks);
        at(&mut ears, 28, WORDS + 1, (0, 1), &asks);
        let then = Some((Nanos(25), Onward::Over(1, 0)));
        let come = Come { told: Nanos(20), bytes: 40, content: 0, then, put: None };
        assert_eq!(ears.logs[0].come, [come]);
        let given = ears.logs[1].given[0];
        assert!(given.is_passed_on && !given.is_lost);
        assert_eq!((given.asked, given.taken), (Nanos(25), Some(Nanos(28))));
        // Its server says that nobody took it.
        put(&mut answers, 0, &[0, 0, SEND, 7, 40, 1]);
        at(&mut ears, 30, WORDS + 2, (0, 1), &answers);
        assert!(ears.logs[1].given[0].is_lost);
    }

    #[test]
    fn rings_that_make_no_sense_are_no_events() {
        let mut ears = LinkEars::new([[0, 1]; LINKS]);
        ears.listen(&mut Vec::new());
        let mut random = diapason_random::Random::new(22);
        for _ in 0..5_000 {
            let mut memory = vec![0; random.below(3_000) as usize];
            for byte in &mut memory {
                *byte = random.below(3) as u8;
            }
            let (word, was) = (random.below(20) as usize, random.below(1 << 40));
            let change = (was, was.wrapping_add(random.below(200)).wrapping_sub(50));
            ears.changed(Nanos(1), ThreadId::new(0), word, change, &memory);
        }
        assert!(ears.logs.iter().any(|log| !log.given.is_empty() && !log.come.is_empty()));
    }
}
