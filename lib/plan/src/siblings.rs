//! Pipes from and to one device whose bottom half has work for each message: the messages of one
//! delay those of the other.
//!
//! Each bill counts the messages of the other pipe by their contract, and by how long they take at
//! most until the bottom half has handled them. That is in the bill of the other pipe, so both are
//! found together: from nothing, every step counts as much as the bills before it say, until that
//! is enough. No message can be the first that takes longer.

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
    /// Returns the numbers of the other pipes of a pipe's device whose messages the bottom half
    /// handles beside the work of a wake-up.
    fn siblings(&self, index: usize) -> impl Iterator<Item = usize> {
        let pipes = &self.system.pipes;
        let pipe = &pipes[index];
        let has_each = pipe.source().is_some_and(|it| worst(self.system, it.home.each).is_some());
        let is_other = move |other: &usize| {
            let other = &pipes[*other];
            has_each && other.usb == pipe.usb && other.number != pipe.number
        };
        (0..pipes.len()).filter(is_other)
    }

    /// Returns the contracts of the messages that the bottom half of a pipe handles beside its own,
    /// as they are when it has handled them.
    ///
    /// # Errors
    /// Nothing bounds how late it handles those of another pipe.
    pub(crate) fn beside(&self, index: usize) -> Result<Vec<[Bucket; 1]>, Missing> {
        let as_handled = |other: usize| {
            let (own, late) = (contract(&self.system.pipes[other]), self.late(other));
            if late < Nanos::FOREVER {
                return Ok([own.with_jitter(own.jitter + late)]);
            }
            let [it, other] = [index, other].map(|index| &self.system.pipes[index]);
            let what = format!(
                "nothing bounds how late messages of `{}` are handled, and those of `{}` wait for \
                 them",
                other.name, it.name
            );
            let half = self.driver(it).home.vcpu;
            let remedy = format!(
                "give `{half}` more of the processor or a shorter work, or make messages of one of \
                 the two rarer"
            );
            Err((what, remedy))
        };
        self.siblings(index).map(as_handled).collect()
    }

    /// Returns how long a message of a pipe takes at most until the bottom half has handled it, if
    /// another pipe of the device needs to know.
    pub(crate) fn late(&self, index: usize) -> Nanos {
        self.late.get_or_init(|| self.latest())[index]
    }

    /// Returns how long the messages of each pipe take at most until the bottom half has handled
    /// them, as far as another pipe needs to know.
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
