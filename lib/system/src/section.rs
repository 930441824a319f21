//! `[[section]]`: how long a process holds a mutex that others share with it.
//!
//! A plan needs it of every process that may hold such a mutex. A thread that waits for the mutex
//! runs its holder on its own budget, so the holder's sections are part of the waiter's bound.

use crate::declared::{Declared, DeclaredSection};
use crate::diagnostics::{Problem, Report};
use crate::names::{Kind, Names};
use crate::source::At;
use crate::system::{CriticalSection, SemaphoreKind};
use crate::table::{Raw, Table};

/// Longest section: 1000 s.
const LONGEST_MAX: u64 = 1_000_000_000_000;
/// Most times that a job runs a section.
const TIMES_MAX: u64 = 1_000;

pub(crate) fn section(raw: Raw<'_>, report: &mut Report) -> DeclaredSection {
    let mut table = Table::new("[[section]]", "section", raw, report);
    let place = table.place();
    let process = table.text("process", "process = \"control\"");
    table.needs("process", "add `process = \"…\"`: the `[[process]]` that locks the mutex");
    let mutex = table.text("mutex", "mutex = \"injector\"");
    table.needs("mutex", "add `mutex = \"…\"`: the `[[semaphore]]` that it locks");
    let longest = table.duration("longest", 1..=LONGEST_MAX);
    let help = "add `longest = \"50us\"`: its longest execution time from lock to unlock";
    table.needs("longest", help);
    let times = table.number("times", 1..=TIMES_MAX, ", how often a job runs it");
    let inside = table.text("inside", "inside = \"valves\"");
    table.report_unknown();
    let times = times.and_then(|times| u32::try_from(times.value).ok()).unwrap_or(1);
    DeclaredSection { place, process, mutex, longest, times, inside }
}

pub(crate) fn check(declared: &Declared, names: &Names<'_>, report: &mut Report) {
    for (index, section) in declared.sections.iter().enumerate() {
        let known = section.process.as_ref().is_some_and(|name| names.is_process(name, report));
        if let Some(mutex) = &section.mutex
            && is_mutex(declared, mutex, names, report)
            && known
        {
            granted(declared, section, mutex, report);
        }
        once(&declared.sections[..index], section, report);
        nested(declared, section, report);
    }
    if report.is_empty() {
        without_cycle(declared, report);
    }
}

fn mutex_of(declared: &Declared, name: &str) -> Option<usize> {
    let is = |kind: &SemaphoreKind| matches!(kind, SemaphoreKind::Mutex);
    declared.semaphores.iter().position(|named| named.name.value == name && is(&named.what))
}

/// Reports `name` unless it is that of a mutex.
fn is_mutex(
    declared: &Declared,
    name: &At<String>,
    names: &Names<'_>,
    report: &mut Report,
) -> bool {
    if mutex_of(declared, &name.value).is_some() {
        return true;
    }
    let At { value, span } = name;
    let (title, help) = match names.get(value).map(|meaning| meaning.kind) {
        Some(Kind::Semaphore) => (
            format!("`{value}` is a counting semaphore, which has no holder"),
            "name a mutex: a `[[semaphore]]` without `kind = \"counting\"`".to_owned(),
        ),
        Some(kind) => (
            format!("`{value}` is a {kind}, not a mutex"),
            "name a `[[semaphore]]` here".to_owned(),
        ),
        None => {
            let title = format!("no mutex named `{value}` is declared");
            let help = match names.nearest(value, |kind| kind == Kind::Semaphore) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("declare it: `[[semaphore]]` with `name = \"{value}\"`"),
            };
            (title, help)
        }
    };
    report.push(Problem::new(span, title, help));
    false
}

/// Reports a section of a process that may not use the mutex.
fn granted(
    declared: &Declared,
    section: &DeclaredSection,
    mutex: &At<String>,
    report: &mut Report,
) {
    let Some(name) = &section.process else { return };
    let mut processes = declared.processes.iter();
    let process = processes.find(|process| process.name.value == name.value);
    let uses = |used: &At<String>| used.value == mutex.value;
    if process.is_some_and(|process| !process.uses.iter().any(uses)) {
        let title = format!("`{}` may not lock `{}`", name.value, mutex.value);
        let help = format!("add `{}` to `uses` of `{}`", mutex.value, name.value);
        report.push(Problem::new(&mutex.span, title, help));
    }
}

/// Returns whether two sections are of the same process.
fn is_of_same(one: &DeclaredSection, other: &DeclaredSection) -> bool {
    matches!((&one.process, &other.process), (Some(one), Some(other)) if one.value == other.value)
}

