//! Sends messages to another computer, which sends them back, by one of two links: link 0, and link
//! 1 while link 0 has not taken a message for too long, or rests because it gave one back. Answers
//! go by the same rule.
//!
//! Nobody tells it that a cable is lost: it looks at what link 0 has not taken. A message that
//! comes late or a second time is counted and thrown away. Once a second it says `DETOUR sent came
//! answered lost thrown damaged turned longest`: messages sent, answers that came, messages of
//! others answered, numbers that were missing, messages thrown away, what was no message, messages
//! that went by link 1, and the longest time in ns from a message to its answer. Messages, lost
//! ones and the longest time are a report, too, as of the end of a flow.
//!
//! Arguments: bytes of a message (0: the shortest), µs from one message to the next (0: it only
//! answers). How long link 0 may take for a message is the `patience` of the flow, which the
//! description says once; without one it never turns.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_frame::{Continuity, HEAD, Patience};
use diapason_links::{Flows, LEAST, REPORT, RoundTrips, START, answer, ask, own_label};
use diapason_rt::{Arguments, Errno, Nanos, entry, log, settings, time};
use diapason_usblib::link::{DONE, Done, FILL, Link, MESSAGE_MAX, PATIENCE, REST_NS, UNIT};

entry!(main);

/// Pieces of memory for messages that come by each link; behind them are those for messages that
/// go.
const EACH: usize = 8;
const OWN: usize = 2 * EACH;
const PIECES: usize = 3 * EACH;

/// The counts of the messages.
#[derive(Default)]
struct Tally {
    sent: u64,
    answered: u64,
    thrown: u64,
    damaged: u64,
    turned: u64,
    trips: RoundTrips,
}

struct Client {
    links: [Link; 2],
    bytes: u32,
    patience: Patience<PIECES>,
    /// Pieces for messages of its own that are free.
    free: [bool; EACH],
    /// The label of its own messages. An answer has that of its question.
    label: u8,
    flows: Flows,
    tally: Tally,
}

fn main(Arguments([bytes, period, ..]): Arguments) {
    let bytes = bytes.clamp(LEAST as u64, MESSAGE_MAX as u64) as u32;
    let patience = settings::read().first(PATIENCE).map_or(Nanos::FOREVER, Nanos);
    if let Err(errno) = run(bytes, Nanos::from_micros(period), patience) {
        log!("detour: {errno:?}");
    }
}

