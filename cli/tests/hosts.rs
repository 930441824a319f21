//! Lists of hosts: what takes them, and what refuses them with a remedy.

use diapason::formats::schema::wrong_output;
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
    let says = "lists 2 hosts, and this command takes one";
    refused(&["image", HOSTS], says);
    refused(&["run", HOSTS, "--record", "x"], "`--record` is about one host");
    let server = ["run", HOSTS, "--can-server", "127.0.0.1:0"];
    refused(&server, "`--can-server` is about one host");
    refused(&["sim", HOSTS, "--gdb"], "`--gdb` is about one host");
    let faults = ["sim", HOSTS, "--search", "3", "--faults"];
    refused(&faults, "`--search --faults` is about one host");
}

#[test]
fn a_list_of_hosts_is_planned_host_by_host() {
    let output = diapason(&["plan", HOSTS, "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let whole: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(wrong_output(&whole), Vec::<String>::new());
    let of = |host: usize, key: &str| whole["hosts"][host][key].clone();
    assert_eq!((of(0, "host"), of(1, "host")), ("left".into(), "right".into()));
    assert_eq!(whole["holds"], true);
    let alone = diapason(&["plan", &HOSTS.replace("two-hosts", "can-concentrator"), "--json"]);
    let alone: Value = serde_json::from_slice(&alone.stdout).unwrap();
    assert_eq!((of(0, "vcpus"), of(1, "tests")), (alone["vcpus"].clone(), alone["tests"].clone()));
    let text = String::from_utf8(diapason(&["plan", HOSTS]).stdout).unwrap();
    assert!(text.starts_with("host left\n\n") && text.contains("\nhost right\n\n"), "{text}");
}

const FIGURE_9: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/figure-9.toml");
const UNLINKED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/systems/unlinked.toml");

#[test]
fn a_network_that_forms_is_planned_with_its_hosts() {
    let output = diapason(&["plan", FIGURE_9]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let order =
        ["order: up-1, up-2: enumerate", "then up-1, up-2: enable", "then dx1100: enumerate"];
    let formed = "network: forms in every order of power-on\n";
    let end = format!("{}\n\n{formed}", order.join("\n  "));
    assert!(said.ends_with(&end), "{said}");
    assert!(said.contains("debug-2  debug  up-2:xhci:debug  dx1100:xhci:2\n"), "{said}");
    assert!(said.contains("\ndx1100  up-1, up-2  never\n"), "{said}");
}

#[test]
fn a_network_that_cannot_form_does_not_hold_and_is_not_simulated() {
    let output = diapason(&["plan", UNLINKED, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let whole: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(wrong_output(&whole), Vec::<String>::new());
    assert_eq!((&whole["holds"], &whole["network"]["forms"]), (&false.into(), &false.into()));
    let found = &whole["network"]["findings"][1];
    assert_eq!(found["line"], 13);
    let what = "`right` never enables its debug capability, where this cable ends";
    assert_eq!(found["what"], what);
    let output = diapason(&["sim", UNLINKED]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("link 0 of `usbd` in `right` has no cable"), "{said}");
}

/// Refusals come before anything is built, and name place and remedy.
#[test]
fn hosts_that_qemu_cannot_boot_are_refused() {
    let refused = |arguments: &[&str], says: &[&str]| {
        let output = diapason(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{said}");
        assert!(says.iter().all(|part| said.contains(part)), "{said}");
    };
    let debug = ["cannot have the debug cable `debug-1`", "figure-9.toml:24:8", "make the cable a"];
    refused(&["run", FIGURE_9], &debug);
    let cores = ["`asker` has several cores", "one core each", "flow-cores.toml:12:8", "alone"];
    refused(&["measure", FLOW_CORES], &cores);
    let time =
        ["cannot have the common time of `wire`", "ethernet-time.toml:18:8", "`diapason sim`"];
    refused(&["run", &HOSTS.replace("two-hosts", "ethernet-time")], &time);
    refused(&["run", HOSTS, "--format", "junit"], &["leave out `--format junit`"]);
    let list = |name: &str, text: String| {
        let path = std::env::temp_dir().join(format!("diapason-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        path
    };
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");
    let host = |name: &str, system: &str| {
        format!("[[host]]\nname = \"{name}\"\nsystem = \"{examples}/{system}\"\n")
    };
    let many = (0..9).map(|number| host(&format!("h{number}"), "links/peer.toml")).collect();
    let many = list("many.toml", many);
    refused(&["run", many.to_str().unwrap()], &["9 hosts, and `run` boots 8", "many.toml:26:8"]);
    let alone = host("a", "links/peer.toml") + &host("b", "../tests/systems/usb-qemu.toml");
    let alone = list("alone.toml", alone);
    let says = ["does not keep step", "acts in the computer's own time", "alone.toml:5:8"];
    refused(&["run", alone.to_str().unwrap()], &says);
    let system = "[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n[[device]]\n\
                  name = \"nic0\"\npci = \"020000\"\ninstance = 16\nsize = \"128K\"\n";
    let last = list("last.toml", system.into());
    let text = format!("[[host]]\nname = \"a\"\nsystem = {:?}\n", last.to_str().unwrap());
    let crowded = list("crowded.toml", text);
    let says = ["`a` needs a machine with 17 adapters", "crowded.toml:2:8", "lower the `instance`"];
    refused(&["run", crowded.to_str().unwrap()], &says);
    for path in [many, alone, last, crowded] {
        std::fs::remove_file(path).unwrap();
    }
}

/// The list of [`FLOW`], in which one host has three cores.
const FLOW_CORES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/systems/flow-cores.toml");

#[test]
fn the_cores_of_a_host_are_planned_together_behind_all_hosts() {
    let plan = |path: &str| {
        let output = diapason(&["plan", path, "--json"]);
        let whole: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((output.status.code(), &whole["holds"]), (Some(0), &true.into()), "{whole:#}");
        whole
    };
    let (one, several) = (plan(FLOW), plan(FLOW_CORES));
    let names = |whole: &Value| {
        let hosts = whole["hosts"].as_array().unwrap().iter();
        hosts.map(|host| host["host"].as_str().unwrap().to_owned()).collect::<Vec<String>>()
    };
    assert_eq!(names(&several), ["hub", "asker", "answerer", "asker core 0", "asker core 2"]);
    assert_eq!(names(&one), ["asker", "hub", "answerer"]);
    // Nothing of the other cores takes from that of the link.
    let bound = |whole: &Value| whole["network"]["flows"][0]["bound_ns"].as_u64().unwrap();
    assert_eq!(bound(&several), bound(&one));
}

const FLOW: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/flow.toml");

#[test]
fn a_flow_has_one_bill_with_every_hop() {
    let output = diapason(&["plan", FLOW, "--json"]);
    let whole: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &whole["holds"]), (Some(0), &true.into()), "{whole:#}");
    let flow = &whole["network"]["flows"][0];
    assert_eq!((&flow["flow"], &flow["wanted_ns"]), (&"ping".into(), &8_000_000.into()));
    let items = flow["items"].as_array().unwrap();
    let hosts: Vec<&str> = items.iter().filter_map(|item| item["host"].as_str()).collect();
    let passed = ["asker", "hub", "answerer", "hub", "asker"];
    let mut changes = hosts.clone();
    changes.dedup();
    assert_eq!(changes, passed);
    let sum: u64 = items.iter().filter_map(|item| item["ns"].as_u64()).sum();
    assert_eq!(flow["bound_ns"].as_u64(), Some(sum));
    let text = String::from_utf8(diapason(&["plan", FLOW]).stdout).unwrap();
    assert!(text.ends_with("\nflows: hold\n"), "{text}");
    assert!(text.contains("asker:dbcd") && text.contains("hub:router"), "{text}");
}

/// A VCPU that takes nothing from the flow makes its host break, and the whole does not hold.
#[test]
fn flows_do_not_hold_alone_if_a_host_does_not() {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");
    let host = std::fs::read_to_string(format!("{examples}/links/answerer.toml")).unwrap();
    let greedy = "[[vcpu]]\nname = \"greedy\"\nbudget = \"990ms\"\nperiod = \"1s\"\n";
    let path = |name: &str| {
        std::env::temp_dir().join(format!("diapason-{}-{name}.toml", std::process::id()))
    };
    let (answerer, list) = (path("greedy-answerer"), path("greedy"));
    std::fs::write(&answerer, format!("{host}\n{greedy}")).unwrap();
    let text = std::fs::read_to_string(FLOW).unwrap();
    let text = text.replace("links/answerer.toml", answerer.to_str().unwrap());
    std::fs::write(&list, text.replace("\"links/", &format!("\"{examples}/links/"))).unwrap();
    let output = diapason(&["plan", list.to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.ends_with("\nflows: would hold, but host `answerer` does not\n"), "{text}");
    for path in [answerer, list] {
        std::fs::remove_file(path).unwrap();
    }
}
