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
    Plan::of(&system)
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

/// A job of 1 ms in every 10 ms asks a server, which may lock `m`, too.
fn asking(locks: bool, sections: &str) -> Plan {
    plan(&asker(locks, sections))
}

fn asker(locks: bool, sections: &str) -> String {
    let more = if locks { ", \"m\"" } else { "" };
    format!(
        "[system]\nname = \"s\"\n\
         [[process]]\nname = \"asks\"\npriority = 1\nvcpu = \"v\"\nuses = [\"box\"{more}]\n\
         [[process]]\nname = \"serves\"\npriority = 1\nuses = [\"box\"{more}]\n\
         [[process]]\nname = \"other\"\npriority = 1\nuses = [\"box\"{more}]\n\
         [[vcpu]]\nname = \"v\"\nbudget = \"3ms\"\nperiod = \"10ms\"\njob = \"1ms\"\n\
         [[semaphore]]\nname = \"m\"\n\
         [[mailbox]]\nname = \"box\"\nserver = \"serves\"\n{sections}"
    )
}

fn service(process: &str, longest: &str) -> String {
    format!(
        "[[section]]\nprocess = \"{process}\"\nmutex = \"box.server\"\n\
         longest = \"{longest}\"\n"
    )
}

#[test]
fn a_call_waits_for_one_service_of_a_less_urgent_caller() {
    let all = |longest| ["asks", "serves", "other"].map(|who| service(who, longest)).concat();
    let [short, long] = ["100us", "300us"].map(|longest| asking(false, &all(longest)));
    assert!(short.holds() && long.holds(), "{}", refused(&long));
    let help = |plan: &Plan| match &plan.jobs[0] {
        Some(Ok(bound)) => bound.help.0,
        other => panic!("{other:?}"),
    };
    assert_eq!(help(&long) - help(&short), 200_000);
    let found = refused(&asking(false, &service("asks", "100us")));
    let title = "nothing says how long `serves` holds the mutex `box.server`";
    assert!(found.contains(title), "{found}");
}

#[test]
fn a_server_with_two_threads_has_no_mutex_without_a_name() {
    let services = ["asks", "serves", "other"].map(|who| service(who, "100us")).concat();
    let with = |more: &str| {
        let line = "name = \"serves\"\npriority = 1\n";
        let text = asker(false, &services);
        assert!(text.contains(line));
        plan(&text.replace(line, &format!("{line}{more}")))
    };
    for more in ["threads = 2\n", "semaphores = 1\n"] {
        assert!(with(more).holds(), "{}", refused(&with(more)));
    }
    let found = refused(&with("threads = 2\nsemaphores = 1\n"));
    let title = "`serves` has threads on different VCPUs and semaphores without a name";
    assert!(found.contains(title), "{found}");
}

#[test]
fn what_a_server_locks_is_part_of_the_call() {
    let services = ["asks", "serves", "other"].map(|who| service(who, "100us")).concat();
    let inside = |process: &str, outer: &str| {
        format!("[[section]]\nprocess = \"{process}\"\nmutex = \"m\"\nlongest = \"10us\"\n{outer}")
    };
    let nested = "inside = \"box.server\"\n";
    let with = |caller: &str| {
        let others = inside("serves", nested) + &inside("other", nested);
        asking(true, &(services.clone() + &inside("asks", caller) + &others))
    };
    let found = refused(&with(""));
    let title = "`serves` may lock `m` while it serves `asks`";
    assert!(found.contains(title) && found.contains("`inside = \"box.server\"`"), "{found}");
    assert!(with(nested).holds(), "{}", refused(&with(nested)));
}

#[test]
fn a_server_may_lock_by_way_of_another_server() {
    let name = |server: &str| format!("{server}.server");
    let section = |process: &str, mutex: &str, outer: Option<&str>| {
        let inside = outer.map(|outer| format!("inside = \"{outer}\"\n")).unwrap_or_default();
        format!(
            "[[section]]\nprocess = \"{process}\"\nmutex = \"{mutex}\"\n\
             longest = \"50us\"\n{inside}"
        )
    };
    let asking = |outer: Option<&str>| {
        let mut text = String::from(
            "[system]\nname = \"s\"\n\
             [[process]]\nname = \"asks\"\npriority = 1\nvcpu = \"v\"\n\
             uses = [\"a\", \"b\", \"m\"]\n\
             [[process]]\nname = \"first\"\npriority = 1\nuses = [\"a\", \"b\", \"m\"]\n\
             [[process]]\nname = \"next\"\npriority = 1\nuses = [\"b\", \"m\"]\n\
             [[vcpu]]\nname = \"v\"\nbudget = \"3ms\"\nperiod = \"10ms\"\njob = \"1ms\"\n\
             [[semaphore]]\nname = \"m\"\n\
             [[mailbox]]\nname = \"a\"\nserver = \"first\"\n\
             [[mailbox]]\nname = \"b\"\nserver = \"next\"\n",
        );
        let (a, b) = (name("a"), name("b"));
        for process in ["asks", "first"] {
            text += &section(process, &a, None);
            text += &section(process, &b, Some(&a));
        }
        text += &section("next", &b, None);
        text += &section("first", "m", Some(&b));
        text += &section("next", "m", Some(&b));
        plan(&(text + &section("asks", "m", outer)))
    };
    let nested = asking(Some("b.server"));
    assert!(nested.holds(), "{}", refused(&nested));
    let found = refused(&asking(None));
    for server in ["first", "next"] {
        let title = format!("`{server}` may lock `m` while it serves `asks`");
        assert!(found.contains(&title), "{found}");
    }
}
