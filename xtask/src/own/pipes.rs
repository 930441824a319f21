//! Programs in C read, write and pass on tuned pipes, read the pipe from a sensor, read and write
//! the endpoints of devices that no driver knows, and answer datagrams, in six of the examples.

use super::{FOLDER, Installed};
use serde_json::Value;
use std::fs;

/// An example in which a program in C takes the place of one in Rust.
pub struct PipeInC {
    /// The end of the step's name.
    pub does: &'static str,
    example: &'static str,
    /// The programs in Rust, in the description, and the one in C.
    programs: &'static [&'static str],
    name: &'static str,
    source: &'static str,
    /// Parts of the lines that the programs say if their checks were good.
    says: &'static [&'static str],
}

/// Programs in C with pipes.
pub const PIPES_IN_C: [PipeInC; 6] = [
    PipeInC {
        does: "a program in C opens, changes and closes a tuned pipe",
        example: "tuned-pipes",
        programs: &["tuned-pipes"],
        name: "tuned-in-c",
        source: include_str!("tuned.c"),
        says: &["tuned: 0 of 21 checks failed"],
    },
    PipeInC {
        does: "a program in C reads the pipe from a sensor",
        example: "endpoints",
        programs: &["sensor-pipe"],
        name: "samples-in-c",
        source: include_str!("samples.c"),
        says: &["samples: good, "],
    },
    PipeInC {
        does: "a program in C reads the pipe from an endpoint",
        example: "instrument",
        programs: &["packet-pipe"],
        name: "measured-in-c",
        source: include_str!("measured.c"),
        says: &["readings: good, "],
    },
    PipeInC {
        does: "a program in C writes the pipe to an endpoint",
        example: "actuator",
        programs: &["packet-writer"],
        name: "actuated-in-c",
        source: include_str!("actuated.c"),
        says: &["packets: good, "],
    },
    PipeInC {
        does: "a program in C writes a tuned pipe, and passes another on",
        example: "tuned-output",
        programs: &["tuned-output", "tuned-gateway"],
        name: "written-in-c",
        source: include_str!("written.c"),
        says: &["written: ", "passed: ", " messages, 0 of 15 checks failed"],
    },
    PipeInC {
        does: "a program in C answers datagrams",
        example: "udp",
        programs: &["udp-echo"],
        name: "echo-in-c",
        source: include_str!("echo.c"),
        says: &["echo in C: "],
    },
];

impl Installed {
    /// Runs the example with the program in C, in the simulator and in QEMU.
    pub fn pipe_in_c(&self, pipe: &PipeInC) -> Result<(), String> {
        let folder = self.0.join(pipe.name);
        let of_program = folder.join("programs").join(pipe.name);
        let example = self.0.join(FOLDER).join(format!("examples/{}.toml", pipe.example));
        let text = fs::read_to_string(example).map_err(|error| error.to_string())?;
        let line = |program: &str| format!("program = \"{program}\"");
        let text = pipe
            .programs
            .iter()
            .fold(text, |text, program| text.replacen(&line(program), &line(pipe.name), 1));
        fs::create_dir_all(&of_program).map_err(|error| error.to_string())?;
        fs::write(folder.join("system.toml"), text).map_err(|error| error.to_string())?;
        fs::write(of_program.join("main.c"), pipe.source).map_err(|error| error.to_string())?;
        for machine in ["sim", "run"] {
            let (run, said) = self.json(pipe.name, &[machine, "--for", "6s", "--json"])?;
            let good = pipe.says.iter().filter(|says| said.contains(**says)).count();
            if good < pipe.says.len() || said.contains("wrong: ") {
                let missing = pipe.says;
                return Err(format!("`{machine}` does not say {missing:?}:\n{said}"));
            }
            let counts = [&run["pipes"][0]["messages"], &run["sockets"][0]["datagrams"]];
            let messages = counts.into_iter().find_map(Value::as_u64).unwrap_or_default();
            if messages == 0 || run["holds"] != true {
                return Err(format!("`{machine}` with {messages} messages: {}", run["findings"]));
            }
        }
        Ok(())
    }
}
