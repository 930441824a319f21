//! Interrupt vectors: which number means what.

/// Vector of the local timer.
pub const TIMER: u64 = 32;
/// Interrupts, as opposed to exceptions, begin here.
pub const FIRST_INTERRUPT: u64 = TIMER;
/// Vector of spurious interrupts.
pub const SPURIOUS: u64 = 33;
/// First vector of devices.
pub const FIRST_DEVICE: u64 = 34;
/// Vector of doorbells that other cores ring: it comes after those of devices.
pub const BELLS: u64 = 48;
/// Vectors with a stub in the table of stubs.
pub const VECTORS: u64 = BELLS + 1;
/// Vector of IOMMUs that stopped an access. Its stub lies elsewhere.
pub const STRAY: u64 = BELLS + 1;
/// Most devices that can interrupt.
pub const DEVICES_MAX: usize = (BELLS - FIRST_DEVICE) as usize;
/// Place of an IOMMU's interrupt behind those of devices.
pub const STRAY_PLACE: usize = (STRAY - FIRST_DEVICE) as usize;

const _: () = assert!(DEVICES_MAX == diapason_abi::archive::INTERRUPTS_MAX);
