//! The page: its parts in order, and its style.

use super::{Facts, bills, buses, chain_bars, curves, tables, timeline, topology};
use crate::chart::escaped;
use crate::commands::holds;
use crate::duration::human;
use crate::outcome::RunVerdict;
use crate::table::share;

/// Returns the whole page.
pub fn page(facts: &Facts<'_>) -> String {
    let system = &facts.session.system;
    let name = escaped(&system.name);
    let sections = [
        section("Devices and processes", "", topology::topology(facts)),
        section(
            "The longest delay of messages",
            "Each bar is the bill of a pipe: the stages of a message, one after the other. The \
             narrow bar below it is the slowest message of the simulated run. The mark is the \
             longest delay that the reader or writer measured.",
            bills::bills(facts) + &tables::pipes(facts),
        ),
        section(
            "Through several threads",
            "Each bar is the bill of a chain: the stages of a message from the device to the \
             chain's end. Each thread has a colour of its own.",
            chain_bars::chains(facts) + &tables::chains(facts),
        ),
        section(
            "UDP sockets",
            "How long datagrams were on their way from their server to their program, beside the \
             part of the bound that is for that. The rest of the bound is for the wire and the \
             distance of interrupts, which no driver sees.",
            tables::sockets(facts),
        ),
        section(
            "How long they took",
            "The share of messages with at most this delay beyond the fastest message.",
            curves::delays(facts),
        ),
        section("Messages a second", "", curves::rates(facts)),
        section(
            "Schedule of the buses",
            "The slots of each USB bus: microframes, or frames below 480 Mbit/s. Each stack is \
             the time that periodic endpoints take of a slot; the rest is for bulk.",
            buses::buses(facts),
        ),
        section("Threads over time", "A part of the run.", timeline::timeline(facts)),
        section("Budgets", "", tables::vcpus(facts)),
        section("Threads", "", tables::threads(facts)),
        section("Inputs of the bills", "", tables::bills(facts)),
    ];
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{name} – Diapason</title>\n<style>{STYLE}</style></head>\n<body><main>\n\
         {}{}</main></body></html>\n",
        head(facts),
        sections.concat()
    )
}

fn section(title: &str, words: &str, content: String) -> String {
    if content.is_empty() {
        return String::new();
    }
    let words = if words.is_empty() { String::new() } else { format!("<p>{words}</p>\n") };
    format!("<section><h2>{title}</h2>\n{words}{content}</section>\n")
}

/// Name, verdict and the numbers that matter most.
fn head(facts: &Facts<'_>) -> String {
    let unmeasured = facts.session.unmeasured(facts.run);
    let (class, verdict) = match facts.verdict {
        verdict if holds(facts.session, facts.run, verdict) => ("good", "holds"),
        RunVerdict::Holds if facts.session.proved => {
            ("bad", "nothing was broken, and not everything was measured")
        }
        RunVerdict::Holds => ("bad", "unproved; nothing was broken"),
        RunVerdict::Broken(_) if facts.session.proved => ("bad", "does not hold"),
        RunVerdict::Broken(_) => ("bad", "unproved; does not hold"),
        RunVerdict::Bug(_) => ("bad", "ended by a bug of ours"),
    };
    let mut findings = facts.verdict.findings();
    findings.extend(unmeasured.iter().map(|what| format!("not measured: {what}")));
    let findings: String =
        findings.iter().map(|finding| format!("<li>{}</li>", escaped(finding))).collect();
    let findings = if findings.is_empty() { findings } else { format!("<ul>{findings}</ul>") };
    let seed = facts
        .request
        .seed
        .map_or_else(|| "everything takes longest".to_owned(), |seed| format!("seed {seed}"));
    format!(
        "<header><h1>{} <span class=\"badge {class}\">{verdict}</span></h1>\n\
         <p>Planned, and simulated for {} of its own time at {} MHz; {seed}.</p>\n{findings}\
         <div class=\"tiles\">{}</div></header>\n",
        escaped(&facts.session.system.name),
        human(facts.request.length.horizon_ns),
        facts.session.system.clock_hz / 1_000_000,
        tiles(facts)
    )
}

fn tiles(facts: &Facts<'_>) -> String {
    let outcome = facts.outcome();
    let mut tiles = Vec::new();
    let promises = facts.session.promises();
    if !promises.is_empty() {
        let messages: u64 = outcome.pipes.iter().map(|row| row.messages).sum();
        let lost: u64 = outcome.pipes.iter().map(|row| row.lost).sum();
        tiles.push(("messages".to_owned(), messages.to_string()));
        tiles.push(("lost".to_owned(), lost.to_string()));
        let nearest = promises.iter().filter_map(|promise| {
            let seen = promise.row(outcome)?.whole_max_ns;
            Some((seen * 1_000 / promise.bound_ns.max(1), seen, promise.bound_ns))
        });
        if let Some((_, seen, bound)) = nearest.max() {
            tiles.push((format!("longest, of {}", human(bound)), human(seen)));
        }
    }
    let misses = outcome.misses();
    tiles.push(("deadlines missed".to_owned(), misses.to_string()));
    if let Some(end) = outcome.end {
        tiles.push(("processor idle".to_owned(), share(end.idle_ns, end.time_ns)));
    }
    if let Some(margin) = facts.plan.margin().filter(|margin| *margin >= 1_000) {
        let percent = format!("{}.{} %", (margin - 1_000) / 10, margin % 10);
        tiles.push(("every budget could grow by".to_owned(), percent));
    }
    let tile = |(what, value): &(String, String)| {
        format!("<div><b>{}</b><span>{}</span></div>", escaped(value), escaped(what))
    };
    tiles.iter().map(tile).collect()
}

