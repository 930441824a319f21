//! How soon a message of another node reaches the program that reads it.
//!
//! Its frame ends, and the controller interrupts. The driver takes it out of its buffer, and has
//! put it into the memory of its reader when it is idle again: after its longest busy period, as
//! with messages that it sends ([`queued`](super::queued)). The reader has done all that it does
//! for it when it is idle again in turn.
//!
//! A buffer keeps one frame. So the driver has to be idle again before the next one that the buffer
//! hears is through. Two frames of a message end no closer than the shortest frame is long, and no
//! closer than `period` less the longest response of the message: the first may take that long, and
//! the second no time but that of its frame. A mask that ignores deadlines lets other messages into
//! the buffer; then any two frames may follow each other.

use super::queued::{SHORTEST_BITS, repeated};
use super::{CanOutcome, CanPlan};
use crate::human;
use crate::missing::Missing;
use crate::pipes::Plant;
use crate::reports::Reporting;
use crate::supplies::own_supply;
use diapason_abi::Nanos;
use diapason_can::frame::standard;
use diapason_can::{BitRate, Filter, mts, wire};
use diapason_contract::toucan::{HALF_STAMP_BITS, IN_MESSAGES, MessageId, READ, STAMP_BITS};
use diapason_pipe::bill::{Coming, busy_period};
use diapason_pipe::size::Bucket;
use diapason_system::{CanMessage, CanNetwork, ServerSpec, System};

/// The promise about a message that a process of this host reads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CanHeard {
    /// The longest from the end of its frame until the driver has put it into the memory of its
    /// reader, as the driver measures it.
    pub told: Nanos,
    /// The longest from the end of its frame until the reader is done with it.
    pub done: Nanos,
    /// The least time between two frames that its buffer hears.
    pub apart: Nanos,
}

/// Returns what is promised of each message that processes of this host read, or why nothing is and
/// what to do.
pub(super) fn heard(
    plant: &Plant<'_>,
    network: &CanNetwork,
    plan: &CanPlan,
) -> Vec<(usize, Result<CanHeard, [String; 2]>)> {
    let Ok(rate) = BitRate::new(network.rate) else { return Vec::new() };
    let Some(Ok(queued)) = plan.queued else { return Vec::new() };
    let ear = Ear { plant, network, plan, rate, queued };
    let promises = network.heard().into_iter().map(|place| (place, ear.promise(place)));
    let time = network.time.map(|time| time.message).filter(|time| !network.leads(*time));
    let time = time.and_then(|time| Some((time, Err(ear.unread(time)?))));
    promises.chain(time).map(|(place, it)| (place, it.map_err(<[String; 2]>::from))).collect()
}

struct Ear<'a> {
    plant: &'a Plant<'a>,
    network: &'a CanNetwork,
    plan: &'a CanPlan,
    rate: BitRate,
    /// Until the driver is idle again.
    queued: Nanos,
}

