//! The commands of a disk that every driver uses, and what they answer.

use super::BLOCK;
use std::ops::Range;

const TEST_UNIT_READY: u8 = 0x00;
const REQUEST_SENSE: u8 = 0x03;
const INQUIRY: u8 = 0x12;
const MODE_SENSE: u8 = 0x1a;
const START_STOP: u8 = 0x1b;
const PREVENT_REMOVAL: u8 = 0x1e;
const READ_CAPACITY: u8 = 0x25;
const READ: u8 = 0x28;
const WRITE: u8 = 0x2a;
const SYNCHRONIZE: u8 = 0x35;

/// Why the last command failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sense {
    key: u8,
    code: u8,
}

const UNKNOWN_COMMAND: Sense = Sense { key: 5, code: 0x20 };
const BEYOND_THE_END: Sense = Sense { key: 5, code: 0x21 };
const BAD_FIELD: Sense = Sense { key: 5, code: 0x24 };

/// The data stage of a command.
#[derive(Clone, Debug, Default)]
pub(crate) enum Data {
    #[default]
    Nothing,
    /// These bytes, to the host.
    Reply(Vec<u8>),
    Read(Range<usize>),
    Write(Range<usize>),
}

impl Data {
    /// Returns how many bytes are transferred.
    pub fn len(&self) -> usize {
        match self {
            Data::Nothing => 0,
            Data::Reply(bytes) => bytes.len(),
            Data::Read(range) | Data::Write(range) => range.len(),
        }
    }

    /// Returns whether the data goes to the host.
    pub fn to_host(&self) -> bool {
        !matches!(self, Data::Write(_))
    }
}

/// Returns the action that a command requests of a disk of so many bytes.
///
/// # Errors
/// It failed; `sense` says why.
pub fn perform(command: &[u8; 16], bytes: usize, sense: &mut Sense) -> Result<Data, ()> {
    let last = std::mem::take(sense);
    let reply =
        |bytes: &[u8], most: u8| Ok(Data::Reply(bytes.iter().take(most.into()).copied().collect()));
    let outcome = match command[0] {
        TEST_UNIT_READY | START_STOP | PREVENT_REMOVAL | SYNCHRONIZE => Ok(Data::Nothing),
        REQUEST_SENSE => {
            let answer = [0x70, 0, last.key, 0, 0, 0, 0, 10, 0, 0, 0, 0, last.code, 0, 0, 0, 0, 0];
            reply(&answer, command[4])
        }
        INQUIRY if command[1] & 1 != 0 => Err(BAD_FIELD),
        INQUIRY => reply(b"\0\x80\x04\x02\x1f\0\0\0DiapasonMemory disk     1.0 ", command[4]),
        MODE_SENSE => reply(&[3, 0, 0, 0], command[4]),
        READ_CAPACITY => {
            let blocks = (bytes / BLOCK) as u32 - 1;
            let mut answer = blocks.to_be_bytes().to_vec();
            answer.extend((BLOCK as u32).to_be_bytes());
            Ok(Data::Reply(answer))
        }
        READ => range(command, bytes).map(Data::Read),
        WRITE => range(command, bytes).map(Data::Write),
        _ => Err(UNKNOWN_COMMAND),
    };
    outcome.map_err(|why| *sense = why)
}

/// The bytes that a read or write is about.
fn range(command: &[u8; 16], bytes: usize) -> Result<Range<usize>, Sense> {
    let [_, _, a, b, c, d, _, high, low, ..] = *command;
    let first = u32::from_be_bytes([a, b, c, d]) as usize * BLOCK;
    let length = usize::from(u16::from_be_bytes([high, low])) * BLOCK;
    let end = first + length;
    if end > bytes { Err(BEYOND_THE_END) } else { Ok(first..end) }
}
