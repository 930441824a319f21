//! The cost of mutexes to a VCPU against the bound of the analysis: each of its jobs helps for at
//! most `extra_demand`, and with that in its budget it is done within its period.
//!
//! `DIAPASON_SETS=100000 cargo test --release -p diapason-core --test all blocking::` draws more.

use crate::support::script::{Actor, Op, Script, Virtual};
use crate::support::stage::{Stage, play_with};
use crate::support::{FOREVER, Nanos};
use diapason_analysis::server::inherit::{Budgets, Section, extra_demand};
use diapason_analysis::server::{MainVcpu, Queue, SharedCore, admit};
use diapason_random::Random;

/// One periodic thread on each VCPU, with sections.
struct Drawn {
    system: SharedCore,
    sections: Vec<Section>,
    /// The work of each job besides sections, before each of them and at the end.
    between: Vec<u64>,
    /// True for each VCPU whose budget holds all that its jobs need.
    conforms: Vec<bool>,
    extra: Vec<u64>,
}

const MUTEXES: usize = 2;

fn draw(r: &mut Random) -> Option<Drawn> {
    let count = 2 + r.below(3) as usize;
    let by_deadline = r.one_in(3);
    let queue = if by_deadline { Queue::Dp(0) } else { Queue::Fp };
    let mut sections: Vec<Section> = Vec::new();
    for vcpu in 0..count {
        for _ in 0..1 + r.below(2) {
            let (length, mutex) =
                (Nanos(1_000 + r.below(20_000)), r.below(MUTEXES as u64) as usize);
            let section = Section { vcpu, mutex, length, times: 1, inside: None };
            let outer = sections.len();
            sections.push(section);
            if mutex + 1 < MUTEXES && r.one_in(3) {
                let (mutex, length) = (mutex + 1, Nanos(1 + r.below(length.0)));
                sections.push(Section { mutex, length, inside: Some(outer), ..section });
            }
        }
    }
    let between: Vec<u64> = (0..count).map(|_| 1 + r.below(6_000)).collect();
    let period = |r: &mut Random| Nanos(60_000 + r.below(240_000));
    let main =
        |r: &mut Random| MainVcpu { budget: Nanos(1_000), period: period(r), chunks: 8, queue };
    let mut mains: Vec<MainVcpu> = (0..count).map(|_| main(r)).collect();
    mains.sort_by_key(|main| main.period);
    let mut system = SharedCore::new(mains, Vec::new());
    let budgets = if by_deadline || r.one_in(2) { Budgets::Last } else { Budgets::MayEnd };
    let mut drawn = Drawn {
        system: system.clone(),
        sections,
        between,
        conforms: vec![true; count],
        extra: vec![],
    };
    for vcpu in 0..count {
        let window = system.mains[vcpu].period;
        let extra = extra_demand(&system, &drawn.sections, budgets, window).expect("an order");
        drawn.extra.push(extra[vcpu].0);
        let need = drawn.work(vcpu) + extra[vcpu].0;
        drawn.conforms[vcpu] = budgets == Budgets::Last || r.one_in(2);
        let budget = if drawn.conforms[vcpu] { need } else { 1_000 + r.below(need) };
        drawn.system.mains[vcpu].budget = Nanos(budget.max(1_000));
    }
    system.mains.clone_from(&drawn.system.mains);
    admit(&system).is_ok().then_some(drawn)
}

impl Drawn {
    fn outer(&self, vcpu: usize) -> impl Iterator<Item = (usize, &Section)> {
        let all = self.sections.iter().enumerate();
        all.filter(move |(_, s)| s.vcpu == vcpu && s.inside.is_none())
    }

    /// Returns the own work of a VCPU's job.
    fn work(&self, vcpu: usize) -> u64 {
        let gaps = self.outer(vcpu).count() as u64 + 1;
        self.outer(vcpu).map(|(_, s)| s.length.0).sum::<u64>() + gaps * self.between[vcpu]
    }

