//! The traffic at a controller: which transfer brought or took which message, and the events on the
//! bus while one waited.

use diapason_abi::Nanos;
use diapason_bus::Picos;
use diapason_devices::can::Passing;
use diapason_devices::gs_usb;
use diapason_devices::kvaser::{CommandStream, passing};
use diapason_sim::{BusPacket, InterruptMessage, PacketOutcome, TapTraffic, TransferRecord};
use diapason_usb::context::EndpointKind;
use diapason_usb::trb::{Completion, endpoint_address};
use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hasher};

/// A device's slot and an endpoint's address.
pub(super) type Place = (u8, u8);

/// The content of a transfer, or a part of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// A command about a message of a CAN channel.
    Command(Passing),
    /// A packet of a source or to a sink, as the digest of its bytes.
    Packet(u64),
    /// A command of a disk with its data: the first block, and how many.
    Run(u32, u32),
}

/// A message, or news of one, in a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carried {
    pub what: Content,
    pub place: Place,
    /// The first and the last instant of the packets that carried it.
    pub from: Nanos,
    pub to: Nanos,
    /// The end of its transfer, and the interrupter that reports it.
    pub over: Nanos,
    pub vector: u16,
}

/// The state of a message that is in its device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Waits {
    /// No transfer of its endpoint is under way.
    NoTransfer,
    /// The message's endpoint's packets do not carry it yet.
    Before,
    /// The bus carries a packet of another endpoint: device, address.
    Others(u8, u8),
    /// A packet would not end within this slot of the bus.
    SlotEnds,
    /// The bus is free.
    Free,
}

/// A slot of a fast bus; those of slow ones are longer, and end when these do.
const SLOT: u64 = 125_000;

/// A stream of commands, and the packets in which its bytes came.
#[derive(Default)]
pub(super) struct Flow {
    stream: CommandStream,
    /// Bytes left, first instant, last instant.
    pub parts: VecDeque<(usize, Nanos, Nanos)>,
}

/// A controller, as it is seen from outside.
#[derive(Default)]
pub struct ObservedController {
    /// The packets of each bus, which follow each other, and the bus of each endpoint.
    packets: BTreeMap<usize, VecDeque<BusPacket>>,
    buses: BTreeMap<Place, usize>,
    /// From when to when transfers were under way; the last may still be.
    hands: BTreeMap<Place, VecDeque<(Nanos, Nanos)>>,
    /// Packets whose transfer has not ended.
    open: BTreeMap<Place, VecDeque<BusPacket>>,
    /// The contents of transfers to devices that have not ended.
    orders: BTreeMap<Place, VecDeque<Vec<u8>>>,
    pub(super) flows: BTreeMap<Place, Flow>,
    interrupts: VecDeque<InterruptMessage>,
    pub(super) carried: Vec<Carried>,
    /// The command that the disk in a slot is at: its blocks, and when its first packet began.
    pub(super) commands: BTreeMap<u8, ((u32, u32), Nanos)>,
    /// Interrupters of sources and sinks, and whether transfers come from the device: each of these
    /// is a message.
    sources: BTreeMap<Told, Apart>,
}

/// The interrupter that tells of transfers, and whether they come from their device.
pub type Told = (u16, bool);

/// How the messages of a source or sink are told from each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Apart {
    Bytes,
    /// Each has a time at this place, and no other one has that time and that length.
    Time(usize),
    /// Their length and their order tell them apart.
    Length,
    /// Each is a command of a disk, its data and its status.
    Blocks,
}

pub(super) fn span(packet: &BusPacket) -> (Nanos, Nanos) {
    // A packet begins in the middle of a nanosecond of the host's clock, and is noticed at its end.
    let floor = |time: Picos| Nanos(time.0 / 1_000);
    (floor(packet.start), packet.end.nanos())
}

/// Returns a number that other bytes of a packet or message do not have.
#[must_use]
pub fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// Returns such a number of a frame: the time in it, as its bytes, and its length say which it is.
#[must_use]
pub fn frame_digest(time: [u8; 8], length: usize) -> u64 {
    digest(&[time, (length as u64).to_le_bytes()].concat())
}

/// Returns the number that all messages of this length have which are told apart by it.
#[must_use]
pub fn length_digest(length: usize) -> u64 {
    frame_digest([0; 8], length)
}

