//! A network device with pipes: the frames that come from it and go to it, judged by the contracts
//! of the pipes.

use crate::ground::{attach, detach, now};
use crate::machine::Machine;
use diapason_abi::Nanos;
use diapason_contract::carried::{CONTRACTS, Contract, Contracts};
use diapason_contract::network::{
    Ask, BACK, BEGIN, BEGUN, CAME, DONE, DROPPED, FROM, FrameNames, GONE, LEND, LOST_BEFORE,
    NONSENSE, News, OPENED, OUTSIDE, RECORDS, SEND, SINK, SLOTS, SOURCE, STATE, TO, UNDER_WAY,
};
use diapason_contract::settings::SERVES;
use diapason_contract::source::{MessageShape, SHAPES, SOURCES};
use diapason_contract::threads::ServiceKind;
use diapason_devices::network::{ADDRESS, Adapter, NUMBERED, TIME_AT};
use diapason_pipe::{Reader, Writer};
use diapason_random::Random;
use diapason_usbd::Platform as _;

const PORT: u8 = 1;
const PERIOD: Nanos = Nanos::from_millis(1);
/// The server drops frames for so long after the first slot was lent.
const SETTLING: Nanos = Nanos::from_millis(100);

/// A server with a pipe of a network device, and the ends of its reader or writer.
struct Piped {
    machine: Machine,
    end: End,
}

/// The objects of one direction.
struct End {
    asks: Writer<'static, Ask, RECORDS>,
    news: Reader<'static, News, RECORDS>,
}

impl End {
    fn of(machine: &Machine, names: &FrameNames) -> End {
        let asks = machine.ground.writer(names.asks).unwrap();
        End { asks, news: machine.ground.reader(names.news).unwrap() }
    }

    fn news(&mut self) -> Vec<News> {
        std::iter::from_fn(|| self.news.pop()).collect()
    }
}

/// Returns a server with pipes of frames of so many bytes in these directions, one in each
/// [`PERIOD`].
fn server(ways: &[u16], bytes: usize) -> Machine {
    let mut contracts = Contracts::default();
    let mut shapes = [0; SOURCES.len()];
    for way in ways {
        let (source, stamp) = if *way == SEND { (SINK, 0) } else { (SOURCE, TIME_AT) };
        let jitter = Nanos::ZERO;
        let contract = Contract { messages: 1, per: PERIOD, burst: 1, jitter };
        contracts.0[source.number()] = Some(contract);
        let place = SOURCES.iter().position(|other| *other == source).unwrap();
        shapes[place] = MessageShape { bytes, stamp: Some(stamp) }.word();
    }
    Machine::with(&[
        (SERVES, &[ServiceKind::Networks as u64]),
        (CONTRACTS, &contracts.words()),
        (SHAPES, &shapes),
    ])
}

impl Piped {
    /// Returns one with a pipe of frames of so many bytes, one in each [`PERIOD`], and a device.
    fn new(way: u16, bytes: usize, adapter: Adapter) -> Piped {
        let machine = server(&[way], bytes);
        let end = End::of(&machine, if way == SEND { &TO } else { &FROM });
        let mut piped = Piped { machine, end };
        attach(PORT, Box::new(adapter));
        piped.machine.run(Nanos::from_secs(1));
        assert!(piped.news().iter().any(|news| news.what == STATE), "no device at {:?}", now());
        piped
    }

    /// Returns one whose reader has lent all slots, with a device that sends a frame each `gap`.
    fn read(bytes: usize, gap: Nanos) -> Piped {
        let mut piped = Piped::new(LEND, bytes, Adapter::default().with_frames(gap));
        piped.begin();
        piped
    }

    /// Lends all slots, as a reader does that knows nothing of them.
    fn begin(&mut self) {
        self.end.asks.push(&Ask { slot: 0, what: BEGIN, bytes: 0, written: 0 }).unwrap();
        self.machine.ask();
        let last = self.news().pop().expect("an answer");
        assert_eq!(last.what, BEGUN);
    }

