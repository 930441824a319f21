//! Greets the computer at the other end of each link again and again, and counts its greetings.
//!
//! Once a second it says for each link `GREETED link came sent lost damaged`. Arguments: how many
//! links, from one greeting to the next in µs.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_frame::{Continuity, HEAD, Numbering, SequenceTracker};
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_usblib::link::{DONE, Done, FILL, LINKS, Link, UNIT};

entry!(main);

/// Time between two reports.
const REPORT: Nanos = Nanos::from_secs(1);
/// From one greeting to the next, if no argument says.
const PAUSE: Nanos = Nanos::from_millis(10);
/// Bytes of a greeting.
const BYTES: u32 = 64;
/// Pieces of memory for greetings that come over a link. Behind them is one for that which goes.
const RECEIVE: u32 = 2;

/// A link, and what it carried.
struct Greeter {
    link: Link,
    /// The piece of memory for the greeting that goes.
    own: u32,
    /// That greeting is under way.
    waits: bool,
    numbering: Numbering,
    order: SequenceTracker,
    came: u64,
    sent: u64,
    lost: u64,
    damaged: u64,
}

fn main(Arguments([links, pause, ..]): Arguments) {
    let pause = if pause == 0 { PAUSE } else { Nanos::from_micros(pause) };
    if let Err(errno) = run((links as usize).clamp(1, LINKS), pause) {
        log!("greeting: {errno:?}");
    }
}

fn run(links: usize, pause: Nanos) -> Result<(), Errno> {
    let mut greeters: [Option<Greeter>; LINKS] = [const { None }; LINKS];
    for (number, greeter) in greeters.iter_mut().enumerate().take(links) {
        *greeter = Some(Greeter::begin(number)?);
    }
    let mut greet_at = time::now() + pause;
    let mut report_at = time::now() + REPORT;
    loop {
        let Some(Some(first)) = greeters.first() else { return Ok(()) };
        match first.link.wait(greet_at.min(report_at)) {
            Ok(()) => greeters.iter_mut().flatten().try_for_each(Greeter::drain)?,
            Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
        let now = time::now();
        if now >= greet_at {
            greet_at = now + pause;
            greeters.iter_mut().flatten().try_for_each(Greeter::greet)?;
        }
        if now >= report_at {
            report_at += REPORT;
            for (number, greeter) in greeters.iter().flatten().enumerate() {
                let Greeter { came, sent, lost, damaged, .. } = greeter;
                log!("GREETED {number} {came} {sent} {lost} {damaged}");
            }
        }
    }
}

impl Greeter {
    fn begin(number: usize) -> Result<Greeter, Errno> {
        let link = Link::open(number)?;
        let first = number as u32 * (RECEIVE + 1);
        let mut greeter = Greeter {
            own: link.place(first + RECEIVE),
            link,
            waits: false,
            numbering: Numbering::default(),
            order: SequenceTracker::default(),
            came: 0,
            sent: 0,
            lost: 0,
            damaged: 0,
        };
        for piece in 0..RECEIVE {
            greeter.link.fill(greeter.link.place(first + piece), UNIT as u32)?;
        }
        greeter.link.ring();
        Ok(greeter)
    }

    /// Sends the next greeting, unless the last one is still under way.
    fn greet(&mut self) -> Result<(), Errno> {
        if core::mem::replace(&mut self.waits, true) {
            return Ok(());
        }
        let head = self.numbering.head(BYTES as u16 - HEAD as u16);
        time::work("link.seal", || self.link.seal(self.own, head));
        self.link.send(self.own, BYTES)?;
        self.link.ring();
        Ok(())
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

    /// Takes one; true if something was asked for.
    fn take(&mut self, done: &Done) -> Result<bool, Errno> {
        if done.place == self.own {
            self.waits = false;
            self.sent += u64::from(done.status == DONE);
            return Ok(false);
        }
        if (done.what, done.status) == (FILL, DONE) {
            let head = time::work("link.check", || self.link.check(done.place, done.bytes));
            match head.map(|head| self.order.arrived(head)) {
                None => self.damaged += 1,
                Some(Continuity::Lost(count)) => self.lost += u64::from(count),
                Some(Continuity::Again) => self.lost += 1,
                Some(Continuity::Next | Continuity::Begun) => {}
            }
            self.came += u64::from(head.is_some());
        }
        self.link.fill(done.place, UNIT as u32)?;
        Ok(true)
    }
}
