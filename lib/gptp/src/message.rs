//! The messages of gPTP, read at fixed offsets.
//!
//! Every number is big-endian. A frame may be longer than its message: adapters pad. Fields that
//! gPTP tells receivers to ignore are ignored, and no field is believed to be within its limits.

use crate::GptpFault;
use diapason_abi::Nanos;

/// The type of a frame with such a message.
pub const ETHERTYPE: u16 = 0x88f7;

/// The name of a clock (EUI-64).
pub type ClockIdentity = [u8; 8];

/// The bytes of the header that all messages have.
const HEADER: usize = 34;
/// gPTP among the profiles of IEEE 1588, in the upper half of the first byte.
const PROFILE: u8 = 1;
const VERSION: u8 = 2;
/// The flag of messages whose time comes in the next one.
const TWO_STEP: u8 = 2;
/// Fractions of a nanosecond in a correction.
const FRACTIONS: i64 = 1 << 16;
/// The largest correction: nobody holds a message for so long.
const CORRECTION_MAX: i64 = 1_000_000_000;
const BILLION: u64 = 1_000_000_000;

/// The lower half of a message's first byte.
pub(crate) mod kind {
    pub const SYNC: u8 = 0x0;
    pub const PDELAY_REQ: u8 = 0x2;
    pub const PDELAY_RESP: u8 = 0x3;
    pub const FOLLOW_UP: u8 = 0x8;
    pub const PDELAY_RESP_FOLLOW_UP: u8 = 0xa;
    pub const ANNOUNCE: u8 = 0xb;
}

/// The type of the field that says whom an Announce passed.
pub(crate) const TLV_PATH: u16 = 8;

/// A port of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortIdentity {
    pub clock: ClockIdentity,
    pub port: u16,
}

/// The fields that all messages have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GptpHeader {
    pub source: PortIdentity,
    pub sequence: u16,
    /// Nanoseconds to add to the time of the message. Fractions of a nanosecond are cut off.
    pub correction_ns: i64,
    /// The interval of these messages, as a power of two in seconds.
    pub log_interval: i8,
}

/// The fields of an Announce about the kind of time. Nodes pass it on and do not use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeProperties {
    /// The second byte of the flags.
    pub flags: u8,
    /// Seconds between TAI and UTC.
    pub utc_offset: i16,
    pub source: u8,
}

/// One clock's claim about the grandmaster that it follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announce<'a> {
    pub grandmaster: crate::Grandmaster,
    pub steps: u16,
    pub properties: TimeProperties,
    /// The clocks on the way, the grandmaster first.
    pub path: &'a [ClockIdentity],
}

/// The part of a message after its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GptpBody<'a> {
    Sync,
    FollowUp {
        /// The grandmaster's time, to which the correction is added.
        origin: Nanos,
    },
    PdelayReq,
    PdelayResp {
        received: Nanos,
        requester: PortIdentity,
    },
    PdelayRespFollowUp {
        sent: Nanos,
        requester: PortIdentity,
    },
    Announce(Announce<'a>),
}

/// One message of gPTP, whose numbers are within the limits of their fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GptpMessage<'a> {
    pub header: GptpHeader,
    pub body: GptpBody<'a>,
}

/// Returns `N` bytes at an offset.
fn take<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], GptpFault> {
    let taken = bytes.get(at..).and_then(|rest| rest.first_chunk());
    taken.copied().ok_or(GptpFault::Short)
}

fn port_identity(bytes: &[u8], at: usize) -> Result<PortIdentity, GptpFault> {
    Ok(PortIdentity { clock: take(bytes, at)?, port: u16::from_be_bytes(take(bytes, at + 8)?) })
}

/// Returns the time at an offset: six bytes of seconds, and four of nanoseconds.
fn timestamp(bytes: &[u8], at: usize) -> Result<Nanos, GptpFault> {
    let [high, low]: [u8; 2] = take(bytes, at)?;
    let seconds = u64::from_be_bytes([0, 0, high, low, 0, 0, 0, 0])
        | u64::from(u32::from_be_bytes(take(bytes, at + 2)?));
    let within = u64::from(u32::from_be_bytes(take(bytes, at + 6)?));
    if within >= BILLION {
        return Err(GptpFault::Timestamp);
    }
    let time = seconds.checked_mul(BILLION).and_then(|time| time.checked_add(within));
    time.map(Nanos).ok_or(GptpFault::Timestamp)
}

