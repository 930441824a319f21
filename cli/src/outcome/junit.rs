//! The verdict of a run as test cases, in the format of JUnit that services for builds read.
//!
//! Each promise that a run can measure is a case, and a finding about it is a failure of the case.
//! All other findings fail one case together. A promise that was not measured is skipped. A run
//! that is not proved fails a case, too.

use crate::outcome::{Assumptions, Finding, RunVerdict};
use std::fmt::Write;

#[derive(Clone, PartialEq, Eq, Debug)]
struct Case {
    kind: &'static str,
    name: String,
    outcome: CaseOutcome,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum CaseOutcome {
    Passed,
    /// The kinds of what failed, each with a sentence.
    Failed(Vec<(String, String)>),
    Skipped,
    /// The tool itself failed.
    Error(String),
}

/// The case of everything that is no case of its own.
const REST: &str = "system";

/// Returns the cases of a run.
fn cases(
    promised: &Assumptions,
    proved: bool,
    verdict: &RunVerdict,
    unmeasured: &[String],
) -> Vec<Case> {
    let pipes = promised.pipes.iter().map(|promise| ("pipe", &promise.name));
    let chains = promised.chains.iter().map(|promise| ("chain", &promise.name));
    let jobs = promised.jobs.iter().map(|promise| ("job", &promise.name));
    let bounded = promised.sockets.iter().filter(|promise| promise.bound.is_some());
    let sockets = bounded.map(|promise| ("socket", &promise.name));
    let bounded = promised.messages.iter().filter(|promise| promise.bound_ns.is_some());
    let messages = bounded.map(|promise| ("message", &promise.name));
    let bounded = promised.heard.iter().filter(|promise| promise.done_ns.is_some());
    let heard = bounded.map(|promise| ("heard", &promise.name));
    let case = |kind, name: &str, outcome| Case { kind, name: name.into(), outcome };
    let named = pipes.chain(chains).chain(sockets).chain(messages).chain(heard).chain(jobs);
    let mut all: Vec<Case> =
        named.map(|(kind, name)| case(kind, name, CaseOutcome::Passed)).collect();
    all.extend(unmeasured.iter().map(|what| case("measured", what, CaseOutcome::Skipped)));
    all.push(case(REST, "no other promise is broken", CaseOutcome::Passed));
    if !proved {
        let why = ("unproved".to_owned(), "the plan does not hold".to_owned());
        all.push(case("plan", "the plan holds", CaseOutcome::Failed(vec![why])));
    }
    match verdict {
        RunVerdict::Holds => {}
        RunVerdict::Bug(text) => all.push(case(REST, "a run", CaseOutcome::Error(text.clone()))),
        RunVerdict::Broken(findings) => findings.iter().for_each(|finding| fail(&mut all, finding)),
    }
    all
}

/// Fails the case that a finding is about.
fn fail(cases: &mut [Case], finding: &Finding) {
    let (kind, of) = match finding {
        Finding::Alarm(alarm) => (alarm.name, Some(&*alarm.of)),
        Finding::Promise(_) => ("promise", None),
    };
    let own = |case: &Case| Some(&*case.name) == of && case.outcome != CaseOutcome::Skipped;
    let place = cases.iter().position(own);
    let place = place.or_else(|| cases.iter().position(|case| case.kind == REST));
    let failure = (kind.to_owned(), finding.to_string());
    let Some(case) = place.and_then(|place| cases.get_mut(place)) else { return };
    match &mut case.outcome {
        CaseOutcome::Failed(all) => all.push(failure),
        outcome => *outcome = CaseOutcome::Failed(vec![failure]),
    }
}

/// Returns the report on a run of so many nanoseconds.
#[must_use]
pub fn report(
    system: &str,
    promised: &Assumptions,
    proved: bool,
    verdict: &RunVerdict,
    unmeasured: &[String],
    time_ns: u64,
) -> String {
    let cases = cases(promised, proved, verdict, unmeasured);
    let count = |is: fn(&CaseOutcome) -> bool| cases.iter().filter(|it| is(&it.outcome)).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\"",
        cases.len(),
        count(|outcome| matches!(outcome, CaseOutcome::Failed(_))),
        count(|outcome| matches!(outcome, CaseOutcome::Error(_))),
    );
    let skipped = count(|outcome| *outcome == CaseOutcome::Skipped);
    let time = format!("{}.{:09}", time_ns / 1_000_000_000, time_ns % 1_000_000_000);
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    text += &format!("<testsuites {counts} time=\"{time}\">\n");
    // A whole report has no count of what was skipped in the schema of Jenkins.
    let name = escaped(system);
    let skipped = format!("skipped=\"{skipped}\" time=\"{time}\"");
    text += &format!("  <testsuite name=\"{name}\" {counts} {skipped}>\n");
    for Case { kind, name, outcome } in &cases {
        let (class, name) = (escaped(&format!("{system}.{kind}")), escaped(name));
        text += &format!("    <testcase classname=\"{class}\" name=\"{name}\"");
        text += &match outcome {
            CaseOutcome::Passed => "/>\n".into(),
            CaseOutcome::Skipped => ">\n      <skipped/>\n    </testcase>\n".into(),
            CaseOutcome::Error(what) => {
                format!(">\n      <error message=\"{}\"/>\n    </testcase>\n", escaped(what))
            }
            CaseOutcome::Failed(all) => format!(">\n{}    </testcase>\n", failures(all)),
        };
    }
    text + "  </testsuite>\n</testsuites>\n"
}

