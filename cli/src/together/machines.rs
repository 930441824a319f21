//! The QEMUs of several hosts, and the barrier at which they wait for each other.

use super::wires::HostWires;
use crate::console::{Line, Speakers};
use crate::cores;
use crate::failure::Failure;
use crate::image::fnv;
use crate::interrupt;
use crate::outcome::Outcome;
use crate::plugged::{self, Log, PluggedDevice};
use crate::qemu::{Boot, MachineEnding, RunFolder};
use crate::session::{FinishedRun, Session};
use crate::several::{CABLE_BYTES, Joints};
use crate::simulate::WireBooks;
use crate::surroundings;
use crate::workspace::Workspace;
use diapason_abi::Nanos;
use diapason_devices::UsbDevice;
use diapason_devices::bridge::slow_bridge;
use diapason_redir::{DeviceServer, Emulator, RunError, RunPlan, firmware};
use diapason_system::{Cable, Socket, System};
use std::fs::File;
use std::io::{self, Read};
use std::process::Stdio;
use std::time::Duration;

/// The name of the console's file, in the run's folder. QEMU writes a file at once, so what a guest
/// has said is there when it stands still.
const CONSOLE: &str = "console.txt";
/// How long a QEMU may take to exit after its guest has ended.
const EXIT: Duration = Duration::from_secs(60);

/// The outcome of hosts that ran together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostRuns {
    /// In the order of the list; other cores of hosts are behind all hosts.
    pub runs: Vec<FinishedRun>,
    /// A number for all that each host said.
    pub consoles: Vec<u64>,
    /// A number for the requests and answers of all USB devices and cables.
    pub served: u64,
    /// A number for all frames of Ethernet.
    pub frames: u64,
    /// The traffic at switches.
    pub wires: WireBooks,
    /// Frames that came to an adapter of each host without room for them, or that was switched off.
    pub refused: Vec<u64>,
}

/// A model that is plugged in: where, and the model.
type Plugged = (String, Box<dyn UsbDevice>);
/// The models at each host, and its captures, if they are wanted.
type PluggedHosts = (Vec<Vec<Plugged>>, Vec<Option<Log>>);

/// Boots these hosts, joined by these cables and wires, and follows them until each has ended.
/// `observer` sees every line of every console, with the number of its host, in the same order in
/// every run.
///
/// # Errors
/// If QEMU cannot be used, or the hosts and the cables lose each other.
pub fn boot(
    workspace: &Workspace,
    sessions: &[&Session],
    joints: &Joints,
    observer: &mut dyn FnMut(usize, &Line),
) -> Result<HostRuns, Failure> {
    sessions.iter().try_for_each(|session| surroundings::emulable(&session.system))?;
    let folder = RunFolder::create(&workspace.target())?;
    let patience = sessions.first().map_or(EXIT, |session| session.boot().patience);
    let slice = sessions.iter().map(|session| session.slice).min().unwrap_or(plugged::SLICE);
    let plan = RunPlan { slice, patience, plugged: firmware::DONE, ..RunPlan::default() };
    let systems: Vec<&System> = sessions.iter().map(|session| &session.system).collect();
    let crews = joints.crews(&systems);
    let hosts: Vec<Vec<&Session>> =
        crews.iter().map(|crew| crew.iter().map(|part| sessions[*part]).collect()).collect();
    let archives: Vec<Vec<u8>> = hosts.iter().map(|cores| cores::archives(cores, 0)).collect();
    let each = hosts.iter().zip(&archives);
    let boots = each.filter_map(|(cores, archive)| cores::machine(cores, archive).transpose());
    let boots = boots.collect::<Result<Vec<Boot<'_>>, Failure>>()?;
    let adapters: Vec<usize> = boots.iter().map(|boot| boot.adapters).collect();
    let mut wires = HostWires::of(&systems[..hosts.len()], &adapters, joints)?;
    let (plugged, mut logs) = plug(&boots, &joints.cables, &wires)?;
    let (ports, models): (Vec<Vec<String>>, Vec<_>) =
        plugged.into_iter().map(|own| own.into_iter().unzip()).unzip();
    let path = plugged::absolute(folder.path())?;
    let server = DeviceServer::start_together(&path, models, plan).map_err(lost)?;
    let mut machines = Vec::new();
    for (host, (boot, ports)) in boots.iter().zip(&ports).enumerate() {
        let served = server.arguments_at(host, ports, boot.adapters);
        machines.push(Machine::start(workspace, boot.clone(), served)?);
    }
    let (mut trouble, mut refused) = (None, vec![0; hosts.len()]);
    let ended = server.run_on(&mut wires, |stop, devices| {
        logs[stop.guest].iter_mut().for_each(|log| log.look(stop.now, devices));
        refused[stop.guest] = stop.refused;
        let crew = &crews[stop.guest];
        let listened = machines[stop.guest].listen(|core, line| observer(crew[core], line));
        trouble = trouble.take().or(listened.err());
        if interrupt::came() {
            machines.iter_mut().for_each(|machine| machine.emulator = None);
        }
    });
    let (report, mut devices) = ended.map_err(lost)?;
    let mut devices = &mut devices[..];
    for (log, ports) in logs.into_iter().zip(&ports) {
        let (own, others) = devices.split_at_mut(ports.len());
        devices = others;
        log.map_or(Ok(()), |log| log.finish(report.time, own))?;
    }
    let (served, (wires, frames)) = (report.hash, wires.finish());
    let mut runs: Vec<Option<FinishedRun>> = sessions.iter().map(|_| None).collect();
    let mut consoles = Vec::new();
    for (host, (machine, crew)) in machines.into_iter().zip(&crews).enumerate() {
        // Nothing waits at a host without models and cables.
        let served = (!ports[host].is_empty()).then_some(served);
        let (own, console) = machine.finish(served, |core, line| observer(crew[core], line))?;
        crew.iter().zip(own).for_each(|(part, run)| runs[*part] = Some(run));
        consoles.push(console);
    }
    let runs = runs.into_iter().flatten().collect();
    match trouble {
        Some(error) => Err(Failure::io("read a console", &error)),
        None => Ok(HostRuns { runs, consoles, served, frames, wires, refused }),
    }
}

