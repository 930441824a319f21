//! Virtual CPUs: budgeted shares of the core that threads run on.
//!
//! A Main VCPU is a sporadic server, an I/O VCPU a PIBS server that inherits the shortest period of
//! the Main VCPUs it serves (`lib/vcpu`). Several threads may share one; among them the most urgent
//! runs. A thread without a VCPU runs when no VCPU with budget wants to. When a thread helps another
//! (`helping`), it runs on the VCPU of that other one: bandwidth is inherited with the place.
//!
//! The VCPU that pays is charged at each entry. What an entry costs is paid by whoever runs after
//! it, but for what `plan` promises besides the budgets of the described VCPUs: a switch, and a
//! device's interrupt. There are no more of these than `plan` counts: a switch to another VCPU is due
//! to a place in a replenishment list or to a grant, and interrupts have their distance.

use crate::alarm::Class;
use crate::kernel::{Flow, Kernel, Refused, Step};
use crate::pool::{FREE, Id};
use crate::scheduler::Ready;
use crate::thread::ThreadId;
use diapason_abi::archive::{
    Archive, BUDGET_MIN, PERIOD_MAX, PERIOD_MIN, SWITCH_GRACE, VcpuKind, VcpuRecord,
};
use diapason_abi::{Errno, FaultCause, Handle, Key, Kind, Nanos};
use diapason_vcpu::admission::{Load, Overheads, Reservation, Share, Test};
use diapason_vcpu::{Pibs, SporadicServer};

/// Names a VCPU.
pub type VcpuId = Id<Vcpu>;

/// What is taken from everybody's budget for the longest path that cannot be preempted, and for a
/// budget that is enforced as much late. The longest path has 3,000 instructions.
const OVERHEADS: Overheads =
    Overheads { section: Nanos(3_000), overrun: Nanos(3_000), ..Overheads::NONE };

/// What gives a VCPU its budget.
#[derive(Clone, Copy, Debug)]
pub enum Server {
    /// Of a Main VCPU.
    Main(SporadicServer),
    /// Of an I/O VCPU, with the period it inherits.
    Io(Pibs, Nanos),
}

/// One VCPU slot.
pub struct Vcpu {
    /// Its handle, or [`FREE`] while it does not exist.
    pub handle: u64,
    pub(crate) generation: u32,
    pub(crate) allowed: u64,
    pub(crate) key: u64,
    /// Its budget.
    pub server: Server,
    /// Its ready threads.
    pub(crate) ready: Ready,
    /// Threads that live on it.
    pub(crate) threads: u16,
    /// Its place in the order of the core.
    pub(crate) rank: u8,
    /// Its queue, and whether that goes by deadline.
    pub(crate) queue: u8,
    pub(crate) by_deadline: bool,
    /// May it run without budget when nobody else wants to?
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
    /// Switches that it need not pay for, in each period and in this one. None for those made while
    /// the system runs: no plan knows of them.
    graces_max: u8,
    graces: u8,
    graces_until: Nanos,
    /// The longest period it ever had, and how often its budget or period was changed.
    slowest: Nanos,
    changes: u16,
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
        graces_max: 0,
        graces: 0,
        graces_until: Nanos::ZERO,
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

    /// What it may use now, at its present deadline.
    pub(crate) fn available(&self, now: Nanos) -> Nanos {
        match &self.server {
            Server::Main(server) if self.by_deadline => server.available_by_deadline(now),
            Server::Main(server) => server.available(now),
            Server::Io(server, _) => server.available(now),
        }
    }

    /// When there will be budget. An archive may have a share so small that there never is.
    pub(crate) fn eligible_at(&self) -> Nanos {
        match &self.server {
            Server::Main(server) => server.eligible_at(),
            Server::Io(server, _) if server.quantum(server.period()) == Nanos::ZERO => {
                Nanos::FOREVER
            }
            Server::Io(server, _) => server.eligible_at(),
        }
    }

    /// Does it hold a share of the core?
    pub(crate) fn is_promised(&self) -> bool {
        self.handle != FREE || self.abandoned
    }

