//! Events: plain ones, timers, interrupts of level and edge lines; and the alarms behind them.

use crate::support;
use crate::support::lab::{self, lab, summon};
use crate::support::*;
use diapason_abi::archive::{MESSAGES, NONE};

#[test]
fn an_event_is_waited_for_once_and_by_one_thread() {
    lab(|sys| {
        let event = sys.ok(Call::EventCreate, &[]);
        assert_eq!(sys.err(Call::EventWait, &[event, NOW]), WouldBlock);
        sys.spawn(5);
        sys.blocks(Call::EventWait, &[event, 100]);
        assert_eq!(sys.err(Call::EventWait, &[event, FOREVER]), Busy);
        assert_eq!(sys.err(Call::EventWait, &[event, NOW]), Busy);
        let main = sys.thread(0, 0);
        sys.until(100);
        assert_eq!(sys.result(main), Some(Err(TimedOut)));
        assert_eq!(sys.err(Call::EventWait, &[event, 100]), TimedOut);
    });
}

#[test]
fn deletion_wakes_the_waiter() {
    lab(|sys| {
        let event = sys.ok(Call::EventCreate, &[]);
        sys.spawn(5);
        let main = sys.running();
        sys.blocks(Call::EventWait, &[event, 100]);
        sys.yields(Call::EventDelete, &[event]);
        assert_eq!((sys.running(), sys.result(main)), (main, Some(Err(Gone))));
        assert_eq!(sys.host.kernel.next_alarm(), Nanos::FOREVER);
        assert_eq!(sys.err(Call::EventWait, &[event, NOW]), Gone);
        assert_eq!(sys.err(Call::EventDelete, &[event]), Gone);
    });
}

#[test]
fn events_run_out_and_are_reused_under_new_handles() {
    lab(|sys| {
        let first = sys.ok(Call::EventCreate, &[]);
        for _ in 0..3 {
            sys.ok(Call::TimerCreate, &[]);
        }
        assert_eq!(sys.err(Call::EventCreate, &[]), Exhausted);
        assert_eq!(sys.err(Call::TimerCreate, &[]), Exhausted);
        sys.ok(Call::EventDelete, &[first]);
        let again = sys.ok(Call::TimerCreate, &[]);
        assert_eq!(again as u16, first as u16);
        assert_eq!(sys.err(Call::EventWait, &[first, NOW]), Gone);
        assert_eq!(sys.err(Call::TimerStart, &[first, 1, 0]), Gone);
    });
}

#[test]
fn wrong_handles_are_misuse() {
    for call in [Call::EventWait, Call::EventDelete, Call::TimerStart] {
        for wrong in [0, u64::MAX, 0x0005_0000_0001_0000, 0x0004_0000_0001_0000] {
            lab(|sys| sys.misuses(FaultCause::BadHandle, call, &[wrong, 1, 1]));
        }
        lab(|sys| {
            summon(sys);
            let anothers = sys.ok(Call::EventCreate, &[]);
            lab::dismiss(sys);
            sys.misuses(FaultCause::BadHandle, call, &[anothers, 1, 1]);
        });
    }
}

#[test]
fn a_single_shot_fires_once() {
    lab(|sys| {
        let timer = sys.ok(Call::TimerCreate, &[]);
        assert_eq!(sys.ok(Call::TimerStart, &[timer, 100, 0]), 0);
        assert_eq!(sys.host.kernel.next_alarm(), Nanos::FOREVER, "nobody waits for it");
        sys.until(99);
        assert_eq!(sys.err(Call::EventWait, &[timer, NOW]), WouldBlock);
        sys.until(100_000);
        assert_eq!(sys.ok(Call::EventWait, &[timer, NOW]), 1);
        assert_eq!(sys.err(Call::EventWait, &[timer, NOW]), WouldBlock);
        assert_eq!(sys.host.kernel.next_alarm(), Nanos::FOREVER);
    });
}

