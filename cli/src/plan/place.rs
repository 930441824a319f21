//! `diapason plan --place`: on which cores the processes of a host may be, as few as the plan holds
//! with.
//!
//! Processes that share more than segments and doorbells share a core (`Placeable::groups`). Each
//! core is planned for itself, so whether a core holds depends on its own groups only. The search
//! puts one group after another on each core that may still hold it, and asks the plan once for
//! every set of groups. More on a core never mends its plan, so a set that does not hold ends its
//! branch.

use super::{Plan, Verdict};
use crate::describe::{Placeable, describe_any, one_host};
use crate::failure::{BROKEN, Failure};
use crate::output::say;
use crate::table::{Align, TextTable};
use diapason_abi::archive::CORES_MAX;
use diapason_system::{Description, System};
use std::collections::BTreeMap;
use std::path::Path;

/// Most sets of groups that are planned: a set of a large system takes a tenth of a second.
const PLANS_MAX: usize = 2_000;

/// Most groups: a set of them is a word.
const GROUPS_MAX: usize = 63;

/// Says where processes may be.
///
/// # Errors
/// If the description makes no sense, or has too many groups.
pub(super) fn place(path: &Path, clock_hz: Option<u64>) -> Result<u8, Failure> {
    if let Ok(list @ Description::Several(_)) = describe_any(path) {
        one_host(path, list)?;
    }
    let placeable = Placeable::read(path)?;
    let groups = placeable.groups()?;
    if groups.len() > GROUPS_MAX {
        return Err(Failure::Input(format!(
            "error: {} has {} groups of processes, and `--place` takes {GROUPS_MAX}\n\
             help: write `core` in each `[[process]]`",
            path.display(),
            groups.len()
        )));
    }
    let room = Room { placeable, groups, clock_hz };
    let count = room.groups.len();
    let mut search = Search { holds: &|set| room.holds(set), known: BTreeMap::new() };
    for cores in 1..=CORES_MAX.min(count) {
        let Some(sets) = search.spread(count, cores) else { continue };
        match room.verdict(&sets) {
            Verdict::DoesNotHold => {}
            verdict => {
                say(&told(&room.groups, &sets, verdict));
                return Ok(super::code(verdict));
            }
        }
    }
    let why = match search.known.len() >= PLANS_MAX {
        true => format!("none was found among {PLANS_MAX} sets of processes"),
        false => format!("none holds with up to {CORES_MAX} cores"),
    };
    let alone: Vec<String> = (0..count)
        .filter(|group| search.known.get(&(1 << group)) == Some(&false))
        .map(|group| listed(&room.groups[group]))
        .map(|group| format!("\n{group} on a core of their own: does not hold"))
        .collect();
    say(&format!("{}: no placement: {why}{}", path.display(), alone.concat()));
    Ok(BROKEN)
}

/// The groups of a description, which can be on any cores.
struct Room<'p> {
    placeable: Placeable<'p>,
    groups: Vec<Vec<String>>,
    clock_hz: Option<u64>,
}

impl Room<'_> {
    fn group_of(&self, name: &str) -> Option<usize> {
        self.groups.iter().position(|group| group.iter().any(|own| own == name))
    }

    fn verdict_of(&self, system: &System) -> Verdict {
        Plan::of(system, self.clock_hz.unwrap_or(system.clock_hz)).verdict()
    }

    /// Returns whether a core with these groups holds, whatever is on another one.
    fn holds(&self, set: u64) -> bool {
        let cores = if set.count_ones() as usize == self.groups.len() { 1 } else { 2 };
        let core_of =
            |name: &str| u16::from(self.group_of(name).is_some_and(|it| set >> it & 1 == 0));
        let systems = self.placeable.placed(cores, &core_of).unwrap_or_default();
        systems.first().is_some_and(|first| self.verdict_of(first) != Verdict::DoesNotHold)
    }

    /// Returns the verdict on all cores in the end: each has a smaller part of the memory then.
    /// Cores that promise nothing do not change it, unless all do.
    fn verdict(&self, sets: &[u64]) -> Verdict {
        let core_of = |name: &str| {
            let group = self.group_of(name);
            let core = group.and_then(|group| sets.iter().position(|set| set >> group & 1 == 1));
            core.unwrap_or(0) as u16
        };
        let Some(systems) = self.placeable.placed(sets.len() as u16, &core_of) else {
            return Verdict::DoesNotHold;
        };
        let verdicts: Vec<Verdict> = systems.iter().map(|it| self.verdict_of(it)).collect();
        let first = [Verdict::DoesNotHold, Verdict::Holds];
        let worst = first.into_iter().find(|verdict| verdicts.contains(verdict));
        worst.unwrap_or(Verdict::PromisesNothing)
    }
}

/// The search for the groups of each core.
struct Search<'s> {
    /// Whether a core with a set of groups holds, one bit for each.
    holds: &'s dyn Fn(u64) -> bool,
    known: BTreeMap<u64, bool>,
}

