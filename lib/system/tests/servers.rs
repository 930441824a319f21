//! The check before boot of a USB server's needs, and of requests that it cannot serve.

use crate::common::{built, told};
use diapason_contract::can::{CanInterface, INTERFACES};
use diapason_contract::settings::{DEVICES, Expected};
use diapason_contract::threads::ServiceKind;
use diapason_system::parse;
use std::fs;
use std::path::PathBuf;

/// A server with one pipe, whole.
const WHOLE: &str = r#"
[system]
name = "s"
[[process]]
name = "usbd"
priority = 40
vcpu = "usb-manage"
heap = "384K"
stack = "40K"
threads = 2
semaphores = 3
events = 2
uses = ["xhci", "usb-rings", "usb-buffers", "usb-receive"]
[[process]]
name = "reader"
priority = 30
vcpu = "read"
[[vcpu]]
name = "usb-manage"
budget = "200us"
period = "10ms"
[[vcpu]]
name = "read"
budget = "400us"
period = "6ms"
[[vcpu]]
name = "usb-receive"
kind = "io"
utilization = "25%"
interval = "990us"
serves = ["read"]
[[device]]
name = "xhci"
pci = "0c0330"
size = "16K"
irqs = 2
interval = ["1990us", "990us"]
[[segment]]
name = "usb-rings"
size = "512K"
dma = true
[[segment]]
name = "usb-buffers"
size = "16K"
dma = true
[[usb]]
name = "interface"
on = "xhci"
model = "usb-can"
[[pipe]]
name = "brakes"
from = "interface"
channel = 4
reader = "reader"
rate = 3200
"#;

/// Returns the titles and remedies of what is wrong with the servers of a description.
fn said(text: &str) -> Vec<(String, String)> {
    let system = parse("f", text).unwrap_or_else(|found| panic!("{found}"));
    let found = system.unservable();
    let items = found.iter().flat_map(|one| one.items());
    items.map(|item| (item.title.to_owned(), item.help.to_owned())).collect()
}

#[track_caller]
fn refused(change: (&str, &str), title: &str, help: &str) {
    assert!(WHOLE.contains(change.0), "{}", change.0);
    let found = said(&WHOLE.replacen(change.0, change.1, 1));
    assert_eq!(found, [(title.to_owned(), help.to_owned())]);
}

#[test]
fn one_pipe_of_five_needs_one_pipe() {
    assert_eq!(said(WHOLE), []);
}

#[test]
fn what_a_server_lacks_is_named() {
    refused(
        ("\"usb-rings\", ", ""),
        "`usbd` needs the segment `usb-rings`",
        "declare it, and add `\"usb-rings\"` to its `uses`",
    );
    refused(
        ("threads = 2", "threads = 1"),
        "`usbd` has 1 threads, and starts with 2",
        "write `threads = 2`",
    );
    refused(
        ("semaphores = 3", "semaphores = 2"),
        "`usbd` has 2 semaphores, and starts with 3",
        "write `semaphores = 3`",
    );
    refused(
        ("events = 2", "events = 1"),
        "`usbd` has 1 events, and starts with 2",
        "write `events = 2`",
    );
    refused(
        ("irqs = 2\ninterval = [\"1990us\", \"990us\"]", "irqs = 1\ninterval = \"1990us\""),
        "`xhci` has too few messages for the devices that `usbd` serves",
        "write `irqs = 2`, and an `interval` for each",
    );
    let disks = "uses = [\"xhci\", \"usb-rings\", \"usb-buffers\", \"usb-receive\"]\n\
                 [process.settings]\nserves = [\"can\", \"sensors\"]";
    let uses = disks.lines().next().unwrap_or_default();
    let text = WHOLE.replace(uses, disks);
    let titles: Vec<String> = said(&text).into_iter().map(|(title, _)| title).collect();
    let lacks = [
        "`usbd` needs the VCPU `usb-sensor`",
        "`usbd` needs the segment `sensor`",
        "`usbd` needs the semaphore `sensor.ready`",
        "`xhci` has too few messages for the devices that `usbd` serves",
        "`usbd` has 2 threads, and starts with 3",
        "`usbd` has 2 events, and starts with 3",
        "`usbd` has 3 semaphores, and starts with 4",
    ];
    assert_eq!(titles, lacks);
}

