//! The deterministic machine: the real kernel core and the very images that boot, at virtual time.
//!
//! A boot archive goes in, the programs in it are loaded at the addresses they have on the metal,
//! and their threads run natively until they trap: into the kernel, for the clock, or to say that
//! work was done. Only what the table of [`Costs`] says takes time, so a run depends on its inputs
//! and on nothing else.
//!
//! | file | what |
//! |---|---|
//! | `cores` | several cores of a host: what they share, whose turn it is |
//! | `hosts`, `region` | several hosts: whose turn it is, where their windows lie |
//! | `processor` | one core: the shell around the kernel, at virtual time |
//! | `machine`, `memory`, `program` | the effects the kernel asks for, on windows of host memory |
//! | `bus`, `function` | the devices a host has, by description |
//! | `hpet`, `controller`, `faults` | those there are models of; what goes wrong around them |
//! | `card`, `ethernet` | adapters for Ethernet; the wires and switches between them |
//! | `toucan` | a card with a CAN controller that has message buffers |
//! | `tap` | what passes the buses of a controller |
//! | `context`, `guard` | the switch to a thread and back; its faults |
//! | `works` | how long declared work takes; what the kernel takes is in `lib/costs` |
//! | `observe`, `watched` | what watchers are told; words of memory they are told of |
//! | `glance` | what a debugger may look at between two steps |
//! | `history`, `bill` | what the processor did; why a job took so long |

mod bill;
mod bus;
mod card;
mod context;
mod controller;
mod cores;
mod ethernet;
mod faults;
mod function;
mod gated;
mod glance;
mod guard;
mod history;
mod hosts;
mod hpet;
mod machine;
mod memory;
mod observe;
mod plug;
mod processor;
mod program;
mod region;
mod stamps;
mod tap;
mod toucan;
mod watched;
mod works;

pub use bill::{BillWriter, BilledJob, JobBill};
pub use card::{CLASS as CARD, Card, Flood};
pub use controller::{CLASS as XHCI, Features, PluggedController};
pub use cores::RING;
pub use diapason_costs::counted::Costs;
pub use diapason_xhc::{CableEnd, Memory};
pub use ethernet::{
    EthernetBooks, EthernetJack, EthernetNetwork, EthernetWire, PortBooks, SwitchBooks, SwitchSpec,
};
pub use faults::{ControllerMishap, Planned, Upset};
pub use function::{FunctionModel, Note};
pub use gated::{GatedBooks, StepSpan};
pub use glance::{Glance, ThreadRegisters};
pub use history::{Doing, History, HistorySpan};
pub use observe::{Moment, Observer, Said, SegmentReader, Stray, Trace};
pub use plug::{EthernetPlug, FrameTap, PassedFrame};
pub use processor::Ending;
pub use region::HOSTS_MAX;
pub use tap::{Tap, TapTraffic};
pub use toucan::{CLASS as TOUCAN, ToucanCard};
pub use watched::Watched;
pub use works::Works;

pub use diapason_xhc::{BusPacket, InterruptMessage, Misuse, PacketOutcome, TransferRecord};

use bus::Bus;
use diapason_abi::Nanos;
use diapason_abi::archive::{Archive, Refusal};
use diapason_core::host::KernelMemory;
use diapason_devices::faulty::OwnClock;
use faults::Upsets;
use machine::Simulated;
use memory::Commons;
use processor::{Processor, Stop};
use region::Region;
use std::sync::{Mutex, PoisonError};

/// Why there was no run.
#[derive(Debug)]
pub enum StartError {
    /// The archive cannot be used.
    Archive(Refusal),
    /// The host has no memory, or not at the addresses programs have.
    Memory(std::io::Error),
    /// The host cannot keep programs from its own kernel.
    Host(std::io::Error),
    /// The number of hosts or cores is more than can be simulated.
    Crowd(usize),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StartError::Archive(refusal) => f.write_str(refusal.text()),
            StartError::Host(error) => write!(f, "{error}"),
            StartError::Crowd(count) => {
                write!(f, "{count} hosts or cores, where 1 to {HOSTS_MAX} can be")
            }
            StartError::Memory(error) => write!(f, "no memory for the programs: {error}"),
        }
    }
}

/// How a run is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long kernel entries take.
    pub costs: Costs,
    /// How long declared work takes.
    pub works: Works,
    /// Checks every invariant of the kernel after every entry.
    pub check: bool,
    /// Keeps processes from each other's memory, too. It takes ten microseconds of the host at each
    /// switch between processes; without it, a wild write into another process is not noticed.
    pub isolate: bool,
    /// The faults of the host.
    pub upsets: Vec<Planned<Upset>>,
    /// The time at which the host gets power, if it is one of several.
    pub start: Nanos,
    /// The clock of the world, as the host sees it, if it is one of several.
    pub world: OwnClock,
    /// Words of memory that the observer hears of when they change.
    pub watched: Vec<Watched>,
}

impl Default for Options {
    fn default() -> Options {
        let works = Works::default();
        let (costs, upsets, watched) = (Costs::default(), Vec::new(), Vec::new());
        let (start, world) = (Nanos::ZERO, OwnClock::default());
        Options { costs, works, check: false, isolate: false, upsets, start, world, watched }
    }
}

impl Options {
    fn upsets(&self) -> Upsets {
        Upsets::new(self.upsets.clone())
    }
}

/// A run that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    pub ending: Ending,
    pub time: Nanos,
}

