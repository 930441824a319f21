//! Sends as much as links take, and takes as much as comes, without looking at it.
//!
//! Once a second it says for each link `FLOOD link received sent`: bytes of that second. Arguments:
//! how many links, bytes of a message.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_usblib::link::{DONE, Done, FILL, Link, MESSAGE_MAX, SEND, UNIT};

entry!(main);

/// Time between two reports.
const REPORT: Nanos = Nanos::from_secs(1);
/// Messages under way in each direction of a link.
const EACH: u32 = 6;

/// A link, and what moved in this second.
struct Flood {
    link: Link,
    bytes: u32,
    received: u64,
    sent: u64,
}

fn main(Arguments([links, bytes, ..]): Arguments) {
    let bytes = bytes.clamp(1, MESSAGE_MAX as u64) as u32;
    let done = if links == 2 { run([0, 1], bytes) } else { run([0], bytes) };
    if let Err(errno) = done {
        log!("flood: {errno:?}");
    }
}

fn run<const N: usize>(numbers: [usize; N], bytes: u32) -> Result<(), Errno> {
    let mut floods: [Option<Flood>; N] = [const { None }; N];
    for (flood, number) in floods.iter_mut().zip(numbers) {
        *flood = Some(Flood::begin(number, bytes)?);
    }
    let mut report_at = time::now() + REPORT;
    loop {
        let Some(Some(first)) = floods.first() else { return Ok(()) };
        match first.link.wait(report_at) {
            Ok(()) => floods.iter_mut().flatten().try_for_each(Flood::drain)?,
            Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
        if time::now() >= report_at {
            report_at += REPORT;
            for (number, flood) in floods.iter_mut().flatten().enumerate() {
                log!("FLOOD {number} {} {}", flood.received, flood.sent);
                (flood.received, flood.sent) = (0, 0);
            }
        }
    }
}

impl Flood {
    /// Lends whole packets, so that a message with a full last one ends with the memory.
    fn fill(&mut self, place: u32) -> Result<(), Errno> {
        self.link.fill(place, self.bytes.next_multiple_of(UNIT as u32))
    }

    /// All memory of the link is lent or given.
    fn begin(number: usize, bytes: u32) -> Result<Flood, Errno> {
        let mut flood = Flood { link: Link::open(number)?, bytes, received: 0, sent: 0 };
        let first = number as u32 * 2 * EACH;
        for index in 0..EACH {
            let (here, there) = (first + index, first + EACH + index);
            flood.fill(flood.link.place(here))?;
            flood.link.send(flood.link.place(there), bytes)?;
        }
        flood.link.ring();
        Ok(flood)
    }

    /// A finished transfer is queued again.
    fn drain(&mut self) -> Result<(), Errno> {
        let mut asked = false;
        while let Some(Done { what, place, bytes, status, .. }) = self.link.pop() {
            let moved = if status == DONE { u64::from(bytes) } else { 0 };
            match what {
                FILL => self.received += moved,
                _ => self.sent += moved,
            }
            match what {
                SEND => self.link.send(place, self.bytes)?,
                _ => self.fill(place)?,
            }
            asked = true;
        }
        if asked {
            self.link.ring();
        }
        Ok(())
    }
}
