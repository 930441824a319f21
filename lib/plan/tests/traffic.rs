//! Contracts of pipes against what their description puts on the buses.

use diapason_plan::Plan;
use diapason_system::{CanTraffic, PluggedCanBus, System, parse};

const USUAL: &str = include_str!("usual.toml");

const TRAFFIC: &str = "traffic = [463, 391, 1389, 1563, 3194]\nextended = [\"can1\", \"can3\"]";
const SENDER: &str = "senders = [\"can4\"]\ngap = [\"363400ns\", \"366200ns\"]";

fn system(changes: &[(&str, &str)]) -> System {
    let text = changes.iter().fold(USUAL.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old}");
        text.replacen(old, new, 1)
    });
    parse("usual.toml", &text).unwrap_or_else(|why| panic!("{why}"))
}

/// Returns the findings of a plan.
fn refused(system: &System) -> String {
    let found = Plan::of(system).findings;
    found.iter().map(|found| found.plain()).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn says(system: &System, words: &[&str]) {
    let said = refused(system);
    assert!(words.iter().all(|words| said.contains(words)), "{said}");
    assert_eq!(said.matches("error:").count(), 1, "{said}");
}

#[test]
fn a_bit_rate_that_no_clock_gives_is_refused() {
    let rates = |rate: u32| {
        let keys = format!("{TRAFFIC}\nbit_rates = [500_000, 500_000, 500_000, 500_000, {rate}]");
        system(&[(TRAFFIC, &keys)])
    };
    assert_eq!(refused(&rates(1_000_000)), "");
    let title = "`interface` has no bit rate of 499999 for channel 4";
    says(&rates(499_999), &[title, "such as 500000"]);
}

#[test]
fn a_pipe_that_says_less_than_its_model_sends_is_refused() {
    assert_eq!(refused(&system(&[])), "");
    let rate = |rate: &str| system(&[("rate = 3200", rate)]);
    assert_eq!(refused(&rate("rate = 3194")), "");
    for less in [1, 3_193] {
        let title = format!(
            "`brakes` has `rate = {less}`, and `interface` has 3194 messages a second on channel 4"
        );
        let help = "write `rate = 3194` or more, or mend `traffic` of `interface`";
        says(&rate(&format!("rate = {less}")), &[&title, help]);
    }
    let bus = |key: &str| system(&[("rate = 3200", "rate = 1"), (TRAFFIC, key)]);
    assert_eq!(refused(&bus("")), "");
    assert_eq!(refused(&bus("receivers = [\"can4\"]")), "");
    let title = "`brakes` has `rate = 1`, and `interface` has 2730 messages a second on channel 4";
    says(&bus(SENDER), &[title, "mend `gap` of `interface`"]);
}

#[test]
fn senders_beyond_their_bus_are_refused() {
    let slow = |rate: u32, keys: &str| {
        let keys = format!("bit_rates = [500_000, 500_000, 500_000, 500_000, {rate}]\n{keys}");
        system(&[(TRAFFIC, &keys)])
    };
    // 2,730 frames of 111 bits are 303,030 bits. No clock gives these rates.
    says(&slow(303_030, SENDER), &["no bit rate of 303030"]);
    let senders = "the senders on channel 4 of `interface` at 303029 bit/s (2730 messages a \
                   second) need 101 % of it";
    let help = "send less, or write a larger rate for the channel in `bit_rates` of `interface`";
    says(&slow(303_029, SENDER), &[senders, help]);
    // 3,200 messages a second have at least 47 bits each.
    says(&slow(150_400, ""), &["no bit rate of 150400"]);
    let declared = "pipes declare 3200 messages a second on channel 4 of `interface` at 150399 \
                    bit/s, which carries at most 3199";
    says(&slow(150_399, ""), &[declared]);
}

/// Returns a log of eight bytes each, with these times in microseconds.
fn replaying(times: impl Iterator<Item = u64>, changes: &[(&str, &str)]) -> System {
    let mut system = system(changes);
    let line =
        |us: u64| format!("({}.{:06}) can4 123#0011223344556677\n", us / 1_000_000, us % 1_000_000);
    let (file, log) = ("noise.log".to_owned(), times.map(line).collect());
    system.usb[0].buses =
        vec![PluggedCanBus { channel: 4, traffic: CanTraffic::Replay { file, log } }];
    system
}

#[test]
fn a_log_that_sends_more_than_its_pipe_says_is_refused() {
    let steady = |rate: &str, gap: u64| {
        let rate = format!("rate = {rate}");
        replaying((0..2_000).map(|number| number * gap), &[("rate = 3200", &rate)])
    };
    // A frame each 320 us are 3,125 a second.
    assert_eq!(refused(&steady("3200", 320)), "");
    let title = "the log `noise.log` sends more on channel 4 than `brakes` says, first";
    says(&steady("3000", 320), &[title, "raise `rate`, `burst` or `jitter` of the pipe"]);
    says(&steady("1", 320), &[title]);
    // Four at once are declared; more wait for the bus, which takes 240 us for each.
    let burst = |count: u64, burst: &str| {
        let times = (0..20 * count).map(|number| number / count * 100_000);
        replaying(times, &[("rate = 3200", "rate = 1000"), ("burst = 4", burst)])
    };
    assert_eq!(refused(&burst(8, "burst = 8")), "");
    says(&burst(8, "burst = 4"), &[title]);
}

#[test]
fn a_log_beyond_its_bus_is_refused() {
    // A frame takes some 240 us at 500 kbit/s.
    let log = |gap: u64| {
        let times = (0..4_000).map(|number| number * gap);
        replaying(times, &[("rate = 3200", "rate = 5000"), ("latency = \"8ms\"", "")])
    };
    let said = refused(&log(100));
    let title =
        "the senders on channel 4 of `interface` at 500000 bit/s (the log `noise.log`) need";
    assert!(said.contains(title), "{said}");
    assert!(!refused(&log(300)).contains("noise.log"), "{}", refused(&log(300)));
}
