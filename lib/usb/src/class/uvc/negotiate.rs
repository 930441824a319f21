//! Modes of a camera, and the block in which host and camera agree on one.

use super::STREAMING;
use crate::descriptor::{Configuration, Raw};
use crate::setup::descriptor_type::CLASS_INTERFACE;
use diapason_abi::Nanos;

/// Bytes of the longest block.
pub(super) const BLOCK_MAX: usize = 48;
/// Largest frame that is believed: 8 K in 16 bits per pixel.
const FRAME_MAX: u32 = 7680 * 4320 * 2;
/// Subtypes of what a streaming interface holds.
const FORMAT_UNCOMPRESSED: u8 = 4;
const FRAME_UNCOMPRESSED: u8 = 5;
const FORMAT_MJPEG: u8 = 6;
const FRAME_MJPEG: u8 = 7;
/// Subtype of the header of the control interface.
const HEADER: u8 = 1;

/// A format that a camera can send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mode {
    /// Number of the format.
    pub format: u8,
    /// Number of the frame within the format.
    pub frame: u8,
    /// Pixels in a line.
    pub width: u16,
    pub height: u16,
    /// Time of a frame, in units of 100 ns.
    pub interval: u32,
    /// Most bytes of a frame.
    pub bytes: u32,
    /// Frames differ in length.
    pub compressed: bool,
}

/// Returns the modes of the first camera of a configuration, each at its usual rate.
pub fn modes<'a>(configuration: &Configuration<'a>) -> impl Iterator<Item = Mode> + use<'a> {
    let streaming = configuration.interfaces().find(|i| i.class[..2] == STREAMING);
    let extras = streaming.into_iter().flat_map(|interface| interface.extras());
    let mut format = None;
    extras.filter(|raw| raw.kind() == CLASS_INTERFACE).filter_map(move |raw| {
        let compressed = match raw.byte(2) {
            FORMAT_UNCOMPRESSED | FORMAT_MJPEG => {
                format = Some((raw.byte(3), raw.byte(2)));
                return None;
            }
            FRAME_UNCOMPRESSED => false,
            FRAME_MJPEG => true,
            _ => return None,
        };
        let (number, kind) = format?;
        let belongs = raw.byte(2) == kind + 1 && raw.bytes.len() >= 26;
        belongs.then(|| mode(&raw, number, compressed))
    })
}

impl Mode {
    /// Returns the largest frames of the first camera of a configuration that have at most so many
    /// bytes, asked for once in a period.
    #[must_use]
    pub fn fitting(set: &Configuration<'_>, bytes: usize, period: Nanos) -> Option<Mode> {
        let fits = |mode: &Mode| mode.bytes > 0 && mode.bytes as usize <= bytes;
        let larger = |best: Mode, mode: Mode| if mode.bytes > best.bytes { mode } else { best };
        let mode = modes(set).filter(fits).reduce(larger)?;
        let interval = u32::try_from(period.0 / 100).unwrap_or(u32::MAX).max(1);
        Some(Mode { interval, ..mode })
    }

    /// Returns the bytes that its camera needs in an interval of 125 us, at its usual rate.
    #[must_use]
    pub fn interval_bytes(&self) -> u64 {
        let intervals = u64::from(self.interval).max(TICKS) / TICKS;
        u64::from(self.bytes).div_ceil(intervals) + HEAD
    }
}

/// The interval of a bus in units of 100 ns, and bytes before the content of each.
const TICKS: u64 = 1_250;
const HEAD: u64 = 12;

fn mode(raw: &Raw<'_>, format: u8, compressed: bool) -> Mode {
    Mode {
        format,
        frame: raw.byte(3),
        width: raw.half(5),
        height: raw.half(7),
        interval: raw.word(21),
        bytes: raw.word(17),
        compressed,
    }
}

/// Bytes of the block, by the version that the control interface names.
pub(super) fn block_bytes(configuration: &Configuration<'_>) -> usize {
    let mut controls = configuration.interfaces().filter(|i| i.class[..2] == [14, 1]);
    let header = controls.find_map(|interface| {
        interface.extras().find(|raw| (raw.kind(), raw.byte(2)) == (CLASS_INTERFACE, HEADER))
    });
    match header.map_or(0x100, |raw| raw.half(3)) {
        0..0x110 => 26,
        0x110..0x150 => 34,
        _ => BLOCK_MAX,
    }
}

/// The block of numbers that host and camera negotiate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Block(pub [u8; BLOCK_MAX]);

impl Block {
    /// Returns the host's wish: this mode, at its frame interval.
    pub(super) fn new(mode: &Mode) -> Block {
        let mut block = [0; BLOCK_MAX];
        // The hint: keep the frame interval, give way in everything else.
        block[0] = 1;
        block[2] = mode.format;
        block[3] = mode.frame;
        block[4..8].copy_from_slice(&mode.interval.to_le_bytes());
        Block(block)
    }

    /// Returns the camera's answer, if it is an answer to the wish and can be.
    pub(super) fn decode(bytes: &[u8], mode: &Mode) -> Option<Block> {
        let mut block = Block([0; BLOCK_MAX]);
        let count = bytes.len().min(BLOCK_MAX);
        block.0[..count].copy_from_slice(&bytes[..count]);
        let same = [block.0[2], block.0[3]] == [mode.format, mode.frame];
        let sane = count >= 26 && (1..=FRAME_MAX).contains(&block.frame()) && block.payload() > 0;
        (same && sane).then_some(block)
    }

    fn word(&self, at: usize) -> u32 {
        self.0[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    /// Time from one frame to the next.
    pub(super) fn frame_time(&self) -> Nanos {
        Nanos(u64::from(self.word(4)) * 100)
    }

    /// Returns the ticks of the camera's clock in a second; zero if it does not say.
    pub(super) fn clock(&self) -> u32 {
        self.word(26)
    }

    /// Returns the most bytes of a frame.
    pub(super) fn frame(&self) -> u32 {
        self.word(18)
    }

    /// Returns the most bytes of an interval.
    pub(super) fn payload(&self) -> u32 {
        self.word(22)
    }
}
