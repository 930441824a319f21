//! A process of the Ethernet server: it gives received frames to sockets, and sends what they want
//! sent.
//!
//! One that owns a card has two threads, which share nothing but published counts: one receives, on
//! an I/O VCPU for the readers of the sockets, the other sends. A USB network device has a process
//! for each direction, at the end of a pipe. The settings follow from `[[adapter]]` and
//! `[[socket]]`, and from `[[ethernet.gates]]` in a list of hosts. With the setting `time` both
//! threads also keep a common time.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod books;
mod clock;
mod comes;
mod gated;
mod goes;
mod outlets;
mod receive;
mod report;
mod send;
mod sorting;
mod watch;

use clock::{Listening, Timekeeper};
use comes::Coming;
use diapason_contract::ethernet::{
    ADAPTER_NAMES, ADAPTER_SETTING, AdapterNames, AdapterPart, AdapterTerms, GATES_HEAP,
    GATES_SETTING, GateTerms, SOCKETS_SETTING, SocketTerms,
};
use diapason_netlib::card::{self, CardReceiver};
use diapason_rt::locked::Locked;
use diapason_rt::thread::{self, Task};
use diapason_rt::vcpu::Vcpu;
use diapason_rt::{Arguments, Errno, Nanos, entry, heap, log, settings};
use gated::Gated;
use goes::Going;
use outlets::Outlets;
use receive::Receiving;
use report::Reports;
use send::Sending;
use sorting::Sorting;

entry!(main);
// Only gates use it: a server without any needs no memory for it.
heap!(GATES_HEAP as usize);

/// The priority of the thread that receives.
const PRIORITY: u8 = 1;

/// The thread that receives, with the half of the adapter that it takes when it starts.
struct Receive(Locked<Option<CardReceiver>>);

static RECEIVE: Receive = Receive(Locked::new(None));

fn main(_: Arguments) {
    if let Err(errno) = serve() {
        log!("no Ethernet: {errno:?}");
    }
}

/// Returns the adapter of this process.
fn told() -> Result<(AdapterTerms, &'static AdapterNames), Errno> {
    let settings = settings::read();
    let terms = AdapterTerms::of(settings.get(ADAPTER_SETTING)).ok_or(Errno::Absent)?;
    let names = ADAPTER_NAMES.get(usize::from(terms.number)).ok_or(Errno::Absent)?;
    Ok((terms, names))
}

fn serve() -> Result<(), Errno> {
    let (terms, names) = told()?;
    let settings = settings::read();
    let all = || {
        let all = SocketTerms::all(settings.get(SOCKETS_SETTING));
        all.filter(|it| it.adapter == terms.number)
    };
    match terms.part {
        AdapterPart::Card { moderation_ns } => drive((&terms, names), moderation_ns, all),
        AdapterPart::Comes => Coming::open(Reports::new(terms.number, all()), all())?.run(),
        AdapterPart::Goes { period_ns, bytes } => {
            // The process of the other direction reports on sockets.
            let reports = Reports::new(terms.number, core::iter::empty());
            Going::open(reports, (bytes, terms.mac), all())?.run(Nanos(period_ns))
        }
    }
}

/// Resets a card, lets the other thread receive from it, and sends.
fn drive<I: Iterator<Item = SocketTerms>>(
    (terms, names): (&AdapterTerms, &AdapterNames),
    moderation_ns: u64,
    all: impl Fn() -> I,
) -> Result<(), Errno> {
    let (receiver, sender) = card::start(names.device, names.rings, terms.mac)?;
    receiver.moderate(moderation_ns);
    let timekeeper = Timekeeper::open(&sender, terms)?;
    *RECEIVE.0.lock()? = Some(receiver);
    thread::start(Vcpu::open(names.vcpu)?, "receive", PRIORITY, &RECEIVE)?;
    let reports = Reports::new(terms.number, all());
    let sending = Sending::open(sender, names, reports, Outlets::open(all())?)?;
    match GateTerms::of(settings::read().get(GATES_SETTING)) {
        None => sending.run(timekeeper),
        Some(terms) => Gated::open(sending, timekeeper, &terms)?.run(),
    }
}

impl Receive {
    fn receive(&self) -> Result<(), Errno> {
        let (terms, names) = told()?;
        let receiver = self.0.lock()?.take().ok_or(Errno::Absent)?;
        let settings = settings::read();
        let all = SocketTerms::all(settings.get(SOCKETS_SETTING));
        let all = all.filter(|it| it.adapter == terms.number);
        Receiving::open(receiver, names, Listening::open(names)?, Sorting::open(all)?)?.run()
    }
}

impl Task for Receive {
    fn run(&'static self) -> u64 {
        if let Err(errno) = self.receive() {
            log!("nothing is received: {errno:?}");
        }
        1
    }
}
