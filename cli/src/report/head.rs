//! The head of the page: name, verdict, origin, and the numbers that matter most.

use super::facts::{Facts, PageFacts, anchor};
use crate::chart::escaped;
use crate::duration::human;
use crate::image::fnv;
use crate::outcome::{ChainPromise, PipePromise};
use crate::table::share;

/// Returns the part of the page above its sections.
pub fn head(page: &PageFacts<'_>) -> String {
    let badge = page.badge();
    let own = match &page.parts[..] {
        [alone] if page.joined.is_none() => {
            format!("{}<div class=\"tiles\">{}</div>", findings(alone), tiles(alone))
        }
        _ => ways(page),
    };
    format!(
        "<header><h1>{} <span class=\"badge {}\">{}</span></h1>\n<p>{}</p>\n\
         <p class=\"origin\">{}</p>\n{own}</header>\n",
        escaped(&page.title()),
        badge.class(),
        badge.words(),
        how(page),
        escaped(&origin(page)),
    )
}

/// Says how long it ran, at which clock, and what was drawn.
fn how(page: &PageFacts<'_>) -> String {
    let mut clocks: Vec<u64> =
        page.parts.iter().map(|facts| facts.session.system.clock_hz / 1_000_000).collect();
    clocks.dedup();
    let clocks: Vec<String> = clocks.iter().map(u64::to_string).collect();
    let seed = page
        .request
        .seed
        .map_or_else(|| "everything takes longest".to_owned(), |seed| format!("seed {seed}"));
    let horizon = human(page.request.length.horizon_ns);
    let clocks = clocks.join(", ");
    format!("Planned, and simulated for {horizon} of its own time at {clocks} MHz; {seed}.")
}

/// Says what the page was made from. Equal files, options and versions give an equal page.
fn origin(page: &PageFacts<'_>) -> String {
    let path = &page.request.system;
    let file = std::fs::read(path).map(|bytes| format!(" (FNV {:016x})", fnv([bytes])));
    let archives = page.parts.iter().map(|facts| &facts.session.archive);
    let trace = page.parts.iter().fold(0u64, |sum, facts| sum.wrapping_add(facts.hash));
    format!(
        "Made by diapason {} from {}{}; boot archive {:016x}; trace {trace:016x}.",
        env!("CARGO_PKG_VERSION"),
        path.display(),
        file.unwrap_or_default(),
        fnv(archives),
    )
}

/// Returns the ways to the parts of a page, each with its verdict.
fn ways(page: &PageFacts<'_>) -> String {
    let way = |facts: &Facts<'_>| {
        let (id, name) = (anchor(&["part", facts.name]), escaped(&page.called(facts)));
        format!("<a href=\"#{id}\">{name}: {}</a>", facts.badge().words())
    };
    let ways: String = page.parts.iter().map(way).collect();
    format!("<nav aria-label=\"parts of the page\">{ways}</nav>")
}

/// Returns what is wrong with a host, as a list.
pub fn findings(facts: &Facts<'_>) -> String {
    let findings = facts.findings();
    let items: String =
        findings.iter().map(|finding| format!("<li>{}</li>", escaped(finding))).collect();
    if items.is_empty() { items } else { format!("<ul>{items}</ul>") }
}

/// Returns the numbers of a host that matter most.
pub fn tiles(facts: &Facts<'_>) -> String {
    let outcome = facts.outcome();
    let mut tiles = Vec::new();
    let promises = facts.session.promises();
    if !promises.is_empty() {
        let messages: u64 = outcome.pipes.iter().map(|row| row.messages).sum();
        let lost: u64 = outcome.pipes.iter().map(|row| row.lost).sum();
        tiles.push(("messages".to_owned(), messages.to_string()));
        tiles.push(("lost".to_owned(), lost.to_string()));
        let chains = facts.session.assumptions(facts.run).chains;
        tiles.extend(extremes(&took(facts, &promises, &chains)));
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

/// The longest that a message of a pipe or chain took, its bound, and the name of that one.
type Took<'a> = (u64, u64, &'a str);

/// Returns the longest of each pipe and chain.
fn took<'a>(
    facts: &'a Facts<'_>,
    pipes: &'a [PipePromise],
    chains: &'a [ChainPromise],
) -> Vec<Took<'a>> {
    let of_pipes = pipes.iter().filter_map(|promise| {
        let took = promise.row(facts.outcome())?.whole_max_ns + promise.least_ns;
        Some((took, promise.bound_ns, &*promise.name))
    });
    let of_chains = chains.iter().filter_map(|promise| {
        let took = promise.row(facts.outcome())?.whole_max_ns + promise.least_ns;
        Some((took, promise.bound_ns, &*promise.name))
    });
    of_pipes.chain(of_chains).collect()
}

/// Returns the longest that a message took, and the one that was nearest to its bound.
fn extremes(seen: &[Took<'_>]) -> Vec<(String, String)> {
    let longest = seen.iter().max_by_key(|(took, ..)| *took);
    let part = |(took, bound, _): &Took<'_>| took.saturating_mul(1_000) / (*bound).max(1);
    let nearest = seen.iter().max_by_key(|it| part(it));
    let longest = longest.map(|(took, _, name)| (format!("longest message: {name}"), human(*took)));
    let nearest = nearest.map(|it| {
        let permille = part(it);
        let share = format!("{}.{} %", permille / 10, permille % 10);
        (format!("of its bound at most: {}, {} of {}", it.2, human(it.0), human(it.1)), share)
    });
    longest.into_iter().chain(nearest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message nearest its bound may be another one than the longest.
    #[test]
    fn the_longest_tile_is_the_longest() {
        let seen = [
            (1_655_000, 7_368_000, "relay"),
            (900_000, 1_000_000, "near"),
            (4_362_000, 9_000_000, "gateway"),
        ];
        let expected = [
            ("longest message: gateway", "4.362 ms"),
            ("of its bound at most: near, 900.000 us of 1.000 ms", "90.0 %"),
        ];
        assert_eq!(extremes(&seen), expected.map(|(what, value)| (what.into(), value.into())));
        assert!(extremes(&[]).is_empty());
    }
}
