//! Messages of other nodes that programs of this host read from a controller with message buffers.

use diapason_plan::can::{CanHeard, CanOutcome};
use diapason_plan::{Plan, Verdict};
use diapason_system::parse;

const EXAMPLE: &str = include_str!("../../../examples/can-dashboard.toml");
const UNDER_MTS: &str = include_str!("../../../examples/can-mts-host.toml");
/// The bits of the shortest frame, without the space after it.
const SHORTEST: u64 = 44;

fn planned(text: &str) -> Plan {
    let system = parse("f", text).unwrap_or_else(|found| panic!("{}", found.plain()));
    Plan::of(&system)
}

/// Returns the promise about a message that is read, and its longest response.
fn heard(plan: &Plan, name: &str) -> (CanHeard, u64) {
    let messages = &plan.system().cans[0].messages;
    let place = messages.iter().position(|it| it.name == name).unwrap();
    let (_, found) = plan.cans[0].heard.iter().find(|(it, _)| *it == place).unwrap();
    let response = match plan.cans[0].messages[place].outcome {
        CanOutcome::Response(response) => response.0,
        _ => messages[place].deadline_ns.unwrap(),
    };
    (found.clone().unwrap_or_else(|why| panic!("{why:?}")), response)
}

fn with(from: &str, to: &str) -> String {
    assert!(EXAMPLE.contains(from), "{from}");
    EXAMPLE.replacen(from, to, 1)
}

/// Returns the first sentence that is refused.
fn refused(text: &str) -> String {
    let plan = planned(text);
    plan.findings.first().map(|found| found.plain()).unwrap_or_else(|| panic!("it holds"))
}

#[test]
fn a_message_is_at_its_reader_once_the_driver_and_the_reader_were_idle() {
    let plan = planned(EXAMPLE);
    assert_eq!(plan.verdict(), Verdict::Holds);
    let Some(Ok(queued)) = plan.cans[0].queued else { panic!("nothing bounds the driver") };
    let (speed, response) = heard(&plan, "speed");
    // Three bits of 2 us, and 5 us for the reading of the clock.
    assert_eq!(speed.told.0, queued.0 + 3 * 2_000 + 5_000);
    // Three messages of 20 us may wait.
    assert!(speed.done.0 > speed.told.0 + 60_000, "{speed:?}");
    assert_eq!(speed.apart.0, 10_000_000 - response + SHORTEST * 2_000);
    let longer = [
        ("name = \"cand.hear\"\nworst = \"3us\"", "name = \"cand.hear\"\nworst = \"9us\""),
        ("work = \"20us\" ", "work = \"90us\" "),
        ("reader = \"chime\"", "reader = \"display\""),
    ];
    for (from, to) in longer {
        let (other, _) = heard(&planned(&with(from, to)), "speed");
        assert!(other.done > speed.done, "{to}: {other:?}");
    }
}

#[test]
fn messages_that_are_read_delay_those_that_are_sent() {
    let queued = |text: &str| planned(text).cans[0].queued.clone().unwrap().unwrap();
    let deaf: String = EXAMPLE
        .lines()
        .filter(|line| !line.starts_with("reader =") && !line.starts_with("work ="))
        .map(|line| format!("{line}\n"))
        .collect();
    assert!(queued(EXAMPLE) > queued(&deaf));
    // A frame that is destroyed in its last bit comes twice.
    let errors = with("rate = 500_000", "rate = 500_000\nerror_interval = \"100ms\"");
    assert!(queued(&errors) > queued(EXAMPLE));
    let (speed, again) = (heard(&planned(EXAMPLE), "speed").0, heard(&planned(&errors), "speed").0);
    assert!(again.done.0 - again.told.0 >= speed.done.0 - speed.told.0 + 20_000, "{again:?}");
}

#[test]
fn a_driver_that_is_slower_than_a_message_comes_again_is_refused() {
    let text =
        with("budget = \"100us\"\nperiod = \"400us\"", "budget = \"1800us\"\nperiod = \"10ms\"");
    let plan = planned(&text);
    let said: Vec<String> = plan.findings.iter().map(|found| found.plain()).collect();
    let about = "nothing bounds when `speed` is read: `driver` may take";
    assert!(said.iter().any(|it| it.contains(about)), "{said:?}");
}

