//! Random endpoints that the exact test admits, their bills, and traffic within contract.

use crate::pipe::{Driver, Endpoint, Mood, Outcome, Reader, Setup};
use diapason_abi::Nanos;
use diapason_analysis::server::{
    BottomHalf, InterruptSource as Interrupt, IoSupply, IoVcpu, MainVcpu, Queue, SharedCore,
    Supply, Utilization, admit,
};
use diapason_pipe::bill::*;
use diapason_pipe::size::{Bucket, arrivals};
use diapason_random::Random;

/// An endpoint with what arrives at it.
#[derive(Clone, Debug)]
pub struct Case {
    pub setup: Setup,
    pub contracts: Vec<Vec<Bucket>>,
    /// The messages of another endpoint with the same bottom half, if there are any.
    pub beside: Vec<Bucket>,
}

/// The servers of a case.
pub struct Supplies {
    pub io: BottomHalf,
    pub receiver: Option<Supply>,
    pub readers: Vec<Supply>,
}

impl Case {
    pub fn random(random: &mut Random) -> Case {
        let channels = random.between(1, 3) as usize;
        let slow = channels as u64 * random.between(2, 12);
        let bucket = |random: &mut Random| Bucket {
            burst: random.between(1, 3),
            messages: random.between(1, 2),
            per: Nanos(random.between(1, 8) + 2 * slow),
            jitter: Nanos(random.below(2) * random.below(20)),
        };
        let contracts = (0..channels)
            .map(|_| (0..random.between(1, 2)).map(|_| bucket(random)).collect::<Vec<_>>());
        let contracts: Vec<_> = contracts.collect();
        let mut setup = setup(random, channels);
        setup.bus.queued = match random.below(3) {
            0 => 1,
            1 => random.between(2, 6),
            _ => 64,
        };
        if random.one_in(3) {
            let bus = &mut setup.bus;
            (bus.paced, bus.run, bus.empties) = (Some(bus.worst), 1, false);
        }
        Case { setup, contracts, beside: Vec::new() }
    }

    /// Returns one whose bottom half handles the messages of another endpoint, too.
    pub fn shared(random: &mut Random) -> Case {
        let mut case = Case::random(random);
        let setup = &mut case.setup;
        setup.receiver = None;
        setup.io.1 = setup.readers[0].vcpu.1;
        setup.moderation = setup.moderation.max(random.between(2, 8));
        setup.gap = setup.moderation;
        setup.bottom_half.work.message.0 += 1;
        case.beside.push(Bucket {
            burst: random.between(1, 5),
            messages: 1,
            per: Nanos(random.between(4, 40)),
            jitter: Nanos(random.below(60)),
        });
        case
    }

    /// Returns everything that shares the core: receiver, readers, others, and an I/O VCPU.
    pub fn system(&self) -> SharedCore {
        let Setup { receiver, readers, others, chunks, .. } = &self.setup;
        let mains = receiver.iter().map(|(_, vcpu)| *vcpu);
        let mains = mains.chain(readers.iter().map(|reader| reader.vcpu));
        let queue = if self.setup.by_deadline { Queue::Dp(0) } else { Queue::Fp };
        let main = |(budget, period)| MainVcpu {
            chunks: *chunks,
            ..MainVcpu::new(Nanos(budget), Nanos(period)).in_queue(queue)
        };
        let mains: Vec<_> = mains.chain(others.iter().copied()).map(main).collect();
        let share = Utilization::from_ppm(1_000_000 / self.setup.io.0).unwrap();
        let serves = if receiver.is_some() { vec![0] } else { (0..readers.len()).collect() };
        let mut system = SharedCore::new(mains, vec![IoVcpu::new(share, serves)]);
        system.kernel_section = Nanos(self.setup.section);
        if self.setup.top_half > 0 {
            let (gap, cost) = (Nanos(self.setup.gap), Nanos(self.setup.top_half));
            system.sources = vec![Interrupt::free(gap, cost)];
        }
        system
    }

    /// Returns the servers, if the core can keep all promises.
    pub fn supplies(&self) -> Option<Supplies> {
        let system = self.system();
        admit(&system).ok()?;
        if self.setup.known {
            return self.knowing(system);
        }
        let first = usize::from(self.setup.receiver.is_some());
        let readers = 0..self.setup.readers.len();
        Some(Supplies {
            io: BottomHalf::of(IoSupply::of(&system, 0)?),
            receiver: (first > 0).then(|| Supply::of(&system, 0)).flatten(),
            readers: readers.map(|i| Supply::of(&system, first + i)).collect::<Option<_>>()?,
        })
    }

