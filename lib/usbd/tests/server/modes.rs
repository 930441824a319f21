//! Changes of the mode of operation: streams that end, streams that begin, and those that go on as
//! if nothing happened. Cameras count what they send, so a few milliseconds show which mode runs.

use crate::ground::{attach, detach, now, take_lines, take_reports};
use crate::machine::Machine;
use diapason_abi::Nanos;
use diapason_contract::mode::{
    ANSWERS, ASKS, BUSY, DONE, MODES, ModeAnswer, ModeAsk, NO_MODE, RECORDS, REST, WITHOUT,
};
use diapason_contract::settings::{CRITICAL, DEVICES, Expected, STREAMS};
use diapason_contract::threads::ServiceKind;
use diapason_devices::camera::{self, CameraModel};
use diapason_devices::{Answer, Handshake, Stall, UsbDevice};
use diapason_pipe::measured::Measurement;
use diapason_pipe::{Reader, Writer};
use diapason_usb::{Setup, Speed};
use diapason_usbd::Platform as _;
use std::cell::Cell;

const CAMERAS: usize = 3;
/// The ports of super speed begin here.
const PORT: u8 = 5;
/// Bytes of the three streams in each mode: parking, motorway, nothing. They fit on the bus in each
/// mode, but the last of parking does not fit beside those of the motorway.
const BYTES: [[u64; CAMERAS]; 3] = [[11_264, 11_264, 11_264], [33_792, 11_264, 0], [0, 0, 0]];
const PARKING: u32 = 0;
const MOTORWAY: u32 = 1;
const NOTHING: u32 = 2;
/// The stream that parking and the motorway have alike.
const STAYS: usize = 1;
const PAUSE: Nanos = Nanos::from_millis(20);
/// The time for which cameras count.
const COUNTED: Nanos = Nanos::from_millis(40);
const INTERVALS: u64 = COUNTED.0 / camera::INTERVAL.0;

/// The count of what a camera sent: the number of its last interval, intervals, and bytes.
#[derive(Clone, Copy, Default)]
struct Sent {
    last: u64,
    intervals: u64,
    bytes: u64,
}

thread_local! {
    static SENT: Cell<[Sent; CAMERAS]> = const {
        Cell::new([Sent { last: 0, intervals: 0, bytes: 0 }; CAMERAS])
    };
}

/// A camera that fills every interval and counts what it sends.
struct Counting {
    camera: CameraModel,
    seat: usize,
}

impl UsbDevice for Counting {
    fn speed(&self) -> Speed {
        self.camera.speed()
    }

    fn reset(&mut self, now: Nanos) {
        self.camera.reset(now);
    }

    fn control(&mut self, now: Nanos, setup: Setup, data: &[u8]) -> Result<Vec<u8>, Stall> {
        self.camera.control(now, setup, data)
    }

    fn receive(&mut self, now: Nanos, endpoint: u8, packet: &[u8]) -> Handshake {
        self.camera.receive(now, endpoint, packet)
    }

    fn send(&mut self, now: Nanos, endpoint: u8, packet: &mut [u8]) -> Answer {
        let answer = self.camera.send(now, endpoint, packet);
        if let Answer::Data(bytes) = answer {
            let (mut all, interval) = (SENT.get(), now.0 / camera::INTERVAL.0);
            let own = &mut all[self.seat];
            own.intervals += u64::from(own.last != interval);
            (own.last, own.bytes) = (interval, own.bytes + bytes as u64);
            SENT.set(all);
        }
        answer
    }

    fn next_change(&self) -> Nanos {
        self.camera.next_change()
    }

    fn advance(&mut self, now: Nanos) {
        self.camera.advance(now);
    }
}

struct Car {
    machine: Machine,
    asks: Writer<'static, ModeAsk, RECORDS>,
    answers: Reader<'static, ModeAnswer, RECORDS>,
    number: u32,
    /// When it asked last. Cameras count from then on.
    asked: Nanos,
}

impl Car {
    /// Returns a server whose cameras are all there, in the first mode.
    fn new() -> Car {
        let word =
            |bytes: &[u64; CAMERAS]| bytes.iter().rev().fold(0, |word, bytes| word << 16 | bytes);
        let words = BYTES.each_ref().map(word);
        let expected = |seat: usize| {
            let (interface, connector, service) =
                (seat as u8, seat as u8 + 1, ServiceKind::Cameras);
            Expected { service, interface, connector, route: 0, identity: (0, 0), serial: 0 }
        };
        let devices = [0, 1, 2].map(|seat| expected(seat).words());
        let mut machine = Machine::with(&[
            (STREAMS, &[1; CAMERAS]),
            (CRITICAL, &[0, 1, 2]),
            (DEVICES, devices.as_flattened()),
            (MODES, &words),
            (REST, &[PAUSE.0]),
        ]);
        // As in the real server, nobody wakes the managing thread for an ask.
        machine.sleeps = true;
        let asks = machine.ground.writer(ASKS).unwrap();
        let answers = machine.ground.reader(ANSWERS).unwrap();
        let mut car = Car { machine, asks, answers, number: 0, asked: Nanos::ZERO };
        (0..CAMERAS).for_each(plug);
        car.machine.run(Nanos::from_millis(500));
        car
    }

