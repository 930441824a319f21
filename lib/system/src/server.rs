//! Needs of a server: all that it opens by name while it starts. A server that
//! lacks any of it would end at boot, so this is asked before.

use crate::diagnostics::Diagnostics;
use crate::ethernet::EthernetAdapter;
use crate::limits::PAGE_BYTES;
use crate::plugged::UsbPlug;
use crate::system::{Place, ProcessSpec, System};
use crate::units::show_duration;
use diapason_abi::Nanos;
use diapason_abi::archive::Location;
use diapason_contract::can::CanInterface;
use diapason_contract::needs::{
    self, BUFFERS, CONTROLLER, Named, Need, REGISTERS_BYTES, RINGS, RINGS_BYTES, STACK,
    TUNING_STACK,
};
use diapason_contract::settings::{CLIENTS, LINKS, OPENS, PROGRAM, SERVES};
use diapason_contract::threads::{
    HUBS, Home, MANAGED, SENDERS, ServiceKind, TUNE, homes, interfaces, services,
};
use diapason_contract::{ethernet, link, routes, toucan};

impl System {
    /// Returns the problems of servers that could not start, or whose traffic nobody counts.
    #[must_use]
    pub fn unservable(&self) -> Vec<Diagnostics> {
        let told = crate::settings::followed(self);
        let servers = (0u16..).zip(&told.processes);
        let servers = servers.filter(|(_, process)| process.program == PROGRAM);
        let found = servers.flat_map(|(number, process)| self.of_server(number, process));
        let drivers = (0u16..).zip(&self.processes);
        let drivers = drivers.filter(|(_, it)| [PROGRAM, link::TARGET].contains(&&*it.program));
        let lacking = drivers.flat_map(|(number, process)| self.of_memory(number, process));
        let targets = (0u16..).zip(&self.processes).filter(|(_, it)| it.program == link::TARGET);
        let unarmed = targets.flat_map(|(number, process)| {
            self.lacks(number, process, needs::target_needs(process.arguments))
        });
        found.chain(lacking).chain(unarmed).chain(self.of_threads()).collect()
    }

    /// Returns the programs of these tools whose threads could not start, or would overflow their
    /// stacks. All of their further threads have priority 1.
    fn of_threads(&self) -> Vec<Diagnostics> {
        let mut found = Vec::new();
        for (number, process) in (0u16..).zip(&self.processes) {
            let stack = match process.program.as_str() {
                PROGRAM if self.tpipes.iter().any(|tpipe| tpipe.server == number) => TUNING_STACK,
                PROGRAM => STACK,
                link::TARGET => link::TARGET_STACK,
                ethernet::PROGRAM => ethernet::STACK,
                toucan::PROGRAM => toucan::STACK,
                routes::PROGRAM => routes::STACK,
                _ => continue,
            };
            let name = &process.name;
            let mut say = |title: String, help: String| {
                found.push(self.problem(Place::Process(number), [&title, "", "", &help]));
            };
            if process.stack < stack {
                let title = format!("the stacks of `{name}` are too small for its program");
                say(title, format!("write `stack = \"{}K\"`", stack >> 10));
            }
            if !process.start_at_boot {
                let title = format!("`{name}` runs only when another process starts it");
                say(title, "take `start = \"manual\"` out of it".to_owned());
            }
            if process.priority == 0 && process.threads > 1 {
                let title = format!("`{name}` has priority 0, and further threads of it have 1");
                say(title, "write at least `priority = 1`".to_owned());
            }
            let (heap, counts) = self.makes(number);
            too_few(process, counts).into_iter().for_each(|(title, help)| say(title, help));
            if process.heap < heap {
                let title = format!("`{name}` has too little heap for its program");
                say(title, format!("write `heap = \"{}K\"`", heap >> 10));
            }
        }
        found
    }

