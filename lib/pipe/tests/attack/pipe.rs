//! An endpoint with its pipes, tick by tick: device, bus, interrupts, driver, users.

use crate::machine::{Machine, Server, Vcpu};
use diapason_abi::Nanos;
use diapason_pipe::bill::{StageTimes, Taking, Telling, Transfers};
use diapason_random::Random;
use diapason_vcpu::{Pibs, SporadicServer};
use std::collections::VecDeque;

/// A message: of which channel, when it came, and what became of it.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    pub channel: usize,
    pub arrived: u64,
    pub sampled: Option<u64>,
    pub in_ring: Option<u64>,
    pub done: Option<u64>,
}

/// A thread of the driver.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    pub work: StageTimes,
    pub telling: Telling,
}

/// A user of a channel.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    pub message: u64,
    pub wake: u64,
    pub taking: Taking,
    /// (C, T) of its VCPU.
    pub vcpu: (u64, u64),
}

/// A system: what is fixed.
#[derive(Clone, Debug)]
pub struct Setup {
    pub bus: Transfers,
    pub moderation: u64,
    pub gap: u64,
    /// Cost of a top half, and the longest kernel section.
    pub top_half: u64,
    pub section: u64,
    pub bottom_half: Driver,
    /// U as 1/k, and the period it inherits.
    pub io: (u32, u64),
    /// The receiver and its (C, T), if there is one.
    pub receiver: Option<(Driver, (u64, u64))>,
    pub readers: Vec<Reader>,
    /// (C, T) of VCPUs that have nothing to do with the pipe.
    pub others: Vec<(u64, u64)>,
    /// Places in all lists of replenishments.
    pub chunks: u32,
    /// All VCPUs are in one queue by deadline.
    pub by_deadline: bool,
    /// The work of the bottom half is known, and not only its share.
    pub known: bool,
}

/// How the world behaves in a run: each of these by chance, or always at its worst.
#[derive(Clone, Copy, Debug)]
pub struct Mood {
    /// Transfers take as long as they may, as short as they may, or any time.
    pub bus: u64,
    /// Moderation takes as long as it may, as short as it may, or any time.
    pub moderation: u64,
    /// Costs are the longest, or any.
    pub costs: u64,
    /// Sections are never there, always, or sometimes.
    pub sections: u64,
    /// Others run always, never, sometimes, or begin together now and then.
    pub others: u64,
    /// A driver goes on with what ended while it worked.
    pub eager: bool,
    pub block_first: bool,
}

impl Mood {
    pub fn any(random: &mut Random) -> Mood {
        Mood {
            bus: random.below(4),
            moderation: random.below(4),
            costs: random.below(4),
            sections: random.below(3),
            others: random.below(4),
            eager: random.one_in(2),
            block_first: random.one_in(2),
        }
    }

    /// Everything at its longest.
    pub const WORST: Mood = Mood {
        bus: 0,
        moderation: 0,
        costs: 0,
        sections: 1,
        others: 0,
        eager: false,
        block_first: false,
    };
}

/// Returns a number between `least` and `most`, by mood: the most, the least, or any.
fn by_mood(mood: u64, least: u64, most: u64, random: &mut Random) -> u64 {
    match mood {
        0 => most,
        1 => least,
        _ => random.between(least, most),
    }
}

/// Returns whether a transfer is one of another endpoint: its messages have no user.
fn is_beside(carried: &[usize], messages: &[Message], users: usize) -> bool {
    carried.iter().any(|id| messages[*id].channel >= users)
}

/// The state of a driver's thread.
#[derive(Default)]
struct Thread {
    woken: bool,
    /// The thread pays for having been woken.
    waking: bool,
    /// Transfers it has heard of.
    heard: VecDeque<Vec<usize>>,
    /// Those it has taken on, and those it is done with and has not passed on.
    taken: VecDeque<Vec<usize>>,
    finished: Vec<Vec<usize>>,
}

#[derive(Default)]
struct Using {
    wakes: u64,
    /// A user that looks for messages itself sleeps until then.
    sleeps: Option<u64>,
    told: Vec<u64>,
    waking: bool,
    ring: VecDeque<usize>,
    taken: VecDeque<usize>,
    finished: Vec<usize>,
    peak: usize,
}

/// The results of one run.
pub struct Outcome {
    pub messages: Vec<Message>,
    /// Highest fill of each ring, and of the device.
    pub peaks: Vec<usize>,
    pub device_peak: usize,
    /// When the driver woke each user.
    pub told: Vec<Vec<u64>>,
}

