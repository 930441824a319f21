//! Files that a user names: read whole, within limits.
//!
//! A description names other files, and any of them may be the wrong one: a device that never ends,
//! a pipe that nobody writes to, a disk image. So a file is looked at before it is read, and no
//! more of it is read than its kind can have.

use crate::failure::Failure;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// Kinds of files, each with the most bytes it can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// A description of a host, or a list of hosts.
    Description,
    /// A log of a CAN bus.
    Log,
    Dbc,
    Source,
    Program,
    /// JSON that a command printed.
    Results,
    /// The profile of a computer.
    Profile,
    /// The console of a system, as it came.
    Console,
}

impl Input {
    /// The largest there can be, in MiB. The largest log holds some six million frames, as many as
    /// three full buses at 500 kbit/s carry in ten minutes.
    const fn mebibytes(self) -> u64 {
        match self {
            Input::Description | Input::Profile => 1,
            Input::Log => 256,
            Input::Dbc | Input::Source => 16,
            Input::Program | Input::Results | Input::Console => 64,
        }
    }

    /// Reads a file of this kind.
    ///
    /// # Errors
    /// Why it cannot be read, as the end of a sentence.
    pub fn bytes(self, path: &Path) -> Result<Vec<u8>, String> {
        let wrong = |error: std::io::Error| error.to_string();
        // Before it is opened: a pipe opens only when somebody writes to it.
        let found = fs::metadata(path).map_err(wrong)?;
        if !found.is_file() {
            return Err(String::from("it is no regular file"));
        }
        let most = self.mebibytes() << 20;
        let too_large = || format!("it has more than {} MiB", self.mebibytes());
        if found.len() > most {
            return Err(too_large());
        }
        let mut bytes = Vec::with_capacity(usize::try_from(found.len()).unwrap_or_default());
        // It may have grown meanwhile, or say nothing of its length.
        let file = File::open(path).map_err(wrong)?;
        file.take(most + 1).read_to_end(&mut bytes).map_err(wrong)?;
        if bytes.len() as u64 > most { Err(too_large()) } else { Ok(bytes) }
    }

    /// Says that a file of this kind cannot be read, and which file is wanted if there is none.
    pub fn refused(self, path: &Path, why: &str) -> Failure {
        let wanted = match self {
            _ if path.exists() => "",
            Input::Log => {
                "\nhelp: name a log of a CAN bus, as `candump -l` or `--candump` writes it"
            }
            Input::Dbc => "\nhelp: name the DBC file that describes the messages of the bus",
            Input::Description => {
                "\nhelp: name a description, or begin one with `diapason new NAME`"
            }
            Input::Profile => "\nhelp: name a profile, which `diapason profile` writes",
            Input::Console => "\nhelp: name what came from the serial port of the computer",
            Input::Source | Input::Program | Input::Results => "",
        };
        Failure::Input(format!("error: cannot read {}: {why}{wanted}", path.display()))
    }

    /// Reads a file as text.
    ///
    /// # Errors
    /// As above, or that it is no text.
    pub fn text(self, path: &Path) -> Result<String, String> {
        String::from_utf8(self.bytes(path)?).map_err(|_| String::from("it is no UTF-8 text"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const ALL: [Input; 8] = [
        Input::Description,
        Input::Log,
        Input::Dbc,
        Input::Source,
        Input::Program,
        Input::Results,
        Input::Profile,
        Input::Console,
    ];

    fn folder(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("diapason-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn what_never_ends_or_never_begins_is_refused_at_once() {
        let folder = folder("endless");
        let pipe = folder.join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for input in ALL {
            for path in [Path::new("/dev/zero"), &pipe, &folder] {
                assert_eq!(input.bytes(path), Err("it is no regular file".into()));
            }
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_too_large_is_refused_before_it_is_read() {
        let folder = folder("large");
        let zeros = folder.join("zeros");
        // Nobody writes them: a file may have holes.
        File::create(&zeros).unwrap().set_len(300 << 20).unwrap();
        for input in ALL {
            let limit = format!("it has more than {} MiB", input.mebibytes());
            assert_eq!(input.bytes(&zeros), Err(limit));
        }
        for input in ALL {
            File::create(&zeros).unwrap().set_len((input.mebibytes() << 20) + 1).unwrap();
            assert!(input.text(&zeros).unwrap_err().starts_with("it has more than "));
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_fits_is_read_whole() {
        let folder = folder("fits");
        let file = folder.join("file");
        fs::write(&file, "text\n").unwrap();
        assert_eq!(Input::Description.text(&file), Ok("text\n".into()));
        fs::write(&file, [0xb0]).unwrap();
        assert_eq!(Input::Dbc.bytes(&file), Ok(vec![0xb0]));
        assert_eq!(Input::Description.text(&file), Err("it is no UTF-8 text".into()));
        assert!(Input::Log.bytes(&folder.join("nothing")).is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
