//! Attacks on the way of a frame: counts that add up after every step, readers that lie, buffers
//! that are never lost or held twice, and the two ways beside each other.

use core::net::{Ipv4Addr, SocketAddrV4};
use diapason_ether::{
    Buffers, Demux, Discard, FrameCounts, FrameInbox, LazyReceiver, Listener, ListenerRefusal,
    NetworkThread, Posted, SocketBuffers, SocketReader, TCP, UdpFrame,
};
use diapason_random::Random;
use std::collections::BTreeMap;

const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const BUFFER: usize = 2_048;

/// The memory of an adapter's buffers.
struct Memory(Vec<[u8; BUFFER]>);

impl Memory {
    fn new(buffers: u16) -> Memory {
        Memory(vec![[0; BUFFER]; usize::from(buffers)])
    }
}

impl Buffers for Memory {
    fn buffer(&self, number: u16) -> &[u8] {
        self.0.get(usize::from(number)).map_or(&[], |bytes| bytes)
    }
}

impl SocketBuffers for Memory {
    fn buffer_mut(&mut self, number: u16) -> &mut [u8] {
        self.0.get_mut(usize::from(number)).map_or(&mut [], |bytes| bytes)
    }
}

fn flow(port: u16, checksum: bool) -> UdpFrame {
    UdpFrame {
        source_mac: [2, 0, 0, 0, 0, 1],
        destination_mac: [2, 0, 0, 0, 0, 2],
        tag: None,
        source: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 4_000),
        destination: SocketAddrV4::new(OWN, port),
        checksum,
    }
}

/// A frame of a random kind: good, with a checksum, damaged, unknown. A number is its payload.
fn frame(random: &mut Random, number: u64, into: &mut [u8; BUFFER]) -> usize {
    let port = 5_000 + random.below(5) as u16;
    let mut payload = [0; 1_472];
    payload[..8].copy_from_slice(&number.to_le_bytes());
    let length = random.between(8, 1_472) as usize;
    let bytes = flow(port, random.one_in(3)).write(&payload[..length], into).unwrap();
    match random.below(6) {
        0 => into[random.index(42)] ^= 1 << random.below(8),
        1 => return random.index(bytes),
        _ => {}
    }
    bytes
}

/// Three listeners, and the process for the rest if there is one.
fn listeners() -> [Listener; 3] {
    let slow = Listener { real_time: false, ..Listener::udp(OWN, 5_001, 7) };
    [Listener::udp(OWN, 5_000, 4), slow, Listener::udp(OWN, 5_002, 20)]
}

