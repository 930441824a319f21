//! A class at work: what its clients would want of it, and the class without its type.

use diapason_abi::Nanos;
use diapason_can::{BitRate, CanFrame, FdFrame, frame};
use diapason_random::Random;
use diapason_usb::class::can::{BusRates, InterfaceClass, Mode};
use diapason_usb::class::cdc_acm::{CdcAcm, LineCoding};
use diapason_usb::class::cdc_ecm::Ethernet;
use diapason_usb::class::hid::Keyboard;
use diapason_usb::class::hub::Hub;
use diapason_usb::class::link::Link;
use diapason_usb::class::mass_storage::{MassStorage, ScsiCommand};
use diapason_usb::class::uvc::{self, modes};
use diapason_usb::class::{Class, Completion, Landed, Request};
use diapason_usb::descriptor::{self, Configuration};

/// A class, whatever it tells.
pub trait Work {
    fn request(&mut self, now: Nanos) -> Option<Request<'_>>;
    fn complete(&mut self, now: Nanos, done: Completion<'_>);
    fn landed(&mut self, now: Nanos, done: Landed<'_>);
    fn next_wake(&self) -> Nanos;
    fn wake(&mut self, now: Nanos);
    /// Makes a random call of the client.
    fn client(&mut self, random: &mut Random, now: Nanos);
}

/// A class and a client that asks at random.
struct With<C, F> {
    class: C,
    client: F,
}

impl<C: Class, F: FnMut(&mut C, &mut Random, Nanos)> Work for With<C, F> {
    fn request(&mut self, now: Nanos) -> Option<Request<'_>> {
        self.class.request(now)
    }

    fn complete(&mut self, now: Nanos, done: Completion<'_>) {
        self.class.complete(now, done, &mut |_| {});
    }

    fn landed(&mut self, now: Nanos, done: Landed<'_>) {
        self.class.landed(now, done, &mut |_| {});
    }

    fn next_wake(&self) -> Nanos {
        self.class.next_wake()
    }

    fn wake(&mut self, now: Nanos) {
        self.class.wake(now, &mut |_| {});
    }

    fn client(&mut self, random: &mut Random, now: Nanos) {
        (self.client)(&mut self.class, random, now);
    }
}

fn with<C: Class>(
    class: C,
    client: impl FnMut(&mut C, &mut Random, Nanos) + 'static,
) -> Box<dyn Work> {
    Box::new(With { class, client })
}

/// Returns the class for a device, in the order in which the server looks for one.
pub fn find(
    about: &descriptor::DeviceDescriptor,
    set: &Configuration<'_>,
    now: Nanos,
) -> Option<Box<dyn Work>> {
    let interface = |fd| InterfaceClass::find(now, about, set, fd);
    if let Some(interface) = interface(true).or_else(|| interface(false)) {
        return Some(with(interface, can));
    }
    if let Some(line) = CdcAcm::find(set, LineCoding::new(115_200)) {
        return Some(with(line, |line, random, _| {
            line.write(&[7; 600][..random.index(600)]);
        }));
    }
    if let Some(keyboard) = Keyboard::find(set) {
        return Some(with(keyboard, |keys, random, _| keys.set_lights(random.bits() as u8)));
    }
    if let Some(disk) = MassStorage::find(set) {
        return Some(with(disk, store));
    }
    let camera = modes(set).last().and_then(|mode| uvc::Camera::find(set, mode));
    if let Some(camera) = camera {
        return Some(with(camera, |_, _, _| {}));
    }
    if let Some(hub) = Hub::find(set, 0) {
        return Some(with(hub, |hub, random, _| {
            hub.reset(random.below(16) as u8);
        }));
    }
    if let Some(network) = Ethernet::find(set) {
        return Some(with(network, |network, random, _| {
            network.lend(random.bits() as u32, 2048);
            network.send(random.bits() as u32, random.below(2000) as u32);
        }));
    }
    Link::find(set).map(|link| {
        with(link, |link: &mut Link, random: &mut Random, _| {
            link.fill(random.bits() as u32, 2048);
            link.send(random.bits() as u32, random.below(900) as u32);
        })
    })
}

/// Refusals are as good an answer as any.
fn can(can: &mut InterfaceClass, random: &mut Random, now: Nanos) {
    let channel = random.below(6) as u8;
    let frame = CanFrame::data(frame::standard(0x123).unwrap(), &[1, 2, 3]).unwrap();
    let long = FdFrame::new(frame.id(), &[5; 64]).unwrap();
    match random.below(8) {
        0 | 1 => {
            let rate = BitRate::new(random.pick(&[500_000, 83_333])).unwrap();
            let data = BitRate::of_data(random.pick(&[2_000_000, 1_000_003])).ok();
            let data = data.filter(|_| random.one_in(2));
            let _ =
                can.open(now, channel, BusRates { rate, sample_point: 800, data }, Mode::Normal);
        }
        2 => drop(can.close(now, channel)),
        3 => drop(can.ask_chip_state(channel)),
        4 | 5 => drop(can.send_fd(channel, &long)),
        _ => drop(can.send(channel, &frame)),
    }
}

fn store(disk: &mut MassStorage, random: &mut Random, _: Nanos) {
    let block = random.below(5000) as u32;
    let _ = match random.below(7) {
        0 => disk.begin(ScsiCommand::Inquiry),
        1 => disk.begin(ScsiCommand::TestUnitReady),
        2 => disk.begin(ScsiCommand::ReadCapacity),
        3 => disk.begin(ScsiCommand::RequestSense),
        4 => disk.read(block, 1 + random.below(8) as u16),
        5 => disk.read_to(block, 1 + random.below(128) as u16, 0),
        _ => disk.write(block, &[5; 1024]),
    };
}
