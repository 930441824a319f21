//! Ethernet: names and layouts that the server `netd`, programs with sockets, and descriptions
//! share. A process of `netd` drives one card, or has one direction of a USB network device. A
//! socket has a number of its own on its host.

use diapason_abi::{Key, PAGE};
use diapason_state::plain;

/// The program that drives an adapter.
pub const PROGRAM: &str = "netd";
/// Bytes of the stack of each thread of `netd`.
pub const STACK: u64 = 64 << 10;
/// A `netd` that drives a card makes two threads, an event for its interrupts, and the lock of what
/// one thread gives the other.
pub const THREADS: usize = 2;
pub const EVENTS: usize = 1;
pub const SEMAPHORES: usize = 1;
/// The adapter that it drives: class, vendor and product.
pub const ADAPTER: (u32, u16, u16) = (0x02_0000, 0x8086, 0x10d3);
/// Most adapters of a host.
pub const ADAPTERS: usize = 4;
/// Most sockets of a host.
pub const SOCKETS: usize = 16;

/// Names of what belongs to an adapter. A USB network device has only the first.
#[derive(Clone, Copy, Debug)]
pub struct AdapterNames {
    pub device: &'static str,
    /// The segment of the adapter's rings.
    pub rings: &'static str,
    /// The segment of the adapter's buffers: first those to receive into, then those to send from.
    pub buffers: &'static str,
    /// The semaphore that programs give when they have something to send.
    pub send: &'static str,
    /// The I/O VCPU of the thread that receives.
    pub vcpu: &'static str,
}

macro_rules! adapter {
    ($name:literal) => {
        AdapterNames {
            device: $name,
            rings: concat!($name, ".rings"),
            buffers: concat!($name, ".buffers"),
            send: concat!($name, ".send"),
            vcpu: concat!($name, ".receive"),
        }
    };
}

/// The names of each adapter.
pub const ADAPTER_NAMES: [AdapterNames; ADAPTERS] =
    [adapter!("nic0"), adapter!("nic1"), adapter!("nic2"), adapter!("nic3")];

/// Names of what belongs to a socket.
#[derive(Clone, Copy, Debug)]
pub struct SocketNames {
    /// The segment of the inbox and its slots.
    pub inbox: &'static str,
    /// The semaphore that is given when a frame came.
    pub ready: &'static str,
    /// The segment of the pipe of frames to send.
    pub out: &'static str,
}

macro_rules! socket {
    ($name:literal) => {
        SocketNames { inbox: $name, ready: concat!($name, ".ready"), out: concat!($name, ".out") }
    };
}

/// The names of each socket.
pub const SOCKET_NAMES: [SocketNames; SOCKETS] = [
    socket!("socket0"),
    socket!("socket1"),
    socket!("socket2"),
    socket!("socket3"),
    socket!("socket4"),
    socket!("socket5"),
    socket!("socket6"),
    socket!("socket7"),
    socket!("socket8"),
    socket!("socket9"),
    socket!("socket10"),
    socket!("socket11"),
    socket!("socket12"),
    socket!("socket13"),
    socket!("socket14"),
    socket!("socket15"),
];

/// Bytes of a buffer of the adapter, and of a slot.
pub const SLOT_BYTES: usize = 2_048;
/// Bytes of a slot that a frame may fill. The time at which the server had it is behind them.
pub const SLOT_FRAME: usize = SLOT_BYTES - 8;
/// Descriptors of each ring of the adapter. One of them stays empty.
pub const RING: usize = 64;
/// Bytes of the segment of an adapter's rings.
pub const RINGS_BYTES: u64 = PAGE as u64;
/// Bytes of the segment of an adapter's buffers: one for each descriptor of both rings.
pub const BUFFERS_BYTES: u64 = (2 * RING * SLOT_BYTES) as u64;
/// Bytes before the slots in the segment of an inbox.
pub const INBOX_BYTES: usize = PAGE;
/// Most frames that wait for one socket.
pub const QUOTA_MAX: u64 = 128;

/// Returns the bytes of the segment of an inbox with so many slots.
#[must_use]
pub const fn inbox_bytes(quota: u16) -> u64 {
    (INBOX_BYTES + quota as usize * SLOT_BYTES).next_multiple_of(PAGE) as u64
}

