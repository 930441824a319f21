//! Every text gets an answer and no panic. Every archive says what was described.

use crate::common::{ENGINE, OPTIONS, SERVERS, built, program_named};
use diapason_abi::archive::{Archive, Location, NONE, ObjectKind};
use diapason_abi::{Key, call};
use diapason_system::{
    Diagnostics, ProcessSpec, Restart, SemaphoreKind, ServerSpec, System, parse,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Every item has a place in the text and a remedy, and can be shown in both ways.
fn is_presentable(found: &Diagnostics, text: &str) {
    let items = found.items();
    assert!(!items.is_empty());
    let lines = text.split('\n').count();
    for item in &items {
        assert!((1..=lines).contains(&item.line) && item.column >= 1);
        assert!(!item.title.is_empty() && !item.help.is_empty());
    }
    let plain = found.plain();
    assert_eq!(plain.matches(" help: ").count(), items.len().min(100), "{plain}");
    assert!(!plain.contains('\u{1b}'));
    assert!(found.coloured().contains('\u{1b}'));
}

/// Parses `text`, shows what is wrong, or builds and reads back.
fn survives(text: &str) {
    match parse("random.toml", text) {
        Err(found) => is_presentable(&found, text),
        Ok(system) => match built(&system) {
            Err(found) => is_presentable(&found, text),
            Ok(bytes) => says_the_same(&system, &bytes),
        },
    }
}

fn says_the_same(system: &System, bytes: &[u8]) {
    let archive = Archive::parse(bytes).unwrap();
    assert_eq!(archive.header.horizon, OPTIONS.horizon_ns);
    assert_eq!(archive.header.processes as usize, system.processes.len());
    processes_agree(system, &archive);
    objects_agree(system, &archive);
    assert_eq!(archive.segments().count(), system.segments.len());
    for (segment, record) in system.segments.iter().zip(archive.segments()) {
        assert_eq!(record.key, Key::new(&segment.name).0);
        assert_eq!(record.allowed, users(system, &segment.name));
        assert_eq!((u64::from(record.pages) * 4096, record.dma), (segment.size, segment.dma));
    }
    vcpus_agree(system, &archive);
    assert_eq!(archive.devices().count(), system.devices.len());
    for (device, record) in system.devices.iter().zip(archive.devices()) {
        assert_eq!(record.key, Key::new(&device.name).0);
        let granted = match device.location {
            Location::Message { of, .. } => &system.devices[usize::from(of)].name,
            _ => &device.name,
        };
        assert_eq!(record.allowed, users(system, granted));
        let line = device.interrupt.map(|interrupt| (interrupt.irq, interrupt.level));
        assert_eq!(line, (record.irq != NONE).then_some((record.irq, record.level)));
        assert_eq!(
            (record.location, u64::from(record.pages) * 4096),
            (device.location, device.size)
        );
    }
}

fn vcpus_agree(system: &System, archive: &Archive<'_>) {
    assert_eq!(archive.vcpus().count(), system.vcpus.len());
    assert_eq!(archive.header.dp_queues, system.scheduling.dp_queues);
    for (vcpu, record) in system.vcpus.iter().zip(archive.vcpus()) {
        assert_eq!((record.key, record.queue), (Key::new(&vcpu.name).0, vcpu.queue));
        let by_default =
            |p: &ProcessSpec| p.vcpu.and_then(|i| system.vcpu_name(i)) == Some(&vcpu.name);
        let first = (0..system.processes.len()).filter(|i| by_default(&system.processes[*i]));
        let first = first.fold(0, |mask, index| mask | 1 << index);
        assert_eq!(record.allowed, users(system, &vcpu.name) | first);
        match &vcpu.server {
            ServerSpec::Main { budget_ns, period_ns, replenishments, background, .. } => {
                assert_eq!((record.budget, record.period), (*budget_ns, *period_ns));
                assert_eq!(
                    (record.replenishments, record.background),
                    (*replenishments, *background)
                );
            }
            ServerSpec::Io { utilization_ppm, cap_ns, interval_ns, wakes, serves } => {
                assert_eq!(
                    (record.utilization_ppm, record.interval, record.replenishments),
                    (*utilization_ppm, *interval_ns, *wakes)
                );
                assert_eq!(record.cap, cap_ns.unwrap_or(u64::MAX));
                let served = |i: &u16| record.serves >> i & 1 == 1;
                assert!(serves.iter().all(served));
                assert_eq!(record.serves.count_ones() as usize, serves.len());
                let queues = serves.iter().map(|i| system.vcpus[usize::from(*i)].queue);
                assert_eq!(queues.min(), Some(vcpu.queue));
            }
        }
    }
}

/// Returns the grants, told from the processes' side.
fn users(system: &System, name: &str) -> u64 {
    let uses = |index: usize| system.processes[index].uses.iter().any(|used| used == name);
    (0..system.processes.len()).filter(|index| uses(*index)).map(|index| 1 << index).sum()
}

fn processes_agree(system: &System, archive: &Archive<'_>) {
    for (index, record) in archive.processes().enumerate() {
        let p = &system.processes[index];
        assert_eq!(record.key, Key::new(&p.name).0);
        assert_eq!(archive.image(&record), Ok(&program_named(&p.program)[..]));
        assert_eq!((record.priority, record.start_at_boot), (p.priority, p.start_at_boot));
        assert_eq!((record.supervisor != NONE).then_some(record.supervisor), p.supervisor);
        assert_eq!(
            (record.threads, record.semaphores, record.conditions, record.events),
            (p.threads, p.semaphores, p.conditions, p.events)
        );
        assert_eq!(u64::from(record.stack_pages) * 4096, p.stack);
        assert_eq!(u64::from(record.heap_pages) * 4096, p.heap);
        let restarts = match p.restart {
            Restart::Never => 0,
            Restart::AtMost(times) => times,
            Restart::Always => u32::MAX,
        };
        assert_eq!((record.restarts_max, record.backoff), (restarts, p.backoff_ns));
        assert_eq!(record.arguments, p.arguments);
        assert_eq!((record.vcpu != NONE).then_some(record.vcpu), p.vcpu);
        assert_eq!(record.vcpus, p.vcpus);
        for (other, starter) in system.processes.iter().enumerate() {
            let may =
                starter.starts.contains(&(index as u16)) || p.supervisor == Some(other as u16);
            assert_eq!(record.starters >> other & 1 == 1, may);
        }
    }
}

fn objects_agree(system: &System, archive: &Archive<'_>) {
    for (index, record) in archive.objects().enumerate() {
        let name = system.object_name(index as u16).unwrap();
        assert_eq!(record.key, Key::new(name).0);
        let expected = match record.kind {
            ObjectKind::Semaphore => match system.semaphores[index].kind {
                SemaphoreKind::Mutex => (call::MUTEX, 0),
                SemaphoreKind::Counting(initial) => (initial, 0),
            },
            ObjectKind::Condition => (0, 0),
            ObjectKind::Mailbox => {
                let before = system.semaphores.len() + system.conditions.len();
                (0, system.mailboxes[index - before].messages)
            }
        };
        assert_eq!((record.initial, record.capacity), expected);
        match record.faults_of {
            NONE => assert_eq!(record.allowed, users(system, name)),
            supervisor => assert_eq!(record.allowed, 1 << supervisor),
        }
    }
    let objects = system.semaphores.len() + system.conditions.len() + system.mailboxes.len();
    assert_eq!(archive.objects().count(), objects);
}

/// Pieces a description is made of, and some it should not be made of.
const PIECES: &[&str] = &[
    "[system]\n",
    "[[process]]\n",
    "[[semaphore]]\n",
    "[[condition]]\n",
    "[[mailbox]]\n",
    "[[segment]]\n",
    "[[device]]\n",
    "[[vcpu]]\n",
    "[scheduling]\n",
    "budget = ",
    "period = ",
    "utilization = ",
    "serves = ",
    "dynamic = ",
    "fixed = ",
    "vcpu = ",
    "interval = ",
    "\"5%\"\n",
    "\"io\"\n",
    "[[\"a\"], [\"b\"]]\n",
    "name = ",
    "priority = ",
    "heap = ",
    "stack = ",
    "uses = ",
    "starts = ",
    "supervisor = ",
    "restart = ",
    "backoff = ",
    "start = ",
    "arguments = ",
    "messages = ",
    "size = ",
    "address = ",
    "irq = ",
    "pci = ",
    "\"0c0330\"\n",
    "vendor = ",
    "serial = ",
    "instance = ",
    "bar = ",
    "irqs = ",
    "dma = ",
    "true\n",
    "trigger = ",
    "kind = ",
    "initial = ",
    "threads = ",
    "memory = ",
    "\"a\"\n",
    "\"b\"\n",
    "\"supervisor\"\n",
    "40\n",
    "0\n",
    "-1\n",
    "99999999999999999999\n",
    "\"64K\"\n",
    "\"10ms\"\n",
    "\"always\"\n",
    "[\"a\", \"b\"]\n",
    "[1, 2]\n",
    "0xfed00000\n",
    "{ x = 1 }\n",
    "true\n",
    "1.5\n",
    "1979-05-27\n",
    "\"µ\u{1b}\"\n",
    "\"\"\"",
    "'",
    "[",
    "]",
    "{",
    "}",
    "=",
    ",",
    "#",
    "\r\n",
    "\t",
    "\u{feff}",
    "\0",
    "\\u00e9",
];

/// Returns one of them, or something random.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => proptest::sample::select(PIECES).prop_map(str::to_owned),
        1 => ".{0,6}",
    ]
}

