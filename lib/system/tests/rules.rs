//! Each rule of a description: what breaks it is refused at its place, with a remedy.

use crate::common::{ENGINE, problems, refused};

/// Returns a description of one process `p` in lines 3 to 5, then `rest` from line 6.
fn with_system(rest: &str) -> String {
    format!("[system]\nname = \"s\"\n{rest}\n")
}

fn with_process(rest: &str) -> String {
    format!("[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n{rest}\n")
}

/// Line 6, which is wrong by itself.
#[track_caller]
fn bad(line: &str, column: usize, title: &str, help: &str) {
    refused(&with_process(line), (6, column), title, help);
}

/// Lines 6 and on, the last of which is wrong.
#[track_caller]
fn bad_last(lines: &[&str], column: usize, title: &str, help: &str) {
    refused(&with_process(&lines.join("\n")), (5 + lines.len(), column), title, help);
}

#[test]
fn nothing_at_all() {
    let found = problems("");
    let titles: Vec<&str> = found.items().iter().map(|item| item.title).collect();
    assert_eq!(titles, ["the description has no `[system]`", "the system has no process"]);
}

#[test]
fn a_system_without_processes() {
    let help = "add `[[process]]` with `name = \"main\"` and `priority = 1`";
    refused("[system]\nname = \"s\"\n", (2, 8), "the system has no process", help);
}

#[test]
fn tables_of_the_wrong_shape() {
    let text = "[[system]]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n";
    let help = "write `[system]`, once and with single brackets";
    refused(text, (1, 1), "`system` is not a single table", help);
    let text = "[system]\nname = \"s\"\n[process]\nname = \"p\"\npriority = 1\n";
    let help = "write `[[process]]` with double brackets: there can be several";
    refused(text, (3, 1), "`process` is a single table here", help);
    let text = "mailbox = [3]\n[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n";
    let help = "write it as in `[[mailbox]]`";
    refused(text, (1, 12), "`mailbox` is an integer, expected a table", help);
}

#[test]
fn unknown_keys() {
    bad("heep = 3", 1, "unknown key `heep` in [[process]]", "did you mean `heap`?");
    let text = with_process("[[mailbox]]\nname = \"m\"\nmessages = 1\ncolour = 3");
    let title = "unknown key `colour` in [[mailbox]]";
    refused(&text, (9, 1), title, "it has `name`, `server` and `messages`");
    let text = with_process("[[semaphor]]\nname = \"m\"");
    let title = "unknown key `semaphor` in the description";
    refused(&text, (6, 3), title, "did you mean `semaphore`?");
    let text = "[system]\nname = \"s\"\nmemroy = 1\n[[process]]\nname = \"p\"\npriority = 1\n";
    refused(text, (3, 1), "unknown key `memroy` in [system]", "did you mean `memory`?");
}

#[test]
fn a_misspelt_key_is_not_also_missing() {
    let text = "[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriorty = 1\n";
    let title = "unknown key `priorty` in [[process]]";
    refused(text, (5, 1), title, "did you mean `priority`?");
}

#[test]
fn missing_keys() {
    let text = "[system]\nname = \"s\"\n[[process]]\npriority = 1\n";
    let help = "add `name = \"…\"`: how the rest of the system calls it";
    refused(text, (3, 1), "this process has no `name`", help);
    let text = "[system]\nname = \"s\"\n[[process]]\nname = \"p\"\n";
    let help = "add `priority = 40`: 0 is least urgent, 63 most";
    refused(text, (4, 8), "process `p` has no `priority`", help);
    let title = "mailbox `m` has no `messages`";
    let help = "add `messages = 8`: the most it holds before senders wait";
    bad_last(&["[[mailbox]]", "name = \"m\""], 8, title, help);
    let help = "add `size = \"4K\"`: the bytes to share";
    bad_last(&["[[segment]]", "name = \"g\""], 8, "segment `g` has no `size`", help);
    let help = "add `address = 0x…`, the physical address of its registers, or \
                `pci = \"0c0330\"`, its class";
    let text = with_process("[[device]]\nname = \"d\"\nsize = 4096");
    refused(&text, (7, 8), "device `d` has no `address`", help);
}

