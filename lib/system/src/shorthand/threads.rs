//! The threads of the server: its process, their VCPUs, and how long their work takes.

use super::{Brought, Item, Server, list};
use crate::declared::{DeclaredPipe, DeclaredProcess, DeclaredUsb, DeclaredVcpu};
use crate::source::At;
use crate::system::ServerSpec;
use crate::units::{show_duration, show_size};
use diapason_abi::Nanos;
use diapason_contract::can::PENDING;
use diapason_contract::needs::{self, Need, STACK, TUNING_STACK};
use diapason_contract::network;
use diapason_contract::settings::{PROGRAM, STREAMS};
use diapason_contract::source::{MessageForm, PipeSource, SOURCES};
use diapason_contract::threads::{Home, MANAGE, RECEIVE, RECEIVERS, SENDERS, TUNE, homes};

/// The VCPU of the thread that manages.
const MANAGING: &str = "usb-manage";
/// Its usual budget, and how many budgets its period has: it finds devices beside everything else.
const MANAGES: u64 = 100_000;
const MANAGES_ONE_IN: u64 = 25;
/// The shortest time between two interrupts of a device: the server asks the controller for a
/// longer one, which QEMU does not keep.
pub(super) const MODERATION: Nanos = Nanos(1_000_000);
/// The kernel's time for a wake-up: switches and calls.
const KERNEL: u64 = 10_000;
/// The rest of the server after each look for frames to send.
const REST: Nanos = Nanos(1_000_000);

/// The share of a bottom half of which nothing is promised, in per cent.
const UNPROMISED: u64 = 10;
/// The share of the bottom half of a disk or of a network device with a pipe.
const READ_AHEAD: u64 = 20;

/// The longest and the shortest time of each work, as `diapason measure` counts them in QEMU, with
/// a margin of half or more.
const WORKS: [(&str, u64, u64); 3] =
    [(MANAGE, 150, 1), (RECEIVE.work, 40, 12), (network::HOME.each, 2, 1)];
/// A wake-up of the bottom half of CAN channels takes so much, and more for each transfer with one
/// message: no frame waits in the interface while transfers are pending.
const RECEIVED: (u64, u64) = (10, 2);
/// The frames of this time may have come when that bottom half runs.
const LATE: Nanos = Nanos(2_500_000);
/// Those of any other work.
const OTHER_WORK: (u64, u64) = (40, 1);

