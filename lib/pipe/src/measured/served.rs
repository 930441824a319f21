//! Reports of the server of a USB controller on its devices, links and cameras.

use super::Values;
use diapason_abi::Nanos;

/// The fate of a device that the server found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Fate {
    /// The device is served: it did what its class asks of it first.
    Works = 0,
    /// The device did not do what its class asks of it.
    Failed = 1,
    /// No service that is free is for it.
    Unserved = 2,
    /// The description has a device of its kind at another place, or of another vendor or product.
    Stranger = 3,
    /// The described device at this place has another serial number.
    OtherSerial = 4,
    /// There is no memory or no bandwidth for it, or it refused its configuration.
    Unconfigured = 5,
    /// The device does not answer.
    Dead = 6,
}

impl Fate {
    const ALL: [Fate; 7] = [
        Fate::Works,
        Fate::Failed,
        Fate::Unserved,
        Fate::Stranger,
        Fate::OtherSerial,
        Fate::Unconfigured,
        Fate::Dead,
    ];

    fn numbered(number: u64) -> Option<Fate> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }
}

/// The fate of the device at one place. It is told when it changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceReport {
    /// The connector of the controller, from 1.
    pub connector: u8,
    /// Hub ports on the way, four bits each, the first in the lowest.
    pub route: u32,
    /// The device's vendor and its product; 0 if it did not say them.
    pub identity: (u16, u16),
    pub fate: Fate,
}

/// The state of a link to another computer. It is told when it changes, so counts may be larger.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkReport {
    pub number: u8,
    /// The link's device is there, and the other side is not known to take nothing.
    pub here: bool,
    /// Times that its device was found.
    pub found: u64,
    /// Messages that came from the other side so far.
    pub came: u64,
    /// Messages that the other side, or the cable, took so far.
    pub sent: u64,
}

/// A step of a host on its way into a network of hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum NetworkStep {
    /// The host begins to enumerate what is plugged in.
    Enumerate = 0,
    /// The host knows everything that was plugged in.
    Enumerated = 1,
    /// The host enables its debug capability.
    Enable = 2,
    /// The host has waited for long for the debug target at this port.
    Late = 3,
    /// At this port is another debug target than the right one.
    Stranger = 4,
}

impl NetworkStep {
    const ALL: [NetworkStep; 5] = [
        NetworkStep::Enumerate,
        NetworkStep::Enumerated,
        NetworkStep::Enable,
        NetworkStep::Late,
        NetworkStep::Stranger,
    ];
}

/// A step of a host on its way into a network. It is told when the step begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetworkReport {
    pub step: NetworkStep,
    /// The root port that it is about; 0: none.
    pub port: u8,
    /// The key of the serial number that a stranger has; 0 if it has none.
    pub peer: u64,
}

impl NetworkReport {
    pub(super) const fn values(&self) -> Values {
        [self.peer, 0, 0, 0, 0, 0, 0, 0]
    }

    pub(super) fn of(step: u8, port: u8, [peer, ..]: Values) -> Option<NetworkReport> {
        let step = *NetworkStep::ALL.get(usize::from(step))?;
        Some(NetworkReport { step, port, peer })
    }
}

/// The frames of a camera since the start of its server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CameraReport {
    /// Nobody watches it: it is one of the server's streams.
    pub stream: bool,
    /// The camera's number among the streams, or among the cameras that clients watch.
    pub number: u8,
    /// Frames that came whole.
    pub whole: u64,
    /// Frames of which something is missing or wrong.
    pub broken: u64,
    /// Intervals whose data did not arrive.
    pub missed: u64,
    /// Times that a stream broke off though it was to go on: the camera went away or failed.
    pub breaks: u64,
    /// Time from one frame to the next, as the camera says; zero: nothing is known of it.
    pub period: Nanos,
    /// The longest that a frame came after its turn, beyond the one that came earliest.
    pub late: Nanos,
}

/// A step of a change of the mode of operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ModeStep {
    /// The server stops the streams that end.
    Stops = 0,
    /// The server starts the streams that begin. The first mode begins with this step.
    Starts = 1,
    /// Every stream of the mode runs.
    Runs = 2,
    /// The change is over, and a stream whose camera is there does not run.
    Without = 3,
}

impl ModeStep {
    const ALL: [ModeStep; 4] =
        [ModeStep::Stops, ModeStep::Starts, ModeStep::Runs, ModeStep::Without];
}

/// The streams that a server runs. It is told with each step of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModeReport {
    /// The mode that the change leads to.
    pub mode: u8,
    pub step: ModeStep,
    /// The streams that are to run from now on, one bit each.
    pub wanted: u8,
    /// The time at which the server took the ask for the mode.
    pub taken: Nanos,
    /// The time at which the last stream that began had its first interval; `taken` if none did.
    pub begun: Nanos,
}

impl ModeReport {
    pub(super) const fn values(&self) -> Values {
        [self.taken.0, self.begun.0, 0, 0, 0, 0, 0, 0]
    }

    pub(super) fn of(mode: u8, step: u8, wanted: u8, values: Values) -> Option<ModeReport> {
        let step = *ModeStep::ALL.get(usize::from(step))?;
        let [taken, begun, ..] = values;
        Some(ModeReport { mode, step, wanted, taken: Nanos(taken), begun: Nanos(begun) })
    }
}

impl DeviceReport {
    pub(super) fn values(&self) -> Values {
        let identity = super::pair(self.identity.0.into(), self.identity.1.into());
        [self.route.into(), identity, self.fate as u64, 0, 0, 0, 0, 0]
    }

    pub(super) fn of(connector: u8, values: Values) -> Option<DeviceReport> {
        let [route, identity, fate, ..] = values;
        let (vendor, product) = super::halves(identity);
        let identity = (vendor as u16, product as u16);
        Some(DeviceReport { connector, route: route as u32, identity, fate: Fate::numbered(fate)? })
    }
}

impl LinkReport {
    pub(super) fn values(&self) -> Values {
        [self.found, self.came, self.sent, 0, 0, 0, 0, 0]
    }

    pub(super) fn of(number: u8, here: bool, [found, came, sent, ..]: Values) -> LinkReport {
        LinkReport { number, here, found, came, sent }
    }
}

impl CameraReport {
    pub(super) fn values(&self) -> Values {
        [self.whole, self.broken, self.missed, self.period.0, self.late.0, self.breaks, 0, 0]
    }

    pub(super) fn of(stream: bool, number: u8, values: Values) -> CameraReport {
        let [whole, broken, missed, period, late, breaks, ..] = values;
        let (period, late) = (Nanos(period), Nanos(late));
        CameraReport { stream, number, whole, broken, missed, breaks, period, late }
    }
}
