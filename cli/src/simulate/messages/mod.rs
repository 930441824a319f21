//! The lives of messages: each is followed from its arrival at a device, over the USB bus, through
//! the server into its pipe, to the instant at which its reader takes it out; or from its writer
//! into the pipe, to the device and through on that one's bus, until the server has told so.
//!
//! Nobody tells where a message is. The evidence is the traffic: frames on CAN buses, packets and
//! transfers on USB buses, times that messages bear, interrupts, the progress of the ends of a
//! pipe, and the processor's actions. A message keeps its place among those of its channel, so its
//! frame finds it again.

mod beyond;
mod disk;
mod life;
mod line;
mod records;
mod seen;
mod tell;
mod wire;

pub use beyond::HostPart;
pub use life::{Life, is_worse};
pub use seen::{Seen, SeenStage, render as render_stages, to_json as stages_to_json};
pub use tell::{Called, render};

use crate::outcome::Truth;
use crate::plan::Plan;
use crate::surroundings::Sights;
use beyond::{FarTaken, OwnReader, Sleeps};
use diapason_abi::Nanos;
use diapason_abi::archive::Location;
use diapason_core::{Decision, Kernel, ThreadId};
use diapason_sim::{History, Moment, Observer, TapTraffic, Watched};
use diapason_system::InjectedFault;
use life::{Journey, Roads};
use line::{Line, TAKEN, WORDS};
use std::cell::RefCell;
use std::rc::Rc;
use wire::ObservedController;
pub use wire::digest;

/// The message whose life is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// The one that took most of what was promised, of all pipes.
    WorstOfAll,
    /// The one of the pipe with this number that took most of what was promised.
    Worst(usize),
    /// This one of a pipe, from 1.
    This(usize, u64),
}

/// The fates of all messages.
#[derive(Clone, Default, Debug)]
pub struct Lives {
    pub seen: Vec<Seen>,
    /// The one that was asked for by its number.
    this: Option<Life>,
}

impl Lives {
    /// Returns the life of a message, if there was such a one.
    #[must_use]
    pub fn of(&self, choice: Choice) -> Option<&Life> {
        match choice {
            Choice::WorstOfAll => {
                let worst = self.seen.iter().filter_map(|seen| seen.worst.as_ref());
                let worse = |one: &Life, two: &Life| one.is_worse_than(two.latency(), two.bound);
                worst.reduce(|one, other| if worse(other, one) { other } else { one })
            }
            Choice::Worst(pipe) => self.seen.get(pipe)?.worst.as_ref(),
            Choice::This(..) => self.this.as_ref(),
        }
    }
}

/// The surroundings of a host's messages.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// The promises of the host.
    pub plan: &'a Plan,
    /// Where one can look.
    pub sights: &'a Sights,
    /// The place of the host's core in the run.
    pub part: &'a HostPart,
    pub faults: &'a [InjectedFault],
}

/// Everybody who follows messages.
pub struct Messages {
    /// The pipe and the number of the message that is wanted.
    wanted: Option<(usize, u64)>,
    lives: Lives,
    /// By pipe; none if it cannot be followed.
    lines: Vec<Option<Line>>,
    /// By pipe of another core whose reader is here; none if it cannot be followed.
    far: Vec<Option<OwnReader>>,
    sleeps: Sleeps,
    /// By controller looked at.
    wires: Vec<ObservedController>,
    /// The messages of each controller, by the number of their devices.
    vectors: Vec<Location>,
    history: Rc<RefCell<History>>,
    /// The names of pipes.
    names: Vec<String>,
    /// Messages that arrived since they were taken, if somebody draws them.
    arrived: Option<Vec<Life>>,
}

