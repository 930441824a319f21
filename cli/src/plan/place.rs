//! `diapason plan --place`: on which cores the processes of a host may be, as few as the plan holds
//! with, or on so many with the largest margin.
//!
//! Processes that share more than segments and doorbells share a core (`Placeable::groups`). Each
//! core is planned for itself, so whether a core holds depends on its own groups only. While the
//! search goes on, all readers elsewhere of a core's pipes are planned on one other core. The
//! search puts one group after another on each core that may still hold it, and asks the plan once
//! for every set of groups. More on a core never mends its plan, so a set that does not hold ends
//! its branch. The margin is what the fullest core has left of its time. The search for the
//! largest repeats that for ever fuller limits: a placement that is found is the limit of the next
//! search.

use super::{Plan, PlanRequest, Verdict};
use crate::describe::{Placeable, describe_any, one_host};
use crate::failure::{BROKEN, Failure};
use crate::output::{note, say};
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
pub(super) fn place(request: &PlanRequest) -> Result<u8, Failure> {
    let path: &Path = &request.system;
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
    let room = Room { placeable, groups, clock_hz: request.computer.clock_hz };
    let count = room.groups.len();
    let mut search = Search { reserved: &|set| room.reserved(set), known: BTreeMap::new() };
    let (least, most) = request.cores.map_or((1, CORES_MAX), |cores| (cores.into(), cores.into()));
    if least > count {
        return Err(Failure::Input(format!(
            "error: {} has {count} {} of processes, and {least} cores need as many\n\
             help: write `--cores {count}`, or less",
            path.display(),
            if count == 1 { "group" } else { "groups" }
        )));
    }
    for cores in least..=most.min(count) {
        let found = match request.cores {
            None => search.spread(count, cores, NO_LIMIT),
            Some(_) => search.widest(count, cores),
        };
        let Some(sets) = found else { continue };
        match room.verdict(&sets) {
            Verdict::DoesNotHold => {}
            verdict => {
                say(&told(&room, &sets, verdict));
                if request.cores.is_some() && search.known.len() >= PLANS_MAX {
                    note(&format!(
                        "it is the best among {PLANS_MAX} sets of processes, not of all"
                    ));
                }
                return Ok(super::code(verdict));
            }
        }
    }
    let why = match search.known.len() >= PLANS_MAX {
        true => format!("none was found among {PLANS_MAX} sets of processes"),
        false if least == most => "none holds with so many cores".to_owned(),
        false => format!("none holds with up to {most} cores"),
    };
    let alone: Vec<String> = (0..count)
        .filter(|group| search.known.get(&(1 << group)) == Some(&None))
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

    /// Returns the system of each core if they are placed so, at the clock that was asked for.
    fn placed(&self, cores: u16, core_of: &dyn Fn(&str) -> u16) -> Option<Vec<System>> {
        let mut systems = self.placeable.placed(cores, core_of)?;
        for system in &mut systems {
            system.clock_hz = self.clock_hz.unwrap_or(system.clock_hz);
        }
        Some(systems)
    }

    /// Returns how much of a core these groups reserve, in millionths, if it holds with them,
    /// whatever is on another one.
    fn reserved(&self, set: u64) -> Option<u64> {
        let systems = self.apart(set, 0)?;
        let far = self.readers(&systems);
        let plan = match far {
            0 => Plan::of(systems.first()?),
            _ => Plan::of_cores(&self.apart(set, far)?).into_iter().next()?,
        };
        (plan.verdict() != Verdict::DoesNotHold).then(|| plan.utilization_ppm())
    }

    /// Returns the systems with the groups of `set` on the first core, those of `far` on a second,
    /// and any others on one more.
    fn apart(&self, set: u64, far: u64) -> Option<Vec<System>> {
        let all = (1 << self.groups.len()) - 1;
        let sets: Vec<u64> =
            [set, far & !set, all & !set & !far].into_iter().filter(|set| *set != 0).collect();
        let core_of = |name: &str| {
            let is_on = |set: &u64| self.group_of(name).is_none_or(|it| set >> it & 1 == 1);
            sets.iter().position(is_on).unwrap_or(0) as u16
        };
        self.placed(sets.len() as u16, &core_of)
    }

    /// Returns the groups on other cores that read pipes of the first core.
    fn readers(&self, systems: &[System]) -> u64 {
        let far = systems.iter().skip(1).flat_map(|system| {
            system.far.iter().filter_map(|pipe| system.process_name(pipe.process))
        });
        far.filter_map(|name| self.group_of(name)).fold(0, |all, group| all | 1 << group)
    }

    /// Returns the verdict on all cores in the end: each has a smaller part of the memory then.
    /// Cores that promise nothing do not change it, unless all do.
    fn verdict(&self, sets: &[u64]) -> Verdict {
        let core_of = |name: &str| {
            let group = self.group_of(name);
            let core = group.and_then(|group| sets.iter().position(|set| set >> group & 1 == 1));
            core.unwrap_or(0) as u16
        };
        let Some(systems) = self.placed(sets.len() as u16, &core_of) else {
            return Verdict::DoesNotHold;
        };
        let plans = Plan::of_cores(&systems);
        let verdicts: Vec<Verdict> = plans.iter().map(Plan::verdict).collect();
        let first = [Verdict::DoesNotHold, Verdict::Holds];
        let worst = first.into_iter().find(|verdict| verdicts.contains(verdict));
        worst.unwrap_or(Verdict::PromisesNothing)
    }
}

