//! Samples of output in the documents are what the commands say.
//!
//! A sample is a fenced block of the kind `console`: its first line is the command after `$ `, and
//! `…` on a line of its own stands for any number of lines. The hash of a trace may be another: it
//! is that of the programs. With `DIAPASON_BLESS=1` numbers that changed are written into the
//! document; a line that is gone has to be mended by hand.

use crate::tally::command;
use diapason::Workspace;
use diapason::metal::Built;
use std::fs;
use std::path::{Path, PathBuf};

/// The beginning of a sample.
const FENCE: &str = "```console";
/// A line that stands for any number of lines.
const GAP: &str = "…";
/// Digits of a hash.
const HASH: usize = 16;

/// A sample: the line of its command in the document, from 0, and how many lines of output follow.
struct Sample {
    at: usize,
    lines: usize,
}

/// The page whose commands are run in the folder that it makes, by `own`.
pub const TUTORIAL: &str = "docs/tutorial.md";

/// Runs the command of each sample, and compares.
pub fn check(workspace: &Workspace, _: &Built) -> Result<(), String> {
    let mut wrong = Vec::new();
    let tutorial = workspace.root().join(TUTORIAL);
    for path in documents(workspace.root())?.into_iter().filter(|path| *path != tutorial) {
        wrong.extend(page(&path, &mut |line| said(workspace, line)).err());
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Compares the samples of a page with what `said` returns for the command of each.
pub fn page(
    path: &Path,
    said: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<(), String> {
    let bless = std::env::var_os("DIAPASON_BLESS").is_some();
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let lines: Vec<&str> = text.lines().collect();
    let mut new: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    let mut wrong = Vec::new();
    for Sample { at, lines: count } in samples(&lines) {
        let place = || format!("{}:{}", path.display(), at + 1);
        let said = match said(lines[at]) {
            Ok(said) => said,
            Err(why) => {
                wrong.push(format!("{}: {why}", place()));
                continue;
            }
        };
        let said: Vec<&str> = said.lines().map(str::trim_end).collect();
        let body = at + 1..at + 1 + count;
        match (compared(&lines[body.clone()], &said), bless) {
            (Ok(()), _) => {}
            (Err(line), false) => {
                wrong.push(format!("{}: not said: {line}\n{}", place(), said.join("\n")));
            }
            (Err(_), true) => match blessed(&lines[body.clone()], &said) {
                Ok(body_now) => new[body].clone_from_slice(&body_now),
                Err(line) => wrong.push(format!("{}: mend by hand: {line}", place())),
            },
        }
    }
    if bless {
        fs::write(path, new.join("\n") + "\n").map_err(|error| error.to_string())?;
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Returns the README and the pages of `docs`.
fn documents(root: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(root.join("docs")).map_err(|error| error.to_string())?;
    let mut all: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    all.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    all.push(root.join("README.md"));
    all.sort();
    Ok(all)
}

fn samples(lines: &[&str]) -> Vec<Sample> {
    let begins = (0..lines.len()).filter(|number| lines[*number] == FENCE);
    let sample = |fence: usize| {
        let rest = lines.get(fence + 2..)?;
        let lines = rest.iter().position(|line| line.starts_with("```"))?;
        Some(Sample { at: fence + 1, lines })
    };
    begins.filter_map(sample).collect()
}

/// Returns what a command prints, errors first.
fn said(workspace: &Workspace, line: &str) -> Result<String, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut run = match words[..] {
        ["$", "diapason", ref arguments @ ..] => {
            let mut run = command(workspace, &["run", "--quiet", "--bin", "diapason", "--"]);
            run.args(arguments);
            run
        }
        ["$", "cargo", "xtask", ref arguments @ ..] => {
            let mut run = command(workspace, &["xtask"]);
            run.args(arguments);
            run
        }
        _ => return Err(format!("`{line}` is no command of ours")),
    };
    let output = run.output().map_err(|error| error.to_string())?;
    let [errors, said] =
        [output.stderr, output.stdout].map(|text| String::from_utf8_lossy(&text).into_owned());
    Ok(errors + &said)
}

/// Compares a sample with what was said.
fn compared(sample: &[&str], said: &[&str]) -> Result<(), String> {
    let now = matched(sample, said, |line, said| hidden(line) == hidden(said))?;
    let whole = sample.last() == Some(&GAP) || now.last().is_none_or(|last| *last == said.len());
    if whole { Ok(()) } else { Err("more is said after the end of the sample".into()) }
}

/// Returns the sample with the numbers that were said, if nothing else is wrong with it.
fn blessed(sample: &[&str], said: &[&str]) -> Result<Vec<String>, String> {
    let renewed = renewed(sample, said)?;
    compared(&renewed.iter().map(String::as_str).collect::<Vec<_>>(), said)?;
    Ok(renewed)
}

/// Returns the sample with the numbers that were said.
fn renewed(sample: &[&str], said: &[&str]) -> Result<Vec<String>, String> {
    let places = matched(sample, said, |line, said| shape(line) == shape(said))?;
    let now = sample.iter().zip(places);
    Ok(now.map(|(line, end)| if *line == GAP { GAP } else { said[end - 1] }.to_owned()).collect())
}

/// Returns the end of each line of the sample in what was said. A line after a gap is the next that
/// is alike, any other the next.
fn matched(
    sample: &[&str],
    said: &[&str],
    alike: impl Fn(&str, &str) -> bool,
) -> Result<Vec<usize>, String> {
    let (mut end, mut gap) = (0, true);
    let mut ends = Vec::new();
    for line in sample {
        if *line != GAP {
            let rest = &said[end..];
            let found = rest.iter().position(|said| alike(line, said));
            let found = found.filter(|found| gap || *found == 0).ok_or(*line)?;
            end += found + 1;
        }
        gap = *line == GAP;
        ends.push(end);
    }
    Ok(ends)
}

/// Returns a line without the digits of hashes.
fn hidden(line: &str) -> String {
    let is_hash = |word: &&str| word.len() == HASH && word.bytes().all(|b| b.is_ascii_hexdigit());
    let words = line.split(' ').map(|word| if is_hash(&word) { "hash" } else { word });
    words.collect::<Vec<&str>>().join(" ")
}

/// Returns a line without its numbers, their units, and its spaces and rules, which are as wide as
/// numbers.
fn shape(line: &str) -> String {
    let line = hidden(line);
    let words = line.split_whitespace().map(|word| {
        let quoted = word.trim_start_matches(['"', '`']);
        let is_number = quoted.starts_with(|c: char| c.is_ascii_digit());
        let is_rule = word.bytes().all(|byte| byte == b'-');
        let is_unit = ["ns", "us", "ms", "s"].contains(&word);
        match (is_number, is_rule || is_unit) {
            (true, _) => "0",
            (_, true) => "-",
            _ => word,
        }
    });
    words.collect::<Vec<&str>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: [&str; 5] =
        ["begin", "a   1.000 ms", "b  12.000 ms", "trace 0123456789abcdef", "end"];

    #[test]
    fn a_sample_is_a_fence_a_command_and_lines() {
        let text = ["x", "```console", "$ diapason plan a", "one", GAP, "```", "```text", "```"];
        let found: Vec<(usize, usize)> =
            samples(&text).iter().map(|sample| (sample.at, sample.lines)).collect();
        assert_eq!(found, [(2, 2)]);
    }

    #[test]
    fn a_sample_may_leave_lines_out_where_it_says_so() {
        let trace = "trace fedcba9876543210";
        assert_eq!(compared(&[GAP, "b  12.000 ms", trace, "end"], &SAID), Ok(()));
        assert_eq!(compared(&["begin", GAP], &SAID), Ok(()));
        assert!(compared(&["begin", "b  12.000 ms", GAP], &SAID).is_err());
        assert!(compared(&["begin", "a   1.000 ms"], &SAID).is_err());
        assert!(compared(&[GAP, "b  13.000 ms", GAP], &SAID).is_err());
        assert!(compared(&[GAP, "end", GAP, "begin", GAP], &SAID).is_err());
    }

    #[test]
    fn a_sample_that_ends_too_early_cannot_be_blessed() {
        assert!(blessed(&["begin", GAP, "b 999.000 us", GAP], &SAID).is_ok());
        assert!(blessed(&["begin", GAP, "b 999.000 us"], &SAID).is_err());
    }

    #[test]
    fn numbers_are_renewed_and_other_lines_are_not() {
        let now = renewed(&["begin", GAP, "b 999.000 us", GAP], &SAID).unwrap();
        assert_eq!(now, ["begin", GAP, "b  12.000 ms", GAP]);
        let said = ["write `latency = \"21us\"`, or less"];
        let now = renewed(&["write `latency = \"7ms\"`, or less"], &said);
        assert_eq!(now, Ok(said.map(String::from).into()));
        assert_eq!(
            renewed(&["begin", GAP, "c 999.000 us", GAP], &SAID),
            Err("c 999.000 us".into())
        );
    }
}
