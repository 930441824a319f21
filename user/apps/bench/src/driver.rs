//! The measuring process. Its low thread begins most operations; the peer's high thread ends them.
//!
//! Its first argument is the pause before each operation in us. On VCPUs a pause keeps the lists of
//! replenishments from filling. If the second is not zero, the computer is measured: so many KiB
//! are read before each operation, so that caches are cold, and `ended` is given at the end.

#![no_std]
#![no_main]

use diapason_abi::MESSAGE_BYTES;
use diapason_bench::{Pace, Probe, Probes, RUNS, probes, serve};
use diapason_rt::mailbox::Mailbox;
use diapason_rt::memory::{self, Segment};
use diapason_rt::server::AskedMailbox;
use diapason_rt::sync::{Condition, Mutex, Semaphore};
use diapason_rt::sys;
use diapason_rt::thread::{spawn, yield_now};
use diapason_rt::{Arguments, Errno, Nanos, body, entry, log, time};
use diapason_state::StateWord;

entry!(main);
body!(Driver = driver);
body!(Yielder = yielder);
body!(Nothing = nothing);
body!(High = high);

const LOW: u8 = 20;
const HIGH: u8 = 40;
const NOW: Nanos = Nanos::ZERO;
const EVER: Nanos = Nanos::FOREVER;
/// Longer than the peer waits for a condition that nobody signals.
const SETTLE: Nanos = Nanos::from_micros(100);

fn main(Arguments([pause, cold, ..]): Arguments) {
    if let Err(errno) = drive(pause, cold) {
        log!("the benchmark failed: {errno:?}");
    }
}

fn drive(pause: u64, cold: u64) -> Result<(), Errno> {
    let pace = pause << 32 | cold & u64::from(u32::MAX);
    spawn::<Driver>("driver", LOW, pace)?.join(EVER)?;
    if cold == 0 { Ok(()) } else { Semaphore::open("ended")?.give() }
}

fn driver(pace: u64) -> u64 {
    let (pause, cold) = (pace >> 32, pace & u64::from(u32::MAX));
    match Pace::of(pause).with_cold_caches(cold).and_then(measure) {
        Ok(()) => 0,
        Err(errno) => {
            log!("the benchmark failed: {errno:?}");
            1
        }
    }
}

fn measure(pace: Pace) -> Result<(), Errno> {
    let p = probes()?;
    p.calibrate();
    calls(p, pace)?;
    state(p, pace)?;
    mailboxes(p, pace)?;
    threads(p, pace)?;
    segments(p, pace)?;
    local(p, pace)?;
    questions(p, pace)?;
    with_peer(p, pace)?;
    p.report();
    Ok(())
}

fn calls(p: &Probes, pace: Pace) -> Result<(), Errno> {
    for _ in 0..RUNS {
        pace.pause();
        p.null_syscall.begin();
        sys::null();
        p.null_syscall.end();
    }
    let mutex = Mutex::private()?;
    for _ in 0..RUNS {
        pace.pause();
        p.sem_lock_free.begin();
        let guard = mutex.lock()?;
        p.sem_lock_free.end();
        p.sem_unlock_free.begin();
        drop(guard);
        p.sem_unlock_free.end();
    }
    for _ in 0..RUNS {
        pace.pause();
        p.sem_create.begin();
        let semaphore = Semaphore::private(0);
        p.sem_create.end();
        p.sem_delete.begin();
        let deleted = semaphore?.delete();
        p.sem_delete.end();
        deleted?;
    }
    for _ in 0..RUNS {
        pace.pause();
        p.cv_create.begin();
        let condition = Condition::private();
        p.cv_create.end();
        let condition = condition?;
        p.cv_signal_nobody.begin();
        let woken = condition.signal();
        p.cv_signal_nobody.end();
        woken?;
        p.cv_delete.begin();
        let deleted = condition.delete();
        p.cv_delete.end();
        deleted?;
    }
    mutex.delete()
}

fn state(p: &Probes, pace: Pace) -> Result<(), Errno> {
    let mut word = StateWord::<u64>::new(0);
    let (mut writer, reader) = word.split();
    let mut sum = 0u64;
    for i in 0..RUNS {
        pace.pause();
        p.state_write_8.begin();
        writer.write(i);
        p.state_write_8.end();
        p.state_read_8.begin();
        let value = core::hint::black_box(reader.read());
        p.state_read_8.end();
        sum += value;
    }
    let mut buffer = diapason_state::StateBuffer::<u64, 2>::new();
    let (mut writer, reader) = buffer.split();
    for i in 0..RUNS {
        pace.pause();
        writer.write(i);
        p.state_read_slow_8.begin();
        let value = core::hint::black_box(reader.read_slow(&memory::KernelCopy));
        p.state_read_slow_8.end();
        sum += value;
    }
    if sum == RUNS * (RUNS - 1) { Ok(()) } else { Err(Errno::Gone) }
}

