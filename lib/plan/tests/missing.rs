//! A plan names everything that a description lacks at once, and each thing once.

use diapason_plan::Plan;
use diapason_system::parse;

/// Pipes in both directions, and places for tuned ones.
const TEXT: &str = include_str!("../../../examples/tuned-output.toml");

/// Returns the refusals of the example without these works, or without any.
fn refusals(without: Option<&str>) -> Vec<String> {
    let parts = TEXT.split("\n[");
    let is_gone = |part: &str| {
        let named = without.is_none_or(|name| part.contains(&format!("name = \"{name}\"")));
        part.starts_with("[work]]") && named
    };
    let rest: Vec<&str> = parts.filter(|part| !is_gone(part)).collect();
    let text = rest.join("\n[");
    assert!(text.len() < TEXT.len());
    let system = parse("missing.toml", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
    let plan = Plan::of(&system);
    plan.findings.iter().map(|found| found.plain()).collect()
}

#[test]
fn missing_works_are_named_at_once_and_once() {
    let found = refusals(None);
    let all = "nothing says how long `usbd.receive` and `usbd.send` and `usbd.tune` and \
               `usbd.manage` take";
    assert!(found[0].contains(all), "{}", found[0]);
    let told = found.iter().filter(|found| found.contains("nothing says how long"));
    // The pipes and places say it once, and the start of the server lacks its own work.
    assert_eq!(told.count(), 2, "{found:#?}");
}

#[test]
fn no_visit_is_taken_to_take_no_time() {
    let found = refusals(Some("usbd.manage"));
    assert_eq!(found.len(), 1, "{found:#?}");
    let said = "`usbd` has no bound for finding its devices: nothing says how long `usbd.manage`";
    assert!(found[0].contains(said), "{}", found[0]);
}

#[test]
fn no_reader_is_taken_to_take_no_time() {
    let gateway = include_str!("../../../examples/can-gateway.toml");
    let udp = include_str!("../../../examples/udp.toml");
    for text in [gateway, udp] {
        let said: Vec<&str> = text.split_inclusive('\n').collect();
        let works = (0..said.len()).filter(|line| said[*line].starts_with("work = "));
        let mut tried = 0;
        for gone in works {
            let rest = [&said[..gone], &said[gone + 1..]].concat().concat();
            let system = parse("missing.toml", &rest).unwrap_or_else(|wrong| panic!("{wrong}"));
            let plan = Plan::of(&system);
            let found: Vec<String> = plan.findings.iter().map(|found| found.plain()).collect();
            let asked = "takes for a message";
            assert!(found.iter().any(|it| it.contains(asked)), "{gone}: {found:#?}");
            tried += 1;
        }
        assert!(tried > 1);
    }
}

/// Messages that come before somebody starts their reader would wait for that.
#[test]
fn an_end_that_nobody_starts_at_boot_is_refused() {
    let text = include_str!("../../../examples/can-gateway.toml");
    let own = "\n[[process]]\nname = \"reader-0\"\n";
    assert!(text.contains(own));
    let starter = "\n[[process]]\nname = \"starter\"\npriority = 1\nstarts = [\"reader-0\"]\n";
    let text = text.replace(own, &format!("{starter}{own}start = \"manual\"\n"));
    let plan = Plan::of(&parse("f", &text).unwrap_or_else(|wrong| panic!("{wrong}")));
    let found: Vec<String> = plan.findings.iter().map(|found| found.plain()).collect();
    let said = "`engine` has no bound: `reader-0` runs only when another process starts it";
    assert!(found.iter().any(|it| it.contains(said)), "{found:#?}");
}
