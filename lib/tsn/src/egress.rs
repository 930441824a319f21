//! The transmitter of a port: eight queues, gates, and credit.
//!
//! Whenever the wire is free, the highest class sends whose gate stays open long enough for its
//! first frame, and whose credit is not negative. The guard band is therefore as long as the frame
//! that would not fit, and no frame reaches out of its window.

use crate::{CLASSES, CreditSpan, GateList, GateRefusal, LinkRate};
use alloc::collections::VecDeque;

/// How a class is shaped besides its gate.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Shaping {
    /// By its priority alone.
    #[default]
    Strict,
    /// By credit that grows by so many bit/s (IEEE 802.1Qav, the idle slope).
    Credit { idle_bits_per_second: u64 },
}

impl Shaping {
    /// Returns how all classes are shaped of which these have credit, each with its idle slope in
    /// kbit/s.
    #[must_use]
    pub fn by_credit(slopes: impl Iterator<Item = (u8, u64)>) -> [Shaping; CLASSES] {
        let mut shaping = [Shaping::Strict; CLASSES];
        for (class, idle_kbit) in slopes {
            if let Some(of_class) = shaping.get_mut(usize::from(class)) {
                *of_class = Shaping::Credit { idle_bits_per_second: idle_kbit * 1_000 };
            }
        }
        shaping
    }
}

/// The action of a transmitter at some time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EgressStep<T> {
    /// The transmitter begins to send this frame, whose last bit and gap are over at `end_ns`.
    Sends { class: usize, item: T, end_ns: u64 },
    /// The transmitter has frames. Without another one, nothing happens before this time.
    Waits { until_ns: u64 },
    /// The transmitter has no frames.
    Idle,
}

/// A frame in a queue.
#[derive(Clone, Debug)]
struct Queued<T> {
    item: T,
    wire_ns: u64,
}

/// The transmitter of a port. Times that it is given must never go back.
#[derive(Clone, Debug)]
pub struct Egress<T> {
    gates: GateList,
    rate: LinkRate,
    shaping: [Shaping; CLASSES],
    queues: [VecDeque<Queued<T>>; CLASSES],
    /// The time for which a frame may keep the wire beyond its own. Credit pays for it.
    guard_ns: u64,
    /// Credit of each class in billionths of a bit.
    credits: [i128; CLASSES],
    /// The highest and the lowest credit that each class had.
    extremes: [(i128, i128); CLASSES],
    /// The class whose frame is on the wire.
    sending: Option<usize>,
    busy_until_ns: u64,
    /// The time up to which credits are known.
    settled_ns: u64,
}

impl<T> Egress<T> {
    /// Returns an idle transmitter.
    ///
    /// # Errors
    /// If the gate of a class with credit closes, or the credits reserve too much of the link.
    pub fn new(
        gates: GateList,
        rate: LinkRate,
        shaping: [Shaping; CLASSES],
    ) -> Result<Egress<T>, GateRefusal> {
        check_shaping(&gates, rate, &shaping)?;
        Ok(Egress {
            gates,
            rate,
            shaping,
            queues: core::array::from_fn(|_| VecDeque::new()),
            guard_ns: 0,
            credits: [0; CLASSES],
            extremes: [(0, 0); CLASSES],
            sending: None,
            busy_until_ns: 0,
            settled_ns: 0,
        })
    }

    /// Lets each queue have so many frames without asking for more memory.
    #[must_use]
    pub fn with_room(mut self, frames: usize) -> Egress<T> {
        self.queues.iter_mut().for_each(|queue| queue.reserve(frames));
        self
    }

    /// Lets credit pay for so much more time on the wire than frames are sent.
    #[must_use]
    pub(crate) fn with_guard(self, guard_ns: u64) -> Egress<T> {
        Egress { guard_ns, ..self }
    }

    /// Queues a frame that occupies the wire for `wire_ns`.
    ///
    /// # Errors
    /// If no window of the class is as long as the frame: it would never be sent.
    pub fn push(
        &mut self,
        now_ns: u64,
        class: usize,
        wire_ns: u64,
        item: T,
    ) -> Result<(), GateRefusal> {
        self.gates.check(class, wire_ns)?;
        self.settle(now_ns);
        self.queues[class].push_back(Queued { item, wire_ns });
        Ok(())
    }

    /// Returns what the transmitter does now.
    pub fn step(&mut self, now_ns: u64) -> EgressStep<T> {
        self.settle(now_ns);
        if self.queues.iter().all(VecDeque::is_empty) {
            return EgressStep::Idle;
        }
        if self.busy_until_ns > now_ns {
            return EgressStep::Waits { until_ns: self.busy_until_ns };
        }
        let mut until_ns = u64::MAX;
        for class in (0..CLASSES).rev() {
            let Some(first) = self.queues[class].front() else { continue };
            let wire_ns = first.wire_ns;
            let earliest = now_ns.saturating_add(self.credit_wait(class));
            let Some(start) = self.gates.next_start(class, earliest, wire_ns) else { continue };
            if start > now_ns {
                until_ns = until_ns.min(start);
            } else if let Some(frame) = self.queues[class].pop_front() {
                self.pay(class, self.guard_ns);
                self.sending = Some(class);
                self.busy_until_ns = now_ns.saturating_add(wire_ns);
                return EgressStep::Sends { class, item: frame.item, end_ns: self.busy_until_ns };
            }
        }
        EgressStep::Waits { until_ns }
    }

