//! How long bottom halves take on an I/O VCPU, with one beneficiary and with several.

use super::deadlines;
use super::demand;
use super::level::{Grants, Interference, STEPS_MAX};
use super::model::{IoVcpu, MainVcpu, Queue, SharedCore};
use super::supply::BudgetServer;
use diapason_abi::Nanos;

/// Busy periods are followed for so many releases; beyond, the period is the bound.
const RELEASES_MAX: u32 = 2_000;

/// The supply of an I/O VCPU to work for one beneficiary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IoSupply {
    quantum: Nanos,
    /// P: the time in which a quantum is the share, with what rounding adds.
    period: Nanos,
    /// T of the beneficiary, or less: the latest that any unit of a grant is used.
    limit: Nanos,
    /// λ: what the kernel takes of a grant.
    lost: Nanos,
    own: Grants,
    /// The interference from above; `None` where only the limit is known.
    above: Option<Interference>,
}

/// The bound for an I/O VCPU whose beneficiaries have different periods. Of all bounds here the one
/// with the weakest support: attacked by simulation, its proof is a sketch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedIo(IoSupply);

impl IoSupply {
    /// Returns the supply of an I/O VCPU all of whose beneficiaries have one period and one queue,
    /// in a system that makes sense; `None` otherwise, or if a beneficiary is not admitted.
    #[must_use]
    pub fn of(system: &SharedCore, io: usize) -> Option<IoSupply> {
        system.check().ok()?;
        let server = system.ios.get(io)?;
        let main = &system.mains[*server.serves.first()?];
        let alike = |other: &usize| {
            let other = &system.mains[*other];
            (other.period, other.queue) == (main.period, main.queue)
        };
        server.serves.iter().all(alike).then_some(())?;
        IoSupply::at_level(system, io, server.serves[0])
            .map(|supply| supply.by_deadline(system, main))
    }

    /// Returns the supply of an I/O VCPU that always inherits from the most urgent one it serves,
    /// waiting or not, as the kernel does (`docs/vcpus.md`); `None` if that one is not admitted.
    #[must_use]
    pub fn inherited(system: &SharedCore, io: usize) -> Option<IoSupply> {
        system.check().ok()?;
        let serves = &system.ios.get(io)?.serves;
        let rank = |main: &usize| (system.mains[*main].queue, system.mains[*main].period);
        let most_urgent = serves.iter().copied().min_by_key(rank)?;
        let supply = IoSupply::at_level(system, io, most_urgent)?;
        let main = &system.mains[most_urgent];
        // With beneficiaries in several queues the shortest period may be that of another one.
        let one_queue = serves.iter().all(|other| system.mains[*other].queue == main.queue);
        Some(if one_queue { supply.by_deadline(system, main) } else { supply })
    }

    /// Returns the supply of a server in a DP queue whose grants are all due a period of `main`
    /// after their release.
    fn by_deadline(self, system: &SharedCore, main: &MainVcpu) -> IoSupply {
        match main.queue {
            Queue::Dp(_) if !system.open => {
                IoSupply { limit: deadlines::latest(system, main.queue, main.period), ..self }
            }
            _ => self,
        }
    }

    /// Work for `vcpu`, done at the priority of `vcpu`.
    fn at_level(system: &SharedCore, io: usize, vcpu: usize) -> Option<IoSupply> {
        let (server, main) = (&system.ios[io], &system.mains[vcpu]);
        let quantum = system.least_quantum(server)?;
        let above = match main.queue {
            Queue::Fp => Some(above(system, io, vcpu)),
            Queue::Dp(_) => demand::of_queue(system, main.queue).ok().map(|()| None)?,
        };
        let above = above.filter(|_| !system.open);
        let admitted = system.interference(vcpu);
        if main.queue == Queue::Fp {
            admitted.response(Nanos(system.own_work(vcpu)), main.period).ok()?;
        }
        let switches = system.switch.0.saturating_mul(2);
        let (least, share) = (quantum.0, server.share);
        let own = Grants { quantum: 0, least, share, switches, woken: None };
        let period = cycle(server, quantum);
        let lost = system.lost_of_io(io, vcpu, period);
        (lost < quantum).then_some(())?;
        Some(IoSupply { quantum, period, limit: main.period, lost, own, above })
    }

    /// ⌊U·x⌋ used in the x before, and `work`, with their context switches.
    fn own_work(&self, before: u64, work: u64) -> u64 {
        let run = self.own.share.of(before).saturating_add(work);
        run.saturating_add(self.own.switching(run))
    }

