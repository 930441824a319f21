//! Logs against the readers and writers of python-can, where it is installed. `DIAPASON_PYTHON`
//! names the interpreter that has it.

mod support;

use diapason_can::AnyFrame;
use diapason_can::candump::LineContent;
use diapason_capture::asc;
use diapason_capture::blf::BlfWriter;
use diapason_capture::log::{LogEntry, LogFormat, as_candump};
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Random, log};

/// Prints what a log says, or writes it again, in the way of `candump`.
const SCRIPT: &str = r###"
import sys, can
def words(m):
    if m.is_error_frame:
        return "error"
    id = f"{m.arbitration_id:08X}" if m.is_extended_id else f"{m.arbitration_id:03X}"
    if m.is_fd:
        flags = 4 + m.bitrate_switch + 2 * m.error_state_indicator
        return id + "##%d" % flags + m.data.hex().upper()
    return id + ("#R%X" % m.dlc if m.is_remote_frame else "#" + m.data.hex().upper())
messages = list(can.LogReader(sys.argv[1]))
for m in messages:
    print(round(m.timestamp * 1e6), m.channel, words(m))
with can.Logger(sys.argv[2]) as out:
    for m in messages:
        out.on_message_received(m)
"###;

/// Returns the words of python-can about a log, which it also writes again as another one.
fn python(log: &Path, again: &Path) -> Option<Vec<String>> {
    let python = std::env::var("DIAPASON_PYTHON").unwrap_or("python3".into());
    let has = Command::new(&python).args(["-c", "import can"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        eprintln!("{python} has no python-can: logs were not compared");
        return None;
    }
    let output = Command::new(python).args(["-c", SCRIPT]).args([log, again]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().lines().map(String::from).collect())
}

/// Returns an entry in the words of the script.
fn words(entry: &LogEntry) -> String {
    let micros = entry.time.0 / 1_000;
    let LineContent::Frame(frame) = entry.report else {
        return format!("{micros} {} error", entry.channel - 1);
    };
    let id = match frame.is_extended() {
        true => format!("{:08X}", frame.raw_id()),
        false => format!("{:03X}", frame.raw_id()),
    };
    let data: String = frame.bytes().iter().map(|byte| format!("{byte:02X}")).collect();
    let data = match frame {
        AnyFrame::Classic(frame) if frame.is_remote() => format!("R{:X}", frame.code()),
        AnyFrame::Classic(_) => data,
        AnyFrame::Fd(frame) => {
            let flags = 4 + u8::from(frame.is_fast()) + 2 * u8::from(frame.is_passive());
            format!("#{flags}{data}")
        }
    };
    format!("{micros} {} {id}#{data}", entry.channel - 1)
}

/// Entries that python-can can tell. It has no data length codes above eight for classic frames,
/// and takes frames of CAN FD without data for remote ones in one of the formats.
fn entries() -> Vec<LogEntry> {
    let mut entries = log(&mut Random::new(9), 5_000);
    entries.retain(|entry| match entry.report {
        LineContent::Frame(AnyFrame::Classic(frame)) => frame.code() <= 8,
        LineContent::Frame(AnyFrame::Fd(frame)) => !frame.bytes().is_empty(),
        LineContent::Error { .. } => true,
    });
    entries
}

fn blf(entries: &[LogEntry]) -> Vec<u8> {
    let mut writer = BlfWriter::default();
    let mut containers: Vec<u8> = entries.iter().filter_map(|e| writer.put(e)).flatten().collect();
    let (last, header) = writer.finish();
    containers.extend(last.into_iter().flatten());
    [&header[..], &containers].concat()
}

fn paths(name: &str) -> (PathBuf, PathBuf) {
    let folder = std::env::temp_dir().join(format!("python-can-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    (folder.join(format!("ours.{name}")), folder.join(format!("theirs.{name}")))
}

fn compare(name: &str, format: LogFormat, bytes: &[u8], entries: &[LogEntry]) {
    let (ours, theirs) = paths(name);
    std::fs::write(&ours, bytes).unwrap();
    if let Some(said) = python(&ours, &theirs) {
        let wanted: Vec<String> = entries.iter().map(words).collect();
        assert_eq!(said.len(), wanted.len());
        for (said, wanted) in said.iter().zip(&wanted) {
            assert_eq!(said, wanted);
        }
        // Its own file says the same, to a microsecond. Times count from its first frame on, or
        // from the last millisecond before it, as the format and the version have it.
        let bytes = std::fs::read(&theirs).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(LogFormat::of(&bytes), format);
        let again = as_candump(format, &bytes, &text).unwrap();
        assert_eq!(again.lines().count(), entries.len());
        let mut first = None;
        for (line, entry) in again.lines().zip(entries) {
            let record = diapason_can::candump::parse(line).unwrap();
            assert_eq!(record.report, entry.report);
            let begin = *first.get_or_insert(record.time);
            assert!(begin.0 < 1_000_000, "{line}");
            let (read, wanted) = (record.time - begin, entry.time - entries[0].time);
            assert!(read.0.abs_diff(wanted.0) <= 1_001, "{line}: {wanted}");
        }
    }
    std::fs::remove_dir_all(ours.parent().unwrap()).unwrap();
}

#[test]
fn python_can_reads_our_blf_and_we_read_its_own() {
    let entries = entries();
    compare("blf", LogFormat::Blf, &blf(&entries), &entries);
}

#[test]
fn python_can_reads_our_asc_and_we_read_its_own() {
    let entries = entries();
    let text: String = entries.iter().map(asc::line).collect();
    let text = [asc::HEADER, &text, asc::FOOTER].concat();
    compare("asc", LogFormat::Asc, text.as_bytes(), &entries);
}
