//! The bill of every pipe: how long a message takes at most, item by item.
//!
//! The theory is in `diapason-pipe`; here a description becomes its input. The driver of the device
//! ([`Driver`]) says what is done. The description's works and the cost of kernel calls say how
//! long that takes.

use crate::beside;
use crate::blocks;
use crate::calls::Calls;
use crate::core::Core;
use crate::driver::{Driver, apart, worst};
use crate::endpoints;
use crate::human;
use crate::missing::{self, Missing};
use crate::mutexes::Mutexes;
use crate::pictures;
use crate::reports::Reporting;
use crate::sinks;
use diapason_abi::Nanos;
use diapason_analysis::server::{self, BottomHalf, IoSupply, Supply};
use diapason_bus::{BusInstance, Direction, Speed, Transfer, packet_time};
use diapason_contract::can::EACH;
use diapason_contract::carried::Contract;
use diapason_contract::threads::{MANAGE, SEND, SENDERS, TUNE};
use diapason_costs::KernelTimes;
use diapason_pipe::bill::{
    Basis, Bill, BillRefusal, InterruptDemand, Interrupts, Stage, StageTimes, Stages, Taking,
    Telling, Traffic, Transfers, User, What, equation_nine, input, top_half,
};
use diapason_pipe::measured::REPORT;
use diapason_pipe::size::Bucket;
use diapason_system::{PipeDirection, PipeSpec, ServerSpec, System, Tpipe, VcpuSpec};

/// The largest packet of a bulk endpoint of high speed.
const PACKET: u32 = 512;

/// The longest period of a thread that reports once in [`REPORT`]: a report that comes a period and
/// its supply late is not taken for silence.
const RARE: Nanos = Nanos(REPORT.0 / 2);

/// Steps to a reader that is done within the time that its help was counted for.
const WINDOWS_MAX: usize = 16;

/// The plan of a pipe.
#[derive(Clone, Debug)]
pub struct Piped {
    /// The pipe's bill, or why there is none.
    pub bill: Result<Bill, NoBill>,
    /// [USB 2023, eq. 9] with the same parameters.
    pub equation_nine: Option<Nanos>,
}

/// Why there is no bill.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoBill {
    /// A stage cannot keep up.
    Refused(BillRefusal),
    /// Something a bill needs is not in the description: what, and the remedy.
    Missing(String, String),
}

impl NoBill {
    /// Returns why `name` has no bound, and the remedy.
    pub(crate) fn words(&self, name: &str) -> [String; 3] {
        let (why, help) = match self {
            NoBill::Missing(what, remedy) => (what.clone(), remedy.clone()),
            NoBill::Refused(refusal) => {
                let help = "give the stage more of the processor, or reduce the traffic";
                (refusal.to_string(), help.into())
            }
        };
        [format!("`{name}` has no bound: {why}"), String::new(), help]
    }
}

/// Returns the bills of all pipes of `system`, in their order.
#[must_use]
pub(crate) fn pipes(plant: &Plant<'_>) -> Vec<Piped> {
    let each = (0..plant.system.pipes.len()).map(|index| {
        let piped = match plant.system.pipes[index].way {
            PipeDirection::FromDevice => plant.input(index),
            PipeDirection::ToDevice if sinks::is_of(plant.system, &plant.system.pipes[index]) => {
                plant.sink(index)
            }
            PipeDirection::ToDevice => plant.output(index),
        };
        piped.unwrap_or_else(|(what, remedy)| Piped {
            bill: Err(NoBill::Missing(what, remedy)),
            equation_nine: None,
        })
    });
    each.collect()
}

/// Returns for each pipe everything that its bill needs and the description lacks.
pub(crate) fn lacking(plant: &Plant<'_>) -> Vec<Vec<Missing>> {
    (0..plant.system.pipes.len()).map(|index| plant.lacks(index)).collect()
}

/// Returns the contract of a pipe.
#[must_use]
pub fn contract(pipe: &PipeSpec) -> Bucket {
    let Contract { messages, per, burst, jitter } = pipe.contract();
    Bucket { burst, messages: messages.into(), per, jitter }
}

/// The inputs of bills.
pub(crate) struct Plant<'a> {
    pub(crate) system: &'a System,
    pub(crate) core: &'a Core,
    pub(crate) calls: Calls,
    pub(crate) mutexes: &'a Mutexes<'a>,
}

