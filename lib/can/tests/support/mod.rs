//! Random frames for the tests of this crate, from a seed, and runs of a bus.

use diapason_abi::Nanos;
use diapason_can::bus::{BusEvent, EventKind};
use diapason_can::fd::LENGTHS;
use diapason_can::frame::{extended, standard};
use diapason_can::{Bus, CanFrame, FdFrame, Id};

pub use diapason_random::Random;

/// Lets a bus go on until nothing happens by itself any more, or until `end`. Returns its events.
pub fn run(bus: &mut Bus, end: Nanos) -> Vec<BusEvent> {
    while let Some(time) = bus.next_event().filter(|time| *time <= end) {
        bus.advance(time);
    }
    bus.advance(end);
    std::iter::from_fn(|| bus.poll()).collect()
}

/// Returns when each frame was through, and its identifier.
pub fn sent(events: &[BusEvent]) -> Vec<(u64, u32)> {
    let sent = events.iter().filter_map(|event| match event.kind {
        EventKind::Sent { frame, .. } => Some((event.time.0, frame.raw_id())),
        _ => None,
    });
    sent.collect()
}

/// Further random values of these tests.
pub trait Draw {
    /// Any identifier; often a small one, so that some are equal.
    fn id(&mut self) -> Id;
    /// Any frame; half of the data is made of runs, which stuffing is about.
    fn frame(&mut self) -> CanFrame;
    /// Any frame of CAN FD; half of the data is made of runs.
    fn fd_frame(&mut self) -> FdFrame;
}

impl Draw for Random {
    fn id(&mut self) -> Id {
        let raw = if self.one_in(2) { self.below(4) } else { self.bits() };
        if self.one_in(2) {
            standard(raw as u32 & 0x7ff).unwrap()
        } else {
            extended(raw as u32 & 0x1fff_ffff).unwrap()
        }
    }

    fn frame(&mut self) -> CanFrame {
        let id = self.id();
        if self.one_in(8) {
            return CanFrame::remote(id, self.below(16) as usize).unwrap();
        }
        let len = self.below(9) as usize;
        let mut bytes = [0u8; 8];
        let runs = self.one_in(2);
        for byte in &mut bytes {
            let choice = [0x00, 0xff, 0x0f, 0xf0, 0x07, 0x3c][self.below(6) as usize];
            *byte = if runs { choice } else { self.bits() as u8 };
        }
        let frame = CanFrame::data(id, &bytes[..len]).unwrap();
        if len == 8 && self.one_in(4) {
            frame.with_code(8 + self.below(8) as u8).unwrap()
        } else {
            frame
        }
    }

    fn fd_frame(&mut self) -> FdFrame {
        let length = LENGTHS[self.below(16) as usize].0 as usize;
        let runs = self.one_in(2);
        let bytes: Vec<u8> = (0..length)
            .map(|_| {
                let choice = [0x00, 0xff, 0x0f, 0xf0, 0x07, 0x3c][self.below(6) as usize];
                if runs { choice } else { self.bits() as u8 }
            })
            .collect();
        let frame = FdFrame::new(self.id(), &bytes).unwrap();
        frame.with_fast(self.one_in(2)).with_passive(self.one_in(4))
    }
}
