//! `diapason diff`: two results of a system, and what is none.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns a system with a job that takes so long.
fn system(work: &str) -> String {
    format!(
        "[system]\nname = \"s\"\n[[vcpu]]\nname = \"v\"\nbudget = \"{work}\"\n\
         period = \"10ms\"\n[[process]]\nname = \"p\"\npriority = 1\nvcpu = \"v\"\n"
    )
}

fn written(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).unwrap();
    path
}

/// Returns the exit code, what was printed, and the errors.
fn diapason(arguments: &[&str], paths: &[&Path]) -> (i32, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_diapason")).args(arguments).args(paths).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_result_that_no_longer_holds_is_a_broken_promise() {
    let (fits, not) = (written("fits.toml", &system("1ms")), written("not.toml", &system("10ms")));
    let (code, said, _) = diapason(&["diff"], &[&fits, &not]);
    assert_eq!(code, 1, "{said}");
    let row = said.lines().find(|line| line.starts_with("v, budget")).unwrap();
    let cells: Vec<&str> = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert_eq!(cells, ["v, budget", "1.000 ms", "10.000 ms", "+900.0 %"]);
    assert_eq!(diapason(&["diff"], &[&not, &fits]).0, 0);
    let (code, said, _) = diapason(&["diff"], &[&fits, &fits]);
    assert!(code == 0 && said.ends_with("no value differs\n"), "{said}");
}

#[test]
fn json_that_was_printed_is_as_good_as_the_description() {
    let description = written("printed.toml", &system("1ms"));
    let (_, json, _) = diapason(&["plan", "--json"], &[&description]);
    let json = written("printed.json", &json);
    let (code, said, _) = diapason(&["diff", "--json"], &[&description, &json]);
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(diapason::formats::schema::wrong_output(&said), Vec::<String>::new());
    assert_eq!((code, &said["differences"]), (0, &serde_json::json!([])));
    assert_eq!((&said["format"], &said["result"]), (&1.into(), &"difference".into()));
}

#[test]
fn what_is_no_result_is_refused_with_a_reason() {
    let good = written("good.toml", &system("1ms"));
    let wrong = [
        ("text.json", "holds", "is no JSON"),
        ("bare.json", "{}", "has no `format`"),
        ("new.json", r#"{"format": 2}"#, "its format is 2"),
        ("old.json", r#"{"format": 1, "holds": true}"#, "has no `result`"),
        ("run.json", r#"{"format": 1, "result": "run", "holds": true}"#, "results of one command"),
        ("list.json", "[1]", "has no `format`"),
    ];
    for (name, text, why) in wrong {
        let (code, _, said) = diapason(&["diff"], &[&good, &written(name, text)]);
        assert!(code == 2 && said.contains(why), "{name}: {said}");
    }
    let (code, _, said) = diapason(&["diff"], &[&good, Path::new("no/such.json")]);
    assert!(code == 2 && said.contains("cannot read no/such.json"), "{said}");
}
