//! The campaigns: what each counts, and the command that does one share of it.

use super::shard::Shard;
use crate::{attack, checks, mutants, storm};
use diapason::failure::BROKEN;
use diapason::{Failure, Workspace};
use diapason_fuzz::targets::TARGETS;

/// A program that can be started from here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Program {
    /// The developer's command that is running.
    Xtask,
    /// The command of users, beside this one.
    Diapason,
    /// The `cargo` that built this one.
    Cargo,
}

impl Program {
    /// Returns the exit code that says that something was found.
    #[must_use]
    pub fn finds(self) -> i32 {
        match self {
            Program::Xtask | Program::Diapason => BROKEN.into(),
            // A test that fails.
            Program::Cargo => 101,
        }
    }
}

/// A command that does a share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Line {
    pub program: Program,
    pub arguments: Vec<String>,
    /// Variables of its environment.
    pub variables: Vec<(String, String)>,
}

impl Line {
    fn of<const N: usize>(program: Program, arguments: [&str; N]) -> Line {
        let arguments = arguments.map(String::from).to_vec();
        Line { program, arguments, variables: Vec::new() }
    }

    /// Returns the line that runs the tests of one of a package's test programs whose names have a
    /// part in common.
    fn of_test(package: &str, program: &str, name: &str) -> Line {
        let release = ["test", "--quiet", "--release", "-p", package, "--test", program, name];
        Line::of(Program::Cargo, release)
    }

    /// Reads a line as it is printed: variables, the program, and its arguments.
    pub fn parse(text: &str) -> Option<Line> {
        let mut words = words(text).into_iter().peekable();
        let mut variables = Vec::new();
        while let Some((name, value)) = words.peek().and_then(|word| word.split_once('=')) {
            variables.push((name.to_owned(), value.to_owned()));
            words.next();
        }
        let program = match words.next()?.as_str() {
            "diapason" => Program::Diapason,
            "cargo" => match words.next_if_eq("xtask") {
                Some(_) => Program::Xtask,
                None => Program::Cargo,
            },
            _ => return None,
        };
        Some(Line { program, arguments: words.collect(), variables })
    }

    fn with(mut self, option: &str, value: impl ToString) -> Line {
        self.arguments.extend([String::from(option), value.to_string()]);
        self
    }

    fn variable(mut self, name: &str, value: impl ToString) -> Line {
        self.variables.push((name.into(), value.to_string()));
        self
    }
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (name, value) in &self.variables {
            write!(f, "{name}={value} ")?;
        }
        f.write_str(match self.program {
            Program::Xtask => "cargo xtask",
            Program::Diapason => "diapason",
            Program::Cargo => "cargo",
        })?;
        self.arguments.iter().try_for_each(|word| match word.contains(' ') {
            true => write!(f, " '{word}'"),
            false => write!(f, " {word}"),
        })
    }
}

/// Returns the words of a command; a part between single quotes is one.
fn words(text: &str) -> Vec<String> {
    let parts = text.split('\'').enumerate();
    parts
        .flat_map(|(number, part)| match number % 2 {
            0 => part.split_whitespace().map(String::from).collect(),
            _ => vec![String::from(part)],
        })
        .collect()
}

/// The size and the first seed of a campaign.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Size {
    pub count: u64,
    pub seed: u64,
    /// The description that `search` simulates.
    pub system: String,
}

/// A campaign that can be cut into shares.
pub(crate) struct Campaign {
    pub name: &'static str,
    /// The things that are counted.
    pub unit: &'static str,
    /// The number of them that is done when nobody says how many. Of a list it is 0: all are done.
    pub usual: u64,
    /// The shares work in one folder, so on one machine they come one after the other.
    pub alone: bool,
    share: fn(&Workspace, &Size, Shard) -> Result<Vec<Line>, Failure>,
}