impl Apart {
    /// Returns the number of what a transfer carried.
    fn number(self, data: &[u8]) -> u64 {
        match self {
            Apart::Bytes => digest(data),
            Apart::Time(stamp) => {
                let time = data.get(stamp..).and_then(|rest| rest.first_chunk());
                time.map_or_else(|| digest(data), |time| frame_digest(*time, data.len()))
            }
            Apart::Length | Apart::Blocks => length_digest(data.len()),
        }
    }
}

impl ObservedController {
    /// Returns a controller at which transfers that these interrupters tell of are messages.
    #[must_use]
    pub fn new(sources: BTreeMap<Told, Apart>) -> ObservedController {
        ObservedController { sources, ..ObservedController::default() }
    }

    /// Notes further traffic of the bus.
    pub fn note(&mut self, passed: &TapTraffic) {
        self.interrupts.extend(&passed.interrupts);
        for packet in &passed.packets {
            let place = (packet.slot, endpoint_address(packet.endpoint));
            self.buses.insert(place, packet.bus);
            self.packets.entry(packet.bus).or_default().push_back(*packet);
            if packet.outcome == PacketOutcome::Moved && is_carrier(packet.kind) {
                self.open.entry(place).or_default().push_back(*packet);
            }
        }
        for transfer in &passed.transfers {
            let place = (transfer.slot, transfer.endpoint);
            let hands = self.hands.entry(place).or_default();
            match transfer.end {
                None => {
                    hands.push_back((transfer.time, Nanos::FOREVER));
                    if matches!(transfer.kind, EndpointKind::BulkOut | EndpointKind::InterruptOut) {
                        self.orders.entry(place).or_default().push_back(transfer.data.clone());
                    }
                }
                Some(code) => {
                    hands.back_mut().into_iter().for_each(|last| last.1 = transfer.time);
                    let orders = self.orders.get_mut(&place);
                    let order = orders.and_then(VecDeque::pop_front).unwrap_or_default();
                    let data = if transfer.kind.is_in() { &transfer.data } else { &order };
                    match transfer.kind {
                        EndpointKind::BulkIn | EndpointKind::BulkOut => {
                            self.ended(place, transfer, data, code);
                        }
                        EndpointKind::InterruptIn | EndpointKind::InterruptOut => {
                            match self.sources.contains_key(&told(transfer)) {
                                true => self.ended(place, transfer, data, code),
                                false => drop(self.open.remove(&place)),
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    /// A transfer has ended: the messages in it.
    fn ended(&mut self, place: Place, transfer: &TransferRecord, data: &[u8], code: Completion) {
        let flow = self.flows.entry(place).or_default();
        let open = self.open.entry(place).or_default();
        while let Some(packet) = open.pop_front_if(|packet| span(packet).1 <= transfer.time) {
            let (from, to) = span(&packet);
            flow.parts.push_back((packet.bytes as usize, from, to));
        }
        let source = self.sources.get(&told(transfer)).copied();
        if source.is_some() && !transfer.kind.is_in() && code != Completion::Success {
            // The device does not have it.
            flow.parts.clear();
            return;
        }
        if source == Some(Apart::Blocks) {
            return self.commanded(place, transfer, data);
        }
        let whole = match source {
            Some(apart) => Some(Content::Packet(apart.number(data))),
            None => gs_usb::passing(place.1, data).map(Content::Command),
        };
        if let Some(what) = whole {
            let ends = flow.parts.front().zip(flow.parts.back());
            let (from, to) = ends.map_or((transfer.time, transfer.time), |it| (it.0.1, it.1.2));
            flow.parts.clear();
            let (over, vector) = (transfer.time, transfer.vector);
            self.carried.push(Carried { what, place, from, to, over, vector });
            return;
        }
        flow.stream.push(data);
        while let Some(command) = flow.stream.pop() {
            let Ok(command) = command else {
                *flow = Flow::default();
                return;
            };
            let Some((from, to)) = flow.take(command.length()) else { continue };
            let Some(what) = passing(&command).map(Content::Command) else { continue };
            let (over, vector) = (transfer.time, transfer.vector);
            self.carried.push(Carried { what, place, from, to, over, vector });
        }
        if !matches!(code, Completion::Success | Completion::ShortPacket) {
            *flow = Flow::default();
        }
    }

    /// Messages that passed, since the last call.
    pub fn take_carried(&mut self) -> Vec<Carried> {
        std::mem::take(&mut self.carried)
    }

    /// Returns when the first interrupt of this number came between two instants.
    pub fn interrupt(&self, vector: u16, from: Nanos, to: Nanos) -> Option<Nanos> {
        let of_it = self.interrupts.iter().filter(|interrupt| interrupt.vector == vector);
        let times = of_it.map(|interrupt| interrupt.at);
        times.filter(|at| (from..=to).contains(at)).min()
    }

    /// Returns when the transfer that carried a message was queued.
    pub fn queued(&self, carried: &Carried) -> Option<Nanos> {
        let mut hands = self.hands.get(&carried.place)?.iter();
        hands.find(|(_, ended)| *ended == carried.over).map(|(begun, _)| *begun)
    }

    /// Returns when the first packet with a message was on the bus to which its device said "not
    /// now", since no other one of its endpoint was before it.
    pub fn refused(&self, carried: &Carried, queued: Nanos) -> Option<(Nanos, Nanos)> {
        let mut packets = within(self.on_its_bus(carried.place)?, span, queued, carried.from);
        let refused = packets
            .find(|packet| is_of(packet, carried.place) && packet.outcome == PacketOutcome::Nak);
        refused.map(span)
    }

    /// Returns why a message that is in its device was not asked for, from one instant to another.
    pub fn waits(&self, place: Place, from: Nanos, to: Nanos) -> Vec<(Nanos, Nanos, Waits)> {
        if from == to {
            return Vec::new();
        }
        let hands: Vec<(Nanos, Nanos)> = match self.hands.get(&place) {
            Some(hands) => within(hands, |hand| *hand, from, to).copied().collect(),
            None => Vec::new(),
        };
        let packets: Vec<&BusPacket> = match self.on_its_bus(place) {
            Some(packets) => within(packets, span, from, to).collect(),
            None => Vec::new(),
        };
        let ends = packets.iter().map(|packet| span(packet)).chain(hands.iter().copied());
        let mut cuts: Vec<Nanos> = ends.flat_map(|(begun, ended)| [begun, ended]).collect();
        cuts.retain(|cut| (from..to).contains(cut));
        cuts.extend([from, to]);
        cuts.sort_unstable();
        cuts.dedup();
        let mut found: Vec<(Nanos, Nanos, Waits)> = Vec::new();
        for pair in cuts.windows(2) {
            let what = match during(&packets, pair) {
                _ if !hands.iter().any(|hand| covers(*hand, pair)) => Waits::NoTransfer,
                Some(packet) if is_of(packet, place) => Waits::Before,
                Some(packet) => Waits::Others(packet.slot, endpoint_address(packet.endpoint)),
                None if pair[1].0.is_multiple_of(SLOT) => Waits::SlotEnds,
                None => Waits::Free,
            };
            match found.last_mut() {
                Some(last) if last.2 == what => last.1 = pair[1],
                _ => found.push((pair[0], pair[1], what)),
            }
        }
        found
    }

    /// Returns the packets of the bus on which those of an endpoint are.
    pub(super) fn on_its_bus(&self, place: Place) -> Option<&VecDeque<BusPacket>> {
        self.packets.get(self.buses.get(&place)?)
    }

    /// Forgets what was over before `oldest`.
    pub fn forget(&mut self, oldest: Nanos) {
        for packets in self.packets.values_mut() {
            while packets.pop_front_if(|packet| span(packet).1 < oldest).is_some() {}
        }
        while self.interrupts.pop_front_if(|interrupt| interrupt.at < oldest).is_some() {}
        for hands in self.hands.values_mut() {
            while hands.pop_front_if(|(_, ended)| *ended < oldest).is_some() {}
        }
    }
}

/// Returns those of things that follow each other which are under way between two instants.
pub(super) fn within<T>(
    all: &VecDeque<T>,
    span: impl Fn(&T) -> (Nanos, Nanos),
    from: Nanos,
    to: Nanos,
) -> impl Iterator<Item = &T> {
    let first = all.partition_point(|it| span(it).1 <= from);
    all.range(first..).take_while(move |it| span(it).0 < to)
}

/// Returns whether a span covers the time between two neighbouring cuts.
fn covers((begun, ended): (Nanos, Nanos), pair: &[Nanos]) -> bool {
    begun <= pair[0] && pair[1] <= ended
}

/// Returns the packet of a bus that covers the time between two neighbouring cuts. Packets follow
/// each other on a bus, so only the last two that have begun can, and both if they touch in the
/// middle of a nanosecond.
fn during<'p>(packets: &[&'p BusPacket], pair: &[Nanos]) -> Option<&'p BusPacket> {
    let begun = packets.partition_point(|packet| span(packet).0 <= pair[0]);
    let last = &packets[begun.saturating_sub(2)..begun];
    last.iter().copied().find(|packet| covers(span(packet), pair))
}

/// Returns how a transfer is told.
const fn told(transfer: &TransferRecord) -> Told {
    (transfer.vector, transfer.kind.is_in())
}

/// Returns whether packets of this kind of endpoint can carry messages of pipes.
pub(super) fn is_carrier(kind: EndpointKind) -> bool {
    !matches!(kind, EndpointKind::Control) && !kind.is_isochronous()
}

fn is_of(packet: &BusPacket, place: Place) -> bool {
    (packet.slot, endpoint_address(packet.endpoint)) == place
}

impl Flow {
    /// Returns when the next bytes came.
    fn take(&mut self, mut bytes: usize) -> Option<(Nanos, Nanos)> {
        while self.parts.pop_front_if(|(left, ..)| *left == 0).is_some() {}
        let begun = self.parts.front()?.1;
        loop {
            let (left, _, ended) = self.parts.front_mut()?;
            let part = bytes.min(*left);
            *left -= part;
            bytes -= part;
            if bytes == 0 {
                return Some((begun, *ended));
            }
            self.parts.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IN: Place = (1, 0x82);

    fn packet(start: u64, end: u64, endpoint: u8) -> BusPacket {
        let (start, end) = (Picos(start * 1_000), Picos(end * 1_000));
        let (kind, outcome) = (EndpointKind::BulkIn, PacketOutcome::Moved);
        BusPacket { start, end, bus: 0, slot: 1, endpoint, kind, bytes: 8, outcome }
    }

    #[test]
    fn every_instant_in_a_device_has_one_reason() {
        let mut wire = ObservedController::default();
        let packets = vec![packet(10, 20, 5), packet(30, 40, 4), packet(124_990, 125_005, 5)];
        wire.note(&TapTraffic { packets, ..TapTraffic::default() });
        wire.hands
            .entry(IN)
            .or_default()
            .extend([(Nanos(5), Nanos(35)), (Nanos(50), Nanos::FOREVER)]);
        let found: Vec<(u64, Waits)> = wire
            .waits(IN, Nanos(0), Nanos(130))
            .into_iter()
            .map(|(at, _, why)| (at.0, why))
            .collect();
        let other = Waits::Others(1, 2);
        assert_eq!(
            found,
            [
                (0, Waits::NoTransfer),
                (5, Waits::Free),
                (10, Waits::Before),
                (20, Waits::Free),
                (30, other),
                (35, Waits::NoTransfer),
                (50, Waits::Free),
            ]
        );
        let late = wire.waits(IN, Nanos(124_000), Nanos(125_000));
        let reasons: Vec<Waits> = late.iter().map(|(.., why)| *why).collect();
        assert_eq!(reasons, [Waits::Free, Waits::Before]);
        let late = wire.waits(IN, Nanos(249_000), Nanos(250_000));
        assert_eq!(late, [(Nanos(249_000), Nanos(250_000), Waits::SlotEnds)]);
        assert_eq!(wire.waits(IN, Nanos(7), Nanos(7)), []);
    }

    /// Returns a controller whose interrupter 3 is that of a sink, after the packet 7 to it. That
    /// packet was offered twice, and taken at last or not.
    fn written(code: Completion) -> ObservedController {
        let mut wire = ObservedController::new(BTreeMap::from([((3, false), Apart::Bytes)]));
        let kind = EndpointKind::InterruptOut;
        let part = |start, end, outcome| BusPacket { kind, outcome, ..packet(start, end, 2) };
        let (not_now, moved) = (PacketOutcome::Nak, PacketOutcome::Moved);
        let packets = vec![part(30, 40, not_now), part(60, 70, not_now), part(90, 100, moved)];
        let at = |time, end: Option<Completion>| TransferRecord {
            time: Nanos(time),
            id: 0,
            slot: 1,
            endpoint: 1,
            kind,
            setup: None,
            vector: 3,
            length: 1,
            data: if end.is_none() { vec![7] } else { Vec::new() },
            end,
        };
        let transfers = vec![at(20, None), at(105, Some(code))];
        wire.note(&TapTraffic { packets, transfers, ..TapTraffic::default() });
        wire
    }

    #[test]
    fn a_packet_that_a_device_took_was_queued_and_may_have_been_refused_before() {
        let mut wire = written(Completion::Success);
        let carried = wire.take_carried();
        let [carried] = carried.as_slice() else { panic!("{carried:?}") };
        assert_eq!(carried.what, Content::Packet(digest(&[7])));
        assert_eq!([carried.from, carried.to, carried.over], [90, 100, 105].map(Nanos));
        assert_eq!(wire.queued(carried), Some(Nanos(20)));
        assert_eq!(wire.refused(carried, Nanos(20)), Some((Nanos(30), Nanos(40))));
        assert_eq!(wire.refused(carried, Nanos(70)), None);
    }

    /// A frame of two packets is told from others by its time and its length, and was on the bus
    /// from the first packet to the last.
    #[test]
    fn a_frame_is_known_by_the_time_in_it() {
        let mut wire = ObservedController::new(BTreeMap::from([((3, true), Apart::Time(4))]));
        let kind = EndpointKind::BulkIn;
        let part = |start, end, bytes| BusPacket { kind, bytes, ..packet(start, end, 5) };
        let mut data = vec![0; 600];
        data[4..12].copy_from_slice(&77_u64.to_le_bytes());
        let ended = TransferRecord {
            time: Nanos(60),
            id: 0,
            slot: 1,
            endpoint: IN.1,
            kind,
            setup: None,
            vector: 3,
            length: 600,
            data,
            end: Some(Completion::ShortPacket),
        };
        let packets = vec![part(10, 30, 512), part(40, 50, 88)];
        wire.note(&TapTraffic { packets, transfers: vec![ended], ..TapTraffic::default() });
        let carried = wire.take_carried();
        let [carried] = carried.as_slice() else { panic!("{carried:?}") };
        assert_eq!(carried.what, Content::Packet(frame_digest(77_u64.to_le_bytes(), 600)));
        assert_eq!([carried.from, carried.to, carried.over], [10, 50, 60].map(Nanos));
        assert_ne!(frame_digest([0; 8], 600), frame_digest([0; 8], 601));
    }

    #[test]
    fn a_packet_that_a_device_did_not_take_was_not_carried() {
        assert_eq!(written(Completion::Stopped).take_carried(), []);
    }

    /// A message may wait while a disk moves a hundred thousand packets, so they are not looked
    /// through one by one.
    #[test]
    fn the_packet_at_an_instant_is_the_one_that_looking_at_all_finds() {
        let mut random = diapason_random::Random::new(7);
        for _ in 0..200 {
            let (mut now, mut packets) = (0, Vec::new());
            for _ in 0..random.below(40) {
                let start = now + random.below(2_500);
                now = start + 2_000 + random.below(5_000);
                let mut one = packet(0, 0, 5);
                (one.start, one.end) = (Picos(start), Picos(now));
                packets.push(one);
            }
            let all: Vec<&BusPacket> = packets.iter().collect();
            for at in 0..now / 1_000 + 2 {
                let pair = [Nanos(at), Nanos(at + 1)];
                let looked = all.iter().copied().find(|packet| covers(span(packet), &pair));
                assert_eq!(during(&all, &pair), looked, "{packets:?} at {at}");
            }
        }
    }

    #[test]
    fn a_command_that_was_cut_came_in_all_its_packets() {
        let mut flow = Flow::default();
        let part = |bytes, from, to| (bytes, Nanos(from), Nanos(to));
        flow.parts.extend([part(40, 1, 2), part(0, 3, 4), part(24, 5, 6)]);
        let times = |from, to| Some((Nanos(from), Nanos(to)));
        assert_eq!([flow.take(32), flow.take(32), flow.take(32)], [times(1, 2), times(1, 6), None]);
    }
}
