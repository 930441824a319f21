//! Checks the frames of the USB server's camera where the controller put them, every word.
//!
//! Once a second it says `CAMERA frames broken missing`: whole frames, those that were not, and
//! numbers that were skipped. Arguments: after how many seconds it ends with a verdict (0: never).

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_usblib::camera::{END, FramePiece, Inlet, RECORDS, WHOLE, inlet};

entry!(main);

/// Time between two reports.
const REPORT: Nanos = Nanos::from_secs(1);

/// The pictures so far.
#[derive(Default)]
struct Tally {
    frames: u64,
    broken: u64,
    missing: u64,
    /// Words that were not what they should be.
    wrong: u64,
    /// The frame under way: its number, and bytes so far.
    number: u32,
    bytes: u32,
    next: Option<u32>,
}

fn main(Arguments([seconds, ..]): Arguments) {
    if let Err(errno) = read(seconds) {
        log!("camera: not read: {errno:?}");
    }
}

fn read(seconds: u64) -> Result<(), Errno> {
    let mut inlet = inlet()?;
    let mut tally = Tally::default();
    let (mut report_at, mut reports) = (time::now() + REPORT, 0);
    while seconds == 0 || reports < seconds {
        match inlet.ready.take(report_at) {
            Ok(()) => drain(&mut inlet, &mut tally),
            Err(Errno::TimedOut) => {
                log!("CAMERA {} {} {}", tally.frames, tally.broken, tally.missing);
                report_at += REPORT;
                reports += 1;
            }
            Err(errno) => return Err(errno),
        }
    }
    let Tally { frames, broken, missing, wrong, .. } = tally;
    let lost = inlet.pieces.lost();
    let fine = frames > 0 && broken + missing + wrong + lost == 0;
    let verdict = if fine { "WHOLE" } else { "NOT WHOLE" };
    log!("CAMERA {verdict} {frames} frames, {wrong} words wrong, {lost} pieces lost");
    Ok(())
}

fn drain(inlet: &mut Inlet, tally: &mut Tally) {
    for _ in 0..RECORDS {
        let Some(piece) = inlet.pieces.pop() else { return };
        if piece.bytes > 0 {
            look(inlet, &piece, tally);
            inlet.give_back(&piece);
        }
        if piece.flags & END != 0 {
            end(&piece, tally);
        }
    }
}

/// Each eight bytes of a frame are its number and their place in it.
fn look(inlet: &Inlet, piece: &FramePiece, tally: &mut Tally) {
    let start = piece.place as usize * diapason_usblib::camera::PLACE + piece.from as usize;
    let data = &inlet.data;
    // A camera that lies about the lengths of its headers sends parts of words.
    if !(start as u32 | piece.bytes).is_multiple_of(4) {
        tally.wrong += 1;
        tally.bytes += piece.bytes;
        return;
    }
    if tally.bytes == 0 {
        tally.number = data.read32(start);
    }
    for offset in (0..piece.bytes).step_by(4) {
        let at = tally.bytes + offset;
        let expected = if at.is_multiple_of(8) { tally.number } else { at / 8 };
        tally.wrong += u64::from(data.read32(start + offset as usize) != expected);
    }
    tally.bytes += piece.bytes;
}

fn end(piece: &FramePiece, tally: &mut Tally) {
    if piece.flags & WHOLE == 0 || piece.frame != tally.bytes {
        tally.broken += 1;
    } else {
        tally.frames += 1;
        tally.missing += u64::from(tally.next.map_or(0, |next| tally.number.wrapping_sub(next)));
        tally.next = Some(tally.number.wrapping_add(1));
    }
    tally.bytes = 0;
}
