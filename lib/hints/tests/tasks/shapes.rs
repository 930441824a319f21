//! The shapes of tasks, one by one: what follows each blocking call.

macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident: $body:literal => [$($expected:literal),*];)*) => {
        $($(#[$doc])* #[test] fn $name() {
            let expected: &[&str] = &[$($expected),*];
            assert_eq!(hints($body), expected, "{}", $body);
        })*
    };
}

mod straight {
    use crate::common::hints;

    shapes! {
        a_lock_after_a_wait: "e.wait(t)?; m.lock()?;" => ["e.wait -> lock `m`"];
        nothing_after_a_wait: "m.lock()?; e.wait(t)?;" => ["e.wait -> none"];
        only_the_next_lock_counts: "e.wait(t)?; a.lock()?; b.lock()?;" => ["e.wait -> lock `a`"];
        another_wait_comes_first: "e.wait(t)?; s.take(t)?; m.lock()?;"
            => ["e.wait -> none", "s.take -> lock `m`"];
        sending_blocks_too: "e.wait(t)?; b.send(&x, 1, t)?; m.lock()?;" => ["e.wait -> none"];
        a_condition_names_its_own_mutex: "e.wait(t)?; c.wait(&mut g, t)?; m.lock()?;"
            => ["e.wait -> none"];
        every_call_of_the_runtime: "sleep_until(t); a.lock(); time::sleep(t); b.lock();
            let mut jobs = thread::periodic(t, p, d); a.lock(); jobs.wait(); b.lock();
            s.take(t); a.lock(); x.receive(t); b.lock(); x.receive_into(&mut y, t); a.lock();
            h.join(t); b.lock(); receive_fault(&x, t); a.lock_until(t); e.wait(t); b.lock();"
            => ["sleep_until -> lock `a`", "time::sleep -> lock `b`",
                "thread::periodic -> lock `a`", "jobs.wait -> lock `b`", "s.take -> lock `a`",
                "x.receive -> lock `b`", "x.receive_into -> lock `a`", "h.join -> lock `b`",
                "receive_fault -> lock `a`", "e.wait -> lock `b`"];
        calls_written_as_functions: "Event::wait(&e, t)?; Mutex::lock(&m)?;"
            => ["Event::wait -> lock `m`"];
        a_try_is_no_wait: "e.wait(t)?; a.try_lock(); b.lock();" => ["e.wait -> lock `b`"];
        deadline_zero_is_no_wait: "e.wait(t)?; x.receive(Nanos::ZERO); b.lock();"
            => ["e.wait -> lock `b`"];
        other_meanings_of_the_words: "e.wait(t)?; i.take(3); v.join(\",\"); o.take(); b.lock();"
            => ["e.wait -> lock `b`"];
        unknown_calls_do_not_lock: "e.wait(t)?; compute(x); self.step(); b.lock();"
            => ["e.wait -> lock `b`"];
        fields_and_elements: "e.wait(t)?; self.valves[2].mutex.lock()?;"
            => ["e.wait -> lock `self.valves[2].mutex`"];
        one_mutex_written_in_two_ways: "e.wait(t)?; if x() { (&m).lock(); } else { m.lock(); }"
            => ["e.wait -> lock `m`"];
        arguments_run_before_the_call: "f(e.wait(t)?, m.lock()?);" => ["e.wait -> lock `m`"];
        a_wait_inside_an_argument: "s.take(e.wait(t)?); m.lock();"
            => ["s.take -> lock `m`", "e.wait -> none"];
        hints_by_hand_stay: "e.wait_then(t, m.hint()); s.take(t); m.lock();"
            => ["s.take -> lock `m`"];
        work_runs_here: "e.wait(t)?; time::work(\"w\", || { m.lock(); }); b.lock();"
            => ["e.wait -> lock `m`"];
        harmless_closures: "e.wait(t)?; let x = |y| y + 1; b.lock();" => ["e.wait -> lock `b`"];
        macros_pass: "e.wait(t)?; log!(\"{}\", x.wait_count); b.lock();" => ["e.wait -> lock `b`"];
    }
}

mod loops {
    use crate::common::hints;

