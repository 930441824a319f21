//! A branch minds its own business: its lock is taken by its own threads, and by the thread that
//! manages when it looks whether something is due.

use crate::ground::{attach, detach, take_lines};
use crate::machine::{Machine, logged};
use diapason_abi::Nanos;
use diapason_can::exchange::ReceivedFrame;
use diapason_contract::can::{self, RECORDS};
use diapason_contract::disk::{self, Ask, DiskAnswer};
use diapason_contract::settings::{OPENS, SERVES};
use diapason_contract::threads::ServiceKind::{Can, Disks, Keyboards};
use diapason_devices::can::CanBus;
use diapason_devices::disk::Disk;
use diapason_devices::keyboard::KeyboardModel;
use diapason_devices::kvaser::{CHANNELS, Hydra, Identity};
use diapason_pipe::{Reader, Writer};
use diapason_usbd::Platform;

/// CAN interfaces, keyboards and disks, and the pipe of the busiest channel.
const SETTINGS: &[(&str, &[u64])] =
    &[(SERVES, &[Can as u64, Keyboards as u64, Disks as u64]), (OPENS, &[4])];
const CAN: u16 = 1;
const PORT: u8 = 1;
const OTHER: u8 = 2;

struct Rig {
    machine: Machine,
    arrivals: Reader<'static, ReceivedFrame, RECORDS>,
    asks: Writer<'static, Ask, { disk::RECORDS }>,
    answers: Reader<'static, DiskAnswer, { disk::RECORDS }>,
    frames: u64,
    /// Frames that came while nobody read.
    lost: u64,
    /// Asks that are not answered.
    pending: usize,
}

impl Rig {
    /// Returns a CAN interface whose channel is open, and a disk.
    fn new() -> Rig {
        let mut machine = Machine::with(SETTINGS);
        let arrivals = machine.ground.reader(can::names(4).unwrap().arrivals).unwrap();
        let asks = machine.ground.writer(disk::NAMES[0].asks).unwrap();
        let answers = machine.ground.reader(disk::NAMES[0].answers).unwrap();
        let buses: Vec<_> = (0..CHANNELS).map(CanBus::busy).collect();
        attach(PORT, Box::new(Hydra::new(Identity::default(), &buses)));
        attach(OTHER, Box::new(Disk::new(2_048)));
        machine.run(Nanos::from_secs(1));
        assert!(logged("2048 blocks of 512 bytes"));
        let mut rig = Rig { machine, arrivals, asks, answers, frames: 0, lost: 0, pending: 0 };
        rig.lost = rig.arrivals.lost();
        assert!(rig.take() > 100, "no frame came");
        rig.machine.is_steady(CAN);
        rig
    }

    /// Takes the frames that have come. None may be lost.
    fn take(&mut self) -> u64 {
        let came = std::iter::from_fn(|| self.arrivals.pop()).count() as u64;
        assert_eq!(self.arrivals.lost(), self.lost, "a frame was lost");
        self.frames += came;
        came
    }

    /// Lets the disk read as fast as it can for so long; returns how many answers it gave.
    fn read(&mut self, time: Nanos) -> usize {
        let mut answered = 0;
        for _ in 0..time.0 / 1_000_000 {
            while self.pending < 4 {
                self.asks
                    .push(&Ask { what: disk::READ, block: 0, count: 64, place: 0, due: 0 })
                    .unwrap();
                self.pending += 1;
            }
            self.machine.ask();
            self.machine.run(Nanos::from_millis(1));
            let came = std::iter::from_fn(|| self.answers.pop()).count();
            (answered, self.pending) = (answered + came, self.pending - came);
            self.take();
        }
        answered
    }
}

#[test]
fn a_disk_at_full_speed_leaves_the_branch_of_can_alone() {
    let mut rig = Rig::new();
    let before = rig.frames;
    assert!(rig.read(Nanos::from_millis(300)) > 200, "the disk is slow");
    assert!(rig.frames - before > 900, "{} frames", rig.frames - before);
    assert_eq!(rig.machine.visits, 0, "something was due in a branch that is served");
}

#[test]
fn devices_that_come_fail_and_go_leave_the_branch_of_can_alone() {
    let mut rig = Rig::new();
    let before = rig.frames;
    for step in 0..10 {
        rig.read(Nanos::from_millis(20 + step));
        detach(OTHER);
        rig.read(Nanos::from_millis(200));
        match step % 2 {
            0 => attach(OTHER, Box::new(KeyboardModel::typing(Nanos::from_millis(10), 100))),
            _ => attach(OTHER, Box::new(Disk::new(2_048))),
        }
        rig.read(Nanos::from_millis(400));
    }
    let lines = take_lines();
    let count = |words: &str| lines.iter().filter(|line| line.contains(words)).count();
    assert_eq!((count("a keyboard is gone"), count("a disk is gone")), (5, 5), "{lines:?}");
    assert!(rig.frames - before > 15_000, "{} frames", rig.frames - before);
    assert_eq!(rig.machine.visits, 0, "something was due in a branch that is served");
}