#[test]
fn a_periodic_timer_fires_at_every_period_without_drift() {
    lab(|sys| {
        let timer = sys.ok(Call::TimerCreate, &[]);
        sys.ok(Call::TimerStart, &[timer, 100, 30]);
        let me = sys.running();
        for expected in [100, 130, 160, 190] {
            sys.blocks(Call::EventWait, &[timer, FOREVER]);
            sys.until(expected - 1);
            assert_eq!(sys.result(me), None);
            sys.until(expected);
            assert_eq!(sys.result(me), Some(Ok(1)));
        }
        sys.until(1_000);
        assert_eq!(sys.ok(Call::EventWait, &[timer, NOW]), 27);
    });
}

#[test]
fn a_late_timer_counts_what_it_missed_and_stays_in_phase() {
    lab(|sys| {
        let timer = sys.ok(Call::TimerCreate, &[]);
        sys.ok(Call::TimerStart, &[timer, 100, 30]);
        sys.host.now = Nanos(175);
        sys.host.enter(Cause::Timer);
        assert_eq!(sys.host.decision.alarm, Nanos::FOREVER, "silent until somebody asks");
        assert_eq!(sys.ok(Call::EventWait, &[timer, NOW]), 3, "100, 130, 160");
        sys.blocks(Call::EventWait, &[timer, FOREVER]);
        assert_eq!(sys.host.kernel.next_alarm(), Nanos(190));
    });
}

#[test]
fn a_timer_nobody_asks_does_not_ring_and_catches_up_when_asked() {
    lab(|sys| {
        let timer = sys.ok(Call::TimerCreate, &[]);
        sys.ok(Call::TimerStart, &[timer, 100, 10]);
        sys.until(100);
        assert_eq!(sys.host.kernel.next_alarm(), Nanos::FOREVER, "a short period costs nothing");
        sys.until(505);
        assert_eq!(sys.ok(Call::EventWait, &[timer, NOW]), 41);
        assert_eq!(sys.err(Call::EventWait, &[timer, NOW]), WouldBlock);
        sys.until(600);
        sys.ok(Call::TimerStart, &[timer, 0, 10]);
        assert_eq!(sys.ok(Call::EventWait, &[timer, NOW]), 10, "stopped: what had passed counts");
        sys.until(700);
        assert_eq!(sys.err(Call::EventWait, &[timer, NOW]), WouldBlock);
    });
}

#[test]
fn a_timer_that_should_have_started_in_the_past_fires_at_once() {
    lab(|sys| {
        sys.until(1_000);
        let timer = sys.ok(Call::TimerCreate, &[]);
        sys.ok(Call::TimerStart, &[timer, 1, 0]);
        assert_eq!(sys.ok(Call::EventWait, &[timer, NOW]), 1);
        sys.ok(Call::TimerStart, &[timer, 700, 200]);
        sys.until(1_000);
        assert_eq!(sys.ok(Call::EventWait, &[timer, NOW]), 2, "700 and 900");
        sys.blocks(Call::EventWait, &[timer, FOREVER]);
        assert_eq!(sys.host.kernel.next_alarm(), Nanos(1_100));
    });
}

#[test]
fn a_timer_nobody_waits_for_does_not_ring_again_and_again() {
    lab(|sys| {
        let timer = sys.ok(Call::TimerCreate, &[]);
        sys.ok(Call::TimerStart, &[timer, 100, 1]);
        sys.until(150);
        assert_eq!(sys.host.kernel.next_alarm(), Nanos::FOREVER);
        sys.host.now = Nanos(1_000);
        assert_eq!(sys.ok(Call::EventWait, &[timer, NOW]), 901);
        sys.blocks(Call::EventWait, &[timer, FOREVER]);
        assert_eq!(sys.host.kernel.next_alarm(), Nanos(1_001));
    });
}

#[test]
fn starting_again_replaces_and_zero_stops() {
    lab(|sys| {
        let timer = sys.ok(Call::TimerCreate, &[]);
        sys.ok(Call::TimerStart, &[timer, 100, 10]);
        sys.ok(Call::TimerStart, &[timer, 500, 0]);
        sys.until(499);
        assert_eq!(sys.err(Call::EventWait, &[timer, NOW]), WouldBlock);
        sys.ok(Call::TimerStart, &[timer, 0, 10]);
        sys.until(5_000);
        assert_eq!(sys.err(Call::EventWait, &[timer, NOW]), WouldBlock);
    });
}

