//! The rules of a `[[device]]` that is a PCI function, and of memory for devices.

use crate::common::{built, problems, refused};
use diapason_abi::archive::{Archive, Location, MESSAGES, NONE, PciFunction};
use diapason_abi::{Key, PAGE};
use diapason_system::{ControllerVariant, parse};

/// Returns a PCI device `xhci` with more keys; its `pci` is in line 9, the keys begin in line 11.
fn device(keys: &str) -> String {
    format!(
        "[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n\
         uses = [\"xhci\"]\n[[device]]\nname = \"xhci\"\npci = \"0c0330\"\nsize = \"16K\"\n\
         {keys}\n"
    )
}

/// With these keys, the first of them is refused.
#[track_caller]
fn bad(keys: &str, column: usize, title: &str, help: &str) {
    refused(&device(keys), (11, column), title, help);
}

const XHCI: PciFunction =
    PciFunction { class: 0x0c_0330, vendor: NONE, product: NONE, instance: 0, bar: 0 };

#[test]
fn a_function_is_described_by_what_it_is() {
    let location = |keys| parse("f", &device(keys)).unwrap().devices[0].location;
    assert_eq!(location(""), Location::Pci(XHCI));
    let all = "vendor = \"1B36:000d\"\ninstance = 255\nbar = 5";
    let (vendor, product) = (0x1b36, 0x000d);
    let found = PciFunction { vendor, product, instance: 255, bar: 5, ..XHCI };
    assert_eq!(location(all), Location::Pci(found));
    assert_eq!(
        location("vendor = \"8086\""),
        Location::Pci(PciFunction { vendor: 0x8086, ..XHCI })
    );
}

#[test]
fn messages_are_devices_behind_the_declared_ones() {
    let keys = "irqs = 2\ninterval = [\"1ms\", \"125us\"]\n\
                [[device]]\nname = \"nic\"\npci = \"020000\"\nsize = \"4K\"\nirqs = 1";
    let system = parse("f", &device(keys)).unwrap();
    let names: Vec<&str> = system.devices.iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["xhci", "nic", "xhci.0", "xhci.1", "nic.0"]);
    let bytes = built(&system).unwrap();
    let archive = Archive::parse(&bytes).unwrap();
    let records: Vec<_> = archive.devices().collect();
    let message = |of, vector| Location::Message { of, vector };
    let expected = [
        ("xhci.0", 1, message(0, 0), 1_000_000),
        ("xhci.1", 1, message(0, 1), 125_000),
        ("nic.0", 0, message(1, 0), 0),
    ];
    for ((record, expected), irq) in records[2..].iter().zip(expected).zip(MESSAGES..) {
        let (name, allowed, location, interval) = expected;
        assert_eq!((record.key, record.allowed), (Key::new(name).0, allowed));
        assert_eq!((record.location, record.interval), (location, interval));
        assert_eq!((record.irq, record.level, record.pages), (irq, false, 0));
    }
    assert_eq!((records[0].irq, records[0].pages), (NONE, 4));
}

#[test]
fn one_interval_is_that_of_every_message() {
    let system = parse("f", &device("irqs = 3\ninterval = \"1ms\"")).unwrap();
    let intervals = system.devices.iter().map(|d| d.interrupt.and_then(|i| i.interval_ns));
    assert_eq!(
        intervals.collect::<Vec<_>>(),
        [None, Some(1_000_000), Some(1_000_000), Some(1_000_000)]
    );
}

#[test]
fn classes_and_vendors_are_hexadecimal() {
    for class in ["0c03", "0c033z", "+c0330", "0c03300", ""] {
        let text = device("").replace("0c0330", class);
        let title = format!(
            "`{class}` is not six hexadecimal digits: class, subclass, programming interface"
        );
        refused(&text, (9, 7), &title, "write it as in `pci = \"0c0330\"`");
    }
    for vendor in ["1b3", "1b36:", "1b36:000", "ffff", "1b36:ffff", "1b36:000d:1"] {
        let title = format!("`{vendor}` is not four hexadecimal digits, or four and four");
        let help = "write it as in `vendor = \"1b36:000d\"`";
        bad(&format!("vendor = \"{vendor}\""), 10, &title, help);
    }
    bad(
        "bar = 6",
        7,
        "`bar` is 6, out of range",
        "write a whole number from 0 to 5, a base address register",
    );
    let help = "write a whole number from 1 to 14, the messages (MSI-X) it sends";
    bad("irqs = 0", 8, "`irqs` is 0, out of range", help);
}

#[test]
fn keys_belong_to_one_kind_of_device() {
    let help = "remove `address`: firmware decides where a PCI device has its registers";
    let text = device("address = 0xfed00000");
    refused(&text, (9, 7), "a device has `address` or `pci`, not both", help);
    let help = "write `irqs = 1`: it sends messages, which need no line and no trigger";
    bad("irq = 3", 7, "`irq` is not for a PCI device", help);
    bad("trigger = \"edge\"", 11, "`trigger` is not for a PCI device", help);
    for key in ["instance", "bar", "irqs"] {
        let text =
            device(&format!("{key} = 1")).replace("pci = \"0c0330\"", "address = 0xfed00000");
        let help = format!("add `pci = \"…\"`, the class of a PCI device, or remove `{key}`");
        refused(&text, (11, key.len() + 4), &format!("`{key}` without `pci`"), &help);
    }
}

