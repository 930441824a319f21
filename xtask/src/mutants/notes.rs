//! The notes of which planted bug was found by what, at which commit. `--note` writes them into the
//! repository, so that docs/checks.md can say how many were ever looked for.

use super::planted::{FOLDER, Planted};
use diapason::{Failure, Workspace};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The word of a bug that nothing found.
pub const NOT_FOUND: &str = "NOT FOUND";

/// The last look for a planted bug.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Note {
    pub commit: String,
    /// The test, search or boot that found it.
    pub by: Option<String>,
}

/// Returns the notes by name of the bug.
///
/// # Errors
/// If the file cannot be read, or a line of it has not three parts.
pub fn read(workspace: &Workspace) -> Result<BTreeMap<String, Note>, Failure> {
    let path = path(workspace);
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Failure::io(format!("read {}", path.display()), &error))?;
    parse(&text).map_err(|why| Failure::Input(format!("error: {}: {why}", path.display())))
}

fn path(workspace: &Workspace) -> PathBuf {
    workspace.root().join(FOLDER).join("found.txt")
}

fn parse(text: &str) -> Result<BTreeMap<String, Note>, String> {
    let mut notes = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let mut parts = line.splitn(3, " | ");
        let (Some(name), Some(commit), Some(by)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(format!("line {number} is not `NAME | COMMIT | FOUND BY`"));
        };
        let by = Some(by).filter(|by| *by != NOT_FOUND).map(String::from);
        notes.insert(name.to_owned(), Note { commit: commit.to_owned(), by });
    }
    Ok(notes)
}

/// Adds what was just found to the notes, and drops those of bugs that are no longer planted.
///
/// # Errors
/// If the file cannot be read or written.
pub fn add(
    workspace: &Workspace,
    all: &[Planted],
    new: BTreeMap<String, Note>,
) -> Result<(), Failure> {
    let mut notes = read(workspace)?;
    notes.extend(new);
    notes.retain(|name, _| all.iter().any(|planted| planted.name == *name));
    let path = path(workspace);
    std::fs::write(&path, render(&notes))
        .map_err(|error| Failure::io(format!("write {}", path.display()), &error))
}

fn render(notes: &BTreeMap<String, Note>) -> String {
    let by = |note: &Note| note.by.clone().unwrap_or_else(|| NOT_FOUND.into());
    notes.iter().map(|(name, note)| format!("{name} | {} | {}\n", note.commit, by(note))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_read_as_they_were_written() {
        let text = "a | 12ab | cargo test -p x\nb | 12ab | NOT FOUND\n";
        let notes = parse(text).unwrap();
        assert_eq!((notes["a"].by.as_deref(), &notes["b"].by), (Some("cargo test -p x"), &None));
        assert_eq!(render(&notes), text);
        assert!(parse("a | b\n").unwrap_err().contains("line 1"));
    }

    #[test]
    fn every_note_is_of_a_planted_bug() {
        let workspace = Workspace::find().expect("tests run in the checkout");
        let all = super::super::planted::all(&workspace).unwrap();
        for name in read(&workspace).unwrap().keys() {
            assert!(all.iter().any(|planted| planted.name == *name), "{name} is not planted");
        }
    }
}
