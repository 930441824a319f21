//! The emulated PC: how it is started, listened to, and how it ends.
//!
//! One instruction is one nanosecond of its clock (`-icount shift=0,sleep=off`), or two, four and
//! so on if a slower processor is wanted; so two runs of the same system are the same to the
//! instruction, whatever else the host does. The only wall clock here is the watchdog against
//! hangs.

use crate::capture::CaptureRequest;
use crate::console::{Line, Speakers};
use crate::failure::Failure;
use crate::hardware::{Hardware, Inserted, Medium};
use crate::interrupt;
use crate::plan::rate;
use crate::plugged::{self, Plugged, PluggedDevice, spare_port};
use diapason_abi::archive::Location;
use diapason_abi::record::exit;
use diapason_abi::{Key, Nanos};
use diapason_redir::plugin::{self, PluginSource};
use diapason_redir::{CONTROLLER, Emulator, RunPlan, firmware};
use diapason_system::System;
use std::cell::Cell;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Between two looks whether the run is to end early.
const LOOK: Duration = Duration::from_millis(100);
/// Least memory of the machine, in MiB.
pub const MEMORY_MIB_MIN: u64 = 64;
/// File names in the run's folder. QEMU is started inside it, so that no name needs quoting.
const ARCHIVE: &str = "archive.bin";
const FLIGHT: &str = "flight.bin";
const SEEN: &str = "seen.txt";
/// The port to which the second core's kernel writes its flight record, as that of the kernel says.
const OTHER_FLIGHTS: usize = 0xe1;

/// The classes of the devices that QEMU has for a description: USB controllers, and adapters of
/// networks.
const CONTROLLERS: u32 = 0x0c_0330;
const ADAPTERS: u32 = 0x02_0000;
/// The adapter, an Intel 82574L.
const ADAPTER: &str = "e1000e";

/// Returns the file of a core's flight record.
fn flight_of(core: usize) -> String {
    if core == 0 { FLIGHT.into() } else { format!("{core}-{FLIGHT}") }
}

/// Returns an end of a wire outside the machine, in the run's folder, where nobody listens.
fn dgram(name: &str) -> String {
    format!(
        "dgram,id={name},local.type=unix,local.path={name},remote.type=unix,remote.path=nowhere"
    )
}

/// Returns the number of USB controllers to plug in so that the machine has those of `system`.
#[must_use]
pub fn controllers(system: &System) -> usize {
    instances(system, CONTROLLERS)
}

/// Returns the number of adapters for Ethernet to plug in so that the machine has those of
/// `system`.
#[must_use]
pub fn adapters(system: &System) -> usize {
    instances(system, ADAPTERS)
}

/// Returns how many functions of a class the highest `instance` asks for.
fn instances(system: &System, class: u32) -> usize {
    let instances = system.devices.iter().filter_map(|device| match device.location {
        Location::Pci(function) if function.class == class => Some(function.instance),
        _ => None,
    });
    instances.max().map_or(0, |highest| usize::from(highest) + 1)
}

/// The request to boot.
#[derive(Clone, Debug)]
pub struct Boot<'a> {
    /// The kernel's ELF file.
    pub kernel: &'a Path,
    pub archive: &'a [u8],
    /// Memory of the machine, in MiB.
    pub memory_mib: u64,
    /// The machine and its USB controller.
    pub hardware: Hardware,
    /// The image that it starts from. Without one, QEMU itself loads kernel and archive.
    pub inserted: Option<&'a Inserted>,
    /// How many processors the machine has.
    pub cores: usize,
    /// Their instructions make its time, and several run side by side. Otherwise they are threads
    /// of this computer and run in its time.
    pub counted: bool,
    /// How many USB controllers the description needs.
    pub controllers: usize,
    /// How many adapters for Ethernet the description needs. One wire joins them, unless this is
    /// one of several hosts.
    pub adapters: usize,
    /// USB devices that are plugged into the first controller.
    pub plugged: Vec<PluggedDevice>,
    /// The captures that are wanted of them.
    pub captures: CaptureRequest,
    /// One of several hosts: the caller plugs in the first controller.
    pub among_others: bool,
    /// Keep what the flight recorder sends.
    pub record: bool,
    /// An instruction takes 2 to the power of this, in ns.
    pub shift: u8,
    /// When to give up on a hang, in wall time.
    pub patience: Duration,
    /// A plugin that looks on.
    pub onlooker: Option<Onlooker>,
}

/// A plugin of QEMU that changes nothing in the guest, and writes what it saw into a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Onlooker {
    pub plugin: PluginSource,
    /// The arguments of the plugin besides `out`, with commas between them.
    pub arguments: String,
}

