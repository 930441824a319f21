//! The initial file system as the kernel unpacks it: cpio, "newc".

/// The kind of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Folder,
    /// The console: character device 5, 1.
    Console,
    Program,
    /// A file to read.
    Plain,
}

impl Kind {
    const fn mode(self) -> u32 {
        match self {
            Kind::Folder => 0o40_755,
            Kind::Console => 0o20_600,
            Kind::Program => 0o100_755,
            Kind::Plain => 0o100_644,
        }
    }
}

/// An archive under construction.
#[derive(Default, Debug)]
pub(crate) struct Archive(Vec<u8>);

impl Archive {
    /// Adds a file with this content.
    pub fn add(&mut self, name: &str, kind: Kind, content: &[u8]) {
        self.entry(name, kind.mode(), kind == Kind::Console, content);
    }

    /// Returns the whole archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, false, &[]);
        self.0
    }

    fn entry(&mut self, name: &str, mode: u32, console: bool, content: &[u8]) {
        let (major, minor) = if console { (5, 1) } else { (0, 0) };
        let (inode, length) = (self.0.len() as u32, content.len() as u32);
        let named = name.len() as u32 + 1;
        let fields = [inode, mode, 0, 0, 1, 0, length, 0, 0, major, minor, named, 0];
        self.0.extend(b"070701");
        for field in fields {
            self.0.extend(format!("{field:08x}").bytes());
        }
        self.padded(&[name.as_bytes(), &[0]].concat());
        self.padded(content);
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_begins_at_a_multiple_of_four() {
        let mut archive = Archive::default();
        archive.add("dev", Kind::Folder, &[]);
        archive.add("dev/console", Kind::Console, &[]);
        archive.add("init", Kind::Program, b"hello");
        let bytes = archive.finish();
        let starts: Vec<usize> =
            (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"070701")).collect();
        assert_eq!(starts.len(), 4);
        assert!(starts.iter().all(|start| start.is_multiple_of(4)) && bytes.len() % 4 == 0);
        let text = String::from_utf8_lossy(&bytes[starts[2]..starts[3]]).into_owned();
        // Mode, owner, group, links, time, size.
        assert_eq!(&text[14..62], "000081ed0000000000000000000000010000000000000005");
        assert!(text.ends_with("init\0\0hello\0\0\0"), "{text:?}");
    }
}
