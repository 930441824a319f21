//! Everything that the page is made of.

use super::ReportRequest;
use super::watch::Watch;
use crate::commands::holds;
use crate::outcome::{Outcome, RunVerdict};
use crate::plan::{NetworkPlan, Plan};
use crate::session::{FinishedRun, Session};
use crate::several::{Joined, Named};
use crate::simulate::{LinkLogs, Lives, Simulated};
use diapason_system::Hosts;

/// One host or core: what was promised, and what its run showed.
pub struct Facts<'a> {
    /// The name of the host, or the number of the core.
    pub name: &'a str,
    pub session: &'a Session,
    pub plan: &'a Plan,
    pub run: &'a FinishedRun,
    /// The hash of every entry into its kernel.
    pub hash: u64,
    pub lives: &'a Lives,
    /// The messages at its links to other hosts.
    pub links: &'a LinkLogs,
    pub watch: &'a Watch,
    pub verdict: RunVerdict,
}

/// How good a verdict is, and the words for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Badge {
    Bug,
    UnprovedBroken,
    Broken,
    Unproved,
    Unmeasured,
    Holds,
}

impl Badge {
    /// Returns the words for it.
    pub const fn words(self) -> &'static str {
        match self {
            Badge::Bug => "ended by a bug of ours",
            Badge::UnprovedBroken => "unproved; does not hold",
            Badge::Broken => "does not hold",
            Badge::Unproved => "unproved; nothing was broken",
            Badge::Unmeasured => "nothing was broken, and not everything was measured",
            Badge::Holds => "holds",
        }
    }

    /// Returns its class in the style of the page.
    pub const fn class(self) -> &'static str {
        if let Badge::Holds = self { "good" } else { "bad" }
    }
}

impl<'a> Facts<'a> {
    /// Returns the facts about a part that ran, with the judgement of its run.
    pub fn of((name, session): &'a Named, ran: &'a Simulated, watch: &'a Watch) -> Facts<'a> {
        Facts {
            name,
            session,
            plan: &session.plan,
            run: &ran.run,
            hash: ran.hash,
            lives: &ran.lives,
            links: &ran.links,
            watch,
            verdict: session.judge(&ran.run),
        }
    }

    /// Returns what the records of its run said.
    pub fn outcome(&self) -> &Outcome {
        &self.run.outcome
    }

    /// Returns the verdict on its run.
    pub fn badge(&self) -> Badge {
        match &self.verdict {
            verdict if holds(self.session, self.run, verdict) => Badge::Holds,
            RunVerdict::Holds if self.session.proved => Badge::Unmeasured,
            RunVerdict::Holds => Badge::Unproved,
            RunVerdict::Broken(_) if self.session.proved => Badge::Broken,
            RunVerdict::Broken(_) => Badge::UnprovedBroken,
            RunVerdict::Bug(_) => Badge::Bug,
        }
    }

    /// Returns everything that was broken or not measured, as sentences.
    pub fn findings(&self) -> Vec<String> {
        let unmeasured = self.session.unmeasured(self.run);
        let unmeasured = unmeasured.into_iter().map(|what| format!("not measured: {what}"));
        self.verdict.findings().into_iter().chain(unmeasured).collect()
    }

    /// Returns the name of a place on the page: of `what` of this host.
    pub fn anchor(&self, kind: &str, what: &str) -> String {
        anchor(&[kind, self.name, what])
    }
}

/// Returns the name of a place on a page.
pub fn anchor(parts: &[&str]) -> String {
    let safe = |part: &&str| part.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    parts.iter().map(safe).collect::<Vec<String>>().join("-")
}

/// The page: of one host, or of several that ran together.
pub struct PageFacts<'a> {
    pub parts: Vec<Facts<'a>>,
    /// The connection of the parts, if there are several.
    pub joined: Option<&'a Joined>,
    pub network: Option<&'a (Hosts, NetworkPlan)>,
    pub request: &'a ReportRequest,
}

impl PageFacts<'_> {
    /// Returns the name of the system, or of the list of hosts.
    pub fn title(&self) -> String {
        let stem = self.request.system.file_stem().map(|it| it.to_string_lossy().into_owned());
        let listed = self.network.and(stem);
        let own = self.parts.first().map(|facts| facts.session.system.name.clone());
        listed.or(own).unwrap_or_default()
    }

    /// Returns a part as the page calls it: `host left`, `core 1`.
    pub fn called(&self, facts: &Facts<'_>) -> String {
        let noun = self.joined.map_or("system", Joined::noun);
        format!("{noun} {}", facts.name)
    }

    /// Returns the least good verdict of all parts.
    pub fn badge(&self) -> Badge {
        self.parts.iter().map(Facts::badge).min().unwrap_or(Badge::Unmeasured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_verdict_stands_first() {
        let badges = [Badge::Holds, Badge::Unmeasured, Badge::Broken, Badge::Unproved];
        assert_eq!(badges.into_iter().min(), Some(Badge::Broken));
        assert_eq!((Badge::Holds.class(), Badge::Unmeasured.class()), ("good", "bad"));
    }

    #[test]
    fn names_of_places_are_words() {
        assert_eq!(anchor(&["worst", "up-1", "a\"b"]), "worst-up_1-a_b");
    }
}