fn failures(all: &[(String, String)]) -> String {
    let one = |(kind, what): &(String, String)| {
        let (kind, what) = (escaped(kind), escaped(what));
        format!("      <failure type=\"{kind}\" message=\"{what}\"/>\n")
    };
    all.iter().map(one).collect()
}

/// Returns text as the value of an attribute. XML has no place for control characters.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' => safe.push_str("&#10;"),
            control if control.is_control() => {
                let _ = write!(safe, "{}", control.escape_default());
            }
            '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::RaisedAlarm;

    fn promised() -> Assumptions {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/templates/can-reader/system.toml");
        let text = std::fs::read_to_string(path).unwrap().replace("app-name", "reader");
        let system = diapason_system::parse("s", &text).unwrap();
        Assumptions::of(&crate::plan::Plan::of(&system))
    }

    fn alarm(name: &'static str, of: &str) -> Finding {
        let text = format!("{of} is <late> & \"odd\"\u{1b}");
        Finding::Alarm(RaisedAlarm { name, of: of.into(), observed: 2, assumed: 1, text })
    }

    #[test]
    fn what_is_broken_fails_its_own_case_once() {
        let findings = vec![
            alarm("pipe-late", "engine"),
            alarm("pipe-loss", "engine"),
            alarm("late-supply", "usb-receive"),
            Finding::Promise("p missed".into()),
        ];
        let text =
            report("car", &promised(), true, &RunVerdict::Broken(findings), &[], 2_500_000_000);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[2].contains("tests=\"2\" failures=\"2\" errors=\"0\" skipped=\"0\""),
            "{text}"
        );
        assert!(lines[2].contains("name=\"car\"") && lines[2].contains("time=\"2.500000000\""));
        assert_eq!(lines[3], "    <testcase classname=\"car.pipe\" name=\"engine\">");
        assert!(lines[4].contains("type=\"pipe-late\"") && lines[5].contains("type=\"pipe-loss\""));
        assert!(lines[4].contains("&lt;late&gt; &amp; &quot;odd&quot;\\u{1b}"), "{text}");
        assert!(lines[7].contains("name=\"no other promise is broken\""));
        assert_eq!(text.matches("<failure ").count(), 4);
        assert_eq!(text.matches("</testcase>").count(), 2);
    }

    #[test]
    fn what_is_not_proved_does_not_pass() {
        let text = report("car", &promised(), false, &RunVerdict::Holds, &[], 1);
        assert!(text.contains("tests=\"3\" failures=\"1\""), "{text}");
        assert!(text.contains("<failure type=\"unproved\" message=\"the plan does not hold\"/>"));
    }

    #[test]
    fn a_run_that_holds_passes_and_what_is_not_measured_is_skipped() {
        let good = report("car", &promised(), true, &RunVerdict::Holds, &[], 1);
        assert!(good.contains("tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"0\""), "{good}");
        let part = ["no job on VCPU v was done".to_owned()];
        let text = report("car", &promised(), true, &RunVerdict::Holds, &part, 1);
        assert!(text.contains("name=\"no job on VCPU v was done\">\n      <skipped/>"), "{text}");
        let bug = RunVerdict::Bug("it hangs".into());
        let text = report("car", &promised(), true, &bug, &[], 1);
        assert!(text.contains("errors=\"1\"") && text.contains("<error message=\"it hangs\"/>"));
    }
    /// An element in the schema of Jenkins: its name, inner elements, attributes that must be
    /// there, and attributes that may.
    type Allowed<'a> = (&'a str, &'a [&'a str], &'a [&'a str], &'a [&'a str]);

    const JENKINS: [Allowed<'static>; 6] = [
        ("testsuites", &["testsuite"], &[], &["name", "time", "tests", "failures", "errors"]),
        (
            "testsuite",
            &["testcase"],
            &["name", "tests"],
            &["failures", "errors", "time", "skipped", "hostname", "id"],
        ),
        (
            "testcase",
            &["skipped", "error", "failure"],
            &["name"],
            &["assertions", "time", "classname", "status"],
        ),
        ("skipped", &[], &[], &[]),
        ("error", &[], &[], &["type", "message"]),
        ("failure", &[], &[], &["type", "message"]),
    ];

    /// Returns what the schema of Jenkins has against a report whose elements have lines of their
    /// own.
    fn against_jenkins(text: &str) -> Vec<String> {
        let (mut wrong, mut open): (Vec<String>, Vec<&str>) = (Vec::new(), Vec::new());
        for line in text.lines().skip(1).map(str::trim) {
            if let Some(name) = line.strip_prefix("</") {
                let closed = open.pop();
                if closed != name.strip_suffix('>') {
                    wrong.push(format!("{closed:?} is closed by {line}"));
                }
                continue;
            }
            let inner = line.trim_start_matches('<').trim_end_matches('>').trim_end_matches('/');
            let (name, rest) = inner.split_once(' ').unwrap_or((inner, ""));
            let Some((_, _, needed, possible)) = JENKINS.iter().find(|it| it.0 == name) else {
                wrong.push(format!("an element {name}"));
                continue;
            };
            let above = open.last().and_then(|above| JENKINS.iter().find(|it| it.0 == *above));
            if above.map_or(name != "testsuites", |above| !above.1.contains(&name)) {
                wrong.push(format!("{name} in {:?}", open.last()));
            }
            let keys = rest.split("=\"").map(|part| part.rsplit([' ', '"']).next().unwrap());
            let keys: Vec<&str> = keys.filter(|key| !key.is_empty()).collect();
            let known = |key: &&&str| needed.contains(key) || possible.contains(key);
            wrong.extend(keys.iter().filter(|key| !known(key)).map(|key| format!("{name} {key}")));
            let missing = needed.iter().filter(|key| !keys.contains(key));
            wrong.extend(missing.map(|key| format!("{name} without {key}")));
            if !line.ends_with("/>") {
                open.push(name);
            }
        }
        wrong.extend(open.iter().map(|name| format!("{name} is not closed")));
        wrong
    }

    #[test]
    fn every_report_is_as_jenkins_reads_it() {
        let broken = RunVerdict::Broken(vec![alarm("pipe-late", "engine"), alarm("x", "y")]);
        let part = ["no job on VCPU v was done".to_owned()];
        for verdict in [RunVerdict::Holds, broken, RunVerdict::Bug("it <hangs>".into())] {
            for (proved, unmeasured) in [(true, &[][..]), (false, &part)] {
                let text = report("my car", &promised(), proved, &verdict, unmeasured, 7);
                assert_eq!(against_jenkins(&text), Vec::<String>::new(), "{text}");
            }
        }
        let text = report("car", &promised(), true, &RunVerdict::Holds, &[], 1);
        let odd = text.replace("<testsuites ", "<testsuites skipped=\"0\" ");
        assert_eq!(against_jenkins(&odd), ["testsuites skipped"]);
        let odd = text.replace(" tests=", " test=");
        assert_eq!(against_jenkins(&odd).len(), 3, "{odd}");
        let odd = text.replace("  </testsuite>\n", "");
        assert_eq!(against_jenkins(&odd).len(), 2, "{odd}");
    }
}
