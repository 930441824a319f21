//! Programs in C read a tuned pipe and the pipe from a sensor, in two of the examples.

use super::{FOLDER, Installed};
use std::fs;

/// An example in which a program in C takes the place of one in Rust.
pub struct PipeInC {
    /// The end of the step's name.
    pub reads: &'static str,
    example: &'static str,
    /// The program in Rust, in the description, and the one in C.
    program: &'static str,
    name: &'static str,
    source: &'static str,
    /// A line of the program by which its checks were good.
    says: &'static str,
}

/// Programs in C that read pipes.
pub const PIPES_IN_C: [PipeInC; 2] = [
    PipeInC {
        reads: "a program in C opens, changes and closes a tuned pipe",
        example: "tuned-pipes",
        program: "tuned-pipes",
        name: "tuned-in-c",
        source: include_str!("tuned.c"),
        says: "tuned: 0 of 21 checks failed",
    },
    PipeInC {
        reads: "a program in C reads the pipe from a sensor",
        example: "endpoints",
        program: "sensor-pipe",
        name: "samples-in-c",
        source: include_str!("samples.c"),
        says: "samples: good, ",
    },
];

impl Installed {
    /// Runs the example with the program in C, in the simulator and in QEMU.
    pub fn pipe_in_c(&self, pipe: &PipeInC) -> Result<(), String> {
        let folder = self.0.join(pipe.name);
        let of_program = folder.join("programs").join(pipe.name);
        let example = self.0.join(FOLDER).join(format!("examples/{}.toml", pipe.example));
        let text = fs::read_to_string(example).map_err(|error| error.to_string())?;
        let [from, to] =
            [pipe.program, pipe.name].map(|program| format!("program = \"{program}\""));
        let text = text.replacen(&from, &to, 1);
        fs::create_dir_all(&of_program).map_err(|error| error.to_string())?;
        fs::write(folder.join("system.toml"), text).map_err(|error| error.to_string())?;
        fs::write(of_program.join("main.c"), pipe.source).map_err(|error| error.to_string())?;
        for machine in ["sim", "run"] {
            let (run, said) = self.json(pipe.name, &[machine, "--for", "4s", "--json"])?;
            if !said.contains(pipe.says) {
                return Err(format!("`{machine}` does not say `{}`:\n{said}", pipe.says));
            }
            let messages = run["pipes"][0]["messages"].as_u64().unwrap_or_default();
            if messages == 0 || run["holds"] != true {
                return Err(format!("`{machine}` with {messages} messages: {}", run["findings"]));
            }
        }
        Ok(())
    }
}
