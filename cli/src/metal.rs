//! Compiles what boots: the kernel and the programs, with the flags that only they need.
//!
//! These flags live here and not in a cargo configuration: there they would reach build scripts
//! and procedural macros, which must be linked like ordinary programs.

use crate::failure::Failure;
use crate::input::Input;
use crate::mark;
use crate::workspace::{
    INSTALLED_KERNEL, INSTALLED_LIBRARY, INSTALLED_OBSERVING, INSTALLED_PROGRAMS, Workspace,
};
use diapason_abi::served::Served;
use diapason_system::RunOptions;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The only target; its precompiled core library is all that is needed.
pub const TARGET: &str = "x86_64-unknown-linux-gnu";
pub const KERNEL: &str = "diapason-kernel";
/// The folder of kernels of one system each, below the target folder.
const OWN_KERNELS: &str = "own-kernels";
/// The variable that tells the kernel's source what to serve (`kernel/core/src/served.rs`).
const SERVED: &str = "DIAPASON_SERVED";
/// Cargo's variable for the folder of its results.
const TARGET_DIR: &str = "CARGO_TARGET_DIR";
/// Cargo's profile of what boots.
const PROFILE: &str = "metal";
/// The package of the runtime for programs in C, and its library.
const C_RUNTIME: (&str, &str) = ("diapason-c", "libdiapason.a");
/// Folders whose sub-folders are packages of programs.
pub const PROGRAM_FOLDERS: [&str; 3] = ["user/apps", "user/servers", "papers/apps"];

/// The kind of image to build.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImageKind {
    /// Linked at fixed addresses, run in ring 0.
    Kernel,
    /// A kernel that can also keep the flight record and time its paths.
    ObservingKernel,
    /// Position-independent, one per process.
    Programs,
}

impl ImageKind {
    /// Returns its folder below the target folder.
    const fn folder(self) -> &'static str {
        match self {
            ImageKind::Kernel => "kernel",
            ImageKind::ObservingKernel => "observing",
            ImageKind::Programs => "programs",
        }
    }

    /// Returns the flags of linking, as a C compiler takes them. No other function has them.
    pub(crate) fn linking(self, root: &Path) -> Vec<String> {
        let (script, own): (_, &[&str]) = match self {
            ImageKind::Kernel | ImageKind::ObservingKernel => {
                ("kernel/x86_64/kernel.ld", &["-static", "-no-pie"])
            }
            ImageKind::Programs => {
                ("user/rt/program.ld", &["-static-pie", "-Wl,--no-dynamic-linker", "-Wl,-z,text"])
            }
        };
        let mut link: Vec<String> = ["-nostartfiles", "-nostdlib"].map(String::from).to_vec();
        link.extend(own.iter().map(|flag| String::from(*flag)));
        link.push(format!("-Wl,-T,{}", root.join(script).display()));
        link.extend(["-Wl,--build-id=none", "-Wl,-z,max-page-size=4096"].map(String::from));
        link
    }

    /// Returns compiler and linker flags. No other function has them.
    pub(crate) fn flags(self, root: &Path) -> Vec<String> {
        let mut link = self.linking(root);
        let model = if self == ImageKind::Programs { "pic" } else { "static" };
        let mut flags = vec![format!("-Crelocation-model={model}")];
        if self != ImageKind::Programs {
            flags.push("-Cno-redzone=yes".into());
            // The linker script tells functions apart by name, also instances of generic ones.
            flags.push("-Csymbol-mangling-version=v0".into());
            // For the check that nothing refers to what has left memory (`tidy::boot` of xtask).
            link.push("-Wl,--emit-relocs".into());
        }
        flags.extend(link.into_iter().map(|flag| format!("-Clink-arg={flag}")));
        flags.push(format!("--remap-path-prefix={}=.", root.display()));
        flags
    }

    fn packages(self, workspace: &Workspace) -> Result<Vec<String>, Failure> {
        match self {
            ImageKind::Kernel | ImageKind::ObservingKernel => Ok(vec![KERNEL.into()]),
            ImageKind::Programs => program_packages(workspace.root()),
        }
    }
}

/// The result of a build.
#[derive(Clone, Default, Debug)]
pub struct Built {
    /// The kernel's ELF file.
    pub kernel: PathBuf,
    /// That of the kernel for runs that are recorded or watched.
    pub observing: PathBuf,
    /// The programs' ELF files by name.
    pub programs: BTreeMap<String, PathBuf>,
    /// All programs of the user's project; those that nothing names are not built.
    pub own: Vec<String>,
    /// The flight record shows the works of programs.
    pub marked: bool,
}

impl Built {
    /// Returns the kernel's ELF file for a run with these options.
    #[must_use]
    pub fn kernel_for(&self, options: &RunOptions) -> &Path {
        let observed = options.watch || options.record_bytes > 0;
        if observed { &self.observing } else { &self.kernel }
    }

