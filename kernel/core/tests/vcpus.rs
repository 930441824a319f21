//! Virtual CPUs in the kernel: traces that can be checked by hand, and calls that make, change and
//! end a VCPU. Each line of a trace is a decision: when, who runs, in whose place if not its own,
//! and on whose budget (`on`) or without any (`beyond`). Times are in microseconds.

use crate::support::script::Script;
use crate::support::stage::{golden, play};
use crate::support::*;
use diapason_core::{Server, VcpuId};

#[test]
fn a_vcpu_is_used_up_and_comes_back_each_period() {
    let script = "
        main V 2 10
        t 10 on V: run 5";
    golden(
        script,
        40,
        "0 t on V
         2 nobody
        10 t on V
        12 nobody
        20 t on V
        21 nobody",
    );
}

#[test]
fn the_shorter_period_goes_first_and_the_unreserved_last() {
    let script = "
        main A 2 10
        main B 5 20
        a 10 on A: run 100
        b 60 on B: run 100
        u 63: run 100";
    golden(
        script,
        32,
        "0 a on A
         2 b on B     -- its threads' priority counts among its own only
         7 u
        10 a on A
        12 u
        20 a on A
        22 b on B
        27 u
        30 a on A",
    );
}

#[test]
fn of_equal_periods_the_one_declared_first_goes_first() {
    let script = "
        queues 1
        main A 2 20 queue 1
        main B 2 20 queue 1
        main P 2 20 queue 0
        main Q 2 20 queue 0
        b 10 on B: run 1
        a 10 on A: run 1
        q 10 on Q: run 1
        p 10 on P: run 1";
    golden(script, 10, "0 p on P\n 1 q on Q\n 2 a on A\n 3 b on B\n 4 nobody");
}

#[test]
fn preemption_stops_the_use_of_a_budget() {
    let script = "
        main A 3 10
        main B 4 20
        a 10 on A: sleep 2; run 2
        b 10 on B: run 5";
    golden(
        script,
        40,
        "0 a on A
         0 b on B
         2 a on A
         4 b on B
         6 nobody
        20 b on B
        21 nobody",
    );
}

#[test]
fn what_is_used_late_comes_back_a_period_after_the_wake() {
    let script = "
        main V 4 10
        t 10 on V: sleep 3; run 2; sleep 8; run 5";
    golden(
        script,
        40,
        "0 t on V
         0 nobody
         3 t on V
         5 nobody
         8 t on V     -- 2 are left, and eligible from 8 on (S2)
        10 nobody
        13 t on V     -- the first 2 come back at 3 + 10
        15 nobody
        18 t on V     -- the other 2 at 8 + 10
        19 nobody",
    );
}

#[test]
fn two_threads_of_one_vcpu_share_its_budget() {
    let script = "
        main V 3 10
        high 20 on V: sleep 1; run 1; sleep 11; run 2
        low 10 on V: run 6";
    golden(
        script,
        40,
        "0 high on V
         0 low on V
         1 high on V
         2 low on V
         3 nobody
        10 low on V
        11 high on V
        13 nobody
        20 high on V
        20 low on V
        23 nobody
        30 low on V
        30 nobody",
    );
}

#[test]
fn equals_of_one_vcpu_take_turns_when_they_say_so() {
    let script = "
        main V 4 10
        a 10 on V: run 1; yield; run 2
        b 10 on V: run 2; yield; run 1";
    golden(
        script,
        30,
        "0 a on V
         1 b on V
         3 a on V
         4 nobody
        10 a on V     -- it keeps its turn while there is no budget
        11 b on V
        12 nobody",
    );
}

#[test]
fn in_the_background_runs_what_nobody_else_wants() {
    let script = "
        main V 2 10 background
        main W 3 20
        v 10 on V: run 9
        w 10 on W: sleep 5; run 1
        u 10: sleep 6; run 2";
    golden(
        script,
        40,
        "0 v on V
         2 w on W
         2 u
         2 v beyond V
         5 w on W
         6 v beyond V -- w was not interrupted for the sake of u
         6 u          -- without a VCPU, but before what has no budget left
         8 v beyond V
        10 v on V
        12 v beyond V
        12 nobody",
    );
}

