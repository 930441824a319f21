//! How long messages of this host wait for the driver of their controller.
//!
//! One thread of the driver takes messages and looks at the controller, another hears interrupts.
//! They take turns in no order that a bound could rely on. So a message is in the queue of the
//! controller when the driver is idle again: after its longest busy period. Its work in a window is
//! that of the messages whose contracts let them in, of interrupts as far apart as the device says,
//! of looks and of reports. A message may overwrite another, and the driver looks once more after
//! that frame. A program that sends too often wakes the driver for a message when it comes and when
//! its contract lets it in. Of messages that a program does not have the driver takes one in each
//! [`LOOK`]. A message of another node that a program reads is more work after its interrupt.

use crate::human;
use crate::jobs::Jobs;
use crate::missing::{self, Missing};
use crate::pipes::Plant;
use diapason_abi::{CallNumber, Nanos};
use diapason_analysis::server::Supply;
use diapason_can::BitRate;
use diapason_can::mts::Epochs;
use diapason_can::response::Errors;
use diapason_can::wire::{CRC_BITS, INTERFRAME_BITS, STANDARD_HEADER, TRAILER_BITS};
use diapason_contract::toucan::{FIND, HEAR, LOOK, RENEW, SERVE, TAKE};
use diapason_pipe::bill::{Coming, busy_period};
use diapason_pipe::measured::REPORT;
use diapason_pipe::size::Bucket;
use diapason_system::{CanController, CanMessage, CanNetwork, CanScheduler, CanSender};

/// Returns how long a program takes at most from the release of message `place` until the driver
/// knows of it: a described job of the program is done then. Without one nothing bounds it. The
/// driver knows of the time at once.
pub(super) fn told(
    plant: &Plant<'_>,
    jobs: &Jobs,
    network: &CanNetwork,
    place: usize,
) -> Option<Nanos> {
    let (system, core) = (plant.system, plant.core);
    if network.leads(place) {
        return Some(Nanos::ZERO);
    }
    let CanSender::Process(sender) = &network.messages[place].sender else { return None };
    let process = system.processes.iter().find(|process| process.name == *sender)?;
    let place = core.mains.iter().position(|number| Some(*number) == process.vcpu)?;
    Some(jobs.get(place)?.as_ref()?.as_ref().ok()?.done)
}

/// Bits of the shortest frame, with the interframe space: a standard one without data or stuffing.
pub(super) const SHORTEST_BITS: u32 = STANDARD_HEADER + CRC_BITS + TRAILER_BITS + INTERFRAME_BITS;

/// A reason for which the driver wakes up, and its work for that.
struct Waking {
    contract: Bucket,
    work: Nanos,
    /// The driver wakes up for it. Otherwise its work follows that of another wake-up.
    wakes: bool,
}

/// Returns how long a message waits at most from when its program wakes the driver until it is in
/// the queue of the controller. `None`: this host has no such controller on the bus.
pub(super) fn queued(plant: &Plant<'_>, network: &CanNetwork) -> Option<Result<Nanos, Missing>> {
    network.controller.map(|controller| plant.queued(network, &controller))
}

