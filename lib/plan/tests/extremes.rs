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
const SIZES: [&str; 5] = ["4K", "1K", "2M", "2G", "0K"];
const CLOCKS: [&str; 6] = ["1MHz", "1000001Hz", "25MHz", "1GHz", "10GHz", "3.3GHz"];

/// Descriptions with usual numbers: of VCPUs, pipes, chains, places for pipes, and sections.
const USUAL: [(&str, &str); 10] = [
    ("usual", include_str!("usual.toml")),
    ("sections", include_str!("sections.toml")),
    ("can-gateway", include_str!("../../../examples/can-gateway.toml")),
    ("can-output", include_str!("../../../examples/can-output.toml")),
    ("tuned-pipes", include_str!("../../../examples/tuned-pipes.toml")),
    ("tuned-output", include_str!("../../../examples/tuned-output.toml")),
    ("usb-devices", include_str!("../../../examples/usb-devices.toml")),
    ("network", include_str!("../../../examples/network.toml")),
    ("vcpus", include_str!("../../../examples/vcpus.toml")),
    ("engine", include_str!("../../../examples/engine.toml")),
];

/// Returns a word of a line that is a number, a time, a share or a rate, and others in its place.
fn awkward(random: &mut Random, word: &str) -> Option<String> {
    let quoted = word.strip_prefix('"').and_then(|word| word.strip_suffix('"'));
    let Some(text) = quoted else {
        return word.replace('_', "").parse::<u64>().is_ok().then(|| random.pick(&NUMBERS).into());
    };
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let one = |of: &[&str], random: &mut Random| Some(format!("\"{}\"", random.pick(of)));
    match unit {
        _ if unit == text => None,
        "ns" | "us" | "ms" | "s" => one(&TIMES, random),
        "%" | "‰" | "ppm" => one(&SHARES, random),
        "kHz" | "MHz" | "GHz" => one(&CLOCKS, random),
        "K" | "M" | "G" => one(&SIZES, random),
        _ => None,
    }
}

/// Replaces so many numbers, wherever they stand.
fn extremes(random: &mut Random, text: &str, changes: u64) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut changed = 0;
    while changed < changes {
        let place = random.index(lines.len());
        let line = lines[place].split('#').next().unwrap_or_default().to_owned();
        let Some((key, value)) = line.split_once(" = ") else { continue };
        let words: Vec<&str> =
            value.split([' ', ',', '[', ']']).filter(|w| !w.is_empty()).collect();
        if words.is_empty() {
            continue;
        }
        let word = random.pick(&words);
        let Some(new) = awkward(random, word) else { continue };
        lines[place] = format!("{key} = {}", value.replacen(word, &new, 1));
        changed += 1;
    }
    lines.join("\n")
}

#[test]
fn every_number_may_be_awkward() {
    let mut random = Random::new(1);
    for word in ["7", "1_000", "\"5ms\"", "\"25%\"", "\"1GHz\"", "\"64K\""] {
        assert!(awkward(&mut random, word).is_some(), "{word}");
    }
    assert_eq!(awkward(&mut random, "\"usb-can\""), None);
    let texts = USUAL.map(|(_, text)| text).concat();
    let keys = ["every", "longest", "times", "onward", "turn", "jitter", "wakes", "drift"];
    for key in keys {
        assert!(texts.contains(&format!("\n{key} = ")), "{key}");
    }
}

#[test]
fn no_number_is_a_bug_of_the_planner() {
    let (mut read, mut held, mut refused) = (0, 0, 0);
    for (seed, (name, text)) in (0..).zip(USUAL.iter().cycle()).take(300) {
        if seed < USUAL.len() as u64 {
            let usual = parse(name, text).unwrap_or_else(|wrong| panic!("{wrong}"));
            let plan = Plan::of(&usual);
            assert!(plan.holds(), "{}", plan.findings[0]);
        }
        let mut random = Random::stream(31, seed);
        let changes = 1 + random.below(3);
        let text = extremes(&mut random, text, changes);
        let Ok(system) = parse("extreme.toml", &text) else { continue };
        read += 1;
        let plan = Plan::of(&system);
        held += u32::from(plan.holds());
        refused += u32::from(!plan.holds());
        for found in &plan.findings {
            let said = found.plain();
            assert!(!said.contains("report this as a bug"), "seed {seed}: {said}\n{text}");
        }
    }
    assert!(read > 60 && held > 20 && refused > 20, "{read} {held} {refused}");
}
