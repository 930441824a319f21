//! The processor time that a host gives to flows: that of a program, and of the thread that serves
//! a link.

use super::route::{By, Port};
use crate::calls::{Calls, Step};
use crate::driver::worst;
use crate::missing::{self, Missing};
use crate::pipes::{Plant, interrupts};
use crate::reports::{FRAME_RECORDS, Reporting};
use crate::supplies::{own_supply, supply_among};
use diapason_abi::{CallNumber, Nanos};
use diapason_analysis::server::{IoSupply, Supply};
use diapason_contract::ethernet::{SEND_FRAME, SEND_GATES};
use diapason_contract::link::NAMES;
use diapason_contract::time::SEND_TIME;
use diapason_pipe::bill::{self, Coming, Service, found};
use diapason_system::{ChainSpec, EthernetAdapter, FlowStop, PipeSpec};

/// The works of the servers in descriptions, and those of a program of links for a message.
const LOOK: &str = "dbcd.look";
const OF_PROGRAM: [&str; 2] = ["link.check", "link.seal"];
/// Threads of a router with mailboxes.
const MAIL_THREADS: u16 = 2;
/// Steps to a busy period that ends before it is given up, and the longest that is looked for.
const STEPS_MAX: u32 = 1_024;
const BUSY_MAX: Nanos = Nanos::from_secs(10);

/// A thread that messages of flows pass.
pub(super) struct Worker<'a> {
    supply: Share,
    calls: &'a Calls,
    /// The longest that it takes each time it is woken, or for one message besides its work.
    pub each: Nanos,
    /// The time of a USB server for each request of a client and for each transfer that has ended,
    /// if that is apart from its time when it is woken.
    pub message: Nanos,
    /// From the end of a transfer until the thread is told of it or looks.
    pub told: Nanos,
    /// A look at the gates of an adapter, with the wait after it; or of a router at the mailboxes
    /// out of which it takes messages.
    pub look: Nanos,
    /// A turn of the common time of an adapter, with the two waits around it. The thread is woken
    /// by a message that came, and again when the turn is due.
    pub turn: Nanos,
    /// The time of a router when it hears of a message in a mailbox that may not come yet, or when
    /// it wakes because the message may.
    pub hears: Nanos,
    /// Records in which it reports once a second.
    records: u64,
    /// Its reports: on the flow, and on each pipe that it writes for one.
    ends: u64,
    /// Whether it takes messages in the order of their coming. Then what comes later delays none.
    in_order: bool,
}

enum Share {
    Main(Supply),
    Io(IoSupply),
}