impl Messages {
    /// Returns the messages of a system's pipes; `choice` is what will be asked for.
    #[must_use]
    pub fn new(around: &Around<'_>, choice: Option<Choice>) -> Messages {
        let Around { plan, sights, .. } = *around;
        let system = plan.system();
        let line = |index| Line::new(around, index);
        let seen = plan.pipes.iter().map(|piped| Seen::new(piped.bill.as_ref().ok().copied()));
        let wanted = match choice {
            Some(Choice::This(pipe, number)) => Some((pipe, number)),
            _ => None,
        };
        let lines: Vec<Option<Line>> = (0..system.pipes.len()).map(line).collect();
        let sources = |tap: usize| {
            let own = lines.iter().flatten().filter(move |line| line.tap == tap);
            own.flat_map(Line::sources).collect()
        };
        let wires =
            (0..sights.taps.len()).map(|tap| ObservedController::new(sources(tap))).collect();
        let history = Rc::<RefCell<History>>::default();
        let far = around.part.own(system, &history);
        Messages {
            wanted,
            lives: Lives { seen: seen.collect(), this: None },
            lines,
            far,
            sleeps: Sleeps::default(),
            wires,
            vectors: system.devices.iter().map(|device| device.location).collect(),
            history,
            names: system.pipes.iter().map(|pipe| pipe.name.clone()).collect(),
            arrived: None,
        }
    }

    /// Keeps every message that arrives until it is taken.
    #[must_use]
    pub fn kept(self) -> Messages {
        Messages { arrived: Some(Vec::new()), ..self }
    }

    /// Takes the messages that arrived, each with the name of its pipe.
    pub fn take_arrived(&mut self) -> impl Iterator<Item = (&str, Life)> {
        let arrived = self.arrived.as_mut().map(std::mem::take).unwrap_or_default();
        let names = &self.names;
        arrived.into_iter().map(move |life| (&*names[life.pipe], life))
    }

    /// Returns the words that say how far pipes are written and read.
    #[must_use]
    pub fn watched(&self) -> Vec<Watched> {
        let ring = |far: &Option<OwnReader>| far.as_ref().map_or(u16::MAX, |far| far.ring);
        let far = self.far.iter().map(|far| Watched { segment: ring(far), offset: TAKEN });
        self.lines.iter().flat_map(|line| Line::watched(line.as_ref())).chain(far).collect()
    }

    /// Returns the certain facts, by pipe, then by pipe of another core; nothing of pipes that
    /// cannot be followed.
    #[must_use]
    pub fn truth(&self, now: Nanos) -> Vec<Option<Truth>> {
        let far = self.far.iter().map(|far| far.as_ref()?.reader.truth());
        self.own_truth(now).into_iter().chain(far).collect()
    }

    /// Tells readers on other cores how their messages did until now.
    pub fn tell_readers(&self, now: Nanos) {
        for (line, truth) in self.lines.iter().zip(self.own_truth(now)) {
            let far = line.as_ref().and_then(|line| line.far.as_ref());
            far.into_iter().for_each(|far| far.tell(truth));
        }
    }

    fn own_truth(&self, now: Nanos) -> Vec<Option<Truth>> {
        let truth = |(line, seen): (&Option<Line>, &Seen)| {
            let longest = seen.worst.as_ref().map_or(Nanos::ZERO, Life::latency);
            let (messages, longest_ns) = (seen.messages, longest.0);
            let line = line.as_ref()?;
            let (waiting_ns, lost) = (line.waiting(now).0, line.lost);
            Some(Truth { messages, longest_ns, waiting_ns, lost })
        };
        self.lines.iter().zip(&self.lives.seen).map(truth).collect()
    }

    /// Returns the fates of all messages that arrived.
    #[must_use]
    pub fn lives(mut self) -> Lives {
        for (line, seen) in self.lines.iter().zip(&mut self.lives.seen) {
            let far = line.as_ref().and_then(|line| line.far.as_ref()?.known());
            seen.far_reader = far.map(|reader| reader.name);
        }
        self.lives
    }

