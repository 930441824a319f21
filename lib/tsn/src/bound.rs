//! How long a frame waits at a port at most: gates, priorities without preemption, and credit.
//!
//! `docs/tsn.md` has the arguments. In short: while a class has frames and its gate is open for its
//! next one, the port sends nothing lower. So in each window it loses at most one lower frame at
//! the opening, the rest in which no frame fits at the closing, and what higher classes send.

use crate::credit::Credited;
use crate::egress::check_shaping;
use crate::{CLASSES, GateList, GateRefusal, GateWindow, LinkRate, Shaping};
use alloc::vec::Vec;

/// Frames that come to a port: bursts of equal frames with a period and a jitter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TrafficFlow {
    pub class: usize,
    /// Time on the wire of one frame.
    pub wire_ns: u64,
    /// Time between two bursts.
    pub period_ns: u64,
    /// A burst comes by this time late at most.
    pub jitter_ns: u64,
    /// Frames of a burst, at least one.
    pub burst: u64,
    /// First and last time in a cycle, from time zero of the port's clock, at which frames come;
    /// `None`: at any time. The last may be beyond the cycle.
    pub phase: Option<(u64, u64)>,
}

impl TrafficFlow {
    /// Returns the most frames that come within a closed time of length `d`.
    pub(crate) fn frames(&self, d: u64) -> u64 {
        let bursts = (d.saturating_add(self.jitter_ns) / self.period_ns).saturating_add(1);
        bursts.saturating_mul(self.burst.max(1))
    }

    /// Returns the time on the wire of a burst.
    pub(crate) fn once(&self) -> u64 {
        self.burst.max(1).saturating_mul(self.wire_ns)
    }

    pub(crate) fn work(&self, d: u64) -> u64 {
        self.frames(d).saturating_mul(self.wire_ns)
    }

    /// Returns the earliest time after `x` at which a further burst can come.
    pub(crate) fn next_arrival(&self, x: u64) -> u64 {
        let bursts = x.saturating_add(self.jitter_ns) / self.period_ns + 1;
        bursts.saturating_mul(self.period_ns).saturating_sub(self.jitter_ns)
    }

    fn share_ppm(&self) -> u64 {
        let work = u128::from(self.once()) * 1_000_000;
        u64::try_from(work.div_ceil(u128::from(self.period_ns))).unwrap_or(u64::MAX)
    }
}

/// Time from the queue of a class to the end of the frame on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueDelay {
    pub most_ns: u64,
    pub least_ns: u64,
}

/// The delay of each class with traffic.
pub type PortDelays = [Option<QueueDelay>; CLASSES];

/// A port and all that comes to it.
#[derive(Clone, Copy, Debug)]
pub struct PortModel<'a> {
    pub gates: &'a GateList,
    pub rate: LinkRate,
    pub shaping: &'a [Shaping; CLASSES],
    pub flows: &'a [TrafficFlow],
    /// The thread that keeps the port looks so late at most, and `flows` are paced by it. A switch
    /// is never late.
    pub guard_ns: u64,
}

/// Steps of a search before it is given up: the load is too close to what can be had.
const MOST_STEPS: usize = 20_000;

