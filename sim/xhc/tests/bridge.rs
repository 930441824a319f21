//! A bridge cable between the controllers of two hosts.

use crate::support::{Driver, bulk};
use diapason_abi::Nanos;
use diapason_devices::bridge::slow_bridge;
use diapason_devices::{UsbDevice, bridge};
use diapason_random::Random;
use diapason_usb::Setup;
use diapason_usb::trb::{Completion, Kind, Trb, bit};
use diapason_xhc::Config;

/// Endpoints of the bridge by their numbers in contexts.
const OUT: u8 = 2 * bridge::OUT;
const IN: u8 = 2 * (bridge::IN & 0xf) + 1;
const MESSAGES: usize = 60;
/// Bytes of a transfer from the device: longer than any message.
const TRANSFER: u32 = 4096;

/// The messages that a host saw: when each came or was through.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Seen {
    came: Vec<(Nanos, Vec<u8>)>,
    went: Vec<Nanos>,
}

/// One host, which sends its messages one after the other and reads all the time.
struct Host {
    driver: Driver,
    slot: u8,
    buffer: u64,
    messages: Vec<Vec<u8>>,
    seen: Seen,
}

impl Host {
    fn new(end: bridge::Bridge, seed: u64) -> Host {
        let mut driver = Driver::running(Config::default());
        let slot = driver.connect(5, Box::new(end) as Box<dyn UsbDevice>);
        let plans = [bulk(OUT, 1024, 7), bulk(IN, 1024, 7)];
        assert_eq!(driver.configure(slot, &plans), Completion::Success);
        driver.take(0);
        let bytes = u64::from_le_bytes(Setup::set_configuration(1).encode());
        driver.queue(slot, 1, Trb::new(Kind::Setup, bytes, 8, bit::IMMEDIATE));
        driver.queue(slot, 1, Trb::new(Kind::Status, 0, 0, bit::IN | bit::COMPLETION));
        driver.doorbell(slot, 1);
        let mut random = Random::new(seed);
        // The last packet is short, so that a message is a transfer at the other end, too.
        let lengths = (0..MESSAGES).map(|_| random.between(0, 3) * 1024 + random.between(1, 1023));
        let lengths: Vec<u64> = lengths.collect();
        let message = |length: u64| (0..length).map(|_| random.below(256) as u8).collect();
        let messages = lengths.into_iter().map(message).collect();
        Host { driver, slot, buffer: 0, messages, seen: Seen::default() }
    }

    fn read(&mut self) {
        self.buffer = self.driver.queue_normal(self.slot, IN, TRANSFER, bit::COMPLETION);
        self.driver.doorbell(self.slot, IN);
    }

    fn write(&mut self) {
        if let Some(message) = self.messages.get(self.seen.went.len()) {
            let length = message.len() as u32;
            let buffer = self.driver.queue_normal(self.slot, OUT, length, bit::COMPLETION);
            self.driver.ram.put(buffer, message);
            self.driver.doorbell(self.slot, OUT);
        }
    }

    /// Up to `time`, then what software does about it.
    fn run_to(&mut self, time: Nanos) {
        self.driver.run_to(time);
        for (endpoint, code, residual) in self.driver.transfers() {
            assert!(matches!(code, Completion::Success | Completion::ShortPacket), "{code:?}");
            match endpoint {
                IN => {
                    let length = (TRANSFER - residual) as usize;
                    let bytes = self.driver.ram.bytes(self.buffer, length).to_vec();
                    self.seen.came.push((time, bytes));
                    self.read();
                }
                OUT => {
                    self.seen.went.push(time);
                    self.write();
                }
                // The device is configured.
                _ => {
                    self.read();
                    self.write();
                }
            }
        }
    }
}

/// Both hosts, each ahead by as long as it cannot know what the other does.
fn run(delay: Nanos, first: usize) -> [Seen; 2] {
    let (one, other) = slow_bridge(8 * 1024, delay);
    let mut hosts = [Host::new(one, 1), Host::new(other, 2)];
    assert_eq!(hosts[0].driver.now, hosts[1].driver.now);
    let end = hosts[0].driver.now + Nanos::from_millis(2);
    while hosts[0].driver.now < end {
        let time = hosts[0].driver.now + delay;
        hosts[first].run_to(time);
        hosts[1 - first].run_to(time);
    }
    for (from, to) in [(0, 1), (1, 0)] {
        let came = hosts[to].seen.came.iter().map(|(_, bytes)| bytes);
        assert!(came.eq(&hosts[from].messages), "every message came, in order");
    }
    hosts.map(|host| host.seen)
}

#[test]
fn messages_go_both_ways_and_both_hosts_see_the_same_whoever_goes_first() {
    let seen = run(Nanos(500), 0);
    assert_eq!(seen, run(Nanos(500), 1));
    let slower = run(Nanos(5_000), 0);
    assert!(slower[0].came[0].0 > seen[0].came[0].0);
}
