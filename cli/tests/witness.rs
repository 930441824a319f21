//! `plan` shows what a search kept beside a description, if it is still of that text.

use diapason::describe::describe;
use diapason::formats::schema::wrong_output;
use diapason::outcome::{Assumptions, Closeness};
use diapason::plan::Plan;
use diapason::witness::{Witness, Witnesses};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

/// Returns a copy of an example in a folder of its own.
fn copied(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/can-gateway.toml");
    let copy = folder.join("gateway.toml");
    fs::copy(example, &copy).unwrap();
    copy
}

fn plan(path: &Path, options: &[&str]) -> Output {
    let command =
        Command::new(env!("CARGO_BIN_EXE_diapason")).arg("plan").arg(path).args(options).output();
    command.unwrap()
}

/// Keeps a witness of each pipe and chain, which came to half of its bound.
fn keep(path: &Path) -> Vec<Closeness> {
    let system = describe(path).unwrap();
    let promises = Assumptions::of(&Plan::of(&system));
    let pipes = promises.pipes.iter().map(|it| (&it.name, true, it.bound_ns));
    let chains = promises.chains.iter().map(|it| (&it.name, false, it.bound_ns));
    let halves = pipes.chain(chains).map(|(of, is_pipe, bound_ns)| Closeness {
        of: of.clone(),
        is_pipe,
        longest_ns: bound_ns.div_ceil(2),
        bound_ns,
    });
    let halves: Vec<Closeness> = halves.collect();
    let options = ["--for", "2s"].map(String::from).to_vec();
    let mut witnesses = Witnesses::new(system.text_key(), 5, 8, options);
    halves.iter().for_each(|it| witnesses.note(Witness::new(7, it.clone())));
    witnesses.keep(path).unwrap();
    halves
}

#[test]
fn plan_shows_what_a_search_kept() {
    let path = copied("witness-kept");
    let kept = keep(&path);
    assert!(kept.iter().any(|it| it.is_pipe) && kept.iter().any(|it| !it.is_pipe));
    let said = String::from_utf8(plan(&path, &[]).stdout).unwrap();
    let shown = said.lines().filter(|line| line.contains("50.0 %  --seed 7")).count();
    assert_eq!(shown, kept.len(), "{said}");
    assert!(said.contains("--seed 7 --explain brakes:worst\n"), "{said}");
    assert!(said.contains("of 8 seeds from 5 on; again: diapason sim "), "{said}");
    assert!(said.ends_with("\ncan-gateway: holds\n"), "{said}");

    let json: Value = serde_json::from_slice(&plan(&path, &["--json"]).stdout).unwrap();
    assert_eq!(json["witnesses"].as_array().unwrap().len(), kept.len());
    assert_eq!(wrong_output(&json), Vec::<String>::new());
}

#[test]
fn witnesses_of_another_text_or_another_bound_are_not_shown() {
    let path = copied("witness-old");
    keep(&path);
    let unseen = |output: Output, note: &str| {
        let said = String::from_utf8(output.stdout).unwrap();
        let noted = String::from_utf8(output.stderr).unwrap();
        assert!(!said.contains("--seed 7"), "{said}");
        assert!(noted.contains(note), "{noted}");
        assert_eq!(output.status.code(), Some(0));
    };
    // At another clock all bounds are others.
    unseen(plan(&path, &["--clock", "1.1GHz"]), "");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}\n# changed\n")).unwrap();
    unseen(
        plan(&path, &[]),
        "gateway.witness.json is of another text of this description; search again",
    );
    for damaged in ["", "{}", "[1, 2", "{\"format\": 2}"] {
        fs::write(path.with_extension("witness.json"), damaged).unwrap();
        unseen(plan(&path, &[]), "gateway.witness.json holds no witnesses; search again");
    }
}