    /// Returns the heap of a server of adapters or of a debug target, and how many threads, events
    /// and semaphores it makes. Gates of an adapter need more.
    fn makes(&self, number: u16) -> (u64, [usize; 3]) {
        let program = &*self.processes[usize::from(number)].program;
        let drives = |it: &EthernetAdapter| it.driver == number && it.card().is_some();
        match program {
            link::TARGET => (link::TARGET_HEAP, [1, 0, link::TARGET_SEMAPHORES]),
            ethernet::PROGRAM if self.adapters.iter().any(drives) => {
                (0, [ethernet::THREADS, ethernet::EVENTS, ethernet::SEMAPHORES])
            }
            _ => (0, [1, 0, 0]),
        }
    }

    /// Returns the problems of registers and memory with which a program at the controller could
    /// not work.
    fn of_memory(&self, number: u16, process: &ProcessSpec) -> Vec<Diagnostics> {
        let mut found = Vec::new();
        let mut say = |title: String, help: String| {
            found.push(self.problem(Place::Process(number), [&title, "", "", &help]));
        };
        let size = |bytes: u64| format!("write `size = \"{}K\"` or more", bytes >> 10);
        let is_used = |name: &String| process.uses.contains(name);
        for device in self.devices.iter().filter(|device| is_used(&device.name)) {
            if device.name == CONTROLLER && device.size < REGISTERS_BYTES {
                let title = format!("`{CONTROLLER}` has too few registers for `{}`", process.name);
                say(title, size(REGISTERS_BYTES));
            }
        }
        for segment in self.segments.iter().filter(|segment| is_used(&segment.name)) {
            let name = &segment.name;
            if needs::is_for_devices(name) && !segment.dma {
                let title = format!(
                    "`{}` gives the memory of `{name}` to a device, which cannot reach it",
                    process.name
                );
                say(title, format!("add `dma = true` to the segment `{name}`"));
            }
            let needed = match (&**name, &*process.program) {
                (RINGS, PROGRAM) => RINGS_BYTES,
                (link::TARGET_RINGS, link::TARGET) => link::TARGET_RINGS_BYTES,
                _ => 0,
            };
            if segment.size < needed {
                let title = format!("`{name}` is too small for the rings of a controller");
                say(title, size(needed));
            }
        }
        found
    }

    /// Returns the problems of a process that may not use all that its program opens by name.
    fn lacks(
        &self,
        number: u16,
        process: &ProcessSpec,
        needs: impl Iterator<Item = Named>,
    ) -> Vec<Diagnostics> {
        let is_missing = |(_, name): &Named| !process.uses.iter().any(|used| used == name);
        let problem = |(need, name): Named| {
            let title = format!("`{}` needs the {} `{name}`", process.name, word(need));
            let help = format!("declare it, and add `\"{name}\"` to its `uses`");
            self.problem(Place::Process(number), [&title, "", "", &help])
        };
        needs.filter(is_missing).map(problem).collect()
    }

