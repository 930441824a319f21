//! One processor, tick by tick: the kernel's servers, sections and top halves.

use diapason_abi::Nanos;
use diapason_vcpu::{Pibs, SporadicServer};

/// A VCPU and the work its thread has at the moment.
pub enum Server {
    Main(SporadicServer),
    /// An I/O VCPU and the period it inherits.
    Io(Pibs, Nanos),
}

pub struct Vcpu {
    pub server: Server,
    /// Ticks of work left; at 0 the thread has nothing to do.
    pub left: u64,
    awake: bool,
}

impl Vcpu {
    pub fn new(server: Server) -> Vcpu {
        Vcpu { server, left: 0, awake: false }
    }

    fn wake(&mut self, now: Nanos) {
        if self.awake {
            return;
        }
        self.awake = true;
        match &mut self.server {
            Server::Main(server) => server.wake(now),
            Server::Io(server, period) => server.wake(now, *period),
        }
    }

    fn block(&mut self, now: Nanos) {
        if !self.awake {
            return;
        }
        self.awake = false;
        match &mut self.server {
            Server::Main(server) => server.block(now),
            Server::Io(server, _) => server.stop(),
        }
    }

    fn may_run(&self, now: Nanos, by_deadline: bool) -> bool {
        let available = match &self.server {
            Server::Main(server) if by_deadline => server.available_by_deadline(now),
            Server::Main(server) => server.available(now),
            Server::Io(server, _) => server.available(now),
        };
        self.left > 0 && available > Nanos::ZERO
    }

    /// Smaller is more urgent: by period or deadline, and an I/O VCPU before a Main VCPU.
    fn rank(&self, by_deadline: bool) -> (Nanos, bool) {
        match &self.server {
            Server::Main(server) if by_deadline => (server.deadline(), true),
            Server::Io(server, _) if by_deadline => (server.deadline(), false),
            Server::Main(server) => (server.period(), true),
            Server::Io(_, period) => (*period, false),
        }
    }
}

/// The processor and its threads.
pub struct Machine {
    pub vcpus: Vec<Vcpu>,
    /// Ticks of a kernel section left, and whose it is.
    section: Option<(usize, u64)>,
    /// All are in one queue by deadline.
    by_deadline: bool,
}

impl Machine {
    pub fn new(vcpus: Vec<Vcpu>, by_deadline: bool) -> Machine {
        Machine { vcpus, section: None, by_deadline }
    }

    /// Returns whether interrupts are off.
    pub fn in_section(&self) -> bool {
        self.section.is_some()
    }

    /// Tells the servers who has work.
    pub fn tell(&mut self, now: u64) {
        for vcpu in &mut self.vcpus {
            if vcpu.left > 0 { vcpu.wake(Nanos(now)) } else { vcpu.block(Nanos(now)) }
        }
    }

    /// Runs the first thread for one tick. A section of `section` ticks begins if none is going on.
    /// Returns the thread that finished its work.
    pub fn tick(&mut self, now: u64, section: u64) -> Option<usize> {
        let now = Nanos(now);
        let by_deadline = self.by_deadline;
        let held = self.section.filter(|(who, _)| self.vcpus[*who].may_run(now, by_deadline));
        let first = |vcpus: &[Vcpu]| {
            let ready = (0..vcpus.len()).filter(|i| vcpus[*i].may_run(now, by_deadline));
            ready.min_by_key(|i| (vcpus[*i].rank(by_deadline), *i))
        };
        let who = match held {
            Some((who, _)) => who,
            None => {
                // A budget that ends in a section ends it, and then an interrupt gets in between.
                let is_cut = self.section.take().is_some();
                let who = first(&self.vcpus);
                let who = who?;
                self.section = (section > 0 && !is_cut).then_some((who, section));
                who
            }
        };
        if let Some((_, left)) = &mut self.section {
            *left -= 1;
        }
        let end = now + Nanos(1);
        let vcpu = &mut self.vcpus[who];
        vcpu.left -= 1;
        match &mut vcpu.server {
            Server::Main(server) => server.charge(Nanos(1), end),
            Server::Io(server, _) => server.charge(Nanos(1), end),
        }
        let done = self.vcpus[who].left == 0;
        if done || self.section.is_some_and(|(_, left)| left == 0) {
            self.section = None;
        }
        done.then_some(who)
    }
}
