//! Every function gets an answer and no panic.

use diapason_hints_logic::{expand, listing};
use diapason_random::Random;
use std::str::FromStr;

const WORDS: &[&str] = &[
    "fn",
    "f",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "let",
    "mut",
    "m",
    "x",
    "=",
    "==",
    "+=",
    "&&",
    "||",
    "|",
    "!",
    "&",
    ".",
    "..",
    "..=",
    ",",
    ";",
    ":",
    "'a",
    "'a:",
    "loop",
    "while",
    "for",
    "in",
    "if",
    "else",
    "match",
    "=>",
    "break",
    "continue",
    "return",
    "Ok",
    "Err",
    "?",
    "0",
    "1",
    "\"s\"",
    ".lock()",
    ".wait(t)",
    ".take(t)",
    "move",
    "async",
    "unsafe",
    "#[hint(none)]",
    "#[hint(m)]",
    "#[hint(locks(m))]",
    "#[hints]",
    "panic!()",
    "log!(m.lock())",
    "#",
    "_",
    "e.wait(t)?;",
    "m.lock()?;",
    "if c {",
    "} else {",
    "loop {",
    "for i in 0..n {",
    "work(\"w\", || {",
    "});",
    "match c {",
    "Ok(n) =>",
    "Err(_) =>",
    "let Ok(x) =",
    "else { return };",
    "break 'a;",
    "'a: {",
];

fn text(random: &mut Random, length: usize) -> String {
    (0..length).map(|_| format!("{} ", random.pick(WORDS))).collect()
}

/// Closes what is open, so that more of the soup is a function.
fn closed(text: &str) -> String {
    let mut open = Vec::new();
    let mut kept = String::from("fn task() {");
    for c in text.chars() {
        match c {
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            ')' | ']' | '}' if open.pop() != Some(c) => return kept + "}",
            _ => {}
        }
        kept.push(c);
    }
    kept.extend(open.into_iter().rev());
    kept + "}"
}

/// Throws `count` texts at everything; how many were functions.
fn soup(seed: u64, count: usize) -> usize {
    let mut random = Random::new(seed);
    let mut functions = 0;
    for _ in 0..count {
        let length = 1 + random.index(24);
        let source = closed(&text(&mut random, length));
        let attributed = format!("#[hints] {source}");
        if let Ok(listing) = listing(&attributed) {
            functions += 1;
            let _ = listing.render();
            assert!(listing.problems.iter().all(|p| !p.what.is_empty() && !p.remedy.is_empty()));
        }
        if let Ok(tokens) = proc_macro2::TokenStream::from_str(&source) {
            let out = expand(&Default::default(), tokens);
            assert!(!out.is_empty(), "{source}");
        }
    }
    functions
}

#[test]
fn soup_never_panics() {
    assert!(soup(1, 3_000) > 150);
}

#[test]
#[ignore = "a campaign of minutes"]
fn much_soup_never_panics() {
    assert!(soup(2, 200_000) > 10_000);
}