#[test]
fn hardware_that_a_server_cannot_work_with_is_refused() {
    refused(
        ("size = \"16K\"\nirqs", "size = \"8K\"\nirqs"),
        "`xhci` has too few registers for `usbd`",
        "write `size = \"16K\"` or more",
    );
    refused(
        ("size = \"512K\"", "size = \"256K\""),
        "`usb-rings` is too small for the rings of a controller",
        "write `size = \"512K\"` or more",
    );
    for (name, size) in [("usb-rings", "512K"), ("usb-buffers", "16K")] {
        let own = format!("name = \"{name}\"\nsize = \"{size}\"\ndma = ");
        refused(
            (&(own.clone() + "true"), &(own + "false")),
            &format!("`usbd` gives the memory of `{name}` to a device, which cannot reach it"),
            &format!("add `dma = true` to the segment `{name}`"),
        );
    }
    for (number, said, asked) in [(0, ["2001us", "990us"], "2ms"), (1, ["1990us", "1990us"], "1ms")]
    {
        let interval = format!("interval = [\"{}\", \"{}\"]", said[0], said[1]);
        refused(
            ("interval = [\"1990us\", \"990us\"]", &interval),
            &format!("`xhci.{number}` interrupts more often than its `interval` says"),
            &format!("write at most \"{asked}\" for it: `usbd` asks for that"),
        );
    }
    assert_eq!(said(&WHOLE.replace("[\"1990us\", \"990us\"]", "[\"2ms\", \"1ms\"]")), []);
}

/// Returns what is said of the servers of an example with one text for another.
fn said_of(example: &str, (from, to): (&str, &str)) -> Vec<(String, String)> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(example);
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{example} has no {from}");
    said(&text.replacen(from, to, 1))
}

#[test]
fn servers_of_adapters_and_of_debug_targets_have_what_they_make() {
    let [control, asker] = ["ethernet/control.toml", "links/asker.toml"];
    let pair = |title: &str, help: &str| (title.to_owned(), help.to_owned());
    let counts = [("threads", 2, 1), ("semaphores", 1, 0), ("events", 1, 0)];
    for (key, needed, has) in counts {
        let title = format!("`net` has {has} {key}, and starts with {needed}");
        let found = said_of(control, (&format!("{key} = {needed}\n"), ""));
        assert_eq!(found, [pair(&title, &format!("write `{key} = {needed}`"))]);
    }
    let title = "`dbcd` has 0 semaphores, and starts with 1";
    let found = said_of(asker, ("semaphores = 1 ", "semaphores = 0 "));
    assert_eq!(found, [pair(title, "write `semaphores = 1`")]);
    let found = said_of(asker, ("heap = \"4K\"\n", ""));
    assert_eq!(
        found,
        [pair("`dbcd` has too little heap for its program", "write `heap = \"4K\"`")]
    );
    let found = said_of(asker, ("name = \"dbcd\"\n", "name = \"dbcd\"\nstack = \"12K\"\n"));
    let title = "the stacks of `dbcd` are too small for its program";
    assert_eq!(found, [pair(title, "write `stack = \"16K\"`")]);
    let used = "\"dbc-rings\", ";
    let found = said_of(asker, (used, ""));
    let help = "declare it, and add `\"dbc-rings\"` to its `uses`";
    assert_eq!(found, [pair("`dbcd` needs the segment `dbc-rings`", help)]);
    let found = said_of(asker, ("size = \"8K\"\ndma = true", "size = \"8K\""));
    let title = "`dbcd` gives the memory of `dbc-rings` to a device, which cannot reach it";
    assert_eq!(found, [pair(title, "add `dma = true` to the segment `dbc-rings`")]);
    let found = said_of(asker, ("size = \"8K\"\ndma = true", "size = \"4K\"\ndma = true"));
    let title = "`dbc-rings` is too small for the rings of a controller";
    assert_eq!(found, [pair(title, "write `size = \"8K\"` or more")]);
    // A process of `netd` at a pipe of a USB network device has one thread and no interrupts.
    assert_eq!(said_of("udp-usb.toml", ("", "")), []);
}

