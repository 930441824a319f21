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
    assert!(said.contains("help: name a description, or begin one with `diapason new"), "{said}");
}

#[test]
fn a_log_that_is_missing_is_named_with_its_interface() {
    let text = "[system]\nname = \"x\"\n[usbd]\n[[usb]]\nname = \"interface\"\non = \"xhci\"\n\
                model = \"usb-can\"\nchannels = 1\nbit_rates = [500_000]\n\
                replay = [\"can0=no.candump\"]\n";
    let output = run("no_log.toml", text);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    let whose = "no.candump: the log that `interface` replays cannot be read";
    assert!(said.contains(whose) && said.contains("help: paths in a description"), "{said}");
}

#[test]
fn sources_that_are_missing_are_an_error() {
    let output = diapason(&["hints", "no/such/source.rs"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.starts_with("error: cannot read no/such/source.rs"), "{said}");
}

#[test]
fn a_wrong_duration_says_what_a_duration_is() {
    let output = diapason(&["run", "x.toml", "--for", "soon"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("for example 10s"), "{said}");
    for none in ["0s", "-1s"] {
        let output = diapason(&["sim", "x.toml", "--for", none]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(said.contains("invalid value") && said.contains("write "), "{said}");
    }
}
