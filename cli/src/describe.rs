//! Descriptions as files: reading them with what they name, and saying what is wrong with them.

use crate::failure::Failure;
use crate::input::Input;
use crate::logs;
use crate::output::is_coloured;
use diapason_system::{Description, Diagnostics, Hosts, System};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Reads and checks the description of one host.
///
/// # Errors
/// Returns the mistakes in the form of a compiler's messages. A list of hosts and a system with
/// several cores are mistakes here.
pub fn describe(path: &Path) -> Result<System, Failure> {
    one_host(path, describe_any(path)?)
}

/// Reads and checks the description of one host whose text at `path` was changed to `text`.
///
/// # Errors
/// As of [`describe`].
pub fn describe_changed(path: &Path, text: &str) -> Result<System, Failure> {
    one_host(path, describe_text(path, text)?)
}

/// Reads and checks the description of one host whose text at `path` was changed to `text`; the
/// system of each of its cores.
///
/// # Errors
/// As of [`describe_any`], and if it lists hosts.
pub fn cores_changed(path: &Path, text: &str) -> Result<Vec<System>, Failure> {
    match describe_text(path, text)? {
        Description::Cores(cores) => Ok(cores),
        other => one_host(path, other).map(|system| vec![system]),
    }
}

/// Reads and checks the description of one host as if all of its processes were on one core.
///
/// # Errors
/// As of [`describe_any`].
pub fn describe_united(path: &Path) -> Result<System, Failure> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let read = diapason_system::parse_united(&shown(path), &text_of(path)?, beside(folder));
    let described = with_logs(read.map(|system| Description::One(Box::new(system))), folder)?;
    one_host(path, described.map_err(|diagnostics| refused(&diagnostics))?)
}

/// Returns the only host of a description.
///
/// # Errors
/// If it lists several, or has several cores.
pub(crate) fn one_host(path: &Path, description: Description) -> Result<System, Failure> {
    match description {
        Description::One(system) => Ok(*system),
        Description::Cores(cores) => Err(Failure::Input(format!(
            "error: {} has {} cores, and this command takes one\n\
             help: write `cores = 1`, and remove `core` from its processes",
            path.display(),
            cores.len(),
        ))),
        Description::Several(Hosts { hosts, .. }) => {
            let mut files: Vec<String> = hosts.iter().map(|host| host.file.clone()).collect();
            files.dedup();
            Err(Failure::Input(format!(
                "error: {} lists {} hosts, and this command takes one\n\
                 help: name the description of one: {}",
                path.display(),
                hosts.len(),
                files.join(", ")
            )))
        }
    }
}

/// Reads and checks a description of one host or of several.
///
/// # Errors
/// Returns the mistakes in the form of a compiler's messages.
pub fn describe_any(path: &Path) -> Result<Description, Failure> {
    describe_text(path, &text_of(path)?)
}

/// Reads the text of a description.
///
/// # Errors
/// If there is no such text.
pub fn text_of(path: &Path) -> Result<String, Failure> {
    Input::Description.text(path).map_err(|error| Input::Description.refused(path, &error))
}

/// Reads and checks a list of hosts. `changed` has the new texts of some files, by their paths.
///
/// # Errors
/// As of [`describe_any`], and if it is no list any more.
pub fn describe_list(path: &Path, changed: &BTreeMap<PathBuf, String>) -> Result<Hosts, Failure> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut unchanged = beside(folder);
    let files = |file: &str| match changed.get(&folder.join(file)) {
        Some(text) => Ok((shown(&folder.join(file)), text.clone())),
        None => unchanged(file),
    };
    let read = diapason_system::parse_any(&shown(path), &text_of(path)?, files);
    match with_logs(read, folder)?.map_err(|diagnostics| refused(&diagnostics))? {
        Description::Several(hosts) => Ok(hosts),
        _ => Err(Failure::Input(format!("error: {} lists no hosts any more", path.display()))),
    }
}

fn describe_text(path: &Path, text: &str) -> Result<Description, Failure> {
    judged(path, text)?.map_err(|diagnostics| refused(&diagnostics))
}

/// Reads a description; the inner error is the mistakes in it, for others to show.
///
/// # Errors
/// If there is no such text, or a log that it names cannot be read.
pub(crate) fn judged_file(path: &Path) -> Result<Result<Description, Diagnostics>, Failure> {
    judged(path, &text_of(path)?)
}

fn judged(path: &Path, text: &str) -> Result<Result<Description, Diagnostics>, Failure> {
    let folder = path.parent().unwrap_or(Path::new(""));
    with_logs(diapason_system::parse_any(&shown(path), text, beside(folder)), folder)
}

/// Adds the logs that a description in `folder` names.
fn with_logs(
    read: Result<Description, Diagnostics>,
    folder: &Path,
) -> Result<Result<Description, Diagnostics>, Failure> {
    let mut description = match read {
        Ok(description) => description,
        Err(diagnostics) => return Ok(Err(diagnostics)),
    };
    match &mut description {
        Description::One(system) => logs::read(system, folder)?,
        Description::Cores(cores) => {
            cores.iter_mut().try_for_each(|system| logs::read(system, folder))?;
        }
        Description::Several(Hosts { hosts, .. }) => {
            for host in hosts {
                let file = folder.join(&host.file);
                let folder = file.parent().unwrap_or(Path::new(""));
                for system in host.others.iter_mut().chain([&mut host.system]) {
                    logs::read(system, folder)?;
                }
            }
        }
    }
    Ok(Ok(description))
}

/// Returns what finds the files that a description in `folder` names.
fn beside(folder: &Path) -> impl FnMut(&str) -> Result<(String, String), String> {
    |file| {
        let path = folder.join(file);
        Ok((shown(&path), Input::Description.text(&path)?))
    }
}

/// Reads and checks the description of a host as if its processes were on other cores.
pub(crate) struct Placeable<'p> {
    path: &'p Path,
    text: String,
}

impl<'p> Placeable<'p> {
    /// Reads the text in a file.
    ///
    /// # Errors
    /// If there is none.
    pub fn read(path: &'p Path) -> Result<Placeable<'p>, Failure> {
        Ok(Placeable { path, text: text_of(path)? })
    }

    /// Returns the names of processes that have to share a core, group by group.
    ///
    /// # Errors
    /// Returns the mistakes in the form of a compiler's messages.
    pub fn groups(&self) -> Result<Vec<Vec<String>>, Failure> {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        diapason_system::companions(&shown(self.path), &self.text, beside(folder))
            .map_err(|mistakes| refused(&mistakes))
    }

    /// Returns the system of each core, if the processes can be there.
    pub fn placed(&self, cores: u16, core_of: &dyn Fn(&str) -> u16) -> Option<Vec<System>> {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let name = shown(self.path);
        diapason_system::parse_placed(&name, &self.text, beside(folder), (cores, core_of)).ok()
    }
}

/// Returns what the description in a file became, as a description again.
///
/// # Errors
/// Returns the mistakes in the form of a compiler's messages.
pub fn explained(path: &Path) -> Result<String, Failure> {
    let folder = path.parent().unwrap_or(Path::new(""));
    diapason_system::explained(&shown(path), &text_of(path)?, beside(folder))
        .map_err(|mistakes| refused(&mistakes))
}

/// Returns a path as messages name it.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}

/// Prints the mistakes of a description, in colour where a person reads them.
pub(crate) fn refused(diagnostics: &Diagnostics) -> Failure {
    let for_a_person = is_coloured(&std::io::stderr());
    Failure::Input(if for_a_person { diagnostics.coloured() } else { diagnostics.plain() })
}
