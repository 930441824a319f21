//! Changes of the mode of operation. The server first stops the streams that end. It starts those
//! that begin when all that ended have given their parts of the bus back, so the bus never carries
//! more than one of the two modes.
//!
//! The server writes what a stream is to have, and the stream writes what it has: an [`Order`]. A
//! camera that comes or goes in the middle of a change therefore changes nothing but its own
//! stream. The bus schedule admits every stream by itself besides.

use crate::platform::Platform;
use crate::policy::{MANAGED, PATIENCE};
use crate::told::ServerSettings;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use diapason_abi::{Errno, Nanos};
use diapason_contract::mode::{
    ANSWERS, ASKS, BUSY, DONE, ModeAnswer, ModeAsk, NO_MODE, RECORDS, WITHOUT, bytes,
};
use diapason_pipe::{Reader, Writer};

/// The part of the bus that a stream is to have, and the part that it has. Clones of an order are
/// the same order.
#[derive(Clone, Default)]
pub(crate) struct Order(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Bytes of an interval that the stream is to have; 0 stops it.
    wanted: AtomicU32,
    /// Bytes that its camera may have reserved.
    held: AtomicU32,
    /// Bytes of the stream whose first interval has come, and when it came.
    running: AtomicU32,
    since: AtomicU64,
    /// A camera is there and has not failed.
    works: AtomicBool,
    /// The last camera failed, and is asked again after a while.
    failed: AtomicBool,
}

impl Order {
    /// Returns the bytes that the stream is to have.
    pub fn wanted(&self) -> u32 {
        self.0.wanted.load(Ordering::Acquire)
    }

    fn want(&self, bytes: u32) {
        self.0.wanted.store(bytes, Ordering::Release);
    }

    /// A camera is there, and may have any of its settings.
    pub fn comes(&self) {
        self.0.held.store(u32::MAX, Ordering::Release);
        self.0.running.store(0, Ordering::Release);
        self.0.failed.store(false, Ordering::Release);
        self.0.works.store(true, Ordering::Release);
    }

    /// The camera reserves so many bytes next; 0: it has stopped.
    pub fn hold(&self, bytes: u32) {
        self.0.running.store(0, Ordering::Release);
        self.0.held.store(bytes, Ordering::Release);
    }

    /// The first interval came of a stream with so many bytes.
    pub fn runs(&self, bytes: u32, now: Nanos) {
        self.0.since.store(now.0, Ordering::Release);
        self.0.running.store(bytes, Ordering::Release);
    }

    /// The camera failed. It may still hold what it held.
    pub fn fails(&self) {
        self.0.failed.store(true, Ordering::Release);
    }

    /// The camera is gone, or of no use for a while.
    pub fn leaves(&self) {
        self.0.works.store(false, Ordering::Release);
        self.hold(0);
    }

    fn is_stopped(&self) -> bool {
        self.0.held.load(Ordering::Acquire) == 0
    }

    /// Returns whether nothing more is to be awaited: it runs, or there is no camera that could.
    fn is_settled(&self) -> bool {
        let (wanted, there) = (self.wanted(), self.0.works.load(Ordering::Acquire));
        !there || wanted == 0 || self.0.running.load(Ordering::Acquire) == wanted
    }

    /// Returns when the stream that is wanted began, if it runs.
    fn since(&self) -> Option<u64> {
        let runs = self.wanted() > 0 && self.0.running.load(Ordering::Acquire) == self.wanted();
        runs.then(|| self.0.since.load(Ordering::Acquire))
    }

    fn has_failed(&self) -> bool {
        self.wanted() > 0 && self.0.failed.load(Ordering::Acquire)
    }
}

/// A change under way.
#[derive(Clone, Copy)]
struct Change {
    ask: ModeAsk,
    /// The streams that end or begin, one bit each.
    changed: u8,
    taken: Nanos,
    /// When what ends had ended, and until when what begins is awaited.
    starts: Option<Nanos>,
}

/// The modes, the one that runs, and the program that asks for others.
pub(crate) struct Modes {
    asks: Reader<'static, ModeAsk, RECORDS>,
    answers: Writer<'static, ModeAnswer, RECORDS>,
    words: Vec<u64>,
    orders: Vec<Order>,
    change: Option<Change>,
    rest: Nanos,
    rest_until: Nanos,
    refused: u32,
    look_at: Nanos,
}