    fn lend(&mut self, slot: u32) {
        self.end.asks.push(&Ask { slot, what: LEND, bytes: 0, written: 0 }).unwrap();
    }

    fn send(&mut self, slot: u32, bytes: u16, written: Nanos) {
        self.end.asks.push(&Ask { slot, what: SEND, bytes, written: written.0 }).unwrap();
        self.machine.ask();
    }

    fn news(&mut self) -> Vec<News> {
        self.end.news()
    }

    /// Returns the news after so long. The slots of frames that came are lent again.
    fn after(&mut self, time: Nanos) -> Vec<News> {
        self.machine.run(time);
        let news = self.news();
        news.iter().filter(|news| news.what == CAME).for_each(|news| self.lend(news.slot));
        news
    }
}

/// Returns how many of these have a flag.
fn with(news: &[News], flag: u16) -> usize {
    news.iter().filter(|news| news.flags & flag != 0).count()
}

#[test]
fn frames_come_in_order_with_their_times_and_slots_that_nobody_told_of_are_used_again() {
    let mut piped = Piped::read(NUMBERED, PERIOD);
    assert_eq!(piped.after(SETTLING), [], "the device may have kept these");
    let mut last = None;
    // Three times as many as there are slots, and nobody asks.
    for _ in 0..3 * SLOTS {
        for news in piped.after(PERIOD) {
            assert_eq!((news.what, news.bytes as usize, news.status), (CAME, NUMBERED, DONE));
            assert_eq!(with(&[news], OUTSIDE | LOST_BEFORE), 0, "{news:?}");
            assert!(last.is_none_or(|last| news.time == last + PERIOD.0), "{news:?}");
            assert!(news.moved < 500_000, "{news:?}");
            last = Some(news.time);
        }
    }
    assert!(last.is_some());
}

#[test]
fn frames_that_come_too_often_or_are_too_long_are_outside() {
    let outside = |bytes, gap| {
        let mut piped = Piped::read(bytes, gap);
        piped.after(SETTLING + PERIOD);
        let came = piped.after(Nanos(20 * PERIOD.0));
        (came.len(), with(&came, OUTSIDE))
    };
    let (all, wrong) = outside(NUMBERED, PERIOD);
    assert!(all >= 19 && wrong == 0, "{all} {wrong}");
    let (all, wrong) = outside(NUMBERED - 1, PERIOD);
    assert!(all >= 19 && wrong == all, "{all} {wrong}");
    let (all, wrong) = outside(NUMBERED, Nanos(PERIOD.0 / 2));
    assert!(all >= 38 && wrong >= all / 2 - 2, "{all} {wrong}");
}

#[test]
fn a_reader_that_keeps_all_slots_gets_frames_again_when_it_lends_some() {
    let mut piped = Piped::read(NUMBERED, PERIOD);
    piped.machine.run(SETTLING + Nanos(u64::from(SLOTS + 20) * PERIOD.0));
    let came = piped.news();
    assert_eq!(came.len(), SLOTS as usize, "one in each");
    (0..4).for_each(|slot| piped.lend(slot));
    piped.machine.run(Nanos::from_millis(150));
    assert_eq!(piped.news().len(), 4, "nobody asked, and the server looked");
}

#[test]
fn the_first_frame_of_a_device_that_is_there_again_has_a_loss_before_it() {
    let mut piped = Piped::read(NUMBERED, PERIOD);
    let came = piped.after(SETTLING + Nanos(20 * PERIOD.0));
    assert!(!came.is_empty() && with(&came, LOST_BEFORE) == 0, "{came:?}");
    detach(PORT);
    piped.machine.run(Nanos::from_millis(200));
    let news = piped.news();
    assert_eq!(news.iter().filter(|news| news.what == GONE).count(), 1);
    assert!(news.iter().all(|news| news.what != BACK), "slots stay lent: {news:?}");
    attach(PORT, Box::new(Adapter::default().with_frames(PERIOD)));
    piped.machine.run(Nanos::from_secs(1));
    let news = piped.after(Nanos(20 * PERIOD.0));
    let opened = news.iter().position(|news| news.flags & OPENED != 0).expect("it is there");
    let came: Vec<News> = news[opened..].iter().copied().filter(|news| news.what == CAME).collect();
    assert!(came.len() > 1 && came[0].flags & LOST_BEFORE != 0, "{came:?}");
    assert_eq!(with(&came, LOST_BEFORE), 1);
}

