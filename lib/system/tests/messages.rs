//! The rules of `[[can]]` and `[[message]]`: what they become, and what is refused.

use crate::common::problems;
use diapason_system::{CanClass, CanScheduler, CanSender, CanTime, parse};

/// Line 1 is the header of the system.
fn bus(more: &str) -> String {
    format!("[system]\nname = \"s\"\n[[can]]\nname = \"drive\"\nrate = 500000\n{more}\n")
}

fn message(more: &str) -> String {
    format!("[[message]]\nname = \"speed\"\nbus = \"drive\"\nbytes = 4\nperiod = \"5ms\"\n{more}\n")
}

const DM: &str = "scheduler = \"deadline-monotonic\"";
const WRITTEN: &str = "scheduler = \"as-written\"";
const MTS: &str = "scheduler = \"mts\"\nclocks = \"20us\"";
const UNIT: &str = "node = \"unit\"";
const INTERFACE: &str = "[[process]]\nname = \"p\"\npriority = 1\n\
    [[device]]\nname = \"xhci\"\npci = \"0c0330\"\nsize = \"16K\"\n\
    [[usb]]\nname = \"i\"\non = \"xhci\"\nmodel = \"usb-can\"\n";

/// One problem, in the line that contains `at`.
#[track_caller]
fn bad(text: &str, at: &str, title: &str, help: &str) {
    let found = problems(text);
    let items = found.items();
    assert_eq!(items.len(), 1, "{found}");
    assert_eq!(items[0].title, title, "{found}");
    assert!(items[0].help.contains(help), "{found}");
    let line = text.lines().position(|line| line.contains(at)).unwrap() + 1;
    assert_eq!(items[0].line, line, "{found}");
}

#[test]
fn a_bus_and_its_messages_are_read_without_a_process() {
    let text = bus(&format!("{MTS}\nepoch = \"4ms\""))
        + &message(&format!("{UNIT}\ndeadline = \"2ms\"\njitter = \"10us\""))
        + "[[message]]\nname = \"log\"\nbus = \"drive\"\nnode = \"unit\"\nbytes = 8\n\
           class = \"none\"\n";
    let system = parse("f", &text).unwrap();
    let [can] = &system.cans[..] else { panic!("{:?}", system.cans) };
    assert_eq!((can.rate, can.scheduler), (500_000, CanScheduler::Mts));
    assert_eq!((can.epoch_ns, can.clocks_ns), (Some(4_000_000), Some(20_000)));
    let [speed, log] = &can.messages[..] else { panic!("{:?}", can.messages) };
    assert_eq!(speed.sender, CanSender::Node("unit".into()));
    assert_eq!((speed.period_ns, speed.deadline_ns), (Some(5_000_000), Some(2_000_000)));
    assert_eq!((speed.jitter_ns, speed.bytes, speed.class), (10_000, 4, None));
    assert_eq!((log.period_ns, log.deadline_ns), (None, None));
    assert_eq!(log.class, Some(CanClass::NonRealTime));
}

#[test]
fn what_is_missing_is_named() {
    let no_scheduler = "this CAN bus has no `scheduler`".replace("this CAN bus", "CAN bus `drive`");
    bad(&bus(""), "name = \"drive\"", &no_scheduler, "as-written");
    let title = "CAN bus `drive` has no `clocks`";
    bad(&bus("scheduler = \"mts\""), "name = \"drive\"", title, "20us");
    let title = "message `speed` has no `node`";
    bad(&(bus(DM) + &message("")), "name = \"speed\"", title, "`process = \"…\"`");
    let text = (bus(DM) + &message(UNIT)).replace("period = \"5ms\"\n", "");
    bad(&text, "name = \"speed\"", "message `speed` has no `period`", "class = \"none\"");
}

#[test]
fn frames_of_can_fd_are_read_and_kept_from_what_does_not_know_them() {
    let long = |more: &str| message(&format!("{UNIT}\n{more}")).replace("bytes = 4", "bytes = 64");
    let fast = format!("{WRITTEN}\ndata_rate = 2000000");
    let text = bus(&fast) + &long("fd = true\nid = 5");
    let system = parse("f", &text).unwrap();
    let can = &system.cans[0];
    assert_eq!((can.rate, can.data_rate), (500_000, 2_000_000));
    assert_eq!((can.messages[0].bytes, can.messages[0].fd), (64, true));
    let same = parse("f", &(bus(DM) + &long("fd = true"))).unwrap();
    assert_eq!(same.cans[0].data_rate, 500_000, "without a word the rate is not switched");
    bad(&(bus(DM) + &long("")), "bytes", "no classic frame has 64 bytes", "add `fd = true`");
    let text = bus(&format!("{DM}\ndata_rate = 2000000")) + &message(UNIT);
    bad(&text, "data_rate", "`data_rate` says nothing here", "add `fd = true`");
    let text = bus(&format!("{DM}\ndata_rate = 250000")) + &long("fd = true");
    let slower = "the data would be slower than the 500000 bit/s of the rest";
    bad(&text, "data_rate", slower, "at least `rate`");
    let text = bus(MTS) + &long("fd = true");
    let title = "`speed` is a frame of CAN FD under MTS";
    bad(&text, "name = \"speed\"", title, "another `scheduler`");
    let text = bus(&format!("{DM}\nusb = \"i\"")) + &long("fd = true") + INTERFACE;
    let title = "`i` knows no CAN FD, and would destroy its frames";
    bad(&text, "usb = \"i\"", title, "plan the bus alone");
}