    fn wake(&mut self, now: Nanos) {
        match &mut self.server {
            Server::Main(server) => server.wake(now),
            Server::Io(server, period) => server.wake(now, *period),
        }
        if now >= self.wakes_until {
            self.wakes_until = now + self.period();
            self.wakes = 0;
        }
        self.wakes = self.wakes.saturating_add(1);
        self.wakes_max = self.wakes_max.max(self.wakes);
    }

    /// What a switch to this VCPU costs others instead of it: no more often than `plan` counts. A
    /// window of one period has two of these at most.
    fn switch_grace(&mut self, now: Nanos) -> Nanos {
        if now >= self.graces_until {
            self.graces_until = now + self.period();
            self.graces = self.graces_max;
        }
        if self.graces == 0 {
            return Nanos::ZERO;
        }
        self.graces -= 1;
        SWITCH_GRACE
    }

    fn sleep(&mut self, now: Nanos) {
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

    fn find_deadline(&mut self) {
        self.deadline = match &self.server {
            Server::Main(server) => server.deadline(),
            Server::Io(server, _) => server.deadline(),
        };
    }

    /// Queue first, then period, and an I/O VCPU before those with its period.
    fn find_urgency(&mut self) {
        let io = u64::from(matches!(self.server, Server::Io(..)));
        let shortness = (PERIOD_MAX - self.period()).0;
        let queue = u64::from(u8::MAX - self.queue);
        self.urgency = (queue << 42 | shortness << 1 | io) << 6;
    }
}

/// What the core has promised.
pub(crate) struct Promise {
    pub load: Load,
    pub test: Test,
    /// The exact test admitted more than the closed form would: nothing fits besides.
    pub full: bool,
    /// The queue of VCPUs made while the system runs, and whether it goes by deadline.
    pub queue: u8,
    pub by_deadline: bool,
    /// Some VCPU was abandoned by its process.
    pub abandoned: bool,
    /// The longest period ever promised: what is given back is free after that long.
    pub slowest: Nanos,
    /// When all that was given back so far is free, and by whom it was: nobody if by several, or by
    /// one that ended.
    pub settled: Nanos,
    pub giver: VcpuId,
}

impl Promise {
    /// Nothing is promised yet. If all Main VCPUs go by deadline in one queue, so do those that are
    /// made later, and the test is that of this case; else they go by period.
    pub fn of(archive: &Archive<'_>) -> Promise {
        let mains = || archive.vcpus().filter(|v| v.kind == VcpuKind::Main);
        let all = archive.header.dp_queues == 1 && mains().all(|v| v.queue == 0);
        // The closed form is proved for queues in the order of periods only.
        let longest = |queue| mains().filter(|v| v.queue == queue).map(|v| v.period).max();
        let in_order = mains().all(|v| {
            (0..v.queue).all(|above| longest(above).is_none_or(|longest| longest <= v.period))
        });
        Promise {
            load: Load::new(OVERHEADS),
            test: if all { Test::Deadline } else { Test::Wide },
            full: !in_order,
            queue: if all { 0 } else { archive.header.dp_queues },
            by_deadline: all,
            abandoned: false,
            slowest: Nanos::ZERO,
            settled: Nanos::ZERO,
            giver: Id::NONE,
        }
    }
}

impl Kernel<'_> {
    /// The alarm of a VCPU comes after those of threads and events.
    fn vcpu_alarm(&self, vcpu: VcpuId) -> u16 {
        self.threads.len() + self.events.len() + vcpu.index()
    }

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

    /// A VCPU's threads or budget changed: may it run, in the background perhaps, and if not, when?
    pub(crate) fn refresh(&mut self, vcpu: VcpuId) {
        let (now, alarm) = (self.now, self.vcpu_alarm(vcpu));
        self.alarms.cancel(alarm);
        let v = &mut self.vcpus[vcpu];
        let bit = 1 << (v.rank % 64);
        self.scheduler.eligible &= !bit;
        self.scheduler.background &= !bit;
        if v.ready.is_empty() {
            return;
        }
        if v.available(now) > Nanos::ZERO {
            v.find_deadline();
            self.scheduler.eligible |= bit;
            return;
        }
        v.depleted = v.depleted.saturating_add(1);
        if v.background {
            self.scheduler.background |= bit;
        }
        self.alarms.set(alarm, v.eligible_at(), Class::Reserved);
    }

