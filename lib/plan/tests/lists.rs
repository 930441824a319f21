//! Lists of hosts among the examples, with changes.

use diapason_system::{Description, Hosts, parse_any};
use std::fs;
use std::path::PathBuf;

/// A file of an example, a text in it, and the one that stands there instead.
pub type Change<'a> = (&'a str, &'a str, &'a str);

pub fn example(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    fs::read_to_string(path).unwrap()
}

/// Returns an example with one text for another in some files.
pub fn changed(list: &str, changes: &[Change<'_>]) -> Hosts {
    let read = |file: &str| {
        let own = changes.iter().filter(|(name, _, _)| *name == file);
        own.fold(example(file), |text, (_, from, to)| {
            assert!(text.contains(from), "{file} has no {from}");
            text.replacen(from, to, 1)
        })
    };
    match parse_any(list, &read(list), |file| Ok((file.to_owned(), read(file)))) {
        Ok(Description::Several(hosts)) => hosts,
        other => panic!("{other:?}"),
    }
}
