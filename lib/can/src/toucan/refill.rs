//! When a module asks for more messages, and whether its driver was in time.
//!
//! The bounds assume that the driver refills the shared buffers before they are empty, and that it
//! loads a message that lacks an echo within one frame. Both are counted here.

use super::controller::{ToucanDriver, ToucanRegisters};
use super::outbox::BufferedOutbox;
use super::waiting::Waiting;

impl BufferedOutbox {
    /// Takes in that `frames` of this module went through since the last call, and counts if the
    /// driver was too late: if messages waited while no shared buffer but `new` was full, or if one
    /// waited for two frames because it lacked an echo. A driver that is preempted while it loads
    /// `new` could not see that later.
    pub(super) fn note_late(
        &mut self,
        module: &ToucanDriver<impl ToucanRegisters>,
        frames: u32,
        new: Option<usize>,
    ) {
        if frames > 0 {
            self.end_doubts();
        }
        let mut others = (self.own..self.own + self.shared).filter(|buffer| Some(*buffer) != new);
        if self.armed != 0 && others.all(|buffer| self.loaded[buffer].is_none()) {
            self.counts.dry += 1;
            self.armed = 0;
            self.interrupt(module);
        }
        if let Some(before) = &mut self.lacking {
            *before += frames;
            if *before > 1 {
                self.counts.dry += 1;
                self.lacking = None;
            }
        }
    }

    /// Lets the buffer interrupt that has `spare` less urgent ones behind it, if messages wait. If
    /// one of them lacks an echo, all buffers do: the end of each own frame frees echoes.
    pub(super) fn arm(&mut self, module: &ToucanDriver<impl ToucanRegisters>) {
        let armed = match (self.queue.len(), self.lacking) {
            (0, _) => 0,
            (_, Some(_)) => u16::MAX,
            (_, None) => self.last_before_spare(),
        };
        self.armed = armed;
        self.interrupt(module);
    }

    /// Returns the shared buffer with `spare` less urgent ones behind it, or with fewer if no more
    /// are full: one bit, or none.
    fn last_before_spare(&self) -> u16 {
        let shared = self.own..self.own + self.shared;
        let behind = |waiting: Waiting| {
            self.loaded[shared.clone()].iter().flatten().filter(|other| **other > waiting).count()
        };
        let loaded = shared.clone().filter_map(|buffer| Some((self.loaded[buffer]?, buffer)));
        let all = loaded.map(|(waiting, buffer)| (behind(waiting), buffer));
        let chosen = all.filter(|(behind, _)| *behind <= self.spare).max();
        chosen.map_or(0, |(_, buffer)| 1 << buffer)
    }
}
