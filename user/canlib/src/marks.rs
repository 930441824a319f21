//! The marks in reports on written frames: how many were through, and when.

use crate::agreement::{ChannelReport, REPORTS};
use diapason_abi::Nanos;

/// The mark in one report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mark {
    /// Frames through since the channel was put on its bus.
    pub through: u64,
    /// The time of the last of the frames, by the clock of the interface.
    pub time: Nanos,
    /// When the server knew.
    pub known: Nanos,
    /// The longest that a frame was in the pipe until the server took it, since the report before.
    pub taking: Nanos,
}

/// The last ones that nobody has looked at: as many as reports can wait at once.
#[derive(Clone, Copy)]
pub(crate) struct Marks {
    marks: [Mark; REPORTS],
    first: usize,
    length: usize,
}

impl Default for Marks {
    fn default() -> Marks {
        Marks { marks: [Mark::default(); REPORTS], first: 0, length: 0 }
    }
}

impl Marks {
    /// Takes in a report by which `through` frames are through. A client that does not look loses
    /// the oldest.
    pub(crate) fn note(&mut self, report: &ChannelReport, through: u64) {
        let (time, known, taking) = (report.time, report.taken, report.taking);
        let (time, known, taking) = (Nanos(time), Nanos(known), Nanos(taking));
        let mark = Mark { through, time, known, taking };
        if let Some(place) = self.marks.get_mut((self.first + self.length) % REPORTS) {
            *place = mark;
        }
        if self.length < REPORTS {
            self.length += 1;
        } else {
            self.first = (self.first + 1) % REPORTS;
        }
    }

    pub(crate) fn take(&mut self) -> Option<Mark> {
        let mark = (self.length > 0).then(|| self.marks.get(self.first).copied())??;
        (self.first, self.length) = ((self.first + 1) % REPORTS, self.length - 1);
        Some(mark)
    }
}
