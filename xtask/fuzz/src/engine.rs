//! The loop of the fuzzer: change an input, run it, and keep it if it reached something new.

use crate::corpus::{CORPUS_MAX, INPUT_MAX};
use crate::mutate::{Compared, mutate};
use diapason_random::Random;

/// The knowledge about a run: how far it came, and what it looked at.
pub trait Feedback {
    /// Forgets the run before.
    fn begin(&mut self);
    /// Returns how much of what the run reached no run reached before, and remembers it.
    fn news(&mut self) -> usize;
    /// Returns values that the run compared.
    fn compared(&mut self) -> Vec<Compared>;
    /// Makes everything new again, as before the first run.
    fn forget(&mut self);
}

/// Without counters, nothing is known.
pub struct Blind;

impl Feedback for Blind {
    fn begin(&mut self) {}

    fn news(&mut self) -> usize {
        0
    }

    fn compared(&mut self) -> Vec<Compared> {
        Vec::new()
    }

    fn forget(&mut self) {}
}

/// A target under attack.
pub struct Fuzzer<'a, F> {
    run: &'a mut dyn FnMut(&[u8]),
    feedback: F,
    random: Random,
    inputs: Vec<Vec<u8>>,
    compared: Vec<Compared>,
    /// Branches and their counts that were reached.
    pub reached: usize,
}

impl<'a, F: Feedback> Fuzzer<'a, F> {
    /// Runs the first inputs of a target. All of them stay.
    pub fn new(
        run: &'a mut dyn FnMut(&[u8]),
        feedback: F,
        seed: u64,
        first: Vec<Vec<u8>>,
    ) -> Fuzzer<'a, F> {
        let inputs = if first.is_empty() { vec![Vec::new()] } else { first };
        let (random, compared) = (Random::new(seed), Vec::new());
        let mut new = Fuzzer { run, feedback, random, inputs, compared, reached: 0 };
        for index in 0..new.inputs.len() {
            let input = new.inputs[index].clone();
            new.reached += new.news_of(&input);
        }
        new
    }

    /// Returns how many inputs there are.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.inputs.len()
    }

    fn news_of(&mut self, input: &[u8]) -> usize {
        self.feedback.begin();
        (self.run)(input);
        let news = self.feedback.news();
        if news > 0 || self.random.one_in(64) {
            self.compared.extend(self.feedback.compared());
            // The latest are about what is not understood yet.
            let old = self.compared.len().saturating_sub(4_096);
            self.compared.drain(..old);
        }
        news
    }

    /// Runs `count` changed inputs.
    pub fn attack(&mut self, count: u64) {
        for _ in 0..count {
            // Half of the time one of the latest: they lead on.
            let all = self.inputs.len();
            let back = if self.random.one_in(2) { all.min(16) } else { all };
            let mut input = self.inputs[all - 1 - self.random.index(back)].clone();
            mutate(&mut self.random, &mut input, &self.inputs, &self.compared);
            let news = self.news_of(&input);
            if news > 0 {
                self.reached += news;
                self.inputs.push(input);
            }
        }
    }

    /// Returns few and short inputs that together reach what all of them reach, as far as they fit.
    #[must_use]
    pub fn essence(mut self) -> Vec<Vec<u8>> {
        let mut inputs = std::mem::take(&mut self.inputs);
        inputs.sort_by_key(Vec::len);
        self.feedback.forget();
        let (mut kept, mut bytes) = (Vec::new(), 0);
        for input in inputs {
            let fits = input.len() <= INPUT_MAX && bytes + input.len() + 4 <= CORPUS_MAX;
            if fits && self.news_of(&input) > 0 {
                bytes += input.len() + 4;
                kept.push(input);
            }
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::BTreeSet;
    use std::rc::Rc;

    /// Counters of a program with a magic word.
    #[derive(Clone, Default)]
    struct Counted {
        run: Rc<RefCell<Vec<u32>>>,
        all: BTreeSet<u32>,
    }

    impl Feedback for Counted {
        fn begin(&mut self) {
            self.run.borrow_mut().clear();
        }

        fn news(&mut self) -> usize {
            let run = self.run.borrow();
            run.iter().filter(|branch| self.all.insert(**branch)).count()
        }

        fn compared(&mut self) -> Vec<Compared> {
            Vec::new()
        }

        fn forget(&mut self) {
            self.all.clear();
        }
    }

    #[test]
    fn what_is_reached_leads_to_what_is_behind_it() {
        let feedback = Counted::default();
        let counts = Rc::clone(&feedback.run);
        let mut run = |bytes: &[u8]| {
            for (at, byte) in (0..).zip(b"magic") {
                if bytes.get(at as usize) != Some(byte) {
                    return;
                }
                counts.borrow_mut().push(at);
            }
        };
        let mut fuzzer = Fuzzer::new(&mut run, feedback, 1, vec![b"m".to_vec()]);
        fuzzer.attack(400_000);
        assert_eq!(fuzzer.reached, 5, "without guidance 256^4 inputs would be needed");
        let kept = fuzzer.essence();
        assert_eq!(kept.len(), 5);
        assert!(kept.last().unwrap().starts_with(b"magic"));
    }
}
