//! Why the messages of a bus are not all in time, and the nearest that would fit.

use super::queued::{late, slow};
use super::{CanOutcome, CanPlan, plan};
use crate::human;
use crate::pipes::Piped;
use crate::refusal::share;
use diapason_abi::Nanos;
use diapason_can::mts::Unmet;
use diapason_system::{
    CanMessage, CanNetwork, CanScheduler, CanSender, Diagnostics, Place, System,
};

/// Bit rates that every controller has.
const RATES: [u32; 4] = [250_000, 500_000, 800_000, 1_000_000];
/// Longest deadline that is tried for one message.
const DEADLINE_MAX: u64 = 1_000_000_000_000;
const STEP: u64 = 1_000;
/// How far clocks are off that are synchronised over such a bus.
const CLOCKS: u64 = 20_000;
/// Periods and deadlines are tried up to so many per mille of what is written.
const STRETCH_MAX: u64 = 16_000;

/// Returns why a bus does not hold, message by message; what would make all fit is said once.
pub(crate) fn refusals(system: &System, plans: &[CanPlan], pipes: &[Piped]) -> Vec<Diagnostics> {
    let mut found = Vec::new();
    for ((number, network), plan) in (0u16..).zip(&system.cans).zip(plans) {
        if let Some([title, help]) = &plan.refused {
            found.push(system.problem(Place::Can(number), [title, "", "", help]));
            continue;
        }
        found.extend(unqueued(system, (number, network), plan));
        found.extend(plan.heard.iter().filter_map(|(place, heard)| {
            let [what, help] = heard.as_ref().err()?;
            let message = &network.messages[*place];
            let title = format!("nothing bounds when `{}` is read: {what}", message.name);
            Some(system.problem(Place::CanMessage(message.number), [&title, "", "", help]))
        }));
        let failing: Vec<usize> = (0..plan.messages.len())
            .filter(|index| !holds(&plan.messages[*index].outcome))
            .collect();
        let waits = super::waits(plan.queued.as_ref());
        let whole = Whole { system, network, pipes, waits };
        let nearest = if failing.is_empty() { None } else { whole.nearest(&failing) };
        for (place, index) in failing.iter().enumerate() {
            let message = &network.messages[*index];
            let Some((title, own)) = why(&message.name, &plan.messages[*index].outcome) else {
                continue;
            };
            let help = match (own, &nearest) {
                (Some(own), _) => own,
                (None, Some(nearest)) if place == 0 => nearest.clone(),
                (None, Some(_)) => "see the remedy of the first message of this bus".to_owned(),
                (None, None) => "send less on this bus, or put some messages on another".to_owned(),
            };
            let place = Place::CanMessage(message.number);
            found.push(system.problem(place, [&title, "", "", &help]));
        }
    }
    found
}

/// Returns what is wrong with how long messages of this host wait for the driver of their
/// controller.
fn unqueued(
    system: &System,
    (number, network): (u16, &CanNetwork),
    plan: &CanPlan,
) -> Vec<Diagnostics> {
    let (Some(queued), Some(controller)) = (&plan.queued, network.controller) else {
        return Vec::new();
    };
    let driver = system.process_name(controller.driver).unwrap_or_default();
    let queued = match queued {
        Ok(queued) => *queued,
        Err([what, help]) => {
            let title = format!("nothing bounds how long messages wait for `{driver}`: {what}");
            return vec![system.problem(Place::Can(number), [&title, "", "", help])];
        }
    };
    let own = |(message, _): &(&CanMessage, _)| matches!(message.sender, CanSender::Process(_));
    let late = |(message, told): (&CanMessage, &Option<Nanos>)| {
        let [title, help] = late(message, (*told, queued), driver)?;
        Some(system.problem(Place::CanMessage(message.number), [&title, "", "", &help]))
    };
    let slow = network.renewal_ns.and_then(|renewal| slow(Nanos(renewal), queued, driver));
    let slow =
        slow.map(|[title, help]| system.problem(Place::Can(number), [&title, "", "", &help]));
    let messages = network.messages.iter().zip(&plan.told);
    slow.into_iter().chain(messages.filter(own).filter_map(late)).collect()
}

