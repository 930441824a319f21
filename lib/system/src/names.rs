//! Names: what they may look like, that each means one thing, and what they mean.

use crate::declared::Declared;
use crate::diagnostics::{Problem, Report};
use crate::limits::NAME_CHARACTERS_MAX;
use crate::source::{At, Span};
use crate::suggest::nearest;
use diapason_abi::Key;
use diapason_abi::key::SERVER;
use std::collections::BTreeMap;
use std::fmt;

/// The value of `supervisor` that means nobody.
pub(crate) const NOBODY: &str = "none";
/// The process that supervises the others unless they say otherwise.
pub(crate) const SUPERVISOR: &str = "supervisor";
/// Ends the names of the mailboxes for fault reports.
pub(crate) const FAULTS: &str = ".faults";

/// Returns the name of the mutex that the server of `mailbox` holds.
pub(crate) fn server_of(mailbox: &str) -> String {
    format!("{mailbox}{SERVER}")
}

/// Returns the name of the mailbox with the fault reports for `supervisor`.
pub(crate) fn faults_of(supervisor: &str) -> String {
    format!("{supervisor}{FAULTS}")
}

/// Returns the name of a message of a device, as programs wait for it.
pub(crate) fn message_of(device: &str, number: u16) -> String {
    format!("{device}.{number}")
}

/// Returns the mistake in `name` as a name, and the remedy.
pub fn fault(name: &str) -> Option<(String, String)> {
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    let length = name.chars().count();
    if length == 0 {
        let help =
            format!("write 1 to {NAME_CHARACTERS_MAX} characters of a-z, 0-9, `.`, `_`, `-`");
        return Some(("the name is empty".to_owned(), help));
    }
    if let Some(bad) = name.chars().find(|c| !fine(*c)) {
        let title = format!("`{bad}` cannot be in a name");
        return Some((title, format!("write `{}`: a-z, 0-9, `.`, `_`, `-`", tidied(name))));
    }
    if length > NAME_CHARACTERS_MAX {
        let title = format!("a name of {length} characters is too long");
        return Some((title, format!("shorten it to {NAME_CHARACTERS_MAX} characters")));
    }
    if name.ends_with(SERVER) {
        let title = format!("names ending in `{SERVER}` are reserved");
        let help = "choose another; the mutex of a mailbox's server is declared automatically";
        return Some((title, help.to_owned()));
    }
    if name.ends_with(FAULTS) {
        let title = format!("names ending in `{FAULTS}` are reserved");
        let help = "choose another; the mailbox for fault reports is declared automatically";
        return Some((title, help.to_owned()));
    }
    (name == NOBODY).then(|| {
        let title = format!("the name `{NOBODY}` is reserved");
        (title, format!("choose another; `supervisor = \"{NOBODY}\"` means nobody"))
    })
}

/// Returns the nearest name with permitted characters only.
fn tidied(name: &str) -> String {
    let fine = |c: char| if c.is_ascii_alphanumeric() || "._".contains(c) { c } else { '-' };
    name.chars().map(|c| fine(c).to_ascii_lowercase()).take(NAME_CHARACTERS_MAX).collect()
}

/// The kinds of things that have names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Process,
    Semaphore,
    Condition,
    Mailbox,
    Segment,
    Device,
    Doorbell,
    Vcpu,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Process => "process",
            Kind::Semaphore => "semaphore",
            Kind::Condition => "condition",
            Kind::Mailbox => "mailbox",
            Kind::Segment => "segment",
            Kind::Device => "device",
            Kind::Doorbell => "doorbell",
            Kind::Vcpu => "VCPU",
        })
    }
}

/// The meaning of a name.
#[derive(Clone, Debug)]
pub(crate) struct Meaning {
    pub kind: Kind,
    /// The object's place among its kind.
    pub index: usize,
    pub span: Span,
}

/// All names of a description.
pub(crate) struct Names<'d>(BTreeMap<&'d str, Meaning>);

impl<'d> Names<'d> {
    /// Collect them; of two that are equal the first counts and the second is reported.
    pub fn collect(declared: &'d Declared, report: &mut Report) -> Names<'d> {
        let mut names = Names(BTreeMap::new());
        for (name, meaning) in everything(declared) {
            if let Some(first) = names.0.get(name) {
                let title = format!("the name `{name}` is declared twice");
                let help =
                    "rename one: processes, objects, segments, devices and VCPUs share one space";
                let problem = Problem::new(&meaning.span, title, help);
                report.push(problem.with(&first.span, format!("first, the {}", first.kind)));
            } else {
                names.0.insert(name, meaning);
            }
        }
        names
    }

    /// Returns what `name` means, if anything has that name.
    pub fn get(&self, name: &str) -> Option<&Meaning> {
        self.0.get(name)
    }

    /// Returns the index of the process of that name.
    pub fn process(&self, name: &str) -> Option<usize> {
        self.get(name).filter(|meaning| meaning.kind == Kind::Process).map(|meaning| meaning.index)
    }

    /// Returns the index of the VCPU of that name.
    pub fn vcpu(&self, name: &str) -> Option<usize> {
        self.get(name).filter(|meaning| meaning.kind == Kind::Vcpu).map(|meaning| meaning.index)
    }

    /// Returns whether `name` is that of a process; reports it if not.
    pub fn is_process(&self, name: &At<String>, report: &mut Report) -> bool {
        self.is(Kind::Process, name, report)
    }

    /// Returns whether `name` is of this kind; reports it if not.
    pub fn is(&self, wanted: Kind, name: &At<String>, report: &mut Report) -> bool {
        let At { value, span } = name;
        let (title, other_help) = match self.get(value).map(|meaning| meaning.kind) {
            Some(kind) if kind == wanted => return true,
            Some(kind) => {
                let title = format!("`{value}` is a {kind}, not a {wanted}");
                (title, format!("name a {wanted} here"))
            }
            None => {
                let title = format!("no {wanted} named `{value}` is declared");
                let list = wanted.to_string().to_lowercase();
                (title, format!("declare it: `[[{list}]]` with `name = \"{value}\"`"))
            }
        };
        let help = match self.nearest(value, |kind| kind == wanted) {
            Some(near) => format!("did you mean `{near}`?"),
            None => other_help,
        };
        report.push(Problem::new(span, title, help));
        false
    }

    /// Returns the nearest name to `word` among those of the kinds wanted.
    pub fn nearest(&self, word: &str, wanted: impl Fn(Kind) -> bool) -> Option<&'d str> {
        let candidates = self.0.iter().filter(|(_, meaning)| wanted(meaning.kind));
        nearest(word, candidates.map(|(name, _)| *name))
    }
}

