//! Where the windows of each host's programs lie.
//!
//! The programs of all hosts live in one address space, those of each host in a region of its own.
//! The kernel and the programs of a host see addresses of that region. An observer of a host sees
//! the addresses of the metal ([`Region::home`]), so that a host looks the same at any place.

use diapason_abi::{PROCESSES_MAX, layout};

/// Most hosts in a simulation.
pub const HOSTS_MAX: usize = 64;
/// Where the region of the second host begins; nothing of this process lies near.
const FIRST: u64 = 1 << 44;
/// Distance between two regions.
const STRIDE: u64 = 1 << 38;
/// The windows of a region, from its start.
const WINDOWS: std::ops::Range<u64> = layout::base(0)..layout::base(PROCESSES_MAX as u16);
/// The bits of a result that are an address; the others may count pages.
const ADDRESS: u64 = (1 << 48) - 1;

const _: () = assert!(WINDOWS.end <= WINDOWS.start + STRIDE);
const _: () = assert!(WINDOWS.end < FIRST);

/// Where the windows of one host lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Region(u64);

impl Region {
    /// Returns the region of host number `host`. The first host's windows lie where the metal has
    /// them.
    pub const fn of(host: usize) -> Region {
        Region(if host == 0 { 0 } else { FIRST + host as u64 * STRIDE })
    }

    /// First address of a process's window.
    pub const fn window(self, process: u16) -> u64 {
        self.0 + layout::base(process)
    }

    /// Returns a word as it would be on the metal: an address in one of the windows moves.
    pub fn home(self, word: u64) -> u64 {
        let address = (word & ADDRESS).wrapping_sub(self.0);
        if WINDOWS.contains(&address) { word & !ADDRESS | address } else { word }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_abi::call::mapped;

    #[test]
    fn regions_are_apart_and_everything_in_them_has_a_home() {
        let last = PROCESSES_MAX as u16 - 1;
        for host in 0..HOSTS_MAX {
            let (region, first) = (Region::of(host), Region::of(0));
            assert!(region.window(last) + layout::WINDOW < Region::of(host + 1).window(0));
            for process in [0, last] {
                for offset in [0, layout::INFO, layout::WINDOW - 1] {
                    let (here, home) =
                        (region.window(process) + offset, first.window(process) + offset);
                    assert_eq!(region.home(here), home);
                    assert_eq!(region.home(mapped(here, 512)), mapped(home, 512));
                }
            }
            for word in [0, 1, 0xfff, u64::MAX, region.window(0) - 1] {
                assert_eq!(region.home(word), word);
            }
        }
    }
}
