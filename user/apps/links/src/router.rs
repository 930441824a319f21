//! Passes messages on between links, where they are, and between links and mailboxes.
//!
//! The flows of the list of hosts say by which link or mailbox each flow goes on, and the most that
//! it may send. The router knows a flow by the link and the label of its messages. It holds each to
//! its contract: a message that comes too early waits in the memory in which it came, or is thrown
//! away ([`FlowHold`]), and those behind it on the same link wait, too. So a neighbour that sends
//! too often gets no more memory lent, and takes nothing from what comes by other links. A message
//! in a mailbox that comes too early waits there, and is not thrown away.
//!
//! No call on behalf of a message waits: one that finds a mailbox full is dropped and counted. A
//! second thread hears that something came to a mailbox, and gives the semaphore of the links. The
//! first thread does all the work.
//!
//! Without flows it joins link 0 and link 1, and nothing waits.
//!
//! Once a second it says `ROUTED messages dropped held thrown` of what it passes from link to link:
//! messages that a link has taken, those that it gave back, those that waited, and those that were
//! thrown away. Of each mailbox whose messages it takes it says `POSTED mailbox posted dropped
//! held`, and of each flow to a mailbox `DELIVERED mailbox delivered full lost thrown early`:
//! messages that found the mailbox full, numbers that were missing, messages that came twice, and
//! those that came more often than their contract says and were thrown away. Arguments if no flow
//! says them: most bytes of a message, and pieces of memory for messages of each link (0: 4).

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod boxes;

use boxes::{Letter, PostBox, RouterBoxes, Taken, opened};
use diapason_abi::settings::Settings;
use diapason_contract::mail::MAILBOXES_MAX;
use diapason_contract::routes::{
    Gate, LinkRoute, MEMORY, PIECES, ROUTES, ROUTES_MAX, RouterMemory,
};
use diapason_frame::{Continuity, HEAD, Head, Numbering, SequenceTracker};
use diapason_links::{REPORT, meter};
use diapason_pipe::hold::{FlowHold, Judgement};
use diapason_pipe::intake::{Intake, MessageSource};
use diapason_rt::sync::Semaphore;
use diapason_rt::thread::spawn;
use diapason_rt::{Arguments, Errno, Nanos, body, entry, log, settings, time};
use diapason_usblib::link::{DONE, Done, FILL, LINKS, Link, MESSAGE_MAX, READY, UNIT};

entry!(main);
body!(Ear = boxes::hear);

/// Pieces of memory for messages of each link, if nothing says, and the most of two links.
const EACH: u64 = 4;
const EACH_MAX: u64 = PIECES as u64 / 2;
/// The priority of the thread that hears.
const LOW: u8 = 1;

/// Pieces of memory with messages of a link that came and have not gone on, in their order.
struct Queue {
    all: [u8; PIECES],
    first: usize,
    count: usize,
}

impl Queue {
    const EMPTY: Queue = Queue { all: [0; PIECES], first: 0, count: 0 };

    /// There is room: each piece of memory is in one place at a time.
    fn push(&mut self, piece: usize) {
        self.all[(self.first + self.count) % PIECES] = piece as u8;
        self.count = (self.count + 1).min(PIECES);
    }
}

impl MessageSource for Queue {
    /// A piece of memory.
    type Message = usize;

    fn pop(&mut self) -> Option<usize> {
        self.count = self.count.checked_sub(1)?;
        let piece = self.all[self.first];
        self.first = (self.first + 1) % PIECES;
        Some(piece.into())
    }
}

/// A flow's way from a link or mailbox to another.
struct Way {
    from: Gate,
    label: u8,
    to: Gate,
    passage: FlowHold,
    /// Messages that may be on their way out at once; 0: any number.
    most: u8,
    under_way: u8,
    /// The numbers of messages out of a mailbox, and of those that go into one.
    numbering: Numbering,
    order: SequenceTracker,
    tally: Tally,
}

#[derive(Default)]
struct Tally {
    /// Messages that a link has taken, or that found room in a mailbox.
    gone: u64,
    /// Messages that a link gave back or that found no room.
    dropped: u64,
    held: u64,
    /// Messages that came more often than they may.
    thrown: u64,
    /// Numbers that were missing, and messages that came twice.
    lost: u64,
    again: u64,
}

/// The use of a piece of memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Home {
    Nowhere,
    /// The link has it for messages that come.
    Link(u8),
    /// It is for a message out of a mailbox.
    Free,
    Posted,
}

