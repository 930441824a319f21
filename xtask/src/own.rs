//! Systems of a user's own, with nothing but what the package has: every template is made in a
//! folder outside the checkout, built, planned, simulated and booted.

mod measure;
mod pipes;
mod states;
mod trio;

use crate::package::{self, COMMAND, FOLDER, Packing};
use crate::simulator::samples::{self, TUTORIAL};
use crate::tally::Tally;
use diapason::formats::schema::wrong_output;
use diapason::metal::{self, Built};
use diapason::{Failure, Workspace};
use pipes::PIPES_IN_C;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The templates of `diapason new`, and what a run of each says.
const TEMPLATES: [(&str, &str); 7] = [
    ("hello", "hello, second 1"),
    ("can-reader", "messages in 1 pipe, none lost, none late"),
    ("can-gateway", "messages in 2 pipes, none lost, none late"),
    ("sensor", "packets, 0 lost, number"),
    ("c", "messages in 1 pipe, none lost, none late"),
    ("two-hosts", " ms, 0 lost, 0 damaged, 0 odd"),
    ("state", "turns a minute, throttle "),
];

/// The program in Rust sends the number of each second to the mailbox of the one in C.
const TELL: &str = "if let Some(second) = second {\n            \
    let _ = seconds.send(&second.to_le_bytes(), 0, Nanos::ZERO);";
const MAILBOX: &str = "
fn mailbox() -> diapason_rt::mailbox::Mailbox {
    diapason_rt::mailbox::Mailbox::open(\"seconds\").unwrap_or_else(|_| diapason_rt::sys::fail(1))
}
";
/// A change of the program in C by which it writes where nothing is, the exit code, and what is
/// said: the process ends, and not the simulator.
const END_AT_A_POINTER: (&str, &str, i32, &str) =
    ("DIA_MS(1)", "*(volatile uint64_t *)8", 1, "process objects ended");

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
    let early = named("a run that is interrupted reports what was seen");
    let tutorial = named("the tutorial says what happens");
    let in_c = named("a program in C uses every kind of object, beside one in Rust");
    let measured = named("what works take is measured, written, and holds");
    let states = named("mistakes with a state message are found");
    let reads = named("a read of a state message takes no more than the plan counts");
    let trio = named("three programs, one with two threads and one in C");
    let further = [&mistakes, &tutorial, &early, &in_c, &measured, &states, &reads, &trio];
    let further = further.map(String::clone);
    let pipes = PIPES_IN_C.iter().map(|pipe| named(pipe.does));
    let names: Vec<String> = templates.chain(further).chain(pipes).collect();
    if !names.iter().any(|name| name.contains(part)) {
        return;
    }
    let folder = std::env::temp_dir().join(format!("diapason-own-{}", std::process::id()));
    let installed = Installed(folder);
    tally.step(&named("unpacked from the package"), || {
        unpacked(workspace, built, &installed.0).map_err(|failure| failure.to_string())
    });
    let before = contents(&installed.0.join(FOLDER));
    for ((template, says), name) in TEMPLATES.iter().zip(&names) {
        if name.contains(part) {
            tally.step(name, || installed.try_out(template, says));
        }
    }
    if mistakes.contains(part) {
        tally.step(&mistakes, || installed.mistakes());
    }
    if tutorial.contains(part) {
        tally.step(&tutorial, || installed.tutorial(workspace));
    }
    if early.contains(part) {
        tally.step(&early, || installed.interrupted());
    }
    if in_c.contains(part) {
        tally.step(&in_c, || installed.in_c());
    }
    if measured.contains(part) {
        tally.step(&measured, || installed.measured());
    }
    if states.contains(part) {
        tally.step(&states, || installed.states());
    }
    if reads.contains(part) {
        tally.step(&reads, || installed.reads());
    }
    if trio.contains(part) {
        tally.step(&trio, || installed.trio());
    }
    for pipe in &PIPES_IN_C {
        let name = named(pipe.does);
        if name.contains(part) {
            tally.step(&name, || installed.pipe_in_c(pipe));
        }
    }
    tally.step(&named("what is installed stays as it is"), || {
        if contents(&installed.0.join(FOLDER)) == before {
            return Ok(());
        }
        Err("a command wrote into the installed folder".into())
    });
}

