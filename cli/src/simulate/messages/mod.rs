//! The lives of messages: each is followed from its arrival at a device, over the USB bus, through
//! the server into its pipe, to the instant at which its reader takes it out.
//!
//! Nobody tells where a message is. What is known is what passes: frames on CAN buses, packets and
//! transfers on USB buses, interrupts, how far the ends of a pipe have come, and what the processor
//! did. A message keeps its place among those of its channel, so its frame finds it again.

mod life;
mod tell;
mod wire;

pub use life::Life;
pub use tell::render;

use crate::plan::Plan;
use crate::surroundings::Sights;
use diapason_abi::Nanos;
use diapason_abi::archive::Location;
use diapason_abi::pipe::SLOTS;
use diapason_can::Frame;
use diapason_can::exchange::Arrival;
use diapason_core::{Decision, Kernel, ThreadId};
use diapason_devices::can::{CanBus, Heard};
use diapason_devices::kvaser::CHANNELS;
use diapason_pipe::bill;
use diapason_sim::{History, Moment, Observer, Passed, Watched};
use diapason_system::{System, UsbModel, Way};
use life::{Journey, Roads};
use std::collections::VecDeque;
use wire::{Carried, Wire};

/// The ring of a pipe: how far it is written and read, and where its records begin.
const WRITTEN: usize = 0;
const TAKEN: usize = 64;
const RECORDS: usize = 128;
/// A message that did not come within this time does not come any more.
const PATIENCE: Nanos = Nanos::from_secs(2);

/// Which message's life is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// The one that took most of what was promised, of all pipes.
    WorstOfAll,
    /// The same of the pipe with this number.
    Worst(usize),
    /// This one of a pipe, from 1.
    This(usize, u64),
}

/// A record that was put into a pipe.
struct Put {
    number: u64,
    at: Nanos,
    by: ThreadId,
    frame: Option<Frame>,
    taken: Option<(Nanos, ThreadId)>,
}

/// One pipe.
struct Line {
    /// Its segment.
    segment: u16,
    channel: usize,
    /// The device that is its controller, and that controller's place among those looked at.
    device: usize,
    tap: usize,
    bus: CanBus,
    bound: Option<Nanos>,
    bill: Option<bill::Bill>,
    heard: VecDeque<Heard>,
    carried: VecDeque<Carried>,
    put: VecDeque<Put>,
}

/// Everybody who follows messages.
pub struct Messages {
    choice: Choice,
    /// By pipe; none if it cannot be followed.
    lines: Vec<Option<Line>>,
    /// By controller looked at.
    wires: Vec<Wire>,
    /// The messages of each controller, by the number of their devices.
    vectors: Vec<Location>,
    history: History,
    life: Option<Life>,
}

impl Messages {
    /// Those of a system's pipes.
    #[must_use]
    pub fn new(system: &System, sights: &Sights, choice: Choice) -> Messages {
        let plan = Plan::tests(system, system.clock_hz);
        let line = |index| line(system, &plan, sights, index);
        Messages {
            choice,
            lines: (0..system.pipes.len()).map(line).collect(),
            wires: sights.taps.iter().map(|_| Wire::default()).collect(),
            vectors: system.devices.iter().map(|device| device.location).collect(),
            history: History::default(),
            life: None,
        }
    }

    /// The words that say how far pipes are written and read.
    #[must_use]
    pub fn watched(&self) -> Vec<Watched> {
        let of = |line: &Option<Line>| {
            let segment = line.as_ref().map_or(u16::MAX, |line| line.segment);
            [WRITTEN, TAKEN].map(|offset| Watched { segment, offset })
        };
        self.lines.iter().flat_map(of).collect()
    }

    /// The life that was wanted, if there was such a message.
    #[must_use]
    pub fn life(self) -> Option<Life> {
        self.life
    }

    /// What passed at a controller.
    pub fn passed(&mut self, tap: usize, passed: &Passed) {
        let Some(wire) = self.wires.get_mut(tap) else { return };
        wire.note(passed);
        for carried in wire.take_carried() {
            let is_it = |line: &&mut Line| (line.tap, line.channel) == (tap, carried.channel);
            if let Some(line) = self.lines.iter_mut().flatten().find(is_it) {
                line.carried.push_back(carried);
            }
        }
    }

    /// Everything that passed until now has been told: follow the messages that were read.
    pub fn follow(&mut self, now: Nanos) {
        for pipe in 0..self.lines.len() {
            while let Some(journey) = self.next(pipe) {
                self.arrived(&journey);
            }
        }
        let mut oldest = now;
        for line in self.lines.iter_mut().flatten() {
            while line.heard.front().is_some_and(|heard| heard.time + PATIENCE < now) {
                line.heard.pop_front();
            }
            while line.carried.front().is_some_and(|carried| carried.over + PATIENCE < now) {
                line.carried.pop_front();
            }
            oldest = oldest.min(line.heard.front().map_or(now, |heard| heard.time));
        }
        self.history.forget(oldest);
        self.wires.iter_mut().for_each(|wire| wire.forget(oldest));
    }

