//! The memory of a kernel, on the heap of a host.

use crate::config::{Pools, Sizes};
use crate::kernel::Kernel;
use crate::objects::condition::Condition;
use crate::objects::event::Event;
use crate::objects::mailbox::{Mailbox, Message};
use crate::objects::memory::{Device, Frame, Segment};
use crate::objects::process::Process;
use crate::objects::semaphore::Semaphore;
use crate::objects::thread::Thread;
use crate::objects::vcpu::Vcpu;
use diapason_abi::archive::Archive;

/// One list of the pools, with what an unused slot of each holds.
macro_rules! memory {
    ($($pool:ident: $kind:ident = $unused:ident,)*) => {
        /// The memory of one kernel.
        pub struct KernelMemory {
            $($pool: Vec<$kind>,)*
        }

        impl KernelMemory {
            /// As much as a kernel for `archive` needs.
            ///
            /// # Panics
            /// If the archive needs pools larger than their ids.
            #[must_use]
            pub fn of(archive: &Archive<'_>) -> KernelMemory {
                let sizes = Sizes::of(archive).expect("pools fit their ids");
                KernelMemory {
                    $($pool: (0..sizes.$pool).map(|_| $kind::$unused).collect(),)*
                }
            }

            /// Makes the kernel for `archive` in this memory, which is used once. The programs of
            /// some processes, one bit each, are refused.
            #[must_use]
            pub fn kernel(&mut self, archive: &Archive<'_>, refused: u64) -> Kernel<'_> {
                Kernel::new(Pools { $($pool: &mut self.$pool,)* }, archive, refused)
            }
        }
    };
}

memory! {
    processes: Process = EMPTY,
    threads: Thread = EMPTY,
    semaphores: Semaphore = EMPTY,
    conditions: Condition = EMPTY,
    mailboxes: Mailbox = EMPTY,
    messages: Message = EMPTY,
    events: Event = EMPTY,
    segments: Segment = EMPTY,
    devices: Device = EMPTY,
    frames: Frame = UNLINKED,
    vcpus: Vcpu = EMPTY,
}
