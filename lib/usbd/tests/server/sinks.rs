//! The endpoint of any device is written packet by packet: each packet has one answer, and a writer
//! is held to the contract of its pipe.

use crate::ground::{attach, detach, now, take_reports};
use crate::machine::{Machine, PORT};
use diapason_abi::Nanos;
use diapason_contract::carried::{CONTRACTS, Contract, Contracts};
use diapason_contract::sink::{
    ANSWERS, DONE, FAILED, GONE, NONSENSE, NUMBER, PacketAnswer, PacketWrite, RECORDS, WRITES,
};
use diapason_contract::source::{MessageShape, PipeSource, SHAPES};
use diapason_contract::threads::ServiceKind;
use diapason_devices::UsbDevice;
use diapason_devices::actuator::{Actuator, ActuatorManner};
use diapason_devices::instrument::Instrument;
use diapason_pipe::measured::{DeviceReport, Fate, Measurement};
use diapason_pipe::{Reader, Writer};
use diapason_random::Random;
use diapason_usbd::Platform as _;

const PERIOD: Nanos = Nanos::from_millis(5);

/// A server with a pipe to an endpoint of an actuator, and the writer's ends.
struct Written {
    machine: Machine,
    writes: Writer<'static, PacketWrite, RECORDS>,
    answers: Reader<'static, PacketAnswer, RECORDS>,
}

impl Written {
    fn new(number: u64, bytes: usize, product: u16) -> Written {
        let (sink, _) = PipeSource::of(ServiceKind::Sinks).unwrap();
        let mut contracts = Contracts::default();
        let jitter = Nanos::ZERO;
        contracts.0[sink] = Some(Contract { messages: 1, per: PERIOD, burst: 1, jitter });
        let shape = MessageShape { bytes, stamp: Some(0) }.word();
        let machine = Machine::serving(
            ServiceKind::Sinks,
            (0x1209, product),
            &[(CONTRACTS, &contracts.words()), (SHAPES, &[0, 0, 0, 0, shape]), (NUMBER, &[number])],
        );
        let writes = machine.ground.writer(WRITES).unwrap();
        let answers = machine.ground.reader(ANSWERS).unwrap();
        Written { machine, writes, answers }
    }

    fn with(number: u64, bytes: usize, actuator: Actuator) -> Written {
        let mut all = Written::new(number, bytes, 3);
        attach(PORT, Box::new(actuator));
        all.machine.run(Nanos::from_secs(1));
        all
    }

    /// Writes a packet of so many bytes `number`.
    fn put(&mut self, number: u8, length: usize) -> bool {
        let mut packet =
            PacketWrite { written: now().0, length: length as u32, spare: 0, data: [0; 512] };
        packet.data[..length.min(512)].fill(number);
        let written = self.writes.push(&packet).is_ok();
        self.machine.ask();
        written
    }

    /// Returns the answers after some time.
    fn after(&mut self, time: Nanos) -> Vec<PacketAnswer> {
        let (mut all, end) = (Vec::new(), now() + time);
        while now() < end {
            self.machine.run(Nanos::from_millis(5).min(end - now()));
            all.extend(std::iter::from_fn(|| self.answers.pop()));
        }
        all
    }
}

#[test]
fn packets_come_to_the_device_whole_and_in_order_and_are_answered_when_it_has_them() {
    for (number, bytes) in [(1, 64), (2, 512)] {
        let actuator = Actuator::taking(Nanos::from_micros(300));
        let noted = actuator.noted();
        let mut all = Written::with(number, bytes, actuator);
        for packet in 0..50 {
            assert!(all.put(packet, bytes));
            let answers = all.after(PERIOD);
            let [answer] = answers[..] else { panic!("{answers:?}") };
            assert_eq!((answer.status, answer.outside), (DONE, 0));
            let took = answer.ended - answer.written;
            assert!((300_000..2_500_000).contains(&took), "{took}");
            let taken = noted.take();
            let [ref at_device] = taken[..] else { panic!("{taken:?}") };
            assert_eq!(at_device.bytes, vec![packet; bytes]);
            assert!((answer.written..=answer.ended).contains(&at_device.time.0));
        }
    }
}

