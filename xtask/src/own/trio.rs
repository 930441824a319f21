//! A CAN reader, a program with two threads, and one in C, in one system: what `docs/programs.md`
//! shows is built, planned, simulated, booted and drawn.

use super::Installed;
use std::fs;

/// The second program, the third one, and what both need in the description and in `Cargo.toml`.
const DISPLAY: &str = include_str!("display.rs.txt");
const LOGGER: &str = include_str!("logger.c");
const TABLES: &str = include_str!("trio.toml");
const BINARY: &str = "[[bin]]
name = \"display\"
path = \"src/display.rs\"
test = false
bench = false
";

/// Changes of the template `can-reader`: a file, a part of it, and what stands there instead.
const CHANGES: [(&str, &str, &str); 5] = [
    ("system.toml", "vcpu = \"reading\"\n", "vcpu = \"reading\"\nuses = [\"hundreds\"]\n"),
    ("src/main.rs", "use diapason_rt::{", "use diapason_rt::{mailbox::Mailbox, sys, "),
    (
        "src/main.rs",
        "    let mut channel",
        "    let hundreds = Mailbox::open(\"hundreds\").unwrap_or_else(|_| sys::fail(1));\n    \
         let mut channel",
    ),
    (
        "src/main.rs",
        "numbers.count(number)));\n",
        "numbers.count(number)));\n\
         if let Some(number) = number.filter(|it| it % 100 == 0) {\n    \
         let _ = hundreds.send(&number.to_le_bytes(), 0, Nanos::ZERO);\n}\n",
    ),
    ("Cargo.toml", "[dependencies]", ""),
];

/// Words that each run must say.
const SAYS: [&str; 4] = [
    "messages in 1 pipe, none lost, none late",
    "display: blinked 20 times",
    "logger: the newest is 100",
    "logger: the newest is 200",
];

impl Installed {
    /// Builds the system as a newcomer does with the page, and runs it.
    pub fn trio(&self) -> Result<(), String> {
        let name = "my-trio";
        self.diapason("", &["new", name, "--template", "can-reader"], 0)?;
        let folder = self.0.join(name);
        let failed = |error: std::io::Error| error.to_string();
        for (file, from, to) in CHANGES {
            let to = if to.is_empty() { format!("{BINARY}\n{from}") } else { to.to_owned() };
            let text = fs::read_to_string(folder.join(file)).map_err(failed)?;
            if !text.contains(from) {
                return Err(format!("{file} has no `{from}`"));
            }
            fs::write(folder.join(file), text.replacen(from, &to, 1)).map_err(failed)?;
        }
        let text = fs::read_to_string(folder.join("system.toml")).map_err(failed)?;
        fs::write(folder.join("system.toml"), text + TABLES).map_err(failed)?;
        fs::create_dir_all(folder.join("programs/logger")).map_err(failed)?;
        fs::write(folder.join("programs/logger/main.c"), LOGGER).map_err(failed)?;
        fs::write(folder.join("src/display.rs"), DISPLAY).map_err(failed)?;
        for machine in ["sim", "run"] {
            let said = self.diapason(name, &[machine, "--for", "3s"], 0)?;
            if let Some(missing) = SAYS.iter().find(|part| !said.contains(**part)) {
                return Err(format!("`{machine}` does not say `{missing}`:\n{said}"));
            }
        }
        self.diapason(name, &["report", "--for", "1s"], 0)?;
        let page = fs::read_to_string(folder.join("report.html")).map_err(failed)?;
        let parts = ["display.blink", "logger", "The slowest message of engine"];
        match parts.iter().find(|part| !page.contains(**part)) {
            None => Ok(()),
            Some(missing) => Err(format!("the page has no `{missing}`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_what_is_tried() {
        let page = include_str!("../../../docs/programs.md");
        for part in [DISPLAY, LOGGER, TABLES.trim_start(), BINARY] {
            assert!(page.contains(part), "docs/programs.md lacks:\n{part}");
        }
    }
}
