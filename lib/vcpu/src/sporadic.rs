//! The sporadic server: a budget `C` every period `T`, as a short list of chunks that come back.
//!
//! State: chunks `(e, a)`, sorted by `e`, together `C`; how much of the head is used; whether the
//! server is backlogged (its queue is not empty).
//!
//! - **S1** A chunk may be used only from `e` on. Its deadline, for EDF, is `e + T`.
//! - **S2** On waking at `t`, all chunks with `e ≤ t` become one chunk with `e = t`.
//! - **S3** Each unit used from a chunk with eligibility `e` returns at `e + T`.
//! - **S4** If the list is full when the server blocks with a head partly used, the rest of the
//!   head waits for the next chunk and becomes one with it. While the server is backlogged nothing
//!   is split.
//! - **S5** Use in the background, below everything reserved, is charged to nothing.
//! - **Overrun** Use beyond what is eligible is charged to the next chunks in advance. Such a debt
//!   stays with its chunk until that is eligible, even if the server blocks.
//!
//! **Theorem (releases).** Call `e` the release of the units of a chunk used. Any half-open window
//! of length `T` holds releases of at most `C`. *Proof.* A unit is released again at least `T`
//! after its last release (S3, S4; S2 only delays), and there are `C` units. ∎ It is *not* true
//! that the processor is used for at most `C` in any window of `T`: a chunk used just before `e +
//! T` and the next one used just after it are neighbours, as with any periodic task. True is: in a
//! level-i busy period the server uses at most `⌈L/T⌉·C` (plus the largest overrun) of the first
//! `L`, because at its begin everything released before is used up; and a server that nobody delays
//! uses at most `C` (plus the largest overrun) in any window of `T`.
//!
//! **Theorem (places).** A server with a list of `n` begins a chunk at most `n` times in a
//! half-open window of length `T`. *Proof.* What is used of each is away until `T` after its
//! release. After the `n`th, the list has `n` parts that are away, and the rest of the head is one
//! with the first of them (S4). ∎ So the list bounds the switches that the server causes.
//!
//! **Theorem (change).** [`set`](SporadicServer::set) never lets a unit be released twice within
//! the smaller of the periods in force. So any window that long holds releases of at most the
//! largest budget in force in it, however often it is changed; a window of the new `T` that begins
//! after the change holds at most the new `C`. A budget given back can be used by others only after
//! a period of the slowest VCPU of the core, or an instant at which nothing reserved is ready.

use crate::PERIOD_MAX;
use diapason_abi::Nanos;

/// How many chunks the list can hold. A power of two, so that a slot number cannot be wrong.
pub const CHUNKS: usize = 8;
const _: () = assert!(CHUNKS.is_power_of_two() && CHUNKS >= 2 && CHUNKS < 128);

/// A part of the budget and the time from which it may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// `e`: usable from here on.
    pub eligible: Nanos,
    pub amount: Nanos,
}

impl Chunk {
    const NONE: Chunk = Chunk { eligible: Nanos::ZERO, amount: Nanos::ZERO };
}

/// Observed maxima since creation of the quantities that the analysis bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SporadicCounters {
    /// Most use in advance of eligibility: how late the budget was enforced.
    pub overrun_max: Nanos,
    /// How often a full list made the rest of a chunk wait (S4); 0 if the list is long enough.
    pub merges: u32,
    /// Longest time from the eligibility of a chunk to the end of its use: at most `R(C)`.
    pub late_max: Nanos,
}

/// A main VCPU's server. See the module for its rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SporadicServer {
    budget: Nanos,
    period: Nanos,
    /// Used of the head and not yet given back; less than its amount.
    used: Nanos,
    /// Used ahead of eligibility since budget was last eligible.
    ahead: Nanos,
    /// A ring: `len` chunks from slot `first`, sorted by eligibility, together `budget`.
    chunks: [Chunk; CHUNKS],
    first: u8,
    len: u8,
    limit: u8,
    backlogged: bool,
    counters: SporadicCounters,
}

