//! Disks: blocks between the medium and memory that a client shares with the controller.
//!
//! The reader or writer of a `[[pipe]]` is such a client. The server judges whether it asks as
//! seldom as the pipe says, and whether the disk is done with each ask before the next one is due.

use super::clients::Clients;
use super::judged::Judge;
use super::kind::{Kind, Next};
use crate::papers::Found;
use crate::platform::{Platform, log};
use crate::slots::Shape;
use crate::told::Pipes;
use diapason_abi::Errno;
use diapason_abi::Nanos;
use diapason_contract::disk::{
    Ask, DONE, DiskAnswer, DiskNames, FAILED, GONE, NAMES, NONSENSE, READ, RECORDS, SIZE, WRITE,
};
use diapason_contract::threads::ServiceKind;
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
    Busy(Begun),
}

/// An ask that the disk works at.
#[derive(Clone, Copy)]
struct Begun {
    ask: Ask,
    at: Nanos,
    /// It came too soon for its pipe.
    outside: bool,
}

/// The disk and its client.
pub(crate) struct Disk<P: Platform> {
    asks: Reader<'static, Ask, RECORDS>,
    answers: Writer<'static, DiskAnswer, RECORDS>,
    clients: Clients<P::Memory>,
    stage: Stage,
    judge: Judge,
    /// The [`Ask::what`] of the pipe's asks.
    piped: u32,
    capacity: Option<Capacity>,
    tries: u8,
}

impl<P: Platform> Disk<P> {
    /// Returns the service of a seat without its disk.
    ///
    /// # Errors
    /// A pipe or the shared memory is not there.
    pub fn new(platform: &P, seat: usize, pipes: &Pipes) -> Result<Disk<P>, Errno> {
        let DiskNames { asks, answers, data, .. } = NAMES[seat];
        Ok(Disk {
            asks: platform.reader(asks)?,
            answers: platform.writer(answers)?,
            clients: Clients::sharing(platform.memory(data)?, 1),
            stage: Stage::Away,
            judge: Judge::seated(ServiceKind::Disks, seat, pipes),
            piped: pipes.disks[seat],
            capacity: None,
            tries: 0,
        })
    }

    fn answer(&mut self, ask: Ask, status: u32, now: Nanos) {
        self.tell(&Begun { ask, at: now, outside: false }, status, now);
    }

    /// Answers an ask that has ended.
    fn tell(&mut self, begun: &Begun, status: u32, now: Nanos) {
        let blocks = self.capacity.map_or(0, |capacity| capacity.blocks);
        let block_bytes = self.capacity.map_or(0, |capacity| capacity.block_bytes);
        let period = self.judge.wanted().map_or(Nanos::FOREVER, |(_, period)| period);
        let outside = begun.outside || now > begun.at + period;
        let (ask, begun, taken) = (begun.ask, begun.at.0, now.0);
        // There is room for as many answers as asks; a client that asks more loses some.
        let outside = outside.into();
        let answer = DiskAnswer { blocks, block_bytes, status, ask, begun, taken, outside };
        let _ = self.answers.push(&answer);
        self.clients.ring(1);
    }

    /// The ask that the disk works at has ended.
    fn end(&mut self, status: u32, now: Nanos) {
        if let Stage::Busy(begun) = self.stage {
            self.stage = Stage::Idle;
            self.tell(&begun, status, now);
        }
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
    fn begin(&mut self, class: &mut MassStorage, ask: &Ask, now: Nanos) {
        let room = self.clients.places() as u64;
        let bytes = self.capacity.map_or(0, |capacity| u64::from(capacity.block_bytes));
        let end = u64::from(ask.place) + u64::from(ask.count) * bytes;
        let count = u16::try_from(ask.count).ok().filter(|_| end <= room);
        // Only a pipe promises how soon a command is done.
        class.ask_ahead(self.judge.wanted().is_some());
        let begun = match (ask.what, count) {
            (SIZE, _) => return self.answer(*ask, DONE, now),
            (READ, Some(count)) => class.read_to(ask.block, count, ask.place),
            (WRITE, Some(count)) => class.write_from(ask.block, count, ask.place),
            _ => Err(Refused::Blocks),
        };
        match begun {
            Ok(()) => {
                let bytes = u64::from(ask.count) * bytes;
                self.stage = Stage::Busy(Begun {
                    ask: *ask,
                    at: now,
                    outside: self.judges(ask, bytes, now),
                });
            }
            Err(Refused::Blocks | Refused::Length) => self.answer(*ask, NONSENSE, now),
            Err(_) => self.answer(*ask, FAILED, now),
        }
    }

    /// Returns whether an ask for so many bytes is outside of the contract of the pipe, if there is
    /// one: no ask comes before it is due.
    fn judges(&mut self, ask: &Ask, bytes: u64, now: Nanos) -> bool {
        if self.judge.wanted().is_none() {
            return false;
        }
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let judged = self.judge.judge_at(Some(Nanos(ask.due)), bytes, now);
        judged.outside || ask.due > now.0 || ask.what != self.piped
    }
}

impl<P: Platform> Kind<P> for Disk<P> {
    type Class = MassStorage;

    const NAME: &'static str = "a disk";
    const MEMORY: &'static [Shape] = &[Shape { bytes: 64, count: 4 }];

    fn find(&self, found: &Found<'_>, _: Nanos) -> Option<MassStorage> {
        MassStorage::find(&found.set)
    }

    fn is_message(event: &DiskEvent<'_>) -> bool {
        matches!(event, DiskEvent::ReadTo { .. })
    }

    fn hear(&mut self, event: DiskEvent<'_>, now: Nanos) -> Next {
        match (self.stage, event) {
            (Stage::Waiting(command), event) => self.learn(command, &event),
            (Stage::Busy(_), DiskEvent::ReadTo { .. } | DiskEvent::Written { .. }) => {
                self.end(DONE, now);
                Next::On
            }
            (Stage::Busy(_), DiskEvent::Failed(failure)) => {
                log!(P, "disk: {failure:?}");
                self.end(FAILED, now);
                Next::On
            }
            (_, DiskEvent::Dead) => {
                log!(P, "disk: dead");
                Next::End
            }
            _ => Next::On,
        }
    }

    fn attend(&mut self, class: Option<&mut MassStorage>, now: Nanos) {
        let Some(class) = class else {
            while let Some(ask) = self.asks.pop() {
                self.answer(ask, GONE, now);
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
            self.begin(class, &ask, now);
        }
    }

    fn forget(&mut self, now: Nanos) {
        self.capacity = None;
        self.end(GONE, now);
        self.stage = Stage::Away;
    }

    fn clients(&mut self) -> Option<&mut Clients<P::Memory>> {
        Some(&mut self.clients)
    }
}
