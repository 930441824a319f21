//! Programs in C: the machine's C compiler compiles them, and they link the runtime's library.
//!
//! The folder `programs/NAME` beside a description holds the program NAME: all its `*.c` files. No
//! other tool and no file of the user's has to say so.

use crate::failure::Failure;
use crate::metal::{self, ImageKind};
use crate::states;
use crate::workspace::Workspace;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder beside a description whose folders are C programs.
pub const FOLDER: &str = "programs";
/// The headers and the C sources of the runtime, in a checkout and where it is installed.
pub const HEADERS: &str = "user/c/include";
const SOURCES: [&str; 2] = ["user/c/library/diapason.c", "user/c/library/state.c"];

/// Flags of the compiler: freestanding code for any address, without what needs a C library, an
/// unwinder or a newer processor.
const COMPILE: [&str; 14] = [
    "-std=c11",
    "-O2",
    "-g",
    "-Wall",
    "-Wextra",
    "-Werror=incompatible-pointer-types",
    "-ffreestanding",
    "-fpie",
    "-fvisibility=hidden",
    "-fno-stack-protector",
    "-fcf-protection=none",
    "-fno-asynchronous-unwind-tables",
    "-ffunction-sections",
    "-fdata-sections",
];

/// The C programs beside a description: the sources of each, by its name.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Programs {
    pub sources: BTreeMap<String, Vec<PathBuf>>,
    /// The folder with the headers that follow from the description.
    generated: PathBuf,
}

impl Programs {
    /// Finds the programs beside a description.
    ///
    /// # Errors
    /// If a folder cannot be read.
    pub fn beside(description: &Path) -> Result<Programs, Failure> {
        let beside = description.parent().unwrap_or(Path::new(""));
        let generated = states::folder(description);
        let mut programs = Programs { generated, ..Programs::default() };
        for folder in entries(&beside.join(FOLDER))? {
            let Some(name) = folder.file_name().and_then(|name| name.to_str()) else { continue };
            if !folder.is_dir() {
                continue;
            }
            let mut sources = entries(&folder)?;
            sources.retain(|path| path.extension().is_some_and(|ending| ending == "c"));
            if !sources.is_empty() {
                programs.sources.insert(name.into(), sources);
            }
        }
        Ok(programs)
    }

    /// Returns whether there is a program of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.sources.contains_key(name)
    }

    /// Compiles and links a program into a folder for results. Returns its name and where it is;
    /// `None` if there is none of this name.
    ///
    /// # Errors
    /// If it does not compile, or there is no C compiler.
    pub fn build(
        &self,
        name: &str,
        workspace: &Workspace,
        results: &Path,
    ) -> Result<Option<(String, PathBuf)>, Failure> {
        let Some(sources) = self.sources.get(name) else { return Ok(None) };
        let library = metal::c_library(workspace)?;
        fs::create_dir_all(results)
            .map_err(|error| Failure::io(format!("make {}", results.display()), &error))?;
        let (root, result) = (workspace.root(), results.join(name));
        let mut command = self.compilation(workspace, sources);
        command
            .args(SOURCES.map(|source| root.join(source)))
            .args(ImageKind::Programs.linking(root));
        command.arg("-Wl,--gc-sections").arg(library).arg("-o").arg(&result);
        compiled(command, name, sources)?;
        Ok(Some((name.into(), result)))
    }

    /// Lets the compiler look at a program, without a result. Nothing is looked at if there is none
    /// of this name.
    ///
    /// # Errors
    /// If it does not compile, or there is no C compiler.
    pub fn check(&self, name: &str, workspace: &Workspace) -> Result<(), Failure> {
        let Some(sources) = self.sources.get(name) else { return Ok(()) };
        let mut command = self.compilation(workspace, sources);
        command.arg("-fsyntax-only");
        compiled(command, name, sources)
    }

    /// Returns the start of the compiler for these sources.
    fn compilation(&self, workspace: &Workspace, sources: &[PathBuf]) -> Command {
        let mut command = Command::new(compiler());
        command.args(COMPILE).arg("-I").arg(workspace.root().join(HEADERS));
        command.arg("-I").arg(&self.generated).args(sources);
        command
    }
}

/// Runs the compiler for a program.
fn compiled(mut command: Command, name: &str, sources: &[PathBuf]) -> Result<(), Failure> {
    // The words of the compiler are for the user; results of the command are not among them.
    command.stdin(Stdio::null()).stdout(Stdio::from(std::io::stderr()));
    if command.status().map_err(|error| missing(name, &error))?.success() {
        return Ok(());
    }
    let folder = sources.first().and_then(|path| path.parent()).unwrap_or(Path::new(""));
    Err(Failure::Input(format!(
        "error: the program {name} of {} does not compile: see the messages of {} above",
        folder.display(),
        compiler().display()
    )))
}

/// Returns the C compiler: the one that `CC` names, or `cc`.
fn compiler() -> OsString {
    std::env::var_os("CC").filter(|name| !name.is_empty()).unwrap_or_else(|| "cc".into())
}

fn missing(name: &str, error: &std::io::Error) -> Failure {
    let compiler = compiler();
    Failure::World(format!(
        "cannot start {}: {error}\nhelp: {name} is a program in C: apt-get install gcc, or set CC \
         to a C compiler",
        compiler.display()
    ))
}

/// Returns what is in a folder, by name. A folder that is not there has nothing.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error: &std::io::Error| Failure::io(format!("read {}", folder.display()), error);
    let found = match fs::read_dir(folder) {
        Ok(found) => found,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(failed(&error)),
    };
    let mut all = Vec::new();
    for entry in found {
        all.push(entry.map_err(|error| failed(&error))?.path());
    }
    all.sort();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_c_sources_is_a_program() {
        let folder = std::env::temp_dir().join(format!("diapason-c-{}", std::process::id()));
        let write = |path: &str| {
            let path = folder.join(FOLDER).join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        };
        let description = folder.join("system.toml");
        assert_eq!(Programs::beside(&description).unwrap().sources, BTreeMap::new());
        let files = ["b/z.c", "b/a.c", "b/a.h", "empty/notes.txt", "alone.c", "a/main.c"];
        files.into_iter().for_each(write);
        let programs = Programs::beside(&description).unwrap();
        let of = |name: &str| -> Vec<String> {
            let sources = &programs.sources[name];
            let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
            sources.iter().map(name).collect()
        };
        assert_eq!(programs.sources.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!((of("a"), of("b")), (vec!["main.c".into()], vec!["a.c".into(), "z.c".into()]));
        fs::remove_dir_all(folder).unwrap();
    }
}
