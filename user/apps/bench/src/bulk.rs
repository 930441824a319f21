//! The way of a bulk transfer: from the interrupt, through the USB server, to the thread that waits
//! for what a sensor sends.
//!
//! Two processes run this. The one whose argument is 1 is interrupted: it does nothing but move the
//! beginning of the next transfer's way. The other is the client: its return from the wait is the
//! end, and what the server tells of its own times divides the way.

#![no_std]
#![no_main]

use diapason_bench::{TransferProbes, stamp, way};
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_usblib::sensor::{NAMES, Packet, RECORDS};
use diapason_usblib::{inlet, times};

entry!(main);

/// Transfers that are measured: a second's.
const TRANSFERS: u64 = 400;

fn main(Arguments([interrupted, ..]): Arguments) {
    let ended = match (way(), interrupted) {
        (Ok(way), 0) => measure(way),
        (Ok(way), _) => {
            be_interrupted(way);
            Ok(())
        }
        (Err(errno), _) => Err(errno),
    };
    if let Err(errno) = ended {
        log!("the benchmark failed: {errno:?}");
    }
}

fn be_interrupted(way: &TransferProbes) {
    while way.transfer.runs() < TRANSFERS {
        let round = way.transfer.runs();
        way.transfer.note();
        while way.transfer.runs() == round {
            way.transfer.still_before();
        }
    }
}

/// A transfer whose end was seen, and of which the server may not have told yet.
struct Seen {
    spent: u64,
    back: u64,
}

/// The server's records in order, with one record that was taken too early.
struct Told {
    inlet: times::Inlet,
    early: Option<times::Times>,
}

impl Told {
    /// Returns the activation that led to `seen`: the last that had done its work by then.
    fn before(&mut self, seen: &Seen) -> Option<times::Times> {
        let mut found = None;
        while let Some(times) = self.early.take().or_else(|| self.inlet.pop()) {
            if times.done > seen.back {
                self.early = Some(times);
                break;
            }
            found = Some(times);
        }
        found
    }
}

fn measure(way: &TransferProbes) -> Result<(), Errno> {
    let (mut packets, ready) = inlet::<Packet, RECORDS>(NAMES[0].packets, NAMES[0].ready)?;
    let mut told = Told { inlet: times::inlet()?, early: None };
    way.transfer.calibrate();
    let mut last = None;
    while way.transfer.runs() < TRANSFERS {
        ready.take(Nanos::FOREVER)?;
        let (now, back) = (stamp(), time::now().0);
        if let Some(seen) = last.take() {
            divide(way, &seen, &mut told);
        }
        let spent = way.transfer.spent(now);
        let came = core::iter::from_fn(|| packets.pop()).count();
        if came == 1 {
            way.transfer.finish_with(spent);
            last = Some(Seen { spent, back });
        }
    }
    way.transfer.report("usb_bulk_to_thread");
    way.interrupt.report_part("interrupt");
    way.lock.report_part("lock");
    way.bottom_half.report_part("bottom_half");
    way.wake_up.report_part("wake_up");
    Ok(())
}

fn divide(way: &TransferProbes, seen: &Seen, told: &mut Told) {
    let Some(times) = told.before(seen) else { return };
    let Some(interrupt) = seen.spent.checked_sub(seen.back - times.woken) else { return };
    way.interrupt.finish_with(interrupt);
    way.lock.finish_with(times.begun - times.woken);
    way.bottom_half.finish_with(times.done - times.begun);
    way.wake_up.finish_with(seen.back - times.done);
}
