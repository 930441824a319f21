//! The names that an image carries for its screen: behind the boot archive, in the same module.
//!
//! The kernel knows processes and devices by number. A sheet gives them names, and says what the
//! host found out about the system when it made the image. It lies at the end of the module, its
//! last bytes say how long it is, and a checksum guards it: without a whole one there are numbers
//! instead of names, and no verdict that needs it.

use diapason_abi::archive::crc32;

/// The last bytes of a sheet.
const MAGIC: [u8; 8] = *b"DIASHEET";
/// The length of everything before it, a checksum of that, and the magic number.
const TRAILER: usize = 4 + 4 + MAGIC.len();
/// Flags, processes, devices, memory, cores.
const HEADER: usize = 1 + 2 + 2 + 4 + 1;
/// Before each name: its flags and its length.
const NAME_HEADER: usize = 2;

/// Flags of a sheet.
pub mod flags {
    /// The plan of the system holds.
    pub const PROVED: u8 = 1;
    /// The final tables alone tell whether every promise was kept.
    pub const WHOLE: u8 = 2;
}

/// Flags of a name.
pub mod of_name {
    /// The description provides for faults of this process.
    pub const MAY_FAULT: u8 = 1;
}

/// The facts that a host puts on a sheet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SheetContent<'a> {
    pub flags: u8,
    /// The memory that the system needs, in MiB.
    pub memory_mib: u32,
    /// The processors that the system needs.
    pub cores: u8,
    pub system: &'a str,
    /// Names of processes, with bits of [`of_name`].
    pub processes: &'a [(&'a str, u8)],
    pub devices: &'a [&'a str],
}

impl SheetContent<'_> {
    /// Writes the sheet to the end of `out`. Names beyond 255 bytes are cut.
    pub fn write<T: Extend<u8> + AsRef<[u8]>>(&self, out: &mut T) {
        let start = out.as_ref().len();
        out.extend([self.flags]);
        out.extend((self.processes.len() as u16).to_le_bytes());
        out.extend((self.devices.len() as u16).to_le_bytes());
        out.extend(self.memory_mib.to_le_bytes());
        out.extend([self.cores]);
        let devices = self.devices.iter().map(|name| (*name, 0));
        let names = [(self.system, 0)].into_iter().chain(self.processes.iter().copied());
        for (name, flags) in names.chain(devices) {
            let name = &name.as_bytes()[..name.len().min(255)];
            out.extend([flags, name.len() as u8]);
            out.extend(name.iter().copied());
        }
        let body = out.as_ref().get(start..).unwrap_or_default();
        let (length, sum) = (body.len() as u32, crc32(body));
        out.extend(length.to_le_bytes());
        out.extend(sum.to_le_bytes());
        out.extend(MAGIC);
    }
}

/// A sheet whose checksum and names were checked. By default it is empty: nothing has a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sheet<'a> {
    pub flags: u8,
    pub memory_mib: u32,
    pub cores: u8,
    processes: u16,
    devices: u16,
    names: &'a [u8],
}

impl<'a> Sheet<'a> {
    /// Returns the sheet at the end of `module`, if there is a whole one.
    #[must_use]
    #[inline(never)]
    pub fn read(module: &'a [u8]) -> Option<Sheet<'a>> {
        let (rest, trailer) = module.split_last_chunk::<TRAILER>()?;
        let [l0, l1, l2, l3, c0, c1, c2, c3, magic @ ..] = *trailer;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let body = rest.get(rest.len().checked_sub(length)?..)?;
        if magic != MAGIC || crc32(body) != u32::from_le_bytes([c0, c1, c2, c3]) {
            return None;
        }
        let (header, names) = body.split_first_chunk::<HEADER>()?;
        let [flags, p0, p1, d0, d1, m0, m1, m2, m3, cores] = *header;
        let (processes, devices) = (u16::from_le_bytes([p0, p1]), u16::from_le_bytes([d0, d1]));
        let memory_mib = u32::from_le_bytes([m0, m1, m2, m3]);
        let sheet = Sheet { flags, memory_mib, cores, processes, devices, names };
        let all = 1 + u32::from(processes) + u32::from(devices);
        sheet.rest(all)?.is_empty().then_some(sheet)
    }

    /// Returns what follows the first `count` names; `None` if there are fewer.
    fn rest(&self, count: u32) -> Option<&'a [u8]> {
        let mut rest = self.names;
        for _ in 0..count {
            rest = rest.get(NAME_HEADER + usize::from(*rest.get(1)?)..)?;
        }
        Some(rest)
    }

    /// Returns flags and name in this place of the list.
    #[inline(never)]
    fn entry(&self, place: u32) -> Option<(u8, &'a [u8])> {
        let rest = self.rest(place)?;
        let (flags, length) = (*rest.first()?, usize::from(*rest.get(1)?));
        Some((flags, rest.get(NAME_HEADER..NAME_HEADER + length)?))
    }

    /// Returns the name of the system.
    #[must_use]
    pub fn system(&self) -> &'a [u8] {
        self.entry(0).map_or(&[], |(_, name)| name)
    }

    /// Returns flags and name of a process, by its number.
    #[must_use]
    pub fn process(&self, number: u64) -> Option<(u8, &'a [u8])> {
        (number < u64::from(self.processes)).then(|| self.entry(1 + number as u32)).flatten()
    }

    /// Returns the name of a device, by its number.
    #[must_use]
    pub fn device(&self, number: u64) -> Option<&'a [u8]> {
        let place = || self.entry(1 + u32::from(self.processes) + number as u32);
        let entry = (number < u64::from(self.devices)).then(place).flatten();
        entry.map(|(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn sample() -> Vec<u8> {
        let content = SheetContent {
            flags: flags::PROVED,
            memory_mib: 64,
            cores: 2,
            system: "car",
            processes: &[("brakes", 0), ("radio", of_name::MAY_FAULT)],
            devices: &["usb"],
        };
        let mut bytes = b"an archive".to_vec();
        content.write(&mut bytes);
        bytes
    }

    #[test]
    fn what_a_host_writes_is_read() {
        let bytes = sample();
        let sheet = Sheet::read(&bytes).unwrap();
        assert_eq!((sheet.flags, sheet.memory_mib, sheet.cores), (1, 64, 2));
        assert_eq!(sheet.system(), b"car");
        assert_eq!(sheet.process(0), Some((0, &b"brakes"[..])));
        assert_eq!(sheet.process(1), Some((of_name::MAY_FAULT, &b"radio"[..])));
        assert_eq!((sheet.process(2), sheet.device(0)), (None, Some(&b"usb"[..])));
        assert_eq!((sheet.device(1), sheet.device(u64::MAX)), (None, None));
    }

    #[test]
    fn every_changed_byte_and_every_cut_is_found() {
        let whole = sample();
        let archive = b"an archive".len();
        for at in archive..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            assert_eq!(Sheet::read(&bytes), None, "byte {at}");
            assert_eq!(Sheet::read(&whole[..at]), None, "cut at {at}");
            assert_eq!(Sheet::read(&whole[at + 1..]), None, "without {at}");
        }
    }
}
