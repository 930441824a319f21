//! Queues: every Main VCPU stands in exactly one, an I/O VCPU in the most urgent one it serves.

use crate::declared::{Declared, DeclaredScheduling, DeclaredVcpu, Dynamic};
use crate::diagnostics::{Problem, Report};
use crate::names::Names;
use crate::source::{At, Span};
use crate::vcpus::is_main;
use diapason_abi::archive::DP_QUEUES_MAX;
use std::collections::BTreeMap;

/// The place of each VCPU in the queues, by its number in the description.
pub(crate) struct Queues {
    /// The number of queues by deadline.
    pub dynamic: u8,
    /// The queue of each VCPU.
    pub of: Vec<u8>,
}

/// Reports what is wrong with the lists of `[scheduling]`.
pub(crate) fn check(declared: &Declared, names: &Names<'_>, report: &mut Report) {
    let scheduling = &declared.scheduling;
    let mut seen: BTreeMap<&str, &Span> = BTreeMap::new();
    let mut is_sound = true;
    for name in listed(scheduling) {
        is_sound &= is_main(name, declared, names, report);
        if let Some(first) = seen.get(name.value.as_str()) {
            let title = format!("`{}` is in two queues", name.value);
            let problem = Problem::new(&name.span, title, "remove one of the two");
            report.push(problem.with(first, "first here"));
        } else {
            seen.insert(&name.value, &name.span);
        }
    }
    lengths(scheduling, report);
    // A misspelt name in a list is not also missing from it.
    if is_sound {
        coverage(declared, &seen, report);
    }
}

/// Returns every name in the lists, in their order.
fn listed(scheduling: &DeclaredScheduling) -> impl Iterator<Item = &At<String>> {
    let queues = match &scheduling.dynamic {
        Dynamic::Queues(queues) => queues.as_slice(),
        Dynamic::All => &[],
    };
    queues.iter().flat_map(|queue| &queue.value).chain(scheduling.fixed.iter().flatten())
}

fn lengths(scheduling: &DeclaredScheduling, report: &mut Report) {
    let Dynamic::Queues(queues) = &scheduling.dynamic else {
        if let Some(extra) = scheduling.fixed.iter().flatten().next() {
            let title = "`dynamic = \"all\"` leaves nothing for `fixed`";
            report.push(Problem::new(&extra.span, title, "remove one of the two keys"));
        }
        return;
    };
    if let Some(extra) = queues.get(usize::from(DP_QUEUES_MAX)) {
        let title = format!("{} queues by deadline, the most is {DP_QUEUES_MAX}", queues.len());
        let help = "merge neighbouring queues";
        report.push(Problem::new(&extra.span, title, help).label("the first too many"));
    }
}

/// If the last queue is spelt out, nobody may be left over.
fn coverage(declared: &Declared, seen: &BTreeMap<&str, &Span>, report: &mut Report) {
    if declared.scheduling.fixed.is_none() || matches!(declared.scheduling.dynamic, Dynamic::All) {
        return;
    }
    let is_main = |what: &DeclaredVcpu| !matches!(what, DeclaredVcpu::Io { .. });
    let main = declared.vcpus.iter().filter(|vcpu| is_main(&vcpu.what));
    let left: Vec<_> = main.filter(|vcpu| !seen.contains_key(vcpu.name.value.as_str())).collect();
    let Some(first) = left.first() else { return };
    let names = left.iter().map(|vcpu| vcpu.name.value.as_str());
    let title = format!("the queues leave out {}", crate::suggest::listed(names, "and"));
    let help =
        "add the missing VCPUs, or remove `fixed`: then it has all that `dynamic` leaves out";
    let problem = Problem::new(&declared.scheduling.fixed_place, title, help);
    report.push(problem.with(&first.name.span, "in no queue"));
}

/// Returns where everybody stands. A name that cannot be resolved has been reported, and counts as
/// last.
pub(crate) fn assign(declared: &Declared, names: &Names<'_>) -> Queues {
    let vcpus = &declared.vcpus;
    let (dynamic, mut of) = match &declared.scheduling.dynamic {
        Dynamic::All => (1, vec![0; vcpus.len()]),
        Dynamic::Queues(queues) => {
            let dynamic = u8::try_from(queues.len()).unwrap_or(u8::MAX);
            let mut of = vec![dynamic; vcpus.len()];
            for (queue, members) in (0..dynamic).zip(queues) {
                let indices = members.value.iter().filter_map(|name| names.vcpu(&name.value));
                indices.for_each(|index| of[index] = queue);
            }
            (dynamic, of)
        }
    };
    for (index, vcpu) in vcpus.iter().enumerate() {
        if let DeclaredVcpu::Io { serves, .. } = &vcpu.what {
            let served = serves.iter().filter_map(|name| names.vcpu(&name.value));
            of[index] = served.map(|served| of[served]).min().unwrap_or(dynamic);
        }
    }
    Queues { dynamic, of }
}
