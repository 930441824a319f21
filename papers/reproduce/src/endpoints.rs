//! Pipes from endpoints of several classes on one core: what the plan of `examples/endpoints.toml`
//! bounds, and what both machines show of it; and the same system with something that contradicts
//! its description, which must not pass for a run that holds. A camera with 33 KB a millisecond
//! beside a disk: no interval is missed, and each picture keeps its bound. A disk with 20 MB a
//! second beside a CAN channel, and a recorder that writes to one (`blocks.rs`). A network device
//! with 10,000 frames a second (`frames.rs`). Then the concentrator with 8 % of the processor for
//! its bottom half: messages are told apart from what a wake-up costs anyway.

mod blocks;
mod frames;

use super::{Effort, Progress, ReproductionReport, Row, boot};
use diapason::console::Line;
use diapason::metal::Built;
use diapason::outcome::PipePromise;
use diapason::session::{FinishedRun, Session};
use diapason::simulate::{self, Hearing, Simulation};
use diapason::table::{Align, TextTable};
use diapason::tools::{Missing, QEMU};
use diapason::{Failure, Workspace};
use diapason_abi::Nanos;
use diapason_plan::Plan;
use diapason_sim::{Costs, Options};
use diapason_system::{RunOptions, System};

/// The description of the endpoints, below the workspace's root.
const PATH: &str = "examples/endpoints.toml";
/// The description of the camera, and the pipe of it.
const CAMERA: &str = "examples/camera.toml";
const PICTURES: &str = "pictures";
/// The concentrator, and the changes that tell its messages apart. A wake-up takes less than 10,000
/// instructions in QEMU, and 1,900 more at most for each frame that it finds. The thread that
/// manages can wait for a lock until all frames that can have come are done.
const CONCENTRATOR: &str = "examples/can-concentrator.toml";
const APART: [(&str, &str); 3] = [
    ("utilization = \"22%\"", "utilization = \"8%\""),
    ("budget = \"100us\"\nperiod = \"2500us\"", "budget = \"200us\"\nperiod = \"2500us\""),
    (
        "name = \"usbd.receive\"\nworst = \"60us\"\nbest = \"12us\"",
        "name = \"usbd.receive.message\"\nworst = \"600ns\"\n\n\
         [[work]]\nname = \"usbd.receive.transfer\"\nworst = \"1300ns\"\n\n\
         [[work]]\nname = \"usbd.receive\"\nworst = \"10us\"",
    ),
];
/// Seconds of a run, and of one that is only to show that everything works.
const SECONDS: (u64, u64) = (30, 4);
/// Seconds until the server has found its devices, at the latest.
const START: u64 = 2;
/// Seconds in which something that contradicts the description has to be noticed.
const NOTICED: u64 = 4;

/// Something that contradicts the description.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lie {
    /// The sensor sends every 2 ms.
    FastSensor,
    /// The time of a packet is beyond its contract: what is there is no time.
    NoTime,
    /// The reader takes 3 ms for each packet, and says 10 us.
    StarvedReader,
}

impl Lie {
    const ALL: [Lie; 3] = [Lie::FastSensor, Lie::NoTime, Lie::StarvedReader];

    /// Returns its name, and the alarm that tells of it.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Lie::FastSensor => ("fast-sensor", "pipe-contract"),
            Lie::NoTime => ("no-time", "pipe-contract"),
            Lie::StarvedReader => ("starved-reader", "pipe-late"),
        }
    }

    /// Makes the machine other than the plan has it.
    fn tell(self, system: &mut System) {
        match self {
            Lie::FastSensor => {
                let sensors = system.usb.iter_mut().filter(|plug| plug.name == "sensor");
                sensors.for_each(|plug| plug.gap_ns = Some(2_000_000));
            }
            Lie::NoTime => system.pipes.iter_mut().for_each(|pipe| {
                pipe.shape.stamp = pipe.shape.stamp.map(|_| 24);
            }),
            Lie::StarvedReader => {
                let readers = system.processes.iter_mut().filter(|it| it.name == "sampler");
                readers.for_each(|reader| reader.arguments[1] = 3_000);
            }
        }
    }
}

