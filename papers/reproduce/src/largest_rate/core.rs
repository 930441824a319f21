//! The core in question: how slow it is, how it is shared, and what is on its buses.

use super::search::largest;
use crate::boot;
use diapason::describe::describe;
use diapason::metal::Built;
use diapason::outcome::{Outcome, ThreadRow};
use diapason::plan::{Plan, pipes};
use diapason::session::{FinishedRun, Session};
use diapason::simulate::{self, Simulation};
use diapason::{Failure, Workspace};
use diapason_abi::Nanos;
use diapason_devices::can::BUSY;
use diapason_pipe::bill::What;
use diapason_sim::{Costs, Options};
use diapason_system::{CanTraffic, PipeSpec, PluggedCanBus, RunOptions, ServerSpec, System};
use diapason_usb::class::kvaser::{MESSAGE, TRANSFER};
use std::fmt;
use std::fmt::Write;

/// The description, below the workspace's root.
const PATH: &str = "tests/systems/largest-rate.toml";
/// The bits of a frame with eight bytes and a short identifier, stuffed as much as can be, and of
/// the pause behind it.
const FRAME_BITS: u64 = 135;
/// The load is told in so many parts of what the buses carry.
pub const LOADS: u64 = 64;
/// By then every channel is open, however slow the core; then there is load, and at last silence in
/// which the readers say what came.
const OPENED: Nanos = Nanos::from_secs(5);
pub const LOADED: Nanos = Nanos::from_secs(3);
const SILENT: Nanos = Nanos::from_secs(2);
/// The USB server, what its bottom half does when it is woken, and which interrupt wakes it.
const SERVER: &str = "usbd";
const TURN: &str = "usbd.receive";
const INTERRUPT: &str = "xhci.1";
/// Instructions of a turn of the bottom half, and more for each frame that it finds, a little more
/// than what was counted in QEMU. Each transfer that it finds adds to that.
const TURN_ITSELF: u64 = 10_000;
const TURN_TRANSFER: u64 = 1_300;
const TURN_EACH: u64 = 600;
const FOUND_MAX: u64 = (TRANSFER.0 / MESSAGE * TRANSFER.1) as u64;

/// How slow a core is: an instruction takes 2 to the power of this, in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Speed(pub u8);

impl Speed {
    const fn hertz(self) -> u64 {
        1_000_000_000 >> self.0
    }

    /// Returns its part of a row's name.
    pub fn id(self) -> String {
        format!("{}-kHz", self.hertz() / 1_000)
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MHz", self.hertz() as f64 / 1e6)
    }
}

/// How full the buses are, in parts of [`LOADS`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Load(pub u64);

impl Load {
    /// Frames a second on a bus.
    fn of_bus(self, channel: usize) -> u64 {
        let (hertz, ..) = BUSY[channel];
        u64::from(hertz) / FRAME_BITS * self.0 / LOADS
    }

    /// Frames a second on all of them.
    pub fn frames(self) -> u64 {
        (0..BUSY.len()).map(|channel| self.of_bus(channel)).sum()
    }

    /// Frames on a bus, but for the first.
    fn sent(self, channel: usize) -> u64 {
        self.of_bus(channel) * (LOADED.0 / 1_000_000_000)
    }

    /// Returns the traffic of a bus: one frame at its very beginning, before anybody listens, then
    /// the load.
    fn traffic(self, channel: usize) -> PluggedCanBus {
        let rate = self.of_bus(channel);
        let mut log = String::new();
        let mut frame = |time: Nanos, number: u64| {
            let (seconds, micros) = (time.0 / 1_000_000_000, time.0 % 1_000_000_000 / 1_000);
            let data = number.swap_bytes();
            let _ = writeln!(log, "({seconds}.{micros:06}) can{channel} 10{channel}#{data:016X}");
        };
        frame(Nanos::ZERO, 0);
        for number in 0..self.sent(channel) {
            frame(OPENED + Nanos(number * 1_000_000_000 / rate), number + 1);
        }
        PluggedCanBus { channel, traffic: CanTraffic::Replay { file: String::new(), log } }
    }
}

/// How a core is shared for what is promised: of the bottom half in per cent, of each reader in per
/// mille, and the period of both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Laid {
    half: u32,
    reader: u64,
    period: Nanos,
}

