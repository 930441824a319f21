//! Sends as much as links take, and takes as much as comes, without looking at it.
//!
//! Once a second it says for each link `FLOOD link received sent`: bytes of that second. Arguments:
//! how many links; bytes of a message; the most messages to send that are under way at once on a
//! link, and the most to take (both 0: six of each).

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_usblib::link::{DONE, Done, FILL, Link, MESSAGE_MAX, RECORDS, UNIT};

entry!(main);

/// Time between two reports.
const REPORT: Nanos = Nanos::from_secs(1);
/// Messages under way in each direction of a link, if no argument says.
const EACH: u32 = 6;
/// Most messages under way on a link: each takes a record of a pipe.
const MOST: u32 = RECORDS as u32 - 4;

/// A link, and what moved in this second.
struct Flood {
    link: Link,
    bytes: u32,
    each: UnderWay,
    received: u64,
    sent: u64,
}

/// Messages under way in each direction.
#[derive(Clone, Copy)]
struct UnderWay {
    sends: u32,
    takes: u32,
}

fn main(Arguments([links, bytes, sends, takes]): Arguments) {
    let bytes = bytes.clamp(1, MESSAGE_MAX as u64) as u32;
    let each = match (sends, takes) {
        (0, 0) => UnderWay { sends: EACH, takes: EACH },
        _ => {
            let sends = sends.min(MOST.into()) as u32;
            UnderWay { sends, takes: (takes as u32).min(MOST - sends) }
        }
    };
    let done = if links == 2 { run([0, 1], bytes, each) } else { run([0], bytes, each) };
    if let Err(errno) = done {
        log!("flood: {errno:?}");
    }
}

fn run<const N: usize>(numbers: [usize; N], bytes: u32, each: UnderWay) -> Result<(), Errno> {
    let mut floods: [Option<Flood>; N] = [const { None }; N];
    for (flood, number) in floods.iter_mut().zip(numbers) {
        *flood = Some(Flood::begin(number, bytes, each)?);
    }
    let mut report_at = time::now() + REPORT;
    loop {
        let Some(Some(first)) = floods.first() else { return Ok(()) };
        match first.link.wait(report_at) {
            Ok(()) => {
                time::work("link.flood", || floods.iter_mut().flatten().try_for_each(Flood::drain))?
            }
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
    fn begin(number: usize, bytes: u32, each: UnderWay) -> Result<Flood, Errno> {
        let UnderWay { sends, takes } = each;
        let mut flood = Flood { link: Link::open(number)?, bytes, each, received: 0, sent: 0 };
        let piece = (bytes as usize).next_power_of_two().max(UNIT);
        let first = number as u32 * (sends + takes);
        for index in first..first + takes {
            flood.fill(flood.link.place_of(index, piece))?;
        }
        for index in first + takes..first + takes + sends {
            flood.link.send(flood.link.place_of(index, piece), bytes)?;
        }
        flood.link.ring();
        Ok(flood)
    }

    /// Asks again for each transfer that ended.
    ///
    /// The server hears of an ask with the end of any other transfer. It is woken only if it may
    /// soon have no other transfer in this direction.
    fn drain(&mut self) -> Result<(), Errno> {
        let (mut taken, mut sent) = (0, 0);
        while let Some(Done { what, place, bytes, status, .. }) = self.link.pop() {
            let moved = if status == DONE { u64::from(bytes) } else { 0 };
            if what == FILL {
                self.received += moved;
                self.fill(place)?;
                taken += 1;
            } else {
                self.sent += moved;
                self.link.send(place, self.bytes)?;
                sent += 1;
            }
        }
        let UnderWay { sends, takes } = self.each;
        if 2 * taken > takes || 2 * sent > sends {
            self.link.ring();
        }
        Ok(())
    }
}
