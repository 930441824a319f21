//! `[[state]]`: a state message, the newest value of one process for others to read.
//!
//! A message has a shared segment of its name, and its ends may use that: [`expand`] declares both
//! as if they had been written out. The number of slots follows from the theorem of
//! `docs/state-messages.md`: from how often the writer writes, and from the period of the virtual
//! CPU that each reader runs on. `lib/plan` proves what is assumed of those virtual CPUs.

mod fields;

pub use fields::{StateField, StateNumber};

use crate::declared::{Declared, DeclaredSegment, DeclaredState, DeclaredVcpu, Named};
use crate::diagnostics::{Problem, Report};
use crate::keys::{self, required};
use crate::limits::PAGE_BYTES;
use crate::names::{Names, duplicates};
use crate::source::At;
use crate::system::{Restart, ServerSpec};
use crate::table::{Raw, Table};
use diapason_abi::Nanos;
use diapason_state::depth::{ReaderTiming, WriterTiming, depth_any_schedule};

/// Shortest and longest time between two writes.
const PERIOD: std::ops::RangeInclusive<u64> = 1_000..=1_000_000_000_000;
/// Most slots, and most bytes of all of them.
const SLOTS_MAX: u64 = 1_000;
const SLOTS_MIN: u64 = 2;
const CELL_MAX: u64 = 1 << 20;
/// Most messages: a reader reports with the number of its message.
const STATES_MAX: usize = 64;
/// Bytes before the slots: two counts.
const COUNTS: u64 = 16;
/// A store on another core is seen so late at most.
const SEEN_LATE: u64 = 1_000;

pub(crate) fn state(raw: Raw<'_>, report: &mut Report) -> DeclaredState {
    let mut table = Table::new("[[state]]", "state message", raw, report);
    let name = keys::name(&mut table);
    let written = table.texts("fields", "fields = [\"time_ns: u64\", \"turns: u32\"]");
    table.needs("fields", "add `fields = [\"turns: u32\"]`: the fields of a value and their types");
    let writer = required(&mut table, "writer", "the `[[process]]` that writes it");
    let readers = table.texts("readers", "readers = [\"display\"]");
    table.needs("readers", "add `readers = [\"…\"]`: the processes that read it");
    let period = table.duration("period", PERIOD);
    let slots = table.number("slots", SLOTS_MIN..=SLOTS_MAX, "");
    table.report_unknown();
    let fields = fields::read(&name, &written, report);
    DeclaredState {
        name,
        fields,
        writer,
        readers,
        period,
        slots,
        number: 0,
        every_ns: None,
        needed: None,
        windows: Vec::new(),
    }
}

/// A state message of a description, and the number of slots that it has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateSpec {
    pub name: String,
    /// The number of the message on its host.
    pub number: u8,
    /// The fields of a value, without gaps.
    pub fields: Vec<StateField>,
    /// The name of the process that writes it.
    pub writer: String,
    pub readers: Vec<StateReading>,
    /// The shortest time between two writes, in ns.
    pub period_ns: u64,
    /// The number of slots: no read meets as many writes.
    pub slots: u64,
}

/// A reader of a state message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateReading {
    /// The name of the process.
    pub name: String,
    /// The number of the process, if it is on this core.
    pub process: Option<u16>,
    /// The longest time of a read that the slots are enough for, in ns.
    pub window_ns: u64,
}

impl StateSpec {
    /// Returns the name of the message as a word of Rust and C.
    #[must_use]
    pub fn word(&self) -> String {
        fields::word(&self.name)
    }

    /// Returns the bytes of a value.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        fields::bytes(&self.fields)
    }
}

impl DeclaredState {
    /// Returns the bytes of a value.
    fn bytes(&self) -> u64 {
        fields::bytes(&self.fields)
    }

    /// Returns the number of slots that it has.
    fn slots(&self) -> u64 {
        let said = self.slots.as_ref().map(|slots| slots.value);
        said.or(self.needed).map_or(SLOTS_MIN, |slots| slots.min(SLOTS_MAX))
    }

    /// Returns the bytes of the counts and all slots.
    fn cell(&self) -> u64 {
        COUNTS.saturating_add(self.slots().saturating_mul(self.bytes().next_multiple_of(8)))
    }

    /// Returns the names of its ends.
    fn ends(&self) -> impl Iterator<Item = &At<String>> {
        self.writer.iter().chain(&self.readers)
    }

    /// Returns whether an end of it is on this core.
    pub(crate) fn is_on(&self, declared: &Declared, core: u16) -> bool {
        self.ends().any(|end| core_of(declared, &end.value) == Some(core))
    }

