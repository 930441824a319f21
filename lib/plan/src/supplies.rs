//! The processor for pipes: the threads of the server that work for one, with their I/O VCPUs and
//! locks, and the Main VCPU of the program at its end.

use crate::core::Core;
use crate::driver::worst;
use crate::human;
use crate::missing::{self, Missing};
use crate::pipes::Plant;
use diapason_abi::Nanos;
use diapason_analysis::server::{self, IoSupply, Supply};
use diapason_contract::can::EACH;
use diapason_contract::threads::{MANAGE, SEND, SENDERS, TUNE};
use diapason_pipe::measured::REPORT;
use diapason_system::{PipeSpec, ServerSpec, System, Tpipe, VcpuSpec};

/// The longest period of a thread that reports once in [`REPORT`]: a report that comes a period and
/// its supply late is not taken for silence.
const RARE: Nanos = Nanos(REPORT.0 / 2);

/// A thread of the server besides the one that manages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    /// The bottom half of what comes.
    Receives,
    /// The thread hears what clients want.
    Sends,
}

impl Plant<'_> {
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
        let driver = self.driver_of(server, usb);
        let (work, each) = (driver.home.work, driver.home.each);
        if worst(self.system, each).is_some() && (self.writes(usb) || places > 0) {
            let what = "bills of pipes to a device, and of those that programs open, have the \
                        messages in the work of a wake-up";
            let remedy = format!("remove the work `{each}`, and count messages in `{work}`");
            return Err((what.to_owned(), remedy));
        }
        let own = std::iter::repeat_n(driver.home.work, 1 + driver.home.threads());
        let threads = own.chain(others);
        // It wakes a reader of each channel, and one in each place for a tuned pipe. Of other
        // devices it wakes the program at the end of each pipe.
        let ends = self.system.pipes.iter().filter(|pipe| pipe.usb == usb).count();
        let wakes = if driver.source.is_some() { ends } else { EACH + places };
        // Each thread on its VCPU makes these calls, and one may be behind the other.
        let calls = self.calls.of_bottom_half(wakes as u64).0;
        let calls = Nanos(calls.saturating_mul(driver.home.threads() as u64));
        let (mut sum, mut unknown) = (calls, Vec::new());
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

    /// Returns the I/O VCPU of a thread of the server that works for the process of `pipe`, and the
    /// most wake-ups of it.
    pub(crate) fn half(&self, pipe: &PipeSpec, half: Half) -> Result<(IoSupply, Nanos), Missing> {
        let place = self.place_of_half(pipe, half)?;
        let home = self.driver(pipe).home;
        let moderation = (half == Half::Receives).then_some(home.moderation);
        self.io_supply(pipe.server, place, moderation)
    }

    /// Returns the place of that I/O VCPU.
    pub(crate) fn place_of_half(&self, pipe: &PipeSpec, half: Half) -> Result<usize, Missing> {
        let system = self.system;
        let number = self.interface(pipe.server, pipe.usb);
        let driver = self.driver(pipe);
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
        let Some(process) = pipe.process() else {
            // It serves the reader from afar: no VCPU of another core is in its list.
            return self.io_place_of(pipe.server, is, |_| true).ok_or_else(|| {
                let what = format!("`{server}` has no I/O VCPU `{own}`");
                (what, format!("add `{own}`, an I/O VCPU, to `uses` of `{server}`"))
            });
        };
        self.io_place(pipe.server, process, is).ok_or_else(|| {
            let name = &system.processes[usize::from(process)].name;
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
        self.io_place_of(server, is, |serves| serves.contains(&main))
    }

    /// Returns the place of an I/O VCPU of a server, if its name and the VCPUs that it serves fit.
    fn io_place_of(
        &self,
        server: u16,
        is: impl Fn(&str) -> bool,
        fits: impl Fn(&[u16]) -> bool,
    ) -> Option<usize> {
        self.core.ios.iter().position(|number| {
            let vcpu = &self.system.vcpus[usize::from(*number)];
            let ServerSpec::Io { serves, .. } = &vcpu.server else { return false };
            vcpu.allowed >> server & 1 == 1 && is(&vcpu.name) && fits(serves)
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
        let (gap, interval) = (core.system.ios[place].least_gap(), core.system.ios[place].wake_gap);
        if let Some(moderation) = moderation.filter(|moderation| interval > *moderation) {
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
    if !reader.start_at_boot {
        return Err((
            format!("`{}` runs only when another process starts it", reader.name),
            format!("take `start = \"manual\"` out of `{}`", reader.name),
        ));
    }
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
