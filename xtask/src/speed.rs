//! `cargo xtask speed`: how fast the simulator is, and what it does in a second.
//!
//! Time is the processor time of this thread as Linux counts it, so what else the machine does
//! counts less; the fastest of several runs is reported. Every run must leave the same trace.

use diapason::describe::describe;
use diapason::failure::{BROKEN, HOLDS};
use diapason::metal::{self, Built};
use diapason::session::Session;
use diapason::simulate::works;
use diapason::surroundings::functions;
use diapason::table::{Align, TextTable};
use diapason::{Failure, Workspace};
use diapason_abi::Nanos;
use diapason_abi::record::Record;
use diapason_abi::recorder::Entry;
use diapason_sim::{Costs, FunctionModel, Memory, Moment, Note, Observer, Options, Said, Trace};
use diapason_system::RunOptions;
use std::cell::Cell;
use std::rc::Rc;

/// The systems whose speed is watched.
const SYSTEMS: [&str; 2] = ["examples/engine.toml", "examples/can-concentrator.toml"];
/// The words of `Record::End` for address-space switches and register accesses.
const SWITCHES: usize = 3;
const ACCESSES: usize = 5;

/// The counts of a run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Counts {
    entries: u64,
    stretches: u64,
    switches: u64,
    accesses: u64,
    steps: u64,
}

impl Counts {
    fn all(&self) -> u64 {
        self.entries + self.stretches + self.switches + self.accesses + self.steps
    }
}

/// Counts what a run says.
#[derive(Default)]
struct Counter {
    counts: Counts,
    trace: Trace,
}

impl Observer for Counter {
    fn hear(&mut self, said: Said) {
        if let Said::Record(Record::End, words) = said {
            let word = |index: usize| words.get(index).copied().unwrap_or(0);
            (self.counts.switches, self.counts.accesses) = (word(SWITCHES), word(ACCESSES));
        }
    }

    fn entry(&mut self, entry: &Entry) {
        self.trace.entry(entry);
        self.counts.entries += 1;
    }

    fn moment(&mut self, _: Nanos, _: Nanos, what: Moment) {
        self.counts.stretches += u64::from(matches!(what, Moment::Runs(_)));
    }
}

/// A device whose steps are counted.
struct Counted(Box<dyn FunctionModel>, Rc<Cell<u64>>);

impl FunctionModel for Counted {
    fn read(&mut self, now: Nanos, offset: u64, bytes: u8) -> u64 {
        self.0.read(now, offset, bytes)
    }

    fn write(&mut self, now: Nanos, offset: u64, bytes: u8, value: u64, memory: &mut dyn Memory) {
        self.0.write(now, offset, bytes, value, memory);
    }

    fn next_change(&self) -> Nanos {
        self.0.next_change()
    }

    fn advance(&mut self, now: Nanos, memory: &mut dyn Memory) {
        self.1.set(self.1.get() + 1);
        self.0.advance(now, memory);
    }

    fn take_interrupts(&mut self, now: Nanos) -> Vec<u16> {
        self.0.take_interrupts(now)
    }

    fn settle(&mut self, end: Nanos) {
        self.0.settle(end);
    }

    fn power_cycle(&mut self, now: Nanos) {
        self.0.power_cycle(now);
    }

    fn take_notes(&mut self) -> Vec<Note> {
        self.0.take_notes()
    }

    fn stuck(&self) -> Option<String> {
        self.0.stuck()
    }
}

/// One run: what was counted, its trace, and the processor time it took.
fn run(session: &Session) -> Result<(Counts, u64, u64), Failure> {
    let steps = Rc::new(Cell::new(0));
    let counted = |(class, function)| -> (u32, Box<dyn FunctionModel>) {
        (class, Box::new(Counted(function, steps.clone())))
    };
    let functions = functions(&session.system, &[]).into_iter().map(counted).collect();
    let costs = Costs::at(session.system.clock_hz);
    let how = Options { costs, works: works(session, None), ..Options::default() };
    let mut counter = Counter::default();
    let begun = processor_time()?;
    diapason_sim::run(&session.archive, &how, functions, &mut counter)
        .map_err(|error| Failure::Ours(error.to_string()))?;
    let took = processor_time()? - begun;
    Ok((Counts { steps: steps.get(), ..counter.counts }, counter.trace.0, took))
}

/// Nanoseconds that this thread has used a processor.
fn processor_time() -> Result<u64, Failure> {
    const FILE: &str = "/proc/thread-self/schedstat";
    let text =
        std::fs::read_to_string(FILE).map_err(|error| Failure::io("read a clock", &error))?;
    let first = text.split_whitespace().next().and_then(|word| word.parse().ok());
    first.ok_or_else(|| Failure::World(format!("{FILE} does not begin with a number")))
}

/// Measures the systems, each for `horizon_ns` of its time, and keeps the fastest of `runs`.
pub fn command(workspace: &Workspace, horizon_ns: u64, runs: u64) -> Result<u8, Failure> {
    let built = metal::build(workspace)?;
    let heads = ["system", "rate", "entries", "switches", "stretches", "registers", "devices"];
    let mut columns: Vec<(&str, Align)> = heads.map(|head| (head, Align::Right)).into();
    columns.push(("ns of the host", Align::Right));
    columns[0].1 = Align::Left;
    let (mut table, mut differ) = (TextTable::new(&columns), false);
    for system in SYSTEMS {
        let session = session(workspace, &built, system, horizon_ns)?;
        let (counts, trace, mut least) = run(&session)?;
        for _ in 1..runs {
            let (_, other, took) = run(&session)?;
            least = least.min(took);
            differ |= other != trace;
        }
        table.row(row(system, &counts, least.max(1), horizon_ns));
    }
    println!("{}", table.render());
    println!(
        "rate: simulated time per processor time, the fastest of {runs}; counts: a simulated \
         second; ns: processor time for each of them"
    );
    if differ {
        println!("broken: two runs of one system left different traces");
    }
    Ok(if differ { BROKEN } else { HOLDS })
}

fn session(
    workspace: &Workspace,
    built: &Built,
    system: &str,
    horizon_ns: u64,
) -> Result<Session, Failure> {
    let described = describe(&workspace.root().join(system))?;
    let options = RunOptions { horizon_ns, record_bytes: 0, watch: false };
    Session::assemble(described, built.clone(), options)
}

fn row(system: &str, counts: &Counts, took: u64, horizon_ns: u64) -> Vec<String> {
    let tenths = horizon_ns * 10 / took;
    let each = took / counts.all().max(1);
    let a_second = |count: u64| {
        let product = u128::from(count) * 1_000_000_000;
        (product / u128::from(horizon_ns.max(1))).to_string()
    };
    let Counts { entries, stretches, switches, accesses, steps } = *counts;
    let mut cells = vec![system.to_owned(), format!("{}.{} x", tenths / 10, tenths % 10)];
    cells.extend([entries, switches, stretches, accesses, steps].map(a_second));
    cells.push(each.to_string());
    cells
}
