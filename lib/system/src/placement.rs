//! The processes that have to share a core, and a description with its processes on other cores.
//!
//! Segments (without `dma`) and doorbells reach other cores, and so do pipes whose readers can look
//! for messages themselves. Two processes that use anything else together stay on one core, and so
//! do those of which one starts or supervises the other. So groups that share nothing else can be
//! placed apart, and [`crate::cores`] checks whether a placement is right.

use crate::declared::{Declared, DeclaredPipe, DeclaredProcess, DeclaredVcpu, Supervision};
use crate::names::SUPERVISOR;
use crate::source::At;

/// Puts each process on the core that `core_of` names, of so many.
pub(crate) fn place(declared: &mut Declared, cores: u16, core_of: &dyn Fn(&str) -> u16) {
    declared.cores.value = cores;
    for process in &mut declared.processes {
        process.core.value = core_of(&process.name.value);
    }
}

/// Returns the names of processes that have to share a core, group by group, in the order of the
/// description.
pub(crate) fn groups(declared: &Declared) -> Vec<Vec<String>> {
    let mut groups = Groups((0..declared.processes.len()).collect());
    let d = declared;
    let objects = d.semaphores.iter().map(|it| &it.name);
    let objects = objects.chain(d.conditions.iter().map(|it| &it.name));
    let objects = objects.chain(d.mailboxes.iter().map(|it| &it.name));
    let objects = objects.chain(d.devices.iter().map(|it| &it.name));
    let objects = objects.chain(d.vcpus.iter().map(|it| &it.name));
    let for_devices = d.segments.iter().filter(|segment| segment.what.dma);
    let crossing: Vec<&str> = d.pipes.iter().flat_map(|pipe| only_near(d, pipe)).collect();
    let names = objects.chain(for_devices.map(|it| &it.name)).map(|name| &*name.value);
    for name in names.filter(|name| !crossing.contains(name)) {
        groups.join(users(d, name));
    }
    for vcpu in &d.vcpus {
        if let DeclaredVcpu::Io { serves, .. } = &vcpu.what {
            let served = serves.iter().flat_map(|name| users(d, &name.value));
            groups.join(users(d, &vcpu.name.value).chain(served));
        }
    }
    for (index, process) in d.processes.iter().enumerate() {
        let others = process.starts.iter().chain(supervisor(process)).map(|name| &*name.value);
        let default = matches!(process.supervisor, Supervision::Default).then_some(SUPERVISOR);
        let others = others.chain(default).filter_map(|name| number(d, name));
        groups.join(std::iter::once(index).chain(others));
    }
    for chain in &d.chains {
        let pipe = |name: &At<String>| d.pipes.iter().find(|it| it.name.value == name.value);
        let ends = chain.from.iter().chain(&chain.to).filter_map(pipe);
        let ends = ends.filter_map(|pipe| pipe.process.as_ref());
        let threads = ends.chain(chain.links.iter().filter_map(|link| link.process.as_ref()));
        groups.join(threads.filter_map(|name| number(d, &name.value)));
    }
    groups.named(d)
}

/// Returns what the ends of a pipe share on one core only, or as memory for devices, if they need
/// not be on one core.
fn only_near(declared: &Declared, pipe: &DeclaredPipe) -> Vec<&'static str> {
    let Some(source) = declared.crossing(pipe) else { return Vec::new() };
    let places = source.form.places().map(|places| places.data.0);
    std::iter::once(source.ready).chain(places).collect()
}

/// Returns the process that supervises this one, if it names one.
fn supervisor(process: &DeclaredProcess) -> Option<&At<String>> {
    match &process.supervisor {
        Supervision::By(name) => Some(name),
        Supervision::Default | Supervision::Nobody(_) => None,
    }
}

fn number(declared: &Declared, name: &str) -> Option<usize> {
    declared.processes.iter().position(|process| process.name.value == name)
}

/// Returns the numbers of the processes that use or run on what is called so.
fn users<'d>(declared: &'d Declared, name: &'d str) -> impl Iterator<Item = usize> + 'd {
    let uses = move |process: &DeclaredProcess| {
        let runs_on = process.vcpu.as_ref().is_some_and(|vcpu| vcpu.value == name);
        runs_on || process.uses.iter().any(|used| used.value == name)
    };
    let all = declared.processes.iter().enumerate();
    all.filter(move |(_, process)| uses(process)).map(|(index, _)| index)
}

/// The group of each process: the lowest number in it.
struct Groups(Vec<usize>);

impl Groups {
    /// Makes one group of those of all these processes.
    fn join(&mut self, processes: impl Iterator<Item = usize>) {
        let old: Vec<usize> = processes.map(|process| self.0[process]).collect();
        if let Some(first) = old.iter().min() {
            let joined = self.0.iter_mut().filter(|group| old.contains(group));
            joined.for_each(|group| *group = *first);
        }
    }

    fn named(&self, declared: &Declared) -> Vec<Vec<String>> {
        let names = |group: usize| {
            let of_group = self.0.iter().zip(&declared.processes).filter(|(own, _)| **own == group);
            of_group.map(|(_, process)| process.name.value.clone()).collect::<Vec<String>>()
        };
        let all = (0..self.0.len()).map(names);
        all.filter(|group| !group.is_empty()).collect()
    }
}
