//! Bounds of jobs: with the lists that they need, and with the mutexes that they share.

use diapason_plan::Plan;
use diapason_plan::jobs::JobBound;
use diapason_system::parse;

const HEAD: &str = "[system]\nname = \"s\"\n[[semaphore]]\nname = \"m\"\n\
                    [[semaphore]]\nname = \"n\"\n";

/// Returns a process on a VCPU of its own, `on-` and its name.
fn task(name: &str, period: &str, vcpu: &str, process: &str) -> String {
    format!(
        "[[vcpu]]\nname = \"on-{name}\"\nbudget = \"1ms\"\nperiod = \"{period}\"\n{vcpu}\n\
         [[process]]\nname = \"{name}\"\npriority = 1\nvcpu = \"on-{name}\"\n{process}\n"
    )
}

fn section(process: &str, mutex: &str, longest: &str, more: &str) -> String {
    format!(
        "[[section]]\nprocess = \"{process}\"\nmutex = \"{mutex}\"\nlongest = \"{longest}\"\n\
         {more}\n"
    )
}

fn plan(text: &str) -> Plan {
    let system = parse("s.toml", &(HEAD.to_owned() + text)).unwrap_or_else(|why| panic!("{why}"));
    Plan::of(&system)
}

/// Returns the findings of a plan.
fn refused(text: &str) -> String {
    let found = plan(text).findings;
    found.iter().map(|found| found.plain()).collect::<Vec<_>>().join("\n")
}

/// Returns the job on the first VCPU of a plan that holds.
#[track_caller]
fn job(text: &str) -> JobBound {
    let plan = plan(text);
    assert!(plan.holds(), "{}", refused(text));
    *plan.job(0).expect("it is described")
}

#[test]
fn a_job_in_each_period_needs_no_list() {
    let one = |vcpu: &str| job(&task("a", "10ms", vcpu, ""));
    let short = one("job = \"900us\"\nreplenishments = 2");
    assert_eq!((short.every.0, short.wakes), (10_000_000, 2));
    assert!(!short.relies && !short.waits && short.done.0 < 1_000_000);
    let rare = one("job = \"900us\"\nreplenishments = 2\ninterval = \"25ms\"");
    assert_eq!((rare.done, rare.wakes, rare.relies), (short.done, 2, false));
    // Work beyond a budget waits for the next one, wherever the list put it.
    let long = one("job = \"1500us\"\nreplenishments = 2\ninterval = \"25ms\"");
    assert!(long.waits && !long.relies && long.done.0 > 20_000_000, "{long:?}");
    let soon = refused(&task("a", "10ms", "job = \"1500us\"\ninterval = \"19ms\"", ""));
    assert!(soon.contains("and the next one begins after 19.000 ms"), "{soon}");
}

#[test]
fn a_job_that_finds_budget_is_done_before_the_next_one_begins() {
    let urgent = "[[vcpu]]\nname = \"u\"\nbudget = \"105ms\"\nperiod = \"126ms\"\n\
                  replenishments = 2\n";
    let jobs = |interval: &str| {
        format!(
            "[[vcpu]]\nname = \"w\"\nbudget = \"78ms\"\nperiod = \"500ms\"\njob = \"11ms\"\n\
             interval = \"{interval}\"\n{urgent}\
             [[process]]\nname = \"p\"\npriority = 1\nvcpu = \"w\"\n"
        )
    };
    // In a run the third job was done after 130.968 ms, the first one after 116 ms.
    let found = refused(&jobs("100ms"));
    let title = "a job on `w` may take 116.059 ms, and the next one begins after 100.000 ms";
    assert!(found.contains(title), "{found}");
    let found = job(&jobs("117ms"));
    assert!(found.relies && !found.waits && found.done < found.every, "{found:?}");
}

#[test]
fn a_job_has_its_vcpu_for_itself() {
    let beside = "[[process]]\nname = \"b\"\npriority = 1\nvcpu = \"on-a\"\n";
    let found = refused(&(task("a", "10ms", "job = \"500us\"", "") + beside));
    let title = "a job on `on-a` has no bound: `a` shares its VCPU with another process";
    assert!(found.contains(title), "{found}");
}

#[test]
fn a_job_on_a_vcpu_to_which_threads_move_is_alone_there() {
    let users = |names: &[&str], threads: u8| {
        let user = |name: &&str| {
            format!(
                "[[process]]\nname = \"{name}\"\npriority = 1\nthreads = {threads}\n\
                 uses = [\"v\"]\n"
            )
        };
        let users: String = names.iter().map(user).collect();
        format!(
            "[[vcpu]]\nname = \"v\"\nbudget = \"1ms\"\nperiod = \"10ms\"\njob = \"500us\"\n{users}"
        )
    };
    assert!(!job(&users(&["a"], 2)).waits);
    let title = "a job on `v` has no bound: up to 2 threads may be on `v`";
    for (names, threads) in [(&["a", "b"][..], 2), (&["a"], 3)] {
        let found = refused(&users(names, threads));
        assert!(found.contains(title), "{found}");
    }
    // The first thread of a process is where its `vcpu` says, and no run has a job to measure.
    let found = refused(&users(&["a"], 1));
    assert!(found.contains("a job on `v` has no bound: no thread can be on `v`"), "{found}");
}