impl Ear<'_> {
    fn promise(&self, place: usize) -> Result<CanHeard, Missing> {
        let message = &self.network.messages[place];
        let reader = message.reader.as_deref().unwrap_or_default();
        let stamp = self.rate.time(STAMP_BITS + half(message)) + READ;
        if let Some(missing) = self.unread(place) {
            return Err(missing);
        }
        let (apart, reading) = (self.apart(place).0, self.reading(reader)?);
        let told = self.queued + stamp;
        Ok(CanHeard { told, done: told + reading, apart })
    }

    fn driver(&self) -> &str {
        let driver = self.network.controller.map(|controller| controller.driver);
        driver.and_then(|driver| self.plant.system.process_name(driver)).unwrap_or_default()
    }

    /// Returns why the driver may not have read the frame of message `place` before the next one
    /// takes its buffer.
    fn unread(&self, place: usize) -> Option<Missing> {
        let (apart, other) = self.apart(place);
        let name = &self.network.messages[place].name;
        let [takes, next] = [self.queued, apart].map(|time| human(time.0));
        let driver = self.driver();
        (self.queued >= apart).then(|| match other {
            Some(other) => (
                format!(
                    "its buffer hears `{other}`, too, because it ignores deadlines; `{driver}` may \
                     take {takes} to read it, and the next frame may be through {next} after it"
                ),
                format!("write another `class` for `{other}` or for `{name}`"),
            ),
            None => (
                format!(
                    "`{driver}` may take {takes} to read it, and the next one may be through \
                     {next} after it"
                ),
                format!(
                    "give the VCPU of `{driver}` more `budget` or a shorter `period`, or {}",
                    self.later(place)
                ),
            ),
        })
    }

    /// Returns what makes two frames of message `place` end further apart.
    fn later(&self, place: usize) -> String {
        let message = &self.network.messages[place];
        let rest = message.period_ns.map(Nanos).unwrap_or_default() + self.frame() - self.queued;
        let micros = rest.0.saturating_sub(1) / 1_000;
        match self.plan.messages[place].outcome {
            CanOutcome::StartBy(_) if micros > 0 => {
                format!("write `deadline = \"{micros}us\"` at most for `{}`", message.name)
            }
            _ => format!("make the `period` of `{}` longer", message.name),
        }
    }

    /// Returns the time of the shortest frame.
    fn frame(&self) -> Nanos {
        self.rate.time(u64::from(SHORTEST_BITS - wire::INTERFRAME_BITS))
    }

    /// Returns whether the mask of the buffers ignores deadlines.
    fn is_wide(&self) -> bool {
        let names = self.network.names();
        let by_code = |place: usize| matches!(names[place], Some(MessageId::Code(_)));
        self.network.heard().into_iter().any(by_code)
    }

    /// Returns the least time between the ends of two frames that the buffer of message `place`
    /// hears, and another message that it hears, if there is one.
    fn apart(&self, place: usize) -> (Nanos, Option<&str>) {
        let least = self.rate.time(SHORTEST_BITS.into());
        let names = self.network.names();
        let wide = self.is_wide();
        let other = (0..names.len())
            .find(|other| *other != place && wide && confused(names[place], names[*other]));
        if let Some(other) = other {
            return (least, Some(&self.network.messages[other].name));
        }
        let message = &self.network.messages[place];
        let response = match &self.plan.messages[place].outcome {
            CanOutcome::Response(response) => Some(*response),
            CanOutcome::StartBy(_) => message.deadline_ns.map(Nanos),
            _ => None,
        };
        let period = message.period_ns.map(Nanos);
        let apart = response.zip(period).map(|(response, period)| period + self.frame() - response);
        (apart.map_or(least, |apart| apart.max(least)), None)
    }

    /// Returns the messages that come once more because their frames were destroyed in the last
    /// bit, with the longest work for one.
    fn repeated(&self, own: &[(Bucket, Nanos)]) -> Option<(Bucket, Nanos)> {
        let work = own.iter().map(|(_, work)| *work).max()?;
        Some((repeated(self.network)?.with_jitter(self.queued), work))
    }

    /// Returns the longest time from when the driver tells a reader of a message until the reader
    /// is done with it.
    fn reading(&self, reader: &str) -> Result<Nanos, Missing> {
        let (system, core) = (self.plant.system, self.plant.core);
        let Some(process) = system.processes.iter().position(|it| it.name == reader) else {
            return Err((format!("no process is called `{reader}`"), "declare it".to_owned()));
        };
        let process = u16::try_from(process).unwrap_or(u16::MAX);
        self.plant.locks_nothing(process)?;
        reads_only(system, process, reader)?;
        let supply = own_supply(process, system, core)?;
        let own = self.network.messages.iter().filter(|it| it.reader.as_deref() == Some(reader));
        let wake = self.plant.calls.of_reader();
        let comings: Vec<(Bucket, Nanos)> = own
            .clone()
            .map(|message| {
                let contract = Bucket::periodic(Nanos(message.period_ns.unwrap_or_default()));
                let late = Nanos(message.deadline_ns.unwrap_or_default()) + self.queued;
                (contract.with_jitter(late), wake + Nanos(message.work_ns))
            })
            .collect();
        let repeated = self.repeated(&comings);
        let comings: Vec<(Bucket, Nanos)> = comings.into_iter().chain(repeated).collect();
        let count = |window: Nanos| comings.iter().map(|(it, _)| it.most(window)).sum::<u64>();
        let service = Reporting::saying(&supply, &self.plant.calls, own.count() as u64);
        let coming = Coming {
            // The start of the program is one more.
            wakeups: |window| count(window).saturating_add(1),
            work: |window| {
                let each = comings.iter().map(|(it, work)| work.0.saturating_mul(it.most(window)));
                Nanos(each.fold(0, u64::saturating_add))
            },
            least: comings.iter().map(|(_, work)| *work).min().unwrap_or_default(),
        };
        let busy = busy_period(&service, &coming).ok_or_else(|| {
            let what =
                format!("`{reader}` may be given more messages than its VCPU has budget for");
            (what, "give it more `budget`, or make the `work` of messages shorter".to_owned())
        })?;
        let waiting = count(busy);
        if waiting > IN_MESSAGES as u64 {
            let what = format!(
                "{waiting} messages may wait for `{reader}`, whose memory has room for \
                 {IN_MESSAGES}"
            );
            return Err((what, "give its VCPU more `budget` or a shorter `period`".to_owned()));
        }
        Ok(busy)
    }
}

