//! Pipes from cameras: a message is a picture, which comes in pieces, one in each interval.
//!
//! Host and camera agree on a picture before anything comes, so the plan lets the class agree with
//! the model. All pieces of a picture are there when it is made, and one more interval may say that
//! the picture ends. Therefore a picture is a burst of so many messages, and its last piece takes
//! the longest of them.
//!
//! The camera is asked in every interval only if a transfer is queued, and a transfer needs a place
//! that its reader gave back. There is no bill if either may be missing.

use crate::beside::{self, configurations, model};
use crate::human;
use crate::missing::Missing;
use crate::pipes::contract;
use diapason_abi::Nanos;
use diapason_bus::{BusInstance, Direction, packet_time};
use diapason_contract::camera::{PLACE, PLACES};
use diapason_contract::source::MessageForm;
use diapason_devices::UsbDevice;
use diapason_pipe::bill::{Bill, Transfers, What};
use diapason_pipe::size::Bucket;
use diapason_system::{PipeSpec, System};
use diapason_usb::class::uvc::{Camera, CameraEvent, DEPTH, Mode, modes, settings};
use diapason_usb::class::{Class, Completion, Request, TransferFault};
use diapason_usb::descriptor::{Configuration, EndpointDescriptor};

/// Requests until host and camera agree, at most.
const REQUESTS: usize = 16;
/// Bytes of the longest head of a piece.
const HEAD: u64 = 12;

/// A picture on which host and camera agree.
#[derive(Clone, Copy)]
pub(crate) struct Agreed {
    /// Time from one picture to the next.
    frame_time: Nanos,
    /// Messages of a picture: its pieces, and its end if that comes alone.
    pub messages: u64,
    /// Time from one piece to the next.
    interval: Nanos,
    /// All pictures have as many bytes.
    even: bool,
    /// The endpoint as it is in the setting that the class chooses: the smallest that has so much
    /// in an interval.
    endpoint: EndpointDescriptor,
}

/// Returns whether a pipe comes from a camera.
pub(crate) fn is_of(pipe: &PipeSpec) -> bool {
    pipe.source().is_some_and(|source| matches!(source.form, MessageForm::Picture(_)))
}

/// Returns the pieces that a pipe's pictures bring, as a contract.
pub(crate) fn pieces(system: &System, pipe: &PipeSpec) -> Result<Bucket, Missing> {
    let Agreed { messages: each, .. } = agreed(system, pipe)?;
    let Bucket { burst, messages, per, jitter } = contract(pipe);
    let times = |count: u64| count.saturating_mul(each);
    Ok(Bucket { burst: times(burst), messages: times(messages), per, jitter })
}

/// Returns the transfers of a pipe from a camera.
///
/// # Errors
/// The camera cannot be what the pipe says: what is wrong, and what would fit.
pub(crate) fn transfers(system: &System, pipe: &PipeSpec) -> Result<Transfers, Missing> {
    let plug = &system.usb[pipe.usb];
    let agreed = agreed(system, pipe)?;
    let speed = model(plug.model).map_or(diapason_usb::Speed::Super, |model| model.speed());
    beside::fits(system, (pipe.usb, speed))?;
    keeps_up(system, pipe, &agreed)?;
    let bus = BusInstance::new(speed);
    let isochronous = diapason_bus::Transfer::Isochronous;
    let least = packet_time(bus.speed, bus.coding, isochronous, Direction::In, 1);
    let (worst, least) = (agreed.interval, Nanos(least.0 / 1_000));
    let each = Transfers::of_one(worst, least, DEPTH as u64);
    Ok(Transfers { paced: Some(agreed.interval), ..each })
}

/// Lets the class agree with the camera on what the pipe says, as the server does.
fn agreed(system: &System, pipe: &PipeSpec) -> Result<Agreed, Missing> {
    let plug = &system.usb[pipe.usb];
    let (device, name) = (&plug.name, &pipe.name);
    let unknown = || {
        let what = format!("nothing is known of the pictures of `{device}`");
        (what, "take a camera that there is a model of".to_owned())
    };
    let mut camera = model(plug.model).ok_or_else(unknown)?;
    let (speed, all) = (camera.speed(), configurations(&mut *camera));
    let first = all.first().ok_or_else(unknown)?;
    let set = Configuration::parse_once(first, speed).map_err(|_| unknown())?;
    let Bucket { messages, per, .. } = contract(pipe);
    let period = Nanos(per.0 / messages.max(1));
    let Some(mode) = Mode::fitting(&set, pipe.shape.bytes, period) else {
        let what = format!("`{name}` has room for {} bytes, and no picture", pipe.shape.bytes);
        let smallest = modes(&set).map(|mode| mode.bytes).min().unwrap_or_default();
        let remedy =
            format!("write at least `bytes = {smallest}`, the smallest picture of `{device}`");
        return Err((what, remedy));
    };
    let mut class = Camera::find(&set, mode).ok_or_else(unknown)?;
    let much = |what: String| {
        Err((what, format!("write a longer `period`, or fewer `bytes` for `{name}`")))
    };
    let Some(terms) = negotiate(&mut class, &mut *camera) else {
        return much(format!("`{device}` has no setting with so much in an interval"));
    };
    let Terms { frame, interval: bytes, frame_time, payload } = terms;
    if bytes as usize > PLACE {
        return much(format!(
            "`{device}` sends {bytes} bytes in an interval, and a place has {PLACE}"
        ));
    }
    let content = u64::from(payload.min(bytes)).saturating_sub(HEAD).max(1);
    let ends = || settings(&set).map(|(_, end)| end);
    let slots = ends().filter_map(|end| end.period()).max();
    let interval = speed.slot().times(u64::from(slots.unwrap_or(1))).nanos();
    let messages = u64::from(frame).div_ceil(content) + 1;
    let enough = ends().filter(|end| end.interval_bytes >= bytes);
    let endpoint = enough.min_by_key(|end| end.interval_bytes).ok_or_else(unknown)?;
    Ok(Agreed { frame_time, messages, interval, even: !mode.compressed, endpoint })
}

