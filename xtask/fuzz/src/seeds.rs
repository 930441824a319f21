//! First inputs: what the models of devices answer when nothing is wrong, and texts and packets as
//! their writers write them.

use crate::classes::{self, About, DeviceFate, Pending, TransferEnd, Wanted, written};
use diapason_abi::Nanos;
use diapason_can::CanFrame;
use diapason_can::candump::LineContent;
use diapason_can::frame::standard;
use diapason_capture::blf::BlfWriter;
use diapason_capture::log::LogEntry;
use diapason_devices::{Answer, Handshake, UsbDevice};
use diapason_ether::{UdpFrame, VlanTag};
use diapason_gptp::{Grandmaster, HEAD, SyncTerms, TimeNode, identity_of};
use diapason_redir::protocol::{AddressedPacket, Data, PacketStatus, RedirPacket, encode};
use diapason_usb::Setup;
use diapason_usb::class::TransferFault;
use std::net::{Ipv4Addr, SocketAddrV4};

/// A model that answers, while its answers are written down.
struct Recorded {
    device: Box<dyn UsbDevice>,
    /// The wishes of the client, between the answers.
    wishes: Vec<u8>,
    bytes: Vec<u8>,
}

impl DeviceFate for Recorded {
    fn next(&mut self, now: Nanos, pending: Option<&Pending>) -> Option<TransferEnd> {
        self.device.advance(now);
        let happening = pending.and_then(|pending| self.answer(now, pending));
        let happening = match happening {
            Some(happening) => happening,
            None if self.wishes.is_empty() => TransferEnd::Silence,
            None => TransferEnd::Client(self.wishes.remove(0)),
        };
        written(&happening, &mut self.bytes);
        (self.bytes.len() < 3_000).then_some(happening)
    }
}

impl Recorded {
    /// Returns what the model answers; `None` if it has nothing yet.
    fn answer(&mut self, now: Nanos, (endpoint, wanted): &Pending) -> Option<TransferEnd> {
        let control = |device: &mut dyn UsbDevice, setup, data: &[u8]| match device
            .control(now, setup, data)
        {
            Ok(bytes) => TransferEnd::Done(bytes),
            Err(_) => TransferEnd::Fault(TransferFault::Stall),
        };
        match wanted {
            Wanted::Control(setup, data) => Some(control(&mut *self.device, *setup, data)),
            Wanted::In(length) => self.receive(now, *endpoint, *length),
            Wanted::Shared(_, length) if endpoint & 0x80 != 0 => {
                self.receive(now, *endpoint, *length)
            }
            Wanted::Shared(_, length) => self.send(now, *endpoint, &vec![0; *length]),
            Wanted::Out(data) => self.send(now, *endpoint, data),
            Wanted::Change if *endpoint == 0 => Some(TransferEnd::Done(Vec::new())),
            Wanted::Change => Some(control(&mut *self.device, Setup::clear_halt(*endpoint), &[])),
        }
    }

    fn receive(&mut self, now: Nanos, endpoint: u8, length: usize) -> Option<TransferEnd> {
        let mut buffer = vec![0; length.min(512)];
        match self.device.send(now, endpoint, &mut buffer) {
            Answer::Data(count) => Some(TransferEnd::Done(buffer.get(..count)?.to_vec())),
            _ => None,
        }
    }

    fn send(&mut self, now: Nanos, endpoint: u8, bytes: &[u8]) -> Option<TransferEnd> {
        let all = bytes
            .chunks(512)
            .all(|chunk| self.device.receive(now, endpoint, chunk) == Handshake::Ack);
        all.then(|| TransferEnd::Done(Vec::new()))
    }
}

/// Returns the descriptors of a model, and the answers that it gives its class.
pub fn recorded(mut device: Box<dyn UsbDevice>, wishes: &[u8]) -> (About, Vec<u8>) {
    let about = classes::enumerate(&mut *device);
    let mut recorded = Recorded { device, wishes: wishes.to_vec(), bytes: Vec::new() };
    classes::device(&about, &mut recorded);
    (about, recorded.bytes)
}

/// Returns a small log in the format BLF.
#[must_use]
pub fn binary_log() -> Option<Vec<u8>> {
    let mut writer = BlfWriter::default();
    for channel in 1..3 {
        let frame = CanFrame::data(standard(0x123).ok()?, &[1, 2, 3]).ok()?;
        let time = Nanos(u64::from(channel) * 1_000_000);
        let entry = LogEntry { time, channel, report: LineContent::Frame(frame.into()) };
        drop(writer.put(&entry));
    }
    let (container, header) = writer.finish();
    Some([header.to_vec(), container?].concat())
}

