//! Builds a plugin of QEMU's with the host's C compiler: the one that holds its clock, or another.
//!
//! There is no other way to pace a guest exactly, so there is none here: without the plugin there
//! is no run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A plugin as it is written, in C.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PluginSource {
    /// The name of what is built, without its ending.
    pub name: &'static str,
    /// Each file with its name. Those whose names end in `.c` are compiled.
    pub files: &'static [(&'static str, &'static str)],
}

/// The part of QEMU's interface for plugins that is used.
pub const INTERFACE: (&str, &str) = ("plugin.h", include_str!("../plugin/plugin.h"));
/// The plugin that holds the clock.
pub const CLOCK: PluginSource = PluginSource {
    name: "clock",
    files: &[
        INTERFACE,
        ("clock.h", include_str!("../plugin/clock.h")),
        ("clock.c", include_str!("../plugin/clock.c")),
        ("cores.c", include_str!("../plugin/cores.c")),
    ],
};
/// The emulator that plugins are written for, and what that says of its version.
pub const QEMU: &str = "qemu-system-x86_64";
const VERSION: &str = "QEMU emulator version 7.2";
/// How it is compiled. All functions are bound at once: an emulator that lacks one says so.
const FLAGS: [&str; 8] =
    ["-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-z,now"];

/// Why there is no plugin, and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unavailable {
    /// The host is not an x86-64 Linux.
    Host,
    /// The emulator does not start.
    NoEmulator(String),
    /// The emulator is another version; what it says.
    Version(String),
    /// The emulator was built without plugins.
    NoPlugins,
    /// The C compiler does not start.
    NoCompiler(String),
    /// The C compiler refuses; what it says.
    Refused(String),
    /// The folder cannot be written.
    Folder(String),
}

impl core::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Unavailable::Host => write!(f, "a plugin of QEMU needs Linux on x86-64"),
            Unavailable::NoEmulator(why) => {
                write!(f, "cannot start {QEMU} ({why}): install the package qemu-system-x86")
            }
            Unavailable::Version(said) => {
                write!(f, "the plugins are for QEMU 7.2 (Debian 12 has it), this is: {said}")
            }
            Unavailable::NoPlugins => {
                write!(f, "this {QEMU} was built without --enable-plugins; Debian's is with it")
            }
            Unavailable::NoCompiler(why) => write!(
                f,
                "cannot start cc ({why}): install a C compiler, on Debian the packages gcc and \
                 libc6-dev"
            ),
            Unavailable::Refused(said) => write!(
                f,
                "cc cannot build a plugin of QEMU; if a header is missing, install the package \
                 libc6-dev:\n{said}"
            ),
            Unavailable::Folder(why) => write!(f, "cannot write a plugin of QEMU: {why}"),
        }
    }
}

impl std::error::Error for Unavailable {}

/// Builds the plugin into `folder`; where it is.
///
/// # Errors
/// Returns an error that names the missing tool and its remedy.
pub fn build(folder: &Path, plugin: &PluginSource) -> Result<PathBuf, Unavailable> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return Err(Unavailable::Host);
    }
    check_emulator()?;
    let mut sources = Vec::new();
    for (name, text) in plugin.files {
        let file = folder.join(name);
        fs::write(&file, text).map_err(|error| Unavailable::Folder(error.to_string()))?;
        if file.extension().is_some_and(|end| end == "c") {
            sources.push(file);
        }
    }
    let library = folder.join(format!("{}.so", plugin.name));
    compile("cc", &sources, &library)?;
    Ok(library)
}

fn compile(compiler: &str, sources: &[PathBuf], library: &Path) -> Result<(), Unavailable> {
    let output = Command::new(compiler).args(FLAGS).arg("-o").arg(library).args(sources).output();
    let output = output.map_err(|error| Unavailable::NoCompiler(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Unavailable::Refused(String::from_utf8_lossy(&output.stderr).into_owned()))
}

fn check_emulator() -> Result<(), Unavailable> {
    let version = ask_emulator("--version")?;
    if !version.starts_with(VERSION) {
        return Err(Unavailable::Version(version.lines().next().unwrap_or_default().to_string()));
    }
    // Without plugins its help has no such option.
    let has = ask_emulator("--help")?.lines().any(|line| line.starts_with("-plugin"));
    if has { Ok(()) } else { Err(Unavailable::NoPlugins) }
}

fn ask_emulator(option: &str) -> Result<String, Unavailable> {
    let output = Command::new(QEMU).arg(option).output();
    let output = output.map_err(|error| Unavailable::NoEmulator(error.to_string()))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_its_remedy() {
        let nowhere = compile("no-such-compiler", &["clock.c".into()], Path::new("clock.so"));
        let Err(refusal @ Unavailable::NoCompiler(_)) = nowhere else { panic!("{nowhere:?}") };
        assert!(refusal.to_string().contains("libc6-dev"));
        let folder = Path::new("no/such/folder");
        assert!(!matches!(build(folder, &CLOCK), Ok(_) | Err(Unavailable::Refused(_))));
    }
}
