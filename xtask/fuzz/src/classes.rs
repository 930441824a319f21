//! The class drivers of USB as targets: the bytes are the answers of a device. Each byte that is
//! taken says how the next transfer ends, or what the client wants meanwhile.

use diapason_abi::Nanos;
use diapason_can::{BitRate, CanFrame, FdFrame, frame};
use diapason_devices::UsbDevice;
use diapason_usb::class::can::{BusRates, InterfaceClass, Mode};
use diapason_usb::class::cdc_acm::{CdcAcm, LineCoding};
use diapason_usb::class::cdc_ecm::Ethernet;
use diapason_usb::class::hid::Keyboard;
use diapason_usb::class::hub::Hub;
use diapason_usb::class::link::Link;
use diapason_usb::class::mass_storage::MassStorage;
use diapason_usb::class::uvc::{Camera, modes};
use diapason_usb::class::{Class, Completion, HEAD, Landed, Request, TransferFault};
use diapason_usb::descriptor::{Configuration, ConfigurationHeader, DeviceDescriptor};
use diapason_usb::setup::descriptor_type::{CONFIGURATION, DEVICE};
use diapason_usb::{Setup, Speed};
use std::collections::VecDeque;

/// Ends of transfers until a run is over.
const STEPS: usize = 600;
/// Requests of a class between two ends of transfers.
const REQUESTS: usize = 1_000;

/// A transfer that a class wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wanted {
    Control(Setup, Vec<u8>),
    In(usize),
    Out(Vec<u8>),
    /// Bytes in memory that is shared with a client.
    Shared(u32, usize),
    /// A change of an endpoint or a setting, which brings no bytes.
    Change,
}

/// A transfer and its endpoint.
pub type Pending = (u8, Wanted);

/// The end of a transfer, or something else that happens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TransferEnd {
    Done(Vec<u8>),
    Fault(TransferFault),
    /// The client wants something.
    Client(u8),
    /// Nothing comes until the class wakes up.
    Silence,
}

/// Decides what happens next; nothing more if it has no word.
pub trait DeviceFate {
    fn next(&mut self, now: Nanos, pending: Option<&Pending>) -> Option<TransferEnd>;
}

/// The bytes of an input as the answers.
pub struct Told<'a>(pub &'a [u8]);

impl Told<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }
}

impl DeviceFate for Told<'_> {
    fn next(&mut self, _: Nanos, _: Option<&Pending>) -> Option<TransferEnd> {
        let kind = self.byte()?;
        Some(match kind {
            0..=7 => {
                let length = usize::from(kind) * 256 + usize::from(self.byte()?);
                let (bytes, rest) = self.0.split_at(length.min(self.0.len()));
                self.0 = rest;
                TransferEnd::Done(bytes.to_vec())
            }
            8 => TransferEnd::Fault(TransferFault::Stall),
            9 => TransferEnd::Fault(TransferFault::Damaged),
            10 => TransferEnd::Fault(TransferFault::Gone),
            11 => TransferEnd::Silence,
            _ => TransferEnd::Client(kind),
        })
    }
}

/// Returns an answer as the bytes that [`Told`] reads.
pub fn written(happening: &TransferEnd, into: &mut Vec<u8>) {
    match happening {
        TransferEnd::Done(bytes) => {
            let length = bytes.len().min(0x7ff);
            into.extend([(length >> 8) as u8, length as u8]);
            into.extend(&bytes[..length]);
        }
        TransferEnd::Fault(TransferFault::Stall) => into.push(8),
        TransferEnd::Fault(TransferFault::Damaged) => into.push(9),
        TransferEnd::Fault(_) => into.push(10),
        TransferEnd::Silence => into.push(11),
        TransferEnd::Client(kind) => into.push(*kind),
    }
}

fn wanted(request: Request<'_>) -> Result<Pending, u8> {
    Ok(match request {
        Request::Control { setup, data } => (0, Wanted::Control(setup, data.to_vec())),
        Request::In { endpoint, length } => (endpoint, Wanted::In(length)),
        Request::Out { endpoint, data } => (endpoint, Wanted::Out(data.to_vec())),
        Request::Shared { endpoint, place, length } => (endpoint, Wanted::Shared(place, length)),
        Request::Recover { endpoint } => (endpoint, Wanted::Change),
        Request::Alternate { .. } => (0, Wanted::Change),
        Request::Cancel { endpoint } => return Err(endpoint),
    })
}

