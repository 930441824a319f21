//! Threads of lanes that run between any two steps of the controller: whenever it enters a lane,
//! the lane's own thread has been there just before, and comes right after.

use crate::echo::{self, BULK_IN, BULK_OUT, Echo, NEWS, STREAM};
use crate::machine::{Link, Machine};
use diapason_abi::Nanos;
use diapason_random::Random;
use diapason_usb::Speed;
use diapason_usb::xhci::{
    ControllerState, DeviceId, Finished, Lane, Lanes, Limits, Notice, Request, TransferId,
};
use diapason_xhc::Config;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The clients of all lanes.
struct Client {
    random: Random,
    link: Link,
    /// The lanes do nothing more.
    rests: bool,
    devices: Vec<(u16, DeviceId)>,
    queued: BTreeMap<u64, (DeviceId, u8)>,
    counts: [u64; 4],
}

impl Client {
    /// The thread of a lane does a few things.
    fn act(&mut self, lane: &mut Lane<Link, Link>) {
        let here = self.devices.iter().filter(|(number, _)| *number == lane.number());
        let here: Vec<DeviceId> = here.map(|(_, device)| *device).collect();
        for _ in 0..if self.rests { 0 } else { self.random.below(4) } {
            let device = here.get(self.random.index(here.len().max(1)));
            match (self.random.below(8), device) {
                (0..2, Some(device)) => self.submit(lane, *device),
                (5, Some(device)) if self.random.one_in(10) => {
                    let _ = lane.cancel_all(*device, self.random.pick(&[BULK_IN, BULK_OUT, NEWS]));
                    self.counts[1] += 1;
                }
                (6, _) => self.pull(lane, &here),
                _ => {
                    lane.handle_interrupt(self.random.below(5) as u32, self.link.now());
                }
            }
            while let Some(finished) = lane.take_finished() {
                self.note(&finished);
            }
        }
    }

    /// Takes finished transfers with the events that say so, and cancels and queues others between
    /// any two of them.
    fn pull(&mut self, lane: &mut Lane<Link, Link>, here: &[DeviceId]) {
        let batch = 1 + self.random.below(4) as u32;
        while let Some(finished) = lane.next_finished(batch, self.link.now()) {
            self.note(&finished);
            self.counts[3] += 1;
            match (self.random.below(4), here.get(self.random.index(here.len().max(1)))) {
                (0, Some(device)) => {
                    let endpoint = self.random.pick(&[BULK_IN, BULK_OUT, NEWS, STREAM]);
                    let _ = lane.cancel_all(*device, endpoint);
                }
                (1, Some(device)) => self.submit(lane, *device),
                _ => {}
            }
        }
        assert!(!lane.has_events() && !lane.has_finished(), "something is left");
    }

    fn submit(&mut self, lane: &mut Lane<Link, Link>, device: DeviceId) {
        let endpoint = self.random.pick(&[BULK_IN, BULK_OUT, NEWS, STREAM]);
        let memory = Link::buffer(self.random.index(64) * 64, 64);
        let more = self.random.one_in(4);
        if let Ok(id) = lane.submit(&Request { more, ..Request::new(device, endpoint, memory) }) {
            assert!(self.queued.insert(id.0, (device, endpoint)).is_none(), "{id:?} twice");
            self.counts[0] += 1;
        }
    }

    fn note(&mut self, finished: &Finished) {
        let TransferId(id) = finished.transfer;
        let known = self.queued.remove(&id);
        assert_eq!(known.map(|(device, _)| device), Some(finished.device), "{finished:?}");
        self.counts[2] += 1;
    }
}

/// Lanes whose threads run whenever they can.
struct Preempted {
    lanes: Vec<RefCell<Lane<Link, Link>>>,
    client: RefCell<Client>,
}

impl Lanes<Link, Link> for Rc<Preempted> {
    fn with<R>(&self, lane: u16, act: impl FnOnce(&mut Lane<Link, Link>) -> R) -> R {
        let lane = &mut *self.lanes[usize::from(lane) - 1].borrow_mut();
        self.client.borrow_mut().act(lane);
        let result = act(lane);
        self.client.borrow_mut().act(lane);
        result
    }
}

/// The ports of the two devices, and their speeds.
const PORTS: [(u8, Speed); 2] = [(2, Speed::High), (6, Speed::Super)];

struct Rig {
    machine: Machine<Rc<Preempted>>,
    lanes: Rc<Preempted>,
    plugged: [bool; 2],
    changes: u64,
}

