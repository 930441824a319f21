//! The life of one message, as items that add up to its latency exactly: stage by stage as the plan
//! has them, and in each what kept it.

use super::beyond::KnownReader;
use super::disk::Commanded;
use super::wire::{Carried, Content, ObservedController, Waits};
use diapason_abi::Nanos;
use diapason_can::AnyFrame;
use diapason_core::{Cause, Standing, ThreadId};
use diapason_pipe::bill::{self, What};
use diapason_sim::{self as sim, History};
use std::cell::{Ref, RefCell};

/// A message, as its pipe has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Followed {
    Frame(AnyFrame),
    /// A packet of a source or to a sink: when it was made, by the clock of its device or of its
    /// writer, its length, and the digest of its bytes.
    Packet {
        made: Nanos,
        length: u32,
        digest: u64,
    },
    /// A run of blocks: when its reader was to ask for it, or its writer wrote it, its first block,
    /// and how many it has.
    Run {
        made: Nanos,
        block: u32,
        count: u32,
    },
}

impl Followed {
    /// Returns when it was made, if it says so.
    #[must_use]
    pub fn made(&self) -> Option<Nanos> {
        match self {
            Followed::Packet { made, .. } | Followed::Run { made, .. } => Some(*made),
            Followed::Frame(_) => None,
        }
    }

    /// Returns it in words: a frame as candump has it.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Followed::Frame(frame) => {
                let data = frame.bytes().iter().map(|byte| format!("{byte:02x}"));
                let mark = match frame {
                    AnyFrame::Classic(_) => "#".to_owned(),
                    AnyFrame::Fd(frame) => format!("##{}", u8::from(frame.is_fast())),
                };
                format!("{:x}{mark}{}", frame.raw_id(), data.collect::<String>())
            }
            Followed::Packet { length, .. } => format!("{length} bytes"),
            Followed::Run { block, count, .. } => format!("{count} blocks from {block} on"),
        }
    }
}

/// The journey of one message.
pub struct Journey {
    pub pipe: usize,
    pub number: u64,
    pub message: Followed,
    /// The time at which the message's device had it, or its writer wrote it.
    pub from: Nanos,
    /// The time at which the message's reader had it, or the server had told that it is through.
    pub to: Nanos,
    pub road: Road,
}

/// The way that it took.
pub enum Road {
    FromDevice {
        carried: Carried,
        /// The time at which the message was put into its pipe, and the thread that did so.
        put: (Nanos, ThreadId),
        /// The end of the last sleep of a reader on another core.
        looked: Nanos,
        reader: ThreadId,
    },
    FromDisk {
        /// The time at which the reader asked, and that at which the server took the ask, each with
        /// the thread that did so.
        asked: (Nanos, ThreadId),
        heard: (Nanos, ThreadId),
        /// The time from which the command before this one was known to have ended.
        free: Nanos,
        carried: Carried,
        /// The time at which the message was told, and the thread that did so.
        put: (Nanos, ThreadId),
        /// The end of the last sleep of a reader on another core.
        looked: Nanos,
        reader: ThreadId,
    },
    ToDevice {
        /// The time from which no other message was before this one in its pipe.
        ahead: Nanos,
        /// The time at which the message was taken out of its pipe, and the thread that did so.
        taken: (Nanos, ThreadId),
        carried: Carried,
        /// The time from which no other frame was before the message on the device's own bus, and
        /// that at which it was through.
        bus_free: Nanos,
        through: Nanos,
        /// The acknowledgement, and when and by whom that was told.
        back: Carried,
        known: (Nanos, ThreadId),
    },
    ToEndpoint {
        /// The time from which the packet before this one had ended.
        ahead: Nanos,
        /// The time at which the packet was taken out of its pipe, and the thread that did so.
        taken: (Nanos, ThreadId),
        /// The time from which the bus had carried the packet before this one.
        free: Nanos,
        carried: Carried,
        /// The time at which the server had told that the device has the packet, and the thread
        /// that did so.
        known: (Nanos, ThreadId),
    },
}

impl Journey {
    /// Returns what came from the device.
    pub fn told(&self) -> &Carried {
        match &self.road {
            Road::FromDevice { carried, .. }
            | Road::FromDisk { carried, .. }
            | Road::ToEndpoint { carried, .. } => carried,
            Road::ToDevice { back, .. } => back,
        }
    }
}

/// The kind of one item of a life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum During {
    /// Others are before it in its pipe.
    Pipe,
    /// It, or its acknowledgement, waits for the bus.
    Device(Waits),
    /// A packet with it is on the bus.
    Packet,
    /// The device has said "not now" to it.
    NotNow,
    /// The message's transfer goes on behind it.
    Transfer,
    /// Other frames are before it on the device's own bus.
    Frames,
    /// The message's frame is on that bus.
    Frame,
    /// The controller may not interrupt yet.
    Interval,
    /// The message is for this thread to go on with it.
    Processor(ThreadId, sim::HistorySpan),
}

