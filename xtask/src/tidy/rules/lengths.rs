//! Rules about length: of lines, files and functions.

use super::super::Problem;
use super::super::ratchets::{Measure, Measured};
use super::super::source::{Source, words};

/// Most characters in a line of code.
const LINE_CHARACTERS_MAX: usize = 100;

/// Lines fit a screen. Prose in Markdown is free: tables cannot be wrapped.
pub fn lines(source: &Source) -> Vec<Problem> {
    if source.path.ends_with(".md") {
        return Vec::new();
    }
    let long = source.lines().filter(|(_, line)| line.chars().count() > LINE_CHARACTERS_MAX);
    long.map(|(line, _)| {
        Problem::new(&source.path, line, format!("longer than {LINE_CHARACTERS_MAX}: wrap it"))
    })
    .collect()
}

/// Measures the length of a file.
pub fn file(source: &Source) -> Measured {
    let value = source.lines().count() as u64;
    let (name, file) = (source.path.clone(), source.path.clone());
    Measured { measure: Measure::FileLines, name, file, line: 1, value }
}

/// Returns the length of each function in a file.
pub fn functions(source: &Source) -> Vec<Measured> {
    let code = source.code.as_str();
    words(code, "fn").filter_map(|at| function(source, code, at)).collect()
}

/// Returns the function whose `fn` is at `at`, if it has a name and a body.
fn function(source: &Source, code: &str, at: usize) -> Option<Measured> {
    let rest = &code[at + 2..];
    let name: String =
        rest.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let (open, close) = body(&code[at..])?;
    if name.is_empty() || open > close {
        return None;
    }
    Some(Measured {
        measure: Measure::FunctionLines,
        name: format!("{}::{name}", source.path),
        file: source.path.clone(),
        line: code[..at].matches('\n').count() + 1,
        value: code[at..at + close].matches('\n').count() as u64 + 1,
    })
}

/// Returns where the braces of the body stand; `None` for a declaration without one.
fn body(code: &str) -> Option<(usize, usize)> {
    let (mut brackets, mut braces, mut open) = (0i32, 0i32, None);
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets -= 1,
            b';' if brackets <= 0 && open.is_none() => return None,
            b'{' => {
                open = open.or(Some(at));
                braces += 1;
            }
            b'}' => {
                braces -= 1;
                if braces <= 0 {
                    return Some((open?, at));
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::fixture::fires;
    use super::*;

    #[test]
    fn long_lines_are_found() {
        let text = format!("short\n{}\n{}\n", "x".repeat(101), "µ".repeat(100));
        assert_eq!(fires(lines, "a.rs", &text), [2]);
        assert_eq!(fires(lines, "a.md", &text), [0; 0]);
    }

    #[test]
    fn functions_are_measured_from_name_to_brace() {
        let text = "\
fn one() {}
trait T { fn none(&self, a: [u8; 4]); }
fn three(a: [u8; 4]) {
    let s = \"}\"; // }
}
type F = fn(u8) -> u8;
fn nested() {
    fn inner() {
    }
}
";
        let found: Vec<(String, u64)> = functions(&Source::new("a.rs", text))
            .into_iter()
            .map(|measured| (measured.name, measured.value))
            .collect();
        let expected = [("one", 1), ("three", 3), ("nested", 4), ("inner", 2)];
        let expected = expected.map(|(name, lines)| (format!("a.rs::{name}"), lines));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_file_has_its_lines() {
        assert_eq!(file(&Source::new("a.rs", "a\nb\nc\n")).value, 3);
    }
}
