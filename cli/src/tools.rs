//! Programs of the machine that Diapason needs, and how to get them.

use crate::failure::Failure;
use crate::output::tell;
use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A program that comes with a Debian package.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tool {
    /// The program to start, or the path of a file that other tools need.
    pub program: &'static str,
    /// The package that has it.
    pub package: &'static str,
}

pub const QEMU: Tool = Tool { program: "qemu-system-x86_64", package: "qemu-system-x86" };
pub const GDB: Tool = Tool { program: "gdb", package: "gdb" };
pub const OBJDUMP: Tool = Tool { program: "objdump", package: "binutils" };

/// The reaction to a missing tool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    /// Say how to get it.
    Say,
    /// Get it, after saying so.
    Install,
}

impl Tool {
    /// Returns where it is, if it is installed.
    #[must_use]
    pub fn find(&self) -> Option<PathBuf> {
        find_in(&env::var_os("PATH")?, self.program)
    }

    /// Makes sure it is there.
    ///
    /// # Errors
    /// If it is missing and may not or cannot be installed.
    pub fn require(&self, missing: Missing) -> Result<(), Failure> {
        if self.find().is_some() {
            return Ok(());
        }
        let (program, package) = (self.program, self.package);
        if missing == Missing::Say {
            return Err(Failure::World(format!(
                "{program} is not installed\nhelp: apt-get install {package}"
            )));
        }
        tell(&format!("{program} is missing: installing the package {package} with apt-get"));
        self.install()?;
        self.find().map(|_| ()).ok_or_else(|| {
            Failure::World(format!("the package {package} is installed but has no {program}"))
        })
    }

    fn install(&self) -> Result<(), Failure> {
        if find_in(&env::var_os("PATH").unwrap_or_default(), "apt-get").is_none() {
            return Err(self.by_hand("this machine has no apt-get"));
        }
        // Tests that run beside each other may want packages at the same time.
        let patience = "DPkg::Lock::Timeout=600";
        let how = ["-y", "-o", patience, "--no-install-recommends"];
        let arguments = [&["install"], &how[..], &[self.package]].concat();
        // A fresh machine has no package lists: the second try comes after fetching them.
        if apt_get(&arguments)? {
            return Ok(());
        }
        tell("that failed: fetching the package lists first");
        if apt_get(&["update"])? && apt_get(&arguments)? {
            return Ok(());
        }
        Err(self.by_hand("apt-get could not install it"))
    }

    fn by_hand(&self, reason: &str) -> Failure {
        Failure::World(format!(
            "{} is needed, and {reason}\nhelp: install it yourself (Debian's package is {}) so \
             that it is on the PATH",
            self.program, self.package
        ))
    }
}

/// Makes sure that all of them are there.
///
/// # Errors
/// Names all that are missing, if they may not be installed; or the first that cannot be.
pub fn require_all(tools: &[Tool], missing: Missing) -> Result<(), Failure> {
    let absent: Vec<&Tool> = tools.iter().filter(|tool| tool.find().is_none()).collect();
    if missing == Missing::Install || absent.is_empty() {
        return absent.iter().try_for_each(|tool| tool.require(missing));
    }
    let programs: Vec<&str> = absent.iter().map(|tool| tool.program).collect();
    let packages: Vec<&str> = absent.iter().map(|tool| tool.package).collect();
    Err(Failure::World(format!(
        "not installed: {}\nhelp: apt-get install {}",
        programs.join(", "),
        packages.join(" ")
    )))
}

/// Runs apt-get as root; false if it failed. Its output goes to standard error, so that a
/// command's `--json` stays clean.
fn apt_get(arguments: &[&str]) -> Result<bool, Failure> {
    let mut command = if is_root() { Command::new("apt-get") } else { sudo()? };
    let status = command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(Stdio::from(std::io::stderr()))
        .status()
        .map_err(|error| Failure::io("start apt-get", &error))?;
    Ok(status.success())
}

fn sudo() -> Result<Command, Failure> {
    if find_in(&env::var_os("PATH").unwrap_or_default(), "sudo").is_none() {
        return Err(Failure::World(
            "packages can be installed only by root, and there is no sudo here".into(),
        ));
    }
    let mut command = Command::new("sudo");
    command.args(["--", "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
    Ok(command)
}

/// Returns whether this process is root's: its own entry in /proc belongs to its user.
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0)
}

fn find_in(path: &OsStr, program: &str) -> Option<PathBuf> {
    env::split_paths(path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_found_on_the_path() {
        assert!(find_in(OsStr::new("/nowhere:/bin:/usr/bin"), "sh").is_some());
        assert!(find_in(OsStr::new("/nowhere"), "sh").is_none());
    }

    #[test]
    fn all_missing_tools_are_named_at_once() {
        let tool = |program, package| Tool { program, package };
        let tools = [tool("sh", "dash"), tool("/no/a", "p"), tool("no-b", "q")];
        let text = require_all(&tools, Missing::Say).unwrap_err().to_string();
        assert_eq!(text, "error: not installed: /no/a, no-b\nhelp: apt-get install p q");
        assert!(require_all(&tools[..1], Missing::Say).is_ok());
    }

    #[test]
    fn a_missing_tool_is_named_with_its_package() {
        let tool = Tool { program: "no-such-tool", package: "its-package" };
        let text = tool.require(Missing::Say).unwrap_err().to_string();
        assert!(text.contains("no-such-tool") && text.contains("apt-get install its-package"));
    }
}
