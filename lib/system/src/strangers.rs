//! Programs that may reach what only the driver of a device should: the registers of the device,
//! and the memory that it reads and writes by itself. Such a program can make the device do
//! anything, so no promise about it holds.

use crate::diagnostics::Diagnostics;
use crate::system::{Place, System};
use diapason_contract::ethernet::ADAPTER_NAMES;
use diapason_contract::link::TARGET;
use diapason_contract::needs::{BUFFERS, CONTROLLER, RINGS};
use diapason_contract::settings::PROGRAM;

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
        found.collect()
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
        for adapter in &self.adapters {
            let known = &ADAPTER_NAMES[usize::from(adapter.number)];
            owned.push((self.devices[adapter.device].name.clone(), adapter.driver));
            owned.extend([known.rings, known.buffers].map(|it| (it.to_owned(), adapter.driver)));
        }
        for controller in self.cans.iter().filter_map(|bus| bus.controller.as_ref()) {
            owned.push((self.devices[controller.device].name.clone(), controller.driver));
        }
        owned
    }
}
