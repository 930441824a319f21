//! The supplies of VCPUs and the interrupts of devices in a run.

use crate::names::Names;
use crate::table::{Columns, TableCell, cell, share, time};

/// One VCPU, over the whole run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VcpuRow {
    /// The VCPU's place: those of the description first.
    pub vcpu: u64,
    /// Time used of its budgets.
    pub used_ns: u64,
    /// Time used in the background.
    pub background_ns: u64,
    /// Times its threads had to wait for budget.
    pub waits: u64,
    /// Most use in advance of a budget.
    pub overrun_max_ns: u64,
    /// Longest time from a budget to the end of its use.
    pub late_max_ns: u64,
    /// Budgets that had to return together, for want of room in the list.
    pub merges: u64,
    /// Most wake-ups in one of its periods.
    pub wakes_max: u64,
    /// The terms; missing only if that line was damaged.
    pub terms: Option<VcpuTerms>,
}

/// On what terms a VCPU gets time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VcpuTerms {
    /// The process that made it, if it is not a described one.
    pub maker: Option<u64>,
    /// At the end. Of an I/O VCPU, its grant.
    pub budget_ns: u64,
    /// At the end. Of an I/O VCPU, the one it inherits.
    pub period_ns: u64,
    /// In parts per million; of an I/O VCPU only.
    pub share_ppm: Option<u64>,
    /// The longest period it had.
    pub period_max_ns: u64,
    /// Longest wait of an I/O VCPU for its grant.
    pub lockout_max_ns: u64,
    /// Times its budget or period was changed.
    pub changes: u64,
}

/// One device that interrupted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceRow {
    /// The device's place in the description.
    pub device: u64,
    pub interrupts: u64,
    /// Shortest time between two, if there were two.
    pub distance_min_ns: Option<u64>,
}

impl VcpuRow {
    /// Reads a record's words.
    pub(super) fn new(w: &[u64]) -> VcpuRow {
        VcpuRow {
            vcpu: w[0],
            used_ns: w[1],
            background_ns: w[2],
            waits: w[3],
            overrun_max_ns: w[4],
            late_max_ns: w[5],
            merges: w[6],
            wakes_max: w[7],
            terms: None,
        }
    }

    /// Time used in all.
    #[must_use]
    pub const fn cpu_ns(&self) -> u64 {
        self.used_ns.saturating_add(self.background_ns)
    }

    /// Returns the name by which people know it.
    #[must_use]
    pub fn name(&self, names: &Names) -> String {
        names.vcpu(self.vcpu, self.terms.as_ref().and_then(|terms| terms.maker))
    }

    pub(super) fn kind(&self) -> TableCell {
        match &self.terms {
            Some(VcpuTerms { share_ppm: Some(_), .. }) => cell("I/O", "io"),
            Some(_) => "main".into(),
            None => "unknown".into(),
        }
    }

    /// Returns the columns of a run of this length.
    pub(super) fn columns(names: &Names, whole: u64) -> Columns<'_, VcpuRow> {
        let term =
            |value: fn(&VcpuTerms) -> TableCell| move |row: &VcpuRow| row.terms.as_ref().map(value);
        let maker = |row: &VcpuRow| row.terms.as_ref().and_then(|terms| terms.maker);
        Columns::<VcpuRow>::default()
            .left(("VCPU", "vcpu"), |row| row.name(names))
            .left(("kind", "kind"), VcpuRow::kind)
            .json("process", move |row| maker(row).map(|maker| names.process(maker)))
            .right(("budget", "budget_ns"), term(|it| time(it.budget_ns)))
            .right(("period", "period_ns"), term(|it| time(it.period_ns)))
            .right(("reserved", "utilization_ppm"), term(VcpuTerms::reserved))
            .json("changes", |row| row.terms.as_ref().map(|terms| terms.changes))
            .right(("CPU", "used_ns"), move |row| cell(share(row.used_ns, whole), row.used_ns))
            .right(("background", "background_ns"), move |row| {
                cell(share(row.background_ns, whole), row.background_ns)
            })
            .right(("waits", "waits"), |row| row.waits)
            .right(("longest lateness", "late_max_ns"), |row| time(row.late_max_ns))
            .json("overrun_max_ns", |row| row.overrun_max_ns)
            .json("lockout_max_ns", |row| row.terms.as_ref().map(|terms| terms.lockout_max_ns))
            .json("list_full", |row| row.merges)
            .json("wakes_max", |row| row.wakes_max)
    }
}

impl VcpuTerms {
    /// Reads a record's words.
    pub(super) fn new(w: &[u64]) -> VcpuTerms {
        VcpuTerms {
            maker: (w[1] != u64::MAX).then_some(w[1]),
            budget_ns: w[2],
            period_ns: w[3],
            share_ppm: (w[4] > 0).then_some(w[4]),
            period_max_ns: w[5],
            lockout_max_ns: w[6],
            changes: w[7],
        }
    }

    fn reserved(&self) -> TableCell {
        match self.share_ppm {
            Some(ppm) => cell(share(ppm, 1_000_000), ppm),
            None => cell(share(self.budget_ns, self.period_ns), None::<u64>),
        }
    }
}

impl DeviceRow {
    /// Reads a record's words.
    pub(super) fn new(w: &[u64]) -> DeviceRow {
        let distance_min_ns = (w[2] != u64::MAX).then_some(w[2]);
        DeviceRow { device: w[0], interrupts: w[1], distance_min_ns }
    }

    pub(super) fn columns(names: &Names) -> Columns<'_, DeviceRow> {
        Columns::<DeviceRow>::default()
            .left(("device", "device"), |row| names.device(row.device))
            .right(("interrupts", "interrupts"), |row| row.interrupts)
            .right(("shortest distance", "distance_min_ns"), |row| row.distance_min_ns.map(time))
    }
}
