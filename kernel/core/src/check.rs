//! The kernel's invariants, stated once and checked after every step of a test.

use crate::ids::{EventId, ThreadId, VcpuId};
use crate::kernel::Kernel;
use crate::objects::event::Source;
use crate::objects::process::ProcessState;
use crate::objects::ready::Ready;
use crate::objects::thread::{State, Thread, ThreadQueue, Wait};
use crate::objects::vcpu::Server;
use crate::pool::{FREE, Id, Pool};
use diapason_abi::{Nanos, PRIORITIES};

/// The threads of a list, with its links verified.
fn members(threads: &Pool<'_, Thread>, queue: ThreadQueue) -> impl Iterator<Item = ThreadId> {
    let mut next = queue.head;
    core::iter::from_fn(move || {
        let thread = next;
        if thread.is_none() {
            return None;
        }
        let following = threads[thread].next;
        assert!(threads[following].previous == thread, "list link");
        next = if following == queue.head { ThreadId::NONE } else { following };
        Some(thread)
    })
}

impl Kernel<'_> {
    /// Panics if the state is not one the kernel can be in.
    pub fn check_invariants(&self) {
        self.alarms.check(&self.threads);
        self.check_lists();
        self.check_vcpus();
        self.check_threads();
        self.check_choice();
        self.check_semaphores();
        self.check_mailboxes();
        self.check_events();
        self.check_processes();
        self.check_memory();
        self.check_frames();
    }

    /// Every thread is in exactly the list its state says, and lists are in order.
    fn check_lists(&self) {
        let mut listed = 0;
        listed += self.check_ready(&self.scheduler.unreserved, Id::NONE);
        for vcpu in self.vcpus.ids() {
            listed += self.check_ready(&self.vcpus[vcpu].ready, vcpu);
        }
        for end in self.threads.ids() {
            for thread in members(&self.threads, self.threads[end].parked) {
                assert_eq!(self.threads[thread].state, State::Parked, "parked state");
                assert!(self.end_of_waits(thread) == end, "parked with the end of its chain");
                assert_eq!(self.threads[end].state, State::Blocked, "who runs parks nobody");
                listed += 1;
            }
        }
        for s in self.semaphores.ids() {
            listed += self.check_waiters(self.semaphores[s].waiters, Wait::Semaphore(s));
        }
        for m in self.mailboxes.ids() {
            listed += self.check_waiters(self.mailboxes[m].receivers, Wait::Receive(m));
            listed += self.check_waiters(self.mailboxes[m].senders, Wait::Send(m));
        }
        for c in self.conditions.ids() {
            let queue = self.conditions[c].waiters;
            let waits = |t: ThreadId| matches!(self.threads[t].wait, Wait::Condition(w) if w == c);
            assert!(members(&self.threads, queue).all(waits), "condition waiter");
            listed += self.check_order(queue);
        }
        let in_a_list = |t: ThreadId| match self.threads[t].state {
            State::Ready | State::Parked => true,
            State::Blocked => matches!(
                self.threads[t].wait,
                Wait::Semaphore(_) | Wait::Condition(..) | Wait::Receive(_) | Wait::Send(_)
            ),
            State::Free | State::Ended => false,
        };
        let expected = self.threads.ids().filter(|t| in_a_list(*t)).count();
        assert_eq!(listed, expected, "threads in lists");
    }

    fn check_ready(&self, ready: &Ready, vcpu: VcpuId) -> usize {
        let mut listed = 0;
        for priority in 0..PRIORITIES {
            let (list, bit) = ready.list(priority);
            assert_eq!(bit, !list.is_empty(), "ready bit");
            for thread in members(&self.threads, list) {
                assert_eq!(self.threads[thread].state, State::Ready, "ready state");
                assert_eq!(self.threads[thread].priority as usize, priority, "ready level");
                assert!(self.threads[thread].vcpu == vcpu, "ready on its VCPU");
                listed += 1;
            }
        }
        listed
    }

    /// Ranks are in order, and say of each VCPU whether it has threads and budget.
    fn check_vcpus(&self) {
        let s = &self.scheduler;
        let mut last = (0, 0);
        for rank in 0..s.ranks {
            let id = s.by_rank[rank as usize];
            let v = &self.vcpus[id];
            assert!(v.is_promised() && v.rank == rank, "a rank's VCPU");
            assert!((v.urgency, !id.index()) > last, "ranks in order");
            last = (v.urgency, !id.index());
        }
        for id in self.vcpus.ids() {
            let v = &self.vcpus[id];
            if v.handle == FREE {
                assert!(v.ready.is_empty() && v.threads == 0, "deleted VCPU in use");
                continue;
            }
            if let Server::Main(server) = &v.server {
                assert!(server.is_consistent(), "sporadic server");
                assert_eq!(server.is_backlogged(), !v.ready.is_empty(), "backlog");
            }
            let threads = self.threads.ids().filter(|t| {
                let t = &self.threads[*t];
                t.vcpu == id && !matches!(t.state, State::Free | State::Ended)
            });
            assert_eq!(threads.count(), v.threads as usize, "threads of a VCPU");
            let bit = |word: u64| word >> v.rank & 1 == 1;
            let wake = self.alarms.wakes.of(v.rank);
            // Its budget may be back, while it is held back or the timer is late.
            let has = v.available(self.now) > Nanos::ZERO && wake > self.now;
            let wants = !v.ready.is_empty();
            assert_eq!(bit(s.eligible), wants && has, "eligible");
            assert_eq!(bit(s.background), wants && !has && v.background, "background");
            let at = if has { Nanos::FOREVER } else { v.eligible_at() };
            assert_eq!(wake, self.wake_of(id).unwrap_or(at), "when a VCPU is woken");
        }
    }

    fn check_waiters(&self, queue: ThreadQueue, wait: Wait) -> usize {
        for thread in members(&self.threads, queue) {
            assert_eq!(self.threads[thread].wait, wait, "waiter's wait");
            assert_eq!(self.threads[thread].state, State::Blocked, "waiter's state");
        }
        self.check_order(queue)
    }

    fn check_order(&self, queue: ThreadQueue) -> usize {
        let mut count = 0;
        let mut last = u64::MAX;
        for thread in members(&self.threads, queue) {
            let urgency = self.threads[thread].urgency;
            assert!(urgency <= last, "waiters sorted by urgency");
            last = urgency;
            count += 1;
        }
        count
    }

    fn check_threads(&self) {
        for id in self.threads.ids() {
            let t = &self.threads[id];
            let parked = members(&self.threads, t.parked).map(|p| self.own_urgency(p)).max();
            // A VCPU may have been changed since its threads began to wait.
            let plain = |t: ThreadId| self.threads[t].vcpu.is_none();
            let unchanged = plain(id) && members(&self.threads, t.parked).all(plain);
            if t.state != State::Free && unchanged {
                let own = self.own_urgency(id);
                assert_eq!(t.urgency, parked.unwrap_or(0).max(own), "urgency");
            }
            assert_eq!(t.handle == FREE, t.state == State::Free, "handle of a live thread");
            let fits = match t.state {
                State::Free | State::Ended => t.wait == Wait::Nothing,
                State::Ready => {
                    matches!(t.wait, Wait::Nothing | Wait::Hint(_) | Wait::Mutex(_))
                }
                State::Parked => matches!(t.wait, Wait::Mutex(_)),
                State::Blocked => !matches!(t.wait, Wait::Nothing | Wait::Hint(_) | Wait::Mutex(_)),
            };
            assert!(fits, "{:?} waits for {:?}", t.state, t.wait);
            if t.alarm.is_set() {
                assert!(!matches!(t.wait, Wait::Nothing | Wait::Hint(_)), "alarm of a waiter");
            }
            if let Wait::Join(other) = t.wait {
                assert!(self.threads[other].joiner == id, "joined thread knows its joiner");
            }
            if t.joiner.is_some() && t.state != State::Free {
                assert_eq!(self.threads[t.joiner].wait, Wait::Join(id), "joiner waits");
            }
            if let Wait::Event(event) = t.wait {
                assert!(self.events[event].waiter == id, "event knows its waiter");
            }
        }
    }

    /// The most urgent place is the one that is run in, by the end of its chain of owners.
    fn check_choice(&self) {
        let (running, place) = (self.scheduler.running, self.scheduler.place);
        assert!(place == self.scheduler.pick(&self.vcpus), "the most urgent place");
        if place.is_none() {
            return assert!(running.is_none(), "somebody runs in no place");
        }
        let t = &self.threads[running];
        assert_eq!(t.state, State::Ready, "who runs is ready");
        assert!(matches!(t.wait, Wait::Nothing | Wait::Hint(_)), "who runs waits for nothing");
        if let Wait::Mutex(_) = self.threads[place].wait {
            assert!(self.end_of_waits(place) == running, "the end of the chain runs");
        } else if let Wait::Nothing = self.threads[place].wait {
            assert!(place == running, "a thread that can run has its place itself");
        }
        for id in self.threads.ids() {
            let mut at = id;
            for _ in 0..self.threads.len() {
                at = self.awaited(at);
                assert!(at != id, "circle of owners");
                if at.is_none() {
                    break;
                }
            }
        }
    }

    fn check_semaphores(&self) {
        for id in self.semaphores.ids() {
            let s = &self.semaphores[id];
            if s.owner.is_some() {
                let mut held = self.threads[s.owner].held;
                assert!(
                    matches!(
                        self.threads[s.owner].state,
                        State::Ready | State::Parked | State::Blocked
                    ),
                    "an owner lives"
                );
                while held.is_some() && held != id {
                    held = self.semaphores[held].next_held;
                }
                assert!(held == id, "its owner holds it");
            }
            if s.handle == FREE {
                assert!(s.owner.is_none(), "deleted mutex in use");
            } else {
                assert!(s.waiters.is_empty() || s.count == 0, "waiters though it is free");
                assert!(s.waiters.is_empty() || !s.mutex, "nobody queues for a mutex");
                if s.mutex {
                    assert_eq!(s.owner.is_none(), s.count == 1, "a mutex is owned or free");
                }
            }
        }
    }

    fn check_mailboxes(&self) {
        for id in self.mailboxes.ids() {
            let b = &self.mailboxes[id];
            if b.handle == FREE {
                continue;
            }
            let (used, free) = self.mailbox_slots(id);
            assert_eq!(used + free, b.slots.count, "message slots");
            assert!(
                b.receivers.is_empty() || used == 0,
                "receiver waits though there is a message"
            );
            assert!(b.senders.is_empty() || free == 0, "sender waits though there is room");
        }
    }

    /// Events, their waiters and what raises them know each other.
    fn check_events(&self) {
        for id in self.events.ids() {
            let e = &self.events[id];
            if e.handle == FREE {
                assert!(e.waiter.is_none(), "deleted event in use");
                continue;
            }
            if e.waiter.is_some() {
                assert_eq!(self.threads[e.waiter].wait, Wait::Event(id), "event's waiter waits");
                assert_eq!(e.pending, 0, "waiter though it occurred");
                let alarm = self.threads[e.waiter].alarm;
                if let Source::Timer { next, .. } = e.source {
                    assert_eq!(alarm.due(), next.min(e.deadline), "alarm of who waits for a timer");
                }
            }
            if let Source::Irq(device) = e.source {
                assert!(self.devices[Id::new(device)].event == id, "event of a device");
            }
        }
        let alive = |e: EventId| e.is_none() || self.events[e].handle != FREE;
        assert!(self.devices.ids().all(|d| alive(self.devices[d].event)), "device's event");
    }

    /// Processes agree with segments and devices on who uses what.
    fn check_memory(&self) {
        for p in self.processes.ids() {
            let (process, bit) = (&self.processes[p], 1 << p.index());
            for s in self.segments.ids() {
                let attached = self.segments[s].attached & bit != 0;
                assert_eq!(attached, process.segments >> s.index() & 1 == 1, "attached");
            }
            for d in self.devices.ids() {
                let mapped = self.devices[d].mapped & bit != 0;
                assert_eq!(mapped, process.devices >> d.index() & 1 == 1, "mapped");
            }
        }
        for s in self.segments.ids() {
            let s = &self.segments[s];
            assert!(s.frames.count <= s.pages, "segment size");
            assert!(s.attached == 0 || s.common || s.frames.count == s.pages, "attached in part");
        }
    }

    fn check_processes(&self) {
        for id in self.processes.ids() {
            let p = &self.processes[id];
            let own = |t: ThreadId| self.threads[t].state;
            let live = p.threads.ids().filter(|t| !matches!(own(*t), State::Free | State::Ended));
            assert_eq!(live.count(), p.live as usize, "live threads");
            assert!(p.heap.count <= p.heap_max, "heap quota");
            p.events.check(&self.events, |e| e.next_free);
            p.semaphores.check(&self.semaphores, |s| s.next_held);
            p.conditions.check(&self.conditions, |c| c.next_free);
            let there = matches!(p.state, ProcessState::Running | ProcessState::Ending);
            assert_eq!(p.live > 0, there, "a process has threads");
            assert!(!p.hidden || there, "what is gone is hidden");
            if p.state == ProcessState::Ending {
                let reaper = &self.threads[p.reaper];
                assert_eq!((reaper.process, reaper.state), (id, State::Ready), "a reaper runs");
                assert_eq!(reaper.wait, Wait::Nothing, "a reaper waits for nothing");
            }
            if !there {
                assert_eq!((p.live, p.heap.count, p.segments, p.devices), (0, 0, 0, 0), "leak");
                assert!(p.threads.ids().all(|t| own(t) == State::Free), "thread leak");
                let events = p.events.ids().all(|e| self.events[e].handle == FREE);
                let private = p.semaphores.ids().all(|s| self.semaphores[s].handle == FREE);
                let conditions = p.conditions.ids().all(|c| self.conditions[c].handle == FREE);
                assert!(events && private && conditions, "object leak");
            }
        }
    }

    /// Every frame is free, in one heap, or in one segment; those of a segment for devices always.
    fn check_frames(&self) {
        let mut total = self.free_frames.count;
        for id in self.processes.ids() {
            total += self.processes[id].heap.count;
        }
        for id in self.segments.ids() {
            let s = &self.segments[id];
            total += if s.dma.is_some() { s.pages } else { s.frames.count };
        }
        assert_eq!(total, u32::from(self.frames.len()), "frames");
    }

    /// Frames nobody has, for tests of leaks.
    #[must_use]
    pub fn free_frames(&self) -> u32 {
        self.free_frames.count
    }
}
