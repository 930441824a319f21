//! Reasons to stop a simulation under the debugger: alarms, faults, an instant, a change of memory.
//!
//! The kernel counts maxima, and an alarm is a maximum above what the plan assumes. So an alarm
//! rings from its first step on, unless a graver one replaces it. A look once a millisecond finds
//! that it rings. Then the run is repeated, with a look at every step in between.

use crate::console::Line;
use crate::duration::human;
use crate::names::{self, Names};
use crate::outcome::{Assumptions, Outcome};
use diapason_abi::Nanos;
use diapason_sim::Glance;

/// From one look at the alarms to the next, while nothing rings.
const LOOK: Nanos = Nanos::from_millis(1);

/// The reason why a simulation stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Halt {
    Begin,
    End,
    /// A thread has run up to its next trap.
    Turn,
    /// Somebody pressed Ctrl-C in GDB.
    Interrupt,
    /// An alarm rang, a process ended by a fault, or an instant came; in these words.
    Said(String),
    /// Bytes at this address changed.
    Watch(u64),
}

/// An alarm at the first step at which it rings.
struct KnownAlarm {
    step: u64,
    key: (String, String),
    text: String,
}

/// The alarms of a run, as far as it has been looked at.
#[derive(Default)]
pub struct KnownAlarms {
    known: Vec<KnownAlarm>,
    /// The last step at which only known ones rang.
    quiet: u64,
    next: Nanos,
}

/// The result of a look at the alarms.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AlarmLook {
    Quiet,
    /// This alarm rings here for the first time.
    Rings(String),
    /// An alarm rings that did not at the last look: it began somewhere in between.
    RangBefore,
}

impl KnownAlarms {
    /// Returns the words of alarms that ring for the first time at this step, if any is known to.
    pub fn at(&self, step: u64) -> Option<String> {
        let here = self.known.iter().filter(|alarm| alarm.step == step);
        let texts: Vec<&str> = here.map(|alarm| &*alarm.text).collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    }

    /// Returns whether it is time for a look at this step.
    pub fn is_due(&self, step: u64, now: Nanos) -> bool {
        self.is_new(step) && now >= self.next
    }

    /// Returns whether this step was never looked at.
    pub fn is_new(&self, step: u64) -> bool {
        step > self.quiet
    }

    /// Notes which alarms ring at `step`: the key and the words of each.
    fn note(
        &mut self,
        step: u64,
        now: Nanos,
        ringing: Vec<((String, String), String)>,
    ) -> AlarmLook {
        let is_known = |key: &(String, String)| self.known.iter().any(|known| known.key == *key);
        let new: Vec<_> = ringing.into_iter().filter(|(key, _)| !is_known(key)).collect();
        if new.is_empty() {
            self.quiet = step;
            self.next = now + LOOK;
            return AlarmLook::Quiet;
        }
        if step > self.quiet + 1 {
            return AlarmLook::RangBefore;
        }
        self.quiet = step;
        let known = new.into_iter().map(|(key, text)| KnownAlarm { step, key, text });
        self.known.extend(known);
        AlarmLook::Rings(self.at(step).unwrap_or_default())
    }

    /// Looks which alarms ring.
    pub fn look(
        &mut self,
        step: u64,
        glance: &Glance<'_, '_>,
        heard: &Outcome,
        (assumptions, names): (&Assumptions, &Names),
    ) -> AlarmLook {
        let mut outcome = heard.clone();
        glance.accounts(|record, words| outcome.note(&Line::Record(record, words.to_vec())));
        let alarms = assumptions.against(&outcome, names).into_iter();
        // Something that has not come yet may still come.
        let alarms = alarms.filter(|alarm| !alarm.is_absence()).map(|alarm| {
            let text = alarm.to_string();
            ((alarm.name.to_owned(), alarm.of), text)
        });
        let late = outcome.threads.iter().filter(|row| row.misses > 0).map(|row| {
            let (process, thread) = (names.process(row.process), names::thread(row.name, row.slot));
            let took = human(row.response_max_ns);
            let text = format!("{thread} of {process} missed a deadline: {took} after its release");
            (("deadline".to_owned(), format!("{thread} of {process}")), text)
        });
        self.note(step, glance.now, alarms.chain(late).collect())
    }
}

/// Bytes that stop the run when they change.
pub struct WatchedBytes {
    pub address: u64,
    pub length: usize,
    /// The bytes at the last step; `None` if there was no such memory.
    last: Option<Vec<u8>>,
}

impl WatchedBytes {
    /// Returns a watch that has seen nothing yet.
    pub fn new(address: u64, length: usize) -> WatchedBytes {
        WatchedBytes { address, length, last: None }
    }

    /// Forgets what it has seen: the run begins again.
    pub fn forget(&mut self) {
        self.last = None;
    }

    /// Looks at the bytes. Returns whether they have changed.
    pub fn look(&mut self, glance: &Glance<'_, '_>) -> bool {
        let mut bytes = vec![0; self.length];
        let now = glance.read(self.address, &mut bytes).then_some(bytes);
        let changed = matches!((&self.last, &now), (Some(last), Some(now)) if last != now);
        self.last = now;
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ringing(names: &[&str]) -> Vec<((String, String), String)> {
        let one = |name: &&str| ((String::from(*name), String::from("v")), format!("alarm {name}"));
        names.iter().map(one).collect()
    }

    #[test]
    fn an_alarm_is_found_at_the_first_step_at_which_it_rings() {
        let mut alarms = KnownAlarms::default();
        let at = Nanos::from_millis;
        assert!(alarms.is_due(1, at(0)));
        assert_eq!(alarms.note(1, at(0), ringing(&[])), AlarmLook::Quiet);
        assert!(!alarms.is_due(40, Nanos(999_999)) && alarms.is_due(50, at(1)));
        assert_eq!(alarms.note(50, at(1), ringing(&["late"])), AlarmLook::RangBefore);
        // The run begins again, and every step after the first look is looked at.
        assert!(!alarms.is_new(1) && alarms.is_new(2));
        assert_eq!(alarms.note(2, at(0), ringing(&[])), AlarmLook::Quiet);
        let rings = AlarmLook::Rings("alarm late".into());
        assert_eq!(alarms.note(3, at(0), ringing(&["late"])), rings);
        assert_eq!(alarms.at(3).as_deref(), Some("alarm late"));
        assert_eq!(alarms.at(2), None);
        assert_eq!(alarms.note(4, at(0), ringing(&["late"])), AlarmLook::Quiet);
    }
}