fn holds(outcome: &CanOutcome) -> bool {
    matches!(outcome, CanOutcome::Response(_) | CanOutcome::StartBy(_) | CanOutcome::NotDue)
}

/// Returns what is wrong with a message, and the remedy if it has one of its own.
fn why(name: &str, outcome: &CanOutcome) -> Option<(String, Option<String>)> {
    let time = |time: &Nanos| human(time.0);
    Some(match outcome {
        CanOutcome::Unmet(Unmet::Response { response, deadline }) => {
            let (takes, is_due) = (time(response), time(deadline));
            (format!("`{name}` may take {takes}, its deadline is {is_due}"), None)
        }
        CanOutcome::Unmet(Unmet::Window { window, work }) => {
            let (window, work) = (time(window), time(work));
            let title = format!(
                "`{name}` may not be begun in time: in {window} up to then the bus may have {work} \
                 to do"
            );
            (title, None)
        }
        CanOutcome::Unmet(Unmet::Overload { load_ppm }) => {
            let load = share(*load_ppm);
            (format!("`{name}` and what goes before it take {load} of the bus"), None)
        }
        CanOutcome::Unmet(Unmet::Behind) => {
            let title = format!(
                "nothing bounds `{name}`: a message of this host that waits for a buffer is not in \
                 time"
            );
            (title, Some("mend that message first, or raise `own_buffers`".to_owned()))
        }
        CanOutcome::Unbounded([title, help]) => {
            (format!("`{name}` has no bound: {title}"), Some(help.clone()))
        }
        _ => return None,
    })
}

struct Whole<'a> {
    system: &'a System,
    network: &'a CanNetwork,
    pipes: &'a [Piped],
    waits: Option<Nanos>,
}

