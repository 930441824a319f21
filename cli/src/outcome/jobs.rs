//! Promises about jobs: that one is done within the bound of the plan, and that somebody does one.

use super::coverage::EMPTY;
use super::{OpenJob, Outcome, RaisedAlarm, ThreadRow};
use crate::duration::human;
use crate::names::{self, Names};
use crate::plan::Plan;
use diapason_system::ServerSpec;

/// A VCPU of which the description says how long a job is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobPromise {
    /// The name of the VCPU.
    pub name: String,
    /// The VCPU's place in the description.
    pub vcpu: u64,
    pub period_ns: u64,
    /// The processes that may have threads on the VCPU.
    users: Vec<u64>,
    /// The time within which a job is done, if the plan has a bound.
    done_ns: Option<u64>,
}

impl JobPromise {
    /// Returns the promise of every VCPU with a `job`.
    #[must_use]
    pub fn of(plan: &Plan) -> Vec<JobPromise> {
        let system = plan.system();
        let promise = |(place, number): (usize, &u16)| {
            let declared = &system.vcpus[usize::from(*number)];
            let ServerSpec::Main { job_ns: Some(_), period_ns, .. } = declared.server else {
                return None;
            };
            let all = 0..system.processes.len();
            let users = all.filter(|process| system.may_be_on(*process, *number));
            Some(JobPromise {
                name: declared.name.clone(),
                vcpu: (*number).into(),
                period_ns,
                users: users.map(|process| process as u64).collect(),
                done_ns: plan.job(place).map(|job| job.done.0),
            })
        };
        plan.core.mains.iter().enumerate().filter_map(promise).collect()
    }

    /// Returns the threads that did jobs on the VCPU. Jobs that cost no budget name no VCPU.
    fn rows<'a>(&'a self, outcome: &'a Outcome) -> impl Iterator<Item = &'a ThreadRow> {
        outcome.threads.iter().filter(|row| match row.cost {
            Some(cost) => cost.vcpu == self.vcpu,
            None => self.users.contains(&row.process),
        })
    }

    pub(super) fn is_measured(&self, outcome: &Outcome) -> bool {
        self.rows(outcome).any(|row| row.jobs > 0)
    }

    /// Returns the alarms of a run.
    pub(super) fn alarms(&self, outcome: &Outcome, names: &Names) -> Vec<RaisedAlarm> {
        let late = self.late(outcome, names).or_else(|| self.endless(outcome, names));
        late.into_iter().chain(self.missing(outcome)).collect()
    }

    /// Returns an alarm if a job was done later than the plan says.
    fn late(&self, outcome: &Outcome, names: &Names) -> Option<RaisedAlarm> {
        let done = self.done_ns?;
        let latest = self.rows(outcome).max_by_key(|row| row.response_max_ns)?;
        let thread = names::thread(latest.name, latest.slot);
        let of = format!("{thread} of {}", names.process(latest.process));
        let observed = latest.response_max_ns;
        let text = format!(
            "a job of {of} was done {} after its release; the plan of VCPU {} says {}",
            human(observed),
            self.name,
            human(done)
        );
        RaisedAlarm::above("job-late", &of, [observed, done], text)
    }

    /// Returns an alarm if a job had not ended by the end of the run, although the plan says so.
    /// The kernel counts a job when it ends, or when its deadline is over.
    fn endless(&self, outcome: &Outcome, names: &Names) -> Option<RaisedAlarm> {
        let done = self.done_ns?;
        let open = outcome.open_jobs.iter().filter(|job| job.vcpu == self.vcpu);
        let OpenJob { process, slot, name, age_ns, .. } = open.max_by_key(|job| job.age_ns)?;
        let of = format!("{} of {}", names::thread(*name, *slot), names.process(*process));
        let text = format!(
            "a job of {of} had not ended {} after its release; the plan of VCPU {} says {}",
            human(*age_ns),
            self.name,
            human(done)
        );
        RaisedAlarm::above("job-late", &of, [*age_ns, done], text)
    }

