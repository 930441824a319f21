//! When a bottom half was where, activation by activation: what the way of a transfer through the
//! server costs. The server tells it only if its description asks for it.

use diapason_abi::Errno;
pub use diapason_contract::times::*;
use diapason_pipe::{Reader, Writer};
use diapason_rt::pipe;

/// The server's end of the times.
pub type Outlet = Writer<'static, Times, RECORDS>;
/// The reader's end of the times.
pub type Inlet = Reader<'static, Times, RECORDS>;

/// Returns the server's end.
///
/// # Errors
/// None for what the description grants.
pub fn outlet() -> Result<Outlet, Errno> {
    pipe::writer(ACTIVATIONS)
}

/// Opens the reader's end.
///
/// # Errors
/// None for what the description grants.
pub fn inlet() -> Result<Inlet, Errno> {
    pipe::reader(ACTIVATIONS)
}
