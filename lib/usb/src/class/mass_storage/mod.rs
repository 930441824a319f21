//! Disks over USB: the bulk-only transport with the few SCSI commands that a disk needs.
//!
//! One command at a time: a command block, its data, a status block. This module handles the errors
//! that the transport defines, up to the reset of the device. The caller learns once how a command
//! ended. Blocks go through a buffer of [`BUFFER`] bytes, so that data is told only when its status
//! was good; or they stay in memory that is shared with a client ([`MassStorage::read_to`],
//! [`MassStorage::write_from`]), who believes them when the command was good.
//!
//! All three transfers of a command with shared memory are asked for at once, unless
//! [`MassStorage::ask_ahead`] says otherwise: the device has nothing to send before it has the
//! command, and takes data behind it. So the host has to hear of the end only. QEMU's own disk
//! fails a command whose data are asked for before it.
//!
//! Not here: more than one logical unit, file systems, write caches.

mod wire;

use super::{Class, Completion, Landed, Request, TransferFault};
use crate::Setup;
use crate::context::EndpointKind;
use crate::descriptor::Configuration;
use diapason_abi::Nanos;
use wire::Status;
pub use wire::{COMMAND_BYTES, Capacity, Inquiry, STATUS_BYTES, ScsiCommand, Sense};

/// Most bytes of data of a command.
pub const BUFFER: usize = 4096;
/// Most bytes of data of a command whose data is in shared memory.
pub const SHARED: usize = 65_536;
/// A transfer has so long: a disk may have to start turning.
pub const TRANSFER_TIME: Nanos = Nanos::from_secs(5);
/// Mass storage, SCSI, bulk-only.
const CLASS: [u8; 3] = [8, 6, 0x50];

/// The end of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiskEvent<'a> {
    /// The answer to an inquiry.
    Inquiry(Inquiry),
    /// The medium can be used.
    Ready,
    /// The size of the disk.
    Capacity(Capacity),
    /// Blocks that were read.
    Read {
        /// The first of them.
        block: u32,
        data: &'a [u8],
    },
    /// Blocks were read to shared memory.
    ReadTo {
        /// The first of them.
        block: u32,
        place: u32,
    },
    Written {
        /// The first of them.
        block: u32,
    },
    /// Why the last command failed.
    Sense(Sense),
    /// The command did not work, the device does.
    Failed(CommandFailure),
    /// The device does not work any more.
    Dead,
}

/// Why a command did not work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandFailure {
    /// The device says no; ask it why.
    Refused,
    /// The device lost its way, or sent what makes no sense, and was reset.
    Confused,
    /// The device was too slow and was reset.
    Late,
    /// The device gave fewer bytes than it had to.
    Short,
}

/// Why a command is not begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// Another one is not ended.
    Busy,
    /// The device does not work.
    Dead,
    /// The capacity is not known yet.
    NoCapacity,
    /// No blocks, more than fit into [`BUFFER`] or [`SHARED`], or beyond the end.
    Blocks,
    /// Other bytes than whole blocks.
    Length,
}

/// Where the command is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Idle,
    Command,
    Data,
    /// The device ended the data with a stall.
    ClearData,
    Status,
    /// The device stalled the status, which is allowed once.
    ClearStatus,
    /// From here on the device is being reset.
    Reset,
    ResetIn,
    ResetOut,
    Dead,
}

/// Transfers that were asked for before their stage.
#[derive(Clone, Copy, Debug, Default)]
struct Ahead {
    data: bool,
    status: bool,
}

/// Tags of commands begin behind this one. They wrap after ten commands, in every run, so that
/// nothing can come to depend on their order.
const FIRST_TAG: u32 = u32::MAX - 10;

/// Transfers of each direction whose command was given up.
#[derive(Clone, Copy, Debug, Default)]
struct Stale {
    out: u8,
    back: u8,
}

