//! Passes messages on between links, where they are.
//!
//! The flows of the list of hosts say by which link each flow goes on, and the most that it may
//! send. The router knows a flow by the link and the label of its messages. It holds each to its
//! contract: a message that comes too early waits in the memory in which it came, or is thrown
//! away ([`FlowHold`]), and those behind it on the same link wait, too. So a neighbour that sends
//! too often gets no more memory lent, and takes nothing from what comes by other links.
//!
//! Without flows it joins link 0 and link 1, and nothing waits.
//!
//! Once a second it says `ROUTED messages dropped held thrown`: messages that a link has taken,
//! those that it gave back, those that waited, and those that were thrown away. Arguments if no
//! flow says them: most bytes of a message, and pieces of memory for messages of each link (0: 4).

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_abi::settings::Settings;
use diapason_contract::routes::{LinkRoute, MEMORY, PIECES, ROUTES, ROUTES_MAX, RouterMemory};
use diapason_frame::{HEAD, Head};
use diapason_links::{REPORT, meter};
use diapason_pipe::hold::{FlowHold, Judgement};
use diapason_pipe::intake::{Intake, MessageSource};
use diapason_rt::sync::Semaphore;
use diapason_rt::{Arguments, Errno, Nanos, entry, log, settings, time};
use diapason_usblib::link::{DONE, Done, FILL, LINKS, Link, MESSAGE_MAX, READY, UNIT};

entry!(main);

/// Pieces of memory for messages of each link, if nothing says, and the most of two links.
const EACH: u64 = 4;
const EACH_MAX: u64 = PIECES as u64 / 2;

/// Messages of a link that came and have not gone on, in their order.
#[derive(Default)]
struct Queue {
    all: [Came; PIECES],
    first: usize,
    count: usize,
}

/// A message that came: its piece of memory, its bytes, and the number of its way.
#[derive(Clone, Copy, Default)]
struct Came {
    piece: u8,
    way: u8,
    bytes: u32,
}

impl Queue {
    /// There is room: each piece of memory is in one place at a time.
    fn push(&mut self, came: Came) {
        self.all[(self.first + self.count) % PIECES] = came;
        self.count = (self.count + 1).min(PIECES);
    }
}

impl MessageSource for Queue {
    type Message = Came;

    fn pop(&mut self) -> Option<Came> {
        self.count = self.count.checked_sub(1)?;
        let came = self.all[self.first];
        self.first = (self.first + 1) % PIECES;
        Some(came)
    }
}

/// A flow's way from link to link.
struct Way {
    from: usize,
    label: u8,
    to: usize,
    passage: FlowHold,
    /// Messages that may be on their way out at once; 0: any number.
    most: u8,
    under_way: u8,
}

#[derive(Default)]
struct Tally {
    routed: u64,
    dropped: u64,
    held: u64,
    thrown: u64,
}

struct Router {
    links: [Option<Link>; LINKS],
    ways: [Option<Way>; ROUTES_MAX],
    queues: Intake<Queue, LINKS>,
    bytes: u32,
    /// The link to which each piece of memory belongs.
    homes: [Option<usize>; PIECES],
    /// The number of the way of the message in each piece of memory that is on its way out.
    given: [u8; PIECES],
    /// Pieces that each link has for messages that come.
    lent: [usize; LINKS],
    /// The links of which something was asked in this turn.
    asked: [bool; LINKS],
    tally: Tally,
}

fn main(Arguments([bytes, each, ..]): Arguments) {
    let each = if each == 0 { EACH } else { each.min(EACH_MAX) } as u8;
    let bytes = bytes.clamp(1, MESSAGE_MAX as u64) as u32;
    let alone = RouterMemory { bytes, slots: [each, each, 0, 0] };
    if let Err(errno) = run(&settings::read(), alone) {
        log!("router: {errno:?}");
    }
}

