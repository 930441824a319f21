//! Chains with state messages in them: threads pass on each message, or publish its value, of which
//! the next takes the newest once in a period.
//!
//! A chain falls into *legs* at the threads that sample. In a leg messages are passed on one by
//! one, and its contract is that of what enters it: of the device, or one message in each period of
//! the thread that samples. The theorem is in `docs/pipes-proofs.md`.

use super::chain::{ChainStage, chain};
use super::refusal::BillRefusal;
use super::steps::{Messages, Steps};
use crate::measured::HOPS;
use crate::size::Bucket;
use diapason_abi::Nanos;

/// A thread of a chain, and how messages come to it.
#[derive(Clone, Copy)]
pub struct Hop<'a> {
    /// The thread's supply, and the time it takes for a message.
    pub link: ChainStage<'a>,
    /// The thread is woken once in this period and takes the newest value; else it is woken by each
    /// message. The first thread of a chain is always woken.
    pub sampled: Option<Nanos>,
}

/// When a message is there for the first thread, after it arrived at the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Before {
    pub shortest: Nanos,
    pub longest: Nanos,
    /// The longest that the first thread then takes, if more is known of it than of the others:
    /// [`input`](super::input()) knows how often it is woken.
    pub first: Nanos,
}

/// The bounds that hold at a thread of a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reach {
    /// Most time from a message's arrival at the device until it, or a newer one, is past this.
    pub done: Nanos,
    /// Most messages between the one before it and the end of its own work.
    pub waiting: u64,
    /// Whether this relies on a list of replenishments that is never full.
    pub apart: bool,
}

/// The bounds that hold for a whole chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Relay {
    reaches: [Reach; HOPS],
    count: usize,
    /// The period of the last thread that samples: so often does a message leave the chain.
    pub sampled: Option<Nanos>,
    /// By how much the time from when a message enters the last leg until it leaves varies.
    pub varies: Nanos,
}

impl Relay {
    /// Returns the part of each thread, in their order.
    #[must_use]
    pub fn reaches(&self) -> &[Reach] {
        self.reaches.get(..self.count).unwrap_or_default()
    }

    /// Returns the part of the last thread.
    #[must_use]
    pub fn end(&self) -> Reach {
        self.reaches().last().copied().unwrap_or_default()
    }
}

/// Why a chain has no bound. Threads are counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stuck {
    /// This thread is too slow.
    Slow(usize, BillRefusal),
    /// A job of this thread, which samples, may take longer than its period: then it passes over
    /// the next one.
    Skips(usize, Nanos),
    /// The chain has no threads, or more than [`HOPS`].
    Length,
}

/// A leg that begins now.
struct Leg {
    /// The longest from a message's arrival at the device until it, or a newer one, enters.
    entered: Nanos,
    /// The time from a message's entry until it is there for the leg's first thread.
    before: Before,
    first: usize,
    sampled: Option<Nanos>,
}

impl Leg {
    /// Returns the longest until a message has come through these links of it, after it entered;
    /// and whether the last one relies on a list that is never full.
    fn through(
        &self,
        links: &[ChainStage<'_>],
        contract: &[Bucket],
    ) -> Result<(Nanos, bool), BillRefusal> {
        let Before { shortest, longest, first } = self.before;
        let varies = longest - shortest.min(longest);
        let all = chain(links, contract, varies)?;
        let rest = chain(links.get(1..).unwrap_or_default(), contract, varies + first)?;
        Ok((longest + all.together.min(first + rest.together), all.apart || rest.apart))
    }
}

/// Returns how far a message has come when, at most, that is there for the first of `hops` as
/// `before` says; messages arrive by `contract`.
///
/// # Errors
/// The first thread without a bound.
pub fn relay(hops: &[Hop<'_>], contract: &[Bucket], before: Before) -> Result<Relay, Stuck> {
    let first = hops.first().filter(|_| hops.len() <= HOPS).ok_or(Stuck::Length)?;
    let mut links = [first.link; HOPS];
    links.iter_mut().zip(hops).for_each(|(link, hop)| *link = hop.link);
    let mut leg = Leg { entered: Nanos::ZERO, before, first: 0, sampled: None };
    let (mut reaches, mut varies) = ([Reach::default(); HOPS], Nanos::ZERO);
    let mut done = Nanos::ZERO;
    for (index, hop) in hops.iter().enumerate() {
        if let Some(period) = hop.sampled.filter(|_| index > 0) {
            let (shortest, longest) = (Nanos::ZERO, Nanos::ZERO);
            let before = Before { shortest, longest, first: Nanos::FOREVER };
            // A value that is published just after a look waits for the next look.
            leg = Leg { entered: done + period, before, first: index, sampled: hop.sampled };
        }
        let periodic = leg.sampled.map(|period| [Bucket::periodic(period)]);
        let contract = periodic.as_ref().map_or(contract, |bucket| &bucket[..]);
        let own = links.get(leg.first..=index).unwrap_or_default();
        let (through, apart) = leg.through(own, contract).map_err(|why| Stuck::Slow(index, why))?;
        if index == leg.first
            && let Some(period) = leg.sampled
            && through > period
        {
            return Err(Stuck::Skips(index, through));
        }
        varies = through - leg.before.shortest.min(through);
        done = leg.entered + through;
        let channel = [contract];
        let enter = Messages { channels: &channel, ahead: Nanos::ZERO };
        if let Some(reach) = reaches.get_mut(index) {
            *reach = Reach { done, waiting: enter.most(varies.0), apart };
        }
    }
    Ok(Relay { reaches, count: hops.len(), sampled: leg.sampled, varies })
}