    /// Returns the bytes of a program as the archive wants them: what is loaded, without debug
    /// data.
    ///
    /// # Errors
    /// A sentence that names the programs there are.
    pub fn program(&self, name: &str) -> Result<Vec<u8>, String> {
        let file = Input::Program.bytes(self.path(name)?);
        let file = file.map_err(|error| format!("its file cannot be read: {error}"))?;
        let mut program = crate::image::without_sections(file);
        if self.marked && mark::mark(&mut program).is_none() {
            return Err("its works cannot be measured: it was linked for another version".into());
        }
        Ok(program)
    }

    /// Returns where the ELF file of a program is.
    ///
    /// # Errors
    /// A sentence that names the programs there are.
    pub fn path(&self, name: &str) -> Result<&Path, String> {
        let path = self.programs.get(name).map(PathBuf::as_path);
        path.ok_or_else(|| format!("there is no such program; {}", self.known()))
    }

    /// The programs there are, as the end of a sentence.
    fn known(&self) -> String {
        known(&self.own, self.programs.keys())
    }
}

/// Says which programs there are, as the end of a sentence: of a user's project those of its own.
pub(crate) fn known<'a>(own: &[String], all: impl Iterator<Item = &'a String>) -> String {
    if !own.is_empty() {
        return format!("your project has: {}", own.join(", "));
    }
    let all: Vec<&str> = all.map(String::as_str).collect();
    format!("there are: {}", all.join(", "))
}

/// Builds kernel and programs, or finds them where they are installed.
///
/// # Errors
/// If cargo cannot be started, or something does not compile.
pub fn build(workspace: &Workspace) -> Result<Built, Failure> {
    if workspace.is_installed() {
        return installed(workspace.root());
    }
    let kernel = |kind| {
        let missing = || Failure::Ours(format!("the package {KERNEL} has no program {KERNEL}"));
        executables(workspace, kind)?.remove(KERNEL).ok_or_else(missing)
    };
    let (kernel, observing) = (kernel(ImageKind::Kernel)?, kernel(ImageKind::ObservingKernel)?);
    let programs = executables(workspace, ImageKind::Programs)?;
    Ok(Built { kernel, observing, programs, ..Built::default() })
}

/// Builds a kernel of this kind that has these calls and services and no others. Returns `None`
/// where there are no sources of the kernel: it is installed, and has everything.
///
/// # Errors
/// If cargo cannot be started, or the kernel does not compile.
pub fn kernel_with(
    workspace: &Workspace,
    needed: Served,
    kind: ImageKind,
) -> Result<Option<PathBuf>, Failure> {
    if workspace.is_installed() {
        return Ok(None);
    }
    let mut command = cargo(workspace, "build", kind)?;
    let name = format!("{}-{needed}", kind.folder());
    let folder = workspace.target().join(OWN_KERNELS).join(name);
    command.env(TARGET_DIR, folder).env(SERVED, needed.to_string());
    let built = built(command)?.ok_or_else(|| uncompiled("a kernel of its own"))?;
    Ok(built.into_iter().find(|(name, _)| name == KERNEL).map(|(_, path)| path))
}

/// Builds the runtime for programs in C, or finds it where it is installed.
///
/// # Errors
/// If cargo cannot be started, or it does not compile.
pub fn c_library(workspace: &Workspace) -> Result<PathBuf, Failure> {
    if workspace.is_installed() {
        return Ok(workspace.root().join(INSTALLED_LIBRARY));
    }
    let (package, library) = C_RUNTIME;
    let mut command = base(workspace, "build", ImageKind::Programs);
    command.args(["-p", package, "--lib"]);
    built(command)?.ok_or_else(|| uncompiled(package))?;
    let target = workspace.target().join(ImageKind::Programs.folder());
    Ok(target.join(TARGET).join(PROFILE).join(library))
}

/// Returns what an installed folder has.
fn installed(root: &Path) -> Result<Built, Failure> {
    let folder = root.join(INSTALLED_PROGRAMS);
    let entries = fs::read_dir(&folder)
        .map_err(|error| Failure::io(format!("read {}", folder.display()), &error))?;
    let program = |path: PathBuf| Some((path.file_name()?.to_str()?.to_owned(), path));
    let programs = entries.flatten().filter_map(|entry| program(entry.path())).collect();
    let (kernel, observing) = (root.join(INSTALLED_KERNEL), root.join(INSTALLED_OBSERVING));
    Ok(Built { kernel, observing, programs, ..Built::default() })
}

/// Runs clippy on kernel or programs, warnings being errors; true if it is content.
///
/// # Errors
/// If cargo cannot be started.
pub fn clippy(workspace: &Workspace, kind: ImageKind) -> Result<bool, Failure> {
    let mut command = cargo(workspace, "clippy", kind)?;
    command.args(["--quiet", "--", "-D", "warnings"]);
    let status = command.status().map_err(|error| Failure::io("start cargo", &error))?;
    Ok(status.success())
}

/// Returns the cargo command for `kind`, without what follows its common options.
fn cargo(workspace: &Workspace, action: &str, kind: ImageKind) -> Result<Command, Failure> {
    let mut command = base(workspace, action, kind);
    command.arg("--bins");
    for package in kind.packages(workspace)? {
        command.args(["-p", &package]);
    }
    if kind == ImageKind::ObservingKernel {
        command.args(["--features", "observing"]);
    }
    Ok(command)
}

