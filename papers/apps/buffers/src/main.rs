//! Counts what the driver of a TouCAN spends on a message, on registers that are plain memory:
//! `BUFFERS what length instructions accesses`.
//!
//! `dedicated` is a message with a buffer of its own. `queued` is the least urgent message behind
//! `length` others in the queue, and `refill` is the interrupt that brings the most urgent of
//! `length` into a buffer. `urgent` is a message that overwrites another, which goes back into the
//! queue of `length`. `renew` gives `length` high-speed messages that wait in buffers of their own
//! the identifiers of another epoch. `hear` takes a message of another node out of its buffer,
//! which is free for the next one then.

#![no_std]
#![no_main]

mod memory;

use core::hint::black_box;
use diapason_can::frame::standard;
use diapason_can::mts::Epochs;
use diapason_can::toucan::{BufferedOutbox, FrameSource, STREAMS, ToucanDriver};
use diapason_can::{BitRate, CanFrame, Filter, Id};
use diapason_contract::toucan::{SENDING, SHARED, SPARE};
use diapason_rt::{Arguments, Nanos, entry, heap, log};
use memory::Memory;

entry!(main);
// Parts of `diapason-can` that nothing here calls would allocate: no page of it is ever taken.
heap!(4 * 1024);

/// The longest queue that is measured.
const LONGEST: u8 = 32;
/// The rate of the bus.
const RATE: u32 = 1_000_000;
/// Streams with a buffer of their own.
const OWN: usize = SENDING - SHARED;
/// The buffer that hears, and the identifier.
const LAST: usize = SENDING - 1;
const HEARD: u32 = 0x50;
/// An epoch, and the reach of identifiers.
const EPOCH: Nanos = Nanos::from_millis(10);
/// The data of every message.
const DATA: [u8; 8] = [0xa5; 8];

/// The messages of all streams: the same eight bytes.
struct Same;

impl FrameSource for Same {
    fn frame(&self, _: u8, id: Id) -> Option<CanFrame> {
        CanFrame::data(id, &DATA).ok()
    }
}

/// A driver with messages in all shared buffers.
struct Bench<'a, const NOTED: bool> {
    memory: &'a Memory<NOTED>,
    module: ToucanDriver<&'a Memory<NOTED>>,
    outbox: BufferedOutbox,
}

/// A case whose cost is measured.
#[derive(Clone, Copy)]
enum Case {
    Dedicated,
    Queued,
    Urgent,
    Refill,
    Renew,
    Hear,
}

