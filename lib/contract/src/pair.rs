//! A device of any kind of which programs read one endpoint and write another one. Its two pipes
//! are those of [`endpoint`] and of [`sink`]: one thread of the server works for
//! both, because the server serves a device as a whole.

use crate::home::Home;
use crate::{endpoint, sink};

/// The thread that hears of writes, and the bottom half that reads packets and hears when the
/// device has one.
pub const HOME: Home =
    sink::HOME.called("usb-pair", "pair", "usbd.pair").ready(&[endpoint::READY, sink::READY]);

/// Bytes that the transfers of both endpoints take of the memory for all transfers.
pub(crate) const BUFFERS: u64 = endpoint::BUFFERS + sink::BUFFERS;
