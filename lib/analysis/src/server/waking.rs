//! The most that an I/O VCPU runs if the work of each wake-up is known, and not only its share.
//!
//! Let its wake-ups be at least g apart, and each use at most c of its budget, with c/U ≤ g. Let it
//! be awake from w₁ on for the wake-ups w₁ to w_k, on one grant Q ≥ k·c. When it stops, its next
//! grant is due k·c/U ≤ k·g after w₁. Wake-up k + 1 comes no sooner, so it finds a grant. By
//! induction no wake-up ever waits for one, if no such k is more than the grant pays for. All that
//! is done on a grant is done R(k·c) after w₁, so no more than k = ⌈R(k·c)/g⌉ wake-ups share it.
//!
//! So it is pending only while it works on a grant. From an instant at which it is not pending, a
//! window w has the work of at most ⌈w/g⌉ wake-ups. Each is done at most R(k·c) after it came.

use super::io::IoSupply;
use super::model::{SharedCore, Woken};
use super::supply::BudgetServer;
use diapason_abi::Nanos;

/// Steps to the number of wake-ups that share a grant.
const STEPS_MAX: u32 = 16;

impl SharedCore {
    /// Returns the system with the knowledge that the I/O VCPU `io` does at most `work` each time
    /// it is woken. `None` if one of its wake-ups may wait for a grant, or if it is woken for
    /// several reasons: then its share is all that is known.
    #[must_use]
    pub fn knowing(&self, io: usize, work: Nanos) -> Option<SharedCore> {
        let supply = IoSupply::inherited(self, io)?;
        let server = &self.ios[io];
        let used = work + supply.lost();
        if server.wakes != 1 || server.share.time_for(used.0) > server.wake_gap.0 {
            return None;
        }
        let (shared, done) = shared(&supply, work, server.wake_gap)?;
        let mut known = self.clone();
        known.ios[io].woken = Some(Woken { used, joined: shared - 1, done });
        Some(known)
    }
}

/// Returns how many wake-ups share a grant at most, and by when they are done. `None` if that may
/// be more than a grant.
fn shared(supply: &IoSupply, work: Nanos, gap: Nanos) -> Option<(u64, Nanos)> {
    let mut shared = 1;
    for _ in 0..STEPS_MAX {
        let all = Nanos((work + supply.lost()).0.checked_mul(shared)?);
        if all > supply.budget() {
            return None;
        }
        let done = supply.response(all);
        let next = done.0.div_ceil(gap.0.max(1)).max(1);
        if next <= shared {
            return Some((shared, done));
        }
        shared = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::arith::Utilization;
    use super::super::model::{IoVcpu, MainVcpu};
    use super::super::supply::Supply;
    use super::*;
    use alloc::vec;

    fn system(gap: u64, wakes: u32) -> SharedCore {
        let mains = [(10, 100), (20, 200)].map(|(c, t)| MainVcpu::new(Nanos(c), Nanos(t)));
        let share = Utilization::from_ppm(250_000).unwrap();
        let io = IoVcpu { wake_gap: Nanos(gap), wakes, ..IoVcpu::new(share, vec![0]) };
        SharedCore::new(mains.to_vec(), vec![io])
    }

    fn response(system: &SharedCore) -> u64 {
        Supply::of(system, 1).unwrap().response(Nanos(20)).0
    }

    #[test]
    fn known_work_counts_once_for_each_wake_up() {
        let system = system(40, 1);
        // A grant, and a quarter of the rest of 64.
        assert_eq!(response(&system), 20 + 10 + 25 + 9);
        let known = system.knowing(0, Nanos(5)).unwrap();
        assert_eq!(response(&known), 20 + 10 + 5);
        let more = system.knowing(0, Nanos(10)).unwrap();
        assert_eq!(response(&more), 20 + 10 + 10, "the second comes when all is done");
        let mut later = more.clone();
        later.mains[1].budget += Nanos(1);
        assert_eq!(Supply::of(&later, 1).unwrap().response(Nanos(21)).0, 21 + 10 + 2 * 10);
    }

    #[test]
    fn work_that_may_wait_for_a_grant_is_not_known() {
        assert!(system(40, 1).knowing(0, Nanos(10)).is_some());
        assert!(system(40, 1).knowing(0, Nanos(11)).is_none(), "44 are its share");
        assert!(system(200, 1).knowing(0, Nanos(26)).is_none(), "more than a grant");
        assert!(system(40, 1).knowing(0, Nanos(10)).unwrap().ios[0].woken.is_some());
        assert!(system(40, 2).knowing(0, Nanos(5)).is_none(), "two may come together");
        assert!(system(40, 1).knowing(1, Nanos(5)).is_none(), "there is no such one");
    }
}
