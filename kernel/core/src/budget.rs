//! Virtual CPUs: budgeted shares of the core that threads run on.
//!
//! A Main VCPU is a sporadic server, an I/O VCPU a PIBS server that inherits the shortest period of
//! the Main VCPUs it serves (`lib/vcpu`). Several threads may share one; among them the most urgent
//! runs. A thread without a VCPU runs when no VCPU with budget wants to. When a thread helps
//! another (`helping`), it runs on the VCPU of that other one: bandwidth is inherited with the
//! place.
//!
//! The VCPU that pays is charged before it, another VCPU or an alarm changes, and when its budget
//! ends. Other calls leave the account open. The thread that runs after an entry pays for it, but
//! for what `plan` promises besides the budgets of the described VCPUs: a switch, and a device's
//! interrupt. There are no more of these than `plan` counts. It counts two switches, there
//! and back, for each place in a replenishment list and each wake-up of an I/O VCPU. So a Main VCPU
//! is spared one in each such part of its period, an I/O VCPU one in each `interval`, and a VCPU
//! that preempts another one brings that the way back. Interrupts have their distance.

use crate::ids::{ThreadId, VcpuId};
use crate::kernel::Kernel;
use crate::objects::vcpu::{Server, Vcpu};
use crate::pool::{Id, Pool};
use crate::promise::{Fees, Promise};
use crate::scheduler::Scheduler;
use diapason_abi::{Key, Nanos};

