//! Pipes whose reader locks a mutex that others hold.

use diapason_pipe::bill::{Basis, Bill, What};
use diapason_plan::Plan;
use diapason_system::parse;

/// A CAN interface, its server and a reader of 400 us in every 6 ms.
const USUAL: &str = include_str!("usual.toml");

/// A process that uses the mutex `m` on a VCPU of its own.
const OTHER: &str = "[[semaphore]]\nname = \"m\"\n\
    [[vcpu]]\nname = \"other\"\nbudget = \"1ms\"\nperiod = \"20ms\"\n\
    [[process]]\nname = \"beside\"\npriority = 1\nvcpu = \"other\"\nuses = [\"m\"]\n";

fn plan(text: &str) -> Plan {
    let system = parse("usual.toml", text).unwrap_or_else(|why| panic!("{why}"));
    Plan::of(&system, system.clock_hz)
}

/// Returns the usual system, in which this process uses the mutex, too, and these are the sections.
fn sharing(process: &str, sections: &[(&str, &str)]) -> Plan {
    let line = format!("[[process]]\nname = \"{process}\"\n");
    let text = match process {
        "usbd" => USUAL.replace("uses = [\"xhci\"", "uses = [\"m\", \"xhci\""),
        _ => USUAL.replace(&line, &format!("{line}uses = [\"m\"]\n")),
    };
    let mut text = text + OTHER;
    for (process, longest) in sections {
        text += &format!(
            "[[section]]\nprocess = \"{process}\"\nmutex = \"m\"\nlongest = \"{longest}\"\n"
        );
    }
    plan(&text)
}

fn refused(plan: &Plan) -> String {
    plan.findings.iter().map(|found| found.plain()).collect::<Vec<_>>().join("\n")
}

fn bill(plan: &Plan) -> &Bill {
    plan.pipes[0].bill.as_ref().unwrap_or_else(|why| panic!("{why:?}"))
}

#[test]
fn a_reader_helps_once_for_each_message() {
    let without = plan(&(USUAL.to_owned() + OTHER));
    assert!(without.holds(), "{}", refused(&without));
    let with = sharing("reader-4", &[("reader-4", "1us"), ("beside", "1us")]);
    assert!(with.holds(), "{}", refused(&with));
    let user = |plan: &Plan| bill(plan).item(What::User).unwrap();
    assert_eq!(user(&with).basis, Basis::Conformant);
    assert!(user(&with).value.0 >= user(&without).value.0 + 1_000);
    assert!(bill(&with).total > bill(&without).total);
}

#[test]
fn a_reader_that_would_wait_for_budget_is_refused() {
    let found = refused(&sharing("reader-4", &[("reader-4", "1us"), ("beside", "10us")]));
    let title = "`reader-4` may wait for budget while others hold the mutex `m`";
    assert!(found.contains(title) && found.contains("a larger budget"), "{found}");
}

#[test]
fn every_holder_says_how_long() {
    let found = refused(&sharing("reader-4", &[("reader-4", "1us")]));
    let title = "`brakes` has no bound: nothing says how long `beside` holds the mutex `m`";
    assert!(found.contains(title), "{found}");
    assert!(!found.contains("how long `reader-4` holds"), "{found}");
    let found = refused(&sharing("reader-4", &[]));
    assert!(found.contains("how long `reader-4` holds the mutex `m`"), "{found}");
}

#[test]
fn a_server_that_locks_with_others_is_refused() {
    let found = refused(&sharing("usbd", &[("usbd", "1us"), ("beside", "1us")]));
    let title = "`brakes` has no bound: `usbd` may wait for the mutex `m`, which no bill counts";
    assert!(found.contains(title), "{found}");
}
