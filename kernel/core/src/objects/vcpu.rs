//! Virtual CPUs: a sporadic server or a PIBS server, and its ready threads.

use crate::ids::VcpuTag;
use crate::objects::ready::Ready;
use crate::pool::{FREE, Pooled};
use diapason_abi::Nanos;
use diapason_abi::archive::{PERIOD_MAX, REPLENISHMENTS_MAX, WAKES_MAX};
use diapason_vcpu::admission::Reservation;
use diapason_vcpu::{Pibs, SporadicServer};

/// Most switches to a VCPU in a period, or an I/O VCPU's interval, that a plan counts.
const WAYS: usize = 8;
const _: () = assert!(REPLENISHMENTS_MAX as usize <= WAYS && WAKES_MAX as usize <= WAYS);

/// The server that gives a VCPU its budget.
#[derive(Clone, Copy, Debug)]
pub enum Server {
    /// The server of a Main VCPU.
    Main(SporadicServer),
    /// The server of an I/O VCPU, with the period it inherits.
    Io(Pibs, Nanos),
}

/// A slot for a VCPU.
pub struct Vcpu {
    /// The VCPU's handle, or [`FREE`] while it does not exist.
    pub handle: u64,
    pub(crate) generation: u32,
    pub(crate) allowed: u64,
    pub(crate) key: u64,
    pub server: Server,
    pub(crate) ready: Ready,
    /// Threads that live on it.
    pub(crate) threads: u16,
    /// The VCPU's place in the order of the core.
    pub(crate) rank: u8,
    /// The VCPU's queue, and whether that goes by deadline.
    pub(crate) queue: u8,
    pub(crate) by_deadline: bool,
    /// True if it may run without budget while no other VCPU wants to run.
    pub(crate) background: bool,
    /// How urgent its threads are among all that wait for one thing, and what it is ranked by.
    pub(crate) urgency: u64,
    /// The deadline of the VCPU's budget, if it has any.
    pub(crate) deadline: Nanos,
    /// The VCPU's process ended; what was promised to it is not given back yet.
    pub(crate) abandoned: bool,
    /// I/O: the Main VCPUs it serves.
    pub(crate) serves: u64,
    /// Time used of the budget, and in the background.
    pub used: Nanos,
    /// Time used in the background.
    pub extra: Nanos,
    /// The number of times that threads of the VCPU had to wait for budget.
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
    /// The VCPU was preempted by a VCPU whose way there and back is counted.
    pub(crate) comes_back: bool,
    /// The largest budget and the shortest period that were admitted with the system, if programs
    /// may set it to any in between.
    pub(crate) most: Option<Reservation>,
    /// The longest period it ever had, and how often its budget or period was changed.
    pub(crate) slowest: Nanos,
    pub(crate) changes: u16,
}

impl Pooled for Vcpu {
    type Tag = VcpuTag;
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

    pub(crate) fn wake(&mut self, now: Nanos) {
        self.wake_server(now);
        self.count_wake(now);
    }

    #[inline(always)]
    fn count_wake(&mut self, now: Nanos) {
        if now >= self.wakes_until {
            self.wakes_until = now + self.period();
            self.wakes = 0;
        }
        self.wakes = self.wakes.saturating_add(1);
        self.wakes_max = self.wakes_max.max(self.wakes);
    }

    /// Takes one of the switches to this VCPU that `plan` counts. False if none is left.
    pub(crate) fn take_grace(&mut self, now: Nanos) -> bool {
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

    /// Takes a grace if it is woken and does not run yet: the way is spared when it does.
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

    pub(crate) fn sleep(&mut self, now: Nanos) {
        self.comes_back = false;
        match &mut self.server {
            Server::Main(server) => server.block(now),
            Server::Io(server, _) => server.stop(),
        }
    }

    pub(crate) fn charge(&mut self, used: Nanos, now: Nanos) {
        self.used += used;
        match &mut self.server {
            Server::Main(server) => server.charge(used, now),
            Server::Io(server, _) => server.charge(used, now),
        }
    }

    /// Charges `used` and levies the rest of `due` if the budget at hand bears both and some of it
    /// is left: then nothing about this VCPU has to be decided. Returns whether that was done.
    #[inline(always)]
    pub(crate) fn try_charge(&mut self, used: Nanos, due: Nanos, now: Nanos) -> bool {
        let borne = match &mut self.server {
            Server::Main(server) => server.try_charge(used, due, now),
            Server::Io(server, _) => server.try_charge(used, due, now),
        };
        if borne {
            self.used += used;
        }
        borne
    }

    /// Wakes it, with something to do since `at`, if that brings budget at once. Returns the
    /// budget; if that is zero, nothing has changed.
    #[inline(always)]
    pub(crate) fn try_wake(&mut self, at: Nanos, now: Nanos) -> Nanos {
        let budget = match &mut self.server {
            Server::Main(server) => server.try_wake(at),
            Server::Io(server, period) => server.try_wake(at, *period),
        };
        if budget > Nanos::ZERO {
            self.count_wake(now);
        }
        if at == now || budget == Nanos::ZERO { budget } else { self.available(now) }
    }

    /// Budget goes for what others are spared. Their threads have that time, so it is not `used`.
    pub(crate) fn levy(&mut self, amount: Nanos) {
        match &mut self.server {
            Server::Main(server) => server.levy(amount),
            Server::Io(server, _) => server.levy(amount),
        }
    }

    pub(crate) fn find_deadline(&mut self) {
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
