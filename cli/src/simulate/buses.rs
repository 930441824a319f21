//! CAN buses without a host: `diapason sim` of a description that has messages and no process.
//!
//! Each node is a unit with a clock of its own. Under MTS the units keep the common time and renew
//! identifiers with the epochs of the plan. Each message is judged by its bound.

use super::{SimRequest, faults};
use crate::can_server::CanServer;
use crate::capture::Captures;
use crate::commands::Length;
use crate::duration::human;
use crate::failure::{BROKEN, Failure, HOLDS, UNPROVED};
use crate::formats::RunFormat;
use crate::interrupt;
use crate::outcome::FORMAT;
use crate::output::{say, tell};
use crate::plan::{Plan, Verdict};
use crate::session::{unmeasured_beside_clients, unmeasured_if_interrupted};
use crate::simulate::progress::Progress;
use crate::surroundings::bus_mishap;
use crate::surroundings::nodes::{nodes, trouble, troubled};
use crate::table::{Columns, time};
use crate::words::stamped;
use diapason_abi::Nanos;
use diapason_can::BitRate;
use diapason_can::frame::standard;
use diapason_contract::toucan::MessageId;
use diapason_devices::can::{CanBus, MessageBooks, TimedTerms};
use diapason_plan::can::{CanOutcome, CanPlan};
use diapason_random::Random;
use diapason_system::{CanNetwork, CanScheduler, InjectedFault, System};
use serde_json::{Value, json};

/// Frames are written to captures so often.
const DISTANCE: Nanos = Nanos::from_millis(100);

/// A message in a run.
struct MessageRow {
    message: String,
    sender: String,
    books: MessageBooks,
    bound: Option<Nanos>,
}

/// A bus in a run.
struct BusRow {
    bus: String,
    messages: Vec<MessageRow>,
    /// Frames that were destroyed, and how many were more than the description says.
    destroyed: usize,
    beyond: u64,
}

/// A bus with the nodes on it: their names, and the places of their messages.
struct Running<'a> {
    network: &'a CanNetwork,
    plan: &'a CanPlan,
    bus: CanBus,
    nodes: Vec<(&'a str, Vec<usize>)>,
}

/// Simulates the buses of a system without processes, and reports on their messages.
pub(super) fn simulate(request: &SimRequest, system: &System, plan: &Plan) -> Result<u8, Failure> {
    refuse(request, system)?;
    let asked = faults::asked(system, &request.fault)?;
    let mut faults = [&system.faults, &asked[..]].concat();
    faults.sort_by_key(|fault| fault.at_ns);
    happens(system, &faults)?;
    let of_seed = |seed: Option<u64>| -> Result<BusRun<'_>, Failure> {
        let rows = run(request, system, plan, seed, &faults)?;
        Ok(BusRun::of((system, plan), request, &faults, rows))
    };
    interrupt::await_signals()?;
    let Some(count) = request.search else {
        return Ok(of_seed(request.seed)?.report(request));
    };
    let from = request.seed.unwrap_or(0);
    for seed in from..from.saturating_add(count) {
        let run = of_seed(Some(seed))?;
        if !(run.findings.is_empty() && run.unmeasured.is_empty()) {
            tell(&format!("seed {seed}:"));
            return Ok(run.report(request));
        }
    }
    say(&format!("{count} seeds, no promise broken"));
    Ok(if plan.verdict() == Verdict::Holds { HOLDS } else { UNPROVED })
}

/// Checks that each fault happens to a bus or to a node that is simulated.
fn happens(system: &System, faults: &[InjectedFault]) -> Result<(), Failure> {
    let is_of_bus = |fault: &InjectedFault| {
        system.disturbed_bus(fault).is_some() && bus_mishap(fault).is_some()
    };
    let is_here = |fault: &InjectedFault| troubled(system, fault).is_some() || is_of_bus(fault);
    let Some(other) = faults.iter().find(|fault| !is_here(fault)) else { return Ok(()) };
    Err(Failure::Input(format!(
        "error: `{}` happens to a host, and `{}` has no process\n\
         help: name a bus or a node: `can-errors`, `babble`, `node-reset`, `node-deaf`",
        system.fault_words(other),
        system.name
    )))
}

