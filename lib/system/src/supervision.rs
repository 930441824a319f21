//! The receivers of fault reports: a forest of processes whose roots nobody supervises.

use crate::declared::{Declared, DeclaredProcess, Supervision};
use crate::diagnostics::{Problem, Report};
use crate::names::{NOBODY, Names, SUPERVISOR};
use crate::source::{At, Span};
use crate::system::Restart;

/// Returns the supervisor of `process`, which is number `index`.
pub(crate) fn of(process: &DeclaredProcess, index: usize, names: &Names<'_>) -> Option<usize> {
    match &process.supervisor {
        Supervision::Nobody(_) => None,
        Supervision::Default => names.process(SUPERVISOR).filter(|found| *found != index),
        Supervision::By(name) => names.process(&name.value),
    }
}

pub(crate) fn check(declared: &Declared, names: &Names<'_>, report: &mut Report) {
    for (index, process) in declared.processes.iter().enumerate() {
        match &process.supervisor {
            Supervision::By(name) => named(process, name, names, report),
            _ if is_restartable(process) && of(process, index, names).is_none() => {
                report.push(unsupervised(process));
            }
            _ => {}
        }
    }
    cycles(declared, names, report);
}

fn named(process: &DeclaredProcess, name: &At<String>, names: &Names<'_>, report: &mut Report) {
    if name.value == process.name.value {
        let title = format!("`{}` cannot supervise itself", name.value);
        let help = format!("name another process, or write `supervisor = \"{NOBODY}\"`");
        report.push(Problem::new(&name.span, title, help));
        return;
    }
    names.is_process(name, report);
}

/// `process` may be restarted, but nobody is there to do it.
fn unsupervised(process: &DeclaredProcess) -> Problem {
    let name = &process.name.value;
    let title = format!("`{name}` may be restarted, but has no supervisor to do it");
    match &process.supervisor {
        Supervision::Nobody(span) => {
            let help = "name a supervisor, or write `restart = \"never\"`";
            Problem::new(&process.restart, title, help).with(span, "nobody supervises it")
        }
        _ if name == SUPERVISOR => {
            let help = "remove `restart`, or name another process as its `supervisor`";
            Problem::new(&process.restart, title, help)
        }
        _ => {
            let help = format!(
                "add `[[process]] name=\"{SUPERVISOR}\" program=\"{SUPERVISOR}\" priority=63`"
            );
            Problem::new(&process.restart, title, help)
        }
    }
}

/// Reports each cycle of processes supervising each other once, at its first explicit link.
fn cycles(declared: &Declared, names: &Names<'_>, report: &mut Report) {
    let processes = &declared.processes;
    let next = |index: usize| of(&processes[index], index, names);
    // Every process is walked over once; `seen` says in which walk.
    let mut seen: Vec<Option<usize>> = vec![None; processes.len()];
    for start in 0..processes.len() {
        let mut at = Some(start);
        while let Some(index) = at.filter(|index| seen[*index].is_none()) {
            seen[index] = Some(start);
            at = next(index);
        }
        // A walk that meets its own steps has found a cycle; of one, `named` has spoken.
        if let Some(first) = at.filter(|index| seen[*index] == Some(start)) {
            let members = cycle(first, next);
            if members.len() > 1 {
                report.push(cycle_problem(processes, &members));
            }
        }
    }
}

/// Returns the cycle through `first`.
fn cycle(first: usize, next: impl Fn(usize) -> Option<usize>) -> Vec<usize> {
    let mut members = vec![first];
    let mut at = next(first);
    while let Some(index) = at.filter(|index| *index != first) {
        members.push(index);
        at = next(index);
    }
    members
}

fn cycle_problem(processes: &[DeclaredProcess], members: &[usize]) -> Problem {
    let called = |index: &usize| format!("`{}`", processes[*index].name.value);
    let chain: Vec<String> = members.iter().chain(members.first()).map(called).collect();
    let links: Vec<&Span> = members.iter().filter_map(|index| link(&processes[*index])).collect();
    let nowhere = 0..0;
    let place = links.iter().min_by_key(|span| span.start).copied().unwrap_or(&nowhere);
    let title = "processes supervise each other in a circle";
    let help = format!("write `supervisor = \"{NOBODY}\"` in one of them, the root");
    Problem::new(place, title, help).note(format!("{} (its supervisor)", chain.join(" → ")))
}

fn link(process: &DeclaredProcess) -> Option<&Span> {
    match &process.supervisor {
        Supervision::By(name) => Some(&name.span),
        _ => None,
    }
}

/// Returns whether the process may be started again after a fault.
fn is_restartable(process: &DeclaredProcess) -> bool {
    process.whole.restart != Restart::Never
}
