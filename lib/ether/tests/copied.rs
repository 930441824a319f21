//! Listeners with slots of their own: frames are copied whole, counts add up, and a listener that
//! lies or never reads takes nothing from others.

use core::net::{Ipv4Addr, SocketAddrV4};
use diapason_ether::{
    Buffers, CopyingDemux, Discard, FrameInbox, InboxReader, LazyReceiver, Listener,
    ListenerRefusal, Posted, Slots, UdpFrame,
};
use diapason_random::Random;

const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const SLOT: usize = 2_048;

/// The slots of three listeners.
struct Memory([Vec<[u8; SLOT]>; 3]);

impl Memory {
    fn new() -> Memory {
        Memory(core::array::from_fn(|_| vec![[0; SLOT]; 20]))
    }
}

impl Slots for Memory {
    fn copy(&mut self, listener: u8, slot: u16, frame: &[u8]) {
        self.0[usize::from(listener)][usize::from(slot)][..frame.len()].copy_from_slice(frame);
    }
}

struct Seen<'a>(&'a [[u8; SLOT]]);

impl Buffers for Seen<'_> {
    fn buffer(&self, number: u16) -> &[u8] {
        self.0.get(usize::from(number)).map_or(&[], |bytes| bytes)
    }
}

fn frame(port: u16, checksum: bool, payload: &[u8]) -> Vec<u8> {
    let flow = UdpFrame {
        source_mac: [2, 0, 0, 0, 0, 1],
        destination_mac: [2, 0, 0, 0, 0, 2],
        tag: None,
        source: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 4_000),
        destination: SocketAddrV4::new(OWN, port),
        checksum,
    };
    let mut frame = [0; SLOT];
    let bytes = flow.write(payload, &mut frame).unwrap();
    frame[..bytes].to_vec()
}

fn listeners() -> [Listener; 3] {
    [Listener::udp(OWN, 5_000, 4), Listener::udp(OWN, 5_001, 7), Listener::udp(OWN, 5_002, 20)]
}

#[test]
fn each_frame_is_delivered_whole_and_in_order_or_counted() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let inboxes: [FrameInbox; 3] = core::array::from_fn(|_| FrameInbox::default());
        let mut demux = CopyingDemux::<4>::default();
        let (all, mut memory) = (listeners(), Memory::new());
        let mut receivers = Vec::new();
        for (number, (listener, inbox)) in all.iter().zip(&inboxes).enumerate() {
            assert_eq!(demux.listen(listener, inbox), Ok(number as u8));
            receivers.push(LazyReceiver::new(inbox, listener));
        }
        let (mut waiting, mut next) = ([0_u64; 3], [0_u64; 3]);
        for number in 1..4_000_u64 {
            if random.below(3) > 0 {
                let port = 5_000 + random.below(4) as u16;
                let mut payload = vec![number as u8; random.between(8, 1_472) as usize];
                payload[..8].copy_from_slice(&number.to_le_bytes());
                let bytes = frame(port, random.one_in(3), &payload);
                if let Some(listener) = demux.arrive(&bytes, &mut memory).listener() {
                    waiting[usize::from(listener)] += 1;
                    let quota = all[usize::from(listener)].quota;
                    assert!(waiting[usize::from(listener)] <= quota.into());
                }
            }
            let reader = random.index(3);
            if random.one_in(2) && waiting[reader] > 0 {
                let mut into = [0; 1_472];
                let taken = receivers[reader].take(&Seen(&memory.0[reader]), &mut into);
                let length = taken.unwrap().unwrap().length;
                let came = u64::from_le_bytes(*into.first_chunk().unwrap());
                assert!(came > next[reader], "frames of a listener come in order");
                assert!(into[8..length].iter().all(|byte| *byte == came as u8), "one was damaged");
                next[reader] = came;
                waiting[reader] -= 1;
            }
            let counts = demux.counts();
            assert_eq!(counts.offered, counts.passed + counts.all_discarded());
            let taken: u64 = receivers.iter().map(|receiver| receiver.counts().offered).sum();
            assert_eq!(counts.passed, taken + waiting.iter().sum::<u64>());
        }
        let own = (0..3).map(|number| demux.counts_of(number).unwrap());
        let passed: u64 = own.map(|counts| counts.passed).sum();
        assert_eq!(passed, demux.counts().passed);
        assert!(demux.counts().discarded(Discard::Quota) > 0);
        assert!(demux.counts().discarded(Discard::Unregistered) > 0);
    }
}

