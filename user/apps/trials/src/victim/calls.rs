//! Calls with wild numbers, handles, pointers, keys and arguments.

use crate::{Deed, perform as perform_deed};
use diapason_abi::call::{Counter, unmapped};
use diapason_abi::{CallNumber, Handle, Key, Kind, layout};
use diapason_rt::mailbox::Mailbox;
use diapason_rt::memory::allocate;
use diapason_rt::start::window;
use diapason_rt::sync::{Condition, Mutex};
use diapason_rt::sys::any_call;
use diapason_rt::{Nanos, log, thread, time};

/// Calls whose first word is a handle, with the kind it should be of.
const WITH_HANDLE: [(CallNumber, Kind); 16] = [
    (CallNumber::ThreadJoin, Kind::Thread),
    (CallNumber::ThreadDetach, Kind::Thread),
    (CallNumber::SemDelete, Kind::Semaphore),
    (CallNumber::SemLock, Kind::Semaphore),
    (CallNumber::SemTryLock, Kind::Semaphore),
    (CallNumber::SemUnlock, Kind::Semaphore),
    (CallNumber::CvDelete, Kind::Condition),
    (CallNumber::CvWait, Kind::Condition),
    (CallNumber::CvSignal, Kind::Condition),
    (CallNumber::MboxDelete, Kind::Mailbox),
    (CallNumber::MboxSend, Kind::Mailbox),
    (CallNumber::MboxReceive, Kind::Mailbox),
    (CallNumber::MboxCall, Kind::Mailbox),
    (CallNumber::TimerStart, Kind::Event),
    (CallNumber::EventWait, Kind::Event),
    (CallNumber::EventDelete, Kind::Event),
];

