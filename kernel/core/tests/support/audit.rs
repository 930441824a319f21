//! Properties of every run: the most urgent place runs at each moment, and the whole trace shows
//! the supply of each VCPU.

use super::chance::Drawn;
use super::stage::{Stage, View};
use super::{Nanos, State, ThreadId};
use diapason_abi::record::Record;
use diapason_core::{Kernel, Server, VcpuId};

/// Returns how urgent a VCPU is, smaller first: queue, deadline or period, I/O before Main, order.
fn rank(stage: &Stage<'_>, v: usize) -> (u8, u64, u64, usize) {
    let declared = &stage.script.vcpus[v];
    let io = declared.main.is_none();
    let (deadline, period) = match &stage.host.kernel.vcpus[VcpuId::new(v as u16)].server {
        Server::Main(server) => (server.deadline(), server.period()),
        Server::Io(server, period) => (server.deadline(), *period),
    };
    let urgent = if declared.queue < stage.script.queues { deadline.0 } else { 0 };
    (declared.queue, urgent, 2 * period.0 + u64::from(!io), v)
}

/// Ends a run: its time is that of threads and the idle time, and VCPUs paid for threads only.
pub fn check_books(kernel: &mut Kernel<'_>, now: Nanos) {
    let (mut threads, mut paid) = (0, kernel.retired().0);
    kernel.final_accounts(now, |record, words| match record {
        Record::Thread => threads += words[3],
        Record::Vcpu => paid += words[1] + words[2],
        _ => {}
    });
    assert_eq!(threads + kernel.scheduler.idle.0, now.0, "time in is time out");
    assert!(paid <= threads, "VCPUs paid {paid} ns, but threads had {threads} ns");
}

/// Right after a step: the place that is run in is the most urgent one.
pub fn check_choice(stage: &Stage<'_>) {
    if stage.host.kernel.next_alarm() <= stage.host.now {
        return; // The timer is late, or has more to do.
    }
    let threads = &stage.host.kernel.threads;
    let ready = |t: ThreadId| threads[t].state == State::Ready;
    let all = || (0..stage.script.actors.len()).filter(|a| ready(stage.thread(*a)));
    let on = |a: &usize| stage.script.actors[*a].on;
    let with = |budget: bool| {
        let some = (0..stage.script.vcpus.len()).filter(move |v| all().any(|a| on(&a) == Some(*v)));
        some.filter(move |v| (stage.available(*v) > 0) == budget)
    };
    let first = with(true).min_by_key(|v| rank(stage, *v));
    let unreserved = all().any(|a| on(&a).is_none());
    let background = |v: &usize| stage.script.vcpus[*v].background;
    let by_period = |v: &usize| {
        let (queue, _, period, order) = rank(stage, *v);
        (queue, period, order)
    };
    let beyond = with(false).filter(background).min_by_key(by_period);
    let view = stage.view();
    match (first, unreserved, beyond) {
        (Some(v), ..) => assert_eq!((view.vcpu, view.beyond), (Some(v), false), "most urgent"),
        (None, true, _) => assert!(view.place.is_some() && view.vcpu.is_none(), "unreserved"),
        (None, false, Some(v)) => assert_eq!(view.vcpu, Some(v), "background"),
        (None, false, None) => assert!(view.runs.is_none() && view.place.is_none(), "nobody"),
    }
    if let Some(place) = view.place {
        let equals = all().filter(|a| on(a) == on(&place));
        let most = equals.map(|a| stage.script.actors[a].priority).max();
        assert_eq!(most, Some(stage.script.actors[place].priority), "most urgent of its VCPU");
    }
}

/// A run that is over.
pub struct Audit<'a> {
    stage: &'a Stage<'a>,
    drawn: &'a Drawn,
    slices: Vec<(u64, u64, View)>,
}

