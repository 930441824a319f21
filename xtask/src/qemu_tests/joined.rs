//! Several hosts on real kernels: bridge cables, wires and switches join QEMUs that stand still
//! together.

use crate::tally::Tally;
use diapason::Workspace;
use diapason::console::Line;
use diapason::describe::describe_any;
use diapason::metal::Built;
use diapason::outcome::{ChainPromise, RunVerdict};
use diapason::qemu::RunFolder;
use diapason::session::Session;
use diapason::simulate::{Joined, Joints};
use diapason::together::{HostRuns, Judgeable, boot, instruct, slice};
use diapason_system::{Description, RunOptions, System};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// The length of a run. Links form within its first half.
const HORIZON_NS: u64 = 1_200_000_000;
/// A program that opens a channel first reports later.
const ACTED_NS: u64 = 1_800_000_000;
/// Programs report once a second.
const PAIR: &str = "examples/bridge.toml";
const CREWED: &str = "tests/systems/bridge-cores.toml";
const RING: &str = "examples/bridge-ring.toml";
const MANY: &str = "examples/mail-many.toml";
const STAR: &str = "examples/star.toml";
const SWITCHED: &str = "examples/ethernet.toml";
const GATED: &str = "examples/ethernet-gates.toml";
const CREDIT: &str = "examples/ethernet-credit.toml";
const SENSED: &str = "examples/sensor-ethernet.toml";
const ACTED: &str = "examples/sensor-can.toml";

/// Times of messages that nothing delays are no further apart.
const SPREAD_NS: u64 = 10_000;

/// A capture of packets begins so if its times are in nanoseconds.
const NANOSECOND_PCAP: [u8; 4] = 0xa1b2_3c4d_u32.to_le_bytes();

type Test = fn(&Workspace, &Built) -> Result<(), String>;

const TESTS: [(&str, Test); 10] = [
    ("two hosts at a bridge cable say and send the same in every run", pair),
    ("hosts, one with three cores, say and send the same in every run", crewed),
    ("three hosts form a ring of bridge cables", ring),
    ("two hosts send to one mailbox of a third", many),
    ("two hosts ask a third by a router with three cables", star),
    ("hosts at an Ethernet switch say and send the same in every run", switched),
    ("hosts at two Ethernet switches, one with credit", credit),
    ("hosts on an Ethernet wire with gates", gated),
    ("packets of a sensor go to another host over Ethernet", sensed),
    ("packets of a sensor go to the CAN bus of another host", acted),
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
    joined: Joined,
}

/// A run of such hosts, and the lines that their programs logged.
type Ran = (HostRuns, Vec<(usize, String)>);

impl Network {
    fn of(workspace: &Workspace, built: &Built, file: &str) -> Result<Network, String> {
        Network::until(workspace, built, file, HORIZON_NS)
    }

    fn until(
        workspace: &Workspace,
        built: &Built,
        file: &str,
        horizon_ns: u64,
    ) -> Result<Network, String> {
        let description = describe_any(&workspace.root().join(file));
        let Description::Several(mut list) = description.map_err(|f| f.to_string())? else {
            return Err(format!("{file} is one host"));
        };
        let network = instruct(&mut list).map_err(|failure| failure.to_string())?;
        let (slice, judgeable) = (slice(&list), Judgeable::of(&list));
        let flows = ChainPromise::of_flows(&list, &network);
        let options = RunOptions { horizon_ns, record_bytes: 0, watch: false };
        let systems: Vec<System> = list.systems().map(|(_, system)| system.clone()).collect();
        let others = list.others();
        let (cables, ethernet, switches) = (list.cables, list.ethernet, list.switches);
        let joints = Joints { cables, ethernet, switches, others, ..Joints::default() };
        let joined = Joined::By(Box::new(joints));
        let mut sessions = Vec::new();
        for (part, plan) in joined.plans(&systems).into_iter().enumerate() {
            let session = Session::planned(plan, built.clone(), options, None);
            let mut session = session.map_err(|failure| failure.to_string())?;
            let own = flows.iter().filter(|(end, _)| *end == part);
            session.flows = own.map(|(_, promise)| promise.clone()).collect();
            judgeable.limit(part, &mut session);
            session.slice = slice;
            sessions.push(session);
        }
        Ok(Network { sessions, joined })
    }

