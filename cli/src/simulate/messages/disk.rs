//! The commands of a disk on its bus. Each is three transfers, and takes the bus and the disk by
//! turns.

use super::wire::{Carried, Content, ObservedController, Place, Waits, is_carrier, span, within};
use diapason_abi::Nanos;
use diapason_sim::{BusPacket, PacketOutcome, TransferRecord};
use diapason_usb::class::mass_storage::{COMMAND_BYTES, STATUS_BYTES};

const COMMAND: [u8; 4] = *b"USBC";
const STATUS: [u8; 4] = *b"USBS";
/// The place of the SCSI command in a block of the transport, and of its parts in that one.
const SCSI: usize = 15;
const FIRST: usize = SCSI + 2;
const COUNT: usize = SCSI + 7;
/// Reads and writes of ten bytes.
const MOVES: [u8; 2] = [0x28, 0x2a];

/// One event between the first and the last packet of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Commanded {
    /// Packets of the disk are on the bus, one behind the other.
    Packet,
    /// The disk has said "not now", and has nothing yet.
    NotNow,
    /// The disk is ready, and the bus does not carry its next packet yet.
    Waits(Waits),
}

impl ObservedController {
    /// A transfer of a disk has ended. A command ends with the transfer of its status.
    pub(super) fn commanded(&mut self, place: Place, transfer: &TransferRecord, data: &[u8]) {
        let parts = self.flows.get_mut(&place).map(|flow| std::mem::take(&mut flow.parts));
        let parts = parts.unwrap_or_default();
        let ends = parts.front().zip(parts.back());
        let (from, to) = ends.map_or((transfer.time, transfer.time), |it| (it.0.1, it.1.2));
        match transfer.kind.is_in() {
            false if data.len() == COMMAND_BYTES && data.starts_with(&COMMAND) => {
                self.commands.remove(&place.0);
                self.commands.extend(blocks(data).map(|blocks| (place.0, (blocks, from))));
            }
            true if data.len() == STATUS_BYTES && data.starts_with(&STATUS) => {
                let Some(((block, count), from)) = self.commands.remove(&place.0) else { return };
                let (what, vector) = (Content::Run(block, count), transfer.vector);
                self.carried.push(Carried { what, place, from, to, over: transfer.time, vector });
            }
            _ => {}
        }
    }

    /// Returns what happened between the first and the last packet of a command, in order.
    pub fn command(&self, carried: &Carried) -> Vec<(Nanos, Nanos, Commanded)> {
        let Carried { place, from, to, .. } = *carried;
        let is_own = |packet: &&BusPacket| packet.slot == place.0 && is_carrier(packet.kind);
        let packets = self.on_its_bus(place).into_iter();
        let own = packets.flat_map(|all| within(all, span, from, to)).filter(is_own);
        let (mut found, mut at, mut refused) = (Vec::new(), from, None);
        for packet in own {
            let (begun, ended) = span(packet);
            let (begun, ended) = (begun.clamp(at, to), ended.clamp(at, to));
            if packet.outcome != PacketOutcome::Moved {
                refused = refused.or(Some(begun));
                continue;
            }
            let ready = refused.take().unwrap_or(begun).clamp(at, begun);
            found.extend(self.waiting(place, at, ready));
            found.extend([(ready, begun, Commanded::NotNow), (begun, ended, Commanded::Packet)]);
            at = ended;
        }
        found.extend(self.waiting(place, at, to));
        found.retain(|(from, to, _)| from < to);
        found.dedup_by(|next, last| {
            let joins = last.2 == Commanded::Packet && (next.0, next.2) == (last.1, last.2);
            last.1 = if joins { next.1 } else { last.1 };
            joins
        });
        found
    }

    fn waiting(
        &self,
        place: Place,
        from: Nanos,
        to: Nanos,
    ) -> impl Iterator<Item = (Nanos, Nanos, Commanded)> {
        let waits = self.waits(place, from, to).into_iter();
        waits.map(|(from, to, why)| (from, to, Commanded::Waits(why)))
    }
}

