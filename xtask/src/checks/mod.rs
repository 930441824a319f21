//! `cargo xtask checks`: writes docs/checks.md out of the list of checks, the results of campaigns
//! (`tests/results.toml`), and the notes about planted bugs. A test holds the page to them.

mod list;
mod results;

use crate::mutants::notes;
use crate::mutants::planted;
use diapason::failure::HOLDS;
use diapason::{Failure, Workspace};
pub(crate) use list::CHECKS;
use list::{Check, Gate};
pub(crate) use results::{Run, add};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The page, below the workspace's root.
const PAGE: &str = "docs/checks.md";

/// Writes the page about the checks from the list and the results.
///
/// # Errors
/// If results cannot be read, or the page cannot be written.
pub fn command(workspace: &Workspace) -> Result<u8, Failure> {
    let path = workspace.root().join(PAGE);
    std::fs::write(&path, page(workspace)?)
        .map_err(|error| Failure::io(format!("write {}", path.display()), &error))?;
    println!("{}", path.display());
    Ok(HOLDS)
}

/// Returns the numbers of the checks whose long form a campaign is.
pub fn of_campaign(name: &str) -> Vec<u64> {
    let line = format!("cargo xtask campaign {name}");
    let own = (1..).zip(&CHECKS).filter(|(_, check)| match name {
        "gates" => check.gate == Gate::Named,
        _ => check.long.contains(&&*line),
    });
    own.map(|(number, _)| number).collect()
}

fn page(workspace: &Workspace) -> Result<String, Failure> {
    let runs = results::read(workspace)?;
    let mut text = String::from(
        "# The 25 checks\n\n\
         This page says what is tried in order to break Diapason, how often, and what is still \
         missing. `cargo xtask checks` writes\nit. The wanted figures are those of \
         a list that was made of the practice of other projects before the work began.\n\n\
         A *gate* is a number that is asked before changes are accepted. It is `met` if every \
         `cargo xtask test` does it, at the\ncommit that is tested. It is `by command` if \
         `cargo xtask campaign gates` does it: every test run does less. A check whose gate\nis \
         `part` does less than is asked for. The long form runs by hand; the last runs are \
         below.\n\n",
    );
    let count = |gate| CHECKS.iter().filter(|check| check.gate == gate).count();
    let _ = writeln!(
        text,
        "{} gates are met by every test run, {} by the command, and {} in part.\n",
        count(Gate::Met),
        count(Gate::Named),
        count(Gate::Part)
    );
    text += "| # | check | gate | what every test run does | what is asked: gate; campaign | \
             missing |\n|---|---|---|---|---|---|\n";
    for (number, check) in (1..).zip(&CHECKS) {
        let gate = match check.gate {
            Gate::Met => "met",
            Gate::Named => "by command",
            Gate::Part => "part",
        };
        let Check { what, asks: [asked, long], figure, missing, .. } = check;
        let _ = writeln!(
            text,
            "| {number} | {what} | {gate} | {figure} | {asked}; {long} | {missing} |"
        );
    }
    text += "\n## What does it\n\n\
             | # | steps and tests of every run | at the asked number | long form |\n\
             |---|---|---|---|\n";
    for (number, check) in (1..).zip(&CHECKS) {
        let proofs: Vec<String> = check.proofs.iter().map(shown).collect();
        let lines = |lines: &[&str]| {
            lines.iter().map(|line| format!("`{line}`")).collect::<Vec<String>>().join(", ")
        };
        let (asked, long) = (lines(check.asked), lines(check.long));
        let _ = writeln!(text, "| {number} | {} | {asked} | {long} |", proofs.join("; "));
    }
    text += "\n## What was run last\n\nEach row is a campaign that came to its end. \
             `cargo xtask campaign NAME --note` adds one to `tests/results.toml`.\n\n\
             | checks | command | when, on which commit | core-hours | result |\n\
             |---|---|---|---|---|\n";
    for run in &runs {
        let checks = run.checks();
        let Run { command, date, commit, core_hours, result, .. } = run;
        let _ = writeln!(
            text,
            "| {checks} | `{command}` | {date}, `{commit}` | {core_hours} | {result} |"
        );
    }
    text += &planted_bugs(workspace)?;
    Ok(text)
}