impl PortModel<'_> {
    /// Returns the delays of all classes with traffic.
    ///
    /// # Errors
    /// If a frame fits into no window, a class asks for more than it can have, or credits, gates
    /// and phases do not go together.
    pub fn delays(&self) -> Result<PortDelays, GateRefusal> {
        self.check()?;
        let mut delays: PortDelays = [None; CLASSES];
        for class in (0..CLASSES).rev() {
            let own: Vec<TrafficFlow> = self.of(class).copied().collect();
            let Some(least_ns) = own.iter().map(|flow| flow.wire_ns).min() else { continue };
            let most_ns = match self.with_credit(class, &own)? {
                Some(most_ns) => most_ns,
                None => self.gated(class, own, &delays)?.most()?,
            };
            delays[class] = Some(QueueDelay { most_ns, least_ns });
        }
        Ok(delays)
    }

    /// Returns the flows of a class.
    pub(crate) fn of(&self, class: usize) -> impl Iterator<Item = &TrafficFlow> {
        self.flows.iter().filter(move |flow| flow.class == class)
    }

    fn check(&self) -> Result<(), GateRefusal> {
        check_shaping(self.gates, self.rate, self.shaping)?;
        for flow in self.flows {
            self.gates.check(flow.class, flow.wire_ns)?;
            if flow.period_ns == 0 {
                return Err(GateRefusal::Period { class: flow.class });
            }
            let cycle_ns = self.gates.cycle_ns();
            if flow.phase.is_some() && flow.period_ns % cycle_ns != 0 {
                return Err(GateRefusal::Phase { period_ns: flow.period_ns, cycle_ns });
            }
        }
        let credit = |flow: &&TrafficFlow| self.shaping[flow.class] != Shaping::Strict;
        let lowest = self.flows.iter().filter(credit).map(|flow| flow.class).min();
        let closes = |flow: &&TrafficFlow| {
            lowest.is_some_and(|it| it < flow.class) && !self.gates.always(flow.class)
        };
        match (lowest, self.flows.iter().find(closes)) {
            (Some(class), Some(_)) => Err(GateRefusal::GatedAbove { class }),
            _ => Ok(()),
        }
    }

    /// Returns the longest frame of the classes that `which` accepts.
    pub(crate) fn longest(&self, which: impl Fn(usize) -> bool) -> u64 {
        let those = self.flows.iter().filter(|flow| which(flow.class));
        those.map(|flow| flow.wire_ns).max().unwrap_or(0)
    }

    /// Returns the search for the delay of a class without credit.
    fn gated(
        &self,
        class: usize,
        own: Vec<TrafficFlow>,
        delays: &PortDelays,
    ) -> Result<Search<'_>, GateRefusal> {
        let meets = |other: usize| self.gates.overlap(class, other);
        let blocking = self.longest(|it| it < class && meets(it));
        let longest = self.longest(|it| it == class);
        // Without gates and credit above, a busy time of this class and those above begins with
        // nothing left of them. Otherwise what they send may have come before.
        let above = |it: usize| self.gates.always(it) && self.shaping[it] == Shaping::Strict;
        let plain = self.gates.always(class)
            && self.flows.iter().filter(|it| it.class > class).all(|it| above(it.class));
        let mut higher = Vec::new();
        for flow in self.flows.iter().filter(|it| it.class > class && meets(it.class)) {
            let back = delays[flow.class].map_or(0, |delay| delay.most_ns);
            let jitter_ns = flow.jitter_ns + if plain { 0 } else { back };
            higher.push(TrafficFlow { jitter_ns, ..*flow });
        }
        let mut credited = [None; CLASSES];
        for above in higher.iter().map(|flow| flow.class) {
            credited[above] = self.credited(above)?;
        }
        let equal = higher.is_empty() && own.iter().all(|flow| flow.wire_ns == longest);
        let gates = self.gates;
        let search =
            Search { gates, class, own, higher, credited, blocking, longest, equal, plain };
        search.check()?;
        Ok(search)
    }

    /// Returns the latest time at which frames of an aligned class end that came in one cycle,
    /// if no frame then waits for the next cycle's frames.
    ///
    /// # Errors
    /// Those of [`PortModel::delays`].
    pub fn latest_end(&self, class: usize) -> Result<Option<u64>, GateRefusal> {
        let delays = self.delays()?;
        let own: Vec<TrafficFlow> = self.of(class).copied().collect();
        let phases: Option<Vec<(u64, u64)>> = own.iter().map(|flow| flow.phase).collect();
        let Some(phases) = phases.filter(|_| self.shaping[class] == Shaping::Strict) else {
            return Ok(None);
        };
        let first = phases.iter().map(|(from, _)| *from).min().unwrap_or(0);
        let last = phases.iter().map(|(_, to)| *to).max().unwrap_or(0);
        let search = self.gated(class, own, &delays)?;
        let end = search.at_once(self.gates.phase(last)).map(|end| last.saturating_add(end));
        // A busy time that begins earlier in the cycle ends no later.
        Ok(end.filter(|end| *end <= first.saturating_add(self.gates.cycle_ns())))
    }
}

/// The search for the delay of one class without credit.
struct Search<'a> {
    gates: &'a GateList,
    class: usize,
    own: Vec<TrafficFlow>,
    higher: Vec<TrafficFlow>,
    /// The classes above that have credit.
    credited: [Option<Credited>; CLASSES],
    /// The longest lower frame that may be on the wire when the class could begin.
    blocking: u64,
    /// The longest frame of the class.
    longest: u64,
    /// All frames that the class sends or waits for in its windows are equally long.
    equal: bool,
    /// No gate closes and no credit holds back, for it or above.
    plain: bool,
}

