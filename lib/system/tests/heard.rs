//! `reader` of a `[[message]]`: what follows from it, and what is wrong with it.

use diapason_contract::toucan::{HEARD_SETTING, HeardTerms, MessageId};
use diapason_system::{CanClass, parse};

const EXAMPLE: &str = include_str!("../../../examples/can-dashboard.toml");
const UNDER_MTS: &str = include_str!("../../../examples/can-mts-host.toml");

/// Returns the titles of what is wrong with a description.
fn titles(text: &str) -> Vec<String> {
    let found = parse("f", text).expect_err(text);
    found.items().iter().map(|item| item.title.to_owned()).collect()
}

#[test]
fn objects_rights_and_settings_follow() {
    let system = parse("f", EXAMPLE).unwrap();
    let index = |name: &str| system.processes.iter().position(|it| it.name == name).unwrap();
    let driver = index("driver");
    let display = 1 << index("display") | 1 << driver;
    let chime = 1 << index("chime") | 1 << driver;
    let segment = |name: &str| system.segments.iter().find(|it| it.name == name).unwrap().allowed;
    let tell = |name: &str| system.semaphores.iter().find(|it| it.name == name).unwrap().allowed;
    assert_eq!((segment("toucan0.in0"), tell("toucan0.tell0")), (display, display));
    assert_eq!((segment("toucan0.in1"), tell("toucan0.tell1")), (chime, chime));
    assert!(system.segments.iter().all(|it| it.name != "toucan0.in2"));
    let network = &system.cans[0];
    assert_eq!(network.readers(), ["display", "chime"]);
    let names: Vec<&str> =
        network.heard().iter().map(|place| &*network.messages[*place].name).collect();
    assert_eq!(names, ["speed", "revolutions", "fuel", "doors"]);
    assert_eq!(HEARD_SETTING, "heard");
    assert_eq!(HeardTerms::all(&[0; 10]).count(), 2);
}

#[test]
fn mistakes_are_named() {
    let cases = [
        ("work = \"20us\" ", "# ", "nothing says how long `display` takes for `speed`"),
        ("reader = \"display\"\n", "", "`work` says nothing here"),
        ("reader = \"display\"", "reader = \"displai\"", "no process named `displai` is declared"),
        ("reader = \"display\"", "reader = \"body\"", "no process named `body` is declared"),
        (
            "reader = \"display\"",
            "reader = \"driver\"",
            "`driver` drives the controller and reads no message",
        ),
        (
            "process = \"panel\"\n",
            "process = \"panel\"\nreader = \"display\"\nwork = \"1us\"\n",
            "`lights` is sent by this host, which does not hear it",
        ),
        (
            "period = \"10ms\"\ndeadline = \"4ms\"\n",
            "class = \"none\"\n",
            "`speed` is due at no time, so nothing bounds how soon it comes again",
        ),
        (
            "controller = \"toucan0\"\n",
            "controller = \"toucan0\"\nown_buffers = 8\n",
            "a controller has 11 buffers for the messages on `body` that are read, and for those \
             of this host with one of their own",
        ),
    ];
    for (from, to, title) in cases {
        assert!(EXAMPLE.contains(from), "{from}");
        let found = titles(&EXAMPLE.replacen(from, to, 1));
        assert!(found.iter().any(|it| it == title), "{to}: {found:?}");
    }
    // Without a controller this host hears nothing.
    let alone = EXAMPLE.replace("controller = \"toucan0\"\n", "");
    let wanted = "this host reads `speed` by no controller with message buffers";
    assert!(titles(&alone).iter().any(|it| it == wanted));
}

/// Returns a message of another node that `reader` reads.
fn message(number: usize, reader: &str) -> String {
    format!(
        "[[message]]\nname = \"more{number}\"\nbus = \"body\"\nnode = \"other\"\nperiod = \"1s\"\n\
         bytes = 1\nreader = \"{reader}\"\nwork = \"1us\"\n"
    )
}

#[test]
fn a_controller_has_so_many_buffers_and_readers() {
    let with = |count: usize| {
        EXAMPLE.to_owned() + &(0..count).map(|it| message(it, "display")).collect::<String>()
    };
    // Messages of this host share buffers then.
    let own = |text: &str| parse("f", text).unwrap().cans[0].controller.unwrap().own;
    assert_eq!([own(EXAMPLE), own(&with(6)), own(&with(7))], [2, 1, 0]);
    let most = "a controller has 11 buffers";
    assert!(titles(&with(8)).iter().any(|title| title.starts_with(most)));
    let more = |it: usize| {
        format!("[[process]]\nname = \"p{it}\"\nprogram = \"spin\"\npriority = 1\n")
            + &message(it, &format!("p{it}"))
    };
    let readers = |count: usize| EXAMPLE.to_owned() + &(0..count).map(more).collect::<String>();
    assert!(parse("f", &readers(2)).is_ok());
    let title = "5 processes read from `body`, the most is 4";
    assert!(titles(&readers(3)).iter().any(|it| it == title));
}

#[test]
fn the_message_that_carries_the_time_is_the_drivers() {
    let text = UNDER_MTS.replacen(
        "name = \"time\"\n",
        "name = \"time\"\nreader = \"control\"\nwork = \"1us\"\n",
        1,
    );
    let title = "`time` carries the time, and its buffer is the driver's";
    assert!(titles(&text).iter().any(|it| it == title), "{:?}", titles(&text));
}

/// A buffer for a message of low speed compares five bits of an identifier, if others hear messages
/// of high speed by their codes.
#[test]
fn thirty_two_messages_below_those_of_high_speed_differ_in_five_bits() {
    let low = |it: usize| {
        let class = if it.is_multiple_of(2) { "low" } else { "none" };
        format!(
            "[[message]]\nname = \"m{it}\"\nbus = \"drive\"\nnode = \"other\"\n\
             class = \"{class}\"\nperiod = \"1s\"\nbytes = 1\n"
        )
    };
    let text = UNDER_MTS.to_owned() + &(0..30).map(low).collect::<String>();
    let system = parse("f", &text).unwrap();
    let network = &system.cans[0];
    let below = network.names().into_iter().zip(network.classes());
    let mut seen: Vec<u32> = below
        .filter(|(_, class)| *class != CanClass::High)
        .map(|(name, _)| match name {
            Some(MessageId::Fixed(raw, false)) => raw & 0x1f,
            other => panic!("{other:?}"),
        })
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..32).collect::<Vec<u32>>());
}
