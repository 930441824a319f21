//! Chains of user threads that pass each message on as soon as they are done with it.

use super::apart::{self, Found};
use super::item::What;
use super::refusal::BillRefusal;
use super::service::Service;
use super::steps::{self, Demand, Messages, Steps};
use crate::size::Bucket;
use diapason_abi::Nanos;

/// A thread of a chain, on a server of its own.
#[derive(Clone, Copy)]
pub struct ChainStage<'a> {
    /// Longest time per message, waking included.
    pub message: Nanos,
    pub service: &'a dyn Service,
}

/// How long a message takes through a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChainBound {
    /// Each link by itself, added: a burst is paid for at each.
    pub sum: Nanos,
    /// All links together: a burst is paid for once, at the slowest. Never more than the sum.
    pub together: Nanos,
    /// Whether the last link relies on a list of replenishments that is never full.
    pub apart: bool,
}

/// Nothing is assumed of the lists of more links.
const LINKS: usize = 64;
/// Longest bursts that are looked at as a whole; where more matter, the sum stands.
const MESSAGES: usize = 128;

/// Returns the longest time of a message through `links`, from when the first may begin with it:
/// that is at most `varies` longer after its arrival than the shortest time is.
///
/// # Errors
/// The first link that is too slow.
pub fn chain(
    links: &[ChainStage<'_>],
    contract: &[Bucket],
    varies: Nanos,
) -> Result<ChainBound, BillRefusal> {
    let own = [contract];
    let messages = Messages { channels: &own, ahead: Nanos::ZERO };
    let (mut sum, mut founds, mut late, mut last) =
        (Nanos::ZERO, [Found::Unknown; LINKS], varies, Found::Unknown);
    for (place, link) in links.iter().enumerate() {
        let demand: &Demand<'_> = &[(link.message, &messages)];
        let woken = Messages { channels: &own, ahead: late };
        let asked: &Demand<'_> = &[(link.message, &woken)];
        let wakeups = |window| woken.most(window);
        last = steps::found(link.service, wakeups, asked, Nanos::ZERO);
        if let Some(found) = founds.get_mut(place) {
            *found = last;
        }
        let delay = steps::delay(link.service, demand, last);
        let delay = delay.map_err(|overload| BillRefusal::of(What::User, overload))?;
        (sum, late) = (sum + delay, late + delay);
    }
    let together = together(links, &founds, &messages).map_or(sum, |time| time.min(sum));
    Ok(ChainBound { sum, together, apart: last == Found::Apart })
}

/// Returns the longest delay of the chain as a whole; `None` if longer bursts than [`MESSAGES`]
/// matter.
///
/// G(j), how long j messages that come together take at most until the last is done, is D_sync of
/// their work at one link, and at two the largest G₁(k) + G₂(j + 1 − k): message k is the one that
/// begins the busy period of the second link in which the last is done.
/// Of links whose list may be full it is what [`apart::done`] says.
fn together(links: &[ChainStage<'_>], founds: &[Found], messages: &Messages<'_>) -> Option<Nanos> {
    let each = links.iter().map(|link| at_once(link, messages));
    let most = each.reduce(|sum, more| sum?.checked_add(more?)).unwrap_or(Some(0))?;
    if most > MESSAGES as u64 {
        return None;
    }
    let mut done = [Nanos::ZERO; MESSAGES];
    for (place, link) in links.iter().enumerate() {
        let alone = |count: usize| {
            let work = Nanos(link.message.0.saturating_mul(count as u64));
            apart::done(link.service, work, founds.get(place).copied().unwrap_or(Found::Unknown))
        };
        // From the longest burst down, so that what is still needed is not written over.
        for last in (0..most as usize).rev() {
            let sums = (0..=last).map(|first| done[first] + alone(last - first + 1));
            done[last] = sums.max().unwrap_or_default();
        }
    }
    let (mut window, mut longest) = (0, Nanos::ZERO);
    while window != steps::NEVER {
        let count = messages.most(window);
        if count > most {
            break;
        }
        let last = usize::try_from(count.checked_sub(1)?).ok()?;
        longest = longest.max(*done.get(last)? - Nanos(window));
        window = messages.next(window);
    }
    Some(longest)
}

/// Returns as many messages as matter at a link: those of a window of whole periods in which they
/// are served. More can be cut: as many less take so many periods less, and come so much earlier.
fn at_once(link: &ChainStage<'_>, messages: &Messages<'_>) -> Option<u64> {
    let (budget, period) = (link.service.budget().0, link.service.period().0);
    (1..=MESSAGES as u64).find_map(|periods| {
        let window = period.saturating_mul(periods).saturating_sub(1);
        let asked = messages.most(window);
        let served = asked.saturating_mul(link.message.0) <= budget.saturating_mul(periods);
        served.then_some(asked)
    })
}