impl Search<'_> {
    /// Returns what a window of this length surely carries when it is over.
    fn carried(&self, length: u64) -> u64 {
        let lost = self.blocking + self.longest;
        let Some(rest) = length.checked_sub(lost) else { return 0 };
        let least = rest + 1;
        if self.equal { least.div_ceil(self.longest) * self.longest } else { least }
    }

    /// Checks that the windows carry anything, and what the class and those above ask for.
    fn check(&self) -> Result<(), GateRefusal> {
        let class = self.class;
        let (cycle, windows) = (self.gates.cycle_ns(), self.gates.windows(class));
        let carried = match self.gates.always(class) {
            true => cycle,
            false => windows.iter().map(|window| self.carried(window.length_ns)).sum(),
        };
        if carried == 0 {
            let longest_ns = windows.iter().map(|it| it.length_ns).max().unwrap_or(0);
            let needed_ns = self.blocking + self.longest;
            return Err(GateRefusal::ShortWindow { class, longest_ns, needed_ns });
        }
        let offered = u128::from(carried) * 1_000_000 / u128::from(cycle);
        let offered_ppm = u64::try_from(offered).unwrap_or(u64::MAX);
        let fits = match self.repeats() {
            Some((whole, asked)) => asked <= u128::from(carried) * u128::from(whole / cycle),
            None => self.asked_ppm() <= offered_ppm,
        };
        let asked_ppm = self.asked_ppm();
        if fits { Ok(()) } else { Err(GateRefusal::Rate { class, asked_ppm, offered_ppm }) }
    }

    fn asked_ppm(&self) -> u64 {
        self.own.iter().chain(&self.higher).map(TrafficFlow::share_ppm).sum()
    }

    /// Returns the longest delay over all times in the cycle at which a busy time can begin.
    fn most(&self) -> Result<u64, GateRefusal> {
        let mut most = 0;
        for phase in self.phases() {
            most = most.max(self.from(phase)?);
        }
        Ok(most)
    }

    /// Returns the times in a cycle of which one is the worst beginning of a busy time.
    fn phases(&self) -> Vec<u64> {
        let cycle = self.gates.cycle_ns();
        if self.gates.always(self.class) {
            return alloc::vec![0];
        }
        let mut worst = Vec::new();
        for window in self.gates.windows(self.class) {
            let close = window.open_ns + window.length_ns;
            let mut rest = self.blocking + self.longest - 1;
            loop {
                worst.push((close + cycle - rest.min(window.length_ns)) % cycle);
                rest += self.longest;
                if !self.equal || rest > window.length_ns {
                    break;
                }
            }
        }
        let aligned: Option<Vec<(u64, u64)>> = self.own.iter().map(|flow| flow.phase).collect();
        let Some(aligned) = aligned else { return worst };
        let mut phases = Vec::new();
        for (from, to) in aligned {
            if to.saturating_sub(from) >= cycle {
                return worst;
            }
            let (begin, end) = (self.gates.phase(from), self.gates.phase(to));
            let inside = |phase: &&u64| (**phase + cycle - begin) % cycle <= to - from;
            phases.extend(worst.iter().filter(inside));
            phases.extend([begin, end]);
        }
        phases
    }

    /// Returns a time after which demand and windows repeat, if it is not beyond all measure, and
    /// what is asked within it.
    fn repeats(&self) -> Option<(u64, u128)> {
        let flows = || self.own.iter().chain(&self.higher);
        let periods = flows().map(|flow| flow.period_ns);
        let whole = periods.chain([self.gates.cycle_ns()]).try_fold(1, multiple)?;
        let asked = |flow: &TrafficFlow| {
            let bursts = u128::from(whole / flow.period_ns);
            bursts * u128::from(flow.burst.max(1)) * u128::from(flow.wire_ns)
        };
        Some((whole, flows().map(asked).sum()))
    }

    /// Returns the longest delay in a busy time that begins at this phase of the cycle.
    fn from(&self, phase: u64) -> Result<u64, GateRefusal> {
        let asked_ppm = self.asked_ppm();
        let refused = GateRefusal::Rate { class: self.class, asked_ppm, offered_ppm: asked_ppm };
        // The load fits, so delays of the next repetition are no longer. A class with credit does
        // not repeat what it sends: credit holds back less and less of what came at once.
        let repeats = self.repeats().filter(|_| self.credited.iter().all(Option::is_none));
        let again = repeats.map_or(u64::MAX, |(whole, _)| whole);
        let (mut x, mut most) = (0, 0);
        for _ in 0..MOST_STEPS {
            let work: u64 = self.own.iter().map(|flow| flow.work(x)).sum();
            let mut end = 0;
            for flow in &self.own {
                let start = self.start(phase, work - flow.wire_ns).ok_or(refused)?;
                let done = start.max(x) + flow.wire_ns;
                most = most.max(done - x);
                end = end.max(done);
            }
            let next = self.own.iter().map(|flow| flow.next_arrival(x)).min().unwrap_or(u64::MAX);
            // Without gates the busy time is that of this class and those above.
            let over = if self.plain { self.busy(work).ok_or(refused)? } else { end };
            if over <= next || next >= again {
                return Ok(most);
            }
            x = next;
        }
        Err(refused)
    }

    /// Returns when the first frames of all flows have ended that come together at this phase.
    fn at_once(&self, phase: u64) -> Option<u64> {
        let work: u64 = self.own.iter().map(|flow| flow.work(0)).sum();
        let ends = self
            .own
            .iter()
            .map(|flow| Some(self.start(phase, work - flow.wire_ns)? + flow.wire_ns));
        ends.collect::<Option<Vec<u64>>>()?.into_iter().max()
    }

    /// Returns the work of higher classes within a time of length `d`. A class with credit sends no
    /// more than its credit pays for.
    fn above(&self, d: u64) -> u64 {
        let of = |class: usize| {
            let own = self.higher.iter().filter(|flow| flow.class == class);
            let came = own.map(|flow| flow.work(d)).fold(0, u64::saturating_add);
            self.credited[class].map_or(came, |it| came.min(it.work(d)))
        };
        (self.class + 1..CLASSES).map(of).fold(0, u64::saturating_add)
    }

    /// Returns when a busy time without gates has done this work and all above it.
    fn busy(&self, work: u64) -> Option<u64> {
        let mut length = self.blocking + work;
        for _ in 0..MOST_STEPS {
            let longer = self.blocking + work + self.above(length.saturating_sub(1));
            if longer == length {
                return Some(length);
            }
            length = longer;
        }
        None
    }

    /// Returns when a frame surely starts before which so much of its class must go, counted from
    /// the beginning of the busy time.
    fn start(&self, phase: u64, ahead: u64) -> Option<u64> {
        let mut at = self.earliest(phase, ahead)?;
        for _ in 0..MOST_STEPS {
            let later = self.earliest(phase, ahead.saturating_add(self.above(at)))?;
            if later <= at {
                return Some(at);
            }
            at = later;
        }
        None
    }

    /// Returns the first time at which the windows since `phase` have carried so much, and a frame
    /// of the class may begin.
    fn earliest(&self, phase: u64, needed: u64) -> Option<u64> {
        if self.gates.always(self.class) {
            return self.blocking.checked_add(needed);
        }
        let (cycle, windows) = (self.gates.cycle_ns(), self.gates.windows(self.class));
        let into = |window: &GateWindow| (phase + cycle - window.open_ns) % cycle;
        let mut done = 0;
        if let Some(window) = windows.iter().find(|window| into(window) < window.length_ns) {
            let rest = window.length_ns - into(window);
            if let Some(start) = self.within(rest, needed) {
                return Some(start);
            }
            done = self.carried(rest);
        }
        let mut openings: Vec<(u64, u64)> =
            windows.iter().map(|it| (cycle - into(it), it.length_ns)).collect();
        openings.sort_unstable();
        let per_cycle: u64 = windows.iter().map(|window| self.carried(window.length_ns)).sum();
        // Whole cycles that surely are not enough are passed at once.
        let whole = needed.saturating_sub(done).saturating_sub(1).checked_div(per_cycle)?;
        let whole = whole.saturating_sub(1);
        done = done.checked_add(whole.checked_mul(per_cycle)?)?;
        let begin = whole.checked_mul(cycle)?;
        for round in 0..4 {
            for (open, length) in &openings {
                if let Some(start) = self.within(*length, needed.saturating_sub(done)) {
                    return begin.checked_add(round * cycle)?.checked_add(open + start);
                }
                done += self.carried(*length);
            }
        }
        None
    }

    /// Returns when a frame starts in a window of this length before which so much must go; `None`
    /// if it may be too late in this window.
    fn within(&self, length: u64, needed: u64) -> Option<u64> {
        let start = self.blocking.checked_add(needed)?;
        (start.checked_add(self.longest)? <= length).then_some(start)
    }
}

/// Returns the least common multiple of two times, if it is not beyond all measure.
fn multiple(one: u64, other: u64) -> Option<u64> {
    let (mut a, mut b) = (one, other);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    (one / a).checked_mul(other).filter(|whole| *whole < 1 << 50)
}
