//! The processor time that a host gives to flows: that of a program, and of the thread that serves
//! a link.

use super::route::{By, Port};
use crate::calls::{Calls, Step};
use crate::driver::worst;
use crate::missing::{self, Missing};
use crate::pipes::{Plant, interrupts, own_supply};
use crate::reports::Reporting;
use diapason_abi::{CallNumber, Nanos};
use diapason_analysis::server::{IoSupply, Supply};
use diapason_pipe::bill::{Coming, Service, keeps_apart};
use diapason_system::FlowStop;

/// The works of the servers in descriptions, and those of a program of links for a message.
const LOOK: &str = "dbcd.look";
const OF_PROGRAM: [&str; 2] = ["link.check", "link.seal"];
/// Steps to a busy period that ends before it is given up, and the longest that is looked for.
const STEPS_MAX: u32 = 1_024;
const BUSY_MAX: Nanos = Nanos::from_secs(10);

/// A thread that messages of flows pass.
pub(super) struct Worker<'a> {
    supply: Share,
    calls: &'a Calls,
    /// The longest that it takes each time it is woken, or for one message besides its work.
    pub each: Nanos,
    /// From the end of a transfer until the thread is told of it or looks.
    pub told: Nanos,
}

enum Share {
    Main(Supply),
    Io(IoSupply),
}

impl<'a> Worker<'a> {
    /// Returns a program of a flow. For a message it waits twice at most and rings twice: for the
    /// message and for the end of one that it sent, to its link and to the next.
    pub fn program(plant: &'a Plant<'a>, stop: FlowStop) -> Result<Worker<'a>, Missing> {
        plant.locks_nothing(stop.process)?;
        let works = OF_PROGRAM.iter().filter_map(|name| worst(plant.system, name));
        let name = plant.system.process_name(stop.process).unwrap_or_default();
        let said = missing::said(stop.work_ns, name, "where the `[[flow]]` names it")?;
        let declared = works.fold(Nanos::ZERO, |sum, work| sum + work);
        if declared > said {
            let listed = OF_PROGRAM.map(|work| format!("`{work}`")).join(" and ");
            return Err((
                format!(
                    "the works {listed} take up to {declared}, and the flow says {said} for \
                     `{name}`"
                ),
                format!("write `work = \"{}ns\"`, or a smaller `worst` of the works", declared.0),
            ));
        }
        let supply = Share::Main(own_supply(stop.process, plant.system, plant.core)?);
        let calls = &plant.calls;
        let each = calls.takes(Step::Counted) + calls.gives(Step::Counted);
        Ok(Worker { supply, calls, each: each + each, told: Nanos::ZERO })
    }

    /// Returns the thread that serves a link for `client`.
    pub fn link(plant: &'a Plant<'a>, port: &Port, client: u16) -> Result<Worker<'a>, Missing> {
        plant.locks_nothing(port.server)?;
        let calls = &plant.calls;
        // It says once that messages go.
        let says = calls.of(CallNumber::Log);
        let work = |name| worst(plant.system, name).ok_or_else(|| missing::works(&[name]));
        match port.by {
            By::Target(look) => {
                let supply = Share::Main(own_supply(port.server, plant.system, plant.core)?);
                let waits = calls.takes(Step::Counted) + calls.gives(Step::Counted);
                Ok(Worker { supply, calls, each: work(LOOK)? + waits + says, told: look })
            }
            By::Usb(home) => {
                let place = plant.io_place(port.server, client, |name| name == home.vcpu);
                let place = place.ok_or_else(|| unserved(plant, port, client, home.vcpu))?;
                alone(plant, place, port.server)?;
                let moderation = home.moderation;
                let (supply, gap) = plant.io_supply(port.server, place, Some(moderation))?;
                let told = interrupts(gap, moderation, plant.core)?.top_half + moderation;
                let work = work(home.work)?;
                // The thread that manages may have the lock once before it, and is helped then.
                let waits = calls.of_bottom_half(1) + calls.takes(Step::Counted);
                Ok(Worker {
                    supply: Share::Io(supply),
                    calls,
                    each: work + work + waits + says,
                    told,
                })
            }
        }
    }

    /// Calls `then` with what the thread has for messages: a program also reports once a second,
    /// and says how it does.
    fn with<R>(&self, then: impl FnOnce(&dyn Service) -> R) -> R {
        match &self.supply {
            Share::Io(supply) => then(supply),
            Share::Main(supply) => {
                let reports = Reporting::new(supply, self.calls);
                then(&Reporting::new(&reports, self.calls))
            }
        }
    }

    /// Returns the longest time of so much work, whatever the thread did before.
    pub fn any(&self, work: Nanos) -> Nanos {
        self.with(|service| service.any(work))
    }

    /// Returns the longest time from when the thread has something to do until it has nothing:
    /// whatever comes meanwhile is done by then, in any order. `None` if that time may never come.
    /// `wakes` and `work` are the most in a closed window; each wake-up is at least `least` of it.
    pub fn busy(
        &self,
        wakes: impl Fn(Nanos) -> u64,
        work: impl Fn(Nanos) -> Nanos,
        least: Nanos,
    ) -> Option<Nanos> {
        self.with(|service| {
            let apart = keeps_apart(service, &Coming { wakeups: &wakes, work: &work, least });
            let done = |work: Nanos| match (work, apart) {
                (Nanos::ZERO, _) => Nanos::ZERO,
                (work, true) => service.sync(work),
                // A list that is full gives budget back a period later.
                (work, false) => service.period() + service.sync(work + service.lost()),
            };
            let mut busy = Nanos::ZERO;
            for _ in 0..STEPS_MAX {
                let next = done(work(busy));
                if next <= busy {
                    return Some(busy);
                }
                if next > BUSY_MAX {
                    return None;
                }
                busy = next;
            }
            None
        })
    }
}

fn unserved(plant: &Plant<'_>, port: &Port, client: u16, vcpu: &str) -> Missing {
    let name = |process| plant.system.process_name(process).unwrap_or_default();
    let (server, client) = (name(port.server), name(client));
    (
        format!("no I/O VCPU `{vcpu}` of `{server}` serves `{client}`"),
        format!("add the VCPU of `{client}` to `serves` of `{vcpu}`, in `uses` of `{server}`"),
    )
}

/// Checks that nobody else may put threads on the VCPU of a link.
fn alone(plant: &Plant<'_>, place: usize, server: u16) -> Result<(), Missing> {
    let vcpu = &plant.system.vcpus[usize::from(plant.core.ios[place])];
    let others = vcpu.allowed & !(1 << server);
    if others == 0 {
        return Ok(());
    }
    let other = u16::try_from(others.trailing_zeros()).unwrap_or_default();
    let (name, vcpu) = (plant.system.process_name(other).unwrap_or_default(), &vcpu.name);
    Err((
        format!("`{name}` may put threads on `{vcpu}`, which serves a link"),
        format!("take `{vcpu}` out of the `uses` of `{name}`"),
    ))
}