/// Returns the failure of hosts that lost each other.
fn lost(failure: RunError) -> Failure {
    let what = match &failure {
        RunError::Guest(host, wrong) => format!("host {}: {wrong}", host + 1),
        other => other.to_string(),
    };
    Failure::World(format!("the hosts cannot be kept in step: {what}"))
}

/// Returns what is plugged into each host: its own devices, then its ends of cables.
fn plug(boots: &[Boot<'_>], cables: &[Cable], wires: &HostWires) -> Result<PluggedHosts, Failure> {
    let (mut hosts, mut logs) = (Vec::new(), Vec::new());
    for (host, boot) in boots.iter().enumerate() {
        let mut buses = Vec::new();
        let mut model = |plug: &PluggedDevice| {
            let device = surroundings::device(&plug.described, &mut buses)?;
            Some((plug.port.clone(), device))
        };
        let served = boot.plugged.iter().filter(|plug| plug.is_served());
        hosts.push(served.filter_map(&mut model).collect::<Vec<Plugged>>());
        let wanted = boot.captures.is_some();
        let begin = || Log::begin(&boot.captures, &buses, &wires.taps(host));
        logs.push(wanted.then(begin).transpose()?);
    }
    for cable in cables {
        let (here, there) = slow_bridge(CABLE_BYTES, Nanos(cable.delay_ns));
        for (end, device) in cable.ends.iter().zip([here, there]) {
            if let Socket::Port(port) = end.socket {
                hosts[end.host].push((port.to_string(), Box::new(device)));
            }
        }
    }
    Ok((hosts, logs))
}

/// A host's QEMU. It does not outlive this value.
struct Machine<'a> {
    boot: Boot<'a>,
    /// `None` once an interrupt has ended it.
    emulator: Option<Emulator>,
    console: File,
    speakers: Speakers,
    /// The outcome of each core.
    outcomes: Vec<Outcome>,
    folder: RunFolder,
}

impl Machine<'_> {
    fn start<'a>(
        workspace: &Workspace,
        boot: Boot<'a>,
        served: Vec<std::ffi::OsString>,
    ) -> Result<Machine<'a>, Failure> {
        let folder = RunFolder::create(&workspace.target())?;
        let path = folder.path().join(CONSOLE);
        let console = File::create(&path).and_then(|_| File::open(&path));
        let console = console.map_err(|error| Failure::io("make a console", &error))?;
        let boot = Boot { among_others: true, ..boot };
        let mut command = boot.command(&folder, &format!("file:{CONSOLE}"))?;
        command.args(boot.shared_controller(&folder)?).args(served);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let emulator = Emulator::start(&mut command);
        let emulator = Some(emulator.map_err(|error| Failure::io("start QEMU", &error))?);
        let speakers = Speakers::new(boot.cores);
        let outcomes = (0..boot.cores).map(|_| Outcome::default()).collect();
        Ok(Machine { boot, emulator, console, speakers, outcomes, folder })
    }

    /// Takes in what the host has said since the last time. The observer sees every line with the
    /// number of its core.
    fn listen(&mut self, mut observer: impl FnMut(usize, &Line)) -> io::Result<()> {
        let mut buffer = [0; 8192];
        loop {
            let count = self.console.read(&mut buffer)?;
            if count == 0 {
                return Ok(());
            }
            self.speakers.push(&buffer[..count], |core, line| {
                self.outcomes[core].note(&line);
                observer(core, &line);
            });
        }
    }

    /// Waits for its end. Returns the run of each core, and a number for all that the host said.
    fn finish(
        mut self,
        served: Option<u64>,
        mut observer: impl FnMut(usize, &Line),
    ) -> Result<(Vec<FinishedRun>, u64), Failure> {
        let ending = match &mut self.emulator {
            None => MachineEnding::Interrupted,
            Some(emulator) => {
                let status = emulator.wait(EXIT);
                let status = status.map_err(|error| Failure::io("wait for QEMU", &error))?;
                status.map_or(MachineEnding::Hung, |it| MachineEnding::of_status(it.code()))
            }
        };
        let unread = |error| Failure::io("read a console", &error);
        self.listen(&mut observer).map_err(unread)?;
        let Machine { boot, mut speakers, mut outcomes, folder, .. } = self;
        speakers.finish(|core, line| {
            outcomes[core].note(&line);
            observer(core, &line);
        });
        let said = std::fs::read(folder.path().join(CONSOLE)).map_err(unread)?;
        let runs = cores::finished(ending, outcomes, boot.flights(&folder)?, served);
        Ok((runs, fnv([said])))
    }
}
