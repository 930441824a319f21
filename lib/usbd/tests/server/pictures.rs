//! A camera with a pipe: the picture and the period that the pipe says, judged by the camera's own
//! clock.

use crate::ground::{attach, detach};
use crate::machine::Machine;
use diapason_abi::Nanos;
use diapason_contract::camera::{
    self, Back, CameraNames, END, FramePiece, OUTSIDE, RECORDS, WHOLE,
};
use diapason_contract::can::CHANNELS;
use diapason_contract::carried::{CONTRACTS, Contract, Contracts};
use diapason_contract::settings::{DEVICES, Expected, SERVES};
use diapason_contract::source::{MessageShape, PipeSource, SHAPES, SOURCES};
use diapason_contract::threads::ServiceKind;
use diapason_devices::camera::CameraModel;
use diapason_pipe::{Reader, Writer};
use diapason_usbd::Platform as _;

/// The port of super speed of connector 1. Those of other connectors follow.
const PORT: u8 = 5;
const BYTES: usize = 614_400;

/// The reader's ends of a camera's pipe, and the bytes of the picture under way.
struct View {
    pieces: Reader<'static, FramePiece, RECORDS>,
    back: Writer<'static, Back, RECORDS>,
    bytes: u32,
}

impl View {
    /// Returns the ends of the pictures that came, whose pieces add up.
    fn take(&mut self) -> Vec<FramePiece> {
        let mut ends = Vec::new();
        while let Some(piece) = self.pieces.pop() {
            self.bytes += piece.bytes;
            if piece.bytes > 0 {
                self.back.push(&Back { place: piece.place.into() }).unwrap();
            }
            if piece.flags & END != 0 {
                assert_eq!(core::mem::take(&mut self.bytes), piece.frame, "{piece:?}");
                ends.push(piece);
            }
        }
        ends
    }
}

/// A server with pipes from cameras, and their readers.
struct Viewed {
    machine: Machine,
    views: Vec<View>,
}

impl Viewed {
    /// Returns a server with a pipe from a camera for each of these periods. Camera n belongs at
    /// connector n + 1.
    fn of(periods: &[Nanos]) -> Viewed {
        let (mut contracts, mut shapes) = (Contracts::default(), [0; SOURCES.len()]);
        let mut devices = Vec::new();
        for (seat, period) in periods.iter().enumerate() {
            let (number, _) = PipeSource::seated(ServiceKind::Cameras, seat).unwrap();
            let (per, jitter) = (*period, Nanos::ZERO);
            contracts.0[number] = Some(Contract { messages: 1, per, burst: 1, jitter });
            let shape = MessageShape { bytes: BYTES, stamp: Some(0) };
            shapes[number - CHANNELS] = shape.word();
            let expected = Expected {
                service: ServiceKind::Cameras,
                interface: seat as u8,
                connector: seat as u8 + 1,
                route: 0,
                identity: (0, 0),
                serial: 0,
            };
            devices.extend(expected.words());
        }
        let machine = Machine::with(&[
            (SERVES, &[ServiceKind::Cameras as u64]),
            (CONTRACTS, &contracts.words()),
            (SHAPES, &shapes),
            (DEVICES, &devices),
        ]);
        let view = |names: &CameraNames| View {
            pieces: machine.ground.reader(names.pieces).unwrap(),
            back: machine.ground.writer(names.returned).unwrap(),
            bytes: 0,
        };
        let views = camera::NAMES.iter().take(periods.len()).map(view).collect();
        Viewed { machine, views }
    }

    fn with(period: Nanos) -> Viewed {
        Viewed::of(&[period])
    }

    /// Returns the ends of each camera's pictures of some time.
    fn watch_all(&mut self, millis: u64) -> Vec<Vec<FramePiece>> {
        let mut ends = vec![Vec::new(); self.views.len()];
        for _ in 0..millis {
            self.machine.run(Nanos::from_millis(1));
            for (view, ends) in self.views.iter_mut().zip(&mut ends) {
                ends.extend(view.take());
            }
        }
        ends
    }

    /// Unplugs a camera. The picture under way does not end.
    fn unplug(&mut self, seat: u8) {
        detach(PORT + seat);
        self.watch_all(300);
        self.views[usize::from(seat)].bytes = 0;
    }