#[test]
fn threads_that_could_not_start_or_would_overflow_are_refused() {
    refused(
        ("stack = \"40K\"", "stack = \"36K\""),
        "the stacks of `usbd` are too small for its program",
        "write `stack = \"40K\"`",
    );
    refused(
        ("priority = 40", "priority = 0"),
        "`usbd` has priority 0, and further threads of it have 1",
        "write at least `priority = 1`",
    );
    let reader = "name = \"reader\"\npriority = 30\n";
    let manual = WHOLE.replace(reader, &format!("{reader}starts = [\"usbd\"]\n"));
    let manual = manual.replacen("priority = 40", "priority = 40\nstart = \"manual\"", 1);
    let title = "`usbd` runs only when another process starts it";
    assert_eq!(said(&manual), [(title.into(), "take `start = \"manual\"` out of it".into())]);
    let adapter = "uses = [\"nic0\", \"nic0.receive\"]\n[[vcpu]]\nname = \"nic0.receive\"\n\
                   budget = \"100us\"\nperiod = \"1ms\"\n\
                   [[adapter]]\ndevice = \"nic0\"\naddress = \"10.0.0.1\"\n\
                   mac = \"02:00:00:00:00:01\"\n\
                   [[device]]\nname = \"nic0\"\npci = \"020000\"\nvendor = \"8086:10d3\"\n\
                   size = \"128K\"\n\
                   irqs = 1\ninterval = \"1ms\"\n";
    let programs = [("netd", "64K", adapter), ("cand", "64K", ""), ("link-router", "12K", "")];
    for (program, stack, more) in programs {
        let text = format!(
            "[system]\nname = \"s\"\n[[process]]\nname = \"p\"\nprogram = \"{program}\"\n\
             priority = 0\nthreads = 2\nsemaphores = 1\nevents = 1\nstack = \"8K\"\n{more}"
        );
        let remedies: Vec<String> = said(&text).into_iter().map(|(_, help)| help).collect();
        let stack = format!("write `stack = \"{stack}\"`");
        assert_eq!(remedies, [stack, "write at least `priority = 1`".into()]);
    }
}

#[test]
fn a_channel_that_is_open_and_in_no_bill_is_refused() {
    let segment = "[[segment]]\nname = \"can1\"\nsize = \"12K\"\n\
                   [[semaphore]]\nname = \"can1.ready\"\n[[usb]]";
    let text = WHOLE.replace("[[usb]]", segment);
    let text = text.replace("\"usb-receive\"]", "\"usb-receive\", \"can1\", \"can1.ready\"]");
    let found = said(&text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, "messages from channel 1 are in no bill");
}

#[test]
fn an_interface_that_nobody_serves_carries_no_pipe() {
    let other =
        "[[device]]\nname = \"other\"\npci = \"0c0330\"\ninstance = 1\nsize = \"16K\"\n[[usb]]";
    let text = WHOLE.replace("[[usb]]", other).replace("on = \"xhci\"", "on = \"other\"");
    let text = text.replace("uses = [\"xhci\"", "uses = [\"other\", \"xhci\"");
    let found = said(&text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, "`interface` is plugged into `other`, but `usbd` drives `xhci`");
    let hub =
        "[[usb]]\nname = \"hub\"\non = \"xhci\"\nmodel = \"hub\"\n[[usb]]\nname = \"interface\"";
    let text = WHOLE.replace("[[usb]]\nname = \"interface\"", hub);
    let text =
        text.replace("on = \"xhci\"\nmodel = \"usb-can\"", "behind = \"hub\"\nmodel = \"usb-can\"");
    let found = said(&text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, "`interface` is behind a hub, and `usbd` serves none");
    let text = text.replace("[[process]]\nname = \"reader\"", SETTINGS);
    assert_eq!(said(&text), []);
    let more = |count: usize| -> String {
        let hub = |port: usize| {
            format!(
                "[[usb]]\nname = \"hub{port}\"\non = \"xhci\"\nmodel = \"hub\"\nport = {port}\n"
            )
        };
        (2..2 + count).map(hub).collect()
    };
    let text = text.replace("size = \"16K\"", "size = \"64K\"");
    let with = |count| text.replacen("[[usb]]", &format!("{}[[usb]]", more(count)), 1);
    assert_eq!(said(&with(5)), []);
    let title = "`interface` is behind a hub, and `usbd` serves 6 of the 7 that are there";
    let help = "remove a hub, or plug `interface` into the controller";
    assert_eq!(said(&with(6)), [(title.to_owned(), help.to_owned())]);
}

