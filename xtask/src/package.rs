//! `cargo xtask package`: a Debian package with the command and all that users' programs need.
//!
//! Its folder has kernel and programs compiled, and at the paths of a checkout the sources that a
//! user's program links, the linker script and the examples. Crates that are not ours are copied,
//! too, and found by their paths: nothing is fetched.

use diapason::arguments::described;
use diapason::metal::{self, Built};
use diapason::workspace::{
    INSTALLED_KERNEL, INSTALLED_LIBRARY, INSTALLED_OBSERVING, INSTALLED_PROGRAMS,
};
use diapason::{Failure, Workspace};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The command, and the folder, as they are installed.
pub const COMMAND: &str = "usr/bin/diapason";
pub const FOLDER: &str = "usr/lib/diapason";
const MANUAL: &str = "usr/share/man/man1";
const DOCUMENTS: &str = "usr/share/doc/diapason";
/// The crates that programs of users link, what those in C need, the schema of descriptions for
/// editors, and the examples.
const FOLDERS: [&str; 18] = [
    "abi",
    "cli/schema",
    "lib/can",
    "lib/contract",
    "lib/ether",
    "lib/frame",
    "lib/pipe",
    "lib/routines",
    "lib/state",
    "user/c/include",
    "user/c/library",
    "user/canlib",
    "user/nal",
    "user/netlib",
    "user/rt",
    "user/tpipe",
    "user/usblib",
    "examples",
];
/// Crates of others that these need.
const FOREIGN: [&str; 4] = ["embedded-can", "embedded-nal", "linked_list_allocator", "nb"];
/// The package and the program of the command.
const PACKAGE: &str = "diapason";
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The time of all files in a package, unless `SOURCE_DATE_EPOCH` is set: 2026-01-01.
const EPOCH: &str = "1767225600";

/// How small a package is made: the level of `xz`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packing {
    Quick,
    Thorough,
}

/// Runs `cargo xtask package`: writes the package into `folder`, and says where it is.
///
/// # Errors
/// If something does not compile, or a tool is missing.
pub fn command(workspace: &Workspace, folder: &Path) -> Result<PathBuf, Failure> {
    let mut cargo = crate::tally::command(workspace, &["build", "--release", "-p", PACKAGE]);
    run(&mut cargo)?;
    let command = workspace.target().join("release").join(PACKAGE);
    let built = metal::build(workspace)?;
    let package = package(workspace, &built, &command, folder, Packing::Thorough)?;
    println!("{}", package.display());
    Ok(package)
}

/// Makes the package with this command, kernel and programs; returns its path.
///
/// # Errors
/// If a file cannot be copied, or a tool is missing.
pub fn package(
    workspace: &Workspace,
    built: &Built,
    command: &Path,
    folder: &Path,
    effort: Packing,
) -> Result<PathBuf, Failure> {
    let name = format!("{PACKAGE}_{VERSION}_amd64");
    let root = folder.join(&name);
    if root.exists() {
        fs::remove_dir_all(&root)
            .map_err(|error| Failure::io(format!("remove {}", root.display()), &error))?;
    }
    strip(&[], command, &root.join(COMMAND))?;
    folder_of(workspace, built, &root.join(FOLDER))?;
    documents(workspace, &root)?;
    write(&root.join("DEBIAN/control"), &control())?;
    let package = folder.join(format!("{name}.deb"));
    let level = if effort == Packing::Quick { "-z0" } else { "-z9" };
    let mut pack = Command::new("dpkg-deb");
    pack.args(["--root-owner-group", "-Zxz", level, "--build"]).arg(&root).arg(&package);
    if std::env::var_os("SOURCE_DATE_EPOCH").is_none() {
        pack.env("SOURCE_DATE_EPOCH", EPOCH);
    }
    pack.stdout(std::process::Stdio::null());
    run(&mut pack)?;
    Ok(package)
}

/// Fills the folder that the command looks for.
fn folder_of(workspace: &Workspace, built: &Built, folder: &Path) -> Result<(), Failure> {
    strip(&["--strip-debug"], &built.kernel, &folder.join(INSTALLED_KERNEL))?;
    strip(&["--strip-debug"], &built.observing, &folder.join(INSTALLED_OBSERVING))?;
    for (name, path) in &built.programs {
        strip(&["--strip-debug"], path, &folder.join(INSTALLED_PROGRAMS).join(name))?;
    }
    let library = metal::c_library(workspace)?;
    strip(&["--strip-debug"], &library, &folder.join(INSTALLED_LIBRARY))?;
    copy(&workspace.root().join("Cargo.toml"), &folder.join("Cargo.toml"))?;
    for path in FOLDERS {
        copy_folder(&workspace.root().join(path), &folder.join(path), &|text| {
            with_paths(text, "../../vendor")
        })?;
    }
    for (name, path) in foreign(workspace)? {
        copy_folder(&path, &folder.join("vendor").join(name), &|text| with_paths(text, ".."))?;
    }
    Ok(())
}

/// Writes the manual, the completions, and what a package says of itself.
fn documents(workspace: &Workspace, root: &Path) -> Result<(), Failure> {
    let manual = root.join(MANUAL);
    make_folder(&manual)?;
    let written = |what: &str, result: std::io::Result<()>| {
        result.map_err(|error| Failure::io(format!("write {what}"), &error))
    };
    written("the manual", clap_mangen::generate_to(described(), &manual))?;
    for (shell, path) in [
        (clap_complete::Shell::Bash, "bash-completion/completions/diapason"),
        (clap_complete::Shell::Zsh, "zsh/vendor-completions/_diapason"),
        (clap_complete::Shell::Fish, "fish/vendor_completions.d/diapason.fish"),
    ] {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut described(), PACKAGE, &mut text);
        write(&root.join("usr/share").join(path), &String::from_utf8_lossy(&text))?;
    }
    let documents = root.join(DOCUMENTS);
    write(&documents.join("copyright"), "Licence: MIT or Apache-2.0, as you choose.\n")?;
    copy(&workspace.root().join("CHANGELOG.md"), &documents.join("changelog"))?;
    copy_folder(&workspace.root().join("docs"), &documents.join("docs"), &|text| text.into())?;
    let pages = fs::read_dir(&manual).into_iter().flatten().flatten().map(|page| page.path());
    let texts: Vec<PathBuf> = pages.chain([documents.join("changelog")]).collect();
    run(Command::new("gzip").arg("-9n").args(texts))
}

