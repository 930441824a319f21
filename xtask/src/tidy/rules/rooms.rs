//! Rules about who may depend on whom: one table of rooms, which the README shows.

use super::super::Problem;
use super::super::source::{Source, Tree};
use std::collections::BTreeMap;
use toml::{Table, Value};

/// A room: a folder whose packages share a purpose.
struct Room {
    /// The room's folder. A package belongs to the room with the longest folder above it.
    folder: &'static str,
    /// The room's purpose, in the README.
    purpose: &'static str,
    /// Folders whose packages it may use besides its own: rooms, or parts of them.
    uses: &'static [&'static str],
    /// Folders that its tests may use as well.
    tests: &'static [&'static str],
}

/// Every room, from the ground up: a room uses only what stands above it in this table.
const ROOMS: [Room; 10] = [
    Room {
        folder: "abi",
        purpose: "what kernel, programs and tools must agree on; plain data",
        uses: &[],
        tests: &[],
    },
    Room {
        folder: "lib",
        purpose: "libraries usable on their own: theory, state machines, drivers without hardware",
        uses: &["abi"],
        tests: &["devices", "sim"],
    },
    Room {
        folder: "kernel",
        purpose: "`core` decides as a pure state machine, `x86_64` carries it out",
        uses: &["abi", "lib"],
        tests: &[],
    },
    Room {
        folder: "user",
        purpose: "what programs link, servers, and the examples' applications",
        uses: &["abi", "lib"],
        tests: &[],
    },
    Room {
        folder: "devices",
        purpose: "models of USB devices, with explicit time",
        uses: &["abi", "lib"],
        tests: &[],
    },
    Room {
        folder: "lib/plan",
        purpose: "from a description to verdicts, bills and refusals",
        uses: &["abi", "lib", "devices"],
        tests: &[],
    },
    Room {
        folder: "sim",
        purpose: "the deterministic machine and its USB controller",
        uses: &["abi", "lib", "kernel/core", "devices"],
        tests: &[],
    },
    Room {
        folder: "cli",
        purpose: "the `diapason` command: it renders, boots and asks",
        uses: &["abi", "lib", "lib/plan", "kernel/core", "devices", "sim"],
        tests: &[],
    },
    Room {
        folder: "papers",
        purpose: "reproductions of papers, and what exists only for them",
        uses: &[
            "abi",
            "lib",
            "lib/plan",
            "kernel/core",
            "user/rt",
            "user/usblib",
            "user/netlib",
            "devices",
            "sim",
            "cli",
        ],
        tests: &[],
    },
    Room {
        folder: "xtask",
        purpose: "the developer's commands: tests, house rules, debugger",
        uses: &["abi", "lib", "lib/plan", "kernel/core", "devices", "sim", "cli", "papers"],
        tests: &[],
    },
];

/// The lines before and after the table in the README.
const BEGIN: &str = "<!-- rooms: `cargo xtask tidy` holds this table -->";
const END: &str = "<!-- end of rooms -->";

/// Returns whether `path` is the folder `folder`, or in it.
fn below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn room(path: &str) -> Option<&'static Room> {
    ROOMS.iter().filter(|room| below(path, room.folder)).max_by_key(|room| room.folder.len())
}

/// A package and what its manifest says.
struct Package<'a> {
    manifest: &'a Source,
    folder: &'a str,
    table: Table,
}

fn packages(tree: &Tree) -> (Vec<Package<'_>>, Vec<Problem>) {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for manifest in &tree.files {
        let Some(folder) = manifest.path.strip_suffix("/Cargo.toml") else { continue };
        match manifest.text.parse::<Table>() {
            Ok(table) => found.push(Package { manifest, folder, table }),
            Err(error) => problems.push(Problem::new(&manifest.path, 1, error.to_string())),
        }
    }
    (found, problems)
}

impl Package<'_> {
    fn name(&self) -> Option<&str> {
        self.table.get("package")?.get("name")?.as_str()
    }

    /// Names of what it uses; true: only its tests do.
    fn uses(&self) -> Vec<(&str, bool)> {
        let kinds = [("dependencies", false), ("build-dependencies", false)];
        let kinds = kinds.into_iter().chain([("dev-dependencies", true)]);
        let targets = self.table.get("target").and_then(Value::as_table);
        let targets = targets.into_iter().flatten().filter_map(|(_, target)| target.as_table());
        let tables: Vec<&Table> = [&self.table].into_iter().chain(targets).collect();
        let mut uses = Vec::new();
        for (kind, test) in kinds {
            let of_kind = tables.iter().filter_map(|table| table.get(kind)?.as_table());
            for (key, value) in of_kind.flatten() {
                // A dependency may be given another name here.
                let package = value.get("package").and_then(Value::as_str);
                uses.push((package.unwrap_or(key), test));
            }
        }
        uses
    }
}

/// A package uses only what its room may.
pub fn dependencies(tree: &Tree) -> Vec<Problem> {
    let (packages, mut problems) = packages(tree);
    let folders: BTreeMap<&str, &str> =
        packages.iter().filter_map(|package| Some((package.name()?, package.folder))).collect();
    for package in &packages {
        let path = &package.manifest.path;
        let Some(own) = room(package.folder) else {
            let remedy = "give its folder a row in xtask/src/tidy/rules/rooms.rs, or move it";
            problems.push(Problem::new(path, 1, format!("this package has no room: {remedy}")));
            continue;
        };
        for (name, test) in package.uses() {
            let Some(folder) = folders.get(name) else { continue };
            let mut allowed = vec![own.folder];
            allowed.extend(own.uses);
            allowed.extend(own.tests.iter().filter(|_| test));
            // A room inside another one is not part of it.
            let home = room(folder).map_or("", |room| room.folder);
            if allowed.iter().any(|allowed| below(folder, allowed) && below(allowed, home)) {
                continue;
            }
            let of = |(_, line): &(usize, &str)| line.trim_start().starts_with(name);
            let line = package.manifest.lines().find(of).map_or(1, |(line, _)| line);
            let whose = if test { "tests of " } else { "" };
            let text = format!(
                "{whose}`{}` must not use `{name}`, which is in {folder}: turn the arrow around",
                own.folder
            );
            problems.push(Problem::new(path, line, text));
        }
    }
    problems
}

