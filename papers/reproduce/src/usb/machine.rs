//! Figure 9's machine: its description, made fit for a scenario, and what its programs said.

use diapason::console::Line;
use diapason::describe::describe_any;
use diapason::metal::{self, Built};
use diapason::session::Session;
use diapason::simulate::{Hearing, Joined, Seat, together};
use diapason::{Failure, Workspace};
use diapason_system::{Cable, Description, HostSpec, ProcessSpec, RunOptions, System};
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
    pub hosts: FittedHosts,
}

/// The hosts of the description, to be made fit for a scenario.
pub(crate) struct FittedHosts {
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
        let hosts = FittedHosts::read(&workspace)?;
        eprintln!("building the programs");
        let built = metal::build(&workspace)?;
        Ok(Machine { built, hosts })
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
        let session = |system| Session::assemble(system, self.built.clone(), options);
        let sessions = self.hosts.fitted(fit).into_iter().map(session);
        let sessions: Vec<Session> = sessions.collect::<Result<_, Failure>>()?;
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
        let hosts = together(seats.collect(), &Joined::By(self.hosts.cables.clone().into()))?;
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

impl FittedHosts {
    /// Reads the list of hosts of figure 9.
    pub fn read(workspace: &Workspace) -> Result<FittedHosts, Failure> {
        let Description::Several(hosts) = describe_any(&workspace.root().join(HOSTS))? else {
            return Err(Failure::Ours(format!("{HOSTS} is one host")));
        };
        Ok(FittedHosts { hosts: hosts.hosts, cables: hosts.cables })
    }

    /// Returns the longest delay of its cables, in ns.
    pub fn cable_ns(&self) -> u64 {
        self.cables.iter().map(|cable| cable.delay_ns).max().unwrap_or(0)
    }

    /// Returns the description of each host as `fit` changes it.
    pub fn fitted(&self, fit: impl Fn(usize, &mut System)) -> Vec<System> {
        let fitted = |(number, host): (usize, &HostSpec)| {
            let mut system = host.system.clone();
            fit(number, &mut system);
            system
        };
        self.hosts.iter().enumerate().map(fitted).collect()
    }
}

/// Returns the process with this program.
pub fn process<'s>(system: &'s mut System, program: &str) -> Option<&'s mut ProcessSpec> {
    system.processes.iter_mut().find(|process| process.program == program)
}