    shapes! {
        /// [EMERALDS 1998, figure 5.4]: the wait at the end of the loop is followed by its
        /// beginning.
        the_wait_at_the_end: "loop { a.lock()?; b.lock()?; jobs.wait(); }"
            => ["jobs.wait -> lock `a`"];
        the_wait_at_the_start: "loop { s.take(t)?; m.lock()?; }" => ["s.take -> lock `m`"];
        the_wait_only: "loop { jobs.wait(); }" => ["jobs.wait -> none"];
        an_endless_for: "for turn in 0u64.. { m.lock()?; jobs.wait(); }"
            => ["jobs.wait -> lock `m`"];
        before_a_loop: "e.wait(t)?; loop { m.lock()?; jobs.wait(); }"
            => ["e.wait -> lock `m`", "jobs.wait -> lock `m`"];
        a_way_out: "loop { e.wait(t)?; if x() { break; } m.lock(); } m.lock();"
            => ["e.wait -> lock `m`"];
        back_to_the_head: "loop { m.lock(); e.wait(t)?; if x() { continue; } }"
            => ["e.wait -> lock `m`"];
        jumps_with_labels: "'o: loop { m.lock(); loop { e.wait(t)?; if x() { continue 'o; }
            break 'o; } } m.lock();" => ["e.wait -> lock `m`"];
        a_block_with_a_label: "e.wait(t)?; 'b: { if x() { break 'b; } f(); } m.lock();"
            => ["e.wait -> lock `m`"];
        /// §5.4.1: a wait in a counted loop, the lock after it.
        the_last_turn: "for i in 0..n { f(i); e.wait(t)?; } m.lock()?;"
            => ["e.wait -> if last turn of the loop at line 1: lock `m`, else: none"];
        the_last_turn_of_a_loop_that_locks: "for _ in 0..=n { a.lock(); e.wait(t)?; } b.lock();"
            => ["e.wait -> if last turn of the loop at line 1: lock `b`, else: lock `a`"];
        the_same_before_and_after: "for _ in 0..n { m.lock(); e.wait(t)?; } m.lock();"
            => ["e.wait -> lock `m`"];
        two_waits_in_a_turn: "for _ in 0..n { e.wait(t)?; s.take(t)?; } m.lock();"
            => ["e.wait -> none",
                "s.take -> if last turn of the loop at line 1: lock `m`, else: none"];
        counted_in_counted: "for _ in 0..n { for _ in 0..4 { e.wait(t)?; } } m.lock();"
            => ["e.wait -> if last turn of the loop at line 1: if last turn of the loop at line 1: \
                 lock `m`, else: none, else: none"];
        a_counted_loop_in_a_task: "loop { for _ in 0..4 { e.wait(t)?; } m.lock(); }"
            => ["e.wait -> if last turn of the loop at line 1: lock `m`, else: none"];
        a_first_turn_for_certain: "e.wait(t)?; for _ in 0..4 { a.lock(); } b.lock();"
            => ["e.wait -> lock `a`"];
        perhaps_no_turn: "e.wait(t)?; for _ in 0..n { a.lock(); } b.lock();"
            => ["e.wait -> if `(0..n) is empty`: lock `b`, else: lock `a`"];
        a_loop_that_locks_sometimes: "e.wait(t)?; for _ in 0..4 { if c { a.lock(); } } b.lock();"
            => ["e.wait -> if `c`: lock `a`, else: lock `b`"];
        a_turn_that_decides_what_it_locks:
            "for i in 0..n { a.lock(); e.wait(t)?; if i > 1 { b.lock(); } }"
            => ["e.wait -> if `i > 1`: lock `b`, else: if last turn of the loop at line 1: none, \
                 else: lock `a`"];
        any_for_that_does_not_wait: "e.wait(t)?; for x in list { f(x); } m.lock();"
            => ["e.wait -> lock `m`"];
        a_while_that_tells_in_time: "while i < n { i += 1; e.wait(t)?; } m.lock();"
            => ["e.wait -> if `i < n`: none, else: lock `m`"];
        a_routine: "while let Ok(count) = e.wait(t) { m.lock(); }" => ["e.wait -> lock `m`"];
        a_name_bound_outside: "let m = open(); loop { let g = m.lock()?; drop(g); e.wait(t)?; }"
            => ["e.wait -> lock `m`"];
    }
}

mod branches {
    use crate::common::hints;

