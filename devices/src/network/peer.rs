//! The computer on the network of the model: it answers who asks for its address, and echoes. The
//! protocols are `smoltcp`'s.

use diapason_abi::Nanos;
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{self, DeviceCapabilities};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpCidr, Ipv4Address};
use std::collections::VecDeque;

/// The peer's address on the network: that of the host in QEMU's own.
pub const PEER: [u8; 4] = [10, 0, 2, 2];
/// The peer's address on the wire.
pub const PEER_ADDRESS: [u8; 6] = [0x52, 0x55, 10, 0, 2, 2];

/// The computer behind the network device.
pub(crate) struct Peer {
    interface: Interface,
    wire: Wire,
}

/// Frames to it and from it.
#[derive(Default)]
struct Wire {
    to: VecDeque<Vec<u8>>,
    from: Vec<Vec<u8>>,
}

fn instant(now: Nanos) -> Instant {
    Instant::from_micros((now.0 / 1000) as i64)
}

impl Peer {
    /// Returns a computer with an address and no connection.
    pub fn new() -> Peer {
        let mut wire = Wire::default();
        let config = Config::new(EthernetAddress(PEER_ADDRESS).into());
        let mut interface = Interface::new(config, &mut wire, instant(Nanos::ZERO));
        let [a, b, c, d] = PEER;
        interface.update_ip_addrs(|addresses| {
            // The first of several that there is room for.
            let _ = addresses.push(IpCidr::new(Ipv4Address::new(a, b, c, d).into(), 24));
        });
        Peer { interface, wire }
    }

    /// Returns the peer's answers to a frame.
    pub fn hear(&mut self, now: Nanos, frame: Vec<u8>) -> Vec<Vec<u8>> {
        self.wire.to.push_back(frame);
        self.interface.poll(instant(now), &mut self.wire, &mut SocketSet::new(&mut [][..]));
        std::mem::take(&mut self.wire.from)
    }
}

/// A frame to it.
struct Received(Vec<u8>);

/// A frame that it is about to send.
struct Sending<'a>(&'a mut Vec<Vec<u8>>);

impl phy::RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

impl phy::TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let mut frame = vec![0; length];
        let result = write(&mut frame);
        self.0.push(frame);
        result
    }
}

impl phy::Device for Wire {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sending<'a>;

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.max_transmission_unit = super::FRAME_MAX;
        capabilities
    }

    fn receive(&mut self, _: Instant) -> Option<(Received, Sending<'_>)> {
        let frame = self.to.pop_front()?;
        Some((Received(frame), Sending(&mut self.from)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sending<'_>> {
        Some(Sending(&mut self.from))
    }
}
