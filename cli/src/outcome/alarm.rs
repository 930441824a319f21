//! An alarm: a run contradicted what the analysis assumes.

use crate::duration::human;
use serde::Serialize;
use std::fmt;

/// An assumption that a run contradicted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RaisedAlarm {
    #[serde(rename = "alarm")]
    pub name: &'static str,
    /// The subject: a VCPU, a device, or the kernel.
    pub of: String,
    /// The observed value, in ns unless the name says what is counted.
    pub observed: u64,
    /// The most (of a distance: the least) that was assumed.
    pub assumed: u64,
    pub text: String,
}

impl fmt::Display for RaisedAlarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "alarm {}: {}", self.name, self.text)
    }
}

impl RaisedAlarm {
    /// Returns the alarm if more was observed than was assumed.
    pub(super) fn above(
        name: &'static str,
        of: &str,
        [observed, assumed]: [u64; 2],
        text: String,
    ) -> Option<RaisedAlarm> {
        let of = of.to_owned();
        (observed > assumed).then_some(RaisedAlarm { name, of, observed, assumed, text })
    }

    /// Returns the alarm if a message of `of` took longer than was promised. `how` words the time.
    pub(super) fn late(
        name: &'static str,
        of: &str,
        [observed, assumed]: [u64; 2],
        how: impl FnOnce(&str) -> String,
    ) -> Option<RaisedAlarm> {
        let (how, most) = (how(&human(observed)), human(assumed));
        let text = format!("a message of {of} {how}; at most {most} was promised");
        RaisedAlarm::above(name, of, [observed, assumed], text)
    }

    /// Returns the alarm about something that was assumed to be there and is not.
    pub(super) fn missing(name: &'static str, of: &str, text: String) -> RaisedAlarm {
        RaisedAlarm { name, of: of.to_owned(), observed: 0, assumed: 1, text }
    }

    /// Returns whether something is missing that may still come while the run lasts.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        (self.observed, self.assumed) == (0, 1)
    }
}
