//! The messages that a bottom half with work for each message handles beside those that a bill is
//! about: those of the device's other pipe, and what writers ask for.
//!
//! A frame that goes to a device is work twice: when its writer gives it, and when the device has
//! it. A bill is about the second, and counts the first beside it.
//!
//! Each bill counts what is beside it by its contract, and by how long it takes at most until the
//! bottom half has handled it. That is in the bills themselves, so all are found together: from
//! nothing, every step counts as much as the bills before it say, until that is enough. No message
//! can be the first that takes longer.

use crate::driver::worst;
use crate::missing::Missing;
use crate::pipes::{Plant, contract};
use diapason_abi::Nanos;
use diapason_pipe::bill::What;
use diapason_pipe::size::Bucket;
use std::cell::OnceCell;

/// Steps to times that are not exceeded.
const STEPS: usize = 64;

impl Plant<'_> {
    /// Returns whether the bottom half of a pipe has work for each message beside that of a
    /// wake-up.
    fn has_each(&self, index: usize) -> bool {
        let source = self.system.pipes[index].source();
        source.is_some_and(|source| worst(self.system, source.home.each).is_some())
    }

    /// Returns whether what the writer of a pipe gives is work for each message, so that one
    /// wake-up may take any number.
    pub(crate) fn asks_apart(&self, index: usize) -> bool {
        let pipe = &self.system.pipes[index];
        pipe.has_frames() && pipe.is_written() && self.has_each(index)
    }

    /// Returns the numbers of the pipes whose messages the bottom half of a pipe handles beside
    /// those that the pipe's bill is about. A pipe with two works for a message is there once more.
    fn siblings(&self, index: usize) -> impl Iterator<Item = usize> {
        let pipes = &self.system.pipes;
        let works = move |other: usize| {
            let is_of_device = self.has_each(index) && pipes[other].usb == pipes[index].usb;
            let ends = is_of_device && other != index;
            let begins = is_of_device && self.asks_apart(other);
            [ends, begins].into_iter().filter(|is_work| *is_work).map(move |_| other)
        };
        (0..pipes.len()).flat_map(works)
    }

    /// Returns the contracts of what the bottom half of a pipe handles beside the messages that the
    /// pipe's bill is about, as they are when it has handled them.
    ///
    /// # Errors
    /// Nothing bounds how late it handles them.
    pub(crate) fn beside(&self, index: usize) -> Result<Vec<[Bucket; 1]>, Missing> {
        let as_handled = |other: usize| {
            let (own, late) = (contract(&self.system.pipes[other]), self.late(other));
            if late < Nanos::FOREVER {
                let written = self.written_late(other)?;
                return Ok([own.with_jitter(own.jitter + written + late)]);
            }
            let [it, other] = [index, other].map(|index| &self.system.pipes[index]);
            let half = self.driver(it).home.vcpu;
            let more = format!("give `{half}` more of the processor or a shorter work");
            if it.number == other.number {
                let what = format!("nothing bounds how late messages of `{}` are handled", it.name);
                return Err((what, format!("{more}, or make its messages rarer")));
            }
            let what = format!(
                "nothing bounds how late messages of `{}` are handled, and those of `{}` wait for \
                 them",
                other.name, it.name
            );
            Err((what, format!("{more}, or make messages of one of the two rarer")))
        };
        self.siblings(index).map(as_handled).collect()
    }

    /// Returns how long after it is due a message of a pipe begins, if a program writes it.
    fn written_late(&self, index: usize) -> Result<Nanos, Missing> {
        let is_written = self.system.pipes[index].is_written();
        if is_written { self.lateness(index) } else { Ok(Nanos::ZERO) }
    }

    /// Returns how long a message of a pipe takes at most until the bottom half has handled it, if
    /// a bill needs to know.
    pub(crate) fn late(&self, index: usize) -> Nanos {
        self.late.get_or_init(|| self.latest())[index]
    }

    /// Returns how long the messages of each pipe take at most until the bottom half has handled
    /// them, as far as a bill needs to know.
    fn latest(&self) -> Vec<Nanos> {
        let mut late = vec![Nanos::ZERO; self.system.pipes.len()];
        let asked: Vec<usize> =
            (0..late.len()).filter(|index| self.siblings(*index).next().is_some()).collect();
        for _ in 0..STEPS {
            let trial = Plant { late: OnceCell::from(late.clone()), ..*self };
            let mut next = late.clone();
            for index in &asked {
                next[*index] = late[*index].max(trial.handled(*index));
            }
            if next == late {
                return late;
            }
            late = next;
        }
        asked.into_iter().for_each(|index| late[index] = Nanos::FOREVER);
        late
    }

    /// Returns how long a message of a pipe takes at most until the bottom half has handled it.
    fn handled(&self, index: usize) -> Nanos {
        let piped = match self.system.pipes[index].is_written() {
            true => self.sink(index),
            false => self.input(index),
        };
        let bill = piped.ok().and_then(|piped| piped.bill.ok());
        bill.map_or(Nanos::FOREVER, |bill| bill.before(What::User))
    }
}
