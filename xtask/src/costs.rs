//! `cargo xtask costs`: the longest kernel paths by cause, counted in QEMU, for `lib/costs`.
//!
//! Watched runs of everything there is, with and without the flight record; what each path took at
//! most goes into the tables that the simulator charges.

use crate::compare;
use diapason::describe::describe;
use diapason::image::Image;
use diapason::metal::{self, Built};
use diapason::outcome::RunVerdict;
use diapason::session::{RECORD_BYTES, Session};
use diapason::tools::{Missing, QEMU};
use diapason::{Failure, Workspace};
use diapason_abi::record::KernelCause;
use diapason_costs::KERNEL;
use diapason_costs::counted::{PLAIN, RECORDING, Table};
use diapason_system::{RunOptions, System};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Systems that are watched, below the workspace's root, and for how long. Their programs make no
/// mistakes: a call that ends its process costs what a fault costs.
const WATCHED: [(&str, u64); 5] = [
    ("examples/engine.toml", 2_000_000_000),
    ("examples/vcpus.toml", 2_000_000_000),
    ("examples/service.toml", 2_000_000_000),
    ("examples/share.toml", 1_000_000_000),
    ("examples/bench.toml", 20_000_000_000),
];
/// Systems whose programs do little else.
const MISTAKEN: [(&str, u64); 3] = [
    ("examples/storm.toml", 1_000_000_000),
    ("tests/systems/trials.toml", 2_000_000_000),
    ("tests/systems/faults.toml", 1_000_000_000),
];
/// Random sets besides, and how long each runs.
const SETS: u64 = 12;
const SET_NS: u64 = 300_000_000;

type Paths = BTreeMap<String, [u64; 2]>;

/// Measures and writes both tables. Only the observing kernel can be watched; without what that
/// takes it is the same kernel, less a few tests of flags.
pub fn command(workspace: &Workspace) -> Result<u8, Failure> {
    QEMU.require(Missing::Install)?;
    let built = metal::build(workspace)?;
    let kernel = Image::read(&built.observing)?.hash();
    let mut tables = Vec::new();
    for (name, record_bytes) in [("plain", 0), ("recording", RECORD_BYTES)] {
        let paths = measure(workspace, &built, record_bytes)?;
        let text = table(kernel, &paths);
        // A table beyond the limits would not compile.
        if let Some(objection) = Table::read(&text).objection(&KERNEL) {
            return Err(Failure::Input(format!("{name}: {objection}\n{text}")));
        }
        tables.push((name, text, paths.len()));
    }
    // Both or none: they are of one kernel.
    for (name, text, kinds) in tables {
        let path = workspace.root().join(format!("lib/costs/src/counted/{name}.txt"));
        fs::write(&path, text)
            .map_err(|error| Failure::io(format!("write {}", path.display()), &error))?;
        println!("{kinds} kinds of paths in {}", path.display());
    }
    Ok(diapason::failure::HOLDS)
}

/// Checks whether both tables were counted on this kernel.
pub fn check(kernel: &Path) -> Result<(), String> {
    let built = Image::read(kernel).map_err(|failure| failure.to_string())?.hash();
    let of = |name: &str, table: &Table| {
        let counted = table.kernel;
        if counted == built {
            return Ok(());
        }
        Err(format!(
            "lib/costs/src/counted/{name}.txt was counted on kernel {counted:016x}, this is \
             {built:016x}: run `cargo xtask costs`"
        ))
    };
    of("plain", &PLAIN).and_then(|()| of("recording", &RECORDING))
}

/// Checks that the table of the whole kernel covers every path of a watched session.
pub fn covers(workspace: &Workspace, session: &Session) -> Result<(), String> {
    let mut paths = Paths::new();
    gather(workspace, session, false, &mut paths).map_err(|failure| failure.to_string())?;
    let own = Table::read(&table(0, &paths));
    let sums = |table: &Table| [table.switching(), table.interrupting()];
    println!("{} kinds of paths; {:?} of {:?}", paths.len(), sums(&own), sums(&PLAIN));
    let numbers = paths.keys().filter_map(|what| what.parse::<u64>().ok());
    for number in numbers {
        let (seen, counted) = (own.call(number), PLAIN.call(number));
        if seen.staying > counted.staying || seen.leaving > counted.leaving {
            return Err(format!("call {number} took {seen:?}, counted were {counted:?}"));
        }
    }
    let longer = sums(&own).into_iter().zip(sums(&PLAIN)).any(|(seen, counted)| seen > counted);
    if longer { Err(String::from("a path is longer than those counted")) } else { Ok(()) }
}

fn measure(workspace: &Workspace, built: &Built, record_bytes: u32) -> Result<Paths, Failure> {
    let mut paths = Paths::new();
    let mut watch = |system: System, horizon_ns, mistaken| {
        let options = RunOptions { horizon_ns, record_bytes, watch: true };
        let session = Session::assemble(system, built.clone(), options)?;
        gather(workspace, &session, mistaken, &mut paths)
    };
    for (system, horizon_ns) in WATCHED {
        watch(describe(&workspace.root().join(system))?, horizon_ns, false)?;
    }
    for (system, horizon_ns) in MISTAKEN {
        watch(describe(&workspace.root().join(system))?, horizon_ns, true)?;
    }
    for system in compare::systems(SETS)? {
        match watch(system, SET_NS, false) {
            Ok(()) | Err(Failure::NotAdmitted(_)) => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(paths)
}

fn gather(
    workspace: &Workspace,
    session: &Session,
    mistaken: bool,
    paths: &mut Paths,
) -> Result<(), Failure> {
    let run = session.run(workspace, &mut |_| {})?;
    // A run that was cut short would leave its longest paths out.
    if let RunVerdict::Bug(text) = session.judge(&run) {
        return Err(Failure::Ours(format!("{}: {text}", session.system.name)));
    }
    let mut note = |what: String, staying: u64, leaving: u64| {
        let longest = paths.entry(what).or_default();
        *longest = [longest[0].max(staying), longest[1].max(leaving)];
    };
    let longest = run.outcome.longest_path.map_or(0, |path| path.instructions);
    if mistaken {
        note("fault".into(), 0, longest);
        return Ok(());
    }
    for [call, staying, leaving] in run.outcome.calls {
        note(format!("{call}"), staying, leaving);
    }
    for row in &run.outcome.kernel {
        let what = match row.cause {
            KernelCause::Call => continue,
            KernelCause::Fault => "fault",
            KernelCause::Timer => "timer",
            KernelCause::Interrupt => "interrupt",
        };
        note(what.into(), row.longest_staying, row.longest_leaving);
    }
    Ok(())
}

fn table(kernel: u64, paths: &Paths) -> String {
    let mut text = format!(
        "# Longest kernel paths in instructions, counted in QEMU by `cargo xtask costs`.\n\
         # number of the call, or what else; when the same thread went on; when another did\n\
         kernel {kernel:016x}\n"
    );
    let mut rows: Vec<(&String, &[u64; 2])> = paths.iter().collect();
    rows.sort_by_key(|(what, _)| (what.parse::<u64>().unwrap_or(u64::MAX), what.as_str()));
    for (what, [staying, leaving]) in rows {
        let _ = writeln!(text, "{what} {staying} {leaving}");
    }
    text
}
