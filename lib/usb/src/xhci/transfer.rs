//! Transfers of a configured device: a client queues them and takes them back.

use super::access::{Buffer, Dma, Mmio};
use super::build::{Build, COUNTED, When, blocks};
use super::controller::Controller;
use super::lane::{Lane, Lanes};
use super::limits::Window;
use super::pipe::{Owner, Phase, Pipe, Queued, Wish};
use super::report::{DeviceId, Refused, TransferId, TransferOutcome};
use crate::context::EndpointKind;
use crate::setup::{Setup, request};
use crate::trb::context_index;

/// A bulk, interrupt or isochronous transfer.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The device to transfer with.
    pub device: DeviceId,
    pub endpoint: u8,
    /// Where the data is or goes; a buffer without bytes is a packet without bytes. The memory is
    /// the controller's until the transfer is reported.
    pub buffer: Buffer,
    /// No interrupt for it; it is found when another one causes one.
    pub quiet: bool,
    /// More follow: the controller sees none of them before the last, or [`Lane::announce`].
    pub more: bool,
    /// The time at which an isochronous transfer goes.
    pub when: When,
    /// The client's own name for it.
    pub cookie: u64,
}

impl Request {
    /// Returns a request with the usual settings.
    #[must_use]
    pub const fn new(device: DeviceId, endpoint: u8, buffer: Buffer) -> Request {
        Request { device, endpoint, buffer, quiet: false, more: false, when: When::Soon, cookie: 0 }
    }
}

impl<M: Mmio, D: Dma> Lane<M, D> {
    /// Queues a transfer and returns its number.
    ///
    /// # Errors
    /// Why not; nothing is queued then. After [`Refused::Busy`] it may work later.
    pub fn submit(&mut self, request: &Request) -> Result<TransferId, Refused> {
        if !self.runs {
            return Err(Refused::NotRunning);
        }
        let index = context_index(request.endpoint);
        let number = self.of(request.device, index).filter(|_| index > 1);
        self.usable(request.buffer)?;
        let number = number.ok_or_else(|| self.absent(request.device))?;
        let pipe = &self.pipes[number];
        match pipe.wish {
            Wish::Rest(why) => return Err(Refused::Unscheduled(why)),
            Wish::Remove => return Err(Refused::NoEndpoint),
            Wish::Run if !pipe.configured || pipe.old.is_some() => return Err(Refused::Busy),
            Wish::Run => {}
        }
        let length = request.buffer.length;
        if length > COUNTED || pipe.most().is_some_and(|most| length > most) {
            return Err(Refused::Length);
        }
        let room = self.room(number, blocks(request.buffer));
        if room.is_err() && self.pipes[number].ring.holds() {
            // Those before it are not followed by another.
            self.ring(number);
        }
        room?;
        let Request { buffer, quiet, when, .. } = *request;
        let build = Build { buffer, interrupter: self.number, quiet, when };
        let ends = self.pipes[number].write_data(&mut self.hw, &build);
        let id = self.queue(number, ends, length, request.cookie);
        if !request.more {
            self.ring(number);
        }
        Ok(id)
    }

    /// Queues a request of a client to a control endpoint.
    pub(super) fn control(
        &mut self,
        device: DeviceId,
        setup: Setup,
        buffer: Buffer,
        cookie: u64,
    ) -> Result<TransferId, Refused> {
        let number = self.of(device, 1).ok_or(Refused::NoDevice)?;
        self.room(number, blocks(buffer) + 2)?;
        let build = Build { buffer, interrupter: self.number, quiet: false, when: When::Soon };
        let ends = self.pipes[number].write_control(&mut self.hw, setup, &build);
        let id = self.queue(number, ends, setup.length.into(), cookie);
        self.ring(number);
        Ok(id)
    }

