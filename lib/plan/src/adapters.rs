//! Pipes of USB network devices: a message is an Ethernet frame, and a transfer carries one.
//!
//! A frame ends with a packet that is not full, so one of full packets has an empty one behind it.
//! A frame that came stays where the controller put it until its reader lends that place again. The
//! controller asks the device only if it has a place, so there is no bill if one may be missing.

use crate::beside::{longest_at, model};
use crate::human;
use crate::missing::Missing;
use crate::pipes::contract;
use diapason_abi::Nanos;
use diapason_bus::{BusInstance, Direction, Transfer, packet_time};
use diapason_contract::network::{QUEUED, SLOTS, UNDER_WAY};
use diapason_devices::network::{NUMBERED, PACKET};
use diapason_pipe::bill::{Bill, Transfers, What};
use diapason_pipe::size::{Bucket, arrivals};
use diapason_system::{PipeSpec, System};
use diapason_usb::Speed;
use diapason_usb::class::cdc_ecm::FRAME_HEAD;

/// Returns the time on the bus of the longest frame of a pipe, and the speed of its device.
///
/// # Errors
/// Nothing is known of the device, or its bus leaves no time.
pub(crate) fn bus(system: &System, pipe: &PipeSpec) -> Result<(Nanos, Speed), Missing> {
    let plug = &system.usb[pipe.usb];
    let Some(adapter) = model(plug.model) else {
        let what = format!("nothing is known of the endpoints of `{}`", plug.name);
        return Err((what, "take a network device that there is a model of".to_owned()));
    };
    let (speed, packet) = (adapter.speed(), PACKET as u32);
    let direction = if pipe.is_written() { Direction::Out } else { Direction::In };
    let bytes = u32::try_from(pipe.shape.bytes).unwrap_or(u32::MAX);
    // An empty packet takes no longer than one with a byte.
    let whole = bytes.saturating_add(u32::from(bytes.is_multiple_of(packet)));
    let time = longest_at(system, (pipe.usb, speed), (direction, packet), whole)?;
    Ok((time, speed))
}

/// Returns whether frames of a pipe may have full packets only, and an empty one behind them.
const fn may_be_full(pipe: &PipeSpec) -> bool {
    pipe.shape.bytes >= PACKET
}

/// Returns how many frames to the device are queued at a time: an empty packet is a transfer, too.
pub(crate) const fn queued_out(pipe: &PipeSpec) -> usize {
    if may_be_full(pipe) { QUEUED / 2 } else { QUEUED }
}

/// Checks that the server has room for all frames that are under way to the device.
pub(crate) fn has_room(pipe: &PipeSpec, bill: &Bill) -> Result<(), Missing> {
    if bill.slots <= UNDER_WAY {
        return Ok(());
    }
    let what = format!(
        "`{}` may have {} frames under way, and the server takes {UNDER_WAY}",
        pipe.name, bill.slots
    );
    Err((what, "make the bound shorter, or write a longer `period`".to_owned()))
}

/// Returns the transfers of a pipe from a network device.
///
/// # Errors
/// The device cannot be what the pipe says.
pub(crate) fn transfers(system: &System, pipe: &PipeSpec) -> Result<Transfers, Missing> {
    let (worst, speed) = bus(system, pipe)?;
    sends_no_more(system, pipe)?;
    let of_it = BusInstance::new(speed);
    let least = packet_time(of_it.speed, of_it.coding, Transfer::Bulk, Direction::In, FRAME_HEAD);
    Ok(Transfers::of_one(worst, Nanos(least.0 / 1_000), QUEUED as u64))
}

/// Checks that the computer behind the model sends no more than the pipe says.
fn sends_no_more(system: &System, pipe: &PipeSpec) -> Result<(), Missing> {
    let plug = &system.usb[pipe.usb];
    let Some(gap) = plug.gap_ns.map(Nanos) else { return Ok(()) };
    let (name, device, said) = (&pipe.name, &plug.name, pipe.shape.bytes);
    if said < NUMBERED {
        let what =
            format!("`{name}` has `bytes = {said}`, and frames of `{device}` have {NUMBERED}");
        return Err((what, format!("write at least `bytes = {NUMBERED}`")));
    }
    let Bucket { messages, per, .. } = contract(pipe);
    if u128::from(per.0) <= u128::from(gap.0) * u128::from(messages) {
        return Ok(());
    }
    let (every, said) = (human(gap.0), human(per.0 / messages.max(1)));
    let what = format!("`{name}` has a message every {said}, and `{device}` has one every {every}");
    let remedy = format!("write `period = \"{}ns\"` or less, or mend `gap` of `{device}`", gap.0);
    Err((what, remedy))
}

/// Checks that the controller always has as many places as transfers are queued.
///
/// A place is away from when its frame may have been sent until its reader lent it again and the
/// bottom half looked. The bottom half looks when the next frame has come, and no frame that comes
/// later needs the place before.
pub(crate) fn has_places(pipe: &PipeSpec, reader: &str, bill: &Bill) -> Result<(), Missing> {
    let away = bill.total + bill.before(What::User);
    let needed = QUEUED as u64 + arrivals(&[contract(pipe)], away) + 1;
    if needed <= SLOTS.into() {
        return Ok(());
    }
    let what = format!(
        "`{}` may lack places: they are away for {}, for which {needed} are needed, and there are \
         {SLOTS}",
        pipe.name,
        human(away.0)
    );
    Err((what, format!("give `{reader}` a larger budget, or a longer `period`")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_system::parse;

    #[test]
    fn more_frames_than_the_server_has_room_for_are_refused() {
        let text = include_str!("../../../tests/systems/frames-both.toml");
        let system = parse("frames-both.toml", text).unwrap();
        let pipe = system.pipes.iter().find(|pipe| pipe.name == "goes").unwrap();
        let mut bill = Bill::of_output(&[(What::Bus, Nanos(1))]);
        bill.slots = UNDER_WAY;
        assert_eq!(has_room(pipe, &bill), Ok(()));
        bill.slots += 1;
        let (what, _) = has_room(pipe, &bill).unwrap_err();
        assert_eq!(what, "`goes` may have 65 frames under way, and the server takes 64");
    }
}
