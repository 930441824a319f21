//! Clients that go away, lie or stop reading, at every step.

use crate::ground::{attach, detach, take_lines, take_reports};
use crate::machine::{Machine, logged};
use diapason_abi::Nanos;
use diapason_contract::camera::{self, Back, FramePiece};
use diapason_contract::disk::{self, Ask, DiskAnswer};
use diapason_contract::network::{self, News};
use diapason_contract::settings::{DEVICES, Expected, SERVES};
use diapason_contract::threads::ServiceKind;
use diapason_devices::camera::CameraModel;
use diapason_devices::disk::Disk;
use diapason_devices::keyboard::KeyboardModel;
use diapason_devices::network::Adapter;
use diapason_pipe::measured::{DeviceReport, Fate, Measurement};
use diapason_pipe::{Reader, Writer};
use diapason_usbd::Platform;
use std::collections::BTreeSet;

const DISKS: &[(&str, &[u64])] = &[(SERVES, &[ServiceKind::Disks as u64])];
const NETWORKS: &[(&str, &[u64])] = &[(SERVES, &[ServiceKind::Networks as u64])];
const PORT: u8 = 1;
/// The first port for SuperSpeed.
const SUPERSPEED: u8 = 5;

/// A client of the disk.
struct Client {
    asks: Writer<'static, Ask, { disk::RECORDS }>,
    answers: Reader<'static, DiskAnswer, { disk::RECORDS }>,
}

impl Client {
    fn new(machine: &Machine) -> Client {
        let asks = machine.ground.writer(disk::NAMES[0].asks).unwrap();
        Client { asks, answers: machine.ground.reader(disk::NAMES[0].answers).unwrap() }
    }

    fn ask(&mut self, what: u32, block: u32, count: u32, place: u32) {
        self.asks.push(&Ask { what, block, count, place, due: 0 }).unwrap();
    }

    fn statuses(&mut self) -> Vec<u32> {
        std::iter::from_fn(|| self.answers.pop()).map(|answer| answer.status).collect()
    }
}

fn with_disk() -> (Machine, Client) {
    let mut machine = Machine::with(DISKS);
    let client = Client::new(&machine);
    attach(PORT, Box::new(Disk::new(2_048)));
    machine.run(Nanos::from_secs(1));
    assert!(logged("2048 blocks of 512 bytes"));
    (machine, client)
}

#[test]
fn a_disk_answers_in_order() {
    let (mut machine, mut client) = with_disk();
    client.ask(disk::SIZE, 0, 0, 0);
    client.ask(disk::WRITE, 7, 2, 0);
    client.ask(disk::READ, 7, 2, 4_096);
    machine.ask();
    machine.run(Nanos::from_millis(50));
    assert_eq!(client.statuses(), [disk::DONE; 3]);
    assert!(machine.was_given(disk::NAMES[0].ready));
}

#[test]
fn what_makes_no_sense_is_answered_and_touches_nothing() {
    let (mut machine, mut client) = with_disk();
    client.ask(9, 0, 1, 0);
    client.ask(disk::READ, 2_048, 1, 0);
    client.ask(disk::READ, 0, 1, u32::MAX);
    client.ask(disk::WRITE, 0, u32::MAX, 0);
    machine.ask();
    machine.run(Nanos::from_millis(50));
    assert_eq!(client.statuses(), [disk::NONSENSE; 4]);
}

/// Unplugged at any instant of a transfer, the disk leaves no ask without an answer.
#[test]
fn a_disk_that_goes_at_any_step_answers_everything() {
    for step in 0..40 {
        let (mut machine, mut client) = with_disk();
        for block in 0..4 {
            client.ask(disk::READ, block * 64, 64, block * 32_768);
        }
        machine.ask();
        machine.run(Nanos::from_micros(step * 50));
        detach(PORT);
        machine.run(Nanos::from_millis(200));
        let statuses = client.statuses();
        assert_eq!(statuses.len(), 4, "after {step} steps: {statuses:?}");
        let done = statuses.iter().take_while(|status| **status == disk::DONE).count();
        assert!(statuses[done..].iter().all(|status| *status == disk::GONE), "{statuses:?}");
        attach(PORT, Box::new(Disk::new(2_048)));
        machine.run(Nanos::from_secs(1));
        client.ask(disk::SIZE, 0, 0, 0);
        machine.ask();
        assert_eq!(client.statuses(), [disk::DONE], "after {step} steps");
    }
}

