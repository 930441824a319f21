//! The rules of `[[chain]]`: what follows from one, and what cannot be one.

use crate::common::problems;
use diapason_system::{ChainLink, ChainSpec, Handover, parse};

/// Returns a USB server with an interface, a pipe `in` read by `r`, a pipe `out` written by `w`, a
/// process `c` between them, one without VCPU (`bare`), and a mailbox, semaphores and a segment.
fn head() -> String {
    let mut text = "[system]\nname = \"s\"\n[[process]]\nname = \"usbd\"\npriority = 1\n\
                    uses = [\"xhci\"]\n"
        .to_owned();
    for name in ["r", "c", "w"] {
        text += &format!("[[process]]\nname = \"{name}\"\npriority = 1\nvcpu = \"v{name}\"\n");
        text += &format!("[[vcpu]]\nname = \"v{name}\"\nbudget = \"1ms\"\nperiod = \"10ms\"\n");
    }
    let pipe = |name: &str, ends: &str, channel: u64| {
        format!("[[pipe]]\nname = \"{name}\"\n{ends}\nchannel = {channel}\nrate = 100\n")
    };
    text + "[[process]]\nname = \"bare\"\npriority = 1\n\
            [[device]]\nname = \"xhci\"\npci = \"0c0330\"\nsize = \"16K\"\n\
            [[usb]]\nname = \"can\"\non = \"xhci\"\nmodel = \"usb-can\"\n\
            [[mailbox]]\nname = \"box\"\nmessages = 8\n\
            [[mailbox]]\nname = \"other\"\nmessages = 8\n\
            [[semaphore]]\nname = \"count\"\nkind = \"counting\"\n\
            [[semaphore]]\nname = \"lock\"\n\
            [[segment]]\nname = \"newest\"\nsize = \"4K\"\n"
        + &pipe("in", "from = \"can\"\nreader = \"r\"", 0)
        + &pipe("out", "to = \"can\"\nwriter = \"w\"", 1)
}

/// Line 1 is the header, 2 the name, 3 from, 4 to; then four lines of each link: its header, its
/// process, its `by`, and more.
fn chain(ends: [&str; 2], links: &[[&str; 3]]) -> String {
    let mut text =
        format!("[[chain]]\nname = \"way\"\nfrom = \"{}\"\nto = \"{}\"\n", ends[0], ends[1]);
    for [process, by, more] in links {
        text += &format!("[[chain.link]]\nprocess = \"{process}\"\nby = \"{by}\"\n{more}\n");
    }
    text
}

const WHOLE: [[&str; 3]; 2] = [["c", "newest", "every = \"5ms\""], ["w", "box", "work = \"9us\""]];

#[track_caller]
fn bad(chains: &str, (line, column): (usize, usize), title: &str, help: &str) {
    let head = head();
    let found = problems(&(head.clone() + chains));
    let items = found.items();
    assert_eq!(items.len(), 1, "{found}");
    assert_eq!(items[0].title, title, "{found}");
    assert!(items[0].help.contains(help), "{found}");
    assert_eq!((items[0].line, items[0].column), (head.lines().count() + line, column), "{found}");
}

/// A third process could take messages out of a mailbox or a ring, or write into them.
#[test]
fn only_the_threads_of_a_chain_use_what_hands_messages_over() {
    for object in ["newest", "box"] {
        let bare = "name = \"bare\"\npriority = 1\n";
        let used = head().replace(bare, &format!("{bare}uses = [\"{object}\"]\n"));
        let found = problems(&(used + &chain(["in", "out"], &WHOLE)));
        let title = format!("`bare` uses `{object}`, which belongs to others");
        assert_eq!(found.items().len(), 1, "{found}");
        assert_eq!(found.items()[0].title, title, "{found}");
    }
    let twice = problems(&(head() + &chain(["in", "out"], &[["c", "box", ""], WHOLE[1]])));
    assert!(twice.items().iter().any(|it| it.title == "`w` uses `box`, which belongs to others"));
    let own = "name = \"c\"\npriority = 1\n";
    let used = head().replace(own, &format!("{own}uses = [\"newest\", \"box\"]\n"));
    assert!(parse("f", &(used + &chain(["in", "out"], &WHOLE))).is_ok());
}

