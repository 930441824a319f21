//! A keyboard: keys that go down and come up.

use diapason_abi::Errno;
pub use diapason_contract::keyboard::*;
use diapason_pipe::Reader;
use diapason_rt::pipe;
use diapason_rt::sync::Semaphore;

/// The client's end of a keyboard.
pub type Inlet = Reader<'static, Key, RECORDS>;

/// The client's end, and what it takes before it looks.
///
/// # Errors
/// None for what the description grants.
pub fn inlet() -> Result<(Inlet, Semaphore), Errno> {
    Ok((pipe::reader(KEYS)?, Semaphore::open(READY)?))
}