#[test]
fn who_waits_for_a_timer_has_its_alarm_wherever_it_is_set() {
    lab(|sys| {
        let main = sys.running();
        let timer = sys.ok(Call::TimerCreate, &[]);
        let waiter = sys.spawn(40);
        assert_eq!(sys.call(Call::Yield, &[]), support::Outcome::Preempted);
        assert_eq!(sys.running(), waiter);
        sys.blocks(Call::EventWait, &[timer, 900]);
        assert_eq!(sys.running(), main);
        for (first, alarm) in [(500, 500), (700, 700), (2_000, 900), (0, 900), (600, 600)] {
            sys.ok(Call::TimerStart, &[timer, first, 0]);
            assert_eq!(sys.host.kernel.next_alarm(), Nanos(alarm), "from {first}");
        }
        sys.ok(Call::EventDelete, &[timer]);
        assert_eq!(sys.result(waiter), None, "it has yet to run");
        assert_eq!(sys.host.kernel.next_alarm(), Nanos::FOREVER, "its alarm went with the event");
    });
}

#[test]
fn a_timer_at_the_end_of_time_never_fires() {
    lab(|sys| {
        let timer = sys.ok(Call::TimerCreate, &[]);
        sys.ok(Call::TimerStart, &[timer, u64::MAX, 1]);
        assert_eq!(sys.host.decision.alarm, Nanos::FOREVER);
        sys.ok(Call::TimerStart, &[timer, 100, u64::MAX]);
        sys.until(200);
        assert_eq!(sys.ok(Call::EventWait, &[timer, NOW]), 1);
        assert_eq!(sys.host.kernel.next_alarm(), Nanos::FOREVER);
    });
}

#[test]
fn a_count_of_occurrences_saturates() {
    lab(|sys| {
        let timer = sys.ok(Call::TimerCreate, &[]);
        sys.host.now = Nanos(1 << 40);
        sys.ok(Call::TimerStart, &[timer, 1, 1]);
        assert_eq!(sys.ok(Call::EventWait, &[timer, NOW]), u64::from(u32::MAX));
        sys.blocks(Call::EventWait, &[timer, FOREVER]);
        assert_eq!(sys.host.kernel.next_alarm(), Nanos((1 << 40) + 1));
    });
}

#[test]
fn only_timers_can_be_started() {
    lab::with(&lab::plan().device("gong", 6, true, EVERYBODY), |sys| {
        let event = sys.ok(Call::EventCreate, &[]);
        assert_eq!(sys.err(Call::TimerStart, &[event, 100, 0]), Busy);
        let isr = sys.ok(Call::SetIsr, &[key("gong")]);
        assert_eq!(sys.err(Call::TimerStart, &[isr, 100, 0]), Busy);
    });
}

#[test]
fn more_than_eight_alarms_due_at_once_take_several_entries() {
    let plan = lab::plan().process("crowd", 30).with(|p| p.threads = 21);
    run(&plan, |sys| {
        sys.park();
        sys.park();
        for _ in 0..20 {
            sys.spawn(20);
        }
        sys.park();
        for i in 0..20 {
            sys.blocks(Call::SleepUntil, &[100 + i]);
        }
        sys.host.now = Nanos(1_000);
        for (left, next) in [(12, 108), (4, 116), (0, u64::MAX), (0, u64::MAX)] {
            sys.host.enter(Cause::Timer);
            let blocked = |slot: &u16| sys.state(sys.thread(2, *slot)) == State::Blocked;
            assert_eq!((1..21).filter(blocked).count(), left);
            assert_eq!(sys.host.decision.alarm, Nanos(next));
        }
    });
}

#[test]
fn early_and_spurious_timer_interrupts_do_nothing() {
    lab(|sys| {
        let me = sys.running();
        sys.blocks(Call::SleepUntil, &[1_000]);
        for now in [0, 1, 999] {
            sys.host.now = Nanos(now);
            sys.host.enter(Cause::Timer);
            assert_eq!(sys.host.decision.alarm, Nanos(1_000));
            assert_eq!(sys.state(me), State::Blocked);
        }
    });
}

