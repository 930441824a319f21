//! `[usbd]` and `explain`: a table stands for the USB server, and what a description says itself
//! stays.

use diapason_system::{Description, Diagnostics, ServerSpec, System, explained, parse, parse_any};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

const READER: &str = "\
[system]
name = \"s\"

[[process]]
name = \"reader\"
priority = 30
vcpu = \"reading\"

[[vcpu]]
name = \"reading\"
budget = \"100us\"
period = \"2500us\"

[[pipe]]
name = \"engine\"
from = \"interface\"
reader = \"reader\"
rate = 500

[[usb]]
name = \"interface\"
on = \"xhci\"
model = \"usb-can\"
channels = 2

[usbd]
";

fn nothing(_: &str) -> Result<(String, String), String> {
    Err("there is none".to_owned())
}

#[track_caller]
fn read(text: &str) -> System {
    parse("s.toml", text).unwrap()
}

#[track_caller]
fn shown(text: &str) -> String {
    explained("s.toml", text, nothing).unwrap()
}

/// Returns a system without the places of its text.
fn meaning(system: &System) -> String {
    let shown = format!("{system:?}");
    shown.split("origin: ").next().unwrap().to_owned()
}

#[test]
fn a_line_stands_for_the_server() {
    let system = read(READER);
    assert!(system.unservable().is_empty());
    let usbd = system.processes.iter().find(|process| process.name == "usbd").unwrap();
    assert_eq!((usbd.threads, usbd.semaphores, usbd.events, usbd.heap), (2, 3, 2, 128 << 10));
    assert!(shown(READER).contains("serves = [\"reading\"]"));
    // It stands where the table stands.
    let (before, _) = READER.split_once("[[process]]").unwrap();
    let first = format!("{before}[usbd]\n{}", &READER[before.len()..READER.len() - 7]);
    assert_eq!(read(&first).processes[0].name, "usbd");
    assert_eq!(system.processes[0].name, "reader");
}