/// A part of a journey. The history says what a thread and others did meanwhile.
pub struct JourneyPart {
    pub from: Nanos,
    pub to: Nanos,
    pub stage: What,
    kept: Kept,
}

/// The reason why a message did not go on.
enum Kept {
    During(During),
    /// The message was for this thread to go on with it.
    For(ThreadId),
}

/// A part of a message's life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StageSpan {
    pub from: Nanos,
    pub to: Nanos,
    pub stage: What,
    pub during: During,
}

/// The life of one message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Life {
    /// The number of its pipe.
    pub pipe: usize,
    /// The number of the message in its pipe, from 1.
    pub number: u64,
    pub message: Followed,
    /// The message goes to a device.
    pub to_device: bool,
    /// The time at which the message's device had it, or its writer wrote it.
    pub from: Nanos,
    /// The time at which the message's reader had it, or the server had told that it is through.
    pub to: Nanos,
    /// The part of the run with its reader, if that is on another core than the server.
    pub far: Option<usize>,
    /// The bound of the message.
    pub bound: Option<Nanos>,
    /// How long at each stage, by the plan.
    pub bill: Option<bill::Bill>,
    /// The events in between, in order.
    pub items: Vec<StageSpan>,
}

impl Life {
    /// Returns the thread at the end of its way that is no device, and when it had the message: its
    /// reader, or the server that gave it to the device.
    #[must_use]
    pub fn handled(&self) -> Option<(ThreadId, Nanos)> {
        let on_processor = |item: &StageSpan| match item.during {
            During::Processor(thread, _) => Some((thread, item.to)),
            _ => None,
        };
        let mut handled = self.items.iter().filter_map(on_processor);
        if self.to_device { handled.next() } else { handled.next_back() }
    }

    /// Returns the life of a journey with these parts, as the history of each core has them.
    ///
    /// # Panics
    /// If they are not its life without gaps: a fault of Diapason.
    pub fn new(
        journey: &Journey,
        parts: &[JourneyPart],
        roads: &Roads<'_>,
        (bound, bill): (Option<Nanos>, Option<bill::Bill>),
    ) -> Life {
        let Journey { pipe, number, message, from, to, .. } = *journey;
        let items = |part: &JourneyPart| part.items(&roads.history_at(part.stage));
        let items: Vec<StageSpan> = parts.iter().flat_map(items).collect();
        assert_whole(journey, items.iter().map(|item| (item.from, item.to)));
        let to_device = !matches!(journey.road, Road::FromDevice { .. } | Road::FromDisk { .. });
        let far = roads.far.map(|reader| reader.part);
        Life { pipe, number, message, to_device, from, to, far, bound, bill, items }
    }

    /// Returns whether it took a larger part of its bound than something that took `took` of `had`.
    #[must_use]
    pub fn is_worse_than(&self, took: Nanos, had: Option<Nanos>) -> bool {
        is_worse((self.latency(), self.bound), (took, had))
    }

    /// Returns the part of the run where a stage is, if that is not the server's core.
    #[must_use]
    pub fn part(&self, stage: What) -> Option<usize> {
        self.far.filter(|_| is_of_reader(stage))
    }

    /// Returns the time from its beginning to its end.
    #[must_use]
    pub fn latency(&self) -> Nanos {
        self.to - self.from
    }

    /// Returns how long it was at a stage.
    #[must_use]
    pub fn took(&self, stage: What) -> Nanos {
        let of_it = self.items.iter().filter(|item| item.stage == stage);
        of_it.fold(Nanos::ZERO, |sum, item| sum + (item.to - item.from))
    }
}

impl JourneyPart {
    fn items(&self, history: &History) -> Vec<StageSpan> {
        let JourneyPart { from, to, stage, ref kept } = *self;
        match *kept {
            Kept::During(during) => vec![StageSpan { from, to, stage, during }],
            Kept::For(thread) => {
                let item = |item: sim::HistorySpan| StageSpan {
                    from: item.from,
                    to: item.to,
                    stage,
                    during: During::Processor(thread, item),
                };
                history.items(thread, from, to).into_iter().map(item).collect()
            }
        }
    }
}

/// Checks that spans are a journey without gaps.
fn assert_whole(journey: &Journey, spans: impl Iterator<Item = (Nanos, Nanos)>) {
    let end = spans.fold(journey.from, |end, (from, to)| {
        assert_eq!(from, end, "a gap in the life of a message");
        to
    });
    assert_eq!(end, journey.to, "the life of a message ends with its journey");
}