/// Returns a text like `ENGINE` or `SERVERS` in which some things were removed, replaced or
/// repeated.
fn mutated() -> impl Strategy<Value = String> {
    let edit = (any::<prop::sample::Index>(), 0usize..20, piece());
    (either(), vec(edit, 1..5)).prop_map(|(text, edits)| {
        let mut text: Vec<char> = text.chars().collect();
        for (at, length, new) in edits {
            let start = at.index(text.len() + 1);
            let end = (start + length).min(text.len());
            text.splice(start..end, new.chars());
        }
        text.into_iter().collect()
    })
}

fn either() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just(ENGINE), Just(SERVERS)]
}

/// Returns one value of `ENGINE` or `SERVERS` replaced by another: most stay TOML, some stay valid.
fn revalued() -> impl Strategy<Value = String> {
    (either(), any::<prop::sample::Index>(), piece()).prop_map(|(text, at, new)| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let index = at.index(lines.len());
        if let Some((key, _)) = lines[index].clone().split_once('=') {
            lines[index] = format!("{key}= {}", new.trim_end());
        }
        lines.join("\n")
    })
}

/// Up to ten VCPUs, `v0` and so on, in a random order of up to seven queues. Every third serves one
/// before it.
fn servers() -> impl Strategy<Value = String> {
    let vcpu = (10u64..100_000, 1u64..1001, 0usize..9, any::<bool>());
    vec(vcpu, 0..11).prop_map(|vcpus| {
        let mut queues: Vec<Vec<String>> = vec![Vec::new(); 9];
        let mut text = String::new();
        for (i, (period, budget, queue, flag)) in vcpus.iter().enumerate() {
            text += &format!("[[vcpu]]\nname = \"v{i}\"\n");
            if i % 3 == 2 {
                let cap = if *flag { "cap = \"50us\"\n" } else { "" };
                let serves = format!("[\"v{}\", \"v{}\"]", i - 1, i - 2);
                text += &format!(
                    "kind = \"io\"\nutilization = \"{}‰\"\nserves = {serves}\n{cap}\
                     interval = \"{period}us\"\n",
                    100 + budget % 901,
                );
            } else {
                let budget = (period * 1000 * budget / 1000).max(1000);
                text += &format!("budget = \"{budget}ns\"\nperiod = \"{period}us\"\n");
                text += &format!("replenishments = {}\nbackground = {flag}\n", 2 + i % 7);
                queues[*queue].push(format!("v{i}"));
            }
        }
        let dynamic: Vec<_> = queues[..7].iter().filter(|queue| !queue.is_empty()).collect();
        format!("[scheduling]\ndynamic = {dynamic:?}\n{text}")
    })
}