    /// Returns the shortest time between two writes: that between two jobs if the writer's virtual
    /// CPU has a `job`, unless the description says another. A thread without jobs may write as
    /// often as something wakes it. A writer that is restarted writes again after its pause.
    fn every(&self, declared: &Declared) -> Option<u64> {
        let name = &self.writer.as_ref()?.value;
        let own = self.period.as_ref().map(|period| period.value);
        let every = own.or_else(|| job_distance(declared, name))?;
        let writer = &declared.processes[declared.process(name)?].whole;
        let restarted = writer.restart != Restart::Never;
        Some(if restarted { every.min(writer.backoff_ns) } else { every })
    }

    /// Returns the longest time of a read by the process of this name.
    fn window(&self, declared: &Declared, reader: &str) -> Option<u64> {
        let home = core_of(declared, &self.writer.as_ref()?.value)?;
        let late = if core_of(declared, reader)? == home { 0 } else { SEEN_LATE };
        Some(window(vcpu_period(declared, reader)?) + late)
    }

    /// Returns the number of slots that its readers need.
    fn needed(&self, declared: &Declared) -> Option<u64> {
        let period = Nanos(self.every(declared)?);
        let writer = WriterTiming::new(period, period);
        let reader = |name: &At<String>| {
            let longest = Nanos(self.window(declared, &name.value)?);
            Some(ReaderTiming::new(longest, Nanos(1), Nanos(1)))
        };
        let readers: Option<Vec<ReaderTiming>> = self.readers.iter().map(reader).collect();
        u64::try_from(depth_any_schedule(writer, &readers?)).ok()
    }
}

/// Returns the longest time of a read on a virtual CPU of this period that its thread has for
/// itself: what is missing of the budget comes back within a period, and is used within the next.
const fn window(period_ns: u64) -> u64 {
    2 * period_ns
}

fn core_of(declared: &Declared, process: &str) -> Option<u16> {
    Some(declared.processes[declared.process(process)?].core.value)
}

/// Returns the period of the Main VCPU that a process runs on.
fn vcpu_period(declared: &Declared, process: &str) -> Option<u64> {
    let ServerSpec::Main { period_ns, .. } = main_vcpu(declared, process)? else { return None };
    Some(*period_ns)
}

/// Returns the shortest time between two jobs of a process, if its Main VCPU has a `job`.
fn job_distance(declared: &Declared, process: &str) -> Option<u64> {
    match main_vcpu(declared, process)? {
        ServerSpec::Main { period_ns, job_ns: Some(_), interval_ns, .. } => {
            Some(interval_ns.unwrap_or(*period_ns))
        }
        _ => None,
    }
}

/// Returns the Main VCPU that a process runs on.
fn main_vcpu<'a>(declared: &'a Declared, process: &str) -> Option<&'a ServerSpec> {
    let name = declared.processes[declared.process(process)?].vcpu.as_ref()?;
    let vcpu = declared.vcpus.iter().find(|vcpu| vcpu.name.value == name.value)?;
    match &vcpu.what {
        DeclaredVcpu::Main { server, .. } => Some(server),
        _ => None,
    }
}

/// Declares the segments, that both ends use them, and how many slots there are.
pub(crate) fn expand(declared: &mut Declared) {
    for index in 0..declared.states.len() {
        let state = &declared.states[index];
        let (every, needed) = (state.every(declared), state.needed(declared));
        let windows = state.readers.iter().map(|name| state.window(declared, &name.value));
        let windows = windows.map(Option::unwrap_or_default).collect();
        let state = &mut declared.states[index];
        state.number = u8::try_from(index).unwrap_or(u8::MAX);
        (state.every_ns, state.needed, state.windows) = (every, needed, windows);
        let size = state.cell().min(CELL_MAX).next_multiple_of(PAGE_BYTES);
        let what = DeclaredSegment { size, dma: false, common: false };
        let name = state.name.clone();
        let ends: Vec<String> = state.ends().map(|end| end.value.clone()).collect();
        for end in ends {
            let Some(end) = declared.process(&end) else { continue };
            let uses = &mut declared.processes[end].uses;
            if !uses.iter().any(|used| used.value == name.value) {
                uses.push(name.clone());
            }
        }
        declared.segments.push(Named { name, what });
    }
}

pub(crate) fn check(declared: &Declared, names: &Names<'_>, report: &mut Report) {
    if let Some(extra) = declared.states.get(STATES_MAX) {
        let title = format!("{} state messages, the most is {STATES_MAX}", declared.states.len());
        let help = "merge some: a value has up to 64 fields";
        report.push(Problem::new(&extra.name.span, title, help).label("the first too many"));
    }
    for (index, state) in declared.states.iter().enumerate() {
        fields::same_word(&declared.states[..index], state, report);
        duplicates("readers", &state.readers, report);
        let mut known = true;
        for end in state.ends() {
            known &= names.is_process(end, report);
        }
        strangers(declared, state, report);
        reads_itself(state, report);
        if known && rates(declared, state, report) {
            large_enough(state, report);
        }
    }
}

