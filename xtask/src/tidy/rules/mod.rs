//! The rules. Each is a function that a test of its own shows to fire.

mod calls;
mod comments;
mod documents;
#[cfg(test)]
mod fixture;
mod lengths;
mod names;
mod papers;
mod programs;
mod rooms;
mod unsafety;

use super::Problem;
use super::ratchets::Measured;
use super::source::{Source, Tree};

/// Rules that look at one file.
const FILE_RULES: [fn(&Source) -> Vec<Problem>; 15] = [
    calls::unfinished,
    calls::printing,
    calls::wall_clock,
    calls::floating_point,
    calls::assembly,
    calls::permits,
    comments::short,
    comments::leaning,
    comments::relatives,
    comments::questions,
    comments::documented,
    unsafety::argued,
    documents::module_header,
    documents::reasons,
    lengths::lines,
];

/// Rules that look at the whole tree.
const TREE_RULES: [fn(&Tree) -> Vec<Problem>; 11] = [
    documents::readme,
    documents::links,
    documents::samples,
    documents::notes_to_self,
    documents::conflicts,
    documents::machine_paths,
    papers::apart,
    programs::gathered,
    names::glossary,
    rooms::dependencies,
    rooms::shown,
];

/// Everything that breaks a rule.
#[must_use]
pub fn broken(tree: &Tree) -> Vec<Problem> {
    let each =
        tree.files.iter().flat_map(|file| FILE_RULES.iter().flat_map(move |rule| rule(file)));
    each.chain(TREE_RULES.iter().flat_map(|rule| rule(tree))).collect()
}

/// Everything that has a ratchet.
#[must_use]
pub fn measure(tree: &Tree) -> Vec<Measured> {
    let files = tree.files.iter().filter(|file| file.is_rust());
    let lengths = files.flat_map(|file| {
        let mut measured = lengths::functions(file);
        measured.push(lengths::file(file));
        measured
    });
    let counts = [unsafety::count(tree), names::shared(tree)];
    lengths.chain(counts.into_iter().flatten()).collect()
}
