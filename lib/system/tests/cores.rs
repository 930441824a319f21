//! Several cores: what each has, what reaches another, and what cannot.

use crate::common::built;
use diapason_abi::archive::{Archive, Location, NONE};
use diapason_system::{Diagnostics, System, companions, parse, parse_cores};

/// Two cores with a process each, and `more`.
fn two(more: &str) -> String {
    format!(
        "[system]\nname = \"two\"\ncores = 2\nmemory = \"64M\"\n\
         [[process]]\nname = \"left\"\npriority = 1\nuses = [\"log\", \"ready\"]\n\
         [[process]]\nname = \"right\"\ncore = 1\npriority = 2\nuses = [\"log\"]\n\
         [[segment]]\nname = \"log\"\nsize = \"8K\"\n\
         [[doorbell]]\nname = \"ready\"\nwakes = \"right\"\ninterval = \"1ms\"\n{more}"
    )
}

fn cores(text: &str) -> Vec<System> {
    parse_cores("f", text).unwrap_or_else(|bad| panic!("{bad}"))
}

#[track_caller]
fn refused(text: &str, title: &str) {
    let bad: Diagnostics = parse_cores("f", text).unwrap_err();
    let titles: Vec<&str> = bad.items().iter().map(|item| item.title).collect();
    assert!(titles.contains(&title), "{bad}");
}

#[test]
fn each_core_is_a_system_with_its_own_processes() {
    let own = "[[process]]\nname = \"other\"\npriority = 3\nvcpu = \"v\"\nuses = [\"box\"]\n\
               [[mailbox]]\nname = \"box\"\nmessages = 2\n\
               [[vcpu]]\nname = \"v\"\nbudget = \"1ms\"\nperiod = \"5ms\"\n";
    let found = cores(&two(own));
    let names = |system: &System| -> Vec<String> {
        system.processes.iter().map(|process| process.name.clone()).collect()
    };
    assert_eq!(found.iter().map(|s| (s.core, s.cores)).collect::<Vec<_>>(), [(0, 2), (1, 2)]);
    assert_eq!(names(&found[0]), ["left", "other"]);
    assert_eq!(names(&found[1]), ["right"]);
    assert_eq!(found.iter().map(|s| s.memory >> 20).collect::<Vec<_>>(), [32, 32]);
    assert_eq!((found[0].mailboxes.len(), found[0].vcpus.len()), (1, 1));
    assert_eq!((found[1].mailboxes.len(), found[1].vcpus.len()), (0, 0));
}

#[test]
fn segments_and_doorbells_reach_both() {
    let found = cores(&two(""));
    for system in &found {
        assert!(system.segments[0].common && system.segments[0].allowed == 1);
        let bell = &system.devices[0];
        assert_eq!(bell.location, Location::Bell { core: 1, number: 0 });
        assert_eq!(bell.allowed, 1, "the one rings it, the other answers");
        assert_eq!(bell.interrupt.is_some(), system.core == 1);
    }
    let archives = found.iter().map(|system| built(system).unwrap());
    for (bytes, core) in archives.zip(0..) {
        let archive = Archive::parse(&bytes).unwrap();
        assert!(archive.segment(0).common);
        let bell = archive.device(0).unwrap();
        assert_eq!((bell.irq != NONE, bell.interval), (core == 1, core * 1_000_000));
    }
}

