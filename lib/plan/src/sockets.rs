//! The bill of every UDP socket: from the beginning of a datagram on the wire until its program is
//! done with it, and the frames that may wait meanwhile.
//!
//! A socket of a card is an input pipe: the wire is its bus, and frames of everybody pass it. A
//! descriptor of the card's ring is a request. Without one a frame is lost, so there have to be
//! enough. A socket of a USB network device is the end of the pipe from that.

use crate::driver::worst;
use crate::human;
use crate::missing::{self, Missing};
use crate::pipes::{NoBill, Plant, interrupts};
use crate::reports::Reporting;
use crate::supplies::own_supply;
use diapason_abi::Nanos;
use diapason_analysis::server::{IoSupply, Supply};
use diapason_contract::ethernet::{
    ADAPTER_NAMES, RECEIVE, RECEIVE_FRAME, RING, TAKE, WatchTerms, moderation,
};
use diapason_pipe::bill::{
    Basis, Bill, BillRefusal, Interrupts, Stage, StageTimes, Stages, Taking, Telling, Traffic,
    Transfers, User, What, input,
};
use diapason_pipe::size::Bucket;
use diapason_system::{
    AdapterDevice, Diagnostics, EthernetAdapter, PipeSpec, Place, ServerSpec, System, UdpPort,
};

/// Bytes on the wire of the longest frame and of the shortest: preamble, checksum and gap included.
const LONGEST: u64 = 1_538;
const SHORTEST: u64 = 84;

/// The promise of the plan for a socket.
#[derive(Clone, Debug)]
pub enum Socketed {
    /// Nothing: the description does not bound its traffic.
    Unpromised,
    Bounded(Box<Bill>),
    /// No bound, for this reason.
    Unbounded(NoBill),
}

impl Socketed {
    /// Returns the bill, if there is one.
    #[must_use]
    pub fn bill(&self) -> Option<&Bill> {
        match self {
            Socketed::Bounded(bill) => Some(bill),
            Socketed::Unpromised | Socketed::Unbounded(_) => None,
        }
    }
}

/// Returns what is promised of each socket of a system.
pub(crate) fn sockets(plant: &Plant<'_>) -> Vec<Socketed> {
    let of = |socket: &UdpPort| {
        let Some(period) = socket.period_ns else { return Socketed::Unpromised };
        match plant.bill_of_socket(socket, Nanos(period)) {
            Ok(bill) => Socketed::Bounded(Box::new(bill)),
            Err(none) => Socketed::Unbounded(none),
        }
    };
    plant.system.sockets.iter().map(of).collect()
}

/// Returns the time of so many bytes on the wire of an adapter, rounded up.
const fn on_wire(adapter: &EthernetAdapter, bytes: u64) -> Nanos {
    Nanos((bytes * 8_000).div_ceil(adapter.speed))
}

/// Returns the frames on the wire of an adapter.
const fn frames(adapter: &EthernetAdapter) -> Transfers {
    let (longest, shortest) = (on_wire(adapter, LONGEST), on_wire(adapter, SHORTEST));
    Transfers::of_one(longest, shortest, RING as u64 - 1)
}

/// The VCPU of the thread that receives.
struct Half {
    supply: IoSupply,
    interrupts: Interrupts,
}

