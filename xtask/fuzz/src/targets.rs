//! The targets: every parser of bytes from outside, each with what it does with an input, what must
//! hold then, and its first inputs.

use crate::classes::{self, Told};
use crate::seeds;
use diapason_abi::Nanos;
use diapason_abi::archive::{Archive, CRC_FROM, HEADER_BYTES, Header, MAGIC, VERSION, crc32};
use diapason_abi::elf::Program;
use diapason_can::candump;
use diapason_can::dbc::Dbc;
use diapason_can::socketcand::Dialogue;
use diapason_capture::log::{LogFormat, as_candump};
use diapason_devices::UsbDevice;
use diapason_devices::bridge::bridge;
use diapason_devices::camera::CameraModel;
use diapason_devices::can::CanBus;
use diapason_devices::disk::Disk;
use diapason_devices::gs_usb::GsUsbModel;
use diapason_devices::hub::HubModel;
use diapason_devices::keyboard::KeyboardModel;
use diapason_devices::kvaser::{CHANNELS, Hydra, Identity};
use diapason_devices::network::Adapter;
use diapason_devices::sensor::Sensor;
use diapason_ether::{Listener, Listeners, Match, stack};
use diapason_gptp::{
    GptpBody, GptpFrame, GptpMessage, Grandmaster, HEAD, SyncBase, SyncTerms, TimeNode, identity_of,
};
use diapason_redir::protocol::{AddressedPacket, PacketDecoder};
use diapason_system::parse_any;
use diapason_usb::Speed;
use diapason_usb::descriptor::{
    Bos, Configuration, ConfigurationHeader, DeviceDescriptor, Hid, HubDescriptor, Items,
    Languages, Text, Walk,
};
use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

/// A target: a parser and what is known about its inputs.
pub struct FuzzTarget {
    pub name: &'static str,
    /// The bytes, and where they come from.
    pub what: &'static str,
    begin: fn(&Path) -> Begun,
}

/// A parser with everything that is done with an input.
pub type Attacked = dyn FnMut(&[u8]);

/// A target that is ready: what it does with an input, and its first inputs.
pub struct Begun {
    pub run: Box<Attacked>,
    pub first: Vec<Vec<u8>>,
}

impl FuzzTarget {
    /// Prepares a target. `root` is the checkout, whose descriptions are first inputs.
    #[must_use]
    pub fn begin(&self, root: &Path) -> Begun {
        (self.begin)(root)
    }

    /// Returns the target of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static FuzzTarget> {
        TARGETS.iter().find(|target| target.name == name)
    }
}

const fn target(name: &'static str, what: &'static str, begin: fn(&Path) -> Begun) -> FuzzTarget {
    FuzzTarget { name, what, begin }
}

/// Every parser of bytes from outside.
pub const TARGETS: &[FuzzTarget] = &[
    target("description", "a description or a list of hosts, from a file", description),
    target("dbc", "a DBC file, and data of its messages", dbc),
    target("candump", "lines of a candump log", lines),
    target("logs", "an ASC or a BLF file", logs),
    target("socketcand", "commands of a tool on a simulated bus", tool),
    target("descriptors", "the descriptors of a USB device", descriptors),
    target("usbredir", "packets of QEMU about a redirected device", redirected),
    target("archive", "a boot archive whose checksums are right", archive),
    target("elf", "a program in an archive", program),
    target("ethernet", "a frame on Ethernet", ethernet),
    target("gptp", "messages of clocks on Ethernet", gptp),
    target("kvaser", "the answers of a Kvaser controller", |_| {
        let buses: Vec<_> = (0..CHANNELS).map(CanBus::busy).collect();
        of_device(Box::new(Hydra::new(Identity::default(), &buses)), &[12, 13, 16, 20, 30])
    }),
    target("gs-usb", "the answers of a gs_usb controller", |_| {
        let mut buses: Vec<_> = (0..CHANNELS).map(CanBus::busy).collect();
        buses[0] = CanBus::busy_fd();
        of_device(Box::new(GsUsbModel::new(1, &buses)), &[12, 13, 16, 20, 30])
    }),
    target("disk", "the answers of a disk", |_| {
        of_device(Box::new(Disk::new(4096)), &[14, 20, 100, 200])
    }),
    target("camera", "the answers of a camera", |_| {
        of_device(Box::new(CameraModel::default()), &[14, 15, 16])
    }),
    target("network", "the answers of a network adapter", |_| {
        of_device(Box::new(Adapter::default()), &[12, 13, 14])
    }),
    target("keyboard", "the answers of a keyboard", |_| {
        let keys = KeyboardModel::typing(Nanos::from_millis(1), 20);
        of_device(Box::new(keys), &[12, 15])
    }),
    target("hub", "the answers of a hub", |_| {
        of_device(Box::new(HubModel::new(false, 4)), &[13, 14])
    }),
    target("sensor", "the answers of a serial line", |_| {
        of_device(Box::new(Sensor::default()), &[40])
    }),
    target("cable", "the answers of the other end of a cable", |_| {
        of_device(Box::new(bridge(4096).0), &[12, 13])
    }),
];

