//! The bill of a pipe to a device: from `write` until the server knows that the message is through
//! on the device's own bus.
//!
//! The writer needs budget between putting a message into the ring and telling the server. The
//! sender looks at the ring; frames wait for transfers, those of all channels in turn, and then
//! in the interface for the bus, as fast as the node there takes them. The way back of the
//! acknowledgement is that of a message that comes.

use crate::can::contended_turn;
use crate::driver::Outward;
use crate::frames::Frames;
use crate::human;
use crate::missing::Missing;
use crate::pipes::{NoBill, Piped, Plant, contract, longest_transfer};
use crate::supplies::{Half, own_supply};
use diapason_abi::Nanos;
use diapason_abi::pipe::{AT_ONCE, BEFORE, OUT_SLOTS, OutputCosts, REST};
use diapason_bus::Direction;
use diapason_can::wire::{OVERLOAD_BITS, OVERLOADS};
use diapason_contract::can::EACH;
use diapason_contract::threads::SEND;
use diapason_pipe::bill::{
    Bill, BillRefusal, Drain, Look, Pump, Service, Taking, Traffic, User, input, pump,
};
use diapason_pipe::size::Bucket;
use diapason_system::{CanTraffic, PipeDirection, PipeSpec, System, Tpipe};

impl Plant<'_> {
    pub(crate) fn output(&self, index: usize) -> Result<Piped, Missing> {
        let pipe = &self.system.pipes[index];
        let (_, process) = self.end(pipe)?;
        let writer = own_supply(process, self.system, self.core)?;
        let told = self.reporting(process, &writer).any(self.calls.of_writer());
        let bill = self.output_of(index, &[contract(pipe)], told)?.map_err(NoBill::Refused);
        Ok(Piped { bill, equation_nine: None })
    }

    /// Returns the bill of a pipe to a device for this contract and this delay until the server is
    /// told.
    pub(crate) fn output_of(
        &self,
        index: usize,
        written: &[Bucket],
        told: Nanos,
    ) -> Result<Result<Bill, BillRefusal>, Missing> {
        Ok(match self.way_back(index)? {
            Ok(back) => Ok(self.out(&self.system.pipes[index], &back, written, told)?),
            Err(refusal) => Err(refusal),
        })
    }

    /// Returns the bill of an acknowledgement: all of a message that comes but the reader.
    fn way_back(&self, index: usize) -> Result<Result<Bill, BillRefusal>, Missing> {
        let inbound = self.inbound(index)?;
        let nobody = User {
            message: Nanos::ZERO,
            wake: Nanos::ZERO,
            taking: Taking::Each,
            service: &inbound.half,
        };
        let stages = inbound.stages(nobody);
        self.with_traffic((index, inbound.own), |traffic: &Traffic<'_>| input(&stages, traffic))
    }

    fn out(
        &self,
        pipe: &PipeSpec,
        back: &Bill,
        written: &[Bucket],
        told: Nanos,
    ) -> Result<Bill, Missing> {
        let (sender, _) = self.half(pipe, Half::Sends)?;
        let look =
            Look { rest: REST, work: self.attendance(pipe.server, pipe.usb)?, service: &sender };
        let Outward { bytes, sending: (room, open), holds } = Outward::of(self.system, pipe.usb);
        let longest = longest_transfer(pipe.usb, self.system, Direction::Out, bytes)?;
        let (_, turn) = receiver(pipe.usb, pipe.channel, self.system)?;
        let drain = Drain { first: Nanos(BEFORE * turn.0), each: turn, holds };
        let pumped = Pump {
            told,
            look,
            slots: OUT_SLOTS as u64,
            transfers: open as u64,
            round: Pump::round(longest, open as u64, back),
            ahead: room as u64,
            channels: self.written(pipe.usb).count_ones().into(),
            drain,
            back: back.total,
        };
        Ok(pump(&pumped, written))
    }

    /// Returns the messages that come from the channel of a pipe to a device: an acknowledgement
    /// for each frame.
    pub(crate) fn acknowledged(&self, pipe: &PipeSpec) -> Result<Bucket, Missing> {
        let (shortest, _) = receiver(pipe.usb, pipe.channel, self.system)?;
        Ok(acknowledgements(shortest))
    }

    /// Returns whether anything is, or may be, written to an interface.
    pub(crate) fn writes(&self, usb: usize) -> bool {
        let pipes = self.system.pipes.iter().filter(|other| !other.is_written());
        let places = self.system.tpipes.iter().filter(|tpipe| tpipe.envelope.to != 0);
        pipes.filter(|other| other.way == PipeDirection::ToDevice).any(|other| other.usb == usb)
            || places.into_iter().any(|tpipe| tpipe.usb == usb)
    }

    /// Returns the channels of a device that pipes of the description write, one bit each.
    fn described(&self, usb: usize) -> u8 {
        let pipes = self.system.pipes.iter();
        let written = pipes.filter(|pipe| pipe.way == PipeDirection::ToDevice && pipe.usb == usb);
        written.fold(0, |all, pipe| all | 1 << pipe.channel)
    }

    /// Returns the channels of a device that programs may write while the system runs.
    fn may_be_written(&self, usb: usize) -> u8 {
        let places = self.system.tpipes.iter().filter(|tpipe| tpipe.usb == usb);
        places.fold(0, |all, tpipe| all | tpipe.envelope.to)
    }

    fn written(&self, usb: usize) -> u8 {
        self.described(usb) | self.may_be_written(usb)
    }

    /// Returns the acknowledgements of channels that programs may write at run time.
    pub(crate) fn tuned_acknowledgements(&self, usb: usize) -> Result<Vec<Bucket>, Missing> {
        let channels = bits(self.may_be_written(usb));
        let each = channels.map(|channel| receiver(usb, channel, self.system));
        each.map(|turn| turn.map(|(shortest, _)| acknowledgements(shortest))).collect()
    }

    /// Returns the costs of the way to the device for the server of a place, if the place writes.
    pub(crate) fn output_costs(&self, tpipe: &Tpipe) -> Result<Option<OutputCosts>, Missing> {
        let usb = tpipe.usb;
        let turns = bits(self.written(usb)).map(|channel| receiver(usb, channel, self.system));
        let turns = turns.collect::<Result<Vec<_>, _>>()?;
        let widest =
            |all: (Nanos, Nanos), turn: (Nanos, Nanos)| (all.0.min(turn.0), all.1.max(turn.1));
        let Some(turn) = turns.into_iter().reduce(widest) else { return Ok(None) };
        let Outward { bytes, holds, .. } = Outward::of(self.system, usb);
        let (share, period, _) = self.io_of(tpipe, SEND.vcpu)?;
        Ok(Some(OutputCosts {
            transfer: longest_transfer(usb, self.system, Direction::Out, bytes)?,
            share,
            period,
            turn,
            holds,
            channels: self.written(usb),
            described: self.described(usb),
        }))
    }
}