impl SporadicServer {
    /// A server without budget, for an unused slot of a pool.
    pub const EMPTY: SporadicServer =
        SporadicServer::new(Nanos::ZERO, Nanos::ZERO, CHUNKS, Nanos::ZERO);

    /// Returns a blocked server with its whole budget eligible from `start` on and a list of
    /// `limit` chunks (2 to [`CHUNKS`]; what is outside counts as the nearer of them). Budget and
    /// period are the caller's to check, by [`admission`](crate::admission). If the share was
    /// another's before, `start` lies a period of the slowest VCPU after that one ended.
    #[must_use]
    pub const fn new(budget: Nanos, period: Nanos, limit: usize, start: Nanos) -> SporadicServer {
        let mut chunks = [Chunk::NONE; CHUNKS];
        chunks[0] = Chunk { eligible: start, amount: budget };
        let limit = if limit < 2 {
            2
        } else if limit > CHUNKS {
            CHUNKS
        } else {
            limit
        };
        SporadicServer {
            budget,
            period,
            used: Nanos::ZERO,
            ahead: Nanos::ZERO,
            chunks,
            first: 0,
            len: 1,
            limit: limit as u8,
            backlogged: false,
            counters: SporadicCounters {
                overrun_max: Nanos::ZERO,
                merges: 0,
                late_max: Nanos::ZERO,
            },
        }
    }

    /// Returns the budget `C`.
    #[must_use]
    pub const fn budget(&self) -> Nanos {
        self.budget
    }

    /// Most chunks of its list.
    #[must_use]
    pub const fn limit(&self) -> u8 {
        self.limit
    }

    /// `T`, which is also the rank among fixed priorities.
    #[must_use]
    pub const fn period(&self) -> Nanos {
        self.period
    }

    /// Returns the observed maxima.
    #[must_use]
    pub const fn counters(&self) -> SporadicCounters {
        self.counters
    }

    /// Returns whether the queue is not empty, as last told.
    #[must_use]
    pub const fn is_backlogged(&self) -> bool {
        self.backlogged
    }

    /// Wakes the server: its queue became non-empty (S2). Does nothing if it was not empty.
    pub fn wake(&mut self, now: Nanos) {
        if self.backlogged {
            return;
        }
        self.backlogged = true;
        if self.eligible_at() > now {
            return;
        }
        self.give_back();
        if self.head().eligible <= now {
            self.merge(now);
        }
    }

    /// Makes one chunk of all that are eligible; there is one at least. Returns its amount.
    #[inline]
    fn merge(&mut self, now: Nanos) -> Nanos {
        let mut amount = self.head().amount;
        while self.len > 1 {
            let next = self.chunk(1);
            if next.eligible > now {
                break;
            }
            amount += next.amount;
            self.first = self.first.wrapping_add(1);
            self.len -= 1;
        }
        let slot = self.slot(0);
        self.chunks[slot] = Chunk { eligible: now, amount };
        amount
    }

    /// Wakes a blocked server if that brings budget at once and nothing that was used is still to
    /// be given back. Returns the budget; if it is zero, nothing has changed.
    #[inline]
    pub fn try_wake(&mut self, now: Nanos) -> Nanos {
        let head = self.head();
        if self.used > Nanos::ZERO || head.eligible > now || head.amount == Nanos::ZERO {
            return Nanos::ZERO;
        }
        self.backlogged = true;
        self.merge(now)
    }

    /// Blocks the server: its queue became empty. Charge the use up to now first.
    pub fn block(&mut self, now: Nanos) {
        self.backlogged = false;
        if self.head().eligible <= now {
            self.give_back();
        }
    }

    /// Returns the budget of all eligible chunks, for fixed priorities.
    #[must_use]
    pub fn available(&self, now: Nanos) -> Nanos {
        let mut sum = Nanos::ZERO;
        for i in 0..self.len {
            let chunk = self.chunk(i);
            if chunk.eligible > now {
                break;
            }
            sum += chunk.amount;
        }
        sum - self.used
    }

    /// Returns the budget that can be used at the current [`deadline`](Self::deadline), for EDF.
    #[must_use]
    pub fn available_by_deadline(&self, now: Nanos) -> Nanos {
        if self.head().eligible <= now { self.left_of_head() } else { Nanos::ZERO }
    }

