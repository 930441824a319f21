//! Gate lists in the words of Linux's `taprio`: a base time, a cycle, and entries that open the
//! gates of some classes for some time.

use crate::{CLASSES, GateRefusal};
use alloc::vec::Vec;

/// One entry of a gate list: gates that are open, and for how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GateEntry {
    /// Bit n opens the gate of class n.
    pub mask: u8,
    pub interval_ns: u64,
}

/// A time in a cycle during which the gate of a class is open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GateWindow {
    /// Time from the beginning of the cycle to the opening.
    pub open_ns: u64,
    /// Length; it may reach into the next cycle. A gate that never closes has the cycle's.
    pub length_ns: u64,
}

/// A gate list that is consistent. It repeats for ever, before its base time, too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GateList {
    base_ns: u64,
    cycle_ns: u64,
    entries: Vec<GateEntry>,
    windows: [Vec<GateWindow>; CLASSES],
}

impl GateList {
    /// Returns a list whose gates are always open.
    #[must_use]
    pub fn open(cycle_ns: u64) -> GateList {
        let cycle_ns = cycle_ns.max(1);
        let entries = alloc::vec![GateEntry { mask: 0xff, interval_ns: cycle_ns }];
        GateList::built(0, cycle_ns, entries)
    }

    /// Returns a list. Without a cycle, the cycle is the sum of the entries.
    ///
    /// # Errors
    /// If there is no entry, an entry is empty, or the entries do not fill the cycle.
    pub fn new(
        base_ns: u64,
        cycle_ns: Option<u64>,
        entries: &[GateEntry],
    ) -> Result<GateList, GateRefusal> {
        if entries.is_empty() {
            return Err(GateRefusal::Empty);
        }
        if let Some(entry) = entries.iter().position(|entry| entry.interval_ns == 0) {
            return Err(GateRefusal::EmptyEntry { entry });
        }
        let filled_ns = entries.iter().fold(0_u64, |sum, it| sum.saturating_add(it.interval_ns));
        let cycle_ns = cycle_ns.unwrap_or(filled_ns);
        if cycle_ns != filled_ns || cycle_ns > i64::MAX as u64 {
            return Err(GateRefusal::Cycle { cycle_ns, filled_ns });
        }
        Ok(GateList::built(base_ns, cycle_ns, entries.to_vec()))
    }

    fn built(base_ns: u64, cycle_ns: u64, entries: Vec<GateEntry>) -> GateList {
        let windows = core::array::from_fn(|class| windows(&entries, class, cycle_ns));
        GateList { base_ns, cycle_ns, entries, windows }
    }

    /// Returns the time at which some cycle begins.
    #[must_use]
    pub fn base_ns(&self) -> u64 {
        self.base_ns
    }

    /// Returns the length of a cycle.
    #[must_use]
    pub fn cycle_ns(&self) -> u64 {
        self.cycle_ns
    }

    /// Returns the entries in their order.
    #[must_use]
    pub fn entries(&self) -> &[GateEntry] {
        &self.entries
    }

    /// Returns the same list with another base time.
    #[must_use]
    pub fn based(mut self, base_ns: u64) -> GateList {
        self.base_ns = base_ns;
        self
    }

    /// Returns the windows of a class in one cycle, in the order of their openings.
    #[must_use]
    pub fn windows(&self, class: usize) -> &[GateWindow] {
        self.windows.get(class).map_or(&[], Vec::as_slice)
    }

    /// Returns whether the gate of a class never closes.
    #[must_use]
    pub fn always(&self, class: usize) -> bool {
        class < CLASSES && self.entries.iter().all(|entry| entry.mask >> class & 1 == 1)
    }

    /// Returns whether the gates of two classes are open at the same time in some entry.
    #[must_use]
    pub fn overlap(&self, one: usize, other: usize) -> bool {
        let both = |entry: &GateEntry| entry.mask >> one & 1 == 1 && entry.mask >> other & 1 == 1;
        one < CLASSES && other < CLASSES && self.entries.iter().any(both)
    }

