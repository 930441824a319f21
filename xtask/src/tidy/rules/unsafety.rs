//! Rules about `unsafe`: few places, each argued.

use super::super::Problem;
use super::super::ratchets::{Measure, Measured};
use super::super::source::{Source, Tree, words};
use std::collections::BTreeMap;

/// Lines of code of one statement that may stand between the argument and its `unsafe`.
const STATEMENT_LINES: usize = 3;

/// Before each `unsafe` block or implementation stands why it is sound.
pub fn argued(source: &Source) -> Vec<Problem> {
    let lines: Vec<&str> = source.text.lines().collect();
    let blocks = source.code_lines().filter(|(_, code)| {
        words(code, "unsafe").any(|at| {
            let rest = code[at + "unsafe".len()..].trim_start();
            source.is_rust() && (rest.starts_with('{') || rest.starts_with("impl"))
        })
    });
    let silent = blocks.filter(|(line, _)| !argued_before(&lines[..*line]));
    silent
        .map(|(line, _)| {
            let text = "say why this is sound, in a `// SAFETY:` comment before it";
            Problem::new(&source.path, line, text)
        })
        .collect()
}

/// Returns whether there is an argument above, or on, the last of these lines.
fn argued_before(lines: &[&str]) -> bool {
    let is_comment = |line: &&str| line.trim_start().starts_with("//");
    let Some((own, above)) = lines.split_last() else { return false };
    if own.contains("SAFETY:") {
        return true;
    }
    let comment_end = above.iter().rposition(is_comment).map_or(0, |at| at + 1);
    let code = &above[comment_end..];
    let ended = code.iter().any(|line| line.trim_end().ends_with([';', '}']));
    if code.len() > STATEMENT_LINES || ended {
        return false;
    }
    let comment = above[..comment_end].iter().rev().take_while(|line| is_comment(line));
    comment.into_iter().any(|line| line.contains("SAFETY:"))
}

/// Returns how often each package says `unsafe`.
pub fn count(tree: &Tree) -> Vec<Measured> {
    let mut packages: BTreeMap<&str, (&str, usize, u64)> = BTreeMap::new();
    for file in tree.files.iter().filter(|file| file.is_rust()) {
        let hits = file.code_lines().map(|(line, code)| (line, words(code, "unsafe").count()));
        for (line, hits) in hits.filter(|(_, hits)| *hits > 0) {
            let package = tree.package(&file.path).unwrap_or("");
            let entry = packages.entry(package).or_insert((&file.path, line, 0));
            entry.2 += hits as u64;
        }
    }
    let measured = packages.into_iter().map(|(name, (file, line, value))| Measured {
        measure: Measure::Unsafe,
        name: name.into(),
        file: file.into(),
        line,
        value,
    });
    measured.collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::fires;
    use super::*;

    #[test]
    fn silent_unsafety_is_found() {
        let silent = "fn f() {\n    let a = 1;\n    unsafe { g() }\n}\n";
        assert_eq!(fires(argued, "a.rs", silent), [3]);
        let elsewhere = "// SAFETY: of another.\nlet a = 1;\nunsafe { g() };\n";
        assert_eq!(fires(argued, "a.rs", elsewhere), [3]);
        assert_eq!(fires(argued, "a.rs", "unsafe impl Send for A {}\n"), [1]);
    }

    #[test]
    fn argued_unsafety_passes() {
        for text in [
            "// SAFETY: because.\nunsafe { g() }\n",
            "// SAFETY: because of a,\n// and of b.\nlet x =\n    unsafe { g() };\n",
            "unsafe { g() } // SAFETY: because.\n",
            "unsafe fn f();\n// unsafe { }\nlet s = \"unsafe {\";\n",
        ] {
            assert_eq!(fires(argued, "a.rs", text), [0; 0], "{text}");
        }
    }

    #[test]
    fn unsafety_is_counted_by_package() {
        let files = [
            ("a/Cargo.toml", ""),
            ("a/src/lib.rs", "#![forbid(unsafe_code)]\nunsafe fn f() { unsafe { g() } }\n"),
            ("a/src/other.rs", "// unsafe\nunsafe impl Send for X {}\n"),
        ];
        let files = files.map(|(path, text)| Source::new(path, text)).to_vec();
        let counted = count(&Tree { files, root: String::new() });
        assert_eq!((counted[0].name.as_str(), counted[0].value), ("a", 3));
        assert_eq!(counted.len(), 1);
    }
}
