//! The debug target server: shows this computer to another as a USB device with a pair of pipes,
//! and serves it as a link (`diapason_usblib::link`).
//!
//! It drives the debug capability of a host controller, which never interrupts: one thread looks at
//! it in a fixed interval, and whenever a client asks for something. Messages stay in the memory
//! that the client shares with the controller.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::boxed::Box;
use diapason_hardware::{Bar, Shared};
use diapason_pipe::measured::{LinkReport, Measurement, NetworkReport, NetworkStep, Reported};
use diapason_rt::memory::{DmaSegment, Registers};
use diapason_rt::sync::Semaphore;
use diapason_rt::{Arguments, Errno, Nanos, entry, heap, log, settings, time};
use diapason_usb::debug_target::{DebugTarget, LinkDirection, TargetEvent, TargetIdentity};
use diapason_usb::xhci::Buffer;
use diapason_usblib::link::{
    Ask, DONE, DROPPED, Done, ENABLE, FILL, LONGEST, LinkServer, NONSENSE, SEND, TARGET_RINGS,
    UNIT, counter, longest,
};

entry!(main);
// Two allocations: what `Shared` counts its clones with, and the serial number.
heap!(4 * 1024);

/// The controller in the description.
const DEVICE: &str = "xhci";
/// From one look to the next, if no argument says.
const INTERVAL: Nanos = Nanos::from_micros(125);
/// The identity that the other computer reads.
const IDENTITY: TargetIdentity = TargetIdentity {
    vendor: 0x1d6b,
    product: 0x0010,
    version: 0x0010,
    protocol: 0,
    texts: ["Diapason", "Debug target", "0001"],
};

/// In the name of a message: its client does not wait for it.
const QUIET: u64 = 1 << 32;

/// The capability and its client.
struct Server {
    target: DebugTarget<Bar, Shared>,
    counter: LinkServer,
    /// The most bytes of a message.
    longest: u32,
    /// An ask for which the ring had no room.
    held: Option<Ask>,
    fresh: bool,
    /// That it enabled the capability was told.
    enabled: bool,
    link: LinkReport,
}

/// The arguments are the time from one look to the next in µs; whether it waits until the USB
/// server of the controller lets it enable; the number of its link; and the key of this computer's
/// name among the hosts of its network.
fn main(Arguments([interval, waits, number, name]): Arguments) {
    let interval = if interval == 0 { INTERVAL } else { Nanos::from_micros(interval) };
    if let Err(errno) = serve(interval, waits != 0, (number as usize, name)) {
        log!("no debug target: {errno:?}");
    }
}

/// Returns the identity of the host with this name; its key is the serial number.
fn identity(name: u64) -> TargetIdentity {
    let [maker, product, usual] = IDENTITY.texts;
    let mut digits = [0; 16];
    for (place, digit) in digits.iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(name >> (60 - 4 * place) & 0xf) as usize];
    }
    let known: &'static [u8; 16] = Box::leak(Box::new(digits));
    let serial = core::str::from_utf8(known).ok().filter(|_| name != 0);
    TargetIdentity { texts: [maker, product, serial.unwrap_or(usual)], ..IDENTITY }
}

fn serve(interval: Nanos, waits: bool, (number, name): (usize, u64)) -> Result<(), Errno> {
    let bar = Bar(Registers::map(DEVICE)?);
    let rings = Shared::new(DmaSegment::attach(TARGET_RINGS)?);
    let counter = counter(number)?;
    if waits {
        Semaphore::open(ENABLE)?.take(Nanos::FOREVER)?;
    }
    let Ok(target) = DebugTarget::new(bar, rings, identity(name)) else {
        log!("this controller has no debug capability (QEMU's has none): run `diapason sim`");
        return Err(Errno::Absent);
    };
    let mut server = Server {
        target,
        counter,
        longest: longest(settings::read().get(LONGEST), number),
        held: None,
        fresh: false,
        enabled: false,
        link: LinkReport { number: number as u8, ..LinkReport::default() },
    };
    let mut look_at = time::now();
    loop {
        time::work("dbcd.look", || server.attend());
        if core::mem::take(&mut server.fresh) {
            // At its limit it has been given often enough.
            let _ = server.counter.ready.give();
        }
        match server.counter.ask.take(look_at + interval) {
            Ok(()) => {}
            Err(Errno::TimedOut) => look_at = time::now(),
            Err(errno) => return Err(errno),
        }
    }
}

impl Server {
    /// Does whatever is due.
    fn attend(&mut self) {
        let Server { target, counter, longest, held, fresh, enabled, link } = self;
        let before = *link;
        while let Some(ask) = held.take().or_else(|| counter.asks.pop()) {
            let window = (counter.data.bus_address(0), counter.data.bytes() as u64);
            if !ask.is_sane(window, *longest) {
                *fresh |= tell(counter, ask.what, ask.place, (0, NONSENSE));
            } else if !submit(target, counter, &ask) {
                *held = Some(ask);
                break;
            }
        }
        target.poll(&mut |told| match told {
            TargetEvent::Configured => {
                log!("the other computer is there");
                (link.here, link.found) = (true, link.found + 1);
            }
            TargetEvent::Left => {
                log!("the other computer is gone");
                link.here = false;
            }
            TargetEvent::Done { way, cookie, moved } => {
                let what = if way == LinkDirection::Out { SEND } else { FILL };
                let outcome = moved.map_or((0, DROPPED), |bytes| (bytes, DONE));
                let count = if way == LinkDirection::Out { &mut link.sent } else { &mut link.came };
                *count += u64::from(outcome.1 == DONE);
                let heard = tell(counter, what, cookie as u32, outcome);
                *fresh |= heard && (cookie & QUIET == 0 || outcome.1 != DONE);
            }
        });
        if target.is_on() && !core::mem::replace(enabled, true) {
            let step = NetworkReport { step: NetworkStep::Enable, port: 0, peer: 0 };
            let said = Measurement::Network(step);
            log::measured(&Reported { at: time::now(), said }.words());
        }
        let is_first = |was: u64, is: u64| was == 0 && is > 0;
        let begun = is_first(before.came, link.came) || is_first(before.sent, link.sent);
        if begun || (before.here, before.found) != (link.here, link.found) {
            let said = Measurement::Link(*link);
            log::measured(&Reported { at: time::now(), said }.words());
        }
    }
}

fn submit(target: &mut DebugTarget<Bar, Shared>, counter: &LinkServer, ask: &Ask) -> bool {
    let way = if ask.what == SEND { LinkDirection::Out } else { LinkDirection::In };
    let address = counter.data.bus_address(ask.place as usize * UNIT);
    let quiet = if ask.quiet == 0 { 0 } else { QUIET };
    target.submit(way, Buffer { address, length: ask.bytes }, quiet | u64::from(ask.place))
}

/// Tells the fate of a request.
fn tell(counter: &mut LinkServer, what: u32, place: u32, (bytes, status): (u32, u32)) -> bool {
    let taken = time::now().0;
    // A client that lets more answers wait than there is room for loses some.
    let _ = counter.done.push(&Done { taken, what, place, bytes, status });
    true
}
