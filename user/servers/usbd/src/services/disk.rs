//! Disks: blocks between the medium and memory that a client shares with the controller.

use super::{Found, Kind, Next};
use crate::slots::Shape;
use diapason_abi::Nanos;
use diapason_rt::memory::Dma;
use diapason_rt::sync::Semaphore;
use diapason_rt::{Errno, log};
use diapason_usb::class::mass_storage::{Capacity, Command, Event, MassStorage, Refused};
use diapason_usbd::disk::{
    Answer, Ask, Counter, DONE, FAILED, GONE, NONSENSE, READ, SIZE, WRITE, counter,
};

/// A medium may say so often that it is not ready.
const TRIES: u8 = 10;

/// What the disk is at.
#[derive(Clone, Copy)]
enum Stage {
    /// There is none.
    Away,
    /// This command is to be begun.
    Next(Command),
    /// It has not ended.
    Waiting(Command),
    /// It waits for clients.
    Idle,
    /// It does what a client asked for.
    Busy,
}

/// The disk and its client.
pub struct Disk {
    counter: Counter,
    ready: [Semaphore; 1],
    stage: Stage,
    capacity: Option<Capacity>,
    tries: u8,
    fresh: bool,
}

impl Disk {
    /// Without a disk.
    ///
    /// # Errors
    /// A pipe, a semaphore or the shared memory is not there.
    pub fn new() -> Result<Disk, Errno> {
        let counter = counter()?;
        let ready = [counter.ready];
        let (stage, capacity) = (Stage::Away, None);
        Ok(Disk { counter, ready, stage, capacity, tries: 0, fresh: false })
    }

    fn answer(&mut self, status: u32) {
        let blocks = self.capacity.map_or(0, |capacity| capacity.blocks);
        let block_bytes = self.capacity.map_or(0, |capacity| capacity.block_bytes);
        // There is room for as many answers as asks; a client that asks more loses some.
        let _ = self.counter.answers.push(&Answer { blocks, block_bytes, status });
        self.fresh = true;
    }

    /// The command that found out about the medium has ended.
    fn learn(&mut self, command: Command, event: &Event<'_>) -> Next {
        let (stage, next) = match (command, event) {
            (_, Event::Dead) => (Stage::Away, Next::End),
            (Command::TestUnitReady, Event::Ready) => {
                (Stage::Next(Command::ReadCapacity), Next::On)
            }
            (Command::ReadCapacity, Event::Capacity(capacity)) => {
                self.capacity = Some(*capacity);
                log!("disk: {} blocks of {} bytes", capacity.blocks, capacity.block_bytes);
                (Stage::Idle, Next::On)
            }
            (Command::RequestSense, _) => (Stage::Next(Command::TestUnitReady), Next::On),
            _ if self.tries == TRIES => {
                log!("disk: not ready");
                (Stage::Away, Next::End)
            }
            _ => {
                self.tries += 1;
                (Stage::Next(Command::RequestSense), Next::On)
            }
        };
        self.stage = stage;
        next
    }

    /// What a client wants, if it makes sense.
    fn begin(&mut self, class: &mut MassStorage, ask: &Ask) {
        let room = self.counter.data.bytes() as u64;
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

impl Kind for Disk {
    type Class = MassStorage;

    const NAME: &'static str = "a disk";
    const MEMORY: &'static [Shape] = &[Shape { bytes: 64, count: 4 }];

    fn find(&self, found: &Found<'_>, _: Nanos) -> Option<MassStorage> {
        MassStorage::find(&found.set)
    }

    fn hear(&mut self, event: Event<'_>, _: Nanos) -> Next {
        match (self.stage, event) {
            (Stage::Waiting(command), event) => self.learn(command, &event),
            (Stage::Busy, Event::ReadTo { .. } | Event::Written { .. }) => {
                self.stage = Stage::Idle;
                self.answer(DONE);
                Next::On
            }
            (Stage::Busy, Event::Failed(failure)) => {
                log!("disk: {failure:?}");
                self.stage = Stage::Idle;
                self.answer(FAILED);
                Next::On
            }
            (_, Event::Dead) => {
                log!("disk: dead");
                Next::End
            }
            _ => Next::On,
        }
    }

    fn attend(&mut self, class: Option<&mut MassStorage>, _: Nanos) {
        let Some(class) = class else {
            while self.counter.asks.pop().is_some() {
                self.answer(GONE);
            }
            return;
        };
        if let Stage::Away = self.stage {
            (self.stage, self.tries) = (Stage::Next(Command::TestUnitReady), 0);
        }
        if let Stage::Next(command) = self.stage
            && class.begin(command).is_ok()
        {
            self.stage = Stage::Waiting(command);
        }
        while let Stage::Idle = self.stage {
            let Some(ask) = self.counter.asks.pop() else { return };
            self.begin(class, &ask);
        }
    }

    fn forget(&mut self) {
        self.capacity = None;
        if let Stage::Busy = self.stage {
            self.answer(GONE);
        }
        self.stage = Stage::Away;
    }

    fn shared(&self) -> Option<(&Dma, usize)> {
        Some((&self.counter.data, 1))
    }

    fn bells(&self) -> &[Semaphore] {
        &self.ready
    }

    fn take_fresh(&mut self) -> u32 {
        core::mem::take(&mut self.fresh).into()
    }

    fn asked(&self) -> Option<Semaphore> {
        Some(self.counter.ask)
    }
}
