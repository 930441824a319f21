//! The slow path of Ethernet: ARP, ICMP and TCP for one program, which gets the frames that no
//! socket of the adapter wants.
//!
//! The protocols are those of `smoltcp`. They run in the calls of the program, on its VCPU. So a
//! flood of strange frames takes the budget of this program and nothing of a socket in real time.

#![no_std]
#![forbid(unsafe_code)]

mod device;

use core::net::Ipv4Addr;
use device::RestDevice;
use diapason_netlib::RestSocket;
use diapason_rt::{Errno, Nanos, time};
pub use smoltcp;
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpCidr};

/// The longest pause between two looks, while something is under way.
const STEP: Nanos = Nanos::from_micros(100);

/// An adapter with its protocols.
///
/// It answers ARP and echoes of ICMP by itself. Everything else is done through sockets of
/// `smoltcp` in `sockets`.
pub struct Station<'a> {
    device: RestDevice,
    interface: Interface,
    pub sockets: SocketSet<'a>,
}

impl<'a> Station<'a> {
    /// Opens the socket of this name, which the description declares with `rest`. Hosts that share
    /// the first `prefix` bits of the adapter's address are on its wire.
    ///
    /// # Errors
    /// `Absent` if the description declares no such socket for this process.
    pub fn open(name: &str, prefix: u8, sockets: SocketSet<'a>) -> Result<Station<'a>, Errno> {
        let mut device = RestDevice::new(RestSocket::open(name)?);
        let own = device.own();
        let mut config = Config::new(EthernetAddress(own.mac).into());
        config.random_seed = time::now().0;
        let mut interface = Interface::new(config, &mut device, instant(time::now()));
        interface.update_ip_addrs(|addresses| {
            // There is room for the first.
            let _ = addresses.push(IpCidr::new(Ipv4Addr::from(own.address).into(), prefix));
        });
        Ok(Station { device, interface, sockets })
    }

    /// Returns the parts that a connection of TCP begins with: the interface, and the sockets.
    pub const fn parts(&mut self) -> (&mut Interface, &mut SocketSet<'a>) {
        (&mut self.interface, &mut self.sockets)
    }

    /// Takes the frames that came, and sends what is to be sent. Returns whether a socket changed.
    pub fn poll(&mut self) -> bool {
        let now = instant(time::now());
        let change = self.interface.poll(now, &mut self.device, &mut self.sockets);
        change == smoltcp::iface::PollResult::SocketStateChanged
    }

    /// Waits until a frame comes, a protocol has something to do, or `deadline` is there.
    ///
    /// # Errors
    /// Those of waiting, but for the deadline.
    pub fn wait(&mut self, deadline: Nanos) -> Result<(), Errno> {
        let now = time::now();
        let due = self.interface.poll_at(instant(now), &self.sockets);
        let due = due.map_or(Nanos::FOREVER, |at| Nanos(at.total_micros() as u64 * 1_000));
        self.device.wait(due.max(now + STEP).min(deadline))
    }
}

fn instant(now: Nanos) -> Instant {
    Instant::from_micros((now.0 / 1_000) as i64)
}
