//! Admission: the promises of a core to VCPUs, checked when the archive is read and when programs
//! make or change VCPUs.
//!
//! The tests are closed forms in integers (`lib/vcpu`); what the exact test admitted beforehand may
//! be more, and then nothing is admitted besides. A released share is free only once it cannot
//! matter any more.

use crate::ids::VcpuId;
use crate::kernel::{Flow, Kernel, Refused, Step};
use crate::objects::vcpu::{Server, Vcpu};
use crate::pool::{FREE, Id};
use crate::promise::Promise;
use crate::walks::walk;
use diapason_abi::archive::{
    BUDGET_MIN, PERIOD_MAX, PERIOD_MIN, REPLENISHMENTS_MAX, VcpuKind, VcpuRecord,
};
use diapason_abi::{Errno, FaultCause, Handle, Key, Kind, Nanos};
use diapason_costs::Round;
use diapason_vcpu::admission::{Load, Reservation, Share};
use diapason_vcpu::{Pibs, SporadicServer};

impl Kernel<'_> {
    /// The declared VCPUs are promised before anything runs.
    #[inline(never)]
    pub(crate) fn admit_declared(&mut self, id: VcpuId, record: &VcpuRecord) {
        let period = match record.kind {
            VcpuKind::Main => Nanos(record.period),
            VcpuKind::Io => self.shortest(record.serves, Vcpu::period),
        };
        let v = &mut self.vcpus[id];
        v.queue = record.queue;
        v.by_deadline = record.queue < self.promise.queue || self.promise.by_deadline;
        v.background = record.background;
        v.serves = record.serves;
        // One that nobody can name is in no plan.
        if v.key != Key::PRIVATE.0 {
            (v.places, v.interval) = (record.replenishments, Nanos(record.interval));
        }
        let admitted = match record.kind {
            VcpuKind::Main => {
                let (budget, limit) = (Nanos(record.budget), record.replenishments as usize);
                let server = SporadicServer::new(budget, period, limit, Nanos::ZERO);
                v.server = Server::Main(server);
                let (most, least) = (Nanos(record.most), Nanos(record.least));
                v.most =
                    (most > Nanos::ZERO).then_some(Reservation { budget: most, period: least });
                let asked = v.most.unwrap_or(Reservation { budget, period });
                let asked = self.with_switches(asked, server.limit());
                self.promise.load.admit_main(self.promise.test, asked).ok()
            }
            VcpuKind::Io => {
                let share = record.utilization_ppm;
                let server = Pibs::new(share, Nanos(record.cap), Nanos::ZERO);
                v.server = Server::Io(server, period);
                let between = server.between(self.shortest(record.serves, Vcpu::promised_period));
                let load = self.promise.load.with_grants(self.fees.prices().switch, between);
                load.admit_io(self.promise.test, share).ok()
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
        v.find_graces();
        v.find_urgency();
        self.rank(id);
        self.refresh(id);
    }

    /// Returns the shortest of these periods of the Main VCPUs that an I/O VCPU serves.
    fn shortest(&self, serves: u64, period: fn(&Vcpu) -> Nanos) -> Nanos {
        walk(Round::Look, self.vcpus.len().into());
        let served = self.vcpus.ids().filter(|v| serves >> (v.index() & 63) & 1 == 1);
        served.map(|v| period(&self.vcpus[v])).min().unwrap_or(PERIOD_MAX)
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

    /// Returns a reservation with the switches of a list of so many chunks.
    fn with_switches(&self, asked: Reservation, limit: u8) -> Reservation {
        Reservation { budget: asked.budget + self.fees.prices().switches(limit), ..asked }
    }

    /// `VcpuCreate(key, budget, period, replenishments, background)`.
    pub(crate) fn vcpu_create(&mut self, a: [u64; 5]) -> Step {
        let [key, budget, period, replenishments, background] = a;
        if key != Key::PRIVATE.0 {
            let id = self.granted(&self.vcpus, key, |v| (v.key, v.allowed))?;
            return Ok(Flow::Same(self.vcpus[id].handle));
        }
        let asked = Self::reservation(budget, period)?;
        let own = self.maker().vcpus;
        let id = self.vcpus.find_in(own, |v| v.handle == FREE);
        let id = id.ok_or(Refused::Errno(Errno::Exhausted))?;
        if self.vcpus[id].generation == u32::MAX {
            return Err(Refused::Errno(Errno::Exhausted));
        }
        if self.vcpus[id].abandoned {
            self.destroy_vcpu(id);
        }
        // A share that another may just have released is not free before it could have been used.
        let start = self.now + self.promise.slowest;
        let limit = replenishments as usize;
        let server = SporadicServer::new(asked.budget, asked.period, limit, start);
        let whole = self.with_switches(asked, server.limit());
        self.promise.load = self.admit(|p| p.load.admit_main(p.test, whole).ok())?;
        let v = &mut self.vcpus[id];
        self.promise.retired += v.used + v.extra;
        v.server = Server::Main(server);
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
        walk(Round::Look, self.vcpus.len().into());
        let others = self.vcpus.ids().filter(|v| *v != besides && self.vcpus[*v].is_promised());
        let main = |v: VcpuId| match &self.vcpus[v].server {
            Server::Main(_) => self.vcpus[v].promised_period(),
            Server::Io(..) => Nanos::FOREVER,
        };
        others.map(main).min().unwrap_or(Nanos::FOREVER)
    }

    /// Returns the promises if a Main VCPU had this period: those that serve it are granted less or
    /// more at a time, and switched to more or less often.
    fn regranted(&self, main: VcpuId, period: Nanos) -> Load {
        walk(Round::Look, self.vcpus.len().into());
        let switch = self.fees.prices().switch;
        self.vcpus.ids().fold(self.promise.load, |load, io| match &self.vcpus[io].server {
            Server::Io(server, _) if self.vcpus[io].serves >> main.index() & 1 == 1 => {
                let serves = self.vcpus[io].serves;
                let others =
                    self.shortest(serves & !(1 << (main.index() & 63)), Vcpu::promised_period);
                let [from, to] = [self.shortest(serves, Vcpu::promised_period), others.min(period)];
                load.regranted(switch, server.between(from), server.between(to))
            }
            _ => load,
        })
    }

    /// Returns whether an I/O VCPU that serves this one would get too little to be of use.
    fn starves_io(&self, main: VcpuId, period: Nanos) -> bool {
        walk(Round::Look, self.vcpus.len().into());
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
        let Server::Main(server) = &self.vcpus[id].server else {
            return Err(Refused::Errno(Errno::Busy));
        };
        let before = Reservation { budget: server.budget(), period: server.period() };
        let limit = server.limit();
        if self.starves_io(id, asked.period) {
            return Err(Refused::Errno(Errno::Overload));
        }
        match self.vcpus[id].most {
            Some(most) if asked.budget > most.budget || asked.period < most.period => {
                return Err(Refused::Errno(Errno::Overload));
            }
            Some(_) => {}
            None => self.change_promise(id, before, asked, limit)?,
        }
        self.pay_up();
        if let Server::Main(server) = &mut self.vcpus[id].server {
            server.set(asked.budget, asked.period, self.now);
        }
        self.promise.slowest = self.promise.slowest.max(asked.period);
        self.rank_again(id);
        for io in self.vcpus.ids() {
            if self.vcpus[io].serves >> (id.index() & 63) & 1 == 1 {
                let period = self.shortest(self.vcpus[io].serves, Vcpu::period);
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

    /// Promises a Main VCPU, of which nothing more was admitted beforehand, another reservation.
    fn change_promise(
        &mut self,
        id: VcpuId,
        before: Reservation,
        asked: Reservation,
        limit: u8,
    ) -> Result<(), Refused> {
        // A share that another has just released is not free yet, and would come one period from
        // now.
        let share = |r: Reservation| Share::of(r.budget, r.period);
        let unsettled = self.now < self.promise.settled;
        if share(asked) > share(before) && unsettled && self.promise.giver != id {
            return Err(Refused::Errno(Errno::Busy));
        }
        let shortest = self.shortest_besides(id);
        let load = self.regranted(id, asked.period);
        let [from, to] = [before, asked].map(|it| self.with_switches(it, limit));
        self.promise.load = self.admit(|p| load.change_main(p.test, from, to, shortest).ok())?;
        if share(asked) < share(before) {
            let others = unsettled && self.promise.giver != id;
            self.promise.giver = if others { Id::NONE } else { id };
            self.promise.settled = self.now + self.promise.slowest;
        }
        Ok(())
    }

    /// A VCPU's budget or period changed.
    fn rank_again(&mut self, id: VcpuId) {
        let v = &mut self.vcpus[id];
        (v.slowest, v.changes) = (v.slowest.max(v.period()), v.changes.saturating_add(1));
        v.find_urgency();
        self.move_rank(id);
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

    /// The process of a private VCPU ends: nobody can use it any more. The next timer interrupts
    /// release its promises, one VCPU at a time, because that takes a while.
    pub(crate) fn abandon_vcpu(&mut self, id: VcpuId) {
        let v = &mut self.vcpus[id];
        if v.handle != FREE {
            v.handle = FREE;
            v.abandoned = true;
            self.promise.abandoned = true;
        }
    }

    /// Gives back what was promised to one of the abandoned VCPUs.
    #[inline(never)]
    pub(crate) fn reclaim_vcpu(&mut self) {
        match self.vcpus.find(|v| v.abandoned) {
            Some(id) => self.destroy_vcpu(id),
            None => self.promise.abandoned = false,
        }
    }

    /// Ends a VCPU that exists and has no threads.
    pub(crate) fn destroy_vcpu(&mut self, id: VcpuId) {
        self.refresh(id);
        self.unrank(id);
        let shortest = self.shortest_besides(id);
        let v = &mut self.vcpus[id];
        v.handle = FREE;
        v.abandoned = false;
        if let Server::Main(server) = &v.server {
            let (budget, period, limit) = (server.budget(), server.period(), server.limit());
            let leaving = self.with_switches(Reservation { budget, period }, limit);
            self.promise.load = self.promise.load.without_main(leaving, shortest);
            self.promise.giver = Id::NONE;
            self.promise.settled = self.now + self.promise.slowest;
        }
        if self.scheduler.payer == id {
            self.scheduler.payer = Id::NONE;
        }
    }

    /// `VcpuFit(period)`: what would fit, with the longest list.
    pub(crate) fn vcpu_fit(&self, period: u64) -> Step {
        let Reservation { period, .. } = Self::reservation(period, period)?;
        // Asking for everything is refused with what fits, unless everything is free.
        let all = Reservation { budget: period, period };
        let fits = match self.promise.load.admit_main(self.promise.test, all) {
            _ if self.promise.full => Nanos::ZERO,
            Ok(_) => period,
            Err(refusal) => refusal.fits,
        };
        let switches = self.fees.prices().switches(REPLENISHMENTS_MAX);
        Ok(Flow::Same((fits - switches).0))
    }
}
