//! What the USB server and programs with tuned pipes agree on: names and layouts. What is said in
//! mailboxes: `diapason_pipe::tuned::{Request, Answer}`.
//!
//! A place for a pipe is a ring, a semaphore, two mailboxes and a VCPU, shared by the server and
//! one program. The server writes the ring, gives the semaphore, and sets the VCPU.

use diapason_abi::Errno;
use diapason_abi::pipe::{PLACES, SLOTS};
use diapason_canlib::Arrival;
use diapason_canlib::agreement::Counter;
use diapason_pipe::{Reader, Writer};
use diapason_rt::event::Event;
use diapason_rt::mailbox::Mailbox;
use diapason_rt::pipe;
use diapason_rt::sync::Semaphore;
use diapason_rt::vcpu::Vcpu;

/// What a place's objects are called.
struct Names {
    ring: &'static str,
    /// Given when something was put into the ring.
    ready: &'static str,
    /// From the program.
    questions: &'static str,
    /// To it.
    answers: &'static str,
    /// What the pipe's thread runs on.
    vcpu: &'static str,
    /// Of a pipe to a device: its ring, the server's reports, and what wakes the server.
    out: &'static str,
    reports: &'static str,
    control: &'static str,
}

/// The names of one place.
macro_rules! names {
    ($name:literal) => {
        Names {
            ring: $name,
            ready: concat!($name, ".ready"),
            questions: concat!($name, ".ask"),
            answers: concat!($name, ".answer"),
            vcpu: concat!($name, ".vcpu"),
            out: concat!($name, ".out"),
            reports: concat!($name, ".report"),
            control: concat!($name, ".control"),
        }
    };
}

const NAMES: [Names; PLACES] =
    [names!("tpipe0"), names!("tpipe1"), names!("tpipe2"), names!("tpipe3"), names!("tpipe4")];

fn names(place: usize) -> Result<&'static Names, Errno> {
    NAMES.get(place).ok_or(Errno::Absent)
}

/// The writing end of a place's ring.
pub type Outlet = Writer<'static, Arrival, SLOTS>;
/// Its reading end.
pub type Inlet = Reader<'static, Arrival, SLOTS>;

/// The server's end of the ring, and what it gives after it put something in.
///
/// # Errors
/// There is no such place.
pub fn outlet(place: usize) -> Result<(Outlet, Semaphore), Errno> {
    let names = names(place)?;
    Ok((pipe::writer(names.ring)?, Semaphore::open(names.ready)?))
}

/// The program's end of the ring, and what it takes before it looks.
///
/// # Errors
/// There is no such place.
pub fn inlet(place: usize) -> Result<(Inlet, Semaphore), Errno> {
    let names = names(place)?;
    Ok((pipe::reader(names.ring)?, Semaphore::open(names.ready)?))
}

/// The server's end of a pipe to a device; `event` is raised when it is to look.
///
/// # Errors
/// There is no such place.
pub fn exit(place: usize, event: &Event) -> Result<diapason_canlib::agreement::Desk, Errno> {
    let names = names(place)?;
    Ok(diapason_canlib::agreement::Desk {
        departures: pipe::reader(names.out)?,
        reports: pipe::writer(names.reports)?,
        requests: Mailbox::open_with(names.control, event)?,
    })
}

/// The program's end of it, and what it takes before it looks.
///
/// # Errors
/// There is no such place.
pub fn entrance(place: usize) -> Result<(Counter, Semaphore), Errno> {
    let names = names(place)?;
    let counter = Counter {
        departures: pipe::writer(names.out)?,
        reports: pipe::reader(names.reports)?,
        requests: Mailbox::open(names.control)?,
    };
    Ok((counter, Semaphore::open(names.ready)?))
}

/// What somebody is to look at is new to him: the bell of the place.
///
/// # Errors
/// There is no such place.
pub fn bell(place: usize) -> Result<Semaphore, Errno> {
    Semaphore::open(names(place)?.ready)
}

/// Where the program asks and the server answers, and what the pipe's thread runs on.
pub struct Desk {
    /// From the program.
    pub questions: Mailbox,
    /// To it.
    pub answers: Mailbox,
    /// The thread's.
    pub vcpu: Vcpu,
}

/// The server's side of it; `event` is raised when there is a question.
///
/// # Errors
/// There is no such place.
pub fn desk(place: usize, event: &Event) -> Result<Desk, Errno> {
    let names = names(place)?;
    Ok(Desk {
        questions: Mailbox::open_with(names.questions, event)?,
        answers: Mailbox::open(names.answers)?,
        vcpu: Vcpu::open(names.vcpu)?,
    })
}

/// The program's side.
///
/// # Errors
/// There is no such place.
pub fn counter(place: usize) -> Result<Desk, Errno> {
    let names = names(place)?;
    Ok(Desk {
        questions: Mailbox::open(names.questions)?,
        answers: Mailbox::open(names.answers)?,
        vcpu: Vcpu::open(names.vcpu)?,
    })
}
