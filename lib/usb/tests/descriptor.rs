//! Descriptors: what is built is read, what devices really say is accepted, what hostile ones say
//! is refused by its name, and the numbers of contexts and schedules follow.

use diapason_abi::Nanos;
use diapason_bus::{BusInstance, Criticality, EndpointId, Transfer};
use diapason_usb::Speed;
use diapason_usb::context::EndpointKind;
use diapason_usb::descriptor::build::{
    Configuration as Make, Interface, bos, bulk, descriptor, interrupt, isochronous, languages,
    text,
};
use diapason_usb::descriptor::{
    Bos, Configuration, ConfigurationHeader, DescriptorFlaw, DeviceDescriptor, Hid, HubDescriptor,
    Items, Languages, Text, capability,
};

const SPEEDS: [Speed; 4] = [Speed::Low, Speed::Full, Speed::High, Speed::Super];

fn camera() -> Make {
    let video = Interface::new(1).class(14, 2, 0);
    Make::new(1)
        .association(0, 2, [14, 3, 0])
        .with(
            Interface::new(0)
                .class(14, 1, 0)
                .extra(0x24, &[1, 0, 1])
                .endpoint(interrupt(0x83, 16, 8)),
        )
        .with(video.clone().extra(0x24, &[1, 1]))
        .with(video.clone().alternate(1).endpoint(isochronous(0x81, 1024, 1)))
        .with(video.alternate(2).endpoint(isochronous(0x81, 1024, 1).bursts(2, 0)))
}

/// The same descriptors as a real CDC-ACM device sends them, byte by byte.
#[test]
fn a_set_is_counted_right() {
    let bytes = Make::new(1)
        .with(
            Interface::new(0)
                .class(2, 2, 1)
                .extra(0x24, &[0, 0x10, 1])
                .endpoint(interrupt(0x82, 10, 64)),
        )
        .with(Interface::new(1).class(10, 0, 0).endpoint(bulk(3, 64)).endpoint(bulk(0x84, 64)))
        .bytes(Speed::Full);
    let wire = [
        9, 2, 53, 0, 2, 1, 0, 0x80, 50, 9, 4, 0, 0, 1, 2, 2, 1, 0, 5, 0x24, 0, 0x10, 1, 7, 5, 0x82,
        3, 10, 0, 64, 9, 4, 1, 0, 2, 10, 0, 0, 0, 7, 5, 3, 2, 64, 0, 0, 7, 5, 0x84, 2, 64, 0, 0,
    ];
    assert_eq!(bytes, wire);
    let set = Configuration::parse_once(&bytes, Speed::Full).unwrap();
    let data = set.interface(1, 0).unwrap();
    assert_eq!(data.endpoint(EndpointKind::BulkOut).unwrap().address, 3);
    assert_eq!(data.endpoint(EndpointKind::BulkIn).unwrap().address, 0x84);
    let extras: Vec<_> = set.interface(0, 0).unwrap().extras().map(|raw| raw.offset).collect();
    assert_eq!(extras, [18]);
}

#[test]
fn settings_associations_and_extras_are_found() {
    for speed in [Speed::High, Speed::Super] {
        let bytes = camera().bytes(speed);
        let set = Configuration::parse_once(&bytes, speed).unwrap();
        let settings: Vec<_> = set.interfaces().map(|i| (i.number, i.alternate)).collect();
        assert_eq!(settings, [(0, 0), (1, 0), (1, 1), (1, 2)]);
        let association = set.associations().next().unwrap();
        assert_eq!((association.first, association.count, association.class), (0, 2, [14, 3, 0]));
        let stream = set.interface(1, 2).unwrap().endpoints().next().unwrap();
        assert_eq!((stream.packet, stream.burst, stream.interval_bytes), (1024, 2, 3072));
        assert_eq!(set.interface(1, 0).unwrap().extras().count(), 1);
        assert!(set.interface(2, 0).is_none());
    }
}

