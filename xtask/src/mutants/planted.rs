//! A planted bug: a place in a source file, which is found by its text, and the text that breaks
//! it. Each says what it breaks and what must notice it. The tables are in `tests/mutations`, one
//! file for each room.

use diapason::{Failure, Workspace};
use std::collections::BTreeSet;
use std::path::Path;
use toml::{Table, Value};

/// Where the tables are, below the workspace's root.
pub const FOLDER: &str = "tests/mutations";

/// A row of the tables: where the bug is put, what it breaks, and what looks for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Planted {
    pub name: String,
    /// The name of the table that has it: its room.
    pub room: String,
    /// The property that it breaks.
    pub breaks: String,
    /// The source file, below the root.
    pub file: String,
    from: String,
    to: String,
    /// Within how many seeds a search must find it; 0 without a search.
    pub seeds: u64,
    /// Arguments of `diapason sim`, the description first; one search for each.
    pub searches: Vec<String>,
    /// Arguments of `cargo test`, cheapest first.
    pub tests: Vec<String>,
    /// Parts of names of steps of `cargo xtask test --qemu`.
    pub boots: Vec<String>,
}

impl Planted {
    fn parse(room: &str, name: &str, value: &Value) -> Result<Planted, String> {
        const KEYS: [&str; 8] = ["breaks", "file", "from", "to", "seeds", "sim", "test", "qemu"];
        let table = value.as_table().ok_or("it is no table")?;
        if let Some(other) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(format!("it has the unknown key `{other}`"));
        }
        let text = |key: &str| match table.get(key).and_then(Value::as_str) {
            Some(text) => Ok(text.trim_matches('\n').to_owned()),
            None => Err(format!("it has no text `{key}`")),
        };
        let list = |key: &str| match table.get(key) {
            None => Ok(Vec::new()),
            Some(value) => words(value).ok_or(format!("`{key}` is no list of texts")),
        };
        let (searches, tests, boots) = (list("sim")?, list("test")?, list("qemu")?);
        if searches.is_empty() && tests.is_empty() && boots.is_empty() {
            return Err("it has neither `sim` nor `test` nor `qemu`: nothing can find it".into());
        }
        let seeds = table.get("seeds").map_or(Some(0), Value::as_integer);
        let seeds = seeds.and_then(|seeds| u64::try_from(seeds).ok());
        let planted = Planted {
            name: name.to_owned(),
            room: room.to_owned(),
            breaks: text("breaks")?,
            file: text("file")?,
            from: text("from")?,
            to: text("to")?,
            seeds: seeds.ok_or("`seeds` is no number from 0 on")?,
            searches,
            tests,
            boots,
        };
        if planted.searches.is_empty() == (planted.seeds > 0) {
            return Err("`sim` needs `seeds`, and the other way round".into());
        }
        Ok(planted)
    }

    /// Returns the text of its file with the bug in it.
    ///
    /// # Errors
    /// If the place does not occur exactly once.
    pub fn broken(&self, text: &str) -> Result<String, String> {
        match text.matches(&*self.from).count() {
            1 if self.from != self.to => Ok(text.replacen(&*self.from, &self.to, 1)),
            1 => Err("`from` and `to` are equal".into()),
            count => Err(format!("`from` occurs {count} times in {}, not once", self.file)),
        }
    }

    /// Plants it in `tree`.
    ///
    /// # Errors
    /// If the place does not occur exactly once, or the file cannot be written.
    pub fn plant(&self, tree: &Path) -> Result<(), String> {
        let path = tree.join(&self.file);
        let failure = |error| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(&path).map_err(failure)?;
        std::fs::write(&path, self.broken(&text)?).map_err(failure)
    }
}

fn words(value: &Value) -> Option<Vec<String>> {
    let words = value.as_array()?.iter().map(|word| word.as_str().map(String::from));
    words.collect::<Option<Vec<String>>>().filter(|words| !words.is_empty())
}

