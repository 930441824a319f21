//! `diapason build`: compiles what a description boots, and says how large it is and which calls of
//! the kernel each program makes. `diapason check`: finds the mistakes in a description and its
//! programs, and builds nothing that boots.

use crate::describe::{describe_any, refused};
use crate::failure::Failure;
use crate::failure::HOLDS;
use crate::image::Image;
use crate::metal::{self, Built, ImageKind};
use crate::output::say;
use crate::plan::{Plan, Unproved};
use crate::project;
use crate::session::Session;
use crate::table::{Align, TextTable};
use crate::workspace::Workspace;
use diapason_abi::served::Served;
use diapason_abi::{CallNumber, Nanos};
use diapason_system::{Description, RunOptions, System};
use std::path::{Path, PathBuf};

/// The request to `build`.
#[derive(Clone, Debug, clap::Args)]
pub struct BuildRequest {
    #[arg(default_value = "system.toml")]
    pub system: PathBuf,
}

/// The request to `check`.
#[derive(Clone, Debug, clap::Args)]
pub struct CheckRequest {
    #[arg(default_value = "system.toml")]
    pub system: PathBuf,
}

/// Reads the systems of a description: one, that of each core, or that of each host.
fn systems(path: &Path) -> Result<Vec<System>, Failure> {
    Ok(match describe_any(path)? {
        Description::One(system) => vec![*system],
        Description::Cores(cores) => cores,
        Description::Several(list) => list.systems().map(|(_, it)| it.clone()).collect(),
    })
}

/// Checks a description and its programs. Neither a plan nor anything that boots is made.
///
/// # Errors
/// If the description makes no sense, a program does not compile, or there is none of its name.
pub fn check(request: &CheckRequest) -> Result<u8, Failure> {
    let systems = systems(&request.system)?;
    let systems: Vec<&System> = systems.iter().collect();
    let own = project::check(&Workspace::find()?, &request.system, &systems)?;
    let programs = match own {
        0 => "names no program of yours".into(),
        1 => "and its program are right".into(),
        _ => format!("and its {own} programs are right"),
    };
    let shown = request.system.display();
    say(&format!("{shown} {programs}; `diapason plan` says whether it holds"));
    Ok(HOLDS)
}

/// Compiles the programs of a description, and the kernel of each host. Whether its promises hold
/// is of no matter here.
///
/// # Errors
/// If the description makes no sense, a program does not compile, or there is none of its name.
pub fn compile(request: &BuildRequest) -> Result<u8, Failure> {
    let owned = systems(&request.system)?;
    let systems: Vec<&System> = owned.iter().collect();
    let workspace = Workspace::find()?;
    let built = project::build(&workspace, &request.system, &systems)?;
    for system in &systems {
        let missing = system.missing_programs(&mut |name| built.path(name).map(drop));
        missing.map_or(Ok(()), |found| Err(refused(&found)))?;
    }
    let processes = systems.iter().flat_map(|system| &system.processes);
    let mut programs: Vec<&str> = processes.map(|process| &*process.program).collect();
    programs.sort_unstable();
    programs.dedup();
    let [left, right] = [Align::Left, Align::Right];
    let columns = ["text", "rodata", "data", "bss"].map(|name| (name, right));
    let mut table =
        TextTable::new(&[&[("program", left)], &columns[..], &[("file", left)]].concat());
    let mut calls = TextTable::new(&[("program", left), ("calls", left)]);
    for name in programs {
        let path = built.path(name).map_err(Failure::Input)?;
        let image = Image::read(path)?;
        let sizes = image.sizes();
        calls.row(vec![name.into(), listed(image.calls())]);
        let bytes = [sizes.text, sizes.rodata, sizes.data, sizes.bss].map(|size| size.to_string());
        table.row([&[name.into()], &bytes[..], &[path.display().to_string()]].concat());
    }
    say(table.render().trim_end());
    say(&format!("\n{}", calls.render().trim_end()));
    // Cores boot in the simulator only, which needs no image of a kernel.
    if owned.iter().any(|system| system.cores > 1) {
        return Ok(HOLDS);
    }
    if let Some(kernels) = kernels(&workspace, owned, &built)? {
        say(&format!("\n{}", kernels.render().trim_end()));
    }
    Ok(HOLDS)
}

/// Returns the names of calls, as a list.
fn listed(set: Served) -> String {
    if set.calls == Served::ALL.calls {
        return String::from("any");
    }
    set.calls().map(CallNumber::name).collect::<Vec<_>>().join(", ")
}

/// Builds the kernel of each system, and returns a table of them. `None` if kernels are installed
/// and not built.
fn kernels(
    workspace: &Workspace,
    systems: Vec<System>,
    built: &Built,
) -> Result<Option<TextTable>, Failure> {
    let [left, right] = [Align::Left, Align::Right];
    let mut table = TextTable::new(&[
        ("kernel of", left),
        ("calls", right),
        ("stays", right),
        ("leaves", right),
        ("file", left),
    ]);
    for system in systems {
        let options = RunOptions { horizon_ns: Nanos::FOREVER.0, record_bytes: 0, watch: false };
        let plan = Plan::of(&system);
        let session = Session::planned(plan, built.clone(), options, Some(Unproved))?;
        let needed = session.needs()?;
        let Some(path) = metal::kernel_with(workspace, needed, ImageKind::Kernel)? else {
            return Ok(None);
        };
        let sizes = Image::read(&path)?.sizes();
        table.row(vec![
            system.name,
            needed.calls().count().to_string(),
            sizes.resident().to_string(),
            sizes.boot().to_string(),
            path.display().to_string(),
        ]);
    }
    Ok(Some(table))
}
