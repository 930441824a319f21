//! An endpoint as the controller keeps it, and the transfer it works on.

use crate::ring::Cursor;
use diapason_bus::{Coding, Direction, Picos, Speed, Transfer, packet_time};
use diapason_devices::Stall;
use diapason_usb::Setup;
use diapason_usb::context::{self, EndpointKind, EndpointState};
use diapason_usb::trb::{Kind, Trb, bit};

/// A block of a transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub at: Cursor,
    pub block: Trb,
    /// Bytes of the transfer before it.
    pub begin: u64,
}

impl Piece {
    /// Bytes it adds to the transfer.
    pub fn length(&self) -> u64 {
        if self.has_data() { u64::from(self.block.length()) } else { 0 }
    }

    /// Returns the offset of its end in the transfer.
    pub fn end(&self) -> u64 {
        self.begin + self.length()
    }

    /// Returns whether it describes bytes. A status stage or a cookie does not.
    pub fn has_data(&self) -> bool {
        matches!(self.block.kind(), Some(Kind::Normal | Kind::Data | Kind::Isoch | Kind::Setup))
    }
}

/// A transfer descriptor: blocks that belong together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Td {
    pub pieces: Vec<Piece>,
    /// The first piece that is not completed.
    pub current: usize,
    /// Bytes of all pieces.
    pub total: u64,
    pub done: u64,
    /// Bytes moved since the last cookie.
    pub counted: u64,
    /// The chain goes on, but the next block is not there yet.
    pub open: bool,
    /// A short packet came: what is left is only passed over.
    pub short: bool,
    /// Behind the last block.
    pub tail: Cursor,
}

impl Td {
    /// Returns the piece in progress.
    pub fn piece(&self) -> Option<&Piece> {
        self.pieces.get(self.current)
    }

    /// Returns the kind of its first block.
    pub fn kind(&self) -> Option<Kind> {
        self.pieces.first().and_then(|piece| piece.block.kind())
    }

    /// Returns where `length` bytes from `done` on are: index of the piece, offset, length.
    pub fn spread(&self, length: u64) -> Vec<(usize, u64, u64)> {
        let (from, to) = (self.done, self.done + length);
        let part = |(index, piece): (usize, &Piece)| {
            let (a, b) = (piece.begin.max(from), piece.end().min(to));
            (a < b).then(|| (index, a - piece.begin, b - a))
        };
        self.pieces.iter().enumerate().skip(self.current).filter_map(part).collect()
    }
}

/// How far the piece at a stopped endpoint's dequeue pointer had come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resume {
    pub pointer: u64,
    pub moved: u64,
    pub counted: u64,
}

/// A control transfer between its stages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Control {
    pub setup: Option<Setup>,
    pub data: Vec<u8>,
    /// The answer of the device.
    pub answer: Option<Result<Vec<u8>, Stall>>,
    /// Bytes of the answer that were sent.
    pub sent: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub kind: EndpointKind,
    pub speed: Speed,
    pub packet: u32,
    pub burst: u32,
    /// Slots of its bus between services.
    pub period: u64,
    /// Most bytes per service.
    pub payload: u64,
    pub attempts: u32,
    pub state: EndpointState,
    pub cursor: Cursor,
    pub td: Option<Td>,
    pub resume: Option<Resume>,
    pub errors: u32,
    /// The device said "not now".
    pub waiting: bool,
    /// Periodic, between two transfers: an empty ring at the next service is reported.
    pub streaming: bool,
    pub bus: usize,
    /// The slot of its period in which it is served.
    pub phase: u64,
    /// The slot it is served in next.
    pub due: u64,
    /// Packets left in this service or visit.
    pub quota: u32,
    pub control: Control,
    /// Stop Endpoint waits for the packet under way.
    pub stopping: bool,
    /// Packets that fail from now on.
    pub failing: u32,
    /// Up to there the memory of its transfers is known to be given away.
    pub lent_to: Option<Cursor>,
}

