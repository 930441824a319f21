//! Reports of the driver: finished transfers, news of devices, refusals and counters.

use crate::trb::Completion;
use crate::{Setup, Speed};
use diapason_abi::Nanos;
use diapason_bus::{EndpointRefusal, NoSchedule};

/// A device, as long as it stays; a later one in the same place has another name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct DeviceId {
    pub(super) index: u8,
    pub(super) generation: u32,
}

/// The number of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct TransferId(pub u64);

/// How a transfer ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransferOutcome {
    Done,
    /// The device sent less, and that was all.
    Short,
    /// The device refused. Recovery is under way; what is queued behind goes on after it.
    Stalled,
    /// The device sent more than was asked. Recovery is under way.
    Babble,
    /// No answer, or damaged ones only. Recovery is under way.
    Transaction,
    /// The transfer's service interval passed without it (isochronous).
    Missed,
    Cancelled,
    /// The bus schedule has no room for its endpoint any more.
    Unscheduled,
    /// The device is gone.
    Gone,
    /// The controller died, or was started again.
    Died,
    /// A later transfer ended before the controller said a word about this one.
    Lost,
    /// The controller's completion code.
    Failed(Completion),
}

/// A finished transfer: its memory is the client's again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finished {
    pub transfer: TransferId,
    /// The number that the client chose for it.
    pub cookie: u64,
    /// The device of the transfer.
    pub device: DeviceId,
    /// Endpoint address; 0 for control transfers.
    pub endpoint: u8,
    pub outcome: TransferOutcome,
    /// Bytes that went over the wire (of the data stage, for control transfers).
    pub actual: u32,
    /// The time at which the driver learned of the end.
    pub time: Nanos,
}

/// Why a device does not work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceFailure {
    /// The device cannot be reset.
    Reset,
    /// The device did not answer in time.
    Timeout,
    /// The controller refused a command about it.
    Command(Completion),
    /// A standard request failed.
    Request(Setup, TransferOutcome),
    /// The device's descriptors make no sense.
    Descriptor,
    /// The device's configuration is longer than
    /// [`Limits::configuration`](super::Limits::configuration).
    TooLong(u16),
    /// The bus has no room for its control endpoint.
    Bandwidth,
    /// An endpoint would not recover.
    Endpoint(u8),
}

/// The event that a start waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waiting {
    /// The firmware lets go.
    HandOver,
    /// The controller is ready to be told anything.
    Ready,
    Halt,
    Reset,
    Run,
}

/// Why the controller does not work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Death {
    /// All registers read as ones.
    Removed,
    /// The controller could not reach memory.
    SystemError,
    /// The controller found itself broken.
    ControllerError,
    /// The controller stopped without being told to.
    Halted,
    /// The controller did not do a command, nor abort it.
    Command,
    /// The controller did not do this step of the start.
    Start(Waiting),
    /// The controller has no capability registers that make sense.
    Nonsense,
    /// The controller wants more scratchpads than
    /// [`Limits::scratchpads`](super::Limits::scratchpads), or pages of another size.
    Scratchpads(u32),
    /// The controller cannot reach the window: 32-bit addresses only.
    Address,
}

/// Something that happened to a device or to the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// A device is there and its descriptors are read: configure it.
    Found {
        device: DeviceId,
        speed: Speed,
        /// Root port, from 1.
        port: u8,
        /// Hub ports on the way, four bits a tier.
        route: u32,
    },
    /// Another configuration, or a text, of a device was read, as the client asked.
    Read(DeviceId),
    /// The client's request (configuration, alternate setting, hub) is done.
    Configured(DeviceId),
    /// The controller or the device refused the client's request; the endpoints are unchanged.
    Refused(DeviceId, DeviceFailure),
    /// An endpoint was stopped to make room for another device. It runs again when there is room.
    Stopped {
        /// The device of the port.
        device: DeviceId,
        endpoint: u8,
    },
    /// A device was announced as found and is gone; its transfers were reported.
    Gone(DeviceId),
    /// Something at this root port and route does not work; it stays off until it is plugged again.
    Failed {
        port: u8,
        /// Hub ports on the way.
        route: u32,
        cause: DeviceFailure,
    },
    /// Too much current was drawn at a root port.
    OverCurrent(u8),
    /// The controller died. All devices are gone, without a notice each.
    Died(Death),
}

/// Why a call did nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The controller does not run.
    NotRunning,
    /// No such device (any more).
    NoDevice,
    /// No such endpoint, or one of another kind.
    NoEndpoint,
    /// No such transfer, or it is finished already.
    NoTransfer,
    NoInterrupter,
    /// Not now: the ring or a pool is full, or a change is under way.
    Busy,
    /// A buffer is not inside granted memory.
    Outside,
    /// More blocks than the ring has, more bytes than the endpoint's service interval, a buffer of
    /// no bytes among others, or a data stage of another length than the setup says.
    Length,
    /// The description makes no sense.
    Nonsense,
    /// The endpoint has no place in the bus schedule.
    Unscheduled(EndpointRefusal),
    /// The bus has no room for what must be served.
    Unfit(NoSchedule),
}

/// Counts of errors that the driver dealt with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    pub events: u64,
    /// Events that name nothing that is under way: dropped.
    pub spurious: u64,
    /// Events that claim more left than there was: taken as nothing transferred.
    pub residuals: u64,
    /// Events of a kind or code that is not known or not expected: dropped.
    pub unknown: u64,
    /// Times the controller said that an event ring was full.
    pub full: u64,
    /// Transfers whose event never came.
    pub lost: u64,
    /// Isochronous service intervals without a transfer to serve.
    pub starved: u64,
    /// Endpoints brought back after a halt.
    pub recovered: u64,
    /// Commands aborted because they took too long.
    pub aborted: u64,
    /// Notices nobody took in time.
    pub notices_lost: u64,
}

impl Counters {
    /// Adds the counts of a lane.
    pub(super) const fn add(&mut self, other: &Counters) {
        self.events += other.events;
        self.spurious += other.spurious;
        self.residuals += other.residuals;
        self.unknown += other.unknown;
        self.full += other.full;
        self.lost += other.lost;
        self.starved += other.starved;
        self.recovered += other.recovered;
        self.aborted += other.aborted;
        self.notices_lost += other.notices_lost;
    }
}

/// The remaining room of the pools.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolRoom {
    pub devices: usize,
    /// Endpoints besides control endpoints.
    pub pipes: usize,
    pub transfers: usize,
}
