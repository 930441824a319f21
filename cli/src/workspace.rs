//! Where Diapason's own files are, from whatever folder a command is started in.
//!
//! They are a checkout, from which kernel and programs are compiled, or an installed folder, which
//! has them compiled, and the sources that programs of users link at the paths of a checkout.

use crate::failure::Failure;
use std::env;
use std::path::{Path, PathBuf};

/// The variable that names the folder, where looking for it is not wanted.
pub const HOME: &str = "DIAPASON_HOME";
/// The compiled kernel of an installed folder, and the folder of its compiled programs.
pub const INSTALLED_KERNEL: &str = "boot/kernel";
/// The kernel of runs that are recorded or watched, in an installed folder.
pub const INSTALLED_OBSERVING: &str = "boot/observing-kernel";
pub const INSTALLED_PROGRAMS: &str = "boot/programs";
/// The runtime for programs in C, in an installed folder.
pub const INSTALLED_LIBRARY: &str = "boot/libdiapason.a";
/// An installed folder, seen from the folder of the command.
const BESIDE: &str = "../lib/diapason";
/// The package that this command is compiled from, in its checkout.
const COMPILED_FROM: &str = env!("CARGO_MANIFEST_DIR");

/// The folder that holds the kernel, the programs and the examples.
#[derive(Clone, Debug)]
pub struct Workspace {
    root: PathBuf,
    installed: bool,
}

impl Workspace {
    /// Finds the folder: the one that `DIAPASON_HOME` names; or the checkout around the package
    /// that cargo runs, or around the current folder; or what is installed with this command; or
    /// the checkout that it was compiled from.
    ///
    /// # Errors
    /// If there is none of them, or `DIAPASON_HOME` names something else.
    pub fn find() -> Result<Workspace, Failure> {
        if let Some(home) = env::var_os(HOME).filter(|home| !home.is_empty()) {
            let home = PathBuf::from(home);
            return Self::at(&home).ok_or_else(|| {
                Failure::World(format!(
                    "{HOME} is {}, which is no checkout and no installed folder of Diapason\n\
                     help: correct it, or remove it from the environment",
                    home.display()
                ))
            });
        }
        let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let here = env::current_dir().ok();
        let around = package.into_iter().chain(here).find_map(|start| Self::above(&start));
        let own = || env::current_exe().ok()?.canonicalize().ok();
        let beside = || Self::at(&own()?.parent()?.join(BESIDE).canonicalize().ok()?);
        let compiled_from = || Self::above(Path::new(COMPILED_FROM));
        around.or_else(beside).or_else(compiled_from).ok_or_else(|| {
            Failure::World(format!(
                "Diapason's kernel and runtime are not found\n\
                 help: start the command inside a checkout, install it again, or set {HOME} to \
                 the folder of either"
            ))
        })
    }

    /// Returns the checkout that contains `start`.
    #[must_use]
    pub fn above(start: &Path) -> Option<Workspace> {
        let root = start.ancestors().find(|folder| is_checkout(folder))?.to_path_buf();
        Some(Workspace { root, installed: false })
    }

    /// Returns the checkout or installed folder at `root`.
    #[must_use]
    pub fn at(root: &Path) -> Option<Workspace> {
        let installed = root.join(INSTALLED_KERNEL).is_file();
        let root = std::path::absolute(root).ok()?;
        (installed || is_checkout(&root)).then_some(Workspace { root, installed })
    }

    /// Returns the folder of the checkout, or that of the installation.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns whether kernel and programs are there as they boot, and nothing is to be compiled.
    #[must_use]
    pub const fn is_installed(&self) -> bool {
        self.installed
    }

    /// Returns where build results and the files of runs go: cargo's own setting, or `target`; of
    /// an installed folder, which may be read-only, the user's cache.
    #[must_use]
    pub fn target(&self) -> PathBuf {
        let set = |name| env::var_os(name).filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let cache = || {
            let home = || set("HOME").map(|home| home.join(".cache"));
            let folder = set("XDG_CACHE_HOME").or_else(home).unwrap_or_else(env::temp_dir);
            folder.join("diapason")
        };
        let usual = || if self.installed { cache() } else { self.root.join("target") };
        let folder = set("CARGO_TARGET_DIR").unwrap_or_else(usual);
        std::path::absolute(&folder).unwrap_or(folder)
    }

    /// `path` as a reader of the project would write it: relative to the root if inside.
    #[must_use]
    pub fn relative<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }
}

fn is_checkout(folder: &Path) -> bool {
    let files = ["Cargo.toml", "abi/Cargo.toml", "kernel/core/Cargo.toml"];
    files.iter().all(|file| folder.join(file).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_found_from_a_folder_inside() {
        let workspace = Workspace::find().unwrap();
        let inside = workspace.root().join("cli/src");
        assert_eq!(Workspace::above(&inside).unwrap().root(), workspace.root());
        assert!(Workspace::above(Path::new("/")).is_none());
    }

    #[test]
    fn an_installed_folder_is_known_by_its_kernel() {
        let folder = env::temp_dir().join(format!("diapason-installed-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("boot")).unwrap();
        assert!(Workspace::at(&folder).is_none());
        std::fs::write(folder.join(INSTALLED_KERNEL), "").unwrap();
        let workspace = Workspace::at(&folder).unwrap();
        assert!(workspace.is_installed() && !workspace.target().starts_with(&folder));
        std::fs::remove_dir_all(folder).unwrap();
        assert!(!Workspace::find().unwrap().is_installed());
    }
}
