//! `topologies`: networks of hosts joined by debug cables ([USB 2023, §4.1.2]): the order of events
//! of figure 5, the mistakes of figure 6, and hosts that get power in any order.

mod all;
mod net;
mod node;

use crate::{Effort, Progress, ReproductionReport, Row};
use diapason::table::{Align, TextTable};
use diapason::{Failure, Workspace, metal};
use diapason_pipe::measured::NetworkStep::{self, Enable, Enumerate, Enumerated};
use net::{Net, Ran, Shape};

/// A network with right lists, and what the text says must come before what.
struct Right {
    name: &'static str,
    shape: Shape,
    /// As the text writes it.
    written: &'static str,
    /// Events that come before others: the number of a host, and what it does.
    order: &'static [[(usize, NetworkStep); 2]],
}

/// A network with wrong lists.
struct Wrong {
    name: &'static str,
    shape: Shape,
    what: &'static str,
    /// Hosts that look again set it right: every run ends in the wanted network.
    resolves: bool,
}

const PLAIN: Shape = Shape {
    cables: &[],
    bridges: &[],
    hosts: 4,
    leader: None,
    depends: &[],
    dark: &[],
    look_everywhere: false,
};
const STAR: Shape = Shape { cables: &[(2, 1), (3, 1)], hosts: 3, ..PLAIN };
const TREE: Shape = Shape { cables: &[(1, 3), (2, 3), (3, 4)], ..PLAIN };
const RING: Shape = Shape { cables: &[(1, 2), (2, 3), (3, 4), (4, 1)], leader: Some(1), ..PLAIN };

const RIGHT: [Right; 3] = [
    Right {
        name: "fig5a",
        shape: STAR,
        written: "hosts 2 and 3: enum, enable; host 1: enum",
        order: &[
            [(2, Enumerated), (2, Enable)],
            [(3, Enumerated), (3, Enable)],
            [(2, Enable), (1, Enumerate)],
            [(3, Enable), (1, Enumerate)],
        ],
    },
    Right {
        name: "fig5b",
        shape: TREE,
        written: "hosts 1 and 2: enum, enable; host 3: enum, enable; host 4: enum",
        order: &[
            [(1, Enumerated), (1, Enable)],
            [(2, Enumerated), (2, Enable)],
            [(1, Enable), (3, Enumerate)],
            [(2, Enable), (3, Enumerate)],
            [(3, Enumerated), (3, Enable)],
            [(3, Enable), (4, Enumerate)],
        ],
    },
    Right {
        name: "fig5c",
        shape: RING,
        written: "host 1: enable; hosts 2, 3, 4: enum, enable; host 1: enum",
        order: &[
            [(1, Enable), (2, Enumerate)],
            [(2, Enumerated), (2, Enable)],
            [(2, Enable), (3, Enumerate)],
            [(3, Enumerated), (3, Enable)],
            [(3, Enable), (4, Enumerate)],
            [(4, Enumerated), (4, Enable)],
            [(4, Enable), (1, Enumerate)],
        ],
    },
];

const WRONG: [Wrong; 5] = [
    Wrong {
        name: "fig6a",
        shape: Shape { depends: &[(1, &[2])], ..STAR },
        what: "host 1 does not wait for host 3",
        resolves: true,
    },
    Wrong {
        name: "fig6b",
        shape: Shape { leader: Some(3), bridges: &[(1, 2)], look_everywhere: true, ..TREE },
        what: "host 3 leads, and hosts 1 and 2 look at all ports for a bridge",
        resolves: false,
    },
    Wrong {
        name: "fig6c",
        shape: Shape {
            depends: &[(1, &[]), (2, &[]), (3, &[]), (4, &[])],
            look_everywhere: true,
            ..RING
        },
        what: "nobody waits, and all look at all ports",
        resolves: false,
    },
    Wrong {
        name: "no-leader",
        shape: Shape { leader: None, ..RING },
        what: "each waits for the one before, and nobody leads",
        resolves: false,
    },
    Wrong {
        name: "dark",
        shape: Shape { dark: &[2], ..TREE },
        what: "host 2 never enables",
        resolves: false,
    },
];

/// Runs of each network.
const fn runs(effort: Effort) -> u64 {
    match effort {
        Effort::Quick => 10,
        Effort::Full => 100,
        Effort::Long => 1_000,
    }
}

