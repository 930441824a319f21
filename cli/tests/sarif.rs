//! `diapason plan --format sarif` writes what SARIF 2.1.0 allows, whatever the plan finds.
//!
//! `sarif.json` is the part of the standard that the command uses, with every property named. To
//! repeat the check with the whole schema, which is not here because it is long, give both to a
//! validator of JSON Schema.

use diapason::formats::schema::{Unnamed, wrong};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

fn written(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Returns the log about a description, and the command's exit code.
fn log(path: &Path) -> (i32, Value) {
    let command = ["plan", "--format", "sarif"];
    let run = Command::new(env!("CARGO_BIN_EXE_diapason")).args(command).arg(path).output();
    let run = run.unwrap();
    let log = serde_json::from_slice(&run.stdout).unwrap();
    (run.status.code().unwrap(), log)
}

fn against_the_standard(log: &Value) -> Vec<String> {
    let schema = serde_json::from_str(include_str!("sarif.json")).unwrap();
    wrong(log, &schema, Unnamed::Wrong)
}

#[test]
fn logs_of_every_kind_are_as_the_standard_says() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mistakes = "[system]\nname = \"s\"\n[[proces]]\n[[process]]\nname = \"p\"\npriority = 99\n";
    let cases = [
        (home.join("../examples/can-concentrator.toml"), 0, 0),
        (home.join("tests/plan/overload.toml"), 1, 1),
        (written("mistakes of a user.toml", mistakes), 2, 2),
    ];
    for (path, code, least) in cases {
        let (ended, log) = log(&path);
        assert_eq!(against_the_standard(&log), Vec::<String>::new(), "{log:#}");
        let results = log["runs"][0]["results"].as_array().unwrap().len();
        assert!(ended == code && results >= least, "{}: {ended}, {log:#}", path.display());
    }
}

#[test]
fn what_the_standard_forbids_is_found() {
    let (_, good) = log(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plan/overload.toml"));
    let changed = |change: fn(&mut Value)| {
        let mut log = good.clone();
        change(&mut log["runs"][0]["results"][0]);
        against_the_standard(&log)
    };
    assert_eq!(changed(|it| it["level"] = json!("fatal")).len(), 1);
    assert_eq!(changed(|it| it["message"] = json!("text")).len(), 1);
    assert_eq!(changed(|it| it["place"] = json!(1)).len(), 1);
    let line = |it: &mut Value| {
        it["locations"][0]["physicalLocation"]["region"]["startLine"] = json!(0);
    };
    assert_eq!(changed(line).len(), 1);
}
