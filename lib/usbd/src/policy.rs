//! Everything that is a choice: names in the description, who interrupts when, how much of what.

use diapason_abi::Nanos;
use diapason_usb::class::kvaser;
use diapason_usb::xhci::Limits;

/// The controller in the description.
pub const DEVICE: &str = "xhci";
/// Memory the driver and the controller share: contexts and rings.
pub const RINGS: &str = "usb-rings";
/// Memory that transfers carry to and fro.
pub const BUFFERS: &str = "usb-buffers";

/// The services a description asks for, as bits: their places in `diapason_abi::usbd::SERVICES`.
pub mod wanted {
    /// CAN interfaces.
    pub const CAN: u64 = 1 << 0;
    /// Sensors on a serial line.
    pub const SENSOR: u64 = 1 << 1;
    /// Keyboards.
    pub const KEYBOARD: u64 = 1 << 2;
    /// Disks.
    pub const DISK: u64 = 1 << 3;
    /// Cameras.
    pub const CAMERA: u64 = 1 << 4;
    /// Hubs, and what is behind them.
    pub const HUBS: u64 = 1 << 5;
    /// Network devices.
    pub const NETWORK: u64 = 1 << 6;
}

/// Bytes of heap beyond those for the CAN interface alone.
pub const HEAP_MORE: usize = 256 << 10;
/// What is to be said about all that, as bits: places in `diapason_abi::usbd::SAYINGS`.
pub mod tell {
    /// Each device: what it is, its endpoints, and what is left of its bus.
    pub const DEVICES: u64 = 1 << 0;
    /// What is left of every pool, whenever a device is gone.
    pub const POOLS: u64 = 1 << 1;
    /// When the bottom half of the first service was where, in the segment `usb-times`.
    pub const TIMES: u64 = 1 << 2;
    /// Not to be said: buses are as the article counts them.
    pub const ARTICLE: u64 = 1 << 8;
}

/// Hubs at a time.
pub const HUBS: usize = 4;
/// Most pixels of a picture: 640 by 480.
pub const CAMERA_PIXELS: u32 = 640 * 480;

/// Where a bottom half is at home.
pub struct Home {
    /// Its VCPU in the description.
    pub vcpu: &'static str,
    /// Its thread.
    pub thread: &'static str,
    /// What the simulator calls its work.
    pub work: &'static str,
    /// The shortest time between two of its interrupts: the description's interval is a little
    /// shorter.
    pub moderation: Nanos,
    /// Interrupts are handled so much later, for controllers that ignore moderation: none
    /// interrupts again before that.
    pub pace: Nanos,
}

/// What the simulator calls the work of the thread that manages.
pub const MANAGES: &str = "usbd.manage";
/// The interrupter of commands, ports, control transfers, and most of what goes to devices. Those
/// of the services follow it in their order; the same number of messages is in the description.
pub const MANAGING: u16 = 0;
/// Its time between interrupts.
pub const MANAGED: Nanos = Nanos::from_millis(2);

/// What CAN channels receive.
pub const CAN: Home = Home {
    vcpu: "usb-receive",
    thread: "receive",
    work: "usbd.receive",
    moderation: kvaser::MODERATION,
    pace: Nanos::ZERO,
};
/// What clients ask for, and the frames they write; this one has no interrupter.
pub const SENDING: Home = Home {
    vcpu: "usb-send",
    thread: "send",
    work: "usbd.send",
    moderation: Nanos::ZERO,
    pace: Nanos::ZERO,
};
/// It rests so long before it listens again.
pub const REST: Nanos = diapason_abi::pipe::REST;
/// Interrupts of [`MANAGING`] are handled so much later. QEMU's controller ignores moderation, but
/// no controller interrupts again before that; and nothing that is managed is in a hurry.
pub const PACE: Nanos = Nanos::from_millis(2);
/// Who answers questions about tuned pipes; no interrupter.
pub const TUNING: Home = Home {
    vcpu: "usb-tune",
    thread: "tune",
    work: "usbd.tune",
    moderation: Nanos::ZERO,
    pace: Nanos::from_millis(5),
};
/// A reservation that cannot be changed yet is tried again after this time, and so long.
pub const RETRY: Nanos = Nanos::from_millis(5);
/// The same.
pub const PATIENCE: Nanos = Nanos::from_secs(2);
/// How exact time stamps of interfaces are.
pub const CLOCK: Nanos = Nanos::from_micros(10);

