//! Sends messages to another computer that sends them back, and answers those that it gets from it.
//!
//! Each answer is checked. Once a second it says `LINK sent came answered lost damaged longest`:
//! messages sent, answers that came, messages of others answered, numbers that were skipped or came
//! twice, what was no message, and the longest time in ns from a message to its answer. Messages,
//! lost ones and the longest time are a report, too, as of the end of a flow.
//!
//! Arguments: bytes of a message (0: the shortest), the longest pause in µs before the next one
//! (the shortest is a quarter of it), after how many messages it sends no more (0: never; 2⁶³: it
//! only answers). If the fourth is not 0 it is the seed of the pauses, and every time is told:
//! `RTT` and eight of them in ns.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_frame::{Continuity, HEAD};
use diapason_links::{Flows, LEAST, REPORT, RoundTrips, START, answer, ask, own_label};
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_usblib::link::{DONE, Done, FILL, Link, MESSAGE_MAX, UNIT};

entry!(main);

/// An answer that has not come by then is lost.
const PATIENCE: Nanos = Nanos::from_secs(1);
/// Pieces of memory for messages that come; behind them is one for those that go.
const RECEIVE: u32 = 4;
const NEVER: u64 = 1 << 63;

/// The counts of the pings.
#[derive(Default)]
struct Tally {
    sent: u64,
    answered: u64,
    damaged: u64,
    trips: RoundTrips,
    times: [u64; 8],
}

struct Pinger {
    link: Link,
    bytes: u32,
    pause: u64,
    last: u64,
    seed: u64,
    /// The label of its own messages. An answer has that of its question.
    label: u8,
    flows: Flows,
    random: u64,
    /// When the next message is due, or its answer is lost.
    next_at: Nanos,
    waiting: bool,
    tally: Tally,
}

fn main(Arguments([bytes, pause, last, seed]): Arguments) {
    let bytes = bytes.clamp(LEAST as u64, MESSAGE_MAX as u64) as u32;
    if let Err(errno) = run(bytes, (pause, last), seed) {
        log!("link: {errno:?}");
    }
}

fn run(bytes: u32, (pause, last): (u64, u64), seed: u64) -> Result<(), Errno> {
    let link = Link::open(0)?;
    let mut pinger = Pinger {
        link,
        bytes,
        pause: pause * 1_000,
        last,
        label: own_label(),
        flows: Flows::default(),
        seed,
        random: seed,
        next_at: time::now() + START,
        waiting: false,
        tally: Tally::default(),
    };
    for number in 0..RECEIVE {
        pinger.fill(pinger.link.place(number))?;
    }
    pinger.link.ring();
    let mut report_at = time::now() + REPORT;
    loop {
        match pinger.link.wait(pinger.next_at.min(report_at)) {
            Ok(()) => pinger.drain()?,
            Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
        let now = time::now();
        if now >= pinger.next_at {
            pinger.due(now)?;
        }
        if now >= report_at {
            report_at += REPORT;
            pinger.tally.report(now);
        }
    }
}

impl Tally {
    /// Tells its counts, and how the way there and back did since the last time.
    fn report(&mut self, now: Nanos) {
        let Tally { sent, answered, damaged, ref trips, .. } = *self;
        let RoundTrips { came, lost, longest, .. } = *trips;
        log!("LINK {sent} {came} {answered} {lost} {damaged} {longest}");
        self.trips.report(now);
    }
}

impl Pinger {
    /// Whole packets, so that a message with a full last one ends with the memory.
    fn fill(&mut self, place: u32) -> Result<(), Errno> {
        self.link.fill(place, self.bytes.next_multiple_of(UNIT as u32))
    }

    /// The next message is due; or an answer never came.
    fn due(&mut self, now: Nanos) -> Result<(), Errno> {
        if core::mem::take(&mut self.waiting) {
            self.tally.trips.lost += 1;
        }
        if self.last != 0 && self.tally.sent >= self.last & !NEVER {
            self.next_at = Nanos::FOREVER;
            return Ok(());
        }
        let place = self.link.place(RECEIVE);
        ask(&self.link.data, place as usize * UNIT, now);
        self.seal(place, self.label);
        self.link.send_quietly(place, self.bytes)?;
        self.link.ring();
        (self.waiting, self.next_at) = (true, now + PATIENCE);
        self.tally.sent += 1;
        Ok(())
    }

    fn seal(&mut self, place: u32, label: u8) {
        let head = self.flows.head(label, (self.bytes as usize - HEAD) as u16);
        time::work("link.seal", || self.link.seal(place, head));
    }

    /// Takes every finished transfer.
    fn drain(&mut self) -> Result<(), Errno> {
        let mut asked = false;
        while let Some(done) = self.link.pop() {
            asked |= self.take(&done)?;
        }
        if asked {
            self.link.ring();
        }
        Ok(())
    }

    /// True if something was asked for.
    fn take(&mut self, done: &Done) -> Result<bool, Errno> {
        let mine = done.place == self.link.place(RECEIVE);
        match (done.what, done.status) {
            (FILL, DONE) => self.came(done)?,
            // A message or an answer is away, or lost; the memory of an answer goes back.
            _ if mine => return Ok(false),
            _ => self.fill(done.place)?,
        }
        Ok(true)
    }

    fn came(&mut self, done: &Done) -> Result<(), Errno> {
        let head = time::work("link.check", || self.link.check(done.place, done.bytes));
        let Some(head) = head.filter(|_| done.bytes == self.bytes) else {
            self.tally.damaged += 1;
            return self.fill(done.place);
        };
        match self.flows.arrived(head) {
            Continuity::Lost(count) => self.tally.trips.lost += u64::from(count),
            Continuity::Again => self.tally.trips.lost += 1,
            Continuity::Next | Continuity::Begun => {}
        }
        match answer(&self.link.data, done.place as usize * UNIT) {
            None => {
                self.seal(done.place, head.label);
                self.tally.answered += 1;
                self.link.send_quietly(done.place, self.bytes)
            }
            Some(made) => {
                self.answered(made);
                self.fill(done.place)
            }
        }
    }

    /// An answer came to what was made then.
    fn answered(&mut self, made: Nanos) {
        let now = time::now();
        if !core::mem::take(&mut self.waiting) {
            return;
        }
        let number = (self.tally.trips.came % 8) as usize;
        let time = now.0.saturating_sub(made.0);
        self.tally.times[number] = time;
        self.tally.trips.took(time);
        if number == 7 && self.seed != 0 {
            let [a, b, c, d, e, f, g, h] = self.tally.times;
            log!("RTT {a} {b} {c} {d} {e} {f} {g} {h}");
        }
        self.random =
            self.random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let pause = self.pause / 4 + (self.random >> 33) % (self.pause * 3 / 4 + 1);
        self.next_at = now + Nanos(pause);
    }
}