impl<'a> Worker<'a> {
    /// Returns a program of a flow over cables. It has no socket, and no pipe but one that begins a
    /// flow.
    pub fn program(plant: &'a Plant<'a>, stop: FlowStop) -> Result<Worker<'a>, Missing> {
        has_others(plant, stop, 0)?;
        let supply = Share::Main(own_supply(stop.process, plant.system, plant.core)?);
        Worker::of(plant, stop, supply)
    }

    fn of(plant: &'a Plant<'a>, stop: FlowStop, supply: Share) -> Result<Worker<'a>, Missing> {
        plant.locks_nothing(stop.process)?;
        let name = plant.system.process_name(stop.process).unwrap_or_default();
        let said = missing::said(stop.work_ns, name, "where the `[[flow]]` names it")?;
        // The work of a pipe has what its reader does for a message before it sends that on.
        let own = || plant.system.pipes.iter().filter(|pipe| of_flow(pipe, stop.process));
        let at_pipes: Vec<&str> = own().map(|pipe| plant.driver(pipe).message).collect();
        let names = || at_pipes.iter().copied().chain(OF_PROGRAM);
        let works = names().filter_map(|name| worst(plant.system, name));
        let declared = works.fold(Nanos::ZERO, |sum, work| sum + work);
        if declared > said {
            let listed = names().map(|work| format!("`{work}`")).collect::<Vec<String>>();
            let listed = listed.join(" and ");
            let by = if own().any(|pipe| pipe.sent_on.is_some()) { "pipe" } else { "flow" };
            return Err((
                format!(
                    "the works {listed} take up to {declared}, and the {by} says {said} for \
                     `{name}`"
                ),
                format!("write `work = \"{}ns\"`, or a smaller `worst` of the works", declared.0),
            ));
        }
        let writes = own().filter(|pipe| pipe.ends_flow).count() as u64;
        let each = plant.calls.of_link() + Nanos(plant.calls.writes().0.saturating_mul(writes));
        Ok(Worker { ends: 1 + writes, ..Worker::new(supply, &plant.calls, each) })
    }

    /// Returns a router with mailboxes, which reports on each of its flows from or to one. A second
    /// thread of it hears of each message in a mailbox. The first takes messages out of `posts`
    /// mailboxes. A look asks each of them.
    pub fn of_router(
        plant: &'a Plant<'a>,
        stop: FlowStop,
        (flows, posts): (u64, u64),
    ) -> Result<Worker<'a>, Missing> {
        let (system, calls) = (plant.system, &plant.calls);
        let process = &system.processes[usize::from(stop.process)];
        if process.threads < MAIL_THREADS || process.events == 0 {
            let what = format!("`{}` cannot hear of messages in mailboxes", process.name);
            return Err((what, "write `threads = 2` and `events = 1`".to_owned()));
        }
        let place = (stop.process, MAIL_THREADS);
        let supply = supply_among(&plant.core.system, place, system, plant.core)?;
        let supply = Share::Main(supply);
        let program = Worker::of(plant, stop, supply)?;
        let look = Nanos(calls.takes(Step::Mailed).0.saturating_mul(posts));
        let looks = look + look + look + look;
        let hears = calls.of(CallNumber::EventWait) + calls.gives(Step::Counted);
        let each = program.each + looks + calls.gives(Step::Mailed) + hears;
        let hears = hears + calls.takes(Step::Counted) + look;
        Ok(Worker { each, look, hears, records: 2 + flows, in_order: false, ..program })
    }

    /// Returns a program that sends to mailboxes, or takes messages out of one. It has no socket,
    /// pipe or link. It reports on each of its flows.
    pub fn at_mailbox(
        plant: &'a Plant<'a>,
        stop: FlowStop,
        flows: u64,
    ) -> Result<Worker<'a>, Missing> {
        has_no_link(plant, stop)?;
        has_others(plant, stop, 0)?;
        let calls = &plant.calls;
        let supply = Share::Main(own_supply(stop.process, plant.system, plant.core)?);
        let program = Worker::of(plant, stop, supply)?;
        let waits = calls.takes(Step::Mailed);
        let each = waits + waits + calls.gives(Step::Mailed);
        Ok(Worker { each, records: 2 + flows, in_order: false, ..program })
    }

    /// Returns a program that sends datagrams of a flow. It has no other socket, no link, and no
    /// pipe but one that begins a flow.
    pub fn of_datagrams(plant: &'a Plant<'a>, stop: FlowStop) -> Result<Worker<'a>, Missing> {
        plant.locks_nothing(stop.process)?;
        let (system, calls) = (plant.system, &plant.calls);
        let name = system.process_name(stop.process).unwrap_or_default();
        missing::said(stop.work_ns, name, "to the `[[flow]]`")?;
        has_no_link(plant, stop)?;
        has_others(plant, stop, 1)?;
        let supply = Share::Main(own_supply(stop.process, system, plant.core)?);
        Ok(Worker::new(supply, calls, calls.of_datagram()))
    }

    const fn new(supply: Share, calls: &'a Calls, each: Nanos) -> Worker<'a> {
        let [message, told, look, turn, hears] = [Nanos::ZERO; 5];
        let (records, ends, in_order) = (1, 1, true);
        Worker { supply, calls, each, message, told, look, turn, hears, records, ends, in_order }
    }

    /// Returns the thread of an adapter's server that sends. Each frame may wake it twice: once for
    /// the frame, once for a sign without one. `told` is what it takes to report. It looks at gates
    /// if the adapter has some. Without frames of programs it sends only for a common time.
    pub fn of_sender(
        plant: &'a Plant<'a>,
        adapter: &EthernetAdapter,
        (is_gated, sends): (bool, bool),
    ) -> Result<Worker<'a>, Missing> {
        let (driver, keeps_time) = (adapter.driver, adapter.keeps_time);
        plant.locks_nothing(driver)?;
        let (system, calls) = (plant.system, &plant.calls);
        let work = |name| worst(system, name).ok_or_else(|| missing::works(&[name]));
        let supply = Share::Main(sending(plant, driver)?);
        let waits = calls.takes(Step::Counted);
        let gauges = 1 + u64::from(keeps_time) + system.sockets.len() as u64;
        let reports = calls.of(CallNumber::Log).0.saturating_mul(gauges * FRAME_RECORDS);
        let none = Nanos::ZERO;
        let look = if is_gated { work(SEND_GATES)? + waits } else { none };
        let turn = if keeps_time { work(SEND_TIME)? + waits + waits } else { none };
        let each = if sends { work(SEND_FRAME)? + waits + waits } else { none };
        let told = waits + Nanos(reports);
        Ok(Worker { told, look, turn, ..Worker::new(supply, calls, each) })
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
                let each = work(LOOK)? + waits + says;
                Ok(Worker { told: look, ..Worker::new(supply, calls, each) })
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
                let each = work + work + waits + says;
                let message = worst(plant.system, home.each).unwrap_or_default();
                Ok(Worker { message, told, ..Worker::new(Share::Io(supply), calls, each) })
            }
        }
    }

    /// Returns the time of a wait for the next message.
    pub fn waits(&self) -> Nanos {
        self.calls.takes(Step::Counted)
    }

    /// Calls `then` with what the thread has for messages: a program also reports once a second,
    /// and says how it does.
    fn with<R>(&self, then: impl FnOnce(&dyn Service) -> R) -> R {
        match &self.supply {
            Share::Io(supply) => then(supply),
            Share::Main(supply) => {
                let reports =
                    Reporting::saying(supply, self.calls, self.records).of_ends(self.ends);
                then(&Reporting::new(&reports, self.calls))
            }
        }
    }

    /// Returns the longest time of so much work, whatever the thread did before.
    pub fn any(&self, work: Nanos) -> Nanos {
        self.with(|service| service.any(work))
    }

    /// Returns the least that a wake-up adds to its work. A router with mailboxes wakes twice for a
    /// message of one.
    pub fn least(&self) -> Nanos {
        match (self.in_order, self.hears) {
            (true, _) => self.each,
            (false, Nanos::ZERO) => Nanos(self.each.0 / 2),
            (false, hears) => Nanos(hears.0 / 2),
        }
    }

    /// Returns the longest time of all that can be `open` for a program when a message comes, if
    /// nothing that comes later is done before it.
    pub fn done_with(&self, open: Nanos) -> Nanos {
        if self.in_order { self.any(open) } else { Nanos::FOREVER }
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
            let found = found(service, &Coming { wakeups: &wakes, work: &work, least });
            let done = |work| bill::done(service, work, found);
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

/// Checks that a program has at most so many sockets, is in no chain, and reads and writes no pipe
/// but one that begins or ends a flow: no item of a flow counts what it does for others.
fn has_others(plant: &Plant<'_>, stop: FlowStop, sockets: usize) -> Result<(), Missing> {
    let system = plant.system;
    let own = system.sockets.iter().filter(|it| it.process == stop.process).count();
    let of_flows = system.pipes.iter().filter(|pipe| of_flow(pipe, stop.process));
    let pipes = system.pipe_ends(stop.process) - of_flows.count();
    let mut tuned = system.tpipes.iter().map(|it| it.process);
    let in_chain = |chain: &ChainSpec| {
        let reads = system.pipes[usize::from(chain.from)].ends_at(stop.process);
        reads || chain.links.iter().any(|link| link.process == stop.process)
    };
    let what = match () {
        () if own > sockets => "other sockets",
        () if pipes > 0 => "pipes",
        () if tuned.any(|other| other == stop.process) => "tuned pipes",
        () if system.chains.iter().any(in_chain) => "a part in a chain",
        () => return Ok(()),
    };
    Err(other(plant, stop, what))
}

/// Returns whether a flow begins or ends with this pipe, which this process reads or writes.
fn of_flow(pipe: &PipeSpec, process: u16) -> bool {
    pipe.ends_at(process) && (pipe.sent_on.is_some() || pipe.ends_flow)
}

/// Checks that a program has no link.
fn has_no_link(plant: &Plant<'_>, stop: FlowStop) -> Result<(), Missing> {
    let uses = &plant.system.processes[usize::from(stop.process)].uses;
    let has_link = NAMES.iter().any(|names| uses.iter().any(|used| used == names[0]));
    if has_link { Err(other(plant, stop, "links")) } else { Ok(()) }
}

/// Returns why a program that has something else, too, is in no flow.
fn other(plant: &Plant<'_>, stop: FlowStop, what: &str) -> Missing {
    let name = plant.system.process_name(stop.process).unwrap_or_default();
    let help = match what {
        "pipes" => {
            "give each a process of its own; if it sends on what it reads, write `pipe` in the \
             `[[flow]]` instead of `period`"
        }
        _ => "give each a process of its own",
    };
    (format!("`{name}` also has {what}, which no flow counts"), help.to_owned())
}

/// Returns the Main VCPU of an adapter's server. Its other thread runs on an I/O VCPU.
fn sending(plant: &Plant<'_>, driver: u16) -> Result<Supply, Missing> {
    let (system, core) = (plant.system, plant.core);
    let server = &system.processes[usize::from(driver)];
    let shares = system.processes.iter().filter(|it| it.vcpu == server.vcpu).count() > 1;
    let allowed = |main: u16| system.vcpus[usize::from(main)].allowed;
    let others = server.vcpu.map_or(0, allowed) & !(1 << driver);
    if shares || others != 0 || server.threads > 2 {
        let what = format!("others may use the VCPU on which `{}` sends", server.name);
        return Err((what, "give it one of its own, and write `threads = 2`".to_owned()));
    }
    let place = core.mains.iter().position(|number| Some(*number) == server.vcpu);
    place.and_then(|place| Supply::of(&core.system, place)).ok_or_else(|| {
        let what = format!("the VCPU of `{}` does not get its budget in every period", server.name);
        (what, "make the system hold first".to_owned())
    })
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
