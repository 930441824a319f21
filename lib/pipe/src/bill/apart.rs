//! When a server's list of replenishments is never full.
//!
//! D_sync needs that. A list with room for all wake-ups of a period is not enough: a server that
//! waits for budget keeps the parts of it apart for ever. The theorem is in `docs/pipes-proofs.md`,
//! under "Replenishments that merge".

use super::service::Service;
use diapason_abi::Nanos;

/// Steps to a fixed point before it is given up.
const STEPS_MAX: u32 = 1_024;

/// The demand on a server as it really comes, jitter included.
pub struct Coming<W, D> {
    /// Most wake-ups in a closed window.
    pub wakeups: W,
    /// u: most work in a closed window.
    pub work: D,
    /// The least of which one event adds to `work`: each wake-up is one.
    pub least: Nanos,
}

/// Returns whether `service` never merges replenishments, and its wake-ups never wait for budget:
/// it wakes up no more often in a period than its list has places for, and each time with enough
/// budget for all it does until it blocks.
pub fn keeps_apart<W, D>(service: &dyn Service, coming: &Coming<W, D>) -> bool
where
    W: Fn(Nanos) -> u64,
    D: Fn(Nanos) -> Nanos,
{
    let before = service.period() - Nanos(1);
    if service.wakeups() == u64::MAX {
        return true;
    }
    if (coming.wakeups)(before) > service.wakeups() {
        return false;
    }
    let Some(busy) = busy(service, &coming.work) else { return false };
    // The wake-up itself is in both windows.
    let parted = (coming.work)(before) + (coming.work)(busy);
    let asked = (parted - coming.least).min((coming.work)(before + busy));
    // That may take two periods, and the kernel takes its part in each.
    asked + service.lost() <= service.budget()
}

/// Returns the longest time from a wake-up until the server blocks, if it never waits for budget
/// then.
fn busy(service: &dyn Service, work: impl Fn(Nanos) -> Nanos) -> Option<Nanos> {
    let mut busy = Nanos::ZERO;
    for _ in 0..STEPS_MAX {
        let asked = work(busy);
        if asked > service.budget() {
            return None;
        }
        let next = service.sync(asked);
        if next <= busy {
            return Some(busy);
        }
        busy = next;
    }
    None
}
