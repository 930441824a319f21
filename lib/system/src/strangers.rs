//! Programs that may reach what is not theirs, so that no promise about it holds.
//!
//! Only the driver of a device may use its registers, and the memory that the device reads and
//! writes by itself. Only the two ends of a pipe or of a socket may use its objects: a third
//! program could take messages, or fill the buffer.

use crate::declared::Declared;
use crate::diagnostics::{Diagnostics, Problem, Report};
use crate::source::At;
use crate::system::{Place, System, VcpuSpec};
use diapason_contract::link::TARGET;
use diapason_contract::needs::{BUFFERS, CONTROLLER, RINGS};
use diapason_contract::settings::PROGRAM;
use diapason_contract::sink::ASKED;
use diapason_contract::tuned;

/// Reports processes that use an object of a pipe, of a socket or of a CAN bus and are no end of
/// it. These carriers have just granted their objects to their ends, behind the first `by_hand`
/// names that each process uses. The bill of a pipe to an endpoint counts a program that asks the
/// server without a pause, so anybody may use the semaphore for that.
pub(crate) fn check(declared: &Declared, by_hand: &[usize], report: &mut Report) {
    let parts = || declared.processes.iter().zip(by_hand);
    let granted: Vec<&At<String>> =
        parts().flat_map(|(process, own)| process.uses.iter().skip(*own)).collect();
    for (process, own) in parts() {
        let (used, ends) = process.uses.split_at(*own);
        let is_end = |used: &At<String>| ends.iter().any(|it| it.value == used.value);
        for used in used.iter().filter(|used| !is_end(used) && used.value != ASKED) {
            let Some(carrier) = granted.iter().find(|it| it.value == used.value) else { continue };
            let (of, name) = (&process.name.value, &used.value);
            let title = format!("`{of}` uses `{name}`, which belongs to others");
            let problem = Problem::new(&used.span, title, "leave it out of `uses`");
            report.push(problem.with(&carrier.span, "only the ends of this use it"));
        }
    }
}

impl System {
    /// Returns the problems of processes that use what belongs to the driver of another one's
    /// device. A USB server shares its controller with the server of a debug target.
    #[must_use]
    pub fn strangers(&self) -> Vec<Diagnostics> {
        let owned = self.owned();
        let processes = (0u16..).zip(&self.processes);
        let found = processes.flat_map(|(number, process)| {
            let used = process.uses.iter().filter_map(|used| {
                let (_, driver) = owned.iter().find(|(name, _)| name == used)?;
                Some((used, *driver))
            });
            let strange = used.filter(move |(used, driver)| {
                let shares = process.program == TARGET && used.as_str() == CONTROLLER;
                number != *driver && !shares
            });
            strange.map(move |(used, driver)| {
                let server = &self.processes[usize::from(driver)].name;
                let title = format!("`{}` uses `{used}`, which `{server}` drives", process.name);
                let help = format!("remove `\"{used}\"` from its `uses`");
                self.problem(Place::Process(number), [&title, "", "", &help])
            })
        });
        found.chain(self.squatters()).collect()
    }

    /// Returns the problems of processes that may put threads on a VCPU of the driver of a device.
    /// They could use up its budget. The VCPU of a tuned pipe is that of its program, too.
    fn squatters(&self) -> impl Iterator<Item = Diagnostics> {
        let processes = || (0u16..).zip(&self.processes);
        let adapters = self.adapters.iter().flat_map(|it| [Some(it.driver), it.sender()]);
        let adapters = adapters.flatten();
        let controllers = self.cans.iter().filter_map(|bus| Some(bus.controller.as_ref()?.driver));
        let drivers: Vec<u16> = adapters.chain(controllers).collect();
        let servers = processes().filter(move |(number, process)| {
            [PROGRAM, TARGET].contains(&&*process.program) || drivers.contains(number)
        });
        let is_tuned =
            |vcpu: &&VcpuSpec| (0..).map_while(tuned::names).any(|names| names.vcpu == vcpu.name);
        servers.flat_map(move |(server, process)| {
            let own = self.vcpus.iter().filter(move |vcpu| vcpu.allowed >> server & 1 == 1);
            let own = own.filter(move |vcpu| !is_tuned(vcpu));
            own.flat_map(move |vcpu| {
                let others = processes().filter(move |(number, _)| {
                    *number != server && vcpu.allowed >> number & 1 == 1
                });
                others.map(move |(number, other)| {
                    let (of, name, server) = (&other.name, &vcpu.name, &process.name);
                    let title = format!("`{of}` may put threads on `{name}`, a VCPU of `{server}`");
                    let help = "give it another `vcpu`, and leave this one out of its `uses`";
                    self.problem(Place::Process(number), [&title, "", "", help])
                })
            })
        })
    }

    /// Returns the names of what only the driver of a device may use, and that driver.
    fn owned(&self) -> Vec<(String, u16)> {
        let mut owned = Vec::new();
        let server = (0u16..).zip(&self.processes).find(|(_, process)| {
            process.program == PROGRAM && process.uses.iter().any(|used| used == CONTROLLER)
        });
        if let Some((server, _)) = server {
            owned.extend([CONTROLLER, RINGS, BUFFERS].map(|name| (name.to_owned(), server)));
        }
        for adapter in self.adapters.iter().filter(|it| it.card().is_some()) {
            owned.push((adapter.name().to_owned(), adapter.driver));
        }
        for controller in self.cans.iter().filter_map(|bus| bus.controller.as_ref()) {
            owned.push((self.devices[controller.device].name.clone(), controller.driver));
        }
        owned
    }
}
