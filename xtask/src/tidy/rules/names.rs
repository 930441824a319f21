//! Rules about names: one public name means one thing, and house words are explained.

use super::super::Problem;
use super::super::ratchets::{Measure, Measured};
use super::super::source::{Source, Tree, in_word};
use std::collections::{BTreeMap, BTreeSet};

const GLOSSARY: &str = "docs/glossary.md";

/// Names of public types that a reader cannot know: those that exist are in the glossary.
const HOUSE_WORDS: [&str; 28] = [
    "Arrival", "Bill", "Board", "Broker", "Bused", "Chain", "Commons", "Counter", "Desk",
    "Doorbell", "Given", "Half", "Home", "Inlet", "Longer", "Looks", "Moves", "Office", "Outlet",
    "Passed", "Place", "Places", "Plant", "Relay", "Spent", "Stage", "Standing", "Turn",
];

/// Public types: `pub` and one of these words.
const TYPES: [&str; 4] = ["struct", "enum", "trait", "union"];

/// Returns the public types of a file, with their lines. Tests, examples and templates are nobody's
/// vocabulary.
fn public_types(source: &Source) -> Vec<(usize, &str)> {
    let apart = ["/tests/", "/examples/", "/benches/", "/templates/"];
    if !source.is_rust() || apart.iter().any(|folder| source.path.contains(folder)) {
        return Vec::new();
    }
    let name = |code: &'static str, line: &str| -> Option<usize> {
        let rest = line.trim_start().strip_prefix("pub ")?;
        let rest = rest.strip_prefix(code)?;
        rest.starts_with(' ').then(|| line.len() - rest.len() + 1)
    };
    let found = source.code_lines().filter_map(|(number, line)| {
        let start = TYPES.iter().find_map(|code| name(code, line))?;
        let end = line[start..].bytes().position(|byte| !in_word(byte));
        Some((number, &line[start..end.map_or(line.len(), |end| start + end)]))
    });
    found.filter(|(_, name)| !name.is_empty()).collect()
}

/// Returns how many packages declare a public type of each name; a name in one package is not
/// listed. A package without a library lends its names to nobody, so it does not count.
pub fn shared(tree: &Tree) -> Vec<Measured> {
    let mut all: BTreeMap<&str, (BTreeSet<&str>, &str, usize)> = BTreeMap::new();
    for file in &tree.files {
        let Some(package) = tree.package(&file.path).filter(|package| is_library(tree, package))
        else {
            continue;
        };
        for (line, name) in public_types(file) {
            let entry = all.entry(name).or_insert((BTreeSet::new(), &file.path, line));
            entry.0.insert(package);
        }
    }
    let several = all.into_iter().filter(|(_, (packages, _, _))| packages.len() > 1);
    several
        .map(|(name, (packages, file, line))| Measured {
            measure: Measure::SharedNames,
            name: name.into(),
            file: file.into(),
            line,
            value: packages.len() as u64,
        })
        .collect()
}

/// Returns whether other packages can use what this one declares.
fn is_library(tree: &Tree, package: &str) -> bool {
    let root = format!("{package}/src/lib.rs");
    tree.files.binary_search_by(|file| file.path.cmp(&root)).is_ok()
}

/// A house word that is a public type stands in the glossary.
pub fn glossary(tree: &Tree) -> Vec<Problem> {
    let text = tree.files.iter().find(|file| file.path == GLOSSARY).map_or("", |file| &file.text);
    let explained =
        |word: &str| text.lines().any(|line| line.starts_with(&format!("| **{word}**")));
    let mut problems = Vec::new();
    for file in &tree.files {
        let words = public_types(file);
        let words = words.iter().filter(|(_, name)| HOUSE_WORDS.contains(name));
        problems.extend(words.filter(|(_, name)| !explained(name)).map(|(line, name)| {
            let text = format!("`{name}` is a house word: give it a row in {GLOSSARY}");
            Problem::new(&file.path, *line, text)
        }));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::fixture::fires_on;
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let mut files: Vec<Source> =
            files.iter().map(|(path, text)| Source::new(path, text)).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Tree { files, root: "/some/checkout".into() }
    }

    #[test]
    fn a_name_of_two_libraries_is_counted_and_tests_and_programs_are_not() {
        let files = [
            ("a/Cargo.toml", ""),
            ("b/Cargo.toml", ""),
            ("a/src/lib.rs", "pub struct Step<'a>(&'a u8);\npub enum Own {}\n"),
            ("a/src/more.rs", "pub struct Own;\nstruct Hidden;\n"),
            ("b/src/lib.rs", "pub trait Step {}\npub(crate) struct Own;\n// pub struct Own;\n"),
            ("b/tests/t.rs", "pub struct Own;\n"),
            ("c/Cargo.toml", ""),
            ("c/src/main.rs", "pub struct Own;\npub struct Step;\n"),
        ];
        let found = shared(&tree(&files));
        let found: Vec<(&str, u64)> =
            found.iter().map(|found| (found.name.as_str(), found.value)).collect();
        assert_eq!(found, [("Step", 2)]);
    }

    #[test]
    fn a_house_word_without_a_row_is_found() {
        let code = ("a/src/lib.rs", "pub struct Desk;\npub struct Clerk;\n");
        assert_eq!(fires_on(glossary, &[code]), [("a/src/lib.rs".into(), 1)]);
        let page = (GLOSSARY, "| word | meaning |\n|---|---|\n| **Desk** | where one asks |\n");
        assert_eq!(fires_on(glossary, &[code, page]), []);
    }

    #[test]
    fn house_words_are_sorted_and_once() {
        assert!(HOUSE_WORDS.is_sorted_by(|a, b| a < b));
    }
}
