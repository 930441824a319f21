//! The CAN concentrator of the examples, with somebody who watches its tasks: the system that
//! `tuned-pipes` and `linux-twin` run.

use super::boot;
use diapason::metal::Built;
use diapason::{Failure, Workspace};
use diapason_system::System;

/// The description, below the workspace's root.
const PATH: &str = "examples/can-concentrator.toml";
/// The program that watches the tasks. Looks are whole periods apart.
const MONITOR: &str = r#"
[[process]]
name = "monitor"
program = "spin-monitor"
priority = 50
vcpu = "watch"
uses = ["progress"]
arguments = [700000]

[[vcpu]]
name = "watch"
budget = "50us"
period = "14ms"
replenishments = 2
"#;

/// How many tasks never stop.
pub const TASKS: usize = 3;

/// The description's text, and the built kernel and programs.
#[derive(Debug)]
pub(crate) struct Concentrator {
    text: String,
    pub built: Built,
}

impl Concentrator {
    /// Reads the description and builds what boots.
    ///
    /// # Errors
    /// If it cannot be read, or something does not compile.
    pub fn prepare(workspace: &Workspace) -> Result<Concentrator, Failure> {
        let path = workspace.root().join(PATH);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| Failure::io(format!("read {}", path.display()), &error))?;
        Ok(Concentrator { text: text + MONITOR, built: boot::build(workspace)? })
    }

    /// Returns the system with readers that never end, whose tasks run or have nothing to do.
    ///
    /// # Errors
    /// If the description is wrong.
    pub fn describe(&self, tasks: bool) -> Result<System, Failure> {
        let mut system = diapason_system::parse(PATH, &self.text)
            .map_err(|diagnostics| Failure::Input(diagnostics.plain()))?;
        for process in &mut system.processes {
            match process.program.as_str() {
                "spin" => process.arguments[1] = u64::from(!tasks),
                "can-reader" => process.arguments[1] = 0,
                _ => {}
            }
        }
        Ok(system)
    }
}
