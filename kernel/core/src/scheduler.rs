//! Chooses the running thread: the first ready thread of the most urgent VCPU that has budget; if
//! there is none, the first of those without a VCPU; and if there is none of these either, a VCPU
//! without budget that may run in the background.
//!
//! One per core. VCPUs are *ranked*: the queues by earliest deadline come first, most urgent queue
//! first, then the one queue by period (CSD). Rate-monotonic scheduling is the case without
//! deadline queues, and earliest deadline first the case without the other. A VCPU is a bit of a
//! word, so the first one is found by one instruction; among those of one deadline queue the
//! earliest deadline is looked for. A rank changes only when a VCPU is created or changed.

use crate::ids::{ThreadId, VcpuId};
use crate::objects::ready::Ready;
use crate::objects::thread::Thread;
use crate::objects::vcpu::Vcpu;
use crate::pool::{Id, Pool};
use crate::walks::walk;
use diapason_abi::Nanos;
use diapason_abi::archive::VCPUS_MAX;
use diapason_costs::Round;

/// Most VCPUs of a core.
const RANKS: usize = VCPUS_MAX as usize;
const _: () = assert!(RANKS == u64::BITS as usize);

/// The candidates of the core, and its choice. The fields used most come first.
#[repr(C)]
pub struct Scheduler {
    pub running: ThreadId,
    /// In whose place: its own, or that of a thread that waits for it.
    pub place: ThreadId,
    /// The VCPU that pays for it.
    pub(crate) payer: VcpuId,
    /// How many VCPUs are ranked.
    pub(crate) ranks: u8,
    /// The payer does not change if another place on the same VCPU follows the present one: that
    /// VCPU had budget when it began, or no VCPU has anything to do and none pays.
    pub(crate) plain: bool,
    /// Ranks of the VCPUs that have ready threads and budget.
    pub(crate) eligible: u64,
    /// Since when the one that runs does.
    pub since: Nanos,
    /// Ready threads without a VCPU.
    pub(crate) unreserved: Ready,
    /// Ranks of the VCPUs that have ready threads and no budget, but may run in the background.
    pub(crate) background: u64,
    pub idle: Nanos,
    /// Since when the VCPU pays.
    pub(crate) paid_since: Nanos,
    /// When its budget ends or an alarm is due that may interrupt it; for ever if no budget is
    /// used.
    pub(crate) call_at: Nanos,
    /// Time that the VCPU pays besides, for the switch back to the VCPU that it preempted.
    pub(crate) owed: Nanos,
    /// Time of this entry that the VCPU which goes on does not pay.
    pub(crate) grace: Nanos,
    /// Time of this entry that another VCPU has paid already.
    pub(crate) prepaid: Nanos,
    /// The VCPU of each rank, the most urgent last.
    pub(crate) by_rank: [VcpuId; RANKS],
    /// For each rank, those that are chosen from by deadline together with it.
    peers: [u64; RANKS],
}

impl Scheduler {
    /// Returns a scheduler without ready threads.
    #[must_use]
    pub const fn new() -> Scheduler {
        Scheduler {
            eligible: 0,
            background: 0,
            by_rank: [Id::NONE; RANKS],
            ranks: 0,
            plain: true,
            peers: [0; RANKS],
            unreserved: Ready::EMPTY,
            running: ThreadId::NONE,
            place: ThreadId::NONE,
            since: Nanos::ZERO,
            idle: Nanos::ZERO,
            payer: Id::NONE,
            paid_since: Nanos::ZERO,
            call_at: Nanos::FOREVER,
            grace: Nanos::ZERO,
            prepaid: Nanos::ZERO,
            owed: Nanos::ZERO,
        }
    }

    /// Returns whether the running thread is alone at its priority.
    #[inline(always)]
    pub fn alone(&self, threads: &Pool<'_, Thread>) -> bool {
        threads[self.running].next == self.running
    }

