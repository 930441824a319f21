//! `controller` of a `[[can]]`: what follows from it, and what is wrong with it.

use diapason_contract::toucan::{
    CONTROLLER_SETTING, ControllerTerms, MESSAGES_SETTING, MessageId, MessageTerms,
};
use diapason_system::parse;

const EXAMPLE: &str = include_str!("../../../examples/can-controller.toml");

/// The titles of what is wrong once `from` is `to`.
fn wrong(from: &str, to: &str) -> Vec<String> {
    assert!(EXAMPLE.contains(from), "{from}");
    let text = EXAMPLE.replacen(from, to, 1);
    let found = parse("f", &text).expect_err(to);
    found.items().iter().map(|item| item.title.to_owned()).collect()
}

fn number(id: MessageId) -> u32 {
    match id {
        MessageId::Fixed(id, _) => id,
        MessageId::Code(code) => code.into(),
    }
}

#[test]
fn objects_and_rights_follow() {
    let system = parse("f", EXAMPLE).unwrap();
    let index = |name: &str| system.processes.iter().position(|it| it.name == name).unwrap();
    let both = 1 << index("control") | 1 << index("driver");
    let out = system.segments.iter().find(|it| it.name == "toucan0.out0").unwrap();
    let send = system.semaphores.iter().find(|it| it.name == "toucan0.send").unwrap();
    assert_eq!((out.allowed, send.allowed), (both, both));
    let controller = system.cans[0].controller.unwrap();
    assert_eq!((controller.number, controller.own), (0, 3));
    assert_eq!(usize::from(controller.driver), index("driver"));
}

#[test]
fn the_most_urgent_message_is_the_first_stream() {
    let system = parse("f", EXAMPLE).unwrap();
    let streams = system.cans[0].streams();
    let names: Vec<&str> =
        streams.iter().map(|(index, _)| &*system.cans[0].messages[*index].name).collect();
    assert_eq!(names[..4], ["torque-left", "torque-right", "limits", "pitch"]);
    let ids: Vec<u32> = streams.iter().map(|(_, id)| number(*id)).collect();
    assert!(ids.is_sorted() && ids[0] == 0x012, "those of other units are before");
    let words = MessageTerms::all(&[0; 12]).count();
    assert_eq!((words, streams.len()), (2, 12));
    assert_eq!((CONTROLLER_SETTING, MESSAGES_SETTING), ("controller", "messages"));
    assert_eq!(ControllerTerms::of(&[1, 2]), None);
}

#[test]
fn mistakes_are_named() {
    let cases = [
        (
            "controller = \"toucan0\"",
            "controller = \"can\"",
            "`can` cannot be the controller of a bus",
        ),
        ("controller = \"toucan0\"", "controller = \"toucan1\"", "no device is called `toucan1`"),
        ("controller = \"toucan0\"\n", "", "`own_buffers` of no controller"),
        ("own_buffers = 3", "own_buffers = 12", "`own_buffers` is 12, out of range"),
        ("pci = \"0c0900\"", "pci = \"0c0330\"", "`toucan0` is no controller that `cand` drives"),
        ("uses = [\"toucan0\"]", "uses = []", "nobody drives `toucan0`"),
        (
            "program = \"cand\"",
            "program = \"spin\"",
            "`driver` uses `toucan0` and does not run `cand`",
        ),
        ("rate = 1_000_000", "rate = 300_000", "`toucan0` has no bit rate of 300000"),
        (
            "period = \"5ms\"\n",
            "period = \"1ms\"\n",
            "the deadline of `torque-left` is longer than its period",
        ),
        ("jitter = \"1300us\" ", "# ", "`torque-left` has no jitter, and a process sends it"),
        (
            "scheduler = \"deadline-monotonic\"",
            "scheduler = \"mts\"\nclocks = \"20us\"",
            "`drive` has no `time`, and its driver has to know it",
        ),
        (
            "bytes = 8\n",
            "bytes = 8\nfd = true\n",
            "`toucan0` knows no CAN FD, and would destroy its frames",
        ),
        ("threads = 2", "threads = 1", "`driver` has 1 threads, and starts with 2"),
        ("events = 1\n", "", "`driver` has 0 events, and starts with 1"),
        ("semaphores = 1\n", "", "`driver` has 0 semaphores, and starts with 1"),
        (
            "vcpu = \"driver-cpu\"\n",
            "",
            "`driver` has no VCPU, and messages on `drive` wait for it",
        ),
        (
            "uses = [\"toucan0\"]\n",
            "uses = [\"toucan0\", \"toucan1\"]\n[[device]]\nname = \"toucan1\"\n\
             pci = \"0c0900\"\ninstance = 1\nsize = \"4K\"\nirqs = 1\n",
            "`driver` drives two controllers",
        ),
        (
            "process = \"control\"",
            "process = \"driver\"",
            "`driver` drives the controller of `drive` and sends no message",
        ),
        (
            "program = \"message-sender\"\n",
            "program = \"message-sender\"\nuses = [\"toucan0\"]\n",
            "`control` uses `toucan0` and does not run `cand`",
        ),
        (
            "[[process]]\nname = \"driver\"",
            "[[can]]\nname = \"other\"\nrate = 500_000\nscheduler = \"as-written\"\n\
             controller = \"toucan0\"\n[[process]]\nname = \"driver\"",
            "`toucan0` is on two buses",
        ),
    ];
    for (from, to, title) in cases {
        let found = wrong(from, to);
        assert!(found.iter().any(|it| it == title), "{to}: {found:?}");
    }
}
