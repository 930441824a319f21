//! Mutexes that threads on several VCPUs lock: what a VCPU does for others that hold them.
//!
//! A thread that waits for a mutex runs the holder in its place and on its budget. So what a bound
//! counts for a job, or for a message, is longer by what it may do for holders on other VCPUs.
//! `lib/analysis` has the theorem; here `[[section]]` becomes its input.

use crate::calls::Calls;
use crate::core::Core;
use crate::missing::Missing;
use diapason_abi::{CallNumber, Nanos};
use diapason_analysis::server::inherit::{Budgets, Section, Sharing};
use diapason_analysis::server::{MainVcpu, PERIOD_MAX, Queue};
use diapason_costs::KernelTimes;
use diapason_system::{CriticalSection, SemaphoreKind, ServedBy, System};
use std::iter::successors;

/// The VCPUs on which a process may have threads.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Seats {
    /// Main VCPUs of the core, and behind them one for each process without a VCPU.
    mains: Vec<usize>,
    /// The process may have threads on an I/O VCPU, or on one that it makes while it runs.
    elsewhere: bool,
}

impl Seats {
    /// Returns whether all threads are on one.
    const fn is_one(&self) -> bool {
        self.mains.len() == 1 && !self.elsewhere
    }
}

/// The mutexes of a system, and how long each process holds them.
pub(crate) struct Mutexes<'a> {
    system: &'a System,
    /// The VCPUs of each process.
    seats: Vec<Seats>,
    /// `None`: sections that contradict each other. The reader of descriptions refuses those.
    sharing: Option<Sharing>,
    /// By place: whether its jobs are known to find enough budget.
    lasting: Vec<bool>,
}

