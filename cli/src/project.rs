//! Programs of a user's own: an ordinary Cargo package or workspace around a description, and
//! programs in C beside it.
//!
//! Cargo's own rule finds it: the nearest `Cargo.toml`, in the folder of the description or above.
//! A process runs the binary that its `program` names. Only binaries that a description names are
//! compiled for Diapason, so tools for the user's computer may be in the same workspace.

use crate::c_programs::{self, Programs};
use crate::describe::refused;
use crate::failure::Failure;
use crate::metal::{self, Built, ImageKind, TARGET};
use crate::states;
use crate::workspace::Workspace;
use diapason_system::{Diagnostics, System};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The part of the project's target folder that holds programs for Diapason: what cargo compiles
/// there has other flags.
const FOLDER: &str = "diapason";

/// A Cargo package or workspace of a user's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Project {
    manifest: PathBuf,
    /// The folder of the workspace.
    root: PathBuf,
    target: PathBuf,
    /// The packages of its binaries, by the binaries' names.
    programs: BTreeMap<String, String>,
}

/// The programs of a user's own around a description, in Rust and in C.
struct Own {
    project: Option<Project>,
    in_c: Programs,
}

impl Own {
    /// Finds the programs in Rust and in C that lie beside a description.
    ///
    /// # Errors
    /// If cargo cannot be started, or two programs have the same name.
    fn around(description: &Path, workspace: &Workspace) -> Result<Own, Failure> {
        let project = Project::around(description, workspace)?;
        let in_c = Programs::beside(description)?;
        let in_rust = project.iter().flat_map(|project| project.programs.keys());
        if let Some(twice) = in_rust.into_iter().find(|name| in_c.has(name)) {
            return Err(Failure::Input(format!(
                "error: there are two programs `{twice}`: a binary of {}, and {}/{twice}\n\
                 help: rename one of them",
                project.as_ref().map_or(Path::new(""), |project| &project.manifest).display(),
                c_programs::FOLDER,
            )));
        }
        Ok(Own { project, in_c })
    }

    /// Returns the names of all of them.
    fn names(&self) -> Vec<String> {
        let in_rust = self.project.iter().flat_map(|project| project.programs.keys());
        let mut names: Vec<String> = in_rust.chain(self.in_c.sources.keys()).cloned().collect();
        names.sort_unstable();
        names
    }
}

/// Returns the programs that processes name, each once.
fn named<'a>(systems: &[&'a System]) -> Vec<&'a str> {
    let processes = systems.iter().flat_map(|system| &system.processes);
    let mut named: Vec<&str> = processes.map(|process| &*process.program).collect();
    named.sort_unstable();
    named.dedup();
    named
}

/// Builds what the systems of a description boot: kernel and programs of ours, and those programs
/// of the user's that are named in it, in Rust and in C. A user's program takes the place of one of
/// ours with the same name.
///
/// # Errors
/// If cargo or a C compiler cannot be started, something does not compile, or two programs of the
/// user's have the same name.
pub fn build(
    workspace: &Workspace,
    description: &Path,
    systems: &[&System],
) -> Result<Built, Failure> {
    let own = Own::around(description, workspace)?;
    states::write(description, systems)?;
    let mut built = metal::build(workspace)?;
    let named = named(systems);
    if let Some(project) = &own.project {
        built.programs.extend(project.compile("build", workspace, &named)?);
    }
    let results = results(own.project.as_ref(), description);
    for name in named {
        built.programs.extend(own.in_c.build(name, workspace, &results)?);
    }
    built.own = own.names();
    Ok(built)
}

/// Checks the programs of a description without building anything that boots: that there is one of
/// each name, and that those of the user's compile. Returns how many of the user's were looked at.
///
/// # Errors
/// All that is wrong with the programs.
pub fn check(
    workspace: &Workspace,
    description: &Path,
    systems: &[&System],
) -> Result<usize, Failure> {
    let own = Own::around(description, workspace)?;
    states::write(description, systems)?;
    let (names, ours, named) = (own.names(), programs_of_ours(workspace)?, named(systems));
    let mut wrong = Vec::new();
    wrong.extend(missing(systems, &names, &ours).iter().map(|found| Err(refused(found))));
    if let Some(project) = &own.project {
        wrong.push(project.compile("check", workspace, &named).map(drop));
    }
    wrong.extend(named.iter().map(|name| own.in_c.check(name, workspace)));
    let mut texts = Vec::new();
    for failure in wrong.into_iter().filter_map(Result::err) {
        match failure {
            Failure::Input(text) => texts.push(text),
            other => return Err(other),
        }
    }
    match texts.is_empty() {
        true => Ok(named.iter().filter(|name| names.iter().any(|own| own == *name)).count()),
        false => Err(Failure::Input(texts.join("\n\n"))),
    }
}

/// Returns the places of programs that a description names and that there are not. A plan needs no
/// program, so where nobody can say which there are, none is missing.
#[must_use]
pub fn absent(description: &Path, systems: &[&System]) -> Vec<Diagnostics> {
    let known = || {
        let workspace = Workspace::find()?;
        let own = Own::around(description, &workspace)?;
        Ok::<_, Failure>(missing(systems, &own.names(), &programs_of_ours(&workspace)?))
    };
    known().unwrap_or_default()
}