/// Table of the controller's fields, one endpoint of each kind and speed.
#[test]
fn contexts_have_the_numbers_of_the_table() {
    // Speed, endpoint, then interval, burst, mult, packet, payload, attempts.
    let table = [
        (Speed::Super, isochronous(0x81, 1024, 2).bursts(9, 1), [1, 9, 1, 1024, 20_480, 0]),
        // A device cannot make the schedule longer than 256 slots.
        (Speed::Super, interrupt(0x81, 64, 16), [8, 0, 0, 64, 64, 3]),
        (Speed::Super, bulk(2, 1024).bursts(15, 0), [0, 15, 0, 1024, 0, 3]),
        (Speed::High, isochronous(0x81, 1024, 1).bursts(2, 0), [0, 2, 0, 1024, 3072, 0]),
        (Speed::High, interrupt(1, 512, 4), [3, 0, 0, 512, 512, 3]),
        (Speed::High, bulk(0x82, 512), [0, 0, 0, 512, 0, 3]),
        (Speed::Full, isochronous(0x81, 1023, 1), [3, 0, 0, 1023, 1023, 0]),
        (Speed::Full, interrupt(0x81, 8, 10), [6, 0, 0, 8, 8, 3]),
        (Speed::Full, interrupt(0x81, 8, 255), [10, 0, 0, 8, 8, 3]),
        (Speed::Low, interrupt(0x81, 8, 1), [3, 0, 0, 8, 8, 3]),
    ];
    for (speed, endpoint, wanted) in table {
        let bytes = Make::new(1).with(Interface::new(0).endpoint(endpoint)).bytes(speed);
        let set = Configuration::parse_once(&bytes, speed).unwrap();
        let read = set.interfaces().next().unwrap().endpoints().next().unwrap();
        let c = read.context();
        let fields = [c.interval(), c.burst(), c.mult(), c.packet(), c.payload(), c.attempts()];
        assert_eq!((fields, c.kind()), (wanted, Some(read.kind())), "{speed:?} {endpoint:?}");
        let bus = BusInstance::new(speed);
        match read.transfer {
            Transfer::Bulk => {
                let share = read.asynchronous(EndpointId(1), None).unwrap();
                assert_eq!((share.check(&bus), share.burst), (Ok(()), wanted[1]));
            }
            _ => {
                let share = read.periodic(EndpointId(1), Criticality::High, 4).unwrap();
                assert_eq!(share.check(&bus), Ok(()));
                assert!(share.period <= 256);
                assert_eq!(share.packet * share.packets(), wanted[4]);
                assert_eq!(share.longest_period, (4 * share.period).min(1 << 15));
            }
        }
    }
}

#[test]
fn devices_of_each_speed() {
    for (speed, packet, byte) in
        [(Speed::Low, 8, 8), (Speed::Full, 64, 64), (Speed::High, 64, 64), (Speed::Super, 512, 9)]
    {
        let device = DeviceDescriptor {
            usb: 0x200,
            class: 0xff,
            subclass: 1,
            protocol: 2,
            packet,
            vendor: 0xbfd,
            product: 0x105,
            version: 0x100,
            texts: [1, 2, 3],
            configurations: 1,
        };
        let bytes = device.bytes(speed);
        assert_eq!((bytes.len(), bytes[7]), (18, byte));
        assert_eq!(DeviceDescriptor::parse(&bytes, speed), Ok(device));
        assert_eq!(DeviceDescriptor::packet(&bytes[..8], speed), Ok(packet));
        for wrong in [0, 7, 255] {
            let mut bytes = bytes.clone();
            bytes[7] = wrong;
            let refusal = DeviceDescriptor::parse(&bytes, speed).unwrap_err();
            assert_eq!(refusal.reason, DescriptorFlaw::PacketSize(wrong.into()));
        }
    }
}

#[test]
fn texts_capabilities_and_hubs_come_back() {
    assert_eq!(Text::parse(&text("Müller ∞")).unwrap().to_string(), "Müller ∞");
    assert_eq!(Text::parse(&text("a\u{1b}[2Jb\n")).unwrap().to_string(), "a[2Jb");
    let all = languages(&[0x409, 0x407]);
    assert_eq!(Languages::parse(&all).unwrap().iter().collect::<Vec<_>>(), [0x409, 0x407]);
    for wrong in [&[2, 3][..], &[3, 3, 9], &[1, 3, 9, 4], &[0, 3], &[255, 3, 9, 4], &[4, 2, 9, 4]] {
        assert!(Languages::parse(wrong).is_err(), "{wrong:?}");
    }
    let bytes =
        bos(&[(capability::USB2_EXTENSION, &[2, 0, 0, 0]), (capability::SUPERSPEED, &[0; 7])]);
    assert_eq!(Bos::total(&bytes), Ok(bytes.len() as u16));
    let kinds: Vec<_> = Bos::parse(&bytes).unwrap().capabilities().map(|c| c.kind).collect();
    assert_eq!(kinds, [2, 3]);
    for (superspeed, ports) in [(false, 4), (false, 15), (true, 4)] {
        let hub = HubDescriptor {
            superspeed,
            ports,
            characteristics: 0x29,
            power_good: Nanos::from_millis(100),
            fixed: 4,
        };
        assert_eq!(HubDescriptor::parse(&hub.bytes()), Ok(hub));
        assert_eq!(hub.think_time(), 1);
        // QEMU's hub of eight ports: its second bitmap is a byte short.
        if !superspeed {
            let bytes = hub.bytes();
            assert!(HubDescriptor::parse(&bytes[..bytes.len() - 1]).is_err());
            let mut short = bytes[..bytes.len() - 1].to_vec();
            short[0] -= 1;
            assert_eq!(HubDescriptor::parse(&short), Ok(hub));
        }
        let mut many = hub.bytes();
        many[2] = 255;
        assert_eq!(HubDescriptor::parse(&many).unwrap_err().reason, DescriptorFlaw::Ports(255));
    }
}