/// Checks that nothing is asked that only programs have.
fn refuse(request: &SimRequest, system: &System) -> Result<(), Failure> {
    let of_programs = [
        (request.explain.is_some(), "--explain"),
        (request.stages, "--stages"),
        (request.histogram, "--histogram"),
        (request.svg.is_some(), "--svg"),
        (request.gdb.is_some(), "--gdb"),
        (request.trace.is_some(), "--trace"),
        (request.traces, "--traces"),
        (request.strict, "--strict"),
        (request.witness, "--witness"),
        (request.clock_hz.is_some(), "--clock"),
        (request.format == Some(RunFormat::Junit), "--format junit"),
    ];
    if let Some((_, option)) = of_programs.iter().find(|(given, _)| *given) {
        let name = &system.name;
        return Err(Failure::Input(format!(
            "error: `{option}` is about programs, and `{name}` has no process\n\
             help: leave it out"
        )));
    }
    if request.faults {
        return Err(Failure::Input(String::from(
            "error: `--faults` draws nothing on a bus without a host\n\
             help: name what happens: `--fault \"1s node-reset NODE 30ms\"`, or another of \
             docs/description.md",
        )));
    }
    Ok(())
}

/// Runs all buses up to the horizon, or until a signal comes.
fn run(
    request: &SimRequest,
    system: &System,
    plan: &Plan,
    seed: Option<u64>,
    faults: &[InjectedFault],
) -> Result<Vec<BusRow>, Failure> {
    let mut random = seed.map(|seed| Random::stream(seed, 3));
    let mut running = Vec::new();
    for (number, (network, plan)) in system.cans.iter().zip(&plan.cans).enumerate() {
        let it = prepared((network, plan), (system, faults), random.as_mut(), seed)?;
        for fault in faults.iter().filter(|fault| system.disturbed_bus(fault) == Some(number)) {
            let mishap = bus_mishap(fault).map(|(mishap, _)| mishap);
            mishap.into_iter().for_each(|mishap| it.bus.suffer(Nanos(fault.at_ns), mishap));
        }
        running.push(it);
    }
    let buses: Vec<(usize, CanBus)> = running.iter().map(|it| it.bus.clone()).enumerate().collect();
    let server = request.captures.can_server.map(CanServer::open).transpose()?;
    server.into_iter().for_each(|server| server.serve(&buses));
    let captured = request.captures.is_some() && request.search.is_none();
    let begin = || Captures::begin(&request.captures, 0, &buses, &[]);
    let mut captures = captured.then(begin).transpose()?;
    let Length { horizon_ns, .. } = request.length;
    let mut progress = Progress::new(horizon_ns, request.json || request.search.is_some());
    let mut now = Nanos::ZERO;
    while now.0 < horizon_ns && !interrupt::came() {
        now = (now + DISTANCE).min(Nanos(horizon_ns));
        buses.iter().for_each(|(_, bus)| bus.advance(now));
        captures.iter_mut().for_each(|captures| captures.frames(now));
        progress.at(now.0, |seconds| format!("{:.1} x real time", now.0 as f64 / 1e9 / seconds));
    }
    captures.map_or(Ok(()), Captures::finish)?;
    Ok(running.iter().map(|it| it.row(now)).collect())
}

/// Returns a bus with its nodes.
fn prepared<'a>(
    (network, plan): (&'a CanNetwork, &'a CanPlan),
    (system, faults): (&System, &[InjectedFault]),
    random: Option<&mut Random>,
    seed: Option<u64>,
) -> Result<Running<'a>, Failure> {
    let rate = BitRate::new(network.rate);
    let rate = rate.map_err(|_| refused(network, "no controller has its bit rate"))?;
    let data = BitRate::of_data(network.data_rate).ok();
    let with_fd = network.messages.iter().any(|message| message.fd);
    let bus = match data.filter(|_| with_fd) {
        Some(data) => CanBus::with_data_rate(rate, data),
        None => CanBus::new(rate),
    };
    let terms = (network.scheduler == CanScheduler::Mts).then(|| terms(network, plan));
    let terms = terms.transpose()?;
    let mut all = nodes(network, terms.as_ref(), random);
    trouble(&mut all, system, faults);
    let (names, units) =
        all.into_iter().map(|node| ((node.name, node.messages), node.unit)).unzip();
    bus.add_timed(terms, units, seed.unwrap_or(0));
    Ok(Running { network, plan, bus: bus.acknowledged(), nodes: names })
}

fn refused(network: &CanNetwork, why: &str) -> Failure {
    let name = &network.name;
    Failure::Input(format!(
        "error: the nodes of `{name}` cannot be simulated: {why}\n\
         help: see what `diapason plan` says of `{name}`"
    ))
}