/// Returns the bits of a stamp that the controller does not keep of a message.
fn half(message: &CanMessage) -> u64 {
    match message.id {
        Some((_, true)) => HALF_STAMP_BITS,
        _ => 0,
    }
}

/// Returns whether a buffer that hears `wanted` under the mask that ignores deadlines hears
/// `other`, too.
fn confused(wanted: Option<MessageId>, other: Option<MessageId>) -> bool {
    let raw = |id: Option<MessageId>| match id? {
        MessageId::Code(code) => Some(u32::from(code)),
        MessageId::Fixed(raw, false) => Some(raw),
        MessageId::Fixed(_, true) => None,
    };
    let (Some(wanted), Some(other)) = (raw(wanted), raw(other)) else { return false };
    let seen = Filter { code: wanted, ..mts::code_filter(0) };
    standard(other).is_ok_and(|other| seen.passes(other))
}

/// Checks that a reader waits for nothing but messages of controllers: no bound of them counts
/// what else it does.
fn reads_only(system: &System, process: u16, reader: &str) -> Result<(), Missing> {
    let vcpu = system.processes[usize::from(process)].vcpu;
    let job = vcpu.is_some_and(|vcpu| {
        matches!(system.vcpus[usize::from(vcpu)].server, ServerSpec::Main { job_ns: Some(_), .. })
    });
    let chained = || system.chains.iter().flat_map(|chain| &chain.links);
    let reads = |network: &&CanNetwork| network.readers().contains(&reader);
    let what = if job {
        "the VCPU of it has a `job`"
    } else if system.pipe_ends(process) > 0 {
        "it is at the end of a pipe"
    } else if chained().any(|link| link.process == process) {
        "it is part of a chain"
    } else if system.sockets.iter().any(|socket| socket.process == process) {
        "it has a socket"
    } else if system.tpipes.iter().any(|pipe| pipe.process == process) {
        "it may open a pipe"
    } else if system.cans.iter().filter(reads).count() > 1 {
        "it reads from another bus"
    } else {
        return Ok(());
    };
    Err((
        format!("`{reader}` reads messages, and {what}: no bound counts both"),
        "let another process do one of them".to_owned(),
    ))
}
