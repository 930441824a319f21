//! Disks: blocks between the medium and memory that a client shares with the controller.

use super::clients::Clients;
use super::kind::{Kind, Next};
use crate::papers::Found;
use crate::platform::{Platform, log};
use crate::slots::Shape;
use diapason_abi::Errno;
use diapason_abi::Nanos;
use diapason_contract::disk::{
    ANSWERS, ASKS, Ask, DATA, DONE, DiskAnswer, FAILED, GONE, NONSENSE, READ, RECORDS, SIZE, WRITE,
};
use diapason_pipe::{Reader, Writer};
use diapason_usb::class::mass_storage::{Capacity, DiskEvent, MassStorage, Refused, ScsiCommand};

/// A medium may say so often that it is not ready.
const TRIES: u8 = 10;

/// The stage of the disk.
#[derive(Clone, Copy)]
enum Stage {
    Away,
    /// This command is to be begun.
    Next(ScsiCommand),
    /// The disk has not ended.
    Waiting(ScsiCommand),
    /// The disk waits for clients.
    Idle,
    /// The disk does what a client asked for.
    Busy,
}

/// The disk and its client.
pub(crate) struct Disk<P: Platform> {
    asks: Reader<'static, Ask, RECORDS>,
    answers: Writer<'static, DiskAnswer, RECORDS>,
    clients: Clients<P::Memory>,
    stage: Stage,
    capacity: Option<Capacity>,
    tries: u8,
}

impl<P: Platform> Disk<P> {
    /// Returns the service without a disk.
    ///
    /// # Errors
    /// A pipe or the shared memory is not there.
    pub fn new(platform: &P) -> Result<Disk<P>, Errno> {
        Ok(Disk {
            asks: platform.reader(ASKS)?,
            answers: platform.writer(ANSWERS)?,
            clients: Clients::sharing(platform.memory(DATA)?, 1),
            stage: Stage::Away,
            capacity: None,
            tries: 0,
        })
    }

    fn answer(&mut self, status: u32) {
        let blocks = self.capacity.map_or(0, |capacity| capacity.blocks);
        let block_bytes = self.capacity.map_or(0, |capacity| capacity.block_bytes);
        // There is room for as many answers as asks; a client that asks more loses some.
        let _ = self.answers.push(&DiskAnswer { blocks, block_bytes, status });
        self.clients.ring(1);
    }

    /// The command that found out about the medium has ended.
    fn learn(&mut self, command: ScsiCommand, event: &DiskEvent<'_>) -> Next {
        let (stage, next) = match (command, event) {
            (_, DiskEvent::Dead) => (Stage::Away, Next::End),
            (ScsiCommand::TestUnitReady, DiskEvent::Ready) => {
                (Stage::Next(ScsiCommand::ReadCapacity), Next::On)
            }
            (ScsiCommand::ReadCapacity, DiskEvent::Capacity(capacity)) => {
                self.capacity = Some(*capacity);
                log!(P, "disk: {} blocks of {} bytes", capacity.blocks, capacity.block_bytes);
                (Stage::Idle, Next::On)
            }
            (ScsiCommand::RequestSense, _) => (Stage::Next(ScsiCommand::TestUnitReady), Next::On),
            _ if self.tries == TRIES => {
                log!(P, "disk: not ready");
                (Stage::Away, Next::End)
            }
            _ => {
                self.tries += 1;
                (Stage::Next(ScsiCommand::RequestSense), Next::On)
            }
        };
        self.stage = stage;
        next
    }

    /// Begins a client's request, if it makes sense.
    fn begin(&mut self, class: &mut MassStorage, ask: &Ask) {
        let room = self.clients.places() as u64;
        let bytes = self.capacity.map_or(0, |capacity| u64::from(capacity.block_bytes));
        let end = u64::from(ask.place) + u64::from(ask.count) * bytes;
        let count = u16::try_from(ask.count).ok().filter(|_| end <= room);
        let begun = match (ask.what, count) {
            (SIZE, _) => return self.answer(DONE),
            (READ, Some(count)) => class.read_to(ask.block, count, ask.place),
            (WRITE, Some(count)) => class.write_from(ask.block, count, ask.place),
            _ => Err(Refused::Blocks),
        };
        match begun {
            Ok(()) => self.stage = Stage::Busy,
            Err(Refused::Blocks | Refused::Length) => self.answer(NONSENSE),
            Err(_) => self.answer(FAILED),
        }
    }
}

impl<P: Platform> Kind<P> for Disk<P> {
    type Class = MassStorage;

    const NAME: &'static str = "a disk";
    const MEMORY: &'static [Shape] = &[Shape { bytes: 64, count: 4 }];

    fn find(&self, found: &Found<'_>, _: Nanos) -> Option<MassStorage> {
        MassStorage::find(&found.set)
    }

    fn hear(&mut self, event: DiskEvent<'_>, _: Nanos) -> Next {
        match (self.stage, event) {
            (Stage::Waiting(command), event) => self.learn(command, &event),
            (Stage::Busy, DiskEvent::ReadTo { .. } | DiskEvent::Written { .. }) => {
                self.stage = Stage::Idle;
                self.answer(DONE);
                Next::On
            }
            (Stage::Busy, DiskEvent::Failed(failure)) => {
                log!(P, "disk: {failure:?}");
                self.stage = Stage::Idle;
                self.answer(FAILED);
                Next::On
            }
            (_, DiskEvent::Dead) => {
                log!(P, "disk: dead");
                Next::End
            }
            _ => Next::On,
        }
    }

    fn attend(&mut self, class: Option<&mut MassStorage>, _: Nanos) {
        let Some(class) = class else {
            while self.asks.pop().is_some() {
                self.answer(GONE);
            }
            return;
        };
        if let Stage::Away = self.stage {
            (self.stage, self.tries) = (Stage::Next(ScsiCommand::TestUnitReady), 0);
        }
        if let Stage::Next(command) = self.stage
            && class.begin(command).is_ok()
        {
            self.stage = Stage::Waiting(command);
        }
        while let Stage::Idle = self.stage {
            let Some(ask) = self.asks.pop() else { return };
            self.begin(class, &ask);
        }
    }

    fn forget(&mut self, _: Nanos) {
        self.capacity = None;
        if let Stage::Busy = self.stage {
            self.answer(GONE);
        }
        self.stage = Stage::Away;
    }

    fn clients(&mut self) -> Option<&mut Clients<P::Memory>> {
        Some(&mut self.clients)
    }
}