impl Onlooker {
    /// Builds the plugin in the run's folder, and returns the options that QEMU needs for it.
    fn options(&self, folder: &RunFolder) -> Result<[String; 2], Failure> {
        let built = plugin::build(folder.path(), &self.plugin);
        built.map_err(|missing| Failure::World(missing.to_string()))?;
        let (name, arguments) = (self.plugin.name, &self.arguments);
        Ok(["-plugin".into(), format!("./{name}.so,out={SEEN},{arguments}")])
    }

    /// Returns what the plugin wrote.
    fn seen(folder: &RunFolder) -> Result<String, Failure> {
        let read = fs::read_to_string(folder.path().join(SEEN));
        read.map_err(|error| Failure::io("read what a plugin of QEMU saw", &error))
    }
}

/// Instructions a second of QEMU's processor.
const QEMU_HERTZ: u64 = 1_000_000_000;

/// Returns what a run does not show of a system with another clock, as a sentence.
pub(crate) fn unseen(system: &System) -> Option<String> {
    (system.clock_hz != QEMU_HERTZ).then(|| {
        let [own, qemu] = [system.clock_hz, QEMU_HERTZ].map(rate);
        format!(
            "the system at its `clock` of {own}: QEMU's processor does {qemu}, and programs take \
             another time there"
        )
    })
}

/// A boot that has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Booted {
    pub ending: MachineEnding,
    /// The flight record of each core, if it was asked for.
    pub flights: Vec<Vec<u8>>,
    /// A number for the requests and answers of the USB devices; it is equal for equal runs.
    pub served: Option<u64>,
    /// The text of the plugin that looked on, if there was one.
    pub seen: Option<String>,
}

/// How the machine ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MachineEnding {
    /// The horizon was reached.
    Finished,
    /// Nothing was left that could run.
    Halted,
    /// Another core ended the machine before this one told its counts.
    OtherCore,
    Panic,
    /// The kernel could not use the archive.
    NoArchive,
    /// A process that nobody supervises faulted.
    SupervisorDied,
    /// The machine had to be stopped from outside.
    Hung,
    /// A signal to the command, or its observer, ended it early.
    Interrupted,
    /// The emulator ended by itself (-1: by a signal).
    Emulator(i32),
}

impl MachineEnding {
    /// Returns the ending that the emulator's exit status stands for.
    #[must_use]
    pub fn of_status(status: Option<i32>) -> MachineEnding {
        const VALUES: [(u8, MachineEnding); 5] = [
            (exit::FINISHED, MachineEnding::Finished),
            (exit::HALTED, MachineEnding::Halted),
            (exit::PANIC, MachineEnding::Panic),
            (exit::NO_ARCHIVE, MachineEnding::NoArchive),
            (exit::SUPERVISOR_DIED, MachineEnding::SupervisorDied),
        ];
        let status = status.unwrap_or(-1);
        let known = VALUES.iter().find(|(value, _)| exit::status(*value) == status);
        known.map_or(MachineEnding::Emulator(status), |(_, ending)| *ending)
    }
}

/// Time after which a run of this horizon must be a hang: a busy second of the guest takes a few
/// seconds of a slow host.
#[must_use]
pub fn patience(horizon_ns: u64) -> Duration {
    Duration::from_secs(180).saturating_add(Duration::from_nanos(horizon_ns).saturating_mul(60))
}

/// A folder for one run's files, removed with it.
#[derive(Debug)]
pub struct RunFolder(PathBuf);