    fn of_server(&self, number: u16, process: &ProcessSpec) -> Vec<Diagnostics> {
        let setting = |name: &str| process.setting(name);
        let tunes = self.tpipes.iter().any(|tpipe| tpipe.server == number);
        let senders = self.senders(number, process).into_iter();
        let further: Vec<Home> = senders.chain(tunes.then_some(TUNE)).collect();
        let vcpus = further.iter().map(|home| (Need::Vcpu, home.vcpu));
        let mut found = self.lacks(number, process, needs::needs(&setting).chain(vcpus));
        let mut say = |title: String, help: String| {
            found.push(self.problem(Place::Process(number), [&title, "", "", &help]));
        };
        let halves = 1 + homes(&setting).count();
        let messages = self.messages(CONTROLLER);
        if messages.is_some_and(|messages| messages < halves) {
            let title = format!(
                "`{CONTROLLER}` has too few messages for the devices that `{}` serves",
                process.name
            );
            say(title, format!("write `irqs = {halves}`, and an `interval` for each"));
        }
        let more = further.len();
        let counts = [needs::threads(&setting) + more, halves + more, needs::semaphores(&setting)];
        too_few(process, counts).into_iter().for_each(|(title, help)| say(title, help));
        let needed = needs::heap(&setting);
        if process.heap < needed {
            let title =
                format!("`{}` has too little heap for the devices that it serves", process.name);
            say(title, format!("write `heap = \"{}K\"`", needed >> 10));
        }
        let has = |channel: &u64| {
            interfaces(&setting).any(|it| it.numbers().contains(&(*channel as usize)))
        };
        for channel in setting(CLIENTS).iter().chain(setting(OPENS)).filter(|it| !has(it)) {
            let title = format!("no interface of `{}` has channel {channel}", process.name);
            say(title, "remove it, or write more `channels` of the `[[usb]]`".to_owned());
        }
        for channel in self.uncounted(number, setting(OPENS)) {
            let title = format!("messages from channel {channel} are in no bill");
            let help = format!(
                "declare a `[[pipe]]` of it, or remove its segment `can{channel}` from the `uses` \
                 of `{}`",
                process.name
            );
            say(title, help);
        }
        found.extend(self.of_buffers(number, process));
        found.extend(self.of_intervals(number, process));
        found.extend(self.of_interfaces(number, process));
        found.extend(self.of_modes(number, process));
        found
    }

    /// Pipes whose device the server does not serve: it drives one controller, and programs open
    /// pipes of its first interface only.
    fn of_interfaces(&self, server: u16, process: &ProcessSpec) -> Vec<Diagnostics> {
        let pipes = (0u16..).zip(&self.pipes).filter(|(_, pipe)| pipe.server == server);
        let pipes = pipes.map(|(number, pipe)| (Place::Pipe(number), pipe.usb));
        let places = (0u16..).zip(&self.tpipes).filter(|(_, tpipe)| tpipe.server == server);
        let places = places.map(|(number, tpipe)| (Place::Tpipe(number), tpipe.usb));
        let refused = pipes.chain(places).filter_map(|(place, usb)| {
            let plug = self.usb.get(usb)?;
            let controller = self.devices.get(plug.device)?;
            if controller.name != CONTROLLER {
                let title = format!(
                    "`{}` is plugged into `{}`, but `{}` drives `{CONTROLLER}`",
                    plug.name, controller.name, process.name
                );
                let help = format!("write `on = \"{CONTROLLER}\"`");
                return Some(self.problem(place, [&title, "", "", &help]));
            }
            if let Some(service) = self.unserved(usb, process) {
                let (device, word, server) = (&plug.name, service.word(), &process.name);
                let title = format!("`{device}` is of `{word}`, and `{server}` serves none");
                let help = format!("add `\"{word}\"` to the `serves` of its `[process.settings]`");
                return Some(self.problem(place, [&title, "", "", &help]));
            }
            let serves = process.setting(SERVES);
            if let Some(other) = self.taken_by(usb, serves) {
                let (device, word, server) = (&plug.name, other.word(), &process.name);
                let title = format!(
                    "`{device}` has a pipe of its packets, and `{server}` serves it as one of \
                     `{word}`"
                );
                let help =
                    format!("remove `\"{word}\"` from the `serves` of its `[process.settings]`");
                return Some(self.problem(place, [&title, "", "", &help]));
            }
            if let Some([title, help]) = self.behind_hubs(plug, process) {
                return Some(self.problem(place, [&title, "", "", &help]));
            }
            let (first, _) = *self.interfaces(process).first()?;
            let tuned = matches!(place, Place::Tpipe(_)) && first != usb;
            let (first, own) = (&self.usb[first].name, &plug.name);
            let title = format!("`{own}` is not the first CAN interface, which is `{first}`");
            let help = "programs open pipes of the first one: put it first in the text, or declare \
                        a `[[pipe]]`";
            tuned.then(|| self.problem(place, [&title, "", "", help]))
        });
        refused.collect()
    }