    /// Returns the stages of a channel's pipe.
    pub fn stages<'a>(&self, supplies: &'a Supplies, channel: usize) -> Stages<'a> {
        let setup = &self.setup;
        let stage =
            |driver: Driver, service| Stage { work: driver.work, telling: driver.telling, service };
        let source = InterruptDemand { gap: Nanos(setup.gap), cost: Nanos(setup.top_half) };
        let sources = if setup.top_half > 0 { &[source][..] } else { &[] };
        let reader = setup.readers[channel];
        Stages {
            bus: setup.bus,
            interrupts: Interrupts {
                moderation: Nanos(setup.moderation),
                gap: Nanos(setup.gap),
                top_half: top_half(Nanos(setup.section), sources).unwrap(),
                shared: !self.beside.is_empty(),
            },
            bottom_half: stage(setup.bottom_half, &supplies.io),
            receiver: setup
                .receiver
                .as_ref()
                .zip(supplies.receiver.as_ref())
                .map(|((driver, _), supply)| stage(*driver, supply)),
            user: User {
                message: Nanos(reader.message),
                wake: Nanos(reader.wake),
                taking: reader.taking,
                service: &supplies.readers[channel],
            },
        }
    }

    /// Returns the case if the time of a transfer were that of so many in a row.
    pub fn in_a_row(mut self, run: u64) -> Case {
        self.setup.bus.run = run;
        self
    }

    /// Returns the bill of each channel, or why there is none.
    pub fn bills(&self, supplies: &Supplies) -> Result<Vec<Bill>, BillRefusal> {
        let contracts: Vec<&[Bucket]> = self.contracts.iter().map(Vec::as_slice).collect();
        let bill = |own| {
            let stages = self.stages(supplies, own);
            let beside = [&self.beside[..]];
            let beside = if self.beside.is_empty() { &[][..] } else { &beside[..] };
            input(&stages, &Traffic { beside, ..Traffic::among(&contracts, own) })
        };
        (0..contracts.len()).map(bill).collect()
    }

    /// Returns a run with arrivals within contract. The thread of the pipe `slow` takes many times
    /// longer than it said.
    pub fn run(&self, random: &mut Random, length: u64, slow: Option<usize>) -> Outcome {
        let mut times = vec![];
        let together = random.below(40);
        let beside = Some(&self.beside).filter(|beside| !beside.is_empty());
        for (channel, contract) in self.contracts.iter().chain(beside).enumerate() {
            let greedy = !random.one_in(3);
            let from = if random.one_in(2) { together } else { random.below(60) };
            let arrivals = within(contract, from, length, greedy, random);
            times.extend(arrivals.into_iter().map(|at| (at, channel)));
        }
        times.sort_unstable();
        let mood = if random.one_in(4) { Mood::WORST } else { Mood::any(random) };
        let mut setup = self.setup.clone();
        if let Some(reader) = slow.and_then(|slow| setup.readers.get_mut(slow)) {
            reader.message *= 30;
            reader.wake += 30;
        }
        Endpoint::new(&setup, mood, random.clone()).run(&times, length + length / 2)
    }
}

/// Arrivals in `from..end` that keep a contract in every closed window, as early as it allows, or
/// with pauses.
pub fn within(
    contract: &[Bucket],
    from: u64,
    end: u64,
    greedy: bool,
    random: &mut Random,
) -> Vec<u64> {
    let mut times: Vec<u64> = vec![];
    let mut pause = 0;
    for now in from..end {
        if now < pause {
            continue;
        }
        loop {
            let mut windows = times.iter().rev().zip(2..);
            if !windows.all(|(then, count)| arrivals(contract, Nanos(now - then)) >= count) {
                break;
            }
            times.push(now);
        }
        if !greedy && random.one_in(6) {
            pause = now + random.below(50);
        }
    }
    times
}

fn driver(random: &mut Random, activation: u64, transfer: u64, message: u64) -> Driver {
    let work = StageTimes {
        activation: Nanos(random.between(0, activation)),
        transfer: Nanos(random.between(0, transfer)),
        message: Nanos(random.between(0, message)),
    };
    let telling = if random.one_in(2) { Telling::Each } else { Telling::All };
    Driver { work, telling }
}

/// A bottom half. Where a visit takes long, the number of visits decides how late it is.
fn visitor(random: &mut Random) -> Driver {
    let mut half = driver(random, 1, 1, 1);
    if random.one_in(3) {
        half.work.activation = Nanos(random.between(2, 6));
    }
    half
}

fn setup(random: &mut Random, channels: usize) -> Setup {
    let run = if random.one_in(2) { 1 } else { random.between(2, 4) };
    let least = random.between(1, 8 / run);
    let worst = random.between(run * least, 8.max(run * least));
    let least = Nanos(least);
    let messages = if random.one_in(3) { random.between(1, 4) } else { 64 };
    let empties = messages > 1 && random.one_in(2);
    let moderation = random.below(2) * random.between(1, 12);
    let top_half = random.below(2) * u64::from(moderation > 2);
    let gap = if top_half > 0 || random.one_in(2) { moderation } else { 0 };
    let period = random.between(12, 40);
    let receiver = random.one_in(2).then(|| {
        let vcpu = (random.between(3, 8), random.between(12, 40));
        (driver(random, 1, 1, 1), vcpu)
    });
    let inherited = receiver.map_or(period, |(_, (_, period))| period);
    let taking = if random.one_in(4) { Taking::All } else { Taking::Each };
    let readers = (0..channels).map(|_| Reader {
        message: random.between(1, 2),
        wake: random.below(2),
        taking,
        vcpu: (random.between(2, 8), period),
    });
    let readers = readers.collect();
    let others = (0..random.below(3)).map(|_| (random.between(1, 4), random.between(7, 60)));
    let others = others.collect();
    Setup {
        bus: Transfers {
            worst: Nanos(worst),
            least,
            run,
            queued: 1,
            messages,
            empties,
            paced: None,
        },
        moderation,
        gap,
        top_half,
        section: random.below(2) * random.below(3),
        bottom_half: visitor(random),
        io: (random.pick(&[2, 4, 5, 8]), inherited),
        receiver,
        readers,
        others,
        chunks: if random.one_in(4) { random.within(2, 4) } else { 8 },
        by_deadline: false,
        known: false,
    }
}