#[test]
fn who_has_no_vcpu_is_not_woken_at_the_expense_of_who_has() {
    let text = "
        main V 8 40
        main W 1 20
        v 10 on V: sleep 1; run 7
        w 10 on W: sleep 5; run 1
        u 10: sleep 2; run 1";
    let script = Script::parse(text);
    play(&script, 7_000, 0, |stage| {
        let u = stage.thread(2);
        assert_eq!(stage.host.kernel.threads[u].state, State::Blocked, "not even with w, at 5");
    });
    golden(
        text,
        20,
        "0 w on W
         0 v on V
         0 u
         0 nobody
         1 v on V
         5 w on W
         6 v on V
         9 nobody     -- w has ended, which is a long path: u is woken in the next
         9 u
        10 nobody",
    );
}

#[test]
fn what_runs_in_the_background_is_charged_to_nothing() {
    let script = Script::parse("main V 2 10 background\n v 10 on V: run 100");
    play(&script, 50_000, 0, |stage| {
        let v = &stage.host.kernel.vcpus[VcpuId::new(0)];
        assert_eq!((v.used, v.extra), (Nanos(10_000), Nanos(40_000)));
    });
}

#[test]
fn by_deadline_a_longer_period_may_go_first() {
    let script = "
        queues 1
        main A 4 10 queue 0
        main B 9 18 queue 0
        a 10 on A: run 100
        b 10 on B: run 100";
    golden(
        script,
        45,
        "0 a on A     -- 10 before 18
         4 b on B
        13 a on A     -- at 10, 18 was before 20
        17 nobody
        18 b on B     -- until 36
        20 a on A     -- until 30
        24 b on B
        31 a on A     -- at 30, 36 was before 40
        35 nobody
        36 b on B     -- until 54
        40 a on A     -- until 50
        44 b on B",
    );
}

#[test]
fn a_queue_by_deadline_goes_before_the_one_by_period() {
    let script = "
        queues 1
        main A 4 10 queue 0
        main B 5 18 queue 0
        main F 1 10 queue 1
        a 10 on A: run 100
        b 10 on B: run 100
        f 10 on F: run 100";
    golden(
        script,
        30,
        "0 a on A
         4 b on B
         9 f on F     -- its period is the shortest, its queue the last
        10 a on A
        14 f on F     -- back since 10
        15 nobody
        18 b on B
        20 a on A
        24 b on B
        27 f on F
        28 nobody",
    );
}

#[test]
fn an_io_vcpu_goes_before_whom_it_serves() {
    let script = "
        main V 4 20
        main W 2 19
        io X 100000 serving V
        w 10 on W: run 100
        x 10 on X: sleep 3; run 3
        v 10 on V: run 6";
    golden(
        script,
        45,
        "0 w on W
         2 x on X
         2 v on V
         3 x on X     -- a tenth of the 20 of whom it serves
         5 v on V     -- what is used, 2, is paid for at 3 + 20
         8 nobody
        19 w on W
        21 v on V
        23 x on X     -- with the rank of V: after W, before V
        24 v on V
        24 nobody
        38 w on W
        40 nobody",
    );
}

#[test]
fn an_io_vcpu_takes_the_shortest_period_it_serves_and_no_more_than_its_cap() {
    let script = "
        main V 4 20
        main W 4 40
        io X 100000 serving V W
        io Y 100000 serving W cap 10
        x 10 on X: run 3
        y 10 on Y: run 3";
    golden(
        script,
        45,
        "0 x on X
         2 y on Y
         3 nobody
        10 y on Y
        11 nobody
        20 x on X
        21 nobody     -- x has ended, which is a long path
        21 y on Y     -- the period it inherits is longer, its grants are not
        22 nobody
        30 y on Y
        30 nobody",
    );
}

