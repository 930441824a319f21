//! Reads the `[[pipe]]` from a camera and checks every word of its pictures.
//!
//! The library measures and reports how the pipe does. Arguments: after how many seconds it ends
//! with a verdict (0: never), and the time in us that it takes for each piece besides the check.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod reading;

use diapason_rt::{Arguments, Errno, Nanos, entry, log};
use diapason_usblib::Pictures;
use diapason_usblib::camera::{END, FramePiece, WHOLE};

entry!(main);

/// The pictures so far.
#[derive(Default)]
struct Tally {
    pictures: u64,
    broken: u64,
    missing: u64,
    /// Words that were not what they should be.
    wrong: u64,
    /// The picture under way: its number, and bytes so far.
    number: u32,
    bytes: u32,
    next: Option<u32>,
}

fn main(Arguments([seconds, busy, ..]): Arguments) {
    if let Err(errno) = read(seconds, Nanos::from_micros(busy)) {
        log!("camera: not read: {errno:?}");
    }
}

fn read(seconds: u64, busy: Nanos) -> Result<(), Errno> {
    let mut pipe = Pictures::open()?;
    let mut tally = Tally::default();
    reading::read_for(&mut pipe, seconds, busy, |pipe, piece| take(pipe, piece, &mut tally))?;
    let Tally { pictures, broken, missing, wrong, .. } = tally;
    let fine = pictures > 0 && broken + missing + wrong + pipe.lost() == 0;
    let verdict = if fine { "WHOLE" } else { "NOT WHOLE" };
    log!("PICTURES {verdict} {pictures} pictures, {wrong} words wrong");
    Ok(())
}

/// Checks a piece, and returns how many pictures are missing before the one that ends with it.
fn take(pipe: &Pictures, piece: &FramePiece, tally: &mut Tally) -> u64 {
    look(pipe, piece, tally);
    let whole = piece.flags & WHOLE != 0 && piece.frame == tally.bytes;
    let mut missing = 0;
    match (piece.flags & END != 0, whole) {
        (false, _) => return 0,
        (true, false) => tally.broken += 1,
        (true, true) => {
            // A camera that is plugged in again begins anew.
            let next = tally.next.filter(|next| tally.number >= *next);
            missing = next.map_or(0, |next| u64::from(tally.number - next));
            tally.pictures += 1;
            tally.missing += missing;
            tally.next = Some(tally.number.wrapping_add(1));
        }
    }
    tally.bytes = 0;
    missing
}

/// Each eight bytes of a picture are its number and their place in it.
fn look(pipe: &Pictures, piece: &FramePiece, tally: &mut Tally) {
    // A camera that lies about the lengths of its heads sends parts of words.
    if !(piece.from | piece.bytes).is_multiple_of(4) {
        tally.wrong += 1;
    } else if piece.bytes > 0 {
        if tally.bytes == 0 {
            tally.number = pipe.word(piece, 0);
        }
        for offset in (0..piece.bytes).step_by(4) {
            let at = tally.bytes + offset;
            let expected = if at.is_multiple_of(8) { tally.number } else { at / 8 };
            tally.wrong += u64::from(pipe.word(piece, offset) != expected);
        }
    }
    tally.bytes += piece.bytes;
}