/// Most bytes of the payload of a datagram that is not fragmented.
pub const PAYLOAD_MAX: u64 = 1_472;
/// Bytes of the longest frame without its checksum.
pub const FRAME_MAX: usize = 1_514;
/// Frames that wait to be sent, of one socket.
pub const OUT_FRAMES: usize = 8;
/// Bytes of the segment of a pipe of frames to send.
pub const OUT_BYTES: u64 =
    (128 + OUT_FRAMES * (16 + size_of::<OutFrame>())).next_multiple_of(PAGE) as u64;

plain! {
    /// A frame to send, without its checksum.
    pub struct OutFrame {
        /// Bytes of the frame.
        pub length: u32,
        /// Fills the record up to whole words.
        pub spare: u32,
        pub data: [u8; FRAME_MAX.next_multiple_of(8)],
    }
}

/// The work of the thread that receives, each time it is woken.
pub const RECEIVE: &str = "netd.receive";
/// The work of the thread that receives, for each frame that came.
pub const RECEIVE_FRAME: &str = "netd.receive.frame";
/// The work of the thread that sends, for each frame.
pub const SEND_FRAME: &str = "netd.send.frame";
/// The work of a program for one datagram that it takes.
pub const TAKE: &str = "socket.take";

/// Returns the distance that an adapter keeps between two interrupts, in ns, so that the kernel
/// sees them at least `interval_ns` apart: it may see one late, and the next at once.
#[must_use]
pub const fn moderation(interval_ns: u64) -> u64 {
    interval_ns.saturating_add(LATE_NS)
}

/// The longest that the kernel is expected to see an interrupt late, in ns.
const LATE_NS: u64 = 20_000;

/// The setting of `netd` with its adapter, as the words of [`AdapterTerms`].
pub const ADAPTER_SETTING: &str = "adapter";
/// The setting with sockets, of `netd` and of programs: the words of [`SocketTerms`].
pub const SOCKETS_SETTING: &str = "sockets";

/// The setting of `netd` with what the plan assumes of arrivals: the words of [`WatchTerms`].
pub const WATCH_SETTING: &str = "watch";

/// The arrivals that the plan assumes: in any window of length Δ come at most `burst + (Δ +
/// jitter)·messages/per` frames, as the server sees them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WatchTerms {
    /// The number of a socket, or everything that comes to the adapter.
    pub socket: Option<u8>,
    pub burst: u64,
    pub messages: u64,
    pub per_ns: u64,
    /// The longest time from the wire until the server has sorted a frame.
    pub jitter_ns: u64,
}

/// Words of a watch in the setting.
const WATCH: usize = 5;

impl WatchTerms {
    /// Returns the numbers of the setting.
    #[must_use]
    pub const fn words(&self) -> [u64; WATCH] {
        let of = match self.socket {
            None => 0,
            Some(socket) => 1 + socket as u64,
        };
        [of, self.burst, self.messages, self.per_ns, self.jitter_ns]
    }

    /// Reads all watches in the numbers of a setting.
    pub fn all(words: &[u64]) -> impl Iterator<Item = WatchTerms> + '_ {
        let of = |[of, burst, messages, per_ns, jitter_ns]: &[u64; WATCH]| WatchTerms {
            socket: of.checked_sub(1).map(|socket| socket as u8),
            burst: *burst,
            messages: *messages,
            per_ns: *per_ns,
            jitter_ns: *jitter_ns,
        };
        words.as_chunks().0.iter().map(of)
    }
}

/// The setting of `netd` with the gates of its adapter, as the words of [`GateTerms`]. Without it
/// the adapter sends in the order of asking.
pub const GATES_SETTING: &str = "gates";
/// Most entries of the gates of an adapter.
pub const GATE_ENTRIES: usize = 16;
/// Bytes of heap of a `netd` whose adapter has gates.
pub const GATES_HEAP: u64 = 32 << 10;
/// Private semaphores of a `netd` whose adapter has gates: one guards its heap.
pub const GATES_SEMAPHORES: u16 = 2;
/// The work of the thread that sends, each time it looks at the gates or gives the adapter a frame.
pub const SEND_GATES: &str = "netd.send.gates";
/// The longest that an adapter is expected to take from the write of its register until a frame
/// that it has to fetch is on the wire, in ns.
pub const FETCH_NS: u64 = 5_000;

