//! The names of works: a program tells the kernel a hash only.

use diapason_abi::Key;
use diapason_contract::can;
use diapason_contract::source::SOURCES;
use diapason_system::{System, works};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Longest text in a source that is taken for the name of a work.
const LONGEST: usize = 64;
/// Folders below that of the description that are looked into.
const DEPTH: usize = 6;

/// Returns the names of works by their keys: those of the description, those of servers, and
/// every text in the sources beside the description.
pub fn known(system: &System, description: &Path) -> BTreeMap<u64, String> {
    let folder = description.parent().filter(|folder| *folder != Path::new(""));
    let mut names = Vec::new();
    in_sources(folder.unwrap_or(Path::new(".")), DEPTH, &mut names);
    names.extend(of_servers().map(str::to_owned));
    names.extend(system.works.iter().map(|work| work.name.clone()));
    names.into_iter().map(|name| (Key::new(&name).0, name)).collect()
}

/// Returns the works of servers, and those of readers by which bills know them.
fn of_servers() -> impl Iterator<Item = &'static str> {
    let readers = SOURCES.iter().map(|source| source.message).chain([can::MESSAGE]);
    works::of_servers().chain(readers)
}

/// Adds the texts in quotation marks in the sources below a folder. A file that cannot be read has
/// none.
fn in_sources(folder: &Path, depth: usize, names: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_source = path.extension().is_some_and(|end| end == "rs" || end == "c" || end == "h");
        let is_result = path.file_name().is_some_and(|name| name == "target");
        if path.is_dir() && depth > 0 && !is_result && !path.is_symlink() {
            in_sources(&path, depth - 1, names);
        } else if is_source && let Ok(text) = fs::read_to_string(&path) {
            names.extend(texts(&text).map(str::to_owned));
        }
    }
}

/// Returns what stands between two quotation marks of a line: texts, and what is between texts.
fn texts(source: &str) -> impl Iterator<Item = &str> {
    let parts = source.lines().flat_map(|line| line.split('"').skip(1));
    parts.filter(|part| !part.is_empty() && part.len() <= LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_sources_are_found() {
        let source = "time::work(\"reader.frame\", || {\n  dia_work(\"a\"); // \"b\n\"\"";
        assert_eq!(
            texts(source).collect::<Vec<_>>(),
            ["reader.frame", ", || {", "a", "); // ", "b"]
        );
    }

    #[test]
    fn works_of_the_server_and_of_sources_beside_a_description_have_names() {
        let text = "[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n\
                    [[work]]\nname = \"mine\"\nworst = \"1us\"\n";
        let system = diapason_system::parse("s", text).unwrap_or_else(|wrong| panic!("{wrong}"));
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/templates/can-reader/system.toml");
        let names = known(&system, Path::new(path));
        for name in ["mine", "usbd.receive", "usbd.manage", "usbd.sensor", "reader.frame"] {
            assert_eq!(names.get(&Key::new(name).0).map(String::as_str), Some(name));
        }
    }
}
