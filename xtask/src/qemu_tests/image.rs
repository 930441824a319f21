//! Images that boot a PC: by BIOS and UEFI, from a disc and from a stick, and the same bytes twice.

use super::{Machine, Observed};
use crate::tally::Tally;
use diapason::describe::describe;
use diapason::hardware::{Firmware, Hardware, Inserted, Medium, OVMF};
use diapason::metal::Built;
use diapason::qemu::RunFolder;
use diapason::session::Session;
use diapason::tools::{self, Missing};
use diapason::{Workspace, stick};
use diapason_system::RunOptions;
use std::path::Path;

const ENGINE: &str = "examples/engine.toml";
const HORIZON_NS: u64 = 500_000_000;
const WAYS: [(Firmware, Medium); 4] = [
    (Firmware::Bios, Medium::Disc),
    (Firmware::Bios, Medium::Stick),
    (Firmware::Uefi, Medium::Disc),
    (Firmware::Uefi, Medium::Stick),
];

/// Runs the test if its name contains `part`.
pub fn run(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    let name = format!("{}: an image boots by BIOS and UEFI, from disc and stick", Machine::Qemu);
    if name.contains(part) {
        tally.step(&name, || boot(workspace, built));
    }
}

fn boot(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let said = |failure: diapason::Failure| failure.to_string();
    tools::require_all(&[&stick::TOOLS[..], &[OVMF]].concat(), Missing::Install).map_err(said)?;
    let system = describe(&workspace.root().join(ENGINE)).map_err(said)?;
    let options = RunOptions { horizon_ns: HORIZON_NS, record_bytes: 0, watch: false };
    let mut session = Session::assemble(system, built.clone(), options).map_err(said)?;
    let folder = RunFolder::create(&workspace.target()).map_err(said)?;
    let file = folder.path().join("stick.img");
    stick::make(&session, workspace, &file).map_err(said)?;
    same_again(&session, workspace, &folder, &file)?;
    let direct = Observed::boot(workspace, &session)?;
    direct.holds()?;
    for (firmware, medium) in WAYS {
        let inserted = Some(Inserted { file: file.clone(), firmware, medium });
        session.hardware = Hardware { inserted, ..Hardware::default() };
        let boot = Observed::boot(workspace, &session)?;
        let jobs = |boot: &Observed| boot.run.outcome.threads.iter().map(|t| t.jobs).sum::<u64>();
        println!("{firmware:?}, {medium:?}: {:?}, {} jobs", boot.run.ending, jobs(&boot));
        boot.holds().map_err(|wrong| format!("{firmware:?}, {medium:?}: {wrong}"))?;
        if jobs(&boot) != jobs(&direct) || jobs(&boot) == 0 {
            return Err(format!("without firmware it does {} jobs", jobs(&direct)));
        }
    }
    Ok(())
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
    stick::make(session, workspace, &second).map_err(|failure| failure.to_string())?;
    let bytes = |path: &Path| std::fs::read(path).map_err(|error| error.to_string());
    let same = bytes(first)? == bytes(&second)?;
    if same { Ok(()) } else { Err("an image made a second later has other bytes".into()) }
}