impl Whole<'_> {
    fn fits(&self, network: &CanNetwork) -> bool {
        let plan = plan(self.system, network, self.pipes, self.waits);
        plan.refused.is_none() && plan.messages.iter().all(|message| holds(&message.outcome))
    }

    /// Returns every change that makes all messages fit, the smallest of its kind.
    fn nearest(&self, failing: &[usize]) -> Option<String> {
        let mut ways = Vec::new();
        if let [only] = failing {
            let name = &self.network.messages[*only].name;
            let deadline = self.deadline(*only);
            ways.extend(
                deadline.map(|ns| format!("`deadline = \"{}us\"` for `{name}`", ns / 1_000)),
            );
        }
        ways.extend(self.rate().map(|rate| format!("`rate = {rate}`")));
        ways.extend(self.renewal());
        ways.extend(self.scheduler());
        if ways.is_empty() {
            let percent = |permille: u64| format!("{}.{}", permille / 10, permille % 10);
            let stretch = self.stretch()?;
            return Some(format!(
                "all would fit with periods and deadlines of {} % of these",
                percent(stretch)
            ));
        }
        Some(format!("write {}", ways.join(", or ")))
    }

    /// Returns the shortest deadline, in whole microseconds, with which a message and all others
    /// fit.
    fn deadline(&self, index: usize) -> Option<u64> {
        let own = self.network.messages[index].deadline_ns?;
        let with = |ns: u64| {
            let mut network = self.network.clone();
            network.messages[index].deadline_ns = Some(ns);
            self.fits(&network)
        };
        let least = own.div_ceil(STEP);
        let mut most = least.max(1);
        while !with(most * STEP) {
            most = most.checked_mul(2).filter(|most| most * STEP <= DEADLINE_MAX)?;
        }
        let (mut low, mut high) = (least.max(most / 2), most);
        while low < high {
            let middle = low.midpoint(high);
            if with(middle * STEP) { high = middle } else { low = middle + 1 }
        }
        with(high * STEP).then_some(high * STEP)
    }

    /// Returns the slowest usual bit rate above that of the bus at which all fit. That of an
    /// interface of this host is also that of its pipes, which are not computed again here.
    fn rate(&self) -> Option<u32> {
        let faster = RATES.into_iter().filter(|rate| *rate > self.network.rate);
        let own = self.network.interface.is_none() && self.network.controller.is_none();
        let is_fd = self.network.messages.iter().any(|message| message.fd);
        faster
            .filter(|rate| own && (!is_fd || *rate <= self.network.data_rate))
            .find(|rate| self.fits(&CanNetwork { rate: *rate, ..self.network.clone() }))
    }

    /// Returns how soon nodes have to renew by their clocks so that all fit, or that they fit if
    /// nodes renew together.
    fn renewal(&self) -> Option<String> {
        let with = |renewal_ns| self.fits(&CanNetwork { renewal_ns, ..self.network.clone() });
        // The driver of a controller cannot renew sooner because that would fit.
        if self.network.controller.is_some() {
            return None;
        }
        let (mut fits, mut late) = (0, self.network.renewal_ns? / STEP);
        while late - fits > 1 {
            let middle = fits.midpoint(late);
            if with(Some(middle * STEP)) { fits = middle } else { late = middle }
        }
        match fits {
            0 => with(None).then(|| "no `renewal`: nodes renew on a signal then".to_owned()),
            _ => Some(format!("`renewal = \"{fits}us\"`")),
        }
    }

    /// Returns the keys of the bus that say nothing under another scheduler.
    fn without(&self) -> String {
        let CanNetwork { epoch_ns, clocks_ns, renewal_ns, time, .. } = self.network;
        let keys = [
            epoch_ns.map(|_| "`epoch`"),
            clocks_ns.map(|_| "`clocks`"),
            renewal_ns.map(|_| "`renewal`"),
            time.map(|_| "`time` and the keys that begin so"),
        ];
        let keys: Vec<&str> = keys.into_iter().flatten().collect();
        if keys.is_empty() { String::new() } else { format!(" without {}", keys.join(", ")) }
    }

    /// Another scheduler under which all fit.
    fn scheduler(&self) -> Option<String> {
        let is_alone = self.network.interface.is_none() && self.network.controller.is_none();
        let is_plain = is_alone && self.network.in_order.is_empty();
        let is_fd = self.network.messages.iter().any(|message| message.fd);
        let others = [CanScheduler::DeadlineMonotonic, CanScheduler::Mts];
        let others = others.into_iter().filter(|other| {
            *other != self.network.scheduler && !(is_fd && *other == CanScheduler::Mts)
        });
        let found = others.filter(|_| is_plain).find(|other| {
            let is_mts = *other == CanScheduler::Mts;
            let clocks_ns = is_mts.then_some(CLOCKS);
            self.fits(&CanNetwork { scheduler: *other, clocks_ns, ..self.network.clone() })
        })?;
        Some(match found {
            CanScheduler::Mts => "`scheduler = \"mts\"` with `clocks = \"20us\"`".to_owned(),
            _ => format!("`scheduler = \"{}\"`{}", found.name(), self.without()),
        })
    }

    /// Returns the least per mille of all periods and deadlines with which all fit.
    fn stretch(&self) -> Option<u64> {
        let with = |permille: u64| {
            let mut network = self.network.clone();
            for message in &mut network.messages {
                for time in [&mut message.period_ns, &mut message.deadline_ns].into_iter().flatten()
                {
                    let longer = u128::from(*time) * u128::from(permille) / 1_000;
                    *time = u64::try_from(longer).unwrap_or(u64::MAX);
                }
            }
            self.fits(&network)
        };
        if !with(STRETCH_MAX) {
            return None;
        }
        let (mut low, mut high) = (1_000, STRETCH_MAX);
        while low < high {
            let middle = u64::midpoint(low, high);
            if with(middle) { high = middle } else { low = middle + 1 }
        }
        Some(high)
    }
}