pub struct Endpoint<'a> {
    setup: &'a Setup,
    mood: Mood,
    random: Random,
    machine: Machine,
    messages: Vec<Message>,
    device: VecDeque<usize>,
    device_peak: usize,
    requests: u64,
    /// Begin and end of the transfer in progress, and what it carries.
    transfer: Option<(u64, Vec<usize>)>,
    /// When the last transfers of a row could begin, up to a run of them, and when it ended.
    row: VecDeque<u64>,
    row_end: u64,
    /// The last transfer was full, and the device says next that nothing follows.
    open: bool,
    ended: VecDeque<Vec<usize>>,
    /// When the interrupt comes that is due.
    due: Option<u64>,
    last_interrupt: Option<u64>,
    /// The interrupt has come, and waits for the end of a section.
    asserted: bool,
    top_half_left: u64,
    bottom_half: Thread,
    receiver: Thread,
    users: Vec<Using>,
}

const IO: usize = 0;

impl<'a> Endpoint<'a> {
    pub fn new(setup: &'a Setup, mood: Mood, random: Random) -> Endpoint<'a> {
        let main = |(budget, period): (u64, u64)| {
            let places = setup.chunks as usize;
            let server = SporadicServer::new(Nanos(budget), Nanos(period), places, Nanos::ZERO);
            Vcpu::new(Server::Main(server))
        };
        let (share, period) = setup.io;
        let io = Pibs::new(1_000_000 / share, Nanos::FOREVER, Nanos::ZERO);
        let mut vcpus = vec![Vcpu::new(Server::Io(io, Nanos(period)))];
        vcpus.extend(setup.receiver.iter().map(|(_, vcpu)| main(*vcpu)));
        vcpus.extend(setup.readers.iter().map(|reader| main(reader.vcpu)));
        vcpus.extend(setup.others.iter().map(|vcpu| main(*vcpu)));
        Endpoint {
            setup,
            mood,
            random,
            machine: Machine::new(vcpus, setup.by_deadline),
            messages: vec![],
            device: VecDeque::new(),
            device_peak: 0,
            requests: setup.bus.queued,
            transfer: None,
            row: VecDeque::new(),
            row_end: 0,
            open: false,
            ended: VecDeque::new(),
            due: None,
            last_interrupt: None,
            asserted: false,
            top_half_left: 0,
            bottom_half: Thread::default(),
            receiver: Thread::default(),
            users: setup.readers.iter().map(|_| Using::default()).collect(),
        }
    }

    /// Runs with arrivals (time, channel), sorted, until `end`.
    pub fn run(mut self, arrivals: &[(u64, usize)], end: u64) -> Outcome {
        let mut coming = arrivals.iter().peekable();
        for now in 0..end {
            if self.mood.block_first {
                // A thread without work has blocked before anything new comes.
                self.start_threads(now);
                self.machine.tell(now);
            }
            while let Some((at, channel)) = coming.next_if(|(at, _)| *at <= now) {
                self.arrive(*at, *channel);
            }
            self.end_transfer(now);
            self.interrupt(now);
            self.others();
            self.start_threads(now);
            self.begin_transfer(now);
            self.machine.tell(now);
            if self.top_half_left > 0 && !self.machine.in_section() {
                self.top_half_left -= 1;
                if self.top_half_left == 0 {
                    self.bottom_half.woken = true;
                }
                continue;
            }
            let section = self.section();
            if let Some(who) = self.machine.tick(now, section) {
                self.finished(who, now + 1);
            }
        }
        let peaks = self.users.iter().map(|user| user.peak).collect();
        let told = self.users.into_iter().map(|user| user.told).collect();
        Outcome { messages: self.messages, peaks, device_peak: self.device_peak, told }
    }

    fn arrive(&mut self, arrived: u64, channel: usize) {
        let message = Message { channel, arrived, sampled: None, in_ring: None, done: None };
        self.messages.push(message);
        let id = self.messages.len() - 1;
        if channel < self.users.len() {
            self.device.push_back(id);
        } else {
            // It came through another endpoint.
            self.ended(vec![id], arrived);
        }
    }

    fn end_transfer(&mut self, now: u64) {
        let Some((_, carried)) = self.transfer.take_if(|(end, _)| *end <= now) else { return };
        self.ended(carried, now);
    }

    fn ended(&mut self, carried: Vec<usize>, now: u64) {
        self.ended.push_back(carried);
        if self.due.is_none() {
            let earliest = self.last_interrupt.map_or(now, |last| now.max(last + self.setup.gap));
            let latest = now + self.setup.moderation;
            self.due = Some(by_mood(self.mood.moderation, earliest, latest, &mut self.random));
        }
    }

    fn begin_transfer(&mut self, now: u64) {
        let bus = self.setup.bus;
        let begins = match bus.paced {
            // With a message or without, and only then.
            Some(pace) => now.is_multiple_of(pace.0),
            None => !self.device.is_empty() || self.open,
        };
        if self.requests > 0 && self.transfer.is_none() && begins {
            self.requests -= 1;
            let count = self.device.len().min(bus.messages as usize);
            let carried: Vec<usize> = self.device.drain(..count).collect();
            carried.iter().for_each(|message| self.messages[*message].sampled = Some(now));
            self.open = bus.empties && count as u64 == bus.messages;
            let most = self.longest_in_row(now) - now;
            let time = by_mood(self.mood.bus, bus.least.0, most, &mut self.random);
            self.transfer = Some((now + time, carried));
            self.row_end = now + time;
        }
        self.device_peak = self.device_peak.max(self.device.len());
    }

    /// A transfer begins. Returns when it ends at the latest, so that those that may follow it in
    /// the row have time.
    fn longest_in_row(&mut self, now: u64) -> u64 {
        let bus = self.setup.bus;
        if self.row_end != now {
            self.row.clear();
        }
        self.row.push_back(now);
        if self.row.len() as u64 > bus.run {
            self.row.pop_front();
        }
        let numbers = (1..=self.row.len() as u64).rev();
        let ends = self.row.iter().zip(numbers);
        let ends =
            ends.map(|(begun, number)| begun + bus.worst.0 - (bus.run - number) * bus.least.0);
        ends.min().unwrap()
    }

    fn interrupt(&mut self, now: u64) {
        if self.due.take_if(|due| *due <= now).is_some() {
            self.last_interrupt = Some(now);
            self.asserted = true;
        }
        if !self.machine.in_section() && std::mem::take(&mut self.asserted) {
            self.top_half_left += self.setup.top_half;
            if self.setup.top_half == 0 {
                self.bottom_half.woken = true;
            }
        }
    }

    fn section(&mut self) -> u64 {
        match self.mood.sections {
            0 => 0,
            1 => self.setup.section + 1,
            _ => self.random.between(0, self.setup.section + 1),
        }
    }

    fn others(&mut self) {
        let first = self.machine.vcpus.len() - self.setup.others.len();
        let together = self.mood.others == 3 && self.random.one_in(12);
        for vcpu in &mut self.machine.vcpus[first..] {
            let begins = match self.mood.others {
                0 => true,
                1 => false,
                3 => together,
                _ => self.random.one_in(8),
            };
            if vcpu.left == 0 && begins {
                vcpu.left =
                    if self.mood.others == 0 { 1 << 32 } else { self.random.between(1, 20) };
            }
        }
    }

    fn cost(&mut self, most: u64) -> u64 {
        let least = most.min(1);
        by_mood(self.mood.costs / 2 * 2, least, most, &mut self.random)
    }

    /// Threads without work look for some. Work of no cost is done at once.
    fn start_threads(&mut self, now: u64) {
        while self.machine.vcpus[IO].left == 0 && self.advance_bottom_half(now) {}
        if self.setup.receiver.is_some() {
            while self.machine.vcpus[1].left == 0 && self.advance_receiver(now) {}
        }
        for user in 0..self.users.len() {
            let vcpu = self.vcpu_of(user);
            while self.machine.vcpus[vcpu].left == 0 && self.advance_user(user, now) {}
        }
    }

    fn vcpu_of(&self, user: usize) -> usize {
        1 + usize::from(self.setup.receiver.is_some()) + user
    }

    fn advance_bottom_half(&mut self, now: u64) -> bool {
        let Driver { work, telling } = self.setup.bottom_half;
        let thread = &mut self.bottom_half;
        if thread.woken && !thread.waking && thread.taken.is_empty() {
            thread.woken = false;
            thread.taken.extend(self.ended.drain(..));
            if work.activation.0 > 0 {
                thread.waking = true;
                self.machine.vcpus[IO].left = self.cost(work.activation.0);
                return true;
            }
        }
        let thread = &mut self.bottom_half;
        if thread.taken.is_empty() && thread.finished.is_empty() {
            return false;
        }
        if let Some(first) = thread.taken.front() {
            let carried = first.len() as u64;
            let is_beside = is_beside(first, &self.messages, self.users.len());
            let transfer = if is_beside { 0 } else { work.transfer.0 };
            let cost = self.cost(transfer + work.message.0 * carried);
            self.machine.vcpus[IO].left = cost;
            if cost == 0 {
                self.bottom_half_handled(telling, now);
            }
            return true;
        }
        self.pass_on_bottom_half(now);
        true
    }

    fn bottom_half_handled(&mut self, telling: Telling, now: u64) {
        let Some(first) = self.bottom_half.taken.pop_front() else { return };
        self.bottom_half.finished.push(first);
        let each = telling == Telling::Each;
        if each || self.bottom_half.taken.is_empty() {
            self.pass_on_bottom_half(now);
        }
        if each && self.mood.eager {
            self.bottom_half.taken.extend(self.ended.drain(..));
        }
    }

    fn pass_on_bottom_half(&mut self, now: u64) {
        let transfers = std::mem::take(&mut self.bottom_half.finished);
        if self.setup.receiver.is_some() {
            self.receiver.woken |= !transfers.is_empty();
            self.receiver.heard.extend(transfers);
        } else {
            self.distribute(transfers, now);
        }
    }

    /// Messages go to their rings, requests back to the queue.
    fn distribute(&mut self, mut transfers: Vec<Vec<usize>>, now: u64) {
        transfers.retain(|carried| !is_beside(carried, &self.messages, self.users.len()));
        self.requests += transfers.len() as u64;
        let mut fresh = vec![false; self.users.len()];
        for id in transfers.into_iter().flatten() {
            let message = &mut self.messages[id];
            message.in_ring = Some(now);
            let user = &mut self.users[message.channel];
            user.ring.push_back(id);
            user.peak = user.peak.max(user.ring.len());
            fresh[message.channel] = true;
        }
        for (user, _) in self.users.iter_mut().zip(fresh).filter(|(_, fresh)| *fresh) {
            user.wakes += 1;
            user.told.push(now);
        }
    }

    fn advance_receiver(&mut self, now: u64) -> bool {
        let Some((Driver { work, telling }, _)) = self.setup.receiver else { return false };
        let thread = &mut self.receiver;
        if thread.woken && !thread.waking && thread.taken.is_empty() {
            thread.woken = false;
            thread.taken.append(&mut thread.heard);
            if work.activation.0 > 0 {
                thread.waking = true;
                self.machine.vcpus[1].left = self.cost(work.activation.0);
                return true;
            }
        }
        let Some(first) = self.receiver.taken.front() else { return false };
        let carried = first.len() as u64;
        let cost = self.cost(work.transfer.0 + work.message.0 * carried);
        self.machine.vcpus[1].left = cost;
        if cost == 0 {
            self.receiver_handled(telling, now);
        }
        true
    }

    fn receiver_handled(&mut self, telling: Telling, now: u64) {
        let thread = &mut self.receiver;
        let Some(first) = thread.taken.pop_front() else { return };
        thread.finished.push(first);
        if telling == Telling::Each || thread.taken.is_empty() {
            let transfers = std::mem::take(&mut thread.finished);
            self.distribute(transfers, now);
        }
    }

    fn advance_user(&mut self, index: usize, now: u64) -> bool {
        let Reader { message, wake, taking, .. } = self.setup.readers[index];
        let vcpu = self.vcpu_of(index);
        let user = &mut self.users[index];
        if let Some(until) = user.sleeps {
            if now < until {
                return false;
            }
            user.sleeps = None;
            user.waking = wake > 0;
            self.machine.vcpus[vcpu].left = self.cost(wake);
            return true;
        }
        if user.taken.is_empty() && !user.waking {
            let count =
                if taking == Taking::All { user.ring.len() } else { user.ring.len().min(1) };
            user.taken.extend(user.ring.drain(..count));
        }
        if user.taken.is_empty() && !user.waking {
            if let Taking::Looking { every, .. } = taking {
                user.sleeps = Some(now + every.0);
                return false;
            }
            if user.wakes == 0 {
                return false;
            }
            user.wakes -= 1;
            if wake == 0 {
                return true;
            }
            user.waking = true;
            self.machine.vcpus[vcpu].left = self.cost(wake);
            return true;
        }
        let cost = self.cost(message);
        self.machine.vcpus[vcpu].left = cost;
        if cost == 0 {
            self.user_handled(index, now);
        }
        true
    }

    fn user_handled(&mut self, index: usize, now: u64) {
        let user = &mut self.users[index];
        user.finished.extend(user.taken.pop_front());
        if self.setup.readers[index].taking != Taking::All || user.taken.is_empty() {
            for id in user.finished.drain(..) {
                self.messages[id].done = Some(now);
            }
        }
    }

    /// A thread did what it had.
    fn finished(&mut self, who: usize, now: u64) {
        let drivers = 1 + usize::from(self.setup.receiver.is_some());
        if who == IO {
            if std::mem::take(&mut self.bottom_half.waking) {
                // It looks again at what has ended until now.
                if self.mood.eager {
                    self.bottom_half.taken.extend(self.ended.drain(..));
                }
            } else {
                self.bottom_half_handled(self.setup.bottom_half.telling, now);
            }
        } else if who < drivers {
            if !std::mem::take(&mut self.receiver.waking)
                && let Some((driver, _)) = self.setup.receiver
            {
                self.receiver_handled(driver.telling, now);
            }
        } else if who < drivers + self.users.len() {
            let index = who - drivers;
            if !std::mem::take(&mut self.users[index].waking) {
                self.user_handled(index, now);
            }
        }
    }
}
