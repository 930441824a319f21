//! The examples in the reference are descriptions that work.

use diapason_contract::threads::WORDS;
use diapason_system::parse;

const REFERENCE: &str = include_str!("../../../docs/description.md");

#[test]
fn the_examples_in_the_reference_are_sound() {
    let examples: Vec<&str> = REFERENCE
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .filter(|text| text.contains("[system]"))
        .collect();
    assert!(!examples.is_empty());
    for text in examples {
        parse("description.md", text).unwrap();
    }
}

const SECTION: [&str; 4] = ["mutex", "longest", "times", "inside"];

const FAULT: [&str; 10] =
    ["at", "what", "for", "by", "count", "channel", "ppm", "which", "times", "process"];

/// Those of pipes and chains.
const PIPE: [&str; 14] = [
    "endpoint", "link", "every", "slots", "from", "reader", "to", "writer", "rate", "burst",
    "jitter", "work", "latency", "channels",
];

/// Those of a server's settings.
const SETTINGS: [&str; 7] =
    ["serves", "says", "links", "promise", "streams", "critical", "clients"];

/// Those of the buses of a CAN interface.
const CAN: [&str; 6] = ["traffic", "extended", "receivers", "turn", "senders", "gap"];

/// Those of buses and endpoints.
const BUS: [&str; 13] = [
    "control",
    "on",
    "speed",
    "coding",
    "periodic",
    "type",
    "direction",
    "packet",
    "mult",
    "longest",
    "criticality",
    "bytes",
    "within",
];

/// Keys of `[[can]]` and `[[message]]`, one row for some pairs of them.
const MESSAGES: [&str; 16] = [
    "rate",
    "scheduler",
    "epoch",
    "clocks",
    "time",
    "time_read",
    "time_step",
    "time_drift",
    "time_losses",
    "error_interval",
    "error_burst",
    "usb`, `channel",
    "in_order",
    "node`, `process",
    "class",
    "id`, `extended",
];

#[test]
fn every_key_is_in_the_reference() {
    let keys = [
        "name",
        "system",
        "ends",
        "delay",
        "leader",
        "depends",
        "enable",
        "port",
        "model",
        "best",
        "worst",
        "senders",
        "memory",
        "program",
        "priority",
        "heap",
        "stack",
        "threads",
        "semaphores",
        "conditions",
        "events",
        "uses",
        "starts",
        "supervisor",
        "restart",
        "backoff",
        "start",
        "arguments",
        "kind",
        "initial",
        "messages",
        "size",
        "address",
        "irq",
        "trigger",
        "interval",
        "pci",
        "vendor",
        "serial",
        "instance",
        "bar",
        "irqs",
        "simulated",
        "dma",
        "clock",
        "cores",
        "core",
        "wakes",
        "vcpu",
        "vcpus",
        "budget",
        "period",
        "replenishments",
        "background",
        "job",
        "utilization",
        "cap",
        "serves",
        "dynamic",
        "fixed",
        "admission",
    ];
    let others = PIPE.into_iter().chain(FAULT).chain(BUS).chain(CAN).chain(SETTINGS).chain(SECTION);
    let others = others.chain(MESSAGES);
    for key in keys.into_iter().chain(others) {
        assert!(REFERENCE.contains(&format!("| `{key}` |")), "{key}");
    }
}

#[test]
fn every_kind_of_devices_is_in_the_reference() {
    for word in WORDS {
        assert!(REFERENCE.contains(&format!("`\"{word}\"`")), "{word}");
    }
}