    shapes! {
        /// §5.4.1: two methods of one object.
        both_ways_lock_the_same: "e.wait(t)?; if read() > A { valve.lock(); open(); } else {
            valve.lock(); close(); }" => ["e.wait -> lock `valve`"];
        neither_way_locks: "e.wait(t)?; if read() { f(); } m.lock();" => ["e.wait -> lock `m`"];
        known_in_time: "let fast = x(); e.wait(t)?; if fast { a.lock(); } else { b.lock(); }"
            => ["e.wait -> if `fast`: lock `a`, else: lock `b`"];
        only_one_way_locks: "let fast = x(); e.wait(t)?; if fast && n > 3 { a.lock(); }"
            => ["e.wait -> if `fast`: if `n > 3`: lock `a`, else: none, else: none"];
        either_condition: "e.wait(t)?; if p || q { a.lock(); } else { b.lock(); }"
            => ["e.wait -> if `p`: lock `a`, else: if `q`: lock `a`, else: lock `b`"];
        the_opposite: "e.wait(t)?; if !p { a.lock(); } b.lock();"
            => ["e.wait -> if `p`: lock `b`, else: lock `a`"];
        asked_twice: "e.wait(t)?; if p { f(); } else { a.lock(); } if p { b.lock(); }"
            => ["e.wait -> if `p`: lock `b`, else: lock `a`"];
        a_match_that_is_known: "e.wait(t)?; match mode { Mode::Cold => a.lock(), _ => b.lock() };"
            => ["e.wait -> if `mode is Mode::Cold`: lock `a`, else: lock `b`"];
        a_match_that_does_not_matter: "match e.wait(t)? { 1 => m.lock(), x => { f(x); m.lock() } };"
            => ["e.wait -> lock `m`"];
        failures_do_not_count: "match e.wait(t) { Ok(n) => m.lock(), Err(_) => return };"
            => ["e.wait -> lock `m`"];
        a_failure_that_goes_on: "loop { match e.wait(t) { Ok(n) => { m.lock(); },
            Err(TimedOut) => { m.lock(); }, Err(other) => return Err(other) } }"
            => ["e.wait -> lock `m`"];
        a_failure_by_if: "if e.wait(t).is_err() { return; } m.lock();" => ["e.wait -> lock `m`"];
        a_failure_by_let: "let Ok(n) = e.wait(t) else { return }; m.lock();"
            => ["e.wait -> lock `m`"];
        a_panic_does_not_count: "e.wait(t)?; if read() { panic!(\"no\") } m.lock();"
            => ["e.wait -> lock `m`"];
        an_exit_does_not_count: "e.wait(t)?; if read() { thread::exit(1) } m.lock();"
            => ["e.wait -> lock `m`"];
        a_constant: "loop { e.wait(t)?; if true { m.lock(); } }" => ["e.wait -> lock `m`"];
        a_short_cut: "e.wait(t)?; let ok = p && m.lock().is_ok(); b.lock();"
            => ["e.wait -> if `p`: lock `m`, else: lock `b`"];
        a_name_that_hides_another: "e.wait(t)?; { let n = f(); g(n); } m.lock();"
            => ["e.wait -> lock `m`"];
        fields_stay_if_nobody_touches_them: "e.wait(t)?; g(); if self.cold { a.lock(); }"
            => ["e.wait -> if `self.cold`: lock `a`, else: none"];
    }
}

mod said {
    use crate::common::hints;

    shapes! {
        none: "#[hint(none)] e.wait(t)?; m.lock();" => ["e.wait -> none"];
        this_one: "#[hint(self.m)] e.wait(t)?; if read() { self.m.lock(); }"
            => ["e.wait -> lock `self.m`"];
        on_a_let: "#[hint(m)] let n = e.wait(t)?; if n > 1 { m.lock(); }" => ["e.wait -> lock `m`"];
        on_an_assignment: "#[hint(m)] n = e.wait(t)?; if n > 1 { m.lock(); }"
            => ["e.wait -> lock `m`"];
        on_a_loop: "#[hint(none)] loop { e.wait(t)?; m.lock(); }" => ["e.wait -> none"];
        a_call_that_locks: "e.wait(t)?; #[hint(locks(m))] valve.open(); b.lock();"
            => ["e.wait -> lock `m`"];
        a_call_that_blocks: "e.wait(t)?; #[hint(blocks)] valve.open(); m.lock();"
            => ["e.wait -> none"];
        a_call_that_is_another: "e.wait(t)?; #[hint(ignore)] cake.take(piece); m.lock();"
            => ["e.wait -> lock `m`"];
        a_closure_that_locks: "e.wait(t)?; #[hint(locks(m))] with(|| m.lock()); b.lock();"
            => ["e.wait -> lock `m`"];
    }
}