impl Server<'_> {
    /// Returns the threads that serve clients, beside bottom halves: those that hear writers, each
    /// with the number of its interface, and the one for tuned pipes.
    fn senders(&self) -> Vec<(usize, Home)> {
        let each = self.interfaces().zip(SENDERS).enumerate();
        let written = each.filter(|(at, ((usb, it), _))| self.is_written(*at, usb, *it));
        written.map(|(number, (_, home))| (number, home)).collect()
    }

    fn tunes(&self) -> bool {
        !self.declared.tpipes.is_empty()
    }

    pub(super) fn process(&self) -> Vec<Brought> {
        let setting = |name: &str| self.setting(name);
        let halves = homes(&setting).count();
        let further = self.senders().len() + usize::from(self.tunes());
        let threads = needs::threads(&setting) + further;
        let (events, semaphores) = (1 + halves + further, needs::semaphores(&setting));
        let heap = format!("{}K", needs::heap(&setting) >> 10);
        let serves = self.served();
        let stack = show_size(if self.tunes() { TUNING_STACK } else { STACK });
        let process = Item::new("process", PROGRAM)
            .key("priority", "40", "usual: its threads have VCPUs of their own")
            .text("vcpu", MANAGING, "the thread that manages")
            .text("heap", &heap, "what the server needs for what it serves")
            .text("stack", &stack, "what its threads need")
            .key(
                "threads",
                &threads.to_string(),
                &format!(
                    "one that manages, {} of bottom halves, {further} for what clients ask",
                    threads - 1 - further
                ),
            )
            .key("semaphores", &semaphores.to_string(), "of the heap, the server, each bottom half")
            .key("events", &events.to_string(), "messages of the controller, threads for clients")
            .key("uses", &list(&self.uses()), "what the server opens");
        let is_told = self.asked.settings.iter().any(|(name, _)| *name == "serves");
        let process = match is_told || self.plugged().is_empty() {
            true => process,
            false => process.key("settings.serves", &list(&serves), "what is plugged in"),
        };
        let streamed = self.streamed().into_iter().fold(process, |process, (name, numbers)| {
            let (key, why) = match name {
                STREAMS => ("settings.streams", "one for each camera of the modes"),
                _ => ("settings.critical", "each stream is one of the modes"),
            };
            process.key(key, &format!("{numbers:?}"), why)
        });
        streamed.all
    }

    /// Returns what the process uses, but for what pipes and places for tuned pipes bring.
    fn uses(&self) -> Vec<&str> {
        let setting = |name: &str| self.setting(name);
        let needed = needs::needs(&setting)
            .filter(|(need, name)| *need == Need::Vcpu || !self.comes_with_a_pipe(name));
        let mut uses: Vec<&str> = needed.map(|(_, name)| name).collect();
        uses.extend(self.senders().iter().map(|(_, home)| home.vcpu));
        uses.extend(self.tunes().then_some(TUNE.vcpu));
        uses.extend(self.asked.uses.iter().map(|name| name.value.as_str()));
        let mut each: Vec<&str> = Vec::new();
        for name in uses {
            if !each.contains(&name) {
                each.push(name);
            }
        }
        each
    }

    pub(super) fn vcpus(&self) -> Vec<Brought> {
        let (budget, period) = self.manages();
        let why = match budget {
            MANAGES => "usual: it wakes once a millisecond while it finds devices".to_owned(),
            _ => format!("it may have to end {} of a bottom half", show_duration(self.held())),
        };
        let manage = Item::new("vcpu", MANAGING).text("budget", &show_duration(budget), &why).text(
            "period",
            &show_duration(period.0),
            "usual: a share of 4 %",
        );
        let mut all = manage.all;
        let setting = |name: &str| self.setting(name);
        for home in homes(&setting) {
            let number = RECEIVERS.iter().position(|it| it.vcpu == home.vcpu);
            let served = match number.and_then(|number| self.interfaces().nth(number)) {
                Some((usb, _)) => self.ends_of(usb, |_| true),
                None => self.clients_of(home),
            };
            all.extend(self.bottom_half(home, served).all);
        }
        for (number, home) in self.senders() {
            let usb = self.interfaces().nth(number).map(|(usb, _)| usb);
            let writers = usb.map(|usb| self.ends_of(usb, DeclaredPipe::is_to_device));
            all.extend(self.sender(home, writers.unwrap_or_default()).all);
        }
        if self.tunes() {
            let tune = Item::new("vcpu", TUNE.vcpu).text("budget", "500us", "usual");
            all.extend(tune.text("period", "10ms", "usual").all);
        }
        all
    }

    /// Returns the budget and the period of the thread that manages. It waits for the lock of a
    /// bottom half on its own budget, and has to get it.
    fn manages(&self) -> (u64, Nanos) {
        let least = (self.held() + KERNEL).next_multiple_of(5_000);
        let budget = least.max(MANAGES);
        (budget, Nanos(budget * MANAGES_ONE_IN))
    }

    /// Returns the longest time for which a bottom half holds its lock.
    fn held(&self) -> u64 {
        let setting = |name: &str| self.setting(name);
        let brought = self.brought_works();
        let worst = |name: &str| {
            let usual = || Some(1_000 * self.usual(name).0);
            self.declared_worst(name).or_else(|| brought.contains(&name).then(usual).flatten())
        };
        let has_pipe = |source: &PipeSource| self.comes_with_a_pipe(source.ready);
        homes(&setting).map(|home| home.held(worst, has_pipe)).max().unwrap_or(0)
    }

    /// Returns the longest time of a work that the description has itself.
    fn declared_worst(&self, name: &str) -> Option<u64> {
        let is_it = |work: &At<String>| work.value == name;
        let mut works = self.declared.works.iter();
        works.find(|work| work.name.as_ref().is_some_and(is_it)).map(|work| work.worst.value)
    }

    /// Returns whether a pipe brings something that its service gives.
    fn has_pipe(&self, home: &Home) -> bool {
        home.ready.iter().any(|it| self.comes_with_a_pipe(it))
    }

    /// Returns the VCPU of a bottom half.
    fn bottom_half(&self, home: &Home, mut served: Vec<String>) -> Item {
        // Two wake-ups for an interrupt where one follows from its pace, or clients wake it, too.
        let twice = home.pace > Nanos::ZERO || home.asked.is_some();
        // A bottom half with pipes of both directions has both reasons.
        let both = twice && home.ready.iter().filter(|it| self.comes_with_a_pipe(it)).count() > 1;
        let interval = Nanos(interval(home).0 / if both { 3 } else { 1 + u64::from(twice) });
        let tuned = self.tunes() && home.vcpu == RECEIVE.vcpu;
        if served.is_empty() || tuned {
            served.insert(0, MANAGING.to_owned());
        }
        let (share, why) = match self.carries(home) {
            true => self.share(home, interval, &served, 2),
            false if self.has_pipe(home) => {
                (READ_AHEAD, "usual: the bill of its pipe counts whole grants".to_owned())
            }
            false => (UNPROMISED, "usual: nothing is promised of what it carries".to_owned()),
        };
        let names: Vec<&str> = served.iter().map(String::as_str).collect();
        Item::new("vcpu", home.vcpu)
            .text("kind", "io", "a bottom half")
            .text("utilization", &format!("{share}%"), &why)
            .text("interval", &show_duration(interval.0), "how often interrupts wake it")
            .key("serves", &list(&names), "the programs at the other ends")
    }

    /// Returns the VCPU of a thread that hears the writers of an interface.
    fn sender(&self, home: Home, mut served: Vec<String>) -> Item {
        if served.is_empty() {
            served.push(MANAGING.to_owned());
        }
        let interval = Nanos(REST.0 - slack(REST));
        let (share, why) = self.share(&home, interval, &served, 1);
        let names: Vec<&str> = served.iter().map(String::as_str).collect();
        Item::new("vcpu", home.vcpu)
            .text("kind", "io", "it hears what programs write")
            .text("utilization", &format!("{share}%"), &why)
            .text("interval", &show_duration(interval.0), "the server rests after each look")
            .key("wakes", "2", "by a message, and by the end of its rest")
            .key("serves", &list(&names), "the programs that write")
    }

    /// Returns whether a bottom half carries pipes, or can.
    fn carries(&self, home: &Home) -> bool {
        // Those of a disk and of a network device wake as often as the controller may interrupt,
        // and not each wake-up needs a grant.
        let in_turn = |source: &PipeSource| {
            !matches!(
                source.form,
                MessageForm::Blocks(_) | MessageForm::Frame(_) | MessageForm::SentFrame(_)
            )
        };
        let mut sources = SOURCES.iter().filter(|source| in_turn(source));
        home.work == RECEIVE.work || sources.any(|source| source.home.vcpu == home.vcpu)
    }

    /// Returns the share, in whole per cent, for all wake-ups that there can be in so many periods.
    /// A grant that is used late comes back a period after that, so a bottom half whose wake-ups
    /// never wait needs those of two.
    fn share(
        &self,
        home: &Home,
        interval: Nanos,
        served: &[String],
        periods: u64,
    ) -> (u64, String) {
        let period = served.iter().filter_map(|name| self.period(name)).min();
        let period = period.unwrap_or_else(|| self.manages().1);
        let wakeups = periods * (period.0.div_ceil(interval.0.max(1)) + 1);
        let each = self.worst(home, period) + KERNEL;
        let share = (100 * wakeups * each).div_ceil(period.0.max(1)).clamp(1, 100);
        let why =
            format!("{wakeups} wake-ups of {} in {}", show_duration(each), show_duration(period.0));
        (share, why)
    }

    /// Returns the longest time of a wake-up, with what comes in a period if messages are apart.
    fn worst(&self, home: &Home, period: Nanos) -> u64 {
        let usual = || 1_000 * self.usual(home.work).0;
        let apart = Some(home.each).filter(|each| !each.is_empty());
        let apart = apart.and_then(|each| self.declared_worst(each)).unwrap_or(0);
        let messages = self.declared.pipes.iter().map(|pipe| {
            pipe.burst.saturating_add(pipe.rate.saturating_mul(period.0).div_ceil(1_000_000_000))
        });
        let messages = messages.fold(0, u64::saturating_add);
        let of_messages = if apart == 0 { 0 } else { apart.saturating_mul(messages) };
        self.declared_worst(home.work).unwrap_or_else(usual).saturating_add(of_messages)
    }

    /// Returns the period of a Main VCPU of the description, or of the one that it brings.
    fn period(&self, name: &str) -> Option<Nanos> {
        let mut vcpus = self.declared.vcpus.iter();
        let vcpu = vcpus.find(|vcpu| vcpu.name.value == name);
        match vcpu.map(|vcpu| &vcpu.what) {
            Some(DeclaredVcpu::Main { server: ServerSpec::Main { period_ns, .. }, .. }) => {
                Some(Nanos(*period_ns))
            }
            _ => (name == MANAGING).then(|| self.manages().1),
        }
    }

    /// Returns the VCPUs of the programs at the other ends of a device's pipes.
    fn ends_of(&self, usb: &DeclaredUsb, is: impl Fn(&DeclaredPipe) -> bool) -> Vec<String> {
        let at = |pipe: &&DeclaredPipe| {
            pipe.usb.as_ref().is_some_and(|name| name.value == usb.name.value) && is(pipe)
        };
        let ends = self.declared.pipes.iter().filter(at);
        let ends = ends.filter_map(|pipe| self.declared.process(&pipe.process.as_ref()?.value));
        self.vcpus_of(ends.map(|index| &self.declared.processes[index]))
    }

    /// Returns the VCPUs of the programs that use what a service shares, or have a pipe of it.
    fn clients_of(&self, home: &Home) -> Vec<String> {
        let shared = self.shared_by(home);
        let uses = |process: &&DeclaredProcess| {
            process.uses.iter().any(|used| shared.contains(&used.value.as_str()))
        };
        let mut all = self.vcpus_of(self.declared.processes.iter().filter(uses));
        for usb in self.plugs.iter().filter(|usb| {
            let own = usb.model.and_then(|it| it.service()?.homes().get(usb.seat));
            own.is_some_and(|it| it.vcpu == home.vcpu)
        }) {
            all.extend(self.ends_of(usb, |_| true));
        }
        all
    }

    /// Returns the VCPUs of those of these processes that are on the server's core.
    fn vcpus_of<'p>(&self, processes: impl Iterator<Item = &'p DeclaredProcess>) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        let named = processes.filter(|process| process.name.value != PROGRAM);
        let named = named.filter(|process| process.core.value == self.asked.core);
        for vcpu in named.filter_map(|process| process.vcpu.as_ref()) {
            if !all.contains(&vcpu.value) {
                all.push(vcpu.value.clone());
            }
        }
        all
    }

    /// Returns the works of its threads that the description has not itself.
    pub(super) fn works(&self) -> Vec<Brought> {
        let work = |name| {
            let (worst, best) = self.usual(name);
            let why = "counted in QEMU, with a margin";
            let work = Item::new("work", name).text("worst", &format!("{worst}us"), why);
            work.text("best", &format!("{best}us"), why).all
        };
        self.brought_works().into_iter().flat_map(work).collect()
    }

    /// Returns the names of those works.
    fn brought_works(&self) -> Vec<&'static str> {
        let setting = |name: &str| self.setting(name);
        let mut names = vec![MANAGE];
        // The others have no bounds, and their times are their own.
        let bounded = |home: &&Home| self.carries(home) || self.has_pipe(home);
        names.extend(homes(&setting).filter(bounded).map(|home| home.work));
        // A description that has the one work of a network says whether messages are apart.
        let is_piped = self.has_pipe(&network::HOME);
        if is_piped && self.declared_worst(network::HOME.work).is_none() {
            names.push(network::HOME.each);
        }
        names.extend(self.senders().iter().map(|(_, home)| home.work));
        names.extend(self.tunes().then_some(TUNE.work));
        names.dedup();
        names.retain(|name| self.declared_worst(name).is_none());
        names
    }

    /// Returns the longest and the shortest time of a work that nobody describes, in us.
    fn usual(&self, work: &str) -> (u64, u64) {
        let known = WORKS.iter().find(|(name, ..)| *name == work);
        let (worst, best) = known.map_or(OTHER_WORK, |(_, worst, best)| (*worst, *best));
        let worst = if work == RECEIVE.work { worst.max(self.received()) } else { worst };
        (worst, best)
    }

    /// Returns the longest time of a wake-up for CAN channels, in us: with the frames that may have
    /// come, each in a transfer of its own.
    fn received(&self) -> u64 {
        let is_can = |name: &str| self.interfaces().any(|(usb, _)| usb.name.value == name);
        let pipes = self.declared.pipes.iter();
        let pipes = pipes.filter(|pipe| pipe.usb.as_ref().is_some_and(|usb| is_can(&usb.value)));
        let frames = pipes.map(|pipe| {
            let late = pipe.rate.saturating_mul(LATE.0).div_ceil(1_000_000_000);
            pipe.burst.saturating_add(late)
        });
        let frames = frames.fold(0, u64::saturating_add);
        let transfers = if self.tunes() { PENDING } else { frames.min(PENDING) };
        (RECEIVED.0 + RECEIVED.1 * transfers).next_multiple_of(5)
    }
}

/// Returns the shortest time between two interrupts for a bottom half: a little less than the
/// server asks for.
pub(super) fn interval(home: &Home) -> Nanos {
    let moderation = match home.moderation {
        Nanos::ZERO => MODERATION,
        asked => asked.min(MODERATION),
    };
    Nanos(moderation.0 - slack(moderation))
}

/// Returns by how much two interrupts may be closer than the server asks for.
fn slack(moderation: Nanos) -> u64 {
    (moderation.0 / 25).min(10_000)
}
