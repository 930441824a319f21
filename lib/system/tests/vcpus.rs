//! Virtual CPUs and their queues: what is described arrives, what makes no sense is refused.

use crate::common;
use crate::common::{SERVERS, built, problems, refused};
use diapason_abi::Key;
use diapason_abi::archive::{Archive, NONE, VcpuKind, flags};
use diapason_system::{Place, Scheduling, ServerSpec, parse};

/// Returns one process and one device without keys for VCPUs (lines 1 to 10), then `rest` from line
/// 11.
fn with(rest: &str) -> String {
    format!(
        "[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n[[vcpu]]\nname = \"v\"\n\
         budget = \"1ms\"\nperiod = \"10ms\"\n\n{rest}\n"
    )
}

/// `lines` from line 11, of which the last is wrong.
#[track_caller]
fn bad(lines: &[&str], column: usize, title: &str, help: &str) {
    refused(&with(&lines.join("\n")), (10 + lines.len(), column), title, help);
}

/// A second VCPU with these lines after its name, the last of which is wrong.
#[track_caller]
fn bad_vcpu(lines: &[&str], column: usize, title: &str, help: &str) {
    let all = [&["[[vcpu]]", "name = \"w\""], lines].concat();
    bad(&all, column, title, help);
}

#[test]
fn what_a_job_uses_may_be_described() {
    let text = SERVERS.replacen("background = true", "background = true\njob = \"800us\"", 1);
    let system = parse("servers.toml", &text).unwrap();
    let jobs = system.vcpus.iter().map(|vcpu| match vcpu.server {
        ServerSpec::Main { job_ns, .. } => job_ns,
        ServerSpec::Io { .. } => None,
    });
    assert_eq!(jobs.collect::<Vec<_>>(), [Some(800_000), None, None, None]);
}

#[test]
fn how_often_jobs_come_may_be_described() {
    let rates = |more: &str| {
        let job = format!("background = true\njob = \"800us\"\n{more}");
        let system =
            parse("servers.toml", &SERVERS.replacen("background = true", &job, 1)).unwrap();
        let ServerSpec::Main { interval_ns, wakes, .. } = system.vcpus[0].server else {
            panic!("it is a Main VCPU");
        };
        (interval_ns, wakes)
    };
    assert_eq!(rates(""), (None, 1));
    assert_eq!(rates("interval = \"3ms\"\nwakes = 2"), (Some(3_000_000), 2));
}

const IO: [&str; 2] = ["kind = \"io\"", "interval = \"1ms\""];

#[test]
fn every_key_arrives_in_the_system() {
    let system = parse("servers.toml", SERVERS).unwrap();
    assert_eq!(system.clock_hz, 2_400_000_000);
    assert_eq!(system.scheduling, Scheduling { dp_queues: 2, exact: false });
    let queues: Vec<u8> = system.vcpus.iter().map(|vcpu| vcpu.queue).collect();
    assert_eq!(queues, [0, 1, 2, 1]);
    let sampling = ServerSpec::Main {
        budget_ns: 1_000_000,
        period_ns: 10_000_000,
        replenishments: 4,
        background: true,
        job_ns: None,
        interval_ns: None,
        wakes: 1,
    };
    assert_eq!(system.vcpus[0].server, sampling);
    let closing = ServerSpec::Main {
        budget_ns: 2_000_000,
        period_ns: 20_000_000,
        replenishments: 8,
        background: false,
        job_ns: None,
        interval_ns: None,
        wakes: 1,
    };
    assert_eq!(system.vcpus[1].server, closing);
    let timer = ServerSpec::Io {
        utilization_ppm: 25_000,
        cap_ns: Some(8_000_000),
        interval_ns: 100_000,
        wakes: 3,
        serves: vec![1, 2],
    };
    assert_eq!(system.vcpus[3].server, timer);
    let allowed: Vec<u64> = system.vcpus.iter().map(|vcpu| vcpu.allowed).collect();
    assert_eq!(allowed, [0b01, 0b10, 0b10, 0b11]);
    let on: Vec<_> = system.processes.iter().map(|p| (p.vcpu, p.vcpus)).collect();
    assert_eq!(on, [(Some(0), 2), (Some(1), 0), (None, 0)]);
    assert_eq!(system.devices[0].interrupt.unwrap().interval_ns, Some(100_000));
    assert_eq!((system.vcpu_name(3), system.vcpu_name(4)), (Some("timer-irq"), None));
    assert_eq!(system.vcpus_at_most(), 6);
}

