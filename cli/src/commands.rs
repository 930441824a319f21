//! The commands: what they do, what they print, what they exit with.

use crate::capture::CaptureRequest;
use crate::console::{Line, SerialPort};
use crate::describe::{describe_any, one_host};
use crate::failure::{BROKEN, Failure, HOLDS, UNPROVED};
use crate::formats::RunFormat;
use crate::live::live;
use crate::names::Names;
use crate::outcome::RunVerdict;
use crate::outcome::junit;
use crate::output::{note, say, tell, write};
use crate::plan::{Plan, Unproved};
use crate::session::{FinishedRun, RECORD_BYTES, Session};
use crate::tools::{Missing, QEMU};
use crate::workspace::Workspace;
use crate::{can_server, cores, duration, interrupt, plan, project, qemu, real, together, words};
use diapason_system::{Description, RunOptions};
use std::io::{BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// How long something runs, and whether it must be proved.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Length {
    /// How long the system runs, in its own time.
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = duration::parse,
        allow_hyphen_values = true)]
    pub horizon_ns: u64,
    /// Boot it even if its plan does not hold; every report then says that it is unproved.
    #[arg(long)]
    pub unproved: bool,
}

impl Length {
    /// Returns the wish to boot a system that does not hold, if there is one.
    #[must_use]
    pub fn unproved(&self) -> Option<Unproved> {
        self.unproved.then_some(Unproved)
    }
}

/// The request to `run`.
#[derive(Clone, Debug, clap::Args)]
pub struct RunRequest {
    #[arg(default_value = "system.toml")]
    pub system: PathBuf,
    #[command(flatten)]
    pub length: Length,
    /// Print the outcome as JSON; what the system says goes to standard error.
    #[arg(long)]
    pub json: bool,
    /// Print the outcome in this format; `--json` is short for `--format json`.
    #[arg(long, value_name = "FORMAT", value_enum, conflicts_with = "json")]
    pub format: Option<RunFormat>,
    /// Keep the flight record: every entry into the kernel core.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Time every kernel path and report the longest.
    #[arg(long)]
    pub watch: bool,
    /// Give the emulated PC an IOMMU, so that devices are confined to what is granted. Boot takes
    /// longer then, so that devices come at other times.
    #[arg(long)]
    pub iommu: bool,
    #[command(flatten)]
    pub captures: CaptureRequest,
    /// The reaction to a missing emulator.
    #[arg(skip = Missing::Say)]
    pub missing: Missing,
}

/// Boots a system in QEMU, or the hosts of a list together, and reports.
///
/// # Errors
/// If there was no run to report on.
pub fn run(request: &RunRequest) -> Result<u8, Failure> {
    let system = match describe_any(&request.system)? {
        Description::Several(list) => return together::run(request, list),
        Description::Cores(systems) => return cores::run(request, systems),
        other => one_host(&request.system, other)?,
    };
    can_server::check(&system, &request.captures)?;
    let plan = Plan::of(&system);
    plan::cleared(&plan, request.length.unproved())?;
    let workspace = Workspace::find()?;
    QEMU.require(request.missing)?;
    real::require(&system)?;
    note("building the kernel and the programs");
    let built = project::build(&workspace, &request.system, &[&system])?;
    let options = RunOptions {
        horizon_ns: request.length.horizon_ns,
        record_bytes: if request.record.is_some() { RECORD_BYTES } else { 0 },
        watch: request.watch,
    };
    let captures = request.captures.clone();
    let session = Session::planned(plan, built, options, request.length.unproved())?;
    let mut unseen = real::unseen(&session.system);
    unseen.extend(qemu::unseen(&session.system));
    let mut session = Session { captures, unseen, ..session }.on_own_kernel(&workspace)?;
    session.hardware.iommu = request.iommu;
    interrupt::await_signals()?;
    let promises = session.promises();
    let format = RunFormat::of(request.json, request.format);
    let mut live = live(format.is_for_programs(), session.names.clone(), promises);
    let run = session.run(&workspace, &mut live)?;
    save_record(request.record.as_deref(), &run)?;
    if let Some(served) = run.served {
        tell(&format!("USB devices {served:016x}"));
    }
    report(format, &session, &run, Addition::default())
}

