//! Captures of a simulated system: they change nothing, and they hold what was there.

use diapason::Workspace;
use diapason::capture::CaptureRequest;
use diapason::describe::describe;
use diapason::metal::Built;
use diapason::session::Session;
use diapason::simulate::{Simulation, asked};
use diapason_can::candump;
use diapason_sim::Options;
use diapason_system::RunOptions;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const SYSTEM: &str = "examples/can-concentrator.toml";
const HORIZON_NS: u64 = 2_000_000_000;
/// Without faults, and with one that unplugs the interface.
const FAULTS: [&[&str]; 2] = [&[], &["1s unplug interface 100ms"]];
const CHANNELS: usize = 5;
/// The header of a file, and of a frame with its frame.
const FILE_BYTES: usize = 24;
const FRAME_BYTES: usize = 16 + 16;
/// Frames of all channels in this time, less those of the opening.
const FRAMES: usize = 10_000;
/// Transfers in this time, and most of them at once.
const TRANSFERS: usize = 1_000;
const UNDER_WAY: usize = 8;

/// The step: runs with and without captures, and a look at the files.
pub fn check(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let system = describe(&workspace.root().join(SYSTEM)).map_err(|f| f.to_string())?;
    let options = RunOptions { horizon_ns: HORIZON_NS, record_bytes: 0, watch: false };
    let session = Session::assemble(system, built.clone(), options).map_err(|f| f.to_string())?;
    let folder = workspace.target().join("captures");
    let (pcap, candump) = (Some(folder.clone()), Some(folder.clone()));
    let wanted = CaptureRequest { pcap, candump, ..CaptureRequest::default() };
    for words in FAULTS {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let faults = asked(&session.system, &words).map_err(|f| f.to_string())?;
        let how = Options::default();
        let simulation = || Simulation::new(&session, &how).with_faults(&faults);
        let hash = |it: Simulation<'_>| match it.run(&mut ()) {
            Ok(simulated) => Ok(simulated.hash),
            Err(failure) => Err(failure.to_string()),
        };
        let nothing = CaptureRequest::default();
        let hashes = [
            hash(simulation())?,
            hash(simulation().capturing(&nothing))?,
            hash(simulation().capturing(&wanted))?,
        ];
        if hashes.iter().any(|hash| *hash != hashes[0]) {
            return Err(format!("with faults {words:?} the hashes are {hashes:x?}"));
        }
        look(&folder)?;
    }
    fs::remove_dir_all(&folder).map_err(|error| error.to_string())
}

/// Checks that the files are whole, and that one kind has as many frames as the other.
fn look(folder: &Path) -> Result<(), String> {
    let mut total = 0;
    for channel in 0..CHANNELS {
        let read = |name: String| fs::read(folder.join(&name)).map_err(|e| format!("{name}: {e}"));
        let log = read(format!("can{channel}.log"))?;
        let lines: Vec<&str> = str::from_utf8(&log).map_err(|e| e.to_string())?.lines().collect();
        for line in &lines {
            candump::parse(line).map_err(|error| format!("`{line}`: {error}"))?;
        }
        let bytes = read(format!("can{channel}.pcap"))?.len();
        if bytes != FILE_BYTES + FRAME_BYTES * lines.len() {
            return Err(format!("channel {channel}: {} lines, {bytes} bytes", lines.len()));
        }
        total += lines.len();
    }
    if total < FRAMES {
        return Err(format!("only {total} frames"));
    }
    events(&folder.join("usb0.pcap")).map(|events| println!("{total} frames, {events}"))
}

/// Returns the problems that Wireshark's reader finds in a capture of USB, where it is installed.
fn events(path: &Path) -> Result<String, String> {
    let mut reader = Command::new("tshark");
    reader.args(["-n", "-T", "fields", "-e", "usb.urb_type", "-r"]).arg(path);
    let Ok(output) = reader.stderr(Stdio::null()).output() else {
        return Ok(String::from("no tshark to look at the transfers"));
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let count = |kind: &str| text.lines().filter(|line| line.contains(kind)).count();
    let (begun, ended) = (count("S"), count("C"));
    // Transfers under way at the end of the run have no end.
    let pairs_up = (ended..=ended + UNDER_WAY).contains(&begun);
    if !output.status.success() || begun < TRANSFERS || !pairs_up {
        return Err(format!("tshark sees {begun} beginnings and {ended} ends of transfers"));
    }
    Ok(format!("{begun} transfers"))
}
