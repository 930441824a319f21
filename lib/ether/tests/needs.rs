//! The computed number of buffers is enough: a program that reads in time loses nothing, whatever
//! others send. The lazy way is held against floods, and the conventional way fails them.

use core::net::{Ipv4Addr, SocketAddrV4};
use diapason_ether::needs::{DriverService, FlowReading, NeedsRefusal, buffers};
use diapason_ether::{
    Buffers, Demux, Discard, FrameCounts, FrameInbox, LazyReceiver, Listener, NetworkThread,
    SocketBuffers, SocketReader, UdpFrame,
};
use diapason_random::Random;

const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

struct Memory(Vec<[u8; 256]>);

impl Buffers for Memory {
    fn buffer(&self, number: u16) -> &[u8] {
        &self.0[usize::from(number)]
    }
}

impl SocketBuffers for Memory {
    fn buffer_mut(&mut self, number: u16) -> &mut [u8] {
        &mut self.0[usize::from(number)]
    }
}

fn flow(port: u16) -> UdpFrame {
    UdpFrame {
        source_mac: [2, 0, 0, 0, 0, 1],
        destination_mac: [2, 0, 0, 0, 0, 2],
        tag: None,
        source: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 4_000),
        destination: SocketAddrV4::new(OWN, port),
        checksum: false,
    }
}

fn sent(port: u16, memory: &mut Memory, buffer: u16) -> Vec<u8> {
    let bytes = &mut memory.0[usize::from(buffer)];
    let length = flow(port).write(&[7; 32], bytes).unwrap();
    bytes[..length].to_vec()
}

#[test]
fn what_has_no_bound_is_refused() {
    let service = DriverService { frame_ns: 672, away_ns: 100_000 };
    assert_eq!(service.ring(), Ok(152));
    let reading = FlowReading { burst: 3, interval_ns: 1_000, holds_ns: 2_999 };
    assert_eq!(reading.quota(&DriverService { away_ns: 0, ..service }), Ok(5));
    assert_eq!(reading.quota(&service), Ok(105));
    assert_eq!(buffers(&service, &[reading, reading]), Ok(362));
    let slow = FlowReading { holds_ns: 200_000, ..reading };
    assert_eq!(buffers(&service, &[reading, slow]), Err(NeedsRefusal::Quota(1, 303)));
    for unbounded in
        [FlowReading { burst: 0, ..reading }, FlowReading { interval_ns: 0, ..reading }]
    {
        assert_eq!(buffers(&service, &[unbounded]), Err(NeedsRefusal::Unbounded));
    }
    let never = DriverService { frame_ns: 0, ..service };
    assert_eq!(never.ring(), Err(NeedsRefusal::Unbounded));
    assert!(DriverService { away_ns: 1 << 40, ..service }.ring().is_err());
    assert_eq!(DriverService { frame_ns: 10, away_ns: 59 }.ring(), Ok(8));
    assert_eq!(DriverService { frame_ns: 10, away_ns: 60 }.ring(), Ok(8));
    assert_eq!(DriverService { frame_ns: 10, away_ns: 70 }.ring(), Ok(16));
}

/// Frames that were lost in one run.
#[derive(Debug)]
struct Lost {
    periodic: u64,
    by_adapter: u64,
}

