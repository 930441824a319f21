//! Alarms: which may interrupt the running thread, and which VCPU pays for it.
//!
//! An alarm rings only if the VCPU of its thread could run then: that VCPU has budget, and is more
//! urgent than the one that runs, or may be (by deadline). All others are held back, those of
//! threads without a VCPU until no VCPU wants to run. An alarm that is held back is not lost: it
//! rings in the entry in which it may, before the next thread is chosen, and its VCPU counts as
//! woken when it was due.
//!
//! The VCPU that an alarm wakes mostly preempts the one that runs, and pays for the way there and
//! back (`Kernel::fund`). If the other one goes on, because its deadline is earlier, that one is
//! spared the interrupt, and the one that was woken pays for it, too. So nobody's budget pays for
//! the alarms of others.

use crate::alarms::{PLAIN, URGENT};
use crate::ids::{ThreadId, VcpuId};
use crate::kernel::Kernel;
use crate::objects::alarm::Group;
use crate::pool::Id;
use crate::walks::walk;
use diapason_abi::Nanos;
use diapason_costs::Round;

/// Most alarms that ring before a thread is chosen, where there are VCPUs: each may change who is
/// chosen. More that are due make the machine call again, and so do all after a long path.
const RINGS_PER_CHOICE: usize = 2;