impl<'a> Audit<'a> {
    /// Returns the audit of a stage at its end.
    pub fn new(stage: &'a Stage<'a>, drawn: &'a Drawn) -> Audit<'a> {
        Audit { stage, drawn, slices: stage.slices(drawn.end) }
    }

    /// Checks all properties of the run.
    pub fn check(&self) {
        self.check_time();
        self.check_payment();
        let changed = self
            .drawn
            .script
            .actors
            .iter()
            .any(|a| a.ops.iter().any(|op| matches!(op, super::script::Op::Set(..))));
        if changed {
            return;
        }
        for v in 0..self.drawn.script.vcpus.len() {
            match self.drawn.script.vcpus[v].main {
                Some((budget, period)) => {
                    if self.drawn.by_period {
                        self.check_use(v, budget, period);
                    }
                    if self.drawn.admitted {
                        self.check_supply(v, budget, period);
                    }
                }
                None if self.drawn.admitted => self.check_share(v),
                None => {}
            }
        }
    }

    /// Time in equals time out.
    fn check_time(&self) {
        let kernel = &self.stage.host.kernel;
        let last = self.drawn.end - kernel.scheduler.since.0;
        for actor in 0..self.drawn.script.actors.len() {
            let thread = self.stage.thread(actor);
            let running = kernel.scheduler.running == thread;
            let used = kernel.threads[thread].used.0 + if running { last } else { 0 };
            assert_eq!(used, self.sum(|view| view.runs == Some(actor)), "time of a thread");
        }
        let idle =
            kernel.scheduler.idle.0 + if kernel.scheduler.running.is_none() { last } else { 0 };
        assert_eq!(idle, self.sum(|view| view.runs.is_none()), "idle time");
    }

    fn sum(&self, of: impl Fn(&View) -> bool) -> u64 {
        self.slices.iter().filter(|(.., view)| of(view)).map(|(from, to, _)| to - from).sum()
    }

    /// The VCPU of the place pays, and no other.
    fn check_payment(&self) {
        for v in 0..self.drawn.script.vcpus.len() {
            let vcpu = &self.stage.host.kernel.vcpus[VcpuId::new(v as u16)];
            let (used, extra) = (vcpu.used.0, vcpu.extra.0);
            assert_eq!(used + extra, self.sum(|view| view.vcpu == Some(v)), "time of a VCPU");
            if self.drawn.late == 0 {
                let beyond = self.sum(|view| view.vcpu == Some(v) && view.beyond);
                assert_eq!(extra, beyond, "time in the background");
            }
        }
    }

    /// Budget of `v` used in a window.
    fn paid(&self, v: usize, from: u64, to: u64) -> u64 {
        let on = self.slices.iter().filter(|(.., view)| view.vcpu == Some(v) && !view.beyond);
        on.map(|(a, b, _)| (*b).min(to).saturating_sub((*a).max(from))).sum()
    }

    /// In a busy period of its level a VCPU uses at most `C` for each begun `T` (and an overrun).
    fn check_use(&self, v: usize, budget: u64, period: u64) {
        let late = self.drawn.late;
        let level = rank(self.stage, v);
        let (mut begin, mut before) = (0, 0);
        for (from, to, view) in &self.slices {
            let busy = view.vcpu.is_some_and(|w| !view.beyond && rank(self.stage, w) <= level);
            if *from != before {
                begin = *from;
            }
            if !busy {
                continue;
            }
            before = *to;
            let most = (to - begin + late).div_ceil(period) * budget + 2 * late;
            let paid = self.paid(v, begin, *to);
            assert!(paid <= most, "v{v} used {paid} in {begin}..{to}, at most {most}");
        }
        let top = (0..self.drawn.script.vcpus.len()).all(|w| rank(self.stage, w) >= level);
        if top {
            for (from, ..) in &self.slices {
                let paid = self.paid(v, *from, from + period);
                assert!(paid <= budget + 3 * late, "v{v}: {paid} in a period from {from}");
            }
        }
    }

    /// While it is ready, an admitted VCPU gets `C` in every `T`: at once if its budget was whole,
    /// else `T − C` later by period, and `T` by deadline or after a merge.
    fn check_supply(&self, v: usize, budget: u64, period: u64) {
        let Server::Main(server) = &self.stage.host.kernel.vcpus[VcpuId::new(v as u16)].server
        else {
            return;
        };
        // By deadline a small chunk may be used as late as a large one.
        let by_deadline = self.drawn.script.vcpus[v].queue < self.drawn.script.queues;
        let whole = by_deadline || server.counters().merges > 0;
        let lag = if whole { period } else { period - budget };
        let late = self.drawn.late;
        for (begin, end) in self.ready(v) {
            let inside = |t: &u64| *t > begin && *t < end;
            let starts = self.slices.iter().map(|(from, ..)| *from).filter(inside);
            let first = if begin == 0 { 0 } else { lag };
            for (start, lag) in starts.map(|t| (t, lag)).chain([(begin, first), (begin, lag)]) {
                let (mut k, mut to) = (1, start + lag + period + 2 * late);
                while to <= end {
                    let paid = self.paid(v, start, to);
                    let least = (k * budget).saturating_sub(2 * late);
                    assert!(paid >= least, "v{v} got {paid} in {start}..{to}, less than {least}");
                    (k, to) = (k + 1, to + period);
                }
            }
        }
    }

    /// Returns when a VCPU was ready. A pause is one even if it takes no time.
    fn ready(&self, v: usize) -> Vec<(u64, u64)> {
        let mut found: Vec<(u64, u64)> = Vec::new();
        let mut paused = true;
        let ends = self.stage.ready.iter().skip(1).map(|(t, _)| *t).chain([self.drawn.end]);
        for ((from, ready), to) in self.stage.ready.iter().zip(ends) {
            let is = ready >> v & 1 == 1;
            match found.last_mut() {
                Some((_, end)) if is && !paused => *end = to,
                _ if is => found.push((*from, to)),
                _ => {}
            }
            paused = !is;
        }
        found
    }

    /// An I/O VCPU uses its share, and two grants at the ends of a window.
    fn check_share(&self, v: usize) {
        let Server::Io(server, period) =
            &self.stage.host.kernel.vcpus[VcpuId::new(v as u16)].server
        else {
            return;
        };
        let (share, grant) = (u64::from(server.share()), server.quantum(Nanos(period.0)).0);
        let rest = 2 * (grant + self.drawn.late) + 100;
        let (mut least, mut sum) = (i128::from(u64::MAX), 0u64);
        for (from, to, view) in &self.slices {
            let owed = |t: u64| i128::from(t) * i128::from(share) / 1_000_000;
            least = least.min(i128::from(sum) - owed(*from));
            if view.vcpu == Some(v) {
                sum += to - from;
            }
            let over = i128::from(sum) - owed(*to) - least;
            assert!(over <= i128::from(rest), "an I/O VCPU used {over} more than its share");
        }
    }
}
