//! Lists of hosts: what takes them, and what refuses them with a remedy.

use serde_json::Value;
use std::process::{Command, Output};

const HOSTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/two-hosts.toml");

fn diapason(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_diapason")).args(arguments).output().unwrap()
}

fn refused(arguments: &[&str], says: &str) {
    let output = diapason(arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(says), "{said}");
    assert!(said.contains("help: name the description of one: can-concentrator.toml"), "{said}");
    assert!(output.stdout.is_empty());
}

#[test]
fn what_is_about_one_host_refuses_several() {
    refused(&["run", HOSTS], "lists 2 hosts, and only `plan` and `sim` take several");
    refused(&["sim", HOSTS, "--explain", "worst"], "`--explain` is about one host");
    refused(&["sim", HOSTS, "--search", "3"], "`--search` is about one host");
}

#[test]
fn a_list_of_hosts_is_planned_host_by_host() {
    let output = diapason(&["plan", HOSTS, "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let whole: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |host: usize, key: &str| whole["hosts"][host][key].clone();
    assert_eq!((of(0, "host"), of(1, "host")), ("left".into(), "right".into()));
    assert_eq!(whole["holds"], true);
    let alone = diapason(&["plan", &HOSTS.replace("two-hosts", "can-concentrator"), "--json"]);
    let alone: Value = serde_json::from_slice(&alone.stdout).unwrap();
    assert_eq!((of(0, "vcpus"), of(1, "tests")), (alone["vcpus"].clone(), alone["tests"].clone()));
    let text = String::from_utf8(diapason(&["plan", HOSTS]).stdout).unwrap();
    assert!(text.starts_with("host left\n\n") && text.contains("\nhost right\n\n"), "{text}");
}
