//! An installation: the command, and a folder with all that it and the programs of users need.
//!
//! The folder has kernel and programs compiled, and at the paths of a checkout the sources that a
//! user's program links, the linker script and the examples. Crates that are not ours are copied,
//! too, and found by their paths: nothing is fetched.

use diapason::metal::{self, Built};
use diapason::workspace::{INSTALLED_KERNEL, INSTALLED_OBSERVING, INSTALLED_PROGRAMS};
use diapason::{Failure, Workspace};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The command, and the folder, below the prefix of an installation.
pub const COMMAND: &str = "bin/diapason";
pub const FOLDER: &str = "lib/diapason";
/// The crates that programs of users link, and the examples.
const FOLDERS: [&str; 12] = [
    "abi",
    "lib/can",
    "lib/contract",
    "lib/frame",
    "lib/pipe",
    "lib/routines",
    "lib/state",
    "user/canlib",
    "user/rt",
    "user/tpipe",
    "user/usblib",
    "examples",
];
/// Crates of others that these need.
const FOREIGN: [&str; 3] = ["embedded-can", "linked_list_allocator", "nb"];
/// The package and the program of the command.
const PACKAGE: &str = "diapason";

/// Installs below `prefix`, which is made.
///
/// # Errors
/// If something does not compile, or cannot be copied.
pub fn install(workspace: &Workspace, built: &Built, prefix: &Path) -> Result<(), Failure> {
    let command = metal::host_program(workspace, PACKAGE, PACKAGE)?;
    copy(&command, &prefix.join(COMMAND))?;
    let folder = prefix.join(FOLDER);
    copy(&built.kernel, &folder.join(INSTALLED_KERNEL))?;
    copy(&built.observing, &folder.join(INSTALLED_OBSERVING))?;
    for (name, path) in &built.programs {
        copy(path, &folder.join(INSTALLED_PROGRAMS).join(name))?;
    }
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

/// A manifest whose dependencies on crates of others are found below `folder`.
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