    /// Charge whoever paid up to now.
    #[inline(never)]
    pub(crate) fn settle(&mut self) {
        let (vcpu, now) = (self.scheduler.payer, self.now);
        let elapsed = now - self.scheduler.paid_since;
        if elapsed == Nanos::ZERO {
            return;
        }
        self.scheduler.paid_since = now;
        let v = &mut self.vcpus[vcpu];
        if self.scheduler.eligible >> (v.rank % 64) & 1 == 0 {
            v.extra += elapsed;
            return;
        }
        v.charge(elapsed, now);
        if v.by_deadline || v.available(now) == Nanos::ZERO {
            self.refresh(vcpu);
        }
    }

    /// From now on the VCPU of the chosen place pays.
    #[inline(never)]
    pub(crate) fn fund(&mut self) {
        let place = self.scheduler.place;
        let vcpu = if place.is_some() { self.threads[place].vcpu } else { Id::NONE };
        let switched = self.scheduler.payer != vcpu;
        self.scheduler.payer = vcpu;
        self.scheduler.paid_since = self.now;
        self.scheduler.paid_until = Nanos::FOREVER;
        if vcpu.is_some() {
            let v = &mut self.vcpus[vcpu];
            self.scheduler.paid_since +=
                if switched { v.switch_grace(self.now) } else { self.scheduler.grace };
            if self.scheduler.eligible >> (v.rank % 64) & 1 == 1 {
                self.scheduler.paid_until = self.scheduler.paid_since + v.available(self.now);
            }
        }
    }

    /// What the archive declares is promised before anything runs.
    pub(crate) fn admit_declared(&mut self, id: VcpuId, record: &VcpuRecord) {
        let period = match record.kind {
            VcpuKind::Main => Nanos(record.period),
            VcpuKind::Io => self.shortest_served(record.serves),
        };
        let v = &mut self.vcpus[id];
        v.queue = record.queue;
        v.by_deadline = record.queue < self.promise.queue || self.promise.by_deadline;
        v.background = record.background;
        v.serves = record.serves;
        // One that nobody can name is in no plan.
        v.graces_max = if v.key == Key::PRIVATE.0 { 0 } else { record.replenishments.max(1) };
        let admitted = match record.kind {
            VcpuKind::Main => {
                let (budget, limit) = (Nanos(record.budget), record.replenishments as usize);
                v.server = Server::Main(SporadicServer::new(budget, period, limit, Nanos::ZERO));
                // The closed form for those made later has to know of the switches, too.
                let switches = SWITCH_GRACE.0 * 2 * u64::from(record.replenishments);
                let asked = Reservation { budget: budget + Nanos(switches), period };
                self.promise.load.admit_main(self.promise.test, asked).ok()
            }
            VcpuKind::Io => {
                let share = record.utilization_ppm;
                v.server = Server::Io(Pibs::new(share, Nanos(record.cap), Nanos::ZERO), period);
                self.promise.load.admit_io(self.promise.test, share).ok()
            }
        };
        match admitted {
            Some(load) => self.promise.load = load,
            None => self.promise.full = true,
        }
        self.open_vcpu(id, period);
    }

    /// A slot is a VCPU from now on.
    fn open_vcpu(&mut self, id: VcpuId, period: Nanos) {
        self.promise.slowest = self.promise.slowest.max(period);
        let v = &mut self.vcpus[id];
        v.generation += 1;
        v.handle = Handle::new(Kind::Vcpu, id.index(), v.generation).0;
        (v.slowest, v.changes) = (period, 0);
        v.find_urgency();
        self.scheduler.rank(&mut self.vcpus, id);
        self.refresh(id);
    }

    fn shortest_served(&self, serves: u64) -> Nanos {
        let served = self.vcpus.ids().filter(|v| serves >> (v.index() & 63) & 1 == 1);
        served.map(|v| self.vcpus[v].period()).min().unwrap_or(PERIOD_MAX)
    }

    /// The VCPU a handle of the running process names.
    pub(crate) fn own_vcpu(&self, handle: u64) -> Result<VcpuId, Refused> {
        match self.vcpus.get(handle as u16) {
            Some(v) if v.handle == handle && v.allowed & self.grant != 0 => {
                Ok(Id::new(handle as u16))
            }
            slot => {
                let mine = slot.filter(|v| v.allowed & self.grant != 0);
                Err(self.stale_or_misused(Handle(handle), Kind::Vcpu, mine.map(|v| v.generation)))
            }
        }
    }

