//! A sound description becomes the system it describes, and the archive says the same.

use crate::common;
use crate::common::{ENGINE, OPTIONS, built, is_only, program, program_named, told};
use diapason_abi::archive::{Archive, Location, NONE, ObjectKind, flags};
use diapason_abi::settings::{Settings, WORDS};
use diapason_abi::{Key, call};
use diapason_system::{Interrupt, Permit, Restart, SemaphoreKind, Setting, build, parse};

#[test]
fn every_key_arrives_in_the_system() {
    let system = parse("engine.toml", ENGINE).unwrap();
    assert_eq!((system.name.as_str(), system.memory), ("engine", 32 << 20));
    let sensors = &system.processes[0];
    assert_eq!(sensors.program, "engine-sensors");
    assert_eq!((sensors.priority, sensors.heap, sensors.stack), (40, 65536, 32768));
    assert_eq!((sensors.threads, sensors.semaphores), (3, 2));
    assert_eq!((sensors.conditions, sensors.events), (1, 4));
    assert_eq!((sensors.restart, sensors.backoff_ns), (Restart::AtMost(3), 5_000_000));
    assert_eq!(sensors.arguments, [20, u64::MAX, 0, 0]);
    assert_eq!((sensors.supervisor, sensors.start_at_boot), (Some(3), true));
    assert_eq!(sensors.uses.len(), 5);
    assert_eq!(system.semaphores[1].kind, SemaphoreKind::Counting(8));
    assert_eq!(system.semaphores[1].allowed, 0b10);
    assert_eq!(system.segments[0].size, 16384);
    assert_eq!(
        system.devices[0].interrupt,
        Some(Interrupt { irq: 2, level: true, interval_ns: None })
    );
}

#[test]
fn what_is_not_said_has_its_default() {
    let text = "[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n";
    let system = parse("s.toml", text).unwrap();
    let p = &system.processes[0];
    assert_eq!(system.memory, 64 << 20);
    assert_eq!((p.program.as_str(), p.heap, p.stack, p.threads), ("p", 0, 16384, 1));
    assert_eq!((p.semaphores, p.conditions, p.events), (0, 0, 0));
    assert_eq!((p.restart, p.backoff_ns), (Restart::Never, 10_000_000));
    assert_eq!((p.supervisor, p.start_at_boot, p.arguments), (None, true, [0; 4]));
    assert!(system.mailboxes.is_empty());
}

#[test]
fn indices_have_names() {
    let system = parse("engine.toml", ENGINE).unwrap();
    assert_eq!(system.process_name(1), Some("control"));
    assert_eq!(system.process_name(4), None);
    let objects: Vec<&str> = (0..9).filter_map(|index| system.object_name(index)).collect();
    let expected = ["throttle", "free-slots", "changed", "readings", "supervisor.faults"];
    assert_eq!(objects, expected);
    assert_eq!(system.segment_name(0), Some("samples"));
    assert_eq!(system.device_name(0), Some("hpet"));
}

#[test]
fn processes_arrive_in_the_archive() {
    let system = parse("engine.toml", ENGINE).unwrap();
    let bytes = built(&system).unwrap();
    let archive = Archive::parse(&bytes).unwrap();
    let header = archive.header;
    assert_eq!(header.length as usize, bytes.len());
    assert_eq!(header.flags, flags::RECORD | flags::WATCH | flags::EXACT);
    assert_eq!((header.horizon, header.recorder_bytes), (OPTIONS.horizon_ns, 65536));
    let processes: Vec<_> = archive.processes().collect();
    for (process, record) in system.processes.iter().zip(&processes) {
        assert_eq!(record.key, Key::new(&process.name).0);
        assert_eq!(archive.image(record), Ok(&program_named(&process.program)[..]));
    }
    let sensors = &processes[0];
    assert_eq!((sensors.stack_pages, sensors.heap_pages), (8, 16));
    assert_eq!((sensors.restarts_max, sensors.backoff), (3, 5_000_000));
    assert_eq!((processes[1].restarts_max, processes[2].restarts_max), (u32::MAX, 0));
    assert_eq!((sensors.supervisor, processes[3].supervisor), (3, NONE));
}

#[test]
fn a_supervisor_may_start_what_it_supervises() {
    let system = parse("engine.toml", ENGINE).unwrap();
    let bytes = built(&system).unwrap();
    let archive = Archive::parse(&bytes).unwrap();
    let starters: Vec<u64> = archive.processes().map(|process| process.starters).collect();
    assert_eq!(starters, [0b1000, 0b1000, 0b10, 0]);
}