    fn ask(&mut self, mode: u32) {
        SENT.set([Sent::default(); CAMERAS]);
        (self.number, self.asked) = (self.number + 1, now());
        self.asks.push(&ModeAsk { mode, number: self.number }).unwrap();
    }

    /// Asks for a mode and waits for the answer to that.
    fn change(&mut self, mode: u32) -> ModeAnswer {
        self.machine.run(PAUSE);
        self.ask(mode);
        self.answer(Nanos::from_millis(500))
    }

    fn answer(&mut self, within: Nanos) -> ModeAnswer {
        let until = now() + within;
        while now() < until {
            self.machine.run(Nanos::from_millis(1));
            if let Some(answer) = self.answers.pop() {
                assert_eq!(answer.number, self.number, "{answer:?}");
                return answer;
            }
        }
        panic!("no answer in {within:?}: {:?}", take_lines());
    }

    /// Asserts that the stream that stays sent in each interval since the last ask.
    #[track_caller]
    fn stayed(&self) {
        let (sent, time) = (SENT.get()[STAYS].intervals, now() - self.asked);
        assert!(sent.abs_diff(time.0 / camera::INTERVAL.0) <= 1, "{sent} intervals in {time}");
    }

    /// Returns the mean bytes of the intervals of each stream, as they are from now on.
    fn streams(&mut self) -> [u64; CAMERAS] {
        SENT.set([Sent::default(); CAMERAS]);
        self.machine.run(COUNTED);
        SENT.get().map(|sent| {
            if sent.intervals == 0 {
                return 0;
            }
            assert!(sent.intervals.abs_diff(INTERVALS) <= 1, "{} intervals", sent.intervals);
            sent.bytes / sent.intervals
        })
    }

    /// Asserts that the server counts the intervals of the stream that stays, and that the stream
    /// lost nothing since its camera came.
    #[track_caller]
    fn has_lost_nothing(&mut self) {
        take_lines();
        self.machine.run(Nanos::from_millis(1_050));
        let lines = take_lines();
        let own = format!("STREAM {STAYS} ");
        let counts = lines.iter().find_map(|line| line.strip_prefix(&own)).expect("it counts");
        let count = counts.split(' ').next().and_then(|count| count.parse().ok());
        assert!(matches!(count, Some(7_990..=8_000)), "{counts}");
        let stays = |said: &Measurement| match said {
            Measurement::Camera(it) if usize::from(it.number) == STAYS => Some(*it),
            _ => None,
        };
        // A report counts from the beginning.
        let last = take_reports().iter().filter_map(stays).next_back().expect("a report came");
        assert_eq!((last.broken, last.missed, last.breaks), (0, 0, 0), "{last:?}");
        assert!(last.whole > 0, "{last:?}");
    }
}

fn plug(seat: usize) {
    attach(PORT + seat as u8, Box::new(Counting { camera: CameraModel::busy(), seat }));
}

/// Asserts that the streams are those of a mode. The pictures that fit into an interval are smaller
/// than its setting.
#[track_caller]
fn is_in(mode: u32, streams: [u64; CAMERAS], what: &str) {
    let sent = |bytes: u64| match bytes {
        0 => 0..=0,
        11_264 => 3_900..=4_100,
        _ => 33_000..=33_792,
    };
    for (seen, bytes) in streams.into_iter().zip(BYTES[mode as usize]) {
        assert!(sent(bytes).contains(&seen), "{what}: mode {mode}, {streams:?}");
    }
}

#[test]
fn a_change_ends_what_ends_begins_what_begins_and_leaves_the_rest_alone() {
    let mut car = Car::new();
    is_in(PARKING, car.streams(), "at first");
    let changes = [MOTORWAY, PARKING, NOTHING, MOTORWAY, NOTHING, PARKING, PARKING];
    for (before, mode) in [PARKING].into_iter().chain(changes).zip(changes) {
        let answer = car.change(mode);
        if ![before, mode].contains(&NOTHING) {
            car.stayed();
        }
        assert_eq!((answer.mode, answer.answer, answer.refused), (mode, DONE, 0), "{answer:?}");
        assert!((answer.begun - answer.taken) < 100_000_000, "{answer:?}");
        is_in(mode, car.streams(), "after a change");
    }
    car.has_lost_nothing();
}

