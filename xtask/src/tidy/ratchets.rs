//! Numbers that may only fall: `xtask/ratchets.toml`.
//!
//! A section per measure, a line `"name" = number` per exception. Raising one is an edit of the
//! file by hand, which a reviewer sees; `tidy --bless` only lowers and removes.

use super::Problem;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

const FILE: &str = "xtask/ratchets.toml";

/// The quantity that a number limits, and the limit where the file names none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Measure {
    /// `unsafe` in a package.
    Unsafe,
    /// Lines of a file.
    FileLines,
    /// Lines of a function.
    FunctionLines,
    /// Packages that declare a public type of a name.
    SharedNames,
}

impl Measure {
    const ALL: [Measure; 4] =
        [Measure::Unsafe, Measure::FileLines, Measure::FunctionLines, Measure::SharedNames];

    const fn section(self) -> &'static str {
        match self {
            Measure::Unsafe => "unsafe",
            Measure::FileLines => "file_lines",
            Measure::FunctionLines => "function_lines",
            Measure::SharedNames => "shared_names",
        }
    }

    /// Returns the limit of everything that is not listed.
    pub const fn limit(self) -> u64 {
        match self {
            Measure::Unsafe => 0,
            Measure::SharedNames => 1,
            Measure::FileLines => 600,
            Measure::FunctionLines => 70,
        }
    }

    const fn remedy(self) -> &'static str {
        match self {
            Measure::Unsafe => "write it in safe Rust, or in a package that may",
            Measure::FileLines => "split the file by topic",
            Measure::FunctionLines => "split the function",
            Measure::SharedNames => "give the new type a name that says its room",
        }
    }
}

/// A number found in the tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Measured {
    pub measure: Measure,
    /// Package, file, or file and function.
    pub name: String,
    /// The place at which the thing stands, or first stands.
    pub file: String,
    pub line: usize,
    /// The measure of the thing.
    pub value: u64,
}

/// The contents of the file of ratchets.
#[derive(Clone, Default, Debug)]
pub(crate) struct Ratchets {
    header: String,
    limits: BTreeMap<(Measure, String), u64>,
}

impl Ratchets {
    /// Reads the file of ratchets.
    pub fn read(root: &Path) -> Result<Ratchets, String> {
        let text =
            std::fs::read_to_string(root.join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
        Ratchets::parse(&text)
    }

    fn parse(text: &str) -> Result<Ratchets, String> {
        let mut ratchets = Ratchets::default();
        let mut section = None;
        for (number, line) in (1..).zip(text.lines()) {
            let wrong = || format!("{FILE}:{number}: not a section or `\"name\" = number`");
            match line.as_bytes() {
                [] => {}
                [b'#', ..] if section.is_none() => ratchets.header += &format!("{line}\n"),
                [b'[', ..] => {
                    let found =
                        Measure::ALL.into_iter().find(|m| format!("[{}]", m.section()) == line);
                    section = Some(found.ok_or_else(wrong)?);
                }
                _ => {
                    let (name, value) = entry(line).ok_or_else(wrong)?;
                    ratchets.limits.insert((section.ok_or_else(wrong)?, name), value);
                }
            }
        }
        Ok(ratchets)
    }

    /// Writes the file of ratchets.
    pub fn write(&self, root: &Path) -> io::Result<()> {
        std::fs::write(root.join(FILE), self.render())
    }

    fn render(&self) -> String {
        let mut text = self.header.clone();
        for measure in Measure::ALL {
            text += &format!("\n[{}]\n", measure.section());
            for ((_, name), value) in self.limits.iter().filter(|((m, _), _)| *m == measure) {
                text += &format!("\"{name}\" = {value}\n");
            }
        }
        text
    }

    /// Returns the measures above their limits.
    pub fn exceeded(&self, measured: &[Measured]) -> Vec<Problem> {
        let above = measured.iter().filter_map(|found| {
            let key = (found.measure, found.name.clone());
            let limit = self.limits.get(&key).copied().unwrap_or(found.measure.limit());
            (found.value > limit).then(|| {
                let what = found.measure.section().replace('_', " ");
                let remedy = found.measure.remedy();
                let (name, value) = (&found.name, found.value);
                let text = format!("{what} of {name}: {value}, at most {limit}: {remedy}");
                Problem::new(&found.file, found.line, text)
            })
        });
        above.collect()
    }

    /// Lowers every number to what was measured, drops those no longer needed, and says so.
    pub fn lower(&mut self, measured: &[Measured]) -> Vec<String> {
        let mut said = Vec::new();
        self.limits.retain(|(measure, name), limit| {
            let same = measured.iter().filter(|f| f.measure == *measure && f.name == *name);
            let now = same.map(|found| found.value).max().unwrap_or(0);
            if now < *limit {
                said.push(format!("{} {name}: {limit} -> {now}", measure.section()));
                *limit = now;
            }
            *limit > measure.limit()
        });
        said
    }
}

fn entry(line: &str) -> Option<(String, u64)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim().strip_prefix('"')?.strip_suffix('"')?;
    Some((name.into(), value.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# Why.

[unsafe]
\"kernel\" = 10

[file_lines]
\"a.rs\" = 700

[function_lines]
\"a.rs::long\" = 80

[shared_names]
";

    fn found(measure: Measure, name: &str, value: u64) -> Measured {
        Measured { measure, name: name.into(), file: "f.rs".into(), line: 3, value }
    }

    #[test]
    fn the_file_survives_a_round_trip() {
        assert_eq!(Ratchets::parse(TEXT).unwrap().render(), TEXT);
        assert!(Ratchets::parse("[unsafe]\nkernel = 1\n").unwrap_err().contains(":2:"));
        assert!(Ratchets::parse("[other]\n").is_err());
        assert!(Ratchets::parse("\"a\" = 1\n").is_err());
    }

    #[test]
    fn only_what_is_above_its_number_is_a_problem() {
        let ratchets = Ratchets::parse(TEXT).unwrap();
        let measured = [
            found(Measure::Unsafe, "kernel", 10),
            found(Measure::Unsafe, "lib", 1),
            found(Measure::FileLines, "a.rs", 701),
            found(Measure::FileLines, "b.rs", 600),
            found(Measure::FunctionLines, "a.rs::other", 71),
        ];
        let problems: Vec<String> =
            ratchets.exceeded(&measured).iter().map(Problem::to_string).collect();
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(problems[0].starts_with("f.rs:3: unsafe of lib: 1, at most 0"));
        assert!(problems[1].starts_with("f.rs:3: file lines of a.rs: 701, at most 700"));
        assert!(problems[2].starts_with("f.rs:3: function lines of a.rs::other: 71, at most"));
    }

    #[test]
    fn bless_lowers_and_drops_but_never_raises() {
        let mut ratchets = Ratchets::parse(TEXT).unwrap();
        let measured = [
            found(Measure::Unsafe, "kernel", 12),
            found(Measure::FileLines, "a.rs", 650),
            found(Measure::FunctionLines, "a.rs::long", 60),
        ];
        assert_eq!(ratchets.lower(&measured).len(), 2);
        let expected = "\
# Why.

[unsafe]
\"kernel\" = 10

[file_lines]
\"a.rs\" = 650

[function_lines]

[shared_names]
";
        assert_eq!(ratchets.render(), expected);
    }
}
