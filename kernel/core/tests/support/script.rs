//! A script of the actors and their VCPUs as text: one line each, times in microseconds.
//!
//! ```text
//! queues 1
//! main V 2 10 [queue Q] [list N] [background]
//! io X 100000 serving V W [queue Q] [cap T]
//! mutex m
//! semaphore s 0
//! mailbox b 2
//! high 30 on V: sleep 5 hint m; lock m; run 1; unlock m
//! low 10: run 3; again
//! ```
//! An actor that is at its end exits. A word that is not understood fails the test.

use super::FOREVER;
use super::plan::Plan;
use diapason_abi::Key;
use diapason_abi::archive::NONE;

/// One step of an actor. Objects and VCPUs are numbers in the order of their declaration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Use the processor for so long.
    Run(u64),
    /// Sleep until a time; then comes this mutex.
    Sleep(u64, Option<usize>),
    /// Sleep for so long.
    Nap(u64, Option<usize>),
    /// Lock a mutex or take from a semaphore, waiting for so long at most; then comes this mutex.
    Lock(usize, u64, Option<usize>),
    /// Unlock a mutex, or signal a semaphore.
    Unlock(usize),
    /// Delete a mutex or semaphore.
    Delete(usize),
    Create(usize),
    /// Send to a mailbox, waiting for so long at most.
    Send(usize, u64),
    /// Receive from a mailbox, waiting for so long at most; then comes this mutex.
    Receive(usize, u64, Option<usize>),
    /// Let an equal go first.
    Yield,
    /// Another budget and period for a VCPU.
    Set(usize, u64, u64),
    Again,
}

/// A Main or an I/O VCPU.
#[derive(Clone, Debug)]
pub struct Virtual {
    pub name: String,
    /// `C` and `T` of a Main VCPU.
    pub main: Option<(u64, u64)>,
    /// Parts per million of an I/O VCPU, the Main ones it serves, and its cap.
    pub io: (u32, u64, u64),
    pub queue: u8,
    /// True if it may run without budget.
    pub background: bool,
    /// Length of its list.
    pub list: u8,
}

/// A process with one thread.
#[derive(Clone, Debug)]
pub struct Actor {
    pub name: String,
    /// The thread's priority among those of its VCPU, or among those without.
    pub priority: u8,
    pub on: Option<usize>,
    /// The actions in order.
    pub ops: Vec<Op>,
}

/// A system and what happens in it.
#[derive(Clone, Default, Debug)]
pub struct Script {
    pub queues: u8,
    pub vcpus: Vec<Virtual>,
    /// Mutexes (no count) and semaphores.
    pub locks: Vec<(String, Option<u64>)>,
    /// Mailboxes with their capacity.
    pub mailboxes: Vec<(String, u16)>,
    /// The actors of the script.
    pub actors: Vec<Actor>,
}

/// Microseconds in a text: `2` or `0.5`.
fn time(word: &str) -> u64 {
    let (whole, part) = word.split_once('.').unwrap_or((word, ""));
    let part = format!("{part:0<3}");
    whole.parse::<u64>().expect("a time") * 1_000 + part.parse::<u64>().expect("thousandths")
}

