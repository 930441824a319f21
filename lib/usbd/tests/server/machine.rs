//! A server that runs: its threads are calls, and time is that of the model.

use crate::ground::{self, Ground};
use diapason_abi::Nanos;
use diapason_abi::settings::Settings;
use diapason_contract::settings::{DEVICES, Expected, SERVES};
use diapason_contract::threads::ServiceKind;
use diapason_usbd::platform::Guarded as _;
use diapason_usbd::policy::LOOK;
use diapason_usbd::{Attended, PlaceOrder, ServerSettings, UsbServer, WakeCause, offered};
use diapason_xhc::Config;

/// The connector of the one device of [`Machine::serving`].
pub const PORT: u8 = 1;

/// A server and its machine.
pub struct Machine {
    pub server: UsbServer<Ground>,
    pub ground: Ground,
    bells: Vec<&'static str>,
    /// Semaphores that were given since somebody looked.
    given: Vec<&'static str>,
    /// A branch that nothing happens to: only its own thread and visits of the one that manages
    /// may enter it.
    steady: Option<u16>,
    /// Visits that found something due in the steady branch.
    pub visits: u32,
    /// Messages that branches handled.
    pub messages: u32,
    /// The thread that manages learns only at its own looks of times that bottom halves set, as in
    /// the real server. Otherwise it knows them at once.
    pub sleeps: bool,
    /// When that thread looks next, if it `sleeps`.
    wake: Nanos,
}

impl Machine {
    /// Returns a server with these settings, its controller running.
    pub fn with(settings: &[(&str, &[u64])]) -> Machine {
        Machine::on(Config::default(), settings)
    }

    /// Returns a server with these settings that expects one device, at [`PORT`], for a service.
    pub fn serving(
        service: ServiceKind,
        identity: (u16, u16),
        settings: &[(&str, &[u64])],
    ) -> Machine {
        let expected =
            Expected { service, interface: 0, connector: PORT, route: 0, identity, serial: 0 };
        let (serves, devices) = ([service as u64], expected.words());
        let own: [(&str, &[u64]); 2] = [(SERVES, &serves), (DEVICES, &devices)];
        Machine::with(&[&own, settings].concat())
    }

    /// Returns a server with these settings on a controller of this kind, which is running.
    pub fn on(config: Config, settings: &[(&str, &[u64])]) -> Machine {
        let ground = ground::set_up(config);
        let mut all = Settings::NONE;
        for (name, numbers) in settings {
            all.put(name, numbers).expect("there is room");
        }
        let told = ServerSettings::read(&all);
        let offers = offered(&ground, &told).expect("everything is there");
        let server = UsbServer::open(&ground, offers, &told, Nanos::ZERO).expect("it starts");
        let bells = server.bells();
        let (given, steady, visits, sleeps, wake) = (Vec::new(), None, 0, false, Nanos::ZERO);
        let messages = 0;
        let mut machine =
            Machine { server, ground, bells, given, steady, visits, sleeps, wake, messages };
        machine.run(Nanos::from_millis(20));
        machine
    }

    /// From now on nothing happens to this branch but transfers and their interrupts.
    pub fn is_steady(&mut self, branch: u16) {
        (self.steady, self.visits) = (Some(branch), 0);
    }

    fn note(&mut self, attended: Attended) -> bool {
        let rung = self.bells.iter().enumerate();
        let rung = rung.filter(|(bell, _)| attended.fresh >> bell & 1 != 0);
        self.given.extend(rung.map(|(_, name)| *name));
        self.messages += attended.messages;
        attended.posts
    }

    /// A thread of a branch: the branch, and the server if the branch left something for it.
    fn attend(&mut self, branch: u16, cause: WakeCause) {
        ground::forbid(self.steady.filter(|steady| *steady != branch));
        let branches = self.server.branches();
        let attended = branches.of(branch).enter(|branch| branch.attend(cause, ground::now()));
        let mut posts = self.note(attended);
        assert!(!posts || self.steady != Some(branch), "a steady branch needs the server");
        while posts {
            self.server.attend(WakeCause::Posts(branch), ground::now());
            posts = self.visit(branch);
        }
        ground::forbid(None);
    }

    /// The server itself enters no steady branch.
    fn attend_server(&mut self, cause: WakeCause) {
        ground::forbid(self.steady);
        self.server.attend(cause, ground::now());
        ground::forbid(None);
    }

    /// Visits a branch that may have something to do; true if it left something for the server.
    fn visit(&mut self, branch: u16) -> bool {
        let now = ground::now();
        let (attended, due) = self.server.branches().of(branch).enter(|branch| {
            let due = branch.is_due(now);
            (if due { branch.attend(WakeCause::Time, now) } else { branch.outlook() }, due)
        });
        self.visits += u32::from(due && self.steady == Some(branch));
        self.note(attended)
    }

    /// The thread that manages.
    fn manage(&mut self, cause: WakeCause) {
        self.attend_server(cause);
        for branch in 1..=self.server.branches().count() {
            while self.visit(branch) {
                self.attend_server(WakeCause::Posts(branch));
            }
        }
        self.wake = self.next_wake().min(ground::now() + LOOK);
    }

    fn next_wake(&mut self) -> Nanos {
        let branches = self.server.branches();
        let wake = |branch| branches.of(branch).enter(|branch| branch.outlook().wake);
        (1..=branches.count()).map(wake).fold(self.server.next_wake(), Nanos::min)
    }

    fn managing_wake(&mut self) -> Nanos {
        if self.sleeps { self.wake } else { self.next_wake() }
    }

    /// The thread of tuned pipes tells the channels something.
    pub fn order(&mut self, order: &PlaceOrder) {
        let branch = *self.server.can_branches().first().expect("it serves CAN interfaces");
        let branches = self.server.branches();
        branches.of(branch).enter(|branch| branch.order(order, ground::now()));
        self.attend(branch, WakeCause::Asked);
    }

    /// A client has asked for something.
    pub fn ask(&mut self) {
        for branch in 1..=self.server.branches().count() {
            if self.steady != Some(branch) {
                self.attend(branch, WakeCause::Asked);
            }
        }
    }

    /// Lets time pass: interrupts are attended to when they come, the rest when it is due.
    pub fn run(&mut self, time: Nanos) {
        let end = ground::now() + time;
        loop {
            let next = ground::next_event().min(self.managing_wake());
            let interrupts = ground::advance(next.min(end));
            for interrupter in interrupts {
                match interrupter {
                    0 => self.manage(WakeCause::Interrupt(0)),
                    branch => self.attend(branch, WakeCause::Interrupt(branch)),
                }
            }
            if self.managing_wake() <= ground::now() {
                self.manage(WakeCause::Time);
            }
            if next > end {
                return;
            }
        }
    }

    /// Returns whether a semaphore was given since the last call.
    pub fn was_given(&mut self, name: &str) -> bool {
        let count = self.given.len();
        self.given.retain(|given| *given != name);
        self.given.len() < count
    }
}

/// Returns whether the server has logged a line with these words since somebody looked.
pub fn logged(words: &str) -> bool {
    ground::take_lines().iter().any(|line| line.contains(words))
}
