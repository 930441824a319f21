//! Confined devices: whether an IOMMU confines them, and which of their accesses it stopped.

use super::Outcome;
use crate::duration::human;
use crate::names::Names;
use crate::table::Columns;
use crate::words::pci_place;
use diapason_abi::record::{Confinement, StrayAccess};

/// An access of a device that an IOMMU stopped, because the description does not grant it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StrayRow {
    pub time_ns: u64,
    /// The device's place in the description; `None` if no device of the description asked.
    pub device: Option<u64>,
    /// The address in memory; of an interrupt, the number of its entry in the table.
    pub address: u64,
    pub access: StrayAccess,
}

impl StrayRow {
    /// Returns the row of a record with four words.
    pub(crate) fn new(w: &[u64]) -> StrayRow {
        let access = StrayAccess(w[3]);
        let address = if access.is_interrupt() { w[2] >> 48 } else { w[2] };
        let device = (w[1] != u64::MAX).then_some(w[1]);
        StrayRow { time_ns: w[0], device, address, access }
    }

    /// Returns what was asked for, in a word.
    fn kind(&self) -> &'static str {
        match self.access {
            access if access.is_interrupt() => "interrupt",
            access if access.is_read() => "read",
            _ => "write",
        }
    }

    /// Returns the name of the device, or its place if the description has none there.
    fn name(&self, names: &Names) -> String {
        let place = || format!("at {}, which is not described,", pci_place(self.access.place()));
        self.device.map_or_else(place, |device| names.device(device))
    }

    /// Returns what happened, as a sentence without an end.
    pub(crate) fn sentence(&self, names: &Names) -> String {
        let what = match self.kind() {
            "interrupt" => format!("sent interrupt {}", self.address),
            "read" => format!("read memory at {:#x}", self.address),
            _ => format!("wrote memory at {:#x}", self.address),
        };
        format!("device {} {what}, which its description does not grant", self.name(names))
    }

    pub(super) fn columns(names: &Names) -> Columns<'_, StrayRow> {
        Columns::<StrayRow>::default()
            .json("time_ns", |row| row.time_ns)
            .json("device", |row| row.device.map(|device| names.device(device)))
            .json("place", |row| pci_place(row.access.place()))
            .json("access", |row| row.kind())
            .json("address", |row| format!("{:#x}", row.address))
            .json("reason", |row| row.access.reason())
    }
}

/// Returns one sentence for each device of which something was stopped.
pub(super) fn findings(stopped: &[StrayRow], names: &Names) -> Vec<String> {
    let who = |row: &StrayRow| row.access.place();
    let is_first = |(i, row): &(usize, &StrayRow)| stopped[..*i].iter().all(|r| who(r) != who(row));
    let sentence = |(_, first): (usize, &StrayRow)| {
        let times = stopped.iter().filter(|row| who(row) == who(first)).count();
        let (what, when) = (first.sentence(names), human(first.time_ns));
        let once = format!("{what}: the IOMMU stopped that at {when}");
        if times > 1 { format!("{once}, the first of {times} such accesses") } else { once }
    };
    stopped.iter().enumerate().filter(is_first).map(sentence).collect()
}

impl Outcome {
    /// Returns how far drivers are trusted, in a word; `None` if the description has no PCI device
    /// that the machine has, and in the simulator.
    pub(super) fn drivers(&self) -> Option<&'static str> {
        self.confined.map(|state| match Confinement::decode(state) {
            Some(Confinement::Full) => "confined",
            Some(Confinement::Memory) => "memory-confined",
            _ => "trusted",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::sample;

    fn write(time: u64, place: u64) -> StrayRow {
        StrayRow::new(&[time, 0, 0x20_0000, place | 5 << 32 | 1 << 63])
    }

    #[test]
    fn each_device_has_one_sentence() {
        let rows = [write(1_000, 0x18), write(2_000, 0x18), write(3_000, 0x20)];
        let said = findings(&rows, &sample::names());
        assert_eq!(
            said,
            [
                "device sensor wrote memory at 0x200000, which its description does not grant: the \
                 IOMMU stopped that at 1.000 us, the first of 2 such accesses",
                "device sensor wrote memory at 0x200000, which its description does not grant: the \
                 IOMMU stopped that at 3.000 us",
            ]
        );
    }

    #[test]
    fn an_interrupt_has_a_number_and_a_stranger_a_place() {
        let row = StrayRow::new(&[0, u64::MAX, 7 << 48, 0xf8 | 0x26 << 32]);
        assert_eq!((row.kind(), row.address, row.device), ("interrupt", 7, None));
        let says = "device at 00:1f.0, which is not described, sent interrupt 7, which its \
                    description does not grant";
        assert_eq!(row.sentence(&sample::names()), says);
        assert_eq!(StrayRow::new(&[0, 0, 5, 1 << 62]).kind(), "read");
    }

    #[test]
    fn only_an_iommu_makes_drivers_confined() {
        let drivers = |confined| Outcome { confined, ..Outcome::default() }.drivers();
        assert_eq!(drivers(None), None);
        assert_eq!(drivers(Some(0)), Some("confined"));
        assert_eq!(drivers(Some(1)), Some("memory-confined"));
        assert!((2..9).all(|state| drivers(Some(state)) == Some("trusted")));
    }
}
