//! From consistent declarations to a [`System`]: names become numbers and bits.

use crate::bus;
use crate::can;
use crate::chain;
use crate::declared::{
    Declared, DeclaredBell, DeclaredPlace, DeclaredProcess, DeclaredUsb, DeclaredVcpu,
    DeclaredWork, Named,
};
use crate::diagnostics::Report;
use crate::ethernet;
use crate::fault;
use crate::mailbox;
use crate::mode;
use crate::names::{Names, SUPERVISOR, faults_of, message_of};
use crate::pipe;
use crate::plugged::UsbPlug;
use crate::queues::{self, Queues};
use crate::section;
use crate::source::{At, Source};
use crate::state;
use crate::supervision;
use crate::system::{
    ConditionSpec, ControllerVariant, DeviceSpec, Interrupt, MailboxSpec, Neighbours, Origin,
    ProcessSpec, Scheduling, SegmentSpec, SemaphoreSpec, ServerSpec, System, VcpuSpec, WorkSpec,
};
use crate::tpipe;
use crate::usb;
use diapason_abi::archive::{INTERRUPTS_MAX, Location, MESSAGES};

/// The interrupts of doorbells are numbered behind those of messages.
const BELLS_FROM: u16 = MESSAGES + INTERRUPTS_MAX as u16;

/// Returns the system `declared` describes. Call it only for what `check` found nothing wrong with;
/// otherwise what cannot be resolved is left out.
pub(crate) fn system(declared: &Declared, source: &Source) -> System {
    let names = Names::collect(declared, &mut Report::new());
    let users = |name: &At<String>| users(declared, &name.value);
    let queues = queues::assign(declared, &names);
    let mut system = System {
        name: declared.name.clone(),
        memory: declared.memory.value,
        clock_hz: declared.clock_hz,
        machine: None,
        core: declared.core,
        cores: declared.cores.value,
        processes: processes(declared, &names),
        semaphores: each(&declared.semaphores, |name, kind| SemaphoreSpec {
            name: name.value.clone(),
            kind: *kind,
            allowed: users(name),
        }),
        conditions: each(&declared.conditions, |name, ()| ConditionSpec {
            name: name.value.clone(),
            allowed: users(name),
        }),
        mailboxes: mailbox::mailboxes(declared, users),
        segments: each(&declared.segments, |name, segment| SegmentSpec {
            name: name.value.clone(),
            size: segment.size,
            dma: segment.dma,
            common: segment.common,
            allowed: users(name),
        }),
        devices: devices(declared),
        vcpus: vcpus(declared, &names, &queues),
        usb: plugs(declared),
        buses: bus::buses(declared),
        endpoints: declared.endpoints.iter().map(|e| e.name.value.clone()).collect(),
        works: works(declared),
        pipes: pipe::pipes(declared),
        far: declared.far.clone(),
        tpipes: tpipe::tpipes(declared, &names),
        states: state::states(declared),
        chains: chain::chains(declared),
        sections: section::sections(declared),
        modes: mode::modes(declared),
        faults: fault::faults(declared),
        cans: can::networks(declared),
        adapters: ethernet::adapters(declared),
        sockets: ethernet::sockets(declared),
        neighbours: Neighbours::default(),
        scheduling: Scheduling { dp_queues: queues.dynamic, exact: declared.scheduling.exact },
        origin: origin(declared, source),
    };
    system.mailboxes.extend(fault_mailboxes(&system));
    system
}

fn each<T, U>(list: &[Named<T>], make: impl Fn(&At<String>, &T) -> U) -> Vec<U> {
    list.iter().map(|named| make(&named.name, &named.what)).collect()
}

