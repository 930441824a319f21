//! Changes of the mode of operation. The server first stops the streams that end. It starts those
//! that begin when all that ended have given their parts of the bus back, so the bus never carries
//! more than one of the two modes.
//!
//! The server writes what a stream is to have, and the stream writes what it has: an [`Order`].
//! The bus schedule admits every stream by itself besides.

use crate::order::Order;
use crate::platform::Platform;
use crate::policy::{MANAGED, PATIENCE};
use crate::told::ServerSettings;
use alloc::vec::Vec;
use diapason_abi::{Errno, Nanos};
use diapason_contract::mode::{
    ANSWERS, ASKS, BUSY, DONE, ModeAnswer, ModeAsk, NO_MODE, RECORDS, WITHOUT, bytes,
};
use diapason_pipe::measured::{ModeReport, ModeStep};
use diapason_pipe::{Reader, Writer};

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

/// The mode that runs, or that the change under way leads to.
#[derive(Clone, Copy)]
struct Running {
    mode: u32,
    /// The streams that ended or began for it, one bit each.
    changed: u8,
    taken: Nanos,
    /// The step that was told last.
    told: Option<ModeStep>,
}

/// The modes, the one that runs, and the program that asks for others.
pub(crate) struct Modes {
    asks: Reader<'static, ModeAsk, RECORDS>,
    answers: Writer<'static, ModeAnswer, RECORDS>,
    words: Vec<u64>,
    orders: Vec<Order>,
    change: Option<Change>,
    running: Running,
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
    pub fn of<P: Platform>(
        platform: &P,
        told: &ServerSettings,
        now: Nanos,
    ) -> Result<Option<Modes>, Errno> {
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
            running: Running { mode: 0, changed: u8::MAX, taken: now, told: None },
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

    /// Takes asks, and does the next step of the change under way. Every step is told.
    pub fn attend(&mut self, now: Nanos, tell: &mut dyn FnMut(ModeReport)) {
        if self.running.told.is_none() {
            self.tell(ModeStep::Starts, tell);
        }
        // A program that asks without a pause does not keep the server from its other work.
        for _ in 0..RECORDS {
            let Some(ask) = self.asks.pop() else { break };
            match self.words.get(ask.mode as usize) {
                None => self.refuse(ask, NO_MODE, now),
                Some(_) if self.change.is_some() || now < self.rest_until => {
                    self.refuse(ask, BUSY, now);
                }
                Some(word) => {
                    let change = self.begin(ask, *word, now);
                    self.change = Some(change);
                    // An ask for the mode that runs is no change.
                    if change.changed != 0 || ask.mode != self.running.mode {
                        let (mode, changed) = (ask.mode, change.changed);
                        self.running = Running { mode, changed, taken: now, told: None };
                        self.tell(ModeStep::Stops, tell);
                    }
                }
            }
        }
        if let Some(change) = self.change {
            self.go_on(change, now, tell);
        }
        let wanted = || self.orders.iter().filter(|order| order.wanted() > 0);
        if self.change.is_none()
            && self.running.told != Some(ModeStep::Runs)
            && wanted().all(|order| order.since().is_some())
        {
            self.tell(ModeStep::Runs, tell);
        }
        self.look_at = if self.change.is_some() { now + MANAGED } else { Nanos::FOREVER };
    }

    fn tell(&mut self, step: ModeStep, tell: &mut dyn FnMut(ModeReport)) {
        let Running { mode, changed, taken, .. } = self.running;
        let orders = || self.orders.iter().enumerate();
        let wanted = orders().filter(|(_, order)| order.wanted() > 0);
        let wanted = wanted.fold(0, |all, (stream, _)| all | 1 << stream);
        let began = orders().filter(|(stream, _)| changed >> stream & 1 != 0);
        let begun = began.filter_map(|(_, order)| order.since()).max();
        let begun = begun.map_or(taken, Nanos);
        self.running.told = Some(step);
        tell(ModeReport { mode: mode as u8, step, wanted, taken, begun });
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

    fn go_on(&mut self, mut change: Change, now: Nanos, tell: &mut dyn FnMut(ModeReport)) {
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
            if self.running.told == Some(ModeStep::Stops) {
                self.tell(ModeStep::Starts, tell);
            }
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
        if !whole {
            self.tell(ModeStep::Without, tell);
        }
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
        told: Vec<ModeReport>,
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
                running: Running { mode: 0, changed: u8::MAX, taken: Nanos(1), told: None },
                rest: REST,
                rest_until: Nanos::ZERO,
                refused: 0,
                look_at: Nanos::FOREVER,
            };
            orders.iter().for_each(Order::comes);
            orders[0].hold(900);
            orders[0].runs(900, Nanos(1));
            orders[1].hold(0);
            let told = Vec::new();
            Rig { modes, asks, answers, orders, now: Nanos::from_millis(1), told }
        }

        fn ask(&mut self, mode: u32) {
            self.asks.push(&ModeAsk { mode, number: 7 }).unwrap();
        }

        /// Lets so much time pass; returns what both streams are to have.
        fn pass(&mut self, time: Nanos) -> [u32; 2] {
            self.now += time;
            self.modes.attend(self.now, &mut |step| self.told.push(step));
            self.orders.each_ref().map(Order::wanted)
        }

        /// Returns the steps that were told since the last call: modes, steps, wanted streams.
        fn steps(&mut self) -> Vec<(u8, ModeStep, u8)> {
            self.told.drain(..).map(|it| (it.mode, it.step, it.wanted)).collect()
        }

        fn answer(&mut self) -> Option<(u32, u64)> {
            let answer = self.answers.pop()?;
            Some((answer.answer, answer.begun - answer.taken))
        }
    }

