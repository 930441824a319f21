//! State messages of a user's own: a value of another type does not compile, and a writer that
//! breaks its promise is found out.

use super::Installed;
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

impl Installed {
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
        let alarm = "alarm state-overtaken: ";
        if said.contains(alarm) { Ok(()) } else { Err(format!("not said: {alarm}\n{said}")) }
    }
}
