//! Several cores: what each has, what reaches another, and what cannot.

use crate::common::built;
use diapason_abi::archive::{Archive, Location, NONE};
use diapason_system::{Diagnostics, PipeEnd, ServerSpec, System, companions, parse, parse_cores};

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
fn each_kernel_has_the_segment_for_consoles() {
    let console = "[[segment]]\nname = \"kernel.console\"\nsize = \"64K\"\ndma = true\n";
    for (user, by) in [("", [0, 0]), ("kept", [0b10, 0])] {
        let keeper = "[[process]]\nname = \"kept\"\npriority = 3\nuses = [\"kernel.console\"]\n";
        let keeper = if user.is_empty() { "" } else { keeper };
        let found = cores(&two(&format!("{console}{keeper}")));
        for (system, by) in found.iter().zip(by) {
            let segment = system.segments.iter().find(|it| it.name == "kernel.console").unwrap();
            assert!(segment.common && segment.dma);
            assert_eq!(segment.allowed, by, "core {}", system.core);
        }
    }
    let both = two(console).replace("[\"log\"", "[\"kernel.console\", \"log\"");
    refused(&both, "the segment for devices `kernel.console` is used on cores 0 and 1");
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
    let find = |file: &str| Err(format!("there is no {file}"));
    let far = companions("far.toml", FAR, find).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(far, [["usbd"], ["control"]], "the reader looks by itself");
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

/// A sensor whose reader is on another core than the server.
const FAR: &str = "[system]\nname = \"far\"\nmemory = \"64M\"\ncores = 2\n[usbd]\n\
    [[usb]]\nname = \"sensor\"\non = \"xhci\"\nport = 1\nmodel = \"sensor\"\n\
    [[pipe]]\nname = \"values\"\nfrom = \"sensor\"\nbytes = 512\nstamp = 16\n\
    period = \"2500us\"\nreader = \"control\"\nwork = \"20us\"\n\
    [[process]]\nname = \"control\"\nprogram = \"sensor-pipe\"\ncore = 1\npriority = 30\n\
    vcpu = \"control-cpu\"\n\
    [[vcpu]]\nname = \"control-cpu\"\nbudget = \"500us\"\nperiod = \"5ms\"\n";

fn found<T>(all: &[T], is: impl Fn(&T) -> bool) -> &T {
    all.iter().find(|one| is(one)).expect("it is there")
}

#[test]
fn a_pipe_leads_to_a_reader_on_another_core() {
    let [server, reader] = &cores(FAR)[..] else { panic!("two cores") };
    assert_eq!(server.pipes[0].end, PipeEnd::Beyond { core: 1, process: 0 });
    assert_eq!((server.far.len(), reader.pipes.len()), (0, 0));
    let far = &reader.far[0];
    assert_eq!((far.name.as_str(), far.process, far.number), ("values", 0, server.pipes[0].number));
    assert_eq!((reader.pipe_ends(0), server.pipe_ends(0)), (1, 0));
    for system in [server, reader] {
        let ring = found(&system.segments, |it| it.name == "sensor");
        assert!(ring.common && ring.allowed == 1, "both ends have it");
    }
    // The reader looks by itself. The server gives a semaphore that nobody takes.
    assert!(reader.semaphores.is_empty());
    assert_eq!(found(&server.semaphores, |it| it.name == "sensor.ready").allowed, 1);
    let vcpu = found(&server.vcpus, |it| it.name == "usb-sensor");
    let ServerSpec::Io { serves, .. } = &vcpu.server else { panic!("{vcpu:?}") };
    assert_eq!(server.vcpus[usize::from(serves[0])].name, "usb-manage", "no VCPU of core 1");
    let near = FAR.replace("core = 1\n", "").replace("cores = 2", "cores = 1");
    let near = parse("f", &near).unwrap();
    assert_eq!((near.pipes[0].end, near.far.len()), (PipeEnd::Here(1), 0));
    assert_eq!(found(&near.semaphores, |it| it.name == "sensor.ready").allowed, 0b11);
}

#[test]
fn the_places_of_a_camera_are_for_devices_and_in_common() {
    let text = include_str!("../../../examples/four-cameras.toml");
    let all = cores(text);
    for (core, name) in [(1, "camera1.data"), (2, "camera2.data"), (3, "camera3.data")] {
        for system in [&all[0], &all[core]] {
            let places = found(&system.segments, |it| it.name == name);
            assert!(places.dma && places.common, "{name} on core {}", system.core);
        }
    }
    let near = found(&all[0].segments, |it| it.name == "camera.data");
    assert!(near.dma && !near.common, "its reader is on the core of the server");
    let thief = "vcpu = \"rear-cpu\"\n[[process]]\nname = \"thief\"\ncore = 3\npriority = 1\n\
                 uses = [\"camera1.data\"]\n";
    let stolen = text.replacen("vcpu = \"rear-cpu\"\n", thief, 1);
    refused(&stolen, "`thief` uses `camera1.data`, which belongs to others");
}

#[test]
fn what_leads_to_another_core_and_cannot_is_refused() {
    let chain = "[[chain]]\nname = \"c\"\nfrom = \"values\"\nlatency = \"50ms\"\n\
                 [[chain.link]]\nprocess = \"next\"\nby = \"box\"\nwork = \"10us\"\n\
                 [[process]]\nname = \"next\"\ncore = 1\npriority = 3\nvcpu = \"next-cpu\"\n\
                 [[vcpu]]\nname = \"next-cpu\"\nbudget = \"500us\"\nperiod = \"5ms\"\n";
    let title = "the chain `c` has the pipe `values`, which leads to another core";
    refused(&format!("{FAR}{chain}"), title);
    // Somebody who asks for messages, who writes them, and who reads a CAN channel, does so on the
    // core of the server.
    let apart = |text: &str, reader: &str| {
        let own = format!("[[process]]\nname = \"{reader}\"\n");
        assert!(text.contains(&own), "{reader}");
        let text = text.replacen("[system]\n", "[system]\ncores = 2\n", 1);
        text.replacen(&own, &format!("{own}core = 1\n"), 1)
    };
    let disk = include_str!("../../../examples/disk.toml");
    refused(&apart(disk, "reader"), "`blocks` ends on core 1, and its server is on core 0");
    let actuator = include_str!("../../../examples/actuator.toml");
    refused(&apart(actuator, "control"), "`commands` ends on core 1, and its server is on core 0");
    let can = include_str!("../../../examples/can-concentrator.toml");
    refused(&apart(can, "reader-1"), "`body` ends on core 1, and its server is on core 0");
}
