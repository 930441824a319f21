//! The wires and switches between the adapters of QEMUs: those of the simulator.

use crate::failure::Failure;
use crate::image::fnv;
use crate::several::Joints;
use crate::simulate::{WireBooks, card, ethernet_network};
use diapason_abi::Nanos;
use diapason_abi::archive::Location;
use diapason_redir::{AdapterFrame, Wires};
use diapason_sim::{EthernetNetwork, EthernetPlug, FrameTap};
use diapason_system::System;

/// The shortest frame, without its checksum: an adapter fills others up.
const FRAME_MIN: usize = 60;

/// The network of a list of hosts, and the ends of its wires at the adapters of each.
pub(super) struct HostWires {
    network: EthernetNetwork,
    plugs: Vec<Vec<Option<EthernetPlug>>>,
    /// A number for all frames that were sent, and when.
    sent: u64,
}

impl HostWires {
    /// Returns the wires between these hosts, whose machines have so many adapters.
    pub fn of(
        systems: &[&System],
        adapters: &[usize],
        joints: &Joints,
    ) -> Result<HostWires, Failure> {
        // Faults are the simulator's, and so is the clock of an adapter's gates.
        let mut joints = joints.clone();
        for wire in &mut joints.ethernet {
            wire.pulled.clear();
            wire.gates.clear();
        }
        joints.switches.iter_mut().for_each(|switch| switch.drift_ppm = 0);
        let network = ethernet_network(&joints, systems)?;
        let plugs = systems.iter().zip(adapters).enumerate().map(|(host, (system, adapters))| {
            let plug = |adapter| {
                let device = device(system, adapter)?;
                network.wire(card(host, device)).map(EthernetPlug::new)
            };
            (0..*adapters).map(plug).collect()
        });
        Ok(HostWires { plugs: plugs.collect(), network, sent: 0 })
    }

    /// Returns a handle on the frames of each adapter of a host that has a wire.
    pub fn taps(&self, host: usize) -> Vec<FrameTap> {
        self.plugs[host].iter().flatten().map(EthernetPlug::tap).collect()
    }

    /// Returns what passed the switches, and a number for all frames and their times.
    pub fn finish(self) -> (WireBooks, u64) {
        (WireBooks::of(&self.network), self.sent)
    }
}

/// Returns the device that is this adapter of a machine, in the order of QEMU's.
fn device(system: &System, number: usize) -> Option<usize> {
    system.adapters.iter().filter_map(|adapter| adapter.card()).find(|device| {
        let location = &system.devices[*device].location;
        matches!(location, Location::Pci(function) if usize::from(function.instance) == number)
    })
}

impl Wires for HostWires {
    fn sent(&mut self, guest: usize, frame: &AdapterFrame) {
        let AdapterFrame { adapter, at, bytes } = frame;
        let head = [self.sent, guest as u64, *adapter as u64, at.0].map(u64::to_le_bytes);
        self.sent = fnv([&head.concat(), bytes]);
        if let Some(plug) = &mut self.plugs[guest][*adapter] {
            let mut bytes = bytes.clone();
            bytes.resize(bytes.len().max(FRAME_MIN), 0);
            plug.send(*at, &bytes);
        }
    }

    fn came(&mut self, guest: usize, now: Nanos) -> Vec<AdapterFrame> {
        let mut frames = Vec::new();
        for (adapter, plug) in self.plugs[guest].iter_mut().enumerate() {
            let Some(plug) = plug else { continue };
            while let Some((at, bytes)) = plug.receive(now) {
                frames.push(AdapterFrame { adapter, at, bytes });
            }
        }
        frames.sort_by_key(|frame| frame.at);
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_system::Description;

    #[test]
    fn a_frame_takes_the_time_of_the_wires_and_of_the_switch_and_no_other() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/ethernet.toml");
        let described = crate::describe::describe_any(path.as_ref()).unwrap();
        let Description::Several(list) = described else { panic!("one host") };
        let (ethernet, switches) = (list.ethernet, list.switches);
        let joints = Joints { ethernet, switches, ..Joints::default() };
        let systems: Vec<System> = list.hosts.into_iter().map(|host| host.system).collect();
        let to = systems[1].adapters[0].mac;
        let systems: Vec<&System> = systems.iter().collect();
        let mut wires = HostWires::of(&systems, &[1; 3], &joints).unwrap();
        let mut bytes = to.to_vec();
        bytes.resize(20, 7);
        let frame = |at| AdapterFrame { adapter: 0, at: Nanos(at), bytes: bytes.clone() };
        // The second waits for the first, and for the gap behind it: 96 bits.
        [frame(1_000), frame(1_100)].iter().for_each(|frame| wires.sent(0, frame));
        // Twice 72 bytes and 500 ns of a wire, and 2 us of the switch.
        assert_eq!(wires.came(1, Nanos(5_151)), []);
        let came = wires.came(1, Nanos(10_000));
        assert_eq!(came.iter().map(|it| it.at.0).collect::<Vec<u64>>(), [5_152, 5_824]);
        assert!(came.iter().all(|it| it.bytes.len() == FRAME_MIN && it.bytes.starts_with(&bytes)));
        assert!([0, 2].iter().all(|host| wires.came(*host, Nanos(10_000)).is_empty()));
        let (_, sent) = wires.finish();
        assert_ne!(sent, HostWires::of(&[], &[], &Joints::default()).unwrap().finish().1);
    }
}