    fn reservation(budget: u64, period: u64) -> Result<Reservation, Refused> {
        let bad = |word| Err(Refused::Misuse(FaultCause::BadArgument, word));
        if !(PERIOD_MIN..=PERIOD_MAX).contains(&Nanos(period)) {
            return bad(period);
        }
        if !(BUDGET_MIN..=Nanos(period)).contains(&Nanos(budget)) {
            return bad(budget);
        }
        Ok(Reservation { budget: Nanos(budget), period: Nanos(period) })
    }

    /// `VcpuCreate(key, budget, period, replenishments, background)`.
    pub(crate) fn vcpu_create(&mut self, a: [u64; 5]) -> Step {
        let [key, budget, period, replenishments, background] = a;
        if key != Key::PRIVATE.0 {
            let found = self.vcpus.ids().find(|v| self.vcpus[*v].key == key);
            let id = self.granted(found, key, |kernel, v| kernel.vcpus[v].allowed)?;
            return Ok(Flow::Done(self.vcpus[id].handle));
        }
        let asked = Self::reservation(budget, period)?;
        let own = self.processes[self.process].vcpus;
        let id = own.ids().find(|v: &VcpuId| self.vcpus[*v].handle == FREE);
        let id = id.ok_or(Refused::Errno(Errno::Exhausted))?;
        if self.vcpus[id].generation == u32::MAX {
            return Err(Refused::Errno(Errno::Exhausted));
        }
        if self.vcpus[id].abandoned {
            self.destroy_vcpu(id);
        }
        self.promise.load = self.admit(|p| p.load.admit_main(p.test, asked).ok())?;
        // What another may just have given back is not free before it could have been used.
        let start = self.now + self.promise.slowest;
        let limit = replenishments as usize;
        let v = &mut self.vcpus[id];
        v.server = Server::Main(SporadicServer::new(asked.budget, asked.period, limit, start));
        v.queue = self.promise.queue;
        v.by_deadline = self.promise.by_deadline;
        v.background = background != 0;
        (v.used, v.extra, v.depleted, v.wakes_max) = (Nanos::ZERO, Nanos::ZERO, 0, 0);
        self.open_vcpu(id, asked.period);
        Ok(Flow::Done(self.vcpus[id].handle))
    }

    fn admit(&self, test: impl FnOnce(&Promise) -> Option<Load>) -> Result<Load, Refused> {
        let refused = Refused::Errno(Errno::Overload);
        if self.promise.full { Err(refused) } else { test(&self.promise).ok_or(refused) }
    }

    /// The shortest period of the Main VCPUs besides one.
    fn shortest_besides(&self, besides: VcpuId) -> Nanos {
        let others = self.vcpus.ids().filter(|v| *v != besides && self.vcpus[*v].is_promised());
        let main = |v: VcpuId| match &self.vcpus[v].server {
            Server::Main(server) => server.period(),
            Server::Io(..) => Nanos::FOREVER,
        };
        others.map(main).min().unwrap_or(Nanos::FOREVER)
    }

    /// Would an I/O VCPU that serves this one be granted too little to be of use?
    fn starves_io(&self, main: VcpuId, period: Nanos) -> bool {
        self.vcpus.ids().any(|io| match &self.vcpus[io].server {
            Server::Io(server, inherited) if self.vcpus[io].serves >> main.index() & 1 == 1 => {
                server.quantum(period.min(*inherited)) < BUDGET_MIN
            }
            _ => false,
        })
    }

