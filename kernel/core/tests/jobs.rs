//! Periodic jobs: releases in phase, responses, misses, and releases passed over.

use crate::support::lab::{self, lab};
use crate::support::*;
use diapason_core::Id;

/// Main is periodic: first release at 1000, period 100, deadline 60; its first job has begun.
fn periodic(experiment: impl FnOnce(&mut Sys<'_>, ThreadId)) {
    lab(|sys| {
        let me = sys.running();
        sys.blocks(Call::JobsStart, &[1_000, 100, 60]);
        assert_eq!(sys.host.decision.alarm, Nanos(1_000));
        sys.until(1_000);
        assert_eq!(sys.result(me), Some(Ok(0)));
        experiment(sys, me);
    });
}

/// Done, misses, skipped, longest response.
fn table(sys: &Sys<'_>, thread: ThreadId) -> (u64, u64, u64, u64) {
    let jobs = sys.host.kernel.jobs_at(thread, sys.host.now);
    (jobs.done, jobs.misses, jobs.skipped, jobs.response_max.0)
}

#[test]
fn jobs_are_released_in_phase_however_long_they_take() {
    periodic(|sys, me| {
        for (i, work) in [10, 60, 1, 0].into_iter().enumerate() {
            sys.until(1_000 + 100 * i as u64 + work);
            sys.blocks(Call::JobWait, &[]);
            assert_eq!(sys.host.decision.alarm, Nanos(1_100 + 100 * i as u64));
            sys.until(1_100 + 100 * i as u64);
            assert_eq!(sys.result(me), Some(Ok(0)));
        }
        assert_eq!(table(sys, me), (4, 0, 0, 60));
    });
}

#[test]
fn a_job_after_its_deadline_is_a_miss_and_the_next_is_not_delayed() {
    periodic(|sys, me| {
        sys.until(1_061);
        assert_eq!(table(sys, me), (0, 1, 0, 61), "already missed while it runs");
        sys.blocks(Call::JobWait, &[]);
        assert_eq!(table(sys, me), (1, 1, 0, 61), "and counted once");
        sys.until(1_100);
        sys.until(1_150);
        sys.blocks(Call::JobWait, &[]);
        assert_eq!(table(sys, me), (2, 1, 0, 61));
    });
}

#[test]
fn a_job_that_overruns_its_period_starts_the_next_at_once() {
    periodic(|sys, me| {
        sys.until(1_199);
        assert_eq!(sys.ok(Call::JobWait, &[]), 0, "released at 1100, not entirely passed");
        assert_eq!(table(sys, me), (1, 2, 0, 199), "that one is late already too");
        sys.until(1_205);
        assert_eq!(sys.ok(Call::JobWait, &[]), 0);
        assert_eq!(table(sys, me), (2, 2, 0, 199));
    });
}

#[test]
fn releases_that_passed_entirely_are_skipped_and_missed() {
    periodic(|sys, me| {
        sys.until(1_250);
        assert_eq!(sys.ok(Call::JobWait, &[]), 1);
        assert_eq!(table(sys, me), (1, 2, 1, 250));
        sys.until(1_260);
        sys.blocks(Call::JobWait, &[]);
        assert_eq!(sys.host.decision.alarm, Nanos(1_300));
        assert_eq!(table(sys, me), (2, 2, 1, 250));
    });
    periodic(|sys, me| {
        sys.until(1_000 + 100 * 1_000);
        assert_eq!(sys.ok(Call::JobWait, &[]), 999);
        assert_eq!(table(sys, me), (1, 1_000, 999, 100_000));
    });
}

#[test]
fn a_first_release_in_the_past_is_now() {
    lab(|sys| {
        sys.until(500);
        assert_eq!(sys.ok(Call::JobsStart, &[500, 100, 60]), 0);
        assert_eq!(sys.ok(Call::JobsStart, &[1, 100, 60]), 0);
        assert_eq!(sys.ok(Call::JobWait, &[]), 3);
    });
}

#[test]
fn a_sleep_within_a_job_is_part_of_it() {
    periodic(|sys, me| {
        sys.blocks(Call::SleepUntil, &[1_070]);
        sys.until(1_065);
        assert_eq!(table(sys, me), (0, 1, 0, 65));
        sys.until(1_080);
        sys.blocks(Call::JobWait, &[]);
        assert_eq!(table(sys, me), (1, 1, 0, 80));
    });
}

#[test]
fn waiting_for_the_release_is_no_miss() {
    periodic(|sys, me| {
        sys.blocks(Call::JobWait, &[]);
        sys.host.now = Nanos(1_099);
        assert_eq!(table(sys, me), (1, 0, 0, 0));
    });
}

#[test]
fn a_release_beyond_the_end_of_time_never_comes() {
    lab(|sys| {
        sys.blocks(Call::JobsStart, &[u64::MAX, 100, 60]);
        assert_eq!(sys.host.decision.alarm, Nanos::FOREVER);
    });
}

#[test]
fn impossible_periods_and_jobs_never_started_are_misuse() {
    for period in [0, u64::MAX] {
        lab(|sys| sys.misuses(FaultCause::BadArgument, Call::JobsStart, &[10, period, 5]));
    }
    lab(|sys| sys.misuses(FaultCause::BadArgument, Call::JobWait, &[]));
}

#[test]
fn a_restarted_process_is_not_periodic_until_it_says_so() {
    let plan = lab::plan().process("child", 30).supervised_by(1);
    lab::with(&plan, |sys| {
        sys.park();
        sys.until(10);
        assert_eq!(sys.ok(Call::JobsStart, &[1, 100, 100]), 0);
        sys.crash(FaultCause::Read, 0);
        lab::summon(sys);
        sys.ok(Call::ProcCreate, &[key("child")]);
        lab::dismiss(sys);
        let child = sys.running();
        assert_eq!(sys.running_process(), 2);
        sys.misuses(FaultCause::BadArgument, Call::JobWait, &[]);
        assert_eq!(sys.host.kernel.processes[Id::new(2)].faults, 2);
        assert_eq!(sys.state(child), State::Free);
    });
}
