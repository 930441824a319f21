//! How long hosts keep messages that pass them: by busy periods of all threads that they pass.
//!
//! From when a host hears of a message until the message leaves, one of these threads is ready and
//! has budget. So the processor runs nothing but them, what goes before them, and one path of the
//! kernel. All that the message can meet is counted once, for all of its stays on the host.

use diapason::Failure;
use diapason_abi::{CallNumber, Nanos};
use diapason_analysis::server::{Interference, IoSupply, Supply};
use diapason_costs::counted::Costs;
use diapason_pipe::bill::{Coming, Found, Service, found};
use diapason_plan::core::{Core, core};
use diapason_system::System;

/// The works of a message in the descriptions of the hosts, in ns: those of `examples/flow.toml`.
pub const WORKS: [(&str, u64); 4] =
    [("usbd.link", 3_000), ("dbcd.look", 4_000), ("link.check", 3_000), ("link.seal", 3_000)];
/// The router's own time for a message, in ns.
const ROUTER_WORK: u64 = 2_000;
/// The time from one look of a target to the next, in ns.
pub const LOOK_NS: u64 = 125_000;
/// Programs report so often.
const REPORT_NS: u64 = 1_000_000_000;
const LIMIT: Nanos = Nanos::from_millis(100);

/// A thread that messages pass, in the time of one trip of each board's message.
struct Passed {
    vcpu: &'static str,
    /// Wake-ups at most, and the longest time of one.
    turns: u64,
    each: u64,
    /// The time of all messages and records that it has besides.
    more: u64,
    /// The longest time of what it does every [`LOOK_NS`].
    look: u64,
}

/// How often boards send.
#[derive(Clone, Copy)]
pub struct BoardPace {
    /// The shortest time from an answer to the next message.
    pub pause: u64,
    /// The longest time after an answer in which hosts still work for it.
    pub trail: u64,
}

impl BoardPace {
    /// Returns how many trips of one board's messages a window can touch.
    pub const fn trips(self, window: u64) -> u64 {
        1 + (window + self.trail) / self.pause
    }
}

/// A host with the threads that messages pass.
pub struct HostStay {
    core: Core,
    names: Vec<String>,
    threads: Vec<Passed>,
    /// The longest time that a thread that manages may take of each stay: it holds a lock before,
    /// and its alarm rings.
    managed: u64,
}

/// Returns the declared longest time of a work.
fn work(system: &System, name: &str) -> Result<u64, Failure> {
    let found = system.works.iter().find(|work| work.name == name);
    found.map(|work| work.worst_ns).ok_or_else(|| Failure::Ours(format!("no work `{name}`")))
}

impl HostStay {
    fn new(system: &System, threads: Vec<Passed>, managed: u64) -> HostStay {
        let names = system.vcpus.iter().map(|vcpu| vcpu.name.clone()).collect();
        HostStay { core: core(system, &system.kernel_times()), names, threads, managed }
    }

    /// Returns a board. Its message wakes its program twice and that of the other board once, and
    /// each wake-up of a program asks its debug server for something.
    pub fn board(system: &System) -> Result<HostStay, Failure> {
        let costs = Costs::at(system.clock_hz);
        let call = |number| costs.call(number).0;
        let (waits, rings) = (call(CallNumber::SemLock), call(CallNumber::SemUnlock));
        let says = call(CallNumber::Log);
        let look = work(system, "dbcd.look")? + waits + rings;
        let message = work(system, "link.check")? + work(system, "link.seal")?;
        let server = Passed { vcpu: "dbc", turns: 3, each: look, more: says, look };
        // It also wakes to report, in a line and a record. It says a line of times for its own
        // trip.
        let program = Passed {
            vcpu: "ping",
            turns: 4,
            each: waits + rings,
            more: 2 * message + 3 * says,
            look: 0,
        };
        Ok(HostStay::new(system, vec![server, program], 0))
    }

    /// Returns the host between the boards. Each trip passes its router twice, and on each link
    /// ends two transfers. Each wake-up of the router may ask each link for something.
    pub fn router(system: &System) -> Result<HostStay, Failure> {
        let costs = Costs::at(system.clock_hz);
        let call = |number| costs.call(number).0;
        let (waits, rings) = (call(CallNumber::SemLock), call(CallNumber::SemUnlock));
        let says = call(CallNumber::Log);
        let turn = work(system, "usbd.link")?;
        let locked = turn + waits + rings;
        let each = call(CallNumber::EventWait) + waits + locked + rings;
        // Four messages come, and it wakes to report.
        let wakes = 2 * 2 + 1;
        let link = |vcpu| Passed { vcpu, turns: 2 * 2 + wakes, each, more: says, look: 0 };
        let router = Passed {
            vcpu: "route",
            turns: wakes,
            each: waits + 2 * rings,
            more: 2 * 2 * ROUTER_WORK + says,
            look: 0,
        };
        let threads = vec![link("usb-link0"), link("usb-link1"), router];
        let alarm = system.kernel_times().top_half().0;
        Ok(HostStay::new(system, threads, locked + alarm))
    }

