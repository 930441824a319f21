//! The adapters and the UDP sockets of a system.

use diapason_contract::ethernet::{ADAPTER_NAMES, Peer};

/// An adapter for Ethernet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EthernetAdapter {
    /// The adapter's number on the host: the device is called `nic` and this number.
    pub number: u8,
    pub device: AdapterDevice,
    /// The number of the process that receives its frames. That of a card sends, too.
    pub driver: u16,
    /// The address of this host.
    pub address: [u8; 4],
    /// The address of the adapter.
    pub mac: [u8; 6],
    /// The speed of the wire, in Mbit/s.
    pub speed: u64,
    /// Most frames that come in a second in the long run, and at once, if the description says.
    pub traffic: Option<(u64, u64)>,
    /// The least distance of two interrupts that its device promises, in ns; 0 if it is silent.
    pub interval_ns: u64,
    /// Its server keeps a common time with the neighbour.
    pub keeps_time: bool,
}

/// The device that an adapter is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AdapterDevice {
    /// A card: the number of the device.
    Card(usize),
    /// A USB network device.
    Usb(UsbAdapter),
}

/// A USB network device with the pipes that carry its frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UsbAdapter {
    /// The number of the plug.
    pub plug: usize,
    /// The place of the pipe from it in [`System::pipes`](crate::System::pipes).
    pub comes: usize,
    /// The place of the pipe to it, and the number of the process that writes it.
    pub goes: Option<(usize, u16)>,
}

impl EthernetAdapter {
    /// Returns the number of its device, if it is a card.
    #[must_use]
    pub const fn card(&self) -> Option<usize> {
        match self.device {
            AdapterDevice::Card(device) => Some(device),
            AdapterDevice::Usb(_) => None,
        }
    }

    /// Returns the name of its device.
    #[must_use]
    pub fn name(&self) -> &'static str {
        ADAPTER_NAMES.get(usize::from(self.number)).map_or("", |names| names.device)
    }

    /// Returns the number of the process that sends, if one does.
    #[must_use]
    pub fn sender(&self) -> Option<u16> {
        match self.device {
            AdapterDevice::Card(_) => Some(self.driver),
            AdapterDevice::Usb(usb) => usb.goes.map(|(_, sender)| sender),
        }
    }
}

/// A UDP socket of a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UdpPort {
    pub name: String,
    /// The socket's number on the host.
    pub number: u8,
    /// The place of its adapter in [`System::adapters`](crate::System::adapters).
    pub adapter: usize,
    /// The number of the process that has it.
    pub process: u16,
    /// The port of its datagrams; 0 if it gets the frames that no other socket wants.
    pub port: u16,
    /// Whether exact frames bypass the layers.
    pub real_time: bool,
    /// The priority in the tag of the frames that it sends, if they have one.
    pub priority: Option<u8>,
    /// Most frames that wait.
    pub quota: u16,
    /// Most bytes of a payload.
    pub bytes: u64,
    /// Time between two datagrams in the long run, in ns, if the description bounds it.
    pub period_ns: Option<u64>,
    /// Most datagrams at once.
    pub burst: u64,
    /// Longest time of the program for one datagram, in ns, if the description says it.
    pub work_ns: Option<u64>,
    /// The longest that a datagram may take, in ns, if that is wanted.
    pub latency_ns: Option<u64>,
    /// The place where its datagrams go, if it sends.
    pub peer: Option<Peer>,
}
