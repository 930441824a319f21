//! Checks whether the assumptions of the analysis hold while the system runs.
//!
//! A promise of `plan` rests on assumptions: how long the kernel keeps everybody waiting, how often
//! devices interrupt, that budgets end in time. The kernel counts what happens to each, and what
//! contradicts one is an alarm with its name, by which `docs/vcpus.md` explains it. Objects that a
//! process makes or changes at run time are not in the plan: of those, only the kernel's own
//! promises are expected.

mod unpaid;
mod vcpus;

use super::{
    AdapterPromise, CanMessagePromise, ChainPromise, DeviceRow, HeardPromise, JobPromise, Outcome,
    PipePromise, RaisedAlarm, SocketPromise, StatePromise, ThreadRow, UsbPromises,
};
use crate::duration::human;
use crate::names::{self, Names};
use crate::plan::Plan;
use diapason_abi::record::KernelCause;
use diapason_costs::limits::TRAP_FRAME;
use diapason_plan::{Assumed, AssumedVcpu};
use diapason_system::works::is_of_server;
use diapason_system::{PipeDirection, System};
use vcpus::Check;

/// The assumptions about a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assumptions {
    /// The plan's assumptions about the kernel, VCPUs and devices.
    of: Assumed,
    /// One promise for each pipe with a bill.
    pub pipes: Vec<PipePromise>,
    /// One promise for each chain with a bill.
    pub chains: Vec<ChainPromise>,
    /// One promise for each VCPU with a `job`.
    pub jobs: Vec<JobPromise>,
    /// The names of the pipes that programs may open, by place.
    pub places: Vec<String>,
    /// Promises about devices, links and cameras on USB.
    pub usb: UsbPromises,
    /// One promise for each socket, and one for each adapter.
    pub sockets: Vec<SocketPromise>,
    pub adapters: Vec<AdapterPromise>,
    /// One promise for each CAN message of a process that a controller sends.
    pub messages: Vec<CanMessagePromise>,
    /// One promise for each CAN message of another node that a process reads from a controller.
    pub heard: Vec<HeardPromise>,
    /// One promise for each state message.
    pub states: Vec<StatePromise>,
    /// The works of programs that the description times.
    pub works: Vec<String>,
    /// Allowed extra delay of messages from devices outside the machine.
    pub slack_ns: u64,
}

/// Returns the works that programs must do. On a host with several cores every core has the works
/// of all, so none says that a work is never done.
fn works_of_programs(system: &System) -> Vec<String> {
    let all = system.works.iter().map(|work| &work.name).filter(|_| system.cores == 1);
    all.filter(|name| !is_of_server(name)).cloned().collect()
}

impl Assumptions {
    /// Returns the assumptions of a plan.
    #[must_use]
    pub fn of(plan: &Plan) -> Assumptions {
        Assumptions {
            of: plan.assumed(),
            pipes: PipePromise::of(plan.system(), plan),
            chains: ChainPromise::of(plan.system(), plan),
            jobs: JobPromise::of(plan),
            places: plan.system().tpipes.iter().map(|place| place.name.clone()).collect(),
            usb: UsbPromises::of(plan.system()),
            sockets: SocketPromise::of(plan.system(), plan),
            adapters: AdapterPromise::of(plan.system(), plan),
            messages: CanMessagePromise::of(plan.system(), plan),
            heard: HeardPromise::of(plan.system(), plan),
            states: StatePromise::of(plan.system()),
            works: works_of_programs(plan.system()),
            slack_ns: 0,
        }
    }

    /// Returns whether there are none about anything but the kernel, VCPUs and devices.
    #[must_use]
    pub fn are_only_of_the_kernel(&self) -> bool {
        let Assumptions { of: _, pipes, chains, jobs, places, usb, .. } = self;
        let Assumptions { sockets, adapters, messages, heard, states, slack_ns: _, .. } = self;
        pipes.is_empty()
            && chains.is_empty()
            && jobs.is_empty()
            && places.is_empty()
            && usb.is_empty()
            && sockets.is_empty()
            && adapters.is_empty()
            && messages.is_empty()
            && heard.is_empty()
            && states.is_empty()
    }