/// A process `p` on VCPU 0 that may make two more, and one `q` besides.
fn lab() -> Plan {
    let plan = Plan::new().main_vcpu("V", 1_000_000, 10_000_000, 0).main_vcpu("W", 1, 1, 0);
    let plan = plan.with_vcpu(|v| (v.budget, v.period) = (2_000_000, 20_000_000));
    let plan = plan.process("p", 40).with(|p| (p.vcpu, p.vcpus) = (0, 2));
    plan.process("q", 30).with(|p| p.vcpu = 1).mutex("m")
}

const MS: u64 = 1_000_000;

#[test]
fn a_vcpu_made_at_run_time_gets_its_budget_when_it_is_free() {
    run(&lab(), |sys| {
        let made = sys.ok(Call::VcpuCreate, &[0, MS, 10 * MS, 4, 0]);
        let parent = sys.running();
        sys.ok(Call::ThreadCreate, &[0x1000, 0, 40, 0, made]);
        let child = sys.host.machine.started.last().expect("a thread").0;
        sys.blocks(Call::SleepUntil, &[19 * MS]);
        sys.blocks(Call::SleepUntil, &[30 * MS]);
        assert!(sys.running().is_none(), "a share that was another's is free a period later");
        sys.until(19 * MS);
        assert_eq!(sys.running(), parent);
        sys.blocks(Call::SleepUntil, &[30 * MS]);
        sys.until(20 * MS);
        assert_eq!(sys.running(), child);
        sys.until(21 * MS);
        assert!(sys.running().is_none());
        sys.until(30 * MS);
        assert_eq!(sys.running(), parent);
        let v = &sys.host.kernel.vcpus[VcpuId::new(2)];
        assert_eq!((v.used, v.depleted), (Nanos(MS), 2));
    });
}

#[test]
fn what_is_refused_says_how_much_would_have_fit() {
    run(&lab(), |sys| {
        for period in [MS, 3 * MS, 10 * MS, 70 * MS] {
            let fits = sys.ok(Call::VcpuFit, &[period]);
            assert!(fits > period / 3 && fits < period * 2 / 3, "{fits} of {period}");
            assert_eq!(sys.err(Call::VcpuCreate, &[0, fits + 1, period, 8, 0]), Overload);
            let made = sys.ok(Call::VcpuCreate, &[0, fits, period, 8, 0]);
            assert!(
                sys.ok(Call::VcpuFit, &[period]) < period / 1000,
                "the rest of three is little"
            );
            sys.ok(Call::VcpuDelete, &[made]);
            assert_eq!(sys.ok(Call::VcpuFit, &[period]), fits, "all of it is given back");
        }
    });
}

#[test]
fn interrupts_of_the_declared_leave_less_and_their_alarms_do_not() {
    let fit = |plan: Plan| run(&plan, |sys| sys.ok(Call::VcpuFit, &[MS]));
    let quiet = fit(lab());
    // A device every 10 us makes the processor slower by 600 ns in each, of which three VCPUs may
    // use 78 %, and interrupts once more at first.
    let noisy = fit(lab().device("dial", 3, false, 0).every(10_000));
    assert!(noisy < quiet - 46_000 && noisy > quiet - 48_000, "{quiet}, {noisy}");
    // More threads make the longest path longer, and their alarms are paid for by whom they wake.
    let crowd = || lab().with(|p| p.threads += 20);
    let longer = crowd().kernel().longest_path - lab().kernel().longest_path;
    let crowded = fit(crowd());
    assert!(crowded < quiet && quiet - crowded <= 8 * longer, "{quiet}, {crowded}, {longer}");
}

#[test]
fn a_budget_is_changed_under_the_same_test() {
    run(&lab(), |sys| {
        let v = sys.ok(Call::VcpuCreate, &[key("V"), 0]);
        let fits = sys.ok(Call::VcpuFit, &[10 * MS]);
        assert_eq!(sys.err(Call::VcpuSet, &[v, 9 * MS, 10 * MS]), Overload);
        assert_eq!(sys.ok(Call::VcpuFit, &[10 * MS]), fits, "a refusal changes nothing");
        sys.ok(Call::VcpuSet, &[v, 2 * MS, 10 * MS]);
        assert!(sys.ok(Call::VcpuFit, &[10 * MS]) < fits);
        let Server::Main(server) = sys.host.kernel.vcpus[VcpuId::new(0)].server else { panic!() };
        assert_eq!((server.budget(), server.period()), (Nanos(2 * MS), Nanos(10 * MS)));
        sys.ok(Call::VcpuSet, &[v, MS, 10 * MS]);
        assert_eq!(sys.ok(Call::VcpuFit, &[10 * MS]), fits);
    });
}

