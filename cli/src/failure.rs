//! The blame for a command that cannot do its work, and the exit code that says so.

use std::fmt;

/// The run holds: exit code 0.
pub const HOLDS: u8 = 0;
/// A deadline, a promise or a target was broken: exit code 1.
pub const BROKEN: u8 = 1;
/// Nothing was broken, but nothing is proved either: a description that promises nothing, or a run
/// that was wanted unproved. Exit code 5.
pub const UNPROVED: u8 = 5;

/// Why a command stopped before it had a verdict.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The user's input cannot be used. The text says where and what to change.
    Input(String),
    /// The description makes sense, but its promises cannot be kept. The text says which fails
    /// first and what would fit.
    NotAdmitted(String),
    /// Diapason itself is wrong: kernel panic, hang, a build that fails.
    Ours(String),
    /// The machine lacks something: a tool, a disk, a permission.
    World(String),
}

impl Failure {
    /// Returns the exit code of the command.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Failure::NotAdmitted(_) => BROKEN,
            Failure::Input(_) => 2,
            Failure::Ours(_) => 3,
            Failure::World(_) => 4,
        }
    }

    /// Returns the machine refused `action`.
    pub fn io(action: impl fmt::Display, error: &std::io::Error) -> Failure {
        Failure::World(format!("cannot {action}: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // A list of mistakes begins with the word itself, perhaps in colour.
            Failure::Input(text) if !text.starts_with("error") && !text.starts_with('\x1b') => {
                write!(f, "error: {}", text.trim_end())
            }
            Failure::Input(text) | Failure::NotAdmitted(text) => write!(f, "{}", text.trim_end()),
            Failure::Ours(text) => {
                write!(f, "this is a fault of Diapason itself: {}", text.trim_end())
            }
            Failure::World(text) => write!(f, "error: {}", text.trim_end()),
        }
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blame_has_its_own_exit_code() {
        let kinds: [fn(String) -> Failure; 3] = [Failure::Input, Failure::Ours, Failure::World];
        let mut codes: Vec<u8> = kinds.iter().map(|k| k(String::new()).exit_code()).collect();
        codes.extend([HOLDS, BROKEN, UNPROVED]);
        codes.sort_unstable();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5]);
        assert_eq!(Failure::NotAdmitted(String::new()).exit_code(), BROKEN);
    }

    #[test]
    fn bad_input_is_always_called_an_error_and_once() {
        let said = |text: &str| Failure::Input(text.into()).to_string();
        assert_eq!(said("cannot read x\n"), "error: cannot read x");
        for whole in ["error: `a` is no rate", "error[E1]: no", "\u{1b}[1m\u{1b}[91merror"] {
            assert_eq!(said(whole), whole);
        }
    }
}
