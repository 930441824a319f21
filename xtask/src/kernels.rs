//! Kernels of one system each: how large they are, and whether they decide what the whole kernel
//! decides.
//!
//! A recording of a run on such a kernel is replayed through the whole core on the host, so every
//! decision is compared. `cargo xtask kernels` does it for every example; `cargo xtask test` for
//! two.

use crate::costs;
use crate::qemu_tests::observed::Observed;
use crate::steps::within;
use crate::tally::Tally;
use diapason::describe::describe;
use diapason::image::Image;
use diapason::metal::{self, Built, ImageKind};
use diapason::qemu::MachineEnding;
use diapason::session::{RECORD_BYTES, Session};
use diapason::tools::{Missing, QEMU};
use diapason::{Failure, Workspace};
use diapason_abi::CallNumber::{self, *};
use diapason_abi::archive::Refusal;
use diapason_abi::served::{Facility, Served};
use diapason_system::RunOptions;
use std::fs;
use std::path::PathBuf;

/// A kind of system that is counted: its name, what it needs, the target for what stays in memory,
/// and that number when it was last lowered.
struct Counted {
    name: &'static str,
    needs: Served,
    target: u64,
    ratchet: u64,
}

/// The calls of the smallest system.
const FEW: [CallNumber; 13] = [
    Yield,
    ThreadExit,
    ThreadCreate,
    ThreadJoin,
    ThreadDetach,
    SleepUntil,
    SemCreate,
    SemDelete,
    SemLock,
    SemTryLock,
    SemUnlock,
    Log,
    Fail,
];
/// Calls that EMERALDS has nothing like, but for those of VCPUs.
const NEW: [CallNumber; 5] = [Null, Count, MboxCall, ShmBus, Ring];
const OF_VCPUS: [CallNumber; 4] = [VcpuCreate, VcpuSet, VcpuDelete, VcpuFit];

/// Returns the set of these calls.
const fn these(calls: &[CallNumber]) -> Served {
    let (mut set, mut at) = (Served::NONE, 0);
    while at < calls.len() {
        set = set.with_call(calls[at]);
        at += 1;
    }
    set
}

/// EMERALDS' services with VCPUs.
const BUDGETED: Served = Served::ALL
    .without(these(&NEW).with(Facility::Hints).with(Facility::Servers))
    .without(Served::NONE.with(Facility::Cores).with(Facility::Kept));

/// The systems whose kernels are counted. Everything is counted by `size of the kernel`.
const COUNTED: [Counted; 3] = [
    Counted {
        name: "threads, mutexes, semaphores, sleep, faults",
        needs: these(&FEW).with(Facility::Semaphores),
        target: 13 * 1024,
        ratchet: 26_696,
    },
    Counted {
        name: "EMERALDS' services without VCPUs",
        needs: BUDGETED.without(these(&OF_VCPUS).with(Facility::Vcpus)),
        target: 24 * 1024,
        ratchet: 44_000,
    },
    Counted {
        name: "EMERALDS' services with VCPUs",
        needs: BUDGETED,
        target: 30 * 1024,
        ratchet: 69_313,
    },
];

/// Examples that each test run boots on kernels of their own, and for how long.
const BOOTED: [(&str, u64); 3] = [
    ("examples/engine.toml", 1_000_000_000),
    ("examples/vcpus.toml", 1_000_000_000),
    ("examples/service.toml", 1_000_000_000),
];

/// The steps whose names contain `part`.
pub fn steps(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    let mut step = |name: String, run: &dyn Fn() -> Result<(), String>| {
        if name.contains(part) {
            tally.step(&name, run);
        }
    };
    step("the calls of a program are known when it is linked".into(), &|| calls(built));
    step("a kernel refuses a system that it lacks objects for".into(), &|| {
        refuses(workspace, built)
    });
    for counted in &COUNTED {
        step(format!("size of a kernel with {}", counted.name), &|| counted.check(workspace));
    }
    for (system, horizon_ns) in BOOTED {
        step(format!("the kernel of {system} decides what the whole one decides"), &|| {
            decides(workspace, built, system, horizon_ns)
        });
    }
}

