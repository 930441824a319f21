//! The kernel's invariants, stated once and checked after every step of a test.

use crate::event::{Event, Source};
use crate::kernel::Kernel;
use crate::pool::{FREE, Id, Pool};
use crate::process::ProcessState;
use crate::queue::ThreadQueue;
use crate::thread::{State, Thread, ThreadId, Wait};
use diapason_abi::PRIORITIES;

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
        self.alarms.check();
        self.check_lists();
        self.check_threads();
        self.check_priorities();
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
        for priority in 0..PRIORITIES {
            let (list, bit) = self.scheduler.list(priority);
            assert_eq!(bit, !list.is_empty(), "ready bit");
            for thread in members(&self.threads, list) {
                assert_eq!(self.threads[thread].state, State::Ready, "ready state");
                assert_eq!(self.threads[thread].vcpu.priority as usize, priority, "ready level");
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
            assert!(
                self.conditions[c].handle != FREE || queue.is_empty(),
                "deleted condition in use"
            );
            let waits =
                |t: ThreadId| matches!(self.threads[t].wait, Wait::Condition(w, _) if w == c);
            assert!(members(&self.threads, queue).all(waits), "condition waiter");
            listed += self.check_order(queue);
        }
        let in_a_list = |t: ThreadId| match self.threads[t].state {
            State::Ready => true,
            State::Blocked => matches!(
                self.threads[t].wait,
                Wait::Semaphore(_) | Wait::Condition(..) | Wait::Receive(_) | Wait::Send(_)
            ),
            State::Free | State::Ended => false,
        };
        let expected = self.threads.ids().filter(|t| in_a_list(*t)).count();
        assert_eq!(listed, expected, "threads in lists");
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
        let mut last = u8::MAX;
        for thread in members(&self.threads, queue) {
            let priority = self.threads[thread].vcpu.priority;
            assert!(priority <= last, "waiters sorted by priority");
            last = priority;
            count += 1;
        }
        count
    }

    fn check_threads(&self) {
        for id in self.threads.ids() {
            let t = &self.threads[id];
            assert_eq!(t.handle == FREE, t.state == State::Free, "handle of a live thread");
            assert_eq!(t.wait == Wait::Nothing, t.state != State::Blocked, "wait of a blocked one");
            if self.alarms.is_set(id.index()) {
                assert_eq!(t.state, State::Blocked, "only the blocked have alarms");
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
        let running = self.scheduler.running;
        assert!(running == self.scheduler.pick(), "the most urgent thread runs");
    }

    /// Priority inheritance holds exactly, and nobody waits for himself.
    fn check_priorities(&self) {
        for id in self.threads.ids() {
            let t = &self.threads[id];
            let mut due = t.vcpu.base;
            let mut held = t.held;
            while held.is_some() {
                assert!(self.semaphores[held].owner == id, "held by its owner");
                let waiter = self.semaphores[held].waiters.head;
                if waiter.is_some() {
                    due = due.max(self.threads[waiter].vcpu.priority);
                }
                held = self.semaphores[held].next_held;
            }
            if t.state != State::Free && t.state != State::Ended {
                assert_eq!(t.vcpu.priority, due, "inherited priority");
            }
            let mut at = id;
            for _ in 0..self.threads.len() {
                let Wait::Semaphore(s) = self.threads[at].wait else { break };
                at = self.semaphores[s].owner;
                assert!(at != id, "cycle of owners");
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
                while held.is_some() && held != id {
                    held = self.semaphores[held].next_held;
                }
                assert!(held == id, "its owner holds it");
            }
            if s.handle == FREE {
                assert!(s.waiters.is_empty() && s.owner.is_none(), "deleted semaphore in use");
            } else {
                assert!(s.waiters.is_empty() || s.count == 0, "waiters though it is free");
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
                assert!(b.receivers.is_empty() && b.senders.is_empty(), "deleted mailbox in use");
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
            let alarm = self.alarms.is_set(self.threads.len() + id.index());
            if e.handle == FREE {
                assert!(e.waiter.is_none() && !alarm, "deleted event in use");
                continue;
            }
            assert!(!alarm || matches!(e.source, Source::Timer { .. }), "alarm of a timer");
            if e.waiter.is_some() {
                assert_eq!(self.threads[e.waiter].wait, Wait::Event(id), "event's waiter waits");
                assert_eq!(e.pending, 0, "waiter though it occurred");
            }
            if let Source::Irq(device) = e.source {
                assert!(self.devices[Id::new(device)].event == id, "event of a device");
            }
        }
        let alive = |e: Id<Event>| e.is_none() || self.events[e].handle != FREE;
        assert!(self.devices.ids().all(|d| alive(self.devices[d].event)), "device's event");
        assert!(self.mailboxes.ids().all(|m| alive(self.mailboxes[m].event)), "mailbox's event");
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
            assert!(s.attached == 0 || s.frames.count == s.pages, "attached in part");
        }
    }

    fn check_processes(&self) {
        for id in self.processes.ids() {
            let p = &self.processes[id];
            let own = |t: ThreadId| self.threads[t].state;
            let live = p.threads.ids().filter(|t| matches!(own(*t), State::Ready | State::Blocked));
            assert_eq!(live.count(), p.live as usize, "live threads");
            assert!(p.heap.count <= p.heap_max, "heap quota");
            assert_eq!(p.live > 0, p.state == ProcessState::Running, "a process has threads");
            if p.state != ProcessState::Running {
                assert_eq!((p.live, p.heap.count, p.segments, p.devices), (0, 0, 0, 0), "leak");
                assert!(p.threads.ids().all(|t| own(t) == State::Free), "thread leak");
                let events = p.events.ids().all(|e: Id<_>| self.events[e].handle == FREE);
                let private = p.semaphores.ids().all(|s: Id<_>| self.semaphores[s].handle == FREE);
                let conditions =
                    p.conditions.ids().all(|c: Id<_>| self.conditions[c].handle == FREE);
                assert!(events && private && conditions, "object leak");
            }
        }
    }

    /// Every frame is free, in one heap, or in one segment.
    fn check_frames(&self) {
        let mut total = self.free_frames.count;
        for id in self.processes.ids() {
            total += self.processes[id].heap.count;
        }
        for id in self.segments.ids() {
            total += self.segments[id].frames.count;
        }
        assert_eq!(total, u32::from(self.frames.len()), "frames");
    }

    /// Frames nobody has, for tests of leaks.
    #[must_use]
    pub fn free_frames(&self) -> u32 {
        self.free_frames.count
    }
}