#[test]
fn vcpus_arrive_in_the_archive() {
    let system = parse("servers.toml", SERVERS).unwrap();
    let bytes = built(&system).unwrap();
    let archive = Archive::parse(&bytes).unwrap();
    assert_eq!((archive.header.vcpus, archive.header.dp_queues), (4, 2));
    assert_eq!(archive.header.flags & flags::EXACT, 0);
    let vcpus: Vec<_> = archive.vcpus().collect();
    let keys: Vec<u64> = vcpus.iter().map(|vcpu| vcpu.key).collect();
    assert_eq!(keys, ["sampling", "closing", "logging", "timer-irq"].map(|name| Key::new(name).0));
    let sampling = vcpus[0];
    assert_eq!((sampling.budget, sampling.period), (1_000_000, 10_000_000));
    assert_eq!((sampling.replenishments, sampling.background), (4, true));
    assert_eq!((sampling.kind, sampling.queue, sampling.allowed), (VcpuKind::Main, 0, 1));
    let io = vcpus[3];
    assert_eq!((io.kind, io.utilization_ppm, io.cap), (VcpuKind::Io, 25_000, 8_000_000));
    assert_eq!((io.interval, io.replenishments), (100_000, 3));
    assert_eq!((io.serves, io.queue, io.allowed), (0b110, 1, 0b11));
    let on: Vec<_> = archive.processes().map(|p| (p.vcpu, p.vcpus)).collect();
    assert_eq!(on, [(0, 2), (1, 0), (NONE, 0)]);
    assert_eq!(archive.devices().next().unwrap().interval, 100_000);
}

/// A plan counts what the description says. If programs may make VCPUs, it counts all that the
/// kernel admits.
#[test]
fn no_program_gets_more_than_the_description_says() {
    let most = |text: &str| {
        let bytes = built(&parse("servers.toml", text).unwrap()).unwrap();
        let archive = Archive::parse(&bytes).unwrap();
        archive.vcpus().map(|vcpu| (vcpu.most, vcpu.least)).collect::<Vec<_>>()
    };
    assert_eq!(most(SERVERS), [(0, 0); 4]);
    let makes = "vcpus = 2\n";
    assert!(SERVERS.contains(makes));
    let system = parse("servers.toml", SERVERS).unwrap();
    let described = |vcpu: &diapason_system::VcpuSpec| match vcpu.server {
        ServerSpec::Main { budget_ns, period_ns, .. } => (budget_ns, period_ns),
        ServerSpec::Io { .. } => (0, 0),
    };
    let expected: Vec<(u64, u64)> = system.vcpus.iter().map(described).collect();
    assert_eq!(most(&SERVERS.replace(makes, "")), expected);
    assert_eq!(expected[0], (1_000_000, 10_000_000));
}

#[test]
fn without_words_about_it_scheduling_is_rate_monotonic_and_exact() {
    let system = parse("s", &with("")).unwrap();
    assert_eq!(system.scheduling, Scheduling { dp_queues: 0, exact: true });
    assert_eq!((system.vcpus[0].queue, system.clock_hz), (0, 1_000_000_000));
    let bytes = built(&system).unwrap();
    let header = Archive::parse(&bytes).unwrap().header;
    assert_ne!(header.flags & flags::EXACT, 0);
}

#[test]
fn all_means_one_queue_by_deadline() {
    let text = SERVERS.replace("[[\"sampling\"], [\"closing\"]]", "\"all\"");
    let system = parse("s", &text.replace("fixed = [\"logging\"]\n", "")).unwrap();
    assert_eq!(system.scheduling.dp_queues, 1);
    assert!(system.vcpus.iter().all(|vcpu| vcpu.queue == 0));
    let title = "`dynamic = \"all\"` leaves nothing for `fixed`";
    refused(&text, (9, 10), title, "remove one of the two keys");
}