/// The way of a device's messages to the server.
pub(crate) struct Inbound {
    pub(crate) bus: Transfers,
    pub(crate) interrupts: Interrupts,
    /// How its messages come, if that is not as their contract says: their reader may ask late.
    pub(crate) own: Option<Bucket>,
    /// The place of the VCPU of its bottom half among the I/O VCPUs.
    pub(crate) place: usize,
    pub(crate) half: BottomHalf,
    pub(crate) work: StageTimes,
}

impl<'a> Plant<'a> {
    pub(crate) fn new(
        system: &'a System,
        core: &'a Core,
        costs: &KernelTimes,
        mutexes: &'a Mutexes<'a>,
    ) -> Plant<'a> {
        Plant { system, core, calls: Calls::new(costs), mutexes }
    }
}

impl Plant<'_> {
    /// Everything that is missing for the bill of a pipe, in the order in which a bill asks: all at
    /// once, so that a description is mended once.
    fn lacks(&self, index: usize) -> Vec<Missing> {
        let pipe = &self.system.pipes[index];
        let to_device = pipe.way == PipeDirection::ToDevice;
        let to_channel = to_device && !sinks::is_of(self.system, pipe);
        let own = || own_supply(pipe.process, self.system, self.core).err();
        let locks = if to_device { Vec::new() } else { self.mutexes.lacks(pipe.process) };
        let asked = [
            self.locks_nothing(pipe.server).err(),
            self.half(pipe, Half::Receives).err(),
            to_channel.then(|| self.half(pipe, Half::Sends).err()).flatten(),
            self.attendance(pipe.server, pipe.usb).err(),
            apart(self.system, self.driver(pipe.server, pipe.usb).home).err(),
            if to_channel { self.acknowledged(pipe).err() } else { own() },
            if to_device { None } else { self.work_of_reader(pipe).err() },
            self.transfers(pipe.usb).err(),
        ];
        asked.into_iter().flatten().chain(locks).collect()
    }

    fn input(&self, index: usize) -> Result<Piped, Missing> {
        if blocks::is_of(self.system, &self.system.pipes[index]) {
            return self.blocks(index);
        }
        self.input_of(index, &self.inbound(index)?)
    }

    /// Returns the bill of a pipe whose messages come to the server on this way.
    pub(crate) fn input_of(&self, index: usize, inbound: &Inbound) -> Result<Piped, Missing> {
        let pipe = &self.system.pipes[index];
        let work = self.work_of_reader(pipe)? + self.asks(pipe);
        let supply = self.joined(index, inbound)?;
        let reader = Reporting::new(&supply, &self.calls);
        let with_help = |help: Nanos| {
            let user = User {
                message: work + help,
                wake: self.calls.of_reader(),
                taking: Taking::Each,
                service: &reader,
            };
            let stages = inbound.stages(user);
            let nine = equation_nine(&stages, inbound.bus.worst);
            let mut bill =
                self.with_traffic((index, inbound.own), |traffic| input(&stages, traffic))?;
            if let (Ok(pieces), true) = (&bill, pictures::is_of(self.system, pipe)) {
                bill = Ok(pictures::whole(self.system, pipe, *pieces)?);
            }
            Ok(Piped { bill: bill.map_err(NoBill::Refused), equation_nine: Some(nine) })
        };
        match self.mutexes.shared_by(pipe.process) {
            None => with_help(Nanos::ZERO),
            Some(mutex) => self.helping(pipe, mutex, &with_help),
        }
    }

    /// Returns the bill of a pipe whose reader locks a mutex that others hold: what the reader does
    /// for them belongs to its work for a message. It must find budget for that at once, because
    /// others lock the mutex again and again while it waits for budget.
    fn helping(
        &self,
        pipe: &PipeSpec,
        mutex: &str,
        with_help: &dyn Fn(Nanos) -> Result<Piped, Missing>,
    ) -> Result<Piped, Missing> {
        if let Some(missing) = self.mutexes.lacks(pipe.process).into_iter().next() {
            return Err(missing);
        }
        let vcpu = self.system.processes[usize::from(pipe.process)].vcpu;
        let place = self.core.mains.iter().position(|number| Some(*number) == vcpu);
        let mut window = Nanos::ZERO;
        for _ in 0..WINDOWS_MAX {
            let help = place.map_or(Nanos::FOREVER, |place| self.mutexes.help(place, window));
            let piped = with_help(help)?;
            let Ok(bill) = &piped.bill else { return Ok(piped) };
            let user = bill.item(What::User);
            let Some(user) = user.filter(|item| item.basis == Basis::Conformant) else { break };
            if user.value <= window {
                return Ok(piped);
            }
            window = user.value;
        }
        let reader = self.system.process_name(pipe.process).unwrap_or_default();
        Err((
            format!("`{reader}` may wait for budget while others hold the mutex `{mutex}`"),
            "give its VCPU a larger budget, or make the sections with the mutex shorter".to_owned(),
        ))
    }

    /// Checks that the server of a pipe waits for no mutex of the description: every pipe of the
    /// server would wait with it.
    pub(crate) fn locks_nothing(&self, process: u16) -> Result<(), Missing> {
        let Some(mutex) = self.mutexes.shared_by(process) else { return Ok(()) };
        let name = self.system.process_name(process).unwrap_or_default();
        Err((
            format!("`{name}` may wait for the mutex `{mutex}`, which no bill counts"),
            format!("take `{mutex}` out of the `uses` of `{name}`"),
        ))
    }

    /// Returns the longest time of a pipe's reader for a message. The work that its program
    /// declares must not be longer.
    pub(crate) fn work_of_reader(&self, pipe: &PipeSpec) -> Result<Nanos, Missing> {
        let reader = self.system.process_name(pipe.process).unwrap_or_default();
        let said = missing::said(pipe.work_ns, reader, "to the `[[pipe]]`")?;
        let message = self.driver(pipe.server, pipe.usb).message;
        let mut works = self.system.works.iter().filter(|work| work.name == message);
        let longer = works.find(|work| work.worst_ns > said.0);
        longer.map_or(Ok(said), |work| {
            let worst = Nanos(work.worst_ns);
            let what =
                format!("the work `{}` takes up to {worst}, and the pipe says {said}", work.name);
            let remedy =
                format!("write `work = \"{}ns\"`, or a smaller `worst` of the work", work.worst_ns);
            Err((what, remedy))
        })
    }

    /// Calls `then` with all that comes through the endpoint of a pipe's device: the messages of
    /// pipes from it, those of the pipe itself as `come` says, the acknowledgements of what pipes
    /// to it carry, and whatever programs may ask for while the system runs.
    pub(crate) fn with_traffic<R>(
        &self,
        (index, come): (usize, Option<Bucket>),
        then: impl FnOnce(&Traffic<'_>) -> R,
    ) -> Result<R, Missing> {
        let pipes = &self.system.pipes;
        let same: Vec<usize> =
            (0..pipes.len()).filter(|other| pipes[*other].usb == pipes[index].usb).collect();
        let comes = |other: &usize| match pipes[*other].way {
            PipeDirection::FromDevice if pictures::is_of(self.system, &pipes[*other]) => {
                pictures::pieces(self.system, &pipes[*other]).map(|contract| [contract])
            }
            way if way == PipeDirection::FromDevice
                || sinks::is_of(self.system, &pipes[*other]) =>
            {
                let come = come.filter(|_| *other == index);
                Ok([come.unwrap_or_else(|| contract(&pipes[*other]))])
            }
            _ => self.acknowledged(&pipes[*other]).map(|contract| [contract]),
        };
        let contracts = same.iter().map(comes).collect::<Result<Vec<[Bucket; 1]>, Missing>>()?;
        let tuned = self.tuned_traffic(pipes[index].usb)?.into_iter().map(|contract| [contract]);
        let contracts: Vec<[Bucket; 1]> = contracts.into_iter().chain(tuned).collect();
        let channels: Vec<&[Bucket]> = contracts.iter().map(|contract| &contract[..]).collect();
        let own = same.iter().position(|other| *other == index).unwrap_or(0);
        Ok(then(&Traffic { channels: &channels, own }))
    }

    /// Returns the way of a pipe's messages to the server, if nothing is known of the VCPU of its
    /// bottom half but the share.
    pub(crate) fn inbound_by_share(&self, index: usize) -> Result<Inbound, Missing> {
        let pipe = &self.system.pipes[index];
        self.locks_nothing(pipe.server)?;
        let place = self.place_of_half(pipe, Half::Receives)?;
        let (half, gap) = self.half(pipe, Half::Receives)?;
        let driver = self.driver(pipe.server, pipe.usb);
        // A bottom half with a pace looks no more often than that, if nobody else wakes its VCPU.
        let gap = if driver.home.asked.is_none() { gap.max(driver.home.pace) } else { gap };
        let mut interrupts = interrupts(gap, driver.home.moderation, self.core)?;
        // A source may have endpoints besides that of its messages.
        interrupts.shared = driver.source.is_some() || self.writes(pipe.usb);
        let activation = self.attendance(pipe.server, pipe.usb)?;
        let (transfer, message) = apart(self.system, driver.home)?;
        let work = StageTimes { activation, transfer, message };
        let bus = self.transfers(pipe.usb)?;
        Ok(Inbound { bus, interrupts, own: None, place, half: BottomHalf::of(half), work })
    }

    /// Returns the driver of a device.
    pub(crate) fn driver(&self, server: u16, usb: usize) -> Driver {
        Driver::of(self.system, usb, self.interface(server, usb))
    }

    /// Returns which of its server's CAN interfaces a device is.
    fn interface(&self, server: u16, usb: usize) -> usize {
        let all = self.system.interfaces(&self.system.processes[usize::from(server)]);
        all.iter().position(|(plug, _)| *plug == usb).unwrap_or(0)
    }

    /// Returns the longest time that may pass under the lock of the branch of a device
    /// before the work of a thread is done. The bottom half of its channels takes that lock. So do
    /// the threads that hear clients and that answer about tuned pipes. The thread that manages
    /// takes it when something is due in the branch, and then does what the bottom half does.
    ///
    /// Each of them may hold the lock once before, and a thread that waits for it runs the holder
    /// on its own budget. Threads of other devices, and of other interfaces, never take it: each
    /// has a branch and a lock of its own.
    pub(crate) fn attendance(&self, server: u16, usb: usize) -> Result<Nanos, Missing> {
        let own = |tpipe: &&Tpipe| (tpipe.server, tpipe.usb) == (server, usb);
        let places = self.system.tpipes.iter().filter(own).count();
        let others = [(SEND.work, self.writes(usb)), (TUNE.work, places > 0)];
        let others = others.iter().filter_map(|(name, is_there)| is_there.then_some(*name));
        let driver = self.driver(server, usb);
        let (work, each) = (driver.home.work, driver.home.each);
        if worst(self.system, each).is_some() && (self.writes(usb) || places > 0) {
            let what = "bills of pipes to a device, and of those that programs open, have the \
                        messages in the work of a wake-up";
            let remedy = format!("remove the work `{each}`, and count messages in `{work}`");
            return Err((what.to_owned(), remedy));
        }
        let own = std::iter::repeat_n(driver.home.work, 1 + driver.home.threads());
        let threads = own.chain(others);
        // It wakes a reader of each channel, and one in each place for a tuned pipe.
        let wakes = if driver.source.is_some() { 1 } else { EACH + places };
        let (mut sum, mut unknown) = (self.calls.of_bottom_half(wakes as u64), Vec::new());
        for name in threads {
            match self.system.works.iter().find(|work| work.name == name) {
                Some(work) => sum += Nanos(work.worst_ns),
                None if unknown.contains(&name) => {}
                None => unknown.push(name),
            }
        }
        if unknown.is_empty() {
            return Ok(sum);
        }
        // No bill has this one, and the server's start needs it: it is named at once.
        unknown.extend(worst(self.system, MANAGE).is_none().then_some(MANAGE));
        Err(missing::works(&unknown))
    }
}

