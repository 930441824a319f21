//! What the USB server and clients of CAN channels agree on: pipes, semaphores and mailboxes, by
//! name and by layout. What is in them: [`diapason_can::exchange`].
//!
//! A channel is received from with its pipe alone. A client that also writes, and says how and
//! when the channel takes part in its bus, has the rest, too; the server is told which channels
//! have such a client.

use diapason_abi::Errno;
pub use diapason_can::exchange::{
    Answer, Arrival, Departure, EXTENDED, LOST_BEFORE, Ledger, NEWS, OUTSIDE, Parameters, Phase,
    REMOTE, Report, Request, Wanted,
};
use diapason_pipe::{Reader, Writer};
use diapason_rt::event::Event;
use diapason_rt::mailbox::Mailbox;
use diapason_rt::pipe;
use diapason_rt::sync::Semaphore;

/// CAN channels that are served.
pub const CHANNELS: usize = 5;

/// Records in the pipe of a channel. Channel 4 is the fastest, with 3,194 frames a second: this is
/// room for 80 ms of it.
pub const RECORDS: usize = diapason_abi::pipe::SLOTS;

const _: () = assert!(size_of::<Arrival>() <= diapason_abi::pipe::RECORD_BYTES);

/// Frames in the pipe to a channel: the article's buffer of an output pipe.
pub const DEPARTURES: usize = diapason_abi::pipe::OUT_SLOTS;

const _: () =
    assert!(128 + size_of::<Report>() * REPORTS <= diapason_abi::pipe::REPORT_BYTES as usize);

const _: () = assert!(size_of::<Departure>() <= diapason_abi::pipe::OUT_RECORD_BYTES);

/// Reports that may wait. The server writes at most one for each bottom half.
pub const REPORTS: usize = 64;
/// Of these, so many are kept for what a client may be waiting for.
pub const REPORTS_KEPT: usize = 8;

/// What a channel's objects are called.
struct Names {
    /// The pipe from the channel.
    arrivals: &'static str,
    /// Given when something was put into a pipe to the client.
    ready: &'static str,
    /// The pipe to the channel.
    departures: &'static str,
    /// The pipe of reports.
    reports: &'static str,
    /// The mailbox of requests.
    requests: &'static str,
}

/// The names of one channel.
macro_rules! names {
    ($name:literal) => {
        Names {
            arrivals: $name,
            ready: concat!($name, ".ready"),
            departures: concat!($name, ".out"),
            reports: concat!($name, ".report"),
            requests: concat!($name, ".control"),
        }
    };
}

const NAMES: [Names; CHANNELS] =
    [names!("can0"), names!("can1"), names!("can2"), names!("can3"), names!("can4")];

/// The writing end of a channel's pipe.
pub type Outlet = Writer<'static, Arrival, RECORDS>;
/// Its reading end.
pub type Inlet = Reader<'static, Arrival, RECORDS>;

/// The server's end of a channel, and what it gives after it put something in.
///
/// # Errors
/// There is no such channel.
pub fn outlet(channel: usize) -> Result<(Outlet, Semaphore), Errno> {
    let names = NAMES.get(channel).ok_or(Errno::Absent)?;
    Ok((pipe::writer(names.arrivals)?, Semaphore::open(names.ready)?))
}

/// A client's end of a channel, and what it takes before it looks.
///
/// # Errors
/// There is no such channel.
pub fn inlet(channel: usize) -> Result<(Inlet, Semaphore), Errno> {
    let names = NAMES.get(channel).ok_or(Errno::Absent)?;
    Ok((pipe::reader(names.arrivals)?, Semaphore::open(names.ready)?))
}

/// The server's end of what a client that writes has besides.
pub struct Desk {
    /// Frames to be sent.
    pub departures: Reader<'static, Departure, DEPARTURES>,
    /// How the channel is.
    pub reports: Writer<'static, Report, REPORTS>,
    /// What the client wants.
    pub requests: Mailbox,
}

/// The client's end of it.
pub struct Counter {
    /// Frames to be sent.
    pub departures: Writer<'static, Departure, DEPARTURES>,
    /// How the channel is.
    pub reports: Reader<'static, Report, REPORTS>,
    /// What the client wants.
    pub requests: Mailbox,
}

/// The server's end; `event` is raised when a request is there.
///
/// # Errors
/// There is no such channel.
pub fn desk(channel: usize, event: &Event) -> Result<Desk, Errno> {
    let names = NAMES.get(channel).ok_or(Errno::Absent)?;
    Ok(Desk {
        departures: pipe::reader(names.departures)?,
        reports: pipe::writer(names.reports)?,
        requests: Mailbox::open_with(names.requests, event)?,
    })
}

/// A client's end.
///
/// # Errors
/// There is no such channel.
pub fn counter(channel: usize) -> Result<Counter, Errno> {
    let names = NAMES.get(channel).ok_or(Errno::Absent)?;
    Ok(Counter {
        departures: pipe::writer(names.departures)?,
        reports: pipe::reader(names.reports)?,
        requests: Mailbox::open(names.requests)?,
    })
}
