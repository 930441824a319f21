//! The processor's floating-point and vector state belongs to the thread.

use crate::check;
use crate::peer::{answer, begin, demand};
use crate::why::{Outcome, Trial};
use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use diapason_abi::call::{Counter, MUTEX};
use diapason_abi::{CallNumber, Key};
use diapason_rt::thread::{self, spawn};
use diapason_rt::{Nanos, body, time};
use diapason_trials::{
    Traces, VECTOR_WORDS, divide_and_yield, mess, order, vectors_across_call, x87_fractions,
};

pub const TRIALS: &[(&str, Trial)] = &[
    ("vector registers survive preemption in a process", vectors_here),
    ("vector registers survive preemption between processes", vectors_there),
    ("control words survive preemption and blocking", control_words),
    ("a new thread has the usual control words", fresh_control_words),
    ("a blocking call shows nobody else's vectors", no_leak_blocking),
    ("a short call shows nobody else's vectors", no_leak_short),
    ("a blocking call shows nobody else's x87 registers", no_leak_x87),
    ("an x87 exception stays with the thread that made it", x87_exception),
    ("preserved registers survive a blocking call", preserved),
    ("a call leaves nothing of the kernel's in registers", no_leak_of_the_kernel),
    ("no selector and no x87 address reaches one who waited", no_traces_after_a_wait),
    ("no selector and no x87 address reaches one who was interrupted", no_traces_within),
];

body!(Messy = messy);
body!(Subject = subject);
body!(Control = control);
body!(Fresh = fresh);
body!(Divider = divider);
body!(Careful = careful);

static STOP: AtomicU64 = AtomicU64::new(0);

/// Interrupts the others and uses every register for something else.
fn messy(_: u64) -> u64 {
    let period = Nanos::from_micros(50);
    let mut jobs = thread::periodic(time::now() + period, period, period);
    let mut count = 0;
    while STOP.load(Relaxed) == 0 {
        mess(0xbad0_bad0_bad0_bad0 ^ count);
        count += 1;
        jobs.wait();
    }
    count
}

/// Loads all vector registers and the x87 stack, spins, and counts differences.
fn subject(rounds: u64) -> u64 {
    let mut wrong = 0;
    for round in 0..rounds {
        let words: [u64; VECTOR_WORDS] = core::array::from_fn(|n| round << 32 | n as u64);
        let after = vectors_across_spin(&words);
        wrong += u64::from(after != words);
    }
    wrong
}

fn vectors_across_spin(words: &[u64; VECTOR_WORDS]) -> [u64; VECTOR_WORDS] {
    let mut after = [0; VECTOR_WORDS];
    let mut tail = 0_u64;
    // SAFETY: reads one array, writes the other and the word; the x87 stack is left as found.
    unsafe {
        asm!(
            "fild qword ptr [r12 + 8]",
            "movdqu xmm0, [r12]", "movdqu xmm1, [r12 + 16]", "movdqu xmm2, [r12 + 32]",
            "movdqu xmm3, [r12 + 48]", "movdqu xmm4, [r12 + 64]", "movdqu xmm5, [r12 + 80]",
            "movdqu xmm6, [r12 + 96]", "movdqu xmm7, [r12 + 112]", "movdqu xmm8, [r12 + 128]",
            "movdqu xmm9, [r12 + 144]", "movdqu xmm10, [r12 + 160]", "movdqu xmm11, [r12 + 176]",
            "movdqu xmm12, [r12 + 192]", "movdqu xmm13, [r12 + 208]", "movdqu xmm14, [r12 + 224]",
            "movdqu xmm15, [r12 + 240]",
            "mov ecx, 100000", "2: dec ecx", "jnz 2b",
            "movdqu [r13], xmm0", "movdqu [r13 + 16], xmm1", "movdqu [r13 + 32], xmm2",
            "movdqu [r13 + 48], xmm3", "movdqu [r13 + 64], xmm4", "movdqu [r13 + 80], xmm5",
            "movdqu [r13 + 96], xmm6", "movdqu [r13 + 112], xmm7", "movdqu [r13 + 128], xmm8",
            "movdqu [r13 + 144], xmm9", "movdqu [r13 + 160], xmm10", "movdqu [r13 + 176], xmm11",
            "movdqu [r13 + 192], xmm12", "movdqu [r13 + 208], xmm13", "movdqu [r13 + 224], xmm14",
            "movdqu [r13 + 240], xmm15",
            "fistp qword ptr [r14]",
            in("r12") words.as_ptr(), in("r13") after.as_mut_ptr(), in("r14") &raw mut tail,
            out("rcx") _, clobber_abi("C"),
        );
    }
    // The x87 stack's word must be as loaded too.
    if tail == words[1] { after } else { [0; VECTOR_WORDS] }
}