#[test]
fn what_is_plugged_in_and_promised_decides() {
    let more = "[[process]]\nname = \"writer\"\npriority = 1\nvcpu = \"writing\"\n\
                [[vcpu]]\nname = \"writing\"\nbudget = \"100us\"\nperiod = \"10ms\"\n\
                [[pipe]]\nname = \"out\"\nto = \"interface\"\nchannel = 1\nwriter = \"writer\"\n\
                rate = 10\n[[usb]]\nname = \"hub\"\non = \"xhci\"\nport = 2\nmodel = \"hub\"\n\
                [[usb]]\nname = \"thermometer\"\nbehind = \"hub\"\nport = 1\nmodel = \"sensor\"\n\
                [[usb]]\nname = \"second\"\nbehind = \"hub\"\nport = 2\nmodel = \"usb-can\"\n\
                channels = 1\n[[usb]]\nname = \"keys\"\nbehind = \"hub\"\nport = 3\n\
                model = \"keyboard\"\n";
    let text = format!("{READER}{more}");
    let system = read(&text);
    assert!(system.unservable().is_empty());
    let shown = shown(&text);
    for line in [
        "settings.serves = [\"can\", \"sensors\", \"keyboards\", \"hubs\"]",
        "threads = 6 ",
        "irqs = 5 ",
        "serves = [\"reading\", \"writing\"]",
        "serves = [\"writing\"]",
        "name = \"usb-receive1\"",
        "name = \"usbd.send\"",
        "name = \"keyboard.ready\"",
        "size = \"64K\"",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    assert_eq!(meaning(&read(&shown)), meaning(&system));
}

#[test]
fn what_the_description_says_itself_stays() {
    let own = "stack = \"56K\"\nsays = [\"devices\"]\nuses = [\"extra\"]\nrestart = 3\n\
               [[process]]\nname = \"supervisor\"\npriority = 63\n\
               [[semaphore]]\nname = \"extra\"\n\
               [[vcpu]]\nname = \"usb-receive\"\nutilization = \"22%\"\n\
               [[work]]\nname = \"usbd.receive\"\nworst = \"5us\"\n";
    let text = format!("{READER}{own}");
    let shown = shown(&text);
    for line in [
        "stack = \"56K\"                            # s.toml:27",
        "settings.says = [\"devices\"]              # s.toml:28",
        "utilization = \"22%\"                      # s.toml:38",
        "kind = \"io\"                              # [usbd]: a bottom half",
        "\"usb-receive\", \"extra\"]",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    // A work stays as it is: the shortest time is no longer than the longest.
    assert_eq!(shown.matches("best = ").count(), 1, "{shown}");
    assert_eq!(meaning(&read(&shown)), meaning(&read(&text)));
}

#[test]
fn a_mistake_in_the_table_is_said_once_and_there() {
    let text = format!("{READER}heap = \"5\"\nsreves = [\"can\"]\nlinks = [999]\n");
    let found = parse("s.toml", &text).unwrap_err();
    let lines: Vec<usize> = found.items().iter().map(|item| item.line).collect();
    assert_eq!(lines, [27, 28, 29], "{found}");
    assert!(found.items()[1].help.contains("`serves`"), "{found}");
    let without = parse("s.toml", &READER.replace("[usbd]\n", "")).unwrap_err();
    assert!(without.items().iter().all(|item| item.help.contains("add `[usbd]`")), "{without}");
    // Other mistakes are refused, too.
    let text = READER.replace("budget = \"100us\"", "budget = \"100us\"\nkind = \"io\"");
    assert!(parse("s.toml", &text).is_err());
    let small = READER.replace("name = \"s\"\n", "name = \"s\"\nmemory = \"8M\"\n");
    assert!(parse("s.toml", &small).is_err());
    assert!(parse("s.toml", &READER.replace("[usbd]", "usbd = 3")).is_err());
}

#[test]
fn an_explained_description_says_where_each_value_is_from() {
    let main = "include = [\"parts/usb.toml\"]\n".to_owned() + &READER.replace("[usbd]\n", "");
    let part = "[usbd]\nheap = \"256K\"\n\n[[work]]\nname = \"own\"\nworst = \"1us\"\n";
    let find = |name: &str| match name {
        "parts/usb.toml" => Ok(("the/parts/usb.toml".to_owned(), part.to_owned())),
        _ => Err("there is none".to_owned()),
    };
    let shown = explained("s.toml", &main, find).unwrap();
    assert!(shown.contains("heap = \"256K\"                            # the/parts/usb.toml:2"));
    assert!(shown.contains("name = \"own\"                             # the/parts/usb.toml:5"));
    assert!(shown.contains("#   segment `can0`, 12K: reader, usbd"), "{shown}");
    let whole = parse_any("s.toml", &main, find).map(|it| format!("{it:?}").contains("usb-manage"));
    assert!(whole.unwrap() && shown.contains("[usbd]: 8 wake-ups of 50us in 2500us"), "{shown}");
    assert!(explained("s.toml", "[system]\n", nothing).is_err());
    let list = "[[host]]\nname = \"a\"\nsystem = \"a.toml\"\n";
    assert!(explained("l.toml", list, nothing).unwrap().contains("system = \"a.toml\""));
    assert!(explained("l.toml", "[[host]]\nname = [\n", nothing).is_err());
}

/// Returns the descriptions below a folder of the checkout: their paths and texts.
fn below(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(below(&path));
        } else if path.extension().is_some_and(|it| it == "toml")
            && !path.ends_with("manifest.toml")
        {
            let text = fs::read_to_string(&path).unwrap();
            all.push((path, text));
        }
    }
    all
}

/// Returns what a description says, of one host or of several, without places.
fn meanings(path: &Path, text: &str) -> Option<Vec<String>> {
    let find = |name: &str| {
        let path = path.parent().unwrap().join(name);
        let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
        Ok((path.display().to_string(), text))
    };
    Some(match parse_any("s.toml", text, find).ok()? {
        Description::One(system) => vec![meaning(&system)],
        Description::Cores(cores) => cores.iter().map(meaning).collect(),
        Description::Several(list) => {
            let mut all = vec![format!("{:?} {:?} {:?}", list.cables, list.leader, list.flows)];
            all.extend(list.hosts.iter().map(|host| format!("{} {:?}", host.name, host.depends)));
            all.extend(list.hosts.iter().map(|host| meaning(&host.system)));
            all
        }
    })
}

