//! Sorting: each frame goes to the slots of one socket, by fields at fixed places, and its reader
//! is woken. No protocol is known here.

use crate::watch::Watch;
use diapason_contract::ethernet::{SLOT_FRAME, SOCKET_NAMES, SOCKETS, SocketTerms};
use diapason_ether::{CopyingDemux, Discard, Posted, Slots};
use diapason_netlib::memory::{FrameSlots, inbox};
use diapason_rt::sync::Semaphore;
use diapason_rt::{Errno, Nanos, log, time};

/// The readers' ends of all sockets, by the number of their listener.
struct Sockets {
    slots: [Option<FrameSlots>; SOCKETS],
    bells: [Option<Semaphore>; SOCKETS],
    watches: [Option<Watch>; SOCKETS],
    /// When the frame that is sorted was there.
    came: Nanos,
}

impl Slots for Sockets {
    #[inline(always)]
    fn copy(&mut self, listener: u8, slot: u16, frame: &[u8]) {
        if let Some(Some(slots)) = self.slots.get(usize::from(listener)) {
            slots.copy(slot, frame);
            slots.stamp(slot, self.came);
        }
    }
}

/// The filter of an adapter, with the sockets behind it.
pub(crate) struct Sorting {
    demux: CopyingDemux<'static, SOCKETS>,
    sockets: Sockets,
    /// The watch over everything that came.
    all: Watch,
}

impl Sorting {
    /// Opens the inboxes of all sockets.
    ///
    /// # Errors
    /// `Busy` if two sockets have one port.
    pub fn open(all: impl Iterator<Item = SocketTerms>) -> Result<Sorting, Errno> {
        let mut demux = CopyingDemux::default();
        let mut sockets = Sockets {
            slots: [None; SOCKETS],
            bells: [None; SOCKETS],
            watches: [const { None }; SOCKETS],
            came: Nanos::ZERO,
        };
        for terms in all {
            let known = SOCKET_NAMES.get(usize::from(terms.number)).ok_or(Errno::Absent)?;
            let (inbox, slots) = inbox(known.inbox, terms.quota)?;
            let place = if terms.is_rest() {
                demux.listen_to_rest(inbox, terms.quota)
            } else {
                demux.listen(&diapason_netlib::listener(&terms), inbox)
            };
            let place = place.map_err(|refusal| {
                log!("port {} is refused: {refusal:?}", terms.port);
                Errno::Busy
            })?;
            sockets.watches[usize::from(place)] = Some(Watch::of_socket(place, terms.number)?);
            sockets.slots[usize::from(place)] = Some(slots);
            sockets.bells[usize::from(place)] = Some(Semaphore::open(known.ready)?);
        }
        Ok(Sorting { demux, sockets, all: Watch::of_adapter()? })
    }

    /// Says when the frames that are sorted next were there.
    pub const fn came(&mut self, at: Nanos) {
        self.sockets.came = at;
    }

    /// Sorts a frame. Returns the listener whose reader may sleep, as a bit.
    pub fn sort(&mut self, frame: &[u8]) -> u64 {
        if frame.len() > SLOT_FRAME {
            return self.refuse(Discard::Long);
        }
        woken(self.demux.arrive(frame, &mut self.sockets))
    }

    /// Counts a frame that is discarded for this reason.
    pub fn refuse(&mut self, reason: Discard) -> u64 {
        woken(self.demux.refuse(reason))
    }

    /// Counts frames that the adapter lost.
    pub const fn lost(&mut self, frames: u64) {
        self.demux.lost(frames);
    }

    /// Wakes the readers of these listeners.
    pub fn ring(&self, woken: u64) {
        for (place, bell) in self.sockets.bells.iter().enumerate() {
            if let (Some(bell), true) = (bell, woken >> place & 1 != 0) {
                // At its limit it has been given often enough.
                let _ = bell.give();
            }
        }
    }

    /// Counts what came, and compares it with what the plan assumes.
    pub fn count(&mut self) {
        let (now, demux) = (time::now(), &self.demux);
        self.all.note(now, demux.counts(), 0);
        for (place, watch) in (0..).zip(self.sockets.watches.iter_mut().flatten()) {
            if let Some(counts) = demux.counts_of(place) {
                watch.note(now, counts, demux.waiting(place));
            }
        }
    }
}

fn woken(posted: Posted) -> u64 {
    match posted {
        Posted::Wakes(place) => 1 << place,
        _ => 0,
    }
}
