//! Memory of the process's own.

use super::peer::all;
use crate::check;
use crate::why::{Outcome, Trial};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use diapason_abi::PAGE;
use diapason_rt::memory::{KernelCopy, Segment, allocate};
use diapason_state::CopyInOnePiece;

pub const TRIALS: &[(&str, Trial)] = &[
    ("new memory is zeroed and in one piece", zeroed),
    ("data and zeros are as the program says", data),
    ("attaching twice is attaching once", attach_twice),
    ("a copy in one piece copies", copy),
];

static DATA: AtomicU64 = AtomicU64::new(77);
static ZERO: [AtomicU64; 600] = [const { AtomicU64::new(0) }; 600];

fn zeroed() -> Outcome {
    let first = allocate(3)?;
    let second = allocate(6)?;
    check!(first.len() == 3 * PAGE && second.len() == 6 * PAGE);
    check!(first.iter().chain(second.iter()).all(|byte| *byte == 0));
    first.fill(1);
    second.fill(2);
    check!(first.iter().all(|byte| *byte == 1));
    Ok(())
}

fn data() -> Outcome {
    check!(DATA.load(Relaxed) == 77);
    check!(ZERO.iter().all(|word| word.load(Relaxed) == 0));
    Ok(())
}

fn attach_twice() -> Outcome {
    let one = Segment::attach("board")?;
    let address = one.address();
    let other = Segment::attach("board")?;
    check!(other.address() == address);
    // The first handle keeps the segment when the second one goes.
    drop(other);
    check!(all(&one, |_| 0));
    Ok(())
}

fn copy() -> Outcome {
    let from: [u8; 300] = core::array::from_fn(|n| n as u8);
    let mut to = [0; 300];
    // SAFETY: both arrays are that long.
    unsafe { KernelCopy.copy(to.as_mut_ptr(), from.as_ptr(), 299) };
    check!(to[..299] == from[..299] && to[299] == 0);
    Ok(())
}