    /// R_io: the largest w(x) − x, where w(x) is when `work` is done that became eligible x after
    /// the busy period began. Between two releases w grows more slowly than x, so it is enough to
    /// look at the x at which w crosses one.
    fn response_at(&self, above: &Interference, work: u64) -> Option<u64> {
        let mut steps = STEPS_MAX;
        let limits = (0, u64::MAX - 1);
        let mut done = |x: u64| above.response_in(self.own_work(x, work), limits, &mut steps).ok();
        let (mut x, mut longest) = (0, 0);
        for _ in 0..RELEASES_MAX {
            let end = done(x)?;
            longest = longest.max(end.saturating_sub(x));
            let release = above.next_release(end);
            if release == u64::MAX || done(release)? <= release {
                return longest.checked_add(self.rounding(above)?);
            }
            let (mut before, mut crosses) = (x, release);
            while crosses - before > 1 {
                let middle = before + (crosses - before) / 2;
                if done(middle)? > release { crosses = middle } else { before = middle }
            }
            x = crosses;
        }
        None
    }

    /// Shares of other I/O VCPUs are rounded down at each x; what that can hide between two of
    /// them.
    fn rounding(&self, above: &Interference) -> Option<u64> {
        let others = above.grants();
        if others.is_empty() {
            return Some(0);
        }
        let rate = others.iter().fold(0u64, |sum, other| sum.saturating_add(other.line().1));
        let switching =
            others.iter().fold(self.own.switches, |sum, other| sum.saturating_add(other.switches));
        let hidden = (others.len() as u64 + 1).saturating_add(switching);
        super::arith::stretched_up(hidden, rate)
    }
}

/// P: eligibility moves by used/U, rounded up once per wake-up.
pub(super) fn cycle(server: &IoVcpu, quantum: Nanos) -> Nanos {
    let whole = server.share.time_for(quantum.0);
    if server.share.is_unit_fraction() {
        return Nanos(whole);
    }
    let wakeups = server.wakeups(Nanos(whole)).saturating_add(server.wakes.into());
    Nanos(whole.saturating_add(wakeups.min(quantum.0)))
}

/// Returns the delays of work for `vcpu`: Main VCPUs that are truly above it, and the other I/O
/// VCPUs.
fn above(system: &SharedCore, io: usize, vcpu: usize) -> Interference {
    let main = &system.mains[vcpu];
    let order = system.precedence();
    let before = |other: &&usize| {
        let other = &system.mains[**other];
        (other.queue, other.period) < (main.queue, main.period)
    };
    let mut level = system.interrupts();
    for index in order.iter().filter(before) {
        system.add_main(&mut level, *index);
    }
    let mut others = system.clone();
    others.ios.remove(io);
    others.set_grants(&mut level, vcpu);
    level
}

impl BudgetServer for IoSupply {
    fn budget(&self) -> Nanos {
        self.quantum - self.lost
    }

    fn lost(&self) -> Nanos {
        self.lost
    }

    fn period(&self) -> Nanos {
        self.period
    }

    fn response(&self, work: Nanos) -> Nanos {
        let work = (work + self.lost).0;
        let exact = self.above.as_ref().and_then(|above| self.response_at(above, work));
        exact.map_or(self.limit, |response| Nanos(response).min(self.limit))
    }

    fn scattered(&self, work: Nanos) -> Nanos {
        let response = self.response(work);
        // Where the limit stands for the response, units may follow each other.
        if self.above.is_some() && response < self.limit {
            return response;
        }
        response + self.lost + (work - Nanos(1))
    }

    fn wakeups(&self) -> u64 {
        u64::MAX
    }
}

impl SharedIo {
    /// Returns the supply for work of `vcpu` on an I/O VCPU that also works for others. `None`
    /// unless its cap is at most the smallest period it serves, it serves `vcpu`, and `vcpu` is
    /// admitted.
    #[must_use]
    pub fn of(system: &SharedCore, io: usize, vcpu: usize) -> Option<SharedIo> {
        system.check().ok()?;
        let server = system.ios.get(io)?;
        let least = server.serves.iter().map(|main| system.mains[*main].period).min()?;
        if server.cap > least || !server.serves.contains(&vcpu) {
            return None;
        }
        IoSupply::at_level(system, io, vcpu).map(SharedIo)
    }

    /// Returns the time from the start of a backlog of work for this beneficiary or a more urgent
    /// one until `total` of such work is done, if meanwhile `raises` arrivals are more urgent than
    /// this beneficiary.
    #[must_use]
    pub fn delay(&self, total: Nanos, raises: u64) -> Nanos {
        let raised = self.0.response(self.0.budget()).0.saturating_mul(raises);
        self.0.any(total) + Nanos(raised)
    }
}
