//! The other classes against their device models.

use super::host::{connect, connect_in, enumerate};
use diapason_abi::Nanos;
use diapason_devices::UsbDevice;
use diapason_devices::bridge::bridge;
use diapason_devices::camera::{self, CameraModel};
use diapason_devices::disk::Disk;
use diapason_devices::hub::HubModel;
use diapason_devices::keyboard::{self, Keys};
use diapason_devices::network::{ADDRESS, Adapter};
use diapason_devices::sensor::{PACKET, Sensor, packet};
use diapason_usb::Speed;
use diapason_usb::class::cdc_acm::{CdcAcm, LineCoding, SerialEvent as Line};
use diapason_usb::class::cdc_ecm::{Ethernet, NetworkEvent as Net};
use diapason_usb::class::hid::{Keyboard, KeyboardEvent as Key};
use diapason_usb::class::hub::{self, HubEvent as Plug};
use diapason_usb::class::link::{Link, LinkEvent};
use diapason_usb::class::mass_storage::{DiskEvent as Stored, MassStorage, Refused, ScsiCommand};
use diapason_usb::class::uvc::{self, CameraEvent as Video, Piece, modes};
use diapason_usb::descriptor::Configuration;

/// Twenty packets of a sensor, each whole and in order.
#[test]
fn the_sensor_is_heard() {
    let coding = LineCoding::new(115_200);
    let mut host = connect(Sensor::default(), |set| CdcAcm::find(set, coding));
    let (mut bytes, mut opened) = (Vec::new(), 0);
    host.run(Nanos::from_millis(52), &mut |event| match event {
        Line::Opened => opened += 1,
        Line::Data(data) => bytes.extend(data),
        Line::State(_) => {}
        other => panic!("{other:?}"),
    });
    assert_eq!((opened, host.device.dropped()), (1, 0));
    let packets: Vec<&[u8]> = bytes.chunks_exact(PACKET).collect();
    assert!((18..=21).contains(&packets.len()), "{}", packets.len());
    for (number, got) in (0..).zip(packets) {
        let time = u64::from_le_bytes(got[16..24].try_into().unwrap());
        assert_eq!(got, packet(number, Nanos(time)));
    }
}

#[test]
fn the_keyboard_is_heard() {
    let at = |millis, modifiers, key| Keys {
        time: Nanos::from_millis(millis),
        modifiers,
        keys: [key, 0, 0, 0, 0, 0],
    };
    let device = keyboard::KeyboardModel::new(vec![at(1, 2, 4), at(2, 0, 4), at(3, 0, 0)]);
    let mut host = connect(device, Keyboard::find);
    host.class.set_lights(1);
    let mut told = Vec::new();
    host.run(Nanos::from_millis(5), &mut |event| told.push(event));
    let key = |usage, down| Key::Key { usage, down };
    assert_eq!(told, [Key::Opened, key(0xe1, true), key(4, true), key(0xe1, false), key(4, false)]);
    assert_eq!(host.device.lights(), 1);
}

#[test]
fn the_disk_keeps_what_is_written() {
    let mut host = connect(Disk::new(64), MassStorage::find);
    let mut told = Vec::new();
    let mut micros = 0;
    let mut run = |host: &mut super::host::Host<Disk, MassStorage>| {
        micros += 10;
        host.run(Nanos::from_micros(micros), &mut |event| {
            told.push(match event {
                Stored::Read { data, .. } => format!("{:?}", &data[508..516]),
                other => format!("{other:?}"),
            });
        });
        told.pop().expect("an event")
    };
    host.class.begin(ScsiCommand::Inquiry).unwrap();
    assert!(run(&mut host).starts_with("Inquiry(Inquiry { kind: 0"));
    host.class.begin(ScsiCommand::TestUnitReady).unwrap();
    assert_eq!(run(&mut host), "Ready");
    host.class.begin(ScsiCommand::ReadCapacity).unwrap();
    assert_eq!(run(&mut host), "Capacity(Capacity { blocks: 64, block_bytes: 512 })");
    let data: Vec<u8> = (0..1024u32).map(|n| (n / 4) as u8).collect();
    host.class.write(62, &data).unwrap();
    assert_eq!(run(&mut host), "Written { block: 62 }");
    assert_eq!(host.device.bytes()[62 * 512..], data);
    host.class.read(62, 2).unwrap();
    assert_eq!(run(&mut host), "[127, 127, 127, 127, 128, 128, 128, 128]");
}

