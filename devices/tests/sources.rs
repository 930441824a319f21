//! Devices that make data by themselves: the sensor, the camera, the keyboard.

use crate::support::{Random, configure, hostile, read};
use diapason_abi::Nanos;
use diapason_devices::camera::{self, ALTERNATES, CameraModel, HEADER, flag};
use diapason_devices::instrument::{self, Instrument};
use diapason_devices::keyboard::{self, KeyboardModel, Keys};
use diapason_devices::sensor::{self, PACKET, PERIOD, Sensor};
use diapason_devices::{Answer, Stall, UsbDevice};
use diapason_usb::Setup;

const MS: Nanos = Nanos::from_millis(1);

fn request(kind: u8, request: u8, value: u16, index: u16, length: u16) -> Setup {
    Setup { kind, request, value, index, length }
}

#[test]
fn the_sensor_sends_while_its_port_is_open_and_counts_what_it_drops() {
    let mut sensor = Sensor::default();
    configure(&mut sensor, Nanos::ZERO);
    assert_eq!(
        (sensor.next_change(), read(&mut sensor, MS, sensor::IN, 512)),
        (Nanos::FOREVER, None)
    );
    assert_eq!(sensor.control(MS, request(0x21, 0x22, 3, 0, 0), &[]), Ok(Vec::new()));
    let news = read(&mut sensor, MS, sensor::NEWS, 16).unwrap();
    assert_eq!(news, [0xa1, 0x20, 0, 0, 0, 0, 2, 0, 3, 0]);
    for number in 0..100u64 {
        let made = MS + Nanos(PERIOD.0 * (number + 1));
        assert_eq!(
            (sensor.next_change(), read(&mut sensor, made - Nanos(1), sensor::IN, 512)),
            (made, None)
        );
        let packet = read(&mut sensor, made, sensor::IN, 512).unwrap();
        assert_eq!((packet.len(), &packet[..8]), (PACKET, b"DIAPASON".as_slice()));
        assert_eq!(
            (packet[8..16].to_vec(), packet[16..24].to_vec()),
            (number.to_le_bytes().to_vec(), made.0.to_le_bytes().to_vec())
        );
        assert_eq!(packet, sensor::packet(number, made));
    }
    // 20 packets for 8 places: the first eight stay, and the host is told.
    let late = MS + Nanos(PERIOD.0 * 120);
    sensor.advance(late);
    assert_eq!(sensor.dropped(), 12);
    assert_eq!(read(&mut sensor, late, sensor::NEWS, 16).unwrap()[8], 0x43);
    for number in 100..108u64 {
        assert_eq!(read(&mut sensor, late, sensor::IN, 512).unwrap()[8..16], number.to_le_bytes());
    }
    assert_eq!(sensor.control(late, request(0x21, 0x22, 0, 0, 0), &[]), Ok(Vec::new()));
    assert_eq!(
        (sensor.next_change(), read(&mut sensor, late, sensor::IN, 512)),
        (Nanos::FOREVER, None)
    );
}

#[test]
fn an_instrument_sends_from_both_endpoints_while_it_is_configured() {
    let mut instrument = Instrument::default();
    assert_eq!(instrument.next_change(), Nanos::FOREVER);
    configure(&mut instrument, MS);
    let (interrupt, bulk) = (instrument::INTERRUPT, instrument::BULK);
    for number in 0..20u64 {
        let made = MS + Nanos(instrument::PERIOD.0 * (number + 1));
        assert_eq!(read(&mut instrument, made - Nanos(1), interrupt.0, interrupt.1), None);
        let packet = read(&mut instrument, made, interrupt.0, interrupt.1).unwrap();
        assert_eq!(packet, sensor::packet(number, made)[..interrupt.1]);
        assert_eq!(read(&mut instrument, made, interrupt.0, interrupt.1), None);
    }
    // Nobody read the other endpoint: it has kept the first packets.
    let late = MS + Nanos(instrument::PERIOD.0 * 20);
    for number in 0..instrument::KEPT as u64 {
        let packet = read(&mut instrument, late, bulk.0, bulk.1).unwrap();
        assert_eq!((packet.len(), &packet[8..16]), (bulk.1, &number.to_le_bytes()[..]));
    }
    assert_eq!(read(&mut instrument, late, bulk.0, bulk.1), None);
    assert_eq!(instrument.control(late, request(0x21, 1, 0, 0, 0), &[]), Err(Stall));
    instrument.reset(late);
    assert_eq!(instrument.next_change(), Nanos::FOREVER);
}