/// Everything that was offered is somewhere, once.
fn balanced<const L: usize, const B: usize>(
    demux: &Demux<'_, L, B>,
    receivers: &[LazyReceiver<'_>],
    waiting: u64,
    with_adapter: usize,
    buffers: usize,
) {
    let counts = demux.counts();
    assert_eq!(counts.offered, counts.passed + counts.all_discarded());
    let taken: u64 = receivers.iter().map(|receiver| receiver.counts().offered).sum();
    assert_eq!(counts.passed, taken + waiting);
    for counts in receivers.iter().map(LazyReceiver::counts) {
        assert_eq!(counts.offered, counts.passed + counts.all_discarded());
    }
    let (free, held) = demux.buffers();
    assert_eq!(free + held + with_adapter, buffers, "a buffer was lost, or is held twice");
}

fn random_run(seed: u64, with_rest: bool) -> FrameCounts {
    const BUFFERS: u16 = 40;
    let mut random = Random::new(seed);
    let inboxes: [FrameInbox; 4] = core::array::from_fn(|_| FrameInbox::default());
    let mut demux = Demux::<4, 64>::new(BUFFERS);
    let listeners = listeners();
    let mut receivers = Vec::new();
    for (listener, inbox) in listeners.iter().zip(&inboxes) {
        demux.listen(listener, inbox).unwrap();
        receivers.push(LazyReceiver::new(inbox, listener));
    }
    if with_rest {
        demux.listen_to_rest(&inboxes[3], 5).unwrap();
        receivers.push(LazyReceiver::new(&inboxes[3], &listeners[0]));
    }
    let mut memory = Memory::new(BUFFERS);
    let mut ring: Vec<u16> = Vec::new();
    let mut waiting = [0_u64; 4];
    let mut next = [0_u64; 4];
    for number in 0..4_000 {
        while ring.len() < 6 && random.below(8) > 0 {
            let Some(buffer) = demux.refill() else { break };
            assert!(!ring.contains(&buffer));
            ring.push(buffer);
        }
        if random.below(3) > 0 {
            if ring.is_empty() {
                demux.lost();
            } else {
                let buffer = ring.remove(0);
                let bytes = &mut memory.0[usize::from(buffer)];
                let length = frame(&mut random, number, bytes);
                if let Some(listener) = demux.arrive(buffer, &bytes[..length]).listener() {
                    waiting[usize::from(listener)] += 1;
                    assert!(waiting[usize::from(listener)] <= 20);
                }
            }
        }
        let reader = random.index(receivers.len());
        if random.below(3) == 0 && waiting[reader] > 0 {
            let mut into = [0; 1_472];
            let room = if random.one_in(9) { 100 } else { into.len() };
            let taken = receivers[reader].take(&memory, &mut into[..room]).unwrap();
            waiting[reader] -= 1;
            if let Ok(received) = taken {
                // Frames of one listener come in the order in which they arrived.
                assert!(received.length >= 8);
                let came = u64::from_le_bytes(*into.first_chunk().unwrap());
                assert!(came >= next[reader]);
                next[reader] = came.max(next[reader]);
            }
        } else if waiting[reader] == 0 {
            assert!(receivers[reader].take(&memory, &mut []).is_none());
        }
        balanced(&demux, &receivers, waiting.iter().sum(), ring.len(), usize::from(BUFFERS));
    }
    demux.counts().clone()
}

#[test]
fn counts_add_up_after_every_step() {
    let mut reasons = BTreeMap::new();
    for seed in 0..50 {
        let counts = random_run(seed, seed % 2 == 0);
        for (reason, count) in counts.reasons() {
            *reasons.entry(reason.name()).or_insert(0) += count;
        }
    }
    for reason in ["quota", "unregistered", "short", "ether-type", "fragment", "version"] {
        assert!(reasons.contains_key(reason), "{reasons:?}");
    }
}

#[test]
fn a_reader_that_takes_more_than_there_was_loses_only_its_own_frames() {
    let inboxes: [FrameInbox; 2] = core::array::from_fn(|_| FrameInbox::default());
    let mut demux = Demux::<2, 16>::new(12);
    demux.listen(&Listener::udp(OWN, 5_000, 4), &inboxes[0]).unwrap();
    let good = Listener::udp(OWN, 5_001, 2);
    demux.listen(&good, &inboxes[1]).unwrap();
    let mut memory = Memory::new(12);
    let offer = |demux: &mut Demux<'_, 2, 16>, memory: &mut Memory, port| {
        let buffer = demux.refill().expect("the quotas leave buffers");
        let bytes = &mut memory.0[usize::from(buffer)];
        let length = flow(port, false).write(&[1; 32], bytes).unwrap();
        demux.arrive(buffer, &bytes[..length])
    };
    assert_eq!(offer(&mut demux, &mut memory, 5_000), Posted::Wakes(0));
    // The reader says that it took two, and later that it took one.
    let mut liar = diapason_ether::InboxReader::new(&inboxes[0]);
    (0..2).for_each(|_| liar.done());
    demux.reclaim();
    let broken = Posted::Discarded(Discard::Broken);
    assert_eq!(offer(&mut demux, &mut memory, 5_000), broken);
    let mut receiver = LazyReceiver::new(&inboxes[1], &good);
    for _ in 0..1_000 {
        assert_eq!(offer(&mut demux, &mut memory, 5_000), broken);
        assert_eq!(offer(&mut demux, &mut memory, 5_001), Posted::Wakes(1));
        assert_eq!(receiver.take(&memory, &mut [0; 32]).unwrap().unwrap().length, 32);
        demux.reclaim();
        assert_eq!(demux.buffers(), (11, 1), "the liar keeps the one that it had");
    }
}

