//! Rules about what is written down, and what must not be.

use super::super::Problem;
use super::super::source::{Source, Tree, in_word};

/// Least lines of a README: what it is, and what it must not know.
const README_LINES_MIN: usize = 2;

/// Every module begins by saying what it is for.
pub fn module_header(source: &Source) -> Vec<Problem> {
    if !source.is_rust() || source.text.starts_with("//!") {
        return Vec::new();
    }
    vec![Problem::new(&source.path, 1, "begin with a `//!` line that says what this is for")]
}

/// Switching off a lint or a test needs a reason.
pub fn reasons(source: &Source) -> Vec<Problem> {
    if !source.is_rust() {
        return Vec::new();
    }
    let code = source.code.as_str();
    let starts = ["allow(", "expect(", "ignore"].into_iter().flat_map(|word| {
        let forms = ["#[", "#!["].map(|open| format!("{open}{word}"));
        forms.into_iter().flat_map(|form| {
            code.match_indices(form.as_str()).map(|(at, _)| at).collect::<Vec<usize>>()
        })
    });
    let silent = starts.filter(|at| {
        let end = code[*at..].find(']').map_or(code.len(), |length| at + length);
        let attribute = &code[*at..end];
        !attribute.contains("reason =") && !attribute.contains("ignore =")
    });
    silent
        .map(|at| {
            let line = code[..at].matches('\n').count() + 1;
            Problem::new(&source.path, line, "give the reason: `reason = \"…\"`")
        })
        .collect()
}

/// Every package says what it is.
pub fn readme(tree: &Tree) -> Vec<Problem> {
    let manifests = tree
        .files
        .iter()
        .filter(|file| file.path == "Cargo.toml" || file.path.ends_with("/Cargo.toml"));
    let missing = manifests.filter_map(|manifest| {
        let path = manifest.path.replace("Cargo.toml", "README.md");
        let readme = tree.files.iter().find(|file| file.path == path);
        let written = |file: &Source| file.text.lines().filter(|l| !l.trim().is_empty()).count();
        if readme.map_or(0, written) >= README_LINES_MIN {
            return None;
        }
        let text = format!("write at least {README_LINES_MIN} lines: what this folder is for");
        Some(Problem::new(&path, 1, text))
    });
    missing.collect()
}

/// A link in a document leads to a file or a folder of the project.
pub fn links(tree: &Tree) -> Vec<Problem> {
    let documents = tree.files.iter().filter(|file| file.path.ends_with(".md"));
    let all =
        documents.flat_map(|file| file.lines().map(move |(number, line)| (file, number, line)));
    let targets = all.flat_map(|(file, number, line)| {
        line.match_indices("](").filter_map(move |(at, open)| {
            let rest = &line[at + open.len()..];
            let target = rest.split([')', '#']).next().filter(|target| !target.is_empty())?;
            Some((file, number, target))
        })
    });
    let inside = targets.filter(|(_, _, target)| !target.contains("://"));
    let dead = inside.filter(|(file, _, target)| !exists(tree, &resolved(&file.path, target)));
    dead.map(|(file, number, target)| {
        Problem::new(&file.path, number, format!("`{target}` is not there: correct the link"))
    })
    .collect()
}

/// Returns the path that `target` means in the document at `document`.
fn resolved(document: &str, target: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            name => parts.push(name),
        }
    }
    parts.join("/")
}

fn exists(tree: &Tree, path: &str) -> bool {
    let folder = format!("{path}/");
    tree.files.iter().any(|file| file.path == path || file.path.starts_with(&folder))
}

/// A block of a document says of what kind it is, and output is of the kind that a test compares.
pub fn samples(tree: &Tree) -> Vec<Problem> {
    let is_page = |file: &&Source| file.path.starts_with("docs/") || file.path == "README.md";
    let pages = tree.files.iter().filter(is_page).filter(|file| file.path.ends_with(".md"));
    pages.flat_map(unproved).collect()
}

fn unproved(file: &Source) -> Vec<Problem> {
    let mut kind = None;
    let mut problems = Vec::new();
    for (number, line) in file.lines() {
        let problem = match (line.strip_prefix("```"), kind) {
            (Some(_), Some(_)) => {
                kind = None;
                continue;
            }
            (Some(""), None) => "say what it is: `console` for output, else `toml`, `sh`, `text`",
            (Some(_), None) => "",
            (None, Some(kind)) if kind != "console" && is_output(line) => {
                "a sample of output is of the kind `console`, which a test compares"
            }
            (None, _) => "",
        };
        if let Some(new) = line.strip_prefix("```") {
            kind = Some(new);
        }
        if !problem.is_empty() {
            problems.push(Problem::new(&file.path, number, problem));
        }
    }
    problems
}

/// Returns whether a line is a prompt with its command, or the rule below the head of a table.
fn is_output(line: &str) -> bool {
    let rules = line.split_whitespace().filter(|word| word.bytes().all(|byte| byte == b'-'));
    line.starts_with("$ ") || (rules.count() > 1 && line.contains("--  -"))
}

/// Work that is left belongs in the issue tracker.
pub fn notes_to_self(tree: &Tree) -> Vec<Problem> {
    const MARKS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    let remedy = "do it, or write an issue";
    find(tree, &MARKS, is_word, remedy)
}

