//! A driver for the USB-CAN interface that knows the tables and nothing else.

use diapason_abi::Nanos;
use diapason_devices::kvaser::{CommandHeader, Hydra, IN, OUT};

/// A normal command to `to`.
pub fn command(number: u8, to: u8, transaction: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = CommandHeader { number, to, from: 0, transaction }.encode().to_vec();
    bytes.extend(body);
    bytes.resize(32, 0);
    bytes
}

/// An extended frame command as Linux sends it.
pub fn extended_transmit(to: u8, transaction: u16, id: u32, flags: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = CommandHeader { number: 255, to, from: 0, transaction }.encode().to_vec();
    bytes.resize(32, 0);
    bytes[4] = (32 + data.len()).next_multiple_of(8) as u8;
    bytes[6] = 224;
    bytes[8..12].copy_from_slice(&(flags & 0xffff).to_le_bytes());
    bytes[12..16].copy_from_slice(&id.to_le_bytes());
    let once = flags & 1 << 16;
    bytes[20..24].copy_from_slice(&(1 << 31 | once | (data.len() as u32) << 8).to_le_bytes());
    (bytes[24], bytes[25]) = (data.len() as u8, data.len() as u8);
    bytes.extend(data);
    bytes.resize(bytes[4].into(), 0);
    bytes
}

/// Cuts a stream of commands from the device; parts of extended ones are kept.
#[derive(Default)]
pub struct Reader {
    rest: Vec<u8>,
}

impl Reader {
    /// One transfer of at most `bytes`, if anything is there.
    pub fn transfer(&mut self, device: &mut Hydra, now: Nanos, bytes: usize) -> Vec<Vec<u8>> {
        let mut got = 0;
        while got < bytes {
            let Some(packet) = super::read(device, now, IN, 512.min(bytes - got)) else { break };
            got += packet.len();
            self.rest.extend(&packet);
            if packet.len() < 512 {
                break;
            }
        }
        let mut commands = Vec::new();
        while let Some(length) = self.length().filter(|length| self.rest.len() >= *length) {
            commands.push(self.rest.drain(..length).collect());
        }
        let whole = self.rest.is_empty() || self.rest[0] == 255;
        assert!(whole, "a normal command was cut");
        commands
    }

    fn length(&self) -> Option<usize> {
        match *self.rest.as_slice() {
            [255, _, _, _, low, high, ..] => Some(u16::from_le_bytes([low, high]).into()),
            [255, ..] | [] => None,
            _ => Some(32),
        }
    }
}

/// Everything the device has for its host now.
pub fn drain(device: &mut Hydra, now: Nanos) -> Vec<Vec<u8>> {
    let (mut reader, mut all) = (Reader::default(), Vec::new());
    loop {
        let commands = reader.transfer(device, now, 3_072);
        if commands.is_empty() {
            return all;
        }
        all.extend(commands);
    }
}

/// A command, and all that comes back at once.
pub fn ask(device: &mut Hydra, now: Nanos, bytes: &[u8]) -> Vec<Vec<u8>> {
    super::write(device, now, OUT, bytes);
    drain(device, now)
}

/// Returns the values that Linux sets for these bit rates on a controller of the first kind.
pub fn bit_rate(hertz: u32) -> Vec<u8> {
    let mut body = hertz.to_le_bytes().to_vec();
    body.extend([139, 20, 1, 1]);
    body
}

/// Opens the channel of `entity` as Linux does.
pub fn open(device: &mut Hydra, now: Nanos, entity: u8, hertz: u32, mode: u8) {
    assert_eq!(ask(device, now, &command(16, entity, 2, &bit_rate(hertz)))[0][0], 85);
    let stored = ask(device, now, &command(17, entity, 3, &[0]));
    assert_eq!(stored[0][4..12], bit_rate(hertz));
    assert!(ask(device, now, &command(21, entity, 4, &[mode])).is_empty());
    assert_eq!(ask(device, now, &command(26, entity, 5, &[]))[0][..4], reply(27, entity, 5));
}

/// The first four bytes of a message from `entity`.
pub fn reply(number: u8, entity: u8, transaction: u16) -> [u8; 4] {
    CommandHeader { number, to: 0, from: entity, transaction }.encode()
}