#[test]
fn an_omitted_list_has_what_the_others_have_not() {
    let system = parse("s", &SERVERS.replace("fixed = [\"logging\"]\n", "")).unwrap();
    assert_eq!(system.vcpus[2].queue, 2);
    let text = SERVERS.replace("dynamic = [[\"sampling\"], [\"closing\"]]\nfixed", "fixed");
    let title = "the queues leave out `sampling` and `closing`";
    let help =
        "add the missing VCPUs, or remove `fixed`: then it has all that `dynamic` leaves out";
    refused(&text, (8, 9), title, help);
}

#[test]
fn lists_of_queues() {
    let list = |lists: &str| with(&format!("[scheduling]\ndynamic = {lists}"));
    let help = "put names into it, or remove it";
    refused(&list("[[], [\"v\"]]"), (12, 12), "an empty list in `dynamic`", help);
    refused(&list("[[\"v\"], [\"v\"]]"), (12, 20), "`v` is in two queues", "remove one of the two");
    let help = "write it as in `dynamic = [[\"control\"], [\"log\"]]`";
    let title = "`dynamic` is a text, expected a list of names";
    refused(&list("[\"v\"]"), (12, 12), title, help);
    refused(
        &list("3"),
        (12, 11),
        "`dynamic` is an integer, expected a list of lists of names",
        help,
    );
    let help = "declare it: `[[vcpu]]` with `name = \"control\"`";
    refused(&list("[[\"control\"]]"), (12, 13), "no VCPU named `control` is declared", help);
    refused(&list("[[\"p\"]]"), (12, 13), "`p` is a process, not a VCPU", "name a VCPU here");
    let help = "write `all`, or a list of queues such as `[[\"a\"]]`";
    refused(&list("\"none\""), (12, 11), "`dynamic` cannot be `none`", help);
}

#[test]
fn too_many_queues() {
    let mut text = "[scheduling]\ndynamic = [".to_owned();
    (0..8).for_each(|i| text += &format!("[\"q{i}\"], "));
    text += "]\n";
    for i in 0..8 {
        text += &format!("[[vcpu]]\nname = \"q{i}\"\nbudget = \"1ms\"\nperiod = \"20ms\"\n");
    }
    let help = "merge neighbouring queues";
    refused(&with(&text), (12, 68), "8 queues by deadline, the most is 7", help);
}

#[test]
fn misspelt_names_are_not_also_left_out() {
    let text = SERVERS.replace("fixed = [\"logging\"]", "fixed = [\"loging\"]");
    refused(&text, (9, 10), "no VCPU named `loging` is declared", "did you mean `logging`?");
}

#[test]
fn an_io_vcpu_stands_in_no_list() {
    let text = SERVERS.replace("fixed = [\"logging\"]", "fixed = [\"logging\", \"timer-irq\"]");
    let help = "name Main VCPUs: an I/O VCPU follows those it serves";
    let title = "`timer-irq` is an I/O VCPU, a Main VCPU is needed here";
    refused(&text, (9, 21), title, help);
}

#[test]
fn scheduling_is_written_once() {
    let help = "write `[scheduling]`, once and with single brackets";
    bad(&["[[scheduling]]"], 1, "`scheduling` is not a single table", help);
    let title = "unknown key `dinamic` in [scheduling]";
    bad(&["[scheduling]", "dinamic = []"], 1, title, "did you mean `dynamic`?");
    let title = "`admission` cannot be `quick`";
    bad(&["[scheduling]", "admission = \"quick\""], 13, title, "write `exact` or `closed`");
}

#[test]
fn budgets_and_periods() {
    let help = "write a budget of at most `\"10ms\"`, or a longer period";
    let title = "the budget of `v`, 11ms, exceeds its period, 10ms";
    refused(&with("").replace("1ms", "11ms"), (8, 10), title, help);
    assert!(parse("f", &with("").replace("1ms", "10ms")).is_ok());
    let help = "write a time from `10us` to `1000s`";
    for period in ["0ms", "9999ns", "3601s"] {
        let text = with("").replace("10ms", period);
        refused(&text, (9, 10), "`period` is out of range", help);
    }
    let help = "write a time from `1us` to `1000s`";
    for budget in ["0ms", "999ns"] {
        let text = with("").replace("1ms", budget);
        refused(&text, (8, 10), "`budget` is out of range", help);
    }
    let text = with("").replace("\"1ms\"", "\"1 ms\"");
    refused(&text, (8, 10), "`1 ms` is not a duration", "write `\"1ms\"`");
}