impl Rig {
    fn new(seed: u64) -> Rig {
        let mut shared = None;
        let mut machine = Machine::over(Config::default(), Limits::default(), |link, lanes| {
            let client = Client {
                random: Random::stream(seed, 1),
                link: link.clone(),
                rests: false,
                devices: Vec::new(),
                queued: BTreeMap::new(),
                counts: [0; 4],
            };
            let lanes = lanes.into_iter().map(RefCell::new).collect();
            shared.insert(Rc::new(Preempted { lanes, client: RefCell::new(client) })).clone()
        });
        machine.driver.start(Nanos::ZERO);
        machine.run(Nanos::from_millis(20));
        assert_eq!(machine.driver.state(), ControllerState::Running);
        Rig { machine, lanes: shared.unwrap(), plugged: [false; 2], changes: 0 }
    }

    fn run(&mut self, time: Nanos) {
        self.machine.run(time);
        for lane in 1..4 {
            self.machine.driver.look(lane);
        }
        let finished = std::mem::take(&mut self.machine.finished);
        finished.iter().for_each(|one| self.lanes.client.borrow_mut().note(one));
        for notice in std::mem::take(&mut self.machine.notices) {
            let client = || self.lanes.client.borrow_mut();
            match notice {
                Notice::Found { device, speed, .. } => {
                    let lane = 1 + client().random.index(3) as u16;
                    self.machine.driver.assign(device, lane).unwrap();
                    client().devices.push((lane, device));
                    self.machine.driver.configure(device, 1, &echo::plans(speed)).unwrap();
                }
                Notice::Gone(device) => client().devices.retain(|(_, known)| *known != device),
                Notice::Configured(_) => self.changes += 1,
                other => panic!("{other:?}"),
            }
        }
    }

    /// The thread that manages does something.
    fn manage(&mut self) {
        let mut random = self.lanes.client.borrow_mut().random.clone();
        let place = random.index(2);
        let (port, speed) = PORTS[place];
        let devices = self.lanes.client.borrow().devices.clone();
        match (random.below(12), devices.get(random.index(devices.len().max(1)))) {
            (0, _) if self.plugged[place] => {
                self.machine.detach(port);
                self.plugged[place] = false;
            }
            (1..4, _) if !self.plugged[place] => {
                self.machine.attach(port, Echo::boxed(speed));
                self.plugged[place] = true;
            }
            (4..10, Some((_, device))) => {
                let _ = self.machine.driver.renew(*device, random.pick(&[BULK_OUT, NEWS, STREAM]));
            }
            _ => {}
        }
        self.lanes.client.borrow_mut().random = random;
    }
}

fn attack(seed: u64) -> ([u64; 4], u64) {
    let mut rig = Rig::new(seed);
    let empty = rig.machine.driver.pools();
    for _ in 0..150 {
        rig.manage();
        let micros = rig.lanes.client.borrow_mut().random.below(10_000);
        rig.run(Nanos::from_micros(micros));
    }
    rig.lanes.client.borrow_mut().rests = true;
    // Batches whose doorbell was to be rung later.
    let devices = rig.lanes.client.borrow().devices.clone();
    rig.run(Nanos::from_secs(1));
    for (_, device) in devices {
        for endpoint in [BULK_OUT, STREAM] {
            let memory = Link::buffer(0, 64);
            if let Ok(id) = rig.machine.driver.submit(&Request::new(device, endpoint, memory)) {
                rig.lanes.client.borrow_mut().queued.insert(id.0, (device, endpoint));
            }
        }
    }
    rig.run(Nanos::from_secs(1));
    let left = |endpoint: u8| {
        let client = rig.lanes.client.borrow();
        client.queued.values().filter(|(_, of)| *of == endpoint).count()
    };
    assert_eq!((left(BULK_OUT), left(STREAM)), (0, 0), "seed {seed}: transfers that never end");
    for (port, _) in PORTS {
        rig.machine.detach(port);
    }
    rig.run(Nanos::from_secs(1));
    let lost = rig.machine.driver.counters().lost;
    assert_eq!(lost, 0, "seed {seed}: transfers that the controller never saw");
    let client = rig.lanes.client.borrow();
    assert!(client.queued.is_empty(), "seed {seed}: {:?}", client.queued);
    assert_eq!(rig.machine.denials(), 0, "seed {seed}");

    let (counts, changes) = (client.counts, rig.changes);
    drop(client);
    assert_eq!(rig.machine.driver.pools(), empty, "seed {seed}");
    (counts, changes)
}

#[test]
fn a_lane_may_be_used_between_any_two_steps_of_the_controller() {
    let (mut all, mut changes) = ([0; 4], 0);
    for seed in 0..6 {
        let (counts, more) = attack(seed);
        (0..4).for_each(|at| all[at] += counts[at]);
        changes += more;
    }
    assert!(all[0] > 100_000 && all[1] > 10_000 && changes > 50, "{all:?} {changes}");
    assert!(all[3] > 10_000, "{all:?}");
}