fn with_gong(level: bool, experiment: impl FnOnce(&mut Sys<'_>)) {
    lab::with(&lab::plan().device("gong", 6, level, 0b1), experiment);
}

const GONG: u16 = 1;

fn line_open(sys: &Sys<'_>) -> bool {
    sys.host.machine.irqs.contains(&6)
}

#[test]
fn an_edge_line_stays_open_and_counts() {
    with_gong(false, |sys| {
        assert!(!line_open(sys));
        let isr = sys.ok(Call::SetIsr, &[key("gong")]);
        assert!(line_open(sys));
        for _ in 0..3 {
            sys.ring(GONG);
        }
        assert!(line_open(sys));
        assert_eq!(sys.ok(Call::EventWait, &[isr, NOW]), 3);
        let me = sys.running();
        sys.blocks(Call::EventWait, &[isr, FOREVER]);
        sys.ring(GONG);
        assert_eq!((sys.running(), sys.result(me)), (me, Some(Ok(1))));
    });
}

#[test]
fn a_level_line_is_held_back_until_its_thread_waits_again() {
    with_gong(true, |sys| {
        let isr = sys.ok(Call::SetIsr, &[key("gong")]);
        let me = sys.running();
        for _ in 0..2 {
            sys.blocks(Call::EventWait, &[isr, FOREVER]);
            assert!(line_open(sys));
            sys.ring(GONG);
            assert_eq!(sys.result(me), Some(Ok(1)));
            assert!(!line_open(sys));
        }
    });
}

#[test]
fn a_level_line_is_let_through_for_a_thread_that_polls() {
    with_gong(true, |sys| {
        let isr = sys.ok(Call::SetIsr, &[key("gong")]);
        sys.ring(GONG);
        assert_eq!(sys.ok(Call::EventWait, &[isr, NOW]), 1);
        assert!(!line_open(sys), "the device has not been served yet");
        assert_eq!(sys.err(Call::EventWait, &[isr, NOW]), WouldBlock);
        assert!(line_open(sys), "whoever asks again has served it");
        sys.ring(GONG);
        assert_eq!(sys.ok(Call::EventWait, &[isr, NOW]), 1);
    });
}

#[test]
fn one_thread_serves_a_device_at_a_time() {
    lab::with(&lab::plan().device("gong", 6, true, EVERYBODY), |sys| {
        let isr = sys.ok(Call::SetIsr, &[key("gong")]);
        assert_eq!(sys.err(Call::SetIsr, &[key("gong")]), Busy);
        summon(sys);
        assert_eq!(sys.err(Call::SetIsr, &[key("gong")]), Busy);
        lab::dismiss(sys);
        sys.ok(Call::EventDelete, &[isr]);
        assert!(!line_open(sys));
        sys.ring(GONG);
        summon(sys);
        sys.ok(Call::SetIsr, &[key("gong")]);
        assert!(line_open(sys));
    });
}

#[test]
fn a_device_needs_a_line_a_grant_and_a_free_event() {
    let none = diapason_abi::archive::NONE;
    lab::with(&lab::plan().device("deaf", none, false, EVERYBODY), |sys| {
        assert_eq!(sys.err(Call::SetIsr, &[key("deaf")]), Busy);
    });
    for name in ["hidden", "nothing", "m1"] {
        lab::with(&lab::plan().device("hidden", 7, false, 0b10), |sys| {
            sys.misuses(FaultCause::BadGrant, Call::SetIsr, &[key(name)]);
        });
    }
    with_gong(true, |sys| {
        for _ in 0..4 {
            sys.ok(Call::EventCreate, &[]);
        }
        assert_eq!(sys.err(Call::SetIsr, &[key("gong")]), Exhausted);
        assert!(!line_open(sys));
    });
}

#[test]
fn the_end_of_a_process_masks_its_devices_and_stops_its_timers() {
    with_gong(false, |sys| {
        sys.ok(Call::SetIsr, &[key("gong")]);
        let timer = sys.ok(Call::TimerCreate, &[]);
        sys.ok(Call::TimerStart, &[timer, 100, 10]);
        sys.crash(FaultCause::Read, 0);
        assert!(!line_open(sys));
        assert_eq!(sys.host.kernel.next_alarm(), Nanos::FOREVER);
        sys.ring(GONG);
        sys.ring(77);
        assert!(sys.running().is_none(), "an unknown line does no harm");
    });
}

#[test]
fn interrupts_are_counted_with_the_shortest_time_between_two() {
    with_gong(false, |sys| {
        let counts = |sys: &Sys<'_>| sys.host.kernel.interrupts().collect::<Vec<[u64; 3]>>();
        assert!(counts(sys).is_empty(), "a device that never interrupted is not mentioned");
        sys.ok(Call::SetIsr, &[key("gong")]);
        let expected = [(100, u64::MAX), (180, 80), (230, 50), (400, 50)];
        for (count, (time, gap)) in (1..).zip(expected) {
            sys.until(time);
            sys.ring(GONG);
            assert_eq!(counts(sys), [[u64::from(GONG), count, gap]]);
        }
        sys.ring(77);
        assert_eq!(counts(sys).len(), 1, "an unknown line is nobody's");
    });
}

/// A plan with a doorbell that is answered here, and one that is answered on core 1.
fn with_bells(experiment: impl FnOnce(&mut Sys<'_>)) {
    let plan = lab::plan().device("gong", 6, false, 0b1);
    let plan = plan.bell("here", 4, MESSAGES, 0b1).bell("there", 9, NONE, 0b1);
    lab::with(&plan, experiment);
}

#[test]
fn a_doorbell_that_is_answered_here_is_heard_at_once() {
    with_bells(|sys| {
        sys.ok(Call::Ring, &[key("here")]);
        let bell = sys.ok(Call::SetIsr, &[key("here")]);
        assert_eq!(sys.err(Call::EventWait, &[bell, NOW]), WouldBlock, "nobody listened then");
        sys.ok(Call::Ring, &[key("here")]);
        sys.ok(Call::Ring, &[key("here")]);
        assert_eq!(sys.ok(Call::EventWait, &[bell, NOW]), 2);
        assert!(sys.host.machine.rung.is_empty());
    });
}

#[test]
fn a_doorbell_of_another_core_is_rung_there_and_heard_like_an_interrupt() {
    with_bells(|sys| {
        assert_eq!(sys.err(Call::SetIsr, &[key("there")]), Busy, "it is answered elsewhere");
        sys.ok(Call::Ring, &[key("there")]);
        assert_eq!(sys.host.machine.rung, [(1, 9)]);
        let me = sys.running();
        let bell = sys.ok(Call::SetIsr, &[key("here")]);
        sys.blocks(Call::EventWait, &[bell, FOREVER]);
        sys.ring(GONG + 1);
        assert_eq!((sys.running(), sys.result(me)), (me, Some(Ok(1))));
    });
}

#[test]
fn a_doorbell_of_another_core_that_rings_too_soon_is_held_back_and_counted() {
    const MS: u64 = 1_000_000;
    let plan = lab::plan().bell("here", 4, MESSAGES, EVERYBODY).every(MS);
    lab::with(&plan, |sys| {
        let me = sys.running();
        let bell = sys.await_bell("here");
        let is_open = |sys: &Sys<'_>| sys.host.machine.irqs.contains(&MESSAGES);
        for (at, opens) in [(MS, true), (MS + 200_000, false)] {
            sys.until(at);
            sys.ring(GONG);
            assert_eq!(sys.result(me), Some(Ok(1)), "each ring is heard");
            sys.blocks(Call::EventWait, &[bell, FOREVER]);
            assert_eq!(is_open(sys), opens, "at {at}");
        }
        let counts: Vec<[u64; 3]> = sys.host.kernel.interrupts().collect();
        assert_eq!(counts, [[GONG.into(), 2, 200_000]]);
        sys.until(3 * MS - 1);
        assert!(!is_open(sys));
        sys.until(3 * MS);
        assert_eq!(sys.result(me), Some(Ok(0)), "it asks again");
        assert_eq!(sys.err(Call::EventWait, &[bell, NOW]), WouldBlock);
        assert!(is_open(sys), "the next one may come");
    });
}

#[test]
fn only_doorbells_that_are_granted_can_be_rung() {
    for name in ["gong", "nothing"] {
        with_bells(|sys| sys.misuses(FaultCause::BadGrant, Call::Ring, &[key(name)]));
    }
    with_bells(|sys| {
        summon(sys);
        sys.misuses(FaultCause::BadGrant, Call::Ring, &[key("here")]);
    });
}

#[test]
fn an_interrupt_that_comes_too_soon_is_the_last_until_the_next_may_come() {
    const MS: u64 = 1_000_000;
    let plan = lab::plan().device("gong", 6, false, EVERYBODY).every(MS);
    lab::with(&plan, |sys| {
        let me = sys.running();
        let isr = sys.await_bell("gong");
        let open = |sys: &support::Sys<'_>| sys.host.machine.irqs.contains(&6);
        // A little early is what a busy kernel makes of it.
        for at in [MS, 2 * MS - 2_000, 3 * MS - 2_000] {
            sys.until(at);
            sys.ring(1);
            assert_eq!(sys.result(me), Some(Ok(1)));
            sys.blocks(Call::EventWait, &[isr, FOREVER]);
            assert!(open(sys), "at {at}");
        }
        // This one takes the place of the fourth.
        sys.until(3 * MS + 900_000);
        sys.ring(1);
        assert_eq!(sys.result(me), Some(Ok(1)), "it is heard");
        assert!(!open(sys), "no more of them");
        sys.blocks(Call::EventWait, &[isr, FOREVER]);
        assert!(!open(sys), "asking does not help");
        assert_eq!(sys.host.kernel.next_alarm(), Nanos(5 * MS - 2_000 + 2_000));
        sys.until(5 * MS);
        assert_eq!(sys.result(me), Some(Ok(0)), "it asks again");
        assert_eq!(sys.err(Call::EventWait, &[isr, NOW]), WouldBlock);
        assert!(open(sys));
    });
}

/// Every line rings ten times as often as it was described, for a hundred of its intervals.
#[test]
fn lines_that_ring_ten_times_too_often_are_heard_as_often_as_described() {
    const MS: u64 = 1_000_000;
    const LINES: u16 = 10;
    const INTERVALS: u64 = 100;
    let name = |line: u16| format!("gong{line}");
    let plan = Plan::new().process("lab", 40).with(|lab| lab.events = LINES).process("control", 60);
    let plan = (0..LINES).fold(plan.device("bell", 5, false, EVERYBODY), |plan, line| {
        plan.device(&name(line), 6 + line, false, EVERYBODY).every(MS)
    });
    lab::with(&plan, |sys| {
        let open = |sys: &support::Sys<'_>, line: u16| sys.host.machine.irqs.contains(&(6 + line));
        let isrs: Vec<u64> =
            (0..LINES).map(|line| sys.ok(Call::SetIsr, &[key(&name(line))])).collect();
        let mut heard = [0; LINES as usize];
        for step in 0..10 * INTERVALS {
            sys.until(MS + step * MS / 10);
            for line in 0..LINES {
                // The driver asks each time, whether or not it was told.
                let asked = sys.call(Call::EventWait, &[isrs[usize::from(line)], NOW]);
                assert!(matches!(asked, Outcome::Returned(_)), "{asked:?}");
                if open(sys, line) {
                    sys.ring(1 + line);
                    heard[usize::from(line)] += 1;
                }
            }
        }
        // The first in an interval is heard, and the one that is too soon takes the next one's
        // place.
        assert!(
            heard.iter().all(|heard| (INTERVALS / 2..=INTERVALS + 1).contains(heard)),
            "{heard:?}"
        );
    });
}

#[test]
fn who_begins_anew_does_not_get_around_a_line_that_is_held() {
    const MS: u64 = 1_000_000;
    let plan = lab::plan().device("gong", 6, true, EVERYBODY).every(MS);
    lab::with(&plan, |sys| {
        let isr = sys.await_bell("gong");
        for at in [MS, MS + 10_000] {
            sys.until(at);
            sys.ring(1);
            if at == MS {
                sys.blocks(Call::EventWait, &[isr, FOREVER]);
            }
        }
        sys.ok(Call::EventDelete, &[isr]);
        let isr = sys.ok(Call::SetIsr, &[key("gong")]);
        assert!(!sys.host.machine.irqs.contains(&6));
        assert_eq!(sys.err(Call::EventWait, &[isr, NOW]), WouldBlock);
        assert!(!sys.host.machine.irqs.contains(&6));
        sys.until(3 * MS);
        assert_eq!(sys.err(Call::EventWait, &[isr, NOW]), WouldBlock);
        assert!(sys.host.machine.irqs.contains(&6), "it may come again");
    });
}
