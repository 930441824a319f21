//! A server that runs: its threads are calls, and time is that of the model.

use crate::ground::{self, Ground};
use diapason_abi::Nanos;
use diapason_abi::settings::Settings;
use diapason_usbd::{Cause, Server, Told, offered};
use diapason_xhc::Config;

/// A server and its machine.
pub struct Machine {
    pub server: Server<Ground>,
    pub ground: Ground,
    bells: Vec<&'static str>,
    /// Semaphores that were given since somebody looked.
    given: Vec<&'static str>,
}

impl Machine {
    /// A server with these settings, its controller running.
    pub fn with(settings: &[(&str, &[u64])]) -> Machine {
        let ground = ground::set_up(Config::default());
        let mut all = Settings::NONE;
        for (name, numbers) in settings {
            all.put(name, numbers).expect("there is room");
        }
        let told = Told::read(&all);
        let offers = offered(&ground, &told).expect("everything is there");
        let server = Server::open(&ground, offers, &told, Nanos::ZERO).expect("it starts");
        let bells = server.bells();
        let mut machine = Machine { server, ground, bells, given: Vec::new() };
        machine.run(Nanos::from_millis(20));
        machine
    }

    fn attend(&mut self, cause: Cause) {
        let fresh = self.server.attend(cause, ground::now());
        let rung = self.bells.iter().enumerate().filter(|(bell, _)| fresh >> bell & 1 != 0);
        self.given.extend(rung.map(|(_, name)| *name));
    }

    /// A client has asked for something.
    pub fn ask(&mut self) {
        self.attend(Cause::Asked);
    }

    /// Lets time pass: interrupts are attended to when they come, the rest when it is due.
    pub fn run(&mut self, time: Nanos) {
        let end = ground::now() + time;
        loop {
            let next = ground::next_event().min(self.server.next_wake());
            let interrupts = ground::advance(next.min(end));
            for interrupter in interrupts {
                self.attend(Cause::Interrupt(interrupter));
            }
            if self.server.next_wake() <= ground::now() {
                self.attend(Cause::Time);
            }
            if next > end {
                return;
            }
        }
    }

    /// Whether a semaphore was given since the last call.
    pub fn was_given(&mut self, name: &str) -> bool {
        let count = self.given.len();
        self.given.retain(|given| *given != name);
        self.given.len() < count
    }
}

/// Whether the server has logged a line with these words since somebody looked.
pub fn logged(words: &str) -> bool {
    ground::take_lines().iter().any(|line| line.contains(words))
}