impl Case {
    const ALL: [(Case, &'static str); 6] = [
        (Case::Dedicated, "dedicated"),
        (Case::Queued, "queued"),
        (Case::Urgent, "urgent"),
        (Case::Refill, "refill"),
        (Case::Renew, "renew"),
        (Case::Hear, "hear"),
    ];
}

fn main(_: Arguments) {
    let (plain, noted) = (Memory::<false>::new(), Memory::<true>::new());
    let empty = (0..16).map(|_| timed(|| ())).min().unwrap_or(0);
    for (case, name) in Case::ALL {
        let longest = match case {
            Case::Renew => OWN as u8,
            Case::Hear => 0,
            _ => LONGEST,
        };
        for length in 0..=longest {
            let took = Bench::new(&plain, case, length).map(|mut bench| {
                bench.prepare(case, length);
                bench.measure(case, length)
            });
            let accesses = Bench::new(&noted, case, length).map(|mut bench| {
                bench.prepare(case, length);
                let before = noted.accesses();
                bench.measure(case, length);
                noted.accesses() - before
            });
            let (Some(took), Some(accesses)) = (took, accesses) else {
                return log!("no such controller");
            };
            log!("BUFFERS {name} {length} {} {accesses}", took.saturating_sub(empty));
        }
    }
    log!("DONE");
}

/// Returns the identifier of a stream: a later one is less urgent.
fn id(stream: u8) -> Option<Id> {
    standard(0x100 + u32::from(stream)).ok()
}

impl<'a, const NOTED: bool> Bench<'a, NOTED> {
    /// Returns a driver whose shared buffers are full, while so many messages wait in memory. If it
    /// hears a message, that has the buffer of one that it could send.
    fn new(memory: &'a Memory<NOTED>, case: Case, length: u8) -> Option<Bench<'a, NOTED>> {
        memory.clear();
        let own = if let Case::Hear = case { OWN - 1 } else { OWN };
        let rate = BitRate::new(RATE).ok()?;
        let module = ToucanDriver::start(memory, rate).ok()?;
        let outbox = BufferedOutbox::new(rate, own, SHARED, SPARE).ok()?;
        let mut bench = Bench { memory, module, outbox };
        // The first of those that share is left out: it is the most urgent one, and comes last.
        for stream in (OWN as u8 + 1..).take(SHARED + usize::from(length)) {
            bench.outbox.post(&bench.module, &Same, Nanos::ZERO, stream, id(stream)?).ok()?;
        }
        Some(bench)
    }

    /// Puts messages down that a case needs besides.
    fn prepare(&mut self, case: Case, messages: u8) {
        if let Case::Renew = case {
            for stream in 0..messages {
                self.post(stream);
            }
        }
        if let Case::Hear = case {
            let _ = self.outbox.listen(&self.module, Filter::only(false, HEARD));
            let frame = standard(HEARD).ok().and_then(|id| CanFrame::data(id, &DATA).ok());
            if let Some(frame) = frame {
                self.memory.heard(LAST, &frame);
            }
            self.outbox.attend(&self.module, &Same, Nanos::ZERO);
        }
    }

    /// Returns the instructions of a case, those of reading the counter included.
    fn measure(&mut self, case: Case, length: u8) -> u64 {
        match case {
            Case::Dedicated => self.post(0),
            Case::Queued => self.post(STREAMS as u8 - 1),
            Case::Urgent => self.post(OWN as u8),
            Case::Refill => self.refill(),
            Case::Renew => self.renew(length),
            Case::Hear => self.hear(),
        }
    }

    fn post(&mut self, stream: u8) -> u64 {
        let stream = black_box(stream);
        let Some(id) = id(stream) else { return 0 };
        let Bench { module, outbox, .. } = self;
        timed(|| {
            let _ = black_box(outbox.post(module, &Same, Nanos::ZERO, stream, id));
        })
    }

    /// Renews the identifiers of so many messages.
    fn renew(&mut self, messages: u8) -> u64 {
        let Ok(epochs) = Epochs::new(EPOCH, EPOCH) else { return 0 };
        let Bench { module, outbox, .. } = self;
        let (messages, epoch) = (black_box(messages), black_box(EPOCH));
        timed(|| {
            for stream in 0..messages {
                let id = epochs.id(stream.into(), epoch, epoch).ok();
                black_box(outbox.rename(module, stream, id));
            }
        })
    }

    /// Takes the message that came.
    fn hear(&mut self) -> u64 {
        let Bench { module, outbox, .. } = self;
        let buffer = black_box(LAST);
        let mut heard = None;
        let took = timed(|| heard = black_box(outbox.heard(module, buffer)));
        if heard.is_some() { took } else { 0 }
    }

    /// Looks at the controller after the most urgent message of the shared buffers is through.
    fn refill(&mut self) -> u64 {
        let Bench { memory, module, outbox } = self;
        memory.sent(OWN);
        timed(|| {
            outbox.attend(module, &Same, Nanos::ZERO);
            black_box(outbox.take_sent());
        })
    }
}

/// Returns the instructions of something, those of reading the counter included.
#[inline(always)]
fn timed(what: impl FnOnce()) -> u64 {
    let begin = stamp();
    what();
    stamp() - begin
}

/// Returns the counter of instructions, as QEMU's `-icount` has it.
#[inline(always)]
fn stamp() -> u64 {
    // SAFETY: reading the counter has no effect.
    unsafe { core::arch::x86_64::_rdtsc() }
}