#[test]
fn names_of_the_wrong_form() {
    let condition = |name: &str| with_process(&format!("[[condition]]\nname = \"{name}\""));
    let refused = |name: &str, title: &str, help: &str| {
        refused(&condition(name), (7, 8), title, help);
    };
    refused("", "the name is empty", "write 1 to 31 characters of a-z, 0-9, `.`, `_`, `-`");
    let help = "write `my-flag`: a-z, 0-9, `.`, `_`, `-`";
    refused("My flag", "`M` cannot be in a name", help);
    refused(&"x".repeat(32), "a name of 32 characters is too long", "shorten it to 31 characters");
    let help = "choose another; the mailbox for fault reports is declared automatically";
    refused("p.faults", "names ending in `.faults` are reserved", help);
    let help = "choose another; `supervisor = \"none\"` means nobody";
    refused("none", "the name `none` is reserved", help);
    assert!(diapason_system::parse("f", &condition(&"x".repeat(31))).is_ok());
}

#[test]
fn a_name_declared_twice_in_two_kinds() {
    let title = "the name `p` is declared twice";
    let help = "rename one: processes, objects, segments, devices and VCPUs share one space";
    bad_last(&["[[condition]]", "name = \"p\""], 8, title, help);
}

#[test]
fn a_bad_name_is_reported_once_and_not_where_it_is_used() {
    let text = with_process("uses = [\"My\"]\n[[condition]]\nname = \"My\"");
    refused(&text, (8, 8), "`M` cannot be in a name", "write `my`: a-z, 0-9, `.`, `_`, `-`");
}

#[test]
fn values_of_the_wrong_type() {
    let title = "`threads` is a text, expected a whole number";
    bad("threads = \"3\"", 11, title, "write it as in `threads = 1`");
    let title = "`heap` is a number with a fraction, expected a size";
    bad("heap = 1.5", 8, title, "write it as in `heap = \"64K\"`");
    let title = "`uses` is a text, expected a list of names";
    bad("uses = \"m\"", 8, title, "write it as in `uses = [\"readings\"]`");
    let title = "`starts` is an integer, expected a list of names";
    bad("starts = [7]", 11, title, "write it as in `starts = [\"diag\"]`");
    let title = "`start` is true or false, expected a text in quotes";
    bad("start = true", 9, title, "write it as in `start = \"boot\"`");
    let title = "`backoff` is an integer, expected a text with a unit";
    bad("backoff = 10", 11, title, "write it as in `backoff = \"10ms\"`");
}

#[test]
fn priorities() {
    let text = |priority: &str| {
        format!("[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = {priority}\n")
    };
    let help = "write a whole number from 0 to 63; larger is more urgent";
    refused(&text("64"), (5, 12), "`priority` is 64, out of range", help);
    refused(&text("-1"), (5, 12), "`priority` is -1, out of range", help);
    let title = "`priority` is a number of more than 128 bits";
    refused(&text(&"9".repeat(50)), (5, 12), title, "write it as in `priority = 1`");
}

#[test]
fn sizes() {
    let help = "write `\"68K\"`, the next multiple of 4K";
    let title = "`heap` is not a whole number of pages of 4096 bytes";
    bad("heap = \"65K\"", 8, title, help);
    bad("heap = 65537", 8, title, help);
    bad("heap = -1", 8, "`heap` is negative", "write a size from `\"0\"` to `\"128M\"`");
    let title = "`heap` is larger than 128M";
    bad("heap = \"1G\"", 8, title, "write a size from `\"0\"` to `\"128M\"`");
    bad("stack = 0", 9, "`stack` is zero", "write a size from `\"4K\"` to `\"252K\"`");
    let title = "`stack` is larger than 252K";
    bad("stack = \"256K\"", 9, title, "write a size from `\"4K\"` to `\"252K\"`");
    bad("heap = \"64 KiB\"", 8, "`64 KiB` is not a size", "write `\"64K\"`");
    let help = "write `\"64K\"`, `\"1M\"`, `\"2G\"`, or bytes without quotes";
    bad("heap = \"lots\"", 8, "`lots` is not a size", help);
}

