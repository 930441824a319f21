//! Pipes from the endpoint of any device: what its descriptors say of it, which no driver knows.
//!
//! A bulk endpoint takes part in the round robin of its bus. An interrupt endpoint is asked once in
//! a period. The controller chooses the slot, and periodic packets come first in it. Therefore a
//! packet that is there takes a period and one slot at most, if all periodic endpoints of the bus
//! fit into one slot.

use crate::beside::{self, model};
use crate::human;
use crate::missing::Missing;
use crate::pipes::contract;
use diapason_abi::Nanos;
use diapason_bus::{BusInstance, Direction, packet_time};
use diapason_devices::{UsbDevice, instrument};
use diapason_pipe::bill::Transfers;
use diapason_pipe::size::Bucket;
use diapason_system::{PipeDirection, PipeSpec, System, UsbModel};
use diapason_usb::Speed;
use diapason_usb::class::endpoint::{DEPTH, find};
use diapason_usb::descriptor::{Configuration, EndpointDescriptor};

/// Returns the transfers of a pipe from any endpoint.
///
/// # Errors
/// The endpoint cannot be what the pipe says: what is wrong, and what would fit.
pub(crate) fn transfers(system: &System, pipe: &PipeSpec) -> Result<Transfers, Missing> {
    let end = read(system, pipe)?;
    let worst = bus_time(system, pipe, &end)?;
    let asked = end.period().map(|_| worst);
    keeps_up(system, pipe, asked)?;
    let bus = BusInstance::new(end.speed);
    let one = packet_time(bus.speed, bus.coding, end.transfer, Direction::In, 1);
    let least = Nanos(one.0 / 1_000);
    Ok(Transfers::of_one(worst, least, DEPTH as u64))
}

/// Returns the longest time on the bus of a packet of a pipe, from when it could be sent.
pub(crate) fn bus_time(
    system: &System,
    pipe: &PipeSpec,
    end: &EndpointDescriptor,
) -> Result<Nanos, Missing> {
    let Some(period) = end.period() else {
        let packet = end.packet.into();
        let bulk = (end.direction(), packet);
        return beside::longest_at(system, (pipe.usb, end.speed), bulk, packet);
    };
    beside::fits(system, (pipe.usb, end.speed))?;
    Ok(end.speed.slot().times(u64::from(period) + 1).nanos())
}

/// Returns the endpoint of a pipe among those of its device that `find` knows.
pub(crate) fn named(
    system: &System,
    pipe: &PipeSpec,
    find: fn(&Configuration<'_>, u8) -> Option<EndpointDescriptor>,
) -> Result<EndpointDescriptor, Missing> {
    let plug = &system.usb[pipe.usb];
    let (device, number) = (&plug.name, pipe.endpoint);
    let Some(mut known) = model(plug.model) else {
        let what = format!("nothing is known of the endpoints of `{device}`");
        return Err((what, "take a device that there is a model of".to_owned()));
    };
    let all = endpoints(&mut *known, find);
    let Some(end) = all.iter().find(|end| end.address & 0xf == number) else {
        let way = match pipe.way {
            PipeDirection::FromDevice => "come from",
            PipeDirection::ToDevice => "go to",
        };
        let what = format!("`{device}` has no endpoint {number} that packets {way}");
        let keys: Vec<String> =
            all.iter().map(|end| format!("`endpoint = {}`", end.address & 0xf)).collect();
        let remedy = match keys.is_empty() {
            true => format!("take another device: it has no endpoint that packets {way}"),
            false => format!("write {}", keys.join(" or ")),
        };
        return Err((what, remedy));
    };
    if plug.behind.is_some() && end.speed != Speed::High {
        let what = format!(
            "`{device}` is of full speed and behind a hub, whose split transfers no bill counts"
        );
        return Err((what, "plug it into the controller: `on = \"xhci\"`".into()));
    }
    Ok(*end)
}

/// Returns the endpoint that the packets of a pipe come from.
fn read(system: &System, pipe: &PipeSpec) -> Result<EndpointDescriptor, Missing> {
    let end = named(system, pipe, find)?;
    let (device, name, number) = (&system.usb[pipe.usb].name, &pipe.name, pipe.endpoint);
    let (bytes, packet) = (pipe.shape.bytes, usize::from(end.packet));
    if bytes != packet {
        let what = format!(
            "`{name}` has `bytes = {bytes}`, and packets of endpoint {number} of `{device}` have \
             {packet}"
        );
        return Err((what, format!("write `bytes = {packet}`")));
    }
    Ok(end)
}

/// Returns the endpoints of a device that `find` knows.
fn endpoints(
    device: &mut dyn UsbDevice,
    find: fn(&Configuration<'_>, u8) -> Option<EndpointDescriptor>,
) -> Vec<EndpointDescriptor> {
    let speed = device.speed();
    let sets = beside::configurations(device);
    let sets = sets.iter().filter_map(|set| Configuration::parse_once(set, speed).ok());
    sets.flat_map(|set| (1..=15).filter_map(move |number| find(&set, number))).collect()
}

/// Checks that a pipe has at least the messages that its device sends, and no more than a host that
/// asks once in `asked` can fetch.
fn keeps_up(system: &System, pipe: &PipeSpec, asked: Option<Nanos>) -> Result<(), Missing> {
    let plug = &system.usb[pipe.usb];
    let (name, device, number) = (&pipe.name, &plug.name, pipe.endpoint);
    let Bucket { messages, per, .. } = contract(pipe);
    let every = Nanos(per.0 / messages.max(1));
    if let Some(asked) = asked.filter(|asked| every < *asked) {
        let (most, said) = (human(asked.0), human(every.0));
        let what = format!(
            "`{name}` has a message every {said}, and endpoint {number} of `{device}` brings one \
             in {most}"
        );
        return Err((what, format!("write at least `period = \"{}ns\"`", asked.0)));
    }
    let sends = match plug.model {
        UsbModel::Instrument | UsbModel::Servo => plug.gap_ns.map_or(instrument::PERIOD, Nanos),
        // A key goes down and comes up.
        UsbModel::Keyboard => Nanos(beside::KEY_PERIOD.0 / 2),
        _ => return Ok(()),
    };
    if every > sends {
        let (said, gap) = (human(every.0), human(sends.0));
        let what =
            format!("`{name}` has a message every {said}, and `{device}` has one every {gap}");
        return Err((what, format!("write `period = \"{}ns\"` or less", sends.0)));
    }
    Ok(())
}
