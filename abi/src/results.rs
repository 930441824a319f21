//! The copy of the console that a process takes to a medium.
//!
//! The kernel adds every line of its console to a ring in the segment [`SEGMENT`], if the
//! description has it. One process takes the bytes out. When the run ends, the kernel says its
//! final tables, closes the ring, and lets the system go on until the process is done with them.
//!
//! A line that finds no room is not in the ring, and is counted. Words have 32 bits.
//!
//! The cores of a host share the segment: each kernel fills a ring in its own [`part`] of it, with
//! its own words. The process is on the first core, and its words are in the first part, but for
//! [`TAIL`], which each part has.

use crate::{Key, Nanos};

/// The name of the segment. It must be one for devices, and lies in one piece from boot on.
pub const SEGMENT: &str = "kernel.console";
/// The key of the segment.
pub const KEY: u64 = Key::new(SEGMENT).0;

/// Where the kernel's words are: the place behind the last byte, lines without room, [`RunState`],
/// the checksum of the archive that booted, and how many cores share the segment.
pub const HEAD: usize = 0;
pub const LOST: usize = 4;
pub const STATE: usize = 8;
pub const IMAGE: usize = 12;
pub const CORES: usize = 32;
/// Where the words of the process are: the place of its next byte, [`Taker`], and two that only it
/// knows. They outlast a restart.
pub const TAIL: usize = 16;
pub const TAKER: usize = 20;
pub const RUN: usize = 24;
pub const NEXT: usize = 28;
/// Where the ring of a part begins. It goes to the end of the part. A place is an offset from here.
pub const RING: usize = 64;

/// The kernel waits so long for the process at the end of a run.
pub const GRACE: Nanos = Nanos::from_secs(10);

/// How far the kernel is, as the word at [`STATE`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum RunState {
    /// Nobody fills the ring: a simulator runs.
    Unused = 0,
    Running = 1,
    /// The last byte of the run is in the ring.
    Ended = 2,
}

/// How far the process is, as the word at [`TAKER`] of the first core. That of others is not looked
/// at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Taker {
    /// It takes lines, or has not started yet.
    Busy = 0,
    /// It takes nothing more.
    Done = 1,
}

/// Returns the bytes of the part that each of so many cores has in a segment of `bytes`. Words of
/// two cores are in no line of a cache together.
#[must_use]
#[inline(always)]
pub const fn part(bytes: u64, cores: u32) -> u64 {
    let cores = if cores == 0 { 1 } else { cores };
    (bytes / cores as u64) & !63
}

/// Returns the byte before text of a core, where several speak and another one spoke last. No text
/// has such bytes.
#[must_use]
#[inline(always)]
pub const fn mark(core: u8) -> u8 {
    0x80 | core
}

/// Returns what tells an image from others, by the checksums of the archives of its cores. That of
/// one core is the checksum of its archive.
pub fn image(checksums: impl IntoIterator<Item = u32>) -> u32 {
    checksums.into_iter().fold(0, |sum, checksum| sum.rotate_left(1) ^ checksum)
}

/// Returns how many bytes a ring of `room` bytes takes. One place stays free, so that a full ring
/// is not an empty one. A ring whose process names a place that is not there takes nothing.
#[must_use]
#[inline(always)]
pub const fn free(room: u32, head: u32, tail: u32) -> u32 {
    if tail >= room || head >= room {
        0
    } else if tail > head {
        tail - head - 1
    } else {
        room - 1 - (head - tail)
    }
}

/// Returns how many bytes wait in a ring of `room` bytes.
#[must_use]
pub const fn waiting(room: u32, head: u32, tail: u32) -> u32 {
    if tail >= room || head >= room {
        0
    } else if head >= tail {
        head - tail
    } else {
        room - (tail - head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_and_what_is_free_is_all_but_one_place() {
        for room in 1..9 {
            for (head, tail) in (0..room).flat_map(|head| (0..room).map(move |tail| (head, tail))) {
                assert_eq!(free(room, head, tail) + waiting(room, head, tail), room - 1);
            }
        }
    }

    #[test]
    fn parts_lie_apart_in_the_segment_and_have_room() {
        for bytes in [4096, 256 << 10, 1 << 30] {
            assert_eq!(part(bytes, 1), bytes);
            for cores in 0..=8 {
                let part = part(bytes, cores);
                assert!(part * u64::from(cores) <= bytes && part.is_multiple_of(64));
                assert!(part > RING as u64);
            }
        }
    }

    #[test]
    fn an_image_is_told_from_one_whose_cores_have_other_archives() {
        assert_eq!(image([7]), 7);
        assert_ne!(image([7, 9]), image([9, 7]));
        assert_ne!(image([7, 9]), image([7, 8]));
        assert_ne!(image([7, 7]), image([7]));
    }

    #[test]
    fn a_place_beyond_the_ring_takes_and_gives_nothing() {
        for (head, tail) in [(0, 8), (8, 0), (u32::MAX, 3), (3, u32::MAX)] {
            assert_eq!((free(8, head, tail), waiting(8, head, tail)), (0, 0));
        }
    }
}