/// Returns all of them, by room and name.
///
/// # Errors
/// One cannot be read, or says not what it must.
pub fn all(workspace: &Workspace) -> Result<Vec<Planted>, Failure> {
    let folder = workspace.root().join(FOLDER);
    let failure = |error| Failure::io(format!("read {}", folder.display()), &error);
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(failure)? {
        paths.push(entry.map_err(failure)?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    let (mut all, mut names) = (Vec::new(), BTreeSet::new());
    for path in paths {
        let wrong = |why: String| Failure::Input(format!("error: {}: {why}", path.display()));
        let text = std::fs::read_to_string(&path).map_err(failure)?;
        let table: Table =
            text.parse().map_err(|error: toml::de::Error| wrong(error.to_string()))?;
        let room = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        for (name, value) in &table {
            let of = |why| wrong(format!("[{name}]: {why}"));
            if !names.insert(name.clone()) {
                return Err(of("another planted bug has this name".into()));
            }
            all.push(Planted::parse(room, name, value).map_err(of)?);
        }
    }
    Ok(all)
}

/// Checks that every planted bug has its place in the sources as they are.
///
/// # Errors
/// Returns those that have none, and why.
pub fn check(workspace: &Workspace) -> Result<(), String> {
    let all = all(workspace).map_err(|failure| failure.to_string())?;
    let homeless = |planted: &Planted| {
        let text = std::fs::read_to_string(workspace.root().join(&planted.file));
        let text = text.map_err(|error| format!("{}: {error}", planted.file));
        let why = text.and_then(|text| planted.broken(&text)).err()?;
        let remedy = "plant the bug in the code as it is now";
        Some(format!("{FOLDER}/{}.toml: [{}]: {why}; {remedy}", planted.room, planted.name))
    };
    let homeless: Vec<String> = all.iter().filter_map(homeless).collect();
    if homeless.is_empty() { Ok(()) } else { Err(homeless.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "breaks = 'a'\nfile = 'f.rs'\nfrom = '''\n  x\n'''\nto = 'y'\nseeds = 3\n\
                         sim = ['b.toml --faults']\ntest = ['-p b']\n";

    fn parse(text: &str) -> Result<Planted, String> {
        Planted::parse("room", "name", &Value::Table(text.parse().expect("TOML")))
    }

    #[test]
    fn a_planted_bug_says_what_it_breaks_and_what_finds_it() {
        let planted = parse(WHOLE).unwrap();
        assert_eq!((&*planted.from, &*planted.to, planted.seeds), ("  x", "y", 3));
        assert_eq!((&*planted.searches[0], &*planted.tests[0]), ("b.toml --faults", "-p b"));
        for part in ["breaks = 'a'", "file = 'f.rs'", "to = 'y'", "seeds = 3"] {
            assert!(WHOLE.contains(part) && parse(&WHOLE.replace(part, "")).is_err(), "{part}");
        }
        let unfound = WHOLE.split("seeds").next().unwrap();
        assert!(parse(unfound).unwrap_err().contains("nothing can find it"));
        assert!(parse(&WHOLE.replace("to =", "too =")).unwrap_err().contains("`too`"));
    }

    #[test]
    fn a_place_is_found_by_its_text_and_must_be_the_only_one() {
        let planted = parse(WHOLE).unwrap();
        assert_eq!(planted.broken("a\n  x\nb").unwrap(), "a\ny\nb");
        assert!(planted.broken("a").unwrap_err().contains("0 times"));
        assert!(planted.broken("  x  x").unwrap_err().contains("2 times"));
    }

    #[test]
    fn there_are_planted_bugs_in_every_room() {
        let all = all(&Workspace::find().unwrap()).unwrap();
        assert!(all.len() >= 60, "{}", all.len());
        let rooms: BTreeSet<&str> = all.iter().map(|planted| &*planted.room).collect();
        let wanted = [
            "cli",
            "devices",
            "kernel-core",
            "kernel-x86_64",
            "lib-analysis",
            "lib-bus",
            "lib-can",
            "lib-ether",
            "lib-network",
            "lib-pipe",
            "lib-plan",
            "lib-state",
            "lib-system",
            "lib-usb",
            "lib-usbd",
            "lib-vcpu",
        ];
        for room in wanted {
            assert!(rooms.contains(room), "{room}");
        }
    }
}