/// A reader that died with frames in its hands harms no successor, which knows nothing of slots.
#[test]
fn a_reader_that_begins_again_has_all_slots_lent() {
    let mut piped = Piped::read(NUMBERED, PERIOD);
    piped.machine.run(SETTLING + Nanos(u64::from(SLOTS / 2) * PERIOD.0));
    // Half of the slots have frames that nobody gives back, and some are lent twice.
    (0..9).for_each(|slot| piped.lend(slot));
    piped.begin();
    piped.machine.run(Nanos(u64::from(SLOTS + 20) * PERIOD.0));
    let came: Vec<u32> = piped.news().iter().map(|news| news.slot).collect();
    let mut each = came.clone();
    each.sort_unstable();
    each.dedup();
    assert_eq!((came.len(), each.len()), (SLOTS as usize, SLOTS as usize), "one in each");
}

#[test]
fn a_frame_that_is_written_is_answered_with_its_times_and_judged() {
    let mut piped = Piped::new(SEND, 600, Adapter::default());
    let mut send = |bytes, after: Nanos| {
        let written = now();
        piped.send(5, bytes, written);
        piped.machine.run(after);
        let [news] = piped.news()[..] else { panic!("one answer") };
        assert_eq!((news.what, news.slot, news.time), (BACK, 5, written.0));
        assert!(news.begun >= news.time && news.taken >= news.begun);
        (news.status, news.flags & OUTSIDE != 0)
    };
    let half = Nanos(PERIOD.0 / 2);
    assert_eq!(send(600, PERIOD), (DONE, false));
    assert_eq!(send(512, half), (DONE, false), "with an empty packet behind it");
    assert_eq!(send(60, PERIOD), (DONE, true), "too soon");
    assert_eq!(send(601, PERIOD), (DONE, true), "too long for the pipe");
    assert_eq!(send(13, PERIOD), (NONSENSE, false), "no frame");
    let later = now() + PERIOD;
    piped.send(6, 60, later);
    piped.machine.run(PERIOD);
    assert_eq!(with(&piped.news(), OUTSIDE), 1, "nobody writes tomorrow");
}

/// The plan counts each frame that goes as two messages of the bottom half, and as many under way
/// as the server has room for.
#[test]
fn all_frames_that_there_is_room_for_are_taken_at_once_and_each_is_work_twice() {
    let full = 512;
    let sent = |bytes: u16, count: u32| {
        let mut piped = Piped::new(SEND, 600, Adapter::default());
        piped.machine.messages = 0;
        for slot in 0..count {
            let ask = Ask { slot, what: SEND, bytes, written: now().0 };
            piped.end.asks.push(&ask).unwrap();
        }
        piped.machine.ask();
        let taken = piped.machine.messages;
        piped.machine.run(Nanos::from_millis(100));
        let back: Vec<News> = piped.news().into_iter().filter(|it| it.what == BACK).collect();
        assert_eq!(back.len(), count as usize);
        let done = back.iter().filter(|news| news.status == DONE).count() as u32;
        (taken, done, piped.machine.messages)
    };
    let room = UNDER_WAY as u32;
    assert_eq!(sent(full, room), (room, room, 2 * room), "each has an empty packet behind it");
    assert_eq!(sent(full, room + 1), (room + 1, room, 2 * room + 1));
    assert_eq!(sent(60, room), (room, room, 2 * room));
}

