//! Every input of the corpora, and changes of them, with debug assertions and without counters. The
//! long form is `cargo xtask campaign fuzz`.

use diapason_fuzz::corpus;
use diapason_fuzz::engine::{Blind, Fuzzer};
use diapason_fuzz::targets::TARGETS;
use std::path::{Path, PathBuf};

/// Changed inputs of each target.
const CHANGED: u64 = 1_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn inputs_that_were_kept_still_end_well() {
    let root = root();
    for target in TARGETS {
        let begun = target.begin(&root);
        let kept = corpus::read(&corpus::path(&root, target.name)).unwrap();
        assert!(!kept.is_empty(), "{}: `cargo xtask fuzz {0} --keep`", target.name);
        let mut run = begun.run;
        let first = begun.first.into_iter().chain(kept).collect();
        let mut fuzzer = Fuzzer::new(&mut run, Blind, 1, first);
        fuzzer.attack(CHANGED);
    }
}

#[test]
fn every_corpus_has_a_target() {
    for entry in std::fs::read_dir(root().join(corpus::FOLDER)).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let known = TARGETS.iter().any(|it| name == format!("{}.inputs", it.name));
        assert!(known, "{name} is of no target");
    }
}