/// Prints the sizes, and runs every example of one host on its own kernel.
pub fn command(workspace: &Workspace) -> Result<u8, Failure> {
    QEMU.require(Missing::Install)?;
    let built = metal::build(workspace)?;
    let mut tally = Tally::default();
    for counted in &COUNTED {
        tally.step(counted.name, || counted.check(workspace));
    }
    for system in examples(workspace)? {
        let name = system.display().to_string();
        tally.step(&name, || decides(workspace, &built, &name, 1_000_000_000));
    }
    Ok(tally.finish())
}

/// Returns the examples of one host with one core that QEMU can boot.
fn examples(workspace: &Workspace) -> Result<Vec<PathBuf>, Failure> {
    let folder = workspace.root().join("examples");
    let entries = fs::read_dir(&folder)
        .map_err(|error| Failure::io(format!("read {}", folder.display()), &error))?;
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    found.retain(|path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        path.extension().is_some_and(|ending| ending == "toml")
            && !["[[host]]", "[[network]]", "core ="].iter().any(|several| text.contains(several))
    });
    found.sort();
    Ok(found.iter().map(|path| workspace.relative(path).to_path_buf()).collect())
}

impl Counted {
    /// Builds the kernel and holds it to its ratchet.
    fn check(&self, workspace: &Workspace) -> Result<(), String> {
        let kernel = metal::kernel_with(workspace, self.needs, ImageKind::Kernel);
        let kernel = kernel.map_err(said)?.ok_or("there are no sources of the kernel")?;
        let sizes = Image::read(&kernel).map_err(said)?.sizes();
        let stays = sizes.resident();
        println!("{stays} bytes stay, {} leave; the target is {}", sizes.boot(), self.target);
        within("what stays of it", stays, self.ratchet)
    }
}

/// Two programs, each with the calls that it makes and without those of the other.
fn calls(built: &Built) -> Result<(), String> {
    for (name, makes, never) in [
        ("engine-operator", MboxSend, [MboxReceive, SemLock, VcpuCreate]),
        ("engine-controller", MboxReceive, [MboxSend, CvWait, VcpuCreate]),
    ] {
        let calls = Image::read(built.path(name)?).map_err(said)?.calls();
        let wrong = never.iter().find(|call| calls.has_call(**call));
        match (calls.has_call(makes), wrong) {
            (true, None) => {}
            (false, _) => return Err(format!("{name} makes the call {makes:?}: not in its list")),
            (_, Some(call)) => return Err(format!("{name} does not make the call {call:?}")),
        }
    }
    let any = Image::read(built.path("hostile")?).map_err(said)?.calls();
    if any.calls != Served::ALL.calls {
        return Err("hostile makes calls whose numbers it draws: it needs all".into());
    }
    Ok(())
}

/// The kernel of the smallest system, under a larger one.
fn refuses(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let options = RunOptions { horizon_ns: 1_000_000, record_bytes: 0, watch: false };
    let mut session = session(workspace, built, BOOTED[0].0, options)?;
    let kernel = metal::kernel_with(workspace, COUNTED[0].needs, ImageKind::Kernel);
    session.built.kernel = kernel.map_err(said)?.ok_or("there are no sources of the kernel")?;
    let boot = Observed::boot(workspace, &session)?;
    let reason = boot.run.outcome.panic.as_deref().unwrap_or_default();
    if boot.run.ending == MachineEnding::NoArchive && reason.contains(Refusal::Unserved.text()) {
        return Ok(());
    }
    Err(format!("the kernel ended with {:?} and said `{reason}`", boot.run.ending))
}

/// Records a run on the system's own kernel, and replays it on the whole one. Then a watched run
/// shows that no path is longer than those that were counted on the whole kernel.
fn decides(
    workspace: &Workspace,
    built: &Built,
    system: &str,
    horizon_ns: u64,
) -> Result<(), String> {
    let on_own = |record_bytes, watch| {
        let options = RunOptions { horizon_ns, record_bytes, watch };
        session(workspace, built, system, options)?.on_own_kernel(workspace).map_err(said)
    };
    Observed::boot(workspace, &on_own(RECORD_BYTES, false)?)?.replays_equal()?;
    costs::covers(workspace, &on_own(0, true)?)
}

fn session(
    workspace: &Workspace,
    built: &Built,
    system: &str,
    options: RunOptions,
) -> Result<Session, String> {
    let system = describe(&workspace.root().join(system)).map_err(said)?;
    Session::assemble(system, built.clone(), options).map_err(said)
}

fn said(failure: Failure) -> String {
    failure.to_string()
}