impl Plant<'_> {
    /// Returns the bill of a socket to which a datagram comes so often.
    pub(crate) fn bill_of_socket(&self, socket: &UdpPort, period: Nanos) -> Result<Bill, NoBill> {
        let missing = |(what, remedy): Missing| NoBill::Missing(what, remedy);
        match self.system.adapters[socket.adapter].device {
            AdapterDevice::Card(_) => {
                let bill = self.bill_behind_card(socket, period).map_err(missing)?;
                bill.map_err(NoBill::Refused)
            }
            AdapterDevice::Usb(usb) => {
                let supply = self.reading(socket).map_err(missing)?;
                let work = self.work_of_program(socket).map_err(missing)?;
                let own = contract(socket, period);
                self.bill_behind_pipe((socket, usb), (own, &supply, work))
            }
        }
    }

    /// Returns the bill of a socket whose frames come to a card.
    fn bill_behind_card(
        &self,
        socket: &UdpPort,
        period: Nanos,
    ) -> Result<Result<Bill, BillRefusal>, Missing> {
        let system = self.system;
        let adapter = &system.adapters[socket.adapter];
        let own = contract(socket, period);
        let wire = whole_wire(adapter)?;
        let half = self.receiving(adapter, Some(socket.process))?;
        let supply = self.reading(socket)?;
        let reader = self.reporting_on(socket, &supply);
        let bottom_half =
            Stage { work: self.sorting(adapter)?, telling: Telling::All, service: &half.supply };
        let user = User {
            message: self.work_of_program(socket)?,
            wake: self.calls.of_reader(),
            taking: Taking::Each,
            service: &reader,
        };
        let stages = Stages {
            bus: frames(adapter),
            interrupts: half.interrupts,
            bottom_half,
            receiver: None,
            user,
        };
        let (own, wire) = ([own], [wire]);
        Ok(input(&stages, &Traffic::among(&[&own, &wire], 0)))
    }

    /// Returns the longest time from the beginning of a frame on the wire of an adapter until the
    /// thread that receives has taken it and has told the thread that sends.
    pub(crate) fn came(&self, adapter: &EthernetAdapter) -> Result<Nanos, Missing> {
        let half = self.receiving(adapter, None)?;
        let bottom_half =
            Stage { work: self.sorting(adapter)?, telling: Telling::All, service: &half.supply };
        // Nobody reads these frames after that thread.
        let nobody = User {
            message: Nanos::ZERO,
            wake: Nanos::ZERO,
            taking: Taking::Each,
            service: &half.supply,
        };
        let (bus, interrupts) = (frames(adapter), half.interrupts);
        let stages = Stages { bus, interrupts, bottom_half, receiver: None, user: nobody };
        let wire = [whole_wire(adapter)?];
        let bill = input(&stages, &Traffic::among(&[&wire], 0));
        let device = ADAPTER_NAMES[usize::from(adapter.number)].device;
        let help = "make the `rate` or the `burst` of the `[[adapter]]` smaller, or its `interval` \
                    shorter, or give its I/O VCPU more";
        let bill =
            bill.map_err(|refusal| (format!("at `{device}`: {refusal}"), help.to_owned()))?;
        match lost(&bill) {
            None => Ok(bill.before(What::User)),
            Some(_) => Err((format!("frames may be lost at `{device}`"), help.to_owned())),
        }
    }

    /// Returns the work of the thread that receives. It wakes the reader of every socket, and the
    /// thread that sends if the host keeps a common time.
    fn sorting(&self, adapter: &EthernetAdapter) -> Result<StageTimes, Missing> {
        let works = &self.system.works;
        let worst = |name: &str| works.iter().find(|it| it.name == name).map(|it| it.worst_ns);
        let unknown = [RECEIVE, RECEIVE_FRAME].into_iter().filter(|name| worst(name).is_none());
        let unknown: Vec<&str> = unknown.collect();
        if !unknown.is_empty() {
            return Err(missing::works(&unknown));
        }
        let adapters = &self.system.adapters;
        let same = |other: &&UdpPort| adapters[other.adapter].number == adapter.number;
        let readers = self.system.sockets.iter().filter(same).count() as u64;
        let woken = readers + u64::from(adapter.keeps_time);
        let own = Nanos(worst(RECEIVE).unwrap_or_default());
        Ok(StageTimes {
            activation: own + self.calls.of_bottom_half(woken),
            message: Nanos(worst(RECEIVE_FRAME).unwrap_or_default()),
            ..StageTimes::default()
        })
    }

    /// Returns the I/O VCPU of the thread that receives, and the interrupts that wake it. The VCPU
    /// has to serve this reader.
    fn receiving(&self, adapter: &EthernetAdapter, reader: Option<u16>) -> Result<Half, Missing> {
        let (system, core) = (self.system, self.core);
        self.locks_nothing(adapter.driver)?;
        let known = &ADAPTER_NAMES[usize::from(adapter.number)];
        let (device, name, is_any) = (known.device, known.vcpu, reader.is_none());
        let reader = &system.processes[usize::from(reader.unwrap_or(adapter.driver))];
        let is = |number: &u16| {
            let vcpu = &system.vcpus[usize::from(*number)];
            let ServerSpec::Io { serves, .. } = &vcpu.server else { return false };
            let serves_it = reader.vcpu.is_some_and(|main| serves.contains(&main));
            vcpu.name == name && (is_any || serves_it)
        };
        let Some(place) = core.ios.iter().position(is) else {
            let what = format!("the I/O VCPU `{name}` does not serve `{}`", reader.name);
            let remedy = format!("add the VCPU of `{}` to `serves` of `{name}`", reader.name);
            return Err((what, remedy));
        };
        if adapter.interval_ns == 0 {
            let what = format!("nothing bounds how often `{device}` interrupts");
            return Err((what, format!("add `interval = \"200us\"` to the device `{device}`")));
        }
        let moderation = Nanos(moderation(adapter.interval_ns));
        let gap = core.system.ios[place].least_gap();
        if gap > moderation {
            let what = format!("`{name}` is woken more often than its `interval` says");
            let most = human(adapter.interval_ns);
            return Err((what, format!("write at most `interval = \"{most}\"`, as the device")));
        }
        // The contract of the wire has every frame that could interrupt.
        let interrupts = interrupts(gap, moderation, core)?;
        let supply = IoSupply::inherited(&core.system, place).ok_or_else(|| {
            let what = format!("`{name}` does not get its share");
            (what, "make the system hold first".to_owned())
        })?;
        Ok(Half { supply, interrupts })
    }

    /// Returns the longest time of the program for a datagram.
    fn work_of_program(&self, socket: &UdpPort) -> Result<Nanos, Missing> {
        let process = self.system.process_name(socket.process).unwrap_or_default();
        let said = missing::said(socket.work_ns, process, "to the `[[socket]]`")?;
        let written = self.written_for_flows(socket.process).map(|pipe| self.driver(pipe).message);
        let names: Vec<&str> = std::iter::once(TAKE).chain(written).collect();
        let works = names.iter().filter_map(|name| worst(self.system, name));
        let declared = works.fold(Nanos::ZERO, |sum, work| sum + work);
        let calls = self.calls.writes().0.saturating_mul(names.len() as u64 - 1);
        if declared <= said {
            return Ok(said + Nanos(calls));
        }
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let (what, takes) = match &names[..] {
            [name] => (format!("work {name}"), "takes"),
            _ => (format!("works {}", names.join(" and ")), "take"),
        };
        let (worst, said) = (human(declared.0), human(said.0));
        let what =
            format!("the {what} {takes} up to {worst}, and `work` of the socket says {said}");
        Err((what, format!("write `work = \"{}ns\"`, or more", declared.0)))
    }

    /// Returns the pipes to devices that the program of a socket writes for a flow.
    fn written_for_flows(&self, process: u16) -> impl Iterator<Item = &PipeSpec> {
        let pipes = self.system.pipes.iter();
        pipes.filter(move |pipe| pipe.ends_at(process) && pipe.ends_flow)
    }

    /// Returns the supply of the program of a socket, which reports on it, and on each pipe that it
    /// writes for a flow and on that flow.
    pub(crate) fn reporting_on<'s>(&self, socket: &UdpPort, supply: &'s Supply) -> Reporting<'s> {
        let ends = 1 + 2 * self.written_for_flows(socket.process).count() as u64;
        Reporting::new(supply, &self.calls).of_ends(ends)
    }

    /// Returns the Main VCPU of the program, which reads nothing else.
    fn reading(&self, socket: &UdpPort) -> Result<Supply, Missing> {
        let (system, core) = (self.system, self.core);
        let process = &system.processes[usize::from(socket.process)];
        if process.vcpu.is_none() {
            let what = format!("`{}` has no VCPU", process.name);
            return Err((what, "give it one: without one no time is promised to it".to_owned()));
        }
        let supply = own_supply(socket.process, system, core)?;
        let others = system.sockets.iter().filter(|it| it.process == socket.process).count() > 1
            || system.pipe_ends(socket.process) > self.written_for_flows(socket.process).count()
            || system.tpipes.iter().any(|it| it.process == socket.process);
        if others {
            let what =
                format!("`{}` reads more than this socket, which no bill counts", process.name);
            return Err((what, "give each socket a process of its own".to_owned()));
        }
        if let Some(mutex) = self.mutexes.shared_by(socket.process) {
            let what = format!("`{}` may wait for the mutex `{mutex}`", process.name);
            return Err((what, format!("take `{mutex}` out of its `uses`")));
        }
        Ok(supply)
    }
}