/// The driver of one disk.
#[derive(Clone, Debug)]
pub struct MassStorage {
    interface: u8,
    input: u8,
    output: u8,
    stage: Stage,
    /// The stage's transfer was asked for and is to end until then.
    deadline: Option<Nanos>,
    /// Endpoints whose transfers are to end.
    cancel: [Option<u8>; 2],
    /// Data and status are asked for before their stage.
    asks_ahead: bool,
    /// Transfers that were asked for before their stage, and have not ended.
    ahead: Ahead,
    /// How many of the command were asked for so: data, then status.
    early: u8,
    /// One of them ended before the transfer that comes before it.
    is_confused: bool,
    /// Those whose command was given up, of each direction. Their ends mean nothing.
    stale: Stale,
    command: ScsiCommand,
    block: [u8; COMMAND_BYTES],
    tag: u32,
    buffer: [u8; BUFFER],
    /// Where the data is, if not in the buffer.
    place: Option<u32>,
    /// Bytes of data that moved.
    moved: usize,
    status_again: bool,
    failure: CommandFailure,
    capacity: Option<Capacity>,
}

impl MassStorage {
    /// Returns the class for the first disk of the configuration.
    #[must_use]
    pub fn find(configuration: &Configuration<'_>) -> Option<MassStorage> {
        configuration.interfaces().filter(|i| i.class == CLASS).find_map(|interface| {
            Some(MassStorage {
                interface: interface.number,
                input: interface.endpoint(EndpointKind::BulkIn)?.address,
                output: interface.endpoint(EndpointKind::BulkOut)?.address,
                stage: Stage::Idle,
                deadline: None,
                cancel: [None; 2],
                asks_ahead: true,
                ahead: Ahead::default(),
                early: 0,
                is_confused: false,
                stale: Stale::default(),
                command: ScsiCommand::TestUnitReady,
                block: [0; COMMAND_BYTES],
                tag: FIRST_TAG,
                buffer: [0; BUFFER],
                place: None,
                moved: 0,
                status_again: false,
                failure: CommandFailure::Confused,
                capacity: None,
            })
        })
    }

    /// Begins a command that needs no blocks.
    ///
    /// # Errors
    /// It is not begun.
    pub fn begin(&mut self, command: ScsiCommand) -> Result<(), Refused> {
        match command {
            ScsiCommand::Read { block, count } => self.read(block, count),
            ScsiCommand::Write { .. } => Err(Refused::Length),
            _ => self.start(command, None),
        }
    }

    /// Reads `count` blocks from `block` on.
    ///
    /// # Errors
    /// It is not begun.
    pub fn read(&mut self, block: u32, count: u16) -> Result<(), Refused> {
        self.check(block, count, BUFFER)?;
        self.start(ScsiCommand::Read { block, count }, None)
    }

    /// Reads `count` blocks to shared memory.
    ///
    /// # Errors
    /// It is not begun.
    pub fn read_to(&mut self, block: u32, count: u16, place: u32) -> Result<(), Refused> {
        self.check(block, count, SHARED)?;
        self.start(ScsiCommand::Read { block, count }, Some(place))
    }

    /// Writes `count` blocks from shared memory.
    ///
    /// # Errors
    /// It is not begun.
    pub fn write_from(&mut self, block: u32, count: u16, place: u32) -> Result<(), Refused> {
        self.check(block, count, SHARED)?;
        self.start(ScsiCommand::Write { block, count }, Some(place))
    }

    /// Writes `data`, which is whole blocks, from `block` on.
    ///
    /// # Errors
    /// It is not begun.
    pub fn write(&mut self, block: u32, data: &[u8]) -> Result<(), Refused> {
        let size = self.capacity.ok_or(Refused::NoCapacity)?.block_bytes as usize;
        let count = u16::try_from(data.len() / size).map_err(|_| Refused::Blocks)?;
        if !data.len().is_multiple_of(size) {
            return Err(Refused::Length);
        }
        self.check(block, count, BUFFER)?;
        self.start(ScsiCommand::Write { block, count }, None)?;
        self.buffer[..data.len()].copy_from_slice(data);
        Ok(())
    }

    fn check(&self, block: u32, count: u16, most: usize) -> Result<(), Refused> {
        let capacity = self.capacity.ok_or(Refused::NoCapacity)?;
        let bytes = capacity.block_bytes as usize * usize::from(count);
        let end = u64::from(block) + u64::from(count);
        let fits = count > 0 && bytes <= most && end <= capacity.blocks;
        if fits { Ok(()) } else { Err(Refused::Blocks) }
    }