/// Returns the cargo command for `kind`, without what it is about.
fn base(workspace: &Workspace, action: &str, kind: ImageKind) -> Command {
    let mut command = Command::new(cargo_program());
    command.current_dir(workspace.root()).arg(action).args(["--profile", PROFILE]);
    command.args(["--target", TARGET]).env_remove(SERVED);
    command.env(TARGET_DIR, workspace.target().join(kind.folder()));
    command.env("CARGO_ENCODED_RUSTFLAGS", kind.flags(workspace.root()).join("\x1f"));
    command
}

/// Cargo: the one that started this program, if one did.
pub(crate) fn cargo_program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Builds `kind` and returns where its programs are.
fn executables(
    workspace: &Workspace,
    kind: ImageKind,
) -> Result<BTreeMap<String, PathBuf>, Failure> {
    if kind.packages(workspace)?.is_empty() {
        return Ok(BTreeMap::new());
    }
    built(cargo(workspace, "build", kind)?)?.ok_or_else(|| uncompiled(kind.folder()))
}

/// Builds a program of the host with the profile of this one, and returns where it is. No package
/// is named, so that cargo chooses the features of all default packages, as it does for the tests:
/// with others it would compile every crate again.
///
/// # Errors
/// If cargo cannot be started, or the program does not compile.
pub fn host_program(workspace: &Workspace, name: &str) -> Result<PathBuf, Failure> {
    let mut command = Command::new(cargo_program());
    command.current_dir(workspace.root()).args(["build", "--bin", name]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let missing = || Failure::Ours(format!("no package has a program {name}"));
    built(command)?.ok_or_else(|| uncompiled(name))?.remove(name).ok_or_else(missing)
}

/// Something of ours does not compile.
fn uncompiled(what: &str) -> Failure {
    Failure::Ours(format!("{what}: this did not compile"))
}

/// Returns the executables of one run of cargo; `None` if something does not compile, about which
/// cargo has said everything.
pub(crate) fn built(mut command: Command) -> Result<Option<BTreeMap<String, PathBuf>>, Failure> {
    command.args(["--quiet", "--message-format", "json-render-diagnostics"]);
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Failure::io("start cargo", &error))?;
    if !output.status.success() {
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(&output.stdout).lines().filter_map(executable).collect()))
}

/// Returns the executable that one of cargo's messages announces.
fn executable(message: &str) -> Option<(String, PathBuf)> {
    let message: Value = serde_json::from_str(message).ok()?;
    let path = message.get("executable")?.as_str()?;
    let name = message.get("target")?.get("name")?.as_str()?;
    Some((name.into(), path.into()))
}

/// Returns the packages of programs, in a stable order.
pub(crate) fn program_packages(root: &Path) -> Result<Vec<String>, Failure> {
    let mut manifests = Vec::new();
    for folder in PROGRAM_FOLDERS {
        let Ok(entries) = fs::read_dir(root.join(folder)) else { continue };
        let paths = entries.flatten().map(|entry| entry.path().join("Cargo.toml"));
        manifests.extend(paths.filter(|path| path.is_file()));
    }
    manifests.sort();
    manifests.iter().map(|path| package_name(path)).collect()
}

fn package_name(manifest: &Path) -> Result<String, Failure> {
    let text = fs::read_to_string(manifest)
        .map_err(|error| Failure::io(format!("read {}", manifest.display()), &error))?;
    let line = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    line.map(String::from)
        .ok_or_else(|| Failure::Ours(format!("{} names no package", manifest.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_whole_and_hide_the_path_of_the_checkout() {
        let flags = ImageKind::Programs.flags(Path::new("/some/where"));
        assert!(flags.contains(&"-Clink-arg=-Wl,-T,/some/where/user/rt/program.ld".into()));
        assert!(flags.contains(&"--remap-path-prefix=/some/where=.".into()));
        assert!(flags.iter().all(|flag| !flag.contains('\x1f')));
    }

    #[test]
    fn executables_are_read_from_cargos_messages() {
        let message = r#"{"reason":"compiler-artifact","target":{"name":"sensor"},
            "executable":"/t/sensor"}"#;
        assert_eq!(executable(message), Some(("sensor".into(), "/t/sensor".into())));
        assert_eq!(executable(r#"{"reason":"build-finished","success":true}"#), None);
        assert_eq!(executable(r#"{"target":{"name":"lib"},"executable":null}"#), None);
        assert_eq!(executable("no json"), None);
    }

    #[test]
    fn an_unknown_program_is_answered_with_the_known_ones() {
        let programs = BTreeMap::from([("a".into(), "a".into()), ("b".into(), "b".into())]);
        let mut built = Built { programs, ..Built::default() };
        assert!(built.program("c").unwrap_err().ends_with("there are: a, b"));
        built.own = vec!["b".into(), "d".into()];
        let known = "your project has: b, d";
        assert!(built.program("c").unwrap_err().ends_with(known));
    }
}