/// USB devices, as far as they are whole.
fn plugs(declared: &Declared) -> Vec<UsbPlug> {
    let whole: Vec<(&DeclaredUsb, usize)> = declared
        .usb
        .iter()
        .filter_map(|usb| {
            let on = declared.controller_of(usb)?;
            let device =
                declared.devices.iter().position(|device| device.name.value == on.value)?;
            usb.model.map(|_| (usb, device))
        })
        .collect();
    let number = |name: &str| whole.iter().position(|(usb, _)| usb.name.value == name);
    let plug = |(usb, device): &(&DeclaredUsb, usize)| {
        Some(UsbPlug {
            name: usb.name.value.clone(),
            device: *device,
            behind: usb.behind.as_ref().and_then(|hub| number(&hub.value)),
            port: u8::try_from(usb.port.value).ok()?,
            model: usb.model?,
            is_real: usb.adapter.is_some(),
            buses: usb::buses(usb),
            identity: usb::identity(usb),
            serial: usb.serial.as_ref().map(|serial| serial.value.clone()),
            channels: usb::channels(usb),
            first_channel: usb.first_channel,
            bit_rates: usb::bit_rates(usb),
            data_rates: usb::data_rates(usb),
            sample_point: usb::sample_point(usb),
            restart_ns: usb.restart.as_ref().map(|at| at.value),
            drift: usb::drift(usb),
            clock_at_ns: usb.clock_at.as_ref().map_or(0, |at| at.value),
            datagrams: ethernet::datagrams(declared, &usb.name),
            gap_ns: usb::pace(usb),
            takes_ns: usb.takes.as_ref().map(|takes| takes.value),
        })
    };
    whole.iter().filter_map(plug).collect()
}

fn works(declared: &Declared) -> Vec<WorkSpec> {
    let work = |work: &DeclaredWork| {
        let (best_ns, worst_ns) = (work.best.value, work.worst.value);
        Some(WorkSpec { name: work.name.as_ref()?.value.clone(), best_ns, worst_ns })
    };
    declared.works.iter().filter_map(work).collect()
}

/// Returns the declared devices, then the messages of each, then the doorbells.
fn devices(declared: &Declared) -> Vec<DeviceSpec> {
    let mut devices = each(&declared.devices, |name, device| DeviceSpec {
        name: name.value.clone(),
        location: match &device.place {
            DeclaredPlace::Address(address) => Location::Address(address.value),
            DeclaredPlace::Pci(function) => Location::Pci(function.value),
            DeclaredPlace::Unusable => Location::Address(0),
        },
        size: device.size,
        interrupt: device.irq.as_ref().map(|irq| Interrupt {
            irq: irq.value,
            level: device.level,
            interval_ns: device.interval(0),
        }),
        allowed: users(declared, &name.value),
        simulated: device.simulated,
    });
    let of_each = declared.devices.iter().zip(0..).flat_map(|(device, of)| {
        (0..device.what.messages()).map(move |vector| (device, of, vector))
    });
    devices.extend(of_each.zip(MESSAGES..).map(|((device, of, vector), irq)| DeviceSpec {
        name: message_of(&device.name.value, vector),
        location: Location::Message { of, vector },
        size: 0,
        interrupt: Some(Interrupt { irq, level: false, interval_ns: device.what.interval(vector) }),
        allowed: users(declared, &device.name.value),
        simulated: ControllerVariant::default(),
    }));
    devices.extend(declared.doorbells.iter().map(|bell| doorbell(declared, bell)));
    devices
}

/// Returns a doorbell, as a device that has no registers, and an interrupt only where it is
/// answered.
fn doorbell(declared: &Declared, Named { name, what }: &Named<DeclaredBell>) -> DeviceSpec {
    let interrupt =
        Interrupt { irq: BELLS_FROM + what.number, level: false, interval_ns: what.interval };
    let answers = |process: &DeclaredProcess| {
        what.answered_by.as_ref().is_some_and(|name| name.value == process.name.value)
    };
    let all = declared.processes.iter().enumerate();
    let answering = all.filter(|(_, process)| answers(process));
    DeviceSpec {
        name: name.value.clone(),
        location: Location::Bell { core: what.core, number: what.number },
        size: 0,
        interrupt: (what.core == declared.core).then_some(interrupt),
        allowed: answering.fold(users(declared, &name.value), |mask, (index, _)| mask | bit(index)),
        simulated: ControllerVariant::default(),
    }
}

fn origin(declared: &Declared, source: &Source) -> Origin {
    Origin {
        source: source.clone(),
        memory: declared.memory.span.clone(),
        cores: declared.cores.span.clone(),
        programs: declared.processes.iter().map(|p| p.program.clone()).collect(),
        vcpus: declared.vcpus.iter().map(|vcpu| vcpu.name.span.clone()).collect(),
        pipes: declared.pipes.iter().map(|pipe| pipe.name.span.clone()).collect(),
        tpipes: declared.tpipes.iter().map(|tpipe| tpipe.name.span.clone()).collect(),
        states: declared.states.iter().map(|state| state.name.span.clone()).collect(),
        chains: declared.chains.iter().map(|chain| chain.name.span.clone()).collect(),
        endpoints: declared.endpoints.iter().map(|e| e.name.span.clone()).collect(),
        modes: mode::places(declared),
        sockets: declared.sockets.iter().map(|socket| socket.name.span.clone()).collect(),
        cans: declared.cans.iter().map(|can| can.name.span.clone()).collect(),
        messages: declared.messages.iter().map(|it| it.name.span.clone()).collect(),
        scheduling: match &declared.scheduling.place {
            nowhere if nowhere.is_empty() => declared.top.clone(),
            place => place.clone(),
        },
    }
}

