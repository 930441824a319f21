//! Asks the other computer of a network for echoes of every length, and checks every byte.
//!
//! Once a second it says `NETWORK sent answered lost wrong devices`. Arguments: after how many
//! answers it gives its verdict and ends (0: never), the pause before the next echo in µs, and
//! whether it asks for an address (1: DHCP; 0: it is 10.0.2.15).

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod card;
mod ping;

use card::{Card, Change};
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use ping::{Ping, Tally};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet, SocketStorage};
use smoltcp::socket::{dhcpv4, icmp};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpCidr, Ipv4Address, Ipv4Cidr};

entry!(main);

/// Time between two reports.
const REPORT: Nanos = Nanos::from_secs(1);
/// The program looks so often at most, whatever the network would like.
const REST: Nanos = Nanos::from_micros(100);
/// The program's address unless it asks for one.
const OWN: Ipv4Cidr = Ipv4Cidr::new(Ipv4Address::new(10, 0, 2, 15), 24);
/// Memory for echoes on their way: two of the longest.
const ROOM: usize = 4096;

/// The computer on its network.
struct Station<'a> {
    card: Card,
    interface: Option<Interface>,
    sockets: SocketSet<'a>,
    echo: SocketHandle,
    lease: Option<SocketHandle>,
    ping: Ping,
    devices: u64,
}

fn main(Arguments([last, pause, asks, _]): Arguments) {
    let (mut to, mut from) = ([0; ROOM], [0; ROOM]);
    let (mut told, mut heard) =
        ([icmp::PacketMetadata::EMPTY; 2], [icmp::PacketMetadata::EMPTY; 2]);
    let echo = icmp::Socket::new(
        icmp::PacketBuffer::new(&mut heard[..], &mut from[..]),
        icmp::PacketBuffer::new(&mut told[..], &mut to[..]),
    );
    let mut storage = [SocketStorage::EMPTY; 2];
    let mut sockets = SocketSet::new(&mut storage[..]);
    let echo = sockets.add(echo);
    let lease = (asks != 0).then(|| sockets.add(dhcpv4::Socket::new()));
    let ping = Ping::new(Nanos(pause * 1_000));
    let ended = Card::open().and_then(|card| {
        let interface = None;
        Station { card, interface, sockets, echo, lease, ping, devices: 0 }.run(last)
    });
    if let Err(errno) = ended {
        log!("NETWORK NOT WHOLE: {errno:?}");
    }
}

fn instant(now: Nanos) -> Instant {
    Instant::from_micros((now.0 / 1_000) as i64)
}

impl Station<'_> {
    fn run(&mut self, last: u64) -> Result<(), Errno> {
        let mut report_at = time::now() + REPORT;
        loop {
            let now = time::now();
            time::work("network.step", || self.step(now));
            let Tally { sent, answered, lost, wrong } = self.ping.tally;
            let devices = self.devices;
            if now >= report_at {
                report_at += REPORT;
                log!("NETWORK {sent} {answered} {lost} {wrong} {devices}");
            }
            if last > 0 && answered >= last {
                let verdict = if wrong == 0 { "WHOLE" } else { "NOT WHOLE" };
                log!("NETWORK {verdict} {answered} {lost} {wrong} {devices}");
                return Ok(());
            }
            let wake = self.next_wake(now).max(now + REST).min(report_at);
            self.card.wait(wake)?;
        }
    }

    fn next_wake(&mut self, now: Nanos) -> Nanos {
        let Some(interface) = &mut self.interface else { return Nanos::FOREVER };
        let at = interface.poll_at(instant(now), &self.sockets);
        let at = at.map_or(Nanos::FOREVER, |at| Nanos(at.total_micros() as u64 * 1_000));
        at.min(self.ping.next_wake())
    }

    fn step(&mut self, now: Nanos) {
        match self.card.change() {
            Some(Change::Arrived(address)) => self.begin(address, now),
            Some(Change::Left) => {
                self.interface = None;
                self.ping.give_up(now);
            }
            None => {}
        }
        let Some(interface) = &mut self.interface else { return };
        interface.poll(instant(now), &mut self.card, &mut self.sockets);
        if let Some(lease) = self.lease {
            follow(interface, self.sockets.get_mut(lease));
        }
        if interface.ipv4_addr().is_some() {
            self.ping.step(now, self.sockets.get_mut(self.echo));
            interface.poll(instant(now), &mut self.card, &mut self.sockets);
        }
    }

    /// A device is there: everything starts over.
    fn begin(&mut self, address: [u8; 6], now: Nanos) {
        self.devices += 1;
        self.ping.give_up(now);
        let config = Config::new(EthernetAddress(address).into());
        let mut interface = Interface::new(config, &mut self.card, instant(now));
        match self.lease {
            Some(lease) => self.sockets.get_mut::<dhcpv4::Socket<'_>>(lease).reset(),
            None => settle(&mut interface, Some(OWN)),
        }
        self.interface = Some(interface);
    }
}

/// This is the only address, if there is one.
fn settle(interface: &mut Interface, own: Option<Ipv4Cidr>) {
    interface.update_ip_addrs(|addresses| {
        addresses.clear();
        if let Some(own) = own {
            // There is room for the first.
            let _ = addresses.push(IpCidr::Ipv4(own));
        }
    });
}

/// Applies an address that the network gave or took back.
fn follow(interface: &mut Interface, lease: &mut dhcpv4::Socket<'_>) {
    match lease.poll() {
        Some(dhcpv4::Event::Configured(config)) => {
            log!("the network gives {}", config.address);
            settle(interface, Some(config.address));
        }
        Some(dhcpv4::Event::Deconfigured) => settle(interface, None),
        None => {}
    }
}
