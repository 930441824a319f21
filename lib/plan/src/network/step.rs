//! Flows in step with the gates of the adapter that sends them: when their frames are queued, and
//! how much sooner they are on the wire. `docs/flows.md` has the argument.

use super::ethernet::{BEFORE, Ethernet, Wired};
use super::wired::gates;
use crate::missing::Missing;
use diapason_abi::Nanos;
use diapason_contract::release::ReleaseTerms;
use diapason_system::{AdapterGates, FlowRelease, WireEnd};

/// The times of a flow in step, by the time of the gates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GateStep {
    /// The times that the program and the server of the adapter keep.
    pub terms: ReleaseTerms,
    /// A frame is over so long after its release at the latest; `None` if another flow of the same
    /// priority is not in step.
    pub done_ns: Option<u64>,
}

/// How early and how late frames may be in their queue, from their release.
struct Spread {
    early_ns: u64,
    late_ns: u64,
}

impl Ethernet<'_> {
    /// Returns the release of a flow, and the gates with which it is in step, at the first end of
    /// its way.
    fn released(&self, flow: &Wired<'_>, end: WireEnd) -> Option<(FlowRelease, &AdapterGates)> {
        let gates = gates(self.hosts, end).filter(|_| flow.ways.first() == Some(&end))?;
        Some((flow.flow.release?, gates))
    }

    fn spread(&self, flow: &Wired<'_>, release: FlowRelease, end: WireEnd) -> Spread {
        let early_ns = release.error_ns(flow.flow.contract.per.0);
        let waits = self.stretched(end, flow.jitter(BEFORE));
        Spread { early_ns, late_ns: early_ns.saturating_add(waits) }
    }

    /// Returns the part of the cycle in which frames of a flow in step come to the queue at an end;
    /// `None` if they may come at any time.
    pub(super) fn phase(&self, flow: &Wired<'_>, end: WireEnd) -> Option<(u64, u64)> {
        let (release, gates) = self.released(flow, end)?;
        let cycle = gates.list.cycle_ns();
        let Spread { early_ns, late_ns } = self.spread(flow, release, end);
        let spread = early_ns.saturating_add(late_ns);
        let from = (release.first_ns % cycle + cycle).checked_sub(early_ns)? % cycle;
        (spread < cycle).then_some((from, from + spread))
    }

    /// Returns the longest time from the release of a flow in step until its frame has left the
    /// adapter, by the time of the gates, counted from the earliest time at which it may be queued.
    fn done(&self, flow: &Wired<'_>, end: WireEnd) -> Result<Option<u64>, Missing> {
        let Some((from, _)) = self.phase(flow, end) else { return Ok(None) };
        let last = self.with_model(flow, end, |model| model.latest_end(flow.class));
        let last = last.transpose().map_err(|refusal| self.overloaded(end, refusal))?;
        Ok(last.flatten().map(|last| last - from))
    }

    /// Returns the longest time that an end adds for a flow that waits there for `queued` at most.
    ///
    /// A frame that is queued early waits for longer, and is on the wire no later. So the sum of
    /// the time before the queue and the time in it is less than both.
    pub(super) fn adds(&self, flow: &Wired<'_>, end: WireEnd, queued: u64) -> Result<u64, Missing> {
        let done = self.done(flow, end)?.map(|done| self.stretched(end, done));
        Ok(done.map_or(queued, |done| queued.min(done.saturating_sub(flow.jitter(BEFORE)))))
    }

    /// Returns the times of a flow in step; `None` for another one.
    pub(super) fn step(&self, flow: &Wired<'_>) -> Result<Option<GateStep>, Missing> {
        let Some(end) = flow.ways.first().copied() else { return Ok(None) };
        let Some((release, gates)) = self.released(flow, end) else { return Ok(None) };
        let Spread { early_ns, late_ns } = self.spread(flow, release, end);
        if self.phase(flow, end).is_none() {
            let (at, cycle) = (self.place(end), Nanos(gates.list.cycle_ns()));
            let what = format!(
                "a message may be in its queue at `{at}` {} after its `offset`, and the gates \
                 begin anew after {cycle}",
                Nanos(late_ns)
            );
            let help = "give its program and the server of its adapter more of the processor, or \
                        remove `offset`";
            return Err((what, help.to_owned()));
        }
        let done_ns = self.done(flow, end)?.map(|done| done - early_ns);
        let terms = ReleaseTerms {
            socket: flow.from.port(self.hosts).number,
            is_common: release.rate_ppm > 0,
            first_ns: release.first_ns,
            period_ns: flow.flow.contract.per.0,
            early_ns,
            late_ns,
        };
        Ok(Some(GateStep { terms, done_ns }))
    }
}