fn vectors_here() -> Outcome {
    STOP.store(0, Relaxed);
    let messy = spawn::<Messy>("messy", 40, 0)?;
    check!(spawn::<Subject>("subject", 20, 50)?.join(Nanos::FOREVER)? == 0);
    STOP.store(1, Relaxed);
    check!(messy.join(Nanos::FOREVER)? > 40);
    Ok(())
}

fn vectors_there() -> Outcome {
    begin(order::MESS, 100)?;
    check!(spawn::<Subject>("subject", 20, 50)?.join(Nanos::FOREVER)? == 0);
    answer(order::MESS)?;
    Ok(())
}

fn set_control(mxcsr: u32, word: u16) {
    // SAFETY: rounding modes; every exception stays masked.
    unsafe {
        asm!("ldmxcsr [{m}]", "fldcw [{w}]", m = in(reg) &raw const mxcsr,
             w = in(reg) &raw const word);
    }
}

fn get_control() -> (u32, u16) {
    let (mut mxcsr, mut word) = (0_u32, 0_u16);
    // SAFETY: writes the two words.
    unsafe {
        asm!("stmxcsr [{m}]", "fnstcw [{w}]", m = in(reg) &raw mut mxcsr,
             w = in(reg) &raw mut word);
    }
    (mxcsr, word)
}

const USUAL: (u32, u16) = (0x1f80, 0x37f);

/// Rounds towards zero in one, up in the other; both are kept while others run and while it waits.
fn control(rounds: u64) -> u64 {
    let own = (0x7f80, 0xb7f);
    set_control(own.0, own.1);
    let mut wrong = 0;
    for _ in 0..rounds {
        time::burn(Nanos::from_micros(100));
        wrong += u64::from(get_control() != own);
        time::sleep(Nanos::from_micros(70));
        wrong += u64::from(get_control() != own);
    }
    set_control(USUAL.0, USUAL.1);
    wrong
}

fn control_words() -> Outcome {
    STOP.store(0, Relaxed);
    let messy = spawn::<Messy>("messy", 40, 0)?;
    begin(order::MESS, 100)?;
    check!(spawn::<Control>("control", 20, 30)?.join(Nanos::FOREVER)? == 0);
    STOP.store(1, Relaxed);
    messy.join(Nanos::FOREVER)?;
    answer(order::MESS)?;
    check!(get_control() == USUAL);
    Ok(())
}

fn fresh(_: u64) -> u64 {
    let usual = get_control() == USUAL;
    set_control(0x3f80, 0x77f);
    usual.into()
}

fn fresh_control_words() -> Outcome {
    for _ in 0..3 {
        check!(spawn::<Fresh>("fresh", 40, 0)?.join(Nanos::FOREVER)? == 1);
    }
    check!(get_control() == USUAL);
    Ok(())
}

/// After a call, a register holds what it held, or nothing.
fn own_or_clear(before: &[u64; VECTOR_WORDS], after: &[u64; VECTOR_WORDS]) -> bool {
    before.iter().zip(after).all(|(before, after)| *after == 0 || before == after)
}

fn no_leak_blocking() -> Outcome {
    begin(order::SECRET, 50)?;
    let words = core::array::from_fn(|n| 0x1111 * n as u64);
    for _ in 0..40 {
        let until = time::now() + Nanos::from_micros(37);
        let after = vectors_across_call(&words, CallNumber::SleepUntil as u64, until.0);
        check!(own_or_clear(&words, &after));
    }
    answer(order::SECRET)?;
    Ok(())
}

fn no_leak_short() -> Outcome {
    begin(order::SECRET, 20)?;
    let words = core::array::from_fn(|n| 0x1111 * n as u64);
    let time = Counter::CpuTime as u64;
    for call in [CallNumber::Null, CallNumber::Yield, CallNumber::Count, CallNumber::SleepUntil] {
        for _ in 0..20 {
            let after = vectors_across_call(&words, call as u64, time);
            check!(own_or_clear(&words, &after));
        }
    }
    answer(order::SECRET)?;
    Ok(())
}

fn no_leak_x87() -> Outcome {
    begin(order::MESS, 50)?;
    for _ in 0..40 {
        time::sleep(Nanos::from_micros(37));
        check!(x87_fractions() == [0; 8]);
    }
    answer(order::MESS)?;
    Ok(())
}

/// Leaves an exception pending again and again while the others run.
fn divider(rounds: u64) -> u64 {
    (0..rounds).for_each(|_| divide_and_yield());
    rounds
}

