//! A disk in memory, behind bulk-only transport: so that the simulator has one as QEMU does.
//!
//! Each command is a block of 31 bytes, then its data, then a status of 13 bytes. Where host and
//! command disagree about the data, the host's length is kept: what the command does not have is
//! zeros, what the host does not want is left out, and the status says so.

mod scsi;

use crate::bridge::superspeed_bos;
use crate::descriptors::Descriptors;
use crate::device::{Answer, Handshake, Stall, UsbDevice};
use crate::standard::{EndpointStatus, Standard, reply};
use diapason_abi::Nanos;
use diapason_usb::descriptor::{self, build};
use diapason_usb::{Setup, Speed};
use scsi::{Data, Sense};

/// Data and status come from here.
pub const IN: u8 = 0x81;
/// Commands and data go here.
pub const OUT: u8 = 0x02;
/// Serial number of a disk, if nothing else is said.
pub const SERIAL: &str = "000000000001";
/// Bytes of a block.
pub const BLOCK: usize = 512;
/// Bytes of a packet at high speed, and at SuperSpeed.
const PACKETS: [usize; 2] = [512, 1_024];

const COMMAND_SIGNATURE: [u8; 4] = *b"USBC";
const STATUS_SIGNATURE: [u8; 4] = *b"USBS";
const COMMAND: usize = 31;
const FROM_INTERFACE: u8 = 0xa1;
const TO_INTERFACE: u8 = 0x21;
const GET_MAX_UNIT: u8 = 0xfe;
const RESET: u8 = 0xff;
const FAILED: u8 = 1;
const PHASE_ERROR: u8 = 2;

/// Where a command is.
#[derive(Clone, Debug)]
enum Stage {
    Command,
    /// Bytes are still to go, to the host or from it.
    Data {
        to_host: bool,
        left: u32,
        done: usize,
    },
    Status,
    /// Nonsense came: stalls until the host resets it.
    Broken,
}

/// A model of a disk.
#[derive(Clone, Debug)]
pub struct Disk {
    standard: Standard,
    bytes: Vec<u8>,
    stage: Stage,
    tag: [u8; 4],
    data: Data,
    status: u8,
    residue: u32,
    sense: Sense,
    speed: Speed,
    /// The time for a command, and when the one under way is ready.
    takes: Nanos,
    ready_at: Nanos,
    /// The time of the next change, which is `ready_at` until it was noticed.
    changes_at: Nanos,
    /// Blocks that somebody wrote; empty if others begin with no number.
    written: Vec<bool>,
}

impl Disk {
    /// Returns a disk of `blocks` zeroed blocks, at least one.
    #[must_use]
    pub fn new(blocks: u32) -> Disk {
        Disk::of(Speed::High, blocks, SERIAL)
    }

    /// Returns the same disk as a device of SuperSpeed.
    #[must_use]
    pub fn superspeed(blocks: u32) -> Disk {
        Disk::of(Speed::Super, blocks, SERIAL)
    }

    /// Returns a disk of `blocks` zeroed blocks, at least one, with this serial number.
    #[must_use]
    pub fn with_serial(blocks: u32, serial: &str) -> Disk {
        Disk::of(Speed::High, blocks, serial)
    }

    fn of(speed: Speed, blocks: u32, serial: &str) -> Disk {
        Disk {
            standard: Standard::new(descriptors(speed, serial)),
            bytes: vec![0; BLOCK * blocks.max(1) as usize],
            stage: Stage::Command,
            tag: [0; 4],
            data: Data::Nothing,
            status: 0,
            residue: 0,
            sense: Sense::default(),
            speed,
            takes: Nanos::ZERO,
            ready_at: Nanos::ZERO,
            changes_at: Nanos::FOREVER,
            written: Vec::new(),
        }
    }

    /// Returns the same disk, which takes so long until it has the data of a command, or knows how
    /// it ended.
    #[must_use]
    pub fn taking(self, takes: Nanos) -> Disk {
        Disk { takes, ..self }
    }