/// A reader that begins has all slots lent, whatever an end asked for before.
#[test]
fn nonsense_of_an_end_harms_no_successor() {
    for seed in 0..40 {
        let mut random = Random::stream(83, seed);
        let mut piped = Piped::new(LEND, NUMBERED, Adapter::default().with_frames(PERIOD));
        for _ in 0..random.between(1, 30) {
            for _ in 0..random.below(60) {
                let slot = random.below(u64::from(SLOTS) + 4) as u32;
                let what = random.pick(&[LEND, SEND, BEGIN, 7]);
                let (bytes, written) = (random.below(2_048) as u16, random.below(1 << 40));
                let _ = piped.end.asks.push(&Ask { slot, what, bytes, written });
            }
            piped.machine.ask();
            if random.one_in(6) {
                detach(PORT);
                piped.machine.run(Nanos::from_micros(random.below(200_000)));
                attach(PORT, Box::new(Adapter::default().with_frames(PERIOD)));
            }
            piped.machine.run(Nanos::from_micros(random.below(5_000)));
            piped.news();
        }
        piped.machine.run(Nanos::from_secs(2));
        piped.news();
        piped.begin();
        let came = piped.after(SETTLING + Nanos(40 * PERIOD.0));
        let came = came.iter().filter(|news| news.what == CAME).count();
        assert!(came >= 30, "seed {seed}: {came}");
    }
}

#[test]
fn without_a_device_a_frame_comes_back() {
    let mut piped = Piped::new(SEND, 600, Adapter::default());
    let begins = |piped: &mut Piped| {
        piped.end.asks.push(&Ask { slot: 0, what: BEGIN, bytes: 0, written: 0 }).unwrap();
        piped.machine.ask();
        piped.news().pop().map(|news| (news.what, news.flags & OPENED != 0, news.address))
    };
    let there = Some((BEGUN, true, ADDRESS));
    assert_eq!(begins(&mut piped), there, "a writer that is started again hears of the device");
    detach(PORT);
    piped.machine.run(Nanos::from_millis(200));
    piped.news();
    assert_eq!(begins(&mut piped), Some((BEGUN, false, [0; 6])));
    piped.send(9, 60, now());
    piped.machine.run(PERIOD);
    let [news] = piped.news()[..] else { panic!("one answer") };
    assert_eq!((news.what, news.slot, news.status), (BACK, 9, DROPPED));
}

/// Both directions of one device, each with its own end, slots and contract.
#[test]
fn frames_go_both_ways_and_neither_end_hears_of_the_others_slots() {
    let mut machine = server(&[LEND, SEND], 600);
    let [mut reader, mut writer] = [FROM, TO].map(|names| End::of(&machine, &names));
    attach(PORT, Box::new(Adapter::default().with_frames(PERIOD)));
    machine.run(Nanos::from_secs(1));
    reader.asks.push(&Ask { slot: 0, what: BEGIN, bytes: 0, written: 0 }).unwrap();
    machine.ask();
    machine.run(SETTLING);
    assert!(writer.news().iter().all(|news| news.what == STATE));
    reader.news();
    let mut came = 0;
    for round in 0..3 * SLOTS {
        let slot = round % SLOTS;
        writer.asks.push(&Ask { slot, what: SEND, bytes: 60, written: now().0 }).unwrap();
        machine.ask();
        machine.run(PERIOD);
        let [back] = writer.news()[..] else { panic!("one answer in round {round}") };
        assert_eq!(
            (back.what, back.slot, back.status, back.flags & OUTSIDE),
            (BACK, slot, DONE, 0)
        );
        for news in reader.news() {
            assert_eq!((news.what, news.flags & OUTSIDE), (CAME, 0), "{news:?}");
            came += 1;
            reader.asks.push(&Ask { slot: news.slot, what: LEND, bytes: 0, written: 0 }).unwrap();
        }
    }
    assert!(came + 1 >= 3 * SLOTS, "{came}");
    // An ask of the other direction is nonsense.
    writer.asks.push(&Ask { slot: 1, what: LEND, bytes: 0, written: 0 }).unwrap();
    reader.asks.push(&Ask { slot: 1, what: SEND, bytes: 60, written: 0 }).unwrap();
    machine.ask();
    let is_nonsense = |news: &News| (news.what, news.slot, news.status) == (BACK, 1, NONSENSE);
    assert!(writer.news().iter().any(is_nonsense) && reader.news().iter().any(is_nonsense));
}
