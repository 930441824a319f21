//! Diapason in the twin's place: `examples/can-concentrator.toml` in the same lock-step.

use super::lockstep::{self, Seen, Setting, Window};
use super::measured::{Channel, Latency, Measured, Scenario, System};
use crate::boot;
use crate::concentrator::{Concentrator, TASKS};
use crate::fig12::Looks;
use diapason::console::{Line, Splitter};
use diapason::outcome::Outcome;
use diapason::qemu::{MachineEnding, RunFolder};
use diapason::session::{FinishedRun, Session};
use diapason::{Failure, Workspace};
use diapason_abi::Nanos;
use diapason_abi::record::Record;
use diapason_devices::kvaser::CHANNELS;
use diapason_pipe::measured::{self, PipeReport, Reported};
use diapason_system::RunOptions;
use std::ffi::OsString;

/// The last reports come within this time after the window.
const REPORT: Nanos = Nanos::from_millis(1_500);
/// Frames of a second that may still be under way, or come early, where it begins and ends: those
/// of so many ms of the bus.
const EDGE_MS: u64 = 20;

/// The system that takes the twin's place.
#[derive(Debug)]
pub(crate) struct Ours(Concentrator);

impl Ours {
    /// Builds the kernel and the programs.
    ///
    /// # Errors
    /// If something does not compile.
    pub fn prepare(workspace: &Workspace) -> Result<Ours, Failure> {
        Concentrator::prepare(workspace).map(Ours)
    }

    /// Boots it for one scenario.
    ///
    /// # Errors
    /// If it cannot be run, or breaks a promise: then nothing it measured can be trusted.
    pub fn run(
        &self,
        workspace: &Workspace,
        scenario: Scenario,
        window: Window,
    ) -> Result<Measured, Failure> {
        let horizon = window.end + REPORT;
        let options = RunOptions { horizon_ns: horizon.0, record_bytes: 0, watch: false };
        let system = self.0.describe(scenario.tasks())?;
        let session = Session::assemble(system, self.0.built.clone(), options)?;
        let folder = RunFolder::create(&workspace.target())?;
        let setting = Setting { traffic: scenario.traffic(), window, end: Nanos::FOREVER };
        let seen = lockstep::run(&folder, setting, |console| {
            let mut serial = OsString::from("file:");
            serial.push(console);
            session.boot().command(&folder, &serial.to_string_lossy())
        })?;
        let heard = Heard::of(&seen.console);
        let ending = MachineEnding::of_status(seen.status);
        let served = Some(seen.report.hash);
        let run = FinishedRun { ending, outcome: heard.outcome.clone(), flight: None, served };
        boot::trusted(&session, run)?;
        measured(&heard, &seen, scenario, window)
            .ok_or_else(|| Failure::Ours("the concentrator did not report all".into()))
    }
}

/// Everything that was printed.
#[derive(Clone, Default)]
struct Heard {
    outcome: Outcome,
    /// The reports of each reader, one a second.
    readers: [Vec<PipeReport>; CHANNELS],
    looks: Looks,
}

impl Heard {
    fn of(console: &[u8]) -> Heard {
        let mut heard = Heard::default();
        let mut splitter = Splitter::default();
        let mut take = |line: Line| {
            heard.outcome.note(&line);
            if let Line::Log { text, .. } = &line {
                heard.looks.hear(text);
            }
            if let Line::Record(Record::Measured, words) = &line
                && let Some(Reported { said: measured::Measurement::Pipe(report), .. }) =
                    Reported::of(&words[1..])
                && let Some(reader) = heard.readers.get_mut(usize::from(report.channel))
            {
                reader.push(report);
            }
        };
        splitter.push(console, &mut take);
        splitter.finish(&mut take);
        heard
    }
}

fn measured(heard: &Heard, seen: &Seen, scenario: Scenario, window: Window) -> Option<Measured> {
    let within = seen.within();
    let channel = |index: usize| channel(heard, seen, index, window);
    let behind = if scenario.tasks() { progress(&heard.looks, window)? } else { Vec::new() };
    Some(Measured {
        system: System::Diapason,
        scenario,
        channels: (0..CHANNELS).map(channel).collect::<Option<_>>()?,
        behind,
        carried: (0..CHANNELS).map(|index| seen.carried(index, window)).sum(),
        instructions: within.instructions,
        wire: seen.report.hash,
    })
}