/// Returns the bytes of an answer that the transfer has room for.
fn moved(wanted: &Wanted, answer: Vec<u8>) -> Vec<u8> {
    let (most, own) = match wanted {
        Wanted::Control(setup, data) if !setup.is_in() => (data.len(), Some(data)),
        Wanted::Control(setup, _) => (setup.length.into(), None),
        Wanted::In(length) | Wanted::Shared(_, length) => (*length, None),
        Wanted::Out(data) => (data.len(), Some(data)),
        Wanted::Change => (0, None),
    };
    own.cloned().unwrap_or_else(|| answer.into_iter().take(most).collect())
}

/// Lets a class work until `fate` has no more to say.
pub fn drive<C: Class>(
    mut class: C,
    fate: &mut dyn DeviceFate,
    client: &mut dyn FnMut(&mut C, Nanos, u8),
) {
    let mut now = Nanos::ZERO;
    let mut pending: VecDeque<Pending> = VecDeque::new();
    for _ in 0..STEPS {
        for round in 0.. {
            assert!(round < REQUESTS, "a class that never has enough");
            match class.request(now).map(wanted) {
                None => break,
                Some(Ok(transfer)) => pending.push_back(transfer),
                Some(Err(endpoint)) => cancel(&mut class, now, &mut pending, endpoint),
            }
        }
        let Some(happening) = fate.next(now, pending.front()) else { return };
        let due = class.next_wake();
        now = match happening {
            TransferEnd::Silence if due < Nanos::FOREVER => now.max(due),
            _ => now + Nanos::from_micros(125),
        };
        class.wake(now, &mut |_| {});
        match happening {
            TransferEnd::Silence => {}
            TransferEnd::Client(kind) => client(&mut class, now, kind),
            TransferEnd::Fault(fault) => {
                if let Some((endpoint, wanted)) = pending.pop_front() {
                    end(&mut class, now, endpoint, &wanted, Err(fault));
                    if endpoint != 0 {
                        cancel(&mut class, now, &mut pending, endpoint);
                    }
                }
                if fault == TransferFault::Gone {
                    return;
                }
            }
            TransferEnd::Done(answer) => {
                if let Some((endpoint, wanted)) = pending.pop_front() {
                    let bytes = moved(&wanted, answer);
                    end(&mut class, now, endpoint, &wanted, Ok(&bytes));
                }
            }
        }
    }
}

/// Ends all that is pending on an endpoint.
fn cancel<C: Class>(class: &mut C, now: Nanos, pending: &mut VecDeque<Pending>, endpoint: u8) {
    let (ended, left): (Vec<Pending>, Vec<Pending>) =
        pending.drain(..).partition(|(own, _)| *own == endpoint);
    pending.extend(left);
    for (endpoint, wanted) in ended {
        end(class, now, endpoint, &wanted, Err(TransferFault::Cancelled));
    }
}

fn end<C: Class>(
    class: &mut C,
    now: Nanos,
    endpoint: u8,
    wanted: &Wanted,
    result: Result<&[u8], TransferFault>,
) {
    let Wanted::Shared(place, _) = wanted else {
        return class.complete(now, Completion { endpoint, result }, &mut |_| {});
    };
    let from_device = endpoint & 0x80 != 0;
    let head = result.ok().filter(|_| from_device).unwrap_or_default();
    let head = &head[..head.len().min(HEAD)];
    let landed = Landed { endpoint, place: *place, result: result.map(<[u8]>::len), head };
    class.landed(now, landed, &mut |_| {});
}

/// The descriptors of a device.
#[derive(Clone, Debug)]
pub struct About {
    device: DeviceDescriptor,
    set: Vec<u8>,
    speed: Speed,
}

impl About {
    /// Returns the device descriptor and the configuration as bytes.
    #[must_use]
    pub fn bytes(&self) -> (Vec<u8>, Vec<u8>) {
        (self.device.bytes(self.speed), self.set.clone())
    }
}