fn vcpus(declared: &Declared, names: &Names<'_>, queues: &Queues) -> Vec<VcpuSpec> {
    let numbered = declared.vcpus.iter().zip(&queues.of);
    let vcpu = |(vcpu, queue): (&Named<DeclaredVcpu>, &u8)| {
        let name = vcpu.name.value.as_str();
        let runs_on = |p: &DeclaredProcess| p.vcpu.as_ref().is_some_and(|vcpu| vcpu.value == name);
        let first = declared.processes.iter().enumerate().filter(|(_, process)| runs_on(process));
        Some(VcpuSpec {
            name: name.to_owned(),
            server: server(&vcpu.what, names)?,
            queue: *queue,
            allowed: first.fold(users(declared, name), |mask, (index, _)| mask | bit(index)),
        })
    };
    numbered.filter_map(vcpu).collect()
}

fn server(what: &DeclaredVcpu, names: &Names<'_>) -> Option<ServerSpec> {
    let (mut server, served) = match what {
        DeclaredVcpu::Main { server, .. } => (server.clone(), &[][..]),
        DeclaredVcpu::Io { server, serves, .. } => (server.clone(), serves.as_slice()),
        DeclaredVcpu::Unusable => return None,
    };
    if let ServerSpec::Io { serves, .. } = &mut server {
        let numbers = served.iter().filter_map(|name| names.vcpu(&name.value));
        serves.extend(numbers.filter_map(number));
    }
    Some(server)
}

/// Returns the processes that use `name`, one bit each.
fn users(declared: &Declared, name: &str) -> u64 {
    let uses = |process: &DeclaredProcess| process.uses.iter().any(|used| used.value == name);
    let bits = declared.processes.iter().enumerate().filter(|(_, process)| uses(process));
    bits.fold(0, |mask, (index, _)| mask | bit(index))
}

/// Returns the bit of process number `index`; there are at most 64.
fn bit(index: usize) -> u64 {
    u32::try_from(index).ok().and_then(|shift| 1u64.checked_shl(shift)).unwrap_or(0)
}

fn number(index: usize) -> Option<u16> {
    u16::try_from(index).ok()
}

fn processes(declared: &Declared, names: &Names<'_>) -> Vec<ProcessSpec> {
    let numbered = declared.processes.iter().enumerate();
    numbered.map(|(index, process)| self::process(index, process, names)).collect()
}

fn process(index: usize, declared: &DeclaredProcess, names: &Names<'_>) -> ProcessSpec {
    let d = declared;
    let starts = d.starts.iter().filter_map(|name| names.process(&name.value));
    ProcessSpec {
        uses: d.uses.iter().map(|name| name.value.clone()).collect(),
        starts: starts.filter_map(number).collect(),
        supervisor: supervision::of(d, index, names).and_then(number),
        vcpu: d.vcpu.as_ref().and_then(|vcpu| names.vcpu(&vcpu.value)).and_then(number),
        ..d.whole.clone()
    }
}

/// Returns one mailbox for each process that supervises others, and for one named `supervisor` even
/// if it has nobody to supervise yet: its program need not care.
fn fault_mailboxes(system: &System) -> Vec<MailboxSpec> {
    let mut mailboxes = Vec::new();
    for (index, process) in system.processes.iter().enumerate() {
        let Some(number) = number(index) else { continue };
        let supervised = system.supervised_by(number);
        if supervised > 0 || process.name == SUPERVISOR {
            mailboxes.push(MailboxSpec {
                name: faults_of(&process.name),
                messages: u16::try_from(supervised.max(1)).unwrap_or(u16::MAX),
                served: None,
                allowed: bit(index),
                faults_of: Some(number),
            });
        }
    }
    mailboxes
}