/// The limit of a search that takes every core that holds.
const NO_LIMIT: u64 = u64::MAX;

/// The search for the groups of each core.
struct Search<'s> {
    /// How much of a core a set of groups reserves, one bit for each, if the core holds with it.
    reserved: &'s dyn Fn(u64) -> Option<u64>,
    known: BTreeMap<u64, Option<u64>>,
}

impl Search<'_> {
    /// Returns the groups of each of so many cores, if each holds and reserves less than `limit`.
    fn spread(&mut self, groups: usize, cores: usize, limit: u64) -> Option<Vec<u64>> {
        let mut sets = vec![0; cores];
        self.go_on(0, groups, limit, &mut sets).then_some(sets)
    }

    /// Returns the groups of each of so many cores, if each holds, so that the fullest core
    /// reserves as little as possible.
    fn widest(&mut self, groups: usize, cores: usize) -> Option<Vec<u64>> {
        let (mut best, mut limit) = (None, NO_LIMIT);
        while let Some(sets) = self.spread(groups, cores, limit) {
            limit = sets.iter().filter_map(|set| self.asked(*set)).max().unwrap_or(0);
            best = Some(sets);
        }
        best
    }

    /// Puts the groups from `next` on onto cores. The first empty core stands for all of them.
    fn go_on(&mut self, next: usize, groups: usize, limit: u64, sets: &mut [u64]) -> bool {
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
            let fits = self.asked(sets[core]).is_some_and(|reserved| reserved < limit);
            if fits && self.go_on(next + 1, groups, limit, sets) {
                return true;
            }
            sets[core] = before;
        }
        false
    }

    fn asked(&mut self, set: u64) -> Option<u64> {
        if let Some(known) = self.known.get(&set) {
            return *known;
        }
        if self.known.len() >= PLANS_MAX {
            return None;
        }
        let reserved = (self.reserved)(set);
        self.known.insert(set, reserved);
        reserved
    }
}

fn listed(group: &[String]) -> String {
    group.join(", ")
}

