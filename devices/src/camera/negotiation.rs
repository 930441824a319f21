//! How host and camera agree on a format: probe until both are content, then commit.

use super::about::{ALTERNATES, FRAMES, FrameFormat};
use super::{HEADER, INTERVAL};
use crate::device::Stall;
use crate::standard::reply;
use diapason_abi::Nanos;
use diapason_usb::Setup;

const SET_CURRENT: u8 = 0x01;
const GET_CURRENT: u8 = 0x81;
const GET_MIN: u8 = 0x82;
const GET_MAX: u8 = 0x83;
const GET_LENGTH: u8 = 0x85;
const GET_INFO: u8 = 0x86;
const GET_DEFAULT: u8 = 0x87;
const PROBE: u16 = 1 << 8;
const COMMIT: u16 = 2 << 8;
const TO_INTERFACE: u8 = 0x21;
const FROM_INTERFACE: u8 = 0xa1;
const STREAMING: u16 = 1;
/// Bytes of the block: of UVC 1.1, and the least of it that says something.
const BLOCK: usize = 34;
const LEAST: usize = 8;
/// A value that can be read and written.
const GET_AND_SET: u8 = 0b11;
const CLOCK: u32 = 48_000_000;

/// A format and how often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamSettings {
    frame: usize,
    interval: u32,
}

impl Default for StreamSettings {
    fn default() -> StreamSettings {
        StreamSettings { frame: 0, interval: FRAMES[0].intervals[0] }
    }
}

impl StreamSettings {
    /// Returns the nearest settings that the camera can do for a block.
    fn of(block: &[u8]) -> Option<StreamSettings> {
        let [_, _, _, frame, a, b, c, d] = *block.first_chunk::<LEAST>()?;
        let frame = usize::from(frame).clamp(1, FRAMES.len()) - 1;
        let wanted = u32::from_le_bytes([a, b, c, d]);
        let intervals = FRAMES.get(frame)?.intervals;
        let interval = intervals.into_iter().min_by_key(|known| known.abs_diff(wanted))?;
        Some(StreamSettings { frame, interval })
    }

    /// Returns the format of the picture.
    #[must_use]
    pub fn format(&self) -> FrameFormat {
        FRAMES.get(self.frame).copied().unwrap_or(FRAMES[0])
    }

    /// From one frame to the next.
    #[must_use]
    pub fn period(&self) -> Nanos {
        Nanos(u64::from(self.interval) * 100)
    }

    /// Bytes of an interval with its header: those of the smallest alternate setting that is
    /// enough, or of the largest.
    #[must_use]
    pub fn payload(&self) -> usize {
        let intervals = (self.period().0 / INTERVAL.0).max(1) as usize;
        let needed = self.format().bytes().div_ceil(intervals) + HEADER;
        let mut sizes = ALTERNATES.iter().map(|bursts| bursts.bytes());
        let enough = sizes.clone().find(|bytes| *bytes >= needed);
        enough.or(sizes.next_back()).unwrap_or(0)
    }

    fn block(&self) -> Vec<u8> {
        let mut block = vec![0; BLOCK];
        (block[2], block[3]) = (1, self.frame as u8 + 1);
        block[4..8].copy_from_slice(&self.interval.to_le_bytes());
        block[18..22].copy_from_slice(&(self.format().bytes() as u32).to_le_bytes());
        block[22..26].copy_from_slice(&(self.payload() as u32).to_le_bytes());
        block[26..30].copy_from_slice(&CLOCK.to_le_bytes());
        block
    }
}

/// The two ends of the negotiation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Negotiation {
    probed: StreamSettings,
    committed: StreamSettings,
}

impl Negotiation {
    /// Returns the settings that the host has committed to.
    pub fn committed(&self) -> StreamSettings {
        self.committed
    }

    /// Answers a request to probe or to commit, and stalls any other.
    pub fn control(&mut self, setup: Setup, data: &[u8]) -> Result<Vec<u8>, Stall> {
        let current = match (setup.index, setup.value) {
            (STREAMING, PROBE) => &mut self.probed,
            (STREAMING, COMMIT) => &mut self.committed,
            _ => return Err(Stall),
        };
        let interval = |frame: usize| FRAMES.get(frame).map_or(0, |f| f.intervals[0]);
        let last = FRAMES.len() - 1;
        let answer = match (setup.kind, setup.request) {
            (TO_INTERFACE, SET_CURRENT) => {
                *current = StreamSettings::of(data).ok_or(Stall)?;
                return Ok(Vec::new());
            }
            (FROM_INTERFACE, GET_CURRENT) => current.block(),
            (FROM_INTERFACE, GET_MIN) => {
                StreamSettings { frame: last, interval: interval(last) }.block()
            }
            (FROM_INTERFACE, GET_MAX | GET_DEFAULT) => StreamSettings::default().block(),
            (FROM_INTERFACE, GET_LENGTH) => (BLOCK as u16).to_le_bytes().into(),
            (FROM_INTERFACE, GET_INFO) => vec![GET_AND_SET],
            _ => return Err(Stall),
        };
        reply(setup, answer)
    }
}
