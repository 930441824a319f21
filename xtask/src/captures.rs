//! Captures of a simulated system: they change nothing, and they hold what was there.

use clap::Parser;
use diapason::Workspace;
use diapason::arguments::{CommandLine, execute};
use diapason::capture::CaptureRequest;
use diapason::describe::describe;
use diapason::failure::UNPROVED;
use diapason::metal::Built;
use diapason::session::Session;
use diapason::simulate::{Simulation, asked};
use diapason_can::candump;
use diapason_capture::pcap::{self, LinkType};
use diapason_sim::Options;
use diapason_system::RunOptions;
use std::ffi::OsString;
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

const ETHERNET: &str = "examples/ethernet-time.toml";
/// The kinds of frames with a tag, and of messages of the common time. A run has at least so many.
const TAGGED: u16 = 0x8100;
const TIMED: u16 = 0x88f7;
const TAGGED_MIN: usize = 1_000;
const TIMED_MIN: usize = 20;
/// The ports of the senders. Payloads are numbers, and Wireshark would take some for protocols.
const PORTS: [u16; 2] = [4_000, 4_001];
/// Frames that are on the way when a run ends, at most.
const ON_THE_WAY: usize = 4;

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

/// The step of adapters: the list is simulated with captures, and both adapters have the same
/// frames, with tags and messages of the common time among them.
pub fn check_ethernet(workspace: &Workspace, _: &Built) -> Result<(), String> {
    let list = workspace.root().join(ETHERNET).display().to_string();
    let folder = workspace.target().join("captures-ethernet");
    let words = ["diapason", "sim", &list, "--for", "5s", "--pcap"].map(OsString::from);
    let words = words.into_iter().chain([folder.clone().into()]);
    let line = CommandLine::try_parse_from(words).map_err(|error| error.to_string())?;
    // Nobody knows the common time after 5 s, so the run is no evidence of it.
    match execute(line.command) {
        Ok(UNPROVED) => {}
        other => return Err(format!("the run ended with {other:?}")),
    }
    let mut seen = Vec::new();
    for host in ["station", "drive"] {
        let path = folder.join(host).join("eth0.pcap");
        let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let frames = frames(&bytes).ok_or("the capture of an adapter is no whole file")?;
        if !frames.is_sorted_by_key(|(at, _)| *at) {
            return Err(format!("the frames of {host} are not in order"));
        }
        let of_kind = |kind: u16| {
            let is = |(_, frame): &&(u64, &[u8])| frame.get(12..14) == Some(&kind.to_be_bytes());
            frames.iter().filter(is).count()
        };
        let [tagged, timed] = [of_kind(TAGGED), of_kind(TIMED)];
        println!("{host}: {tagged} frames with a tag, {timed} of the common time");
        if tagged < TAGGED_MIN || timed < TIMED_MIN {
            return Err(format!("{host}: {tagged} and {timed} frames"));
        }
        decoded(&path, tagged, timed)?;
        seen.push((tagged, timed));
    }
    if seen[0].0.abs_diff(seen[1].0) > ON_THE_WAY {
        return Err(format!("the adapters have seen {seen:?} frames"));
    }
    fs::remove_dir_all(&folder).map_err(|error| error.to_string())
}

/// Returns the packets of a capture with their times in ns; `None` if it is not whole.
fn frames(mut bytes: &[u8]) -> Option<Vec<(u64, &[u8])>> {
    let header = pcap::header(LinkType::Ethernet);
    bytes = bytes.strip_prefix(&header)?;
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_first_chunk::<16>()?;
        let word = |at: usize| head[at..].first_chunk().map(|word| u32::from_le_bytes(*word));
        let [seconds, ns, kept, whole] = [word(0)?, word(4)?, word(8)?, word(12)?];
        let (frame, rest) = rest.split_at_checked(kept as usize)?;
        if kept != whole || ns >= 1_000_000_000 {
            return None;
        }
        frames.push((u64::from(seconds) * 1_000_000_000 + u64::from(ns), frame));
        bytes = rest;
    }
    Some(frames)
}

/// Compares what Wireshark's reader finds in a capture of Ethernet, where it is installed.
fn decoded(path: &Path, tagged: usize, timed: usize) -> Result<(), String> {
    let count = |filter: &str| {
        let mut reader = Command::new("tshark");
        reader.args(["-n", "-Y", filter]);
        for port in PORTS {
            reader.arg("-d").arg(format!("udp.port=={port},data"));
        }
        let output = reader.arg("-r").arg(path).stderr(Stdio::null()).output().ok()?;
        let lines = output.stdout.iter().filter(|byte| **byte == b'\n').count();
        Some((output.status.success(), lines))
    };
    let Some(tags) = count("vlan") else {
        println!("no tshark to look at the frames");
        return Ok(());
    };
    let found = (tags, count("ptp"), count("_ws.malformed"));
    match found == ((true, tagged), Some((true, timed)), Some((true, 0))) {
        true => Ok(()),
        false => Err(format!("tshark sees {found:?}: frames with a tag, of time, malformed")),
    }
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
