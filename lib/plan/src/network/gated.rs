//! Gates that the server of an adapter keeps: how often they wake it, and whether it is never later
//! than their `guard` says. `docs/tsn.md` has the argument.

use super::ethernet::{BEFORE, Ethernet};
use super::timed;
use super::wired::{gates, link, longest, occupies};
use crate::missing::Missing;
use diapason_abi::Nanos;
use diapason_contract::ethernet::FETCH_NS;
use diapason_contract::time::TURN_NS;
use diapason_system::{AdapterGates, WireEnd};
use std::collections::BTreeSet;

const MILLION: u64 = 1_000_000;

impl Ethernet<'_> {
    /// Returns the most wake-ups in a closed window, besides those for frames that come: a frame
    /// may be over, a gate opens, or a class has paid for its last frame.
    pub(super) fn gate_wakes(&self, gates: &AdapterGates, window: Nanos) -> u64 {
        let sent = self.given(gates, window);
        let by_gates = Nanos(self.stretched(gates.end, window.0));
        // Each class has credit once at the beginning, and once after each of its frames.
        let classes = gates.credits.len() as u64;
        let paid = if classes > 0 { sent.saturating_add(classes) } else { 0 };
        sent.saturating_add(self.openings(gates, by_gates)).saturating_add(paid)
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
        let given = busy.0.saturating_add(FETCH_NS).saturating_add(self.ahead(gates)?);
        // The frame itself may last longer by the time of the gates, too.
        let frame = link(self.hosts, gates.end).map_or(0, longest);
        let needed = self.stretched(gates.end, given.saturating_add(frame)) - frame;
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

    /// Returns the longest time that frames of the common time keep the wire after a frame behind
    /// gates is with the adapter.
    ///
    /// When a frame is given, the one before is over. Those ahead of it were given after that one,
    /// whose own time on its way was at most G and the frame. Its end leaves at most the turns of
    /// that time on the wire, with G more for turns whose frames are given late. From then on
    /// the wire carries a turn before the next begins, so at most one more is added.
    fn ahead(&self, gates: &AdapterGates) -> Result<u64, Missing> {
        let Some(link) = link(self.hosts, gates.end).filter(|_| self.keeps_time(gates.end)) else {
            return Ok(0);
        };
        let each = timed::turn_ns(link);
        if each > TURN_NS {
            let at = self.place(gates.end);
            let what = format!("the wire at `{at}` is too slow for gates beside a common time");
            return Err((what, "use a faster wire, or remove `time` or the gates".to_owned()));
        }
        let window = gates.guard_ns.saturating_mul(2).saturating_add(longest(link));
        Ok(self.turns(gates.end, Nanos(window)).saturating_add(1).saturating_mul(each))
    }

    /// Returns the longest time by the clock of the gates at an end while the clock of its host
    /// counts this, and the other way round.
    pub(super) fn stretched(&self, end: WireEnd, time: u64) -> u64 {
        let timed = link(self.hosts, end).and_then(|link| link.time);
        let gated = gates(self.hosts, end).is_some();
        let Some(rate) = timed.filter(|_| gated).map(|it| it.rate_ppm()) else { return time };
        let gained = (u128::from(time) * u128::from(rate)).div_ceil(u128::from(MILLION - rate));
        time.saturating_add(u64::try_from(gained).unwrap_or(u64::MAX))
    }
}