fn begun(first: Vec<Vec<u8>>, run: impl FnMut(&[u8]) + 'static) -> Begun {
    Begun { run: Box::new(run), first }
}

/// Returns the texts of all files below a folder whose names end so.
fn files(root: &Path, folder: &str, ending: &str) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|own| own == ending));
    paths.sort();
    paths.iter().filter_map(|path| std::fs::read(path).ok()).collect()
}

/// Reads text as a file of text is read.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn description(root: &Path) -> Begun {
    let first = ["examples", "examples/links", "tests/systems"];
    let first = first.iter().flat_map(|folder| files(root, folder, "toml")).collect();
    begun(first, |bytes| {
        let part = "[[process]]\nname = \"a\"\nprogram = \"a\"\n";
        let find = |name: &str| match name.len() % 2 {
            0 => Ok((name.to_owned(), part.to_owned())),
            _ => Err(String::from("there is none")),
        };
        if let Err(wrong) = parse_any("a.toml", &text(bytes), find) {
            assert!(!wrong.to_string().is_empty(), "a refusal says why");
        }
    })
}

fn dbc(_: &Path) -> Begun {
    let first = "VERSION \"1\"\nNS_ :\n\tCM_\nBS_:\nBU_: A B\nVAL_TABLE_ T 1 \"on\" 0 \"off\" ;\n\
                 BO_ 496 Ex: 8 A\n SG_ T : 0|12@0- (0.01,250) [229.5|270] \"K\" B,A\n \
                 SG_ M M : 16|4@1+ (1,0) [0|15] \"\" B\n \
                 SG_ S m1M : 20|16@1+ (1E-3,0) [0|0] \"\" B\n\
                 CM_ SG_ 496 T \"a\nb\";\nBA_DEF_ BO_ \"GenMsgCycleTime\" INT 0 65535;\n\
                 BA_DEF_DEF_ \"GenMsgCycleTime\" 100;\nBA_ \"GenMsgCycleTime\" BO_ 496 20;\n\
                 SIG_VALTYPE_ 496 S : 1;\nVAL_ 496 M 1 \"one\" 2 \"two\" ;\n\
                 SG_MUL_VAL_ 496 S M 1-3, 5-9;\n";
    begun(vec![first.into()], |bytes| {
        let Ok(dbc) = Dbc::parse(&text(bytes)) else { return };
        for message in &dbc.messages {
            for length in [0, 1, 8] {
                let data = bytes.get(..length).unwrap_or_default();
                let _ = message.decode(data);
            }
        }
    })
}

fn lines(_: &Path) -> Begun {
    let first = "(1436509052.249713) vcan0 044#2A366C2BBA\n(0.1) can1 12345678#R4\n\
                 (2.0) can0 123#DEADBEEF_C\n(3.0) can0 20000004#0001020304050607\n\
                 (4.0) can0 5A1##311223344\n (5.0)  can0  123   [3]  11 22 33\n";
    begun(vec![first.into()], |bytes| {
        for line in text(bytes).lines() {
            if let Ok(read) = candump::parse(line) {
                let again = read.to_string();
                let second = candump::parse(&again).expect("what is written can be read");
                assert_eq!(second.to_string(), again);
            }
        }
    })
}

fn logs(_: &Path) -> Begun {
    let asc = "date Sat Nov 1 10:00:00 2026\nbase hex  timestamps absolute\n0.5 1 64 Rx d 2 01 ff\n\
               0.7 2 1ABCDE00x Tx d 1 07 Length = 240000\n1.0 1 64 Rx r 4\n1.2 2 ErrorFrame\n";
    let mut first: Vec<Vec<u8>> = vec![asc.into()];
    first.extend(seeds::binary_log());
    begun(first, |bytes| {
        let format = LogFormat::of(bytes);
        let Ok(read) = as_candump(format, bytes, &text(bytes)) else { return };
        if format != LogFormat::Candump {
            assert!(read.lines().all(|line| candump::parse(line).is_ok()), "{read}");
        }
    })
}

fn tool(_: &Path) -> Begun {
    let first = "< open can0 >< rawmode >< send 123 2 AA BB >< filter 0 0 1 2 >< bcmmode >\
                 < subscribe 0 0 123 >< add 1 0 123 2 AA BB >< unsubscribe 123 >< echo >";
    begun(vec![first.into()], |bytes| {
        let buses = [String::from("can0"), String::from("can1")];
        let hear = |step: usize| {
            let (mut dialogue, mut said) = (Dialogue::default(), Vec::new());
            bytes.chunks(step).for_each(|part| dialogue.hear(part, &buses, &mut said));
            said
        };
        assert_eq!(hear(1), hear(bytes.len().max(1)), "however the words are cut");
    })
}