/// The layout of the boot keyboard in the HID specification, appendix B.
const KEYBOARD: [u8; 63] = [
    0x05, 0x01, 0x09, 0x06, 0xa1, 0x01, 0x05, 0x07, 0x19, 0xe0, 0x29, 0xe7, 0x15, 0x00, 0x25, 0x01,
    0x75, 0x01, 0x95, 0x08, 0x81, 0x02, 0x95, 0x01, 0x75, 0x08, 0x81, 0x01, 0x95, 0x05, 0x75, 0x01,
    0x05, 0x08, 0x19, 0x01, 0x29, 0x05, 0x91, 0x02, 0x95, 0x01, 0x75, 0x03, 0x91, 0x01, 0x95, 0x06,
    0x75, 0x08, 0x15, 0x00, 0x25, 0x65, 0x05, 0x07, 0x19, 0x00, 0x29, 0x65, 0x81, 0x00, 0xc0,
];

#[test]
fn reports_are_measured_and_hostile_ones_refused() {
    let (items, bits) = Items::parse(&KEYBOARD).unwrap();
    assert_eq!((items.count(), bits), (32, [64, 8, 0]));
    let huge = [0x77, 0xff, 0xff, 0xff, 0xff, 0x97, 0xff, 0xff, 0xff, 0xff, 0x81, 2];
    let open = [0xa1, 1, 0xa1, 2, 0xc0];
    let closed = [0xc0];
    let cut = [0x95, 1, 0x77, 1, 2];
    let deep = [0xa1, 1].repeat(1000);
    for wrong in [&huge[..], &open, &closed, &cut, &deep] {
        assert_eq!(Items::parse(wrong).unwrap_err().reason, DescriptorFlaw::Report);
    }
    let bytes = Make::new(1)
        .with(Interface::new(0).class(3, 1, 1).hid(0x111, 0, 63).endpoint(interrupt(0x81, 8, 10)))
        .bytes(Speed::Low);
    let set = Configuration::parse_once(&bytes, Speed::Low).unwrap();
    let raw = set.interfaces().next().unwrap().extras().next().unwrap();
    assert_eq!(Hid::parse(raw).unwrap(), Hid { version: 0x111, country: 0, report: 63 });
}

#[test]
fn a_second_reading_that_differs_is_refused() {
    let bytes = camera().bytes(Speed::High);
    let first = ConfigurationHeader::parse(&bytes[..9]).unwrap();
    assert!(Configuration::parse(first, &bytes, Speed::High).is_ok());
    let mut other = bytes.clone();
    other[5] = 2;
    let refusal = Configuration::parse(first, &other, Speed::High).unwrap_err();
    assert_eq!((refusal.offset, refusal.reason), (0, DescriptorFlaw::Changed));
    let short = Configuration::parse(first, &bytes[..40], Speed::High).unwrap_err();
    assert_eq!(short.reason, DescriptorFlaw::PastEnd { length: bytes.len(), left: 40 });
}

/// Each speed refuses endpoints that it does not have, and no other speed does.
#[test]
fn each_speed_has_its_endpoints() {
    let cases = [
        (bulk(1, 8), [false, true, false, false]),
        (bulk(1, 512), [false, false, true, false]),
        (bulk(1, 1024), [false, false, false, true]),
        (interrupt(0x81, 8, 255), [true, true, false, false]),
        (interrupt(0x81, 1024, 16), [false, false, true, true]),
        (isochronous(0x81, 1023, 16), [false, true, true, true]),
        (isochronous(0x81, 1024, 17), [false; 4]),
        (isochronous(0x81, 1025, 1), [false; 4]),
        (interrupt(0x81, 0, 1), [false; 4]),
        (isochronous(0x81, 0, 1), [false, true, true, true]),
    ];
    for (endpoint, wanted) in cases {
        for (speed, wanted) in SPEEDS.into_iter().zip(wanted) {
            let bytes = Make::new(1).with(Interface::new(0).endpoint(endpoint)).bytes(speed);
            let read = Configuration::parse_once(&bytes, speed);
            assert_eq!(read.is_ok(), wanted, "{endpoint:?} {speed:?}: {:?}", read.err());
        }
    }
}

/// An unknown descriptor in the middle of an interface is passed over, not lost.
#[test]
fn what_is_unknown_stays_readable() {
    let bytes = Make::new(1).with(Interface::new(0).extra(0x77, &[1, 2, 3])).bytes(Speed::High);
    let set = Configuration::parse_once(&bytes, Speed::High).unwrap();
    let raw = set.interfaces().next().unwrap().descriptors().next().unwrap();
    assert_eq!((raw.kind(), raw.bytes), (0x77, &descriptor(0x77, &[1, 2, 3])[..]));
}