/// Buffers of an adapter with gates that only frames of a common time use: those of two turns.
pub const TIME_BUFFERS: usize = 8;

/// Returns how many frames of a socket may wait behind the gates of an adapter with so many sockets
/// that send. The rest waits in the socket's pipe, so no socket takes the room of another.
#[must_use]
pub const fn gated_room(senders: usize) -> usize {
    (RING - TIME_BUFFERS - 1) / if senders == 0 { 1 } else { senders }
}

/// The gates of an adapter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GateTerms<'a> {
    /// The time in which the thread that sends is sure to have a frame on the wire, in ns.
    pub guard_ns: u64,
    /// The beginning of a cycle by the clock of the host.
    pub base_ns: u64,
    /// The speed of the wire in Mbit/s.
    pub mbit: u64,
    /// The priorities with credit, as [`GateTerms::credit`] makes them.
    pub credits: &'a [u64],
    /// The entries, as [`GateTerms::entry`] makes them.
    pub entries: &'a [u64],
}

/// The place of the mask in the word of an entry, and of the priority in that of a credit.
const MASK: u32 = 56;

/// Returns the two parts of such a word.
fn parted(word: &u64) -> (u8, u64) {
    ((word >> MASK) as u8, word & !(0xff << MASK))
}

impl<'a> GateTerms<'a> {
    /// Returns the word of an entry. Its time is less than two years.
    #[must_use]
    pub const fn entry(mask: u8, interval_ns: u64) -> u64 {
        (mask as u64) << MASK | interval_ns & !(0xff << MASK)
    }

    /// Returns the mask and the time of each entry.
    pub fn entries(&self) -> impl Iterator<Item = (u8, u64)> + '_ {
        self.entries.iter().map(parted)
    }

    /// Returns the word of a priority with credit. Its idle slope is in kbit/s.
    #[must_use]
    pub const fn credit(priority: u8, idle_kbit: u64) -> u64 {
        GateTerms::entry(priority, idle_kbit)
    }

    /// Returns each priority with credit, and its idle slope in kbit/s.
    pub fn credits(&self) -> impl Iterator<Item = (u8, u64)> + '_ {
        self.credits.iter().map(parted)
    }

    /// Returns the first numbers of the setting. The credits follow, and then the entries.
    #[must_use]
    pub const fn head(&self) -> [u64; 4] {
        [self.guard_ns, self.base_ns, self.mbit, self.credits.len() as u64]
    }

    /// Reads the numbers of the setting; `None` if there are no gates.
    #[must_use]
    pub fn of(words: &'a [u64]) -> Option<GateTerms<'a>> {
        let ([guard_ns, base_ns, mbit, count], rest) = words.split_first_chunk()?;
        let (credits, entries) = rest.split_at_checked(usize::try_from(*count).ok()?)?;
        let [guard_ns, base_ns, mbit] = [*guard_ns, *base_ns, *mbit];
        Some(GateTerms { guard_ns, base_ns, mbit, credits, entries })
    }
}

/// The settings of a process of `netd` for its adapter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdapterTerms {
    /// The number of the adapter on its host.
    pub number: u8,
    /// The address of the adapter.
    pub mac: [u8; 6],
    pub part: AdapterPart,
}

/// The part of an adapter's work that a process of `netd` does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AdapterPart {
    /// The process drives a card, and does all.
    Card {
        /// The least distance of two interrupts that the card keeps, in ns.
        moderation_ns: u64,
    },
    /// The process reads the pipe from a USB network device.
    Comes,
    /// The process writes the pipe to a USB network device: one frame of at most so many bytes in
    /// this time, in ns.
    Goes { period_ns: u64, bytes: u16 },
}

/// The place of the bytes of a frame behind the number of a part.
const PART_BYTES: u32 = 8;

impl AdapterPart {
    const fn words(self) -> [u64; 2] {
        match self {
            AdapterPart::Card { moderation_ns } => [0, moderation_ns],
            AdapterPart::Comes => [1, 0],
            AdapterPart::Goes { period_ns, bytes } => [(bytes as u64) << PART_BYTES | 2, period_ns],
        }
    }

    const fn of([part, value]: [u64; 2]) -> Option<AdapterPart> {
        match part & 0xff {
            0 => Some(AdapterPart::Card { moderation_ns: value }),
            1 => Some(AdapterPart::Comes),
            2 => Some(AdapterPart::Goes { period_ns: value, bytes: (part >> PART_BYTES) as u16 }),
            _ => None,
        }
    }
}