/// Returns the places of programs that are neither the user's own nor ours.
fn missing(systems: &[&System], own: &[String], ours: &[String]) -> Vec<Diagnostics> {
    let mut is_known = |name: &str| match own.iter().chain(ours).any(|known| known == name) {
        true => Ok(()),
        false => Err(metal::known(own, ours.iter())),
    };
    systems.iter().filter_map(|system| system.missing_programs(&mut is_known)).collect()
}

/// Returns the names of the programs that come with Diapason, without building them.
fn programs_of_ours(workspace: &Workspace) -> Result<Vec<String>, Failure> {
    if workspace.is_installed() {
        return Ok(metal::build(workspace)?.programs.into_keys().collect());
    }
    let packages = metal::program_packages(workspace.root())?;
    let manifest = workspace.root().join("Cargo.toml");
    let described = Project::described(&metadata(&manifest)?, manifest);
    let programs = described.map(|project| project.programs).unwrap_or_default().into_iter();
    Ok(programs.filter(|(_, of)| packages.contains(of)).map(|(name, _)| name).collect())
}

/// Returns the folder for programs in C: in the target folder of the project, of cargo's setting,
/// or beside the description.
fn results(project: Option<&Project>, description: &Path) -> PathBuf {
    let set = std::env::var_os("CARGO_TARGET_DIR").filter(|folder| !folder.is_empty());
    let beside = || description.parent().unwrap_or(Path::new("")).join("target");
    let target = match project {
        Some(project) => project.target.clone(),
        None => set.map_or_else(beside, PathBuf::from),
    };
    target.join(FOLDER).join(c_programs::FOLDER)
}

impl Project {
    /// Finds the project around a description. A checkout of ours is none.
    ///
    /// # Errors
    /// If cargo cannot be started, or does not understand the project.
    pub fn around(description: &Path, workspace: &Workspace) -> Result<Option<Project>, Failure> {
        let description = description.canonicalize().unwrap_or_else(|_| description.to_path_buf());
        let manifests = description.ancestors().skip(1).map(|folder| folder.join("Cargo.toml"));
        let Some(manifest) = manifests.into_iter().find(|path| path.is_file()) else {
            return Ok(None);
        };
        let ours = |folder: &Path| workspace.root().canonicalize().is_ok_and(|root| root == folder);
        if manifest.parent().is_some_and(ours) {
            return Ok(None);
        }
        let project = Project::described(&metadata(&manifest)?, manifest.clone());
        let project = project.ok_or_else(|| {
            Failure::World(format!("cargo says nothing of use about {}", manifest.display()))
        })?;
        Ok(Some(project).filter(|project| !ours(&project.root)))
    }

    /// Reads what cargo says of a workspace.
    fn described(metadata: &Value, manifest: PathBuf) -> Option<Project> {
        let path = |key: &str| Some(PathBuf::from(metadata[key].as_str()?));
        let mut programs = BTreeMap::new();
        for package in metadata["packages"].as_array()? {
            for target in package["targets"].as_array()? {
                let kinds = target["kind"].as_array()?;
                if kinds.iter().any(|kind| kind == "bin") {
                    let name = target["name"].as_str()?.to_owned();
                    programs.insert(name, package["name"].as_str()?.to_owned());
                }
            }
        }
        let (root, target) = (path("workspace_root")?, path("target_directory")?);
        Some(Project { manifest, root, target, programs })
    }

    /// Builds or checks those of these programs that are its own.
    fn compile(
        &self,
        action: &str,
        workspace: &Workspace,
        named: &[&str],
    ) -> Result<BTreeMap<String, PathBuf>, Failure> {
        let own = || named.iter().filter_map(|name| self.programs.get_key_value(*name));
        if own().next().is_none() {
            return Ok(BTreeMap::new());
        }
        let mut command = self.cargo(action);
        command.args(["--release", "--config", "profile.release.panic='abort'"]);
        command.args(["--target", TARGET, "--target-dir"]).arg(self.target.join(FOLDER));
        for (name, package) in own() {
            command.args(["-p", package, "--bin", name]);
        }
        let mut flags = ImageKind::Programs.flags(workspace.root());
        flags.push(format!("--remap-path-prefix={}=.", self.root.display()));
        command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
        metal::built(command)?.ok_or_else(|| {
            let names: Vec<&str> = own().map(|(name, _)| &**name).collect();
            let (names, root) = (names.join(", "), self.root.display());
            let what = match own().count() {
                1 => format!("the program {names} of {root} does not compile"),
                _ => format!("not all programs of {root} compile ({names})"),
            };
            Failure::Input(format!("error: {what}: see cargo's messages above"))
        })
    }

    fn cargo(&self, action: &str) -> Command {
        let mut command = Command::new(metal::cargo_program());
        command.arg(action).arg("--manifest-path").arg(&self.manifest);
        command
    }
}

/// Asks cargo what is in the workspace of a manifest.
fn metadata(manifest: &Path) -> Result<Value, Failure> {
    let mut command = Command::new(metal::cargo_program());
    command.args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"]);
    command.arg(manifest).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| {
        Failure::World(format!(
            "cannot start cargo: {error}\nhelp: {} has programs to compile: install Rust, for \
             example with rustup",
            manifest.display()
        ))
    })?;
    if !output.status.success() {
        return Err(Failure::Input(format!(
            "error: cargo does not accept {}: see its messages above",
            manifest.display()
        )));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| Failure::World(format!("cargo says what is no JSON: {error}")))
}