#[test]
fn intervals_are_those_of_the_interrupts() {
    let help = "add `irqs = …`, the number of messages it sends, or remove `interval`";
    bad("interval = \"1ms\"", 12, "`interval` without `irqs`", help);
    let help = "write one `interval` for each, or a single one without a list for all";
    let two = "interval = [\"1ms\", \"2ms\"]\nirqs = 3";
    bad(two, 13, "2 intervals for 3 interrupts", help);
    let help = "write a time from `1us` to `3600s`";
    bad("interval = [\"1ms\", \"2ns\"]\nirqs = 2", 20, "`interval` is out of range", help);
    let vcpu = "irqs = 2\n[[vcpu]]\nname = \"v\"\nbudget = \"1ms\"\nperiod = \"5ms\"";
    let help = "add `interval = \"1ms\"`, the shortest time between two of its interrupts";
    bad(vcpu, 8, "nothing bounds how often `xhci` interrupts", help);
}

#[test]
fn a_function_is_described_once() {
    let second = |keys| {
        let second = "[[device]]\nname = \"second\"\npci = \"0c0330\"\nsize = \"4K\"";
        device(&format!("{second}\n{keys}"))
    };
    let help = "add `instance = 1` if the machine has two of them, or remove one";
    let title = "`second` and `xhci` are the same PCI function";
    refused(&second("bar = 2"), (13, 7), title, help);
    assert!(parse("f", &second("instance = 1")).is_ok());
    assert!(parse("f", &second("vendor = \"8086\"")).is_ok());
}

#[test]
fn messages_have_names_of_their_own_and_are_granted_with_their_device() {
    let text = device("irqs = 2\n[[condition]]\nname = \"xhci.1\"");
    let title = "`xhci.1` is the name of an interrupt of `xhci`";
    let found = problems(&text);
    assert_eq!(found.items()[0].title, title, "{found}");
    assert!(parse("f", &device("irqs = 2\n[[condition]]\nname = \"xhci.2\"")).is_ok());
    let text = device("irqs = 2").replace("[\"xhci\"]", "[\"xhci.1\"]");
    let help = "write `xhci`: it grants the device and all its interrupts";
    refused(&text, (6, 9), "`xhci.1` cannot be granted alone", help);
}

#[test]
fn the_kernel_has_vectors_for_14_interrupts() {
    let second =
        "irqs = 14\n[[device]]\nname = \"hpet\"\naddress = 0xfed00000\nsize = \"4K\"\nirq = 2";
    let help = "remove 1 of them, or merge some";
    refused(&device(second), (13, 8), "15 interrupts, the most is 14", help);
    assert!(parse("f", &device(&second.replace("14", "13"))).is_ok());
}

#[test]
fn memory_for_devices_says_so_in_the_archive() {
    let text = device(
        "[[segment]]\nname = \"rings\"\nsize = \"64K\"\ndma = true\n\
         [[segment]]\nname = \"plain\"\nsize = \"4K\"",
    );
    let bytes = built(&parse("f", &text).unwrap()).unwrap();
    let archive = Archive::parse(&bytes).unwrap();
    let segments: Vec<_> = archive.segments().map(|s| (s.pages as usize * PAGE, s.dma)).collect();
    assert_eq!(segments, [(65_536, true), (PAGE, false)]);
    let text = device("[[segment]]\nname = \"rings\"\nsize = \"64K\"\ndma = 1");
    let title = "`dma` is an integer, expected `true` or `false`";
    refused(&text, (14, 7), title, "write it as in `dma = true`");
}

#[test]
fn the_simulators_controller_can_be_as_others() {
    let simulated = |keys| parse("f", &device(keys)).unwrap().devices[0].simulated;
    assert_eq!(simulated(""), ControllerVariant::default());
    let intel = "simulated = [\"large-contexts\", \"scratchpads\", \"firmware\", \"msi\"]";
    let all =
        ControllerVariant { large_contexts: true, scratchpads: true, firmware: true, msi: true };
    assert_eq!(simulated(intel), all);
    let one = ControllerVariant { msi: true, ..ControllerVariant::default() };
    assert_eq!(simulated("simulated = [\"msi\"]"), one);
    let (title, help) = ("`simulated` cannot be `firmwar`", "did you mean `firmware`?");
    bad("simulated = [\"firmwar\"]", 14, title, help);
    let other = device("simulated = [\"msi\"]").replace("0c0330", "020000");
    let (title, help) =
        ("`simulated` is for a USB controller", "remove it, or add `pci = \"0c0330\"`");
    refused(&other, (11, 14), title, help);
}
