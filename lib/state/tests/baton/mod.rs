//! Runs the real code of this crate under every interleaving of its shared accesses.
//!
//! Two threads hand a baton to each other at each `Step::step`, so exactly one of them runs. A list
//! of choices decides who gets the baton. The explorer runs the program again and again until it
//! has taken every list.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use diapason_state::Step;

/// The step hook that hands over the baton.
pub struct Handover;

impl Step for Handover {
    fn step() {
        let mine = BATON.with_borrow(Clone::clone);
        if let Some((baton, me)) = mine {
            baton.pass(me, false);
            baton.wait_for(me);
        }
    }
}

thread_local! {
    static BATON: RefCell<Option<(Arc<Baton>, usize)>> = const { RefCell::new(None) };
}

#[derive(Default)]
struct Turn {
    holder: Option<usize>,
    ended: [bool; 2],
    /// Choices to take, then those taken so far beyond them are 0.
    plan: Vec<u8>,
    /// For each choice between both threads: what was chosen.
    taken: Vec<u8>,
}

#[derive(Default)]
struct Baton {
    turn: Mutex<Turn>,
    changed: Condvar,
}

impl Baton {
    fn choose(turn: &mut Turn) {
        turn.holder = match turn.ended {
            [false, false] => {
                let choice = turn.plan.get(turn.taken.len()).copied().unwrap_or(0);
                turn.taken.push(choice);
                Some(usize::from(choice))
            }
            [true, false] => Some(1),
            [false, true] => Some(0),
            [true, true] => None,
        };
    }

    fn pass(&self, me: usize, ended: bool) {
        let mut turn = self.turn.lock().unwrap();
        turn.ended[me] = ended;
        Self::choose(&mut turn);
        self.changed.notify_all();
    }

    fn wait_for(&self, me: usize) {
        let turn = self.turn.lock().unwrap();
        drop(self.changed.wait_while(turn, |turn| turn.holder != Some(me)).unwrap());
    }

    fn run(self: Arc<Self>, me: usize, body: impl FnOnce()) {
        self.wait_for(me);
        BATON.set(Some((Arc::clone(&self), me)));
        body();
        BATON.set(None);
        self.pass(me, true);
    }
}

/// Runs `first` and `second` under the choices of `plan`; returns all choices that were taken.
fn run_once(plan: Vec<u8>, first: impl FnOnce() + Send, second: impl FnOnce() + Send) -> Vec<u8> {
    let baton = Arc::new(Baton::default());
    {
        let mut turn = baton.turn.lock().unwrap();
        turn.plan = plan;
        Baton::choose(&mut turn);
    }
    thread::scope(|scope| {
        let [one, two] = [Arc::clone(&baton), Arc::clone(&baton)];
        scope.spawn(move || one.run(0, first));
        scope.spawn(move || two.run(1, second));
    });
    let mut turn = baton.turn.lock().unwrap();
    std::mem::take(&mut turn.taken)
}

/// Calls `program` once for each interleaving; it must pass two bodies to the runner it is given.
/// Returns the number of interleavings.
pub fn every_interleaving(mut program: impl FnMut(&mut Runner)) -> u32 {
    let mut runner = Runner { plan: Vec::new(), taken: Vec::new() };
    for count in 1.. {
        program(&mut runner);
        while runner.taken.last() == Some(&1) {
            runner.taken.pop();
        }
        let Some(last) = runner.taken.last_mut() else { return count };
        *last = 1;
        runner.plan = std::mem::take(&mut runner.taken);
    }
    unreachable!("the choices are finite")
}

/// One interleaving, waiting for the two bodies.
pub struct Runner {
    plan: Vec<u8>,
    taken: Vec<u8>,
}

impl Runner {
    pub fn run(&mut self, first: impl FnOnce() + Send, second: impl FnOnce() + Send) {
        self.taken = run_once(self.plan.clone(), first, second);
    }
}