const SPEEDS: [Speed; 4] = [Speed::Low, Speed::Full, Speed::High, Speed::Super];

fn descriptors(_: &Path) -> Begun {
    let models: [Box<dyn UsbDevice>; 5] = [
        Box::new(CameraModel::default()),
        Box::new(Adapter::default()),
        Box::new(HubModel::new(true, 4)),
        Box::new(KeyboardModel::typing(Nanos::from_millis(1), 1)),
        Box::new(Sensor::default()),
    ];
    let sets = models.into_iter().flat_map(|mut model| {
        let (device, set) = classes::enumerate(&mut *model).bytes();
        let with = |byte: u8, bytes: Vec<u8>| [vec![byte], bytes].concat();
        [with(2, set.clone()), with(3, set), with(18, device)]
    });
    begun(sets.collect(), |bytes| {
        let Some((first, bytes)) = bytes.split_first() else { return };
        let speed = SPEEDS[usize::from(first & 3)];
        match first >> 2 & 7 {
            0 => configuration(bytes, speed),
            1 => drop(ConfigurationHeader::parse(bytes)),
            2 => drop(Bos::parse(bytes).map(|bos| bos.capabilities().count())),
            3 => drop(Text::parse(bytes).map(|text| text.chars().count())),
            4 => drop(DeviceDescriptor::parse(bytes, speed)),
            5 => drop(HubDescriptor::parse(bytes)),
            6 => drop(Items::parse(bytes).map(|(items, _)| items.count())),
            _ => drop(Languages::parse(bytes).map(|languages| languages.iter().count())),
        }
        assert!(Walk::new(bytes).count() <= bytes.len() / 2 + 1);
    })
}

fn configuration(bytes: &[u8], speed: Speed) {
    match Configuration::parse_once(bytes, speed) {
        Ok(set) => {
            for interface in set.interfaces() {
                interface.endpoints().for_each(|end| _ = black_box(end.kind()));
                interface.extras().for_each(|raw| _ = black_box(Hid::parse(raw)));
            }
            assert!(set.associations().count() <= bytes.len());
        }
        Err(refusal) => assert!(refusal.offset <= bytes.len()),
    }
}

fn redirected(_: &Path) -> Begun {
    let decoded = |bytes: &[u8], step: usize| -> (Vec<AddressedPacket>, bool) {
        let (mut decoder, mut packets) = (PacketDecoder::default(), Vec::new());
        for part in bytes.chunks(step) {
            decoder.push(part);
            loop {
                match decoder.decode() {
                    Ok(Some(packet)) => packets.push(packet),
                    Ok(None) => break,
                    Err(_) => return (packets, false),
                }
            }
        }
        (packets, true)
    };
    begun(seeds::packets(), move |bytes| {
        let whole = decoded(bytes, bytes.len().max(1));
        assert_eq!(whole, decoded(bytes, 7), "however the packets are cut");
    })
}

/// Makes the checksum of an archive's tables right, and its tables as long as its counts say.
fn repaired(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len().max(HEADER_BYTES), 0);
    bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    let count = |at: usize| u16::from(bytes[at]) & 31;
    let counts = [20, 22, 24, 26, 44].map(|at| (at, count(at)));
    for (at, count) in counts {
        bytes[at..at + 2].copy_from_slice(&count.to_le_bytes());
    }
    let [processes, objects, segments, devices, vcpus] = counts.map(|(_, count)| count);
    let header = Header {
        length: 0,
        processes,
        objects,
        segments,
        devices,
        flags: 0,
        horizon: 0,
        recorder_bytes: 0,
        vcpus,
        dp_queues: 0,
        switch_grace: 0,
        interrupt_grace: 0,
        longest_path: 0,
    };
    let end = header.tables_end();
    bytes.resize(bytes.len().max(end), 0);
    let length = bytes.len() as u32;
    bytes[16..20].copy_from_slice(&length.to_le_bytes());
    let crc = crc32(&bytes[CRC_FROM..end]);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn archive(_: &Path) -> Begun {
    begun(vec![vec![1; 600], vec![0; 900]], |bytes| {
        let bytes = repaired(bytes);
        let Ok(archive) = Archive::parse(&bytes) else { return };
        for process in archive.processes() {
            if let Ok(image) = archive.image(&process) {
                elf(image);
            }
        }
        let header = archive.header;
        assert_eq!(archive.objects().count(), usize::from(header.objects));
        assert_eq!(archive.devices().count(), usize::from(header.devices));
        let _ = archive.segments().count() + archive.vcpus().count();
        (0..header.processes).for_each(|process| _ = black_box(archive.may_reserve(process)));
    })
}