/// Returns all frames that come through the wire of an adapter.
fn whole_wire(adapter: &EthernetAdapter) -> Result<Bucket, Missing> {
    let (rate, burst) = adapter.traffic.ok_or_else(|| {
        let device = ADAPTER_NAMES[usize::from(adapter.number)].device;
        let what = format!("nothing says how many frames come to `{device}`");
        (what, "add `rate = 2000` to its `[[adapter]]`: frames a second of anybody".to_owned())
    })?;
    Ok(Bucket { burst, ..Bucket::per_second(rate) })
}

/// Returns the datagrams that a socket may get.
const fn contract(socket: &UdpPort, period: Nanos) -> Bucket {
    Bucket::periodic(period).with_burst(socket.burst)
}

/// Returns how long a frame takes at most until the server of each adapter has taken it, if a
/// common time relies on that.
pub(crate) fn came(plant: &Plant<'_>) -> Vec<Option<Nanos>> {
    let of = |it: &EthernetAdapter| it.keeps_time.then(|| plant.came(it).ok()).flatten();
    plant.system.adapters.iter().map(of).collect()
}

/// Returns what the servers of adapters have to watch because bills and common times rely on it:
/// each server, with the numbers of its setting.
pub(crate) fn watched(
    system: &System,
    all: &[Socketed],
    came: &[Option<Nanos>],
) -> Vec<(u16, Vec<u64>)> {
    let each = (0..).zip(system.adapters.iter().zip(came));
    each.filter_map(|(place, at)| watched_at(system, all, place, at)).collect()
}

