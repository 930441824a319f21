//! The thread that answers programs about tuned pipes. `diapason_usbd::tuned` decides its answers.

use crate::ground::Ground;
use crate::{Common, Own, stop};
use alloc::vec::Vec;
use diapason_contract::threads;
use diapason_contract::tuned::names;
use diapason_rt::thread::Task;
use diapason_rt::vcpu::Vcpu;
use diapason_rt::{Errno, Nanos, time};
use diapason_usbd::platform::{Guarded as _, Reserve};
use diapason_usbd::tuned::Office;
use diapason_usbd::{Branch, Pipes, PlaceOrder, WakeCause};

/// The thread that answers.
pub(crate) struct Broker {
    pub(crate) common: Common,
    /// The branch of the first CAN interface, whose pipes programs open.
    pub(crate) branch: u16,
    pub(crate) own: &'static Own,
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
        let presence = self.own.enter(Branch::presence).ok_or(Errno::Absent)?;
        let office = Office::new(&ground, &self.pipes, presence, &mut processor)?;
        let (Some(mut office), Some(asked)) = (office, &ground.tuning) else { return Ok(()) };
        loop {
            // One question of each place in turn: nobody is kept waiting by another's many. A
            // program that asks without end is heard at a pace for which the VCPU's list has room.
            while office.attend(&mut |order| self.order(order), &mut processor) {
                time::sleep(threads::TUNE.pace);
            }
            asked.wait(Nanos::FOREVER)?;
            time::sleep(threads::TUNE.pace);
        }
    }

    /// Tells the channels who listens and writes.
    fn order(&self, order: &PlaceOrder) {
        let attended = self.own.enter(|branch| {
            let now = time::now();
            time::work(threads::TUNE.work, || {
                branch.order(order, now);
                branch.attend(WakeCause::Asked, now)
            })
        });
        self.common.ring(attended.fresh);
        self.common.settle(self.branch, attended);
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