#[test]
fn an_ask_is_refused_while_a_change_is_under_way_and_for_a_time_after() {
    let mut car = Car::new();
    car.ask(MOTORWAY);
    car.machine.run(Nanos::from_millis(12));
    for (ask, why) in [(PARKING, BUSY), (7, NO_MODE)] {
        car.ask(ask);
        let answer = car.answer(Nanos::from_millis(20));
        assert_eq!((answer.mode, answer.answer), (ask, why), "{answer:?}");
    }
    car.number = 1;
    let answer = car.answer(Nanos::from_millis(500));
    assert_eq!((answer.mode, answer.answer, answer.refused), (MOTORWAY, DONE, 2));
    car.number = 3;
    car.ask(PARKING);
    let answer = car.answer(Nanos::from_millis(15));
    assert_eq!((answer.answer, answer.refused), (BUSY, 3), "too soon after the change");
    assert_eq!(car.change(PARKING).answer, DONE);
    is_in(PARKING, car.streams(), "in the end");
}

/// The change is over whenever a camera leaves in its middle, and a camera that comes back is in
/// the mode that runs by then. An ask is taken within 10 ms, and a change takes 20 to 30 ms.
#[test]
fn a_camera_may_leave_at_each_step_of_a_change_and_come_back() {
    let mut car = Car::new();
    for step in 0..12 {
        let (to, seat) = ([MOTORWAY, PARKING][step % 2], [0, 0, 2, 2][step % 4]);
        car.ask(to);
        car.machine.run(Nanos::from_millis(3 * step as u64));
        detach(PORT + seat as u8);
        let answer = match car.answers.pop() {
            Some(answer) => answer,
            None => car.answer(Nanos::from_millis(2_500)),
        };
        assert!([DONE, WITHOUT].contains(&answer.answer), "{step}, {seat}: {answer:?}");
        car.stayed();
        car.machine.run(Nanos::from_millis(200));
        plug(seat);
        car.machine.run(Nanos::from_millis(400));
        is_in(to, car.streams(), &format!("step {step}, camera {seat}"));
    }
    car.has_lost_nothing();
}

/// A camera that comes in the middle of a change takes no part of the bus that the change needs.
#[test]
fn a_camera_may_come_at_each_step_of_a_change() {
    let mut car = Car::new();
    for step in 0..10 {
        let (to, seat) = ([MOTORWAY, PARKING][step % 2], 2);
        detach(PORT + seat);
        car.machine.run(Nanos::from_millis(200));
        plug(seat.into());
        car.machine.run(Nanos::from_millis(90 + 12 * step as u64));
        assert_eq!(car.change(to).answer, DONE, "{step}");
        car.stayed();
        is_in(to, car.streams(), &format!("step {step}"));
    }
    car.has_lost_nothing();
}

/// A program that asks without end and reads no answers gets its mode, and disturbs no stream.
#[test]
fn a_flood_of_asks_disturbs_no_stream() {
    let mut car = Car::new();
    car.ask(MOTORWAY);
    for number in 0..300 {
        for mode in [7, u32::MAX, MOTORWAY, 16] {
            let _ = car.asks.push(&ModeAsk { mode, number });
        }
        car.machine.run(Nanos::from_millis(1));
    }
    car.stayed();
    is_in(MOTORWAY, car.streams(), "after the flood");
    let mut answers = 0;
    while let Some(answer) = car.answers.pop() {
        assert!([DONE, BUSY, NO_MODE].contains(&answer.answer), "{answer:?}");
        answers += 1;
    }
    assert_eq!(answers, RECORDS, "the first answers wait, and no others found room");
    assert_eq!(car.change(PARKING).answer, DONE);
    is_in(PARKING, car.streams(), "in the end");
    car.has_lost_nothing();
}

/// Returns how often each stream broke off, as it was told last.
fn breaks() -> [u64; CAMERAS] {
    let mut all = [0; CAMERAS];
    for said in take_reports() {
        if let Measurement::Camera(it) = said {
            all[usize::from(it.number)] = it.breaks;
        }
    }
    all
}

#[test]
fn a_stream_that_breaks_off_is_told_and_one_that_an_order_ends_is_not() {
    let mut car = Car::new();
    for mode in [MOTORWAY, NOTHING, PARKING, NOTHING, PARKING] {
        assert_eq!(car.change(mode).answer, DONE);
    }
    assert_eq!(breaks(), [0; CAMERAS]);
    for _ in 0..2 {
        detach(PORT + STAYS as u8);
        car.machine.run(Nanos::from_millis(100));
        plug(STAYS);
        car.machine.run(Nanos::from_millis(400));
    }
    // A camera that goes while it rests breaks nothing off.
    assert_eq!(car.change(MOTORWAY).answer, DONE);
    detach(PORT + 2);
    car.machine.run(Nanos::from_millis(100));
    assert_eq!(breaks(), [0, 2, 0]);
}
