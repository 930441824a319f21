//! Networks in which every host sends to every other one at once: a ring of four hosts, and a
//! hypercube of eight with all 56 pairs. Routers pass on what others send, beside what the programs
//! of their own hosts send and take.
//!
//! The cables are bridges: what is measured are routers, and not the order of power-on.

use crate::Row;
use diapason::Failure;
use diapason::console::Line;
use diapason::metal::Built;
use diapason::session::Session;
use diapason::simulate::{Hearing, Joined, ToldFlow, followed, told_flows};
use diapason_abi::Nanos;
use diapason_plan::NetworkPlan;
use diapason_system::{Description, Hosts, RunOptions, parse_any};
use std::fmt::Write;

/// The end of a run. Programs send from 0.5 s on.
const HORIZON: u64 = 2_500_000_000;
/// From one message of a flow to the next.
const PERIOD_US: u64 = 100_000;
/// The fewest messages of a flow in a run that came to its end.
const LEAST: u64 = 19;

/// A network whose hosts send to each other.
pub struct Crowd {
    name: &'static str,
    hosts: usize,
    cables: &'static [(usize, usize)],
    /// The most cables that a flow crosses.
    most: u64,
    /// A host whose router ends after a second: the host takes no messages then.
    deaf: Option<usize>,
}

/// The networks of this file.
pub const CROWDS: [Crowd; 3] = [
    Crowd {
        name: "ring-all",
        hosts: 4,
        cables: &[(0, 1), (1, 2), (2, 3), (3, 0)],
        most: 2,
        deaf: None,
    },
    Crowd {
        name: "cube-all",
        hosts: 8,
        cables: &[
            (0, 1),
            (0, 2),
            (0, 4),
            (1, 3),
            (1, 5),
            (2, 3),
            (2, 6),
            (3, 7),
            (4, 5),
            (4, 6),
            (5, 7),
            (6, 7),
        ],
        most: 3,
        deaf: None,
    },
    Crowd {
        name: "star-deaf",
        hosts: 4,
        cables: &[(1, 0), (2, 0), (3, 0)],
        most: 2,
        deaf: Some(2),
    },
];

impl Crowd {
    /// Returns the list of hosts, with a flow from each to each other.
    fn list(&self) -> String {
        let mut text = String::new();
        for host in 0..self.hosts {
            let _ = write!(
                text,
                "[[host]]\nname = \"h{host}\"\nsystem = \"{host}\"\nclock = \"2400MHz\"\n"
            );
        }
        let mut used = vec![0; self.hosts];
        let mut port = |host: usize| {
            used[host] += 1;
            format!("h{host}:xhci:{}", used[host])
        };
        for (one, other) in self.cables {
            let ends = [port(*one), port(*other)];
            let _ = write!(text, "[[cable]]\nname = \"h{one}-h{other}\"\nends = {ends:?}\n");
        }
        let pairs = (0..self.hosts).flat_map(|from| (0..self.hosts).map(move |to| (from, to)));
        for (from, to) in pairs.filter(|(from, to)| from != to) {
            let _ = write!(
                text,
                "[[flow]]\nname = \"h{from}-h{to}\"\nfrom = \"h{from}:talker\"\nto = \
                 \"h{to}:listener\"\nmailbox = \"to-{to}\"\nslots = 8\nbytes = 84\nperiod = \
                 \"{PERIOD_US}us\"\nwork = \"5us\"\nlatency = \"100ms\"\n"
            );
        }
        text
    }

    /// Returns how many cables end at a host.
    fn links(&self, own: usize) -> usize {
        self.cables.iter().filter(|(one, other)| [*one, *other].contains(&own)).count()
    }

