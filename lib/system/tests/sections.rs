//! The rules of `[[section]]`: what follows from one, and what cannot be one.

use crate::common::problems;
use diapason_system::{CriticalSection, parse, parse_cores};

/// Two processes that share two mutexes and a counting semaphore, and one that uses none.
const HEAD: &str = "[system]\nname = \"s\"\n\
    [[process]]\nname = \"a\"\npriority = 1\nuses = [\"m\", \"n\", \"count\"]\n\
    [[process]]\nname = \"b\"\npriority = 1\nuses = [\"n\", \"m\"]\n\
    [[process]]\nname = \"apart\"\npriority = 1\n\
    [[semaphore]]\nname = \"count\"\nkind = \"counting\"\n\
    [[semaphore]]\nname = \"n\"\n[[semaphore]]\nname = \"m\"\n";

/// Line 1 is the header, 2 the process, 3 the mutex, 4 the longest; then what more there is.
fn section(process: &str, mutex: &str, longest: &str, more: &str) -> String {
    format!(
        "[[section]]\nprocess = \"{process}\"\nmutex = \"{mutex}\"\n\
         longest = \"{longest}\"\n{more}\n"
    )
}

#[track_caller]
fn bad(sections: &str, (line, column): (usize, usize), title: &str, help: &str) {
    let found = problems(&(HEAD.to_owned() + sections));
    let items = found.items();
    assert_eq!(items.len(), 1, "{found}");
    assert_eq!(items[0].title, title, "{found}");
    assert!(items[0].help.contains(help), "{found}");
    assert_eq!((items[0].line, items[0].column), (HEAD.lines().count() + line, column), "{found}");
}

#[test]
fn an_outer_section_comes_before_its_inner_ones() {
    let text = section("a", "n", "2us", "times = 3\ninside = \"m\"")
        + &section("a", "m", "9us", "times = 2")
        + &section("b", "n", "1ms", "");
    let system = parse("f", &(HEAD.to_owned() + &text)).unwrap();
    let found = |process, mutex, longest_ns, times, inside| CriticalSection {
        process,
        mutex,
        longest_ns,
        times,
        inside,
    };
    let outer = found(0, 2, 9_000, 2, None);
    let other = found(1, 1, 1_000_000, 1, None);
    assert_eq!(system.sections, [outer, other, found(0, 1, 2_000, 3, Some(0))]);
}

#[test]
fn it_is_of_a_process_that_may_lock_a_mutex() {
    bad(
        &section("aa", "m", "1us", ""),
        (2, 11),
        "no process named `aa` is declared",
        "did you mean `a`?",
    );
    bad(&section("apart", "m", "1us", ""), (3, 9), "`apart` may not lock `m`", "add `m` to `uses`");
    bad(
        &section("a", "mm", "1us", ""),
        (3, 9),
        "no mutex named `mm` is declared",
        "did you mean `m`?",
    );
    let counts = "`count` is a counting semaphore, which has no holder";
    bad(&section("a", "count", "1us", ""), (3, 9), counts, "name a mutex");
    bad(&section("a", "b", "1us", ""), (3, 9), "`b` is a process, not a mutex", "`[[semaphore]]`");
}

#[test]
fn it_says_whose_it_is_and_how_long() {
    let whole = section("a", "m", "1us", "");
    for (key, line, help) in [
        ("process", "process = \"a\"\n", "the `[[process]]` that locks"),
        ("mutex", "mutex = \"m\"\n", "the `[[semaphore]]` that it locks"),
        ("longest", "longest = \"1us\"\n", "from lock to unlock"),
    ] {
        let without = whole.replace(line, "");
        bad(&without, (1, 1), &format!("this section has no `{key}`"), help);
    }
    let found = problems(&(HEAD.to_owned() + &section("a", "m", "0us", "")));
    assert!(found.to_string().contains("`longest`"), "{found}");
    let found = problems(&(HEAD.to_owned() + &section("a", "m", "1us", "times = 0")));
    assert!(found.to_string().contains("`times`"), "{found}");
}

#[test]
fn a_process_declares_a_mutex_once() {
    let twice = section("a", "m", "1us", "") + &section("a", "m", "2us", "times = 2");
    bad(&twice, (6, 1), "`a` declares its section with `m` twice", "add up `times`");
}

#[test]
fn sections_nest_in_one_order() {
    let inner = |longest| section("a", "n", longest, "times = 2\ninside = \"m\"");
    bad(&inner("1us"), (6, 10), "`a` has no section with `m`", "`mutex = \"m\"`");
    let others = section("b", "m", "9us", "") + &inner("1us");
    bad(&others, (11, 10), "`a` has no section with `m`", "declare it");
    let title = "a section inside `m` is longer than that one";
    bad(&(section("a", "m", "9us", "") + &inner("5us")), (9, 11), title, "at least `times`");
    let whole = section("a", "m", "9us", "") + &inner("4us");
    parse("f", &(HEAD.to_owned() + &whole)).unwrap();
    let back = section("b", "n", "9us", "") + &section("b", "m", "1us", "inside = \"n\"");
    let title = "sections with `n` may wait for each other";
    bad(&(whole + &back), (8, 9), title, "lock mutexes in one order");
    let own = section("a", "m", "1us", "inside = \"m\"");
    bad(&own, (3, 9), "sections with `m` may wait for each other", "one order");
}

#[test]
fn each_core_has_its_own() {
    let text = "[system]\nname = \"s\"\ncores = 2\n\
        [[process]]\nname = \"a\"\npriority = 1\nuses = [\"m\"]\n\
        [[process]]\nname = \"b\"\npriority = 1\ncore = 1\nuses = [\"n\"]\n\
        [[semaphore]]\nname = \"n\"\n[[semaphore]]\nname = \"m\"\n"
        .to_owned();
    let text = text + &section("b", "n", "2us", "") + &section("a", "m", "1us", "");
    let cores = parse_cores("f", &text).unwrap();
    let longest = |core: usize| {
        let sections = cores[core].sections.iter();
        sections.map(|it| (it.process, it.mutex, it.longest_ns)).collect::<Vec<_>>()
    };
    assert_eq!((longest(0), longest(1)), (vec![(0, 0, 1_000)], vec![(0, 0, 2_000)]));
}
