//! How many objects the process can still create: nothing a trial used may stay used.

use diapason_abi::{CallNumber, decode_result};
use diapason_rt::sys::any_call;
use diapason_rt::thread::{self, Body};
use diapason_rt::{Nanos, time};

/// Most of a kind that are counted.
const MOST: usize = 24;

/// Free slots of each kind.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Census {
    threads: usize,
    semaphores: usize,
    conditions: usize,
    events: usize,
}

struct Nothing;
impl Body for Nothing {
    fn run(_: u64) -> u64 {
        0
    }
}

impl Census {
    /// Creates all there can be, counts, and deletes them.
    pub fn take() -> Census {
        use CallNumber as C;
        Census {
            threads: threads(),
            semaphores: objects(C::SemCreate, C::SemDelete),
            conditions: objects(C::CvCreate, C::CvDelete),
            events: objects(C::EventCreate, C::EventDelete),
        }
    }
}

fn threads() -> usize {
    // A detached thread may need a moment to end.
    time::sleep(Nanos::from_micros(100));
    let mut handles = [const { None }; MOST];
    let mut count = 0;
    for handle in &mut handles {
        *handle = thread::spawn::<Nothing>("nothing", 1, 0).ok();
        count += usize::from(handle.is_some());
    }
    for handle in handles.into_iter().flatten() {
        let _ = handle.join(Nanos::FOREVER);
    }
    count
}

fn objects(create: CallNumber, delete: CallNumber) -> usize {
    let mut handles = [0; MOST];
    let mut count = 0;
    for handle in &mut handles {
        // SAFETY: these calls take a key and a count, no address.
        if let Ok(created) = decode_result(unsafe { any_call(create as u64, [0, 1, 0, 0, 0]) }) {
            *handle = created;
            count += 1;
        }
    }
    for handle in handles.into_iter().filter(|handle| *handle != 0) {
        // SAFETY: deletes what was just created.
        unsafe { any_call(delete as u64, [handle, 0, 0, 0, 0]) };
    }
    count
}