impl Plant<'_> {
    fn queued(&self, network: &CanNetwork, controller: &CanController) -> Result<Nanos, Missing> {
        self.locks_nothing(controller.driver)?;
        self.interrupts(network, controller)?;
        let supply = self.supply_of_driver(controller.driver)?;
        let wakings = self.wakings(network, controller)?;
        let events = |window: Nanos| wakings.iter().map(move |it| (it, it.contract.most(window)));
        let coming = Coming {
            // The start of the driver is one more.
            wakeups: |window| {
                let waking = events(window).filter(|(it, _)| it.wakes);
                waking.map(|(_, count)| count).sum::<u64>().saturating_add(1)
            },
            work: |window| {
                let each = events(window).map(|(it, count)| it.work.0.saturating_mul(count));
                Nanos(each.fold(0, u64::saturating_add))
            },
            least: wakings.iter().filter(|it| it.wakes).map(|it| it.work).min().unwrap_or_default(),
        };
        busy_period(&supply, &coming).ok_or_else(|| {
            let driver = self.system.process_name(controller.driver).unwrap_or_default();
            let what = format!("`{driver}` may be asked for more than its VCPU gives");
            (what, "give it more `budget`, or make `interval` of the device longer".to_owned())
        })
    }

    /// Checks that the controller interrupts no more often than its device says. It does once for a
    /// frame that a buffer hears, and for one of this host after which it wants the next.
    fn interrupts(&self, network: &CanNetwork, controller: &CanController) -> Result<(), Missing> {
        let sent = network.streams().len();
        let hears = !network.heard().is_empty() || network.time.is_some();
        if !hears && sent <= controller.own.into() {
            return Ok(());
        }
        let Ok(rate) = BitRate::new(network.rate) else { return Ok(()) };
        let apart = rate.time(SHORTEST_BITS.into());
        if Nanos(controller.interval_ns) <= apart {
            return Ok(());
        }
        let device = self
            .system
            .devices
            .get(controller.device)
            .map(|it| it.name.as_str())
            .unwrap_or_default();
        let (apart, said) = (apart.0 / 1_000, human(controller.interval_ns));
        let what = format!(
            "`{device}` may interrupt once in {apart} us, where frames follow each other, and its \
             `interval` is {said}"
        );
        Err((what, format!("write `interval = \"{apart}us\"` at most")))
    }

    /// Returns what wakes the driver, and what it does then.
    fn wakings(
        &self,
        network: &CanNetwork,
        controller: &CanController,
    ) -> Result<Vec<Waking>, Missing> {
        let works = &self.system.works;
        let worst = |name: &str| works.iter().find(|it| it.name == name).map(|it| it.worst_ns);
        let (Some(serve), Some(find), Some(take)) = (worst(SERVE), worst(FIND), worst(TAKE)) else {
            let unknown = [SERVE, FIND, TAKE].into_iter().filter(|name| worst(name).is_none());
            return Err(missing::works(&unknown.collect::<Vec<_>>()));
        };
        let call = |number| self.calls.of(number);
        // A wake-up ends with a look at segments that are empty.
        let wake = call(CallNumber::SemLock) + Nanos(find);
        let hear = call(CallNumber::EventWait) + call(CallNumber::SemUnlock);
        let own = |message: &&CanMessage| matches!(message.sender, CanSender::Process(_));
        let own = network.messages.iter().filter(own);
        let reports = Nanos(call(CallNumber::Log).0.saturating_mul(own.clone().count() as u64));
        let taken = wake + Nanos(find) + Nanos(take);
        let look = wake + Nanos(serve);
        let every = |period, work| Waking { contract: Bucket::periodic(period), work, wakes: true };
        let heard = self.hearings(network)?;
        let heard_reports = Nanos(call(CallNumber::Log).0.saturating_mul(heard.len() as u64));
        let rest = [
            every(Nanos(controller.interval_ns), hear + look),
            every(LOOK, look),
            every(REPORT, wake + reports + heard_reports),
        ];
        let renewals = self.renewals(network, wake)?;
        let messages = own.map(|message| {
            let contract = Bucket::periodic(Nanos(message.period_ns.unwrap_or_default()));
            let contract = contract.with_jitter(Nanos(message.jitter_ns));
            [taken, wake, look].map(|work| Waking { contract, work, wakes: true })
        });
        let strangers = network.senders().into_iter().map(|_| every(LOOK, taken));
        let all = messages.flatten().chain(strangers).chain(rest).chain(renewals);
        Ok(all.chain(heard).collect())
    }

    /// Returns the work for messages of other nodes: after their interrupt, the driver puts each
    /// into the memory of its reader and gives a semaphore. Frames come as late as they may be
    /// through.
    fn hearings(&self, network: &CanNetwork) -> Result<Vec<Waking>, Missing> {
        let heard = network.heard();
        let hear = self.system.works.iter().find(|work| work.name == HEAR);
        let Some(hear) = hear.filter(|_| !heard.is_empty()) else {
            return if heard.is_empty() { Ok(Vec::new()) } else { Err(missing::works(&[HEAR])) };
        };
        let work = Nanos(hear.worst_ns) + self.calls.of(CallNumber::SemUnlock);
        let one = |place: usize| {
            let message = &network.messages[place];
            let contract = Bucket::periodic(Nanos(message.period_ns.unwrap_or_default()));
            let late = Nanos(message.deadline_ns.unwrap_or_default());
            Waking { contract: contract.with_jitter(late), work, wakes: false }
        };
        let again = repeated(network).map(|contract| Waking { contract, work, wakes: false });
        Ok(heard.into_iter().map(one).chain(again).collect())
    }

    /// Returns the renewals of identifiers under MTS. The driver looks at its clock at the end of
    /// each epoch, and when it does not know the time any more. A frame of the time may move its
    /// idea of the time by twice the error of the clocks.
    fn renewals(&self, network: &CanNetwork, wake: Nanos) -> Result<Vec<Waking>, Missing> {
        let Some(terms) = network.mts_terms().filter(|_| network.scheduler == CanScheduler::Mts)
        else {
            return Ok(Vec::new());
        };
        let Some(work) = self.system.works.iter().find(|it| it.name == RENEW) else {
            return Err(missing::works(&[RENEW]));
        };
        let epochs = Epochs::new(Nanos(terms.epoch_ns), Nanos(terms.reach_ns));
        let epoch = epochs.map_or(Nanos(terms.epoch_ns), |epochs| epochs.epoch());
        let work = wake + Nanos(work.worst_ns);
        let clocks = Bucket::periodic(epoch).with_jitter(Nanos(4 * terms.clocks_ns));
        let lost = Bucket::periodic(Nanos(terms.interval_ns));
        Ok([clocks, lost].map(|contract| Waking { contract, work, wakes: true }).into())
    }

    /// Returns the VCPU of the driver. It is its own: the plan refuses strangers on it.
    fn supply_of_driver(&self, driver: u16) -> Result<Supply, Missing> {
        let (system, core) = (self.system, self.core);
        let process = &system.processes[usize::from(driver)];
        let place = core.mains.iter().position(|number| Some(*number) == process.vcpu);
        place.and_then(|place| Supply::of(&core.system, place)).ok_or_else(|| {
            let what = format!("`{}` has no VCPU that gets its budget", process.name);
            (what, "give it one, and make the system hold first".to_owned())
        })
    }
}

