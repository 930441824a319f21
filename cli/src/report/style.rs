//! The style of the page, light and dark.

pub const STYLE: &str = "
:root { --bg: #fbfbf9; --fg: #1b1c1e; --soft: #6a6d72; --line: #dcdcd6; --card: #ffffff;
  --c0: #3b6fb6; --c1: #d5762b; --c2: #2f8f6b; --c3: #8a5fb0; --c4: #c2497c; --c5: #3d8fb0;
  --c6: #96801f; --c7: #7a7f87; --good: #1d7a4b; --bad: #b3261e; --kernel: #8d8f94; }
@media screen and (prefers-color-scheme: dark) { :root {
  --bg: #16181b; --fg: #e7e7e4; --soft: #9a9ea5;
  --line: #33373d; --card: #1e2125; --c0: #6fa3e8; --c1: #f0a25e; --c2: #5cc39a; --c3: #b795dc;
  --c4: #e87fab; --c5: #86cfe8; --c6: #dcc45a; --c7: #a6abb3; --good: #59c88d; --bad: #ff8a80;
  --kernel: #70747b; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--fg);
  font: 15px/1.5 system-ui, -apple-system, 'Segoe UI', sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { font-size: 28px; margin: 0 0 4px; } h2, h3 { font-size: 18px; margin: 0 0 6px; }
.part { margin-top: 34px; } .part > h2 { font-size: 22px; }
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
  .wide > svg { min-width: 720px; } section:not(.words) :is(th, td) { white-space: nowrap; }
  .words table { min-width: 720px; } }
table { border-collapse: collapse; width: 100%; font-size: 13px; margin-top: 12px;
  font-variant-numeric: tabular-nums; }
th, td { padding: 4px 10px; text-align: right; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; } th:first-child, td:first-child { text-align: left; }
.words td, .words th { text-align: left; }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--fg); font-size: 13px; }
svg text.small { font-size: 11px; fill: var(--soft); }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 8px 0 0; font-size: 13px; }
.legend .key { width: 11px; height: 11px; display: inline-block; margin-right: 6px; }
.grid { stroke: var(--line); } .axis { stroke: var(--soft); }
.wire { stroke: var(--soft); stroke-width: 1.2; }
.box { fill: var(--card); stroke: var(--soft); rx: 6px; } .process { stroke: var(--c0); }
.kernel { fill: var(--kernel); }
a { color: inherit; } svg a:focus-visible { outline: 2px solid var(--fg); }
svg a:hover rect { stroke: var(--fg); }
rect.second { fill-opacity: 0.55; stroke: var(--fg); stroke-dasharray: 2 2; }
.curve.second { stroke-dasharray: 5 3; }
nav { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 0 0 12px; }
.origin { font-size: 13px; overflow-wrap: anywhere; }
details { margin-top: 10px; } summary { cursor: pointer; }
pre { font: 12px/1.45 ui-monospace, monospace; margin: 8px 0 0; }
.bar { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; min-height: 34px; }
.bar button { font: inherit; min-width: 34px; background: var(--card); color: var(--fg);
  border: 1px solid var(--soft); border-radius: 6px; }
.plot { cursor: crosshair; } .plot .grid { vector-effect: non-scaling-stroke; }
.link { stroke: var(--c0); stroke-width: 1.5; stroke-dasharray: 5 3; }
.seen { stroke: var(--fg); fill: var(--fg); stroke-width: 2; }
.nine { stroke: var(--bad); fill: var(--bad); stroke-dasharray: 3 2; }
.wanted { stroke: var(--good); fill: var(--good); stroke-width: 2; }
.c0 { fill: var(--c0); } .c1 { fill: var(--c1); } .c2 { fill: var(--c2); } .c3 { fill: var(--c3); }
.c4 { fill: var(--c4); } .c5 { fill: var(--c5); } .c6 { fill: var(--c6); } .c7 { fill: var(--c7); }
.curve { fill: none; stroke-width: 2; }
.curve.c0 { stroke: var(--c0); } .curve.c1 { stroke: var(--c1); } .curve.c2 { stroke: var(--c2); }
.curve.c3 { stroke: var(--c3); } .curve.c4 { stroke: var(--c4); } .curve.c5 { stroke: var(--c5); }
.curve.c6 { stroke: var(--c6); } .curve.c7 { stroke: var(--c7); }
@media print { .bar { display: none; } section { break-inside: avoid; } main { max-width: none; } }
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
        let (light, dark) =
            STYLE.split_once("@media screen and (prefers-color-scheme: dark)").unwrap();
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