fn mailboxes(p: &Probes, pace: Pace) -> Result<(), Errno> {
    let mut buffer = [0; MESSAGE_BYTES];
    for _ in 0..RUNS {
        pace.pause();
        p.mbox_create.begin();
        let mailbox = Mailbox::open("scratch");
        p.mbox_create.end();
        let mailbox = mailbox?;
        for (send, receive, length) in [
            (&p.mbox_send_8, &p.mbox_receive_8, 8),
            (&p.mbox_send_16, &p.mbox_receive_16, 16),
            (&p.mbox_send_64, &p.mbox_receive_64, 64),
        ] {
            let message = [1; MESSAGE_BYTES];
            send.begin();
            let sent = mailbox.send(&message[..length], 1, NOW);
            send.end();
            sent?;
            receive.begin();
            let received = mailbox.receive_into(&mut buffer, NOW);
            receive.end();
            received?;
        }
        p.mbox_delete.begin();
        let deleted = mailbox.delete();
        p.mbox_delete.end();
        deleted?;
    }
    Ok(())
}

fn nothing(_: u64) -> u64 {
    0
}

fn threads(p: &Probes, pace: Pace) -> Result<(), Errno> {
    for _ in 0..RUNS {
        pace.pause();
        p.thread_create_run_exit_join.begin();
        let child = spawn::<Nothing>("child", LOW, 0)?;
        let code = child.join(EVER);
        p.thread_create_run_exit_join.end();
        code?;

        p.thread_create.begin();
        let child = spawn::<Nothing>("child", LOW, 0);
        p.thread_create.end();
        let child = child?;
        yield_now();
        p.thread_join_exited.begin();
        let code = child.join(NOW);
        p.thread_join_exited.end();
        code?;

        let running = spawn::<Nothing>("child", LOW, 0)?;
        p.thread_detach_running.begin();
        drop(running);
        p.thread_detach_running.end();
        yield_now();

        let exited = spawn::<Nothing>("child", LOW, 0)?;
        yield_now();
        p.thread_detach_exited.begin();
        drop(exited);
        p.thread_detach_exited.end();
    }
    Ok(())
}

fn segments(p: &Probes, pace: Pace) -> Result<(), Errno> {
    for _ in 0..RUNS {
        pace.pause();
        p.shm_attach_new.begin();
        let segment = Segment::attach("page");
        p.shm_attach_new.end();
        p.shm_detach_last.begin();
        drop(segment);
        p.shm_detach_last.end();
    }
    for _ in 0..RUNS {
        pace.pause();
        p.shm_attach_existing.begin();
        let segment = Segment::attach("kept");
        p.shm_attach_existing.end();
        p.shm_detach_existing.begin();
        drop(segment);
        p.shm_detach_existing.end();
    }
    for _ in 0..RUNS {
        pace.pause();
        p.mem_alloc_page.begin();
        let page = memory::allocate(1);
        p.mem_alloc_page.end();
        page?;
    }
    Ok(())
}

fn yielder(_: u64) -> u64 {
    let Ok(p) = probes() else { return 1 };
    for _ in 0..=RUNS {
        yield_now();
        if p.yield_switch_local.begun() {
            p.yield_switch_local.end();
        }
    }
    0
}

/// The high thread of this process: ends what the driver begins, in the same address space.
fn high(_: u64) -> u64 {
    let Ok(p) = probes() else { return 1 };
    let (Ok(signal), Ok(request), Ok(reply)) = (
        Semaphore::open("local-signal"),
        Mailbox::open("local-request"),
        Mailbox::open("local-reply"),
    ) else {
        return 1;
    };
    for _ in 0..RUNS {
        if signal.take(EVER).is_err() {
            return 1;
        }
        p.sem_signal_switch_local.end();
    }
    echo(request, reply)
}

fn echo(request: Mailbox, reply: Mailbox) -> u64 {
    let mut buffer = [0; MESSAGE_BYTES];
    for _ in 0..RUNS {
        let Ok((length, priority)) = request.receive_into(&mut buffer, EVER) else { return 1 };
        if reply.send(&buffer[..length], priority, NOW).is_err() {
            return 1;
        }
    }
    serve(request, reply).map_or(1, |()| 0)
}

