//! A network of hosts, and one run of it: who gets power when, what the hosts did, and what they
//! say at the end.

use super::node::Node;
use diapason::Failure;
use diapason::console::Line;
use diapason::metal::Built;
use diapason::session::Session;
use diapason::simulate::{Hearing, Joined, Seat, together};
use diapason_abi::Nanos;
use diapason_pipe::measured::NetworkStep;
use diapason_plan::NetworkPlan;
use diapason_random::Random;
use diapason_system::{Cable, Description, HostSpec, Hosts, RunOptions, parse_any};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Hosts get power within this time.
const POWER: u64 = 2_000_000_000;
/// The end of a run.
const HORIZON: u64 = 4_100_000_000;

/// A list of hosts by numbers from 1, as the paper counts them.
pub struct Shape {
    /// Debug cables: from the target to its debug host.
    pub cables: &'static [(usize, usize)],
    /// Bridge cables: the hosts at both ends.
    pub bridges: &'static [(usize, usize)],
    /// The number of hosts.
    pub hosts: usize,
    pub leader: Option<usize>,
    /// Lists that are written by hand: the host, and for whom it waits.
    pub depends: &'static [(usize, &'static [usize])],
    /// Hosts that do not enable although a cable asks for it.
    pub dark: &'static [usize],
    /// Hosts look at all of their ports.
    pub look_everywhere: bool,
}

impl Shape {
    /// Returns the list of hosts.
    fn text(&self) -> String {
        let mut text = String::new();
        if let Some(leader) = self.leader {
            text += &format!("[network]\nleader = \"h{leader}\"\n");
        }
        for host in 1..=self.hosts {
            let links = self.at_ports(host);
            let target = self.cables.iter().any(|(from, _)| *from == host);
            let looks_everywhere = self.look_everywhere;
            let file = Node { links, target, looks_everywhere }.file();
            text += &format!("[[host]]\nname = \"h{host}\"\nsystem = \"{file}\"\n");
            if let Some((_, list)) = self.depends.iter().find(|(own, _)| *own == host) {
                let names: Vec<String> = list.iter().map(|it| format!("\"h{it}\"")).collect();
                text += &format!("depends = [{}]\n", names.join(", "));
            }
            if self.dark.contains(&host) {
                text += "enable = false\n";
            }
        }
        let mut used = vec![0; self.hosts + 1];
        let mut port = |host: usize| {
            used[host] += 1;
            format!("h{host}:xhci:{}", used[host])
        };
        let debug = self.cables.iter().map(|(from, to)| (format!("h{from}:xhci:debug"), *to));
        let mut ends: Vec<(String, String)> = debug.map(|(from, to)| (from, port(to))).collect();
        ends.extend(self.bridges.iter().map(|(one, other)| (port(*one), port(*other))));
        for (number, (one, other)) in ends.iter().enumerate() {
            text += &format!(
                "[[cable]]\nname = \"c{number}\"\nends = [\"{one}\", \"{other}\"]\n\
                 delay = \"100us\"\n"
            );
        }
        text
    }

    /// Returns how many cables end at ports of a host.
    fn at_ports(&self, host: usize) -> usize {
        let debug = self.cables.iter().filter(|(_, to)| *to == host).count();
        let both = self.bridges.iter().filter(|(one, other)| [*one, *other].contains(&host));
        debug + both.count()
    }
}

/// A network that is ready to run.
pub struct Net {
    sessions: Vec<Session>,
    cables: Vec<Cable>,
    /// All ends of links.
    ends: Vec<LinkEnd>,
    /// Whether the plan says that the network always forms.
    pub forms: bool,
    /// The refusals of the plan: the title of each, and its remedy.
    pub refused: Vec<String>,
}

/// A step of a host: its number from 1, what it did, and when.
pub type Step = (usize, NetworkStep, u64);

/// An end of a link: the number of its host, its number there, and the host at the other end.
pub type LinkEnd = (usize, u8, String);

/// The steps of all hosts in one run, and what was missing at its end.
pub struct Ran {
    pub steps: Vec<Step>,
    /// Ends of links over which no greeting came, as the programs there say it.
    pub silent: Vec<LinkEnd>,
    /// Everything that broke a promise, of all hosts, each with the number of its host.
    pub findings: Vec<(usize, String)>,
}

