//! Where the project's sources are, from whatever folder a command is started in.

use crate::Failure;
use std::env;
use std::path::{Path, PathBuf};

/// The folder that holds the kernel, the programs and the examples.
#[derive(Clone, Debug)]
pub struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// Looks upwards, first from where cargo says the running package is, then from here.
    ///
    /// # Errors
    /// If neither lies inside a checkout.
    pub fn find() -> Result<Workspace, Failure> {
        let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let here = env::current_dir().ok();
        package.into_iter().chain(here).find_map(|start| Self::above(&start)).ok_or_else(|| {
            Failure::World(
                "no Diapason sources here: the kernel and the programs are compiled from them, \
                 so start the command inside a checkout"
                    .into(),
            )
        })
    }

    /// Returns the workspace that contains `start`.
    #[must_use]
    pub fn above(start: &Path) -> Option<Workspace> {
        let is_root = |folder: &&Path| {
            ["Cargo.toml", "abi/Cargo.toml", "kernel/core/Cargo.toml"]
                .iter()
                .all(|file| folder.join(file).is_file())
        };
        Some(Workspace { root: start.ancestors().find(is_root)?.to_path_buf() })
    }

    /// Returns the folder of the checkout.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns where build results go: cargo's own setting, or `target`.
    #[must_use]
    pub fn target(&self) -> PathBuf {
        let chosen = env::var_os("CARGO_TARGET_DIR").filter(|folder| !folder.is_empty());
        let folder = chosen.map_or_else(|| self.root.join("target"), PathBuf::from);
        std::path::absolute(&folder).unwrap_or(folder)
    }

    /// `path` as a reader of the project would write it: relative to the root if inside.
    #[must_use]
    pub fn relative<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }
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
}
