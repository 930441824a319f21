//! From payloads to frames.
//!
//! A payload begins with a head that says to which of two alternating frames it belongs and whether
//! it is the last of it. Payloads carry no numbers: what is lost shows by an interval without data
//! that arrived whole, by a frame that is too short, or not at all.

/// Bits of the head.
const FRAME_ID: u8 = 1;
const END: u8 = 1 << 1;
const PRESENTATION: u8 = 1 << 2;
const ERROR: u8 = 1 << 6;
/// Shortest and longest head.
const HEAD: (usize, usize) = (2, 12);
/// The place of a picture's time in a head.
const TIME: usize = 2;

/// A piece of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece<'a> {
    /// Bytes of it, in order.
    Data(&'a [u8]),
    /// Bytes of it in shared memory: they are the client's until it lends the place again.
    Place {
        place: u32,
        /// The first of them in it.
        from: u32,
        bytes: u32,
    },
    End {
        /// Bytes of the frame that were reported.
        bytes: u32,
        /// Nothing of it is known to be missing.
        whole: bool,
        /// When the camera made it, in ticks of its clock, if it said so.
        time: Option<u32>,
    },
}

/// Counts of pictures and pieces so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PictureCounts {
    pub whole: u64,
    /// Frames of which something is missing or wrong.
    pub broken: u64,
    /// Intervals whose data did not arrive.
    pub missed: u64,
    /// Payloads without a head that makes sense.
    pub malformed: u64,
    /// Payloads after the end of their frame.
    pub stray: u64,
}

/// The frame that is being received.
#[derive(Clone, Copy, Debug)]
struct Open {
    bytes: u32,
    good: bool,
    /// The time that its first payload says.
    time: Option<u32>,
}

/// Returns the time of a picture that a head says.
fn time(head: &[u8]) -> Option<u32> {
    let said = head.get(1).is_some_and(|flags| flags & PRESENTATION != 0);
    let is_there = head.first().is_some_and(|length| usize::from(*length) >= TIME + 4);
    let bytes = head.get(TIME..)?.first_chunk().filter(|_| said && is_there)?;
    Some(u32::from_le_bytes(*bytes))
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Assembler {
    most: u32,
    /// Every whole frame has `most` bytes.
    exact: bool,
    id: Option<u8>,
    open: Option<Open>,
    counts: PictureCounts,
}

impl Assembler {
    pub(super) fn new(most: u32, exact: bool) -> Assembler {
        Assembler { most, exact, id: None, open: None, counts: PictureCounts::default() }
    }

    pub(super) const fn counts(&self) -> PictureCounts {
        self.counts
    }

    /// Notes that the data of an interval did not arrive.
    pub(super) fn miss(&mut self) {
        self.counts.missed += 1;
        self.spoil();
    }

    fn spoil(&mut self) {
        if let Some(open) = &mut self.open {
            open.good = false;
        }
    }

    /// Takes the payload of an interval.
    pub(super) fn take(&mut self, payload: &[u8], tell: &mut dyn FnMut(Piece<'_>)) {
        let data =
            |from: usize, count: usize| Piece::Data(payload.get(from..from + count).unwrap_or(&[]));
        self.judge(payload, payload.len(), &data, tell);
    }

    /// Takes the payload of an interval from shared memory: `length` bytes with this head. True if
    /// some of it was told: the place is the client's then.
    pub(super) fn take_shared(
        &mut self,
        place: u32,
        (head, length): (&[u8], usize),
        tell: &mut dyn FnMut(Piece<'_>),
    ) -> bool {
        let data = |from: usize, count: usize| Piece::Place {
            place,
            from: from as u32,
            bytes: count as u32,
        };
        self.judge(head, length, &data, tell)
    }

    /// A payload of `length` bytes that begins with `head`: what of it belongs to a frame is told
    /// as `data` says it. True if that is anything.
    fn judge<'a>(
        &mut self,
        head: &[u8],
        length: usize,
        data: &dyn Fn(usize, usize) -> Piece<'a>,
        tell: &mut dyn FnMut(Piece<'_>),
    ) -> bool {
        let (Some(&from), Some(&flags)) = (head.first(), head.get(1)) else {
            // An interval in which the camera had nothing to say, or half a head.
            if length > 0 {
                self.counts.malformed += 1;
                self.spoil();
            }
            return false;
        };
        let from = usize::from(from);
        let count = length.checked_sub(from).filter(|_| (HEAD.0..=HEAD.1).contains(&from));
        let Some(count) = count else {
            self.counts.malformed += 1;
            self.spoil();
            return false;
        };
        let id = flags & FRAME_ID;
        if self.id != Some(id) {
            self.end(tell);
            self.id = Some(id);
            self.open = Some(Open { bytes: 0, good: true, time: time(head) });
        }
        let Some(open) = &mut self.open else {
            self.counts.stray += u64::from(count > 0);
            return false;
        };
        let fits = count.min(self.most.saturating_sub(open.bytes) as usize);
        open.good &= flags & ERROR == 0 && fits == count;
        open.bytes += fits as u32;
        if fits > 0 {
            tell(data(from, fits));
        }
        if flags & END != 0 {
            self.end(tell);
        }
        fits > 0
    }

    fn end(&mut self, tell: &mut dyn FnMut(Piece<'_>)) {
        let Some(Open { bytes, good, time }) = self.open.take() else { return };
        let whole = good && bytes > 0 && (!self.exact || bytes == self.most);
        let count = if whole { &mut self.counts.whole } else { &mut self.counts.broken };
        *count += 1;
        tell(Piece::End { bytes, whole, time });
    }
}