#[test]
fn objects_segments_and_devices_arrive_in_the_archive() {
    let system = parse("engine.toml", ENGINE).unwrap();
    let bytes = built(&system).unwrap();
    let archive = Archive::parse(&bytes).unwrap();
    let objects: Vec<_> = archive.objects().collect();
    assert_eq!((objects[0].initial, objects[1].initial), (call::MUTEX, 8));
    assert_eq!(objects[2].kind, ObjectKind::Condition);
    assert_eq!((objects[3].capacity, objects[3].faults_of), (8, NONE));
    let faults = objects[4];
    assert_eq!(faults.key, Key::new("supervisor.faults").0);
    assert_eq!((faults.kind, faults.capacity), (ObjectKind::Mailbox, 2));
    assert_eq!((faults.allowed, faults.faults_of), (0b1000, 3));
    let segment = archive.segments().next().unwrap();
    assert_eq!((segment.pages, segment.allowed), (4, 0b11));
    let device = archive.devices().next().unwrap();
    assert_eq!((device.location, device.pages), (Location::Address(0xfed0_0000), 1));
    assert_eq!((device.irq, device.level, device.allowed), (2, true, 1));
}

#[test]
fn only_the_server_of_a_mailbox_may_lock_its_mutex() {
    let process = |name: &str| {
        format!("[[process]]\nname = \"{name}\"\nprogram = \"p\"\npriority = 1\nuses = [\"b\"]\n")
    };
    let text = format!(
        "[system]\nname = \"s\"\n{}{}[[mailbox]]\nname = \"b\"\nserver = \"serves\"\n",
        process("asks"),
        process("serves")
    );
    let system = parse("s.toml", &text).unwrap();
    // A plan counts a section of each, since both wait for the mutex.
    assert_eq!(system.semaphores[0].allowed, 0b11);
    let bytes = build(Permit::granted(), &system, &OPTIONS, &mut |_| Ok(program())).unwrap();
    let objects: Vec<_> = Archive::parse(&bytes).unwrap().objects().collect();
    let (mutex, mailbox) = (objects[0], objects[1]);
    assert_eq!((mutex.key, mutex.allowed), (Key::server("b").0, 0b10));
    assert_eq!((mailbox.key, mailbox.allowed, mailbox.mutex), (Key::new("b").0, 0b11, 0));
}

#[test]
fn a_program_is_stored_once_and_asked_for_once() {
    let text = "[system]\nname = \"s\"\n[[process]]\nname = \"a\"\nprogram = \"p\"\npriority = 1\n\
                [[process]]\nname = \"b\"\nprogram = \"p\"\npriority = 1\n";
    let system = parse("s.toml", text).unwrap();
    let mut asked = Vec::new();
    let bytes = build(Permit::granted(), &system, &OPTIONS, &mut |name| {
        asked.push(name.to_owned());
        Ok(program())
    });
    let bytes = bytes.unwrap();
    assert_eq!(asked, ["p"]);
    let archive = Archive::parse(&bytes).unwrap();
    let offsets: Vec<u32> = archive.processes().map(|process| process.image_offset).collect();
    assert_eq!(offsets[0], offsets[1]);
}

#[test]
fn a_supervisor_without_anybody_still_has_its_mailbox() {
    let text = "[system]\nname = \"s\"\n[[process]]\nname = \"supervisor\"\npriority = 1\n";
    let system = parse("s.toml", text).unwrap();
    assert_eq!(system.mailboxes[0].name, "supervisor.faults");
    assert_eq!(system.mailboxes[0].messages, 1);
}

#[test]
fn a_missing_program_is_pointed_at() {
    let system = parse("engine.toml", ENGINE).unwrap();
    let found = build(Permit::granted(), &system, &OPTIONS, &mut |name| match name {
        "engine-sensors" => Err("no package has a program of this name".to_owned()),
        _ => Ok(program()),
    });
    let found = found.unwrap_err();
    let help = "correct the name, or build the program first";
    is_only(&found, (9, 11), "there is no program `engine-sensors`", help);
    assert!(found.plain().contains("note: no package has a program of this name"), "{found}");
}

