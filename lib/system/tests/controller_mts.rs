//! Messages of this host under MTS: what its driver is told, and what is wrong with them.

use diapason_contract::toucan::MessageId;
use diapason_system::parse;

const EXAMPLE: &str = include_str!("../../../examples/can-mts-host.toml");

#[test]
fn the_driver_knows_the_epochs_and_the_time_of_its_bus() {
    let system = parse("f", EXAMPLE).unwrap();
    let bus = &system.cans[0];
    let terms = bus.mts_terms().unwrap();
    // The first low-speed identifier is that of the message with the shortest deadline of them.
    assert_eq!((terms.time_id, terms.epoch_ns), (0x400, 10_000_000));
    assert_eq!((terms.interval_ns, terms.late_ns), (20_002_000, 10_000_000));
    // The longest deadline is that of `limits`: 6 ms less a frame of 110 bits. Then the last node
    // renews after 645 us, and a clock is 45 us off.
    assert_eq!(terms.reach_ns, 6_000_000 - 110_000 + 645_000 + 45_000 + 1);
    let ids: Vec<MessageId> = bus.streams().into_iter().map(|(_, id)| id).collect();
    let [code, low] = [MessageId::Code(3), MessageId::Fixed(0x401, false)];
    assert_eq!(ids, [code, MessageId::Code(4), MessageId::Code(5), low]);
}

/// The titles of what is wrong once `from` is `to`.
fn wrong(from: &str, to: &str) -> Vec<String> {
    assert!(EXAMPLE.contains(from), "{from}");
    let found = parse("f", &EXAMPLE.replacen(from, to, 1)).expect_err(to);
    found.items().iter().map(|item| item.title.to_owned()).collect()
}

#[test]
fn mistakes_are_named() {
    let more: String = (0..16)
        .map(|number| {
            format!(
                "[[message]]\nname = \"more-{number}\"\nbus = \"drive\"\nprocess = \"control\"\n\
                 period = \"50ms\"\njitter = \"600us\"\nbytes = 1\n"
            )
        })
        .collect();
    let cases = [
        ("renewal = \"600us\"", "#", "`drive` has no `renewal`, and its driver has to know it"),
        ("epoch = \"10ms\"", "#", "`drive` has no `epoch`, and its driver has to know it"),
        ("clocks = \"45us\"", "#", "`drive` has no `clocks`, and its driver has to know it"),
        (
            "time_read = \"12us\"",
            "time_read = \"7us\"",
            "the driver of `toucan0` cannot read its clock so soon",
        ),
        (
            "renewal =",
            "own_buffers = 11\nrenewal =",
            "11 buffers of their own under MTS, the most is 10",
        ),
        (
            "[[process]]",
            &format!("{more}[[process]]"),
            "20 messages of this host on `drive`, the most is 19",
        ),
        (
            "time = \"time\"",
            "time = \"battery\"",
            "`battery` carries the time, and a program sends it",
        ),
        ("controller = \"toucan0\"", "#", "`control` of this host cannot send under MTS"),
        ("jitter = \"1000us\" ", "# ", "`torque-left` has no jitter, and a process sends it"),
    ];
    for (from, to, title) in cases {
        let found = wrong(from, to);
        assert!(found.iter().any(|it| it == title), "{to}: {found:?}");
    }
}