/// Reports processes that use the segment of a state message and are no end of it.
fn strangers(declared: &Declared, state: &DeclaredState, report: &mut Report) {
    let name = &state.name.value;
    for process in &declared.processes {
        let is_end = state.ends().any(|end| end.value == process.name.value);
        let used = process.uses.iter().find(|used| used.value == *name);
        if let Some(used) = used.filter(|_| !is_end) {
            let of = &process.name.value;
            let title = format!("`{of}` uses `{name}`, and is no reader of it");
            let help = format!("add `{of}` to its `readers`, and leave `{name}` out of `uses`");
            let problem = Problem::new(&used.span, title, help);
            report.push(problem.with(&state.name.span, "the state message"));
        }
    }
}

fn reads_itself(state: &DeclaredState, report: &mut Report) {
    let Some(writer) = &state.writer else { return };
    if let Some(reader) = state.readers.iter().find(|reader| reader.value == writer.value) {
        let title = format!("`{}` writes `{}`, and would read it", writer.value, state.name.value);
        let problem = Problem::new(&reader.span, title, "leave it out of `readers`");
        report.push(problem.with(&writer.span, "the writer"));
    }
}

/// Reports what bounds neither the writes nor a read. Returns whether both are bounded.
fn rates(declared: &Declared, state: &DeclaredState, report: &mut Report) -> bool {
    let mut bounded = true;
    if let Some(writer) = state.writer.as_ref().filter(|_| state.every_ns.is_none()) {
        let title = format!("nothing says how often `{}` is written", state.name.value);
        let help = format!(
            "add `period = \"10ms\"`, the shortest time between two writes; or give `{}` a \
             `vcpu` with a `job` that writes once: then the time between two jobs counts",
            writer.value
        );
        report.push(Problem::new(&writer.span, title, help));
        bounded = false;
    }
    for reader in &state.readers {
        let Some(process) = declared.process(&reader.value) else { continue };
        let vcpu = declared.processes[process].vcpu.as_ref();
        let at = |vcpu: &At<String>| declared.vcpus.iter().find(|it| it.name.value == vcpu.value);
        // An unknown VCPU, or one with mistakes, has been reported.
        let what = match vcpu.map(at) {
            None => "it has no VCPU",
            Some(Some(Named { what: DeclaredVcpu::Io { .. }, .. })) => "its VCPU is for I/O",
            Some(_) => {
                bounded &= vcpu_period(declared, &reader.value).is_some();
                continue;
            }
        };
        let (of, name) = (&reader.value, &state.name.value);
        let title = format!("nothing bounds how long `{of}` takes for a read of `{name}`: {what}");
        let help = format!("give `{of}` a Main VCPU: `vcpu = \"…\"` in its `[[process]]`");
        report.push(Problem::new(&reader.span, title, help));
        bounded = false;
    }
    bounded
}

/// Reports a state message with too few slots, or that would need too many.
fn large_enough(state: &DeclaredState, report: &mut Report) {
    let (Some(needed), Some(every)) = (state.needed, state.every_ns.map(Nanos)) else { return };
    let name = &state.name.value;
    if let Some(slots) = state.slots.as_ref().filter(|slots| slots.value < needed) {
        let title = format!("`{name}` needs {needed} slots, and has {}", slots.value);
        let help = format!("write `slots = {needed}`, or leave it out");
        let note = format!(
            "it may be written every {every}, and so {} times while somebody reads it",
            needed - 1
        );
        report.push(Problem::new(&slots.span, title, help).note(note));
    } else if needed > SLOTS_MAX || state.cell() > CELL_MAX {
        let title = format!("`{name}` would need {needed} slots of {} bytes", state.bytes());
        let help = format!(
            "write it less often (`period`), give its readers VCPUs with shorter periods, or \
             make a value smaller: {SLOTS_MAX} slots and {CELL_MAX} bytes are the most"
        );
        report.push(Problem::new(&state.name.span, title, help));
    }
}

/// Returns the state messages of a core, as far as they are whole.
pub(crate) fn states(declared: &Declared) -> Vec<StateSpec> {
    let spec = |state: &DeclaredState| {
        let reading = |(name, window): (&At<String>, &u64)| StateReading {
            name: name.value.clone(),
            process: declared.process(&name.value).and_then(|place| u16::try_from(place).ok()),
            window_ns: *window,
        };
        Some(StateSpec {
            name: state.name.value.clone(),
            number: state.number,
            fields: state.fields.clone(),
            writer: state.writer.as_ref()?.value.clone(),
            readers: state.readers.iter().zip(&state.windows).map(reading).collect(),
            period_ns: state.every_ns?,
            slots: state.slots(),
        })
    };
    declared.states.iter().filter_map(spec).collect()
}