/// Compares each network of both figures, and reports on all of them.
pub fn reproduce(effort: Effort, progress: &Progress) -> Result<ReproductionReport, Failure> {
    eprintln!("building the programs");
    let built = metal::build(&Workspace::find()?)?;
    let (mut rows, mut table) = (Vec::new(), table());
    let count = runs(effort);
    for (done, right) in RIGHT.iter().enumerate() {
        progress.at("networks", done, RIGHT.len() + WRONG.len());
        let net = Net::new(&right.shape, &built)?;
        let ran = (0..count).map(|seed| net.run(seed)).collect::<Result<Vec<Ran>, Failure>>()?;
        rows.extend(judged(right, &net, &ran));
        table.row(described(right.name, "right", &ran));
    }
    for (done, wrong) in WRONG.iter().enumerate() {
        progress.at("networks", RIGHT.len() + done, RIGHT.len() + WRONG.len());
        let net = Net::new(&wrong.shape, &built)?;
        let ran = (0..count).map(|seed| net.run(seed)).collect::<Result<Vec<Ran>, Failure>>()?;
        rows.extend(found(wrong, &net, &ran));
        table.row(described(wrong.name, wrong.what, &ran));
    }
    for crowd in &all::CROWDS {
        rows.extend(crowd.rows(&built)?);
    }
    progress.end();
    let section = ("Hosts that get power within two seconds, in any order".into(), table.render());
    Ok(ReproductionReport::new("topologies", rows, vec![section], vec![]))
}

/// Returns the rows of a network with right lists.
fn judged(right: &Right, net: &Net, ran: &[Ran]) -> Vec<Row> {
    let id = |what: &str| format!("{}.{what}", right.name);
    let keeps = |ran: &&Ran| {
        right.order.iter().all(|[(first, did), (then, does)]| {
            let times = ran.when(*first, *did).zip(ran.when(*then, *does));
            times.is_some_and(|(before, after)| before < after)
        })
    };
    let (kept, wanted) = (ran.iter().filter(keeps).count(), wanted(ran));
    let first = ran.iter().find_map(|ran| ran.findings.first());
    let first = first.map_or(String::new(), |(host, said)| format!("; first: h{host}: {said}"));
    vec![
        Row::words(&id("order"), Some(right.written), &format!("{kept} of {} runs", ran.len()))
            .holds(kept == ran.len())
            .note(format!("each of {} pairs of events in each run", right.order.len())),
        Row::numbers(&id("formed"), "%", Some(100.0), percent(wanted, ran.len()))
            .holds(net.forms && wanted == ran.len())
            .note(format!("greetings both ways over every link, and `plan` says so{first}")),
    ]
}

/// Returns the rows of a network with wrong lists.
fn found(wrong: &Wrong, net: &Net, ran: &[Ran]) -> Vec<Row> {
    let id = |what: &str| format!("{}.{what}", wrong.name);
    let failed: Vec<&Ran> = ran.iter().filter(|ran| !ran.is_wanted()).collect();
    let named = failed.iter().filter(|ran| ran.names_what_is_missing()).count();
    let refused = net.refused.first().map_or("nothing", String::as_str);
    let refusal = Row::words(&id("refused"), None, refused)
        .holds(!net.forms && !net.refused.is_empty())
        .note(format!("by `plan`, before anything runs: {}", wrong.what));
    if wrong.resolves {
        let resolved = percent(ran.len() - failed.len(), ran.len());
        let row = Row::numbers(&id("resolved"), "%", Some(100.0), resolved)
            .holds(failed.is_empty())
            .note("hosts that look at a port again set it right, as the paper says");
        return vec![refusal, row];
    }
    let example = failed.first().and_then(|ran| ran.findings.first());
    let example = example.map_or(String::new(), |(host, said)| format!("; h{host}: {said}"));
    let note = format!(
        "of {} in {} runs that end in another network, those in which each host without a link \
         names the other{example}",
        failed.len(),
        ran.len()
    );
    let row = Row::numbers(&id("named"), "%", Some(100.0), percent(named, failed.len()));
    vec![refusal, row.holds(!failed.is_empty() && named == failed.len()).note(note)]
}

fn wanted(ran: &[Ran]) -> usize {
    ran.iter().filter(|ran| ran.is_wanted()).count()
}

/// Returns a part in per cent; all of nothing is all.
fn percent(part: usize, of: usize) -> f64 {
    if of == 0 { 100.0 } else { part as f64 * 100.0 / of as f64 }
}

fn table() -> TextTable {
    TextTable::new(&[
        ("network", Align::Left),
        ("lists", Align::Left),
        ("runs", Align::Right),
        ("as wanted", Align::Right),
        ("longest until all are linked", Align::Right),
    ])
}

fn described(name: &str, lists: &str, ran: &[Ran]) -> Vec<String> {
    let formed = ran.iter().filter(|ran| ran.is_wanted());
    let longest = formed.filter_map(|ran| ran.steps.iter().map(|step| step.2).max()).max();
    vec![
        name.into(),
        lists.into(),
        ran.len().to_string(),
        wanted(ran).to_string(),
        longest.map_or("-".into(), diapason::duration::human),
    ]
}
