//! The numbers of CANlib: results, flags of messages and channels, bit rates.
//!
//! They are Kvaser's, so that a C program written for CANlib keeps its meaning. The C header
//! `canlib.h` has the same numbers, and a test compares both.

use crate::Id;
use crate::bus::Health;
use crate::fd::{AnyFrame, FD_BYTES_MAX, FdFrame, LENGTHS};
use crate::frame::{BYTES_MAX, CanFrame, extended, standard};

macro_rules! numbers {
    ($(#[$doc:meta])* $all:ident: $($name:ident = $value:literal,)*) => {
        $(pub const $name: i64 = $value;)*
        $(#[$doc])*
        pub const $all: &[(&str, i64)] = &[$((stringify!($name), $value),)*];
    };
}

numbers! {
    /// Results of calls, by the ends of their names in CANlib (`canERR_PARAM`).
    RESULTS:
    OK = 0,
    PARAM = -1,
    NOMSG = -2,
    NOTFOUND = -3,
    TIMEOUT = -7,
    NOTINITIALIZED = -8,
    INVHANDLE = -10,
    TXBUFOFL = -13,
    HARDWARE = -15,
    NOT_SUPPORTED = -19,
    INTERNAL = -30,
    NO_ACCESS = -31,
    NOT_IMPLEMENTED = -32,
}

numbers! {
    /// Flags of messages (`canMSG_RTR`). `SW_OVERRUN` is only in what is read.
    MESSAGE_FLAGS:
    RTR = 0x1,
    STD = 0x2,
    EXT = 0x4,
    SW_OVERRUN = 0x400,
}

numbers! {
    /// Flags of messages of CAN FD (`canFDMSG_FDF`). `ESI` is only in what is read.
    FD_FLAGS:
    FDF = 0x0001_0000,
    BRS = 0x0002_0000,
    ESI = 0x0004_0000,
}

numbers! {
    /// Flags of opening a channel (`canOPEN_EXCLUSIVE`).
    OPEN_FLAGS:
    EXCLUSIVE = 0x8,
    REQUIRE_EXTENDED = 0x10,
    ACCEPT_VIRTUAL = 0x20,
    REQUIRE_INIT_ACCESS = 0x80,
    NO_INIT_ACCESS = 0x100,
    CAN_FD = 0x400,
}

numbers! {
    /// Flags of the state of a channel (`canSTAT_BUS_OFF`).
    STATE_FLAGS:
    ERROR_PASSIVE = 0x1,
    BUS_OFF = 0x2,
    ERROR_WARNING = 0x4,
    ERROR_ACTIVE = 0x8,
    TX_PENDING = 0x10,
}

numbers! {
    /// Ways of taking part in a bus (`canDRIVER_SILENT`).
    DRIVERS:
    SILENT = 1,
    NORMAL = 4,
}

numbers! {
    /// Functions of `canIoCtl` (`canIOCTL_SET_TIMER_SCALE`).
    CONTROLS:
    SET_TIMER_SCALE = 6,
    FLUSH_RX_BUFFER = 10,
}

numbers! {
    /// Bit rates by number (`canBITRATE_500K`).
    BIT_RATES:
    BITRATE_1M = -1,
    BITRATE_500K = -2,
    BITRATE_250K = -3,
    BITRATE_125K = -4,
    BITRATE_100K = -5,
    BITRATE_62K = -6,
    BITRATE_50K = -7,
    BITRATE_83K = -8,
    BITRATE_10K = -9,
}

/// Segments of a bit that has eight parts, and of one that has sixteen.
const EIGHT: (u32, u32) = (5, 2);
const SIXTEEN: (u32, u32) = (11, 4);

/// Returns bits a second, and the sample point in tenths of a per cent, of CANlib's parameters.
/// `frequency` is the number of a bit rate, which has its own segments, or a bit rate. Segments
/// that are both zero have the usual sample point. `None` if they make no sense.
#[must_use]
pub fn bus_parameters(frequency: i64, segments: (u32, u32), usual: u16) -> Option<(u32, u16)> {
    let (rate, segments) = match frequency {
        BITRATE_1M => (1_000_000, EIGHT),
        BITRATE_500K => (500_000, EIGHT),
        BITRATE_250K => (250_000, EIGHT),
        BITRATE_125K => (125_000, SIXTEEN),
        BITRATE_100K => (100_000, SIXTEEN),
        BITRATE_62K => (62_500, SIXTEEN),
        BITRATE_50K => (50_000, SIXTEEN),
        BITRATE_83K => (83_333, EIGHT),
        BITRATE_10K => (10_000, SIXTEEN),
        _ => (u32::try_from(frequency).ok().filter(|rate| *rate > 0)?, segments),
    };
    match segments {
        (0, 0) => Some((rate, usual)),
        (before @ 1..=255, after @ 1..=255) => {
            let point = (1 + before) * 1_000 / (1 + before + after);
            Some((rate, u16::try_from(point).ok()?))
        }
        _ => None,
    }
}

/// Returns the frame of a message to be written. `data` is all that the caller has; a remote frame
/// takes none of it. A length code from 9 to 15 means eight bytes.
///
/// # Errors
/// The result that CANlib has for it.
pub fn frame(id: i64, data: &[u8], code: u32, flags: u32) -> Result<CanFrame, i64> {
    let flags = i64::from(flags);
    if flags & !(RTR | STD | EXT) != 0 {
        return Err(NOT_SUPPORTED);
    }
    let id = identifier(id, flags)?;
    if flags & RTR != 0 {
        return CanFrame::remote(id, code as usize).map_err(|_| PARAM);
    }
    let bytes = (code as usize).min(BYTES_MAX);
    let frame = CanFrame::data(id, data.get(..bytes).ok_or(PARAM)?).map_err(|_| PARAM)?;
    frame.with_code(u8::try_from(code).map_err(|_| PARAM)?).map_err(|_| PARAM)
}

/// Returns the identifier of a message with these flags.
fn identifier(id: i64, flags: i64) -> Result<Id, i64> {
    let raw = u32::try_from(id).map_err(|_| PARAM)?;
    let id = match flags & (STD | EXT) {
        EXT => extended(raw),
        0 | STD => standard(raw),
        _ => return Err(PARAM),
    };
    id.map_err(|_| PARAM)
}

/// Returns the frame of a message to be written on a channel with CAN FD. With `FDF` the message is
/// one of CAN FD. `length` counts bytes then, and the data is padded with zeros to the next length
/// that there is.
///
/// # Errors
/// The result that CANlib has for it.
pub fn any_frame(id: i64, data: &[u8], length: u32, flags: u32) -> Result<AnyFrame, i64> {
    let flags = i64::from(flags);
    if flags & FDF == 0 {
        return frame(id, data, length, flags as u32).map(AnyFrame::Classic);
    }
    if flags & !(STD | EXT | FDF | BRS) != 0 {
        return Err(NOT_SUPPORTED);
    }
    let id = identifier(id, flags)?;
    let data = data.get(..length as usize).ok_or(PARAM)?;
    let fits = |(bytes, _): &&(u32, u32)| *bytes as usize >= data.len();
    let (whole, _) = LENGTHS.iter().find(fits).ok_or(PARAM)?;
    let mut padded = [0; FD_BYTES_MAX as usize];
    padded.get_mut(..data.len()).ok_or(PARAM)?.copy_from_slice(data);
    let padded = padded.get(..*whole as usize).ok_or(PARAM)?;
    let frame = FdFrame::new(id, padded).map_err(|_| PARAM)?;
    Ok(frame.with_fast(flags & BRS != 0).into())
}

/// Returns the flags of a message of any format that was read.
#[must_use]
pub fn any_flags(frame: &AnyFrame, lost: bool) -> u32 {
    let fd = match frame {
        AnyFrame::Classic(frame) => return flags(frame, lost),
        AnyFrame::Fd(frame) => frame,
    };
    let flag = |set: bool, flag: i64| if set { flag } else { 0 };
    let format = if frame.is_extended() { EXT } else { STD };
    let further = flag(fd.is_fast(), BRS) | flag(fd.is_passive(), ESI) | flag(lost, SW_OVERRUN);
    (FDF | format | further) as u32
}

/// Returns the flags of a message that was read. `lost` says that others before it were lost.
#[must_use]
pub fn flags(frame: &CanFrame, lost: bool) -> u32 {
    let format = if frame.is_extended() { EXT } else { STD };
    let remote = if frame.is_remote() { RTR } else { 0 };
    let lost = if lost { SW_OVERRUN } else { 0 };
    (format | remote | lost) as u32
}

/// Returns the flags of a channel's state.
#[must_use]
pub fn state(health: Health, pending: bool) -> u64 {
    let health = match health {
        Health::ErrorActive => ERROR_ACTIVE,
        Health::Warning => ERROR_ACTIVE | ERROR_WARNING,
        Health::ErrorPassive => ERROR_PASSIVE,
        Health::BusOff => BUS_OFF,
    };
    (health | if pending { TX_PENDING } else { 0 }) as u64
}

/// Returns what a result means, in words.
#[must_use]
pub fn text(result: i64) -> &'static str {
    match result {
        OK => "no error",
        PARAM => "an argument makes no sense",
        NOMSG => "no message has come",
        NOTFOUND => "there is no such channel",
        TIMEOUT => "the time is up",
        NOTINITIALIZED => "the channel takes no part in its bus",
        INVHANDLE => "no channel is open under this handle",
        TXBUFOFL => "the pipe to the channel is full",
        HARDWARE => "the controller went bus-off, or frames were given up",
        NOT_SUPPORTED => "the interface does not support this",
        INTERNAL => "the memory shared with the server makes no sense",
        NO_ACCESS => "the channel only listens, or another thread uses it",
        NOT_IMPLEMENTED => "this library does not have this function",
        _ => "unknown result",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn bit_rates_have_their_usual_sample_points() {
        assert_eq!(bus_parameters(BITRATE_500K, (0, 0), 875), Some((500_000, 750)));
        assert_eq!(bus_parameters(BITRATE_125K, (9, 9), 875), Some((125_000, 750)));
        assert_eq!(bus_parameters(500_000, (0, 0), 875), Some((500_000, 875)));
        assert_eq!(bus_parameters(500_000, (13, 2), 1), Some((500_000, 875)));
        for (frequency, segments) in
            [(0, (1, 1)), (-99, (1, 1)), (1 << 40, (1, 1)), (1, (0, 1)), (1, (u32::MAX, u32::MAX))]
        {
            assert_eq!(bus_parameters(frequency, segments, 875), None);
        }
        for (_, number) in BIT_RATES {
            assert!(bus_parameters(*number, (0, 0), 875).is_some());
        }
    }

    #[test]
    fn frames_come_from_arguments_and_go_back_to_flags() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        for (id, code, flags_in) in [
            (0x7ff, 3, STD),
            (0x1fff_ffff, 8, EXT),
            (0x12, 0, STD | RTR),
            (0x12, 15, EXT | RTR),
            (0x12, 12, STD),
        ] {
            let frame = frame(id, &bytes, code, flags_in as u32).unwrap();
            assert_eq!((i64::from(frame.raw_id()), u32::from(frame.code())), (id, code));
            assert_eq!(i64::from(flags(&frame, false)), flags_in);
            assert_eq!(i64::from(flags(&frame, true)), flags_in | SW_OVERRUN);
        }
        assert!(!frame(0x12, &bytes, 1, 0).unwrap().is_extended());
    }

    #[test]
    fn arguments_that_make_no_sense_are_refused() {
        let eight = [0; 8];
        for (id, code, flags, result) in [
            (0x800, 0, STD, PARAM),
            (-1, 0, STD, PARAM),
            (0x2000_0000, 0, EXT, PARAM),
            (1, 16, STD, PARAM),
            (1, 16, STD | RTR, PARAM),
            (1, 0, STD | EXT, PARAM),
            (1, 0, 0x10000, NOT_SUPPORTED),
        ] {
            assert_eq!(frame(id, &eight, code, flags as u32), Err(result), "{id} {code} {flags}");
        }
        assert_eq!(frame(1, &[], 1, 0), Err(PARAM), "no data");
        assert!(frame(1, &[], 4, RTR as u32).is_ok(), "a remote frame has none");
    }

    #[test]
    fn messages_of_can_fd_come_from_arguments_and_go_back_to_flags() {
        let bytes: Vec<u8> = (1..=64).collect();
        for (id, length, flags) in
            [(0x7ff, 64, STD | FDF | BRS), (0x1fff_ffff, 12, EXT | FDF), (5, 0, STD | FDF | BRS)]
        {
            let frame = any_frame(id, &bytes, length, flags as u32).unwrap();
            assert_eq!((i64::from(frame.raw_id()), frame.bytes()), (id, &bytes[..length as usize]));
            assert_eq!(i64::from(any_flags(&frame, false)), flags);
            assert_eq!(i64::from(any_flags(&frame, true)), flags | SW_OVERRUN);
        }
        let padded = any_frame(1, &bytes, 9, (FDF | BRS) as u32).unwrap();
        assert_eq!(padded.bytes(), [&bytes[..9], &[0; 3]].concat());
        let classic = any_frame(1, &bytes, 8, STD as u32).unwrap();
        assert_eq!((classic.is_fd(), any_flags(&classic, false)), (false, STD as u32));
        for (id, length, flags, result) in [
            (1, 65, FDF, PARAM),
            (0x800, 0, FDF | STD, PARAM),
            (1, 0, FDF | STD | EXT, PARAM),
            (1, 0, FDF | RTR, NOT_SUPPORTED),
            (1, 0, FDF | ESI, NOT_SUPPORTED),
            (1, 0, BRS, NOT_SUPPORTED),
        ] {
            assert_eq!(any_frame(id, &[0; 65], length, flags as u32), Err(result), "{flags:x}");
        }
        assert_eq!(any_frame(1, &[], 1, FDF as u32), Err(PARAM), "no data");
    }

    #[test]
    fn every_result_has_words_of_its_own() {
        for (name, result) in RESULTS {
            let words = text(*result);
            let same = RESULTS.iter().filter(|(_, other)| text(*other) == words).count();
            assert!(same == 1 && words != text(1), "{name}");
        }
    }
}