#[test]
fn a_reader_that_lies_or_sleeps_costs_others_nothing() {
    let inboxes: [FrameInbox; 3] = core::array::from_fn(|_| FrameInbox::default());
    let mut demux = CopyingDemux::<4>::default();
    let (all, mut memory) = (listeners(), Memory::new());
    for (listener, inbox) in all.iter().zip(&inboxes) {
        demux.listen(listener, inbox).unwrap();
    }
    let mut liar = InboxReader::new(&inboxes[0]);
    (0..9).for_each(|_| liar.done());
    let mut honest = LazyReceiver::new(&inboxes[2], &all[2]);
    for round in 0..500 {
        let lied = demux.arrive(&frame(5_000, false, &[1; 9]), &mut memory);
        let slept = demux.arrive(&frame(5_001, false, &[2; 9]), &mut memory);
        let came = demux.arrive(&frame(5_002, false, &[3; 9]), &mut memory);
        if round >= 7 {
            assert_eq!(lied, Posted::Discarded(Discard::Broken));
            assert_eq!(slept, Posted::Discarded(Discard::Quota));
        }
        assert_eq!(came, Posted::Wakes(2));
        let mut into = [0; 9];
        let taken = honest.take(&Seen(&memory.0[2]), &mut into).unwrap().unwrap();
        assert!(taken.bypassed && into == [3; 9]);
    }
}

#[test]
fn a_server_that_starts_again_goes_on_where_its_readers_are() {
    let inbox = FrameInbox::default();
    let (listener, mut memory) = (listeners()[0], Memory::new());
    let mut receiver = LazyReceiver::new(&inbox, &listener);
    for payload in 0..10_u8 {
        let mut demux = CopyingDemux::<4>::default();
        demux.listen(&listener, &inbox).unwrap();
        let bytes = frame(5_000, true, &[payload; 20]);
        assert_eq!(demux.arrive(&bytes, &mut memory), Posted::Wakes(0));
        let mut into = [0; 20];
        receiver.take(&Seen(&memory.0[0]), &mut into).unwrap().unwrap();
        assert_eq!(into, [payload; 20]);
        assert!(receiver.take(&Seen(&memory.0[0]), &mut into).is_none());
    }
}

#[test]
fn what_nobody_wants_goes_to_the_listener_of_the_rest() {
    let (inbox, other) = (FrameInbox::new(), FrameInbox::new());
    let (mut demux, mut memory) = (CopyingDemux::<4>::default(), Memory::new());
    assert_eq!(demux.listen(&listeners()[0], &inbox), Ok(0));
    assert_eq!(demux.listen_to_rest(&other, 0), Err(ListenerRefusal::Quota));
    assert_eq!(demux.listen_to_rest(&other, 129), Err(ListenerRefusal::Quota));
    assert_eq!(demux.listen_to_rest(&other, 2), Ok(1));
    assert_eq!(demux.arrive(&frame(5_000, false, b"mine"), &mut memory), Posted::Wakes(0));
    let mut arp = [0xff; 60];
    arp[12..14].copy_from_slice(&[8, 6]);
    assert_eq!(demux.arrive(&arp, &mut memory), Posted::Wakes(1));
    let strange = frame(5_009, true, b"of a port that is nobody's");
    assert_eq!(demux.arrive(&strange, &mut memory), Posted::Waits(1));
    // A flood of others' frames fills the quota of the rest, and takes nothing from a socket.
    assert_eq!(demux.arrive(&arp, &mut memory), Posted::Discarded(Discard::Quota));
    assert_eq!(demux.arrive(&frame(5_000, false, b"more"), &mut memory), Posted::Waits(0));
    let mut reader = InboxReader::new(&other);
    for sent in [&arp[..], &strange] {
        let post = reader.peek().unwrap();
        let slot = &memory.0[1][usize::from(post.buffer)];
        assert_eq!((post.at, &slot[..usize::from(post.length)]), (0, sent));
        reader.done();
    }
    assert_eq!(reader.peek(), None);
}