/// Sound descriptions of up to six processes and their objects.
fn sound() -> impl Strategy<Value = String> {
    let process = (0u8..64, 0u64..5, 1u64..64, 1u16..5, any::<[i64; 4]>(), any::<[bool; 6]>());
    let mailboxes = vec(1u16..1025, 0..4);
    (vec(process, 1..6), mailboxes, vec(1u32..513, 0..4), servers()).prop_map(
        |(processes, mailboxes, segments, servers)| {
            let mut text = "[system]\nname = \"s\"\nmemory = \"256M\"\n".to_owned();
            text += &servers;
            for (i, (priority, heap, stack, threads, arguments, flags)) in
                processes.iter().enumerate()
            {
                let (heap, stack) = (heap * 4096, stack * 4);
                text += &format!(
                    "[[process]]\nname = \"p{i}\"\npriority = {priority}\nheap = {heap}\n\
                     stack = \"{stack}K\"\nthreads = {threads}\narguments = {arguments:?}\n"
                );
                let used = |list: usize, name: &str| {
                    let chosen = (0..list).filter(|j| flags[j % 6]);
                    chosen.map(|j| format!("{name}{j}")).collect::<Vec<_>>()
                };
                let mut uses = used(mailboxes.len(), "m");
                uses.extend(used(segments.len(), "g"));
                uses.extend(used(servers.matches("[[vcpu]]").count(), "v"));
                text += &format!("uses = {uses:?}\n");
                if flags[2] && servers.contains("[[vcpu]]") {
                    text += &format!("vcpu = \"v0\"\nvcpus = {}\n", i % 3);
                }
                if i > 0 && flags[5] {
                    let restart = if flags[4] { "\"always\"" } else { "7" };
                    text += &format!("supervisor = \"p{}\"\nrestart = {restart}\n", i / 2);
                }
                if flags[3] && i > 0 {
                    text += "starts = [\"p0\"]\n";
                }
            }
            for (i, messages) in mailboxes.iter().enumerate() {
                text += &format!("[[mailbox]]\nname = \"m{i}\"\nmessages = {messages}\n");
            }
            for (i, pages) in segments.iter().enumerate() {
                text += &format!("[[segment]]\nname = \"g{i}\"\nsize = {}\n", pages * 4096);
            }
            text
        },
    )
}

