//! The code that the attribute writes.

use diapason_hints_logic::{expand, listing};
use proc_macro2::TokenStream;
use std::str::FromStr;

fn tokens(text: &str) -> TokenStream {
    TokenStream::from_str(text).unwrap()
}

/// The function with this body becomes one with that body.
fn becomes(body: &str, expected: &str) {
    let out = expand(&TokenStream::new(), tokens(&format!("fn task() {{ {body} }}")));
    let expected = tokens(&format!("fn task() {{ {expected} }}"));
    assert_eq!(without_spaces(&out), without_spaces(&expected));
}

fn without_spaces(tokens: &TokenStream) -> String {
    tokens.to_string().replace(' ', "")
}

#[test]
fn a_hint_is_one_more_argument() {
    becomes("e.wait(t)?; m.lock()?;", "e.wait_then(t, (m).hint())?; m.lock()?;");
    becomes("loop { m.lock(); jobs.wait(); }", "loop { m.lock(); jobs.wait_then((m).hint()); }");
    becomes(
        "time::sleep(t); self.m.lock();",
        "time::sleep_then(t, (self.m).hint()); self.m.lock();",
    );
    becomes(
        "Event::wait(&e, t); Mutex::lock(&m);",
        "Event::wait_then(&e, t, (m).hint()); Mutex::lock(&m);",
    );
}

#[test]
fn without_a_hint_nothing_changes() {
    becomes("m.lock()?; e.wait(t)?;", "m.lock()?; e.wait(t)?;");
    becomes(
        "for i in 0..n { m.lock(); e.wait_then(t, h); }",
        "for i in 0..n { m.lock(); e.wait_then(t, h); }",
    );
    becomes("#[hint(none)] e.wait(t)?; m.lock()?;", "e.wait(t)?; m.lock()?;");
}

#[test]
fn a_condition_is_asked_at_the_wait() {
    becomes(
        "e.wait(t)?; if p { a.lock(); }",
        "e.wait_then(t, if p { (a).hint() } else { ::diapason_rt::Hint::NONE })?;
         if p { a.lock(); }",
    );
    becomes(
        "e.wait(t)?; match x { X::A => a.lock(), _ => b.lock() };",
        "e.wait_then(t, if ::core::matches!(x, X::A) { (a).hint() } else { (b).hint() })?;
         match x { X::A => a.lock(), _ => b.lock() };",
    );
    becomes(
        "e.wait(t)?; for _ in 0..n { a.lock(); } b.lock();",
        "e.wait_then(t, if (0..n).is_empty() { (b).hint() } else { (a).hint() })?;
         for _ in 0..n { a.lock(); } b.lock();",
    );
}

#[test]
fn a_counted_loop_knows_its_last_turn() {
    becomes(
        "'l: for i in 0..n { e.wait(t)?; if f(i) { continue 'l; } } m.lock();",
        "match ::core::iter::IntoIterator::into_iter(0..n) {
            mut turns_0 => 'l: while let ::core::option::Option::Some(i) =
                ::core::iter::Iterator::next(&mut turns_0) {
                e.wait_then(t, if turns_0.is_empty() { (m).hint() }
                    else { ::diapason_rt::Hint::NONE })?;
                if f(i) { continue 'l; }
            }
        } m.lock();",
    );
}

#[test]
fn a_loop_whose_last_turn_does_not_matter_stays() {
    becomes(
        "for i in 0..n { m.lock(); e.wait(t)?; } m.lock();",
        "for i in 0..n { m.lock(); e.wait_then(t, (m).hint())?; } m.lock();",
    );
}

/// The trick of the rewritten loop: what is left of a range is empty in the last turn only.
#[test]
fn a_range_is_empty_in_its_last_turn() {
    let mut exclusive = 2..5;
    let mut seen = Vec::new();
    while let Some(i) = exclusive.next() {
        seen.push((i, exclusive.is_empty()));
    }
    assert_eq!(seen, [(2, false), (3, false), (4, true)]);
    let mut inclusive = 254u8..=255;
    seen.clear();
    while let Some(i) = inclusive.next() {
        seen.push((i.into(), inclusive.is_empty()));
    }
    assert_eq!(seen, [(254, false), (255, true)]);
}

#[test]
fn refusals_keep_the_function_beside_the_error() {
    let function = "fn task() { e.wait(t)?; next().lock(); }";
    let out = expand(&TokenStream::new(), tokens(function));
    let shown = out.to_string();
    assert!(shown.contains("compile_error"), "{shown}");
    assert!(shown.contains("the mutex that follows `e.wait` cannot be decided"), "{shown}");
    assert!(without_spaces(&out).ends_with(&without_spaces(&tokens(function))), "{shown}");
    let out = expand(&tokens("fast"), tokens("fn task() {}")).to_string();
    assert!(out.contains("takes no arguments"), "{out}");
    let out = expand(&TokenStream::new(), tokens("struct Task;")).to_string();
    assert!(out.contains("is for functions") && out.ends_with("struct Task ;"), "{out}");
}

#[test]
fn other_functions_inside_are_left_alone() {
    becomes(
        "fn inner() { e.wait(t); m.lock(); } e.wait(t); m.lock();",
        "fn inner() { e.wait(t); m.lock(); } e.wait_then(t, (m).hint()); m.lock();",
    );
}

#[test]
fn a_listing_shows_every_task_of_a_file() {
    let source = "//! A file.\n#[hints]\nfn a() {\n    e.wait(t);\n    m.lock();\n}\n\
        mod inner {\n    impl X {\n        #[diapason_hints::hints]\n        fn b(&self) {\n\
        \x20           loop {\n                self.m.lock();\n                jobs.wait();\n\
        \x20           }\n        }\n    }\n}\n#[hints]\nfn c() {}\nfn d() { e.wait(t); }\n\
        #[hints]\nfn wrong() {\n    e.wait(t);\n    next().lock();\n}\n";
    let listing = listing(source).unwrap();
    assert_eq!(
        listing.render(),
        "a: line 4: e.wait -> lock `m`\nb: line 13: jobs.wait -> lock `self.m`\n\
         c: no blocking call\n"
    );
    assert_eq!(listing.problems.len(), 1);
    assert_eq!(listing.problems[0].span.start().line, 23);
    assert!(diapason_hints_logic::listing("fn (").is_err());
}