impl Inbound {
    /// Returns all stages, the last one for a `user`.
    pub(crate) fn stages<'s>(&'s self, user: User<'s>) -> Stages<'s> {
        let (bus, interrupts, work) = (self.bus, self.interrupts, self.work);
        let bottom_half = Stage { work, telling: Telling::All, service: &self.half };
        Stages { bus, interrupts, bottom_half, receiver: None, user }
    }
}

/// A thread of the server besides the one that manages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    /// The bottom half of what comes.
    Receives,
    /// The thread hears what clients want.
    Sends,
}

impl Plant<'_> {
    /// Returns the I/O VCPU of a thread of the server that works for the process of `pipe`, and the
    /// most wake-ups of it.
    pub(crate) fn half(&self, pipe: &PipeSpec, half: Half) -> Result<(IoSupply, Nanos), Missing> {
        let place = self.place_of_half(pipe, half)?;
        let home = self.driver(pipe.server, pipe.usb).home;
        let moderation = (half == Half::Receives).then_some(home.moderation);
        self.io_supply(pipe.server, place, moderation)
    }

    /// Returns the place of that I/O VCPU.
    fn place_of_half(&self, pipe: &PipeSpec, half: Half) -> Result<usize, Missing> {
        let system = self.system;
        let process = &system.processes[usize::from(pipe.process)];
        let number = self.interface(pipe.server, pipe.usb);
        let driver = self.driver(pipe.server, pipe.usb);
        let own = match half {
            Half::Receives => driver.home.vcpu,
            Half::Sends => SENDERS[number].vcpu,
        };
        let is_granted = |name: &str| {
            let is = |vcpu: &VcpuSpec| vcpu.name == name && vcpu.allowed >> pipe.server & 1 == 1;
            system.vcpus.iter().any(is)
        };
        // A server of another program may call the VCPU of its one bottom half otherwise.
        let is_first = number == 0 && driver.source.is_none();
        let any = half == Half::Receives && is_first && !is_granted(own);
        let server = system.process_name(pipe.server).unwrap_or_default();
        let is = |name: &str| name == own || any && name != SEND.vcpu;
        self.io_place(pipe.server, pipe.process, is).ok_or_else(|| {
            let name = &process.name;
            let (what, which) = match (half, is_first) {
                (Half::Receives, true) => ("no I/O VCPU".to_owned(), "the I/O VCPU".to_owned()),
                _ => (format!("no I/O VCPU `{own}`"), format!("`{own}`, an I/O VCPU")),
            };
            (
                format!("{what} of `{server}` serves `{name}`"),
                format!("add the VCPU of `{name}` to `serves` of {which} in `uses` of `{server}`"),
            )
        })
    }

    /// Returns the place of an I/O VCPU of a server that works for a process, if `is` accepts its
    /// name.
    pub(crate) fn io_place(
        &self,
        server: u16,
        client: u16,
        is: impl Fn(&str) -> bool,
    ) -> Option<usize> {
        let main = self.system.processes[usize::from(client)].vcpu?;
        self.core.ios.iter().position(|number| {
            let vcpu = &self.system.vcpus[usize::from(*number)];
            let ServerSpec::Io { serves, .. } = &vcpu.server else { return false };
            vcpu.allowed >> server & 1 == 1 && is(&vcpu.name) && serves.contains(&main)
        })
    }

    /// Returns the supply of the I/O VCPU at `place`, and the most wake-ups of it. If interrupts
    /// wake it, they are apart by this moderation at most.
    pub(crate) fn io_supply(
        &self,
        server: u16,
        place: usize,
        moderation: Option<Nanos>,
    ) -> Result<(IoSupply, Nanos), Missing> {
        let Plant { system, core, .. } = *self;
        let gap = core.system.ios[place].least_gap();
        if let Some(moderation) = moderation.filter(|moderation| gap > *moderation) {
            let name = &system.vcpus[usize::from(core.ios[place])].name;
            let most = human(moderation.0);
            return Err((
                format!("`{name}` is woken more often than its `interval` says"),
                format!("write at most `interval = \"{most}\"`: the driver asks for that"),
            ));
        }
        let server = system.process_name(server).unwrap_or_default();
        IoSupply::inherited(&core.system, place).map(|supply| (supply, gap)).ok_or_else(|| {
            (
                format!("the I/O VCPU of `{server}` does not get its share"),
                "make the system hold first".to_owned(),
            )
        })
    }
}

