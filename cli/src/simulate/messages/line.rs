//! One pipe: what is known of the messages on their way through it, and which of them have arrived.

use super::Around;
use super::beyond::{FarReader, FarTaken};
use super::life::{Followed, Journey, Road};
use super::records;
use super::wire::{Apart, Carried, Content, Told};
use crate::surroundings::clock_of;
use diapason_abi::Nanos;
use diapason_abi::pipe::{OUT_SLOTS, SLOTS};
use diapason_contract::can::names;
use diapason_contract::disk::{READ, WRITE};
use diapason_contract::sink::{DONE, GONE};
use diapason_contract::source::{MessageForm, PipeSource};
use diapason_core::ThreadId;
use diapason_devices::can::{CanBus, FrameContent, Heard, Passing};
use diapason_devices::faulty::OwnClock;
use diapason_pipe::bill;
use diapason_sim::Watched;
use diapason_system::{PipeDirection, PipeSpec, System};
use std::collections::VecDeque;
use std::rc::Rc;

/// The ring of a pipe: how far it is written and read.
const WRITTEN: usize = 0;
pub const TAKEN: usize = 64;
const _: () = assert!(DONE == diapason_contract::network::DONE);
const _: () = assert!(DONE == diapason_contract::disk::DONE);
const _: () = assert!(GONE == diapason_contract::disk::GONE);
const _: () = assert!(GONE == diapason_contract::network::DROPPED);
/// Words of each pipe that are watched.
pub const WORDS: usize = 4;
/// A message that did not come within this time does not come any more.
const PATIENCE: Nanos = Nanos::from_secs(2);

/// When something was done, and by whom.
type Deed = (Nanos, ThreadId);

/// A record that was put into the pipe.
struct Record {
    number: u64,
    message: Option<Followed>,
    put: Deed,
    taken: Option<Deed>,
    /// When the last sleep of a reader on another core was over.
    looked: Nanos,
    /// When a message to a device was known to be through.
    known: Option<Deed>,
    /// It says that a message was lost.
    tells_loss: bool,
}

/// A run of blocks for which the reader of a pipe from a disk has asked.
struct AskedRun {
    number: u64,
    /// The time at which its reader was to ask.
    due: Nanos,
    put: Deed,
    /// When the server took the ask, and by which thread.
    heard: Option<Deed>,
}

