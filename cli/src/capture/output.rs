//! A file that is written as a run goes on; the first failure is told at its end.

use crate::failure::Failure;
use std::fs::File;
use std::io::{BufWriter, Error, Seek, Write};
use std::path::{Path, PathBuf};

/// A file of a capture.
pub(crate) struct Output {
    out: BufWriter<File>,
    path: PathBuf,
    failed: Option<Error>,
}

impl Output {
    /// Returns a new file, or an old one emptied.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(path: &Path) -> Result<Output, Failure> {
        let file = File::create(path).map_err(|error| refused(path, &error))?;
        Ok(Output { out: BufWriter::new(file), path: path.to_path_buf(), failed: None })
    }

    /// Adds these bytes to the file.
    pub fn put(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.failed = self.out.write_all(bytes).err();
        }
    }

    /// Writes over the first bytes of the file. Nothing may be added afterwards.
    pub fn replace_beginning(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.failed = self.out.rewind().err();
        }
        self.put(bytes);
    }

    /// The end of the file.
    ///
    /// # Errors
    /// If something could not be written.
    pub fn finish(mut self) -> Result<(), Failure> {
        let done = self.failed.take().map_or_else(|| self.out.flush(), Err);
        done.map_err(|error| refused(&self.path, &error))
    }
}

fn refused(path: &Path, error: &Error) -> Failure {
    Failure::io(format!("write {}", path.display()), error)
}