/// The reports of a reader from the window's first second to its last. Losses are counted from the
/// start of the run; so are the interface's overruns.
fn channel(heard: &Heard, seen: &Seen, index: usize, window: Window) -> Option<Channel> {
    let second = |time: Nanos| (time.0 / 1_000_000_000) as usize;
    let (begin, end) = (second(window.begin), second(window.end));
    let reports = heard.readers.get(index)?.get(begin - 1..end)?;
    let [first, .., last] = reports else { return None };
    let difference = |pair: &[PipeReport]| match pair {
        [before, after] => after.messages.checked_sub(before.messages),
        _ => None,
    };
    let received = last.messages.checked_sub(first.messages)?;
    let carried = seen.carried(index, window);
    // The reader's count must equal the bus's count in these seconds, give or take an edge.
    let edge = carried * EDGE_MS / (window.end - window.begin).0.div_ceil(1_000_000) + 1;
    let beyond = reports.iter().skip(1).map(|report| report.whole.0).max()?;
    (received.abs_diff(carried) <= edge).then_some(Channel {
        sent: received + u64::from(last.lost),
        received,
        overruns: seen.looks[1].overruns.get(index).copied()?,
        reported: None,
        dropped: 0,
        seconds: reports.windows(2).map(difference).collect::<Option<_>>()?,
        wait: None,
        latency: Latency { longest: None, beyond },
    })
}

/// Returns by how much each task is behind, from the first look in the window to the last.
fn progress(looks: &Looks, window: Window) -> Option<Vec<f64>> {
    let inside = |time: u64| time >= window.begin.0 && time <= window.end.0;
    let within = Looks {
        units: looks.units.clone(),
        looks: looks.looks.iter().filter(|look| inside(look.time)).cloned().collect(),
    };
    (0..TASKS).map(|task| within.error(task)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_reader_is_heard_whatever_is_said_besides() {
        let report = PipeReport { channel: 4, messages: 463, ..PipeReport::default() };
        let beyond = PipeReport { channel: 5, ..report };
        let record = |process: u64, report: PipeReport| {
            let words =
                Reported { at: Nanos(7), said: measured::Measurement::Pipe(report) }.words();
            let words: String = words.iter().map(|word| format!(" {word:x}")).collect();
            format!("~{:x} {process:x}{words}", Record::Measured as u64)
        };
        let (report_line, other) = (record(5, report), record(6, beyond));
        let console = format!("{report_line}\n{other}\n=5 CAN 4 WHOLE 463 frames\n~1\n");
        let heard = Heard::of(console.as_bytes());
        assert_eq!(heard.readers[4], [report]);
        assert_eq!(heard.readers.map(|reader| reader.len()), [0, 0, 0, 0, 1]);
    }

    #[test]
    fn progress_is_that_of_the_window() {
        let mut looks = Looks::default();
        looks.hear("UNITS 10000 10000 10000 0 0");
        for look in 0..=10u64 {
            // The second task stands still before the window, the third one in it.
            let full = look * 10_000;
            let (late, stuck) = (if look < 3 { 20_000 } else { full }, full.min(30_000));
            looks.hear(&format!("PROGRESS {} 0 0 {full} {late} {stuck} 0 0", look * 700_000_000));
        }
        let window = Window { begin: Nanos(2_000_000_000), end: Nanos(7_000_000_000) };
        let behind = progress(&looks, window).unwrap();
        assert!(behind[0].abs() < 1e-9 && behind[1].abs() < 1e-9, "{behind:?}");
        assert!((behind[2] - 100.0).abs() < 1e-9, "{behind:?}");
        assert!(progress(&Looks::default(), window).is_none());
    }

    proptest! {
        #[test]
        fn any_console_is_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Heard::of(&bytes);
        }
    }
}
