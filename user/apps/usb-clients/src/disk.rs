//! Writes blocks to the disk of the USB server, reads them to other memory, and compares.
//!
//! Once a second it says `DISK written read`: KiB so far. Arguments: how many MiB; 1 if it gives
//! the semaphore `disk.checked` at the end; 1 if it then goes on to read the first block for ever,
//! and says `DISK GONE` when the disk is no longer there.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_rt::sync::Semaphore;
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_usblib::UsbClient;
use diapason_usblib::disk::{Ask, BYTES_MAX, DONE, DiskAnswer, NAMES, READ, RECORDS, SIZE, WRITE};

entry!(main);

/// Time between two reports.
const REPORT: Nanos = Nanos::from_secs(1);
/// A disk that is not there yet is asked for so often.
const PAUSE: Nanos = Nanos::from_millis(100);
const MIB: u64 = 1 << 20;
/// Writes come from the first half of the memory, reads go to the second.
const READ_TO: u32 = BYTES_MAX as u32;

/// How far it is.
struct Progress {
    disk: UsbClient<Ask, DiskAnswer, RECORDS>,
    blocks: u64,
    block_bytes: u32,
    report_at: Nanos,
    written: u64,
    read: u64,
    wrong: u64,
}

fn main(Arguments([mebibytes, tells, watches, ..]): Arguments) {
    let told = || if tells == 0 { Ok(()) } else { Semaphore::open("disk.checked")?.give() };
    let checked = check(mebibytes * MIB).and_then(|progress| told().map(|()| progress));
    let watched = checked.and_then(|progress| match watches {
        0 => Ok(()),
        _ => progress.watch(),
    });
    if let Err(errno) = watched {
        log!("DISK NOT WHOLE: {errno:?}");
    }
}

fn check(bytes: u64) -> Result<Progress, Errno> {
    let disk = UsbClient::named(NAMES[0].all())?;
    let report_at = time::now() + REPORT;
    let (blocks, block_bytes) = (0, 0);
    let mut progress =
        Progress { disk, blocks, block_bytes, report_at, written: 0, read: 0, wrong: 0 };
    progress.find()?;
    let begun = time::now();
    let bytes = bytes.min(progress.blocks * u64::from(progress.block_bytes));
    for at in (0..bytes).step_by(BYTES_MAX) {
        progress.write(at)?;
    }
    let middle = time::now();
    for at in (0..bytes).step_by(BYTES_MAX) {
        progress.compare(at)?;
    }
    let ended = time::now();
    let rate = |from: Nanos, to: Nanos| bytes * 1_000 / (to - from).0.max(1);
    let (write, read) = (rate(begun, middle), rate(middle, ended));
    let verdict = if progress.wrong == 0 && bytes > 0 { "WHOLE" } else { "NOT WHOLE" };
    let (mebibytes, wrong) = (bytes / MIB, progress.wrong);
    log!("DISK {verdict} {mebibytes} MiB, {wrong} words wrong, MB/s: {write} written, {read} read");
    Ok(progress)
}

impl Progress {
    /// Asks, and waits for the answer.
    fn ask(&mut self, what: u32, block: u32, count: u32, place: u32) -> Result<DiskAnswer, Errno> {
        self.disk.ask(&Ask { what, block, count, place, due: 0 })?;
        let answer = self.disk.answer(Nanos::FOREVER)?;
        if time::now() >= self.report_at {
            self.report_at += REPORT;
            log!("DISK {} {}", self.written / 1024, self.read / 1024);
        }
        Ok(answer)
    }

    /// Waits for a disk.
    fn find(&mut self) -> Result<(), Errno> {
        loop {
            let answer = self.ask(SIZE, 0, 0, 0)?;
            if answer.status == DONE && answer.block_bytes > 0 {
                (self.blocks, self.block_bytes) = (answer.blocks, answer.block_bytes);
                return Ok(());
            }
            time::sleep(PAUSE);
        }
    }

    /// Reads the first block for ever.
    fn watch(mut self) -> Result<(), Errno> {
        let mut there = true;
        loop {
            let status = self.ask(READ, 0, 1, READ_TO)?.status;
            if status != DONE {
                if there {
                    log!("DISK GONE {status}");
                }
                time::sleep(PAUSE);
            }
            there = status == DONE;
        }
    }

    /// Block and number of blocks of the piece that begins `at`.
    fn piece(&self, at: u64) -> (u32, u32) {
        let block = u64::from(self.block_bytes);
        let count = (BYTES_MAX as u64 / block).min(self.blocks - at / block);
        ((at / block) as u32, count as u32)
    }

    fn write(&mut self, at: u64) -> Result<(), Errno> {
        let (block, count) = self.piece(at);
        for offset in (0..count as usize * self.block_bytes as usize).step_by(4) {
            self.disk.data.write32(offset, word(at + offset as u64));
        }
        match self.ask(WRITE, block, count, 0)?.status {
            DONE => self.written += BYTES_MAX as u64,
            status => self.refused("write", block, status),
        }
        Ok(())
    }

    fn compare(&mut self, at: u64) -> Result<(), Errno> {
        let (block, count) = self.piece(at);
        match self.ask(READ, block, count, READ_TO)?.status {
            DONE => self.read += BYTES_MAX as u64,
            status => self.refused("read", block, status),
        }
        for offset in (0..count as usize * self.block_bytes as usize).step_by(4) {
            let found = self.disk.data.read32(READ_TO as usize + offset);
            self.wrong += u64::from(found != word(at + offset as u64));
        }
        Ok(())
    }

    fn refused(&mut self, what: &str, block: u32, status: u32) {
        log!("disk: cannot {what} at block {block}: {status}");
        self.wrong += 1;
    }
}

/// Returns the word for this place: no two words of a disk are the same.
fn word(at: u64) -> u32 {
    ((at / 4) as u32).wrapping_mul(0x9e37_79b1) ^ 0x5bd1_e995
}
