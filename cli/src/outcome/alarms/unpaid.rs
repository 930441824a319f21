//! Time of processes with a VCPU that no VCPU paid.

use super::super::{Outcome, RaisedAlarm, VcpuRow};
use super::Assumptions;
use crate::duration::human;
use crate::names::Names;

impl Assumptions {
    /// VCPUs pay for all time of processes that have one, but for that of switches, of which an
    /// entry grants one at most.
    pub(super) fn unpaid(&self, outcome: &Outcome, names: &Names) -> Option<RaisedAlarm> {
        let end = outcome.end?;
        let is_paid = |process: u64| {
            let process = usize::try_from(process).ok();
            process.and_then(|process| self.of.paid.get(process)).copied().unwrap_or(false)
        };
        let threads = outcome.threads.iter().filter(|row| is_paid(row.process));
        let used = threads.fold(0u64, |sum, row| sum.saturating_add(row.cpu_ns));
        let besides = [end.retired_ns, end.levied_ns];
        let vcpus = outcome.vcpus.iter().map(VcpuRow::cpu_ns).chain(besides);
        let paid = vcpus.fold(0, u64::saturating_add);
        let (observed, assumed) =
            (used.saturating_sub(paid), end.entries.saturating_mul(self.of.switch_grace.0));
        if observed <= assumed {
            return None;
        }
        let of = self.least_paid(outcome, names);
        let text = format!(
            "threads with VCPUs used {} that no VCPU paid; the kernel grants at most {}; most of \
             it is of {of}",
            human(observed),
            human(assumed)
        );
        RaisedAlarm::above("unpaid-time", &of, [observed, assumed], text)
    }

    /// Returns the processes on the VCPU that paid least of what they used. A thread that held a
    /// mutex may have used another VCPU's budget, so it is a hint where mutexes are shared.
    fn least_paid(&self, outcome: &Outcome, names: &Names) -> String {
        let on = |vcpu: u64| {
            let seats = (0u64..).zip(&self.of.seats);
            seats.filter(move |(_, seat)| seat.map(u64::from) == Some(vcpu)).map(|(it, _)| it)
        };
        let unpaid = |row: &VcpuRow| {
            let is_on = |process: u64| on(row.vcpu).any(|it| it == process);
            let threads = outcome.threads.iter().filter(|thread| is_on(thread.process));
            let used = threads.fold(0u64, |sum, thread| sum.saturating_add(thread.cpu_ns));
            used.saturating_sub(row.cpu_ns())
        };
        let least = outcome.vcpus.iter().max_by_key(|row| unpaid(row));
        let processes = least.into_iter().flat_map(|row| on(row.vcpu));
        let processes: Vec<String> = processes.map(|process| names.process(process)).collect();
        processes.join(" and ")
    }
}