    /// Returns the description of a host.
    fn host(&self, own: usize) -> String {
        let (hosts, links) = (&self.hosts, &self.links(own));
        let each =
            |text: fn(usize) -> String, count: usize| (0..count).map(text).collect::<String>();
        let rings = each(
            |link| format!("\"link{link}.asks\", \"link{link}.done\", \"link{link}.ask\", "),
            *links,
        ) + "\"link.ready\", \"link.data\"";
        let ports: Vec<usize> = (16..).take(*links).collect();
        let (threads, semaphores, messages) = (1 + 2 * links, 2 + links, 1 + links);
        let vcpus = each(|link| format!("\"usb-link{link}\", "), *links);
        let intervals = each(|_| ", \"49us\"".into(), *links);
        let boxes = each(|host| format!("\"to-{host}\", "), *hosts);
        let others: Vec<String> =
            (0..*hosts).filter(|host| *host != own).map(|host| format!("to-{host}")).collect();
        let mut text = format!(
            "[system]\nname = \"peer\"\nmemory = \"32M\"\n\
             [[process]]\nname = \"usbd\"\npriority = 40\nvcpu = \"usb-manage\"\nheap = \"384K\"\n\
             stack = \"40K\"\nthreads = {threads}\nsemaphores = {semaphores}\n\
             events = {messages}\n\
             uses = [\"xhci\", \"usb-rings\", \"usb-buffers\", {vcpus}{rings}]\n\
             [process.settings]\nlinks = {ports:?}\n\
             [[device]]\nname = \"xhci\"\npci = \"0c0330\"\nsize = \"16K\"\nirqs = {messages}\n\
             interval = [\"1990us\"{intervals}]\n\
             [[work]]\nname = \"usbd.link\"\nworst = \"3us\"\n\
             [[process]]\nname = \"router\"\nprogram = \"link-router\"\npriority = 35\n\
             vcpu = \"carry\"\nthreads = 2\nevents = 1\nuses = [{boxes}{rings}]\n\
             [[process]]\nname = \"talker\"\nprogram = \"mail-talker\"\npriority = 30\n\
             vcpu = \"talk\"\narguments = [{PERIOD_US}, {own}, {hosts}]\nuses = {others:?}\n\
             [[process]]\nname = \"listener\"\nprogram = \"mail-listener\"\npriority = 30\n\
             vcpu = \"listen\"\narguments = [{own}, {hosts}]\nuses = [\"to-{own}\"]\n\
             [[semaphore]]\nname = \"link.ready\"\nkind = \"counting\"\n"
        );
        let main = [
            ("usb-manage", "100us", "2500us"),
            ("carry", "600us", "2500us"),
            ("talk", "200us", "5ms"),
            ("listen", "200us", "5ms"),
        ];
        for (name, budget, period) in main {
            let _ = write!(
                text,
                "[[vcpu]]\nname = \"{name}\"\nbudget = \"{budget}\"\nperiod = \"{period}\"\n\
                 replenishments = 8\n"
            );
        }
        for (name, size) in [("usb-rings", "512K"), ("usb-buffers", "16K"), ("link.data", "64K")] {
            let _ = write!(text, "[[segment]]\nname = \"{name}\"\nsize = \"{size}\"\ndma = true\n");
        }
        text += &each(
            |link| {
                format!(
                    "[[vcpu]]\nname = \"usb-link{link}\"\nkind = \"io\"\nutilization = \"8%\"\n\
                     interval = \"35us\"\nserves = [\"carry\"]\n\
                     [[segment]]\nname = \"link{link}.asks\"\nsize = \"4K\"\n\
                     [[segment]]\nname = \"link{link}.done\"\nsize = \"4K\"\n\
                     [[semaphore]]\nname = \"link{link}.ask\"\nkind = \"counting\"\n"
                )
            },
            *links,
        );
        if self.deaf == Some(own) {
            text += "[[fault]]\nat = \"1s\"\nwhat = \"crash\"\nprocess = \"router\"\n";
        }
        for host in 0..*hosts {
            let room = if host == own { 16 } else { 2 };
            let _ = write!(text, "[[mailbox]]\nname = \"to-{host}\"\nmessages = {room}\n");
        }
        text
    }

    fn hosts(&self) -> Result<Hosts, Failure> {
        let find = |file: &str| match file.parse() {
            Ok(own) => Ok((file.to_owned(), self.host(own))),
            Err(_) => Err("no such host".to_owned()),
        };
        match parse_any("all.toml", &self.list(), find) {
            Ok(Description::Several(hosts)) => Ok(hosts),
            Ok(_) => Err(Failure::Ours("a list of hosts is one host".into())),
            Err(wrong) => Err(Failure::Ours(wrong.to_string())),
        }
    }