/// The device of a pipe, as one can look at it.
enum Origin {
    /// A channel of a CAN interface, with CAN FD or without. Its bus tells of each frame.
    Channel(CanBus, bool),
    /// A source whose messages bear times, and the place of the time in each.
    Source(&'static PipeSource, usize),
    /// The endpoint of any device, which packets go to, a network device, which frames go to, or a
    /// disk, which runs of blocks go to.
    Sink(&'static PipeSource),
}

/// The messages of one pipe.
pub struct Line {
    way: PipeDirection,
    channel: usize,
    /// The number of the channel among those of the host.
    pub number: usize,
    /// The interrupter of its device, where several devices have such channels.
    vector: Option<u16>,
    /// The device that is its controller, and that controller's place among those looked at.
    pub device: usize,
    pub tap: usize,
    kind: Origin,
    pub bound: Option<Nanos>,
    pub bill: Option<bill::Bill>,
    heard: VecDeque<Heard>,
    carried: VecDeque<Carried>,
    acknowledged: VecDeque<Carried>,
    records: VecDeque<Record>,
    /// The runs that the reader of a pipe from a disk has asked for.
    asks: VecDeque<AskedRun>,
    /// When the bus was free of the message that was looked at last, and the ring of that message.
    bus_free: Nanos,
    ring_free: Nanos,
    segments: [u16; 2],
    clock: OwnClock,
    /// A message has come through since the host booted. Before, none is lost.
    works: bool,
    /// Messages that were lost.
    pub lost: u64,
    /// Its reader, if that is on another core.
    pub far: Option<Rc<FarReader>>,
}

impl Line {
    /// Returns a pipe from or to a device that is a model, and can be looked at.
    pub fn new(around: &Around<'_>, index: usize) -> Option<Line> {
        let Around { plan, sights, part, faults } = *around;
        let system = plan.system();
        let pipe = system.pipes.get(index)?;
        let plug = system.usb.get(pipe.usb)?;
        let (channel, number) = (usize::from(pipe.channel), usize::from(pipe.number));
        let kind = match PipeSource::numbered(number) {
            // Without a time, nobody knows when the device had a message.
            Some(source) => match source.form {
                MessageForm::Packet | MessageForm::Frame(_) => {
                    Origin::Source(source, pipe.shape.stamp?)
                }
                MessageForm::Written(_) | MessageForm::SentFrame(_) => Origin::Sink(source),
                MessageForm::Blocks(_) if pipe.way == PipeDirection::ToDevice => {
                    Origin::Sink(source)
                }
                // An ask has the time.
                MessageForm::Blocks(_) => Origin::Source(source, 0),
                // A picture is many transfers: only reports say how it comes.
                MessageForm::Picture(_) => return None,
            },
            None => {
                let (_, bus) = sights.buses.iter().find(|(of, _)| *of == number)?.clone();
                bus.listen();
                Origin::Channel(bus, plug.data_rates.get(channel).is_some_and(|rate| *rate > 0))
            }
        };
        let server = system.processes.get(usize::from(pipe.server))?;
        let interfaces = system.interfaces(server);
        let vector = match kind {
            Origin::Source(source, _) | Origin::Sink(source) => {
                Some(interrupter(system, pipe.server, source)?)
            }
            Origin::Channel(..) => {
                let interface = interfaces.iter().position(|(plug, _)| *plug == pipe.usb);
                interface.filter(|_| interfaces.len() > 1).map(|it| 1 + it as u16)
            }
        };
        let segments = rings(system, pipe, &kind)?;
        let bill = plan.pipes.get(index).and_then(|piped| piped.bill.as_ref().ok().copied());
        Some(Line {
            way: pipe.way,
            channel,
            number,
            vector,
            device: plug.device,
            tap: sights.taps.iter().position(|(device, _)| *device == plug.device)?,
            kind,
            bound: pipe.latency_ns.map(Nanos).or(bill.map(|bill| bill.total)),
            bill,
            heard: VecDeque::new(),
            carried: VecDeque::new(),
            acknowledged: VecDeque::new(),
            records: VecDeque::new(),
            asks: VecDeque::new(),
            bus_free: Nanos::ZERO,
            ring_free: Nanos::ZERO,
            segments,
            clock: clock_of(faults, pipe.usb),
            works: false,
            lost: 0,
            far: pipe.process().is_none().then(|| part.followed(&pipe.name)),
        })
    }

    /// Returns the CAN bus of its channel, if it is of one.
    pub fn bus(&self) -> Option<&CanBus> {
        match &self.kind {
            Origin::Channel(bus, _) => Some(bus),
            Origin::Source(..) | Origin::Sink(_) => None,
        }
    }

    /// Returns which transfers are its messages, if it is of a source or a sink, and how they are
    /// told from each other. A disk has commands and statuses.
    pub fn sources(&self) -> Vec<(Told, Apart)> {
        let (source, time) = match &self.kind {
            Origin::Source(source, stamp) => (source, Apart::Time(*stamp)),
            Origin::Sink(source) => (source, Apart::Length),
            Origin::Channel(..) => return Vec::new(),
        };
        let Some(vector) = self.vector else { return Vec::new() };
        let from_device = (vector, self.way == PipeDirection::FromDevice);
        match source.form {
            MessageForm::Blocks(_) => {
                [false, true].map(|way| ((vector, way), Apart::Blocks)).into()
            }
            MessageForm::Frame(_) | MessageForm::SentFrame(_) => vec![(from_device, time)],
            _ => vec![(from_device, Apart::Bytes)],
        }
    }

    /// Returns whether its messages are asked for, and come from a disk.
    fn is_asked(&self) -> bool {
        matches!(self.kind, Origin::Source(source, _) if source.form.goes_both_ways())
    }

    /// Returns the words that say how far its rings are. The core of its reader knows how far it is
    /// read.
    pub fn watched(line: Option<&Line>) -> [Watched; WORDS] {
        let [ring, reports] = line.map_or([u16::MAX; 2], |line| line.segments);
        let read = line.filter(|line| line.far.is_none()).map_or(u16::MAX, |_| ring);
        let heard = line.filter(|line| line.is_asked()).map_or(u16::MAX, |_| reports);
        [(ring, WRITTEN), (read, TAKEN), (reports, WRITTEN), (heard, TAKEN)]
            .map(|(segment, offset)| Watched { segment, offset })
    }

    /// Frames passed its channel's bus.
    pub fn hear(&mut self, number: usize, heard: &[Heard]) {
        if self.number == number {
            let host = |heard: &Heard| Heard { time: self.clock.host(heard.time), ..*heard };
            self.heard.extend(heard.iter().map(host));
        }
    }

    /// A command passed at a controller.
    pub fn passed(&mut self, tap: usize, carried: Carried) {
        let others = self.vector.is_some_and(|vector| vector != carried.vector);
        let command = match carried.what {
            _ if others || self.tap != tap => return,
            Content::Packet(_) | Content::Run(..) if self.bus().is_none() => {
                return self.carried.push_back(carried);
            }
            Content::Command(command) if self.bus().is_some() => command,
            _ => return,
        };
        if self.channel != command.channel {
            return;
        }
        match (command.load, self.way) {
            (FrameContent::Arrival(_), PipeDirection::FromDevice)
            | (FrameContent::Departure(_), PipeDirection::ToDevice) => {
                self.carried.push_back(carried);
            }
            (FrameContent::Acknowledgement, PipeDirection::ToDevice) => {
                self.acknowledged.push_back(carried)
            }
            _ => {}
        }
    }

    /// A word that is watched has changed.
    pub fn changed(&mut self, word: usize, by: Deed, (old, new): (u64, u64), memory: &[u8]) {
        if new < old {
            // The host booted again.
            self.records.clear();
            self.asks.clear();
            self.works = false;
            return;
        }
        let reached = match word {
            0 => return self.put(by, (old, new), memory),
            1 => new,
            2 if self.is_asked() => return self.asked(by, (old, new), memory),
            3 => {
                let heard = self.asks.iter_mut().take_while(|asked| asked.number <= new);
                return heard.for_each(|asked| asked.heard = asked.heard.or(Some(by)));
            }
            _ if matches!(self.kind, Origin::Sink(_)) => {
                return self.answered(by, (old, new), memory);
            }
            _ => records::through(memory, new).unwrap_or(0),
        };
        for record in self.records.iter_mut().take_while(|record| record.number <= reached) {
            let place = if word == 1 { &mut record.taken } else { &mut record.known };
            *place = place.or(Some(by));
        }
    }

    /// Answers to packets were told. A packet without one, and one that the device does not have,
    /// is lost.
    fn answered(&mut self, by: Deed, (old, new): (u64, u64), memory: &[u8]) {
        let Origin::Sink(source) = self.kind else { return };
        for number in old.max(new.saturating_sub(source.attributes.slots as u64))..new {
            let Some((written, status)) = records::answer(memory, source, number) else { continue };
            // A writer waits for its device without a loss.
            self.works |= status == DONE;
            self.lost += u64::from(status != DONE && (status != GONE || self.works));
            let is_it = |record: &Record| {
                let made = record.message.and_then(|message| message.made()) == Some(written);
                made && record.known.is_none()
            };
            let Some(place) = self.records.iter().position(is_it) else { continue };
            if let Some(record) = self.records.get_mut(place).filter(|_| status == DONE) {
                record.known = Some(by);
            } else {
                self.records.remove(place);
            }
            let mut earlier = 0..place;
            self.records.retain(|record| earlier.next().is_none() || record.known.is_some());
        }
    }

    /// The reader of a pipe from a disk has asked.
    fn asked(&mut self, put: Deed, (old, new): (u64, u64), memory: &[u8]) {
        let Origin::Source(source, _) = self.kind else { return };
        let slots = source.attributes.slots as u64;
        let asks = (old.max(new.saturating_sub(slots))..new).filter_map(|number| {
            let run = records::asked(memory, (number % slots) as usize, READ)?;
            Some(AskedRun { number: number + 1, due: run.made()?, put, heard: None })
        });
        self.asks.extend(asks);
    }

    fn put(&mut self, put: Deed, (old, new): (u64, u64), memory: &[u8]) {
        let slots = match (&self.kind, self.way) {
            (Origin::Source(source, _) | Origin::Sink(source), _) => source.attributes.slots,
            (_, PipeDirection::FromDevice) => SLOTS,
            (_, PipeDirection::ToDevice) => OUT_SLOTS,
        };
        // A slot that was overwritten meanwhile would belong to another life.
        let first = old.max(new.saturating_sub(slots as u64));
        let records = (first..new).map(|number| {
            let place = (number % slots as u64) as usize;
            let message = match (&self.kind, self.way) {
                (Origin::Source(source, _), _) => match source.form {
                    MessageForm::Frame(_) => records::frame(memory, place),
                    MessageForm::Blocks(_) => records::run_read(memory, place),
                    _ => records::packet(memory, place),
                },
                (Origin::Sink(source), _) => match source.form {
                    MessageForm::SentFrame(_) => records::sent_frame(memory, place),
                    MessageForm::Blocks(_) => records::asked(memory, place, WRITE),
                    _ => records::written(memory, place),
                },
                (Origin::Channel(_, fd), PipeDirection::FromDevice) => {
                    records::arrival(memory, place, *fd).map(Followed::Frame)
                }
                (Origin::Channel(_, fd), PipeDirection::ToDevice) => {
                    records::departure(memory, place, *fd).map(Followed::Frame)
                }
            };
            let tells_loss = match self.kind {
                Origin::Source(source, _) => records::tells_loss(memory, place, source.form),
                _ => None,
            };
            Record {
                number: number + 1,
                message,
                put,
                taken: None,
                looked: Nanos::ZERO,
                known: None,
                tells_loss: tells_loss.unwrap_or(false),
            }
        });
        // Not all that a writer of frames asks for is a frame.
        let is_sink = matches!(self.kind, Origin::Sink(_));
        self.records.extend(records.filter(|record| record.message.is_some() || !is_sink));
    }

    /// Takes over what a reader on another core has taken.
    pub fn catch_up(&mut self) {
        for FarTaken { reached, by, looked } in self.far.iter().flat_map(|far| far.take_taken()) {
            // A ring that its server began anew has other messages.
            let taken = |record: &&mut Record| record.number <= reached && record.put.0 <= by.0;
            let taken = self.records.iter_mut().take_while(taken);
            for record in taken.filter(|record| record.taken.is_none()) {
                (record.taken, record.looked) = (Some(by), looked);
            }
        }
    }

    /// Returns the next message that has arrived, and its way.
    pub fn next(&mut self, pipe: usize) -> Option<Journey> {
        loop {
            let to_device = self.way == PipeDirection::ToDevice;
            let over = |record: &mut Record| {
                record.taken.is_some() && (!to_device || record.known.is_some())
            };
            let record = self.records.pop_front_if(over)?;
            self.lost += u64::from(record.tells_loss);
            let (journey, left) = match (&self.kind, self.way) {
                // Until then a packet may keep back the next one.
                (Origin::Sink(_), _) => (self.written(&record), record.known),
                (_, PipeDirection::ToDevice) => (self.sent(&record), record.taken),
                (_, PipeDirection::FromDevice) => (self.came(&record), record.taken),
            };
            let ring_free = left.map_or(record.put.0, |left| left.0);
            self.ring_free = self.ring_free.max(ring_free);
            if let Some(((from, to, road), message)) = journey.zip(record.message) {
                return Some(Journey { pipe, number: record.number, message, from, to, road });
            }
        }
    }

    fn came(&mut self, record: &Record) -> Option<(Nanos, Nanos, Road)> {
        let (message, taken) = record.message.zip(record.taken)?;
        let before = |carried: &Carried| carried.over <= record.put.0;
        let (began, carried) = match message {
            Followed::Frame(frame) => {
                let place = self.heard.iter().position(|it| it.frame == frame && !it.own);
                // The frames before it did not come.
                let heard = place.and_then(|place| {
                    (0..place).for_each(|_| self.miss());
                    self.heard.pop_front()
                });
                self.works |= heard.is_some();
                let load = FrameContent::Arrival(frame);
                let is_it = |carried: &Carried| carried.loads(load) && before(carried);
                let (heard, carried) = heard.zip(found(&mut self.carried, is_it))?;
                (heard.time, carried)
            }
            Followed::Packet { made, digest, .. } => {
                let what = Content::Packet(digest);
                let is_it = |carried: &Carried| carried.what == what && before(carried);
                (self.clock.host(made), found(&mut self.carried, is_it)?)
            }
            Followed::Run { made, block, count } => return self.read(record, made, (block, count)),
        };
        let from = began.min(carried.from);
        let (put, looked) = (record.put, record.looked);
        Some((from, taken.0, Road::FromDevice { carried, put, looked, reader: taken.1 }))
    }

    /// The oldest frame that passed the bus of its channel did not come, if it is for its reader.
    fn miss(&mut self) {
        let heard = self.heard.pop_front();
        let comes = self.works && self.way == PipeDirection::FromDevice;
        self.lost += u64::from(comes && heard.is_some_and(|heard| !heard.own));
    }

    /// Returns the way of a run of blocks that was due at `due`.
    fn read(
        &mut self,
        record: &Record,
        due: Nanos,
        (block, count): (u32, u32),
    ) -> Option<(Nanos, Nanos, Road)> {
        let asked = found(&mut self.asks, |asked| asked.due == due && asked.heard.is_some())?;
        let is_it = |carried: &Carried| {
            carried.what == Content::Run(block, count) && carried.over <= record.put.0
        };
        let carried = found(&mut self.carried, is_it)?;
        let free = std::mem::replace(&mut self.bus_free, record.put.0);
        let (put, looked) = (record.put, record.looked);
        let (asked, heard, (taken, reader)) = (asked.put, asked.heard?, record.taken?);
        let road = Road::FromDisk { asked, heard, free, carried, put, looked, reader };
        Some((due.min(asked.0), taken, road))
    }

    fn written(&mut self, record: &Record) -> Option<(Nanos, Nanos, Road)> {
        let (message, (taken, known)) = record.message.zip(record.taken.zip(record.known))?;
        let what = match message {
            Followed::Packet { digest, .. } => Content::Packet(digest),
            Followed::Run { block, count, .. } => Content::Run(block, count),
            Followed::Frame(_) => return None,
        };
        let is_it = |carried: &Carried| {
            carried.what == what && carried.from >= record.put.0 && carried.over <= known.0
        };
        let carried = found(&mut self.carried, is_it)?;
        let from = record.put.0;
        let ahead = self.ring_free.clamp(from, taken.0.max(from));
        let free = std::mem::replace(&mut self.bus_free, carried.to);
        Some((from, known.0, Road::ToEndpoint { ahead, taken, free, carried, known }))
    }

    fn sent(&mut self, record: &Record) -> Option<(Nanos, Nanos, Road)> {
        let (message, (taken, known)) = record.message.zip(record.taken.zip(record.known))?;
        let Followed::Frame(frame) = message else { return None };
        let load = FrameContent::Departure(frame);
        let before = |carried: &Carried| carried.over <= known.0;
        let is_it = |carried: &Carried| carried.loads(load) && before(carried);
        let carried = found(&mut self.carried, is_it)?;
        let Content::Command(Passing { transaction, .. }) = carried.what else { return None };
        let back = acknowledgement(&mut self.acknowledged, transaction, known.0)?;
        let mut bus_free = self.bus_free;
        while let Some(heard) = self.heard.pop_front() {
            if heard.own && heard.frame == frame {
                self.bus_free = heard.time;
                let from = record.put.0;
                let ahead = self.ring_free.max(from);
                // The device's clock is its own.
                let through = heard.time.clamp(carried.to, back.from.max(carried.to));
                let bus_free = bus_free.clamp(carried.to, through);
                let road = Road::ToDevice { ahead, taken, carried, bus_free, through, back, known };
                return Some((from, known.0, road));
            }
            bus_free = heard.time;
        }
        None
    }

    /// Returns how long the oldest message has been in the pipe that nobody has taken out, or the
    /// oldest packet to an endpoint that nobody has answered.
    pub fn waiting(&self, now: Nanos) -> Nanos {
        let open = |record: &Record| match self.kind {
            Origin::Sink(_) => record.known.is_none(),
            Origin::Channel(..) | Origin::Source(..) => record.taken.is_none(),
        };
        let oldest = self.records.iter().find(|record| open(record));
        oldest.map_or(Nanos::ZERO, |record| now - record.put.0)
    }

    /// Forgets what is too old to come; the earliest instant that is still of interest.
    pub fn forget(&mut self, now: Nanos) -> Nanos {
        let oldest = Nanos(now.0.saturating_sub(PATIENCE.0));
        while self.heard.front().is_some_and(|heard| heard.time < oldest) {
            self.miss();
        }
        while self.carried.pop_front_if(|carried| carried.over < oldest).is_some() {}
        while self.asks.pop_front_if(|asked| asked.put.0 < oldest).is_some() {}
        while self.acknowledged.pop_front_if(|carried| carried.over < oldest).is_some() {}
        let heard = self.heard.front().map_or(now, |heard| heard.time);
        let put = self.records.front().map_or(now, |record| record.put.0.max(oldest));
        let due = self.asks.front().map_or(now, |asked| asked.due.max(oldest));
        let oldest = heard.min(put).min(due);
        self.far.iter().for_each(|far| far.forget(oldest));
        oldest
    }
}

/// Returns the acknowledgement of the message with this number, which was known to be through by
/// `known`. A message that was given up has none, and that of a later one has its number.
fn acknowledgement(all: &mut VecDeque<Carried>, number: u16, known: Nanos) -> Option<Carried> {
    let is_it = |back: &Carried| match back.what {
        Content::Command(command) => command.transaction == number && back.over <= known,
        Content::Packet(_) | Content::Run(..) => false,
    };
    found(all, is_it)
}

/// Returns the segments with the ring of a pipe, and with the ring of what the server tells of it.
fn rings(system: &System, pipe: &PipeSpec, kind: &Origin) -> Option<[u16; 2]> {
    let named = |name: &str| {
        let place = system.segments.iter().position(|segment| segment.name == name)?;
        u16::try_from(place).ok()
    };
    match (pipe.way, kind) {
        (_, Origin::Source(source, _)) => {
            let asks = match source.form {
                MessageForm::Blocks(places) => named(places.returned.0)?,
                _ => u16::MAX,
            };
            Some([named(source.pipe.0)?, asks])
        }
        (_, Origin::Sink(source)) => {
            let writes = match source.form {
                MessageForm::Written((writes, _)) => writes,
                form => form.places()?.returned.0,
            };
            Some([named(writes)?, named(source.pipe.0)?])
        }
        (way, Origin::Channel(_, fd)) => {
            let names = names(usize::from(pipe.number))?;
            let (arrivals, departures) = names.pipes(*fd);
            match way {
                PipeDirection::FromDevice => Some([named(arrivals)?, u16::MAX]),
                PipeDirection::ToDevice => Some([named(departures)?, named(names.reports)?]),
            }
        }
    }
}

/// Returns the interrupter of the bottom half of a source. That of the thread that manages comes
/// first.
fn interrupter(system: &System, server: u16, source: &PipeSource) -> Option<u16> {
    let halves = system.bottom_halves(server);
    u16::try_from(1 + halves.iter().position(|home| source.is_worked_by(home))?).ok()
}

impl Carried {
    /// Returns whether it is a command with this load.
    fn loads(&self, load: FrameContent) -> bool {
        matches!(self.what, Content::Command(command) if command.load == load)
    }
}

/// Returns the first that is it; those before it are lost.
fn found<T>(all: &mut VecDeque<T>, is_it: impl Fn(&T) -> bool) -> Option<T> {
    let place = all.iter().position(is_it)?;
    all.drain(..=place).next_back()
}

#[cfg(test)]
mod tests;
