//! Reading, writing and executing every kind of memory there is.

use core::arch::asm;
use diapason_abi::layout;
use diapason_rt::log;
use diapason_rt::memory::{Registers, allocate};
use diapason_rt::start::window;

/// A kind of memory: its name, and an address in it.
type Region = (&'static str, fn() -> u64);

static mut DATA: [u8; 8] = [0xc3; 8];
static RODATA: [u8; 8] = [0xc3; 8];

const REGIONS: [Region; 22] = [
    ("null", || 0),
    ("kernel", || 0x10_0000),
    ("interrupt controller", || 0xfee0_0000),
    ("last of the kernel", || 0xffff_fff8),
    ("code of the neighbour", || layout::base(0)),
    ("stack of the neighbour", || layout::stack_top(0, 0) - 64),
    ("heap of the neighbour", || layout::base(0) + layout::HEAP),
    ("segment of the neighbour", || layout::segment(0, 0)),
    ("guard", || window() + layout::STACKS),
    ("heap it does not have", || window() + layout::HEAP + layout::SLOT - 8),
    ("segment it does not have", || window() + layout::SEGMENTS + layout::SLOT),
    ("device it does not have", || window() + layout::DEVICES + layout::SLOT),
    ("messages of its device", messages),
    ("last of its window", || window() + layout::WINDOW - 8),
    ("behind its window", || window() + layout::WINDOW),
    ("higher half", || 0xffff_8000_0000_0000),
    ("non-canonical", || 0x8000_0000_0000),
    ("code", window),
    ("constants", || &raw const RODATA as u64),
    ("data", || &raw const DATA as u64),
    ("pristine data", || &raw const DATA as u64 + layout::DATA_IMAGE),
    ("information page", || window() + layout::INFO),
];

/// Returns the page of the USB controller's registers, which it may map, that has the kernel's
/// table of messages.
fn messages() -> u64 {
    let _ = Registers::map("xhci");
    window() + layout::DEVICES + 0x3000
}

/// Regions that can only be tried in some ways without ending in chaos, by name.
const STACK: &str = "execute stack";
const HEAP: &str = "execute heap";

/// A way to use memory: its name, and the use of an address.
type Way = (&'static str, fn(u64));

const WAYS: [Way; 3] = [("read", read), ("write", write), ("execute", execute)];

/// Returns how many there are.
pub fn count() -> usize {
    REGIONS.len() * WAYS.len() + 2
}

/// Carries out deed number `n`.
pub fn perform(n: usize) {
    let Some((region, address)) = REGIONS.get(n / WAYS.len()) else {
        return if n.is_multiple_of(2) { execute_own(STACK) } else { execute_own(HEAP) };
    };
    let (way, act) = WAYS[n % WAYS.len()];
    // Its code is there to be executed.
    if (*region, way) == ("code", "execute") {
        return;
    }
    let address = address();
    log!("deed {way} {region}");
    act(address);
    log!("survived {way} {region}");
}

fn execute_own(name: &str) {
    let stack = [0xc3_u8; 8];
    let heap = allocate(1).unwrap_or_default();
    heap.fill(0xc3);
    log!("deed {name}");
    let place = if name == STACK { stack.as_ptr() } else { heap.as_ptr() };
    execute(core::hint::black_box(place) as u64);
    log!("survived {name}");
}

fn read(address: u64) {
    // SAFETY: not safe, and meant not to be.
    unsafe { asm!("mov {t}, [{a}]", a = in(reg) address, t = out(reg) _) }
}

fn write(address: u64) {
    // SAFETY: not safe, and meant not to be.
    unsafe { asm!("mov byte ptr [{a}], 0", a = in(reg) address) }
}

/// Calls it: everything executable here would just return.
fn execute(address: u64) {
    // SAFETY: not safe, and meant not to be.
    unsafe { asm!("call {a}", a = in(reg) address, clobber_abi("C")) }
}