/// Returns packets of QEMU.
#[must_use]
pub fn packets() -> Vec<Vec<u8>> {
    let setup = Setup::get_descriptor(1, 0, 0, 18);
    let status = PacketStatus::Success;
    let all = [
        RedirPacket::Reset,
        RedirPacket::StartIsochronous(0x81, 4, 2),
        RedirPacket::StartInterrupt(0x82),
        RedirPacket::Control(0x80, status, setup, Vec::new()),
        RedirPacket::Control(0, status, Setup::set_configuration(1), vec![1, 2, 3]),
        RedirPacket::Bulk(Data { endpoint: 2, status, length: 5, stream: 0, bytes: vec![9; 5] }),
        RedirPacket::Filter(b"a,b\0".to_vec()),
        RedirPacket::Cancel,
    ];
    let mut bytes = Vec::new();
    for (id, packet) in (1..).zip(all) {
        encode(&AddressedPacket { id, packet }, &mut bytes);
    }
    vec![bytes]
}

/// Returns a program of three segments with a relocation.
#[must_use]
pub fn program() -> Vec<u8> {
    let mut file = vec![0_u8; 0x380];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"\x7fELF\x02\x01\x01");
    put(16, &[3, 0, 62, 0]);
    put(24, &0x10_u64.to_le_bytes());
    put(32, &64_u64.to_le_bytes());
    put(54, &[56, 0, 3, 0]);
    // Each with its kind, its flags, its place in the file, its address and its length.
    let segments = [[1, 5, 0, 0, 0x300], [1, 6, 0x300, 0x1300, 0x80], [2, 6, 0x340, 0x1340, 0x30]];
    for (index, [kind, flags, offset, address, length]) in (0..).zip(segments) {
        let at = 64 + 56 * index;
        put(at, &[kind as u8, 0, 0, 0, flags as u8]);
        for (field, value) in [(8, offset), (16, address), (32, length), (40, length)] {
            put(at + field, &u64::to_le_bytes(value));
        }
    }
    // A table of relocations: where it is, how long, and one of the kind that the loader does.
    for (at, value) in [(0x340, 7), (0x348, 0x200), (0x350, 8), (0x358, 24)] {
        put(at, &u64::to_le_bytes(value));
    }
    for (at, value) in [(0x200, 0x1300), (0x208, 8), (0x210, 0x123)] {
        put(at, &u64::to_le_bytes(value));
    }
    file
}

/// Returns frames for a socket, with and without a tag.
#[must_use]
pub fn frames() -> Vec<Vec<u8>> {
    let frame = |tag, checksum| {
        let flow = UdpFrame {
            source_mac: [2, 0, 0, 0, 0, 1],
            destination_mac: [2, 0, 0, 0, 0, 2],
            tag,
            source: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 4_000),
            destination: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 5_000),
            checksum,
        };
        let mut frame = vec![0; 128];
        let bytes = flow.write(b"a payload", &mut frame)?;
        frame.truncate(bytes);
        Some(frame)
    };
    let tag = VlanTag::from_bits(0x6001);
    [frame(None, true), frame(None, false), frame(Some(tag), true)].into_iter().flatten().collect()
}

/// The address of the node that hears messages of clocks.
pub const FOLLOWER: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// Returns what a master sends to a follower in half a minute, as its target reads it.
#[must_use]
pub fn time_messages(terms: &SyncTerms) -> Vec<Vec<u8>> {
    let own = |mac| Grandmaster::free(if mac == FOLLOWER { 200 } else { 100 }, identity_of(mac));
    let macs = [[2, 0, 0, 0, 0, 1], FOLLOWER];
    let start = Nanos::from_secs(1);
    let mut nodes = macs.map(|mac| TimeNode::new(*terms, own(mac), [mac], start));
    let (mut now, mut heard, mut bytes) = (start, start, Vec::new());
    for _ in 0..30_000 {
        now += Nanos::from_millis(1);
        for from in 0..2 {
            while let Some(outgoing) = nodes[from].look(now) {
                outgoing.event.into_iter().for_each(|event| nodes[from].sent(event, now));
                let message = &outgoing.frame.bytes()[HEAD..];
                let _ = nodes[1 - from].heard(0, now, now, message);
                if from == 0 {
                    let millis = (now - heard).0 / 1_000_000;
                    bytes.extend([message.len() as u8, millis.min(255) as u8]);
                    bytes.extend(message);
                    heard = now;
                }
            }
        }
    }
    let middle = bytes.len().min(2_000);
    vec![bytes[..middle].to_vec(), bytes]
}