#[test]
fn counts() {
    let help = "write a whole number from 1 to 64";
    bad("threads = 0", 11, "`threads` is 0, out of range", help);
    bad("threads = 65", 11, "`threads` is 65, out of range", help);
    let help = "write a whole number from 0 to 1024";
    for key in ["semaphores", "conditions", "events"] {
        let title = format!("`{key}` is 1025, out of range");
        bad(&format!("{key} = 1025"), key.len() + 4, &title, help);
    }
    let help = "write a whole number from 1 to 1024";
    let lines = ["[[mailbox]]", "name = \"m\"", "messages = 0"];
    bad_last(&lines, 12, "`messages` is 0, out of range", help);
}

#[test]
fn arguments() {
    let help = "pass one number from which the program finds the others";
    bad("arguments = [1, 2, 3, 4, 5]", 26, "5 arguments, the most is 4", help);
    let title = "18446744073709551616 does not fit into 64 bits";
    let help = "write a number from -2^63 to 2^64 - 1";
    bad("arguments = [18446744073709551616]", 14, title, help);
    let title = "`arguments` is a text, expected a list of integers";
    bad("arguments = [\"1\"]", 14, title, "write it as in `arguments = [1, 2]`");
}

#[test]
fn durations() {
    bad("backoff = \"10 ms\"", 11, "`10 ms` is not a duration", "write `\"10ms\"`");
    let help = "write a number and one of ns, us, ms, s, as in `\"10ms\"`";
    bad("backoff = \".5s\"", 11, "`.5s` is not a duration", help);
    let help = "write a time from `1ns` to `3600s`";
    bad("backoff = \"0s\"", 11, "`backoff` is out of range", help);
    bad("backoff = \"3601s\"", 11, "`backoff` is out of range", help);
}

#[test]
fn programs_are_names_not_paths() {
    let help = "write its name, not its path: 1 to 64 letters, digits, `_`, `-` and `.`, \
                the first a letter, digit or `_`";
    let title = "`../p` cannot be the name of a program";
    bad("program = \"../p\"", 11, title, help);
    bad("program = \"\"", 11, "`` cannot be the name of a program", help);
}

#[test]
fn choices() {
    bad("start = \"bot\"", 9, "`start` cannot be `bot`", "did you mean `\"boot\"`?");
    bad("start = \"now\"", 9, "`start` cannot be `now`", "write `boot` or `manual`");
    let help = "write `never` or `always`, or a number of restarts without quotes";
    bad("restart = \"3\"", 11, "`restart` cannot be `3`", help);
    let help = "write a whole number from 1 to 4294967294, or `\"never\"` or `\"always\"`";
    bad("restart = 0", 11, "`restart` is 0, out of range", help);
    let lines = ["[[semaphore]]", "name = \"m\"", "initial = 2", "kind = \"count\""];
    let title = "`kind` cannot be `count`";
    bad_last(&lines, 8, title, "write `mutex` or `counting`");
}

#[test]
fn semaphores() {
    let help = "add `kind = \"counting\"`, or remove `initial`: a mutex starts free";
    let lines = ["[[semaphore]]", "name = \"m\"", "initial = 2"];
    bad_last(&lines, 11, "a mutex has no initial count", help);
    let lines = ["[[semaphore]]", "name = \"m\"", "kind = \"counting\"", "initial = -1"];
    let help = "write a whole number from 0 to 4294967295";
    bad_last(&lines, 11, "`initial` is -1, out of range", help);
}

#[test]
fn grants() {
    let text = ENGINE.replace("uses = [\"throttle\",", "uses = [\"throtle\",");
    let text = text.replacen("[\"throtle\"", "[\"throttle\"", 1);
    refused(&text, (25, 9), "nothing named `throtle` is declared", "did you mean `throttle`?");
    let help = "declare it, for example as `[[mailbox]]` with `name = \"m\"`";
    bad("uses = [\"m\"]", 9, "nothing named `m` is declared", help);
    let help = "name it in `starts` to start it; send it messages through a mailbox";
    bad("uses = [\"p\"]", 9, "`p` is a process and cannot be used", help);
    let text = with_process("uses = [\"c\", \"c\"]\n[[condition]]\nname = \"c\"");
    refused(&text, (6, 14), "`c` is in `uses` twice", "remove one of the two");
    let help = "remove it: `p` alone receives its fault reports, unasked";
    bad("uses = [\"p.faults\"]", 9, "`p.faults` cannot be granted", help);
}

