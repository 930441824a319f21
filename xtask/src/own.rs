//! Systems of a user's own, with nothing but what is installed: every template is made in a folder
//! outside the checkout, built, planned, simulated and booted.

use crate::package::{self, COMMAND, FOLDER};
use crate::tally::Tally;
use diapason::Workspace;
use diapason::metal::Built;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The templates of `diapason new`, and what a run of each says.
const TEMPLATES: [(&str, &str); 4] = [
    ("hello", "hello, second 1"),
    ("can-reader", "messages in 1 pipe, none lost, none late"),
    ("can-gateway", "messages in 2 pipes, none lost, none late"),
    ("sensor", "packets, 0 lost, number"),
];

/// An installation in a folder of its own, removed with its value.
struct Installed(PathBuf);

impl Drop for Installed {
    fn drop(&mut self) {
        // Nobody is left to be told, and the next run has another folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// All of it whose name contains `part`.
pub fn steps(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    let named = |what: &str| format!("a system of one's own: {what}");
    let templates = TEMPLATES.iter().map(|(template, _)| named(template));
    let mistakes = named("mistakes are the user's");
    let names: Vec<String> = templates.chain([mistakes]).collect();
    if !names.iter().any(|name| name.contains(part)) {
        return;
    }
    let folder = std::env::temp_dir().join(format!("diapason-own-{}", std::process::id()));
    let installed = Installed(folder);
    tally.step(&named("installed"), || {
        package::install(workspace, built, &installed.0).map_err(|failure| failure.to_string())
    });
    let before = contents(&installed.0.join(FOLDER));
    for ((template, says), name) in TEMPLATES.iter().zip(&names) {
        if name.contains(part) {
            tally.step(name, || installed.try_out(template, says));
        }
    }
    if let Some(name) = names.last().filter(|name| name.contains(part)) {
        tally.step(name, || installed.mistakes());
    }
    tally.step(&named("what is installed stays as it is"), || {
        if contents(&installed.0.join(FOLDER)) == before {
            return Ok(());
        }
        Err("a command wrote into the installed folder".into())
    });
}

/// Returns the files below a folder, with their lengths and times.
fn contents(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(contents(&path));
        } else if let Ok(about) = entry.metadata() {
            all.push(format!("{} {} {:?}", path.display(), about.len(), about.modified().ok()));
        }
    }
    all.sort_unstable();
    all
}

impl Installed {
    /// A program, started in a folder of the user's who knows no checkout.
    fn run(&self, folder: &str, program: &Path, arguments: &[&str]) -> Result<Output, String> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.0.join(folder));
        command.env_remove("CARGO_MANIFEST_DIR").env_remove("DIAPASON_HOME");
        command.env("CARGO_TARGET_DIR", self.0.join("target")).env("CARGO_NET_OFFLINE", "true");
        command.output().map_err(|error| format!("{}: {error}", program.display()))
    }

    /// The command, which ends with this code; returns all that it says.
    fn diapason(&self, folder: &str, arguments: &[&str], code: i32) -> Result<String, String> {
        let output = self.run(folder, &self.0.join(COMMAND), arguments)?;
        let texts = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        let said = texts.concat();
        if output.status.code() == Some(code) {
            return Ok(said);
        }
        Err(format!("`diapason {}`: {}, not {code}\n{said}", arguments.join(" "), output.status))
    }

    /// Makes a system, and does with it what its README says.
    fn try_out(&self, template: &str, says: &str) -> Result<(), String> {
        let name = format!("my-{template}");
        self.diapason("", &["new", &name, "--template", template], 0)?;
        let manifest = fs::read_to_string(self.0.join(&name).join("Cargo.toml"));
        if !manifest.is_ok_and(|text| text.contains(&format!("{}/user/rt", self.folder()))) {
            return Err("its manifest does not name what is installed".into());
        }
        self.diapason(&name, &["plan"], 0)?;
        self.diapason(&name, &["build"], 0)?;
        for machine in ["sim", "run"] {
            let said = self.diapason(&name, &[machine, "--for", "2s"], 0)?;
            if !said.contains(says) {
                return Err(format!("`{machine}` does not say `{says}`:\n{said}"));
            }
        }
        for arguments in [&["test"][..], &["check", "--all-targets"]] {
            let output = self.run(&name, Path::new("cargo"), arguments)?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                return Err(format!("`cargo {}` fails:\n{said}", arguments.join(" ")));
            }
        }
        Ok(())
    }

    fn folder(&self) -> String {
        self.0.join(FOLDER).display().to_string()
    }

    /// Mistakes in a program, its manifest and its name are answered with exit code 2.
    fn mistakes(&self) -> Result<(), String> {
        let name = "my-mistake";
        self.diapason("", &["new", name], 0)?;
        let again = self.diapason("", &["new", name], 2)?;
        let changed = |file: &str, from: &str, to: &str, says: &[&str]| {
            let path = self.0.join(name).join(file);
            let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
            fs::write(&path, text.replacen(from, to, 1)).map_err(|error| error.to_string())?;
            let said = self.diapason(name, &["sim"], 2)?;
            fs::write(&path, text).map_err(|error| error.to_string())?;
            match says.iter().find(|what| !said.contains(*what)) {
                Some(what) => Err(format!("a mistake in {file}: not said: {what}\n{said}")),
                None => Ok(()),
            }
        };
        let compiler = ["error[E0308]", "src/main.rs:", "the program my-mistake of "];
        changed("src/main.rs", "let mut beat =", "let mut beat: u8 =", &compiler)?;
        changed("Cargo.toml", "edition =", "edi tion =", &["cargo does not accept "])?;
        let unknown = ["there is no program `my-misteak`", "your project has: my-mistake"];
        changed(
            "system.toml",
            "name = \"my-mistake\"\npri",
            "name = \"my-misteak\"\npri",
            &unknown,
        )?;
        if again.contains("is there already") { Ok(()) } else { Err(again) }
    }
}