/// Returns the endpoint of a camera with a pipe, as it is while its pictures come. `None` of any
/// other device, and of a camera with which the host does not agree.
pub(crate) fn endpoint(system: &System, usb: usize) -> Option<EndpointDescriptor> {
    let pipe = system.pipes.iter().find(|pipe| pipe.usb == usb && is_of(pipe))?;
    agreed(system, pipe).ok().map(|agreed| agreed.endpoint)
}

/// The terms of a camera.
#[derive(Clone, Copy)]
struct Terms {
    frame: u32,
    interval: u32,
    frame_time: Nanos,
    payload: u32,
}

/// Carries the requests of a class to a camera until they agree. `None`: no setting has so much in
/// an interval.
fn negotiate(class: &mut Camera, camera: &mut dyn UsbDevice) -> Option<Terms> {
    let mut terms = None;
    for _ in 0..REQUESTS {
        let answer = match class.request(Nanos::ZERO)? {
            Request::Control { setup, data } => {
                let data = data.to_vec();
                camera.control(Nanos::ZERO, setup, &data).map_err(|_| TransferFault::Stall)
            }
            _ => Ok(Vec::new()),
        };
        let result = answer.as_deref().map_err(|fault| *fault);
        class.complete(Nanos::ZERO, Completion { endpoint: 0, result }, &mut |event| {
            if let CameraEvent::Started {
                frame_bytes: frame,
                interval_bytes: interval,
                frame_time,
                payload,
                ..
            } = event
            {
                terms = Some(Terms { frame, interval, frame_time, payload });
            }
        });
        if terms.is_some() {
            return terms;
        }
    }
    None
}

/// Checks that pictures come as seldom as the pipe says, and that the bus has carried one before
/// the next one comes.
fn keeps_up(system: &System, pipe: &PipeSpec, agreed: &Agreed) -> Result<(), Missing> {
    let (name, device) = (&pipe.name, &system.usb[pipe.usb].name);
    let Agreed { frame_time, messages, interval, .. } = *agreed;
    let contract = contract(pipe);
    let period = Nanos(contract.per.0 / contract.messages.max(1));
    if frame_time == Nanos::ZERO || frame_time < period {
        let (said, every) = (human(period.0), human(frame_time.0));
        let what =
            format!("`{name}` has a picture every {said}, and `{device}` has one every {every}");
        return Err((what, format!("write `period = \"{}ns\"`", frame_time.0)));
    }
    let takes = Nanos(interval.0.saturating_mul(messages));
    if takes > period {
        let (takes, said) = (human(takes.0), human(period.0));
        let what = format!(
            "a picture of `{device}` takes {takes} on the bus, and `{name}` has one every \
                     {said}"
        );
        return Err((what, "write a longer `period`, or fewer `bytes`".to_owned()));
    }
    Ok(())
}

/// Returns the bill of a picture, whose pieces have this bill: its fastest way is that of the last
/// piece, too.
///
/// # Errors
/// There may be no place for a transfer.
pub(crate) fn whole(
    system: &System,
    (pipe, reader): (&PipeSpec, &str),
    mut bill: Bill,
) -> Result<Bill, Missing> {
    let Agreed { messages, interval, even, .. } = agreed(system, pipe)?;
    // A place is the controller's, then the reader's until it is done with the piece, and then it
    // waits for the bottom half to look.
    let look = bill.before(What::User) - bill.value(What::Request);
    let away = bill.value(What::User) + look + look;
    let needed = DEPTH as u64 + away.0.div_ceil(interval.0.max(1)) + 2;
    if needed > PLACES {
        let device = &system.usb[pipe.usb].name;
        let what = format!(
            "`{device}` may lack places: they are away for {}, for which {needed} are needed, and \
             there are {PLACES}",
            human(away.0)
        );
        return Err((what, format!("give `{reader}` a larger budget, or a shorter period")));
    }
    // The end may come with the last piece. Each is anywhere in its interval.
    let between = if even { messages.saturating_sub(3) } else { 0 };
    bill.least += Nanos(interval.0.saturating_mul(between));
    Ok(bill)
}
