//! Takes the consoles of all cores to a partition of the stick that the system booted from.
//!
//! Twice a second it writes what came since as blocks, one behind the other. Before each write it
//! looks whether the stick is still the one, so another stick is never written to. Its words in the
//! segment outlast a restart, which goes on with the block that it was at. Where several cores
//! speak, their text has marks as on the serial port.
//!
//! A server that does not answer counts as a stick that is away. It may still do what it was asked
//! for, before anything that it is asked for later. So a sector is read to a place of its own, and
//! what is written late is written again.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_abi::archive::CORES_MAX;
use diapason_abi::results::{
    CORES, HEAD, IMAGE, LOST, NEXT, RING, RUN, RunState, SEGMENT, STATE, TAIL, TAKER, Taker, image,
    mark, part, waiting,
};
use diapason_contract::results::{
    BlockKind, ResultsBlock, ResultsHeader, SECTOR, Sector, TEXT, partitions,
};
use diapason_rt::memory::DmaSegment;
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_usblib::UsbClient;
use diapason_usblib::disk::{Ask, BYTES_MAX, DONE, DiskAnswer, NAMES, READ, RECORDS, SIZE, WRITE};

entry!(main);

/// Time between two looks at the ring.
const PERIOD: Nanos = Nanos::from_millis(500);

/// A server that did not answer for so long does not answer. A stick that was not found before the
/// end of the run, and for so long after it, is not there.
const PATIENCE: Nanos = Nanos::from_secs(5);

/// Where the partition is.
#[derive(Clone, Copy)]
struct Found {
    /// The sector of the header.
    header: u32,
    sectors: u32,
}

/// The rings of all cores.
struct Consoles {
    segment: DmaSegment,
    cores: usize,
    /// Bytes of a part.
    part: usize,
}

struct Keeper {
    consoles: Consoles,
    disk: UsbClient<Ask, DiskAnswer, RECORDS>,
    found: Option<Found>,
    /// The time at which every core was seen to have ended.
    ended: Option<Nanos>,
    /// It has said why nothing is written.
    told: bool,
}

fn main(_: Arguments) {
    if let Err(errno) = keep() {
        log!("no results: {errno:?}");
    }
}

fn keep() -> Result<(), Errno> {
    let consoles = Consoles::of(DmaSegment::attach(SEGMENT)?);
    let words = &consoles.segment;
    let ended = words.read32(TAKER) == Taker::Done as u32;
    if ended || words.read32(STATE) == RunState::Unused as u32 {
        return Ok(());
    }
    let nothing_comes = |_: &Errno| words.write32(TAKER, Taker::Done as u32);
    let disk = UsbClient::named(NAMES[0].all()).inspect_err(nothing_comes)?;
    let mut keeper = Keeper { consoles, disk, found: None, ended: None, told: false };
    let mut at = time::now();
    while !keeper.round() {
        at = (at + PERIOD).max(time::now());
        time::sleep_until(at);
    }
    keeper.consoles.segment.write32(TAKER, Taker::Done as u32);
    Ok(())
}

impl Consoles {
    fn of(segment: DmaSegment) -> Consoles {
        let cores = (segment.read32(CORES) as usize).clamp(1, CORES_MAX);
        let part = part(segment.bytes() as u64, cores as u32) as usize;
        Consoles { segment, cores, part }
    }

    /// Returns a word of each core.
    fn words(&self, word: usize) -> [u32; CORES_MAX] {
        let mut words = [0; CORES_MAX];
        for (core, value) in words.iter_mut().enumerate().take(self.cores) {
            *value = self.segment.read32(core * self.part + word);
        }
        words
    }

    fn room(&self) -> u32 {
        (self.part - RING) as u32
    }

    /// Returns whether every core has said its last line.
    fn have_ended(&self) -> bool {
        self.words(STATE).iter().take(self.cores).all(|state| *state == RunState::Ended as u32)
    }

    /// Returns how many bytes of each core wait.
    fn waiting(&self) -> [u32; CORES_MAX] {
        let (mut waits, tails) = (self.words(HEAD), self.words(TAIL));
        for (head, tail) in waits.iter_mut().zip(tails) {
            *head = waiting(self.room(), *head, tail);
        }
        waits
    }

    fn image(&self) -> u32 {
        image(self.words(IMAGE).into_iter().take(self.cores))
    }
}

/// The text that is taken from the rings and not written yet.
struct Taken {
    tails: [u32; CORES_MAX],
    /// Bytes of each core that wait.
    left: [u32; CORES_MAX],
    /// The core whose text was taken last.
    speaker: Option<usize>,
}

impl Taken {
    fn is_all(&self) -> bool {
        self.left == [0; CORES_MAX]
    }

    /// Fills the text of a block, and returns its length. The cores begin a block in turn, so none
    /// waits for another that talks without end.
    fn fill(&mut self, consoles: &Consoles, block: u32, text: &mut [u8; TEXT]) -> usize {
        let (cores, mut length) = (consoles.cores, 0);
        for core in (0..cores).map(|number| (block as usize + number) % cores) {
            // A mark takes a byte.
            if self.left[core] == 0 || text.len() - length < 2 {
                continue;
            }
            if cores > 1 && self.speaker.replace(core) != Some(core) {
                text[length] = mark(core as u8);
                length += 1;
            }
            let taken = self.left[core].min((text.len() - length) as u32);
            let tail = self.tails[core];
            let first = taken.min(consoles.room() - tail) as usize;
            let (one, other) = text[length..][..taken as usize].split_at_mut(first);
            let ring = core * consoles.part + RING;
            consoles.segment.copy_out(ring + tail as usize, one);
            consoles.segment.copy_out(ring, other);
            self.tails[core] = (tail + taken) % consoles.room();
            self.left[core] -= taken;
            length += taken as usize;
        }
        length
    }
}

