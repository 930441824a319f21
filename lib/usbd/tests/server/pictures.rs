//! A camera with a pipe: the picture and the period that the pipe says, judged by the camera's own
//! clock.

use crate::ground::{attach, detach};
use crate::machine::Machine;
use diapason_abi::Nanos;
use diapason_contract::camera::{self, Back, END, FramePiece, OUTSIDE, RECORDS, WHOLE};
use diapason_contract::carried::{CONTRACTS, Contract, Contracts};
use diapason_contract::settings::SERVES;
use diapason_contract::source::{MessageShape, PipeSource, SHAPES};
use diapason_contract::threads::ServiceKind;
use diapason_devices::camera::CameraModel;
use diapason_pipe::{Reader, Writer};
use diapason_usbd::Platform as _;

/// A port of super speed.
const PORT: u8 = 5;
const BYTES: usize = 614_400;

/// A server with a pipe from a camera, and the reader's ends.
struct Viewed {
    machine: Machine,
    pieces: Reader<'static, FramePiece, RECORDS>,
    back: Writer<'static, Back, RECORDS>,
}

impl Viewed {
    fn with(period: Nanos) -> Viewed {
        let (source, _) = PipeSource::of(ServiceKind::Cameras).unwrap();
        let mut contracts = Contracts::default();
        let jitter = Nanos::ZERO;
        contracts.0[source] = Some(Contract { messages: 1, per: period, burst: 1, jitter });
        let shape = MessageShape { bytes: BYTES, stamp: Some(0) }.word();
        let machine = Machine::with(&[
            (SERVES, &[ServiceKind::Cameras as u64]),
            (CONTRACTS, &contracts.words()),
            (SHAPES, &[0, 0, shape]),
        ]);
        let pieces = machine.ground.reader(camera::PIECES).unwrap();
        let back = machine.ground.writer(camera::RETURNED).unwrap();
        Viewed { machine, pieces, back }
    }

    /// Returns the ends of the pictures of some time, whose pieces add up.
    fn watch(&mut self, millis: u64, bytes: &mut u32) -> Vec<FramePiece> {
        let mut ends = Vec::new();
        for _ in 0..millis {
            self.machine.run(Nanos::from_millis(1));
            while let Some(piece) = self.pieces.pop() {
                *bytes += piece.bytes;
                if piece.bytes > 0 {
                    self.back.push(&Back { place: piece.place.into() }).unwrap();
                }
                if piece.flags & END != 0 {
                    assert_eq!(core::mem::take(bytes), piece.frame, "{piece:?}");
                    ends.push(piece);
                }
            }
        }
        ends
    }
}

#[test]
fn a_camera_is_asked_for_the_pictures_of_its_pipe() {
    for (period, agreed) in [(Nanos(33_333_000), 33_333_300), (Nanos::from_millis(20), 20_000_000)]
    {
        let mut viewed = Viewed::with(period);
        for _ in 0..2 {
            attach(PORT, Box::new(CameraModel::default()));
            let ends = viewed.watch(1_500, &mut 0);
            assert!(ends.len() > 25, "{}", ends.len());
            for end in &ends {
                assert_eq!((end.frame, end.flags), (BYTES as u32, END | WHOLE), "{end:?}");
                assert!(end.moved < 2_000_000, "{end:?}");
            }
            for pair in ends.windows(2) {
                let gap = pair[1].time - pair[0].time;
                assert!(gap.abs_diff(agreed) < 100, "{gap}");
            }
            detach(PORT);
            viewed.watch(300, &mut 0);
        }
    }
}

#[test]
fn pictures_that_come_too_often_are_outside_of_their_contract() {
    let mut viewed = Viewed::with(Nanos::from_millis(100));
    attach(PORT, Box::new(CameraModel::default()));
    let ends = viewed.watch(1_500, &mut 0);
    let outside = ends.iter().filter(|end| end.flags & OUTSIDE != 0).count();
    // The camera does no longer period than 33 ms: of three pictures, two are too many.
    assert!(outside > ends.len() / 2 && outside < ends.len(), "{outside} of {}", ends.len());
}