#[test]
fn the_disk_reads_and_writes_shared_memory() {
    let mut host = connect(Disk::new(256), MassStorage::find);
    let mut now = Nanos::ZERO;
    let mut run = |host: &mut super::host::Host<Disk, MassStorage>| {
        now += Nanos::from_millis(1);
        let mut told = Vec::new();
        host.run(now, &mut |event| told.push(format!("{event:?}")));
        told.pop().expect("an event")
    };
    host.class.begin(ScsiCommand::ReadCapacity).unwrap();
    run(&mut host);
    let data: Vec<u8> = (0..65_536u32).map(|n| (n / 7) as u8).collect();
    host.shared.insert(512, data.clone());
    host.class.write_from(100, 128, 512).unwrap();
    assert_eq!(run(&mut host), "Written { block: 100 }");
    assert_eq!(host.device.bytes()[100 * 512..228 * 512], data);
    host.class.read_to(100, 128, 4096).unwrap();
    assert_eq!(run(&mut host), "ReadTo { block: 100, place: 4096 }");
    assert!(host.shared[&4096] == data);
    assert_eq!(host.class.read_to(100, 129, 0), Err(Refused::Blocks));
    assert_eq!(host.class.write_from(200, 57, 0), Err(Refused::Blocks));
    // Its own buffer can still be read and written.
    host.class.read(100, 1).unwrap();
    assert_eq!(run(&mut host), format!("Read {{ block: 100, data: {:?} }}", &data[..512]));
}

/// With shared memory the pieces stay where they came, and nothing comes without a place.
#[test]
fn the_camera_fills_places_that_were_lent() {
    let mut host = connect(CameraModel::default(), |set| {
        let mode = modes(set).find(|mode| mode.frame == 3)?;
        let mut camera = uvc::Camera::find(set, mode)?;
        camera.share();
        Some(camera)
    });
    let (mut now, mut at, mut frames, mut lent) = (Nanos::ZERO, 0, 0u32, 0);
    let mut told = Vec::new();
    for step in 0..900 {
        if step == 160 {
            assert_eq!(frames, 0, "nothing was lent");
            for place in 0..24 {
                host.class.lend(place);
            }
        }
        now += Nanos::from_micros(125);
        host.run(now, &mut |event| match event {
            Video::Piece(Piece::Place { place, from, bytes }) => told.push((place, from, bytes)),
            Video::Piece(Piece::End { bytes, whole, .. }) => {
                assert!(whole && bytes == 640 * 480 * 2, "{bytes}");
                frames += 1;
            }
            Video::Started { .. } => {}
            other => panic!("{other:?}"),
        });
        for (place, from, bytes) in told.drain(..) {
            let piece = &host.shared[&place][from as usize..][..bytes as usize];
            let number = at / (640 * 480 * 2);
            let place_in = at % (640 * 480 * 2);
            assert_eq!(piece[0], camera::content(number as u32, place_in), "at {at}");
            at += piece.len();
            host.class.lend(place);
            lent += 1;
        }
    }
    assert!(frames >= 3 && lent > 450, "{frames} {lent}");
    assert_eq!(host.class.counts().broken + host.class.counts().missed, 0);
}

/// Each word of a frame says which frame and which place it is.
#[test]
fn the_camera_is_seen_whole() {
    for frame in [1, 2] {
        let mut host = connect(CameraModel::default(), |set| {
            let mode = modes(set).find(|mode| mode.frame == frame)?;
            uvc::Camera::find(set, mode)
        });
        let (mut at, mut number, mut frames, mut started) = (0usize, 0u32, 0u32, None);
        host.run(Nanos::from_millis(90), &mut |event| match event {
            Video::Started { frame_bytes, interval_bytes, .. } => {
                started = Some((frame_bytes, interval_bytes));
            }
            Video::Piece(Piece::Data(bytes)) => {
                if at == 0 {
                    number = u32::from_le_bytes(bytes[..4].try_into().unwrap());
                }
                let good = (at..).zip(bytes).all(|(at, b)| *b == camera::content(number, at));
                assert!(good, "frame {number} at {at}");
                at += bytes.len();
            }
            Video::Piece(Piece::End { bytes, whole, .. }) => {
                assert!(whole && bytes as usize == at && number == frames);
                (at, frames) = (0, frames + 1);
            }
            other => panic!("{other:?}"),
        });
        assert!(frames >= 3, "{frames}");
        assert_eq!((host.class.counts().whole, host.class.counts().broken), (frames.into(), 0));
        assert!(started.is_some());
    }
}

