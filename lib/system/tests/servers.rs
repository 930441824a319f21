//! The check before boot of a USB server's needs, and of requests that it cannot serve.

use diapason_system::parse;

/// A server with one pipe, whole.
const WHOLE: &str = r#"
[system]
name = "s"
[[process]]
name = "usbd"
priority = 40
vcpu = "usb-manage"
heap = "128K"
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

/// The titles and remedies of what is wrong with the servers of a description.
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
        "`xhci` has too few messages for what `usbd` serves",
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
        "`xhci` has too few messages for what `usbd` serves",
        "`usbd` has 2 threads, and starts with 3",
        "`usbd` has 2 events, and starts with 3",
        "`usbd` has 3 semaphores, and starts with 4",
    ];
    assert_eq!(titles, lacks);
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
    let second =
        "[[usb]]\nname = \"second\"\non = \"xhci\"\nport = 2\nmodel = \"usb-can\"\n[[pipe]]";
    let found = said(
        &WHOLE.replace("[[pipe]]", second).replace("from = \"interface\"", "from = \"second\""),
    );
    let title = "`second` and `interface` are CAN interfaces, and `usbd` serves one";
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, title);
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
