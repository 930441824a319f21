//! How long a cable takes for messages: the bus of each controller at its ends, with everything
//! that shares it.

use crate::beside::Beside;
use crate::missing::Missing;
use diapason_abi::Nanos;
use diapason_bus::{Direction, Picos, Speed};
use diapason_devices::bridge::{PACKET, bridge};
use diapason_system::{Cable, End, Hosts, Socket};

/// Numbers of the endpoints of cables begin here, so many for each; those of other devices are
/// below.
const CABLES: u32 = 1 << 28;
const EACH: u32 = 1 << 8;
/// Packets that may wait in a cable in each direction: a bridge has memory for so many, and as many
/// stand ready at a debug capability.
pub(super) const PACKETS: u64 = 16;

/// Returns the packets of a message.
pub(super) fn packets(bytes: u32) -> u64 {
    u64::from(bytes).div_ceil(PACKET as u64).max(1)
}

/// Returns the longest time in which `cable` carries so many packets from the host `from` to the
/// other: a debug cable crosses the bus of its debug host, a bridge the buses of both.
pub(super) fn longest(
    hosts: &Hosts,
    cable: usize,
    from: usize,
    packets: u64,
) -> Result<Nanos, Missing> {
    let Cable { ends, delay_ns, .. } = &hosts.cables[cable];
    let mut sum = Nanos(*delay_ns);
    for end in ends.iter().filter(|end| end.socket != Socket::Debug) {
        let direction = if end.host == from { Direction::Out } else { Direction::In };
        sum += on_bus(hosts, (cable, end), direction, packets)?;
    }
    Ok(sum)
}

/// Returns the longest time of so many packets at one end of a cable.
fn on_bus(
    hosts: &Hosts,
    (cable, end): (usize, &End),
    direction: Direction,
    packets: u64,
) -> Result<Nanos, Missing> {
    let system = &hosts.hosts[end.host].system;
    let mut all = Beside::of(system, end.device, None, Speed::Super);
    for (number, other) in hosts.cables.iter().enumerate() {
        let is_here = |it: &&End| (it.host, it.device) == (end.host, end.device);
        let ports = other.ends.iter().filter(is_here).filter(|it| it.socket != Socket::Debug);
        for port in ports {
            let (first, own) = (CABLES + number as u32 * EACH, (number, port) == (cable, end));
            if other.ends.iter().all(|end| end.socket != Socket::Debug) {
                all.add(first, &mut bridge(PACKET).0, own);
            } else if !own {
                all.add_debug_device(first, PACKET as u16);
            }
        }
    }
    let bytes = u32::try_from(packets.saturating_mul(PACKET as u64)).unwrap_or(u32::MAX);
    let longest = all.longest(direction, PACKET as u32, bytes).ok().flatten();
    longest.map(Picos::nanos).ok_or_else(|| {
        let host = &hosts.hosts[end.host].name;
        let (bus, name) = (&system.devices[end.device].name, &hosts.cables[cable].name);
        let what = format!("the bus of `{bus}` in `{host}` has no time for {packets} packets");
        (what, format!("plug what shares the bus with `{name}` into another controller"))
    })
}