    /// Ends the frame that is on the wire. The caller knows that the wire is free, and may go on
    /// with an earlier time: its clock may have been set.
    pub fn ends(&mut self) {
        if let Some(class) = self.sending.take() {
            self.pay(class, self.busy_until_ns.saturating_sub(self.settled_ns));
        }
        self.busy_until_ns = 0;
    }

    /// Takes all frames out of the queues.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        self.queues.iter_mut().flat_map(|queue| queue.drain(..)).map(|queued| queued.item)
    }

    /// Returns the gate list that the transmitter follows.
    #[must_use]
    pub fn gates(&self) -> &GateList {
        &self.gates
    }

    /// Returns how many frames of a class wait.
    #[must_use]
    pub fn waiting(&self, class: usize) -> usize {
        self.queues.get(class).map_or(0, VecDeque::len)
    }

    /// Returns between which limits the credit of each class was so far.
    #[must_use]
    pub fn credits(&self) -> [CreditSpan; CLASSES] {
        self.extremes.map(|(most, least)| CreditSpan::around(most, least))
    }

    /// Returns the time until the credit of a class is no longer negative.
    fn credit_wait(&self, class: usize) -> u64 {
        match self.shaping[class] {
            Shaping::Credit { idle_bits_per_second } if self.credits[class] < 0 => {
                let missing = self.credits[class].unsigned_abs();
                u64::try_from(missing.div_ceil(u128::from(idle_bits_per_second.max(1))))
                    .unwrap_or(u64::MAX)
            }
            _ => 0,
        }
    }

    /// Brings the credits up to `now`.
    fn settle(&mut self, now_ns: u64) {
        if self.sending.is_some() {
            let end = self.busy_until_ns.min(now_ns);
            self.grow(end.saturating_sub(self.settled_ns));
            self.settled_ns = end;
            if self.busy_until_ns <= now_ns {
                self.sending = None;
                self.forget();
            }
        }
        self.grow(now_ns.saturating_sub(self.settled_ns));
        self.settled_ns = now_ns;
        self.forget();
    }

    /// Takes so much time on the wire from the credit of a class.
    fn pay(&mut self, class: usize, wire_ns: u64) {
        if self.shaping[class] != Shaping::Strict {
            self.credits[class] -= i128::from(self.rate.bits_per_second()) * i128::from(wire_ns);
        }
    }

    /// Lets credits grow, and that of the class that sends fall, for some time.
    fn grow(&mut self, elapsed_ns: u64) {
        let rate = i128::from(self.rate.bits_per_second());
        for class in 0..CLASSES {
            let Shaping::Credit { idle_bits_per_second } = self.shaping[class] else { continue };
            let idle = i128::from(idle_bits_per_second);
            let elapsed = i128::from(elapsed_ns);
            let credit = &mut self.credits[class];
            if self.sending == Some(class) {
                *credit += (idle - rate) * elapsed;
            } else if !self.queues[class].is_empty() {
                *credit += idle * elapsed;
            } else if *credit < 0 {
                *credit = (*credit + idle * elapsed).min(0);
            }
            let (most, least) = &mut self.extremes[class];
            (*most, *least) = ((*most).max(*credit), (*least).min(*credit));
        }
    }

    /// Takes away the credit of classes that have nothing to send.
    fn forget(&mut self) {
        for class in 0..CLASSES {
            let idle = self.queues[class].is_empty() && self.sending != Some(class);
            if idle && self.credits[class] > 0 {
                self.credits[class] = 0;
            }
        }
    }
}

/// Checks the classes with credit of a port.
pub(crate) fn check_shaping(
    gates: &GateList,
    rate: LinkRate,
    shaping: &[Shaping; CLASSES],
) -> Result<(), GateRefusal> {
    let mut sum = 0_u128;
    for (class, shaping) in shaping.iter().enumerate() {
        let Shaping::Credit { idle_bits_per_second } = shaping else { continue };
        if !gates.always(class) {
            return Err(GateRefusal::GatedCredit { class });
        }
        if *idle_bits_per_second == 0 {
            return Err(GateRefusal::NoSlope { class });
        }
        sum += u128::from(*idle_bits_per_second);
    }
    let rate = u128::from(rate.bits_per_second());
    if sum > rate {
        let ppm = (sum * 1_000_000).div_ceil(rate);
        return Err(GateRefusal::Credits { ppm: u64::try_from(ppm).unwrap_or(u64::MAX) });
    }
    Ok(())
}
