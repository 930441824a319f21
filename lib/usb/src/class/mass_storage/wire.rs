//! The blocks of the bulk-only transport, and the SCSI commands in them.

/// Bytes of a command block.
pub const COMMAND_BYTES: usize = 31;
/// Bytes of a status block.
pub const STATUS_BYTES: usize = 13;
const COMMAND_SIGNATURE: [u8; 4] = *b"USBC";
const STATUS_SIGNATURE: [u8; 4] = *b"USBS";
const INQUIRY_BYTES: u8 = 36;
const SENSE_BYTES: u8 = 18;

/// A command to a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScsiCommand {
    /// Asks for the identity of the device.
    Inquiry,
    /// Asks whether the medium can be used.
    TestUnitReady,
    /// Asks for the size of the medium.
    ReadCapacity,
    /// Asks why the last command failed.
    RequestSense,
    /// Blocks from the medium.
    Read { block: u32, count: u16 },
    /// Blocks to the medium.
    Write { block: u32, count: u16 },
}

impl ScsiCommand {
    pub(super) const fn is_out(self) -> bool {
        matches!(self, ScsiCommand::Write { .. })
    }

    /// Bytes of its data, with blocks of this size.
    pub(super) fn length(self, block: usize) -> usize {
        match self {
            ScsiCommand::Inquiry => INQUIRY_BYTES.into(),
            ScsiCommand::TestUnitReady => 0,
            ScsiCommand::ReadCapacity => 8,
            ScsiCommand::RequestSense => SENSE_BYTES.into(),
            ScsiCommand::Read { count, .. } | ScsiCommand::Write { count, .. } => {
                block.saturating_mul(count.into())
            }
        }
    }

    fn scsi(self) -> ([u8; 10], u8) {
        let ten = |operation, block: u32, count: u16| {
            let ([b0, b1, b2, b3], [c0, c1]) = (block.to_be_bytes(), count.to_be_bytes());
            ([operation, 0, b0, b1, b2, b3, 0, c0, c1, 0], 10)
        };
        let six = |operation, length| ([operation, 0, 0, 0, length, 0, 0, 0, 0, 0], 6);
        match self {
            ScsiCommand::Inquiry => six(0x12, INQUIRY_BYTES),
            ScsiCommand::TestUnitReady => six(0x00, 0),
            ScsiCommand::ReadCapacity => ten(0x25, 0, 0),
            ScsiCommand::RequestSense => six(0x03, SENSE_BYTES),
            ScsiCommand::Read { block, count } => ten(0x28, block, count),
            ScsiCommand::Write { block, count } => ten(0x2a, block, count),
        }
    }

    /// Returns its block, with `length` bytes of data.
    pub(super) fn encode(self, tag: u32, length: usize) -> [u8; COMMAND_BYTES] {
        let (scsi, count) = self.scsi();
        let mut block = [0; COMMAND_BYTES];
        block[..4].copy_from_slice(&COMMAND_SIGNATURE);
        block[4..8].copy_from_slice(&tag.to_le_bytes());
        block[8..12].copy_from_slice(&(length as u32).to_le_bytes());
        block[12] = if self.is_out() || length == 0 { 0 } else { 0x80 };
        block[14] = count;
        block[15..25].copy_from_slice(&scsi);
        block
    }
}

/// How the device says a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Status {
    Good,
    Failed,
    /// The device does not know where it is.
    Phase,
}

/// Returns a status block for the command with this tag: how it ended, and how much data did not
/// move. `None` if it is none.
pub(super) fn status(bytes: &[u8], tag: u32, length: usize) -> Option<(Status, usize)> {
    let bytes: &[u8; STATUS_BYTES] = bytes.try_into().ok()?;
    let [s0, s1, s2, s3, t0, t1, t2, t3, r0, r1, r2, r3, status] = *bytes;
    if [s0, s1, s2, s3] != STATUS_SIGNATURE || u32::from_le_bytes([t0, t1, t2, t3]) != tag {
        return None;
    }
    let residue = usize::try_from(u32::from_le_bytes([r0, r1, r2, r3])).ok()?;
    match status {
        0 if residue <= length => Some((Status::Good, residue)),
        1 => Some((Status::Failed, residue.min(length))),
        2 => Some((Status::Phase, 0)),
        _ => None,
    }
}

/// The identity of the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inquiry {
    /// 0 is a disk.
    pub kind: u8,
    /// The medium can be taken out.
    pub removable: bool,
    /// The vendor, padded with spaces.
    pub vendor: [u8; 8],
    /// The product, padded with spaces.
    pub product: [u8; 16],
}

impl Inquiry {
    pub(super) fn decode(bytes: &[u8]) -> Option<Inquiry> {
        Some(Inquiry {
            kind: bytes.first()? & 0x1f,
            removable: bytes.get(1)? & 0x80 != 0,
            vendor: bytes.get(8..16)?.try_into().ok()?,
            product: bytes.get(16..32)?.try_into().ok()?,
        })
    }
}

/// How large the medium is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capacity {
    pub blocks: u64,
    /// Bytes of each: a power of two from 512.
    pub block_bytes: u32,
}

impl Capacity {
    pub(super) fn decode(bytes: &[u8]) -> Option<Capacity> {
        let last = u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?);
        let block_bytes = u32::from_be_bytes(bytes.get(4..8)?.try_into().ok()?);
        let possible = block_bytes >= 512 && block_bytes.is_power_of_two();
        possible.then_some(Capacity { blocks: u64::from(last) + 1, block_bytes })
    }
}

/// Why a command failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sense {
    /// The kind of trouble: 2 not ready, 3 medium, 5 illegal request, 6 state changed.
    pub key: u8,
    pub code: u8,
    pub qualifier: u8,
}

impl Sense {
    pub(super) fn decode(bytes: &[u8]) -> Option<Sense> {
        let (key, code, qualifier) = (*bytes.get(2)? & 0xf, *bytes.get(12)?, *bytes.get(13)?);
        Some(Sense { key, code, qualifier })
    }
}
