//! A host of a ring: passes each message that comes over link 0 on, over link 1.
//!
//! The origin begins the messages and takes them from the ring again. It says `RING messages
//! longest` once a second: messages that went round since the start, and the longest lap in ns. If
//! messages go one by one it says `LAPS` and four laps in ns.
//!
//! Arguments: bytes of a message; the pause between messages in µs (0: the next one follows the one
//! that came); messages under way at once (0: this host is not the origin).

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_bridging::{Laps, MOST, PATIENCE, REPORT, START};
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_usblib::link::{DONE, FILL, Link, MESSAGE_MAX, UNIT};

entry!(main);

/// Pieces of memory for messages that come; behind them are those that the origin begins with.
const PLACES: u32 = 12;

/// A host of the ring.
struct Host {
    from: Link,
    to: Link,
    bytes: u32,
    pause: Nanos,
    /// Messages that the origin keeps under way.
    own: u32,
    under_way: u32,
    next: u32,
    laps: Laps,
}

fn main(Arguments([bytes, pause, own, _]): Arguments) {
    let bytes = bytes.clamp(16, MESSAGE_MAX as u64) as u32;
    if let Err(errno) = run(bytes, Nanos::from_micros(pause), (own as u32).min(MOST)) {
        log!("ring: {errno:?}");
    }
}

fn run(bytes: u32, pause: Nanos, own: u32) -> Result<(), Errno> {
    let (from, to) = (Link::open(0)?, Link::open(1)?);
    let laps = Laps::default();
    let mut host = Host { from, to, bytes, pause, own, under_way: 0, next: 0, laps };
    for number in 0..PLACES {
        host.fill(host.from.place(number))?;
    }
    host.from.ring();
    let never = if own == 0 { Nanos::FOREVER } else { time::now() + START };
    let (mut begin_at, mut report_at) = (never, time::now() + REPORT);
    loop {
        match host.from.wait(begin_at.min(report_at)) {
            Ok(()) => {
                if time::work("ring.drain", || host.drain())? {
                    // Without a pause the next messages are on their way already.
                    let next = if host.pause.0 == 0 { PATIENCE } else { host.pause };
                    begin_at = time::now() + next;
                }
            }
            Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
        let now = time::now();
        if now >= begin_at {
            // A message that is still under way after so long never comes.
            host.under_way = 0;
            while host.under_way < host.own {
                host.begin()?;
            }
            begin_at = now + PATIENCE;
        }
        if now >= report_at {
            report_at += REPORT;
            if own > 0 {
                host.laps.tell();
            }
        }
    }
}

impl Host {
    fn fill(&mut self, place: u32) -> Result<(), Errno> {
        self.from.fill(place, self.bytes.next_multiple_of(UNIT as u32))
    }

    /// Sends a message of the origin, which begins with the time.
    fn begin(&mut self) -> Result<(), Errno> {
        let place = self.from.place(PLACES + self.next % self.own);
        (self.next, self.under_way) = (self.next + 1, self.under_way + 1);
        let (at, now) = (place as usize * UNIT, time::now().0);
        self.to.data.write32(at, now as u32);
        self.to.data.write32(at + 4, (now >> 32) as u32);
        self.to.send_quietly(place, self.bytes)?;
        self.to.ring();
        Ok(())
    }

    /// Takes everything that came, and returns whether a lap of the origin is over.
    fn drain(&mut self) -> Result<bool, Errno> {
        let (mut over, mut sent, mut lent) = (false, false, false);
        while let Some(done) = self.from.pop() {
            if done.what != FILL || done.status != DONE || done.bytes == 0 {
                self.fill(done.place)?;
                lent = true;
            } else if self.own == 0 {
                self.to.send(done.place, done.bytes)?;
                sent = true;
            } else {
                self.lap(done.place);
                self.fill(done.place)?;
                (over, lent) = (true, true);
            }
        }
        if over && self.pause.0 == 0 {
            while self.under_way < self.own {
                self.begin()?;
            }
        }
        while let Some(done) = self.to.pop() {
            // The memory of a message that was passed on is lent again.
            if self.own == 0 {
                self.fill(done.place)?;
                lent = true;
            }
        }
        if sent {
            self.to.ring();
        }
        if lent {
            self.from.ring();
        }
        Ok(over)
    }

    /// Counts a message that went round.
    fn lap(&mut self, place: u32) {
        let at = place as usize * UNIT;
        let begun =
            u64::from(self.from.data.read32(at)) | u64::from(self.from.data.read32(at + 4)) << 32;
        self.under_way = self.under_way.saturating_sub(1);
        self.laps.count(begun, time::now(), self.pause.0 > 0);
    }
}