/// Among all that is wrong is this.
#[track_caller]
fn all(chains: &str, title: &str) {
    let found = problems(&(head() + chains));
    assert!(found.items().iter().any(|item| item.title == title), "{found}");
}

#[test]
fn a_chain_grants_what_hands_its_messages_over() {
    let system = parse("f", &(head() + &chain(["in", "out"], &WHOLE))).unwrap();
    let every_ns = 5_000_000;
    let sampled = Handover::State { every_ns };
    let mailed = Handover::Mailbox { messages: 8 };
    let link = |process, by: &str, handover, work_ns| ChainLink {
        process,
        by: by.into(),
        handover,
        work_ns,
    };
    let links = vec![link(2, "newest", sampled, None), link(3, "box", mailed, Some(9_000))];
    let (name, latency_ns) = ("way".into(), None);
    assert_eq!(system.chains, [ChainSpec { name, from: 0, to: Some(1), latency_ns, links }]);
    let users = |name: &str| {
        let uses = |p: &&diapason_system::ProcessSpec| p.uses.iter().any(|used| used == name);
        let found = system.processes.iter().filter(uses);
        found.map(|process| process.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!((users("newest"), users("box")), (svec(["r", "c"]), svec(["c", "w"])));
}

fn svec<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

#[test]
fn its_ends_are_pipes_that_lead_its_way() {
    let with = |ends| chain(ends, &WHOLE);
    bad(&with(["on", "out"]), (3, 8), "no pipe is called `on`", "did you mean `in`?");
    bad(&with(["out", "out"]), (3, 8), "`out` is no pipe from a device", "that has `from = \"…\"`");
    bad(&with(["in", "in"]), (4, 6), "`in` is no pipe to a device", "that has `to = \"…\"`");
    let short = chain(["in", "out"], &WHOLE[..1]);
    let title = "`c` is the last of the chain and does not write `out`";
    bad(&short, (6, 11), title, "add a `[[chain.link]]` for `w`, or remove `to`");
    let without = with(["in", "out"]).replace("from = \"in\"\n", "");
    bad(&without, (2, 8), "chain `way` has no `from`", "whose reader is its first thread");
}

#[test]
fn each_thread_has_a_vcpu_and_one_place() {
    let link = |process| chain(["in", "out"], &[[process, "other", ""], WHOLE[1]]);
    bad(&link("bare"), (6, 11), "`bare` is in a chain and has no VCPU", "without one no time");
    bad(&link("cc"), (6, 11), "no process named `cc` is declared", "did you mean `c`?");
    bad(&link("r"), (6, 11), "`r` has two places in chains", "a process of its own");
    let twice = chain(["in", "out"], &WHOLE) + &chain(["in", "out"], &WHOLE);
    all(&twice, "the chain `way` is declared twice");
    all(&twice, "`w` has two places in chains");
    let long = chain(["in", "out"], &[["c", "box", ""]; 4]);
    all(&long, "5 threads in a chain, the most is 4");
}

#[test]
fn what_hands_over_says_how() {
    let by = |by, more| chain(["in", "out"], &[["c", by, more], WHOLE[1]]);
    let state = "nothing says how often the value in `newest` is taken";
    bad(&by("newest", ""), (7, 6), state, "add `every = \"10ms\"`");
    let ring = "nothing says how many messages `count` may be behind";
    bad(&by("count", ""), (7, 6), ring, "add `slots = 16`");
    let nothing = "says nothing here";
    bad(&by("other", "every = \"5ms\""), (8, 9), &format!("`every` {nothing}"), "a mailbox wakes");
    bad(&by("other", "slots = 9"), (8, 9), &format!("`slots` {nothing}"), "`messages`");
    let lock = "`lock` is a mutex, which hands nothing over";
    bad(&by("lock", ""), (7, 6), lock, "name a mailbox, a counting semaphore or a segment");
    bad(&by("xhci", ""), (7, 6), "`xhci` is a device, which hands nothing over", "name a mailbox");
    bad(&by("bax", ""), (7, 6), "nothing named `bax` is declared", "did you mean `box`?");
}
