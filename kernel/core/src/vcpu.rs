//! Virtual CPUs: budgeted shares of the core that threads run on.
//!
//! A Main VCPU is a sporadic server, an I/O VCPU a PIBS server that inherits the shortest period of
//! the Main VCPUs it serves (`lib/vcpu`). Several threads may share one; among them the most urgent
//! runs. A thread without a VCPU runs when no VCPU with budget wants to. When a thread helps
//! another (`helping`), it runs on the VCPU of that other one: bandwidth is inherited with the
//! place.
//!
//! The VCPU that pays is charged at each entry. The thread that runs after an entry pays for it,
//! but for what `plan` promises besides the budgets of the described VCPUs: a switch, and a
//! device's interrupt. There are no more of these than `plan` counts. It counts two switches, there
//! and back, for each place in a replenishment list and each wake-up of an I/O VCPU. So a Main VCPU
//! is spared one in each such part of its period, an I/O VCPU one in each `interval`, and a VCPU
//! that preempts another one brings that the way back. Interrupts have their distance.

use crate::kernel::Kernel;
use crate::pool::{FREE, Id};
use crate::scheduler::Ready;
use crate::thread::ThreadId;
use diapason_abi::archive::{PERIOD_MAX, REPLENISHMENTS_MAX, WAKES_MAX};
use diapason_abi::{Key, Nanos};
use diapason_vcpu::admission::Reservation;
use diapason_vcpu::{Pibs, SporadicServer};

/// Most switches to a VCPU in a period, or an I/O VCPU's interval, that a plan counts.
const WAYS: usize = 8;
const _: () = assert!(REPLENISHMENTS_MAX as usize <= WAYS && WAKES_MAX as usize <= WAYS);

/// The id of a VCPU.
pub type VcpuId = Id<Vcpu>;

/// The server that gives a VCPU its budget.
#[derive(Clone, Copy, Debug)]
pub enum Server {
    /// Of a Main VCPU.
    Main(SporadicServer),
    /// Of an I/O VCPU, with the period it inherits.
    Io(Pibs, Nanos),
}

/// A slot for a VCPU.
pub struct Vcpu {
    /// Its handle, or [`FREE`] while it does not exist.
    pub handle: u64,
    pub(crate) generation: u32,
    pub(crate) allowed: u64,
    pub(crate) key: u64,
    pub server: Server,
    pub(crate) ready: Ready,
    /// Threads that live on it.
    pub(crate) threads: u16,
    /// Its place in the order of the core.
    pub(crate) rank: u8,
    /// Its queue, and whether that goes by deadline.
    pub(crate) queue: u8,
    pub(crate) by_deadline: bool,
    /// True if it may run without budget while no other VCPU wants to run.
    pub(crate) background: bool,
    /// How urgent its threads are among all that wait for one thing, and what it is ranked by.
    pub(crate) urgency: u64,
    /// When it has budget: the deadline of that.
    pub(crate) deadline: Nanos,
    /// Its process ended; what was promised to it is not given back yet.
    pub(crate) abandoned: bool,
    /// I/O: the Main VCPUs it serves.
    pub(crate) serves: u64,
    /// Time used of the budget, and in the background.
    pub used: Nanos,
    /// Time used in the background.
    pub extra: Nanos,
    /// How often threads of it had to wait for budget.
    pub depleted: u32,
    /// Most often woken within one of its periods, and what that is counted with.
    pub(crate) wakes_max: u16,
    wakes: u16,
    wakes_until: Nanos,
    /// Switches to it that a plan counts: places in its list, or an I/O VCPU's interval. None of
    /// those made while the system runs: no plan knows of them.
    pub(crate) places: u8,
    pub(crate) interval: Nanos,
    /// Until when each of these is taken, the next first.
    spared: [Nanos; WAYS],
    spared_next: u8,
    /// How long a taken one is.
    spared_for: Nanos,
    /// It was preempted by a VCPU whose way there and back is counted.
    comes_back: bool,
    /// The largest budget and the shortest period that were admitted with the system, if programs
    /// may set it to any in between.
    pub(crate) most: Option<Reservation>,
    /// The longest period it ever had, and how often its budget or period was changed.
    pub(crate) slowest: Nanos,
    pub(crate) changes: u16,
}