#[test]
fn a_listener_that_never_reads_holds_its_quota_and_no_more() {
    let inboxes: [FrameInbox; 2] = core::array::from_fn(|_| FrameInbox::default());
    let mut demux = Demux::<2, 16>::new(10);
    demux.listen(&Listener::udp(OWN, 5_000, 4), &inboxes[0]).unwrap();
    let good = Listener::udp(OWN, 5_001, 2);
    demux.listen(&good, &inboxes[1]).unwrap();
    let mut memory = Memory::new(10);
    let mut receiver = LazyReceiver::new(&inboxes[1], &good);
    for round in 0..100 {
        for port in [5_000, 5_001] {
            let buffer = demux.refill().unwrap();
            let bytes = &mut memory.0[usize::from(buffer)];
            let length = flow(port, false).write(&[1; 32], bytes).unwrap();
            let expected = match port {
                5_001 => Posted::Wakes(1),
                _ if round == 0 => Posted::Wakes(0),
                _ if round < 4 => Posted::Waits(0),
                _ => Posted::Discarded(Discard::Quota),
            };
            assert_eq!(demux.arrive(buffer, &bytes[..length]), expected);
        }
        assert!(receiver.take(&memory, &mut [0; 32]).unwrap().unwrap().bypassed);
    }
    assert_eq!(demux.counts().discarded(Discard::Quota), 96);
}

/// Both ways deliver the same payloads from the same senders, in the same order.
#[test]
fn the_conventional_way_delivers_the_same() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let lazy_inbox = FrameInbox::default();
        let (all, socket) = (FrameInbox::default(), FrameInbox::default());
        let listener = Listener::udp(OWN, 5_000, 100);
        let mut lazy = Demux::<1, 128>::new(120);
        lazy.listen(&listener, &lazy_inbox).unwrap();
        let mut everything = Demux::<1, 128>::new(120);
        everything.listen_to_rest(&all, 100).unwrap();
        let mut network = NetworkThread::<1, 128>::new(&all, 120);
        assert_eq!(network.listen(&listener, &socket), Some(0));
        assert_eq!(network.listen(&listener, &socket), None);
        let mut memories = [Memory::new(120), Memory::new(120), Memory::new(120)];
        for number in 0..100 {
            let (first, second) = (lazy.refill().unwrap(), everything.refill().unwrap());
            let bytes = &mut memories[0].0[usize::from(first)];
            let length = frame(&mut random, number, bytes);
            let copy = *bytes;
            lazy.arrive(first, &copy[..length]);
            memories[1].0[usize::from(second)] = copy;
            everything.arrive(second, &copy[..length]);
        }
        let [lazy_memory, frames, payloads] = &mut memories;
        while network.process(frames, payloads).is_some() {}
        let (mut receiver, mut reader) =
            (LazyReceiver::new(&lazy_inbox, &listener), SocketReader::new(&socket));
        let mut delivered = 0;
        loop {
            let (mut one, mut two) = ([0; 1_472], [0; 1_472]);
            let first = loop {
                match receiver.take(lazy_memory, &mut one) {
                    Some(Err(_)) => {}
                    other => break other.map(|taken| taken.unwrap()),
                }
            };
            let second = reader.take(payloads, &mut two).map(|taken| taken.unwrap());
            let both = (first.map(|first| (first.source, first.length)), second);
            assert_eq!(both.0, both.1);
            assert_eq!(one, two);
            if both.0.is_none() {
                break;
            }
            delivered += 1;
        }
        assert!(delivered > 3);
        assert_eq!(receiver.counts().passed, delivered);
        assert_eq!((network.counts().passed, reader.counts().passed), (delivered, delivered));
        let counts = network.counts();
        assert_eq!(counts.offered, counts.passed + counts.all_discarded());
    }
}

