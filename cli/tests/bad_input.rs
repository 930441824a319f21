//! The command refuses bad input before anything is built or booted, with exit code 2.

use std::path::PathBuf;
use std::process::{Command, Output};

/// Runs `diapason run` on a description with this text.
fn run(name: &str, text: &str) -> Output {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, text).unwrap();
    diapason(&["run", file.to_str().unwrap()])
}

fn diapason(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_diapason")).args(arguments).output().unwrap()
}

#[test]
fn a_wrong_description_is_shown_with_line_and_remedy() {
    let text = "[system]\nname = \"x\"\n\n[[process]]\nname = \"a\"\npriority = 1\ncolour = 3\n";
    let output = run("unknown_key.toml", text);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("unknown_key.toml:7") && said.contains("colour"), "{said}");
    assert!(said.contains("help: "), "{said}");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_missing_description_is_named() {
    let output = diapason(&["run", "no/such/system.toml"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("no/such/system.toml"), "{said}");
}

#[test]
fn a_wrong_duration_says_what_a_duration_is() {
    let output = diapason(&["run", "x.toml", "--for", "soon"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("for example 10s"), "{said}");
}
