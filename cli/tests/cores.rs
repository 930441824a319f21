//! Several cores: what takes them, and what refuses them with a remedy.

use diapason::formats::schema::wrong_output;
use serde_json::Value;
use std::process::{Command, Output};

const CORES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/two-cores.toml");

fn diapason(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_diapason")).args(arguments).output().unwrap()
}

fn refused(arguments: &[&str], says: &str, help: &str) {
    let output = diapason(arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(says) && said.contains(help), "{said}");
    assert!(output.stdout.is_empty());
}

#[test]
fn what_takes_one_core_refuses_several() {
    let record = ["run", CORES, "--record", "flight"];
    refused(&record, "`--record` is about one core", "help: leave it out");
    let address = "127.0.0.1:0";
    for option in [&["--gdb", address][..], &["--can-server", address]] {
        let says = format!("`{}` is about one core", option[0]);
        refused(&[&["sim", CORES], option].concat(), &says, "help: leave it out");
    }
    let witness = ["sim", CORES, "--search", "3", "--witness"];
    refused(&witness, "`--witness` is about one core", "help: leave it out");
    let fault = |text| ["sim", CORES, "--fault", text];
    refused(&fault("1s crash nobody"), "no process is called `nobody`", "help: name `controller`");
    refused(&fault("1s reboot 1s"), "is about a whole host", "cannot lose its power");
    let explained = ["sim", CORES, "--explain", "hog.x:1"];
    refused(&explained, "names no job", "processes: controller, logger, hog");
}

#[test]
fn readers_are_placed_apart_from_their_server() {
    let cameras = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/four-cameras.toml");
    let output = diapason(&["plan", cameras, "--place", "--cores", "4"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("52.50 %  usbd, avoid-front\n"), "{said}");
    assert!(said.contains(" 7.50 %  avoid-right\n"), "{said}");
}

#[test]
fn a_pipe_to_another_core_is_in_the_plan_of_its_server() {
    let cameras = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/four-cameras.toml");
    let output = diapason(&["plan", cameras, "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let whole: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(wrong_output(&whole), Vec::<String>::new());
    let pipes = |core: usize| whole["cores"][core]["pipes"].as_array().unwrap().len();
    assert_eq!([pipes(0), pipes(1), pipes(2), pipes(3)], [4, 0, 0, 0]);
    let text = String::from_utf8(diapason(&["plan", cameras]).stdout).unwrap();
    assert!(text.contains("bottom half        look"), "{text}");
}

#[test]
fn groups_are_spread_over_so_many_cores() {
    let wide = diapason(&["plan", CORES, "--place", "--cores", "3"]);
    let said = String::from_utf8(wide.stdout).unwrap();
    assert!(said.contains("   0   30.00 %  controller\n   1    5.00 %  logger\n"), "{said}");
    refused(&["plan", CORES, "--place", "--cores", "4"], "has 3 groups", "write `--cores 3`");
}

#[test]
fn a_system_is_planned_core_by_core() {
    let output = diapason(&["plan", CORES, "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let whole: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(wrong_output(&whole), Vec::<String>::new());
    let cores = whole["cores"].as_array().unwrap();
    let numbers: Vec<&str> = cores.iter().filter_map(|core| core["core"].as_str()).collect();
    assert_eq!((numbers, &whole["holds"]), (vec!["0", "1"], &Value::from(true)));
    let vcpu = |core: usize| cores[core]["vcpus"][0]["vcpu"].as_str();
    assert_eq!((vcpu(0), vcpu(1)), (Some("control"), Some("logging")));
    let text = String::from_utf8(diapason(&["plan", CORES]).stdout).unwrap();
    assert!(text.starts_with("core 0\n\n") && text.contains("\ncore 1\n\n"), "{text}");
}
