//! Interrupt vectors: which number means what.

/// Vector of the local timer.
pub const TIMER: u64 = 32;
/// Interrupts, as opposed to exceptions, begin here.
pub const FIRST_INTERRUPT: u64 = TIMER;
/// Vector of spurious interrupts.
pub const SPURIOUS: u64 = 33;
/// First vector of devices.
pub const FIRST_DEVICE: u64 = 34;
/// Vector of IOMMUs that stopped an access: it comes after those of devices.
pub const STRAY: u64 = 48;
/// Vector of doorbells that other cores ring. Where there are several cores, no IOMMU is on.
pub const BELLS: u64 = STRAY;
/// Vectors with a stub.
pub const VECTORS: u64 = STRAY + 1;
/// Most devices that can interrupt.
pub const DEVICES_MAX: usize = (STRAY - FIRST_DEVICE) as usize;

const _: () = assert!(DEVICES_MAX == diapason_abi::archive::INTERRUPTS_MAX);
