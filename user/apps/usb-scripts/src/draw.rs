//! Scripts draw these: requests to control endpoints, and commands to disks.

use crate::host::Seat;
use diapason_random::Random;
use diapason_usb::Setup;
use diapason_usb::context::EndpointKind;
use diapason_usb::setup::{ENDPOINT_HALT, IN, descriptor_type, request};

/// Most bytes of the data of a request: QEMU has no room for more.
const REQUEST_MAX: u16 = 4096;
/// Tells a disk to forget its command.
pub const RESET: Setup = Setup { kind: 0x21, request: 0xff, value: 0, index: 0, length: 0 };
/// Tells a device that can to leave its port, and to come back after as many ms as its value says.
pub const RESTART: Setup = Setup { kind: 0x40, request: 0xde, value: 0, index: 0, length: 0 };
/// Bytes of a command to a disk, and of its status.
pub const COMMAND: usize = 31;
pub const STATUS: usize = 13;
/// Bytes of a block, and blocks of a disk.
const BLOCK: u32 = 512;
const BLOCKS: u32 = 131_072;
/// Most blocks of a command.
const BLOCKS_MAX: u64 = 20;

const LENGTHS: [u16; 14] = [0, 1, 2, 8, 9, 18, 63, 64, 65, 255, 512, 513, 1024, REQUEST_MAX];

fn length(random: &mut Random) -> u16 {
    if random.one_in(3) {
        return random.within(0, REQUEST_MAX.into()) as u16;
    }
    random.pick(&LENGTHS)
}

/// Returns a request to a device: mostly one that exists, sometimes with a length or a place that
/// makes no sense. No script chooses a configuration or a setting this way: its endpoints are the
/// driver's.
pub(crate) fn setup(random: &mut Random, seat: &Seat) -> Setup {
    let addresses = seat.endpoints.iter().map(|endpoint| endpoint.address);
    let own: u16 = addresses.clone().nth(random.index(addresses.count())).unwrap_or(0).into();
    let endpoint = if random.one_in(6) { random.below(256) as u16 } else { own };
    match random.below(10) {
        0..=3 => {
            let kinds = [
                descriptor_type::DEVICE,
                descriptor_type::CONFIGURATION,
                descriptor_type::CONFIGURATION,
                descriptor_type::STRING,
                descriptor_type::STRING,
                descriptor_type::INTERFACE,
                descriptor_type::DEVICE_QUALIFIER,
                descriptor_type::OTHER_SPEED_CONFIGURATION,
                descriptor_type::BOS,
                descriptor_type::HID,
                random.bits() as u8,
            ];
            let kind = random.pick(&kinds);
            let language = random.pick(&[0, 0x409]);
            Setup::get_descriptor(kind, random.below(3) as u8, language, length(random))
        }
        4 | 5 => {
            let (kind, index) =
                random.pick(&[(0, 0), (1, 0), (1, 1), (2, endpoint), (2, endpoint), (3, 0)]);
            let length = if random.one_in(4) { length(random) } else { 2 };
            Setup { kind: IN | kind, request: request::GET_STATUS, value: 0, index, length }
        }
        6 => Setup::clear_halt(endpoint as u8),
        7 => Setup {
            kind: 2,
            request: request::SET_FEATURE,
            value: ENDPOINT_HALT,
            index: if is_acknowledged_early(seat, endpoint) { 0 } else { endpoint },
            length: 0,
        },
        // Requests of a class or a vendor, which most devices refuse.
        _ => Setup {
            kind: random.pick(&[0x20, 0x40, 0x60]) | random.below(4) as u8 | random.pick(&[0, IN]),
            request: random.bits() as u8,
            value: random.pick(&[0, 1, 0x100, 0x200]),
            index: random.pick(&[0, 1, endpoint]),
            length: length(random),
        },
    }
}

/// QEMU tells its guest that a packet to an interrupt endpoint went well before the device has it.
/// So a guest of QEMU's never hears that one is halted.
fn is_acknowledged_early(seat: &Seat, address: u16) -> bool {
    let mut own = seat.endpoints.iter();
    own.any(|it| u16::from(it.address) == address && it.kind() == EndpointKind::InterruptOut)
}

/// A command to a disk: its bytes, those of its data, and their way.
pub(crate) struct Command {
    pub block: [u8; COMMAND],
    pub data: usize,
    pub to_host: bool,
}

/// Returns a command to a disk. One in eight is damaged, and the host's length of one in eight is
/// not that of the command.
pub(crate) fn command(random: &mut Random) -> Command {
    let last = BLOCKS - 1;
    let count = random.between(1, BLOCKS_MAX) as u32;
    let block = match random.below(6) {
        0 => last - random.within(0, 2 * count),
        1 => random.bits() as u32,
        _ => random.within(0, 64),
    };
    let ([b0, b1, b2, b3], [.., c0, c1]) = (block.to_be_bytes(), count.to_be_bytes());
    let wanted = random.pick(&[18, 36, 255]);
    let (scsi, length, to_host): ([u8; 10], u32, bool) = match random.below(8) {
        0 => ([0; 10], 0, false),
        1 => ([0x12, 0, 0, 0, wanted, 0, 0, 0, 0, 0], 36.min(wanted.into()), true),
        2 => ([0x03, 0, 0, 0, wanted, 0, 0, 0, 0, 0], 18, true),
        3 => ([0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], 8, true),
        4 => ([random.bits() as u8; 10], random.within(0, 100), random.one_in(2)),
        5 => ([0x2a, 0, b0, b1, b2, b3, 0, c0, c1, 0], count * BLOCK, false),
        _ => ([0x28, 0, b0, b1, b2, b3, 0, c0, c1, 0], count * BLOCK, true),
    };
    let length = if random.one_in(8) { random.within(0, 2 * length + 20) } else { length };
    let mut block = [0; COMMAND];
    block[..4].copy_from_slice(b"USBC");
    block[4..8].copy_from_slice(&(random.bits() as u32).to_le_bytes());
    block[8..12].copy_from_slice(&length.to_le_bytes());
    block[12] = if to_host { 0x80 } else { 0 };
    block[14] = 10;
    block[15..25].copy_from_slice(&scsi);
    if random.one_in(8) {
        block[random.index(COMMAND)] ^= 1 << random.below(8);
    }
    Command { block, data: length as usize, to_host }
}
