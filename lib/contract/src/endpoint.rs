//! The endpoint of any device that sends packets by itself: what the server reads from one, packet
//! by packet, without knowing what they mean.

use crate::home::Home;
use crate::kinds::ServiceKind;
use crate::sensor::{ATTRIBUTES, BYTES, PACKET, QUEUED};
use crate::source::{MessageForm, PipeSource};
use diapason_abi::Nanos;

/// Bytes that the transfers of an endpoint take of the memory for all transfers.
pub(crate) const BUFFERS: u64 = (QUEUED * PACKET) as u64;

/// The pipe of packets.
pub const PACKETS: &str = "endpoint";
/// The semaphore that is given after packets.
pub const READY: &str = "endpoint.ready";

/// The setting with the number of the endpoint that is read, 1 to 15. It follows from a pipe.
pub const NUMBER: &str = "endpoint";

/// The bottom half that reads the endpoint.
pub const HOME: Home = Home::new("usb-endpoint", "endpoint", "usbd.endpoint")
    .each("usbd.endpoint.message")
    .moderated(Nanos::from_millis(1))
    .ready(&[READY]);

/// The work of a reader for one packet, by its name in descriptions.
pub const MESSAGE: &str = "endpoint.message";

/// The pipe from an endpoint: what every device must be able to do, and what the server can do. The
/// descriptors of the device bound it further.
pub const SOURCE: PipeSource = PipeSource {
    kind: ServiceKind::Endpoints,
    pipe: (PACKETS, BYTES),
    ready: READY,
    form: MessageForm::Packet,
    home: &HOME,
    message: MESSAGE,
    attributes: ATTRIBUTES,
};