/// Returns whether the first took a larger part of its bound than the second: each is how long it
/// took, and how long it may take.
#[must_use]
pub fn is_worse(one: (Nanos, Option<Nanos>), two: (Nanos, Option<Nanos>)) -> bool {
    let most = |bound: Option<Nanos>| u128::from(bound.unwrap_or(Nanos::FOREVER).0.max(1));
    u128::from(one.0.0) * most(two.1) > u128::from(two.0.0) * most(one.1)
}

/// Where a journey can be looked up.
pub struct Roads<'a> {
    pub wire: &'a ObservedController,
    pub history: &'a RefCell<History>,
    /// The device whose interrupt tells its transfer.
    pub interrupt: Option<u16>,
    /// The reader, if it is on another core.
    pub far: Option<&'a KnownReader>,
}

impl Roads<'_> {
    /// Checks that everything is known from this instant on, on each core.
    fn reach(&self, from: Nanos) -> Option<()> {
        let reaches = |stage| self.history_at(stage).reaches(from);
        (reaches(What::BottomHalf) && reaches(What::User)).then_some(())
    }

    /// Returns the history of the core where a stage is.
    fn history_at(&self, stage: What) -> Ref<'_, History> {
        let far = self.far.filter(|_| is_of_reader(stage));
        far.map_or(self.history, |reader| &reader.history).borrow()
    }
}

/// Returns whether a stage is on the core of the reader.
const fn is_of_reader(stage: What) -> bool {
    matches!(stage, What::Look | What::User)
}

/// Returns the parts of a journey; none if what happened is not known any more.
///
/// # Panics
/// If they are not the journey without gaps: a fault of Diapason.
pub fn parts(journey: &Journey, roads: &Roads<'_>) -> Option<Vec<JourneyPart>> {
    let mut story = Story { roads, parts: Vec::new() };
    match journey.road {
        Road::FromDevice { ref carried, put: (put, server), looked, reader } => {
            roads.reach(carried.over)?;
            let told = story.comes(carried, journey.from, put, [What::Request, What::Bus]);
            story.moderated(carried, told, server, [What::Moderation, What::TopHalf]);
            story.handed(told, (put, server), (looked, reader), journey.to);
        }
        Road::FromDisk { asked, heard, free, ref carried, put: (put, server), looked, reader } => {
            roads.reach(journey.from)?;
            let queued = roads.wire.queued(carried)?.clamp(asked.0, carried.from.max(asked.0));
            let free = free.clamp(asked.0, queued);
            story.processor(What::Asked, asked.1, journey.from, asked.0);
            story.push(What::Request, asked.0, free, During::Pipe);
            let stage = if free > asked.0 { What::Request } else { What::Asked };
            story.processor(stage, heard.1, free, queued);
            story.goes(carried, queued);
            let told = story.ends(What::Bus, carried, put);
            story.moderated(carried, told, server, [What::Moderation, What::TopHalf]);
            story.handed(told, (put, server), (looked, reader), journey.to);
        }
        Road::ToDevice { ahead, taken, ref carried, bus_free, through, ref back, known } => {
            roads.reach(journey.from)?;
            story.push(What::Taken, journey.from, ahead, During::Pipe);
            story.processor(What::Taken, taken.1, ahead, taken.0);
            story.waits(What::Bus, carried, (taken.0, carried.from));
            story.push(What::Bus, carried.from, carried.to, During::Packet);
            story.push(What::Drain, carried.to, bus_free, During::Frames);
            story.push(What::Drain, bus_free, through, During::Frame);
            let told = story.comes(back, through, known.0, [What::Back; 2]);
            story.moderated(back, told, known.1, [What::Back; 2]);
            story.processor(What::Back, known.1, told.handled, known.0);
        }
        Road::ToEndpoint { ahead, taken, free, ref carried, known } => {
            roads.reach(journey.from)?;
            let queued = roads.wire.queued(carried)?.clamp(taken.0, carried.from.max(taken.0));
            let turn = free.clamp(queued, carried.from.max(queued));
            story.push(What::Taken, journey.from, ahead, During::Pipe);
            story.processor(What::Taken, taken.1, ahead, queued);
            story.waits(What::Taken, carried, (queued, turn));
            story.goes(carried, turn);
            let told = story.ends(What::Back, carried, known.0);
            story.moderated(carried, told, known.1, [What::Back; 2]);
            story.processor(What::Back, known.1, told.handled, known.0);
        }
    }
    assert_whole(journey, story.parts.iter().map(|part| (part.from, part.to)));
    Some(story.parts)
}

/// When a transfer's interrupt came, and when it was handled.
#[derive(Clone, Copy)]
struct Told {
    raised: Nanos,
    handled: Nanos,
}

