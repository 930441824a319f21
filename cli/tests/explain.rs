//! `diapason explain`: to the character, and its plan.
//!
//! To accept new texts, run this test with `DIAPASON_BLESS=1` and read the difference.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/plan")
}

/// Runs the command where the descriptions are.
fn diapason(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_diapason"));
    command.args(arguments).current_dir(folder()).output().unwrap()
}

fn plan(file: &str) -> Value {
    let output = diapason(&["plan", file, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_description_with_a_part_and_a_shorthand() {
    let output = diapason(&["explain", "usbd.toml"]);
    let said = String::from_utf8(output.stdout).unwrap();
    let golden = folder().join("usbd.txt");
    if std::env::var_os("DIAPASON_BLESS").is_some() {
        std::fs::write(&golden, &said).unwrap();
    }
    assert_eq!(said, std::fs::read_to_string(golden).unwrap_or_default(), "\n{said}");
    assert_eq!(output.status.code(), Some(0));
    let whole = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("explained.toml");
    std::fs::write(&whole, said).unwrap();
    assert_eq!(plan(whole.to_str().unwrap()), plan("usbd.toml"));
}

#[test]
fn a_description_that_is_wrong_is_not_explained() {
    let output = diapason(&["explain", "usbd-part.toml"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("usbd-part.toml:1:1"), "{said}");
}
