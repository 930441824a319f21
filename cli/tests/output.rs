//! Output that is lost is an error, a reader that goes away is none, and colours are for people.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SYSTEM: &str = "examples/vcpus.toml";

fn diapason(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_diapason"));
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    command.current_dir(root).args(arguments).stdin(Stdio::null());
    command
}

#[test]
fn output_that_is_lost_is_an_error() {
    let dbc = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lost.dbc");
    std::fs::write(&dbc, "BO_ 291 Wheel: 8 Node\n SG_ Speed : 0|16@1+ (1,0) [0|1] \"\" Node\n")
        .unwrap();
    let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lost.log");
    std::fs::write(&log, "(0.000000) can0 123#0102030405060708\n").unwrap();
    let (dbc, log) = (dbc.to_str().unwrap(), log.to_str().unwrap());
    let commands = [
        &["plan", SYSTEM][..],
        &["plan", "--json", SYSTEM],
        &["diff", SYSTEM, SYSTEM],
        &["hints", "user/apps/engine"],
        &["messages", dbc],
        &["network", "line", "3"],
        &["signals", log, "--dbc", dbc],
    ];
    for arguments in commands {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = diapason(arguments).stdout(full).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(4), "{arguments:?}: {said}");
        assert!(said.starts_with("error: cannot write the output: No space left"), "{said}");
    }
}

#[test]
fn a_reader_that_goes_away_changes_nothing() {
    for (arguments, input) in [(&["plan", SYSTEM][..], ""), (&["decode"], "~13 3b9aca00\n")] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let (from, mut to) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut to, input.as_bytes()).unwrap();
        drop(to);
        let errors = writer.try_clone().unwrap();
        let mut command = diapason(arguments);
        let status = command.stdin(from).stdout(writer).stderr(errors).status().unwrap();
        assert_eq!(status.code(), Some(0), "{arguments:?}");
    }
}

#[test]
fn a_failure_that_nobody_reads_has_its_code() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = diapason(&["plan", "no/such.toml"]).stderr(writer).status().unwrap();
    assert_eq!(status.code(), Some(2));
}

#[test]
fn colours_are_printed_where_they_are_wanted() {
    let errors = |arguments: &[&str]| diapason(arguments).output().unwrap().stderr;
    let wrong = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("colours.toml");
    std::fs::write(&wrong, "[sistem]\n").unwrap();
    let wrong = wrong.to_str().unwrap();
    assert!(!errors(&["plan", wrong]).contains(&0x1b));
    assert!(errors(&["plan", wrong, "--color", "always"]).contains(&0x1b));
    assert!(!errors(&["plan", wrong, "--color", "never"]).contains(&0x1b));
}