    /// Returns the assumptions that a run contradicts.
    #[must_use]
    pub fn against(&self, outcome: &Outcome, names: &Names) -> Vec<RaisedAlarm> {
        // A change touches the responses of all.
        let terms = || outcome.vcpus.iter().filter_map(|row| row.terms.as_ref());
        let as_planned = terms().all(|terms| terms.changes == 0 && terms.maker.is_none());
        let of_vcpus = outcome.vcpus.iter().flat_map(|row| {
            Check { assumptions: self, row, name: row.name(names) }.alarms(as_planned)
        });
        let of_devices = outcome.devices.iter().filter_map(|row| self.distance(row, names));
        let of_jobs = outcome.threads.iter().filter_map(|row| self.job(row, names));
        let of_jobs = of_jobs.chain(self.jobs.iter().flat_map(|job| job.alarms(outcome, names)));
        let kernel = self.longest_path(outcome).into_iter().chain(self.top_halves(outcome));
        let slack = self.slack_ns;
        let of_pipes = self.pipes.iter().flat_map(|pipe| pipe.alarms(outcome, names, slack));
        let of_chains = self.chains.iter().flat_map(|chain| chain.alarms(outcome, names, slack));
        let unpaid = self.unpaid(outcome, names);
        let opened = [PipeDirection::FromDevice, PipeDirection::ToDevice]
            .into_iter()
            .flat_map(|it| outcome.opened(it));
        let of_opened = opened.flat_map(|row| row.alarms(outcome, names, slack));
        let of_usb = self.usb.alarms(outcome, names);
        let of_adapters = self.adapters.iter().flat_map(|it| it.alarms(outcome, names));
        let of_sockets = self.sockets.iter().flat_map(|it| it.alarms(outcome, names, slack));
        let of_states = self.states.iter().flat_map(|it| it.alarms(outcome, names));
        let of_messages = self.messages.iter().flat_map(|it| it.alarms(outcome, names));
        let of_heard = self.heard.iter().flat_map(|it| it.alarms(outcome, names));
        let of_jobs = of_jobs.chain(of_states).chain(of_messages).chain(of_heard);
        let of_jobs = of_jobs.chain(of_usb).chain(of_adapters).chain(of_sockets);
        let rest = of_jobs.chain(of_pipes).chain(of_chains).chain(of_opened).chain(unpaid);
        kernel.chain(of_vcpus).chain(of_devices).chain(rest).collect()
    }

    /// Item 1: of a watched run. Without VCPUs it promises nothing to anybody.
    fn longest_path(&self, outcome: &Outcome) -> Option<RaisedAlarm> {
        let (observed, assumed) = (outcome.longest_path?.instructions, self.of.path.0);
        let text = format!(
            "a kernel path had {observed} instructions; the analysis assumes at most {assumed}"
        );
        let alarm = RaisedAlarm::above("longest-path", "kernel", [observed, assumed], text);
        alarm.filter(|_| !outcome.vcpus.is_empty())
    }

    /// Item 2, the cost: of a watched run.
    fn top_halves(&self, outcome: &Outcome) -> Option<RaisedAlarm> {
        if outcome.vcpus.is_empty() {
            return None;
        }
        let row = outcome.kernel.iter().find(|row| row.cause == KernelCause::Interrupt)?;
        let [staying, leaving] = [row.longest_staying, row.longest_leaving]
            .map(|rust| if rust > 0 { rust.saturating_add(TRAP_FRAME) } else { 0 });
        let cases = [(staying, "", 0), (leaving, " with the switch that follows it", 1)];
        cases.into_iter().find_map(|(observed, what, case)| {
            let assumed = self.of.top_half[case];
            let text = format!(
                "a top half{what} had {observed} instructions; the analysis assumes at most \
                 {assumed}"
            );
            RaisedAlarm::above("top-half", "kernel", [observed, assumed], text)
        })
    }

    /// Item 4. A job used more than what is described of its VCPU.
    fn job(&self, row: &ThreadRow, names: &Names) -> Option<RaisedAlarm> {
        let cost = row.cost?;
        let vcpu = self.of.vcpus.get(usize::try_from(cost.vcpu).ok()?)?;
        let AssumedVcpu::Main { job: Some(assumed), .. } = *vcpu else { return None };
        let thread = names::thread(row.name, row.slot);
        let of = format!("{thread} of {}", names.process(row.process));
        let text = format!(
            "a job of {of} used {}; `job` of VCPU {} is {}",
            human(cost.most_ns),
            names.vcpu(cost.vcpu, None),
            human(assumed)
        );
        RaisedAlarm::above("job-cost", &of, [cost.most_ns, assumed], text)
    }