#[test]
fn a_segment_of_one_core_is_not_in_common() {
    let own = "[[segment]]\nname = \"own\"\nsize = \"4K\"\n\
               [[process]]\nname = \"p\"\npriority = 1\ncore = 1\nuses = [\"own\"]\n";
    let found = cores(&two(own));
    assert_eq!(found[0].segments.len(), 1);
    assert_eq!(found[1].segments.iter().map(|s| s.common).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn a_doorbell_works_on_one_core_too() {
    let text = two("").replace("cores = 2\n", "").replace("core = 1\n", "");
    let [system] = &cores(&text)[..] else { panic!("one core") };
    assert!(!system.segments[0].common);
    assert_eq!(system.devices[0].location, Location::Bell { core: 0, number: 0 });
    assert!(system.devices[0].interrupt.is_some() && system.devices[0].allowed == 0b11);
}

#[test]
fn what_only_one_core_can_have_is_refused_on_two() {
    for (noun, table) in [
        ("semaphore", "[[semaphore]]\nname = \"x\"\n"),
        ("condition", "[[condition]]\nname = \"x\"\n"),
        ("mailbox", "[[mailbox]]\nname = \"x\"\nmessages = 1\n"),
        ("VCPU", "[[vcpu]]\nname = \"x\"\nbudget = \"1ms\"\nperiod = \"5ms\"\n"),
        ("segment for devices", "[[segment]]\nname = \"x\"\nsize = \"4K\"\ndma = true\n"),
        ("device", "[[device]]\nname = \"x\"\naddress = 0xfed00000\nsize = \"4K\"\n"),
    ] {
        let text = two(table).replace("[\"log\"", "[\"log\", \"x\"");
        refused(&text, &format!("the {noun} `x` is used on cores 0 and 1"));
    }
}

#[test]
fn what_makes_no_sense_is_told() {
    let three = two("").replace("core = 1", "core = 3");
    refused(&three, "`right` is on core 3, and there is no such core");
    refused(&two("").replace("cores = 2", "cores = 3"), "core 2 has no process");
    refused(&two("").replace("cores = 2\n", ""), "`right` is on core 1, and there is no such core");
    refused(&two("").replace("cores = 2", "cores = 9"), "`cores` is 9, out of range");
    let starts = two("").replace("uses = [\"log\", ", "starts = [\"right\"]\nuses = [\"log\", ");
    refused(&starts, "`left` on core 0 starts `right`, which is on core 1");
    let supervised = two("").replace("core = 1\n", "core = 1\nsupervisor = \"left\"\n");
    refused(&supervised, "`right` on core 1 is supervised by `left`, which is on core 0");
    refused(
        &two("").replace("wakes = \"right\"", "wakes = \"wrong\""),
        "no process named `wrong` is declared",
    );
    let vcpu = "[[vcpu]]\nname = \"v\"\nbudget = \"1ms\"\nperiod = \"5ms\"\n";
    let unbounded = two(vcpu).replace("interval = \"1ms\"\n", "");
    refused(&unbounded, "nothing bounds how often `ready` rings");
    let reboot = "[[fault]]\nat = \"1s\"\nwhat = \"reboot\"\nfor = \"10ms\"\n";
    refused(&two(reboot), "a host with several cores cannot lose its power in the simulator");
    let serves = "[[process]]\nname = \"a\"\npriority = 1\nvcpu = \"main\"\n\
                  [[process]]\nname = \"b\"\npriority = 1\ncore = 1\nvcpu = \"io\"\n\
                  [[vcpu]]\nname = \"main\"\nbudget = \"1ms\"\nperiod = \"5ms\"\n\
                  [[vcpu]]\nname = \"io\"\nkind = \"io\"\nutilization = \"5%\"\n\
                  interval = \"1ms\"\nserves = [\"main\"]\n";
    refused(&two(serves), "`main` is on core 0, and `io` is not");
}

#[test]
fn who_can_take_one_core_only_says_so() {
    let bad = parse("f", &two("")).unwrap_err();
    let items = bad.items();
    assert_eq!(items[0].title, "`two` has 2 cores, and here there can be one");
}

/// Returns a description of one core with a second one, on which one more process runs.
fn with_second_core(text: &str) -> String {
    let text = text.replacen("[system]\n", "[system]\ncores = 2\n", 1);
    text + "\n[[process]]\nname = \"other\"\ncore = 1\npriority = 1\n"
}

#[test]
fn chains_and_tuned_pipes_are_on_the_core_of_their_processes() {
    let gateway = include_str!("../../../examples/can-gateway.toml");
    let found = cores(&with_second_core(gateway));
    assert_eq!(found.iter().map(|system| system.chains.len()).collect::<Vec<_>>(), [2, 0]);
    let tuned = include_str!("../../../examples/tuned-pipes.toml");
    let found = cores(&with_second_core(tuned));
    let tpipes = parse("f", tuned).unwrap().tpipes.len();
    assert!(tpipes > 0);
    assert_eq!(found.iter().map(|system| system.tpipes.len()).collect::<Vec<_>>(), [tpipes, 0]);
}

#[test]
fn a_chain_is_on_one_core() {
    let gateway = include_str!("../../../examples/can-gateway.toml");
    let display = "name = \"display\"\n";
    assert!(gateway.contains(display));
    let apart = gateway.replacen(display, "name = \"display\"\ncore = 1\n", 1);
    refused(&with_second_core(&apart), "the threads of chain `panel` are on cores 0 and 1");
}

/// Processes that share something that cannot reach another core stay together.
#[test]
fn companions_share_more_than_segments_and_doorbells() {
    let process = |name: &str, more: &str| {
        format!("[[process]]\nname = \"{name}\"\nprogram = \"task\"\npriority = 1\n{more}\n")
    };
    let groups = |tables: &[String], objects: &str| {
        let text = format!("[system]\nname = \"s\"\n{}{objects}", tables.concat());
        let find = |file: &str| Err(format!("there is no {file}"));
        companions("s.toml", &text, find).unwrap_or_else(|wrong| panic!("{wrong}"))
    };
    let segment = "[[segment]]\nname = \"board\"\nsize = \"4K\"\n";
    let both = |used: &str| [process("a", used), process("b", used)];
    let board = both("uses = [\"board\"]");
    assert_eq!(groups(&board, segment), [["a"], ["b"]]);
    assert_eq!(groups(&board, &format!("{segment}dma = true\n")), [["a", "b"]]);
    let lock = both("uses = [\"lock\"]");
    assert_eq!(groups(&lock, "[[semaphore]]\nname = \"lock\"\n"), [["a", "b"]]);
    // The process of that name supervises all that say nothing.
    let watched = [process("a", ""), process("supervisor", "")];
    assert_eq!(groups(&watched, ""), [["a", "supervisor"]]);
}
