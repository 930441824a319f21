//! One endpoint of a device is read and another one written: each pipe has what its own endpoint
//! does, and both end with the device.

use crate::ground::{attach, detach, now};
use crate::machine::{Machine, PORT};
use diapason_abi::Nanos;
use diapason_contract::carried::{CONTRACTS, Contract, Contracts};
use diapason_contract::endpoint::{self, PACKETS};
use diapason_contract::sensor;
use diapason_contract::sensor::{LOST_BEFORE, OUTSIDE, Packet};
use diapason_contract::sink::{
    self, ANSWERS, DONE, FAILED, GONE, PacketAnswer, PacketWrite, WRITES,
};
use diapason_contract::source::{MessageShape, PipeSource, SHAPES};
use diapason_contract::threads::ServiceKind;
use diapason_devices::UsbDevice;
use diapason_devices::actuator::ActuatorManner;
use diapason_devices::instrument::PERIOD;
use diapason_devices::servo::Servo;
use diapason_pipe::{Reader, Writer};
use diapason_usbd::Platform as _;

/// The time from one set point to the next.
const POINT: Nanos = Nanos::from_millis(5);
/// Bytes of a packet of either interrupt endpoint.
const BYTES: usize = 64;

/// A server with both pipes of a servo drive, and the ends of the programs.
struct Rig {
    machine: Machine,
    packets: Reader<'static, Packet, { sensor::RECORDS }>,
    writes: Writer<'static, PacketWrite, { sink::RECORDS }>,
    answers: Reader<'static, PacketAnswer, { sink::RECORDS }>,
}

/// The outcome of some time.
#[derive(Default)]
struct Came {
    numbers: Vec<u64>,
    flags: u32,
    sessions: Vec<u32>,
    answers: Vec<PacketAnswer>,
}

impl Rig {
    fn new(drive: Servo) -> Rig {
        let numbered = |kind| PipeSource::of(kind).unwrap().0;
        let mut contracts = Contracts::default();
        for (kind, per) in [(ServiceKind::Endpoints, PERIOD), (ServiceKind::Sinks, POINT)] {
            let contract = Contract { messages: 1, per, burst: 1, jitter: Nanos::ZERO };
            contracts.0[numbered(kind)] = Some(contract);
        }
        let shape = |stamp| MessageShape { bytes: BYTES, stamp: Some(stamp) }.word();
        let machine = Machine::serving(
            ServiceKind::Pairs,
            (0x1209, 4),
            &[
                (CONTRACTS, &contracts.words()),
                (SHAPES, &[0, shape(16), 0, 0, shape(0)]),
                (endpoint::NUMBER, &[1]),
                (sink::NUMBER, &[1]),
            ],
        );
        let packets = machine.ground.reader(PACKETS).unwrap();
        let writes = machine.ground.writer(WRITES).unwrap();
        let answers = machine.ground.reader(ANSWERS).unwrap();
        let mut rig = Rig { machine, packets, writes, answers };
        attach(PORT, Box::new(drive));
        rig.after(Nanos::from_secs(1));
        rig
    }

    fn put(&mut self, number: u8) -> bool {
        let mut data = [0; 512];
        data[..BYTES].fill(number);
        let packet = PacketWrite { written: now().0, length: BYTES as u32, spare: 0, data };
        let written = self.writes.push(&packet).is_ok();
        self.machine.ask();
        written
    }

    fn after(&mut self, time: Nanos) -> Came {
        let (mut came, end) = (Came::default(), now() + time);
        while now() < end {
            self.machine.run(Nanos::from_millis(5).min(end - now()));
            while let Some(packet) = self.packets.pop() {
                came.numbers.push(u64::from_le_bytes(*packet.data[8..].first_chunk().unwrap()));
                came.flags |= packet.flags;
                came.sessions.push(packet.session);
            }
            came.answers.extend(std::iter::from_fn(|| self.answers.pop()));
        }
        came
    }
}

