//! Takes the console of the kernel to a partition of the stick that the system booted from.
//!
//! Twice a second it writes what came since as blocks, one behind the other. Before each write it
//! looks whether the stick is still the one, so another stick is never written to. Its words in the
//! segment outlast a restart, which goes on with the block that it was at.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_abi::results::{
    HEAD, IMAGE, LOST, NEXT, RING, RUN, RunState, SEGMENT, STATE, TAIL, TAKER, Taker, waiting,
};
use diapason_contract::results::{
    BlockKind, ResultsBlock, ResultsHeader, SECTOR, Sector, TEXT, partitions,
};
use diapason_rt::memory::DmaSegment;
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_usblib::UsbClient;
use diapason_usblib::disk::{
    ANSWERS, ASKED, ASKS, Ask, BYTES_MAX, DATA, DONE, DiskAnswer, READ, READY, RECORDS, SIZE, WRITE,
};

entry!(main);

/// Time between two looks at the ring.
const PERIOD: Nanos = Nanos::from_millis(500);

/// Where the partition is.
#[derive(Clone, Copy)]
struct Found {
    /// The sector of the header.
    header: u32,
    sectors: u32,
}

struct Keeper {
    console: DmaSegment,
    disk: UsbClient<Ask, DiskAnswer, RECORDS>,
    found: Option<Found>,
    /// It has said that the disk is not the one.
    told: bool,
}

fn main(_: Arguments) {
    if let Err(errno) = keep() {
        log!("no results: {errno:?}");
    }
}

fn keep() -> Result<(), Errno> {
    let console = DmaSegment::attach(SEGMENT)?;
    let ended = console.read32(TAKER) == Taker::Done as u32;
    if ended || console.read32(STATE) == RunState::Unused as u32 {
        return Ok(());
    }
    let disk = UsbClient::named([ASKS, ANSWERS, DATA, ASKED, READY])?;
    console.write32(TAKER, Taker::Busy as u32);
    let mut keeper = Keeper { console, disk, found: None, told: false };
    let mut at = time::now();
    while !keeper.round()? {
        at = (at + PERIOD).max(time::now());
        time::sleep_until(at);
    }
    keeper.console.write32(TAKER, Taker::Done as u32);
    Ok(())
}

impl Keeper {
    /// Writes what waits. Returns whether nothing is to be written any more.
    fn round(&mut self) -> Result<bool, Errno> {
        let has_ended = self.console.read32(STATE) == RunState::Ended as u32;
        let Some(found) = self.look()? else {
            // Without the stick there is nothing to wait for.
            return Ok(has_ended);
        };
        loop {
            match self.write(found, has_ended)? {
                Some(BlockKind::Middle) if self.waiting() > 0 || has_ended => {}
                Some(BlockKind::Middle) => return Ok(false),
                Some(BlockKind::Last | BlockKind::Full) => return Ok(true),
                None => {
                    self.found = None;
                    return Ok(false);
                }
            }
        }
    }

    /// Writes one piece. Returns the kind of its last block; `None` if the disk did not take it.
    fn write(&mut self, found: Found, has_ended: bool) -> Result<Option<BlockKind>, Errno> {
        let console = &self.console;
        let room = (console.bytes() - RING) as u32;
        let [mut tail, next] = [TAIL, NEXT].map(|word| console.read32(word));
        let most = (self.disk.data.bytes().min(BYTES_MAX) / SECTOR) as u32;
        let mut left = self.waiting();
        let (mut count, mut kind) = (0, BlockKind::Middle);
        while count < most && kind == BlockKind::Middle && (left > 0 || has_ended) {
            let mut text = [0; TEXT];
            let taken = left.min(TEXT as u32);
            let first = taken.min(room - tail);
            let (one, other) = text[..taken as usize].split_at_mut(first as usize);
            console.copy_out(RING + tail as usize, one);
            console.copy_out(RING, other);
            (tail, left) = ((tail + taken) % room, left - taken);
            kind = if has_ended && left == 0 {
                BlockKind::Last
            } else if next + count + 2 >= found.sectors {
                BlockKind::Full
            } else {
                BlockKind::Middle
            };
            let [image, run, lost] = [IMAGE, RUN, LOST].map(|word| console.read32(word));
            let text = &text[..taken as usize];
            let block = ResultsBlock { image, run, number: next + count, lost, kind, text };
            self.disk.data.copy_in(count as usize * SECTOR, &block.to_sector());
            count += 1;
        }
        if count > 0 {
            if self.ask(WRITE, found.header + 1 + next, count)?.status != DONE {
                return Ok(None);
            }
            self.console.write32(TAIL, tail);
            self.console.write32(NEXT, next + count);
        }
        Ok(Some(kind))
    }

    fn waiting(&self) -> u32 {
        let room = (self.console.bytes() - RING) as u32;
        waiting(room, self.console.read32(HEAD), self.console.read32(TAIL))
    }

    /// Returns where the partition is, if the disk with it is there now.
    fn look(&mut self) -> Result<Option<Found>, Errno> {
        if let Some(found) = self.found {
            self.found = self.partition(found.header)?;
            return Ok(self.found);
        }
        let size = self.ask(SIZE, 0, 0)?;
        if size.status != DONE {
            return Ok(None);
        }
        if size.block_bytes == SECTOR as u32
            && let Some(first) = self.read(0)?
        {
            for (header, _) in partitions(&first) {
                if let Some(found) = self.partition(header)? {
                    self.found = self.begin(found)?.then_some(found);
                    return Ok(self.found);
                }
            }
        }
        if !self.told {
            log!("no results: the disk has no partition for those of this image");
            self.told = true;
        }
        Ok(None)
    }

    /// Returns the partition whose header is in this sector, if it is for this image.
    fn partition(&mut self, header: u32) -> Result<Option<Found>, Errno> {
        let Some(sector) = self.read(header)? else { return Ok(None) };
        let own = self.console.read32(IMAGE);
        let read = ResultsHeader::of(&sector).filter(|it| it.image == own && it.sectors > 1);
        Ok(read.map(|ResultsHeader { sectors, .. }| Found { header, sectors }))
    }

    /// Numbers this start, unless it has a number. Returns whether it has one.
    fn begin(&mut self, found: Found) -> Result<bool, Errno> {
        if self.console.read32(RUN) == 0 {
            let Some(sector) = self.read(found.header + 1)? else { return Ok(false) };
            let before = ResultsBlock::of(&sector).map_or(0, |block| block.run);
            self.console.write32(RUN, before.wrapping_add(1).max(1));
        }
        Ok(true)
    }

    fn read(&mut self, sector: u32) -> Result<Option<Sector>, Errno> {
        let mut bytes = [0; SECTOR];
        let answer = self.ask(READ, sector, 1)?;
        self.disk.data.copy_out(0, &mut bytes);
        Ok((answer.status == DONE).then_some(bytes))
    }

    fn ask(&mut self, what: u32, block: u32, count: u32) -> Result<DiskAnswer, Errno> {
        // The time tells the answer from one that a program before a restart asked for.
        let ask = Ask { what, block, count, place: 0, due: time::now().0 };
        self.disk.ask(&ask)?;
        loop {
            let answer = self.disk.answer(Nanos::FOREVER)?;
            if answer.ask == ask {
                return Ok(answer);
            }
        }
    }
}
