//! Figure 9's machine: its description, made fit for a scenario, and what its programs said.

use diapason::console::Line;
use diapason::describe::describe_any;
use diapason::metal::{self, Built};
use diapason::session::Session;
use diapason::simulate::{Hearing, Joined, Seat, together};
use diapason::{Failure, Workspace};
use diapason_system::{Cable, Description, HostSpec, ProcessSpec, RunOptions, ServerSpec, System};
use std::cell::RefCell;

/// The list of hosts, below the workspace's root.
const HOSTS: &str = "examples/figure-9.toml";
/// Number of the host with the cameras; the others are the boards.
pub const ROUTER: usize = 0;
/// Before that, devices are still being found.
pub const START: u64 = 2;

/// The built programs, and the description.
pub(crate) struct Machine {
    built: Built,
    hosts: Vec<HostSpec>,
    cables: Vec<Cable>,
}

/// A line that a program said.
pub(crate) struct Spoken {
    /// Number of the host.
    pub host: usize,
    pub words: Vec<String>,
}

impl Spoken {
    /// Returns the numbers behind the first word.
    pub fn numbers(&self) -> Vec<u64> {
        self.words.iter().skip(1).filter_map(|word| word.parse().ok()).collect()
    }

    /// Returns whether it begins with this word.
    pub fn is(&self, word: &str) -> bool {
        self.words.first().is_some_and(|first| first == word)
    }
}

impl Machine {
    /// Reads the description and builds the programs.
    pub fn new() -> Result<Machine, Failure> {
        let workspace = Workspace::find()?;
        let Description::Several(hosts) = describe_any(&workspace.root().join(HOSTS))? else {
            return Err(Failure::Ours(format!("{HOSTS} is one host")));
        };
        eprintln!("building the programs");
        let built = metal::build(&workspace)?;
        Ok(Machine { built, hosts: hosts.hosts, cables: hosts.cables })
    }

    /// Returns the longest delay of its cables, in ns.
    pub fn cable_ns(&self) -> u64 {
        self.cables.iter().map(|cable| cable.delay_ns).max().unwrap_or(0)
    }

    /// Returns the period of a VCPU of a host, in ns.
    pub fn period_ns(&self, host: usize, vcpu: &str) -> Result<u64, Failure> {
        let system = self.hosts.get(host).map(|host| &host.system);
        let found = system.and_then(|system| system.vcpus.iter().find(|known| known.name == vcpu));
        let found = match found.map(|vcpu| &vcpu.server) {
            Some(ServerSpec::Main { period_ns, .. }) => Some(*period_ns),
            _ => None,
        };
        found.ok_or_else(|| Failure::Ours(format!("{HOSTS}: host {host} has no VCPU `{vcpu}`")))
    }

    /// Runs a scenario for so many seconds of its own time: `fit` changes each host's description,
    /// `hear` is told what programs say.
    ///
    /// # Errors
    /// If a host breaks a promise: then nothing it measured can be trusted.
    pub fn run(
        &self,
        seconds: u64,
        fit: impl Fn(usize, &mut System),
        hear: &mut dyn FnMut(Spoken),
    ) -> Result<(), Failure> {
        let horizon_ns = (START + seconds) * 1_000_000_000;
        let options = RunOptions { horizon_ns, record_bytes: 0, watch: false };
        let session = |(number, host): (usize, &HostSpec)| {
            let mut system = host.system.clone();
            fit(number, &mut system);
            Session::assemble(system, self.built.clone(), options)
        };
        let sessions: Result<Vec<Session>, Failure> =
            self.hosts.iter().enumerate().map(session).collect();
        let sessions = sessions?;
        let hear = RefCell::new(hear);
        let listener = |host| {
            let hear = &hear;
            Hearing(move |line: &Line| {
                if let Line::Log { text, .. } = line {
                    let words = text.split_whitespace().map(String::from).collect();
                    (hear.borrow_mut())(Spoken { host, words });
                }
            })
        };
        let seats = sessions.iter().enumerate();
        let seats = seats.map(|(host, session)| Seat::new(session, listener(host)));
        let hosts = together(seats.collect(), &Joined::By(self.cables.clone().into()))?;
        for (session, host) in sessions.iter().zip(&hosts) {
            let name = &session.system.name;
            let found = session.judge(&host.run).findings();
            if !found.is_empty() {
                return Err(Failure::Ours(format!("{name}: {}", found.join("; "))));
            }
        }
        Ok(())
    }
}

/// Returns the process with this program.
pub fn process<'s>(system: &'s mut System, program: &str) -> Option<&'s mut ProcessSpec> {
    system.processes.iter_mut().find(|process| process.program == program)
}