#[test]
fn line_codings_are_kept_if_there_are_such() {
    let mut sensor = Sensor::default();
    configure(&mut sensor, Nanos::ZERO);
    let get = request(0xa1, 0x21, 0, 0, 7);
    assert_eq!(sensor.control(MS, get, &[]), Ok(vec![0x80, 0x25, 0, 0, 0, 0, 8]));
    let fast = [0, 0xc2, 1, 0, 2, 1, 7];
    assert_eq!(sensor.control(MS, request(0x21, 0x20, 0, 0, 7), &fast), Ok(Vec::new()));
    for bad in [&fast[..6], &[0, 0, 0, 0, 3, 0, 8], &[0, 0, 0, 0, 0, 5, 8], &[0, 0, 0, 0, 0, 0, 9]]
    {
        assert_eq!(sensor.control(MS, request(0x21, 0x20, 0, 0, 7), bad), Err(Stall));
    }
    assert_eq!(sensor.control(MS, get, &[]), Ok(fast.to_vec()));
}

/// Probes, commits and streams as drivers do.
fn stream(
    camera: &mut CameraModel,
    now: Nanos,
    frame: u8,
    interval: u32,
    alternate: u8,
) -> Vec<u8> {
    let mut block = vec![0; 34];
    (block[2], block[3]) = (1, frame);
    block[4..8].copy_from_slice(&interval.to_le_bytes());
    camera.control(now, request(0x21, 1, 1 << 8, 1, 34), &block).unwrap();
    let agreed = camera.control(now, request(0xa1, 0x81, 1 << 8, 1, 34), &[]).unwrap();
    camera.control(now, request(0x21, 1, 2 << 8, 1, 34), &agreed).unwrap();
    camera.control(now, Setup::set_interface(1, alternate), &[]).unwrap();
    agreed
}

/// Returns the bytes of one interval.
fn interval(camera: &mut CameraModel, now: Nanos) -> Vec<u8> {
    let mut all = Vec::new();
    for _ in 0..33 {
        let packet = read(camera, now, camera::IN, 1_024).unwrap();
        all.extend(&packet);
        if packet.len() < 1_024 {
            break;
        }
    }
    all
}

#[test]
fn every_byte_of_every_picture_arrives_at_the_largest_setting() {
    let mut camera = CameraModel::default();
    configure(&mut camera, Nanos::ZERO);
    let agreed = stream(&mut camera, Nanos::ZERO, 1, 200_000, 5);
    let word = |at: usize| u32::from_le_bytes(agreed[at..at + 4].try_into().unwrap());
    assert_eq!((word(4), word(18), word(22)), (200_000, 4_147_200, 33_792));
    let (mut pictures, mut at, mut toggle) = (0u32, 0usize, 0);
    for slot in 0..(20 + 16 + 20) * 8 {
        let now = Nanos(slot * 125_000 + 1_000);
        let bytes = interval(&mut camera, now);
        if bytes.is_empty() {
            assert_eq!(at, 0, "a picture is sent without a pause");
            continue;
        }
        assert!(bytes.len() <= 33_792 && bytes[0] == HEADER as u8);
        toggle = if at == 0 { bytes[1] & flag::TOGGLE } else { toggle };
        assert_eq!(bytes[1] & flag::TOGGLE, toggle);
        for byte in &bytes[HEADER..] {
            assert_eq!(*byte, camera::content(pictures, at));
            at += 1;
        }
        assert_eq!(bytes[1] & flag::END != 0, at == 4_147_200);
        if at == 4_147_200 {
            (pictures, at) = (pictures + 1, 0);
        }
    }
    assert_eq!((pictures, camera.lost()), (2, 0));
}