/// A client that died keeps neither the server nor the client after it from working.
#[test]
fn a_client_that_dies_at_any_step_harms_no_successor() {
    for step in 0..20 {
        let (mut machine, mut client) = with_disk();
        for block in 0..disk::RECORDS as u32 {
            client.ask(disk::READ, block, 1, block * 512);
        }
        machine.ask();
        machine.run(Nanos::from_micros(step * 100));
        // It reads no answer any more. Its successor finds the pipes as they are.
        machine.run(Nanos::from_millis(100));
        let (asks, answers) = (client.asks, client.answers);
        let mut successor = Client { asks, answers };
        assert_eq!(successor.statuses(), [disk::DONE; disk::RECORDS], "after {step} steps");
        successor.ask(disk::SIZE, 0, 0, 0);
        machine.ask();
        assert_eq!(successor.statuses(), [disk::DONE], "after {step} steps");
    }
}

/// The ends of a network: of frames that come, and of frames that go.
struct Lender {
    machine: Machine,
    asks: [Writer<'static, network::Ask, { network::RECORDS }>; 2],
    news: [Reader<'static, News, { network::RECORDS }>; 2],
}

/// The numbers of the ends in a [`Lender`].
const COMES: usize = 0;
const GOES: usize = 1;

impl Lender {
    /// Returns those of a network whose reader knows nothing, with a device.
    fn new() -> Lender {
        let machine = Machine::with(NETWORKS);
        let names = [network::FROM, network::TO];
        let asks = names.map(|names| machine.ground.writer(names.asks).unwrap());
        let news = names.map(|names| machine.ground.reader(names.news).unwrap());
        let mut lender = Lender { machine, asks, news };
        attach(PORT, Box::new(Adapter::default()));
        lender.machine.run(Nanos::from_secs(1));
        for end in [COMES, GOES] {
            let news = lender.news(end);
            assert!(news.iter().any(|(what, ..)| *what == network::STATE), "{news:?}");
        }
        lender
    }

    fn ask(&mut self, what: u16, slot: u32, bytes: u16) {
        let end = if what == network::SEND { GOES } else { COMES };
        self.asks[end].push(&network::Ask { slot, what, bytes, written: 0 }).unwrap();
    }

    fn news(&mut self, end: usize) -> Vec<(u32, u32, u32)> {
        let news = std::iter::from_fn(|| self.news[end].pop());
        news.map(|news| (news.what, news.slot, news.status)).collect()
    }
}

#[test]
fn a_slot_is_lent_once_and_sent_once() {
    let mut lender = Lender::new();
    for slot in [3, 3, network::SLOTS] {
        lender.ask(network::LEND, slot, 0);
        lender.ask(network::SEND, slot, 64);
    }
    lender.machine.ask();
    let nonsense = |slot| (network::BACK, slot, network::NONSENSE);
    for end in [COMES, GOES] {
        assert_eq!(lender.news(end), [nonsense(3), nonsense(network::SLOTS)]);
    }
}

/// Every frame comes back exactly once when the device goes, at any step, and slots stay lent.
#[test]
fn frames_come_back_once_and_slots_stay_lent() {
    for step in 0..30 {
        let mut lender = Lender::new();
        for slot in 0..4 {
            lender.ask(network::LEND, slot, 0);
            lender.ask(network::SEND, slot, 60);
        }
        lender.machine.ask();
        lender.machine.run(Nanos::from_micros(step * 40));
        detach(PORT);
        lender.machine.run(Nanos::from_millis(200));
        let news = lender.news(GOES);
        let back = news.iter().filter(|(what, ..)| *what == network::BACK);
        let mut slots: Vec<u32> = back.map(|(_, slot, _)| *slot).collect();
        slots.sort_unstable();
        assert_eq!(slots, [0, 1, 2, 3], "after {step} steps: {news:?}");
        assert!(news.iter().any(|(what, ..)| *what == network::GONE), "{news:?}");
        let news = lender.news(COMES);
        assert!(news.iter().all(|(what, ..)| *what != network::BACK), "{news:?}");
        lender.ask(network::SEND, 3, 60);
        lender.machine.ask();
        assert_eq!(lender.news(GOES), [(network::BACK, 3, network::DROPPED)]);
    }
}

/// A client that died keeps no slot for ever: its successor has each, once.
#[test]
fn slots_of_a_dead_client_are_its_successors() {
    for step in 0..20 {
        let mut lender = Lender::new();
        for slot in 0..8 {
            lender.ask(network::LEND, slot, 0);
            lender.ask(network::SEND, slot, 60);
        }
        lender.machine.ask();
        lender.machine.run(Nanos::from_micros(step * 100));
        // The successors find the news as they are. The reader begins, and the writer waits for
        // the frames that were under way.
        lender.ask(network::BEGIN, 0, 0);
        lender.machine.ask();
        lender.machine.run(Nanos::from_millis(100));
        let news = lender.news(GOES);
        let back = news.iter().filter(|(what, ..)| *what == network::BACK).count();
        assert_eq!(back, 8, "after {step} steps: {news:?}");
        lender.news(COMES);
        for slot in 0..network::SLOTS {
            lender.ask(network::LEND, slot, 0);
        }
        lender.machine.ask();
        let news = lender.news(COMES);
        let nonsense = news.iter().filter(|news| news.2 == network::NONSENSE).count();
        assert_eq!(nonsense as u32, network::SLOTS, "all are the server's: {news:?}");
    }
}

/// A client of a camera.
struct Viewer {
    pieces: Reader<'static, FramePiece, { camera::RECORDS }>,
    back: Writer<'static, Back, { camera::RECORDS }>,
}

impl Viewer {
    /// Reads pieces, and returns their places; an end without bytes has none.
    fn places(&mut self) -> Vec<u64> {
        let pieces = std::iter::from_fn(|| self.pieces.pop());
        pieces.filter(|piece| piece.bytes > 0).map(|piece| piece.place.into()).collect()
    }

    fn give_back(&mut self, places: impl IntoIterator<Item = u64>) {
        places.into_iter().for_each(|place| self.back.push(&Back { place }).expect("room"));
    }
}

/// Places that a dead client of a camera had are its successor's to give back, and nobody gives
/// back what no client has.
#[test]
fn a_camera_goes_on_for_the_successor_of_a_dead_client() {
    for step in 0..8 {
        let mut machine = Machine::with(&[(SERVES, &[ServiceKind::Cameras as u64])]);
        let pieces = machine.ground.reader(camera::NAMES[0].pieces).unwrap();
        let back = machine.ground.writer(camera::NAMES[0].returned).unwrap();
        let mut viewer = Viewer { pieces, back };
        attach(SUPERSPEED, Box::new(CameraModel::busy()));
        let mut told = BTreeSet::new();
        for _ in 0..1_000 {
            if !told.is_empty() {
                break;
            }
            machine.run(Nanos::from_millis(1));
            told.extend(viewer.places());
        }
        machine.run(Nanos::from_millis(step));
        told.extend(viewer.places());
        assert!(!told.is_empty() && told.len() < 128, "{told:?}");
        // It gives back what it has never had, and one place that it has.
        viewer.give_back((0..128).filter(|place| !told.contains(place)));
        viewer.give_back(told.pop_first());
        machine.ask();
        // It dies with the others, and no place is left after a while. None is told twice.
        machine.run(Nanos::from_millis(100));
        for place in viewer.places() {
            assert!(told.insert(place), "after {step} steps: {place} is told twice");
        }
        machine.run(Nanos::from_millis(50));
        assert_eq!(viewer.places(), [], "after {step} steps");
        viewer.give_back((0..128).chain([128, u64::MAX, 1 << 32]));
        machine.run(Nanos::from_millis(150));
        let again: BTreeSet<u64> = viewer.places().into_iter().collect();
        assert!(again.len() > 100 && again.iter().all(|place| *place < 128), "{again:?}");
    }
}

/// Any disk at the port.
const DISK: Expected = Expected {
    interface: 0,
    service: ServiceKind::Disks,
    connector: PORT,
    route: 0,
    identity: (0, 0),
    serial: 0,
};

/// Returns a machine whose description has this disk.
fn expecting(disk: Expected) -> Machine {
    Machine::with(&[DISKS[0], (DEVICES, &disk.words())])
}

/// Returns the connectors and the fates of devices that were reported since the last call.
fn fates() -> Vec<(u8, Fate)> {
    let fate = |said| match said {
        Measurement::Device(DeviceReport { connector, fate, .. }) => Some((connector, fate)),
        _ => None,
    };
    take_reports().into_iter().filter_map(fate).collect()
}

/// A device that the description has elsewhere is not served, in any order. The described
/// one is.
#[test]
fn a_foreign_disk_is_not_the_disk() {
    let mut machine = expecting(Expected { connector: 3, ..DISK });
    let mut client = Client::new(&machine);
    attach(PORT, Box::new(Disk::new(64)));
    machine.run(Nanos::from_secs(1));
    let lines = take_lines();
    let refused = lines.iter().filter(|line| line.contains("is not a described one: not served"));
    assert_eq!(refused.count(), 1, "{lines:?}");
    assert_eq!(fates(), [(PORT, Fate::Stranger)]);
    client.ask(disk::SIZE, 0, 0, 0);
    machine.ask();
    assert_eq!(client.statuses(), [disk::GONE]);
    attach(3, Box::new(Disk::new(2_048)));
    machine.run(Nanos::from_secs(1));
    assert!(logged("2048 blocks of 512 bytes"));
    assert_eq!(fates(), [(3, Fate::Works)]);
}

/// A device that nobody serves is told, too.
#[test]
fn a_keyboard_is_not_served_by_a_server_of_disks() {
    let mut machine = expecting(DISK);
    attach(PORT, Box::new(KeyboardModel::typing(Nanos::from_millis(10), 100)));
    machine.run(Nanos::from_secs(1));
    assert_eq!(fates(), [(PORT, Fate::Unserved)]);
}

/// A device that says it is another is not served where the description has it.
#[test]
fn a_disk_of_another_vendor_is_not_the_disk() {
    for (identity, served) in [((0, 0), true), ((0x1234, 0), false), ((0x1234, 1), false)] {
        let mut machine = expecting(Expected { identity, ..DISK });
        attach(PORT, Box::new(Disk::new(2_048)));
        machine.run(Nanos::from_secs(1));
        assert_eq!(logged("2048 blocks of 512 bytes"), served, "{identity:?}");
        let fate = if served { Fate::Works } else { Fate::Stranger };
        assert_eq!(fates(), [(PORT, fate)]);
    }
}

/// A stick with another serial number is not written to; the described one is, when it comes.
#[test]
fn a_stick_with_another_serial_number_is_not_written_to() {
    let serial = Expected::key("4C530001");
    let mut machine = expecting(Expected { serial, ..DISK });
    let mut client = Client::new(&machine);
    for foreign in ["4C530002", "4C53000", ""] {
        attach(PORT, Box::new(Disk::with_serial(2_048, foreign)));
        machine.run(Nanos::from_secs(1));
        client.ask(disk::WRITE, 7, 2, 0);
        machine.ask();
        machine.run(Nanos::from_millis(50));
        assert_eq!(client.statuses(), [disk::GONE], "{foreign}");
        let lines = take_lines();
        let said = format!("its serial number is \"{foreign}\"");
        let why = "a disk 1209:0003 has not the serial number of the described one: not served";
        let has = |words: &str| lines.iter().any(|line| line.contains(words));
        assert!(has(&said) && has(why), "{lines:?}");
        assert_eq!(fates(), [(PORT, Fate::OtherSerial)]);
        detach(PORT);
        machine.run(Nanos::from_millis(200));
    }
    attach(PORT, Box::new(Disk::with_serial(2_048, "4C530001")));
    machine.run(Nanos::from_secs(1));
    client.ask(disk::WRITE, 7, 2, 0);
    machine.ask();
    machine.run(Nanos::from_millis(50));
    assert_eq!(client.statuses(), [disk::DONE]);
    let lines = take_lines();
    assert!(lines.iter().all(|line| !line.contains("serial number")), "{lines:?}");
}