#[test]
fn all_missing_programs_are_pointed_at_without_an_archive() {
    let system = parse("engine.toml", ENGINE).unwrap();
    assert!(system.missing_programs(&mut |_| Ok(())).is_none());
    let mut asked = Vec::new();
    let found = system.missing_programs(&mut |name| {
        asked.push(name.to_owned());
        if name == "control" { Ok(()) } else { Err("there are: control".to_owned()) }
    });
    let found = found.unwrap().plain();
    for name in ["engine-sensors", "diag"] {
        assert!(found.contains(&format!("there is no program `{name}`")), "{found}");
    }
    assert!(found.contains("note: there are: control"), "{found}");
    assert!(!found.contains("there is no program `control`"), "{found}");
    let once: std::collections::BTreeSet<&String> = asked.iter().collect();
    assert_eq!(once.len(), asked.len(), "a program is asked for once");
}

#[test]
fn a_missing_program_named_like_its_process_is_pointed_at() {
    let system = parse("engine.toml", ENGINE).unwrap();
    let found = build(Permit::granted(), &system, &OPTIONS, &mut |name| match name {
        "diag" => Err(String::new()),
        _ => Ok(program()),
    });
    let help = "add `program = \"…\"` if it is not named like the process, or build it first";
    is_only(&found.unwrap_err(), (30, 8), "there is no program `diag`", help);
}

#[test]
fn all_bad_programs_are_reported_at_once() {
    let system = parse("engine.toml", ENGINE).unwrap();
    let found = build(Permit::granted(), &system, &OPTIONS, &mut |name| {
        let mut file = program();
        match name {
            "engine-sensors" => file[0] = 0,
            "control" => file[64 + 4] = 3,
            "diag" => file[64 + 56 + 17] = 0x02,
            _ => file.truncate(0x280),
        }
        Ok(file)
    });
    let found = found.unwrap_err();
    let titles: Vec<&str> = found.items().iter().map(|item| item.title).collect();
    assert_eq!(titles.len(), 4, "{found}");
    assert!(titles[0].ends_with("is not a position-independent x86-64 ELF file"), "{found}");
    assert!(titles[1].ends_with("both writable and executable"), "{found}");
    assert!(titles[3].contains("lies outside its file"), "{found}");
}

#[test]
fn programs_count_against_the_memory() {
    let text = "[system]\nname = \"s\"\nmemory = \"9M\"\n[[process]]\nname = \"p\"\npriority = 1\n";
    let system = parse("engine.toml", text).unwrap();
    assert!(built(&system).is_ok());
    let found = build(Permit::granted(), &system, &OPTIONS, &mut |_| {
        let mut file = program();
        file.resize(1 << 20, 0);
        Ok(file)
    });
    // 8192 + 4 + 24 + 16 for the process, 20 for its program, 1028 for the archive.
    let title = "the system needs 9284K of memory, the machine has 9M";
    let help = "write `memory = \"10M\"`, or reserve less";
    is_only(&found.unwrap_err(), (3, 10), title, help);
}

#[test]
fn a_system_changed_into_nonsense_is_refused_not_written() {
    let mut system = parse("engine.toml", ENGINE).unwrap();
    system.processes[0].threads = 0;
    let found = built(&system).unwrap_err();
    assert!(found.items()[0].title.starts_with("the finished archive is refused"), "{found}");
}

/// Settings go where the program has room for them, and nowhere else.
#[test]
fn settings_need_room_in_the_program() {
    let text = "[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n\
                [[process]]\nname = \"q\"\nprogram = \"p\"\npriority = 1\n";
    let mut system = parse("f", text).unwrap();
    system.processes[1].settings.push(Setting::new("rates", &[3, 4]));
    let archive = built(&system).unwrap();
    assert_eq!(told(&archive, 0), Settings::NONE);
    assert_eq!(told(&archive, 1).get("rates"), [3, 4]);
    let damaged = |at: usize, byte: u8| {
        let mut file = program_named("p");
        file[at] = byte;
        file
    };
    let mark = program_named("p").len() - 8 * WORDS - 1;
    for (file, why) in [
        (common::program(), "no room"),
        (damaged(0x200 + 57, 0x40), "a header that names no part of the program"),
        (damaged(0x200 + 57, 0x12), "a header that names another part"),
        (damaged(mark, 0), "no mark"),
    ] {
        let found =
            build(Permit::granted(), &system, &OPTIONS, &mut |_| Ok(file.clone())).unwrap_err();
        let title = "`p` takes no settings, but `q` has some";
        assert_eq!((found.items()[0].title, found.items()[0].line), (title, 8), "{why}");
    }
    system.processes[1].settings.push(Setting::new("many", &[0; 200]));
    let found = built(&system).unwrap_err();
    let title = "`q` has more settings than its program can hold";
    assert_eq!(found.items()[0].title, title);
}