proptest! {
    #[test]
    fn random_text_gets_an_answer(text in ".{0,200}") {
        survives(&text);
    }

    #[test]
    fn random_pieces_get_an_answer(pieces in vec(piece(), 0..60)) {
        survives(&pieces.concat());
    }

    #[test]
    fn mutated_descriptions_get_an_answer(text in mutated()) {
        survives(&text);
    }

    #[test]
    fn revalued_descriptions_get_an_answer(text in revalued()) {
        survives(&text);
    }

    #[test]
    fn sound_descriptions_are_built_and_read_back(text in sound()) {
        let system = parse("sound.toml", &text).unwrap();
        let bytes = built(&system).unwrap();
        says_the_same(&system, &bytes);
    }
}

#[test]
fn a_large_bad_file_is_answered_soon() {
    let text: String = (0..20_000).map(|i| format!("key{i} = [1, 2]\nbroken{i} =\n")).collect();
    let found = parse("large.toml", &text).unwrap_err();
    assert!(found.plain().contains("more"));
}

#[test]
fn deep_nesting_is_answered() {
    for open in ["[", "{ a = ", "[{ a = "] {
        survives(&format!("a = {}", open.repeat(20_000)));
    }
    survives(&format!("[{}a]\nb = 1\n", "a.".repeat(20_000)));
}
