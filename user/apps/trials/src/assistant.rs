//! The peer of the trials: does in another process what it is ordered to, see [`order`].

#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use diapason_abi::{CallNumber, PAGE};
use diapason_rt::mailbox::Mailbox;
use diapason_rt::memory::{Segment, allocate};
use diapason_rt::sync::Mutex;
use diapason_rt::{Arguments, Errno, Nanos, entry, thread, time};
use diapason_state::StateWriter;
use diapason_trials::{Cell, Pair, Traces, VECTOR_WORDS, mess, order, vectors_across_call};

entry!(main);

static DATA: AtomicU64 = AtomicU64::new(0xda7a);
static BSS: AtomicU64 = AtomicU64::new(0);
/// No thread's vector registers may ever show this to another process.
const SECRET: u64 = 0x5ec2_e75e_c2e7_5ec2;

fn main(_: Arguments) {
    let (Ok(orders), Ok(answers)) = (Mailbox::open("orders"), Mailbox::open("answers")) else {
        panic!("no mailboxes");
    };
    let mut board = None;
    loop {
        let Ok(message) = orders.receive(Nanos::FOREVER) else { continue };
        let word = |at: usize| {
            let bytes = message.bytes().get(at..at + 8).unwrap_or(&[0; 8]);
            u64::from_le_bytes(bytes.try_into().unwrap_or_default())
        };
        let answer = obey(word(0), word(8), &mut board).unwrap_or([u64::MAX; 3]);
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&word(0).to_le_bytes());
        for (place, word) in bytes[8..].chunks_exact_mut(8).zip(answer) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let _ = answers.send(&bytes, 0, Nanos::FOREVER);
    }
}

fn obey(what: u64, number: u64, board: &mut Option<Segment>) -> Result<[u64; 3], Errno> {
    match what {
        order::FILL => {
            let segment = Segment::attach("board")?;
            // SAFETY: 16 KiB of words that both processes treat as atomic.
            let words =
                unsafe { core::slice::from_raw_parts(segment.address().cast::<AtomicU64>(), 2048) };
            for (n, word) in words.iter().enumerate() {
                word.store(n as u64 ^ number, Relaxed);
            }
            *board = Some(segment);
        }
        order::LEAVE => *board = None,
        order::SPOIL => return spoil(),
        order::FAULT => read_null(),
        order::HOLD => {
            core::mem::forget(Mutex::open("lock")?.lock()?);
            read_null();
        }
        order::WRITE => write(number)?,
        order::SECRET => secret(number),
        order::MESS => messy_jobs(number),
        order::SEND => send(number)?,
        order::TRACE => trace(number),
        order::PEEK => return Ok(peek(number)),
        _ => return Err(Errno::Gone),
    }
    Ok([0; 3])
}

/// Checks the state of a fresh process, before it is spoiled.
fn spoil() -> Result<[u64; 3], Errno> {
    let page = allocate(2)?;
    let found = page.iter().fold(0, |sum, byte| sum + u64::from(*byte));
    let answer = [DATA.load(Relaxed), BSS.load(Relaxed), found];
    DATA.store(1, Relaxed);
    BSS.store(2, Relaxed);
    page.fill(0xee);
    debug_assert!(page.len() == 2 * PAGE);
    Ok(answer)
}

fn read_null() {
    // SAFETY: not safe, and meant not to be: it ends this process.
    unsafe { core::ptr::null::<u64>().read_volatile() };
}

fn write(jobs: u64) -> Result<(), Errno> {
    let segment = Segment::attach("state")?;
    // SAFETY: the description grants the segment to this writer and to readers; zero is a cell.
    let mut writer =
        unsafe { StateWriter::from_raw(segment.address().cast::<Cell>().cast_const()) };
    let period = Nanos::from_micros(100);
    let mut releases = thread::periodic(time::now() + period, period, period);
    for n in 1..=jobs {
        writer.write(Pair::of(n));
        releases.wait();
    }
    // Zeroed again when the last one detaches; the reader does so at once.
    Ok(())
}

fn secret(rounds: u64) {
    for _ in 0..rounds {
        let until = time::now() + Nanos::from_micros(30);
        let words = [SECRET; VECTOR_WORDS];
        vectors_across_call(&words, CallNumber::SleepUntil as u64, until.0);
    }
}

fn messy_jobs(jobs: u64) {
    let period = Nanos::from_micros(50);
    let mut releases = thread::periodic(time::now() + period, period, period);
    for n in 0..jobs {
        mess(SECRET ^ n);
        releases.wait();
    }
}

fn trace(rounds: u64) {
    for round in 0..rounds {
        Traces::leave(&round);
        time::sleep(Nanos::from_micros(30));
    }
}

/// Spins for two milliseconds, and is interrupted meanwhile.
fn peek(operand: u64) -> [u64; 3] {
    let (mut selectors, mut seen) = (0, 0);
    let end = time::now() + Nanos::from_millis(2);
    while time::now() < end {
        let traces = Traces::seen();
        selectors |= traces.selectors;
        seen += u64::from(u64::from(traces.x87[1]) == operand & 0xffff_ffff);
    }
    [selectors, seen, 0]
}

fn send(count: u64) -> Result<(), Errno> {
    let mailbox = Mailbox::open("box")?;
    for n in 0..count {
        mailbox.send(&[n as u8; 64], n as u32 % 3, Nanos::FOREVER)?;
    }
    Ok(())
}