/// Returns the terms that all nodes of a bus under MTS keep, as the plan has them.
fn terms(network: &CanNetwork, plan: &CanPlan) -> Result<TimedTerms, Failure> {
    let refused = |why: &str| refused(network, why);
    let epochs = plan.epochs.as_ref().ok_or_else(|| refused("no epochs can be made"))?;
    let clocks = plan.clocks.as_ref().ok_or_else(|| refused("nothing says how its clocks go"))?;
    let time = network.time.map(|time| {
        let terms = clocks.time.ok_or_else(|| refused("no common time follows"))?;
        let id = match network.names()[time.message] {
            Some(MessageId::Fixed(id, false)) => standard(id).ok(),
            _ => None,
        };
        id.map(|id| (terms, id)).ok_or_else(|| refused("the time has no identifier"))
    });
    Ok(TimedTerms {
        time: time.transpose()?,
        epochs: epochs.epochs,
        clocks: clocks.counted,
        renewing: epochs.renewing,
    })
}

impl Running<'_> {
    fn row(&self, now: Nanos) -> BusRow {
        let bus = self.network.name.clone();
        let all = self.nodes.iter().zip(self.bus.books(now));
        let messages = all.flat_map(|((name, places), books)| {
            places.iter().zip(books).map(move |(place, books)| {
                let message = &self.network.messages[*place];
                let bound = match &self.plan.messages[*place].outcome {
                    CanOutcome::Response(bound) => Some(*bound),
                    CanOutcome::NotDue => None,
                    _ => message.deadline_ns.map(Nanos),
                };
                let (message, sender) = (message.name.clone(), (*name).to_owned());
                MessageRow { message, sender, books, bound }
            })
        });
        let destroyed = self.bus.destroyed();
        let beyond = self.network.errors.beyond(&destroyed);
        BusRow { bus, messages: messages.collect(), destroyed: destroyed.len(), beyond }
    }
}

impl BusRow {
    /// Returns the promises that the run broke, as sentences.
    fn findings(&self) -> Vec<String> {
        let BusRow { bus, beyond, .. } = self;
        let errors = format!(
            "{beyond} frames on `{bus}` were destroyed that `error_interval` and `error_burst` do \
             not say"
        );
        let errors = (*beyond > 0).then_some(errors);
        errors.into_iter().chain(self.messages.iter().flat_map(MessageRow::findings)).collect()
    }

    fn render(&self) -> String {
        let head = match self.destroyed {
            0 => format!("CAN bus `{}`\n", self.bus),
            count => format!("CAN bus `{}`, on which {count} frames were destroyed\n", self.bus),
        };
        head + &MessageRow::columns().table(&self.messages).render()
    }

    fn to_json(&self) -> Value {
        let messages = MessageRow::columns().objects(&self.messages);
        json!({ "bus": self.bus, "destroyed": self.destroyed, "messages": messages })
    }
}

impl MessageRow {
    fn findings(&self) -> Vec<String> {
        let MessageRow { message, sender, books, bound, .. } = self;
        let mut findings = Vec::new();
        let is_longer = books.longest.zip(*bound).filter(|(longest, bound)| longest > bound);
        if let Some((longest, bound)) = is_longer {
            let [longest, bound] = [longest, bound].map(|time| human(time.0));
            findings.push(format!("`{message}` took {longest}, and {bound} is stated"));
        }
        if books.late > 0 {
            let (late, came) = (books.late, books.came);
            findings.push(format!("{late} of {came} messages `{message}` were late"));
        }
        if books.lost > 0 {
            let (lost, came) = (books.lost, books.came);
            findings.push(format!(
                "{lost} of {came} messages `{message}` were never sent: `{sender}` did not know \
                 the time, was switched off, or had no room in its queue"
            ));
        }
        findings
    }

    /// Returns whether a message that is due was never through.
    fn is_unmeasured(&self) -> bool {
        self.bound.is_some() && self.books.sent == 0
    }

