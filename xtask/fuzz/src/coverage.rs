//! The functions that the compiler's instrumentation calls: it counts branches, and says which
//! values were compared. A function whose name begins with `__sanitizer_` has no counters itself.

use diapason_fuzz::engine::Feedback;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Values of the latest comparisons; a power of two.
const NOTES: usize = 512;

static FIRST: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static COUNT: AtomicUsize = AtomicUsize::new(0);
static NOTED: AtomicUsize = AtomicUsize::new(0);
static LEFT: [AtomicU64; NOTES] = [const { AtomicU64::new(0) }; NOTES];
static RIGHT: [AtomicU64; NOTES] = [const { AtomicU64::new(0) }; NOTES];
static WIDTH: [AtomicU64; NOTES] = [const { AtomicU64::new(0) }; NOTES];

#[inline(always)]
fn note(left: u64, right: u64, width: u64) {
    let at = NOTED.load(Relaxed).wrapping_add(1);
    NOTED.store(at, Relaxed);
    LEFT[at % NOTES].store(left, Relaxed);
    RIGHT[at % NOTES].store(right, Relaxed);
    WIDTH[at % NOTES].store(width, Relaxed);
}

/// Takes the counters of the program: one for each branch, next to each other.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_8bit_counters_init(first: *mut u8, end: *mut u8) {
    FIRST.store(first, Relaxed);
    COUNT.store((end as usize).wrapping_sub(first as usize), Relaxed);
}

/// Takes the table of the branches' addresses, which nothing here needs.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_pcs_init(_: *const usize, _: *const usize) {}

macro_rules! compared {
    ($($name:ident $constant:ident $of:ty;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(left: $of, right: $of) {
            note(left.into(), right.into(), size_of::<$of>() as u64);
        }

        #[unsafe(no_mangle)]
        extern "C" fn $constant(left: $of, right: $of) {
            note(left.into(), right.into(), size_of::<$of>() as u64);
        }
    )*};
}

compared! {
    __sanitizer_cov_trace_cmp1 __sanitizer_cov_trace_const_cmp1 u8;
    __sanitizer_cov_trace_cmp2 __sanitizer_cov_trace_const_cmp2 u16;
    __sanitizer_cov_trace_cmp4 __sanitizer_cov_trace_const_cmp4 u32;
    __sanitizer_cov_trace_cmp8 __sanitizer_cov_trace_const_cmp8 u64;
}

/// Notes one case of a `match` beside the value.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_trace_switch(value: u64, cases: *const u64) {
    // SAFETY: the compiler passes a table: how many cases, how many bits, and the cases. The place
    // is below the number of cases, which is never zero.
    let (case, bits) = unsafe {
        let place = (NOTED.load(Relaxed) as u64) % (*cases | u64::from(*cases == 0));
        (*cases.wrapping_add(2 + place as usize), *cases.wrapping_add(1))
    };
    note(value, case, bits / 8);
}

/// The counters of this program.
#[derive(Default)]
pub struct BranchCounters {
    /// For each branch, the classes of counts that were reached.
    seen: Vec<u8>,
}

impl BranchCounters {
    fn all() -> &'static mut [u8] {
        let (first, count) = (FIRST.load(Relaxed), COUNT.load(Relaxed));
        if first.is_null() {
            return &mut [];
        }
        // SAFETY: the compiler's counters live as long as the program. Only its instrumentation
        // and this function know them, the program under attack has one thread, and no slice is
        // kept while it runs.
        unsafe { std::slice::from_raw_parts_mut(first, count) }
    }

    /// Returns how many branches the program has.
    pub fn branches() -> usize {
        Self::all().len()
    }
}

/// Adds the counts of a run to what was seen, and returns how many of them are new.
#[unsafe(no_mangle)]
fn __sanitizer_scan(run: &[u8], seen: &mut [u8]) -> usize {
    let mut news = 0;
    for (counts, seen) in run.chunks(8).zip(seen.chunks_mut(8)) {
        if counts.iter().all(|count| *count == 0) {
            continue;
        }
        for (count, seen) in counts.iter().zip(seen) {
            let class = class(*count) & !*seen;
            news += usize::from(class != 0);
            *seen |= class;
        }
    }
    news
}

/// Returns the class of a count as a bit.
#[inline(always)]
fn class(count: u8) -> u8 {
    match count {
        0 => 0,
        1 => 1,
        2 => 2,
        3 => 4,
        4..=7 => 8,
        8..=15 => 16,
        16..=31 => 32,
        32..=127 => 64,
        128.. => 128,
    }
}

impl Feedback for BranchCounters {
    fn begin(&mut self) {
        Self::all().fill(0);
    }

    fn news(&mut self) -> usize {
        let run = Self::all();
        self.seen.resize(run.len(), 0);
        __sanitizer_scan(run, &mut self.seen)
    }

    fn compared(&mut self) -> Vec<(u64, u64, usize)> {
        let all = LEFT.iter().zip(&RIGHT).zip(&WIDTH);
        let all = all.map(|((left, right), width)| {
            (left.load(Relaxed), right.load(Relaxed), width.load(Relaxed).clamp(1, 8) as usize)
        });
        all.filter(|(left, right, _)| left != right).collect()
    }

    fn forget(&mut self) {
        self.seen.clear();
    }
}
