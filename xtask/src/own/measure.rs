//! `diapason measure` on a system that says nothing about times: what it writes makes a plan that
//! holds, in the simulator and in QEMU.

use super::{FOLDER, Installed};
use serde_json::Value;
use std::fs;

/// The works of the template, which a user cannot know.
const NAMED: [&str; 3] = ["reader.frame", "usbd.manage", "usbd.receive"];

impl Installed {
    /// Measures a system without any `[[work]]`, and writes what was counted. It is the template
    /// as `explain` writes it out, because `[usbd]` would bring works.
    pub fn measured(&self) -> Result<(), String> {
        let name = "my-measured";
        self.diapason("", &["new", name, "--template", "can-reader"], 0)?;
        let path = self.0.join(name).join("system.toml");
        let without = without_works(&self.diapason(name, &["explain"], 0)?);
        let comments = without.matches('#').count();
        fs::write(&path, without).map_err(|error| error.to_string())?;
        // All that is missing is said at once.
        let said = self.diapason(name, &["plan"], 1)?;
        if !said.contains("nothing says how long `usbd.receive` and `usbd.manage` take") {
            return Err(format!("`plan` does not name all works that are missing:\n{said}"));
        }
        let arguments = ["measure", "--for", "1s", "--write", "--json"];
        let (measured, _) = self.json(name, &arguments)?;
        let longest = |work: &str| {
            let works = measured["works"].as_array().into_iter().flatten();
            let found = works.into_iter().find(|row| row["work"] == work);
            found.and_then(|row| row["longest_ns"].as_u64())
        };
        for work in NAMED {
            let seen = longest(work).ok_or_else(|| format!("{work} was not seen: {measured:#}"))?;
            if !(500..200_000).contains(&seen) {
                return Err(format!("{work} took {seen} ns: {measured:#}"));
            }
        }
        let written = fs::read_to_string(&path).map_err(|error| error.to_string())?;
        let value = |change: &Value| format!("\"{}\"", change["value"].as_str().unwrap_or("none"));
        let changes = measured["changes"].as_array().ok_or("no changes")?;
        if let Some(change) = changes.iter().find(|change| !written.contains(&value(change))) {
            return Err(format!("{change} was not written:\n{written}"));
        }
        if written.matches('#').count() != comments {
            return Err(format!("comments are gone:\n{written}"));
        }
        self.json(name, &["plan", "--json"])?;
        self.diapason(name, &["sim", "--for", "1s"], 0)?;
        self.measured_pair()
    }

    /// Measures two hosts with the cable between them: each description gets what its host needs.
    fn measured_pair(&self) -> Result<(), String> {
        let name = "my-pair";
        self.diapason("", &["new", name, "--template", "two-hosts"], 0)?;
        let (measured, _) = self.json(name, &["measure", "--for", "1s", "--write", "--json"])?;
        for (host, file) in [(0, "sender.toml"), (1, "receiver.toml")] {
            let works = measured["hosts"][host]["works"].as_array().into_iter().flatten();
            let seen = works.filter(|row| row["work"] == "message" || row["work"] == "usbd.link");
            if seen.filter(|row| row["runs"].as_u64() > Some(10)).count() != 2 {
                return Err(format!("{file}: not both works were seen: {measured:#}"));
            }
            let written = fs::read_to_string(self.0.join(name).join(file));
            let written = written.map_err(|error| error.to_string())?;
            if !written.contains("name = \"usbd.link\"") {
                return Err(format!("{file} did not get what was counted:\n{written}"));
            }
        }
        self.json(name, &["plan", "--json"])?;
        self.measured_cores()
    }

    /// Measures a system of two cores: its processes run on one, and what is proposed makes a plan
    /// of both that holds.
    fn measured_cores(&self) -> Result<(), String> {
        let name = "my-cores";
        let (folder, failed) = (self.0.join(name), |error: std::io::Error| error.to_string());
        let example = self.0.join(FOLDER).join("examples/two-cores.toml");
        fs::create_dir_all(&folder).map_err(failed)?;
        fs::copy(example, folder.join("system.toml")).map_err(failed)?;
        let (measured, said) = self.json(name, &["measure", "--for", "1s", "--write", "--json"])?;
        if !said.contains("the processes of all cores run on one") {
            return Err(format!("`measure` does not say what runs where:\n{said}"));
        }
        // One has a job in every millisecond, the other is woken by its doorbell every tenth time.
        let threads = measured["threads"].as_array().into_iter().flatten();
        let turns = |process: &str| {
            let mut of_one = threads.clone().filter(|row| row["process"] == process);
            of_one.next().and_then(|row| row["runs"].as_u64()).unwrap_or(0)
        };
        if turns("controller") < 500 || turns("logger") < 50 {
            return Err(format!("not both cores were counted: {measured:#}"));
        }
        let (planned, _) = self.json(name, &["plan", "--json"])?;
        match planned["cores"].as_array().map_or(0, Vec::len) {
            2 => Ok(()),
            cores => Err(format!("{cores} cores are left: {planned:#}")),
        }
    }
}

/// Returns a description without its `[[work]]`.
fn without_works(text: &str) -> String {
    let parts: Vec<&str> = text.split("\n\n").collect();
    let others = parts.into_iter().filter(|part| !part.starts_with("[[work]]"));
    others.collect::<Vec<&str>>().join("\n\n") + "\n"
}
