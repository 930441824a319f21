//! `diapason build`: compiles what a description boots, and says how large it is.

use crate::describe::describe_any;
use crate::failure::HOLDS;
use crate::image::Image;
use crate::output::say;
use crate::table::{Align, Table};
use crate::{Failure, Workspace, project};
use diapason_system::{Description, System};
use std::path::PathBuf;

/// The request to `build`.
#[derive(Clone, Debug, clap::Args)]
pub struct BuildRequest {
    #[arg(default_value = "system.toml")]
    pub system: PathBuf,
}

/// Compiles the programs of a description. Whether its promises hold is of no matter here.
///
/// # Errors
/// If the description makes no sense, a program does not compile, or there is none of its name.
pub fn compile(request: &BuildRequest) -> Result<u8, Failure> {
    let systems: Vec<System> = match describe_any(&request.system)? {
        Description::One(system) => vec![*system],
        Description::Cores(cores) => cores,
        Description::Several(list) => list.hosts.into_iter().map(|host| host.system).collect(),
    };
    let systems: Vec<&System> = systems.iter().collect();
    let built = project::build(&Workspace::find()?, &request.system, &systems)?;
    let processes = systems.iter().flat_map(|system| &system.processes);
    let mut programs: Vec<&str> = processes.map(|process| &*process.program).collect();
    programs.sort_unstable();
    programs.dedup();
    let [left, right] = [Align::Left, Align::Right];
    let columns = ["text", "rodata", "data", "bss"].map(|name| (name, right));
    let mut table = Table::new(&[&[("program", left)], &columns[..], &[("file", left)]].concat());
    for name in programs {
        let path = built.path(name).map_err(|why| {
            Failure::Input(format!("error: `{name}` in {}: {why}", request.system.display()))
        })?;
        let sizes = Image::read(path)?.sizes();
        let bytes = [sizes.text, sizes.rodata, sizes.data, sizes.bss].map(|size| size.to_string());
        table.row([&[name.into()], &bytes[..], &[path.display().to_string()]].concat());
    }
    say(table.render().trim_end());
    Ok(HOLDS)
}