impl Kernel<'_> {
    /// This is a machine whose kernel takes no time: nobody pays for it.
    #[cfg(any(test, feature = "host"))]
    pub fn takes_no_time(&mut self) {
        self.fees = crate::promise::Fees::default();
    }

    /// The group of a thread's alarms.
    fn group(&self, thread: ThreadId) -> Group {
        let vcpu = self.threads[thread].vcpu;
        if vcpu.is_some() { vcpu.index() as Group } else { PLAIN }
    }

    /// Wakes a thread that has no alarm at `due`. A due time of for ever sets nothing.
    #[inline(always)]
    pub(crate) fn set_alarm(&mut self, thread: ThreadId, due: Nanos) {
        if due < Nanos::FOREVER {
            let group = self.group(thread);
            self.alarms.set(&mut self.threads, thread, due, group);
            self.alarm_changed(thread);
        }
    }

    /// Forgets the alarm of a thread, if it has one.
    #[inline(always)]
    pub(crate) fn cancel_alarm(&mut self, thread: ThreadId) {
        if self.threads[thread].alarm.is_set() {
            self.alarms.cancel(&mut self.threads, thread);
            self.alarm_changed(thread);
        }
    }

    #[inline(always)]
    fn alarm_changed(&mut self, thread: ThreadId) {
        let vcpu = self.threads[thread].vcpu;
        if vcpu.is_some() {
            self.wake_later(vcpu);
        }
    }

    /// Sets when this VCPU, whose alarms changed, is to be woken if none of its threads is ready.
    #[inline(never)]
    fn wake_later(&mut self, vcpu: VcpuId) {
        self.pay_up();
        if self.vcpus[vcpu].ready.is_empty() {
            self.find_wake(vcpu);
        }
    }

    #[inline(never)]
    pub(crate) fn find_wake(&mut self, vcpu: VcpuId) {
        let (v, rank) = (&self.vcpus[vcpu], self.vcpus[vcpu].rank);
        let at = self.wake_of(vcpu).unwrap_or(v.eligible_at());
        self.alarms.wake(&self.threads, rank, at);
    }

    /// Returns when a VCPU without a ready thread can and wants to be woken; else none.
    pub(crate) fn wake_of(&self, vcpu: VcpuId) -> Option<Nanos> {
        let v = &self.vcpus[vcpu];
        if !v.ready.is_empty() {
            return None;
        }
        let due = self.alarms.first_due(&self.threads, vcpu.index() as Group);
        Some(due.max(v.eligible_at()))
    }

    /// Gives a VCPU a rank. When it wants to be woken is found next.
    #[inline(never)]
    pub(crate) fn rank(&mut self, vcpu: VcpuId) {
        self.pay_up();
        self.quiet = true;
        self.scheduler.rank(&mut self.vcpus, vcpu);
        walk(Round::Rank, self.vcpus.len().into());
        let (rank, ranks) = (self.vcpus[vcpu].rank, self.scheduler.ranks);
        self.alarms.wakes.insert(rank, ranks);
    }

    /// Gives a VCPU another rank.
    #[inline(never)]
    pub(crate) fn move_rank(&mut self, vcpu: VcpuId) {
        self.quiet = true;
        let from = self.vcpus[vcpu].rank;
        walk(Round::Rank, 2 * usize::from(self.vcpus.len()));
        self.scheduler.unrank(&mut self.vcpus, vcpu);
        self.scheduler.rank(&mut self.vcpus, vcpu);
        self.alarms.wakes.shift(from, self.vcpus[vcpu].rank);
    }

    /// Takes the rank of a VCPU away.
    #[inline(never)]
    pub(crate) fn unrank(&mut self, vcpu: VcpuId) {
        self.quiet = true;
        let rank = self.vcpus[vcpu].rank;
        walk(Round::Rank, self.vcpus.len().into());
        self.scheduler.unrank(&mut self.vcpus, vcpu);
        self.alarms.wakes.remove(rank, self.scheduler.ranks);
        self.alarms.note(&self.threads);
    }

    /// Rings the alarms that may ring now, and settles the payer of the next thread.
    #[inline(never)]
    pub(crate) fn attend(&mut self, mut run: ThreadId) -> ThreadId {
        let (mut next, mut rung) = (self.next_ring(), 0u64);
        let most = if self.quiet { 0 } else { RINGS_PER_CHOICE };
        for _ in 0..most {
            if next > self.now {
                break;
            }
            rung |= self.ring_next();
            run = self.choose_again();
            next = self.next_ring();
        }
        self.fund(next, rung);
        run
    }

    #[inline(never)]
    fn choose_again(&mut self) -> ThreadId {
        self.chosen()
    }

    /// The VCPU of the chosen place, if its budget is what is used.
    fn funded(&self) -> VcpuId {
        let place = self.scheduler.place;
        if self.scheduler.eligible == 0 || place.is_none() {
            return Id::NONE;
        }
        self.threads[place].vcpu
    }

    /// Returns when the next alarm is due that may interrupt the chosen place.
    #[inline(always)]
    fn next_ring(&self) -> Nanos {
        let vcpu = self.funded();
        if vcpu.is_none() {
            return self.alarms.next_due();
        }
        self.next_ring_for(vcpu)
    }

    /// Returns when the next alarm is due that may interrupt a VCPU that uses its budget.
    #[inline(always)]
    pub(crate) fn next_ring_for(&self, vcpu: VcpuId) -> Nanos {
        self.next_ring_with(vcpu, self.vcpus[vcpu].rank, false)
    }

    /// As [`Kernel::next_ring_for`] for a VCPU of this rank, or without the first alarm of its own
    /// threads (`rings`).
    #[inline(always)]
    pub(crate) fn next_ring_with(&self, vcpu: VcpuId, rank: u8, rings: bool) -> Nanos {
        let above = self.alarms.wakes.from(self.scheduler.lowest_above(rank));
        let own = vcpu.index() as Group;
        let own = match rings {
            true => self.alarms.second_due(&self.threads, own),
            false => self.alarms.first_due(&self.threads, own),
        };
        above.min(own).min(self.alarms.first_due(&self.threads, URGENT))
    }

    /// Returns the thread whose alarm is due and rings next, if it has no VCPU, or its VCPU pays or
    /// has nothing to do and goes by period; else nobody.
    #[inline(always)]
    pub(crate) fn first_to_ring(&self, now: Nanos) -> ThreadId {
        let due = |group| self.alarms.first_due(&self.threads, group) <= now;
        let payer = self.scheduler.payer;
        let own = if payer.is_some() { payer.index() as Group } else { PLAIN };
        if due(URGENT) {
            return ThreadId::NONE;
        }
        if due(own) {
            return self.alarms.first(own);
        }
        let Some(rank) = self.alarms.wakes.most_urgent_due(now) else { return ThreadId::NONE };
        let vcpu = self.scheduler.ranked(rank);
        let v = &self.vcpus[vcpu];
        if v.by_deadline || !v.ready.is_empty() {
            return ThreadId::NONE;
        }
        self.alarms.first(vcpu.index() as Group)
    }

    /// Rings one alarm that is due and may ring. Returns the bit of the VCPU that was woken.
    #[inline(never)]
    fn ring_next(&mut self) -> u64 {
        let funded = self.funded();
        let own = if funded.is_some() { funded.index() as Group } else { PLAIN };
        for group in [URGENT, own] {
            if self.alarms.first_due(&self.threads, group) <= self.now {
                let thread = self.alarms.first(group);
                self.cancel_alarm(thread);
                self.timed_out(thread);
                return 0;
            }
        }
        let lowest = match funded.is_some() {
            true => self.scheduler.lowest_above(self.vcpus[funded].rank),
            false => 0,
        };
        let due = self.alarms.wakes.most_urgent_due(self.now);
        let Some(rank) = due.filter(|rank| *rank >= lowest) else { return 0 };
        let vcpu = self.scheduler.ranked(rank);
        if self.vcpus[vcpu].ready.is_empty() {
            let thread = self.alarms.first(vcpu.index() as Group);
            let due = self.threads[thread].alarm.due();
            self.vcpus[vcpu].wake_server(due);
            self.alarms.cancel(&mut self.threads, thread);
            self.timed_out(thread);
        } else {
            self.refresh(vcpu);
        }
        1 << (vcpu.index() & 63)
    }

    /// VCPUs whose alarms rang pay for that, unless they run now or the plan counts their way, and
    /// `payer` does not. Returns what that one is spared.
    #[inline(never)]
    pub(crate) fn charge_rings(&mut self, mut rung: u64, payer: VcpuId) -> Nanos {
        let mut spared = Nanos::ZERO;
        while let Some(index) = rung.checked_ilog2() {
            rung &= !(1 << index);
            let vcpu = Id::new(index as u16);
            if vcpu != payer {
                spared += self.fees.interrupt;
                if !self.vcpus[vcpu].take_way(self.now) {
                    self.levy(vcpu, self.fees.interrupt);
                }
            }
        }
        spared
    }

    /// A VCPU pays in advance for what others are spared for its sake.
    #[inline(never)]
    pub(crate) fn levy(&mut self, vcpu: VcpuId, amount: Nanos) {
        self.pay_up();
        self.promise.levied += amount;
        self.vcpus[vcpu].levy(amount);
        self.refresh(vcpu);
    }
}