impl Laid {
    /// Returns all that are tried.
    fn all() -> impl Iterator<Item = Laid> {
        let periods = [2_500, 5_000, 10_000].map(Nanos::from_micros);
        let readers = [20, 40, 60];
        periods.into_iter().flat_map(move |period| {
            let with = move |reader| (2..=10).map(move |half| (reader, half * 5));
            let all = readers.into_iter().flat_map(with);
            all.map(move |(reader, half)| Laid { half, reader, period })
        })
    }

    /// A system with its VCPUs like this.
    fn shape(self, system: &mut System, speed: Speed) {
        system.scheduling.dp_queues = 0;
        let of_readers: Vec<u16> = (0u16..)
            .zip(&system.vcpus)
            .filter(|(number, _)| {
                let mut readers = system.pipes.iter().filter_map(PipeSpec::process);
                readers.any(|it| system.processes[usize::from(it)].vcpu == Some(*number))
            })
            .map(|(number, _)| number)
            .collect();
        for (number, vcpu) in (0u16..).zip(&mut system.vcpus) {
            match &mut vcpu.server {
                ServerSpec::Main { budget_ns, period_ns, replenishments, .. } => {
                    *replenishments = 2;
                    if of_readers.contains(&number) {
                        *period_ns = self.period.0;
                        *budget_ns = self.period.0 * self.reader / 1_000;
                    } else {
                        *budget_ns <<= speed.0;
                        *period_ns = 4 * self.period.0;
                    }
                }
                ServerSpec::Io { utilization_ppm, .. } => *utilization_ppm = self.half * 10_000,
            }
        }
    }
}

impl fmt::Display for Laid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Laid { half, reader, period } = self;
        write!(f, "{half} %, 5 x {} % of {} ms", *reader as f64 / 10.0, period.0 as f64 / 1e6)
    }
}

/// A turn of the bottom half takes as long as for so many frames.
fn set_turn(system: &mut System, Speed(shift): Speed, frames: u64) {
    for work in system.works.iter_mut().filter(|work| work.name == TURN) {
        let transfers = frames.min(TRANSFER.1 as u64);
        work.worst_ns = (TURN_ITSELF + TURN_TRANSFER * transfers + TURN_EACH * frames) << shift;
    }
}

/// Returns whether every frame of the contracts is promised to be read. The messages that a turn
/// may find came while a message may be on its way to the reader's ring. If they are no more than
/// the turn was taken to find, no later turn finds more. Else the turn is taken to find so many.
fn is_promised(system: &mut System, speed: Speed) -> bool {
    let mut frames = 1;
    loop {
        set_turn(system, speed, frames);
        let plan = Plan::of(system);
        if !plan.holds() {
            return false;
        }
        let found = found(system, &plan).min(FOUND_MAX);
        if found <= frames {
            return true;
        }
        frames = found;
    }
}

/// Returns the most frames that a turn finds.
fn found(system: &System, plan: &Plan) -> u64 {
    let bills = plan.pipes.iter().filter_map(|piped| piped.bill.as_ref().ok());
    let longest = bills.map(|bill| bill.before(What::User)).max().unwrap_or(Nanos::FOREVER);
    let contracts = system.pipes.iter().map(pipes::contract);
    contracts.map(|contract| contract.most(longest)).fold(0, u64::saturating_add)
}

/// The results of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Spent {
    /// True if every frame was read.
    pub whole: bool,
    pub messages: u64,
    /// The number of times that the bottom half was woken for the frames.
    turns: u64,
    /// How long any thread ran, and those of the server; the kernel's time is that of the thread
    /// that ran next.
    pub busy: Nanos,
    pub server: Nanos,
}

/// The core that carries the load.
pub(crate) struct Core {
    system: System,
    built: Built,
}

impl Core {
    /// Reads the description and builds what boots.
    ///
    /// # Errors
    /// If something is wrong with it, or does not compile.
    pub fn prepare(workspace: &Workspace) -> Result<Core, Failure> {
        let system = describe(&workspace.root().join(PATH))?;
        Ok(Core { system, built: boot::build(workspace)? })
    }