impl Endpoint {
    /// From a context that makes sense; `None` if it does not.
    pub fn new(index: u8, words: &context::EndpointContext, speed: Speed) -> Option<Endpoint> {
        let kind = words.kind().filter(|&kind| is_sane(index, kind, words, speed))?;
        let (packet, burst) = (words.packet(), words.burst());
        let (pointer, cycle) = words.dequeue();
        let slots = if speed.slot() == Speed::Full.slot() { 8 } else { 1 };
        let most = u64::from((burst + 1) * (words.mult() + 1) * packet);
        let payload = match u64::from(words.payload()) {
            0 => most,
            payload => payload,
        };
        if kind.is_periodic() && payload > most {
            return None;
        }
        Some(Endpoint {
            kind,
            speed,
            packet,
            burst,
            period: ((1 << words.interval()) / slots).max(1),
            payload,
            attempts: words.attempts(),
            state: EndpointState::Running,
            cursor: Cursor { pointer, cycle },
            td: None,
            resume: None,
            errors: 0,
            waiting: false,
            streaming: false,
            bus: 0,
            phase: 0,
            due: 0,
            quota: 0,
            control: Control::default(),
            stopping: false,
            failing: 0,
            lent_to: None,
        })
    }

    /// Packets of a service or a visit of the round.
    pub fn quantum(&self) -> u32 {
        match self.kind.is_periodic() {
            true => (self.payload.div_ceil(u64::from(self.packet))).max(1) as u32,
            false if self.kind == EndpointKind::Control => 1,
            false => self.burst + 1,
        }
    }

    /// Returns where the data of its present stage goes.
    pub fn direction(&self) -> Direction {
        let input = match self.td.as_ref().and_then(|td| td.pieces.first()) {
            Some(first) if self.kind == EndpointKind::Control => {
                first.block.has(bit::IN) && first.block.kind() != Some(Kind::Setup)
            }
            _ => self.kind.is_in(),
        };
        if input { Direction::In } else { Direction::Out }
    }

    /// Returns how long a packet of it takes.
    pub fn packet_time(&self, coding: Coding, bytes: u32) -> Picos {
        packet_time(self.speed, coding, transfer(self.kind), self.direction(), bytes)
    }

    /// Returns its use of the slots in which it is served.
    pub fn cost(&self, coding: Coding) -> Picos {
        let (whole, rest) =
            (self.payload / u64::from(self.packet), self.payload % u64::from(self.packet));
        let last = if rest > 0 { self.packet_time(coding, rest as u32) } else { Picos::ZERO };
        self.packet_time(coding, self.packet).times(whole) + last
    }

    /// Bytes of its next packet, if there is one to be made now.
    pub fn next_packet(&self) -> Option<u32> {
        let td = self.td.as_ref()?;
        let (left, packet) = (td.total - td.done, u64::from(self.packet));
        let ready = self.state == EndpointState::Running && !td.short && !self.stopping;
        // Only whole packets of an open chain are known.
        (ready && (!td.open || left >= packet)).then_some(left.min(packet) as u32)
    }

    /// Writes the endpoint's context as memory shows it.
    pub fn write_back(&self, words: &mut context::EndpointContext) {
        words.set_state_number(number(self.state));
        let at = self.td.as_ref().and_then(Td::piece).map_or(self.cursor, |piece| piece.at);
        words.set_dequeue(at.pointer, at.cycle);
    }

    /// Forgets the transfer in progress, not where it stands.
    pub fn drop_td(&mut self) {
        if let Some(piece) = self.td.as_ref().and_then(Td::piece) {
            self.cursor = piece.at;
        }
        self.td = None;
        self.waiting = false;
        self.streaming = false;
    }
}

/// Returns whether a context makes sense for the endpoint at this index.
fn is_sane(index: u8, kind: EndpointKind, words: &context::EndpointContext, speed: Speed) -> bool {
    let control = kind == EndpointKind::Control;
    let fits = if index == 1 { control } else { control || kind.is_in() == (index & 1 == 1) };
    let most = if index == 1 { 512 } else { speed.largest_packet(transfer(kind)) };
    let size = (1..=most).contains(&words.packet()) && words.burst() <= 15 && words.mult() <= 2;
    fits && size && words.interval() <= 15 && words.streams() == 0
}

/// The number of a state in a context.
fn number(state: EndpointState) -> u32 {
    match state {
        EndpointState::Disabled => 0,
        EndpointState::Running => 1,
        EndpointState::Halted => 2,
        EndpointState::Stopped => 3,
        EndpointState::Error => 4,
    }
}

fn transfer(kind: EndpointKind) -> Transfer {
    match kind {
        EndpointKind::Control => Transfer::Control,
        EndpointKind::BulkIn | EndpointKind::BulkOut => Transfer::Bulk,
        EndpointKind::InterruptIn | EndpointKind::InterruptOut => Transfer::Interrupt,
        EndpointKind::IsochIn | EndpointKind::IsochOut => Transfer::Isochronous,
    }
}