/// Makes a package and unpacks it, as `dpkg` would below `/`.
fn unpacked(workspace: &Workspace, built: &Built, folder: &Path) -> Result<(), Failure> {
    let command = metal::host_program(workspace, "diapason")?;
    let package = package::package(workspace, built, &command, folder, Packing::Quick)?;
    let mut unpack = Command::new("dpkg-deb");
    unpack.arg("--extract").arg(package).arg(folder);
    let status = unpack.status().map_err(|error| Failure::io("start dpkg-deb", &error))?;
    if status.success() { Ok(()) } else { Err(Failure::World(format!("dpkg-deb: {status}"))) }
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
    /// Returns a program, started in a folder of the user's who knows no checkout.
    fn command(&self, folder: &str, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.0.join(folder));
        command.env_remove("CARGO_MANIFEST_DIR").env_remove("DIAPASON_HOME");
        command.env("CARGO_TARGET_DIR", self.0.join("target")).env("CARGO_NET_OFFLINE", "true");
        command
    }

    fn run(&self, folder: &str, program: &Path, arguments: &[&str]) -> Result<Output, String> {
        let output = self.command(folder, program).args(arguments).output();
        output.map_err(|error| format!("{}: {error}", program.display()))
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

    /// The command, which succeeds and prints a result as its schema says; returns the result, and
    /// all else that it says.
    fn json(&self, folder: &str, arguments: &[&str]) -> Result<(Value, String), String> {
        let output = self.run(folder, &self.0.join(COMMAND), arguments)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let named = arguments.join(" ");
        if !output.status.success() {
            return Err(format!("`diapason {named}`: {}\n{said}", output.status));
        }
        let value = serde_json::from_slice(&output.stdout);
        let value = value.map_err(|error| format!("`diapason {named}` prints no JSON: {error}"))?;
        match wrong_output(&value).first() {
            Some(wrong) => Err(format!("`diapason {named}` and its schema: {wrong}")),
            None => Ok((value, said)),
        }
    }

    /// Makes a system, and does with it what its README says.
    fn try_out(&self, template: &str, says: &str) -> Result<(), String> {
        let name = format!("my-{template}");
        self.diapason("", &["new", &name, "--template", template], 0)?;
        let is_c = template == "c";
        let (file, library) =
            if is_c { ("compile_flags.txt", "c/include") } else { ("Cargo.toml", "rt") };
        let text = fs::read_to_string(self.0.join(&name).join(file));
        if !text.is_ok_and(|text| text.contains(&format!("{}/user/{library}", self.folder()))) {
            return Err(format!("its {file} does not name what is installed"));
        }
        self.json(&name, &["plan", "--json"])?;
        self.diapason(&name, &["check"], 0)?;
        self.diapason(&name, &["build"], 0)?;
        for machine in ["sim", "run"] {
            let said = self.diapason(&name, &[machine, "--for", "2s"], 0)?;
            if !said.contains(says) {
                return Err(format!("`{machine}` does not say `{says}`:\n{said}"));
            }
        }
        let of_cargo = [&["test"][..], &["check", "--all-targets"]];
        for arguments in of_cargo.into_iter().filter(|_| !is_c) {
            let output = self.run(&name, Path::new("cargo"), arguments)?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                return Err(format!("`cargo {}` fails:\n{said}", arguments.join(" ")));
            }
        }
        Ok(())
    }

    /// Follows the tutorial command by command, and compares what it says.
    fn tutorial(&self, workspace: &Workspace) -> Result<(), String> {
        let mut folder = String::new();
        samples::page(&workspace.root().join(TUTORIAL), &mut |line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (program, arguments) = match words[..] {
                ["$", "cd", into] => {
                    folder = into.into();
                    return Ok(String::new());
                }
                ["$", "diapason", ref arguments @ ..] => (self.0.join(COMMAND), arguments.to_vec()),
                // An expression of sed has no blanks, and quotes for a shell.
                ["$", "sed", "-i", expression, file] => {
                    ("sed".into(), vec!["-i", expression.trim_matches('\''), file])
                }
                _ => return Err(format!("`{line}` is no command of the tutorial")),
            };
            let output = self.run(&folder, &program, &arguments)?;
            let texts = [output.stderr, output.stdout];
            Ok(texts.map(|text| String::from_utf8_lossy(&text).into_owned()).concat())
        })
    }

    /// Ends a run and a simulation early, as a terminal or a service manager does: each reports
    /// what was seen, and leaves nobody behind.
    fn interrupted(&self) -> Result<(), String> {
        let name = "my-long";
        self.diapason("", &["new", name], 0)?;
        self.diapason(name, &["build"], 0)?;
        // A signal to the simulator may come while it runs a program, so more than one is sent.
        let all = [("run", "TERM", 143)].into_iter().chain([("sim", "INT", 130); 6]);
        for (machine, signal, code) in all {
            let mut command = self.command(name, &self.0.join(COMMAND));
            command.args([machine, "--for", "3000s", "--json"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().map_err(|error| error.to_string())?;
            let stderr = child.stderr.take().ok_or("no standard error")?;
            let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
            if !lines.any(|line| line.contains("hello, second 1")) {
                return Err(format!("`{machine}` does not say that it runs"));
            }
            std::thread::spawn(move || lines.for_each(drop));
            let number = child.id().to_string();
            let sent = Command::new("kill").args(["-s", signal, &number]).status();
            if !sent.is_ok_and(|status| status.success()) {
                return Err("kill failed".into());
            }
            let output = child.wait_with_output().map_err(|error| error.to_string())?;
            if output.status.code() != Some(code) {
                return Err(format!("`{machine}` ended with {}, not {code}", output.status));
            }
            let json: Value = serde_json::from_slice(&output.stdout)
                .map_err(|error| format!("`{machine}` leaves no JSON: {error}"))?;
            if let Some(wrong) = wrong_output(&json).first() {
                return Err(format!("`{machine} --json` and its schema: {wrong}"));
            }
            let unmeasured = json["unmeasured"][0].as_str().unwrap_or_default();
            if json["holds"] != false || !unmeasured.contains("it was interrupted") {
                return Err(format!("`{machine}` does not say that it was interrupted: {json:#}"));
            }
        }
        let runs = self.0.join("target/runs");
        match fs::read_dir(&runs).map_or(0, Iterator::count) {
            0 => Ok(()),
            left => Err(format!("{left} folders of runs are left in {}", runs.display())),
        }
    }

    /// Runs a program in C that uses every kind of object, beside one in Rust that it gets messages
    /// from, in the simulator and in QEMU.
    fn in_c(&self) -> Result<(), String> {
        let name = "my-both";
        self.diapason("", &["new", name], 0)?;
        let changed = |file: &str, change: &dyn Fn(String) -> String| {
            let path = self.0.join(name).join(file);
            let text = fs::read_to_string(&path).unwrap_or_default();
            fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(|it| it.to_string())?;
            fs::write(path, change(text)).map_err(|error| error.to_string())
        };
        changed("system.toml", &|text| {
            text.replacen("vcpu = \"jobs\"", "vcpu = \"jobs\"\nuses = [\"seconds\"]", 1)
                + include_str!("own/objects.toml")
        })?;
        changed("src/main.rs", &|text| {
            text.replacen("    let mut beat", "    let seconds = mailbox();\n    let mut beat", 1)
                .replacen("if let Some(second) = second {", TELL, 1)
                + MAILBOX
        })?;
        changed("programs/objects/main.c", &|_| include_str!("own/objects.c").into())?;
        for machine in ["sim", "run"] {
            let said = self.diapason(name, &[machine, "--for", "3s"], 0)?;
            for line in ["objects: 0 of 31 checks failed", "objects: second 2 from Rust"] {
                if !said.contains(line) {
                    return Err(format!("`{machine}` does not say `{line}`:\n{said}"));
                }
            }
        }
        let wrong = [("DIA_MS(1)", "DIA_MS(1", 2, "the program objects of "), END_AT_A_POINTER];
        for (from, to, code, says) in wrong {
            let source = include_str!("own/objects.c").replacen(from, to, 1);
            changed("programs/objects/main.c", &|_| source.clone())?;
            let said = self.diapason(name, &["sim", "--for", "1s"], code)?;
            if !said.contains(says) {
                return Err(format!("a mistake in C: not said: {says}\n{said}"));
            }
        }
        Ok(())
    }

    fn folder(&self) -> String {
        self.0.join(FOLDER).display().to_string()
    }

    /// A plan needs no program: one that is not there is a warning with its place.
    fn planned_before_programs(&self, name: &str) -> Result<(), String> {
        let path = self.0.join(name).join("system.toml");
        let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
        let other = "\nprogram = \"later\"\npriority";
        let changed = text.replacen("\npriority", other, 1);
        fs::write(&path, changed).map_err(|error| error.to_string())?;
        let said = self.diapason(name, &["plan"], 0)?;
        fs::write(&path, text).map_err(|error| error.to_string())?;
        let says = ["warning: there is no program `later`", "system.toml:", "your project has: "];
        match says.iter().find(|part| !said.contains(**part)) {
            None => Ok(()),
            Some(part) => Err(format!("`plan` does not say `{part}`:\n{said}")),
        }
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
            let both = ["check", "sim"].map(|command| self.diapason(name, &[command], 2));
            fs::write(&path, text).map_err(|error| error.to_string())?;
            for said in both {
                let said = said?;
                if let Some(what) = says.iter().find(|what| !said.contains(*what)) {
                    return Err(format!("a mistake in {file}: not said: {what}\n{said}"));
                }
            }
            Ok(())
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
        self.planned_before_programs(name)?;
        if again.contains("is there already") { Ok(()) } else { Err(again) }
    }
}
