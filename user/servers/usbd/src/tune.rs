//! The thread that answers programs about tuned pipes. `diapason_usbd::tuned` decides its answers.

use crate::ground::Ground;
use crate::{Common, stop};
use alloc::vec::Vec;
use diapason_contract::threads;
use diapason_contract::tuned::names;
use diapason_rt::thread::Task;
use diapason_rt::vcpu::Vcpu;
use diapason_rt::{Errno, Nanos, time};
use diapason_usbd::platform::Reserve;
use diapason_usbd::tuned::{Interface, Office};
use diapason_usbd::{Cause, Order, Pipes};

/// The thread that answers.
pub(crate) struct Broker {
    pub(crate) common: Common,
    /// The branch with the CAN channels.
    pub(crate) branch: u16,
    /// The knowledge about pipes.
    pub(crate) pipes: Pipes,
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
        let ground = Ground::of_tuning()?;
        let mut processor = Processor::open(self.pipes.places.len())?;
        let office = Office::new(&ground, &self.pipes, &mut processor)?;
        let (Some(mut office), Some(asked)) = (office, &ground.tuning) else { return Ok(()) };
        let mut server = self;
        loop {
            // One question of each place in turn: nobody is kept waiting by another's many. A
            // program that asks without end is heard at a pace for which the VCPU's list has room.
            while office.attend(&mut server, &mut processor)? {
                time::sleep(threads::TUNE.pace);
            }
            asked.wait(Nanos::FOREVER)?;
            time::sleep(threads::TUNE.pace);
        }
    }
}

impl Interface for &Broker {
    fn has_device(&mut self) -> Result<bool, Errno> {
        Ok(self.common.branches.enter(self.branch, |branch| branch.has_pipes()))
    }

    fn order(&mut self, order: &Order) -> Result<(), Errno> {
        let attended = self.common.branches.enter(self.branch, |branch| {
            let now = time::now();
            time::work(threads::TUNE.work, || {
                branch.order(order, now);
                branch.attend(Cause::Asked, now)
            })
        });
        self.common.ring(attended.fresh);
        self.common.settle(self.branch, attended);
        Ok(())
    }
}

/// The VCPUs of the places.
struct Processor(Vec<Vcpu>);

impl Processor {
    fn open(places: usize) -> Result<Processor, Errno> {
        let vcpu = |place| Vcpu::open(names(place).ok_or(Errno::Absent)?.vcpu);
        (0..places).map(vcpu).collect::<Result<_, _>>().map(Processor)
    }
}

impl Reserve for Processor {
    fn set(&mut self, place: usize, budget: Nanos, period: Nanos) -> Result<(), Errno> {
        self.0.get(place).ok_or(Errno::Absent)?.set(budget, period)
    }

    fn now(&mut self) -> Nanos {
        time::now()
    }

    fn rest(&mut self, time: Nanos) {
        time::sleep(time);
    }
}
