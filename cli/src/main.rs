//! The `diapason` command. The work is done in the library.

use clap::Parser;
use diapason::arguments::{CommandLine, execute};
use diapason::{interrupt, output};
use std::process::ExitCode;

fn main() -> ExitCode {
    let CommandLine { manner, command } = CommandLine::parse();
    manner.adopt();
    let code = execute(command).and_then(|code| output::finish().map(|()| code));
    let code = code.unwrap_or_else(|failure| {
        output::tell(&failure.to_string());
        failure.exit_code()
    });
    ExitCode::from(interrupt::exit_code().unwrap_or(code))
}
