//! Sending behind gates and credit: frames wait in a queue for each class, and the adapter has at
//! most one, in whose window it ends. `lib/tsn` decides which; this thread only has to be in time.
//!
//! Gates go by the common time if the host keeps one. While it does not know the time, all gates
//! are closed, and frames of programs are discarded: none would be in time. Frames of the common
//! time pass no gate. The guard has room for those that are ahead of a frame.

extern crate alloc;

use crate::clock::Timekeeper;
use crate::outlets::Outlet;
use crate::send::{PAUSE, Sending};
use alloc::vec::Vec;
use diapason_contract::ethernet::{
    GateTerms, RING, SEND_FRAME, SEND_GATES, SOCKET_NAMES, SOCKETS, TIME_BUFFERS, gated_room,
};
use diapason_contract::release::{RELEASE_SETTING, ReleaseTerms};
use diapason_ether::release::{GateAhead, StepVerdict, StepWatch};
use diapason_netlib::memory;
use diapason_rt::{Errno, Nanos, settings, time};
use diapason_tsn::{EgressStep, GateEntry, GateList, LinkRate, PacedEgress, Shaping};

/// A frame in a queue.
struct Held {
    /// The number of its buffer, and of its socket.
    place: usize,
    socket: usize,
    bytes: u16,
}

/// The sending half of an adapter with gates.
pub(crate) struct Gated {
    sending: Sending,
    keeper: Option<Timekeeper>,
    egress: PacedEgress<Held>,
    /// Buffers without a frame, one bit each.
    free: u64,
    /// The buffer of the frame that the adapter has, and the time by which it has sent it.
    flying: Option<(usize, Nanos)>,
    /// How many frames of each socket wait, and how many may.
    waiting: [usize; SOCKETS],
    room: usize,
    /// Frames that were given to the adapter.
    given: u64,
    /// The sockets whose datagrams keep step with the gates.
    steps: [Option<Step>; SOCKETS],
}

/// A socket whose datagrams keep step with the gates.
struct Step {
    watch: StepWatch,
    ahead: &'static GateAhead,
    /// A datagram was in step.
    began: bool,
}

impl Step {
    /// Returns the steps of the sockets that have some, at the places of their outlets.
    fn all(sending: &Sending) -> Result<[Option<Step>; SOCKETS], Errno> {
        let mut steps = [const { None }; SOCKETS];
        let told = settings::read();
        for terms in ReleaseTerms::all(told.get(RELEASE_SETTING)) {
            let is_own = |outlet: &Option<Outlet>| {
                outlet.as_ref().is_some_and(|it| it.terms.number == terms.socket)
            };
            let Some(place) = sending.outlets.all.iter().position(is_own) else { continue };
            let names = SOCKET_NAMES.get(usize::from(terms.socket)).ok_or(Errno::Absent)?;
            let ahead = &memory::inbox(names.inbox, 0)?.0.gates;
            steps[place] = Some(Step { watch: StepWatch::new(terms), ahead, began: false });
        }
        Ok(steps)
    }
}

impl Gated {
    /// Returns the half behind these gates.
    ///
    /// # Errors
    /// `Absent` if the gates are none that a description can have.
    pub fn open(
        mut sending: Sending,
        keeper: Option<Timekeeper>,
        terms: &GateTerms<'_>,
    ) -> Result<Gated, Errno> {
        sending.divide();
        let entry = |(mask, interval_ns)| GateEntry { mask, interval_ns };
        let entries: Vec<GateEntry> = terms.entries().map(entry).collect();
        let senders = sending.outlets.all.iter().flatten().count();
        let room = gated_room(senders);
        let gates = GateList::new(terms.base_ns, None, &entries);
        let rate = LinkRate::new(terms.mbit * 1_000_000);
        let shaping = Shaping::by_credit(terms.credits());
        let egress = gates
            .and_then(|gates| PacedEgress::new(gates, rate, shaping, (terms.guard_ns, RING)))
            .map_err(|_| Errno::Absent)?;
        let (free, waiting) = (u64::MAX >> TIME_BUFFERS, [0; SOCKETS]);
        let steps = Step::all(&sending)?;
        Ok(Gated { sending, keeper, egress, free, flying: None, waiting, room, given: 0, steps })
    }

