//! Response times of budgets: the exact test for fixed priorities, one level after the other.

use super::arith;
use super::level::{Grants, Interference, Late};
use super::model::{Queue, SharedCore};
use diapason_abi::Nanos;

/// By when a VCPU has used what is eligible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Response {
    pub vcpu: usize,
    /// R(C): its whole budget is used at most this long after it became eligible.
    pub response: Nanos,
    /// T, which it must not exceed.
    pub limit: Nanos,
    /// Whether it is the exact response time, or the period, which is all that is known of a VCPU
    /// in a DP queue.
    pub exact: bool,
}

impl SharedCore {
    /// Returns the kernel and interrupts, as seen by everybody.
    pub(super) fn interrupts(&self) -> Interference {
        let mut level = Interference::new(self.kernel_section);
        for source in &self.sources {
            level.add(source.gap, source.cost);
        }
        let switches = Nanos(self.switch.0.saturating_mul(2));
        for io in &self.ios {
            level.add(io.wake_gap, Nanos(switches.0.saturating_mul(io.wakes.into())));
            level.add_once(self.overrun.0);
        }
        level
    }

    /// A Main VCPU above a level.
    pub(super) fn add_main(&self, level: &mut Interference, vcpu: usize) {
        let main = &self.mains[vcpu];
        level.add(main.period, Nanos(self.cost(main)));
        level.add_once(self.overrun.0);
    }

    /// Returns the interference with the VCPU at `place` in `order`, itself not counted.
    pub(super) fn above(&self, order: &[usize], place: usize) -> Interference {
        let mut level = self.interrupts();
        for index in &order[..place] {
            self.add_main(&mut level, *index);
        }
        self.set_grants(&mut level, order[place]);
        level
    }

    /// Returns the interference with a VCPU of the FP queue, itself not counted. Of a VCPU in a DP
    /// queue: what comes from the queues above and from VCPUs of its own queue with shorter
    /// periods.
    ///
    /// # Panics
    /// If there is no such VCPU.
    #[must_use]
    pub fn interference(&self, vcpu: usize) -> Interference {
        let order = self.precedence();
        let place = order.iter().position(|index| *index == vcpu).unwrap_or_default();
        self.above(&order, place)
    }

    /// Puts the I/O VCPUs that can preempt `vcpu`, each with its longest grant at that level.
    pub(super) fn set_grants(&self, level: &mut Interference, vcpu: usize) {
        let main = &self.mains[vcpu];
        let (queue, period) = (main.queue, main.period);
        // An I/O VCPU goes before a Main VCPU of the same period, whichever that one's index.
        self.grants_where(level, |other, its| other < queue || other == queue && its <= period);
    }

    /// Puts the I/O VCPUs with a beneficiary of which `counts` is true.
    pub(super) fn grants_where(
        &self,
        level: &mut Interference,
        counts: impl Fn(Queue, Nanos) -> bool,
    ) {
        level.clear_grants();
        for io in &self.ios {
            let mains = io.serves.iter().map(|main| &self.mains[*main]);
            let served = mains.filter(|main| counts(main.queue, main.period));
            let Some(quantum) = served.map(|main| io.quantum(main.period).0).max() else {
                continue;
            };
            let least = self.least_quantum(io).map_or(1, |least| least.0);
            let switches = self.switch.0.saturating_mul(2);
            let woken = io.wakings();
            level.add_grants(Grants { quantum, least, share: io.share, switches, woken });
        }
    }

    /// Returns the work that R(C) is computed for: the budget, its own context switches and
    /// overrun.
    pub(super) fn own_work(&self, vcpu: usize) -> u64 {
        self.cost(&self.mains[vcpu]).saturating_add(self.overrun.0)
    }
}

/// R(C) of every VCPU of the FP queue from `place` of the order on, as long as each is at most its
/// period. Stops at the first that is not.
pub(super) fn of_fixed_priorities(
    system: &SharedCore,
    order: &[usize],
    place: usize,
    mut found: impl FnMut(Response),
) -> Result<(), (usize, Late)> {
    let Some(first) = order.get(place) else { return Ok(()) };
    let mut level = system.interrupts();
    for index in &order[..place] {
        system.add_main(&mut level, *index);
    }
    debug_assert_eq!(system.mains[*first].queue, Queue::Fp);
    let mut from = 0;
    for vcpu in &order[place..] {
        let main = &system.mains[*vcpu];
        let work = system.own_work(*vcpu);
        system.set_grants(&mut level, *vcpu);
        let answer = level.response_from(work, work.saturating_add(from), main.period.0);
        let response = answer.map_err(|late| (*vcpu, late))?;
        found(Response { vcpu: *vcpu, response: Nanos(response), limit: main.period, exact: true });
        // The next one waits at least for what this one waited for, and for this one.
        from = response;
        system.add_main(&mut level, *vcpu);
    }
    Ok(())
}

/// R(C) without regard to the period, for a refusal that says by how much.
pub(super) fn however_late(system: &SharedCore, order: &[usize], vcpu: usize) -> Option<Nanos> {
    let place = order.iter().position(|index| *index == vcpu)?;
    let level = system.above(order, place);
    level.response_from(system.own_work(vcpu), 0, arith::ONE).ok().map(Nanos)
}
