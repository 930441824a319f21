//! Passes messages on between two links, where they are: what comes from one goes to the other.
//!
//! Once a second it says `ROUTED messages dropped`. Arguments: most bytes of a message, and pieces
//! of memory for messages of each link (0: 4).

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_usblib::link::{DONE, Done, FILL, Link, MESSAGE_MAX, UNIT};

entry!(main);

/// Time between two reports.
const REPORT: Nanos = Nanos::from_secs(1);
/// Pieces of memory for messages of each link, if no argument says, and the most.
const EACH: u32 = 4;
const EACH_MAX: u64 = 32;

struct Router {
    links: [Link; 2],
    bytes: u32,
    /// Pieces of memory for messages of each link.
    each: u32,
    routed: u64,
    dropped: u64,
}

fn main(Arguments([bytes, each, ..]): Arguments) {
    let bytes = bytes.clamp(1, MESSAGE_MAX as u64) as u32;
    let each = if each == 0 { EACH } else { each.min(EACH_MAX) as u32 };
    if let Err(errno) = run(bytes.next_multiple_of(UNIT as u32), each) {
        log!("router: {errno:?}");
    }
}

fn run(bytes: u32, each: u32) -> Result<(), Errno> {
    let links = [Link::open(0)?, Link::open(1)?];
    let mut router = Router { links, bytes, each, routed: 0, dropped: 0 };
    for number in 0..2 * each {
        let place = router.links[0].place(number);
        let home = router.home(place);
        router.links[home].fill(place, bytes)?;
    }
    router.links.iter().for_each(Link::ring);
    let mut report_at = time::now() + REPORT;
    loop {
        match router.links[0].wait(report_at) {
            Ok(()) => router.drain()?,
            Err(Errno::TimedOut) => {
                log!("ROUTED {} {}", router.routed, router.dropped);
                report_at += REPORT;
            }
            Err(errno) => return Err(errno),
        }
    }
}

impl Router {
    /// Returns the link whose messages come to a place.
    fn home(&self, place: u32) -> usize {
        usize::from(place >= self.links[0].place(self.each))
    }

    fn drain(&mut self) -> Result<(), Errno> {
        let mut asked = [false; 2];
        for from in 0..2 {
            while let Some(done) = self.links[from].pop() {
                asked[self.take(&done)?] = true;
            }
        }
        for (link, asked) in self.links.iter().zip(asked) {
            if asked {
                link.ring();
            }
        }
        Ok(())
    }

    /// Passes a message on, or takes its memory back; of which link that asks for something.
    fn take(&mut self, done: &Done) -> Result<usize, Errno> {
        let home = self.home(done.place);
        if done.what == FILL && done.status == DONE && done.bytes > 0 {
            self.links[1 - home].send_quietly(done.place, done.bytes)?;
            return Ok(1 - home);
        }
        if done.status == DONE {
            self.routed += 1
        } else {
            self.dropped += 1
        }
        self.links[home].fill(done.place, self.bytes)?;
        Ok(home)
    }
}
