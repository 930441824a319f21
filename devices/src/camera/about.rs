//! The descriptors of the camera: pictures, speeds, alternate settings.

use super::IN;
use crate::bridge::superspeed_bos;
use crate::descriptors::Descriptors;
use diapason_usb::Speed;
use diapason_usb::descriptor::{self, build};
use diapason_usb::setup::descriptor_type::CLASS_INTERFACE;

/// A picture of two bytes a pixel (YUY2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameFormat {
    pub width: u16,
    pub height: u16,
    /// Times from frame to frame, in 100 ns; the first is the usual one.
    pub intervals: [u32; 2],
}

impl FrameFormat {
    /// Bytes of a picture.
    #[must_use]
    pub fn bytes(&self) -> usize {
        2 * usize::from(self.width) * usize::from(self.height)
    }
}

/// The formats of pictures.
pub const FRAMES: [FrameFormat; 3] = [
    FrameFormat { width: 1_920, height: 1_080, intervals: [200_000, 400_000] },
    FrameFormat { width: 1_280, height: 720, intervals: [200_000, 400_000] },
    FrameFormat { width: 640, height: 480, intervals: [200_000, 333_333] },
];

/// Packets in an interval: `burst` + 1, `mult` + 1 times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bursts {
    pub burst: u8,
    pub mult: u8,
}

impl Bursts {
    /// Bytes of an interval.
    #[must_use]
    pub fn bytes(self) -> usize {
        super::PACKET * (usize::from(self.burst) + 1) * (usize::from(self.mult) + 1)
    }
}

/// The alternate settings from 1 on.
pub const ALTERNATES: [Bursts; 5] = [
    Bursts { burst: 0, mult: 0 },
    Bursts { burst: 3, mult: 0 },
    Bursts { burst: 10, mult: 0 },
    Bursts { burst: 10, mult: 1 },
    Bursts { burst: 10, mult: 2 },
];

/// The code of YUY2.
const YUY2: [u8; 16] =
    [0x59, 0x55, 0x59, 0x32, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71];
const CLOCK: u32 = 48_000_000;

pub(super) fn descriptors() -> Descriptors {
    let device = descriptor::DeviceDescriptor {
        usb: 0x0300,
        class: 0xef,
        subclass: 2,
        protocol: 1,
        packet: 512,
        vendor: 0x32e4,
        product: 0x0291,
        version: 0x0100,
        texts: [0, 1, 2],
        configurations: 1,
    };
    let mut configuration =
        build::Configuration::new(1).association(0, 2, [14, 3, 0]).with(control()).with(formats());
    for (alternate, bursts) in (1..).zip(ALTERNATES) {
        let endpoint = build::isochronous(IN, 1_024, 1).bursts(bursts.burst, bursts.mult);
        let setting = build::Interface::new(1).alternate(alternate).class(14, 2, 0);
        configuration = configuration.with(setting.endpoint(endpoint));
    }
    Descriptors {
        device: device.bytes(Speed::Super),
        configuration: configuration.bytes(Speed::Super),
        strings: ["USB 3 camera", "000000000001"].map(String::from).into(),
        bos: superspeed_bos(),
        ..Descriptors::default()
    }
}

/// The control interface: a header, the sensor, and the way to the host.
fn control() -> build::Interface {
    let [c0, c1, c2, c3] = CLOCK.to_le_bytes();
    let total = 13 + 18 + 9;
    build::Interface::new(0)
        .class(14, 1, 0)
        .extra(CLASS_INTERFACE, &[1, 0x10, 0x01, total, 0, c0, c1, c2, c3, 1, 1])
        .extra(CLASS_INTERFACE, &[2, 1, 0x01, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0])
        .extra(CLASS_INTERFACE, &[3, 2, 0x01, 0x01, 0, 1, 0])
}

/// Setting 0 of the streaming interface: no bandwidth, all formats.
fn formats() -> build::Interface {
    let frames: Vec<Vec<u8>> =
        (1..).zip(FRAMES).map(|(index, frame)| picture(index, frame)).collect();
    let colours = [13, 1, 1, 4];
    // Each with the two bytes before its body.
    let parts = frames.iter().map(|frame| frame.len() + 2);
    let total = (14 + 27 + parts.sum::<usize>() + colours.len() + 2) as u16;
    let [t0, t1] = total.to_le_bytes();
    let mut format = vec![4, 1, FRAMES.len() as u8];
    format.extend(YUY2);
    format.extend([16, 1, 0, 0, 0, 0]);
    let interface = build::Interface::new(1)
        .class(14, 2, 0)
        .extra(CLASS_INTERFACE, &[1, 1, t0, t1, IN, 0, 2, 0, 0, 0, 1, 0])
        .extra(CLASS_INTERFACE, &format);
    let all = frames.iter().fold(interface, |all, frame| all.extra(CLASS_INTERFACE, frame));
    all.extra(CLASS_INTERFACE, &colours)
}

fn picture(index: u8, frame: FrameFormat) -> Vec<u8> {
    let [usual, slow] = frame.intervals;
    let rate = |interval: u32| (frame.bytes() as u64 * 8 * 10_000_000 / u64::from(interval)) as u32;
    let mut body = vec![5, index, 0];
    body.extend(frame.width.to_le_bytes());
    body.extend(frame.height.to_le_bytes());
    for word in [rate(slow), rate(usual), frame.bytes() as u32, usual] {
        body.extend(word.to_le_bytes());
    }
    body.push(2);
    body.extend(usual.to_le_bytes());
    body.extend(slow.to_le_bytes());
    body
}