/// Reports a second section of a process with the same mutex.
fn once(before: &[DeclaredSection], section: &DeclaredSection, report: &mut Report) {
    let Some(mutex) = &section.mutex else { return };
    let is_first = |other: &&DeclaredSection| {
        is_of_same(other, section)
            && other.mutex.as_ref().is_some_and(|name| name.value == mutex.value)
    };
    let Some(first) = before.iter().find(is_first) else { return };
    let name = section.process.as_ref().map_or("", |name| name.value.as_str());
    let title = format!("`{name}` declares its section with `{}` twice", mutex.value);
    let help = "declare the longest of both, and add up `times`";
    report.push(Problem::new(&section.place, title, help).with(&first.place, "first here"));
}

/// Returns the section of the same process in which a section lies.
fn outer<'d>(
    declared: &'d Declared,
    section: &DeclaredSection,
) -> Option<(usize, &'d DeclaredSection)> {
    let name = section.inside.as_ref()?;
    let is_outer = |(_, other): &(usize, &DeclaredSection)| {
        is_of_same(other, section)
            && other.mutex.as_ref().is_some_and(|mutex| mutex.value == name.value)
    };
    declared.sections.iter().enumerate().find(is_outer)
}

/// Reports a section that lies in none, or in one that is shorter.
fn nested(declared: &Declared, section: &DeclaredSection, report: &mut Report) {
    let Some(inside) = &section.inside else { return };
    let process = section.process.as_ref().map_or("", |name| name.value.as_str());
    let Some((_, outer)) = outer(declared, section) else {
        let title = format!("`{process}` has no section with `{}`", inside.value);
        let help = format!(
            "declare it: `[[section]]` with `process = \"{process}\"` and `mutex = \"{}\"`",
            inside.value
        );
        report.push(Problem::new(&inside.span, title, help));
        return;
    };
    if let (Some(longest), Some(room)) = (&section.longest, &outer.longest)
        && longest.value.saturating_mul(section.times.into()) > room.value
    {
        let title = format!("a section inside `{}` is longer than that one", inside.value);
        let help = "make `longest` of the outer one at least `times` that of the inner one";
        let problem = Problem::new(&longest.span, title, help);
        report.push(problem.with(&room.span, "the outer one"));
    }
}

/// Reports sections that lie in each other, and an order of mutexes that can end in a deadlock.
fn without_cycle(declared: &Declared, report: &mut Report) {
    let sections = &declared.sections;
    // One mutex is taken inside another, by whichever process.
    let taken = |mutex: &str| {
        let is_inside = |section: &&DeclaredSection| {
            section.inside.as_ref().is_some_and(|outer| outer.value == mutex)
        };
        let inner = sections.iter().filter(is_inside);
        inner.filter_map(|section| section.mutex.as_ref()).collect::<Vec<_>>()
    };
    for section in sections.iter().filter(|section| section.inside.is_some()) {
        let Some(first) = &section.mutex else { continue };
        let (mut reached, mut next) = (Vec::<&str>::new(), vec![first.value.as_str()]);
        while let Some(mutex) = next.pop() {
            let inner = taken(mutex).into_iter().map(|name| name.value.as_str());
            let new: Vec<&str> = inner.filter(|name| !reached.contains(name)).collect();
            reached.extend(&new);
            next.extend(new);
        }
        if reached.contains(&first.value.as_str()) {
            let title = format!("sections with `{}` may wait for each other", first.value);
            let help = "lock mutexes in one order everywhere: a thread that holds one may wait \
             for later ones only";
            return report.push(Problem::new(&first.span, title, help));
        }
    }
}

/// Returns the sections, as far as they are whole. An outer section comes before those inside it.
pub(crate) fn sections(declared: &Declared) -> Vec<CriticalSection> {
    let mut order: Vec<usize> = Vec::new();
    for _ in &declared.sections {
        let ready = (0..declared.sections.len()).filter(|index| {
            let outer = outer(declared, &declared.sections[*index]);
            !order.contains(index) && outer.is_none_or(|(at, _)| order.contains(&at))
        });
        let ready: Vec<usize> = ready.collect();
        order.extend(ready);
    }
    let whole = |index: &usize| {
        let section = &declared.sections[*index];
        let name = &section.process.as_ref()?.value;
        let process = declared.process(name)?;
        let outer = outer(declared, section);
        Some(CriticalSection {
            process: u16::try_from(process).ok()?,
            mutex: u16::try_from(mutex_of(declared, &section.mutex.as_ref()?.value)?).ok()?,
            longest_ns: section.longest.as_ref()?.value,
            times: section.times,
            inside: outer.and_then(|(at, _)| order.iter().position(|place| *place == at)),
        })
    };
    order.iter().filter_map(whole).collect()
}
