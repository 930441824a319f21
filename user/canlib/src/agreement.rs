//! The client's ends of a CAN channel. Their names are in `diapason_contract::can`, their contents
//! in `diapason_can::exchange`.

use crate::format::{Classic, Format};
use diapason_abi::Errno;
pub use diapason_can::exchange::{
    ChannelCommand, ChannelParameters, ChannelReport, ChannelRequest, Departure, EXTENDED,
    FdDeparture, FdReceivedFrame, LOST_BEFORE, Ledger, NEWS, OUTSIDE, Phase, REMOTE, ReceivedFrame,
    RequestReply,
};
pub use diapason_contract::can::*;
use diapason_pipe::{Reader, Writer};
use diapason_rt::mailbox::Mailbox;
use diapason_rt::pipe;
use diapason_rt::sync::Semaphore;

/// The reading end of a channel's pipe.
pub type Inlet<F = Classic> = Reader<'static, <F as Format>::Arrival, RECORDS>;

/// Opens a client's end of a channel, and the semaphore to take before looking.
///
/// # Errors
/// There is no such channel.
pub fn inlet<F: Format>(channel: usize) -> Result<(Inlet<F>, Semaphore), Errno> {
    let names = names(channel).ok_or(Errno::Absent)?;
    Ok((pipe::reader(F::pipes(names).0)?, Semaphore::open(names.ready)?))
}

/// The client's end of what a client that writes has besides.
pub struct SendingEnds<F: Format = Classic> {
    /// Frames to be sent.
    pub departures: Writer<'static, F::Departure, DEPARTURES>,
    /// How the channel is.
    pub reports: Reader<'static, ChannelReport, REPORTS>,
    /// The requests of the client.
    pub requests: Mailbox,
}

/// Opens a client's end.
///
/// # Errors
/// There is no such channel.
pub fn counter<F: Format>(channel: usize) -> Result<SendingEnds<F>, Errno> {
    let names = names(channel).ok_or(Errno::Absent)?;
    Ok(SendingEnds {
        departures: pipe::writer(F::pipes(names).1)?,
        reports: pipe::reader(names.reports)?,
        requests: Mailbox::open(names.requests)?,
    })
}