fn watched_at(
    system: &System,
    all: &[Socketed],
    place: usize,
    (adapter, came): (&EthernetAdapter, &Option<Nanos>),
) -> Option<(u16, Vec<u64>)> {
    let here = system.sockets.iter().zip(all).filter(|(socket, _)| socket.adapter == place);
    let billed = here.filter_map(|(socket, it)| Some((socket, it.bill()?.before(What::User))));
    let of = |socket, bucket: Bucket, jitter: Nanos| WatchTerms {
        socket,
        burst: bucket.burst,
        messages: bucket.messages,
        per_ns: bucket.per.0,
        jitter_ns: jitter.0,
    };
    // The server of a USB device watches the pipe that brings all frames.
    let everybody = match adapter.card() {
        None => None,
        Some(_) => {
            let longest = billed.clone().map(|(_, before)| before).chain(*came).max()?;
            Some(of(None, whole_wire(adapter).ok()?, longest))
        }
    };
    let own = billed.filter_map(|(socket, before)| {
        let period = Nanos(socket.period_ns?);
        Some(of(Some(socket.number), contract(socket, period), before))
    });
    let words = everybody.into_iter().chain(own).flat_map(|terms| terms.words());
    let words: Vec<u64> = words.collect();
    (!words.is_empty()).then_some((adapter.driver, words))
}

/// Returns what is refused of sockets.
pub(crate) fn refusals(system: &System, all: &[Socketed]) -> Vec<Diagnostics> {
    let mut found = Vec::new();
    for (socket, socketed) in system.sockets.iter().zip(all) {
        let words = match socketed {
            Socketed::Unpromised => unpromised(socket),
            Socketed::Unbounded(none) => Some(none.words(&socket.name)),
            Socketed::Bounded(bill) => of_bill(socket, bill),
        };
        if let Some([title, note, help]) = words {
            let place = Place::Socket(socket.number.into());
            found.push(system.problem(place, [&title, "", &note, &help]));
        }
    }
    found
}

fn unpromised(socket: &UdpPort) -> Option<[String; 3]> {
    socket.latency_ns?;
    let title = format!("`{}` has a `latency` and nothing bounds its traffic", socket.name);
    let help = "add `period = \"1ms\"`: the time between two datagrams in the long run";
    Some([title, String::new(), help.into()])
}

/// Returns the buffers that an adapter has and those that it needs, if these are more: frames may
/// be lost.
fn lost(bill: &Bill) -> Option<(u64, u64)> {
    bill.items().iter().find_map(|item| match item.basis {
        Basis::Round { queued, needed, .. } => Some((queued, needed)),
        _ => None,
    })
}

fn of_bill(socket: &UdpPort, bill: &Bill) -> Option<[String; 3]> {
    let name = &socket.name;
    let items = bill.items().iter().map(|it| format!("{} {}", it.what.name(), human(it.value.0)));
    let note = items.collect::<Vec<_>>().join(", ");
    if let Some((queued, needed)) = lost(bill) {
        let title = format!(
            "`{name}` may lose frames: {needed} may come before the adapter gets buffers back, and \
             it has {queued}"
        );
        let help = "make the `rate` or the `burst` of the `[[adapter]]` smaller, or its `interval` \
                    shorter, or give its I/O VCPU more";
        return Some([title, note, help.into()]);
    }
    if bill.slots > socket.quota.into() {
        let (most, quota) = (bill.slots, socket.quota);
        let title = format!("{most} frames may wait for `{name}`, and its quota is {quota}");
        let help = format!("write `quota = {most}`, or make the bound shorter");
        return Some([title, note, help]);
    }
    let wanted = socket.latency_ns.filter(|wanted| *wanted < bill.total.0)?;
    let (takes, wanted) = (human(bill.total.0), human(wanted));
    let title = format!("datagrams of `{name}` may take {takes}; at most {wanted} is wanted");
    let longest = bill.items().iter().max_by_key(|item| item.value)?.what.name();
    let micros = bill.total.0.div_ceil(1_000);
    let help = format!("write `latency = \"{micros}us\"`, or shorten the longest item, {longest}");
    Some([title, note, help])
}