impl Script {
    /// Parses the text of a script.
    pub fn parse(text: &str) -> Script {
        let mut script = Script::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match line.split_once(':') {
                Some((who, what)) => script.actor(who, what),
                None => script.declare(&line.split_whitespace().collect::<Vec<_>>()),
            }
        }
        script
    }

    fn vcpu(&self, name: &str) -> usize {
        self.vcpus.iter().position(|v| v.name == name).expect("a declared VCPU")
    }

    fn lock(&self, name: &str) -> usize {
        self.locks.iter().position(|(n, _)| n == name).expect("a declared lock")
    }

    fn mailbox(&self, name: &str) -> usize {
        self.mailboxes.iter().position(|(n, _)| n == name).expect("a declared mailbox")
    }

    fn declare(&mut self, words: &[&str]) {
        let name = words[1].to_string();
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        match words[0] {
            "queues" => self.queues = number(1) as u8,
            "mutex" => self.locks.push((name, None)),
            "semaphore" => self.locks.push((name, Some(number(2)))),
            "mailbox" => self.mailboxes.push((name, number(2) as u16)),
            "main" => {
                let main = Some((time(words[2]), time(words[3])));
                let (io, queue) = ((0, 0, 0), self.queues);
                self.vcpus.push(Virtual { name, main, io, queue, background: false, list: 8 });
                self.options(&words[4..]);
            }
            "io" => {
                let (io, queue) = ((number(2) as u32, 0, u64::MAX), self.queues);
                self.vcpus.push(Virtual {
                    name,
                    main: None,
                    io,
                    queue,
                    background: false,
                    list: 0,
                });
                self.options(&words[3..]);
            }
            other => panic!("{other} declares nothing"),
        }
    }

    fn options(&mut self, words: &[&str]) {
        let mut words = words.iter();
        let mut last = self.vcpus.pop().expect("just declared");
        while let Some(word) = words.next() {
            let mut next = || *words.next().expect("a value");
            match *word {
                "queue" => last.queue = next().parse().expect("a queue"),
                "list" => last.list = next().parse().expect("a length"),
                "cap" => last.io.2 = time(next()),
                "background" => last.background = true,
                "serving" => {}
                main => last.io.1 |= 1 << self.vcpu(main),
            }
        }
        self.vcpus.push(last);
    }

    fn actor(&mut self, who: &str, what: &str) {
        let who: Vec<&str> = who.split_whitespace().collect();
        let on = (who.len() == 4).then(|| self.vcpu(who[3]));
        let steps = what.split(';').map(|step| step.split_whitespace().collect::<Vec<_>>());
        let ops = steps.filter(|step| !step.is_empty()).map(|step| self.op(&step)).collect();
        let priority = who[1].parse().expect("a priority");
        self.actors.push(Actor { name: who[0].to_string(), priority, on, ops });
    }

    fn op(&self, words: &[&str]) -> Op {
        let after = |word: &str| {
            let at = words.iter().position(|w| *w == word)?;
            Some(words[at + 1])
        };
        let hint = after("hint").map(|m| self.lock(m));
        let within = after("within").map_or(FOREVER, time);
        match words[0] {
            "run" => Op::Run(time(words[1])),
            "sleep" => Op::Sleep(time(words[1]), hint),
            "nap" => Op::Nap(time(words[1]), hint),
            "lock" | "take" => Op::Lock(self.lock(words[1]), within, hint),
            "unlock" | "signal" => Op::Unlock(self.lock(words[1])),
            "delete" => Op::Delete(self.lock(words[1])),
            "create" => Op::Create(self.lock(words[1])),
            "send" => Op::Send(self.mailbox(words[1]), within),
            "receive" => Op::Receive(self.mailbox(words[1]), within, hint),
            "yield" => Op::Yield,
            "set" => Op::Set(self.vcpu(words[1]), time(words[2]), time(words[3])),
            "again" => Op::Again,
            other => panic!("{other} is nothing to do"),
        }
    }

    /// The archive of it.
    pub fn plan(&self) -> Plan {
        let mut plan = Plan::new().dp_queues(self.queues);
        for v in &self.vcpus {
            plan = match v.main {
                Some((budget, period)) => plan.main_vcpu(&v.name, budget, period, v.queue),
                None => plan.io_vcpu(&v.name, v.io.0, v.io.1, v.queue),
            };
            plan = plan.with_vcpu(|record| {
                // Like one made at run time: no grace for the kernel's switches, all is charged.
                record.key = Key::PRIVATE.0;
                record.background = v.background;
                record.replenishments = v.main.map_or(1, |_| v.list);
                record.cap = v.io.2;
            });
        }
        for (name, count) in &self.locks {
            plan = match count {
                None => plan.mutex(name),
                Some(count) => plan.semaphore(name, *count),
            };
        }
        for (name, capacity) in &self.mailboxes {
            plan = plan.mailbox(name, *capacity);
        }
        for actor in &self.actors {
            plan = plan.process(&actor.name, actor.priority).with(|p| {
                (p.threads, p.semaphores, p.conditions, p.events) = (1, 0, 0, 0);
                p.heap_pages = 0;
                p.vcpu = actor.on.map_or(NONE, |at| at as u16);
            });
        }
        plan
    }
}
