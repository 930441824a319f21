//! The bill of a pipe to a device: from `write` until the server knows that the message is through
//! on the device's own bus.
//!
//! The sender looks at the ring; frames wait for transfers, those of all channels in turn, and then
//! in the interface for the bus, as fast as the node there takes them. The way back of the
//! acknowledgement is that of a message that comes.

use super::pipes::{Half, Missing, NoBill, Piped, Plant, contract, longest_transfer};
use diapason_abi::Nanos;
use diapason_abi::pipe::{OUT_SLOTS, REST};
use diapason_bus::Direction;
use diapason_devices::can::ARDUINO;
use diapason_devices::kvaser::Identity;
use diapason_pipe::bill::{Bill, Drain, Look, Pump, Refusal, Taking, Traffic, User, input, pump};
use diapason_pipe::size::Bucket;
use diapason_system::{CanTraffic, Pipe, Way};
use diapason_usb::class::kvaser;

/// At most so many frames come at once on the bus of a receiver: it has two buffers, one may be on
/// the bus, and one may be a receipt.
const AT_ONCE: u64 = 4;
/// A turn of the receiver's loop that is under way, a receipt, and a request to wait that comes too
/// late each cost a turn at most.
const BEFORE: u64 = 3;

impl Plant<'_> {
    pub(super) fn output(&self, index: usize) -> Result<Piped, Missing> {
        let written = [contract(&self.system.pipes[index])];
        let bill = self.output_of(index, &written)?.map_err(NoBill::Refused);
        Ok(Piped { bill, equation_nine: None })
    }

    /// The bill of a pipe to a device if this is written.
    pub(super) fn output_of(
        &self,
        index: usize,
        written: &[Bucket],
    ) -> Result<Result<Bill, Refusal>, Missing> {
        Ok(match self.way_back(index)? {
            Ok(back) => Ok(self.out(&self.system.pipes[index], &back, written)?),
            Err(refusal) => Err(refusal),
        })
    }

    /// The bill of an acknowledgement: all of a message that comes but the reader.
    fn way_back(&self, index: usize) -> Result<Result<Bill, Refusal>, Missing> {
        let inbound = self.inbound(&self.system.pipes[index])?;
        let nobody = User {
            message: Nanos::ZERO,
            wake: Nanos::ZERO,
            taking: Taking::Each,
            service: &inbound.half,
        };
        let stages = inbound.stages(nobody);
        self.with_traffic(index, |traffic: &Traffic<'_>| input(&stages, traffic))
    }

    fn out(&self, pipe: &Pipe, back: &Bill, written: &[Bucket]) -> Result<Bill, Missing> {
        let (sender, _) = self.half(pipe, Half::Sends)?;
        let look = Look { rest: REST, work: self.attendance(pipe.server)?, service: &sender };
        let (room, open) = kvaser::SENDING;
        let longest = longest_transfer(pipe.usb, self.system, Direction::Out, kvaser::SENT_MAX)?;
        let writes = |other: &&Pipe| other.way == Way::ToDevice && other.usb == pipe.usb;
        let (_, turn) = receiver(pipe, self.system)?;
        let drain = Drain {
            first: Nanos(BEFORE * turn.0),
            each: turn,
            holds: Identity::default().outstanding.into(),
        };
        let pumped = Pump {
            look,
            slots: OUT_SLOTS as u64,
            transfers: open as u64,
            round: Pump::round(longest, open as u64, back),
            ahead: room as u64,
            channels: self.system.pipes.iter().filter(writes).count() as u64,
            drain,
            back: back.total,
        };
        Ok(pump(&pumped, written))
    }

    /// What comes from the channel of a pipe to a device: an acknowledgement for each frame.
    pub(super) fn acknowledged(&self, pipe: &Pipe) -> Result<Bucket, Missing> {
        let (shortest, _) = receiver(pipe, self.system)?;
        Ok(Bucket::periodic(shortest).with_burst(AT_ONCE))
    }
}

/// The turn of the node that reads what is written, shortest and longest.
fn receiver(pipe: &Pipe, system: &diapason_system::System) -> Result<(Nanos, Nanos), Missing> {
    let usb = &system.usb[pipe.usb];
    let mut buses = usb.buses.iter().filter(|bus| bus.channel == usize::from(pipe.channel));
    match buses.any(|bus| matches!(bus.traffic, CanTraffic::Receiver)) {
        true => Ok(ARDUINO),
        false => Err((
            format!("nobody on the bus of channel {} reads what is written", pipe.channel),
            format!("write `receivers = [\"can{}\"]` in `{}`", pipe.channel, usb.name),
        )),
    }
}
