//! Names for the numbers in the kernel's records.

/// The processes of a system by their place in its description.
#[derive(Clone, Default, Debug)]
pub struct Names {
    processes: Vec<String>,
}

impl Names {
    /// The names of processes 0, 1, …
    #[must_use]
    pub fn new(processes: Vec<String>) -> Names {
        Names { processes }
    }

    /// A process's name, or its number if there is none.
    #[must_use]
    pub fn process(&self, index: u64) -> String {
        let name = usize::try_from(index).ok().and_then(|i| self.processes.get(i));
        name.cloned().unwrap_or_else(|| format!("#{index}"))
    }

    /// All names, in order.
    #[must_use]
    pub fn processes(&self) -> &[String] {
        &self.processes
    }
}

/// The text of up to eight packed characters; what cannot be shown becomes `?`.
#[must_use]
pub fn unpack(packed: u64) -> String {
    let bytes = packed.to_le_bytes();
    let text = bytes.iter().take_while(|byte| **byte != 0);
    text.map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '?' }).collect()
}

/// A thread's name, or its slot if it has none.
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
    }
}