/// Reads the descriptors of a model, and configures it.
///
/// # Panics
/// If the model is not sound.
pub fn enumerate(device: &mut dyn UsbDevice) -> About {
    let (now, speed) = (Nanos::ZERO, device.speed());
    device.reset(now);
    let mut get = |kind, number, length| {
        let setup = Setup::get_descriptor(kind, number, 0, length);
        device.control(now, setup, &[]).expect("a model answers")
    };
    let about = DeviceDescriptor::parse(&get(DEVICE, 0, 18), speed).expect("a device");
    // A network adapter has its own class in the last one.
    let last = about.configurations - 1;
    let header = ConfigurationHeader::parse(&get(CONFIGURATION, last, 9)).expect("a configuration");
    let set = get(CONFIGURATION, last, header.total);
    let configure = Setup::set_configuration(header.value);
    device.control(now, configure, &[]).expect("a model is configured");
    About { device: about, set, speed }
}

/// Drives the class that a device leads to, as the USB server finds it.
///
/// # Panics
/// If no class fits the device.
pub fn device(about: &About, fate: &mut dyn DeviceFate) {
    let set = &Configuration::parse_once(&about.set, about.speed).expect("a sound model");
    let interface = |fd| InterfaceClass::find(Nanos::ZERO, &about.device, set, fd);
    if let Some(class) = interface(true).or_else(|| interface(false)) {
        return drive(class, fate, &mut can);
    }
    if let Some(class) = CdcAcm::find(set, LineCoding::new(115_200)) {
        return drive(class, fate, &mut |class, _, kind| {
            class.write(&[7; 256][..kind.into()]);
        });
    }
    if let Some(class) = Keyboard::find(set) {
        return drive(class, fate, &mut |class, _, kind| class.set_lights(kind));
    }
    if let Some(class) = MassStorage::find(set) {
        return drive(class, fate, &mut store);
    }
    let camera = modes(set).last().and_then(|mode| Camera::find(set, mode));
    if let Some(class) = camera {
        return drive(class, fate, &mut |class, _, kind| match kind {
            12 => class.stop(),
            13 => class.share(),
            kind => class.lend(kind.into()),
        });
    }
    if let Some(class) = Hub::find(set, 0) {
        return drive(class, fate, &mut |class, _, kind| {
            class.reset(kind - 12);
        });
    }
    if let Some(class) = Ethernet::find(set) {
        return drive(class, fate, &mut |class, _, kind| {
            class.lend(kind.into(), 2_048);
            class.send(kind.into(), 8 * u32::from(kind));
        });
    }
    let class = Link::find(set).expect("a class fits each model");
    drive(class, fate, &mut |class: &mut Link, _, kind| {
        class.fill(kind.into(), 2_048);
        class.send(kind.into(), 8 * u32::from(kind));
    });
}

/// Refusals are as good an answer as any.
fn can(class: &mut InterfaceClass, now: Nanos, kind: u8) {
    let channel = kind & 3;
    let frame = frame::standard(0x123).and_then(|id| CanFrame::data(id, &[1, 2, 3]));
    let _ = match (kind >> 2 & 7, BitRate::new(500_000), frame) {
        (3, Ok(rate), _) => {
            let data = BitRate::of_data(2_000_000).ok().filter(|_| kind & 0x20 != 0);
            class
                .open(now, channel, BusRates { rate, sample_point: 800, data }, Mode::Normal)
                .is_ok()
        }
        (4, ..) => class.close(now, channel).is_ok(),
        (5, ..) => class.ask_chip_state(channel).is_ok(),
        (6, _, Ok(frame)) => {
            let long = FdFrame::new(frame.id(), &[7; 64]);
            long.is_ok_and(|long| class.send_fd(channel, &long).is_ok())
        }
        (_, _, Ok(frame)) => class.send(channel, &frame).is_ok(),
        _ => false,
    };
}

fn store(class: &mut MassStorage, _: Nanos, kind: u8) {
    use diapason_usb::class::mass_storage::ScsiCommand::{
        Inquiry, ReadCapacity, RequestSense, TestUnitReady,
    };
    let block = u32::from(kind);
    let _ = match kind {
        12 => class.begin(Inquiry),
        13 => class.begin(TestUnitReady),
        14 => class.begin(ReadCapacity),
        15 => class.begin(RequestSense),
        16..=90 => class.read(block, 1),
        91..=170 => class.read_to(block, 2, 4),
        _ => class.write(block, &[5; 512]),
    };
}