    /// Returns the same disk with blocks that begin with their numbers until they are written: four
    /// bytes, the least significant first.
    #[must_use]
    pub fn numbered(self) -> Disk {
        let written = vec![false; self.bytes.len() / BLOCK];
        Disk { written, ..self }
    }

    fn packet(&self) -> usize {
        PACKETS[usize::from(self.speed == Speed::Super)]
    }

    /// Puts numbers into what is read of blocks that nobody wrote.
    fn number(&self, at: usize, bytes: &mut [u8]) {
        for (place, block) in (at / BLOCK..).zip(bytes.chunks_mut(BLOCK)) {
            if self.written.get(place) == Some(&false)
                && let Some(head) = block.first_chunk_mut()
            {
                *head = (place as u32).to_le_bytes();
            }
        }
    }

    /// Returns the content of the disk.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns its content, to change it.
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    fn begin(&mut self, now: Nanos, packet: &[u8]) -> Handshake {
        self.ready_at = now + self.takes;
        self.changes_at = self.ready_at;
        let block: Option<&[u8; COMMAND]> = packet.try_into().ok();
        let good = |block: &&[u8; COMMAND]| {
            block.starts_with(&COMMAND_SIGNATURE) && block[13] == 0 && (1..=16).contains(&block[14])
        };
        let Some(block) = block.filter(good) else {
            self.stage = Stage::Broken;
            self.standard.halt(IN);
            self.standard.halt(OUT);
            return Handshake::Stall;
        };
        let word = |at: usize| [block[at], block[at + 1], block[at + 2], block[at + 3]];
        self.tag = word(4);
        let wanted = u32::from_le_bytes(word(8));
        let to_host = block[12] & 0x80 != 0;
        let command = std::array::from_fn(|at| block[15 + at]);
        let outcome = scsi::perform(&command, self.bytes.len(), &mut self.sense);
        self.status = if outcome.is_ok() { 0 } else { FAILED };
        self.data = outcome.unwrap_or(Data::Nothing);
        let has = self.data.len();
        let same_way = has == 0 || self.data.to_host() == to_host;
        if !same_way || has > wanted as usize {
            self.status = PHASE_ERROR;
        }
        if !same_way {
            self.data = Data::Nothing;
        }
        self.residue = wanted - wanted.min(self.data.len() as u32);
        let stage = Stage::Data { to_host, left: wanted, done: 0 };
        self.stage = if wanted == 0 { Stage::Status } else { stage };
        Handshake::Ack
    }

    fn take(&mut self, packet: &[u8], left: u32, done: usize) -> Handshake {
        if packet.len() > left as usize {
            return Handshake::Error;
        }
        if let Data::Write(range) = &self.data
            && let Some(disk) = self.bytes.get_mut(range.clone())
        {
            for (to, from) in disk.iter_mut().skip(done).zip(packet) {
                *to = *from;
            }
            let blocks =
                (range.start + done) / BLOCK..(range.start + done + packet.len()).div_ceil(BLOCK);
            if let Some(written) = self.written.get_mut(blocks) {
                written.fill(true);
            }
        }
        let (left, done) = (left - packet.len() as u32, done + packet.len());
        // A short packet ends the stage early.
        let ended = left == 0 || packet.len() < self.packet();
        self.residue = self.residue.max(if ended { left } else { 0 });
        self.stage = if ended { Stage::Status } else { Stage::Data { to_host: false, left, done } };
        Handshake::Ack
    }

    fn give(&mut self, buffer: &mut [u8], left: u32, done: usize) -> Answer {
        let length = self.packet().min(left as usize);
        let source: &[u8] = match &self.data {
            Data::Read(range) => self.bytes.get(range.clone()).unwrap_or(&[]),
            Data::Reply(bytes) => bytes,
            Data::Nothing | Data::Write(_) => &[],
        };
        let from = source.get(done..).unwrap_or(&[]);
        let mut bytes: Vec<u8> = from.iter().take(length).copied().collect();
        bytes.resize(length, 0);
        if let Data::Read(range) = &self.data {
            self.number(range.start + done, &mut bytes);
        }
        let (left, done) = (left - length as u32, done + length);
        self.stage =
            if left == 0 { Stage::Status } else { Stage::Data { to_host: true, left, done } };
        Answer::packet(buffer, &bytes)
    }

