//! The limits this crate adds to those of `diapason_abi`, each with its reason.

use diapason_abi::PAGE;

/// Longest name of anything declared; tables and traces have room for it.
pub(crate) const NAME_CHARACTERS_MAX: usize = 31;
/// Longest name of a program; it becomes a file's name.
pub(crate) const PROGRAM_CHARACTERS_MAX: usize = 64;
/// Most messages in one mailbox. A full mailbox of this size is already 64 KiB of kernel memory.
pub(crate) const MESSAGES_MAX: u16 = 1024;
/// Largest initial count of a semaphore.
pub(crate) const COUNT_MAX: u64 = u32::MAX as u64;
/// Most restarts that are a number; beyond it, `"always"` is meant.
pub(crate) const RESTARTS_MAX: u64 = u32::MAX as u64 - 1;
/// Longest first back-off: one hour.
pub(crate) const BACKOFF_NS_MAX: u64 = 3_600_000_000_000;
/// Most RAM a system uses. PCs have this much in one piece from address 0; above it they map
/// devices.
pub(crate) const MEMORY_MAX: u64 = 2 << 30;
/// Physical addresses of x86-64 have 52 bits.
pub(crate) const PHYSICAL_END: u64 = 1 << 52;
/// Lines of the I/O APIC of a PC.
pub(crate) const IRQ_LINES: u16 = 24;
/// Graphics memory of a PC: not RAM, though it lies below the end of it.
pub(crate) const VGA: std::ops::Range<u64> = 0xa_0000..0xc_0000;
/// Interrupt controllers, which the kernel keeps: the I/O APIC, and the local APICs with the
/// addresses of message-signalled interrupts.
pub(crate) const KERNEL_DEVICES: [(&str, std::ops::Range<u64>); 2] =
    [("the I/O APIC", 0xfec0_0000..0xfec0_1000), ("the local APIC", 0xfee0_0000..0xfef0_0000)];

/// Most VCPUs in a description. The kernel schedules far fewer, `VCPUS_MAX`, which is checked when
/// a system is admitted: larger sets can still be analysed.
pub(crate) const DECLARED_VCPUS_MAX: usize = 1024;
/// Clock rates of an analysis: from the microcontrollers of 1998 to today's PCs.
pub(crate) const CLOCK_HZ: std::ops::RangeInclusive<u64> = 1_000_000..=10_000_000_000;
/// Shortest times between two interrupts of a device, or two wake-ups of an I/O VCPU, that can be
/// promised, in ns: from about what one of them costs to an hour.
pub(crate) const INTERVALS: std::ops::RangeInclusive<u64> = 1_000..=3_600_000_000_000;

/// Bytes in a page, as sizes are computed here.
pub(crate) const PAGE_BYTES: u64 = PAGE as u64;

const _: () = assert!(MEMORY_MAX <= KERNEL_DEVICES[0].1.start);
/// The class of a controller that USB devices and cables can be plugged into.
pub(crate) const XHCI: u32 = 0x0c_0330;
/// Most hubs between a device and its controller.
pub(crate) const HUBS: usize = 5;