    /// Returns the ends of the first camera's pictures of some time.
    fn watch(&mut self, millis: u64) -> Vec<FramePiece> {
        self.watch_all(millis).swap_remove(0)
    }
}

/// Returns the times from one picture to the next, each once.
fn gaps(ends: &[FramePiece]) -> Vec<u64> {
    let mut gaps: Vec<u64> = ends.windows(2).map(|pair| pair[1].time - pair[0].time).collect();
    gaps.sort_unstable();
    gaps.dedup_by(|one, other| one.abs_diff(*other) < 200);
    gaps
}

#[test]
fn each_camera_has_the_pipe_of_its_place_whichever_comes_first() {
    for order in [[0, 1], [1, 0]] {
        let mut viewed = Viewed::of(&[Nanos::from_millis(20), Nanos(33_333_300)]);
        for seat in order {
            attach(PORT + seat, Box::new(CameraModel::default()));
            viewed.watch_all(300);
        }
        let ends = viewed.watch_all(1_000);
        let [front, rear] = [&ends[0], &ends[1]].map(|ends| gaps(ends));
        assert!(front.len() == 1 && front[0].abs_diff(20_000_000) < 200, "{order:?}: {front:?}");
        assert!(rear.len() == 1 && rear[0].abs_diff(33_333_300) < 200, "{order:?}: {rear:?}");
        assert!(ends.iter().flatten().all(|end| end.flags == END | WHOLE), "{order:?}");
        (0..2).for_each(|seat| detach(PORT + seat));
    }
}

/// Checks that all pictures of a second came, each 20 ms after the one before.
#[track_caller]
fn all_came(ends: &[FramePiece]) {
    assert!((49..=51).contains(&ends.len()), "{}", ends.len());
    assert!(ends.iter().all(|end| end.flags == END | WHOLE));
}

#[test]
fn a_camera_that_leaves_or_whose_reader_sleeps_takes_nothing_from_another_one() {
    let mut viewed = Viewed::of(&[Nanos::from_millis(20); 2]);
    (0..2).for_each(|seat| attach(PORT + seat, Box::new(CameraModel::default())));
    viewed.watch_all(600);
    viewed.unplug(0);
    // A camera elsewhere does not take the seat of the one that is gone.
    attach(PORT + 2, Box::new(CameraModel::default()));
    let ends = viewed.watch_all(1_000);
    assert!(ends[0].is_empty());
    all_came(&ends[1]);
    attach(PORT, Box::new(CameraModel::default()));
    viewed.watch_all(600);
    let ends = viewed.watch_all(1_000);
    ends.iter().for_each(|ends| all_came(ends));
    // Nobody reads the first pipe any more, so the places of that camera run out.
    viewed.views.remove(0);
    all_came(&viewed.watch(1_000));
    (0..3).for_each(|seat| detach(PORT + seat));
}

#[test]
fn a_camera_is_asked_for_the_pictures_of_its_pipe() {
    for (period, agreed) in [(Nanos(33_333_000), 33_333_300), (Nanos::from_millis(20), 20_000_000)]
    {
        let mut viewed = Viewed::with(period);
        for _ in 0..2 {
            attach(PORT, Box::new(CameraModel::default()));
            let ends = viewed.watch(1_500);
            assert!(ends.len() > 25, "{}", ends.len());
            for end in &ends {
                assert_eq!((end.frame, end.flags), (BYTES as u32, END | WHOLE), "{end:?}");
                assert!(end.moved < 2_000_000, "{end:?}");
            }
            for pair in ends.windows(2) {
                let gap = pair[1].time - pair[0].time;
                assert!(gap.abs_diff(agreed) < 100, "{gap}");
            }
            viewed.unplug(0);
        }
    }
}

#[test]
fn pictures_that_come_too_often_are_outside_of_their_contract() {
    let mut viewed = Viewed::with(Nanos::from_millis(100));
    attach(PORT, Box::new(CameraModel::default()));
    let ends = viewed.watch(1_500);
    let outside = ends.iter().filter(|end| end.flags & OUTSIDE != 0).count();
    // The camera does no longer period than 33 ms: of three pictures, two are too many.
    assert!(outside > ends.len() / 2 && outside < ends.len(), "{outside} of {}", ends.len());
}