/// Returns the table as the README shows it.
fn picture() -> String {
    let row = |room: &Room| {
        let uses: Vec<String> = room.uses.iter().map(|folder| format!("`{folder}`")).collect();
        let uses = if uses.is_empty() { "nothing".into() } else { uses.join(", ") };
        format!("| [`{0}/`]({0}) | {1} | {uses} |\n", room.folder, room.purpose)
    };
    let rows: String = ROOMS.iter().map(row).collect();
    format!("| room | what it is for | may use, besides itself |\n|---|---|---|\n{rows}")
}

/// The README shows the table that is held.
pub fn shown(tree: &Tree) -> Vec<Problem> {
    let Some(readme) = tree.files.iter().find(|file| file.path == "README.md") else {
        return Vec::new();
    };
    let between = readme.text.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END));
    if between.is_some_and(|(table, _)| table.trim() == picture().trim()) {
        return Vec::new();
    }
    let line = readme.lines().find(|(_, line)| *line == BEGIN).map_or(1, |(line, _)| line);
    let text = format!("between `{BEGIN}` and `{END}` must stand:\n\n{}", picture());
    vec![Problem::new("README.md", line, text)]
}

#[cfg(test)]
mod tests {
    use super::super::fixture::fires_on;
    use super::*;

    const ABI: &str = "[package]\nname = \"abi\"\n";
    const CLI: &str = "[package]\nname = \"cli\"\n[dependencies]\nabi.workspace = true\n";

    #[test]
    fn an_arrow_upward_is_found_at_its_line() {
        let library = "[package]\nname = \"a\"\n[dependencies]\nabi = {}\nclap = \"4\"\ncli = {}\n";
        let files =
            [("abi/Cargo.toml", ABI), ("cli/Cargo.toml", CLI), ("lib/a/Cargo.toml", library)];
        assert_eq!(fires_on(dependencies, &files), [("lib/a/Cargo.toml".into(), 6)]);
    }

    #[test]
    fn other_names_targets_and_tests_are_no_way_around() {
        let renamed = "[package]\nname = \"a\"\n[dependencies]\nx = { package = \"cli\" }\n";
        let target = "[package]\nname = \"b\"\n[target.'cfg(unix)'.dependencies]\ncli = {}\n";
        let test = "[package]\nname = \"c\"\n[dev-dependencies]\ncli = {}\n";
        let files = [
            ("cli/Cargo.toml", CLI),
            ("lib/a/Cargo.toml", renamed),
            ("lib/b/Cargo.toml", target),
            ("lib/c/Cargo.toml", test),
        ];
        assert_eq!(fires_on(dependencies, &files).len(), 3);
    }

    #[test]
    fn nothing_depends_on_papers_but_the_developers_commands() {
        let user = |room: &&Room| room.uses.iter().chain(room.tests).any(|f| below(f, "papers"));
        let users: Vec<&str> = ROOMS.iter().filter(user).map(|room| room.folder).collect();
        assert_eq!(users, ["xtask"]);
    }

    #[test]
    fn a_room_inside_another_is_not_part_of_it() {
        let plan = "[package]\nname = \"plan\"\n";
        let user = "[package]\nname = \"a\"\n[dependencies]\nplan = {}\n";
        let files = [("lib/plan/Cargo.toml", plan), ("lib/a/Cargo.toml", user)];
        assert_eq!(fires_on(dependencies, &files), [("lib/a/Cargo.toml".into(), 4)]);
        let files = [("lib/plan/Cargo.toml", plan), ("cli/Cargo.toml", user)];
        assert_eq!(fires_on(dependencies, &files), []);
    }

    #[test]
    fn a_package_without_a_room_is_found() {
        let files = [("attic/a/Cargo.toml", ABI)];
        assert_eq!(fires_on(dependencies, &files), [("attic/a/Cargo.toml".into(), 1)]);
    }

    #[test]
    fn a_manifest_that_is_no_toml_is_found() {
        let files = [("lib/a/Cargo.toml", "[package\n")];
        assert_eq!(fires_on(dependencies, &files), [("lib/a/Cargo.toml".into(), 1)]);
    }

    #[test]
    fn rooms_stand_on_those_above_them() {
        for (place, room) in ROOMS.iter().enumerate() {
            for folder in room.uses {
                assert!(
                    ROOMS[..place].iter().any(|below_it| below(folder, below_it.folder)),
                    "{} uses {folder}",
                    room.folder
                );
            }
        }
    }

    #[test]
    fn the_readme_must_show_the_table_that_is_held() {
        let good = format!("# x\n\n{BEGIN}\n\n{}\n{END}\n", picture());
        assert_eq!(fires_on(shown, &[("README.md", &good)]), []);
        let stale = good.replace("`kernel/core`", "`kernel`");
        assert_eq!(fires_on(shown, &[("README.md", &stale)]), [("README.md".into(), 3)]);
        assert_eq!(fires_on(shown, &[("README.md", "# x\n")]), [("README.md".into(), 1)]);
    }
}
