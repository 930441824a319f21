//! Carries messages of mailboxes over links: the protocol server of a host. It takes them out of
//! mailboxes and gives them to links, and it takes them from links and puts them into mailboxes.
//!
//! Programs send and receive by the calls of a mailbox, and know nothing of other hosts. The
//! flows of the list of hosts say which mailbox goes by which link. No call on behalf of a message
//! waits: one that finds no room is dropped and counted, and the others go on. So neither
//! a full mailbox nor a cable that is lost holds up what goes elsewhere.
//!
//! A second thread hears that something came to a mailbox, and gives the semaphore of the links.
//! The first thread does all the work.
//!
//! It holds each sender to the contract of its flow: a message that comes too early waits here, and
//! those behind it wait in their mailbox. So no sender takes what the plan gave to another.
//!
//! Once a second it says of each mailbox whose messages it takes `POSTED mailbox posted dropped
//! held`: messages that a link has taken, those that found no room or that the link gave back, and
//! those that came too early. Of each flow to a mailbox it says
//! `DELIVERED mailbox delivered full lost thrown early`: messages that found the mailbox full,
//! numbers that were missing, messages that came twice, and those that it threw away. Where
//! a mailbox has several senders, it throws away messages of a flow that come more often than
//! its contract says: a cable that was lost had kept them.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_abi::MESSAGE_BYTES;
use diapason_abi::settings::Settings;
use diapason_contract::carried::Contracts;
use diapason_contract::mail::{
    ARRIVALS, BEFORE, CONTRACTS, DELIVERS, EACH_MAX, MailHead, MailRoute, PIECES, POSTS, SLOTS,
};
use diapason_contract::pieces::{MailPiece, Pieces};
use diapason_frame::{Continuity, HEAD, Head, Numbering, SequenceTracker};
use diapason_links::{REPORT, meter};
use diapason_pipe::intake::{Intake, MessageSource};
use diapason_pipe::meter::Meter;
use diapason_rt::event::Event;
use diapason_rt::mailbox::Mailbox;
use diapason_rt::sync::Semaphore;
use diapason_rt::thread::spawn;
use diapason_rt::{Arguments, Errno, Nanos, body, entry, log, settings, time};
use diapason_usblib::link::{DONE, Done, FILL, LINKS, Link, READY, UNIT, label_of};

entry!(main);
body!(Ear = hear);

/// The priority of the thread that hears.
const LOW: u8 = 1;
/// Transfers of a link that are looked at in one turn: all that can have ended when it begins.
const TURN: usize = PIECES;

/// A mailbox whose messages go to a link.
struct Post {
    to: MailRoute,
    /// The contract of its sender.
    meter: Meter,
    numbering: Numbering,
    posted: u64,
    dropped: u64,
    held: u64,
}

/// A mailbox that messages are taken out of without waiting.
struct PostBox(Mailbox);

/// A message of a mailbox, or why there is none.
type Taken = Result<Letter, Errno>;

struct Letter {
    bytes: [u8; MESSAGE_BYTES],
    length: usize,
    priority: u32,
}

impl MessageSource for PostBox {
    type Message = Taken;

    fn pop(&mut self) -> Option<Taken> {
        let mut bytes = [0; MESSAGE_BYTES];
        match self.0.receive_into(&mut bytes, Nanos::ZERO) {
            Ok((length, priority)) => Some(Ok(Letter { bytes, length, priority })),
            Err(Errno::WouldBlock) => None,
            Err(errno) => Some(Err(errno)),
        }
    }
}

/// A mailbox that takes messages from a link.
struct Delivery {
    from: MailRoute,
    mailbox: Mailbox,
    order: SequenceTracker,
    /// The contract of its flow, if other flows lead to the mailbox.
    meter: Meter,
    delivered: u64,
    full: u64,
    lost: u64,
    thrown: u64,
    early: u64,
}

struct Server {
    links: [Option<Link>; LINKS],
    pieces: Pieces,
    posts: [Option<Post>; EACH_MAX],
    /// Their mailboxes, by the same numbers.
    boxes: Intake<PostBox, EACH_MAX>,
    deliveries: [Option<Delivery>; EACH_MAX],
}

fn main(_: Arguments) {
    if let Err(errno) = run(&settings::read()) {
        log!("mail: {errno:?}");
    }
}