/// Where the experiments run.
struct Bench {
    workspace: Workspace,
    built: Built,
    system: System,
}

impl Bench {
    fn session(&self, system: System, seconds: u64) -> Result<Session, Failure> {
        let horizon_ns = seconds * 1_000_000_000;
        let options = RunOptions { horizon_ns, record_bytes: 0, watch: false };
        Session::assemble(system, self.built.clone(), options)
    }
}

impl Bench {
    /// Runs a session on a machine.
    ///
    /// # Errors
    /// If it breaks a promise: then nothing it measured can be trusted.
    fn run(&self, session: &Session, machine: &str) -> Result<FinishedRun, Failure> {
        let run = match machine {
            "sim" => simulated(session)?,
            _ => session.run(&self.workspace, &mut |_| {})?,
        };
        boot::trusted(session, run)
    }
}

/// The measurements of all pipes in a run.
struct Measured {
    run: FinishedRun,
    /// Those of each pipe, in the order of the description.
    seen: Vec<Seen>,
    rows: Vec<Row>,
}

impl Bench {
    /// Runs a session for so many seconds, and compares its pipes with their bounds. The names of
    /// the rows begin with `of`.
    fn measure(
        &self,
        session: &Session,
        (of, machine, seconds): (&str, &str, u64),
        table: &mut TextTable,
    ) -> Result<Measured, Failure> {
        let run = self.run(session, machine)?;
        let (mut all, mut rows) = (Vec::new(), Vec::new());
        for (promise, pipe) in session.promises().iter().zip(&session.system.pipes) {
            let seen = Seen::of(promise, &run)?;
            let each = seen.rows(promise, machine, pipe.rate * (seconds - START));
            rows.extend(each.map(|row| Row { id: format!("{of}{}", row.id), ..row }));
            table.row(seen.cells(promise, machine));
            all.push(seen);
        }
        Ok(Measured { run, seen: all, rows })
    }
}

fn simulated(session: &Session) -> Result<FinishedRun, Failure> {
    let clock = session.system.clock_hz;
    let works = simulate::works(session, None);
    let how = Options { costs: Costs::at(clock), works, ..Options::default() };
    Ok(Simulation::new(session, &how).run(&mut Hearing(|_: &Line| {}))?.run)
}

pub(super) fn reproduce(
    effort: Effort,
    progress: &Progress,
) -> Result<ReproductionReport, Failure> {
    let quick = effort == Effort::Quick;
    if !quick {
        QEMU.require(Missing::Say)?;
    }
    let workspace = Workspace::find()?;
    let system = diapason::describe::describe(&workspace.root().join(PATH))?;
    let bench = Bench { built: boot::build(&workspace)?, workspace, system };
    let seconds = START + if quick { SECONDS.1 } else { SECONDS.0 };
    let mut rows = Vec::new();
    let mut table = TextTable::new(&[
        ("pipe", Align::Left),
        ("machine", Align::Left),
        ("messages", Align::Right),
        ("lost", Align::Right),
        ("longest", Align::Right),
        ("bound", Align::Right),
    ]);
    let machines = if quick { &["sim"][..] } else { &["sim", "qemu"] };
    for (done, machine) in machines.iter().enumerate() {
        progress.at("machines", done, machines.len());
        let session = bench.session(bench.system.clone(), seconds)?;
        rows.extend(bench.measure(&session, ("", machine, seconds), &mut table)?.rows);
    }
    for (done, machine) in machines.iter().enumerate() {
        progress.at("cameras", done, machines.len());
        rows.extend(camera(&bench, machine, seconds, &mut table)?);
    }
    for (done, machine) in machines.iter().enumerate() {
        progress.at("disks", done, machines.len());
        rows.extend(blocks::rows(&bench, machine, seconds, &mut table)?);
        rows.extend(blocks::recorder(&bench, machine, seconds, &mut table)?);
    }
    for (done, machine) in machines.iter().enumerate() {
        progress.at("networks", done, machines.len());
        rows.extend(frames::rows(&bench, machine, seconds, &mut table)?);
    }
    for (done, machine) in machines.iter().enumerate() {
        progress.at("shares", done, machines.len());
        rows.extend(apart(&bench, machine, seconds, &mut table)?);
    }
    for (done, lie) in Lie::ALL.into_iter().enumerate() {
        progress.at("contradictions", done, Lie::ALL.len());
        rows.push(contradicted(&bench, lie)?);
    }
    rows.push(refused(&bench));
    progress.end();
    let sections = vec![("What was seen, beside the bound".to_owned(), table.render())];
    Ok(ReproductionReport::new("endpoints", rows, sections, Vec::new()))
}