#[test]
fn starting() {
    let help = "remove it; a supervisor can restart a process";
    bad("starts = [\"p\"]", 11, "`p` cannot start itself", help);
    let help = "declare it: `[[process]]` with `name = \"q\"`";
    bad("starts = [\"q\"]", 11, "no process named `q` is declared", help);
    let text = with_process("starts = [\"c\"]\n[[condition]]\nname = \"c\"");
    refused(&text, (6, 11), "`c` is a condition, not a process", "name a process here");
    let text =
        ENGINE.replace("starts = [\"diag\"]", "starts = [\"diga\"]").replace("manual", "boot");
    refused(&text, (26, 11), "no process named `diga` is declared", "did you mean `diag`?");
}

#[test]
fn processes_that_can_never_run() {
    let help = "remove `start = \"manual\"` from the process that starts the others";
    bad("start = \"manual\"", 9, "nothing starts at boot", help);
    let text = ENGINE.replace("starts = [\"diag\"]\n", "");
    let help = "add `starts = [\"diag\"]` to the process that starts it";
    refused(&text, (32, 9), "nobody may start `diag`", help);
}

#[test]
fn restarts_need_a_supervisor() {
    let title = "`p` may be restarted, but has no supervisor to do it";
    let help = "add `[[process]] name=\"supervisor\" program=\"supervisor\" priority=63`";
    bad("restart = 3", 11, title, help);
    let help = "name a supervisor, or write `restart = \"never\"`";
    let text = with_process("restart = \"always\"\nsupervisor = \"none\"");
    refused(&text, (6, 11), title, help);
    let text = ENGINE.replace("priority = 63", "priority = 63\nrestart = 1");
    let title = "`supervisor` may be restarted, but has no supervisor to do it";
    let help = "remove `restart`, or name another process as its `supervisor`";
    refused(&text, (39, 11), title, help);
}

#[test]
fn supervisors() {
    let help = "name another process, or write `supervisor = \"none\"`";
    bad("supervisor = \"p\"", 14, "`p` cannot supervise itself", help);
    let help = "declare it: `[[process]]` with `name = \"q\"`";
    bad("supervisor = \"q\"", 14, "no process named `q` is declared", help);
    let text = with_process("supervisor = \"c\"\n[[condition]]\nname = \"c\"");
    refused(&text, (6, 14), "`c` is a condition, not a process", "name a process here");
}

#[test]
fn circles_of_supervisors() {
    let title = "processes supervise each other in a circle";
    let help = "write `supervisor = \"none\"` in one of them, the root";
    let text = ENGINE.replace("priority = 63", "priority = 63\nsupervisor = \"control\"");
    refused(&text, (39, 14), title, help);
    let found = problems(&text);
    let circle = "note: `supervisor` → `control` → `supervisor` (its supervisor)";
    assert!(found.plain().contains(circle), "{found}");
}