/// Lets the others run with a report of exceptions switched on, and counts then.
fn careful(rounds: u64) -> u64 {
    for _ in 0..rounds {
        set_control(USUAL.0, 0x37b);
        thread::yield_now();
        // SAFETY: leaves the x87 stack as found.
        unsafe { asm!("fld1", "fwait", "fstp st(0)") };
        set_control(USUAL.0, USUAL.1);
        thread::yield_now();
        // SAFETY: as above.
        unsafe { asm!("fld1", "fwait", "fstp st(0)") };
    }
    rounds
}

fn x87_exception() -> Outcome {
    let divider = spawn::<Divider>("divider", 30, 50)?;
    let careful = spawn::<Careful>("careful", 30, 50)?;
    check!(divider.join(Nanos::FOREVER)? == 50);
    check!(careful.join(Nanos::FOREVER)? == 50);
    Ok(())
}

fn preserved() -> Outcome {
    let until = time::now() + Nanos::from_micros(50);
    let (b, c, d, e): (u64, u64, u64, u64);
    // SAFETY: a sleep; the registers named are inputs and outputs.
    unsafe {
        asm!("syscall", in("rax") CallNumber::SleepUntil as u64, in("rdi") until.0,
             inout("r12") 12_u64 => b, inout("r13") 13_u64 => c, inout("r14") 14_u64 => d,
             inout("r15") 15_u64 => e, clobber_abi("C"));
    }
    check!((b, c, d, e) == (12, 13, 14, 15));
    check!(time::now() >= until);
    Ok(())
}

/// Returns a call's result, and what is in each register that it does not preserve.
fn call(number: CallNumber, [a, b, c, d, e]: [u64; 5]) -> (u64, [u64; 6]) {
    let result: u64;
    let mut after = [0; 6];
    let [di, si, dx, r8, r9, r10] = &mut after;
    // SAFETY: the calls made here write to no memory but a buffer of their caller's.
    unsafe {
        asm!("syscall", inout("rax") number as u64 => result, inout("rdi") a => *di,
             inout("rsi") b => *si, inout("rdx") c => *dx, inout("r10") d => *r10,
             inout("r8") e => *r8, inout("r9") u64::MAX => *r9, out("rcx") _, out("r11") _);
    }
    (result, after)
}

fn no_leak_of_the_kernel() -> Outcome {
    let (mutex, _) = call(CallNumber::SemCreate, [0, MUTEX, 0, 0, 0]);
    let (mailbox, _) = call(CallNumber::MboxCreate, [Key::new("box").0, 0, 0, 0, 0]);
    let mut buffer = [0_u64; 8];
    let buffer = buffer.as_mut_ptr() as u64;
    let calls = [
        (CallNumber::Null, [u64::MAX; 5]),
        (CallNumber::Yield, [u64::MAX; 5]),
        (CallNumber::SemLock, [mutex, u64::MAX, u64::MAX, 0, 0]),
        (CallNumber::SemUnlock, [mutex, 0, 0, 0, 0]),
        (CallNumber::SemTryLock, [mutex, 0, 0, 0, 0]),
        (CallNumber::SemUnlock, [mutex, 0, 0, 0, 0]),
        (CallNumber::MboxSend, [mailbox, buffer, 64, 3, 0]),
        (CallNumber::MboxReceive, [mailbox, buffer, 0, u64::MAX, 0]),
        (CallNumber::MboxReceive, [mailbox, buffer, 0, u64::MAX, 0]),
        (CallNumber::SleepUntil, [0, u64::MAX, 0, 0, 0]),
        (CallNumber::Count, [Counter::CpuTime as u64, 0, 0, 0, 0]),
        (CallNumber::ReadSlow, [buffer, buffer, 8, 0, 0]),
    ];
    let mut left = [0; 6];
    for (number, words) in calls {
        let (_, after) = call(number, words);
        left.iter_mut().zip(after).for_each(|(left, after)| *left |= after);
    }
    call(CallNumber::SemDelete, [mutex, 0, 0, 0, 0]);
    check!(left == [0; 6]);
    Ok(())
}

fn no_traces_after_a_wait() -> Outcome {
    begin(order::TRACE, 50)?;
    for _ in 0..40 {
        time::sleep(Nanos::from_micros(37));
        check!(Traces::seen() == Traces::NONE);
    }
    answer(order::TRACE)?;
    Ok(())
}

fn no_traces_within() -> Outcome {
    static OPERAND: u64 = 0x7ace;
    begin(order::PEEK, &raw const OPERAND as u64)?;
    for _ in 0..40 {
        Traces::leave(&OPERAND);
        time::sleep(Nanos::from_micros(37));
    }
    check!(answer(order::PEEK)? == [0; 3]);
    // The same the other way round: it leaves traces, and an interrupt brings this one back.
    demand(order::TRACE, 3)?;
    check!(Traces::seen().selectors == 0);
    Ok(())
}
