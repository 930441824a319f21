//! Gates that the server of an adapter keeps: how often they wake it, and whether it is never later
//! than their `guard` says. `docs/tsn.md` has the argument.

use super::ethernet::{BEFORE, Ethernet};
use super::wired::{link, occupies};
use crate::missing::Missing;
use diapason_abi::Nanos;
use diapason_contract::ethernet::FETCH_NS;
use diapason_system::{AdapterGates, WireEnd};
use std::collections::BTreeSet;

impl Ethernet<'_> {
    /// Returns the most wake-ups in a closed window, besides those for frames that come: a frame
    /// may be over, or a gate opens.
    pub(super) fn gate_wakes(&self, gates: &AdapterGates, window: Nanos) -> u64 {
        let sent = self.given(gates, window);
        sent.saturating_add(self.openings(gates, window))
    }

    /// Returns the most frames that an adapter behind gates gets in a closed window.
    pub(super) fn given(&self, gates: &AdapterGates, window: Nanos) -> u64 {
        // From the choice of a frame to the next one pass a guard and the frame.
        let apart = gates.guard_ns + self.shortest(gates.end);
        self.frames_from(gates.end, BEFORE + 1, window).min(window.0 / apart + 1)
    }

    /// Returns the most times in a closed window at which the gate of a class opens in which their
    /// server sends.
    fn openings(&self, gates: &AdapterGates, window: Nanos) -> u64 {
        let windows = self.sent_from(gates.end).flat_map(|it| gates.list.windows(it.class));
        let times: BTreeSet<u64> = windows.map(|it| it.open_ns).collect();
        let cycle = gates.list.cycle_ns();
        let (whole, rest) = (window.0 / cycle, window.0 % cycle);
        let within = |first: &u64| {
            let reached = |it: &&u64| (**it + cycle - first) % cycle <= rest;
            times.iter().filter(reached).count() as u64
        };
        let most = times.iter().map(within).max().unwrap_or(0);
        whole.saturating_mul(times.len() as u64).saturating_add(most)
    }

    /// Returns the time of the shortest frame on the wire at an end, in ns.
    fn shortest(&self, end: WireEnd) -> u64 {
        link(self.hosts, end).map_or(0, |link| occupies(link, 0, false))
    }

    /// Checks that the server of gates is never later than their `guard` says.
    pub(super) fn guarded(&self, gates: &AdapterGates, busy: Nanos) -> Result<(), Missing> {
        let needed = busy.0.saturating_add(FETCH_NS);
        if needed <= gates.guard_ns {
            return Ok(());
        }
        let (at, guard) = (self.place(gates.end), Nanos(gates.guard_ns));
        let what = format!(
            "a frame may take {} to the wire at `{at}`, and the `guard` of its gates is {guard}",
            Nanos(needed)
        );
        let help = format!(
            "write at least `guard = \"{needed}ns\"`, or give the VCPU of its server more `budget`"
        );
        Err((what, help))
    }
}