impl Vcpu {
    /// A slot that nobody may use.
    pub const EMPTY: Vcpu = Vcpu {
        handle: FREE,
        generation: 0,
        allowed: 0,
        key: 0,
        server: Server::Main(SporadicServer::EMPTY),
        ready: Ready::EMPTY,
        threads: 0,
        rank: 0,
        queue: 0,
        by_deadline: false,
        background: false,
        urgency: 0,
        deadline: Nanos::FOREVER,
        abandoned: false,
        serves: 0,
        used: Nanos::ZERO,
        extra: Nanos::ZERO,
        depleted: 0,
        wakes_max: 0,
        wakes: 0,
        wakes_until: Nanos::ZERO,
        places: 0,
        interval: Nanos::ZERO,
        spared: [Nanos::ZERO; WAYS],
        spared_next: 0,
        spared_for: Nanos::ZERO,
        comes_back: false,
        most: None,
        slowest: Nanos::ZERO,
        changes: 0,
    };

    /// The period it has, or inherits.
    #[must_use]
    pub fn period(&self) -> Nanos {
        match &self.server {
            Server::Main(server) => server.period(),
            Server::Io(_, period) => *period,
        }
    }

    /// Returns the budget that it can use now, at its present deadline.
    pub(crate) fn available(&self, now: Nanos) -> Nanos {
        match &self.server {
            Server::Main(server) if self.by_deadline => server.available_by_deadline(now),
            Server::Main(server) => server.available(now),
            Server::Io(server, _) => server.available(now),
        }
    }

    /// Returns when there will be budget. An archive may have a share so small that there never is.
    pub(crate) fn eligible_at(&self) -> Nanos {
        match &self.server {
            Server::Main(server) => server.eligible_at(),
            Server::Io(server, _) if server.quantum(server.period()) == Nanos::ZERO => {
                Nanos::FOREVER
            }
            Server::Io(server, _) => server.eligible_at(),
        }
    }

    /// The shortest period that it may have without being admitted again.
    pub(crate) fn promised_period(&self) -> Nanos {
        self.most.map_or(self.period(), |most| most.period)
    }

    /// Returns whether the VCPU holds a share of the core.
    pub(crate) fn is_promised(&self) -> bool {
        self.handle != FREE || self.abandoned
    }

    /// There is something to do since `now`.
    pub(crate) fn wake_server(&mut self, now: Nanos) {
        match &mut self.server {
            Server::Main(server) => server.wake(now),
            Server::Io(server, period) => server.wake(now, *period),
        }
    }

    fn wake(&mut self, now: Nanos) {
        self.wake_server(now);
        if now >= self.wakes_until {
            self.wakes_until = now + self.period();
            self.wakes = 0;
        }
        self.wakes = self.wakes.saturating_add(1);
        self.wakes_max = self.wakes_max.max(self.wakes);
    }

    /// Takes one of the switches to this VCPU that `plan` counts. False if none is left.
    fn take_grace(&mut self, now: Nanos) -> bool {
        let next = &mut self.spared[usize::from(self.spared_next) % WAYS];
        let left = self.places > 0 && now >= *next;
        if left {
            *next = now + self.spared_for;
            self.spared_next += 1;
            if self.spared_next >= self.places {
                self.spared_next = 0;
            }
        }
        left
    }

    /// The same if it is woken and does not run yet: then the way is spared when it does.
    pub(crate) fn take_way(&mut self, now: Nanos) -> bool {
        let taken = !self.comes_back && self.take_grace(now);
        self.comes_back |= taken;
        taken
    }

    /// No window of any length has more switches that it need not pay for than the plan counts for
    /// that length. Later changes of its period are not in the plan, and change nothing here.
    pub(crate) fn find_graces(&mut self) {
        self.spared_for = match &self.server {
            Server::Main(server) => server.period(),
            Server::Io(..) => self.interval,
        };
    }

    fn sleep(&mut self, now: Nanos) {
        self.comes_back = false;
        match &mut self.server {
            Server::Main(server) => server.block(now),
            Server::Io(server, _) => server.stop(),
        }
    }

    fn charge(&mut self, used: Nanos, now: Nanos) {
        self.used += used;
        match &mut self.server {
            Server::Main(server) => server.charge(used, now),
            Server::Io(server, _) => server.charge(used, now),
        }
    }

    /// Budget goes for what others are spared.
    pub(crate) fn levy(&mut self, amount: Nanos) {
        self.used += amount;
        match &mut self.server {
            Server::Main(server) => server.levy(amount),
            Server::Io(server, _) => server.levy(amount),
        }
    }