/// Returns the placement as a table, and what to write.
fn told(room: &Room<'_>, sets: &[u64], verdict: Verdict) -> String {
    let titles = [("core", Align::Right), ("reserved", Align::Right), ("processes", Align::Left)];
    let mut table = TextTable::new(&titles);
    for (core, set) in sets.iter().enumerate() {
        let mut head = [core.to_string(), room.reserved(*set).map(percent).unwrap_or_default()];
        for (number, group) in room.groups.iter().enumerate() {
            if set >> number & 1 == 1 {
                let [core, reserved] = std::mem::take(&mut head);
                table.row(vec![core, reserved, listed(group)]);
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

/// Returns millionths as a percentage.
fn percent(ppm: u64) -> String {
    format!("{}.{:02} %", ppm / 10_000, ppm % 10_000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::computer::Computer;
    use crate::failure::{HOLDS, UNPROVED};

    /// A core holds groups of at most 10 in all.
    fn placed(sizes: &[u64], cores: usize) -> Option<Vec<u64>> {
        let sum = |set: u64| -> u64 {
            let own = sizes.iter().enumerate().filter(|(group, _)| set >> group & 1 == 1);
            own.map(|(_, size)| size).sum()
        };
        let reserved = |set| Some(sum(set)).filter(|sum| *sum <= 10);
        let mut search = Search { reserved: &reserved, known: BTreeMap::new() };
        let found = search.spread(sizes.len(), cores, NO_LIMIT);
        // The widest is never fuller, and there is one exactly if there is any.
        let fullest = |sets: &Vec<u64>| sets.iter().map(|set| sum(*set)).max();
        let widest = search.widest(sizes.len(), cores);
        assert_eq!(widest.is_some(), found.is_some());
        assert!(widest.iter().map(fullest).eq(every(sizes, cores).map(Some)));
        found
    }

    /// Returns the least that the fullest core can have, of all placements.
    fn every(sizes: &[u64], cores: usize) -> Option<u64> {
        let placements = (cores as u64).pow(sizes.len() as u32);
        let fullest = |placement: u64| {
            let (mut sums, mut rest) = (vec![0; cores], placement);
            for size in sizes {
                sums[(rest % cores as u64) as usize] += size;
                rest /= cores as u64;
            }
            let fits = sums.iter().all(|sum| (1..=10).contains(sum));
            fits.then(|| sums.into_iter().max().unwrap_or(0))
        };
        (0..placements).filter_map(fullest).min()
    }

    #[test]
    fn the_search_finds_what_first_fit_does_not() {
        // First fit puts 4 and 4 together, and needs a third core.
        assert_eq!(placed(&[4, 4, 6, 6], 2), Some(vec![0b0101, 0b1010]));
        assert_eq!(placed(&[4, 4, 6, 6], 1), None);
        assert_eq!(placed(&[11], 1), None);
        assert_eq!(placed(&[6, 6, 6], 2), None);
        assert_eq!(placed(&[6, 6, 6], 3), Some(vec![1, 2, 4]));
        assert!(placed(&[1, 2, 3, 4, 5], 3).is_some() && placed(&[5, 5, 1, 1, 4], 2).is_some());
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

    impl PlanRequest {
        fn placing(path: &Path, cores: Option<u16>) -> PlanRequest {
            let system = path.to_path_buf();
            let (computer, format) = (Computer::default(), None);
            PlanRequest { system, computer, place: true, cores, json: false, format }
        }
    }

    #[test]
    fn groups_stay_together_and_cores_are_planned() {
        let path = std::env::temp_dir().join(format!("placed-{}.toml", std::process::id()));
        std::fs::write(&path, THREE).unwrap();
        let placeable = Placeable::read(&path).unwrap();
        let groups = placeable.groups().unwrap();
        assert_eq!(groups, [vec!["first"], vec!["second", "third"]]);
        let room = Room { placeable, groups, clock_hz: None };
        assert_eq!(room.reserved(0b11), None, "140 % of a core");
        assert_eq!(room.reserved(0b10), Some(800_000));
        assert_eq!(room.verdict(&[0b01, 0b10]), Verdict::Holds);
        let request = PlanRequest::placing(&path, None);
        assert_eq!(place(&request), Ok(HOLDS));
        assert_eq!(place(&PlanRequest::placing(&path, Some(2))), Ok(HOLDS));
        assert_eq!(place(&PlanRequest::placing(&path, Some(1))), Ok(BROKEN));
        assert!(place(&PlanRequest::placing(&path, Some(3))).is_err(), "two groups");
        // The pair alone takes more than a core.
        std::fs::write(&path, THREE.replace("budget = \"2ms\"", "budget = \"5ms\"")).unwrap();
        assert_eq!(place(&request), Ok(BROKEN));
        // A system without a VCPU fits anywhere, and nothing is promised of it.
        let process = |name: usize| {
            format!("[[process]]\nname = \"p{name}\"\nprogram = \"task\"\npriority = 1\n")
        };
        let few: String = (0..2).map(process).collect();
        std::fs::write(&path, format!("[system]\nname = \"few\"\n{few}")).unwrap();
        assert_eq!(place(&request), Ok(UNPROVED));
        std::fs::remove_file(&path).unwrap();
    }
}