    fn end(&mut self, buffer: &mut [u8]) -> Answer {
        let mut bytes = STATUS_SIGNATURE.to_vec();
        bytes.extend(self.tag);
        bytes.extend(self.residue.to_le_bytes());
        bytes.push(self.status);
        (self.stage, self.data) = (Stage::Command, Data::Nothing);
        Answer::packet(buffer, &bytes)
    }
}

impl UsbDevice for Disk {
    fn speed(&self) -> Speed {
        self.speed
    }

    fn reset(&mut self, _: Nanos) {
        self.standard.reset();
        (self.ready_at, self.changes_at) = (Nanos::ZERO, Nanos::FOREVER);
        (self.stage, self.data, self.sense) = (Stage::Command, Data::Nothing, Sense::default());
    }

    fn control(&mut self, _: Nanos, setup: Setup, _: &[u8]) -> Result<Vec<u8>, Stall> {
        if let Some(answer) = self.standard.control(setup) {
            if matches!(self.stage, Stage::Broken) {
                self.standard.halt(IN);
                self.standard.halt(OUT);
            }
            return answer;
        }
        match (setup.kind, setup.request, setup.index) {
            (FROM_INTERFACE, GET_MAX_UNIT, 0) => reply(setup, vec![0]),
            (TO_INTERFACE, RESET, 0) => {
                (self.stage, self.data) = (Stage::Command, Data::Nothing);
                Ok(Vec::new())
            }
            _ => Err(Stall),
        }
    }

    fn receive(&mut self, now: Nanos, endpoint: u8, packet: &[u8]) -> Handshake {
        match self.standard.endpoint(endpoint) {
            EndpointStatus::Ready if endpoint == OUT => match self.stage {
                Stage::Command => self.begin(now, packet),
                Stage::Data { to_host: false, left, done } => self.take(packet, left, done),
                _ => Handshake::Nak,
            },
            EndpointStatus::Halted => Handshake::Stall,
            _ => Handshake::Error,
        }
    }

    fn send(&mut self, now: Nanos, endpoint: u8, buffer: &mut [u8]) -> Answer {
        match self.standard.endpoint(endpoint) {
            EndpointStatus::Ready if endpoint == IN && now < self.ready_at => Answer::Nak,
            EndpointStatus::Ready if endpoint == IN => match self.stage {
                Stage::Data { to_host: true, left, done } => self.give(buffer, left, done),
                Stage::Status => self.end(buffer),
                _ => Answer::Nak,
            },
            EndpointStatus::Halted => Answer::Stall,
            _ => Answer::Error,
        }
    }

    fn next_change(&self) -> Nanos {
        self.changes_at
    }

    fn advance(&mut self, now: Nanos) {
        if self.changes_at <= now {
            self.changes_at = Nanos::FOREVER;
        }
    }
}

fn descriptors(speed: Speed, serial: &str) -> Descriptors {
    let is_super = speed == Speed::Super;
    let device = descriptor::DeviceDescriptor {
        usb: if is_super { 0x0300 } else { 0x0200 },
        class: 0,
        subclass: 0,
        protocol: 0,
        packet: if is_super { 512 } else { 64 },
        vendor: 0x1209,
        product: 0x0003,
        version: 0x0100,
        texts: [0, 1, 2],
        configurations: 1,
    };
    let pipes = build::Interface::new(0).class(8, 6, 0x50);
    let packet = PACKETS[usize::from(is_super)] as u16;
    let pipes = pipes.endpoint(build::bulk(IN, packet)).endpoint(build::bulk(OUT, packet));
    Descriptors {
        device: device.bytes(speed),
        configuration: build::Configuration::new(1).with(pipes).bytes(speed),
        high_speed: !is_super,
        bos: if is_super { superspeed_bos() } else { Vec::new() },
        strings: ["Memory disk", serial].map(String::from).into(),
        ..Descriptors::default()
    }
}