/// Returns the path in an Announce's fields, or none. They follow each other to the end.
fn path(mut fields: &[u8]) -> Result<&[ClockIdentity], GptpFault> {
    let mut path: &[ClockIdentity] = &[];
    while !fields.is_empty() {
        let field = u16::from_be_bytes(take(fields, 0).map_err(|_| GptpFault::Tlv)?);
        let bytes = u16::from_be_bytes(take(fields, 2).map_err(|_| GptpFault::Tlv)?);
        let (value, rest) =
            fields[4..].split_at_checked(usize::from(bytes)).ok_or(GptpFault::Tlv)?;
        if field == TLV_PATH {
            let (clocks, odd) = value.as_chunks();
            if !odd.is_empty() {
                return Err(GptpFault::Tlv);
            }
            path = clocks;
        }
        fields = rest;
    }
    Ok(path)
}

/// Returns the announcement in a message.
fn announce(bytes: &[u8]) -> Result<Announce<'_>, GptpFault> {
    let [priority1, class, accuracy]: [u8; 3] = take(bytes, 47)?;
    let [priority2]: [u8; 1] = take(bytes, 52)?;
    let grandmaster = crate::Grandmaster {
        priority1,
        class,
        accuracy,
        variance: u16::from_be_bytes(take(bytes, 50)?),
        priority2,
        identity: take(bytes, 53)?,
    };
    let [source]: [u8; 1] = take(bytes, 63)?;
    let [flags]: [u8; 1] = take(bytes, 7)?;
    let utc_offset = i16::from_be_bytes(take(bytes, 44)?);
    Ok(Announce {
        grandmaster,
        steps: u16::from_be_bytes(take(bytes, 61)?),
        properties: TimeProperties { flags, utc_offset, source },
        path: path(&bytes[64..])?,
    })
}

impl GptpMessage<'_> {
    /// Reads what follows the type of a frame.
    ///
    /// # Errors
    /// The first fault of the message, if it has one.
    pub fn read(bytes: &[u8]) -> Result<GptpMessage<'_>, GptpFault> {
        let [first, version]: [u8; 2] = take(bytes, 0)?;
        if first >> 4 != PROFILE {
            return Err(GptpFault::Profile);
        }
        if version & 15 != VERSION {
            return Err(GptpFault::Version);
        }
        let length = usize::from(u16::from_be_bytes(take(bytes, 2)?));
        let bytes = bytes.get(..length).ok_or(GptpFault::Short)?;
        let [domain, _, flags]: [u8; 3] = take(bytes, 4).map_err(|_| GptpFault::Length)?;
        if domain != 0 {
            return Err(GptpFault::Domain);
        }
        GptpMessage::of(bytes, first & 15, flags).map_err(|fault| match fault {
            GptpFault::Short => GptpFault::Length,
            other => other,
        })
    }

    fn of(bytes: &[u8], kind: u8, flags: u8) -> Result<GptpMessage<'_>, GptpFault> {
        let [log_interval]: [u8; 1] = take(bytes, 33)?;
        let header = GptpHeader {
            source: port_identity(bytes, 20)?,
            sequence: u16::from_be_bytes(take(bytes, 30)?),
            correction_ns: i64::from_be_bytes(take(bytes, 8)?).div_euclid(FRACTIONS),
            log_interval: log_interval.cast_signed(),
        };
        if matches!(kind, kind::SYNC | kind::PDELAY_RESP) && flags & TWO_STEP == 0 {
            return Err(GptpFault::OneStep);
        }
        let body = match kind {
            kind::SYNC => timestamp(bytes, HEADER).map(|_| GptpBody::Sync)?,
            kind::FOLLOW_UP => GptpBody::FollowUp { origin: timestamp(bytes, HEADER)? },
            kind::PDELAY_REQ => take::<20>(bytes, HEADER).map(|_| GptpBody::PdelayReq)?,
            kind::PDELAY_RESP => GptpBody::PdelayResp {
                received: timestamp(bytes, HEADER)?,
                requester: port_identity(bytes, HEADER + 10)?,
            },
            kind::PDELAY_RESP_FOLLOW_UP => GptpBody::PdelayRespFollowUp {
                sent: timestamp(bytes, HEADER)?,
                requester: port_identity(bytes, HEADER + 10)?,
            },
            kind::ANNOUNCE => GptpBody::Announce(announce(bytes)?),
            _ => return Err(GptpFault::Kind),
        };
        if header.correction_ns.unsigned_abs() > CORRECTION_MAX.unsigned_abs() {
            return Err(GptpFault::Correction);
        }
        Ok(GptpMessage { header, body })
    }
}