impl AdapterTerms {
    /// Returns the numbers of the setting.
    #[must_use]
    pub const fn words(&self) -> [u64; 4] {
        let [part, value] = self.part.words();
        [self.number as u64, of_mac(self.mac), part, value]
    }

    /// Reads the numbers of the setting.
    #[must_use]
    pub fn of(words: &[u64]) -> Option<AdapterTerms> {
        let [number, mac, part, value] = *words else { return None };
        let part = AdapterPart::of([part, value])?;
        Some(AdapterTerms { number: number as u8, mac: to_mac(mac), part })
    }
}

/// The place where the datagrams of a socket go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// The address of the host.
    pub address: [u8; 4],
    pub port: u16,
    /// The adapter that is the next on the way.
    pub mac: [u8; 6],
}

/// The port of a socket that gets whole frames: those that no other socket of its adapter wants. No
/// datagram has this port.
pub const REST: u16 = 0;

/// The settings of a socket, which `netd` and its program get.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SocketTerms {
    /// The key of the socket's name.
    pub name: Key,
    /// The number of the socket on its host.
    pub number: u8,
    /// The number of the adapter.
    pub adapter: u8,
    /// Whether frames may bypass the layers.
    pub real_time: bool,
    /// The priority in the tag of the frames that it sends, 0 to 7; without one they have no tag.
    pub priority: Option<u8>,
    /// The port of its datagrams, or [`REST`].
    pub port: u16,
    pub address: [u8; 4],
    /// The address of the adapter.
    pub mac: [u8; 6],
    /// The most frames that wait.
    pub quota: u16,
    /// The most bytes of the payload of a datagram that it sends.
    pub bytes: u16,
    /// The place where datagrams go, if the socket sends.
    pub peer: Option<Peer>,
    /// Whether the server looks for frames to send by itself, and nobody tells it of any.
    pub is_polled: bool,
}

/// The bit that says that the server looks for frames by itself.
const POLLED: u64 = 1 << 5;
/// The bit that says that frames have a tag, and the place of the priority in it.
const TAGGED: u64 = 1 << 1;
const PRIORITY: u32 = 2;
/// The place of the bytes of a payload, and the bits of their number.
const BYTES_AT: u32 = 48;
const BYTES: u64 = 0x7ff;
const _: () = assert!(PAYLOAD_MAX <= BYTES);

/// Words of a socket in the setting.
const TERMS: usize = 5;

impl SocketTerms {
    /// Returns whether it gets the frames that no other socket wants.
    #[must_use]
    pub const fn is_rest(&self) -> bool {
        self.port == REST
    }

    /// Returns whether its program may send.
    #[must_use]
    pub const fn sends(&self) -> bool {
        self.peer.is_some() || self.is_rest()
    }

    /// Returns the numbers of the setting for this socket.
    #[must_use]
    pub const fn words(&self) -> [u64; TERMS] {
        let own = u32::from_be_bytes(self.address) as u64;
        let tag = match self.priority {
            Some(priority) => TAGGED | (priority as u64 & 7) << PRIORITY,
            None => 0,
        };
        let polled = if self.is_polled { POLLED } else { 0 };
        let flags = (self.adapter as u64) << 8 | polled | tag | self.real_time as u64;
        let number = own << 32 | (self.port as u64) << 16 | flags;
        let mac = (self.quota as u64) << 48 | of_mac(self.mac);
        let sent = (self.bytes as u64 & BYTES) << BYTES_AT;
        let (to, by) = match self.peer {
            None => (sent, 0),
            Some(peer) => {
                let address = u32::from_be_bytes(peer.address) as u64;
                (1 << 63 | sent | address << 16 | peer.port as u64, of_mac(peer.mac))
            }
        };
        [self.name.0, number, mac, to, (self.number as u64) << 48 | by]
    }