/// Returns how many bugs are planted in each room, and how many of them were found when somebody
/// looked.
fn planted_bugs(workspace: &Workspace) -> Result<String, Failure> {
    let (all, notes) = (planted::all(workspace)?, notes::read(workspace)?);
    let mut text = String::from(
        "\n## Planted bugs\n\n\
         `cargo xtask mutants` plants each bug of `tests/mutations` in a copy and looks for it. \
         `--note` keeps what found it.\nA bug that was not looked for yet proves nothing.\n\n\
         | room | planted | looked for | found |\n|---|---|---|---|\n",
    );
    let rooms: BTreeSet<&str> = all.iter().map(|planted| &*planted.room).collect();
    let row = |name: &str, wanted: &dyn Fn(&planted::Planted) -> bool| {
        let own: Vec<_> = all.iter().filter(|planted| wanted(planted)).collect();
        let noted: Vec<_> = own.iter().filter_map(|planted| notes.get(&planted.name)).collect();
        let found = noted.iter().filter(|note| note.by.is_some()).count();
        format!("| {name} | {} | {} | {found} |\n", own.len(), noted.len())
    };
    for room in rooms {
        text += &row(&format!("`{room}`"), &|planted| planted.room == room);
    }
    text += &row("all", &|_| true);
    for planted in &all {
        if notes.get(&planted.name).is_some_and(|note| note.by.is_none()) {
            let _ = writeln!(text, "\nNot found: `{}`, {}.", planted.name, planted.breaks);
        }
    }
    Ok(text)
}

fn shown(proof: &list::Proof) -> String {
    match proof {
        list::Proof::Step(name) => format!("“{name}”"),
        list::Proof::Test(package, _, _, name) => format!("`{name}` of `{package}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arguments;
    use clap::Parser as _;
    use diapason::metal::Built;

    fn workspace() -> Workspace {
        Workspace::find().expect("tests run in the checkout")
    }

    #[test]
    fn the_page_is_what_the_list_and_the_results_say() {
        let shown = std::fs::read_to_string(workspace().root().join(PAGE)).unwrap();
        assert!(shown == page(&workspace()).unwrap(), "write it: `cargo xtask checks`");
    }

    #[test]
    fn what_a_check_names_exists() {
        let names = crate::steps::names_of(&workspace(), &Built::default());
        for proof in CHECKS.iter().flat_map(|check| check.proofs) {
            match *proof {
                list::Proof::Step(part) => {
                    let found = names.iter().any(|name| name.contains(part));
                    assert!(found, "no step `{part}`: {names:#?}");
                }
                list::Proof::Test(package, folder, file, name) => {
                    let root = workspace().root().join(folder);
                    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
                    assert!(manifest.contains(&format!("name = \"{package}\"")), "{package}");
                    let file =
                        if file.ends_with(".rs") { file.into() } else { format!("{file}.rs") };
                    let text = std::fs::read_to_string(root.join("tests").join(&file)).unwrap();
                    assert!(text.contains(&format!("fn {name}()")), "no `{name}` in {file}");
                }
            }
        }
    }

    #[test]
    fn every_long_form_is_a_command() {
        for line in CHECKS.iter().flat_map(|check| check.long) {
            let Some(words) = line.strip_prefix("cargo xtask ") else {
                assert!(line.starts_with("cargo test "), "{line}");
                continue;
            };
            let mut parts = words.split('\'');
            let first = parts.next().unwrap_or_default().split_whitespace();
            let words: Vec<&str> = ["xtask"].into_iter().chain(first).chain(parts.next()).collect();
            if let Err(wrong) = Arguments::try_parse_from(&words) {
                panic!("{line}: {wrong}");
            }
            if let ["xtask", "campaign", name, ..] = words[..] {
                assert!(crate::campaign::exists(name), "{line}");
            }
        }
    }

    #[test]
    fn every_check_has_a_proof_and_a_gate_by_command_has_commands() {
        for check in &CHECKS {
            assert_eq!(check.gate == Gate::Named, !check.asked.is_empty(), "{}", check.what);
            assert!(!check.proofs.is_empty(), "{}", check.what);
            assert!(!check.long.is_empty() && !check.missing.is_empty(), "{}", check.what);
        }
    }
}