/// Sends a periodic flow with jitter beside all frames that the wire carries, and reads it as late
/// as was said. The quota, the ring and the buffers are less than computed by `missing` of each.
fn run(seed: u64, less_quota: u64, less_ring: u64) -> Lost {
    let mut random = Random::new(seed);
    let service = DriverService { frame_ns: 1_000, away_ns: random.between(1, 90) * 1_000 };
    let reading = FlowReading {
        burst: random.within(1, 6),
        interval_ns: random.between(3, 60) * 1_000,
        holds_ns: random.between(1, 900) * 1_000,
    };
    let quota = reading.quota(&service).unwrap();
    if quota > 128 || quota <= less_quota {
        return Lost { periodic: u64::from(less_quota > 0), by_adapter: u64::from(less_ring > 0) };
    }
    let ring_size = service.ring().unwrap() - less_ring;
    let count = buffers(&service, &[reading]).unwrap();
    let (periodic, greedy) = (FrameInbox::default(), FrameInbox::default());
    let mut demux = Demux::<2, 512>::new((count + 4) as u16);
    let listener = Listener::udp(OWN, 5_000, (quota - less_quota) as u16);
    demux.listen(&listener, &periodic).unwrap();
    // This one never reads.
    demux.listen(&Listener::udp(OWN, 6_000, 4), &greedy).unwrap();
    let mut receiver = LazyReceiver::new(&periodic, &listener);
    let mut memory = Memory(vec![[0; 256]; 512]);
    let mut ring: Vec<u16> = Vec::new();
    let mut arrived: Vec<(u16, u16)> = Vec::new();
    let mut lost = Lost { periodic: 0, by_adapter: 0 };
    let (mut credit, mut waits) = (f64::from(reading.burst), Vec::new());
    let mut next_service = 0;
    let mut served = 0;
    for now in (0..4_000_000).step_by(1_000) {
        credit += 1_000.0 / reading.interval_ns as f64;
        credit = credit.min(f64::from(reading.burst));
        let own = credit >= 1.0 && random.below(4) > 0;
        // A full ring has one descriptor that is not used.
        if now >= next_service {
            for (buffer, port) in arrived.drain(..) {
                let frame = sent(port, &mut memory, buffer);
                let posted = demux.arrive(buffer, &frame);
                if port == 5_000 {
                    match posted.listener() {
                        Some(_) => waits.push(now),
                        None => lost.periodic += 1,
                    }
                }
            }
            while ring.len() + 1 < ring_size as usize {
                ring.push(demux.refill().expect("the sum of quotas and ring is enough"));
            }
            served = now;
            next_service = now + service.away_ns;
        }
        assert!(now - served <= service.away_ns);
        // The reader is as late as it may be: a frame that waited from `since` on is taken now.
        while waits.first().is_some_and(|since| now - since >= reading.holds_ns) {
            waits.remove(0);
            receiver.take(&memory, &mut [0; 32]).unwrap().unwrap();
        }
        let port = if own { 5_000 } else { 6_000 };
        credit -= f64::from(u8::from(own));
        if ring.is_empty() {
            lost.by_adapter += 1;
        } else {
            arrived.push((ring.remove(0), port));
        }
    }
    lost
}

#[test]
fn the_computed_number_is_enough_and_less_is_not() {
    let (mut short_quota, mut short_ring) = (0, 0);
    for seed in 0..150 {
        let lost = run(seed, 0, 0);
        assert_eq!((lost.periodic, lost.by_adapter), (0, 0), "seed {seed}");
        short_quota += u64::from(run(seed, 1, 0).periodic > 0);
        short_ring += u64::from(run(seed, 0, 8).by_adapter > 0);
    }
    assert!(short_quota > 30 && short_ring > 100, "{short_quota} {short_ring} of 150");
}

/// A core that serves by priority: driver thread first, then the periodic receiver, then others.
struct Flood {
    periodic_lost: u64,
    offered: u64,
    accounted: u64,
    driver_ns: u64,
}

/// The times of the parts, in ns: taking in a frame, processing one, copying one.
const TAKING: u64 = 400;
const PROCESSING: u64 = 9_000;
const SECOND: u64 = 1_000_000_000;

/// Returns the frames that were discarded or delivered, or that wait.
fn accounted(driver: &FrameCounts, parts: &[&FrameCounts]) -> u64 {
    let offered: u64 = parts.iter().map(|part| part.offered).sum();
    let ended = parts.iter().map(|part| part.passed + part.all_discarded());
    let waiting = driver.passed.checked_sub(offered).expect("each was posted before");
    driver.all_discarded() + ended.sum::<u64>() + waiting
}