#[test]
fn both_directions_carry_everything_side_by_side() {
    let drive = Servo::new(PERIOD, Nanos::from_micros(300));
    let noted = drive.noted();
    let mut rig = Rig::new(drive);
    let mut numbers = Vec::new();
    for number in 0..100 {
        assert!(rig.put(number));
        let came = rig.after(POINT);
        assert_eq!(came.flags & OUTSIDE, 0);
        numbers.extend(came.numbers);
        let [answer] = came.answers[..] else { panic!("{:?}", came.answers) };
        assert_eq!((answer.status, answer.outside), (DONE, 0));
        let [ref at_drive] = noted.take()[..] else { panic!("set point {number}") };
        assert_eq!(at_drive.bytes, vec![number; BYTES]);
    }
    assert!(numbers.len() > 240, "{}", numbers.len());
    assert!(numbers.is_sorted_by(|before, after| before + 1 == *after), "none is missing");
}

/// A flooding writer has a full pipe, and the reader beside it misses nothing.
#[test]
fn a_writer_at_ten_times_its_rate_costs_the_reader_no_packet() {
    let mut rig = Rig::new(Servo::default());
    let (mut numbers, mut refused) = (Vec::new(), 0);
    for number in 0..1_000u32 {
        refused += u32::from(!rig.put(number as u8));
        let came = rig.after(Nanos(POINT.0 / 10));
        assert_eq!(came.flags & OUTSIDE, 0);
        numbers.extend(came.numbers);
    }
    assert!(refused > 800, "{refused}");
    assert!(numbers.len() > 240 && numbers.is_sorted_by(|before, after| before + 1 == *after));
}

/// A reader that takes nothing loses its own packets, and the writer beside it none.
#[test]
fn a_full_pipe_of_the_reader_does_not_hold_set_points_up() {
    let mut rig = Rig::new(Servo::default());
    rig.machine.run(Nanos::from_secs(1));
    for number in 0..50 {
        assert!(rig.put(number));
        rig.machine.run(POINT);
        assert_eq!(rig.answers.pop().map(|answer| answer.status), Some(DONE));
    }
    assert!(rig.packets.lost() > 400, "{}", rig.packets.lost());
}

/// Returns a drive that takes everything.
fn good() -> Box<dyn UsbDevice> {
    Box::new(Servo::default())
}

#[test]
fn a_drive_that_is_pulled_out_ends_both_and_comes_back_for_both() {
    let mut rig = Rig::new(Servo::new(PERIOD, Nanos::from_millis(3)));
    assert!(rig.put(1) && rig.after(Nanos::from_millis(1)).answers.is_empty());
    assert!(rig.put(2), "this one waits");
    detach(PORT);
    let came = rig.after(Nanos::from_millis(300));
    assert_eq!(came.answers.iter().map(|it| it.status).collect::<Vec<_>>(), [GONE, GONE]);
    rig.after(Nanos::from_millis(100));
    attach(PORT, good());
    let came = rig.after(Nanos::from_secs(1));
    assert!(came.sessions.iter().all(|session| *session == 2) && !came.sessions.is_empty());
    assert_ne!(came.flags & LOST_BEFORE, 0, "the reader hears that the drive was away");
    assert!(rig.put(3));
    assert_eq!(rig.after(POINT).answers.iter().map(|it| it.status).collect::<Vec<_>>(), [DONE]);
}

/// An endpoint that stalls again and again takes the other one along for the time that the device
/// rests. Both ends hear of it.
#[test]
fn a_drive_that_stalls_loses_set_points_by_name_and_its_positions_begin_anew() {
    let drive = Servo::default().with(ActuatorManner::Stalls(3));
    let noted = drive.noted();
    let mut rig = Rig::new(drive);
    let (mut accepted, mut answers, mut flags, mut last) = (0, Vec::new(), 0, 0);
    for number in 0..40 {
        accepted += usize::from(rig.put(number));
        let came = rig.after(Nanos::from_millis(20));
        answers.extend(came.answers);
        flags |= came.flags;
        last = came.sessions.last().copied().unwrap_or(last);
    }
    answers.extend(rig.after(Nanos::from_secs(10)).answers);
    let of = |status: u32| answers.iter().filter(|it| it.status == status).count();
    assert_eq!((of(DONE), noted.take().len()), (3, 3));
    assert_eq!(of(DONE) + of(FAILED) + of(GONE), accepted, "each has one answer");
    assert!(last > 1 && flags & LOST_BEFORE != 0, "{last} {flags}");
}