/// Returns how often a frame may reach receivers twice: each time that one is destroyed in its last
/// bit.
pub(super) fn repeated(network: &CanNetwork) -> Option<Bucket> {
    let Errors { burst, interval } = network.errors;
    (burst > 0).then(|| Bucket::periodic(interval).with_burst(burst))
}

/// Returns why the driver does not renew identifiers in time, and what to do.
pub(super) fn slow(renewal: Nanos, queued: Nanos, driver: &str) -> Option<[String; 2]> {
    (renewal < queued).then(|| {
        let (takes, said) = (human(queued.0), human(renewal.0));
        let title = format!(
            "`{driver}` may take {takes} to renew identifiers, and `renewal` of its bus is {said}"
        );
        let micros = queued.0.div_ceil(1_000);
        let help = format!(
            "write `renewal = \"{micros}us\"` at least, or give the VCPU of `{driver}` more \
             `budget`, a shorter `period` or more `replenishments`"
        );
        [title, help]
    })
}

/// Returns why a message that takes `told` until `driver` knows of it, if that is known, and waits
/// for `queued` then, is not in the queue within its `jitter`, and what to do.
pub(super) fn late(
    message: &CanMessage,
    (told, queued): (Option<Nanos>, Nanos),
    driver: &str,
) -> Option<[String; 2]> {
    let (name, jitter) = (&message.name, Nanos(message.jitter_ns));
    let whole = told.unwrap_or_default() + queued;
    (jitter < whole).then(|| {
        let [takes, said] = [queued, jitter].map(|time| human(time.0));
        let sender = message.sender.name();
        let (before, seats) = match told {
            None | Some(Nanos::ZERO) => (String::new(), format!("`{driver}`")),
            Some(told) => (
                format!(" {} for a job of `{sender}` and", human(told.0)),
                format!("`{sender}` or `{driver}`"),
            ),
        };
        let title = format!(
            "`{name}` may wait{before} {takes} for `{driver}` until it is in the queue of its \
             controller, and its `jitter` is {said}"
        );
        let micros = whole.0.div_ceil(1_000);
        let help = format!(
            "write `jitter = \"{micros}us\"` at least, or give the VCPU of {seats} more \
             `budget`, a shorter `period` or more `replenishments`"
        );
        [title, help]
    })
}