/// A plan is a function of the system, so what is planned of a description and of what it became is
/// the same, but for lines.
#[test]
fn every_description_means_what_it_became() {
    let home = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut whole, mut shorthands) = (0, 0);
    for folder in ["examples", "tests", "cli/templates", "cli/tests"] {
        for (path, text) in below(&home.join(folder)) {
            let Some(expected) = meanings(&path, &text) else { continue };
            let find = |name: &str| {
                let path = path.parent().unwrap().join(name);
                Ok((name.to_owned(), fs::read_to_string(path).unwrap()))
            };
            let shown = explained("s.toml", &text, find).unwrap();
            assert_eq!(meanings(&path, &shown), Some(expected), "{}\n{shown}", path.display());
            whole += 1;
            shorthands += usize::from(text.contains("\n[usbd]"));
        }
    }
    assert!(whole > 60 && shorthands > 3, "{whole} {shorthands}");
}

/// Every problem has a place and a remedy, whatever file it is in.
fn is_presentable(found: &Diagnostics) {
    assert!(!found.items().is_empty());
    for item in found.items() {
        assert!(item.line >= 1 && item.column >= 1 && !item.help.is_empty());
        assert!(["s.toml", "p.toml"].contains(&item.file), "{}", item.file);
    }
    assert!(!found.plain().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_change_of_a_letter_gets_an_answer(
        at in 0..READER.len() + 60, letter in "[\\[\\]{}a-z0-9=\"#.\n, é]{0,3}", whole: bool,
    ) {
        let tail = "stack = \"56K\"\n[[vcpu]]\nname = \"usb-send\"\nperiod = \"1ms\"\n";
        let mut text = format!("{READER}{tail}");
        let end = if whole { text.len() } else { (at + 3).min(text.len()) };
        text.replace_range(at.min(text.len())..end.max(at.min(text.len())), &letter);
        match explained("s.toml", &text, nothing) {
            Ok(shown) => prop_assert_eq!(meaning(&read(&shown)), meaning(&read(&text))),
            Err(found) => is_presentable(&found),
        }
    }

    #[test]
    fn any_part_gets_an_answer(
        part in "([\\[\\]{}a-z0-9=\"#.\n, é]|\\[\\[pipe\\]\\]|\n|name = ){0,40}",
    ) {
        let main = format!("include = [\"p\"]\n{READER}");
        let find = |_: &str| Ok(("p.toml".to_owned(), part.clone()));
        match explained("s.toml", &main, find) {
            Ok(shown) => prop_assert!(parse("s.toml", &shown).is_ok()),
            Err(found) => is_presentable(&found),
        }
    }
}

#[test]
fn double_brackets_are_the_only_mistake() {
    let found = parse("f", &READER.replace("[usbd]", "[[usbd]]")).unwrap_err();
    let titles: Vec<&str> = found.items().iter().map(|item| item.title).collect();
    assert_eq!(titles, ["`usbd` is not a single table"]);
}

/// The thread that manages waits for the lock of a bottom half on its own budget: 40 us, and 2 us
/// for each of the 32 frames that can have come, and of the 32 that can have gone.
#[test]
fn the_thread_that_manages_gets_a_lock_that_a_bottom_half_holds_for_long() {
    let pipe = |way: &str, end: &str, name: &str| {
        format!(
            "\n[[pipe]]\nname = \"{way}\"\n{way} = \"net\"\n{end} = \"{name}\"\nperiod = \"10ms\"\n\
             \n[[process]]\nname = \"{name}\"\npriority = 30\nvcpu = \"{name}-cpu\"\n\
             \n[[vcpu]]\nname = \"{name}-cpu\"\nbudget = \"100us\"\nperiod = \"5ms\"\n"
        )
    };
    let device = "\n[[usb]]\nname = \"net\"\non = \"xhci\"\nport = 2\nmodel = \"network\"\n\
                  takes = \"100us\"\ngap = \"10ms\"\n";
    let text = READER.replace("[usbd]", "");
    let text = text + &pipe("from", "reader", "hears") + &pipe("to", "writer", "tells") + device;
    let managing = |text: &str| {
        let system = read(text);
        let vcpu = system.vcpus.iter().find(|vcpu| vcpu.name == "usb-manage").unwrap();
        match vcpu.server {
            ServerSpec::Main { budget_ns, period_ns, .. } => (budget_ns, period_ns),
            ServerSpec::Io { .. } => panic!("{vcpu:?}"),
        }
    };
    assert_eq!(managing(&(text.clone() + "\n[usbd]\n")), (180_000, 4_500_000));
    assert_eq!(managing(READER), (100_000, 2_500_000), "usual");
    let own = "\n[[work]]\nname = \"usbd.network\"\nworst = \"9us\"\n\n[usbd]\n";
    assert_eq!(managing(&(text + own)), (100_000, 2_500_000), "it has messages in its work");
}