#[test]
fn what_keeps_a_reader_from_its_messages_is_named() {
    let cases = [
        (
            "budget = \"200us\"\nperiod = \"2ms\"",
            "budget = \"20us\"\nperiod = \"20ms\"",
            "given more",
        ),
        (
            "interval = \"80us\"",
            "interval = \"95us\"",
            "`toucan0` may interrupt once in 94 us, where frames follow each other, and its \
             `interval` is 95.000 us",
        ),
        ("name = \"cand.hear\"", "name = \"other\"", "nothing says how long `cand.hear` takes"),
        (
            "budget = \"200us\"\nperiod = \"2ms\"",
            "budget = \"200us\"\nperiod = \"2ms\"\njob = \"20us\"",
            "`display` reads messages, and the VCPU of it has a `job`",
        ),
        ("vcpu = \"display-cpu\"\n", "vcpu = \"display-cpu\"\nthreads = 2\n", "may have 2 threads"),
        (
            "vcpu = \"chime-cpu\"\n",
            "vcpu = \"display-cpu\"\n",
            "`display` shares its VCPU with another process",
        ),
    ];
    for (from, to, wanted) in cases {
        let text = refused(&with(from, to));
        assert!(text.contains(wanted), "{to}: {text}");
    }
}

/// Returns the example under MTS with a reader of the message of `motor-left`, which is of high
/// speed, and so many messages of low speed besides.
fn by_code(deadline: &str, others: usize) -> String {
    let read = "reader = \"display\"\nwork = \"20us\"\nnode = \"motor-left\"\nperiod = \"3ms\"\n";
    let message = UNDER_MTS.replacen(
        "node = \"motor-left\"\nperiod = \"3ms\"\n",
        &format!("{read}deadline = \"{deadline}\"\n"),
        1,
    );
    let reader = "[[process]]\nname = \"display\"\nprogram = \"message-reader\"\npriority = 10\n\
                  vcpu = \"display-cpu\"\n[[vcpu]]\nname = \"display-cpu\"\nbudget = \"200us\"\n\
                  period = \"6ms\"\nreplenishments = 8\n[[work]]\nname = \"cand.hear\"\n\
                  worst = \"3us\"\n";
    let low = |number: usize| {
        format!(
            "[[message]]\nname = \"low{number}\"\nbus = \"drive\"\nnode = \"other\"\n\
             class = \"low\"\nperiod = \"1s\"\nbytes = 1\n"
        )
    };
    message + reader + &(0..others).map(low).collect::<String>()
}

#[test]
fn a_message_of_high_speed_may_come_as_soon_as_its_deadline_lets_it() {
    let (heard, deadline) = heard(&planned(&by_code("2400us", 0)), "current-left");
    assert_eq!(heard.apart.0, 3_000_000 - deadline + SHORTEST * 1_000);
    // The remedy is enough, and one microsecond more is not.
    let text = refused(&by_code("2900us", 0));
    let micros = text.split("write `deadline = \"").nth(1).and_then(|it| it.split('u').next());
    let micros: u64 = micros.and_then(|it| it.parse().ok()).unwrap_or_else(|| panic!("{text}"));
    let verdict = |micros: u64| planned(&by_code(&format!("{micros}us"), 0)).verdict();
    assert_eq!(verdict(micros), Verdict::Holds);
    assert_eq!(verdict(micros + 1), Verdict::DoesNotHold);
}

/// The mask that ignores deadlines tells 32 other messages apart: `time`, `battery` and 30 more.
#[test]
fn a_message_that_the_buffer_of_another_hears_is_refused() {
    assert_eq!(planned(&by_code("2400us", 30)).verdict(), Verdict::Holds);
    let text = refused(&by_code("2400us", 31));
    assert!(
        text.contains("nothing bounds when `time` is read: its buffer hears `low30`"),
        "{text}"
    );
    // Without a reader of a message of high speed the buffers compare whole identifiers.
    let others = by_code("2400us", 31).replace("reader = \"display\"\nwork = \"20us\"\n", "");
    assert_eq!(planned(&others).verdict(), Verdict::Holds);
}