impl Campaign {
    /// Returns the campaign of this name.
    ///
    /// # Errors
    /// Returns the names that there are.
    pub fn find(name: &str) -> Result<&'static Campaign, Failure> {
        CAMPAIGNS.iter().find(|campaign| campaign.name == name).ok_or_else(|| {
            let known: Vec<&str> = CAMPAIGNS.iter().map(|campaign| campaign.name).collect();
            let known = known.join(", ");
            Failure::Input(format!("error: no campaign `{name}`\n  = help: there are {known}"))
        })
    }

    /// Returns the commands of a share, in order.
    ///
    /// # Errors
    /// If the list of what there is to do cannot be read.
    pub fn lines(
        &self,
        workspace: &Workspace,
        size: &Size,
        shard: Shard,
    ) -> Result<Vec<Line>, Failure> {
        if self.usual > 0 && shard.part(size.count) == 0 {
            return Ok(Vec::new());
        }
        (self.share)(workspace, size, shard)
    }
}

/// The campaigns in the order of `docs/campaigns.md`.
pub(crate) const CAMPAIGNS: &[Campaign] = &[
    Campaign {
        name: "systems",
        unit: "random systems",
        usual: 10_000,
        alone: false,
        share: |_, size, shard| {
            let line = Line::of(Program::Xtask, ["attack", "systems"]).with("--count", size.count);
            Ok(vec![line.with("--seed", size.seed).with("--shard", shard)])
        },
    },
    Campaign {
        name: "search",
        unit: "seeds with faults",
        usual: 10_000,
        alone: false,
        share: |_, size, shard| {
            let line = Line::of(Program::Diapason, ["sim", &size.system, "--faults"])
                .with("--search", shard.part(size.count))
                .with("--seed", size.seed + shard.before(size.count))
                .with("--jobs", 1);
            Ok(vec![line])
        },
    },
    Campaign {
        name: "storm",
        unit: "system calls",
        usual: 200_000_000,
        alone: false,
        share: |_, size, shard| {
            let line = Line::of_test("diapason-core", "all", "storm::nothing")
                .variable(storm::HOST_CALLS, shard.part(size.count))
                .variable(storm::HOST_SEED, size.seed + shard.index());
            Ok(vec![line])
        },
    },
    Campaign {
        name: "usb",
        unit: "plug cycles, 150 hostile devices and a tenth of a wave of trees for each",
        usual: 10_000,
        alone: false,
        share: |_, size, shard| {
            let part = shard.part(size.count);
            let line = Line::of(Program::Xtask, ["usb"]).with("--cycles", part);
            let line = line.with("--hostile", 150 * part).with("--trees", part.div_ceil(10));
            Ok(vec![line.with("--seed", size.seed + shard.index())])
        },
    },
    Campaign {
        name: "compare",
        unit: "task sets, and as many scripts of USB traffic, in QEMU and in the simulator",
        usual: 1_000,
        alone: false,
        share: |_, size, shard| {
            let lines = ["--sets", "--scripts"].map(|what| {
                let line = Line::of(Program::Xtask, ["compare"]);
                line.with(what, shard.part(size.count)).with("--seed", size.seed + shard.index())
            });
            Ok(lines.into())
        },
    },
    Campaign {
        name: "mts",
        unit: "workloads on a simulated CAN bus under MTS",
        usual: 1_000_000,
        alone: false,
        share: |_, size, shard| {
            let line = Line::of_test("diapason-mts", "tests", "promised_workloads")
                .variable("DIAPASON_MTS_WORKLOADS", shard.part(size.count))
                .variable("DIAPASON_MTS_SEED", size.seed + shard.index());
            Ok(vec![line])
        },
    },
    Campaign {
        name: "analysis",
        unit: "attacks on formulas and state machines",
        usual: 0,
        alone: false,
        share: |_, _, shard| {
            let parts = shard.of(attack::CAMPAIGNS.iter());
            Ok(parts.map(|it| Line::of(Program::Xtask, ["attack", it.what])).collect())
        },
    },
    Campaign {
        name: "gates",
        unit: "commands that do the asked numbers of checks",
        usual: 0,
        alone: false,
        share: |_, _, shard| {
            let asked = checks::CHECKS.iter().flat_map(|check| check.asked);
            Ok(shard.of(asked).filter_map(|text| Line::parse(text)).collect())
        },
    },
    Campaign {
        name: "mutants",
        unit: "planted bugs",
        usual: 0,
        alone: true,
        share: |workspace, _, shard| {
            let mut line = Line::of(Program::Xtask, ["mutants"]);
            let all = mutants::planted::all(workspace)?;
            line.arguments.extend(shard.of(all.into_iter()).map(|planted| planted.name));
            Ok(vec![line].into_iter().filter(|line| line.arguments.len() > 1).collect())
        },
    },
    Campaign {
        name: "fuzz",
        unit: "inputs of parsers",
        usual: 100_000_000,
        alone: false,
        share: |_, size, shard| {
            let part = shard.part(size.count).div_ceil(TARGETS.len() as u64);
            let seed = size.seed + shard.index();
            let line = |name| Line::of(Program::Xtask, ["fuzz", name]).with("--runs", part);
            Ok(TARGETS.iter().map(|target| line(target.name).with("--seed", seed)).collect())
        },
    },
    Campaign {
        name: "reproduce",
        unit: "reproductions in full length",
        usual: 0,
        alone: false,
        share: |_, _, shard| {
            let names = shard.of(diapason_papers::names());
            Ok(names.map(|name| Line::of(Program::Diapason, ["reproduce", name])).collect())
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn size() -> Size {
        Size { count: 10, seed: 5, system: String::from("a.toml") }
    }

    fn lines(name: &str, shard: &str) -> Vec<String> {
        let workspace = Workspace::find().expect("tests run in the checkout");
        let shard = shard.parse().expect("a share");
        let lines = Campaign::find(name).unwrap().lines(&workspace, &size(), shard).unwrap();
        lines.iter().map(Line::to_string).collect()
    }

    #[test]
    fn shares_of_seeds_are_neighbours() {
        let of = |shard| lines("search", shard).remove(0);
        let said = |part, seed| {
            format!("diapason sim a.toml --faults --search {part} --seed {seed} --jobs 1")
        };
        assert_eq!(["0/3", "1/3", "2/3"].map(of), [said(4, 5), said(3, 9), said(3, 12)]);
        for name in ["systems", "search", "storm", "usb", "compare", "mts", "fuzz"] {
            assert!(lines(name, "10/11").is_empty(), "nothing is left for it: {name}");
        }
    }

    #[test]
    fn a_list_is_dealt_out() {
        let all: Vec<String> =
            ["0/2", "1/2"].iter().flat_map(|shard| lines("reproduce", shard)).collect();
        assert_eq!(all.len(), diapason_papers::names().count());
        assert!(all.contains(&String::from("diapason reproduce csd")));
        let planted: usize = ["0/2", "1/2"]
            .map(|shard| lines("mutants", shard)[0].split(' ').count() - 3)
            .iter()
            .sum();
        let workspace = Workspace::find().unwrap();
        assert_eq!(planted, mutants::planted::all(&workspace).unwrap().len());
    }

    #[test]
    fn the_commands_of_all_gates_are_understood() {
        let asked = checks::CHECKS.iter().flat_map(|check| check.asked);
        for text in asked {
            assert_eq!(Line::parse(text).map(|line| line.to_string()).as_deref(), Some(*text));
        }
        let commands = ["0/3", "1/3", "2/3"].map(|shard| lines("gates", shard).len());
        let all = checks::CHECKS.iter().flat_map(|check| check.asked).count();
        assert_eq!(commands.iter().sum::<usize>(), all);
        assert_eq!(Line::parse("rm -r tests"), None);
    }

    #[test]
    fn a_name_that_is_none_is_told_with_those_that_are() {
        let failure = Campaign::find("system").err().expect("there is none");
        assert!(failure.to_string().contains("no campaign `system`"), "{failure}");
        assert!(failure.to_string().contains("systems, search, storm"), "{failure}");
    }

    #[test]
    fn every_campaign_is_documented() {
        let workspace = Workspace::find().expect("tests run in the checkout");
        let page = std::fs::read_to_string(workspace.root().join("docs/campaigns.md")).unwrap();
        for campaign in CAMPAIGNS {
            assert!(page.contains(&format!("| `{}` |", campaign.name)), "{}", campaign.name);
        }
    }
}
