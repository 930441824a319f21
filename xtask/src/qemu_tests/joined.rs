//! Several hosts on real kernels: bridge cables join QEMUs that stand still together.

use crate::tally::Tally;
use diapason::console::Line;
use diapason::describe::describe_any;
use diapason::metal::Built;
use diapason::outcome::RunVerdict;
use diapason::session::Session;
use diapason::together::{HostRuns, boot, instruct, slice};
use diapason::{Failure, Workspace};
use diapason_system::{Cable, Description, HostSpec, RunOptions};
use std::sync::atomic::{AtomicBool, Ordering};

/// The length of a run. Links form within its first half.
const HORIZON_NS: u64 = 1_200_000_000;
/// Programs report once a second.
const PAIR: &str = "examples/bridge.toml";
const RING: &str = "examples/bridge-ring.toml";
const MANY: &str = "examples/mail-many.toml";
const STAR: &str = "examples/star.toml";

type Test = fn(&Workspace, &Built) -> Result<(), String>;

const TESTS: [(&str, Test); 4] = [
    ("two hosts at a bridge cable say and send the same in every run", pair),
    ("three hosts form a ring of bridge cables", ring),
    ("two hosts send to one mailbox of a third", many),
    ("two hosts ask a third by a router with three cables", star),
];

/// Runs every test whose name contains `part`.
pub fn run(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    for (name, test) in TESTS {
        let name = format!("QEMU: {name}");
        if name.contains(part) {
            tally.step(&name, || test(workspace, built));
        }
    }
}

/// Hosts of a list, ready to boot.
struct Network {
    sessions: Vec<Session>,
    cables: Vec<Cable>,
}

/// A run of such hosts, and the lines that their programs logged.
type Ran = (HostRuns, Vec<(usize, String)>);

impl Network {
    fn of(workspace: &Workspace, built: &Built, file: &str) -> Result<Network, String> {
        let description = describe_any(&workspace.root().join(file));
        let Description::Several(mut list) = description.map_err(|f| f.to_string())? else {
            return Err(format!("{file} is one host"));
        };
        instruct(&mut list).map_err(|failure| failure.to_string())?;
        let slice = slice(&list);
        let options = RunOptions { horizon_ns: HORIZON_NS, record_bytes: 0, watch: false };
        let assemble = |host: HostSpec| {
            let mut session = Session::assemble(host.system, built.clone(), options)?;
            session.slice = slice;
            Ok::<_, Failure>(session)
        };
        let sessions: Result<Vec<Session>, _> = list.hosts.into_iter().map(assemble).collect();
        let sessions = sessions.map_err(|failure| failure.to_string())?;
        Ok(Network { sessions, cables: list.cables })
    }

    fn boot(&self, workspace: &Workspace) -> Result<Ran, String> {
        let mut said = Vec::new();
        let sessions: Vec<&Session> = self.sessions.iter().collect();
        let runs = boot(workspace, &sessions, &self.cables, &mut |host, line| {
            if let Line::Log { text, .. } = line {
                said.push((host, text.clone()));
            }
        });
        let runs = runs.map_err(|failure| failure.to_string())?;
        for (session, run) in self.sessions.iter().zip(&runs.runs) {
            let verdict = session.judge(run);
            if verdict != RunVerdict::Holds {
                return Err(format!("{verdict:?}, after {:?}; said: {said:?}", run.ending));
            }
        }
        Ok((runs, said))
    }
}

/// Keeps a processor busy until it is dropped.
struct Busy<'a>(&'a AtomicBool);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Messages come back at both hosts, and a run beside a busy processor is equal to the byte.
fn pair(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let network = Network::of(workspace, built, PAIR)?;
    let first = network.boot(workspace)?;
    let stop = AtomicBool::new(false);
    let second = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let _busy = Busy(&stop);
        network.boot(workspace)
    })?;
    for host in 0..network.sessions.len() {
        let [_, came, answered, lost, damaged, longest] = report(&first, host, "LINK ")?[..] else {
            return Err(format!("host {host} said {:?}", first.1));
        };
        if came < 50 || answered < 50 || lost + damaged > 0 {
            return Err(format!("host {host} said {:?}", first.1));
        }
        println!("host {host}: {came} messages there and back in {longest} ns at most");
    }
    if first == second { Ok(()) } else { Err(format!("{first:?}\nbeside a loop: {second:?}")) }
}

/// Every host of a ring hears both of its neighbours.
fn ring(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let network = Network::of(workspace, built, RING)?;
    let ran = network.boot(workspace)?;
    for host in 0..network.sessions.len() {
        for link in 0..2 {
            let prefix = format!("GREETED {link} ");
            let [came, sent, lost, damaged] = report(&ran, host, &prefix)?[..] else {
                return Err(format!("host {host} said {:?}", ran.1));
            };
            if came < 10 || sent < 10 || lost + damaged > 0 {
                return Err(format!("host {host} said {:?}", ran.1));
            }
        }
    }
    Ok(())
}

/// A program takes the messages of two hosts out of one mailbox, and each has its answers.
fn many(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let network = Network::of(workspace, built, MANY)?;
    let ran = network.boot(workspace)?;
    for host in [0, 2] {
        let [sent, full, came, lost, _] = report(&ran, host, "ASKED ")?[..] else {
            return Err(format!("host {host} said {:?}", ran.1));
        };
        // The last question is still under way.
        if came < 30 || came + 1 < sent || full + lost > 0 {
            return Err(format!("host {host} said {:?}", ran.1));
        }
    }
    match report(&ran, 1, "ANSWERED ")?[..] {
        [came, 0, 0] if came > 60 => Ok(()),
        _ => Err(format!("not all was answered: {:?}", ran.1)),
    }
}

/// A router passes the messages of two hosts on to a third, and each answer to the host that asked.
fn star(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let network = Network::of(workspace, built, STAR)?;
    let ran = network.boot(workspace)?;
    for host in [0, 1] {
        let [sent, came, answered, lost, damaged, longest] = report(&ran, host, "LINK ")?[..]
        else {
            return Err(format!("host {host} said {:?}", ran.1));
        };
        if came < 8 || came + 1 < sent || answered + lost + damaged > 0 {
            return Err(format!("host {host} said {:?}", ran.1));
        }
        println!("host {host}: {came} messages there and back in {longest} ns at most");
    }
    match report(&ran, 3, "ROUTED ")?[..] {
        [routed, 0, 0, 0] if routed > 32 => Ok(()),
        _ => Err(format!("the router said {:?}", ran.1)),
    }
}

/// Returns the numbers of the last line of a host that begins so.
fn report((_, said): &Ran, host: usize, prefix: &str) -> Result<Vec<u64>, String> {
    let own = said.iter().rev().filter(|(whose, _)| *whose == host);
    let last = own.into_iter().find_map(|(_, text)| text.strip_prefix(prefix));
    let last = last.ok_or_else(|| format!("host {host} said no `{prefix}`: {said:?}"))?;
    Ok(last.split(' ').filter_map(|word| word.parse().ok()).collect())
}