#[test]
fn several_jobs_in_a_period_need_places_for_all_and_for_the_start() {
    let three =
        |list: u8| format!("job = \"300us\"\ninterval = \"3334us\"\nreplenishments = {list}");
    let text = |list| task("a", "10ms", &three(list), "");
    let found = job(&text(5));
    assert!(found.relies && !found.waits && found.done.0 < 350_000, "{found:?}");
    assert_eq!(found.wakes, 4);
    for list in [2, 4] {
        let found = refused(&text(list));
        let title = format!("jobs wake `on-a` up to 4 times in a period; its list has {list}");
        assert!(found.contains(&title) && found.contains("`replenishments = 5`"), "{found}");
    }
    // No list is that long.
    let text = task("a", "10ms", "job = \"100us\"\ninterval = \"1ms\"", "");
    let found = refused(&text);
    assert!(found.contains("11 times in a period; its list has 8"), "{found}");
    assert!(found.contains("a list has 8 at most"), "{found}");
}

#[test]
fn jobs_in_pieces_need_a_place_for_each() {
    let pieces = |list: u8, work: u64| {
        task("a", "10ms", &format!("job = \"{work}us\"\nwakes = 3\nreplenishments = {list}"), "")
    };
    let found = job(&pieces(5, 400));
    assert!(found.relies && found.wakes == 4, "{found:?}");
    assert!(refused(&pieces(4, 400)).contains("`replenishments = 5`"));
    // The last piece of one job and the first of the next may be in one period.
    let found = refused(&pieces(8, 900));
    assert!(found.contains("and its budget does not cover that"), "{found}");
}

#[test]
fn more_jobs_than_a_budget_are_refused() {
    let jobs =
        |work: u64, every: &str| task("a", "10ms", &format!("job = \"{work}us\"\n{every}"), "");
    assert!(plan(&jobs(600, "")).holds());
    for text in [jobs(600, "interval = \"5ms\""), jobs(1_100, "")] {
        let found = refused(&text);
        assert!(found.contains("each, and its budget does not cover that"), "{found}");
        assert!(found.contains("the kernel leaves ") && !found.contains("mutex"), "{found}");
    }
}

/// Two tasks, the first of which has a job, and what more is said.
fn two(second: &str, more: &str) -> String {
    let uses = "uses = [\"m\"]";
    task("a", "10ms", "job = \"500us\"", uses) + &task("b", "20ms", second, uses) + more
}

#[test]
fn a_job_waits_for_a_holder_below_it() {
    let alone = job(&task("a", "10ms", "job = \"500us\"", ""));
    let both = section("a", "m", "10us", "") + &section("b", "m", "70us", "");
    let found = job(&two("", &both));
    // The section, and the turns to its holder and back.
    assert!((70_000..76_000).contains(&found.help.0), "{found:?}");
    assert!(found.done.0 - alone.done.0 >= found.help.0, "{found:?}");
    let twice = section("a", "m", "10us", "times = 2") + &section("b", "m", "70us", "");
    assert_eq!(job(&two("", &twice)).help.0, 2 * found.help.0);
}

#[test]
fn a_holder_above_needs_help_only_if_its_budget_may_end() {
    let uses = "uses = [\"m\"]";
    let sections = section("a", "m", "10us", "") + &section("b", "m", "70us", "");
    let text = |above: &str| {
        task("a", "30ms", "job = \"500us\"", uses) + &task("b", "20ms", above, uses) + &sections
    };
    assert_eq!(job(&text("job = \"400us\"")).help.0, 0);
    let may_end = job(&text("replenishments = 2"));
    assert!(may_end.help.0 >= 4 * 70_000, "{may_end:?}");
}

/// Each budget is known to last once all above it are.
#[test]
fn budgets_last_from_the_most_urgent_down() {
    let uses = "uses = [\"m\"]";
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let mut text = String::new();
    for (name, period) in
        names.iter().zip(["80ms", "70ms", "60ms", "50ms", "40ms", "30ms", "20ms", "10ms"])
    {
        text += &task(name, period, "job = \"500us\"\nreplenishments = 2", uses);
        text += &section(name, "m", "70us", "");
    }
    // Nobody is below the first one, and nobody above it needs help.
    assert_eq!(job(&text).help.0, 0);
}

#[test]
fn a_process_without_a_vcpu_holds_it_below_everybody() {
    let uses = "uses = [\"m\"]";
    let text = task("a", "10ms", "job = \"500us\"", uses)
        + &format!("[[process]]\nname = \"b\"\npriority = 60\n{uses}\n")
        + &section("a", "m", "10us", "");
    let found = refused(&text);
    assert!(found.contains("nothing says how long `b` holds the mutex `m`"), "{found}");
    assert!(job(&(text + &section("b", "m", "70us", ""))).help.0 >= 70_000);
}

