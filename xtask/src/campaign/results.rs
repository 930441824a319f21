//! The result of a share: one file in the campaign's folder, written when the share has ended. A
//! share that was interrupted leaves none, so what is missing is what is still to be done.

use super::shard::Shard;
use diapason::Failure;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Version of the files. Others are not read.
const VERSION: u64 = 1;

/// The end of a share, as its file keeps it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Outcome {
    /// The commands found nothing.
    pub holds: bool,
    /// The commands that show each finding again.
    pub findings: Vec<String>,
    /// How long the share took.
    pub seconds: f64,
}

/// The folder of a campaign.
pub(crate) struct Results {
    folder: PathBuf,
    /// The campaign, its size and its commit. Results of another are not taken for its own.
    of: String,
}

impl Results {
    /// Makes the folder of a campaign, unless it is there.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new(folder: PathBuf, of: String) -> Result<Results, Failure> {
        std::fs::create_dir_all(&folder)
            .map_err(|error| Failure::io(format!("make {}", folder.display()), &error))?;
        Ok(Results { folder, of })
    }

    /// Removes the result of a share, if there is one.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn forget(&self, shard: Shard) -> Result<(), Failure> {
        let path = self.path(shard);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Failure::io(format!("remove {}", path.display()), &error))
            }
            _ => Ok(()),
        }
    }

    /// Returns where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns where the commands of a share write what they say.
    pub fn said(&self, shard: Shard) -> PathBuf {
        self.folder.join(shard.file_stem() + ".txt")
    }

    fn path(&self, shard: Shard) -> PathBuf {
        self.folder.join(shard.file_stem() + ".json")
    }

    /// Returns what came of a share, if it has ended.
    ///
    /// # Errors
    /// If its file is there and is not one of ours.
    pub fn read(&self, shard: Shard) -> Result<Option<Outcome>, Failure> {
        let path = self.path(shard);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::io(format!("read {}", path.display()), &error)),
        };
        parse(&text, &self.of).map(Some).ok_or_else(|| {
            let (path, of) = (path.display(), &self.of);
            Failure::Input(format!(
                "error: {path} is no result of {of}\n  = help: remove it, and the share runs \
                 again; or name another folder by --out"
            ))
        })
    }

    /// Writes what came of a share. The file appears whole or not at all.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, shard: Shard, outcome: &Outcome) -> Result<(), Failure> {
        let path = self.path(shard);
        let new = path.with_extension("new");
        let failure = |error| Failure::io(format!("write {}", path.display()), &error);
        std::fs::write(&new, format!("{:#}\n", render(outcome, &self.of))).map_err(failure)?;
        std::fs::rename(&new, &path).map_err(failure)
    }
}

fn render(outcome: &Outcome, of: &str) -> Value {
    let Outcome { holds, findings, seconds } = outcome;
    json!({
        "version": VERSION,
        "of": of,
        "holds": holds,
        "seconds": seconds,
        "findings": findings,
    })
}

fn parse(text: &str, of: &str) -> Option<Outcome> {
    let value: Value = serde_json::from_str(text).ok()?;
    let word = |value: &Value| value.as_str().map(String::from);
    let outcome = Outcome {
        holds: value["holds"].as_bool()?,
        seconds: value["seconds"].as_f64().filter(|seconds| *seconds >= 0.0)?,
        findings: value["findings"].as_array()?.iter().map(word).collect::<Option<_>>()?,
    };
    let own = value["version"].as_u64() == Some(VERSION) && value["of"].as_str() == Some(of);
    own.then_some(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_reads_as_it_was_written() {
        let findings = vec![String::from("cargo xtask attack systems --seed 1 --from 7")];
        let outcome = Outcome { holds: false, findings, seconds: 1.5 };
        let text = render(&outcome, "systems, commit a").to_string();
        assert_eq!(parse(&text, "systems, commit a"), Some(outcome));
        assert_eq!(parse(&text, "systems, commit b"), None, "it is of another commit");
    }

    #[test]
    fn other_files_are_no_results() {
        let whole =
            json!({ "version": 1, "of": "a", "holds": true, "seconds": 1.0, "findings": [] });
        assert!(parse(&whole.to_string(), "a").is_some());
        let wrong = [
            ("version", json!(2)),
            ("holds", json!(1)),
            ("seconds", json!(-1.0)),
            ("findings", json!([1])),
        ];
        for (key, value) in wrong {
            let mut other = whole.clone();
            other[key] = value;
            assert_eq!(parse(&other.to_string(), "a"), None, "{key}");
        }
        assert_eq!(["", "{", "[]", "null"].map(|text| parse(text, "a")), [None, None, None, None]);
    }
}