impl Search<'_> {
    /// Returns the groups of each of so many cores, if they hold.
    fn spread(&mut self, groups: usize, cores: usize) -> Option<Vec<u64>> {
        let mut sets = vec![0; cores];
        self.go_on(0, groups, &mut sets).then_some(sets)
    }

    /// Puts the groups from `next` on onto cores. The first empty core stands for all of them.
    fn go_on(&mut self, next: usize, groups: usize, sets: &mut [u64]) -> bool {
        if next == groups {
            return sets.iter().all(|set| *set != 0);
        }
        let mut seen_empty = false;
        for core in 0..sets.len() {
            let before = sets[core];
            if before == 0 && std::mem::replace(&mut seen_empty, true) {
                continue;
            }
            sets[core] |= 1 << next;
            if self.asked(sets[core]) && self.go_on(next + 1, groups, sets) {
                return true;
            }
            sets[core] = before;
        }
        false
    }

    fn asked(&mut self, set: u64) -> bool {
        if let Some(known) = self.known.get(&set) {
            return *known;
        }
        let holds = self.known.len() < PLANS_MAX && (self.holds)(set);
        self.known.insert(set, holds);
        holds
    }
}

fn listed(group: &[String]) -> String {
    group.join(", ")
}

/// Returns the placement as a table, and what to write.
fn told(groups: &[Vec<String>], sets: &[u64], verdict: Verdict) -> String {
    let mut table = TextTable::new(&[("core", Align::Right), ("processes", Align::Left)]);
    for (core, set) in sets.iter().enumerate() {
        for (number, group) in groups.iter().enumerate() {
            if set >> number & 1 == 1 {
                table.row(vec![core.to_string(), listed(group)]);
            }
        }
    }
    let write = match sets.len() {
        1 => "one core is enough".to_owned(),
        cores => format!("write `cores = {cores}` in `[system]`, and `core` in each `[[process]]`"),
    };
    let then = match verdict {
        Verdict::PromisesNothing => "no plan promises anything",
        _ => "the plan of each core holds then",
    };
    format!("{}\n{write}; {then}", table.render())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{HOLDS, UNPROVED};

    /// A core holds groups of at most 10 in all.
    fn placed(sizes: &[u64], cores: usize) -> Option<Vec<u64>> {
        let sum = |set: u64| -> u64 {
            let own = sizes.iter().enumerate().filter(|(group, _)| set >> group & 1 == 1);
            own.map(|(_, size)| size).sum()
        };
        let mut search = Search { holds: &|set| sum(set) <= 10, known: BTreeMap::new() };
        search.spread(sizes.len(), cores)
    }

    #[test]
    fn the_search_finds_what_first_fit_does_not() {
        // First fit puts 4 and 4 together, and needs a third core.
        assert_eq!(placed(&[4, 4, 6, 6], 2), Some(vec![0b0101, 0b1010]));
        assert_eq!(placed(&[4, 4, 6, 6], 1), None);
        assert_eq!(placed(&[11], 1), None);
        assert_eq!(placed(&[6, 6, 6], 2), None);
        assert_eq!(placed(&[6, 6, 6], 3), Some(vec![1, 2, 4]));
    }

    /// Two processes that take 60 % of a core each. A third shares a semaphore with the second. A
    /// segment keeps nothing together.
    const THREE: &str = r#"
[system]
name = "three"
[[vcpu]]
name = "a"
budget = "6ms"
period = "10ms"
[[vcpu]]
name = "b"
budget = "6ms"
period = "10ms"
[[vcpu]]
name = "c"
budget = "2ms"
period = "10ms"
[[process]]
name = "first"
program = "task"
priority = 1
vcpu = "a"
uses = ["board"]
[[process]]
name = "second"
program = "task"
priority = 1
vcpu = "b"
uses = ["board", "lock"]
[[process]]
name = "third"
program = "task"
priority = 1
vcpu = "c"
uses = ["lock"]
[[semaphore]]
name = "lock"
[[segment]]
name = "board"
size = "4K"
"#;

    #[test]
    fn groups_stay_together_and_cores_are_planned() {
        let path = std::env::temp_dir().join(format!("placed-{}.toml", std::process::id()));
        std::fs::write(&path, THREE).unwrap();
        let placeable = Placeable::read(&path).unwrap();
        let groups = placeable.groups().unwrap();
        assert_eq!(groups, [vec!["first"], vec!["second", "third"]]);
        let room = Room { placeable, groups, clock_hz: None };
        assert!(!room.holds(0b11), "120 % of a core");
        assert!(room.holds(0b10));
        assert_eq!(room.verdict(&[0b01, 0b10]), Verdict::Holds);
        assert_eq!(place(&path, None), Ok(HOLDS));
        // The pair alone takes more than a core.
        std::fs::write(&path, THREE.replace("budget = \"2ms\"", "budget = \"5ms\"")).unwrap();
        assert_eq!(place(&path, None), Ok(BROKEN));
        // A system without a VCPU fits anywhere, and nothing is promised of it.
        let process = |name: usize| {
            format!("[[process]]\nname = \"p{name}\"\nprogram = \"task\"\npriority = 1\n")
        };
        let few: String = (0..2).map(process).collect();
        std::fs::write(&path, format!("[system]\nname = \"few\"\n{few}")).unwrap();
        assert_eq!(place(&path, None), Ok(UNPROVED));
        std::fs::remove_file(&path).unwrap();
    }
}