#[test]
fn a_change_of_period_changes_the_rank_at_once() {
    let script = "
        main A 100 400
        main B 100 600
        a 10 on A: sleep 10; run 300
        b 10 on B: run 50; set B 100 300; run 300";
    golden(
        script,
        600,
        "0 a on A
         0 b on B
        10 a on A
       110 b on B     -- until 150, where its period becomes the shorter one
       200 nobody
       410 a on A
       450 b on B     -- what was to come at 600 comes a new period after the change
       550 a on A",
    );
}

#[test]
fn a_change_of_period_reaches_the_io_vcpu_that_serves() {
    let script = "
        main V 20 400
        main W 30 300
        io X 100000 serving V
        x 10 on X: sleep 100; run 5; nap 5; run 50
        w 10 on W: sleep 98; run 20
        v 10 on V: run 5; set V 20 200; run 100";
    golden(
        script,
        160,
        "0 w on W
         0 x on X
         0 v on V
        20 nobody
        98 w on W
       100 x on X     -- with the period of 200 that V has now
       105 w on W
       110 x on X
       125 w on W     -- and a tenth of it, 20, of which 5 were used
       138 nobody",
    );
}

#[test]
fn a_share_given_back_is_not_used_twice() {
    let script = "
        queues 1
        main A 2000 4000 queue 0
        main D 9000 20000 queue 0
        main B 5 1000 queue 0
        a 10 on A: run 1990; set A 1 4000
        d 10 on D: run 100000
        b 10 on B: sleep 1991; set B 500 1000; nap 20010; set B 500 1000; run 100000";
    let script = Script::parse(script);
    play(&script, 20_000_000, 0, |stage| {
        assert_eq!(stage.results, (3, 1), "B is told to come again");
        let used = stage.host.kernel.vcpus[VcpuId::new(1)].used;
        assert_eq!(used, Nanos(9_000_000), "else what A has used would be B's as well");
    });
    play(&script, 23_000_000, 0, |stage| assert_eq!(stage.results, (5, 1), "and is admitted"));
    run(&lab(), |sys| {
        let v = sys.ok(Call::VcpuCreate, &[key("V"), 0]);
        let made = sys.ok(Call::VcpuCreate, &[0, MS, 10 * MS, 4, 0]);
        sys.ok(Call::VcpuDelete, &[made]);
        assert_eq!(sys.err(Call::VcpuSet, &[v, 2 * MS, 10 * MS]), Busy);
        sys.ok(Call::VcpuSet, &[v, MS / 2, 10 * MS]);
        assert_eq!(sys.err(Call::VcpuSet, &[v, MS, 10 * MS]), Busy, "it is not all of its own");
        sys.blocks(Call::SleepUntil, &[20 * MS]);
        sys.until(20 * MS);
        sys.ok(Call::VcpuSet, &[v, MS / 2, 10 * MS]);
        sys.ok(Call::VcpuSet, &[v, MS, 10 * MS]);
        sys.ok(Call::VcpuSet, &[v, MS / 2, 10 * MS]);
        sys.ok(Call::VcpuSet, &[v, 2 * MS, 10 * MS]);
    });
}

#[test]
fn only_a_private_vcpu_without_threads_can_be_deleted() {
    run(&lab(), |sys| {
        let declared = sys.ok(Call::VcpuCreate, &[key("V"), 0]);
        assert_eq!(sys.err(Call::VcpuDelete, &[declared]), Busy);
        let made = sys.ok(Call::VcpuCreate, &[0, MS, 10 * MS, 4, 0]);
        sys.ok(Call::ThreadCreate, &[0x1000, 0, 40, 0, made]);
        assert_eq!(sys.err(Call::VcpuDelete, &[made]), Busy);
    });
}

