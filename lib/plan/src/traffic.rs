//! Messages that come to a device, as the description says: a pipe that says less promises what
//! cannot be.

use crate::pipes::{Missing, contract};
use diapason_abi::Nanos;
use diapason_devices::can::replay;
use diapason_system::{CanTraffic, Pipe, System, UsbModel, Way};

const SECOND: u64 = 1_000_000_000;

/// Checks that the contract of a pipe allows all messages that are known to come.
///
/// # Errors
/// How many come, and the contract that allows them.
pub fn is_allowed(pipe: &Pipe, system: &System) -> Result<(), Missing> {
    let Some(plug) = system.usb.get(pipe.usb) else { return Ok(()) };
    if plug.model != UsbModel::UsbCan || pipe.way != Way::FromDevice {
        return Ok(());
    }
    let channel = usize::from(pipe.channel);
    let bus = plug.buses.iter().find(|bus| bus.channel == channel);
    let sends = match bus.map(|bus| &bus.traffic) {
        // Acknowledgements of what is written are no messages of the pipe.
        None | Some(CanTraffic::Receiver { .. }) => 0,
        Some(CanTraffic::Numbered { per_second, .. }) => u64::from(*per_second),
        Some(CanTraffic::Sender { gap_ns }) => SECOND.div_ceil(gap_ns.0.max(1)),
        // A program that measures puts its own traffic on the bus, of which nothing is promised.
        Some(CanTraffic::Replay { file, .. }) if file.is_empty() => 0,
        Some(CanTraffic::Replay { log, .. }) => logged(pipe, log, channel).unwrap_or(0),
    };
    if sends <= pipe.rate { Ok(()) } else { Err(refused(pipe, sends)) }
}

/// Returns the rate of a log in the long run, if it has more messages than the contract allows in
/// its whole length.
fn logged(pipe: &Pipe, log: &str, channel: usize) -> Option<u64> {
    // A log that cannot be read is refused elsewhere.
    let frames = replay(log, &format!("can{channel}")).ok()?;
    let (first, last) = (frames.front()?.0, frames.back()?.0);
    let (length, count) = (last - first, frames.len() as u64);
    let too_many = contract(pipe).most(length) < count && length > Nanos::ZERO;
    too_many.then(|| count.saturating_mul(SECOND).div_ceil(length.0))
}

fn refused(pipe: &Pipe, sends: u64) -> Missing {
    let what = format!(
        "channel {} sends {sends} messages a second, and the pipe says {}",
        pipe.channel, pipe.rate
    );
    (what, format!("write `rate = {sends}`"))
}