impl Modes {
    /// Returns the modes of the description, the first one running; `None` if it has none.
    ///
    /// # Errors
    /// A pipe is not there.
    pub fn of<P: Platform>(platform: &P, told: &ServerSettings) -> Result<Option<Modes>, Errno> {
        let Some(first) = told.modes.first() else { return Ok(None) };
        let orders: Vec<Order> = told.streams.iter().filter_map(|it| it.order.clone()).collect();
        for (stream, order) in orders.iter().enumerate() {
            order.want(bytes(*first, stream));
        }
        Ok(Some(Modes {
            asks: platform.reader(ASKS)?,
            answers: platform.writer(ANSWERS)?,
            words: told.modes.clone(),
            orders,
            change: None,
            rest: told.rest,
            rest_until: Nanos::ZERO,
            refused: 0,
            look_at: Nanos::FOREVER,
        }))
    }

    /// Returns when the change under way is looked at again.
    pub fn next_wake(&self) -> Nanos {
        self.look_at
    }

    /// Takes asks, and does the next step of the change under way.
    pub fn attend(&mut self, now: Nanos) {
        // A program that asks without a pause does not keep the server from its other work.
        for _ in 0..RECORDS {
            let Some(ask) = self.asks.pop() else { break };
            match self.words.get(ask.mode as usize) {
                None => self.refuse(ask, NO_MODE, now),
                Some(_) if self.change.is_some() || now < self.rest_until => {
                    self.refuse(ask, BUSY, now);
                }
                Some(word) => self.change = Some(self.begin(ask, *word, now)),
            }
        }
        if let Some(change) = self.change {
            self.go_on(change, now);
        }
        self.look_at = if self.change.is_some() { now + MANAGED } else { Nanos::FOREVER };
    }

    fn refuse(&mut self, ask: ModeAsk, answer: u32, now: Nanos) {
        self.refused = self.refused.saturating_add(1);
        self.answer(ask, answer, (now, now));
    }

    fn answer(&mut self, ask: ModeAsk, answer: u32, (taken, begun): (Nanos, Nanos)) {
        let ModeAsk { mode, number } = ask;
        let (taken, begun, refused) = (taken.0, begun.0, self.refused);
        // A program that does not read its answers gets no more of them.
        let _ = self.answers.push(&ModeAnswer { mode, number, answer, refused, taken, begun });
    }

    /// Begins the change to the mode with this word: its first step stops streams.
    fn begin(&self, ask: ModeAsk, word: u64, taken: Nanos) -> Change {
        let mut changed = 0;
        for (stream, order) in self.orders.iter().enumerate() {
            if bytes(word, stream) != order.wanted() {
                changed |= 1 << stream;
                order.want(0);
            }
        }
        Change { ask, changed, taken, starts: None }
    }

