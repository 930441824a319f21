//! Commands to the controller: one under way at a time, so that its completion can be nobody
//! else's.

use super::access::{Dma, Hardware, Mmio};
use super::ring::Ring;
use crate::trb::{Kind, Trb, bit};
use diapason_abi::Nanos;

/// How long a command may take before it is aborted, and an abort before the controller is dead.
pub(super) const PATIENCE: Nanos = Nanos::from_secs(5);

/// A command that the driver wants to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Command {
    EnableSlot,
    DisableSlot,
    /// `blocked`: keep the address back.
    Address {
        blocked: bool,
    },
    Evaluate,
    Configure,
    Stop(u8),
    Reset(u8),
    /// Where the ring of this endpoint goes on, with the cycle bit.
    SetDequeue(u8, u64),
}

impl Command {
    fn block(self, slot: u8, input: u64) -> Trb {
        let (kind, parameter, flags, endpoint) = match self {
            Command::EnableSlot => (Kind::EnableSlot, 0, 0, 0),
            Command::DisableSlot => (Kind::DisableSlot, 0, 0, 0),
            Command::Address { blocked: true } => {
                (Kind::AddressDevice, input, bit::BLOCK_ADDRESS, 0)
            }
            Command::Address { blocked: false } => (Kind::AddressDevice, input, 0, 0),
            Command::Evaluate => (Kind::EvaluateContext, input, 0, 0),
            Command::Configure => (Kind::ConfigureEndpoint, input, 0, 0),
            Command::Stop(endpoint) => (Kind::StopEndpoint, 0, 0, endpoint),
            Command::Reset(endpoint) => (Kind::ResetEndpoint, 0, 0, endpoint),
            Command::SetDequeue(endpoint, pointer) => (Kind::SetDequeue, pointer, 0, endpoint),
        };
        Trb::new(kind, parameter, 0, flags | Trb::place(slot, endpoint))
    }
}

/// The one that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnderWay {
    pub command: Command,
    /// Index of its device.
    pub device: u8,
    index: u16,
    pub deadline: Nanos,
    pub aborting: bool,
}

#[derive(Debug)]
pub(super) struct Commands {
    ring: Ring,
    pub under_way: Option<UnderWay>,
}

impl Commands {
    /// Returns a command ring with no command under way.
    pub fn new(ring: Ring) -> Commands {
        Commands { ring, under_way: None }
    }

    /// Clears the ring and forgets the command under way.
    pub fn clear<M: Mmio, D: Dma>(&mut self, hw: &mut Hardware<M, D>) {
        self.ring.clear(hw);
        self.under_way = None;
    }

    /// Returns where the ring begins.
    pub fn start(&self) -> u64 {
        self.ring.offset_of(0)
    }

    /// Puts a command into the ring and rings its doorbell.
    pub fn issue<M: Mmio, D: Dma>(
        &mut self,
        hw: &mut Hardware<M, D>,
        command: Command,
        (device, slot): (u8, u8),
        input: u64,
        now: Nanos,
    ) {
        let block = command.block(slot, hw.address(input));
        let index = self.ring.push(hw, block);
        self.ring.commit(hw);
        hw.ring_doorbell(0, 0);
        let deadline = now + PATIENCE;
        self.under_way = Some(UnderWay { command, device, index, deadline, aborting: false });
    }

    /// Returns the command that a completion event names, if it is the one under way: it ends here.
    pub fn take(&mut self, base: u64, address: u64) -> Option<UnderWay> {
        let index = self.ring.index_of(base, address)?;
        let done = self.under_way.take_if(|command| command.index == index)?;
        self.ring.release_to(self.ring.after(index));
        Some(done)
    }
}
