//! Pipes from and to one device whose bottom half has work for each message: the messages of one
//! delay those of the other.
//!
//! Each bill counts the messages of the other pipe by their contract, and by how long they take at
//! most until the bottom half has handled them. That is in the bill of the other pipe, so both are
//! found together: from nothing, every step counts as much as the bills before it say, until that
//! is enough. No message can be the first that takes longer.

use crate::driver::worst;
use crate::human;
use crate::missing::Missing;
use crate::pipes::{Plant, contract};
use diapason_abi::Nanos;
use diapason_analysis::server::IoSupply;
use diapason_pipe::bill::{Service, What};
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

    /// Checks that the VCPU of a bottom half may be woken as often as the pipes of its device need:
    /// by an interrupt and at the end of its pace, and by each ask and at the end of the rest after
    /// it. A reader that begins asks once. A program that is no end asks without a pause.
    ///
    /// The interval of the interrupts is enough for one pipe that nobody else asks for.
    pub(crate) fn has_wakes(&self, index: usize, place: usize) -> Result<(), Missing> {
        let pipes = &self.system.pipes;
        let (usb, home) = (pipes[index].usb, self.driver(&pipes[index]).home);
        let own: Vec<usize> = (0..pipes.len()).filter(|it| pipes[*it].usb == usb).collect();
        let supply = IoSupply::inherited(&self.core.system, place);
        let (Some(asked), Some(supply)) = (home.asked, supply) else { return Ok(()) };
        let is_pestered = self.is_pestered(asked, &own);
        if own.len() < 2 && !is_pestered {
            return Ok(());
        }
        let period = supply.period();
        let paces = period.0.div_ceil(home.pace.0.max(1));
        let messages = |number: &usize| {
            let contract = contract(&pipes[*number]);
            // No message takes longer than this to its interrupt, or there is one in each pace.
            contract.most(period + contract.per.max(self.late(*number)))
        };
        let told = own.iter().map(messages).fold(0, u64::saturating_add);
        let written = own.iter().filter(|number| pipes[**number].is_written());
        let asks: u64 = written.map(|number| contract(&pipes[*number]).most(period)).sum();
        let asks = if is_pestered { paces } else { asks + 1 };
        let needed = 2 * (told.min(paces) + asks);
        let allowed = self.core.system.ios[place].wakeups(period);
        if needed <= allowed {
            return Ok(());
        }
        let name = &self.system.vcpus[usize::from(self.core.ios[place])].name;
        let what = format!(
            "`{name}` may be woken {needed} times in {}, and its `interval` says {allowed}: {}",
            human(period.0),
            if is_pestered { "a third program asks, too" } else { "messages go both ways" },
        );
        let micros = period.0 / needed / 1_000;
        Err((what, format!("write at most `interval = \"{micros}us\"`")))
    }

    /// Returns whether a program uses the semaphore by which the ends of these pipes ask their
    /// server, and is none of them.
    fn is_pestered(&self, asked: &str, own: &[usize]) -> bool {
        let is_part = |process: u16| {
            own.iter()
                .map(|number| &self.system.pipes[*number])
                .any(|pipe| pipe.server == process || pipe.ends_at(process))
        };
        let mut processes = (0u16..).zip(&self.system.processes);
        processes.any(|(number, it)| !is_part(number) && it.uses.iter().any(|name| name == asked))
    }

    /// Returns the contracts of the messages that the bottom half of a pipe handles beside its own,
    /// as they are when it has handled them.
    pub(crate) fn beside(&self, index: usize) -> Vec<[Bucket; 1]> {
        let as_handled = |other: usize| {
            let own = contract(&self.system.pipes[other]);
            [own.with_jitter(Nanos(own.jitter.0.saturating_add(self.late(other).0)))]
        };
        self.siblings(index).map(as_handled).collect()
    }

    /// Returns how long a message of a pipe takes at most until the bottom half has handled it, if
    /// another pipe of the device needs to know.
    fn late(&self, index: usize) -> Nanos {
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