fn run(told: &Settings, alone: RouterMemory) -> Result<(), Errno> {
    let mut router = Router::open(told, alone)?;
    let ready = Semaphore::open(READY)?;
    let mut report_at = time::now() + REPORT;
    loop {
        match ready.take(router.queues.due().unwrap_or(report_at).min(report_at)) {
            Ok(()) | Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
        while router.turn()? {}
        if time::now() >= report_at {
            report_at += REPORT;
            let Tally { routed, dropped, held, thrown } = router.tally;
            log!("ROUTED {routed} {dropped} {held} {thrown}");
        }
    }
}

impl Router {
    fn open(told: &Settings, alone: RouterMemory) -> Result<Router, Errno> {
        let join = |from, to| LinkRoute { from, label: 0, to, contract: None, most: 0 };
        let joined = [join(0, 1), join(1, 0)].map(|it| it.words());
        let (table, memory) = match told.first(MEMORY) {
            Some(word) => (told.get(ROUTES), RouterMemory::of(word)),
            None => (joined.as_flattened(), alone),
        };
        let mut router = Router {
            links: [const { None }; LINKS],
            ways: [const { None }; ROUTES_MAX],
            queues: Intake::new([(); LINKS].map(|()| Some(Queue::default()))),
            bytes: memory.bytes.next_multiple_of(UNIT as u32),
            homes: [None; PIECES],
            given: [0; PIECES],
            lent: [0; LINKS],
            asked: [false; LINKS],
            tally: Tally::default(),
        };
        for (place, route) in router.ways.iter_mut().zip(LinkRoute::all(table)) {
            for link in [route.from, route.to] {
                if router.links[link].is_none() {
                    router.links[link] = Some(Link::open(link)?);
                }
            }
            let LinkRoute { from, label, to, contract, most } = route;
            let passage = FlowHold::new(meter(contract));
            *place = Some(Way { from, label, to, passage, most, under_way: 0 });
        }
        let slots = memory.slots.iter().enumerate();
        let slots = slots.flat_map(|(link, slots)| (0..*slots).map(move |_| link));
        for (piece, link) in (0..PIECES).zip(slots) {
            router.homes[piece] = Some(link);
            router.fill(piece)?;
        }
        router.links.iter().flatten().for_each(Link::ring);
        Ok(router)
    }

    /// Lends a piece of memory to its link again.
    fn fill(&mut self, piece: usize) -> Result<(), Errno> {
        let Some(Some(home)) = self.homes.get(piece).copied() else { return Ok(()) };
        let Some(link) = &mut self.links[home] else { return Ok(()) };
        link.fill(link.place(piece as u32), self.bytes)?;
        self.lent[home] += 1;
        self.asked[home] = true;
        Ok(())
    }

    /// Takes all transfers that have ended, and passes on all messages that may go. Returns whether
    /// there was any.
    fn turn(&mut self) -> Result<bool, Errno> {
        let mut any = false;
        for link in 0..LINKS {
            while let Some(done) = self.links[link].as_mut().and_then(Link::pop) {
                any = true;
                self.ended(&done)?;
            }
        }
        let now = time::now();
        while let Some((came, is_thrown)) = self.next(now) {
            any = true;
            match is_thrown {
                true => self.fill(came.piece.into())?,
                false => self.pass(came)?,
            }
        }
        let asked = core::mem::take(&mut self.asked);
        for (link, _) in self.links.iter().zip(asked).filter(|(_, asked)| *asked) {
            link.iter().for_each(Link::ring);
        }
        Ok(any)
    }

    /// Puts a message that came into the queue of its link, or takes back the memory of one that
    /// has gone.
    fn ended(&mut self, done: &Done) -> Result<(), Errno> {
        let Some(first) = self.links.iter().flatten().next().map(|link| link.place(0)) else {
            return Ok(());
        };
        let piece = done.place.saturating_sub(first) as usize * UNIT / MESSAGE_MAX;
        let Some(Some(home)) = self.homes.get(piece).copied() else { return Ok(()) };
        if done.what == FILL {
            self.lent[home] = self.lent[home].saturating_sub(1);
            let bytes = if done.status == DONE { done.bytes } else { 0 };
            let way = self.way(home, done.place, bytes);
            // One without content waits as others do: it took memory, too.
            let came = Came { piece: piece as u8, bytes, way: way as u8 };
            self.queues.source(home).into_iter().for_each(|it| it.push(came));
            return Ok(());
        }
        if let Some(Some(way)) = self.ways.get_mut(usize::from(self.given[piece])) {
            way.under_way = way.under_way.saturating_sub(1);
        }
        match done.status {
            DONE => self.tally.routed += 1,
            _ => self.tally.dropped += 1,
        }
        self.fill(piece)
    }

    /// Returns the number of the way of a message: that with its label, or the first from its link.
    fn way(&self, home: usize, place: u32, bytes: u32) -> usize {
        let label = match (&self.links[home], bytes as usize >= HEAD) {
            (Some(link), true) => Head::label_of(link.data.read32(place as usize * UNIT + 4)),
            _ => 0,
        };
        let is_its = |way: &Option<Way>, labelled: bool| {
            way.as_ref().is_some_and(|it| it.from == home && (it.label == label || !labelled))
        };
        let first = |labelled| self.ways.iter().position(|way| is_its(way, labelled));
        first(true).or_else(|| first(false)).unwrap_or(ROUTES_MAX)
    }

    /// Returns the next message that leaves its queue, and whether it is thrown away.
    fn next(&mut self, now: Nanos) -> Option<(Came, bool)> {
        let Router { queues, ways, tally, .. } = self;
        let mut is_thrown = false;
        let one = queues.take(now, |_, came| {
            let Some(Some(way)) = ways.get_mut(usize::from(came.way)) else { return now };
            match way.passage.judge(now) {
                Judgement::Passes => now,
                Judgement::IsThrown => {
                    is_thrown = true;
                    now
                }
                Judgement::Waits(opens) => opens,
            }
        })?;
        tally.held += u64::from(one.held.is_some());
        tally.thrown += u64::from(is_thrown);
        if let (Some(Some(way)), false) = (ways.get_mut(usize::from(one.message.way)), is_thrown) {
            way.passage.passed(now);
        }
        Some((one.message, is_thrown))
    }

    /// Gives a message to the link of its way. If its own link has no memory left, the router wants
    /// to hear when the message has gone. A message is thrown away while as many of its flow are on
    /// their way out as ever should be: the other side takes none.
    fn pass(&mut self, Came { piece, bytes, way: number }: Came) -> Result<(), Errno> {
        let piece = usize::from(piece);
        let way = self.ways.get_mut(usize::from(number)).and_then(Option::as_mut);
        let (Some(way), 1..) = (way, bytes) else { return self.fill(piece) };
        let Some(link) = &mut self.links[way.to] else { return self.fill(piece) };
        if way.most != 0 && way.under_way >= way.most {
            self.tally.thrown += 1;
            return self.fill(piece);
        }
        let place = link.place(piece as u32);
        let is_last = self.homes[piece].is_some_and(|home| self.lent[home] == 0);
        match is_last {
            true => link.send(place, bytes)?,
            false => link.send_quietly(place, bytes)?,
        }
        way.under_way = way.under_way.saturating_add(1);
        self.given[piece] = number;
        self.asked[way.to] = true;
        Ok(())
    }
}