    /// Returns the unused part of the head chunk, eligible or not.
    #[must_use]
    pub fn left_of_head(&self) -> Nanos {
        self.head().amount - self.used
    }

    /// Returns the time from which the server has budget.
    #[must_use]
    pub fn eligible_at(&self) -> Nanos {
        if self.budget == Nanos::ZERO { Nanos::FOREVER } else { self.head().eligible }
    }

    /// `e + T` of the head.
    #[must_use]
    pub fn deadline(&self) -> Nanos {
        self.eligible_at() + self.period
    }

    /// Charges the `used` nanoseconds before `now`, used without a break (S3, overrun).
    #[inline(never)]
    pub fn charge(&mut self, used: Nanos, now: Nanos) {
        if self.budget == Nanos::ZERO {
            return;
        }
        if self.head().eligible <= now - used {
            self.ahead = Nanos::ZERO;
        }
        // An overrun far beyond the budget moves every chunk by whole periods, so this loop is
        // bounded.
        let rounds = (used.0 / self.budget.0).saturating_sub(1);
        let beyond = Nanos(rounds * self.budget.0);
        let mut left = used - beyond;
        let now = now - beyond;
        while left > Nanos::ZERO {
            left = self.charge_head(left, now);
        }
        if rounds > 0 {
            self.ahead += beyond;
            for chunk in &mut self.chunks {
                chunk.eligible += Nanos(self.period.0.saturating_mul(rounds));
            }
        }
        self.counters.overrun_max = self.counters.overrun_max.max(self.ahead);
    }

    /// Charges the `used` nanoseconds before `now` and levies the rest of `due` besides, if the
    /// head bears both and something of it is left. Returns whether it does; if not, nothing has
    /// changed.
    #[inline]
    pub fn try_charge(&mut self, used: Nanos, due: Nanos, now: Nanos) -> bool {
        let (head, sum) = (self.head(), self.used + due);
        if head.eligible > now - used || sum >= head.amount {
            return false;
        }
        self.used = sum;
        self.ahead = Nanos::ZERO;
        if used > Nanos::ZERO {
            self.counters.late_max = self.counters.late_max.max(now - head.eligible);
        }
        true
    }

    /// Charges the head with as much of the `left` before `now` as it can bear, and returns the
    /// rest.
    fn charge_head(&mut self, left: Nanos, now: Nanos) -> Nanos {
        let head = self.head();
        let start = now - left;
        let part = left.min(self.left_of_head());
        let left = left - part;
        self.used += part;
        if head.eligible > start {
            self.ahead += part;
        }
        let late = now - left - head.eligible;
        self.counters.late_max = self.counters.late_max.max(late);
        if self.used >= head.amount {
            self.used = Nanos::ZERO;
            self.pop();
            self.push(Chunk { eligible: head.eligible + self.period, ..head });
        }
        left
    }

    /// Takes `amount` of the budget as used, as soon as it is eligible, without the processor being
    /// used: for work done in advance or by others. It returns as S3 has it.
    pub fn levy(&mut self, amount: Nanos) {
        let mut left = amount.min(self.budget);
        while left > Nanos::ZERO {
            let head = self.head();
            let part = left.min(self.left_of_head());
            left = left - part;
            self.used += part;
            if self.used >= head.amount {
                self.used = Nanos::ZERO;
                self.pop();
                self.push(Chunk { eligible: head.eligible + self.period, ..head });
            }
        }
    }

    /// Sets budget and period from now on. A smaller budget removes the part furthest in the
    /// future. Added budget comes one new period from now, so that changing to and fro gains
    /// nothing, and nothing used returns before it. The first supply after a change is that of a
    /// merge, `T + kT + R(r)`.
    pub fn set(&mut self, budget: Nanos, period: Nanos, now: Nanos) {
        self.give_back();
        let latest = now + period;
        if period < self.period {
            self.pull_to(latest);
        }
        let less = self.budget - budget;
        let more = budget - self.budget;
        self.budget = budget;
        self.period = period;
        self.take_from_the_end(less);
        if more > Nanos::ZERO {
            self.add_at(latest, more);
        }
    }