#[test]
fn keys_of_a_main_vcpu() {
    let title = "VCPU `v` has no `budget`";
    let help = "add `budget = \"1ms\"`: the time it may use in every period";
    refused(&with("").replace("budget = \"1ms\"\n", ""), (7, 8), title, help);
    let title = "VCPU `v` has no `period`";
    let help = "add `period = \"10ms\"`: how often its budget comes back";
    refused(&with("").replace("period = \"10ms\"\n", ""), (7, 8), title, help);
    let rest = ["budget = \"1ms\"", "period = \"1s\""];
    let last = |line: &'static str| [&rest[..], &[line]].concat();
    let help = "write a whole number from 2 to 8, the length of its list";
    let title = "`replenishments` is 9, out of range";
    bad_vcpu(&last("replenishments = 9"), 18, title, help);
    let title = "`background` is a text, expected `true` or `false`";
    bad_vcpu(&last("background = \"yes\""), 14, title, "write it as in `background = true`");
    let help = "remove it, or add `kind = \"io\"` if bottom halves run here";
    for (key, value) in [("utilization", "\"5%\""), ("cap", "\"1ms\""), ("serves", "[\"v\"]")] {
        let line = format!("{key} = {value}");
        let title = format!("a Main VCPU has no `{key}`");
        bad_vcpu(&[rest[0], rest[1], &line], key.len() + 4, &title, help);
    }
    let title = "`kind` cannot be `i/o`";
    bad_vcpu(&["kind = \"i/o\""], 8, title, "did you mean `\"io\"`?");
}

