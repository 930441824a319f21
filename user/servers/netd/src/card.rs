//! The registers and the rings of the adapter, as the kernel grants them, and its start.

use diapason_contract::ethernet::AdapterNames;
use diapason_ether::adapter::{self, AdapterRegisters, FrameReceiver, FrameSender, RingMemory};
use diapason_rt::memory::{DmaSegment, Registers};
use diapason_rt::{Errno, Nanos, time};

/// The registers of the adapter.
#[derive(Clone, Copy)]
pub(crate) struct Bar(Registers);

impl AdapterRegisters for Bar {
    fn read(&self, register: usize) -> u32 {
        self.0.read32(register)
    }

    fn write(&self, register: usize, value: u32) {
        self.0.write32(register, value);
    }
}

/// The memory of the rings.
pub(crate) struct Rings(DmaSegment);

impl RingMemory for Rings {
    fn read(&self, offset: usize) -> u32 {
        self.0.read32(offset)
    }

    fn write(&self, offset: usize, value: u32) {
        self.0.write32(offset, value);
    }

    fn bus_address(&self, offset: usize) -> u64 {
        self.0.bus_address(offset)
    }
}

pub(crate) type Receiver = FrameReceiver<Bar, Rings>;
pub(crate) type Sender = FrameSender<Bar, Rings>;

/// Resets and starts the adapter.
///
/// # Errors
/// `Absent` if the machine lacks it, `TimedOut` if it does not answer.
pub(crate) fn start(names: &AdapterNames, mac: [u8; 6]) -> Result<(Receiver, Sender), Errno> {
    let registers = Bar(Registers::map(names.device)?);
    let memories =
        [Rings(DmaSegment::attach(names.rings)?), Rings(DmaSegment::attach(names.rings)?)];
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
