//! The surroundings of a class in these tests. They keep the rules of `class/mod.rs` and watch that
//! the class keeps them, too.

use diapason_abi::Nanos;
use diapason_random::Random;
use diapason_usb::Setup;
use diapason_usb::class::{Class, Completion, HEAD, Landed, Request, TransferFault};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A transfer that a class asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Asked {
    Control(Setup, Vec<u8>),
    In(usize),
    Out(Vec<u8>),
    Shared(u32, usize),
    Recover,
    Alternate(u8, u8),
}

/// A class and the transfers it waits for.
pub struct Shell<C: Class> {
    pub class: C,
    pub now: Nanos,
    pending: BTreeMap<u8, VecDeque<Asked>>,
    halted: BTreeSet<u8>,
    cancelled: BTreeSet<u8>,
    /// Endpoints that do not halt.
    pub isochronous: bool,
    /// Transfers that went out last, the latest first.
    sent: VecDeque<Vec<u8>>,
}

impl<C: Class> Shell<C> {
    pub fn new(class: C) -> Shell<C> {
        Shell {
            class,
            now: Nanos::ZERO,
            pending: BTreeMap::new(),
            halted: BTreeSet::new(),
            cancelled: BTreeSet::new(),
            isochronous: false,
            sent: VecDeque::new(),
        }
    }

    /// Takes all requests of the class.
    pub fn pull(&mut self) {
        for _ in 0..200 {
            let Some(request) = self.class.request(self.now) else { return };
            let (endpoint, asked) = match request {
                Request::Control { setup, data } => {
                    let out = if setup.is_in() { 0 } else { setup.length };
                    assert_eq!(data.len(), usize::from(out), "{setup:?}");
                    (0, Asked::Control(setup, data.to_vec()))
                }
                Request::Alternate { interface, alternate } => {
                    (0, Asked::Alternate(interface, alternate))
                }
                Request::In { endpoint, length } => {
                    assert!(endpoint & 0x80 != 0 && length > 0);
                    (endpoint, Asked::In(length))
                }
                Request::Out { endpoint, data } => {
                    assert!(endpoint & 0x80 == 0 && endpoint != 0);
                    (endpoint, Asked::Out(data.to_vec()))
                }
                Request::Shared { endpoint, place, length } => {
                    assert!(endpoint & 0x7f != 0 && length > 0);
                    (endpoint, Asked::Shared(place, length))
                }
                Request::Recover { endpoint } => {
                    self.halted.remove(&endpoint);
                    assert!(self.pending.get(&endpoint).is_none_or(VecDeque::is_empty));
                    (endpoint, Asked::Recover)
                }
                Request::Cancel { endpoint } => {
                    self.cancelled.insert(endpoint);
                    continue;
                }
            };
            assert!(!self.halted.contains(&endpoint), "{asked:?} on halted {endpoint:#x}");
            let queue = self.pending.entry(endpoint).or_default();
            queue.push_back(asked);
            assert!(queue.len() <= 32, "{endpoint:#x}: {} pending", queue.len());
        }
        panic!("it asks for ever");
    }

    /// Returns the next transfer of an endpoint.
    pub fn next(&self, endpoint: u8) -> Option<&Asked> {
        self.pending.get(&endpoint)?.front()
    }

