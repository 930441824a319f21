//! The command's own output: a reader may go away or a disk be full, and colour is for people.
//!
//! A reader who has seen enough (`| head`) ends nothing and breaks nothing. Output that is lost for
//! any other reason is an error in the end, whatever else the command found.

use crate::failure::Failure;
use std::env;
use std::ffi::OsStr;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// When the command's words have colours.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, clap::ValueEnum)]
pub enum Colour {
    /// On a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`.
    #[default]
    Auto,
    Always,
    Never,
}

/// How the command says what it says.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Manner {
    /// When messages have colours.
    #[arg(long = "color", global = true, value_name = "WHEN", default_value = "auto")]
    pub colour: Colour,
    /// Leave out notes on what is being done, and the progress.
    #[arg(short, long, global = true)]
    pub quiet: bool,
}

static COLOUR: OnceLock<Colour> = OnceLock::new();
/// Characters in a line of the terminal that standard output is.
static WIDTH: OnceLock<Option<usize>> = OnceLock::new();
/// Narrower terminals count as this wide: no table is readable there.
const NARROWEST: usize = 40;
static QUIET: AtomicBool = AtomicBool::new(false);
/// Why output was lost, the first time.
static LOST: OnceLock<std::io::Error> = OnceLock::new();

impl Manner {
    /// Lets this process speak so from now on.
    pub fn adopt(self) {
        COLOUR.get_or_init(|| self.colour);
        QUIET.store(self.quiet, Ordering::Relaxed);
        WIDTH.get_or_init(|| stdout().is_terminal().then(measured_width).flatten());
    }
}

/// Returns the number of characters in a line of the terminal that standard output is; none if it
/// is a file or a pipe, where no line is too long.
pub(crate) fn terminal_width() -> Option<usize> {
    WIDTH.get().copied().flatten()
}

/// Asks `stty`, which is wherever terminals are, for the width of standard output.
fn measured_width() -> Option<usize> {
    let terminal = stdout().as_fd().try_clone_to_owned().ok()?;
    let asked = Command::new("stty").arg("size").stdin(terminal).stderr(Stdio::null()).output();
    columns(&String::from_utf8(asked.ok()?.stdout).ok()?)
}

/// Returns the columns of a size as `stty` writes it: rows and columns.
fn columns(size: &str) -> Option<usize> {
    let columns = size.split_whitespace().nth(1)?.parse::<usize>().ok()?;
    // A terminal that does not know its size says 0.
    (columns > 0).then_some(columns.max(NARROWEST))
}

/// Prints a line on standard output.
pub fn say(text: &str) {
    write(&format!("{text}\n"));
}

/// Prints on standard output.
pub fn write(text: &str) {
    note_loss(stdout().write_all(text.as_bytes()));
}

/// Prints a line on standard error, where nobody has to read it.
pub fn tell(text: &str) {
    // Nobody is left to be told of this.
    let _ = writeln!(stderr(), "{text}");
}

/// Prints a line on standard error about what is being done, unless that is not wanted.
pub fn note(text: &str) {
    if !is_quiet() {
        tell(text);
    }
}

/// Returns whether nobody wants to know what is being done.
#[must_use]
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Returns whether what is printed there has colours.
#[must_use]
pub fn is_coloured(there: &impl IsTerminal) -> bool {
    let set = |name| env::var_os(name).unwrap_or_default();
    let wanted = COLOUR.get().copied().unwrap_or_default();
    coloured(wanted, there.is_terminal(), &set("NO_COLOR"), &set("TERM"))
}

fn coloured(wanted: Colour, terminal: bool, no_colour: &OsStr, term: &OsStr) -> bool {
    match wanted {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => terminal && no_colour.is_empty() && term != "dumb",
    }
}

fn note_loss(written: std::io::Result<()>) {
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        LOST.get_or_init(|| error);
    }
}

/// Ends the command's output.
///
/// # Errors
/// If some of it was lost, and not because its reader had seen enough.
pub fn finish() -> Result<(), Failure> {
    note_loss(stdout().flush());
    match LOST.get() {
        Some(error) => Err(Failure::io("write the output", error)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_that_want_them() {
        let auto = |terminal, no_colour: &str, term: &str| {
            coloured(Colour::Auto, terminal, OsStr::new(no_colour), OsStr::new(term))
        };
        assert!(auto(true, "", "xterm"));
        assert!(!auto(false, "", "xterm") && !auto(true, "1", "xterm") && !auto(true, "", "dumb"));
        assert!(coloured(Colour::Always, false, OsStr::new("1"), OsStr::new("dumb")));
        assert!(!coloured(Colour::Never, true, OsStr::new(""), OsStr::new("xterm")));
    }

    #[test]
    fn widths_are_read_as_stty_says_them() {
        let widths = ["24 80\n", "24 7\n", "0 0\n", "", "stty: no"].map(columns);
        assert_eq!(widths, [Some(80), Some(NARROWEST), None, None, None]);
    }
}