#[test]
fn a_deleted_vcpu_is_gone_and_its_slot_is_used_again() {
    run(&lab(), |sys| {
        let ask = [0, MS, 10 * MS, 4, 0];
        let (first, second) = (sys.ok(Call::VcpuCreate, &ask), sys.ok(Call::VcpuCreate, &ask));
        assert_eq!(sys.err(Call::VcpuCreate, &ask), Exhausted);
        sys.ok(Call::VcpuDelete, &[first]);
        for call in [Call::VcpuSet, Call::VcpuDelete] {
            assert_eq!(sys.err(call, &[first, MS, 10 * MS]), Gone);
        }
        let third = sys.ok(Call::VcpuCreate, &ask);
        assert!(third != first && third != second);
    });
}

#[test]
fn what_makes_no_sense_ends_the_process() {
    let bad = FaultCause::BadArgument;
    let wrong: [(FaultCause, Call, [u64; 5]); 12] = [
        (bad, Call::VcpuCreate, [0, 0, 10 * MS, 4, 0]),
        (bad, Call::VcpuCreate, [0, 999, 10 * MS, 4, 0]),
        (bad, Call::VcpuCreate, [0, 10 * MS + 1, 10 * MS, 4, 0]),
        (bad, Call::VcpuCreate, [0, 1_000, 9_999, 4, 0]),
        (bad, Call::VcpuCreate, [0, 1_000, 1_000_000_000_001, 4, 0]),
        (bad, Call::VcpuCreate, [0, u64::MAX, u64::MAX, 4, 0]),
        (FaultCause::BadGrant, Call::VcpuCreate, [key("nobody"), MS, MS, 4, 0]),
        (bad, Call::VcpuFit, [0; 5]),
        (bad, Call::VcpuFit, [u64::MAX, 0, 0, 0, 0]),
        (FaultCause::BadHandle, Call::VcpuSet, [0, MS, MS, 0, 0]),
        (FaultCause::BadHandle, Call::VcpuDelete, [u64::MAX, 0, 0, 0, 0]),
        (FaultCause::BadHandle, Call::ThreadCreate, [0x1000, 0, 1, 0, 77]),
    ];
    for (cause, call, words) in wrong {
        run(&lab(), |sys| sys.misuses(cause, call, &words));
    }
}

#[test]
fn an_io_vcpu_is_not_for_setting() {
    let plan = lab().io_vcpu("X", 100_000, 1, 0);
    run(&plan, |sys| {
        let x = sys.ok(Call::VcpuCreate, &[key("X"), 0]);
        assert_eq!(sys.err(Call::VcpuSet, &[x, MS, 10 * MS]), Busy);
        assert_eq!(sys.err(Call::VcpuDelete, &[x]), Busy);
    });
}

#[test]
fn what_the_exact_test_admitted_leaves_room_for_nothing_else() {
    let plan = lab().main_vcpu("full", 8 * MS, 11 * MS, 0);
    run(&plan, |sys| {
        assert_eq!(sys.ok(Call::VcpuFit, &[50 * MS]), 0);
        assert_eq!(sys.err(Call::VcpuCreate, &[0, 1_000, 50 * MS, 4, 0]), Overload);
    });
}

#[test]
fn an_io_vcpu_that_is_never_granted_anything_stops_nobody() {
    let script = "
        main V 1 20
        io X 60 serving V cap 10
        x 10 on X: run 1
        v 10 on V: run 1";
    golden(script, 60, "0 v on V\n 1 nobody\n 20 v on V\n 20 nobody");
}

#[test]
fn a_period_that_leaves_an_io_vcpu_no_useful_grant_is_refused() {
    let plan = lab().io_vcpu("X", 100, 1, 0);
    run(&plan, |sys| {
        let v = sys.ok(Call::VcpuCreate, &[key("V"), 0]);
        assert_eq!(sys.err(Call::VcpuSet, &[v, MS, 9_999_999]), Overload, "of 999 ns");
        sys.ok(Call::VcpuSet, &[v, MS / 2, 10 * MS]);
    });
}