    fn start(&mut self, command: ScsiCommand, place: Option<u32>) -> Result<(), Refused> {
        match self.stage {
            Stage::Idle => {}
            Stage::Dead => return Err(Refused::Dead),
            _ => return Err(Refused::Busy),
        }
        self.tag = self.tag.wrapping_add(1);
        (self.command, self.place) = (command, place);
        self.block = command.encode(self.tag, self.length());
        (self.moved, self.status_again) = (0, false);
        (self.early, self.is_confused) = (0, false);
        self.enter(Stage::Command);
        Ok(())
    }

    fn enter(&mut self, stage: Stage) {
        (self.stage, self.deadline) = (stage, None);
    }

    /// Bytes of data of the command.
    fn length(&self) -> usize {
        let block = self.capacity.map_or(0, |capacity| capacity.block_bytes as usize);
        let most = if self.place.is_some() { SHARED } else { BUFFER };
        self.command.length(block).min(most)
    }

    /// Returns the endpoint of this stage's transfer; 0 is control.
    fn endpoint(&self) -> u8 {
        match self.stage {
            Stage::Command | Stage::ResetOut => self.output,
            Stage::Data | Stage::ClearData if self.command.is_out() => self.output,
            Stage::Data
            | Stage::ClearData
            | Stage::Status
            | Stage::ClearStatus
            | Stage::ResetIn => self.input,
            Stage::Idle | Stage::Reset | Stage::Dead => 0,
        }
    }

    /// Asks for data and status before their stage from the next command on, or not.
    pub fn ask_ahead(&mut self, ahead: bool) {
        self.asks_ahead = ahead;
    }

    /// Resets the device. An endpoint that has `failed` has ended what was pending on it.
    fn give_up(&mut self, failure: CommandFailure, failed: Option<u8>) {
        self.failure = failure;
        self.cancel = [self.input, self.output].map(|endpoint| {
            (self.has_ahead(endpoint) && failed != Some(endpoint)).then_some(endpoint)
        });
        self.forsake();
        self.enter(Stage::Reset);
    }

    /// Returns the endpoint of the command's data.
    fn data_endpoint(&self) -> u8 {
        if self.command.is_out() { self.output } else { self.input }
    }

    /// Returns whether a transfer that was asked for ahead is pending on an endpoint.
    fn has_ahead(&self, endpoint: u8) -> bool {
        let data = self.ahead.data && self.data_endpoint() == endpoint;
        data || self.ahead.status && self.input == endpoint
    }

    /// Transfers that were asked for ahead belong to no stage any more.
    fn forsake(&mut self) {
        let Ahead { data, status } = core::mem::take(&mut self.ahead);
        let is_out = self.command.is_out();
        self.stale.out += u8::from(data && is_out);
        self.stale.back += u8::from(data && !is_out) + u8::from(status);
    }