#[test]
fn the_server_of_a_mailbox() {
    let vcpu = "[[vcpu]]\nname = \"v\"\nbudget = \"1ms\"\nperiod = \"9ms\"\n";
    let with = |server: &str, uses: &str, mailbox: &str| {
        let process = |name: &str, more: &str| {
            format!("[[process]]\nname = \"{name}\"\npriority = 1\n{more}\n")
        };
        let (server, client) = (process("s", server), process("c", uses));
        format!("{server}{client}{vcpu}[[mailbox]]\nname = \"b\"\n{mailbox}\n")
    };
    let uses = "uses = [\"b\"]";
    let text = with(uses, uses, "server = \"s\"");
    let system = diapason_system::parse("f", &with_system(&text)).expect("it fits");
    assert_eq!((&*system.semaphores[0].name, system.semaphores[0].allowed), ("b.server", 3));
    let mailbox = &system.mailboxes[0];
    let served = mailbox.served.map(|served| (served.process, served.mutex));
    assert_eq!((served, mailbox.messages), (Some((0, 0)), 0));
    let bad = |server: &str, mailbox: &str, place, title: &str, help: &str| {
        refused(&with_system(&with(server, uses, mailbox)), place, title, help);
    };
    let (mailbox, none) = ("server = \"s\"", (16, 8));
    let title = "`s` serves `b` and does not use it";
    bad("", mailbox, none, title, "add `b` to `uses` of `s`");
    let title = "`s` serves `b` and has a VCPU";
    let help = "remove it: a server runs in the places of its callers, on their budgets";
    bad(&format!("{uses}\nvcpu = \"v\""), mailbox, (7, 8), title, help);
    bad("uses = [\"b\", \"v\"]", mailbox, (6, 14), title, help);
    let declares = "declare it: `[[process]]` with `name = \"x\"`";
    bad(uses, "server = \"x\"", (17, 10), "no process named `x` is declared", declares);
    let title = "a mailbox with a server holds no messages";
    let help = "remove `messages`: its callers wait for the server; or remove `server`";
    bad(uses, "server = \"s\"\nmessages = 3", (18, 12), title, help);
    let title = "`s` serves another mailbox, too";
    let help =
        "declare another `[[process]]` to serve `d`, or tell requests apart by their first bytes";
    let both = "uses = [\"b\", \"d\"]";
    let second = "server = \"s\"\n[[mailbox]]\nname = \"d\"\nserver = \"s\"";
    refused(&with_system(&with(both, uses, second)), (20, 10), title, help);
    let title = "names ending in `.server` are reserved";
    let text = with_process("[[semaphore]]\nname = \"b.server\"\n");
    let help = "choose another; the mutex of a mailbox's server is declared automatically";
    refused(&text, (7, 8), title, help);
}

#[test]
fn too_many_of_a_kind() {
    let many = |header: &str, keys: &str, number: usize| -> String {
        let one = |i: usize| format!("[[{header}]]\nname = \"{header}{i}\"\n{keys}\n");
        with_process(&(0..number).map(one).collect::<String>())
    };
    let text = many("process", "priority = 1", 64);
    let help = "remove 1 of them, or merge some";
    refused(&text, (6 + 63 * 3 + 1, 8), "65 processes, the most is 64", help);
    let text = many("segment", "size = \"4K\"", 65);
    refused(&text, (6 + 64 * 3 + 1, 8), "65 segments, the most is 64", help);
    let text = many("condition", "", 961);
    let title = "961 semaphores, conditions and mailboxes, the most is 960";
    refused(&text, (6 + 960 * 3 + 1, 8), title, help);
    assert!(diapason_system::parse("f", &many("condition", "", 960)).is_ok());
}

#[test]
fn memory_that_does_not_suffice() {
    let text = "[system]\nname = \"s\"\nmemory = \"16M\"\n[[process]]\nname = \"p\"\n\
                priority = 1\nheap = \"9M\"\n";
    // 8192K kernel, 4K objects, 5 + 1 + 5 tables, 9216K heap, 16K stack.
    let title = "the system needs 17472K of memory, the machine has 16M";
    refused(text, (3, 10), title, "write `memory = \"18M\"`, or reserve less");
    let text = "[system]\nname = \"s\"\nmemory = \"3G\"\n[[process]]\nname = \"p\"\npriority = 1\n";
    let help = "write a size from `\"4K\"` to `\"2G\"`";
    refused(text, (3, 10), "`memory` is larger than 2G", help);
}

#[test]
fn segments() {
    let lines = ["[[segment]]", "name = \"g\"", "size = \"4M\""];
    let help = "write a size from `\"4K\"` to `\"2M\"`";
    bad_last(&lines, 8, "`size` is larger than 2M", help);
    let lines = ["[[segment]]", "name = \"g\"", "size = 0"];
    bad_last(&lines, 8, "`size` is zero", help);
    let lines = ["[[segment]]", "size = \"64K\"", "name = \"kernel.console\""];
    let help = "add `dma = true` to the segment";
    bad_last(&lines, 8, "the kernel needs `kernel.console` in one piece", help);
}
