//! Declared things that a run did not measure: nothing is known of them.
//!
//! A long run that measures nothing contradicts the plan, and that is an alarm. A short run breaks
//! nothing, nor does a program that opens no pipe although it may.

use super::{Assumptions, ChainPromise, Outcome, PipePromise};
use crate::duration::human;
use crate::names::Names;
use diapason_abi::Key;

impl PipePromise {
    /// Returns how many messages its reader reported, or the simulator saw if nobody reported.
    #[must_use]
    pub fn messages(&self, outcome: &Outcome) -> u64 {
        let seen = || self.truth(outcome).map_or(0, |truth| truth.messages);
        self.row(outcome).map_or_else(seen, |row| row.messages)
    }

    fn is_measured(&self, outcome: &Outcome) -> bool {
        self.messages(outcome) > 0 || self.truth(outcome).is_some_and(|truth| truth.messages > 0)
    }
}

impl ChainPromise {
    fn is_measured(&self, outcome: &Outcome) -> bool {
        self.row(outcome).is_some_and(|row| row.messages > 0)
    }
}

/// Returns whether a message went through the pipe that a program may open in this place.
fn is_place_measured(place: u8, outcome: &Outcome) -> bool {
    outcome.opened.iter().any(|row| row.place == place && row.messages > 0)
}

/// Returns whether a program did the work of this name, or nobody looked.
fn is_done(name: &str, outcome: &Outcome) -> bool {
    let key = Key::new(name).0;
    let mut looked = outcome.lives().filter_map(|life| life.worked.as_ref()).peekable();
    looked.peek().is_none() || looked.any(|works| works.contains(&key))
}

impl Assumptions {
    /// Returns what the description declares and no life of the host measured, as sentences.
    #[must_use]
    pub fn unmeasured(&self, outcome: &Outcome, names: &Names) -> Vec<String> {
        let ever = |is_measured: &dyn Fn(&Outcome) -> bool| outcome.lives().any(is_measured);
        let pipes = self.pipes.iter().filter(|it| !ever(&|life| it.is_measured(life)));
        let pipes = pipes.map(|it| format!("no message of pipe {}", it.name));
        let unstamped = self.pipes.iter().filter(|it| !it.is_stamped).map(|it| {
            let name = &it.name;
            format!("the way of pipe {name} to the server, and its contract: no `stamp`")
        });
        let ended = self.pipes.iter().filter_map(|it| {
            let (end, last) = (outcome.end?.time_ns, outcome.last_of(it.reader)?);
            let (name, process) = (&it.name, names.process(it.reader));
            (last < end).then(|| format!("pipe {name} from {} on: {process} ended", human(last)))
        });
        let chains = self.chains.iter().filter(|it| !ever(&|life| it.is_measured(life)));
        let chains = chains.map(|it| format!("no message at the end of chain {}", it.name));
        let places = (0..).zip(&self.places);
        let places = places.filter(|(place, _)| !ever(&|life| is_place_measured(*place, life)));
        let places = places.map(|(place, name)| {
            let is_open = |life: &Outcome| life.opened.iter().any(|row| row.place == place);
            let what = if ever(&is_open) { "has no message" } else { "was never opened" };
            format!("tuned pipe {name} {what}")
        });
        let jobs = self.jobs.iter().filter(|it| !ever(&|life| it.is_measured(life)));
        let jobs = jobs.map(|it| format!("no job on VCPU {} was done", it.name));
        let usb = self.usb.unmeasured(outcome, names);
        let sockets = self.sockets.iter().filter(|it| it.bound.is_some());
        let sockets = sockets.filter(|it| !ever(&|life| it.is_measured(life)));
        let sockets = sockets.map(|it| format!("no datagram of socket {}", it.name));
        let messages = self.messages.iter().filter(|it| it.bound_ns.is_some());
        let messages = messages.filter(|it| !ever(&|life| it.is_measured(life)));
        let messages = messages.map(|it| format!("no frame of message {}", it.name));
        let heard = self.heard.iter().filter(|it| it.done_ns.is_some());
        let heard = heard.filter(|it| !ever(&|life| it.is_measured(life)));
        let heard = heard.map(|it| format!("no message {} at its reader", it.name));
        let works = self.works.iter().filter(|name| !is_done(name, outcome));
        let works = works.map(|name| format!("work {name}: no program did it"));
        let states = self.states.iter().flat_map(|it| it.unmeasured(outcome, names));
        let jobs = jobs.chain(works).chain(states);
        let rest = jobs.chain(sockets).chain(messages).chain(heard).chain(usb);
        pipes.chain(unstamped).chain(ended).chain(chains).chain(places).chain(rest).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::opened::note_read;
    use super::super::sample::{self, assumptions};
    use super::*;
    use diapason_abi::Nanos;

    #[test]
    fn a_work_that_no_program_does_is_not_measured() {
        let mut assumptions = assumptions();
        assumptions.works = vec!["reader.frame".into(), "raeder.frame".into()];
        let mut outcome = sample::outcome();
        let unmeasured = |outcome: &Outcome| assumptions.unmeasured(outcome, &sample::names());
        assert_eq!(unmeasured(&outcome), [""; 0], "a machine does not say");
        outcome.worked = Some([Key::new("reader.frame").0].into());
        assert_eq!(unmeasured(&outcome), ["work raeder.frame: no program did it"]);
        outcome.boot_again();
        outcome.worked = Some([Key::new("raeder.frame").0].into());
        assert_eq!(unmeasured(&outcome), [""; 0], "each was done in one life");
    }

    #[test]
    fn a_tuned_pipe_that_nobody_opens_is_not_measured() {
        let mut assumptions = assumptions();
        assumptions.places = vec!["first".into(), "second".into()];
        let mut outcome = sample::outcome();
        let opened = |messages| diapason_pipe::measured::TunedReport {
            place: 1,
            messages,
            ..Default::default()
        };
        let unmeasured = |outcome: &Outcome| assumptions.unmeasured(outcome, &sample::names());
        let never = ["tuned pipe first was never opened", "tuned pipe second was never opened"];
        assert_eq!(unmeasured(&outcome), never);
        note_read(&mut outcome.opened, 0, Nanos(1), &opened(0));
        assert_eq!(unmeasured(&outcome), [never[0], "tuned pipe second has no message"]);
        note_read(&mut outcome.opened, 0, Nanos(2), &opened(9));
        assert_eq!(unmeasured(&outcome), [never[0]]);
    }
}
