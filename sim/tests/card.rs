//! The driver of the 82574L on the model of the adapter: one whose reset clears its registers, and
//! one that keeps them, as an emulator does.

#[path = "support/card.rs"]
mod support;

use diapason_abi::Nanos;
use diapason_ether::adapter::{BUFFER_BYTES, RING, Taken, register};
use diapason_ether::{Demux, Discard, FrameInbox, InboxReader};
use diapason_random::Random;
use diapason_sim::{Card, EthernetWire, FunctionModel};
use support::{Host, address, started};

/// Longer than the longest frame takes.
const WHILE: u64 = 100_000;

/// Lets a frame come over the wire.
fn hear(host: &Host, frame: &[u8], damaged: bool) {
    host.card.borrow().hear(host.now.get(), frame, damaged);
    host.pass(host.now.get() + Nanos(WHILE));
}

fn frame(to: u8, number: u8, bytes: usize) -> Vec<u8> {
    let mut frame = vec![number; bytes];
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, to]);
    frame
}

fn random_run(seed: u64, keeps: bool) -> (u64, u64) {
    let host = Host::alone(keeps);
    let (mut nic, _) = started(&host, 2);
    let mut random = Random::new(seed);
    let inbox = FrameInbox::default();
    let mut demux = Demux::<1, 256>::new(100);
    demux.listen_to_rest(&inbox, 30).unwrap();
    let mut reader = InboxReader::new(&inbox);
    let (mut offered, mut lost, mut delivered, mut refused) = (0, 0, 0, 0);
    let mut expected = 0_u32;
    for number in 0..3_000_u32 {
        if random.below(3) > 0 {
            let length = if random.one_in(20) {
                random.between(2_049, 9_018) as usize
            } else {
                random.between(60, 1_518) as usize
            };
            let mut frame = frame(2, 0, length);
            frame[6..10].copy_from_slice(&number.to_le_bytes());
            offered += 1;
            lost += u64::from(host.free() < length.div_ceil(BUFFER_BYTES));
            hear(&host, &frame, random.one_in(30));
        }
        if random.one_in(4) {
            while let Some(Taken { buffer, length, fault, .. }) = nic.take() {
                match fault {
                    Some(reason) => drop(demux.refuse(buffer, reason)),
                    None => drop(demux.arrive(buffer, &host.bytes(buffer, length))),
                }
            }
            while nic.has_room() {
                let buffer = demux.refill().expect("a quota and a ring are fewer than all");
                nic.offer(buffer, address(buffer));
            }
            nic.publish();
            nic.arm();
        }
        if random.one_in(2)
            && let Some(post) = reader.peek()
        {
            let frame = host.bytes(post.buffer, 10);
            let came = u32::from_le_bytes(*frame.last_chunk().unwrap());
            assert!(came >= expected, "a frame came twice, or was overwritten");
            expected = came + 1;
            delivered += 1;
            reader.done();
        }
    }
    while let Some(Taken { buffer, fault, .. }) = nic.take() {
        refused += u64::from(fault == Some(Discard::Long));
        demux.refuse(buffer, fault.unwrap_or(Discard::Short));
    }
    assert_eq!(u64::from(nic.lost()), lost);
    assert_eq!(nic.lost(), 0);
    let counts = demux.counts();
    let long = counts.discarded(Discard::Long);
    assert!(long > 0 && counts.discarded(Discard::Damaged) > 0 && refused <= long);
    // Each frame is counted once, but a long one once for each of its two to five pieces.
    assert!(counts.offered - long <= offered - lost && offered - lost < counts.offered);
    assert!(delivered > 300);
    (offered, lost)
}

#[test]
fn frames_are_taken_in_order_or_counted() {
    let mut lost = 0;
    for seed in 0..20 {
        let both = [random_run(seed, false), random_run(seed, true)];
        assert_eq!(both[0], both[1]);
        lost += both[0].1;
    }
    assert!(lost > 0, "the ring was never empty");
}

#[test]
fn an_armed_adapter_interrupts_once_and_at_once_if_a_frame_waits() {
    let host = Host::alone(true);
    let (mut nic, _) = started(&host, 2);
    (0..8).for_each(|buffer| nic.offer(buffer, address(buffer)));
    nic.publish();
    let came = || {
        let _ = host.rang();
        host.rang.get()
    };
    hear(&host, &frame(2, 0, 60), false);
    assert_eq!(came(), 0, "it is not armed");
    nic.arm();
    assert_eq!(came(), 1, "a frame waits");
    hear(&host, &frame(2, 0, 60), false);
    assert_eq!(came(), 1, "one interrupt until it is armed again");
    assert!(nic.take().is_some() && nic.take().is_some() && nic.take().is_none());
    nic.arm();
    assert_eq!(came(), 2, "the second frame came since the first interrupt");
    nic.arm();
    assert_eq!(came(), 2);
}

#[test]
fn the_ring_takes_all_buffers_but_one_and_its_address_is_set() {
    let host = Host::alone(false);
    let (mut nic, _) = started(&host, 2);
    let mut count = 0;
    while nic.has_room() {
        nic.offer(count, address(count));
        count += 1;
    }
    nic.offer(200, address(200));
    nic.publish();
    assert_eq!(usize::from(count), RING - 1);
    assert_eq!(host.get(register::RDT), RING as u32 - 1);
    assert_eq!((host.get(register::RAL), host.get(register::RAH)), (2, 0x8000_0200));
    (0..RING).for_each(|_| hear(&host, &frame(2, 0, 60), false));
    assert_eq!(nic.lost(), 1);
    let buffers: Vec<u16> = core::iter::from_fn(|| nic.take()).map(|taken| taken.buffer).collect();
    assert_eq!(buffers, (0..count).collect::<Vec<u16>>());
}

