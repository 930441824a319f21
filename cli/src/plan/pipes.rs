//! The bill of every pipe: how long a message takes at most, item by item.
//!
//! The theory is in `diapason-pipe`; here a description becomes its input. What the driver does is
//! known by its kind ([`Driver`]), how long that takes by the description's works and by what the
//! kernel's calls cost.

use super::core::Core;
use super::counts::Costs;
use diapason_abi::{CallNumber, Nanos};
use diapason_analysis::server::{IoSupply, Server as Supplying, Supply};
use diapason_bus::{Async, Bus, Direction, EndpointId, Speed, Transfer, packet_time};
use diapason_core::Cause;
use diapason_pipe::bill::{
    Bill, Interrupts, Refusal, Service, Source, Stage, Stages, Taking, Telling, Traffic, Transfers,
    User, Work, equation_nine, input, top_half,
};
use diapason_pipe::size::Bucket;
use diapason_system::{Pipe, Server, System, UsbModel};
use diapason_usb::class::kvaser;

/// Bytes of a message of a CAN interface.
const MESSAGE: u64 = 64;
/// The largest packet of its bulk endpoints.
const PACKET: u32 = 512;
/// How many messages it keeps until they are fetched: the article's 4 KiB.
pub const KEPT: u64 = 64;

/// What `plan` says about a pipe.
#[derive(Clone, Debug)]
pub struct Piped {
    /// Its bill, or why there is none.
    pub bill: Result<Bill, NoBill>,
    /// Eq. 9 of the article with the same parameters.
    pub equation_nine: Option<Nanos>,
}

/// Why there is no bill.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoBill {
    /// A stage cannot keep up.
    Refused(Refusal),
    /// Something a bill needs is not in the description: what, and the remedy.
    Missing(String, String),
}

/// The bills of all pipes of `system`, in their order.
#[must_use]
pub fn pipes(system: &System, core: &Core, costs: &Costs) -> Vec<Piped> {
    let contracts: Vec<[Bucket; 1]> = system.pipes.iter().map(|pipe| [contract(pipe)]).collect();
    (0..system.pipes.len()).map(|index| piped(index, &contracts, system, core, costs)).collect()
}

/// What may arrive on a pipe.
#[must_use]
pub fn contract(pipe: &Pipe) -> Bucket {
    Bucket::per_second(pipe.rate).with_burst(pipe.burst).with_jitter(Nanos(pipe.jitter_ns))
}

fn piped(
    index: usize,
    contracts: &[[Bucket; 1]],
    system: &System,
    core: &Core,
    costs: &Costs,
) -> Piped {
    let missing = |(what, remedy)| {
        let bill = Err(NoBill::Missing(what, remedy));
        Piped { bill, equation_nine: None }
    };
    let pipe = &system.pipes[index];
    let parts = match Parts::of(pipe, system, core, costs) {
        Ok(parts) => parts,
        Err(why) => return missing(why),
    };
    // All channels of the device come through its endpoint.
    let same = |other: &&usize| system.pipes[**other].usb == pipe.usb;
    let of_device: Vec<usize> = (0..contracts.len()).collect();
    let of_device: Vec<usize> = of_device.iter().filter(same).copied().collect();
    let channels: Vec<&[Bucket]> = of_device.iter().map(|other| &contracts[*other][..]).collect();
    let own = of_device.iter().position(|other| *other == index).unwrap_or(0);
    let bill = input(&parts.stages(), &Traffic { channels: &channels, own });
    let equation_nine = equation_nine(&parts.stages(), parts.bus.worst);
    Piped { bill: bill.map_err(NoBill::Refused), equation_nine: Some(equation_nine) }
}

/// What the bill of one pipe is computed from.
struct Parts {
    bus: Transfers,
    interrupts: Interrupts,
    bottom_half: Exact<IoSupply>,
    bottom_half_work: Work,
    user: Exact<Supply>,
    user_wake: Nanos,
    user_message: Nanos,
}

type Missing = (String, String);

impl Parts {
    fn of(pipe: &Pipe, system: &System, core: &Core, costs: &Costs) -> Result<Parts, Missing> {
        let calls = Calls(diapason_sim::Costs::at(costs.clock_hz()));
        let (io, interval) = bottom_half(pipe, system, core)?;
        let user = reader(pipe, system, core)?;
        let work = |name: &str| {
            let found = system.works.iter().find(|work| work.name == name);
            found.map(|work| Nanos(work.worst_ns)).ok_or_else(|| {
                (
                    format!("nothing says how long `{name}` takes"),
                    format!("add `[[work]]` with `name = \"{name}\"` and `worst = \"40us\"`"),
                )
            })
        };
        // Both threads of the server hold its lock while they work; who waits for it runs the
        // holder on his own budget.
        let activation = work("usbd.receive")? + work("usbd.manage")? + calls.of_bottom_half();
        Ok(Parts {
            bus: transfers(pipe, system)?,
            interrupts: interrupts(interval, core)?,
            bottom_half: Exact(io),
            bottom_half_work: Work { activation, ..Work::default() },
            user: Exact(user),
            user_wake: calls.of_reader(),
            user_message: Nanos(pipe.work_ns),
        })
    }

    fn stages(&self) -> Stages<'_> {
        Stages {
            bus: self.bus,
            interrupts: self.interrupts,
            bottom_half: Stage {
                work: self.bottom_half_work,
                telling: Telling::All,
                service: &self.bottom_half,
            },
            receiver: None,
            user: User {
                message: self.user_message,
                wake: self.user_wake,
                taking: Taking::Each,
                service: &self.user,
            },
        }
    }
}