const STYLE: &str = "
:root { --bg: #fbfbf9; --fg: #1b1c1e; --soft: #6a6d72; --line: #dcdcd6; --card: #ffffff;
  --c0: #3b6fb6; --c1: #d5762b; --c2: #2f8f6b; --c3: #8a5fb0; --c4: #c2497c; --c5: #3d8fb0;
  --c6: #96801f; --c7: #7a7f87; --good: #1d7a4b; --bad: #b3261e; --kernel: #8d8f94; }
@media (prefers-color-scheme: dark) { :root { --bg: #16181b; --fg: #e7e7e4; --soft: #9a9ea5;
  --line: #33373d; --card: #1e2125; --c0: #6fa3e8; --c1: #f0a25e; --c2: #5cc39a; --c3: #b795dc;
  --c4: #e87fab; --c5: #86cfe8; --c6: #dcc45a; --c7: #a6abb3; --good: #59c88d; --bad: #ff8a80;
  --kernel: #70747b; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--fg);
  font: 15px/1.5 system-ui, -apple-system, 'Segoe UI', sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { font-size: 28px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 0 0 6px; }
p { margin: 0 0 12px; color: var(--soft); }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 18px 20px; margin-top: 18px; }
.badge { font-size: 14px; padding: 3px 12px; border-radius: 999px; vertical-align: middle;
  border: 1px solid currentColor; }
.good { color: var(--good); } .bad { color: var(--bad); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 12px; }
.tiles div { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 10px 14px; }
.tiles b { display: block; font-size: 20px; font-variant-numeric: tabular-nums; }
.tiles span { color: var(--soft); font-size: 13px; }
.wide { overflow-x: auto; }
.wide:focus-visible { outline: 2px solid var(--c0); outline-offset: 2px; }
@media (max-width: 700px) { main { padding: 20px 10px 40px; } section { padding: 14px 12px; }
  .wide > svg { min-width: 720px; } section:not(:last-of-type) :is(th, td) { white-space: nowrap; }
  section:last-of-type table { min-width: 720px; } }
table { border-collapse: collapse; width: 100%; font-size: 13px; margin-top: 12px;
  font-variant-numeric: tabular-nums; }
th, td { padding: 4px 10px; text-align: right; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; } th:first-child, td:first-child { text-align: left; }
section:last-of-type td, section:last-of-type th { text-align: left; }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--fg); font-size: 13px; }
svg text.small { font-size: 11px; fill: var(--soft); }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 8px 0 0; font-size: 13px; }
.legend .key { width: 11px; height: 11px; display: inline-block; margin-right: 6px; }
.grid { stroke: var(--line); } .axis { stroke: var(--soft); }
.wire { stroke: var(--soft); stroke-width: 1.2; }
.box { fill: var(--card); stroke: var(--soft); rx: 6px; } .process { stroke: var(--c0); }
.kernel { fill: var(--kernel); }
.seen { stroke: var(--fg); fill: var(--fg); stroke-width: 2; }
.nine { stroke: var(--bad); fill: var(--bad); stroke-dasharray: 3 2; }
.wanted { stroke: var(--good); fill: var(--good); stroke-width: 2; }
.c0 { fill: var(--c0); } .c1 { fill: var(--c1); } .c2 { fill: var(--c2); } .c3 { fill: var(--c3); }
.c4 { fill: var(--c4); } .c5 { fill: var(--c5); } .c6 { fill: var(--c6); } .c7 { fill: var(--c7); }
.curve { fill: none; stroke-width: 2; }
.curve.c0 { stroke: var(--c0); } .curve.c1 { stroke: var(--c1); } .curve.c2 { stroke: var(--c2); }
.curve.c3 { stroke: var(--c3); } .curve.c4 { stroke: var(--c4); } .curve.c5 { stroke: var(--c5); }
.curve.c6 { stroke: var(--c6); } .curve.c7 { stroke: var(--c7); }
";

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the colours of one of the two blocks of the style, by their names.
    fn colours(block: &str) -> Vec<(&str, [f64; 3])> {
        let named = block.split("--").skip(1).filter_map(|part| part.split_once(": #"));
        let parts = |hex: &str| {
            [0, 2, 4].map(|at| f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0)
        };
        named.map(|(name, hex)| (name, parts(hex))).collect()
    }

    /// Returns the luminance of a colour, as the WCAG define it.
    fn luminance(colour: [f64; 3]) -> f64 {
        let linear = |part: f64| match part {
            dark if dark <= 0.04045 => dark / 12.92,
            light => ((light + 0.055) / 1.055).powf(2.4),
        };
        let [red, green, blue] = colour.map(linear);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn every_colour_stands_out_in_light_and_in_dark() {
        let (light, dark) = STYLE.split_once("@media (prefers-color-scheme: dark)").unwrap();
        let dark = dark.split_once("} }").unwrap().0;
        for block in [light, dark] {
            let colours = colours(block);
            let of = |name: &str| colours.iter().find(|it| it.0 == name).unwrap().1;
            assert_eq!(colours.len(), 16);
            for (name, colour) in &colours {
                let least = match *name {
                    // Backgrounds, and lines that carry no meaning.
                    "bg" | "card" | "line" => continue,
                    "fg" | "soft" | "good" | "bad" => 4.5,
                    // Parts of pictures.
                    _ => 3.0,
                };
                for ground in ["bg", "card"] {
                    let found = contrast(*colour, of(ground));
                    assert!(found >= least, "{name} on {ground}: {found:.2}");
                }
            }
        }
        assert!((contrast([0.0; 3], [1.0; 3]) - 21.0).abs() < 1e-9);
    }
}
