//! The cables of a list of hosts, plugged into the controllers of the simulator.

use crate::failure::Failure;
use crate::several::{CABLE_BYTES, Joined};
use diapason_abi::Nanos;
use diapason_devices::UsbDevice;
use diapason_devices::bridge::slow_bridge;
use diapason_devices::faulty::Drifting;
use diapason_sim::{CableEnd, ControllerMishap, PluggedController};
use diapason_system::{Cable, End, Socket};

/// The controllers of a host, by the numbers of their devices.
pub(super) type Controllers = Vec<(usize, PluggedController)>;

/// Returns the controllers of a host whose debug capability a cable ends at.
pub(super) fn targets(host: usize, cables: &[Cable]) -> Vec<usize> {
    let ends = cables.iter().flat_map(|cable| &cable.ends);
    let targets = ends.filter(|end| end.host == host && end.socket == Socket::Debug);
    targets.map(|end| end.device).collect()
}

/// Plugs in both ends of every cable. A passive cable could carry the capability of either end, so
/// it has two devices, one for each end at which the other one has a capability. The port at a
/// target is one that the description does not use.
pub(super) fn plug_all(joined: &Joined, hosts: &mut [Controllers]) -> Result<(), Failure> {
    // A checked description has controllers at both ends.
    let nowhere =
        |cable: &Cable| Failure::Ours(format!("nothing to plug the cable `{}` into", cable.name));
    // A cable goes by the clock of the world, and each host looks at its end by its own.
    let end = |end: &End, device| Box::new(Drifting::by(device, joined.world(end.host)));
    for (host, own) in hosts.iter_mut().enumerate() {
        own.iter_mut().for_each(|(_, controller)| controller.go_by(joined.world(host)));
    }
    let pull = |hosts: &mut [Controllers], cable: &Cable, (host, device, connector)| {
        for time in &cable.pulled {
            let world = joined.world(host);
            let [at, end] = [time.at_ns, time.end_ns()].map(|at| world.host(Nanos(at)));
            let words = time.words(&cable.name);
            let mut own = hosts[host].iter_mut().filter(|(own, _)| *own == device);
            if let Some((_, controller)) = own.next() {
                controller.suffer(at, ControllerMishap::Unplug(connector, end - at), words);
            }
        }
    };
    let mut passive = Vec::new();
    for cable in &joined.joints().cables {
        let (delay, [one, other]) = (Nanos(cable.delay_ns), &cable.ends);
        let (host, target) = match (one.socket, other.socket) {
            (Socket::Port(_), Socket::Port(_)) => {
                let (here, there) = slow_bridge(CABLE_BYTES, delay);
                let [here, there]: [Box<dyn UsbDevice>; 2] = [Box::new(here), Box::new(there)];
                insert(hosts, one, end(one, here))
                    .and(insert(hosts, other, end(other, there)))
                    .ok_or_else(|| nowhere(cable))?;
                for end in &cable.ends {
                    pull(hosts, cable, (end.host, end.device, connector(end)));
                }
                continue;
            }
            (_, Socket::Debug) => (one, other),
            (Socket::Debug, _) => (other, one),
        };
        let ends = <[CableEnd; 2]>::default();
        let partner = at(hosts, target).and_then(|it| it.debug_partner(delay, &ends));
        let plugged = partner.and_then(|partner| insert(hosts, host, end(host, partner)));
        plugged.ok_or_else(|| nowhere(cable))?;
        pull(hosts, cable, (host.host, host.device, connector(host)));
        passive.push((cable, host, target, ends));
    }
    for (cable, host, target, [here, there]) in passive {
        let delay = Nanos(cable.delay_ns);
        let reverse = at(hosts, host).and_then(|it| it.debug_partner(delay, &[there, here]));
        let Some(reverse) = reverse else { continue };
        let controller = at(hosts, target).ok_or_else(|| nowhere(cable))?;
        let connector = controller.free_connector().ok_or_else(|| {
            Failure::Input(format!("no port is free for the passive cable `{}`", cable.name))
        })?;
        controller.plug(connector, end(target, reverse));
        pull(hosts, cable, (target.host, target.device, connector));
    }
    Ok(())
}

/// Returns the connector at which a cable ends; 0 at a debug capability.
const fn connector(end: &End) -> u8 {
    match end.socket {
        Socket::Port(port) => port,
        Socket::Debug => 0,
    }
}

fn at<'h>(hosts: &'h mut [Controllers], end: &End) -> Option<&'h mut PluggedController> {
    let mut own = hosts.get_mut(end.host)?.iter_mut();
    own.find(|(device, _)| *device == end.device).map(|(_, controller)| controller)
}

fn insert(hosts: &mut [Controllers], end: &End, device: Box<dyn UsbDevice>) -> Option<()> {
    let Socket::Port(port) = end.socket else { return None };
    at(hosts, end)?.plug(port, device);
    Some(())
}