    /// Returns the largest load of which `plan` promises that every frame is read, and how the core
    /// is shared for that.
    pub fn promised(&self, speed: Speed) -> (Load, Option<Laid>) {
        let mut best = (Load(0), None);
        for laid in Laid::all() {
            let mut system = self.slowed(speed);
            laid.shape(&mut system, speed);
            let mut admitted = |load: u64| {
                for pipe in &mut system.pipes {
                    pipe.rate = Load(load).of_bus(pipe.channel.into()).max(1);
                }
                is_promised(&mut system, speed)
            };
            let Load(before) = best.0;
            // Most are no better.
            if before < LOADS && admitted(before + 1) {
                let more = |load| Ok::<bool, Failure>(load <= before || admitted(load));
                best = largest(LOADS, more).map_or(best, |load| (Load(load), Some(laid)));
            }
        }
        best
    }

    /// Returns the system on a slower core, where everything takes longer.
    fn slowed(&self, Speed(shift): Speed) -> System {
        let mut system = self.system.clone();
        system.clock_hz >>= shift;
        system.works.iter_mut().for_each(|work| work.worst_ns <<= shift);
        system
            .pipes
            .iter_mut()
            .for_each(|pipe| pipe.work_ns = pipe.work_ns.map(|work| work << shift));
        system
    }

    /// Returns a run with this on the buses. It is put together for a core of 1 GHz and with the
    /// contracts of the description, since nothing is promised of what is sought here.
    fn session(&self, load: Load) -> Result<Session, Failure> {
        let mut system = self.system.clone();
        for usb in &mut system.usb {
            usb.buses = (0..BUSY.len()).map(|channel| load.traffic(channel)).collect();
        }
        let horizon_ns = (OPENED + LOADED + SILENT).0;
        let options = RunOptions { horizon_ns, record_bytes: 0, watch: false };
        Session::assemble(system, self.built.clone(), options)
    }

    /// Simulates a load on the core. A turn takes what it takes for as many frames as turns find on
    /// average, so that all of them together take what they should.
    ///
    /// # Errors
    /// If it cannot be run.
    pub fn simulate(&self, speed: Speed, load: Load) -> Result<Spent, Failure> {
        let mut session = self.session(load)?;
        session.system.works = self.slowed(speed).works;
        let mut frames = 1;
        loop {
            set_turn(&mut session.system, speed, frames);
            let works = simulate::works(&session, None);
            let how = Options { costs: Costs::at(speed.hertz()), works, ..Options::default() };
            let run = Simulation::new(&session, &how).run(&mut ())?.run;
            let spent = self.spent(&run, load)?;
            let found = spent.messages.div_ceil(spent.turns.max(1)).min(FOUND_MAX);
            if found <= frames {
                return Ok(spent);
            }
            frames = found;
        }
    }

    /// Runs a load on the core in QEMU.
    ///
    /// # Errors
    /// If it cannot be run.
    pub fn emulate(
        &self,
        workspace: &Workspace,
        speed: Speed,
        load: Load,
    ) -> Result<Spent, Failure> {
        let session = Session { shift: speed.0, ..self.session(load)? };
        let run = session.run(workspace, &mut |_| {})?;
        self.spent(&run, load)
    }

    fn spent(&self, run: &FinishedRun, load: Load) -> Result<Spent, Failure> {
        let Outcome { pipes, threads, devices, .. } = &run.outcome;
        let ended = || Failure::Ours(format!("the run ended as {:?}", run.ending));
        let end = run.outcome.end.ok_or_else(ended)?;
        let carried = |channel: usize| {
            let mut rows = pipes.iter().filter(|row| usize::from(row.channel) == channel);
            rows.any(|row| row.lost == 0 && row.messages == load.sent(channel))
        };
        let server = self.system.processes.iter().position(|process| process.name == SERVER);
        let interrupt = self.system.devices.iter().position(|device| device.name == INTERRUPT);
        let turns = devices.iter().find(|row| usize::try_from(row.device).ok() == interrupt);
        let is_server = |row: &&ThreadRow| usize::try_from(row.process).ok() == server;
        Ok(Spent {
            whole: (0..BUSY.len()).all(carried),
            messages: pipes.iter().map(|row| row.messages).sum(),
            turns: turns.map_or(0, |row| row.interrupts),
            busy: Nanos(end.time_ns.saturating_sub(end.idle_ns)),
            server: Nanos(threads.iter().filter(is_server).map(|row| row.cpu_ns).sum()),
        })
    }
}
