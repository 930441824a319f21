//! The inputs of a target that are kept: one file, in which each input follows its length.

use std::io;
use std::path::{Path, PathBuf};

/// The folder of the corpora, below the workspace's root.
pub const FOLDER: &str = "tests/corpora";
/// The most bytes of an input that is kept.
pub const INPUT_MAX: usize = 4_096;
/// The most bytes of a corpus.
pub const CORPUS_MAX: usize = 24 << 10;

/// Returns the file of a target's corpus.
#[must_use]
pub fn path(root: &Path, target: &str) -> PathBuf {
    root.join(FOLDER).join(format!("{target}.inputs"))
}

/// Reads a corpus. A target that has no file yet has no inputs.
///
/// # Errors
/// If the file cannot be read, or its lengths do not add up.
pub fn read(path: &Path) -> io::Result<Vec<Vec<u8>>> {
    let bytes = match std::fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        bytes => bytes?,
    };
    let (mut rest, mut inputs) = (&bytes[..], Vec::new());
    while !rest.is_empty() {
        let (input, behind) = split(rest).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "the length of an input is wrong")
        })?;
        inputs.push(input.to_vec());
        rest = behind;
    }
    Ok(inputs)
}

fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

/// Writes inputs into the file of a corpus, each behind its length.
///
/// # Errors
/// If the file cannot be written.
pub fn write(path: &Path, inputs: &[Vec<u8>]) -> io::Result<()> {
    let mut bytes = Vec::new();
    for input in inputs {
        bytes.extend((input.len() as u32).to_le_bytes());
        bytes.extend(input);
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corpus_reads_as_it_was_written() {
        let path = std::env::temp_dir().join(format!("corpus-{}", std::process::id()));
        let inputs = [vec![], vec![1, 2, 3], vec![0; 300]];
        write(&path, &inputs).unwrap();
        assert_eq!(read(&path).unwrap(), inputs);
        std::fs::write(&path, [9, 0, 0, 0, 1]).unwrap();
        assert!(read(&path).is_err());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read(&path).unwrap(), Vec::<Vec<u8>>::new());
    }
}
