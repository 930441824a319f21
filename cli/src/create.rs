//! `diapason new`: a folder with a system that holds, as the beginning of a user's own.

use crate::failure::Failure;
use crate::failure::HOLDS;
use crate::output::say;
use crate::workspace::Workspace;
use diapason_system::{Description, Diagnostics, parse_any};
use std::fs;
use std::path::{Path, PathBuf};

/// The word that stands in templates for the name of the new system and its program.
const NAME: &str = "app-name";
/// The word that stands for the folder of Diapason's libraries.
const HOME: &str = "app-home";
/// The manifest and the README of every new folder.
const MANIFEST: &str = include_str!("../templates/manifest.toml");
const README: &str = include_str!("../templates/README.md");
/// The last of the dependencies that every program has; those of a template follow it.
const RUNTIME: &str = "diapason-rt = { path = \"app-home/user/rt\" }\n";

/// The request to `new`.
#[derive(Clone, Debug, clap::Args)]
pub struct NewRequest {
    /// The folder to make; its last part names the system and its program.
    #[arg(value_name = "NAME")]
    pub folder: PathBuf,
    /// The beginning of the system.
    #[arg(short, long, value_name = "TEMPLATE", value_enum, default_value_t = Template::Hello)]
    pub template: Template,
}

/// The beginnings of a new system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Template {
    /// One process with a job every 10 ms.
    Hello,
    /// A USB interface with a CAN channel, and a program that reads it.
    CanReader,
    /// A program that passes frames on from one CAN channel to another.
    CanGateway,
    /// A sensor on USB, and a program that reads it.
    Sensor,
    /// A USB interface with a CAN channel, and a program in C that reads it.
    C,
    /// Two hosts and the cable between them: a program sends, another receives.
    TwoHosts,
    /// A state message: a program in Rust writes it, one in Rust and one in C read it.
    State,
}