    /// Takes frames of programs and sends each in a window of its class, until a wait fails.
    ///
    /// # Errors
    /// Those of waiting for programs.
    pub fn run(mut self) -> Result<(), Errno> {
        loop {
            let sending = &mut self.sending;
            let turn = self.keeper.as_mut().map_or(Nanos::FOREVER, |it| it.look(sending));
            let any = self.collect();
            let until = self.look();
            if !any {
                self.sending.wait(until.min(turn))?;
            }
            self.sending.report(self.keeper.as_ref());
        }
    }

    /// Returns the time by which gates go; `None` while they are closed.
    fn time(&mut self, now: Nanos) -> Option<Nanos> {
        self.keeper.as_mut().map_or(Some(now), |keeper| keeper.common(now))
    }

    /// Returns the host's clock at a time of the gates.
    fn local(&self, time: Nanos) -> Nanos {
        let keeper = self.keeper.as_ref();
        keeper.map_or(time, |keeper| keeper.local(time).unwrap_or(Nanos::FOREVER))
    }

    /// Discards the frames that wait: the gates are closed.
    fn close(&mut self) {
        for Held { place, socket, .. } in self.egress.drain() {
            self.free |= 1 << place;
            self.waiting[socket] -= 1;
            self.keeper.iter_mut().for_each(Timekeeper::discards);
        }
    }

    /// Queues at most one frame of each socket. Returns whether there was one.
    fn collect(&mut self) -> bool {
        let mut any = false;
        let time = self.time(time::now());
        for socket in 0..SOCKETS {
            let place = self.free.trailing_zeros() as usize;
            let is_full = place >= RING || self.waiting[socket] >= self.room;
            if is_full && time.is_some() {
                continue;
            }
            let Some(outlet) = &mut self.sending.outlets.all[socket] else { continue };
            let Some(frame) = outlet.frames.pop() else { continue };
            let terms = outlet.terms;
            any = true;
            time::work(SEND_FRAME, || {
                let Some(time) = self.admitted(socket, time) else { return };
                let Some(bytes) = self.sending.fill(place, &terms, &frame) else { return };
                let class = usize::from(terms.priority.unwrap_or(0));
                let held = Held { place, socket, bytes };
                if self.egress.push(time.0, class, usize::from(bytes), held).is_err() {
                    self.sending.outlets.foreign += 1;
                    return;
                }
                self.free &= !(1 << place);
                self.waiting[socket] += 1;
            });
        }
        any
    }

    /// Returns the time of the gates if they take a frame of a socket now. Counts one that they do
    /// not take. `round` is what this was when the round began.
    fn admitted(&mut self, socket: usize, round: Option<Nanos>) -> Option<Nanos> {
        let now = time::now();
        let time = round.and_then(|_| self.time(now));
        let Some(step) = &mut self.steps[socket] else {
            if time.is_none() {
                self.keeper.iter_mut().for_each(Timekeeper::discards);
            }
            return time;
        };
        step.ahead.tell(now, time);
        match step.watch.judge(time) {
            StepVerdict::InStep => {
                step.began = true;
                return time;
            }
            StepVerdict::OutOfStep => self.sending.out_of_step[socket] += 1,
            StepVerdict::Learns if time.is_some() && !step.began => {
                self.keeper.iter_mut().for_each(Timekeeper::teaches);
            }
            StepVerdict::Learns => self.keeper.iter_mut().for_each(Timekeeper::discards),
        }
        None
    }

    /// Gives the adapter a frame whose time has come. Returns when to look again.
    fn look(&mut self) -> Nanos {
        let now = time::now();
        if let Some((place, end)) = self.flying {
            if now < end {
                return end;
            }
            if self.sending.card.settle() > self.sending.later {
                // It is late: it has no link.
                return now + PAUSE;
            }
            (self.free, self.flying) = (self.free | 1 << place, None);
            self.egress.ends();
        }
        let Some(time) = self.time(now) else {
            self.close();
            return Nanos::FOREVER;
        };
        match time::work(SEND_GATES, || self.egress.step(time.0)) {
            EgressStep::Sends { item: Held { place, socket, bytes }, end_ns, .. } => {
                time::work(SEND_GATES, || self.sending.give(place, bytes));
                // The guard has room for a clock that is slower than the time.
                let end = now + (Nanos(end_ns) - time);
                self.flying = Some((place, end));
                self.waiting[socket] -= 1;
                self.given += 1;
                self.sending.reports.given(self.given, time::now() - now);
                end
            }
            EgressStep::Waits { until_ns } => self.local(Nanos(until_ns)),
            EgressStep::Idle => Nanos::FOREVER,
        }
    }
}