fn elf(file: &[u8]) {
    let Ok(program) = Program::parse(file) else { return };
    for segment in program.segments() {
        assert!(program.bytes(&segment).len() <= file.len());
    }
    let _ = program.relocations(|_, _| {});
}

fn program(_: &Path) -> Begun {
    begun(vec![seeds::program()], elf)
}

fn ethernet(_: &Path) -> Begun {
    const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    let mut listeners = Listeners::<8>::default();
    for (number, port) in [(3, 5_000), (4, 5_001)] {
        listeners.add(number, &Listener::udp(OWN, port, 8)).expect("there is room");
    }
    begun(seeds::frames(), move |bytes| {
        let received = stack::receive(bytes);
        match listeners.classify(bytes) {
            Match::Exact { listener, at, length } => {
                let datagram = received.expect("the bypass takes only what the stack takes");
                let payload = &bytes[usize::from(at)..][..usize::from(length)];
                assert_eq!(datagram.payload, payload);
                let port = 4_997 + u16::from(listener);
                assert_eq!(datagram.destination, SocketAddrV4::new(OWN, port));
            }
            Match::Full { .. } => {}
            Match::Nobody(_) => {
                let ours = |port| SocketAddrV4::new(OWN, port);
                let lost = received.is_ok_and(|datagram| {
                    [ours(5_000), ours(5_001)].contains(&datagram.destination)
                });
                assert!(!lost, "a datagram for a socket is discarded");
            }
        }
    })
}

/// The terms of a node that hears messages of chance.
const SYNC: SyncBase = SyncBase {
    log_interval: -3,
    late: Nanos::from_millis(10),
    losses: 3,
    hops: 2,
    drift_ppm: 100,
    wander_ppb: 100,
    stamp: Nanos::from_micros(1),
    turnaround: Nanos::from_millis(10),
    gap: Nanos::from_millis(1),
    link: Nanos::from_micros(10),
    uneven: Nanos::ZERO,
    slew_ppm: 500,
};

/// Messages come to a node, each after its length and the milliseconds that pass before it.
fn gptp(_: &Path) -> Begun {
    let terms = SyncTerms::new(SYNC).expect("the terms are possible");
    begun(seeds::time_messages(&terms), move |bytes| {
        let own = Grandmaster::free(200, identity_of(seeds::FOLLOWER));
        let mut now = Nanos::from_secs(1);
        let mut node = TimeNode::new(terms, own, [seeds::FOLLOWER], now);
        let (mut rest, mut last) = (bytes, None);
        while let [length, millis, next @ ..] = rest {
            now += Nanos::from_millis(u64::from(*millis));
            let (message, after) = next.split_at(next.len().min(usize::from(*length)));
            let stamp = now - Nanos::from_micros(30);
            if node.heard(0, stamp, now, message).is_ok() {
                reads_again(message);
            }
            while let Some(outgoing) = node.look(now) {
                assert!(GptpMessage::read(&outgoing.frame.bytes()[HEAD..]).is_ok());
                outgoing.event.into_iter().for_each(|event| node.sent(event, now));
            }
            let time = node.time(now);
            assert!(last.zip(time).is_none_or(|(last, time)| last <= time), "time goes back");
            (last, rest) = (time, after);
        }
    })
}

/// A message is read again from the frame that is written of it. A frame cuts a long path off.
fn reads_again(bytes: &[u8]) {
    let Ok(message) = GptpMessage::read(bytes) else { return };
    let whole = match message.body {
        GptpBody::Announce(announce) => announce.path.len() <= 8,
        _ => true,
    };
    let frame = GptpFrame::new([2; 6], &message);
    assert!(!whole || GptpMessage::read(&frame.bytes()[HEAD..]) == Ok(message));
}

/// Drives the class of a device. The first input is what the sound device answers.
fn of_device(device: Box<dyn UsbDevice>, wishes: &[u8]) -> Begun {
    let (about, first) = seeds::recorded(device, wishes);
    begun(vec![first], move |bytes| classes::device(&about, &mut Told(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_target_has_a_name_of_its_own_and_a_first_input() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let names: BTreeSet<&str> = TARGETS.iter().map(|target| target.name).collect();
        assert_eq!(names.len(), TARGETS.len());
        for target in TARGETS {
            let begun = target.begin(root);
            assert!(begun.first.iter().any(|input| input.len() > 4), "{}", target.name);
        }
    }

    #[test]
    fn an_archive_of_chance_is_looked_into() {
        let all = |byte: u8| Archive::parse(&repaired(&[byte; 600])).err();
        assert!([0, 1].iter().all(|byte| {
            let why = all(*byte).map(|refusal| refusal.text());
            why.is_none_or(|why| !why.contains("checksum") && !why.contains("shorter"))
        }));
    }
}