fn local(p: &Probes, pace: Pace) -> Result<(), Errno> {
    let partner = spawn::<Yielder>("yielder", LOW, 0)?;
    yield_now();
    for _ in 0..RUNS {
        p.yield_switch_local.begin();
        yield_now();
    }
    yield_now();
    partner.join(EVER)?;

    let signal = Semaphore::open("local-signal")?;
    let (request, reply) = (Mailbox::open("local-request")?, Mailbox::open("local-reply")?);
    let partner = spawn::<High>("high", HIGH, 0)?;
    for _ in 0..RUNS {
        pace.pause();
        p.sem_signal_switch_local.begin();
        signal.give()?;
    }
    round_trips(&p.mbox_round_trip_16_local, pace, request, reply)?;
    calls_and_answers(&p.mbox_call_round_trip_16_local, pace, request, reply)?;
    partner.join(EVER).map(|_| ())
}

fn round_trips(probe: &Probe, pace: Pace, request: Mailbox, reply: Mailbox) -> Result<(), Errno> {
    let mut buffer = [0; MESSAGE_BYTES];
    for _ in 0..RUNS {
        pace.pause();
        probe.begin();
        request.send(&[1; 16], 1, NOW)?;
        let answer = reply.receive_into(&mut buffer, EVER);
        probe.end();
        answer?;
    }
    Ok(())
}

/// Sends and receives by one call, to a partner in [`serve`].
fn calls_and_answers(
    probe: &Probe,
    pace: Pace,
    request: Mailbox,
    reply: Mailbox,
) -> Result<(), Errno> {
    let mut buffer = [1; MESSAGE_BYTES];
    for _ in 0..RUNS {
        pace.pause();
        probe.begin();
        let answer = request.call_into(&mut buffer, 16, 1, &reply, EVER);
        probe.end();
        answer?;
    }
    // The partner's last call waits for one message more.
    request.send(&buffer[..1], 1, NOW)
}

/// Asks a server of another process, which runs in the place of the caller.
fn questions(p: &Probes, pace: Pace) -> Result<(), Errno> {
    let served = AskedMailbox::open("served")?;
    let mut buffer = [1; MESSAGE_BYTES];
    // The server is less urgent: it comes to wait while this thread sleeps.
    while let Err(Errno::Gone) = served.ask_into(&mut buffer, 1, 0, EVER) {
        time::sleep_until(time::now() + Nanos::from_micros(200));
    }
    for _ in 0..RUNS {
        pace.pause();
        p.mbox_ask_round_trip_16.begin();
        let answer = served.ask_into(&mut buffer, 16, 1, EVER);
        p.mbox_ask_round_trip_16.end();
        answer?;
    }
    Ok(())
}

/// Keeps moving the beginning of the next interrupt until it has come.
fn be_interrupted(p: &Probes) {
    let rounds = || p.irq_to_thread.runs() + p.timer_to_thread.runs();
    let round = rounds();
    p.irq_to_thread.note();
    p.timer_to_thread.note();
    while rounds() == round && round < 2 * RUNS {
        p.irq_to_thread.still_before();
    }
}

/// Operations that make a thread of another process run.
fn with_peer(p: &Probes, pace: Pace) -> Result<(), Errno> {
    let (go, done) = (Semaphore::open("go")?, Semaphore::open("done")?);
    go.give()?;
    yield_now();
    for _ in 0..RUNS {
        p.yield_switch.begin();
        yield_now();
    }
    yield_now();

    let (mutex, signal) = (Mutex::open("mutex")?, Semaphore::open("signal")?);
    go.give()?;
    for _ in 0..RUNS {
        pace.pause();
        let guard = mutex.lock()?;
        p.sem_signal_switch.begin();
        signal.give()?;
        p.sem_lock_contended.end();
        p.sem_unlock.begin();
        drop(guard);
    }
    let condition = Condition::open("condition")?;
    go.give()?;
    for _ in 0..RUNS {
        pace.pause();
        p.cond_signal_switch.begin();
        condition.signal()?;
        p.cond_wait_switch.end();
    }
    // The peer's last wait for the condition ends by itself meanwhile.
    time::sleep_until(time::now() + SETTLE);
    let (request, reply) = (Mailbox::open("request")?, Mailbox::open("reply")?);
    go.give()?;
    let mut buffer = [0; MESSAGE_BYTES];
    for _ in 0..RUNS {
        pace.pause();
        p.mbox_send_switch_16.begin();
        request.send(&[1; 16], 1, NOW)?;
        reply.receive_into(&mut buffer, EVER)?;
    }
    round_trips(&p.mbox_round_trip_16, pace, request, reply)?;
    calls_and_answers(&p.mbox_call_round_trip_16, pace, request, reply)?;
    // The rest the peer measures; this thread is what it interrupts.
    go.give()?;
    while done.take(NOW).is_err() {
        be_interrupted(p);
    }
    go.give()?;
    done.take(EVER)?;

    Ok(())
}
