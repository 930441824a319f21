//! The supplies of VCPUs and the interrupts of devices in a run, and the table of them.

use super::Outcome;
use super::render::share;
use crate::duration::human;
use crate::names::Names;
use crate::table::{Align, Table};

/// One VCPU, over the whole run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VcpuRow {
    /// Its place: those of the description first.
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
    pub terms: Option<Terms>,
}

/// On what terms a VCPU gets time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Terms {
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
    /// Its place in the description.
    pub device: u64,
    pub interrupts: u64,
    /// Shortest time between two, if there were two.
    pub distance_min_ns: Option<u64>,
}

impl VcpuRow {
    /// From a record's words.
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

    /// The name by which people know it.
    #[must_use]
    pub fn name(&self, names: &Names) -> String {
        names.vcpu(self.vcpu, self.terms.as_ref().and_then(|terms| terms.maker))
    }

    /// Returns `main` or `I/O`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match &self.terms {
            Some(Terms { share_ppm: Some(_), .. }) => "I/O",
            Some(_) => "main",
            None => "unknown",
        }
    }
}

impl Terms {
    /// From a record's words.
    pub(super) fn new(w: &[u64]) -> Terms {
        Terms {
            maker: (w[1] != u64::MAX).then_some(w[1]),
            budget_ns: w[2],
            period_ns: w[3],
            share_ppm: (w[4] > 0).then_some(w[4]),
            period_max_ns: w[5],
            lockout_max_ns: w[6],
            changes: w[7],
        }
    }

    fn reserved(&self) -> String {
        match self.share_ppm {
            Some(ppm) => share(ppm, 1_000_000),
            None => share(self.budget_ns, self.period_ns),
        }
    }
}

impl DeviceRow {
    /// From a record's words.
    pub(super) fn new(w: &[u64]) -> DeviceRow {
        let distance_min_ns = (w[2] != u64::MAX).then_some(w[2]);
        DeviceRow { device: w[0], interrupts: w[1], distance_min_ns }
    }
}

impl Outcome {
    /// The VCPUs in columns; nothing if there are none.
    pub(super) fn vcpu_table(&self, names: &Names) -> String {
        let mut table = Table::new(&[
            ("VCPU", Align::Left),
            ("kind", Align::Left),
            ("budget", Align::Right),
            ("period", Align::Right),
            ("reserved", Align::Right),
            ("CPU", Align::Right),
            ("background", Align::Right),
            ("waits", Align::Right),
            ("longest lateness", Align::Right),
        ]);
        let time = self.end.map_or(0, |end| end.time_ns);
        for row in &self.vcpus {
            let term = |show: fn(&Terms) -> String| row.terms.as_ref().map_or("-".into(), show);
            table.row(vec![
                row.name(names),
                row.kind().into(),
                term(|terms| human(terms.budget_ns)),
                term(|terms| human(terms.period_ns)),
                term(Terms::reserved),
                share(row.used_ns, time),
                share(row.background_ns, time),
                row.waits.to_string(),
                human(row.late_max_ns),
            ]);
        }
        table.render()
    }

    /// Devices that interrupted, in columns; nothing if there are none.
    pub(super) fn device_table(&self, names: &Names) -> String {
        let mut table = Table::new(&[
            ("device", Align::Left),
            ("interrupts", Align::Right),
            ("shortest distance", Align::Right),
        ]);
        for row in &self.devices {
            table.row(vec![
                names.device(row.device),
                row.interrupts.to_string(),
                row.distance_min_ns.map_or("-".into(), human),
            ]);
        }
        table.render()
    }
}
