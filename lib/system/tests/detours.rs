//! Other ways around the hops of flows.

use diapason_system::{Description, Diagnostics, FlowWay, parse_any};

const BOARD: &str = "[system]\nname = \"board\"\nclock = \"100MHz\"\n[[device]]\nname = \"xhci\"\n\
                     pci = \"0c0330\"\nsize = \"16K\"\n[[vcpu]]\nname = \"v\"\nbudget = \"1ms\"\n\
                     period = \"10ms\"\n[[process]]\nname = \"on\"\npriority = 1\nvcpu = \"v\"\n";

/// A triangle of `a`, `b` and `c`, and a flow from `a` to `b` that may go by `c`.
const LIST: &str = r#"
[[host]]
name = "a"
system = "board.toml"
[[host]]
name = "b"
system = "board.toml"
[[host]]
name = "c"
system = "board.toml"
[[cable]]
name = "ab"
ends = ["a:xhci:1", "b:xhci:1"]
[[cable]]
name = "ac"
ends = ["a:xhci:2", "c:xhci:1"]
[[cable]]
name = "cb"
ends = ["c:xhci:2", "b:xhci:2"]
[[flow]]
name = "f"
from = "a:on"
bytes = 64
period = "2ms"
[[flow.hop]]
process = "b:on"
by = "ab"
slots = 4
patience = "3ms"
[[flow.hop.otherwise]]
process = "c:on"
by = "ac"
slots = 2
[[flow.hop.otherwise]]
process = "b:on"
by = "cb"
slots = 3
work = "5us"
"#;

fn read(text: &str) -> Result<Description, Diagnostics> {
    parse_any("hosts.toml", text, |file: &str| Ok((file.to_owned(), BOARD.to_owned())))
}

#[test]
fn a_hop_has_another_way() {
    let Ok(Description::Several(hosts)) = read(LIST) else { panic!("{:?}", read(LIST)) };
    let flow = &hosts.flows[0];
    let [detour] = &flow.detours[..] else { panic!("{:?}", flow.detours) };
    assert_eq!((detour.hop, detour.patience_ns, flow.hops.len()), (0, 3_000_000, 1));
    let steps =
        detour.hops.iter().map(|step| (step.way, step.to.host, step.slots, step.to.work_ns));
    let steps: Vec<_> = steps.collect();
    let by = FlowWay::Cable;
    assert_eq!(steps, [(by(1), 2, 2, None), (by(2), 1, 3, Some(5_000))]);
    assert_eq!(flow.most_cables(), 2);
}

/// Checks that the list with one text for another is refused there.
#[track_caller]
fn refused(from: &str, to: &str, line: usize, title: &str, help: &str) {
    assert!(LIST.contains(from), "{from}");
    let found = read(&LIST.replacen(from, to, 1)).unwrap_err();
    let [item] = found.items()[..] else { panic!("{found}") };
    assert_eq!((item.line, item.title, item.help), (line, title, help));
}

#[test]
fn mistakes_of_another_way_are_found_where_they_are() {
    refused(
        "patience = \"3ms\"\n",
        "",
        25,
        "`otherwise` without `patience`",
        "add `patience = \"5ms\"` to the hop: a message that its cable has not taken for so long \
         lets later ones go the other way",
    );
    let (alone, _) = LIST.split_once("[[flow.hop.otherwise]]").unwrap();
    let found = read(alone).unwrap_err();
    assert_eq!(
        (found.items()[0].line, found.items()[0].title),
        (29, "`patience` without another way")
    );
    let direct = "[[flow.hop.otherwise]]\nprocess = \"b:on\"\nby = \"ab\"\nslots = 4\n";
    let found = read(&format!("{alone}{direct}")).unwrap_err();
    let said = (found.items()[0].line, found.items()[0].title);
    assert_eq!(said, (32, "the other way uses the cable that it is to go around"));
    let short = "[[flow.hop.otherwise]]\nprocess = \"c:on\"\nby = \"ac\"\nslots = 4\n";
    let found = read(&format!("{alone}{short}")).unwrap_err();
    let item = found.items()[0];
    assert_eq!((item.line, item.title), (31, "the other way does not lead to `b:on`"));
    assert_eq!(item.help, "add the steps from there to `b:on`, where the hop leads");
    refused("by = \"cb\"", "by = \"bc\"", 36, "no cable is called `bc`", "did you mean `ac`?");
    refused(
        "by = \"ac\"",
        "by = \"cb\"",
        32,
        "`cb` does not lead from `a` to `c`",
        "write `by = \"ac\"`",
    );
    refused(
        "work = \"5us\"",
        "patience = \"5us\"",
        38,
        "unknown key `patience` in [[flow.hop.otherwise]]",
        "it has `process`, `by`, `slots` and `work`",
    );
}

proptest::proptest! {
    /// Every text is a list of hosts, or is refused with a place and a remedy.
    #[test]
    fn any_text_is_hosts_or_refused(at in 280usize..549, cut in 0usize..40, new in ".{0,6}") {
        let characters: Vec<char> = LIST.chars().collect();
        let at = at.min(characters.len());
        let end = (at + cut).min(characters.len());
        let mut text: String = characters[..at].iter().collect();
        text += &new;
        text.extend(&characters[end..]);
        if let Err(found) = read(&text) {
            let items = found.items();
            proptest::prop_assert!(!items.is_empty());
            proptest::prop_assert!(items.iter().all(|item| !item.help.is_empty()));
        }
    }
}
