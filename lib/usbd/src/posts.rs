//! The posts that a branch leaves for the server, and where its devices leave them.

use crate::change::DriverRequest;
use crate::platform::Platform;
use crate::slots::Slots;
use alloc::collections::VecDeque;
use diapason_usb::Setup;
use diapason_usb::xhci::{Buffer, DeviceId, Lane};

/// A lane of the driver on this machine.
pub type DriverLane<P> = Lane<<P as Platform>::Registers, <P as Platform>::Memory>;

/// A request of a branch to the server.
pub(crate) enum Post<P: Platform> {
    /// A request to the control endpoint of a device, its data in this slot.
    Control {
        device: DeviceId,
        setup: Setup,
        buffer: Buffer,
        slot: usize,
    },
    /// All such requests of a device are to end.
    CancelControl(DeviceId),
    /// Withdraws them, and changes that the driver has not begun.
    Forget(DeviceId),
    Change(DeviceId, DriverRequest),
    /// A device is gone and nothing of it is left but its memory.
    Over(DeviceId, Slots<P>),
}

/// The lane and the posts, for the devices of a branch.
pub(crate) struct Outside<'a, P: Platform> {
    pub lane: &'a mut DriverLane<P>,
    pub posts: &'a mut VecDeque<Post<P>>,
}

impl<P: Platform> Outside<'_, P> {
    /// Leaves a request for the server.
    pub fn post(&mut self, post: Post<P>) {
        self.posts.push_back(post);
    }
}
