//! A channel that is written at a pace, with a line about it once a second.

use crate::stream::{ANSWER, Numbered, REPORT, SentStream};
use diapason_canlib::{Channel, Error};
use diapason_rt::{Nanos, time};

/// How long and how often is written.
#[derive(Clone, Copy)]
pub struct WritingPace {
    /// The seconds until the end with a verdict; 0: never.
    seconds: u64,
    /// The time from one filling of the pipe to the next.
    period: Nanos,
    /// Most frames of one filling.
    most: u64,
}

impl WritingPace {
    /// Returns the pace that the arguments of a program say. The period is in us, and 0 frames are
    /// as many as the pipe takes.
    #[must_use]
    pub const fn of(seconds: u64, period: u64, most: u64) -> WritingPace {
        let most = if most == 0 { u64::MAX } else { most };
        WritingPace { seconds, period: Nanos(period * 1_000), most }
    }

    /// Returns the instant by which the server answers.
    #[must_use]
    pub fn answer() -> Nanos {
        time::now() + ANSWER
    }
}

/// Puts a channel on its bus and writes to it at a pace.
///
/// # Errors
/// The channel cannot be written.
pub fn write<F: Numbered>(
    channel: Channel<F>,
    number: u64,
    pace: WritingPace,
) -> Result<(), Error> {
    let WritingPace { seconds, period, most } = pace;
    let mut stream = SentStream::on(channel, number)?;
    let (mut fill_at, mut report_at, mut reports) = (time::now(), time::now() + REPORT, 0);
    while seconds == 0 || reports < seconds {
        time::sleep_until(fill_at.min(report_at));
        let now = time::now();
        if now >= fill_at {
            fill(&mut stream, most)?;
            // A late writer that caught up would write more at once than its contract says.
            fill_at = period + if most == u64::MAX { fill_at } else { now };
        }
        stream.read();
        if now >= report_at {
            look(&mut stream)?;
            stream.say()?;
            report_at += REPORT;
            reports += 1;
        }
    }
    stream.end()
}

/// Writes as many frames as the pipe takes, but no more than `most`.
fn fill<F: Numbered>(stream: &mut SentStream<F>, most: u64) -> Result<(), Error> {
    for _ in 0..most {
        match stream.write() {
            Ok(()) => look(stream)?,
            Err(Error::Full) => return look(stream),
            Err(error) => return Err(error),
        }
    }
    look(stream)
}

fn look<F: Numbered>(stream: &mut SentStream<F>) -> Result<(), Error> {
    stream.look(|_, _| {})
}
