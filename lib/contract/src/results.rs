//! The partition of a stick that keeps the console of a run: its header, and the blocks behind it.
//!
//! The header has a sector, and each block has one. A block has a checksum and its number, so a
//! reader finds the longest prefix that is whole, whatever was torn or damaged behind it. Each
//! start of the system begins with the first block again, and has a number of its own.

use diapason_abi::archive::crc32;

/// The program that writes the blocks.
pub const PROGRAM: &str = "results";
/// The kind of the partition: data without a file system.
pub const PARTITION: u8 = 0xda;
/// Bytes of a sector.
pub const SECTOR: usize = 512;
/// Bytes of the console in a block.
pub const TEXT: usize = SECTOR - FIELDS;
/// Most bytes of the name of a system.
const NAME: usize = 64;
/// Bytes of a block that are not text.
const FIELDS: usize = 32;
const MAGIC: u64 = u64::from_le_bytes(*b"DIARESLT");

/// A sector of the partition.
pub type Sector = [u8; SECTOR];

/// The header of a partition for results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResultsHeader<'a> {
    /// Sectors of the partition, with that of the header.
    pub sectors: u32,
    /// The checksum of the archive on the same stick.
    pub image: u32,
    /// The name of the system, cut off behind 64 bytes.
    pub system: &'a str,
}

/// A block of the console.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResultsBlock<'a> {
    /// The checksum of the archive that ran.
    pub image: u32,
    /// The number of the start.
    pub run: u32,
    /// The number of the block among those of the run.
    pub number: u32,
    /// Lines of the run that were lost so far, because they came faster than blocks were written.
    pub lost: u32,
    pub kind: BlockKind,
    pub text: &'a [u8],
}

/// The place of a block in its run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum BlockKind {
    /// Further blocks of the run may stand behind it.
    Middle = 0,
    /// The last block of a run that came to its end.
    Last = 1,
    /// The last block that the partition has room for.
    Full = 2,
}

fn put<const N: usize>(sector: &mut Sector, at: usize, bytes: [u8; N]) {
    if let Some(place) = sector.get_mut(at..at + N) {
        place.copy_from_slice(&bytes);
    }
}

fn get<const N: usize>(sector: &Sector, at: usize) -> [u8; N] {
    let found = sector.get(at..).and_then(|rest| rest.first_chunk());
    found.copied().unwrap_or([0; N])
}

/// Writes the checksum of all behind it to the front.
fn seal(sector: &mut Sector) {
    put(sector, 0, crc32(&sector[4..]).to_le_bytes());
}

fn is_sealed(sector: &Sector) -> bool {
    u32::from_le_bytes(get(sector, 0)) == crc32(&sector[4..])
}

fn word(sector: &Sector, at: usize) -> u32 {
    u32::from_le_bytes(get(sector, at))
}

impl<'a> ResultsHeader<'a> {
    /// Returns the sector with this header.
    #[must_use]
    pub fn to_sector(&self) -> Sector {
        let mut sector = [0; SECTOR];
        put(&mut sector, 8, MAGIC.to_le_bytes());
        put(&mut sector, 16, self.sectors.to_le_bytes());
        put(&mut sector, 20, self.image.to_le_bytes());
        for (place, byte) in sector.iter_mut().skip(24).zip(self.system.bytes().take(NAME)) {
            *place = byte;
        }
        seal(&mut sector);
        sector
    }

    /// Returns whether a sector was a header once, be it whole or not.
    #[must_use]
    pub fn is_meant(sector: &Sector) -> bool {
        u64::from_le_bytes(get(sector, 8)) == MAGIC
    }

    /// Reads a header. `None` if it is none, or damaged.
    #[must_use]
    pub fn of(sector: &'a Sector) -> Option<ResultsHeader<'a>> {
        let name = sector.get(24..24 + NAME)?;
        let length = name.iter().position(|byte| *byte == 0).unwrap_or(NAME);
        // A name that was cut off may end within a letter.
        let system = match core::str::from_utf8(&name[..length]) {
            Ok(whole) => whole,
            Err(error) => core::str::from_utf8(&name[..error.valid_up_to()]).ok()?,
        };
        let header = ResultsHeader { sectors: word(sector, 16), image: word(sector, 20), system };
        (Self::is_meant(sector) && is_sealed(sector)).then_some(header)
    }
}

impl<'a> ResultsBlock<'a> {
    /// Returns the sector with this block. Text beyond [`TEXT`] bytes is cut off.
    #[must_use]
    pub fn to_sector(&self) -> Sector {
        let text = &self.text[..self.text.len().min(TEXT)];
        let mut sector = [0; SECTOR];
        put(&mut sector, 4, (self.kind as u16).to_le_bytes());
        put(&mut sector, 6, (text.len() as u16).to_le_bytes());
        put(&mut sector, 8, (!MAGIC).to_le_bytes());
        for (at, word) in [self.image, self.run, self.number, self.lost].into_iter().enumerate() {
            put(&mut sector, 16 + 4 * at, word.to_le_bytes());
        }
        sector[FIELDS..FIELDS + text.len()].copy_from_slice(text);
        seal(&mut sector);
        sector
    }

