//! One pipe: what is known of the messages on their way through it, and which of them have arrived.

use super::Around;
use super::beyond::{FarReader, FarTaken};
use super::life::{Followed, Journey, Road};
use super::wire::{Apart, Carried, Content, Told, digest, frame_digest, length_digest};
use crate::surroundings::clock_of;
use diapason_abi::Nanos;
use diapason_abi::pipe::{OUT_SLOTS, SLOTS};
use diapason_can::AnyFrame;
use diapason_can::exchange::{
    ChannelReport, Departure, FdDeparture, FdReceivedFrame, ReceivedFrame,
};
use diapason_contract::can::names;
use diapason_contract::network::{Ask, BACK, CAME, News, SEND};
use diapason_contract::sensor::Packet;
use diapason_contract::sink::{DONE, PacketAnswer, PacketWrite};
use diapason_contract::source::{MessageForm, PipeSource};
use diapason_contract::threads::homes;
use diapason_core::ThreadId;
use diapason_devices::can::{CanBus, FrameContent, Heard, Passing};
use diapason_devices::faulty::OwnClock;
use diapason_pipe::bill;
use diapason_sim::Watched;
use diapason_system::{PipeDirection, PipeSpec, ProcessSpec, System};
use std::collections::VecDeque;
use std::mem::offset_of;
use std::rc::Rc;

/// The ring of a pipe: how far it is written and read, and where its records begin.
const WRITTEN: usize = 0;
pub const TAKEN: usize = 64;
const RECORDS: usize = 128;
/// Records in the ring of reports on a pipe to a device, the length of one, and where in it is how
/// many messages are through.
const REPORTS: u64 = 64;
const REPORT: usize = size_of::<ChannelReport>();
const THROUGH: usize = 16;
const _: () = assert!(DONE == diapason_contract::network::DONE);
/// Words of each pipe that are watched.
pub const WORDS: usize = 3;
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
}

/// The device of a pipe, as one can look at it.
enum Origin {
    /// A channel of a CAN interface, with CAN FD or without. Its bus tells of each frame.
    Channel(CanBus, bool),
    /// A source whose messages bear times, and the place of the time in each.
    Source(&'static PipeSource, usize),
    /// The endpoint of any device, which packets go to, or a network device, which frames go to.
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
    /// When the bus was free of the message that was looked at last, and the ring of that message.
    bus_free: Nanos,
    ring_free: Nanos,
    segments: [u16; 2],
    clock: OwnClock,
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
                // A picture and a run of blocks are many transfers: only reports say how they come.
                MessageForm::Picture(_) | MessageForm::Blocks(_) => return None,
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
                Some(interrupter(server, interfaces.len(), source)?)
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
            bus_free: Nanos::ZERO,
            ring_free: Nanos::ZERO,
            segments,
            clock: clock_of(faults, pipe.usb),
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
    /// told from each other.
    pub fn source(&self) -> Option<(Told, Apart)> {
        let (source, time) = match &self.kind {
            Origin::Source(source, stamp) => (source, Apart::Time(*stamp)),
            Origin::Sink(source) => (source, Apart::Length),
            Origin::Channel(..) => return None,
        };
        let is_frame = matches!(source.form, MessageForm::Frame(_) | MessageForm::SentFrame(_));
        let from_device = self.way == PipeDirection::FromDevice;
        Some(((self.vector?, from_device), if is_frame { time } else { Apart::Bytes }))
    }

    /// Returns the words that say how far its rings are. The core of its reader knows how far it is
    /// read.
    pub fn watched(line: Option<&Line>) -> [Watched; WORDS] {
        let [ring, reports] = line.map_or([u16::MAX; 2], |line| line.segments);
        let read = line.filter(|line| line.far.is_none()).map_or(u16::MAX, |_| ring);
        [(ring, WRITTEN), (read, TAKEN), (reports, WRITTEN)]
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
            Content::Packet(_) if self.bus().is_none() => return self.carried.push_back(carried),
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
            return;
        }
        let reached = match word {
            0 => return self.put(by, (old, new), memory),
            1 => new,
            _ if matches!(self.kind, Origin::Sink(_)) => {
                return self.answered(by, (old, new), memory);
            }
            _ => through(memory, new).unwrap_or(0),
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
            let Some((written, status)) = answer(memory, source, number) else { continue };
            let is_it = |record: &Record| {
                let made = record.message.is_some_and(|message| message.is_made_at(written));
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
                    MessageForm::Frame(_) => frame(memory, place),
                    _ => packet(memory, place),
                },
                (Origin::Sink(source), _) => match source.form {
                    MessageForm::SentFrame(_) => sent_frame(memory, place),
                    _ => written(memory, place),
                },
                (Origin::Channel(_, fd), PipeDirection::FromDevice) => {
                    arrival(memory, place, *fd).map(Followed::Frame)
                }
                (Origin::Channel(_, fd), PipeDirection::ToDevice) => {
                    departure(memory, place, *fd).map(Followed::Frame)
                }
            };
            Record {
                number: number + 1,
                message,
                put,
                taken: None,
                looked: Nanos::ZERO,
                known: None,
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
                let heard = found(&mut self.heard, |heard| heard.frame == frame && !heard.own);
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
        };
        let from = began.min(carried.from);
        let (put, looked) = (record.put, record.looked);
        Some((from, taken.0, Road::FromDevice { carried, put, looked, reader: taken.1 }))
    }