/// The measurements of a pipe.
struct Seen {
    messages: u64,
    lost: u64,
    longest: Nanos,
    /// The fewest messages between two reports, which come once a second.
    fewest: u64,
}

impl Seen {
    fn of(promise: &PipePromise, run: &FinishedRun) -> Result<Seen, Failure> {
        let row = promise.row(&run.outcome);
        let row = row.ok_or_else(|| Failure::Ours(format!("{} was not measured", promise.name)))?;
        // The simulator knows the whole way; elsewhere the fastest message took at least so long.
        let truth = run.outcome.truth.get(promise.place).copied().flatten();
        let measured = row.whole_max_ns + promise.least_ns;
        let longest = Nanos(truth.map_or(measured, |truth| truth.longest_ns));
        let fewest = row.between.map_or(0, |(fewest, _)| fewest);
        Ok(Seen { messages: row.messages, lost: row.lost, longest, fewest })
    }

    fn rows(&self, promise: &PipePromise, machine: &str, expected: u64) -> [Row; 2] {
        let id = |what: &str| format!("{}.{machine}.{what}", promise.name);
        let bound = promise.bound_ns as f64 / 1e6;
        let longest = self.longest.0 as f64 / 1e6;
        // Senders send a little less than the contracts allow, and some is under way.
        let whole = self.lost == 0 && self.messages * 100 >= expected * 97;
        [
            Row::numbers(&id("lost"), "messages", Some(0.0), self.lost as f64)
                .holds(whole)
                .note(format!("{} read; at least 97 % of {expected} have to be", self.messages)),
            Row::numbers(&id("longest"), "ms", None, longest)
                .holds(self.longest.0 <= promise.bound_ns)
                .note(format!("at most {bound} ms by the plan")),
        ]
    }

    fn cells(&self, promise: &PipePromise, machine: &str) -> Vec<String> {
        let (longest, bound) = (self.longest, Nanos(promise.bound_ns));
        let counts = [self.messages.to_string(), self.lost.to_string()];
        let [messages, lost] = counts;
        let (name, machine) = (promise.name.clone(), machine.to_owned());
        vec![name, machine, messages, lost, longest.to_string(), bound.to_string()]
    }
}

/// Runs the camera: its pictures beside their bound, and the intervals that it missed. In the
/// simulator a reader that takes much longer than it says must be found out, too.
fn camera(
    bench: &Bench,
    machine: &str,
    seconds: u64,
    table: &mut TextTable,
) -> Result<Vec<Row>, Failure> {
    let system = diapason::describe::describe(&bench.workspace.root().join(CAMERA))?;
    let session = bench.session(system.clone(), seconds)?;
    let Measured { run, mut rows, .. } = bench.measure(&session, ("", machine, seconds), table)?;
    let missed: u64 = run.outcome.cameras.iter().map(|camera| camera.last.missed).sum();
    let id = format!("{PICTURES}.{machine}.missed");
    let row = Row::numbers(&id, "intervals", Some(0.0), missed as f64);
    rows.push(row.holds(missed == 0).note("of 4,096 bytes every 125 us"));
    if machine == "sim" {
        let mut system = system;
        let readers = system.processes.iter_mut().filter(|it| it.name == "reader");
        readers.for_each(|reader| reader.arguments[1] = 300);
        let session = bench.session(system, NOTICED)?;
        rows.push(rings(&session, PICTURES, ("starved-picture", "pipe-late"))?);
    }
    Ok(rows)
}