    /// No chunk later than `latest`.
    fn pull_to(&mut self, latest: Nanos) {
        let mut amount = Nanos::ZERO;
        while self.len > 0 && self.chunk(self.len - 1).eligible > latest {
            self.len -= 1;
            amount += self.chunk(self.len).amount;
        }
        if amount > Nanos::ZERO {
            self.push(Chunk { eligible: latest, amount });
        }
    }

    fn take_from_the_end(&mut self, mut amount: Nanos) {
        while amount > Nanos::ZERO && self.len > 0 {
            let slot = self.slot(self.len - 1);
            let part = amount.min(self.chunks[slot].amount);
            amount = amount - part;
            self.chunks[slot].amount = self.chunks[slot].amount - part;
            if self.chunks[slot].amount == Nanos::ZERO && self.len > 1 {
                self.len -= 1;
            }
        }
    }

    fn add_at(&mut self, eligible: Nanos, amount: Nanos) {
        if self.len == 1 && self.head().amount == Nanos::ZERO {
            self.len = 0;
        }
        if self.len >= self.limit {
            let slot = self.slot(self.len - 1);
            if self.chunks[slot].eligible < eligible {
                self.chunks[slot].eligible = eligible;
                self.counters.merges = self.counters.merges.saturating_add(1);
            }
        }
        self.push(Chunk { eligible, amount });
    }

    /// The used part of the head returns one period after its eligibility (S3). The rest waits for
    /// the next chunk if the list is full (S4).
    #[inline(always)]
    fn give_back(&mut self) {
        if self.used > Nanos::ZERO {
            self.split();
        }
    }

    #[inline(never)]
    fn split(&mut self) {
        let head = self.head();
        let (eligible, rest) = (head.eligible + self.period, head.amount - self.used);
        if self.len < self.limit || self.chunk(self.len - 1).eligible >= eligible {
            let slot = self.slot(0);
            self.chunks[slot].amount = rest;
        } else {
            self.counters.merges = self.counters.merges.saturating_add(1);
            self.pop();
            let next = self.slot(0);
            self.chunks[next].amount += rest;
        }
        self.push(Chunk { eligible, amount: self.used });
        self.used = Nanos::ZERO;
    }

    /// Returns the chunks, soonest first.
    pub fn chunks(&self) -> impl Iterator<Item = Chunk> + '_ {
        (0..self.len).map(|i| self.chunk(i))
    }

    /// Returns whether the list is sorted, not too long, and adds up to the budget.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        let sum: u64 = self.chunks().map(|chunk| chunk.amount.0).sum();
        let sorted = self.chunks().zip(self.chunks().skip(1)).all(|(a, b)| a.eligible < b.eligible);
        let empty = self.budget == Nanos::ZERO;
        let filled = empty || self.chunks().all(|chunk| chunk.amount > Nanos::ZERO);
        let head = empty || self.used < self.head().amount;
        let length = self.len >= 1 && self.len <= self.limit;
        sum == self.budget.0 && sorted && filled && head && length && self.period <= PERIOD_MAX
    }

    const fn slot(&self, i: u8) -> usize {
        self.first.wrapping_add(i) as usize % CHUNKS
    }

    fn chunk(&self, i: u8) -> Chunk {
        self.chunks[self.slot(i)]
    }

    fn head(&self) -> Chunk {
        self.chunk(0)
    }

    fn pop(&mut self) -> Chunk {
        let head = self.head();
        self.first = self.first.wrapping_add(1);
        self.len = self.len.saturating_sub(1);
        head
    }

    /// At the end; one with the last if it is not later.
    fn push(&mut self, chunk: Chunk) {
        let last = self.slot(self.len.wrapping_sub(1));
        if self.len > 0 && self.chunks[last].eligible >= chunk.eligible {
            self.chunks[last].amount += chunk.amount;
        } else {
            let slot = self.slot(self.len);
            self.chunks[slot] = chunk;
            self.len += 1;
        }
    }
}