    fn columns<'a>() -> Columns<'a, MessageRow> {
        let ns = |at: Option<Nanos>| at.map(|it| time(it.0));
        Columns::default()
            .left(("message", "message"), |row: &MessageRow| row.message.clone())
            .left(("from", "from"), |row: &MessageRow| row.sender.clone())
            .right(("came", "came"), |row: &MessageRow| row.books.came)
            .right(("sent", "sent"), |row: &MessageRow| row.books.sent)
            .right(("early", "early"), |row: &MessageRow| row.books.early)
            .right(("lost", "lost"), |row: &MessageRow| row.books.lost)
            .right(("waiting", "waiting"), |row: &MessageRow| row.books.waiting)
            .right(("late", "late"), |row: &MessageRow| row.books.late)
            .right(("longest", "longest_ns"), move |row: &MessageRow| ns(row.books.longest))
            .right(("stated", "bound_ns"), move |row: &MessageRow| ns(row.bound))
    }
}

/// The result of a run: what it showed, broke and did not measure.
struct BusRun<'a> {
    name: &'a str,
    rows: Vec<BusRow>,
    findings: Vec<String>,
    unmeasured: Vec<String>,
    proved: bool,
    /// The faults that came, with their times in nanoseconds.
    injected: Vec<(u64, String)>,
}

impl BusRun<'_> {
    fn of<'a>(
        (system, plan): (&'a System, &Plan),
        request: &SimRequest,
        faults: &[InjectedFault],
        rows: Vec<BusRow>,
    ) -> BusRun<'a> {
        let silent = rows.iter().flat_map(|row| &row.messages).filter(|row| row.is_unmeasured());
        let silent = silent.map(|row| format!("no message `{}` was through", row.message));
        let clients = unmeasured_beside_clients(&request.captures);
        let unmeasured = unmeasured_if_interrupted().into_iter().chain(clients).chain(silent);
        let came = faults.iter().filter(|fault| fault.at_ns < request.length.horizon_ns);
        BusRun {
            name: &system.name,
            findings: rows.iter().flat_map(BusRow::findings).collect(),
            unmeasured: unmeasured.collect(),
            proved: plan.verdict() == Verdict::Holds,
            injected: came.map(|fault| (fault.at_ns, system.fault_words(fault))).collect(),
            rows,
        }
    }

    fn code(&self) -> u8 {
        match (self.findings.is_empty(), self.proved && self.unmeasured.is_empty()) {
            (false, _) => BROKEN,
            (true, true) => HOLDS,
            (true, false) => UNPROVED,
        }
    }

    fn to_json(&self) -> Value {
        let injected = self.injected.iter();
        let injected = injected.map(|(time, what)| json!({ "time_ns": time, "what": what }));
        json!({
            "format": FORMAT, "result": "run", "system": self.name,
            "holds": self.code() == HOLDS,
            "proved": self.proved, "findings": self.findings, "unmeasured": self.unmeasured,
            "injected": injected.collect::<Value>(),
            "can_buses": self.rows.iter().map(BusRow::to_json).collect::<Value>(),
        })
    }

    fn tell(&self) {
        let injected = self.injected.iter();
        injected.for_each(|(at, text)| say(&stamped(Some(*at), &format!("fault: {text}"))));
        self.rows.iter().for_each(|row| say(&format!("\n{}", row.render())));
        self.findings.iter().for_each(|finding| say(&format!("broken: {finding}")));
        self.unmeasured.iter().for_each(|what| say(&format!("not measured: {what}")));
        let verdict = match self.code() {
            BROKEN => "does not hold",
            HOLDS => "holds",
            _ if !self.proved => "unproved; nothing was broken",
            _ if interrupt::came() => "interrupted; nothing was broken until then",
            _ => "nothing was broken, and not everything was measured",
        };
        say(&format!("{}: {verdict}", self.name));
    }

    /// Says how the run went, and returns the exit code.
    fn report(&self, request: &SimRequest) -> u8 {
        match request.json {
            true => say(&format!("{:#}", self.to_json())),
            false => self.tell(),
        }
        self.code()
    }
}

/// Returns the books of a bus on which nothing happened yet.
#[cfg(test)]
pub(super) fn of_nothing() -> Value {
    let text = include_str!("../../../examples/can-mts.toml");
    let system = diapason_system::parse("f", text).unwrap();
    let plan = Plan::of(&system);
    let running = prepared((&system.cans[0], &plan.cans[0]), (&system, &[]), None, None).unwrap();
    let (name, rows) = (system.name.as_str(), vec![running.row(Nanos::ZERO)]);
    let (findings, unmeasured, injected) = (Vec::new(), Vec::new(), Vec::new());
    BusRun { name, rows, findings, unmeasured, proved: true, injected }.to_json()
}