    /// Ends the next transfer of an endpoint, and what a fault ends besides; takes requests again.
    pub fn end(
        &mut self,
        endpoint: u8,
        result: Result<&[u8], TransferFault>,
        tell: &mut dyn FnMut(C::Event<'_>),
    ) {
        let queue = self.pending.get_mut(&endpoint).expect("nothing was asked");
        let asked = queue.pop_front().expect("nothing is pending");
        self.report(endpoint, &asked, result, tell);
        // The control endpoint of a device clears its halt by itself.
        if result.is_err() && endpoint != 0 && !self.isochronous {
            self.halted.insert(endpoint);
            self.flush(endpoint, tell);
        }
        self.settle(tell);
    }

    fn report(
        &mut self,
        endpoint: u8,
        asked: &Asked,
        result: Result<&[u8], TransferFault>,
        tell: &mut dyn FnMut(C::Event<'_>),
    ) {
        let Asked::Shared(place, length) = *asked else {
            return self.class.complete(self.now, Completion { endpoint, result }, tell);
        };
        let moved = result.map(|bytes| bytes.len().min(length));
        let head = result.ok().filter(|_| endpoint & 0x80 != 0).unwrap_or(&[]);
        let head = &head[..head.len().min(HEAD)];
        self.class.landed(self.now, Landed { endpoint, place, result: moved, head }, tell);
    }

    fn flush(&mut self, endpoint: u8, tell: &mut dyn FnMut(C::Event<'_>)) {
        for asked in self.pending.remove(&endpoint).unwrap_or_default() {
            self.report(endpoint, &asked, Err(TransferFault::Cancelled), tell);
        }
    }

    /// Takes requests, and ends what was cancelled, until nothing changes.
    pub fn settle(&mut self, tell: &mut dyn FnMut(C::Event<'_>)) {
        self.pull();
        while let Some(endpoint) = self.cancelled.pop_first() {
            let busy = self.pending.get(&endpoint).is_some_and(|queue| !queue.is_empty());
            if endpoint != 0 && !self.isochronous && busy {
                self.halted.insert(endpoint);
            }
            self.flush(endpoint, tell);
            self.pull();
        }
    }

    /// Lets the time pass to the next wake, and wakes.
    pub fn wake(&mut self, tell: &mut dyn FnMut(C::Event<'_>)) {
        let wake = self.class.next_wake();
        assert!(wake < Nanos::FOREVER, "it waits for nothing");
        self.now = self.now.max(wake);
        self.class.wake(self.now, tell);
        assert!(self.class.next_wake() > self.now, "it wants to be woken again and again");
        self.settle(tell);
    }

    /// Ends something with something: one step of a hostile device.
    fn torment(
        &mut self,
        random: &mut Random,
        seeds: &[Vec<u8>],
        honest: Honest<'_>,
        tell: &mut dyn FnMut(C::Event<'_>),
    ) -> bool {
        self.settle(tell);
        self.now += Nanos(random.below(20_000_000));
        if self.class.next_wake() < Nanos::FOREVER && random.one_in(100) {
            self.wake(tell);
        } else if self.class.next_wake() <= self.now || random.one_in(50) {
            self.class.wake(self.now, tell);
            self.settle(tell);
        }
        let open: Vec<u8> =
            self.pending.iter().filter(|(_, queue)| !queue.is_empty()).map(|(e, _)| *e).collect();
        let Some(endpoint) = open.get(random.index(open.len())).copied() else {
            if self.class.next_wake() == Nanos::FOREVER {
                return false;
            }
            self.wake(tell);
            return true;
        };
        let fault = random.pick(&[
            TransferFault::Stall,
            TransferFault::Damaged,
            TransferFault::Stall,
            TransferFault::Gone,
        ]);
        if random.one_in(if fault == TransferFault::Gone { 400 } else { 25 }) {
            self.end(endpoint, Err(fault), tell);
            return true;
        }
        let asked = self.next(endpoint).expect("it is open").clone();
        if let Asked::Out(data) = &asked {
            self.sent.truncate(3);
            self.sent.push_front(data.clone());
        }
        if let Some(bytes) =
            honest(&asked, self.sent.make_contiguous()).filter(|_| !random.one_in(4))
        {
            self.end(endpoint, Ok(&bytes), tell);
            return true;
        }
        let bytes = match &asked {
            Asked::In(length) | Asked::Shared(_, length) => garbage(random, seeds, *length),
            Asked::Control(setup, _) if setup.is_in() => {
                garbage(random, seeds, setup.length.into())
            }
            Asked::Control(_, data) | Asked::Out(data) => {
                let cut = if random.one_in(20) { random.index(data.len()) } else { data.len() };
                data[..cut].to_vec()
            }
            Asked::Recover | Asked::Alternate(..) => Vec::new(),
        };
        self.end(endpoint, Ok(&bytes), tell);
        true
    }
}

/// Bytes that look like the seeds, as long as `most` at most.
fn garbage(random: &mut Random, seeds: &[Vec<u8>], most: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..random.within(0, 4) {
        let mut one = seeds[random.index(seeds.len())].clone();
        for _ in 0..random.pick(&[0, 0, 1, 1, 3]) {
            let at = random.index(one.len());
            if let Some(byte) = one.get_mut(at) {
                *byte = random.pick(&[0, 1, 2, 0x40, 0x80, 0xff, random.clone().bits() as u8]);
            }
        }
        bytes.extend(one);
    }
    if random.one_in(4) {
        bytes.truncate(random.index(bytes.len().max(1)));
    }
    bytes.truncate(most);
    bytes
}

/// The answers of a good device, from the request and the bytes sent to it, the latest first.
pub type Honest<'a> = &'a dyn Fn(&Asked, &[Vec<u8>]) -> Option<Vec<u8>>;

/// Returns a device that never answers as it should.
pub fn never(_: &Asked, _: &[Vec<u8>]) -> Option<Vec<u8>> {
    None
}

/// Runs answers of a hostile device, to as many new classes as it takes; `act` is its user, and
/// what `honest` gives is said most of the time.
pub fn hostile<C: Class>(
    (seed, isochronous): (u64, bool),
    answers: usize,
    seeds: &[Vec<u8>],
    honest: Honest<'_>,
    make: impl Fn(&mut Random) -> C,
    mut act: impl FnMut(&mut C, Nanos, &mut Random),
    tell: &mut dyn FnMut(C::Event<'_>),
) {
    let mut given = 0;
    for life in 0.. {
        let mut random = Random::stream(seed, life);
        let mut shell = Shell::new(make(&mut random));
        shell.isochronous = isochronous;
        let length = random.within(50, 500);
        for _ in 0..length {
            act(&mut shell.class, shell.now, &mut random);
            if !shell.torment(&mut random, seeds, honest, tell) {
                break;
            }
            given += 1;
        }
        if given >= answers {
            return;
        }
        assert!(life < answers as u64, "no class lives long enough");
    }
}
