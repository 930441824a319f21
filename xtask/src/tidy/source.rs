//! Source files as the rules see them: the text, and the text with comments and strings blanked.

use std::fs;
use std::io;
use std::path::Path;

/// Kinds of files that rules look at.
const EXTENSIONS: [&str; 6] = ["rs", "s", "ld", "toml", "md", "sh"];

/// One file of the tree.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Relative to the root, with `/`.
    pub path: String,
    pub text: String,
    /// The text of a Rust file with comments and the insides of literals replaced by blanks, line
    /// for line; of any other, the text.
    pub code: String,
}

/// Every file of the project.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub files: Vec<Source>,
    /// Where the checkout is.
    pub root: String,
}

impl Source {
    /// Returns a file with these contents.
    #[must_use]
    pub fn new(path: &str, text: &str) -> Source {
        let code = if path.ends_with(".rs") { blank(text) } else { text.into() };
        Source { path: path.into(), text: text.into(), code }
    }

    /// Returns whether the file is Rust.
    #[must_use]
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Returns its lines of code, numbered from 1.
    pub fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.code.lines())
    }

    /// Returns its lines as they are, numbered from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }
}

impl Tree {
    /// Returns every file below `root` but build results.
    pub fn read(root: &Path) -> io::Result<Tree> {
        let mut files = Vec::new();
        visit(root, root, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Tree { files, root: root.display().to_string() })
    }

    /// The package a file belongs to: the longest folder with a manifest above it.
    #[must_use]
    pub fn package<'a>(&self, path: &'a str) -> Option<&'a str> {
        let folders = path.match_indices('/').map(|(end, _)| &path[..end]);
        let manifest = |folder: &&str| {
            let manifest = format!("{folder}/Cargo.toml");
            self.files.binary_search_by(|file| file.path.as_str().cmp(&manifest)).is_ok()
        };
        folders.rev().find(manifest)
    }
}

fn visit(root: &Path, folder: &Path, files: &mut Vec<Source>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let relative = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        if path.is_dir() {
            if !matches!(relative.as_str(), "target" | ".git") {
                visit(root, &path, files)?;
            }
        } else if name.rsplit_once('.').is_some_and(|(_, ext)| EXTENSIONS.contains(&ext))
            || relative == ".ci/run"
        {
            files.push(Source::new(&relative, &fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

/// Returns whether `byte` is part of a word.
#[must_use]
pub const fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns where `word` stands in `code` as a whole word (or call, if it ends in `!` or `(`).
pub fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    let open_end = !in_word(word.as_bytes()[word.len() - 1]);
    code.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = at.checked_sub(1).is_none_or(|i| !in_word(bytes[i]));
        let after = bytes.get(at + word.len()).is_none_or(|byte| !in_word(*byte));
        before && (after || open_end)
    })
}

/// Rust text with comments and the insides of literals blanked; newlines stay.
fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    while out.len() < bytes.len() {
        let at = out.len();
        let end = skipped_to(bytes, at).unwrap_or(at);
        if end == at {
            out.push(bytes[at]);
            continue;
        }
        out.extend(bytes[at..end].iter().map(|byte| if *byte == b'\n' { b'\n' } else { b' ' }));
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Returns where the comment or literal that begins at `at` ends; `None` if none begins there.
fn skipped_to(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let end = match rest {
        [b'/', b'/', ..] => rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => block_comment(rest),
        [b'"', ..] => quoted(rest),
        [b'\'', ..] => character(rest)?,
        [b'r', b'"' | b'#', ..] if at == 0 || !starts_inside_word(bytes, at) => raw_string(rest)?,
        _ => return None,
    };
    Some(at + end)
}

/// Returns whether the byte before `at` belongs to a word other than a literal's prefix (`b`, `c`).
fn starts_inside_word(bytes: &[u8], at: usize) -> bool {
    let prefix = matches!(bytes[at - 1], b'b' | b'c') && (at < 2 || !in_word(bytes[at - 2]));
    in_word(bytes[at - 1]) && !prefix
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut i) = (0usize, 0);
    while i + 1 < rest.len() {
        match &rest[i..i + 2] {
            b"/*" => (depth, i) = (depth + 1, i + 2),
            b"*/" => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            return i;
        }
    }
    rest.len()
}

fn quoted(rest: &[u8]) -> usize {
    let mut i = 1;
    while i < rest.len() {
        match rest[i] {
            b'\\' => i += 2,
            b'"' => return i + 1,
            _ => i += 1,
        }
    }
    rest.len()
}

/// A character literal, but not a lifetime.
fn character(rest: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(&rest[1..rest.len().min(6)]);
    let length = match text {
        Ok(text) => text.chars().next()?.len_utf8(),
        Err(error) if error.valid_up_to() > 0 => 1.max(rest[1].leading_ones() as usize),
        Err(_) => return None,
    };
    if rest.get(1) == Some(&b'\\') {
        let close = rest[3..].iter().position(|byte| *byte == b'\'')?;
        return Some(3 + close + 1);
    }
    (rest.get(1 + length) == Some(&b'\'')).then_some(length + 2)
}

fn raw_string(rest: &[u8]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let close: Vec<u8> = std::iter::once(b'"').chain(vec![b'#'; hashes]).collect();
    let start = hashes + 2;
    let found = rest[start..].windows(close.len()).position(|window| window == close);
    Some(found.map_or(rest.len(), |at| start + at + close.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_nothing_else() {
        let cases = [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("a\"b") + c"#, "f(      ) + c"),
            (r##"x(r#"a"b"#, 1)"##, "x(        , 1)"),
            (r#"br"a" r"b" for"#, "b          for"),
            ("'a' '\\'' &'a str", "         &'a str"),
            ("'µ' 'static", "     'static"),
            ("\"a\nb\"", "  \n  "),
        ];
        for (text, expected) in cases {
            assert_eq!(blank(text), expected, "{text}");
        }
    }

    #[test]
    fn words_are_whole() {
        assert_eq!(words("unsafe unsafe_code my_unsafe unsafe{", "unsafe").count(), 2);
        assert_eq!(words("asm! global_asm! asm!(x", "asm!").count(), 2);
    }

    #[test]
    fn a_file_belongs_to_the_innermost_package() {
        let manifests = ["kernel/Cargo.toml", "kernel/core/Cargo.toml"];
        let files = manifests.map(|path| Source::new(path, "")).to_vec();
        let tree = Tree { files, root: String::new() };
        assert_eq!(tree.package("kernel/core/src/lib.rs"), Some("kernel/core"));
        assert_eq!(tree.package("kernel/x/src/lib.rs"), Some("kernel"));
        assert_eq!(tree.package("docs/README.md"), None);
    }
}
