//! Images that boot a PC: by BIOS and UEFI, from a disc and from a stick, and the same bytes twice.

use super::{Machine, Observed};
use crate::tally::Tally;
use diapason::console::Line;
use diapason::describe::describe;
use diapason::hardware::{Firmware, Inserted, Medium};
use diapason::metal::Built;
use diapason::qemu::RunFolder;
use diapason::session::Session;
use diapason::{Failure, Workspace, stick};
use diapason_abi::record::Record;
use diapason_system::RunOptions;
use std::path::Path;

/// A medium with the system that boots from it, for so long. The stick is at the controller that
/// the system's own driver then takes over.
const WAYS: [(Medium, &str, u64); 2] = [
    (Medium::Disc, "examples/engine.toml", 500_000_000),
    (Medium::Stick, "tests/systems/usb-qemu.toml", 2_000_000_000),
];

/// Runs the tests whose names contain `part`.
pub fn run(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    for (medium, system, horizon_ns) in WAYS {
        let name = format!("{}: an image boots by BIOS and UEFI: {medium:?}", Machine::Qemu);
        if name.contains(part) {
            tally.step(&name, || boot(workspace, built, medium, system, horizon_ns));
        }
    }
}

fn said(failure: Failure) -> String {
    failure.to_string()
}

fn boot(
    workspace: &Workspace,
    built: &Built,
    medium: Medium,
    system: &str,
    horizon_ns: u64,
) -> Result<(), String> {
    super::require_firmware()?;
    let system = describe(&workspace.root().join(system)).map_err(said)?;
    let options = RunOptions { horizon_ns, record_bytes: 0, watch: false };
    let mut session = Session::assemble(system, built.clone(), options).map_err(said)?;
    let folder = RunFolder::create(&workspace.target()).map_err(said)?;
    let file = folder.path().join("stick.img");
    stick::make(&[&session], workspace, &file).map_err(said)?;
    same_again(&session, workspace, &folder, &file)?;
    for firmware in [Firmware::Bios, Firmware::Uefi] {
        session.inserted = Some(Inserted { file: file.clone(), firmware, medium });
        let boot = Observed::boot(workspace, &session)?;
        let jobs: u64 = boot.run.outcome.threads.iter().map(|thread| thread.jobs).sum();
        let plugs = boot.run.outcome.plugs.len();
        println!("{firmware:?}: {:?}, {jobs} jobs, {plugs} USB devices", boot.run.ending);
        boot.holds().map_err(|wrong| format!("{firmware:?}: {wrong}"))?;
        if jobs == 0 && plugs == 0 {
            return Err("it did nothing".into());
        }
        if let Some(address) = registers(&boot) {
            println!("registers at {address:#x}");
            // Firmware for UEFI has them above 4 GiB, and so the table of messages.
            if (address >= 1 << 32) != (firmware == Firmware::Uefi) {
                return Err("they are not where this firmware usually has them".into());
            }
        }
    }
    Ok(())
}

/// Returns where the first PCI device that was found has its registers.
fn registers(boot: &Observed) -> Option<u64> {
    boot.lines.iter().find_map(|line| match line {
        Line::Record(Record::Device, words) => words.last().copied(),
        _ => None,
    })
}

/// Checks that an image made again has the same bytes.
fn same_again(
    session: &Session,
    workspace: &Workspace,
    folder: &RunFolder,
    first: &Path,
) -> Result<(), String> {
    let second = folder.path().join("again.img");
    // The clocks of files and tools count seconds.
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    stick::make(&[session], workspace, &second).map_err(said)?;
    let bytes = |path: &Path| std::fs::read(path).map_err(|error| error.to_string());
    let same = bytes(first)? == bytes(&second)?;
    if same { Ok(()) } else { Err("an image made a second later has other bytes".into()) }
}