    fn go_on(&mut self, mut change: Change, now: Nanos) {
        let word = self.words[change.ask.mode as usize];
        let changed = |(stream, _): &(usize, &Order)| change.changed >> stream & 1 != 0;
        if change.starts.is_none() {
            if !self.orders.iter().enumerate().filter(changed).all(|(_, it)| it.is_stopped()) {
                return;
            }
            for (stream, order) in self.orders.iter().enumerate().filter(changed) {
                order.want(bytes(word, stream));
            }
            change.starts = Some(now + PATIENCE);
            self.change = Some(change);
        }
        let mut all = self.orders.iter().enumerate().filter(changed).map(|(_, order)| order);
        let settled = all.clone().all(Order::is_settled);
        if !settled && change.starts.is_some_and(|until| now < until) {
            return;
        }
        let begun = all.clone().filter_map(Order::since).max().map_or(change.taken, Nanos);
        let whole = settled && !all.any(Order::has_failed);
        let answer = if whole { DONE } else { WITHOUT };
        self.change = None;
        self.rest_until = now + self.rest;
        self.answer(change.ask, answer, (change.taken, begun));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::boxed::Box;
    use diapason_pipe::Ring;

    const REST: Nanos = Nanos::from_millis(20);

    /// Modes in which either of two streams runs; the program's ends; the orders of the streams.
    struct Rig {
        modes: Modes,
        asks: Writer<'static, ModeAsk, RECORDS>,
        answers: Reader<'static, ModeAnswer, RECORDS>,
        orders: [Order; 2],
        now: Nanos,
    }

    impl Rig {
        fn new() -> Rig {
            let (asks, heard) = Box::leak(Box::new(Ring::new())).split();
            let (told, answers) = Box::leak(Box::new(Ring::new())).split();
            let orders = [Order::default(), Order::default()];
            orders[0].want(900);
            let modes = Modes {
                asks: heard,
                answers: told,
                words: [900, 900 << 16].into(),
                orders: orders.to_vec(),
                change: None,
                rest: REST,
                rest_until: Nanos::ZERO,
                refused: 0,
                look_at: Nanos::FOREVER,
            };
            orders.iter().for_each(Order::comes);
            orders[0].hold(900);
            orders[0].runs(900, Nanos(1));
            orders[1].hold(0);
            Rig { modes, asks, answers, orders, now: Nanos::from_millis(1) }
        }

        fn ask(&mut self, mode: u32) {
            self.asks.push(&ModeAsk { mode, number: 7 }).unwrap();
        }

        /// Lets so much time pass; returns what both streams are to have.
        fn pass(&mut self, time: Nanos) -> [u32; 2] {
            self.now += time;
            self.modes.attend(self.now);
            self.orders.each_ref().map(Order::wanted)
        }

        fn answer(&mut self) -> Option<(u32, u64)> {
            let answer = self.answers.pop()?;
            Some((answer.answer, answer.begun - answer.taken))
        }
    }

    #[test]
    fn nothing_begins_before_everything_that_ends_has_ended() {
        let mut rig = Rig::new();
        rig.ask(1);
        assert_eq!(rig.pass(MANAGED), [0, 0]);
        assert_eq!(rig.pass(Nanos::from_secs(9)), [0, 0], "the camera does not stop");
        assert_eq!((rig.answer(), rig.modes.next_wake()), (None, rig.now + MANAGED));
        rig.orders[0].hold(0);
        assert_eq!(rig.pass(MANAGED), [0, 900]);
        rig.orders[1].hold(900);
        assert_eq!((rig.pass(MANAGED), rig.answer()), ([0, 900], None), "nothing came of it");
        let begun = rig.now + Nanos(5);
        rig.orders[1].runs(900, begun);
        rig.pass(MANAGED);
        let time = Nanos::from_secs(9).0 + 2 * MANAGED.0 + 5;
        assert_eq!(rig.answer(), Some((DONE, time)));
        assert_eq!(rig.modes.next_wake(), Nanos::FOREVER);
        // From the end of one change to the next, a time must pass.
        for (time, answer) in [(REST - Nanos(1), Some((BUSY, 0))), (Nanos(1), None)] {
            rig.ask(0);
            rig.pass(time);
            assert_eq!(rig.answer(), answer);
        }
    }

    #[test]
    fn a_camera_that_leaves_or_fails_or_is_silent_holds_no_change_up() {
        for (what, answer) in [(0, DONE), (1, WITHOUT), (2, WITHOUT)] {
            let mut rig = Rig::new();
            rig.ask(1);
            rig.pass(MANAGED);
            rig.orders[0].leaves();
            assert_eq!(rig.pass(MANAGED), [0, 900]);
            match what {
                0 => rig.orders[1].leaves(),
                1 => (rig.orders[1].fails(), rig.orders[1].leaves()).1,
                _ => {
                    rig.pass(PATIENCE - Nanos(1));
                    assert_eq!(rig.answer(), None);
                }
            }
            rig.pass(MANAGED);
            assert_eq!(rig.answer(), Some((answer, 0)), "{what}");
        }
    }

    #[test]
    fn an_ask_for_the_mode_that_runs_and_for_none_change_nothing() {
        let mut rig = Rig::new();
        rig.ask(2);
        assert_eq!((rig.pass(MANAGED), rig.answer()), ([900, 0], Some((NO_MODE, 0))));
        rig.ask(0);
        assert_eq!((rig.pass(MANAGED), rig.answer()), ([900, 0], Some((DONE, 0))));
    }
}