impl Net {
    /// Reads and plans a list of hosts.
    ///
    /// # Errors
    /// If it cannot be read, or a host of it has no plan.
    pub fn new(shape: &Shape, built: &Built) -> Result<Net, Failure> {
        let mut hosts = read(&shape.text())?;
        let plan = NetworkPlan::of(&hosts);
        plan.instruct(&mut hosts);
        let items = plan.findings.iter().flat_map(|found| found.items());
        let refused = items.map(|item| format!("{}: {}", item.title, item.help)).collect();
        let far = |host: &HostSpec| host.system.neighbours.links.clone();
        let ends = (1..).zip(&hosts.hosts).flat_map(|(number, host)| {
            far(host).into_iter().map(move |end| (number, end.link, end.host))
        });
        let ends = ends.collect();
        let options = RunOptions { horizon_ns: HORIZON, record_bytes: 0, watch: false };
        let session = |system| Session::assemble(system, built.clone(), options);
        let sessions = hosts.hosts.into_iter().map(|host| session(host.system));
        let sessions = sessions.collect::<Result<Vec<Session>, Failure>>()?;
        Ok(Net { sessions, cables: hosts.cables, ends, forms: plan.holds(), refused })
    }

    /// Runs it once: each host gets power when the seed says, within two seconds.
    ///
    /// # Errors
    /// If it cannot be run at all.
    pub fn run(&self, seed: u64) -> Result<Ran, Failure> {
        let mut random = Random::new(seed);
        let greeted = RefCell::new(BTreeMap::new());
        let hearing = |host: usize| {
            let greeted = &greeted;
            Hearing(move |line: &Line| {
                if let Some((link, came)) = greetings(line) {
                    greeted.borrow_mut().insert((host, link), came);
                }
            })
        };
        let seats = (1..).zip(&self.sessions).map(|(host, session)| {
            let mut seat = Seat::new(session, hearing(host));
            seat.how.start = Nanos(random.below(POWER));
            seat
        });
        let ran = together(seats.collect(), &Joined::By(self.cables.clone().into()))?;
        let (mut steps, mut findings) = (Vec::new(), Vec::new());
        for (host, (session, ended)) in (1..).zip(self.sessions.iter().zip(&ran)) {
            let rows = ended.run.outcome.network.iter();
            steps.extend(rows.map(|row| (host, row.step, row.at_ns)));
            let broken = session.judge(&ended.run).findings();
            let missing = session.unmeasured(&ended.run);
            findings.extend(broken.into_iter().chain(missing).map(|said| (host, said)));
        }
        let greeted = greeted.into_inner();
        let ends = self.ends.iter();
        let silent =
            ends.filter(|(host, link, _)| greeted.get(&(*host, *link)).is_none_or(|it| *it == 0));
        Ok(Ran { steps, findings, silent: silent.cloned().collect() })
    }
}

impl Ran {
    /// Returns when a host did something for the first time.
    pub fn when(&self, host: usize, step: NetworkStep) -> Option<u64> {
        let mut own = self.steps.iter().filter(|it| (it.0, it.1) == (host, step));
        own.next().map(|it| it.2)
    }

    /// Returns whether every link carried greetings both ways, and no host breaks a promise.
    pub fn is_wanted(&self) -> bool {
        self.silent.is_empty() && self.findings.is_empty()
    }

    /// Returns whether the host at each silent end has a finding that names the host it lacks.
    pub fn names_what_is_missing(&self) -> bool {
        self.silent.iter().all(|(host, link, far)| {
            let (link, far) = (format!("link {link} of "), format!(", to {far}"));
            let names = |said: &str| said.contains(&link) && said.contains(&far);
            self.findings.iter().any(|(own, said)| own == host && names(said))
        })
    }
}

/// Returns the number of a link and how many greetings came over it, if a program says that.
fn greetings(line: &Line) -> Option<(u8, u64)> {
    let Line::Log { text, .. } = line else { return None };
    let mut words = text.strip_prefix("GREETED ")?.split(' ');
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

fn read(text: &str) -> Result<Hosts, Failure> {
    let find = |file: &str| match Node::of(file) {
        Some(node) => Ok((file.to_owned(), node.text())),
        None => Err("no such node".to_owned()),
    };
    match parse_any("network.toml", text, find) {
        Ok(Description::Several(hosts)) => Ok(hosts),
        Ok(_) => Err(Failure::Ours("a list of hosts is one host".into())),
        Err(wrong) => Err(Failure::Ours(wrong.to_string())),
    }
}