#[test]
fn a_payload_longer_than_the_buffer_of_a_socket_is_counted() {
    struct Small(Memory);
    impl SocketBuffers for Small {
        fn buffer_mut(&mut self, number: u16) -> &mut [u8] {
            &mut self.0.buffer_mut(number)[..100]
        }
    }
    let (all, socket) = (FrameInbox::default(), FrameInbox::default());
    let mut demux = Demux::<1, 8>::new(8);
    demux.listen_to_rest(&all, 4).unwrap();
    let mut network = NetworkThread::<1, 8>::new(&all, 2);
    network.listen(&Listener::udp(OWN, 5_000, 4), &socket).unwrap();
    let (mut memory, mut small) = (Memory::new(8), Small(Memory::new(2)));
    for (length, expected) in [
        (94, Ok(Posted::Wakes(0))),
        (95, Err(Discard::Long)),
        (1, Ok(Posted::Waits(0))),
        (1, Err(Discard::NoBuffer)),
    ] {
        let buffer = demux.refill().unwrap();
        let bytes = &mut memory.0[usize::from(buffer)];
        let frame = flow(5_000, true).write(&[9; 200][..length], bytes).unwrap();
        demux.arrive(buffer, &bytes[..frame]);
        assert_eq!(network.process(&memory, &mut small), Some(expected));
    }
}

#[test]
fn listeners_that_cannot_be_are_refused() {
    let inbox = FrameInbox::default();
    let mut demux = Demux::<4, 8>::new(8);
    let good = Listener::udp(OWN, 5_000, 4);
    let others = [const { FrameInbox::new() }; 3];
    assert_eq!(demux.listen(&good, &inbox), Ok(0));
    assert_eq!(demux.listen(&good, &inbox), Err(ListenerRefusal::Taken));
    let other = |port, quota| Listener::udp(OWN, port, quota);
    assert_eq!(demux.listen(&other(0, 4), &inbox), Err(ListenerRefusal::PortZero));
    assert_eq!(demux.listen(&other(1, 0), &inbox), Err(ListenerRefusal::Quota));
    assert_eq!(demux.listen(&other(1, 129), &inbox), Err(ListenerRefusal::Quota));
    assert_eq!(demux.listen_to_rest(&inbox, 0), Err(ListenerRefusal::Quota));
    let tcp = Listener { protocol: TCP, ..good };
    assert_eq!(demux.listen(&tcp, &others[0]), Ok(1));
    assert_eq!(demux.listen_to_rest(&others[1], 8), Ok(2));
    assert_eq!(demux.listen(&other(2, 1), &others[2]), Ok(3));
    assert_eq!(demux.listen(&other(1, 1), &inbox), Err(ListenerRefusal::Full));
    assert_eq!(demux.listen_to_rest(&inbox, 8), Err(ListenerRefusal::Full));
}

#[test]
fn the_filter_finds_each_of_many_listeners() {
    let mut random = Random::new(8);
    let inboxes: Vec<FrameInbox> = (0..64).map(|_| FrameInbox::default()).collect();
    let mut demux = Demux::<64, 200>::new(200);
    let mut ports: Vec<u16> = Vec::new();
    for inbox in &inboxes {
        let port = loop {
            let port = random.between(1, 65_535) as u16;
            if !ports.contains(&port) {
                break port;
            }
        };
        assert_eq!(demux.listen(&Listener::udp(OWN, port, 2), inbox), Ok(ports.len() as u8));
        ports.push(port);
    }
    let mut bytes = [0; BUFFER];
    for (number, port) in ports.iter().enumerate() {
        let length = flow(*port, false).write(&[1; 32], &mut bytes).unwrap();
        let buffer = demux.refill().unwrap();
        assert_eq!(demux.arrive(buffer, &bytes[..length]), Posted::Wakes(number as u8));
        let unknown = (1..).find(|port| !ports.contains(port)).unwrap();
        let length = flow(unknown, false).write(&[1; 32], &mut bytes).unwrap();
        let buffer = demux.refill().unwrap();
        let nobody = Posted::Discarded(Discard::Unregistered);
        assert_eq!(demux.arrive(buffer, &bytes[..length]), nobody);
    }
}