#[test]
fn a_writer_at_ten_times_its_rate_is_held_to_its_contract_and_nothing_is_lost() {
    let actuator = Actuator::default();
    let noted = actuator.noted();
    let mut all = Written::with(1, 64, actuator);
    let (mut accepted, mut refused, mut answers) = (0u64, 0u64, Vec::new());
    for packet in 0..1_000u32 {
        match all.put(packet as u8, 64) {
            true => accepted += 1,
            false => refused += 1,
        }
        answers.extend(all.after(Nanos(PERIOD.0 / 10)));
    }
    answers.extend(all.after(Nanos::from_secs(1)));
    assert!(refused > 800, "{refused}");
    assert!(answers.iter().all(|answer| answer.status == DONE));
    let outside: u64 = answers.iter().map(|answer| u64::from(answer.outside)).sum();
    assert!(outside > 90, "{outside}");
    let taken = noted.take();
    assert_eq!((answers.len() as u64, taken.len() as u64), (accepted, accepted));
    // Each goes a period after the one before; the bus moves it by less than two milliseconds.
    let least = taken.windows(2).map(|two| two[1].time.0 - two[0].time.0).min().unwrap();
    assert!(least > PERIOD.0 - 2_000_000, "{least}");
}

#[test]
fn packets_that_make_no_sense_are_answered_and_are_not_sent() {
    let actuator = Actuator::default();
    let noted = actuator.noted();
    let mut all = Written::with(1, 64, actuator);
    for length in [0, 65, 512, 513, u32::MAX as usize] {
        assert!(all.put(1, length));
        let answers = all.after(PERIOD);
        assert_eq!(answers.iter().map(|it| it.status).collect::<Vec<_>>(), [NONSENSE], "{length}");
    }
    let tomorrow = PacketWrite { written: u64::MAX, length: 64, spare: 0, data: [7; 512] };
    all.writes.push(&tomorrow).unwrap();
    all.machine.ask();
    let answers = all.after(Nanos::from_millis(20));
    assert_eq!(answers.iter().map(|it| (it.status, it.outside)).collect::<Vec<_>>(), [(DONE, 1)]);
    assert!(all.put(8, 64));
    let answers = all.after(Nanos::from_millis(20));
    assert_eq!(answers.iter().map(|it| it.status).collect::<Vec<_>>(), [DONE], "time goes on");
    assert_eq!(noted.take().len(), 2);
}

#[test]
fn a_device_that_takes_nothing_or_stalls_loses_packets_by_name() {
    for manner in [ActuatorManner::Refuses(3), ActuatorManner::Stalls(3)] {
        let actuator = Actuator::default().with(manner);
        let noted = actuator.noted();
        let mut all = Written::with(2, 512, actuator);
        let (mut accepted, mut answers) = (0u64, Vec::new());
        for packet in 0..40 {
            accepted += u64::from(all.put(packet, 512));
            answers.extend(all.after(Nanos::from_millis(100)));
        }
        answers.extend(all.after(Nanos::from_secs(30)));
        let of = |status: u32| answers.iter().filter(|it| it.status == status).count() as u64;
        let delivered = noted.take().len() as u64;
        assert_eq!((of(DONE), delivered), (3, 3), "{manner:?}");
        assert_eq!(of(DONE) + of(FAILED) + of(GONE), accepted, "{manner:?}: each has one answer");
        assert!(of(FAILED) > 0, "{manner:?}");
    }
}

#[test]
fn a_device_that_is_pulled_out_answers_what_was_written() {
    let actuator = Actuator::taking(Nanos::from_millis(3));
    let mut all = Written::with(1, 64, actuator);
    assert!(all.put(1, 64) && all.after(Nanos::from_millis(1)).is_empty());
    assert!(all.put(2, 64), "this one waits");
    detach(PORT);
    let answers = all.after(Nanos::from_millis(300));
    assert_eq!(answers.iter().map(|it| it.status).collect::<Vec<_>>(), [GONE, GONE]);
    attach(PORT, Box::new(Actuator::default()));
    all.machine.run(Nanos::from_secs(1));
    assert!(all.put(3, 64));
    let answers = all.after(PERIOD);
    assert_eq!(answers.iter().map(|it| it.status).collect::<Vec<_>>(), [DONE]);
}

#[test]
fn a_device_that_is_another_or_lacks_the_endpoint_is_not_written_to() {
    let devices: [Box<dyn UsbDevice>; 3] = [
        Box::new(Actuator::default()),
        Box::new(Actuator::default()),
        Box::new(Instrument::default()),
    ];
    let cases = [(1, 4, Fate::Stranger), (3, 3, Fate::Unserved), (1, 3, Fate::Unserved)];
    for ((number, product, fate), device) in cases.into_iter().zip(devices) {
        let mut all = Written::new(number, 64, product);
        attach(PORT, device);
        all.machine.run(Nanos::from_secs(1));
        let told = |said: &Measurement| match said {
            Measurement::Device(DeviceReport { fate, .. }) => Some(*fate),
            _ => None,
        };
        let fates: Vec<Fate> = take_reports().iter().filter_map(told).collect();
        assert_eq!(fates, [fate]);
        assert!(all.put(1, 64));
        let answers = all.after(PERIOD);
        assert_eq!(answers.iter().map(|it| it.status).collect::<Vec<_>>(), [GONE]);
    }
}

