//! How the tests of the rules see them fire.

use super::super::Problem;
use super::super::source::{Source, Tree};

/// Returns the lines at which `rule` fires on a file.
pub fn fires(rule: fn(&Source) -> Vec<Problem>, path: &str, text: &str) -> Vec<usize> {
    rule(&Source::new(path, text)).iter().map(|problem| problem.line).collect()
}

/// Returns the files and lines at which `rule` fires on a tree.
pub fn fires_on(rule: fn(&Tree) -> Vec<Problem>, files: &[(&str, &str)]) -> Vec<(String, usize)> {
    let mut files: Vec<Source> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let tree = Tree { files, root: "/some/checkout".into() };
    rule(&tree).into_iter().map(|problem| (problem.file, problem.line)).collect()
}
