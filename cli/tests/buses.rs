//! `diapason sim` of CAN buses without a host: what holds, what faults break, and what is refused.

use diapason::formats::schema::wrong_output;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

const EXAMPLE: &str = include_str!("../../examples/can-mts.toml");

/// Writes a description, and returns its path.
fn written(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.toml"));
    std::fs::write(&path, text).unwrap();
    path
}

fn sim(name: &str, text: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_diapason"));
    command.arg("sim").arg(written(name, text)).args(arguments).output().unwrap()
}

/// Returns the result of a run, and its exit code.
fn result(name: &str, text: &str, arguments: &[&str]) -> (Value, Option<i32>) {
    let output = sim(name, text, &[arguments, &["--json"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    let result = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    assert_eq!(wrong_output(&result), Vec::<String>::new());
    (result, output.status.code())
}

/// Returns the messages of all buses, whose books add up.
fn messages(result: &Value) -> Vec<Value> {
    let buses = result["can_buses"].as_array().unwrap().iter();
    let all: Vec<Value> =
        buses.flat_map(|bus| bus["messages"].as_array().unwrap().clone()).collect();
    for message in &all {
        let count = |key: &str| message[key].as_u64().unwrap();
        let gone = ["sent", "early", "lost", "waiting"].map(count).iter().sum::<u64>();
        assert_eq!(count("came"), gone, "{message}");
    }
    all
}

#[test]
fn the_example_holds_and_every_message_is_measured() {
    let (result, code) = result("plain", EXAMPLE, &["--for", "2s"]);
    assert_eq!((code, &result["holds"]), (Some(0), &Value::Bool(true)), "{result:#}");
    let all = messages(&result);
    assert_eq!(all.len(), 21);
    assert!(all.iter().all(|message| message["longest_ns"].as_u64() > Some(0)));
    // The promise of a message of high speed begins when its unit knows the time.
    let early = |name: &str| all.iter().find(|it| it["message"] == name).unwrap()["early"].as_u64();
    assert_eq!((early("current-left") > Some(30), early("time")), (true, Some(0)));
}

#[test]
fn renewals_by_clocks_given_clocks_and_late_queues_hold_for_every_seed() {
    let variants = [
        ("signal", EXAMPLE.to_owned()),
        ("clock", EXAMPLE.replace("time =", "renewal = \"50us\"\ntime =")),
        ("given", {
            let kept = EXAMPLE.lines().filter(|line| !line.starts_with("time"));
            let text: String = kept.map(|line| format!("{line}\n")).collect();
            text.replace("scheduler = \"mts\"", "scheduler = \"mts\"\nclocks = \"20us\"")
        }),
        ("jitter", EXAMPLE.replace("bytes = 4", "bytes = 4\njitter = \"300us\"")),
        ("bulk", {
            let bulk = "\n[[message]]\nname = \"bulk\"\nbus = \"drive\"\nnode = \"logger\"\n\
                        class = \"none\"\nbytes = 8\n";
            EXAMPLE.to_owned() + bulk
        }),
    ];
    for (name, text) in variants {
        let output = sim(name, &text, &["--search", "12", "--for", "500ms"]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said, "12 seeds, no promise broken\n", "{name}");
        assert_eq!(output.status.code(), Some(0), "{name}");
    }
}

#[test]
fn trouble_of_one_node_breaks_its_own_messages_only() {
    let left = ["current-left", "speed-left"];
    for (number, fault) in
        ["node-reset motor-left 50ms", "node-deaf motor-left 150ms"].into_iter().enumerate()
    {
        let fault = format!("1s {fault}");
        let name = format!("trouble{number}");
        let (result, code) = result(&name, EXAMPLE, &["--for", "2s", "--fault", &fault]);
        assert_eq!(code, Some(1), "{fault}");
        let findings = result["findings"].as_array().unwrap();
        let of = |text: &Value| left.iter().any(|it| text.as_str().unwrap().contains(it));
        assert!(findings.iter().all(of) && findings.len() == 2, "{fault}: {findings:?}");
        let lost = |message: &Value| message["lost"].as_u64() > Some(0);
        let lost: Vec<Value> = messages(&result).into_iter().filter(lost).collect();
        assert!(lost.iter().all(|it| it["from"] == "motor-left") && lost.len() == 2, "{lost:?}");
    }
}

#[test]
fn errors_count_against_the_budget_of_the_bus() {
    let fault = ["--for", "2s", "--fault", "1s can-errors drive 3"];
    let (none, code) = result("errors0", EXAMPLE, &fault);
    let said = none["findings"][0].as_str().unwrap();
    assert!(said.starts_with("3 frames on `drive` were destroyed"), "{said}");
    assert_eq!((code, &none["can_buses"][0]["destroyed"]), (Some(1), &3.into()));
    // With time for them nothing is broken. The bus is slower, so that all fit.
    let keys = "renewal = \"20us\"\nerror_interval = \"200ms\"\nerror_burst = 3\ntime_losses = 3\n\
                time =";
    let mut text = EXAMPLE.replace("time_losses = 1", "").replacen("time =", keys, 1);
    for (short, long) in [("1ms", "4ms"), ("1.2ms", "5ms"), ("1.25ms", "5ms"), ("1.8ms", "7ms")] {
        text = text.replace(&format!("period = \"{short}\""), &format!("period = \"{long}\""));
    }
    let text = text.replace("period = \"2ms\"", "period = \"8ms\"");
    let (some, code) = result("errors1", &text, &fault);
    assert_eq!((code, &some["can_buses"][0]["destroyed"]), (Some(0), &3.into()), "{some:#}");
}

#[test]
fn a_run_that_did_not_measure_all_does_not_hold() {
    let unmeasured = |arguments: &[&str]| {
        let (result, code) = result("short", EXAMPLE, arguments);
        assert_eq!((code, &result["holds"]), (Some(5), &Value::Bool(false)), "{arguments:?}");
        result["unmeasured"].to_string()
    };
    let short = unmeasured(&["--for", "20ms"]);
    assert!(short.contains("no message `current-left` was through"), "{short}");
    let served = unmeasured(&["--for", "100ms", "--can-server", "127.0.0.1:0"]);
    assert!(served.contains("clients at 127.0.0.1:0 could send"), "{served}");
    let output = sim("short", EXAMPLE, &["--search", "3", "--for", "20ms"]);
    assert_eq!(output.status.code(), Some(5));
    // A fault after the end did not come.
    let late = ["--for", "500ms", "--fault", "1s babble drive 5ms"];
    let (result, code) = result("late", EXAMPLE, &late);
    assert_eq!((code, result["injected"].as_array().unwrap().len()), (Some(0), 0));
}

#[test]
fn messages_that_are_late_are_named() {
    let (all, code) = result("babble", EXAMPLE, &["--for", "2s", "--fault", "1s babble drive 5ms"]);
    let found = all["findings"].to_string();
    assert_eq!(code, Some(1));
    assert!(found.contains("messages `limits` were late"), "{found}");
    assert!(found.contains("`horn` took") || found.contains("`time` took"), "{found}");
}

#[test]
fn requests_that_are_about_programs_are_refused() {
    let refused = [
        (&["--stages"][..], "`--stages` is about programs, and `can-mts` has no process"),
        (&["--faults"][..], "`--faults` draws nothing on a bus without a host"),
        (&["--fault", "1s reboot 5ms"][..], "`1s reboot 5ms` happens to a host"),
        (&["--fault", "1s bus-off drive"][..], "no CAN interface is called `drive`"),
        (&["--fault", "1s node-reset motor 5ms"][..], "no other node is called `motor`"),
    ];
    for (arguments, said) in refused {
        let output = sim("refused", EXAMPLE, arguments);
        let found = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(found.contains(said) && found.contains("help"), "{arguments:?}: {found}");
    }
}
