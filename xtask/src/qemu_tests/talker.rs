//! Two devices of two hosts that talk to each other over a wire that takes its time.

use diapason_abi::Nanos;
use diapason_random::Random;
use diapason_sim::{FunctionModel, Memory};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// When which word was heard.
pub type Log = Rc<RefCell<Vec<(Nanos, u64)>>>;
type Wire = Rc<RefCell<VecDeque<(Nanos, u64)>>>;

/// One of the two. It says a word now and then, answers many it hears, at once or later, and
/// interrupts its host for some.
pub(crate) struct Talker {
    random: Random,
    delay: Nanos,
    incoming: Wire,
    outgoing: Wire,
    /// The talker says something then.
    next: Nanos,
    rung: bool,
    log: Log,
}

/// Both, and what each hears.
pub fn talkers(delay: Nanos) -> (Vec<Talker>, [Log; 2]) {
    let (wires, logs) = ([Wire::default(), Wire::default()], [Log::default(), Log::default()]);
    let talker = |index: usize| Talker {
        random: Random::stream(7, index as u64),
        delay,
        incoming: Rc::clone(&wires[index]),
        outgoing: Rc::clone(&wires[1 - index]),
        next: Nanos(1_000),
        rung: false,
        log: Rc::clone(&logs[index]),
    };
    (vec![talker(0), talker(1)], logs)
}

impl Talker {
    fn say(&mut self, now: Nanos) {
        let word = self.random.bits();
        self.outgoing.borrow_mut().push_back((now + self.delay, word));
    }

    fn hears(&self) -> Nanos {
        self.incoming.borrow().front().map_or(Nanos::FOREVER, |(at, _)| *at)
    }

    fn act(&mut self, now: Nanos) {
        if self.next <= now {
            self.say(now);
            self.next = now + Nanos(self.random.between(1, 200_000));
        }
        while self.hears() <= now {
            let heard = self.incoming.borrow_mut().pop_front();
            let word = heard.map_or(0, |(_, word)| word);
            self.log.borrow_mut().push((now, word));
            match self.random.below(8) {
                0..4 => self.say(now),
                4 => self.next = now + Nanos(self.random.between(1, 20_000)),
                _ => {}
            }
            self.rung |= self.random.one_in(100);
        }
    }
}

impl FunctionModel for Talker {
    fn power_cycle(&mut self, _: Nanos) {}

    fn read(&mut self, now: Nanos, _: u64, _: u8) -> u64 {
        // The software's view depends on the messages heard.
        self.log.borrow().len() as u64 ^ now.0
    }

    fn write(&mut self, now: Nanos, _: u64, _: u8, _: u64, _: &mut dyn Memory) {
        self.say(now);
    }

    fn next_change(&self) -> Nanos {
        self.next.min(self.hears())
    }

    /// The machine may be late: each thing happens at its own time.
    fn advance(&mut self, now: Nanos, _: &mut dyn Memory) {
        while self.next_change() <= now {
            self.act(self.next_change());
        }
    }

    fn take_interrupts(&mut self, _: Nanos) -> Vec<u16> {
        if std::mem::take(&mut self.rung) { vec![0] } else { Vec::new() }
    }
}
