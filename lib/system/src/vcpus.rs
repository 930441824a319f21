//! Virtual CPUs against the rest: possible numbers, the VCPUs they serve, their threads. Whether
//! their promises can be kept together is not decided here: `diapason plan` does.

use crate::declared::{Declared, DeclaredDevice, DeclaredVcpu, Named};
use crate::diagnostics::{Problem, Report};
use crate::names::{Kind, Names, duplicates};
use crate::source::{At, Span};
use crate::system::ServerSpec;
use crate::units::{show_duration, show_share};
use diapason_abi::archive::{BUDGET_MIN, WHOLE_PPM};

pub(crate) fn check(declared: &Declared, names: &Names<'_>, report: &mut Report) {
    for vcpu in &declared.vcpus {
        match &vcpu.what {
            DeclaredVcpu::Main { server, budget, period } => {
                main(vcpu, server, (budget, period), report);
            }
            DeclaredVcpu::Io { server, utilization, serves } => {
                if served(serves, declared, names, report) {
                    grant(vcpu, server, utilization, serves, declared, names, report);
                }
            }
            DeclaredVcpu::Unusable => {}
        }
    }
    for name in declared.processes.iter().filter_map(|process| process.vcpu.as_ref()) {
        names.is(Kind::Vcpu, name, report);
    }
    if !declared.vcpus.is_empty() {
        declared.devices.iter().for_each(|device| interrupts(device, report));
    }
}

fn main(
    vcpu: &Named<DeclaredVcpu>,
    server: &ServerSpec,
    (budget, period): (&Span, &Span),
    report: &mut Report,
) {
    let ServerSpec::Main { budget_ns, period_ns, .. } = server else { return };
    if budget_ns <= period_ns {
        return;
    }
    let (c, t) = (show_duration(*budget_ns), show_duration(*period_ns));
    let title = format!("the budget of `{}`, {c}, exceeds its period, {t}", vcpu.name.value);
    let help = format!("write a budget of at most `\"{t}\"`, or a longer period");
    report.push(Problem::new(budget, title, help).with(period, "the period"));
}

/// Reports whom an I/O VCPU cannot serve.
fn served(
    serves: &[At<String>],
    declared: &Declared,
    names: &Names<'_>,
    report: &mut Report,
) -> bool {
    duplicates("serves", serves, report);
    tuned(serves, declared, report);
    let strangers = serves.iter().filter(|name| !is_main(name, declared, names, report));
    strangers.count() == 0
}

/// Reports a VCPU of a tuned pipe that is served. An I/O VCPU is as urgent as the most urgent one
/// that it serves, and a closed pipe is the least urgent.
fn tuned(serves: &[At<String>], declared: &Declared, report: &mut Report) {
    let all = || (0..declared.tpipes.len()).filter_map(diapason_contract::tuned::names);
    for name in serves.iter().filter(|name| all().any(|tuned| tuned.vcpu == name.value)) {
        let title =
            format!("`{}` is served, and its period changes while the system runs", name.value);
        let help = "name another VCPU: a thread of the server, or the reader of a `[[pipe]]`";
        report.push(Problem::new(&name.span, title, help));
    }
}

/// Reports a share that is too small for one grant to be of use.
fn grant(
    vcpu: &Named<DeclaredVcpu>,
    server: &ServerSpec,
    utilization: &Span,
    serves: &[At<String>],
    declared: &Declared,
    names: &Names<'_>,
    report: &mut Report,
) {
    fn period<'n>(name: &'n At<String>, d: &Declared, names: &Names<'_>) -> Option<(u64, &'n str)> {
        match &d.vcpus[names.vcpu(&name.value)?].what {
            DeclaredVcpu::Main { server: ServerSpec::Main { period_ns, .. }, .. } => {
                Some((*period_ns, name.value.as_str()))
            }
            _ => None,
        }
    }
    let ServerSpec::Io { utilization_ppm: share, cap_ns: cap, .. } = *server else { return };
    let Some((shortest, who)) =
        serves.iter().filter_map(|name| period(name, declared, names)).min()
    else {
        return;
    };
    let base = cap.map_or(shortest, |cap| cap.min(shortest));
    let granted = u128::from(base) * u128::from(share) / u128::from(WHOLE_PPM);
    if granted >= u128::from(BUDGET_MIN.0) {
        return;
    }
    let enough = (BUDGET_MIN.0 * u64::from(WHOLE_PPM)).div_ceil(base);
    let enough = show_share(u32::try_from(enough).unwrap_or(WHOLE_PPM));
    let (least, base) = (show_duration(BUDGET_MIN.0), show_duration(base));
    let title =
        format!("`{}` gets only {granted}ns at a time, the least is {least}", vcpu.name.value);
    let help = format!("write at least `utilization = \"{enough}\"`");
    let source =
        if cap.is_some() { "cap or shortest period served" } else { "shortest period served" };
    let note = format!("{} of {base}, the {source} (`{who}`)", show_share(share));
    report.push(Problem::new(utilization, title, help).note(note));
}

/// Reports a device whose interrupts would take any amount of time from the VCPUs.
fn interrupts(device: &Named<DeclaredDevice>, report: &mut Report) {
    let d = &device.what;
    let place = d.irq.as_ref().or(d.irqs.as_ref()).filter(|_| d.intervals.is_empty());
    let Some(irq) = place else { return };
    let title = format!("nothing bounds how often `{}` interrupts", device.name.value);
    let help = "add `interval = \"1ms\"`, the shortest time between two of its interrupts";
    let note = "the system has VCPUs, and every interrupt takes time from all of them";
    report.push(Problem::new(&irq.span, title, help).note(note));
}

/// Reports `name` unless it is that of a Main VCPU.
pub(crate) fn is_main(
    name: &At<String>,
    declared: &Declared,
    names: &Names<'_>,
    report: &mut Report,
) -> bool {
    if !names.is(Kind::Vcpu, name, report) {
        return false;
    }
    let what = names.vcpu(&name.value).and_then(|index| declared.vcpus.get(index));
    let is_io = what.is_some_and(|vcpu| matches!(vcpu.what, DeclaredVcpu::Io { .. }));
    if is_io {
        let title = format!("`{}` is an I/O VCPU, a Main VCPU is needed here", name.value);
        let help = "name Main VCPUs: an I/O VCPU follows those it serves";
        report.push(Problem::new(&name.span, title, help));
    }
    !is_io
}
