//! Names for the numbers in the kernel's records.

use diapason_abi::Key;
use diapason_system::System;

/// The names of a system's parts, by their places in the description.
#[derive(Clone, Default, Debug)]
pub struct Names {
    processes: Vec<String>,
    vcpus: Vec<String>,
    devices: Vec<String>,
    /// Everything that a program may ask the kernel for by name.
    grants: Vec<String>,
}

/// The names that the system declares, and those that servers know by themselves.
fn grants(system: &System) -> Vec<String> {
    let declared = system.processes.iter().flat_map(|process| process.uses.iter().cloned());
    let segments = system.segments.iter().map(|segment| segment.name.clone());
    let semaphores = system.semaphores.iter().map(|semaphore| semaphore.name.clone());
    let mailboxes = system.mailboxes.iter().map(|mailbox| mailbox.name.clone());
    let vcpus = system.vcpus.iter().map(|vcpu| vcpu.name.clone());
    let known = diapason_contract::needs::all().map(str::to_owned);
    declared.chain(segments).chain(semaphores).chain(mailboxes).chain(vcpus).chain(known).collect()
}

impl Names {
    /// The names of processes 0, 1, …
    #[must_use]
    pub fn new(processes: Vec<String>) -> Names {
        Names { processes, ..Names::default() }
    }

    /// Returns the name that the kernel knows as this key.
    #[must_use]
    pub fn of_key(&self, key: u64) -> Option<&str> {
        self.grants.iter().find(|name| Key::new(name).0 == key).map(String::as_str)
    }

    /// All names of a system.
    #[must_use]
    pub fn of(system: &System) -> Names {
        Names {
            processes: system.processes.iter().map(|process| process.name.clone()).collect(),
            vcpus: system.vcpus.iter().map(|vcpu| vcpu.name.clone()).collect(),
            devices: system.devices.iter().map(|device| device.name.clone()).collect(),
            grants: grants(system),
        }
    }

    /// Returns a process's name, or its number if there is none.
    #[must_use]
    pub fn process(&self, index: u64) -> String {
        named(&self.processes, index)
    }

    /// Returns a device's name, or its number if there is none.
    #[must_use]
    pub fn device(&self, index: u64) -> String {
        named(&self.devices, index)
    }

    /// Returns a VCPU's name, or its number if there is none. One that a process made while the
    /// system ran is `private` and counts after those of the description.
    #[must_use]
    pub fn vcpu(&self, index: u64, maker: Option<u64>) -> String {
        let Some(maker) = maker else { return named(&self.vcpus, index) };
        let number = index.saturating_sub(self.vcpus.len() as u64);
        format!("private {number} of {}", self.process(maker))
    }

    /// All names, in order.
    #[must_use]
    pub fn processes(&self) -> &[String] {
        &self.processes
    }
}

fn named(names: &[String], index: u64) -> String {
    let name = usize::try_from(index).ok().and_then(|i| names.get(i));
    name.cloned().unwrap_or_else(|| format!("#{index}"))
}

/// Returns the text of up to eight packed characters; what cannot be shown becomes `?`.
#[must_use]
pub fn unpack(packed: u64) -> String {
    let bytes = packed.to_le_bytes();
    let text = bytes.iter().take_while(|byte| **byte != 0);
    text.map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '?' }).collect()
}

/// Returns a thread's name, or its slot if it has none.
#[must_use]
pub fn thread(packed: u64, slot: u64) -> String {
    let name = unpack(packed);
    if name.is_empty() { format!("thread{slot}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_abi::key::pack_name;

    #[test]
    fn packed_names_come_back() {
        assert_eq!(unpack(pack_name("ctrl")), "ctrl");
        assert_eq!(unpack(pack_name("12345678")), "12345678");
        assert_eq!(unpack(u64::from_le_bytes([b'a', 0xff, b'\n', 0, b'x', 0, 0, 0])), "a??");
        assert_eq!(thread(0, 3), "thread3");
    }

    #[test]
    fn a_process_without_a_name_shows_its_number() {
        let names = Names::new(vec!["engine".into()]);
        assert_eq!(names.process(0), "engine");
        assert_eq!(names.process(7), "#7");
        assert_eq!(names.process(u64::MAX), format!("#{}", u64::MAX));
        assert_eq!(names.device(2), "#2");
    }

    #[test]
    fn vcpus_made_at_run_time_count_after_those_described() {
        let names = Names {
            processes: vec!["engine".into()],
            vcpus: vec!["fast".into(), "slow".into()],
            ..Names::default()
        };
        assert_eq!(names.vcpu(1, None), "slow");
        assert_eq!(names.vcpu(2, Some(0)), "private 0 of engine");
        assert_eq!(names.vcpu(u64::MAX, Some(9)), format!("private {} of #9", u64::MAX - 2));
        assert_eq!(Names::default().vcpu(3, None), "#3");
    }
}