/// Gives the semaphore of the links each time that something comes to a mailbox.
fn hear(_: u64) -> u64 {
    let heard = || -> Result<(), Errno> {
        let (event, ready) = (Event::new()?, Semaphore::open(READY)?);
        for post in MailRoute::all(settings::read().get(POSTS)) {
            Mailbox::of_with(post.mailbox, &event)?;
        }
        loop {
            // At its limit it has been given often enough.
            let _ = ready.give();
            event.wait(Nanos::FOREVER)?;
        }
    };
    heard().map_or_else(|errno| errno as u64, |()| 0)
}

fn run(told: &Settings) -> Result<(), Errno> {
    let mut server = Server::open(told)?;
    if told.get(POSTS).is_empty() && told.get(DELIVERS).is_empty() {
        log!("mail: no `[[flow]]` of a list of hosts says what it carries");
    }
    if !told.get(POSTS).is_empty() {
        spawn::<Ear>("ear", LOW, 0)?;
    }
    let ready = Semaphore::open(READY)?;
    let mut report_at = time::now() + REPORT;
    loop {
        match ready.take(server.boxes.due().unwrap_or(report_at).min(report_at)) {
            Ok(()) | Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
        // Some of each in turn, so that none waits for all that another sends.
        while server.turn()? {}
        if time::now() >= report_at {
            report_at += REPORT;
            server.report();
        }
    }
}

impl Server {
    fn open(told: &Settings) -> Result<Server, Errno> {
        let mut server = Server {
            links: [const { None }; LINKS],
            pieces: Pieces::of(&[]),
            posts: [const { None }; EACH_MAX],
            boxes: Intake::new([const { None }; EACH_MAX]),
            deliveries: [const { None }; EACH_MAX],
        };
        let mut boxes = [const { None }; EACH_MAX];
        let contracts = Contracts::of(told.get(CONTRACTS)).0;
        let places = server.posts.iter_mut().zip(&mut boxes).zip(contracts);
        for (((place, source), contract), to) in places.zip(MailRoute::all(told.get(POSTS))) {
            let meter = meter(contract);
            let numbering = Numbering::default();
            *place = Some(Post { to, meter, numbering, posted: 0, dropped: 0, held: 0 });
            *source = Some(PostBox(Mailbox::of(to.mailbox)?));
        }
        server.boxes = Intake::new(boxes);
        let arrivals = Contracts::of(told.get(ARRIVALS)).0;
        let places = server.deliveries.iter_mut().zip(arrivals);
        for ((place, contract), from) in places.zip(MailRoute::all(told.get(DELIVERS))) {
            *place = Some(Delivery {
                from,
                mailbox: Mailbox::of(from.mailbox)?,
                order: SequenceTracker::default(),
                meter: meter(contract),
                delivered: 0,
                full: 0,
                lost: 0,
                thrown: 0,
                early: 0,
            });
        }
        let mut uses = [(0, false); LINKS];
        let slots = told.get(SLOTS).first().copied().unwrap_or(0).to_le_bytes();
        for ((link, it), slots) in uses.iter_mut().enumerate().zip(slots) {
            *it = (slots.into(), server.sends_by(link));
            if *it != (0, false) {
                server.links[link] = Some(Link::open(link)?);
            }
        }
        server.pieces = Pieces::of(&uses);
        for piece in 0..PIECES {
            if let MailPiece::Lent(link) = server.pieces.get(piece) {
                server.fill(piece, link)?;
            }
        }
        server.links.iter().flatten().for_each(Link::ring);
        Ok(server)
    }

    fn sends_by(&self, link: usize) -> bool {
        self.posts.iter().flatten().any(|post| post.to.link == link)
    }

    /// Lends a piece to its link.
    fn fill(&mut self, piece: usize, link: usize) -> Result<(), Errno> {
        match self.links.get_mut(link) {
            Some(Some(link)) => link.fill(piece as u32, UNIT as u32),
            _ => Ok(()),
        }
    }

    /// Takes transfers of each link that have ended and one message of a mailbox. Returns whether
    /// there was any.
    fn turn(&mut self) -> Result<bool, Errno> {
        let mut any = false;
        for link in 0..LINKS {
            for _ in 0..TURN {
                let Some(done) = self.links[link].as_mut().and_then(Link::pop) else { break };
                any = true;
                self.ended(link, &done)?;
            }
        }
        let Server { boxes, posts, .. } = self;
        let opens = |number: usize, _: &Taken| {
            posts[number].as_ref().map_or(Nanos::ZERO, |post| post.meter.opens())
        };
        if let Some(one) = boxes.take(time::now(), opens) {
            any = true;
            self.post(one.writer, &one.message?, one.held.is_some());
        }
        Ok(any)
    }

    /// Delivers a message that came, and lends its memory again; or notes that one has gone.
    fn ended(&mut self, link: usize, done: &Done) -> Result<(), Errno> {
        let piece = done.place as usize;
        match self.pieces.get(piece) {
            MailPiece::Lent(home) if home == link => {
                if (done.what, done.status) == (FILL, DONE) {
                    self.deliver(link, done);
                }
                self.fill(piece, link)?;
                self.links[link].iter().for_each(Link::ring);
            }
            MailPiece::Given(number) => {
                if let (false, Some(Some(post))) = (done.status == DONE, self.posts.get_mut(number))
                {
                    (post.posted, post.dropped) = (post.posted - 1, post.dropped + 1);
                }
                self.pieces.set(piece, MailPiece::Free(link));
            }
            _ => {}
        }
        Ok(())
    }

    fn deliver(&mut self, link: usize, done: &Done) {
        let Some(by) = &self.links[link] else { return };
        let at = done.place as usize * UNIT;
        let head = time::work("link.check", || by.check(done.place, done.bytes));
        let words = [HEAD, HEAD + 4].map(|word| by.data.read32(at + word));
        let opened = head.and_then(|head| Some((head, MailHead::of(words, head.bytes)?)));
        let Some((head, (envelope, length))) = opened else {
            // Nobody knows whose it was: its number is missing there.
            return;
        };
        let is_it = |it: &&mut Delivery| (it.from.flow, it.from.link) == (envelope.flow, link);
        let Some(delivery) = self.deliveries.iter_mut().flatten().find(is_it) else { return };
        match delivery.order.arrived(head) {
            Continuity::Lost(count) => delivery.lost += u64::from(count),
            Continuity::Again => {
                delivery.thrown += 1;
                return;
            }
            Continuity::Next | Continuity::Begun => {}
        }
        if !delivery.meter.admits(time::now()) {
            delivery.early += 1;
            return;
        }
        let mut bytes = [0; MESSAGE_BYTES];
        for (offset, word) in bytes.as_chunks_mut().0.iter_mut().enumerate() {
            *word = by.data.read32(at + BEFORE + 4 * offset).to_le_bytes();
        }
        let message = bytes.get(..length).unwrap_or(&bytes);
        match delivery.mailbox.send(message, envelope.priority, Nanos::ZERO) {
            Ok(()) => delivery.delivered += 1,
            Err(_) => delivery.full += 1,
        }
    }

    /// Gives a message of a mailbox to its link.
    fn post(&mut self, number: usize, letter: &Letter, was_held: bool) {
        let Some(post) = &mut self.posts[number] else { return };
        let Letter { bytes, length, priority } = letter;
        // The message came by now, so the next may come a period later at the earliest.
        let _ = post.meter.admits(time::now());
        post.held += u64::from(was_held);
        let head = post.numbering.head((BEFORE - HEAD + *length) as u16);
        let head = Head { label: label_of(post.to.flow as usize), ..head };
        let free = self.pieces.free(post.to.link);
        let link = self.links.get_mut(post.to.link).and_then(Option::as_mut);
        let (Some(piece), Some(link)) = (free, link) else {
            post.dropped += 1;
            return;
        };
        let at = piece * UNIT;
        let words = MailHead { flow: post.to.flow, priority: *priority }.words();
        let envelope = words
            .into_iter()
            .chain(bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)));
        for (offset, word) in envelope.enumerate() {
            link.data.write32(at + HEAD + 4 * offset, word);
        }
        time::work("link.seal", || link.seal(piece as u32, head));
        match link.send_quietly(piece as u32, (BEFORE + *length) as u32) {
            Ok(()) => {
                self.pieces.set(piece, MailPiece::Given(number));
                post.posted += 1;
                link.ring();
            }
            Err(_) => post.dropped += 1,
        }
    }

    fn report(&self) {
        for Post { to, posted, dropped, held, .. } in self.posts.iter().flatten() {
            log!("POSTED {} {posted} {dropped} {held}", to.name());
        }
        for it in self.deliveries.iter().flatten() {
            let Delivery { from, delivered, full, lost, thrown, early, .. } = it;
            log!("DELIVERED {} {delivered} {full} {lost} {thrown} {early}", from.name());
        }
    }
}