/// A driver that takes what came while it takes frames is done only when the wire pauses.
#[test]
fn a_round_has_the_frames_that_were_there_when_it_began() {
    let host = Host::alone(false);
    let (mut nic, _) = started(&host, 2);
    assert_eq!(nic.ready(), 0);
    (0..RING as u16 - 1).for_each(|buffer| nic.offer(buffer, address(buffer)));
    nic.publish();
    (0..3).for_each(|_| hear(&host, &frame(2, 0, 60), false));
    let ready = nic.ready();
    assert_eq!(ready, 3);
    for _ in 0..ready {
        assert!(nic.take().is_some());
        hear(&host, &frame(2, 0, 60), false);
    }
    assert_eq!(nic.ready(), 3);
    (0..RING).for_each(|_| hear(&host, &frame(2, 0, 60), false));
    assert_eq!(nic.ready(), RING - 1 - 3, "a ring that is full of frames");
}

#[test]
fn frames_are_sent_in_order_and_a_full_ring_says_so() {
    let wire = EthernetWire::new(1_000);
    let (one, two) = (Host::of(Card::new(&wire).keeping()), Host::new(&wire));
    let (_, mut sender) = started(&one, 1);
    let (mut receiver, _) = started(&two, 2);
    for number in 0..200_u8 {
        one.put(0, &frame(2, number, 60 + usize::from(number)));
        assert!(sender.send(address(0), 60 + u16::from(number)));
        one.pass(one.now.get() + Nanos(WHILE));
        assert_eq!(sender.settle(), 0);
        receiver.offer(number.into(), address(number.into()));
        receiver.publish();
        two.pass(one.now.get());
        let taken = receiver.take().unwrap();
        assert_eq!(taken.length, 60 + usize::from(number));
        assert_eq!(two.bytes(taken.buffer, 60), frame(2, number, 60));
    }
    // Nothing is sent while no time passes.
    (1..RING).for_each(|_| assert!(sender.send(address(0), 60)));
    assert!(!sender.send(address(0), 60));
    assert_eq!(sender.settle(), RING - 1);
}

#[test]
fn frames_take_their_time_and_a_full_ring_loses_them() {
    let wire = EthernetWire::new(1_000);
    let (one, two) = (Host::new(&wire), Host::new(&wire));
    let (_, mut sender) = started(&one, 1);
    let (mut receiver, _) = started(&two, 2);
    assert_eq!(sender.link(), 1_000);
    (0..4).for_each(|buffer| receiver.offer(buffer, address(buffer)));
    receiver.publish();
    receiver.arm();
    // A frame for somebody else, then six for it: two more than it has buffers.
    for number in 0..7_u8 {
        one.put(number.into(), &frame(if number == 0 { 9 } else { 2 }, number, 100));
        assert!(sender.send(address(number.into()), 100));
    }
    assert_eq!(sender.settle(), 7);
    // 8 + 100 + 4 bytes, and 12 more between two frames, 8 ns each.
    assert_eq!(one.card.borrow().next_change(), Nanos(896));
    assert_eq!(two.card.borrow().next_change(), Nanos(896));
    two.pass(Nanos(1_887));
    assert!(!two.rang() && receiver.take().is_none());
    two.pass(Nanos(1_888));
    assert!(two.rang());
    two.pass(Nanos(10_000));
    assert!(!two.rang(), "one interrupt until it is armed again");
    for number in 1..5_u8 {
        let taken = receiver.take().unwrap();
        assert_eq!((taken.length, taken.fault), (100, None));
        assert_eq!(two.bytes(taken.buffer, 100), frame(2, number, 100));
    }
    assert!(receiver.take().is_none());
    assert_eq!((receiver.lost(), receiver.lost()), (2, 0));
    one.pass(Nanos(896 + 5 * 992));
    assert_eq!(sender.settle(), 1);
    one.pass(Nanos(896 + 6 * 992));
    assert_eq!(sender.settle(), 0);
    assert_eq!(sender.vacant(), Some(7));
}

#[test]
fn memory_that_is_not_the_drivers_stops_the_adapter() {
    let host = Host::of(Card::new(&EthernetWire::new(100)));
    let (mut receiver, mut sender) = started(&host, 1);
    assert_eq!(sender.link(), 100);
    receiver.offer(0, 4_096);
    receiver.publish();
    assert!(sender.send(16, 60));
    assert_eq!(host.card.borrow_mut().take_notes().len(), 1);
    assert_eq!(sender.settle(), 1, "it is never sent");
    assert_eq!(host.card.borrow().next_change(), Nanos::FOREVER);
}

/// A stranger sends as many frames as its rate and its time say, one after the other.
#[test]
fn a_flood_has_its_number_of_frames() {
    let host = Host::alone(false);
    let (mut nic, _) = started(&host, 2);
    let (from, until) = (Nanos(1_000), Nanos(1_000_001_000));
    let frame = frame(2, 7, 60);
    let words = "flood".to_owned();
    host.card.borrow_mut().flood(diapason_sim::Flood { from, until, rate: 9_999, frame, words });
    assert_eq!(host.card.borrow().next_change(), Nanos(1_000));
    let mut came = 0;
    for millis in 1..=1_100 {
        (0..RING as u16 - 1).for_each(|buffer| nic.offer(buffer, address(buffer)));
        nic.publish();
        host.pass(Nanos::from_millis(millis));
        came += core::iter::from_fn(|| nic.take()).count();
    }
    assert_eq!((came, nic.lost()), (9_999, 0));
    assert_eq!(host.card.borrow().next_change(), Nanos::FOREVER);
    assert_eq!(host.card.borrow_mut().take_notes().len(), 1);
}
