//! The computer that a system is planned for: as fast as its description says, as fast as an option
//! says, or as it was measured.

use crate::describe::refused;
use crate::failure::Failure;
use crate::input::Input;
use crate::plan;
use diapason_system::{Description, MachineProfile, System};
use std::path::{Path, PathBuf};

/// The computer that is asked about.
#[derive(Clone, Default, Debug, clap::Args)]
pub struct Computer {
    /// Instructions a second, such as 25MHz or 2.4GHz [default: the description's `clock`].
    #[arg(long = "clock", value_name = "RATE", value_parser = plan::clock)]
    pub clock_hz: Option<u64>,
    /// The computer as it was measured: a profile that `diapason profile` wrote.
    #[arg(long, value_name = "FILE", conflicts_with = "clock_hz")]
    pub machine: Option<PathBuf>,
}

impl Computer {
    /// Returns the description from `path` for this computer.
    ///
    /// # Errors
    /// If the profile is wrong, or does not fit the description.
    pub fn apply(&self, path: &Path, mut described: Description) -> Result<Description, Failure> {
        if let Some(profile) = &self.machine {
            plan_for(path, &mut described, profile)?;
        }
        for system in systems(&mut described) {
            system.clock_hz = self.clock_hz.unwrap_or(system.clock_hz);
        }
        Ok(described)
    }
}

fn systems(described: &mut Description) -> Vec<&mut System> {
    match described {
        Description::One(system) => vec![system],
        Description::Cores(cores) => cores.iter_mut().collect(),
        Description::Several(list) => {
            let all = list.hosts.iter_mut();
            all.flat_map(|host| host.others.iter_mut().chain([&mut host.system])).collect()
        }
    }
}

/// Plans the only host of a description for the computer of this profile.
///
/// # Errors
/// If there is no such profile, it is wrong, or there are several hosts.
pub fn plan_for(path: &Path, described: &mut Description, profile: &Path) -> Result<(), Failure> {
    let text = Input::Profile.text(profile);
    let text = text.map_err(|error| Input::Profile.refused(profile, &error))?;
    let read = MachineProfile::parse(&profile.display().to_string(), &text);
    let machine = read.map_err(|diagnostics| refused(&diagnostics))?;
    if let Description::Several(list) = described {
        return Err(Failure::Input(format!(
            "error: {} lists {} hosts, and a profile is of one computer\n\
             help: plan each host with the profile of its own computer",
            path.display(),
            list.hosts.len()
        )));
    }
    systems(described).into_iter().for_each(|system| system.plan_for(machine.clone()));
    Ok(())
}
