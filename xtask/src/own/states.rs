//! State messages of a user's own: a value of another type does not compile, a writer that breaks
//! its promise is found out, and a read takes no longer than `plan` counts.

use super::Installed;
use diapason::plan::read_instructions;
use std::fs;

/// Changes of the template `state`: a file, a part of it, and what stands there instead.
type Changes = &'static [(&'static str, &'static str, &'static str)];

/// The program in Rust writes a number of another type, the one in C reads into the wrong thing.
const WRONG_TYPES: Changes = &[
    ("src/wheel.rs", "turns, per_minute }", "turns: u64::from(turns), per_minute }"),
    ("programs/display/main.c", "speed_read(&speed, &value)", "speed_read(&speed, &speed)"),
];
/// The answers of both compilers.
const SAID: [&str; 4] =
    ["error[E0308]", "src/wheel.rs:", "incompatible-pointer-types", "programs/display/main.c:"];

/// The writer never waits, and the reader reads all the time.
const FLOOD: Changes = &[
    ("system.toml", "per_minute: u32\"]", "per_minute: u32\", \"all: [u64; 500]\"]"),
    ("system.toml", "budget = \"500us\"", "budget = \"15ms\""),
    ("src/wheel.rs", "turns, per_minute }", "turns, per_minute, all: [7; 500] }"),
    ("src/wheel.rs", "        jobs.wait();\n", ""),
    ("src/wheel.rs", "let mut jobs = ", "let _ = "),
    ("src/main.rs", "        jobs.wait();\n", ""),
    ("src/main.rs", "let mut jobs = ", "let _ = "),
];

/// State messages of the template are these instead, by the number of their bytes: less than a
/// word, words and bytes, and 4 KB.
const SIZES: [(&str, u64); 3] = [("byte", 1), ("odd", 127), ("block", 4096)];

impl Installed {
    /// Counts reads in QEMU, in Rust and in C. The mean has the whole read, what interrupted it,
    /// and the mark behind it. A work that does nothing has the same mark.
    pub fn reads(&self) -> Result<(), String> {
        let name = "my-reads";
        self.readers(name)?;
        let (measured, _) = self.json(name, &["measure", "--for", "300ms", "--json"])?;
        let mean = |work: &str| {
            let works = measured["works"].as_array().into_iter().flatten();
            let row = works.into_iter().find(|row| row["work"] == work);
            let mean = row.and_then(|row| row["mean_ns"].as_u64());
            mean.ok_or_else(|| format!("{work} was not seen: {measured:#}"))
        };
        for (language, (state, bytes)) in
            ["rust", "c"].map(|language| SIZES.map(|size| (language, size))).concat()
        {
            let work = format!("{language}.{state}");
            let seen = mean(&work)?.saturating_sub(mean(&format!("{language}.empty"))?);
            let most = read_instructions(bytes);
            println!("    {work}: {seen} instructions, {most} are counted");
            if seen == 0 || seen > most {
                return Err(format!("{work} takes {seen} instructions, and `plan` counts {most}"));
            }
        }
        Ok(())
    }

    /// Makes a system of one writer and two readers of all [`SIZES`].
    fn readers(&self, name: &str) -> Result<(), String> {
        self.diapason("", &["new", name, "--template", "state"], 0)?;
        let path = |file: &str| self.0.join(name).join(file);
        let text = fs::read_to_string(path("system.toml")).map_err(|error| error.to_string())?;
        let (before, rest) = text.split_once("[[state]]").ok_or("the template has no state")?;
        let (_, after) = rest.split_once("[[vcpu]]").ok_or("the template has no VCPU")?;
        let files = [
            ("system.toml", format!("{before}{}[[vcpu]]{after}", tables())),
            ("src/main.rs", include_str!("reads.rs.txt").to_owned()),
            ("src/wheel.rs", include_str!("writes.rs.txt").to_owned()),
            ("programs/display/main.c", include_str!("reads.c").to_owned()),
        ];
        let write = |(file, text)| fs::write(path(file), text).map_err(|error| error.to_string());
        files.into_iter().try_for_each(write)
    }

    /// Makes mistakes with a state message.
    pub fn states(&self) -> Result<(), String> {
        let name = "my-states";
        self.diapason("", &["new", name, "--template", "state"], 0)?;
        let changed = |changes: Changes| {
            let mut before = Vec::new();
            for (file, from, to) in changes {
                let path = self.0.join(name).join(file);
                let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
                if !text.contains(from) {
                    return Err(format!("{file} has no `{from}`"));
                }
                let new = text.replacen(from, to, 1);
                fs::write(&path, new).map_err(|error| error.to_string())?;
                before.push((path, text));
            }
            Ok(before)
        };
        let before = changed(WRONG_TYPES)?;
        let said = self.diapason(name, &["check"], 2)?;
        if let Some(missing) = SAID.iter().find(|part| !said.contains(**part)) {
            return Err(format!("a value of another type: not said: {missing}\n{said}"));
        }
        for (path, text) in before {
            fs::write(path, text).map_err(|error| error.to_string())?;
        }
        changed(FLOOD)?;
        let said = self.diapason(name, &["run", "--for", "500ms"], 1)?;
        let alarms = ["alarm state-overtaken: ", "alarm state-contract: "];
        match alarms.iter().find(|alarm| !said.contains(**alarm)) {
            None => Ok(()),
            Some(alarm) => Err(format!("not said: {alarm}\n{said}")),
        }
    }
}

/// Returns the tables of the state messages of [`SIZES`].
fn tables() -> String {
    let table = |(name, bytes)| {
        format!(
            "[[state]]\nname = \"{name}\"\nfields = [\"all: [u8; {bytes}]\"]\nwriter = \"wheel\"\n\
             readers = [\"my-reads\", \"display\"]\n\n"
        )
    };
    SIZES.map(table).concat()
}