    /// Returns the longest time in all of so many stays of one message, in ns.
    pub fn longest(&self, stays: u64) -> Result<u64, Failure> {
        self.goes_first()?;
        let system = &self.core.system;
        let switches = 2 * system.switch.0;
        let mut again: Vec<(u64, u64)> =
            system.sources.iter().map(|source| (source.gap.0, source.cost.0)).collect();
        let mut once = 0;
        for thread in &self.threads {
            once += thread.turns * (thread.each + switches) + thread.more;
            if thread.look > 0 {
                again.push((LOOK_NS, thread.look + switches));
            }
        }
        // Windows apart from each other have one release more each.
        let apart: u64 = again.iter().map(|(_, cost)| cost * (stays - 1)).sum();
        let blocking = stays * (system.kernel_section.0 + self.managed) + apart;
        let mut level = Interference::new(Nanos(blocking));
        again.iter().for_each(|(period, cost)| level.add(Nanos(*period), Nanos(*cost)));
        let longest = level.response(Nanos(once), LIMIT);
        longest.map(|time| time.0).map_err(|_| Failure::Ours("a host is too busy".into()))
    }

    /// Checks that no other VCPU goes before those that messages pass.
    fn goes_first(&self) -> Result<(), Failure> {
        let Core { system, mains, ios } = &self.core;
        let is_passed = |number: u16| {
            let name = &self.names[usize::from(number)];
            self.threads.iter().any(|thread| thread.vcpu == name)
        };
        let each = || system.mains.iter().zip(mains);
        let passed = each().filter(|(_, number)| is_passed(**number));
        let lowest = passed.map(|(main, _)| main.period).max();
        let is_below = |main: usize| Some(system.mains[main].period) > lowest;
        let others = (0..mains.len()).filter(|main| !is_passed(mains[*main]));
        let served = system.ios.iter().zip(ios).filter(|(_, number)| !is_passed(**number));
        let served = served.flat_map(|(io, _)| io.serves.iter().copied());
        if others.chain(served).all(is_below) {
            return Ok(());
        }
        Err(Failure::Ours("a VCPU may go before those that messages pass".into()))
    }

    /// Checks that no thread ever waits for budget, if the host is never busy for longer than
    /// `busy`.
    pub fn finds_budget(&self, pace: BoardPace, busy: u64) -> Result<(), Failure> {
        for thread in &self.threads {
            let service = self.service(thread)?;
            let looks = |window: u64| if thread.look > 0 { 1 + window / LOOK_NS } else { 0 };
            let trips = |window: u64| pace.trips(window).max(1 + window / REPORT_NS);
            let work = |window: Nanos| {
                let each = thread.turns * thread.each + thread.more;
                Nanos(trips(window.0) * each + looks(window.0) * thread.look)
            };
            let wakeups = |window: Nanos| trips(window.0) * thread.turns + looks(window.0);
            let least = Nanos(thread.each);
            let apart = found(&*service, &Coming { wakeups, work, least }) == Found::Apart;
            // A grant is the budget until its share of time is over, and for what began before.
            let granted = work(service.period() + Nanos(busy)) + service.lost();
            if !apart || granted > service.budget() {
                let (vcpu, budget) = (thread.vcpu, service.budget());
                return Err(Failure::Ours(format!("{vcpu} needs {granted}, and has {budget}")));
            }
        }
        Ok(())
    }

    /// Returns what the processor gives to a thread.
    fn service(&self, thread: &Passed) -> Result<Box<dyn Service>, Failure> {
        let (core, vcpu) = (&self.core, thread.vcpu);
        let is_its = |number: &u16| self.names[usize::from(*number)] == vcpu;
        let main = core.mains.iter().position(is_its);
        let io = core.ios.iter().position(is_its);
        let main = main.and_then(|place| Supply::of(&core.system, place));
        let io = io.and_then(|place| IoSupply::inherited(&core.system, place));
        let main = main.map(|supply| Box::new(supply) as Box<dyn Service>);
        let all = main.or_else(|| io.map(|supply| Box::new(supply) as Box<dyn Service>));
        all.ok_or_else(|| Failure::Ours(format!("`{vcpu}` does not get its budget")))
    }
}