    /// Plans the network, runs it once, and returns the rows.
    ///
    /// # Errors
    /// If it cannot be read or run at all.
    pub fn rows(&self, built: &Built) -> Result<Vec<Row>, Failure> {
        let mut hosts = self.hosts()?;
        let plan = NetworkPlan::of(&hosts);
        let far = hosts.flows.iter().map(diapason_system::Flow::most_cables).max();
        let bounds = plan.flows.iter().filter_map(|flow| Some(flow.bill.as_ref().ok()?.total));
        let bound = bounds.max().unwrap_or(Nanos::ZERO);
        let flows = hosts.flows.len();
        plan.instruct(&mut hosts);
        let options = RunOptions { horizon_ns: HORIZON, record_bytes: 0, watch: false };
        let session = |host: &diapason_system::HostSpec| {
            let session = Session::assemble(host.system.clone(), built.clone(), options)?;
            Ok((host.name.clone(), session))
        };
        let sessions = hosts.hosts.iter().map(session).collect::<Result<Vec<_>, Failure>>()?;
        let joined = Joined::By(hosts.cables.clone().into());
        let silent = sessions.iter().map(|_| Hearing(|_: &Line| {}));
        let ran = followed(&sessions, &joined, None, silent)?;
        let findings = sessions.iter().zip(&ran).flat_map(|((_, session), ended)| {
            let broken = session.judge(&ended.run).findings();
            broken.into_iter().chain(session.unmeasured(&ended.run))
        });
        let first = findings.into_iter().next().unwrap_or_default();
        let is_quiet = first.is_empty() || self.deaf.is_some();
        let logs: Vec<_> = ran.iter().map(|ended| &ended.links).collect();
        let told = told_flows(&hosts, &plan, &logs, None);
        // Flows of a host that takes nothing end with it; those of others do not.
        let is_of_deaf = |flow: &ToldFlow<'_>| {
            let ends = [hosts.flows[flow.number].from, hosts.flows[flow.number].end()];
            self.deaf.is_some_and(|deaf| ends.iter().any(|end| end.host == deaf))
        };
        let (lost, others): (Vec<_>, Vec<_>) = told.iter().partition(|flow| is_of_deaf(flow));
        let whole = others.iter().filter(|it| it.seen.messages >= LEAST && is_whole(it)).count();
        let in_time = others.iter().filter(|it| is_in_time(it)).count();
        let slowest = |it: &&&ToldFlow<'_>| Some(it.seen.worst.as_ref()?.latency());
        let longest = others.iter().filter_map(|it| slowest(&it)).max();
        let cut = lost.iter().filter(|it| it.seen.messages < LEAST).count();
        let id = |what: &str| format!("{}.{what}", self.name);
        let ms = |time: Nanos| time.0 as f64 / 1e6;
        let mut rows = vec![
            Row::numbers(&id("bound"), "ms", None, ms(bound))
                .holds(plan.holds() && told.len() == flows && far <= Some(self.most))
                .note(format!(
                    "the longest of {flows} flows, each host to all others, {} cables at most",
                    far.unwrap_or_default()
                )),
            Row::numbers(&id("longest"), "ms", None, ms(longest.unwrap_or_default()))
                .holds(in_time == others.len() && is_quiet)
                .note(format!("{in_time} of {} flows within their bounds {first}", others.len())),
            Row::numbers(&id("whole"), "flows", None, whole as f64)
                .holds(whole == others.len())
                .note(format!("of {}: no message lost, {LEAST} at least", others.len())),
        ];
        if self.deaf.is_some() {
            let note = format!("of {} flows of the host: its router ended after 1 s", lost.len());
            let row = Row::numbers(&id("deaf"), "flows", None, cut as f64);
            rows.push(row.holds(cut == lost.len() && cut > 0).note(note));
        }
        Ok(rows)
    }
}

/// Returns whether no message of a flow was lost.
fn is_whole(flow: &ToldFlow<'_>) -> bool {
    let books = flow.seen.books.as_ref();
    books.is_some_and(|it| it.lost.is_empty() && it.strange + it.late == 0)
}

/// Returns whether messages came, and the slowest within the bound.
fn is_in_time(flow: &ToldFlow<'_>) -> bool {
    flow.seen.worst.as_ref().is_some_and(|worst| worst.latency() <= flow.bill.total)
}