    /// Notes the traffic at a controller.
    pub fn passed(&mut self, tap: usize, passed: &TapTraffic) {
        let Some(wire) = self.wires.get_mut(tap) else { return };
        wire.note(passed);
        for carried in wire.take_carried() {
            self.lines.iter_mut().flatten().for_each(|line| line.passed(tap, carried));
        }
    }

    /// Everything that passed until now has been told: follow the messages that have arrived.
    pub fn follow(&mut self, now: Nanos) {
        self.lines.iter_mut().flatten().for_each(Line::catch_up);
        for pipe in 0..self.lines.len() {
            self.listen(pipe);
        }
        for pipe in 0..self.lines.len() {
            while let Some(journey) = self.lines[pipe].as_mut().and_then(|line| line.next(pipe)) {
                self.arrived(&journey);
            }
        }
        let lines = self.lines.iter_mut().flatten();
        let oldest = lines.map(|line| line.forget(now)).fold(now, Nanos::min);
        let far = self.far.iter().flatten().map(|far| far.reader.oldest(now));
        self.history.borrow_mut().forget(far.fold(oldest, Nanos::min));
        self.wires.iter_mut().for_each(|wire| wire.forget(oldest));
    }

    /// Tells all pipes of a channel about the traffic on its bus.
    fn listen(&mut self, pipe: usize) {
        let Some(line) = &self.lines[pipe] else { return };
        let Some(bus) = line.bus() else { return };
        let (heard, number) = (bus.take_heard(), line.number);
        self.lines.iter_mut().flatten().for_each(|line| line.hear(number, &heard));
    }

    /// A message has arrived.
    fn arrived(&mut self, journey: &Journey) {
        let Some(line) = self.lines.get(journey.pipe).and_then(Option::as_ref) else { return };
        let (of, vector) = (line.device as u16, journey.told().vector);
        let message = Location::Message { of, vector };
        let message = self.vectors.iter().position(|location| *location == message);
        let reader = line.far.as_ref().and_then(|far| far.known());
        let roads = Roads {
            wire: &self.wires[line.tap],
            history: &self.history,
            far: reader.as_ref(),
            interrupt: message.and_then(|device| u16::try_from(device).ok()),
        };
        let Some(parts) = life::parts(journey, &roads) else { return };
        let seen = &mut self.lives.seen[journey.pipe];
        let is_worst = seen.note(journey, &parts);
        let is_wanted = self.wanted == Some((journey.pipe, journey.number));
        if !is_worst && !is_wanted && self.arrived.is_none() {
            return;
        }
        let life = Life::new(journey, &parts, &roads, (line.bound, line.bill));
        if is_wanted {
            self.lives.this = Some(life.clone());
        }
        self.arrived.iter_mut().for_each(|all| all.push(life.clone()));
        if is_worst {
            seen.worst = Some(life);
        }
    }
}

impl Observer for Messages {
    fn moment(&mut self, from: Nanos, to: Nanos, what: Moment) {
        self.history.borrow_mut().moment(from, to, what);
        if let Moment::Kernel(cause) = what {
            self.sleeps.note(cause);
        }
    }

    fn decided(&mut self, read: Nanos, now: Nanos, kernel: &Kernel<'_>, decision: &Decision) {
        self.history.borrow_mut().decided(read, now, kernel, decision);
        self.sleeps.runs(decision.run);
    }

    fn changed(&mut self, at: Nanos, by: ThreadId, word: usize, change: (u64, u64), memory: &[u8]) {
        let (own, by) = (self.lines.len(), (at, by));
        if let Some(Some(line)) = self.lines.get_mut(word / WORDS) {
            line.changed(word % WORDS, by, change, memory);
        } else if let Some(Some(far)) = self.far.get(word.wrapping_sub(own * WORDS)) {
            let (reached, looked) = (change.1, self.sleeps.last(by.1));
            if reached > change.0 {
                far.reader.took(FarTaken { reached, by, looked });
            }
        }
    }
}