/// Returns a packet with this number that was written so long ago.
fn written(number: u64, ago: Nanos, length: usize) -> PacketWrite {
    let mut data = [0; 512];
    data[..8].copy_from_slice(&number.to_le_bytes());
    PacketWrite { written: now().0 - ago.0, length: length as u32, spare: 0, data }
}

/// The server hears late of packets that were written in time. Each goes at once, behind those
/// before it, and one that makes no sense has its answer in its place.
#[test]
fn packets_that_are_heard_of_together_go_together_and_are_answered_in_their_order() {
    let actuator = Actuator::taking(Nanos::from_micros(300));
    let noted = actuator.noted();
    let mut all = Written::with(1, 64, actuator);
    for (number, length) in [(0, 64), (1, 65), (2, 64), (3, 64)] {
        let ago = Nanos(PERIOD.0 * (3 - number));
        assert!(all.writes.push(&written(number, ago, length)).is_ok());
    }
    all.machine.ask();
    // Each takes three intervals at most: two offers, and one until the first.
    let answers = all.after(Nanos::from_millis(10));
    let times: Vec<u64> = answers.iter().map(|it| it.written).collect();
    assert!(times.is_sorted() && times.len() == 4, "{answers:?}");
    let said: Vec<_> = answers.iter().map(|it| (it.status, it.outside)).collect();
    assert_eq!(said, [(DONE, 0), (NONSENSE, 1), (DONE, 0), (DONE, 0)]);
    assert!(answers.iter().all(|it| it.taken == answers[0].taken), "none waits in the server");
    let numbers: Vec<u8> = noted.take().iter().map(|packet| packet.bytes[0]).collect();
    assert_eq!(numbers, [0, 2, 3]);
}

/// Packets that are written in any rhythm to a device that refuses, stalls or goes away: each has
/// one answer, in the order of writing, and the device has exactly those that are done.
#[test]
fn whatever_the_device_does_each_packet_has_one_answer_in_its_place() {
    let mut failed = 0;
    for seed in 0..24 {
        let mut random = Random::stream(18, seed);
        let after = 1 + random.below(6) as u32;
        let manner = match seed % 4 {
            0 => ActuatorManner::Refuses(after),
            1 => ActuatorManner::Stalls(after),
            _ => ActuatorManner::Takes,
        };
        let actuator = Actuator::taking(Nanos(random.below(1_000_000))).with(manner);
        let noted = actuator.noted();
        let mut all = Written::with(2, 512, actuator);
        let (mut accepted, mut answers) = (Vec::new(), Vec::new());
        for number in 0..30 {
            let packet = written(number, Nanos(random.below(3 * PERIOD.0)), 512);
            let is_last = accepted.last().is_none_or(|last| *last < packet.written);
            if is_last && all.writes.push(&packet).is_ok() {
                accepted.push(packet.written);
            }
            if random.below(2) == 0 {
                all.machine.ask();
            }
            answers.extend(all.after(Nanos(random.below(2 * PERIOD.0))));
            if seed % 4 == 3 && number == 15 {
                detach(PORT);
            }
        }
        all.machine.ask();
        answers.extend(all.after(Nanos::from_secs(20)));
        let order: Vec<u64> = answers.iter().map(|it| it.written).collect();
        assert_eq!(order, accepted, "seed {seed}");
        let done = answers.iter().filter(|it| it.status == DONE).count();
        assert_eq!(noted.take().len(), done, "seed {seed}");
        failed += answers.len() - done;
    }
    assert!(failed > 100, "{failed}");
}

/// Each answer lets a writer write again and wake the server again. That would use up the share of
/// the server's thread, and the first packet to a device that comes then would be late.
#[test]
fn a_writer_without_a_device_is_held_to_its_contract() {
    let mut all = Written::new(1, 64, 3);
    let (mut accepted, mut answers) = (0, Vec::new());
    for packet in 0..1_000u32 {
        accepted += usize::from(all.put(packet as u8, 64));
        answers.extend(all.after(Nanos(PERIOD.0 / 10)));
    }
    assert!((100..130).contains(&accepted), "{accepted} in a hundred periods");
    let outside = answers.iter().filter(|answer| answer.outside == 1).count();
    assert!(answers.iter().all(|answer| answer.status == GONE) && outside > 90, "{outside}");
}
