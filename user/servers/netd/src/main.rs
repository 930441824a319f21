//! The process of the Ethernet server: it owns one adapter, gives received frames to sockets, and
//! sends what they want sent.
//!
//! Two threads share nothing but published counts: one receives, on an I/O VCPU for the readers of
//! the sockets, the other sends. The settings follow from `[[adapter]]` and `[[socket]]`, and from
//! `[[ethernet.gates]]` in a list of hosts. With the setting `time` both also keep a common time.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod books;
mod clock;
mod gated;
mod receive;
mod report;
mod send;
mod watch;

use clock::{Listening, Timekeeper};
use diapason_contract::ethernet::{
    ADAPTER_NAMES, ADAPTER_SETTING, AdapterNames, AdapterTerms, GATES_HEAP, GATES_SETTING,
    GateTerms, SOCKETS_SETTING, SocketTerms,
};
use diapason_netlib::card::{self, CardReceiver};
use diapason_rt::locked::Locked;
use diapason_rt::thread::{self, Task};
use diapason_rt::vcpu::Vcpu;
use diapason_rt::{Arguments, Errno, entry, heap, log, settings};
use gated::Gated;
use receive::Receiving;
use report::Reports;
use send::Sending;

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
    let (receiver, sender) = card::start(names.device, names.rings, terms.mac)?;
    receiver.moderate(terms.moderation_ns);
    let timekeeper = Timekeeper::open(&sender, &terms)?;
    *RECEIVE.0.lock()? = Some(receiver);
    thread::start(Vcpu::open(names.vcpu)?, "receive", PRIORITY, &RECEIVE)?;
    let settings = settings::read();
    let all = || {
        let all = SocketTerms::all(settings.get(SOCKETS_SETTING));
        all.filter(|it| it.adapter == terms.number)
    };
    let sending = Sending::open(sender, names, Reports::new(terms.number, all()), all())?;
    match GateTerms::of(settings.get(GATES_SETTING)) {
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
        Receiving::open(receiver, names, Listening::open(names)?, all)?.run()
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
