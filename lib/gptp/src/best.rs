//! The choice of the grandmaster: the best of what the neighbours announce and of the node itself.

use crate::frame::PATH_MAX;
use crate::message::{Announce, ClockIdentity, PortIdentity, TimeProperties};
use crate::{GptpFault, GptpHeader};
use diapason_abi::Nanos;

/// The first priority of a node that never becomes the grandmaster.
pub const PRIORITY_FOLLOWER: u8 = 255;
/// Announces that came over so many clocks go in a circle.
const STEPS_MAX: u16 = 255;

/// How good a clock is as a grandmaster: the smaller is the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grandmaster {
    pub priority1: u8,
    pub class: u8,
    pub accuracy: u8,
    pub variance: u16,
    pub priority2: u8,
    pub identity: ClockIdentity,
}

impl Grandmaster {
    /// Returns a clock with this priority that knows no time but its own.
    #[must_use]
    pub const fn free(priority1: u8, identity: ClockIdentity) -> Grandmaster {
        let (class, accuracy, variance, priority2) = (248, 0xfe, 0xffff, 248);
        Grandmaster { priority1, class, accuracy, variance, priority2, identity }
    }
}

impl TimeProperties {
    /// The time of a clock that counts from when it likes.
    pub(crate) const FREE: TimeProperties =
        TimeProperties { flags: 0, utc_offset: 37, source: 0xa0 };
}

/// A grandmaster, and the way to it: the smaller is the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    pub grandmaster: Grandmaster,
    pub steps: u16,
    /// The port that announces it.
    pub source: PortIdentity,
}

/// The clocks on the way from a grandmaster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    clocks: [ClockIdentity; PATH_MAX],
    length: usize,
}

impl Path {
    /// Returns the way that ends at this clock after others.
    fn through(before: &[ClockIdentity], own: ClockIdentity) -> Option<Path> {
        let mut clocks = [[0; 8]; PATH_MAX];
        clocks.get_mut(..before.len())?.copy_from_slice(before);
        *clocks.get_mut(before.len())? = own;
        Some(Path { clocks, length: before.len() + 1 })
    }

    /// Returns the way that begins and ends here.
    pub fn own(own: ClockIdentity) -> Path {
        let mut clocks = [[0; 8]; PATH_MAX];
        clocks[0] = own;
        Path { clocks, length: 1 }
    }

    /// Returns the clocks on the way, the grandmaster first.
    pub fn clocks(&self) -> &[ClockIdentity] {
        self.clocks.get(..self.length).unwrap_or_default()
    }
}

/// The best announcement at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub rank: Rank,
    pub properties: TimeProperties,
    /// The way, with this node at its end.
    pub path: Path,
    /// The announcement counts until then.
    pub until: Nanos,
}

impl Record {
    /// Returns what an announcement says to the node `own`, until it is old.
    ///
    /// # Errors
    /// If the announcement comes from the node itself, or over too many others.
    pub fn of(
        header: &GptpHeader,
        announce: &Announce<'_>,
        own: ClockIdentity,
        until: Nanos,
    ) -> Result<Record, GptpFault> {
        let (grandmaster, steps) = (announce.grandmaster, announce.steps);
        let source = header.source;
        if source.clock == own || announce.path.contains(&own) || grandmaster.identity == own {
            return Err(GptpFault::Own);
        }
        let path = Path::through(announce.path, own).filter(|_| steps < STEPS_MAX);
        let path = path.ok_or(GptpFault::Path)?;
        let rank = Rank { grandmaster, steps, source };
        Ok(Record { rank, properties: announce.properties, path, until })
    }
}
