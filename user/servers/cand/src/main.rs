//! The process that drives a CAN controller with message buffers: a TouCAN.
//!
//! Programs put messages into segments and give a semaphore. The first thread takes them, and the
//! outbox of `diapason_can::toucan` decides which buffer each goes to. Messages of other nodes go
//! to programs in the same way. The other thread says that there was an interrupt and gives the
//! same semaphore, so that one thread waits for both. The settings follow from `[[can]]` and
//! `[[message]]`.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod hearing;
mod on_time;
mod senders;
mod serving;

use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, Ordering};
use diapason_can::BitRate;
use diapason_can::toucan::{CLOCK_HZ, ToucanDriver, ToucanRegisters};
use diapason_contract::toucan::{
    CONTROLLER_NAMES, CONTROLLER_SETTING, ControllerNames, ControllerTerms,
};
use diapason_rt::event::{Event, Routine};
use diapason_rt::locked::Locked;
use diapason_rt::memory::Registers;
use diapason_rt::sync::Semaphore;
use diapason_rt::{Arguments, Errno, entry, heap, log, settings};
use serving::Serving;

entry!(main);
// Parts of `diapason-can` that nothing here calls would allocate: no page of it is ever taken.
heap!(4 * 1024);

const _: () = assert!(CLOCK_HZ == diapason_contract::toucan::CLOCK_HZ);

/// The priority of the thread that hears interrupts: above the first.
const PRIORITY: u8 = 1;

/// There was an interrupt, and nobody has looked at the controller since.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Returns whether there was an interrupt since the last call.
fn took_interrupt() -> bool {
    INTERRUPTED.swap(false, Ordering::Acquire)
}

/// The semaphore that both threads have.
static BELL: Locked<Option<Semaphore>> = Locked::new(None);

/// The registers of the controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CardRegisters(Registers);

impl ToucanRegisters for CardRegisters {
    #[inline(always)]
    fn read(&self, offset: usize) -> u32 {
        self.0.read32(offset)
    }

    #[inline(always)]
    fn write(&self, offset: usize, value: u32) {
        self.0.write32(offset, value);
    }
}

/// The thread that hears interrupts.
struct Ring;

impl Routine for Ring {
    fn run(_: u64) -> ControlFlow<()> {
        INTERRUPTED.store(true, Ordering::Release);
        if let Ok(bell) = BELL.lock()
            && let Some(bell) = *bell
        {
            // At its limit it has been given often enough.
            let _ = bell.give();
        }
        ControlFlow::Continue(())
    }
}

fn main(_: Arguments) {
    if let Err(errno) = serve() {
        log!("no CAN: {errno:?}");
    }
}

/// Returns the controller of this process.
fn told() -> Result<(ControllerTerms, &'static ControllerNames), Errno> {
    let told = settings::read();
    let terms = ControllerTerms::of(told.get(CONTROLLER_SETTING)).ok_or(Errno::Absent)?;
    let names = CONTROLLER_NAMES.get(usize::from(terms.number)).ok_or(Errno::Absent)?;
    Ok((terms, names))
}

fn serve() -> Result<(), Errno> {
    let (terms, names) = told()?;
    let rate = BitRate::new(terms.rate).map_err(|_| Errno::Absent)?;
    let bell = Semaphore::open(names.send)?;
    *BELL.lock()? = Some(bell);
    let registers = CardRegisters(Registers::map(names.device)?);
    let module = ToucanDriver::start(registers, rate).map_err(|refusal| {
        log!("the controller has no such rate: {refusal}");
        Errno::Absent
    })?;
    Event::message(names.device, 0)?.routine::<Ring>("interrupt", PRIORITY)?;
    Serving::open(module, &terms, names, bell)?.run()
}