    /// Returns an alarm if no job was done in a run that was long enough for one.
    fn missing(&self, outcome: &Outcome) -> Option<RaisedAlarm> {
        let time = outcome.end?.time_ns;
        let enough = EMPTY.0.max(self.period_ns.saturating_mul(2));
        let text = format!(
            "no job on VCPU {} was done in {}: its `job` was never measured; its threads wait for \
             a period, or the VCPU has no `job`",
            self.name,
            human(time)
        );
        let is_missing = time >= enough && !self.is_measured(outcome);
        is_missing.then(|| RaisedAlarm::missing("job-unmeasured", &self.name, text))
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, assumptions};
    use super::*;

    /// Returns the sample with this many jobs done, after so long.
    fn ran(jobs: u64, time_ns: u64) -> Outcome {
        let mut outcome = sample::outcome();
        outcome.threads[1].jobs = jobs;
        if jobs == 0 {
            outcome.threads[1].cost = None;
        }
        outcome.end.as_mut().unwrap().time_ns = time_ns;
        outcome
    }

    /// Returns the alarm of this name that a run raises.
    fn raised(name: &str, outcome: &Outcome) -> Option<RaisedAlarm> {
        let found = assumptions().against(outcome, &sample::names());
        found.into_iter().find(|alarm| alarm.name == name)
    }

    #[test]
    fn a_job_that_nobody_does_is_not_measured() {
        let unmeasured = |outcome: &Outcome| assumptions().unmeasured(outcome, &sample::names());
        assert_eq!(unmeasured(&ran(1, EMPTY.0)), [""; 0]);
        assert_eq!(unmeasured(&ran(0, 1)), ["no job on VCPU control was done"]);
        let alarm = |jobs, time: u64| raised("job-unmeasured", &ran(jobs, time));
        assert_eq!(alarm(1, EMPTY.0), None);
        assert_eq!(alarm(0, EMPTY.0 - 1), None);
        let text = alarm(0, EMPTY.0).unwrap().text;
        assert!(text.starts_with("no job on VCPU control was done in 2.000 s"), "{text}");
        // A job in an earlier life of the host is one.
        let mut outcome = ran(1, EMPTY.0);
        outcome.boot_again();
        assert_eq!(unmeasured(&outcome), [""; 0]);
    }

    #[test]
    fn jobs_of_others_measure_nothing() {
        let mut outcome = ran(0, EMPTY.0);
        let other = outcome.threads.iter_mut().find(|row| row.process == 1).unwrap();
        // It has no VCPU, so its jobs cost no budget.
        (other.jobs, other.cost) = (9, None);
        assert!(raised("job-unmeasured", &outcome).is_some());
        // A job of a process that is on the VCPU counts, even if it cost nothing.
        outcome.threads[0].jobs = 1;
        assert_eq!(raised("job-unmeasured", &outcome), None);
    }

    #[test]
    fn a_job_that_never_ends_is_late() {
        let plan = Plan::of(&sample::system());
        let done = plan.job(0).unwrap().done.0;
        let open = |vcpu, age_ns| {
            let mut outcome = sample::outcome();
            let ThreadRow { process, slot, name, .. } = outcome.threads[1];
            outcome.open_jobs = vec![OpenJob { process, slot, name, vcpu, age_ns }];
            raised("job-late", &outcome)
        };
        let own = assumptions().jobs[0].vcpu;
        assert_eq!(open(own, done), None);
        assert_eq!(open(own + 1, u64::MAX), None, "nothing is promised of other jobs");
        let alarm = open(own, done + 1).unwrap();
        assert_eq!((alarm.observed, alarm.assumed), (done + 1, done));
        assert!(alarm.text.contains("had not ended"), "{}", alarm.text);
    }

    #[test]
    fn a_job_is_done_when_the_plan_says() {
        let plan = Plan::of(&sample::system());
        let done = plan.job(0).unwrap().done.0;
        let late = |response| {
            let mut outcome = sample::outcome();
            outcome.threads[1].response_max_ns = response;
            // Nothing is promised of the jobs of others.
            outcome.threads[2].response_max_ns = u64::MAX;
            raised("job-late", &outcome)
        };
        assert_eq!(late(done), None);
        let alarm = late(done + 1).unwrap();
        assert_eq!((alarm.observed, alarm.assumed), (done + 1, done));
        assert!(alarm.text.starts_with("a job of ctrl of engine was done "), "{}", alarm.text);
    }
}
