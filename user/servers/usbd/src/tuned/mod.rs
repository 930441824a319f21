//! Tuned pipes: programs ask, the endpoint decides, the processor is reserved, channels are told.
//!
//! All of it happens on a thread and a VCPU of its own, so that a decision, which takes a while,
//! delays no message, and a program that asks without end only those that ask. The server is locked
//! only to tell its channels who listens.

mod base;
mod office;
mod reserve;

pub use base::GUARANTEE;

use crate::places::Order;
use crate::policy;
use crate::server::{Cause, Server};
use crate::told::Pipes;
use crate::{Bells, ring, stop};
use alloc::vec::Vec;
use diapason_canlib::agreement::CHANNELS;
use diapason_pipe::size::Bucket;
use diapason_pipe::tuned::Endpoint;
use diapason_rt::event::Event;
use diapason_rt::locked::Locked;
use diapason_rt::thread::Task;
use diapason_rt::{Errno, Nanos, log, time};
use office::Office;

/// The thread that answers.
pub struct Broker {
    /// What its answers are about.
    pub server: &'static Locked<Server>,
    /// Raised when there is a question.
    pub asked: Event,
    /// What is known of pipes.
    pub pipes: Pipes,
    /// Whom to wake.
    pub bells: Bells,
}

impl Task for Broker {
    fn run(&'static self) -> u64 {
        match self.serve() {
            Ok(()) => 0,
            Err(errno) => stop(errno),
        }
    }
}

impl Broker {
    fn serve(&self) -> Result<(), Errno> {
        let Some(costs) = &self.pipes.costs else {
            log!("no tuned pipes: nobody said what they cost");
            return Ok(());
        };
        let contract = |channel: usize| Some((channel as u8, self.pipes.contract(channel)?));
        let mut standing: Vec<(u8, Bucket)> = (0..CHANNELS).filter_map(contract).collect();
        let output = self.pipes.output.as_ref();
        if let Some(output) = output {
            let written =
                (0..CHANNELS as u8).filter(|channel| output.described >> channel & 1 != 0);
            standing.extend(written.map(|channel| (channel, base::acknowledged(output))));
        }
        let endpoint = Endpoint::beside(base::driver(costs, output), &standing);
        let mut office = Office::new(endpoint, &self.pipes.places, &self.asked)?;
        loop {
            // One question of each place in turn: nobody is kept waiting by another's many. And
            // who asks without end is heard at a pace for which the VCPU's list has room.
            while office.attend(self)? {
                time::sleep(policy::TUNING.pace);
            }
            self.asked.wait(Nanos::FOREVER)?;
            time::sleep(policy::TUNING.pace);
        }
    }

    /// Is the device there?
    fn has_device(&self) -> Result<bool, Errno> {
        Ok(self.server.lock()?.has_pipes())
    }

    /// Tell the channels.
    fn order(&self, order: &Order) -> Result<(), Errno> {
        let mut server = self.server.lock()?;
        let now = time::now();
        let fresh = time::work(policy::TUNING.work, || {
            server.order(order, now);
            server.attend(Cause::Asked, now)
        });
        drop(server);
        ring(self.bells, fresh);
        Ok(())
    }
}