    fn find_deadline(&mut self) {
        self.deadline = match &self.server {
            Server::Main(server) => server.deadline(),
            Server::Io(server, _) => server.deadline(),
        };
    }

    /// Queue first, then period, and an I/O VCPU before those with its period.
    pub(crate) fn find_urgency(&mut self) {
        let io = u64::from(matches!(self.server, Server::Io(..)));
        let shortness = (PERIOD_MAX - self.period()).0;
        let queue = u64::from(u8::MAX - self.queue);
        self.urgency = (queue << 42 | shortness << 1 | io) << 6;
    }
}

impl Kernel<'_> {
    /// A thread of this VCPU became ready.
    #[inline(never)]
    pub(crate) fn enter_vcpu(&mut self, vcpu: VcpuId, thread: ThreadId) {
        let v = &mut self.vcpus[vcpu];
        let idle = v.ready.is_empty();
        v.ready.insert_back(&mut self.threads, thread);
        if idle {
            v.wake(self.now);
            self.refresh(vcpu);
        }
    }

    /// A thread of this VCPU is no longer ready.
    #[inline(never)]
    pub(crate) fn leave_vcpu(&mut self, vcpu: VcpuId, thread: ThreadId) {
        let v = &mut self.vcpus[vcpu];
        v.ready.remove(&mut self.threads, thread);
        if v.ready.is_empty() {
            v.sleep(self.now);
            self.refresh(vcpu);
        }
    }

    /// Computes anew whether and when a VCPU may run, after its threads or its budget changed.
    pub(crate) fn refresh(&mut self, vcpu: VcpuId) {
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

    /// Charges whoever paid up to now.
    #[inline(never)]
    pub(crate) fn settle(&mut self) {
        let (vcpu, now) = (self.scheduler.payer, self.now);
        let owed = core::mem::take(&mut self.scheduler.owed);
        let elapsed = now - self.scheduler.paid_since;
        if elapsed + owed == Nanos::ZERO {
            return;
        }
        self.scheduler.paid_since = self.scheduler.paid_since.max(now);
        self.threads[self.scheduler.running].paid += elapsed;
        let v = &mut self.vcpus[vcpu];
        if self.scheduler.eligible >> (v.rank % 64) & 1 == 0 {
            v.extra += elapsed;
            return;
        }
        v.charge(elapsed, now);
        v.levy(owed);
        if v.by_deadline || v.available(now) == Nanos::ZERO {
            self.refresh(vcpu);
        }
    }

    /// From now on the VCPU of the chosen place pays.
    #[inline(never)]
    pub(crate) fn fund(&mut self, next: Nanos, rung: u64) {
        let place = self.scheduler.place;
        let vcpu = if place.is_some() { self.threads[place].vcpu } else { Id::NONE };
        let before = core::mem::replace(&mut self.scheduler.payer, vcpu);
        self.scheduler.paid_since = self.now;
        self.scheduler.call_at = Nanos::FOREVER;
        self.scheduler.owed = Nanos::ZERO;
        if vcpu.is_none() {
            return;
        }
        let rings = if rung == 0 { Nanos::ZERO } else { self.charge_rings(rung, vcpu) };
        let (s, now) = (&mut self.scheduler, self.now);
        let v = &mut self.vcpus[vcpu];
        if s.eligible >> (v.rank % 64) & 1 == 0 {
            return;
        }
        let mut spared = s.grace;
        if before != vcpu {
            let back = core::mem::take(&mut v.comes_back);
            let planned = !back && v.take_grace(now);
            spared = if back || planned { self.fees.switch } else { Nanos::ZERO };
            if !back && before.is_some() {
                let preempted = &mut self.vcpus[before];
                preempted.comes_back = s.eligible >> (preempted.rank % 64) & 1 == 1;
                // A preempted VCPU does not pay for a switch that no plan counts.
                if preempted.comes_back && !planned {
                    s.owed = self.fees.switch;
                }
            }
        }
        s.paid_since += spared + rings;
        let left = self.vcpus[vcpu].available(now) - s.owed;
        s.call_at = next.min(s.paid_since + left);
    }

    /// The end of a run: charge what has run up to `now`.
    pub fn close_accounts(&mut self, now: Nanos) {
        self.now = now;
        if self.scheduler.payer.is_some() {
            self.settle();
        }
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
