//! A PCI device: the registers, the memory and the interrupts of the machine's USB controller.

use crate::why::{Outcome, Trial};
use crate::{check, refused};
use diapason_rt::event::Event;
use diapason_rt::memory::{DmaSegment, Registers};
use diapason_rt::{Nanos, time};
use diapason_trials::controller::{DEVICE, ENTRIES, ENTRY, EVENTS, INTERRUPTS, RINGS, XhciParts};

pub const TRIALS: &[(&str, Trial)] = &[
    ("a PCI device has its registers, and no more", registers),
    ("a device that the machine lacks is absent", absent),
    ("memory for devices is zeroed and below 4 GiB", memory),
    ("commands are answered by an interrupt each", commands),
    ("each message wakes its own thread", messages),
];

/// A device whose class no part of the machine has.
const LACKING: &str = "nowhere";
/// The size of its registers in the description.
const BYTES: usize = 16 << 10;

/// Capability registers: version, and how many there are of its parts.
const VERSION: usize = 0x00;
const STRUCTURE: usize = 0x04;

/// Kinds of entries, in bits 10 to 15 of the last word; the lowest says whose turn it is.
const COMPLETION: u32 = 33 << 10;
const KIND: u32 = 0x3f << 10;
const SUCCESS: u32 = 1;

const SOON: Nanos = Nanos::from_millis(1);

/// Event number `count` of the first interrupter must answer the command at `command`.
fn answers(controller: &XhciParts, count: usize, command: u64) -> Outcome {
    let at = EVENTS + count % ENTRIES * ENTRY;
    let turn = if (count / ENTRIES).is_multiple_of(2) { 1 } else { 0 };
    let word = |index: usize| controller.rings.read32(at + 4 * index);
    check!(word(3) & (KIND | 1) == COMPLETION | turn);
    check!(u64::from(word(0)) == command && word(1) == 0);
    check!(word(2) >> 24 == SUCCESS);
    controller.seen(0, EVENTS + (count + 1) % ENTRIES * ENTRY);
    Ok(())
}

fn registers() -> Outcome {
    let all = Registers::map(DEVICE)?;
    check!(all.bytes() == BYTES);
    let (version, structure) = (all.read32(VERSION), all.read32(STRUCTURE));
    check!((0x90..=0x120).contains(&(version >> 16)));
    check!(structure & 0xff > 0 && structure >> 24 > 0);
    check!(structure >> 8 & 0x7ff >= 2);
    check!(all.part(BYTES - 4, 4).is_some());
    check!(all.part(BYTES - 4, 5).is_none() && all.part(usize::MAX, 2).is_none());
    Ok(())
}

fn absent() -> Outcome {
    refused!(Registers::map(LACKING), Absent);
    refused!(Event::interrupt(LACKING), Absent);
    refused!(Event::message(LACKING, 0), Absent);
    refused!(Event::interrupt(DEVICE), Busy);
    Ok(())
}

fn memory() -> Outcome {
    for _ in 0..2 {
        let rings = DmaSegment::attach(RINGS)?;
        check!(rings.bytes() == 64 << 10);
        check!(rings.bus_address(0).is_multiple_of(4096));
        let last = rings.bytes() - 1;
        check!(rings.bus_address(last) == rings.bus_address(0) + last as u64);
        check!(rings.bus_address(last) < 1 << 32);
        check!((0..rings.bytes()).step_by(4).all(|offset| rings.read32(offset) == 0));
        rings.write32(last - 3, 0x0403_0201);
        check!(rings.read8(last) == 4);
        rings.write8(last, 5);
        check!(rings.read32(last - 3) == 0x0503_0201);
    }
    Ok(())
}

fn commands() -> Outcome {
    let answered = Event::message(DEVICE, 0)?;
    refused!(Event::message(DEVICE, 0), Busy);
    let mut controller = XhciParts::start(INTERRUPTS)?;
    // Around both rings more than once.
    for count in 0..40 {
        let command = controller.no_op();
        check!(answered.wait(time::now() + SOON)? == 1);
        answers(&controller, count, command)?;
    }
    refused!(answered.wait(Nanos::ZERO), WouldBlock);
    Ok(())
}

/// All commands are answered by interrupter 0. The other one interrupts when its ring is said to
/// have been read up to a place that is not its end.
fn messages() -> Outcome {
    let (first, second) = (Event::message(DEVICE, 0)?, Event::message(DEVICE, 1)?);
    let mut controller = XhciParts::start(INTERRUPTS)?;
    controller.seen(1, EVENTS + 0x1000 + ENTRY);
    check!(second.wait(time::now() + SOON)? == 1);
    refused!(first.wait(Nanos::ZERO), WouldBlock);
    let command = controller.no_op();
    check!(first.wait(time::now() + SOON)? == 1);
    answers(&controller, 0, command)?;
    refused!(second.wait(Nanos::ZERO), WouldBlock);
    // Nobody waits for it: it is held back, and comes when somebody does.
    drop(first);
    let command = controller.no_op();
    let first = Event::message(DEVICE, 0)?;
    check!(first.wait(time::now() + SOON)? == 1);
    answers(&controller, 1, command)
}