/// A second interface, with two channels and a pipe from the last one.
const SECOND: &str = r#"
[[usb]]
name = "second"
on = "xhci"
port = 2
model = "usb-can"
channels = 2
bit_rates = [125_000]
sample_point = 800
[[process]]
name = "panel"
priority = 30
vcpu = "show"
[[vcpu]]
name = "show"
budget = "400us"
period = "6ms"
[[pipe]]
name = "doors"
from = "second"
channel = 1
reader = "panel"
rate = 100
"#;

/// Returns a server with two interfaces, whole.
fn two() -> String {
    let changes = [
        ("threads = 2", "threads = 3"),
        ("semaphores = 3", "semaphores = 4"),
        ("events = 2", "events = 3"),
        ("\"usb-receive\"]", "\"usb-receive\", \"usb-receive1\"]"),
        ("irqs = 2", "irqs = 3"),
        ("[\"1990us\", \"990us\"]", "[\"1990us\", \"990us\", \"990us\"]"),
        ("size = \"16K\"\ndma", "size = \"32K\"\ndma"),
    ];
    let text = changes.iter().fold(format!("{WHOLE}{SECOND}"), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    let half = "[[vcpu]]\nname = \"usb-receive1\"\nkind = \"io\"\nutilization = \"10%\"\n\
                interval = \"990us\"\nserves = [\"show\"]\n[[device]]";
    text.replace("[[device]]", half)
}

#[test]
fn a_second_interface_needs_a_bottom_half_and_memory_of_its_own() {
    assert_eq!(said(&two()), []);
    let lacks: Vec<String> =
        said(&format!("{WHOLE}{SECOND}")).into_iter().map(|(title, _)| title).collect();
    let expected = [
        "`usbd` needs the VCPU `usb-receive1`",
        "`xhci` has too few messages for the devices that `usbd` serves",
        "`usbd` has 2 threads, and starts with 3",
        "`usbd` has 2 events, and starts with 3",
        "`usbd` has 3 semaphores, and starts with 4",
        "`usb-buffers` is too small for the transfers of 2 devices",
    ];
    assert_eq!(lacks, expected);
    let small = two().replace("heap = \"384K\"", "heap = \"128K\"");
    let heap =
        ("`usbd` has too little heap for the devices that it serves", "write `heap = \"384K\"`");
    assert_eq!(said(&small), [(heap.0.to_owned(), heap.1.to_owned())]);
    assert_eq!(said(&WHOLE.replace("heap = \"384K\"", "heap = \"128K\"")), [], "one needs less");
    let written = two().replace("from = \"second\"", "to = \"second\"");
    let written = written.replace("reader = \"panel\"", "writer = \"panel\"");
    let titles: Vec<String> = said(&written).into_iter().map(|(title, _)| title).collect();
    assert_eq!(titles[0], "`usbd` needs the VCPU `usb-send1`");
}

#[test]
fn channels_are_numbered_through_all_interfaces() {
    let system = parse("f", &two()).unwrap_or_else(|found| panic!("{found}"));
    let numbers: Vec<(u8, u8)> = system.pipes.iter().map(|it| (it.channel, it.number)).collect();
    assert_eq!(numbers, [(4, 4), (1, 6)]);
    let uses = &system.processes[2].uses;
    assert!(uses.iter().any(|name| name == "can6"), "{uses:?}");
    let archive = built(&system).unwrap();
    let told = told(&archive, 0);
    assert_eq!(told.get("opens"), [4, 6]);
    assert_eq!(
        told.get("bit-rates"),
        [500_000, 500_000, 500_000, 500_000, 500_000, 125_000, 500_000]
    );
    assert_eq!(told.get("sample-point"), [875, 800]);
    let interfaces: Vec<CanInterface> = CanInterface::all(told.get(INTERFACES)).collect();
    let (first, second) = ((0, 5), (5, 2));
    assert!(interfaces.iter().map(|it| (it.first, it.channels)).eq([first, second]));
    let expected: Vec<Expected> = Expected::all(told.get(DEVICES)).collect();
    assert!(expected.iter().map(|it| (it.interface, it.connector)).eq([(0, 1), (1, 2)]));
    // The key of a bus has the number that its channel has in the system.
    let named = |name: &str| two().replace("channels = 2", &format!("channels = 2\n{name}"));
    let with = parse("f", &named("receivers = [\"can5\"]")).unwrap();
    assert_eq!(with.usb[1].buses[0].channel, 0);
    let wrong = parse("f", &named("receivers = [\"can1\"]")).unwrap_err();
    let item = wrong.items()[0];
    assert_eq!(item.title, "`can1` is no channel of `second`");
    assert_eq!(item.help, "write `\"can5\"` to `\"can6\"`");
}

/// Cameras in the order of the text have the seats in their order.
#[test]
fn each_stream_is_told_the_place_of_its_camera() {
    let text = include_str!("../../../examples/links/dx1100.toml");
    let expected = |text: &str| -> Vec<(u8, u8)> {
        let archive = built(&parse("f", text).unwrap()).unwrap();
        let all: Vec<Expected> = Expected::all(told(&archive, 0).get(DEVICES)).collect();
        assert!(all.iter().all(|it| it.service == ServiceKind::Cameras));
        all.iter().map(|it| (it.interface, it.connector)).collect()
    };
    assert_eq!(expected(text), [(0, 3), (1, 4), (2, 5), (3, 6)]);
    let moved = text.replace("port = 3\n", "port = 7\n");
    assert_eq!(expected(&moved), [(0, 7), (1, 4), (2, 5), (3, 6)]);
    // A camera beyond the seats has a number that no stream has.
    let fewer = text.replace("streams = [1, 2, 4, 8]", "streams = [1]");
    assert_eq!(expected(&fewer), [(0, 3), (1, 4), (2, 5), (3, 6)]);
}

#[test]
fn a_host_has_ten_channels() {
    let more = |channels: u8| two().replace("channels = 2", &format!("channels = {channels}"));
    assert!(parse("f", &more(5)).is_ok());
    let third =
        "[[usb]]\nname = \"third\"\non = \"xhci\"\nport = 3\nmodel = \"usb-can\"\nchannels = 1\n";
    let wrong = parse("f", &format!("{}{third}", more(5))).unwrap_err();
    let item = wrong.items()[0];
    assert_eq!(item.title, "11 CAN channels, the most of a host is 10");
    assert_eq!(item.help, "write fewer `channels`, or remove an interface");
}

/// A program with the registers of a controller can make it do anything, and so can one that writes
/// the memory with the controller's rings.
#[test]
fn only_the_driver_uses_a_device() {
    let strangers = |text: &str| {
        let found = parse("f", text).unwrap_or_else(|wrong| panic!("{wrong}")).strangers();
        let items = found.iter().flat_map(|one| one.items());
        items.map(|item| (item.title.to_owned(), item.help.to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(strangers(WHOLE), []);
    for name in ["xhci", "usb-rings", "usb-buffers"] {
        let uses = format!("name = \"reader\"\npriority = 30\nuses = [\"{name}\"]");
        let text = WHOLE.replace("name = \"reader\"\npriority = 30", &uses);
        let title = format!("`reader` uses `{name}`, which `usbd` drives");
        let help = format!("remove `\"{name}\"` from its `uses`");
        assert_eq!(strangers(&text), [(title, help)]);
    }
    let text = include_str!("../../../examples/cameras.toml");
    assert_eq!(strangers(text), []);
    let title = "`task` may put threads on `usb-camera1`, a VCPU of `usbd`".to_owned();
    let help = "give it another `vcpu`, and leave this one out of its `uses`".to_owned();
    let spin = "program = \"spin\"\n";
    let on = text.replace(spin, &format!("{spin}vcpu = \"usb-camera1\"\n"));
    let uses = text.replace("uses = [\"progress\"]", "uses = [\"progress\", \"usb-camera1\"]");
    for text in [on, uses] {
        assert_eq!(strangers(&text), [(title.clone(), help.clone())]);
    }
    let tuned = include_str!("../../../examples/tuned-pipes.toml");
    assert_eq!(strangers(tuned), []);
    let text = include_str!("../../../examples/udp.toml");
    assert_eq!(strangers(text), []);
    let with = |name: &str| {
        format!("{text}[[process]]\nname = \"other\"\npriority = 5\nuses = [\"{name}\"]\n")
    };
    let on_driver =
        format!("{text}[[process]]\nname = \"other\"\npriority = 5\nvcpu = \"send-0\"\n");
    let titles = strangers(&on_driver).into_iter().map(|it| it.0).collect::<Vec<_>>();
    assert_eq!(titles, ["`other` may put threads on `send-0`, a VCPU of `net0`"]);
    let titles = strangers(&with("nic0")).into_iter().map(|it| it.0).collect::<Vec<_>>();
    assert_eq!(titles, ["`other` uses `nic0`, which `net0` drives"]);
    let wrong = parse("f", &with("nic0.buffers")).unwrap_err().plain();
    assert!(wrong.contains("`other` uses `nic0.buffers`, which belongs to others"), "{wrong}");
}

#[test]
fn programs_open_pipes_of_the_first_interface() {
    let place = "[[tpipe]]\nname = \"any\"\nfrom = \"second\"\nreader = \"panel\"\nchannels = [0]\n\
                 rate = 100\nbudget = \"100us\"\nperiod = \"10ms\"\n\
                 [[vcpu]]\nname = \"usb-tune\"\nkind = \"io\"\nutilization = \"5%\"\n\
                 interval = \"5ms\"\nserves = [\"read\"]\n";
    let text = two()
        .replace("priority = 30\nvcpu = \"show\"", "priority = 30\nvcpu = \"show\"\nthreads = 2");
    let text = text.replace("threads = 3", "threads = 4").replace("events = 3", "events = 4");
    let text = text.replace("\"usb-receive1\"]", "\"usb-receive1\", \"usb-tune\"]");
    let text = text.replace("stack = \"40K\"", "stack = \"56K\"");
    let found = said(&format!("{text}{place}"));
    let title = "`second` is not the first CAN interface, which is `interface`";
    assert_eq!(found.iter().map(|(title, _)| title.as_str()).collect::<Vec<_>>(), [title]);
    let first = place.replace("from = \"second\"", "from = \"interface\"");
    assert_eq!(said(&format!("{text}{first}")), []);
}

#[test]
fn an_interface_that_the_server_does_not_look_for_carries_no_pipe() {
    let settings = SETTINGS.replace("\"can\", ", "");
    let found = said(&WHOLE.replace("[[process]]\nname = \"reader\"", &settings));
    let title = "`interface` is of `can`, and `usbd` serves none";
    let help = "add `\"can\"` to the `serves` of its `[process.settings]`";
    assert!(found.contains(&(title.to_owned(), help.to_owned())), "{found:?}");
}

/// The server is told to serve hubs, too; the next process follows.
const SETTINGS: &str =
    "[process.settings]\nserves = [\"can\", \"hubs\"]\n[[process]]\nname = \"reader\"";

#[test]
fn the_memory_for_transfers_is_enough_for_all_devices() {
    let text = include_str!("../../../examples/usb-devices.toml");
    let sized = |kib: u32| {
        let from = text.find("name = \"usb-buffers\"").unwrap();
        let (before, behind) = text.split_at(from);
        let size = behind.find("size = ").unwrap();
        let end = size + behind[size..].find('\n').unwrap();
        format!("{before}{}size = \"{kib}K\"{}", &behind[..size], &behind[end..])
    };
    let title = "`usb-buffers` is too small for the transfers of 5 devices";
    let of_memory =
        |text: &str| said(text).into_iter().find(|(title, _)| title.contains("usb-buffers"));
    assert_eq!(of_memory(&sized(16)), None);
    let help = "write `size = \"16K\"` or more";
    assert_eq!(of_memory(&sized(12)), Some((title.to_owned(), help.to_owned())));
}
