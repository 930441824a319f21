//! Probes: where an operation begins and where it ends, possibly in another process.
//!
//! A probe lies in a segment that all processes of the benchmark share. [`Probe::begin`] notes the
//! expensive things counted so far and then the processor's counter; [`Probe::end`], called by
//! whichever thread the operation makes run, notes them in the opposite order. The cost of the two
//! stamps themselves is measured first and subtracted.

#![no_std]

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use diapason_abi::call::Counter;
use diapason_abi::{MESSAGE_BYTES, PAGE};
use diapason_pipe::measured::{CostReport, Measurement, Reported, probe};
use diapason_rt::mailbox::Mailbox;
use diapason_rt::memory::{self, Segment};
use diapason_rt::sys::count;
use diapason_rt::{Errno, Nanos, log, time};

/// The registers of the HPET and of its first comparator.
pub mod hpet {
    pub const CAPABILITIES: usize = 0x00;
    pub const GENERAL: usize = 0x10;
    pub const COUNTER: usize = 0xf0;
    pub const CONFIGURATION: usize = 0x100;
    pub const COMPARATOR: usize = 0x108;
    /// The comparator interrupts when its time has come.
    pub const INTERRUPT: u64 = 1 << 2;
    /// The HPET interrupts through input 20 of the I/O APIC, which descriptions call `irq`.
    pub const LINE: u64 = 20;
}

/// Most measurements of one operation.
pub const RUNS: u64 = 1000;
const SAMPLES: usize = RUNS as usize;
const COUNTERS: [Counter; 3] = [Counter::Cr3, Counter::Msr, Counter::Mmio];

/// The measurements of one operation.
#[repr(C)]
pub struct Probe {
    start: AtomicU64,
    overhead: AtomicU64,
    runs: AtomicU64,
    before: [AtomicU64; 3],
    counted: [AtomicU64; 3],
    samples: [AtomicU32; SAMPLES],
}

// The host knows where a probe is stored to.
const _: () = assert!(size_of::<Probe>() == probe::BYTES);
const _: () = assert!(core::mem::offset_of!(Probe, start) == probe::BEGINS);
const _: () = assert!(core::mem::offset_of!(Probe, runs) == probe::ENDS);

/// Returns the processor's counter.
#[inline(always)]
#[must_use]
pub fn stamp() -> u64 {
    // SAFETY: reading the counter has no effect.
    unsafe { core::arch::x86_64::_rdtsc() }
}

impl Probe {
    /// Notes the expensive things counted so far.
    #[inline(always)]
    pub fn note(&self) {
        for (slot, which) in self.before.iter().zip(COUNTERS) {
            slot.store(count(which), Relaxed);
        }
    }

    /// Stamps the beginning of the operation.
    #[inline(always)]
    pub fn begin(&self) {
        self.note();
        self.start.store(stamp(), Relaxed);
    }

    /// Stamps the end of the operation.
    #[inline(always)]
    pub fn end(&self) {
        let now = stamp();
        self.finish(now);
    }

    /// Notes that the operation ended at `now`, a [`stamp`].
    #[inline(never)]
    pub fn finish(&self, now: u64) {
        self.finish_with(self.spent(now));
    }

    /// Returns the cost if the operation ended at `now`, a [`stamp`].
    pub fn spent(&self, now: u64) -> u64 {
        let spent = now - self.start.load(Relaxed);
        spent.saturating_sub(self.overhead.load(Relaxed))
    }

    /// Notes that the operation has ended, and took `spent`.
    pub fn finish_with(&self, spent: u64) {
        let run = self.runs.load(Relaxed);
        let Some(slot) = self.samples.get(run as usize) else { return };
        slot.store(u32::try_from(spent).unwrap_or(u32::MAX), Relaxed);
        self.runs.store(run + 1, Relaxed);
        for ((sum, before), which) in self.counted.iter().zip(&self.before).zip(COUNTERS) {
            let passed = count(which) - before.load(Relaxed);
            sum.store(sum.load(Relaxed) + passed, Relaxed);
        }
    }

    /// Returns the number of measurements so far.
    pub fn runs(&self) -> u64 {
        self.runs.load(Relaxed)
    }

    /// The beginning as another thread keeps moving it while it waits to be interrupted.
    #[inline(always)]
    pub fn still_before(&self) {
        self.start.store(stamp(), Relaxed);
    }

    /// Returns whether it has begun at least once.
    pub fn begun(&self) -> bool {
        self.start.load(Relaxed) != 0
    }

    /// Measures what the stamps cost, and subtracts it from now on.
    pub fn calibrate(&self) {
        let mut least = u64::MAX;
        for _ in 0..16 {
            self.begin();
            let now = stamp();
            least = least.min(now - self.start.load(Relaxed));
        }
        self.overhead.store(least, Relaxed);
    }

    /// Median, largest and number of the measurements, if there are any.
    fn summary(&self) -> Option<(u32, u32, usize)> {
        let runs = (self.runs.load(Relaxed) as usize).min(SAMPLES);
        let mut sorted = [0u32; SAMPLES];
        for (to, from) in sorted.iter_mut().zip(&self.samples) {
            *to = from.load(Relaxed);
        }
        let sorted = &mut sorted[..runs];
        sorted.sort_unstable();
        Some((*sorted.get(runs / 2)?, *sorted.last()?, runs))
    }

    /// Reports the measurements of a part of the operation that was reported last. Nobody counted
    /// its expensive things.
    pub fn report_part(&self, name: &str) {
        self.tell(CostReport { is_part: true, ..CostReport::named(name) });
    }