#[test]
fn keys_of_an_io_vcpu() {
    let last = |lines: &[&'static str]| [&IO[..], lines].concat();
    let help = "remove it: an I/O VCPU has a `utilization` and takes the period of the Main VCPU \
                it works for";
    let sound = ["utilization = \"5%\"", "serves = [\"v\"]"];
    for (key, line) in [
        ("budget", "budget = \"1ms\""),
        ("period", "period = \"1ms\""),
        ("replenishments", "replenishments = 2"),
        ("background", "background = false"),
    ] {
        let title = format!("an I/O VCPU has no `{key}`");
        bad_vcpu(&last(&[sound[0], sound[1], line]), key.len() + 4, &title, help);
    }
    let place = (12, 8);
    let text = |lines: &[&str]| with(&[&["[[vcpu]]", "name = \"w\""], lines].concat().join("\n"));
    let help = "add `utilization = \"5%\"`: its share of the processor";
    refused(&text(&last(&[sound[1]])), place, "VCPU `w` has no `utilization`", help);
    let help = "add `serves = [\"…\"]`: the Main VCPUs it works for";
    refused(&text(&last(&[sound[0]])), place, "VCPU `w` has no `serves`", help);
    let help = "add `interval = \"1ms\"`: the shortest time between two of its wake-ups";
    let lines = [IO[0], sound[0], sound[1]];
    refused(&text(&lines), place, "VCPU `w` has no `interval`", help);
}

#[test]
fn wake_ups_in_an_interval() {
    let io = "kind = \"io\"\nutilization = \"5%\"\nserves = [\"v\"]\ninterval = \"1ms\"";
    let text = |more: &str| with(&format!("[[vcpu]]\nname = \"w\"\n{io}\n{more}"));
    let wakes = |more: &str| match parse("s", &text(more)).unwrap().vcpus[1].server {
        ServerSpec::Io { wakes, .. } => wakes,
        ServerSpec::Main { .. } => 0,
    };
    assert_eq!((wakes(""), wakes("wakes = 8")), (1, 8));
    for number in [0, 9] {
        let title = format!("`wakes` is {number}, out of range");
        let help = "write a whole number from 1 to 8, its wake-ups in an `interval`";
        refused(&text(&format!("wakes = {number}")), (17, 9), &title, help);
    }
    let help = "add `job`, the most budget of the jobs that it speaks of, or `kind = \"io\"` if \
                bottom halves run here";
    let lines = ["budget = \"1ms\"", "period = \"9ms\"", "wakes = 2"];
    bad_vcpu(&lines, 9, "a Main VCPU without `job` has no `wakes`", help);
}

#[test]
fn shares() {
    let last = |line: &'static str| [IO[0], IO[1], "serves = [\"v\"]", line];
    let help = "write it as in `utilization = \"5%\"`";
    for share in ["5 %", "a lot", "0.00001%"] {
        let line: &'static str = format!("utilization = \"{share}\"").leak();
        bad_vcpu(&last(line), 15, &format!("`{share}` is not a share"), help);
    }
    let help = "write a share above `\"0%\"`, of at most `\"100%\"`";
    let title = "`utilization` is 120%, out of range";
    bad_vcpu(&last("utilization = \"120%\""), 15, title, help);
    bad_vcpu(&last("utilization = \"0%\""), 15, "`utilization` is 0%, out of range", help);
    let title = "`utilization` is an integer, expected a text in quotes";
    bad_vcpu(&last("utilization = 5"), 15, title, "write it as in `utilization = \"5%\"`");
    for share in ["100%", "50‰", "100ppm"] {
        let line: &'static str = format!("utilization = \"{share}\"").leak();
        let lines = [&["[[vcpu]]", "name = \"w\""], &last(line)[..]].concat();
        assert!(parse("f", &with(&lines.join("\n"))).is_ok(), "{share}");
    }
}

#[test]
fn a_share_too_small_to_be_granted() {
    let lines = [IO[0], IO[1], "serves = [\"v\"]", "utilization = \"99ppm\""];
    let title = "`w` gets only 990ns at a time, the least is 1us";
    bad_vcpu(&lines, 15, title, "write at least `utilization = \"0.01%\"`");
    let lines = [IO[0], IO[1], "serves = [\"v\"]", "cap = \"10us\"", "utilization = \"5%\""];
    let title = "`w` gets only 500ns at a time, the least is 1us";
    bad_vcpu(&lines, 15, title, "write at least `utilization = \"10%\"`");
}

#[test]
fn whom_an_io_vcpu_serves() {
    let last = |line: &'static str| [IO[0], IO[1], "utilization = \"5%\"", line];
    let text = SERVERS.replace("serves = [\"closing\", \"logging\"]", "serves = []");
    let help = "name the Main VCPUs it works for: it takes their period";
    refused(&text, (62, 10), "an I/O VCPU that serves nobody", help);
    let title = "`serves` is an integer, expected a list of names";
    bad_vcpu(&last("serves = [3]"), 11, title, "write it as in `serves = [\"control\"]`");
    let help = "name Main VCPUs: an I/O VCPU follows those it serves";
    let title = "`w` is an I/O VCPU, a Main VCPU is needed here";
    bad_vcpu(&last("serves = [\"w\"]"), 11, title, help);
    let title = "no VCPU named `vv` is declared";
    bad_vcpu(&last("serves = [\"vv\"]"), 11, title, "did you mean `v`?");
    let title = "`v` is in `serves` twice";
    bad_vcpu(&last("serves = [\"v\", \"v\"]"), 16, title, "remove one of the two");
}

#[test]
fn processes_on_vcpus() {
    let process =
        |line: &str| with("").replace("priority = 1\n", &format!("priority = 1\n{line}\n"));
    let help = "declare it: `[[vcpu]]` with `name = \"control\"`";
    let title = "no VCPU named `control` is declared";
    refused(&process("vcpu = \"control\""), (6, 8), title, help);
    refused(&process("vcpu = \"p\""), (6, 8), "`p` is a process, not a VCPU", "name a VCPU here");
    let help = "write a whole number from 0 to 64";
    refused(&process("vcpus = 65"), (6, 9), "`vcpus` is 65, out of range", help);
    assert!(parse("f", &process("vcpu = \"v\"\nuses = [\"v\"]\nvcpus = 63")).is_ok());
}

#[test]
fn names_are_shared_with_everything_else() {
    let help = "rename one: processes, objects, segments, devices and VCPUs share one space";
    let lines =
        ["[[condition]]", "name = \"c\"", "[[vcpu]]", "budget = \"1ms\"", "period = \"1s\""];
    let lines = [&lines[..], &["name = \"c\""]].concat();
    bad(&lines, 8, "the name `c` is declared twice", help);
}

#[test]
fn interrupts_need_a_bound() {
    let device = ["[[device]]", "name = \"d\"", "address = 0xfed00000", "size = \"4K\"", "irq = 3"];
    let help = "add `interval = \"1ms\"`, the shortest time between two of its interrupts";
    bad(&device, 7, "nothing bounds how often `d` interrupts", help);
    let help = "write a time from `1us` to `3600s`";
    let lines = [&device[..], &["interval = \"0us\""]].concat();
    let text = with(&lines.join("\n"));
    let titles: Vec<_> = problems(&text).items().iter().map(|item| item.help.to_owned()).collect();
    assert_eq!(titles[1], help);
    let help = "add `irq = …`, the device's interrupt line, or remove `interval`";
    let lines = [&device[..4], &["interval = \"1ms\""]].concat();
    bad(&lines, 12, "`interval` without `irq`", help);
}

#[test]
fn clocks() {
    let clock = |clock: &str| with("").replace("\"s\"\n", &format!("\"s\"\nclock = \"{clock}\"\n"));
    let help = "write it as in `clock = \"2400MHz\"`";
    refused(&clock("2.4GHz"), (3, 9), "`2.4GHz` is not a frequency", help);
    let help = "write a frequency from `1MHz` to `10GHz`";
    refused(&clock("11GHz"), (3, 9), "`clock` is out of range", help);
    assert_eq!(parse("f", &clock("25MHz")).unwrap().clock_hz, 25_000_000);
}

fn many(count: usize) -> String {
    let one = |i: usize| format!("[[vcpu]]\nname = \"v{i}\"\nbudget = \"1us\"\nperiod = \"1s\"\n");
    with(&(1..count).map(one).collect::<String>())
}

#[test]
fn a_description_may_have_more_vcpus_than_the_kernel() {
    let found = built(&parse("engine.toml", &many(65)).unwrap()).unwrap_err();
    let title = "the system may have 65 VCPUs, the kernel schedules 64";
    let help = "do with 1 fewer: put several threads on one";
    common::is_only(&found, (11 + 63 * 4 + 1, 8), title, help);
    assert!(built(&parse("engine.toml", &many(64)).unwrap()).is_ok());
    let text = many(64).replace("priority = 1", "priority = 1\nvcpus = 2");
    let found = built(&parse("engine.toml", &text).unwrap()).unwrap_err();
    let title = "the system may have 66 VCPUs, the kernel schedules 64";
    common::is_only(&found, (2, 8), title, "do with 2 fewer: put several threads on one");
    assert!(parse("engine.toml", &many(1024)).is_ok());
    let place = (11 + 1023 * 4 + 1, 8);
    let help = "remove 1 of them, or merge some";
    refused(&many(1025), place, "1025 VCPUs, the most is 1024", help);
}

#[test]
fn another_stage_points_at_the_text_too() {
    let system = parse("servers.toml", SERVERS).unwrap();
    let shown = system.problem(Place::Vcpu(1), ["wrong", "here", "fact", "remedy"]).plain();
    assert!(shown.starts_with("error: wrong\n  --> servers.toml:45:8\n"), "{shown}");
    assert!(shown.contains("^^^^^^^^^ here") && shown.contains("= note: fact"), "{shown}");
    let shown = system.problem(Place::Scheduling, ["wrong", "", "", "remedy"]).plain();
    assert!(shown.contains("servers.toml:7:1\n") && !shown.contains("note"), "{shown}");
    let nowhere = system.problem(Place::Vcpu(99), ["wrong", "", "", "remedy"]);
    assert_eq!(nowhere.items()[0].line, 1);
}