/// The additions at the end of a run.
#[derive(Default)]
pub(crate) struct Addition {
    pub text: String,
    /// The fields of the JSON object that say what `text` says.
    pub json: Vec<(String, serde_json::Value)>,
}

fn save_record(path: Option<&Path>, run: &FinishedRun) -> Result<(), Failure> {
    let (Some(path), Some(bytes)) = (path, &run.flight) else { return Ok(()) };
    std::fs::write(path, bytes)
        .map_err(|error| Failure::io(format!("write {}", path.display()), &error))
}

/// Says how a run went, in this format, and what that means.
///
/// # Errors
/// If the run shows a bug of ours.
pub(crate) fn report(
    format: RunFormat,
    session: &Session,
    run: &FinishedRun,
    addition: Addition,
) -> Result<u8, Failure> {
    let judged = session.judge(run);
    match format {
        RunFormat::Json => say(&format!("{:#}", as_json(session, run, &judged, addition))),
        RunFormat::Text => say(&format!("\n{}", as_tables(session, run, &judged, addition))),
        RunFormat::Junit => {
            let (name, unmeasured) = (&session.system.name, session.unmeasured(run));
            let time = run.outcome.end.map_or(0, |end| end.time_ns);
            let promised = session.assumptions(run);
            write(&junit::report(name, &promised, session.proved, &judged, &unmeasured, time));
        }
    }
    code(session, run, judged)
}

/// Returns the report of a run for people: tables, broken promises, the verdict.
pub(crate) fn as_tables(
    session: &Session,
    run: &FinishedRun,
    verdict: &RunVerdict,
    addition: Addition,
) -> String {
    let mut text = run.outcome.render(&session.names) + "\n";
    let promised = session.assumptions(run);
    let measured = run.outcome.measured(&promised, &session.names).into_iter();
    let parts = measured.chain([addition.text]).filter(|part| !part.is_empty());
    parts.for_each(|part| text += &format!("{part}\n"));
    verdict.findings().iter().for_each(|finding| text += &format!("broken: {finding}\n"));
    let unmeasured = session.unmeasured(run);
    unmeasured.iter().for_each(|what| text += &format!("not measured: {what}\n"));
    text + &sentence(session, verdict, run)
}

/// Returns the report of a run for programs.
pub(crate) fn as_json(
    session: &Session,
    run: &FinishedRun,
    verdict: &RunVerdict,
    addition: Addition,
) -> serde_json::Value {
    let (name, alarms) = (&session.system.name, session.alarms(run));
    let (promised, findings) = (session.assumptions(run), verdict.findings());
    let mut json = run.outcome.to_json(name, &session.names, &findings, &alarms, &promised);
    if let Some(object) = json.as_object_mut() {
        object.insert("holds".into(), holds(session, run, verdict).into());
        object.insert("proved".into(), session.proved.into());
        object.insert("unmeasured".into(), session.unmeasured(run).into());
        object.extend(addition.json);
    }
    json
}

/// Returns whether a run is evidence: everything that is promised was proved, measured and kept.
pub(crate) fn holds(session: &Session, run: &FinishedRun, verdict: &RunVerdict) -> bool {
    *verdict == RunVerdict::Holds && session.proved && session.unmeasured(run).is_empty()
}

/// Returns the exit code of a command after a run.
///
/// # Errors
/// If the run shows a bug of ours.
pub(crate) fn code(
    session: &Session,
    run: &FinishedRun,
    verdict: RunVerdict,
) -> Result<u8, Failure> {
    match verdict {
        RunVerdict::Holds if holds(session, run, &verdict) => Ok(HOLDS),
        RunVerdict::Holds => Ok(UNPROVED),
        RunVerdict::Broken(_) => Ok(BROKEN),
        RunVerdict::Bug(text) => Err(Failure::Ours(text)),
    }
}