/// Returns the Main VCPU of a process, which has to be its own.
pub(crate) fn own_supply(process: u16, system: &System, core: &Core) -> Result<Supply, Missing> {
    supply_among(&core.system, (process, 1), system, core)
}

/// Returns the Main VCPU of a process with at most so many threads, which has to be its own,
/// `among` what shares its core.
pub(crate) fn supply_among(
    among: &server::SharedCore,
    (process, threads): (u16, u16),
    system: &System,
    core: &Core,
) -> Result<Supply, Missing> {
    are_alone(process, threads, system)?;
    let reader = &system.processes[usize::from(process)];
    let place = core.mains.iter().position(|number| Some(*number) == reader.vcpu);
    if let Some(main) = place.map(|place| &core.system.mains[place]).filter(|it| it.period > RARE) {
        return Err((
            format!(
                "`{}` measures once a second, and its VCPU has budget once in {}",
                reader.name,
                human(main.period.0)
            ),
            format!("write at most `period = \"{}ms\"`", RARE.0 / 1_000_000),
        ));
    }
    place.and_then(|place| Supply::of(among, place)).ok_or_else(|| {
        (
            format!("the VCPU of `{}` does not get its budget in every period", reader.name),
            "make the system hold first".to_owned(),
        )
    })
}

/// Checks that one thread of a process, and no other, has its VCPU.
pub(crate) fn is_alone(process: u16, system: &System) -> Result<(), Missing> {
    are_alone(process, 1, system)
}