    /// The ready threads of the VCPU that pays, or those without one.
    #[inline(always)]
    pub(crate) fn queue<'a>(&'a mut self, vcpus: &'a mut Pool<'_, Vcpu>) -> &'a mut Ready {
        if self.payer.is_none() { &mut self.unreserved } else { &mut vcpus[self.payer].ready }
    }

    /// The running thread has used budget up to now.
    #[inline(always)]
    pub(crate) fn close_own(&self, threads: &mut Pool<'_, Thread>, running: ThreadId, now: Nanos) {
        let own = now - self.since.max(self.paid_since);
        let paid = &mut threads[running].paid;
        // No run lasts five centuries.
        paid.0 = paid.0.wrapping_add(own.0);
    }

    /// The place that somebody should run in.
    #[inline(always)]
    pub fn pick(&self, vcpus: &Pool<'_, Vcpu>) -> ThreadId {
        if !VcpuId::EXIST || self.eligible == 0 {
            let first = self.unreserved.first();
            if first.is_some() || !VcpuId::EXIST || self.background == 0 {
                return first;
            }
            let rank = self.background.ilog2();
            return vcpus[self.by_rank[rank as usize % RANKS]].ready.first();
        }
        vcpus[self.most_urgent(vcpus)].ready.first()
    }

    /// Returns the VCPU with budget that should run.
    #[inline(never)]
    fn most_urgent(&self, vcpus: &Pool<'_, Vcpu>) -> VcpuId {
        let first = self.eligible.ilog2() as usize % RANKS;
        let mut best = self.by_rank[first];
        let mut rest = self.eligible & self.peers[first];
        while rest != 0 {
            let rank = rest.ilog2() as usize % RANKS;
            rest &= !(1 << rank);
            walk(Round::Compare, 1);
            if vcpus[self.by_rank[rank]].deadline < vcpus[best].deadline {
                best = self.by_rank[rank];
            }
        }
        best
    }

    /// Puts a VCPU among the ranked, before those that are less urgent. Of equals the one declared
    /// first is the more urgent, as the analysis has it.
    pub(crate) fn rank(&mut self, vcpus: &mut Pool<'_, Vcpu>, vcpu: VcpuId) {
        let mut at = self.ranks as usize % RANKS;
        self.ranks += 1;
        let key = |v: VcpuId| (vcpus[v].urgency, !v.index());
        while at > 0 && key(self.by_rank[at - 1]) > key(vcpu) {
            self.by_rank[at] = self.by_rank[at - 1];
            at -= 1;
        }
        self.by_rank[at] = vcpu;
        self.renumber(vcpus);
    }

    /// Takes a VCPU out of the ranked.
    pub(crate) fn unrank(&mut self, vcpus: &mut Pool<'_, Vcpu>, vcpu: VcpuId) {
        self.ranks = self.ranks.saturating_sub(1);
        for at in vcpus[vcpu].rank as usize..self.ranks as usize {
            self.by_rank[at % RANKS] = self.by_rank[(at + 1) % RANKS];
        }
        self.renumber(vcpus);
    }

    fn renumber(&mut self, vcpus: &mut Pool<'_, Vcpu>) {
        let (eligible, background) = (self.eligible, self.background);
        (self.eligible, self.background) = (0, 0);
        let (mut queue, mut members) = (u8::MAX, 0);
        for at in 0..(self.ranks as usize).min(RANKS) {
            let v = &mut vcpus[self.by_rank[at]];
            self.eligible |= (eligible >> (v.rank % 64) & 1) << at;
            self.background |= (background >> (v.rank % 64) & 1) << at;
            v.rank = at as u8;
            members = if v.queue == queue { members | 1 << at } else { 1 << at };
            queue = v.queue;
            // One is asked only while none above it is eligible, so it need not know those.
            self.peers[at] = if v.by_deadline { members } else { 1 << at };
        }
    }

    /// The VCPU of a rank.
    pub(crate) fn ranked(&self, rank: u8) -> VcpuId {
        self.by_rank[usize::from(rank) % RANKS]
    }

    /// The least urgent rank of which a VCPU that becomes ready may preempt one of `rank`: by
    /// period the next above it, by deadline the first of its queue.
    #[inline(always)]
    pub(crate) fn lowest_above(&self, rank: u8) -> u8 {
        let lowest = self.peers[usize::from(rank) % RANKS].trailing_zeros() as u8;
        if lowest == rank { rank + 1 } else { lowest }
    }

    /// Charges the time since the last change to the running thread, and lets `next` run.
    #[inline(always)]
    pub fn switch(&mut self, threads: &mut Pool<'_, Thread>, next: ThreadId, now: Nanos) {
        // The clock does not run backwards, and no run lasts five centuries.
        let elapsed = now.0.wrapping_sub(self.since.0);
        let used =
            if self.running.is_some() { &mut threads[self.running].used } else { &mut self.idle };
        used.0 = used.0.wrapping_add(elapsed);
        self.running = next;
        self.since = now;
    }

    /// Lets `next` run instead of `running`, if who pays is the same before and after.
    #[inline(always)]
    pub(crate) fn pass(
        &mut self,
        threads: &mut Pool<'_, Thread>,
        running: ThreadId,
        next: ThreadId,
        now: Nanos,
    ) {
        if self.payer.is_some() {
            self.close_own(threads, running, now);
        }
        let used = &mut threads[running].used;
        used.0 = used.0.wrapping_add(now.0.wrapping_sub(self.since.0));
        (self.running, self.since) = (next, now);
    }

    /// As [`Scheduler::pass`]. Returns the ready threads of the VCPU that pays, or those without
    /// one.
    #[inline(always)]
    pub(crate) fn pass_among<'a>(
        &'a mut self,
        vcpus: &'a mut Pool<'_, Vcpu>,
        threads: &mut Pool<'_, Thread>,
        (running, next): (ThreadId, ThreadId),
        now: Nanos,
    ) -> &'a mut Ready {
        let queue = if self.payer.is_none() {
            &mut self.unreserved
        } else {
            self.close_own(threads, running, now);
            &mut vcpus[self.payer].ready
        };
        let used = &mut threads[running].used;
        used.0 = used.0.wrapping_add(now.0.wrapping_sub(self.since.0));
        (self.running, self.since) = (next, now);
        queue
    }
}