    /// Returns the time from the beginning of the cycle to `at`.
    #[must_use]
    pub fn phase(&self, at_ns: u64) -> u64 {
        let base = self.base_ns % self.cycle_ns;
        let at = at_ns % self.cycle_ns;
        if at >= base { at - base } else { at + (self.cycle_ns - base) }
    }

    /// Returns the earliest time from `at` on at which a frame can start and end before the gate of
    /// its class closes; `None` if no window is as long as the frame, or time has no end.
    #[must_use]
    pub fn next_start(&self, class: usize, at_ns: u64, frame_ns: u64) -> Option<u64> {
        if self.always(class) {
            return Some(at_ns);
        }
        let phase = self.phase(at_ns);
        let long = self.windows(class).iter().filter(|window| window.length_ns >= frame_ns);
        let wait = |window: &GateWindow| {
            let into = (phase + self.cycle_ns - window.open_ns) % self.cycle_ns;
            let fits = into < window.length_ns && window.length_ns - into >= frame_ns;
            if fits { 0 } else { (self.cycle_ns - into) % self.cycle_ns }
        };
        long.map(wait).min().and_then(|wait| at_ns.checked_add(wait))
    }

    /// Returns by how much a frame that starts at this time is outside of the window of its class
    /// that is nearest to it; its whole length if the class has none.
    #[must_use]
    pub fn outside(&self, class: usize, at_ns: u64, frame_ns: u64) -> u64 {
        if self.always(class) {
            return 0;
        }
        let phase = self.phase(at_ns);
        let away = |window: &GateWindow| {
            // From the opening before or with the frame, and from the next one.
            let into = (phase + self.cycle_ns - window.open_ns) % self.cycle_ns;
            let late = into.saturating_add(frame_ns).saturating_sub(window.length_ns);
            let early = self.cycle_ns - into;
            let from_next = early.max(frame_ns.saturating_sub(early + window.length_ns));
            late.min(from_next)
        };
        self.windows(class).iter().map(away).min().unwrap_or(frame_ns)
    }

    /// Checks that a frame fits into some window of its class.
    ///
    /// # Errors
    /// If every window is shorter.
    pub fn check(&self, class: usize, frame_ns: u64) -> Result<(), GateRefusal> {
        if class >= CLASSES {
            return Err(GateRefusal::Class { class });
        }
        if self.always(class) {
            return Ok(());
        }
        let longest_ns = self.windows(class).iter().map(|it| it.length_ns).max().unwrap_or(0);
        if longest_ns < frame_ns {
            return Err(GateRefusal::ShortWindow { class, longest_ns, needed_ns: frame_ns });
        }
        Ok(())
    }
}

/// Returns the windows of a class: neighbouring entries are one window, over the end of the cycle,
/// too.
fn windows(entries: &[GateEntry], class: usize, cycle_ns: u64) -> Vec<GateWindow> {
    let mut found: Vec<GateWindow> = Vec::new();
    let mut at = 0;
    let mut was_open = false;
    for entry in entries {
        let is_open = entry.mask >> class & 1 == 1;
        match found.last_mut().filter(|_| was_open && is_open) {
            Some(last) => last.length_ns += entry.interval_ns,
            None if is_open => {
                found.push(GateWindow { open_ns: at, length_ns: entry.interval_ns });
            }
            None => {}
        }
        (at, was_open) = (at + entry.interval_ns, is_open);
    }
    let reaches_over = found.len() > 1 && was_open && found[0].open_ns == 0;
    if reaches_over {
        let first = found.remove(0);
        if let Some(last) = found.last_mut() {
            last.length_ns += first.length_ns;
        }
    }
    debug_assert!(found.iter().all(|window| window.length_ns <= cycle_ns));
    found
}