    /// Takes a transfer back. It is reported as cancelled when the controller has let go of its
    /// memory, or as finished if it was faster.
    ///
    /// # Errors
    /// There is no such transfer (any more).
    pub fn cancel(&mut self, device: DeviceId, transfer: TransferId) -> Result<(), Refused> {
        for number in 0..self.pipes.len() {
            let pipe = &mut self.pipes[number];
            if pipe.owner.is_none() || pipe.device != device || pipe.leaves {
                continue;
            }
            let mine =
                |queued: &&mut Queued| queued.id == transfer && queued.owner == Owner::Client;
            if let Some(queued) = pipe.queue.iter_mut().find(mine) {
                queued.cancelled.get_or_insert(TransferOutcome::Cancelled);
                self.stop(number);
                return Ok(());
            }
        }
        Err(Refused::NoTransfer)
    }

    /// Takes all transfers of an endpoint back.
    ///
    /// # Errors
    /// There is no such device or endpoint.
    pub fn cancel_all(&mut self, device: DeviceId, endpoint: u8) -> Result<(), Refused> {
        let number = self.of(device, context_index(endpoint)).ok_or(Refused::NoEndpoint)?;
        self.cancel_pipe(number, TransferOutcome::Cancelled);
        Ok(())
    }

    /// All of a client's transfers on an endpoint will end like this.
    pub(super) fn cancel_pipe(&mut self, number: usize, outcome: TransferOutcome) {
        let queue = &mut self.pipes[number].queue;
        let clients = queue.iter_mut().filter(|queued| queued.owner == Owner::Client);
        let count = clients.map(|queued| queued.cancelled.get_or_insert(outcome)).count();
        if count > 0 {
            self.stop(number);
        }
    }

    /// Submits a request of the driver's own, with its data at `place`, and returns whether it had
    /// room.
    pub(super) fn submit_request(&mut self, index: u8, setup: Setup, place: u64) -> bool {
        let Some(number) = self.find((index, 1)) else { return false };
        let pipe = &self.pipes[number];
        let buffer = Buffer { address: self.hw.address(place), length: setup.length.into() };
        if pipe.phase != Phase::Running
            || pipe.queue.len() == pipe.queue.capacity()
            || blocks(buffer) + 2 > usize::from(pipe.ring.free())
        {
            return false;
        }
        // The rest of an answer that is too short is zeros, and not older contents of the memory.
        self.hw.zero(place, u64::from(setup.length) & !3);
        let build = Build { buffer, interrupter: self.number, quiet: false, when: When::Soon };
        let ends = self.pipes[number].write_control(&mut self.hw, setup, &build);
        let id = self.next_transfer();
        let queued = queued(id, ends, buffer.length);
        self.pipes[number].queue.push_back(Queued { owner: Owner::Driver, ..queued });
        self.ring(number);
        true
    }

    /// Returns why there is no such endpoint.
    fn absent(&self, device: DeviceId) -> Refused {
        let is_its = |pipe: &Pipe| pipe.owner.is_some() && pipe.device == device && !pipe.leaves;
        if self.pipes.iter().any(is_its) { Refused::NoEndpoint } else { Refused::NoDevice }
    }

    /// Checks that this memory may be used.
    fn usable(&self, buffer: Buffer) -> Result<(), Refused> {
        let range = Window { base: buffer.address, length: buffer.length.into() };
        let granted =
            buffer.length == 0 || self.windows.iter().any(|window| window.contains(range));
        if granted { Ok(()) } else { Err(Refused::Outside) }
    }

    /// Checks that one more transfer of so many blocks has room.
    #[inline(always)]
    fn room(&self, number: usize, blocks: usize) -> Result<(), Refused> {
        let pipe = &self.pipes[number];
        if blocks > usize::from(pipe.ring.most()) {
            return Err(Refused::Length);
        }
        // Two places are left for the driver's own requests.
        let full = pipe.queue.len() + 2 >= pipe.queue.capacity()
            || self.outstanding >= self.most
            || blocks > usize::from(pipe.ring.free());
        if full { Err(Refused::Busy) } else { Ok(()) }
    }

    #[inline(always)]
    fn queue(&mut self, number: usize, ends: (u16, u16), length: u32, cookie: u64) -> TransferId {
        let id = self.next_transfer();
        self.pipes[number].queue.push_back(Queued { cookie, ..queued(id, ends, length) });
        self.outstanding += 1;
        id
    }