/// Returns whether this alarm rings for a pipe in a simulated run.
fn rings(session: &Session, pipe: &str, (name, alarm): (&str, &str)) -> Result<Row, Failure> {
    let run = simulated(session)?;
    let mut alarms: Vec<&str> =
        session.alarms(&run).iter().filter(|it| it.of == pipe).map(|it| it.name).collect();
    alarms.dedup();
    let rings = alarms.contains(&alarm);
    let ours = alarms.join(", ");
    Ok(Row::words(&format!("contradicted.{name}"), None, &ours)
        .holds(rings)
        .note(format!("`{alarm}` has to ring for the pipe")))
}

/// Compares the concentrator whose messages are told apart with that of the examples, and runs it.
fn apart(
    bench: &Bench,
    machine: &str,
    seconds: u64,
    table: &mut TextTable,
) -> Result<Vec<Row>, Failure> {
    let path = bench.workspace.root().join(CONCENTRATOR);
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Failure::io(format!("read {}", path.display()), &error))?;
    let parse = |text: &str| {
        let mut system = diapason_system::parse(CONCENTRATOR, text)
            .map_err(|diagnostics| Failure::Input(diagnostics.plain()))?;
        let readers = system.processes.iter_mut().filter(|it| it.program == "can-reader");
        readers.for_each(|reader| reader.arguments[1] = 0);
        Ok::<System, Failure>(system)
    };
    let mut changed = text.clone();
    for (from, to) in APART {
        if !changed.contains(from) {
            return Err(Failure::Ours(format!("{CONCENTRATOR} has no `{from}`")));
        }
        changed = changed.replacen(from, to, 1);
    }
    let usual = bench.session(parse(&text)?, seconds)?.promises();
    let session = bench.session(parse(&changed)?, seconds)?;
    let promises = session.promises();
    let longest = |all: &[PipePromise]| all.iter().map(|it| it.bound_ns).max().unwrap_or(u64::MAX);
    let shorter = usual.iter().zip(&promises).all(|(usual, it)| it.bound_ns <= usual.bound_ns);
    let mut rows = Vec::new();
    if machine == "sim" {
        let note = format!(
            "longest bound of five pipes at 8 % of the processor; {} ms at 22 %",
            longest(&usual) as f64 / 1e6
        );
        let bound = longest(&promises) as f64 / 1e6;
        rows.push(Row::numbers("share-8.bound", "ms", None, bound).holds(shorter).note(note));
    }
    rows.extend(bench.measure(&session, ("share-8.", machine, seconds), table)?.rows);
    Ok(rows)
}

/// Returns whether a run of a machine that is other than its description is found out.
fn contradicted(bench: &Bench, lie: Lie) -> Result<Row, Failure> {
    let (name, alarm) = lie.words();
    let mut system = bench.system.clone();
    if lie != Lie::FastSensor {
        // Programs are told before they start.
        lie.tell(&mut system);
    }
    let mut session = bench.session(system, NOTICED)?;
    if lie == Lie::FastSensor {
        lie.tell(&mut session.system);
    }
    rings(&session, "samples", (name, alarm))
}

/// Returns whether the plan refuses a pipe that says less than its device sends.
fn refused(bench: &Bench) -> Row {
    let mut system = bench.system.clone();
    Lie::FastSensor.tell(&mut system);
    let plan = Plan::of(&system);
    let ours = if plan.holds() { "holds" } else { "refused" };
    Row::words("refused.fast-sensor", None, ours)
        .holds(!plan.holds())
        .note("described, a sensor beyond its contract is no system that holds")
}