    /// Reads a block. `None` if it is none, or damaged.
    #[must_use]
    pub fn of(sector: &'a Sector) -> Option<ResultsBlock<'a>> {
        let length = u16::from_le_bytes(get(sector, 6));
        let kind = match u16::from_le_bytes(get(sector, 4)) {
            0 => BlockKind::Middle,
            1 => BlockKind::Last,
            2 => BlockKind::Full,
            _ => return None,
        };
        let block = ResultsBlock {
            image: word(sector, 16),
            run: word(sector, 20),
            number: word(sector, 24),
            lost: word(sector, 28),
            kind,
            text: sector.get(FIELDS..FIELDS + usize::from(length))?,
        };
        let is_block = u64::from_le_bytes(get(sector, 8)) == !MAGIC;
        (is_block && is_sealed(sector)).then_some(block)
    }
}

/// Returns the partitions for results that the first sector of a disk names: the first sector of
/// each, and how many it has.
pub fn partitions(first: &Sector) -> impl Iterator<Item = (u32, u32)> {
    const TABLE: usize = 446;
    const ENTRY: usize = 16;
    let is_table = first[SECTOR - 2..] == [0x55, 0xaa];
    let entries = (0..4).map(|number| TABLE + ENTRY * number).filter(move |_| is_table);
    let found = entries.filter(|at| first.get(at + 4) == Some(&PARTITION));
    found.map(|at| (word(first, at + 8), word(first, at + 12))).filter(|(_, count)| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(text: &[u8]) -> ResultsBlock<'_> {
        ResultsBlock { image: 1, run: 2, number: 3, lost: 4, kind: BlockKind::Last, text }
    }

    #[test]
    fn what_is_written_is_read() {
        let header = ResultsHeader { sectors: 8192, image: 0xdead_beef, system: "engine" };
        assert_eq!(ResultsHeader::of(&header.to_sector()), Some(header));
        for length in [0, 1, TEXT] {
            let text = [b'x'; TEXT];
            let block = block(&text[..length]);
            assert_eq!(ResultsBlock::of(&block.to_sector()), Some(block));
        }
        let long = [b'x'; TEXT + 1];
        assert_eq!(ResultsBlock::of(&block(&long).to_sector()), Some(block(&long[..TEXT])));
        let name = "ä".repeat(40);
        let cut = ResultsHeader { system: &name, ..header }.to_sector();
        assert_eq!(ResultsHeader::of(&cut).map(|it| it.system), Some(&*"ä".repeat(32)));
        let name = alloc::format!("x{name}");
        let cut = ResultsHeader { system: &name, ..header }.to_sector();
        assert_eq!(ResultsHeader::of(&cut).map(|it| it.system.len()), Some(63));
    }

    #[test]
    fn every_damaged_bit_is_found() {
        let header = ResultsHeader { sectors: 8, image: 9, system: "a" }.to_sector();
        let text = block(b"~13 5\n").to_sector();
        for bit in 0..SECTOR * 8 {
            let [mut header, mut text] = [header, text];
            header[bit / 8] ^= 1 << (bit % 8);
            text[bit / 8] ^= 1 << (bit % 8);
            assert_eq!((ResultsHeader::of(&header), ResultsBlock::of(&text)), (None, None));
        }
    }

    #[test]
    fn an_empty_sector_is_neither_and_one_is_not_the_other() {
        let empty = [0; SECTOR];
        assert_eq!((ResultsHeader::of(&empty), ResultsBlock::of(&empty)), (None, None));
        assert_eq!(ResultsHeader::of(&block(b"").to_sector()), None);
        let header = ResultsHeader { sectors: 8, image: 9, system: "" }.to_sector();
        assert_eq!(ResultsBlock::of(&header), None);
    }

    #[test]
    fn only_a_table_has_partitions() {
        let mut sector = [0; SECTOR];
        for (number, (kind, first, count)) in
            [(0xef, 4, 5), (PARTITION, 6, 7), (PARTITION, 8, 0)].into_iter().enumerate()
        {
            let at = 446 + 16 * number;
            sector[at + 4] = kind;
            put(&mut sector, at + 8, u32::to_le_bytes(first));
            put(&mut sector, at + 12, u32::to_le_bytes(count));
        }
        assert_eq!(partitions(&sector).count(), 0);
        sector[510..].copy_from_slice(&[0x55, 0xaa]);
        assert!(partitions(&sector).eq([(6, 7)]));
    }
}