    /// Shows the controller the transfers that wait for more: no more follow.
    pub fn announce(&mut self) {
        for number in 0..self.pipes.len() {
            if self.pipes[number].ring.holds() {
                self.ring(number);
            }
        }
    }

    /// Shows the controller what is on an endpoint's ring. Its doorbell is rung, unless it is being
    /// recovered: then that ends with it.
    fn ring(&mut self, number: usize) {
        let pipe = &mut self.pipes[number];
        pipe.ring.commit(&mut self.hw);
        if let (Some((_, index)), Phase::Running) = (pipe.owner, pipe.phase) {
            self.hw.ring_doorbell(pipe.slot, index);
        }
    }

    /// An endpoint has to stand still for a change of its ring.
    fn stop(&mut self, number: usize) {
        let pipe = &mut self.pipes[number];
        if pipe.phase == Phase::Running {
            pipe.enter(Phase::Stop);
            self.attention = true;
        }
    }
}

impl<M: Mmio, D: Dma, L: Lanes<M, D>> Controller<M, D, L> {
    /// Queues a transfer in the lane of its device and returns its number.
    ///
    /// # Errors
    /// Why not; nothing is queued then. After [`Refused::Busy`] it may work later.
    pub fn submit(&mut self, request: &Request) -> Result<TransferId, Refused> {
        if self.state != super::ControllerState::Running {
            return Err(Refused::NotRunning);
        }
        let index = self.device(request.device)?;
        let lane = self.devices[usize::from(index)].lane;
        self.on(lane, |lane| lane.submit(request))
    }

    /// Queues a request to a device's control endpoint. `data` has the length that the setup says.
    ///
    /// # Errors
    /// Why not; nothing is queued then.
    pub fn control(
        &mut self,
        device: DeviceId,
        setup: Setup,
        data: Buffer,
        cookie: u64,
    ) -> Result<TransferId, Refused> {
        if self.state != super::ControllerState::Running {
            return Err(Refused::NotRunning);
        }
        let index = self.device(device)?;
        self.own.usable(data)?;
        if u32::from(setup.length) != data.length {
            return Err(Refused::Length);
        }
        if (setup.kind, setup.request) == (0, request::SET_ADDRESS) {
            // Addresses are the controller's.
            return Err(Refused::Nonsense);
        }
        if !self.devices[usize::from(index)].announced {
            return Err(Refused::Busy);
        }
        self.own.control(device, setup, data, cookie)
    }

    /// Takes a transfer back. It is reported as cancelled when the controller has let go of its
    /// memory, or as finished if it was faster.
    ///
    /// # Errors
    /// There is no such transfer (any more).
    pub fn cancel(&mut self, device: DeviceId, transfer: TransferId) -> Result<(), Refused> {
        let index = self.device(device)?;
        let own = self.own.cancel(device, transfer);
        let lane = self.devices[usize::from(index)].lane;
        let done = match own {
            Err(Refused::NoTransfer) if lane != 0 => {
                self.on(lane, |lane| lane.cancel(device, transfer))
            }
            own => own,
        };
        self.look(lane);
        done
    }

    /// Takes all transfers of an endpoint back.
    ///
    /// # Errors
    /// There is no such device or endpoint.
    pub fn cancel_all(&mut self, device: DeviceId, endpoint: u8) -> Result<(), Refused> {
        let index = self.device(device)?;
        let lane = self.lane_of(index, context_index(endpoint));
        let done = self.on(lane, |lane| lane.cancel_all(device, endpoint));
        self.look(lane);
        done
    }

    /// Kind of an endpoint, if the device has it.
    #[must_use]
    pub fn endpoint_kind(&mut self, device: DeviceId, endpoint: u8) -> Option<EndpointKind> {
        let index = self.device(device).ok()?;
        let lane = self.lane_of(index, context_index(endpoint));
        self.on(lane, |lane| lane.endpoint_kind(device, endpoint))
    }
}

const fn queued(id: TransferId, (first, last): (u16, u16), length: u32) -> Queued {
    Queued {
        id,
        cookie: 0,
        owner: Owner::Client,
        first,
        last,
        length,
        actual: None,
        failed: None,
        cancelled: None,
    }
}