/// Parts as they are found, in order.
struct Story<'r> {
    roads: &'r Roads<'r>,
    parts: Vec<JourneyPart>,
}

impl Story<'_> {
    fn push(&mut self, stage: What, from: Nanos, to: Nanos, during: During) {
        self.kept(stage, from, to, Kept::During(during));
    }

    fn kept(&mut self, stage: What, from: Nanos, to: Nanos, kept: Kept) {
        if to > from {
            self.parts.push(JourneyPart { from, to, stage, kept });
        }
    }

    /// Tells that it is for a thread to go on.
    fn processor(&mut self, stage: What, thread: ThreadId, from: Nanos, to: Nanos) {
        self.kept(stage, from, to, Kept::For(thread));
    }

    /// Tells that the message waits for its packets to be carried, from one time to another.
    fn waits(&mut self, stage: What, carried: &Carried, (since, until): (Nanos, Nanos)) {
        for (from, to, waits) in self.roads.wire.waits(carried.place, since, until) {
            self.push(stage, from, to, During::Device(waits));
        }
    }

    /// Tells of the way to an endpoint. The message is at the stage of the bus until it was offered
    /// for the first time, and at that of the device while the device does not take it. A command
    /// of a disk is on the bus and in the disk by turns.
    fn goes(&mut self, carried: &Carried, queued: Nanos) {
        if let Content::Run(..) = carried.what {
            self.waits(What::Bus, carried, (queued, carried.from));
            for (from, to, what) in self.roads.wire.command(carried) {
                match what {
                    Commanded::Packet => self.push(What::Bus, from, to, During::Packet),
                    Commanded::NotNow => self.push(What::Device, from, to, During::NotNow),
                    Commanded::Waits(why) => self.push(What::Bus, from, to, During::Device(why)),
                }
            }
            return;
        }
        let refused = self.roads.wire.refused(carried, queued);
        let (from, to) = refused.unwrap_or((carried.from, carried.to));
        self.waits(What::Bus, carried, (queued, from));
        self.push(What::Bus, from, to, During::Packet);
        if refused.is_some() {
            self.push(What::Device, to, carried.from, During::NotNow);
            self.push(What::Device, carried.from, carried.to, During::Packet);
        }
    }

    /// A server has told of it, and its reader takes it at `end`.
    fn handed(
        &mut self,
        told: Told,
        (put, server): (Nanos, ThreadId),
        (looked, reader): (Nanos, ThreadId),
        end: Nanos,
    ) {
        let (told_until, ready) = match self.roads.far {
            None => [woken(&self.roads.history_at(What::User), reader, put, end); 2].into(),
            Some(_) => (put, looked.clamp(put, end)),
        };
        self.processor(What::BottomHalf, server, told.handled, told_until);
        self.processor(What::Look, reader, told_until, ready);
        self.processor(What::User, reader, ready, end);
    }

    /// It comes from its device, and its transfer's end is handled by `until`: when that was told.
    fn comes(&mut self, carried: &Carried, since: Nanos, until: Nanos, stages: [What; 2]) -> Told {
        let [request, bus] = stages;
        self.waits(request, carried, (since, carried.from));
        self.push(bus, carried.from, carried.to, During::Packet);
        self.ends(bus, carried, until)
    }

    /// Its packets are carried, and its transfer's end is handled by `until`: when that was told.
    fn ends(&mut self, stage: What, carried: &Carried, until: Nanos) -> Told {
        self.push(stage, carried.to, carried.over, During::Transfer);
        // A server that is at work already needs no interrupt.
        let Roads { wire, history, interrupt, .. } = self.roads;
        let history = history.borrow();
        let raised = wire.interrupt(carried.vector, carried.over, until);
        let handled = raised
            .zip(*interrupt)
            .and_then(|(raised, device)| history.handled(Cause::Irq(device), raised, until));
        let raised = handled.and(raised).unwrap_or(carried.over);
        Told { raised, handled: handled.unwrap_or(raised) }
    }

    /// The interrupt is kept back, and then the kernel handles it.
    fn moderated(&mut self, carried: &Carried, told: Told, server: ThreadId, stages: [What; 2]) {
        let [moderation, top_half] = stages;
        self.push(moderation, carried.over, told.raised, During::Interval);
        self.processor(top_half, server, told.raised, told.handled);
    }
}

/// Returns when the reader could go on with what was put in.
fn woken(history: &History, reader: ThreadId, put: Nanos, taken: Nanos) -> Nanos {
    let waits = |standing| matches!(standing, Standing::Waiting(_));
    history.first(reader, put, taken, |standing| !waits(standing)).unwrap_or(taken)
}