fn control() -> String {
    format!(
        "Package: {PACKAGE}\nVersion: {VERSION}-1\nArchitecture: amd64\nSection: devel\n\
         Priority: optional\nMaintainer: The Diapason project <diapason@example.org>\n\
         Depends: libc6 (>= 2.34), libgcc-s1\nRecommends: qemu-system-x86, gcc\n\
         Description: real-time operating system with proofs before it boots\n \
         Describes processes, their budgets and their devices in one file, proves that the\n \
         budgets hold, simulates the system, and boots it on a protected kernel. Programs of\n \
         your own are compiled with gcc, or with Rust 1.95 or later, from rustup.\n"
    )
}

/// Copies an executable without what its debugger needs.
fn strip(options: &[&str], from: &Path, to: &Path) -> Result<(), Failure> {
    make_folder(to.parent().unwrap_or(to))?;
    run(Command::new("strip").args(options).arg("-o").arg(to).arg(from))
}

/// Runs a tool to its good end.
fn run(command: &mut Command) -> Result<(), Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|error| Failure::io(format!("start {name}"), &error))?;
    if status.success() { Ok(()) } else { Err(Failure::World(format!("{name} failed: {status}"))) }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    make_folder(path.parent().unwrap_or(path))?;
    fs::write(path, text).map_err(|error| Failure::io(format!("write {}", path.display()), &error))
}

/// Returns a manifest whose dependencies on crates of others are found below `folder`.
fn with_paths(manifest: &str, folder: &str) -> String {
    let line = |line: &str| {
        let of = |name: &&str| {
            let rest = line.strip_prefix(name)?.strip_prefix(" = ")?;
            let path = format!("path = \"{folder}/{name}\"");
            Some(match rest.strip_prefix('{') {
                Some(rest) => format!("{name} = {{ {path},{rest}"),
                None => format!("{name} = {{ {path}, version = {rest} }}"),
            })
        };
        let table = |name: &&str| {
            let is = line == format!("[dependencies.{name}]");
            is.then(|| format!("{line}\npath = \"{folder}/{name}\""))
        };
        FOREIGN.iter().find_map(|name| of(name).or_else(|| table(name))).unwrap_or(line.into())
    };
    manifest.lines().map(|text| line(text) + "\n").collect()
}

/// Returns the folders of the crates of others, where cargo has unpacked them.
fn foreign(workspace: &Workspace) -> Result<Vec<(&'static str, PathBuf)>, Failure> {
    let mut command = crate::tally::command(workspace, &["metadata", "--format-version", "1"]);
    let output = command.output().map_err(|error| Failure::io("start cargo", &error))?;
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| Failure::Ours(format!("cargo metadata is no JSON: {error}")))?;
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let folder = |name: &'static str| {
        let package = packages.iter().find(|package| package["name"] == name)?;
        Some((name, Path::new(package["manifest_path"].as_str()?).parent()?.to_path_buf()))
    };
    FOREIGN
        .into_iter()
        .map(|name| folder(name).ok_or_else(|| Failure::Ours(format!("nothing needs {name}"))))
        .collect()
}

/// Copies a folder's files but tests; `manifest` changes the text of each `Cargo.toml`.
fn copy_folder(from: &Path, to: &Path, manifest: &dyn Fn(&str) -> String) -> Result<(), Failure> {
    let entries = fs::read_dir(from)
        .map_err(|error| Failure::io(format!("read {}", from.display()), &error))?;
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let target = to.join(&name);
        if path.is_dir() {
            if name != "tests" && name != "target" {
                copy_folder(&path, &target, manifest)?;
            }
        } else if name == "Cargo.toml" {
            let text = fs::read_to_string(&path)
                .map_err(|error| Failure::io(format!("read {}", path.display()), &error))?;
            make_folder(to)?;
            fs::write(&target, manifest(&text))
                .map_err(|error| Failure::io(format!("write {}", target.display()), &error))?;
        } else {
            copy(&path, &target)?;
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    make_folder(to.parent().unwrap_or(to))?;
    fs::copy(from, to).map(|_| ()).map_err(|error| {
        Failure::io(format!("copy {} to {}", from.display(), to.display()), &error)
    })
}

fn make_folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path)
        .map_err(|error| Failure::io(format!("make {}", path.display()), &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_on_crates_of_others_have_paths() {
        let manifest = "[dependencies]\nembedded-can = \"0.4.1\"\nnb-more = \"1\"\n\
            linked_list_allocator = { version = \"0.10.6\", default-features = false }\n";
        assert_eq!(
            with_paths(manifest, "../v"),
            "[dependencies]\nembedded-can = { path = \"../v/embedded-can\", version = \"0.4.1\" }\n\
             nb-more = \"1\"\nlinked_list_allocator = { path = \"../v/linked_list_allocator\", \
             version = \"0.10.6\", default-features = false }\n"
        );
        let table = "[dependencies.nb]\nversion = \"1\"\n";
        assert_eq!(
            with_paths(table, ".."),
            "[dependencies.nb]\npath = \"../nb\"\nversion = \"1\"\n"
        );
    }
}
