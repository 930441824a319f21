//! `diapason plan`, to the character, and that `run` refuses what it refuses.
//!
//! To accept new texts, run this test with `DIAPASON_BLESS=1` and read the difference.

use std::path::PathBuf;
use std::process::{Command, Output};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/plan")
}

/// Runs the command where the descriptions are.
fn diapason(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_diapason"));
    command.args(arguments).current_dir(folder()).output().unwrap()
}

#[track_caller]
fn looks_like(golden: &str, arguments: &[&str], code: i32) {
    let output = diapason(arguments);
    let said = String::from_utf8(output.stdout).unwrap();
    let path = folder().join(golden);
    if std::env::var_os("DIAPASON_BLESS").is_some() {
        std::fs::write(&path, &said).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(said, expected, "\n{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code));
}

#[test]
fn a_system_that_holds() {
    looks_like("pipes.txt", &["plan", "pipes.toml"], 0);
    looks_like("pipes.json", &["plan", "pipes.toml", "--json"], 0);
}

#[test]
fn messages_on_can() {
    looks_like("can-controller.txt", &["plan", "../../../examples/can-controller.toml"], 0);
    looks_like("can-mts-host.txt", &["plan", "../../../examples/can-mts-host.toml"], 0);
    looks_like("can-dashboard.txt", &["plan", "../../../examples/can-dashboard.toml"], 0);
    looks_like("can-mts.txt", &["plan", "../../../examples/can-mts.toml"], 0);
    looks_like("can.txt", &["plan", "can.toml"], 1);
    looks_like("can.json", &["plan", "can.toml", "--json"], 1);
}

#[test]
fn a_response_that_is_too_long() {
    looks_like("late.txt", &["plan", "late.toml"], 1);
    looks_like("late.json", &["plan", "late.toml", "--json"], 1);
}

#[test]
fn more_than_the_processor() {
    looks_like("overload.txt", &["plan", "overload.toml"], 1);
}

#[test]
fn what_only_the_exact_test_admits() {
    looks_like("closed.txt", &["plan", "closed.toml"], 1);
}

#[test]
fn a_closed_form_that_does_not_apply() {
    looks_like("order.txt", &["plan", "order.toml"], 1);
}

#[test]
fn a_slower_clock() {
    looks_like("slow.txt", &["plan", "closed.toml", "--clock", "2.5MHz"], 1);
    let output = diapason(&["plan", "late.toml", "--clock", "fast"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("for example 2.4GHz"), "{said}");
}

/// Tables 2 and 5 of [USB 2023], and what the standard's limit makes of them.
#[test]
fn buses_that_count_without_the_line_code() {
    let [latency, throughput, ninety] =
        ["latency", "throughput", "ninety"].map(|n| format!("../../../tests/systems/usb-{n}.toml"));
    looks_like("usb-latency.txt", &["plan", &latency], 0);
    looks_like("usb-throughput.txt", &["plan", &throughput], 0);
    looks_like("usb-ninety.txt", &["plan", &ninety], 1);
    looks_like("usb-ninety.json", &["plan", &ninety, "--json"], 1);
}

#[test]
fn modes_of_cameras_that_do_not_fit_together() {
    let modes = "../../../tests/systems/camera-modes.toml";
    looks_like("camera-modes.txt", &["plan", modes], 0);
    looks_like("camera-modes.json", &["plan", modes, "--json"], 0);
}

#[test]
fn nonsense_is_not_planned() {
    let text = std::fs::read_to_string(folder().join("late.toml")).unwrap();
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("nonsense.toml");
    std::fs::write(&file, text.replace("\"4ms\"", "\"11ms\"")).unwrap();
    let output = diapason(&["plan", file.to_str().unwrap()]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("the budget of `filter`, 11ms, exceeds its period, 10ms"), "{said}");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_system_without_vcpus_promises_nothing() {
    let output = diapason(&["plan", "../../../examples/engine.toml"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert!(said.starts_with("no VCPUs: ") && said.ends_with("promises nothing\n"), "{said}");
}

#[test]
fn the_example_holds() {
    assert_eq!(diapason(&["plan", "../../../examples/vcpus.toml"]).status.code(), Some(0));
}

#[test]
fn pipes_to_devices() {
    let example = "../../../examples/can-output.toml";
    looks_like("outputs.txt", &["plan", example], 0);
    let text = std::fs::read_to_string(folder().join(example)).unwrap();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let refused = |name: &str, [from, to]: [&str; 2], title: &str, help: &str| {
        let file = folder.join(name);
        assert!(text.contains(from), "{from}");
        std::fs::write(&file, text.replace(from, to)).unwrap();
        let output = diapason(&["plan", file.to_str().unwrap()]);
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(title) && said.contains(help), "{said}");
    };
    refused(
        "deaf.toml",
        ["\"can3\", \"can4\"]", "\"can3\"]"],
        "`brakes` has no bound: nobody on the bus of channel 4 reads the frames",
        "write `receivers = [\"can4\"]` in `interface`",
    );
    refused(
        "shared.toml",
        ["vcpu = \"read-1\"", "vcpu = \"read-2\""],
        "`body` has no bound: `reader-1` shares its VCPU with another process",
        "give it one of its own",
    );
    refused(
        "unheard.toml",
        ["serves = [\"read-0\", \"write-3\", \"write-4\"]", "serves = [\"read-0\", \"write-3\"]"],
        "`brakes` has no bound: no I/O VCPU `usb-send` of `usbd` serves `writer-4`",
        "add the VCPU of `writer-4` to `serves` of `usb-send`",
    );
    refused(
        "rare.toml",
        ["budget = \"2ms\"\nperiod = \"41ms\"", "budget = \"40ms\"\nperiod = \"820ms\""],
        "`writer-3` measures once a second, and its VCPU has budget once in 820.000 ms",
        "write at most `period = \"500ms\"`",
    );
    refused(
        "unknown.toml",
        ["name = \"usbd.send\"", "name = \"sends\""],
        "`engine` has no bound: nothing says how long `usbd.send` takes",
        "add `[[work]]`",
    );
    refused(
        "slow-bus.toml",
        ["500_000, 500_000, 500_000]", "500_000, 500_000, 100_000]"],
        "messages of `brakes` may take",
        "at most 300.000 ms is wanted",
    );
    refused(
        "fast-bus.toml",
        ["500_000, 500_000, 500_000]", "500_000, 500_000, 1_000_000]"],
        "`brakes` has no bound: the node on the bus of channel 4 takes 327.500 us for a frame",
        "write a shorter `turn`, or a lower rate in `bit_rates`",
    );
    refused(
        "hasty.toml",
        ["latency = \"300ms\"", "latency = \"100ms\""],
        "messages of `brakes` may take 209.106 ms; at most 100.000 ms is wanted",
        "shorten the longest item, taken by the driver",
    );
}

/// The plan checks what they may write, too; somebody has to read it there.
#[test]
fn pipes_to_devices_that_may_be_opened() {
    let example = "../../../examples/tuned-output.toml";
    looks_like("tuned-output.txt", &["plan", example], 0);
    let text = std::fs::read_to_string(folder().join(example)).unwrap();
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("deaf-tuned.toml");
    for (reads, channel) in [("\"can2\"", 3), ("\"can3\"", 2)] {
        let both = "\"can2\", \"can3\"";
        assert!(text.contains(both));
        std::fs::write(&file, text.replace(both, reads)).unwrap();
        let output = diapason(&["plan", file.to_str().unwrap()]);
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        let why = format!("nobody on the bus of channel {channel} reads the frames");
        let help = format!("write `receivers = [\"can{channel}\"]` in `interface`");
        assert!(said.contains(&why) && said.contains(&help), "{said}");
    }
}

/// Pipes that programs may open at run time are in the bills of all pipes beside them.
#[test]
fn pipes_that_may_be_opened() {
    let example = "../../../examples/tuned-pipes.toml";
    looks_like("tuned.txt", &["plan", example], 0);
    looks_like("tuned.json", &["plan", example, "--json"], 0);
    let text = std::fs::read_to_string(folder().join(example)).unwrap();
    let planned = |name: &str, changes: &[[&str; 2]], code| {
        let changed = changes.iter().fold(text.clone(), |text, [from, to]| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        });
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&file, changed).unwrap();
        let output = diapason(&["plan", file.to_str().unwrap()]);
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        said
    };
    // Without them 2.5 ms are enough, with them they are not.
    let (start, end) = (text.find("[[tpipe]]").unwrap(), text.rfind("[[process]]").unwrap());
    let places = &text[start..text[..end].rfind("[[process]]").unwrap()];
    let hasty = ["latency = \"9ms\"", "latency = \"2500us\""];
    let alone = planned("alone.toml", &[hasty, [places, ""]], 0);
    assert!(alone.contains(" ms  2.500 ms "), "{alone}");
    let refused = planned("hasty-tuned.toml", &[hasty], 1);
    let line = 1 + text[..text.find("name = \"engine\"").unwrap()].lines().count();
    let bound = refused.split_once("messages of `engine` may take ").unwrap().1;
    let (bound, rest) = bound.split_once(" ms").unwrap();
    let bound: f64 = bound.parse().unwrap();
    assert!(bound > 2.5 && rest.starts_with("; at most 2.500 ms is wanted"), "{refused}");
    let enough = (bound * 1_000.0).round() as u64 + 1;
    for said in [
        &format!("hasty-tuned.toml:{line}:8"),
        &format!("write `latency = \"{enough}us\"`, or shorten the longest item, user's thread"),
    ] {
        assert!(refused.contains(said), "{said}\n{refused}");
    }
    // More than the processor has, were all of it asked for.
    let heavy = planned("heavy.toml", &[["budget = \"400us\"", "budget = \"3ms\""]], 1);
    assert!(heavy.contains("error: "), "{heavy}");
    let untold = planned("untold.toml", &[["name = \"usbd.tune\"", "name = \"tuned\""]], 1);
    let title = "`engine` has no bound: nothing says how long `usbd.tune` takes";
    assert!(untold.contains(title) && untold.contains("add `[[work]]`"), "{untold}");
}

#[test]
fn chains_of_threads() {
    let example = "../../../examples/can-gateway.toml";
    looks_like("chains.txt", &["plan", example], 0);
    let text = std::fs::read_to_string(folder().join(example)).unwrap();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let refused = |name: &str, [from, to]: [&str; 2], title: &str, help: &str| {
        let file = folder.join(name);
        assert!(text.contains(from), "{from}");
        std::fs::write(&file, text.replace(from, to)).unwrap();
        let output = diapason(&["plan", file.to_str().unwrap()]);
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(title) && said.contains(help), "{said}");
    };
    refused(
        "small.toml",
        ["messages = 32", "messages = 10"],
        "12 messages may wait for `control`; `readings` holds 10",
        "make room for 12 in `readings`",
    );
    refused(
        "impatient.toml",
        ["latency = \"120ms\"", "latency = \"45ms\""],
        "messages of `gateway` may take 48.556 ms; at most 45.000 ms is wanted",
        "shorten the longest item, taken by the driver",
    );
    refused(
        "looking.toml",
        ["every = \"10ms\"", "every = \"4ms\""],
        "`display` may take 16.577 ms and samples every 4.000 ms",
        "make `every` longer",
    );
    refused(
        "working.toml",
        [
            "work = \"25us\"\n\n[[chain.link]]\nprocess = \"writer\"",
            "work = \"90us\"\n\n[[chain.link]]\nprocess = \"writer\"",
        ],
        "`gateway` has no bound: `control`: user's thread: needs",
        "give its VCPU more of the processor",
    );
    refused(
        "modest.toml",
        ["rate = 1400\nburst = 32", "rate = 1400\nburst = 4"],
        "`gateway` may write 18 at once and 1400 a second; `relay` declares less",
        "write `rate = 1400` and `burst = 18` in `relay`",
    );
}

#[test]
fn nothing_boots_that_the_plan_refuses() {
    let plan = String::from_utf8(diapason(&["plan", "late.toml"]).stdout).unwrap();
    let refusal = &plan[plan.find("error: ").unwrap()..plan.find("\n\nlate: ").unwrap()];
    let output = diapason(&["run", "late.toml"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8(output.stderr).unwrap().trim_end(), refusal);
    assert!(output.stdout.is_empty());
}

#[test]
fn a_thousand_vcpus_are_planned_though_they_cannot_boot() {
    let mut text =
        "[system]\nname = \"many\"\n[[process]]\nname = \"p\"\npriority = 1\n".to_owned();
    for i in 0..1_000 {
        let period = 100_000 + 7 * i;
        text += &format!("[[vcpu]]\nname = \"v{i}\"\nreplenishments = 2\n");
        text += &format!("budget = \"40us\"\nperiod = \"{period}us\"\n");
    }
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("many.toml");
    std::fs::write(&file, text).unwrap();
    let output = diapason(&["plan", file.to_str().unwrap(), "--json"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("\"what\": \"the system may have 1000 VCPUs, the kernel schedules 64\""));
    assert!(said.contains("\"exact\": {\n      \"holds\": true\n"), "{}", &said[..600]);
    assert_eq!(said.matches("\"response_ns\"").count(), 1_000);
}

/// A bill counts neither time that a thread lacks nor the use of its VCPU by others: both are
/// refused.
#[test]
fn a_reader_gets_what_its_bill_counts() {
    let text = std::fs::read_to_string(folder().join("../../../examples/can-concentrator.toml"));
    let text = text.unwrap();
    let refused = |name: &str, [from, to]: [&str; 2], title: &str, help: &str| {
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        assert!(text.contains(from), "{from}");
        std::fs::write(&file, text.replacen(from, to, 1)).unwrap();
        let output = diapason(&["plan", file.to_str().unwrap()]);
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(title) && said.contains(help), "{said}");
    };
    refused(
        "tiny.toml",
        ["budget = \"60us\"", "budget = \"2us\""],
        "the kernel may take more than half of each budget of `read-0`",
        "give it at least ",
    );
    refused(
        "threads.toml",
        ["vcpu = \"read-0\"\n", "vcpu = \"read-0\"\nthreads = 2\n"],
        "`engine` has no bound: `reader-0` may have 2 threads on one VCPU",
        "write `threads = 1`",
    );
    refused(
        "guest.toml",
        ["uses = [\"progress\"]", "uses = [\"progress\", \"read-0\"]"],
        "`engine` has no bound: `task-1` may put threads on the VCPU of `reader-0`",
        "take the VCPU out of the `uses` of the other process",
    );
    refused(
        "fewer.toml",
        ["rate = 470", "rate = 462"],
        "`engine` has `rate = 462`, and `interface` has 463 messages a second on channel 0",
        "write `rate = 463`",
    );
    refused(
        "rare.toml",
        ["interval = \"990us\"\nserves", "interval = \"1s\"\nserves"],
        "`engine` has no bound: `usb-receive` is woken more often than its `interval` says",
        "write at most `interval = ",
    );
}

#[test]
fn everything_that_is_missing_is_said_at_once() {
    looks_like("missing.txt", &["plan", "missing.toml"], 1);
}