    #[test]
    fn nothing_begins_before_everything_that_ends_has_ended() {
        let mut rig = Rig::new();
        rig.pass(MANAGED);
        assert_eq!(rig.steps(), [(0, ModeStep::Starts, 1), (0, ModeStep::Runs, 1)]);
        rig.ask(1);
        assert_eq!(rig.pass(MANAGED), [0, 0]);
        assert_eq!(rig.pass(Nanos::from_secs(9)), [0, 0], "the camera does not stop");
        assert_eq!(rig.steps(), [(1, ModeStep::Stops, 0)]);
        assert_eq!((rig.answer(), rig.modes.next_wake()), (None, rig.now + MANAGED));
        rig.orders[0].hold(0);
        assert_eq!(rig.pass(MANAGED), [0, 900]);
        rig.orders[1].hold(900);
        assert_eq!((rig.pass(MANAGED), rig.answer()), ([0, 900], None), "nothing came of it");
        assert_eq!(rig.steps(), [(1, ModeStep::Starts, 2)]);
        let begun = rig.now + Nanos(5);
        rig.orders[1].runs(900, begun);
        rig.pass(MANAGED);
        let time = Nanos::from_secs(9).0 + 2 * MANAGED.0 + 5;
        assert_eq!(rig.answer(), Some((DONE, time)));
        assert_eq!(rig.modes.next_wake(), Nanos::FOREVER);
        let told = *rig.told.last().unwrap();
        assert_eq!((told.begun, told.begun - told.taken), (begun, Nanos(time)));
        assert_eq!(rig.steps(), [(1, ModeStep::Runs, 2)]);
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
            let last = if answer == WITHOUT { ModeStep::Without } else { ModeStep::Starts };
            assert_eq!(rig.steps().pop(), Some((1, last, 2)), "{what}");
            // The mode runs once its camera does.
            rig.orders[1].comes();
            rig.orders[1].runs(900, rig.now);
            rig.pass(MANAGED);
            assert_eq!(rig.steps(), [(1, ModeStep::Runs, 2)], "{what}");
        }
    }

    #[test]
    fn an_ask_for_the_mode_that_runs_and_for_none_change_nothing() {
        let mut rig = Rig::new();
        rig.ask(2);
        assert_eq!((rig.pass(MANAGED), rig.answer()), ([900, 0], Some((NO_MODE, 0))));
        rig.steps();
        rig.ask(0);
        assert_eq!((rig.pass(MANAGED), rig.answer()), ([900, 0], Some((DONE, 0))));
        assert_eq!(rig.steps(), []);
    }
}
