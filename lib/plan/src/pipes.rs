//! The bill of every pipe: how long a message takes at most, item by item.
//!
//! The theory is in `diapason-pipe`; here a description becomes its input. The driver of the device
//! ([`Driver`]) says what is done. The description's works and the cost of kernel calls say how
//! long that takes.

use crate::adapters;
use crate::beside;
use crate::blocks;
use crate::calls::Calls;
use crate::core::Core;
use crate::driver::{Driver, apart};
use crate::endpoints;
use crate::jobs::{JobBound, Jobs, NoJob};
use crate::missing::{self, Missing};
use crate::mutexes::Mutexes;
use crate::pictures;
use crate::reports::Reporting;
use crate::sinks;
use crate::supplies::{Half, own_supply};
use diapason_abi::{CallNumber, Nanos};
use diapason_analysis::server::BottomHalf;
use diapason_bus::{BusInstance, Direction, Speed, Transfer, packet_time};
use diapason_contract::carried::Contract;
use diapason_contract::source::{LOOK, MessageForm, PipeSource};
use diapason_costs::KernelTimes;
use diapason_pipe::bill::{
    Basis, Bill, BillRefusal, InterruptDemand, Interrupts, Service, Stage, StageTimes, Stages,
    Taking, Telling, Traffic, Transfers, User, What, equation_nine, input, top_half,
};
use diapason_pipe::size::Bucket;
use diapason_system::{ChainSpec, PipeDirection, PipeEnd, PipeSpec, System};
use std::cell::OnceCell;

/// The largest packet of a bulk endpoint of high speed.
const PACKET: u32 = 512;

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
        plant.piped(index).unwrap_or_else(|(what, remedy)| Piped {
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
    /// All cores of the host, if readers of its pipes may be on others.
    pub(crate) cores: &'a [Plant<'a>],
    /// By place of a Main VCPU, the bound of its job, as far as it is known.
    pub(crate) jobs: &'a [Option<Result<JobBound, NoJob>>],
    /// How long messages of each pipe take until the bottom half has handled them, once a pipe of
    /// the same device needs to know.
    pub(crate) late: OnceCell<Vec<Nanos>>,
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
        let (calls, late) = (Calls::new(costs), OnceCell::new());
        Plant { system, core, calls, mutexes, cores: &[], jobs: &[], late }
    }

    /// Returns it with the bounds of its jobs.
    pub(crate) fn with_jobs(self, jobs: &'a Jobs) -> Plant<'a> {
        Plant { jobs, ..self }
    }

    /// Returns it with what is known of all cores of its host.
    pub(crate) fn among(self, cores: &'a [Plant<'a>]) -> Plant<'a> {
        Plant { cores, ..self }
    }

    /// Returns the process at the end of a pipe, and its core.
    pub(crate) fn end(&self, pipe: &PipeSpec) -> Result<(&Plant<'a>, u16), Missing> {
        match pipe.end {
            PipeEnd::Here(process) => Ok((self, process)),
            PipeEnd::Beyond { core, process } => {
                let home = self.cores.iter().find(|plant| plant.system.core == core);
                home.map(|home| (home, process)).ok_or_else(|| {
                    let what = format!("the reader is on core {core}, which is not planned here");
                    (what, "plan all cores of the host together".to_owned())
                })
            }
        }
    }

    /// Returns the name of the process at the end of a pipe.
    pub(crate) fn end_name(&self, pipe: &PipeSpec) -> &str {
        let Ok((home, process)) = self.end(pipe) else { return "the reader" };
        home.system.process_name(process).unwrap_or_default()
    }

    /// Returns the longest time of a wake-up of a pipe's reader, and what wakes it.
    fn wakes(&self, pipe: &PipeSpec) -> Result<(Nanos, Taking), Missing> {
        if pipe.process().is_some() {
            return Ok((self.calls.of_reader(), Taking::Each));
        }
        let (home, _) = self.end(pipe)?;
        let ready = interrupts(Nanos::ZERO, Nanos::ZERO, home.core)?.top_half;
        Ok((home.calls.of(CallNumber::SleepUntil), Taking::Looking { every: LOOK, ready }))
    }
}