/// Checks that at most so many threads of a process, and no others, have its VCPU.
pub(crate) fn are_alone(process: u16, threads: u16, system: &System) -> Result<(), Missing> {
    let reader = &system.processes[usize::from(process)];
    let users = system.processes.iter().filter(|process| process.vcpu == reader.vcpu);
    if users.count() > 1 {
        return Err((
            format!("`{}` shares its VCPU with another process", reader.name),
            "give it one of its own: others on the same VCPU delay it".to_owned(),
        ));
    }
    if reader.threads > threads {
        return Err((
            format!("`{}` may have {} threads on one VCPU", reader.name, reader.threads),
            format!(
                "write `threads = {threads}`, and move the other threads to a process of their \
                 own: their use of the VCPU delays the pipe"
            ),
        ));
    }
    let of = |vcpu: u16| system.vcpus[usize::from(vcpu)].allowed & !(1 << process);
    if let Some(other) = reader.vcpu.map(of).filter(|others| *others != 0) {
        let other = u16::try_from(other.trailing_zeros()).unwrap_or_default();
        return Err((
            format!(
                "`{}` may put threads on the VCPU of `{}`",
                system.process_name(other).unwrap_or_default(),
                reader.name
            ),
            "take the VCPU out of the `uses` of the other process".to_owned(),
        ));
    }
    Ok(())
}

