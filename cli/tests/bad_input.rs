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

/// A first plan often comes before the first program, so it is no mistake of the plan.
#[test]
fn a_program_that_is_missing_is_a_warning_of_plan() {
    let text = "[system]\nname = \"x\"\n[[vcpu]]\nname = \"v\"\nbudget = \"1ms\"\n\
                period = \"10ms\"\n[[process]]\nname = \"a\"\nprogram = \"nobodys\"\n\
                priority = 1\nvcpu = \"v\"\n";
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("no_program.toml");
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let output = diapason(&["plan", file]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.starts_with("warning: there is no program `nobodys`\n"), "{said}");
    // The folder of a copy with a target elsewhere is another project's.
    let lists = ["= note: there are: ", "= note: your project has: "];
    let lists = lists.iter().any(|list| said.contains(list));
    assert!(said.contains("no_program.toml:9:11") && lists, "{said}");
    let output = diapason(&["plan", file, "--format", "sarif"]);
    let log: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let result = &log["runs"][0]["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&"program".into(), &"warning".into()));
    // Nobody knows which programs there are without cargo, and a plan needs none.
    let mut command = Command::new(env!("CARGO_BIN_EXE_diapason"));
    let output = command.args(["plan", file]).env_remove("CARGO").env("PATH", "/nowhere").output();
    let output = output.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), &*said), (Some(0), ""));
}

#[test]
fn a_missing_emulator_is_named_with_its_package() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/vcpus.toml");
    for command in ["run", "measure"] {
        let mut run = Command::new(env!("CARGO_BIN_EXE_diapason"));
        let output = run.args([command, example]).env("PATH", "/nowhere").output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(4), "{said}");
        let says = "error: qemu-system-x86_64 is not installed\n\
                    help: apt-get install qemu-system-x86\n";
        assert_eq!(said, says);
    }
}

#[test]
fn logs_and_dbc_files_that_are_missing_are_named_with_what_is_wanted() {
    let log = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("there.log");
    std::fs::write(&log, "(0.000000) can0 123#0102030405060708\n").unwrap();
    let log = log.to_str().unwrap();
    for (arguments, says) in [
        (
            &["signals", log, "--dbc", "no.dbc"][..],
            "no.dbc: No such file or directory (os error 2)\nhelp: name the DBC file",
        ),
        (&["messages", "no.dbc"], "cannot read no.dbc: "),
        (&["init", "--dbc", "no.dbc"], "help: name the DBC file that describes the messages"),
        (
            &["init", "--log", "no.log"],
            "no.log: No such file or directory (os error 2)\nhelp: name a log",
        ),
    ] {
        let output = diapason(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.starts_with("error: cannot read no.") && said.contains(says), "{said}");
        assert!(output.stdout.is_empty());
    }
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