#[test]
fn what_says_nothing_or_too_much_is_refused() {
    let text = bus(&format!("{DM}\nepoch = \"2ms\"")) + &message(UNIT);
    bad(&text, "epoch", "`epoch` says nothing here", "only `scheduler = \"mts\"`");
    let text = bus(&format!("{DM}\nrenewal = \"50us\"")) + &message(UNIT);
    bad(&text, "renewal", "`renewal` says nothing here", "only `scheduler = \"mts\"`");
    let text = bus(&format!("{DM}\nchannel = 1")) + &message(UNIT);
    bad(&text, "channel", "a channel of no interface", "add `usb");
    let text = bus(&format!("{DM}\nusb = \"i\"\nchannel = 5")) + &message(UNIT) + INTERFACE;
    bad(&text, "channel", "`i` has no channel 5", "write a number below 5");
    let text = bus(&format!("{DM}\nin_order = [\"other\"]")) + &message(UNIT);
    bad(&text, "in_order", "no message on `drive` is of node `other`", "remove it");
    let text = bus(&format!("{DM}\nerror_burst = 2")) + &message(UNIT);
    bad(&text, "error_burst", "`error_burst` says nothing here", "add `error_interval = \"50ms\"`");
    let text = bus(&format!("{DM}\nerror_interval = \"50ms\"\nerror_burst = 0")) + &message(UNIT);
    bad(&text, "error_burst", "`error_burst` is 0, out of range", "from 1 to 1000 frames at once");
    let text = bus(&format!("{MTS}\nin_order = [\"unit\"]")) + &message(UNIT);
    bad(&text, "in_order", "a node that sends in order cannot do so under MTS", "deadline-mono");
    let text = bus(DM) + &message(&format!("{UNIT}\nclass = \"none\"\ndeadline = \"1ms\""));
    bad(&text, "deadline = ", "`speed` is due at no time, and has a deadline", "remove `deadline`");
    let text = bus(DM) + &message(UNIT).replace("drive", "driver");
    bad(&text, "driver", "no CAN bus is called `driver`", "did you mean `drive`?");
    let text = bus(DM) + &message(UNIT) + &message("node = \"b\"");
    let found = problems(&text);
    assert_eq!(found.items()[0].title, "the message `speed` is declared twice");
}

/// A bus of 500 kbit/s whose clocks follow a message, and that message.
fn timed(more: &str, message: &str) -> String {
    bus(&format!("scheduler = \"mts\"\ntime = \"clock\"\ntime_read = \"2us\"\n{more}"))
        + &format!("[[message]]\nname = \"clock\"\nbus = \"drive\"\n{UNIT}\n{message}\n")
}

const CARRIES: &str = "class = \"low\"\nperiod = \"10ms\"\nbytes = 8";

#[test]
fn a_message_carries_the_time() {
    let system = parse("f", &(message(UNIT) + &timed("", CARRIES))).unwrap();
    let can = &system.cans[0];
    let time = CanTime { message: 1, read_ns: 2_000, step_ns: 1_000, drift_ppm: 100, losses: 0 };
    assert_eq!((can.clocks_ns, can.time), (None, Some(time)));
    let all = "clocks = \"9us\"\ntime_step = \"100ns\"\ntime_drift = 50\ntime_losses = 2";
    let can = &parse("f", &timed(all, CARRIES)).unwrap().cans[0];
    let time = CanTime { message: 0, read_ns: 2_000, step_ns: 100, drift_ppm: 50, losses: 2 };
    assert_eq!((can.clocks_ns, can.time), (Some(9_000), Some(time)));
}