    /// Returns what is wrong if a server may not find a device because of the hubs before it, and
    /// the remedy.
    fn behind_hubs(&self, plug: &UsbPlug, process: &ProcessSpec) -> Option<[String; 2]> {
        plug.behind?;
        let (device, server) = (&plug.name, &process.name);
        if !process.setting(SERVES).contains(&(ServiceKind::Hubs as u64)) {
            let title = format!("`{device}` is behind a hub, and `{server}` serves none");
            let help = "add `\"hubs\"` to the `serves` of its `[process.settings]`";
            return Some([title, help.to_owned()]);
        }
        let is_hub = |it: &&UsbPlug| it.device == plug.device && it.model.is_hub();
        let hubs = self.usb.iter().filter(is_hub).count();
        let title = format!(
            "`{device}` is behind a hub, and `{server}` serves {HUBS} of the {hubs} that are there"
        );
        let help = format!("remove a hub, or plug `{device}` into the controller");
        (hubs > HUBS).then_some([title, help])
    }

    /// Returns what is wrong if the transfers of all devices that a server serves have too little
    /// memory. It would not serve the device that comes last.
    fn of_buffers(&self, number: u16, process: &ProcessSpec) -> Option<Diagnostics> {
        let segment = self.segments.iter().find(|segment| segment.name == BUFFERS)?;
        let is_driven = |plug: &UsbPlug| {
            let controller = self.devices.get(plug.device);
            controller.is_some_and(|it| process.uses.contains(&it.name))
        };
        let driven = (0..self.usb.len()).filter(|usb| is_driven(&self.usb[*usb]));
        let served = driven.filter(|usb| self.unserved(*usb, process).is_none());
        let hub = |usb: usize| self.usb[usb].model.is_hub().then_some(ServiceKind::Hubs);
        let kind = |usb: usize| self.service_of(usb).or_else(|| hub(usb));
        let served: Vec<ServiceKind> = served.filter_map(kind).collect();
        let links = process.setting(LINKS).len() as u64 * link::BUFFERS;
        let bytes = links + served.iter().map(|kind| kind.buffers()).sum::<u64>();
        let needed = bytes.next_multiple_of(PAGE_BYTES);
        if segment.size >= needed {
            return None;
        }
        let count = served.len();
        let title = format!("`{BUFFERS}` is too small for the transfers of {count} devices");
        let help = format!("write `size = \"{}K\"` or more", needed >> 10);
        Some(self.problem(Place::Process(number), [&title, "", "", &help]))
    }

    /// Returns the threads of a server that hear clients: one for each interface with a channel
    /// that is, or may be, written.
    fn senders(&self, server: u16, process: &ProcessSpec) -> Vec<Home> {
        let setting = |name: &str| process.setting(name);
        let written = |interface: CanInterface| {
            let numbers = interface.numbers();
            setting(CLIENTS).iter().any(|channel| numbers.contains(&(*channel as usize)))
        };
        // Programs open pipes of the first interface only.
        let tuned = self.may_write(server);
        let each = interfaces(&setting).zip(SENDERS).enumerate();
        let each = each.filter(|(number, (it, _))| written(*it) || tuned && *number == 0);
        each.map(|(_, (_, home))| home).collect()
    }

    /// Returns the service for a device, if a server has not that service.
    fn unserved(&self, usb: usize, process: &ProcessSpec) -> Option<ServiceKind> {
        let setting = |name: &str| process.setting(name);
        let is_served = |wanted: ServiceKind| services(&setting).any(|service| service == wanted);
        self.service_of(usb).filter(|wanted| !is_served(*wanted))
    }