    /// The jobs of a VCPU from its phase on, with hints or without.
    fn ops(&self, vcpu: usize, phase: u64, jobs: u64, hints: bool) -> Vec<Op> {
        let mut ops = Vec::new();
        let first = self.outer(vcpu).next().map(|(_, s)| s.mutex).filter(|_| hints);
        for job in 0..jobs {
            ops.push(Op::Sleep(phase + job * self.system.mains[vcpu].period.0, first));
            for (at, section) in self.outer(vcpu) {
                ops.extend([Op::Run(self.between[vcpu]), Op::Lock(section.mutex, FOREVER, None)]);
                let mut rest = section.length.0;
                if let Some(inner) = self.sections.get(at + 1).filter(|s| s.inside == Some(at)) {
                    rest -= inner.length.0;
                    ops.extend([Op::Run(rest / 2), Op::Lock(inner.mutex, FOREVER, None)]);
                    ops.extend([Op::Run(inner.length.0), Op::Unlock(inner.mutex)]);
                    rest -= rest / 2;
                }
                ops.extend([Op::Run(rest), Op::Unlock(section.mutex)]);
            }
            ops.push(Op::Run(self.between[vcpu]));
        }
        ops.push(Op::Sleep(FOREVER - 1, None));
        ops
    }

    fn script(&self, phases: &[u64], jobs: u64, hints: bool) -> Script {
        let locks = (0..MUTEXES).map(|m| (format!("m{m}"), None)).collect();
        let mut script = Script { locks, ..Script::default() };
        for (at, main) in self.system.mains.iter().enumerate() {
            script.queues = u8::from(main.queue != Queue::Fp);
            script.vcpus.push(Virtual {
                name: format!("v{at}"),
                main: Some((main.budget.0, main.period.0)),
                io: (0, 0, 0),
                queue: 0,
                background: false,
                list: 8,
            });
            let (name, ops) = (format!("a{at}"), self.ops(at, phases[at], jobs, hints));
            script.actors.push(Actor { name, priority: 1, on: Some(at), ops });
        }
        script
    }

    /// Each job of a VCPU that conforms is done in its period, and has helped no more than assumed;
    /// returns the most that one has.
    fn check(&self, stage: &Stage<'_>, vcpu: usize, phase: u64, end: u64) -> u64 {
        let period = self.system.mains[vcpu].period.0;
        let (mut from, mut most) = (phase, 0);
        while from + period <= end {
            let within = |a: u64, b: u64| b.min(from + period).saturating_sub(a.max(from));
            let (mut done, mut helped) = (0, 0);
            for (a, b, view) in stage.slices(end) {
                done += if view.runs == Some(vcpu) { within(a, b) } else { 0 };
                let others = view.place == Some(vcpu) && view.runs != Some(vcpu);
                helped += if others { within(a, b) } else { 0 };
            }
            let extra = self.extra[vcpu];
            assert!(helped <= extra, "v{vcpu} from {from} helped {helped}, at most {extra}");
            assert_eq!(done, self.work(vcpu), "v{vcpu} is done in the period from {from}");
            most = most.max(helped);
            from += period;
        }
        most
    }
}

#[test]
fn a_job_helps_no_more_than_the_analysis_says() {
    let sets = std::env::var("DIAPASON_SETS").map_or(400, |text| text.parse().expect("a number"));
    let (mut tried, mut helped, mut reached) = (0u64, 0u64, 0u64);
    for seed in 0..sets {
        let mut r = Random::new(seed);
        let Some(drawn) = draw(&mut r) else { continue };
        tried += 1;
        let longest = drawn.system.mains.iter().map(|m| m.period.0).max().expect("a VCPU");
        let phases: Vec<u64> =
            drawn.system.mains.iter().map(|m| r.below(m.period.0) * r.below(2)).collect();
        let end = 4 * longest;
        let script = drawn.script(&phases, end / 60_000 + 2, r.one_in(2));
        play_with(
            &script,
            end,
            (0, seed),
            |_| {},
            |stage| {
                for vcpu in (0..phases.len()).filter(|v| drawn.conforms[*v]) {
                    let most = drawn.check(stage, vcpu, phases[vcpu], end);
                    helped += u64::from(most > 0);
                    reached += u64::from(most > 0 && most * 10 >= drawn.extra[vcpu] * 9);
                }
            },
        );
    }
    println!(
        "{tried} systems admitted, {helped} VCPUs helped, {reached} nearly as much as assumed"
    );
    assert!(helped > tried / 10 && tried > sets / 5, "{tried}, {helped}");
}