/// Offers `rate` frames a second to a listener that is always behind, beside one of 1 kHz that is
/// read once a millisecond.
fn flood(rate: u64, lazy: bool) -> Flood {
    let inboxes: [FrameInbox; 3] = core::array::from_fn(|_| FrameInbox::default());
    let listeners = [Listener::udp(OWN, 5_000, 3), Listener::udp(OWN, 6_000, 32)];
    let mut memory = Memory(vec![[0; 256]; 512]);
    let mut payloads = Memory(vec![[0; 256]; 64]);
    let mut demux = Demux::<2, 512>::new(400);
    let mut network = NetworkThread::<2, 64>::new(&inboxes[2], 64);
    if lazy {
        demux.listen(&listeners[0], &inboxes[0]).unwrap();
        demux.listen(&listeners[1], &inboxes[1]).unwrap();
    } else {
        demux.listen_to_rest(&inboxes[2], 64).unwrap();
        network.listen(&listeners[0], &inboxes[0]).unwrap();
        network.listen(&listeners[1], &inboxes[1]).unwrap();
    }
    let mut receivers: Vec<LazyReceiver<'_>> =
        listeners.iter().zip(&inboxes).map(|(l, inbox)| LazyReceiver::new(inbox, l)).collect();
    let mut readers: Vec<SocketReader<'_>> = inboxes[..2].iter().map(SocketReader::new).collect();
    let (mut seen, mut sent_periodic, mut next_period) = (0, 0, 0);
    let (mut budget, mut driver_ns) = (0_i64, 0);
    let step = SECOND / rate;
    for now in (0..SECOND).step_by(step as usize) {
        let mut ports = vec![6_000];
        if now >= next_period {
            next_period += 1_000_000;
            sent_periodic += 1;
            // The receiver reads once a period, before the next frame comes.
            let got = if lazy {
                receivers[0].take(&memory, &mut [0; 32]).is_some()
            } else {
                readers[0].take(&payloads, &mut [0; 32]).is_some()
            };
            seen += u64::from(got);
            ports.push(5_000);
        }
        for port in ports {
            let buffer = demux.refill().unwrap();
            let frame = sent(port, &mut memory, buffer);
            demux.arrive(buffer, &frame);
            driver_ns += TAKING;
            budget -= TAKING as i64;
        }
        // The network thread, or the slow receiver, gets the rest of the step.
        budget = (budget + step as i64).min(step as i64);
        while budget > 0 {
            budget -= PROCESSING as i64;
            let more = if lazy {
                receivers[1].take(&memory, &mut [0; 32]).is_some()
            } else {
                let _ = readers[1].take(&payloads, &mut [0; 32]);
                network.process(&memory, &mut payloads).is_some()
            };
            if !more {
                break;
            }
        }
    }
    let counts = demux.counts();
    let parts: Vec<&FrameCounts> = if lazy {
        receivers.iter().map(LazyReceiver::counts).collect()
    } else {
        vec![network.counts()]
    };
    Flood {
        periodic_lost: sent_periodic - 1 - seen,
        offered: counts.offered,
        accounted: accounted(counts, &parts),
        driver_ns,
    }
}

#[test]
fn a_flood_takes_nothing_from_a_periodic_receiver_but_in_the_conventional_way() {
    let mut failed = 0;
    for rate in [1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 1_000_000] {
        let lazy = flood(rate, true);
        assert_eq!(lazy.periodic_lost, 0, "{rate} frames a second");
        assert_eq!(lazy.offered, lazy.accounted);
        assert!(lazy.driver_ns <= (rate + 1_000) * TAKING);
        let conventional = flood(rate, false);
        assert_eq!(conventional.offered, conventional.accounted);
        failed += u64::from(conventional.periodic_lost > 0);
        // Beyond its capacity the network thread loses the periodic frames with all others.
        assert_eq!(conventional.periodic_lost > 0, rate >= SECOND / PROCESSING, "{rate}");
    }
    assert!(failed > 0, "the conventional way must fail, or this shows nothing");
}

#[test]
fn discards_of_a_flood_have_the_name_of_the_quota() {
    let inbox = FrameInbox::default();
    let mut demux = Demux::<1, 32>::new(16);
    demux.listen(&Listener::udp(OWN, 6_000, 8), &inbox).unwrap();
    let mut memory = Memory(vec![[0; 256]; 16]);
    for _ in 0..1_000 {
        let buffer = demux.refill().unwrap();
        let frame = sent(6_000, &mut memory, buffer);
        demux.arrive(buffer, &frame);
    }
    assert_eq!(demux.counts().discarded(Discard::Quota), 992);
    assert_eq!(demux.buffers(), (8, 8));
}
