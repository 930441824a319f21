//! Between processes: segments, mailboxes, a mutex whose owner dies, a restart.

use crate::check;
use crate::why::{Outcome, Trial, Why};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use diapason_rt::mailbox::Mailbox;
use diapason_rt::memory::Segment;
use diapason_rt::sync::Mutex;
use diapason_rt::{Nanos, time};
use diapason_trials::order;

pub const TRIALS: &[(&str, Trial)] = &[
    ("a segment shows what the peer writes", segment_is_shared),
    ("the last to detach frees a segment", segment_is_freed),
    ("a peer that ends lets go of its segment", segment_of_a_dead_peer),
    ("messages come whole and in order", messages),
    ("a mutex survives the process of its owner", owner_process_died),
    ("a restarted process begins afresh", restart),
];

/// Orders the assistant to do something; it has not answered yet.
pub fn begin(what: u64, number: u64) -> Outcome {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&what.to_le_bytes());
    bytes[8..].copy_from_slice(&number.to_le_bytes());
    Ok(Mailbox::open("orders")?.send(&bytes, 0, Nanos::FOREVER)?)
}

/// Returns the assistant's answer to an order. Answers to orders of failed trials are skipped.
pub fn answer(what: u64) -> Result<[u64; 3], Why> {
    let answers = Mailbox::open("answers")?;
    let deadline = time::now() + Nanos::from_millis(200);
    loop {
        let message = answers.receive(deadline)?;
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(message.bytes().chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        }
        let [to, answer @ ..] = words;
        if to == what {
            return Ok(answer);
        }
    }
}

/// Orders it, and waits until it is done.
pub fn demand(what: u64, number: u64) -> Result<[u64; 3], Why> {
    begin(what, number)?;
    answer(what)
}

fn words(segment: &Segment) -> &[AtomicU64] {
    // SAFETY: 16 KiB of words that both processes treat as atomic.
    unsafe { core::slice::from_raw_parts(segment.address().cast::<AtomicU64>(), 2048) }
}

/// Returns whether each word of a segment has the number that belongs to its place.
pub(super) fn all(segment: &Segment, expected: fn(u64) -> u64) -> bool {
    words(segment).iter().enumerate().all(|(n, word)| word.load(Relaxed) == expected(n as u64))
}

fn segment_is_shared() -> Outcome {
    let board = Segment::attach("board")?;
    check!(all(&board, |_| 0));
    demand(order::FILL, 0x1234)?;
    check!(all(&board, |n| n ^ 0x1234));
    demand(order::LEAVE, 0)?;
    check!(all(&board, |n| n ^ 0x1234));
    Ok(())
}

fn segment_is_freed() -> Outcome {
    demand(order::FILL, 7)?;
    let board = Segment::attach("board")?;
    check!(all(&board, |n| n ^ 7));
    drop(board);
    demand(order::LEAVE, 0)?;
    check!(all(&Segment::attach("board")?, |_| 0));
    Ok(())
}

fn segment_of_a_dead_peer() -> Outcome {
    demand(order::FILL, 7)?;
    begin(order::FAULT, 0)?;
    time::sleep(Nanos::from_millis(20));
    check!(all(&Segment::attach("board")?, |_| 0));
    Ok(())
}

fn messages() -> Outcome {
    let mailbox = Mailbox::open("box")?;
    begin(order::SEND, 12)?;
    let mut seen = [false; 12];
    for _ in 0..12 {
        let message = mailbox.receive(time::now() + Nanos::from_millis(10))?;
        let n = message.bytes().first().copied().unwrap_or(99);
        check!(message.bytes() == [n; 64]);
        check!(message.priority == u32::from(n) % 3);
        check!(!seen[n as usize % 12]);
        seen[n as usize % 12] = true;
    }
    answer(order::SEND)?;
    Ok(())
}

fn owner_process_died() -> Outcome {
    let lock = Mutex::open("lock")?;
    begin(order::HOLD, 0)?;
    time::sleep(Nanos::from_millis(30));
    let guard = lock.lock_until(time::now() + Nanos::from_millis(10))?;
    check!(guard.owner_died);
    drop(guard);
    check!(!lock.lock()?.owner_died);
    Ok(())
}

fn restart() -> Outcome {
    for _ in 0..3 {
        check!(demand(order::SPOIL, 0)? == [0xda7a, 0, 0]);
        check!(demand(order::SPOIL, 0)? == [1, 2, 0]);
        begin(order::FAULT, 0)?;
    }
    check!(demand(order::SPOIL, 0)? == [0xda7a, 0, 0]);
    begin(order::FAULT, 0)
}