    fn boot(&self, workspace: &Workspace) -> Result<Ran, String> {
        let mut said = Vec::new();
        let sessions: Vec<&Session> = self.sessions.iter().collect();
        let runs = boot(workspace, &sessions, self.joined.joints(), &mut |host, line| {
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

    /// Boots twice, the second time beside a loop that never ends, and returns the first run. Both
    /// are equal to the byte.
    fn boot_twice(&self, workspace: &Workspace) -> Result<Ran, String> {
        let first = self.boot(workspace)?;
        let second = beside_a_loop(|| self.boot(workspace))?;
        match first == second {
            true => Ok(first),
            false => Err(format!("{first:?}\nbeside a loop: {second:?}")),
        }
    }
}

/// Returns what `run` does while a thread of this computer never stops.
pub(super) fn beside_a_loop<T>(run: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let _busy = Busy(&stop);
        run()
    })
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
    let first = network.boot_twice(workspace)?;
    for host in 0..network.sessions.len() {
        let [_, came, answered, lost, damaged, longest] = report(&first, host, "LINK ")?[..] else {
            return Err(format!("host {host} said {:?}", first.1));
        };
        if came < 50 || answered < 50 || lost + damaged > 0 {
            return Err(format!("host {host} said {:?}", first.1));
        }
        println!("host {host}: {came} messages there and back in {longest} ns at most");
    }
    Ok(())
}

/// A host with three cores asks and answers as one with one core, and a task that never stops on
/// another core makes no difference. Rings of the first core arrive at the third.
fn crewed(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let mut network = Network::of(workspace, built, CREWED)?;
    let folder = RunFolder::create(&workspace.target()).map_err(|failure| failure.to_string())?;
    // The parts are two hosts, and then the other cores of the second.
    for (session, host) in network.sessions.iter_mut().zip(["left", "right", "right", "right"]) {
        session.captures.pcap = Some(folder.path().join(host));
    }
    let (runs, _) = network.boot_twice(workspace)?;
    all_flow(&network, &runs, 20)?;
    let rings = runs.runs[3].outcome.devices.iter().map(|row| row.interrupts).sum::<u64>();
    let jobs = runs.runs[2].outcome.threads.iter().map(|row| row.jobs).sum::<u64>();
    println!("{jobs} jobs of the controller, {rings} rings heard");
    if jobs < 1_000 || rings < 100 {
        return Err("a core did too little".into());
    }
    ["left", "right"].iter().try_for_each(|host| captured(&folder.path().join(host)))
}

/// The transfers of a host were captured, with the messages in them.
fn captured(folder: &Path) -> Result<(), String> {
    let path = folder.join("usb0.pcap");
    let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("{} bytes of transfers", bytes.len());
    match bytes.len() > 2 * 20 * 1024 && bytes.starts_with(&NANOSECOND_PCAP) {
        true => Ok(()),
        false => Err(format!("{} has {} bytes", path.display(), bytes.len())),
    }
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

/// Three hosts at a switch: no datagram is lost, and none is later than its bound.
fn switched(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let network = Network::of(workspace, built, SWITCHED)?;
    let (runs, _) = network.boot_twice(workspace)?;
    all_flow(&network, &runs, 400)?;
    // The adapter of the receiver interrupts too soon, which is QEMU's doing and no finding.
    let unmeasured = network.sessions[1].unmeasured(&runs.runs[1]);
    if !unmeasured.iter().any(|text| text.contains("as QEMU's adapter did not keep it")) {
        return Err(format!("not measured: {unmeasured:?}"));
    }
    // Commands have nothing before them. They would be apart by a slice if frames arrived when
    // hosts stand still.
    let all = runs.runs.iter().flat_map(|run| &run.outcome.chains);
    match all.map(|row| row.whole_max_ns).min() {
        Some(..=SPREAD_NS) => Ok(()),
        other => Err(format!("commands do not arrive at their own times, but {other:?} ns apart")),
    }
}

/// Frames pass two switches, and wait for credit.
fn credit(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let network = Network::of(workspace, built, CREDIT)?;
    let (runs, _) = network.boot(workspace)?;
    all_flow(&network, &runs, 400)
}

/// The server of an adapter keeps gates on its own clock.
fn gated(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let network = Network::of(workspace, built, GATED)?;
    let (runs, _) = network.boot(workspace)?;
    all_flow(&network, &runs, 100)
}

fn sensed(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let network = Network::of(workspace, built, SENSED)?;
    let (runs, _) = network.boot(workspace)?;
    all_flow(&network, &runs, 100)
}

fn acted(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let network = Network::until(workspace, built, ACTED, ACTED_NS)?;
    let (runs, _) = network.boot(workspace)?;
    all_flow(&network, &runs, 100)?;
    // Behind the last program are the frames on the bus of the second host.
    let pipes = &runs.runs[1].outcome.pipes;
    let written = pipes.iter().find(|row| row.to_device);
    match written.filter(|row| row.messages >= 100 && row.lost == 0) {
        Some(_) => Ok(()),
        None => Err(format!("frames of CAN: {pipes:?}")),
    }
}

/// Checks that so many messages of each flow came, none was lost, and none was late.
fn all_flow(network: &Network, runs: &HostRuns, least: u64) -> Result<(), String> {
    for (session, run) in network.sessions.iter().zip(&runs.runs) {
        for flow in &session.flows {
            let mut rows = run.outcome.chains.iter();
            let row = rows.find(|row| row.process == flow.process);
            let row = row.ok_or_else(|| format!("{}: nobody reported", flow.name))?;
            let (came, longest, bound) = (row.messages, row.whole_max_ns, flow.bound_ns);
            println!("{}: {came} messages, {longest} of {bound} ns", flow.name);
            if came < least || row.lost > 0 || longest > bound {
                return Err(format!("{}: {row:?}, at most {bound} ns are planned", flow.name));
            }
        }
    }
    let flows = network.sessions.iter().flat_map(|session| &session.flows).count();
    if flows > 0 { Ok(()) } else { Err("no flow is judged".into()) }
}

/// Returns the numbers of the last line of a host that begins so.
fn report((_, said): &Ran, host: usize, prefix: &str) -> Result<Vec<u64>, String> {
    let own = said.iter().rev().filter(|(whose, _)| *whose == host);
    let last = own.into_iter().find_map(|(_, text)| text.strip_prefix(prefix));
    let last = last.ok_or_else(|| format!("host {host} said no `{prefix}`: {said:?}"))?;
    Ok(last.split(' ').filter_map(|word| word.parse().ok()).collect())
}