    /// Returns the service that takes a device that is for another service: it serves any device
    /// of its kind if the description has none for it. Besides the service for its model, those for
    /// the endpoints of any device know a device with pipes of its packets.
    fn taken_by(&self, usb: usize, serves: &[u64]) -> Option<ServiceKind> {
        const ANY: [ServiceKind; 3] =
            [ServiceKind::Endpoints, ServiceKind::Sinks, ServiceKind::Pairs];
        let own = self.service_of(usb)?;
        let any = ANY.into_iter().filter(|_| ANY.contains(&own));
        let mut others = self.usb[usb].model.service().into_iter().chain(any);
        others.find(|other| {
            let mut all = (0..self.usb.len()).filter_map(|usb| self.service_of(usb));
            *other != own && serves.contains(&(*other as u64)) && !all.any(|it| it == *other)
        })
    }

    fn may_write(&self, server: u16) -> bool {
        self.tpipes.iter().any(|tpipe| tpipe.server == server && tpipe.envelope.to != 0)
    }

    /// Returns the problems of messages of the controller that come more often than the description
    /// says: the server asks the controller for that.
    fn of_intervals(&self, number: u16, process: &ProcessSpec) -> Vec<Diagnostics> {
        let setting = |name: &str| process.setting(name);
        let asked = homes(&setting).map(|home| home.moderation);
        let asked: Vec<Nanos> = [MANAGED].into_iter().chain(asked).collect();
        let at = self.devices.iter().position(|device| device.name == CONTROLLER);
        let refused = self.devices.iter().filter_map(|device| {
            let Location::Message { of, vector } = device.location else { return None };
            let said = device.interrupt?.interval_ns?;
            let most = asked.get(usize::from(vector)).filter(|most| **most > Nanos::ZERO)?;
            if Some(usize::from(of)) != at || said <= most.0 {
                return None;
            }
            let (name, most) = (&device.name, show_duration(most.0));
            let title = format!("`{name}` interrupts more often than its `interval` says");
            let server = &process.name;
            let help = format!("write at most \"{most}\" for it: `{server}` asks for that");
            Some(self.problem(Place::Process(number), [&title, "", "", &help]))
        });
        refused.collect()
    }

    /// Returns how many messages a device interrupts with, if there is one of this name.
    fn messages(&self, name: &str) -> Option<usize> {
        let number = self.devices.iter().position(|device| device.name == name)?;
        let is_of = |location: &Location| match location {
            Location::Message { of, .. } => usize::from(*of) == number,
            _ => false,
        };
        Some(self.devices.iter().filter(|device| is_of(&device.location)).count())
    }

    /// Channels that a server with pipes opens although none of its pipes is of them.
    fn uncounted(&self, server: u16, opens: &[u64]) -> Vec<u64> {
        let pipes = || self.pipes.iter().filter(|pipe| pipe.server == server);
        let places = self.tpipes.iter().any(|tpipe| tpipe.server == server);
        if pipes().next().is_none() && !places {
            return Vec::new();
        }
        let has = |channel: &u64| pipes().any(|pipe| u64::from(pipe.number) == *channel);
        opens.iter().filter(|channel| !has(channel)).copied().collect()
    }
}

/// Returns what is wrong, and the remedies, if a process has fewer threads, events and semaphores
/// than its program makes.
pub(crate) fn too_few(process: &ProcessSpec, makes: [usize; 3]) -> Vec<(String, String)> {
    let ProcessSpec { name, threads, events, semaphores, .. } = process;
    let counts = [("threads", *threads), ("events", *events), ("semaphores", *semaphores)];
    let few =
        counts.into_iter().zip(makes).filter(|((_, has), needed)| usize::from(*has) < *needed);
    let words = few.map(|((key, has), needed)| {
        let title = format!("`{name}` has {has} {key}, and starts with {needed}");
        (title, format!("write `{key} = {needed}`"))
    });
    words.collect()
}

const fn word(need: Need) -> &'static str {
    match need {
        Need::Device => "device",
        Need::Segment => "segment",
        Need::Semaphore => "semaphore",
        Need::Mailbox => "mailbox",
        Need::Vcpu => "VCPU",
    }
}
