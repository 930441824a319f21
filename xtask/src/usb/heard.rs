//! The time from when a disk is pulled out until its client hears of it. A disk that its client
//! reads all the time answers until it is pulled, so its last packet is the time of that.

use super::FROM;
use diapason_abi::Nanos;
use diapason_core::{Decision, Kernel};
use diapason_devices::disk::{BLOCK, Disk, IN};
use diapason_devices::{Answer, Handshake, Stall, UsbDevice};
use diapason_sim::{Observer, Said};
use diapason_usb::{Setup, Speed};
use std::cell::RefCell;
use std::rc::Rc;

/// A client hears of it within this time. A hub tells every 256 ms what has changed. The rest is
/// for the server, which looks after all devices that go at the same time one by one.
const BOUND: Nanos = Nanos::from_millis(300);
/// A client that read so many blocks of a disk reads it all the time.
const READS: u32 = 8;

/// The last packets of disks that were pulled while a client read them.
pub(super) type Pulls = Rc<RefCell<Vec<Nanos>>>;

/// A disk that notes when it was read last.
pub(super) struct ReadDisk {
    disk: Disk,
    reads: u32,
    last: Nanos,
    pulls: Pulls,
}

impl ReadDisk {
    /// Returns a disk that will be in this list once it is pulled.
    pub fn new(disk: Disk, pulls: &Pulls) -> ReadDisk {
        ReadDisk { disk, reads: 0, last: FROM, pulls: Rc::clone(pulls) }
    }
}

/// A hub drops what is pulled out of it.
impl Drop for ReadDisk {
    fn drop(&mut self) {
        if self.reads >= READS {
            self.pulls.borrow_mut().push(self.last);
        }
    }
}

impl UsbDevice for ReadDisk {
    fn speed(&self) -> Speed {
        self.disk.speed()
    }

    fn reset(&mut self, now: Nanos) {
        self.disk.reset(now);
    }

    fn control(&mut self, now: Nanos, setup: Setup, data: &[u8]) -> Result<Vec<u8>, Stall> {
        self.disk.control(now, setup, data)
    }

    fn receive(&mut self, now: Nanos, endpoint: u8, packet: &[u8]) -> Handshake {
        self.disk.receive(now, endpoint, packet)
    }

    fn send(&mut self, now: Nanos, endpoint: u8, packet: &mut [u8]) -> Answer {
        let answer = self.disk.send(now, endpoint, packet);
        if endpoint == IN && matches!(answer, Answer::Data(BLOCK)) {
            (self.reads, self.last) = (self.reads + 1, now);
        }
        answer
    }

    fn next_change(&self) -> Nanos {
        self.disk.next_change()
    }

    fn advance(&mut self, now: Nanos) {
        self.disk.advance(now);
    }
}

/// The times at which the client of a disk says that it is gone.
#[derive(Default)]
pub(super) struct Hearing {
    said: bool,
    heard: Vec<Nanos>,
}

impl Observer for Hearing {
    fn hear(&mut self, said: Said) {
        if let Said::Log(_, text) = said {
            self.said |= text.starts_with("DISK GONE") || text.starts_with("disk: cannot");
        }
    }

    fn decided(&mut self, read: Nanos, _: Nanos, _: &Kernel<'_>, _: &Decision) {
        if std::mem::take(&mut self.said) {
            self.heard.push(read);
        }
    }
}

impl Hearing {
    /// Checks that the client heard of each pull in time, and of some. Pulls that are so late that
    /// the run ends before the bound do not count.
    pub fn is_in_time(&self, pulls: &Pulls, end: Nanos) -> Result<String, String> {
        let mut pulls = pulls.borrow().clone();
        pulls.retain(|pull| *pull + BOUND < end);
        pulls.sort_unstable();
        let after = |pull: Nanos| self.heard.iter().find(|heard| **heard >= pull).copied();
        let took: Vec<Nanos> =
            pulls.iter().map(|pull| after(*pull).unwrap_or(end) - *pull).collect();
        let longest = took.iter().max().ok_or("no disk was pulled while it was read")?;
        let sum: u64 = took.iter().map(|took| took.0).sum();
        let (mean, ms) = (sum / took.len() as u64 / 1_000_000, longest.0 / 1_000_000);
        let said = format!(
            "{} times a disk was pulled that a client read; it heard after {mean} ms in the mean, \
             {ms} ms at most",
            took.len()
        );
        if *longest <= BOUND { Ok(said) } else { Err(said) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_hears_nothing_or_late_is_found() {
        let ms = Nanos::from_millis;
        let pulls: Pulls = Rc::new(RefCell::new(vec![ms(1_000), ms(2_000)]));
        let of = |heard: &[Nanos]| Hearing { said: false, heard: heard.to_vec() };
        let end = ms(5_000);
        let said = of(&[ms(1_010), ms(2_200)]).is_in_time(&pulls, end).unwrap();
        assert!(said.contains("2 times") && said.contains("200 ms at most"), "{said}");
        assert!(of(&[ms(1_010)]).is_in_time(&pulls, end).is_err());
        assert!(of(&[ms(1_010), ms(2_301)]).is_in_time(&pulls, end).is_err());
        assert!(of(&[ms(1_010)]).is_in_time(&pulls, ms(2_100)).is_ok());
        assert!(of(&[]).is_in_time(&Pulls::default(), end).is_err());
    }
}
