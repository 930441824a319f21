//! `cargo xtask package --chroot`: the package in a Debian that has nothing else but a C compiler.
//!
//! `debootstrap` makes that Debian in a folder. The package is installed there, used as a new user
//! uses it, and removed. It needs root and a mirror of Debian, so it is no part of the tests.

use diapason::Failure;
use diapason::failure::{BROKEN, HOLDS};
use diapason::tools::{Missing, Tool};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const DEBOOTSTRAP: Tool = Tool { program: "debootstrap", package: "debootstrap" };
const RELEASE: &str = "bookworm";
/// The path of the package in that Debian.
const PACKAGE: &str = "/diapason.deb";
/// Everything that the package brings is below these paths, or has its name.
const LEFT: &str = "! ls -d /usr/bin/diapason /usr/lib/diapason /usr/share/doc/diapason \
                    /usr/share/man/man1/diapason* 2>/dev/null";

/// The deeds of a user: a line for the shell, and a part of its output. Each must end with 0.
const DEEDS: [(&str, &str); 13] = [
    // The command finds its folder by its own path.
    ("mount -t proc proc /proc", ""),
    ("dpkg -i /diapason.deb", "Setting up diapason"),
    ("! command -v cargo rustc qemu-system-x86_64", ""),
    ("diapason --version", "diapason "),
    ("cd /usr/lib/diapason/examples && diapason plan can-concentrator.toml", "holds"),
    ("cd /usr/lib/diapason/examples && diapason sim can-concentrator.toml --for 2s", ": holds;"),
    ("cd /usr/lib/diapason/examples && diapason report engine.toml --for 1s -o /r.html", ""),
    ("grep -c '<svg' /r.html", ""),
    ("cd && diapason new car --template c", "car"),
    ("cd ~/car && diapason check && diapason plan", "holds"),
    ("cd ~/car && diapason sim --for 3s", ": holds;"),
    ("dpkg -r diapason", "Removing diapason"),
    (LEFT, ""),
];

/// Removes the Debian when the check is over.
struct Root(PathBuf);

impl Drop for Root {
    fn drop(&mut self) {
        // Leftovers below `target` harm nobody.
        let _ = Command::new("umount").arg(self.0.join("proc")).stderr(Stdio::null()).status();
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Makes a Debian in `folder`, from `mirror` or from the one that `debootstrap` knows, and does
/// everything in it.
///
/// # Errors
/// If the Debian cannot be made.
pub fn check(package: &Path, folder: &Path, mirror: Option<&str>) -> Result<u8, Failure> {
    DEBOOTSTRAP.require(Missing::Install)?;
    let root = Root(folder.join("chroot"));
    if root.0.exists() {
        fs::remove_dir_all(&root.0)
            .map_err(|error| Failure::io(format!("remove {}", root.0.display()), &error))?;
    }
    println!("making a Debian in {}", root.0.display());
    let mut make = Command::new(DEBOOTSTRAP.program);
    make.args(["--variant=minbase", "--include=gcc,libc6-dev", RELEASE]).arg(&root.0).args(mirror);
    let made = ended(&mut make)?;
    if !made.status.success() {
        let said = String::from_utf8_lossy(&made.stdout).into_owned();
        return Err(Failure::World(format!(
            "debootstrap failed; it needs root and a mirror\n{said}"
        )));
    }
    let inside = root.0.join(PACKAGE.trim_start_matches('/'));
    fs::copy(package, &inside).map_err(|error| Failure::io("copy the package", &error))?;
    let mut code = HOLDS;
    for (deed, expected) in DEEDS {
        let mut shell = Command::new("chroot");
        shell.arg(&root.0).args(["/bin/sh", "-c", deed]).env_clear();
        shell.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/root");
        let output = ended(&mut shell)?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let is_good = output.status.success() && said.contains(expected);
        println!("{}  {deed}", if is_good { "ok  " } else { "FAIL" });
        if !is_good {
            println!("{said}");
            code = BROKEN;
        }
    }
    Ok(code)
}

fn ended(command: &mut Command) -> Result<Output, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    output.map_err(|error| Failure::io(format!("start {name}"), &error))
}
