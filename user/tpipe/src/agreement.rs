//! The program's ends of a place for a tuned pipe. Their names are in `diapason_contract::tuned`.

use diapason_abi::Errno;
use diapason_canlib::ReceivedFrame;
use diapason_canlib::agreement::SendingEnds;
use diapason_contract::tuned::{PlaceNames, RECORDS, names};
use diapason_pipe::Reader;
use diapason_rt::mailbox::Mailbox;
use diapason_rt::pipe;
use diapason_rt::sync::Semaphore;
use diapason_rt::vcpu::Vcpu;

/// The reading end of a place's ring.
pub type Inlet = Reader<'static, ReceivedFrame, RECORDS>;

fn known(place: usize) -> Result<&'static PlaceNames, Errno> {
    names(place).ok_or(Errno::Absent)
}

/// Opens the program's end of the ring, and the semaphore to take before looking.
///
/// # Errors
/// There is no such place.
pub fn inlet(place: usize) -> Result<(Inlet, Semaphore), Errno> {
    let names = known(place)?;
    Ok((pipe::reader(names.ring)?, Semaphore::open(names.ready)?))
}

/// Opens the program's end of a pipe to a device, and the semaphore to take before looking.
///
/// # Errors
/// There is no such place.
pub fn entrance(place: usize) -> Result<(SendingEnds, Semaphore), Errno> {
    let names = known(place)?;
    let counter = SendingEnds {
        departures: pipe::writer(names.out)?,
        reports: pipe::reader(names.reports)?,
        requests: Mailbox::open(names.control)?,
    };
    Ok((counter, Semaphore::open(names.ready)?))
}

/// Returns the semaphore that a program gives to signal its peer that there is something new.
///
/// # Errors
/// There is no such place.
pub fn bell(place: usize) -> Result<Semaphore, Errno> {
    Semaphore::open(known(place)?.ready)
}

/// Where the program asks and the server answers, and what the pipe's thread runs on.
pub struct Desk {
    pub questions: Mailbox,
    pub answers: Mailbox,
    pub vcpu: Vcpu,
}

/// Opens the program's side.
///
/// # Errors
/// There is no such place.
pub fn counter(place: usize) -> Result<Desk, Errno> {
    let names = known(place)?;
    Ok(Desk {
        questions: Mailbox::open(names.questions)?,
        answers: Mailbox::open(names.answers)?,
        vcpu: Vcpu::open(names.vcpu)?,
    })
}
