//! A sensor on a serial line: what it sends, packet by packet.

use diapason_abi::Errno;
pub use diapason_contract::sensor::*;
use diapason_pipe::Reader;
use diapason_rt::pipe;
use diapason_rt::sync::Semaphore;

/// The client's end of a sensor.
pub type Inlet = Reader<'static, Packet, RECORDS>;

/// The client's end, and what it takes before it looks.
///
/// # Errors
/// None for what the description grants.
pub fn inlet() -> Result<(Inlet, Semaphore), Errno> {
    Ok((pipe::reader(PACKETS)?, Semaphore::open(READY)?))
}