    /// The next message of a pipe that was read, and its way.
    fn next(&mut self, pipe: usize) -> Option<Journey> {
        let line = self.lines.get_mut(pipe)?.as_mut()?;
        line.heard.extend(line.bus.take_heard());
        loop {
            let put = line.put.pop_front_if(|put| put.taken.is_some())?;
            let Some((frame, (at, reader))) = put.frame.zip(put.taken) else { continue };
            let heard = found(&mut line.heard, |heard| heard.frame == frame);
            let carried = found(&mut line.carried, |carried| carried.frame == frame);
            if let Some((heard, carried)) = heard.zip(carried) {
                return Some(Journey {
                    pipe,
                    number: put.number,
                    frame,
                    heard: heard.time,
                    carried,
                    put: (put.at, put.by),
                    taken: (at, reader),
                });
            }
        }
    }

    /// A message is with its reader: is it the one?
    fn arrived(&mut self, journey: &Journey) {
        let Some(line) = self.lines.get(journey.pipe).and_then(Option::as_ref) else { return };
        let is_it = match self.choice {
            Choice::WorstOfAll => true,
            Choice::Worst(pipe) => pipe == journey.pipe,
            Choice::This(pipe, number) => (pipe, number) == (journey.pipe, journey.number),
        };
        let worse = |life: &Life| journey.is_worse_than(line.bound, life);
        if !is_it || !self.life.as_ref().is_none_or(worse) {
            return;
        }
        let (of, vector) = (line.device as u16, journey.carried.vector);
        let message = Location::Message { of, vector };
        let message = self.vectors.iter().position(|location| *location == message);
        let roads = Roads {
            wire: &self.wires[line.tap],
            history: &self.history,
            interrupt: message.and_then(|device| u16::try_from(device).ok()),
        };
        if let Some(items) = life::items(journey, &roads) {
            self.life = Some(Life::new(journey, items, line.bound, line.bill));
        }
    }
}

/// The first that is it; those before it are lost.
fn found<T>(all: &mut VecDeque<T>, is_it: impl Fn(&T) -> bool) -> Option<T> {
    let place = all.iter().position(is_it)?;
    all.drain(..=place).next_back()
}

/// A pipe from a device that is a model, and can be looked at.
fn line(system: &System, plan: &Plan, sights: &Sights, index: usize) -> Option<Line> {
    let pipe = system.pipes.get(index).filter(|pipe| pipe.way == Way::FromDevice)?;
    let plug = system.usb.get(pipe.usb)?;
    let before = system.usb[..pipe.usb].iter().filter(|usb| usb.model == UsbModel::UsbCan);
    let channel = usize::from(pipe.channel);
    let bus = sights.buses.get(before.count() * CHANNELS + channel)?.clone();
    bus.listen();
    let name = format!("can{channel}");
    let segment = system.segments.iter().position(|segment| segment.name == name)?;
    let bill = plan.pipes.get(index).and_then(|piped| piped.bill.as_ref().ok().copied());
    Some(Line {
        segment: u16::try_from(segment).ok()?,
        channel,
        device: plug.device,
        tap: sights.taps.iter().position(|(device, _)| *device == plug.device)?,
        bus,
        bound: pipe.latency_ns.map(Nanos).or(bill.map(|bill| bill.total)),
        bill,
        heard: VecDeque::new(),
        carried: VecDeque::new(),
        put: VecDeque::new(),
    })
}

/// The frame of a record in the memory of a pipe.
fn record(memory: &[u8], number: u64) -> Option<Frame> {
    let slot = (number % SLOTS as u64) as usize;
    let record = memory.get(RECORDS + slot * size_of::<Arrival>()..)?;
    let arrival = Arrival {
        time: u64::from_le_bytes(*record.first_chunk()?),
        taken: u64::from_le_bytes(*record.get(8..)?.first_chunk()?),
        data: *record.get(16..)?.first_chunk()?,
        id: u32::from_le_bytes(*record.get(24..)?.first_chunk()?),
        code: *record.get(28)?,
        flags: *record.get(29)?,
        opened: u16::from_le_bytes(*record.get(30..)?.first_chunk()?),
    };
    arrival.frame()
}

impl Observer for Messages {
    fn moment(&mut self, from: Nanos, to: Nanos, what: Moment) {
        self.history.moment(from, to, what);
    }

    fn decided(&mut self, read: Nanos, now: Nanos, kernel: &Kernel<'_>, decision: &Decision) {
        self.history.decided(read, now, kernel, decision);
    }

    fn changed(
        &mut self,
        at: Nanos,
        by: ThreadId,
        word: usize,
        (old, new): (u64, u64),
        memory: &[u8],
    ) {
        let Some(line) = self.lines.get_mut(word / 2).and_then(Option::as_mut) else { return };
        if new < old {
            // The host booted again.
            line.put.clear();
        } else if word.is_multiple_of(2) {
            // What was overwritten meanwhile would be of another life.
            let first = old.max(new.saturating_sub(SLOTS as u64));
            line.put.extend((first..new).map(|number| {
                let frame = record(memory, number);
                Put { number: number + 1, at, by, frame, taken: None }
            }));
        } else {
            let read = line.put.iter_mut().filter(|put| put.number <= new);
            read.filter(|put| put.taken.is_none()).for_each(|put| put.taken = Some((at, by)));
        }
    }
}