/// A handle nobody gave out: its name, and how it is made for a kind.
type WildHandle = (&'static str, fn(Kind) -> u64);

const HANDLES: [WildHandle; 5] = [
    ("zero", |_| 0),
    ("all ones", |_| u64::MAX),
    ("of another kind", |kind| match kind {
        Kind::Semaphore => Condition::private().map_or(0, |_| Handle::new(Kind::Event, 1, 1).0),
        _ => own_semaphore(),
    }),
    ("of the neighbour", |kind| Handle::new(kind, 0, 1).0),
    ("of the future", |kind| Handle::new(kind, 1, 1 << 30).0),
];

fn own_semaphore() -> u64 {
    call(CallNumber::SemCreate, [0, 1, 0, 0, 0])
}

/// A pointer a call must not follow: its name, and how it is made.
type WildPointer = (&'static str, fn() -> u64);

const POINTERS: [WildPointer; 10] = [
    ("null", || 0),
    ("kernel", || 0x10_0000),
    ("neighbour", || layout::stack_top(0, 0) - 64),
    ("higher half", || 0xffff_8000_0000_0000),
    ("non-canonical", || 0x8000_0000_0000),
    ("guard", || window() + layout::STACKS),
    ("end of the heap", || allocate(1).map_or(0, |page| page.as_ptr() as u64 + 4092)),
    ("registers of its device", || {
        let device = call(CallNumber::MapDevice, [Key::new("xhci").0, 0, 0, 0, 0]);
        unmapped(device).0
    }),
    ("information page", || window() + layout::INFO),
    ("end of the window", || window() + layout::WINDOW - 4),
];

/// A call that takes a pointer: its name, and the call with one.
type PointerCall = (&'static str, fn(u64));

const WITH_POINTER: [PointerCall; 6] = [
    ("MboxSend", |pointer| {
        call(CallNumber::MboxSend, [mailbox(), pointer, 8, 0, 0]);
    }),
    ("MboxReceive", |pointer| {
        call(CallNumber::MboxReceive, [mailbox(), pointer, 0, 0, 0]);
    }),
    ("delivery", receive_later),
    ("ReadSlow to", |pointer| {
        call(CallNumber::ReadSlow, [pointer, window(), 8, 0, 0]);
    }),
    ("ReadSlow from", |pointer| {
        let mut word = 0_u64;
        call(CallNumber::ReadSlow, [&raw mut word as u64, pointer, 8, 0, 0]);
    }),
    ("Log", |pointer| {
        call(CallNumber::Log, [pointer, 8, 0, 0, 0]);
    }),
];

/// Calls that take a key, by the kind of object they should name.
const WITH_KEY: [CallNumber; 10] = [
    CallNumber::SemCreate,
    CallNumber::CvCreate,
    CallNumber::MboxCreate,
    CallNumber::ShmAttach,
    CallNumber::ShmDetach,
    CallNumber::ShmBus,
    CallNumber::MapDevice,
    CallNumber::SetIsr,
    CallNumber::ProcCreate,
    CallNumber::ProcKill,
];

/// Names it is not granted: one that exists in every kind, and one that does not exist.
const KEYS: [(&str, &str); 7] = [
    ("unknown name", "nothing has this name"),
    ("lock of the neighbour", "its-lock"),
    ("condition of the neighbour", "its-news"),
    ("mailbox of the neighbour", "its-box"),
    ("segment of the neighbour", "its-memory"),
    ("device of the neighbour", "its-device"),
    ("the neighbour", "neighbour"),
];

const OTHERS: [Deed; 17] = [
    ("counter of the machine", || words(CallNumber::Count, Counter::Cr3 as u64)),
    ("call beyond the last", || number(CallNumber::ALL.len() as u64)),
    ("call of all ones", || number(u64::MAX)),
    ("call beyond a byte", || number(256)),
    ("argument ThreadCreate above its ceiling", || create_thread(11)),
    ("argument ThreadCreate above all", || create_thread(u64::MAX)),
    ("argument MemAlloc none", || words(CallNumber::MemAlloc, 0)),
    ("argument MemAlloc many", || words(CallNumber::MemAlloc, 5)),
    ("argument JobsStart without period", || words(CallNumber::JobsStart, 0)),
    ("argument JobWait before JobsStart", || words(CallNumber::JobWait, 0)),
    ("argument Log long", || {
        call(CallNumber::Log, [window(), 113, 0, 0, 0]);
    }),
    ("argument MboxSend long", || {
        call(CallNumber::MboxSend, [mailbox(), window(), 65, 0, 0]);
    }),
    ("argument ReadSlow long", || {
        call(CallNumber::ReadSlow, [window(), window(), 4097, 0, 0]);
    }),
    ("handle CvWait, its mutex", || {
        let condition = call(CallNumber::CvCreate, [0; 5]);
        call(CallNumber::CvWait, [condition, u64::MAX, u64::MAX, 0, 0]);
    }),
    ("handle MboxCreate, its event", || {
        call(CallNumber::MboxCreate, [Key::new("drop").0, u64::MAX, 0, 0, 0]);
    }),
    ("quota", || while allocate(1).is_ok() {}),
    ("panic", || panic!("on purpose")),
];

const PRODUCTS: [usize; 3] = [
    WITH_HANDLE.len() * HANDLES.len(),
    WITH_POINTER.len() * POINTERS.len(),
    WITH_KEY.len() * KEYS.len(),
];

/// Returns how many there are.
pub fn count() -> usize {
    PRODUCTS.iter().sum::<usize>() + OTHERS.len()
}

/// Carries out deed number `n`.
pub fn perform(mut n: usize) {
    for (product, perform) in PRODUCTS.iter().zip([wild_handle, wild_pointer, wild_key]) {
        if n < *product {
            return perform(n);
        }
        n -= product;
    }
    perform_deed(&OTHERS[n]);
}

fn wild_handle(n: usize) {
    let ((number, kind), (name, make)) =
        (WITH_HANDLE[n / HANDLES.len()], HANDLES[n % HANDLES.len()]);
    let handle = make(kind);
    let word = [0_u64; 8];
    log!("deed handle {}, {name}", number.name());
    call(number, [handle, word.as_ptr() as u64, 8, 0, 0]);
    log!("survived handle {}, {name}", number.name());
}

fn wild_pointer(n: usize) {
    let ((number, act), (name, make)) =
        (WITH_POINTER[n / POINTERS.len()], POINTERS[n % POINTERS.len()]);
    let pointer = make();
    // Something to receive, and room to send: the declared mailbox outlives its users.
    call(CallNumber::MboxSend, [mailbox(), window(), 8, 0, 0]);
    log!("deed pointer {number}, {name}");
    act(pointer);
    log!("survived pointer {number}, {name}");
}

fn wild_key(n: usize) {
    let (number, (name, text)) = (WITH_KEY[n / KEYS.len()], KEYS[n % KEYS.len()]);
    log!("deed key {}, {name}", number.name());
    call(number, [Key::new(text).0, 0, 0, 0, 0]);
    log!("survived key {}, {name}", number.name());
}

/// Waits for a message with a bad place for it, until another thread sends one.
fn receive_later(pointer: u64) {
    let mut word = [0_u8; 64];
    if let Ok(own) = Mailbox::open("drop") {
        while own.receive_into(&mut word, Nanos::ZERO).is_ok() {}
    }
    let _sender = thread::spawn::<Sender>("sender", 1, 0);
    call(CallNumber::MboxReceive, [mailbox(), pointer, u64::MAX, 0, 0]);
}

diapason_rt::body!(Sender = send_later);
fn send_later(_: u64) -> u64 {
    time::sleep(Nanos::from_micros(20));
    Mailbox::open("drop").and_then(|own| own.send(&[1; 8], 0, Nanos::ZERO)).is_ok().into()
}

fn mailbox() -> u64 {
    call(CallNumber::MboxCreate, [Key::new("drop").0, 0, 0, 0, 0])
}

fn create_thread(priority: u64) {
    let _held = Mutex::private();
    call(CallNumber::ThreadCreate, [window(), 0, priority, 0, 0]);
}

fn words(number: CallNumber, word: u64) {
    call(number, [word, 0, 0, 0, 0]);
}

fn call(number: CallNumber, words: [u64; 5]) -> u64 {
    number_with(number as u64, words)
}

fn number(number: u64) {
    number_with(number, [0; 5]);
}

fn number_with(number: u64, words: [u64; 5]) -> u64 {
    // SAFETY: not safe, and meant not to be: the kernel has to refuse what is wrong with them.
    unsafe { any_call(number, words) }
}
