//! Rules about test programs: many files of tests are one program, and no file is left out of it.

use super::super::Problem;
use super::super::source::Tree;
use std::collections::BTreeMap;

/// A package may have as many programs of its tests. Each more is linked with the package and all
/// that it uses once more, which takes longer than its tests.
const MOST: usize = 4;

/// Returns the packages whose tests are too many programs, and the files that belong to none.
pub fn gathered(tree: &Tree) -> Vec<Problem> {
    let mut folders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for file in &tree.files {
        let Some((folder, name)) = file.path.rsplit_once('/') else { continue };
        let Some(module) = name.strip_suffix(".rs") else { continue };
        if folder.ends_with("/tests") && tree.package(&file.path).is_some() {
            folders.entry(folder).or_default().push(module);
        }
    }
    let mut problems = Vec::new();
    for (folder, modules) in folders {
        let root = format!("{folder}/all.rs");
        let Some(all) = tree.files.iter().find(|file| file.path == root) else {
            if modules.len() > MOST {
                let text = format!("{} test programs: make them modules of one", modules.len());
                problems.push(Problem::new(&format!("{folder}/{}.rs", modules[0]), 1, text));
            }
            continue;
        };
        for module in modules.into_iter().filter(|module| *module != "all") {
            if !all.text.lines().any(|line| line == format!("mod {module};")) {
                let text = format!("its tests never run: add `mod {module};` to {root}");
                problems.push(Problem::new(&format!("{folder}/{module}.rs"), 1, text));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::fixture::fires_on;
    use super::*;

    const PACKAGE: (&str, &str) = ("a/Cargo.toml", "");

    #[test]
    fn a_file_that_no_program_has_is_found() {
        let all = ("a/tests/all.rs", "mod one;\n");
        let (one, two) = (("a/tests/one.rs", ""), ("a/tests/two.rs", ""));
        assert!(fires_on(gathered, &[PACKAGE, all, one]).is_empty());
        let left_out = fires_on(gathered, &[PACKAGE, all, one, two]);
        assert_eq!(left_out, [("a/tests/two.rs".to_owned(), 1)]);
    }

    #[test]
    fn many_programs_are_found() {
        let paths = ["1", "2", "3", "4", "5"].map(|name| format!("a/tests/{name}.rs"));
        let fired = |many: usize| {
            let files = paths[..many].iter().map(|path| (path.as_str(), ""));
            fires_on(gathered, &[PACKAGE].into_iter().chain(files).collect::<Vec<_>>())
        };
        assert!(fired(MOST).is_empty());
        assert_eq!(fired(MOST + 1), [("a/tests/1.rs".to_owned(), 1)]);
    }
}