#[test]
fn too_slow_a_setting_loses_whole_pictures_and_numbers_show_it() {
    let mut camera = CameraModel::default();
    configure(&mut camera, Nanos::ZERO);
    stream(&mut camera, Nanos::ZERO, 1, 200_000, 3);
    let (mut numbers, mut begins) = (Vec::new(), true);
    for slot in 0..2_400 {
        let bytes = interval(&mut camera, Nanos(slot * 125_000));
        let Some(number) = bytes.get(HEADER..HEADER + 4) else { continue };
        if begins {
            numbers.push(u32::from_le_bytes(number.try_into().unwrap()));
        }
        begins = bytes[1] & flag::END != 0;
    }
    // 46 ms of sending for each 20 ms: two of three are lost. Fourteen were taken.
    assert_eq!(numbers, [0, 3, 6, 9, 12]);
    assert_eq!(camera.lost(), 9);
    camera.control(Nanos::from_secs(1), Setup::set_interface(1, 0), &[]).unwrap();
    assert_eq!(camera.next_change(), Nanos::FOREVER);
    assert_eq!(camera.send(Nanos::from_secs(1), camera::IN, &mut [0; 1_024]), Answer::Error);
}

#[test]
fn the_camera_offers_bursts_of_eleven_packets_three_times() {
    let last = ALTERNATES[4];
    assert_eq!((last.burst, last.mult, last.bytes()), (10, 2, 33 * 1_024));
    let mut camera = CameraModel::default();
    let bytes = camera.control(MS, Setup::get_descriptor(2, 0, 0, 4_096), &[]).unwrap();
    let class: usize = parts(&bytes).filter(|part| part[1] == 0x24).map(<[u8]>::len).sum();
    let heads: usize = parts(&bytes)
        .filter(|part| part[1] == 0x24 && part[2] == 1)
        .map(|part| usize::from(if part.len() == 13 { part[5] } else { part[4] }))
        .sum();
    assert_eq!(heads, class, "both headers count what follows them");
}

fn parts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (part, after) = rest.split_at_checked(usize::from(*rest.first()?))?;
        rest = after;
        Some(part)
    })
}

#[test]
fn keys_are_reported_when_the_script_presses_them() {
    let press = |time, key| Keys { time, modifiers: 2, keys: [key, 0, 0, 0, 0, 0] };
    let mut keyboard = KeyboardModel::new(vec![press(MS, 4), press(MS + MS, 5)]);
    configure(&mut keyboard, Nanos::ZERO);
    assert_eq!(
        (keyboard.next_change(), read(&mut keyboard, Nanos(9), keyboard::IN, 8)),
        (MS, None)
    );
    assert_eq!(read(&mut keyboard, MS, keyboard::IN, 8).unwrap(), [2, 0, 4, 0, 0, 0, 0, 0]);
    assert_eq!(read(&mut keyboard, MS + MS, keyboard::IN, 8).unwrap(), [2, 0, 5, 0, 0, 0, 0, 0]);
    assert_eq!(keyboard.control(MS + MS, request(0x21, 9, 0x200, 0, 1), &[5]), Ok(Vec::new()));
    assert_eq!(keyboard.lights(), 5);
    let layout = keyboard.control(MS + MS, request(0x81, 6, 0x2200, 0, 255), &[]).unwrap();
    let (_, sizes) = diapason_usb::descriptor::Items::parse(&layout).unwrap();
    assert_eq!(sizes, [64, 8, 0], "bits of input, output and feature reports");
}

#[test]
fn hostile_hosts_break_none_of_them() {
    let mut random = Random::new(7);
    for _ in 0..10 {
        hostile(&mut Sensor::default(), &mut random, 3_500);
        hostile(&mut CameraModel::default(), &mut random, 3_500);
        let keys = (0..50).map(|n| Keys { time: Nanos(n * 9_000_000), modifiers: 0, keys: [4; 6] });
        hostile(&mut KeyboardModel::new(keys.collect()), &mut random, 3_500);
    }
}