/// Events that have waited so long without an interrupt lost theirs.
pub const LOST: Nanos = Nanos::from_millis(10);
/// Events taken off a ring before the controller is told how far it was read.
pub const BATCH: u32 = 32;

/// What a sensor sends: a packet every 2.5 ms, of which it keeps a few.
pub const SENSOR: Home = Home {
    vcpu: "usb-sensor",
    thread: "sensor",
    work: "usbd.sensor",
    moderation: Nanos::from_millis(2),
    pace: Nanos::ZERO,
};

/// Keys.
pub const KEYBOARD: Home = Home {
    vcpu: "usb-keyboard",
    thread: "keyboard",
    work: "usbd.keyboard",
    moderation: Nanos::from_millis(8),
    pace: Nanos::ZERO,
};

/// What a disk has done: three transfers to a command, and none waits for another client.
pub const DISK: Home = Home {
    vcpu: "usb-disk",
    thread: "disk",
    work: "usbd.disk",
    moderation: Nanos::from_micros(125),
    pace: Nanos::from_micros(125),
};

/// What a camera sends: of 16 transfers pending, one each 125 us, eight wait for an interrupt.
pub const CAMERA: Home = Home {
    vcpu: "usb-camera",
    thread: "camera",
    work: "usbd.camera",
    moderation: Nanos::from_micros(500),
    pace: Nanos::from_micros(500),
};

/// Frames from and to a network.
pub const NETWORK: Home = Home {
    vcpu: "usb-network",
    thread: "network",
    work: "usbd.network",
    moderation: Nanos::from_micros(125),
    pace: Nanos::from_micros(125),
};

/// Messages from and to other computers: none waits for another.
pub static LINKS: [Home; diapason_contract::link::LINKS] =
    [link("usb-link0"), link("usb-link1"), link("usb-link2"), link("usb-link3")];

const fn link(vcpu: &'static str) -> Home {
    let moderation = Nanos::from_micros(50);
    Home { vcpu, thread: "link", work: "usbd.link", moderation, pace: Nanos::ZERO }
}

/// Cameras that nobody watches: of 16 transfers pending, one each 125 us at most, four wait for an
/// interrupt.
pub static STREAMS: [Home; 4] =
    [stream("usb-stream0"), stream("usb-stream1"), stream("usb-stream2"), stream("usb-stream3")];

const fn stream(vcpu: &'static str) -> Home {
    let moderation = Nanos::from_micros(500);
    Home { vcpu, thread: "stream", work: "usbd.stream", moderation, pace: Nanos::ZERO }
}

/// Bit rates of the channels: those of the article's five buses.
pub const BIT_RATES: [u32; diapason_contract::can::CHANNELS] =
    [500_000, 250_000, 500_000, 500_000, 500_000];
/// Where a bit is sampled, in tenths of a per cent.
pub const SAMPLE_POINT: u32 = 800;

/// A channel that was closed is opened again after this time, an interface that failed is asked
/// anew.
pub const REOPEN: Nanos = Nanos::from_millis(100);
/// A controller that died is started again after the first pause, then after twice as long, up to
/// the last.
pub const PAUSES: (Nanos, Nanos) = (Nanos::from_millis(10), Nanos::from_secs(1));

/// Bytes kept of a configuration.
pub const CONFIGURATION: usize = 1024;
/// Configurations of a device that are looked at, in their order, for one that somebody serves.
pub const CONFIGURATIONS: u8 = 4;

/// Room for one device of each service, and for a few that nobody serves; of the services, so many
/// have an interrupter of their own, and so many share memory with clients.
pub fn limits(services: usize, own: usize, shared: usize) -> Limits {
    let many = services > 1;
    Limits {
        devices: services as u8 + 3,
        pipes: if many { 24 } else { 8 },
        blocks: if many { 32 } else { 64 },
        transfers: if many { 108 } else { 32 },
        interrupters: own as u16 + 1,
        events: if many { 256 } else { 128 },
        ports: 30,
        scratchpads: 32,
        configuration: CONFIGURATION as u16,
        windows: shared as u8 + 1,
        watch: Nanos::from_millis(100),
    }
}
