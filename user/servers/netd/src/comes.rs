//! The frames that a USB network device brings: this process reads its `[[pipe]]` and sorts each
//! frame. It gives the place of a frame back when it takes the next one.

use crate::report::Reports;
use crate::sorting::Sorting;
use diapason_abi::Key;
use diapason_contract::ethernet::{SOCKETS, SocketTerms};
use diapason_contract::network::{FROM, SLOTS};
use diapason_ether::{Buffers, Discard};
use diapason_netlib::memory::FrameSlots;
use diapason_rt::{Errno, time};
use diapason_usblib::network::{CameFrame, FrameReader};

/// The reader of the pipe.
pub(crate) struct Coming {
    frames: FrameReader,
    places: FrameSlots,
    sorting: Sorting,
    reports: Reports,
}

impl Coming {
    /// Opens the pipe and the inboxes of all sockets.
    ///
    /// # Errors
    /// `Busy` if two sockets have one port.
    pub fn open(reports: Reports, all: impl Iterator<Item = SocketTerms>) -> Result<Coming, Errno> {
        Ok(Coming {
            frames: FrameReader::open()?,
            places: FrameSlots::of_adapter(FROM.data, SLOTS as u16)?,
            sorting: Sorting::open(all)?,
            reports,
        })
    }

    /// Sorts frames for ever.
    ///
    /// # Errors
    /// Those of waiting for frames.
    pub fn run(mut self) -> Result<(), Errno> {
        let work = Key::new(self.frames.source().message);
        loop {
            let due = self.reports.due(time::now());
            match self.frames.read_wait(due) {
                Ok(frame) => {
                    let woken = time::work_of(work, || self.sort(&frame));
                    self.sorting.ring(woken);
                }
                Err(Errno::TimedOut) => {}
                Err(errno) => return Err(errno),
            }
            self.reports.look(time::now(), ([0; 2], &[0; SOCKETS]), None, || 0);
        }
    }

    /// Returns the listeners whose readers may sleep, one bit each.
    fn sort(&mut self, frame: &CameFrame) -> u64 {
        self.sorting.came(frame.taken);
        let woken = match self.places.buffer(frame.place()).get(..frame.bytes as usize) {
            Some(bytes) => self.sorting.sort(bytes),
            None => self.sorting.refuse(Discard::Long),
        };
        self.sorting.count();
        woken
    }
}