/// A file of a template: its path in the new folder, and its text.
type File = (&'static str, String);

/// The description of the template `can-reader`, and of the one in C, which reads the same.
const READER: &str = include_str!("../templates/can-reader/system.toml");
/// Where it says which function takes the time of a work, in Rust and in C.
const WORKS: [&str; 2] = ["`time::work` in src/main.rs", "`dia_work` in programs/app-name/main.c"];
const IGNORED: &str = "/target\n/report.html\n";

macro_rules! rust {
    ($folder:literal, $system:expr, $dependencies:expr) => {
        cargo_package(
            $system,
            include_str!(concat!("../templates/", $folder, "/main.rs")),
            include_str!(concat!("../templates/", $folder, "/lib.rs")),
            $dependencies,
        )
    };
    ($folder:literal, $dependencies:expr) => {
        rust!(
            $folder,
            include_str!(concat!("../templates/", $folder, "/system.toml")),
            $dependencies
        )
    };
}

/// Returns the files of a template whose program is a Cargo package. `dependencies` are packages
/// besides the runtime, and their folders.
fn cargo_package(system: &str, main: &str, lib: &str, dependencies: &[(&str, &str)]) -> Vec<File> {
    let further = dependencies
        .iter()
        .map(|(package, folder)| format!("{package} = {{ path = \"{HOME}/{folder}\" }}\n"));
    let all: String = further.chain([String::from(RUNTIME)]).collect();
    vec![
        ("Cargo.toml", MANIFEST.replace(RUNTIME, &all)),
        ("README.md", README.into()),
        ("system.toml", system.into()),
        ("src/main.rs", main.into()),
        ("src/lib.rs", lib.into()),
        (".gitignore", IGNORED.into()),
    ]
}

/// Returns the files of the template in C.
fn in_c() -> Vec<File> {
    vec![
        ("README.md", include_str!("../templates/c/README.md").into()),
        ("system.toml", READER.replace(WORKS[0], WORKS[1])),
        ("programs/app-name/main.c", include_str!("../templates/c/main.c").into()),
        ("compile_flags.txt", include_str!("../templates/c/compile_flags.txt").into()),
        (".gitignore", IGNORED.into()),
    ]
}

/// The programs of the template with two hosts, one on each.
const SIDES: [(&str, &str); 2] = [
    ("sender", include_str!("../templates/two-hosts/sender.rs")),
    ("receiver", include_str!("../templates/two-hosts/receiver.rs")),
];
/// The part of the manifest about the only program of other templates.
const BINARY: &str =
    "[[bin]]\nname = \"app-name\"\npath = \"src/main.rs\"\ntest = false\nbench = false\n";
/// The word that stands in the description of a host for its program.
const SIDE: &str = "app-side";

/// Returns the files of the template with two hosts.
fn two_hosts() -> Vec<File> {
    const LINKS: &[(&str, &str)] =
        &[("diapason-frame", "lib/frame"), ("diapason-usblib", "user/usblib")];
    let list = include_str!("../templates/two-hosts/system.toml");
    let library = include_str!("../templates/two-hosts/lib.rs");
    let mut files = cargo_package(list, "", library, LINKS);
    let binaries = SIDES.map(|(side, _)| BINARY.replace(NAME, side).replace("main", side));
    for (path, text) in &mut files {
        match *path {
            "Cargo.toml" => *text = text.replace(BINARY, &binaries.join("\n")),
            "README.md" => *text = include_str!("../templates/two-hosts/README.md").into(),
            _ => {}
        }
    }
    files.retain(|(path, _)| *path != "src/main.rs");
    let host = include_str!("../templates/two-hosts/host.toml");
    let [sender, receiver] = SIDES.map(|(side, _)| host.replace(SIDE, side));
    let [(_, sends), (_, receives)] = SIDES;
    files.extend([
        ("sender.toml", sender),
        ("receiver.toml", receiver),
        ("src/sender.rs", sends.into()),
        ("src/receiver.rs", receives.into()),
    ]);
    files
}

/// Returns the files of the template with a state message.
fn state_message() -> Vec<File> {
    let mut files: Vec<File> = rust!("state", &[]);
    let writer = BINARY.replace(NAME, "wheel").replace("main", "wheel");
    for (path, text) in &mut files {
        match *path {
            "Cargo.toml" => *text = text.replace(BINARY, &[BINARY, &writer].join("\n")),
            "README.md" => *text = include_str!("../templates/state/README.md").into(),
            _ => {}
        }
    }
    files.extend([
        ("src/wheel.rs", include_str!("../templates/state/wheel.rs").into()),
        ("programs/display/main.c", include_str!("../templates/state/display.c").into()),
        (
            "compile_flags.txt",
            format!("{}-Igenerated\n", include_str!("../templates/c/compile_flags.txt")),
        ),
    ]);
    files
}

impl Template {
    fn files(self) -> Vec<File> {
        const READS: &[(&str, &str)] = &[("diapason-canlib", "user/canlib")];
        const WRITES: &[(&str, &str)] =
            &[("diapason-can", "lib/can"), ("diapason-canlib", "user/canlib")];
        const USB: &[(&str, &str)] = &[("diapason-usblib", "user/usblib")];
        match self {
            Template::Hello => rust!("hello", &[]),
            Template::CanReader => rust!("can-reader", READER, READS),
            Template::CanGateway => rust!("can-gateway", WRITES),
            Template::Sensor => rust!("sensor", USB),
            Template::C => in_c(),
            Template::TwoHosts => two_hosts(),
            Template::State => state_message(),
        }
    }

    /// Returns the files of a new system: their paths in its folder, and their texts.
    ///
    /// # Errors
    /// Why the system cannot have this name.
    fn system(self, name: &str, home: &Path) -> Result<Vec<(String, String)>, String> {
        check(name)?;
        let home = home.display().to_string().replace('\\', "/");
        let filled = |text: &str| text.replace(NAME, name).replace(HOME, &home);
        let files = self.files().into_iter();
        let files: Vec<_> = files.map(|(path, text)| (filled(path), filled(&text))).collect();
        // A name of the template's own cannot be had twice.
        described(&files)
            .map_err(|_| format!("the template has something of that name: {name}"))?;
        Ok(files)
    }
}

/// Reads the description in the files of a system.
fn described(files: &[(String, String)]) -> Result<Description, Diagnostics> {
    let text = |path: &str| files.iter().find(|file| file.0 == path).map(|file| file.1.clone());
    parse_any("system.toml", &text("system.toml").unwrap_or_default(), |path| {
        Ok((path.to_owned(), text(path).ok_or("it is not there")?))
    })
}

/// Checks that cargo, the kernel and a description take this name.
fn check(name: &str) -> Result<(), String> {
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    let others = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if !begins || !name.chars().all(others) || name.len() > 31 {
        return Err("it is 1 to 31 of the characters a-z, 0-9, _ and -, the first a letter".into());
    }
    match name {
        "logic" | "core" | "alloc" | "std" | "test" | "proc-macro" | "supervisor" | "usbd" => {
            Err(format!("`{name}` has a meaning of its own"))
        }
        _ => Ok(()),
    }
}

/// Makes the folder of a new system.
///
/// # Errors
/// If it cannot be made, or cannot have this name.
pub fn new(request: &NewRequest) -> Result<u8, Failure> {
    let folder = &request.folder;
    let wrong = |why: String| {
        Failure::Input(format!("error: cannot name a system after {}: {why}", folder.display()))
    };
    let name = folder.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| wrong("it has no name".into()))?;
    let home = Workspace::find()?;
    let files = request.template.system(name, home.root()).map_err(wrong)?;
    if folder.exists() {
        return Err(Failure::Input(format!(
            "error: {} is there already\nhelp: choose another name, or remove it",
            folder.display()
        )));
    }
    for (path, text) in &files {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent)
            .map_err(|error| Failure::io(format!("make {}", parent.display()), &error))?;
        fs::write(&path, text)
            .map_err(|error| Failure::io(format!("write {}", path.display()), &error))?;
    }
    let shown = folder.display();
    say(&format!("{shown}: a system that holds. Next: `cd {shown}`, then `diapason plan`,"));
    // QEMU is one host.
    let run = if request.template == Template::TwoHosts { "" } else { ", `diapason run`" };
    say(&format!("`diapason sim`{run}; README.md says what is where"));
    Ok(HOLDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_template_is_a_system_whose_plan_holds() {
        for template in Template::value_variants() {
            let files = template.system("mine", Path::new("/opt/dia")).unwrap();
            let file = |path: &str| &files.iter().find(|file| file.0 == path).unwrap().1;
            for (path, text) in &files {
                assert!(
                    [NAME, HOME, SIDE].iter().all(|word| !text.contains(word)),
                    "{template:?}: {path}"
                );
            }
            let (file_of_home, home) = match template {
                Template::C => ("compile_flags.txt", "-I/opt/dia/user/c/include"),
                _ => ("Cargo.toml", "path = \"/opt/dia/user/rt\""),
            };
            assert!(file(file_of_home).contains(home));
            let systems = match described(&files).unwrap() {
                Description::One(system) => vec![*system],
                Description::Cores(cores) => cores,
                Description::Several(hosts) => {
                    assert!(crate::plan::NetworkPlan::of(&hosts).holds());
                    hosts.hosts.into_iter().map(|host| host.system).collect()
                }
            };
            for system in systems {
                let plan = crate::plan::Plan::of(&system);
                assert!(plan.holds(), "{template:?}");
                assert_eq!(plan.verdict(), crate::plan::Verdict::Holds, "{template:?}");
            }
        }
    }

    #[test]
    fn names_that_would_not_work_are_refused_with_the_reason() {
        let refused = |name: &str| Template::CanReader.system(name, Path::new("/")).unwrap_err();
        for name in ["", "Car", "4wd", "my car", "-x", "a/b", &"a".repeat(32)] {
            assert!(refused(name).starts_with("it is 1 to 31 of the characters"), "{name}");
        }
        assert_eq!(refused("logic"), "`logic` has a meaning of its own");
        assert!(READER.contains(WORKS[0]), "the template in C has a comment of its own");
        assert!(MANIFEST.contains(BINARY), "two programs take the place of the only one");
        assert!(Template::TwoHosts.system("sender", Path::new("/")).is_ok(), "another name space");
        assert_eq!(refused("usbd"), "`usbd` has a meaning of its own");
        for name in ["xhci", "reading", "usb-receive"] {
            assert!(refused(name).starts_with("the template has something of that name"));
        }
    }
}