struct Router {
    links: [Option<Link>; LINKS],
    ways: [Option<Way>; ROUTES_MAX],
    queues: Intake<Queue, LINKS>,
    mailboxes: RouterBoxes,
    posts: Intake<PostBox, MAILBOXES_MAX>,
    bytes: u32,
    /// Bytes of each piece of memory.
    piece: usize,
    homes: [Home; PIECES],
    /// The number of the way of the message in each piece of memory, and its bytes.
    taken: [(u8, u32); PIECES],
    /// Pieces that each link has for messages that come.
    lent: [usize; LINKS],
    /// The links of which something was asked in this turn.
    asked: [bool; LINKS],
}

fn main(Arguments([bytes, each, ..]): Arguments) {
    let each = if each == 0 { EACH } else { each.min(EACH_MAX) } as u8;
    let bytes = bytes.clamp(1, MESSAGE_MAX as u64) as u32;
    let alone = RouterMemory { bytes, own: 0, slots: [each, each, 0, 0] };
    if let Err(errno) = run(&settings::read(), alone) {
        log!("router: {errno:?}");
    }
}

fn run(told: &Settings, alone: RouterMemory) -> Result<(), Errno> {
    let mut router = Router::EMPTY;
    router.open(told, alone)?;
    if boxes::posts_of(told).next().is_some() {
        spawn::<Ear>("ear", LOW, 0)?;
    }
    let ready = Semaphore::open(READY)?;
    let mut report_at = time::now() + REPORT;
    loop {
        let due = [router.queues.due(), router.posts.due()].into_iter().flatten();
        match ready.take(due.fold(report_at, Nanos::min)) {
            Ok(()) | Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
        while router.turn()? {}
        if time::now() >= report_at {
            report_at += REPORT;
            router.report();
        }
    }
}

impl Router {
    const EMPTY: Router = Router {
        links: [const { None }; LINKS],
        ways: [const { None }; ROUTES_MAX],
        queues: Intake::empty(),
        mailboxes: [const { None }; MAILBOXES_MAX],
        posts: Intake::empty(),
        bytes: 0,
        piece: MESSAGE_MAX,
        homes: [Home::Nowhere; PIECES],
        taken: [(0, 0); PIECES],
        lent: [0; LINKS],
        asked: [false; LINKS],
    };

    fn open(&mut self, told: &Settings, alone: RouterMemory) -> Result<(), Errno> {
        let join = |from, to| LinkRoute { from, label: 0, to, contract: None, most: 0 };
        let [first, second] = [0, 1].map(Gate::Link);
        let joined = [join(first, second), join(second, first)].map(|it| it.words());
        let (table, memory) = match told.first(MEMORY) {
            Some(word) => (told.get(ROUTES), RouterMemory::of(word)),
            None => (joined.as_flattened(), alone),
        };
        boxes::open(told, &mut self.mailboxes, &mut self.posts)?;
        (self.bytes, self.piece) = (memory.bytes.next_multiple_of(UNIT as u32), memory.piece());
        for (place, route) in self.ways.iter_mut().zip(LinkRoute::all(table)) {
            for gate in [route.from, route.to] {
                if let Gate::Link(link) = gate
                    && self.links[link].is_none()
                {
                    self.links[link] = Some(Link::open(link)?);
                    self.queues.put(link, Queue::EMPTY);
                }
            }
            *place = Some(Way::new(&route));
        }
        let slots = (0_u8..).zip(memory.slots);
        let slots = slots.flat_map(|(link, slots)| (0..slots).map(move |_| Home::Link(link)));
        let homes = slots.chain((0..memory.own).map(|_| Home::Free));
        for (piece, home) in (0..PIECES).zip(homes) {
            self.homes[piece] = home;
            if home != Home::Free {
                self.fill(piece)?;
            }
        }
        self.links.iter().flatten().for_each(Link::ring);
        Ok(())
    }

    /// Lends a piece of memory to its link again, or keeps it for a message out of a mailbox.
    fn fill(&mut self, piece: usize) -> Result<(), Errno> {
        let home = match self.homes.get_mut(piece) {
            Some(Home::Link(home)) => usize::from(*home),
            Some(it @ Home::Posted) => {
                *it = Home::Free;
                return Ok(());
            }
            _ => return Ok(()),
        };
        let Some(link) = &mut self.links[home] else { return Ok(()) };
        link.fill(link.place_of(piece as u32, self.piece), self.bytes)?;
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
        while let Some((piece, is_thrown)) = self.next(now) {
            any = true;
            self.pass(piece, is_thrown)?;
        }
        while let Some((number, letter)) = self.letter(now) {
            any = true;
            self.post(number, &letter?)?;
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
        let first = self.links.iter().flatten().next().map(|link| link.place_of(0, self.piece));
        let Some(first) = first else { return Ok(()) };
        let piece = done.place.saturating_sub(first) as usize * UNIT / self.piece;
        let Some(home) = self.homes.get(piece).copied() else { return Ok(()) };
        if done.what == FILL {
            let Home::Link(home) = home else { return Ok(()) };
            let home = usize::from(home);
            self.lent[home] = self.lent[home].saturating_sub(1);
            let bytes = if done.status == DONE { done.bytes } else { 0 };
            let way = self.way(home, done.place, bytes);
            // One without content waits as others do: it took memory, too.
            self.taken[piece] = (way as u8, bytes);
            self.queues.source(home).into_iter().for_each(|it| it.push(piece));
            return Ok(());
        }
        if let Some(Some(way)) = self.ways.get_mut(usize::from(self.taken[piece].0)) {
            way.under_way = way.under_way.saturating_sub(1);
            match done.status {
                DONE => way.tally.gone += 1,
                _ => way.tally.dropped += 1,
            }
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
            let is_from = |it: &Way| it.from == Gate::Link(home);
            way.as_ref().is_some_and(|it| is_from(it) && (it.label == label || !labelled))
        };
        let first = |labelled| self.ways.iter().position(|way| is_its(way, labelled));
        first(true).or_else(|| first(false)).unwrap_or(ROUTES_MAX)
    }

    /// Returns the piece of the next message that leaves its queue, and whether it is thrown away.
    fn next(&mut self, now: Nanos) -> Option<(usize, bool)> {
        let Router { queues, ways, taken, .. } = self;
        let mut is_thrown = false;
        let one = queues.take(now, |_, piece| {
            let way = taken.get(*piece).and_then(|(way, _)| ways.get_mut(usize::from(*way)));
            let Some(Some(way)) = way else { return now };
            match way.passage.judge(now) {
                Judgement::Passes => now,
                Judgement::IsThrown => {
                    is_thrown = true;
                    now
                }
                Judgement::Waits(opens) => opens,
            }
        })?;
        let (number, _) = *taken.get(one.message)?;
        if let Some(Some(way)) = ways.get_mut(usize::from(number)) {
            way.tally.held += u64::from(one.held.is_some());
            match is_thrown {
                true => way.tally.thrown += 1,
                false => way.passage.passed(now),
            }
        }
        Some((one.message, is_thrown))
    }

    /// Passes a message on that came by a link, or throws it away.
    fn pass(&mut self, piece: usize, is_thrown: bool) -> Result<(), Errno> {
        let (way, bytes) = self.taken[piece];
        let to = self.ways.get(usize::from(way)).and_then(Option::as_ref).map(|way| way.to);
        match to {
            Some(Gate::Mailbox(mailbox)) if bytes > 0 => {
                self.deliver(piece, mailbox, is_thrown);
                self.fill(piece)
            }
            Some(Gate::Link(link)) if bytes > 0 && !is_thrown => self.send(piece, link),
            _ => self.fill(piece),
        }
    }

    /// Gives a message to the link of its way. If its own link has no memory left, the router wants
    /// to hear when the message has gone. A message is thrown away while as many of its flow are on
    /// their way out as ever should be: the other side takes none.
    fn send(&mut self, piece: usize, to: usize) -> Result<(), Errno> {
        let (number, bytes) = self.taken[piece];
        let way = self.ways[usize::from(number)].as_mut();
        let (Some(way), Some(link)) = (way, &mut self.links[to]) else { return self.fill(piece) };
        if way.is_full() {
            way.tally.thrown += 1;
            return self.fill(piece);
        }
        let place = link.place_of(piece as u32, self.piece);
        let is_last = match self.homes[piece] {
            Home::Link(home) => self.lent[usize::from(home)] == 0,
            _ => false,
        };
        match is_last {
            true => link.send(place, bytes)?,
            false => link.send_quietly(place, bytes)?,
        }
        way.under_way = way.under_way.saturating_add(1);
        self.asked[to] = true;
        Ok(())
    }

    /// Puts a message into the mailbox of its way, if it is whole and did not come twice. One that
    /// is thrown away is counted.
    fn deliver(&mut self, piece: usize, mailbox: usize, is_thrown: bool) {
        let (number, bytes) = self.taken[piece];
        let Some(way) = self.ways[usize::from(number)].as_mut() else { return };
        let (Gate::Link(link), Some(mailbox)) = (way.from, &self.mailboxes[mailbox]) else {
            return;
        };
        let Some(link) = &self.links[link] else { return };
        let place = link.place_of(piece as u32, self.piece);
        // Nobody knows whose a damaged message was: its number is missing later.
        let Some((head, envelope)) = opened(link, place, bytes) else { return };
        match way.order.arrived(head) {
            Continuity::Lost(count) => way.tally.lost += u64::from(count),
            Continuity::Again => {
                way.tally.again += 1;
                return;
            }
            Continuity::Next | Continuity::Begun => {}
        }
        match is_thrown {
            true => {}
            false if mailbox.put(link, place, envelope) => way.tally.gone += 1,
            false => way.tally.dropped += 1,
        }
    }

    /// Takes the next message that leaves a mailbox, with the number of its way.
    fn letter(&mut self, now: Nanos) -> Option<(usize, Taken)> {
        let Router { posts, ways, .. } = self;
        let way = |ways: &[Option<Way>], mailbox: usize| {
            let is_its = |way: &Option<Way>| {
                way.as_ref().is_some_and(|it| it.from == Gate::Mailbox(mailbox))
            };
            ways.iter().position(is_its)
        };
        let one = posts.take(now, |mailbox, _| {
            let way = way(ways, mailbox).and_then(|number| ways[number].as_ref());
            way.map_or(now, |way| way.passage.opens())
        })?;
        let number = way(ways, one.writer)?;
        if let Some(way) = &mut ways[number] {
            way.tally.held += u64::from(one.held.is_some());
            way.passage.passed(now);
        }
        Some((number, one.message))
    }

    /// Gives a message of a mailbox to the link of its way.
    fn post(&mut self, number: usize, letter: &Letter) -> Result<(), Errno> {
        let Some(way) = &mut self.ways[number] else { return Ok(()) };
        let head = way.numbering.head((letter.bytes() - HEAD) as u16);
        let piece = self.homes.iter().position(|home| *home == Home::Free);
        let (Gate::Link(to), Some(piece), false) = (way.to, piece, way.is_full()) else {
            way.tally.dropped += 1;
            return Ok(());
        };
        let Some(link) = &mut self.links[to] else { return Ok(()) };
        let place = link.place_of(piece as u32, self.piece);
        let head = Head { label: way.label, ..head };
        letter.write(link, place, u32::from(way.label).saturating_sub(1), head);
        link.send_quietly(place, letter.bytes() as u32)?;
        way.under_way = way.under_way.saturating_add(1);
        self.homes[piece] = Home::Posted;
        self.taken[piece] = (number as u8, letter.bytes() as u32);
        self.asked[to] = true;
        Ok(())
    }

    fn report(&self) {
        let ways = || self.ways.iter().flatten();
        let name =
            |mailbox: usize| self.mailboxes[mailbox].as_ref().map_or("", |it| it.name.name());
        let passes = |way: &&Way| matches!((way.from, way.to), (Gate::Link(_), Gate::Link(_)));
        if ways().any(|way| passes(&way)) {
            let [gone, dropped, held, thrown] = ways().filter(passes).fold(
                [0; 4],
                |[gone, dropped, held, thrown], Way { tally, .. }| {
                    let Tally { gone: a, dropped: b, held: c, thrown: d, .. } = tally;
                    [gone + a, dropped + b, held + c, thrown + d]
                },
            );
            log!("ROUTED {gone} {dropped} {held} {thrown}");
        }
        for Way { from, to, tally, under_way, .. } in ways() {
            let Tally { gone, dropped, held, thrown, lost, again } = tally;
            match (from, to) {
                (Gate::Mailbox(mailbox), _) => {
                    let posted = gone + u64::from(*under_way);
                    log!("POSTED {} {posted} {dropped} {held}", name(*mailbox));
                }
                (_, Gate::Mailbox(mailbox)) => {
                    let name = name(*mailbox);
                    log!("DELIVERED {name} {gone} {dropped} {lost} {again} {thrown}");
                }
                _ => {}
            }
        }
    }
}

impl Way {
    fn new(route: &LinkRoute) -> Way {
        let LinkRoute { from, label, to, contract, most } = *route;
        Way {
            from,
            label,
            to,
            passage: FlowHold::new(meter(contract)),
            most,
            under_way: 0,
            numbering: Numbering::default(),
            order: SequenceTracker::default(),
            tally: Tally::default(),
        }
    }

    /// Returns whether as many messages are on their way out as ever should be.
    const fn is_full(&self) -> bool {
        self.most != 0 && self.under_way >= self.most
    }
}