    /// Reads the sockets in the numbers of a setting.
    pub fn all(words: &[u64]) -> impl Iterator<Item = SocketTerms> + '_ {
        words.as_chunks::<TERMS>().0.iter().map(|[name, own, mac, to, by]| SocketTerms {
            name: Key(*name),
            number: (by >> 48) as u8,
            adapter: (own >> 8) as u8,
            real_time: own & 1 != 0,
            priority: (own & TAGGED != 0).then_some((own >> PRIORITY & 7) as u8),
            port: (own >> 16) as u16,
            address: ((own >> 32) as u32).to_be_bytes(),
            mac: to_mac(*mac),
            quota: (mac >> 48) as u16,
            bytes: (to >> BYTES_AT & BYTES) as u16,
            is_polled: own & POLLED != 0,
            peer: (to >> 63 != 0).then(|| Peer {
                address: ((to >> 16) as u32).to_be_bytes(),
                port: *to as u16,
                mac: to_mac(*by),
            }),
        })
    }
}

const fn of_mac([a, b, c, d, e, f]: [u8; 6]) -> u64 {
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

const fn to_mac(word: u64) -> [u8; 6] {
    let [_, _, a, b, c, d, e, f] = word.to_be_bytes();
    [a, b, c, d, e, f]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_survive_their_words() {
        let mac = [2, 0, 0xff, 1, 0x80, 9];
        let parts = [
            AdapterPart::Card { moderation_ns: 220_000 },
            AdapterPart::Comes,
            AdapterPart::Goes { period_ns: 4_000_000, bytes: 1_514 },
        ];
        for part in parts {
            let adapter = AdapterTerms { number: 3, mac, part };
            assert_eq!(AdapterTerms::of(&adapter.words()), Some(adapter));
        }
        assert_eq!((AdapterTerms::of(&[]), AdapterTerms::of(&[3, 1, 3, 0])), (None, None));
        let peer = Peer { address: [255, 0, 0, 1], port: 65_535, mac: [0xfe; 6] };
        let first = SocketTerms {
            name: Key::new("commands"),
            number: 15,
            adapter: 3,
            real_time: true,
            priority: Some(7),
            port: 65_535,
            address: [10, 0, 0, 255],
            mac: [0xfe, 1, 2, 3, 4, 0xff],
            quota: 128,
            bytes: PAYLOAD_MAX as u16,
            peer: Some(peer),
            is_polled: true,
        };
        let second = SocketTerms { peer: None, real_time: false, number: 0, port: 1, ..first };
        let second = SocketTerms { priority: None, is_polled: false, bytes: 1, ..second };
        let words = [first.words(), second.words()].concat();
        assert!(SocketTerms::all(&words).eq([first, second]));
        let rest = SocketTerms { port: REST, ..second };
        assert!(first.sends() && !second.sends() && rest.sends());
        assert!(rest.is_rest() && !second.is_rest());
        assert_eq!(SocketTerms::all(&words[..4]).count(), 0);
    }

    #[test]
    fn watches_survive_their_words() {
        let adapter =
            WatchTerms { socket: None, burst: 3, messages: 2_000, per_ns: 7, jitter_ns: 9 };
        let socket = WatchTerms { socket: Some(15), messages: 1, ..adapter };
        let words = [adapter.words(), socket.words()].concat();
        assert!(WatchTerms::all(&words).eq([adapter, socket]));
    }

    #[test]
    fn gates_survive_their_words() {
        let entries = [GateTerms::entry(0xff, 1), GateTerms::entry(1, 1_000_000_000)];
        let credits = [GateTerms::credit(7, 1_000_000)];
        let (guard_ns, base_ns, mbit) = (60_000, 7, 100);
        let gates = GateTerms { guard_ns, base_ns, mbit, credits: &credits, entries: &entries };
        let words = [&gates.head()[..], &credits, &entries].concat();
        assert_eq!(GateTerms::of(&words), Some(gates.clone()));
        assert!(gates.entries().eq([(0xff, 1), (1, 1_000_000_000)]));
        assert!(gates.credits().eq([(7, 1_000_000)]));
        assert_eq!(GateTerms::of(&words[..2]), None);
        assert_eq!(GateTerms::of(&words[..4]), None, "fewer credits than are named");
    }

    #[test]
    fn sizes_are_whole_pages() {
        for bytes in [RINGS_BYTES, BUFFERS_BYTES, OUT_BYTES, inbox_bytes(1), inbox_bytes(128)] {
            assert_eq!(bytes % PAGE as u64, 0);
        }
        assert_eq!(inbox_bytes(3), 12 << 10);
    }
}