/// A host with one core that is to run, or a core of one with several.
pub struct SimulatedHost<'a> {
    /// The archive that it boots from.
    pub archive: &'a [u8],
    /// The options of the host's simulation.
    pub options: Options,
    /// The host's PCI functions, each with its class.
    pub functions: Vec<(u32, Box<dyn FunctionModel>)>,
    /// The observer of the host.
    pub observer: &'a mut dyn Observer,
}

/// The windows of programs have fixed addresses, so one simulation runs at a time in a process.
static ONE: Mutex<()> = Mutex::new(());

/// Runs the system in `archive` up to its horizon. `functions` are the PCI functions of the host,
/// each with its class.
///
/// # Errors
/// If there is nothing that can run.
pub fn run(
    archive: &[u8],
    options: &Options,
    functions: Vec<(u32, Box<dyn FunctionModel>)>,
    observer: &mut dyn Observer,
) -> Result<Ended, StartError> {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    guard::install();
    let _watch = guard::Watch::begin().map_err(StartError::Host)?;
    let archive = Archive::parse(archive).map_err(StartError::Archive)?;
    let horizon = Nanos(archive.header.horizon);
    let (mut bus, mut upsets) = (Bus::new(&archive, functions), options.upsets());
    let mut now = Nanos::ZERO;
    loop {
        // Memory is lost with the power.
        let (mut memory, mut own) = (KernelMemory::of(&archive), Commons::default());
        let machine = Simulated::load(&archive, bus, Region::of(0), &mut own)?;
        let life = Life { machine, options, upsets, observer: &mut *observer, now };
        let mut processor = life.boot(&archive, &mut memory);
        // Without other hosts a turn never ends before the run.
        let stop = processor.run(Nanos::FOREVER, Nanos::FOREVER);
        let stop = stop.unwrap_or(Stop::Ended(Ending::Finished));
        let over = match stop {
            Stop::Ended(_) => true,
            Stop::PowerLost(back) => back >= horizon,
        };
        if over {
            processor.glance(true);
        }
        let time = processor.close();
        let ending = match stop {
            Stop::Ended(ending) => ending,
            Stop::PowerLost(back) if back >= horizon => Ending::Finished,
            Stop::PowerLost(back) => {
                (bus, upsets, now) = (processor.machine.bus, processor.upsets, back);
                observer.hear(Said::Boots(now));
                bus.power_cycle(now);
                continue;
            }
        };
        return Ok(Ended { ending, time });
    }
}

/// A life of a host, from boot on.
struct Life<'o, 'k> {
    /// The machine, and which programs it refuses.
    machine: (Simulated, u64),
    options: &'o Options,
    upsets: Upsets,
    observer: &'k mut dyn Observer,
    now: Nanos,
}

impl<'k> Life<'_, 'k> {
    fn boot(self, archive: &Archive<'_>, memory: &'k mut KernelMemory) -> Processor<'k> {
        let Life { machine: (mut machine, refused), options, upsets, observer, now } = self;
        let absent = machine.bus.absent();
        if options.isolate {
            machine.isolate();
        }
        let mut kernel = memory.kernel(archive, refused);
        kernel.lack_devices(absent);
        let horizon = options.world.host(Nanos(archive.header.horizon));
        Processor::new(kernel, machine, options, upsets, (observer, now)).until(horizon)
    }
}

/// Runs hosts beside each other, each up to its horizon or its end; how the cores of each ended, in
/// their order. One that loses its power boots again when it is back. The effect of one host on
/// another takes at least `delay`, which is longer than nothing.
///
/// Each core of a host is like a host of its own with its part of the devices. The cores of a host
/// share the segments that their archives have in common, and ring each other's doorbells, which
/// are heard [`RING`] later. At every instant the core with the lowest number goes first.
///
/// # Errors
/// If one of them cannot run at all.
pub fn run_together(
    hosts: Vec<Vec<SimulatedHost<'_>>>,
    delay: Nanos,
) -> Result<Vec<Vec<Ended>>, StartError> {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (_watch, archives) = begin(hosts.iter().flatten())?;
    let lives = |(core, archive): (&SimulatedHost<'_>, _)| {
        (0..hosts::lives(&core.options)).map(|_| KernelMemory::of(archive)).collect()
    };
    let mut memories: Vec<Vec<KernelMemory>> =
        hosts.iter().flatten().zip(&archives).map(lives).collect();
    let mut places = archives.iter().zip(&mut memories).enumerate();
    let mut seated = Vec::new();
    for cores in hosts {
        let mut seats = Vec::new();
        for (core, (number, (archive, memories))) in cores.into_iter().zip(places.by_ref()) {
            let SimulatedHost { options, functions, observer, .. } = core;
            let observer: &mut dyn Observer = observer;
            let (bus, region) = (Bus::new(archive, functions), Region::of(number));
            let memories = memories.iter_mut();
            seats.push((hosts::Seated { archive, options, region, memories }, (bus, observer)));
        }
        seated.push(hosts::Host::new(seats)?);
    }
    hosts::race(&mut seated, delay.max(Nanos(1)))
}

/// Prepares this process for a run of several hosts or cores, and reads their archives.
fn begin<'a: 'b, 'b>(
    all: impl Iterator<Item = &'b SimulatedHost<'a>> + Clone,
) -> Result<(guard::Watch, Vec<Archive<'a>>), StartError> {
    let count = all.clone().count();
    if count == 0 || count > HOSTS_MAX {
        return Err(StartError::Crowd(count));
    }
    guard::install();
    let watch = guard::Watch::begin().map_err(StartError::Host)?;
    let archives = all.map(|it| Archive::parse(it.archive).map_err(StartError::Archive));
    Ok((watch, archives.collect::<Result<Vec<Archive<'a>>, StartError>>()?))
}
