//! The thread of an adapter's server that sends: for how long it is busy, with the frames of flows,
//! with gates, with the common time and with its reports.

use super::ethernet::{Ethernet, Wired};
use super::site::Worker;
use super::wired::gates;
use crate::missing::Missing;
use crate::pipes::Plant;
use diapason_abi::Nanos;
use diapason_contract::time::TURN_NS;
use diapason_system::{EthernetAdapter, WireEnd};

impl<'a> Ethernet<'a> {
    /// Returns the adapter at an end, with the plant of its host; nothing at the port of a switch.
    pub(super) fn adapter(&self, end: WireEnd) -> Option<(&'a Plant<'a>, &'a EthernetAdapter)> {
        let WireEnd::Adapter { host, adapter } = end else { return None };
        let plant = &self.plants[host];
        Some((plant, &plant.system.adapters[adapter]))
    }

    /// Returns whether the server of the adapter at an end keeps a common time.
    pub(super) fn keeps_time(&self, end: WireEnd) -> bool {
        self.adapter(end).is_some_and(|(_, adapter)| adapter.keeps_time)
    }

    /// Returns how the server of the adapter at an end is called.
    pub(super) fn driver(&self, end: WireEnd) -> String {
        match end {
            WireEnd::Adapter { host, adapter } => {
                self.process(host, self.plants[host].system.adapters[adapter].driver)
            }
            WireEnd::Port { .. } => self.place(end),
        }
    }

    /// Returns the thread that sends at the adapter of an end.
    pub(super) fn server(&self, end: WireEnd) -> Result<Worker<'_>, Missing> {
        let Some((plant, adapter)) = self.adapter(end) else {
            return Err(("a switch has no server".to_owned(), "name an adapter".to_owned()));
        };
        let is_gated = gates(self.hosts, end).is_some();
        let sends = self.sent_from(end).next().is_some();
        Worker::of_sender(plant, adapter, (is_gated, sends))
    }

    /// Returns the flows that the server of the adapter at an end sends.
    pub(super) fn sent_from(&self, end: WireEnd) -> impl Iterator<Item = &Wired<'a>> {
        self.flows.iter().filter(move |it| it.ways.first() == Some(&end))
    }

    /// Returns the most frames that the server of the adapter at an end has at a stage in a window.
    pub(super) fn frames_from(&self, end: WireEnd, stage: usize, window: Nanos) -> u64 {
        let each = self.sent_from(end).map(|it| it.arrivals(stage, window));
        each.fold(0, u64::saturating_add)
    }

    /// Returns the most turns of the common time in a closed window: each begins so long after the
    /// one before.
    pub(super) fn turns(&self, end: WireEnd, window: Nanos) -> u64 {
        if self.keeps_time(end) { 1 + window.0 / TURN_NS } else { 0 }
    }

    /// Returns the longest time of the server that sends, until a frame is with its adapter, or in
    /// the queue behind the gates of the adapter; and until a turn of the common time is done.
    pub(super) fn serves(&self, end: WireEnd) -> Result<Nanos, Missing> {
        let worker = self.server(end)?;
        let gates = gates(self.hosts, end);
        let frames = |window: Nanos| self.frames_from(end, 1, window);
        let turns = |window: Nanos| self.turns(end, window);
        // Once a second it reports on the adapter, on each socket and on the common time.
        let reports = |window: Nanos| 1 + window.0 / diapason_pipe::measured::REPORT.0;
        // Behind gates it also wakes up when a frame is over, and when a gate opens.
        let of_gates = |window: Nanos| gates.map_or(0, |it| self.gate_wakes(it, window));
        let wakes = |window: Nanos| {
            let own = frames(window).saturating_add(reports(window));
            own.saturating_add(of_gates(window)).saturating_add(turns(window).saturating_mul(2))
        };
        let work = |window: Nanos| {
            let queued = frames(window);
            let given = gates.map_or(0, |it| self.given(it, window));
            // It looks at gates before it waits, and after each frame that it queues.
            let looks = wakes(window).saturating_add(queued).saturating_add(given);
            let looks = looks.saturating_mul(worker.look.0);
            let told = reports(window).saturating_mul(worker.told.0);
            let turns = turns(window).saturating_mul(worker.turn.0);
            let frames = queued.saturating_mul(worker.each.0);
            Nanos(frames.saturating_add(looks).saturating_add(told).saturating_add(turns))
        };
        // Each of the two wake-ups of a turn adds a wait at least.
        let events = [(worker.each, true), (worker.look, gates.is_some())];
        let events = events.into_iter().filter(|(each, is_there)| *is_there && *each > Nanos::ZERO);
        let waits = self.keeps_time(end).then_some(worker.waits());
        let least = events.map(|(each, _)| each).chain(waits).min().unwrap_or_default();
        let busy = worker.busy(wakes, work, least).ok_or_else(|| {
            let what =
                format!("`{}` cannot keep up with the frames that it sends", self.driver(end));
            (what, "give its VCPU a larger `budget`, or send fewer messages".to_owned())
        })?;
        gates.map_or(Ok(()), |gates| self.guarded(gates, busy))?;
        Ok(busy)
    }
}