/// Returns the longest time of a transfer of a device, beside whatever shares its bus.
pub(crate) fn longest_transfer(
    usb: usize,
    system: &System,
    direction: Direction,
    bytes: usize,
) -> Result<Nanos, Missing> {
    debug_assert!(system.usb[usb].model.carries());
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    beside::longest(system, usb, (direction, PACKET), bytes)
}

impl Plant<'_> {
    /// Transfers from a device.
    pub(crate) fn transfers(&self, usb: usize) -> Result<Transfers, Missing> {
        if let Some(pipe) = self.system.pipes.iter().find(|it| it.usb == usb && it.endpoint > 0) {
            if sinks::is_of(self.system, pipe) {
                return sinks::transfers(self.system, pipe);
            }
            return endpoints::transfers(self.system, pipe);
        }
        let mut pipes = self.system.pipes.iter().filter(|pipe| pipe.usb == usb);
        if let Some(pipe) = pipes.find(|pipe| pictures::is_of(self.system, pipe)) {
            return pictures::transfers(self.system, pipe);
        }
        let mut pipes = self.system.pipes.iter().filter(|pipe| pipe.usb == usb);
        if let Some(pipe) = pipes.find(|pipe| blocks::is_of(self.system, pipe)) {
            return blocks::transfers(self.system, pipe);
        }
        let driver = Driver::of(self.system, usb, 0);
        let (bytes, queued) = driver.transfer;
        let shortest = driver.shortest as u32;
        let longest = longest_transfer(usb, self.system, Direction::In, bytes * driver.run)?;
        let bus = BusInstance::new(Speed::High);
        let shortest = packet_time(bus.speed, bus.coding, Transfer::Bulk, Direction::In, shortest);
        Ok(Transfers {
            worst: self.guaranteed(usb, longest),
            // One message, alone on the bus.
            least: Nanos(shortest.0 / 1_000),
            run: driver.run as u64,
            queued: queued as u64,
            messages: driver.messages,
            empties: driver.source.is_none(),
            paced: None,
        })
    }
}

pub(crate) fn interrupts(
    gap: Nanos,
    moderation: Nanos,
    core: &Core,
) -> Result<Interrupts, Missing> {
    let sources = core.system.sources.iter();
    let sources: Vec<InterruptDemand> =
        sources.map(|s| InterruptDemand { gap: s.gap, cost: s.cost }).collect();
    let told = top_half(core.system.kernel_section, &sources);
    let told = told.ok_or_else(|| {
        ("top halves take the whole processor".to_owned(), "make interrupts rarer".to_owned())
    })?;
    Ok(Interrupts { moderation, gap, top_half: told, shared: false })
}