    /// Item 2. An interrupt may wait for the kernel, and the next one perhaps does not.
    fn distance(&self, row: &DeviceRow, names: &Names) -> Option<RaisedAlarm> {
        let assumed = (*self.of.intervals.get(usize::try_from(row.device).ok()?)?)?;
        let observed = row.distance_min_ns?;
        let name = names.device(row.device);
        (observed.saturating_add(self.of.late.0) < assumed).then(|| RaisedAlarm {
            name: "interrupt-distance",
            observed,
            assumed,
            text: format!(
                "device {name} interrupted twice within {}; its `interval` is {}",
                human(observed),
                human(assumed)
            ),
            of: name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{JobCost, KernelRow, LongestPath, VcpuRow, VcpuTerms, sample};
    use super::*;
    use diapason_costs::KERNEL;
    use diapason_system::ServerSpec;

    fn assumptions() -> Assumptions {
        paying([false; 2])
    }

    /// Returns the assumptions if VCPUs pay for these processes.
    fn paying(paid: [bool; 2]) -> Assumptions {
        let mut assumptions = sample::assumptions();
        assumptions.of.paid = paid.into();
        assumptions
    }

    /// Name, observed and assumed of what the sample's run contradicts after a change.
    fn alarms(change: impl FnOnce(&mut Outcome)) -> Vec<(&'static str, u64, u64)> {
        let mut outcome = sample::outcome();
        change(&mut outcome);
        let found = assumptions().against(&outcome, &sample::names());
        found.iter().map(|alarm| (alarm.name, alarm.observed, alarm.assumed)).collect()
    }

    /// At `most` nothing rings, and beyond it only this.
    fn rings(name: &'static str, most: u64, set: impl Fn(&mut Outcome, u64)) {
        assert_eq!(alarms(|outcome| set(outcome, most)), []);
        assert_eq!(alarms(|outcome| set(outcome, most + 1)), [(name, most + 1, most)]);
    }

    fn terms(outcome: &mut Outcome, row: usize) -> &mut VcpuTerms {
        outcome.vcpus[row].terms.as_mut().unwrap()
    }

    #[test]
    fn a_budget_may_be_exceeded_by_a_kernel_path() {
        let (_, path) = assumptions().of.path;
        for row in 0..3 {
            rings("budget-overrun", path, |o, ns| o.vcpus[row].overrun_max_ns = ns);
        }
    }

    #[test]
    fn time_that_nobody_paid_names_the_process_that_used_it() {
        let outcome = sample::outcome();
        for thief in [0, 1] {
            let name = sample::names().process(thief);
            let mut assumptions = paying([true; 2]);
            assumptions.of.seats = vec![Some(0), Some(1)];
            let mut outcome = outcome.clone();
            outcome.threads.iter_mut().for_each(|row| row.cpu_ns = 0);
            let row = outcome.threads.iter_mut().find(|row| row.process == thief);
            row.unwrap().cpu_ns = u64::MAX / 2;
            let alarm = assumptions.unpaid(&outcome, &sample::names()).unwrap();
            assert_eq!(alarm.of, name);
            let end = format!("most of it is of {name}");
            assert!(alarm.text.ends_with(&end), "{}", alarm.text);
        }
    }

    #[test]
    fn vcpus_pay_for_all_but_switches() {
        let mut outcome = sample::outcome();
        let end = outcome.end.as_mut().unwrap();
        (end.retired_ns, end.levied_ns) = (7, 5);
        let paid: u64 = outcome.vcpus.iter().map(VcpuRow::cpu_ns).sum::<u64>() + 7 + 5;
        let entries = outcome.end.unwrap().entries;
        let mut used = |who: [bool; 2], ns| {
            outcome.threads.iter_mut().for_each(|row| row.cpu_ns = 0);
            outcome.threads[0].cpu_ns = ns;
            // Another process uses the idle time.
            outcome.threads[2].cpu_ns = if who[1] { 0 } else { u64::MAX / 2 };
            let alarm = paying(who).unpaid(&outcome, &sample::names());
            alarm.map(|alarm| (alarm.observed, alarm.assumed))
        };
        let most = entries * paying([true; 2]).of.switch_grace.0;
        for who in [[true, true], [true, false]] {
            assert_eq!(used(who, paid + most), None);
            assert_eq!(used(who, paid + most + 1), Some((most + 1, most)));
        }
        assert_eq!(used([false; 2], u64::MAX / 2), None);
    }

    /// A thread without a VCPU that waits for a mutex lets its owner run at nobody's cost.
    #[test]
    fn a_mutex_shared_with_a_process_without_a_vcpu_leaves_the_payer_open() {
        let paid = |kind: &str, uses: &str| {
            let text = format!(
                "[system]\nname = \"s\"\n[[vcpu]]\nname = \"v\"\nbudget = \"1ms\"\n\
                 period = \"10ms\"\n[[semaphore]]\nname = \"m\"\nkind = \"{kind}\"\n\
                 [[process]]\nname = \"a\"\npriority = 2\nvcpu = \"v\"\nuses = [\"m\"]\n\
                 [[process]]\nname = \"b\"\npriority = 1\nuses = {uses}\n"
            );
            let system = diapason_system::parse("s", &text).unwrap_or_else(|bad| panic!("{bad}"));
            Plan::of(&system).assumed().paid
        };
        assert_eq!(paid("mutex", "[]"), [true, false]);
        assert_eq!(paid("counting", "[\"m\"]"), [true, false]);
        assert_eq!(paid("mutex", "[\"m\"]"), [false, false]);
    }

    #[test]
    fn kernel_paths_have_their_length() {
        let path = |instructions| Some(LongestPath { instructions, cause: 1 });
        let (most, _) = assumptions().of.path;
        rings("longest-path", most, |o, count| o.longest_path = path(count));
        let without_vcpus = alarms(|o| {
            o.vcpus.clear();
            o.longest_path = path(9 * most);
        });
        assert_eq!(without_vcpus, []);
    }

    #[test]
    fn top_halves_have_their_length_and_that_of_a_switch() {
        let watched = |longest: [u64; 2]| {
            let [longest_staying, longest_leaving] = longest;
            let cause = KernelCause::Interrupt;
            let (entries, instructions) = (1, 1);
            vec![KernelRow { cause, entries, instructions, longest_staying, longest_leaving }]
        };
        let most = KERNEL.top_half;
        rings("top-half", most, |o, count| o.kernel = watched([count - TRAP_FRAME, 0]));
        let most = most + KERNEL.switch_among(std::iter::empty());
        rings("top-half", most, |o, count| o.kernel = watched([0, count - TRAP_FRAME]));
        let without_vcpus = alarms(|o| {
            (o.vcpus, o.kernel) = (Vec::new(), watched([9_000, 9_000]));
            o.threads.truncate(2);
        });
        assert_eq!(without_vcpus, []);
    }

    #[test]
    fn jobs_use_what_is_described() {
        let cost = |vcpu, most_ns| Some(JobCost { vcpu, most_ns });
        rings("job-cost", 900_000, |o, ns| o.threads[1].cost = cost(0, ns));
        // No job is described for an I/O VCPU, one made at run time, and none. The described VCPU
        // has no job then.
        for vcpu in [1, 2, u64::MAX] {
            let found = alarms(|o| o.threads[1].cost = cost(vcpu, u64::MAX));
            assert_eq!(found, [("job-unmeasured", 0, 1)]);
        }
    }

    #[test]
    fn interrupts_keep_their_distance_but_for_their_wait() {
        let distance = |ns| alarms(|o| o.devices[0].distance_min_ns = ns);
        assert_eq!(distance(None), []);
        let least = 1_000_000 - assumptions().of.late.0;
        assert_eq!(distance(Some(least)), []);
        assert_eq!(distance(Some(least - 1)), [("interrupt-distance", least - 1, 1_000_000)]);
        // Nothing is assumed about a device without an interval.
        assert_eq!(
            alarms(|o| (o.devices[0].device, o.devices[0].distance_min_ns) = (1, Some(1))),
            []
        );
    }

    #[test]
    fn lists_have_room_for_all_wake_ups() {
        // The start of its program, and a job in each period.
        rings("wake-ups", 2, |o, wakes| o.vcpus[0].wakes_max = wakes);
        // An I/O VCPU in 10 ms and a kernel path, one each millisecond.
        let often = |assumptions: &Assumptions, wakes| {
            let mut outcome = sample::outcome();
            outcome.vcpus[1].wakes_max = wakes;
            let found = assumptions.against(&outcome, &sample::names());
            found.iter().map(|alarm| (alarm.name, alarm.observed, alarm.assumed)).collect()
        };
        let found: Vec<(&str, u64, u64)> = often(&assumptions(), 12);
        assert_eq!(found, [], "it pays for its wake-ups itself, and is in no bill");
        let relied = |mut assumptions: Assumptions| {
            if let AssumedVcpu::Io { relied, .. } = &mut assumptions.of.vcpus[1] {
                *relied = true;
            }
            assumptions
        };
        let in_a_bill = relied(assumptions());
        assert_eq!(often(&in_a_bill, 11), []);
        assert_eq!(often(&in_a_bill, 12), [("wake-ups", 12, 11)]);
        // The same with two reasons.
        let mut system = sample::system();
        if let ServerSpec::Io { wakes, .. } = &mut system.vcpus[1].server {
            *wakes = 2;
        }
        let twice = relied(Assumptions::of(&Plan::of(&system)));
        assert_eq!(often(&twice, 22), []);
        assert_eq!(often(&twice, 23), [("wake-ups", 23, 22)]);
        // Only measurements are known of a VCPU that was made at run time.
        assert_eq!(alarms(|o| o.vcpus[2].wakes_max = 1_000), []);
        // A job in each period needs no list.
        assert_eq!(alarms(|o| o.vcpus[0].merges = 9), []);
        let mut outcome = sample::outcome();
        outcome.vcpus[0].merges = 1;
        let found = relying(8).against(&outcome, &sample::names());
        assert_eq!(found[0].name, "replenishment-list-full");
        assert_eq!(alarms(|o| o.vcpus[2].merges = 1), [], "nothing is promised of a private one");
    }

    /// Returns the assumptions of a bill that relies on a list of so many places.
    fn relying(places: u64) -> Assumptions {
        let mut assumptions = assumptions();
        let AssumedVcpu::Main { relied, wakes, list, .. } = &mut assumptions.of.vcpus[0] else {
            panic!("main");
        };
        (*relied, *wakes, *list) = (true, Some(places - 1), places);
        assumptions
    }

    /// A bill that counts full lists is not contradicted by one.
    #[test]
    fn lists_may_be_full_where_nothing_relies_on_them() {
        let mut outcome = sample::outcome();
        (outcome.vcpus[0].merges, outcome.vcpus[0].wakes_max) = (9, 100);
        let mut assumptions = relying(8);
        assert_eq!(assumptions.against(&outcome, &sample::names()).len(), 1);
        let AssumedVcpu::Main { relied, wakes, .. } = &mut assumptions.of.vcpus[0] else {
            panic!("main");
        };
        (*relied, *wakes) = (false, None);
        let found = assumptions.against(&outcome, &sample::names());
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_full_list_says_how_long_it_should_be() {
        let text = |wakes, places| {
            let mut outcome = sample::outcome();
            (outcome.vcpus[0].merges, outcome.vcpus[0].wakes_max) = (1, wakes);
            relying(places).against(&outcome, &sample::names())[0].to_string()
        };
        assert!(text(7, 4).ends_with("it needs `replenishments = 8` at least"), "{}", text(7, 4));
        let long = text(8, 8);
        assert!(long.contains("no list is that long: give it a shorter period"), "{long}");
        let waits = text(3, 8);
        assert!(waits.ends_with("it had to wait for budget: give it more"), "{waits}");
    }

    #[test]
    fn budgets_are_used_by_their_response_time() {
        let plan = Plan::of(&sample::system());
        let response = plan.response(0).unwrap().response.0;
        assert!(response < 2_000_000);
        let as_planned = |o: &mut Outcome, ns| {
            o.vcpus.truncate(2);
            o.vcpus[0].late_max_ns = ns;
        };
        rings("late-supply", response, as_planned);
        // Once something was made or changed, the kernel promised a period.
        rings("late-supply", 10_000_000, |o, ns| o.vcpus[0].late_max_ns = ns);
        rings("late-supply", 20_000_000, |o, ns| o.vcpus[2].late_max_ns = ns);
        rings("late-supply", 30_000_000, |o, ns| {
            terms(o, 0).period_max_ns = 30_000_000;
            o.vcpus[0].late_max_ns = ns;
        });
        let grant = 10_000_000 + assumptions().of.path.1;
        rings("late-supply", grant, |o, ns| o.vcpus[1].late_max_ns = ns);
    }

    #[test]
    fn io_vcpus_wait_for_a_grant_as_long_as_their_share_says() {
        // (250 us + B)·(1/2.5 % - 1), and 1 ns for each of 11 wake-ups.
        let grant = 250_000 + assumptions().of.path.1;
        rings("lock-out", grant * 39 + 11, |o, ns| terms(o, 1).lockout_max_ns = ns);
    }

    #[test]
    fn a_damaged_line_rings_nothing_and_breaks_nothing() {
        let damaged = alarms(|o| {
            for row in &mut o.vcpus {
                (row.terms, row.late_max_ns) = (None, u64::MAX);
            }
            o.vcpus[0].vcpu = u64::MAX;
            o.devices[0].device = u64::MAX;
            o.devices[0].distance_min_ns = Some(0);
        });
        assert_eq!(damaged, []);
    }
}