/// No merge was left half done.
pub fn conflicts(tree: &Tree) -> Vec<Problem> {
    const MARKS: [&str; 2] = [concat!("<<<<", "<<< "), concat!(">>>>", ">>> ")];
    find(tree, &MARKS, |_, at, _| at == 0, "keep one side of the merge, and remove the marks")
}

/// Nothing knows on which machine it was written.
pub fn machine_paths(tree: &Tree) -> Vec<Problem> {
    let homes = [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/")];
    let mut marks = homes.to_vec();
    // A checkout directly below the root (`/src`) is too common a word to look for.
    if tree.root.matches('/').count() > 1 {
        marks.push(&tree.root);
    }
    let host = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    // Short host names are words of the language.
    if host.trim().len() >= 8 {
        marks.push(host.trim());
    }
    let starts = |line: &str, at: usize, _: &str| !preceded_by_word(line, at);
    find(tree, &marks, starts, "no path or host of a development machine: make it relative")
}

fn find(
    tree: &Tree,
    marks: &[&str],
    counts: impl Fn(&str, usize, &str) -> bool,
    remedy: &str,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in &tree.files {
        for (number, line) in file.lines() {
            for mark in marks {
                if line.match_indices(mark).any(|(at, _)| counts(line, at, mark)) {
                    let text = format!("`{mark}`: {remedy}");
                    problems.push(Problem::new(&file.path, number, text));
                }
            }
        }
    }
    problems
}

fn preceded_by_word(line: &str, at: usize) -> bool {
    at.checked_sub(1).is_some_and(|before| {
        let byte = line.as_bytes()[before];
        in_word(byte) || matches!(byte, b'.' | b'>' | b'}')
    })
}

fn is_word(line: &str, at: usize, mark: &str) -> bool {
    let after = line.as_bytes().get(at + mark.len());
    !preceded_by_word(line, at) && after.is_none_or(|byte| !in_word(*byte))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{fires, fires_on};
    use super::*;

    #[test]
    fn a_module_without_a_header_is_found() {
        assert_eq!(fires(module_header, "a.rs", "use std::fs;\n"), [1]);
        assert_eq!(fires(module_header, "a.rs", "//! What for.\n"), [0; 0]);
        assert_eq!(fires(module_header, "a.toml", "[package]\n"), [0; 0]);
    }

    #[test]
    fn silent_exceptions_are_found() {
        let text =
            "#[allow(dead_code)]\n#[expect(x, reason = \"y\")]\n#[test]\n#[ignore]\nfn f(){}\n";
        assert_eq!(fires(reasons, "a.rs", text), [1, 4]);
        let text = "#![allow(\n    dead_code,\n    reason = \"z\"\n)]\n#[ignore = \"long\"]\n";
        assert_eq!(fires(reasons, "a.rs", text), [0; 0]);
    }

    #[test]
    fn a_package_without_a_readme_is_found() {
        let files = [("a/Cargo.toml", ""), ("b/Cargo.toml", ""), ("b/README.md", "One.\n\nTwo.\n")];
        assert_eq!(fires_on(readme, &files), [("a/README.md".into(), 1)]);
        assert_eq!(fires_on(readme, &[("Cargo.toml", "")]), [("README.md".into(), 1)]);
    }

    #[test]
    fn dead_links_are_found() {
        let text = "[a](b.md) [b](../x/c.md#part)\n[c](gone.md)\n[d](../x/) [e](https://e.org/f)\n";
        let files = [("d/a.md", text), ("d/b.md", ""), ("x/c.md", "")];
        assert_eq!(fires_on(links, &files), [("d/a.md".into(), 2)]);
    }

    #[test]
    fn output_that_no_test_compares_is_found() {
        let text = "```\nx\n```\n```text\na  b\n---  ---\n```\n```sh\n$ diapason plan\n```\n\
                    ```console\n$ diapason plan\na  b\n---  ---\n```\n---  ---\n";
        let found = fires_on(samples, &[("docs/a.md", text), ("lib/README.md", text)]);
        let lines: Vec<usize> = found.iter().map(|(_, line)| *line).collect();
        assert_eq!(lines, [1, 6, 9]);
    }

    #[test]
    fn notes_to_self_are_found() {
        let text = concat!("// FIX", "ME: later\nTO", "DOS\n");
        assert_eq!(fires_on(notes_to_self, &[("a.rs", text)]), [("a.rs".into(), 1)]);
    }

    #[test]
    fn a_merge_that_was_left_half_done_is_found() {
        let text = concat!("a\n<<<<", "<<< HEAD\nb\n====", "===\nc\n>>>>", ">>> main\n");
        let expected = [("a.md".to_string(), 2), ("a.md".to_string(), 6)];
        assert_eq!(fires_on(conflicts, &[("a.md", text), ("b.md", "a << b >> c\n")]), expected);
    }

    #[test]
    fn paths_of_a_machine_are_found() {
        let text = concat!("see /ho", "me/me/x\nlib/ho", "me/x is fine\nin /some/checkout/lib\n");
        let expected = [("a.md".to_string(), 1), ("a.md".to_string(), 3)];
        assert_eq!(fires_on(machine_paths, &[("a.md", text)]), expected);
    }
}