    /// Returns the next transfer that the command wants before its stage, and notes it.
    fn next_ahead(&mut self) -> Option<Request<'static>> {
        let place = self.place.filter(|_| self.asks_ahead)?;
        if self.stage != Stage::Command || self.early == 2 || self.is_confused {
            return None;
        }
        self.early += 1;
        let (endpoint, length) = (self.data_endpoint(), self.length());
        Some(match self.early {
            1 => {
                self.ahead.data = true;
                Request::Shared { endpoint, place, length }
            }
            _ => {
                self.ahead.status = true;
                Request::In { endpoint: self.input, length: STATUS_BYTES }
            }
        })
    }

    /// The transfer of the next stage is under way if it was asked for ahead.
    fn take_up(&mut self, now: Nanos) {
        let Ahead { data, status } = &mut self.ahead;
        let is_pending = match self.stage {
            Stage::Data => core::mem::take(data),
            Stage::Status => core::mem::take(status),
            _ => return,
        };
        if is_pending {
            self.deadline = Some(now + TRANSFER_TIME);
        }
    }

    /// Returns whether the end of a transfer is none of the stage: it belongs to a command that was
    /// given up, or the device sent something before it had the command or its data.
    fn is_stray(&mut self, endpoint: u8) -> bool {
        let stale =
            if endpoint == self.output { &mut self.stale.out } else { &mut self.stale.back };
        if matches!(endpoint, at if at == self.input || at == self.output) && *stale > 0 {
            *stale -= 1;
            return true;
        }
        let waits_for_output =
            matches!(self.stage, Stage::Command | Stage::Data) && self.endpoint() == self.output;
        let is_early = waits_for_output && endpoint == self.input && self.has_ahead(endpoint);
        if is_early {
            let Ahead { data, status } = &mut self.ahead;
            let first = if *data && !self.command.is_out() { data } else { status };
            *first = false;
            self.is_confused = true;
            self.cancel = [Some(self.output), None];
        }
        is_early || self.deadline.is_none() || endpoint != self.endpoint()
    }

    /// A transfer did what it should.
    fn good(&mut self, bytes: &[u8], tell: &mut dyn FnMut(DiskEvent<'_>)) {
        match self.stage {
            Stage::Command if bytes.len() < COMMAND_BYTES || self.is_confused => {
                self.give_up(CommandFailure::Confused, None);
            }
            Stage::Command if self.length() == 0 => self.enter(Stage::Status),
            Stage::Command => self.enter(Stage::Data),
            Stage::Data => {
                if !self.command.is_out() {
                    let moved = bytes.len().min(self.length());
                    self.buffer[..moved].copy_from_slice(&bytes[..moved]);
                }
                self.moved(bytes.len());
            }
            Stage::ClearData | Stage::ClearStatus => self.enter(Stage::Status),
            Stage::Status => self.status(bytes, tell),
            Stage::Reset => self.enter(Stage::ResetIn),
            Stage::ResetIn => self.enter(Stage::ResetOut),
            Stage::ResetOut => {
                self.enter(Stage::Idle);
                tell(DiskEvent::Failed(self.failure));
            }
            Stage::Idle | Stage::Dead => {}
        }
    }

    /// Counts bytes of data that have moved.
    fn moved(&mut self, bytes: usize) {
        if self.is_confused {
            return self.give_up(CommandFailure::Confused, None);
        }
        self.moved = bytes.min(self.length());
        self.enter(Stage::Status);
    }

    /// A transfer ended badly.
    fn bad(&mut self, fault: TransferFault, tell: &mut dyn FnMut(DiskEvent<'_>)) {
        let failed = Some(self.endpoint());
        match (self.stage, fault) {
            (Stage::Idle | Stage::Dead, _) => {}
            (_, TransferFault::Gone) | (Stage::Reset | Stage::ResetIn | Stage::ResetOut, _) => {
                self.enter(Stage::Dead);
                tell(DiskEvent::Dead);
            }
            // The status that was asked for may come while the endpoint is brought back.
            (Stage::Data, TransferFault::Stall) if self.ahead.status && self.command.is_out() => {
                self.give_up(CommandFailure::Refused, failed);
            }
            (Stage::Data, TransferFault::Stall) => {
                self.forsake();
                self.enter(Stage::ClearData);
            }
            (Stage::Status, TransferFault::Stall) if !self.status_again => {
                self.status_again = true;
                self.enter(Stage::ClearStatus);
            }
            (_, TransferFault::Cancelled | TransferFault::Late) => {
                self.give_up(CommandFailure::Late, failed);
            }
            _ => self.give_up(CommandFailure::Confused, failed),
        }
    }

    fn status(&mut self, bytes: &[u8], tell: &mut dyn FnMut(DiskEvent<'_>)) {
        let length = self.length();
        match wire::status(bytes, self.tag, length) {
            Some((Status::Good, residue)) => {
                let moved = self.moved.min(length - residue);
                self.enter(Stage::Idle);
                self.done(moved, tell);
            }
            Some((Status::Failed, _)) => {
                self.enter(Stage::Idle);
                tell(DiskEvent::Failed(CommandFailure::Refused));
            }
            Some((Status::Phase, _)) | None => self.give_up(CommandFailure::Confused, None),
        }
    }

    /// The command worked, with so many bytes of data.
    fn done(&mut self, moved: usize, tell: &mut dyn FnMut(DiskEvent<'_>)) {
        let data = self.buffer.get(..moved).unwrap_or(&[]);
        let event = match self.command {
            ScsiCommand::Inquiry => Inquiry::decode(data).map(DiskEvent::Inquiry),
            ScsiCommand::TestUnitReady => Some(DiskEvent::Ready),
            ScsiCommand::ReadCapacity => {
                let capacity = Capacity::decode(data).filter(|c| c.block_bytes as usize <= BUFFER);
                self.capacity = capacity;
                capacity.map(DiskEvent::Capacity)
            }
            ScsiCommand::RequestSense => Sense::decode(data).map(DiskEvent::Sense),
            ScsiCommand::Read { block, .. } => {
                (moved == self.length()).then_some(match self.place {
                    Some(place) => DiskEvent::ReadTo { block, place },
                    None => DiskEvent::Read { block, data },
                })
            }
            ScsiCommand::Write { block, .. } => {
                (moved == self.length()).then_some(DiskEvent::Written { block })
            }
        };
        tell(event.unwrap_or(DiskEvent::Failed(CommandFailure::Short)));
    }
}

impl Class for MassStorage {
    type Event<'a> = DiskEvent<'a>;

    fn request(&mut self, now: Nanos) -> Option<Request<'_>> {
        if let Some(endpoint) = self.cancel.iter_mut().find_map(Option::take) {
            return Some(Request::Cancel { endpoint });
        }
        if self.deadline.is_some() {
            return self.next_ahead();
        }
        if matches!(self.stage, Stage::Idle | Stage::Dead) {
            return None;
        }
        self.deadline = Some(now + TRANSFER_TIME);
        let (endpoint, length) = (self.endpoint(), self.length());
        Some(match self.stage {
            Stage::Command => Request::Out { endpoint, data: &self.block },
            Stage::Data if let Some(place) = self.place => {
                Request::Shared { endpoint, place, length }
            }
            Stage::Data if self.command.is_out() => {
                Request::Out { endpoint, data: &self.buffer[..length] }
            }
            Stage::Data => Request::In { endpoint, length },
            Stage::Status => Request::In { endpoint, length: STATUS_BYTES },
            Stage::ClearData | Stage::ClearStatus | Stage::ResetIn | Stage::ResetOut => {
                Request::Recover { endpoint }
            }
            Stage::Reset | Stage::Idle | Stage::Dead => {
                let index = self.interface.into();
                let setup = Setup { kind: 0x21, request: 0xff, value: 0, index, length: 0 };
                Request::Control { setup, data: &[] }
            }
        })
    }

    fn complete(&mut self, now: Nanos, done: Completion<'_>, tell: &mut dyn FnMut(DiskEvent<'_>)) {
        if self.is_stray(done.endpoint) {
            return;
        }
        self.cancel = [None; 2];
        match done.result {
            Ok(bytes) => self.good(bytes, tell),
            Err(fault) => self.bad(fault, tell),
        }
        self.take_up(now);
    }

    fn landed(&mut self, now: Nanos, done: Landed<'_>, tell: &mut dyn FnMut(DiskEvent<'_>)) {
        let mine = self.stage == Stage::Data && self.place == Some(done.place);
        if self.is_stray(done.endpoint) || !mine {
            return;
        }
        self.cancel = [None; 2];
        match done.result {
            Ok(bytes) => self.moved(bytes),
            Err(fault) => self.bad(fault, tell),
        }
        self.take_up(now);
    }

    fn next_wake(&self) -> Nanos {
        self.deadline.unwrap_or(Nanos::FOREVER)
    }

    fn wake(&mut self, now: Nanos, _: &mut dyn FnMut(DiskEvent<'_>)) {
        if self.deadline.is_some_and(|deadline| now >= deadline && deadline < Nanos::FOREVER) {
            self.deadline = Some(Nanos::FOREVER);
            self.cancel = [Some(self.endpoint()), None];
        }
    }
}