/// Returns the channels of these bits.
fn bits(channels: u8) -> impl Iterator<Item = u8> {
    (0..EACH as u8).filter(move |channel| channels >> channel & 1 != 0)
}

/// Returns the acknowledgements of a channel whose node takes at least this time for a message: one
/// for each.
fn acknowledgements(shortest: Nanos) -> Bucket {
    Bucket::periodic(shortest).with_burst(AT_ONCE)
}

/// Returns the time from one numbered frame to the next that a node can make the bus take: the
/// frame has eight bytes, and while its buffers are full the node asks for overload frames.
fn held_back(frames: Frames, rate: u64) -> u64 {
    let overloads = u64::from(OVERLOADS) * u64::from(OVERLOAD_BITS);
    frames.numbered(false).0 + overloads * 1_000_000_000 / rate
}

/// Returns the time of a frame to the node that reads it, shortest and longest: that of the node or
/// that of the bus, whichever is more; longest with all that other nodes may send before.
fn receiver(number: usize, channel: u8, system: &System) -> Result<(Nanos, Nanos), Missing> {
    let usb = &system.usb[number];
    let turn = usb.buses.iter().find_map(|bus| match bus.traffic {
        CanTraffic::Receiver { turn_ns } if bus.channel == usize::from(channel) => Some(turn_ns),
        _ => None,
    });
    let Some((shortest, longest)) = turn else {
        return Err((
            format!("nobody on the bus of channel {channel} reads the frames"),
            format!("write `receivers = [\"can{channel}\"]` in `{}`", usb.name),
        ));
    };
    let rate = u64::from(usb.bit_rates[usize::from(channel)]);
    let frames = Frames::of(usb, usize::from(channel)).ok_or_else(|| {
        (format!("`{}` has no channel {channel}", usb.name), "write another `channel`".to_owned())
    })?;
    let held_back = held_back(frames, rate);
    if longest > held_back {
        return Err((
            format!(
                "the node on the bus of channel {channel} takes {} for a frame, and at {rate} \
                 bit/s it can hold the next one back for {} only",
                human(longest),
                human(held_back)
            ),
            "write a shorter `turn`, or a lower rate in `bit_rates`: the node would lose frames"
                .into(),
        ));
    }
    let [least, most] = [frames.shortest().0, frames.longest().0];
    let contended = match contended_turn(system, number, channel) {
        Some(Some(turn)) => turn.0,
        Some(None) => {
            let what = format!("messages on the bus of channel {channel} may leave it no room");
            return Err((what, "lengthen `period` of `[[message]]`s that go before it".into()));
        }
        None => 0,
    };
    Ok((Nanos(shortest.max(least)), Nanos(longest.max(most + 1).max(contended))))
}