impl<'a> Mutexes<'a> {
    pub(crate) fn new(system: &'a System, core: &Core, costs: &KernelTimes) -> Mutexes<'a> {
        let mut world = core.system.clone();
        let seats: Vec<Seats> =
            (0..system.processes.len()).map(|process| seats(process, system, core)).collect();
        // A thread without a VCPU is less urgent than every VCPU.
        let behind = core.mains.len() + system.processes.len();
        let last = MainVcpu { budget: Nanos(1), period: PERIOD_MAX, chunks: 1, queue: Queue::Fp };
        world.mains.resize(behind, last);
        // A helper switches to the holder and back, and the holder unlocks, or answers.
        let switch = costs.switch(system.deadline_queues());
        let served = system.mailboxes.iter().any(|mailbox| mailbox.served.is_some());
        let end = if served { CallNumber::MboxCall } else { CallNumber::SemUnlock };
        let turn = switch + switch + Calls::new(costs).of(end);
        let sections = sections(&system.sections, &seats, turn);
        Mutexes {
            system,
            seats,
            sharing: Sharing::new(world, sections).ok(),
            lasting: vec![false; core.mains.len()],
        }
    }

    /// Notes that the jobs of the VCPU at `place` always find enough budget.
    pub(crate) fn lasts(&mut self, place: usize) {
        self.lasting[place] = true;
    }

    /// Returns the longest time that a job, or the work for a message, on the VCPU at `place`
    /// spends for others within `window`.
    pub(crate) fn help(&self, place: usize, window: Nanos) -> Nanos {
        let budgets = |vcpu: usize| match self.lasting.get(vcpu) {
            Some(true) => Budgets::Last,
            _ => Budgets::MayEnd,
        };
        let sharing = self.sharing.as_ref();
        sharing.map_or(Nanos::FOREVER, |sharing| sharing.extra(place, &budgets, window))
    }

    fn users(&self, mutex: usize) -> impl Iterator<Item = usize> {
        let allowed = self.system.semaphores[mutex].allowed;
        (0..self.system.processes.len()).filter(move |process| allowed >> process & 1 == 1)
    }

    /// Returns whether threads that lock a mutex may be on different VCPUs.
    fn is_shared(&self, mutex: usize) -> bool {
        let mut seats = self.users(mutex).map(|process| &self.seats[process]);
        let Some(first) = seats.next() else { return false };
        !first.is_one() || seats.any(|other| other != first)
    }

    /// Returns the mutexes of a process that threads on other VCPUs lock, too.
    fn of(&self, process: usize) -> Vec<usize> {
        let all = self.system.semaphores.iter().enumerate();
        let granted = all.filter(|(_, semaphore)| {
            matches!(semaphore.kind, SemaphoreKind::Mutex) && semaphore.allowed >> process & 1 == 1
        });
        granted.map(|(mutex, _)| mutex).filter(|mutex| self.is_shared(*mutex)).collect()
    }

    /// Returns a mutex that a process shares with threads on other VCPUs.
    pub(crate) fn shared_by(&self, process: u16) -> Option<&str> {
        let first = self.of(process.into()).first().copied()?;
        Some(&self.system.semaphores[first].name)
    }

    fn section(&self, process: usize, mutex: usize) -> Option<&CriticalSection> {
        let is = |section: &&CriticalSection| {
            usize::from(section.process) == process && usize::from(section.mutex) == mutex
        };
        self.system.sections.iter().find(is)
    }

    /// Returns everything that is missing to say how long a process may wait for mutexes.
    pub(crate) fn lacks(&self, process: u16) -> Vec<Missing> {
        let mut missing: Vec<Missing> = self.hidden(process.into()).into_iter().collect();
        let mut needed = self.of(process.into());
        let mut next = 0;
        while let Some(mutex) = needed.get(next).copied() {
            next += 1;
            for user in self.users(mutex) {
                if self.seats[user].elsewhere {
                    missing.push(self.uncounted(user, mutex));
                }
                missing.extend(self.hidden(user));
                missing.extend(self.unnested(user, mutex));
                // A mutex that a holder takes inside matters, too, so its owner must say whether.
                for other in self.of(user) {
                    match self.section(user, other) {
                        Some(section) if section.inside.is_none() || needed.contains(&other) => {}
                        Some(_) => needed.push(other),
                        None => missing.push(self.undeclared(user, other)),
                    }
                }
            }
        }
        let mut once = Vec::new();
        missing.into_iter().for_each(|one| {
            if !once.contains(&one) {
                once.push(one);
            }
        });
        once
    }

    /// Returns what is missing of a process that may have a mutex without a name, and threads on
    /// different VCPUs that wait for each other by it. A thread that serves is on those of its
    /// callers. No section names such a mutex.
    pub(crate) fn hidden(&self, process: usize) -> Option<Missing> {
        let described = &self.system.processes[process];
        let serves = |served: ServedBy| usize::from(served.process) == process;
        let mut served = self.system.mailboxes.iter().filter_map(|mailbox| mailbox.served);
        let is_apart = !self.seats[process].is_one() || served.any(serves);
        (described.threads > 1 && described.semaphores > 0 && is_apart).then(|| {
            let name = &described.name;
            (
                format!(
                    "`{name}` has threads on different VCPUs and semaphores without a name, and \
                     no bound counts how long it holds those"
                ),
                format!(
                    "write `semaphores = 0` in `{name}`, and declare each as a `[[semaphore]]` \
                     with its `[[section]]`"
                ),
            )
        })
    }

    /// Returns what a caller of a server leaves out: the server works in the place of the caller,
    /// so what it locks then is a section inside the call.
    fn unnested(&self, caller: usize, mutex: usize) -> Vec<Missing> {
        let mut served = self.system.mailboxes.iter().filter_map(|mailbox| mailbox.served);
        let Some(served) = served.find(|served| usize::from(served.mutex) == mutex) else {
            return Vec::new();
        };
        let server = served.process;
        // The server may ask another one, so the section can be further inside.
        let outer = |section: &&CriticalSection| {
            section.inside.and_then(|outer| self.system.sections.get(outer))
        };
        let is_inside = |other: usize| {
            let mut outside = successors(self.section(caller, other), outer).skip(1);
            outside.any(|section| usize::from(section.mutex) == mutex)
        };
        let others = self.of(server.into()).into_iter().filter(|other| *other != mutex);
        let forgotten = others.filter(|other| caller != usize::from(server) && !is_inside(*other));
        let name = |process: usize| &self.system.processes[process].name;
        let mutex = &self.system.semaphores[mutex].name;
        let missing = forgotten.map(|other| {
            let (server, caller) = (name(server.into()), name(caller));
            let other = &self.system.semaphores[other].name;
            (
                format!("`{server}` may lock `{other}` while it serves `{caller}`"),
                format!(
                    "add `{other}` to `uses` of `{caller}`, and a `[[section]]` with \
                     `process = \"{caller}\"`, `mutex = \"{other}\"` and `inside = \"{mutex}\"`"
                ),
            )
        });
        missing.collect()
    }

    fn undeclared(&self, process: usize, mutex: usize) -> Missing {
        let name = &self.system.processes[process].name;
        let mutex = &self.system.semaphores[mutex].name;
        (
            format!("nothing says how long `{name}` holds the mutex `{mutex}`"),
            format!(
                "add `[[section]]` with `process = \"{name}\"`, `mutex = \"{mutex}\"` and \
                 `longest = \"50us\"`, or take the mutex out of its `uses`"
            ),
        )
    }

    fn uncounted(&self, process: usize, mutex: usize) -> Missing {
        let name = &self.system.processes[process].name;
        let mutex = &self.system.semaphores[mutex].name;
        (
            format!(
                "`{name}` may hold the mutex `{mutex}` on an I/O VCPU, or on one that it makes"
            ),
            format!("take `{mutex}` out of the `uses` of `{name}`: no bound counts that"),
        )
    }

    /// Shared mutexes of which some holder says nothing, if no bound counts them.
    pub(crate) fn unsaid(&self) -> Vec<String> {
        let is_mutex =
            |mutex: &usize| matches!(self.system.semaphores[*mutex].kind, SemaphoreKind::Mutex);
        let all = (0..self.system.semaphores.len()).filter(is_mutex);
        let on_vcpu = |mutex: &usize| {
            let mut users = self.users(*mutex);
            users.any(|process| self.system.processes[process].vcpu.is_some())
        };
        let unsaid = all.filter(|mutex| self.is_shared(*mutex) && on_vcpu(mutex));
        let unsaid = unsaid.filter(|mutex| {
            self.users(*mutex).any(|process| self.section(process, *mutex).is_none())
        });
        unsaid.map(|mutex| self.system.semaphores[mutex].name.clone()).collect()
    }
}

fn seats(process: usize, system: &System, core: &Core) -> Seats {
    let described = &system.processes[process];
    let on = |number: &u16| system.may_be_on(process, *number);
    let mains = (0..core.mains.len()).filter(|place| on(&core.mains[*place]));
    let mut mains: Vec<usize> = mains.collect();
    let elsewhere = described.vcpus > 0 || core.ios.iter().any(on);
    if described.vcpu.is_none() {
        mains.push(core.mains.len() + process);
    }
    Seats { mains, elsewhere }
}

/// Returns the sections of each VCPU on which they may be run, longer by what it takes to help
/// each.
fn sections(declared: &[CriticalSection], seats: &[Seats], turn: Nanos) -> Vec<Section> {
    let lengths = lengths(declared, turn);
    let mut sections: Vec<Section> = Vec::new();
    // By declared section, the place of it on each seat.
    let mut places: Vec<Vec<usize>> = Vec::new();
    for (section, length) in declared.iter().zip(lengths) {
        let mut own = Vec::new();
        for (seat, vcpu) in seats[usize::from(section.process)].mains.iter().enumerate() {
            own.push(sections.len());
            sections.push(Section {
                vcpu: *vcpu,
                mutex: section.mutex.into(),
                length,
                times: section.times,
                inside: section.inside.map(|outer| places[outer][seat]),
            });
        }
        places.push(own);
    }
    sections
}

/// Returns the length of each section for a helper: a turn to its holder is part of it, and one to
/// the holder of each section inside.
fn lengths(declared: &[CriticalSection], turn: Nanos) -> Vec<Nanos> {
    let mut more = vec![turn; declared.len()];
    // An outer section comes before those inside it.
    for (index, section) in declared.iter().enumerate().rev() {
        if let Some(outer) = section.inside {
            let inner = Nanos(more[index].0.saturating_mul(section.times.into()));
            more[outer] += inner;
        }
    }
    declared.iter().zip(more).map(|(section, more)| Nanos(section.longest_ns) + more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_of_a_section_inside_is_a_turn_more() {
        let section = |longest_ns, times, inside| CriticalSection {
            process: 0,
            mutex: 0,
            longest_ns,
            times,
            inside,
        };
        let declared = [section(50, 1, None), section(10, 3, Some(0)), section(2, 2, Some(1))];
        // The innermost has its own turn, the next one two more, and the outermost three of those.
        let found = lengths(&declared, Nanos(100));
        assert_eq!(found, [50 + 100 + 3 * 300, 10 + 300, 2 + 100].map(Nanos));
    }
}