    /// Reports the measurements under this name.
    pub fn report(&self, name: &str) {
        let runs = self.runs.load(Relaxed).max(1);
        let expensive = [0, 1, 2].map(|i: usize| self.counted[i].load(Relaxed) * 1000 / runs);
        let expensive = expensive.map(|count| count as u32);
        self.tell(CostReport { expensive, ..CostReport::named(name) });
    }

    fn tell(&self, report: CostReport) {
        let Some((median, max, runs)) = self.summary() else {
            return log!("an operation was not measured");
        };
        let report = CostReport { median, max, runs: runs as u32, ..report };
        let said = Measurement::Cost(report);
        log::measured(&Reported { at: time::now(), said }.words());
    }
}

/// The pause between operations, and the state of the caches after it.
#[derive(Clone, Copy)]
pub struct Pace {
    pause: Nanos,
    /// Memory that is read, so that the caches hold nothing else.
    cold: &'static [u8],
}

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

impl Pace {
    /// Returns the pace with a pause of so many us.
    #[must_use]
    pub const fn of(micros: u64) -> Pace {
        Pace { pause: Nanos::from_micros(micros), cold: &[] }
    }

    /// Returns the pace after which caches are cold, because they were filled with so many KiB of
    /// other memory.
    ///
    /// # Errors
    /// None, while nobody else allocates.
    pub fn with_cold_caches(self, kib: u64) -> Result<Pace, Errno> {
        let cold = memory::allocate((kib as usize * 1024).div_ceil(PAGE))?;
        Ok(Pace { cold, ..self })
    }

    /// Sleeps for the pause, if there is one, and makes the caches cold, if that is wanted.
    pub fn pause(self) {
        if self.pause > Nanos::ZERO {
            time::sleep_until(time::now() + self.pause);
        }
        for byte in self.cold.iter().step_by(LINE_BYTES) {
            core::hint::black_box(*byte);
        }
    }
}

macro_rules! operations {
    ($($name:ident)*) => {
        /// All probes, in shared memory. Zero is the state before the first measurement.
        #[repr(C)]
        pub struct Probes {
            calibration: Probe,
            /// Those of a bulk transfer, which another description measures.
            way: TransferProbes,
            $(
                pub $name: Probe,
            )*
        }

        impl Probes {
            /// Measures what the stamps cost, and lets every probe subtract it.
            pub fn calibrate(&self) {
                self.calibration.calibrate();
                let least = self.calibration.overhead.load(Relaxed);
                $(self.$name.overhead.store(least, Relaxed);)*
            }

            /// Reports every measurement by name.
            pub fn report(&self) {
                $(self.$name.report(stringify!($name));)*
            }
        }
    };
}

operations! {
    null_syscall yield_switch yield_switch_local
    sem_create sem_delete sem_lock_free sem_unlock_free
    sem_lock_contended sem_unlock sem_signal_switch sem_signal_switch_local
    cv_create cv_delete cv_signal_nobody cond_wait_switch cond_signal_switch
    mbox_create mbox_delete
    mbox_send_8 mbox_receive_8 mbox_send_16 mbox_receive_16 mbox_send_64 mbox_receive_64
    mbox_send_switch_16 mbox_round_trip_16 mbox_round_trip_16_local
    mbox_call_round_trip_16 mbox_call_round_trip_16_local mbox_ask_round_trip_16
    state_write_8 state_read_8 state_read_slow_8
    thread_create thread_create_run_exit_join thread_join_exited
    thread_detach_exited thread_detach_running
    shm_attach_new shm_attach_existing shm_detach_existing shm_detach_last mem_alloc_page
    proc_create fault_to_supervisor fault_to_supervisor_round_trip
    irq_to_thread timer_to_thread
}

/// Answers [`RUNS`] requests with themselves, by calls, and takes one message more.
///
/// # Errors
/// Those of the mailboxes.
pub fn serve(request: Mailbox, reply: Mailbox) -> Result<(), Errno> {
    let mut buffer = [0; MESSAGE_BYTES];
    let (mut length, mut priority) = request.receive_into(&mut buffer, Nanos::FOREVER)?;
    for _ in 0..RUNS {
        (length, priority) =
            reply.call_into(&mut buffer, length, priority, &request, Nanos::FOREVER)?;
    }
    Ok(())
}

/// Probes of the way of a bulk transfer: the whole, and its parts.
#[repr(C)]
pub struct TransferProbes {
    /// From the interrupt to the thread that waits for the transfer.
    pub transfer: Probe,
    /// From the interrupt to the thread of the bottom half.
    pub interrupt: Probe,
    /// Until it has the server's lock.
    pub lock: Probe,
    /// Until it has served everything.
    pub bottom_half: Probe,
    /// Until the client's thread runs.
    pub wake_up: Probe,
}

/// Returns the shared probes.
///
/// # Errors
/// None where the description grants the segment.
pub fn probes() -> Result<&'static Probes, Errno> {
    let segment = Segment::attach(probe::SEGMENT)?;
    let address = segment.address();
    // It stays attached for the life of the process.
    core::mem::forget(segment);
    // SAFETY: the segment is large enough, zeroed at first, aligned to a page, and used only
    // through atomics.
    Ok(unsafe { &*address.cast::<Probes>() })
}

/// Returns the probes on the way of a bulk transfer.
///
/// # Errors
/// As of [`probes`].
pub fn way() -> Result<&'static TransferProbes, Errno> {
    probes().map(|probes| &probes.way)
}

/// Bytes the probes need, for the description.
pub const BYTES: usize = size_of::<Probes>();
const _: () = assert!(BYTES <= 256 * 1024);