/// The verdict in a sentence.
fn sentence(session: &Session, verdict: &RunVerdict, run: &FinishedRun) -> String {
    let name = &session.system.name;
    let promised = session.assumptions(run);
    if !session.proved {
        let found =
            if *verdict == RunVerdict::Holds { "nothing was broken" } else { "does not hold" };
        return format!("{name}: unproved; {found}");
    }
    let RunVerdict::Holds = verdict else { return format!("{name}: does not hold") };
    if interrupt::came() {
        return format!("{name}: interrupted; nothing was broken until then");
    }
    if session.promises_nothing(run) {
        return format!("{name}: nothing was broken, and nothing is promised");
    }
    if !session.unmeasured(run).is_empty() {
        return format!("{name}: nothing was broken, and not everything was measured");
    }
    let pipes = promised.pipes.len();
    if pipes == 0 {
        return format!("{name}: holds");
    }
    let messages: u64 = promised.pipes.iter().map(|promise| promise.messages(&run.outcome)).sum();
    let pipes = if pipes == 1 { "1 pipe".to_owned() } else { format!("{pipes} pipes") };
    format!("{name}: holds; {messages} messages in {pipes}, none lost, none late")
}

/// Turns the console of a system, read from `input`, into sentences. Those of other cores than the
/// first begin with the core.
///
/// # Errors
/// If `input` or `output` breaks.
pub fn decode(mut input: impl Read, output: impl Write) -> Result<u8, Failure> {
    let mut output = BufWriter::new(output);
    let (names, mut port) = (Names::default(), SerialPort::default());
    let (mut buffer, mut written) = ([0; 8192], Ok(()));
    let say = |output: &mut BufWriter<_>, core: usize, line: &Line| {
        let speaker = if core > 0 { format!("core {core} ") } else { String::new() };
        writeln!(output, "{speaker}{}", words::sentence(line, &names))
    };
    loop {
        let count = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(Failure::io("read the console", &error)),
        };
        port.push(&buffer[..count], |core, line| {
            if written.is_ok() {
                written = say(&mut output, core, &line);
            }
        });
        written = written.and_then(|()| output.flush());
    }
    port.finish(|core, line| {
        if written.is_ok() {
            written = say(&mut output, core, &line);
        }
    });
    match written.and_then(|()| output.flush()) {
        // Its reader has seen enough.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::io("write", &error)),
        _ => Ok(HOLDS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::describe;

    #[test]
    fn decode_turns_words_into_sentences_and_keeps_the_rest() {
        let mut out = Vec::new();
        assert_eq!(decode(&b"SeaBIOS\n~13 3b9aca00\n=2 hi"[..], &mut out), Ok(HOLDS));
        let expected =
            format!("SeaBIOS\n[   1.000000000] nothing is left that could run\n{:16} #2: hi\n", "");
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn decode_names_the_core_of_each_line_but_those_of_the_first() {
        let mut out = Vec::new();
        let console = b"~1 7 1 1 1 1\n=2 hi\x81~13 3b9aca00\n\x80!\n";
        assert_eq!(decode(&console[..], &mut out), Ok(HOLDS));
        let said = String::from_utf8(out).unwrap();
        let (booted, rest) = said.split_once('\n').unwrap();
        assert!(!booted.starts_with("core"), "{booted}");
        let other = "core 1 [   1.000000000] nothing is left that could run";
        assert_eq!(rest, format!("{other}\n{:16} #2: hi!\n", ""));
    }

    #[test]
    fn a_missing_description_is_bad_input() {
        let failure = describe(Path::new("no/such/file.toml")).unwrap_err();
        assert_eq!(failure.exit_code(), 2);
        assert!(failure.to_string().contains("no/such/file.toml"));
    }

    /// A session whose single VCPU has this budget of 10 ms, and nothing to boot.
    fn session(budget: &str) -> Session {
        of(&format!(
            "[[vcpu]]\nname = \"v\"\nbudget = \"{budget}\"\nperiod = \"10ms\"\n\
             [[process]]\nname = \"p\"\npriority = 1\nvcpu = \"v\"\n"
        ))
    }

    /// A session of a system with these tables, and nothing to boot.
    fn of(tables: &str) -> Session {
        let text = format!("[system]\nname = \"s\"\n{tables}");
        let system = diapason_system::parse("s", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
        Session::unbuilt(system)
    }

    /// A VCPU without a job, and a process on it.
    const VCPU: &str = "[[vcpu]]\nname = \"v\"\nbudget = \"1ms\"\nperiod = \"10ms\"\n\
                        [[process]]\nname = \"p\"\npriority = 1\nvcpu = \"v\"\n";

    #[test]
    fn a_run_that_was_wanted_unproved_says_so_everywhere() {
        let (proved, unproved) = (session("1ms"), session("10ms"));
        let ending = crate::qemu::MachineEnding::Finished;
        let run = FinishedRun { ending, outcome: Default::default(), flight: None, served: None };
        let json = |session| as_json(session, &run, &RunVerdict::Holds, Addition::default());
        assert_eq!(json(&proved)["proved"], true);
        assert_eq!(json(&unproved)["proved"], false);
        assert_eq!(json(&unproved)["holds"], false, "what is not proved does not hold");
        let text = |session| as_tables(session, &run, &RunVerdict::Holds, Addition::default());
        assert!(text(&proved).contains("s: holds") && !text(&proved).contains("unproved"));
        assert!(text(&unproved).ends_with("s: unproved; nothing was broken"));
        assert_eq!(code(&proved, &run, RunVerdict::Holds), Ok(HOLDS));
        assert_eq!(code(&unproved, &run, RunVerdict::Holds), Ok(UNPROVED));
        let broken = || RunVerdict::Broken(Vec::new());
        assert_eq!(code(&unproved, &run, broken()), Ok(BROKEN));
    }

    #[test]
    fn a_run_with_clients_is_no_evidence_whatever_else_it_is() {
        let can_server = "127.0.0.1:29536".parse().ok();
        let captures = CaptureRequest { can_server, ..CaptureRequest::default() };
        let ending = crate::qemu::MachineEnding::Finished;
        let run = FinishedRun { ending, outcome: Default::default(), flight: None, served: None };
        for tables in ["[[process]]\nname = \"p\"\npriority = 1\n", VCPU] {
            let session = Session { captures: captures.clone(), ..of(tables) };
            for verdict in [RunVerdict::Holds, RunVerdict::Broken(Vec::new())] {
                let text = as_tables(&session, &run, &verdict, Addition::default());
                assert!(text.contains("clients at 127.0.0.1:29536 could send frames"), "{text}");
                assert!(!holds(&session, &run, &verdict));
            }
            assert_eq!(code(&session, &run, RunVerdict::Holds), Ok(UNPROVED));
        }
    }

    /// Nothing is broken, and the run is no evidence: text, JSON and exit code say so.
    #[test]
    fn a_run_that_did_not_measure_everything_does_not_hold() {
        let ending = crate::qemu::MachineEnding::Finished;
        let run = FinishedRun { ending, outcome: Default::default(), flight: None, served: None };
        let process = "[[process]]\nname = \"p\"\npriority = 1\n";
        let nothing = of(process);
        let with_job = of(&format!(
            "[[vcpu]]\nname = \"v\"\nbudget = \"1ms\"\nperiod = \"10ms\"\njob = \"100us\"\n\
             {process}vcpu = \"v\"\n"
        ));
        let of_all = "not everything was measured";
        for (session, what, end) in [
            (
                nothing,
                "the description promises nothing except that no process faults",
                "nothing is promised",
            ),
            (with_job, "no job on VCPU v was done", of_all),
        ] {
            let json = as_json(&session, &run, &RunVerdict::Holds, Addition::default());
            assert_eq!((&json["holds"], &json["unmeasured"][0]), (&false.into(), &what.into()));
            let text = as_tables(&session, &run, &RunVerdict::Holds, Addition::default());
            assert!(text.contains(&format!("not measured: {what}\n")), "{text}");
            let end = format!("s: nothing was broken, and {end}");
            assert!(text.ends_with(&end), "{text}");
            assert_eq!(code(&session, &run, RunVerdict::Holds), Ok(UNPROVED));
            assert_eq!(code(&session, &run, RunVerdict::Broken(Vec::new())), Ok(BROKEN));
        }
    }
}
