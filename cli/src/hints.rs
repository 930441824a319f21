//! `diapason hints`: what the attribute `#[hints]` inserts into the tasks of source files.

use crate::failure::Failure;
use crate::failure::HOLDS;
use crate::input::Input;
use crate::output::write;
use diapason_hints_logic::{Listing, Problem, listing};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Prints the blocking calls of every task in the files, and in the folders' files.
///
/// # Errors
/// If a path is missing or no Rust, a task cannot be read, or there is no task at all.
pub fn hints(paths: &[PathBuf]) -> Result<u8, Failure> {
    let (text, problems) = read(paths)?;
    write(&text);
    if !problems.is_empty() {
        return Err(Failure::Input(problems));
    }
    if text.is_empty() {
        let remedy = "put `#[hints]` before the function of a task";
        return Err(Failure::Input(format!("no task here has hints: {remedy}")));
    }
    Ok(HOLDS)
}

/// Returns the listings of all files, and all their problems.
fn read(paths: &[PathBuf]) -> Result<(String, String), Failure> {
    let mut files = Vec::new();
    paths.iter().try_for_each(|path| sources(path, &mut files))?;
    let (mut text, mut problems) = (String::new(), String::new());
    for file in files {
        let source = Input::Source
            .text(&file)
            .map_err(|error| Failure::Input(format!("cannot read {}: {error}", file.display())))?;
        let listing = listing(&source)
            .unwrap_or_else(|problem| Listing { tasks: Vec::new(), problems: vec![problem] });
        if !listing.tasks.is_empty() {
            let _ = write!(text, "{}\n{}", file.display(), listing.render());
        }
        for Problem { span, what, remedy } in &listing.problems {
            let (line, column) = (span.start().line, span.start().column + 1);
            let place = format!("{}:{line}:{column}", file.display());
            let _ = writeln!(problems, "{place}: {what}\n  help: {remedy}");
        }
    }
    Ok((text, problems))
}

/// The Rust files at `path`, in a stable order.
fn sources(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    if !path.is_dir() {
        files.push(path.into());
        return Ok(());
    }
    let entries = fs::read_dir(path)
        .map_err(|error| Failure::io(format!("read {}", path.display()), &error))?;
    let mut inside: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    inside.sort();
    let is_source = |path: &PathBuf| path.is_dir() || path.extension().is_some_and(|e| e == "rs");
    inside.iter().filter(|path| is_source(path)).try_for_each(|path| sources(path, files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_has_a_task_with_a_hint() {
        let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("../user/apps/engine");
        let (text, problems) = read(&[engine]).unwrap();
        assert_eq!(problems, "");
        assert!(text.contains("actuators.rs\ninject: line "), "{text}");
        assert!(text.contains(": command.take -> lock `injector`\n"), "{text}");
    }

    #[test]
    fn a_missing_file_is_bad_input() {
        let failure = hints(&["no/such/file.rs".into()]).unwrap_err();
        assert_eq!(failure.exit_code(), 2);
        assert!(failure.to_string().contains("no/such/file.rs"));
    }

    #[test]
    fn a_file_that_is_no_rust_and_one_without_tasks_are_bad_input() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let failure = hints(&[here.join("Cargo.toml")]).unwrap_err();
        assert!(failure.to_string().contains("Cargo.toml:1:"), "{failure}");
        assert_eq!(failure.exit_code(), 2);
        let failure = hints(&[here.join("src/main.rs")]).unwrap_err();
        assert!(failure.to_string().contains("no task here has hints"), "{failure}");
    }
}