#[test]
fn every_holder_says_how_long() {
    let found = refused(&two("", ""));
    for name in ["a", "b"] {
        let title = format!(
            "a job on `on-a` has no bound: nothing says how long `{name}` holds the mutex `m`"
        );
        assert!(found.contains(&title), "{found}");
        assert!(found.contains(&format!("`process = \"{name}\"`, `mutex = \"m\"`")), "{found}");
    }
    // Where no job is described, nothing is promised that could be wrong; the plan says so.
    let uses = "uses = [\"m\"]";
    let without = plan(&(task("a", "10ms", "", uses) + &task("b", "20ms", "", uses)));
    assert!(without.holds());
    assert_eq!(without.unsaid, ["m"]);
    assert!(plan(&task("a", "10ms", "", uses)).unsaid.is_empty(), "nobody else locks it");
}

#[test]
fn what_a_holder_locks_inside_counts_too() {
    let uses = "uses = [\"m\", \"n\"]";
    let text = |inside: &str| {
        task("a", "10ms", "job = \"500us\"", "uses = [\"m\"]")
            + &task("b", "20ms", "", uses)
            + &task("c", "40ms", "", "uses = [\"n\"]")
            + &section("a", "m", "10us", "")
            + &section("b", "m", "70us", "")
            + &section("b", "n", "20us", inside)
    };
    // A lock beside the section delays no thread that waits for the section.
    let beside = job(&text("")).help.0;
    let inside = text("inside = \"m\"");
    assert!(refused(&inside).contains("how long `c` holds the mutex `n`"));
    let nested = job(&(inside + &section("c", "n", "300us", ""))).help.0;
    assert!(nested >= beside + 300_000, "{nested} after {beside}");
}

#[test]
fn a_holder_on_a_vcpu_of_its_own_making_is_not_counted() {
    let both = section("a", "m", "10us", "") + &section("b", "m", "70us", "");
    let uses = "uses = [\"m\"]";
    let text = task("a", "10ms", "job = \"500us\"", uses)
        + &task("b", "20ms", "", &format!("{uses}\nvcpus = 1"))
        + &both;
    assert!(refused(&text).contains("`b` may hold the mutex `m` on an I/O VCPU"));
}

#[test]
fn help_and_work_fit_one_budget() {
    let both = section("a", "m", "10us", "") + &section("b", "m", "600us", "");
    let found = refused(&two("", &both));
    assert!(found.contains("and its budget does not cover that"), "{found}");
    assert!(found.contains("of it for others that hold its mutexes"), "{found}");
}

/// Returns a system in which `a` may put its second thread on `v`, where jobs are, and `b` is
/// below.
fn moved(more: &str, sections: &str) -> String {
    let vcpu = "[[vcpu]]\nname = \"v\"\nbudget = \"1ms\"\nperiod = \"10ms\"\njob = \"300us\"\n";
    let own = format!("threads = 2\n{more}");
    let others = task("a", "40ms", "", &own) + &task("b", "20ms", "", "uses = [\"m\"]");
    vcpu.to_owned() + &others + sections
}

#[test]
fn a_job_of_a_thread_that_moves_waits_for_holders_too() {
    let with = |sections: &str| moved("uses = [\"v\", \"m\"]", sections);
    let found = refused(&with(""));
    let title = "a job on `v` has no bound: nothing says how long `b` holds the mutex `m`";
    assert!(found.contains(title), "{found}");
    let both = |longest: &str| section("a", "m", "20us", "") + &section("b", "m", longest, "");
    let [short, long] = ["50us", "150us"].map(|longest| job(&with(&both(longest))));
    assert_eq!(long.help.0 - short.help.0, 100_000);
    assert!(short.help.0 > 50_000 && long.done > short.done, "{short:?}, {long:?}");
}

#[test]
fn no_bound_counts_a_mutex_without_a_name() {
    assert_eq!(job(&moved("uses = [\"v\"]", "")).help.0, 0);
    let title = "`a` has threads on different VCPUs and semaphores without a name";
    let found = refused(&moved("uses = [\"v\"]\nsemaphores = 1", ""));
    assert!(found.contains(title) && found.contains("`semaphores = 0` in `a`"), "{found}");
    // Inside a section of `m`, too, `a` may wait for its own thread.
    let both = section("a", "m", "20us", "") + &section("b", "m", "20us", "");
    let holder = |more: &str| {
        let jobs = task("b", "20ms", "job = \"300us\"", "uses = [\"m\"]");
        let vcpu = "[[vcpu]]\nname = \"v\"\nbudget = \"1ms\"\nperiod = \"30ms\"\n";
        let own = format!("threads = 2\nuses = [\"v\", \"m\"]\n{more}");
        jobs + vcpu + &task("a", "40ms", "", &own) + &both
    };
    assert!(plan(&holder("")).holds(), "{}", refused(&holder("")));
    let found = refused(&holder("semaphores = 1"));
    assert!(found.contains("a job on `on-b` has no bound") && found.contains(title), "{found}");
}