    fn written(&mut self, record: &Record) -> Option<(Nanos, Nanos, Road)> {
        let (message, (taken, known)) = record.message.zip(record.taken.zip(record.known))?;
        let Followed::Packet { digest, .. } = message else { return None };
        let is_it = |carried: &Carried| {
            let within = carried.from >= record.put.0 && carried.over <= known.0;
            carried.what == Content::Packet(digest) && within
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
        while self.heard.pop_front_if(|heard| heard.time < oldest).is_some() {}
        while self.carried.pop_front_if(|carried| carried.over < oldest).is_some() {}
        while self.acknowledged.pop_front_if(|carried| carried.over < oldest).is_some() {}
        let heard = self.heard.front().map_or(now, |heard| heard.time);
        let put = self.records.front().map_or(now, |record| record.put.0.max(oldest));
        let oldest = heard.min(put);
        self.far.iter().for_each(|far| far.forget(oldest));
        oldest
    }
}

/// Returns the acknowledgement of the message with this number, which was known to be through by
/// `known`. A message that was given up has none, and that of a later one has its number.
fn acknowledgement(all: &mut VecDeque<Carried>, number: u16, known: Nanos) -> Option<Carried> {
    let is_it = |back: &Carried| match back.what {
        Content::Command(command) => command.transaction == number && back.over <= known,
        Content::Packet(_) => false,
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
        (_, Origin::Source(source, _)) => Some([named(source.pipe.0)?, u16::MAX]),
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

/// Returns the interrupter of the bottom half of a source, of which a server with so many CAN
/// interfaces has one.
fn interrupter(server: &ProcessSpec, interfaces: usize, source: &PipeSource) -> Option<u16> {
    let setting = |name: &str| server.setting(name);
    let place = homes(&setting).position(|home| home.vcpu == source.home.vcpu)?;
    // The settings of the description do not say how many interfaces there are.
    u16::try_from(1 + place + interfaces.saturating_sub(1)).ok()
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

fn record(memory: &[u8], place: usize, length: usize) -> Option<&[u8]> {
    memory.get(RECORDS + place * length..)?.get(..length)
}

/// Returns the frame of a record from a device.
fn arrival(memory: &[u8], place: usize, fd: bool) -> Option<AnyFrame> {
    let (short, long) = (size_of::<ReceivedFrame>(), size_of::<FdReceivedFrame>());
    let record = record(memory, place, if fd { long } else { short })?;
    let head = ReceivedFrame {
        time: u64::from_le_bytes(*record.first_chunk()?),
        taken: u64::from_le_bytes(*record.get(8..)?.first_chunk()?),
        data: *record.get(16..)?.first_chunk()?,
        id: u32::from_le_bytes(*record.get(24..)?.first_chunk()?),
        code: *record.get(28)?,
        flags: *record.get(29)?,
        opened: u16::from_le_bytes(*record.get(30..)?.first_chunk()?),
        moved: 0,
        inexact: 0,
    };
    if !fd {
        return head.frame().map(AnyFrame::Classic);
    }
    FdReceivedFrame { head, more: *record.get(short..)?.first_chunk()? }.frame()
}

/// Returns the packet of a record from a source.
fn packet(memory: &[u8], place: usize) -> Option<Followed> {
    let record = record(memory, place, size_of::<Packet>())?;
    let length = u32::from_le_bytes(*record.get(offset_of!(Packet, length)..)?.first_chunk()?);
    let data = record.get(offset_of!(Packet, data)..)?.get(..length as usize)?;
    let made = Nanos(u64::from_le_bytes(*record.get(offset_of!(Packet, time)..)?.first_chunk()?));
    Some(Followed::Packet { made, length, digest: digest(data) })
}

/// Returns the frame of a record from a network device, if it is of one.
fn frame(memory: &[u8], place: usize) -> Option<Followed> {
    let record = record(memory, place, size_of::<News>())?;
    let half = |at: usize| Some(u32::from_le_bytes(*record.get(at..)?.first_chunk()?));
    let length = half(offset_of!(News, bytes))?;
    let made = *record.get(offset_of!(News, time)..)?.first_chunk()?;
    let digest = frame_digest(made, length as usize);
    let message = Followed::Packet { made: Nanos(u64::from_le_bytes(made)), length, digest };
    (half(offset_of!(News, what))? == CAME).then_some(message)
}

/// Returns the packet of a record to an endpoint.
fn written(memory: &[u8], place: usize) -> Option<Followed> {
    let record = record(memory, place, size_of::<PacketWrite>())?;
    let length = u32::from_le_bytes(*record.get(offset_of!(PacketWrite, length)..)?.first_chunk()?);
    let data = record.get(offset_of!(PacketWrite, data)..)?.get(..length as usize)?;
    let made = Nanos(u64::from_le_bytes(*record.first_chunk()?));
    Some(Followed::Packet { made, length, digest: digest(data) })
}

/// Returns the frame of a record to a network device, if it is of one.
fn sent_frame(memory: &[u8], place: usize) -> Option<Followed> {
    let record = record(memory, place, size_of::<Ask>())?;
    let half = |at: usize| Some(u16::from_le_bytes(*record.get(at..)?.first_chunk()?));
    let bytes = half(offset_of!(Ask, bytes))?;
    let made = u64::from_le_bytes(*record.get(offset_of!(Ask, written)..)?.first_chunk()?);
    let (made, digest) = (Nanos(made), length_digest(bytes.into()));
    let message = Followed::Packet { made, length: bytes.into(), digest };
    (half(offset_of!(Ask, what))? == SEND).then_some(message)
}

/// Returns which message an answer of a sink is to, by the time at which it was written, and its
/// status.
fn answer(memory: &[u8], sink: &PipeSource, number: u64) -> Option<(Nanos, u32)> {
    let place = (number % sink.attributes.slots as u64) as usize;
    let is_frame = matches!(sink.form, MessageForm::SentFrame(_));
    let (length, written, status) = match is_frame {
        true => (size_of::<News>(), offset_of!(News, time), offset_of!(News, status)),
        false => (size_of::<PacketAnswer>(), 0, offset_of!(PacketAnswer, status)),
    };
    let record = record(memory, place, length)?;
    let half = |at: usize| Some(u32::from_le_bytes(*record.get(at..)?.first_chunk()?));
    let time = u64::from_le_bytes(*record.get(written..)?.first_chunk()?);
    let is_answer = !is_frame || half(offset_of!(News, what))? == BACK;
    is_answer.then_some((Nanos(time), half(status)?))
}

/// Returns the frame of a record to a device.
fn departure(memory: &[u8], place: usize, fd: bool) -> Option<AnyFrame> {
    let (short, long) = (size_of::<Departure>(), size_of::<FdDeparture>());
    let record = record(memory, place, if fd { long } else { short })?;
    let head = Departure {
        data: *record.first_chunk()?,
        id: u32::from_le_bytes(*record.get(8..)?.first_chunk()?),
        code: *record.get(12)?,
        flags: *record.get(13)?,
        spare: 0,
        written: 0,
    };
    if !fd {
        return head.frame().map(AnyFrame::Classic);
    }
    FdDeparture { head, more: *record.get(short..)?.first_chunk()? }.frame()
}

/// Returns how many messages are through, by the last of so many reports.
fn through(memory: &[u8], reports: u64) -> Option<u64> {
    let place = (reports.checked_sub(1)? % REPORTS) as usize;
    let report = record(memory, place, REPORT)?;
    Some(u64::from_le_bytes(*report.get(THROUGH..)?.first_chunk()?))
}

#[cfg(test)]
mod tests;