impl Kernel<'_> {
    /// A thread of this VCPU became ready.
    #[inline(never)]
    pub(crate) fn enter_vcpu(&mut self, vcpu: VcpuId, thread: ThreadId) {
        let idle = self.vcpus[vcpu].ready.is_empty();
        if idle {
            self.pay_up();
        }
        let v = &mut self.vcpus[vcpu];
        v.ready.insert_back(&mut self.threads, thread);
        if idle {
            v.wake(self.now);
            self.refresh(vcpu);
        }
    }

    /// A thread of this VCPU is no longer ready.
    #[inline(never)]
    pub(crate) fn leave_vcpu(&mut self, vcpu: VcpuId, thread: ThreadId) {
        self.pay_up();
        let v = &mut self.vcpus[vcpu];
        v.ready.remove(&mut self.threads, thread);
        if v.ready.is_empty() {
            v.sleep(self.now);
            self.refresh(vcpu);
        }
    }

    /// Computes again whether and when a VCPU may run, after its threads or its budget changed.
    pub(crate) fn refresh(&mut self, vcpu: VcpuId) {
        self.pay_up();
        self.reassess(vcpu);
    }

    /// Computes whether and when a VCPU may run, when everything is paid up to now.
    fn reassess(&mut self, vcpu: VcpuId) {
        let v = &mut self.vcpus[vcpu];
        let bit = 1 << (v.rank % 64);
        self.scheduler.eligible &= !bit;
        self.scheduler.background &= !bit;
        if v.ready.is_empty() {
            return self.find_wake(vcpu);
        }
        if v.available(self.now) > Nanos::ZERO {
            v.find_deadline();
            self.scheduler.eligible |= bit;
            return self.alarms.wake(&self.threads, v.rank, Nanos::FOREVER);
        }
        v.depleted = v.depleted.saturating_add(1);
        if v.background {
            self.scheduler.background |= bit;
        }
        self.alarms.wake(&self.threads, v.rank, v.eligible_at());
    }

    /// Charges the payer up to now, unless that was done in this entry.
    #[inline(always)]
    pub(crate) fn pay_up(&mut self) {
        if self.unsettled {
            self.unsettled = false;
            self.settle();
        }
    }

    #[inline(never)]
    fn settle(&mut self) {
        let now = self.now;
        if self.charge_plainly(now) {
            return;
        }
        let vcpu = self.scheduler.payer;
        let owed = core::mem::take(&mut self.scheduler.owed);
        let elapsed = now - self.scheduler.paid_since;
        self.scheduler.close_own(&mut self.threads, self.scheduler.running, now);
        self.scheduler.paid_since = self.scheduler.paid_since.max(now);
        let v = &mut self.vcpus[vcpu];
        if self.scheduler.eligible >> (v.rank % 64) & 1 == 0 {
            v.extra += elapsed;
            return;
        }
        v.charge(elapsed, now);
        if owed > Nanos::ZERO {
            v.levy(owed);
        } else if now < self.scheduler.call_at {
            // Neither its budget nor the part with its deadline has ended.
            return;
        }
        if v.by_deadline || v.available(now) == Nanos::ZERO {
            self.reassess(vcpu);
        }
    }

    /// Charges who pays up to `now`, if some of the budget at hand is left then: nothing has to be
    /// decided for its VCPU. Returns whether that was done.
    #[inline(never)]
    pub(crate) fn charge_plainly(&mut self, now: Nanos) -> bool {
        let s = &mut self.scheduler;
        let elapsed = now - s.paid_since;
        let due = elapsed + s.owed;
        if due == Nanos::ZERO {
            return true;
        }
        // A VCPU in the background pays nothing.
        if !s.plain || !self.vcpus[s.payer].try_charge(elapsed, due, now) {
            return false;
        }
        s.close_own(&mut self.threads, s.running, now);
        (s.paid_since, s.owed) = (s.paid_since.max(now), Nanos::ZERO);
        true
    }

    /// From now on the VCPU of the chosen place pays.
    #[inline(never)]
    pub(crate) fn fund(&mut self, next: Nanos, rung: u64) {
        let place = self.scheduler.place;
        let vcpu = if place.is_some() { self.threads[place].vcpu } else { Id::NONE };
        let before = core::mem::replace(&mut self.scheduler.payer, vcpu);
        let since = core::mem::replace(&mut self.scheduler.paid_since, self.now);
        self.scheduler.call_at = Nanos::FOREVER;
        self.scheduler.owed = Nanos::ZERO;
        let grace = core::mem::take(&mut self.scheduler.grace);
        let prepaid = core::mem::take(&mut self.scheduler.prepaid);
        self.scheduler.plain = vcpu.is_none() && self.scheduler.eligible == 0;
        if vcpu.is_none() {
            return;
        }
        let rings = if rung == 0 { Nanos::ZERO } else { self.charge_rings(rung, vcpu) };
        let (s, now) = (&mut self.scheduler, self.now);
        if s.eligible >> (self.vcpus[vcpu].rank % 64) & 1 == 0 {
            return;
        }
        s.plain = true;
        let spared = if before != vcpu {
            let accounts = (&self.fees, &mut self.promise);
            let spared;
            (spared, s.owed) = s.spare_switch(&mut self.vcpus, accounts, (before, vcpu), now);
            spared
        } else {
            // The rest of a switch stays spared.
            s.paid_since = since.max(now);
            grace
        };
        let s = &mut self.scheduler;
        s.paid_since += spared + rings + prepaid;
        let left = self.vcpus[vcpu].available(now) - s.owed;
        s.call_at = next.min(s.paid_since + left);
    }

    /// The end of a run: charge what has run up to `now`.
    pub fn close_accounts(&mut self, now: Nanos) {
        self.now = now;
        self.unsettled = self.scheduler.payer.is_some();
        self.pay_up();
    }

    /// The words of `Record::Vcpu` for a VCPU that ever existed.
    #[must_use]
    pub fn account_of(&self, id: VcpuId) -> Option<[u64; 8]> {
        let v = &self.vcpus[id];
        let (overrun, late, merges) = match &v.server {
            Server::Main(server) => {
                let c = server.counters();
                (c.overrun_max, c.late_max, c.merges)
            }
            Server::Io(server, _) => {
                let c = server.counters();
                (c.overrun_max, c.late_max, 0)
            }
        };
        let place = u64::from(id.index());
        let (depleted, merges) = (u64::from(v.depleted), u64::from(merges));
        let wakes = u64::from(v.wakes_max);
        (v.generation > 0)
            .then_some([place, v.used.0, v.extra.0, depleted, overrun.0, late.0, merges, wakes])
    }

    /// The words of `Record::VcpuTerms` for a VCPU that ever existed.
    #[must_use]
    pub fn terms_of(&self, id: VcpuId) -> Option<[u64; 8]> {
        let v = &self.vcpus[id];
        let (budget, share, lockout) = match &v.server {
            Server::Main(server) => (server.budget(), 0, Nanos::ZERO),
            Server::Io(server, period) => {
                (server.quantum(*period), server.share(), server.counters().lockout_max)
            }
        };
        // Only its maker may use a private one.
        let private = v.key == Key::PRIVATE.0;
        let maker = if private { u64::from(v.allowed.trailing_zeros()) } else { u64::MAX };
        let (place, share) = (u64::from(id.index()), u64::from(share));
        let (period, slowest, changes) = (v.period().0, v.slowest.0, u64::from(v.changes));
        (v.generation > 0)
            .then_some([place, maker, budget.0, period, share, slowest, lockout.0, changes])
    }
}

impl Scheduler {
    /// Another VCPU pays than before. Returns what it is spared of the switch, and what it pays for
    /// the way back to the one before.
    #[inline(always)]
    pub(crate) fn spare_switch(
        &mut self,
        vcpus: &mut Pool<'_, Vcpu>,
        (fees, promise): (&Fees, &mut Promise),
        (before, vcpu): (VcpuId, VcpuId),
        now: Nanos,
    ) -> (Nanos, Nanos) {
        let v = &mut vcpus[vcpu];
        let back = core::mem::take(&mut v.comes_back);
        let planned = !back && v.take_grace(now);
        let mut owed = Nanos::ZERO;
        if !back && before.is_some() {
            let preempted = &mut vcpus[before];
            preempted.comes_back = self.eligible >> (preempted.rank % 64) & 1 == 1;
            // A preempted VCPU does not pay for a switch that no plan counts.
            if preempted.comes_back && !planned {
                owed = fees.switch;
                promise.levied += owed;
            }
        }
        (if back || planned { fees.switch } else { Nanos::ZERO }, owed)
    }
}