impl Plant<'_> {
    /// Everything that is missing for the bill of a pipe, in the order in which a bill asks: all at
    /// once, so that a description is mended once.
    fn lacks(&self, index: usize) -> Vec<Missing> {
        let pipe = &self.system.pipes[index];
        let to_device = pipe.way == PipeDirection::ToDevice;
        let to_channel = to_device && !pipe.is_written();
        let (home, process) = match self.end(pipe) {
            Ok(end) => end,
            Err(missing) => return vec![missing],
        };
        let own = || own_supply(process, home.system, home.core).err();
        let locks = if to_device { Vec::new() } else { home.mutexes.lacks(process) };
        let asked = [
            self.locks_nothing(pipe.server).err(),
            self.half(pipe, Half::Receives).err(),
            to_channel.then(|| self.half(pipe, Half::Sends).err()).flatten(),
            self.attendance(pipe.server, pipe.usb).err(),
            apart(self.system, self.driver(pipe).home).err(),
            if to_channel { self.acknowledged(pipe).err() } else { own() },
            match to_device {
                true => pipe.is_written().then(|| self.lateness(index).err()).flatten(),
                false => self.work_of_end(pipe).and(self.reads_no_other(index)).err(),
            },
            self.transfers(pipe).err(),
        ];
        asked.into_iter().flatten().chain(locks).collect()
    }

    pub(crate) fn input(&self, index: usize) -> Result<Piped, Missing> {
        if self.system.pipes[index].has_blocks() {
            return self.blocks(index);
        }
        self.input_of(index, &self.inbound(index)?)
    }

    /// Returns the bill of a pipe.
    pub(crate) fn piped(&self, index: usize) -> Result<Piped, Missing> {
        let pipe = &self.system.pipes[index];
        match pipe.way {
            PipeDirection::FromDevice => self.input(index),
            PipeDirection::ToDevice if pipe.is_written() => self.sink(index),
            PipeDirection::ToDevice => self.output(index),
        }
    }

    /// Returns the bill of a pipe whose messages come to the server on this way.
    pub(crate) fn input_of(&self, index: usize, inbound: &Inbound) -> Result<Piped, Missing> {
        let pipe = &self.system.pipes[index];
        self.reads_no_other(index)?;
        let (home, process) = self.end(pipe)?;
        let passes = self.passes_on(process) + home.sends_on(pipe.sent_on);
        let work = self.work_of_end(pipe)? + self.asks(pipe) + passes;
        let supply = self.joined(index, inbound)?;
        let reader = home.reporting(process, &supply);
        let (wake, taking) = self.wakes(pipe)?;
        let with_help = |help: Nanos| {
            let user = User { message: work + help, wake, taking, service: &reader };
            let stages = inbound.stages(user);
            let nine = equation_nine(&stages, inbound.bus.worst);
            let mut bill =
                self.with_traffic((index, inbound.own), |traffic| input(&stages, traffic))?;
            if let (Ok(pieces), true) = (&bill, pictures::is_of(pipe)) {
                bill = Ok(pictures::whole(self.system, (pipe, self.end_name(pipe)), *pieces)?);
            }
            if let (Ok(bill), true) = (&bill, pipe.has_frames()) {
                adapters::has_places(pipe, self.end_name(pipe), bill)?;
            }
            Ok(Piped { bill: bill.map_err(NoBill::Refused), equation_nine: Some(nine) })
        };
        match home.mutexes.shared_by(process) {
            None => with_help(Nanos::ZERO),
            Some(mutex) => home.helping(process, mutex, &with_help),
        }
    }

    /// Returns the bill of a pipe whose reader locks a mutex that others hold: what the reader does
    /// for them belongs to its work for a message. It must find budget for that at once, because
    /// others lock the mutex again and again while it waits for budget.
    fn helping(
        &self,
        process: u16,
        mutex: &str,
        with_help: &dyn Fn(Nanos) -> Result<Piped, Missing>,
    ) -> Result<Piped, Missing> {
        if let Some(missing) = self.mutexes.lacks(process).into_iter().next() {
            return Err(missing);
        }
        let vcpu = self.system.processes[usize::from(process)].vcpu;
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
        let reader = self.system.process_name(process).unwrap_or_default();
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

    /// Returns the supply `service` of a thread with the ends of all pipes of its process, and of
    /// all chains that end with it.
    pub(crate) fn reporting<'s>(&self, process: u16, service: &'s dyn Service) -> Reporting<'s> {
        let ends = self.system.pipe_ends(process);
        let ends_with = |chain: &&ChainSpec| match chain.links.last() {
            Some(link) => link.process == process,
            None => self.system.pipes[usize::from(chain.from)].ends_at(process),
        };
        let chains = self.system.chains.iter().filter(ends_with).count();
        // The program of a socket reports on it, too.
        let sends = |pipe: &&PipeSpec| pipe.ends_at(process) && pipe.sent_on.is_some();
        let sends = self.system.pipes.iter().filter(sends).count();
        // The writer that ends a flow reports on the flow and its socket, too.
        let flows = self.system.pipes.iter().filter(|it| it.ends_at(process) && it.ends_flow);
        let ends = (ends + chains + sends + 2 * flows.count()).max(1) as u64;
        match self.adapter_records(process) {
            None => Reporting::new(service, &self.calls).of_ends(ends),
            // It has a report of its own on the adapter, at another time.
            Some(records) => Reporting::saying(service, &self.calls, records).of_ends(ends + 1),
        }
    }

    /// Checks that the thread at the end of a pipe reads no other pipe. It would be at a message of
    /// that one while a message of this one waits, and no bill counts that.
    pub(crate) fn reads_no_other(&self, index: usize) -> Result<(), Missing> {
        let pipe = &self.system.pipes[index];
        let (home, process) = self.end(pipe)?;
        let near = home.system.pipes.iter().filter(|other| other.ends_at(process));
        let near = near.filter(|other| other.way == PipeDirection::FromDevice);
        let far = home.system.far.iter().filter(|other| other.process == process);
        let mut all = near.map(|other| &other.name).chain(far.map(|other| &other.name));
        let Some(other) = all.find(|other| **other != pipe.name) else { return Ok(()) };
        let what = format!("`{}` reads `{other}` on the same thread", self.end_name(pipe));
        Err((what, format!("let another process read `{other}`")))
    }

    /// Returns the longest time of the reader or writer of a pipe for a message. The work that its
    /// program declares must not be longer.
    pub(crate) fn work_of_end(&self, pipe: &PipeSpec) -> Result<Nanos, Missing> {
        let process = self.end_name(pipe);
        let said = missing::said(pipe.work_ns, process, "to the `[[pipe]]`")?;
        let message = self.driver(pipe).message;
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

    /// Calls `then` with all that comes through the endpoint of a pipe: those of the pipe itself as
    /// `come` says, and of a CAN interface the messages of all pipes from it, the acknowledgements
    /// of what pipes to it carry, and whatever programs may ask for while the system runs.
    ///
    /// Another endpoint of the same device has transfers of its own, and the interrupts for them
    /// are counted by their distance. Its messages are beside those of the pipe, or belong to the
    /// work of a wake-up.
    pub(crate) fn with_traffic<R>(
        &self,
        (index, come): (usize, Option<Bucket>),
        then: impl FnOnce(&Traffic<'_>) -> R,
    ) -> Result<R, Missing> {
        let pipes = &self.system.pipes;
        let passes = |other: &PipeSpec| match pipes[index].source() {
            Some(_) => other.usb == pipes[index].usb && other.source() == pipes[index].source(),
            None => other.usb == pipes[index].usb,
        };
        let same: Vec<usize> = (0..pipes.len()).filter(|other| passes(&pipes[*other])).collect();
        let comes = |other: &usize| match pipes[*other].way {
            PipeDirection::FromDevice if pictures::is_of(&pipes[*other]) => {
                pictures::pieces(self.system, &pipes[*other]).map(|contract| [contract])
            }
            way if way == PipeDirection::FromDevice || pipes[*other].is_written() => {
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
        let beside = self.beside(index)?;
        let beside: Vec<&[Bucket]> = beside.iter().map(|contract| &contract[..]).collect();
        Ok(then(&Traffic { beside: &beside, ..Traffic::among(&channels, own) }))
    }

    /// Returns the way of a pipe's messages to the server, if nothing is known of the VCPU of its
    /// bottom half but the share.
    pub(crate) fn inbound_by_share(&self, index: usize) -> Result<Inbound, Missing> {
        let pipe = &self.system.pipes[index];
        self.locks_nothing(pipe.server)?;
        let place = self.place_of_half(pipe, Half::Receives)?;
        let (half, gap) = self.half(pipe, Half::Receives)?;
        self.has_wakes(index, place)?;
        let driver = self.driver(pipe);
        // A bottom half with a pace looks no more often than that, if nobody else wakes its VCPU.
        let gap = if driver.home.asked.is_none() { gap.max(driver.home.pace) } else { gap };
        let mut interrupts = interrupts(gap, driver.home.moderation, self.core)?;
        // A source may have endpoints besides that of its messages.
        interrupts.shared = driver.source.is_some() || self.writes(pipe.usb);
        let activation = self.attendance(pipe.server, pipe.usb)?;
        let (transfer, message) = apart(self.system, driver.home)?;
        let work = StageTimes { activation, transfer, message };
        let bus = self.transfers(pipe)?;
        Ok(Inbound { bus, interrupts, own: None, place, half: BottomHalf::of(half), work })
    }

    /// Returns the driver of the device of a pipe.
    pub(crate) fn driver(&self, pipe: &PipeSpec) -> Driver {
        let interface = self.interface(pipe.server, pipe.usb);
        Driver::of(self.system, pipe.usb, pipe.source(), interface)
    }

    /// Returns the driver of a device, to any of its pipes: all have one thread of the server.
    pub(crate) fn driver_of(&self, server: u16, usb: usize) -> Driver {
        let pipe = self.system.pipes.iter().find(|pipe| pipe.usb == usb);
        let source = pipe.and_then(PipeSpec::source);
        Driver::of(self.system, usb, source, self.interface(server, usb))
    }

    /// Returns which of its server's CAN interfaces a device is.
    pub(crate) fn interface(&self, server: u16, usb: usize) -> usize {
        let all = self.system.interfaces(&self.system.processes[usize::from(server)]);
        all.iter().position(|(plug, _)| *plug == usb).unwrap_or(0)
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
    /// Returns the transfers that carry the messages of a pipe, or that acknowledge them.
    pub(crate) fn transfers(&self, pipe: &PipeSpec) -> Result<Transfers, Missing> {
        match pipe.source().map(|source| source.form) {
            Some(MessageForm::Written(_) | MessageForm::SentFrame(_)) => {
                sinks::transfers(self.system, pipe)
            }
            Some(MessageForm::Frame(_)) => adapters::transfers(self.system, pipe),
            Some(MessageForm::Picture(_)) => pictures::transfers(self.system, pipe),
            Some(MessageForm::Blocks(_)) => blocks::transfers(self.system, pipe),
            Some(MessageForm::Packet) if pipe.endpoint > 0 => {
                endpoints::transfers(self.system, pipe)
            }
            source => self.bulk(pipe.usb, source.and_then(|_| pipe.source())),
        }
    }

    /// Returns the transfers of a CAN interface, or of a sensor.
    pub(crate) fn bulk(
        &self,
        usb: usize,
        source: Option<&'static PipeSource>,
    ) -> Result<Transfers, Missing> {
        let driver = Driver::of(self.system, usb, source, 0);
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
