//! The registers and the rings of an adapter, as the kernel grants them to its driver, and its
//! start.

use diapason_abi::{Errno, Nanos};
use diapason_ether::adapter::{self, AdapterRegisters, FrameReceiver, FrameSender, RingMemory};
use diapason_rt::memory::{DmaSegment, Registers};
use diapason_rt::time;

/// The registers of an adapter.
#[derive(Clone, Copy, Debug)]
pub struct CardRegisters(Registers);

impl AdapterRegisters for CardRegisters {
    #[inline(always)]
    fn read(&self, register: usize) -> u32 {
        self.0.read32(register)
    }

    #[inline(always)]
    fn write(&self, register: usize, value: u32) {
        self.0.write32(register, value);
    }
}

/// The memory of an adapter's rings.
#[derive(Debug)]
pub struct CardRings(DmaSegment);

impl RingMemory for CardRings {
    #[inline(always)]
    fn read(&self, offset: usize) -> u32 {
        self.0.read32(offset)
    }

    #[inline(always)]
    fn write(&self, offset: usize, value: u32) {
        self.0.write32(offset, value);
    }

    fn bus_address(&self, offset: usize) -> u64 {
        self.0.bus_address(offset)
    }
}

/// The receiving half of an adapter.
pub type CardReceiver = FrameReceiver<CardRegisters, CardRings>;
/// The sending half of an adapter.
pub type CardSender = FrameSender<CardRegisters, CardRings>;

/// Resets and starts the adapter of this device, whose rings are in the segment `rings`.
///
/// # Errors
/// `Absent` if the machine lacks it, `TimedOut` if it does not answer.
pub fn start(device: &str, rings: &str, mac: [u8; 6]) -> Result<(CardReceiver, CardSender), Errno> {
    let registers = CardRegisters(Registers::map(device)?);
    let memories = [CardRings(DmaSegment::attach(rings)?), CardRings(DmaSegment::attach(rings)?)];
    adapter::quiesce(&registers);
    wait(|| adapter::is_quiet(&registers))?;
    adapter::reset(&registers);
    time::sleep(Nanos::from_millis(2));
    wait(|| adapter::is_reset(&registers))?;
    Ok(adapter::start(registers, memories, mac))
}

fn wait(until: impl Fn() -> bool) -> Result<(), Errno> {
    for _ in 0..100 {
        if until() {
            return Ok(());
        }
        time::sleep(Nanos::from_millis(1));
    }
    Err(Errno::TimedOut)
}