fn run(bytes: u32, period: Nanos, patience: Nanos) -> Result<(), Errno> {
    let mut client = Client {
        links: [Link::open(0)?, Link::open(1)?],
        bytes,
        patience: Patience::new(patience.0, REST_NS),
        free: [true; EACH],
        label: own_label(),
        flows: Flows::default(),
        tally: Tally::default(),
    };
    for piece in 0..OWN {
        client.fill(piece)?;
    }
    client.links.iter().for_each(Link::ring);
    let mut next_at = if period == Nanos::ZERO { Nanos::FOREVER } else { time::now() + START };
    let mut report_at = time::now() + REPORT;
    loop {
        match client.links[0].wait(next_at.min(report_at)) {
            Ok(()) | Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
        // The next choice must know everything that a link has taken by now.
        let mut asked = client.drain()?;
        let now = time::now();
        if now >= next_at {
            next_at += period;
            asked[client.due(now)?] = true;
        }
        for (link, asked) in client.links.iter().zip(asked) {
            if asked {
                link.ring();
            }
        }
        if now >= report_at {
            report_at += REPORT;
            client.tally.report(now);
        }
    }
}

impl Tally {
    /// Tells its counts, and how the way there and back did since the last time.
    fn report(&mut self, now: Nanos) {
        let Tally { sent, answered, thrown, damaged, turned, ref trips } = *self;
        let RoundTrips { came, lost, longest, .. } = *trips;
        log!("DETOUR {sent} {came} {answered} {lost} {thrown} {damaged} {turned} {longest}");
        self.trips.report(now);
    }
}

impl Client {
    /// Returns the number of the piece of memory at a place.
    fn piece(&self, place: u32) -> usize {
        (place.saturating_sub(self.links[0].place(0)) as usize * UNIT / MESSAGE_MAX).min(PIECES - 1)
    }

    /// Lends a piece to the link that it belongs to. Whole packets, so that a message with a full
    /// last one ends with the memory. Returns the link.
    fn fill(&mut self, piece: usize) -> Result<usize, Errno> {
        let (link, place) = (piece / EACH % 2, self.links[0].place(piece as u32));
        self.links[link].fill(place, self.bytes.next_multiple_of(UNIT as u32))?;
        Ok(link)
    }

    /// Seals the message in a piece and gives it to a link, which it returns.
    fn give(&mut self, piece: usize, label: u8, now: Nanos) -> Result<usize, Errno> {
        let place = self.links[0].place(piece as u32);
        let head = self.flows.head(label, (self.bytes as usize - HEAD) as u16);
        time::work("link.seal", || self.links[0].seal(place, head));
        let link = usize::from(self.patience.is_over(now.0));
        match link {
            0 => self.patience.given(piece, now.0),
            _ => self.tally.turned += 1,
        }
        self.links[link].send_quietly(place, self.bytes)?;
        Ok(link)
    }

    /// Sends the next message of its own, and returns the link that got it.
    fn due(&mut self, now: Nanos) -> Result<usize, Errno> {
        self.tally.sent += 1;
        let Some(free) = self.free.iter().position(|free| *free) else {
            // Neither link takes anything.
            self.tally.trips.lost += 1;
            return Ok(0);
        };
        self.free[free] = false;
        let at = self.links[0].place((OWN + free) as u32) as usize * UNIT;
        ask(&self.links[0].data, at, now);
        self.give(OWN + free, self.label, now)
    }

    /// Takes every finished transfer, and returns of which links something was asked.
    fn drain(&mut self) -> Result<[bool; 2], Errno> {
        let mut asked = [false; 2];
        for from in 0..2 {
            while let Some(done) = self.links[from].pop() {
                if let Some(link) = self.take(from, &done)? {
                    asked[link] = true;
                }
            }
        }
        Ok(asked)
    }

    /// Takes a finished transfer, and returns the link that something was asked of.
    fn take(&mut self, from: usize, done: &Done) -> Result<Option<usize>, Errno> {
        let piece = self.piece(done.place);
        if (done.what, done.status) == (FILL, DONE) {
            return self.came(piece, done).map(Some);
        }
        match (from, done.status) {
            (0, DONE) => self.patience.taken(piece),
            (0, _) => self.patience.given_back(piece, time::now().0),
            _ => {}
        }
        match piece.checked_sub(OWN) {
            Some(free) => {
                self.free[free] = true;
                Ok(None)
            }
            None => self.fill(piece).map(Some),
        }
    }

    /// Answers a message, or takes an answer.
    fn came(&mut self, piece: usize, done: &Done) -> Result<usize, Errno> {
        let head = time::work("link.check", || self.links[0].check(done.place, done.bytes));
        let Some(head) = head.filter(|_| done.bytes == self.bytes) else {
            self.tally.damaged += 1;
            return self.fill(piece);
        };
        match self.flows.arrived(head) {
            Continuity::Lost(count) => self.tally.trips.lost += u64::from(count),
            Continuity::Again => {
                self.tally.thrown += 1;
                return self.fill(piece);
            }
            Continuity::Next | Continuity::Begun => {}
        }
        let (at, now) = (done.place as usize * UNIT, time::now());
        let Some(made) = answer(&self.links[0].data, at) else {
            self.tally.answered += 1;
            return self.give(piece, head.label, now);
        };
        self.tally.trips.took(now.0.saturating_sub(made.0));
        self.fill(piece)
    }
}
