//! A VCPU's budget, list and grants beside what the analysis assumes of them.

use super::super::{RaisedAlarm, VcpuRow, VcpuTerms};
use super::Assumptions;
use crate::duration::human;
use diapason_analysis::server::IoVcpu;
use diapason_plan::AssumedVcpu;

/// One VCPU against what is assumed of it.
pub(super) struct Check<'a> {
    pub(super) assumptions: &'a Assumptions,
    pub(super) row: &'a VcpuRow,
    pub(super) name: String,
}

impl Check<'_> {
    /// Returns what a run contradicts. `as_planned`: no VCPU was made or changed at run time.
    pub(super) fn alarms(&self, as_planned: bool) -> impl Iterator<Item = RaisedAlarm> + use<> {
        let all = [self.overrun(), self.list(), self.late(as_planned), self.lock_out()];
        all.into_iter().flatten()
    }

    /// Returns the assumptions about it, if it is a described one.
    fn assumed(&self) -> Option<&AssumedVcpu> {
        self.assumptions.of.vcpus.get(usize::try_from(self.row.vcpu).ok()?)
    }

    /// Item 3: the end of a budget waits for nothing but a kernel path.
    fn overrun(&self) -> Option<RaisedAlarm> {
        let (observed, assumed) = (self.row.overrun_max_ns, self.assumptions.of.path.1);
        let text = format!(
            "VCPU {} used {} more than its budget; the analysis assumes at most {}",
            self.name,
            human(observed),
            human(assumed)
        );
        RaisedAlarm::above("budget-overrun", &self.name, [observed, assumed], text)
    }

    /// Items 7 and 8: the list has room for every wake-up; and an I/O VCPU is not woken more often
    /// than described.
    fn list(&self) -> Option<RaisedAlarm> {
        let VcpuRow { merges, wakes_max: wakes, .. } = *self.row;
        if self.row.terms.as_ref().is_some_and(|t| t.changes > 0 && t.maker.is_none()) {
            // The server of tuned pipes changed it, and its bounds have a period for full lists.
            return None;
        }
        // A bound that counts full lists, or needs none, promises nothing about them. Without a
        // bound, nothing is promised.
        let (relied, places) = match self.assumed()? {
            AssumedVcpu::Main { relied, list, .. } => (*relied, *list),
            AssumedVcpu::Io { .. } => (false, u64::MAX),
        };
        if relied && merges > 0 {
            let text = format!(
                "the replenishment list of VCPU {} was full {merges} times, with up to {wakes} \
                 wake-ups in a period, so budget came up to a period later; {}",
                self.name,
                room(wakes, places)
            );
            return RaisedAlarm::above("replenishment-list-full", &self.name, [merges, 0], text);
        }
        let too_rare = || "its `interval` is too long, or `wakes` too few".to_owned();
        let (assumed, remedy) = match self.assumed()? {
            AssumedVcpu::Main { wakes: None, .. } => return None,
            AssumedVcpu::Main { wakes: Some(most), job: Some(_), .. } => (*most, too_rare()),
            AssumedVcpu::Main { wakes: Some(most), list, .. } => (*most, room(wakes, *list)),
            AssumedVcpu::Io { relied: false, .. } => return None,
            AssumedVcpu::Io { io, .. } => (self.wakes(io, self.row.terms.as_ref()?), too_rare()),
        };
        let text = format!(
            "VCPU {} was woken {wakes} times in a period; the analysis assumes at most {assumed}; \
             {remedy}",
            self.name
        );
        RaisedAlarm::above("wake-ups", &self.name, [wakes, assumed], text)
    }

    /// Returns the most wake-ups of an I/O VCPU in a period. Each may wait for the kernel.
    fn wakes(&self, io: &IoVcpu, terms: &VcpuTerms) -> u64 {
        let window = terms.period_max_ns.saturating_add(self.assumptions.of.late.0);
        io.wakeups(diapason_abi::Nanos(window))
    }

    /// Item 9, the best single test of the whole analysis: budgets are used in time.
    fn late(&self, as_planned: bool) -> Option<RaisedAlarm> {
        let terms = self.row.terms.as_ref()?;
        let assumed = match self.assumed() {
            Some(AssumedVcpu::Main { response, .. }) if as_planned => *response,
            // A grant's overrun is counted with it.
            _ if terms.share_ppm.is_some() => {
                terms.period_max_ns.saturating_add(self.assumptions.of.path.1)
            }
            _ => terms.period_max_ns,
        };
        let observed = self.row.late_max_ns;
        let text = format!(
            "VCPU {} had used its budget only {} after it came; {} was promised",
            self.name,
            human(observed),
            human(assumed)
        );
        RaisedAlarm::above("late-supply", &self.name, [observed, assumed], text)
    }

    /// Item 10: an I/O VCPU waits at most (1 − U)·T for its grant; longer by what a budget may be
    /// exceeded by, which it pays back, and by 1 ns for each wake-up.
    fn lock_out(&self) -> Option<RaisedAlarm> {
        let Some(AssumedVcpu::Io { io, .. }) = self.assumed() else { return None };
        let terms = self.row.terms.as_ref()?;
        let grant = io.quantum(diapason_abi::Nanos(terms.period_max_ns));
        let most = grant.0.saturating_add(self.assumptions.of.path.1);
        let wait = io.share.time_for(most).saturating_sub(most);
        let (observed, assumed) = (
            terms.lockout_max_ns,
            wait.saturating_add(self.wakes(io, terms).max(self.row.wakes_max)),
        );
        let text = format!(
            "I/O VCPU {} waited {} for its grant; the analysis assumes at most {}",
            self.name,
            human(observed),
            human(assumed)
        );
        RaisedAlarm::above("lock-out", &self.name, [observed, assumed], text)
    }
}

/// Returns the advice about a list for so many wake-ups. A thread that waits for budget is woken
/// less often, so there may be more of them once the list is longer.
fn room(wakes: u64, places: u64) -> String {
    let enough = wakes.saturating_add(1);
    if enough <= places {
        // Parts of a budget that is waited for stay apart, and fill any list.
        "it has places for those, so it had to wait for budget: give it more".into()
    } else if enough <= u64::from(diapason_abi::archive::REPLENISHMENTS_MAX) {
        format!("it needs `replenishments = {enough}` at least")
    } else {
        "no list is that long: give it a shorter period, or wake it less often".into()
    }
}