impl RunFolder {
    /// Returns a new folder under `target`.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn create(target: &Path) -> Result<RunFolder, Failure> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let runs = target.join("runs");
        sweep(&runs);
        let path = runs.join(format!("{}{}-{number}", namespace(), std::process::id()));
        fs::create_dir_all(&path)
            .map_err(|error| Failure::io(format!("make {}", path.display()), &error))?;
        Ok(RunFolder(path))
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Begins the names of folders whose owners' numbers mean something here: processes of another
/// container that shares the target folder have numbers of their own.
fn namespace() -> String {
    let link = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let machine = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let key = Key::new(&format!("{} {}", link.display(), machine.trim()));
    format!("{:08x}-", key.0 as u32)
}

/// Removes the folders of runs whose process is gone: killed, or turned into a debugger.
fn sweep(runs: &Path) {
    let namespace = namespace();
    for entry in fs::read_dir(runs).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(ours) = name.strip_prefix(&namespace) else { continue };
        let owner = ours.split('-').next().unwrap_or_default();
        if !Path::new("/proc").join(owner).exists() {
            // Another run may be sweeping too; what stays does no harm.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // Leftovers under `target` harm nobody, and there is nobody left to tell.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Boot<'_> {
    /// Returns the command that boots the machine, its archive written to `folder` and its console
    /// going to `console` (a character device of QEMU's).
    ///
    /// # Errors
    /// If the archive cannot be written.
    pub fn command(&self, folder: &RunFolder, console: &str) -> Result<Command, Failure> {
        let mut command = Command::new(crate::tools::QEMU.program);
        command.current_dir(folder.path());
        let Hardware { machine, cpu, iommu, serial, .. } = self.hardware;
        command.args(["-M", machine, "-cpu", cpu, "-m"]).arg(format!("{}M", self.memory_mib));
        if iommu {
            command.args(["-device", "intel-iommu,intremap=on"]);
        }
        if self.cores > 1 {
            command.arg("-smp").arg(self.cores.to_string());
        }
        if self.inserted.is_none() {
            fs::write(folder.path().join(ARCHIVE), self.archive)
                .map_err(|error| Failure::io("write the boot archive", &error))?;
            command.arg("-kernel").arg(self.kernel).args(["-initrd", ARCHIVE]);
            let patience = firmware::without_patience(folder.path());
            let failed = |error| Failure::io("write an option of the firmware", &error);
            command.args(patience.map_err(failed)?);
        }
        command.args(["-display", "none", "-no-reboot", "-nodefaults"]);
        command.args(["-serial", if serial { console } else { "none" }]);
        command.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"]);
        command.args(self.hardware.before);
        for number in self.bare_controllers() {
            let id = if number == 0 { format!(",id={CONTROLLER}") } else { String::new() };
            command.arg("-device").arg(format!("{}{id}", self.hardware.controller));
        }
        self.plug_adapters(&mut command);
        command.args(self.hardware.more);
        if self.counted {
            command.arg("-icount").arg(format!("shift={},sleep=off", self.shift));
        }
        if self.record {
            command.arg("-debugcon").arg(format!("file:{FLIGHT}"));
            for core in 1..self.cores {
                let (port, file) = (OTHER_FLIGHTS + core - 1, flight_of(core));
                command.arg("-chardev").arg(format!("file,id=flight{core},path={file}"));
                let device = format!("isa-debugcon,iobase={port},chardev=flight{core}");
                command.arg("-device").arg(device);
            }
        }
        Ok(command)
    }

    /// Adds the adapters for Ethernet, and the wire between them. Those of one of several hosts
    /// have a wire each, whose other end is the clock's plugin.
    fn plug_adapters(&self, command: &mut Command) {
        for number in 0..self.adapters {
            let end = match self.among_others {
                true => dgram(&format!("wire{number}")),
                false => format!("hubport,id=wire{number},hubid=0"),
            };
            command.arg("-netdev").arg(end);
            command.arg("-device").arg(format!("{ADAPTER},netdev=wire{number}"));
        }
        if self.adapters > 0 && !self.among_others {
            // QEMU warns of a hub without an end outside the machine.
            command.arg("-netdev").arg(dgram("outside"));
            command.args(["-netdev", "hubport,id=out,hubid=0,netdev=outside"]);
        }
    }

    /// Returns the numbers of the controllers that nothing is plugged into: a controller with
    /// something comes with that. A stick needs one.
    fn bare_controllers(&self) -> std::ops::Range<usize> {
        let is_stick = |medium| medium != Medium::Disc;
        let stick = self.inserted.is_some_and(|image| is_stick(image.medium));
        let is_placed = self.among_others || !self.plugged.is_empty();
        usize::from(is_placed)..self.controllers.max(usize::from(stick))
    }

    /// Returns the options for the first controller of a host among others, with what QEMU has
    /// itself of its devices. Cables may end at any port.
    ///
    /// # Errors
    /// If the simulator alone has one of the devices.
    pub fn shared_controller(&self, folder: &RunFolder) -> Result<Vec<OsString>, Failure> {
        match self.controllers {
            0 => Ok(Vec::new()),
            _ => plugged::all_ports(folder.path(), self.hardware.controller, &self.plugged),
        }
    }

    /// Serves what is plugged in, if something is. Several processors side by side need the
    /// plugin that holds the clock, too.
    fn plug(&self, folder: &RunFolder) -> Result<Option<Plugged>, Failure> {
        let some = !self.plugged.is_empty() || self.is_side_by_side();
        let (patience, instruction) = (self.patience, Nanos(1 << self.shift));
        // Firmware that boots an image sees the devices, as that of a PC.
        let plugged = if self.inserted.is_some() { Nanos::ZERO } else { firmware::DONE };
        let plan = RunPlan { patience, instruction, plugged, ..RunPlan::default() };
        some.then(|| Plugged::serve(folder.path(), self, plan)).transpose()
    }

    /// Returns whether several processors run in counted time.
    pub(crate) const fn is_side_by_side(&self) -> bool {
        self.cores > 1 && self.counted
    }

    /// Returns the flight record of each core of a run in this folder; none if they were not asked
    /// for.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn flights(&self, folder: &RunFolder) -> Result<Vec<Vec<u8>>, Failure> {
        let cores = if self.record { self.cores } else { 0 };
        let read = |core| fs::read(folder.path().join(flight_of(core)));
        let records = (0..cores).map(read).collect::<Result<Vec<_>, _>>();
        records.map_err(|error| Failure::io("read the flight record", &error))
    }

    /// Boots the machine and shows every console line to `observer` as it arrives. Returns how it
    /// ended and, if asked for, the flight record.
    ///
    /// # Errors
    /// If the emulator cannot be started or its files not be used.
    pub fn run(&self, target: &Path, observer: &mut dyn FnMut(&Line)) -> Result<Booted, Failure> {
        self.run_cores(target, &mut |_, line| {
            observer(line);
            ControlFlow::Continue(())
        })
    }

    /// Does what [`Boot::run`] does; the observer is also told which core says a line, and ends the
    /// run when it has heard enough.
    ///
    /// # Errors
    /// If the emulator cannot be started or its files not be used.
    pub fn run_cores(
        &self,
        target: &Path,
        observer: &mut dyn FnMut(usize, &Line) -> ControlFlow<()>,
    ) -> Result<Booted, Failure> {
        let folder = RunFolder::create(target)?;
        let plugged = self.plug(&folder)?;
        let mut command = self.command(&folder, "stdio")?;
        command.args(plugged.iter().flat_map(|plugged| &plugged.arguments));
        if let Some(image) = self.inserted {
            command.args(image.options(folder.path(), spare_port(&self.plugged))?);
        }
        if let Some(onlooker) = &self.onlooker {
            command.args(onlooker.options(&folder)?);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let emulator = Emulator::start(&mut command);
        let emulator = emulator.map_err(|error| Failure::io("start QEMU", &error))?;
        let speakers = Speakers::new(self.cores);
        let ending = Running { emulator }.follow(self.patience, speakers, observer)?;
        let served = plugged.map(Plugged::finish).transpose()?.flatten();
        let flights = self.flights(&folder)?;
        let seen = self.onlooker.as_ref().map(|_| Onlooker::seen(&folder)).transpose()?;
        Ok(Booted { ending, flights, served, seen })
    }
}

/// A started emulator that is listened to.
struct Running {
    emulator: Emulator,
}

impl Running {
    fn follow(
        mut self,
        patience: Duration,
        mut speakers: Speakers,
        observer: &mut dyn FnMut(usize, &Line) -> ControlFlow<()>,
    ) -> Result<MachineEnding, Failure> {
        let deadline = Instant::now() + patience;
        let chunks = self.listen();
        let is_enough = Cell::new(false);
        let mut hear = |core, line: Line| {
            is_enough.set(observer(core, &line).is_break() || is_enough.get());
        };
        let ending = loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match chunks.recv_timeout(left.min(LOOK)) {
                _ if interrupt::came() => break Some(MachineEnding::Interrupted),
                Ok(chunk) => speakers.push(&chunk, &mut hear),
                Err(RecvTimeoutError::Disconnected) => break None,
                Err(RecvTimeoutError::Timeout) if left > LOOK => {}
                Err(RecvTimeoutError::Timeout) => break Some(MachineEnding::Hung),
            }
            if is_enough.get() {
                break Some(MachineEnding::Interrupted);
            }
        };
        speakers.finish(hear);
        ending.map_or_else(|| self.wait(deadline), Ok)
    }

    /// Returns its standard output, read by a thread of its own so that the watchdog can look away.
    fn listen(&mut self) -> Receiver<Vec<u8>> {
        let (sender, receiver) = channel();
        if let Some(mut output) = self.emulator.output() {
            std::thread::spawn(move || {
                let mut buffer = [0; 8192];
                while let Ok(count @ 1..) = output.read(&mut buffer) {
                    if sender.send(buffer[..count].to_vec()).is_err() {
                        return;
                    }
                }
            });
        }
        receiver
    }

    /// Waits for its end after it closed its output.
    fn wait(&mut self, deadline: Instant) -> Result<MachineEnding, Failure> {
        let status = self.emulator.wait(deadline.saturating_duration_since(Instant::now()));
        let status = status.map_err(|error| Failure::io("wait for QEMU", &error))?;
        Ok(status.map_or(MachineEnding::Hung, |status| MachineEnding::of_status(status.code())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::ControlFlow::{Break, Continue};

    fn follow(script: &str, patience: Duration) -> (MachineEnding, Vec<Line>) {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped());
        let running = Running { emulator: Emulator::start(&mut command).unwrap() };
        let mut lines = Vec::new();
        let heard = &mut |_, line: &Line| {
            lines.push(line.clone());
            if *line == Line::Raw("enough".into()) { Break(()) } else { Continue(()) }
        };
        let ending = running.follow(patience, Speakers::new(1), heard).unwrap();
        (ending, lines)
    }

    #[test]
    fn folders_of_dead_runs_are_swept_and_ours_goes_with_its_value() {
        let target = std::env::temp_dir().join(format!("diapason-sweep-{}", std::process::id()));
        let dead = target.join(format!("runs/{}4294967295-0", namespace()));
        // A folder of another container, where this number is another process.
        let foreign = target.join("runs/00000000-4294967295-0");
        fs::create_dir_all(&dead).unwrap();
        fs::create_dir_all(&foreign).unwrap();
        let ours = RunFolder::create(&target).unwrap();
        assert!(!dead.exists() && ours.path().is_dir() && foreign.is_dir());
        let path = ours.path().to_path_buf();
        drop(ours);
        assert!(!path.exists());
        fs::remove_dir_all(&target).unwrap();
    }

    #[test]
    fn a_system_with_another_clock_is_not_seen_as_it_is() {
        let of = |clock: &str| {
            let text = format!(
                "[system]\nname = \"s\"\n{clock}\n[[process]]\nname = \"p\"\npriority = 1\n"
            );
            unseen(&diapason_system::parse("s", &text).unwrap_or_else(|wrong| panic!("{wrong}")))
        };
        assert_eq!([of(""), of("clock = \"1GHz\"")], [None, None]);
        let said = "the system at its `clock` of 2400 MHz: QEMU's processor does 1000 MHz, and \
                    programs take another time there";
        assert_eq!(of("clock = \"2400MHz\"").as_deref(), Some(said));
    }

    #[test]
    fn functions_are_plugged_in_as_often_as_described() {
        let described = |keys: &str| {
            let text =
                format!("[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n{keys}");
            diapason_system::parse("f", &text).unwrap()
        };
        let plugged = |keys: &str| controllers(&described(keys));
        let device = |name: &str, class: &str, rest: &str| {
            format!("[[device]]\nname = \"{name}\"\npci = \"{class}\"\nsize = \"4K\"\n{rest}\n")
        };
        assert_eq!(plugged(""), 0);
        assert_eq!(plugged(&device("a", "fe0000", "")), 0);
        assert_eq!(plugged(&device("a", "0c0330", "")), 1);
        let two = device("a", "0c0330", "instance = 1") + &device("b", "0c0330", "");
        assert_eq!(plugged(&two), 2);
        let net = device("net", "020000", "instance = 2");
        assert_eq!((plugged(&net), adapters(&described(&net))), (0, 3));
    }

    #[test]
    fn exit_values_map_to_endings() {
        assert_eq!(MachineEnding::of_status(Some(0x21)), MachineEnding::Finished);
        assert_eq!(MachineEnding::of_status(Some(0x41)), MachineEnding::Panic);
        assert_eq!(MachineEnding::of_status(Some(1)), MachineEnding::Emulator(1));
        assert_eq!(MachineEnding::of_status(None), MachineEnding::Emulator(-1));
    }

    #[test]
    fn lines_and_the_ending_come_through() {
        let (ending, lines) = follow("printf '=0 one\\nlast'; exit 33", Duration::from_secs(60));
        assert_eq!(ending, MachineEnding::Finished);
        let one = Line::Log { process: 0, text: "one".into() };
        assert_eq!(lines, [one, Line::Raw("last".into())]);
    }

    #[test]
    fn an_observer_ends_a_run() {
        let script = "echo begun; echo enough; exec sleep 600";
        let (ending, lines) = follow(script, Duration::from_secs(60));
        assert_eq!(ending, MachineEnding::Interrupted);
        assert_eq!(lines, [Line::Raw("begun".into()), Line::Raw("enough".into())]);
    }

    #[test]
    fn a_hang_is_ended_by_the_watchdog() {
        let (ending, lines) = follow("echo begun; exec sleep 600", Duration::from_millis(300));
        assert_eq!(ending, MachineEnding::Hung);
        assert_eq!(lines, [Line::Raw("begun".into())]);
    }
}