/// The I/O VCPU of the server's bottom half, and how often its interrupt comes at most.
fn bottom_half(pipe: &Pipe, system: &System, core: &Core) -> Result<(IoSupply, Nanos), Missing> {
    let reader = &system.processes[usize::from(pipe.reader)];
    let serves = |number: &u16| match &system.vcpus[usize::from(*number)].server {
        Server::Io { serves, .. } => reader.vcpu.is_some_and(|main| serves.contains(&main)),
        Server::Main { .. } => false,
    };
    let granted = |number: &u16| {
        system.vcpus[usize::from(*number)].allowed >> pipe.server & 1 == 1 && serves(number)
    };
    let place = core.ios.iter().position(granted);
    let server = system.process_name(pipe.server).unwrap_or_default();
    let Some(place) = place else {
        return Err((
            format!("no I/O VCPU of `{server}` serves `{}`", reader.name),
            format!(
                "add the VCPU of `{}` to `serves` of the I/O VCPU in `uses` of `{server}`",
                reader.name
            ),
        ));
    };
    let interval = core.system.ios[place].wake_gap;
    IoSupply::of(&core.system, place).map(|supply| (supply, interval)).ok_or_else(|| {
        (
            format!("the I/O VCPU of `{server}` serves VCPUs of different periods"),
            "give all readers behind one I/O VCPU one period".to_owned(),
        )
    })
}

/// The Main VCPU of the reader, which has to be its own.
fn reader(pipe: &Pipe, system: &System, core: &Core) -> Result<Supply, Missing> {
    let reader = &system.processes[usize::from(pipe.reader)];
    let users = system.processes.iter().filter(|process| process.vcpu == reader.vcpu);
    if users.count() > 1 {
        return Err((
            format!("`{}` shares its VCPU with another process", reader.name),
            "give it one of its own: what others use of it delays its messages".to_owned(),
        ));
    }
    let place = core.mains.iter().position(|number| Some(*number) == reader.vcpu);
    place.and_then(|place| Supply::of(&core.system, place)).ok_or_else(|| {
        (
            format!("the VCPU of `{}` does not get its budget in every period", reader.name),
            "make the system hold first".to_owned(),
        )
    })
}

/// Transfers from an interface that shares its bus with nothing else that is planned.
fn transfers(pipe: &Pipe, system: &System) -> Result<Transfers, Missing> {
    let model = system.usb[pipe.usb].model;
    debug_assert_eq!(model, UsbModel::UsbCan);
    let bus = Bus::new(Speed::High);
    let end = |id, direction| Async {
        id: EndpointId(id),
        transfer: Transfer::Bulk,
        direction,
        packet: PACKET,
        burst: 0,
        guarantee: None,
    };
    let ends = [end(0, Direction::In), end(1, Direction::Out)];
    let (bytes, queued) = kvaser::TRANSFER;
    let time = |bytes: usize| {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let plan = diapason_bus::plan(&bus, &[], &ends).ok()?;
        let worst = plan.worst_time(&bus, &ends, EndpointId(0), bytes).ok()??;
        Some(worst.nanos())
    };
    let impossible = || ("the bus has no time for its transfers".to_owned(), String::new());
    let worst = time(bytes).ok_or_else(impossible)?;
    let coding = bus.coding;
    let shortest = packet_time(bus.speed, coding, Transfer::Bulk, Direction::In, MESSAGE as u32);
    Ok(Transfers {
        worst,
        // One message, alone on the bus.
        least: Nanos(shortest.0 / 1_000),
        queued: queued as u64,
        messages: bytes as u64 / MESSAGE,
    })
}

fn interrupts(gap: Nanos, core: &Core) -> Result<Interrupts, Missing> {
    let sources = core.system.sources.iter();
    let sources: Vec<Source> = sources.map(|s| Source { gap: s.gap, cost: s.cost }).collect();
    let told = top_half(core.system.kernel_section, &sources);
    let told = told.ok_or_else(|| {
        ("top halves take the whole processor".to_owned(), "make interrupts rarer".to_owned())
    })?;
    Ok(Interrupts { moderation: kvaser::MODERATION, gap, top_half: told })
}

/// What calls cost, with whatever they lead to.
struct Calls(diapason_sim::Costs);

impl Calls {
    fn each(&self, call: CallNumber) -> Nanos {
        let cause = Cause::Syscall(call as u64, [0; 5]);
        let path = |stays| {
            let cost = self.0.of(&cause, stays);
            cost.before + cost.after + self.0.user()
        };
        self.0.time(path(true).max(path(false)))
    }

    /// An activation of the server's bottom half: it waits, locks, unlocks, and wakes a reader of
    /// each channel.
    fn of_bottom_half(&self) -> Nanos {
        let own = [CallNumber::EventWait, CallNumber::SemLock, CallNumber::SemUnlock];
        let own = own.iter().fold(Nanos::ZERO, |sum, call| sum + self.each(*call));
        let wakes = UsbModel::UsbCan.channels();
        own + Nanos(self.each(CallNumber::SemUnlock).0 * wakes)
    }

    /// A reader waits for its semaphore.
    fn of_reader(&self) -> Nanos {
        self.each(CallNumber::SemLock)
    }
}

/// A server of the analysis, as bills know it.
struct Exact<S>(S);

impl<S: Supplying> Service for Exact<S> {
    fn budget(&self) -> Nanos {
        self.0.budget()
    }

    fn period(&self) -> Nanos {
        self.0.period()
    }

    fn sync(&self, work: Nanos) -> Nanos {
        self.0.sync(work)
    }

    fn any(&self, work: Nanos) -> Nanos {
        self.0.any(work)
    }

    fn wakeups(&self) -> u64 {
        self.0.wakeups()
    }
}
