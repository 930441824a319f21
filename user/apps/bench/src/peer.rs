//! The other process of the benchmark: its high thread ends what the driver begins, serves the
//! interrupt and the timer, and supervises the process that faults. Its first argument is the pause
//! before an interrupt in us. If the second is not zero, it measures no interrupts.

#![no_std]
#![no_main]

use diapason_abi::{Key, MESSAGE_BYTES};
use diapason_bench::{Probes, RUNS, hpet, probes};
use diapason_rt::event::Event;
use diapason_rt::mailbox::{Mailbox, receive_fault};
use diapason_rt::memory::{Registers, Segment};
use diapason_rt::sync::{Condition, Mutex, Semaphore};
use diapason_rt::thread::{spawn, yield_now};
use diapason_rt::{Arguments, Errno, Nanos, body, entry, log, process, time};

entry!(main);
body!(Yielder = yielder);

const LOW: u8 = 20;
const NOW: Nanos = Nanos::ZERO;
const EVER: Nanos = Nanos::FOREVER;
/// The pause without an argument: long enough for the interrupted thread to be in its loop.
const PAUSE: Nanos = Nanos::from_micros(20);

/// One tick of the HPET in QEMU.
const NANOS_PER_TICK: u64 = 10;

fn main(Arguments([pause, without, ..]): Arguments) {
    if let Err(errno) = serve(Nanos::from_micros(pause), without == 0) {
        log!("the benchmark's peer failed: {errno:?}");
    }
}

fn serve(pause: Nanos, with_interrupts: bool) -> Result<(), Errno> {
    let p = probes()?;
    let kept = Segment::attach("kept")?;
    let (go, done) = (Semaphore::open("go")?, Semaphore::open("done")?);
    go.take(EVER)?;
    let partner = spawn::<Yielder>("yielder", LOW, 0)?;
    go.take(EVER)?;
    partner.join(NOW)?;
    semaphores(p)?;
    go.take(EVER)?;
    conditions(p)?;
    go.take(EVER)?;
    messages(p)?;
    go.take(EVER)?;
    if with_interrupts {
        interrupts(p, pause.max(PAUSE))?;
    }
    timers(p, pause.max(PAUSE))?;
    done.give()?;
    go.take(EVER)?;
    faults(p)?;
    drop(kept);
    done.give()
}

fn yielder(_: u64) -> u64 {
    let Ok(p) = probes() else { return 1 };
    for _ in 0..=RUNS {
        yield_now();
        if p.yield_switch.begun() {
            p.yield_switch.end();
        }
    }
    0
}

fn semaphores(p: &Probes) -> Result<(), Errno> {
    let (mutex, signal) = (Mutex::open("mutex")?, Semaphore::open("signal")?);
    for _ in 0..RUNS {
        signal.take(EVER)?;
        p.sem_signal_switch.end();
        p.sem_lock_contended.begin();
        let guard = mutex.lock()?;
        p.sem_unlock.end();
        drop(guard);
    }
    Ok(())
}

fn conditions(p: &Probes) -> Result<(), Errno> {
    let (mutex, condition) = (Mutex::open("mutex")?, Condition::open("condition")?);
    let mut guard = mutex.lock()?;
    for _ in 0..RUNS {
        p.cond_wait_switch.begin();
        condition.wait(&mut guard, EVER)?;
        p.cond_signal_switch.end();
    }
    // One more, so that the driver's last signal is followed by a wait like all others.
    p.cond_wait_switch.begin();
    let timeout = time::now() + PAUSE;
    match condition.wait(&mut guard, timeout) {
        Err(Errno::TimedOut) => Ok(()),
        other => other,
    }
}

fn messages(p: &Probes) -> Result<(), Errno> {
    let (request, reply) = (Mailbox::open("request")?, Mailbox::open("reply")?);
    let mut buffer = [0; MESSAGE_BYTES];
    for run in 0..2 * RUNS {
        let (length, priority) = request.receive_into(&mut buffer, EVER)?;
        if run < RUNS {
            p.mbox_send_switch_16.end();
        }
        reply.send(&buffer[..length], priority, NOW)?;
    }
    diapason_bench::serve(request, reply)
}

fn interrupts(p: &Probes, pause: Nanos) -> Result<(), Errno> {
    let registers = Registers::map("hpet")?;
    let interrupt = Event::interrupt("hpet")?;
    let ticks = pause.0 / NANOS_PER_TICK;
    for _ in 0..RUNS {
        let due = registers.read64(hpet::COUNTER) + ticks;
        registers.write64(hpet::CONFIGURATION, hpet::LINE << 9 | hpet::INTERRUPT);
        registers.write64(hpet::COMPARATOR, due);
        interrupt.wait(EVER)?;
        p.irq_to_thread.end();
    }
    registers.write64(hpet::CONFIGURATION, 0);
    Ok(())
}

fn timers(p: &Probes, pause: Nanos) -> Result<(), Errno> {
    for _ in 0..RUNS {
        let due = time::now() + pause;
        time::sleep_until(due);
        p.timer_to_thread.finish_with((time::now() - due).0);
    }
    Ok(())
}

fn faults(p: &Probes) -> Result<(), Errno> {
    let reports = Mailbox::open("bench-peer.faults")?;
    let faulter = Key::new("bench-faulter");
    // Round trips first, without stamps of the supervisor in the way.
    process::create(faulter)?;
    receive_fault(&reports, EVER)?;
    for _ in 0..RUNS {
        process::create_and_receive(faulter, &reports, EVER)?;
    }
    for _ in 0..RUNS {
        p.proc_create.begin();
        process::create(faulter)?;
        p.proc_create.end();
        receive_fault(&reports, EVER)?;
        p.fault_to_supervisor.end();
    }
    Ok(())
}
