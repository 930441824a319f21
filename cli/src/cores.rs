//! `diapason run` for a host with several cores: one QEMU with as many processors.
//!
//! Each core boots the same kernel with an archive of its own; the archives lie one behind the
//! other. The cores speak through one serial port, and the console tells them apart.
//!
//! QEMU's processors are threads of this computer. They run in its time, and whatever else it does
//! holds them up. So the clock of the kernels goes slower than the computer's, no time is judged,
//! and a run is no evidence. Its decisions are compared with the simulator's by a test.

use crate::commands::{Addition, RunRequest};
use crate::console::Line;
use crate::failure::Failure;
use crate::formats::RunFormat;
use crate::interrupt;
use crate::outcome::Outcome;
use crate::qemu::{self, Boot, MEMORY_MIB_MIN, patience};
use crate::session::{FinishedRun, Session};
use crate::several::{AllParts, Named, Several, live_parts, refuse_format, report};
use crate::surroundings::emulable;
use crate::together::of_one;
use crate::tools::QEMU;
use crate::workspace::Workspace;
use diapason_abi::archive::{ARCHIVE_ALIGN, add_flags, flags};
use diapason_abi::served::{Facility, Served};
use diapason_system::{RunOptions, System};
use std::ops::ControlFlow;

/// The clock of a run goes 2^n times slower than the computer's. A pause of 10 ms is 0.6 ms then.
const SLOWER: u32 = 4;

/// Boots the cores of a host and reports on each.
///
/// # Errors
/// If QEMU cannot have such a host, or there was no run to report on.
pub fn run(request: &RunRequest, systems: Vec<System>) -> Result<u8, Failure> {
    refuse_format(&request.system, request.format)?;
    let several = Several::cores(systems);
    several.refuse(&request.system, &of_one(request))?;
    several.systems().into_iter().try_for_each(servable)?;
    let workspace = Workspace::find()?;
    QEMU.require(request.missing)?;
    let options =
        RunOptions { horizon_ns: request.length.horizon_ns, record_bytes: 0, watch: request.watch };
    let unproved = request.length.unproved();
    let (mut sessions, joined) =
        several.assemble(&workspace, &request.system, options, unproved)?;
    share_kernel(&workspace, &mut sessions)?;
    sessions.iter_mut().for_each(|(_, session)| session.hardware.iommu = request.iommu);
    interrupt::await_signals()?;
    let json = RunFormat::of(request.json, request.format).is_for_programs();
    let mut observers = live_parts(&sessions, &joined, json);
    let runs = boot(&workspace, &mut sessions, SLOWER, &mut |core, line| observers[core](line))?;
    let about = AllParts {
        noun: joined.noun(),
        switches: None,
        times: Vec::new(),
        each: Vec::new(),
        addition: Addition::default(),
    };
    report(json, &sessions, &runs, about)
}

/// Checks that nothing is plugged in. Models of devices live in the time that QEMU counts, and with
/// several processors it counts none.
fn servable(system: &System) -> Result<(), Failure> {
    let Some(plug) = system.usb.first() else { return Ok(()) };
    Err(Failure::Input(format!(
        "error: `{}` is a USB device, and QEMU's cores run in this computer's time, in which no \
         device can be simulated\nhelp: start the system with `diapason sim`, or write an image \
         for a PC with `diapason image`",
        plug.name
    )))
}

/// Puts all cores on one kernel, with what any of them needs.
///
/// # Errors
/// If the kernel does not compile.
pub fn share_kernel(workspace: &Workspace, sessions: &mut [Named]) -> Result<(), Failure> {
    let mut needed = Served::LEAST.with(Facility::Cores);
    for (_, session) in sessions.iter() {
        needed = needed.and(session.needs()?);
    }
    sessions.first_mut().map_or(Ok(()), |(_, first)| first.use_kernel_with(workspace, needed))
}

/// Returns the archives of all cores, as one kernel boots from them.
#[must_use]
pub fn archives(sessions: &[&Session], slower: u32) -> Vec<u8> {
    let mut all = Vec::new();
    for session in sessions {
        let from = all.len().next_multiple_of(ARCHIVE_ALIGN);
        all.resize(from, 0);
        all.extend_from_slice(&session.archive);
        add_flags(&mut all[from..], slower << flags::SLOWER_FROM);
    }
    all
}

/// Boots the cores together and follows them to their end. `observer` sees every line, with the
/// number of its core. The clock goes 2^`slower` times slower than the computer's.
///
/// # Errors
/// If QEMU cannot have what the description plugs in, or be used.
pub fn boot(
    workspace: &Workspace,
    sessions: &mut [Named],
    slower: u32,
    observer: &mut dyn FnMut(usize, &Line),
) -> Result<Vec<FinishedRun>, Failure> {
    boot_until(workspace, sessions, slower, &mut |core, line| {
        observer(core, line);
        ControlFlow::Continue(())
    })
}

/// Does what [`boot`] does, until the observer has heard enough.
///
/// # Errors
/// Those of [`boot`].
pub fn boot_until(
    workspace: &Workspace,
    sessions: &mut [Named],
    slower: u32,
    observer: &mut dyn FnMut(usize, &Line) -> ControlFlow<()>,
) -> Result<Vec<FinishedRun>, Failure> {
    sessions.iter().try_for_each(|(_, session)| emulable(&session.system))?;
    sessions.iter_mut().for_each(|(_, session)| session.untimed = true);
    let all: Vec<&Session> = sessions.iter().map(|(_, session)| session).collect();
    let archive = archives(&all, slower);
    let Some((_, first)) = sessions.first() else { return Ok(Vec::new()) };
    let systems = || sessions.iter().map(|(_, session)| &session.system);
    let recorded = u64::from(first.options.record_bytes) * sessions.len() as u64;
    let memory: u64 = systems().map(|system| system.memory).sum::<u64>() + recorded;
    let most = |count: fn(&System) -> usize| systems().map(count).max().unwrap_or(0);
    let machine = Boot {
        archive: &archive,
        cores: sessions.len(),
        memory_mib: memory.div_ceil(1 << 20).max(MEMORY_MIB_MIN),
        controllers: most(qemu::controllers),
        adapters: most(qemu::adapters),
        patience: patience(first.options.horizon_ns << slower),
        ..first.boot()
    };
    let mut outcomes: Vec<Outcome> = sessions.iter().map(|_| Outcome::default()).collect();
    let booted = machine.run_cores(&workspace.target(), &mut |core, line| {
        outcomes[core].note(line);
        observer(core, line)
    })?;
    let qemu::Booted { ending, flights, served, .. } = booted;
    let mut flights = flights.into_iter();
    let run = |outcome| FinishedRun { ending, outcome, flight: flights.next(), served };
    Ok(outcomes.into_iter().map(run).collect())
}