/// Reports the second and further occurrences of a word in a list.
pub(crate) fn duplicates(key: &str, list: &[At<String>], report: &mut Report) {
    let mut first: BTreeMap<&str, &Span> = BTreeMap::new();
    for At { value, span } in list {
        if let Some(first) = first.get(value.as_str()) {
            let title = format!("`{value}` is in `{key}` twice");
            let problem = Problem::new(span, title, "remove one of the two");
            report.push(problem.with(first, "first here"));
        } else {
            first.insert(value, span);
        }
    }
}

/// Returns every usable name, in the order of the boot archive, with what it means.
fn everything(declared: &Declared) -> impl Iterator<Item = (&str, Meaning)> {
    let d = declared;
    fn of<'d>(
        kind: Kind,
        names: impl Iterator<Item = &'d At<String>>,
    ) -> impl Iterator<Item = (&'d str, Meaning)> {
        names.enumerate().map(move |(index, name)| {
            (name.value.as_str(), Meaning { kind, index, span: name.span.clone() })
        })
    }
    of(Kind::Process, d.processes.iter().map(|p| &p.name))
        .chain(of(Kind::Semaphore, d.semaphores.iter().map(|o| &o.name)))
        .chain(of(Kind::Condition, d.conditions.iter().map(|o| &o.name)))
        .chain(of(Kind::Mailbox, d.mailboxes.iter().map(|o| &o.name)))
        .chain(of(Kind::Segment, d.segments.iter().map(|o| &o.name)))
        .chain(of(Kind::Device, d.devices.iter().map(|o| &o.name)))
        .chain(of(Kind::Doorbell, d.doorbells.iter().map(|o| &o.name)))
        .chain(of(Kind::Vcpu, d.vcpus.iter().map(|o| &o.name)))
        .filter(|(name, _)| !name.is_empty())
}

/// Reports two names with the same key, because the kernel compares keys and not names, or with the
/// key that means "private". `key_of` is a parameter so that this can be tested.
pub(crate) fn check_keys(declared: &Declared, key_of: fn(&str) -> Key, report: &mut Report) {
    let mut keys: BTreeMap<Key, String> = BTreeMap::from([(Key::PRIVATE, String::new())]);
    for (name, meaning) in everything(declared) {
        let faults = (meaning.kind == Kind::Process).then(|| faults_of(name));
        let messages = match meaning.kind {
            Kind::Device => declared.devices.get(meaning.index).map_or(0, |d| d.what.messages()),
            _ => 0,
        };
        let messages = (0..messages).map(|number| message_of(name, number));
        for name in [name.to_owned()].into_iter().chain(faults).chain(messages) {
            let key = key_of(&name);
            match keys.get(&key) {
                Some(other) if *other != name => {
                    let title = format!("`{name}` has the same 64-bit key as `{other}`");
                    let help = "rename one of them: the kernel tells names apart by their keys";
                    report.push(Problem::new(&meaning.span, title, help));
                }
                _ => {
                    keys.insert(key, name);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Diagnostics, read, source::Source, syntax};

    #[test]
    fn equal_keys_are_reported_by_name() {
        let text = "[[process]]\nname = \"ab\"\npriority = 1\n[[mailbox]]\nname = \"ba\"\n";
        let mut report = Report::new();
        let declared = read::declarations(&syntax::table(text, &mut report), &mut report);
        let mut report = Report::new();
        let bytes_added_up = |name: &str| Key(name.bytes().map(u64::from).sum());
        check_keys(&declared, bytes_added_up, &mut report);
        let found = Diagnostics::new(Source::new("f", text), report);
        let items = found.items();
        assert_eq!(items.len(), 1);
        assert_eq!(items[0].title, "`ba` has the same 64-bit key as `ab`");
        assert_eq!((items[0].line, items[0].column), (5, 8));
    }

    #[test]
    fn the_private_key_is_nobodys_name() {
        let text = "[[mailbox]]\nname = \"ba\"\n";
        let mut report = Report::new();
        let declared = read::declarations(&syntax::table(text, &mut report), &mut report);
        let mut report = Report::new();
        check_keys(&declared, |_| Key::PRIVATE, &mut report);
        assert!(!report.is_empty());
    }

    #[test]
    fn the_suggested_name_is_a_name() {
        for name in ["Sensor A", "µ", "a/b", "ÄÖÜ"] {
            assert!(fault(name).is_some());
            assert_eq!(fault(&tidied(name)), None, "{name}");
        }
    }
}