#[test]
fn the_hub_tells_who_comes_and_goes() {
    for (superspeed, speed) in [(false, Speed::Full), (true, Speed::Super)] {
        let child: Box<dyn UsbDevice> = match superspeed {
            true => Box::new(CameraModel::default()),
            false => Box::new(keyboard::KeyboardModel::new(Vec::new())),
        };
        assert_eq!(child.speed(), speed);
        let mut host = connect(HubModel::new(superspeed, 4), |set| hub::Hub::find(set, 0));
        let mut told = Vec::new();
        host.run(Nanos::from_millis(50), &mut |event| told.push(event));
        assert!(matches!(told[..], [Plug::Ready(about)] if about.ports == 4), "{told:?}");
        told.clear();
        assert!(host.device.plug(host.now, 3, child).is_ok());
        host.run(Nanos::from_millis(300), &mut |event| told.push(event));
        assert_eq!(told, [Plug::Connected { port: 3 }]);
        told.clear();
        assert!(host.class.reset(3));
        host.run(Nanos::from_millis(500), &mut |event| told.push(event));
        assert_eq!(told, [Plug::Enabled { port: 3, speed }]);
        assert!(host.device.child(3).is_some());
        told.clear();
        assert!(host.device.unplug(host.now, 3).is_some());
        host.run(Nanos::from_millis(600), &mut |event| told.push(event));
        assert_eq!(told, [Plug::Disconnected { port: 3 }]);
    }
}

/// A hundred messages each way, of all lengths that matter to packets.
#[test]
fn both_ends_of_the_bridge_talk() {
    const PLACE: usize = 2_048;
    let (here, there) = bridge(8 * 1024);
    let mut ends = [connect(here, Link::find), connect(there, Link::find)];
    // An end that starts resets the pipes: both do before anybody sends.
    for end in &mut ends {
        end.run(Nanos::from_micros(100), &mut |event| panic!("{event:?}"));
    }
    let mut got = [0u32; 2];
    for number in 0..100u32 {
        let length = 1 + number as usize * 97 % 1_023;
        // The last fills its place to the full packet.
        let length = if number == 99 { PLACE } else { length };
        for end in &mut ends {
            end.shared.insert(number, vec![number as u8; length]);
            end.shared.insert(1_000 + number, vec![0; PLACE]);
            assert!(end.class.fill(1_000 + number, PLACE as u32));
            assert!(end.class.send(number, length as u32));
        }
        for turn in 0..4 {
            let until = Nanos::from_micros(500 * u64::from(4 * number + turn + 1));
            for (end, got) in ends.iter_mut().zip(&mut got) {
                let mut came = Vec::new();
                end.run(until, &mut |event| match event {
                    LinkEvent::Came { place, bytes } => came.push((place, bytes)),
                    LinkEvent::Sent { place } => assert_eq!(place, number),
                    other => panic!("{other:?}"),
                });
                for (place, bytes) in came {
                    assert_eq!((place, bytes), (1_000 + *got, length as u32));
                    assert_eq!(end.shared[&place], vec![*got as u8; length]);
                    *got += 1;
                }
            }
        }
    }
    assert_eq!(got, [100, 100]);
}

/// Returns an ARP request for 10.0.2.2, from the device's address to everybody.
fn question() -> Vec<u8> {
    let (everybody, nobody) = ([0xff; 6], [0; 6]);
    let arp = [8, 6, 0, 1, 8, 0, 6, 4, 0, 1];
    let (from, to) = ([10, 0, 2, 15], [10, 0, 2, 2]);
    [&everybody[..], &ADDRESS, &arp, &ADDRESS, &from, &nobody, &to].concat()
}

#[test]
fn the_network_device_carries_frames_in_its_second_configuration() {
    let mut device = Adapter::default();
    let (_, bytes) = enumerate(&mut device, 0);
    let first = Configuration::parse_once(&bytes, Speed::High).unwrap();
    assert!(Ethernet::find(&first).is_none());
    assert!(CdcAcm::find(&first, LineCoding::new(9_600)).is_none(), "nor is it a line");
    let mut host = connect_in(device, 1, Ethernet::find);
    let mut told = Vec::new();
    host.shared.insert(1, vec![0; 2048]);
    host.shared.insert(2, question());
    assert!(host.class.lend(1, 2048) && host.class.send(2, 42));
    host.run(Nanos::from_millis(1), &mut |event| told.push(event));
    assert_eq!(
        told,
        [
            Net::Opened { address: ADDRESS },
            Net::Sent { place: 2 },
            Net::Connected(true),
            Net::Speed { down: 100_000_000, up: 100_000_000 },
            Net::Came { place: 1, bytes: 42 },
        ]
    );
    let answer = &host.shared[&1];
    assert_eq!((&answer[..6], &answer[20..22]), (&ADDRESS[..], &[0, 2][..]));
}
