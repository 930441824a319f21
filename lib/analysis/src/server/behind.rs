//! How late work is done that a bottom half brings, counted from when the bottom half hears of it.
//!
//! Let the bottom half run on an I/O VCPU that serves this VCPU and never waits for a grant, so it
//! is pending from when it hears of work until it has passed the work on. Let the work find its
//! budget then. This VCPU waits for whatever delays the bottom half, too. So there is one busy
//! time from before the bottom half hears of the work until the work is done, and R bounds it. To
//! add the bottom half's own delay would count the same budgets twice.
//!
//! By period, that is R(c) of this VCPU, among whose interference the bottom half is. By deadline,
//! the work is due a period after it was passed on. `docs/analysis.md` has the proof, under "Work
//! that a bottom half brings".

use super::deadlines;
use super::model::{Queue, SharedCore};
use super::supply::{Brings, Supply};
use diapason_abi::Nanos;

impl Supply {
    /// Returns this supply of `vcpu`, with what follows if the bottom half of the I/O VCPU `io`
    /// brings its work, and passes it on `brought` after it heard of it at most.
    #[must_use]
    pub fn behind(self, system: &SharedCore, vcpu: usize, io: usize, brought: Nanos) -> Supply {
        let (Some(server), Some(main)) = (system.ios.get(io), system.mains.get(vcpu)) else {
            return self;
        };
        let never_waits = server.woken.is_some() && !system.open;
        if !never_waits || !server.serves.contains(&vcpu) {
            return self;
        }
        let latest = match main.queue {
            // The response to the work itself is what counts.
            Queue::Fp => main.period,
            Queue::Dp(_) => {
                let is_in_it = |other: &usize| system.mains[*other].queue == main.queue;
                if !server.serves.iter().all(is_in_it) {
                    return self;
                }
                let served = server.serves.iter().map(|other| system.mains[*other].period);
                let inherited = served.min().unwrap_or(main.period);
                deadlines::latest_behind(system, main.queue, (inherited, main.period), brought)
            }
        };
        self.bringing(Brings { brought, latest })
    }
}

#[cfg(test)]
mod tests {
    use super::super::arith::Utilization;
    use super::super::model::{IoVcpu, MainVcpu};
    use super::super::supply::BudgetServer;
    use super::*;
    use alloc::vec;
    use diapason_pipe::bill::Service;

    /// Returns a core with a long VCPU, one that an I/O VCPU serves, and that I/O VCPU.
    fn system(queue: Queue) -> SharedCore {
        let mains = [(10, 40), (20, 200), (60, 900)];
        let mains = mains.map(|(c, t)| MainVcpu::new(Nanos(c), Nanos(t)).in_queue(queue));
        let share = Utilization::from_ppm(250_000).unwrap();
        let io = IoVcpu { wake_gap: Nanos(80), ..IoVcpu::new(share, vec![1]) };
        SharedCore::new(mains.to_vec(), vec![io])
    }

    /// Returns what the second VCPU takes for work that comes `brought` later, together with that.
    fn both(system: &SharedCore, brought: Nanos) -> Option<Nanos> {
        let supply = Supply::of(system, 1)?.behind(system, 1, 0, brought);
        Service::behind(&supply, Nanos(20), brought)
    }

    #[test]
    fn by_period_the_response_has_the_bottom_half_in_it() {
        let known = system(Queue::Fp).knowing(0, Nanos(15)).unwrap();
        // Two budgets of the first VCPU, and a wake-up.
        assert_eq!(both(&known, Nanos(35)), Some(Nanos(20 + 2 * 10 + 15)));
        let supply = Supply::of(&known, 1).unwrap().behind(&known, 1, 0, Nanos(35));
        assert_eq!(Service::behind(&supply, Nanos(20), Nanos(36)), None, "later than it was asked");
        assert_eq!(Service::behind(&supply, Nanos(21), Nanos(35)), None, "more than a budget");
    }

    #[test]
    fn by_deadline_both_take_no_longer_than_one_after_the_other() {
        let known = system(Queue::Dp(0)).knowing(0, Nanos(15)).unwrap();
        let alone = Supply::of(&known, 1).unwrap().response(Nanos(20));
        let [soon, later] = [1, 60].map(|brought| both(&known, Nanos(brought)).unwrap());
        assert!(alone <= soon && soon <= later, "{alone} {soon} {later}");
        assert!(later <= alone + Nanos(60), "{alone} {later}");
    }

    #[test]
    fn nothing_is_known_of_what_may_wait_or_comes_from_elsewhere() {
        let brought = Nanos(35);
        for queue in [Queue::Fp, Queue::Dp(0)] {
            let system = system(queue);
            assert_eq!(both(&system, brought), None, "its wake-ups may wait for a grant");
            let known = system.knowing(0, Nanos(15)).unwrap();
            assert!(both(&known, brought).is_some());
            let open = SharedCore { open: true, ..known.clone() };
            assert_eq!(both(&open, brought), None, "others may come");
            let mut elsewhere = known.clone();
            elsewhere.ios[0].serves = vec![0];
            assert_eq!(both(&elsewhere, brought), None, "it works for another one");
        }
        let mut apart = system(Queue::Dp(0)).knowing(0, Nanos(15)).unwrap();
        apart.ios[0].serves = vec![1, 2];
        apart.mains[2].queue = Queue::Dp(1);
        assert_eq!(both(&apart, brought), None, "it serves two queues");
    }
}
