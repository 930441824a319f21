//! Descriptions whose numbers, units and names are as large, as small and as wrong as can be: the
//! reader refuses them with a place, or the planner has an answer. Neither ever panics, and overflow
//! is a panic in this build.

use diapason_plan::Plan;
use diapason_random::Random;

/// Descriptions that are damaged.
const SEEDS: [&str; 8] = [
    include_str!("../../../examples/can-concentrator.toml"),
    include_str!("../../../examples/can-gateway.toml"),
    include_str!("../../../examples/can-output.toml"),
    include_str!("../../../examples/tuned-pipes.toml"),
    include_str!("../../../examples/usb-devices.toml"),
    include_str!("../../../examples/vcpus.toml"),
    include_str!("../../../examples/engine.toml"),
    include_str!("../../../tests/systems/usb-ninety.toml"),
];

/// What stands in place of a value.
const VALUES: [&str; 24] = [
    "0",
    "1",
    "-1",
    "2",
    "255",
    "65536",
    "4294967295",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "nan",
    "true",
    "[]",
    "\"\"",
    "\"1ns\"",
    "\"0ns\"",
    "\"999ns\"",
    "\"1000s\"",
    "\"18446744073709551615ns\"",
    "\"100%\"",
    "\"1ppm\"",
    "\"2G\"",
    "\"10GHz\"",
];

/// Units that a duration or a size may get instead of its own.
const UNITS: [&str; 7] = ["ns", "us", "ms", "s", "K", "M", "%"];

/// The text with one to three of its lines damaged.
fn damaged(random: &mut Random, text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    for _ in 0..random.between(1, 3) {
        let at = random.index(lines.len());
        let line = lines[at].clone();
        match (random.below(6), line.split_once(" = ")) {
            (0 | 1, Some((key, _))) => lines[at] = format!("{key} = {}", random.pick(&VALUES)),
            (2, Some(_)) => lines[at] = scaled(random, &line),
            (3, Some((key, value))) => {
                let unit = random.pick(&UNITS);
                let number: String = value.chars().filter(char::is_ascii_digit).collect();
                lines[at] = format!("{key} = \"{number}{unit}\"");
            }
            (4, _) => drop(lines.remove(at)),
            (5, _) => {
                // A whole table again, or so much of it as is left.
                let rest = lines[at..].iter().take(12).cloned().collect::<Vec<String>>();
                lines.splice(at..at, rest);
            }
            _ => {}
        }
    }
    lines.join("\n")
}

/// A number of the line with a digit more or less, or many more.
fn scaled(random: &mut Random, line: &str) -> String {
    let digits: Vec<usize> =
        line.char_indices().filter(|(_, c)| c.is_ascii_digit()).map(|(at, _)| at).collect();
    if digits.is_empty() {
        return line.to_owned();
    }
    let (mut next, at) = (line.to_owned(), digits[random.index(digits.len())]);
    match random.below(3) {
        0 => next.insert(at, '9'),
        1 => next.insert_str(at, "99999999"),
        _ => drop(next.remove(at)),
    }
    next
}

/// The number of the last one is in the message of a panic.
#[test]
fn every_description_is_refused_with_a_place_or_planned() {
    let (mut refused, mut planned, mut held) = (0, 0, 0);
    for number in 0..1_500 {
        let mut random = Random::stream(11, number);
        let seed = SEEDS[random.index(SEEDS.len())];
        let text = damaged(&mut random, seed);
        match diapason_system::parse("damaged.toml", &text) {
            Err(why) => {
                refused += 1;
                let said = why.plain();
                assert!(
                    said.starts_with("error") && said.contains("damaged.toml"),
                    "{number}: {said}"
                );
            }
            Ok(system) => {
                planned += 1;
                let plan = Plan::of(&system, system.clock_hz);
                held += u64::from(plan.holds());
            }
        }
    }
    // Both happen, so nothing is refused or admitted for a reason that has nothing to do with it.
    assert!(refused > 300 && planned > 200 && held > 50, "{refused} {planned} {held}");
}
