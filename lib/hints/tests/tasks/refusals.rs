//! An undecidable case is reported with its place and remedy; it is never guessed.

use crate::common::{hints, problems};

/// `body` has exactly one problem, which contains these words.
fn refused(body: &str, words: &[&str]) {
    let found = problems(body);
    assert_eq!(found.len(), 1, "{body}: {found:#?}");
    for word in words {
        assert!(found[0].contains(word), "{body}: no \"{word}\" in: {}", found[0]);
    }
    assert!(found[0].contains("\n  remedy: "), "{}", found[0]);
}

const SAY: &str = "remedy: put `#[hint(MUTEX)]` or `#[hint(none)]` before this statement";

#[test]
fn a_condition_that_the_wait_decides() {
    let body = "let n = e.wait(t)?; if n > 1 { a.lock(); } else { b.lock(); }";
    refused(body, &["follows `e.wait`", "`n > 1` at line 1 depends on line 1", SAY]);
    let body = "e.wait(t)?; if read() { a.lock(); }";
    refused(body, &["`read()` at line 1", "not known before", "lock `a`", "none", SAY]);
    refused("match e.wait(t)? { 1 => a.lock(), _ => b.lock() };", &["lock `a`", "lock `b`"]);
    refused("if let Some(n) = e.wait(t).ok() { a.lock(); }", &["lock `a`", "none"]);
    refused("while e.wait(t)? > 1 { a.lock(); } b.lock();", &["lock `a`", "lock `b`"]);
}

#[test]
fn a_condition_that_changes_on_the_way() {
    refused("e.wait(t)?; n = f(); if n > 1 { a.lock(); }", &["`n > 1`", "depends on"]);
    refused("e.wait(t)?; n += 1; if n > 1 { a.lock(); }", &["`n > 1`", "depends on"]);
    refused("e.wait(t)?; f(&mut n); if n > 1 { a.lock(); }", &["`n > 1`", "depends on"]);
    refused("let mut n = 0; e.wait(t)?; n.set(2); if n > 1 { a.lock(); }", &["depends on"]);
    refused("e.wait(t)?; self.read(); if self.cold { a.lock(); }", &["`self.cold`", "depends on"]);
    refused("while i < n { e.wait(t)?; i += 1; } m.lock();", &["`i < n`", "depends on"]);
    let hidden = "let mut n = 0; let f = || n += 1; e.wait(t)?; f(); if n > 1 { a.lock(); }";
    refused(hidden, &["`n > 1`", "not known"]);
}

#[test]
fn a_mutex_that_is_found_too_late() {
    refused("e.wait(t)?; let m = next(); m.lock();", &["mutex `m` gets its value", SAY]);
    refused("loop { let m = next(); m.lock(); e.wait(t)?; }", &["`m`", "gets its value"]);
    refused("loop { m.lock(); e.wait(t)?; m = next(); }", &["`m`", "gets its value"]);
    refused("for m in list { m.lock(); e.wait(t)?; }", &["`m`", "gets its value"]);
    refused("for i in 0.. { v[i].lock(); e.wait(t)?; }", &["`v[i]`", "gets its value"]);
    refused("if let Some(m) = x { e.wait(t)?; } m.lock();", &["`m`", "gets its value"]);
    refused("{ let m = x; e.wait(t)?; } m.lock();", &["`m`", "gets its value"]);
}

#[test]
fn a_mutex_that_is_found_with_effects() {
    refused("e.wait(t)?; self.next().lock();", &["`self.next()`", "effects", SAY]);
    refused("e.wait(t)?; v[f(x)].lock();", &["`f(x)`", "effects"]);
    // It matters only where it is a hint.
    assert_eq!(hints("self.next().lock(); e.wait(t);"), ["e.wait -> none"]);
}

#[test]
fn a_number_of_turns_that_is_not_to_be_seen() {
    let body = "for x in list { e.wait(t)?; } m.lock();";
    refused(body, &["number of turns of the loop at line 1", "`for i in 0..n`", SAY]);
    refused("e.wait(t)?; for i in 0..f() { a.lock(); } b.lock();", &["has a turn at all"]);
}

#[test]
fn code_that_runs_nobody_knows_when() {
    let body = "e.wait(t)?; each(|x| m.lock()); b.lock();";
    refused(body, &["a closure that blocks", "#[hint(locks(MUTEX))]"]);
    refused("each(|x| { e.wait(t); });", &["a closure that blocks"]);
    refused("check!(m.lock().is_ok()); f();", &["`lock` inside a macro", "#[hint(ignore)]"]);
}

#[test]
fn words_about_a_statement_that_make_no_sense() {
    for (body, word) in [
        ("#[hint] e.wait(t);", "cannot be read"),
        ("#[hint()] e.wait(t);", "cannot be read"),
        ("#[hint(3)] e.wait(t);", "is no mutex"),
        ("#[hint(next())] e.wait(t);", "has effects"),
        ("#[hint(locks(a, b))] f();", "names one mutex"),
        ("#[hint(none)] #[hint(m)] e.wait(t);", "two `#[hint]`"),
        ("#[hint(m)] f();", "without a blocking call"),
        ("#[hint(none)] m.lock();", "without a blocking call"),
    ] {
        refused(body, &[word]);
    }
}

#[test]
fn too_much_of_something() {
    let nested = format!("{}e.wait(t);{}", "loop {".repeat(9), "}".repeat(9));
    refused(&nested, &["more than 6 loops", "a function of their own"]);
    let chain: String = (0..20).map(|i| format!("if c{i} {{ m{i}.lock(); }}")).collect();
    refused(&format!("e.wait(t)?; {chain}"), &["more than 16 conditions"]);
}

#[test]
fn a_task_that_is_no_ordinary_function() {
    let mut function = syn::parse_str("async fn task() { e.wait(t); }").unwrap();
    let problems = diapason_hints_logic::analyse(&mut function).unwrap_err();
    assert!(problems[0].to_string().contains("`async`"));
}

#[test]
fn problems_come_in_the_order_of_the_text() {
    let body = "a.wait(t)?; x().lock();\n b.wait(t)?; y().lock();\n c.wait(t)?; z().lock();";
    let found = problems(body);
    let calls: Vec<&str> = found.iter().filter_map(|p| p.split('`').nth(1)).collect();
    assert_eq!(calls, ["a.wait", "b.wait", "c.wait"]);
}