/// Returns the blocks that a command reads or writes: the first one, and how many.
fn blocks(command: &[u8]) -> Option<(u32, u32)> {
    let first = command.get(FIRST..)?.first_chunk()?;
    let count = command.get(COUNT..)?.first_chunk()?;
    let moves = MOVES.contains(command.get(SCSI)?);
    moves.then_some((u32::from_be_bytes(*first), u16::from_be_bytes(*count).into()))
}

#[cfg(test)]
mod tests {
    use super::super::wire::Apart;
    use super::*;
    use diapason_bus::Picos;
    use diapason_sim::TapTraffic;
    use diapason_usb::context::EndpointKind;
    use diapason_usb::trb::Completion;
    use std::collections::BTreeMap;

    fn packet((start, end): (u64, u64), endpoint: u8, outcome: PacketOutcome) -> BusPacket {
        let (start, end) = (Picos(start * 1_000), Picos(end * 1_000));
        let kind = if endpoint & 1 == 1 { EndpointKind::BulkIn } else { EndpointKind::BulkOut };
        BusPacket { start, end, bus: 0, slot: 1, endpoint, kind, bytes: 8, outcome }
    }

    fn transfer(time: u64, endpoint: u8, data: &[u8], end: Option<Completion>) -> TransferRecord {
        let is_in = endpoint & 0x80 != 0;
        TransferRecord {
            time: Nanos(time),
            id: 0,
            slot: 1,
            endpoint,
            kind: if is_in { EndpointKind::BulkIn } else { EndpointKind::BulkOut },
            setup: None,
            vector: 3,
            length: data.len() as u32,
            data: if is_in == end.is_some() { data.to_vec() } else { Vec::new() },
            end,
        }
    }

    /// A read of eight blocks: the disk says "not now" from 30 to 60, and the bus has others from
    /// 70 to 80.
    #[test]
    fn a_command_takes_the_bus_and_the_disk_by_turns() {
        let told = |is_in| ((3, is_in), Apart::Blocks);
        let mut wire = ObservedController::new(BTreeMap::from([told(false), told(true)]));
        let mut command = [0; COMMAND_BYTES];
        command[..4].copy_from_slice(&COMMAND);
        command[SCSI] = MOVES[0];
        (command[FIRST + 3], command[COUNT + 1]) = (64, 8);
        let mut status = [0; STATUS_BYTES];
        status[..4].copy_from_slice(&STATUS);
        let (moved, refused) = (PacketOutcome::Moved, PacketOutcome::Nak);
        let parts = [((10, 20), 4), ((60, 65), 3), ((65, 70), 3), ((80, 90), 3)];
        let mut packets: Vec<BusPacket> =
            parts.map(|(span, endpoint)| packet(span, endpoint, moved)).into();
        packets.insert(1, packet((30, 35), 3, refused));
        let done = Some(Completion::Success);
        let transfers = vec![
            transfer(5, 2, &command, None),
            transfer(5, 0x81, &[], None),
            transfer(20, 2, &command, done),
            transfer(70, 0x81, &[0; 512], done),
            transfer(70, 0x81, &[], None),
            transfer(95, 0x81, &status, done),
        ];
        wire.note(&TapTraffic { packets, transfers, ..TapTraffic::default() });
        let carried = wire.take_carried();
        let [carried] = carried.as_slice() else { panic!("{carried:?}") };
        assert_eq!(carried.what, Content::Run(64, 8));
        assert_eq!([carried.from, carried.to, carried.over], [10, 90, 95].map(Nanos));
        let found: Vec<(u64, u64, Commanded)> = wire
            .command(carried)
            .into_iter()
            .map(|(from, to, what)| (from.0, to.0, what))
            .collect();
        let waits = Commanded::Waits(Waits::Free);
        assert_eq!(
            found,
            [
                (10, 20, Commanded::Packet),
                (20, 30, waits),
                (30, 60, Commanded::NotNow),
                (60, 70, Commanded::Packet),
                (70, 80, waits),
                (80, 90, Commanded::Packet),
            ]
        );
    }
}
