//! Witnesses of bounds: the runs that came closest, and the commands that show them again.
//!
//! A bound says what cannot happen, and a witness what can. `sim --search N --witness` keeps the
//! witnesses beside the description, and `plan` shows them. They are of one text of the
//! description: after a change of it nobody knows what a run would see.

use crate::duration::human;
use crate::failure::Failure;
use crate::outcome::{Assumptions, Closeness};
use crate::output::note;
use crate::plan::Plan;
use crate::table::{Align, TextTable};
use diapason_system::System;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The version of the file's form.
const FORMAT: u32 = 1;

/// The run that came closest to the bound of a pipe or a chain.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Witness {
    pub of: String,
    pub is_pipe: bool,
    pub seed: u64,
    pub longest_ns: u64,
    pub bound_ns: u64,
}

impl Witness {
    /// Returns what a run with this seed is a witness of.
    #[must_use]
    pub fn new(seed: u64, close: Closeness) -> Witness {
        let Closeness { of, is_pipe, longest_ns, bound_ns } = close;
        Witness { of, is_pipe, seed, longest_ns, bound_ns }
    }

    /// Returns whether it is closer to the same bound, or as close and of an earlier seed.
    fn is_before(&self, other: &Witness) -> bool {
        (self.longest_ns, other.seed) > (other.longest_ns, self.seed)
    }

    /// Returns the longest as a part of the bound, in per mille.
    fn per_mille(&self) -> u64 {
        let part = u128::from(self.longest_ns) * 1_000 / u128::from(self.bound_ns.max(1));
        u64::try_from(part).unwrap_or(u64::MAX)
    }
}

/// The witnesses that a search found, and how it was made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Witnesses {
    format: u32,
    /// The key of the text of the description.
    text: u64,
    /// Seeds that were tried, from which on.
    seeds: (u64, u64),
    /// The options of each run.
    options: Vec<String>,
    witnesses: Vec<Witness>,
}

impl Witnesses {
    /// Returns no witnesses yet, of a search through `count` seeds from `from` on. `text` is the
    /// key of the description.
    #[must_use]
    pub fn new(text: u64, from: u64, count: u64, options: Vec<String>) -> Witnesses {
        let seeds = (from, count);
        Witnesses { format: FORMAT, text, seeds, options, witnesses: Vec::new() }
    }

    /// Takes in what a run saw.
    pub fn note(&mut self, seen: Witness) {
        match self.witnesses.iter_mut().find(|it| it.of == seen.of && it.is_pipe == seen.is_pipe) {
            Some(known) if seen.is_before(known) => *known = seen,
            Some(_) => {}
            None => self.witnesses.push(seen),
        }
    }

    /// Returns the witnesses that a search left beside the description at `path`. Those of another
    /// text are not shown, and neither are those of another bound.
    #[must_use]
    pub fn beside(path: &Path, system: &System, plan: &Plan) -> Option<Witnesses> {
        let file = file_of(path);
        let text = std::fs::read_to_string(&file).ok()?;
        let again =
            || format!("search again: diapason sim {} --search N --witness", path.display());
        let known = serde_json::from_str::<Witnesses>(&text).ok().filter(|it| it.format == FORMAT);
        let Some(mut known) = known else {
            note(&format!("{} holds no witnesses; {}", file.display(), again()));
            return None;
        };
        if known.text != system.text_key() {
            let file = file.display();
            note(&format!("{file} is of another text of this description; {}", again()));
            return None;
        }
        let Assumptions { pipes, chains, .. } = Assumptions::of(plan);
        known.witnesses.retain(|Witness { of, is_pipe, bound_ns, .. }| match is_pipe {
            true => pipes.iter().any(|it| (&it.name, it.bound_ns) == (of, *bound_ns)),
            false => chains.iter().any(|it| (&it.name, it.bound_ns) == (of, *bound_ns)),
        });
        Some(known)
    }

    /// Keeps the witnesses beside the description at `path`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn keep(&self, path: &Path) -> Result<PathBuf, Failure> {
        let file = file_of(path);
        let text = format!("{:#}\n", json!(self));
        let written = std::fs::write(&file, text);
        written.map_err(|error| Failure::io(format!("write {}", file.display()), &error))?;
        Ok(file)
    }

    /// Returns a table of them, with the commands that show them again; empty without any.
    #[must_use]
    pub fn render(&self, system: &Path) -> String {
        let mut table = TextTable::new(&[
            ("closest to its bound", Align::Left),
            ("longest", Align::Right),
            ("bound", Align::Right),
            ("of it", Align::Right),
            ("again", Align::Left),
        ]);
        for witness in &self.witnesses {
            let part = witness.per_mille();
            table.row(vec![
                witness.of.clone(),
                human(witness.longest_ns),
                human(witness.bound_ns),
                format!("{}.{} %", part / 10, part % 10),
                self.again(witness),
            ]);
        }
        if self.witnesses.is_empty() {
            return String::new();
        }
        let (from, count) = self.seeds;
        let options: Vec<String> = self.options.iter().map(|it| quoted(it)).collect();
        let (system, options) = (system.display(), options.join(" "));
        let table = table.render();
        format!(
            "{table}of {count} seeds from {from} on; again: diapason sim {system} {options} …\n"
        )
    }

    /// Returns the witnesses for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let object = |witness: &Witness| {
            json!({
                "of": witness.of,
                "seed": witness.seed,
                "longest_ns": witness.longest_ns,
                "bound_ns": witness.bound_ns,
                "options": self.options,
            })
        };
        self.witnesses.iter().map(object).collect()
    }

    /// Returns the rest of the command that shows a witness again.
    fn again(&self, witness: &Witness) -> String {
        let seed = format!("--seed {}", witness.seed);
        if witness.is_pipe { format!("{seed} --explain {}:worst", witness.of) } else { seed }
    }
}

/// Returns the file of witnesses beside a description.
fn file_of(description: &Path) -> PathBuf {
    description.with_extension("witness.json")
}

/// Returns a word as a shell needs it: only faults have spaces.
pub(crate) fn quoted(word: &str) -> String {
    if word.contains(' ') { format!("\"{word}\"") } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn witness(of: &str, seed: u64, longest_ns: u64) -> Witness {
        Witness { of: of.into(), is_pipe: true, seed, longest_ns, bound_ns: 1_000 }
    }

    impl Witnesses {
        /// Returns no witnesses, of no search.
        pub(crate) fn empty() -> Witnesses {
            let (seeds, options) = ((0, 4), Vec::new());
            Witnesses { format: FORMAT, text: 1, seeds, options, witnesses: Vec::new() }
        }
    }

    #[test]
    fn the_closest_run_of_the_earliest_seed_is_kept_in_any_order() {
        let seen = [witness("a", 3, 400), witness("b", 1, 10), witness("a", 1, 400)];
        let seen = [&seen[..], &[witness("a", 2, 399)]].concat();
        for turned in 0..seen.len() {
            let mut all = Witnesses::empty();
            let order = seen[turned..].iter().chain(&seen[..turned]);
            order.for_each(|it| all.note(it.clone()));
            let a = all.witnesses.iter().find(|it| it.of == "a").unwrap();
            assert_eq!((a.seed, a.per_mille()), (1, 400));
        }
    }

    #[test]
    fn a_file_comes_back_as_it_was_kept() {
        let mut kept = Witnesses::empty();
        kept.note(witness("a", 3, 400));
        let text = json!(kept).to_string();
        assert_eq!(serde_json::from_str::<Witnesses>(&text).unwrap(), kept);
    }
}