    /// `VcpuSet(vcpu, budget, period)`: of a Main VCPU, under the same test.
    pub(crate) fn vcpu_set(&mut self, handle: u64, budget: u64, period: u64) -> Step {
        let id = self.own_vcpu(handle)?;
        let asked = Self::reservation(budget, period)?;
        let Server::Main(mut server) = self.vcpus[id].server else {
            return Err(Refused::Errno(Errno::Busy));
        };
        if self.starves_io(id, asked.period) {
            return Err(Refused::Errno(Errno::Overload));
        }
        let before = Reservation { budget: server.budget(), period: server.period() };
        // What another has just given back is not free yet, and would come one period from now.
        let share = |r: Reservation| Share::of(r.budget, r.period);
        let unsettled = self.now < self.promise.settled;
        if share(asked) > share(before) && unsettled && self.promise.giver != id {
            return Err(Refused::Errno(Errno::Busy));
        }
        let shortest = self.shortest_besides(id);
        self.promise.load =
            self.admit(|p| p.load.change_main(p.test, before, asked, shortest).ok())?;
        if share(asked) < share(before) {
            let others = unsettled && self.promise.giver != id;
            self.promise.giver = if others { Id::NONE } else { id };
            self.promise.settled = self.now + self.promise.slowest;
        }
        server.set(asked.budget, asked.period, self.now);
        self.promise.slowest = self.promise.slowest.max(asked.period);
        self.vcpus[id].server = Server::Main(server);
        self.rank_again(id);
        for io in self.vcpus.ids() {
            if self.vcpus[io].serves >> (id.index() & 63) & 1 == 1 {
                let period = self.shortest_served(self.vcpus[io].serves);
                let now = self.now;
                if let Server::Io(server, inherited) = &mut self.vcpus[io].server {
                    *inherited = period;
                    if server.is_active() {
                        server.inherit(now, period);
                    }
                }
                self.rank_again(io);
            }
        }
        Ok(Flow::Done(0))
    }

    /// A VCPU's budget or period changed.
    fn rank_again(&mut self, id: VcpuId) {
        self.scheduler.unrank(&mut self.vcpus, id);
        let v = &mut self.vcpus[id];
        (v.slowest, v.changes) = (v.slowest.max(v.period()), v.changes.saturating_add(1));
        v.find_urgency();
        self.scheduler.rank(&mut self.vcpus, id);
        self.refresh(id);
    }

    /// `VcpuDelete(vcpu)`: of a private one.
    pub(crate) fn vcpu_delete(&mut self, handle: u64) -> Step {
        let id = self.own_vcpu(handle)?;
        if self.vcpus[id].key != Key::PRIVATE.0 || self.vcpus[id].threads > 0 {
            return Err(Refused::Errno(Errno::Busy));
        }
        self.destroy_vcpu(id);
        Ok(Flow::Done(0))
    }

    /// The process of a private VCPU ends: nobody can use it any more. What was promised to it is
    /// given back at the next timer interrupt, one VCPU at a time, for that takes a while.
    pub(crate) fn abandon_vcpu(&mut self, id: VcpuId) {
        let v = &mut self.vcpus[id];
        if v.handle != FREE {
            v.handle = FREE;
            v.abandoned = true;
            self.promise.abandoned = true;
        }
    }

    /// Give back what was promised to one of the abandoned VCPUs.
    #[inline(never)]
    pub(crate) fn reclaim_vcpu(&mut self) {
        match self.vcpus.ids().find(|v| self.vcpus[*v].abandoned) {
            Some(id) => self.destroy_vcpu(id),
            None => self.promise.abandoned = false,
        }
    }

    /// End a VCPU that exists and has no threads.
    pub(crate) fn destroy_vcpu(&mut self, id: VcpuId) {
        self.refresh(id);
        self.scheduler.unrank(&mut self.vcpus, id);
        let shortest = self.shortest_besides(id);
        let v = &mut self.vcpus[id];
        v.handle = FREE;
        v.abandoned = false;
        if let Server::Main(server) = &v.server {
            let leaving = Reservation { budget: server.budget(), period: server.period() };
            self.promise.load = self.promise.load.without_main(leaving, shortest);
            self.promise.giver = Id::NONE;
            self.promise.settled = self.now + self.promise.slowest;
        }
        if self.scheduler.payer == id {
            self.scheduler.payer = Id::NONE;
        }
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

    /// `VcpuFit(period)`: what would fit.
    pub(crate) fn vcpu_fit(&self, period: u64) -> Step {
        let Reservation { period, .. } = Self::reservation(period, period)?;
        // Asking for everything is refused with what fits, unless everything is free.
        let all = Reservation { budget: period, period };
        let fits = match self.promise.load.admit_main(self.promise.test, all) {
            _ if self.promise.full => Nanos::ZERO,
            Ok(_) => period,
            Err(refusal) => refusal.fits,
        };
        Ok(Flow::Done(fits.0))
    }
}