impl Keeper {
    /// Writes what waits. Returns whether nothing is to be written any more.
    fn round(&mut self) -> bool {
        let has_ended = self.consoles.have_ended();
        if has_ended && self.ended.is_none() {
            self.ended = Some(time::now());
        }
        let Some(found) = self.look() else { return self.gives_up() };
        loop {
            let waits = |consoles: &Consoles| consoles.waiting() != [0; CORES_MAX];
            match self.write(found, has_ended) {
                Some(BlockKind::Middle) if waits(&self.consoles) || has_ended => {}
                Some(BlockKind::Middle) => return false,
                Some(BlockKind::Last | BlockKind::Full) => return true,
                None => {
                    self.found = None;
                    return false;
                }
            }
        }
    }

    /// Returns whether a stick that is away is not waited for any more. One that was never there
    /// may only be slow: a run may be shorter than it takes a server to find a stick.
    fn gives_up(&self) -> bool {
        let was_there = self.consoles.segment.read32(RUN) != 0;
        self.ended.is_some_and(|ended| was_there || time::now() >= ended + PATIENCE)
    }

    /// Writes one piece. Returns the kind of its last block; `None` if the disk did not take it.
    fn write(&mut self, found: Found, has_ended: bool) -> Option<BlockKind> {
        let consoles = &self.consoles;
        let [run, next] = [RUN, NEXT].map(|word| consoles.segment.read32(word));
        let most = (self.place().min(BYTES_MAX) / SECTOR) as u32;
        let (tails, left) = (consoles.words(TAIL), consoles.waiting());
        // Without a mark, the first core speaks.
        let speaker = (next == 0).then_some(0);
        let mut taken = Taken { tails, left, speaker };
        let (mut count, mut kind) = (0, BlockKind::Middle);
        while count < most && kind == BlockKind::Middle && (!taken.is_all() || has_ended) {
            let (number, mut text) = (next + count, [0; TEXT]);
            let length = taken.fill(consoles, number, &mut text);
            kind = if has_ended && taken.is_all() {
                BlockKind::Last
            } else if number + 2 >= found.sectors {
                BlockKind::Full
            } else {
                BlockKind::Middle
            };
            let lost = consoles.words(LOST).iter().sum();
            let (image, text) = (consoles.image(), &text[..length]);
            let block = ResultsBlock { image, run, number, lost, kind, text };
            self.disk.data.copy_in(count as usize * SECTOR, &block.to_sector());
            count += 1;
        }
        if count > 0 {
            self.ask(WRITE, found.header + 1 + next, count)?;
            let Consoles { segment, part, cores } = &self.consoles;
            for (core, tail) in taken.tails.iter().enumerate().take(*cores) {
                segment.write32(core * part + TAIL, *tail);
            }
            segment.write32(NEXT, next + count);
        }
        Some(kind)
    }

    /// Returns where the partition is, if the disk with it is there now.
    fn look(&mut self) -> Option<Found> {
        if let Some(found) = self.found {
            self.found = self.partition(found.header);
            return self.found;
        }
        let size = self.ask(SIZE, 0, 0)?;
        if size.block_bytes == SECTOR as u32
            && let Some(first) = self.read(0)
        {
            for (header, _) in partitions(&first) {
                if let Some(found) = self.partition(header) {
                    self.found = self.begin(found).then_some(found);
                    return self.found;
                }
            }
        }
        self.tell("the disk has no partition for those of this image");
        None
    }

    /// Says once why nothing is written.
    fn tell(&mut self, why: &str) {
        if !self.told {
            log!("no results: {why}");
            self.told = true;
        }
    }

    /// Returns the partition whose header is in this sector, if it is for this image.
    fn partition(&mut self, header: u32) -> Option<Found> {
        let sector = self.read(header)?;
        let own = self.consoles.image();
        let read = ResultsHeader::of(&sector).filter(|it| it.image == own && it.sectors > 1);
        read.map(|ResultsHeader { sectors, .. }| Found { header, sectors })
    }

    /// Numbers this start, unless it has a number. Returns whether it has one.
    fn begin(&mut self, found: Found) -> bool {
        if self.consoles.segment.read32(RUN) == 0 {
            let Some(sector) = self.read(found.header + 1) else { return false };
            let before = ResultsBlock::of(&sector).map_or(0, |block| block.run);
            self.consoles.segment.write32(RUN, before.wrapping_add(1).max(1));
        }
        true
    }

    /// Returns where in the shared memory a sector is read to: behind everything that is written.
    fn place(&self) -> usize {
        self.disk.data.bytes() - SECTOR
    }

    fn read(&mut self, sector: u32) -> Option<Sector> {
        let mut bytes = [0; SECTOR];
        self.ask(READ, sector, 1)?;
        self.disk.data.copy_out(self.place(), &mut bytes);
        Some(bytes)
    }

    /// Asks the server, and waits for its answer. `None` if it is not done.
    fn ask(&mut self, what: u32, block: u32, count: u32) -> Option<DiskAnswer> {
        let place = if what == READ { self.place() as u32 } else { 0 };
        // The time tells the answer from those to asks that were given up.
        let now = time::now();
        let ask = Ask { what, block, count, place, due: now.0 };
        let mut last = self.disk.ask(&ask);
        while last.is_ok() {
            last = match self.disk.answer(now + PATIENCE) {
                Ok(answer) if answer.ask == ask => {
                    return (answer.status == DONE).then_some(answer);
                }
                other => other.map(|_| ()),
            };
        }
        self.tell("the USB server does not answer");
        None
    }
}