#[test]
fn what_cannot_carry_the_time_is_refused() {
    let good = timed("", CARRIES);
    let text = good.replace("\ntime = \"clock\"", "\ntime = \"clocks\"");
    bad(&text, "time = ", "no message is called `clocks`", "did you mean `clock`?");
    let text = good.replace("\ntime = \"clock\"", "\ntime = \"sun\"");
    bad(&text, "time = ", "no message is called `sun`", "declare it");
    let other = "[[can]]\nname = \"body\"\nrate = 500000\nscheduler = \"mts\"\nclocks = \"9us\"\n";
    let text = good.replace("bus = \"drive\"", "bus = \"body\"") + other;
    bad(&text, "time = ", "`clock` is not on `drive`", "its nodes hear no other");
    let title = "`clock` carries the time, and is not of class `\"low\"`";
    for class in ["high", "none"] {
        let text = good.replace("\"low\"", &format!("\"{class}\""));
        bad(&text, "class = ", title, "write `class = \"low\"`");
    }
    let text = good.replace("class = \"low\"\n", "");
    bad(&text, "name = \"clock\"", title, "write `class = \"low\"`");
    let text = good.replace("bytes = 8", "bytes = 7");
    bad(&text, "bytes", "`clock` carries the time, and has 7 bytes", "write `bytes = 8`");
    let text = good.replace("period = \"10ms\"\n", "");
    bad(&text, "name = \"clock\"", "message `clock` has no `period`", "add `period");
    let text = good.replace("time_read = \"2us\"\n", "");
    bad(&text, "name = \"drive\"", "CAN bus `drive` has no `time_read`", "add `time_read");
    let text = good.replace("\"2us\"", "\"1999ns\"");
    let title = "a frame ends 2000 ns later for its sender than for receivers";
    bad(&text, "time_read", title, "write `time_read = \"2000ns\"`");
    for (key, value) in [("time_drift", "10001"), ("time_losses", "1001")] {
        let text = timed(&format!("{key} = {value}"), CARRIES);
        bad(&text, key, &format!("`{key}` is {value}, out of range"), "write");
    }
    let text = bus(&format!("{MTS}\ntime_losses = 1")) + &message(UNIT);
    bad(&text, "time_losses", "`time_losses` says nothing here", "add `time = \"…\"`");
    let text = bus(&format!("{DM}\ntime = \"speed\"")) + &message(UNIT);
    let found = problems(&text);
    assert!(found.items().iter().any(|item| item.title == "`time` says nothing here"), "{found}");
    let process = "[[process]]\nname = \"control\"\npriority = 1\n";
    let text = good.replace(UNIT, "process = \"control\"") + process;
    bad(&text, "process = ", "`control` of this host cannot send under MTS", "node = ");
}

#[test]
fn identifiers_are_written_or_assigned() {
    let text = bus(WRITTEN) + &message(UNIT);
    bad(&text, "name = \"speed\"", "`speed` has no identifier", "add `id = 0x100`");
    let text = bus(DM) + &message(&format!("{UNIT}\nid = 0x100"));
    bad(&text, "id = 0x100", "`drive` assigns the identifiers of its messages", "remove `id`");
    let text = bus(WRITTEN) + &message(&format!("{UNIT}\nid = 0x800"));
    let found = problems(&text);
    let items = found.items();
    let titles: Vec<&str> = items.iter().map(|item| item.title).collect();
    assert!(titles.contains(&"`id` is 2048, out of range"), "{found}");
    let wide = text.replace("id = 0x800", "id = 0x800\nextended = true");
    assert_eq!(parse("f", &wide).unwrap().cans[0].messages[0].id, Some((0x800, true)));
    let twin = message("node = \"b\"\nid = 0x7").replace("speed", "brake");
    let text = bus(WRITTEN) + &message(&format!("{UNIT}\nid = 7")) + &twin;
    bad(&text, "id = 0x7", "two messages on `drive` have this identifier", "of its own");
}

#[test]
fn a_process_needs_an_interface_and_a_pipe() {
    let process = "[[process]]\nname = \"control\"\npriority = 1\n";
    let own = message("process = \"control\"");
    let text = bus(DM) + process + &own;
    bad(&text, "process = ", "`control` is not connected to `drive`", "add `usb = \"…\"`");
    let text = bus(MTS) + process + &own;
    bad(
        &text,
        "process = ",
        "`control` of this host cannot send under MTS",
        "renews no identifiers",
    );
    let text = bus(DM) + process + &message("process = \"controls\"");
    let title = "no process named `controls` is declared";
    bad(&text, "process = ", title, "did you mean `control`?");
    let text = bus(DM) + process + &message("process = \"control\"\nnode = \"unit\"");
    assert_eq!(problems(&text).items().len(), 2, "two senders, and no interface");
}

#[test]
fn an_interface_is_one_of_the_host_at_its_rate() {
    let text = bus(&format!("{DM}\nusb = \"interface\"")) + &message(UNIT);
    bad(&text, "usb = ", "no USB device is called `interface`", "`[[usb]]`");
}
