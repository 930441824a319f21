//! Descriptions with the largest, the smallest and the most awkward numbers: the reader or the plan
//! refuses each with its reason. None is a bug of the planner.

use diapason_plan::Plan;
use diapason_random::Random;
use diapason_system::parse;

const TIMES: [&str; 16] = [
    "1ns",
    "999ns",
    "1us",
    "1001ns",
    "10us",
    "125us",
    "1ms",
    "9999999ns",
    "10ms",
    "1s",
    "999999999999ns",
    "1000s",
    "0ns",
    "1001s",
    "18446744073s",
    "18446744073709551615ns",
];
const NUMBERS: [&str; 12] = [
    "0",
    "1",
    "2",
    "7",
    "64",
    "255",
    "4095",
    "65535",
    "1000000",
    "4294967295",
    "9223372036854775807",
    "-1",
];
const SHARES: [&str; 7] = ["1ppm", "7ppm", "1‰", "33.3333%", "50%", "99.9999%", "100%"];
const CLOCKS: [&str; 6] = ["1MHz", "1000001Hz", "25MHz", "1GHz", "10GHz", "3.3GHz"];

/// A description of a CAN interface, its server and two readers, with usual numbers.
const USUAL: &str = include_str!("usual.toml");

/// The lines with a value that may be replaced, by what it is.
fn extremes(random: &mut Random, changes: u64) -> String {
    let mut lines: Vec<String> = USUAL.lines().map(str::to_owned).collect();
    let mut changed = 0;
    while changed < changes {
        let place = random.below(lines.len() as u64) as usize;
        let Some((key, value)) = lines[place].clone().split_once(" = ").map(own) else { continue };
        let new = match key.as_str() {
            "clock" => format!("\"{}\"", random.pick(&CLOCKS)),
            "utilization" => format!("\"{}\"", random.pick(&SHARES)),
            _ if value.ends_with("s\"")
                && value.starts_with(|c: char| "\"0123456789".contains(c)) =>
            {
                format!("\"{}\"", random.pick(&TIMES))
            }
            _ if value.parse::<u64>().is_ok() => random.pick(&NUMBERS).to_string(),
            _ => continue,
        };
        lines[place] = format!("{key} = {new}");
        changed += 1;
    }
    lines.join("\n")
}

fn own((key, value): (&str, &str)) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

#[test]
fn no_number_is_a_bug_of_the_planner() {
    let usual = parse("usual.toml", USUAL).unwrap_or_else(|wrong| panic!("{wrong}"));
    let plan = Plan::of(&usual, usual.clock_hz);
    assert!(plan.holds(), "{}", plan.findings[0]);
    let (mut read, mut held, mut refused) = (0, 0, 0);
    for seed in 0..100 {
        let mut random = Random::stream(31, seed);
        let changes = 1 + random.below(3);
        let text = extremes(&mut random, changes);
        let Ok(system) = parse("extreme.toml", &text) else { continue };
        read += 1;
        let plan = Plan::of(&system, system.clock_hz);
        held += u32::from(plan.holds());
        refused += u32::from(!plan.holds());
        for found in &plan.findings {
            let said = found.plain();
            assert!(!said.contains("report this as a bug"), "seed {seed}: {said}\n{text}");
        }
    }
    assert!(read > 10 && held > 2 && refused > 5, "{read} {held} {refused}");
}
